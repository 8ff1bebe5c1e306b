//! Tests of the credit that documents take and return (billing rules 12). Amounts are in minor units.

use std::collections::BTreeMap;

use billing_domain::calendar::Period;
use billing_domain::credit::{CreditDraw, CreditGrant, CreditGrantEdit, CreditSale, NewCreditGrant};
use billing_domain::document::lines::{FamilySums, SumKey};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::ledger::credit::{CreditFamily, CreditNeed, cover};
use billing_domain::money::Money;
use billing_domain::party::NumberPrefix;
use billing_domain::patch::Patch;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractRef, CreditGrantRef, CustomerId, DocumentRef};
use billing_domain::refusal::Refusal;
use billing_domain::tax::TaxTreatment;
use billing_testkit::fixtures::{at, currency, date, entity_ref, line, percent, period};
use proptest::prelude::*;
use uuid::Uuid;

fn account(code: &str) -> AccountKey {
    AccountKey {
        customer_id: CustomerId::from_uuid(Uuid::from_u128(1)),
        entity_ref: entity_ref("main"),
        currency: currency(code),
    }
}

fn document(number: u128) -> DocumentRef {
    DocumentRef::from_uuid(Uuid::from_u128(number))
}

fn contract(number: u128) -> ContractRef {
    ContractRef::from_uuid(Uuid::from_u128(number))
}

fn grant_ref(number: u128) -> CreditGrantRef {
    CreditGrantRef::from_uuid(Uuid::from_u128(number))
}

fn tax(rate: &str) -> TaxTreatment {
    TaxTreatment::at(percent(rate))
}

/// Returns given credit of the account in a currency.
fn given_in(code: &str, number: u128, minor: i64) -> CreditGrant {
    let amount = Money::from_minor(minor, currency(code)).to_decimal().to_string();
    let new = NewCreditGrant { account: account(code), amount, name: line("Credit"), from: None, to: None, contract_ref: None };
    CreditGrant::new(new, grant_ref(number), None, at("2026-01-01T00:00:00Z")).expect("an amount")
}

fn given_credit(number: u128, minor: i64) -> CreditGrant {
    given_in("EUR", number, minor)
}

/// Returns credit that a paid invoice of the same net amount sold at a tax rate.
fn sold(number: u128, minor: i64, rate: &str) -> CreditGrant {
    let grant = given_credit(number, minor);
    let sale = CreditSale {
        document_ref: document(1_000 + number),
        number: DocumentNumber { prefix: NumberPrefix::parse("UB").expect("a prefix"), kind: DocumentKind::Invoice, sequence: 1 },
        treatment: tax(rate),
        net: grant.amount,
        state: DocumentState::Paid,
        family_net: grant.amount,
    };
    CreditGrant { sale: Some(sale), ..grant }
}

/// Returns grants that cover service in some days only.
fn within(grant: CreditGrant, from: Option<&str>, to: Option<&str>) -> CreditGrant {
    CreditGrant { from: from.map(date), to: to.map(date), ..grant }
}

/// Returns a draft of January 2026 with net amounts by tax rate.
fn draft(number: u128, nets: &[(&str, i64)]) -> CreditNeed {
    let nets = nets.iter().map(|(rate, minor)| (tax(rate), *minor)).collect();
    CreditNeed { document_ref: document(number), days: period("2026-01-01", "2026-01-31"), nets }
}

fn draft_of(number: u128, days: Period, minor: i64) -> CreditNeed {
    CreditNeed { days, ..draft(number, &[("20", minor)]) }
}

/// Returns a family of an invoice of January 2026 without issued documents.
fn family(number: u128, drafts: Vec<CreditNeed>) -> CreditFamily {
    let (account, first_day) = (account("EUR"), date("2026-01-01"));
    let sums = FamilySums::default();
    CreditFamily { family: document(number), account, contract_ref: contract(1), first_day, sums, drafts }
}

