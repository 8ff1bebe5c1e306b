//! A tour that executes every operation of the API once, with success.
//!
//! The order tells a story: a seller and a customer, then a contract, usage, billing and payment. Tests use the
//! recorded requests and responses as examples, and their references as references of existing objects.

use serde_json::{Value, json};

use crate::client::Key;
use crate::codes::code_at;
use crate::hooks::{Endpoint, Receiver};
use crate::{Answer, Client, Clock, Database, Server};

/// The day of the tour. The server and the tour need a clock that shows this day.
pub const DAY: &str = "2026-11-10";
/// Noon of [`DAY`].
const NOON: &str = "2026-11-10T12:00:00Z";

/// A request to an operation and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The name of the operation in the OpenAPI document.
    pub operation: &'static str,
    /// The path with its references and its query string: `/api/customers/acme`.
    pub path: String,
    /// The JSON request body.
    pub request: Option<Value>,
    /// The response.
    pub answer: Answer,
}

/// The result of a tour.
#[derive(Debug)]
pub struct TourResult {
    /// The exchange of each operation, in the order of the story.
    pub exchanges: Vec<Exchange>,
    /// A client that is logged in with an API key with every scope.
    pub client: Client,
    /// References of unused API keys.
    pub spare_keys: Vec<String>,
}

/// Starts a sandbox for a tour, at noon of [`DAY`] on both clocks. The server reads the returned clock as the machine's.
///
/// # Panics
/// Panics if the server does not become ready.
pub fn begin(database: &Database, flags: &[&str]) -> (Server, Clock) {
    let clock = Clock::at(NOON);
    let flags: Vec<&str> = ["--sandbox", "--now", NOON].into_iter().chain(flags.iter().copied()).collect();
    (Server::start_on_with(database, &clock, &flags), clock)
}

/// Runs the tour on a server whose organization is in its state after the first start. On a live server, it leaves out the clock.
///
/// # Panics
/// Panics if the server rejects a request.
pub fn take(server: &Server) -> TourResult {
    take_at(server, NOON)
}

/// Runs the tour like [`take`]. The machine's clock, which the codes of second factors use, shows an instant of its own.
///
/// # Panics
/// Panics if the server rejects a request.
pub fn take_at(server: &Server, machine: &str) -> TourResult {
    let (admin, nobody) = (Client::admin(server), Client::anonymous(server));
    let mut tour = Tour { exchanges: Vec::new(), client: nobody.clone(), admin, nobody, machine: machine.to_owned() };
    tour.log_in(server);
    tour.manage_people(server);
    tour.make_catalog();
    tour.make_format();
    let contract_ref = tour.agree();
    tour.report_usage();
    tour.charge(&contract_ref);
    tour.limit();
    tour.bill(&contract_ref);
    tour.be_paid();
    tour.end(&contract_ref);
    tour.sell_credit();
    tour.ask_the_service();
    tour.send_notifications();
    if tour.client.get("/api/clock").status == 200 {
        tour.pass_time();
    }
    let spare_keys = (0..20).map(|_| tour.admin.generate_key(&json!({})).api_key_ref).collect();
    TourResult { exchanges: tour.exchanges, client: tour.client, spare_keys }
}

struct Tour {
    exchanges: Vec<Exchange>,
    nobody: Client,
    client: Client,
    admin: Client,
    machine: String,
}

impl Tour {
    fn keep(&mut self, operation: &'static str, path: &str, request: Option<Value>, answer: Answer) -> Value {
        assert!(matches!(answer.status, 200 | 204), "{operation}: {}", answer.text);
        let body = answer.body.clone();
        self.exchanges.push(Exchange { operation, path: path.to_owned(), request, answer });
        body
    }

    fn post(&mut self, operation: &'static str, path: &str, body: Value) -> Value {
        let answer = self.client.post(path, &body);
        self.keep(operation, path, Some(body), answer)
    }

    fn post_nothing(&mut self, operation: &'static str, path: &str) -> Value {
        let answer = self.client.post_nothing(path);
        self.keep(operation, path, None, answer)
    }

    fn get(&mut self, operation: &'static str, path: &str) -> Value {
        let answer = self.client.get(path);
        self.keep(operation, path, None, answer)
    }

