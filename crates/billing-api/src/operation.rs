//! The description of an operation: method, path, required credential, request and response.

use std::fmt;

use billing_application::UseCase;
use billing_domain::access::{Permission, Scope};
use http::Method;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::dto::declare::{Body, Fieldset};
use crate::dto::schemas::{FieldSchema, Schemas};
use crate::json_view::JsonAnswer;
use crate::media_type::{PDF, XML};
use crate::problem::Problem;

/// The only version of the interface.
pub const VERSION: &str = "V0";
/// Operations below this path are versioned.
pub const VERSIONED_BELOW: &str = "/api/";
/// Health probes. Unknown query parameters are ignored here.
const PROBED_BELOW: &str = "/health/";

/// Header of the idempotency key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The credential that an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequirement {
    /// No credential.
    Nothing,
    /// No credential; a credential that is sent is the subject of the operation.
    Anything,
    /// The credential of a caller who may run the use case.
    Permission(UseCase),
}

/// The HTTP method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// Reads.
    GET,
    /// Changes data, or takes an input that does not fit a URL.
    POST,
    /// Deletes.
    DELETE,
}

impl HttpMethod {
    /// Returns the method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GET => "GET",
            Self::POST => "POST",
            Self::DELETE => "DELETE",
        }
    }

    /// Returns the method of a request.
    pub const fn method(self) -> Method {
        match self {
            Self::GET => Method::GET,
            Self::POST => Method::POST,
            Self::DELETE => Method::DELETE,
        }
    }
}

/// What sets an operation apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The operation checks a password or a code, so it has the rate limits of log-ins.
    ChecksSecret,
    /// The operation checks the credentials of a log-in.
    LogsIn,
    /// The operation is a `POST` that changes nothing. Its input does not fit a URL.
    Question,
    /// The operation previews others and has their refusals.
    PreviewsOthers,
    /// The operation changes documents and supports dry runs by its path.
    DryRun,
    /// The operation takes a file instead of JSON and can stop in the middle of it.
    TakesFile,
    /// The operation is a list with sums of amounts in headers.
    SumsAmounts,
    /// The body has the reference of an event.
    NamesEvent,
    /// The response has a secret, so it is stored encrypted, and only the sender gets it again.
    Seals,
    /// The operation evaluates expressions of the caller.
    Evaluates,
    /// The request brings one event, which the usage writer groups with others. The writer then also looks up the bearer
    /// token's key.
    Grouped,
    /// The response states what is left of limits in a header.
    StatesLeft,
    /// The response is empty (204) if a usage format skips the event.
    Skips,
}

/// An operation: one method on one path.
pub struct OperationSpec {
    /// Operation id in the OpenAPI document.
    pub id: &'static str,
    /// HTTP method.
    pub method: HttpMethod,
    /// Path with parameters in braces. A trailing slash makes no difference.
    pub path: &'static str,
    /// Required credential.
    pub needs: AuthRequirement,
    pub tag: &'static str,
    /// Description: the summary line, then further lines.
    pub does: &'static [&'static str],
    pub flags: &'static [Flag],
    pub takes: Option<RequestBodySpec>,
    pub asks: Option<QuerySpec>,
    /// The success response.
    pub answers: ResponseSpec,
    /// Error codes of conflicts specific to the operation.
    pub conflicts: &'static [&'static str],
    /// Error codes of other refusals specific to the operation.
    pub refuses: &'static [&'static str],
}

pub struct RequestBodySpec {
    pub required: bool,
    /// Schema of the JSON body.
    pub schema: fn(&mut Schemas) -> RefOr<Schema>,
    /// Other accepted media types, described as text.
    pub or: &'static [&'static str],
}

pub struct QuerySpec {
    names: fn() -> &'static [&'static str],
    pub described: fn(&mut Schemas) -> Vec<FieldSchema>,
}

/// The success response of an operation.
pub struct ResponseSpec {
    /// Schema of the JSON body; `None` if the response is never JSON.
    pub schema: Option<fn(&mut Schemas) -> RefOr<Schema>>,
    /// Other media types, described as text.
    pub or: &'static [&'static str],
    /// Description of the response.
    pub means: &'static str,
}

impl RequestBodySpec {
    pub const fn of<B: Body>(or: &'static [&'static str]) -> Self {
        Self { required: B::REQUIRED, schema: B::schema, or }
    }
}

impl QuerySpec {
    pub const fn of<P: Fieldset>() -> Self {
        Self { names: P::names, described: P::described }
    }
}

