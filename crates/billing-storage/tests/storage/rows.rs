//! An invalid row causes an error with its table, key and column, and never a default value.

use billing_domain::calendar::Period;
use billing_domain::contract::Contract;
use billing_domain::document::lines::{BaseAndAmount, DiscountAndTax, SumKey};
use billing_domain::document::{DocumentHead, IssuedDocument};
use billing_domain::page::PageRequest;
use billing_domain::party::{Customer, Entity};
use billing_domain::ports::{FamilySum, Insertion, Lock, Store, StoreError, StoreResult, Tx};
use billing_domain::refs::{DocumentKey, OrganizationId, ProductNo};
use billing_domain::usage::{UsageEvent, UsageKey};
use billing_testkit::{FreshIds, fixtures};

use crate::support::{TestDatabase, on_one_server, read, write};
use billing_testkit::Singly as _;

on_one_server!(a_row_that_cannot_be_is_corrupt_and_named, a_row_without_its_partner_is_corrupt);

/// One organization with a contract.
pub(crate) struct World {
    pub(crate) organization: OrganizationId,
    pub(crate) entity: Entity,
    pub(crate) customer: Customer,
    pub(crate) contract: Contract,
    pub(crate) key: UsageKey,
}

pub(crate) fn all() -> PageRequest {
    PageRequest::new(100, 0).expect("a page")
}

pub(crate) fn world(store: &dyn Store) -> World {
    let organization = fixtures::organization(&FreshIds);
    let customer = fixtures::customer(&FreshIds, "acme");
    let calls = fixtures::usage_product("calls");
    let pricing = fixtures::pricing("api", vec![fixtures::fixed("base", "10"), fixtures::per_unit("calls", "0.01")]);
    let contract = fixtures::contract(&FreshIds, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]);
    let key = fixtures::usage_key(&contract, 0, "2026-01-01", &calls.usage_product_ref);
    let world = World { organization: organization.id, entity: fixtures::entity("main"), customer, contract, key };
    write(store, |tx| {
        assert_eq!(tx.insert_organization(&organization)?, Insertion::Done);
        assert_eq!(tx.insert_entity(world.organization, &world.entity)?, Insertion::Done);
        assert_eq!(tx.insert_customer(world.organization, &world.customer)?, Insertion::Done);
        assert_eq!(tx.insert_usage_product(world.organization, &calls)?, Insertion::Done);
        assert_eq!(tx.insert_pricing(world.organization, &pricing)?, Insertion::Done);
        tx.insert_contract(world.organization, &world.contract, None)
    });
    world
}

impl World {
    pub(crate) fn head(&self, month: u32) -> DocumentHead {
        let start = fixtures::date(&format!("2026-{month:02}-01"));
        let period = Period::new(start, billing_domain::calendar::plus_months(start, 1)).expect("a month");
        fixtures::document_head(&FreshIds, &self.contract, &self.entity, period)
    }

    pub(crate) fn open_in(&self, tx: &mut dyn Tx, month: u32) -> StoreResult<DocumentHead> {
        let mut head = self.head(month);
        tx.lock_contract(head.contract_key(self.organization), Lock::Exclusive)?;
        head.number.sequence = tx.take_document_numbers(self.organization, &head.entity_ref, head.kind, 1)?;
        head.number_in_contract = tx.take_numbers_in_contract(head.contract_key(self.organization), 1)?;
        tx.open_document(self.organization, &head, head.document_ref)?;
        Ok(head)
    }

    pub(crate) fn open(&self, store: &dyn Store, month: u32) -> DocumentHead {
        write(store, |tx| self.open_in(tx, month))
    }

    pub(crate) fn frozen(&self, head: &DocumentHead, minor: i64) -> IssuedDocument {
        fixtures::frozen(head, &self.contract, &self.customer, &self.entity, fixtures::cents(minor))
    }

    pub(crate) fn event(&self, head: &DocumentHead) -> UsageEvent {
        let at = fixtures::at("2026-01-02T00:00:00Z");
        fixtures::event(&FreshIds, head, &self.key.usage_product_ref, at, fixtures::quantity("1"))
    }
}

