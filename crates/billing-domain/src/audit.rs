//! The audit log: actor, action, and state before and after each change. Usage events have revisions instead of audit events.

use std::fmt;

use crate::access::{Actor, RequestId};
use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, AuditRef};

/// The actor of an audit event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditActor {
    /// An administrator.
    Admin(AdminRef),
    /// A client with an API key.
    ApiKey(ApiKeyRef),
    /// A user of the service's commands.
    CommandLine,
    /// The scheduler of the service.
    Scheduler,
    /// An unauthenticated client.
    Nobody,
}

const COMMAND_LINE: &str = "command_line";
const SCHEDULER: &str = "scheduler";
const NOBODY: &str = "nobody";

impl AuditActor {
    /// Converts the actor of a [`Principal`](crate::access::Principal). The service as a principal is the command line.
    pub const fn of(actor: Actor) -> Self {
        match actor {
            Actor::Admin(admin) => Self::Admin(admin),
            Actor::ApiKey(key) => Self::ApiKey(key),
            Actor::Service => Self::CommandLine,
        }
    }

    /// Parses the output of [`Display`](fmt::Display). Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            COMMAND_LINE => Some(Self::CommandLine),
            SCHEDULER => Some(Self::Scheduler),
            NOBODY => Some(Self::Nobody),
            text => match Actor::parse(text).ok()? {
                actor @ (Actor::Admin(_) | Actor::ApiKey(_)) => Some(Self::of(actor)),
                Actor::Service => None,
            },
        }
    }
}

impl fmt::Display for AuditActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Admin(admin) => Actor::Admin(admin).fmt(f),
            Self::ApiKey(key) => Actor::ApiKey(key).fmt(f),
            Self::CommandLine => f.write_str(COMMAND_LINE),
            Self::Scheduler => f.write_str(SCHEDULER),
            Self::Nobody => f.write_str(NOBODY),
        }
    }
}

/// Declares enums whose words appear in the API and in stores.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $of_variant:literal])+ $variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $of_variant])+ $variant,)+ }

        impl $name {
            /// All values in display order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word of the value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses a word. Returns `None` for any other word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    )+};
}

