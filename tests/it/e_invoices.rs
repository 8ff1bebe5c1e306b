//! E-invoices over HTTP: files that stay the same, documents that lack terms, entities that require e-invoices, and the check
//! before a document exists. The official rules check the files in `billing-einvoice` and in `tests/all`.

use std::thread;

use acceptance::client::Request;
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    an_e_invoice_is_one_file_for_ever,
    an_incomplete_document_names_all_that_its_e_invoice_lacks,
    an_entity_that_requires_e_invoices_waits_for_complete_data,
    the_profile_at_the_issue_decides_on_the_syntax,
    the_check_of_a_customer_names_what_is_missing,
    the_settings_of_an_entity_agree_with_each_other,
);

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.text_of("code").as_str()), (status, code), "{}", answer.text);
}

fn seller() -> Value {
    json!({
        "entity_ref": "seller", "name": "Seller", "legal_name": "Seller GmbH", "number_prefix": "SEL",
        "address": {"line1": "Am Markt 1", "city": "Bremen", "zip_code": "28195", "country_code": "DE"},
        "vat_id": "DE123456789",
        "electronic_address": {"scheme": "EM", "value": "seller@example.com"},
        "contact": {"name": "Billing", "phone": "+49 421 1234", "email": "billing@example.com"},
        "billing_bank_transfer_details": {"billing_account_id": "main"},
    })
}

fn buyer() -> Value {
    json!({
        "customer_ref": catalog::ACME, "name": "Acme", "legal_name": "Acme SAS", "tax": 19,
        "billing_address": {"line1": "1 rue de la Paix", "city": "Paris", "zip_code": "75002", "country_code": "FR"},
        "vat_id": "FR40303265045",
        "electronic_address": {"scheme": "EM", "value": "buyer@example.com"},
        "buyer_reference": "04011000-12345-35",
    })
}

/// Starts a server with a seller, a buyer, and the draft of a month that ended ten days ago: a fee, and 1,500 calls in tiers.
fn start(database: &Database, of_seller: &Value, of_buyer: &Value) -> (Server, Client, Value) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    let account = json!({"billing_account_id": "main", "iban": "DE89370400440532013000"});
    client.post("/api/bank_accounts/", &account).ok();
    client.post("/api/entities/", &catalog::with(seller(), of_seller)).ok();
    client.post("/api/customers/", &catalog::with(buyer(), of_buyer)).ok();
    catalog::sell(&client, &[catalog::with(catalog::ended(catalog::API_PLAN), &json!({"entity_ref": "seller"}))]);
    let document_ref = use_calls(&client, 1500);
    (server, client, document_ref)
}

/// Reports calls in the month that ended, and returns the reference of the document that bills them.
fn use_calls(client: &Client, quantity: u32) -> Value {
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), quantity);
    books::report(client, &event)["related_document_ref"].clone()
}

fn path(document_ref: &Value, query: &str) -> String {
    format!("/api/documents/{}/xml{query}", document_ref.as_str().expect("a reference"))
}

fn xml(client: &Client, document_ref: &Value, query: &str) -> Answer {
    client.get(&path(document_ref, query))
}

