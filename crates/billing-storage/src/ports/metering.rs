//! Queries on contracts that meter usage products, for each database.

/// Loads the rows of a query on contracts that meter any of these pairs of customer and usage product, and locks the
/// contracts. A contract that meters several pairs, or a pair with several products, can occur several times.
macro_rules! load_metering {
    ($tx:expr, $pairs:expr, $lock:expr, $row:ty, $query:ident($organization:expr)) => {{
        $tx.holds_contracts |= $lock.is_some();
        if let Connection::Sqlite(connection) = &mut $tx.connection {
            let query = || $query!($organization, &Nodes::default());
            let found = $crate::ports::metering::load_joined!(connection, $pairs, $row, query());
            found.map_err(|error| $tx.failed("contracts", &error))?
        } else {
            $crate::ports::metering::load_listed!($tx, $pairs, $lock, $row, $query($organization))
        }
    }};
}
pub(super) use load_metering;

/// Does the same on SQLite, which runs in the same process and cannot use an index for a list of pairs. The query joins the
/// contracts, because SQLite would copy a list of them into a temporary b-tree. It returns the rows in the order of the joined
/// table's key, which is the order of the contracts, so that it sorts nothing.
macro_rules! load_joined {
    ($connection:expr, $pairs:expr, $row:ty, $query:expr) => {{
        let load = |(customer_id, product): &(CustomerId, UsageProductRef)| -> QueryResult<Vec<$row>> {
            let is_of_contract = contract_usage_products::contract_id.eq(contracts::contract_id);
            $query
                .inner_join(
                    contract_usage_products::table
                        .on(is_of_contract.and(contract_usage_products::customer_id.eq(contracts::customer_id))),
                )
                .filter(contract_usage_products::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(contract_usage_products::usage_product_ref.eq(product.as_str()))
                .order(contract_usage_products::contract_id)
                .load(*$connection)
        };
        $pairs.iter().map(load).collect::<QueryResult<Vec<_>>>().map(|found| found.into_iter().flatten().collect::<Vec<_>>())
    }};
}
pub(super) use load_joined;

/// Does the same on PostgreSQL, with few statements.
macro_rules! load_listed {
    ($tx:expr, $pairs:expr, $lock:expr, $row:ty, $query:ident($organization:expr)) => {{
        let mut found: Vec<$row> = Vec::new();
        let of_shards = $tx.by_shard($pairs.to_vec(), |(customer_id, _)| customer_id.as_uuid());
        for pairs in of_shards.iter().flat_map(|pairs| pairs.chunks(MAX_BINDS / 2)) {
            let customers = || pairs.iter().map(|(customer_id, _)| customer_id.as_uuid());
            let is_spread = $tx.is_spread;
            let nodes = $tx.nodes_of(customers());
            let walked = || pass_gate(customers(), $lock);
            let rows: Vec<$row> = if let [(customer_id, product)] = pairs {
                let metering = contract_usage_products::table
                    .filter(contract_usage_products::customer_id.eq(Bound(customer_id.as_uuid())))
                    .filter(contract_usage_products::usage_product_ref.eq(product.as_str()))
                    .select(contract_usage_products::contract_id);
                load_held!(
                    $tx,
                    "contracts",
                    $lock,
                    $query!($organization, &nodes)
                        .filter(contracts::customer_id.eq(Bound(customer_id.as_uuid())))
                        .filter(contracts::contract_id.eq_any(metering))
                        .filter(walked())
                )?
            } else {
                let of_pair = |(customer, product): &(CustomerId, UsageProductRef)| {
                    vec![Value::Id(customer.as_uuid()), Value::Text(product.as_str().to_owned())]
                };
                let metering = contract_usage_products::table
                    .filter(one_of_rows("customer_id, usage_product_ref", pairs.iter().map(of_pair)).on_nodes(is_spread))
                    .select(contract_usage_products::contract_id);
                load_held!(
                    $tx,
                    "contracts",
                    $lock,
                    $query!($organization, &nodes)
                        .filter(one_of_ids(contracts::customer_id, customers()))
                        .filter(contracts::contract_id.eq_any(metering))
                        .filter(walked())
                )?
            };
            found.extend(rows);
        }
        found
    }};
}
pub(super) use load_listed;
