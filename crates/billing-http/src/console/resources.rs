//! Resources whose page shows a single API response.

use actix_web::web::Path;
use billing_application::UseCase;
use serde_json::Value;

use super::api_client::one;
use super::session_user::SessionUser;
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{catalog, charges, contracts, documents, usage};

/// Returns the API response for an object in a part of the console.
///
/// # Errors
/// Returns a problem if the part or the object does not exist.
pub(super) async fn read(visitor: &SessionUser, part: &str, reference: &str) -> Result<Value, Problem> {
    let path = Path::from(reference.to_owned());
    match part {
        "customers" => one(catalog::get_customer(visitor.caller(UseCase::GetCustomer), path)).await,
        "pricings" => one(catalog::get_pricing(visitor.caller(UseCase::GetPricing), path)).await,
        "usage-products" => one(catalog::get_usage_product(visitor.caller(UseCase::GetUsageProduct), path)).await,
        "entities" => one(catalog::get_entity(visitor.caller(UseCase::GetEntity), path)).await,
        "bank-accounts" => one(catalog::get_bank_account(visitor.caller(UseCase::GetBankAccount), path)).await,
        "contracts" => one(contracts::get_contract(visitor.caller(UseCase::GetContract), path)).await,
        "documents" => one(documents::get_document(visitor.caller(UseCase::GetDocument), path)).await,
        "events" => one(usage::get_event(visitor.caller(UseCase::GetEvent), path)).await,
        "charges" => one(charges::get_charge(visitor.caller(UseCase::GetCharge), path)).await,
        "formats" => {
            let newest = Query::of("/api/usage/formats/", "")?;
            one(catalog::get_usage_format(visitor.caller(UseCase::GetFormat), path, newest)).await
        }
        _ => Err(Problem::unknown_route()),
    }
}
