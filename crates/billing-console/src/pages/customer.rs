//! Loads the data of a customer's pages, and releases holds.

use crate::{Crumb, CustomerAnswers, LimitAnswers, Span, StatementAnswers, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_application::UseCase;
use billing_domain::calendar::{Date, first_of_month, plus_months};
use billing_domain::limit::MAX_LIMITS;
use maud::Markup;

use super::credit;
use super::explorer::ExplorerRange;
use super::form_data::{field, pairs};
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::reply::to;
use super::session_user::SessionUser;
use super::sums::{self, with_page};
use billing_api::operations::{
    CheckEInvoice, GetBalance, GetCustomer, GetStatement, ListHolds, ListLimits, ReleaseHold, SummarizeUsage,
};
use billing_api::problem::Problem;

/// Number of whole months before this month in a statement by default.
const STATEMENT_MONTHS: i64 = 2;

/// Number of deposits on the page of a customer, newest first.
const DEPOSITS: &str = "100";

/// Number of limits on the page of a customer: all of them.
const LIMITS: &str = "20";
const _: () = assert!(MAX_LIMITS == 20);

/// Number of open holds on the page of a customer, oldest first.
const HOLDS: &str = "100";

/// Renders the page of a customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let customer = user.get::<GetCustomer>(reference).await?;
    let balance = user.get::<GetBalance>(reference).await?;
    // The check is refused if no entity bills the customer by default.
    let e_invoice = user.get::<CheckEInvoice>(reference).await.unwrap_or_default();
    let of_customer = [("customer_ref", reference)];
    let credit = credit::of_customer(user, reference).await?;
    let limits = limits(user, reference).await?;
    let contracts = few(user, &listings::CONTRACTS, &of_customer).await?;
    let latest = [("customer_ref", reference), ("order", "-created"), ("totals", "false")];
    let documents = few(user, &listings::DOCUMENTS, &latest).await?;
    let payments = few(user, &listings::PAYMENTS, &of_customer).await?;
    let deposits = [("customer_ref", reference), ("deposits", "true"), ("pageSize", DEPOSITS)];
    let deposits = few(&user.quietly(), &listings::PAYMENTS, &deposits).await?.into();
    let narrowed = vec![("customer_ref".to_owned(), reference.to_owned())];
    let shown = ExplorerRange::usual(user.now(), user.zone)?;
    user.shows(&SummarizeUsage::SPEC, "", &shown.summary(&narrowed));
    let address = sums::address("customer", &pairs(&narrowed));
    let usage = with_page(user, "Usage in the last 30 days", &address, lately(user, &narrowed)).await?;
    let title = customer.view().profile().name().to_text();
    let answers = CustomerAnswers {
        customer,
        balance,
        contracts,
        documents,
        payments,
        deposits,
        credit,
        limits,
        usage,
        e_invoice,
        may_edit: user.may(UseCase::EditCustomer),
        may_contract: user.may(UseCase::CreateContract),
        may_pay: user.may(UseCase::RecordDeposit),
    };
    let body = crate::customer(&answers);
    Ok(PageBuilder { title, part: "customers", crumbs: crumbs(&listings::CUSTOMERS), body })
}

/// Loads the limits and the open holds of a customer.
///
/// # Errors
/// Returns the problem of a failed API call.
async fn limits(user: &SessionUser, reference: &str) -> Result<LimitAnswers, Problem> {
    let all = [("customer_ref", reference), ("pageSize", LIMITS)];
    let limits = user.get_with::<ListLimits>("", &crate::query(&all)).await?;
    let left = credit::free_today(user, limits.view()).await?;
    let holds = [("customer_ref", reference), ("open", "true"), ("pageSize", HOLDS)];
    Ok(LimitAnswers {
        limits,
        left,
        holds: user.get_with::<ListHolds>("", &crate::query(&holds)).await?,
        may_limit: user.may(UseCase::CreateLimit),
        may_release: user.may(UseCase::ReleaseHold),
    })
}

/// Releases a hold of the submitted customer.
///
/// # Errors
/// Returns the refusal of the operation.
pub(super) async fn release_hold(user: &SessionUser, hold_ref: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let customer_ref = field(submitted, "customer_ref").unwrap_or_default();
    user.answer(&ReleaseHold::SPEC, hold_ref, &crate::query(&[("customer_ref", customer_ref)])).await?;
    Ok(to(&format!("{}?done=release-hold", href(&["customers", customer_ref]))))
}

/// Renders the account statement of a customer.
///
/// # Errors
/// Returns the problem of a failed API call, such as one for days out of order.
pub(super) async fn statement(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let customer = user.get::<GetCustomer>(reference).await?;
    let today = user.zone.service_date(user.now());
    let day = |name: &str, usual: Date| field(submitted, name).map_or_else(|| usual.to_string(), str::to_owned);
    let days = (day("from", plus_months(first_of_month(today), -STATEMENT_MONTHS)), day("to", today));
    let raw = crate::query(&[("from", &days.0), ("to", &days.1)]);
    let accounts = user.get_with::<GetStatement>(reference, &raw).await?;
    let url = GetStatement::SPEC.url(reference);
    let files = [("PDF", "pdf"), ("CSV", "csv")].map(|(label, format)| (label, format!("{url}?{raw}&format={format}")));
    let own = Crumb { name: customer.view().profile().name().to_text(), href: href(&["customers", reference]) };
    let crumbs = crumbs(&listings::CUSTOMERS).into_iter().chain([own]).collect();
    let body = crate::statement(&StatementAnswers { customer, accounts, days, files: files.to_vec() });
    Ok(PageBuilder { title: "Statement".to_owned(), part: "customers", crumbs, body })
}

/// Renders a customer's usage of the default days. `narrowed` selects the customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn lately(user: &SessionUser, narrowed: &FormData) -> Result<Markup, Problem> {
    let shown = ExplorerRange::usual(user.now(), user.zone)?;
    let answers = sums::sums(user, &shown.summary(narrowed)).await?;
    Ok(crate::usage_lately(&answers, &Span { narrowed: narrowed.clone(), slots: shown.slots() }))
}
