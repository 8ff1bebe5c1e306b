//! Results of reported events, and the responses that repeats get.

use billing_domain::refs::EventRef;
use billing_domain::usage::{AnswerForm, FactsDigest};

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

/// A recorded event that gets the facts of another one with its key ([`OnConflict::Update`]).
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    pub(crate) event_ref: EventRef,
    /// The facts that were last delivered under the key.
    pub(crate) before: FactsDigest,
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
