//! Documents of random histories: prices, usage, corrections, edits and charges by a seed.

use billing_domain::contract::terms::PaymentTime;
use billing_domain::einvoice::EInvoiceError;
use billing_domain::einvoice::business_terms::BusinessTerms;
use billing_domain::party::NetTerms;
use billing_domain::party::legal::EInvoiceProfile;
use billing_domain::simulate::{
    Prices, Simulation, Terms, charge, flat, graduated, package, per_unit, percentage, terms, volume,
};
use billing_domain::tax::TaxCategory;

use crate::parties::simulation;

/// The last day of a history.
const END: &str = "2026-06-20";
/// The most steps after the beginning.
const MAX_STEPS: u64 = 25;

/// The documents of a history.
pub(crate) struct History {
    /// The number and the terms of each document.
    pub(crate) documents: Vec<(String, BusinessTerms)>,
    /// The number of documents that the standard can't express.
    pub(crate) unavailable: u64,
}

/// A generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).expect("a small number");
        of[at]
    }

    /// Returns a day of the first five months.
    fn day(&mut self) -> String {
        format!("2026-{:02}-{:02}", 1 + self.below(5), 1 + self.below(28))
    }
}

/// Returns the documents of a history; `None` if the rules refuse a step, or if a document lacks terms for a reason of its own.
pub(crate) fn documents(seed: u64) -> Option<History> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let profiles = [EInvoiceProfile::En16931, EInvoiceProfile::Xrechnung, EInvoiceProfile::Peppol, EInvoiceProfile::FacturX];
    let mut history = simulation(random.one(&profiles)).allow_backdated();
    let products = 1 + random.below(3);
    for n in 0..products {
        history = history.contract(product(&mut random, n));
    }
    let steps = 3 + random.below(MAX_STEPS);
    for n in 0..steps {
        history = step(history, &mut random, n, products);
    }
    let bill = history.until(END).ok()?;
    let (mut documents, mut unavailable) = (Vec::new(), 0);
    for document in bill.all_documents() {
        match document.e_invoice() {
            None => {}
            Some(Ok(terms)) => documents.push((document.number.to_string(), terms)),
            Some(Err(EInvoiceError::Unavailable(_))) => unavailable += 1,
            Some(Err(EInvoiceError::Incomplete(missing))) => panic!("seed {seed}, {}: {missing:?}", document.number),
        }
    }
    Some(History { documents, unavailable })
}

fn prices(random: &mut Random) -> Prices {
    let prices = match random.below(6) {
        0 => per_unit(random.one(&["0.0025", "0.10", "12.5", "0.333333"])),
        1 => graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")]),
        2 => volume([(Some("100"), "0.10", "0"), (Some("500"), "0.07", "1.50"), (None, "0.03", "2")]),
        3 => package(random.one(&["10", "1000"]), random.one(&["5.00", "0.99"])),
        4 => percentage(random.one(&["2.9", "0.5"]), random.one(&["0", "0.30"])),
        _ => per_unit("0.01"),
    };
    match random.below(6) {
        0 => prices.included("50"),
        1 => prices.at_least("5"),
        2 => prices.at_most("40"),
        _ => prices,
    }
}

fn product(random: &mut Random, n: u64) -> Terms {
    let pricing = format!("plan-{n}");
    let mut product =
        terms("2026-01-01", "2026-12-31").pricing(pricing.as_str()).fixed("fee", random.one(&["49.00", "0.01", "7.77"]));
    if random.below(3) > 0 {
        product = product.fixed("extra", flat(random.one(&["1.11", "100"])));
    }
    product = product.usage("calls", prices(random));
    product = match random.below(8) {
        0 => product.tax("0").tax_category(TaxCategory::Ae, Some("Reverse charge")),
        1 => product.tax("0").tax_category(TaxCategory::E, Some(random.one(&["Medical care", "Education"]))),
        2 => product.tax("0").tax_category(TaxCategory::Z, None),
        3 => product.tax("0").tax_category(TaxCategory::G, Some("Export")),
        _ => product.tax(random.one(&["19", "7", "8.875", "20"])),
    };
    if random.below(2) == 0 {
        product = product.discount(random.one(&["10", "33.3", "100", "2.5"]));
    }
    if random.below(4) == 0 {
        product = product.minimum_fee(random.one(&["60", "200"]));
    }
    if random.below(3) == 0 {
        product = product.payment_time(random.one(&[PaymentTime::BeforeUse, PaymentTime::DuringUse]));
    }
    match random.below(5) {
        0 => product.net_terms(NetTerms::Days(30)),
        1 => product.net_terms(NetTerms::DueUponUsage),
        _ => product,
    }
}

fn step(history: Simulation, random: &mut Random, n: u64, products: u64) -> Simulation {
    let (day, pricing) = (random.day(), format!("plan-{}", random.below(products)));
    let quantity = random.one(&["1", "3", "40", "99.5", "1500", "20000"]);
    match random.below(8) {
        0..=3 => history.event(format!("{day}T12:00:00Z").as_str(), "calls", quantity).named(&format!("event-{n}")),
        4 => {
            let reported = random.day();
            let (happened, reported) = if day < reported { (day, reported) } else { (reported, day) };
            let (happened, reported) = (format!("{happened}T09:00:00Z"), format!("{reported}T15:00:00Z"));
            history.late_event(happened.as_str(), "calls", quantity, reported.as_str())
        }
        5 => {
            let price = random.one(&["12.5", "-3.33", "-50", "0.01"]);
            let charged = charge(format!("charge-{n}").as_str(), day.as_str(), price).pricing(pricing.as_str());
            history.on(day.as_str()).charge(charged)
        }
        6 => {
            let rate = random.one(&["19", "7", "16"]);
            let month = format!("{}-01", &day[..7]);
            history.on(day.as_str()).edit(move |contract| {
                contract.effective_from(month.as_str()).product(pricing.as_str(), |product| product.tax(rate))
            })
        }
        _ => {
            history.on("2026-06-10").charge(charge(format!("late-{n}").as_str(), day.as_str(), "2.22").pricing(pricing.as_str()))
        }
    }
}
