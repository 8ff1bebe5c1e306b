//! The short forms of the catalog without scripts: a pricing with its line items, and references that are made from names.

use acceptance::console::{Form, forms, hidden, is_page, page, send_parts, submit};
use acceptance::{Answer, Client, Database, Server, catalog};
use serde_json::{Value, json};

const NEW_PRICING: &str = "/console/new/pricings";

fn form_of(page: &str, action: &str) -> Form {
    forms(page).into_iter().find(|form| form.action == action).unwrap_or_else(|| panic!("no form {action}: {page}"))
}

/// Returns the form with other values.
fn filled(form: &Form, values: &[(&str, &str)]) -> Form {
    let is_other = |(name, _): &&(String, String)| values.iter().all(|(other, _)| other != name);
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Form { fields: form.fields.iter().filter(is_other).cloned().chain(values).collect(), ..form.clone() }
}

fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.header("Location").split('?').next().unwrap_or_default()
}

/// The fields of a pricing with a fee, seats, a price per unit and graduated tiers.
const TEAM: [(&str, &str); 9] = [
    ("name", "Team plan"),
    ("currency", "EUR"),
    ("line_items/0/price/amount", "49"),
    ("line_items/1/price/amount", "20"),
    ("line_items/2/usage_product_ref", "api-calls"),
    ("line_items/2/price/unit_price", "0.05"),
    ("line_items/3/price/model", "GRADUATED"),
    ("line_items/3/usage_product_ref", "api-calls"),
    ("line_items/3/name", "Late calls"),
];

#[test]
fn one_form_makes_a_pricing_with_a_fee_seats_and_two_meters() {
    for database in [Database::sqlite(), Database::postgres()] {
        let server = Server::start(&database);
        let (admin, software) = (Client::admin(&server), Client::new_key(&server));
        catalog::make(&software);
        let begun = form_of(&page(&admin, NEW_PRICING), NEW_PRICING);
        let grown = begun.send(&admin, &[("resize", "+line_items:meter")]);
        let form = filled(&form_of(&grown.text, NEW_PRICING), &TEAM);
        let tiers = |last: &'static str| {
            [
                ("line_items/3/price/tiers/0/up_to", "1000"),
                ("line_items/3/price/tiers/0/unit_price", "0.10"),
                ("line_items/3/price/tiers/1/unit_price", last),
            ]
        };
        let wrong = filled(&form, &tiers("cheap")).send(&admin, &[("confirmed", "yes")]);
        assert!(wrong.status == 422 && is_page(&wrong), "{}", wrong.text);
        assert!(wrong.text.contains("value=\"cheap\"") && wrong.text.contains("aria-invalid"), "{}", wrong.text);
        let form = filled(&form, &tiers("0.04"));
        for live in [&[][..], &[("live", "yes"), ("confirmed", "yes")]] {
            let seen = form.send(&admin, live);
            assert!(seen.status == 200 && seen.text.contains("<polyline"), "{}", seen.text);
            assert_eq!(software.get("/api/pricings/team-plan").status, 404, "a preview stores nothing");
        }
        for _ in 0..2 {
            let made = form.send(&admin, &[("confirmed", "yes")]);
            assert_eq!(location(&made), "/console/pricings/team-plan", "a form that is sent twice makes one pricing");
        }
        let pricing = software.get("/api/pricings/team-plan").ok();
        let items = pricing["line_items"].as_array().expect("line items");
        let of = |item: &Value| {
            [&item["line_item_id"], &item["name"], &item["price"]["model"]].map(|text| text.as_str().map(str::to_owned))
        };
        let expected = [
            ["fee", "Fee", "FLAT"],
            ["seats", "Seats", "FLAT"],
            ["api-calls", "API calls", "PER_UNIT"],
            ["late-calls", "Late calls", "GRADUATED"],
        ];
        let made: Vec<_> = items.iter().map(of).collect();
        assert_eq!(made, expected.map(|item| item.map(|text| Some(text.to_owned()))));
    }
}

#[test]
fn a_pricing_gets_more_line_items_by_the_same_form_and_keeps_the_rest() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    let before = software.get("/api/pricings/api-plan").ok();
    let place = "/console/edit/pricings/api-plan";
    let form = form_of(&page(&admin, place), place);
    let unchanged = form.send(&admin, &[("confirmed", "yes")]);
    assert_eq!(location(&unchanged), "/console/pricings/api-plan");
    assert_eq!(software.get("/api/pricings/api-plan").ok()["line_items"], before["line_items"]);
    let form = form_of(&page(&admin, place), place);
    let grown = form.send(&admin, &[("resize", "+line_items:seats")]);
    let count = before["line_items"].as_array().map_or(0, Vec::len);
    let amount = format!("line_items/{count}/price/amount");
    let form = filled(&form_of(&grown.text, place), &[(&amount, "20")]);
    assert!(form.send(&admin, &[]).text.contains("<dt>Seats</dt>"), "the preview has the new line item");
    assert_eq!(location(&form.send(&admin, &[("confirmed", "yes")])), "/console/pricings/api-plan");
    let after = software.get("/api/pricings/api-plan").ok();
    let items = after["line_items"].as_array().expect("line items");
    assert_eq!(items[..count], *before["line_items"].as_array().expect("line items"));
    assert_eq!((&items[count]["line_item_id"], &items[count]["name"]), (&json!("seats"), &json!("Seats")));
}

