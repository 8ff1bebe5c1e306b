//! Tests of how periods are assigned to documents, and of issue days (billing rules 2).

use billing_domain::contract::terms::{PaymentTime, ProductTerms};
use billing_domain::contract::{Contract, ContractProduct, Segment, SegmentTerms};
use billing_domain::document::linking::{
    BillingSlot, ProductPart, SlotKind, part_for_fixed, part_for_usage, part_in, parts_of_period,
};
use billing_domain::document::{DocumentKind, Purpose};
use billing_domain::ledger::{ContractBook, preview};
use billing_domain::party::{NetTerms, PaymentDetails};
use billing_domain::refs::ProductNo;
use billing_domain::refusal::Refusal;
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed_with, at, currency, date, entity_ref, per_unit, percent, pricing};
use proptest::prelude::*;

use PaymentTime::{AfterUse, BeforeUse, DuringUse};

fn terms(payment_time: PaymentTime, first: &str, last: &str, issue_day: Option<&str>) -> ProductTerms {
    agreed_with(&pricing("api", vec![per_unit("calls", "1")]), first, last, |request| {
        request.payment_time = Some(payment_time);
        request.issue_day = issue_day.map(date);
    })
}

fn product(terms: ProductTerms) -> ContractProduct {
    ContractProduct::new(ProductNo(0), terms)
}

fn versions(segments: Vec<(&str, ProductTerms)>) -> ContractProduct {
    let segment = |(version, (from, terms)): (u32, (&str, ProductTerms))| Segment {
        version,
        in_force_from: date(from),
        agreed: SegmentTerms::Billed(Box::new(terms)),
    };
    ContractProduct { no: ProductNo(0), segments: (1..).zip(segments).map(segment).collect() }
}

/// Formats a part as `slot of own: period of fixed items, period of usage, on issue day`. A period is its first month and day.
fn shown(part: &ProductPart<'_>) -> String {
    let month = |period: Option<billing_domain::contract::ProductPeriod<'_>>| {
        period.map_or("-".to_owned(), |period| period.period.span().start().format("%m-%d").to_string())
    };
    let own = part.own.period.span().start().format("%m-%d");
    format!("{:?} of {own}: {} {} on {}", part.kind, month(part.fixed), month(part.usage), part.issue_day())
}

/// Returns all documents of a product, period by period.
fn documents(product: &ContractProduct) -> Vec<String> {
    product.periods().flat_map(parts_of_period).map(|part| shown(&part)).collect()
}

#[test]
fn after_use_bills_everything_the_day_after_the_period() {
    let expected = [
        "Period of 01-01: 01-01 01-01 on 2026-02-01",
        "Period of 02-01: 02-01 02-01 on 2026-03-01",
        "Period of 03-01: 03-01 03-01 on 2026-04-01",
    ];
    assert_eq!(documents(&product(terms(AfterUse, "2026-01-01", "2026-03-31", None))), expected);
}

#[test]
fn during_use_bills_usage_with_the_next_period_and_closes() {
    let expected = [
        "Period of 01-15: 01-15 - on 2026-01-15",
        "Period of 02-01: 02-01 01-15 on 2026-02-01",
        "Period of 03-01: 03-01 02-01 on 2026-03-01",
        "Closing of 03-01: - 03-01 on 2026-04-01",
    ];
    assert_eq!(documents(&product(terms(DuringUse, "2026-01-15", "2026-03-31", None))), expected);
    let one_period = ["Period of 01-01: 01-01 - on 2026-01-01", "Closing of 01-01: - 01-01 on 2026-02-01"];
    assert_eq!(documents(&product(terms(DuringUse, "2026-01-01", "2026-01-31", None))), one_period);
}

#[test]
fn before_use_bills_usage_on_a_debit_after_the_period() {
    let expected = [
        "Period of 01-01: 01-01 - on 2026-01-01",
        "UsageDebit of 01-01: - 01-01 on 2026-02-01",
        "Period of 02-01: 02-01 - on 2026-02-01",
        "UsageDebit of 02-01: - 02-01 on 2026-03-01",
    ];
    assert_eq!(documents(&product(terms(BeforeUse, "2026-01-01", "2026-02-28", None))), expected);
    let kinds = [SlotKind::Period, SlotKind::UsageDebit, SlotKind::Closing].map(SlotKind::document_kind);
    assert_eq!(kinds, [DocumentKind::Invoice, DocumentKind::Debit, DocumentKind::Invoice]);
}

