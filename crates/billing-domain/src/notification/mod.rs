//! Notifications: facts about documents, contracts, limits, credit grants and webhook endpoints. Other software reads them as a feed or receives them
//! at a URL.
//!
//! A notification is stored in the transaction that makes its fact true. Its *sequence* counts the notifications of its subject
//! from 1, its *position* those of the organization. Neither has gaps, except that positions continue in another [`epoch`] after
//! the database was restored. [`notify`] decides which changes cause notifications, and [`numbering`] in which order they take
//! their positions.

pub mod epoch;
pub mod limit_levels;
pub mod notify;
pub mod numbering;

use std::fmt;

use rust_decimal::Decimal;

use crate::calendar::{Date, Timestamp};
use crate::contract::{Contract, ContractState};
use crate::credit::GrantView;
use crate::document::{BookDocument, DocumentState, OutstandingAmounts};
use crate::limit::LimitValue;
use crate::refs::{ContractRef, CreditGrantRef, CustomerId, CustomerRef, DocumentRef, EndpointRef, LimitRef, NotificationRef};
use crate::runs::DocumentFailure;

/// The maximum number of failures in a notification.
pub const MAX_FAILURES: usize = 20;
/// The maximum length of a notification's `data` in bytes.
pub const MAX_DATA_BYTES: usize = 16 * 1024;
/// The default number of days for which notifications are retained.
pub const NOTIFICATIONS_KEPT_DAYS: u16 = 30;
/// The smallest and the largest number of days for which notifications can be retained.
pub const NOTIFICATION_DAYS: std::ops::RangeInclusive<u16> = 7..=365;

macro_rules! notification_types {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The type of a notification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum NotificationType { $($(#[doc = $doc])+ $name,)+ }

        impl NotificationType {
            /// All types in display order.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the word of the type.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// Parses a word. Returns `None` for any other word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

notification_types! {
    /// A draft was stored with its number.
    DocumentOpened = "document.opened",
    /// A document was frozen.
    DocumentIssued = "document.issued",
    /// The amount due, the unapplied amount or the written-off amount of an issued document changed.
    DocumentSettled = "document.settled",
    /// A document was put out of force.
    DocumentVoided = "document.voided",
    /// The due date of a document is over, and an amount is still due.
    DocumentOverdue = "document.overdue",
    /// A contract has a new version: it was created, edited, canceled or resumed.
    ContractChanged = "contract.changed",
    /// A contract ends in 30 days.
    ContractEnding = "contract.ending",
    /// The billing run could not bill a contract.
    BillingFailed = "billing.failed",
    /// A contract that could not be billed was billed again.
    BillingRecovered = "billing.recovered",
    /// The number of a limit reached a threshold, or usage reached the maximum.
    LimitReached = "limit.reached",
    /// The number of a limit is below a threshold again, or at the maximum or below.
    LimitCleared = "limit.cleared",
    /// A customer was granted prepaid credit.
    CreditGranted = "credit.granted",
    /// Prepaid credit ends in 30 or in 7 days, and something of it is free.
    CreditEnding = "credit.ending",
    /// The service disabled a webhook endpoint.
    EndpointDisabled = "endpoint.disabled",
    /// A test of a webhook endpoint was requested.
    WebhookTest = "webhook.test",
}

impl fmt::Display for NotificationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The object that a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An invoice, credit or debit.
    Document(DocumentRef),
    /// A contract.
    Contract(ContractRef),
    /// A limit.
    Limit(LimitRef),
    /// A credit grant.
    Grant(CreditGrantRef),
    /// A webhook endpoint.
    Endpoint(EndpointRef),
}

impl Subject {
    /// Parses the output of [`Display`](fmt::Display). Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, reference) = text.split_once(':')?;
        match kind {
            "document" => DocumentRef::parse(reference).ok().map(Self::Document),
            "contract" => ContractRef::parse(reference).ok().map(Self::Contract),
            "limit" => LimitRef::parse(reference).ok().map(Self::Limit),
            "grant" => CreditGrantRef::parse(reference).ok().map(Self::Grant),
            "endpoint" => EndpointRef::parse(reference).ok().map(Self::Endpoint),
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(document_ref) => write!(f, "document:{document_ref}"),
            Self::Contract(contract_ref) => write!(f, "contract:{contract_ref}"),
            Self::Limit(limit_ref) => write!(f, "limit:{limit_ref}"),
            Self::Grant(grant_ref) => write!(f, "grant:{grant_ref}"),
            Self::Endpoint(endpoint_ref) => write!(f, "endpoint:{endpoint_ref}"),
        }
    }
}

/// The content of a notification before it is rendered and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The type.
    pub kind: NotificationType,
    /// The number among the notifications of the subject, from 1.
    pub sequence: u64,
    /// The state of the subject at this sequence.
    pub data: FactData,
}

/// The state of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactData {
    /// A document.
    Document(Box<DocumentFact>),
    /// A contract.
    Contract(Box<ContractFact>),
    /// The billing of a contract.
    Billing(Box<BillingFact>),
    /// The number of a limit.
    Limit(Box<LimitFact>),
    /// A credit grant.
    Grant(Box<GrantView>),
    /// A webhook endpoint.
    Endpoint(Box<EndpointFact>),
}

/// A document, without its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFact {
    /// The document.
    pub document: BookDocument,
    /// The reference of the customer.
    pub customer_ref: CustomerRef,
    /// The state as the API shows it.
    pub state: DocumentState,
    /// The outstanding amounts. A document that was never issued has none.
    pub owed: Option<OutstandingAmounts>,
}

