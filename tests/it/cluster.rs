//! What a distributed database costs: the nodes and statements of groups of events. The tests need the cluster that the environment
//! names.

use std::collections::BTreeMap;
use std::io::Write as _;

use acceptance::{Client, Database, Server, catalog};
use serde_json::{Value, json};

/// The number of customers of a group.
const GROUP: usize = 16;

/// Parts of statements that servers and the extension send by themselves.
const BY_THEMSELVES: [&str; 11] = [
    "pg_settings",
    "pg_prepared_xacts",
    "dump_local_wait_edges",
    "pg_dist_",
    "next_due_at",
    "\"notices\"",
    "webhook_",
    "notification_heads",
    "refused_usage",
    // The sender of a batch is looked up before, in a table that every node has.
    "api_keys",
    "\"notifications\"",
];

/// Returns a distributed database, or `None` without a cluster.
fn cluster() -> Option<Database> {
    let database = Database::postgres();
    if database.is_spread() {
        return Some(database);
    }
    // Written to standard error directly, because the harness hides the output of passing tests.
    writeln!(std::io::stderr(), "SKIPPED: no Citus cluster is named").expect("standard error");
    None
}

/// Makes customers with contracts until a shard has enough of them. Returns these.
fn customers_of_one_shard(database: &Database, client: &Client, many: usize) -> Vec<String> {
    let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for n in 0.. {
        let customer = format!("customer-{n}");
        catalog::make_customer(client, &customer);
        let shard = database.ask(&format!(
            "SELECT get_shard_id_for_distribution_column('customers', customer_id) FROM customer_refs WHERE customer_ref = '{customer}'"
        ));
        let of_shard = shards.entry(shard.concat()).or_default();
        of_shard.push(customer);
        if of_shard.len() == many {
            let chosen = of_shard.clone();
            chosen.iter().for_each(|customer| drop(catalog::make_contract(client, &catalog::contract(customer))));
            return chosen;
        }
    }
    Vec::new()
}

/// Returns a batch of events with keys, of one customer after another.
fn events(customers: &[String], many: usize, round: &str) -> Value {
    let event = |(n, customer): (usize, &String)| {
        catalog::with(catalog::event(customer, 1), &json!({"idempotency_key": format!("{customer}-{round}-{n}")}))
    };
    json!({"events": customers.iter().cycle().take(many).enumerate().map(event).collect::<Vec<_>>()})
}

#[test]
fn events_of_one_shard_on_drafts_use_one_node_alone() {
    let Some(database) = cluster() else { return };
    database.log_on_nodes();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let customers = customers_of_one_shard(&database, &client, GROUP);
    let run = |many: usize, round: &str| -> Vec<(Vec<String>, Vec<String>)> {
        let logs = database.on_nodes(|| drop(client.post("/api/usage/event/batch", &events(&customers, many, round)).ok()));
        let own =
            |statement: &&String| !BY_THEMSELVES.iter().any(|part| statement.contains(part)) && !statement.starts_with("SET ");
        let is_of_client = |statement: &&String| statement.starts_with("__diesel") || !statement.contains("public.");
        let of_node = |log: acceptance::database::NodeLog| {
            let statements: Vec<String> = log.statements.iter().filter(own).filter(is_of_client).cloned().collect();
            let sent: Vec<String> = log.sent.iter().filter(own).cloned().collect();
            (statements, sent)
        };
        logs.into_iter().map(of_node).collect()
    };
    // The first events open documents, whose numbers may be on another node. The next ones fill the caches.
    let opening = run(GROUP, "first");
    let prepared =
        |(statements, _): &&(Vec<String>, Vec<String>)| statements.iter().any(|one| one.contains("PREPARE TRANSACTION"));
    let committed = opening.iter().filter(prepared).count();
    assert!(committed <= 2, "{committed} nodes: {opening:#?}");
    run(GROUP, "second");
    let mut counts = Vec::new();
    for many in [1, GROUP, 64, 256] {
        let runs = ["third", "fourth", "fifth"].map(|round| run(many, &format!("{round}-{many}")));
        // The shortest run, because work of the server itself may interfere.
        let size = |run: &&Vec<(Vec<String>, Vec<String>)>| {
            run.iter().map(|(statements, sent)| statements.len() + sent.len()).sum::<usize>()
        };
        let shortest = runs.iter().min_by_key(size).expect("runs");
        let used: Vec<&(Vec<String>, Vec<String>)> = shortest.iter().filter(|(statements, _)| !statements.is_empty()).collect();
        assert_eq!(used.len(), 1, "one node: {shortest:#?}");
        let (statements, sent) = used[0];
        assert_eq!(sent, &[""; 0], "no commands to other nodes");
        assert!(statements.len() <= 16, "{} statements: {statements:#?}", statements.len());
        assert!(!statements.iter().any(|statement| statement.contains("PREPARE TRANSACTION")), "{statements:#?}");
        counts.push((many, statements.len()));
    }
    let (while_opening, sent_then): (Vec<usize>, Vec<usize>) =
        opening.iter().map(|(statements, sent)| (statements.len(), sent.len())).unzip();
    writeln!(
        std::io::stderr(),
        "events of one shard and their statements, all on one node: {counts:?}; {GROUP} events with documents to open, statements by node \
         {while_opening:?}, commands to other nodes {sent_then:?}"
    )
    .expect("standard error");
}

/// The number of customers of a batch.
const CUSTOMERS: usize = 200;

#[test]
fn a_batch_makes_a_transaction_for_each_shard_and_no_statement_for_each_customer() {
    let Some(database) = cluster() else { return };
    database.log_on_nodes();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let customers: Vec<String> = (0..CUSTOMERS).map(|n| format!("customer-{n}")).collect();
    for customer in &customers {
        catalog::make_customer(&client, customer);
        catalog::make_contract(&client, &catalog::contract(customer));
    }
    let run = |round: &str| {
        database.on_nodes(|| drop(client.post("/api/usage/event/batch", &events(&customers, CUSTOMERS, round)).ok()))
    };
    run("first");
    let logs = run("second");
    let count = |part: &str| {
        let statements = logs.iter().flat_map(|log| log.statements.iter().chain(&log.sent));
        statements.filter(|statement| statement.contains(part) && !statement.contains("public.")).count()
    };
    let shards: usize = database
        .ask("SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'customers'::regclass")
        .concat()
        .parse()
        .expect("a count");
    let groups = count("INSERT INTO usage_events ") + count("INSERT INTO \"usage_events\"");
    let of_events = count("usage_events") + count("usage_event_keys") + count("usage_totals");
    writeln!(
        std::io::stderr(),
        "{CUSTOMERS} events of {CUSTOMERS} customers: {groups} groups for {shards} shards, {of_events} statements about events"
    )
    .expect("standard error");
    assert!((1..=shards + 2).contains(&groups), "{groups} groups, {shards} shards");
    assert!(of_events < CUSTOMERS, "{of_events} statements");
}
