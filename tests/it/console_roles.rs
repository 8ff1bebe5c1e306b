//! Each role with each action of the console: offered actions succeed, and all other actions are neither shown nor carried out.

use std::collections::{BTreeMap, BTreeSet};

use acceptance::console::{Form, forms, links, page, upload};
use acceptance::hooks::{Endpoint, Receiver};
use acceptance::when::{Day, now};
use acceptance::{Client, Database, Server, binary, catalog};
use serde_json::json;

const PASSWORD: &str = "a-pass-phrase-of-ones-own";

/// Actions of every role: changes to one's own account, and the download of documents.
const EVERYBODY: [&str; 6] = [
    "account/password",
    "account/second-factor/enroll",
    "account/sessions/end",
    "account/sessions/end-others",
    "bulk/documents",
    "log-out",
];

/// The additional actions of each role, compared with the role before it.
const MORE: [(&str, &[&str]); 4] = [
    ("read", &[]),
    (
        "finance",
        &[
            "contracts/add",
            "contracts/cancel",
            "contracts/discount",
            "contracts/end",
            "contracts/invoicing",
            "contracts/price",
            "contracts/resume",
            "contracts/seats",
            "do/apply",
            "do/apply-payment",
            "do/charge",
            "do/delete-charge",
            "do/delete-limit",
            "do/deposit",
            "do/grant-credit",
            "do/issue",
            "do/limit",
            "do/pay",
            "do/refund",
            "do/refund-payment",
            "do/reverse",
            "do/sell-credit",
            "do/unapply",
            "do/void",
            "do/write-off",
            "edit/charges",
            "edit/contracts",
            "edit/credit",
            "edit/customers",
            "edit/limits",
            "new/billing-runs",
            "new/contracts",
            "new/customers",
        ],
    ),
    (
        "operator",
        &[
            "do/delete-entity",
            "do/delete-event",
            "do/release-hold",
            "edit/bank-accounts",
            "edit/entities",
            "edit/events",
            "edit/formats",
            "edit/pricings",
            "edit/usage-products",
            "edit/webhooks",
            "entities/logo",
            "import",
            "imports/undo",
            "new/bank-accounts",
            "new/entities",
            "new/formats",
            "new/imports",
            "new/pricings",
            "new/usage-products",
            "new/webhooks",
            "pricings/add",
            "webhooks/delete",
            "webhooks/rotate",
            "webhooks/send",
            "webhooks/test",
        ],
    ),
    ("owner", &["keys", "keys/delete", "keys/rotate", "team", "team/disable", "team/enable", "team/reset", "team/role"]),
];

/// The actions that the console offers to a person.
#[derive(Default)]
struct Offered {
    /// The first page with each action, by action.
    pages: BTreeMap<String, String>,
    /// The first form of each action, by action.
    forms: BTreeMap<String, Form>,
}

impl Offered {
    fn actions(&self) -> BTreeSet<&str> {
        self.pages.keys().chain(self.forms.keys()).map(String::as_str).collect()
    }
}

/// Returns the action of an address without the object that it applies to, or `None` if the page only shows data.
fn action(address: &str) -> Option<String> {
    let path = address.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches("/console/").split('/').collect();
    match parts.as_slice() {
        [kind @ ("new" | "edit" | "do"), what, ..] => Some(format!("{kind}/{what}")),
        ["imports", _, "undo"] => Some("imports/undo".to_owned()),
        ["entities", _, "logo"] => Some("entities/logo".to_owned()),
        [part @ ("contracts" | "pricings"), _, task] => Some(format!("{part}/{task}")),
        _ => None,
    }
}

/// Returns the action of a form's address. Every form has an action.
fn action_of_form(address: &str) -> String {
    let parts: Vec<&str> = address.trim_start_matches("/console/").split('/').collect();
    action(address).unwrap_or_else(|| match parts.as_slice() {
        [part @ ("keys" | "team" | "webhooks"), what, _] => format!("{part}/{what}"),
        ["account", "sessions", "end", _] => "account/sessions/end".to_owned(),
        _ => parts.join("/"),
    })
}

