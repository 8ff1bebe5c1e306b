//! Section 9: the dates of voids and write-offs.

use billing_application::UseCase;
use billing_application::balances::customer_statement;
use billing_application::catalog::{WantedEntity, edit_entity};
use billing_application::documents::write_off;
use billing_domain::patch::Changes;
use billing_testkit::fixtures::{self, fixed, requested, zone};

use crate::books::Books;
use crate::support::{read, run};

fn statement(books: &Books) -> Vec<String> {
    let acme = fixtures::customer_ref("acme");
    let statements = read(&books.bench.services, &books.bench.principal, UseCase::GetStatement, |cx| {
        customer_statement(cx, &acme, None, None)
    });
    let statements = statements.expect("a statement");
    let lines = statements.iter().flat_map(|statement| &statement.lines);
    lines.map(|line| format!("{} {:?} {}", line.entry.date, line.entry.kind, line.balance.to_decimal())).collect()
}

/// Issues an invoice on 1 February in Kiritimati, 14 hours ahead of UTC. Then the entity moves to Pago Pago, where it is 31 January.
fn moved_west() -> Books {
    let books = Books::with("2026-01-15T00:00:00Z", |main| main.profile.time_zone = zone("Pacific/Kiritimati"), |_| {});
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-01-31T12:30:00Z");
    let edit = Changes::of(|wanted: &mut WantedEntity| wanted.profile.time_zone = zone("Pacific/Pago_Pago"));
    run(&books.bench.services, &books.bench.principal, UseCase::EditEntity, |cx| {
        edit_entity(cx, &fixtures::entity_ref("main"), &edit)
    })
    .expect("an entity");
    books
}

#[test]
fn a_void_is_not_dated_before_its_invoice() {
    let books = moved_west();
    books.void("UB-INV-1").expect("a void");
    assert_eq!(statement(&books), ["2026-02-01 Invoice 10.00", "2026-02-01 Void 0.00"]);
}

#[test]
fn a_write_off_is_not_dated_before_its_invoice() {
    let books = moved_west();
    let invoice = books.reference("UB-INV-1");
    for undo in [false, true] {
        run(&books.bench.services, &books.bench.principal, UseCase::WriteOff, |cx| write_off(cx, invoice, None, undo))
            .expect("a write-off");
    }
    assert_eq!(statement(&books), ["2026-02-01 Invoice 10.00", "2026-02-01 WriteOff 0.00", "2026-02-01 WriteOff 10.00"]);
}
