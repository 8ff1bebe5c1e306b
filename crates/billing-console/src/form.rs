//! Forms with errors beside their fields. Buttons add and remove list elements.

use maud::{Markup, html};

use crate::effects::{CONFIRMED, acceptance};
use crate::input::{Input, InputKind, own};
use crate::parts::{isolated, words};

/// Form field of the buttons that resize lists.
pub const RESIZE: &str = "resize";
/// Form field of a request for the preview that the script shows beside a form. Such a request stores nothing.
pub const LIVE: &str = "live";
/// Number of fields of a group that are always visible in a form with all fields.
const AT_ONCE: usize = 6;
/// Maximum number of objects that a field offers by name. More objects are suggested while one types.
const MAX_NAMED: usize = 30;

/// A form of the console.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// Page title.
    pub title: String,
    /// One sentence about what the form does.
    pub tells: &'static str,
    /// Target of the form.
    pub action: String,
    /// Button label.
    pub button: &'static str,
    /// Label of a button that carries the form out without a preview.
    pub confirm: Option<&'static str>,
    /// Idempotency key, which identifies repeats.
    pub key: String,
    /// The form's fields and groups.
    pub items: Vec<Item>,
    /// Fields and groups of a short form that are visible on request.
    pub more: Vec<Item>,
    /// Fields without an input.
    pub hidden: Vec<(String, String)>,
    /// Suggestions for fields.
    pub suggestions: Vec<Suggestions>,
    /// Errors that belong to no field.
    pub others: Vec<String>,
    /// Whether `others` are warnings, which a check box accepts.
    pub is_warned: bool,
    /// Whether the form shows all `items` at once. A form with all fields of the API collapses most of them.
    pub is_short: bool,
    /// Whether the script shows a preview below the form while one types.
    pub is_live: bool,
    /// Address of the form with all fields.
    pub advanced: Option<String>,
    /// Target of the cancel link.
    pub back: String,
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
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Full name, with slashes between the segments.
    pub name: String,
    /// Heading; empty for a heading from the name.
    pub label: String,
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
    /// Heading; empty for a heading from the name.
    pub label: String,
    /// Description.
    pub meaning: String,
    /// The list's elements.
    pub elements: Vec<Group>,
    /// Kinds of elements to add, each with a word for the value of the button and a label. Without kinds, an empty one is added.
    pub new_elements: Vec<(String, &'static str)>,
    /// The words of the group's choice for which the list applies; empty if it always applies.
    pub of_words: Vec<String>,
    /// Whether the list applies only to another variant than the selected one.
    pub waits: bool,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub struct Field {
    /// Full name, with slashes between the segments.
    pub name: String,
    /// Label; empty for a label from the name.
    pub label: String,
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
    /// The words of the group's choice for which the field applies; empty if it always applies.
    pub of_words: Vec<String>,
    /// Whether the field is the choice that selects the fields that apply.
    pub switches: bool,
    /// Whether the field applies only to another variant than the selected one.
    pub waits: bool,
}

impl Item {
    /// Returns the full name.
    pub fn name(&self) -> &str {
        match self {
            Self::Field(field) => &field.name,
            Self::Group(group) => &group.name,
            Self::List(list) => &list.name,
        }
    }

    const fn is_field(&self) -> bool {
        matches!(self, Self::Field(_))
    }

    /// Returns whether the item has a value.
    fn has_value(&self) -> bool {
        match self {
            Self::Field(field) => !field.value.is_empty(),
            Self::Group(group) => group.items.iter().any(Self::has_value),
            Self::List(list) => list.elements.iter().flat_map(|element| &element.items).any(Self::has_value),
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
        !is_required && !self.has_value() && !self.is_wrong()
    }
}

/// Returns the name of the hidden field with a list element's original index.
pub fn was(element: &str) -> String {
    format!("{element}/@was")
}

/// Renders a page with a form.
pub fn form(form: &Form) -> Markup {
    let is_refused = !form.others.is_empty() || form.items.iter().chain(&form.more).any(Item::is_wrong);
    html! {
        h1 { (form.title) }
        @if !form.tells.is_empty() { p { (form.tells) } }
        @if is_refused { p.notice.refused role="alert" {
            "Nothing was saved."
            @for other in &form.others { " " (other) }
        } }
        form.stack.wide method="post" action=(form.action) data-live[form.is_live] {
            // The Enter key activates the first button of a form.
            button.first aria-hidden="true" tabindex="-1" { (form.button) }
            @if form.is_short { (short(form)) } @else { (items(form, &form.items)) }
            @for suggested in form.suggestions.iter().filter(|suggested| !(form.is_short && suggested.are_few())) {
                datalist id=(list_of(suggested.field)) { @for (value, name) in &suggested.choices { option value=(value) { (name) } } }
            }
            @for (name, value) in &form.hidden { input type="hidden" name=(name) value=(value); }
            input type="hidden" name="form_key" value=(form.key);
            @if form.is_warned { (acceptance(false)) }
            div.buttons {
                @if let Some(confirm) = form.confirm { button name=(CONFIRMED) value="yes" { (confirm) } }
                button.plain[form.confirm.is_some()] { (form.button) }
                a href=(form.back) { "Cancel" }
                @if let Some(advanced) = &form.advanced { a.muted href=(advanced) { "Advanced" } }
            }
        }
        @if form.is_live { div data-result aria-live="polite" {} }
    }
}

/// Renders the fields of a short form.
fn short(form: &Form) -> Markup {
    html! {
        (in_order(form, &form.items))
        @if !form.more.is_empty() {
            details.more open[form.more.iter().any(Item::is_wrong)] { summary { "More" } (in_order(form, &form.more)) }
        }
    }
}

/// Renders items in their order. Neighboring fields share a grid, and the items for other choices stand together.
fn in_order(form: &Form, all: &[Item]) -> Markup {
    let place = all.iter().position(Item::waits).unwrap_or(all.len());
    let (waiting, rest): (Vec<&Item>, Vec<&Item>) = all[place..].iter().partition(|item| item.waits());
    let first: Vec<&Item> = all[..place].iter().collect();
    html! { (runs(form, &first)) (others(form, &waiting)) (runs(form, &rest)) }
}

fn runs(form: &Form, all: &[&Item]) -> Markup {
    html! {
        @for run in all.chunk_by(|one, next| one.is_field() && next.is_field()) {
            @if run.iter().all(|item| item.is_field()) {
                div.fields { @for item in run { (shown(form, item)) } }
            } @else {
                @for item in run { (shown(form, item)) }
            }
        }
    }
}

/// Renders the items for other choices than the selected ones.
fn others(form: &Form, waiting: &[&Item]) -> Markup {
    let (fields, lists): (Vec<&Item>, Vec<&Item>) = waiting.iter().partition(|item| item.is_field());
    html! {
        @if !waiting.is_empty() {
            details.others { summary { "Fields for other choices" }
                div.fields { @for item in fields { (shown(form, item)) } }
                @for item in lists { (shown(form, item)) }
            }
        }
    }
}

/// Form items with their positions.
type Placed<'i> = Vec<(usize, &'i Item)>;

/// Renders the items. Collapses optional empty fields after the first ones, if they are many.
fn items(form: &Form, all: &[Item]) -> Markup {
    let (fields, groups): (Vec<&Item>, Vec<&Item>) = all.iter().partition(|item| item.is_field());
    let (mut waiting, fields): (Vec<&Item>, Vec<&Item>) = fields.into_iter().partition(|field| field.waits());
    let (lists_waiting, groups): (Vec<&Item>, Vec<&Item>) = groups.into_iter().partition(|list| list.waits());
    waiting.extend(lists_waiting);
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
        @for item in groups { (shown(form, item)) }
        (others(form, &waiting))
    }
}

