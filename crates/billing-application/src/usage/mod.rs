//! Usage: taking events, changing them, and reading them back.

mod change;
mod read;
mod record;

pub use change::{EventUpdate, delete_event, update_event};
pub use read::{EventAction, EventRevision, EventView, event_history, get_event};
pub use record::{NamedCustomer, NamedUsageProduct, NewUsageEvent, RecordedUsage, record_usage};
