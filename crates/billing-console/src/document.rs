//! The page of a document: its content, the calculation and events of each line, and the available actions.

use billing_api::operation::encoded;
use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{
    address, changes, day, facts, grouped, href, instant, isolated, link, money, name, number, section, state, words,
};
use crate::units::unit_of;
use crate::webhooks::notifications;
use billing_api::json_view::JsonView;

/// API responses for the page of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentAnswers {
    /// The document. Its lines may have the steps of their calculation as texts, in the field `steps`.
    pub document: Value,
    /// Payments recorded on the document.
    pub payments: Value,
    /// The notifications about the document.
    pub notifications: Value,
    /// URL of the PDF file.
    pub pdf: String,
    /// URL of the e-invoice.
    pub xml: String,
    /// URL of the usage that the document bills, as CSV.
    pub usage: String,
    /// Whether the visitor may run actions on the document.
    pub may_change: bool,
}

/// Renders the page of a document.
pub fn document(answers: &DocumentAnswers) -> Markup {
    let at = JsonView::of(&answers.document);
    let missing: Vec<String> = at.at_path("missing").elements().map(JsonView::to_text).collect();
    html! {
        h1 { (title(at)) " " (state(at.at_path("state"))) @if at.at_path("overdue").is_true() { " " span.state data-state="OVERDUE" { "Overdue" } } }
        @if answers.may_change { (actions(answers)) }
        (sheet(at))
        (family(at))
        (settlement(at, JsonView::of(&answers.payments), answers.may_change))
        (notifications(JsonView::of(&answers.notifications)))
        p { (changes("DOCUMENT", &at.at_path("document_ref").to_text())) }
        @if at.at_path("missing_glyphs").is_there() {
            p.muted {
                "No font of the server has these characters, so the PDF shows boxes instead: " (name(at.at_path("missing_glyphs")))
                ". The operator of the server can add a font."
            }
        }
        @if !missing.is_empty() {
            (section("Missing legal information", &html! {
                ul { @for pointer in missing { li { code { (pointer) } } } }
            }))
        }
    }
}

/// Renders the document's content like the printed document.
pub(crate) fn sheet(at: JsonView<'_>) -> Markup {
    html! {
        div.sheet {
            (head(at))
            (lines(at))
            (totals(at))
            @if at.at_path("note").is_there() { p { (name(at.at_path("note"))) } }
            @for note in at.at_path("legal_notes").elements() { p.muted { (note.at_path("text").to_text()) } }
        }
    }
}

/// Returns the document's kind and number.
pub(crate) fn title(at: JsonView<'_>) -> String {
    let kind = words(&at.at_path("kind").to_text());
    let number = at.at_path("document_number").to_text();
    if number.is_empty() { format!("{kind}, not created yet") } else { format!("{kind} {number}") }
}

fn head(at: JsonView<'_>) -> Markup {
    let (customer, entity) = (at.at_path("customer"), at.at_path("entity"));
    html! {
        div.parties {
            (party("From", "entities", entity, "entity"))
            (party("To", "customers", customer, "customer"))
            (facts(&[
                ("Contract", link(
                    Some(href(&["contracts", &at.at_path("contract_ref").to_text()])),
                    &at.at_path("contract_number").to_text(),
                )),
                ("Period", html! { (day(at.at_path("period_start"))) " – " (day(at.at_path("period_end"))) }),
                ("Issued", day(at.at_path("issue_date"))),
                ("Due", day(at.at_path("due_date"))),
                ("Purchase order", html! { (name(at.at_path("po_number"))) }),
                ("Created", instant(at.at_path("created_at"))),
            ]))
        }
    }
}

fn party(role: &str, part: &str, party: JsonView<'_>, field: &str) -> Markup {
    let (name, legal) =
        (party.at_path(&format!("{field}_name")).to_text(), party.at_path(&format!("{field}_legal_name")).to_text());
    html! {
        div {
            span.muted { (role) }
            div { strong { (link(Some(href(&[part, &party.at_path(&format!("{field}_ref")).to_text()])), &name)) } }
            @if !legal.is_empty() { div { (isolated(&legal)) } }
            (address(party.at_path("address").read_as()))
            @if party.at_path("vat_id").is_there() { div { "VAT ID " (party.at_path("vat_id").to_text()) } }
        }
    }
}

