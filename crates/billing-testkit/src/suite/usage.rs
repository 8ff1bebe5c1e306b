//! Usage events and running totals.

use billing_domain::access::Actor;
use billing_domain::contract::Contract;
use billing_domain::document::DocumentHead;
use billing_domain::labels::LabelDigest;
use billing_domain::ports::{Access, LabelOfTotal, RollBack, Store, StoreError};
use billing_domain::quantity::QuantitySum;
use billing_domain::refs::{AdminRef, ApiKeyRef, ContractRef, CustomerId, DocumentRef, EventRef, FormatRef, UsageProductRef};
use billing_domain::usage::{
    CountedEvent, FormattedSource, ReportData, ReportValue, UsageEvent, UsageKey, UsageTotal, Validations,
};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{World, done, later, lock_usage, put_usage, read, transact_answer, undo, usage, world, write};
use crate::FreshIds;
use crate::fixtures::{self, quantity};

/// The number exceeds the limit of a single database statement.
const MANY: i64 = 2_500;

fn event(w: &World, head: &DocumentHead, seconds: i64, quantity: &str) -> UsageEvent {
    fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(seconds), fixtures::quantity(quantity))
}

fn insert(store: &dyn Store, w: &World, events: &[UsageEvent]) {
    write(store, |tx| w.insert_events(tx, events));
}

pub fn of_many_events_those_that_are_there_are_known(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head = w.open(store, w.head(1));
    let (one, deleted) = (event(&w, &head, 0, "1"), event(&w, &head, 1, "1"));
    insert(store, &w, &[one.clone(), deleted.clone()]);
    let gone = UsageEvent { revision: 2, deleted: true, ..deleted.clone() };
    write(store, |tx| tx.revise_events(w.org, &[(deleted.clone(), gone.clone())]));
    let mut asked: Vec<EventRef> = (0..MANY).map(|_| EventRef::from_uuid(Uuid::now_v7())).collect();
    asked.extend([deleted.event_ref, one.event_ref, one.event_ref]);
    assert_eq!(read(store, |tx| tx.known_events(w.org, &asked)), [one.event_ref, deleted.event_ref].into());
    assert_eq!(read(store, |tx| tx.known_events(w.org, &[])), [].into());
    assert_eq!(read(store, |tx| tx.known_events(stranger.org, &asked)), [].into());
}

pub fn an_event_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let number = |text: &str| ReportValue::Number(text.to_owned());
    let text = |text: &str| ReportValue::Text(text.to_owned());
    let entries = [
        ("z", number("1.50")),
        ("a", number("-0")),
        ("1", number("1e400")),
        ("10", number("123456789012345678901234567890.123456789")),
        ("2", number("0.1e-7")),
        ("null", ReportValue::Null),
        ("yes", ReportValue::Bool(true)),
        ("no", ReportValue::Bool(false)),
        ("empty", text("")),
        ("Text \"quoted\\", text("1.50 ✓ 𝄞 \\u0041 'x' \"y\"")),
        ("m", text("true")),
    ];
    let report = entries.map(|(key, value)| (key.to_owned(), value));
    let full = UsageEvent {
        report_data: Some(ReportData::new(report)),
        validations: Some(Validations { currency: Some(fixtures::eur()), entity_ref: Some(w.entity.entity_ref.clone()) }),
        formatted: Some(FormattedSource {
            format_ref: FormatRef::parse("format-1").expect("a reference"),
            format_version: 7,
            raw_event: r#"{"b": 1.50, "a": [1e3, null, "\u00e4"], "b": 2 }"#.to_owned(),
        }),
        recorded_at: later(2),
        revised_at: later(3),
        revised_by: Actor::ApiKey(ApiKeyRef::from_uuid(Uuid::now_v7())),
        service_date: fixtures::date("2026-01-31"),
        ..event(&w, &head, -1, "12345678901234.000001")
    };
    let one_check = UsageEvent {
        validations: Some(Validations { currency: None, entity_ref: Some(w.entity.entity_ref.clone()) }),
        report_data: Some(ReportData::default()),
        revised_by: Actor::Admin(AdminRef::from_uuid(Uuid::now_v7())),
        ..event(&w, &head, 0, "0")
    };
    insert(store, &w, &[full.clone(), one_check.clone()]);
    for event in [full, one_check] {
        let stored = read(store, |tx| tx.event(w.org, event.event_ref)).expect("an event");
        assert_eq!(stored, event);
        assert_eq!(format!("{stored:?}"), format!("{event:?}"));
    }
}

