//! Ledger lines of draft adjustments and issued documents.

use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLedgerLine, LedgerLine, LedgerUsage, LineKey};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentHead, DocumentKind, Purpose};
use billing_domain::money::Money;
use billing_domain::ports::{Lock, Store, StoreError, StoreResult, Tx};
use billing_domain::refs::{DocumentKey, DocumentRef, ProductNo};
use billing_domain::usage::EventChanges;
use rust_decimal::Decimal;

use super::corrections::{adjustment, void_issued};
use super::documents::{full_paper, two_products};
use super::{World, month, read, transact_answer, undo, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, date};

fn line(no: u16, item: Option<&str>, n: u32, quantity: Option<&str>, amount: Money) -> LedgerLine {
    LedgerLine {
        key: LineKey {
            product_no: ProductNo(no),
            period_start: month(n).start(),
            line_item_id: item.map(fixtures::line_item_id),
            bill_with: if item.is_some() && quantity.is_none() { BillWith::Fixed } else { BillWith::Usage },
        },
        service_period: month(n),
        rates: DiscountAndTax { discount: fixtures::percent("0"), tax: fixtures::taxed("0") },
        has_default_tax: false,
        usage: quantity.map(|quantity| LedgerUsage {
            changes: EventChanges::from_sum(-7),
            usage_product_ref: fixtures::usage_product_ref("calls"),
            quantity: Decimal::from_str_exact(quantity).expect("a decimal"),
        }),
        amount,
    }
}

/// Creates lines of every kind, deliberately not sorted.
fn every_shape() -> Vec<LedgerLine> {
    vec![
        line(1, Some("tiered"), 2, Some("-12345678901234.000001"), cents(-5)),
        line(0, Some("base"), 1, None, cents(i64::MAX)),
        line(0, None, 1, None, cents(i64::MIN)),
        line(0, Some("calls"), 1, Some("0"), cents(0)),
        LedgerLine {
            rates: DiscountAndTax { discount: fixtures::percent("10.123456"), tax: fixtures::taxed("19.00") },
            ..line(0, Some("calls"), 3, Some("1.50"), cents(7))
        },
        // Days in February belong to the price of January, and usage is prepaid.
        LedgerLine { service_period: month(2), ..line(0, Some("seats"), 1, None, cents(-4)) },
        LedgerLine {
            key: LineKey { bill_with: BillWith::Fixed, ..line(1, Some("calls"), 5, None, cents(0)).key },
            ..line(1, Some("calls"), 5, Some("100"), cents(9))
        },
        LedgerLine {
            rates: DiscountAndTax { discount: fixtures::percent("0"), tax: fixtures::untaxed() },
            has_default_tax: true,
            ..line(0, Some("untaxed"), 4, None, cents(7))
        },
    ]
}

fn put(store: &dyn Store, w: &World, head: &DocumentHead, lines: &[LedgerLine]) {
    write(store, |tx| {
        w.hold(tx)?;
        tx.put_ledger_lines(head.key(w.org), lines)
    });
}

fn lines_of(store: &dyn Store, w: &World, document_ref: DocumentRef) -> Vec<LedgerLine> {
    read(store, |tx| tx.ledger_lines(DocumentKey { organization: w.org, customer: w.customer.id, document: document_ref }))
}

fn issue_in(tx: &mut dyn Tx, w: &World, head: &DocumentHead, minor: i64) -> StoreResult<bool> {
    tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
    tx.issue_document(head.key(w.org), &w.frozen(head, cents(minor)))
}

