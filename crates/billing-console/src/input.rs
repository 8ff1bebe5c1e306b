//! What a person says something in: the same in filters and forms.

use maud::{Markup, html};

use crate::parts::words;

/// What may be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A text, or a number.
    Text,
    /// A day.
    Day,
    /// One of these words.
    Choice(Vec<String>),
    /// Yes or no.
    Flag,
}

/// An input of a filter or a form.
pub(crate) struct Input<'i> {
    pub(crate) name: &'i str,
    pub(crate) kind: &'i InputKind,
    pub(crate) value: &'i str,
    /// What stands for nothing where one of several is said.
    pub(crate) nothing: &'static str,
    /// In characters.
    pub(crate) max_length: u32,
    pub(crate) required: bool,
    /// What its label calls it by, where it isn't within.
    pub(crate) id: Option<&'i str>,
    /// What tells more of it.
    pub(crate) told_by: Option<&'i str>,
    /// What may be said, as a list by this identifier.
    pub(crate) list: Option<&'i str>,
    pub(crate) is_wrong: bool,
}

impl Input<'_> {
    pub(crate) fn markup(&self) -> Markup {
        let Self { name, value, max_length, required, id, told_by, list, .. } = *self;
        let kind = if *self.kind == InputKind::Day { "date" } else { "text" };
        // What a number or an address is is told by the interface, in one way for all.
        match self.kind {
            InputKind::Choice(choices) => self.one_of(choices.iter().map(|choice| (choice.as_str(), words(choice)))),
            InputKind::Flag => self.one_of([("true", "yes".to_owned()), ("false", "no".to_owned())]),
            InputKind::Text | InputKind::Day => html! {
                input id=[id] name=(name) value=(value) type=(kind) maxlength=(max_length) required[required] list=[list]
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