fn shown(form: &Form, item: &Item) -> Markup {
    match item {
        Item::Field(field) => shown_field(field, &form.suggestions, form.is_short),
        Item::Group(group) => html! {
            details open[!item.is_quiet() || group.items.iter().any(|item| matches!(item, Item::Field(field) if field.required))] {
                summary { (heading(&group.label, &group.name)) }
                fieldset data-group { @if !group.meaning.is_empty() { legend { (group.meaning) } } (items(form, &group.items)) }
            }
        },
        Item::List(list) => several(form, list),
    }
}

fn several(form: &Form, list: &List) -> Markup {
    let name = one_of(own(&list.name));
    let next = format!("{}/{}", list.name, list.elements.len());
    let to = |place: &str| format!("{}#part-{place}", form.action);
    let usual = [(String::new(), "")];
    let new_elements = if list.new_elements.is_empty() { &usual[..] } else { &list.new_elements };
    html! {
        fieldset.several data-for=[for_words(&list.of_words)] {
            legend { strong { (heading(&list.label, &list.name)) } " " (list.meaning) }
            @for (place, element) in list.elements.iter().enumerate() {
                fieldset.element id=(format!("part-{}", element.name)) data-group {
                    legend { @if element.label.is_empty() { (words(&name)) " " (place + 1) } @else { (isolated(&element.label)) } }
                    @if let Some(place) = &element.was { input type="hidden" name=(was(&element.name)) value=(place); }
                    // Marks the element as present even if all its fields are empty.
                    input type="hidden" name=(format!("{}/", element.name)) value="";
                    @if list.new_elements.is_empty() { (items(form, &element.items)) } @else { (in_order(form, &element.items)) }
                    button.plain name=(RESIZE) value=(format!("-{}", element.name)) formnovalidate
                        formaction=(to(&list.name)) {
                        "Remove " @if element.label.is_empty() { (name.replace('_', " ")) " " (place + 1) } @else { (isolated(&element.label)) }
                    }
                }
            }
            div id=(format!("part-{}", list.name)) {
                @for (word, label) in new_elements {
                    button.plain name=(RESIZE) value=(format!("+{}{word}", list.name)) formnovalidate formaction=(to(&next)) {
                        @if label.is_empty() { "Add " (name.replace('_', " ")) } @else { (label) }
                    } " "
                }
            }
        }
    }
}

