//! Imports, billing runs and usage formats in the console, for a browser without scripts.

use acceptance::console::{Form, Part, forms, hidden, page, submit, upload};
use acceptance::server::ADMIN_EMAIL;
use acceptance::{Client, Database, Server, catalog, when};
use serde_json::{Value, json};

fn start(database: &Database) -> (Server, Client, Client) {
    let server = Server::start(database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    catalog::make_contract(&software, &catalog::contract(catalog::ACME));
    (server, admin, software)
}

fn count(software: &Client) -> String {
    software.get("/api/usage/event/filter").header("x-total-count").to_owned()
}

#[test]
fn a_file_is_looked_at_imported_and_undone_and_goes_with_the_forms() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software) = start(&database);
        let file = format!("Nr;Zeit;Kunde;Produkt;Menge\nx-1;{0};acme;api-calls;7\nx-2;{0};acme;api-calls;8\n", when::now());
        assert!(page(&admin, "/console/new/imports").contains("multipart/form-data"));
        // The form already suggests a field for each column.
        let looked = upload(
            &admin,
            &[("file", Some("a &.csv"), &file), ("pasted", None, ""), ("format_name", None, ""), ("do", None, "look")],
        );
        assert!(looked.status == 200 && looked.text.contains("Import a &amp;.csv"), "{}", looked.text);
        assert!(looked.text.contains(r#"<option value="quantity" selected>"#), "{}", looked.text);
        let columns = [
            ("Nr", "idempotency_key"),
            ("Zeit", "timestamp"),
            ("Kunde", "customer_ref"),
            ("Produkt", "usage_product_ref"),
            ("Menge", "quantity"),
        ];
        let content = hidden(&looked.text, "content").to_owned();
        let step = |what: &str| {
            let mut fields: Vec<Part<'_>> =
                vec![("name", None, "a &.csv"), ("content", None, &content), ("format_name", None, ""), ("do", None, what)];
            for (column, called) in columns {
                fields.extend([("column", None, column), ("called", None, called)]);
            }
            upload(&admin, &fields)
        };
        let again = step("look");
        assert!(again.text.contains("Import 2 events") && again.text.contains("would be created"), "{}", again.text);
        assert_eq!(count(&software), "0", "the preview stores nothing");
        let imported = step("import");
        assert_eq!(imported.status, 303, "{}", imported.text);
        let place = imported.header("Location").split('?').next().expect("a path").to_owned();
        assert_eq!(count(&software), "2");
        let reported = page(&admin, &format!("{place}?done=import"));
        assert!(reported.contains("File imported.") && reported.contains("UB-INV-1"), "{reported}");
        assert!(page(&admin, "/console/imports").contains("a &amp;.csv"));
        let import = software.get("/api/usage/imports/filter").ok()[0].clone();
        assert_eq!((&import["name"], &import["bytes"]), (&json!("a &.csv"), &json!(file.len())), "the exact size");

        let asked = page(&admin, &format!("{place}/undo"));
        assert!(asked.contains("Delete 2 events") && asked.contains("UB-INV-1"), "{asked}");
        assert_eq!(count(&software), "2", "the confirmation page deletes nothing");
        let undone = submit(&admin, &format!("{place}/undo"), "");
        assert!(undone.status == 200 && undone.text.contains("Import undone."), "{}", undone.text);
        let changed = undone.text.split_once("Documents changed by the undo").expect("the changed documents").1;
        let texts = ["Billed amounts in EUR", "UB-INV-1", "Total"];
        assert!(texts.iter().all(|text| changed.contains(text)), "{changed}");
        assert_eq!(count(&software), "0");
        assert!(page(&admin, &format!("{place}/undo")).contains("No events remain"));
        assert_eq!(step("import").status, 303);
        assert_eq!(count(&software), "2", "the same file can be imported again");
    }
}

#[test]
fn a_file_without_a_known_customer_column_leads_to_a_question_and_its_answer_to_the_preview() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    for customer in [catalog::ACME, "acme Ltd"] {
        let file = format!("at,who pays,product,quantity\n{0},{customer},api-calls,7\n{0},{customer},api-calls,8\n", when::now());
        let asked = upload(&admin, &[("file", Some("a.csv"), &file), ("format_name", None, ""), ("do", None, "look")]);
        assert!(asked.status == 200 && asked.text.contains("Which column is the customer?"), "{}", asked.text);
        assert!(asked.text.contains(&format!(">who pays: {customer}</option>")), "{}", asked.text);
        assert!(!asked.text.contains("Rejected lines") && asked.text.matches("<select").count() == 1, "{}", asked.text);
        assert!(!asked.text.contains("class=\"wrong\""), "{}", asked.text);
        let question = forms(&asked.text).into_iter().find(|form| form.takes_file).expect("a form");
        let answered = question.send(&admin, &[("do", "look")]);
        assert!(answered.text.contains("Import 2 events"), "by reference and by name: {}", answered.text);
        let left =
            Form { fields: question.fields.iter().filter(|(name, _)| name != "customer_ref").cloned().collect(), ..question };
        let left = left.send(&admin, &[("customer_ref", ""), ("do", "look")]);
        let remedy = "Choose the customer's column, or enter one customer for every line.";
        assert!(left.status == 400 && left.text.contains(remedy), "{}", left.text);
        assert!(left.text.contains(&format!(">who pays: {customer}</option>")), "the question is asked again: {}", left.text);
    }
    assert_eq!(count(&software), "0", "questions and previews store nothing");
}

