//! The pages: for each its method, its path below the root, the permission that it needs, and the function that answers.

use billing_api::console::{FormData, Later, PageAnswer};
use billing_api::operation::OperationSpec;
use billing_api::operations;
use billing_api::problem::Problem;
use http::Method;

use super::forms::FormPage;
use super::page_builder::PageBuilder;
use super::reply::html;
use super::session_user::SessionUser;
use super::{
    bulk, contract_tasks, contract_wizard, csv, customer, explorer, formats, home, imports, lazy_frames, onboarding, pick, reads,
    runs, team, webhooks,
};

/// The answer of a page.
type Answered<'a> = Later<'a, Result<PageAnswer, Problem>>;

/// A page, or what a form of it does.
pub(super) struct Page {
    method: Method,
    /// The segments of the path, separated by slashes. `{}` stands for any segment.
    path: &'static str,
    /// The operation whose permission a visitor needs. `None` if the permission follows from another table, such as that of the
    /// forms.
    needs: Option<&'static OperationSpec>,
    /// Answers. Takes the query, or the form that was submitted, and the segments for which `{}` stands.
    answer: for<'a> fn(&'a SessionUser, &'a FormData, Vec<&'a str>) -> Answered<'a>,
}

/// The operation whose permission a page needs.
macro_rules! needs {
    ((own)) => {
        None
    };
    ($operation:ident) => {
        Some(&operations::$operation::SPEC)
    };
}

macro_rules! pages {
    ($($method:ident $path:literal needs $needs:tt |$visitor:ident, $said:pat_param, [$($segment:ident),*]| $page:expr;)+) => {
        /// All pages. The first one that a path fits answers it.
        static PAGES: &[Page] = &[$(Page {
            method: Method::$method,
            path: $path,
            needs: needs!($needs),
            answer: |$visitor, $said, segments| Box::pin(async move {
                let Ok([$($segment),*]) = <[&str; _]>::try_from(segments) else { return Err(Problem::unknown_route()) };
                Ok(IntoPageAnswer::into_page_answer($page.await?, $visitor))
            }),
        }),+];
    };
}

