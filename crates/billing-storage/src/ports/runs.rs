//! Records of billing runs.

use std::fmt;

use billing_domain::access::RequestId;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::ledger::BillingFailure;
use billing_domain::money::Money;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{BillingRuns, RunFilter, StoreResult};
use billing_domain::refs::{BillingRunRef, ContractRef, DocumentRef, OrganizationId};
use billing_domain::runs::{BillingRunRecord, DocumentFailure, FailedDocument, RunDocument, RunFailure, RunHead};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::update_lists::after_position;
use super::{counted, limits, stored};
use crate::row::{Cell, Row, to_json};
use crate::schema::billing_runs;
use crate::sql_types::{Bound, JsonText};
use crate::text_value::{self, TextValue as _};
use crate::tx::{Transaction, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = billing_runs)]
struct HeadRow {
    run_id: Cell<Uuid>,
    actor: String,
    request_id: Option<String>,
    begun_at: Cell<Timestamp>,
    ended_at: Option<Cell<Timestamp>>,
    updated_at: Cell<Timestamp>,
    cut_short: bool,
    contracts: i64,
    issued: i64,
    voided: i64,
    failed: i64,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = billing_runs, treat_none_as_null = true)]
struct RunColumns {
    actor: String,
    request_id: Option<String>,
    begun_at: Bound<Timestamp>,
    ended_at: Option<Bound<Timestamp>>,
    updated_at: Bound<Timestamp>,
    cut_short: bool,
    contracts: i64,
    issued: i64,
    voided: i64,
    failed: i64,
    documents: JsonText,
    failures: JsonText,
}

/// A document, in one column with the others.
#[derive(Serialize, Deserialize)]
struct DocumentJson {
    #[serde(with = "text_value")]
    document: DocumentRef,
    #[serde(with = "text_value")]
    number: DocumentNumber,
    #[serde(with = "text_value")]
    total: Money,
    voided: bool,
}

/// A billing failure, in one column with the others; rows of early releases contain no document.
#[derive(Serialize, Deserialize)]
struct FailureJson {
    #[serde(with = "text_value")]
    contract: ContractRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<FailedDocumentJson>,
    code: String,
    detail: String,
}

/// A document that could not be issued.
#[derive(Serialize, Deserialize)]
pub(super) struct FailedDocumentJson {
    #[serde(with = "text_value")]
    period_start: Date,
    /// The day after the last.
    #[serde(with = "text_value")]
    period_end: Date,
    #[serde(default, with = "text_value::option", skip_serializing_if = "Option::is_none")]
    document: Option<DocumentRef>,
}

/// What the last notification about a contract that could not be billed states, in one column.
#[derive(Serialize, Deserialize)]
pub(super) struct BillingFailureJson {
    count: u64,
    first: Vec<DocumentFailureJson>,
}

#[derive(Serialize, Deserialize)]
struct DocumentFailureJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<FailedDocumentJson>,
    code: String,
}

impl BillingFailureJson {
    pub(super) fn of(failure: &BillingFailure) -> Self {
        let of_document = |DocumentFailure { document, code }: &DocumentFailure| DocumentFailureJson {
            failed: document.map(FailedDocumentJson::of),
            code: code.clone(),
        };
        Self { count: failure.count, first: failure.first.iter().map(of_document).collect() }
    }

    pub(super) fn read<K: fmt::Display>(self, row: &Row<K>, notified_at: Timestamp) -> StoreResult<BillingFailure> {
        let of_document = |DocumentFailureJson { failed, code }| {
            let document = failed.map(|failed| failed.read(row, "failures")).transpose()?;
            Ok(DocumentFailure { document, code })
        };
        let first = self.first.into_iter().map(of_document).collect::<StoreResult<_>>()?;
        Ok(BillingFailure { count: self.count, first, notified_at })
    }
}

impl FailedDocumentJson {
    pub(super) fn of(FailedDocument { period, document_ref }: FailedDocument) -> Self {
        Self { period_start: period.start(), period_end: period.end(), document: document_ref }
    }

    pub(super) fn read<K: fmt::Display>(self, row: &Row<K>, column: &'static str) -> StoreResult<FailedDocument> {
        let period = Period::new(self.period_start, self.period_end);
        let period = period.ok_or_else(|| row.corrupt(column, "a period without a day"))?;
        Ok(FailedDocument { period, document_ref: self.document })
    }
}

impl HeadRow {
    fn read(self) -> StoreResult<RunHead> {
        let Self { run_id, actor, request_id, begun_at, ended_at, updated_at, cut_short, contracts, issued, voided, failed } =
            self;
        let run_id = Row::new("billing_runs", "").cell("run_id", run_id)?;
        let row = Row::new("billing_runs", run_id);
        Ok(RunHead {
            run_ref: BillingRunRef::from_uuid(run_id),
            author: row.leaf("actor", &actor)?,
            request_id: row.optional_leaf("request_id", request_id.as_deref())?,
            begun_at: row.cell("begun_at", begun_at)?,
            ended_at: row.optional("ended_at", ended_at)?,
            updated_at: row.cell("updated_at", updated_at)?,
            cut_short,
            contracts: counted(contracts)?,
            issued: counted(issued)?,
            voided: counted(voided)?,
            failed: counted(failed)?,
        })
    }
}

