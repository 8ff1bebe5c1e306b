//! Values of report data in JSON.

use billing_domain::usage::ReportValue;
use serde_json::Value;

/// Returns a value as report data keeps it. A list or an object becomes its JSON text without white space.
pub fn report_value(value: &Value) -> ReportValue {
    match value {
        Value::Null => ReportValue::Null,
        Value::Bool(value) => ReportValue::Bool(*value),
        Value::Number(number) => ReportValue::Number(number.as_str().to_owned()),
        Value::String(text) => ReportValue::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => ReportValue::Text(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn a_value_that_contains_values_becomes_its_text() {
        let text = |text: &str| ReportValue::Text(text.to_owned());
        for (sent, kept) in [
            ("null", ReportValue::Null),
            ("true", ReportValue::Bool(true)),
            ("1.50", ReportValue::Number("1.50".to_owned())),
            (r#""a\nb""#, text("a\nb")),
            (r#"[ "x", 1.50, null ]"#, text(r#"["x",1.50,null]"#)),
            (r#"{ "b": {"a": [] }, "a": "\u0000" }"#, text(r#"{"b":{"a":[]},"a":"\u0000"}"#)),
        ] {
            assert_eq!(report_value(&read(sent.as_bytes()).expect(sent)), kept, "{sent}");
        }
    }
}
