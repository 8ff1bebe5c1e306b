//! Legal particulars of documents: the requirements of an EU and a US payer, frozen with the invoice and unchanged after edits of
//! every source.

use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, books, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    a_reverse_charge_invoice_keeps_what_an_eu_payer_expects,
    a_sales_tax_invoice_keeps_what_a_us_payer_expects,
    a_strict_entity_issues_complete_papers_alone,
    tax_in_the_sellers_own_currency_waits_for_its_rate,
    what_is_not_subject_to_tax_stands_alone,
    documents_opened_in_one_run_name_each_other_by_their_numbers,
    the_appearance_of_a_sellers_documents_is_frozen_with_them,
);

const IBAN: &str = "DE89370400440532013000";

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.text_of("code").as_str()), (status, code), "{}", answer.text);
}

fn german_seller() -> Value {
    json!({
        "entity_ref": "seller",
        "name": "Seller",
        "legal_name": "Seller GmbH",
        "number_prefix": "SEL",
        "address": {"line1": "Am Markt 1", "city": "Bremen", "zip_code": "28195", "country": "Germany", "country_code": "DE"},
        "tax_id": "60/123/45678",
        "vat_id": "DE123456789",
        "registration": {"scheme": "0002", "value": "303265045"},
        "electronic_address": {"scheme": "EM", "value": "seller@example.com"},
        "contact": {"name": "Billing", "phone": "+49 421 1234", "email": "billing@example.com"},
        "legal_notes": [{"subject_code": "PMD", "text": "Late payment: 9 %"}, {"text": "Register court Bremen HRB 1"}],
        "billing_bank_transfer_details": {"billing_account_id": "main"},
    })
}

fn french_customer() -> Value {
    json!({
        "customer_ref": catalog::ACME,
        "name": "Acme",
        "legal_name": "Acme SAS",
        "email": "compta@acme.example",
        "tax_id": "123",
        "billing_address": {"line1": "1 rue de la Paix", "city": "Paris", "zip_code": "75002", "country_code": "FR"},
        "vat_id": "FR40303265045",
        "electronic_address": {"scheme": "0225", "value": "303265045"},
        "language": "fr",
        "tax": 0,
        "tax_category": "AE",
        "exemption_code": "VATEX-EU-AE",
        "exemption_reason": "Reverse charge",
        "buyer_reference": "04011000-12345-35",
    })
}

/// Creates a seller, a customer, a bank account, the API plan with a unit code, and a contract with 1,500 calls that ended ten
/// days ago.
fn sell(client: &Client, entity: &Value, customer: &Value, account: &Value, product: &Value) -> String {
    catalog::make_plan(client);
    client.post(&format!("/api/usage/products/edit/{}", catalog::API_CALLS), &json!({"unit_code": "E34"})).ok();
    client.post("/api/bank_accounts/", account).ok();
    client.post("/api/entities/", entity).ok();
    client.post("/api/customers/", customer).ok();
    let product = catalog::with(catalog::with(catalog::ended(catalog::API_PLAN), &json!({"entity_ref": "seller"})), product);
    let contract_ref = catalog::sell(client, &[product]);
    books::report(client, &call(1500));
    contract_ref
}

fn call(quantity: u32) -> Value {
    catalog::event_on(catalog::ACME, Day::today().plus_days(-20), quantity)
}

/// Edits every object that an invoice takes data from.
fn edit_everything(client: &Client) {
    let edits = [
        (
            "/api/entities/edit/seller".to_owned(),
            json!({"legal_name": "Other GmbH", "address": {"city": "Hamburg"}, "vat_id": "DE999999999", "tax_id": null,
                "registration": null, "electronic_address": null, "contact": null, "legal_notes": null, "language": "pl",
                "tax_label": "Other", "paper_size": "A4", "paper": "STRICT"}),
        ),
        (
            format!("/api/customers/edit/{}", catalog::ACME),
            json!({"name": "Other", "legal_name": null, "email": null, "billing_address": null, "vat_id": null, "tax_id": null,
                "electronic_address": null, "registration": null, "language": "it", "tax": 5, "tax_category": null,
                "exemption_code": null, "exemption_reason": null, "buyer_reference": null}),
        ),
        ("/api/bank_accounts/edit/main".to_owned(), json!({"iban": null, "account_number": "other", "routing_number": null})),
        (format!("/api/usage/products/edit/{}", catalog::API_CALLS), json!({"unit_code": "C62"})),
    ];
    for (path, body) in edits {
        client.post(&path, &body).ok();
    }
}

