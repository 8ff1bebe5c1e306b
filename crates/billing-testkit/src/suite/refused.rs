//! Statistics of rejected usage.

use billing_domain::access::RequestId;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{RefusedFilter, Store};
use billing_domain::refs::OrganizationId;
use billing_domain::refused::{RefusedCount, RefusedExample, RefusedKey};

use super::{all, done, page, read, world, write};
use crate::fixtures::{self, date};
use crate::{FreshIds, fixtures::organization};

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("an instant")
}

fn refused(organization: OrganizationId, when: &str, code: &str, customer: &str, product: &str) -> (RefusedKey, RefusedCount) {
    let example = RefusedExample::of(&format!(r#"{{"at":"{when}"}}"#), Some("/quantity"), "must be a number", None);
    (RefusedKey::of(organization, at(when), code, customer, product), RefusedCount::once(at(when), example))
}

fn found(store: &dyn Store, organization: OrganizationId, filter: &RefusedFilter) -> Vec<(RefusedKey, RefusedCount)> {
    read(store, |tx| tx.refused_usage(organization, filter, all())).items
}

pub fn refused_usage_of_several_servers_adds_up(store: &dyn Store) {
    let w = world(store);
    let (key, mut sum) = refused(w.org, "2026-01-05T10:00:00Z", "validation_failed", "acme", "calls");
    sum.count = 7;
    sum.example = RefusedExample { request_id: RequestId::parse("r-1"), pointer: None, ..sum.example };
    write(store, |tx| tx.add_refused_usage(&[(key.clone(), sum.clone())]));
    assert_eq!(found(store, w.org, &RefusedFilter::default()), [(key.clone(), sum.clone())]);
    // An earlier rejection changes the first time. A later rejection, or one at the same instant, changes the latest example.
    for when in ["2026-01-05T09:00:00Z", "2026-01-05T23:59:59.999999Z", "2026-01-05T11:00:00Z", "2026-01-05T23:59:59.999999Z"] {
        let (same, more) = refused(w.org, when, "validation_failed", "acme", "calls");
        assert_eq!(same, key);
        write(store, |tx| tx.add_refused_usage(&[(same.clone(), more.clone())]));
        sum.add(more);
        assert_eq!(found(store, w.org, &RefusedFilter::default()), [(key.clone(), sum.clone())]);
    }
    assert_eq!(sum.count, 11);
}

pub fn refused_usage_comes_newest_day_first_narrowed_and_in_pages(store: &dyn Store) {
    let w = world(store);
    let rows = [
        refused(w.org, "2026-01-06T00:00:00Z", "b", "", ""),
        refused(w.org, "2026-01-06T00:00:00Z", "b", "Acme", ""),
        refused(w.org, "2026-01-06T00:00:00Z", "b", "acme", "calls"),
        refused(w.org, "2026-01-06T00:00:00Z", "c", "acme", ""),
        refused(w.org, "2026-01-05T00:00:00Z", "a", "acme", "calls"),
    ];
    let mut unordered = rows.to_vec();
    unordered.rotate_left(3);
    write(store, |tx| tx.add_refused_usage(&unordered));
    let none = RefusedFilter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (none(), vec![0, 1, 2, 3, 4]),
        (RefusedFilter { from: Some(date("2026-01-06")), ..none() }, vec![0, 1, 2, 3]),
        (RefusedFilter { to: Some(date("2026-01-05")), ..none() }, vec![4]),
        (RefusedFilter { code: text("b"), ..none() }, vec![0, 1, 2]),
        (RefusedFilter { customer_ref: text("acme"), ..none() }, vec![2, 3, 4]),
        (RefusedFilter { customer_ref: text(""), ..none() }, vec![0]),
        (RefusedFilter { usage_product_ref: text("calls"), code: text("a"), ..none() }, vec![4]),
        (RefusedFilter { code: text("nothing"), ..none() }, vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|index: usize| rows[index].clone()).collect();
        assert_eq!(found(store, w.org, &filter), expected, "{filter:?}");
    }
    let second = read(store, |tx| tx.refused_usage(w.org, &none(), page(2, 1)));
    assert_eq!((second.items.as_slice(), second.total), (&rows[2..4], 5));
}

pub fn old_refused_usage_is_forgotten_and_others_have_their_own(store: &dyn Store) {
    let w = world(store);
    let stranger = organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&stranger)));
    let day = fixtures::date("1990-01-03");
    let rows = [
        refused(w.org, "1990-01-02T23:59:59Z", "a", "", ""),
        refused(w.org, "1990-01-03T00:00:00Z", "a", "", ""),
        refused(stranger.id, "1990-01-03T00:00:00Z", "a", "", ""),
    ];
    write(store, |tx| tx.add_refused_usage(&rows));
    assert!(write(store, |tx| tx.purge_refused_usage(day)) >= 1);
    assert_eq!(found(store, w.org, &RefusedFilter::default()), [rows[1].clone()]);
    assert_eq!(found(store, stranger.id, &RefusedFilter::default()), [rows[2].clone()]);
    assert_eq!(write(store, |tx| tx.purge_refused_usage(day)), 0);
}