#[test]
fn a_label_without_a_price_leads_to_a_row_of_its_pricing() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    let priced = |id: &str, counts: &Value| {
        let price = json!({"model": "PER_UNIT", "unit_price": 2});
        let item = json!({"line_item_id": id, "kind": "USAGE", "usage_product_ref": catalog::API_CALLS, "price": price});
        catalog::with(item, counts)
    };
    let large = priced("large", &json!({"where": {"model": ["large-1", "large-2"], "region": ["eu"]}}));
    let items = json!([catalog::fixed("fee", "49"), large, priced("requests", &json!({"aggregation": "COUNT"}))]);
    catalog::make_pricing(&software, "models", &items);
    catalog::make_contract(
        &software,
        &catalog::with(catalog::contract(catalog::ACME), &json!({"products": [catalog::ended("models")]})),
    );
    let before = software.get("/api/pricings/models").ok()["line_items"].clone();

    let rejected = "customer_ref=acme&usage_product_ref=api-calls&label%3Amodel=huge-1&label%3Aother=x";
    let led = admin.get(&format!("/console/refused/price?{rejected}"));
    assert_eq!(location(&led), "/console/pricings/models/add");
    let place = "/console/pricings/models/add?usage_product_ref=api-calls";
    let form = form_of(&page(&admin, led.header("Location")), place);
    let value = |name: &str| form.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    assert_eq!((value("where/model"), value("where/region")), (Some("huge-1"), Some("")));
    assert_eq!(value("name"), Some("huge-1"));

    let wrong = form.send(&admin, &[("price/unit_price", "cheap")]);
    assert!(
        wrong.status == 422 && wrong.text.contains("aria-invalid") && wrong.text.contains(">huge-1</textarea>"),
        "{}",
        wrong.text
    );
    let row = filled(&form, &[("price/unit_price", "3"), ("where/model", "huge-1\r\nhuge-2, EU\r\n")]);
    assert_eq!(location(&row.send(&admin, &[])), "/console/pricings/models");
    let after = software.get("/api/pricings/models").ok()["line_items"].clone();
    let added = &after[2];
    assert_eq!([&added["line_item_id"], &added["name"]], [&json!("huge-1"), &json!("huge-1")]);
    assert_eq!((&added["where"], &added["price"]["unit_price"]), (&json!({"model": ["huge-1", "huge-2, EU"]}), &json!(3)));
    assert_eq!([&after[0], &after[1], &after[3]], [&before[0], &before[1], &before[2]], "the others stay");
    let again = row.send(&admin, &[]);
    assert!(again.status == 422 && again.text.contains("line item huge-1"), "{}", again.text);
    let shown = page(&admin, "/console/pricings/models");
    assert!(shown.contains("<td>huge-1, huge-2, EU</td>") && shown.contains("<th scope=\"col\">region</th>"), "{shown}");

    let edit = "/console/edit/pricings/models";
    let form = form_of(&page(&admin, edit), edit);
    let renamed = filled(&form, &[("line_items/1/name", "Large")]);
    assert_eq!(location(&renamed.send(&admin, &[("confirmed", "yes")])), "/console/pricings/models");
    let edited = software.get("/api/pricings/models").ok()["line_items"].clone();
    assert_eq!((&edited[1]["name"], &edited[1]["where"]), (&json!("Large"), &after[1]["where"]));
    for lost in ["customer_ref=nobody&usage_product_ref=api-calls", "customer_ref=acme&usage_product_ref=else"] {
        assert_eq!(location(&admin.get(&format!("/console/refused/price?{lost}"))), "/console/pricings");
    }
    assert_eq!(location(&admin.get("/console/pricings/models/add?usage_product_ref=else")), "/console/pricings/models");
}

