//! The web console: HTML pages for administrators, built from API responses. The API's permissions apply, and every page
//! shows the API calls it uses.

mod api_client;
mod bulk;
mod calculations;
mod contract_tasks;
mod contract_wizard;
mod csv;
mod customer;
mod explorer;
mod form_data;
mod form_fields;
mod formats;
mod forms;
mod home;
mod imports;
mod lazy_frames;
mod list_page;
mod lists;
mod log_in;
mod onboarding;
mod openapi_index;
mod page_builder;
mod pages;
mod pick;
mod ranges;
mod reply;
mod resources;
mod runs;
mod session_user;
mod short_forms;
mod sums;
mod team;
mod webhooks;

use actix_session::SessionExt as _;
use actix_web::dev::UrlEncoded;
use actix_web::http::StatusCode;
use actix_web::web;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use billing_api::operations::{GetDocumentPdf, GetDocumentXml};
use billing_console::{Frame, IMPORT_PATH, LogIn, ROOT, SCRIPT, STYLE};
use tokio::time::timeout_at;

use self::form_data::{FormData, field, query};
use self::forms::FormPage;
use self::reply::{html, reasons, to, told};
use self::session_user::SessionUser;
use crate::auth::credentials::is_foreign;
use crate::body::STRANGERS_BYTES;
use crate::context::RequestContext;
use crate::respond::HttpProblem;
use billing_api::problem::{CONFIRMATION_REQUIRED, Problem};

/// Maximum size of a form without a file. A contract with all optional terms has many fields.
const MAX_FORM_BYTES: usize = 1024 * 1024;

/// Path segment below the root.
const LOG_IN: &str = "log-in";
const LOG_OUT: &str = "log-out";

