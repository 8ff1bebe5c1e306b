//! Paths and names: `HEAD`, other spellings of a path, references that are words of paths, and log-in names.

use std::io::{Read as _, Write as _};

use crate::common::{EMAIL, PASSWORD, Server};
use crate::protocol::connected;
use actix_web::http::Method;
use billing_api::operation::HttpMethod;
use billing_api::operations::OPERATIONS;
use billing_application::catalog::create_customer;
use billing_application::{UseCase, organizations, run};
use billing_domain::access::Principal;
use billing_domain::party::CustomerProfile;
use billing_domain::refs::CustomerRef;
use billing_testkit::fixtures;
use serde_json::json;

const ALL: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];

#[actix_web::test]
async fn head_is_answered_like_get_without_content() {
    let server = Server::new();
    let session = server.session().await;
    for operation in OPERATIONS.iter().filter(|operation| operation.method == HttpMethod::GET) {
        let path = operation.path.replace(['{', '}'], "");
        let get = server.get(&path, ("cookie", &session)).await;
        let head = server.send(Method::HEAD, &path, &[("cookie", &session)], None).await;
        assert_eq!((head.status, head.text.as_str()), (get.status, ""), "{path}");
        for name in ["content-type", "cache-control", "version", "x-total-count"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
    let pages = [
        "/",
        "/docs",
        "/docs/operations/log_in",
        "/docs/request.js",
        "/docs/style.css",
        "/console",
        "/console/log-in",
        "/console/style.css",
    ];
    for path in pages {
        let get = server.send(Method::GET, path, &[], None).await;
        let head = server.send(Method::HEAD, path, &[], None).await;
        assert_eq!((head.status, head.text.as_str()), (get.status, ""), "{path}");
    }
    let refused = server.send(Method::HEAD, "/auth/login", &[], None).await;
    assert_eq!((refused.status.as_u16(), refused.header("allow")), (405, Some("POST")));
}

#[actix_web::test]
async fn the_size_in_a_response_to_head_is_that_of_the_content() {
    let server = Server::new();
    let content = server.send(Method::GET, "/openapi.json", &[], None).await.text;
    let answer = connected(&server, |mut connection| {
        let request = b"HEAD /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        connection.write_all(request).expect("an open connection");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).expect("the end of the connection");
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await;
    let (head, rest) = answer.split_once("\r\n\r\n").expect("the end of the head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_lowercase().contains(&format!("content-length: {}", content.len())), "{head}");
    assert_eq!(rest, "");
}

#[actix_web::test]
async fn another_spelling_of_a_path_has_the_same_headers_and_the_same_idempotency_keys() {
    let server = Server::new();
    let body = json!({"email": EMAIL, "password": PASSWORD}).to_string();
    for path in ["/auth/login", "/%61uth/login", "/%61%75th/logi%6E"] {
        let reply = server.send(Method::POST, path, &[], Some(&body)).await;
        assert_eq!((reply.status.as_u16(), reply.header("cache-control")), (200, Some("no-store")), "{path}");
    }
    let bearer = server.bearer(&ALL).await;
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "a-key")];
    let customer = json!({"customer_ref": "acme", "name": "Acme"}).to_string();
    for (path, is_repeat) in [("/api/customers/", None), ("/%61pi/%63ustomers", Some("true"))] {
        let reply = server.send(Method::POST, path, &headers, Some(&customer)).await;
        assert_eq!((reply.status.as_u16(), reply.header("version")), (200, Some("V0")), "{path}");
        assert_eq!(reply.header("idempotency-replayed"), is_repeat, "{path}");
    }
}

#[actix_web::test]
async fn a_new_reference_is_no_word_that_a_path_has_in_its_place() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    for (path, field, words) in [
        (
            "/api/customers/",
            "customer_ref",
            vec!["amounts_due", "balance", "e_invoice_check", "edit", "filter", "names", "payments", "statement"],
        ),
        ("/api/entities/", "entity_ref", vec!["edit", "filter", "names"]),
        ("/api/usage/products/", "usage_product_ref", vec!["edit", "filter"]),
        ("/api/pricings/", "product_pricing_ref", vec!["edit", "filter", "rates"]),
        ("/api/usage/formats/", "format_ref", vec!["edit", "filter", "test"]),
        ("/api/bank_accounts/", "billing_account_id", vec!["edit", "filter"]),
        ("/api/charges/", "charge_ref", vec!["edit", "filter"]),
    ] {
        let expected = (format!("/{field}"), "invalid_value".to_owned());
        for word in words.into_iter().chain([".", ".."]) {
            let reply = server.post(path, ("authorization", &bearer), &json!({field: word}).to_string()).await;
            assert_eq!(reply.problem(), (422, "validation_failed".to_owned()), "{path} {word}");
            assert!(reply.fields().contains(&expected), "{path} {word}: {}", reply.text);
        }
        // Other fields are missing, and the reference is valid.
        let other = server.post(path, ("authorization", &bearer), &json!({field: "..."}).to_string()).await;
        assert!(other.fields().iter().all(|(pointer, _)| *pointer != expected.0), "{path}: {}", other.text);
    }
}

#[actix_web::test]
async fn an_existing_reference_that_would_be_refused_now_can_still_be_used() {
    let server = Server::new();
    let organization = organizations::first_organization(&server.services).expect("a read").expect("the first start made it").id;
    let principal = Principal::of_command_line(organization);
    let existing = CustomerRef::parse("filter").expect("a reference");
    run(&server.services, &principal, UseCase::CreateCustomer, |cx| {
        create_customer(cx, Some(existing.clone()), CustomerProfile::plain(fixtures::line("Old")).into())
    })
    .expect("a customer");
    let bearer = server.bearer(&ALL).await;
    let edited = server.post("/api/customers/edit/filter", ("authorization", &bearer), r#"{"name":"New"}"#).await;
    assert_eq!((edited.status.as_u16(), &edited.json()["customer_ref"]), (200, &json!("filter")));
    let listed = server.get("/api/customers/filter", ("authorization", &bearer)).await.json();
    assert_eq!((&listed[0]["customer_ref"], &listed[0]["name"]), (&json!("filter"), &json!("New")));
}

#[actix_web::test]
async fn the_e_mail_address_of_a_new_administrator_is_ascii() {
    let server = Server::new();
    let session = server.session().await;
    // The first letter of the first domain is Cyrillic.
    for address in ["owner@\u{430}cme.example", "owner@b\u{fc}cher.example"] {
        let body = json!({"email": address, "role": "owner"}).to_string();
        let reply = server.post("/api/administrators/", ("cookie", &session), &body).await;
        assert_eq!(reply.fields(), [("/email".to_owned(), "invalid_format".to_owned())], "{address}");
        assert!(reply.text.contains("punycode"), "{}", reply.text);
    }
    let body = json!({"email": "owner@xn--bcher-kva.example", "role": "owner"}).to_string();
    let made = server.post("/api/administrators/", ("cookie", &session), &body).await;
    assert_eq!(made.status.as_u16(), 200, "{}", made.text);
}