pub fn an_event_comes_back_without_optional_fields(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let event = event(&w, &head, 0, "1");
    insert(store, &w, std::slice::from_ref(&event));
    assert_eq!(read(store, |tx| tx.event(w.org, event.event_ref)), Some(event));
    let unknown = EventRef::from_uuid(Uuid::now_v7());
    assert_eq!(read(store, |tx| tx.event(w.org, unknown)), None);
    insert(store, &w, &[]);
}

pub fn a_deleted_event_is_still_there(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let deleted = UsageEvent { deleted: true, revision: 2, revised_at: later(9), ..event(&w, &head, 0, "1") };
    insert(store, &w, std::slice::from_ref(&deleted));
    assert_eq!(read(store, |tx| tx.event(w.org, deleted.event_ref)), Some(deleted));
}

pub fn events_are_stored_all_or_none(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (first, second, third) = (event(&w, &head, 1, "1"), event(&w, &head, 2, "2"), event(&w, &head, 3, "3"));
    insert(store, &w, std::slice::from_ref(&first));
    let mut answer = None;
    let undone = store.run(Access::Write, &mut |tx| {
        answer = Some(tx.insert_events(w.org, &[second.clone(), first.clone(), third.clone()]));
        Err(RollBack)
    });
    undone.expect("a roll-back is no error");
    assert!(matches!(answer, Some(Err(_))), "an event that is there already: {answer:?}");
    read(store, |tx| {
        assert_eq!(tx.event(w.org, first.event_ref)?.as_ref(), Some(&first));
        assert_eq!(tx.event(w.org, second.event_ref)?, None);
        assert_eq!(tx.event(w.org, third.event_ref)?, None);
        Ok(())
    });
}

pub fn many_events_are_stored_at_once(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    // The optional fields differ from row to row.
    let events: Vec<UsageEvent> = (0..MANY)
        .map(|n| UsageEvent {
            validations: (n % 2 == 0).then(|| Validations { currency: Some(fixtures::eur()), entity_ref: None }),
            ..event(&w, &head, n, &n.to_string())
        })
        .collect();
    insert(store, &w, &events);
    read(store, |tx| {
        for event in events.iter().step_by(251).chain(events.last()) {
            assert_eq!(tx.event(w.org, event.event_ref)?.as_ref(), Some(event));
        }
        Ok(())
    });
}

pub fn a_document_has_events_until_all_are_deleted(store: &dyn Store) {
    let w = world(store);
    let (empty, deleted, live) = (w.open(store, w.head(1)), w.open(store, w.head(2)), w.open(store, w.head(3)));
    let gone = UsageEvent { deleted: true, ..event(&w, &deleted, 0, "1") };
    let both = [UsageEvent { deleted: true, ..event(&w, &live, 0, "1") }, event(&w, &live, 0, "0")];
    insert(store, &w, &[gone]);
    insert(store, &w, &both);
    for (head, expected) in [(&empty, false), (&deleted, false), (&live, true)] {
        assert_eq!(w.has_events(store, head), expected);
    }
}

fn keys(w: &World) -> Vec<UsageKey> {
    let other = fixtures::usage_product_ref("Zeta");
    vec![
        fixtures::usage_key(&w.contract, 0, "2026-02-01", &w.product.usage_product_ref),
        fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref),
        fixtures::usage_key(&w.contract, 0, "2026-01-01", &other),
        fixtures::usage_key(&w.contract, 0, "2026-10-01", &w.product.usage_product_ref),
    ]
}

fn world_with_keys(store: &dyn Store) -> (World, Vec<UsageKey>) {
    let w = world(store);
    write(store, |tx| done(tx.insert_usage_product(w.org, &fixtures::usage_product("Zeta"))));
    let keys = keys(&w);
    (w, keys)
}