/// Returns the heading of a group or list, by default from its name.
fn heading(label: &str, name: &str) -> String {
    if label.is_empty() { words(own(name)) } else { label.to_owned() }
}

/// Returns the words of a choice for which an element applies, for the script.
fn for_words(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the singular of a list name.
pub(crate) fn one_of(name: &str) -> String {
    match name.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => name.strip_suffix('s').unwrap_or(name).to_owned(),
    }
}

/// Labels of fields whose names are no words for readers.
const LABELS: &[(&str, &str)] = &[
    ("apply_balance", "Unapplied amounts settle new documents"),
    ("bic", "BIC"),
    ("charge_ref", "Reference"),
    ("country_code", "Country code"),
    ("fixed_amount", "Fee per event"),
    ("flat_amount", "Flat fee"),
    ("iban", "IBAN"),
    ("line1", "Street and number"),
    ("line2", "Address, second line"),
    ("number_prefix", "Prefix of document numbers"),
    ("overpayment", "Accept more than the amount due"),
    ("paid_date", "Date of payment"),
    ("po_number", "PO number"),
    ("rate", "Percentage"),
    ("state", "State or province"),
    ("tax", "Tax in percent"),
    ("tax_id", "Tax number"),
    ("up_to", "Up to quantity"),
    ("vat_id", "VAT ID"),
    ("zip_code", "Postal code"),
];

/// Hints of fields whose description in the API is about JSON.
const HINTS: &[(&str, &str)] = &[
    ("tax_from", "These tax settings apply from this day. Empty: today, or always for the first tax settings."),
    ("up_to", "Largest quantity in the tier. Leave empty in the last tier."),
];

/// Returns the label of a field by its name.
fn label(name: &str) -> String {
    if let Some((_, label)) = LABELS.iter().find(|(field, _)| *field == name) {
        return (*label).to_owned();
    }
    let label = words(name);
    match label.strip_suffix(" ref") {
        Some(thing) => format!("{thing} (reference)"),
        None => label,
    }
}

