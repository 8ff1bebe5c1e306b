//! Usage sums that are loaded in separate frames.

use actix_web::HttpResponse;
use maud::html;

use super::form_data::query;
use super::reply::{framed, reasons};
use super::session_user::SessionUser;
use super::{customer, explorer, home};
use billing_api::problem::Problem;

/// Renders a frame.
///
/// # Errors
/// Returns a problem if the frame does not exist or an API call fails.
pub(super) async fn frame(visitor: &SessionUser, what: &str) -> Result<HttpResponse, Problem> {
    let said = query(&visitor.request);
    let sums = match what {
        "usage" => explorer::explored(visitor, &said).await,
        "customer" => customer::lately(visitor, &said).await,
        "months" => home::months(visitor).await,
        _ => return Err(Problem::unknown_route()),
    };
    Ok(match sums {
        Ok(sums) => framed(None, visitor.framed("Usage", &sums)),
        Err(problem) => {
            let why = html! { p role="alert" { (reasons(&problem)) " " code { (problem.code()) } } };
            framed(Some(problem), visitor.framed("Usage", &why))
        }
    })
}
