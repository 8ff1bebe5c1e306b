//! Clock, identifiers, secrets, expressions, PDF output, e-invoices and requests to webhooks.

use thiserror::Error;
use uuid::Uuid;

use crate::access::{CodeSecret, PasswordHash, SecretDigest, TokenClaims};
use crate::calendar::Timestamp;
use crate::document::files::RenderedFile;
use crate::document::printout::Printout;
use crate::einvoice::Syntax;
use crate::einvoice::business_terms::BusinessTerms;
use crate::format::{FormatError, FormatMapping, MappedRecord};
use crate::party::appearance::Logo;
use crate::receivables::StatementPrintout;
use crate::refs::NotificationRef;
use crate::webhook::{AttemptOutcome, WebhookSecret, WebhookUrl};

/// A source of the current time.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns whether the current time is plausible. Documents that are issued at a wrong time cannot be taken back.
    fn is_trusted(&self) -> bool {
        true
    }
}

/// A generator of identifiers.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait IdSource: Send + Sync {
    /// Returns a version 7 UUID, greater than every earlier UUID of the same source.
    fn new_id(&self) -> Uuid;
}

/// An error of an operation on secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// The password has fewer than 12 or more than 72 bytes, or contains a NUL byte.
    #[error("a password must have 12 to 72 bytes and no NUL")]
    PasswordLength,
    /// The password is on the list of common passwords.
    #[error("this password must not be a common password")]
    CommonPassword,
    /// The token is malformed, expired, not yet valid, or not signed by this service.
    #[error("the token is not valid")]
    InvalidToken,
    /// The operating system provided no randomness, or a library failed.
    #[error("a secret could not be made: {0}")]
    Failed(String),
}

/// The result of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordCheck {
    /// The password matches the hash.
    Right,
    /// The password does not match, or no hash exists.
    Wrong,
}

/// A password hasher. Its methods are slow by design: never call them on an async worker.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a new password.
    ///
    /// # Errors
    /// Returns [`SecretError::PasswordLength`] or [`SecretError::CommonPassword`]. A password that is too long is
    /// rejected, never truncated.
    fn hash(&self, password: &str) -> Result<PasswordHash, SecretError>;

    /// Checks a password. The call takes the same time without a hash (unknown login name) as with one.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn check<'a>(&self, password: &str, hash: Option<&'a PasswordHash>) -> PasswordCheck;

    /// Returns whether a new hash of the same password would use a different work factor.
    fn is_outdated(&self, hash: &PasswordHash) -> bool;
}

/// A new API key with its password in plain text. The password is shown once and not stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The login name: 20 characters `A–Z 0–9`.
    pub api_key: String,
    /// The password: 32 random bytes in base64url.
    pub password: String,
    /// The stored digest of the password.
    pub digest: SecretDigest,
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewKey({} ***)", self.api_key)
    }
}

/// A generator of random keys. It also compares secrets that have enough entropy to need no slow hash.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait KeyMaker: Send + Sync {
    /// Generates a new API key with the operating system's random generator.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] without randomness.
    fn new_key(&self) -> Result<NewKey, SecretError>;

    /// Generates 32 random bytes in base64url, for a session, a signing secret or an initial password.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] without randomness.
    fn new_secret(&self) -> Result<String, SecretError>;

    /// Returns the SHA-256 digest of a secret.
    fn digest(&self, secret: &str) -> SecretDigest;

    /// Compares a secret with a digest in constant time. Without a digest, the call takes the same time and returns
    /// `false`.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn matches<'a>(&self, secret: &str, digest: Option<&'a SecretDigest>) -> bool;
}

