//! The common error type of all use cases, for callers and operators.

use billing_domain::access::{MAX_FAILED_CODES, Permission, Role};
use billing_domain::einvoice::{EInvoiceError, Missing};
use billing_domain::format::FormatError;
use billing_domain::limit::LimitReached;
use billing_domain::money::{AmountOutOfRange, MoneyError};
use billing_domain::notification::epoch::FeedRestart;
use billing_domain::ports::{NodeUnavailable, PrintError, SecretError, StoreError};
use billing_domain::refs::EventRef;
pub use billing_domain::refs::ResourceKind;
use billing_domain::refusal::MatchRefusal;
use billing_domain::refusal::Refusal;
use billing_domain::usage::KeyConflict;
use billing_domain::violation::Violations;
use thiserror::Error;

/// The origin of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingOrigin {
    /// The mapping is part of the request.
    Submitted,
    /// The mapping belongs to a stored format.
    Stored,
}

/// The position of an event in a request with several events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// The position in the batch. `None` for the elements of a single event.
    pub index: Option<usize>,
    /// The position in the list of elements, if a usage format gives one.
    pub item: Option<usize>,
}

impl EventPlace {
    /// Returns the place of an event of a batch.
    pub const fn in_batch(index: usize) -> Self {
        Self { index: Some(index), item: None }
    }
}

/// The reason why a use case failed. Nothing is stored then.
#[derive(Debug, Error)]
pub enum UseCaseError {
    /// The name or secret is wrong. The error does not tell which.
    #[error("the credentials are not valid")]
    InvalidCredentials,
    /// The request has no credential, or an expired one.
    #[error("a valid credential is required")]
    Unauthenticated,
    /// The principal lacks a permission.
    #[error("this operation requires {0}")]
    Forbidden(Permission),
    /// The administrator's role is too low.
    #[error("this operation requires the role {needed} or higher; your role is {role}")]
    InsufficientRole {
        /// The minimum role.
        needed: Role,
        /// The administrator's role.
        role: Role,
    },
    /// The administrator must enter the password again.
    #[error(
        "this operation requires your password again: send it to POST /auth/session/confirm, and repeat the request within 5 minutes"
    )]
    ConfirmationRequired,
    /// The password is a valid one-time password. The log-in also needs a new password.
    #[error("this password works once: log in with it and set new_password to a password of 12 to 72 bytes")]
    NewPasswordRequired,
    /// The password is right. The log-in also needs a code.
    #[error("the log-in requires a second factor: set code to the six digits of your app, or to a recovery code")]
    SecondFactorRequired,
    /// The password is right, but the code is wrong or was already used.
    #[error("the code must be a valid code that was not used before: wait for the next one, and check the clock of your device")]
    InvalidCode,
    /// The password is right, but too many codes of the device were wrong.
    #[error("{}", second_factor_locked())]
    SecondFactorLocked,
    /// The reference in the path does not exist.
    #[error("the {} does not exist", .0.word())]
    Unknown(ResourceKind),
    /// Fields or references in a body are invalid.
    #[error("{0}")]
    Invalid(Violations),
    /// Another resource already has the value.
    #[error("another {} already has this {field}", .thing.word())]
    AlreadyExists {
        /// The kind of the resource.
        thing: ResourceKind,
        /// The field with the value.
        field: &'static str,
    },
    /// The event matches no contract.
    #[error(transparent)]
    NoMatch(#[from] MatchRefusal),
    /// An amount is above the limit of documents.
    #[error(transparent)]
    AmountOutOfRange(#[from] AmountOutOfRange),
    /// Usage would raise a number above the maximum of a limit.
    #[error("{0}")]
    LimitReached(Box<LimitReached>),
    /// The format is invalid, or cannot map the submitted event.
    #[error("{}", reported(errors))]
    FormatFailed {
        /// The origin of the expressions.
        mapping: MappingOrigin,
        /// The errors of the expressions; never empty.
        errors: Vec<FormatError>,
    },
    /// The event that a format created is invalid.
    #[error("the usage format's output is invalid: {0}")]
    Mapped(Box<UseCaseError>),
    /// The current state forbids the operation.
    #[error("{detail}")]
    Conflict {
        /// A stable, machine-readable code.
        code: &'static str,
        /// The cause and the remedy.
        detail: String,
    },
    /// The position of a client is not of this feed.
    #[error(
        "the database was restored since position after, or had no such position: discard everything later than restored_to, \
         read the lists with updated_since={}, and continue with after={}", .0.restored_to, .0.position
    )]
    FeedRestarted(FeedRestart),
    /// The document lacks terms that its e-invoice requires.
    #[error("required terms of the e-invoice are missing: {}; see `errors`", .0.len())]
    EInvoiceIncomplete(Vec<Missing>),
    /// The idempotency key was used for another request.
    #[error(
        "this idempotency key belongs to another request: send the body of that request again, or this request under its own key"
    )]
    IdempotencyKeyReuse,
    /// The event recorded under the idempotency key has other facts. `None` if it is one of the same request.
    #[error(
        "another timestamp, usage product, quantity or label was recorded under this idempotency key: send the event with \
         on_conflict=UPDATE to correct the recorded one"
    )]
    EventChanged(Option<EventRef>),
    /// The recorded event, also one of the same request, has to get the values of this event in a transaction of its own.
    #[error("the event of this idempotency key is being updated: retry with the same key")]
    UnsettledConflict(Option<KeyConflict>),
    /// The event recorded under the idempotency key is deleted.
    #[error(
        "the event {0} of this idempotency key is deleted, and sending it again does not restore it: report the usage as another \
         record, with the key of that record, if it is to count again"
    )]
    EventDeleted(EventRef),
    /// A line of a file that is known only by the file's name and its number has other facts than before.
    #[error(
        "this line of a file of that name was imported before and said something else: change the event that it made, or give each line \
         an idempotency key of its own"
    )]
    LineChanged(Option<EventRef>),
    /// Another request with the same key is still in flight.
    #[error("a request with this idempotency key is still in progress: retry with the same key")]
    RequestInProgress,
    /// Too many requests are queued.
    #[error("too many requests are waiting: retry after the given delay")]
    Overloaded,
    /// Events that are recorded together contain rejected ones. Lists their positions and errors.
    #[error("invalid events: {}; no event is stored", .0.len())]
    EventsRefused(Vec<(EventPlace, UseCaseError)>),
    /// The result is larger than a response may be.
    #[error("{detail}")]
    TooMuch {
        /// A stable, machine-readable code.
        code: &'static str,
        /// The size and the remedy.
        detail: String,
    },
    /// A ledger invariant would be violated. The change was stopped before it was stored.
    #[error("invariant violated: {0}")]
    InvariantViolation(&'static str),
    /// A password or token could not be created.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A document could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UseCaseError {
    /// Returns a copy for another request that the same error stopped.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Self::Store(StoreError::Contended) => StoreError::Contended.into(),
            Self::Store(StoreError::Corrupt(what)) => StoreError::Corrupt(what.clone()).into(),
            Self::Store(StoreError::Unsupported(what)) => StoreError::Unsupported(what.clone()).into(),
            Self::Store(StoreError::Unavailable(reason)) => match reason.downcast_ref::<NodeUnavailable>() {
                Some(node) => StoreError::Unavailable(node.clone().into()).into(),
                None => StoreError::Unavailable(reason.to_string().into()).into(),
            },
            Self::InvariantViolation(what) => Self::InvariantViolation(what),
            other => StoreError::Unavailable(other.to_string().into()).into(),
        }
    }
}

