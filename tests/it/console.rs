//! The console for a browser without scripts: access, the content of each page, and the effects of its forms.

use acceptance::client::Request;
use acceptance::console::{Form, forms, is_page, links, page, submit};
use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

/// Starts a server with a customer, a contract, two events and a draft. Returns the server and the clients of the administrator
/// and the software.
fn scene(database: &Database, name: &str) -> (Server, Client, Client) {
    let server = Server::start(database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make_plan(&software);
    software.post("/api/customers/", &json!({"customer_ref": "acme", "name": name})).ok();
    catalog::make_contract(&software, &catalog::contract("acme"));
    for quantity in [1200, 300] {
        software.post("/api/usage/event", &catalog::event("acme", quantity)).ok();
    }
    (server, admin, software)
}

fn document_ref(software: &Client) -> String {
    catalog::documents(software).first().expect("a document")["document_ref"].as_str().expect("a reference").to_owned()
}

#[test]
fn nobody_sees_a_page_without_logging_in_and_a_session_that_ended_leads_there_and_back() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let stranger = Client::anonymous(&server);
    for path in ["/console", "/console/documents?state=DRAFT", "/console/nowhere", "/console/keys"] {
        let answer = stranger.send(&Request::get(path));
        let next = path.replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
        assert_eq!((answer.status, answer.header("Location")), (303, format!("/console/log-in?next={next}").as_str()), "{path}");
    }
    let software = Client::new_key(&server);
    assert_eq!(software.get("/console").status, 303, "a token is not a session");
    let form = stranger.get("/console/log-in?next=%2Fconsole%2Fdocuments");
    assert!(form.text.contains(r#"name="next" value="/console/documents""#), "{}", form.text);
    let wrong = submit(&stranger, "/console/log-in", "email=admin%40example.com&password=wrong-wrong-wrong&next=%2Fconsole");
    assert!(wrong.status == 401 && is_page(&wrong) && wrong.text.contains("admin@example.com"), "{}", wrong.text);
    assert!(!wrong.text.contains("wrong-wrong-wrong"), "the password isn't shown");
    let admin = Client::admin(&server);
    assert!(page(&admin, "/console/start").contains("Usage Billing"));
    let out = submit(&admin, "/console/log-out", "");
    assert_eq!((out.status, out.header("Location")), (303, "/console/log-in"));
    assert_eq!(admin.get("/console").status, 303, "the session has ended");
}

#[test]
fn a_log_in_by_the_form_gives_a_session_and_goes_nowhere_else() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let stranger = Client::anonymous(&server);
    let password = acceptance::server::ADMIN_PASSWORD;
    for (next, expected) in [("%2Fconsole%2Fkeys", "/console/keys"), ("%2F%2Fevil.example", "/console"), ("", "/console")] {
        let form = format!("email=admin%40example.com&password={password}&next={next}");
        let answer = submit(&stranger, "/console/log-in", &form);
        assert_eq!((answer.status, answer.header("Location")), (303, expected), "{}", answer.text);
        let cookie = answer.header("Set-Cookie");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().expect("a cookie");
        page(&stranger.with_header("Cookie", cookie), "/console/keys");
    }
}

#[test]
fn every_page_leads_to_pages_and_shows_what_the_interface_says() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software) = scene(&database, "Acme Ltd");
        let document_ref = document_ref(&software);
        let mut seen: Vec<String> = Vec::new();
        let mut ahead = vec!["/console".to_owned()];
        while let Some(path) = ahead.pop() {
            let others = ["/console/style.css", "/console/log-out", "/console/csv/"];
            let is_file = ["/pdf", "/xml"].iter().any(|file| path.ends_with(file));
            let is_no_page = is_file || others.iter().any(|other| path.starts_with(other));
            if seen.contains(&path) || is_no_page {
                continue;
            }
            let page = page(&admin, &path);
            ahead.extend(links(&page));
            seen.push(path);
        }
        for expected in ["documents", "contracts", "customers", "pricings", "events", "entities", "usage-products", "formats"] {
            assert!(seen.iter().any(|path| path.starts_with(&format!("/console/{expected}/"))), "{expected}: {seen:?}");
        }
        let document = page(&admin, &format!("/console/documents/{document_ref}"));
        let stated = software.get(&format!("/api/documents/{document_ref}")).ok();
        let shown = [&stated["total"], &stated["sub_total"], &stated["products"][0]["line_items"][1]["amount"]];
        for amount in shown {
            assert!(document.contains(&format!("value=\"{amount}\"")), "{amount}");
        }
        // Two clicks lead from an amount to its events, and one click leads from an event to its document.
        let events = links(&document).into_iter().find(|link| link.contains("usage_product_ref")).expect("a link to the events");
        let event =
            links(&page(&admin, &events)).into_iter().find(|link| link.starts_with("/console/events/")).expect("an event");
        assert!(links(&page(&admin, &event)).contains(&format!("/console/documents/{document_ref}")), "{event}");
    }
}

