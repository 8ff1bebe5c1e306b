//! The web console: HTML pages for administrators, built from API responses. The API's permissions apply, and every page
//! shows the API calls it uses.

mod api_client;
mod bulk;
mod charge_form;
mod clock;
mod contract_periods;
mod contract_tasks;
mod contract_wizard;
mod credit;
mod credit_forms;
mod csv;
mod customer;
mod customer_tax;
mod explorer;
mod form_actions;
mod form_data;
mod form_fields;
mod formats;
mod forms;
mod home;
mod imports;
mod lazy_frames;
mod limit_form;
mod list_page;
mod lists;
mod log_in;
mod logo;
mod onboarding;
mod openapi_index;
mod page_builder;
mod pick;
mod price_row;
mod pricing_form;
mod ranges;
mod reads;
mod references;
mod reply;
mod resources;
mod roles;
mod runs;
mod session_user;
mod short_forms;
mod suggestions;
mod sums;
mod table;
mod team;
mod webhooks;

use std::rc::Rc;

use billing_api::console::{Console, Gateway, Later, PageAnswer, PageRequest, PublicPage};
use billing_api::problem::{CONFIRMATION_REQUIRED, Problem};
use http::{Method, StatusCode};

use self::form_data::{field, query};
use self::reply::{caption, html, reasons, to};
use self::session_user::SessionUser;
use crate::{Frame, IMPORT_PATH, LogIn, ROOT, SCRIPT, STYLE};

/// Path segment below the root.
const LOG_IN: &str = "log-in";
const LOG_OUT: &str = "log-out";

/// The pages of the console.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages;

impl Console for Pages {
    fn public_page(&self, path: &str, query: &str, service: &str) -> Option<PublicPage> {
        crate::reference::page(path, query, service)
    }

    fn answer<'c>(&'c self, request: PageRequest, gateway: Rc<dyn Gateway>) -> Later<'c, PageAnswer> {
        Box::pin(async move {
            let request = Rc::new(request);
            if request.method == Method::POST { act(&request, &gateway).await } else { show(&request, &gateway).await }
        })
    }
}

async fn show(request: &Rc<PageRequest>, gateway: &Rc<dyn Gateway>) -> PageAnswer {
    let place: Vec<&str> = request.place.iter().map(String::as_str).collect();
    if let Some(asset) = [STYLE, SCRIPT].iter().find(|asset| asset.path == request.path) {
        return PageAnswer::Asset(asset.sent(&request.query));
    }
    if place == [LOG_IN] {
        let next = field(&query(request), "next").unwrap_or_default().to_owned();
        return html(crate::log_in(&LogIn { next, ..LogIn::default() }));
    }
    // A `GET` of the upload's target leads to the upload page.
    if request.path == IMPORT_PATH {
        return to(&crate::href(&["new", crate::listings::IMPORTS.part]));
    }
    match SessionUser::of(request, gateway).await {
        Ok(user) => {
            let answered = table::answer(&user, &request.method, &query(request)).await;
            answered.unwrap_or_else(|problem| refused_to(&user, problem))
        }
        Err(problem) => stranger(request, &**gateway, problem),
    }
}

async fn act(request: &Rc<PageRequest>, gateway: &Rc<dyn Gateway>) -> PageAnswer {
    if request.is_foreign {
        return refused(&**gateway, Problem::cross_site());
    }
    let place: Vec<&str> = request.place.iter().map(String::as_str).collect();
    if place == [LOG_OUT] {
        gateway.log_out();
        return to(&format!("{ROOT}/{LOG_IN}"));
    }
    if place == [LOG_IN] {
        return match gateway.form(true).await {
            Ok(submitted) => log_in::log_in(&**gateway, &submitted).await,
            Err(problem) => refused(&**gateway, problem),
        };
    }
    // A long form is read only after authentication.
    let user = match SessionUser::of(request, gateway).await {
        Ok(user) => user,
        Err(problem) => return stranger(request, &**gateway, problem),
    };
    if request.path == IMPORT_PATH {
        return imports::act(&user, &**gateway).await;
    }
    if let ["entities", reference, logo::LOGO] = place.as_slice() {
        return logo::act(&user, &**gateway, reference).await;
    }
    let done = match gateway.form(false).await {
        Ok(submitted) => table::answer(&user, &request.method, &submitted).await,
        Err(problem) => return refused(&**gateway, problem),
    };
    done.unwrap_or_else(|problem| refused_to(&user, problem))
}

/// Redirects an unauthenticated visitor to the log-in, or shows the problem if authentication failed otherwise.
fn stranger(request: &PageRequest, gateway: &dyn Gateway, problem: Problem) -> PageAnswer {
    if problem.status() != StatusCode::UNAUTHORIZED {
        return refused(gateway, problem);
    }
    let mark = if request.query.is_empty() { "" } else { "?" };
    let next = if request.method == Method::GET { [&request.path, mark, &request.query].concat() } else { ROOT.to_owned() };
    to(&format!("{ROOT}/{LOG_IN}?{}", crate::query(&[("next", &next)])))
}

/// Returns the error page for an unknown visitor.
fn refused(gateway: &dyn Gateway, problem: Problem) -> PageAnswer {
    refused_in(&Frame::bare(problem.title(), gateway.service()), problem)
}

/// Returns the error page for a known visitor.
fn refused_to(user: &SessionUser, problem: Problem) -> PageAnswer {
    if problem.code() == CONFIRMATION_REQUIRED {
        return team::to_confirmation(user);
    }
    refused_in(&user.frame(problem.title()), problem)
}

fn refused_in(frame: &Frame, problem: Problem) -> PageAnswer {
    let page = crate::problem(frame, problem.status().as_u16(), problem.code(), &reasons(&problem));
    caption(problem, page)
}