impl From<Refusal> for UseCaseError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(violations) => Self::Invalid(violations),
            Refusal::Conflict { code, detail } => Self::Conflict { code, detail },
            Refusal::Waits { reason, detail } => Self::Conflict { code: reason.code(), detail },
            Refusal::NoMatch(refusal) => Self::NoMatch(refusal),
            Refusal::AmountOutOfRange(error) => Self::AmountOutOfRange(error),
            Refusal::LimitReached(reached) => Self::LimitReached(reached),
            Refusal::Broken(detail) => Self::Store(StoreError::Corrupt(detail)),
        }
    }
}

impl From<EInvoiceError> for UseCaseError {
    fn from(error: EInvoiceError) -> Self {
        let code = error.reason().code();
        match error {
            EInvoiceError::Incomplete(missing) => Self::EInvoiceIncomplete(missing),
            EInvoiceError::Unavailable(detail) => Self::Conflict { code, detail },
        }
    }
}

impl From<MoneyError> for UseCaseError {
    fn from(error: MoneyError) -> Self {
        Refusal::from(error).into()
    }
}

impl From<Violations> for UseCaseError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

fn reported(errors: &[FormatError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the cause and the remedy of a second factor that accepts only recovery codes.
pub(crate) fn second_factor_locked() -> String {
    format!(
        "{MAX_FAILED_CODES} wrong codes were sent with your password, so codes of your device are no longer accepted: use a \
         recovery code, or ask an owner to reset your account; then change your password, because somebody may know it"
    )
}

/// The result of a use case.
pub type UseCaseResult<T> = Result<T, UseCaseError>;

/// The error code for a reference in a body that does not exist.
pub(crate) const UNKNOWN_REFERENCE: &str = "unknown_reference";

/// Returns the violation for a reference in a body that does not exist.
pub(crate) fn unknown_reference(path: &[&str], thing: ResourceKind) -> Violations {
    Violations::one(path, UNKNOWN_REFERENCE, format!("must be the reference of an existing {}", thing.word()))
}
