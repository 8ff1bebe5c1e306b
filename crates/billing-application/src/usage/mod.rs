//! Records, changes and reads usage events.

mod batch;
mod change;
mod deduplicate;
mod event_cache;
mod formatted;
mod hold;
mod import;
mod import_lines;
mod import_summary;
mod ingest;
mod limited;
mod list;
mod names;
mod outcome;
mod progress;
mod read;
mod recall;
mod record;
mod recorded_lines;
mod refused;
mod report;
mod summary;
mod undo;
mod working_books;
mod writer;

pub use batch::{BatchOutcome, EVENTS_PER_TRANSACTION, is_known_by_its_key, record_batch};
pub use billing_domain::event_input::{
    Atomicity, EventUpdate, FileEvent, FileEventKey, FileLine, MAX_BATCH_EVENTS, NamedCustomer, NamedUsageProduct, NewUsageEvent,
    OnConflict, UsageBatch,
};
pub use billing_domain::usage::EventAction;
pub use change::{ChangeOutcome, EventChange, delete_event, update_event};
pub use formatted::{FormattedUpdate, RecordEvents, SentRecord, format_of_events, map_record, map_update, of_mapped};
pub use hold::{HeldUsage, HoldRequest, HoldView, create_hold, forget_old_holds, get_hold, list_holds, release_hold};
pub use import::{FileImport, FileImportOptions, ImportSink, ImportStop, ImportedFile, RecordChunk, import_file};
pub use import_lines::{ImportChunkResult, RefusedLine, RejectedLine};
pub use import_summary::{AffectedDocument, ChangedTotal, ImportSummary};
pub use list::{EventQuery, list_events};
pub use outcome::{EventAnswer, IngestOutcome};
pub use read::{EventRevision, EventView, event_history, get_event};
pub use record::{NO_ANSWER, deliver, record_event, record_usage};
pub use refused::{RefusedEvent, RefusedUsageCounts, forget_old_refused_usage, list_refused_usage};
pub use report::{ReportError, ReportOf, ReportSink, report_usage};
pub use summary::{SummaryLine, summarize_usage};
pub use undo::{
    ImportView, UNDONE_PER_TRANSACTION, UndoResult, UndoStep, UndoneStep, forget_old_imports, get_import, list_imports,
    undo_import,
};
pub use writer::{
    DEFAULT_EVENT_CACHE, Distribution, Execution, GroupFigures, IdempotentWork, Load, QueuedBatch, QueuedChange, QueuedEvent,
    QueuedRequest, QueuedTransaction, ReplyCallback, Requester, UsageWriter, Work, WorkKind, WriterBusy, WriterFigures,
    WriterLimits,
};
