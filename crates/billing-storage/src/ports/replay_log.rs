//! Idempotency records of successful requests.

use std::thread::sleep;
use std::time::{Duration, Instant};

use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::{BodyHash, IdempotencyRecord, ScopedIdempotencyKey, StoredResponse};
use billing_domain::ports::{IdempotencyStore, StoreResult};
use billing_domain::refs::OrganizationId;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use sha2::{Digest as _, Sha256};

use super::stored;
use crate::row::{Cell, Row};
use crate::schema::replay_log;
use crate::sql_types::Bound;
use crate::tx::{Connection, Transaction, with_conn};

/// The first pause before another attempt to lock a key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The maximum delay between the end of a duplicate request and the continuation of this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

diesel::define_sql_function! {
    /// Takes an advisory lock until the transaction ends, if it is free.
    fn pg_try_advisory_xact_lock(key: BigInt) -> Bool;
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = replay_log)]
struct KeptRow {
    body_hash: Vec<u8>,
    answer: Vec<u8>,
    kept_at: Cell<Timestamp>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = replay_log)]
struct KeptColumns<'a> {
    body_hash: &'a [u8],
    answer: &'a [u8],
    kept_at: Bound<Timestamp>,
}

impl KeptRow {
    fn read(self, request: &ScopedIdempotencyKey) -> StoreResult<IdempotencyRecord> {
        let row = Row::new("replay_log", format!("{} {:?}", request.path, request.key.as_str()));
        Ok(IdempotencyRecord {
            body: BodyHash(row.checked("body_hash", self.body_hash.as_slice().try_into())?),
            answer: StoredResponse(self.answer),
            kept_at: row.cell("kept_at", self.kept_at)?,
        })
    }
}

impl IdempotencyStore for Transaction<'_> {
    fn hold_key(&mut self, organization: OrganizationId, request: &ScopedIdempotencyKey, wait: Duration) -> StoreResult<bool> {
        self.note_request_key(organization, request)?;
        // SQLite's only writer already locks every key.
        let Connection::Postgres(connection) = &mut self.connection else { return Ok(true) };
        let key = LockKey { number: lock_key(organization, request), request, is_spread: self.is_spread };
        let held = hold(connection, &key, wait);
        held.map_err(|error| self.failed("replay_log", &error))
    }

    fn idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        since: Timestamp,
    ) -> StoreResult<Option<IdempotencyRecord>> {
        let row: Option<KeptRow> = with_conn!(self, "replay_log", |conn| replay_log::table
            .find((Bound(organization.as_uuid()), request.path.as_str(), request.key.as_str()))
            .filter(replay_log::kept_at.ge(Bound(since)))
            .select(KeptRow::as_select())
            .first(conn)
            .optional())?;
        row.map(|row| row.read(request)).transpose()
    }

    fn save_idempotency_record(
        &mut self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        kept: &IdempotencyRecord,
    ) -> StoreResult<()> {
        self.require_request_key(organization, request)?;
        with_conn!(self, "replay_log", |conn| {
            let columns = || KeptColumns { body_hash: &kept.body.0, answer: &kept.answer.0, kept_at: Bound(kept.kept_at) };
            diesel::insert_into(replay_log::table)
                .values((
                    replay_log::organization_id.eq(Bound(organization.as_uuid())),
                    replay_log::path.eq(&request.path),
                    replay_log::idempotency_key.eq(request.key.as_str()),
                    columns(),
                ))
                .on_conflict((replay_log::organization_id, replay_log::path, replay_log::idempotency_key))
                .do_update()
                .set(columns())
                .execute(conn)
        })?;
        Ok(())
    }

    fn purge_kept_requests(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        // Not every database can delete a limited number of rows, so the instant of the last row is read first.
        let last: Option<Cell<Timestamp>> = with_conn!(self, "replay_log", |conn| replay_log::table
            .filter(replay_log::kept_at.lt(Bound(before)))
            .order(replay_log::kept_at)
            .select(replay_log::kept_at)
            .offset(i64::from(limit.max(1)) - 1)
            .first(conn)
            .optional())?;
        let last = Row::new("replay_log", "by age").optional("kept_at", last)?;
        let deleted: usize = with_conn!(self, "replay_log", |conn| match last {
            Some(last) => diesel::delete(replay_log::table).filter(replay_log::kept_at.le(Bound(last))).execute(conn),
            None => diesel::delete(replay_log::table).filter(replay_log::kept_at.lt(Bound(before))).execute(conn),
        })?;
        stored(deleted)
    }
}

/// The key of an advisory lock.
struct LockKey<'r> {
    number: i64,
    request: &'r ScopedIdempotencyKey,
    is_spread: bool,
}

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = Bool)]
    locked: bool,
}

impl LockKey<'_> {
    /// Locks the key if it is free. On a distributed database, the lock is on the node of the key's record, where all servers
    /// meet.
    fn try_lock(&self, connection: &mut PgConnection) -> QueryResult<bool> {
        if !self.is_spread {
            return diesel::select(pg_try_advisory_xact_lock(self.number)).get_result(connection);
        }
        let row: LockedRow = diesel::sql_query(
            "SELECT pg_try_advisory_xact_lock($1) AS locked \
             FROM (SELECT count(*) FROM replay_log WHERE idempotency_key = $2) AS on_its_node",
        )
        .bind::<BigInt, _>(self.number)
        .bind::<Text, _>(self.request.key.as_str())
        .get_result(connection)?;
        Ok(row.locked)
    }
}

/// Polls for a lock instead of waiting for it, because a lock timeout would abort the transaction.
fn hold(connection: &mut PgConnection, key: &LockKey<'_>, wait: Duration) -> QueryResult<bool> {
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if key.try_lock(connection)? {
            return Ok(true);
        }
        let left = wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns 64 bits of a key's SHA-256. Keys with the same number only wait for each other.
fn lock_key(organization: OrganizationId, request: &ScopedIdempotencyKey) -> i64 {
    let mut hash = Sha256::new();
    hash.update(organization.as_uuid());
    // Neither part contains a control character.
    hash.update(format!("{}\0{}", request.path, request.key.as_str()));
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    i64::from_be_bytes(first)
}
