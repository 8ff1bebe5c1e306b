//! Loads the data of a customer's page.

use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{CustomerAnswers, JsonView, Span, listings};
use maud::Markup;

use super::api_client::one;
use super::explorer::ExplorerRange;
use super::form_data::{FormData, pairs};
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::session_user::SessionUser;
use super::sums::{self, with_page};
use crate::problem::Problem;
use crate::routes::{catalog, money};

/// Renders the page of a customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let path = || Path::from(reference.to_owned());
    let customer = one(catalog::get_customer(visitor.caller(UseCase::GetCustomer), path())).await?;
    let balance = one(money::get_balance(visitor.caller(UseCase::GetBalance), path())).await?;
    let of_customer = [("customer_ref", reference)];
    let (contracts, contracts_call) = few(visitor, &listings::CONTRACTS, &of_customer).await?;
    let latest = [("customer_ref", reference), ("order", "-created"), ("totals", "false")];
    let (documents, documents_call) = few(visitor, &listings::DOCUMENTS, &latest).await?;
    let narrowed = vec![("customer_ref".to_owned(), reference.to_owned())];
    let shown = ExplorerRange::usual(visitor.state.services().now(), visitor.zone)?;
    let usage_calls = sums::calls(&shown.summary(&narrowed)).into_iter().take(1);
    let address = sums::address("customer", &pairs(&narrowed));
    let usage = with_page(visitor, "Usage in the last 30 days", &address, lately(visitor, &narrowed)).await?;
    let mut calls = vec![
        format!("/api/customers/{reference}"),
        format!("/api/customers/balance/{reference}"),
        contracts_call,
        documents_call,
    ];
    calls.extend(usage_calls);
    let title = JsonView(&customer).at("name").text();
    let may_edit = visitor.may(UseCase::EditCustomer);
    let body = billing_console::customer(&CustomerAnswers { customer, balance, contracts, documents, usage, may_edit });
    Ok(PageBuilder { title, part: "customers", crumbs: crumbs(&listings::CUSTOMERS), calls, body })
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
