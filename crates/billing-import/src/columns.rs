//! Renaming of a file's columns, and fields with the same value on every line.

use std::collections::BTreeMap;

use billing_json::read;
use serde_json::Value;
use thiserror::Error;

/// The new names of columns. A column with the name null is left out; unlisted columns keep their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMap(BTreeMap<String, Option<String>>);

/// The reason why a text is not a [`ColumnMap`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ColumnMapError {
    /// The text is not an object of texts and nulls.
    #[error(
        "must be a JSON object whose names are columns of the file, and whose values are what they are called instead, or null to leave them out"
    )]
    NoObject,
    /// The name is not allowed.
    #[error("the column {0:?} must be called something without control characters")]
    Name(String),
}

/// Fields that every line of a file has with the same value, as if the file had a column for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstantFields(BTreeMap<String, String>);

/// The error for a text that is not [`ConstantFields`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be a JSON object of fields and their values on every line, which are strings that are not empty, or numbers")]
pub struct ConstantFieldsError;

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSample {
    /// The column's name in the file.
    pub name: String,
    /// The column's new name; `None` if the column is left out.
    pub called: Option<String>,
    /// Whether the column is report data in the default shape.
    pub is_report_data: bool,
    /// The column's values in the first lines.
    pub samples: Vec<String>,
}

impl ColumnMap {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// Returns [`ColumnMapError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ColumnMapError> {
        let Ok(Value::Object(members)) = read(text.as_bytes()) else { return Err(ColumnMapError::NoObject) };
        let called = |(name, called): (String, Value)| match called {
            Value::Null => Ok((name.trim().to_owned(), None)),
            Value::String(called) if called.trim().is_empty() || called.chars().any(char::is_control) => {
                Err(ColumnMapError::Name(name))
            }
            Value::String(called) => Ok((name.trim().to_owned(), Some(called.trim().to_owned()))),
            _ => Err(ColumnMapError::NoObject),
        };
        members.into_iter().map(called).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether every column keeps its name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the map as JSON in canonical form.
    pub fn as_json(&self) -> Value {
        self.0.iter().map(|(name, called)| (name.clone(), called.clone().map_or(Value::Null, Value::from))).collect()
    }

    /// Returns the new names of columns in order, or `None` for columns that are left out.
    ///
    /// # Errors
    /// Returns an error for an unknown column, and for two columns with the same new name.
    pub(crate) fn called(&self, names: &[String]) -> Result<Vec<Option<String>>, String> {
        if let Some(unknown) = self.0.keys().find(|name| !names.contains(name)) {
            return Err(format!("the file has no column {unknown:?}: its columns are {}", names.join(", ")));
        }
        let called: Vec<Option<String>> =
            names.iter().map(|name| self.0.get(name).cloned().unwrap_or_else(|| Some(name.clone()))).collect();
        let named = called.iter().enumerate().filter_map(|(index, name)| Some((index, name.as_ref()?)));
        for (index, name) in named.filter(|(_, name)| !name.is_empty()) {
            if let Some(first) = called[..index].iter().position(|other| other.as_ref() == Some(name)) {
                let (first, second) = (&names[first], &names[index]);
                return Err(format!(
                    "the columns {first:?} and {second:?} would both be {name:?}: call one otherwise or leave it out"
                ));
            }
        }
        Ok(called)
    }
}

impl ConstantFields {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// Returns [`ConstantFieldsError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ConstantFieldsError> {
        let Ok(Value::Object(members)) = read(text.as_bytes()) else { return Err(ConstantFieldsError) };
        let constant = |(field, value): (String, Value)| {
            let text = match value {
                Value::String(text) => text.trim().to_owned(),
                Value::Number(number) => number.to_string(),
                _ => return Err(ConstantFieldsError),
            };
            if field.trim().is_empty() || text.is_empty() {
                Err(ConstantFieldsError)
            } else {
                Ok((field.trim().to_owned(), text))
            }
        };
        members.into_iter().map(constant).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether no field has a constant value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields as JSON in canonical form.
    pub fn as_json(&self) -> Value {
        self.0.iter().map(|(field, value)| (field.clone(), Value::from(value.as_str()))).collect()
    }

    /// Returns the fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the values, in the order of the fields.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        self.0.values().map(String::as_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn columns_are_called_otherwise_left_out_or_keep_their_names() {
        let map = ColumnMap::parse(r#"{"Zeit, UTC": "timestamp", "note": null}"#).expect("a map");
        let called = map.called(&names(&["Zeit, UTC", "quantity", "note"])).expect("called");
        assert_eq!(called, [Some("timestamp".to_owned()), Some("quantity".to_owned()), None]);
        assert_eq!(ColumnMap::parse(&map.as_json().to_string()), Ok(map.clone()));
        assert!(map.called(&names(&["quantity", "note"])).expect_err("unknown").contains("\"Zeit, UTC\""));
        let twice = map.called(&names(&["Zeit, UTC", "note", "timestamp"])).expect_err("twice");
        assert!(twice.contains("\"Zeit, UTC\" and \"timestamp\""), "{twice}");
    }

    #[test]
    fn anything_but_an_object_of_texts_and_null_is_no_map() {
        for text in ["", "[]", r#"{"a": 1}"#, r#"{"a": "b", "a": "c"}"#, "a:b"] {
            assert_eq!(ColumnMap::parse(text), Err(ColumnMapError::NoObject), "{text}");
        }
        for text in [r#"{"a": ""}"#, r#"{"a": "b\n"}"#] {
            assert_eq!(ColumnMap::parse(text), Err(ColumnMapError::Name("a".to_owned())), "{text}");
        }
    }

    #[test]
    fn constant_fields_are_texts_and_numbers() {
        let fields = ConstantFields::parse(r#"{"quantity": 1.50, "customer_ref": " acme "}"#).expect("fields");
        assert_eq!(fields.cells().collect::<Vec<_>>(), [b"acme".as_slice(), b"1.50"]);
        assert_eq!(ConstantFields::parse(&fields.as_json().to_string()), Ok(fields));
        for text in ["", "[]", r#"{"a": null}"#, r#"{"a": " "}"#, r#"{" ": "b"}"#, r#"{"a": {}}"#] {
            assert_eq!(ConstantFields::parse(text), Err(ConstantFieldsError), "{text}");
        }
    }
}
