//! Objects that forms offer for reference fields.

use crate::{Item, JsonView, Listing, Suggestions};
use billing_api::problem::Problem;
use serde_json::Value;

use super::lists::some_of;
use super::session_user::SessionUser;

/// Maximum number of suggestions for a reference field.
pub(super) const SUGGESTED: &str = "100";

/// Loads the suggestions for reference fields, except for the reference of a new object in `new_part`.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn suggestions(user: &SessionUser, shown: &[Item], new_part: &str) -> Result<Vec<Suggestions>, Problem> {
    const NAMED: &[(&str, &str)] = &[
        ("customer_ref", "customers"),
        ("product_pricing_ref", "pricings"),
        ("usage_product_ref", "usage-products"),
        ("entity_ref", "entities"),
        ("billing_account_id", "bank-accounts"),
    ];
    let mut suggestions = Vec::new();
    for (field, part) in NAMED {
        let Some(listing) = Listing::of(part).filter(|_| *part != new_part && has_field(shown, field)) else { continue };
        let elements = some_of(user, listing, SUGGESTED).await?;
        let choices = JsonView::<Value>::of(&elements)
            .elements()
            .map(|one| named(one.at_path(field).to_text(), &listing.name_of(one)))
            .collect();
        suggestions.push(Suggestions { field, choices });
    }
    Ok(suggestions)
}

/// Returns the choice of an object: its reference, and its name with a reference that a person has chosen.
pub(super) fn named(reference: String, name: &str) -> (String, String) {
    let is_assigned = reference.len() == 36 && reference.bytes().filter(|byte| *byte == b'-').count() == 4;
    let label = match name {
        "" => reference.clone(),
        name if is_assigned || name == reference => name.to_owned(),
        name => format!("{name} ({reference})"),
    };
    (reference, label)
}

/// Returns whether a field with the name occurs at any depth.
pub(super) fn has_field(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Field(field) => field.name.rsplit('/').next() == Some(name),
        Item::Group(group) => has_field(&group.items, name),
        Item::List(list) => list.elements.iter().any(|element| has_field(&element.items, name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_offered_by_its_name() {
        let id = "01a20686-121f-75af-821c-a37d48691803";
        for (reference, name, label) in [("acme", "Acme", "Acme (acme)"), (id, "Plan", "Plan"), ("main", "", "main")] {
            assert_eq!(named(reference.to_owned(), name), (reference.to_owned(), label.to_owned()));
        }
    }
}