/// Adds issued documents at 20 %: a net amount, and what was taken from grants.
fn with_issued(family: CreditFamily, net: i64, taken: &[(u128, i64)]) -> CreditFamily {
    let prepaid: i64 = taken.iter().map(|(_, minor)| minor).sum();
    let mut sums = family.sums.clone();
    sums.add(SumKey::Tax(tax("20")), net - prepaid, 0).expect("a small amount");
    for (grant, minor) in taken {
        sums.add(SumKey::Prepaid(tax("20"), grant_ref(*grant)), 0, *minor).expect("a small amount");
    }
    CreditFamily { sums, ..family }
}

/// Returns each draw as document, grant, tax rate and amount.
#[track_caller]
fn covered(grants: &[CreditGrant], families: &[CreditFamily]) -> Vec<(u128, u128, String, i64)> {
    let shown = |draw: CreditDraw| {
        let rate = draw.treatment.rate.as_decimal().normalize().to_string();
        (draw.document_ref.as_uuid().as_u128(), draw.grant_ref.as_uuid().as_u128(), rate, draw.amount.minor())
    };
    cover(grants, families).expect("small amounts").into_iter().map(shown).collect()
}

/// Returns the same without tax rates.
#[track_caller]
fn amounts(grants: &[CreditGrant], families: &[CreditFamily]) -> Vec<(u128, u128, i64)> {
    covered(grants, families).into_iter().map(|(document, grant, _, minor)| (document, grant, minor)).collect()
}

#[test]
fn a_document_takes_the_least_of_its_net_amount_the_familys_rest_and_what_is_free() {
    // Free credit, issued net amount, issued credit, net amount of the draft, and what the draft takes.
    for (free, issued, taken, net, expected) in [
        (100, 0, 0, 75, 75),
        (100, 0, 0, 150, 100),
        (100, 0, 0, 0, 0),
        // Issued amounts stay as they are: only the draft's own amount is covered.
        (100, 50, 0, 30, 30),
        (100, 50, 50, 30, 30),
        // A family below zero covers nothing, and then only what is above zero.
        (100, -40, 0, 30, 0),
        (100, -40, 0, 60, 20),
        // A credit note takes nothing. It returns what is above the family's net amount.
        (100, 100, 0, -30, 0),
        (100, 150, 100, -30, 0),
        (100, 120, 100, -40, -20),
        (100, 100, 100, -100, -100),
        // Where amounts below zero leave a family below zero, all of its credit comes back, and no more.
        (100, 50, 50, -80, -50),
        (0, 50, 50, -20, -20),
    ] {
        let grants = [given_credit(1, free + taken.max(1))].map(|grant| {
            let drawn = Money::from_minor(grant.amount.minor() - free, grant.amount.currency());
            CreditGrant { drawn, ..grant }
        });
        let family = with_issued(family(10, vec![draft(11, &[("20", net)])]), issued, &[(1, taken)]);
        let found: i64 = amounts(&grants, &[family]).iter().map(|(.., minor)| minor).sum();
        assert_eq!(found, expected, "{free} free, {issued} issued, {taken} taken, {net}");
    }
}

#[test]
fn grants_give_in_the_order_of_their_end_then_given_before_sold_then_by_age() {
    let later = |grant: CreditGrant| CreditGrant { created_at: at("2026-01-02T00:00:00Z"), ..grant };
    let grants = [
        sold(1, 10, "20"),
        later(given_credit(2, 10)),
        given_credit(3, 10),
        within(sold(4, 10, "20"), None, Some("2026-03-31")),
        within(later(given_credit(5, 10)), None, Some("2026-01-31")),
    ];
    let all = amounts(&grants, &[family(10, vec![draft(11, &[("20", 45)])])]);
    assert_eq!(all, [(11, 5, 10), (11, 4, 10), (11, 3, 10), (11, 2, 10), (11, 1, 5)]);
}

#[test]
fn a_grant_fits_if_its_days_overlap_the_documents_days() {
    let january = period("2026-01-01", "2026-01-31");
    for (from, to, fits) in [
        (None, None, true),
        (None, Some("2026-01-01"), true),
        (None, Some("2025-12-31"), false),
        (Some("2026-01-31"), None, true),
        (Some("2026-02-01"), None, false),
        (Some("2026-01-10"), Some("2026-01-10"), true),
    ] {
        let found = amounts(&[within(given_credit(1, 10), from, to)], &[family(10, vec![draft_of(11, january, 10)])]);
        assert_eq!(!found.is_empty(), fits, "{from:?} {to:?}");
    }
}

