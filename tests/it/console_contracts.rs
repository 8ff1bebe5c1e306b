//! The small forms of a contract and the wizard for new contracts, as a browser without scripts uses them.

use acceptance::console::{Form, forms, links, page};
use acceptance::when::Day;
use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

/// The pricing: 9.00 EUR per seat.
const TEAM: &str = "team";
/// Fields that a visitor does not see.
const HIDDEN: [&str; 3] = ["form_key", "version", "target"];

/// Starts a server with a contract of ten seats. Returns the server, the clients of the administrator and the software, and the
/// reference of the contract.
fn scene(database: &Database) -> (Server, Client, Client, String) {
    let (server, software) = catalog::stage(database);
    let admin = Client::admin(&server);
    catalog::make_pricing(&software, TEAM, &json!([catalog::fixed("seats", "9.00")]));
    let mut product = catalog::months(TEAM, 0, 11);
    let start = product["billing_start_date"].clone();
    product["line_items"] = json!([{"line_item_id": "seats", "quantities": [{"from": start, "quantity": 10}]}]);
    let contract = catalog::make_contract(&software, &json!({"customer_ref": catalog::ACME, "products": [product]}));
    (server, admin, software, contract)
}

/// Returns the form of a page that is sent to an address whose path has this end.
#[track_caller]
fn form(page: &str, end: &str) -> Form {
    let is_sent_there = |form: &Form| form.action.split('?').next().is_some_and(|path| path.ends_with(end));
    forms(page).into_iter().find(is_sent_there).unwrap_or_else(|| panic!("no form to {end}: {page}"))
}

/// Returns the form with other values.
fn filled(form: &Form, values: &[(&str, &str)]) -> Form {
    let mut form = form.clone();
    for (name, value) in values {
        form.fields.retain(|(known, _)| known != name);
        form.fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    form
}

/// Opens a small form by its link on the contract's page, and returns its address and the form.
#[track_caller]
fn open(admin: &Client, contract: &str, task: &str) -> (String, Form) {
    let shown = page(admin, &format!("/console/contracts/{contract}"));
    let start = format!("/console/contracts/{contract}/{task}");
    let link = links(&shown).into_iter().filter(|link| link.split('?').next() == Some(start.as_str())).max();
    let link = link.unwrap_or_else(|| panic!("no link to {task}: {shown}"));
    let form = form(&page(admin, &link), &format!("/{task}"));
    (link, form)
}

/// Fills in a small form, and carries out its preview. Returns the text of the preview.
#[track_caller]
fn carry_out(admin: &Client, contract: &str, task: &str, values: &[(&str, &str)]) -> String {
    let (_, asked) = open(admin, contract, task);
    let preview = filled(&asked, values).send(admin, &[]);
    assert!(preview.status == 200 && preview.text.contains("Nothing is saved yet."), "{task}: {}", preview.text);
    let done = form(&preview.text, &format!("/{task}")).send(admin, &[("confirmed", "yes")]);
    let place = format!("/console/contracts/{contract}?done=task.{task}");
    assert_eq!((done.status, done.header("Location")), (303, place.as_str()), "{task}: {}", done.text);
    assert!(page(admin, &place).contains("role=\"status\""), "{task}");
    preview.text
}

/// Returns the only product of a contract.
fn product(software: &Client, contract: &str) -> Value {
    catalog::only(software.get(&format!("/api/contracts/{contract}")).ok()["products"].clone())
}

/// Returns the total of the next invoice.
fn next_total(software: &Client, contract: &str) -> String {
    catalog::only(software.get(&format!("/api/contracts/invoices/next/{contract}")).ok())["total"].to_string()
}

#[test]
fn seats_change_with_three_fields_and_the_preview_is_what_is_billed() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software, contract) = scene(&database);
        let (link, asked) = open(&admin, &contract, "seats");
        assert!(link.ends_with("?target=0%2Fseats"), "{link}");
        let names = asked.fields.iter().map(|(name, _)| name.as_str());
        let visible: Vec<&str> = names.filter(|name| !HIDDEN.contains(name)).collect();
        assert_eq!(visible, ["quantity", "from", "prorate"]);
        assert_eq!(asked.fields.iter().find(|(name, _)| name == "quantity").map(|(_, value)| value.as_str()), Some("10"));
        let before = next_total(&software, &contract);
        let preview = carry_out(&admin, &contract, "seats", &[("quantity", "15")]);
        let after = next_total(&software, &contract);
        assert_ne!(before, after);
        for total in [before, after] {
            assert!(preview.contains(&format!("value=\"{total}\"")), "{total}: {preview}");
        }
        let quantities = product(&software, &contract)["line_items"][0]["quantities"].clone();
        assert_eq!(quantities[1]["from"], json!(Day::today().to_string()), "{quantities}");
        assert_eq!(quantities[1]["quantity"].to_string(), "15", "{quantities}");
    }
}

