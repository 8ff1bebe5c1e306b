//! The keys that events were sent with.

use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::ports::{EventKeys, StoreResult};
use billing_domain::refs::{CustomerId, EventRef, OrganizationId};
use billing_domain::usage::{EventKey, KeptEvent};
use diesel::prelude::*;
use uuid::Uuid;

use super::MAX_BINDS;
use crate::failure::Failure;
use crate::row::{Cell, Row};
use crate::schema::{customers, usage_event_keys};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// Columns of a row.
const COLUMNS: usize = 5;

#[derive(Insertable)]
#[diesel(table_name = usage_event_keys, treat_none_as_default_value = false)]
struct NewKey<'a> {
    customer_id: Bound<Uuid>,
    idempotency_key: &'a str,
    event_id: Bound<Uuid>,
    body_hash: &'a [u8],
    answer: &'a str,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_event_keys)]
struct KeyRow {
    idempotency_key: String,
    event_id: Cell<Uuid>,
    body_hash: Vec<u8>,
    answer: String,
}

impl KeyRow {
    fn read(self) -> StoreResult<KeptEvent> {
        let row = Row::new("usage_event_keys", format!("{:?}", self.idempotency_key));
        let key = row.checked("idempotency_key", IdempotencyKey::parse(&self.idempotency_key))?;
        let body = BodyHash(row.checked("body_hash", self.body_hash.as_slice().try_into())?);
        let event_ref = EventRef::from_uuid(row.cell("event_id", self.event_id)?);
        Ok(KeptEvent { sent: EventKey { key, body }, event_ref, answer: self.answer })
    }
}

impl EventKeys for Transaction<'_> {
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[IdempotencyKey],
    ) -> StoreResult<Vec<KeptEvent>> {
        let mut sorted: Vec<&str> = keys.iter().map(IdempotencyKey::as_str).collect();
        sorted.sort_unstable();
        let mut found: Vec<KeyRow> = Vec::new();
        for keys in sorted.chunks(MAX_BINDS / 2) {
            let rows: Vec<KeyRow> = with_conn!(self, "usage_event_keys", |conn| usage_event_keys::table
                .inner_join(customers::table.on(customers::customer_id.eq(usage_event_keys::customer_id)))
                .filter(usage_event_keys::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(usage_event_keys::idempotency_key.eq_any(keys))
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .order(usage_event_keys::idempotency_key)
                .select(KeyRow::as_select())
                .load(conn))?;
            found.extend(rows);
        }
        found.into_iter().map(KeyRow::read).collect()
    }

    fn keep_events(&mut self, _organization: OrganizationId, customer_id: CustomerId, kept: &[KeptEvent]) -> StoreResult<()> {
        // In one order, so that two that keep the same keys never wait for each other.
        let mut kept: Vec<&KeptEvent> = kept.iter().collect();
        kept.sort_by(|a, b| a.sent.key.cmp(&b.sent.key));
        for kept in kept.chunks(MAX_BINDS / COLUMNS) {
            let rows: Vec<NewKey<'_>> = kept
                .iter()
                .map(|kept| NewKey {
                    customer_id: Bound(customer_id.as_uuid()),
                    idempotency_key: kept.sent.key.as_str(),
                    event_id: Bound(kept.event_ref.as_uuid()),
                    body_hash: &kept.sent.body.0,
                    answer: &kept.answer,
                })
                .collect();
            let stored = with_conn!(self, "usage_event_keys", |conn| diesel::insert_into(usage_event_keys::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
            if stored < kept.len() {
                return Err(self.remember(Failure::Contended));
            }
        }
        Ok(())
    }
}
