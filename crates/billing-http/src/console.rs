//! The console over HTTP: reads requests for pages, answers what pages ask, and shows them.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use actix_session::SessionExt as _;
use actix_web::body::MessageBody as _;
use actix_web::dev::{Payload, UrlEncoded};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ContentType, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_FRAME_OPTIONS,
};
use actix_web::web::{self, Bytes};
use actix_web::{FromRequest as _, HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError as _};
use billing_api::console::{
    ApiAnswer, ApiCall, ConsoleUser, FormData, Gateway, Later, PageAnswer, PageFile, PageRequest, ROOT, Streamed, Upload,
    UsageUpload, WritePageFile,
};
use billing_api::dto::log_in::LogIn;
use billing_api::operation::OperationSpec;
use billing_api::operations::ImportUsage;
use billing_api::problem::Problem;
use billing_api::query::Query;
use billing_application::access::LiveSession;
use billing_application::catalog::default_time_zone;
use billing_application::{UseCase, read};
use billing_domain::access::Principal;
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::idempotency::ScopedIdempotencyKey;
use tokio::time::timeout_at;

use crate::auth::credentials::{is_foreign, live_session};
use crate::blocking::blocking;
use crate::body::{MultipartForm, ParsedBody, STRANGERS_BYTES, UploadedFile};
use crate::call::Call;
use crate::context::RequestContext;
use crate::endpoints;
use crate::fair_permits::FairPermit;
use crate::middleware::RenderedByPage;
use crate::pipe::{PipeWriter, pipe};
use crate::public_pages::asset;
use crate::respond::HttpProblem;
use crate::routes::reports::{FIRST_BYTES, PATIENCE};
use crate::routes::{auth, imports};
use crate::state::{HttpState, state_of};

/// Maximum size of a form without a file. A contract with all optional terms has many fields.
const MAX_FORM_BYTES: usize = 1024 * 1024;

/// Permits only the console's own style sheet, script, requests and frames, and forms that submit to the console.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// The policy of embedded frames, which contain neither forms nor scripts.
const POLICY_OF_PARTS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
);

/// Pages must not be cached, because they contain financial data.
const KEPT_BY_NOBODY: HeaderValue = HeaderValue::from_static("no-store");

/// Loads a page again after some seconds.
const REFRESH: (HeaderName, HeaderValue) = (HeaderName::from_static("refresh"), HeaderValue::from_static("4"));

/// Registers the console in the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let wrong_method = async || Err::<String, _>(HttpProblem(Problem::method_not_allowed("GET, HEAD, POST")));
    for path in [ROOT.to_owned(), format!("{ROOT}/{{place:.*}}")] {
        let resource =
            web::resource(path).route(web::get().to(answer)).route(web::head().to(answer)).route(web::post().to(answer));
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

async fn answer(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let place = request.match_info().query("place").split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let asked = PageRequest {
        method: if request.method() == "POST" { http::Method::POST } else { http::Method::GET },
        path: request.path().to_owned(),
        place,
        query: request.query_string().to_owned(),
        is_foreign: is_foreign(&request),
    };
    let state = state_of(&request);
    let payload = RefCell::new(payload.into_inner());
    let gateway = RequestGateway { state: state.clone(), request, payload, live: OnceCell::new() };
    shown(state.console().answer(asked, Rc::new(gateway)).await)
}

/// Returns the response that shows an answer of the console.
fn shown(answer: PageAnswer) -> HttpResponse {
    match answer {
        PageAnswer::Page { html, problem, refreshes } => {
            let mut response = page(html, problem);
            if refreshes {
                let (name, value) = REFRESH;
                response.headers_mut().insert(name, value);
            }
            response
        }
        PageAnswer::Frame { html, problem } => {
            let mut response = page(html, problem);
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY_OF_PARTS);
            response.headers_mut().insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
            response
        }
        PageAnswer::Redirect(location) => {
            HttpResponse::SeeOther().insert_header((LOCATION, location)).insert_header((CACHE_CONTROL, KEPT_BY_NOBODY)).finish()
        }
        PageAnswer::Data(json) => {
            HttpResponse::Ok().content_type(ContentType::json()).insert_header((CACHE_CONTROL, KEPT_BY_NOBODY)).body(json)
        }
        PageAnswer::Asset(file) => asset(file),
        PageAnswer::Api(answer) => {
            let mut response = HttpResponse::build(answer.status);
            for (name, value) in &answer.headers {
                response.append_header((name.clone(), value.clone()));
            }
            response.body(answer.body)
        }
        PageAnswer::File(Streamed(file)) => match file.downcast::<HttpResponse>() {
            Ok(response) => *response,
            Err(_) => HttpProblem(Problem::internal()).error_response(),
        },
    }
}

/// Returns a page, which shows its problem itself.
fn page(html: String, problem: Option<Problem>) -> HttpResponse {
    let mut response = with_head(problem.as_ref().map_or(StatusCode::OK, Problem::status)).body(html);
    if let Some(problem) = problem {
        response.extensions_mut().insert(RenderedByPage(problem));
    }
    response
}

fn with_head(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "same-origin"))
        .insert_header((X_FRAME_OPTIONS, "DENY"))
        .insert_header((CACHE_CONTROL, KEPT_BY_NOBODY));
    response
}

/// What pages may ask for one request.
struct RequestGateway {
    state: HttpState,
    request: HttpRequest,
    payload: RefCell<Payload>,
    /// The session, once the request is authenticated.
    live: OnceCell<LiveSession>,
}

impl RequestGateway {
    /// Returns the visitor as the principal of a call.
    fn principal(&self) -> Result<Principal, Problem> {
        let live = self.live.get().ok_or_else(|| Problem::unauthenticated(false))?;
        Ok(live.principal(self.state.services().machine_now()).by_request(RequestContext::of(&self.request).id()))
    }

