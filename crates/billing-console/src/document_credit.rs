//! The credits of an issued invoice: links to the form of a charge below zero, filled in for the whole invoice or for one line.

use maud::{Markup, html};

use crate::document::{is_issued, product_title};
use crate::parts::{amount_text, href, isolated, query};
use billing_api::dto::documents::{DocumentJson, DocumentLineJson, DocumentProductJson};
use billing_api::json_view::JsonView;

type ProductView<'v> = JsonView<'v, DocumentProductJson>;
type LineView<'v> = JsonView<'v, DocumentLineJson>;

/// Renders the choice of what to credit. The credit is a charge below zero in the period that it corrects.
pub(crate) fn credits(at: JsonView<'_, DocumentJson>) -> Markup {
    let products: Vec<ProductView<'_>> = at.products().items().collect();
    let choices: Vec<(String, String)> = products.iter().flat_map(|product| choices(at, *product)).collect();
    html! {
        @if at.kind().is("INVOICE") && is_issued(at) && !choices.is_empty() {
            details {
                summary { "Credit" }
                p { "Choose what to credit. You can change the amount before the credit is created." }
                ul { @for (address, label) in &choices { li { a href=(address) { (isolated(label)) } } } }
            }
        }
    }
}

/// Returns the addresses and labels of the credits of a product: of all lines, and of each line.
fn choices(at: JsonView<'_, DocumentJson>, product: ProductView<'_>) -> Vec<(String, String)> {
    let (number, currency) = (at.document_number().to_text(), at.currency().to_text());
    let lines: Vec<LineView<'_>> = product.line_items().items().collect();
    let is_one_period = lines.windows(2).all(|pair| {
        let period = |line: LineView<'_>| (line.service_period_start().to_text(), line.service_period_end().to_text());
        period(pair[0]) == period(pair[1])
    });
    let is_positive = |amount: &str| !amount.starts_with('-') && amount.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    let net = product.net().to_text();
    let mut choices = Vec::new();
    // A charge belongs to one period, so a credit of lines of several periods would take several charges.
    if let Some(first) = lines.first().filter(|_| is_one_period && lines.len() > 1 && is_positive(&net)) {
        let usage = lines.iter().find(|line| !is_fixed(**line)).unwrap_or(first);
        let label = format!("All lines of {}: {} net", product_title(product, at), amount_text(&net, &currency));
        choices.push((form(at, product, *usage, &net, &format!("Credit for {number}"), false), label));
    }
    // A charge is credited by an edit of the charge.
    let is_charge = |line: &LineView<'_>| line.line_item_id().to_text().starts_with("charge:");
    let discount = product.discount_rate();
    let discount = if discount.is_amount() { format!(" less {} % discount", discount.to_text()) } else { String::new() };
    for line in lines.iter().filter(|line| !is_charge(line)) {
        let (amount, name) = (line.amount().to_text(), line.name().to_text());
        if is_positive(&amount) {
            let label = format!("{name}: {}{discount} net", amount_text(&amount, &currency));
            choices.push((form(at, product, *line, &amount, &format!("Credit for {number}: {name}"), true), label));
        }
    }
    choices
}

/// Returns whether a line bills a fixed item. Usage, and the line of the minimum fee, belong to the invoice of the usage.
fn is_fixed(line: LineView<'_>) -> bool {
    line.line_item_id().is_there() && !line.usage_product_ref().is_there()
}

/// Returns the address of the form that credits an amount in the period of a line.
fn form(
    at: JsonView<'_, DocumentJson>,
    product: ProductView<'_>,
    line: LineView<'_>,
    amount: &str,
    name: &str,
    is_discountable: bool,
) -> String {
    let filled = [
        ("name", name),
        ("unit_price", &format!("-{amount}")),
        ("date", &line.service_period_start().to_text()),
        ("bill_with", if is_fixed(line) { "FIXED" } else { "USAGE" }),
        ("product_pricing_ref", &product.product_pricing_ref().to_text()),
        ("product_no", &product.product_no().to_text()),
        ("discountable", if is_discountable { "true" } else { "false" }),
        ("issue", "true"),
    ];
    format!("{}?{}", href(&["do", "charge", &at.contract_ref().to_text()]), query(&filled))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(id: &str, amount: Value, from: &str) -> Value {
        json!({"line_item_id": id, "name": id, "amount": amount, "service_period_start": from, "service_period_end": "2026-01-31",
            "usage_product_ref": (id == "calls").then_some("calls")})
    }

    fn shown(state: &str, lines: &[Value]) -> String {
        let product = json!({"product_no": 1, "product_pricing_ref": "plan", "product_name": "Plan", "line_items": lines, "net": 98.1,
            "discount_rate": 10});
        let document = json!({"document_ref": "d", "document_number": "UB-INV-1", "contract_ref": "c", "kind": "INVOICE",
            "state": state, "currency": "EUR", "products": [product]});
        credits(JsonView::of(&document)).into_string()
    }

    #[test]
    fn an_invoice_of_one_period_is_credited_as_a_whole_or_by_line() {
        let lines = [line("fee", json!(49), "2026-01-01"), line("calls", json!(60), "2026-01-01")];
        let page = shown("PAID", &lines);
        let all = "/console/do/charge/c?name=Credit%20for%20UB-INV-1&amp;unit_price=-98.1&amp;date=2026-01-01&amp;bill_with=USAGE&amp;\
                   product_pricing_ref=plan&amp;product_no=1&amp;discountable=false&amp;issue=true";
        assert!(page.contains(all) && page.contains("All lines of Plan: 98.10 EUR net"), "{page}");
        assert!(page.contains("fee: 49.00 EUR less 10 % discount net"), "{page}");
        assert!(page.contains("unit_price=-49&amp;date=2026-01-01&amp;bill_with=FIXED"), "{page}");
        assert!(page.contains("unit_price=-60&amp;date=2026-01-01&amp;bill_with=USAGE"), "{page}");
    }

    #[test]
    fn lines_of_several_periods_are_credited_alone_and_charges_and_drafts_not_at_all() {
        let lines = [
            line("fee", json!(49), "2026-02-01"),
            line("calls", json!(0), "2026-01-01"),
            line("charge:x", json!(5), "2026-01-01"),
        ];
        let page = shown("ISSUED", &lines);
        assert_eq!(page.matches("<li>").count(), 1, "{page}");
        assert!(shown("DRAFT", &lines).is_empty());
    }
}
