//! Tests of charges: their amounts, their documents and their refusals (billing rules 9, "By hand").

use billing_domain::access::Actor;
use billing_domain::catalog::Pricing;
use billing_domain::charge::{Charge, ChargeEdit, NewCharge};
use billing_domain::contract::amendment::CancelAt;
use billing_domain::contract::terms::{PaymentTime, ProductTerms};
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, LifecycleStatus};
use billing_domain::ledger::amend::{self, BackdatingPolicy};
use billing_domain::ledger::charge::{self, ChargeContext};
use billing_domain::ledger::{ContractBook, check, issue, preview};
use billing_domain::money::SignedPrice;
use billing_domain::refs::{ChargeRef, LineItemId};
use billing_domain::refusal::{MatchRefusal, Refusal};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{at, date, fixed, line, percent, pricing};
use uuid::Uuid;

/// A contract's book and the current time.
struct Life {
    book: ContractBook,
    ids: u128,
    now: &'static str,
}

impl Life {
    /// Creates a contract on 5 January 2026: a product at 49.00 per month in 2026, with changed pricing and terms.
    fn begin(price: impl FnOnce(&mut Pricing), agree: impl FnOnce(&mut ProductTerms)) -> Self {
        let ids = CountingIds::new();
        let mut plan = pricing("plan", vec![fixed("fee", "49.00")]);
        price(&mut plan);
        let mut terms = fixtures::agreed(&plan, "2026-01-01", "2026-12-31");
        agree(&mut terms);
        let customer = fixtures::customer(&ids, "acme");
        let contract = fixtures::contract(&ids, &customer, vec![terms]);
        let mut book = ContractBook::new(contract, customer, vec![fixtures::entity("main")]);
        amend::create(&mut book, BackdatingPolicy::Allowed, at("2026-01-05T12:00:00Z")).expect("a contract");
        Self { book, ids: 1_000, now: "2026-01-05T12:00:00Z" }
    }

    fn plain() -> Self {
        Self::begin(|_| {}, |_| {})
    }

    fn decide<T>(&mut self, decide: impl FnOnce(&mut ContractBook, &mut dyn FnMut() -> Uuid) -> T) -> T {
        let ids = &mut self.ids;
        let mut id_generator = || {
            *ids += 1;
            Uuid::from_u128(*ids)
        };
        let decided = decide(&mut self.book, &mut id_generator);
        let found = check::check(&self.book).expect("a book that can be read");
        assert!(found.is_empty(), "{found:?}");
        decided
    }

    fn run(&mut self, now: &'static str) {
        self.now = now;
        self.decide(|book, mut ids| issue::issue_due(book, at(now), usize::MAX, &mut ids)).expect("a run");
    }

    fn occasion(&self) -> ChargeContext {
        ChargeContext { now: at(self.now), by: Actor::Service, issue: false }
    }

    fn try_record(&mut self, date: &str, unit_price: &str, with: BillWith) -> Result<Charge, Refusal> {
        let (new, occasion) = (new(date, unit_price, with), self.occasion());
        self.decide(|book, mut ids| charge::record(book, new, occasion, &mut ids))
    }

    fn record(&mut self, date: &str, unit_price: &str) -> Charge {
        self.try_record(date, unit_price, BillWith::Usage).expect("a charge")
    }

    fn price(&mut self, charge: &Charge, unit_price: &str) -> Result<Charge, Refusal> {
        let edit = ChargeEdit { unit_price: Some(signed(unit_price)), ..ChargeEdit::default() };
        let occasion = self.occasion();
        self.decide(|book, mut ids| charge::change(book, charge, &edit, occasion, &mut ids))
    }

    fn try_delete(&mut self, charge: &Charge) -> Result<Charge, Refusal> {
        let occasion = self.occasion();
        self.decide(|book, mut ids| charge::delete(book, charge, occasion, &mut ids))
    }

    fn delete(&mut self, charge: &Charge) {
        self.try_delete(charge).expect("a deletion");
    }

