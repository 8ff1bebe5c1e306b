//! Usage: taking events and reading them back.

mod read;
mod record;

pub use read::{EventView, get_event};
pub use record::{NamedCustomer, NamedUsageProduct, NewUsageEvent, RecordedUsage, record_usage};
