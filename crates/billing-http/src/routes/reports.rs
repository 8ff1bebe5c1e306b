//! Handlers for usage sums and reports.

use std::io;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use billing_application::Services;
use billing_application::documents::{self, DocumentQuery};
use billing_application::error::ResourceKind;
use billing_application::usage::{self, ReportError, ReportOf, ReportSink};
use billing_domain::access::Principal;
use billing_domain::ports::DocumentOrder;
use billing_domain::refs::DocumentRef;
use billing_domain::report::{NumbersAs, ReportColumns, ReportFormat, ReportedEvent};
use billing_report::{ReportWriter, TableWriter};

use crate::call::{Call, Reply};
use crate::pipe::{PipeReader, PipeTimeouts, PipeWatch, PipeWriter, pipe};
use crate::preference;
use billing_api::dto::document_table;
use billing_api::media_type;
use billing_api::problem::Problem;
use billing_api::query::usage::ReportParams;

/// Maximum wait for a client that does not read, and maximum total time of a report.
pub(crate) const PATIENCE: PipeTimeouts = PipeTimeouts { stalled: Duration::from_secs(30), total: Duration::from_secs(15 * 60) };
/// Maximum wait for a report's first bytes. Errors until then still produce an error response. Must be less than the
/// request timeout.
pub(crate) const FIRST_BYTES: Duration = Duration::from_secs(20);

pub(crate) async fn report_usage(call: Call) -> Reply {
    let params: ReportParams = call.query.read()?;
    let (format, numbers) = (params.format, preference::wanted(&call.request));
    call.report(params.of(), format, numbers, "usage-report").await
}

pub(crate) async fn report_document_usage(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    call.report(ReportOf::Document(document_ref), ReportFormat::Csv, NumbersAs::Number, &format!("usage-{document_ref}")).await
}

impl Call {
    /// Returns a report that is written while it is sent.
    async fn report(&self, of: ReportOf, format: ReportFormat, numbers: NumbersAs, name: &str) -> Reply {
        let made = move |services: &Services, principal: &Principal, writer: &mut PipeWriter| {
            let (watch, writer) = (writer.watch(), ReportWriter::new(format, writer).with_numbers(numbers));
            let mut sink = Sink { watch, writer };
            usage::report_usage(services, principal, &of, &mut sink)?;
            sink.writer.finish()?;
            Ok(())
        };
        self.stream(format, name, made).await
    }

    /// Returns documents as a table that is written while it is sent.
    pub(crate) async fn table_of_documents(
        &self,
        query: Option<DocumentQuery>,
        order: DocumentOrder,
        format: ReportFormat,
        numbers: NumbersAs,
    ) -> Reply {
        let made = move |services: &Services, principal: &Principal, writer: &mut PipeWriter| {
            let (mut watch, mut writer) = (writer.watch(), TableWriter::new(format, "Documents", writer).with_numbers(numbers));
            writer.start(document_table::HEADINGS.map(str::to_owned).to_vec())?;
            documents::tabulate_documents(services, principal, query.as_ref(), order, &mut |row| {
                watch.row()?;
                writer.row(&document_table::cells(row))
            })?;
            writer.finish()?;
            Ok(())
        };
        self.stream(format, "documents", made).await
    }

    /// Returns a body that is written while it is sent.
    async fn stream(
        &self,
        format: ReportFormat,
        name: &str,
        made: impl FnOnce(&Services, &Principal, &mut PipeWriter) -> Result<(), ReportError> + Send + 'static,
    ) -> Reply {
        let (state, principal) = (self.state.clone(), self.principal()?.clone());
        let permit = state.permit_report(principal.organization()).await?;
        let (writer, mut reader) = pipe(PATIENCE);
        let span = tracing::Span::current();
        actix_web::rt::task::spawn_blocking(move || {
            let _permit = permit;
            span.in_scope(|| make(writer, |writer| made(state.services(), &principal, writer)));
        });
        reader.begin(FIRST_BYTES).await?;
        Ok(attachment(reader, format, name))
    }
}

/// Returns a response that browsers save as a file.
pub(crate) fn attachment(body: PipeReader, format: ReportFormat, name: &str) -> HttpResponse {
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.as_str());
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, media_type::of_report(format))).insert_header((CONTENT_DISPOSITION, disposition));
    response.body(body)
}

/// Writes a body, or ends it with the problem that occurred.
fn make(mut writer: PipeWriter, made: impl FnOnce(&mut PipeWriter) -> Result<(), ReportError>) {
    match made(&mut writer) {
        Ok(()) => {
            if let Err(error) = writer.finish() {
                tracing::warn!(%error, "a report ended before its end");
            }
        }
        Err(ReportError::UseCase(error)) => writer.fail(Problem::from(error)),
        Err(ReportError::Sink(error)) => {
            tracing::warn!(%error, "a report ended before its end");
            writer.fail(Problem::internal());
        }
    }
}

/// Writes a report into a body.
struct Sink<'w> {
    watch: PipeWatch,
    writer: ReportWriter<&'w mut PipeWriter>,
}

impl ReportSink for Sink<'_> {
    fn is_wanted(&self) -> bool {
        self.watch.is_wanted()
    }

    fn start(&mut self, columns: ReportColumns) -> io::Result<()> {
        self.writer.start(columns)
    }

    fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        self.watch.row()?;
        self.writer.row(event)
    }
}
