//! What the use cases need from the outside, as duties an adapter has to keep. Every sentence of these
//! comments is tested by the testkit's contract suite on each store.
//!
//! Ports are synchronous. They know no SQL, no HTTP, no file.

mod environment;
mod formats;
mod reading;
mod repositories;

pub use environment::{
    Clock, EventMapper, IdSource, KeyMaker, NewKey, PasswordCheck, PasswordHasher, Sealer, SecretError, TokenSigner,
};
pub use formats::UsageFormats;
pub use reading::{Billed, EventFilter, EventScope, UsageReading, Visit};
pub use repositories::{
    Access, Administrators, ApiKeys, Contracts, Customers, DocumentFilter, DocumentedLine, Documents, DueContract, Entities,
    EventKeys, Insertion, Inspection, Lock, NumberSeries, Organizations, Pricings, ReplayLog, RollBack, Savepoints, Sessions,
    SigningSecrets, Store, StoreError, StoreResult, Tokens, Tx, Update, UsageEvents, UsageProducts, attempt, transact,
};

#[cfg(feature = "mocks")]
pub use environment::{MockClock, MockEventMapper, MockIdSource, MockKeyMaker, MockPasswordHasher, MockSealer, MockTokenSigner};
#[cfg(feature = "mocks")]
pub use formats::MockUsageFormats;
#[cfg(feature = "mocks")]
pub use reading::MockUsageReading;
#[cfg(feature = "mocks")]
pub use repositories::{
    MockAdministrators, MockApiKeys, MockContracts, MockCustomers, MockDocuments, MockEntities, MockEventKeys, MockInspection,
    MockNumberSeries, MockOrganizations, MockPricings, MockReplayLog, MockSessions, MockSigningSecrets, MockTokens,
    MockUsageEvents, MockUsageProducts,
};
