//! The keys that events were sent with, as digests: an event has one for ever. An answer is kept only where it says more than
//! where the event was put.

use std::collections::HashMap;

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::idempotency::{BodyDigest, IdempotencyKey};
use billing_domain::ports::{EventKeys, StoreResult};
use billing_domain::refs::{CustomerId, DocumentRef, EventRef, OrganizationId};
use billing_domain::usage::{KeptEvent, TakenEvent};
use diesel::prelude::*;
use diesel::sql_types::Nullable;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::MAX_BINDS;
use crate::failure::Failure;
use crate::json::answer_of_place;
use crate::one_of::one_of_ids;
use crate::row::{Cell, Row};
use crate::schema::{customers, documents, usage_event_keys, usage_events};
use crate::sql_types::{Bound, Id};
use crate::tx::{Transaction, with_conn};

/// Columns of a row.
const COLUMNS: usize = 5;

#[diesel::declare_sql_function]
extern "SQL" {
    /// The first that is there.
    #[sql_name = "coalesce"]
    fn first_id(first: Nullable<Id>, second: Id) -> Id;
}

/// The document that the answer to an event's key names.
pub(super) fn answered_document() -> first_id<usage_events::answered_document_id, usage_events::document_id> {
    first_id(usage_events::answered_document_id, usage_events::document_id)
}

/// What a key is known by.
pub(super) fn key_digest(key: &str) -> Uuid {
    Uuid::from_bytes(digest_16(key))
}

/// The first half of a text's SHA-256.
pub(crate) fn digest_16(text: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let [first, ..] = *hash.as_chunks::<16>().0 else { return [0; 16] };
    first
}

#[derive(Insertable)]
#[diesel(table_name = usage_event_keys, treat_none_as_default_value = false)]
struct NewKey<'a> {
    customer_id: Bound<Uuid>,
    key_digest: Bound<Uuid>,
    event_id: Bound<Uuid>,
    body_digest: Bound<Uuid>,
    answer: Option<&'a str>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_event_keys)]
struct KeyRow {
    key_digest: Cell<Uuid>,
    event_id: Cell<Uuid>,
    body_digest: Cell<Uuid>,
    answer: Option<String>,
}

/// An event, the document that its answer names, and that document's number.
type PlaceRow = (Cell<Uuid>, Cell<Uuid>, String, String, i64);

impl Transaction<'_> {
    /// What was answered to events of a customer of which it isn't kept.
    fn answers_of_places(&mut self, customer_id: CustomerId, events: &[Uuid]) -> StoreResult<HashMap<Uuid, String>> {
        if events.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<PlaceRow> = with_conn!(self, "usage_events", |conn| usage_events::table
            .inner_join(
                documents::table
                    .on(documents::document_id.eq(answered_document()).and(documents::customer_id.eq(usage_events::customer_id)))
            )
            .filter(usage_events::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_ids(usage_events::event_id, events.iter().copied()))
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

impl EventKeys for Transaction<'_> {
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[IdempotencyKey],
    ) -> StoreResult<Vec<KeptEvent>> {
        let asked: HashMap<Uuid, &IdempotencyKey> = keys.iter().map(|key| (key_digest(key.as_str()), key)).collect();
        let rows: Vec<KeyRow> = with_conn!(self, "usage_event_keys", |conn| usage_event_keys::table
            .inner_join(customers::table.on(customers::customer_id.eq(usage_event_keys::customer_id)))
            .filter(usage_event_keys::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_ids(usage_event_keys::key_digest, asked.keys().copied()))
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .select(KeyRow::as_select())
            .load(conn))?;
        let mut found = Vec::with_capacity(rows.len());
        for KeyRow { key_digest, event_id, body_digest, answer } in rows {
            let digest = Row::new("usage_event_keys", "").cell("key_digest", key_digest)?;
            let row = Row::new("usage_event_keys", digest);
            let key = asked.get(&digest).ok_or_else(|| row.corrupt("key_digest", "nobody asked for it"))?;
            let body = BodyDigest(row.cell("body_digest", body_digest)?.into_bytes());
            found.push(((*key).clone(), body, row.cell("event_id", event_id)?, answer));
        }
        let unsaid: Vec<Uuid> = found.iter().filter(|(.., answer)| answer.is_none()).map(|(_, _, event, _)| *event).collect();
        let mut made = self.answers_of_places(customer_id, &unsaid)?;
        let read = |(key, body, event, answer): (IdempotencyKey, BodyDigest, Uuid, Option<String>)| {
            let row = Row::new("usage_event_keys", key_digest(key.as_str()));
            let answer = answer.or_else(|| made.remove(&event));
            let answer = answer.ok_or_else(|| row.corrupt("event_id", "the event or its document is not there"))?;
            Ok(KeptEvent { key, body, event_ref: EventRef::from_uuid(event), answer })
        };
        let mut kept = found.into_iter().map(read).collect::<StoreResult<Vec<_>>>()?;
        kept.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(kept)
    }

    fn keep_events(&mut self, _organization: OrganizationId, customer_id: CustomerId, taken: &[TakenEvent]) -> StoreResult<()> {
        let mut rows: Vec<NewKey<'_>> = taken
            .iter()
            .map(|TakenEvent { kept, document_ref, document_number }| {
                let is_made_again = answer_of_place(kept.event_ref, *document_ref, document_number) == kept.answer;
                NewKey {
                    customer_id: Bound(customer_id.as_uuid()),
                    key_digest: Bound(key_digest(kept.key.as_str())),
                    event_id: Bound(kept.event_ref.as_uuid()),
                    body_digest: Bound(Uuid::from_bytes(kept.body.0)),
                    answer: (!is_made_again).then_some(kept.answer.as_str()),
                }
            })
            .collect();
        // In one order, so that two that keep the same keys never wait for each other.
        rows.sort_by_key(|row| row.key_digest.0);
        for rows in rows.chunks(MAX_BINDS / COLUMNS) {
            let stored = with_conn!(self, "usage_event_keys", |conn| diesel::insert_into(usage_event_keys::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
            if stored < rows.len() {
                return Err(self.remember(Failure::Contended));
            }
        }
        Ok(())
    }
}
