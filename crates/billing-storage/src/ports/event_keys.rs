//! Idempotency keys of events, as digests. An event keeps its key forever. A response is stored only when it contains
//! more than the event's document.

use std::collections::{BTreeMap, HashMap};

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ports::{EventKeys, StoreResult};
use billing_domain::refs::{CustomerId, DocumentRef, EventRef, OrganizationId};
use billing_domain::usage::{AnswerForm, EventKeyRecord, FactsDigest, NewEventKeyRecord};
use diesel::prelude::*;
use diesel::sql_types::Nullable;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{MAX_BINDS, owned};
use crate::failure::StatementError;
use crate::in_list::{Value, one_of_rows};
use crate::json::{answer_of_place, form_of};
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_event_keys, usage_events};
use crate::sql_types::Id;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{InsertRows, UpdateRows, column};

#[diesel::declare_sql_function]
extern "SQL" {
    /// Returns the first value that is not NULL.
    #[sql_name = "coalesce"]
    fn first_id(first: Nullable<Id>, second: Id) -> Id;
}

/// Returns the document in the response to an event's key.
pub(super) fn answered_document() -> first_id<usage_events::answered_document_id, usage_events::document_id> {
    first_id(usage_events::answered_document_id, usage_events::document_id)
}

/// Returns the digest that identifies a key.
pub(super) fn key_digest(key: &str) -> Uuid {
    Uuid::from_bytes(digest_16(key))
}

/// Returns the first half of a text's SHA-256.
pub(super) fn digest_16(text: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let [first, ..] = *hash.as_chunks::<16>().0 else { return [0; 16] };
    first
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_event_keys)]
struct KeyRow {
    customer_id: Cell<Uuid>,
    key_digest: Cell<Uuid>,
    event_id: Cell<Uuid>,
    body_digest: Cell<Uuid>,
    answer: Option<String>,
}

/// An event, the document in its response, and that document's number.
type PlaceRow = (Cell<Uuid>, Cell<Uuid>, String, String, i64);

impl Transaction<'_> {
    /// Rebuilds the responses of events that have no stored response.
    fn answers_of_places(&mut self, events: &[(CustomerId, Uuid)]) -> StoreResult<HashMap<Uuid, String>> {
        if events.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<PlaceRow> = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(
                documents::table
                    .on(documents::document_id.eq(answered_document()).and(documents::customer_id.eq(usage_events::customer_id)))
            )
            .filter(
                one_of_rows(
                    "usage_events.event_id, usage_events.customer_id",
                    events.iter().map(|(customer_id, event)| vec![Value::Id(*event), Value::Id(customer_id.as_uuid())]),
                )
                .on_nodes(self.is_spread)
                .joining("documents.customer_id")
            )
            .select((
                usage_events::event_id,
                documents::document_id,
                documents::number_prefix,
                documents::kind,
                documents::sequence
            ))
            .load(conn))?;
        let read = |(event_id, document_id, prefix, kind, sequence): PlaceRow| {
            let event = Row::new("usage_events", "").cell("event_id", event_id)?;
            let document = DocumentRef::from_uuid(Row::new("usage_events", event).cell("answered_document_id", document_id)?);
            let row = Row::new("documents", document);
            let number = DocumentNumber {
                prefix: row.leaf("number_prefix", &prefix)?,
                kind: row.leaf("kind", &kind)?,
                sequence: row.checked("sequence", u64::try_from(sequence))?,
            };
            Ok((event, answer_of_place(EventRef::from_uuid(event), document, &number)))
        };
        rows.into_iter().map(read).collect()
    }
}

/// The maximum number of keys per statement.
const MAX_KEYS: usize = MAX_BINDS / 4;

/// A stored key: customer, key, digest of the facts, event, and the response if it is stored.
type FoundKey = (CustomerId, IdempotencyKey, FactsDigest, Uuid, Option<String>);

impl Transaction<'_> {
    /// Returns the stored keys among these.
    fn found_keys(&mut self, organization: OrganizationId, keys: &[(CustomerId, IdempotencyKey)]) -> StoreResult<Vec<FoundKey>> {
        let digested = keys.iter().map(|(customer_id, key)| ((customer_id.as_uuid(), key_digest(key.as_str())), key));
        let asked: BTreeMap<(Uuid, Uuid), &IdempotencyKey> = digested.collect();
        let mut rows: Vec<KeyRow> = Vec::new();
        for asked in Vec::from_iter(asked.keys()).chunks(MAX_KEYS) {
            let of_key = |(customer, digest): &&(Uuid, Uuid)| vec![Value::Id(*customer), Value::Id(*digest)];
            let some: Vec<(KeyRow, Cell<Uuid>)> = with_conn!(self, "usage_event_keys", |conn| usage_event_keys::table
                .inner_join(customers::table.on(customers::customer_id.eq(usage_event_keys::customer_id)))
                .filter(
                    one_of_rows("usage_event_keys.customer_id, usage_event_keys.key_digest", asked.iter().map(of_key))
                        .on_nodes(self.is_spread)
                        .joining("customers.customer_id")
                )
                .select((KeyRow::as_select(), customers::organization_id))
                .load(conn))?;
            rows.extend(owned("usage_event_keys", organization, some)?);
        }
        let mut found = Vec::with_capacity(rows.len());
        for KeyRow { customer_id, key_digest, event_id, body_digest, answer } in rows {
            let digest = Row::new("usage_event_keys", "").cell("key_digest", key_digest)?;
            let row = Row::new("usage_event_keys", digest);
            let customer_id = row.cell("customer_id", customer_id)?;
            let key = asked.get(&(customer_id, digest)).ok_or_else(|| row.corrupt("key_digest", "nobody asked for it"))?;
            let facts = FactsDigest(row.cell("body_digest", body_digest)?.into_bytes());
            let event_id = row.cell("event_id", event_id)?;
            found.push((CustomerId::from_uuid(customer_id), (*key).clone(), facts, event_id, answer));
        }
        Ok(found)
    }
}

