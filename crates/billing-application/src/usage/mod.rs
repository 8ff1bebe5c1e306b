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
mod refused;
mod report;
mod slice;
mod summary;
mod undo;
mod writer;

pub use batch::{EVENTS_PER_TRANSACTION, TakenBatch, is_known_by_its_key, record_batch};
pub use billing_domain::reported::{
    EventUpdate, FileEvent, FileEventKey, MAX_BATCH_EVENTS, NamedCustomer, NamedUsageProduct, Neighbours, NewUsageEvent,
    UsageBatch,
};
pub use billing_domain::usage::EventAction;
pub use change::{Changed, EventChange, delete_event, update_event};
pub use formatted::{FormattedEvent, FormattedUpdate, map_events, map_formatted, map_update, of_mapped};
pub use import::{ChangedTotal, FileImport, ImportSummary, TakenLines, TouchedDocument};
pub use list::{EventQuery, list_events};
pub use read::{EventRevision, EventView, event_history, get_event};
pub use record::{NO_ANSWER, record_event, record_usage};
pub use refused::{RefusedEvent, RefusedUsageCounts, forget_old_refused_usage, list_refused_usage};
pub use report::{ReportError, ReportOf, ReportSink, report_usage};
pub use slice::TakenUsage;
pub use summary::{SummaryLine, summarize_usage};
pub use undo::{
    ImportView, UNDONE_PER_TRANSACTION, UndoResult, UndoStep, UndoneStep, forget_old_imports, get_import, list_imports,
    undo_import,
};
pub use writer::{
    Carried, Distribution, EventAnswer, GroupFigures, Keyed, Load, Reply, Reporter, UsageWriter, Waiting, WaitingBatch,
    WaitingChange, WaitingEvent, WaitingWhole, Work, WorkKind, WriterBusy, WriterFigures, WriterLimits,
};