#[test]
fn small_forms_change_one_term_each() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software, contract) = scene(&database);
        carry_out(&admin, &contract, "price", &[("amount", "12.50")]);
        let priced = product(&software, &contract);
        assert_eq!(priced["line_items"][0]["price"]["amount"].to_string(), "12.50");
        let today = &priced["in_force"]["line_items"][0]["price"]["amount"];
        assert_eq!(today.to_string(), "9.00", "the next period has the new price");
        carry_out(&admin, &contract, "discount", &[("discount", "20"), ("start", "current")]);
        carry_out(&admin, &contract, "invoicing", &[("po_number", "PO 9"), ("net_terms", "30"), ("note", "a\r\nb")]);
        let last = Day::today().plus_days(100).to_string();
        carry_out(&admin, &contract, "end", &[("billing_end_date", &last)]);
        let changed = product(&software, &contract);
        assert_eq!((changed["discount"].to_string().as_str(), &changed["net_terms"]), ("20", &json!(30)));
        assert_eq!((&changed["note"], &changed["billing_end_date"]), (&json!("a\nb"), &json!(last)));
        assert_eq!(changed["line_items"][0]["quantities"].as_array().map(Vec::len), Some(1), "other terms stay");
        let whole = software.get(&format!("/api/contracts/{contract}")).ok();
        assert_eq!(whole["po_number"], "PO 9");
        // A form that is sent unchanged changes nothing.
        carry_out(&admin, &contract, "invoicing", &[]);
        assert_eq!(software.get(&format!("/api/contracts/{contract}")).ok(), whole);
        carry_out(&admin, &contract, "cancel", &[("end", "period")]);
        let state = || software.get(&format!("/api/contracts/{contract}")).ok()["state"].clone();
        assert_eq!(state(), "CANCELLING");
        let resume = page(&admin, &format!("/console/contracts/{contract}/resume"));
        assert_eq!(form(&resume, "/resume").send(&admin, &[("confirmed", "yes")]).status, 303);
        assert_eq!(state(), "ACTIVE");
    }
}

#[test]
fn what_a_small_form_can_not_do_is_beside_its_field() {
    let database = Database::sqlite();
    let (_server, admin, software, contract) = scene(&database);
    let before = software.get(&format!("/api/contracts/{contract}")).ok();
    for (task, values, shown) in [
        ("seats", &[("quantity", "ten")][..], "value=\"ten\""),
        ("price", &[("amount", "")][..], "name=\"amount\""),
        ("discount", &[("discount", "101")][..], "value=\"101\""),
        ("cancel", &[("end", "day"), ("last_day", "")][..], "value=\"day\" checked"),
    ] {
        let (_, asked) = open(&admin, &contract, task);
        let refused = filled(&asked, values).send(&admin, &[]);
        assert_eq!(refused.status, 422, "{task}: {}", refused.text);
        assert!(refused.text.contains("aria-invalid=\"true\"") && refused.text.contains(shown), "{task}: {}", refused.text);
    }
    for address in ["nothing", "seats?target=0%2Fnothing", "price?target=7"] {
        let answer = admin.get(&format!("/console/contracts/{contract}/{address}"));
        assert_eq!(answer.status, 404, "{address}: {}", answer.text);
    }
    assert_eq!(software.get(&format!("/api/contracts/{contract}")).ok(), before);
}

