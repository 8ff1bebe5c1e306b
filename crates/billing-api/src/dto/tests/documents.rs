//! Documents.

use billing_application::documents::{DocumentView, IssueDates, OpenedFields, RelatedDocument};
use billing_domain::charge::Charges;
use billing_domain::contract::Contract;
use billing_domain::document::lines::{DiscountAndTax, FamilySums};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::{
    DocumentContent, PrepaidAmount, RatedLines, UsageTotals, lines_of_period, total_up, usage_key,
};
use billing_domain::document::{
    AppliedAtIssue, AtIssue, CONTENT_FORMAT, DocumentKind, DocumentState, LifecycleStatus, OutstandingAmounts, Parties, Purpose,
    Settlement,
};
use billing_domain::money::{Currency, Money};
use billing_domain::party::NetTerms;
use billing_domain::ports::IdSource;
use billing_domain::refs::{CreditGrantRef, DocumentRef, EventRef};
use billing_domain::usage::{CountedEvent, UsageTotal};
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;
use serde_json::Value;

use super::super::documents::DocumentJson;
use super::schemas::assert_fits;
use super::{json, posted_back, presented, steps};

/// Returns the document lines of a fixed item with these quantities.
fn fixed_line(quantities: &[(&str, &str)]) -> Value {
    let mut view = preview(fixtures::eur());
    let line = &mut view.content.products[0].lines[0];
    line.quantities = steps(quantities);
    let shown = posted_back(&DocumentJson::from(&view));
    assert_fits(&DocumentJson::from(&view));
    shown["products"][0]["line_items"][0].clone()
}

