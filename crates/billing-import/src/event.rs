//! The content of a line: an event for a usage format, the recorded event that it copies, and the key for detecting repeats.

use std::borrow::Cow;
use std::collections::BTreeMap;

use billing_domain::event_input::{FileEvent, FileEventKey};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::report::key_of;
use billing_domain::violation::Violations;
use billing_json::{KEY_MEMBER, nearest};
use serde_json::{Map, Number, Value};

use crate::{ConstantFields, ReadOptions};

/// The field of a usage report that contains the event's reference.
const EVENT_REF: &str = "event_ref";
const CUSTOMER_REF: &str = "customer_ref";
const QUANTITY: &str = "quantity";
const REPORT_DATA: &str = "additional_report_data";
/// The fields of the default shape.
const FIELDS: [&str; 10] = [
    KEY_MEMBER,
    EVENT_REF,
    "timestamp",
    CUSTOMER_REF,
    "customer_name",
    "usage_product_ref",
    "usage_product_name",
    QUANTITY,
    REPORT_DATA,
    "validations",
];
/// The fields of which a file in the default shape must have a column: one of each group.
const REQUIRED: [&[&str]; 4] =
    [&["timestamp"], &[CUSTOMER_REF, "customer_name"], &["usage_product_ref", "usage_product_name"], &[QUANTITY]];
/// The maximum number of columns that an error lists.
const MAX_LISTED_COLUMNS: usize = 50;

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
    Field,
    ReportData(String),
    LeftOut,
    /// A column without a name, which must be empty.
    Unnamed,
}

impl Columns {
    /// Creates the columns from their new names, which are distinct. `None` is a column to leave out, and the empty text one
    /// without a name. In the default shape, a name that equals a field but for case, spaces and hyphens is that field, unless
    /// another column has the exact name.
    ///
    /// # Errors
    /// Returns an error if two columns have the same field or the same report data key in the default shape.
    pub(crate) fn new(names: Vec<Option<String>>, is_default_shape: bool) -> Result<Self, String> {
        let has_exact = FIELDS.map(|field| names.iter().flatten().any(|name| name == field));
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let mut columns = Vec::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let (name, target) = match name {
                None => (String::new(), Target::LeftOut),
                Some(name) if name.is_empty() => (name, Target::Unnamed),
                Some(name) => target_of(name, has_exact, is_default_shape),
            };
            let meaning = match &target {
                Target::Field => Some(name.clone()),
                Target::ReportData(key) => Some(format!("{REPORT_DATA}.{key}")),
                Target::LeftOut | Target::Unnamed => None,
            };
            if let Some(meaning) = meaning
                && let Some(first) = taken.insert(meaning.clone(), index + 1)
                && is_default_shape
            {
                return Err(format!("columns {first} and {} are both {meaning}: rename one of them", index + 1));
            }
            columns.push((name, target));
        }
        Ok(Self(columns))
    }

    /// Adds the fields that have the same value on every line, after the columns of the file.
    ///
    /// # Errors
    /// Returns an error if a column of the file has the same field.
    pub(crate) fn add_constants(&mut self, constants: &ConstantFields, is_default_shape: bool) -> Result<(), String> {
        for field in constants.fields() {
            let (name, target) = target_of(field.to_owned(), FIELDS.map(|_| false), is_default_shape);
            let is_same = |(other, of_other): &&(String, Target)| match (of_other, &target) {
                (Target::ReportData(key), Target::ReportData(own)) if is_default_shape => key == own,
                _ => *other == name,
            };
            if self.0.iter().any(|column| is_same(&column)) {
                return Err(format!(
                    "{field} has a constant value, and a column of the file is also {name}: leave the column out with null in columns"
                ));
            }
            self.0.push((name, target));
        }
        Ok(())
    }

    /// Requires a column for each fact of an event in the default shape.
    ///
    /// # Errors
    /// Returns an error with the missing fields, the columns of the file, and the nearest of them.
    pub(crate) fn require_facts(&self, names: &[String]) -> Result<(), String> {
        let has = |field: &&str| self.0.iter().any(|(name, target)| *target == Target::Field && name == field);
        let free: Vec<&str> = names
            .iter()
            .zip(&self.0)
            .filter(|(_, (_, target))| *target != Target::Field)
            .map(|(name, _)| name.as_str())
            .collect();
        let missing = |fields: &&[&str]| {
            let near = fields.iter().find_map(|field| nearest(field, &free));
            let near = near.map_or_else(String::new, |near| format!(" (the nearest is {near:?})"));
            format!("{}{near}", fields.join(" or "))
        };
        let missing: Vec<String> = REQUIRED.iter().filter(|fields| !fields.iter().any(has)).map(missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let listed = names.iter().filter(|name| !name.is_empty()).take(MAX_LISTED_COLUMNS);
        let listed = listed.map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(format!(
            "the file has no column {}: its columns are {listed}. Rename columns, or name a usage format",
            missing.join(", and no column ")
        ))
    }

    /// Returns each column's new name, unless it is left out, and whether it is report data in the default shape.
    pub(crate) fn called(&self) -> impl Iterator<Item = (Option<&str>, bool)> {
        self.0.iter().map(|(name, target)| {
            let is_read = !matches!(target, Target::LeftOut | Target::Unnamed);
            (is_read.then_some(name.as_str()), matches!(target, Target::ReportData(_)))
        })
    }
}

