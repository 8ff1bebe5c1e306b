//! Input elements shared by filters and forms.

use maud::{Markup, html};

use crate::parts::words;

/// The type of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Text, a number or a reference to an existing object.
    Text,
    /// Several texts, one on each line.
    Lines,
    /// The reference of a new object.
    NewReference,
    /// A date.
    Day,
    /// One of several words.
    Choice(Vec<String>),
    /// One of several values with their names.
    Named(Vec<(String, String)>),
    /// A Boolean.
    Flag,
}

impl InputKind {
    /// Creates the choice among values with their names.
    pub fn named(choices: &[(&str, &str)]) -> Self {
        Self::Named(choices.iter().map(|(value, name)| ((*value).to_owned(), (*name).to_owned())).collect())
    }
}

/// Fields that refer to objects, and the parts of the console with these objects.
const REFERENCES: &[(&str, &str)] = &[
    ("customer_ref", "customers"),
    ("contract_ref", "contracts"),
    ("document_ref", "documents"),
    ("product_pricing_ref", "pricings"),
    ("usage_product_ref", "usage-products"),
    ("entity_ref", "entities"),
    ("billing_account_id", "bank-accounts"),
];

/// Fields with a number, for which a phone shows a keyboard with digits.
const NUMBERS: &[&str] = &[
    "amount",
    "discount",
    "fixed_amount",
    "flat_amount",
    "included_quantity",
    "max",
    "maximum_amount",
    "minimum_amount",
    "minimum_fee",
    "package_price",
    "package_size",
    "prepaid_quantity",
    "quantity",
    "rate",
    "tax",
    "unit_price",
    "up_to",
];

/// Fields with a name of a new object, from which its reference is made. The first filled one counts.
pub const NAME_FIELDS: [&str; 4] = ["name", "legal_name", "bank_name", "account_name"];

/// Returns the part of the console with the objects that a field refers to.
fn part_of(name: &str) -> Option<&'static str> {
    let own = own(name);
    REFERENCES.iter().find(|(field, _)| *field == own).map(|(_, part)| *part)
}

/// Returns the last segment of a field's full name.
pub(crate) fn own(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(crate) struct Input<'i> {
    pub(crate) name: &'i str,
    pub(crate) kind: &'i InputKind,
    pub(crate) value: &'i str,
    /// Label of the empty choice.
    pub(crate) nothing: &'static str,
    pub(crate) max_length: u32,
    pub(crate) required: bool,
    /// Id for a label outside the input.
    pub(crate) id: Option<&'i str>,
    /// Id of the description.
    pub(crate) told_by: Option<&'i str>,
    /// Id of the suggestion list.
    pub(crate) list: Option<&'i str>,
    pub(crate) is_wrong: bool,
}

impl Input<'_> {
    pub(crate) fn markup(&self) -> Markup {
        let Self { name, value, max_length, required, id, told_by, list, .. } = *self;
        let part = part_of(name).filter(|_| *self.kind == InputKind::Text);
        let kind = if *self.kind == InputKind::Day { "date" } else { "text" };
        // The API validates numbers and addresses, so that errors have the same form everywhere.
        match self.kind {
            InputKind::Choice(choices) => self.one_of(choices.iter().map(|choice| (choice.as_str(), words(choice)))),
            InputKind::Named(choices) => self.one_of(choices.iter().map(|(choice, name)| (choice.as_str(), name.clone()))),
            InputKind::Flag => self.one_of([("true", "yes".to_owned()), ("false", "no".to_owned())]),
            InputKind::Lines => html! {
                textarea id=[id] name=(name) rows="2" required[required] aria-describedby=[told_by] aria-invalid=[self.invalid()] { (value) }
            },
            InputKind::Text | InputKind::NewReference | InputKind::Day => html! {
                input id=[id] name=(name) value=(value) type=(kind) maxlength=(max_length) required[required] list=[list]
                    inputmode=[NUMBERS.contains(&own(name)).then_some("decimal")] data-pick=[part]
                    data-made-from=[(*self.kind == InputKind::NewReference).then(|| NAME_FIELDS.join(" "))]
                    aria-describedby=[told_by] aria-invalid=[self.invalid()];
            },
        }
    }

    fn one_of<'c>(&self, choices: impl IntoIterator<Item = (&'c str, String)>) -> Markup {
        let Self { name, value, nothing, id, told_by, required, .. } = *self;
        html! {
            select id=[id] name=(name) required[required] aria-describedby=[told_by] aria-invalid=[self.invalid()] {
                option value="" { (nothing) }
                @for (choice, shown) in choices { option value=(choice) selected[choice == value] { (shown) } }
            }
        }
    }

    fn invalid(&self) -> Option<&'static str> {
        self.is_wrong.then_some("true")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, kind: &InputKind, value: &str) -> String {
        let input = Input {
            name,
            kind,
            value,
            nothing: "–",
            max_length: 9,
            required: false,
            id: None,
            told_by: None,
            list: None,
            is_wrong: false,
        };
        input.markup().into_string()
    }

    #[test]
    fn a_reference_suggests_the_objects_of_its_part_and_a_number_has_digits() {
        let page = input("line_items/0/usage_product_ref", &InputKind::Text, "calls");
        assert!(page.contains("data-pick=\"usage-products\"") && !page.contains("inputmode"), "{page}");
        let page = input("customer_ref", &InputKind::NewReference, "");
        assert!(!page.contains("data-pick") && page.contains("data-made-from=\"name legal_name"), "{page}");
        let page = input("products/0/discount", &InputKind::Text, "5");
        assert!(page.contains("inputmode=\"decimal\"") && !page.contains("data-pick"), "{page}");
    }

    #[test]
    fn a_choice_shows_names_and_submits_values() {
        let choices = vec![("a".to_owned(), "<Acme>".to_owned()), ("b".to_owned(), "Bee".to_owned())];
        let page = input("customer_ref", &InputKind::Named(choices), "b");
        assert!(page.contains("<option value=\"b\" selected>Bee</option>") && page.contains("&lt;Acme&gt;"), "{page}");
    }
}
