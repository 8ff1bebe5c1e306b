//! The turnstile in front of a customer's contracts, on PostgreSQL.
//!
//! Its row locks let those who share a row pass whoever waits for it alone, as long as there is always one who shares it: an
//! edit would never reach a contract that events pour in on. So whoever wants a contract alone and doesn't get it at once
//! closes the turnstile until its transaction ends, and whoever wants to share one walks through the turnstile first, without
//! holding any contract yet.

use billing_domain::ports::Lock;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Bool};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

diesel::define_sql_function! {
    /// Waits for an advisory lock that is held until the transaction ends.
    fn pg_advisory_xact_lock(key: BigInt);
}

/// True once the turnstiles have been walked through.
#[derive(Debug)]
pub(crate) struct WalkedThrough {
    keys: Vec<i64>,
}

/// Walks through the turnstiles of customers whose contracts are to be shared; for any other lock through none.
pub(crate) fn walked_through(customers: impl IntoIterator<Item = Uuid>, lock: Option<Lock>) -> WalkedThrough {
    let mut keys: Vec<i64> = match lock {
        Some(Lock::Shared) => customers.into_iter().map(key).collect(),
        Some(Lock::Exclusive) | None => Vec::new(),
    };
    keys.sort_unstable();
    keys.dedup();
    WalkedThrough { keys }
}

/// Closes a customer's turnstile until the transaction ends.
pub(crate) fn close(connection: &mut PgConnection, customer: Uuid) -> QueryResult<()> {
    diesel::select(pg_advisory_xact_lock(key(customer))).execute(connection).map(drop)
}

/// A number for a customer. Two with one number only wait for each other.
fn key(customer: Uuid) -> i64 {
    customer.as_u64_pair().1.cast_signed()
}

impl QueryId for WalkedThrough {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Expression for WalkedThrough {
    type SqlType = Bool;
}

impl<G> ValidGrouping<G> for WalkedThrough {
    type IsAggregate = is_aggregate::Never;
}

impl<QS> AppearsOnTable<QS> for WalkedThrough {}
impl<QS> SelectableExpression<QS> for WalkedThrough {}

impl QueryFragment<Pg> for WalkedThrough {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // Nothing of it depends on a row, so it is done once, before the first is held; and each is left as soon as it was
        // entered, because a slice may have as many customers as events.
        out.push_sql(
            "(SELECT count(CASE WHEN pg_advisory_lock_shared(walked.key)::text = '' \
             THEN pg_advisory_unlock_shared(walked.key) END) FROM unnest(",
        );
        out.push_bind_param::<Array<BigInt>, _>(&self.keys)?;
        out.push_sql(") AS walked (key)) >= 0");
        Ok(())
    }
}

impl QueryFragment<Sqlite> for WalkedThrough {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        // Its only writer holds every row already.
        out.push_sql("1 = 1");
        Ok(())
    }
}
