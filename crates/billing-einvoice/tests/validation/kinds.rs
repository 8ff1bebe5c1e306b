//! A document of each kind.

use billing_domain::contract::terms::PaymentTime;
use billing_domain::einvoice::business_terms::BusinessTerms;
use billing_domain::money::Currency;
use billing_domain::party::NetTerms;
use billing_domain::party::legal::EInvoiceProfile;
use billing_domain::simulate::{
    Bill, Prices, Simulation, Terms, charge, customer, entity, graduated, item, package, per_unit, percentage, pricing,
    quantity_of, terms, volume,
};
use billing_domain::tax::TaxCategory;
use billing_testkit::fixtures::line;

use crate::parties::simulation;

/// The name of a kind, and the terms of a document of that kind.
pub(crate) type Kind = (&'static str, BusinessTerms);

fn plan() -> Terms {
    terms("2026-01-01", "2026-12-31").pricing("plan").fixed("fee", "49.00")
}

fn tiers() -> Prices {
    graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")])
}

/// A product at a rate of 0.
fn untaxed(pricing: &str, category: TaxCategory, reason: Option<&str>) -> Terms {
    let product = terms("2026-01-01", "2026-12-31").pricing(pricing).fixed("fee", "10.00");
    product.tax("0").tax_category(category, reason)
}

fn until(simulation: Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn january(simulation: Simulation) -> Bill {
    until(simulation, "2026-02-05")
}

#[track_caller]
fn document(bill: &Bill, number: &str) -> BusinessTerms {
    let terms = bill.document(number).e_invoice().unwrap_or_else(|| panic!("{number} isn't issued"));
    terms.unwrap_or_else(|error| panic!("{number}: {error}"))
}

/// Returns a document of each kind.
pub(crate) fn all(profile: EInvoiceProfile) -> Vec<Kind> {
    let mut all = plain(profile);
    all.extend(taxed(profile));
    all.extend(priced(profile));
    all.extend(corrected(profile));
    all
}

fn plain(profile: EInvoiceProfile) -> Vec<Kind> {
    let first = |simulation: Simulation| document(&january(simulation), "UB-INV-1");
    let begin = || simulation(profile);
    let team = pricing("team").fixed("fee", "50.00").usage("calls", per_unit("0.10"));
    let of_team = |workspace: &str| {
        terms("2026-01-01", "2026-12-31").pricing("team").where_labels(&[("workspace", &[workspace])]).tax("19")
    };
    let discounted = plan().usage("calls", tiers()).tax("19").discount("10");
    let long = "<&>\"'".repeat(800);
    let mut many = plan().tax("19");
    for n in 0..98 {
        many = many.fixed(format!("item-{n}").as_str(), "0.01");
    }
    let mut thousand = begin();
    for n in 0..10 {
        let mut product = terms("2026-01-01", "2026-12-31").pricing(format!("plan-{n}").as_str()).tax("19");
        for k in 0..100 {
            product = product.fixed(format!("item-{k}").as_str(), "0.01");
        }
        thousand = thousand.contract(product);
    }
    vec![
        ("one-line", first(begin().contract(plan().tax("19")))),
        ("discount", first(begin().contract(discounted).event("2026-01-10T12:00:00Z", "calls", "1500"))),
        ("due-in-30-days", first(begin().contract(plan().tax("19").net_terms(NetTerms::Days(30))))),
        ("many-lines", first(begin().contract(many))),
        ("thousand-lines", first(thousand)),
        (
            "long-name",
            first(
                begin().customer(customer().with(move |buyer| buyer.legal_name = Some(line(&long)))).contract(plan().tax("19")),
            ),
        ),
        ("total-0", first(begin().contract(plan().tax("19").discount("100")))),
        (
            "no-payment-means",
            // XRechnung requires a means of payment.
            if profile == EInvoiceProfile::Xrechnung {
                first(begin().contract(plan().tax("19")))
            } else {
                first(begin().entity(entity("default").with(|seller| seller.payment.online = None)).contract(plan().tax("19")))
            },
        ),
        ("note", first(begin().contract(plan().tax("19").note("Thanks <&>")))),
        (
            "two-products-of-one-pricing",
            first(begin().pricing(team).contract(of_team("w1").named("Team <&>")).contract(of_team("w2"))),
        ),
    ]
}

fn taxed(profile: EInvoiceProfile) -> Vec<Kind> {
    let first = |simulation: Simulation| document(&january(simulation), "UB-INV-1");
    let begin = || simulation(profile);
    let other = || terms("2026-01-01", "2026-12-31").pricing("other").fixed("fee", "7.77");
    let in_francs = entity("default").with(|seller| seller.paper.tax_currency = Currency::from_code("CHF").ok());
    vec![
        ("two-rates", first(begin().contract(plan().tax("19")).contract(other().tax("7").discount("3")))),
        ("rate-with-decimals", first(begin().contract(plan().tax("8.875")))),
        ("zero-rated", first(begin().contract(untaxed("zero", TaxCategory::Z, None)))),
        ("exempt", first(begin().contract(untaxed("exempt", TaxCategory::E, Some("Medical care"))))),
        (
            "exempt-for-two-reasons",
            first(begin().contract(untaxed("care", TaxCategory::E, Some("Medical care"))).contract(untaxed(
                "school",
                TaxCategory::E,
                Some("Education"),
            ))),
        ),
        ("reverse-charge", first(begin().contract(untaxed("reverse", TaxCategory::Ae, Some("Reverse charge"))))),
        ("export", first(begin().contract(untaxed("export", TaxCategory::G, Some("Export"))))),
        ("not-subject-to-tax", first(begin().contract(untaxed("outside", TaxCategory::O, Some("Outside the scope"))))),
        (
            "three-categories",
            first(
                begin()
                    .contract(plan().tax("19"))
                    .contract(untaxed("reverse", TaxCategory::Ae, Some("Reverse charge")))
                    .contract(untaxed("exempt", TaxCategory::E, Some("Medical care"))),
            ),
        ),
        ("yen", first(begin().contract(terms("2026-01-01", "2026-12-31").currency("JPY").fixed("fee", "1000").tax("10")))),
        (
            "tax-currency",
            first(begin().entity(in_francs).contract(plan().tax("19")).on("2026-01-02").post_exchange_rate(
                ("EUR", "CHF"),
                "2026-01-02",
                "0.93",
            )),
        ),
    ]
}

fn priced(profile: EInvoiceProfile) -> Vec<Kind> {
    let first = |simulation: Simulation| document(&january(simulation), "UB-INV-1");
    let used = |prices: Prices, quantity: &str| {
        let product = plan().usage("calls", prices).tax("19");
        first(simulation(profile).contract(product).event("2026-01-10T12:00:00Z", "calls", quantity))
    };
    let seats = plan().tax("19").line_item(item("fee").quantity_from("2026-01-01", "5"));
    vec![
        ("quantity-0", used(per_unit("0.10").included("100"), "0")),
        ("per-unit", used(per_unit("0.0025"), "12345")),
        ("included", used(per_unit("0.10").included("100"), "130.5")),
        ("tiers", used(tiers(), "1500")),
        ("volume", used(volume([(Some("100"), "0.10", "1"), (None, "0.01", "2.50")]), "1500")),
        ("packages", used(package("1000", "5.00"), "1001")),
        ("percentage", used(percentage("2.9", "0.30"), "1000")),
        ("minimum", used(per_unit("0.10").at_least("50"), "3")),
        ("maximum", used(per_unit("0.10").at_most("50"), "3000")),
        ("minimum-fee", first(simulation(profile).contract(plan().minimum_fee("100.00").tax("19")))),
        (
            "seats-by-steps",
            first(
                simulation(profile)
                    .contract(seats)
                    .on("2026-01-10")
                    .change_quantity(quantity_of("plan", "fee", "12").from("2026-01-15")),
            ),
        ),
        (
            "charge-below-zero",
            first(
                simulation(profile)
                    .contract(plan().tax("19"))
                    .on("2026-01-12")
                    .charge(charge("goodwill", "2026-01-12", "-2.50").quantity("4")),
            ),
        ),
        (
            "usage-in-the-following-period",
            document(
                &until(
                    simulation(profile)
                        .contract(plan().usage("calls", tiers()).tax("19").payment_time(PaymentTime::DuringUse))
                        .event("2026-01-10T12:00:00Z", "calls", "1500"),
                    "2026-02-05",
                ),
                "UB-INV-2",
            ),
        ),
    ]
}

fn corrected(profile: EInvoiceProfile) -> Vec<Kind> {
    let product = || plan().usage("calls", tiers()).tax("19").discount("10");
    let late = simulation(profile)
        .contract(product())
        .event("2026-01-10T12:00:00Z", "calls", "1500")
        .named("calls")
        .late_event("2026-01-20T12:00:00Z", "calls", "600", "2026-02-03T12:00:00Z")
        .on("2026-02-10")
        .delete_event("calls");
    let late = until(late, "2026-02-15");
    let rate = simulation(profile)
        .contract(product())
        .on("2026-02-10")
        .edit(|contract| contract.effective_from("2026-01-01").product("plan", |plan| plan.tax("7")));
    let rate = until(rate, "2026-02-12");
    let upon_usage = terms("2026-01-01", "2026-12-31").pricing("plan").usage("calls", per_unit("0.01")).tax("19");
    let upon_usage =
        simulation(profile).contract(upon_usage.net_terms(NetTerms::DueUponUsage)).event("2026-01-10T12:00:00Z", "calls", "1");
    let child = january(upon_usage);
    let child = child
        .documents()
        .iter()
        .filter(|document| document.total().minor() == 1)
        .find_map(|document| document.e_invoice()?.ok())
        .expect("a child");
    vec![
        ("debit", document(&late, "UB-DBT-1")),
        ("credit", document(&late, "UB-CRD-1")),
        ("credit-after-an-edit-of-the-rate", document(&rate, "UB-CRD-1")),
        ("debit-after-an-edit-of-the-rate", document(&rate, "UB-DBT-1")),
        ("child-of-a-cent", child),
    ]
}