pub fn totals_that_are_not_there_are_made_as_zero(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, &keys)), []);
    let made = write(store, |tx| lock_usage(tx, w.org, w.customer.id, &keys[..2]));
    assert!(made.len() == 2 && made.iter().all(|(_, total)| *total == UsageTotal::ZERO));
    // A locked total is stored as zero and visible in the next transaction. Totals that weren't locked don't exist.
    let mut stored = read(store, |tx| usage(tx, w.org, w.customer.id, &keys));
    stored.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(stored, made);
    assert_eq!(write(store, |tx| lock_usage(tx, w.org, w.customer.id, &[])), []);
    assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, &[])), []);
}

pub fn totals_are_answered_in_the_order_of_their_keys(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let mut sorted = keys.clone();
    sorted.sort();
    assert_ne!(sorted, keys);
    // Some totals exist, and the others are created.
    write(store, |tx| lock_usage(tx, w.org, w.customer.id, &keys[..1]));
    for _ in 0..2 {
        let answered = write(store, |tx| lock_usage(tx, w.org, w.customer.id, &keys));
        assert_eq!(answered.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), sorted);
    }
}

pub fn totals_are_replaced_and_read_back(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let event_ref = EventRef::from_uuid(Uuid::now_v7());
    let counted = |seconds, text: &str| CountedEvent {
        event_ref,
        occurred_at: later(seconds),
        service_date: fixtures::date("2026-01-31"),
        quantity: quantity(text),
        is_distinct: None,
    };
    let one = UsageTotal::ZERO.plus(counted(1, "2.50")).expect("in range");
    let two = UsageTotal { distinct: Some(2), ..one.plus(counted(2, "0.1")).expect("in range") };
    for total in [one, two, UsageTotal::ZERO] {
        write(store, |tx| {
            lock_usage(tx, w.org, w.customer.id, &keys[..2])?;
            put_usage(tx, w.org, w.customer.id, &[(keys[0].clone(), total), (keys[1].clone(), one)])
        });
        let stored = read(store, |tx| usage(tx, w.org, w.customer.id, &keys[..1]));
        assert_eq!(stored, [(keys[0].clone(), total)]);
        assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, &keys[1..])), [(keys[1].clone(), one)]);
        assert_eq!(write(store, |tx| lock_usage(tx, w.org, w.customer.id, &keys[..1])), stored);
    }
}

pub fn events_with_a_text_of_a_label_are_counted_up_to_a_limit(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let texts = ["u1", "u1", "u1", "u2", "u2"].map(Some).into_iter().chain([None]);
    let with_text = |(seconds, text): (i64, Option<&str>)| UsageEvent {
        unique_digest: text.map(LabelDigest::of),
        ..event(&w, &head, seconds, "1")
    };
    let events: Vec<UsageEvent> = (0..).zip(texts).map(with_text).collect();
    insert(store, &w, &events[..5]);
    insert(store, &w, &events[5..]);
    let refs: Vec<EventRef> = events.iter().map(|event| event.event_ref).collect();
    assert_eq!(read(store, |tx| tx.events_by_refs(w.org, &refs)), events);
    // One event is deleted, and one has another text.
    let revised = |event: &UsageEvent, revised: UsageEvent| (event.clone(), UsageEvent { revision: 2, ..revised });
    let deleted = revised(&events[3], UsageEvent { deleted: true, ..events[3].clone() });
    let relabeled = revised(&events[4], UsageEvent { unique_digest: Some(LabelDigest::of("u3")), ..events[4].clone() });
    let revisions = [deleted, relabeled];
    write(store, |tx| tx.revise_events(w.org, &revisions));

    let key = events[0].period_key();
    let other_period = fixtures::usage_key(&w.contract, 0, "2026-02-01", &w.product.usage_product_ref);
    // Adds or removes one event after the other, and returns whether each was the first or the last with its text.
    let distinct = |up_to: u32, steps: &[(bool, &UsageKey, &str)]| -> Vec<Option<bool>> {
        let asked: Vec<LabelOfTotal> =
            steps.iter().map(|(_, key, text)| (w.customer.id, (*key).clone(), LabelDigest::of(text))).collect();
        let mut live = read(store, |tx| tx.live_labels(&asked, up_to));
        let step = |(adds, key, text): &(bool, &UsageKey, &str)| {
            let (digest, counted) = (Some(LabelDigest::of(text)), events[0].counted());
            if *adds { live.add(key, digest, counted) } else { live.remove(key, digest, counted) }.is_distinct
        };
        steps.iter().map(step).collect()
    };
    let removed = [(false, &key, "u1"), (false, &key, "u1"), (false, &key, "u1"), (false, &key, "u3")];
    assert_eq!(distinct(10, &removed), [Some(false), Some(false), Some(true), Some(true)]);
    let added = [(true, &key, "u1"), (true, &key, "u2"), (true, &key, "u2"), (true, &key, "u4"), (true, &other_period, "u1")];
    assert_eq!(distinct(1, &added), [Some(false), Some(true), Some(false), Some(true), Some(true)]);
    assert_eq!(distinct(1, &[]), []);
}

