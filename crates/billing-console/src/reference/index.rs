//! The pages of the API reference, rendered from the OpenAPI document: an overview, a page for each group of operations, for
//! each operation and for each schema. The pages of the documentation have the same frame and search.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use maud::{Markup, html};
use serde_json::Value;

use super::markup::{self, SCHEMAS, is_structured, kind, list, members, prose, referenced, text};
use super::operation_page::{self, OperationPage};
use super::pages::{self, PAGES, Page};
use super::search::{self, Entry};
use super::{REFERENCE, SCRIPT};
use billing_api::openapi::{NOTIFICATIONS, resolved};

/// The page of an operation is below this path.
const OPERATIONS: &str = "/docs/operations";
/// The page of a group is below this path.
const GROUPS: &str = "/docs/groups";
/// Size in bytes of the schemas that are shown for a request or a response. Further schemas are only on their own pages.
const MAX_SCHEMA_BYTES: usize = 40_000;

/// The parts of all pages.
pub(super) struct Reference {
    title: String,
    description: String,
    groups: Vec<Group>,
    operations: Vec<OperationPage>,
    schemas: BTreeMap<String, SchemaPart>,
    pages: Vec<Page>,
    /// The notifications that the service sends.
    notifications: Markup,
    entries: Vec<Entry>,
}

/// Operations of one subject.
struct Group {
    name: String,
    description: String,
}

/// The content of a schema.
struct SchemaPart {
    description: String,
    content: Markup,
    /// Structured schemas to which the schema refers directly.
    parts: Vec<String>,
    /// Titles and addresses of the operations and schemas that refer to the schema directly.
    used_by: Vec<(String, String)>,
}

/// A page of the reference.
pub(super) struct ReferencePage<'r> {
    pub(super) title: &'r str,
    /// The group that the page belongs to.
    group: Option<&'r str>,
    /// Address of the page.
    pub(super) address: String,
    body: Markup,
}

impl Reference {
    /// Renders the parts of all pages.
    pub(super) fn of(document: &Value) -> Self {
        let group = |tag: &Value| Group { name: text(tag, "name").to_owned(), description: text(tag, "description").to_owned() };
        let operations = operation_page::all(document);
        let schemas = schemas(document);
        let of_operations = operations.iter().map(|operation| {
            let title = format!("{} {} {}", operation.method, operation.path, operation.id);
            Entry::new(title, operation.summary.clone(), address_of(&operation.id), &operation.words)
        });
        let of_webhooks = members(&document["webhooks"]).map(|(name, webhook)| {
            let summary = text(&webhook["post"], "summary");
            Entry::new(format!("Notification {name}"), summary.to_owned(), notification_address(name), summary)
        });
        let of_schemas = schemas.iter().map(|(name, schema)| {
            let described = &document["components"]["schemas"][name];
            let fields = members(&described["properties"]).map(|(field, _)| field.as_str());
            let values = list(&described["enum"]).filter_map(Value::as_str);
            let words: Vec<&str> = std::iter::once(schema.description.as_str()).chain(fields).chain(values).collect();
            Entry::new(format!("Schema {name}"), schema.description.clone(), markup::address(name), &words.join(" "))
        });
        let pages = pages::all();
        let of_pages = pages.iter().flat_map(Page::entries);
        let entries = of_pages.chain(of_operations).chain(of_webhooks).chain(of_schemas).collect();
        Self {
            title: text(&document["info"], "title").to_owned(),
            description: text(&document["info"], "description").to_owned(),
            groups: list(&document["tags"]).map(group).collect(),
            notifications: notifications(document),
            operations,
            schemas,
            pages,
            entries,
        }
    }

