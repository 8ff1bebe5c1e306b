//! Usage: taking events, changing them, and reading them back.

mod arrivals;
mod change;
mod formatted;
mod list;
mod names;
mod read;
mod record;
mod report;
mod slice;
mod summary;

pub use billing_domain::reported::{EventUpdate, NamedCustomer, NamedUsageProduct, NewUsageEvent};
pub use change::{delete_event, update_event};
pub use formatted::{FormattedEvent, FormattedUpdate, map_events, map_formatted, record_mapped, update_formatted};
pub use list::{EventQuery, list_events};
pub use read::{EventAction, EventRevision, EventView, event_history, get_event};
pub use record::{NO_ANSWER, Neighbours, TakenUsage, record_event, record_usage};
pub use report::{ReportError, ReportOf, ReportSink, report_usage};
pub use summary::{SummaryLine, summarize_usage};