    /// Describes every document in the order of opening: kind, first day, status, and sum.
    fn documents(&self) -> Vec<String> {
        let shown = self.book.documents().map(|document| {
            let kind = match document.head.kind {
                DocumentKind::Invoice => "INV",
                DocumentKind::Credit => "CRD",
                DocumentKind::Debit => "DBT",
            };
            let sum = match document.status {
                LifecycleStatus::Draft => self.book.content(document.head.document_ref).expect("a draft").sub_total.to_string(),
                _ => document.total.map_or_else(|| "-".to_owned(), |total| total.to_string()),
            };
            format!("{kind} {} {:?} {sum}", document.head.period.start(), document.status)
        });
        shown.collect()
    }
}

fn signed(text: &str) -> SignedPrice {
    SignedPrice::parse(text).expect(text)
}

fn new(day: &str, unit_price: &str, bill_with: BillWith) -> NewCharge {
    NewCharge {
        charge_ref: None,
        product_pricing_ref: None,
        date: date(day),
        name: line("Charged"),
        quantity: fixtures::quantity("1"),
        unit_price: signed(unit_price),
        unit: None,
        bill_with,
        discountable: false,
        goods: false,
        note: None,
        reason: None,
    }
}

fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid(violations) => violations.iter().next().expect("a violation").code,
        Refusal::Conflict { code, .. } => code,
        Refusal::NoMatch(MatchRefusal::NoChargedProduct) => "no_matching_contract",
        Refusal::AmountOutOfRange(_) => "amount_out_of_range",
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_amount_is_rounded_once_half_away_from_zero() {
    let charge = Life::plain().record("2026-01-10", "1");
    for (quantity, unit_price, amount) in [
        ("1", "500", "500.00 EUR"),
        ("2.5", "200.001", "500.00 EUR"),
        ("1", "0.005", "0.01 EUR"),
        ("1", "-0.005", "-0.01 EUR"),
        ("3", "0.333333333333", "1.00 EUR"),
        ("0", "-500", "0.00 EUR"),
        ("0.000000001", "4999999", "0.00 EUR"),
    ] {
        let charge = Charge { quantity: fixtures::quantity(quantity), unit_price: signed(unit_price), ..charge.clone() };
        assert_eq!(charge.amount().expect("in range").to_string(), amount, "{quantity} × {unit_price}");
    }
}

#[test]
fn a_charges_line_item_has_its_reference_whole() {
    for name in ["a", &"x".repeat(64), "charge:twice"] {
        let id = LineItemId::of_charge(&ChargeRef::parse(name).expect(name));
        assert_eq!(LineItemId::parse(id.as_str()), Ok(id.clone()));
        assert!(id.is_of_charge());
    }
    assert!(LineItemId::parse(&"x".repeat(65)).is_err() && LineItemId::parse(&format!("charge:{}", "x".repeat(65))).is_err());
    let named = pricing("plan", vec![fixed("charge:x", "1")]).content.check().expect_err("a reserved name");
    assert_eq!(code(&named.into()), "reserved");
}

#[test]
fn a_charge_is_on_the_document_of_its_periods_usage_or_fixed_items() {
    use PaymentTime::{AfterUse, BeforeUse, DuringUse};
    for (payment_time, with, day, documents) in [
        (AfterUse, BillWith::Usage, "2026-01-10", &["INV 2026-01-01 Draft 59.00 EUR"][..]),
        (AfterUse, BillWith::Fixed, "2026-01-10", &["INV 2026-01-01 Draft 59.00 EUR"]),
        (DuringUse, BillWith::Fixed, "2026-03-10", &["INV 2026-03-01 Draft 59.00 EUR"]),
        (DuringUse, BillWith::Usage, "2026-03-10", &["INV 2026-04-01 Draft 59.00 EUR"]),
        (DuringUse, BillWith::Usage, "2026-12-10", &["INV 2026-12-01 Draft 10.00 EUR"]),
        (BeforeUse, BillWith::Fixed, "2026-03-10", &["INV 2026-03-01 Draft 59.00 EUR"]),
        (BeforeUse, BillWith::Usage, "2026-03-10", &["INV 2026-03-01 Draft 49.00 EUR", "DBT 2026-03-01 Draft 10.00 EUR"]),
    ] {
        let mut life = Life::begin(|_| {}, |terms| terms.payment_time = payment_time);
        let charge = life.try_record(day, "10", with).expect("a charge");
        assert_eq!(life.documents(), documents, "{payment_time:?} {with:?}");
        let carriers = life.book.documents_of_charge(&charge);
        assert_eq!(carriers.len(), 1, "{payment_time:?} {with:?}");
        assert_eq!(Some(carriers[0].head.document_ref), life.book.documents().next_back().map(|last| last.head.document_ref));
    }
}

