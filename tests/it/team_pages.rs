//! The team and one's own account in the console: the actions offered to each role, and the values that rejected forms keep.

use acceptance::codes::code_at;
use acceptance::console::{hidden, page, submit};
use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Clock, Database, Server, catalog};
use serde_json::json;

const PASSWORD: &str = "a-pass-phrase-of-ones-own";

fn encoded(text: &str) -> String {
    text.replace('@', "%40")
}

#[test]
fn what_a_role_may_not_do_is_not_offered_and_not_done() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let owner = Client::admin(&server);
    catalog::make(&owner);
    catalog::make_contract(&owner, &catalog::contract("acme"));
    owner.post("/api/usage/event", &catalog::event("acme", 1)).ok();
    let draft = catalog::documents(&owner)[0]["document_ref"].as_str().expect("a reference").to_owned();
    let document = format!("/console/documents/{draft}");
    for (role, issues, edits, manages) in [
        ("read", false, false, false),
        ("finance", true, false, false),
        ("operator", true, true, false),
        ("owner", true, true, true),
    ] {
        let person = Client::of_role(&database, &server, role, PASSWORD);
        assert_eq!(page(&person, &document).contains("Issue document"), issues, "{role}");
        assert_eq!(page(&person, "/console/customers").contains("/console/new/customers"), issues, "{role}");
        assert_eq!(page(&person, "/console/pricings").contains("/console/new/pricings"), edits, "{role}");
        let home = page(&person, "/console");
        assert_eq!(home.contains("href=\"/console/team\""), manages, "{role}");
        assert!(home.contains(&format!("{role}@example.com")), "{role}");
        for path in ["/console/team", "/console/keys"] {
            assert_eq!(person.get(path).status, if manages { 200 } else { 403 }, "{role}: {path}");
        }
        let account = page(&person, "/console/account");
        assert!(account.contains("Second factor") && account.contains(&format!("/console/roles/{role}\"")), "{role}");
        let described = page(&person, &format!("/console/roles/{role}"));
        let permitted = described.split("Operations of higher roles").next().expect("text");
        let has = |operation: &str| permitted.contains(&format!("/docs/operations/{operation}\""));
        let stated = ["issue_document", "create_pricing", "generate_key"].map(has);
        assert_eq!(stated, [issues, edits, manages], "{role}: {described}");
        if !issues {
            let refused = submit(&person, &format!("/console/do/issue/{draft}"), "confirmed=yes");
            assert!(refused.status == 403 && refused.text.contains("insufficient_role"), "{}", refused.text);
        }
    }
}

