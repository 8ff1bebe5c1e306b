//! Input elements shared by filters and forms.

use maud::{Markup, html};

use crate::parts::words;

/// The type of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Text or a number.
    Text,
    /// A date.
    Day,
    /// One of several words.
    Choice(Vec<String>),
    /// A Boolean.
    Flag,
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
        let kind = if *self.kind == InputKind::Day { "date" } else { "text" };
        // The API validates numbers and addresses, so that errors have the same form everywhere.
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
