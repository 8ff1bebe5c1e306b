//! The interfaces between the use cases and their adapters. The testkit's contract suite tests every sentence of these
//! comments on each store.
//!
//! Every method of the store's ports may return any [`StoreError`]. An `# Errors` section lists only errors with a
//! specific meaning.
//!
//! Ports are synchronous. They do not depend on SQL, HTTP or files.

mod access;
mod accounts;
mod audit;
mod books;
mod catalog;
mod charges;
mod contracts;
mod credit;
mod documents;
mod due_contracts;
mod environment;
mod formats;
mod holds;
mod idempotency;
mod imports;
mod inspection;
mod limits;
mod lists;
mod notifications;
mod reference_data;
mod refused;
mod running_totals;
mod runs;
mod sandbox;
mod store;
mod usage;
mod usage_queries;
mod webhooks;

pub use access::{Administrators, ApiKeys, KeyUse, Organizations, Sessions, SigningSecrets, Tokens};
pub use accounts::{Accounts, ApplicationsOf, Balances, DocumentsOf, PaymentFilter, PaymentSortKey, Payments, PaymentsOf};
pub use audit::{AuditFilter, AuditLog, AuditPart};
pub use books::{BookReader, BookWriter, FamilySum};
pub use catalog::{Customers, Entities, Pricings, UsageProducts};
pub use charges::{ChargeFilter, Charges};
pub use contracts::{Contracts, NumberSeries, StampGeneration, Stamps};
pub use credit::{Credits, DrawFilter, GrantFilter, NewDraw, StoredDraw};
pub use documents::{DocumentFiles, DocumentFilter, Documents, PurposeKind};
pub use due_contracts::{DueContract, DueContracts};
pub use environment::{
    Clock, CodeChecker, DocumentPrinter, EInvoiceWriter, EventMapper, IdSource, KeyMaker, NewKey, PasswordCheck, PasswordHasher,
    PrintError, PrintStop, Sealer, SecretError, TokenSigner, WebhookRequest, WebhookResponse, WebhookSender, WebhookUrlPolicy,
    WebhookUrlRefusal,
};
pub use formats::UsageFormats;
pub use holds::Holds;
pub use idempotency::IdempotencyStore;
pub use imports::{ImportFilter, MadePart, UsageImports};
pub use inspection::IntegrityQueries;
pub use limits::Limits;
pub use lists::{
    BilledMonth, ContractFilter, ContractSortKey, CustomerFilter, CustomerSortKey, DocumentAmounts, DocumentOrder,
    DocumentPosition, DocumentSortKey, DocumentSums, ListQueries, ListWindow, LocalDates, ObjectKey, ObjectName, OrderedBy,
    SearchHit, SearchHitKind, SearchTerms,
};
pub use notifications::{NewDelivery, NotificationFilter, Notifications, NumberedNotification};
pub use reference_data::{BankAccounts, ExchangeRates, StoredExchangeRate};
pub use refused::{RefusedFilter, RefusedUsage};
pub use running_totals::{LabelOfTotal, RunningTotals};
pub use runs::{BillingRuns, RunFilter};
pub use sandbox::{SandboxClock, SandboxClockStore};
pub use store::{
    Access, DatabaseReplaced, DiskUse, Insertion, Lock, NodeState, NodeUnavailable, PoolUse, RollBack, Savepoints, Shard, Store,
    StoreError, StoreResult, Tx, Update, WriterPauses, attempt, transact, transact_at,
};
pub use usage::{EventChanges, EventKeys, UsageEvents};
pub use usage_queries::{BilledDocumentKey, EventFilter, EventScope, EventSortKey, RowVisitor, UsageQueries};
pub use webhooks::{
    DeliveryBacklog, DeliveryCounts, DeliveryFilter, DeliveryLease, ListedDelivery, ReplayCandidate, ReplayRange,
    WebhookDeliveries, WebhookEndpoints,
};

#[cfg(feature = "mocks")]
pub use environment::{
    MockClock, MockCodeChecker, MockDocumentPrinter, MockEInvoiceWriter, MockEventMapper, MockIdSource, MockKeyMaker,
    MockPasswordHasher, MockSealer, MockTokenSigner, MockWebhookSender, MockWebhookUrlPolicy,
};
#[cfg(feature = "mocks")]
pub use store::MockStore;