/// Returns the file of a response and checks that it is XML.
#[track_caller]
fn file(answer: &Answer) -> &[u8] {
    assert_eq!((answer.status, answer.header("Content-Type")), (200, "application/xml"), "{}", answer.text);
    assert!(answer.bytes.starts_with(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>"), "{}", answer.text);
    &answer.bytes
}

#[track_caller]
fn contains(answer: &Answer, parts: &[&str]) {
    let text = std::str::from_utf8(file(answer)).expect("UTF-8");
    for part in parts {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

/// Returns the missing terms in a list: the pointers, each with its detail.
fn terms(list: &Value) -> Vec<[String; 2]> {
    list.as_array().expect("a list").iter().map(|term| books::fields(term, ["pointer", "detail"])).collect()
}

fn an_e_invoice_is_one_file_for_ever(database: &Database) {
    let (server, client, document_ref) = start(database, &json!({}), &json!({}));
    refused(&xml(&client, &document_ref, ""), 409, "not_issued");
    books::issue(&client, &document_ref).ok();

    // All requests receive the file of the first one.
    let answers: Vec<Answer> = thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| {
                let (client, document_ref) = (client.with_own_connections(), &document_ref);
                scope.spawn(move || xml(&client, document_ref, ""))
            })
            .collect();
        asking.into_iter().map(|asked| asked.join().expect("a response")).collect()
    });
    let first = &answers[0];
    assert!(answers.iter().all(|answer| file(answer) == file(first)));
    let parts = [
        "<cbc:CustomizationID>urn:cen.eu:en16931:2017</cbc:CustomizationID>",
        "<cbc:ID>SEL-INV-1</cbc:ID>",
        "<cbc:RegistrationName>Seller GmbH</cbc:RegistrationName>",
        "<cbc:PayableAmount currencyID=\"EUR\">129.71</cbc:PayableAmount>",
    ];
    contains(first, &parts);
    assert_eq!(first.header("Content-Disposition"), "inline; filename=\"SEL-INV-1.xml\"");
    assert_eq!(first.header("Cache-Control"), "private, no-cache");
    let tag = first.header("ETag");
    let (plain, ubl) = (path(&document_ref, ""), path(&document_ref, "?syntax=ubl"));
    for path in [&plain, &ubl] {
        let known = client.send(&Request::get(path).with("If-None-Match", tag));
        assert_eq!((known.status, known.bytes.len(), known.header("ETag")), (304, 0, tag), "{path}");
        assert_eq!(file(&client.send(&Request::get(path).with("If-None-Match", "\"other\""))), file(first), "{path}");
    }

    // Both syntaxes show the data at the issue, also if they are first asked for later.
    let edits = json!({"legal_name": "Other GmbH", "vat_id": null, "e_invoice": {"profile": "NONE"}});
    client.post("/api/entities/edit/seller", &edits).ok();
    let edits = json!({"legal_name": "Other", "billing_address": null, "e_invoice_profile": "PEPPOL", "buyer_reference": null});
    client.post("/api/customers/edit/acme", &edits).ok();
    books::void(&client, &document_ref).ok();
    drop(server);
    let server = Server::start(database);
    let client = client.at(&server);
    assert_eq!(file(&xml(&client, &document_ref, "")), file(first), "unchanged");
    let other = xml(&client, &document_ref, "?syntax=cii");
    contains(&other, &["CrossIndustryInvoice", "<ram:Name>Seller GmbH</ram:Name>", "<ram:DuePayableAmount>129.71<"]);
    assert_ne!(other.header("ETag"), tag);
    assert_eq!(file(&xml(&client, &document_ref, "?syntax=cii")), file(&other), "unchanged");
}

fn an_incomplete_document_names_all_that_its_e_invoice_lacks(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::sell(&client, &[catalog::ended(catalog::API_PLAN)]);
    let document_ref = use_calls(&client, 1);
    books::issue(&client, &document_ref).ok();
    let answer = xml(&client, &document_ref, "");
    refused(&answer, 409, "e_invoice_incomplete");
    let expected = [
        ["/entity/address/country_code", "BT-40, BR-09"],
        ["/customer/address/country_code", "BT-55, BR-11"],
        ["/entity/vat_id", "BT-31, BR-S-02"],
    ];
    assert_eq!(terms(&answer.body["errors"]), expected);
    assert!(answer.body["errors"].as_array().is_some_and(|errors| errors.iter().all(|error| error["code"] == "required")));
    // The document is frozen, so later data doesn't complete it.
    client.post("/api/customers/edit/acme", &json!({"billing_address": {"country_code": "FR"}})).ok();
    assert_eq!(terms(&xml(&client, &document_ref, "?syntax=cii").body["errors"]), expected);
}

fn an_entity_that_requires_e_invoices_waits_for_complete_data(database: &Database) {
    let required = json!({"e_invoice": {"profile": "EN16931", "required": true}});
    let (_server, client, document_ref) = start(database, &required, &json!({"billing_address": null}));
    let report = client.post("/api/billing/run", &json!({})).ok();
    let problem = &report["failed"][0]["problem"];
    assert_eq!((&report["issued"], &problem["code"]), (&json!([]), &json!("e_invoice_incomplete")));
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("/customer/address/country_code (BT-55, BR-11)")));
    refused(&books::issue(&client, &document_ref), 409, "e_invoice_incomplete");
    use_calls(&client, 1);
    assert_eq!(books::document(&client, &document_ref)["state"], "DRAFT", "usage is still accepted");

    // A profile without e-invoices has nothing to wait for.
    client.post("/api/customers/edit/acme", &json!({"billing_address": {"country_code": "FR"}})).ok();
    assert_eq!(books::run(&client).len(), 1);
    contains(&xml(&client, &document_ref, ""), &["<cbc:IdentificationCode>FR</cbc:IdentificationCode>"]);
    client.post("/api/customers/edit/acme", &json!({"billing_address": null, "e_invoice_profile": "NONE"})).ok();
    let debit = use_calls(&client, 100);
    books::issue(&client, &debit).ok();
    refused(&xml(&client, &debit, ""), 409, "e_invoice_unavailable");
}

