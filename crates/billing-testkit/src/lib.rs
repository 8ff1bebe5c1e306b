//! Test support for every other crate: an in-memory store that really rolls back, builders with sensible
//! defaults, a settable clock, counting identifiers, property-test strategies, and the contract suite of the
//! ports, which any [`Store`](billing_domain::ports::Store) has to pass.
//!
//! ```
//! use billing_domain::ports::{Access, Insertion, Organizations as _, StoreError, transact};
//! use billing_testkit::{CountingIds, MemoryStore, fixtures};
//!
//! let (store, ids) = (MemoryStore::new(), CountingIds::new());
//! let organization = fixtures::organization(&ids);
//! let done = transact::<_, StoreError>(&store, Access::Write, |tx| tx.insert_organization(&organization));
//! assert!(matches!(done, Ok(Insertion::Done)));
//! ```
//!
//! A store's own tests run the suite with one line: `billing_testkit::store_contract!(my_store());`

mod environment;
pub mod fixtures;
mod memory;
pub mod random;
mod singly;
pub mod strategies;
pub mod suite;

pub use environment::{CountingIds, FixedClock, FreshIds, PlainPrinter};
pub use memory::MemoryStore;
pub use singly::Singly;