    /// Returns the first page. `base` is the address of the server.
    pub(super) fn overview(&self, base: &str) -> ReferencePage<'_> {
        let variables = format!("BASE={base}\nAPI_KEY=...\nPASSWORD=...");
        let body = html! {
            h1 { (self.title) " API" }
            p { (prose(&self.description)) }
            p { a href=(PAGES) { "Documentation" } " · " a href="/openapi.json" { "OpenAPI document" } " · " a href=(SCHEMAS) { "Schemas" } " · " a href="/" { "Home" } }
            h2 { "Authentication" }
            p {
                "Most operations accept an API key and its password with each request, as HTTP Basic. The examples of this "
                "reference have them and the address of the server in these variables. " a href="/" { "Home" }
                " has the commands that create a key."
            }
            pre { code { (variables) } }
            @for group in &self.groups {
                h2 { a href=(group.address()) { (group.title()) } }
                p { (prose(&group.description)) }
                ul.calls { @for operation in self.of_group(&group.name) { (link(operation)) } }
            }
        };
        ReferencePage { title: "API reference", group: None, address: REFERENCE.to_owned(), body }
    }

    /// Returns the page of a group.
    pub(super) fn group(&self, name: &str) -> Option<ReferencePage<'_>> {
        let group = self.groups.iter().find(|group| group.name == name)?;
        let body = html! {
            (crumbs(&[]))
            h1 { (group.title()) }
            p { (prose(&group.description)) }
            ul.calls { @for operation in self.of_group(name) { (link(operation)) } }
            @if name == NOTIFICATIONS { (self.notifications) }
        };
        Some(ReferencePage { title: &group.name, group: Some(&group.name), address: group.address(), body })
    }

    /// Returns the page of an operation.
    pub(super) fn operation(&self, id: &str) -> Option<ReferencePage<'_>> {
        let operation = self.operations.iter().find(|operation| operation.id == id)?;
        let group = self.groups.iter().find(|group| group.name == operation.group);
        let crumb: Vec<(String, String)> = group.map(|group| (group.title(), group.address())).into_iter().collect();
        let body = html! {
            (crumbs(&crumb))
            h1 { (prose(&operation.summary)) }
            p.call { code { (operation.method) " " (operation.path) } }
            (operation.description)
            (self.fields(&operation.request_schemas))
            h2 { "Request" }
            (operation.request)
            h2 { "Responses" }
            (operation.responses)
            (self.fields(&operation.response_schemas))
            script src=(SCRIPT.address()) defer {}
        };
        let group = group.map(|group| group.name.as_str());
        Some(ReferencePage { title: &operation.id, group, address: address_of(id), body })
    }

    /// Returns the list of all schemas.
    pub(super) fn all_schemas(&self) -> ReferencePage<'_> {
        let body = html! {
            (crumbs(&[]))
            h1 { "Schemas" }
            ul.calls {
                @for (name, schema) in &self.schemas {
                    li { a href=(markup::address(name)) { code { (name) } } " " (prose(first_sentence(&schema.description))) }
                }
            }
        };
        ReferencePage { title: "Schemas", group: None, address: SCHEMAS.to_owned(), body }
    }

    /// Returns the page of a schema.
    pub(super) fn schema(&self, name: &str) -> Option<ReferencePage<'_>> {
        let (name, schema) = self.schemas.get_key_value(name)?;
        let body = html! {
            (crumbs(&[("Schemas".to_owned(), SCHEMAS.to_owned())]))
            h1 { (name) }
            (schema.content)
            (self.fields(&schema.parts))
            @if !schema.used_by.is_empty() {
                h2 { "Used by" }
                ul { @for (title, address) in &schema.used_by { li { a href=(address) { (title) } } } }
            }
        };
        Some(ReferencePage { title: name, group: None, address: markup::address(name), body })
    }

    /// Returns the list of the pages of the documentation.
    pub(super) fn all_pages(&self) -> ReferencePage<'_> {
        let body = html! {
            (crumbs(&[]))
            h1 { "Documentation" }
            ul.calls { @for page in &self.pages { li { a href=(page.address) { (page.title) } " " (page.summary) } } }
        };
        ReferencePage { title: "Documentation", group: None, address: PAGES.to_owned(), body }
    }

    /// Returns a page of the documentation.
    pub(super) fn page(&self, name: &str) -> Option<ReferencePage<'_>> {
        let address = pages::address(name);
        let page = self.pages.iter().find(|page| page.address == address)?;
        let body = html! { (crumbs(&[("Documentation".to_owned(), PAGES.to_owned())])) (page.body) };
        Some(ReferencePage { title: &page.title, group: None, address, body })
    }

    /// Returns the results of a search.
    pub(super) fn search(&self, query: &str) -> ReferencePage<'_> {
        let results = search::find(&self.entries, query);
        let body = html! {
            (crumbs(&[]))
            h1 { "Search" }
            p role="status" {
                @match (results.count, results.shown.len()) {
                    (0, _) if query.trim().is_empty() => "Search for a word of the documentation, or the name, path, field or error code of an operation.",
                    (0, _) => { "Nothing contains all words of " q { (query) } ". Search for fewer words." },
                    (1, _) => "1 result",
                    (count, shown) if count > shown => {
                        "The first " (shown) " of " (count) " results. Add a word for fewer results."
                    },
                    (count, _) => { (count) " results" },
                }
            }
            ul.calls {
                @for entry in results.shown {
                    li { a href=(entry.address) { code { (entry.title) } } " " (prose(first_sentence(&entry.summary))) }
                }
            }
        };
        ReferencePage { title: "Search", group: None, address: String::new(), body }
    }

    /// Renders a page with the navigation and the search.
    pub(super) fn framed(&self, page: &ReferencePage<'_>, query: &str) -> Markup {
        // The group of a page is marked too, because narrow screens do not show its operations.
        let current = |address: &str, is_around: bool| match page.address == address {
            true => Some("page"),
            false => is_around.then_some("true"),
        };
        let is_schema = page.address.starts_with(SCHEMAS);
        html! {
            a.skip href="#main" { "Skip to content" }
            header {
                a.brand href=(REFERENCE) { (self.title) " API" }
                form role="search" action=(super::SEARCH) {
                    input type="search" name="q" value=(query) aria-label="Search the documentation"
                        maxlength=(super::MAX_QUERY_CHARS);
                    button { "Search" }
                }
            }
            div.columns {
                nav aria-label="API reference" {
                    ul {
                        @let is_page = page.address.starts_with(PAGES);
                        li {
                            a href=(PAGES) aria-current=[current(PAGES, is_page)] { "Documentation" }
                            @if is_page {
                                ul.operations {
                                    @for one in &self.pages {
                                        li { a href=(one.address) aria-current=[current(&one.address, false)] { (one.title) } }
                                    }
                                }
                            }
                        }
                        li { a href=(REFERENCE) aria-current=[current(REFERENCE, false)] { "Overview" } }
                        @for group in &self.groups {
                            @let is_around = page.group == Some(group.name.as_str());
                            li {
                                a href=(group.address()) aria-current=[current(&group.address(), is_around)] { (group.title()) }
                                @if is_around {
                                    ul.operations {
                                        @for operation in self.of_group(&group.name) {
                                            @let address = address_of(&operation.id);
                                            li { a href=(address) aria-current=[current(&address, false)] { (operation.id) } }
                                        }
                                    }
                                }
                            }
                        }
                        li { a href=(SCHEMAS) aria-current=[current(SCHEMAS, is_schema)] { "Schemas" } }
                    }
                }
                main #main { (page.body) }
            }
        }
    }

    fn of_group(&self, name: &str) -> impl Iterator<Item = &OperationPage> {
        self.operations.iter().filter(move |operation| operation.group == name)
    }

    /// Renders schemas and the schemas to which they refer, up to a total size. The schemas themselves are open.
    fn fields(&self, names: &[String]) -> Markup {
        let (mut shown, mut seen, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
        let mut waiting: VecDeque<(&String, bool)> = names.iter().map(|name| (name, true)).collect();
        while let Some((name, is_open)) = waiting.pop_front() {
            let Some(schema) = self.schemas.get(name).filter(|_| seen.insert(name)) else { continue };
            bytes += schema.content.0.len();
            if bytes > MAX_SCHEMA_BYTES {
                break;
            }
            waiting.extend(schema.parts.iter().map(|name| (name, false)));
            shown.push((name, schema, is_open));
        }
        html! {
            @for (name, schema, is_open) in shown {
                details.schema open[is_open] { summary { code { (name) } } (schema.content) }
            }
        }
    }
}

