//! Documents.

use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::lines::{BillWith, DocumentLine, LineCharge, LineUsage};
use billing_domain::document::linking::Slot;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::paper::{Corrected, Paper, PaperFacts};
use billing_domain::document::totals::{BilledProduct, DocumentContent, Tax};
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument, Lifecycle, Purpose};
use billing_domain::money::SignedPrice;
use billing_domain::party::NetTerms;
use billing_domain::ports::{Access, DocumentFilter, Lock, RollBack, Store, StoreError};
use billing_domain::rating::RatedTier;
use billing_domain::refs::ProductNo;
use billing_domain::tax::{ExchangeRate, TaxInCurrency, TaxTreatment};
use rust_decimal::Decimal;

use super::{World, all, contended, done, later, read, updated, world, write};
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
    let full = DocumentHead {
        purpose: Purpose::Regular(Slot::UsageDebit),
        kind: DocumentKind::Debit,
        number: DocumentNumber { kind: DocumentKind::Debit, ..parent.number.clone() },
        currency: fixtures::currency("KWD"),
        is_partial_period: true,
        parts: vec![ProductNo(1), ProductNo(0)],
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
        assert_eq!((stored.lifecycle, stored.family), (Lifecycle::Draft, head.parent.unwrap_or(head.document_ref)));
        assert_eq!(format!("{:?}", stored.head), format!("{head:?}"));
        assert_eq!(&stored.head, head);
    }
    assert_eq!(read(store, |tx| tx.document(w.org, two.head(9).document_ref)), None);
}

pub fn a_void_document_leaves_its_slot(store: &dyn Store) {
    let w = world(store);
    let find = || w.in_place(store, 0, "2026-01-01", Slot::Period);
    let first = w.open(store, w.head(1));
    assert_eq!(find(), [first.document_ref]);
    w.void(store, &first);
    assert_eq!(find(), []);
    let second = w.open(store, DocumentHead { replaces: Some(first.document_ref), ..w.head(1) });
    assert_eq!(find(), [second.document_ref]);
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

pub fn a_second_document_with_a_number_is_corrupt(store: &dyn Store) {
    let w = world(store);
    let elsewhere = two_products(store, &w);
    let head = w.open(store, w.head(1));
    let twin = DocumentHead { number: head.number.clone(), ..elsewhere.head(1) };
    let mut answer = None;
    let undone = store.run(Access::Write, &mut |tx| {
        tx.lock_contract(twin.contract_key(w.org), Lock::Exclusive).expect("a contract");
        answer = Some(tx.open_document(w.org, &twin, twin.document_ref));
        Err(RollBack)
    });
    undone.expect("a roll-back is no error");
    assert!(matches!(answer, Some(Err(StoreError::Corrupt(_)))), "{answer:?}");
    // Void or not, a number is given once; another organization has its own.
    let another = world(store);
    assert_eq!(another.open(store, another.head(1)).number, head.number);
}

pub fn a_document_is_opened_under_its_entitys_present_prefix(store: &dyn Store) {
    let w = world(store);
    let mut renamed = w.entity.clone();
    renamed.profile.number_prefix = fixtures::entity("renamed").profile.number_prefix;
    write(store, |tx| updated(tx.update_entity(w.org, &renamed)));
    contended(store, |tx| w.open_in(tx, w.head(1)));
    let number = DocumentNumber { prefix: renamed.profile.number_prefix.clone(), ..w.head(1).number };
    w.open(store, DocumentHead { number, ..w.head(1) });
}

/// Lines of every shape, two products, two tax rates.
pub(super) fn full_content(w: &World, period: billing_domain::calendar::Period) -> DocumentContent {
    let tier = |up_to: Option<&str>, quantity: &str, amount: &str| RatedTier {
        tier: billing_domain::catalog::Tier { up_to: up_to.map(price), unit_price: price("0.10"), flat_amount: price("5.00") },
        quantity: Decimal::from_str_exact(quantity).expect("a decimal"),
        amount: Decimal::from_str_exact(amount).expect("a decimal"),
    };
    let line = |id: Option<&str>, usage: Option<LineUsage>, minor: i64| DocumentLine {
        line_item_id: id.map(fixtures::line_item_id),
        name: fixtures::line("Line ✓"),
        period_start: period.start(),
        service_period: period,
        bill_with: if id.is_some() && usage.is_none() { BillWith::Fixed } else { BillWith::Usage },
        usage,
        quantities: Vec::new(),
        unit_code: "HUR".parse().ok(),
        charge: None,
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
        // What follows from nothing else: days given back, usage that is prepaid, agreed quantities.
        DocumentLine {
            period_start: date("2025-12-15"),
            quantities: vec![
                QuantityStep { from: date("2025-12-15"), quantity: fixtures::quantity("3.50") },
                QuantityStep { from: date("2026-01-10"), quantity: fixtures::quantity("0") },
            ],
            ..line(Some("seats"), None, -40)
        },
        DocumentLine { bill_with: BillWith::Fixed, ..line(Some("prepaid"), Some(used("100", None, None, vec![])), 50) },
        DocumentLine {
            bill_with: BillWith::Usage,
            charge: Some(LineCharge {
                date: date("2026-01-09"),
                quantity: fixtures::quantity("2.50"),
                unit: Some(fixtures::line("h")),
                unit_price: SignedPrice::parse("-12.500").expect("a price"),
            }),
            ..line(Some("charge:setup"), None, 1)
        },
        DocumentLine { bill_with: BillWith::Usage, ..line(Some("odd"), None, 1) },
        DocumentLine { bill_with: BillWith::Fixed, ..line(None, None, 1) },
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
            treatment: TaxTreatment::effective(percent(tax_rate), [&fixtures::reverse_charge()]),
        }
    };
    let products = vec![
        product(0, lines, 409, "10.0", "19.000"),
        product(1, vec![line(Some("base"), None, 1000)], 0, "0", "7"),
        // One product at two pairs of rates.
        product(1, vec![line(Some("base"), None, 500)], 1, "0.2", "7.0"),
        product(1, vec![line(Some("untaxed"), None, 250)], 0, "0", "0"),
    ];
    let tax = |rate: &str, minor: i64| {
        let rate = percent(rate);
        let base = products.iter().filter(|product| product.tax_rate == rate).map(|product| product.net.minor()).sum();
        let treatment = TaxTreatment::effective(rate, [&fixtures::reverse_charge()]);
        Tax { rate, treatment, base: cents(base), amount: cents(minor) }
    };
    let taxes = vec![tax("0", 0), tax("7", 105), tax("19.000", 700)];
    let sum = |of: &dyn Fn(&BilledProduct) -> i64| products.iter().map(of).sum::<i64>();
    let (sub_total, discount) = (sum(&|product| product.sub_total.minor()), sum(&|product| product.discount.minor()));
    DocumentContent {
        taxes,
        sub_total: cents(sub_total),
        total_discount: cents(discount),
        total_tax: cents(805),
        total: cents(sub_total - discount + 805),
        products,
    }
}