#[test]
fn a_fixed_line_shows_the_quantities_it_was_agreed_in() {
    let none = fixed_line(&[]);
    assert_eq!((&none["quantity"], none.get("quantities")), (&Value::Null, None));
    let one = fixed_line(&[("2026-01-01", "12.5")]);
    assert_eq!((&one["quantity"], &one["quantities"]), (&json("12.5"), &json(r#"[{"from":"2026-01-01","quantity":12.5}]"#)));
    let two = fixed_line(&[("2026-01-01", "10"), ("2026-01-15", "12")]);
    let steps = r#"[{"from":"2026-01-01","quantity":10},{"from":"2026-01-15","quantity":12}]"#;
    assert_eq!((&two["quantity"], &two["quantities"]), (&Value::Null, &json(steps)));
}

/// Returns January of a contract with a fixed, a metered and a tiered line item and a minimum fee. Each usage is 1500.5.
pub(super) fn january(currency: Currency) -> (Contract, DocumentContent) {
    let ids = CountingIds::new();
    let tiers: &[(Option<&str>, &str, &str)] = &[(Some("100"), "0.10", "0"), (Some("1000"), "0.05", "1"), (None, "0.01", "0")];
    let items = vec![fixtures::fixed("base", "20"), fixtures::per_unit("calls", "0.0025"), fixtures::graduated("storage", tiers)];
    let mut pricing = fixtures::pricing("api", items);
    pricing.content.currency = currency;
    pricing.content.minimum_fee = Some(fixtures::price("100"));
    let terms = fixtures::agreed(&pricing, "2026-01-01", "2026-12-31");
    let contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), vec![terms]);
    let product = contract.products.first().expect("a product");
    let period = product.period_at(fixtures::date("2026-01-20")).expect("January");
    let event = CountedEvent {
        event_ref: EventRef::from_uuid(ids.new_id()),
        occurred_at: fixtures::at("2026-01-20T00:00:00Z"),
        service_date: fixtures::date("2026-01-20"),
        quantity: fixtures::quantity("1500.5"),
        is_distinct: None,
    };
    let used = UsageTotal::ZERO.plus(event).expect("a small sum");
    let key = |product: &str| usage_key(contract.contract_ref, &period, &fixtures::usage_product_ref(product));
    let usage = UsageTotals::new([(key("calls"), used), (key("storage"), used)]);
    let rates = DiscountAndTax { discount: fixtures::percent("10"), tax: fixtures::taxed("19.00") };
    let lines = lines_of_period(&contract, &period, period.terms.line_items.iter(), (&usage, &Charges::default()))
        .expect("small amounts");
    let lines = RatedLines { product_no: product.no, terms: period.terms, rates, lines };
    let content = total_up(currency, DocumentKind::Invoice, vec![lines], &FamilySums::default()).expect("a small amount");
    (contract, content)
}

pub(super) fn preview(currency: Currency) -> DocumentView {
    let (contract, content) = january(currency);
    let customer = fixtures::customer(&CountingIds::new(), "acme");
    let paper = fixtures::paper(&customer, &fixtures::entity("main"));
    DocumentView {
        opened: None,
        kind: DocumentKind::Invoice,
        state: DocumentState::Draft,
        purpose: Purpose::Regular(SlotKind::Period),
        contract_ref: contract.contract_ref,
        contract_number: contract.number_text(),
        parties: Parties::of(&customer, &fixtures::entity("main")),
        currency,
        net_terms: NetTerms::DueUponReceipt,
        payment: fixtures::full_payment(),
        period: fixtures::period("2026-01-01", "2026-01-31"),
        is_partial_period: false,
        format: CONTENT_FORMAT,
        issued: None,
        settlement: Settlement::none(currency),
        owed: OutstandingAmounts { amount_due: Some(content.total), written_off: Money::zero(currency), unapplied: None },
        applications: Vec::new(),
        write_offs: Vec::new(),
        total_prepaid: content.total_prepaid().expect("a small sum"),
        content,
        po_number: None,
        note: None,
        paper,
        at_issue: None,
        missing_glyphs: None,
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn a_preview_is_shown_without_what_a_document_gets_when_it_is_opened() {
    assert_snapshot!(presented(&DocumentJson::from(&preview(fixtures::eur()))), @r#"
    {
      "document_ref": null,
      "document_number": null,
      "kind": "INVOICE",
      "state": "DRAFT",
      "purpose": "REGULAR",
      "contract_ref": "019b76da-a802-7000-8000-000000000002",
      "contract_number": "C-1",
      "number_in_contract": null,
      "replaces_document_ref": null,
      "customer": {
        "customer_ref": "acme",
        "customer_name": "acme",
        "customer_legal_name": null,
        "address": null,
        "email": null,
        "tax_id": null,
        "vat_id": null,
        "registration": null,
        "electronic_address": null
      },
      "entity": {
        "entity_ref": "main",
        "entity_name": "main",
        "entity_legal_name": null,
        "address": null,
        "email": null,
        "tax_id": null,
        "vat_id": null,
        "registration": null,
        "electronic_address": null,
        "contact": null
      },
      "currency": "EUR",
      "net_terms": "DUE_UPON_RECEIPT",
      "period_start": "2026-01-01",
      "period_end": "2026-01-31",
      "is_partial_period": false,
      "created_at": null,
      "updated_at": null,
      "issue_date": null,
      "due_date": null,
      "paid_date": null,
      "overdue": false,
      "parent_document_ref": null,
      "parent_document_number": null,
      "related_documents": [],
      "products": [
        {
          "product_no": 0,
          "product_pricing_ref": "api",
          "product_name": "api",
          "minimum_fee": 100,
          "line_items": [
            {
              "line_item_id": "base",
              "name": "base",
              "service_period_start": "2026-01-01",
              "service_period_end": "2026-01-31",
              "usage_product_ref": null,
              "quantity": null,
              "billable_quantity": 1,
              "unit": null,
              "unit_code": "C62",
              "unit_price": 20,
              "tiers": [],
              "amount": 20.00
            },
            {
              "line_item_id": "calls",
              "name": "calls",
              "service_period_start": "2026-01-01",
              "service_period_end": "2026-01-31",
              "usage_product_ref": "calls",
              "quantity": 1500.5,
              "usage_quantity": 1500.5,
              "billable_quantity": 1500.5,
              "unit": null,
              "unit_code": "C62",
              "unit_price": 0.0025,
              "tiers": [],
              "amount": 3.75
            },
            {
              "line_item_id": "storage",
              "name": "storage",
              "service_period_start": "2026-01-01",
              "service_period_end": "2026-01-31",
              "usage_product_ref": "storage",
              "quantity": 1500.5,
              "usage_quantity": 1500.5,
              "billable_quantity": 1500.5,
              "unit": null,
              "unit_code": "C62",
              "unit_price": null,
              "tiers": [
                {
                  "from": 0,
                  "up_to": 100,
                  "unit_price": 0.10,
                  "flat_amount": 0,
                  "quantity": 100,
                  "amount": 10
                },
                {
                  "from": 100,
                  "up_to": 1000,
                  "unit_price": 0.05,
                  "flat_amount": 1,
                  "quantity": 900,
                  "amount": 46
                },
                {
                  "from": 1000,
                  "up_to": null,
                  "unit_price": 0.01,
                  "flat_amount": 0,
                  "quantity": 500.5,
                  "amount": 5.005
                }
              ],
              "amount": 61.01
            },
            {
              "line_item_id": null,
              "name": "Minimum fee",
              "service_period_start": "2026-01-01",
              "service_period_end": "2026-01-31",
              "usage_product_ref": null,
              "quantity": null,
              "unit": null,
              "unit_code": "C62",
              "unit_price": null,
              "tiers": [],
              "minimum_fee": 100,
              "billed_for_minimum_fee": 84.76,
              "amount": 15.24
            }
          ],
          "sub_total": 100.00,
          "discount_rate": 10,
          "discount": 10.00,
          "net": 90.00,
          "tax_rate": 19.00,
          "tax_category": "S",
          "exemption_code": null,
          "exemption_reason": null
        }
      ],
      "taxes": [
        {
          "tax_category": "S",
          "exemption_code": null,
          "exemption_reason": null,
          "rate": 19.00,
          "base": 90.00,
          "amount": 17.10
        }
      ],
      "sub_total": 100.00,
      "total_discount": 10.00,
      "prepaid": [],
      "total_prepaid": 0.00,
      "total_tax": 17.10,
      "credits_amount": 0.00,
      "total": 107.10,
      "paid_amount": 0.00,
      "written_off_amount": 0.00,
      "amount_due": 107.10,
      "applied_at_issue": [],
      "due_at_issue": null,
      "unapplied_amount": null,
      "applications": [],
      "write_offs": [],
      "po_number": null,
      "note": null,
      "billing_bank_transfer_details": {
        "billing_account_id": "account-1"
      },
      "billing_online_payment_details": {
        "auto_charge": false,
        "payment_gateway_id": "gateway-1",
        "payment_gateway_card_id": "card-1"
      },
      "billing_crypto_details": {
        "address": "0xabc",
        "tokens": [
          "USDC",
          "DAI"
        ]
      },
      "bank_account": null,
      "buyer_reference": null,
      "corrects": null,
      "corrects_last": null,
      "tax_in_currency": null,
      "tax_label": "VAT",
      "legal_notes": [],
      "logo": null,
      "accent_color": null,
      "footer": null,
      "language": "en",
      "paper_size": "A4",
      "format": 4,
      "missing": [
        "/customer/legal_name",
        "/customer/address",
        "/entity/legal_name",
        "/entity/address",
        "/entity/vat_id"
      ],
      "missing_glyphs": null
    }
    "#);
}

#[test]
fn prepaid_credit_is_shown_between_discount_and_tax() {
    let mut view = preview(fixtures::eur());
    let prepaid = |name: &str, sold_by, cents, unit| PrepaidAmount {
        grant_ref: CreditGrantRef::from_uuid(CountingIds::new().new_id()),
        name: fixtures::line(name),
        sold_by,
        treatment: fixtures::taxed("19.00"),
        amount: fixtures::cents(cents),
        unit,
    };
    let number =
        DocumentNumber { prefix: fixtures::entity("main").profile.number_prefix, kind: DocumentKind::Invoice, sequence: 1 };
    let unit = fixtures::credit_unit("EUR", "0.01").of(fixtures::eur()).cloned();
    let taken = vec![prepaid("Gift", None, 500, None), prepaid("Credit", Some(number), 3500, unit)];
    view.content = view.content.with_prepaid(view.kind, taken, &FamilySums::default()).expect("small amounts");
    view.total_prepaid = view.content.total_prepaid().expect("a small sum");
    assert_fits(&DocumentJson::from(&view));
    let shown = posted_back(&DocumentJson::from(&view));
    let gift = r#"{"grant_ref":"019b76da-a801-7000-8000-000000000001","name":"Gift","tax_rate":19.00,"tax_category":"S","amount":5.00,"units":null}"#;
    let credit = gift.replace("Gift", "Credit").replace("5.00", "35.00").replace("null", r#"{"name":"credits","amount":3500}"#);
    assert_eq!(shown["prepaid"].to_string(), format!("[{gift},{credit}]"));
    // 100.00 less a discount of 10.00 and credit of 40.00, and 19 % of the rest.
    let totals = ["sub_total", "total_discount", "total_prepaid", "total_tax", "total"].map(|name| shown[name].to_string());
    assert_eq!(totals, ["100.00", "10.00", "40.00", "9.50", "59.50"]);
    assert_eq!(shown["taxes"][0]["base"].to_string(), "50.00");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn an_issued_document_is_shown_with_its_dates_its_parent_and_what_was_paid() {
    let (ids, eur) = (CountingIds::new(), fixtures::eur());
    let mut view = preview(eur);
    let number = fixtures::document_head(&ids, &january(eur).0, &fixtures::entity("main"), view.period).number;
    let related = |kind, purpose| RelatedDocument {
        document_ref: DocumentRef::from_uuid(ids.new_id()),
        number: number.clone(),
        kind,
        purpose,
        state: DocumentState::Issued,
    };
    let parent = related(DocumentKind::Invoice, Purpose::Regular(SlotKind::Period));
    let child = related(DocumentKind::Credit, Purpose::Adjustment);
    view.opened = Some(OpenedFields {
        document_ref: DocumentRef::from_uuid(ids.new_id()),
        number: number.clone(),
        number_in_contract: 2,
        replaces: Some(DocumentRef::from_uuid(ids.new_id())),
        parent: Some(parent),
        related: vec![child],
        created_at: fixtures::at("2026-01-20T10:15:30Z"),
        updated_at: fixtures::at("2026-02-03T08:00:00Z"),
    });
    view.kind = DocumentKind::Debit;
    view.state = DocumentState::PartiallyPaid;
    view.purpose = Purpose::Adjustment;
    view.net_terms = NetTerms::Days(14);
    view.issued = Some(IssueDates {
        issue_date: fixtures::date("2026-02-01"),
        due_date: Some(fixtures::date("2026-02-15")),
        overdue: true,
    });
    view.settlement = Settlement { paid: fixtures::cents(3080), credits: fixtures::cents(10), ..view.settlement };
    view.owed = view.settlement.owed(view.kind, LifecycleStatus::Issued, view.content.total).expect("a small amount");
    view.po_number = Some(fixtures::line("PO 17"));
    view.note = Some(fixtures::prose("Thank\nyou"));
    view.payment = Default::default();
    let applied = AppliedAtIssue { document_number: Some(number), amount: fixtures::cents(10) };
    view.at_issue = Some(AtIssue::new(view.content.total, vec![applied]).expect("a small amount"));
    view.content.products.clear();
    assert_snapshot!(presented(&DocumentJson::from(&view)), @r#"
    {
      "document_ref": "019b76da-a804-7000-8000-000000000004",
      "document_number": "MAIN-INV-1",
      "kind": "DEBIT",
      "state": "PARTIALLY_PAID",
      "purpose": "ADJUSTMENT",
      "contract_ref": "019b76da-a802-7000-8000-000000000002",
      "contract_number": "C-1",
      "number_in_contract": 2,
      "replaces_document_ref": "019b76da-a805-7000-8000-000000000005",
      "customer": {
        "customer_ref": "acme",
        "customer_name": "acme",
        "customer_legal_name": null,
        "address": null,
        "email": null,
        "tax_id": null,
        "vat_id": null,
        "registration": null,
        "electronic_address": null
      },
      "entity": {
        "entity_ref": "main",
        "entity_name": "main",
        "entity_legal_name": null,
        "address": null,
        "email": null,
        "tax_id": null,
        "vat_id": null,
        "registration": null,
        "electronic_address": null,
        "contact": null
      },
      "currency": "EUR",
      "net_terms": 14,
      "period_start": "2026-01-01",
      "period_end": "2026-01-31",
      "is_partial_period": false,
      "created_at": "2026-01-20T10:15:30Z",
      "updated_at": "2026-02-03T08:00:00Z",
      "issue_date": "2026-02-01",
      "due_date": "2026-02-15",
      "paid_date": null,
      "overdue": true,
      "parent_document_ref": "019b76da-a802-7000-8000-000000000002",
      "parent_document_number": "MAIN-INV-1",
      "related_documents": [
        {
          "document_ref": "019b76da-a803-7000-8000-000000000003",
          "document_number": "MAIN-INV-1",
          "kind": "CREDIT",
          "purpose": "ADJUSTMENT",
          "state": "ISSUED"
        }
      ],
      "products": [],
      "taxes": [
        {
          "tax_category": "S",
          "exemption_code": null,
          "exemption_reason": null,
          "rate": 19.00,
          "base": 90.00,
          "amount": 17.10
        }
      ],
      "sub_total": 100.00,
      "total_discount": 10.00,
      "prepaid": [],
      "total_prepaid": 0.00,
      "total_tax": 17.10,
      "credits_amount": 0.10,
      "total": 107.10,
      "paid_amount": 30.80,
      "written_off_amount": 0.00,
      "amount_due": 76.20,
      "applied_at_issue": [
        {
          "document_number": "MAIN-INV-1",
          "amount": 0.10
        }
      ],
      "due_at_issue": 107.00,
      "unapplied_amount": null,
      "applications": [],
      "write_offs": [],
      "po_number": "PO 17",
      "note": "Thank\nyou",
      "billing_bank_transfer_details": null,
      "billing_online_payment_details": null,
      "billing_crypto_details": null,
      "bank_account": null,
      "buyer_reference": null,
      "corrects": null,
      "corrects_last": null,
      "tax_in_currency": null,
      "tax_label": "VAT",
      "legal_notes": [],
      "logo": null,
      "accent_color": null,
      "footer": null,
      "language": "en",
      "paper_size": "A4",
      "format": 4,
      "missing": [
        "/customer/legal_name",
        "/customer/address",
        "/entity/legal_name",
        "/entity/address",
        "/entity/vat_id"
      ],
      "missing_glyphs": null
    }
    "#);
}

#[test]
fn money_has_the_digits_of_its_currency() {
    let rows = [("EUR", 3080, "30.80"), ("JPY", 3080, "3080"), ("KWD", 3080, "3.080"), ("EUR", 0, "0.00"), ("EUR", -5, "-0.05")];
    for (code, minor, expected) in rows {
        let currency = fixtures::currency(code);
        let mut view = preview(currency);
        view.content.total = Money::from_minor(minor, currency);
        assert_eq!(posted_back(&DocumentJson::from(&view))["total"].to_string(), expected, "{code} {minor}");
    }
    let yen = posted_back(&DocumentJson::from(&preview(fixtures::currency("JPY"))));
    assert_eq!((yen["sub_total"].to_string(), yen["total_tax"].to_string()), ("100".to_owned(), "17".to_owned()));
}
