//! The page of a document: its content, the calculation and events of each line, and the available actions.

use billing_api::operation::encoded;
use maud::{Markup, html};

use crate::calculations::steps;
use crate::conditions::{counted, filters};
use crate::document_credit::credits;
use crate::parts::{
    address, amount_alone, amount_text, changes, day, facts, href, in_units, instant, isolated, link, money, name, number,
    numbered, section, state, words,
};
use crate::unit_of;
use crate::webhooks::notifications;
use billing_api::dto::contract_lines::ContractLineItemJson;
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::documents::{DocumentJson, DocumentLineJson, DocumentProductJson};
use billing_api::dto::enums::DocumentKindWord;
use billing_api::dto::money::PaymentJson;
use billing_api::dto::notifications::NotificationJson;
use billing_api::dto::party::AddressJson;
use billing_api::dto::values::{LineText, VatIdText};
use billing_api::dto::wire::{AssignedRef, ExactNumber};
use billing_api::json_view::{JsonAnswer, JsonView};

/// API responses for the page of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentAnswers {
    /// The document.
    pub document: JsonAnswer<DocumentJson>,
    /// The contract of the document.
    pub contract: JsonAnswer<ContractJson>,
    /// Payments recorded on the document.
    pub payments: JsonAnswer<Vec<PaymentJson>>,
    /// The notifications about the document.
    pub notifications: JsonAnswer<Vec<NotificationJson>>,
    /// URL of the PDF file.
    pub pdf: String,
    /// URL of the e-invoice.
    pub xml: String,
    /// URL of the usage that the document bills, as CSV.
    pub usage: String,
    /// Whether the visitor may run actions on the document.
    pub may_change: bool,
    /// Whether the visitor may create charges, and with them credits.
    pub may_charge: bool,
}

