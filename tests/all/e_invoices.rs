//! E-invoices as clients receive them: the official rules accept the XML files, and the e-invoice in the PDF files of Factur-X.

use std::fs;
use std::path::Path;
use std::process::Command;

use acceptance::when::Day;
use acceptance::{Client, Database, Server, books, catalog, on_sqlite, tools};
use serde_json::{Value, json};

on_sqlite!(files_of_issued_documents_pass_the_official_rules);

/// The profiles, each with the files that the rules check. The rules of CII in the package don't know XRechnung.
const PROFILES: [(&str, &[&str]); 4] = [
    ("EN16931", &["ubl.xml", "cii.xml"]),
    ("XRECHNUNG", &["ubl.xml"]),
    ("PEPPOL", &["ubl.xml"]),
    ("FACTUR_X", &["cii.xml", "pdf"]),
];

/// Sells the API plan to a customer with a profile: an invoice, later a debit, and a credit that takes back the usage of the invoice.
fn bill(client: &Client, profile: &str) {
    let customer = json!({
        "customer_ref": profile, "name": "Buyer & Söhne", "legal_name": "Buyer <SAS>", "tax": 19, "e_invoice_profile": profile,
        "billing_address": {"line1": "1 rue de la Paix", "city": "Paris", "zip_code": "75002", "country_code": "FR"},
        "vat_id": "FR40303265045", "electronic_address": {"scheme": "EM", "value": "buyer@example.com"},
        "buyer_reference": "04011000-12345-35",
    });
    client.post("/api/customers/", &customer).ok();
    let product = catalog::with(catalog::ended(catalog::API_PLAN), &json!({"entity_ref": "seller", "discount": "7.5"}));
    catalog::make_contract(client, &json!({"customer_ref": profile, "products": [product], "po_number": "PO-17"}));
    let use_calls = |quantity: u32| books::report(client, &catalog::event_on(profile, Day::today().plus_days(-20), quantity));
    let first = use_calls(1500);
    books::issue(client, &first["related_document_ref"]).ok();
    let late = use_calls(777);
    books::issue(client, &late["related_document_ref"]).ok();
    assert_eq!(books::delete(client, &first["event_ref"]).status, 204);
    let is_open = |document: &&Value| document["state"] == "DRAFT" && document["customer"]["customer_ref"] == profile;
    let documents = catalog::documents(client);
    let credit = documents.iter().find(is_open).expect("a credit");
    books::issue(client, &credit["document_ref"]).ok();
}

/// Downloads a file of a document into a folder.
fn download(client: &Client, document: &Value, ending: &str, folder: &Path) -> Vec<u8> {
    let document_ref = document["document_ref"].as_str().expect("a reference");
    let path = match ending.strip_suffix(".xml") {
        Some(syntax) => format!("/api/documents/{document_ref}/xml?syntax={syntax}"),
        None => format!("/api/documents/{document_ref}/{ending}"),
    };
    let answer = client.get(&path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    fs::write(folder.join(format!("{}.{ending}", document["document_number"].as_str().expect("a number"))), &answer.bytes)
        .expect("a file");
    answer.bytes
}

fn files_of_issued_documents_pass_the_official_rules(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    client.post("/api/bank_accounts/", &json!({"billing_account_id": "main", "iban": "DE89370400440532013000"})).ok();
    let seller = json!({
        "entity_ref": "seller", "name": "Seller", "legal_name": "Seller GmbH", "number_prefix": "SEL", "vat_id": "DE123456789",
        "address": {"line1": "Am Markt 1", "city": "Bremen", "zip_code": "28195", "country_code": "DE"},
        "electronic_address": {"scheme": "EM", "value": "seller@example.com"},
        "contact": {"name": "Billing", "phone": "+49 421 1234", "email": "billing@example.com"},
        "legal_notes": [{"subject_code": "PMD", "text": "Late payment: 9 %"}, {"text": "Register court Bremen HRB 1"}],
        "billing_bank_transfer_details": {"billing_account_id": "main"}, "e_invoice": {"profile": "EN16931", "required": true},
    });
    client.post("/api/entities/", &seller).ok();
    for (profile, _) in PROFILES {
        bill(&client, profile);
    }

    let folder = tempfile::tempdir().expect("a temporary directory");
    let documents = catalog::documents(&client);
    assert_eq!(documents.len(), PROFILES.len() * 3);
    let mut files = 0;
    for document in &documents {
        let endings = PROFILES.iter().find(|(profile, _)| document["customer"]["customer_ref"] == *profile).expect("a profile").1;
        let downloaded: Vec<Vec<u8>> = endings.iter().map(|ending| download(&client, document, ending, folder.path())).collect();
        files += downloaded.len();
        if endings.contains(&"pdf") {
            let number = document["document_number"].as_str().expect("a number");
            let attached = folder.path().join("attached");
            let pdf = folder.path().join(format!("{number}.pdf"));
            tools::succeed(Command::new("pdfdetach").args(["-save", "1", "-o"]).arg(&attached).arg(pdf));
            assert_eq!(fs::read(attached).expect("a file"), downloaded[0], "{number}: the XML file is the one in the PDF file");
        }
    }
    let stated = tools::succeed(tools::e_invoice_check().arg(folder.path()));
    assert_eq!(stated.trim_end(), format!("checked {files}"));
}
