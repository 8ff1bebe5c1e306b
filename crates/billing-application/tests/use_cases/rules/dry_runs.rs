//! Dry runs of edits and cancels: they take no number and show the documents before and after.

use billing_application::UseCase;
use billing_application::contracts::cancel_contract;
use billing_application::dry_run::{Effects, FigureChange};
use billing_domain::catalog::{PriceModel, Pricing};
use billing_domain::contract::amendment::{CancelAt, EffectiveFrom, ProductPatch};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::money::MoneySum;
use billing_domain::patch::Patch;
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, fixed, line_item_id, per_unit, requested};

use crate::books::{Books, same};
use crate::rules::assert_documents;
use crate::support::run;

/// Returns a product patch with another price for one fixed line item. Other line items keep their prices.
fn with_price(pricing: &Pricing, id: &str, amount: &str) -> ProductPatch {
    let items = pricing.content.line_items.iter().map(|item| {
        let plain = RequestedLineItem::plain(item.id.clone());
        if item.id == line_item_id(id) {
            RequestedLineItem { price: Patch::Set(PriceModel::Flat { amount: fixtures::price(amount) }), ..plain }
        } else {
            plain
        }
    });
    ProductPatch { line_items: Patch::Set(items.collect()), ..same(pricing) }
}

/// Returns a contract at 28.00 a month and 0.10 per call from 1 January.
fn begun(payment_time: PaymentTime) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "28.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(payment_time);
    let contract = books.contract(vec![product]);
    (books, api, contract)
}

#[test]
fn a_dry_run_takes_no_number() {
    let (books, api, contract) = begun(PaymentTime::BeforeUse);
    books.bill("2026-01-01T02:00:00Z");
    for _ in 0..2 {
        let edited = books.try_dry_edit(contract, vec![with_price(&api, "fee", "30.00")], EffectiveFrom::CurrentPeriod);
        let effects = edited.expect("a dry run");
        assert_eq!(effects.issued[0].opened.as_ref().map(|opened| opened.number.to_string()).as_deref(), Some("UB-DBT-1"));
    }
    assert_documents(
        &books,
        &["UB-INV-1 ISSUED, issued 2026-01-01, due 2026-03-02 | 2026-01-01…2026-01-31 fee: 28.00 | total 28.00 EUR"],
    );
}

#[test]
fn a_dry_run_names_the_drafts_that_would_say_something_else_and_no_others() {
    let (books, api, contract) = begun(PaymentTime::AfterUse);
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "100");
    for (since, recomputed) in [(EffectiveFrom::NextPeriod, 0), (EffectiveFrom::CurrentPeriod, 1)] {
        let effects = books.try_dry_edit(contract, vec![with_price(&api, "fee", "30.00")], since).expect("a dry run");
        assert_eq!(effects.recomputed.len(), recomputed, "{since:?}");
    }
}

/// Returns the effect on each document, the first day of its period, and its billed amount before and after the change with the
/// difference.
fn compared(effects: &Effects) -> Vec<String> {
    let amount = |amount: Option<MoneySum>| amount.map_or_else(|| "-".to_owned(), |amount| amount.to_decimal().to_string());
    let one =
        |figure: FigureChange| format!("{} {} {}", amount(figure.before), amount(figure.after), figure.difference.to_decimal());
    effects.changes.iter().map(|of| format!("{:?} {} {}", of.effect, of.period.start(), one(of.billed))).collect()
}

#[test]
fn a_dry_run_compares_the_planned_documents_before_and_after() {
    let (books, api, contract) = begun(PaymentTime::AfterUse);
    books.clock("2026-01-10T12:00:00Z");
    let dearer = || vec![with_price(&api, "fee", "30.00")];
    let effects = books.try_dry_edit(contract, dearer(), EffectiveFrom::NextPeriod).expect("a dry run");
    assert_eq!(compared(&effects), ["Planned 2026-01-01 28.00 28.00 0.00", "Planned 2026-02-01 28.00 30.00 2.00"]);
    assert_eq!(effects.before.iter().map(|view| view.opened.is_some()).collect::<Vec<_>>(), [false; 2]);
    let totals: Vec<String> = effects.totals.iter().map(|totals| totals.billed.difference.to_string()).collect();
    assert_eq!(totals, ["2.00 EUR"]);
    let cancelled = run(&books.bench.services, &books.bench.principal, UseCase::CancelContract, |cx| {
        cx.dry_run(&mut |cx| cancel_contract(cx, contract, CancelAt::PeriodEnd, false).map(drop))
    });
    let cancelled = compared(&cancelled.expect("a dry run"));
    assert_eq!(cancelled, ["Planned 2026-01-01 28.00 28.00 0.00", "Removed 2026-02-01 28.00 - -28.00"]);
    // An open draft is compared with itself, and the next period with its plan.
    books.calls("2026-01-10T12:00:00Z", "100");
    let effects = books.try_dry_edit(contract, dearer(), EffectiveFrom::CurrentPeriod).expect("a dry run");
    assert_eq!(compared(&effects), ["Recomputed 2026-01-01 38.00 40.00 2.00", "Planned 2026-02-01 28.00 30.00 2.00"]);
}

#[test]
fn a_dry_run_of_an_edit_from_the_past_has_no_figure_before_the_credit() {
    let (books, api, contract) = begun(PaymentTime::BeforeUse);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    let effects = books.try_dry_edit(contract, vec![with_price(&api, "fee", "20.00")], EffectiveFrom::CurrentPeriod);
    let effects = effects.expect("a dry run");
    let issued: Vec<String> = compared(&effects).into_iter().filter(|of| of.starts_with("Issued")).collect();
    assert!(matches!(&issued[..], [credit] if credit.ends_with(" - -8.00 -8.00")), "{issued:?}");
    // The credit reduces the amount due of the invoice, and nothing of it is left.
    let due: Vec<String> = effects.totals.iter().map(|totals| totals.outstanding.difference.to_string()).collect();
    assert_eq!(due, ["-8.00 EUR"]);
}