/// Registers the console in the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let wrong_method = async || Err::<String, _>(HttpProblem(Problem::method_not_allowed("GET, HEAD, POST")));
    // A `GET` of the upload's target leads to the upload page.
    let choose = async || to(&billing_console::href(&["new", billing_console::listings::IMPORTS.part]));
    let import =
        web::resource(IMPORT_PATH).route(web::get().to(choose)).route(web::head().to(choose)).route(web::post().to(imports::act));
    config.service(import.default_service(web::to(wrong_method)));
    for path in [ROOT.to_owned(), format!("{ROOT}/{{place:.*}}")] {
        let resource = web::resource(path).route(web::get().to(show)).route(web::head().to(show)).route(web::post().to(act));
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

/// Returns the path segments below the root.
fn place(request: &HttpRequest) -> Vec<String> {
    let below = request.match_info().query("place");
    below.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

async fn show(request: HttpRequest) -> HttpResponse {
    let place = place(&request);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    if let Some(asset) = [STYLE, SCRIPT].iter().find(|asset| asset.path == request.path()) {
        return reply::asset(asset, request.query_string() == asset.query());
    }
    if place == [LOG_IN] {
        let next = field(&query(&request), "next").unwrap_or_default().to_owned();
        return html(billing_console::log_in(&LogIn { next, ..LogIn::default() }));
    }
    match SessionUser::of(&request).await {
        Ok(visitor) => match special(&visitor, &place).await {
            Some(answered) => answered.unwrap_or_else(|problem| refused_to(&visitor, problem)),
            None => shown(&visitor, &place).await,
        },
        Err(problem) => stranger(&request, problem),
    }
}

async fn act(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    if is_foreign(&request) {
        return refused(&request, Problem::cross_site());
    }
    let place = place(&request);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    // A long form is read only after authentication.
    let visitor = match place.as_slice() {
        [LOG_IN] => None,
        [LOG_OUT] => {
            request.get_session().purge();
            return to(&format!("{ROOT}/{LOG_IN}"));
        }
        _ => match SessionUser::of(&request).await {
            Ok(visitor) => Some(visitor),
            Err(problem) => return stranger(&request, problem),
        },
    };
    let limit = if visitor.is_some() { MAX_FORM_BYTES } else { STRANGERS_BYTES };
    let mut payload = payload.into_inner();
    let form = UrlEncoded::<FormData>::new(&request, &mut payload).limit(limit);
    let said = match timeout_at(RequestContext::of(&request).body_deadline(), form).await {
        Ok(Ok(said)) => said,
        Ok(Err(error)) => return error.error_response(),
        Err(_) => return refused(&request, Problem::request_timeout()),
    };
    let Some(visitor) = visitor else { return log_in::log_in(&request, &said).await };
    if let [onboarding::START, step] = place.as_slice() {
        return onboarding::act(&visitor, step, &said).await.unwrap_or_else(|problem| refused_to(&visitor, problem));
    }
    match place.as_slice() {
        ["new", "billing-runs"] => {
            return runs::carry_out(&visitor).await.unwrap_or_else(|problem| refused_to(&visitor, problem));
        }
        ["new", "contracts"] if contract_wizard::is_asked(&said, true) => {
            return contract_wizard::act(&visitor, None, &said).await.unwrap_or_else(|problem| refused_to(&visitor, problem));
        }
        ["contracts", reference, "add"] => {
            let added = contract_wizard::act(&visitor, Some(reference), &said).await;
            return added.unwrap_or_else(|problem| refused_to(&visitor, problem));
        }
        ["contracts", reference, task] => {
            let changed = contract_tasks::act(&visitor, reference, task, &said).await;
            return changed.unwrap_or_else(|problem| refused_to(&visitor, problem));
        }
        ["bulk", part] => {
            return bulk::act(&visitor, part, &said).await.unwrap_or_else(|problem| refused_to(&visitor, problem));
        }
        ["new", "formats"] => return formats::act(&visitor, None, &said).await,
        ["edit", "formats", reference] => return formats::act(&visitor, Some(reference), &said).await,
        _ => {}
    }
    if let [kind, what, reference @ ..] = place.as_slice()
        && forms::has(kind, what)
    {
        return by_form(&visitor, (kind, what, reference), &said).await;
    }
    if let ["imports", reference, "undo"] = place.as_slice() {
        return imports::undo(&visitor, reference).await.unwrap_or_else(|problem| refused_to(&visitor, problem));
    }
    if let Some(done) = webhooks::act(&visitor, &place, &said).await {
        return done.unwrap_or_else(|problem| refused_to(&visitor, problem));
    }
    if let Some(done) = team::act(&visitor, &place, &said).await {
        return done.unwrap_or_else(|problem| refused_to(&visitor, problem));
    }
    refused_to(&visitor, Problem::unknown_route())
}

/// Returns pages that are conditional, embedded in a frame or not HTML.
async fn special(visitor: &SessionUser, place: &[&str]) -> Option<Result<HttpResponse, Problem>> {
    Some(match place {
        [] => home::page(visitor).await.map(|made| match made {
            Some(made) => html(made.page(visitor, pages::done(&query(&visitor.request)))),
            None => to(&format!("{ROOT}/{}", onboarding::START)),
        }),
        [onboarding::START] => onboarding::page(visitor, None).await.map(html),
        [onboarding::START, "wait"] => onboarding::wait(visitor).await,
        ["csv", part] => csv::table(visitor, part).await,
        ["pick", part] => pick::objects(visitor, part).await,
        // A problem with a file is a page, not the JSON of the API.
        ["documents", reference, "pdf"] => visitor.answer(&GetDocumentPdf::SPEC, reference, "").await,
        ["documents", reference, "xml"] => visitor.answer(&GetDocumentXml::SPEC, reference, "").await,
        [sums::PLACE, what] => lazy_frames::frame(visitor, what).await,
        _ => return None,
    })
}

/// Handles a submitted form.
async fn by_form(visitor: &SessionUser, (kind, what, reference): (&str, &str, &[&str]), said: &FormData) -> HttpResponse {
    let asked = match reference {
        [] => FormPage::at(visitor, kind, what, None).await,
        [reference] => FormPage::at(visitor, kind, what, Some(reference)).await,
        _ => Err(Problem::unknown_route()),
    };
    let answered = match asked {
        Ok(asked) => asked.take(said).await,
        Err(problem) => Err(problem),
    };
    answered.unwrap_or_else(|problem| refused_to(visitor, problem))
}

/// Renders a page, or the problem that prevents it.
async fn shown(visitor: &SessionUser, place: &[&str]) -> HttpResponse {
    pages::page(visitor, place).await.map_or_else(|problem| refused_to(visitor, problem), html)
}

/// Redirects an unauthenticated visitor to the log-in, or shows the problem if authentication failed otherwise.
fn stranger(request: &HttpRequest, problem: Problem) -> HttpResponse {
    if problem.status() != StatusCode::UNAUTHORIZED {
        return refused(request, problem);
    }
    let next = if request.method() == "GET" { request.uri().to_string() } else { ROOT.to_owned() };
    to(&format!("{ROOT}/{LOG_IN}?{}", billing_console::query(&[("next", &next)])))
}

/// Returns the error page for an unknown visitor.
fn refused(request: &HttpRequest, problem: Problem) -> HttpResponse {
    refused_in(&Frame::bare(problem.title(), session_user::service(request)), problem)
}

/// Returns the error page for a known visitor.
fn refused_to(visitor: &SessionUser, problem: Problem) -> HttpResponse {
    if problem.code() == CONFIRMATION_REQUIRED {
        return team::to_confirmation(visitor);
    }
    refused_in(&visitor.frame(problem.title()), problem)
}

fn refused_in(frame: &Frame, problem: Problem) -> HttpResponse {
    let status = problem.status().as_u16();
    let page = billing_console::problem(frame, status, problem.code(), &reasons(&problem));
    told(problem, page)
}
