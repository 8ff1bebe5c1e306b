//! Imports of files, and the events that each import created.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::RequestId;
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::imports::{ImportRecord, ImportUndo, ImportedDocument, ImportedEvent, ImportedFileFacts};
use billing_domain::money::Currency;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{ImportFilter, Lock, MadePart, StoreResult, UsageImports};
use billing_domain::refs::{CustomerId, CustomerRef, DocumentRef, EventRef, ImportPartRef, ImportRef, OrganizationId};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event_keys::digest_16;
use super::update_lists::after_position;
use super::{MAX_BINDS, counted, limits, stored};
use crate::in_list::{Value, one_of_rows};
use crate::row::{Cell, Row, to_json};
use crate::schema::{usage_event_keys, usage_import_events, usage_imports};
use crate::sql_types::{Bound, JsonText};
use crate::text_value::{self, TextValue as _};
use crate::tx::{Transaction, load_held, with_conn};

/// The key digest of an event without a key.
const NO_KEY: Uuid = Uuid::nil();
/// The bytes of an event in a part: its identifier and its key's digest.
const EVENT_BYTES: usize = 32;
/// The same size in a query that counts events.
const EVENTS_OF_PARTS: &str = "COALESCE(SUM(LENGTH(events)), 0) / 32";
/// The maximum number of keys per statement.
const MAX_KEYS: usize = MAX_BINDS / 4;

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_imports)]
struct ImportRow {
    import_id: Cell<Uuid>,
    file_name: Option<String>,
    bytes: i64,
    sha256: Vec<u8>,
    actor: String,
    request_id: Option<String>,
    begun_at: Cell<Timestamp>,
    ended_at: Option<Cell<Timestamp>>,
    updated_at: Cell<Timestamp>,
    stopped_at_line: Option<i64>,
    recorded: i64,
    updated: i64,
    already_there: i64,
    refused: i64,
    skipped: i64,
    documents: JsonText,
    more_documents: i64,
    undone: Option<JsonText>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = usage_imports, treat_none_as_null = true)]
struct ImportColumns {
    file_name: Option<String>,
    bytes: i64,
    sha256: Vec<u8>,
    actor: String,
    request_id: Option<String>,
    begun_at: Bound<Timestamp>,
    ended_at: Option<Bound<Timestamp>>,
    updated_at: Bound<Timestamp>,
    stopped_at_line: Option<i64>,
    recorded: i64,
    updated: i64,
    already_there: i64,
    refused: i64,
    skipped: i64,
    documents: JsonText,
    more_documents: i64,
    undone: Option<JsonText>,
}

/// A document, in one column with the others.
#[derive(Serialize, Deserialize)]
struct DocumentJson {
    #[serde(with = "text_value")]
    document: DocumentRef,
    #[serde(with = "text_value")]
    number: DocumentNumber,
    #[serde(with = "text_value")]
    customer: CustomerRef,
    #[serde(with = "text_value")]
    currency: Currency,
    events: u64,
}

/// The progress of an undo, in one column.
#[derive(Serialize, Deserialize)]
struct ImportUndoJson {
    #[serde(with = "text_value")]
    by: AuditActor,
    #[serde(with = "text_value")]
    begun_at: Timestamp,
    #[serde(with = "text_value::option")]
    ended_at: Option<Timestamp>,
    deleted: u64,
    already_deleted: u64,
}

