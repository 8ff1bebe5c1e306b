//! Forms with errors beside their fields. Buttons add and remove list elements.

use maud::{Markup, html};

use crate::input::{Input, InputKind};
use crate::parts::words;

/// Form field of the buttons that resize lists.
pub const RESIZE: &str = "resize";
/// Number of fields of a group that are always visible.
const AT_ONCE: usize = 6;

/// A form of the console.
#[derive(Clone, Debug)]
pub struct Form {
    /// Page title.
    pub title: String,
    /// Additional description, if the effect is not obvious.
    pub tells: &'static str,
    /// Target of the form.
    pub action: String,
    /// Button label.
    pub button: &'static str,
    /// Idempotency key, which identifies repeats.
    pub key: String,
    /// The form's fields and groups.
    pub items: Vec<Item>,
    /// Suggestions for fields.
    pub suggestions: Vec<Suggestions>,
    /// Errors that belong to no field.
    pub others: Vec<String>,
}

/// Suggested values for fields with a name.
#[derive(Clone, Debug)]
pub struct Suggestions {
    /// Last segment of the fields' names.
    pub field: &'static str,
    /// Values and their labels.
    pub choices: Vec<(String, String)>,
}

/// An element of a form.
#[derive(Clone, Debug)]
pub enum Item {
    /// A single field.
    Field(Field),
    /// The fields of an object.
    Group(Group),
    /// A list of objects.
    List(List),
}

/// The fields of an object within a form.
#[derive(Clone, Debug)]
pub struct Group {
    /// Full name, with slashes between the segments.
    pub name: String,
    /// Description.
    pub meaning: String,
    /// The group's fields and groups.
    pub items: Vec<Item>,
    /// Index of an existing list element.
    pub was: Option<String>,
}

/// A list of objects within a form.
#[derive(Clone, Debug)]
pub struct List {
    /// Full name, with slashes between the segments.
    pub name: String,
    /// Description.
    pub meaning: String,
    /// The list's elements.
    pub elements: Vec<Group>,
    /// Whether the list applies only to another variant than the selected one.
    pub waits: bool,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub struct Field {
    /// Full name, with slashes between the segments.
    pub name: String,
    /// Description.
    pub meaning: String,
    /// Type of the input.
    pub kind: InputKind,
    /// Whether a value is required.
    pub required: bool,
    /// Current value.
    pub value: String,
    /// Errors of the value.
    pub wrong: Vec<String>,
    /// Whether the field applies only to another variant than the selected one.
    pub waits: bool,
}

impl Item {
    /// Returns whether the item has a value.
    fn is_said(&self) -> bool {
        match self {
            Self::Field(field) => !field.value.is_empty(),
            Self::Group(group) => group.items.iter().any(Self::is_said),
            Self::List(list) => !list.elements.is_empty(),
        }
    }

    /// Returns whether the item applies only to another variant and has no value.
    fn waits(&self) -> bool {
        let waits = match self {
            Self::Field(field) => field.waits,
            Self::Group(_) => false,
            Self::List(list) => list.waits,
        };
        waits && self.is_quiet()
    }

    fn is_wrong(&self) -> bool {
        match self {
            Self::Field(field) => !field.wrong.is_empty(),
            Self::Group(group) => group.items.iter().any(Self::is_wrong),
            Self::List(list) => list.elements.iter().flat_map(|element| &element.items).any(Self::is_wrong),
        }
    }

    /// Returns whether the item can be collapsed: it is not required and has neither value nor error.
    fn is_quiet(&self) -> bool {
        let is_required = matches!(self, Self::Field(field) if field.required);
        !is_required && !self.is_said() && !self.is_wrong()
    }
}

/// Returns the name of the hidden field with a list element's original index.
pub fn was(element: &str) -> String {
    format!("{element}/@was")
}

/// Renders a page with a form.
pub fn form(form: &Form) -> Markup {
    let is_refused = !form.others.is_empty() || form.items.iter().any(Item::is_wrong);
    html! {
        h1 { (form.title) }
        @if !form.tells.is_empty() { p { (form.tells) } }
        @if is_refused { p.notice.refused role="alert" {
            "Nothing was saved."
            @for other in &form.others { " " (other) }
        } }
        form.stack.wide method="post" action=(form.action) {
            // The Enter key activates the first button of a form.
            button.first aria-hidden="true" tabindex="-1" { (form.button) }
            (items(form, &form.items))
            @for suggested in &form.suggestions {
                datalist id=(list_of(suggested.field)) {
                    @for (value, name) in &suggested.choices { option value=(value) { (name) } }
                }
            }
            input type="hidden" name="form_key" value=(form.key);
            div { button { (form.button) } }
        }
    }
}

/// Form items with their positions.
type Placed<'i> = Vec<(usize, &'i Item)>;

