//! Loads the data of a customer's page.

use billing_application::UseCase;
use billing_console::{CustomerAnswers, JsonView, Span, listings};
use maud::Markup;

use super::explorer::ExplorerRange;
use super::form_data::{FormData, pairs};
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::session_user::SessionUser;
use super::sums::{self, with_page};
use crate::problem::Problem;

/// Renders the page of a customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let customer = visitor.get("get_customer", reference).await?;
    let balance = visitor.get("get_balance", reference).await?;
    // The check is refused if no entity bills the customer by default.
    let e_invoice = visitor.get("check_e_invoice", reference).await.unwrap_or_default();
    let of_customer = [("customer_ref", reference)];
    let contracts = few(visitor, &listings::CONTRACTS, &of_customer).await?;
    let latest = [("customer_ref", reference), ("order", "-created"), ("totals", "false")];
    let documents = few(visitor, &listings::DOCUMENTS, &latest).await?;
    let narrowed = vec![("customer_ref".to_owned(), reference.to_owned())];
    let shown = ExplorerRange::usual(visitor.state.services().now(), visitor.zone)?;
    visitor.shows("summarize_usage", "", &shown.summary(&narrowed));
    let address = sums::address("customer", &pairs(&narrowed));
    let usage = with_page(visitor, "Usage in the last 30 days", &address, lately(visitor, &narrowed)).await?;
    let title = JsonView(&customer).at("name").text();
    let may_edit = visitor.may(UseCase::EditCustomer);
    let body =
        billing_console::customer(&CustomerAnswers { customer, balance, contracts, documents, usage, e_invoice, may_edit });
    Ok(PageBuilder { title, part: "customers", crumbs: crumbs(&listings::CUSTOMERS), body })
}

/// Renders a customer's usage of the default days. `narrowed` selects the customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn lately(visitor: &SessionUser, narrowed: &FormData) -> Result<Markup, Problem> {
    let shown = ExplorerRange::usual(visitor.state.services().now(), visitor.zone)?;
    let answers = sums::sums(visitor, &shown.summary(narrowed)).await?;
    Ok(billing_console::usage_lately(&answers, &Span { narrowed: narrowed.clone(), slots: shown.slots() }))
}
