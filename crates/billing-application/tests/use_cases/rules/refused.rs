//! Counts of rejected usage are bounded in memory and written when the store is available.

use billing_application::UseCase;
use billing_application::usage::{RefusedEvent, RefusedUsageCounts, list_refused_usage};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::RefusedFilter;
use billing_domain::refused::{RefusedCount, RefusedKey};

use crate::support::{Bench, read};

fn refused<'a>(bench: &Bench, customer_ref: &'a str) -> RefusedEvent<'a> {
    RefusedEvent {
        organization: bench.principal.organization(),
        code: "unknown_reference",
        customer_ref,
        usage_product_ref: "calls",
        event: "{}",
        pointer: Some("/customer_ref"),
        detail: "must be known",
        request_id: None,
        limit: None,
    }
}

fn listed(bench: &Bench, code: &str) -> Page<(RefusedKey, RefusedCount)> {
    let filter = RefusedFilter { code: Some(code.to_owned()), ..RefusedFilter::default() };
    read(&bench.services, &bench.principal, UseCase::ListRefusedUsage, |cx| list_refused_usage(cx, &filter, PageRequest::LARGEST))
        .expect("a list")
}

#[test]
fn what_is_too_much_to_be_told_apart_is_counted_together() {
    let (bench, counts) = (Bench::at("2026-01-20T12:00:00Z"), RefusedUsageCounts::default());
    for n in 0..10_003 {
        counts.count(&bench.services, refused(&bench, &format!("customer-{n}")));
    }
    // Known values stay distinct.
    counts.count(&bench.services, refused(&bench, "customer-0"));
    counts.write(&bench.services).expect("written counts");
    assert_eq!(listed(&bench, "unknown_reference").total, 10_000);
    let other = listed(&bench, "other").items;
    let reported: Vec<_> = other.iter().map(|(key, count)| (key.customer_ref.as_str(), count.count)).collect();
    assert_eq!(reported, [("", 3)]);
    assert_eq!(listed(&bench, "unknown_reference").items[0].1.count, 2);
    // After a write, new values are counted separately again.
    counts.count(&bench.services, refused(&bench, "another"));
    counts.write(&bench.services).expect("written counts");
    assert_eq!((listed(&bench, "unknown_reference").total, listed(&bench, "other").total), (10_001, 1));
}

#[test]
fn what_cannot_be_written_is_written_later_and_once() {
    let (bench, counts) = (Bench::at("2026-01-20T12:00:00Z"), RefusedUsageCounts::default());
    for n in 0..450 {
        counts.count(&bench.services, refused(&bench, &format!("customer-{n}")));
    }
    bench.store.set_unavailable(true);
    counts.write(&bench.services).expect_err("the store is unavailable");
    counts.count(&bench.services, refused(&bench, "customer-7"));
    bench.store.set_unavailable(false);
    for _ in 0..2 {
        counts.write(&bench.services).expect("written counts");
    }
    let found = listed(&bench, "unknown_reference");
    let sum: u64 = found.items.iter().map(|(_, count)| count.count).sum();
    assert_eq!((found.total, sum), (450, 451));
}
