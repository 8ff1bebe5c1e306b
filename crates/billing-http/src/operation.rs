//! An operation: one method on one path, who may, what it takes and what it answers.

use std::fmt;

use actix_web::Route;
use actix_web::http::Method;
use billing_application::UseCase;
use billing_domain::access::{Permission, Scope};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

use crate::dto::declare::{Body, Fieldset};
use crate::dto::schemas::{FieldSchema, Schemas};

/// The one version of the interface.
pub const VERSION: &str = "V0";
/// Operations below this path have versions.
pub const VERSIONED_BELOW: &str = "/api/";
/// What probes ask: whatever they add to a query is passed over.
const PROBED_BELOW: &str = "/health/";

/// The media type of a document as a file.
pub(crate) const PDF: &str = "application/pdf";

/// The header that names a request, so that its repeats are known.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What a caller must show to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequirement {
    /// Nothing.
    Nothing,
    /// Nothing; a credential that is shown is what the operation is about.
    Anything,
    /// The credential of somebody who may ask for this.
    Permission(UseCase),
}

/// Operations that are posted because what they ask doesn't fit a URL. They change nothing, as a GET does.
pub(crate) const QUESTIONS: [&str; 2] = ["dry_run", "test_usage_format"];

/// Operations that are told a password or a code again: they may be tried as often as a log-in may.
pub(crate) const TRIES: [&str; 3] = ["change_password", "confirm_second_factor", "remove_second_factor"];

/// One method on one path.
pub struct Operation {
    /// Its name in the OpenAPI document.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces. With or without a slash at its end makes no difference.
    pub path: &'static str,
    /// Who may.
    pub needs: AuthRequirement,
    /// The part of the interface it belongs to.
    pub(crate) tag: &'static str,
    /// Whether it brings one event, which the writer of usage takes with others. Whoever shows a bearer token is looked up with
    /// it then.
    pub(crate) is_grouped: bool,
    /// What it does: the first line, then more.
    pub(crate) does: &'static [&'static str],
    /// What answers it.
    pub(crate) handler: fn() -> Route,
    /// What its body is.
    pub(crate) takes: Option<RequestBodySpec>,
    /// The parameters of its query.
    pub(crate) asks: Option<QuerySpec>,
    /// What a success is.
    pub(crate) answers: ResponseSpec,
    /// Codes of conflicts that are its own.
    pub(crate) conflicts: &'static [&'static str],
    /// Codes of refusals that are its own.
    pub(crate) refuses: &'static [&'static str],
}

/// A request body.
pub(crate) struct RequestBodySpec {
    /// Whether it has to be there.
    pub(crate) required: bool,
    /// As JSON.
    pub(crate) schema: fn(&mut Schemas) -> RefOr<Schema>,
    /// Other media types, as text.
    pub(crate) or: &'static [&'static str],
}

/// The parameters of a query.
pub(crate) struct QuerySpec {
    names: fn() -> &'static [&'static str],
    pub(crate) described: fn(&mut Schemas) -> Vec<FieldSchema>,
}

/// What a success is.
pub(crate) struct ResponseSpec {
    /// As JSON; `None` where it is never JSON.
    pub(crate) schema: Option<fn(&mut Schemas) -> RefOr<Schema>>,
    /// Other media types, as text.
    pub(crate) or: &'static [&'static str],
    /// What it means.
    pub(crate) means: &'static str,
}

impl RequestBodySpec {
    pub(crate) const fn of<B: Body>(or: &'static [&'static str]) -> Self {
        Self { required: B::REQUIRED, schema: B::schema, or }
    }
}

impl QuerySpec {
    pub(crate) const fn of<P: Fieldset>() -> Self {
        Self { names: P::names, described: P::described }
    }
}

impl ResponseSpec {
    pub(crate) const fn of<A: JsonResponse>(or: &'static [&'static str], means: &'static str) -> Self {
        Self { schema: Some(A::schema), or, means }
    }

    /// Whether it is a file, which who has it needn't be sent again.
    pub(crate) fn is_file(&self) -> bool {
        self.or.contains(&PDF)
    }

    pub(crate) const fn text(or: &'static [&'static str], means: &'static str) -> Self {
        Self { schema: None, or, means }
    }
}

/// What is answered as JSON.
pub(crate) trait JsonResponse {
    /// Its schema.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<T: ToSchema> JsonResponse for T {
    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        schemas.refer::<T>()
    }
}

/// An array of answers.
pub(crate) struct List<T>(std::marker::PhantomData<T>);

impl<T: ToSchema> JsonResponse for List<T> {
    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(schemas.refer::<T>()).into()
    }
}

/// An object, or an array of objects, whose fields aren't known beforehand.
pub(crate) struct Free<const LIST: bool>;

impl<const LIST: bool> JsonResponse for Free<LIST> {
    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        let object = ObjectBuilder::new().schema_type(Type::Object);
        if LIST { ArrayBuilder::new().items(object).into() } else { object.into() }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Operation {
    /// Whether it takes the header `Version`.
    pub fn is_versioned(&self) -> bool {
        self.path.starts_with(VERSIONED_BELOW)
    }

    /// What a caller must have, where it takes a credential.
    pub fn need(&self) -> Option<Permission> {
        match self.needs {
            AuthRequirement::Nothing | AuthRequirement::Anything => None,
            AuthRequirement::Permission(use_case) => Some(use_case.need()),
        }
    }

    /// Whether it changes something.
    pub fn changes_state(&self) -> bool {
        self.method != Method::GET && !QUESTIONS.contains(&self.id)
    }

    /// Whether it takes the header `Idempotency-Key`.
    pub fn takes_idempotency_key(&self) -> bool {
        self.method == Method::POST
    }

    /// Whether it is carried out once per `Idempotency-Key`, and repeats are given the first answer. Logging in and out, questions
    /// and what is done to one's own account aren't: a repeat doubles nothing, and nothing is kept of what is said and answered.
    pub fn is_carried_out_once(&self) -> bool {
        let is_kept = |need| !matches!(need, Permission::Scope(Scope::Read) | Permission::Administrator);
        self.takes_idempotency_key() && self.need().is_some_and(is_kept)
    }

    /// The parameters that its query may have; `None` where nobody minds what else it has.
    pub fn parameters(&self) -> Option<&'static [&'static str]> {
        if self.path.starts_with(PROBED_BELOW) {
            return None;
        }
        Some(self.asks.as_ref().map_or(&[], |asks| (asks.names)()))
    }
}
