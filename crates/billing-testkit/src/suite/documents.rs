//! Documents.

use billing_domain::document::linking::Slot;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::{BilledProduct, DocumentContent, DocumentLine, LineUsage, total_up};
use billing_domain::document::{DocumentHead, DocumentKind, DocumentPart, IssuedDocument, Lifecycle, Purpose};
use billing_domain::party::NetTerms;
use billing_domain::ports::{Access, DocumentFilter, Lock, RollBack, Store, StoreError};
use billing_domain::rating::RatedTier;
use billing_domain::refs::ProductNo;
use rust_decimal::Decimal;

use super::{World, all, done, later, month, read, refs_of, updated, world, write};
use crate::FreshIds;
use crate::fixtures::{self, agreed, cents, date, percent, price};

/// A second customer's contract with two products, stored.
pub(super) fn two_products(store: &dyn Store, w: &World) -> World {
    let customer = fixtures::customer(&FreshIds, "second");
    let terms = |first, last| agreed(&w.pricing, first, last);
    let terms = vec![terms("2026-01-01", "2026-12-31"), terms("2027-01-01", "2027-12-31")];
    let contract = billing_domain::contract::Contract { number: 2, ..fixtures::contract(&FreshIds, &customer, terms) };
    write(store, |tx| {
        done(tx.insert_customer(w.org, &customer))?;
        tx.insert_contract(w.org, &contract, None)
    });
    World {
        organization: w.organization.clone(),
        org: w.org,
        entity: w.entity.clone(),
        customer,
        product: w.product.clone(),
        pricing: w.pricing.clone(),
        contract,
    }
}

pub fn a_draft_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let two = two_products(store, &w);
    let parent = two.open(store, two.head(1));
    let replaced = two.open(store, two.head(2));
    two.void(store, &replaced);
    let part =
        |no, tax, discount| DocumentPart { product_no: ProductNo(no), tax_rate: percent(tax), discount_rate: percent(discount) };
    let full = DocumentHead {
        purpose: Purpose::Regular(Slot::UsageDebit),
        kind: DocumentKind::Debit,
        number: DocumentNumber { kind: DocumentKind::Debit, ..parent.number.clone() },
        currency: fixtures::currency("KWD"),
        is_partial_period: true,
        parts: vec![part(0, "19.000", "0"), part(1, "7", "10.123456")],
        net_terms: NetTerms::Days(30),
        payment: fixtures::full_payment(),
        parent: Some(parent.document_ref),
        replaces: Some(replaced.document_ref),
        created_at: later(1),
        ..two.head(2)
    };
    let adjustment = DocumentHead {
        purpose: Purpose::Adjustment,
        kind: DocumentKind::Credit,
        number: DocumentNumber { kind: DocumentKind::Credit, ..parent.number.clone() },
        parent: Some(parent.document_ref),
        net_terms: NetTerms::DueUponUsage,
        ..two.head(1)
    };
    let child = DocumentHead { purpose: Purpose::Usage, parent: Some(parent.document_ref), ..two.head(1) };
    let closing = DocumentHead { purpose: Purpose::Regular(Slot::Closing), ..two.head(1) };
    let opened = [full, adjustment, child, closing].map(|head| two.open(store, head));
    // What a number began with when it was taken stays.
    let mut renamed = w.entity.clone();
    renamed.profile.number_prefix = fixtures::entity("renamed").profile.number_prefix;
    write(store, |tx| updated(tx.update_entity(w.org, &renamed)));
    for head in &opened {
        let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
        assert_eq!(stored.lifecycle, Lifecycle::Draft);
        assert_eq!(format!("{:?}", stored.head), format!("{head:?}"));
        assert_eq!(&stored.head, head);
    }
    assert_eq!(read(store, |tx| tx.document(w.org, two.head(9).document_ref)), None);
}