#[test]
fn a_log_in_goes_step_by_step_and_says_no_password_on_the_way() {
    let database = Database::sqlite();
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(&database, &clock);
    let owner = Client::admin(&server);
    let nobody = Client::anonymous(&server);
    let invited = submit(&owner, "/console/team", "email=new%40example.com&role=finance");
    assert!(invited.status == 200 && invited.text.contains("works once"), "{}", invited.text);
    let given = invited.text.split("<dd><code>").nth(1).and_then(|rest| rest.split('<').next()).expect("a password").to_owned();
    let email = encoded("new@example.com");
    let next = "%2Fconsole%2Fdocuments";
    let first = submit(&nobody, "/console/log-in", &format!("email={email}&password={given}&next={next}"));
    assert!(first.status == 401 && first.text.contains("name=\"new_password\""), "{}", first.text);
    assert!(!first.text.contains(&given) && !first.text.contains("role=\"alert\""), "{}", first.text);
    let passed = hidden(&first.text, "passed").to_owned();
    let step = |email: &str, passed: &str, rest: &str| {
        submit(&nobody, "/console/log-in", &format!("email={email}&passed={passed}&next={next}&{rest}"))
    };
    let short = step(&email, &passed, "new_password=short");
    assert!(
        short.status == 422 && short.text.contains("name=\"new_password\"") && short.text.contains("12 to 72"),
        "{}",
        short.text
    );
    // A value sealed for one address is invalid for another address, and so is a modified value.
    for (email, passed) in
        [(encoded(ADMIN_EMAIL), passed.clone()), (email.clone(), "00".repeat(60)), (email.clone(), "é".to_owned())]
    {
        let other = step(&email, &passed, &format!("new_password={PASSWORD}"));
        assert!(other.status == 401 && other.text.contains("name=\"password\""), "{}", other.text);
    }
    let done = step(&email, &passed, &format!("new_password={PASSWORD}"));
    assert_eq!((done.status, done.header("Location")), (303, "/console/documents"), "{}", done.text);

    let cookie = done.header("Set-Cookie").split(';').next().expect("a cookie").to_owned();
    let person = nobody.with_header("Cookie", &cookie);
    let enrolled = submit(&person, "/console/account/second-factor/enroll", "");
    let secret = hidden(&enrolled.text, "secret").to_owned();
    assert!(enrolled.text.contains("<svg"), "{}", enrolled.text);
    let wrong = submit(&person, "/console/account/second-factor/confirm", &format!("code=000000&secret={secret}&uri=otpauth"));
    assert!(
        wrong.status == 422 && wrong.text.contains("class=\"wrong\"") && hidden(&wrong.text, "secret") == secret,
        "{}",
        wrong.text
    );
    let code = code_at(&secret, "2026-11-10T12:00:00Z");
    let confirmed = submit(&person, "/console/account/second-factor/confirm", &format!("code={code}"));
    assert!(confirmed.status == 200 && confirmed.text.matches("<li><code>").count() == 10, "{}", confirmed.text);

    clock.set("2026-11-10T12:05:00Z");
    let first = submit(&nobody, "/console/log-in", &format!("email={email}&password={PASSWORD}&next={next}"));
    assert!(first.text.contains("name=\"code\"") && !first.text.contains(PASSWORD), "{}", first.text);
    let passed = hidden(&first.text, "passed").to_owned();
    let wrong = step(&email, &passed, "code=000000");
    assert!(
        wrong.status == 401 && wrong.text.contains("name=\"code\"") && wrong.text.contains("role=\"alert\""),
        "{}",
        wrong.text
    );
    let done = step(&email, &passed, &format!("code={}", code_at(&secret, "2026-11-10T12:05:00Z")));
    assert_eq!((done.status, done.header("Location")), (303, "/console/documents"), "{}", done.text);
    // A person who waits too long must start the log-in again.
    clock.set("2026-11-10T12:30:00Z");
    let late = step(&email, &passed, &format!("code={}", code_at(&secret, "2026-11-10T12:30:00Z")));
    assert!(late.status == 401 && late.text.contains("name=\"password\"") && late.text.contains("timed out"), "{}", late.text);
}

#[test]
fn the_team_and_the_account_say_beside_each_field_what_is_wrong() {
    let database = Database::postgres();
    let server = Server::start(&database);
    let owner = Client::admin(&server);
    let taken = submit(&owner, "/console/team", &format!("email={}&role=finance", encoded(ADMIN_EMAIL)));
    assert!(taken.status == 409 && taken.text.contains("is already in use") && taken.text.contains("value=\"finance\" selected"));
    let wrong = submit(&owner, "/console/team", "email=nobody&role=read");
    assert!(wrong.status == 422 && wrong.text.contains("class=\"wrong\""), "{}", wrong.text);
    let own = owner.get("/auth/session").ok()["admin_ref"].as_str().expect("a reference").to_owned();
    for (path, form) in [(format!("/console/team/disable/{own}"), ""), (format!("/console/team/role/{own}"), "role=read")] {
        let last = submit(&owner, &path, form);
        assert!(last.status == 409 && last.text.contains("last_owner") && last.text.contains("<h1>Team"), "{}", last.text);
    }
    let mistyped = submit(&owner, "/console/account/password", "password=not-the-password&new_password=another-pass-phrase");
    assert!(mistyped.status == 422 && mistyped.text.contains("must be your current password"), "{}", mistyped.text);
    let form = format!("password={}&new_password=another-pass-phrase", ADMIN_PASSWORD.replace(' ', "+"));
    let changed = submit(&owner, "/console/account/password", &form);
    assert_eq!((changed.status, changed.header("Location")), (303, "/console/account?done=password"), "{}", changed.text);

    let reader = Client::of_role(&database, &server, "read", PASSWORD);
    let reference = owner
        .get("/api/administrators/filter")
        .ok()
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["email"] == "read@example.com")
        .expect("a row")["admin_ref"]
        .as_str()
        .expect("a reference")
        .to_owned();
    let changed = submit(&owner, &format!("/console/team/role/{reference}"), "role=operator");
    assert_eq!(changed.header("Location"), "/console/team?done=edit", "{}", changed.text);
    assert_eq!(reader.get("/auth/session").ok()["role"], json!("operator"));
    let reset = submit(&owner, &format!("/console/team/reset/{reference}"), "");
    assert!(reset.status == 200 && reset.text.contains("read@example.com"), "{}", reset.text);
    assert_eq!(reader.get("/console").status, 303, "the administrator's session has ended");
    let other = Client::second_organization(&database, &server);
    assert_eq!(submit(&other, &format!("/console/team/disable/{reference}"), "").status, 404);
}