/// A contract and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFact {
    /// The contract.
    pub contract: Contract,
    /// The state as of `today`.
    pub state: ContractState,
    /// The service date in the time zone of the entity of the first product.
    pub today: Date,
}

/// Whether a contract could be billed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingFact {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The display form of the contract number.
    pub contract_number: String,
    /// The customer's internal identifier.
    pub customer_id: CustomerId,
    /// The reference of the customer.
    pub customer_ref: CustomerRef,
    /// The failure; `None` if the contract is billed again.
    pub failure: Option<BillingProblem>,
}

/// The reasons why a contract could not be billed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingProblem {
    /// The documents that could not be issued, each with its code, in the order of the billing run.
    pub failures: Vec<DocumentFailure>,
    /// The explanation of the first failure.
    pub detail: String,
}

impl BillingProblem {
    /// Returns the code of the first failure.
    pub fn first_code(&self) -> Option<String> {
        self.failures.first().map(|failure| failure.code.clone())
    }
}

/// The number of a limit at one of its levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitFact {
    /// The number.
    pub number: LimitValue,
    /// The threshold or the maximum that the number reached or left.
    pub level: Decimal,
    /// The reference of the customer.
    pub customer_ref: CustomerRef,
}

/// A webhook endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointFact {
    /// The endpoint.
    pub endpoint_ref: EndpointRef,
    /// The URL.
    pub url: String,
    /// Whether the service sends notifications to the URL.
    pub is_enabled: bool,
    /// The reason why the service disabled the endpoint.
    pub disabled_reason: Option<String>,
}

impl Fact {
    /// Returns the subject.
    pub fn subject(&self) -> Subject {
        match &self.data {
            FactData::Document(fact) => Subject::Document(fact.document.head.document_ref),
            FactData::Contract(fact) => Subject::Contract(fact.contract.contract_ref),
            FactData::Billing(fact) => Subject::Contract(fact.contract_ref),
            FactData::Limit(fact) => Subject::Limit(fact.number.limit.limit_ref),
            FactData::Grant(fact) => Subject::Grant(fact.grant.grant_ref),
            FactData::Endpoint(fact) => Subject::Endpoint(fact.endpoint_ref),
        }
    }

    /// Returns the customer whom the subject belongs to; `None` for an endpoint.
    pub fn customer_id(&self) -> Option<CustomerId> {
        match &self.data {
            FactData::Document(fact) => Some(fact.document.head.customer_id),
            FactData::Contract(fact) => Some(fact.contract.customer_id),
            FactData::Billing(fact) => Some(fact.customer_id),
            FactData::Limit(fact) => Some(fact.number.limit.customer_id),
            FactData::Grant(fact) => Some(fact.grant.account.customer_id),
            FactData::Endpoint(_) => None,
        }
    }
}

/// A stored notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The reference.
    pub notification_ref: NotificationRef,
    /// The customer whom the subject belongs to; `None` for an endpoint.
    pub customer_id: Option<CustomerId>,
    /// The subject.
    pub subject: Subject,
    /// The number among the notifications of the subject, from 1.
    pub sequence: u64,
    /// The type.
    pub kind: NotificationType,
    /// The rendered notification, as webhooks send it.
    pub body: String,
    /// The time of the change.
    pub created_at: Timestamp,
    /// The number among the notifications of the organization, from 1; `None` until it is numbered.
    pub position: Option<u64>,
}

/// An instant at which a subject is to be looked at again, because time alone can cause a notification about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The customer whom the subject belongs to.
    pub customer_id: CustomerId,
    /// The subject.
    pub subject: Subject,
    /// The type of the notification.
    pub kind: NotificationType,
    /// The instant.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn types_and_subjects_are_read_as_they_are_written() {
        assert!(NotificationType::ALL.iter().all(|kind| NotificationType::parse(kind.as_str()) == Some(*kind)));
        assert_eq!(NotificationType::parse("document.*"), None);
        let id = Uuid::from_u128(7);
        for subject in [
            Subject::Document(DocumentRef::from_uuid(id)),
            Subject::Contract(ContractRef::from_uuid(id)),
            Subject::Limit(LimitRef::from_uuid(id)),
            Subject::Grant(CreditGrantRef::from_uuid(id)),
            Subject::Endpoint(EndpointRef::from_uuid(id)),
        ] {
            assert_eq!(Subject::parse(&subject.to_string()), Some(subject));
        }
        for other in ["document", "document:", "document:7", "invoice:00000000-0000-0000-0000-000000000007", ""] {
            assert_eq!(Subject::parse(other), None, "{other}");
        }
    }
}
