//! Comparison of the responses on a page with the actual responses.
//!
//! They must be equal, except for values that differ between runs. `…` stands for such a value, or for omitted members
//! and elements.

use serde_json::{Deserializer, Value};

/// The placeholder for a value that differs between runs, and for omitted content.
const ELLIPSIS: &str = "…";
/// The maximum distance of two instants that both show the current time.
const SAME_NOW_SECONDS: u32 = 600;
const PROBLEM: &str = "urn:problem-type:";

/// Compares the output of calls with the responses on a page, each with its place and language. The page shows the last
/// responses. A response that the page does not show must not be a problem document.
pub(crate) fn compare(place: &str, printed: &str, shown: &[(String, String, String)]) -> Vec<String> {
    let texts = shown.iter().any(|(_, language, _)| language != "json");
    match shown {
        [] if printed.contains(PROBLEM) => vec![format!("{place}: refused, and the page doesn't show it\n{printed}")],
        [] => Vec::new(),
        [(place, _, text)] if texts => self::text(text, printed).map(|found| format!("{place}: {found}")).into_iter().collect(),
        _ if texts => vec![format!("{place}: more than one answer that is no JSON")],
        _ => of_json(place, printed, shown),
    }
}

fn of_json(place: &str, printed: &str, shown: &[(String, String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expected = Vec::new();
    for (place, _, text) in shown {
        match values(text) {
            Ok(values) => expected.extend(values.into_iter().map(|value| (place, value))),
            Err(error) => wrong.push(format!("{place}: {error}")),
        }
    }
    let found = match values(printed) {
        Ok(found) if found.len() >= expected.len() => found,
        Ok(found) => return vec![format!("{place}: {} answers came: {printed}", found.len())],
        Err(error) => return vec![format!("{place}: {error} came: {printed}")],
    };
    let (hidden, found) = found.split_at(found.len() - expected.len());
    for value in hidden.iter().filter(|value| value["type"].as_str().is_some_and(|kind| kind.starts_with(PROBLEM))) {
        wrong.push(format!("{place}: refused, and the page doesn't show it\n{value}"));
    }
    for ((place, shown), found) in expected.iter().zip(found) {
        let mut differences = Vec::new();
        differ("", shown, found, &mut differences);
        if !differences.is_empty() {
            wrong.push(format!("{place}:\n  {}\n  what came: {found}", differences.join("\n  ")));
        }
    }
    wrong
}

fn values(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    Deserializer::from_str(text).into_iter().collect()
}

fn differ(pointer: &str, shown: &Value, found: &Value, differences: &mut Vec<String>) {
    match (shown, found) {
        (Value::Object(shown), Value::Object(found)) => {
            for (name, value) in shown.iter().filter(|(name, _)| *name != ELLIPSIS) {
                match found.get(name) {
                    Some(found) => differ(&format!("{pointer}/{name}"), value, found, differences),
                    None => differences.push(format!("{pointer}/{name} isn't there")),
                }
            }
            if !shown.contains_key(ELLIPSIS) {
                let more = found.iter().filter(|(name, _)| !shown.contains_key(*name));
                differences.extend(more.map(|(name, value)| format!("{pointer}/{name} isn't shown: {value}")));
            }
        }
        (Value::Array(shown), Value::Array(found)) => {
            let (shown, whole) = match shown.split_last() {
                Some((last, rest)) if last == ELLIPSIS => (rest, false),
                _ => (&shown[..], true),
            };
            if found.len() < shown.len() || whole && found.len() != shown.len() {
                differences.push(format!("{pointer}: {} elements came", found.len()));
            }
            for (i, (shown, found)) in shown.iter().zip(found).enumerate() {
                differ(&format!("{pointer}/{i}"), shown, found, differences);
            }
        }
        (Value::String(shown), Value::String(found)) if is_same(shown, found) => {}
        (Value::Number(shown), Value::Number(found))
            if shown.to_string() == found.to_string()
                || [shown, found].iter().all(|number| is_unix_seconds(&number.to_string())) => {}
        _ if shown == found => {}
        _ => differences.push(format!("{pointer}: the page shows {shown}, {found} came")),
    }
}

/// Compares text on a page with printed text. A line that contains only an ellipsis stands for any number of lines.
pub(crate) fn text(shown: &str, printed: &str) -> Option<String> {
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let same = are_same(&lines(shown), &lines(printed));
    (!same).then(|| format!("the page shows\n{shown}\nand this came\n{printed}"))
}

fn are_same(shown: &[String], found: &[String]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first == ELLIPSIS => (0..=found.len()).any(|skipped| are_same(rest, &found[skipped..])),
        Some((first, rest)) => found.split_first().is_some_and(|(line, others)| is_same(first, line) && are_same(rest, others)),
    }
}

/// Returns whether a text matches the shown text. It can match to the letter, by the format of a value that differs
/// between runs, or with such a value in place of each ellipsis.
fn is_same(shown: &str, found: &str) -> bool {
    match shown.split_once(ELLIPSIS) {
        None => shown == found || is_uuid(shown) && is_uuid(found) || is_same_now(shown, found),
        Some((before, after)) => found.strip_prefix(before).is_some_and(|rest| {
            let mut ends = (1..=rest.len()).filter(|end| rest.is_char_boundary(*end));
            ends.any(|end| is_generated(&rest[..end]) && is_same(after, &rest[end..]))
        }),
    }
}

/// Returns whether a text is a generated value: a reference, an instant, a token, a name or password of an API key, or
/// seconds since 1970.
fn is_generated(text: &str) -> bool {
    let is_secret = |length| text.len() == length && text.bytes().all(is_base64url);
    is_uuid(text)
        || seconds_of_day(text).is_some()
        || is_token(text)
        || text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        || [24, 43].into_iter().any(is_secret)
        || is_unix_seconds(text)
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.split('.').count() == 3 && text.split('.').all(|part| part.bytes().all(is_base64url))
}

fn is_unix_seconds(text: &str) -> bool {
    text.len() == 10 && text.starts_with('1') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether two texts are instants of the same day that are close to each other.
fn is_same_now(shown: &str, found: &str) -> bool {
    match (seconds_of_day(shown), seconds_of_day(found)) {
        (Some(first), Some(second)) => shown[..10] == found[..10] && first.abs_diff(second) <= SAME_NOW_SECONDS,
        _ => false,
    }
}

/// Returns the second within the day of an instant `yyyy-mm-ddThh:mm:ss[.…]Z`.
fn seconds_of_day(text: &str) -> Option<u32> {
    let form =
        |from: &str| from.bytes().map(|byte| if byte.is_ascii_digit() { '0' } else { char::from(byte) }).collect::<String>();
    let whole = text.strip_suffix('Z').filter(|text| text.is_ascii())?;
    let (whole, fraction) = whole.split_once('.').unwrap_or((whole, "0"));
    let is_form = form(whole) == "0000-00-00T00:00:00" && !fraction.is_empty() && form(fraction).bytes().all(|byte| byte == b'0');
    let part = |from: usize| whole.get(from..from + 2).and_then(|part| part.parse::<u32>().ok());
    is_form.then(|| Some(part(11)? * 3600 + part(14)? * 60 + part(17)?))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

    fn found(shown: &str, printed: &str) -> usize {
        compare("calls", printed, &[("page:1".to_owned(), "json".to_owned(), shown.to_owned())]).len()
    }

    #[test]
    fn amounts_fields_and_elements_are_compared_literally() {
        for (shown, printed, differences) in [
            (r#"{"a": 1.00}"#, r#"{"a":1.00}"#, 0),
            (r#"{"a": 1.00}"#, r#"{"a":1.0}"#, 1),
            (r#"{"a": 1}"#, r#"{"a":1,"b":2}"#, 1),
            (r#"{"a": 1, "…": "…"}"#, r#"{"b":2,"a":1}"#, 0),
            (r#"{"a": 1, "b": 2}"#, r#"{"a":1}"#, 1),
            ("[1]", "[1,2]", 1),
            (r#"[1, "…"]"#, "[1,2]", 0),
            (r#"{"a": null}"#, r#"{"a":1}"#, 1),
            ("2", "1 2", 0),
            ("1", "1 2", 1),
        ] {
            assert_eq!(found(shown, printed), differences, "{shown} {printed}");
        }
    }

    #[test]
    fn what_is_another_at_each_run_is_known_by_its_form_alone() {
        for (shown, printed, same) in [
            ("…", UUID, true),
            ("…", "some words", false),
            ("…", "", false),
            ("/api/documents/…", &format!("/api/documents/{UUID}"), true),
            ("…,…,7", &format!("{UUID},2026-11-20T11:25:44Z,7"), true),
            ("…,…,7", &format!("{UUID},2026-11-20T11:25:44Z,8"), false),
            ("2026-11-20T11:25:44Z", "2026-11-20T11:30:44.123Z", true),
            ("2026-11-20T11:25:44Z", "2026-11-20T12:30:44Z", false),
            ("2026-11-20", "2026-11-21", false),
            ("UB-INV-1", "UB-INV-2", false),
        ] {
            assert_eq!(is_same(shown, printed), same, "{shown} {printed}");
        }
    }

    #[test]
    fn a_refusal_that_a_page_does_not_show_is_wrong() {
        let refusal = r#"{"type":"urn:problem-type:usage-billing:bad_request"}"#;
        assert_eq!((compare("calls", refusal, &[]).len(), found("1", &format!("{refusal} 1")), found("1", "1")), (1, 1, 0));
    }

    #[test]
    fn text_is_compared_line_by_line() {
        for (shown, printed, same) in
            [("a\nb\n", "a\nb\n", true), ("", "a\n", false), ("a\n", "a\nb\n", false), ("…\nb\n", "a\na\nb\n", true)]
        {
            assert_eq!(text(shown, printed).is_none(), same, "{shown:?} {printed:?}");
        }
    }
}
