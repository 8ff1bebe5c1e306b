//! SQLite's query plans, for tests.

use std::sync::{Arc, Mutex};

use diesel::connection::{Connection as _, InstrumentationEvent};
use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::database::{Pools, take};
use crate::tx::{Connection, Transaction};
use crate::{Database, DatabaseOptions, DatabaseUrl};

#[derive(QueryableByName)]
struct Step {
    #[diesel(sql_type = Text)]
    detail: String,
}

#[derive(QueryableByName)]
struct Instruction {
    #[diesel(sql_type = Text)]
    opcode: String,
}

/// A statement, the steps of its plan, and the instructions of its program, as SQLite reports them.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) statement: String,
    pub(crate) steps: Vec<String>,
    opcodes: Vec<String>,
}

impl Plan {
    /// Returns whether each execution creates a temporary b-tree with a page cache of its own.
    pub(crate) fn has_temporary_tree(&self) -> bool {
        self.opcodes.iter().any(|opcode| opcode == "OpenEphemeral")
    }
}

/// Returns the plan of each statement that `ask` sends to an empty database.
pub(crate) fn plans_of(ask: impl FnOnce(&mut Transaction<'_>)) -> Vec<Plan> {
    plans_after(|_| (), ask)
}

/// Returns the plan of each statement that `ask` sends to a database that contains what `prepare` inserts.
pub(crate) fn plans_after(prepare: impl FnOnce(&mut Transaction<'_>), ask: impl FnOnce(&mut Transaction<'_>)) -> Vec<Plan> {
    let directory = tempfile::TempDir::new().expect("a directory");
    let url = format!("sqlite://{}/usage.sqlite3", directory.path().display());
    let url = DatabaseUrl::parse(&url).expect("an address");
    let database = Database::open(&url, DatabaseOptions::default()).expect("a database");
    database.migrate().expect("the tables are made");
    let Pools::Sqlite { writer, .. } = &database.pools else { panic!("a file") };
    let mut link = take(writer).expect("a connection");
    prepare(&mut Transaction::new(Connection::Sqlite(&mut link.connection), &database.cache, None));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    link.connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            log.lock().expect("no thread has panicked").push(query.to_string());
        }
    });
    ask(&mut Transaction::new(Connection::Sqlite(&mut link.connection), &database.cache, None));
    let asked = std::mem::take(&mut *asked.lock().expect("no thread has panicked"));
    let plan_of = |query: String| {
        let statement = query.split("-- binds").next().expect("the statement").to_owned();
        let plan: Vec<Step> =
            diesel::sql_query(format!("EXPLAIN QUERY PLAN {statement}")).load(&mut link.connection).expect("a plan");
        let program: Vec<Instruction> =
            diesel::sql_query(format!("EXPLAIN {statement}")).load(&mut link.connection).expect("a program");
        let steps = plan.into_iter().map(|step| step.detail).collect();
        Plan { statement, steps, opcodes: program.into_iter().map(|instruction| instruction.opcode).collect() }
    };
    asked.into_iter().map(plan_of).collect()
}