pages! {
    GET "" needs SummarizeDocuments |visitor, _, []| home::show(visitor);
    GET "start" needs (own) |visitor, _, []| onboarding::page(visitor, None);
    GET "start/wait" needs ListEvents |visitor, _, []| onboarding::wait(visitor);
    POST "start/{}" needs (own) |visitor, said, [step]| onboarding::act(visitor, step, said);
    GET "search" needs Search |visitor, said, []| reads::search_page(visitor, said);
    GET "sums/{}" needs SummarizeUsage |visitor, _, [what]| lazy_frames::frame(visitor, what);
    GET "csv/{}" needs (own) |visitor, _, [part]| csv::table(visitor, part);
    GET "pick/{}" needs (own) |visitor, _, [part]| pick::objects(visitor, part);
    POST "bulk/{}" needs (own) |visitor, said, [part]| bulk::act(visitor, part, said);
    GET "usage" needs SummarizeUsage |visitor, said, []| explorer::page(visitor, said);
    GET "keys" needs ListKeys |visitor, _, []| team::page(visitor, "keys");
    POST "keys" needs GenerateKey |visitor, said, []| team::make_key(visitor, said);
    POST "keys/rotate/{}" needs RotateKey |visitor, said, [reference]| team::rotate_key(visitor, reference, said);
    POST "keys/delete/{}" needs DeleteKey |visitor, _, [reference]| team::delete_key(visitor, reference);
    GET "team" needs ListAdministrators |visitor, _, []| team::page(visitor, "team");
    POST "team" needs InviteAdministrator |visitor, said, []| team::invite(visitor, said);
    POST "team/reset/{}" needs ResetAdministrator |visitor, said, [reference]| team::reset(visitor, reference, said);
    POST "team/{}/{}" needs EditAdministrator |visitor, said, [action, reference]| team::edit(visitor, action, reference, said);
    GET "account" needs GetSession |visitor, _, []| team::page(visitor, "account");
    POST "account/password" needs ChangePassword |visitor, said, []| team::change_password(visitor, said);
    POST "account/second-factor/{}" needs EnrollSecondFactor |visitor, said, [action]| team::second_factor(visitor, action, said);
    POST "account/sessions/end-others" needs EndOtherSessions |visitor, _, []| team::end_other_sessions(visitor);
    POST "account/sessions/end/{}" needs EndSession |visitor, _, [reference]| team::end_session(visitor, reference);
    GET "confirm" needs ConfirmIdentity |visitor, _, []| team::page(visitor, team::CONFIRM);
    POST "confirm" needs ConfirmIdentity |visitor, said, []| team::confirm(visitor, said);
    GET "customers/{}" needs GetCustomer |visitor, _, [reference]| customer::page(visitor, reference);
    GET "customers/{}/statement" needs GetStatement |visitor, said, [reference]| customer::statement(visitor, reference, said);
    GET "new/contracts" needs CreateContract |visitor, said, []| contract_wizard::show(visitor, said);
    POST "new/contracts" needs CreateContract |visitor, said, []| contract_wizard::submit(visitor, said);
    GET "contracts/{}" needs GetContract |visitor, _, [reference]| contract_tasks::contract(visitor, reference);
    GET "contracts/{}/add" needs EditContract |visitor, _, [reference]| contract_wizard::page(visitor, Some(reference));
    POST "contracts/{}/add" needs EditContract |visitor, said, [reference]| contract_wizard::act(visitor, Some(reference), said);
    GET "contracts/{}/{}" needs (own) |visitor, _, [reference, task]| contract_tasks::page(visitor, reference, task);
    POST "contracts/{}/{}" needs (own) |visitor, said, [reference, task]| contract_tasks::act(visitor, reference, task, said);
    GET "documents/{}" needs GetDocument |visitor, _, [reference]| reads::document(visitor, reference);
    GET "documents/{}/pdf" needs GetDocumentPdf |visitor, _, [reference]| reads::pdf(visitor, reference);
    GET "documents/{}/xml" needs GetDocumentXml |visitor, _, [reference]| reads::xml(visitor, reference);
    GET "events/{}" needs GetEventHistory |visitor, _, [reference]| reads::event(visitor, reference);
    GET "pricings/{}" needs GetPricing |visitor, said, [reference]| reads::pricing(visitor, reference, said);
    GET "new/formats" needs CreateUsageFormat |visitor, _, []| formats::page(visitor, None);
    POST "new/formats" needs CreateUsageFormat |visitor, said, []| formats::act(visitor, None, said);
    GET "edit/formats/{}" needs EditUsageFormat |visitor, _, [reference]| formats::page(visitor, Some(reference));
    POST "edit/formats/{}" needs EditUsageFormat |visitor, said, [reference]| formats::act(visitor, Some(reference), said);
    GET "new/imports" needs ImportUsage |visitor, _, []| imports::form(visitor);
    GET "imports/{}" needs GetImport |visitor, _, [reference]| imports::page(visitor, reference);
    GET "imports/{}/undo" needs UndoImport |visitor, _, [reference]| imports::undo_page(visitor, reference);
    POST "imports/{}/undo" needs UndoImport |visitor, _, [reference]| imports::undo(visitor, reference);
    GET "new/billing-runs" needs RunBilling |visitor, _, []| runs::preview(visitor);
    POST "new/billing-runs" needs RunBilling |visitor, _, []| runs::carry_out(visitor);
    GET "billing-runs/{}" needs GetBillingRun |visitor, _, [reference]| runs::page(visitor, reference);
    GET "new/webhooks" needs CreateWebhookEndpoint |visitor, _, []| webhooks::form(visitor, None);
    POST "new/webhooks" needs CreateWebhookEndpoint |visitor, said, []| webhooks::save(visitor, None, said);
    GET "edit/webhooks/{}" needs EditWebhookEndpoint |visitor, _, [reference]| webhooks::form(visitor, Some(reference));
    POST "edit/webhooks/{}" needs EditWebhookEndpoint |visitor, said, [reference]| webhooks::save(visitor, Some(reference), said);
    GET "webhooks/{}" needs GetWebhookEndpoint |visitor, _, [reference]| webhooks::page(visitor, reference);
    POST "webhooks/rotate/{}" needs RotateWebhookSecret |visitor, said, [reference]| webhooks::rotate(visitor, reference, said);
    POST "webhooks/test/{}" needs TestWebhookEndpoint |visitor, _, [reference]| webhooks::test(visitor, reference);
    POST "webhooks/send/{}" needs ReplayWebhookDeliveries |visitor, said, [reference]| webhooks::send(visitor, reference, said);
    POST "webhooks/delete/{}" needs DeleteWebhookEndpoint |visitor, _, [reference]| webhooks::delete(visitor, reference);
    GET "deliveries/{}" needs GetNotification |visitor, _, [reference]| webhooks::delivery(visitor, reference);
    GET "new/{}" needs (own) |visitor, _, [what]| FormPage::shown_at(visitor, "new", what, None);
    POST "new/{}" needs (own) |visitor, said, [what]| FormPage::taken_at(visitor, "new", what, None, said);
    GET "edit/{}/{}" needs (own) |visitor, _, [what, reference]| FormPage::shown_at(visitor, "edit", what, Some(reference));
    POST "edit/{}/{}" needs (own) |visitor, said, [what, reference]| FormPage::taken_at(visitor, "edit", what, Some(reference), said);
    GET "do/{}/{}" needs (own) |visitor, _, [what, reference]| FormPage::shown_at(visitor, "do", what, Some(reference));
    POST "do/{}/{}" needs (own) |visitor, said, [what, reference]| FormPage::taken_at(visitor, "do", what, Some(reference), said);
    GET "{}" needs (own) |visitor, said, [part]| reads::listed(visitor, part, said);
    GET "{}/{}" needs (own) |visitor, _, [part, reference]| reads::thing(visitor, part, reference);
}