pub(crate) fn lines(at: JsonView<'_>) -> Markup {
    let currency = at.at_path("currency").to_text();
    // The totals of the document have the sums of its only product.
    let has_several = at.at_path("products").elements().nth(1).is_some();
    html! {
        @for product in at.at_path("products").elements() {
            h2 { (name(product.at_path("product_name"))) }
            div.scrolls tabindex="0" role="region" aria-label=(product.at_path("product_name").to_text()) {
                table {
                    thead { tr { th { "Line" } th { "Period" } th.amount { "Quantity" } th.amount { "Unit price" } th.amount { "Amount" } } }
                    tbody { @for line in product.at_path("line_items").elements() { (line_row(at, line, &currency)) } }
                    @if has_several { tfoot {
                        (sum_row("Subtotal", product.at_path("sub_total"), &currency))
                        @if product.at_path("discount").is_amount() {
                            tr { th colspan="4" scope="row" { "Discount " (product.at_path("discount_rate").to_text()) " %" } td.amount { (less(product.at_path("discount"), &currency)) } }
                            (sum_row("Net", product.at_path("net"), &currency))
                        }
                    } }
                }
            }
        }
    }
}

fn line_row(document: JsonView<'_>, line: JsonView<'_>, currency: &str) -> Markup {
    let usage = line.at_path("usage_product_ref");
    let steps: Vec<String> = line.named("steps").elements().map(JsonView::to_text).collect();
    let has_tiers = steps.is_empty() && line.at_path("tiers").elements().next().is_some();
    // A document that is not created yet carries no events.
    let has_events = usage.is_there() && document.at_path("document_ref").is_there();
    let opens = has_tiers || !steps.is_empty() || has_events;
    html! {
        tr.opens[opens] {
            td { (name(line.at_path("name"))) }
            td { (day(line.at_path("service_period_start"))) " – " (day(line.at_path("service_period_end"))) }
            td.amount { (number(line.at_path("quantity"))) " " (unit_of(&line.at_path("quantity").to_text(), &line.at_path("unit").to_text())) }
            td.amount { (number(line.at_path("unit_price"))) }
            td.amount { (money(line.at_path("amount"), currency)) }
        }
        @if opens {
            tr { td colspan="5" { details {
                summary { "Calculation" }
                @if !steps.is_empty() { ul.calculation { @for step in &steps { li { (step) } } } }
                @if has_tiers { (tiers(line, currency)) }
                @if has_events { p { (link(Some(events(document, usage)), "Show usage events")) } }
            } } }
        }
    }
}

/// Returns the link to the events of a line.
fn events(document: JsonView<'_>, usage_product: JsonView<'_>) -> String {
    let (document, product) = (document.at_path("document_ref").to_text(), usage_product.to_text());
    format!("{}?document_ref={}&usage_product_ref={}", href(&["events"]), encoded(&document), encoded(&product))
}

fn tiers(line: JsonView<'_>, currency: &str) -> Markup {
    html! {
        table {
            thead { tr { th { "Up to" } th.amount { "Quantity" } th.amount { "Unit price" } th.amount { "Flat fee" } th.amount { "Amount" } } }
            tbody {
                @for tier in line.at_path("tiers").elements() {
                    tr {
                        td { @if tier.at_path("up_to").is_there() { (number(tier.at_path("up_to"))) } @else { "Unlimited" } }
                        td.amount { (number(tier.at_path("quantity"))) }
                        td.amount { (number(tier.at_path("unit_price"))) }
                        td.amount { (number(tier.at_path("flat_amount"))) }
                        td.amount { (money(tier.at_path("amount"), currency)) }
                    }
                }
            }
        }
    }
}

/// Renders an amount as a deduction.
fn less(amount: JsonView<'_>, currency: &str) -> Markup {
    html! { @if !amount.to_text().starts_with('-') { "\u{2212}" } (money(amount, currency)) }
}

fn sum_row(name: &str, amount: JsonView<'_>, currency: &str) -> Markup {
    html! { tr { th colspan="4" scope="row" { (name) } td.amount { (money(amount, currency)) } } }
}