#[test]
fn a_grant_fits_its_contract_and_its_account_only() {
    let of_contract = |number| CreditGrant { contract_ref: Some(contract(number)), ..given_credit(1, 10) };
    let one = || [family(10, vec![draft(11, &[("20", 10)])])];
    assert_eq!(amounts(&[of_contract(1)], &one()), [(11, 1, 10)]);
    assert_eq!(amounts(&[of_contract(2)], &one()), []);
    let other_entity = AccountKey { entity_ref: entity_ref("other"), ..account("EUR") };
    assert_eq!(amounts(&[CreditGrant { account: other_entity, ..given_credit(1, 10) }], &one()), []);
    assert_eq!(amounts(&[given_in("USD", 1, 10)], &one()), []);
}

#[test]
fn sold_credit_covers_the_tax_treatment_of_its_invoice_and_given_credit_covers_any() {
    let nets = [("7", 30), ("20", 50)];
    let families = || [family(10, vec![draft(11, &nets)])];
    assert_eq!(covered(&[sold(1, 100, "20")], &families()), [(11, 1, "20".to_owned(), 50)]);
    let both = [(11, 1, "7".to_owned(), 30), (11, 1, "20".to_owned(), 50)];
    assert_eq!(covered(&[given_credit(1, 100)], &families()), both);
    // The lowest rate takes first.
    let [(_, _, rate, minor)] = covered(&[given_credit(1, 20)], &families()).try_into().expect("one draw");
    assert_eq!((rate.as_str(), minor), ("7", 20));
}

#[test]
fn each_tax_treatment_takes_and_returns_for_itself() {
    let mut sums = FamilySums::default();
    for (rate, base, prepaid) in [("7", 0, 30), ("20", 50, 0)] {
        sums.add(SumKey::Tax(tax(rate)), base, 0).expect("a small amount");
        sums.add(SumKey::Prepaid(tax(rate), grant_ref(1)), 0, prepaid).expect("a small amount");
    }
    // A credit note takes back 10 at 7 % and 10 at 20 %, and bills 5 more at 0 %.
    let draft = draft(11, &[("0", 5), ("7", -10), ("20", -10)]);
    let families = [CreditFamily { sums, ..family(10, vec![draft]) }];
    let found = covered(&[given_credit(1, 100)], &families);
    assert_eq!(found, [(11, 1, "0".to_owned(), 5), (11, 1, "7".to_owned(), -10)]);
}

#[test]
fn drafts_build_on_each_other_and_what_a_draft_returns_is_not_free_yet() {
    let drafts = vec![draft(11, &[("20", -60)]), draft(12, &[("20", 80)])];
    let family = with_issued(family(10, drafts), 100, &[(1, 100)]);
    let grant = CreditGrant { drawn: Money::from_minor(100, currency("EUR")), ..given_credit(1, 130) };
    // The debit needs 80 again, but only 30 are free until the credit note is issued.
    assert_eq!(amounts(&[grant], &[family]), [(11, 1, -60), (12, 1, 30)]);
}

#[test]
fn families_are_served_by_the_first_day_of_their_invoice_then_by_its_opening() {
    let one = |number, first: &str| {
        let family = family(number, vec![draft(number, &[("20", 60)])]);
        CreditFamily { first_day: date(first), contract_ref: contract(number), ..family }
    };
    let families = [one(11, "2026-01-15"), one(13, "2026-01-01"), one(12, "2026-01-01")];
    assert_eq!(amounts(&[given_credit(1, 100)], &families), [(12, 1, 60), (13, 1, 40)]);
}

#[test]
fn credit_returns_in_the_opposite_order_of_taking_and_also_to_ended_grants() {
    let ended = within(given_credit(1, 40), None, Some("2026-01-31"));
    let grants = [ended, sold(2, 30, "20"), given_credit(3, 20)];
    let march = period("2026-03-01", "2026-03-31");
    for (net, expected) in [
        (-10, vec![(11, 2, -10)]),
        (-40, vec![(11, 2, -30), (11, 3, -10)]),
        (-90, vec![(11, 2, -30), (11, 3, -20), (11, 1, -40)]),
    ] {
        let family = with_issued(family(10, vec![draft_of(11, march, net)]), 90, &[(1, 40), (2, 30), (3, 20)]);
        assert_eq!(amounts(&grants, &[family]), expected, "{net}");
    }
}