/// Returns the name and the target of a column. `has_exact` states for each field whether a column has exactly its name.
fn target_of(name: String, has_exact: [bool; FIELDS.len()], is_default_shape: bool) -> (String, Target) {
    let usual = name.to_lowercase().replace([' ', '-'], "_");
    let is_meant = |(field, has_exact): &(&str, bool)| *field == name || !has_exact && *field == usual;
    match FIELDS.into_iter().zip(has_exact).find(is_meant) {
        Some((field, _)) if is_default_shape => (field.to_owned(), Target::Field),
        Some(_) => (name, Target::Field),
        None => {
            let key = key_of(&name).to_owned();
            (name, Target::ReportData(key))
        }
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
    for (index, ((column, target), cell)) in columns.0.iter().zip(cells).enumerate() {
        match target {
            Target::LeftOut => continue,
            Target::Unnamed if cell.is_empty() => continue,
            Target::Unnamed => {
                let detail = format!("column {} has no name in the line of column names, and a cell on this line", index + 1);
                return Err(refused("unnamed_column", detail));
            }
            Target::Field | Target::ReportData(_) => {}
        }
        let text = std::str::from_utf8(cell)
            .map_err(|error| refused("invalid_format", format!("the cell of column {column:?} is not UTF-8: {error}")))?;
        if text.is_empty() {
            flat.insert(column.clone(), Value::Null);
            continue;
        }
        let text = if column == QUANTITY { reading.decimal.pointed(text)? } else { Cow::Borrowed(text) };
        flat.insert(column.clone(), text.as_ref().into());
        match target {
            Target::Field if column == QUANTITY => {
                fields.insert(column.clone(), number_or_text(&text));
            }
            Target::Field
                if column == REPORT_DATA
                    && let Ok(Value::Object(members)) = billing_json::read(text.as_bytes()) =>
            {
                data.extend(members);
            }
            Target::Field => {
                fields.insert(column.clone(), text.as_ref().into());
            }
            Target::ReportData(key) => {
                data.insert(key.clone(), text.as_ref().into());
            }
            Target::LeftOut | Target::Unnamed => {}
        }
    }
    if reading.format_name.is_some() {
        let flat = Value::Object(flat);
        return of_value(&flat, flat.to_string(), line, reading);
    }
    if !data.is_empty() && !fields.contains_key(REPORT_DATA) {
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
    Ok(FileEvent { line, event: text, shaped: None, event_ref, known_by })
}

fn number_or_text(text: &str) -> Value {
    text.parse::<Number>().map_or_else(|_| text.into(), Value::Number)
}
