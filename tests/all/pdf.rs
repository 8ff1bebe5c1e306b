//! Documents as PDF files: an issued document always returns the same bytes, and a draft shows its current data. The text on the
//! pages, read with pdftotext, is the same as in the API.

use std::process::Command;
use std::thread;

use acceptance::client::Request;
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

use crate::printed_calculation;

on_both_databases!(
    an_issued_document_is_one_file_for_ever,
    a_file_says_what_the_interface_says,
    a_draft_is_drawn_as_it_is_now_and_kept_never,
    names_of_other_scripts_are_printed_and_missing_characters_are_boxes,
    a_file_changed_behind_our_back_is_noticed,
    a_statement_is_a_file_in_the_customers_language,
);

/// Fonts with the letters of `NAME`.
const FONTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/billing-typesetter/tests/printing/fonts");
const NAME: &str = "שלום";

fn pdf(client: &Client, document: &Value) -> Answer {
    client.get(&path(document))
}

fn path(document: &Value) -> String {
    format!("/api/documents/{}/pdf", document["document_ref"].as_str().expect("a reference"))
}

/// Returns the file of a response and checks that it is a PDF file.
#[track_caller]
fn file(answer: &Answer) -> &[u8] {
    assert_eq!((answer.status, answer.header("Content-Type")), (200, "application/pdf"), "{}", answer.text);
    assert!(answer.bytes.starts_with(b"%PDF-1.7"));
    &answer.bytes
}

/// Returns the text on a file's pages by line, with repeated spaces collapsed into one.
fn text(answer: &Answer) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("document.pdf");
    std::fs::write(&path, file(answer)).expect("a file");
    let read = Command::new("pdftotext").args(["-layout", "-enc", "UTF-8"]).arg(path).arg("-").output().expect("pdftotext runs");
    assert!(read.status.success(), "{read:?}");
    let text = String::from_utf8(read.stdout).expect("UTF-8");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Starts a server with a client and the draft of a month that ended ten days ago: a fee, and 1,500 calls in tiers.
fn start(database: &Database, product: &Value) -> (Server, Client, Value) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::with(catalog::ended(catalog::API_PLAN), product)]);
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1500);
    let document_ref = books::report(&client, &event)["related_document_ref"].clone();
    let draft = books::document(&client, &document_ref);
    (server, client, draft)
}

fn an_issued_document_is_one_file_for_ever(database: &Database) {
    let (server, client, draft) = start(database, &json!({"tax": 19}));
    books::issue(&client, &draft["document_ref"]).ok();
    // All requests receive the file of the first one.
    let answers: Vec<Answer> = thread::scope(|scope| {
        let ask = |_| {
            let (client, draft) = (client.with_own_connections(), &draft);
            scope.spawn(move || printed(&client, draft))
        };
        let asking: Vec<_> = (0..4).map(ask).collect();
        asking.into_iter().map(|asked| asked.join().expect("a response")).collect()
    });
    let first = &answers[0];
    assert!(answers.iter().all(|answer| file(answer) == file(first)));
    assert_eq!(first.header("Content-Disposition"), "inline; filename=\"UB-INV-1.pdf\"");
    assert_eq!((first.header("Cache-Control"), first.header("Version")), ("private, no-cache", "V0"));
    let tag = first.header("ETag");
    assert!(tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");

    let path = path(&draft);
    let known = |tags: &str| client.send(&Request::get(&path).with("If-None-Match", tags));
    for tags in [tag, "*", &format!("\"other\", {tag}"), &format!("W/{tag}")] {
        let answer = known(tags);
        assert_eq!((answer.status, answer.bytes.len(), answer.header("ETag")), (304, 0, tag), "{tags}");
    }
    for tags in ["\"other\"", "nonsense", ""] {
        assert_eq!(file(&known(tags)), file(first), "{tags:?}");
    }

    // The file stays the same, even if the document or the objects that it was made from change.
    client.post("/api/customers/edit/acme", &json!({"name": "Other", "language": "pl"})).ok();
    let payment = json!({"amount": 1, "paid_date": Day::today().to_string()});
    let paid = books::pay(&client, &draft["document_ref"], &payment).ok();
    assert_eq!(file(&pdf(&client, &draft)), file(first), "unchanged when partly paid");
    books::reverse(&client, &paid["applications"][0]["from_payment_ref"], &json!({})).ok();
    books::void(&client, &draft["document_ref"]).ok();
    assert_eq!(file(&pdf(&client, &draft)), file(first), "unchanged when void");
    drop(server);
    let server = Server::start(database);
    let again = pdf(&client.at(&server), &draft);
    assert_eq!((file(&again), again.header("ETag")), (file(first), tag), "unchanged after a restart");
}

/// Formats an amount as on an English document.
fn shown(amount: &Value) -> String {
    let amount = amount.to_string();
    let (whole, fraction) = amount.split_once('.').expect("two decimal places");
    let groups: Vec<&str> = whole.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    format!("{}.{fraction}", groups.join(","))
}

/// Returns a number without insignificant zeros.
fn without_zeros(number: &str) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number.to_owned() }
}