pub fn the_lines_of_a_draft_adjustment_are_replaced(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let head = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    let other = w.open(store, adjustment(&w, DocumentKind::Credit, &invoice, 2));
    assert_eq!(lines_of(store, &w, head.document_ref), []);
    let (full, one) = (every_shape(), vec![line(0, Some("base"), 1, None, cents(1))]);
    put(store, &w, &other, &one);
    for lines in [&one, &full, &one, &full] {
        put(store, &w, &head, lines);
        let stored = lines_of(store, &w, head.document_ref);
        assert_eq!(format!("{stored:?}"), format!("{lines:?}"));
        assert_eq!(stored, *lines);
    }
    undo(store, |tx| {
        w.hold(tx)?;
        tx.put_ledger_lines(head.key(w.org), &[])
    });
    assert_eq!(lines_of(store, &w, head.document_ref), full);
    put(store, &w, &head, &[]);
    assert_eq!(lines_of(store, &w, head.document_ref), []);
    assert_eq!(lines_of(store, &w, other.document_ref), one);
    assert_eq!(lines_of(store, &w, w.head(9).document_ref), []);
}

pub fn the_amounts_of_lines_are_in_the_documents_currency(store: &dyn Store) {
    let w = world(store);
    let currency = fixtures::currency("JPY");
    let invoice = w.open(store, DocumentHead { currency, ..w.head(1) });
    let head = w.open(store, DocumentHead { currency, ..adjustment(&w, DocumentKind::Debit, &invoice, 1) });
    let lines = vec![line(0, Some("base"), 1, None, Money::from_minor(3, currency))];
    put(store, &w, &head, &lines);
    assert_eq!(lines_of(store, &w, head.document_ref), lines);
}

pub fn many_lines_are_kept_in_their_order(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let head = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    // The number of lines exceeds the limit of a single database statement.
    let lines: Vec<LedgerLine> =
        (0..3_500).map(|n| line(n % 7, Some(&format!("item-{n}")), 1, Some("1.0"), cents(i64::from(n)))).collect();
    put(store, &w, &head, &lines);
    assert_eq!(lines_of(store, &w, head.document_ref), lines);
}

pub fn an_issued_document_has_the_lines_it_was_issued_with(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let issued_with = |head: &DocumentHead, minor| w.frozen(head, cents(minor)).content.ledger_lines();
    assert_eq!(lines_of(store, &w, invoice.document_ref), issued_with(&invoice, 100));
    // The lines of the issued document replace its draft lines.
    let head = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    put(store, &w, &head, &every_shape());
    undo(store, |tx| issue_in(tx, &w, &head, 5));
    assert_eq!(lines_of(store, &w, head.document_ref), every_shape(), "not issued after all");
    assert!(write(store, |tx| issue_in(tx, &w, &head, 5)));
    assert_eq!(lines_of(store, &w, head.document_ref), issued_with(&head, 5));
}

pub fn lines_of_what_is_no_draft_refuse_every_change(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let issued = w.issue(store, adjustment(&w, DocumentKind::Debit, &invoice, 1), cents(5));
    let void = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 2));
    put(store, &w, &void, &every_shape());
    w.void(store, &void);
    for head in [&invoice, &issued, &void, &w.head(9)] {
        let before = lines_of(store, &w, head.document_ref);
        for lines in [&every_shape()[..1], &[]] {
            let answer = transact_answer(store, |tx| {
                w.hold(tx)?;
                tx.put_ledger_lines(head.key(w.org), lines)
            });
            assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
        }
        assert_eq!(lines_of(store, &w, head.document_ref), before);
    }
}

/// Returns the documented lines of periods, sorted.
fn documented(store: &dyn Store, w: &World, periods: &[(u16, &str)]) -> Vec<DocumentLedgerLine> {
    let periods: Vec<_> = periods.iter().map(|(no, start)| (ProductNo(*no), date(start))).collect();
    let mut found = read(store, |tx| w.rows(tx)).lines;
    found.retain(|documented| periods.contains(&(documented.line.key.product_no, documented.line.key.period_start)));
    sorted(found)
}

fn sorted(mut lines: Vec<DocumentLedgerLine>) -> Vec<DocumentLedgerLine> {
    lines.sort_by_key(|documented| (documented.document_ref, documented.line.key.clone(), documented.line.amount.minor()));
    lines
}

