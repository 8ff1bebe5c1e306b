//! An array of objects, one to a line, numbers with their exact digits. A key that an event doesn't have is left out.

use std::io::{self, BufWriter, Write};

use billing_domain::report::{FIXED_COLUMNS, ReportColumns, ReportedEvent};
use billing_domain::usage::ReportValue;

use crate::values_by_column;

/// Bytes that are handed on together.
const BUFFER_BYTES: usize = 8 * 1024;

pub(crate) struct JsonTable<W: Write> {
    columns: ReportColumns,
    out: BufWriter<W>,
    rows: u64,
}

impl<W: Write> JsonTable<W> {
    pub(crate) fn start(columns: ReportColumns, out: W) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        out.write_all(b"[")?;
        Ok(Self { columns, out, rows: 0 })
    }

    pub(crate) fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        let values = values_by_column(&self.columns, event)?;
        self.out.write_all(if self.rows == 0 { b"\n{" } else { b",\n{" })?;
        self.rows += 1;
        let quantity = event.quantity.as_decimal().to_string();
        let texts = [
            (event.event_ref.to_string(), true),
            (event.occurred_at.to_string(), true),
            (event.customer_ref.as_str().to_owned(), true),
            (event.customer_name.as_str().to_owned(), true),
            (event.usage_product_ref.as_str().to_owned(), true),
            (event.usage_product_name.as_str().to_owned(), true),
            (quantity, false),
            (event.document_numbers.to_string(), true),
        ];
        for (place, (heading, (text, is_text))) in FIXED_COLUMNS.into_iter().zip(&texts).enumerate() {
            if place > 0 {
                self.out.write_all(b",")?;
            }
            self.key(heading)?;
            if *is_text { self.text(text)? } else { self.out.write_all(text.as_bytes())? }
        }
        for (place, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                self.out.write_all(b",")?;
                serde_json::to_writer(&mut self.out, &self.columns.key_headings()[place])?;
                self.out.write_all(b":")?;
                self.value(value)?;
            }
        }
        self.out.write_all(b"}")
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn key(&mut self, key: &str) -> io::Result<()> {
        self.text(key)?;
        self.out.write_all(b":")
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.out, text)?)
    }

    fn value(&mut self, value: &ReportValue) -> io::Result<()> {
        match value {
            ReportValue::Null => self.out.write_all(b"null"),
            ReportValue::Bool(true) => self.out.write_all(b"true"),
            ReportValue::Bool(false) => self.out.write_all(b"false"),
            ReportValue::Number(number) => self.out.write_all(number.as_bytes()),
            ReportValue::Text(text) => self.text(text),
        }
    }
}
