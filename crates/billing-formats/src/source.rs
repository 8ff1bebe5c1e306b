//! Static analysis of an expression's text: the event's fields and the variables that it names, and forms that the parser
//! accepts but must not.

use crate::failure::EvaluationError;
use crate::program::{EVENT, ITEM};

/// A decimal holds every number with this many digits; the parser would round a longer literal.
const MAX_LITERAL_DIGITS: usize = 28;

/// What an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedValues {
    /// The event's fields and their fields, with repetitions, each with the names of the enclosing fields before its own.
    pub(crate) fields: Vec<Vec<String>>,
    /// Whether the expression names the element of a list.
    pub(crate) has_item: bool,
}

/// Returns what an expression names.
pub(crate) fn named_values(source: &str) -> Result<NamedValues, EvaluationError> {
    let mut named = NamedValues::default();
    let mut rest = source;
    let mut after_point = false;
    while let Some(first) = rest.chars().next() {
        let token = token_len(rest)?;
        let (token, after) = rest.split_at(token);
        if token == EVENT && !after_point {
            let path = fields_after_event(after);
            if !path.is_empty() {
                named.fields.push(path);
            }
        }
        named.has_item |= token == ITEM && !after_point;
        if !first.is_whitespace() {
            after_point = first == '.';
        }
        rest = after;
    }
    Ok(named)
}

/// Returns the length of the first name, number, text or other character of a source.
fn token_len(source: &str) -> Result<usize, EvaluationError> {
    let first = source.chars().next().map_or(0, char::len_utf8);
    match source.as_bytes()[0] {
        b'"' => text_len(source).ok_or_else(|| EvaluationError::because("a text has no end")),
        b'`' | b'\'' => Err(EvaluationError::because("texts stand in double quotes")),
        b'/' if source[1..].starts_with(['/', '*']) => Err(EvaluationError::because("an expression has no comments")),
        b'0'..=b'9' => {
            let literal = run(source, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
            let digits = source[..literal].bytes().filter(u8::is_ascii_digit).count();
            if digits > MAX_LITERAL_DIGITS {
                return Err(EvaluationError::because(format!("a number must have at most {MAX_LITERAL_DIGITS} digits")));
            }
            Ok(literal)
        }
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => Ok(run(source, |c| c.is_alphanumeric() || c == '_')),
        _ => Ok(first),
    }
}

fn run(source: &str, belongs: impl Fn(char) -> bool) -> usize {
    source.find(|c| !belongs(c)).unwrap_or(source.len())
}

/// Returns the length of a text literal with its quotes.
fn text_len(source: &str) -> Option<usize> {
    let mut escaped = false;
    let end = source[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some(end + 2)
}

/// Returns the names of the fields in `event.field`, `event["field"]` and, for a function's first arguments, `event, "field"`, from
/// the outside in. The result of a function that got a field counts as that field: `get(object(get(event, "a")), "b")`.
fn fields_after_event(mut after: &str) -> Vec<String> {
    let mut path = Vec::new();
    while let Some((name, rest)) = field_after(after) {
        path.push(name.to_owned());
        // The closing brackets of an index and of calls.
        after = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ']' | ')'));
    }
    path
}

/// Returns the first field after an object, and the text after it.
fn field_after(after: &str) -> Option<(&str, &str)> {
    let after = after.trim_start();
    let after = after.strip_prefix('?').unwrap_or(after);
    if let Some(name) = after.strip_prefix('.') {
        let name = name.trim_start();
        return Some(name.split_at(run(name, |c| c.is_alphanumeric() || c == '_')));
    }
    let text = after.strip_prefix(['[', ','])?.trim_start();
    let length = if text.starts_with('"') { text_len(text)? } else { return None };
    Some((&text[1..length - 1], &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_an_expression_names_are_found() {
        let rows: [(&str, &[&str]); 13] = [
            ("event.a + event . b", &["a", "b"]),
            (r#"event["x y"] + event[ "z" ]"#, &["x y", "z"]),
            (r#"get(event, "a") ?? event?.b"#, &["a", "b"]),
            ("event.a.event.c", &["a/event/c"]),
            (r#"event.a["b c"].d + event["a"] . e"#, &["a/b c/d", "a/e"]),
            (r#"get(object(get(event, "a")), "b") ?? get(event.a, "c")"#, &["a/b", "a/c"]),
            (r#"round(event.a, 2) + min(event.b, event.c)"#, &["a", "b", "c"]),
            (r#"lookup(#{x: 1}, event.a, 1)"#, &["a"]),
            (r#""event.no" + event.yes"#, &["yes"]),
            (r#""\"event.no" + event.yes"#, &["yes"]),
            ("my_event.a + events.b + event_2.c", &[]),
            ("event", &[]),
            ("1.5 + event.größe", &["größe"]),
        ];
        for (source, expected) in rows {
            let paths: Vec<String> = named_values(source).expect(source).fields.iter().map(|path| path.join("/")).collect();
            assert_eq!(paths, expected, "{source}");
        }
    }

    #[test]
    fn an_expression_names_the_element_as_a_variable_only() {
        for (source, expected) in [
            ("item", true),
            ("event.usage[item]", true),
            ("item.amount > 0", true),
            ("event.item", false),
            ("event . item", false),
            (r#"event["item"]"#, false),
            ("items + my_item", false),
        ] {
            assert_eq!(named_values(source).expect(source).has_item, expected, "{source}");
        }
    }

    #[test]
    fn forms_that_would_be_misread_are_refused() {
        let long = "1".repeat(29);
        for bad in ["'a'", "`a${event.b}`", "1 // two", "1 /* two */", "\"open", &long, &format!("0.{long}")] {
            assert!(named_values(bad).is_err(), "{bad}");
        }
        assert!(named_values(r#""it's // `fine`""#).is_ok());
        assert!(named_values(&"1".repeat(28)).is_ok());
    }
}