fn a_file_says_what_the_interface_says(database: &Database) {
    let (_server, client, _) = start(database, &json!({"tax": 19, "discount": 10}));
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 12_345_678);
    let event_ref = books::report(&client, &event)["event_ref"].clone();
    assert_eq!(books::run(&client).len(), 1);
    let invoice = books::numbered(&client, "UB-INV-1");
    let text = text(&pdf(&client, &invoice));
    let has = |line: &str| assert!(text.iter().any(|other| other == line), "{line:?} isn't in {text:#?}");
    let product = &invoice["products"][0];
    for line in product["line_items"].as_array().expect("lines") {
        let name = line["name"].as_str().expect("a name");
        let amount = shown(&line["amount"]);
        assert!(text.iter().any(|other| other.starts_with(name) && other.ends_with(&format!(" {amount}"))), "{line} {text:#?}");
        for tier in line["tiers"].as_array().expect("tiers") {
            let part = without_zeros(&tier["amount"].to_string());
            let mut details = text.iter().filter_map(|line| line.split_once(" = ")).filter(|(what, _)| what.contains(" × "));
            assert!(details.any(|(_, amount)| without_zeros(&amount.replace(',', "")) == part), "{tier} isn't in {text:#?}");
        }
    }
    let tax = &invoice["taxes"][0];
    has(&format!("Subtotal {} EUR", shown(&invoice["sub_total"])));
    has(&format!("Discount 10% -{} EUR", shown(&invoice["total_discount"])));
    has(&format!("Net amount {} EUR", shown(&product["net"])));
    has(&format!("VAT 19% on {} {} EUR", shown(&tax["base"]), shown(&tax["amount"])));
    has(&format!("Total {} EUR", shown(&invoice["total"])));
    has(&format!("Amount due {} EUR", shown(&invoice["amount_due"])));
    assert!(text.iter().any(|line| line.contains("UB-INV-1")), "{text:#?}");
    assert!(text.iter().any(|line| line.ends_with("Page 1 of 1")), "{text:#?}");

    // A credit reduces the invoice and names it.
    assert_eq!(books::delete(&client, &event_ref).status, 204);
    let credit = books::numbered(&client, "UB-CRD-1");
    books::issue(&client, &credit["document_ref"]).ok();
    let credit = books::numbered(&client, "UB-CRD-1");
    let text = self::text(&pdf(&client, &credit));
    let due = format!("Amount credited {} EUR", shown(&credit["total"]));
    let today = text.iter().find_map(|line| line.strip_prefix("UB-INV-1, ")).is_some();
    assert!(today && text.contains(&due) && text.iter().any(|line| line.ends_with("Credit note")), "{due}: {text:#?}");
}

/// Returns the number of stored files.
/// Requests a file until it is printed. A slow machine prints longer than requests of an organization wait for each other.
fn printed(client: &Client, document: &Value) -> Answer {
    loop {
        let answer = pdf(client, document);
        if answer.status != 503 {
            return answer;
        }
    }
}

fn kept(database: &Database) -> String {
    database.ask("SELECT CAST(count(*) AS TEXT) FROM document_files").concat()
}