#[test]
fn lists_are_narrowed_by_their_address_and_say_why_they_can_not_be() {
    let database = Database::sqlite();
    let (_server, admin, _) = scene(&database, "Acme Ltd");
    let drafts = page(&admin, "/console/documents?state=DRAFT&kind=&customer_ref=acme");
    assert!(drafts.contains("UB-INV-1") && drafts.contains("Results: 1"), "empty fields of the form have no effect");
    assert!(drafts.contains(r#"<option value="DRAFT" selected>"#), "the chosen filter stays selected");
    assert!(drafts.contains("format=csv"), "the page links to the CSV export");
    assert!(page(&admin, "/console/documents?state=PAID").contains("No results match"));
    let wrong = admin.get("/console/documents?state=DARFT");
    assert!(wrong.status == 422 && is_page(&wrong) && wrong.text.contains("state:"), "{}", wrong.text);
    let unknown = admin.get("/console/documents/01a20686-121f-75af-821c-a37d48691803");
    assert!(unknown.status == 404 && is_page(&unknown) && unknown.text.contains("document_not_found"), "{}", unknown.text);
}

#[test]
fn what_a_list_shows_is_a_table_for_other_programs_of_all_its_pages() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software) = scene(&database, "=Acme \"Ltd\"");
        for n in 0..3 {
            software.post("/api/customers/", &json!({"customer_ref": format!("c-{n}"), "name": format!("Customer {n}")})).ok();
        }
        let table = |address: &str| {
            let answer = admin.get(&format!("/console/csv/{address}"));
            assert!(answer.status == 200 && answer.header("Content-Type").starts_with("text/csv"), "{}", answer.text);
            assert!(answer.header("Content-Disposition").starts_with("attachment; filename=\""), "{address}");
            answer.text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        // The page shows two customers. The export contains all of them in the order of the page, newest first, with the chosen
        // columns.
        let chosen = "customers?pageSize=2&columns=name&columns=customer_ref";
        let page = page(&admin, &format!("/console/{chosen}"));
        assert!(page.contains("Customer 2") && !page.contains("Customer 0") && !page.contains("E-mail</th>"), "{page}");
        let rows = ["Name,Reference", "Customer 2,c-2", "Customer 1,c-1", "Customer 0,c-0", "\"'=Acme \"\"Ltd\"\"\",acme"];
        assert_eq!(table(chosen), rows);
        let by_name = "customers?columns=name&order=-name";
        assert_eq!(table(by_name)[1..], ["Customer 2", "Customer 1", "Customer 0", "\"'=Acme \"\"Ltd\"\"\""]);
        assert_eq!(table("documents?columns=document_number&columns=total&order=created&state=DRAFT").len(), 2);
        assert!(table("documents?columns=document_number&columns=total")[1].starts_with("UB-INV-1,109.00,EUR"));
        assert_eq!(table("customers?name=nobody"), ["Name,State,Amount due,E-mail"]);
        assert_eq!(admin.get("/console/csv/nothing").status, 404);
        assert_eq!(admin.get("/console/csv/documents?state=DARFT").status, 422);
        assert!(table("audit?columns=action").len() > 5);
        assert_eq!(table("events?columns=quantity&order=timestamp"), ["Quantity", "1200", "300"]);
    }
}