type Reading = fn(&mut dyn Tx, &World, &UsageEvent) -> StoreResult<()>;

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn a_row_that_cannot_be_is_corrupt_and_named(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    let event = w.event(&head);
    let format = fixtures::format("log");
    write(test, |tx| {
        assert_eq!(tx.insert_format(w.organization, &format)?, Insertion::Done);
        tx.insert_events(w.organization, std::slice::from_ref(&event))?;
        tx.lock_contract(w.contract.key(w.organization), Lock::Exclusive)?;
        tx.put_ledger_lines(head.key(w.organization), &w.frozen(&head, 1).content.ledger_lines())?;
        let rates = DiscountAndTax { discount: fixtures::percent("10"), tax: fixtures::taxed("7") };
        let key = SumKey::Discount(ProductNo(0), rates);
        let sum = FamilySum { family: head.document_ref, key, sum: BaseAndAmount { base: 1, amount: 1 } };
        tx.add_family_sums(w.organization, w.customer.id, &[sum])?;
        tx.lock_usage(w.organization, &[(w.customer.id, w.key.clone())])
    });
    let customers: Reading = |tx, w, _| tx.customers(w.organization, all()).map(drop);
    let entities: Reading = |tx, w, _| tx.entities(w.organization, all()).map(drop);
    let pricings: Reading = |tx, w, _| tx.pricings(w.organization, all()).map(drop);
    let formats: Reading = |tx, w, _| tx.formats(w.organization, 0, 10).map(drop);
    let contract: Reading = |tx, w, _| tx.contract(w.organization, w.contract.contract_ref).map(drop);
    let document: Reading = |tx, w, event| tx.document(w.organization, event.placement.document_ref).map(drop);
    let lines: Reading = |tx, w, event| {
        tx.ledger_lines(DocumentKey {
            organization: w.organization,
            customer: w.customer.id,
            document: event.placement.document_ref,
        })
        .map(drop)
    };
    let book: Reading = |tx, w, _| tx.book_rows(w.contract.key(w.organization)).map(drop);
    let sums = book;
    let the_event: Reading = |tx, w, event| tx.event(w.organization, event.event_ref).map(drop);
    let usage = book;
    let customer = w.customer.id.to_string();
    let contract_ref = w.contract.contract_ref.to_string();
    let event_ref = event.event_ref.to_string();
    let document_ref = head.document_ref.to_string();
    let rows: [(&str, &str, &str, Reading); 21] = [
        ("customers SET name = ''", &customer, "name", customers),
        ("customers SET currency = 'XXX'", &customer, "currency", customers),
        (r#"customers SET taxes = '[{"rate":"x"}]'"#, &customer, "taxes", customers),
        ("customers SET net_terms = '0'", &customer, "net_terms", customers),
        ("customers SET payment = '{}'", &customer, "payment", customers),
        ("entities SET time_zone = 'Mars/Base'", "main", "time_zone", entities),
        ("pricings SET line_items = '[{}]'", "api", "line_items", pricings),
        ("usage_format_versions SET mapping = '{}'", "log/1", "mapping", formats),
        ("usage_format_versions SET name = ''", "log/1", "name", formats),
        ("usage_format_versions SET created_by = 'nobody'", "log/1", "created_by", formats),
        ("contracts SET version = -1", &contract_ref, "version", contract),
        ("contract_products SET terms = '{\"pricing\": 1}'", &contract_ref, "terms", contract),
        ("document_parts SET product_no = -1", &document_ref, "product_no", document),
        ("document_lines SET tax_rate = '-1'", &document_ref, "tax_rate", lines),
        ("document_lines SET tax_basis = '{'", &document_ref, "tax_basis", lines),
        ("family_sums SET tax_basis = '[1]' WHERE product_no = 0", &document_ref, "tax_basis", sums),
        ("family_sums SET discount_rate = 'ten' WHERE product_no = 0", &document_ref, "discount_rate", sums),
        ("documents SET number_prefix = 'u b'", &document_ref, "number_prefix", document),
        ("usage_events SET quantity = '-0.5'", &event_ref, "quantity", the_event),
        ("usage_events SET revised_by = 'nobody'", &event_ref, "revised_by", the_event),
        ("usage_totals SET sum = '-1'", &contract_ref, "sum", usage),
    ];
    let only_on_sqlite: [(&str, &str, &str, Reading); 2] = [
        ("usage_events SET quantity = '1.0x'", &event_ref, "quantity", the_event),
        ("usage_events SET service_start = 9223372036854775807", &event_ref, "service_start", the_event),
    ];
    let only_on_postgres: [(&str, &str, &str, Reading); 2] = [
        ("usage_events SET quantity = 'NaN'", &event_ref, "quantity", the_event),
        ("usage_events SET occurred_at = 'infinity'", &event_ref, "occurred_at", the_event),
    ];
    let only_here = if test.is_sqlite() { only_on_sqlite } else { only_on_postgres };
    // Each change is reverted before the next, so that it does not hide later ones.
    for (change, key, column, reading) in rows.into_iter().chain(only_here) {
        let table = change.split(' ').next().expect("a table");
        let mut beside = test.beside();
        beside.execute(&format!("CREATE TABLE kept AS SELECT {column} FROM {table}")).expect("a copy");
        beside.execute(&format!("UPDATE {change}")).expect(change);
        let answer = read(test, |tx| reading(tx, &w, &event));
        let Err(StoreError::Corrupt(what)) = answer else { panic!("{change}: {answer:?}") };
        assert!(what.starts_with(table) && what.contains(key) && what.contains(column), "{change}: {what}");
        beside.execute(&format!("UPDATE {table} SET {column} = (SELECT {column} FROM kept)")).expect("a restored column");
        beside.execute("DROP TABLE kept").expect("a dropped copy");
        read(test, |tx| reading(tx, &w, &event)).expect(change);
    }
}

fn a_row_without_its_partner_is_corrupt(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    // Sets the columns that the state requires, without frozen content.
    let sql = "UPDATE documents SET lifecycle = 'ISSUED', issue_date = period_start, total_minor = 1";
    test.beside().execute(sql).expect("no trigger rejects the update");
    let answer = read(test, |tx| tx.document(w.organization, head.document_ref));
    let Err(StoreError::Corrupt(what)) = answer else { panic!("{answer:?}") };
    assert!(what.contains(&head.document_ref.to_string()) && what.contains("lifecycle"), "{what}");
}