fn a_draft_is_drawn_as_it_is_now_and_kept_never(database: &Database) {
    let (_server, client, draft) = start(database, &json!({"tax": 19}));
    client.post("/api/customers/edit/acme", &json!({"language": "nl"})).ok();
    let first = pdf(&client, &draft);
    let stated = text(&first);
    assert!(stated.iter().any(|line| line.contains("1.500")) && !stated.concat().contains("Factuurdatum"), "{stated:#?}");
    // The watermark is slanted. As text, each of its letters would be on a line of its own.
    assert!(stated.iter().all(|line| line.is_empty() || line.chars().count() > 2), "{stated:#?}");
    assert_eq!(first.header("Content-Disposition"), "inline; filename=\"UB-INV-1.pdf\"");

    assert_eq!(file(&pdf(&client, &draft)), file(&first), "the draft is unchanged");
    books::report(&client, &catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1));
    let path = path(&draft);
    let changed = client.send(&Request::get(&path).with("If-None-Match", first.header("ETag")));
    assert!(text(&changed).iter().any(|line| line.contains("1.501")), "{:#?}", text(&changed));
    books::issue(&client, &draft["document_ref"]).ok();
    let issued = text(&pdf(&client, &draft));
    assert!(issued.concat().contains("Factuurdatum"), "{issued:#?}");

    // A draft that no longer contains anything.
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1);
    let late = books::report(&client, &event);
    assert_eq!(books::delete(&client, &late["event_ref"]).status, 204);
    books::issue(&client, &late["related_document_ref"]).ok();
    let adjustment = books::document(&client, &late["related_document_ref"]);
    assert_eq!(adjustment["state"], "VOID");
    text(&pdf(&client, &adjustment));
    if !database.is_sqlite() {
        assert_eq!(kept(database), "1", "only the issued document's file");
    }
}

fn names_of_other_scripts_are_printed_and_missing_characters_are_boxes(database: &Database) {
    let (server, client, draft) = start(database, &json!({}));
    // Characters for private use, which no font has.
    client.post("/api/customers/edit/acme", &json!({"name": format!("Acme \u{e000}{NAME}\u{e001}")})).ok();
    // The customer is billed regardless of the name.
    assert_eq!(books::run(&client).len(), 1);
    let boxed = text(&pdf(&client, &draft));
    assert!(boxed.iter().any(|line| line.contains("Acme")) && !boxed.concat().contains('\u{e000}'), "{boxed:#?}");
    let shown = books::document(&client, &draft["document_ref"]);
    assert_eq!(shown["state"], "ISSUED");
    let missing = shown["missing_glyphs"].as_str().expect("missing characters");
    assert!(missing.contains('\u{e000}') && missing.contains('\u{e001}'), "{missing:?}");
    if !database.is_sqlite() {
        assert_eq!(kept(database), "0", "a file with boxes isn't stored");
    }

    client.post("/api/customers/edit/acme", &json!({"name": format!("Acme {NAME}")})).ok();
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1);
    let late = books::report(&client, &event);
    drop(server);
    let server = Server::start_with(database, &["--fonts-dir", FONTS]);
    let document = json!({"document_ref": late["related_document_ref"]});
    let drawn = text(&pdf(&client.at(&server), &document));
    assert!(drawn.iter().any(|line| line.contains(NAME)), "{drawn:#?}");
}

fn a_file_changed_behind_our_back_is_noticed(database: &Database) {
    let (server, client, draft) = start(database, &json!({}));
    books::issue(&client, &draft["document_ref"]).ok();
    file(&pdf(&client, &draft));
    binary::verify(database.url()).unwrap_or_else(|found| panic!("{found}"));
    let (trigger, zero) = if database.is_sqlite() {
        ("document_files_frozen_update", "x'00'")
    } else {
        ("document_files_frozen ON document_files", "'\\x00'")
    };
    database.execute(&format!("DROP TRIGGER {trigger}"));
    database.execute(&format!("UPDATE document_files SET bytes = {zero}"));
    let found = binary::verify(database.url()).expect_err("the file was changed");
    assert!(found.contains("its file PDF doesn't have its hash"), "{found}");
    let answer = pdf(&client, &draft);
    assert_eq!((answer.status, answer.text_of("code").as_str()), (500, "internal_error"), "a changed file isn't returned");
    drop(server.without_verification());
}

