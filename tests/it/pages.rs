//! The HTML pages that a browser receives at a server's address.

use acceptance::{Answer, Client, Database, Server};

fn shown(client: &Client, path: &str) -> Answer {
    let answer = client.get(path);
    assert_eq!((answer.status, answer.header("Content-Type")), (200, "text/html; charset=utf-8"), "{path}");
    answer
}

/// Returns the resources and links of a page.
fn links(page: &str) -> Vec<&str> {
    let quoted = |attribute: &'static str| page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
    quoted("href=\"").chain(quoted("src=\"")).filter(|link| !link.starts_with('#')).collect()
}

#[test]
fn every_page_is_this_servers_alone_and_leads_somewhere() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let anonymous = Client::anonymous(&server);
    for path in ["/", "/docs", "/docs/"] {
        let page = shown(&anonymous, path);
        let policy = page.header("Content-Security-Policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("X-Content-Type-Options"), "nosniff");
        assert!(!page.text.contains("<script") && !page.text.contains("style=") && !page.text.contains("onclick"), "{path}");
        let links = links(&page.text);
        assert!(links.contains(&"/openapi.json") && links.contains(&"/docs/style.css"), "{path}: {links:?}");
        for link in links {
            // The console redirects to the log-in page.
            let expected = if link == "/console" { 303 } else { 200 };
            assert!(link.starts_with('/') && anonymous.get(link).status == expected, "{path} links to {link}");
        }
    }
    let style = anonymous.get("/docs/style.css");
    assert_eq!((style.status, style.header("Content-Type")), (200, "text/css; charset=utf-8"));
    assert!(links(&shown(&anonymous, "/").text).contains(&"/health/ready"));
}

#[test]
fn the_reference_has_every_operation_of_the_openapi_document() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let anonymous = Client::anonymous(&server);
    let page = shown(&anonymous, "/docs").text;
    let document = anonymous.get("/openapi.json").ok();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let heading = format!("<h3><code>{} {path}</code></h3>", method.to_uppercase());
            assert!(page.contains(&heading), "{heading}");
            assert!(page.contains(&format!("id={}", operation["operationId"])), "{operation}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}