#[test]
fn a_change_of_an_older_version_is_refused() {
    let database = Database::sqlite();
    let (_server, admin, software, contract) = scene(&database);
    let (_, asked) = open(&admin, &contract, "discount");
    software.post(&format!("/api/contracts/edit/{contract}"), &json!({"po_number": "PO 1"})).ok();
    let refused = filled(&asked, &[("discount", "20")]).send(&admin, &[]);
    assert!(refused.status == 409 && refused.text.contains("Nothing was saved."), "{}", refused.text);
}

#[test]
fn the_wizard_creates_the_contract_that_it_previews() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software, _) = scene(&database);
        catalog::make_customer(&software, "globex");
        let contracts = || {
            let found = software.get("/api/contracts/search?customer_ref=globex").ok();
            found.as_array().expect("contracts").clone()
        };
        let first = page(&admin, "/console/new/contracts");
        let pricings =
            links(&first).into_iter().find(|link| link.contains("customer_ref=globex")).expect("a link to the customer");
        let shown = page(&admin, &pricings);
        assert!(shown.contains("name=\"pricing\" value=\"team\"") && shown.contains("globex Ltd"), "{shown}");
        let chosen = "/console/new/contracts?customer_ref=globex&pricing=team";
        assert!(page(&admin, &format!("{chosen}&step=term")).contains("name=\"start\""));
        let wrong = page(&admin, &format!("{chosen}&step=quantities&term=day&end="));
        assert!(wrong.contains("must be a date"), "{wrong}");

        let last = page(&admin, &format!("{chosen}&step=quantities&term=12"));
        let with_seats = filled(&form(&last, "/new/contracts"), &[("quantity/team/seats", "10"), ("discount", "5")]);
        let other = with_seats.send(&admin, &[("confirmed", "yes")]);
        assert!(other.status == 200 && other.text.contains("differ from the preview"), "{}", other.text);
        assert!(contracts().is_empty(), "only a previewed contract is created");
        let refused = filled(&with_seats, &[("discount", "101")]).send(&admin, &[]);
        assert!(refused.status == 422 && !refused.text.contains("Create contract</button>"), "{}", refused.text);
        for _ in 0..2 {
            let created = form(&other.text, "/new/contracts").send(&admin, &[("confirmed", "yes")]);
            assert_eq!(created.status, 303, "{}", created.text);
            assert!(created.header("Location").ends_with("?done=new.contracts"), "{}", created.header("Location"));
        }
        let created = catalog::only(json!(contracts()));
        let product = &created["products"][0];
        assert_eq!(product["line_items"][0]["quantities"][0]["quantity"].to_string(), "10");
        assert_eq!(product["discount"].to_string(), "5");
        assert_eq!(product["billing_start_date"], json!(Day::today().to_string()));
        let total = next_total(&software, created["contract_ref"].as_str().expect("a reference"));
        assert!(other.text.contains(&format!("value=\"{total}\"")), "{total}: {}", other.text);
    }
}

#[test]
fn the_wizard_counts_periods_from_the_first_day_or_in_calendar_months() {
    let database = Database::sqlite();
    let (_server, admin, software, _) = scene(&database);
    for (customer, periods, term, issue_day) in
        [("a", "start", "open", json!("2098-01-15")), ("b", "calendar", "12", json!("2098-02-01"))]
    {
        catalog::make_customer(&software, customer);
        let chosen = format!("customer_ref={customer}&pricing=team&start=2098-01-15&term={term}&periods={periods}");
        let last = page(&admin, &format!("/console/new/contracts?{chosen}&step=quantities"));
        let created = form(&last, "/new/contracts").send(&admin, &[("confirmed", "yes")]);
        assert_eq!(created.status, 303, "{}", created.text);
        let contract = catalog::only(software.get(&format!("/api/contracts/search?customer_ref={customer}")).ok());
        assert_eq!(contract["products"][0]["issue_day"], issue_day, "{periods} {term}");
    }
}