/// Returns the id of the suggestion list of a field.
fn list_of(field: &str) -> String {
    format!("list-{field}")
}

impl Suggestions {
    /// Returns whether a short form can offer all objects by name.
    fn are_few(&self) -> bool {
        self.choices.len() <= MAX_NAMED
    }

    /// Returns the choice among all objects. The present value is one of them, even if its object is unknown.
    fn named(&self, value: &str) -> InputKind {
        let unknown = !value.is_empty() && self.choices.iter().all(|(choice, _)| choice != value);
        let present = unknown.then(|| (value.to_owned(), value.to_owned()));
        InputKind::Named(self.choices.iter().cloned().chain(present).collect())
    }
}

/// Renders a field with its description and errors. A short form offers few objects by name instead of an input for a reference.
pub(crate) fn shown_field(field: &Field, suggestions: &[Suggestions], is_short: bool) -> Markup {
    let Field { name, meaning, required, value, wrong, .. } = field;
    let (id, caption) = (format!("field-{name}"), format!("told-{name}"));
    let suggested = suggestions.iter().find(|suggested| suggested.field == own(name));
    let named = suggested.filter(|suggested| is_short && suggested.are_few()).map(|suggested| suggested.named(value));
    let list = suggested.filter(|_| named.is_none()).map(|suggested| list_of(suggested.field));
    let label = if field.label.is_empty() { label(own(name)) } else { field.label.clone() };
    let hint = HINTS.iter().find(|(field, _)| *field == own(name)).map_or(meaning.as_str(), |(_, hint)| hint);
    let input = Input {
        name,
        kind: named.as_ref().unwrap_or(&field.kind),
        value,
        nothing: "–",
        max_length: 4096,
        required: *required,
        id: Some(&id),
        told_by: (!meaning.is_empty()).then_some(caption.as_str()),
        list: list.as_deref(),
        is_wrong: !wrong.is_empty(),
    };
    html! {
        div.field data-for=[for_words(&field.of_words)] data-switch[field.switches] {
            label for=(id) { (label) @if *required { span aria-hidden="true" { " *" } } }
            (input.markup())
            @if !meaning.is_empty() { p.hint id=(caption) { (readable(hint)) } }
            @for reason in wrong { p.wrong { (readable(reason)) } }
        }
    }
}