/// Renders the page of a document.
pub fn document(answers: &DocumentAnswers) -> Markup {
    let at = answers.document.view();
    let missing: Vec<String> = at.missing().items().map(JsonView::to_text).collect();
    html! {
        h1 { (title(at.kind(), at.document_number())) " " (state(at.state())) @if at.overdue().is_true() { " " span.state data-state="OVERDUE" { "Overdue" } } }
        @if answers.may_change { (actions(answers)) }
        @if answers.may_charge { div.actions { (credits(at)) } }
        (sheet(at, answers.contract.view()))
        (family(at))
        (settlement(at, answers.payments.view(), answers.may_change))
        (notifications(answers.notifications.view()))
        p { (changes("DOCUMENT", &at.document_ref().to_text())) }
        @if at.missing_glyphs().is_there() {
            p.muted {
                "No font of the server has these characters, so the PDF shows boxes instead: " (name(at.missing_glyphs()))
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

/// Renders the document's content like the printed document, with the conditions of the contract's line items.
pub(crate) fn sheet(at: JsonView<'_, DocumentJson>, contract: JsonView<'_, ContractJson>) -> Markup {
    html! {
        div.sheet {
            (head(at))
            (lines(at, contract))
            (totals(at))
            @if at.note().is_there() { p { (name(at.note())) } }
            @for note in at.legal_notes().items() { p.muted { (note.object().text().to_text()) } }
        }
    }
}

/// Returns the document's kind and number.
pub(crate) fn title<T>(kind: JsonView<'_, DocumentKindWord>, number: JsonView<'_, T>) -> String {
    let (kind, number) = (words(&kind.to_text()), number.to_text());
    if number.is_empty() { format!("{kind}, not created yet") } else { format!("{kind} {number}") }
}

fn head(at: JsonView<'_, DocumentJson>) -> Markup {
    let (customer, entity) = (at.customer(), at.entity());
    html! {
        div.parties {
            (party("From", href(&["entities", &entity.entity_ref().to_text()]), Party {
                name: entity.entity_name(),
                legal_name: entity.entity_legal_name(),
                address: entity.address(),
                vat_id: entity.vat_id(),
            }))
            (party("To", href(&["customers", &customer.customer_ref().to_text()]), Party {
                name: customer.customer_name(),
                legal_name: customer.customer_legal_name(),
                address: customer.address(),
                vat_id: customer.vat_id(),
            }))
            (facts(&[
                ("Contract", link(
                    Some(href(&["contracts", &at.contract_ref().to_text()])),
                    &at.contract_number().to_text(),
                )),
                ("Period", html! { (day(at.period_start())) " – " (day(at.period_end())) }),
                ("Issued", day(at.issue_date())),
                ("Due", day(at.due_date())),
                ("Purchase order", html! { (name(at.po_number())) }),
                ("Created", instant(at.created_at())),
            ]))
        }
    }
}

/// The supplier or the customer of a document.
struct Party<'v> {
    name: JsonView<'v, LineText>,
    legal_name: JsonView<'v, LineText>,
    address: JsonView<'v, AddressJson>,
    vat_id: JsonView<'v, VatIdText>,
}

fn party(role: &str, page: String, party: Party<'_>) -> Markup {
    html! {
        div {
            span.muted { (role) }
            div { strong { (link(Some(page), &party.name.to_text())) } }
            @if party.legal_name.is_there() { div { (name(party.legal_name)) } }
            (address(party.address))
            @if party.vat_id.is_there() { div { "VAT ID " (party.vat_id.to_text()) } }
        }
    }
}

/// Returns the name of a product. Several products of one pricing have their numbers.
pub(crate) fn product_title(product: JsonView<'_, DocumentProductJson>, at: JsonView<'_, DocumentJson>) -> String {
    let (name, pricing) = (product.product_name().to_text(), product.product_pricing_ref().to_text());
    let no = product.product_no().to_text();
    let is_twin =
        |other: JsonView<'_, DocumentProductJson>| other.product_pricing_ref().is(&pricing) && other.product_no().to_text() != no;
    if at.products().items().any(is_twin) { numbered(&name, &no) } else { name }
}

/// Returns the line item of the contract that a line bills, with the terms in force today.
fn agreed<'c>(
    contract: JsonView<'c, ContractJson>,
    product: JsonView<'_, DocumentProductJson>,
    line: JsonView<'_, DocumentLineJson>,
) -> Option<JsonView<'c, ContractLineItemJson>> {
    let (no, id) = (product.product_no().to_text(), line.line_item_id().to_text());
    let newest = contract.products().items().find(|other| other.product_no().to_text() == no)?;
    let terms = if newest.in_force().is_there() { newest.in_force().unboxed() } else { newest };
    terms.line_items().items().find(|item| item.line_item_id().is(&id))
}

pub(crate) fn lines(at: JsonView<'_, DocumentJson>, contract: JsonView<'_, ContractJson>) -> Markup {
    let currency = at.currency().to_text();
    // The totals of the document have the sums of its only product.
    let has_several = at.products().items().nth(1).is_some();
    html! {
        @for product in at.products().items() {
            @let title = product_title(product, at);
            h2 { (isolated(&title)) }
            div.scrolls tabindex="0" role="region" aria-label=(title) {
                table {
                    thead { tr { th { "Line" } th { "Period" } th.amount { "Quantity" } th.amount { "Unit price" } th.amount { "Amount" } } }
                    tbody { @for line in product.line_items().items() { (line_row(at, line, agreed(contract, product, line), &currency)) } }
                    @if has_several { tfoot {
                        (sum_row("Subtotal", product.sub_total(), &currency))
                        @if product.discount().is_amount() {
                            tr { th colspan="4" scope="row" { "Discount " (product.discount_rate().to_text()) " %" } td.amount { (less(product.discount(), &currency)) } }
                            (sum_row("Net", product.net(), &currency))
                        }
                    } }
                }
            }
        }
    }
}

fn line_row(
    document: JsonView<'_, DocumentJson>,
    line: JsonView<'_, DocumentLineJson>,
    agreed: Option<JsonView<'_, ContractLineItemJson>>,
    currency: &str,
) -> Markup {
    let usage = line.usage_product_ref();
    let steps = steps(document, line);
    let has_tiers = steps.is_empty() && line.tiers().items().next().is_some();
    // A document that is not created yet carries no events.
    let has_events = usage.is_there() && document.document_ref().is_there();
    let opens = has_tiers || !steps.is_empty() || has_events;
    html! {
        tr.opens[opens] {
            td { (name(line.name())) @if let Some(item) = agreed { (counted(item)) } }
            td { (day(line.service_period_start())) " – " (day(line.service_period_end())) }
            td.amount { (number(line.quantity())) " " (unit_of(&line.quantity().to_text(), &line.unit().to_text())) }
            td.amount { (amount_alone(&line.unit_price().to_text(), currency)) }
            td.amount { (money(line.amount(), currency)) }
        }
        @if opens {
            tr { td colspan="5" { details {
                summary { "Calculation" }
                @if !steps.is_empty() { ul.calculation { @for step in &steps { li { (step) } } } }
                @if has_tiers { (tiers(line, currency)) }
                @if has_events { p {
                    (link(Some(events(document, usage)), "Show usage events"))
                    @if let Some(labels) = agreed.map(|item| filters(item.condition())).filter(|labels| !labels.is_empty()) {
                        " · " (link(Some(format!("{}&{labels}", events(document, usage))), "Only those with these labels"))
                    }
                } }
            } } }
        }
    }
}

/// Returns the link to the events of a line.
fn events<T>(document: JsonView<'_, DocumentJson>, usage_product: JsonView<'_, T>) -> String {
    let (document, product) = (document.document_ref().to_text(), usage_product.to_text());
    format!("{}?document_ref={}&usage_product_ref={}", href(&["events"]), encoded(&document), encoded(&product))
}

fn tiers(line: JsonView<'_, DocumentLineJson>, currency: &str) -> Markup {
    html! {
        table {
            thead { tr { th { "Up to" } th.amount { "Quantity" } th.amount { "Unit price" } th.amount { "Flat fee" } th.amount { "Amount" } } }
            tbody {
                @for tier in line.tiers().items() {
                    tr {
                        td { @if tier.up_to().is_there() { (number(tier.up_to())) } @else { "Unlimited" } }
                        td.amount { (number(tier.quantity())) }
                        td.amount { (amount_alone(&tier.unit_price().to_text(), currency)) }
                        td.amount { (amount_alone(&tier.flat_amount().to_text(), currency)) }
                        td.amount { (money(tier.amount(), currency)) }
                    }
                }
            }
        }
    }
}

/// Renders an amount as a deduction.
fn less(amount: JsonView<'_, ExactNumber>, currency: &str) -> Markup {
    html! { @if !amount.to_text().starts_with('-') { "\u{2212}" } (money(amount, currency)) }
}

fn sum_row(name: &str, amount: JsonView<'_, ExactNumber>, currency: &str) -> Markup {
    html! { tr { th colspan="4" scope="row" { (name) } td.amount { (money(amount, currency)) } } }
}

pub(crate) fn totals(at: JsonView<'_, DocumentJson>) -> Markup {
    let currency = at.currency().to_text();
    let label = at.tax_label();
    let tax_name = if label.is_there() { label.to_text() } else { "Tax".to_owned() };
    let row = |name: &str, amount: JsonView<'_, ExactNumber>| html! { tr { th scope="row" { (name) } td.amount { (money(amount, &currency)) } } };
    let lesser = |name: &str, amount: JsonView<'_, ExactNumber>| {
        html! { @if amount.is_amount() { tr { th scope="row" { (name) } td.amount { (less(amount, &currency)) } } } }
    };
    let discount = match (at.products().items().next(), at.products().items().nth(1)) {
        (Some(only), None) => format!("Discount {} %", only.discount_rate().to_text()),
        _ => "Discount".to_owned(),
    };
    // Without a discount, credit and taxes, the subtotal is the total.
    let has_parts = at.total_discount().is_amount() || !at.prepaid().is_empty() || at.taxes().items().next().is_some();
    let is_owed = at.amount_due().is_there() && !at.state().is("DRAFT");
    html! {
        table.totals {
            tbody {
                @if has_parts { (row("Subtotal", at.sub_total())) }
                (lesser(&discount, at.total_discount()))
                (prepaid(at, &tax_name))
                @for tax in at.taxes().items() {
                    (row(&format!("{tax_name} {} % of {}", tax.rate().to_text(), amount_text(&tax.base().to_text(), &currency)), tax.amount()))
                }
                (row("Total", at.total()))
                @for applied in at.applied_at_issue().items() {
                    @let number = applied.document_number().to_text();
                    tr.muted { th scope="row" { "Applied at issue: " @if number.is_empty() { "Payment" } @else { (number) } } td.amount { (less(applied.amount(), &currency)) } }
                }
                @if at.applied_at_issue().items().next().is_some() { (row("Due at issue", at.due_at_issue())) }
                (lesser("Credits", at.credits_amount()))
                (lesser("Paid", at.paid_amount()))
                (lesser("Written off", at.written_off_amount()))
                @if is_owed { (row("Amount due", at.amount_due())) }
                @if at.unapplied_amount().is_there() { (row("Unapplied amount", at.unapplied_amount())) }
            }
        }
    }
}

