//! Documents.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::contract::terms::QuantityStep;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::{LineCalculation, PreviouslyBilled, Proration};
use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, LegalParticularsInput, SupplyCategory};
use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLine, LedgerLine, LineCharge, LineUsage};
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::prepaid::PrepaidAmount;
use billing_domain::document::totals::{BilledProduct, DocumentContent, Tax};
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument, Lifecycle, Purpose};
use billing_domain::money::{Money, SignedPrice};
use billing_domain::party::NetTerms;
use billing_domain::ports::{Access, DocumentFilter, DocumentsOf, Lock, RollBack, Store, StoreError, Tx};
use billing_domain::rating::RatedTier;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{CreditGrantRef, ProductNo};
use billing_domain::tax::{ExchangeRate, TaxInCurrency};
use rust_decimal::Decimal;

use super::{World, all, contended, done, later, read, updated, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, agreed, cents, date, percent, price};

/// Stores a contract of a second customer with two products.
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
        purpose: Purpose::Regular(SlotKind::UsageDebit),
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
    let closing = DocumentHead { purpose: Purpose::Regular(SlotKind::Closing), ..two.head(1) };
    let opened = [full, adjustment, child, closing].map(|head| two.open(store, head));
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
    let find = || w.in_place(store, 0, "2026-01-01", SlotKind::Period);
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
    // A single common product is a conflict.
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
    // The number of adjustments and children is unlimited.
    for purpose in [Purpose::Usage, Purpose::Usage, Purpose::Adjustment, Purpose::Adjustment] {
        w.open(store, DocumentHead { purpose, ..w.head(1) });
    }
}