#[test]
fn instants_are_those_of_the_entitys_clocks_and_exact_beside_it() {
    let database = Database::sqlite();
    let (_server, admin, software) = scene(&database, "Acme Ltd");
    let entities = software.get("/api/entities/filter").ok();
    let entity = entities[0]["entity_ref"].as_str().expect("a reference");
    let in_utc = page(&admin, "/console/events");
    let exact =
        software.get("/api/usage/event/filter?order=-timestamp").ok()[0]["timestamp"].as_str().expect("a time").to_owned();
    let shown = |page: &str| {
        let (_, rest) = page.split_once(&format!("datetime=\"{exact}\" title=\"{exact}\">")).expect("the time of an event");
        rest.split('<').next().unwrap_or_default().to_owned()
    };
    assert_eq!(shown(&in_utc), format!("{} UTC", exact[..19].replace('T', " ")));
    software.post(&format!("/api/entities/edit/{entity}"), &json!({"timezone": "Asia/Kathmandu"})).ok();
    let there = shown(&page(&admin, "/console/events"));
    assert!(there.ends_with(" +0545") && there != shown(&in_utc), "{there}");
}

#[test]
fn a_document_is_issued_paid_once_and_its_payment_reversed_by_forms() {
    for database in [Database::sqlite(), Database::postgres()] {
        let (_server, admin, software) = scene(&database, "Acme Ltd");
        let document_ref = document_ref(&software);
        let place = format!("/console/documents/{document_ref}");
        let doing = |what: &str| format!("/console/do/{what}/{document_ref}");
        let state = || software.get(&format!("/api/documents/{document_ref}")).ok();
        let shown = page(&admin, &doing("issue"));
        assert!(shown.contains("Would be issued") && shown.contains("UB-INV-1"), "{shown}");
        // Nothing was due before, so the whole amount is the difference.
        let (_, due) = shown.split_once("Outstanding amounts in EUR").expect("the amounts due");
        assert!(due.contains(">–</td>") && due.contains(">+<data class=\"number\" value=\"109.00\""), "{shown}");
        assert_eq!(state()["state"], "DRAFT", "the preview changes nothing");
        let issued = submit(&admin, &doing("issue"), "confirmed=yes");
        let done = format!("{place}?done=do.issue");
        assert_eq!((issued.status, issued.header("Location")), (303, done.as_str()), "{}", issued.text);
        assert!(page(&admin, &done).contains("Document issued."));
        assert_eq!(state()["state"], "ISSUED");
        let again = submit(&admin, &doing("issue"), "confirmed=yes");
        assert!(again.status == 409 && is_page(&again), "{}", again.text);
        let wrong = submit(&admin, &doing("pay"), "amount=ten&form_key=k0");
        assert!(
            wrong.status == 422 && wrong.text.contains("aria-invalid") && wrong.text.contains("value=\"ten\""),
            "{}",
            wrong.text
        );
        let seen = submit(&admin, &doing("pay"), "amount=10&form_key=k1&reference=bank");
        assert!(seen.status == 200 && seen.text.contains("value=\"bank\"") && seen.text.contains("Cancel</a>"), "{}", seen.text);
        assert_eq!(state()["paid_amount"].to_string(), "0.00");
        let back = submit(&admin, &doing("pay"), "amount=10&form_key=k1&reference=bank&again=yes");
        assert!(
            back.status == 200 && back.text.contains("aria-describedby") && back.text.contains("value=\"10\""),
            "{}",
            back.text
        );
        for _ in 0..2 {
            let paid = submit(&admin, &doing("pay"), "amount=10&form_key=k1&reference=bank&confirmed=yes");
            assert_eq!(paid.status, 303, "{}", paid.text);
        }
        assert_eq!(state()["paid_amount"].to_string(), "10.00", "submitting a form twice records one payment");
        let shown = page(&admin, &place);
        let reverse = links(&shown).into_iter().find(|link| link.starts_with("/console/do/reverse/")).expect("a payment");
        let reversed = submit(&admin, &reverse, "confirmed=yes");
        assert_eq!(reversed.status, 303, "{}", reversed.text);
        assert_eq!(state()["paid_amount"].to_string(), "0.00");
    }
}