#[test]
fn nothing_is_issued_before_the_issue_day() {
    // The issue day, 10 March, is also the anchor.
    let rows: [(PaymentTime, &[&str]); 3] = [
        (
            AfterUse,
            &[
                "Period of 01-10: 01-10 01-10 on 2026-03-10",
                "Period of 02-10: 02-10 02-10 on 2026-03-10",
                "Period of 03-10: 03-10 03-10 on 2026-04-10",
            ],
        ),
        (
            DuringUse,
            &[
                "Period of 01-10: 01-10 - on 2026-03-10",
                "Period of 02-10: 02-10 01-10 on 2026-03-10",
                "Period of 03-10: 03-10 02-10 on 2026-03-10",
                "Closing of 03-10: - 03-10 on 2026-04-10",
            ],
        ),
        (
            BeforeUse,
            &[
                "Period of 01-10: 01-10 - on 2026-03-10",
                "UsageDebit of 01-10: - 01-10 on 2026-03-10",
                "Period of 02-10: 02-10 - on 2026-03-10",
                "UsageDebit of 02-10: - 02-10 on 2026-03-10",
                "Period of 03-10: 03-10 - on 2026-03-10",
                "UsageDebit of 03-10: - 03-10 on 2026-04-10",
            ],
        ),
    ];
    for (payment_time, expected) in rows {
        assert_eq!(documents(&product(terms(payment_time, "2026-01-10", "2026-04-09", Some("2026-03-10")))), expected);
    }
}

#[test]
fn usage_carries_over_to_the_next_version_only_where_it_can_stand_there() {
    let during = || terms(DuringUse, "2026-01-01", "2026-12-31", None);
    let after = || terms(AfterUse, "2026-01-01", "2026-12-31", None);
    let mut elsewhere = during();
    elsewhere.entity_ref = entity_ref("elsewhere");
    let mut in_dollars = during();
    in_dollars.pricing.currency = currency("USD");
    let mut repriced = during();
    repriced.line_items = [].into();
    let carried = ["Period of 01-01: 01-01 - on 2026-01-01", "Period of 02-01: 02-01 01-01 on 2026-02-01"];
    let closed = [
        "Period of 01-01: 01-01 - on 2026-01-01",
        "Closing of 01-01: - 01-01 on 2026-02-01",
        "Period of 02-01: 02-01 - on 2026-02-01",
    ];
    let to_after = [
        "Period of 01-01: 01-01 - on 2026-01-01",
        "Closing of 01-01: - 01-01 on 2026-02-01",
        "Period of 02-01: 02-01 02-01 on 2026-03-01",
    ];
    let from_after = ["Period of 01-01: 01-01 01-01 on 2026-02-01", "Period of 02-01: 02-01 - on 2026-02-01"];
    let rows: [(&str, ProductTerms, ProductTerms, &[&str]); 5] = [
        ("other line items", during(), repriced, &carried),
        ("another entity", during(), elsewhere, &closed),
        ("another currency", during(), in_dollars, &closed),
        ("another payment time", during(), after(), &to_after),
        ("from another payment time", after(), during(), &from_after),
    ];
    for (what, first, second, expected) in rows {
        let product = versions(vec![("2026-01-01", first), ("2026-02-01", second)]);
        assert_eq!(documents(&product)[..expected.len()], *expected, "{what}");
    }
}

#[test]
fn a_part_with_usage_is_a_part_of_its_documents_period() {
    let product = product(terms(DuringUse, "2026-01-01", "2026-02-28", None));
    let january = product.period_at(date("2026-01-31")).expect("covered");
    assert_eq!(shown(&part_for_usage(january)), "Period of 02-01: 02-01 01-01 on 2026-02-01");
    let february = product.period_at(date("2026-02-01")).expect("covered");
    assert_eq!(shown(&part_for_usage(february)), "Closing of 02-01: - 02-01 on 2026-03-01");
}

