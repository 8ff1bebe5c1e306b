//! Records of billing runs.

use billing_domain::access::RequestId;
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{RunFilter, Store};
use billing_domain::refs::{ApiKeyRef, BillingRunRef};
use billing_domain::runs::{BillingRunRecord, FailedDocument, RunDocument, RunFailure, RunHead};
use uuid::Uuid;

use super::{World, all, done, later, long_ago, page, read, world, write};
use crate::{FreshIds, fixtures};

fn run(at: Timestamp) -> BillingRunRecord {
    BillingRunRecord::begun(RunHead::begun(BillingRunRef::from_uuid(Uuid::now_v7()), AuditActor::Scheduler, None, at))
}

fn put(store: &dyn Store, w: &World, run: &BillingRunRecord) {
    write(store, |tx| tx.put_billing_run(w.org, run));
}

fn heads(store: &dyn Store, w: &World, filter: RunFilter) -> Vec<RunHead> {
    read(store, |tx| tx.billing_runs(w.org, &filter, all())).items
}

pub fn a_run_comes_back_as_it_was_kept_last(store: &dyn Store) {
    let w = world(store);
    let mut kept = run(later(0));
    put(store, &w, &kept);
    assert_eq!(read(store, |tx| tx.billing_run(w.org, kept.head.run_ref)), Some(kept.clone()));

    kept.head.author = AuditActor::ApiKey(ApiKeyRef::from_uuid(Uuid::now_v7()));
    kept.head.request_id = RequestId::parse("r-1");
    kept.head.ended_at = Some(later(7));
    kept.head.cut_short = true;
    kept.head.contracts = 12;
    let head = w.head(1);
    for voided in [false, true] {
        let (document_ref, number, total) = (head.document_ref, head.number.clone(), fixtures::cents(-1234));
        kept.add_document(RunDocument { document_ref, number, total, voided });
    }
    let period = fixtures::period("2026-02-01", "2026-02-28");
    let failed = |document_ref| Some(FailedDocument { period, document_ref });
    for document in [None, failed(None), failed(Some(head.document_ref))] {
        kept.add_failure(RunFailure::of(w.contract.contract_ref, document, "amount_out_of_range", "too \"much\" é"));
    }
    put(store, &w, &kept);
    assert_eq!(read(store, |tx| tx.billing_run(w.org, kept.head.run_ref)), Some(kept.clone()));
    assert_eq!(heads(store, &w, RunFilter::default()), [kept.head.clone()]);

    // Saving a record again can clear its fields.
    let mut again = kept.clone();
    (again.head.ended_at, again.head.request_id) = (None, None);
    put(store, &w, &again);
    assert_eq!(read(store, |tx| tx.billing_run(w.org, kept.head.run_ref)), Some(again));
}

pub fn runs_come_newest_first_narrowed_and_in_pages(store: &dyn Store) {
    let w = world(store);
    let runs = [run(later(20)), run(later(10)), run(later(10)), run(later(0))];
    // Of two runs at the same instant, the one with the greater reference comes first.
    let expected: Vec<RunHead> = [0, 2, 1, 3].map(|index: usize| runs[index].head.clone()).to_vec();
    for index in [2, 0, 3, 1] {
        put(store, &w, &runs[index]);
    }
    assert_eq!(heads(store, &w, RunFilter::default()), expected);
    assert_eq!(heads(store, &w, RunFilter { from: Some(later(10)), ..RunFilter::default() }), expected[..3]);
    assert_eq!(heads(store, &w, RunFilter { to: Some(later(10)), ..RunFilter::default() }), expected[3..]);
    assert_eq!(
        heads(store, &w, RunFilter { from: Some(later(10)), to: Some(later(20)), ..RunFilter::default() }),
        expected[1..3]
    );
    let second = read(store, |tx| tx.billing_runs(w.org, &RunFilter::default(), page(3, 1)));
    assert_eq!((second.items.as_slice(), second.total), (&expected[3..], 4));
}

pub fn runs_are_forgotten_one_by_one_or_when_they_are_old(store: &dyn Store) {
    let (w, began) = (world(store), long_ago());
    let stranger = fixtures::organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&stranger)));
    let runs = [run(began.plus_seconds(-1)), run(began), run(later(0))];
    runs.iter().for_each(|run| put(store, &w, run));
    let of_another = run(began.plus_seconds(-1));
    write(store, |tx| tx.put_billing_run(stranger.id, &of_another));
    assert_eq!(read(store, |tx| tx.billing_run(w.org, of_another.head.run_ref)), None);
    write(store, |tx| tx.forget_billing_run(w.org, of_another.head.run_ref));
    assert!(read(store, |tx| tx.billing_run(stranger.id, of_another.head.run_ref)).is_some());

    write(store, |tx| tx.forget_billing_run(w.org, runs[2].head.run_ref));
    assert_eq!(heads(store, &w, RunFilter::default()), [runs[1].head.clone(), runs[0].head.clone()]);
    assert!(write(store, |tx| tx.purge_billing_runs(began)) >= 2);
    assert_eq!(heads(store, &w, RunFilter::default()), [runs[1].head.clone()]);
    assert_eq!(read(store, |tx| tx.billing_run(stranger.id, of_another.head.run_ref)), None);
}
