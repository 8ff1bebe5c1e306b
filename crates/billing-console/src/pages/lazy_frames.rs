//! Usage sums that are loaded in separate frames.

use maud::html;

use super::form_data::query;
use super::reply::reasons;
use super::session_user::SessionUser;
use super::{customer, explorer, home};
use billing_api::console::PageAnswer;
use billing_api::problem::Problem;

/// Renders a frame.
///
/// # Errors
/// Returns a problem if the frame does not exist or an API call fails.
pub(super) async fn frame(user: &SessionUser, what: &str) -> Result<PageAnswer, Problem> {
    let submitted = query(&user.request);
    let sums = match what {
        "usage" => explorer::explored(user, &submitted).await,
        "customer" => customer::lately(user, &submitted).await,
        "months" => home::months(user).await,
        _ => return Err(Problem::unknown_route()),
    };
    Ok(match sums {
        Ok(sums) => PageAnswer::Frame { html: user.framed("Usage", &sums), problem: None },
        Err(problem) => {
            let why = html! { p role="alert" { (reasons(&problem)) " " code { (problem.code()) } } };
            PageAnswer::Frame { html: user.framed("Usage", &why), problem: Some(problem) }
        }
    })
}