impl RunColumns {
    fn of(BillingRunRecord { head, documents, failures }: &BillingRunRecord) -> StoreResult<Self> {
        let document = |RunDocument { document_ref, number, total, voided }: &RunDocument| DocumentJson {
            document: *document_ref,
            number: number.clone(),
            total: *total,
            voided: *voided,
        };
        let failure = |RunFailure { contract_ref, document, code, detail }: &RunFailure| FailureJson {
            contract: *contract_ref,
            failed: document.map(FailedDocumentJson::of),
            code: code.clone(),
            detail: detail.clone(),
        };
        Ok(Self {
            actor: head.author.to_text(),
            request_id: head.request_id.as_ref().map(RequestId::to_string),
            begun_at: Bound(head.begun_at),
            ended_at: head.ended_at.map(Bound),
            updated_at: Bound(head.updated_at),
            cut_short: head.cut_short,
            contracts: stored(head.contracts)?,
            issued: stored(head.issued)?,
            voided: stored(head.voided)?,
            failed: stored(head.failed)?,
            documents: to_json(&documents.iter().map(document).collect::<Vec<_>>())?,
            failures: to_json(&failures.iter().map(failure).collect::<Vec<_>>())?,
        })
    }
}

impl BillingRuns for Transaction<'_> {
    fn put_billing_run(&mut self, organization: OrganizationId, run: &BillingRunRecord) -> StoreResult<()> {
        let columns = RunColumns::of(run)?;
        with_conn!(self, "billing_runs", |conn| diesel::insert_into(billing_runs::table)
            .values((
                billing_runs::organization_id.eq(Bound(organization.as_uuid())),
                billing_runs::run_id.eq(Bound(run.head.run_ref.as_uuid())),
                &columns,
            ))
            .on_conflict((billing_runs::organization_id, billing_runs::run_id))
            .do_update()
            .set(&columns)
            .execute(conn))?;
        Ok(())
    }

    fn billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<Option<BillingRunRecord>> {
        let found: Option<(HeadRow, JsonText, JsonText)> = with_conn!(self, "billing_runs", |conn| billing_runs::table
            .find((Bound(organization.as_uuid()), Bound(run_ref.as_uuid())))
            .select((HeadRow::as_select(), billing_runs::documents, billing_runs::failures))
            .first(conn)
            .optional())?;
        let Some((head, documents, failures)) = found else { return Ok(None) };
        let row = Row::new("billing_runs", run_ref);
        let documents: Vec<DocumentJson> = row.json("documents", &documents)?;
        let failures: Vec<FailureJson> = row.json("failures", &failures)?;
        let document =
            |DocumentJson { document, number, total, voided }| RunDocument { document_ref: document, number, total, voided };
        let failure = |FailureJson { contract, failed, code, detail }| {
            let document = failed.map(|failed| failed.read(&row, "failures")).transpose()?;
            Ok(RunFailure { contract_ref: contract, document, code, detail })
        };
        Ok(Some(BillingRunRecord {
            head: head.read()?,
            documents: documents.into_iter().map(document).collect(),
            failures: failures.into_iter().map(failure).collect::<StoreResult<_>>()?,
        }))
    }

    fn listed_billing_runs(
        &mut self,
        organization: OrganizationId,
        filter: &RunFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<RunHead>> {
        let (limit, offset) = limits(page);
        let (after, backward) = (filter.updates.after.as_ref(), page.is_backward());
        let (rows, total): (Vec<HeadRow>, i64) = with_conn!(self, "billing_runs", |conn| {
            let narrowed = || {
                let own = billing_runs::organization_id.eq(Bound(organization.as_uuid()));
                let mut query = billing_runs::table.filter(own).into_boxed::<Db>();
                if let Some(from) = filter.from {
                    query = query.filter(billing_runs::begun_at.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(billing_runs::begun_at.lt(Bound(to)));
                }
                if let Some(since) = filter.updates.since {
                    query = query.filter(billing_runs::updated_at.ge(Bound(since)));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = after_position!(narrowed(), billing_runs::updated_at, billing_runs::run_id, id, after, backward);
            let ordered = match (by, backward) {
                (ListSortKey::Created, false) => query.order((billing_runs::begun_at, billing_runs::run_id)),
                (ListSortKey::Created, true) => query.order((billing_runs::begun_at.desc(), billing_runs::run_id.desc())),
                (ListSortKey::Updated, false) => query.order((billing_runs::updated_at, billing_runs::run_id)),
                (ListSortKey::Updated, true) => query.order((billing_runs::updated_at.desc(), billing_runs::run_id.desc())),
            };
            Ok((ordered.limit(limit).offset(offset).select(HeadRow::as_select()).load(conn)?, total))
        })?;
        let items = rows.into_iter().map(HeadRow::read).collect::<StoreResult<_>>()?;
        Ok(Page { items, total: counted(total)? })
    }

    fn forget_billing_run(&mut self, organization: OrganizationId, run_ref: BillingRunRef) -> StoreResult<()> {
        with_conn!(self, "billing_runs", |conn| diesel::delete(
            billing_runs::table.find((Bound(organization.as_uuid()), Bound(run_ref.as_uuid())))
        )
        .execute(conn))?;
        Ok(())
    }

    fn purge_billing_runs(&mut self, before: Timestamp) -> StoreResult<u64> {
        let went = with_conn!(self, "billing_runs", |conn| diesel::delete(billing_runs::table)
            .filter(billing_runs::begun_at.lt(Bound(before)))
            .execute(conn))?;
        stored(went)
    }
}
