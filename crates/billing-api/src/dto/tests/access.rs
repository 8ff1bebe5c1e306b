//! Keys and log-ins.

use billing_application::keys::GeneratedKey;
use billing_domain::access::{Scope, Scopes};
use billing_domain::refs::OrganizationId;
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;
use uuid::Uuid;

use super::super::keys::{ApiKeyJson, GeneratedKeyJson};
use super::super::log_in::{AdminSessionJson, LogIn, LogInBody};
use super::{check, json, presented};

#[test]
fn a_key_without_a_body_may_do_everything_for_ever() {
    for body in [None, Some(json("{}")), Some(json(r#"{"name":null,"scopes":null,"expires_at":null}"#))] {
        let request = super::key(body.as_ref()).expect("a key");
        assert_eq!((request.name, request.scopes, request.expires_at), (None, Scopes::all(), None));
    }
}

#[test]
fn a_key_may_be_limited() {
    let body = json(r#"{"name":"meter","scopes":["read","usage:write","read"],"expires_at":"2027-01-01T00:00:00+01:00"}"#);
    let request = super::key(Some(&body)).expect("a key");
    assert_eq!(request.name, Some(fixtures::line("meter")));
    assert_eq!(request.scopes, Scopes::of(&[Scope::UsageWrite, Scope::Read]));
    assert_eq!(request.expires_at, Some(fixtures::at("2026-12-31T23:00:00Z")));
}

#[test]
fn everything_wrong_with_a_key_is_said_at_once() {
    check(
        |body| super::key(Some(body)),
        &[
            ("[]", &["/ wrong_type"]),
            (r#"{"scopes":[]}"#, &["/scopes out_of_range"]),
            (r#"{"scopes":"read"}"#, &["/scopes wrong_type"]),
            (
                r#"{"scopes":["read","admin",1],"name":"a\u0007","expires_at":"2027-01-01"}"#,
                &["/scopes/1 invalid_value", "/scopes/2 wrong_type", "/name invalid_format", "/expires_at invalid_format"],
            ),
            (r#"{"scopes":["read","read","read","read","read","read"]}"#, &["/scopes too_many"]),
        ],
    );
}

#[test]
fn a_log_in_is_a_keys_or_an_administrators() {
    let key = LogIn::ApiKey { api_key: "KEY".to_owned(), password: "secret".to_owned() };
    for body in [r#"{"api_key":"KEY","password":"secret"}"#, r#"{"username":"KEY","email":null,"password":"secret"}"#] {
        assert_eq!(LogInBody::read_log_in(&json(body)).expect("a log-in"), key);
    }
    let administrator = |new_password: Option<&str>, code: Option<&str>| LogIn::Administrator {
        email: "a@example.com".to_owned(),
        password: "secret".to_owned(),
        new_password: new_password.map(str::to_owned),
        code: code.map(str::to_owned),
    };
    for (body, expected) in [
        (r#"{"email":"a@example.com","password":"secret"}"#, administrator(None, None)),
        (r#"{"email":"a@example.com","password":"secret","code":"123 456"}"#, administrator(None, Some("123 456"))),
        (r#"{"email":"a@example.com","password":"secret","new_password":"own"}"#, administrator(Some("own"), None)),
    ] {
        assert_eq!(LogInBody::read_log_in(&json(body)).expect("a log-in"), expected);
    }
}

#[test]
fn both_kinds_of_log_in_at_once_or_neither_are_refused() {
    check(
        LogInBody::read_log_in,
        &[
            ("{}", &["/api_key required", "/password required"]),
            (r#"{"password":"p"}"#, &["/api_key required"]),
            (r#"{"api_key":"k"}"#, &["/password required"]),
            (r#"{"email":"a@example.com","password":null}"#, &["/password required"]),
            (r#"{"api_key":"k","email":"a@example.com","password":"p"}"#, &["/email not_allowed"]),
            (
                r#"{"email":"e","username":"u","api_key":"k"}"#,
                &["/email not_allowed", "/username not_allowed", "/password required"],
            ),
            (
                r#"{"api_key":"k","password":"p","code":"123456","new_password":"q"}"#,
                &["/code not_allowed", "/new_password not_allowed"],
            ),
            (r#"{"api_key":1,"password":[]}"#, &["/api_key wrong_type", "/password wrong_type"]),
            (r#"{"api_key":"","password":""}"#, &["/api_key too_short", "/password too_short"]),
        ],
    );
}

#[test]
fn a_log_in_shows_no_secret() {
    let body = json(r#"{"api_key":"KEY-hunter2","password":"hunter2"}"#);
    assert_eq!(format!("{:?}", LogInBody::read_log_in(&body)), "Ok(ApiKey(***))");
    let body = json(r#"{"email":"a@example.com","password":"hunter2"}"#);
    assert_eq!(format!("{:?}", LogInBody::read_log_in(&body)), "Ok(Administrator(***))");
}

#[test]
fn a_key_is_shown_with_its_password_once_only() {
    let ids = CountingIds::new();
    let mut key = fixtures::api_key(&ids, OrganizationId::from_uuid(Uuid::from_u128(1)));
    key.name = Some(fixtures::line("meter"));
    key.scopes = Scopes::of(&[Scope::Read, Scope::UsageWrite]);
    key.last_used_at = Some(fixtures::at("2026-01-20T10:15:30.123456Z"));
    assert_snapshot!(presented(&ApiKeyJson::from(&key)), @r#"
    {
      "api_key_ref": "019b76da-a801-7000-8000-000000000001",
      "api_key": "70008000000000000001",
      "name": "meter",
      "scopes": [
        "usage:write",
        "read"
      ],
      "created_at": "2026-01-01T00:00:00Z",
      "last_used_at": "2026-01-20T10:15:30.123456Z",
      "expires_at": null,
      "successor_ref": null,
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
    let made = GeneratedKey { key, password: "once".to_owned() };
    assert_snapshot!(presented(&GeneratedKeyJson::from(&made)), @r#"
    {
      "api_key": "70008000000000000001",
      "password": "once",
      "api_key_ref": "019b76da-a801-7000-8000-000000000001"
    }
    "#);
}

#[test]
fn an_administrators_log_in_says_until_when() {
    let ids = CountingIds::new();
    let administrator = fixtures::administrator(&ids, OrganizationId::from_uuid(Uuid::from_u128(1)));
    assert_snapshot!(presented(&AdminSessionJson::new(&administrator, fixtures::at("2026-01-20T18:00:00Z"))), @r#"
    {
      "admin_ref": "019b76da-a801-7000-8000-000000000001",
      "email": "019b76da-a801-7000-8000-000000000001@example.com",
      "expires_at": "2026-01-20T18:00:00Z"
    }
    "#);
}