fn a_reverse_charge_invoice_keeps_what_an_eu_payer_expects(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let account = json!({"billing_account_id": "main", "account_name": "Seller GmbH", "iban": IBAN, "bic": "COBADEFFXXX",
        "bank_name": "Commerzbank"});
    sell(&client, &german_seller(), &french_customer(), &account, &json!({}));
    let draft = books::numbered(&client, "SEL-INV-1");
    assert_eq!((&draft["state"], &draft["format"], &draft["missing"]), (&json!("DRAFT"), &json!(4), &json!([])));
    assert_eq!(draft["customer"]["vat_id"], "FR40303265045", "a draft shows current data");

    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "SEL-INV-1");
    assert_eq!((&invoice["state"], &invoice["format"], &invoice["missing"]), (&json!("ISSUED"), &json!(4), &json!([])));
    let customer = json!({
        "customer_ref": "acme", "customer_name": "Acme", "customer_legal_name": "Acme SAS",
        "address": {"line1": "1 rue de la Paix", "line2": null, "city": "Paris", "state": null, "zip_code": "75002",
            "country": null, "country_code": "FR"},
        "email": "compta@acme.example", "tax_id": "123", "vat_id": "FR40303265045", "registration": null,
        "electronic_address": {"scheme": "0225", "value": "303265045"},
    });
    assert_eq!(invoice["customer"], customer);
    let entity = json!({
        "entity_ref": "seller", "entity_name": "Seller", "entity_legal_name": "Seller GmbH",
        "address": {"line1": "Am Markt 1", "line2": null, "city": "Bremen", "state": null, "zip_code": "28195",
            "country": "Germany", "country_code": "DE"},
        "email": "billing@example.com", "tax_id": "60/123/45678", "vat_id": "DE123456789",
        "registration": {"scheme": "0002", "value": "303265045"},
        "electronic_address": {"scheme": "EM", "value": "seller@example.com"},
        "contact": {"name": "Billing", "phone": "+49 421 1234", "email": "billing@example.com"},
    });
    assert_eq!(invoice["entity"], entity);
    let bank = json!({"billing_account_id": "main", "account_name": "Seller GmbH", "iban": IBAN, "account_number": null,
        "routing_number": null, "bic": "COBADEFFXXX", "bank_name": "Commerzbank"});
    assert_eq!(invoice["bank_account"], bank);
    let notes = json!([{"subject_code": "PMD", "text": "Late payment: 9 %"},
        {"subject_code": null, "text": "Register court Bremen HRB 1"}]);
    assert_eq!(invoice["legal_notes"], notes);
    let paper =
        books::fields(&invoice, ["buyer_reference", "language", "paper_size", "tax_label", "corrects", "tax_in_currency"]);
    assert_eq!(paper, ["04011000-12345-35", "fr", "A4", "TVA", "null", "null"]);
    let taxed =
        books::fields(&invoice["taxes"][0], ["tax_category", "exemption_code", "exemption_reason", "rate", "base", "amount"]);
    assert_eq!(taxed, ["AE", "VATEX-EU-AE", "Reverse charge", "0", "109.00", "0.00"]);
    let product = &invoice["products"][0];
    assert_eq!(books::fields(product, ["tax_category", "exemption_code", "exemption_reason"]), taxed[..3]);
    let units: Vec<&Value> = product["line_items"].as_array().expect("lines").iter().map(|line| &line["unit_code"]).collect();
    assert_eq!(units, ["C62", "E34"]);

    edit_everything(&client);
    assert_eq!(books::frozen(&books::numbered(&client, "SEL-INV-1")), books::frozen(&invoice), "unchanged to the byte");

    // A correction names the corrected document and shows current data.
    client.post("/api/entities/edit/seller", &json!({"paper": null})).ok();
    books::report(&client, &call(100));
    let debit = books::numbered(&client, "SEL-DBT-1");
    let corrects = json!({"document_number": "SEL-INV-1", "issue_date": Day::today().to_string()});
    assert_eq!((&debit["corrects"], &debit["customer"]["vat_id"]), (&corrects, &Value::Null));
    assert_eq!(debit["missing"], json!(["/customer/legal_name", "/customer/address"]), "the debit keeps the reverse charge");
    books::issue(&client, &debit["document_ref"]).ok();
    let issued = books::numbered(&client, "SEL-DBT-1");
    assert_eq!((&issued["corrects"], &issued["missing"], &issued["state"]), (&corrects, &debit["missing"], &json!("ISSUED")));
}