impl Group {
    fn address(&self) -> String {
        format!("{GROUPS}/{}", self.name)
    }

    fn title(&self) -> String {
        let (first, rest) = self.name.split_at(self.name.len().min(1));
        format!("{}{rest}", first.to_uppercase())
    }
}

fn address_of(id: &str) -> String {
    format!("{OPERATIONS}/{id}")
}

fn notification_address(name: &str) -> String {
    format!("{GROUPS}/{NOTIFICATIONS}#{name}")
}

/// Renders the way to a page.
fn crumbs(more: &[(String, String)]) -> Markup {
    html! {
        p.crumbs {
            a href=(REFERENCE) { "API reference" }
            @for (title, address) in more { " / " a href=(address) { (title) } }
        }
    }
}

fn link(operation: &OperationPage) -> Markup {
    html! {
        li id=(operation.id) {
            a href=(address_of(&operation.id)) { code { (operation.method) " " (operation.path) } }
            " " (prose(&operation.summary))
        }
    }
}

fn notifications(document: &Value) -> Markup {
    html! {
        h2 { "Notifications" }
        p { "The service sends these notifications to webhook endpoints." }
        table {
            thead { tr { th { "Type" } th { "Description" } th { "Body" } } }
            tbody {
                @for (name, webhook) in members(&document["webhooks"]) {
                    @let content = &webhook["post"]["requestBody"]["content"];
                    tr id=(name) {
                        td { code { (name) } }
                        td { (prose(text(&webhook["post"], "summary"))) }
                        td { @for (_, content) in members(content) { (kind(document, &content["schema"])) } }
                    }
                }
            }
        }
    }
}

