//! Options of imports, and filters of import lists.

use billing_application::formats::NamedFormat;
use billing_domain::calendar::Timestamp;
use billing_domain::event_input::OnConflict;
use billing_domain::format::BuiltInFormat;
use billing_domain::ports::ImportFilter;
use billing_domain::text::OneLine;
use billing_import::{ColumnMap, ConstantFields, DecimalSeparator, Delimiter, FileName, ReadOptions};

use super::lists::NEWEST_FIRST;
use super::updates::UpdateParams;
use super::usage::ConflictParams;
use super::{AnyText, DEFAULT_PAGE_SIZE, Paged, digits, paged};
use crate::dto::declare::{params, wire};
use crate::dto::enums::ListOrderWord;
use crate::dto::schemas::{integer, text};

/// Largest line number that can be requested. Files over HTTP have fewer lines.
const MAX_LINE: u32 = i32::MAX.unsigned_abs();

params! {
    /// Options of an import.
    ImportParams {
        /// File name. Together with the line number it identifies events without `idempotency_key`, and is required if
        /// there are such events.
        name: Option<FileName>,
        /// Whether to preview the result and store nothing. Default: false.
        dry_run: bool = false,
        /// Usage format that converts the lines. Default: the built-in format.
        format_name: Option<OneLine>,
        /// CSV delimiter. Default: the one of a first line `sep=;`, else detected from comma, semicolon and tab.
        delimiter: Option<Delimiter>,
        /// Decimal separator in `quantity` cells of CSV: `.` or `,`. Default: `.`.
        decimal: DecimalSeparator = DecimalSeparator::Point,
        /// New names of CSV columns, as a JSON object: `{"Zeit": "timestamp", "Kunde": "customer_ref"}`. Columns renamed
        /// to `null` are ignored; other columns retain their names.
        columns: ColumnMap = ColumnMap::default(),
        /// Fields that every line of CSV has with the same value, as a JSON object: `{"usage_product_ref": "api-calls"}`.
        constants: ConstantFields = ConstantFields::default(),
        /// First line to process, to continue an import that stopped. Lines count from 1, including the header line; in a
        /// JSON array, elements count. Earlier lines are not counted in the result. Default: 1.
        from_line: LineNumber = 1,
        @flat conflicts: ConflictParams,
    }
}

params! {
    /// Filters and page of imports.
    ImportListParams {
        /// Earliest start time, RFC 3339 with an offset.
        from: Option<Timestamp>,
        /// Latest start time, exclusive.
        to: Option<Timestamp>,
        /// File name.
        name: Option<AnyText>,
        /// Sort order. Default: `-created`, by start time, newest first.
        order: ListOrderWord = NEWEST_FIRST,
        @flat updates: UpdateParams,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
}

impl ImportListParams {
    /// Returns the filter.
    pub fn filter(&self) -> ImportFilter {
        ImportFilter { from: self.from, to: self.to, name: self.name.clone(), updates: self.updates.filter() }
    }
}

/// Options of an import.
#[derive(Debug)]
pub struct ImportOptions {
    pub reading: ReadOptions,
    pub format: NamedFormat,
    pub dry_run: bool,
    pub on_conflict: OnConflict,
    pub from_line: u64,
}

impl ImportParams {
    /// Returns the options.
    pub fn asked(self) -> ImportOptions {
        let format_name = self.format_name.unwrap_or_else(|| BuiltInFormat::Default.name());
        let format = NamedFormat::Name(format_name.clone());
        let format_name = (!format.is_default()).then(|| format_name.as_str().to_owned());
        let Self { name, delimiter, columns, constants, decimal, .. } = self;
        let reading = ReadOptions { format_name, name, delimiter, columns, constants, decimal };
        let on_conflict = self.conflicts.on_conflict;
        ImportOptions { reading, format, dry_run: self.dry_run, on_conflict, from_line: self.from_line.into() }
    }
}

/// The number of a line or of an element.
pub struct LineNumber;

wire! {
    LineNumber of u32: |node| digits(node, &(1..=MAX_LINE), &format!("must be a whole number from 1 to {MAX_LINE}")),
        |_| integer(1, MAX_LINE);
    FileName: |node| node.parsed(FileName::parse),
        |_| text().min_length(Some(1)).max_length(Some(FileName::MAX_CHARS)).examples(["gateway-2026-01.csv"]);
    ColumnMap: |node| node.parsed(ColumnMap::parse), |_| text().examples([r#"{"Zeit": "timestamp", "note": null}"#]);
    ConstantFields: |node| node.parsed(ConstantFields::parse), |_| text().examples([r#"{"usage_product_ref": "api-calls"}"#]);
    Delimiter: |node| node.parsed(Delimiter::parse), |_| text().min_length(Some(1)).max_length(Some(1));
    DecimalSeparator: |node| node.parsed(DecimalSeparator::parse), |_| text().enum_values(Some([".", ","]));
}

paged! {
    ;
    ordered ImportListParams,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn query(raw: &str) -> Query {
        Query::of("/api/usage/import", raw).expect(raw)
    }

    #[test]
    fn an_import_is_of_the_default_shape_and_stored_unless_asked_for_otherwise() {
        let asked = query("").read::<ImportParams>().map(ImportParams::asked).expect("right");
        assert!(!asked.dry_run && asked.format.is_default() && asked.reading.format_name.is_none());
        assert!(asked.reading.name.is_none() && asked.reading.delimiter.is_none());
        assert_eq!(asked.from_line, 1);
        let asked = query("dry_run=true&name=a.csv&format_name=Gateway%20log&delimiter=%7C&from_line=1002")
            .read::<ImportParams>()
            .map(ImportParams::asked)
            .expect("right");
        assert!(asked.dry_run && !asked.format.is_default() && asked.reading.name.is_some());
        assert_eq!(asked.reading.format_name.as_deref(), Some("Gateway log"));
        assert_eq!((asked.reading.delimiter, asked.from_line), (Delimiter::parse("|").ok(), 1002));
        assert!(
            query("format_name=Default%20Format")
                .read::<ImportParams>()
                .map(ImportParams::asked)
                .expect("right")
                .reading
                .format_name
                .is_none()
        );
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let raw = format!("dry_run=yes&name={}&delimiter=ab&format_name=&from_line=0&decimal=;", "n".repeat(240));
        let problem = query(&raw).read::<ImportParams>().map(ImportParams::asked).expect_err("refused");
        let expected = [
            ("/dry_run", "invalid_value"),
            ("/name", "invalid_format"),
            ("/delimiter", "invalid_format"),
            ("/format_name", "too_short"),
            ("/from_line", "out_of_range"),
            ("/decimal", "invalid_format"),
        ];
        assert_eq!(problem.fields(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}