/// Renders the prepaid credit as one deduction, with the amounts of the grants. The tax tells two amounts of one grant apart.
fn prepaid(at: JsonView<'_, DocumentJson>, tax_name: &str) -> Markup {
    let currency = at.currency().to_text();
    let has_several_taxes = at.taxes().items().nth(1).is_some();
    html! {
        @if !at.prepaid().is_empty() { tr {
            th scope="row" {
                "Prepaid credit"
                @for part in at.prepaid().items() { div.muted {
                    (name(part.name()))
                    @if has_several_taxes { " (" (tax_name) " " (part.tax_rate().to_text()) " %)" }
                    ": " (money(part.amount(), &currency)) (in_units(part.units().name(), part.units().amount()))
                } }
            }
            td.amount { (less(at.total_prepaid(), &currency)) }
        } }
    }
}

fn family(at: JsonView<'_, DocumentJson>) -> Markup {
    let related = at.related_documents();
    let to = |reference: JsonView<'_, AssignedRef>| Some(href(&["documents", &reference.to_text()]));
    html! {
        @if at.parent_document_ref().is_there() || related.items().next().is_some() || at.replaces_document_ref().is_there() {
            (section("Related documents", &html! {
                ul {
                    @if at.parent_document_ref().is_there() {
                        li { "Parent document: " (link(to(at.parent_document_ref()), &at.parent_document_number().to_text())) }
                    }
                    @if at.replaces_document_ref().is_there() {
                        li { "Replaces " (link(to(at.replaces_document_ref()), "a voided document")) }
                    }
                    @for other in related.items() {
                        li { (link(to(other.document_ref()), &title(other.kind(), other.document_number()))) " " (state(other.state())) }
                    }
                }
            }))
        }
    }
}