pub fn the_events_that_totals_count_are_added_up(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let (stranger, _) = world_with_keys(store);
    let sum = |w: &World, customer: Option<CustomerId>, contract: Option<ContractRef>, product: Option<&UsageProductRef>| {
        read(store, |tx| tx.events_in_totals(w.org, customer, contract, product))
    };
    assert_eq!(sum(&w, None, None, None), 0);
    let count = |n: usize| UsageTotal { events: 10_u64.pow(u32::try_from(n).expect("few")), ..UsageTotal::ZERO };
    write(store, |tx| {
        lock_usage(tx, w.org, w.customer.id, &keys)?;
        let totals: Vec<_> = keys.iter().enumerate().map(|(n, key)| (key.clone(), count(n))).collect();
        put_usage(tx, w.org, w.customer.id, &totals)
    });
    let of = |passes: &dyn Fn(&UsageKey) -> bool| {
        keys.iter().enumerate().filter(|(_, key)| passes(key)).map(|(n, _)| count(n).events).sum::<u64>()
    };
    assert_eq!(sum(&w, None, None, None), of(&|_| true));
    assert_eq!(sum(&w, Some(w.customer.id), None, None), of(&|_| true));
    for key in &keys {
        let same_contract = |other: &UsageKey| other.contract_ref == key.contract_ref;
        let same_product = |other: &UsageKey| other.usage_product_ref == key.usage_product_ref;
        assert_eq!(sum(&w, None, Some(key.contract_ref), None), of(&same_contract));
        assert_eq!(sum(&w, Some(w.customer.id), None, Some(&key.usage_product_ref)), of(&same_product));
    }
    assert_eq!(sum(&w, Some(stranger.customer.id), None, None), 0);
    assert_eq!(sum(&stranger, None, None, None), 0);
}