#[test]
fn a_file_without_customers_and_quantities_gets_them_for_every_line() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    let file = format!("when,meter\n{0},api-calls\n{0},api-calls\n", when::now());
    let asked = upload(&admin, &[("file", Some("a.csv"), &file), ("format_name", None, ""), ("do", None, "look")]);
    let question = forms(&asked.text).into_iter().find(|form| form.takes_file).expect("a form");
    let answered = question.send(&admin, &[("every/customer_ref", "acme"), ("every/quantity", "2.5"), ("do", "look")]);
    assert!(answered.text.contains("Import 2 events"), "{}", answered.text);
    let preview = forms(&answered.text).into_iter().find(|form| form.takes_file).expect("a form");
    assert!(preview.fields.contains(&("every/customer_ref".to_owned(), "acme".to_owned())), "{preview:?}");
    // Two columns with one meaning are no reason to choose the file again.
    let twice: Vec<(String, String)> = preview
        .fields
        .iter()
        .map(|(name, value)| (name.clone(), if name == "called" { "timestamp".to_owned() } else { value.clone() }))
        .collect();
    let refused = Form { fields: twice, ..preview.clone() }.send(&admin, &[("do", "look")]);
    assert!(refused.status == 400 && refused.text.contains("would both be &quot;timestamp&quot;"), "{}", refused.text);
    assert!(refused.text.contains("Choose the meanings again.") && refused.text.contains("name=\"content\""), "{}", refused.text);

    assert_eq!(preview.send(&admin, &[("do", "import")]).status, 303);
    let events = software.get("/api/usage/event/filter").ok();
    let facts: Vec<(&Value, &Value)> =
        events.as_array().into_iter().flatten().map(|event| (&event["customer_ref"], &event["quantity"])).collect();
    assert_eq!(facts, [(&json!("acme"), &json!(2.5)), (&json!("acme"), &json!(2.5))]);
}

#[test]
fn the_fields_of_a_format_are_shown_and_asked_for() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    let mapping = json!({"timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "\"api-calls\"", "quantity": "to_decimal(event.n)"});
    software.post("/api/usage/formats/", &json!({"format_name": "Log", "mapping": mapping})).ok();
    let file = format!("at,payer,n\n{0},acme,7\n", when::now());
    let live = |format: &str, file: &str| {
        upload(&admin, &[("file", Some("a.csv"), file), ("format_name", None, format), ("live", None, "yes")]).text
    };
    let shown = live("Log", &file);
    assert!(shown.contains("<code>who</code></th><td>Customer, by reference</td><td>Not found</td>"), "{shown}");
    assert!(shown.contains("Other columns of the file: payer<"), "{shown}");
    let of_json = live("Log", "[{\"who\": \"acme\", \"n\": 7}");
    assert!(of_json.contains("<td>Customer, by reference</td><td>who<"), "{of_json}");
    let usual = live("", "Kunde,x\nacme,1\n");
    assert!(usual.contains("<td>Customer</td><td>Kunde<") && usual.contains("<td>Quantity</td><td>Not found</td>"), "{usual}");

    let asked = upload(&admin, &[("file", Some("a.csv"), &file), ("format_name", None, "Log"), ("do", None, "look")]);
    assert!(
        asked.status == 200 && asked.text.contains("Which column is the field who? (Customer, by reference)"),
        "{}",
        asked.text
    );
    let question = forms(&asked.text).into_iter().find(|form| form.takes_file).expect("a form");
    let chosen = ("is/who".to_owned(), "payer".to_owned());
    assert!(question.fields.contains(&chosen), "the only column that the format does not read: {question:?}");
    let answered = question.send(&admin, &[("do", "look")]);
    assert!(answered.text.contains("Import 1 event"), "{}", answered.text);
    let preview = forms(&answered.text).into_iter().find(|form| form.takes_file).expect("a form");
    assert_eq!(preview.send(&admin, &[("do", "import")]).status, 303, "{preview:?}");
    assert_eq!(count(&software), "1");
}

