//! References that are made from names, for new objects whose form has none.

use crate::NAME_FIELDS;
use billing_api::console::{FormData, PageAnswer};
use billing_api::problem::Problem;
use billing_domain::refs::MAX_REF_CHARS;
use billing_domain::search_words::without_accents;
use serde_json::json;

use super::form_data::field;
use super::reply::data;
use super::session_user::Answered;

/// Maximum number of references that are tried. The second one ends with `-2`.
const MAX_ATTEMPTS: usize = 20;
/// Space for the number at the end of a reference.
const NUMBER_CHARS: usize = 3;

/// Hint of the reference of a new object.
pub(super) const NEW_REFERENCE: &str =
    "For the API. It cannot be changed. Default: made from the name, such as api-calls for API calls.";

/// Returns the reference that is made from a name, such as `api-calls` from `API calls`; `None` if the name has no Latin letter
/// and no digit.
pub(super) fn reference_of(name: &str) -> Option<String> {
    let mut reference = String::new();
    for letter in without_accents(name).chars() {
        match letter {
            _ if letter.is_ascii_alphanumeric() => reference.push(letter),
            // An apostrophe does not separate words.
            '\'' | '’' => {}
            _ if reference.ends_with('-') || reference.is_empty() => {}
            _ => reference.push('-'),
        }
    }
    reference.truncate(MAX_REF_CHARS - NUMBER_CHARS);
    let reference = reference.trim_end_matches('-');
    (!reference.is_empty()).then(|| reference.to_owned())
}

/// Returns a reference with a number, for the second and later objects with one name.
fn numbered(reference: &str, number: usize) -> String {
    if number == 1 { reference.to_owned() } else { format!("{reference}-{number}") }
}

/// Returns the first reference that is not taken: the reference itself, or one with a number.
pub(super) fn free(reference: &str, taken: &[String]) -> String {
    let is_free = |candidate: &String| !taken.contains(candidate);
    (1..).map(|number| numbered(reference, number)).find(is_free).unwrap_or_default()
}

/// Creates an object with the reference that is made from a name. If another object has the reference, a number is added. A
/// form that is sent twice finds the object of the first time, because each reference has an idempotency key of its own.
///
/// # Errors
/// Returns the refusal of the operation.
pub(super) async fn created(
    reference_field: &str,
    submitted: &FormData,
    create: impl AsyncFn(&FormData) -> Answered,
) -> Answered {
    let name = NAME_FIELDS.iter().find_map(|name| field(submitted, name));
    let reference = name.and_then(reference_of).filter(|_| field(submitted, reference_field).is_none());
    let Some(reference) = reference else { return create(submitted).await };
    let mut number = 1;
    loop {
        let numbered = with_reference(submitted, reference_field, &reference, number);
        match create(&numbered).await {
            Err(problem) if is_in_use(&problem, reference_field) && number < MAX_ATTEMPTS => number += 1,
            answer => return answer,
        }
    }
}

fn with_reference(submitted: &FormData, reference_field: &str, reference: &str, number: usize) -> FormData {
    let value = |(name, value): &(String, String)| match name.as_str() {
        "form_key" => Some((name.clone(), numbered(value, number))),
        name if name == reference_field => None,
        _ => Some((name.clone(), value.clone())),
    };
    let reference = (reference_field.to_owned(), numbered(reference, number));
    submitted.iter().filter_map(value).chain([reference]).collect()
}

fn is_in_use(problem: &Problem, reference_field: &str) -> bool {
    let is_of_field = |pointer: &str| pointer.strip_prefix('/') == Some(reference_field);
    problem.errors().iter().any(|error| error.code == "already_exists" && is_of_field(&error.pointer))
}

/// Returns the reference that is made from a name, for the script. Empty text stands for none.
pub(super) fn proposal(submitted: &FormData) -> PageAnswer {
    let reference = field(submitted, "name").and_then(reference_of);
    data(&json!(reference.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use billing_domain::refs::CustomerRef;

    use super::*;

    #[test]
    fn a_name_gives_a_reference_that_the_interface_takes() {
        for (name, reference) in [
            ("API calls", "api-calls"),
            ("  Acme & Co.  ", "acme-co"),
            ("Sønner Ærø ApS", "sonner-aero-aps"),
            ("Müller’s Straße 7", "mullers-strasse-7"),
            ("Z\u{301}ubr", "zubr"),
            ("漢字 K.K.", "k-k"),
        ] {
            assert_eq!(reference_of(name).as_deref(), Some(reference), "{name}");
            assert!(CustomerRef::parse(reference).is_ok(), "{reference}");
        }
        assert_eq!(reference_of("漢字"), None);
        let long = reference_of(&"long name ".repeat(20)).expect("a reference");
        assert!(CustomerRef::parse(&numbered(&long, MAX_ATTEMPTS)).is_ok(), "{long}");
    }

    #[test]
    fn a_reference_in_use_gets_a_number_and_a_key_of_its_own() {
        let submitted = vec![("name".to_owned(), "Acme".to_owned()), ("form_key".to_owned(), "k".to_owned())];
        let second = with_reference(&submitted, "customer_ref", "acme", 2);
        assert_eq!((field(&second, "customer_ref"), field(&second, "form_key")), (Some("acme-2"), Some("k-2")));
        assert_eq!(free("usage", &["usage".to_owned(), "usage-2".to_owned()]), "usage-3");
    }
}