pub fn totals_of_many_customers_are_held_and_replaced_at_once(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let other = fixtures::customer(&FreshIds, "other");
    let theirs = Contract { number: 2, ..fixtures::contract(&FreshIds, &other, vec![]) };
    let key = fixtures::usage_key(&theirs, 0, "2026-01-01", &w.product.usage_product_ref);
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        tx.insert_contract(w.org, &theirs, None)
    });
    let count = |n: u64| UsageTotal { events: n, ..UsageTotal::ZERO };
    let latest = CountedEvent {
        event_ref: EventRef::from_uuid(Uuid::now_v7()),
        occurred_at: later(1),
        service_date: fixtures::date("2026-01-31"),
        quantity: quantity("2.50"),
        is_distinct: None,
    };
    let whole = UsageTotal::ZERO.plus(latest).expect("in range");
    let totals =
        [(other.id, key.clone(), count(3)), (w.customer.id, keys[0].clone(), whole), (w.customer.id, keys[1].clone(), count(5))];
    write(store, |tx| {
        let keys: Vec<(CustomerId, UsageKey)> = totals.iter().map(|(customer, key, _)| (*customer, key.clone())).collect();
        let held = tx.lock_usage(w.org, &keys)?;
        assert!(held.iter().all(|(_, total)| *total == UsageTotal::ZERO) && held.is_sorted_by(|a, b| a.0 < b.0));
        tx.put_usage(w.org, &totals)
    });
    for (customer, key, total) in &totals {
        assert_eq!(read(store, |tx| usage(tx, w.org, *customer, std::slice::from_ref(key))), [(key.clone(), *total)]);
    }
    // A key of another customer doesn't exist and can't be locked or replaced.
    let foreign = (w.customer.id, key, count(9));
    let answer = transact_answer(store, |tx| tx.put_usage(w.org, std::slice::from_ref(&foreign)));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn events_are_added_to_totals(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let total = |seconds: &[i64], text: &str| {
        let counted = |seconds: &i64| CountedEvent {
            event_ref: EventRef::from_uuid(Uuid::now_v7()),
            occurred_at: later(*seconds),
            service_date: fixtures::date("2026-01-31"),
            quantity: quantity(text),
            is_distinct: None,
        };
        seconds.iter().map(counted).try_fold(UsageTotal::ZERO, UsageTotal::plus).expect("in range")
    };
    let mut kept: std::collections::BTreeMap<UsageKey, UsageTotal> = std::collections::BTreeMap::new();
    let rounds = [
        // The totals do not exist yet.
        vec![(&keys[2], total(&[5], "2.50")), (&keys[0], total(&[1, 9], "1"))],
        // One exists, and its latest event stays the latest. The events of a group have one time.
        vec![(&keys[0], total(&[4, 9], "7")), (&keys[1], total(&[2, 2, 2], "0.1"))],
        // One more does not exist.
        keys.iter().map(|key| (key, total(&[20], "0.000000001"))).collect(),
        vec![(&keys[3], total(&[3], "100"))],
    ];
    for (n, added) in rounds.into_iter().enumerate() {
        let rows: Vec<(CustomerId, UsageKey, UsageTotal)> =
            added.into_iter().map(|(key, total)| (w.customer.id, key.clone(), total)).collect();
        let mut expected = Vec::new();
        for (_, key, total) in &rows {
            let before = kept.get(key).copied().unwrap_or(UsageTotal::ZERO);
            let after = before.joined(*total).expect("in range");
            kept.insert(key.clone(), after);
            expected.push((key.clone(), after));
        }
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(write(store, |tx| tx.add_usage(w.org, &rows)), Some(expected), "{n}");
        let mut stored = read(store, |tx| usage(tx, w.org, w.customer.id, &keys));
        stored.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(stored, kept.clone().into_iter().collect::<Vec<_>>(), "{n}");
    }
    // Unknown values stay unknown.
    let unknown = UsageTotal { max: None, latest: None, last_day: None, ..kept[&keys[0]] };
    let added = (w.customer.id, keys[0].clone(), total(&[99], "1000"));
    let after = write(store, |tx| {
        lock_usage(tx, w.org, w.customer.id, &keys[..1])?;
        put_usage(tx, w.org, w.customer.id, &[(keys[0].clone(), unknown)])?;
        tx.add_usage(w.org, std::slice::from_ref(&added))
    });
    assert_eq!(after, Some(vec![(keys[0].clone(), unknown.joined(added.2).expect("in range"))]));
    assert_eq!(write(store, |tx| tx.add_usage(w.org, &[])), Some(vec![]));
    // A key of another organization doesn't exist.
    let stranger = world(store);
    let answer = transact_answer(store, |tx| tx.add_usage(stranger.org, std::slice::from_ref(&added)));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn a_sum_beyond_its_digits_is_not_added(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let sum = QuantitySum::new(Decimal::from(9_999_999_999_999_999_999_u64)).expect("19 digits");
    let full = UsageTotal { sum, events: 1, ..UsageTotal::ZERO };
    write(store, |tx| {
        lock_usage(tx, w.org, w.customer.id, &keys[..1])?;
        put_usage(tx, w.org, w.customer.id, &[(keys[0].clone(), full)])
    });
    let one = UsageTotal { sum: QuantitySum::new(Decimal::ONE).expect("one"), events: 1, ..UsageTotal::ZERO };
    for many in [1, 2] {
        let added: Vec<_> = keys[..many].iter().map(|key| (w.customer.id, key.clone(), one)).collect();
        assert_eq!(undo(store, |tx| tx.add_usage(w.org, &added)), None, "{many}");
    }
    assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, &keys)), [(keys[0].clone(), full)]);
}

