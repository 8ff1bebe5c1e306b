//! Test support for every other crate: builders with sensible defaults, a settable clock, counting identifiers,
//! property-test strategies, and the contract suite of the ports, which any [`Store`](billing_domain::ports::Store) has
//! to pass.
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

pub use environment::{CountingIds, FixedClock, FreshIds, PlainPrinter};
pub use singly::Singly;
