//! Legal content of parties and documents.

use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, LegalParticularsInput, SupplyCategory};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::party::Customer;
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::StoredExchangeRate;
use billing_domain::tax::{DatedTax, DefaultTaxes, ExchangeRate, StatedTax, TaxInCurrency};
use billing_testkit::{CountingIds, fixtures};
use serde_json::Value;

use super::super::bank_accounts::BankAccountJson;
use super::super::customers::CustomerJson;
use super::super::documents::DocumentJson;
use super::super::entities::EntityJson;
use super::super::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use super::documents::preview;
use super::schemas::assert_fits;
use super::{TODAY, check, check_field, json, posted_back, shown_customer, shown_entity};

/// Returns default taxes with reverse charge and without a start date.
fn reverse_charge() -> DefaultTaxes {
    DefaultTaxes::always(StatedTax { rate: None, basis: fixtures::reverse_charge() })
}

#[test]
fn a_default_tax_holds_from_a_day_and_what_is_posted_back_changes_none() {
    let mut customer = fixtures::customer(&CountingIds::new(), "acme");
    let edit = |body: &str, customer: &Customer| {
        super::customer_edit(&json(body), &customer.customer_ref, &customer.profile).map(|profile| profile.taxes)
    };
    let stated = |taxes: &DefaultTaxes| -> Vec<(Option<String>, Option<String>)> {
        let stated =
            |tax: &DatedTax| (tax.from.map(|day| day.to_string()), tax.stated.rate.map(|rate| rate.as_decimal().to_string()));
        taxes.as_slice().iter().map(stated).collect()
    };
    let since = |day: &str, rate: &str| (Some(day.to_owned()), Some(rate.to_owned()));
    // The first default tax has no start date. Later ones start today or on the given date.
    customer.profile.taxes = edit(r#"{"tax":19}"#, &customer).expect("an edit");
    let first = (None, Some("19".to_owned()));
    assert_eq!(stated(&customer.profile.taxes), std::slice::from_ref(&first));
    assert_eq!(stated(&edit(r#"{"tax":16}"#, &customer).expect("an edit")), [first.clone(), since(TODAY, "16")]);
    customer.profile.taxes = edit(r#"{"tax":16,"tax_from":"2026-07-01"}"#, &customer).expect("an edit");
    assert_eq!(stated(&customer.profile.taxes), [first.clone(), since("2026-07-01", "16")]);
    // A response has today's default tax. Posting it back retains planned ones.
    let shown = posted_back(&CustomerJson::from(&shown_customer(&customer)));
    assert_eq!((&shown["tax"], &shown["tax_category"]), (&json("19"), &json("null")));
    assert_eq!(
        shown["tax_treatments"],
        json(
            r#"[{"from":null,"tax":19,"tax_category":null,"exemption_code":null,"exemption_reason":null},
                {"from":"2026-07-01","tax":16,"tax_category":null,"exemption_code":null,"exemption_reason":null}]"#
        )
    );
    let kept = super::customer_edit(&shown, &customer.customer_ref, &customer.profile).expect("an edit");
    assert_eq!(kept.taxes, customer.profile.taxes);
    // An earlier date replaces planned default taxes. Omitted fields retain the values of that date.
    assert_eq!(
        stated(&edit(r#"{"tax":7,"tax_from":"2026-05-01"}"#, &customer).expect("an edit")),
        [first, since("2026-05-01", "7")]
    );
    let later = edit(r#"{"tax":0,"tax_category":"Z","tax_from":"2026-08-01"}"#, &customer).expect("an edit");
    assert_eq!(stated(&later).last(), Some(&since("2026-08-01", "0")));
    let rows: &[(&str, &[&str])] = &[
        (r#"{"tax_from":"2026-08-01"}"#, &["/tax_from not_allowed"]),
        (r#"{"tax_category":"Z","tax_from":"2026-08-01"}"#, &["/tax_category tax_category_rate"]),
        (r#"{"tax":7,"tax_from":"soon"}"#, &["/tax_from invalid_format"]),
    ];
    check(|body| super::customer_edit(body, &customer.customer_ref, &customer.profile), rows);
    let entity = fixtures::entity("main");
    let rows: &[(&str, &[&str])] = &[
        (r#"{"tax_from":"2026-08-01"}"#, &["/tax_from not_allowed"]),
        (r#"{"tax":7}"#, &["/tax unknown_field"]),
        (r#"{"tax_category":"Z","tax_from":"2026-08-01"}"#, &[]),
    ];
    check(|body| super::entity_edit(body, &entity.entity_ref, &entity.profile), rows);
}

#[test]
fn what_parties_say_of_themselves_is_read_as_it_is_shown() {
    let mut customer = fixtures::customer(&CountingIds::new(), "acme");
    customer.profile.legal = fixtures::full_legal("FR40303265045");
    customer.profile.buyer_reference = Some(fixtures::buyer_reference("04011000-12345-35"));
    let shown = CustomerJson::from(&shown_customer(&customer));
    assert_fits(&shown);
    let (_, read) = super::customer(&posted_back(&shown)).expect("a customer");
    assert_eq!(read, customer.profile);

    let mut entity = fixtures::entity("main");
    entity.profile.legal = fixtures::full_legal("DE123456789");
    entity.profile.taxes = reverse_charge();
    entity.profile.paper = fixtures::full_paper();
    let shown = EntityJson::from(&shown_entity(&entity, false));
    assert_fits(&shown);
    let (_, read) = super::entity(&posted_back(&shown)).expect("an entity");
    assert_eq!(read.profile, entity.profile);
    let cleared = r#"{"vat_id":null,"registration":null,"electronic_address":null,"language":null,"tax_category":null,
        "exemption_code":null,"exemption_reason":null,"logo":null,"accent_color":null,"footer":null,"paper":null,"paper_size":null,"tax_label":null,"contact":null,
        "legal_notes":null,"tax_currency":null,"e_invoice":null}"#;
    let mut read = super::entity_edit(&json(cleared), &entity.entity_ref, &entity.profile).expect("an edit").profile;
    assert_eq!(read.taxes, reverse_charge().with(StatedTax::default(), None, fixtures::date(TODAY)));
    read.taxes = DefaultTaxes::default();
    assert_eq!(read, fixtures::entity("main").profile);
    let kept = super::entity_edit(&json("{}"), &entity.entity_ref, &entity.profile).expect("an edit").profile;
    assert_eq!(kept, entity.profile);
}

#[test]
fn each_field_of_a_paper_is_held_against_its_form() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("vat_id", r#""EL123456789""#, &[]),
        ("vat_id", r#""GR123456789""#, &["/vat_id invalid_vat_id"]),
        ("registration", r#"{"value":"HRB 1"}"#, &[]),
        ("registration", r#"{"scheme":"EM"}"#, &["/registration/scheme unknown_scheme", "/registration/value required"]),
        ("electronic_address", r#"{"value":"a"}"#, &["/electronic_address/scheme required"]),
        ("electronic_address", r#"{"scheme":"EM","value":"a","kind":1}"#, &["/electronic_address/kind unknown_field"]),
        ("language", r#""sv""#, &[]),
        ("language", r#""xx""#, &["/language invalid_value"]),
        ("buyer_reference", r#""""#, &["/buyer_reference too_short"]),
        ("e_invoice_profile", r#""FACTUR_X""#, &[]),
        ("e_invoice_profile", r#""ZUGFERD""#, &["/e_invoice_profile invalid_value"]),
        ("tax_category", r#""K""#, &["/tax_category invalid_value"]),
        ("tax_category", r#""G""#, &["/exemption_reason exemption_reason_required"]),
        ("exemption_code", r#""VATEX""#, &["/exemption_code unknown_exemption_code"]),
        ("exemption_reason", r#""Because""#, &["/exemption_reason not_allowed"]),
        ("billing_address", r#"{"country_code":"UK"}"#, &["/billing_address/country_code invalid_country_code"]),
    ];
    check_field(super::customer, r#"{"name":"Acme"}"#, rows);
}

#[test]
fn the_appearance_of_an_entitys_documents_is_held_against_its_form() {
    let hash = "0f".repeat(32);
    let known = format!("\"svg:{hash}\"");
    let rows: &[(&str, &str, &[&str])] = &[
        ("logo", &known, &[]),
        ("logo", r#""data:image/svg+xml;base64,PHN2Zy8+""#, &["/logo invalid_format"]),
        ("logo", r#""svg:0F""#, &["/logo invalid_format"]),
        ("logo", "1", &["/logo wrong_type"]),
        ("accent_color", r##""#0b5cad""##, &[]),
        ("accent_color", r#""blue""#, &["/accent_color invalid_format"]),
        ("accent_color", r##""#ffd700""##, &["/accent_color out_of_range"]),
        ("footer", r#""Register court Bremen\nHRB 12345""#, &[]),
        ("footer", r#""""#, &["/footer too_short"]),
        ("e_invoice", r#"{"profile":"PEPPOL","required":true}"#, &[]),
        ("e_invoice", r#"{"required":true}"#, &[]),
        (
            "e_invoice",
            r#"{"profile":"UBL","mandatory":true}"#,
            &["/e_invoice/profile invalid_value", "/e_invoice/mandatory unknown_field"],
        ),
        ("e_invoice", r#"{"profile":"NONE","required":true}"#, &["/e_invoice/required not_allowed"]),
        (
            "e_invoice",
            r#"{"profile":"XRECHNUNG"}"#,
            &["/contact/name required", "/contact/phone required", "/contact/email required"],
        ),
    ];
    check_field(super::entity, r#"{"name":"Main","number_prefix":"MAIN"}"#, rows);
    let too_long = json(&format!(r#"{{"name":"Main","number_prefix":"MAIN","footer":"{}"}}"#, "ä".repeat(501)));
    assert_eq!(
        super::entity(&too_long).expect_err("a long footer").iter().map(|found| found.code).collect::<Vec<_>>(),
        ["too_long"]
    );
}

#[test]
fn a_bank_account_has_one_number() {
    let account = fixtures::bank_account("main");
    let shown = BankAccountJson::from(&account);
    assert_fits(&shown);
    let (reference, profile) = super::bank_account(&posted_back(&shown)).expect("an account");
    assert_eq!((&reference, &profile), (&account.account_ref, &account.profile));
    let edit = |body| super::bank_account_edit(&json(body), &reference, &profile);
    let dollars = edit(r#"{"iban":null,"account_number":"1","routing_number":"021000021"}"#).expect("an edit");
    assert_fits(&BankAccountJson::from(&BankAccount { profile: dollars, ..account.clone() }));
    let refused = |body| edit(body).expect_err(body).iter().map(|found| found.code).collect::<Vec<_>>();
    assert_eq!(refused(r#"{"iban":null}"#), ["required"]);
    assert_eq!(refused(r#"{"account_number":"1"}"#), ["conflicting_fields"]);
    assert_eq!(refused(r#"{"billing_account_id":"other"}"#), ["not_changeable"]);
    let rows: &[(&str, &[&str])] = &[
        (r#"{"billing_account_id":"a b","iban":"DE"}"#, &["/billing_account_id invalid_format", "/iban invalid_iban"]),
        (r#"{"billing_account_id":"a"}"#, &["/iban required"]),
        (r#"{"billing_account_id":"a","iban":"DE89370400440532013000","swift":"a"}"#, &["/swift unknown_field"]),
    ];
    check(super::bank_account, rows);
}

#[test]
fn an_exchange_rate_is_between_two_currencies() {
    let read = |body| ExchangeRateBody::read_rate(&json(body));
    let rate = read(r#"{"from":"USD","to":"EUR","date":"2026-01-31","rate":"0.920"}"#).expect("a rate");
    let rate = StoredExchangeRate { rate, updated_at: fixtures::at("2026-01-01T00:00:00Z") };
    assert_fits(&ExchangeRateJson::from(&rate));
    assert_eq!(posted_back(&ExchangeRateJson::from(&rate))["rate"].to_string(), "0.920");
    let rows: &[(&str, &[&str])] = &[
        (r#"{"from":"USD","to":"USD","date":"2026-01-31","rate":1}"#, &["/to out_of_range"]),
        (r#"{"from":"USD","to":"EUR","date":"2026-02-30","rate":-1}"#, &["/date invalid_format", "/rate out_of_range"]),
    ];
    check(ExchangeRateBody::read_rate, rows);
}

#[test]
fn a_document_shows_its_paper_and_format_1_says_that_it_has_none() {
    let mut view = preview(fixtures::eur());
    let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
    customer.profile.legal = fixtures::full_legal("FR40303265045");
    entity.profile.legal = fixtures::full_legal("DE123456789");
    entity.profile.paper = fixtures::full_paper();
    let rate = ExchangeRate {
        from: fixtures::eur(),
        to: fixtures::currency("CHF"),
        date: fixtures::date("2026-01-30"),
        rate: fixtures::price("0.93"),
    };
    let number = DocumentNumber { prefix: entity.profile.number_prefix.clone(), kind: view.kind, sequence: 7 };
    let facts = LegalParticularsInput {
        buyer_reference: Some(fixtures::buyer_reference("PO-7")),
        bank_account: Some(fixtures::bank_account("account-1").profile),
        corrects: Some(CorrectedDocument { number: number.clone(), issue_date: fixtures::date("2025-12-31") }),
        corrects_last: Some(CorrectedDocument {
            number: DocumentNumber { sequence: 9, ..number },
            issue_date: fixtures::date("2026-01-02"),
        }),
        tax_in_currency: TaxInCurrency::of([fixtures::cents(100)], rate).ok(),
        supply: Some(SupplyCategory::Services),
    };
    // Only French sellers state what they bill.
    let paper = LegalParticulars { supply: facts.supply, ..LegalParticulars::of(&customer, &entity, facts) };
    view.paper = Some(Box::new(paper));
    let shown = DocumentJson::from(&view);
    assert_fits(&shown);
    let shown = posted_back(&shown);
    assert_eq!(shown["bank_account"]["iban"], "DE89370400440532013000");
    assert_eq!(shown["corrects"], json(r#"{"document_number":"MAIN-INV-7","issue_date":"2025-12-31"}"#));
    assert_eq!(shown["supply"], "SERVICES");
    assert_eq!(shown["corrects_last"], json(r#"{"document_number":"MAIN-INV-9","issue_date":"2026-01-02"}"#));
    assert_eq!((&shown["tax_in_currency"]["total_tax"].to_string(), &shown["format"]), (&"0.93".to_owned(), &json("4")));
    assert_eq!(
        (&shown["tax_label"], &shown["paper_size"], &shown["language"]),
        (&json("\"MWSt.\""), &json("\"LETTER\""), &json("\"fr\""))
    );
    assert_eq!(shown["missing"], json(r#"["/customer/legal_name","/customer/address","/entity/legal_name","/entity/address"]"#));

    (view.paper, view.format) = (None, 1);
    let shown = DocumentJson::from(&view);
    assert_fits(&shown);
    let shown = posted_back(&shown);
    assert_eq!((&shown["format"], &shown["missing"]), (&json("1"), &json(r#"["/format"]"#)));
    assert_eq!(
        (&shown["customer"]["address"], &shown["language"], &shown["legal_notes"]),
        (&Value::Null, &Value::Null, &json("[]"))
    );
}
