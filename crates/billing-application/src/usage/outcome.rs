//! Results of reported events, and the responses that repeats get.

use billing_domain::usage::AnswerForm;

use super::read::EventView;

/// The response to an event, which duplicates of its key get.
#[derive(Clone, Copy, Debug)]
pub struct EventAnswer {
    /// The fields of the response.
    pub form: AnswerForm,
    /// Builds the response.
    pub render: fn(&EventView) -> String,
}

/// The result for an accepted event.
#[derive(Clone, Debug)]
pub enum IngestOutcome {
    /// The event was recorded now. Contains its document.
    Recorded(Box<EventView>),
    /// The event was recorded earlier under the same key. Contains the stored response.
    Replayed(String),
    /// The event recorded earlier under the same key got these facts now.
    Updated(Box<EventView>),
}

impl IngestOutcome {
    /// Returns the event if it was recorded now.
    pub fn now(self) -> Option<EventView> {
        match self {
            Self::Recorded(view) => Some(*view),
            Self::Replayed(_) | Self::Updated(_) => None,
        }
    }
}

/// An event with the key of an earlier event in the same batch.
pub(super) struct Duplicate {
    pub(super) index: usize,
    /// The earlier event.
    pub(super) first: usize,
    /// Whether it has the same facts. Otherwise it is rejected.
    pub(super) is_same: bool,
}