impl EventKeys for Transaction<'_> {
    fn event_key_records(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<Vec<(CustomerId, EventKeyRecord)>> {
        let found = self.found_keys(organization, keys)?;
        let unsaid = found.iter().filter(|(.., answer)| answer.is_none());
        let unsaid: Vec<(CustomerId, Uuid)> = unsaid.map(|(customer_id, _, _, event, _)| (*customer_id, *event)).collect();
        let mut made: HashMap<Uuid, String> = HashMap::new();
        for unsaid in unsaid.chunks(MAX_KEYS) {
            made.extend(self.answers_of_places(unsaid)?);
        }
        let mut kept = Vec::with_capacity(found.len());
        for (customer_id, key, facts, event, answer) in found {
            let row = Row::new("usage_event_keys", key_digest(key.as_str()));
            let form = answer.as_deref().map_or(AnswerForm::Place, form_of);
            let answer = answer.or_else(|| made.remove(&event));
            let answer = answer.ok_or_else(|| row.corrupt("event_id", "the event or its document is not there"))?;
            kept.push((customer_id, EventKeyRecord { key, facts, event_ref: EventRef::from_uuid(event), answer, form }));
        }
        kept.sort_by(|(a, kept), (b, other)| (a, &kept.key).cmp(&(b, &other.key)));
        Ok(kept)
    }

    fn delivered_facts(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, IdempotencyKey)],
    ) -> StoreResult<BTreeMap<(CustomerId, IdempotencyKey), FactsDigest>> {
        let found = self.found_keys(organization, keys)?;
        Ok(found.into_iter().map(|(customer_id, key, facts, ..)| ((customer_id, key), facts)).collect())
    }

    fn save_event_keys(&mut self, _organization: OrganizationId, taken: &[(CustomerId, NewEventKeyRecord)]) -> StoreResult<()> {
        // A fixed order prevents deadlocks between transactions that save the same keys.
        let mut rows: Vec<(Uuid, Uuid, &NewEventKeyRecord)> = taken
            .iter()
            .map(|(customer_id, record)| (customer_id.as_uuid(), key_digest(record.kept.key.as_str()), record))
            .collect();
        rows.sort_by_key(|(customer_id, digest, _)| (*customer_id, *digest));
        let answer = |(_, _, record): &'_ (Uuid, Uuid, &NewEventKeyRecord)| {
            let NewEventKeyRecord { kept, document_ref, document_number } = record;
            let is_made_again = answer_of_place(kept.event_ref, *document_ref, document_number) == kept.answer;
            (!is_made_again).then(|| kept.answer.clone())
        };
        let columns = vec![
            ("customer_id", column(&rows, |(customer_id, ..)| *customer_id)),
            ("key_digest", column(&rows, |(_, digest, _)| *digest)),
            ("event_id", column(&rows, |(.., record)| record.kept.event_ref.as_uuid())),
            ("body_digest", column(&rows, |(.., record)| Uuid::from_bytes(record.kept.facts.0))),
            ("answer", column(&rows, answer)),
        ];
        if self.insert_rows(InsertRows::new("usage_event_keys", columns))? < rows.len() {
            return Err(self.remember(StatementError::Contended));
        }
        Ok(())
    }

    fn update_event_keys(
        &mut self,
        _organization: OrganizationId,
        delivered: &[(CustomerId, FactsDigest, EventKeyRecord)],
    ) -> StoreResult<()> {
        let keys = vec![
            ("customer_id", column(delivered, |(customer_id, ..)| customer_id.as_uuid())),
            ("key_digest", column(delivered, |(.., record)| key_digest(record.key.as_str()))),
        ];
        let changes = vec![
            ("body_digest", column(delivered, |(.., record)| Uuid::from_bytes(record.facts.0))),
            // The response names the document of this delivery, and the event may move to another one later.
            ("answer", column(delivered, |(.., record)| Some(record.answer.clone()))),
        ];
        let before = vec![("before", column(delivered, |(_, before, _)| Uuid::from_bytes(before.0)))];
        let update = UpdateRows::new("usage_event_keys", keys, changes)
            .reading(before)
            .only(" AND usage_event_keys.body_digest = {before}");
        if self.update_rows(update)? < delivered.len() {
            return Err(self.remember(StatementError::Contended));
        }
        Ok(())
    }
}