    fn delete(&mut self, operation: &'static str, path: &str) {
        let answer = self.client.delete(path);
        self.keep(operation, path, None, answer);
    }

    fn log_in(&mut self, server: &Server) {
        let key: Key = self.admin.generate_key(&json!({}));
        self.client = Client::key(server, &key);
        let (body, path) = (json!({"name": "gateway", "scopes": ["usage:write", "read"]}), "/auth/keys/generate");
        let answer = self.admin.post(path, &body);
        let made = self.keep("generate_key", path, Some(body), answer);
        let answer = self.admin.get("/auth/keys/list?pageSize=1");
        self.keep("list_keys", "/auth/keys/list?pageSize=1", None, answer);
        let body = json!({"api_key": made["api_key"], "password": made["password"]});
        let answer = self.nobody.post("/auth/login", &body);
        let token = text(&self.keep("log_in", "/auth/login", Some(body), answer));
        let leaving = self.nobody.with_header("Authorization", &format!("Bearer {token}"));
        let answer = leaving.post_nothing("/auth/logout");
        self.keep("log_out", "/auth/logout", None, answer);
        let listed = self.admin.get("/auth/keys/list?pageSize=1000").ok();
        let found = listed.as_array().into_iter().flatten().find(|key| key["api_key"] == made["api_key"]).expect("a listed key");
        let (body, path) = (json!({"overlap_hours": 24}), format!("/auth/keys/rotate/{}", text(&found["api_key_ref"])));
        let answer = self.admin.post(&path, &body);
        self.keep("rotate_key", &path, Some(body), answer);
        let path = format!("/auth/user/{}", text(&found["api_key_ref"]));
        let answer = self.admin.delete(&path);
        self.keep("delete_key", &path, None, answer);
    }

    /// Invites an administrator, who manages their own account. Then an owner edits and resets this administrator.
    fn manage_people(&mut self, server: &Server) {
        let (body, path) = (json!({"email": "colleague@acme.example", "role": "finance"}), "/api/administrators/");
        let answer = self.admin.post(path, &body);
        let invited = self.keep("invite_administrator", path, Some(body), answer);
        let own = "a pass phrase of their own";
        let first = json!({"email": invited["email"], "password": invited["password"], "new_password": own});
        let again = json!({"email": invited["email"], "password": own});
        let [colleague, other, third] = [&first, &again, &again].map(|body| {
            let client = Client::anonymous(server).with_header("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)");
            let answer = client.post("/auth/login", body);
            assert_eq!(answer.status, 200, "{}", answer.text);
            client.with_header("Cookie", answer.header("Set-Cookie").split(';').next().unwrap_or_default())
        });
        let answer = colleague.get("/auth/session");
        self.keep("get_session", "/auth/session", None, answer);
        let answer = colleague.get("/auth/sessions/list");
        self.keep("list_sessions", "/auth/sessions/list", None, answer);
        let path = format!("/auth/sessions/{}", text(&other.get("/auth/session").ok()["session_ref"]));
        let answer = colleague.delete(&path);
        self.keep("end_session", &path, None, answer);
        assert_eq!(third.get("/auth/session").status, 200);
        let answer = colleague.delete("/auth/sessions/others");
        self.keep("end_other_sessions", "/auth/sessions/others", None, answer);

        let (body, path) = (json!({"password": own}), "/auth/session/confirm");
        let answer = colleague.post(path, &body);
        self.keep("confirm_identity", path, Some(body), answer);
        let path = "/auth/second-factor/enroll";
        let answer = colleague.post_nothing(path);
        let secret = text(&self.keep("enroll_second_factor", path, None, answer)["secret"]);
        let (body, path) = (json!({"code": code_at(&secret, &self.machine)}), "/auth/second-factor/confirm");
        let answer = colleague.post(path, &body);
        let confirmed = self.keep("confirm_second_factor", path, Some(body), answer);
        let body = json!({"password": own, "code": confirmed["recovery_codes"][0]});
        let path = "/auth/second-factor/remove";
        let answer = colleague.post(path, &body);
        self.keep("remove_second_factor", path, Some(body), answer);
        let (body, path) = (json!({"password": own, "new_password": "another pass phrase"}), "/auth/password");
        let answer = colleague.post(path, &body);
        self.keep("change_password", path, Some(body), answer);

        let at = |action: &str| format!("/api/administrators/{action}/{}", invited["admin_ref"].as_str().unwrap_or_default());
        let (body, path) = (json!({"role": "operator"}), at("edit"));
        let answer = self.admin.post(&path, &body);
        self.keep("edit_administrator", &path, Some(body), answer);
        let path = at("reset");
        let answer = self.admin.post_nothing(&path);
        self.keep("reset_administrator", &path, None, answer);
        let path = "/api/administrators/filter?pageSize=1";
        let answer = self.admin.get(path);
        self.keep("list_administrators", path, None, answer);
    }

