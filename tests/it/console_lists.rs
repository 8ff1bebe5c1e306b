//! Lists of the console for a browser without scripts: periods, names as filters, amounts due, and actions on several documents.

use acceptance::console::{Form, forms, page, submit};
use acceptance::scene::product;
use acceptance::{Answer, Client, Database, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    several_drafts_are_previewed_issued_and_downloaded_at_once,
    credits_are_applied_as_previewed_and_once,
    a_list_is_narrowed_by_names_and_named_periods,
);

/// Starts a server with two customers and a draft of each. Returns the server, the clients of the administrator and the software,
/// and the references of the drafts.
fn scene(database: &Database) -> (Server, Client, Client, Vec<String>) {
    let server = Server::start(database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make_plan(&software);
    for (customer, name) in [("acme", "Acme Ltd"), ("globex", "Globex Inc")] {
        software.post("/api/customers/", &json!({"customer_ref": customer, "name": name})).ok();
        catalog::make_contract(&software, &catalog::contract(customer));
        software.post("/api/usage/event", &catalog::event(customer, 1200)).ok();
    }
    let drafts = software.get("/api/documents/filter?state=DRAFT&order=created").ok();
    let drafts: Vec<String> = drafts.as_array().expect("a list").iter().map(|draft| text(&draft["document_ref"])).collect();
    assert_eq!(drafts.len(), 2);
    (server, admin, software, drafts)
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Sends the form with selected documents.
fn selected(admin: &Client, action: &str, references: &[String]) -> Answer {
    let references: Vec<String> = references.iter().map(|reference| format!("ref={reference}")).collect();
    submit(admin, "/console/bulk/documents", &format!("do={action}&{}", references.join("&")))
}

/// Returns the form of a preview.
#[track_caller]
fn confirmation(preview: &str) -> Form {
    let form = forms(preview).into_iter().find(|form| form.action == "/console/bulk/documents");
    form.unwrap_or_else(|| panic!("no form: {preview}"))
}

fn states(software: &Client) -> Vec<String> {
    let documents = software.get("/api/documents/filter?order=created").ok();
    documents.as_array().expect("a list").iter().map(|document| text(&document["state"])).collect()
}

fn several_drafts_are_previewed_issued_and_downloaded_at_once(database: &Database) {
    let (_server, admin, software, drafts) = scene(database);
    let list = page(&admin, "/console/documents");
    assert!(list.contains(&format!("name=\"ref\" value=\"{}\"", drafts[0])) && !list.contains("checked aria-label"), "{list}");
    assert_eq!(page(&admin, "/console/documents?selected=all").matches(" checked aria-label=\"Select UB-INV-").count(), 2);

    let archive = selected(&admin, "pdf", &drafts);
    assert_eq!((archive.status, archive.header("Content-Type")), (200, "application/zip"), "{}", archive.text);
    assert!(archive.bytes.starts_with(b"PK\x03\x04"));
    for name in ["UB-INV-1.pdf", "UB-INV-2.pdf"] {
        assert!(archive.bytes.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    assert!(!archive.bytes.windows(16).any(|part| part == b"not-included.txt"), "no document is missing");

    let preview = selected(&admin, "issue", &drafts);
    assert!(preview.status == 200 && preview.text.contains("Issues 2 documents."), "{}", preview.text);
    for shown in ["UB-INV-1", "UB-INV-2", "Acme Ltd", "Globex Inc", "Nothing is saved yet."] {
        assert!(preview.text.contains(shown), "{shown}: {}", preview.text);
    }
    assert_eq!(states(&software), ["DRAFT", "DRAFT"], "the preview changes nothing");
    let form = confirmation(&preview.text);
    for _ in 0..2 {
        let issued = form.send(&admin, &[("confirmed", "yes")]);
        assert!(issued.status == 200 && issued.text.contains("2 documents issued."), "{}", issued.text);
        assert_eq!(states(&software), ["ISSUED", "ISSUED"]);
    }

    let again = selected(&admin, "issue", &drafts);
    assert!(again.text.contains("None of the selected documents can be issued.") && again.text.contains("Not possible"));
    assert!(!again.text.contains("name=\"confirmed\""), "{}", again.text);
    let nothing = selected(&admin, "issue", &[]);
    assert!(nothing.status == 422 && nothing.text.contains("select documents in the list"), "{}", nothing.text);
    assert_eq!(selected(&admin, "delete", &drafts).status, 404);
}

fn credits_are_applied_as_previewed_and_once(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.edit_customer("acme", &json!({"apply_balance": false}));
    scene.fee("year", "1200.00");
    scene.fee("month", "150.00");
    let cycle = json!({"payment_time": "BEFORE_USE", "billing_cycle": {"unit": "YEARLY", "cycle": 1}});
    let contract = scene.sell(&[catalog::with(product("year", "2026-01-01", "2026-12-31"), &cycle)]);
    scene.run_on("2026-01-02");
    let paid = books::numbered(&scene.client, "UB-INV-1")["document_ref"].clone();
    books::pay(&scene.client, &paid, &json!({"amount": "1200.00"})).ok();
    scene.sell(&[product("month", "2026-06-01", "2026-07-31")]);
    scene.go_to("2026-07-02");
    scene.cancel(&contract, &json!({"last_day": "2026-06-30"}));
    scene.run_on("2026-07-03");
    let amounts = || {
        let due = books::fields(&books::numbered(&scene.client, "UB-INV-2"), ["state", "amount_due"]);
        (due, books::fields(&books::numbered(&scene.client, "UB-CRD-1"), ["unapplied_amount"]))
    };
    assert_eq!(amounts(), (["ISSUED", "150.00"].map(str::to_owned), ["604.93".to_owned()]));

    // The credit finds the amount due of its customer, and the amount due finds the credit.
    let admin = scene.admin();
    for number in ["UB-INV-2", "UB-CRD-1"] {
        let document = text(&books::numbered(&scene.client, number)["document_ref"]);
        let preview = selected(&admin, "apply", &[document]);
        assert!(preview.status == 200 && preview.text.contains("Applies 1 amount of credits"), "{}", preview.text);
        assert!(preview.text.contains("UB-CRD-1</a> → ") && preview.text.contains("Amount due 0.00 EUR"), "{}", preview.text);
    }
    let credit = text(&books::numbered(&scene.client, "UB-CRD-1")["document_ref"]);
    let form = confirmation(&selected(&admin, "apply", &[credit]).text);
    for _ in 0..2 {
        let applied = form.send(&admin, &[("confirmed", "yes")]);
        assert!(applied.status == 200 && applied.text.contains("1 document settled."), "{}", applied.text);
        assert_eq!(amounts(), (["PAID", "0.00"].map(str::to_owned), ["454.93".to_owned()]));
    }
}

fn a_list_is_narrowed_by_names_and_named_periods(database: &Database) {
    let (_server, admin, software, drafts) = scene(database);
    let by_name = page(&admin, "/console/documents?customer_ref=globex+inc");
    assert!(by_name.contains("UB-INV-2") && !by_name.contains("UB-INV-1"), "{by_name}");
    assert!(by_name.contains("<span class=\"selected\">Globex Inc</span>") && by_name.contains("value=\"globex\""), "{by_name}");
    assert!(page(&admin, "/console/documents?customer_ref=nobody").contains("No results match"));

    assert!(page(&admin, "/console/documents?period=this_month").contains("No results match"), "a draft has no date of issue");
    books::issue(&software, &json!(drafts[0])).ok();
    let this_month = page(&admin, "/console/documents?period=this_month");
    assert!(this_month.contains("UB-INV-1") && this_month.contains("aria-current=\"page\">This month"), "{this_month}");
    assert!(page(&admin, "/console/documents?period=last_year").contains("No results match"));
    let table = admin.get("/console/csv/documents?period=this_month&columns=document_number");
    assert_eq!(table.text.lines().map(str::trim_end).collect::<Vec<_>>(), ["Number", "UB-INV-1"]);
    let unknown = admin.get("/console/documents?period=yesterday");
    assert!(unknown.status == 422 && unknown.text.contains("this_month"), "{}", unknown.text);
    // The days of events are those of the time zone, and instants are still accepted.
    assert!(page(&admin, "/console/events?from=2020-01-01").contains("Results: 2"));
    assert!(page(&admin, "/console/events?from=2020-01-01T00%3A30%3A00Z").contains("value=\"2020-01-01T00:30:00Z\""));

    let due = software.get(&format!("/api/documents/{}", drafts[0])).ok()["amount_due"].clone();
    let listed = software.get("/api/customers/amounts_due?customer_ref=nobody,globex,acme").ok();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!((&listed[0]["customer_ref"], &listed[0]["due"]), (&json!("acme"), &due));
    let customers = page(&admin, "/console/customers");
    assert!(customers.contains("data-state=\"DUE\"") && customers.contains("data-state=\"NOTHING_DUE\""), "{customers}");
    assert!(customers.contains(&format!("value=\"{due}\"")), "{customers}");
    let many = vec!["acme"; 101].join(",");
    assert_eq!(software.get(&format!("/api/customers/amounts_due?customer_ref={many}")).status, 422);
}
