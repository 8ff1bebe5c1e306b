//! The console: pages for administrators, of the interface's own answers. Who may see and do what is what the interface lets them,
//! and every page is asked for as software would ask.

mod actions;
mod answers;
mod described;
mod formats;
mod forms;
mod imports;
mod made;
mod pages;
mod reply;
mod runs;
mod said;
mod things;
mod visitor;

use actix_session::SessionExt as _;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, Form};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use billing_console::{Frame, IMPORT_PATH, LogIn, Notice, ROOT, STYLE, STYLE_PATH};

use self::reply::{html, reasons, to, told};
use self::said::{Said, field, query};
use self::visitor::Visitor;
use crate::auth::credentials::is_foreign;
use crate::problem::Problem;

/// Below the root.
const LOG_IN: &str = "log-in";
const LOG_OUT: &str = "log-out";

/// The most bytes of a form without a file: expressions may be long.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// Adds the pages to the router.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let wrong_method = async || Err::<String, _>(Problem::method_not_allowed("GET, POST"));
    // Whoever comes back to where a file was sent chooses one.
    let choose = async || to(&billing_console::href(&["new", billing_console::listings::IMPORTS.part]));
    let import = web::resource(IMPORT_PATH).route(web::get().to(choose)).route(web::post().to(imports::act));
    config.service(import.default_service(web::to(wrong_method)));
    for path in [ROOT.to_owned(), format!("{ROOT}/{{place:.*}}")] {
        let limit = web::FormConfig::default().limit(MAX_FORM_BYTES);
        let resource = web::resource(path).app_data(limit).route(web::get().to(show)).route(web::post().to(act));
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

/// The parts of a path below the root.
fn place(request: &HttpRequest) -> Vec<String> {
    let below = request.match_info().query("place");
    below.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

async fn show(request: HttpRequest) -> HttpResponse {
    let place = place(&request);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    if request.path() == STYLE_PATH {
        return HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/css; charset=utf-8")).body(STYLE);
    }
    if place == [LOG_IN] {
        let next = field(&query(&request), "next").unwrap_or_default().to_owned();
        return html(billing_console::log_in(&LogIn { next, ..LogIn::default() }));
    }
    match Visitor::of(&request).await {
        Ok(visitor) => shown(&visitor, &place, None).await,
        Err(problem) => stranger(&request, problem),
    }
}

async fn act(request: HttpRequest, Form(said): Form<Said>) -> HttpResponse {
    if is_foreign(&request) {
        return refused(&request, Problem::cross_site());
    }
    let place = place(&request);
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    match place.as_slice() {
        [LOG_IN] => return visitor::log_in(&request, &said).await,
        [LOG_OUT] => {
            request.get_session().purge();
            return to(&format!("{ROOT}/{LOG_IN}"));
        }
        _ => {}
    }
    let visitor = match Visitor::of(&request).await {
        Ok(visitor) => visitor,
        Err(problem) => return stranger(&request, problem),
    };
    match place.as_slice() {
        ["new", "billing-runs"] => return runs::carry_out(&visitor).await.unwrap_or_else(|problem| refused(&request, problem)),
        ["new", "formats"] => return formats::act(&visitor, None, &said).await,
        ["edit", "formats", reference] => return formats::act(&visitor, Some(reference), &said).await,
        _ => {}
    }
    let form = match place.as_slice() {
        ["new", part] => Some((*part, None)),
        ["edit", part, reference] => Some((*part, Some(*reference))),
        _ => None,
    };
    if let Some((part, edited)) = form {
        return by_form(&visitor, part, edited, &said).await;
    }
    match (actions::carry_out(&visitor, &place, &said).await, actions::page_of(&place)) {
        (Ok(answered), _) => answered,
        (Err(problem), Some(page)) => shown(&visitor, page, Some(problem)).await,
        (Err(problem), None) => refused(&request, problem),
    }
}

/// Makes or edits a thing; what is wrong with what was said stands beside it.
async fn by_form(visitor: &Visitor, part: &str, edited: Option<&str>, said: &Said) -> HttpResponse {
    let problem = match forms::carry_out(visitor, part, edited, said).await {
        Ok(address) => return to(&format!("{address}?done={}", if edited.is_some() { "edit" } else { "make" })),
        Err(problem) => problem,
    };
    if !forms::belongs_beside(&problem) {
        return refused(&visitor.request, problem);
    }
    match pages::form_page(visitor, part, edited, forms::Tried::refused(said, &problem)).await {
        Ok(page) => told(problem, page),
        Err(problem) => refused(&visitor.request, problem),
    }
}

/// A page, or why it can't be shown.
async fn shown(visitor: &Visitor, place: &[&str], refusal: Option<Problem>) -> HttpResponse {
    let notice = refusal.as_ref().map(|problem| Notice::Refused(problem.code().to_owned(), reasons(problem)));
    match pages::page(visitor, place, notice).await {
        Ok(page) => match refusal {
            None => html(page),
            Some(problem) => told(problem, page),
        },
        Err(problem) => refused(&visitor.request, problem),
    }
}

/// Somebody who isn't logged in, or can't be told to be.
fn stranger(request: &HttpRequest, problem: Problem) -> HttpResponse {
    if problem.status_code() != StatusCode::UNAUTHORIZED {
        return refused(request, problem);
    }
    let next = if request.method() == "GET" { request.uri().to_string() } else { ROOT.to_owned() };
    to(&format!("{ROOT}/{LOG_IN}?{}", billing_console::query(&[("next", &next)])))
}

/// The page of something that can't be shown.
fn refused(request: &HttpRequest, problem: Problem) -> HttpResponse {
    let frame = Frame::bare(problem.title(), visitor::service(request));
    let status = problem.status_code().as_u16();
    let page = billing_console::problem(&frame, status, problem.code(), &reasons(&problem));
    told(problem, page)
}