    fn make_catalog(&mut self) {
        let seller = json!({
            "entity_ref": "seller", "name": "Seller GmbH", "legal_name": "Seller Gesellschaft mbH", "number_prefix": "UB",
            "timezone": "Europe/Berlin", "currency": "EUR",
            "address": {"line1": "Hauptstr. 1", "city": "Berlin", "zip_code": "10115", "country": "DE", "country_code": "DE"},
            "vat_id": "DE123456789",
        });
        // The numbers in the descriptions of fields have the prefix of the first entity.
        let first = self.client.get("/api/entities/filter").ok()[0]["entity_ref"].as_str().expect("a reference").to_owned();
        self.client.post(&format!("/api/entities/edit/{first}"), &json!({"number_prefix": "MAIN"})).ok();
        self.post("create_entity", "/api/entities/", seller);
        self.post("edit_entity", "/api/entities/edit/seller", json!({"grace_hours": 3}));
        self.client.post("/api/entities/", &json!({"entity_ref": "spare", "name": "Spare", "number_prefix": "SP"})).ok();
        self.delete("delete_entity", "/api/entities/spare");
        self.get("get_entity", "/api/entities/seller");
        self.get("list_entities", "/api/entities/filter?pageNumber=1&pageSize=1");
        self.get("list_entity_names", "/api/entities/names");

        let account = json!({
            "billing_account_id": "main", "iban": "DE89370400440532013000", "bic": "COBADEFFXXX", "bank_name": "Commerzbank",
        });
        self.post("create_bank_account", "/api/bank_accounts/", account);
        self.post("edit_bank_account", "/api/bank_accounts/edit/main", json!({"account_name": "Seller GmbH"}));
        self.get("get_bank_account", "/api/bank_accounts/main");
        self.get("list_bank_accounts", "/api/bank_accounts/filter");
        let rate = json!({"from": "USD", "to": "EUR", "date": "2026-11-09", "rate": "0.8653"});
        self.post("put_exchange_rate", "/api/exchange_rates/", rate);
        self.get("list_exchange_rates", "/api/exchange_rates/filter");

        let calls = json!({"usage_product_ref": "api-calls", "name": "API calls", "unit": "call"});
        self.post("create_usage_product", "/api/usage/products/", calls);
        self.post("edit_usage_product", "/api/usage/products/edit/api-calls", json!({"name": "Calls of the API"}));
        self.get("get_usage_product", "/api/usage/products/api-calls");
        self.get("list_usage_products", "/api/usage/products/filter");

        let tiers = json!([{"up_to": 1000, "unit_price": "0.10"}, {"unit_price": "0.01"}]);
        let plan = json!({
            "product_pricing_ref": "api-plan", "name": "API plan", "currency": "EUR",
            "line_items": [
                {"line_item_id": "fee", "name": "Platform", "kind": "FIXED", "price": {"model": "FLAT", "amount": "49.00"}},
                {"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "api-calls",
                 "price": {"model": "GRADUATED", "tiers": tiers}},
            ],
        });
        self.post("create_pricing", "/api/pricings/", plan);
        self.post("edit_pricing", "/api/pricings/edit/api-plan", json!({"name": "API plan 2026"}));
        self.get("get_pricing", "/api/pricings/api-plan");
        self.get("list_pricings", "/api/pricings/filter");
        let per_unit = json!({
            "name": "API plan 2027", "currency": "EUR", "quantities": [100, 1500],
            "line_items": [{"line_item_id": "calls", "kind": "USAGE", "usage_product_ref": "api-calls",
                            "price": {"model": "PER_UNIT", "unit_price": "0.05"}}],
        });
        self.post("rate_new_pricing", "/api/pricings/rates", per_unit);
        self.get("rate_pricing", "/api/pricings/rates/api-plan?quantity=100,1500");

        let customer = json!({
            "customer_ref": "acme", "name": "Acme Ltd", "email": "billing@acme.example", "tax": 19, "net_terms": 30,
            "entity_ref": "seller",
            "billing_address": {"line1": "1 Main Street", "city": "Dublin", "zip_code": "D01 F5P2", "country": "IE", "country_code": "IE"},
            "e_invoice_profile": "XRECHNUNG",
        });
        self.post("create_customer", "/api/customers/", customer);
        self.get("check_e_invoice", "/api/customers/e_invoice_check/acme");
        let edit = json!({"legal_name": "Acme Limited", "e_invoice_profile": null});
        self.post("edit_customer", "/api/customers/edit/acme", edit);
        self.get("get_customer", "/api/customers/acme");
        self.get("list_customers", "/api/customers/filter?name=Acme");
        self.get("list_customer_names", "/api/customers/names");
    }

