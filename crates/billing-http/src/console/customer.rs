//! Which answers the page of a customer is made of.

use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{At, CustomerAnswers, listings};

use super::answers::one;
use super::explorer;
use super::lists::{crumbs, few};
use super::made::Made;
use super::visitor::Visitor;
use crate::problem::Problem;
use crate::routes::{catalog, money};

/// The page of a customer.
///
/// # Errors
/// What keeps it from being shown.
pub(super) async fn page(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = || Path::from(reference.to_owned());
    let customer = one(catalog::get_customer(visitor.caller(UseCase::GetCustomer), path())).await?;
    let balance = one(money::get_balance(visitor.caller(UseCase::GetBalance), path())).await?;
    let of_customer = [("customer_ref", reference)];
    let (contracts, contracts_call) = few(visitor, &listings::CONTRACTS, &of_customer).await?;
    let latest = [("customer_ref", reference), ("order", "-created"), ("totals", "false")];
    let (documents, documents_call) = few(visitor, &listings::DOCUMENTS, &latest).await?;
    let (usage, usage_call) = explorer::lately(visitor, vec![("customer_ref".to_owned(), reference.to_owned())]).await?;
    let calls = vec![
        format!("/api/customers/{reference}"),
        format!("/api/customers/balance/{reference}"),
        contracts_call,
        documents_call,
        usage_call,
    ];
    let title = At(&customer).at("name").text();
    let body = billing_console::customer(&CustomerAnswers { customer, balance, contracts, documents, usage });
    Ok(Made { title, part: "customers", crumbs: crumbs(&listings::CUSTOMERS), calls, body })
}