/// A linear congruential generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The usage products of the random histories, each with its line item and price.
fn metered() -> Vec<(&'static str, Value)> {
    let tiers = json!([
        {"up_to": 100, "unit_price": "0.105", "flat_amount": "5"}, {"up_to": 1000, "unit_price": "0.05"}, {"unit_price": "0.0125"},
    ]);
    vec![
        ("Calls", json!({"price": {"model": "PER_UNIT", "unit_price": "0.0006"}, "included_quantity": 250})),
        ("Storage", json!({"price": {"model": "GRADUATED", "tiers": tiers}})),
        ("Messages", json!({"price": {"model": "VOLUME", "tiers": tiers}, "maximum_amount": "20"})),
        ("Reports", json!({"price": {"model": "PACKAGE", "package_size": 100, "package_price": "3.35"}})),
        (
            "Payments",
            json!({
                "price": {"model": "PERCENTAGE", "rate": "2.9", "fixed_amount": "0.30"}, "minimum_amount": "12.50",
            }),
        ),
    ]
}

/// Creates contracts of six months that are over, with random seats and usage, bills them, and changes them by late events.
/// Returns the references of all issued documents.
fn random_history(client: &Client, customers: u64, dice: &mut Dice) -> Vec<Value> {
    let mut line_items = vec![json!({"line_item_id": "seats", "name": "Seats", "kind": "FIXED",
        "price": {"model": "PER_UNIT", "unit_price": "12.35"}})];
    for (name, item) in metered() {
        client.post("/api/usage/products/", &json!({"usage_product_ref": name, "name": name, "unit": "units"})).ok();
        let item = catalog::with(item, &json!({"line_item_id": name, "name": name, "kind": "USAGE", "usage_product_ref": name}));
        line_items.push(item);
    }
    client
        .post(
            "/api/pricings/",
            &json!({"product_pricing_ref": "mixed", "name": "Mixed plan", "currency": "EUR",
        "minimum_fee": "120", "line_items": line_items}),
        )
        .ok();
    let end = Day::today().first_of_month().plus_days(-1);
    let begin = end.plus_days(1).plus_months(-6);
    for customer in 0..customers {
        let customer = format!("customer-{customer}");
        client.post("/api/customers/", &json!({"customer_ref": customer, "name": customer, "tax": 19})).ok();
        let start = begin.plus_days(i64::try_from(dice.roll(20)).expect("a few days"));
        let change = |days: i64, quantity: u64| json!({"from": start.plus_days(days).to_string(), "quantity": quantity});
        let mut quantities = vec![change(0, 1 + dice.roll(9))];
        for days in [35, 70, 75] {
            quantities.push(change(days + i64::try_from(dice.roll(5)).expect("a few days"), 1 + dice.roll(20)));
        }
        let mut selected = vec![json!({"line_item_id": "seats", "quantities": quantities})];
        selected.extend(metered().iter().map(|(name, _)| json!({"line_item_id": name})));
        let product = json!({"product_pricing_ref": "mixed", "billing_start_date": start.to_string(),
            "billing_end_date": end.to_string(), "line_items": selected});
        catalog::make_contract(client, &json!({"customer_ref": customer, "products": [product]}));
        let days = u64::try_from(start.days_until(end)).expect("a period");
        let events: Vec<Value> = (0..30).map(|_| random_event(&customer, start, days, dice)).collect();
        client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    }
    let issued = books::run(client).len();
    assert!(issued >= usize::try_from(customers * 5).expect("a count"), "{issued} documents");
    // What comes late stands on debits and credits.
    let mut late = Vec::new();
    for customer in 0..customers {
        let event = random_event(&format!("customer-{customer}"), begin.plus_days(25), 60, dice);
        let document_ref = books::report(client, &event)["related_document_ref"].clone();
        if books::document(client, &document_ref)["state"] == "DRAFT" {
            books::issue(client, &document_ref).ok();
        }
        late.push(document_ref);
    }
    let refs: Vec<Value> = catalog::documents(client)
        .into_iter()
        .filter(|document| document["state"] != "DRAFT" && document["state"] != "VOID")
        .map(|document| document["document_ref"].clone())
        .collect();
    assert!(late.iter().any(|document_ref| refs.contains(document_ref)), "some documents are late ones");
    refs
}

