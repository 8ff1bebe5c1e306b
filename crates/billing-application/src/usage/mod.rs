//! Usage: taking events, changing them, and reading them back.

mod arrivals;
mod batch;
mod change;
mod formatted;
mod import;
mod list;
mod names;
mod read;
mod record;
mod report;
mod slice;
mod summary;
mod writer;

pub use batch::{EVENTS_PER_TRANSACTION, TakenBatch, is_known_by_its_key, record_alone, record_batch};
pub use billing_domain::reported::{
    EventUpdate, FileEvent, FileEventKey, MAX_BATCH_EVENTS, NamedCustomer, NamedUsageProduct, Neighbours, NewUsageEvent,
    UsageBatch,
};
pub use billing_domain::usage::EventAction;
pub use change::{delete_event, update_event};
pub use formatted::{FormattedEvent, FormattedUpdate, map_events, map_formatted, of_mapped, record_formatted, update_formatted};
pub use import::{FileImport, ImportSummary, TouchedDocument};
pub use list::{EventQuery, list_events};
pub use read::{EventRevision, EventView, event_history, get_event};
pub use record::{NO_ANSWER, record_event, record_usage};
pub use report::{ReportError, ReportOf, ReportSink, report_usage};
pub use slice::TakenUsage;
pub use summary::{SummaryLine, summarize_usage};
pub use writer::{Reporter, UsageWriter, WaitingEvent, WriterBusy, WriterFigures, WriterLimits};