    fn call(&self, operation: &'static OperationSpec, query: &str) -> Result<Call, Problem> {
        let path = operation.path.split('{').next().unwrap_or_default();
        Ok(Call::new(&self.request, self.principal()?, operation.use_case()?, Query::of(path, query)?))
    }

    /// Returns the time zone of the default entity.
    async fn usual_zone(&self) -> Result<TimeZone, Problem> {
        let principal = self.principal()?;
        blocking(self.state.services(), move |services| read(services, &principal, UseCase::ListEntities, default_time_zone))
            .await
    }
}

impl Gateway for RequestGateway {
    fn now(&self) -> Timestamp {
        self.state.services().now()
    }

    fn sandbox_now(&self) -> Option<Timestamp> {
        self.state.services().sandbox.as_ref().map(|clock| clock.now())
    }

    fn machine_now(&self) -> Timestamp {
        self.state.services().machine_now()
    }

    fn service(&self) -> String {
        self.state.settings().public_url.to_string()
    }

    fn request_id(&self) -> String {
        RequestContext::of(&self.request).request_id.clone()
    }

    fn user(&self) -> Later<'_, Result<ConsoleUser, Problem>> {
        Box::pin(async {
            let live = live_session(&self.request).await?;
            let principal = Principal::of_administrator(&live.administrator);
            RequestContext::of(&self.request).is_by(&principal);
            let email = live.administrator.email.to_string();
            self.live.set(live).ok();
            let zone = self.usual_zone().await.unwrap_or(TimeZone::UTC);
            Ok(ConsoleUser { principal, email, zone })
        })
    }

    fn form(&self, is_stranger: bool) -> Later<'_, Result<FormData, Problem>> {
        let limit = if is_stranger { STRANGERS_BYTES } else { MAX_FORM_BYTES };
        let form = UrlEncoded::<FormData>::new(&self.request, &mut self.payload.borrow_mut()).limit(limit);
        Box::pin(async move {
            match timeout_at(RequestContext::of(&self.request).body_deadline(), form).await {
                Ok(form) => form.map_err(|error| Problem::of_status(error.status_code())),
                Err(_) => Err(Problem::request_timeout()),
            }
        })
    }

    fn upload(&self) -> Later<'_, Result<Upload, Problem>> {
        let form = MultipartForm::from_request(&self.request, &mut self.payload.borrow_mut());
        Box::pin(async move { Ok(form.await?.0) })
    }

    fn answer<'g>(&'g self, call: ApiCall<'g>) -> Later<'g, Result<ApiAnswer, Problem>> {
        Box::pin(async move {
            let ApiCall { operation, reference, query, body, key, accepts_warnings } = call;
            let call = self.call(operation, query)?;
            let mut call = if accepts_warnings { call } else { call.without_warnings() };
            let path = operation.url(reference);
            call.key = key.map(|key| ScopedIdempotencyKey { path: path.trim_end_matches('/').to_owned(), key });
            read_answer(endpoints::answer(operation, call, reference.to_owned(), body.map(ParsedBody::from)).await?)
        })
    }

    fn import<'g>(&'g self, query: &'g str, file: UsageUpload) -> Later<'g, Result<ApiAnswer, Problem>> {
        Box::pin(async move {
            let UsageUpload { media_type, kind, bytes } = file;
            let file = UploadedFile { media_type, kind, bytes: Bytes::from(bytes) };
            read_answer(imports::import(self.call(&ImportUsage::SPEC, query)?, file).await?)
        })
    }

    fn log_in(&self, credential: LogIn) -> Later<'_, Result<(), Problem>> {
        Box::pin(async { auth::carry_out(&self.request, &self.request.get_session(), credential).await.map(drop) })
    }

    fn log_out(&self) {
        self.request.get_session().purge();
    }

    fn seal(&self, context: &str, text: &str) -> Option<Vec<u8>> {
        self.state.services().sealer.seal(&self.state.settings().cookie_key.text(), context, text.as_bytes()).ok()
    }

    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.state.services().sealer.open(&self.state.settings().cookie_key.text(), context, sealed)
    }

    fn stream(&self, file: PageFile) -> Later<'_, Result<Streamed, Problem>> {
        Box::pin(async move {
            let PageFile { media_type, name, write } = file;
            let permit = self.state.permit_report(self.principal()?.organization()).await?;
            let (writer, mut reader) = pipe(PATIENCE);
            actix_web::rt::spawn(written(write, writer, permit));
            reader.begin(FIRST_BYTES).await?;
            let mut response = HttpResponse::Ok();
            response.insert_header((CONTENT_TYPE, media_type)).insert_header((CACHE_CONTROL, KEPT_BY_NOBODY));
            response.insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")));
            Ok(Streamed(Box::new(response.body(reader))))
        })
    }
}

/// Returns a response of an operation as data.
fn read_answer(response: HttpResponse) -> Result<ApiAnswer, Problem> {
    let headers = response.headers().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let status = response.status();
    let body = response.into_body().try_into_bytes().map_err(|_| Problem::internal())?;
    Ok(ApiAnswer { status, headers, body: body.into() })
}

/// Writes a file, or ends it with the problem that occurred.
async fn written(write: WritePageFile, mut writer: PipeWriter, permit: FairPermit) {
    let watch = writer.watch();
    match write(&mut writer, &|| watch.is_wanted()).await {
        Ok(()) => {
            // Finishing blocks until the client has read the data.
            let finished = actix_web::rt::task::spawn_blocking(move || {
                let _permit = permit;
                writer.finish()
            });
            if let Ok(Err(error)) = finished.await {
                tracing::warn!(%error, "a file of the console ended before its end");
            }
        }
        Err(problem) => writer.fail(problem),
    }
}