pub fn a_regular_document_is_found_by_product_period_and_slot(store: &dyn Store) {
    let w = world(store);
    let w = two_products(store, &w);
    let one_part = |head: DocumentHead, no: usize| DocumentHead { parts: vec![head.parts[no]], ..head };
    let shared = w.open(store, w.head(1));
    let of_first = w.open(store, one_part(w.head(2), 0));
    let of_second = w.open(store, one_part(w.head(2), 1));
    let debit = w.open(store, fixtures::document_in_slot(&FreshIds, &w.contract, &w.entity, month(1), Slot::UsageDebit));
    let closing = w.open(store, fixtures::document_in_slot(&FreshIds, &w.contract, &w.entity, month(1), Slot::Closing));
    // Neither children nor adjustments are regular.
    w.open(store, DocumentHead { purpose: Purpose::Usage, parent: Some(shared.document_ref), ..w.head(3) });
    w.open(store, DocumentHead { purpose: Purpose::Adjustment, parent: Some(shared.document_ref), ..w.head(3) });
    let rows = [
        (0, "2026-01-01", Slot::Period, Some(&shared)),
        (1, "2026-01-01", Slot::Period, Some(&shared)),
        (2, "2026-01-01", Slot::Period, None),
        (0, "2026-02-01", Slot::Period, Some(&of_first)),
        (1, "2026-02-01", Slot::Period, Some(&of_second)),
        (0, "2026-01-01", Slot::UsageDebit, Some(&debit)),
        (1, "2026-01-01", Slot::Closing, Some(&closing)),
        (0, "2026-02-01", Slot::Closing, None),
        (0, "2026-01-02", Slot::Period, None),
        (0, "2026-03-01", Slot::Period, None),
    ];
    for (no, start, slot, expected) in rows {
        for lock in [None, Some(Lock::Shared), Some(Lock::Exclusive)] {
            // A row can only be held by who may write.
            let found = write(store, |tx| {
                tx.lock_contract(w.org, w.customer.id, w.contract.contract_ref, Lock::Shared)?;
                tx.regular_document(w.org, w.customer.id, w.contract.contract_ref, ProductNo(no), date(start), slot, lock)
            });
            assert_eq!(found.map(|document| document.head).as_ref(), expected, "{no} {start} {slot:?} {lock:?}");
        }
    }
    // Issued documents are found, too.
    let issued = w.frozen(&shared, cents(1000));
    write(store, |tx| {
        tx.lock_contract(w.org, w.customer.id, w.contract.contract_ref, Lock::Exclusive)?;
        tx.issue_document(w.org, w.customer.id, shared.document_ref, &issued)
    });
    let found = read(store, |tx| {
        tx.regular_document(w.org, w.customer.id, w.contract.contract_ref, ProductNo(0), date("2026-01-01"), Slot::Period, None)
    });
    assert_eq!(found.map(|document| document.lifecycle), Some(Lifecycle::Issued(Box::new(issued))));
}

pub fn a_void_document_leaves_its_slot(store: &dyn Store) {
    let w = world(store);
    let find = || {
        read(store, |tx| {
            tx.regular_document(
                w.org,
                w.customer.id,
                w.contract.contract_ref,
                ProductNo(0),
                date("2026-01-01"),
                Slot::Period,
                None,
            )
        })
    };
    let first = w.open(store, w.head(1));
    assert_eq!(find().map(|document| document.head).as_ref(), Some(&first));
    w.void(store, &first);
    assert_eq!(find(), None);
    let second = w.open(store, DocumentHead { replaces: Some(first.document_ref), ..w.head(1) });
    assert_eq!(find().map(|document| document.head), Some(second));
}

pub fn a_second_regular_document_of_a_slot_is_corrupt(store: &dyn Store) {
    let w = world(store);
    let w = two_products(store, &w);
    w.open(store, w.head(1));
    // One product in common is enough.
    let mut twin = w.head(1);
    twin.parts.truncate(1);
    let mut answer = None;
    let undone = store.run(Access::Write, &mut |tx| {
        answer = Some(w.open_in(tx, twin.clone()).map(|_| ()));
        Err(RollBack)
    });
    undone.expect("a roll-back is no error");
    assert!(matches!(answer, Some(Err(StoreError::Corrupt(_)))), "{answer:?}");
    read(store, |tx| {
        assert_eq!(tx.document(w.org, twin.document_ref)?, None);
        assert_eq!(tx.documents(w.org, &DocumentFilter::default(), all())?.total, 1);
        Ok(())
    });
    // Adjustments and children may be as many as there are.
    for purpose in [Purpose::Usage, Purpose::Usage, Purpose::Adjustment, Purpose::Adjustment] {
        w.open(store, DocumentHead { purpose, ..w.head(1) });
    }
}

