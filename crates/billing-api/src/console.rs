//! What the console asks of a transport, and what a transport shows of the console. Neither knows the other.

use std::any::Any;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::rc::Rc;

use billing_domain::access::Principal;
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::idempotency::IdempotencyKey;
use billing_import::FileKind;
use http::header::{AsHeaderName, HeaderMap};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::dto::log_in::LogIn;
use crate::operation::OperationSpec;
use crate::problem::Problem;

/// The path of the console.
pub const ROOT: &str = "/console";

/// A future that stays on its thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Names and values of a form.
pub type FormData = Vec<(String, String)>;

/// Parses a query string like a form. An unreadable query is treated as empty.
pub fn form_data(query: &str) -> FormData {
    serde_urlencoded::from_str(query).unwrap_or_default()
}

/// A request for a page.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// `POST` for a submitted form, otherwise `GET`.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The segments of the path below [`ROOT`], decoded.
    pub place: Vec<String>,
    /// The query string.
    pub query: String,
    /// Whether a page of another origin sent the request.
    pub is_foreign: bool,
}

/// An administrator with a session.
#[derive(Clone, Debug)]
pub struct ConsoleUser {
    /// The administrator as the principal of requests.
    pub principal: Principal,
    /// The e-mail address.
    pub email: String,
    /// The time zone of the default entity, in which pages show times.
    pub zone: TimeZone,
}

/// A call of an operation.
#[derive(Clone, Debug)]
pub struct ApiCall<'c> {
    /// The operation.
    pub operation: &'static OperationSpec,
    /// The reference in the path; empty if the path has none.
    pub reference: &'c str,
    /// The query string; empty if there is none.
    pub query: &'c str,
    /// The JSON body.
    pub body: Option<Value>,
    /// The idempotency key.
    pub key: Option<IdempotencyKey>,
    /// Whether a change with warnings is carried out. Otherwise it is refused: 409 [`WARNINGS_NOT_ACCEPTED`].
    pub accepts_warnings: bool,
}

/// The code of a call that was refused because of its warnings.
pub const WARNINGS_NOT_ACCEPTED: &str = "warnings_not_accepted";

/// The answer of an operation.
#[derive(Clone, Debug)]
pub struct ApiAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl ApiAnswer {
    /// Returns the text of a header.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the JSON of the body, with all digits of numbers; null if the response has no body.
    ///
    /// # Errors
    /// Returns an internal error if the body is no JSON.
    pub fn json(&self) -> Result<Value, Problem> {
        if self.status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|_| Problem::internal())
    }
}

/// A form with files, as a browser sends it.
#[derive(Clone, Debug, Default)]
pub struct Upload(pub Vec<UploadField>);

/// A field of a form with files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadField {
    /// The name of the field.
    pub name: String,
    /// The name of the file, if the field is one.
    pub file_name: Option<String>,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Upload {
    /// Returns a field's text; `None` if the field is missing or not text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|field| field.name == name)?;
        std::str::from_utf8(&field.bytes).ok()
    }

    /// Returns the text of all fields with the name.
    pub fn texts<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.iter().filter(move |field| field.name == name).filter_map(|field| std::str::from_utf8(&field.bytes).ok())
    }

    /// Returns name and content of an uploaded file.
    pub fn file(&self, name: &str) -> Option<(&str, &[u8])> {
        let field = self.0.iter().find(|field| field.name == name)?;
        let file_name = field.file_name.as_deref().filter(|file_name| !file_name.is_empty())?;
        Some((file_name, &field.bytes))
    }
}

/// A file of usage to import.
#[derive(Clone, Debug)]
pub struct UsageUpload {
    /// The media type.
    pub media_type: &'static str,
    /// The kind of the file.
    pub kind: FileKind,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A file that a page writes while it is sent.
pub struct PageFile {
    /// The media type.
    pub media_type: &'static str,
    /// The name under which browsers save the file.
    pub name: String,
    /// Writes the file. It ends with a problem if nobody reads it any more, so that nobody takes a part for the whole.
    pub write: WritePageFile,
}

/// Writes a file, and can ask whether somebody still reads it.
pub type WritePageFile =
    Box<dyn for<'w> FnOnce(&'w mut (dyn Write + Send), &'w dyn Fn() -> bool) -> Later<'w, Result<(), Problem>>>;

/// A response that a gateway made of a [`PageFile`].
pub struct Streamed(pub Box<dyn Any>);

/// What the console may ask of the transport, for one request.
pub trait Gateway {
    /// Returns the current time of the billing clock.
    fn now(&self) -> Timestamp;