#[test]
fn a_document_is_due_at_the_entitys_midnight_and_its_grace() {
    let rows = [
        ("UTC", 0, "2026-03-01T00:00:00Z"),
        ("UTC", 2, "2026-03-01T02:00:00Z"),
        ("UTC", 720, "2026-03-31T00:00:00Z"),
        ("Europe/Berlin", 2, "2026-03-01T01:00:00Z"),
        ("America/New_York", 2, "2026-03-01T07:00:00Z"),
        ("Pacific/Kiritimati", 0, "2026-02-28T10:00:00Z"),
        ("Pacific/Pago_Pago", 0, "2026-03-01T11:00:00Z"),
        ("Asia/Kathmandu", 1, "2026-02-28T19:15:00Z"),
    ];
    let product = product(terms(AfterUse, "2026-01-01", "2026-12-31", None));
    let february = product.period_at(date("2026-02-10")).expect("covered");
    for (zone, grace_hours, expected) in rows {
        let mut entity = fixtures::entity("main");
        (entity.profile.time_zone, entity.profile.grace_hours) = (fixtures::zone(zone), grace_hours);
        let due_at = part_for_usage(february).due_at(&entity);
        assert_eq!(due_at.to_string(), expected, "{zone} and {grace_hours} h");
    }
}

/// Returns the book of a contract with these products and the entities `main` and `other`.
fn book(terms: Vec<ProductTerms>) -> ContractBook {
    let ids = CountingIds::new();
    let customer = fixtures::customer(&ids, "acme");
    let contract: Contract = fixtures::contract(&ids, &customer, terms);
    ContractBook::new(contract, customer, vec![fixtures::entity("main"), fixtures::entity("other")])
}

/// Returns the products on the document of the first product's first period, in a slot, as previews of January show it.
fn companion_nos(book: &ContractBook, kind: SlotKind) -> Vec<u16> {
    let own = book.contract.products[0].first_period().expect("a period");
    let now = at("2026-01-15T12:00:00Z");
    let shown = [preview::preview_current_period(book, now), preview::preview_next_period(book, now)]
        .into_iter()
        .flat_map(|shown| shown.expect("a preview"));
    let mut heads = shown.map(|shown| shown.document.head);
    let is_it = |head: &billing_domain::document::DocumentHead| {
        head.purpose == Purpose::Regular(kind) && head.period == own.days() && head.parts.contains(&ProductNo(0))
    };
    heads.find(is_it).expect("the slot").parts.iter().map(|no| no.0).collect()
}

#[test]
fn products_share_a_document_when_six_things_agree() {
    let plain = || terms(AfterUse, "2026-01-01", "2026-12-31", None);
    let changed = |change: &dyn Fn(&mut ProductTerms)| {
        let mut terms = plain();
        change(&mut terms);
        terms
    };
    let card = |terms: &mut ProductTerms| {
        terms.payment = PaymentDetails { crypto: fixtures::full_payment().crypto, ..PaymentDetails::default() };
    };
    let rows: Vec<(&str, ProductTerms, bool)> = vec![
        ("the same terms", plain(), true),
        ("another pricing", changed(&|t| t.pricing.pricing_ref = fixtures::pricing_ref("other")), true),
        ("another tax", changed(&|t| t.tax = Some(percent("7"))), true),
        ("another discount", changed(&|t| t.discount = Some(percent("50"))), true),
        ("another note", changed(&|t| t.note = Some(fixtures::prose("note"))), true),
        ("net terms that say the default", changed(&|t| t.net_terms = Some(NetTerms::DueUponReceipt)), true),
        ("a longer range with the same period", terms(AfterUse, "2026-01-01", "2027-12-31", None), true),
        ("another entity", changed(&|t| t.entity_ref = entity_ref("other")), false),
        ("another currency", changed(&|t| t.pricing.currency = currency("USD")), false),
        ("another period", terms(AfterUse, "2026-01-01", "2026-12-30", None), false),
        ("a period that begins later", terms(AfterUse, "2026-01-02", "2026-12-31", None), false),
        ("another payment time", terms(BeforeUse, "2026-01-01", "2026-12-31", None), false),
        ("other net terms", changed(&|t| t.net_terms = Some(NetTerms::Days(30))), false),
        ("other payment details", changed(&card), false),
        ("no period there", terms(AfterUse, "2026-02-01", "2026-12-31", None), false),
    ];
    for (what, other, parts) in rows {
        let book = book(vec![plain(), other, plain()]);
        let expected: &[u16] = if parts { &[0, 1, 2] } else { &[0, 2] };
        assert_eq!(companion_nos(&book, SlotKind::Period), expected, "{what}");
    }
}