#[test]
fn what_can_not_be_read_or_comes_from_elsewhere_is_told_and_stores_nothing() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    for (fields, stated) in [
        (vec![("do", None, "look")], "choose a file"),
        (vec![("file", Some(""), ""), ("pasted", None, " "), ("do", None, "look")], "choose a file"),
        (vec![("file", Some("a.csv"), "a,a\n1,2\n"), ("do", None, "look")], "must have a name of its own"),
        (vec![("content", None, "%%%"), ("name", None, "a"), ("do", None, "import")], "file content is invalid"),
    ] {
        let refused = upload(&admin, &fields);
        assert!(
            refused.status == 400 && refused.text.contains("role=\"alert\"") && refused.text.contains(stated),
            "{stated}: {}",
            refused.text
        );
    }
    let large = "x".repeat(1024 * 1024 + 1);
    let refused = upload(&admin, &[("file", Some("a.csv"), &large), ("do", None, "look")]);
    assert!(refused.status == 413 && refused.text.contains("role=\"alert\""), "{}", refused.status);
    let event = format!(
        "{{\"timestamp\":\"{}\",\"customer_ref\":\"acme\",\"usage_product_ref\":\"api-calls\",\"quantity\":1}}",
        when::now()
    );
    for (name, value) in [("Sec-Fetch-Site", "cross-site"), ("Origin", "https://evil.example")] {
        let foreign = upload(&admin.with_header(name, value), &[("pasted", None, &event), ("do", None, "import")]);
        assert_eq!(foreign.status, 403, "{}", foreign.text);
    }
    assert_eq!(upload(&software, &[("pasted", None, &event), ("do", None, "import")]).status, 303, "a token is not a session");
    assert_eq!(count(&software), "0");
    // Pasted text is identified by its content: pasting it twice counts once. Scripts in it are shown as text.
    for _ in 0..2 {
        let pasted = upload(&admin, &[("pasted", None, &event), ("do", None, "import")]);
        assert_eq!(pasted.status, 303, "{}", pasted.text);
    }
    assert_eq!(count(&software), "1");
    let evil = "<script>,b\n<script>alert(1)</script>,2\n";
    let looked = upload(&admin, &[("file", Some("<script>.csv"), evil), ("do", None, "look")]);
    assert!(looked.status == 200 && !looked.text.contains("<script>"), "{}", looked.text);
    assert_eq!(admin.get("/console/import").header("Location"), "/console/new/imports");
}

#[test]
fn lines_that_are_refused_are_shown_with_what_was_imported() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    let now = when::now();
    let file = format!("timestamp,customer_ref,usage_product_ref,quantity\n{now},acme,api-calls,1\n{now},nobody,api-calls,1\n");
    let imported = upload(&admin, &[("file", Some("a.csv"), &file), ("do", None, "import")]);
    assert!(
        imported.status == 200 && imported.text.contains("must be the reference of an existing customer"),
        "{}",
        imported.text
    );
    assert!(imported.text.contains("href=\"/console/imports/"), "{}", imported.text);
    assert_eq!(count(&software), "1");
}

#[test]
fn an_import_that_stops_is_continued_with_one_click() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    catalog::make_customer(&software, "unreadable");
    catalog::make_contract(&software, &catalog::contract("unreadable"));
    let now = when::now();
    // The second transaction begins with the other customer.
    let rows: String = (0..1_000).map(|_| format!("{now},acme,api-calls,1\n")).collect();
    let file = format!("Zeit,customer_ref,usage_product_ref,quantity\n{rows}{now},unreadable,api-calls,1\n");
    database.execute("UPDATE customers SET net_terms = 'NONSENSE' WHERE customer_ref = 'unreadable'");
    let columns = [("column", None, "Zeit"), ("called", None, "timestamp")];
    let mut fields: Vec<Part<'_>> = vec![("file", Some("a.csv"), &file)];
    fields.extend(columns);
    fields.push(("do", None, "import"));
    let stopped = upload(&admin, &fields);
    assert!(stopped.status == 503 && stopped.text.contains("The import stopped at line 1002"), "{}", stopped.text);
    assert_eq!(count(&software), "1000");
    let import = software.get("/api/usage/imports/filter").ok()[0]["import_ref"].as_str().expect("a reference").to_owned();
    assert!(page(&admin, &format!("/console/imports/{import}")).contains("stopped at line 1002"));

    database.execute("UPDATE customers SET net_terms = NULL WHERE customer_ref = 'unreadable'");
    let form = forms(&stopped.text).into_iter().find(|form| form.action == "/console/import").expect("a form");
    let continued = form.send(&admin, &[("do", "import")]);
    assert_eq!(continued.status, 303, "{}", continued.text);
    assert_eq!(count(&software), "1001");
}

