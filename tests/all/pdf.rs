//! Documents as PDF files: an issued document always returns the same bytes, and a draft shows its current data. The text on the
//! pages, read with pdftotext, is the same as in the API.

use std::process::Command;
use std::thread;

use acceptance::client::Request;
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    an_issued_document_is_one_file_for_ever,
    a_file_says_what_the_interface_says,
    a_draft_is_drawn_as_it_is_now_and_kept_never,
    a_character_that_no_font_has_is_named_until_there_is_one,
    a_file_changed_behind_our_back_is_noticed,
);

/// Fonts with the letters of `NAME`.
const FONTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/billing-pdf/tests/printing/fonts");
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
            let client = client.with_own_connections();
            scope.spawn(|| pdf(&{ client }, &draft))
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
fn kept(database: &Database) -> String {
    database.ask("SELECT CAST(count(*) AS TEXT) FROM document_files").concat()
}

fn a_draft_is_drawn_as_it_is_now_and_kept_never(database: &Database) {
    let (_server, client, draft) = start(database, &json!({"tax": 19}));
    client.post("/api/customers/edit/acme", &json!({"language": "nl"})).ok();
    let first = pdf(&client, &draft);
    let said = text(&first);
    assert!(said.iter().any(|line| line.contains("1.500")) && !said.concat().contains("Factuurdatum"), "{said:#?}");
    // The watermark is slanted, so that each line has only a letter or two.
    let letters: String = said.iter().filter(|line| line.len() <= 2).cloned().collect();
    assert!("CONCEPT".chars().all(|letter| letters.contains(letter)), "{said:#?}");
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

fn a_character_that_no_font_has_is_named_until_there_is_one(database: &Database) {
    let (server, client, draft) = start(database, &json!({}));
    client.post("/api/customers/edit/acme", &json!({"name": format!("Acme {NAME}")})).ok();
    // The customer is billed regardless of the name.
    assert_eq!(books::run(&client).len(), 1);
    let refused = pdf(&client, &draft);
    assert_eq!((refused.status, refused.text_of("code").as_str()), (409, "glyph_missing"), "{}", refused.text);
    assert!(refused.text_of("detail").contains("“ש”"), "{}", refused.text);
    drop(server);
    let server = Server::start_with(database, &["--fonts-dir", FONTS]);
    let drawn = text(&pdf(&client.at(&server), &draft));
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