#[test]
fn what_is_left_of_a_payment_is_refunded_by_a_form() {
    let database = Database::sqlite();
    let (_server, admin, software) = scene(&database, "Acme Ltd");
    let document = document_ref(&software);
    software.post_nothing(&format!("/api/documents/issue/{document}")).ok();
    let payments = format!("/api/documents/payments/{document}");
    let due = software.get(&format!("/api/documents/{document}")).ok()["amount_due"].as_f64().expect("an amount");
    software.post(&payments, &json!({"amount": due + 40.0, "overpayment": true})).ok();
    let shown = page(&admin, &format!("/console/documents/{document}"));
    let refund = links(&shown).into_iter().find(|link| link.contains("/do/refund-payment/")).expect("a link to the refund");
    // A refund changes no document, and its preview says so.
    let seen = submit(&admin, &refund, "form_key=r-1&amount=15&method=SEPA");
    assert!(seen.status == 200 && seen.text.contains("No documents would change."), "{}", seen.text);
    let done = submit(&admin, &refund, "form_key=r-1&amount=15&method=SEPA&confirmed=yes");
    let back = format!("/console/documents/{document}?done=do.refund-payment&amount=15.00&currency=EUR");
    assert_eq!((done.status, done.header("Location")), (303, back.as_str()), "{}", done.text);
    assert!(page(&admin, &back).contains("Refund of 15.00 EUR recorded."));
    let forged = back.replace("15.00", "15.00+to+nobody");
    assert!(page(&admin, &forged).contains("Refund recorded."), "a notice shows no text of an address");
    let payments = software.get(&payments).ok();
    let left = |payment: &Value| payment["unapplied_amount"].to_string().parse::<f64>().ok() == Some(25.0);
    assert!(payments.as_array().expect("payments").iter().any(left), "{payments}");
}

