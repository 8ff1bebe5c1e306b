//! The table of operations against the code and the OpenAPI document.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use billing_domain::access::{Permission, Scope};
use billing_domain::ports::{SearchHit, SearchHitKind};
use billing_domain::report::NumbersAs;
use serde_json::{Map, Value};

use super::*;
use crate::dto::values::{
    NewBankAccountRef, NewChargeRef, NewCustomerRef, NewEntityRef, NewFormatRef, NewHoldRef, NewPricingRef, NewUsageProductRef,
};
use crate::openapi;

#[test]
fn operations_differ_in_name_and_in_method_and_path() {
    let ids: HashSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
    let places: HashSet<_> =
        OPERATIONS.iter().map(|operation| (&operation.method, operation.path.trim_end_matches('/'))).collect();
    assert_eq!((ids.len(), places.len()), (OPERATIONS.len(), OPERATIONS.len()));
}

/// Files and lines with literals that are no paths of operations: prefixes, and an example for a shell. The urls of search
/// results can't come from the table, because it contains their type; the test below compares them.
const OTHER_LITERALS: [(&str, &str); 5] = [
    ("search.rs", ""),
    ("operation.rs", "const VERSIONED_BELOW"),
    ("middleware.rs", "const SECRETS_BELOW"),
    ("frame.rs", "let is_of_people"),
    ("keys.rs", "TOKEN=$(curl"),
];

/// Returns the names and the code before the unit tests of a crate's source files.
fn sources(of: &str) -> Vec<(String, String)> {
    let (mut ahead, mut all) = (vec![PathBuf::from(format!("{}/../billing-{of}/src", env!("CARGO_MANIFEST_DIR")))], Vec::new());
    while let Some(path) = ahead.pop() {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path());
            ahead.extend(entries.filter(|entry| !entry.ends_with("tests")));
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            all.push((name.to_owned(), text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()));
        }
    }
    all
}

#[test]
fn no_other_file_names_an_operation_by_a_text() {
    let mut named = Vec::new();
    for (name, code) in ["api", "http", "console"].into_iter().flat_map(sources).filter(|(name, _)| name != "operations.rs") {
        let is_exempt = |line: &str| {
            let is_other = OTHER_LITERALS.iter().any(|(file, stated)| *file == name && line.contains(stated));
            is_other || line.starts_with("//") || line.starts_with("#[")
        };
        let has_path = |line: &str| ["\"/api/", "\"/auth/", "operations::named(\""].iter().any(|text| line.contains(text));
        let lines = code.lines().map(str::trim_start).filter(|line| has_path(line) && !is_exempt(line));
        named.extend(lines.map(|line| format!("{name}: {line}")));
    }
    assert!(named.is_empty(), "{named:#?}");
}

/// Adds the names of all properties below a schema.
fn add_properties(schema: &Value, names: &mut HashSet<String>) {
    match schema {
        Value::Object(fields) => {
            names.extend(fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned());
            fields.values().for_each(|field| add_properties(field, names));
        }
        Value::Array(elements) => elements.iter().for_each(|element| add_properties(element, names)),
        _ => {}
    }
}

