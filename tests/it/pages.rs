//! The HTML pages that a browser receives at a server's address.

use std::collections::BTreeMap;

use acceptance::{Answer, Client, Database, Server};

/// Number of links of one form on a page that the test follows.
const MAX_FOLLOWED: usize = 10;

fn shown(client: &Client, path: &str) -> Answer {
    let answer = client.get(path);
    assert_eq!((answer.status, answer.header("Content-Type")), (200, "text/html; charset=utf-8"), "{path}");
    answer
}

/// Returns the resources and links of a page, without the place on the target.
fn links(page: &str) -> Vec<&str> {
    let quoted = |attribute: &'static str| page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
    quoted("href=\"").chain(quoted("src=\"")).filter(|link| !link.starts_with('#')).map(without_place).collect()
}

fn without_place(link: &str) -> &str {
    link.split_once('#').map_or(link, |(page, _)| page)
}

#[test]
fn every_page_is_this_servers_alone_and_leads_somewhere() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let anonymous = Client::anonymous(&server);
    let pages = [
        "/",
        "/docs",
        "/docs/",
        "/docs/search?q=invoice",
        "/docs/groups/webhooks",
        "/docs/operations/record_event",
        "/docs/schemas",
        "/docs/schemas/Document",
    ];
    for path in pages {
        let page = shown(&anonymous, path);
        let policy = page.header("Content-Security-Policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(page.header("X-Content-Type-Options"), "nosniff");
        assert!(!page.text.contains("<script>") && !page.text.contains("style=") && !page.text.contains("onclick"), "{path}");
        let links = links(&page.text);
        assert!(links.iter().any(|link| link.starts_with("/docs/style.css?v=")), "{path}: {links:?}");
        // The pages of the reference lead to many pages of the same form.
        let mut seen = BTreeMap::<&str, usize>::new();
        for link in links {
            let of_form = seen.entry(link.rsplit_once('/').map_or(link, |(form, _)| form)).or_default();
            *of_form += 1;
            // The console redirects to the log-in page.
            let expected = if link == "/console" { 303 } else { 200 };
            assert!(link.starts_with('/'), "{path} links to {link}");
            assert!(*of_form > MAX_FOLLOWED || anonymous.get(link).status == expected, "{path} links to {link}");
        }
    }
    for (file, media_type) in [("style.css", "text/css; charset=utf-8"), ("request.js", "text/javascript; charset=utf-8")] {
        let file = anonymous.get(&format!("/docs/{file}"));
        assert_eq!((file.status, file.header("Content-Type"), file.header("Cache-Control")), (200, media_type, "no-cache"));
    }
    assert!(links(&shown(&anonymous, "/").text).contains(&"/health/ready"));
    assert!(links(&shown(&anonymous, "/docs").text).contains(&"/openapi.json"));
}

#[test]
fn the_reference_has_every_operation_of_the_openapi_document() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let anonymous = Client::anonymous(&server);
    let overview = shown(&anonymous, "/docs").text;
    let document = anonymous.get("/openapi.json").ok();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let heading = format!("<code>{} {path}</code>", method.to_uppercase());
            let address = format!("/docs/operations/{}", operation["operationId"].as_str().expect("an id"));
            assert!(overview.contains(&heading) && overview.contains(&format!("href=\"{address}\"")), "{heading}");
            assert!(shown(&anonymous, &address).text.contains(&heading), "{heading}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn a_page_that_does_not_exist_is_not_found() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let anonymous = Client::anonymous(&server);
    for path in
        ["/docs/operations/nothing", "/docs/groups/nothing", "/docs/schemas/nothing", "/docs/operations/", "/docs/nothing"]
    {
        let answer = anonymous.get(path);
        assert_eq!((answer.status, answer.text_of("code").as_str()), (404, "route_not_found"), "{path}");
    }
    let found = shown(&anonymous, "/docs/search?q=record+PAYMENT").text;
    assert!(found.contains("href=\"/docs/operations/record_payment\""), "{found}");
    let long = format!("/docs/search?q={}", "%3Cb%3E".repeat(200));
    assert!(!shown(&anonymous, &long).text.contains("<b>"), "the query is text");
}