pub fn events_are_put_on_drafts_only(store: &dyn Store) {
    let w = world(store);
    let (draft, void) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let issued = w.issue(store, w.head(3), fixtures::cents(1));
    w.void(store, &void);
    let on_draft = [event(&w, &draft, 1, "1"), event(&w, &draft, 2, "2")];
    assert!(write(store, |tx| tx.insert_events_on_drafts(w.org, &on_draft)));
    assert!(write(store, |tx| tx.insert_events_on_drafts(w.org, &[])));
    let mut nowhere = event(&w, &draft, 3, "1");
    nowhere.placement.document_ref = DocumentRef::from_uuid(Uuid::now_v7());
    for other in [event(&w, &void, 3, "1"), event(&w, &issued, 3, "1"), nowhere] {
        let events = [event(&w, &draft, 4, "1"), other];
        assert!(!undo(store, |tx| tx.insert_events_on_drafts(w.org, &events)), "{:?}", events[1]);
    }
    read(store, |tx| {
        for event in &on_draft {
            assert_eq!(tx.event(w.org, event.event_ref)?.as_ref(), Some(event));
        }
        Ok(())
    });
    let again = transact_answer(store, |tx| tx.insert_events_on_drafts(w.org, &on_draft));
    assert!(matches!(again, Err(StoreError::Corrupt(_))), "{again:?}");
}

pub fn customers_and_usage_products_that_events_name_are_those_that_are_there(store: &dyn Store) {
    let w = world(store);
    let other = fixtures::customer(&FreshIds, "other");
    let storage = fixtures::usage_product("storage");
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        done(tx.insert_usage_product(w.org, &storage))
    });
    let named = |customers: &[&str], products: &[&str]| {
        let customers: Vec<_> = customers.iter().map(|text| fixtures::customer_ref(text)).collect();
        let products: Vec<_> = products.iter().map(|text| fixtures::usage_product_ref(text)).collect();
        let (customers, products) = read(store, |tx| tx.named_by_events(w.org, &customers, &products));
        let customers: Vec<String> = customers.iter().map(|customer| customer.customer_ref.to_string()).collect();
        let products: Vec<String> = products.iter().map(|product| product.usage_product_ref.to_string()).collect();
        (customers, products)
    };
    let expected = |customers: &[&str], products: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        (owned(customers), owned(products))
    };
    assert_eq!(named(&["other"], &["storage"]), expected(&["other"], &["storage"]));
    assert_eq!(named(&["nobody"], &["storage"]), expected(&[], &["storage"]));
    assert_eq!(named(&["other"], &["nothing"]), expected(&["other"], &[]));
    assert_eq!(named(&["other", "nobody"], &[]), expected(&["other"], &[]));
    assert_eq!(named(&[], &[]), expected(&[], &[]));
    let stranger = world(store).org;
    let both = read(store, |tx| {
        tx.named_by_events(stranger, std::slice::from_ref(&other.customer_ref), std::slice::from_ref(&storage.usage_product_ref))
    });
    assert_eq!(both, (vec![], vec![]));
}

pub fn totals_of_usage_keep_every_part(store: &dyn Store) {
    let (w, keys) = world_with_keys(store);
    let largest = Decimal::from_str_exact("9999999999999999999.999999999").expect("a decimal");
    let latest = CountedEvent {
        event_ref: EventRef::from_uuid(Uuid::now_v7()),
        occurred_at: later(5).plus_seconds(-1),
        service_date: fixtures::date("2025-12-31"),
        quantity: quantity("1.500"),
        is_distinct: None,
    };
    let rows = [
        UsageTotal {
            sum: QuantitySum::new(largest).expect("a sum"),
            events: 9_000_000_000,
            max: Some(quantity("999999999999999.999999999")),
            latest: Some(latest),
            last_day: Some(fixtures::date("2026-01-01")),
            distinct: None,
        },
        UsageTotal {
            sum: QuantitySum::ZERO,
            events: 1,
            max: Some(quantity("0")),
            latest: Some(latest),
            last_day: Some(latest.service_date),
            distinct: None,
        },
        UsageTotal { events: 3, sum: QuantitySum::new(Decimal::new(150, 2)).expect("a sum"), ..UsageTotal::ZERO },
    ];
    let totals: Vec<(UsageKey, UsageTotal)> = keys.iter().cloned().zip(rows).collect();
    write(store, |tx| {
        lock_usage(tx, w.org, w.customer.id, &keys)?;
        put_usage(tx, w.org, w.customer.id, &totals)
    });
    for (key, total) in totals {
        let stored = read(store, |tx| usage(tx, w.org, w.customer.id, std::slice::from_ref(&key)));
        assert_eq!(stored, [(key, total)]);
    }
}