#[test]
fn no_page_of_the_console_reads_a_field_that_no_answer_has() {
    let mut names = HashSet::new();
    add_properties(&openapi::described(NumbersAs::Number), &mut names);
    // `console/calculations.rs` adds the printed calculation to each line.
    names.insert("steps".to_owned());
    let mut unknown = Vec::new();
    for (name, code) in sources("console") {
        let read = [".at(\"", ".at_any(\""]
            .into_iter()
            .flat_map(|call| code.split(call).skip(1))
            .filter_map(|rest| rest.split('"').next());
        let fields = read.flat_map(|path| path.split('.'));
        unknown.extend(fields.filter(|field| !names.contains(*field)).map(|field| format!("{name}: {field}")));
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn a_reference_takes_the_place_of_the_parameter_in_a_path() {
    for (id, reference, url) in [
        ("get_customer", "Acme:eu-1_x.9", "/api/customers/Acme:eu-1_x.9"),
        ("get_document_pdf", "a b/c", "/api/documents/a%20b%2Fc/pdf"),
        ("create_customer", "acme", "/api/customers/"),
    ] {
        assert_eq!(named(id).expect(id).url(reference), url);
    }
}

#[test]
fn the_urls_of_search_results_are_paths_of_operations() {
    use SearchHitKind::*;
    let kinds =
        [ApiKey, BankAccount, Charge, Contract, Customer, Document, Entity, Format, Payment, Pricing, UsageEvent, UsageProduct];
    for kind in kinds {
        let hit = SearchHit {
            kind,
            reference: "x".to_owned(),
            number: None,
            name: None,
            customer_ref: CustomerRef::parse("x").ok(),
            customer_name: None,
            document_ref: None,
        };
        let found = serde_json::to_value(SearchResultJson::from(&hit)).expect("JSON");
        let url = found["url"].as_str().expect("a url");
        let is_read = |operation: &&OperationSpec| operation.method == HttpMethod::GET && operation.url("x") == url;
        assert!(OPERATIONS.iter().any(|operation| is_read(&operation)), "{url}");
    }
}

#[test]
fn questions_are_posted_operations_that_take_the_scope_to_read() {
    for question in OPERATIONS.iter().filter(|operation| operation.is(Flag::Question)) {
        let id = question.id;
        assert_eq!((&question.method, question.need()), (&HttpMethod::POST, Some(Permission::Scope(Scope::Read))), "{id}");
    }
}

#[test]
fn each_operation_with_a_dry_run_is_found_by_its_path() {
    for operation in OPERATIONS.iter().filter(|operation| operation.is(Flag::DryRun)) {
        let found = changing(operation.path).map(|(found, _)| found.id);
        assert_eq!(found, Some(operation.id));
    }
}

#[test]
fn the_words_below_a_collection_are_reserved_among_its_references() {
    let reserved: [(&str, &[&str]); 8] = [
        ("/api/customers/", NewCustomerRef::RESERVED),
        ("/api/entities/", NewEntityRef::RESERVED),
        ("/api/usage/products/", NewUsageProductRef::RESERVED),
        ("/api/pricings/", NewPricingRef::RESERVED),
        ("/api/usage/formats/", NewFormatRef::RESERVED),
        ("/api/bank_accounts/", NewBankAccountRef::RESERVED),
        ("/api/charges/", NewChargeRef::RESERVED),
        ("/api/usage/holds/", NewHoldRef::RESERVED),
    ];
    // References of contracts, grants, limits and webhook endpoints are UUIDs, which no word is.
    let has_uuids = ["/api/contracts/", "/api/credit_grants/", "/api/limits/", "/api/webhooks/endpoints/"];
    let is_named = |path: &&str| path.ends_with('/') && !has_uuids.contains(path);
    let has_reference = |path: &&str| {
        let below = |operation: &OperationSpec| operation.path.strip_prefix(*path).is_some_and(|rest| rest.starts_with('{'));
        OPERATIONS.iter().any(below)
    };
    let paths = OPERATIONS.iter().map(|operation| operation.path);
    let collections: HashSet<&str> = paths.filter(is_named).filter(has_reference).collect();
    assert_eq!(collections, reserved.iter().map(|(path, _)| *path).collect::<HashSet<&str>>());
    for (collection, reserved) in reserved {
        let below = OPERATIONS.iter().filter_map(|operation| operation.path.strip_prefix(collection)?.split('/').next());
        let words: HashSet<&str> = below.filter(|word| !word.is_empty() && !word.starts_with('{')).collect();
        assert_eq!(words, reserved.iter().copied().collect::<HashSet<&str>>(), "{collection}");
    }
}

#[test]
fn a_fixed_name_stands_before_the_parameter_that_would_take_it() {
    for (i, operation) in OPERATIONS.iter().enumerate() {
        let (parent, last) = operation.path.trim_end_matches('/').rsplit_once('/').expect("a path");
        let shadowed = OPERATIONS[..i].iter().any(|earlier| {
            let (earlier_parent, earlier_last) = earlier.path.trim_end_matches('/').rsplit_once('/').expect("a path");
            earlier_parent == parent && earlier_last.starts_with('{') && !last.starts_with('{')
        });
        assert!(!shadowed, "{}", operation.path);
    }
}

#[test]
fn everything_below_api_takes_a_credential_and_reads_take_the_scope_to_read() {
    for operation in OPERATIONS.iter().filter(|operation| operation.is_versioned()) {
        match operation.need() {
            Some(Permission::Scope(scope)) => {
                assert_eq!(scope == Scope::Read, !operation.changes_state(), "{}", operation.id)
            }
            Some(Permission::ScopeAndRead(_) | Permission::ScopeOrRole(..)) => {
                assert!(operation.changes_state(), "{}", operation.id)
            }
            Some(Permission::Owner) => {}
            Some(Permission::Administrator) | None => panic!("{} is open", operation.id),
        }
    }
}
