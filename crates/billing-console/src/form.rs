//! Forms: the fields of something to make or edit, each with what is wrong with it beside it.

use maud::{Markup, html};

use crate::input::{Input, InputKind};
use crate::parts::words;

/// A form of the console.
#[derive(Clone, Debug)]
pub struct Form {
    /// What it does.
    pub title: String,
    /// Where it is sent to.
    pub action: String,
    /// What its button says.
    pub button: &'static str,
    /// What a repeat is known by.
    pub key: String,
    /// Its fields, those of a part of the thing together.
    pub groups: Vec<Group>,
    /// What is wrong with none of its fields.
    pub others: Vec<String>,
}

/// Fields of a part of a thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// The part; empty of the thing itself.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, below that of its part and a slash.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// What may be said.
    pub kind: InputKind,
    /// Whether something has to be said.
    pub required: bool,
    /// What is said.
    pub value: String,
    /// What is wrong with it.
    pub wrong: Vec<String>,
}

/// The body of a page with a form.
pub fn form(form: &Form) -> Markup {
    let is_refused = !form.others.is_empty() || form.groups.iter().any(is_wrong);
    html! {
        h1 { (form.title) }
        @if is_refused { p.notice.refused role="alert" {
            "Nothing was stored."
            @for other in &form.others { " " (other) }
        } }
        form.stack.wide method="post" action=(form.action) {
            @for group in &form.groups {
                @if group.name.is_empty() {
                    div.fields { @for field in &group.fields { (shown(field)) } }
                } @else {
                    details open[is_wrong(group) || group.fields.iter().any(|field| !field.value.is_empty())] {
                        summary { (words(&group.name)) }
                        fieldset.fields { legend { (group.meaning) } @for field in &group.fields { (shown(field)) } }
                    }
                }
            }
            input type="hidden" name="form_key" value=(form.key);
            div { button { (form.button) } }
        }
    }
}

fn is_wrong(group: &Group) -> bool {
    group.fields.iter().any(|field| !field.wrong.is_empty())
}

/// A field with what it means and what is wrong with it.
pub(crate) fn shown(field: &Field) -> Markup {
    let Field { name, meaning, kind, required, value, wrong } = field;
    let own = name.rsplit('/').next().unwrap_or(name);
    let (id, told) = (format!("field-{name}"), format!("told-{name}"));
    let input = Input {
        name,
        kind,
        value,
        nothing: "–",
        max_length: 4096,
        required: *required,
        id: Some(&id),
        told_by: Some(&told),
        is_wrong: !wrong.is_empty(),
    };
    html! {
        div.field {
            label for=(id) { (words(own)) @if *required { span aria-hidden="true" { " *" } } }
            (input.markup())
            p.told id=(told) { (meaning) }
            @for reason in wrong { p.wrong { (reason) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_beside_its_field_and_what_was_said_stays() {
        let field = Field {
            name: "billing_address/country_code".to_owned(),
            meaning: "Country.".to_owned(),
            kind: InputKind::Text,
            required: false,
            value: "\"><script>".to_owned(),
            wrong: vec!["must be two letters".to_owned()],
        };
        let group = Group { name: "billing_address".to_owned(), meaning: "Postal address.".to_owned(), fields: vec![field] };
        let shown = form(&Form {
            title: "Edit".to_owned(),
            action: "/console/edit/customers/acme".to_owned(),
            button: "Save",
            key: "k".to_owned(),
            groups: vec![group],
            others: Vec::new(),
        })
        .into_string();
        assert!(shown.contains("must be two letters") && shown.contains("<details open>"), "{shown}");
        assert!(shown.contains("value=\"&quot;&gt;&lt;script&gt;\"") && !shown.contains("<script>"), "{shown}");
        assert!(shown.contains("Nothing was stored."), "{shown}");
    }
}