/// A generator and checker of second factors: time-based one-time passwords (RFC 6238). The parameters are SHA-1, 6
/// digits and 30 seconds, which all authenticator apps support.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait CodeChecker: Send + Sync {
    /// Generates the shared secret of a device: 20 random bytes.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] without randomness.
    fn new_code_secret(&self) -> Result<CodeSecret, SecretError>;

    /// Returns a secret in base32, for manual entry into a device.
    fn spelled(&self, secret: &CodeSecret) -> String;

    /// Returns the 30-second time step of a code, counted since 1970. Returns `None` if the code matches no accepted
    /// step.
    ///
    /// Accepted steps are the current and the adjacent steps that are later than `after`. Spaces in a code are ignored.
    /// The call takes the same time for every code of 6 digits.
    fn step_of(&self, secret: &CodeSecret, code: &str, now: Timestamp, after: Option<i64>) -> Option<i64>;

    /// Generates a recovery code for a lost device: 16 random characters in groups of 4.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] without randomness.
    fn new_recovery_code(&self) -> Result<String, SecretError>;
}

/// A signer and verifier of bearer tokens.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait TokenSigner: Send + Sync {
    /// Signs claims with the newest secret.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] when the library fails.
    fn sign(&self, claims: &TokenClaims) -> Result<String, SecretError>;

    /// Verifies a token. These conditions must hold:
    /// - The token uses the one supported algorithm.
    /// - An active secret signed it.
    /// - Issuer and audience match.
    /// - Every time claim is valid at `now`, with at most 30 s leeway.
    ///
    /// # Errors
    /// Returns [`SecretError::InvalidToken`] for every defect.
    fn verify(&self, token: &str, now: Timestamp) -> Result<TokenClaims, SecretError>;
}

/// Authenticated encryption of texts. Only a holder of the secret can decrypt them.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Sealer: Send + Sync {
    /// Encrypts a text with a secret of at least 32 random bytes and binds it to its place. The same text gives different
    /// bytes each time.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] without randomness or when the library fails.
    fn seal(&self, secret: &str, place: &str, text: &[u8]) -> Result<Vec<u8>, SecretError>;

    /// Decrypts a text. Returns `None` for another secret, another place or changed bytes.
    fn open(&self, secret: &str, place: &str, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// An evaluator of usage formats. Evaluation is deterministic: it uses no clock, no randomness and no state of earlier
/// events.
///
/// Hostile expressions and events are rejected within 50 ms and bounded memory. Numbers are exact decimals throughout.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventMapper: Send + Sync {
    /// Parses every expression of a mapping without evaluating it.
    ///
    /// # Errors
    /// Returns an error for each invalid expression, in the mapping's order.
    fn check(&self, mapping: &FormatMapping) -> Result<(), Vec<FormatError>>;

    /// Maps a record. `event` is the text of a JSON object without duplicate keys. The events of its elements have different keys
    /// if the mapping gives them keys.
    ///
    /// # Errors
    /// Returns the first field that has no valid value, with the reason. An error of a single element is in the result.
    fn map(&self, mapping: &FormatMapping, event: &str) -> Result<MappedRecord, FormatError>;
}

/// An error of document printing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrintError {
    /// No font contains these characters of the document, and its entity is strict.
    #[error("no font has the characters “{0}”")]
    MissingGlyph(String),
    /// The fonts are unreadable, or a library failed.
    #[error("the document could not be printed: {0}")]
    Failed(String),
    /// Printing ended before the document was complete. Another attempt can succeed.
    #[error(transparent)]
    Stopped(#[from] PrintStop),
}

/// The reason why printing ended before the document was complete.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrintStop {
    /// Printing reached its time limit.
    #[error("printing took longer than {seconds} s")]
    TimedOut {
        /// The time limit.
        seconds: u64,
    },
    /// Printing reached its limit of memory.
    #[error("printing needed more than {mib} MiB of memory")]
    OutOfMemory {
        /// The limit of memory.
        mib: u32,
    },
    /// The process that printed the document ended.
    #[error("the process that printed the document ended: {0}")]
    ProcessEnded(String),
    /// No process that prints documents could be started.
    #[error("the process that prints documents could not be started: {0}")]
    NotStarted(String),
    /// The program that prints documents is missing or of another version.
    #[error("the program that prints documents is not ready: {0}")]
    NotReady(String),
}