fn the_profile_at_the_issue_decides_on_the_syntax(database: &Database) {
    let (_server, client, invoice) = start(database, &json!({"e_invoice": {"profile": "FACTUR_X"}}), &json!({}));
    books::issue(&client, &invoice).ok();
    let profile = |profile: &str| {
        client.post("/api/customers/edit/acme", &json!({"e_invoice_profile": profile})).ok();
    };
    profile("PEPPOL");
    let debit = use_calls(&client, 100);
    books::issue(&client, &debit).ok();

    contains(&xml(&client, &invoice, ""), &["CrossIndustryInvoice", "urn:cen.eu:en16931:2017"]);
    refused(&xml(&client, &invoice, "?syntax=ubl"), 409, "e_invoice_unavailable");
    let parts = ["urn:fdc:peppol.eu:2017:poacc:billing:3.0", "<cbc:ID>SEL-INV-1</cbc:ID>", "<cbc:ID>SEL-DBT-1</cbc:ID>"];
    contains(&xml(&client, &debit, ""), &parts);
    refused(&xml(&client, &debit, "?syntax=cii"), 409, "e_invoice_unavailable");
    assert_eq!(xml(&client, &debit, "?syntax=pdf").status, 422);
}

fn the_check_of_a_customer_names_what_is_missing(database: &Database) {
    let (_server, client, _) = start(database, &json!({}), &json!({}));
    let check = |query: &str| client.get(&format!("/api/customers/e_invoice_check/acme{query}"));
    assert_eq!(check("?entity_ref=seller").ok(), json!([]));
    let edits = json!({"e_invoice_profile": "XRECHNUNG", "electronic_address": null, "buyer_reference": null});
    client.post("/api/customers/edit/acme", &edits).ok();
    let expected = [["/customer/electronic_address", "BT-49, PEPPOL-EN16931-R010"], ["/buyer_reference", "BT-10, BR-DE-15"]];
    assert_eq!(terms(&check("?entity_ref=seller").ok()), expected);

    // The default entity has no data yet.
    let of_default = terms(&check("").ok());
    assert_eq!(of_default[0], ["/entity/address/country_code", "BT-40, BR-09"]);
    client.post("/api/customers/edit/acme", &json!({"entity_ref": "seller", "e_invoice_profile": "NONE"})).ok();
    assert_eq!(terms(&check("").ok()), [["/e_invoice_profile", "no e-invoice with the profile NONE"]]);

    let unknown = check("?entity_ref=nobody");
    refused(&unknown, 422, "validation_failed");
    assert_eq!(unknown.body["errors"][0]["code"], "unknown_reference", "{}", unknown.text);
    assert_eq!(client.get("/api/customers/e_invoice_check/nobody").status, 404);
}

fn the_settings_of_an_entity_agree_with_each_other(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    client.post("/api/entities/", &seller()).ok();
    let pointers = |edit: &Value| {
        let answer = client.post("/api/entities/edit/seller", edit);
        assert_eq!(answer.status, 422, "{}", answer.text);
        let errors = answer.body["errors"].as_array().expect("errors");
        errors.iter().map(|error| books::fields(error, ["pointer"])[0].clone()).collect::<Vec<_>>()
    };
    let contactless = json!({"contact": null, "e_invoice": {"profile": "XRECHNUNG"}});
    assert_eq!(pointers(&contactless), ["/contact/name", "/contact/phone", "/contact/email"]);
    assert_eq!(pointers(&json!({"e_invoice": {"profile": "NONE", "required": true}})), ["/e_invoice/required"]);

    let set = json!({"e_invoice": {"profile": "XRECHNUNG", "required": true}});
    client.post("/api/entities/edit/seller", &set).ok();
    let shown = client.get("/api/entities/seller").ok();
    assert_eq!(shown["e_invoice"], set["e_invoice"]);
    assert_eq!(pointers(&json!({"contact": {"name": "Billing"}})), ["/contact/phone", "/contact/email"]);
}