    fn make_format(&mut self) {
        let mapping = json!({
            "timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "\"api-calls\"", "quantity": "event.count",
        });
        let format = json!({"format_ref": "gateway-log", "format_name": "Gateway log", "mapping": mapping});
        self.post("create_usage_format", "/api/usage/formats/", format);
        self.post("edit_usage_format", "/api/usage/formats/edit/gateway-log", json!({"format_name": "Gateway"}));
        let event = json!({"at": "2026-11-10T09:00:00Z", "who": "acme", "count": 7});
        self.post("test_usage_format", "/api/usage/formats/test", json!({"format_name": "Gateway", "event": event}));
        self.get("get_usage_format", "/api/usage/formats/gateway-log");
        self.get("list_usage_formats", "/api/usage/formats/filter?pageNumber=1&pageSize=1");
    }

    /// Creates and changes a contract. Its first month is over, so that billing has something to issue.
    fn agree(&mut self) -> String {
        let contract = json!({
            "customer_ref": "acme", "po_number": "PO-17",
            "products": [{
                "product_pricing_ref": "api-plan", "billing_start_date": "2026-10-01", "billing_end_date": "2027-09-30",
                "issue_day": "2026-10-01", "entity_ref": "seller", "payment_time": "AFTER_USE", "discount": "12.5",
            }],
        });
        let contract_ref = text(&self.post("create_contract", "/api/contracts/", contract)["contract_ref"]);
        let at = |action: &str| format!("/api/contracts/{action}{contract_ref}");
        let seats = json!({"product_pricing_ref": "api-plan", "line_item_id": "fee", "quantity": 2, "from": "2026-12-01"});
        self.post("change_quantity", &at("quantities/"), seats);
        self.post("edit_contract", &at("edit/"), json!({"po_number": "PO-18"}));
        self.get("get_contract", &at(""));
        self.get("list_contracts", "/api/contracts/filter?customer_ref=acme&pageSize=20&pageNumber=0");
        self.get("search_contracts", "/api/contracts/search?po_number=PO-18");
        contract_ref
    }

