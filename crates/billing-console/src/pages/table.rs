//! The pages: for each its method, its path below the root, the permission that it needs, and the function that answers.

use std::future::ready;

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
    bulk, clock, contract_tasks, contract_wizard, credit, csv, customer, explorer, formats, home, imports, lazy_frames, logo,
    onboarding, pick, price_row, reads, references, roles, runs, team, webhooks,
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
    ($($method:ident $path:literal needs $needs:tt |$user:ident, $submitted:pat_param, [$($segment:ident),*]| $page:expr;)+) => {
        /// All pages. The first one that a path fits answers it.
        static PAGES: &[Page] = &[$(Page {
            method: Method::$method,
            path: $path,
            needs: needs!($needs),
            answer: |$user, $submitted, segments| Box::pin(async move {
                let Ok([$($segment),*]) = <[&str; _]>::try_from(segments) else { return Err(Problem::unknown_route()) };
                Ok(IntoPageAnswer::into_page_answer($page.await?, $user))
            }),
        }),+];
    };
}

pages! {
    GET "" needs SummarizeDocuments |user, _, []| home::show(user);
    GET "start" needs (own) |user, _, []| onboarding::page(user, None);
    GET "start/wait" needs ListEvents |user, _, []| onboarding::wait(user);
    POST "start/{}" needs (own) |user, submitted, [step]| onboarding::act(user, step, submitted);
    GET "search" needs Search |user, submitted, []| reads::search_page(user, submitted);
    GET "sums/{}" needs SummarizeUsage |user, _, [what]| lazy_frames::frame(user, what);
    GET "csv/{}" needs (own) |user, _, [part]| csv::table(user, part);
    GET "pick/{}" needs (own) |user, _, [part]| pick::objects(user, part);
    GET "reference" needs (own) |user, submitted, []| ready(Ok::<_, Problem>(references::proposal(submitted)));
    POST "bulk/{}" needs (own) |user, submitted, [part]| bulk::act(user, part, submitted);
    GET "usage" needs SummarizeUsage |user, submitted, []| explorer::page(user, submitted);
    GET "keys" needs ListKeys |user, _, []| team::page(user, "keys");
    POST "keys" needs GenerateKey |user, submitted, []| team::make_key(user, submitted);
    POST "keys/rotate/{}" needs RotateKey |user, submitted, [reference]| team::rotate_key(user, reference, submitted);
    POST "keys/delete/{}" needs DeleteKey |user, _, [reference]| team::delete_key(user, reference);
    GET "team" needs ListAdministrators |user, _, []| team::page(user, "team");
    POST "team" needs InviteAdministrator |user, submitted, []| team::invite(user, submitted);
    POST "team/reset/{}" needs ResetAdministrator |user, submitted, [reference]| team::reset(user, reference, submitted);
    POST "team/{}/{}" needs EditAdministrator |user, submitted, [action, reference]| team::edit(user, action, reference, submitted);
    GET "roles/{}" needs GetSession |user, _, [role]| ready(roles::page(role));
    GET "account" needs GetSession |user, _, []| team::page(user, "account");
    POST "account/password" needs ChangePassword |user, submitted, []| team::change_password(user, submitted);
    POST "account/second-factor/{}" needs EnrollSecondFactor |user, submitted, [action]| team::second_factor(user, action, submitted);
    POST "account/sessions/end-others" needs EndOtherSessions |user, _, []| team::end_other_sessions(user);
    POST "account/sessions/end/{}" needs EndSession |user, _, [reference]| team::end_session(user, reference);
    GET "confirm" needs ConfirmIdentity |user, _, []| team::page(user, team::CONFIRM);
    POST "confirm" needs ConfirmIdentity |user, submitted, []| team::confirm(user, submitted);
    GET "customers/{}" needs GetCustomer |user, _, [reference]| customer::page(user, reference);
    GET "customers/{}/statement" needs GetStatement |user, submitted, [reference]| customer::statement(user, reference, submitted);
    GET "credit/{}" needs GetGrant |user, _, [reference]| credit::page(user, reference);
    GET "new/contracts" needs CreateContract |user, submitted, []| contract_wizard::show(user, submitted);
    POST "new/contracts" needs CreateContract |user, submitted, []| contract_wizard::submit(user, submitted);
    GET "contracts/{}" needs GetContract |user, _, [reference]| contract_tasks::contract(user, reference);
    GET "contracts/{}/add" needs EditContract |user, _, [reference]| contract_wizard::page(user, Some(reference));
    POST "contracts/{}/add" needs EditContract |user, submitted, [reference]| contract_wizard::act(user, Some(reference), submitted);
    GET "contracts/{}/{}" needs (own) |user, _, [reference, task]| contract_tasks::page(user, reference, task);
    POST "contracts/{}/{}" needs (own) |user, submitted, [reference, task]| contract_tasks::act(user, reference, task, submitted);
    GET "entities/{}/logo" needs EditEntity |user, _, [reference]| logo::page(user, reference);
    GET "documents/{}" needs GetDocument |user, _, [reference]| reads::document(user, reference);
    GET "documents/{}/pdf" needs GetDocumentPdf |user, _, [reference]| reads::pdf(user, reference);
    GET "documents/{}/xml" needs GetDocumentXml |user, _, [reference]| reads::xml(user, reference);
    GET "events/{}" needs GetEventHistory |user, _, [reference]| reads::event(user, reference);
    GET "pricings/{}" needs GetPricing |user, submitted, [reference]| reads::pricing(user, reference, submitted);
    GET "pricings/{}/add" needs EditPricing |user, submitted, [reference]| price_row::show(user, reference, submitted);
    POST "pricings/{}/add" needs EditPricing |user, submitted, [reference]| price_row::act(user, reference, submitted);
    GET "refused/price" needs GetPricing |user, submitted, []| price_row::of_rejected(user, submitted);
    GET "new/formats" needs CreateUsageFormat |user, _, []| formats::page(user, None);
    POST "new/formats" needs CreateUsageFormat |user, submitted, []| formats::act(user, None, submitted);
    GET "edit/formats/{}" needs EditUsageFormat |user, _, [reference]| formats::page(user, Some(reference));
    POST "edit/formats/{}" needs EditUsageFormat |user, submitted, [reference]| formats::act(user, Some(reference), submitted);
    GET "new/imports" needs ImportUsage |user, _, []| imports::form(user);
    GET "imports/{}" needs GetImport |user, _, [reference]| imports::page(user, reference);
    GET "imports/{}/undo" needs UndoImport |user, _, [reference]| imports::undo_page(user, reference);
    POST "imports/{}/undo" needs UndoImport |user, _, [reference]| imports::undo(user, reference);
    GET "new/billing-runs" needs RunBilling |user, _, []| runs::preview(user);
    POST "new/billing-runs" needs RunBilling |user, _, []| runs::carry_out(user);
    GET "clock" needs GetClock |user, submitted, []| clock::page(user, submitted);
    POST "clock" needs AdvanceClock |user, submitted, []| clock::advance(user, submitted);
    GET "billing-runs/{}" needs GetBillingRun |user, _, [reference]| runs::page(user, reference);
    GET "new/webhooks" needs CreateWebhookEndpoint |user, _, []| webhooks::form(user, None);
    POST "new/webhooks" needs CreateWebhookEndpoint |user, submitted, []| webhooks::save(user, None, submitted);
    GET "edit/webhooks/{}" needs EditWebhookEndpoint |user, _, [reference]| webhooks::form(user, Some(reference));
    POST "edit/webhooks/{}" needs EditWebhookEndpoint |user, submitted, [reference]| webhooks::save(user, Some(reference), submitted);
    GET "webhooks/{}" needs GetWebhookEndpoint |user, _, [reference]| webhooks::page(user, reference);
    POST "webhooks/rotate/{}" needs RotateWebhookSecret |user, submitted, [reference]| webhooks::rotate(user, reference, submitted);
    POST "webhooks/test/{}" needs TestWebhookEndpoint |user, _, [reference]| webhooks::test(user, reference);
    POST "webhooks/send/{}" needs ReplayWebhookDeliveries |user, submitted, [reference]| webhooks::send(user, reference, submitted);
    POST "webhooks/delete/{}" needs DeleteWebhookEndpoint |user, _, [reference]| webhooks::delete(user, reference);
    GET "deliveries/{}" needs GetNotification |user, _, [reference]| webhooks::delivery(user, reference);
    GET "new/{}" needs (own) |user, _, [what]| FormPage::shown_at(user, "new", what, None);
    POST "new/{}" needs (own) |user, submitted, [what]| FormPage::taken_at(user, "new", what, None, submitted);
    GET "edit/{}/{}" needs (own) |user, _, [what, reference]| FormPage::shown_at(user, "edit", what, Some(reference));
    POST "edit/{}/{}" needs (own) |user, submitted, [what, reference]| FormPage::taken_at(user, "edit", what, Some(reference), submitted);
    POST "do/release-hold/{}" needs ReleaseHold |user, submitted, [reference]| customer::release_hold(user, reference, submitted);
    GET "do/{}/{}" needs (own) |user, _, [what, reference]| FormPage::shown_at(user, "do", what, Some(reference));
    POST "do/{}/{}" needs (own) |user, submitted, [what, reference]| FormPage::taken_at(user, "do", what, Some(reference), submitted);
    GET "{}" needs (own) |user, submitted, [part]| reads::listed(user, part, submitted);
    GET "{}/{}" needs (own) |user, _, [part, reference]| reads::thing(user, part, reference);
}

/// Answers a request for a page.
///
/// # Errors
/// Returns the problem of an unknown page, of a missing permission, or of the page.
pub(super) async fn answer(user: &SessionUser, method: &Method, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let place: Vec<&str> = user.request.place.iter().map(String::as_str).collect();
    let (page, segments) = page_at(method, &place).ok_or_else(Problem::unknown_route)?;
    if let Some(operation) = page.needs {
        user.allow(operation.use_case()?)?;
    }
    (page.answer)(user, submitted, segments).await
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
    fn into_page_answer(self, user: &SessionUser) -> PageAnswer;
}

impl IntoPageAnswer for PageAnswer {
    fn into_page_answer(self, _: &SessionUser) -> PageAnswer {
        self
    }
}

/// A page, with the notice of the action that led to it.
impl IntoPageAnswer for PageBuilder {
    fn into_page_answer(self, user: &SessionUser) -> PageAnswer {
        html(self.page(user, reads::done(user)))
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