#[test]
fn previews_show_the_closing_invoice_of_a_charge() {
    let mut life = Life::begin(|_| {}, |terms| terms.payment_time = PaymentTime::DuringUse);
    life.record("2026-12-10", "10");
    let shown = preview::preview_next_period(&life.book, at("2026-12-05T12:00:00Z")).expect("a preview");
    let totals: Vec<String> =
        shown.iter().map(|shown| shown.content.as_ref().expect("a draft").content.sub_total.to_string()).collect();
    assert_eq!(totals, ["10.00 EUR"]);
}

#[test]
fn what_is_issued_gets_the_difference_by_the_sign_of_the_change() {
    let mut life = Life::plain();
    life.run("2026-02-01T02:00:00Z");
    let charge = life.record("2026-01-10", "10");
    let charge = life.price(&charge, "15").expect("a higher price");
    assert_eq!(life.documents(), ["INV 2026-01-01 Issued 49.00 EUR", "DBT 2026-01-01 Draft 15.00 EUR"], "the draft is updated");
    life.run("2026-02-02T00:00:00Z");
    let charge = life.price(&charge, "12").expect("a lower price");
    let names: Vec<String> =
        life.book.documents_of_charge(&charge).iter().map(|carrier| format!("{:?}", carrier.head.kind)).collect();
    assert_eq!(names, ["Debit", "Credit"]);
    // The credit carries the latest change and gets the wrong sign.
    life.price(&charge, "20").expect("a higher price again");
    assert_eq!(life.documents().last().map(String::as_str), Some("CRD 2026-01-01 Draft -5.00 EUR"));
    life.run("2026-02-03T00:00:00Z");
    assert_eq!(
        life.documents(),
        [
            "INV 2026-01-01 Issued 49.00 EUR",
            "DBT 2026-01-01 Issued 15.00 EUR",
            "CRD 2026-01-01 Discarded -",
            "DBT 2026-01-01 Issued 5.00 EUR"
        ]
    );
}

#[test]
fn a_charge_of_zero_has_its_document_issued_and_a_deleted_one_has_not() {
    let last = |life: &Life| life.book.documents().map(|document| document.status).next_back();
    let mut life = Life::begin(|plan| plan.content.line_items.clear(), |_| {});
    let charge = life.record("2026-01-10", "0");
    life.run("2026-02-01T02:00:00Z");
    assert_eq!(last(&life), Some(LifecycleStatus::Issued));
    assert_eq!(life.book.documents_of_charge(&charge).len(), 1);
    let late = life.record("2026-01-11", "0");
    assert_eq!(life.documents(), ["INV 2026-01-01 Issued 0.00 EUR", "DBT 2026-01-01 Draft 0.00 EUR"]);
    life.delete(&late);
    life.run("2026-02-02T00:00:00Z");
    assert_eq!(last(&life), Some(LifecycleStatus::Discarded));
}

#[test]
fn a_minimum_fee_does_not_count_charges() {
    let mut life = Life::begin(|plan| plan.content.minimum_fee = Some(fixtures::price("60")), |_| {});
    life.record("2026-01-10", "100");
    assert_eq!(life.documents(), ["INV 2026-01-01 Draft 160.00 EUR"], "the fee of 60.00 and the charge");
}