pub fn what_documents_in_force_bill_of_a_period_is_documented(store: &dyn Store) {
    let w = world(store);
    let invoice_of = |head: &DocumentHead| head.parent.unwrap_or(head.document_ref);
    let on = |head: &DocumentHead, line: &LedgerLine| DocumentLedgerLine {
        document_ref: head.document_ref,
        family: invoice_of(head),
        number: DocumentNumber { kind: head.kind, ..head.number.clone() },
        converted_tax: None,
        line: line.clone(),
    };
    let invoice = w.issue(store, w.head(1), cents(100));
    let billed = w.frozen(&invoice, cents(100)).content.ledger_lines();
    let child = DocumentHead { purpose: Purpose::Usage, parent: Some(invoice.document_ref), ..w.head(2) };
    let child = w.issue(store, child, cents(3));
    let of_child = w.frozen(&child, cents(3)).content.ledger_lines();
    let credit = w.open(store, adjustment(&w, DocumentKind::Credit, &invoice, 1));
    let corrected = every_shape();
    put(store, &w, &credit, &corrected);
    // The draft of a period has no lines yet. Lines of other contracts are separate.
    w.open(store, w.head(3));
    let elsewhere = two_products(store, &w);
    elsewhere.issue(store, elsewhere.head(1), cents(77));

    assert_eq!(documented(store, &w, &[]), []);
    assert_eq!(documented(store, &w, &[(0, "2026-01-02"), (2, "2026-01-01"), (0, "2026-12-01")]), []);
    let january = || {
        let mut lines = vec![on(&invoice, &billed[0])];
        lines.extend(corrected[1..4].iter().chain([&corrected[5]]).map(|line| on(&credit, line)));
        lines
    };
    assert_eq!(documented(store, &w, &[(0, "2026-01-01")]), sorted(january()));
    let both = january().into_iter().chain([on(&child, &of_child[0]), on(&credit, &corrected[0])]);
    let periods = [(0, "2026-02-01"), (1, "2026-02-01"), (0, "2026-01-01"), (0, "2026-01-01")];
    assert_eq!(documented(store, &w, &periods), sorted(both.collect()), "each line once");
    let many: Vec<(u16, &str)> = (0..50).map(|no| (no, "2026-03-01")).collect();
    assert_eq!(documented(store, &w, &many), [on(&credit, &corrected[4])]);
    let all = read(store, |tx| w.rows(tx)).lines;
    let of_credit = corrected.iter().map(|line| on(&credit, line));
    let expected = of_credit.chain([on(&invoice, &billed[0]), on(&child, &of_child[0])]);
    assert_eq!(sorted(all), sorted(expected.collect()), "of all periods");
}

pub fn lines_have_the_converted_tax_of_their_document(store: &dyn Store) {
    let w = world(store);
    let (first, second) = (w.open(store, w.head(1)), w.issue(store, w.head(2), cents(3)));
    let mut issued = w.frozen(&first, cents(100));
    issued.paper = Some(Box::new(full_paper(&first)));
    assert!(write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.issue_document(first.key(w.org), &issued)
    }));
    let converted = issued.converted_tax();
    assert!(converted.is_some());
    let lines = read(store, |tx| w.rows(tx)).lines;
    let of = |head: &DocumentHead| {
        let of_head = lines.iter().filter(|line| line.document_ref == head.document_ref);
        of_head.map(|line| line.converted_tax).collect::<Vec<_>>()
    };
    assert_eq!((of(&first), of(&second)), (vec![converted], vec![None]));
}

pub fn void_documents_document_nothing(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let credit = w.open(store, adjustment(&w, DocumentKind::Credit, &invoice, 1));
    put(store, &w, &credit, &[line(0, Some("base"), 1, None, cents(5))]);
    let count = || documented(store, &w, &[(0, "2026-01-01")]).len();
    assert_eq!(count(), 2);
    w.void(store, &credit);
    assert_eq!(count(), 1);
    assert!(void_issued(store, &w, &invoice));
    assert_eq!(count(), 0);
    // The lines of the void document itself remain.
    assert_eq!(lines_of(store, &w, invoice.document_ref).len(), 1);
    let again = fixtures::document_in_slot(&FreshIds, &w.contract, &w.entity, month(1), SlotKind::Period);
    w.issue(store, again, cents(8));
    assert_eq!(count(), 1);
}