pub(crate) fn totals(at: JsonView<'_>) -> Markup {
    let currency = at.at_path("currency").to_text();
    let label = at.at_path("tax_label");
    let tax_name = if label.is_there() { label.to_text() } else { "Tax".to_owned() };
    let row =
        |name: &str, amount: JsonView<'_>| html! { tr { th scope="row" { (name) } td.amount { (money(amount, &currency)) } } };
    let lesser = |name: &str, field: &str| {
        html! { @if at.at_path(field).is_amount() { tr { th scope="row" { (name) } td.amount { (less(at.at_path(field), &currency)) } } } }
    };
    let discount = match (at.at_path("products").elements().next(), at.at_path("products").elements().nth(1)) {
        (Some(only), None) => format!("Discount {} %", only.at_path("discount_rate").to_text()),
        _ => "Discount".to_owned(),
    };
    // Without a discount and taxes, the subtotal is the total.
    let has_parts = at.at_path("total_discount").is_amount() || at.at_path("taxes").elements().next().is_some();
    let is_owed = at.at_path("amount_due").is_there() && !at.at_path("state").is("DRAFT");
    html! {
        table.totals {
            tbody {
                @if has_parts { (row("Subtotal", at.at_path("sub_total"))) }
                (lesser(&discount, "total_discount"))
                @for tax in at.at_path("taxes").elements() {
                    (row(&format!("{tax_name} {} % of {}", tax.at_path("rate").to_text(), grouped(&tax.at_path("base").to_text())), tax.at_path("amount")))
                }
                (row("Total", at.at_path("total")))
                @for applied in at.at_path("applied_at_issue").elements() {
                    tr.muted { th scope="row" { "Applied at issue: " (applied.at_path("document_number").to_text()) } td.amount { (less(applied.at_path("amount"), &currency)) } }
                }
                @if at.at_path("applied_at_issue").elements().next().is_some() { (row("Due at issue", at.at_path("due_at_issue"))) }
                (lesser("Credits", "credits_amount"))
                (lesser("Paid", "paid_amount"))
                (lesser("Written off", "written_off_amount"))
                @if is_owed { (row("Amount due", at.at_path("amount_due"))) }
                @if at.at_path("unapplied_amount").is_there() { (row("Unapplied amount", at.at_path("unapplied_amount"))) }
            }
        }
    }
}

fn family(at: JsonView<'_>) -> Markup {
    let related = at.at_path("related_documents");
    let to = |reference: JsonView<'_>| Some(href(&["documents", &reference.to_text()]));
    html! {
        @if at.at_path("parent_document_ref").is_there() || related.elements().next().is_some() || at.at_path("replaces_document_ref").is_there() {
            (section("Related documents", &html! {
                ul {
                    @if at.at_path("parent_document_ref").is_there() {
                        li { "Parent document: " (link(to(at.at_path("parent_document_ref")), &at.at_path("parent_document_number").to_text())) }
                    }
                    @if at.at_path("replaces_document_ref").is_there() {
                        li { "Replaces " (link(to(at.at_path("replaces_document_ref")), "a voided document")) }
                    }
                    @for other in related.elements() {
                        li { (link(to(other.at_path("document_ref")), &title(other))) " " (state(other.at_path("state"))) }
                    }
                }
            }))
        }
    }
}

fn settlement(at: JsonView<'_>, payments: JsonView<'_>, may_change: bool) -> Markup {
    let currency = at.at_path("currency").to_text();
    html! {
        @if payments.elements().next().is_some() {
            (section("Payments", &html! {
                div.scrolls { table {
                    thead { tr {
                        th { "Payment date" } th { "Reference" } th.amount { "Amount" } th.amount { "Unapplied" } th { "Reversed" }
                    } }
                    tbody { @for payment in payments.elements() { tr {
                        td { (day(payment.at_path("paid_date"))) }
                        td { (payment.at_path("reference").to_text()) }
                        td.amount { (money(payment.at_path("amount"), &currency)) }
                        td.amount {
                            (money(payment.at_path("unapplied_amount"), &currency))
                            @if may_change && payment.at_path("unapplied_amount").is_amount() {
                                " " a href=(doing("apply-payment", payment.at_path("payment_ref"))) { "Apply" }
                                " " a href=(doing("refund-payment", payment.at_path("payment_ref"))) { "Refund" }
                            }
                        }
                        td {
                            @if payment.at_path("reversed_at").is_there() { (instant(payment.at_path("reversed_at"))) }
                            @else if may_change { a href=(doing("reverse", payment.at_path("payment_ref"))) { "Reverse" } }
                        }
                    } } }
                } }
            }))
        }
        @if at.at_path("applications").elements().next().is_some() {
            (section("Applications", &html! {
                ul { @for one in at.at_path("applications").elements() {
                    li {
                        (money(one.at_path("amount"), &currency)) " "
                        @if one.at_path("from_document_ref").is_there() {
                            "from " (link(Some(href(&["documents", &one.at_path("from_document_ref").to_text()])), &one.at_path("from_document_number").to_text()))
                        } @else { "from a payment" }
                        " to " (link(Some(href(&["documents", &one.at_path("to_document_ref").to_text()])), &one.at_path("to_document_number").to_text()))
                        @if may_change { " · " a href=(doing("unapply", one.at_path("application_ref"))) { "Reverse application" } }
                    }
                } }
            }))
        }
    }
}

