//! The audit log.

use billing_domain::access::RequestId;
use billing_domain::audit::{AuditEntry, AuditedKind};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{AuditFilter, AuditLog, AuditPart, StoreResult};
use billing_domain::refs::{AuditRef, CustomerId, OrganizationId};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use uuid::Uuid;

use super::counted;
use crate::row::{Cell, Row};
use crate::schema::audit_log;
use crate::sql_types::{Bound, Id, Ts};
use crate::statement::Statement;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

/// The columns of an entry, in the order of [`Fields`].
const COLUMNS: &str = "SELECT audit_id, at, actor, action, subject, before, after, request_id";
type Columns = (Id, Ts, Text, Text, Text, Nullable<Text>, Nullable<Text>, Nullable<Text>);
type Fields = (Cell<Uuid>, Cell<Timestamp>, String, String, String, Option<String>, Option<String>, Option<String>);

/// Returns a resource as one column: its kind and its reference. No kind contains a space.
fn subject(kind: AuditedKind, reference: &str) -> String {
    format!("{} {reference}", kind.as_str())
}

fn read(fields: Fields) -> StoreResult<AuditEntry> {
    let (audit_id, at, actor, action, subject, before, after, request_id) = fields;
    let audit_id = Row::new("audit_log", "").cell("audit_id", audit_id)?;
    let row = Row::new("audit_log", audit_id);
    let (kind, reference) = subject.split_once(' ').ok_or_else(|| row.corrupt("subject", "has no kind"))?;
    Ok(AuditEntry {
        audit_ref: AuditRef::from_uuid(audit_id),
        at: row.cell("at", at)?,
        author: row.leaf("actor", &actor)?,
        action: row.leaf("action", &action)?,
        kind: row.leaf("subject", kind)?,
        reference: reference.to_owned(),
        before,
        after,
        request_id: row.optional_leaf("request_id", request_id.as_deref())?,
    })
}

/// Creates the part of a statement from FROM on, for entries that match a filter.
fn narrowed<R>(organization: OrganizationId, filter: &AuditFilter) -> Statement<R> {
    let mut s = Statement::new(" FROM audit_log WHERE organization_id = ");
    s.id(organization.as_uuid());
    let AuditFilter { author, action, kind, reference, from, to, request_id, without_access } = filter;
    let texts = [
        (" AND actor = ", author.map(|author| author.to_text())),
        (" AND action = ", action.map(|action| action.to_text())),
        (" AND request_id = ", request_id.as_ref().map(|id| id.as_str().to_owned())),
    ];
    for (condition, text) in texts {
        if let Some(text) = text {
            s.sql(condition).text(text);
        }
    }
    match (kind, reference) {
        (None, None) => {}
        (Some(kind), Some(reference)) => drop(s.sql(" AND subject = ").text(subject(*kind, reference))),
        (Some(kind), None) => drop(s.sql(" AND subject LIKE ").text(subject(*kind, "%"))),
        (None, Some(reference)) => {
            for (kind, before) in AuditedKind::ALL.iter().zip(std::iter::once(" AND subject IN (").chain(std::iter::repeat(", ")))
            {
                s.sql(before).text(subject(*kind, reference));
            }
            s.sql(")");
        }
    }
    if *without_access {
        for kind in [AuditedKind::ApiKey, AuditedKind::Administrator] {
            s.sql(" AND subject NOT LIKE ").text(subject(kind, "%"));
        }
    }
    for (condition, at) in [(" AND at >= ", from), (" AND at < ", to)] {
        if let Some(at) = at {
            s.sql(condition).ts(*at);
        }
    }
    s
}

impl AuditLog for Transaction<'_> {
    fn append_audit_entry(
        &mut self,
        organization: OrganizationId,
        customer: Option<CustomerId>,
        entry: &AuditEntry,
    ) -> StoreResult<()> {
        let beside = customer.map_or(organization.as_uuid(), CustomerId::as_uuid);
        with_conn!(self, "audit_log", |conn| diesel::insert_into(audit_log::table)
            .values((
                audit_log::audit_id.eq(Bound(entry.audit_ref.as_uuid())),
                audit_log::organization_id.eq(Bound(organization.as_uuid())),
                audit_log::beside.eq(Bound(beside)),
                audit_log::at.eq(Bound(entry.at)),
                audit_log::actor.eq(entry.author.to_text()),
                audit_log::action.eq(entry.action.as_str()),
                audit_log::subject.eq(subject(entry.kind, &entry.reference)),
                audit_log::before.eq(entry.before.as_deref()),
                audit_log::after.eq(entry.after.as_deref()),
                audit_log::request_id.eq(entry.request_id.as_ref().map(RequestId::as_str)),
            ))
            .execute(conn))?;
        Ok(())
    }

    fn audit_entries(
        &mut self,
        organization: OrganizationId,
        filter: &AuditFilter,
        part: AuditPart,
    ) -> StoreResult<Vec<AuditEntry>> {
        let mut s = narrowed::<()>(organization, filter).after::<Columns>(COLUMNS);
        if let Some(after) = part.after {
            s.sql(" AND (at, audit_id) < (").ts(after.at).sql(", ").id(after.audit_ref.as_uuid()).sql(")");
        }
        s.sql(" ORDER BY at DESC, audit_id DESC LIMIT ").number(i64::from(part.limit));
        if part.skip > 0 {
            s.sql(" OFFSET ").number(i64::try_from(part.skip).unwrap_or(i64::MAX));
        }
        let rows: Vec<Fields> = with_conn!(self, "audit_log", |conn| s.load(conn))?;
        rows.into_iter().map(read).collect()
    }

    fn count_audit_entries(&mut self, organization: OrganizationId, filter: &AuditFilter) -> StoreResult<u64> {
        let s = narrowed::<()>(organization, filter).after::<BigInt>("SELECT count(*)");
        counted(with_conn!(self, "audit_log", |conn| s.get_result(conn))?)
    }
}