    /// Returns the instant of a sandbox's clock, or `None` on a live server.
    fn sandbox_now(&self) -> Option<Timestamp>;

    /// Returns the current time of the machine's clock, for what a log-in may take.
    fn machine_now(&self) -> Timestamp;

    /// Returns the base URL of the service.
    fn service(&self) -> String;

    /// Returns the id of the request.
    fn request_id(&self) -> String;

    /// Authenticates the request.
    ///
    /// # Errors
    /// Returns a problem without a live session.
    fn user(&self) -> Later<'_, Result<ConsoleUser, Problem>>;

    /// Reads the submitted form. The form of a stranger is short.
    ///
    /// # Errors
    /// Returns a problem for a form that is unreadable, too large or too slow.
    fn form(&self, is_stranger: bool) -> Later<'_, Result<FormData, Problem>>;

    /// Reads the submitted form with files.
    ///
    /// # Errors
    /// Returns the problems of [`form`](Self::form).
    fn upload(&self) -> Later<'_, Result<Upload, Problem>>;

    /// Answers a call of the visitor.
    ///
    /// # Errors
    /// Returns the refusal of the operation.
    fn answer<'g>(&'g self, call: ApiCall<'g>) -> Later<'g, Result<ApiAnswer, Problem>>;

    /// Imports a file of usage for the visitor. The parameters are those of the operation.
    ///
    /// # Errors
    /// Returns the refusal of the operation.
    fn import<'g>(&'g self, query: &'g str, file: UsageUpload) -> Later<'g, Result<ApiAnswer, Problem>>;

    /// Logs an administrator in, within the limits of attempts.
    ///
    /// # Errors
    /// Returns the refusal of the log-in.
    fn log_in(&self, credential: LogIn) -> Later<'_, Result<(), Problem>>;

    /// Ends the session.
    fn log_out(&self);

    /// Encrypts text that a form carries. It is readable with the same context alone.
    fn seal(&self, context: &str, text: &str) -> Option<Vec<u8>>;

    /// Decrypts what [`seal`](Self::seal) returned.
    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>>;

    /// Writes a file while it is sent, in the turn of the visitor's organization.
    ///
    /// # Errors
    /// Returns the problem that occurred before the first bytes.
    fn stream(&self, file: PageFile) -> Later<'_, Result<Streamed, Problem>>;
}

/// A style sheet or script.
#[derive(Clone, Copy, Debug)]
pub struct SentAsset {
    /// The media type.
    pub media_type: &'static str,
    /// The content.
    pub content: &'static str,
    /// Whether the address names the content, so that it never changes.
    pub is_of_content: bool,
}

/// What a transport shows for a request.
pub enum PageAnswer {
    /// A page.
    Page {
        /// The HTML.
        html: String,
        /// The problem that the page shows.
        problem: Option<Problem>,
        /// Whether browsers load the page again after some seconds.
        refreshes: bool,
    },
    /// A part of a page, in a frame.
    Frame {
        /// The HTML.
        html: String,
        /// The problem that the part shows.
        problem: Option<Problem>,
    },
    /// Another page.
    Redirect(String),
    /// JSON for the script of a page.
    Data(String),
    /// The style sheet or the script.
    Asset(SentAsset),
    /// The answer of an operation, as it is.
    Api(ApiAnswer),
    /// A file.
    File(Streamed),
}

/// A page about the server and its operations.
pub enum PublicPage {
    /// A page that is the same in each response of a server, with its address.
    Shared {
        /// The address.
        address: String,
        /// Renders the page.
        html: Box<dyn FnOnce() -> String>,
    },
    /// A page that depends on the request.
    Own(String),
    /// A style sheet or script.
    Asset(SentAsset),
}

/// Pages for people: the console for administrators, and the reference of the operations for everybody.
pub trait Console: Send + Sync {
    /// Returns the page on a path that everybody may read. `service` is the base URL of the service.
    fn public_page(&self, path: &str, query: &str, service: &str) -> Option<PublicPage>;

    /// Answers a request for a page of the console.
    fn answer<'c>(&'c self, request: PageRequest, gateway: Rc<dyn Gateway>) -> Later<'c, PageAnswer>;
}
