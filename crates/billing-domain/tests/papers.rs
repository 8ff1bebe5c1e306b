//! The document as a legal paper (billing rules 10): how it is taxed, and what it lacks.

use billing_domain::document::lines::{BillWith, DocumentLine, FamilySums, Rates, SumKey};
use billing_domain::document::paper::{Paper, PaperFacts, missing};
use billing_domain::document::totals::{DocumentContent, RatedLines, total_up};
use billing_domain::document::{DocumentKind, Parties};
use billing_domain::party::{Customer, Entity};
use billing_domain::refs::ProductNo;
use billing_domain::tax::{TaxCategory, TaxTreatment};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, cents, date, eur, line, line_item_id, percent, period, pricing};

fn stated(category: TaxCategory, reason: Option<&str>) -> TaxTreatment {
    TaxTreatment { category: Some(category), exemption_code: None, exemption_reason: reason.map(line) }
}

/// A document of a product for each tax rate, treatment and amount.
fn bill(kind: DocumentKind, rows: &[(&str, TaxTreatment, i64)], before: &FamilySums) -> DocumentContent {
    let terms = agreed(&pricing("api", vec![fixtures::fixed("base", "1")]), "2026-01-01", "2026-12-31");
    let rated = rows.iter().zip(0..).map(|((tax, treatment, minor), no)| RatedLines {
        product_no: ProductNo(no),
        terms: &terms,
        rates: Rates { discount: percent("0"), tax: percent(tax) },
        treatment: TaxTreatment::effective(percent(tax), [treatment]),
        lines: vec![DocumentLine {
            line_item_id: Some(line_item_id("base")),
            name: line("base"),
            period_start: date("2026-01-01"),
            service_period: period("2026-01-01", "2026-01-31"),
            bill_with: BillWith::Fixed,
            usage: None,
            quantities: Vec::new(),
            unit_code: None,
            charge: None,
            amount: cents(*minor),
        }],
    });
    total_up(eur(), kind, rated.collect(), before).expect("small amounts")
}

#[test]
fn what_is_taxed_alike_is_one_tax_and_rates_are_summed_by_rate() {
    let reverse = fixtures::reverse_charge();
    let exempt = stated(TaxCategory::E, Some("Medical"));
    let rows = [
        ("19", TaxTreatment::default(), 1000),
        ("0", exempt.clone(), 300),
        ("0.0", reverse.clone(), 200),
        ("0", exempt, 40),
        ("19.0", reverse, 5),
        ("0", TaxTreatment::default(), 7),
        ("7", TaxTreatment::default(), 100),
    ];
    let content = bill(DocumentKind::Invoice, &rows, &FamilySums::default());
    let taxes: Vec<_> = content.taxes.iter().map(|tax| (tax.treatment.category, tax.base.minor(), tax.amount.minor())).collect();
    let (s, e, ae) = (Some(TaxCategory::S), Some(TaxCategory::E), Some(TaxCategory::Ae));
    assert_eq!(taxes, [(None, 7, 0), (e, 340, 0), (ae, 200, 0), (s, 100, 7), (s, 1005, 191)]);
    assert_eq!(content.total.minor(), 1652 + 198);
    assert!(content.adds_up());

    let mut sums = FamilySums::default();
    content.add_to(&mut sums, DocumentKind::Invoice, 1).expect("small amounts");
    let of_rate = |rate| (sums.get(SumKey::Tax(percent(rate))).base, sums.get(SumKey::Tax(percent(rate))).amount);
    assert_eq!([of_rate("0"), of_rate("7"), of_rate("19")], [(547, 0), (100, 7), (1005, 191)]);
    // A credit of the same, in another category by now, gives back all of it.
    let back = bill(DocumentKind::Credit, &rows.clone().map(|(tax, _, minor)| (tax, stated(TaxCategory::Z, None), minor)), &sums);
    assert_eq!((back.taxes.len(), back.total), (3, content.total));
    back.add_to(&mut sums, DocumentKind::Credit, 1).expect("small amounts");
    assert!(sums.iter().all(|(_, sum)| (sum.base, sum.amount) == (0, 0)), "{sums:?}");
}

#[test]
fn what_the_law_asks_for_and_is_not_there_is_named() {
    let taxed = [("19", TaxTreatment::default(), 100)];
    let lacks = |change: &dyn Fn(&mut Customer, &mut Entity), rows: &[(&str, TaxTreatment, i64)]| {
        let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
        customer.profile.legal_name = Some(line("Acme Ltd"));
        customer.profile.billing_address = Some(fixtures::full_address());
        entity.profile.legal_name = Some(line("Main GmbH"));
        entity.profile.address = Some(fixtures::full_address());
        entity.profile.tax_id = Some(line("1"));
        change(&mut customer, &mut entity);
        let paper = Paper::of(&customer, &entity, PaperFacts::default());
        missing(&Parties::of(&customer, &entity), Some(&paper), &bill(DocumentKind::Invoice, rows, &FamilySums::default()))
    };
    assert_eq!(lacks(&|_, _| {}, &taxed), Vec::<String>::new());
    assert_eq!(lacks(&|customer, _| customer.profile.legal_name = None, &taxed), ["/customer/legal_name"]);
    assert_eq!(lacks(&|customer, _| customer.profile.billing_address = Some(Default::default()), &taxed), ["/customer/address"]);
    assert_eq!(lacks(&|_, entity| entity.profile.legal_name = None, &taxed), ["/entity/legal_name"]);
    assert_eq!(lacks(&|_, entity| entity.profile.address = None, &taxed), ["/entity/address"]);
    assert_eq!(lacks(&|_, entity| entity.profile.tax_id = None, &taxed), ["/entity/vat_id"]);
    let with_vat_id = |_: &mut Customer, entity: &mut Entity| {
        entity.profile.tax_id = None;
        entity.profile.legal = fixtures::full_legal("DE123456789");
    };
    assert_eq!(lacks(&with_vat_id, &taxed), Vec::<String>::new());
    let untaxed = [("0", TaxTreatment::default(), 100), ("0", fixtures::reverse_charge(), 1)];
    assert_eq!(lacks(&|_, _| {}, &untaxed), ["/taxes/0/tax_category"]);
    let mixed = [("0", stated(TaxCategory::O, Some("Outside")), 100), ("19", TaxTreatment::default(), 1)];
    assert_eq!(lacks(&|_, _| {}, &mixed), ["/taxes"]);
    let parties = Parties::of(&fixtures::customer(&CountingIds::new(), "acme"), &fixtures::entity("main"));
    let content = bill(DocumentKind::Invoice, &taxed, &FamilySums::default());
    assert_eq!(missing(&parties, None, &content), ["/format"], "of format 1");
}
