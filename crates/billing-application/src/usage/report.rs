//! The usage report: first its columns, then its rows, from one snapshot of the database.

use std::io;
use std::ops::ControlFlow;

use billing_domain::access::Principal;
use billing_domain::document::{Document, DocumentHead, Lifecycle};
use billing_domain::ports::{Access, BilledDocumentKey, EventFilter, EventScope, StoreError, Tx, transact};
use billing_domain::refs::{DocumentRef, OrganizationId};
use billing_domain::report::{ReportColumns, ReportKeys, ReportedEvent, TooManyKeys};
use thiserror::Error;

use super::list::EventQuery;
use crate::error::{ResourceKind, UseCaseError};
use crate::{Services, UseCase, allow};

/// The number of events read between two checks that the report is still wanted.
const ASK_EVERY: u64 = 1_000;

/// The events that a report contains.
#[derive(Clone, Debug)]
pub enum ReportOf {
    /// No events, for a reference that cannot exist.
    Nothing,
    /// Events that match a query, in their current revision. A reference that does not exist matches nothing.
    Events(EventQuery),
    /// The events that a document bills. For an issued document, the events as of its issue.
    Document(DocumentRef),
}

/// A receiver of a report, row by row.
pub trait ReportSink {
    /// Returns whether the receiver still wants the report.
    fn is_wanted(&self) -> bool;
    /// Receives the columns, before all rows.
    ///
    /// # Errors
    /// Returns any error of the receiver's output.
    fn start(&mut self, columns: ReportColumns) -> io::Result<()>;
    /// Receives a row.
    ///
    /// # Errors
    /// Returns any error of the receiver's output.
    fn row(&mut self, event: &ReportedEvent) -> io::Result<()>;
}

/// The reason why a report is incomplete.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Reading the events failed.
    #[error(transparent)]
    UseCase(#[from] UseCaseError),
    /// Writing to the receiver failed.
    #[error("cannot send the report: {0}")]
    Sink(#[from] io::Error),
}

impl From<StoreError> for ReportError {
    fn from(error: StoreError) -> Self {
        Self::UseCase(error.into())
    }
}

/// Creates a report: first collects the columns, then passes on the rows, ordered by timestamp and reference. Memory use does
/// not grow with the number of events.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::TooMuch`] if there are more columns than a report supports.
/// - [`ReportError::Sink`] if the receiver fails.
///
/// The first two are returned before any output is written.
pub fn report_usage(
    services: &Services,
    principal: &Principal,
    of: &ReportOf,
    sink: &mut dyn ReportSink,
) -> Result<(), ReportError> {
    let organization = allow(principal, UseCase::ReportUsage)?;
    let mut handed_over = false;
    transact(&*services.store, Access::Read, |tx| {
        if handed_over {
            // The output that was already written cannot be undone, so the transaction cannot be retried.
            return Err(StoreError::Contended.into());
        }
        let scope = match of {
            ReportOf::Nothing => None,
            ReportOf::Events(query) => query.resolve(tx, organization)?.map(EventScope::Now),
            ReportOf::Document(document_ref) => Some(of_document(
                &tx.document(organization, *document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?,
            )),
        };
        let columns = match &scope {
            Some(scope) => columns(tx, organization, scope, sink)?,
            None => ReportColumns::new(ReportKeys::default()),
        };
        handed_over = true;
        sink.start(columns)?;
        match &scope {
            Some(scope) => hand_over(tx, organization, scope, sink),
            None => Ok(()),
        }
    })
}

fn of_document(document: &Document) -> EventScope {
    let DocumentHead { customer_id, contract_ref, document_ref, .. } = document.head;
    if matches!(document.lifecycle, Lifecycle::Void(_)) {
        // A void document bills nothing. The events still placed on it wait for its replacement.
        let (document_ref, contract_ref) = (Some(document_ref), Some(contract_ref));
        return EventScope::Now(EventFilter {
            customer_id: Some(customer_id),
            document_ref,
            contract_ref,
            ..EventFilter::default()
        });
    }
    EventScope::Billed(BilledDocumentKey { customer_id, contract_ref, document_ref })
}

fn columns(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    scope: &EventScope,
    sink: &dyn ReportSink,
) -> Result<ReportColumns, ReportError> {
    let (mut keys, mut seen, mut ended) = (ReportKeys::default(), 0, None);
    tx.visit_report_data(organization, scope, &mut |data| {
        seen += 1;
        let step = match keys.add(&data) {
            Ok(()) if seen % ASK_EVERY > 0 || sink.is_wanted() => return ControlFlow::Continue(()),
            Ok(()) => io::Error::from(io::ErrorKind::BrokenPipe).into(),
            Err(error) => too_many_columns(error).into(),
        };
        ended = Some(step);
        ControlFlow::Break(())
    })?;
    ended.map_or_else(|| Ok(ReportColumns::new(keys)), Err)
}

fn too_many_columns(error: TooManyKeys) -> UseCaseError {
    let detail = format!("{error}: choose a shorter range from `from` to `to`, or one customer or usage product");
    UseCaseError::TooMuch { code: "too_many_columns", detail }
}

fn hand_over(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    scope: &EventScope,
    sink: &mut dyn ReportSink,
) -> Result<(), ReportError> {
    let mut ended = Ok(());
    tx.visit_reported(organization, scope, &mut |event| match sink.row(&event) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            ended = Err(error.into());
            ControlFlow::Break(())
        }
    })?;
    ended
}