#[test]
fn billing_is_run_after_a_look_and_what_failed_is_on_the_first_page() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    assert!(page(&admin, "/console/new/billing-runs").contains("No documents are due"));
    assert!(!page(&admin, "/console").contains("last billing run"));
    for customer in ["good", "bad"] {
        catalog::make_customer(&software, customer);
        catalog::make_contract(&software, &catalog::past_contract(customer));
    }
    database.execute("UPDATE customers SET net_terms = 'NONSENSE' WHERE customer_ref = 'bad'");
    let preview = page(&admin, "/console/new/billing-runs");
    assert!(preview.contains("1 document<") && preview.contains("Expected failures"), "{preview}");
    assert_eq!(catalog::documents(&software), Vec::<Value>::new());
    let run = submit(&admin, "/console/new/billing-runs", "");
    assert_eq!(run.status, 303, "{}", run.text);
    assert_eq!(catalog::documents(&software).len(), 1);
    let reported = page(&admin, run.header("Location"));
    assert!(
        reported.contains("Billing run finished.") && reported.contains("UB-INV-1") && reported.contains("Failures"),
        "{reported}"
    );
    let home = page(&admin, "/console");
    assert!(home.contains("Failures of the last billing run: <strong>1</strong>") && home.contains("Show failures"), "{home}");
    assert!(reported.contains(">good Ltd</a>") && reported.contains(">bad Ltd</a>"), "{reported}");
    assert!(page(&admin, "/console/billing-runs").contains(&format!("<td>{ADMIN_EMAIL}</td>")));
    database.execute("UPDATE customers SET net_terms = NULL WHERE customer_ref = 'bad'");
}

#[test]
fn a_format_is_tried_and_saved_and_errors_stand_at_their_fields() {
    let database = Database::sqlite();
    let (_server, admin, software) = start(&database);
    let fields = |quantity: &str, what: &str| {
        let mapping = "mapping%2Ftimestamp=event.at&mapping%2Fcustomer_ref=event.who&mapping%2Fusage_product_ref=%22api-calls%22";
        let sample = "%7B%22at%22%3A%222026-01-20T10%3A15%3A30Z%22%2C%22who%22%3A%22acme%22%2C%22n%22%3A12%7D";
        format!("format_name=Log&{mapping}&mapping%2Fquantity={quantity}&sample={sample}&do={what}")
    };
    assert!(page(&admin, "/console/new/formats").contains("name=\"mapping/timestamp\""));
    let tried = submit(&admin, "/console/new/formats", &fields("event.n", "try"));
    assert!(tried.status == 200 && tried.text.contains("&quot;quantity&quot;: 12"), "{}", tried.text);
    let wrong = submit(&admin, "/console/new/formats", &fields("event.n+%2B", "try"));
    let at_field = wrong.text.split_once("id=\"field-mapping/quantity\"").expect("the field").1;
    assert!(
        wrong.status == 422 && at_field.split("</div>").next().is_some_and(|field| field.contains("class=\"wrong\"")),
        "{at_field}"
    );
    let wrong = submit(&admin, "/console/new/formats", &fields("event.n", "try").replace("%7D", ""));
    assert!(wrong.status == 422 && wrong.text.contains("aria-invalid"), "{}", wrong.text);
    let made = || {
        software
            .get("/api/usage/formats/filter")
            .ok()
            .as_array()
            .into_iter()
            .flatten()
            .find(|made| made["format_name"] == "Log")
            .cloned()
    };
    assert_eq!(made(), None, "a trial stores nothing");

    let saved = submit(&admin, "/console/new/formats", &fields("event.n", "save"));
    assert_eq!(saved.status, 303, "{}", saved.text);
    let place = saved.header("Location").split('?').next().expect("a path").to_owned();
    let edit = place.replace("/console/formats", "/console/edit/formats");
    assert!(page(&admin, &place).contains(&edit));
    assert!(page(&admin, &edit).contains("event.who"));
    let edited = submit(&admin, &edit, &fields("event.n*2", "save"));
    assert_eq!(edited.status, 303, "{}", edited.text);
    let format = made().expect("the format was created");
    assert_eq!((&format["version"], &format["mapping"]["quantity"]), (&json!(2), &json!("event.n*2")));
    assert_eq!(admin.get("/console/edit/formats/nothing").status, 404);
    assert!(!page(&admin, "/console/formats/default-format").contains("/console/edit/formats/"));
}