fn settlement(at: JsonView<'_, DocumentJson>, payments: JsonView<'_, Vec<PaymentJson>>, may_change: bool) -> Markup {
    let currency = at.currency().to_text();
    html! {
        (payment_table("Payments", payments, may_change))
        @if at.applications().items().next().is_some() {
            (section("Applications", &html! {
                ul { @for one in at.applications().items() {
                    li {
                        (money(one.amount(), &currency)) " "
                        @if one.from_document_ref().is_there() {
                            "from " (link(Some(href(&["documents", &one.from_document_ref().to_text()])), &one.from_document_number().to_text()))
                        } @else { "from a payment" }
                        " to " (link(Some(href(&["documents", &one.to_document_ref().to_text()])), &one.to_document_number().to_text()))
                        @if may_change { " · " a href=(doing("unapply", one.application_ref())) { "Reverse application" } }
                    }
                } }
            }))
        }
    }
}

/// Renders payments with the actions on them; nothing if there are none.
pub(crate) fn payment_table(title: &str, payments: JsonView<'_, Vec<PaymentJson>>, may_change: bool) -> Markup {
    if payments.items().next().is_none() {
        return html! {};
    }
    section(
        title,
        &html! {
            div.scrolls tabindex="0" role="region" aria-label=(title) { table {
                thead { tr {
                    th { "Payment date" } th { "Reference" } th.amount { "Amount" } th.amount { "Unapplied" } th { "Reversed" }
                } }
                tbody { @for payment in payments.items() {
                    @let currency = payment.currency().to_text();
                    tr {
                        td { (day(payment.paid_date())) @if payment.kind().is("REFUND") { " " (words("REFUND")) } }
                        td { (payment.reference().to_text()) }
                        td.amount { (money(payment.amount(), &currency)) }
                        td.amount {
                            (money(payment.unapplied_amount(), &currency))
                            @if may_change && payment.unapplied_amount().is_amount() {
                                " " a href=(doing("apply-payment", payment.payment_ref())) { "Apply" }
                                " " a href=(doing("refund-payment", payment.payment_ref())) { "Refund" }
                            }
                        }
                        td {
                            @if payment.reversed_at().is_there() { (instant(payment.reversed_at())) }
                            @else if may_change { a href=(doing("reverse", payment.payment_ref())) { "Reverse" } }
                        }
                    }
                } }
            } }
        },
    )
}

