//! Round trips: values at their limits are loaded without loss of digits.

use billing_domain::document::{DocumentHead, Lifecycle};
use billing_domain::money::Money;
use billing_domain::ports::Store;
use billing_domain::text::{MAX_TEXT_BYTES, OneLine, Prose};
use billing_domain::usage::UsageEvent;

use super::{done, lock_usage, read, usage, world, write};
use crate::FreshIds;
use crate::fixtures::{self, agreed, at, quantity};

pub fn quantities_keep_their_digits(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let texts = [
        "0",
        "1",
        "1.0",
        "1.50",
        "0.1",
        "0.000000001",
        "12345678901234.000001",
        "999999999999999.999999999",
        "1000000000000000e-1",
    ];
    let event =
        |text: &&str| fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, at("2026-01-02T00:00:00Z"), quantity(text));
    let events: Vec<UsageEvent> = texts.iter().map(event).collect();
    write(store, |tx| tx.insert_events(w.org, &events));
    for event in events {
        let stored = read(store, |tx| tx.event(w.org, event.event_ref)).expect("an event");
        assert_eq!(stored.quantity.as_decimal().to_string(), event.quantity.as_decimal().to_string());
    }
}

pub fn amounts_keep_every_minor_unit(store: &dyn Store) {
    let w = world(store);
    let rows = [("EUR", i64::MAX), ("EUR", i64::MIN), ("JPY", 1), ("KWD", -1), ("EUR", 9_007_199_254_740_993), ("EUR", 0)];
    for (n, (code, minor)) in (1..).zip(rows) {
        let currency = fixtures::currency(code);
        let amount = Money::from_minor(minor, currency);
        let head = w.issue(store, DocumentHead { currency, ..w.head(n) }, amount);
        let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
        let Lifecycle::Issued(issued) = stored.lifecycle else { panic!("not issued") };
        assert_eq!((issued.content.total, issued.content.products[0].lines[0].amount), (amount, amount));
        assert_eq!(stored.head.currency, currency);
    }
}

pub fn instants_keep_their_microseconds(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let texts = [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "2026-03-29T01:30:00.000001Z",
        "2038-01-19T03:14:08Z",
        "9999-12-31T23:59:59.999999Z",
    ];
    let event = |text: &&str| fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, at(text), quantity("1"));
    let events: Vec<UsageEvent> = texts.iter().map(event).collect();
    write(store, |tx| tx.insert_events(w.org, &events));
    for event in events {
        assert_eq!(read(store, |tx| tx.event(w.org, event.event_ref)), Some(event));
    }
}

pub fn days_keep_from_the_first_year_to_the_last(store: &dyn Store) {
    let w = world(store);
    let rows =
        [("0001-01-01", "0001-01-01"), ("0001-01-01", "9999-12-31"), ("9999-12-31", "9999-12-31"), ("2024-02-29", "2024-02-29")];
    for (number, (first, last)) in (2..).zip(rows) {
        let mut contract = fixtures::contract(&FreshIds, &w.customer, vec![agreed(&w.pricing, first, last)]);
        contract.number = number;
        let head = fixtures::document_head(&FreshIds, &contract, &w.entity, fixtures::period(first, last));
        let key = fixtures::usage_key(&contract, 0, first, &w.product.usage_product_ref);
        write(store, |tx| {
            tx.insert_contract(w.org, &contract, None)?;
            w.open_in(tx, head.clone())?;
            lock_usage(tx, w.org, w.customer.id, std::slice::from_ref(&key))
        });
        assert_eq!(read(store, |tx| tx.contract(w.org, contract.contract_ref)), Some(contract.clone()));
        assert_eq!(
            read(store, |tx| tx.document(w.org, head.document_ref)).map(|document| document.head.period),
            Some(head.period)
        );
        assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, std::slice::from_ref(&key))).len(), 1);
    }
}

pub fn texts_keep_every_character(store: &dyn Store) {
    let w = world(store);
    let long = "ä".repeat(MAX_TEXT_BYTES / 2);
    let texts = [
        "'; DROP TABLE customers; --",
        "\\u0041 \\n % _ ? $1 {}",
        "ZWJ 👩‍👩‍👧 𝄞 \u{200f}rtl",
        " spaces  stay ",
        long.as_str(),
        "İıſK",
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let mut customer = fixtures::customer(&FreshIds, &format!("customer-{n}"));
        customer.profile.name = OneLine::parse(text).expect("a line");
        customer.profile.billing_address = Some(billing_domain::party::Address {
            line1: Some(Prose::parse(&format!("a\r\n\t{}", text.chars().take(100).collect::<String>())).expect("prose")),
            ..fixtures::full_address()
        });
        write(store, |tx| done(tx.insert_customer(w.org, &customer)));
        assert_eq!(read(store, |tx| tx.customers_by_name(w.org, &customer.profile.name)), [customer]);
    }
}