/// Returns a description or an error of the API with labels instead of the names of fields.
fn readable(reason: &str) -> String {
    let is_field = |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'_');
    let part = |(place, text): (usize, &str)| {
        if place % 2 == 1 && is_field(text) { format!("\u{201c}{}\u{201d}", label(text)) } else { text.to_owned() }
    };
    let readable: String = reason.split('`').enumerate().map(part).collect();
    readable.replace("\u{201d} to true", "\u{201d} to yes").replace("\u{201d} to false", "\u{201d} to no")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str, wrong: &[&str]) -> Field {
        Field {
            name: name.to_owned(),
            label: String::new(),
            meaning: "What it means.".to_owned(),
            kind: InputKind::Text,
            required: false,
            value: value.to_owned(),
            wrong: wrong.iter().map(|reason| (*reason).to_owned()).collect(),
            of_words: Vec::new(),
            switches: false,
            waits: false,
        }
    }

    fn whole(items: Vec<Item>) -> Form {
        Form {
            title: "Edit".to_owned(),
            action: "/console/edit/customers/acme".to_owned(),
            button: "Save",
            key: "k".to_owned(),
            items,
            suggestions: vec![Suggestions { field: "entity_ref", choices: vec![("e1".to_owned(), "<b>One".to_owned())] }],
            back: "/console/customers/acme".to_owned(),
            ..Form::default()
        }
    }

    fn shown(items: Vec<Item>) -> String {
        form(&whole(items)).into_string()
    }

    #[test]
    fn a_short_form_shows_its_fields_and_offers_few_objects_by_name() {
        let fields = (0..12).map(|n| Item::Field(field(&format!("f{n}"), "", &[])));
        let short = Form {
            items: fields.chain([Item::Field(field("entity_ref", "e2", &[]))]).collect(),
            more: vec![Item::Field(field("rare", "x", &[]))],
            hidden: vec![("version".to_owned(), "3".to_owned())],
            is_short: true,
            advanced: Some("?form=full".to_owned()),
            ..whole(Vec::new())
        };
        let page = form(&short).into_string();
        let (first, folded) = page.split_once("<details class=\"more\"><summary>More<").expect("a fold");
        assert!(first.contains("name=\"f11\"") && folded.contains("name=\"rare\""), "{page}");
        assert!(page.contains("<option value=\"e1\">&lt;b&gt;One</option>") && !page.contains("<datalist"), "{page}");
        assert!(page.contains("<option value=\"e2\" selected>"), "the present value stays: {page}");
        assert!(page.contains("name=\"version\" value=\"3\"") && page.contains("href=\"?form=full\">Advanced"), "{page}");
        let choices = (0..=MAX_NAMED).map(|n| (n.to_string(), format!("Entity {n}"))).collect();
        let many = Form { suggestions: vec![Suggestions { field: "entity_ref", choices }], ..short.clone() };
        assert!(form(&many).into_string().contains("list=\"list-entity_ref\""));
        let wrong = Form { more: vec![Item::Field(field("rare", "x", &["must be y"]))], ..short };
        assert!(form(&wrong).into_string().contains("<details class=\"more\" open>"));
    }

    #[test]
    fn the_script_learns_which_fields_a_choice_shows() {
        let choice = Field { switches: true, kind: InputKind::Choice(vec!["FLAT".to_owned()]), ..field("price/model", "", &[]) };
        let size = Field { of_words: vec!["PACKAGE".to_owned()], waits: true, ..field("price/package_size", "", &[]) };
        let page = shown(vec![Item::Field(choice), Item::Field(size)]);
        assert!(page.contains("data-switch") && page.contains("data-for=\"PACKAGE\""), "{page}");
        assert!(page.contains("<details class=\"others\">"), "{page}");
    }

    #[test]
    fn what_is_wrong_stands_beside_its_field_and_what_was_said_stays() {
        let field = field("billing_address/country_code", "\"><script>", &["must be two letters"]);
        let group = Group {
            name: "billing_address".to_owned(),
            meaning: "Postal address.".to_owned(),
            items: vec![Item::Field(field)],
            ..Group::default()
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
            items: vec![Item::Field(field(&format!("products/{place}/entity_ref"), "e1", &[]))],
            was: (place == 0).then(|| "0".to_owned()),
            ..Group::default()
        };
        let list = List {
            name: "products".to_owned(),
            label: String::new(),
            meaning: "What is sold.".to_owned(),
            elements: vec![element(0), element(1)],
            new_elements: Vec::new(),
            of_words: Vec::new(),
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
        let submitted = Item::Field(field("said", "x", &[]));
        let page = shown(many(12).chain([submitted]).collect());
        let (first, folded) = page.split_once("<details class=\"more\">").expect("a fold");
        assert!(first.contains("name=\"said\"") && first.contains("name=\"f5\"") && folded.contains("name=\"f6\""), "{page}");
    }

    #[test]
    fn an_error_names_fields_by_their_labels() {
        let reason = "must be at most the amount due, 9.00: set `overpayment` to true to add the surplus";
        let expected = "must be at most the amount due, 9.00: set \u{201c}Accept more than the amount due\u{201d} to yes \
                        to add the surplus";
        assert_eq!(readable(reason), expected);
        assert_eq!(readable("must be a number"), "must be a number");
    }

    #[test]
    fn a_hint_is_about_the_form_and_not_about_json() {
        let shown = shown_field(&field("price/tiers/0/up_to", "", &[]), &[], false).into_string();
        assert!(shown.contains("Leave empty in the last tier.") && !shown.contains("What it means."), "{shown}");
    }

    #[test]
    fn one_of_several_has_a_name() {
        for (several, one) in [("products", "product"), ("quantities", "quantity"), ("line_items", "line_item"), ("data", "data")]
        {
            assert_eq!(one_of(several), one);
        }
    }
}
