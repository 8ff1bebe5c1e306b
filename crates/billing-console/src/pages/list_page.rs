//! Loads the data of a list's page.

use crate::listings::{ADDED_AMOUNTS_DUE, ADDED_STATE};
use crate::{JsonView, ListFilters, ListPage, Listing, View, href, listings};
use billing_api::console::FormData;
use billing_api::dto::customers::CustomerJson;
use billing_api::dto::money::CustomerDueJson;
use billing_application::UseCase;
use billing_domain::refs::CustomerRef;
use serde_json::{Value, json};

use super::api_client::Listed;
use super::bulk;
use super::form_data::pairs;
use super::forms;
use super::lists::{listed, wanted};
use super::openapi_index;
use super::page_builder::PageBuilder;
use super::ranges::{Calendar, ListQuery, list_query};
use super::session_user::SessionUser;
use billing_api::operations::{ListAmountsDue, ListDocuments, ReportUsage};
use billing_api::problem::Problem;
use billing_api::query::lists::MAX_CUSTOMERS;

/// Default page size of a list.
const PAGE_SIZE: &str = "50";

/// Renders the page of a list.
///
/// # Errors
/// Returns the problem of an invalid filter or a failed API call.
pub(super) async fn page(user: &SessionUser, listing: &'static Listing, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let ListQuery { filters: api, names } = list_query(user, listing.part, submitted).await?;
    let raw = wanted(listing, pairs(&api).into_iter(), PAGE_SIZE);
    let filters = openapi_index::filters(listing.operation, &api);
    let Listed { elements, total, amount, amount_due, neighbours } = listed(user, listing, &raw).await?;
    let sums = [("Total", amount), ("Amount due", amount_due)];
    let sums = sums.into_iter().filter_map(|(name, sum)| Some((name.to_owned(), sum.filter(|sum| !sum.is_empty())?))).collect();
    let view = View::of(listing, submitted);
    let elements = with_amounts_due(user, listing, &view, elements).await?;
    let narrowed = filters.iter().filter(|filter| !filter.value.is_empty());
    let narrowed = narrowed.map(|filter| (filter.name.as_str(), filter.value.as_str()));
    let ordered = listing.order.map(|_| (View::ORDER, view.order.as_str()));
    let narrowed = crate::query(&narrowed.chain(ordered).chain([("format", "csv")]).collect::<Vec<_>>());
    let table = match listing.part {
        "documents" => Some(&ListDocuments::SPEC),
        "events" => Some(&ReportUsage::SPEC),
        _ => None,
    };
    let table = table.map(|report| format!("{}?{narrowed}", report.path));
    let selection = bulk::selection(user, listing, submitted);
    let part = ListPage { elements, total, sums, neighbours, table, selection };
    let calendar = Calendar::of(user, listing.part);
    let periods = calendar.periods(&api);
    let filters = ListFilters { filters: calendar.shown(filters), names, periods, address: address(user, listing, &view) };
    let listing = &Listing { is_made_here: listing.is_made_here && may_make(user, listing), ..*listing };
    let body = crate::list(listing, &part, &filters, &view);
    Ok(PageBuilder::of(listing.title, listing.part, body))
}

/// Returns the complete address of a view.
fn address(user: &SessionUser, listing: &Listing, view: &View) -> String {
    let (service, query) = (user.service(), view.with(&[]));
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{}{mark}{query}", service.trim_end_matches('/'), href(&[listing.part]))
}

/// Returns whether the visitor may create an element of the list.
fn may_make(user: &SessionUser, listing: &Listing) -> bool {
    match listing.part {
        "imports" => user.may(UseCase::RecordUsage),
        "formats" => user.may(UseCase::CreateFormat),
        "webhooks" => user.may(UseCase::CreateWebhookEndpoint),
        "billing-runs" => user.may(UseCase::RunBilling),
        part => forms::may(user, "new", part),
    }
}

/// Adds the state and the amounts due to customers, if the view shows them. One API call covers up to 100 customers.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn with_amounts_due(
    user: &SessionUser,
    listing: &Listing,
    view: &View,
    mut elements: Value,
) -> Result<Value, Problem> {
    let is_shown = view.columns.iter().any(|column| [ADDED_STATE, ADDED_AMOUNTS_DUE].contains(&column.field));
    let Some(customers) = elements.as_array_mut().filter(|_| listing.part == listings::CUSTOMERS.part && is_shown) else {
        return Ok(elements);
    };
    for some in customers.chunks_mut(MAX_CUSTOMERS) {
        let references: Vec<String> = some.iter().map(|customer| customer_of(customer).to_text()).collect();
        let raw = crate::query(&[("customer_ref", &references.join(","))]);
        let due = user.get_with::<ListAmountsDue>("", &raw).await?;
        add_amounts_due(some, due.view());
    }
    Ok(elements)
}

fn customer_of(customer: &Value) -> JsonView<'_, CustomerRef> {
    JsonView::<CustomerJson>::of(customer).customer_ref()
}

fn add_amounts_due(customers: &mut [Value], due: JsonView<'_, Vec<CustomerDueJson>>) {
    for customer in customers {
        let reference = customer_of(customer).to_text();
        let of_customer: Vec<JsonView<'_, CustomerDueJson>> =
            due.items().filter(|owed| owed.customer_ref().is(&reference)).collect();
        let is_overdue = of_customer.iter().any(|owed| owed.overdue().is_amount());
        let state = match of_customer.as_slice() {
            [] => "NOTHING_DUE",
            _ if is_overdue => "OVERDUE",
            _ => "DUE",
        };
        customer[ADDED_AMOUNTS_DUE] = of_customer.iter().map(|owed| owed.json().clone()).collect();
        customer[ADDED_STATE] = json!(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_has_the_state_of_what_it_owes() {
        let owed =
            |customer: &str, overdue: u32| json!({"customer_ref": customer, "currency": "EUR", "due": 5, "overdue": overdue});
        let mut customers = vec![json!({"customer_ref": "a"}), json!({"customer_ref": "b"}), json!({"customer_ref": "c"})];
        add_amounts_due(&mut customers, JsonView::of(&json!([owed("b", 0), owed("c", 0), owed("c", 2)])));
        let states: Vec<&Value> = customers.iter().map(|customer| &customer["state"]).collect();
        assert_eq!(states, ["NOTHING_DUE", "DUE", "OVERDUE"]);
        assert_eq!(customers[2]["amounts_due"].as_array().map(Vec::len), Some(2));
    }
}