fn schemas(document: &Value) -> BTreeMap<String, SchemaPart> {
    let all = &document["components"]["schemas"];
    let mut parts: BTreeMap<String, SchemaPart> = members(all)
        .map(|(name, schema)| {
            let structured = referenced(schema).into_iter().filter(|part| is_structured(&all[*part]));
            let part = SchemaPart {
                description: text(schema, "description").to_owned(),
                content: markup::schema(document, schema),
                parts: structured.map(str::to_owned).collect(),
                used_by: Vec::new(),
            };
            (name.clone(), part)
        })
        .collect();
    let mut used = |names: Vec<&str>, title: &str, address: String| {
        for name in names {
            let Some(part) = parts.get_mut(name) else { continue };
            if part.used_by.last().is_none_or(|(_, last)| *last != address) {
                part.used_by.push((title.to_owned(), address.clone()));
            }
        }
    };
    for (path, item) in members(&document["paths"]) {
        for (method, operation) in members(item) {
            let title = format!("{} {path}", method.to_uppercase());
            let responses = members(&operation["responses"]).map(|(_, response)| resolved(document, response));
            let parameters = list(&operation["parameters"]).map(|parameter| resolved(document, parameter));
            for part in std::iter::once(&operation["requestBody"]).chain(responses).chain(parameters) {
                used(referenced(part), &title, address_of(text(operation, "operationId")));
            }
        }
    }
    for (name, webhook) in members(&document["webhooks"]) {
        used(referenced(webhook), &format!("Notification {name}"), notification_address(name));
    }
    for (name, schema) in members(all) {
        used(referenced(schema), name, markup::address(name));
    }
    parts
}

