//! Objects that the script suggests for a reference while one types.

use crate::JsonView;
use billing_api::dto::search::SearchResultJson;
use billing_api::operations::Search;
use serde_json::{Value, json};

use super::form_data::{field, query};
use super::lists::{few, listing_of};
use super::reply::data;
use super::session_user::SessionUser;
use super::suggestions::named;
use billing_api::console::PageAnswer;
use billing_api::problem::Problem;

/// Parts of the console with objects to choose from, their kind among search results, and the field with their reference.
const KINDS: &[(&str, &str, &str)] = &[
    ("customers", "CUSTOMER", "customer_ref"),
    ("contracts", "CONTRACT", "contract_ref"),
    ("documents", "DOCUMENT", "document_ref"),
    ("pricings", "PRICING", "product_pricing_ref"),
    ("usage-products", "USAGE_PRODUCT", "usage_product_ref"),
    ("entities", "ENTITY", "entity_ref"),
    ("bank-accounts", "BANK_ACCOUNT", "billing_account_id"),
];

/// Returns references and names: the search results for the text, or the first objects of the list without a text.
///
/// # Errors
/// Returns the problem of an unknown part or a failed API call.
pub(super) async fn objects(user: &SessionUser, part: &str) -> Result<PageAnswer, Problem> {
    let (_, kind, reference) = KINDS.iter().find(|(known, ..)| *known == part).ok_or_else(Problem::unknown_route)?;
    let asked = query(&user.request);
    let found: Vec<(String, String)> = match field(&asked, "q") {
        Some(sought) => {
            let found = user.get_with::<Search>("", &crate::query(&[("q", sought)])).await?;
            let of_kind = found.view().items().filter(|one| one.kind().is(kind));
            let name = |one: JsonView<'_, SearchResultJson>| {
                if one.name().is_there() { one.name().to_text() } else { one.number().to_text() }
            };
            of_kind.map(|one| named(one.reference().to_text(), &name(one))).collect()
        }
        None => {
            let listing = listing_of(part)?;
            let first = few(user, listing, &[]).await?;
            JsonView::<Value>::of(&first)
                .elements()
                .map(|one| named(one.at_path(reference).to_text(), &listing.name_of(one)))
                .collect()
        }
    };
    Ok(data(&json!(found)))
}

#[cfg(test)]
mod tests {
    use crate::listings;

    use super::*;

    #[test]
    fn every_part_to_choose_from_is_a_list() {
        for (part, ..) in KINDS {
            assert!(listings::ALL.iter().any(|listing| listing.part == *part), "{part}");
        }
    }
}