#[test]
fn a_key_is_made_shown_once_used_and_deleted() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    let none = submit(&admin, "/console/keys", "name=Reporter");
    assert!(
        none.status == 422 && none.text.contains("value=\"Reporter\"") && none.text.contains("class=\"wrong\""),
        "{}",
        none.text
    );
    let made = submit(&admin, "/console/keys", "name=Reporter&scopes=usage%3Awrite&scopes=read&ends=2099-12-31");
    assert!(made.status == 200 && is_page(&made), "{}", made.text);
    let codes: Vec<&str> = made.text.split("<dd><code>").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    let [key, password] = codes.as_slice() else { panic!("{}", made.text) };
    let answer = Client::anonymous(&server).post("/auth/login", &json!({"api_key": key, "password": password}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let listed = page(&admin, "/console/keys");
    assert!(listed.contains(key) && listed.contains("Reporter") && !listed.contains(password));
    assert!(listed.contains("<code>usage:write</code>") && listed.contains("2099-12-31 00:00:00 UTC"), "{listed}");
    let place = |action: &str| {
        let rest = listed.split(&format!("action=\"/console/keys/{action}/")).nth(1).expect("a form");
        format!("/console/keys/{action}/{}", rest.split('"').next().expect("a reference"))
    };
    let rotated = submit(&admin, &place("rotate"), "overlap_hours=24");
    assert!(rotated.status == 200 && rotated.text.contains("Old key expires"), "{}", rotated.text);
    assert!(page(&admin, "/console/keys").contains("This key has been rotated."));
    assert_eq!(submit(&admin, &place("delete"), "").status, 303);
    let answer = Client::anonymous(&server).post("/auth/login", &json!({"api_key": key, "password": password}));
    assert_eq!(answer.status, 401);
}

#[test]
fn a_customer_is_made_and_edited_by_forms_which_keep_what_was_said() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    assert!(page(&admin, "/console/new/customers").contains("name=\"billing_address/city\""));
    let stated = "customer_ref=acme&name=Acme+%26+Co&tax=nineteen&billing_address%2Fcity=Dublin&form_key=k1";
    let wrong = submit(&admin, "/console/new/customers", stated);
    assert!(wrong.status == 422 && is_page(&wrong) && wrong.text.contains("aria-invalid"), "{}", wrong.text);
    assert!(wrong.text.contains("value=\"Acme &amp; Co\"") && wrong.text.contains("value=\"Dublin\""), "{}", wrong.text);
    assert_eq!(software.get("/api/customers/acme").status, 404, "nothing is stored");
    for _ in 0..2 {
        let made = submit(&admin, "/console/new/customers", &stated.replace("nineteen", "19"));
        assert_eq!((made.status, made.header("Location")), (303, "/console/customers/acme?done=new.customers"), "{}", made.text);
    }
    let again = submit(&admin, "/console/new/customers", "customer_ref=acme&name=Another&form_key=k2");
    assert!(again.status == 409 && again.text.contains("value=\"Another\""), "{}", again.text);
    let form = page(&admin, "/console/edit/customers/acme");
    assert!(form.contains("value=\"Acme &amp; Co\"") && !form.contains("name=\"customer_ref\""), "{form}");
    let edit = "name=Acme+Ltd&tax=&billing_address%2Fcity=Cork&billing_address%2Fline1=1+Main+Street";
    let seen = submit(&admin, "/console/edit/customers/acme", edit);
    assert!(seen.status == 200 && seen.text.contains("Nothing is saved yet."), "{}", seen.text);
    assert_eq!(software.get("/api/customers/acme").ok()["name"], "Acme & Co", "the preview changes nothing");
    assert_eq!(submit(&admin, "/console/edit/customers/acme", &format!("{edit}&confirmed=yes")).status, 303);
    let customer = software.get("/api/customers/acme").ok();
    assert_eq!(
        (&customer["name"], &customer["tax"], &customer["billing_address"]["city"]),
        (&json!("Acme Ltd"), &json!(null), &json!("Cork"))
    );
    for (path, status) in [
        ("/console/new/audit", 404),
        ("/console/edit/customers/nobody", 404),
        ("/console/do/nothing/x", 404),
        ("/console/do/void", 404),
    ] {
        let answer = admin.get(path);
        assert!(answer.status == status && is_page(&answer), "{path}: {}", answer.text);
        assert_eq!(submit(&admin, path, "name=x").status, status, "{path}");
    }
}

#[test]
fn each_form_of_the_catalog_makes_what_it_says() {
    let database = Database::postgres();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    for (part, form, reference) in [
        ("usage-products", "usage_product_ref=calls&name=Calls&unit=call&aggregation=SUM", "calls"),
        ("entities", "entity_ref=seller&name=Seller&number_prefix=S&timezone=Europe%2FBerlin&default=true", "seller"),
        ("bank-accounts", "billing_account_id=main&iban=DE89370400440532013000&account_name=Main", "main"),
    ] {
        let made = submit(&admin, &format!("/console/new/{part}"), form);
        let place = format!("/console/{part}/{reference}");
        assert_eq!((made.status, made.header("Location")), (303, format!("{place}?done=new.{part}").as_str()), "{}", made.text);
        assert!(page(&admin, &place).contains(&format!("/console/edit/{part}/{reference}")));
        // The form contains the current values. Submitting it unchanged has no effect.
        let form = page(&admin, &format!("/console/edit/{part}/{reference}"));
        assert!(form.contains("name=\"form_key\"") && form.contains("aria-describedby"), "{form}");
    }
}

