//! How operations run. An operation is a type with the types of its request and its result. [`open`] reads a request into a
//! [`Job`], which a transport runs: it has no type of the operation.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use billing_application::documents::SourceRef;
use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::{Cx, Services};
use billing_domain::access::Principal;
use billing_domain::page::Page;
use billing_domain::refs::{
    AdminRef, ApiKeyRef, ApplicationRef, BankAccountRef, BillingRunRef, ChargeRef, ContractRef, CreditGrantRef, CustomerRef,
    DocumentRef, EndpointRef, EntityRef, EventRef, FormatRef, HoldRef, ImportRef, LimitRef, NotificationRef, PaymentRef,
    PricingRef, SessionRef, UsageProductRef,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::dto::declare::{Fieldset, RequestBody};
use crate::dto::schemas::Schemas;
use crate::dto::wire::written;
use crate::operation::{JsonResponse, List};
use crate::problem::Problem;
use crate::query::updates::LastChange;
use crate::query::{PageParams, Query};
use crate::stored_response::Success;

/// An operation that a use case carries out in one transaction.
pub trait Operation: Sized + Send + Sync + 'static {
    /// The reference in the path, or `()`.
    type Path: PathRef;
    /// The query parameters, or `()`.
    type Query: QueryParams;
    /// The body, or `()`.
    type Body: RequestBody<Self::Path>;
    /// The result of the use case.
    type View: Send + 'static;
    /// How the result is rendered.
    type Answer: Answer<Self>;
    /// The use case, and how it runs.
    const WAY: Way<Self>;
}

/// What a transport received.
#[derive(Clone, Copy, Debug)]
pub struct Received<'r> {
    /// The reference in the path; empty if the path has none.
    pub reference: &'r str,
    /// The query.
    pub query: &'r Query,
    /// The JSON body, if one was sent.
    pub body: Option<&'r Value>,
    /// The secret of the session that sent the request, if one did.
    pub session: Option<&'r str>,
}

/// A request to an operation. A use case may run several times with it.
pub struct Request<O: Operation> {
    /// The reference in the path.
    pub path: O::Path,
    /// The query parameters.
    pub query: O::Query,
    /// The body.
    pub body: <O::Body as RequestBody<O::Path>>::Read,
    /// The query as it was sent, for links to other pages.
    sent: Query,
    session: Option<String>,
}

impl<O: Operation> Request<O> {
    /// Returns the secret of the session that sent the request.
    ///
    /// # Errors
    /// Returns an internal error without a session, which the permission of an operation for administrators rules out.
    pub fn session(&self) -> UseCaseResult<&str> {
        self.session.as_deref().ok_or(UseCaseError::InvariantViolation("an administrator without a session"))
    }
}

/// A use case of an operation.
pub type UseCaseOf<O> = fn(&mut Cx<'_>, &Request<O>) -> UseCaseResult<<O as Operation>::View>;

/// How an operation runs.
pub enum Way<O: Operation> {
    /// Reads.
    Read(UseCaseOf<O>),
    /// Reads, and may read all events. Scans have their own limit, so that they leave connections to others.
    Scan(UseCaseOf<O>),
    /// Changes data, once per idempotency key, or shows the effects in a dry run.
    Write(UseCaseOf<O>),
    /// Works slowly between transactions of its own.
    Services(fn(&Services, &Principal, &Request<O>) -> UseCaseResult<O::View>),
}

/// The result of an operation, whose type only the operation knows.
pub type AnyView = Box<dyn Any + Send>;

/// A use case in one transaction, which may run several times.
pub type TransactionWork = Box<dyn FnMut(&mut Cx<'_>) -> UseCaseResult<AnyView> + Send>;

/// A use case with transactions of its own.
pub type ServicesWork = Box<dyn FnOnce(&Services, &Principal) -> UseCaseResult<AnyView> + Send>;

/// The use case of a job, and how it runs: see [`Way`].
pub enum JobWork {
    /// Reads.
    Read(TransactionWork),
    /// Reads, and may read all events.
    Scan(TransactionWork),
    /// Changes data.
    Write(TransactionWork),
    /// Works slowly between transactions of its own.
    Services(ServicesWork),
}

/// Renders the result of a job.
pub type JobRender = Box<dyn Fn(&AnyView) -> Success + Send>;

/// A request that was read. A transport runs the use case and renders its result.
pub struct Job {
    /// The use case.
    pub work: JobWork,
    /// Renders the result.
    pub render: JobRender,
}

/// Reads a request to an operation.
///
/// # Errors
/// Returns not-found for a malformed reference, or all violations of the query or the body.
pub fn open<O: Operation>(received: Received<'_>) -> Result<Job, Problem> {
    let path = O::Path::of_text(received.reference)?;
    let query = O::Query::of_query(received.query)?;
    let body = <O::Body as RequestBody<O::Path>>::read_body(received.body, &path)?;
    let session = received.session.map(str::to_owned);
    let request = Arc::new(Request::<O> { path, query, body, sent: received.query.clone(), session });
    let of_work = Arc::clone(&request);
    let in_transaction = |use_case: UseCaseOf<O>, request: Arc<Request<O>>| -> TransactionWork {
        Box::new(move |cx| use_case(cx, &request).map(|view| Box::new(view) as AnyView))
    };
    let work = match O::WAY {
        Way::Read(use_case) => JobWork::Read(in_transaction(use_case, of_work)),
        Way::Scan(use_case) => JobWork::Scan(in_transaction(use_case, of_work)),
        Way::Write(use_case) => JobWork::Write(in_transaction(use_case, of_work)),
        Way::Services(use_case) => JobWork::Services(Box::new(move |services, principal| {
            use_case(services, principal, &of_work).map(|view| Box::new(view) as AnyView)
        })),
    };
    Ok(Job {
        work,
        render: Box::new(move |view| {
            let view = view.downcast_ref().expect("the view is of the same operation as the job");
            O::Answer::render(view, &request)
        }),
    })
}

/// The reference in the path of an operation.
pub trait PathRef: Sized + Send + Sync + 'static {
    /// Parses the reference. A malformed reference is reported as not found.
    ///
    /// # Errors
    /// Returns the problem of an unknown resource.
    fn of_text(text: &str) -> Result<Self, Problem>;
}

impl PathRef for () {
    fn of_text(_: &str) -> Result<Self, Problem> {
        Ok(())
    }
}

macro_rules! path_refs {
    ($($reference:ident: $kind:ident),+ $(,)?) => {$(
        impl PathRef for $reference {
            fn of_text(text: &str) -> Result<Self, Problem> {
                Self::parse(text).map_err(|_| Problem::unknown(ResourceKind::$kind))
            }
        }
    )+};
}

path_refs! {
    AdminRef: Administrator,
    ApiKeyRef: ApiKey,
    ApplicationRef: Application,
    BankAccountRef: BankAccount,
    BillingRunRef: BillingRun,
    ChargeRef: Charge,
    ContractRef: Contract,
    CreditGrantRef: CreditGrant,
    CustomerRef: Customer,
    DocumentRef: Document,
    EndpointRef: Endpoint,
    EntityRef: Entity,
    EventRef: Event,
    FormatRef: Format,
    HoldRef: Hold,
    ImportRef: Import,
    LimitRef: Limit,
    NotificationRef: Notification,
    PaymentRef: Payment,
    PricingRef: Pricing,
    SessionRef: Session,
    UsageProductRef: UsageProduct,
}

/// A credit or a payment: their references have the same format.
impl PathRef for SourceRef {
    fn of_text(text: &str) -> Result<Self, Problem> {
        Ok(Self { document_ref: PathRef::of_text(text)?, payment_ref: PathRef::of_text(text)? })
    }
}

/// The query parameters of an operation.
pub trait QueryParams: Sized + Send + Sync + 'static {
    /// Reads the parameters.
    ///
    /// # Errors
    /// Returns all violations.
    fn of_query(query: &Query) -> Result<Self, Problem>;
}

