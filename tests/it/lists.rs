//! Lists for finance: filters, order, sums, pages and exports of documents; lists of all contracts and customers; search.

use acceptance::problem::{Table, invalid};
use acceptance::scene::{Scene, each, product};
use acceptance::{Answer, Client, Database, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    documents_are_found_by_what_finance_knows_of_them,
    documents_come_in_every_order_page_by_page,
    what_documents_amount_to_stands_in_headers,
    documents_are_written_as_tables_without_formulas,
    contracts_are_found_without_their_customer,
    events_payments_and_charges_come_from_either_end,
    customers_are_found_by_name_email_and_tax_number,
    a_search_says_what_something_is,
    what_is_wrong_with_a_query_is_named,
    a_control_character_that_is_looked_for_is_refused
);

const LIST: &str = "/api/documents/filter";

/// Creates Acme's contract with a fee of 100.00, calls at 0.10, net 14 days and PO-1. Its invoices are:
/// - January: 101.00, issued on 10 February, 1.00 credited
/// - February: 102.00, issued on 10 March, 2.00 paid
/// - March: a draft
fn stage(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-15");
    scene.edit_customer("acme", &json!({"name": "=Acme+Co", "email": "Pay@Acme.example", "tax_id": "DE 123"}));
    scene.pricing("plan", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    let plan = catalog::with(product("plan", "2026-01-01", "2026-12-31"), &json!({"net_terms": 14}));
    let contract = scene.try_sell(&[plan], &json!({"po_number": "PO-1"})).ok()["contract_ref"].as_str().expect("text").to_owned();
    let january = scene.calls("2026-01-15", 10);
    scene.run_on("2026-02-10");
    scene.calls("2026-02-10", 20);
    scene.run_on("2026-03-10");
    scene.calls("2026-03-10", 30);
    let invoice = books::numbered(&scene.client, "UB-INV-2");
    books::pay(&scene.client, &invoice["document_ref"], &json!({"amount": "2.00", "reference": "bank 4711"})).ok();
    let credited = books::update(&scene.client, &january["event_ref"], json!({"quantity": 0})).ok();
    books::issue(&scene.client, &credited["related_document_ref"]).ok();
    (scene, contract)
}

fn list(scene: &Scene, query: &str) -> Answer {
    scene.client.get(&format!("{LIST}?{query}"))
}

fn numbers_of(list: &Value) -> Vec<String> {
    let documents = list.as_array().expect("a list").iter();
    documents.map(|document| document["document_number"].as_str().expect("a number").to_owned()).collect()
}

fn numbers(scene: &Scene, query: &str) -> String {
    numbers_of(&list(scene, query).ok()).join(" ")
}

fn documents_are_found_by_what_finance_knows_of_them(database: &Database) {
    let (scene, contract) = stage(database);
    let all = "UB-INV-1 UB-INV-2 UB-INV-3 UB-CRD-1";
    for (query, expected) in [
        ("", all),
        ("document_number=UB-INV-2", "UB-INV-2"),
        ("document_number=UB-CRD-1", "UB-CRD-1"),
        ("document_number=UB-INV-9", ""),
        ("document_number=2", ""),
        ("contract_number=C-1", all),
        ("contract_number=C-2", ""),
        ("po_number=PO-1", all),
        ("po_number=PO-2", ""),
        ("purpose=ADJUSTMENT", "UB-CRD-1"),
        ("purpose=REGULAR", "UB-INV-1 UB-INV-2 UB-INV-3"),
        ("currency=EUR", all),
        ("currency=USD", ""),
        ("issued_from=2026-02-10&issued_to=2026-03-09", "UB-INV-1"),
        ("issued_from=2026-03-10", "UB-INV-2 UB-CRD-1"),
        ("due_from=2026-02-24&due_to=2026-02-24", "UB-INV-1"),
        ("updated_since=2026-03-10T00:00:00Z", all),
        ("updated_since=2026-03-11T00:00:00Z", ""),
        ("has_amount_due=true", "UB-INV-1 UB-INV-2"),
        ("has_amount_due=false", "UB-INV-3 UB-CRD-1"),
        ("overdue=true", "UB-INV-1"),
        ("overdue=false", "UB-INV-2 UB-INV-3 UB-CRD-1"),
        ("overdue=true&customer_ref=acme&kind=INVOICE&state=PARTIALLY_PAID", "UB-INV-1"),
        ("state=DRAFT", "UB-INV-3"),
    ] {
        assert_eq!(numbers(&scene, query), expected, "{query}");
        let counted = list(&scene, query);
        assert_eq!(counted.header("X-Total-Count"), expected.split_whitespace().count().to_string(), "{query}");
    }
    // Documents listed as overdue are marked as overdue.
    for document in list(&scene, "overdue=true").ok().as_array().expect("a list") {
        assert_eq!(document["overdue"], true);
    }
    scene.go_to("2026-03-24");
    assert_eq!(numbers(&scene, "overdue=true"), "UB-INV-1");
    scene.go_to("2026-03-25");
    assert_eq!(numbers(&scene, "overdue=true"), "UB-INV-1 UB-INV-2", "overdue the day after the due date");
    scene.edit(&contract, &json!({"po_number": "PO-2"}));
    assert_eq!(numbers(&scene, "po_number=PO-2"), "UB-INV-3", "an issued document is unchanged");
    let paid = books::numbered(&scene.client, "UB-INV-1");
    books::pay(&scene.client, &paid["document_ref"], &json!({"amount": "100.00"})).ok();
    assert_eq!(numbers(&scene, "updated_since=2026-03-25T00:00:00Z&state=PAID"), "UB-INV-1");
    assert_eq!(numbers(&scene, "overdue=true"), "UB-INV-2");
}

fn documents_come_in_every_order_page_by_page(database: &Database) {
    let (scene, _) = stage(database);
    for (order, expected) in [
        ("created", "UB-INV-1 UB-INV-2 UB-INV-3 UB-CRD-1"),
        ("-created", "UB-CRD-1 UB-INV-3 UB-INV-2 UB-INV-1"),
        ("amount", "UB-CRD-1 UB-INV-1 UB-INV-2 UB-INV-3"),
        ("-amount", "UB-INV-2 UB-INV-1 UB-CRD-1 UB-INV-3"),
        ("issue_date", "UB-INV-1 UB-INV-2 UB-CRD-1 UB-INV-3"),
        ("-due_date", ""),
    ] {
        let whole = numbers(&scene, &format!("order={order}"));
        if !expected.is_empty() {
            assert_eq!(whole, expected, "{order}");
        }
        // Reads the pages by their links and by number.
        let (mut path, mut by_link, mut by_number) = (format!("{LIST}?order={order}&pageSize=1"), Vec::new(), Vec::new());
        for number in 0..10 {
            let page = scene.client.get(&path);
            assert_eq!(page.header("X-Total-Count").is_empty(), number > 0, "{path}");
            by_number.extend(numbers_of(&list(&scene, &format!("order={order}&pageSize=1&pageNumber={number}")).ok()));
            let next = page.header("Link").split(", ").find(|link| link.ends_with("rel=\"next\"")).map(str::to_owned);
            by_link.extend(numbers_of(&page.ok()));
            let Some(next) = next else { break };
            path = next.trim_start_matches('<').split('>').next().expect("a path").to_owned();
        }
        assert_eq!((by_link.join(" "), by_number.join(" ")), (whole.clone(), whole), "{order}");
    }
    let asked = list(&scene, "pageSize=1&totals=false");
    assert_eq!((asked.header("X-Total-Count"), asked.header("X-Total-Amount")), ("", ""));
}

fn what_documents_amount_to_stands_in_headers(database: &Database) {
    let (scene, _) = stage(database);
    for (query, count, total, due) in [
        ("", "4", "EUR 202.00", "EUR 200.00"),
        ("pageSize=1", "4", "EUR 202.00", "EUR 200.00"),
        ("kind=CREDIT", "1", "EUR -1.00", "EUR 0.00"),
        ("state=DRAFT", "1", "EUR 0.00", "EUR 0.00"),
        ("overdue=true", "1", "EUR 101.00", "EUR 100.00"),
        ("currency=USD", "0", "", ""),
        ("customer_ref=nobody", "0", "", ""),
    ] {
        let answer = list(&scene, query);
        let found = ["X-Total-Count", "X-Total-Amount", "X-Total-Amount-Due"].map(|name| answer.header(name).to_owned());
        assert_eq!(found, [count, total, due], "{query}");
    }
}

fn documents_are_written_as_tables_without_formulas(database: &Database) {
    let (scene, _) = stage(database);
    let csv = list(&scene, "format=csv&order=amount");
    assert_eq!((csv.status, csv.header("Content-Type")), (200, "text/csv; charset=utf-8; header=present"));
    assert!(csv.header("Content-Disposition").contains("documents.csv"), "{}", csv.header("Content-Disposition"));
    let lines: Vec<&str> = csv.text.split("\r\n").collect();
    assert_eq!(
        lines[0],
        "document_ref,document_number,kind,state,purpose,contract_number,customer_ref,customer_name,entity_ref,currency,\
         period_start,period_end,issue_date,due_date,paid_date,sub_total,total_discount,total_prepaid,total_tax,total,paid_amount,\
         credits_amount,written_off_amount,amount_due,unapplied_amount,po_number,parent_document_ref,parent_document_number"
    );
    assert_eq!(lines.len(), 6, "{}", csv.text);
    let entity = scene.entity();
    for (line, expected) in [
        (
            lines[2],
            format!(
                ",UB-INV-1,INVOICE,PARTIALLY_PAID,REGULAR,C-1,acme,'=Acme+Co,{entity},EUR,2026-01-01,2026-01-31,2026-02-10,2026-02-24,,\
                 101.00,0.00,0.00,0.00,101.00,0.00,1.00,0.00,100.00,,PO-1,,"
            ),
        ),
        (
            lines[4],
            format!(
                ",UB-INV-3,INVOICE,DRAFT,REGULAR,C-1,acme,'=Acme+Co,{entity},EUR,2026-03-01,2026-03-31,,,,103.00,0.00,0.00,0.00,103.00,\
                 0.00,0.00,0.00,103.00,,PO-1,,"
            ),
        ),
    ] {
        assert_eq!(&line[36..], expected);
    }
    assert!(lines[1].ends_with(",UB-INV-1") && lines[1].contains(",UB-CRD-1,CREDIT,"), "{}", lines[1]);
    // The JSON export has the same content, with numbers as numbers.
    let json = list(&scene, "format=json&document_number=UB-INV-2").ok();
    let row = catalog::only(json);
    assert_eq!(
        books::fields(&row, ["document_number", "total", "paid_amount", "amount_due"]),
        ["UB-INV-2", "102.00", "2.00", "100.00"]
    );
    assert!(row["customer_name"] == "=Acme+Co" && row["paid_date"].is_null(), "{row}");
    let directory = tempfile::tempdir().expect("a directory");
    let workbook = directory.path().join("documents.xlsx");
    let headers = scene.client.download(&format!("{LIST}?format=xlsx"), &workbook);
    let media_type = headers.get("Content-Type").and_then(|value| value.to_str().ok());
    assert_eq!(media_type, Some("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"));
    assert!(std::fs::read(&workbook).expect("a file").starts_with(b"PK"));
    assert_eq!(list(&scene, "format=json&customer_ref=nobody").ok(), json!([]));
}

fn contracts_are_found_without_their_customer(database: &Database) {
    let (scene, contract) = stage(database);
    let second = scene.sell(&[product("plan", "2027-01-01", "2027-06-30")]);
    let found = |scene: &Scene, query: &str| {
        let answer = scene.client.get(&format!("/api/contracts/search?{query}"));
        let contracts = answer.ok();
        let refs = contracts.as_array().expect("a list").iter().map(|contract| contract["contract_ref"].clone());
        refs.map(|reference| {
            if reference == json!(contract) {
                1
            } else if reference == json!(second) {
                2
            } else {
                0
            }
        })
        .collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("", &[1, 2][..]),
        ("state=ACTIVE", &[1]),
        ("state=PENDING", &[2]),
        ("state=COMPLETED", &[]),
        ("contract_number=C-2", &[2]),
        ("contract_number=2", &[]),
        ("po_number=PO-1", &[1]),
        ("customer_ref=acme&state=PENDING", &[2]),
        ("customer_ref=nobody", &[]),
        ("ends_before=2027-01-01", &[1]),
        ("ends_before=2026-12-31", &[]),
        ("product_pricing_ref=plan", &[1, 2]),
        ("product_pricing_ref=other", &[]),
        ("product_pricing_ref=a%20b", &[]),
        // The first contract issues March in April; the second contract begins in January.
        ("issues_before=2026-04-01T00:00:00Z", &[]),
        ("issues_before=2026-04-02T00:00:00Z", &[1]),
        ("issues_before=2027-03-01T00:00:00Z", &[1, 2]),
        ("pageSize=1&pageNumber=1", &[2]),
        ("order=created", &[1, 2]),
        ("order=-created", &[2, 1]),
        ("order=effective_end_date", &[1, 2]),
        ("order=-effective_end_date", &[2, 1]),
        ("order=-created&pageSize=1&pageNumber=1", &[1]),
    ] {
        assert_eq!(found(&scene, query), expected, "{query}");
    }
    scene.cancel(&second, &json!({"last_day": "2027-03-31"}));
    assert_eq!(found(&scene, "state=CANCELLING"), [2]);
    assert_eq!(found(&scene, "ends_before=2027-04-01"), [1, 2]);
    scene.go_to("2027-01-01");
    assert_eq!((found(&scene, "state=COMPLETED"), found(&scene, "state=ACTIVE")), (vec![1], vec![]));
}

fn events_payments_and_charges_come_from_either_end(database: &Database) {
    let (scene, contract) = stage(database);
    let charge = |name: &str| json!({"contract_ref": contract, "charge_ref": name, "name": name, "date": "2026-03-01", "unit_price": "1.00"});
    for name in ["first", "second"] {
        scene.client.post("/api/charges/", &charge(name)).ok();
    }
    let invoice = books::numbered(&scene.client, "UB-INV-2");
    books::pay(&scene.client, &invoice["document_ref"], &json!({"amount": "3.00"})).ok();
    for (list, field, by) in [
        ("/api/usage/event/filter", "timestamp", "timestamp"),
        ("/api/usage/event/filter", "event_ref", "created"),
        ("/api/documents/payments/filter", "payment_ref", "created"),
        ("/api/documents/payments/filter", "payment_ref", "paid_date"),
        ("/api/charges/filter", "charge_ref", "created"),
    ] {
        let found = |query: &str| {
            let elements = scene.client.get(&format!("{list}?{query}")).ok();
            elements.as_array().expect("a list").iter().map(|element| element[field].clone()).collect::<Vec<_>>()
        };
        let mut forward = found(&format!("order={by}"));
        assert_eq!(forward, found(""), "{list}");
        forward.reverse();
        assert!(forward.len() > 1 && forward[0] != forward[1], "{list}: {forward:?}");
        assert_eq!(found(&format!("order=-{by}")), forward, "{list}");
        assert_eq!(found(&format!("order=-{by}&pageSize=1&pageNumber=1")), forward[1..2], "{list}");
        let next = scene.client.get(&format!("{list}?order=-{by}&pageSize=1"));
        assert!(next.header("Link").contains(&format!("{list}?order=-{by}&pageSize=1&pageNumber=1>; rel=\"next\"")), "{list}");
    }
}

fn customers_are_found_by_name_email_and_tax_number(database: &Database) {
    let (scene, _) = stage(database);
    for (reference, name) in [("zeta", "Zeta GmbH"), ("zeta-2", "ZETA Ltd")] {
        scene.client.post("/api/customers/", &json!({"customer_ref": reference, "name": name})).ok();
    }
    let found = |list: &str, query: &str| {
        let customers = scene.client.get(&format!("/api/customers/{list}?{query}")).ok();
        let refs = customers
            .as_array()
            .expect("a list")
            .iter()
            .map(|customer| customer["customer_ref"].as_str().expect("text").to_owned());
        refs.collect::<Vec<_>>().join(" ")
    };
    for (query, expected) in [
        ("", "acme zeta zeta-2"),
        ("name=zeta", "zeta zeta-2"),
        ("name=ZETA%20l", "zeta-2"),
        ("name=eta", ""),
        ("email=pay@acme.EXAMPLE", "acme"),
        ("tax_id=DE%20123", "acme"),
        ("tax_id=DE%20123&name=zeta", ""),
        ("order=-created&name=zeta", "zeta-2 zeta"),
        ("order=name", "acme zeta zeta-2"),
        ("order=-name&pageSize=2", "zeta-2 zeta"),
    ] {
        assert_eq!((found("filter", query), found("names", query)), (expected.to_owned(), expected.to_owned()), "{query}");
    }
    let sonner = json!({"customer_ref": "sonner", "name": "Sønner AS", "vat_id": "NO 987 654 321"});
    scene.client.post("/api/customers/", &sonner).ok();
    // The search finds words inside a name, e-mail addresses and tax numbers, also without the spaces, accents or country.
    for (sought, expected) in [
        ("ltd", "zeta-2"),
        ("pay%40ACME.example", "acme"),
        ("DE%20123", "acme"),
        ("de123", "acme"),
        ("ZETA%20gm", "zeta"),
        ("s%C3%B8nn", "sonner"),
        ("SONNER", "sonner"),
        ("987%20654", "sonner"),
        ("no987654321", "sonner"),
    ] {
        let hits = scene.client.get(&format!("/api/search?q={sought}")).ok();
        let hits = hits.as_array().expect("a list").iter().filter(|hit| hit["kind"] == "CUSTOMER");
        assert_eq!(hits.map(|hit| hit["ref"].clone()).collect::<Vec<_>>(), [json!(expected)], "{sought}");
    }
}

fn a_search_says_what_something_is(database: &Database) {
    let (scene, contract) = stage(database);
    let mut keyed = acceptance::scene::calls("2026-03-09", 1);
    keyed["idempotency_key"] = json!("meter-7/2026");
    let event = scene.client.post("/api/usage/event/batch", &json!({"events": [keyed]})).ok()["results"][0]["event_ref"].clone();
    let invoice = books::numbered(&scene.client, "UB-INV-2");
    let document_ref = invoice["document_ref"].as_str().expect("text");
    let event_ref = event.as_str().expect("text");
    let search = |q: &str| {
        let found = scene.client.get(&format!("/api/search?q={q}")).ok();
        let found = found.as_array().expect("a list").clone();
        for thing in found.iter().filter(|thing| thing["kind"] != "API_KEY") {
            // Each result exists at its path.
            scene.client.get(thing["url"].as_str().expect("a path")).ok();
        }
        found.iter().map(|thing| books::fields(thing, ["kind", "ref"]).join(" ")).collect::<Vec<_>>()
    };
    let all = numbers(&scene, "").split(' ').count();
    let document = format!("DOCUMENT {document_ref}");
    for (q, expected) in [
        ("UB-INV-2", document.clone()),
        ("ub-inv-2", document.clone()),
        ("INV-2", document.clone()),
        (document_ref, document),
        ("C-1", format!("CONTRACT {contract}")),
        (&contract, format!("CONTRACT {contract}")),
        ("acme", "CUSTOMER acme".to_owned()),
        ("%3Dacme", "CUSTOMER acme".to_owned()),
        ("plan", "PRICING plan".to_owned()),
        ("api%20c", "USAGE_PRODUCT api-calls".to_owned()),
        ("meter-7/2026", format!("USAGE_EVENT {event_ref}")),
        (event_ref, format!("USAGE_EVENT {event_ref}")),
    ] {
        assert_eq!(search(q), [expected], "{q}");
    }
    let by_po = search("PO-1");
    assert_eq!((by_po.len(), by_po.iter().filter(|found| found.starts_with("DOCUMENT")).count()), (all + 1, all), "{by_po:?}");
    assert!(search("bank%204711")[0].starts_with("PAYMENT "));
    assert_eq!(search("nothing%20of%20that%20name"), Vec::<String>::new());
}

fn what_is_wrong_with_a_query_is_named(database: &Database) {
    let scene = Scene::begin(database, "2026-01-15");
    let mut table = Table::default();
    for (query, errors) in [
        ("/api/documents/filter?order=number", "/order invalid_value"),
        ("/api/documents/filter?currency=EURO&overdue=yes", "/currency invalid_value, /overdue invalid_value"),
        ("/api/documents/filter?issued_from=today&due_to=1", "/issued_from invalid_format, /due_to invalid_format"),
        ("/api/documents/filter?updated_since=2026-01-01", "/updated_since invalid_format"),
        ("/api/documents/filter?cursor=x", "/cursor invalid_value"),
        ("/api/documents/filter?format=pdf", "/format invalid_value"),
        ("/api/documents/filter?format=csv&pageSize=5", "/pageSize invalid_value"),
        ("/api/contracts/search?state=DONE&ends_before=x", "/state invalid_value, /ends_before invalid_format"),
        ("/api/contracts/search?issues_before=2026-04-01", "/issues_before invalid_format"),
        ("/api/customers/filter?name=a&name=b", "/name duplicate"),
        ("/api/customers/filter?order=-email", "/order invalid_value"),
        ("/api/contracts/search?order=name", "/order invalid_value"),
        ("/api/usage/event/filter?order=quantity", "/order invalid_value"),
        ("/api/search", "/q required"),
        ("/api/search?q=", "/q invalid_format"),
    ] {
        table.get(&scene.client, query, invalid(errors));
    }
    table.finish();
}

fn a_control_character_that_is_looked_for_is_refused(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    for name in ["name", "email", "tax_id"] {
        for list in ["filter", "names"] {
            let answer = client.get(&format!("/api/customers/{list}?{name}=a%00b"));
            assert_eq!(
                (answer.status, &answer.body["errors"][0]["pointer"]),
                (422, &json!(format!("/{name}"))),
                "{}",
                answer.text
            );
        }
    }
}
