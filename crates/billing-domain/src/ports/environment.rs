//! Time, identifiers, secrets, expressions and paper.

use thiserror::Error;
use uuid::Uuid;

use crate::access::{CodeSecret, PasswordHash, SecretDigest, TokenClaims};
use crate::calendar::Timestamp;
use crate::document::files::RenderedFile;
use crate::document::printout::Printout;
use crate::format::{FormatError, FormatMapping, MappedEvent};

/// Tells the time.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Clock: Send + Sync {
    /// The current instant.
    fn now(&self) -> Timestamp;
}

/// Makes identifiers.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait IdSource: Send + Sync {
    /// A UUID of version 7, greater than every one made before by the same source.
    fn new_id(&self) -> Uuid;
}

/// A secret operation that couldn't be done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// The password has fewer than 12 or more than 72 bytes, or a NUL.
    #[error("a password must have 12 to 72 bytes and no NUL")]
    PasswordLength,
    /// The password is on the list of common ones.
    #[error("this password is among the most common ones; choose another")]
    CommonPassword,
    /// The token is malformed, expired, not yet valid, or not signed by us.
    #[error("the token is not valid")]
    InvalidToken,
    /// The operating system gave no randomness, or a library failed.
    #[error("a secret could not be made: {0}")]
    Failed(String),
}

/// Whether a password was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordCheck {
    /// It was.
    Right,
    /// It wasn't, or there was nothing to compare it with.
    Wrong,
}

/// Hashes and checks people's passwords. Slow by intention: never call it on an async worker.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a new password.
    ///
    /// # Errors
    /// [`SecretError::PasswordLength`] and [`SecretError::CommonPassword`]: a longer one is refused, never cut.
    fn hash(&self, password: &str) -> Result<PasswordHash, SecretError>;

    /// Checks a password. Takes the same time without a hash (an unknown log-in name) as with one.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn check<'a>(&self, password: &str, hash: Option<&'a PasswordHash>) -> PasswordCheck;

    /// Whether a new hash of the same password would take more or less work than this one.
    fn is_outdated(&self, hash: &PasswordHash) -> bool;
}

/// A freshly made key, before it is shown and forgotten.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The log-in name: 20 characters `A–Z 0–9`.
    pub api_key: String,
    /// 32 random bytes in base64url.
    pub password: String,
    /// What is stored of the password.
    pub digest: SecretDigest,
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewKey({} ***)", self.api_key)
    }
}

/// Makes random keys and compares secrets that are random enough to need no slow hash.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait KeyMaker: Send + Sync {
    /// A new API key, from the operating system's generator.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without randomness.
    fn new_key(&self) -> Result<NewKey, SecretError>;

    /// 32 random bytes for a session, a signing secret or a first password, in base64url.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without randomness.
    fn new_secret(&self) -> Result<String, SecretError>;

    /// SHA-256 of a secret.
    fn digest(&self, secret: &str) -> SecretDigest;

    /// Compares in constant time; without a digest it takes the same time and answers `false`.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn matches<'a>(&self, secret: &str, digest: Option<&'a SecretDigest>) -> bool;
}

/// Makes second factors, and checks the codes that devices make of them and the time: RFC 6238 with SHA-1, 6 digits and 30 seconds,
/// which is what every app does.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait CodeChecker: Send + Sync {
    /// What a device makes codes of: 20 random bytes.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without randomness.
    fn new_code_secret(&self) -> Result<CodeSecret, SecretError>;

    /// A secret as people type it into a device: base32.
    fn spelled(&self, secret: &CodeSecret) -> String;

    /// Of which 30 seconds a code is, counted since 1970: those of the instant or those beside them, and later than `after`.
    /// Spaces in a code don't count. Takes the same time for every code of 6 digits.
    fn step_of(&self, secret: &CodeSecret, code: &str, now: Timestamp, after: Option<i64>) -> Option<i64>;

    /// A code for who has lost the device: 16 random characters in groups of 4.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without randomness.
    fn new_recovery_code(&self) -> Result<String, SecretError>;
}

/// Signs and checks bearer tokens.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait TokenSigner: Send + Sync {
    /// Signs claims with the newest secret.
    ///
    /// # Errors
    /// [`SecretError::Failed`] when the library does.
    fn sign(&self, claims: &TokenClaims) -> Result<String, SecretError>;

    /// Checks a token: one algorithm, a signature by an active secret, issuer, audience, and every time
    /// claim against `now` with at most 30 s leeway.
    ///
    /// # Errors
    /// [`SecretError::InvalidToken`], whatever is wrong.
    fn verify(&self, token: &str, now: Timestamp) -> Result<TokenClaims, SecretError>;
}

/// Seals texts that only who has a secret may read again.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Sealer: Send + Sync {
    /// Encrypts a text with a secret of at least 32 random bytes, and binds it to its place. The same text gives other
    /// bytes each time.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without randomness, or when the library fails.
    fn seal(&self, secret: &str, place: &str, text: &[u8]) -> Result<Vec<u8>, SecretError>;

    /// The text; `None` with another secret, in another place, and for bytes that were changed.
    fn open(&self, secret: &str, place: &str, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// Evaluates usage formats. The same mapping and event give the same answer, everywhere and at any time: no
/// clock, no randomness, no state of earlier events. Hostile expressions and events are refused within 50 ms
/// and bounded memory; numbers are exact decimals throughout.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventMapper: Send + Sync {
    /// Reads every expression of a mapping without evaluating it.
    ///
    /// # Errors
    /// Every expression that can't be read, in the mapping's order.
    fn check(&self, mapping: &FormatMapping) -> Result<(), Vec<FormatError>>;

    /// Maps an event, given as the text of a JSON object whose keys are each there once.
    ///
    /// # Errors
    /// The first field that can't be given, and why.
    fn map(&self, mapping: &FormatMapping, event: &str) -> Result<MappedEvent, FormatError>;
}

/// Why a document can't be printed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrintError {
    /// No font has these characters of what it says.
    #[error("no font has the characters “{0}”")]
    MissingGlyph(String),
    /// The fonts can't be read, or a library failed.
    #[error("the document could not be printed: {0}")]
    Failed(String),
}

/// Prints documents as PDF. The same printout gives the same bytes, everywhere and at any time: no clock, no randomness, no state
/// of earlier documents. It takes some time and memory: never call it on an async worker, and not often at once.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait DocumentPrinter: Send + Sync {
    /// A PDF file.
    ///
    /// # Errors
    /// [`PrintError`].
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError>;
}
