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

#[cfg(test)]
mod tests {
    use billing_domain::money::Currency;
    use billing_domain::page::{ListSortKey, PageRequest};
    use billing_domain::ports::{
        Accounts as _, Balances as _, ChargeFilter, Charges as _, Contracts as _, Customers as _, Documents as _, DocumentsOf,
        Insertion, Limits as _, Organizations as _, PaymentFilter, PaymentSortKey, Payments as _, PaymentsOf,
    };
    use billing_domain::receivables::AccountKey;
    use billing_domain::refs::{DocumentRef, EntityRef};
    use billing_testkit::{FreshIds, fixtures};
    use uuid::Uuid;

    use super::plans_after;
    use crate::tx::Transaction;

    /// Without statistics, SQLite expects that an organization has as few rows as a customer.
    #[test]
    fn rows_of_a_customer_are_never_searched_among_all_rows_of_the_organization() {
        let (seller, customer) = (fixtures::organization(&FreshIds), fixtures::customer(&FreshIds, "acme"));
        let (organization, customer_id) = (seller.id, customer.id);
        let document = DocumentRef::from_uuid(Uuid::from_u128(3));
        let account = AccountKey {
            customer_id,
            entity_ref: EntityRef::parse("default").expect("a reference"),
            currency: Currency::from_code("EUR").expect("a currency"),
        };
        let page = PageRequest::LARGEST;
        let prepare = |tx: &mut Transaction<'_>| {
            assert_eq!(tx.insert_organization(&seller).expect("room"), Insertion::Done);
            assert_eq!(tx.insert_customer(organization, &customer).expect("room"), Insertion::Done);
        };
        let plans = plans_after(prepare, |tx| {
            tx.set_watched(organization, customer_id, true).expect("a customer");
            tx.document_key(organization, document).expect("a look");
            tx.document(organization, document).expect("a look");
            tx.contracts_of_customer(organization, customer_id, page).expect("a look");
            tx.limits(organization, Some(customer_id), page).expect("a look");
            let charges = ChargeFilter { customer_id: Some(customer_id), ..ChargeFilter::default() };
            tx.listed_charges(organization, &charges, ListSortKey::Created, page).expect("a look");
            let payments = PaymentFilter { customer_id: Some(customer_id), ..PaymentFilter::default() };
            tx.payments(organization, &payments, PaymentSortKey::default(), page).expect("a look");
            for which in
                [DocumentsOf::These(&[document]), DocumentsOf::Families(&[document]), DocumentsOf::Unapplied, DocumentsOf::All]
            {
                tx.account_documents(organization, &account, which).expect("a look");
            }
            for which in [PaymentsOf::Document(document), PaymentsOf::Unapplied, PaymentsOf::All] {
                tx.account_payments(organization, &account, which).expect("a look");
            }
            tx.due_by_day(organization, &[customer_id]).expect("a look");
            tx.statement_entries(organization, customer_id, None).expect("a look");
        });
        assert!(plans.len() > 15, "{plans:?}");
        for plan in plans {
            let is_of_organization = |step: &String| step.contains("(organization_id=?") || step.starts_with("SCAN");
            assert!(!plan.steps.iter().any(is_of_organization), "{plan:?}");
        }
    }
}
