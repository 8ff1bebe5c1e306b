//! Test support for all crates:
//!
//! - builders with sensible defaults
//! - a settable clock and counting identifiers
//! - property-test strategies
//! - the contract suite of the ports, which every [`Store`](billing_domain::ports::Store) must pass
//!
//! ```
//! use billing_testkit::{CountingIds, fixtures};
//!
//! let ids = CountingIds::new();
//! let customer = fixtures::customer(&ids, "acme");
//! assert_eq!(customer.customer_ref.as_str(), "acme");
//! ```
//!
//! A store's own tests run the suite with one line: `billing_testkit::store_contract!(my_store());`

mod environment;
pub mod fixtures;
pub mod random;
mod singly;
pub mod strategies;
pub mod suite;

pub use environment::{CountingIds, FixedClock, FreshIds, NoWebhooks, PlainEInvoices, PlainPrinter};
pub use singly::Singly;