/// Follows all links that the pages show to a client.
fn explore(client: &Client) -> Offered {
    let mut offered = Offered::default();
    let mut seen = BTreeSet::new();
    let mut ahead = vec!["/console".to_owned()];
    while let Some(address) = ahead.pop() {
        let (path, query) = address.split_once('?').unwrap_or((&address, ""));
        let is_file = path.ends_with("/pdf") || path.ends_with("/xml") || path.starts_with("/console/csv/");
        let is_no_page = is_file || matches!(path, "/console/style.css" | "/console/log-out");
        // A list leads to the same pages in another order or with another filter, so the values of parameters are ignored.
        let names: BTreeSet<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
        if is_no_page || !seen.insert((path.to_owned(), names.into_iter().collect::<Vec<_>>().join("&"))) {
            continue;
        }
        let shown = page(client, &address);
        for form in forms(&shown) {
            offered.forms.entry(action_of_form(&form.action)).or_insert(form);
        }
        if let Some(action) = action(&address) {
            offered.pages.entry(action).or_insert_with(|| address.clone());
        }
        ahead.extend(links(&shown));
    }
    offered
}

/// Creates one object of every kind that an action applies to.
fn make_world(owner: &Client, software: &Client) {
    catalog::make(software);
    let receiver = Receiver::start();
    let endpoint = Endpoint::create(software, &receiver, &json!({}));
    for (path, body) in [
        ("/api/bank_accounts/", json!({"billing_account_id": "main", "iban": "DE89370400440532013000"})),
        // The default entity cannot be deleted.
        ("/api/entities/", json!({"entity_ref": "spare", "name": "Spare", "number_prefix": "SP"})),
        (
            "/api/usage/formats/",
            json!({"format_name": "gateway", "mapping": {
                "timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "event.what", "quantity": "event.count",
            }}),
        ),
    ] {
        software.post(path, &body).ok();
    }
    let in_europe =
        catalog::with(catalog::calls(&json!({"model": "PER_UNIT", "unit_price": 1})), &json!({"where": {"region": ["eu"]}}));
    catalog::make_pricing(software, "by-region", &json!([in_europe]));
    let contract = catalog::make_contract(software, &catalog::contract(catalog::ACME));
    // Seats are changed of a line item with an agreed quantity.
    let seats = json!({"product_pricing_ref": catalog::API_PLAN, "line_item_id": "platform-fee", "quantity": 2});
    software.post(&format!("/api/contracts/quantities/{contract}"), &seats).ok();
    software.post("/api/usage/event", &catalog::event(catalog::ACME, 1)).ok();
    let charge = json!({"charge_ref": "setup", "contract_ref": contract, "date": Day::today().to_string(), "name": "Setup", "unit_price": 5});
    software.post("/api/charges/", &charge).ok();
    // The limit is above all usage of the test, and the hold is open until its end.
    let limit = json!({"metric": "OWED", "customer_ref": catalog::ACME, "currency": "EUR", "max": 1_000_000});
    software.post("/api/limits/", &limit).ok();
    let credit = json!({"customer_ref": catalog::ACME, "currency": "EUR", "amount": 10, "name": "Welcome credit"});
    software.post("/api/credit_grants/", &credit).ok();
    let held = json!({"usage_product_ref": "api-calls", "quantity": 1});
    let hold = json!({"hold_ref": "job-1", "customer_ref": catalog::ACME, "usage": [held], "expires_in": 3600});
    software.post("/api/usage/holds/", &hold).ok();
    // One customer leaves and owes money, another one has overpaid.
    for customer in ["leaving", "rich"] {
        catalog::make_customer(software, customer);
        let contract = catalog::make_contract(software, &catalog::contract(customer));
        software.post("/api/usage/event", &catalog::event(customer, 1)).ok();
        let invoice = catalog::current_invoice(software, &contract)["document_ref"].as_str().expect("a reference").to_owned();
        software.post_nothing(&format!("/api/documents/issue/{invoice}")).ok();
        if customer == "rich" {
            software.post(&format!("/api/documents/payments/{invoice}"), &json!({"amount": 100_000, "overpayment": true})).ok();
            let gift = json!({
                "charge_ref": "gift", "contract_ref": contract, "date": Day::today().to_string(), "name": "Gift", "unit_price": -5,
                "reason": "good will",
            });
            software.post("/api/charges/", &gift).ok();
            let credits = software.get("/api/documents/filter?customer_ref=rich&kind=CREDIT&state=DRAFT").ok();
            let credit = credits[0]["document_ref"].as_str().expect("a credit");
            software.post_nothing(&format!("/api/documents/issue/{credit}")).ok();
        } else {
            let last_day = json!({"last_day": Day::today().plus_days(60).to_string()});
            software.post(&format!("/api/contracts/cancel/{contract}"), &last_day).ok();
        }
    }
    let file = format!("idempotency_key,timestamp,customer_ref,usage_product_ref,quantity\nx,{},acme,api-calls,1\n", now());
    assert_eq!(upload(owner, &[("file", Some("a.csv"), &file), ("do", None, "import")]).status, 303);
    // A notification that was delivered can be sent again.
    receiver.wait_for(1);
    endpoint.wait_for(software, "pending", &json!(0));
}