#[test]
fn credit_that_returns_to_no_known_grant_is_a_defect() {
    let family = with_issued(family(10, vec![draft(11, &[("20", -10)])]), 10, &[(1, 10)]);
    assert!(matches!(cover(&[given_credit(2, 10)], &[family]), Err(Refusal::Broken(_))));
}

#[test]
fn credit_covers_amounts_of_every_currency_and_size() {
    for (code, minor) in [("JPY", 1_000), ("KWD", 1), ("EUR", 900_000_000_000_000)] {
        let draft = draft(11, &[("20", minor)]);
        let families = [CreditFamily { account: account(code), ..family(10, vec![draft]) }];
        assert_eq!(amounts(&[given_in(code, 1, minor)], &families), [(11, 1, minor)], "{code}");
    }
}

#[test]
fn the_usable_part_of_sold_credit_follows_its_sale() {
    use DocumentState::{Draft, Issued, Paid, PartiallyPaid, Settled, Uncollectible, Void};
    let usable = |state, (net, family_net), minor| {
        let mut grant = sold(1, minor, "20");
        let sale = grant.sale.as_mut().expect("a sale");
        sale.state = state;
        let money = |minor| Money::from_minor(minor, currency("EUR"));
        (sale.net, sale.family_net) = (money(net), money(family_net));
        grant.usable().minor()
    };
    for state in [Draft, Issued, PartiallyPaid, Paid, Void, Uncollectible, Settled] {
        assert_eq!(usable(state, (80, 80), 90), if state == Paid { 90 } else { 0 }, "{state:?}");
    }
    // The amount, the net amount of the invoice, that of its family, and the usable credit.
    for (minor, net, family_net, expected) in [
        (100, 100, 60, 60),
        (110, 100, 60, 66),
        (100, 300, 200, 66),
        (100, 100, 0, 0),
        (100, 100, -5, 0),
        (100, 100, 130, 100),
        (100, 0, 0, 100),
        (999_999_999_999_999, 999_999_999_999_999, 999_999_999_999_998, 999_999_999_999_998),
    ] {
        assert_eq!(usable(Paid, (net, family_net), minor), expected, "{minor} {net} {family_net}");
    }
}

#[test]
fn drawn_credit_above_what_is_usable_leaves_nothing() {
    let drawn = Money::from_minor(80, currency("EUR"));
    let mut grant = CreditGrant { drawn, ..sold(1, 100, "20") };
    assert_eq!(grant.undrawn().map(Money::minor), Ok(20));
    grant.sale.as_mut().expect("a sale").family_net = Money::from_minor(60, currency("EUR"));
    assert_eq!(grant.undrawn().map(Money::minor), Ok(0));
}

#[test]
fn an_edit_changes_what_no_document_has_taken() {
    let now = at("2026-02-01T00:00:00Z");
    let drawn = Money::from_minor(6_000, currency("EUR"));
    let given = CreditGrant { drawn, ..within(given_credit(1, 10_000), Some("2026-01-01"), None) };
    let sold = CreditGrant { drawn, ..sold(1, 10_000, "20") };
    let amount = |text: &str| CreditGrantEdit { amount: Some(text.to_owned()), ..CreditGrantEdit::default() };
    let to = |day| CreditGrantEdit { to: Patch::Set(date(day)), ..CreditGrantEdit::default() };
    for (grant, edit, refused) in [
        (&given, amount("60.00"), None),
        (&given, amount("59.99"), Some("credit_in_use")),
        (&given, amount("0"), Some("out_of_range")),
        (&sold, amount("100.00"), None),
        (&sold, amount("120.00"), Some("not_allowed")),
        (&given, to("2026-01-01"), None),
        (&given, to("2025-12-31"), Some("out_of_range")),
    ] {
        let edited = grant.edited(&edit, now);
        let code = edited.as_ref().err().and_then(|refusal| refusal.codes().first().copied());
        assert_eq!(code, refused, "{edit:?}");
        let changed = edited.is_ok_and(|edited| edited != *grant && edited.updated_at == now);
        assert_eq!(changed, refused.is_none() && edit.amount.as_deref() != Some("100.00"), "{edit:?}");
    }
}