#[test]
fn companions_stand_in_the_same_slot() {
    // In January, one product continues and two products end.
    let ends = || terms(DuringUse, "2026-01-01", "2026-01-31", None);
    let goes_on = || terms(DuringUse, "2026-01-01", "2026-02-28", None);
    let book = book(vec![ends(), goes_on(), ends()]);
    assert_eq!(companion_nos(&book, SlotKind::Period), [0, 1, 2]);
    assert_eq!(companion_nos(&book, SlotKind::Closing), [0, 2]);
}

#[test]
fn without_its_entity_a_book_shares_nothing() {
    let mut book = book(vec![terms(AfterUse, "2026-01-01", "2026-12-31", None)]);
    book.entities.clear();
    let shown = preview::preview_current_period(&book, at("2026-01-15T12:00:00Z"));
    assert!(matches!(shown, Err(Refusal::Broken(_))), "{shown:?}");
}

#[test]
fn a_share_is_found_again_by_its_place() {
    let other = || terms(DuringUse, "2026-01-01", "2026-12-31", None);
    let book = book(vec![other(), other(), terms(DuringUse, "2026-03-01", "2026-12-31", None)]);
    let found = |no: u16, period_start: &str, kind: SlotKind| {
        let slot = BillingSlot { product_no: ProductNo(no), period_start: date(period_start), kind };
        let part = part_in(book.contract.product(ProductNo(no))?, slot)?;
        assert_eq!(part.slot(), slot);
        Some(format!("{} {}", part.own.product_no.0, shown(&part)))
    };
    let rows = [
        (1, "2026-02-01", SlotKind::Period, Some("1 Period of 02-01: 02-01 01-01 on 2026-02-01")),
        (0, "2026-02-01", SlotKind::Period, Some("0 Period of 02-01: 02-01 01-01 on 2026-02-01")),
        (0, "2026-12-01", SlotKind::Closing, Some("0 Closing of 12-01: - 12-01 on 2027-01-01")),
        // Product 2 has no period there. Product 9 does not exist. No period begins on the 2nd. February has no closing invoice.
        (2, "2026-02-01", SlotKind::Period, None),
        (9, "2026-02-01", SlotKind::Period, None),
        (0, "2026-02-02", SlotKind::Period, None),
        (0, "2026-02-01", SlotKind::Closing, None),
        (0, "2026-02-01", SlotKind::UsageDebit, None),
    ];
    for (no, period_start, kind, expected) in rows {
        assert_eq!(found(no, period_start, kind).as_deref(), expected, "{no} {period_start} {kind:?}");
    }
}

/// Generates up to three versions with any payment time over a year, sometimes with a gap.
fn any_product() -> impl Strategy<Value = ContractProduct> {
    let time = || proptest::sample::select(vec![AfterUse, DuringUse, BeforeUse]);
    let from = |month: u32, day: u32| format!("2026-{month:02}-{day:02}");
    (time(), time(), time(), 1u32..7, 7u32..13, 1u32..28, proptest::bool::ANY).prop_map(
        move |(a, b, c, second, third, day, gap)| {
            let year = |payment_time| terms(payment_time, "2026-01-01", "2026-12-31", None);
            let until = if gap { from(third - 1, day) } else { "2026-12-31".to_owned() };
            let middle = terms(b, "2026-01-01", &until, None);
            let (second, third) = (from(second, day), from(third, day));
            versions(vec![("2026-01-01", year(a)), (&second, middle), (&third, year(c))])
        },
    )
}

proptest! {
    #[test]
    fn every_period_is_billed_exactly_once(product in any_product()) {
        let parts: Vec<ProductPart<'_>> = product.periods().flat_map(parts_of_period).collect();
        for period in product.periods() {
            let fixed: Vec<&ProductPart<'_>> = parts.iter().filter(|part| part.fixed == Some(period)).collect();
            prop_assert_eq!(fixed.len(), 1);
            prop_assert_eq!(&part_for_fixed(period), fixed[0]);
            let billing: Vec<&ProductPart<'_>> = parts.iter().filter(|part| part.usage == Some(period)).collect();
            prop_assert_eq!(billing.len(), 1);
            // Events and the billing run agree on the document.
            prop_assert_eq!(&part_for_usage(period), billing[0]);
            // Usage is not billed before its period is over.
            prop_assert!(billing[0].issue_day() >= period.period.span().end());
            // A part has one billing slot, and a billing slot has one part.
            for part in fixed.into_iter().chain(billing) {
                prop_assert_eq!(part_in(&product, part.slot()), Some(*part));
            }
        }
    }
}
