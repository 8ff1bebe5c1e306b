//! Helpers that build and evaluate mappings.

use billing_domain::format::{
    Expression, FormatError, FormatMapping, MappedColumns, MappedEvent, MappedRecord, Naming, ReportMapping,
};
use billing_domain::ports::EventMapper as _;
use billing_domain::usage::ReportValue;
use billing_formats::RhaiMapper;

pub(crate) fn expression(text: &str) -> Expression {
    Expression::parse(text).expect(text)
}

/// Returns a mapping that accepts any event.
pub(crate) fn constants() -> FormatMapping {
    FormatMapping {
        timestamp: expression(r#""2026-01-01T00:00:00Z""#),
        customer: Naming::Ref(expression(r#""acme""#)),
        usage_product: Naming::Ref(expression(r#""calls""#)),
        quantity: expression("1"),
        report_data: ReportMapping::None,
        currency: None,
        entity_ref: None,
        idempotency_key: None,
        skip_if: None,
        for_each: None,
    }
}

pub(crate) fn columns(listed: &[(&str, &str)]) -> ReportMapping {
    let listed = listed.iter().map(|(key, text)| ((*key).to_owned(), expression(text))).collect();
    ReportMapping::Columns(MappedColumns::new(listed).expect("valid keys"))
}

/// Maps a record of a format without `for_each`, which skips nothing.
pub(crate) fn map(mapping: FormatMapping, event: &str) -> Result<MappedEvent, FormatError> {
    match RhaiMapper::new().map(&mapping, event)? {
        MappedRecord::Event(mapped) => Ok(*mapped),
        other => panic!("one event expected: {other:?}"),
    }
}

/// Returns the value of an expression in a report column.
pub(crate) fn value(text: &str, event: &str) -> Result<ReportValue, FormatError> {
    let mapped = map(FormatMapping { report_data: columns(&[("x", text)]), ..constants() }, event)?;
    Ok(mapped.report_data.expect("a column").entries()[0].1.clone())
}

/// Returns the value of an expression as text: digits, the text itself, or a word.
pub(crate) fn shown(text: &str, event: &str) -> String {
    match value(text, event) {
        Ok(ReportValue::Number(shown) | ReportValue::Text(shown)) => shown,
        Ok(ReportValue::Bool(truth)) => truth.to_string(),
        Ok(ReportValue::Null) => "nothing".to_owned(),
        Err(error) => format!("error: {}", error.reason),
    }
}