#[test]
fn a_foreign_page_can_do_nothing_and_names_are_text() {
    let database = Database::sqlite();
    let name = "<script>alert(1)</script>{{7*7}}\"'";
    let (_server, admin, software) = scene(&database, name);
    let document_ref = document_ref(&software);
    for (header, value) in [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Origin", "https://evil.example")]
    {
        let foreign = admin.with_header(header, value);
        let requests = [("/console/keys", "name=x"), ("/console/log-out", ""), ("/console/log-in", "email=a&password=b")];
        for (path, form) in requests {
            assert_eq!(submit(&foreign, path, form).status, 403, "{header}: {value}: {path}");
        }
        assert_eq!(submit(&foreign, &format!("/console/do/void/{document_ref}"), "confirmed=yes").status, 403);
    }
    assert_eq!(catalog::documents(&software)[0]["state"], "DRAFT", "nothing has changed");
    for path in ["/console", "/console/customers", "/console/customers/acme", "/console/documents", "/console/events"] {
        let page = page(&admin, path);
        assert!(!page.contains("<script>") && !page.contains("gt;49"), "{path}: {page}");
    }
    assert!(page(&admin, "/console/customers").contains("&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}"));
    for path in
        ["/console/search?q=%3Cscript%3E", "/console/log-in?next=%22%3E%3Cscript%3E", "/console/customers?name=%3Cscript%3E"]
    {
        assert!(!admin.get(path).text.contains("<script>"), "{path}");
    }
}

#[test]
fn another_organizations_things_are_not_there() {
    let database = Database::sqlite();
    let (server, _, software) = scene(&database, "Acme Ltd");
    let document_ref = document_ref(&software);
    let other = Client::second_organization(&database, &server);
    for path in [format!("/console/documents/{document_ref}"), "/console/customers/acme".to_owned()] {
        assert_eq!(other.get(&path).status, 404, "{path}");
    }
    assert_eq!(submit(&other, &format!("/console/do/void/{document_ref}"), "confirmed=yes").status, 404);
    assert!(!page(&other, "/console/documents").contains("UB-INV-1"));
    let empty = other.get("/console");
    assert_eq!((empty.status, empty.header("Location")), (303, "/console/start"), "an empty organization shows the first steps");
}

#[test]
fn a_short_form_changes_its_fields_only_and_leads_to_the_form_with_all_fields() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    let made = json!({"customer_ref": "acme", "name": "Acme", "metadata": {"crm": "7"}, "buyer_reference": "B-7",
        "electronic_address": {"scheme": "EM", "value": "e@acme.example"},
        "billing_address": {"line1": "1 Main Street", "city": "Cork"}});
    let before = software.post("/api/customers/", &made).ok();
    let place = "/console/edit/customers/acme";
    let short = page(&admin, place);
    let (visible, _) = short.split_once("<summary>More<").expect("a fold");
    assert!(!visible.contains("buyer_reference") && !short.contains("electronic_address"), "{short}");
    assert!(links(&short).contains(&format!("{place}?advanced=yes")), "{short}");
    assert!(page(&admin, &format!("{place}?advanced=yes")).contains("name=\"electronic_address/value\""));
    let form = forms(&short).into_iter().find(|form| form.action == place).expect("a form");
    let more = [("email", "a@acme.example"), ("confirmed", "yes")];
    let fields = form.fields.iter().filter(|(name, _)| name != "email").cloned().collect();
    let answer = Form { fields, ..form }.send(&admin, &more);
    assert_eq!(answer.status, 303, "{}", answer.text);
    let mut after = software.get("/api/customers/acme").ok();
    assert_eq!(after["email"], "a@acme.example");
    after["email"] = before["email"].clone();
    after["updated_at"] = before["updated_at"].clone();
    assert_eq!(after, before, "nothing else changes");
}