/// Lines of every shape, two products, two tax rates.
fn full_content(w: &World, period: billing_domain::calendar::Period) -> DocumentContent {
    let tier = |up_to: Option<&str>, quantity: &str, amount: &str| RatedTier {
        tier: billing_domain::catalog::Tier { up_to: up_to.map(price), unit_price: price("0.10"), flat_amount: price("5.00") },
        quantity: Decimal::from_str_exact(quantity).expect("a decimal"),
        amount: Decimal::from_str_exact(amount).expect("a decimal"),
    };
    let line = |id: Option<&str>, usage: Option<LineUsage>, minor: i64| DocumentLine {
        line_item_id: id.map(fixtures::line_item_id),
        name: fixtures::line("Line ✓"),
        service_period: period,
        usage,
        amount: cents(minor),
    };
    let used = |quantity: &str, unit: Option<&str>, unit_price: Option<&str>, tiers: Vec<RatedTier>| LineUsage {
        usage_product_ref: w.product.usage_product_ref.clone(),
        quantity: Decimal::from_str_exact(quantity).expect("a decimal"),
        unit: unit.map(fixtures::line),
        unit_price: unit_price.map(price),
        tiers,
    };
    let tiers = vec![tier(Some("100.50"), "100.50", "15.0500"), tier(None, "9999999999999999999.999999999", "0.0000000001")];
    let lines = vec![
        line(Some("base"), None, 1000),
        line(Some("calls"), Some(used("12345.60", Some("call"), Some("0.0025"), vec![])), 3086),
        line(Some("tiered"), Some(used("0", None, None, tiers)), -5),
        line(None, None, 7),
    ];
    let product = |no: u16, lines: Vec<DocumentLine>, discount: i64, discount_rate: &str, tax_rate: &str| {
        let sub_total: i64 = lines.iter().map(|line| line.amount.minor()).sum();
        BilledProduct {
            product_no: ProductNo(no),
            pricing_ref: w.pricing.pricing_ref.clone(),
            name: fixtures::line("API"),
            minimum_fee: (no == 0).then(|| price("12.50")),
            lines,
            sub_total: cents(sub_total),
            discount_rate: percent(discount_rate),
            discount: cents(discount),
            net: cents(sub_total - discount),
            tax_rate: percent(tax_rate),
        }
    };
    let products = vec![product(0, lines, 409, "10.0", "19.000"), product(1, vec![line(Some("base"), None, 1000)], 0, "0", "7")];
    total_up(fixtures::eur(), products).expect("small amounts")
}