fn random_event(customer: &str, start: Day, days: u64, dice: &mut Dice) -> Value {
    let day = start.plus_days(i64::try_from(dice.roll(days)).expect("a few days"));
    let names = metered();
    let (name, _) = names[usize::try_from(dice.roll(5)).expect("an index")];
    json!({"timestamp": day.noon(), "customer_ref": customer, "usage_product_ref": name, "quantity": 1 + dice.roll(900)})
}

#[test]
fn the_printed_factors_of_two_hundred_documents_give_their_printed_amounts() {
    const DOCUMENTS: usize = 200;
    let database = Database::sqlite();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    let refs = random_history(&client, 40, &mut Dice(38));
    assert!(refs.len() >= DOCUMENTS, "{} documents", refs.len());
    let mut lines = 0;
    for document_ref in refs.iter().take(DOCUMENTS) {
        let document = books::document(&client, document_ref);
        let text = text(&pdf(&client, &document));
        lines += check_lines(&document, &text);
        let sums = |name: &str| shown(&document[name]);
        let due = if document["kind"] == "CREDIT" { "Amount credited" } else { "Amount due" };
        assert!(text.iter().any(|line| line.starts_with(&format!("{due} "))), "{text:#?}");
        assert!(text.iter().any(|line| *line == format!("Total {} EUR", sums("total"))), "{document} {text:#?}");
    }
    assert!(lines > DOCUMENTS * 3, "{lines} lines");
}

/// Checks each line of a document and returns their number.
fn check_lines(document: &Value, text: &[String]) -> usize {
    let products = document["products"].as_array().expect("products");
    let items: Vec<&Value> = products.iter().flat_map(|product| product["line_items"].as_array().expect("lines")).collect();
    let mut places = Vec::new();
    let mut next = 0;
    for item in &items {
        let name = if item["line_item_id"].is_null() { "Minimum fee" } else { item["name"].as_str().expect("a name") };
        let end = format!(" {}", shown(&item["amount"]));
        let found = text[next..].iter().position(|line| line.starts_with(&format!("{name} ")) && line.ends_with(&end));
        let place = next + found.unwrap_or_else(|| panic!("{name} of {end} isn't in {text:#?}"));
        places.push((name, place));
        next = place + 1;
    }
    let sums = ["Subtotal ", "Net amount ", "Total "];
    let last = text.iter().position(|line| sums.iter().any(|sum| line.starts_with(sum))).expect("a sum");
    for (i, (name, place)) in places.iter().enumerate() {
        let end = places.get(i + 1).map_or(last, |(_, next)| *next);
        let rows: Vec<&str> = text[place + 1..end].iter().map(String::as_str).collect();
        printed_calculation::check(name, &text[*place], &rows);
    }
    items.len()
}

fn a_statement_is_a_file_in_the_customers_language(database: &Database) {
    let (_server, client, draft) = start(database, &json!({}));
    client.post("/api/customers/edit/acme", &json!({"language": "de", "legal_name": "Acme GmbH"})).ok();
    books::issue(&client, &draft["document_ref"]).ok();
    let invoice = books::document(&client, &draft["document_ref"]);
    let answer = client.get("/api/customers/statement/acme?format=pdf");
    assert_eq!(answer.header("Content-Disposition"), "inline; filename=\"statement-acme.pdf\"");
    let text = text(&answer);
    let total = shown(&invoice["total"]).replace(',', "").replace('.', ",");
    for wanted in [
        "Kontoauszug",
        "Acme GmbH",
        "Anfangssaldo 0,00",
        &format!("Rechnung UB-INV-1 {total} {total}"),
        &format!("Endsaldo {total}"),
    ] {
        assert!(text.iter().any(|line| line.ends_with(wanted)), "{wanted}: {text:#?}");
    }
    let refused = client.get("/api/customers/statement/acme?format=xlsx");
    assert_eq!(refused.status, 422, "{}", refused.text);
}
