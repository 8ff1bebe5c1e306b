//! How a file of usage events is taken.

use billing_application::formats::NamedFormat;
use billing_domain::format::UsageFormat;
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use billing_import::{Delimiter, FileName, Reading};

use super::{Query, complete};
use crate::problem::Problem;

/// How a file is read and taken.
#[derive(Debug)]
pub(crate) struct ImportAsked {
    pub(crate) reading: Reading,
    pub(crate) format: NamedFormat,
    pub(crate) dry_run: bool,
}

impl Query {
    /// How a file is read and taken.
    pub(crate) fn import(&self) -> Result<ImportAsked, Problem> {
        let mut found = Violations::none();
        let dry_run = self.flag("dry_run", &mut found).unwrap_or(false);
        let name = self.parsed("name", FileName::parse, &mut found);
        let delimiter = self.parsed("delimiter", Delimiter::parse, &mut found);
        let format = self.parsed("format_name", OneLine::parse, &mut found);
        let format_name = format.unwrap_or_else(|| UsageFormat::built_in().name);
        let format = NamedFormat::Name(format_name.clone());
        let format_name = (!format.is_built_in()).then(|| format_name.as_str().to_owned());
        complete(found, Some(ImportAsked { reading: Reading { format_name, name, delimiter }, format, dry_run }))
    }

    fn parsed<T, E: ToString>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, E>, found: &mut Violations) -> Option<T> {
        parse(self.text(name, found)?).map_err(|reason| found.add(&[name], "invalid_format", reason.to_string())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> Query {
        Query::parse("/api/usage/import", raw).expect(raw)
    }

    #[test]
    fn an_import_is_of_the_default_shape_and_stored_unless_asked_for_otherwise() {
        let asked = query("").import().expect("right");
        assert!(!asked.dry_run && asked.format.is_built_in() && asked.reading.format_name.is_none());
        assert!(asked.reading.name.is_none() && asked.reading.delimiter.is_none());
        let asked = query("dry_run=true&name=a.csv&format_name=Gateway%20log&delimiter=%7C").import().expect("right");
        assert!(asked.dry_run && !asked.format.is_built_in() && asked.reading.name.is_some());
        assert_eq!(asked.reading.format_name.as_deref(), Some("Gateway log"));
        assert_eq!(asked.reading.delimiter, Delimiter::parse("|").ok());
        assert!(query("format_name=Default%20Format").import().expect("right").reading.format_name.is_none());
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let raw = format!("dry_run=yes&name={}&delimiter=ab&format_name=", "n".repeat(240));
        let problem = query(&raw).import().expect_err("refused");
        let expected = [
            ("/dry_run", "invalid_value"),
            ("/name", "invalid_format"),
            ("/delimiter", "invalid_format"),
            ("/format_name", "invalid_format"),
        ];
        assert_eq!(problem.fields(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}
