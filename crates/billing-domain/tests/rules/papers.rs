//! Tests of legal documents (billing rules 10): their taxes and their missing information.

use billing_domain::document::legal_particulars::{LegalParticulars, LegalParticularsInput, missing};
use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLine, FamilySums, SumKey};
use billing_domain::document::totals::{DocumentContent, RatedLines, total_up};
use billing_domain::document::{DocumentKind, Parties};
use billing_domain::party::{Customer, Entity};
use billing_domain::refs::ProductNo;
use billing_domain::tax::{StatedTax, TaxBasis, TaxCategory, TaxTreatment};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, cents, date, eur, line, line_item_id, percent, period, pricing};

fn stated(category: TaxCategory, reason: Option<&str>) -> TaxBasis {
    TaxBasis { category: Some(category), exemption_code: None, exemption_reason: reason.map(line) }
}

/// Returns the treatment at a rate. The stated category applies only at a rate of 0.
fn treatment(tax: &str, basis: &TaxBasis) -> TaxTreatment {
    TaxTreatment::of(&[StatedTax { rate: Some(percent(tax)), basis: basis.clone() }])
}

/// Returns a document with one product for each tax rate, category and amount.
fn bill(kind: DocumentKind, rows: &[(&str, TaxBasis, i64)], before: &FamilySums) -> DocumentContent {
    let terms = agreed(&pricing("api", vec![fixtures::fixed("base", "1")]), "2026-01-01", "2026-12-31");
    let rated = rows.iter().zip(0..).map(|((tax, basis, minor), no)| RatedLines {
        product_no: ProductNo(no),
        terms: &terms,
        rates: DiscountAndTax { discount: percent("0"), tax: treatment(tax, basis) },
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
            has_default_tax: false,
            amount: cents(*minor),
            calculation: None,
        }],
    });
    total_up(eur(), kind, rated.collect(), before).expect("small amounts")
}

#[test]
fn what_is_taxed_alike_is_one_tax_with_a_sum_of_its_own() {
    let reverse = fixtures::reverse_charge();
    let exempt = stated(TaxCategory::E, Some("Medical"));
    let rows = [
        ("19", TaxBasis::default(), 1000),
        ("0", exempt.clone(), 300),
        ("0.0", reverse.clone(), 200),
        ("0", exempt.clone(), 40),
        ("19.0", reverse.clone(), 5),
        ("0", TaxBasis::default(), 7),
        ("7", TaxBasis::default(), 100),
    ];
    let content = bill(DocumentKind::Invoice, &rows, &FamilySums::default());
    let taxes: Vec<_> =
        content.taxes.iter().map(|tax| (tax.treatment.basis.category, tax.base.minor(), tax.amount.minor())).collect();
    let (s, e, ae) = (Some(TaxCategory::S), Some(TaxCategory::E), Some(TaxCategory::Ae));
    assert_eq!(taxes, [(None, 7, 0), (e, 340, 0), (ae, 200, 0), (s, 100, 7), (s, 1005, 191)]);
    assert_eq!(content.total.minor(), 1652 + 198);
    assert!(content.adds_up());

    let mut sums = FamilySums::default();
    content.add_to(&mut sums, DocumentKind::Invoice, 1).expect("small amounts");
    let sum = |tax: &str, basis: &TaxBasis| sums.get(&SumKey::Tax(treatment(tax, basis)));
    let none = TaxBasis::default();
    let found = [sum("0", &none), sum("0", &exempt), sum("0", &reverse), sum("7", &none), sum("19", &none)];
    assert_eq!(found.map(|sum| (sum.base, sum.amount)), [(7, 0), (340, 0), (200, 0), (100, 7), (1005, 191)]);
    let back = bill(DocumentKind::Credit, &rows, &sums);
    assert_eq!((&back.taxes, back.total), (&content.taxes, content.total));
    back.add_to(&mut sums, DocumentKind::Credit, 1).expect("small amounts");
    assert!(sums.iter().all(|(_, sum)| (sum.base, sum.amount) == (0, 0)), "{sums:?}");
}

#[test]
fn what_the_law_asks_for_and_is_not_there_is_named() {
    let taxed = [("19", TaxBasis::default(), 100)];
    let lacks = |change: &dyn Fn(&mut Customer, &mut Entity), rows: &[(&str, TaxBasis, i64)]| {
        let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
        customer.profile.legal_name = Some(line("Acme Ltd"));
        customer.profile.billing_address = Some(fixtures::full_address());
        entity.profile.legal_name = Some(line("Main GmbH"));
        entity.profile.address = Some(fixtures::full_address());
        entity.profile.tax_id = Some(line("1"));
        change(&mut customer, &mut entity);
        let paper = LegalParticulars::of(&customer, &entity, LegalParticularsInput::default());
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
    let untaxed = [("0", TaxBasis::default(), 100), ("0", fixtures::reverse_charge(), 1)];
    assert_eq!(lacks(&|_, _| {}, &untaxed), ["/taxes/0/tax_category"]);
    let mixed = [("0", stated(TaxCategory::O, Some("Outside")), 100), ("19", TaxBasis::default(), 1)];
    assert_eq!(lacks(&|_, _| {}, &mixed), ["/taxes"]);
    let parties = Parties::of(&fixtures::customer(&CountingIds::new(), "acme"), &fixtures::entity("main"));
    let content = bill(DocumentKind::Invoice, &taxed, &FamilySums::default());
    assert_eq!(missing(&parties, None, &content), ["/format"], "a document of format 1 has no legal particulars");
}
