//! Customers on several nodes: how they are [distributed](distribute), which [shard](shards) has a customer, and the
//! [connections](cluster) to each node.

pub(crate) mod cluster;
pub(crate) mod distribute;
pub(crate) mod shards;