    fn report_usage(&mut self) {
        let event = |quantity: &str, at: &str| json!({"timestamp": at, "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": quantity});
        let mut reported = event("1203.5", "2026-10-31T18:30:00Z");
        reported["additional_report_data"] = json!({"region": "eu-1"});
        let event_ref = text(&self.post("record_event", "/api/usage/event", reported)["event_ref"]);
        let update = json!({"event_ref": event_ref, "quantity": 1200});
        self.post("update_event", "/api/usage/event/update", update);
        self.get("get_event", &format!("/api/usage/event/{event_ref}"));
        let raw = |count: u32| json!({"at": "2026-11-10T09:00:00Z", "who": "acme", "count": count});
        let formatted = json!({"format_name": "Gateway", "event": raw(7)});
        let formatted = self.post("record_formatted_event", "/api/usage/event/formatted", formatted);
        let update = json!({"event_ref": formatted["event_ref"], "event": raw(8)});
        self.post("update_formatted_event", "/api/usage/event/formatted/update", update);
        let keyed = |key: &str, event: Value| crate::catalog::with(event, &json!({"idempotency_key": key}));
        let batch = json!({"events": [
            keyed("gateway/1", event("10", "2026-11-10T08:00:00Z")),
            keyed("gateway/2", crate::catalog::with(event("1", "2026-11-10T08:00:01Z"), &json!({"customer_ref": "nobody"}))),
        ]});
        let batch = self.post("record_batch", "/api/usage/event/batch", batch);
        let file = json!([
            keyed("gateway/1", event("10", "2026-11-10T08:00:00Z")),
            keyed("gateway/3", event("5", "2026-11-10T08:00:02Z"))
        ]);
        let imported = self.post("import_usage", "/api/usage/import?name=gateway.json", file);
        self.get("list_imports", "/api/usage/imports/filter?name=gateway.json");
        self.get("get_import", &format!("/api/usage/imports/{}", text(&imported["import_ref"])));
        let wrong = json!([keyed("gateway/4", event("500", "2026-11-10T08:00:03Z"))]);
        let wrong = self.client.post("/api/usage/import?name=wrong.json", &wrong).ok();
        self.post_nothing("undo_import", &format!("/api/usage/imports/undo/{}", text(&wrong["import_ref"])));
        let deleted = text(&batch["results"][0]["event_ref"]);
        self.delete("delete_event", &format!("/api/usage/event/{deleted}"));
        self.get("get_event_history", &format!("/api/usage/event/history/{deleted}"));
        self.get("list_events", "/api/usage/event/filter?customer_ref=acme&pageSize=1&pageNumber=0");
        let at = std::time::Instant::now();
        let path = "/api/usage/refused/filter?customer_ref=nobody";
        while self.client.get(path).body == json!([]) && at.elapsed() < std::time::Duration::from_secs(60) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        self.get("list_refused_usage", path);
        self.get("summarize_usage", "/api/usage/summary?interval=month&group_by=usage_product_ref&customer_ref=acme");
        self.get("report_usage", "/api/usage/report?format=json&to=2026-11-01T00:00:00Z");
    }

    fn charge(&mut self, contract_ref: &str) {
        let charge = json!({
            "charge_ref": "setup-1", "contract_ref": contract_ref, "date": "2026-11-10", "name": "Setup", "unit_price": 500,
            "reason": "as offered",
        });
        self.post("record_charge", "/api/charges/", charge.clone());
        self.post("edit_charge", "/api/charges/edit/setup-1", json!({"unit_price": "450.00"}));
        self.get("get_charge", "/api/charges/setup-1");
        self.get("list_charges", "/api/charges/filter?customer_ref=acme");
        self.delete("delete_charge", "/api/charges/setup-1");
        self.client.post("/api/charges/", &crate::catalog::with(charge, &json!({"charge_ref": "setup-2"}))).ok();
    }

    fn limit(&mut self) {
        let limit = json!({"metric": "OWED", "customer_ref": "acme", "currency": "EUR", "max": 5000});
        let limit = self.post("create_limit", "/api/limits/", limit);
        let limit_ref = limit["limit_ref"].as_str().unwrap_or_default().to_owned();
        self.post("edit_limit", &format!("/api/limits/edit/{limit_ref}"), json!({"max": "7500.00"}));
        self.get("get_limit", &format!("/api/limits/{limit_ref}"));
        self.get("list_limits", "/api/limits/filter?customer_ref=acme");
        self.get("get_limits_left", "/api/limits/left?customer_ref=acme");
        let usage = json!([{"usage_product_ref": crate::catalog::API_CALLS, "quantity": 5}]);
        self.post("create_hold", "/api/usage/holds/", json!({"hold_ref": "req-1", "customer_ref": "acme", "usage": usage}));
        self.get("get_hold", "/api/usage/holds/req-1?customer_ref=acme");
        self.get("list_holds", "/api/usage/holds/filter?customer_ref=acme&open=true");
        self.delete("release_hold", "/api/usage/holds/req-1?customer_ref=acme");
        self.delete("delete_limit", &format!("/api/limits/{limit_ref}"));
    }