fn a_sales_tax_invoice_keeps_what_a_us_payer_expects(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let seller = json!({
        "entity_ref": "seller", "name": "Seller", "legal_name": "Seller Inc.", "number_prefix": "SEL", "tax_id": "12-3456789",
        "address": {"line1": "1 Main St", "city": "New York", "state": "NY", "zip_code": "10001", "country_code": "US"},
        "timezone": "America/New_York",
    });
    let customer = json!({
        "customer_ref": catalog::ACME, "name": "Acme", "legal_name": "Acme Corp.",
        "billing_address": {"line1": "2 Side St", "city": "Albany", "state": "NY", "zip_code": "12207", "country_code": "US"},
        "billing_bank_transfer_details": {"billing_account_id": "elsewhere"},
    });
    let account = json!({"billing_account_id": "main", "account_number": "000123456789", "routing_number": "021000021"});
    let product =
        json!({"tax": "8.875", "buyer_reference": "PO-7", "billing_bank_transfer_details": {"billing_account_id": "main"}});
    let contract_ref = sell(&client, &seller, &customer, &account, &product);

    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "SEL-INV-1");
    assert_eq!(invoice["missing"], json!([]));
    assert_eq!(books::fields(&invoice["customer"]["address"], ["city", "state", "zip_code"]), ["Albany", "NY", "12207"]);
    let bank = books::fields(&invoice["bank_account"], ["billing_account_id", "iban", "account_number", "routing_number"]);
    assert_eq!(bank, ["main", "null", "000123456789", "021000021"]);
    let paper = books::fields(&invoice, ["buyer_reference", "language", "paper_size", "tax_label"]);
    assert_eq!(paper, ["PO-7", "en", "LETTER", "Sales tax"]);
    let taxed = books::fields(&invoice["taxes"][0], ["tax_category", "exemption_code", "rate", "base", "amount"]);
    assert_eq!(taxed, ["S", "null", "8.875", "109.00", "9.67"]);

    edit_everything(&client);
    assert_eq!(books::frozen(&books::numbered(&client, "SEL-INV-1")), books::frozen(&invoice), "unchanged to the byte");
    let product = client.get(&format!("/api/contracts/{contract_ref}")).ok()["products"][0].clone();
    assert_eq!(books::fields(&product, ["buyer_reference", "tax_category"]), ["PO-7", "null"]);
}

