//! Usage: taking events, changing them, and reading them back.

mod change;
mod names;
mod place;
mod read;
mod record;
mod slice;

pub use change::{EventUpdate, delete_event, update_event};
pub use read::{EventAction, EventRevision, EventView, event_history, get_event};
pub use record::{
    NO_ANSWER, NamedCustomer, NamedUsageProduct, Neighbours, NewUsageEvent, TakenUsage, record_event, record_usage,
};