/// Renders the items. Collapses optional empty fields after the first ones, if they are many.
fn items(form: &Form, all: &[Item]) -> Markup {
    let (fields, others): (Vec<&Item>, Vec<&Item>) = all.iter().partition(|item| matches!(item, Item::Field(_)));
    let (waiting, fields): (Vec<&Item>, Vec<&Item>) = fields.into_iter().partition(|field| field.waits());
    let (lists_waiting, others): (Vec<&Item>, Vec<&Item>) = others.into_iter().partition(|list| list.waits());
    let may_wait = |(place, field): &(usize, &Item)| *place >= AT_ONCE && field.is_quiet();
    let (mut rest, mut first): (Placed<'_>, Placed<'_>) = fields.into_iter().enumerate().partition(may_wait);
    if rest.len() <= AT_ONCE / 2 {
        first.append(&mut rest);
    }
    html! {
        div.fields { @for (_, item) in first { (shown(form, item)) } }
        @if !rest.is_empty() {
            details.more { summary { "More fields" } div.fields { @for (_, item) in rest { (shown(form, item)) } } }
        }
        @for item in others { (shown(form, item)) }
        @if !waiting.is_empty() || !lists_waiting.is_empty() {
            details { summary { "Fields for other choices" }
                div.fields { @for item in waiting { (shown(form, item)) } }
                @for item in lists_waiting { (shown(form, item)) }
            }
        }
    }
}

fn shown(form: &Form, item: &Item) -> Markup {
    match item {
        Item::Field(field) => shown_field(field, &form.suggestions),
        Item::Group(group) => html! {
            details open[!item.is_quiet() || group.items.iter().any(|item| matches!(item, Item::Field(field) if field.required))] {
                summary { (words(own(&group.name))) }
                fieldset { legend { (group.meaning) } (items(form, &group.items)) }
            }
        },
        Item::List(list) => several(form, list),
    }
}

fn several(form: &Form, list: &List) -> Markup {
    let name = one_of(own(&list.name));
    let next = format!("{}/{}", list.name, list.elements.len());
    let to = |place: &str| format!("{}#part-{place}", form.action);
    html! {
        fieldset.several {
            legend { strong { (words(own(&list.name))) } " " (list.meaning) }
            @for (place, element) in list.elements.iter().enumerate() {
                fieldset.element id=(format!("part-{}", element.name)) {
                    legend { (words(&name)) " " (place + 1) }
                    @if let Some(place) = &element.was { input type="hidden" name=(was(&element.name)) value=(place); }
                    // Marks the element as present even if all its fields are empty.
                    input type="hidden" name=(format!("{}/", element.name)) value="";
                    (items(form, &element.items))
                    button.plain name=(RESIZE) value=(format!("-{}", element.name)) formnovalidate
                        formaction=(to(&list.name)) { "Remove " (name.replace('_', " ")) " " (place + 1) }
                }
            }
            div id=(format!("part-{}", list.name)) {
                button.plain name=(RESIZE) value=(format!("+{}", list.name)) formnovalidate formaction=(to(&next)) {
                    "Add " (name.replace('_', " "))
                }
            }
        }
    }
}

/// Returns the last segment of a name.
fn own(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the singular of a list name.
fn one_of(name: &str) -> String {
    match name.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => name.strip_suffix('s').unwrap_or(name).to_owned(),
    }
}

/// Returns the label of a field.
fn label(name: &str) -> String {
    let mut label = words(name);
    for (short, long) in [("Po ", "PO "), ("Vat ", "VAT "), ("Iban", "IBAN"), ("Bic", "BIC")] {
        label = label.replace(short, long);
    }
    match label.strip_suffix(" ref") {
        Some(thing) => format!("{thing} (reference)"),
        None => label,
    }
}