/// A printer of documents as PDF. Printing is deterministic: it uses no clock, no randomness and no state of earlier
/// documents.
///
/// Printing takes time and memory: never call it on an async worker, and limit concurrent calls.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait DocumentPrinter: Send + Sync {
    /// Renders a PDF file. A character that no font has is a box.
    ///
    /// # Errors
    /// Returns a [`PrintError`] when the document cannot be printed.
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError>;

    /// Returns the characters of a document that no font has, each once, and at most 50. Returns none if the fonts cannot be read.
    fn missing_glyphs(&self, printout: &Printout) -> String;

    /// Renders a customer's statements as a PDF file.
    ///
    /// # Errors
    /// Returns a [`PrintError`] when the statements cannot be printed.
    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError>;

    /// Prints a logo once, with less time and memory than a document may use. Returns whether that succeeds.
    ///
    /// # Errors
    /// Returns [`PrintError::Stopped`] if printing ended for a reason that isn't the logo.
    fn can_print_logo(&self, logo: &Logo) -> Result<bool, PrintError>;
}

/// A writer of e-invoices as XML. Writing is deterministic: the same terms give the same bytes.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EInvoiceWriter: Send + Sync {
    /// Writes business terms in a syntax.
    ///
    /// # Errors
    /// Returns [`PrintError::Failed`] if a library fails.
    fn write(&self, terms: &BusinessTerms, syntax: Syntax) -> Result<RenderedFile, PrintError>;
}

/// Why an endpoint may not have a URL. The reasons are fixed sentences, so they tell no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WebhookUrlRefusal {
    /// The URL cannot be requested, or the settings of the server do not permit its scheme or port.
    #[error("{0}")]
    Invalid(&'static str),
    /// The host is an address to which requests may not go.
    #[error("{0}")]
    NotPublic(&'static str),
}

/// A request to an endpoint.
#[derive(Clone, Debug)]
pub struct WebhookRequest<'r> {
    /// The URL.
    pub url: &'r WebhookUrl,
    /// The reference of the notification, which is the same at every attempt.
    pub id: NotificationRef,
    /// The time of the attempt.
    pub at: Timestamp,
    /// The body, as it is signed and sent.
    pub body: &'r str,
    /// The secrets that sign, the newest first.
    pub secrets: &'r [WebhookSecret],
}

/// The result of a request to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookResponse {
    /// The status of the response, if one arrived.
    pub status: Option<u16>,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// The time after which the endpoint asks to be called again, in seconds.
    pub retry_after_seconds: Option<u32>,
    /// The time that the request took, in milliseconds.
    pub millis: u32,
    /// The beginning of the response's body, or the reason why no response arrived, which tells no address. It has at most
    /// [`MAX_EXCERPT_BYTES`](crate::webhook::MAX_EXCERPT_BYTES) and no control characters.
    pub excerpt: Option<String>,
}

/// The URLs to which the settings of the server permit requests.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait WebhookUrlPolicy: Send + Sync {
    /// Checks that requests to a URL are permitted, as far as that is known without looking up its host.
    ///
    /// # Errors
    /// Returns the reason why they are not.
    fn check(&self, url: &WebhookUrl) -> Result<(), WebhookUrlRefusal>;
}

/// A sender of signed requests to webhook endpoints (Standard Webhooks 1.0.0).
///
/// A request ends within 15 seconds, follows no redirects, and connects only to addresses that the settings of the server permit.
/// Use cases have no sender, because their transactions and permits must not wait for foreign hosts.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait WebhookSender: Send + Sync {
    /// Sends a request, and waits for the response.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn send<'r>(&self, request: &WebhookRequest<'r>) -> WebhookResponse;
}