fn a_strict_entity_issues_complete_papers_alone(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let seller = json!({"entity_ref": "seller", "name": "Seller", "number_prefix": "SEL", "paper": "STRICT"});
    // The account isn't recorded here, so the invoice shows only its name.
    let customer = json!({"customer_ref": catalog::ACME, "name": "Acme", "tax": 19,
        "billing_bank_transfer_details": {"billing_account_id": "at the bank / 1"}});
    let account = json!({"billing_account_id": "main", "iban": IBAN});
    sell(&client, &seller, &customer, &account, &json!({}));
    let missing = json!(["/customer/legal_name", "/customer/address", "/entity/legal_name", "/entity/address", "/entity/vat_id"]);
    let draft = books::numbered(&client, "SEL-INV-1");
    assert_eq!(draft["missing"], missing);

    let report = client.post("/api/billing/run", &json!({})).ok();
    assert_eq!((&report["issued"], &report["failed"][0]["problem"]["code"]), (&json!([]), &json!("paper_incomplete")));
    let kept = client.get(&format!("/api/billing/runs/{}", report["run_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(kept["failures"], report["failed"]);
    refused(&books::issue(&client, &draft["document_ref"]), 409, "paper_incomplete");
    books::report(&client, &call(1));
    assert_eq!(books::numbered(&client, "SEL-INV-1")["state"], "DRAFT", "usage is still accepted");

    let address = json!({"line1": "Somewhere"});
    client.post("/api/entities/edit/seller", &json!({"legal_name": "Seller GmbH", "address": address, "tax_id": "1"})).ok();
    client.post("/api/customers/edit/acme", &json!({"legal_name": "Acme Ltd", "billing_address": address})).ok();
    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "SEL-INV-1");
    assert_eq!((&invoice["missing"], &invoice["bank_account"]), (&json!([]), &Value::Null));
    assert_eq!(invoice["billing_bank_transfer_details"], json!({"billing_account_id": "at the bank / 1"}));
}

fn tax_in_the_sellers_own_currency_waits_for_its_rate(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let seller = json!({"entity_ref": "seller", "name": "Seller", "number_prefix": "SEL", "tax_currency": "PLN"});
    let customer = json!({"customer_ref": catalog::ACME, "name": "Acme", "tax": 19});
    sell(&client, &seller, &customer, &json!({"billing_account_id": "main", "iban": IBAN}), &json!({}));
    let rate = |day: Day, rate: &str| {
        let body = json!({"from": "EUR", "to": "PLN", "date": day.to_string(), "rate": rate});
        client.post("/api/exchange_rates/", &body).ok()
    };
    rate(Day::today().plus_days(2), "9");
    assert_eq!(books::numbered(&client, "SEL-INV-1")["tax_in_currency"], Value::Null);

    let report = client.post("/api/billing/run", &json!({})).ok();
    assert_eq!((&report["issued"], &report["failed"][0]["problem"]["code"]), (&json!([]), &json!("exchange_rate_missing")));

    rate(Day::today().plus_days(-9), "4.1");
    rate(Day::today().plus_days(-3), "42.5");
    assert_eq!(rate(Day::today().plus_days(-3), "4.25")["rate"].to_string(), "4.25");
    assert_eq!(client.get("/api/exchange_rates/filter").ok().as_array().map(Vec::len), Some(3));
    assert_eq!(books::run(&client).len(), 1);
    rate(Day::today().plus_days(-1), "5");
    let tax = books::numbered(&client, "SEL-INV-1")["tax_in_currency"].clone();
    let shown = books::fields(&tax, ["currency", "exchange_rate", "exchange_rate_date", "amounts", "total_tax"]);
    // 19 % of 109.00 is 20.71.
    assert_eq!(shown, ["PLN", "4.25", &Day::today().plus_days(-3).to_string(), "[88.02]", "88.02"]);
}

fn what_is_not_subject_to_tax_stands_alone(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_pricing(&client, "untaxed", &json!([catalog::fixed("fee", "10")]));
    let untaxed = json!({"tax": 0, "tax_category": "O", "exemption_code": "VATEX-EU-O"});
    let products = [catalog::months(catalog::API_PLAN, 0, 1), catalog::with(catalog::months("untaxed", 0, 1), &untaxed)];
    let contract = |products: &[Value]| client.post("/api/contracts/", &json!({"customer_ref": "acme", "products": products}));

    refused(&contract(&products), 422, "o_stands_alone");
    let wrong = catalog::with(products[1].clone(), &json!({"tax": 1}));
    let answer = contract(&[wrong]);
    refused(&answer, 422, "tax_category_rate");
    assert_eq!(answer.body["errors"][0]["pointer"], "/products/0/tax_category");
    let contract_ref = contract(&products[1..]).text_of("contract_ref");
    let product = client.get(&format!("/api/contracts/{contract_ref}")).ok()["products"][0].clone();
    let agreed = books::fields(&product, ["tax_category", "exemption_code", "exemption_reason"]);
    assert_eq!(agreed, ["O", "VATEX-EU-O", "null"]);

    let mixed = json!({"products": products});
    refused(&books::edit(&client, &contract_ref, &mixed), 422, "o_stands_alone");
    let reason = json!({"products": [{"product_pricing_ref": "untaxed", "exemption_code": null}]});
    refused(&books::edit(&client, &contract_ref, &reason), 422, "exemption_reason_required");
}

fn documents_opened_in_one_run_name_each_other_by_their_numbers(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let in_advance = json!({"payment_time": "BEFORE_USE", "minimum_fee": "100"});
    catalog::sell(&client, &[catalog::with(catalog::ended(catalog::API_PLAN), &in_advance)]);
    let issued = books::run(&client);
    let numbers: Vec<&Value> = issued.iter().map(|issued| &issued["document_number"]).collect();
    assert_eq!(numbers, ["UB-INV-1", "UB-DBT-1"]);
    let corrects = json!({"document_number": "UB-INV-1", "issue_date": Day::today().to_string()});
    assert_eq!(books::numbered(&client, "UB-DBT-1")["corrects"], corrects);
    assert_eq!(books::numbered(&client, "UB-INV-1")["corrects"], Value::Null);
}

/// A square as SVG.
const SQUARE: &str =
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxIDEiPjxwYXRoIGQ9Ik0wIDBoMXYxeiIvPjwvc3ZnPg==";
/// The same with a script.
const SCRIPT: &str = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxIDEiPjxzY3JpcHQvPjwvc3ZnPg==";

fn the_appearance_of_a_sellers_documents_is_frozen_with_them(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let account = json!({"billing_account_id": "main", "iban": IBAN});
    let seller = catalog::with(
        german_seller(),
        &json!({"logo": SQUARE, "accent_color": "#0B5CAD", "footer": "Register court Bremen\nHRB 12345"}),
    );
    sell(&client, &seller, &french_customer(), &account, &json!({}));
    let shown = client.get("/api/entities/seller").ok();
    let logo = shown["logo"].clone();
    assert!(logo.as_str().is_some_and(|logo| logo.starts_with("svg:") && logo.len() == 68), "{logo}");
    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "SEL-INV-1");
    let appearance = |value: &Value| [value["logo"].clone(), value["accent_color"].clone(), value["footer"].clone()];
    assert_eq!(appearance(&invoice), [logo.clone(), json!("#0b5cad"), json!("Register court Bremen\nHRB 12345")]);

    let edit = |fields: &Value| client.post("/api/entities/edit/seller", fields);
    assert_eq!(edit(&shown).ok()["logo"], logo, "what GET returns can be sent back");
    edit(&json!({"logo": null, "accent_color": null, "footer": null})).ok();
    let invoice_now = books::numbered(&client, "SEL-INV-1");
    assert_eq!(appearance(&invoice_now), appearance(&invoice), "the issued document keeps its appearance");
    assert_eq!(edit(&json!({"logo": logo})).ok()["logo"], logo, "a stored logo can be named by its hash");

    let unknown = format!("svg:{}", "0f".repeat(32));
    for (wrong, code) in [(unknown.as_str(), "invalid_value"), (SCRIPT, "invalid_value"), ("R0lGODlh", "invalid_format")] {
        let answer = edit(&json!({"logo": wrong}));
        let error = &answer.body["errors"][0];
        assert_eq!((answer.status, &error["pointer"], &error["code"]), (422, &json!("/logo"), &json!(code)), "{}", answer.text);
    }
}