words! {
    /// The action of an audit event.
    AuditAction {
        /// An object was created or recorded.
        Create = "CREATE",
        /// An object was changed.
        Edit = "EDIT",
        /// An object was deleted.
        Delete = "DELETE",
        /// A quantity of a contract was changed.
        ChangeQuantity = "CHANGE_QUANTITY",
        /// A contract was canceled.
        Cancel = "CANCEL",
        /// The cancellation of a contract was reversed.
        Resume = "RESUME",
        /// A document was issued manually.
        Issue = "ISSUE",
        /// A document was voided.
        Void = "VOID",
        /// The amount due of a document was written off.
        WriteOff = "WRITE_OFF",
        /// A write-off was reversed.
        UndoWriteOff = "UNDO_WRITE_OFF",
        /// A payment or a refund was reversed.
        Reverse = "REVERSE",
        /// A billing run was executed.
        Run = "RUN",
        /// Documents were issued although the service does not trust its clock.
        TrustClock = "TRUST_CLOCK",
        /// A file of usage events was imported.
        Import = "IMPORT",
        /// A file import was undone.
        UndoImport = "UNDO_IMPORT",
        /// An administrator logged in.
        LogIn = "LOG_IN",
        /// A log-in failed.
        FailLogIn = "FAIL_LOG_IN",
        /// A session sent a wrong password to confirm the administrator's identity.
        FailConfirmation = "FAIL_CONFIRMATION",
        /// An administrator was disabled, or the service disabled a webhook endpoint.
        Disable = "DISABLE",
        /// An administrator was enabled again.
        Enable = "ENABLE",
        /// An administrator got a new password from another actor.
        ResetPassword = "RESET_PASSWORD",
        /// An administrator changed the password.
        ChangePassword = "CHANGE_PASSWORD",
        /// An administrator enabled the second factor.
        AddSecondFactor = "ADD_SECOND_FACTOR",
        /// The second factor of an administrator was removed.
        RemoveSecondFactor = "REMOVE_SECOND_FACTOR",
        /// An administrator used a recovery code.
        UseRecoveryCode = "USE_RECOVERY_CODE",
        /// Too many codes failed, so the second factor accepts only recovery codes.
        LockSecondFactor = "LOCK_SECOND_FACTOR",
        /// An administrator ended one or more of their own sessions.
        EndSessions = "END_SESSIONS",
        /// An API key was replaced by a successor, or a webhook endpoint got a new secret.
        Rotate = "ROTATE",
        /// Notifications were scheduled again for a webhook endpoint.
        Replay = "REPLAY",
    }

    /// The kind of the changed object.
    AuditedKind {
        /// The organization, identified by its name.
        Organization = "ORGANIZATION",
        /// An administrator.
        Administrator = "ADMINISTRATOR",
        /// An API key.
        ApiKey = "API_KEY",
        /// A customer.
        Customer = "CUSTOMER",
        /// A supplier entity.
        Entity = "ENTITY",
        /// A usage product.
        UsageProduct = "USAGE_PRODUCT",
        /// A pricing.
        Pricing = "PRICING",
        /// A usage format.
        Format = "FORMAT",
        /// A bank account.
        BankAccount = "BANK_ACCOUNT",
        /// An exchange rate, identified by its currencies and day.
        ExchangeRate = "EXCHANGE_RATE",
        /// A contract.
        Contract = "CONTRACT",
        /// A charge.
        Charge = "CHARGE",
        /// A credit grant of a customer.
        CreditGrant = "CREDIT_GRANT",
        /// A limit of a customer.
        Limit = "LIMIT",
        /// An invoice, credit or debit.
        Document = "DOCUMENT",
        /// A payment or a refund.
        Payment = "PAYMENT",
        /// An applied credit or payment.
        Application = "APPLICATION",
        /// A billing run.
        BillingRun = "BILLING_RUN",
        /// A file of usage events.
        UsageFile = "USAGE_FILE",
        /// A webhook endpoint.
        WebhookEndpoint = "WEBHOOK_ENDPOINT",
    }
}

/// An immutable audit event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The reference of the event.
    pub audit_ref: AuditRef,
    /// The time of the change.
    pub at: Timestamp,
    /// The actor.
    pub author: AuditActor,
    /// The action.
    pub action: AuditAction,
    /// The kind of the object.
    pub kind: AuditedKind,
    /// The reference of the object in the API.
    pub reference: String,
    /// The changed fields before the change, as a JSON object. `None` for a created object.
    pub before: Option<String>,
    /// The changed fields after the change, as a JSON object. `None` for a deleted object.
    pub after: Option<String>,
    /// The id of the request, or `None` outside a request.
    pub request_id: Option<RequestId>,
}

/// A position in the log. The newest event comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPosition {
    /// The time of the event at this position.
    pub at: Timestamp,
    /// The event at this position.
    pub audit_ref: AuditRef,
}

impl AuditEntry {
    /// Returns the position of the event in the log.
    pub const fn position(&self) -> AuditPosition {
        AuditPosition { at: self.at, audit_ref: self.audit_ref }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn authors_and_words_are_read_as_they_are_written() {
        let id = Uuid::from_u128(7);
        let authors = [
            AuditActor::Admin(AdminRef::from_uuid(id)),
            AuditActor::ApiKey(ApiKeyRef::from_uuid(id)),
            AuditActor::CommandLine,
            AuditActor::Scheduler,
            AuditActor::Nobody,
        ];
        for author in authors {
            assert_eq!(AuditActor::parse(&author.to_string()), Some(author));
        }
        for other in ["service", "admin", "admin:7", "", "Scheduler"] {
            assert_eq!(AuditActor::parse(other), None, "{other}");
        }
        assert!(AuditAction::ALL.iter().all(|action| AuditAction::parse(action.as_str()) == Some(*action)));
        assert!(AuditedKind::ALL.iter().all(|kind| AuditedKind::parse(kind.as_str()) == Some(*kind)));
        assert_eq!((AuditAction::parse("create"), AuditedKind::parse("")), (None, None));
    }
}
