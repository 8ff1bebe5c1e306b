//! Conditions on the labels of events in words.

use maud::{Markup, html};

use crate::parts::{isolated, query};
use billing_api::dto::contract_lines::ContractLineItemJson;
use billing_api::dto::labels::WhereJson;
use billing_api::json_view::JsonView;

/// Returns the keys of a condition with their values.
pub(crate) fn entries(condition: JsonView<'_, WhereJson>) -> impl Iterator<Item = (&str, String)> {
    let joined = |values: JsonView<'_>| values.elements().map(JsonView::to_text).collect::<Vec<_>>().join(", ");
    condition.any().fields().map(move |(key, values)| (key, joined(values)))
}

/// Renders a condition in words, such as `kind: input; model: gpt-5, gpt-5-mini`.
pub(crate) fn condition(at: JsonView<'_, WhereJson>) -> Markup {
    isolated(&entries(at).map(|(key, values)| format!("{key}: {values}")).collect::<Vec<_>>().join("; "))
}

/// Returns the query that selects the events that meet a condition.
pub(crate) fn filters(condition: JsonView<'_, WhereJson>) -> String {
    let of_key = |(key, values): (&str, JsonView<'_>)| {
        let name = format!("report_data[{key}]");
        values.elements().map(|value| query(&[(&name, &value.to_text())])).collect::<Vec<_>>()
    };
    condition.any().fields().flat_map(of_key).collect::<Vec<_>>().join("&")
}

/// Renders which events a line item of a contract counts, if labels select them.
pub(crate) fn counted(item: JsonView<'_, ContractLineItemJson>) -> Markup {
    html! {
        @if item.condition().is_there() { div.muted { (condition(item.condition())) } }
        @if item.rest().is_true() { div.muted { "All other labels" } }
    }
}
