//! The audit log: who changed what, when, from what to what. Usage events aren't in it: their revisions tell the same.

use std::fmt;

use crate::access::{Actor, RequestId};
use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, AuditRef};

/// Who did something that the audit log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditActor {
    /// A person.
    Admin(AdminRef),
    /// Software, by its key.
    ApiKey(ApiKeyRef),
    /// Whoever runs the service's commands.
    CommandLine,
    /// The service itself, by the clock.
    Scheduler,
    /// Somebody who didn't show who they are.
    Nobody,
}

const COMMAND_LINE: &str = "command_line";
const SCHEDULER: &str = "scheduler";
const NOBODY: &str = "nobody";

impl AuditActor {
    /// Whom a [`Principal`](crate::access::Principal) speaks for: the service's is that of its commands.
    pub const fn of(actor: Actor) -> Self {
        match actor {
            Actor::Admin(admin) => Self::Admin(admin),
            Actor::ApiKey(key) => Self::ApiKey(key),
            Actor::Service => Self::CommandLine,
        }
    }

    /// Reads what [`Display`](fmt::Display) writes; `None` for anything else.
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

/// Enumerations whose words the interface shows and stores keep.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $of_variant:literal])+ $variant:ident = $word:literal,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $of_variant])+ $variant,)+ }

        impl $name {
            /// All, in the order they are shown.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// By its word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    )+};
}

words! {
    /// What was done to an object.
    AuditAction {
        /// It was made or recorded.
        Create = "CREATE",
        /// It was changed.
        Edit = "EDIT",
        /// It was deleted.
        Delete = "DELETE",
        /// A quantity of a contract was changed.
        ChangeQuantity = "CHANGE_QUANTITY",
        /// A contract was cancelled.
        Cancel = "CANCEL",
        /// A contract's cancel was taken back.
        Resume = "RESUME",
        /// A document was issued by hand.
        Issue = "ISSUE",
        /// A document was put out of force.
        Void = "VOID",
        /// What is left to pay of a document was given up on.
        WriteOff = "WRITE_OFF",
        /// That was taken back.
        UndoWriteOff = "UNDO_WRITE_OFF",
        /// A payment or a refund was taken back.
        Reverse = "REVERSE",
        /// A billing run was carried out.
        Run = "RUN",
        /// A file of usage was imported.
        Import = "IMPORT",
        /// An import of a file was undone.
        UndoImport = "UNDO_IMPORT",
        /// Somebody logged in.
        LogIn = "LOG_IN",
        /// Somebody tried to log in, and wasn't let.
        FailLogIn = "FAIL_LOG_IN",
        /// An administrator was kept from logging in.
        Disable = "DISABLE",
        /// That was taken back.
        Enable = "ENABLE",
        /// An administrator was given another password.
        ResetPassword = "RESET_PASSWORD",
        /// An administrator chose another password.
        ChangePassword = "CHANGE_PASSWORD",
        /// An administrator's log-in takes a second factor from then on.
        AddSecondFactor = "ADD_SECOND_FACTOR",
        /// It takes none any more.
        RemoveSecondFactor = "REMOVE_SECOND_FACTOR",
        /// A code for who has lost their second factor was used.
        UseRecoveryCode = "USE_RECOVERY_CODE",
        /// An administrator ended sessions of theirs.
        EndSessions = "END_SESSIONS",
        /// A key was given a successor.
        Rotate = "ROTATE",
    }

    /// What something is that was changed.
    AuditedKind {
        /// The organization itself, by its name.
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
        /// An exchange rate, by its currencies and day.
        ExchangeRate = "EXCHANGE_RATE",
        /// A contract.
        Contract = "CONTRACT",
        /// A charge.
        Charge = "CHARGE",
        /// An invoice, credit or debit.
        Document = "DOCUMENT",
        /// A payment or a refund.
        Payment = "PAYMENT",
        /// A credit or a payment that was applied to a document.
        Application = "APPLICATION",
        /// A billing run.
        BillingRun = "BILLING_RUN",
        /// A file of usage events.
        UsageFile = "USAGE_FILE",
    }
}

/// One change, as it is told for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Reference.
    pub audit_ref: AuditRef,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub author: AuditActor,
    /// What was done.
    pub action: AuditAction,
    /// To what.
    pub kind: AuditedKind,
    /// Its reference, as the interface has it.
    pub reference: String,
    /// What it was, as far as it changed: a JSON object. None of what was made.
    pub before: Option<String>,
    /// What it is, as far as it changed: a JSON object. None of what is gone.
    pub after: Option<String>,
    /// By which request, where it was one.
    pub request_id: Option<RequestId>,
}

/// A place in the log, which has the newest entry first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPosition {
    /// When the entry there was written.
    pub at: Timestamp,
    /// The entry there.
    pub audit_ref: AuditRef,
}

impl AuditEntry {
    /// Where it stands.
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