/// Returns the newest entry of the audit log. The entry differs after any change.
fn newest(owner: &Client) -> String {
    owner.get("/api/audit/filter?pageSize=1").ok().to_string()
}

#[test]
fn each_role_is_offered_what_it_may_do_and_nothing_else_is_shown_or_done() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (owner, software) = (Client::admin(&server), Client::new_key(&server));
    make_world(&owner, &software);
    let people = MORE.map(|(role, _)| {
        let person = Client::of_role(&database, &server, role, PASSWORD);
        // A second session, which can be ended.
        Client::log_in_admin(&server, &format!("{role}@example.com"), PASSWORD);
        (role, person)
    });
    let email = "disabled@example.com";
    binary::succeed(&database, &["admin", "create", "--organization", "default", "--email", email, "--password", PASSWORD]);
    binary::succeed(&database, &["admin", "disable", "--email", email]);

    let mut expected: BTreeSet<&str> = EVERYBODY.into();
    let all: BTreeSet<&str> = MORE.iter().flat_map(|(_, more)| *more).chain(&EVERYBODY).copied().collect();
    let everything = explore(&people[3].1);
    let seen: Vec<Offered> = people.iter().map(|(_, person)| explore(person)).collect();
    for (((role, person), (_, more)), offered) in people.iter().zip(MORE).zip(&seen) {
        expected.extend(more);
        let actions = offered.actions();
        let missing: Vec<_> = expected.difference(&actions).collect();
        let surplus: Vec<_> = actions.difference(&expected).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "{role}: not offered {missing:?}, offered {surplus:?}");
        let before = newest(&owner);
        for action in all.difference(&expected) {
            if let Some(address) = everything.pages.get(*action) {
                let answer = person.get(address);
                assert!(answer.status == 403 && answer.text.contains("insufficient_role"), "{role}: {address}: {}", answer.text);
            }
            let form = everything.forms.get(*action);
            for more in [&[][..], &[("confirmed", "yes")], &[("do", "import"), ("file", "a\n1\n")]] {
                let Some(answer) = form.map(|form| form.send(person, more)) else { continue };
                assert!(answer.status == 403 && answer.text.contains("insufficient_role"), "{role}: {action}: {}", answer.text);
            }
        }
        assert_eq!(newest(&owner), before, "{role}");
    }
    for ((role, person), offered) in people.iter().zip(&seen) {
        for (action, form) in offered.forms.iter().filter(|(action, _)| *action != "log-out") {
            let answer = form.send(person, &[("confirmed", "yes")]);
            assert!(answer.status < 500 && answer.status != 403, "{role}: {action}: {}", answer.text);
        }
    }
}
