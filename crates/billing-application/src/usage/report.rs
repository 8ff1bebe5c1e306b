//! The usage report: its columns first, then its rows, from one view of the store.

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

/// Events that are looked at between two questions whether the report is still wanted.
const ASK_EVERY: u64 = 1_000;

/// What a report is of.
#[derive(Clone, Debug)]
pub enum ReportOf {
    /// No event: what a reference that can't exist finds.
    Nothing,
    /// Events that pass a query, as they are now. A reference that names nothing finds nothing.
    Events(EventQuery),
    /// What a document bills: the events that stand on it; of an issued one, as they were when it was issued.
    Document(DocumentRef),
}

/// Takes a report, one row after the other.
pub trait ReportSink {
    /// Whether anybody still waits for the report.
    fn is_wanted(&self) -> bool;
    /// Takes the columns, before all rows.
    ///
    /// # Errors
    /// When it can take no more.
    fn start(&mut self, columns: ReportColumns) -> io::Result<()>;
    /// Takes a row.
    ///
    /// # Errors
    /// When it can take no more.
    fn row(&mut self, event: &ReportedEvent) -> io::Result<()>;
}

/// Why a report ended before its end.
#[derive(Debug, Error)]
pub enum ReportError {
    /// It can't be made.
    #[error(transparent)]
    UseCase(#[from] UseCaseError),
    /// It can't be handed over.
    #[error("the report can't be handed over: {0}")]
    Sink(#[from] io::Error),
}

impl From<StoreError> for ReportError {
    fn from(error: StoreError) -> Self {
        Self::UseCase(error.into())
    }
}

/// Makes a report: collects the columns, then hands over the rows by timestamp, then reference. The memory it takes
/// doesn't grow with the number of events.
///
/// # Errors
/// [`UseCaseError::Unknown`] document, [`UseCaseError::TooMuch`] for more columns than a report has, both before
/// anything is handed over; [`ReportError::Sink`].
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
            // What was handed over can't be taken back.
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
        // It bills nothing any more; what still stands on it waits for the one that replaces it.
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
    let detail = format!("{error}; ask for a shorter time from and to, or for one customer or usage product");
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