/// Returns the first sentence of a description.
fn first_sentence(description: &str) -> &str {
    description.split_once(". ").map_or(description, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use billing_domain::report::NumbersAs;
    use serde_json::json;

    use super::*;

    /// Maximum size of a page in bytes.
    const MAX_PAGE_BYTES: usize = 100_000;
    /// The same for a page of the documentation.
    const MAX_TEXT_BYTES: usize = 200_000;

    fn described() -> Value {
        billing_api::openapi::described(NumbersAs::Number)
    }

    /// Returns the HTML of all pages by their addresses.
    fn pages(reference: &Reference) -> BTreeMap<String, String> {
        let groups = reference.groups.iter().filter_map(|group| reference.group(&group.name));
        let operations = reference.operations.iter().filter_map(|operation| reference.operation(&operation.id));
        let schemas = reference.schemas.keys().filter_map(|name| reference.schema(name));
        let prefix = format!("{PAGES}/");
        let texts = reference.pages.iter().filter_map(|page| reference.page(page.address.strip_prefix(&prefix)?));
        let lists = [reference.overview("http://billing.test"), reference.all_schemas(), reference.all_pages()];
        let first = lists.into_iter().chain([reference.search("document")]);
        let all = first.chain(groups).chain(operations).chain(schemas).chain(texts);
        all.map(|page| (page.address.clone(), reference.framed(&page, "").into_string())).collect()
    }

    #[test]
    fn every_operation_and_schema_has_a_page_and_every_link_leads_somewhere() {
        let document = described();
        let reference = Reference::of(&document);
        let pages = pages(&reference);
        for operation in billing_api::operations::OPERATIONS {
            let page = &pages[&format!("/docs/operations/{}", operation.id)];
            assert!(page.contains(&format!("<code>{} {}</code>", operation.method.as_str(), operation.path)), "{}", operation.id);
            assert!(pages["/docs"].contains(&format!("href=\"/docs/operations/{}\"", operation.id)), "{}", operation.id);
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(pages.contains_key(&format!("/docs/schemas/{name}")), "{name}");
            assert!(pages["/docs/schemas"].contains(&format!("href=\"/docs/schemas/{name}\"")), "{name}");
        }
        for (address, html) in &pages {
            for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if page.is_empty() { html } else { pages.get(page).unwrap_or(html) };
                assert!(anchor.is_empty() || target.contains(&format!("id=\"{anchor}\"")), "{address}: {link}");
                let is_elsewhere = ["", "/", "/openapi.json"].contains(&page) || page.starts_with("https://");
                assert!(is_elsewhere || pages.contains_key(page), "{address}: {link}");
            }
        }
    }

    #[test]
    fn no_page_is_large() {
        for (address, html) in pages(&Reference::of(&described())) {
            let most = if address.starts_with(PAGES) { MAX_TEXT_BYTES } else { MAX_PAGE_BYTES };
            assert!(html.len() <= most, "{address}: {} bytes", html.len());
        }
    }

    #[test]
    fn a_page_shows_the_fields_of_its_bodies() {
        let reference = Reference::of(&described());
        let page = reference.operation("record_payment").expect("a page").body.into_string();
        let (request, responses) = page.split_once("<h2>Responses</h2>").expect("responses");
        assert!(request.contains("<code>paid_date</code>"), "{request}");
        assert!(responses.contains("<code>document_number</code>"), "{responses}");
    }

    #[test]
    fn the_navigation_marks_the_page_and_its_group() {
        let reference = Reference::of(&described());
        let page = reference.operation("record_payment").expect("a page");
        let html = reference.framed(&page, "").into_string();
        assert!(html.contains("href=\"/docs/groups/documents\" aria-current=\"true\""), "{html}");
        assert!(html.contains("href=\"/docs/operations/record_payment\" aria-current=\"page\""), "{html}");
        assert_eq!(html.matches("aria-current").count(), 2, "{html}");
    }

    #[test]
    fn a_search_finds_operations_and_schemas() {
        let reference = Reference::of(&described());
        let found = |query: &str| reference.search(query).body.into_string();
        for (query, address) in [
            ("record payment", "/docs/operations/record_payment"),
            ("/api/usage/event", "/docs/operations/record_event"),
            ("number_prefix", "/docs/schemas/EntityBody"),
            ("ambiguous_name", "/docs/operations/record_event"),
            ("document.issued", "/docs/groups/notifications#document.issued"),
        ] {
            assert!(found(query).contains(&format!("href=\"{address}\"")), "{query}: {}", found(query));
        }
        assert!(found("no-such-word <b>").contains("&lt;b&gt;"));
        assert!(!found("").contains("<li>"));
    }

    #[test]
    fn what_a_document_says_is_text_and_no_markup() {
        let document = json!({
            "info": {"title": "<b>", "description": "a `code` & \"more\""},
            "tags": [{"name": "t", "description": "T"}],
            "paths": {"/<x>": {"get": {
                "operationId": "x", "tags": ["t"], "summary": "<script>", "description": "<script>", "responses": {},
            }}},
            "components": {"schemas": {"S": {"description": "<script>"}}},
        });
        let reference = Reference::of(&document);
        for (address, html) in pages(&reference) {
            assert!(!html.contains("<script>") && !html.contains("<b>"), "{address}: {html}");
            assert!(address != "/docs" || html.contains("a <code>code</code> &amp; "), "{html}");
        }
    }
}