pub fn a_second_document_with_a_number_is_corrupt(store: &dyn Store) {
    if store.shard_count() > 0 {
        // No node of a cluster sees all numbers. `verify` reports duplicates.
        return;
    }
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
    // A number is used only once, even after its document is voided. Other organizations have their own numbers.
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

/// Creates content with all kinds of lines, two products and two tax rates.
#[expect(clippy::too_many_lines, reason = "one value with all fields")]
pub(super) fn full_content(w: &World, period: billing_domain::calendar::Period) -> DocumentContent {
    let tier = |up_to: Option<&str>, quantity: &str, amount: &str| RatedTier {
        tier: billing_domain::catalog::Tier { up_to: up_to.map(price), unit_price: price("0.10"), flat_amount: price("5.00") },
        quantity: WideDecimal::parse(quantity).expect("a decimal"),
        amount: WideDecimal::parse(amount).expect("a decimal"),
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
        has_default_tax: false,
        amount: cents(minor),
        calculation: None,
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
        // These fields are independent: credited days, prepaid usage, agreed quantities.
        DocumentLine {
            period_start: date("2025-12-15"),
            quantities: vec![
                QuantityStep { from: date("2025-12-15"), quantity: fixtures::quantity("3.50") },
                QuantityStep { from: date("2026-01-10"), quantity: fixtures::quantity("0") },
            ],
            calculation: Some(Box::new(LineCalculation {
                unit_price: Some(price("1.250").into()),
                proration: Some(Proration { days: 17, of_days: 31 }),
                previously: Some(PreviouslyBilled {
                    quantity: Decimal::from_str_exact("0.50").ok(),
                    amount: cents(-40),
                    documents: vec![w.head(1).number],
                }),
                ..LineCalculation::default()
            })),
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
    let of = |rate: &str| if rate == "0" { fixtures::untaxed() } else { fixtures::taxed(rate) };
    let product = |no: u16, lines: Vec<DocumentLine>, discount: i64, discount_rate: &str, tax_rate: &str| {
        let sub_total: i64 = lines.iter().map(|line| line.amount.minor()).sum();
        BilledProduct {
            product_no: ProductNo(no),
            pricing_ref: w.pricing.pricing_ref.clone(),
            name: fixtures::line("API"),
            has_own_name: no == 1,
            minimum_fee: (no == 0).then(|| price("12.50")),
            lines,
            sub_total: cents(sub_total),
            rates: DiscountAndTax { discount: percent(discount_rate), tax: of(tax_rate) },
            discount: cents(discount),
            net: cents(sub_total - discount),
        }
    };
    let products = vec![
        product(0, lines, 409, "10.0", "19.000"),
        product(1, vec![line(Some("base"), None, 1000)], 0, "0", "7"),
        // One product has two pairs of rates.
        product(1, vec![line(Some("base"), None, 500)], 1, "0.2", "7.0"),
        product(1, vec![DocumentLine { has_default_tax: true, ..line(Some("untaxed"), None, 250) }], 0, "0", "0"),
    ];
    let tax = |rate: &str, minor: i64| {
        let treatment = of(rate);
        let base = products.iter().filter(|product| product.rates.tax == treatment).map(|product| product.net.minor()).sum();
        Tax { treatment, base: cents(base), amount: cents(minor) }
    };
    let taxes = vec![tax("0", 0), tax("7", 105), tax("19.000", 700)];
    let number = w.head(1).number;
    let prepaid = |name: &str, sold_by, minor, unit| PrepaidAmount {
        grant_ref: CreditGrantRef::from_uuid(w.customer.id.as_uuid()),
        name: fixtures::line(name),
        sold_by,
        treatment: of("19.000"),
        amount: cents(minor),
        unit,
    };
    let unit = fixtures::credit_unit("EUR", "0.0100").of(fixtures::eur()).cloned();
    let prepaid = vec![prepaid("Given ✓", None, 300, None), prepaid("Sold", Some(number), -300, unit)];
    let sum = |of: &dyn Fn(&BilledProduct) -> i64| products.iter().map(of).sum::<i64>();
    let (sub_total, discount) = (sum(&|product| product.sub_total.minor()), sum(&|product| product.discount.minor()));
    DocumentContent {
        taxes,
        sub_total: cents(sub_total),
        total_discount: cents(discount),
        prepaid,
        total_tax: cents(805),
        total: cents(sub_total - discount + 805),
        products,
    }
}

/// Creates legal particulars with all fields.
pub(super) fn full_paper(head: &DocumentHead) -> LegalParticulars {
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
    let facts = LegalParticularsInput {
        buyer_reference: Some(fixtures::buyer_reference("04011000-12345-35")),
        bank_account: Some(fixtures::bank_account("main").profile),
        corrects: Some(CorrectedDocument {
            number: DocumentNumber { sequence: 7, ..head.number.clone() },
            issue_date: date("2025-12-31"),
        }),
        corrects_last: Some(CorrectedDocument {
            number: DocumentNumber { sequence: 9, ..head.number.clone() },
            issue_date: date("2026-01-03"),
        }),
        tax_in_currency: TaxInCurrency::of([cents(0), cents(105), cents(700)], rate).ok(),
        supply: None,
    };
    LegalParticulars { supply: Some(SupplyCategory::Mixed), ..LegalParticulars::of(&customer, &entity, facts) }
}

#[expect(clippy::too_many_lines, reason = "one story")]
pub fn documents_written_together_are_as_those_written_alone(store: &dyn Store) {
    let w = world(store);
    let second = two_products(store, &w);
    let before = w.issue(store, w.head(1), cents(1));
    let keys = [w.contract.key(w.org), second.contract.key(w.org)];
    let mut heads = [w.head(2), second.head(1), w.head(3), second.head(2)];
    let child = heads[0].document_ref;
    (heads[3].kind, heads[3].number.kind) = (DocumentKind::Debit, DocumentKind::Debit);
    let hold = |tx: &mut dyn Tx| tx.hold_contracts(&keys.map(|key| (key, Lock::Exclusive)));
    let heads = write(store, |tx| {
        hold(tx)?;
        let wanted = BTreeMap::from([(keys[0], 2), (keys[1], 2)]);
        let firsts = tx.take_numbers_in_contracts(&wanted)?;
        assert_eq!(firsts, BTreeMap::from([(keys[0], 2), (keys[1], 1)]));
        let mut heads = heads.clone();
        let first = tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 3)?;
        for (n, head) in (0..).zip(&mut heads) {
            head.number_in_contract = firsts[&head.contract_key(w.org)] + u32::from(n >= 2);
            head.number.sequence = first + n;
        }
        heads[3].number.sequence = tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Debit, 1)?;
        let drafts =
            heads.each_ref().map(|head| (head, if head.document_ref == child { before.document_ref } else { head.document_ref }));
        tx.open_documents(w.org, &drafts, later(1))?;
        Ok(heads)
    });
    for head in &heads {
        let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a draft");
        assert_eq!((&stored.head, stored.is_draft()), (head, true));
        let family = if head.document_ref == child { before.document_ref } else { head.document_ref };
        assert_eq!(stored.family, family);
    }
    let issued = [
        w.frozen(&heads[0], cents(5)),
        second.frozen(&heads[1], cents(6)),
        w.frozen(&heads[2], cents(7)),
        second.frozen(&heads[3], cents(8)),
    ];
    let lines: Vec<Vec<LedgerLine>> = issued.iter().map(|issued| issued.content.ledger_lines()).collect();
    let lines_of = |head: &DocumentHead| read(store, |tx| tx.ledger_lines(head.key(w.org)));
    write(store, |tx| {
        hold(tx)?;
        let of_two = [(heads[2].key(w.org), &lines[1][..]), (heads[1].key(w.org), &[][..])];
        tx.put_lines_of_drafts(w.org, &of_two)?;
        tx.put_lines_of_drafts(w.org, &[(heads[1].key(w.org), &lines[0])])?;
        let due = BTreeMap::from([(keys[0], Some(later(9))), (keys[1], Some(later(8)))]);
        tx.set_next_dues(&due)
    });
    assert_eq!((lines_of(&heads[2]), lines_of(&heads[1])), (lines[1].clone(), lines[0].clone()));
    let due = read(store, |tx| tx.contracts_due(Some(w.org), later(100), None, 10));
    assert_eq!(due.iter().map(|due| (due.key, due.due_at)).collect::<Vec<_>>(), [(keys[1], later(8)), (keys[0], later(9))]);
    // The documents are issued in a different order. If one of them isn't a draft, none is issued.
    let freeze = |which: &[usize]| {
        let drafts: Vec<_> = which.iter().map(|n| (heads[*n].key(w.org), &issued[*n])).collect();
        let mut is_done = false;
        let outcome = store.run(Access::Write, &mut |tx| {
            hold(tx).expect("held");
            is_done = tx.issue_documents(w.org, &drafts, later(2)).expect("an answer");
            if is_done { Ok(()) } else { Err(RollBack) }
        });
        outcome.expect("the work is done");
        is_done
    };
    assert!(freeze(&[2, 3, 1]));
    assert!(!freeze(&[0, 1]));
    assert_eq!(read(store, |tx| tx.document(w.org, child)).map(|document| document.is_draft()), Some(true));
    assert!(freeze(&[0]));
    for ((head, issued), lines) in heads.iter().zip(&issued).zip(&lines) {
        let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
        assert_eq!((stored.lifecycle.issued(), &stored.head), (Some(issued), head));
        assert_eq!(&lines_of(head), lines);
    }
    let left = |head: &DocumentHead| AccountKey {
        customer_id: head.customer_id,
        entity_ref: head.entity_ref.clone(),
        currency: head.currency,
    };
    let accounts = BTreeSet::from([left(&heads[0]), left(&heads[1])]);
    let held = write(store, |tx| tx.hold_accounts(w.org, &accounts));
    assert_eq!(held, accounts.iter().map(|key| (key.clone(), fixtures::sum_of_cents(0))).collect());
    let open =
        read(store, |tx| tx.account_documents(w.org, &left(&heads[1]), DocumentsOf::OpenUpTo(fixtures::sum_of_cents(1000))));
    let mut totals: Vec<i64> = open.iter().filter_map(|document| document.total).map(Money::minor).collect();
    totals.sort_unstable();
    assert_eq!(totals, [6, 8]);
    assert_eq!(read(store, |tx| tx.broken_seals(w.org)), Vec::<String>::new());
    assert_eq!(read(store, |tx| tx.broken_series(w.org)), Vec::<String>::new());
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
    // Later catalog changes don't affect an issued document.
    let mut renamed = w.customer.clone();
    renamed.profile.name = fixtures::line("Renamed");
    write(store, |tx| updated(tx.update_customer(w.org, &renamed)));
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!(stored.head, head);
    let Lifecycle::Issued(issued) = stored.lifecycle else { panic!("not issued: {:?}", stored.lifecycle) };
    assert_eq!(format!("{issued:?}"), format!("{:?}", Box::new(full.clone())));
    assert_eq!(*issued, full);
    let discarded = write(store, |tx| {
        w.hold(tx)?;
        tx.void_draft(head.key(w.org), &w.draft_content(&head), later(1))
    });
    assert!(!discarded, "it is a draft no more");
}

pub fn a_draft_is_voided_once_and_never_issued_then(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    w.void(store, &head);
    write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        assert!(!tx.void_draft(head.key(w.org), &w.draft_content(&head), later(1))?);
        assert!(!tx.issue_document(head.key(w.org), &w.frozen(&head, cents(1)))?);
        let unknown = w.head(2);
        assert!(!tx.void_draft(unknown.key(w.org), &w.draft_content(&unknown), later(1))?);
        assert!(!tx.issue_document(unknown.key(w.org), &w.frozen(&unknown, cents(1)))?);
        Ok(())
    });
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!((stored.head, stored.lifecycle), (head.clone(), Lifecycle::Discarded(Some(Box::new(w.draft_content(&head))))));
}