#[test]
fn a_credit_takes_no_more_than_is_billed_after_discount() {
    for (discount, discountable, unit_price, is_taken) in [
        ("0", false, "-49", true),
        ("0", false, "-49.01", false),
        ("0", true, "-49", true),
        ("50", false, "-24.50", true),
        ("50", false, "-24.51", false),
        ("50", true, "-49", true),
        ("50", true, "-49.02", false),
        ("100", false, "-0.01", false),
        ("100", true, "-49", true),
    ] {
        let mut life = Life::begin(|_| {}, |terms| terms.discount = Some(percent(discount)));
        let new = NewCharge { discountable, ..new("2026-01-10", unit_price, BillWith::Usage) };
        let occasion = life.occasion();
        let before = life.documents();
        let recorded = life.decide(|book, mut ids| charge::record(book, new, occasion, &mut ids));
        let reported = format!("{discount} % {discountable} {unit_price}: {recorded:?}");
        match recorded {
            Ok(_) => assert!(is_taken, "{reported}"),
            Err(refusal) => {
                assert_eq!((is_taken, code(&refusal), life.documents()), (false, "credit_above_billed", before), "{reported}")
            }
        }
    }
}

#[test]
fn a_charge_that_others_below_zero_need_stays() {
    let mut life = Life::plain();
    let other = life.record("2026-01-10", "100");
    let credit = life.record("2026-01-11", "-120");
    assert_eq!(code(&life.try_delete(&other).expect_err("only 29.00 are left")), "credit_above_billed");
    let credit = life.price(&credit, "-49").expect("a smaller credit");
    life.delete(&other);
    assert_eq!(code(&life.price(&credit, "-49.01").expect_err("a larger credit")), "credit_above_billed");
    let edit = ChargeEdit { name: Some(line("Goodwill")), ..ChargeEdit::default() };
    let occasion = life.occasion();
    let renamed = life.decide(|book, mut ids| charge::change(book, &credit, &edit, occasion, &mut ids)).expect("a name");
    assert_eq!((renamed.revision, renamed.name.as_str()), (3, "Goodwill"));
    let same = life.decide(|book, mut ids| charge::change(book, &renamed, &edit, occasion, &mut ids)).expect("no change");
    assert_eq!(same, renamed);
}

#[test]
fn days_that_no_product_bills_are_refused() {
    let mut life = Life::plain();
    for day in ["2025-12-31", "2027-01-01"] {
        let refusal = life.try_record(day, "1", BillWith::Usage).expect_err("a refusal");
        assert_eq!(code(&refusal), "no_matching_contract", "{day}");
    }
    assert_eq!(life.documents(), [""; 0]);
}

#[test]
fn a_cancel_leaves_no_charge_without_a_period() {
    let mut life = Life::plain();
    let charge = life.record("2026-03-10", "1");
    let cancel = |life: &mut Life, day: &str| {
        let (last_day, now) = (CancelAt::Day(date(day)), at(life.now));
        let before = life.book.clone();
        let cancelled = life.decide(|book, mut ids| amend::cancel(book, last_day, BackdatingPolicy::Allowed, now, &mut ids));
        if cancelled.is_err() {
            life.book = before;
        }
        cancelled.map_err(|refusal| code(&refusal))
    };
    assert_eq!(cancel(&mut life, "2026-03-09"), Err("charge_already_recorded"));
    assert_eq!(cancel(&mut life, "2026-03-10"), Ok(()));
    life.delete(&charge);
    assert_eq!(cancel(&mut life, "2026-03-09"), Ok(()));
}

/// The fee of January shrinks from 49.00 to 49.00 × 15 ÷ 31 = 23.71, and a credit takes no more than that.
#[test]
fn what_counts_of_a_credit_is_at_most_what_its_period_bills() {
    let mut life = Life::plain();
    let (more, credit) = (life.record("2026-02-10", "10"), life.record("2026-01-10", "-40"));
    let counts = |life: &Life, charge: &Charge| charge::billed_amount(&life.book, charge).expect("an amount").to_string();
    assert_eq!((counts(&life, &more), counts(&life, &credit)), ("10.00 EUR".to_owned(), "-40.00 EUR".to_owned()));
    life.delete(&more);
    assert_eq!(counts(&life, &Charge { deleted: true, ..more }), "0.00 EUR");
    let (last_day, now) = (CancelAt::Day(date("2026-01-15")), at(life.now));
    life.decide(|book, mut ids| amend::cancel(book, last_day, BackdatingPolicy::Allowed, now, &mut ids)).expect("a cancel");
    assert_eq!(counts(&life, &credit), "-23.71 EUR");
    assert_eq!(credit.amount().expect("an amount").to_string(), "-40.00 EUR");
}