/// Returns the id of the suggestion list of a field.
fn list_of(field: &str) -> String {
    format!("list-{field}")
}

/// Renders a field with its description and errors.
pub(crate) fn shown_field(field: &Field, suggestions: &[Suggestions]) -> Markup {
    let Field { name, meaning, kind, required, value, wrong, waits: _ } = field;
    let own = own(name);
    let (id, told) = (format!("field-{name}"), format!("told-{name}"));
    let suggested = suggestions.iter().find(|suggested| suggested.field == own);
    let list = suggested.map(|suggested| list_of(suggested.field));
    let input = Input {
        name,
        kind,
        value,
        nothing: "–",
        max_length: 4096,
        required: *required,
        id: Some(&id),
        told_by: Some(&told),
        list: list.as_deref(),
        is_wrong: !wrong.is_empty(),
    };
    html! {
        div.field {
            label for=(id) { (label(own)) @if *required { span aria-hidden="true" { " *" } } }
            (input.markup())
            p.told id=(told) { (meaning) }
            @for reason in wrong { p.wrong { (reason) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str, wrong: &[&str]) -> Field {
        Field {
            name: name.to_owned(),
            meaning: "What it means.".to_owned(),
            kind: InputKind::Text,
            required: false,
            value: value.to_owned(),
            wrong: wrong.iter().map(|reason| (*reason).to_owned()).collect(),
            waits: false,
        }
    }

    fn shown(items: Vec<Item>) -> String {
        form(&Form {
            title: "Edit".to_owned(),
            tells: "",
            action: "/console/edit/customers/acme".to_owned(),
            button: "Save",
            key: "k".to_owned(),
            items,
            suggestions: vec![Suggestions { field: "entity_ref", choices: vec![("e1".to_owned(), "<b>One".to_owned())] }],
            others: Vec::new(),
        })
        .into_string()
    }

    #[test]
    fn what_is_wrong_stands_beside_its_field_and_what_was_said_stays() {
        let field = field("billing_address/country_code", "\"><script>", &["must be two letters"]);
        let group = Group {
            name: "billing_address".to_owned(),
            meaning: "Postal address.".to_owned(),
            items: vec![Item::Field(field)],
            was: None,
        };
        let shown = shown(vec![Item::Group(group)]);
        assert!(shown.contains("must be two letters") && shown.contains("<details open>"), "{shown}");
        assert!(shown.contains("value=\"&quot;&gt;&lt;script&gt;\"") && !shown.contains("<script>"), "{shown}");
        assert!(shown.contains("Nothing was saved."), "{shown}");
    }

    #[test]
    fn lists_have_a_button_for_one_more_and_one_to_take_each_away() {
        let element = |place: usize| Group {
            name: format!("products/{place}"),
            meaning: String::new(),
            items: vec![Item::Field(field(&format!("products/{place}/entity_ref"), "e1", &[]))],
            was: (place == 0).then(|| "0".to_owned()),
        };
        let list = List {
            name: "products".to_owned(),
            meaning: "What is sold.".to_owned(),
            elements: vec![element(0), element(1)],
            waits: false,
        };
        let shown = shown(vec![Item::List(list)]);
        for part in [
            "value=\"+products\"",
            "value=\"-products/1\"",
            "name=\"products/0/@was\" value=\"0\"",
            "Add product",
            "Remove product 2",
            "list=\"list-entity_ref\"",
            "&lt;b&gt;One",
            "#part-products/2",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("products/1/@was"), "{shown}");
    }

    #[test]
    fn what_may_be_passed_over_is_a_click_away_where_it_is_much() {
        let many = |count: usize| (0..count).map(|place| Item::Field(field(&format!("f{place}"), "", &[])));
        assert!(!shown(many(8).collect()).contains("<details class=\"more\">"));
        let said = Item::Field(field("said", "x", &[]));
        let page = shown(many(12).chain([said]).collect());
        let (first, folded) = page.split_once("<details class=\"more\">").expect("a fold");
        assert!(first.contains("name=\"said\"") && first.contains("name=\"f5\"") && folded.contains("name=\"f6\""), "{page}");
    }

    #[test]
    fn one_of_several_has_a_name() {
        for (several, one) in [("products", "product"), ("quantities", "quantity"), ("line_items", "line_item"), ("data", "data")]
        {
            assert_eq!(one_of(several), one);
        }
    }
}