#[test]
fn the_script_and_its_suggestions_come_from_this_server() {
    let database = Database::sqlite();
    let (server, admin, software) = scene(&database, "Acme Ltd");
    let anonymous = Client::anonymous(&server);
    let home = page(&admin, "/console/customers");
    for (attribute, kind) in [("src=\"/console/console.js", "text/javascript"), ("href=\"/console/style.css", "text/css")] {
        let (_, rest) = home.split_once(attribute).unwrap_or_else(|| panic!("{attribute}: {home}"));
        let version = rest.split('"').next().expect("an address");
        let (_, path) = attribute.split_once('"').expect("a path");
        let asset = anonymous.get(&format!("{path}{version}"));
        assert_eq!((asset.status, asset.header("X-Content-Type-Options")), (200, "nosniff"));
        assert!(asset.header("Content-Type").starts_with(kind) && asset.header("Cache-Control").contains("immutable"), "{path}");
        let other = anonymous.get(&format!("{path}?v=other"));
        assert_eq!((other.status, other.header("Cache-Control")), (200, "no-cache"), "{path}");
    }
    let policy = admin.get("/console").header("Content-Security-Policy").to_owned();
    assert!(policy.contains("script-src 'self'") && policy.contains("connect-src 'self'"), "{policy}");
    software.post("/api/customers/", &json!({"customer_ref": "harbor", "name": "Harbor Robotics"})).ok();
    let picked = |query: &str| admin.get(&format!("/console/pick/customers{query}")).ok();
    assert_eq!(picked("?q=harb"), json!([["harbor", "Harbor Robotics (harbor)"]]));
    assert!(picked("").as_array().is_some_and(|all| all.len() == 2), "{}", picked(""));
    assert_eq!(admin.get("/console/pick/nothing").status, 404);
    assert_eq!(anonymous.get("/console/pick/customers").status, 303, "log-in is required");
}

#[test]
fn a_customers_statement_shows_its_entries_and_leads_to_the_files() {
    let database = Database::sqlite();
    let (_server, admin, software) = scene(&database, "Acme Ltd");
    let document_ref = document_ref(&software);
    assert_eq!(submit(&admin, &format!("/console/do/issue/{document_ref}"), "confirmed=yes").status, 303);
    let place = "/console/customers/acme/statement";
    assert!(links(&page(&admin, "/console/customers/acme")).contains(&place.to_owned()));
    let statement = page(&admin, place);
    assert!(links(&statement).contains(&format!("/console/documents/{document_ref}")), "{statement}");
    assert!(statement.contains("Closing balance") && statement.contains("value=\"109.00\""), "{statement}");
    assert!(statement.contains(r#"<a href="/console/customers/acme">Acme Ltd</a>"#), "the breadcrumb has the name: {statement}");
    for format in ["format=pdf", "format=csv"] {
        let mut addresses = statement.split("href=\"").filter_map(|rest| rest.split('"').next());
        let file = addresses.find(|address| address.ends_with(format)).expect(format).replace("&amp;", "&");
        assert_eq!(admin.get(&file).status, 200, "{file}");
    }
    let wrong = admin.get(&format!("{place}?from=2026-02-01&to=2026-01-01"));
    assert!(wrong.status == 422 && is_page(&wrong) && wrong.text.contains("to:"), "{}", wrong.text);
    assert_eq!(admin.get("/console/customers/nobody/statement").status, 404);
}

#[test]
fn the_navigation_has_groups_and_a_page_with_a_table_has_a_link_that_skips_to_it() {
    let database = Database::sqlite();
    let (_server, admin, _) = scene(&database, "Acme Ltd");
    let documents = page(&admin, "/console/documents?state=DRAFT");
    for group in ["Billing", "Usage", "Catalog", "Settings"] {
        assert!(documents.contains(&format!("<span class=\"name\">{group}</span>")), "{group}: {documents}");
    }
    assert!(documents.contains(r#"<a href="/console/documents" aria-current="page">Documents</a>"#), "{documents}");
    let (before, _) = documents.split_once("id=\"table\"").expect("a table");
    assert!(before.contains(r##"href="#table""##) && !before.contains("<table"), "{documents}");
    assert!(!page(&admin, "/console/documents?state=VOID").contains("#table"));
}