/// Returns the link to an action on a document, payment or application.
fn doing(what: &str, reference: JsonView<'_>) -> String {
    href(&["do", what, &reference.to_text()])
}

/// Renders the actions that the document's state permits. Each action shows a preview first.
fn actions(answers: &DocumentAnswers) -> Markup {
    let (at, payments) = (JsonView::of(&answers.document), JsonView::of(&answers.payments));
    let reference = at.at_path("document_ref");
    let is_in = |states: &[&str]| states.iter().any(|state| at.at_path("state").is(state));
    let is_draft = is_in(&["DRAFT"]);
    let is_issued = is_in(&["ISSUED", "PARTIALLY_PAID", "PAID", "SETTLED", "UNCOLLECTIBLE"]);
    let (is_owed, is_left) =
        (is_issued && at.at_path("amount_due").is_amount(), is_issued && at.at_path("unapplied_amount").is_amount());
    // Payments and applications must be reversed before the document can be voided.
    let is_settled =
        payments.elements().any(|payment| payment.at_path("kind").is("PAYMENT") && !payment.at_path("reversed_at").is_there())
            || at.at_path("applications").elements().any(|one| one.at_path("to_document_ref").is(&reference.to_text()));
    let all = [
        (is_draft, "issue", "Issue document"),
        (is_owed, "pay", "Record payment"),
        (is_left, "apply", "Apply amount"),
        (is_left, "refund", "Refund amount"),
        (is_owed, "write-off", "Write off amount"),
        (is_in(&["UNCOLLECTIBLE"]), "reverse-write-off", "Reverse write-off"),
        (is_issued && at.at_path("purpose").is("REGULAR") && !is_settled, "void", "Void document"),
    ];
    html! {
        @if reference.is_there() { div.actions {
            @for (_, what, name) in all.iter().filter(|(may, ..)| *may) {
                a.button.plain[what.ends_with("write-off")].grave[*what == "void"] href=(doing(what, reference)) { (name) }
            }
            a href=(answers.pdf) { "PDF" }
            @if at.at_path("issue_date").is_there() { a href=(answers.xml) { "E-invoice (XML)" } }
            @if is_issued { a href=(answers.usage) { "Usage (CSV)" } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(document: Value) -> String {
        super::document(&DocumentAnswers { document, may_change: true, ..DocumentAnswers::default() }).into_string()
    }

    #[test]
    fn a_usage_line_opens_into_its_tiers_and_its_events() {
        let tier = json!({"up_to": null, "unit_price": 0.04, "quantity": 1500, "amount": 60.00});
        let line =
            json!({"name": "API calls", "usage_product_ref": "api calls", "quantity": 1500, "tiers": [tier], "amount": 60.00});
        let page = shown(json!({
            "document_ref": "d", "document_number": "UB-INV-1", "kind": "INVOICE", "state": "ISSUED", "currency": "EUR",
            "products": [{"product_name": "API plan", "line_items": [line]}], "amount_due": 60.00
        }));
        assert!(page.contains("/console/events?document_ref=d&amp;usage_product_ref=api%20calls"), "{page}");
        assert!(page.contains("Unlimited") && page.contains("60.0"), "{page}");
    }

    #[test]
    fn a_line_opens_into_the_steps_of_its_calculation() {
        let line = json!({"name": "Seats", "amount": 60.00, "steps": ["5 × 12.00 = 60"], "tiers": []});
        let page = shown(json!({
            "document_ref": "d", "kind": "INVOICE", "state": "ISSUED", "currency": "EUR",
            "products": [{"product_name": "Plan", "line_items": [line]}]
        }));
        assert!(page.contains("<summary>Calculation</summary>") && page.contains("<li>5 × 12.00 = 60</li>"), "{page}");
    }

    #[test]
    fn sums_are_shown_once_with_grouped_digits_and_a_draft_has_no_amount_due() {
        let product =
            json!({"product_name": "Plan", "line_items": [], "sub_total": 2472.64, "discount_rate": 10, "discount": 1.5});
        let document = |products: Value, state: &str| {
            shown(json!({
                "document_ref": "d", "kind": "INVOICE", "state": state, "currency": "EUR", "products": products,
                "sub_total": 2472.64, "total_discount": 1.5, "taxes": [{"rate": 19, "base": 2472.64, "amount": 469.8}],
                "total": 2942.44, "amount_due": 2942.44,
            }))
        };
        let page = document(json!([product.clone()]), "ISSUED");
        assert_eq!(page.matches("Subtotal").count(), 1, "{page}");
        assert!(page.contains("Tax 19 % of 2,472.64") && page.contains("Discount 10 %"), "{page}");
        assert!(page.contains("Amount due"), "{page}");
        assert!(!document(json!([product.clone()]), "DRAFT").contains("Amount due"));
        let several = document(json!([product.clone(), product]), "ISSUED");
        assert_eq!(several.matches("Subtotal").count(), 3, "{several}");
    }

    #[test]
    fn an_address_has_the_order_of_its_country_and_a_quantity_its_unit_in_the_plural() {
        let address = json!({"line1": "1 Main St", "city": "Austin", "state": "TX", "zip_code": "78701", "country_code": "US"});
        let german = json!({"city": "Berlin", "zip_code": "10115", "country": "Germany", "country_code": "DE"});
        let line = |quantity: u32| json!({"name": "API calls", "quantity": quantity, "unit": "call", "amount": 1});
        let page = shown(json!({
            "document_ref": "d", "kind": "INVOICE", "state": "ISSUED", "currency": "USD",
            "customer": {"address": address}, "entity": {"address": german},
            "products": [{"product_name": "Plan", "line_items": [line(1_369_217), line(1)]}],
        }));
        assert!(page.contains("Austin, TX 78701<br>US<br>") && page.contains("10115 Berlin<br>Germany<br>"), "{page}");
        assert!(page.contains("</data> calls</td>") && page.contains("</data> call</td>"), "{page}");
    }

    #[test]
    fn what_can_be_done_depends_on_the_state() {
        for (state, due, expected) in [
            ("DRAFT", json!(5), ["issue"].as_slice()),
            ("ISSUED", json!(5), &["pay", "void", "write-off"]),
            ("PAID", json!(0), &["void"]),
            ("UNCOLLECTIBLE", json!(0), &["void", "reverse-write-off"]),
            ("VOID", json!(null), &[]),
        ] {
            let page =
                shown(json!({"document_ref": "d", "kind": "INVOICE", "purpose": "REGULAR", "state": state, "amount_due": due}));
            for action in ["issue", "pay", "void", "write-off", "reverse-write-off"] {
                let is_there = page.contains(&format!("/console/do/{action}/d\""));
                assert_eq!(is_there, expected.contains(&action), "{state}: {action}");
            }
        }
    }

    #[test]
    fn what_is_settled_or_puts_another_right_is_not_voided_and_who_may_change_nothing_takes_nothing_back() {
        let document = |purpose: &str, applications: &Value| {
            json!({
                "document_ref": "d", "kind": "INVOICE", "purpose": purpose, "state": "PARTIALLY_PAID", "amount_due": 1,
                "applications": applications,
            })
        };
        let payment = |reversed_at: Value| json!([{"payment_ref": "p", "kind": "PAYMENT", "reversed_at": reversed_at}]);
        let (none, applied) = (json!([]), json!([{"application_ref": "a", "to_document_ref": "d"}]));
        for (purpose, applications, payments, is_voided) in [
            ("REGULAR", &none, payment(json!("2026-01-01T00:00:00Z")), true),
            ("REGULAR", &none, payment(Value::Null), false),
            ("REGULAR", &applied, none.clone(), false),
            ("ADJUSTMENT", &none, none.clone(), false),
        ] {
            let document = document(purpose, applications);
            let answers = DocumentAnswers { document, payments, may_change: true, ..DocumentAnswers::default() };
            assert_eq!(super::document(&answers).into_string().contains("do/void/d"), is_voided);
        }
        let answers = |may_change| {
            let (document, payments) = (document("REGULAR", &applied), payment(Value::Null));
            DocumentAnswers { document, payments, may_change, ..DocumentAnswers::default() }
        };
        assert!(super::document(&answers(true)).into_string().contains("do/unapply/a"));
        assert!(!super::document(&answers(false)).into_string().contains("/console/do/"));
    }
}