/// Answers a request for a page.
///
/// # Errors
/// Returns the problem of an unknown page, of a missing permission, or of the page.
pub(super) async fn answer(visitor: &SessionUser, method: &Method, said: &FormData) -> Result<PageAnswer, Problem> {
    let place: Vec<&str> = visitor.request.place.iter().map(String::as_str).collect();
    let (page, segments) = page_at(method, &place).ok_or_else(Problem::unknown_route)?;
    if let Some(operation) = page.needs {
        visitor.allow(operation.use_case()?)?;
    }
    (page.answer)(visitor, said, segments).await
}

/// Returns the page that a path fits, and the segments for which `{}` stands.
fn page_at<'p>(method: &Method, place: &[&'p str]) -> Option<(&'static Page, Vec<&'p str>)> {
    PAGES.iter().filter(|page| page.method == method).find_map(|page| Some((page, page.segments_of(place)?)))
}

impl Page {
    fn segments_of<'p>(&self, place: &[&'p str]) -> Option<Vec<&'p str>> {
        let mut own = self.path.split('/').filter(|segment| !segment.is_empty());
        let mut free = Vec::new();
        for segment in place {
            match own.next()? {
                "{}" => free.push(*segment),
                fixed if fixed == *segment => {}
                _ => return None,
            }
        }
        own.next().is_none().then_some(free)
    }
}

/// What a function of a page returns.
trait IntoPageAnswer {
    fn into_page_answer(self, visitor: &SessionUser) -> PageAnswer;
}

impl IntoPageAnswer for PageAnswer {
    fn into_page_answer(self, _: &SessionUser) -> PageAnswer {
        self
    }
}

/// A page, with the notice of the action that led to it.
impl IntoPageAnswer for PageBuilder {
    fn into_page_answer(self, visitor: &SessionUser) -> PageAnswer {
        html(self.page(visitor, reads::done(visitor)))
    }
}

impl IntoPageAnswer for String {
    fn into_page_answer(self, _: &SessionUser) -> PageAnswer {
        html(self)
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use crate::listings;

    use super::*;

    #[test]
    fn each_page_is_the_first_that_its_own_path_fits() {
        for page in PAGES {
            let place: Vec<&str> = page.path.split('/').filter(|segment| !segment.is_empty()).collect();
            let (found, _) = page_at(&page.method, &place).expect(page.path);
            assert!(ptr::eq(found, page), "{} {}: {} comes first", page.method, page.path, found.path);
        }
    }

    #[test]
    fn each_list_and_each_entry_of_the_menu_is_a_page() {
        let parts = listings::ALL.iter().map(|listing| listing.part).chain(crate::frame::parts());
        for part in parts {
            assert!(page_at(&Method::GET, &[part]).is_some(), "{part}");
        }
    }
}