    fn sell_credit(&mut self) {
        let fee = json!({"line_item_id": "credit", "name": "Credit", "kind": "FIXED", "price": {"model": "FLAT", "amount": 100}});
        let pricing = json!({"product_pricing_ref": "credit-100", "name": "Credit", "currency": "EUR", "line_items": [fee]});
        self.client.post("/api/pricings/", &pricing).ok();
        let payment = json!({"amount": "119.00", "reference": "pi_1"});
        let sale = json!({"customer_ref": "acme", "product_pricing_ref": "credit-100", "name": "Credit", "payment": payment});
        self.post("sell_credit", "/api/credit_grants/sell", sale);
        let welcome =
            json!({"customer_ref": "acme", "currency": "EUR", "amount": "10.00", "name": "Welcome", "to": "2026-12-31"});
        let given = self.post("create_credit_grant", "/api/credit_grants/", welcome);
        let grant_ref = given["grant_ref"].as_str().unwrap_or_default().to_owned();
        self.post("edit_credit_grant", &format!("/api/credit_grants/edit/{grant_ref}"), json!({"amount": "20.00"}));
        self.get("get_credit_grant", &format!("/api/credit_grants/{grant_ref}"));
        self.get("list_credit_grants", "/api/credit_grants/filter?customer_ref=acme");
        self.get("list_credit_draws", "/api/credit_grants/draws/filter?customer_ref=acme");
    }

    fn bill(&mut self, contract_ref: &str) {
        self.get("current_invoices", &format!("/api/contracts/invoices/current/{contract_ref}"));
        self.get("next_invoices", &format!("/api/contracts/invoices/next/{contract_ref}"));
        let edit = json!({"path": "/api/customers/edit/acme", "body": {"tax": 7}});
        self.post("dry_run", "/api/dry_run", edit);
        let run = self.post("run_billing", "/api/billing/run", json!({"dry_run": false}));
        self.get("list_billing_runs", "/api/billing/runs/filter?pageSize=1");
        self.get("get_billing_run", &format!("/api/billing/runs/{}", text(&run["run_ref"])));
        self.get("last_verification", "/api/verification");
    }

    fn pass_time(&mut self) {
        self.get("get_clock", "/api/clock");
        self.post("advance_clock", "/api/clock/advance", json!({"to": format!("{DAY}T23:00:00Z")}));
    }

    /// Returns the reference of the first document in a state.
    fn document(&self, state: &str) -> String {
        let found = self.client.get(&format!("/api/documents/filter?state={state}&pageSize=1")).ok();
        text(&found[0]["document_ref"])
    }

    fn be_paid(&mut self) {
        let invoice = self.document("ISSUED");
        self.post_nothing("void_document", &format!("/api/documents/void/{invoice}"));
        let invoice = self.document("DRAFT");
        self.post_nothing("issue_document", &format!("/api/documents/issue/{invoice}"));
        self.get("get_document", &format!("/api/documents/{invoice}"));
        self.get("get_document_pdf", &format!("/api/documents/{invoice}/pdf"));
        self.get("get_document_xml", &format!("/api/documents/{invoice}/xml?syntax=ubl"));
        self.get("list_documents", "/api/documents/filter?customer_ref=acme&state=ISSUED&pageSize=1");
        self.get("summarize_documents", "/api/documents/summary?customer_ref=acme");
        self.get("report_document_usage", &format!("/api/documents/{invoice}/usage.csv"));
        self.get("list_amounts_due", "/api/customers/amounts_due?customer_ref=acme");
        let payments = format!("/api/documents/payments/{invoice}");
        let payment = json!({"amount": "60.00", "paid_date": "2026-11-10", "reference": "bank 4711", "method": "SEPA"});
        let paid = self.post("record_payment", &payments, payment);
        self.get("list_payments_of_document", &payments);
        let application = &paid["applications"][0];
        let (payment, application) = (text(&application["from_payment_ref"]), text(&application["application_ref"]));
        self.post_nothing("unapply", &format!("/api/documents/unapply/{application}"));
        let to_itself = json!({"document_ref": invoice, "amount": "40.00"});
        self.post("apply", &format!("/api/documents/apply/{payment}"), to_itself);
        self.post("refund", &format!("/api/documents/refund/{payment}"), json!({"amount": "20.00", "method": "SEPA"}));
        let deposit = json!({"currency": "EUR", "amount": "25.00", "reference": "bank 4712"});
        self.post("record_deposit", "/api/customers/payments/acme", deposit);
        self.get("list_payments_of_customer", "/api/customers/payments/acme");
        self.get("list_payments", "/api/documents/payments/filter?customer_ref=acme");
        let bounced = self.client.post(&payments, &json!({"amount": 1})).ok();
        let newest = bounced["applications"].as_array().and_then(|all| all.last()).expect("an application");
        let reverse = format!("/api/documents/payments/reverse/{}", text(&newest["from_payment_ref"]));
        self.post("reverse_payment", &reverse, json!({"reason": "bounced"}));
        let write_off = format!("/api/documents/write-off/{invoice}");
        self.post("write_off", &write_off, json!({"reason": "insolvent"}));
        self.get("get_balance", "/api/customers/balance/acme");
        self.get("get_statement", "/api/customers/statement/acme?from=2026-11-01&to=2026-11-30");
    }

