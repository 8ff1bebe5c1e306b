//! The latest instant at which a server recorded something.

use billing_domain::audit::{AuditAction, AuditActor, AuditEntry, AuditedKind};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::IdSource as _;
use billing_domain::refs::{AuditRef, BillingRunRef};
use billing_domain::runs::{BillingRunRecord, RunHead};
use billing_testkit::{FreshIds, fixtures};

use crate::rows::world;
use crate::support::{TestDatabase, on_both, read, write};

on_both!(the_latest_instant_is_that_of_the_newest_event_entry_or_run);

fn entry(at: Timestamp) -> AuditEntry {
    AuditEntry {
        audit_ref: AuditRef::from_uuid(FreshIds.new_id()),
        at,
        author: AuditActor::CommandLine,
        action: AuditAction::Edit,
        kind: AuditedKind::Customer,
        reference: "acme".to_owned(),
        before: None,
        after: None,
        request_id: None,
    }
}

fn the_latest_instant_is_that_of_the_newest_event_entry_or_run(test: &TestDatabase) {
    let latest = || read(test, |tx| tx.latest_recorded_instant()).expect("an instant");
    let w = world(test);
    assert_eq!(latest(), None, "nothing has been recorded");
    let head = w.open(test, 1);
    let first = fixtures::at("2026-01-10T00:00:00Z");
    write(test, |tx| tx.append_audit_entry(w.organization, None, &entry(first)));
    assert_eq!(latest(), Some(first));

    // An older instant does not count, although its row is the newest of its table.
    let mut event = w.event(&head);
    assert!(event.recorded_at < first);
    write(test, |tx| tx.insert_events(w.organization, std::slice::from_ref(&event)));
    assert_eq!(latest(), Some(first));

    event = w.event(&head);
    (event.recorded_at, event.revised_at) = (first.plus_seconds(1), first.plus_seconds(1));
    write(test, |tx| tx.insert_events(w.organization, std::slice::from_ref(&event)));
    assert_eq!(latest(), Some(first.plus_seconds(1)));

    let run_ref = BillingRunRef::from_uuid(FreshIds.new_id());
    let run = BillingRunRecord::begun(RunHead::begun(run_ref, AuditActor::Scheduler, None, first.plus_seconds(2)));
    write(test, |tx| tx.put_billing_run(w.organization, &run));
    assert_eq!(latest(), Some(first.plus_seconds(2)));

    write(test, |tx| tx.append_audit_entry(w.organization, None, &entry(first.plus_seconds(3))));
    assert_eq!(latest(), Some(first.plus_seconds(3)));
}