/// Draws documents of a family at two tax rates: net amounts, and whether the document is issued at once.
fn documents() -> impl Strategy<Value = Vec<(i64, i64, bool)>> {
    prop::collection::vec((-500i64..500, -500i64..500, any::<bool>()), 1..12)
}

proptest! {
    #[test]
    fn the_laws_of_credit_hold_for_every_family(
        documents in documents(),
        (given_minor, sold_minor) in (1i64..800, 1i64..800),
    ) {
        let mut grants = [given_credit(1, given_minor), sold(2, sold_minor, "20")];
        let mut family = family(10, Vec::new());
        for (index, (at_7, at_20, is_issued)) in documents.into_iter().enumerate() {
            let number = 11 + index as u128;
            let draft = draft(number, &[("7", at_7), ("20", at_20)]);
            if is_issued {
                // An issue builds on issued documents only.
                let alone = CreditFamily { drafts: vec![draft.clone()], ..family.clone() };
                let draws = cover(&grants, [&alone]).expect("small amounts");
                issue(&mut family.sums, &mut grants, &draft, &draws);
            } else {
                family.drafts.push(draft);
            }
            prop_assert!(family.sums.is_credit_lawful().expect("small amounts"));
            let draws = cover(&grants, [&family]).expect("small amounts");
            let mut sums = family.sums.clone();
            let mut as_issued = grants.clone();
            for draft in &family.drafts {
                issue(&mut sums, &mut as_issued, draft, &draws);
                prop_assert!(sums.is_credit_lawful().expect("small amounts"), "{sums:?}");
            }
            prop_assert_eq!(limits_kept(&grants, &family, &draws), Ok(()));
        }
    }
}

/// Adds a document with its draws to the sums of issued documents and to the grants.
fn issue(sums: &mut FamilySums, grants: &mut [CreditGrant], draft: &CreditNeed, draws: &[CreditDraw]) {
    for (treatment, net) in &draft.nets {
        let own = draws.iter().filter(|draw| draw.document_ref == draft.document_ref && draw.treatment == *treatment);
        let mut base = *net;
        for draw in own {
            base -= draw.amount.minor();
            sums.add(SumKey::Prepaid(treatment.clone(), draw.grant_ref), 0, draw.amount.minor()).expect("a small amount");
            let grant = grants.iter_mut().find(|grant| grant.grant_ref == draw.grant_ref).expect("a grant");
            grant.drawn = grant.drawn.checked_add(draw.amount).expect("a small amount");
        }
        sums.add(SumKey::Tax(treatment.clone()), base, 0).expect("a small amount");
    }
}

/// Checks that each document takes between zero and its net amount, and that no grant gives more than is usable.
fn limits_kept(grants: &[CreditGrant], family: &CreditFamily, draws: &[CreditDraw]) -> Result<(), String> {
    for draft in &family.drafts {
        for (treatment, net) in &draft.nets {
            let own = draws.iter().filter(|draw| draw.document_ref == draft.document_ref && draw.treatment == *treatment);
            let taken: i64 = own.map(|draw| draw.amount.minor()).sum();
            if !((0..=*net.max(&0)).contains(&taken) || (*net.min(&0)..=0).contains(&taken)) {
                return Err(format!("{draft:?} takes {taken}"));
            }
        }
    }
    let mut covered: BTreeMap<CreditGrantRef, i64> = BTreeMap::new();
    for draw in draws.iter().filter(|draw| draw.amount.minor() > 0) {
        *covered.entry(draw.grant_ref).or_default() += draw.amount.minor();
    }
    for grant in grants {
        let covered = covered.get(&grant.grant_ref).copied().unwrap_or(0);
        if grant.drawn.minor() < 0 || covered > 0 && grant.drawn.minor() + covered > grant.usable().minor() {
            return Err(format!("{covered} are covered by {grant:?}"));
        }
    }
    Ok(())
}