impl<P: Fieldset + Send + Sync + 'static> QueryParams for P {
    fn of_query(query: &Query) -> Result<Self, Problem> {
        query.read()
    }
}

impl QueryParams for () {
    fn of_query(_: &Query) -> Result<Self, Problem> {
        Ok(())
    }
}

/// How the result of an operation is rendered.
pub trait Answer<O: Operation> {
    /// Renders the result.
    fn render(view: &O::View, request: &Request<O>) -> Success;
}

/// One JSON object.
pub struct Json<J>(PhantomData<J>);

impl<O: Operation, J: for<'v> From<&'v O::View> + Serialize> Answer<O> for Json<J> {
    fn render(view: &O::View, _: &Request<O>) -> Success {
        Success::json(written(&J::from(view)))
    }
}

/// A JSON array.
pub struct Each<J>(PhantomData<J>);

impl<T: 'static, O: Operation<View = Vec<T>>, J: for<'v> From<&'v T> + Serialize> Answer<O> for Each<J> {
    fn render(view: &O::View, _: &Request<O>) -> Success {
        Success::json(written(&view.iter().map(J::from).collect::<Vec<J>>()))
    }
}

/// A page of a list.
pub struct PageOf<J>(PhantomData<J>);

impl<T: 'static, O, J> Answer<O> for PageOf<J>
where
    O: Operation<View = Page<T>>,
    O::Query: PageParams,
    J: for<'v> From<&'v T> + Serialize,
{
    fn render(view: &Page<T>, request: &Request<O>) -> Success {
        request.sent.answer::<T, J>(request.query.page(), view)
    }
}

/// A page of a list that can be ordered by the time of the last change.
pub struct UpdatedPageOf<J>(PhantomData<J>);

impl<T: LastChange + 'static, O, J> Answer<O> for UpdatedPageOf<J>
where
    O: Operation<View = Page<T>>,
    O::Query: PageParams,
    J: for<'v> From<&'v T> + Serialize,
{
    fn render(view: &Page<T>, request: &Request<O>) -> Success {
        request.sent.answer_updated::<T, J>(request.query.page(), view)
    }
}

impl<J: ToSchema> JsonResponse for Json<J> {
    type Content = J;

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <J as JsonResponse>::schema(schemas)
    }
}

macro_rules! arrays {
    ($($answer:ident),+) => {$(
        impl<J: ToSchema> JsonResponse for $answer<J> {
            type Content = Vec<J>;

            fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                <List<J> as JsonResponse>::schema(schemas)
            }
        }
    )+};
}

arrays!(Each, PageOf, UpdatedPageOf);

/// No content.
pub struct Empty;

impl<O: Operation> Answer<O> for Empty {
    fn render(_: &O::View, _: &Request<O>) -> Success {
        Success::nothing()
    }
}