/// Returns the link to an action on a document, payment or application.
fn doing(what: &str, reference: JsonView<'_, AssignedRef>) -> String {
    href(&["do", what, &reference.to_text()])
}

/// Returns whether a document is issued and in force.
pub(crate) fn is_issued(at: JsonView<'_, DocumentJson>) -> bool {
    ["ISSUED", "PARTIALLY_PAID", "PAID", "SETTLED", "UNCOLLECTIBLE"].iter().any(|state| at.state().is(state))
}

/// Renders the actions that the document's state permits. Each action shows a preview first.
fn actions(answers: &DocumentAnswers) -> Markup {
    let (at, payments) = (answers.document.view(), answers.payments.view());
    let reference = at.document_ref();
    let is_in = |states: &[&str]| states.iter().any(|state| at.state().is(state));
    let is_draft = is_in(&["DRAFT"]);
    let is_issued = is_issued(at);
    let (is_owed, is_left) = (is_issued && at.amount_due().is_amount(), is_issued && at.unapplied_amount().is_amount());
    // Payments and applications must be reversed before the document can be voided.
    let is_settled = payments.items().any(|payment| payment.kind().is("PAYMENT") && !payment.reversed_at().is_there())
        || at.applications().items().any(|one| one.to_document_ref().is(&reference.to_text()));
    let all = [
        (is_draft, "issue", "Issue document"),
        (is_owed, "pay", "Record payment"),
        (is_left, "apply", "Apply amount"),
        (is_left, "refund", "Refund amount"),
        (is_owed, "write-off", "Write off amount"),
        (is_in(&["UNCOLLECTIBLE"]), "reverse-write-off", "Reverse write-off"),
        (is_issued && at.purpose().is("REGULAR") && !is_settled, "void", "Void document"),
    ];
    html! {
        @if reference.is_there() { div.actions {
            @for (_, what, name) in all.iter().filter(|(may, ..)| *may) {
                a.button.plain[what.ends_with("write-off")].grave[*what == "void"] href=(doing(what, reference)) { (name) }
            }
            a href=(answers.pdf) { "PDF" }
            @if at.issue_date().is_there() { a href=(answers.xml) { "E-invoice (XML)" } }
            @if is_issued { a href=(answers.usage) { "Usage (CSV)" } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(document: Value) -> String {
        super::document(&DocumentAnswers { document: document.into(), may_change: true, ..DocumentAnswers::default() })
            .into_string()
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
    fn two_products_of_one_pricing_have_their_numbers_and_lines_the_conditions_of_their_contract() {
        let line = json!({"line_item_id": "in", "name": "Input", "usage_product_ref": "tokens", "tiers": [], "amount": 1});
        let product = |no: u32, name: &str| json!({"product_no": no, "product_pricing_ref": "plan", "product_name": name, "line_items": [line]});
        let item = json!({"line_item_id": "in", "name": "Input", "where": {"model": ["<b>", "m&1"]}});
        let agreed = json!({"product_no": 1, "line_items": [], "in_force": {"product_no": 1, "line_items": [item]}});
        let document = json!({"document_ref": "d", "kind": "INVOICE", "state": "ISSUED", "currency": "EUR",
            "products": [product(0, "Plan"), product(1, "Plan")]});
        let contract = json!({"products": [agreed]}).into();
        let answers = DocumentAnswers { document: document.into(), contract, ..DocumentAnswers::default() };
        let page = super::document(&answers).into_string();
        assert!(page.contains("<h2>Plan (product 0)</h2>") && page.contains("<h2>Plan (product 1)</h2>"), "{page}");
        assert_eq!(page.matches("<div class=\"muted\">model: &lt;b&gt;, m&amp;1</div>").count(), 1, "{page}");
        let events = "usage_product_ref=tokens&amp;report_data%5Bmodel%5D=%3Cb%3E&amp;report_data%5Bmodel%5D=m%261\"";
        assert!(page.contains(events), "{page}");
    }

    #[test]
    fn a_line_opens_into_the_steps_of_its_calculation() {
        let line = json!({"name": "Seats", "amount": 60.00, "billable_quantity": 5, "unit_price": 12, "tiers": []});
        let page = shown(json!({
            "document_ref": "d", "kind": "INVOICE", "state": "ISSUED", "currency": "EUR", "format": 3,
            "products": [{"product_name": "Plan", "line_items": [line]}]
        }));
        assert!(page.contains("<summary>Calculation</summary>") && page.contains("<li>5 × 12 = 60</li>"), "{page}");
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
    fn prepaid_credit_is_one_deduction_with_the_amount_of_each_grant() {
        let part =
            |name: &str, rate: u32, amount: f64| json!({"grant_ref": "g", "name": name, "tax_rate": rate, "amount": amount});
        let document = |prepaid: Value, total: f64, taxes: Value| {
            shown(json!({
                "document_ref": "d", "kind": "INVOICE", "state": "DRAFT", "currency": "EUR", "products": [], "sub_total": 150,
                "total_discount": 0, "prepaid": prepaid, "total_prepaid": total, "taxes": taxes, "tax_label": "VAT", "total": 60,
            }))
        };
        let tax = |rate: u32| json!({"rate": rate, "base": 50, "amount": 10});
        let page = document(json!([part("<Gift>", 20, 100.5)]), 100.5, json!([tax(20)]));
        let rows = ["Subtotal", "Prepaid credit", "&lt;Gift&gt;", "\u{2212}", "VAT 20 % of 50.00", "Total"];
        let places = rows.map(|row| page.find(row).unwrap_or_else(|| panic!("{row} in {page}")));
        assert!(places.is_sorted() && !page.contains("(VAT 20 %)"), "{page}");
        let page = document(json!([part("Gift", 7, 0.5), part("Gift", 20, 100.0)]), 100.5, json!([tax(7), tax(20)]));
        assert!(page.contains("(VAT 7 %)") && page.contains("(VAT 20 %)"), "{page}");
        assert_eq!(page.matches("Prepaid credit").count(), 1, "{page}");
        assert!(document(json!([part("Gift", 0, 90.0)]), 90.0, json!([])).contains("Subtotal"));
        assert!(!document(json!([]), 0.0, json!([tax(20)])).contains("Prepaid credit"));
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
            let answers = DocumentAnswers {
                document: document.into(),
                payments: payments.into(),
                may_change: true,
                ..DocumentAnswers::default()
            };
            assert_eq!(super::document(&answers).into_string().contains("do/void/d"), is_voided);
        }
        let answers = |may_change| {
            let (document, payments) = (document("REGULAR", &applied), payment(Value::Null));
            DocumentAnswers { document: document.into(), payments: payments.into(), may_change, ..DocumentAnswers::default() }
        };
        assert!(super::document(&answers(true)).into_string().contains("do/unapply/a"));
        assert!(!super::document(&answers(false)).into_string().contains("/console/do/"));
    }
}