    fn end(&mut self, contract_ref: &str) {
        let last_day = json!({"last_day": "2026-12-31"});
        self.post("cancel_contract", &format!("/api/contracts/cancel/{contract_ref}"), last_day);
        self.post("resume_contract", &format!("/api/contracts/resume/{contract_ref}"), json!({"dry_run": false}));
    }

    fn ask_the_service(&mut self) {
        self.get("search", "/api/search?q=acme");
        self.get("list_audit_entries", "/api/audit/filter?object_kind=CUSTOMER&object_ref=acme");
        let notification = crate::books::notifications(&self.client, "type=document.issued&pageSize=1")[0].clone();
        self.get("list_notifications", "/api/notifications/filter?after=0&type=document.issued&pageSize=1");
        self.get("get_notification", &format!("/api/notifications/{}", text(&notification["notification_ref"])));
        self.get("live", "/health/live");
        self.get("ready", "/health/ready");
        self.get("openapi", "/openapi.json");
        self.get("metrics", "/metrics");
    }

    /// Sends notifications to an endpoint, which remains. No notification is stored meanwhile, except for the test.
    fn send_notifications(&mut self) {
        let receiver = Receiver::start();
        // Notifications that are numbered after this would be sent by themselves.
        let voided = crate::books::notifications(&self.client, "type=document.voided")[0].clone();
        let endpoint = json!({"url": receiver.url(), "event_types": ["document.voided"]});
        let made = self.post("create_webhook_endpoint", "/api/webhooks/endpoints/", endpoint);
        let endpoint = Endpoint { endpoint_ref: text(&made["endpoint_ref"]), secret: text(&made["secret"]) };
        self.post("edit_webhook_endpoint", &endpoint.path("edit/"), json!({"description": "Accounting"}));
        self.post("rotate_webhook_secret", &endpoint.path("rotate/"), json!({"overlap_hours": 24}));
        self.post_nothing("test_webhook_endpoint", &endpoint.path("test/"));
        let again = json!({"notification_refs": [voided["notification_ref"]], "only": "ALL"});
        self.post("replay_webhook_deliveries", &endpoint.path("replay/"), again);
        receiver.wait_for(2);
        endpoint.wait_for(&self.client, "pending", &json!(0));
        let deliveries = format!("/api/webhooks/deliveries/filter?endpoint_ref={}&state=DELIVERED", endpoint.endpoint_ref);
        self.get("list_webhook_deliveries", &deliveries);
        self.get("get_webhook_endpoint", &endpoint.path(""));
        self.get("list_webhook_endpoints", "/api/webhooks/endpoints/filter?pageSize=1");
        let spare = Endpoint::create(&self.client, &receiver, &json!({"enabled": false}));
        self.delete("delete_webhook_endpoint", &spare.path(""));
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("expected a string, found {value}")).to_owned()
}