#[test]
fn the_first_attribute_of_a_usage_product_turns_its_price_into_that_of_the_rest() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    let price = json!({"model": "PER_UNIT", "unit_price": 2});
    let calls = json!({"line_item_id": "calls", "kind": "USAGE", "usage_product_ref": catalog::API_CALLS, "price": price});
    catalog::make_pricing(&software, "plain", &json!([catalog::fixed("fee", "49"), calls]));
    let place = "/console/pricings/plain/add?usage_product_ref=api-calls";
    assert!(page(&admin, "/console/pricings/plain").contains("Add price by attribute</a>"));
    let form = form_of(&page(&admin, place), place);
    let row = filled(&form, &[("new/key", "model"), ("new/values", "large\nhuge"), ("price/unit_price", "3")]);
    let without_values = filled(&row, &[("new/values", "")]).send(&admin, &[]);
    assert!(without_values.status == 422 && without_values.text.contains("aria-invalid"), "{}", without_values.text);
    assert_eq!(location(&row.send(&admin, &[])), "/console/pricings/plain");
    let items = software.get("/api/pricings/plain").ok()["line_items"].clone();
    let facts = |at: usize| (&items[at]["line_item_id"], &items[at]["where"], &items[at]["rest"]);
    assert_eq!(facts(1), (&json!("large-huge"), &json!({"model": ["huge", "large"]}), &json!(null)));
    assert_eq!(facts(2), (&json!("calls"), &json!(null), &json!(true)));

    // A further attribute gets a column of its own.
    let form = form_of(&page(&admin, place), place);
    let row = filled(&form, &[("new/key", "tier"), ("new/values", "gold"), ("where/model", "small"), ("price/unit_price", "4")]);
    assert_eq!(location(&row.send(&admin, &[])), "/console/pricings/plain");
    let items = software.get("/api/pricings/plain").ok()["line_items"].clone();
    assert_eq!(items[2]["where"], json!({"model": ["small"], "tier": ["gold"]}));
}

#[test]
fn a_reference_is_made_from_the_name_and_gets_a_number_if_it_is_in_use() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    for (part, form, reference) in [
        ("customers", "name=M%C3%BCller+%26+Co", "muller-co"),
        ("usage-products", "name=API+calls&unit=call", "api-calls"),
        ("entities", "legal_name=Harbor+GmbH&number_prefix=HB&address%2Fcity=Kiel&timezone=UTC&name=Harbor", "harbor"),
        ("bank-accounts", "iban=DE89370400440532013000&account_name=Harbor&bank_name=First+Bank", "first-bank"),
    ] {
        let new = format!("/console/new/{part}");
        let proposed = admin
            .get(&format!(
                "/console/reference?{}",
                form.split('&').find(|pair| pair.starts_with("name=")).unwrap_or("name=First+Bank")
            ))
            .ok();
        assert_eq!(proposed, json!(reference), "what the form shows is what is stored");
        for (key, expected) in [
            ("k1", reference.to_owned()),
            ("k1", reference.to_owned()),
            ("k2", format!("{reference}-2")),
            ("k2", format!("{reference}-2")),
        ] {
            let form = form.replace("=HB", if key == "k1" { "=HB" } else { "=HC" });
            let made = submit(&admin, &new, &format!("{form}&form_key={part}-{key}"));
            assert_eq!(location(&made), format!("/console/{part}/{expected}"), "{}", made.text);
        }
    }
    let taken = submit(&admin, "/console/new/customers", "name=Another&customer_ref=muller-co&form_key=k3");
    assert!(taken.status == 409 && taken.text.contains("is already in use"), "{}", taken.text);
    assert_eq!(software.get("/api/customers/muller-co-2").status, 200);
    assert_eq!(software.get("/api/customers/another").status, 404, "a reference that somebody chose is not replaced");
}

#[test]
fn a_logo_is_uploaded_as_a_file_shown_on_paper_and_removed() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    software.post("/api/entities/", &json!({"entity_ref": "harbor", "name": "Harbor", "number_prefix": "HB"})).ok();
    let logo = || software.get("/api/entities/harbor").ok()["logo"].clone();
    let place = "/console/entities/harbor/logo";
    assert!(page(&admin, "/console/entities/harbor").contains(place));
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 16"><rect width="60" height="16"/></svg>"#;
    let look = |file: &str| send_parts(&admin, place, &[("file", Some("logo.svg"), file), ("do", None, "look")]);
    let wrong = look(&svg.replace("<rect", "<script/><rect"));
    assert!(wrong.text.contains("must not have") && !wrong.text.contains("data:image"), "{}", wrong.text);
    assert!(look("").text.contains("must be the content of a PNG or SVG file"));
    let seen = look(svg);
    assert!(seen.text.contains("src=\"data:image/svg+xml;base64,"), "{}", seen.text);
    assert_eq!(logo(), json!(null), "a preview stores nothing");
    let content = hidden(&seen.text, "content");
    let saved = send_parts(&admin, place, &[("content", None, content), ("do", None, "save")]);
    assert_eq!(location(&saved), "/console/entities/harbor");
    assert!(logo().as_str().is_some_and(|logo| logo.starts_with("svg:")), "{}", logo());
    assert_eq!(location(&send_parts(&admin, place, &[("do", None, "remove")])), "/console/entities/harbor");
    assert_eq!(logo(), json!(null));
    let foreign = admin.with_header("Sec-Fetch-Site", "cross-site");
    assert_eq!(send_parts(&foreign, place, &[("do", None, "remove")]).status, 403);
}
