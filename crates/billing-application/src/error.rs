//! The one error of all use cases: what a caller can be told, and what only operators should see.

use billing_domain::access::{Permission, Role};
use billing_domain::format::FormatError;
use billing_domain::money::{AmountOutOfRange, MoneyError};
use billing_domain::ports::{PrintError, SecretError, StoreError};
pub use billing_domain::refs::ResourceKind;
use billing_domain::refusal::MatchRefusal;
use billing_domain::refusal::Refusal;
use billing_domain::violation::Violations;
use thiserror::Error;

/// Where a mapping comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingOrigin {
    /// It is part of the request.
    Submitted,
    /// It is a stored format's.
    Stored,
}

/// Why a use case didn't do what it was asked. Nothing is stored then.
#[derive(Debug, Error)]
pub enum UseCaseError {
    /// Name and secret don't belong together, whatever of them is wrong.
    #[error("the credentials are not valid")]
    InvalidCredentials,
    /// Whom we are talking to isn't known: no credential, or one that works no more.
    #[error("a valid credential is required")]
    Unauthenticated,
    /// They are known, and haven't what it needs.
    #[error("this needs {0}")]
    Forbidden(Permission),
    /// They are an administrator whose role may not do it.
    #[error("this takes the role {needed}, or one that may do more; yours is {role}")]
    InsufficientRole {
        /// The least that may.
        needed: Role,
        /// Theirs.
        role: Role,
    },
    /// The password is right, and was given to them by another: their own is wanted with it.
    #[error("this password works once: log in with it and with new_password, your own of 12 to 72 bytes")]
    NewPasswordRequired,
    /// The password is right, and a code is wanted with it.
    #[error("this takes a code, too: log in with code, of six digits from your app, or one of your recovery codes")]
    SecondFactorRequired,
    /// The password is right, and the code isn't, or was used already.
    #[error("the code is not valid, or was used already: wait for the next one, and check the clock of your device")]
    InvalidCode,
    /// The reference in the path names nothing.
    #[error("there is no such {}", .0.word())]
    Unknown(ResourceKind),
    /// Fields, or references in a body, that can't be taken.
    #[error("{0}")]
    Invalid(Violations),
    /// Another has that value already.
    #[error("another {} has this {field} already", .thing.word())]
    AlreadyExists {
        /// Of what there is another.
        thing: ResourceKind,
        /// Which field they would share.
        field: &'static str,
    },
    /// The event lands nowhere.
    #[error(transparent)]
    NoMatch(#[from] MatchRefusal),
    /// An amount that exact decimals can't hold.
    #[error(transparent)]
    AmountOutOfRange(#[from] AmountOutOfRange),
    /// A format that can't be used, or not on the submitted event.
    #[error("{}", told(errors))]
    FormatFailed {
        /// Where the expressions stand.
        mapping: MappingOrigin,
        /// Each that fails; never empty.
        errors: Vec<FormatError>,
    },
    /// What a format made of the submitted event is refused.
    #[error("what the format gives is refused: {0}")]
    Mapped(Box<UseCaseError>),
    /// The state of things forbids it.
    #[error("{detail}")]
    Conflict {
        /// A stable word for machines.
        code: &'static str,
        /// What stands in the way, and what would help.
        detail: String,
    },
    /// The idempotency key was used for another request.
    #[error("this idempotency key was used for another request: send the same body again, or use a new key")]
    IdempotencyKeyReuse,
    /// A request under the same key isn't done yet.
    #[error("a request under this idempotency key is still being carried out: send it again shortly, under the same key")]
    RequestInProgress,
    /// More waits than will be done in time.
    #[error("too many requests are waiting; try again shortly")]
    Overloaded,
    /// Of events that are taken all or not at all, some are refused: each by its index, and why.
    #[error("{} of the events are refused, so none is stored", .0.len())]
    EventsRefused(Vec<(usize, UseCaseError)>),
    /// What was asked for is more than one answer holds.
    #[error("{detail}")]
    TooMuch {
        /// A stable word for machines.
        code: &'static str,
        /// How much it is, and what would help.
        detail: String,
    },
    /// A total that isn't the sum of what it totals: stopped before it was stored.
    #[error("an invariant would be broken: {0}")]
    InvariantViolation(&'static str),
    /// A password or token that couldn't be made.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A document that couldn't be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UseCaseError {
    /// What stopped several, for another of them.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Self::Store(StoreError::Contended) => StoreError::Contended.into(),
            Self::Store(StoreError::Corrupt(what)) => StoreError::Corrupt(what.clone()).into(),
            Self::Store(StoreError::Unavailable(reason)) => StoreError::Unavailable(reason.to_string().into()).into(),
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
            Refusal::NoMatch(refusal) => Self::NoMatch(refusal),
            Refusal::AmountOutOfRange(error) => Self::AmountOutOfRange(error),
            Refusal::Broken(detail) => Self::Store(StoreError::Corrupt(detail)),
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

fn told(errors: &[FormatError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a use case answers.
pub type UseCaseResult<T> = Result<T, UseCaseError>;

/// The code of a reference in a body that names nothing.
pub(crate) const UNKNOWN_REFERENCE: &str = "unknown_reference";

/// A violation for a reference in a body that names nothing.
pub(crate) fn unknown_reference(path: &[&str], thing: ResourceKind) -> Violations {
    Violations::one(path, UNKNOWN_REFERENCE, format!("must be the reference of an existing {}", thing.word()))
}