impl ResponseSpec {
    pub const fn of<A: JsonResponse>(or: &'static [&'static str], means: &'static str) -> Self {
        Self { schema: Some(A::schema), or, means }
    }

    /// Returns whether the response is always a file, which supports conditional requests.
    pub fn is_file(&self) -> bool {
        self.schema.is_none() && (self.or.contains(&PDF) || self.or.contains(&XML))
    }

    pub const fn text(or: &'static [&'static str], means: &'static str) -> Self {
        Self { schema: None, or, means }
    }
}

/// An operation of the table, with the type of its response.
pub trait Described {
    /// The response; `()` if it is never JSON.
    type Response: JsonResponse;
    /// The description.
    const SPEC: &'static OperationSpec;

    /// Returns the JSON that the operation answered with, as its response.
    fn answer(json: Value) -> AnswerOf<Self>
    where
        Self: Sized,
    {
        JsonAnswer::from(json)
    }
}

/// The JSON that an operation answers with.
pub type AnswerOf<O> = JsonAnswer<<<O as Described>::Response as JsonResponse>::Content>;

/// A type that is returned as JSON.
pub trait JsonResponse {
    /// The type that declares the fields of the JSON.
    type Content;

    /// Returns the schema of the JSON.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<T: ToSchema> JsonResponse for T {
    type Content = T;

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        schemas.refer::<T>()
    }
}

/// A JSON array of responses.
pub struct List<T>(std::marker::PhantomData<T>);

impl<T: ToSchema> JsonResponse for List<T> {
    type Content = Vec<T>;

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(schemas.refer::<T>()).into()
    }
}

/// An object, or an array of objects, whose fields are not fixed.
pub struct Free<const LIST: bool>;

impl<const LIST: bool> JsonResponse for Free<LIST> {
    type Content = Value;

    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        let object = ObjectBuilder::new().schema_type(Type::Object);
        if LIST { ArrayBuilder::new().items(object).into() } else { object.into() }
    }
}

impl PartialEq for OperationSpec {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for OperationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationSpec").field("id", &self.id).finish_non_exhaustive()
    }
}

impl OperationSpec {
    /// Returns the path with a reference in place of its parameter, if it has one.
    pub fn url(&self, reference: &str) -> String {
        // References may contain colons, which a path need not encode.
        let encoded = encoded(reference).replace("%3A", ":");
        let parts = self.path.split(['{', '}']).enumerate();
        parts.map(|(index, part)| if index == 1 { encoded.as_str() } else { part }).collect()
    }

    /// Returns the use case of an operation that requires a permission.
    ///
    /// # Errors
    /// Returns an internal error for other operations, which are never called in this way.
    pub fn use_case(&self) -> Result<UseCase, Problem> {
        match self.needs {
            AuthRequirement::Permission(use_case) => Ok(use_case),
            AuthRequirement::Nothing | AuthRequirement::Anything => Err(Problem::internal()),
        }
    }

    /// Returns whether the operation has a flag.
    pub fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns whether the operation accepts the `Version` header.
    pub fn is_versioned(&self) -> bool {
        self.path.starts_with(VERSIONED_BELOW)
    }

    /// Returns the permission that the operation requires, if it requires a credential.
    pub fn need(&self) -> Option<Permission> {
        match self.needs {
            AuthRequirement::Nothing | AuthRequirement::Anything => None,
            AuthRequirement::Permission(use_case) => Some(use_case.need()),
        }
    }

    /// Returns whether the operation changes state.
    pub fn changes_state(&self) -> bool {
        self.method != HttpMethod::GET && !self.is(Flag::Question)
    }

    /// Returns whether the operation accepts the `Idempotency-Key` header.
    pub fn takes_idempotency_key(&self) -> bool {
        self.method == HttpMethod::POST
    }

    /// Returns whether the operation runs once per `Idempotency-Key` and repeats return the first response.
    ///
    /// Log-in, log-out, read-only `POST` operations and operations on the caller's own account are excluded: repeating
    /// them duplicates nothing, and their requests and responses must not be stored.
    pub fn is_carried_out_once(&self) -> bool {
        let is_kept = |need| !matches!(need, Permission::Scope(Scope::Read) | Permission::Administrator);
        self.takes_idempotency_key() && self.need().is_some_and(is_kept)
    }

    /// Returns the allowed query parameters; `None` if unknown parameters are ignored.
    pub fn parameters(&self) -> Option<&'static [&'static str]> {
        if self.path.starts_with(PROBED_BELOW) {
            return None;
        }
        Some(self.asks.as_ref().map_or(&[], |asks| (asks.names)()))
    }
}

/// Percent-encodes a text for a path or query.
pub fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}