/// What a document says as a paper, with every part.
fn full_paper(head: &DocumentHead) -> Paper {
    let rate =
        ExchangeRate { from: head.currency, to: fixtures::currency("JPY"), date: date("2026-01-30"), rate: price("163.250") };
    let (mut customer, mut entity) = (fixtures::customer(&FreshIds, "full"), fixtures::entity("full"));
    customer.profile.billing_address = Some(fixtures::full_address());
    customer.profile.email = Some(fixtures::line("a@b.example"));
    customer.profile.tax_id = Some(fixtures::line("1/2"));
    customer.profile.legal = fixtures::full_legal("FR40303265045");
    entity.profile.address = Some(fixtures::full_address());
    entity.profile.legal = fixtures::full_legal("DE123456789");
    entity.profile.paper = fixtures::full_paper();
    let facts = PaperFacts {
        buyer_reference: Some(fixtures::buyer_reference("04011000-12345-35")),
        bank_account: Some(fixtures::bank_account("main").profile),
        corrects: Some(Corrected {
            number: DocumentNumber { sequence: 7, ..head.number.clone() },
            issue_date: date("2025-12-31"),
        }),
        tax_in_currency: TaxInCurrency::of([cents(0), cents(105), cents(700)], rate).ok(),
    };
    Paper::of(&customer, &entity, facts)
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
    full.paper = Some(Box::new(full_paper(&head)));
    let issue = |issued: &IssuedDocument| {
        write(store, |tx| {
            w.hold(tx)?;
            tx.issue_document(head.key(w.org), issued)
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
    let discarded = write(store, |tx| {
        w.hold(tx)?;
        tx.void_draft(head.key(w.org), &w.said(&head), later(1))
    });
    assert!(!discarded, "it is a draft no more");
}

pub fn a_draft_is_voided_once_and_never_issued_then(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    w.void(store, &head);
    write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        assert!(!tx.void_draft(head.key(w.org), &w.said(&head), later(1))?);
        assert!(!tx.issue_document(head.key(w.org), &w.frozen(&head, cents(1)))?);
        let unknown = w.head(2);
        assert!(!tx.void_draft(unknown.key(w.org), &w.said(&unknown), later(1))?);
        assert!(!tx.issue_document(unknown.key(w.org), &w.frozen(&unknown, cents(1)))?);
        Ok(())
    });
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!((stored.head, stored.lifecycle), (head.clone(), Lifecycle::Discarded(Some(Box::new(w.said(&head))))));
}
