//! The content of a line: an event for a usage format, the recorded event that it copies, and the key for detecting repeats.

use std::collections::BTreeMap;

use billing_domain::event_input::{FileEvent, FileEventKey};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::report::key_of;
use billing_domain::violation::Violations;
use billing_json::KEY_MEMBER;
use serde_json::{Map, Number, Value};

use crate::ReadOptions;

/// The field of a usage report that contains the event's reference.
const EVENT_REF: &str = "event_ref";
const CUSTOMER_REF: &str = "customer_ref";
const QUANTITY: &str = "quantity";
const REPORT_DATA: &str = "additional_report_data";
/// The fields of the default shape. The last two cannot be texts, so the default format rejects them in CSV.
const FIELDS: [&str; 8] =
    ["timestamp", CUSTOMER_REF, "customer_name", "usage_product_ref", "usage_product_name", QUANTITY, REPORT_DATA, "validations"];

/// Returns an error that concerns the whole line.
pub(crate) fn refused(code: &'static str, detail: impl Into<String>) -> Violations {
    Violations::one(&[], code, detail)
}

/// The columns of a file, and the targets of their cells.
#[derive(Debug)]
pub(crate) struct Columns(Vec<(String, Target)>);

/// The target of a cell in the default shape.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Key,
    EventRef,
    Field,
    ReportData(String),
    LeftOut,
}

impl Columns {
    /// Creates the columns from their distinct new names; columns without a name are left out.
    ///
    /// # Errors
    /// Returns an error if two columns have the same report data key in the default shape.
    pub(crate) fn new(names: Vec<Option<String>>, is_default_shape: bool) -> Result<Self, String> {
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        let mut columns = Vec::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let Some(name) = name else {
                columns.push((String::new(), Target::LeftOut));
                continue;
            };
            let target = match name.as_str() {
                KEY_MEMBER => Target::Key,
                EVENT_REF => Target::EventRef,
                field if FIELDS.contains(&field) => Target::Field,
                other => Target::ReportData(key_of(other).to_owned()),
            };
            if let Target::ReportData(key) = &target
                && let Some(first) = keys.insert(key.clone(), index + 1)
                && is_default_shape
            {
                return Err(format!("columns {first} and {} both name the report data {key:?}", index + 1));
            }
            columns.push((name, target));
        }
        Ok(Self(columns))
    }

    /// Returns each column's new name, unless it is left out, and whether it is report data in the default shape.
    pub(crate) fn called(&self) -> impl Iterator<Item = (Option<&str>, bool)> {
        self.0.iter().map(|(name, target)| {
            ((*target != Target::LeftOut).then_some(name.as_str()), matches!(target, Target::ReportData(_)))
        })
    }
}

/// Returns the event of a CSV record. In the default shape, unknown columns are report data and empty cells are
/// ignored.
pub(crate) fn of_record<'c>(
    columns: &Columns,
    cells: impl Iterator<Item = &'c [u8]>,
    line: u64,
    reading: &ReadOptions,
) -> Result<FileEvent, Violations> {
    let (mut flat, mut fields, mut data) = (Map::new(), Map::new(), Map::new());
    for ((column, target), cell) in columns.0.iter().zip(cells).filter(|((_, target), _)| *target != Target::LeftOut) {
        let text = std::str::from_utf8(cell)
            .map_err(|error| refused("invalid_format", format!("the cell of column {column:?} is not UTF-8: {error}")))?;
        if text.is_empty() {
            flat.insert(column.clone(), Value::Null);
            continue;
        }
        flat.insert(column.clone(), text.into());
        match target {
            Target::Field if column == QUANTITY => fields.insert(column.clone(), number_or_text(text)),
            Target::Key | Target::EventRef | Target::Field => fields.insert(column.clone(), text.into()),
            Target::ReportData(key) => data.insert(key.clone(), text.into()),
            Target::LeftOut => None,
        };
    }
    if reading.format_name.is_some() {
        let flat = Value::Object(flat);
        return of_value(&flat, flat.to_string(), line, reading);
    }
    if !data.is_empty() {
        fields.insert(REPORT_DATA.to_owned(), data.into());
    }
    let shaped = Value::Object(fields);
    of_value(&shaped, shaped.to_string(), line, reading)
}

/// Returns the event in a JSON value; `text` is its source.
pub(crate) fn of_value(event: &Value, text: String, line: u64, reading: &ReadOptions) -> Result<FileEvent, Violations> {
    let Value::Object(members) = event else { return Err(refused("wrong_type", "the line must be a JSON object")) };
    let member = |name: &'static str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(name),
    };
    let event_ref = match (member(EVENT_REF), &reading.format_name) {
        (Ok(event_ref), _) => event_ref.map(str::to_owned),
        // The field belongs to the custom format.
        (Err(_), Some(_)) => None,
        (Err(name), None) => return Err(Violations::one(&[name], "wrong_type", "must be a string")),
    };
    let key = member(KEY_MEMBER).map_err(|name| Violations::one(&[name], "wrong_type", "must be a string"))?;
    let known_by = match (key, &reading.name) {
        (Some(key), _) => {
            let key = IdempotencyKey::parse(key);
            let key = key.map_err(|reason| Violations::one(&[KEY_MEMBER], "invalid_format", reason.to_string()))?;
            Some(FileEventKey::Own(key))
        }
        (None, Some(name)) => {
            // The name was validated with the largest line number, so a failure is unexpected.
            let key = name.key(line).map_err(|reason| refused("invalid_format", format!("the file's name {reason}")))?;
            Some(FileEventKey::Line(key))
        }
        (None, None) => None,
    };
    Ok(FileEvent { line, event: text, event_ref, known_by })
}

fn number_or_text(text: &str) -> Value {
    text.parse::<Number>().map_or_else(|_| text.into(), Value::Number)
}
