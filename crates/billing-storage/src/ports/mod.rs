//! The ports, one file per group.

mod access;
mod accounts;
mod audit;
mod balances;
mod book_entries;
mod books;
mod catalog;
mod charges;
mod contracts;
mod credit;
mod document_files;
mod document_lists;
mod document_rows;
mod documents;
mod due_contracts;
mod event_changes;
mod event_keys;
mod event_rows;
mod formats;
mod holds;
mod imports;
mod inspection;
mod issue;
mod ledger;
mod limits;
mod lists;
mod metering;
mod names;
mod notifications;
mod numbers;
mod organizations;
mod paper;
mod parties;
mod payments;
mod reading;
mod recount;
mod refused;
mod replay_log;
mod running_totals;
mod runs;
mod sandbox;
mod seals;
mod search;
mod search_words;
mod update_lists;
mod usage;
mod verification;
mod webhooks;

use billing_domain::page::PageRequest;
use billing_domain::ports::{StoreError, StoreResult};
use billing_domain::refs::OrganizationId;
use uuid::Uuid;

pub(crate) use self::issue::chained;
pub(crate) use self::numbers::SeriesKey;
pub(crate) use self::update_lists::id_of;
use crate::row::{Cell, Row};

/// The maximum number of bound values per statement: SQLite allows 32,766, PostgreSQL 65,535.
const MAX_BINDS: usize = 32_000;

/// Returns LIMIT and OFFSET of a page.
pub(crate) fn limits(page: PageRequest) -> (i64, i64) {
    (i64::from(page.size()), i64::try_from(page.offset()).unwrap_or(i64::MAX))
}

/// Converts a stored count.
fn counted(count: i64) -> StoreResult<u64> {
    u64::try_from(count).map_err(|_| StoreError::Corrupt(format!("a count of {count}")))
}

/// Converts a counter for storage. Real counters would take centuries to overflow.
pub(crate) fn stored<T: TryFrom<U>, U: Copy + std::fmt::Display>(count: U) -> StoreResult<T> {
    T::try_from(count).map_err(|_| StoreError::Corrupt(format!("a counter of {count}")))
}

/// Begins a query for the rows of a customer, or of the whole organization if no customer is given.
macro_rules! rows_of {
    ($table:ident, $organization:expr, $customer:expr) => {{
        let (query, owner) = ($table::table.into_boxed::<Db>(), Bound($organization.as_uuid()));
        match $customer {
            Some(customer) => query
                .filter($table::customer_id.eq(Bound(customer.as_uuid())))
                .filter($crate::in_list::unindexed($table::organization_id).eq(owner)),
            None => query.filter($table::organization_id.eq(owner)),
        }
    }};
}
use rows_of;

/// Returns the rows that belong to the organization. The owner is compared here: with this condition in the query,
/// SQLite would scan all rows of the organization.
fn owned<R>(table: &'static str, organization: OrganizationId, found: Vec<(R, Cell<Uuid>)>) -> StoreResult<Vec<R>> {
    let mut own = Vec::new();
    for (row, owner) in found {
        if Row::new(table, "").cell("organization_id", owner)? == organization.as_uuid() {
            own.push(row);
        }
    }
    Ok(own)
}