impl ImportRow {
    fn read(self) -> StoreResult<ImportRecord> {
        let import_id = Row::new("usage_imports", "").cell("import_id", self.import_id)?;
        let row = Row::new("usage_imports", import_id);
        let documents: Vec<DocumentJson> = row.json("documents", &self.documents)?;
        let document = |DocumentJson { document, number, customer, currency, events }| ImportedDocument {
            document_ref: document,
            number,
            customer_ref: customer,
            currency,
            events,
        };
        let undone: Option<ImportUndoJson> = self.undone.map(|undone| row.json("undone", &undone)).transpose()?;
        let undone = undone.map(|ImportUndoJson { by, begun_at, ended_at, deleted, already_deleted }| ImportUndo {
            author: by,
            begun_at,
            ended_at,
            deleted,
            already_deleted,
        });
        Ok(ImportRecord {
            import_ref: ImportRef::from_uuid(import_id),
            file: ImportedFileFacts {
                name: self.file_name,
                bytes: counted(self.bytes)?,
                sha256: row.checked("sha256", self.sha256.as_slice().try_into())?,
            },
            author: row.leaf("actor", &self.actor)?,
            request_id: row.optional_leaf("request_id", self.request_id.as_deref())?,
            begun_at: row.cell("begun_at", self.begun_at)?,
            ended_at: row.optional("ended_at", self.ended_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
            stopped_at: self.stopped_at_line.map(counted).transpose()?,
            recorded: counted(self.recorded)?,
            updated: counted(self.updated)?,
            already_there: counted(self.already_there)?,
            refused: counted(self.refused)?,
            skipped: counted(self.skipped)?,
            documents: documents.into_iter().map(document).collect(),
            more_documents: counted(self.more_documents)?,
            undone,
        })
    }
}

impl ImportColumns {
    fn of(import: &ImportRecord) -> StoreResult<Self> {
        let document =
            |ImportedDocument { document_ref, number, customer_ref, currency, events }: &ImportedDocument| DocumentJson {
                document: *document_ref,
                number: number.clone(),
                customer: customer_ref.clone(),
                currency: *currency,
                events: *events,
            };
        let undone = |undone: &ImportUndo| {
            let ImportUndo { author, begun_at, ended_at, deleted, already_deleted } = *undone;
            to_json(&ImportUndoJson { by: author, begun_at, ended_at, deleted, already_deleted })
        };
        Ok(Self {
            file_name: import.file.name.clone(),
            bytes: stored(import.file.bytes)?,
            sha256: import.file.sha256.to_vec(),
            actor: import.author.to_text(),
            request_id: import.request_id.as_ref().map(RequestId::to_string),
            begun_at: Bound(import.begun_at),
            ended_at: import.ended_at.map(Bound),
            updated_at: Bound(import.updated_at),
            stopped_at_line: import.stopped_at.map(stored).transpose()?,
            recorded: stored(import.recorded)?,
            updated: stored(import.updated)?,
            already_there: stored(import.already_there)?,
            refused: stored(import.refused)?,
            skipped: stored(import.skipped)?,
            documents: to_json(&import.documents.iter().map(document).collect::<Vec<_>>())?,
            more_documents: stored(import.more_documents)?,
            undone: import.undone.as_ref().map(undone).transpose()?,
        })
    }
}

/// Parses a part: the identifier of each event and its key's digest.
fn events_of(bytes: &[u8], part: ImportPartRef) -> StoreResult<Vec<(Uuid, Uuid)>> {
    let (events, []) = bytes.as_chunks::<EVENT_BYTES>() else {
        return Err(Row::new("usage_import_events", part).corrupt("events", "is not as long as events are"));
    };
    let read = |event: &[u8; EVENT_BYTES]| {
        let mut halves = event.as_chunks::<16>().0.iter().copied().map(Uuid::from_bytes);
        (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
    };
    Ok(events.iter().map(read).collect())
}

fn bytes_of(events: impl Iterator<Item = (Uuid, Uuid)>) -> Vec<u8> {
    events.flat_map(|(event, key)| event.into_bytes().into_iter().chain(key.into_bytes())).collect()
}

impl UsageImports for Transaction<'_> {
    fn put_import(&mut self, organization: OrganizationId, import: &ImportRecord) -> StoreResult<()> {
        let columns = ImportColumns::of(import)?;
        with_conn!(self, "usage_imports", |conn| diesel::insert_into(usage_imports::table)
            .values((
                usage_imports::organization_id.eq(Bound(organization.as_uuid())),
                usage_imports::import_id.eq(Bound(import.import_ref.as_uuid())),
                &columns,
            ))
            .on_conflict((usage_imports::organization_id, usage_imports::import_id))
            .do_update()
            .set(&columns)
            .execute(conn))?;
        Ok(())
    }

    fn import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>> {
        let found: Option<ImportRow> = with_conn!(self, "usage_imports", |conn| usage_imports::table
            .find((Bound(organization.as_uuid()), Bound(import_ref.as_uuid())))
            .select(ImportRow::as_select())
            .first(conn)
            .optional())?;
        found.map(ImportRow::read).transpose()
    }

    fn hold_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>> {
        let found: Vec<ImportRow> = load_held!(
            self,
            "usage_imports",
            Some(Lock::Exclusive),
            usage_imports::table
                .find((Bound(organization.as_uuid()), Bound(import_ref.as_uuid())))
                .select(ImportRow::as_select())
        )?;
        found.into_iter().next().map(ImportRow::read).transpose()
    }

    fn listed_imports(
        &mut self,
        organization: OrganizationId,
        filter: &ImportFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<ImportRecord>> {
        let (limit, offset) = limits(page);
        let (after, backward) = (filter.updates.after.as_ref(), page.is_backward());
        let (rows, total): (Vec<ImportRow>, i64) = with_conn!(self, "usage_imports", |conn| {
            let narrowed = || {
                let own = usage_imports::organization_id.eq(Bound(organization.as_uuid()));
                let mut query = usage_imports::table.filter(own).into_boxed::<Db>();
                if let Some(from) = filter.from {
                    query = query.filter(usage_imports::begun_at.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(usage_imports::begun_at.lt(Bound(to)));
                }
                if let Some(name) = &filter.name {
                    query = query.filter(usage_imports::file_name.eq(name.as_str()));
                }
                if let Some(since) = filter.updates.since {
                    query = query.filter(usage_imports::updated_at.ge(Bound(since)));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = after_position!(narrowed(), usage_imports::updated_at, usage_imports::import_id, id, after, backward);
            let ordered = match (by, backward) {
                (ListSortKey::Created, false) => query.order((usage_imports::begun_at, usage_imports::import_id)),
                (ListSortKey::Created, true) => query.order((usage_imports::begun_at.desc(), usage_imports::import_id.desc())),
                (ListSortKey::Updated, false) => query.order((usage_imports::updated_at, usage_imports::import_id)),
                (ListSortKey::Updated, true) => query.order((usage_imports::updated_at.desc(), usage_imports::import_id.desc())),
            };
            Ok((ordered.limit(limit).offset(offset).select(ImportRow::as_select()).load(conn)?, total))
        })?;
        let items = rows.into_iter().map(ImportRow::read).collect::<StoreResult<_>>()?;
        Ok(Page { items, total: counted(total)? })
    }

    fn add_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[ImportedEvent],
    ) -> StoreResult<()> {
        let digest = |event: &ImportedEvent| event.key.as_ref().map_or(NO_KEY, |key| Uuid::from_bytes(digest_16(key.as_str())));
        let bytes = bytes_of(events.iter().map(|event| (event.event_ref.as_uuid(), digest(event))));
        with_conn!(self, "usage_import_events", |conn| diesel::insert_into(usage_import_events::table)
            .values((
                usage_import_events::organization_id.eq(Bound(organization.as_uuid())),
                usage_import_events::import_id.eq(Bound(import_ref.as_uuid())),
                usage_import_events::part_id.eq(Bound(part.as_uuid())),
                usage_import_events::events.eq(&bytes),
            ))
            .execute(conn))?;
        Ok(())
    }

    fn imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        after: Option<ImportPartRef>,
    ) -> StoreResult<Option<MadePart>> {
        let found: Option<(Cell<Uuid>, Vec<u8>)> = with_conn!(self, "usage_import_events", |conn| usage_import_events::table
            .filter(usage_import_events::organization_id.eq(Bound(organization.as_uuid())))
            .filter(usage_import_events::import_id.eq(Bound(import_ref.as_uuid())))
            .filter(usage_import_events::part_id.gt(Bound(after.map(ImportPartRef::as_uuid).unwrap_or_default())))
            .order(usage_import_events::part_id)
            .select((usage_import_events::part_id, usage_import_events::events))
            .first(conn)
            .optional())?;
        let Some((part, bytes)) = found else { return Ok(None) };
        let part = ImportPartRef::from_uuid(Row::new("usage_import_events", import_ref).cell("part_id", part)?);
        let events = events_of(&bytes, part)?.into_iter().map(|(event, _)| EventRef::from_uuid(event)).collect();
        Ok(Some(MadePart { part, events }))
    }

    fn count_imported_events(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<u64> {
        let count: i64 = with_conn!(self, "usage_import_events", |conn| usage_import_events::table
            .filter(usage_import_events::organization_id.eq(Bound(organization.as_uuid())))
            .filter(usage_import_events::import_id.eq(Bound(import_ref.as_uuid())))
            .select(sql::<BigInt>(EVENTS_OF_PARTS))
            .first(conn))?;
        counted(count)
    }

    fn forget_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[(CustomerId, EventRef)],
    ) -> StoreResult<()> {
        let own = (Bound(organization.as_uuid()), Bound(import_ref.as_uuid()), Bound(part.as_uuid()));
        let bytes: Option<Vec<u8>> = with_conn!(self, "usage_import_events", |conn| usage_import_events::table
            .find(own)
            .select(usage_import_events::events)
            .first(conn)
            .optional())?;
        let noted = events_of(&bytes.unwrap_or_default(), part)?;
        let gone: BTreeMap<Uuid, CustomerId> =
            events.iter().map(|(customer_id, event_ref)| (event_ref.as_uuid(), *customer_id)).collect();
        // The order in which keys are saved, so that transactions do not deadlock.
        let keys: BTreeSet<(Uuid, Uuid, Uuid)> = noted
            .iter()
            .filter(|(_, key)| *key != NO_KEY)
            .filter_map(|(event, key)| Some((gone.get(event)?.as_uuid(), *key, *event)))
            .collect();
        for keys in Vec::from_iter(keys).chunks(MAX_KEYS) {
            let values =
                |(customer, key, event): &(Uuid, Uuid, Uuid)| vec![Value::Id(*customer), Value::Id(*key), Value::Id(*event)];
            with_conn!(self, "usage_event_keys", |conn| diesel::delete(usage_event_keys::table)
                .filter(
                    one_of_rows(
                        "usage_event_keys.customer_id, usage_event_keys.key_digest, usage_event_keys.event_id",
                        keys.iter().map(values)
                    )
                    .on_nodes(self.is_spread)
                )
                .execute(conn))?;
        }
        let left = bytes_of(noted.into_iter().filter(|(event, _)| !gone.contains_key(event)));
        with_conn!(self, "usage_import_events", |conn| if left.is_empty() {
            diesel::delete(usage_import_events::table.find(own)).execute(conn)
        } else {
            diesel::update(usage_import_events::table.find(own)).set(usage_import_events::events.eq(&left)).execute(conn)
        })?;
        Ok(())
    }

    fn forget_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<()> {
        let own = (Bound(organization.as_uuid()), Bound(import_ref.as_uuid()));
        with_conn!(self, "usage_import_events", |conn| diesel::delete(usage_import_events::table)
            .filter(usage_import_events::organization_id.eq(own.0))
            .filter(usage_import_events::import_id.eq(own.1))
            .execute(conn))?;
        with_conn!(self, "usage_imports", |conn| diesel::delete(usage_imports::table.find(own)).execute(conn))?;
        Ok(())
    }

    fn purge_imports(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let old: Vec<(Cell<Uuid>, Cell<Uuid>)> = with_conn!(self, "usage_imports", |conn| usage_imports::table
            .filter(usage_imports::begun_at.lt(Bound(before)))
            .order(usage_imports::begun_at)
            .limit(i64::from(limit))
            .select((usage_imports::organization_id, usage_imports::import_id))
            .load(conn))?;
        let went = old.len();
        for (organization, import) in old {
            let row = Row::new("usage_imports", "by age");
            let organization = OrganizationId::from_uuid(row.cell("organization_id", organization)?);
            self.forget_import(organization, ImportRef::from_uuid(row.cell("import_id", import)?))?;
        }
        stored(went)
    }
}