pub fn a_draft_is_issued_once_and_keeps_what_it_says(store: &dyn Store) {
    let w = world(store);
    let w = two_products(store, &w);
    let head = w.open(store, w.head(1));
    let content = full_content(&w, head.period);
    assert!(content.adds_up());
    let issued = IssuedDocument {
        po_number: Some(fixtures::line("PO 1")),
        note: Some(fixtures::prose("One\nTwo")),
        due_date: date("2026-03-03"),
        ..fixtures::issued_document(&head, &w.customer, &w.entity, content, later(31 * 86_400))
    };
    let mut full = issued.clone();
    full.parties.customer_legal_name = Some(fixtures::line("Acme Ltd"));
    full.parties.entity_legal_name = Some(fixtures::line("Main GmbH"));
    let issue = |issued: &IssuedDocument| {
        write(store, |tx| {
            tx.lock_contract(w.org, w.customer.id, w.contract.contract_ref, Lock::Shared)?;
            let (contract, start) = (w.contract.contract_ref, date("2026-01-01"));
            let lock = Some(Lock::Exclusive);
            tx.regular_document(w.org, w.customer.id, contract, ProductNo(0), start, Slot::Period, lock)?;
            tx.issue_document(w.org, w.customer.id, head.document_ref, issued)
        })
    };
    assert!(issue(&full));
    assert!(!issue(&issued), "issued twice");
    // What the catalog says later doesn't reach it.
    let mut renamed = w.customer.clone();
    renamed.profile.name = fixtures::line("Renamed");
    write(store, |tx| updated(tx.update_customer(w.org, &renamed)));
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!(stored.head, head);
    let Lifecycle::Issued(said) = stored.lifecycle else { panic!("not issued: {:?}", stored.lifecycle) };
    assert_eq!(format!("{said:?}"), format!("{:?}", Box::new(full.clone())));
    assert_eq!(*said, full);
    assert!(!write(store, |tx| tx.void_draft(w.org, w.customer.id, head.document_ref, later(1))), "it is a draft no more");
}

pub fn a_draft_is_voided_once_and_never_issued_then(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    w.void(store, &head);
    write(store, |tx| {
        tx.lock_contract(w.org, w.customer.id, w.contract.contract_ref, Lock::Exclusive)?;
        assert!(!tx.void_draft(w.org, w.customer.id, head.document_ref, later(1))?);
        assert!(!tx.issue_document(w.org, w.customer.id, head.document_ref, &w.frozen(&head, cents(1)))?);
        let unknown = w.head(2);
        assert!(!tx.void_draft(w.org, w.customer.id, unknown.document_ref, later(1))?);
        assert!(!tx.issue_document(w.org, w.customer.id, unknown.document_ref, &w.frozen(&unknown, cents(1)))?);
        Ok(())
    });
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!((stored.head, stored.lifecycle), (head, Lifecycle::Void(None)));
}

pub fn a_contracts_documents_are_those_with_a_day_in_common(store: &dyn Store) {
    let w = world(store);
    let other = two_products(store, &w);
    other.open(store, other.head(2));
    // Opened in another order than created.
    let march = w.open(store, DocumentHead { created_at: later(1), ..w.head(3) });
    let february = w.open(store, DocumentHead { created_at: later(2), ..w.head(2) });
    let january = w.open(store, DocumentHead { created_at: later(0), ..w.head(1) });
    let rows: [(&str, &str, &[&DocumentHead]); 6] = [
        ("2026-01-01", "2026-03-31", &[&january, &march, &february]),
        ("2026-01-31", "2026-02-01", &[&january, &february]),
        ("2026-02-01", "2026-02-28", &[&february]),
        ("2026-02-14", "2026-02-14", &[&february]),
        ("2025-01-01", "2025-12-31", &[]),
        ("2026-04-01", "2026-12-31", &[]),
    ];
    for (first, last, expected) in rows {
        let within = fixtures::period(first, last);
        let found = read(store, |tx| tx.documents_of_contract(w.org, w.customer.id, w.contract.contract_ref, within));
        let expected: Vec<_> = expected.iter().map(|head| head.document_ref).collect();
        assert_eq!(refs_of(&found), expected, "{within}");
    }
}

pub fn drafts_are_neither_issued_nor_void(store: &dyn Store) {
    let w = world(store);
    let other = two_products(store, &w);
    other.open(store, other.head(1));
    let later_draft = w.open(store, DocumentHead { created_at: later(2), ..w.head(1) });
    let earlier_draft = w.open(store, DocumentHead { created_at: later(1), ..w.head(2) });
    w.issue(store, w.head(3), cents(100));
    let void = w.open(store, w.head(4));
    w.void(store, &void);
    let found = read(store, |tx| tx.drafts_of_contract(w.org, w.customer.id, w.contract.contract_ref));
    assert_eq!(refs_of(&found), [earlier_draft.document_ref, later_draft.document_ref]);
    assert!(found.iter().all(|document| document.lifecycle == Lifecycle::Draft));
}
