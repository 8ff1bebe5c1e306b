//! `report`: writes the usage report from the database, without a server.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use billing_application::Services;
use billing_application::organizations::organization_named;
use billing_application::usage::{EventQuery, ReportError, ReportOf, ReportSink, report_usage};
use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::EventFilter;
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, UsageProductRef};
use billing_domain::report::{ReportColumns, ReportFormat, ReportedEvent};
use billing_report::ReportWriter;

use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::settings::ReportSettings;
use crate::text;

/// Writes the report to a file or standard output.
pub(crate) fn report(settings: &ReportSettings) -> CommandResult<()> {
    let of = ReportOf::Events(query(settings)?);
    let name = text("--organization", &settings.organization)?;
    let services = composition::offline(composition::open_as_it_is(&settings.store)?)?;
    let principal = Principal::of_command_line(organization_named(&services, &name)?.id);
    match &settings.output {
        Some(path) => to_file(&services, &principal, &of, settings.format, path),
        None if settings.format == ReportFormat::Xlsx && io::stdout().is_terminal() => {
            Err(CommandError::Setting("an xlsx report cannot be printed: set --output to a file".to_owned()))
        }
        None => {
            // The reader of a pipe can be slow and must not block the database transaction.
            let failed = |error: io::Error| CommandError::Failed(format!("cannot print: {error}"));
            let file = tempfile::tempfile().map_err(failed)?;
            let mut file = write(&services, &principal, &of, settings.format, file)?;
            file.rewind().and_then(|()| io::copy(&mut file, &mut io::stdout().lock())).map_err(failed).map(drop)
        }
    }
}

fn query(settings: &ReportSettings) -> CommandResult<EventQuery> {
    Ok(EventQuery {
        key: None,
        customer_ref: parsed("--customer-ref", settings.customer_ref.as_deref(), CustomerRef::parse)?,
        filter: EventFilter {
            customer_id: None,
            usage_product_ref: parsed("--usage-product-ref", settings.usage_product_ref.as_deref(), UsageProductRef::parse)?,
            document_ref: parsed("--document-ref", settings.document_ref.as_deref(), DocumentRef::parse)?,
            contract_ref: parsed("--contract-ref", settings.contract_ref.as_deref(), ContractRef::parse)?,
            from: parsed("--from", settings.from.as_deref(), Timestamp::parse)?,
            to: parsed("--to", settings.to.as_deref(), Timestamp::parse)?,
            ..EventFilter::default()
        },
    })
}

fn parsed<T, E: std::fmt::Display>(
    flag: &str,
    value: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> CommandResult<Option<T>> {
    value.map(parse).transpose().map_err(|reason| CommandError::Setting(format!("{flag} {reason}")))
}

/// Writes the report to a file. The file gets its name only when it is complete, so that an incomplete report never
/// looks complete.
fn to_file(services: &Services, principal: &Principal, of: &ReportOf, format: ReportFormat, path: &Path) -> CommandResult<()> {
    let failed = |error: io::Error| CommandError::Failed(format!("cannot write {}: {error}", path.display()));
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let file = File::create(&unfinished).map_err(failed)?;
    let written = write(services, principal, of, format, file)
        .and_then(|file| file.sync_all().and_then(|()| fs::rename(&unfinished, path)).map_err(failed));
    if written.is_err() {
        // The original error is more important than the leftover file.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn write<W: Write>(services: &Services, principal: &Principal, of: &ReportOf, format: ReportFormat, out: W) -> CommandResult<W> {
    let mut sink = Sink(ReportWriter::new(format, out));
    let made = report_usage(services, principal, of, &mut sink).and_then(|()| Ok(sink.0.finish()?));
    made.map_err(|error| match error {
        ReportError::UseCase(error) => CommandError::from(error),
        ReportError::Sink(error) => CommandError::Failed(format!("cannot write the report: {error}")),
    })
}

/// The output of a report; the user of the command waits for it.
struct Sink<W: Write>(ReportWriter<W>);

impl<W: Write> ReportSink for Sink<W> {
    fn is_wanted(&self) -> bool {
        true
    }

    fn start(&mut self, columns: ReportColumns) -> io::Result<()> {
        self.0.start(columns)
    }

    fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        self.0.row(event)
    }
}
