//! Loads API lists for pages.

use billing_application::UseCase;
use billing_console::{Crumb, Listing, View, href, listings};
use serde_json::Value;

use super::api_client::{Listed, list};
use super::session_user::SessionUser;
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{audit, billing, catalog, charges, contracts, documents, imports, money, usage};

/// Number of elements of a list embedded in another page.
const FEW: &str = "10";

/// Returns the list of a part of the console.
///
/// # Errors
/// Returns a problem if the part does not exist.
pub(super) fn listing_of(part: &str) -> Result<&'static Listing, Problem> {
    Listing::of(part).ok_or_else(Problem::unknown_route)
}

pub(super) fn crumbs(listing: &Listing) -> Vec<Crumb> {
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}

/// Returns the query of a list: the non-empty parameters and the page size.
pub(super) fn wanted<'s>(listing: &Listing, said: impl Iterator<Item = (&'s str, &'s str)>, size: &'s str) -> String {
    let is_of_page = |name: &str| name == "done" || name == View::COLUMNS;
    let mut pairs: Vec<(&str, &str)> = said.filter(|(name, value)| !value.is_empty() && !is_of_page(name)).collect();
    let has = |pairs: &[(&str, &str)], name: &str| pairs.iter().any(|(said, _)| *said == name);
    if !has(&pairs, "pageSize") {
        pairs.push(("pageSize", size));
    }
    if let (Some(order), false) = (listing.order, has(&pairs, View::ORDER)) {
        pairs.push((View::ORDER, order));
    }
    if !has(&pairs, "pageNumber") && !goes_on_by_cursor(listing) {
        pairs.push(("pageNumber", "0"));
    }
    billing_console::query(&pairs)
}

/// Returns whether the list is paginated by cursor instead of page number.
pub(super) fn goes_on_by_cursor(listing: &Listing) -> bool {
    [listings::DOCUMENTS.part, listings::AUDIT.part].contains(&listing.part)
}

pub(super) async fn listed(visitor: &SessionUser, listing: &Listing, raw: &str) -> Result<Listed, Problem> {
    let query = || Query::of(listing.path, raw);
    match listing.part {
        "customers" => list(catalog::list_customers(visitor.caller(UseCase::ListCustomers), query()?)).await,
        "contracts" => list(contracts::search_contracts(visitor.caller(UseCase::ListContracts), query()?)).await,
        "documents" => {
            let caller = visitor.caller(UseCase::ListDocuments);
            list(documents::list_documents(caller, visitor.request.clone(), query()?)).await
        }
        "events" => list(usage::list_events(visitor.caller(UseCase::ListEvents), query()?)).await,
        "payments" => list(money::list_payments(visitor.caller(UseCase::ListPayments), query()?)).await,
        "charges" => list(charges::list_charges(visitor.caller(UseCase::ListCharges), query()?)).await,
        "pricings" => list(catalog::list_pricings(visitor.caller(UseCase::ListPricings), query()?)).await,
        "usage-products" => list(catalog::list_usage_products(visitor.caller(UseCase::ListUsageProducts), query()?)).await,
        "entities" => list(catalog::list_entities(visitor.caller(UseCase::ListEntities), query()?)).await,
        "bank-accounts" => list(catalog::list_bank_accounts(visitor.caller(UseCase::ListBankAccounts), query()?)).await,
        "formats" => list(catalog::list_usage_formats(visitor.caller(UseCase::ListFormats), query()?)).await,
        "billing-runs" => list(billing::list_billing_runs(visitor.caller(UseCase::ListBillingRuns), query()?)).await,
        "imports" => list(imports::list_imports(visitor.caller(UseCase::ListImports), query()?)).await,
        "refused" => list(usage::list_refused_usage(visitor.caller(UseCase::ListRefusedUsage), query()?)).await,
        "audit" => list(audit::list_audit_entries(visitor.caller(UseCase::ListAuditEntries), query()?)).await,
        _ => Err(Problem::unknown_route()),
    }
}

/// Loads the first elements of a filtered list, for the page of another object.
pub(super) async fn few(visitor: &SessionUser, listing: &Listing, narrowed: &[(&str, &str)]) -> Result<(Value, String), Problem> {
    let raw = wanted(listing, narrowed.iter().copied(), FEW);
    Ok((listed(visitor, listing, &raw).await?.elements, format!("{}?{raw}", listing.path)))
}

/// Loads the first `size` elements of a list.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn some_of(visitor: &SessionUser, listing: &Listing, size: &str) -> Result<Value, Problem> {
    Ok(listed(visitor, listing, &wanted(listing, std::iter::empty(), size)).await?.elements)
}