#[test]
fn the_console_asks_before_it_creates_the_same_contract_again() {
    let database = Database::sqlite();
    let (_server, admin, software, _) = scene(&database);
    catalog::make_customer(&software, "globex");
    let count = || {
        let found = software.get("/api/contracts/search?customer_ref=globex").ok();
        found.as_array().map(Vec::len).expect("contracts")
    };
    let last = "/console/new/contracts?customer_ref=globex&pricing=team&step=quantities&term=12";
    let (one, other) = (page(&admin, last), page(&admin, last));
    assert!(!one.contains("Possible mistake"), "{one}");
    assert_eq!(form(&one, "/new/contracts").send(&admin, &[("confirmed", "yes")]).status, 303);
    // The preview of the other page is older than the first contract.
    let asked = form(&other, "/new/contracts").send(&admin, &[("confirmed", "yes")]);
    assert!(asked.status == 200 && asked.text.contains("Possible mistake: contract C-2 of the same customer"), "{}", asked.text);
    assert_eq!(count(), 1);
    let shown = form(&asked.text, "/new/contracts");
    assert_eq!(shown.send(&admin, &[("confirmed", "yes")]).status, 200, "the question stays");
    assert_eq!(count(), 1);
    assert_eq!(shown.send(&admin, &[("confirmed", "yes"), ("accepted", "yes")]).status, 303);
    assert_eq!(count(), 2);

    let advanced = form(&page(&admin, "/console/new/contracts?advanced=yes"), "/new/contracts");
    let start = Day::today().to_string();
    let values = [
        ("customer_ref", "globex"),
        ("products/0/product_pricing_ref", TEAM),
        ("products/0/billing_start_date", start.as_str()),
        ("products/0/billing_end_date", "2099-12-31"),
    ];
    let preview = filled(&advanced, &values).send(&admin, &[]);
    assert!(preview.status == 200 && !preview.text.contains("Possible mistake"), "{}", preview.text);
    let confirmed = form(&preview.text, "/new/contracts");
    assert_eq!(confirmed.send(&admin, &[("confirmed", "yes")]).status, 303);
    assert_eq!(confirmed.send(&admin, &[("confirmed", "yes")]).status, 303, "the same form again creates nothing");
    let asked = filled(&confirmed, &[("form_key", "another")]).send(&admin, &[("confirmed", "yes")]);
    assert!(asked.status == 409 && asked.text.contains("Possible mistake: contract C-4"), "{} {}", asked.status, asked.text);
    assert_eq!(count(), 3);
    assert_eq!(form(&asked.text, "/new/contracts").send(&admin, &[("confirmed", "yes"), ("accepted", "yes")]).status, 303);
    assert_eq!(count(), 4);
}

#[test]
fn the_wizard_adds_a_product_and_keeps_the_others() {
    let database = Database::sqlite();
    let (_server, admin, software, contract) = scene(&database);
    let before = product(&software, &contract);
    let place = format!("/console/contracts/{contract}/add");
    assert!(page(&admin, &place).contains("name=\"pricing\""));
    let last = page(&admin, &format!("{place}?pricing={}&step=quantities", catalog::API_PLAN));
    let added = form(&last, "/add").send(&admin, &[("confirmed", "yes")]);
    assert_eq!(added.status, 303, "{}", added.text);
    let after = software.get(&format!("/api/contracts/{contract}")).ok()["products"].clone();
    assert_eq!((after.as_array().map(Vec::len), &after[0]), (Some(2), &before));
    assert_eq!(after[1]["billing_end_date"], before["billing_end_date"]);
    let links = links(&page(&admin, &format!("/console/contracts/{contract}")));
    assert!(links.contains(&format!("/console/contracts/{contract}/end-product?target=1")), "{links:?}");
    carry_out(&admin, &contract, "end-product", &[("end", "period"), ("target", "1")]);
    let ended = software.get(&format!("/api/contracts/{contract}")).ok()["products"].clone();
    assert_eq!(ended.as_array().map(Vec::len), Some(1), "{ended}");
}

#[test]
fn the_form_with_all_fields_stays_behind_the_wizard() {
    let database = Database::sqlite();
    let (_server, admin, _, contract) = scene(&database);
    let advanced = links(&page(&admin, "/console/new/contracts")).into_iter().find(|link| link.contains("advanced"));
    let shown = page(&admin, &advanced.expect("a link to the form with all fields"));
    assert!(shown.contains("name=\"products/0/product_pricing_ref\""), "{shown}");
    let own = links(&page(&admin, &format!("/console/contracts/{contract}")));
    assert!(own.contains(&format!("/console/edit/contracts/{contract}")), "{own:?}");
}
