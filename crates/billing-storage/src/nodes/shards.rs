//! The shards of a [distributed](crate::nodes::distribute) database. All rows of a customer are in one shard.

use std::sync::Arc;

use billing_domain::refs::CustomerId;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::QueryResult;
use diesel::sql_types::Integer;
use uuid::Uuid;

use crate::tx::Transaction;

/// The first hash of each shard of customers, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardRanges {
    first_hashes: Vec<i32>,
}

#[derive(QueryableByName)]
struct RangeRow {
    #[diesel(sql_type = Integer)]
    first_hash: i32,
}

impl ShardRanges {
    /// Creates the ranges from the first hash of each shard, in ascending order.
    pub(crate) const fn new(first_hashes: Vec<i32>) -> Self {
        Self { first_hashes }
    }

    /// Reads the ranges. They are empty before the tables are distributed.
    pub(crate) fn load(connection: &mut PgConnection) -> QueryResult<Self> {
        let rows: Vec<RangeRow> = diesel::sql_query(
            "SELECT s.shardminvalue::integer AS first_hash FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid \
             WHERE c.relname = 'customers' AND c.relnamespace = current_schema()::regnamespace ORDER BY 1",
        )
        .load(connection)?;
        Ok(Self { first_hashes: rows.into_iter().map(|row| row.first_hash).collect() })
    }

    /// Returns the number of shards.
    pub(crate) fn len(&self) -> usize {
        self.first_hashes.len()
    }

    /// Returns the index of a customer's shard.
    pub(crate) fn shard_of(&self, customer: Uuid) -> usize {
        let hash = uuid_hash(customer);
        self.first_hashes.partition_point(|first| *first <= hash).saturating_sub(1)
    }

    /// Groups items by the shard of their customer, in the order of the shards. Within a shard, items keep their order.
    pub(crate) fn group<T>(&self, items: Vec<T>, customer: impl Fn(&T) -> Uuid) -> Vec<Vec<T>> {
        let mut groups: Vec<Vec<T>> = Vec::new();
        groups.resize_with(self.len().max(1), Vec::new);
        for item in items {
            let shard = self.shard_of(customer(&item));
            if let Some(group) = groups.get_mut(shard) {
                group.push(item);
            }
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

/// Returns the hash of a customer, by which a distributed database finds the customer's shard.
pub fn customer_hash(customer: CustomerId) -> i32 {
    uuid_hash(customer.as_uuid())
}

/// Returns PostgreSQL's `uuid_hash`: Bob Jenkins' `lookup3` of the 16 bytes, with the third word as the result.
fn uuid_hash(id: Uuid) -> i32 {
    let bytes = id.as_bytes();
    let word = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(word)
    };
    let seed = 0x9e37_79b9_u32.wrapping_add(16).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (seed, seed, seed);
    a = a.wrapping_add(word(0));
    b = b.wrapping_add(word(4));
    c = c.wrapping_add(word(8));
    // mix
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    // the last four bytes
    a = a.wrapping_add(word(12));
    // final
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    c.cast_signed()
}
/// The nodes of a distributed database that a statement goes to, by the customers on them. Such a database sends a statement to all
/// nodes unless each of its subqueries names its customers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes(Option<Arc<[Uuid]>>);

impl Nodes {
    /// Returns the nodes of customers, if the database is distributed.
    pub(crate) fn of(is_spread: bool, customers: impl IntoIterator<Item = Uuid>) -> Self {
        Self(is_spread.then(|| customers.into_iter().collect()))
    }

    /// Returns the customers to name, or `None` if the statement names none.
    pub(crate) fn customers(&self) -> Option<&[Uuid]> {
        self.0.as_deref()
    }
}

impl Transaction<'_> {
    /// Returns the nodes of customers, if the database is distributed.
    pub(crate) fn nodes_of(&self, customers: impl IntoIterator<Item = Uuid>) -> Nodes {
        Nodes::of(self.is_spread, customers)
    }
}
