//! Generates random histories.

#[path = "generate_prices.rs"]
mod prices;

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

use crate::histories::credit::with_grants;
use crate::histories::spec::*;
use billing_testkit::random::Random;
use prices::{free_of_charge, label, other_prices, pricing};

/// The maximum number of steps of a history.
const MAX_STEPS: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const ITEMS: [&str; 5] = ["a", "b", "c", "d", "e"];
const CURRENCIES: [&str; 4] = ["EUR", "EUR", "JPY", "KWD"];
pub(crate) const ZONES: [&str; 4] = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"];

/// The scope of a history.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// All steps.
    Whole,
    /// Only steps that change terms or the clock.
    Terms,
}

/// Returns the history of a seed.
pub(crate) fn history(seed: u64, kind: Kind) -> History {
    let r = &mut Random::new(seed);
    let catalog = catalog(r);
    // Two products of one pricing on the same days are refused, so mostly different pricings are drawn.
    let (first, count) = (index(r, catalog.pricings.len()), *r.pick(&[1, 1, 2, 2, 3]));
    let pricings: Vec<usize> = (first..first + count).map(|i| i % catalog.pricings.len()).collect();
    let mut products: Vec<ProductSpec> = pricings.into_iter().map(|pricing| product(r, &catalog, pricing)).collect();
    // A ramp has the same pricing in several consecutive elements.
    if r.percent(15) {
        let (first, days) = (&products[0], r.between(20, 200));
        products.push(ProductSpec { start_in: first.start_in + first.days, days, issue_in: None, ..first.clone() });
    }
    let steps: Vec<Step> = (0..r.between(1, MAX_STEPS)).flat_map(|_| steps(r, &catalog, kind)).collect();
    History { catalog, products, steps: if kind == Kind::Whole { with_grants(seed, steps) } else { steps } }
}

fn catalog(r: &mut Random) -> Catalog {
    let zones: Vec<&'static str> = if r.percent(50) { vec!["UTC"; 3] } else { ZONES.to_vec() };
    let count = usize::try_from(r.between(1, 3)).expect("a count");
    let entities: Vec<EntitySpec> =
        zones.into_iter().take(count).zip(0..).map(|(zone, prefix)| entity(r, zone, prefix)).collect();
    let customer = CustomerSpec {
        entity: r.maybe(30, |r| index(r, entities.len())),
        taxes: r.maybe(60, |r| (None, tax(r))).filter(|(_, tax)| *tax != TaxSpec::default()).into_iter().collect(),
        complete: r.percent(50),
        net_terms: r.maybe(15, |r| *r.pick(&[NetTerms::Days(30), NetTerms::DueUponUsage])),
        applies_balance: r.percent(90),
    };
    let usage = (0..2)
        .map(|_| {
            let rare = [Aggregation::Count, Aggregation::Max, Aggregation::Latest, Aggregation::Unique];
            if r.percent(35) { Aggregation::Sum } else { *r.pick(&rare) }
        })
        .collect::<Vec<_>>();
    let currency = *r.pick(&CURRENCIES);
    let pricings = (0..r.between(2, 4)).map(|_| pricing(r, currency, &usage)).collect();
    Catalog { entities, default_entity: 0, customer, usage, pricings }
}

fn entity(r: &mut Random, zone: &'static str, prefix: usize) -> EntitySpec {
    EntitySpec {
        zone,
        grace_hours: grace(r),
        prefix,
        taxes: r.maybe(30, |r| (None, TaxSpec { rate: None, category: Some(category(r)) })).into_iter().collect(),
        strict: r.percent(10),
        lacks_rate: r.percent(5),
    }
}

fn category(r: &mut Random) -> Category {
    r.pick::<Category>(&["Z", "E", "AE"])
}

/// Draws a default tax of a customer.
fn tax(r: &mut Random) -> TaxSpec {
    match r.below(10) {
        0..5 => TaxSpec { rate: Some(*r.pick(&[700, 1_600, 1_900])), category: None },
        5..7 => TaxSpec { rate: Some(0), category: r.maybe(80, category) },
        7 => TaxSpec { rate: None, category: Some(category(r)) },
        _ => TaxSpec::default(),
    }
}

fn grace(r: &mut Random) -> u16 {
    *r.pick(&[0, 2, 2, 24, 72])
}

pub(super) fn index(r: &mut Random, count: usize) -> usize {
    usize::try_from(r.below(count as u64)).expect("an index")
}

fn small(r: &mut Random, bound: u64) -> u32 {
    u32::try_from(r.below(bound)).expect("a small number")
}

/// Draws a price or quantity with all its decimals and at most so many digits.
fn fine(r: &mut Random, most: &[u32]) -> u128 {
    let bound = 10u128.pow(*r.pick(most));
    FINE + (u128::from(r.below(u64::MAX)) * u128::from(r.below(u64::MAX))) % bound
}

fn price(r: &mut Random) -> Price {
    match r.below(300) {
        0 => 4_290_000_000,
        1..12 => fine(r, &[4, 8, 10, 12, 12, 14, 21]),
        other => ordinary_price(r, other % 12),
    }
}

fn ordinary_price(r: &mut Random, which: u64) -> Price {
    match which {
        0 => 0,
        1 => 100,
        2 => 50,
        _ => {
            let digits = *r.pick(&[10_000, 100_000, 1_000_000]);
            small(r, digits).into()
        }
    }
}

fn quantity(r: &mut Random) -> Amount {
    match r.below(12) {
        11 => fine(r, &[9, 14, 18, 18, 20, 24]),
        10 => {
            if r.percent(5) {
                4_290_000_000
            } else {
                3_000
            }
        }
        0 => 0,
        1 => 10,
        2 => small(r, 5_000).into(),
        _ => Amount::from(small(r, 300)) * 1_000,
    }
}

fn seats(r: &mut Random) -> Amount {
    match r.below(10) {
        0 => 0,
        1 => small(r, 5_000).into(),
        2 => fine(r, &[9, 11, 12, 13]),
        _ => Amount::from(small(r, 30)) * 1_000,
    }
}

fn charge(r: &mut Random) -> ChargeSpec {
    if r.percent(40) {
        return ChargeSpec::Fixed { price: fixed_model(r), once: r.percent(25) };
    }
    ChargeSpec::Usage(UsageSpec {
        usage: index(r, 2),
        counts: Counts::Every,
        price: usage_model(r),
        included: if r.percent(20) { quantity(r) } else { 0 },
        prepaid: r.maybe(12, quantity),
        minimum: r.maybe(20, price),
        maximum: r.maybe(15, price),
    })
}

fn fixed_model(r: &mut Random) -> PriceModel {
    match r.below(8) {
        0..4 => PriceModel::Flat(price(r)),
        4 => PriceModel::PerUnit(price(r)),
        5 => PriceModel::Graduated(tiers(r)),
        6 => PriceModel::Volume(tiers(r)),
        _ => package(r),
    }
}

fn usage_model(r: &mut Random) -> PriceModel {
    match r.below(6) {
        0 | 1 => PriceModel::PerUnit(price(r)),
        2 => PriceModel::Graduated(tiers(r)),
        3 => PriceModel::Volume(tiers(r)),
        4 => package(r),
        _ => PriceModel::Percentage { rate: small(r, 10_000), fixed: price(r) },
    }
}

fn package(r: &mut Random) -> PriceModel {
    PriceModel::Package { size: 1_000 * (1 + Amount::from(small(r, 100))), price: price(r) }
}

fn tiers(r: &mut Random) -> Vec<TierSpec> {
    let mut bound = 0;
    let count = r.between(1, 3);
    let mut tiers: Vec<TierSpec> = (0..count)
        .map(|_| {
            bound += 1_000 * (1 + Amount::from(small(r, 100)));
            TierSpec { up_to: Some(bound), unit: price(r), flat: if r.percent(30) { price(r) } else { 0 } }
        })
        .collect();
    tiers.push(TierSpec { up_to: None, unit: price(r), flat: 0 });
    tiers
}

fn net_terms(r: &mut Random) -> NetTerms {
    *r.pick(&[NetTerms::Days(30), NetTerms::DueUponReceipt, NetTerms::DueUponUsage, NetTerms::DueUponUsage])
}

fn payment_time(r: &mut Random) -> PaymentTime {
    *r.pick(&[PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse])
}

fn cycle(r: &mut Random) -> (CycleUnit, u16) {
    let unit = *r.pick(&[
        CycleUnit::Monthly,
        CycleUnit::Monthly,
        CycleUnit::Monthly,
        CycleUnit::Quarterly,
        CycleUnit::Yearly,
        CycleUnit::OneTime,
        CycleUnit::OneTime,
    ]);
    (unit, *r.pick(&[1, 1, 1, 2]))
}

fn quantities(r: &mut Random) -> Vec<(i64, Amount)> {
    let mut day = r.between(-60, 20);
    (0..r.between(1, 3))
        .map(|_| {
            let step = (day, seats(r));
            day += r.between(1, 50);
            step
        })
        .collect()
}

fn patch<T>(r: &mut Random, chance: u64, draw: impl FnOnce(&mut Random) -> T) -> Patch<T> {
    if !r.percent(chance) {
        Patch::Keep
    } else if r.percent(20) {
        Patch::Clear
    } else {
        Patch::Set(draw(r))
    }
}

/// Draws the overrides of a line item that the pricing has now.
fn pick(r: &mut Random, item: &ItemSpec, chance: u64) -> PickSpec {
    let plain = PickSpec {
        id: item.id,
        quantities: None,
        price: Patch::Keep,
        included: Patch::Keep,
        prepaid: Patch::Keep,
        minimum: Patch::Keep,
        maximum: Patch::Keep,
    };
    match &item.charge {
        ChargeSpec::Fixed { .. } => {
            PickSpec { quantities: r.maybe(chance, quantities), price: patch(r, chance, fixed_model), ..plain }
        }
        ChargeSpec::Usage(usage) => PickSpec {
            price: patch(r, chance, usage_model),
            included: patch(r, chance / 2, quantity),
            prepaid: if usage.prepaid.is_some() { patch(r, chance / 2, quantity) } else { Patch::Keep },
            minimum: patch(r, chance / 2, price),
            maximum: patch(r, chance / 2, price),
            ..plain
        },
    }
}

fn picks(r: &mut Random, pricing: &PricingSpec) -> Vec<PickSpec> {
    let mut picks: Vec<PickSpec> = Vec::new();
    for item in &pricing.items {
        if r.percent(80) {
            picks.push(pick(r, item, 30));
        }
    }
    if r.percent(30) {
        picks.reverse();
    }
    picks
}

/// Draws a product. Products of pricings with prepaid quantities are billed before use, as required.
fn product(r: &mut Random, catalog: &Catalog, pricing: usize) -> ProductSpec {
    let content = &catalog.pricings[pricing];
    let prepaid = content.items.iter().any(|item| matches!(&item.charge, ChargeSpec::Usage(usage) if usage.prepaid.is_some()));
    let payment_time = if prepaid { Some(PaymentTime::BeforeUse) } else { r.maybe(75, payment_time) };
    let tax = r.maybe(40, |r| *r.pick(&[0, 0, 700, 1_900, 1_925]));
    let days = *r.pick(&[1, 20, 45, 61, 100, 200, 365, 400]) + r.between(0, 15);
    ProductSpec {
        pricing,
        renews: None,
        start_in: r.between(-75, 25),
        days,
        items: r.maybe(30, |r| picks(r, content)),
        minimum_fee: r.maybe(10, price),
        entity: r.maybe(40, |r| index(r, catalog.entities.len())),
        cycle: r.maybe(40, cycle),
        issue_in: r.maybe(25, |r| r.between(0, 80.min(days + 1))),
        payment_time,
        tax,
        category: r.maybe(if tax == Some(0) { 70 } else { 2 }, category),
        discount: r.maybe(30, |r| *r.pick(&[500, 1_033, 10_000])),
        net_terms: r.maybe(35, net_terms),
        note: r.maybe(15, |r| *r.pick(&["first", "second"])),
    }
}

fn day(r: &mut Random) -> DaySpec {
    match r.below(10) {
        0 | 1 => DaySpec::In(r.between(-60, 40)),
        2 => DaySpec::End { product: index(r, 4) },
        _ => DaySpec::Period { product: index(r, 4), after: r.between(-3, 3) },
    }
}

fn named(r: &mut Random, catalog: &Catalog) -> PatchSpec {
    let mut spec = PatchSpec { says_start: r.percent(30), says_no: r.percent(40), ..PatchSpec::default() };
    // Mostly changes one value at a time, so that few edits are refused.
    for _ in 0..*r.pick(&[0, 1, 1, 2, 2, 3]) {
        match r.below(24) {
            0 => spec.end_in = Some(r.between(1, 250)),
            1 => spec.end_in = Some(r.between(-60, 40)),
            22 | 23 => spec.end_again = Some(index(r, 4)),
            2 => spec.end_later = Some(r.between(1, 100)),
            3 | 4 => spec.reprice = true,
            5..9 => {
                let content = &catalog.pricings[index(r, catalog.pricings.len())];
                let item = content.items[index(r, content.items.len())].clone();
                spec.items = ItemsSpec::Same { which: index(r, 4), pick: Box::new(pick(r, &item, 60)) };
            }
            9 => spec.items = ItemsSpec::All,
            10 => {
                let content = &catalog.pricings[index(r, catalog.pricings.len())];
                spec.items = ItemsSpec::These(picks(r, content));
            }
            11 => spec.minimum_fee = patch(r, 100, price),
            12 => spec.payment_time = patch(r, 100, payment_time),
            13 => spec.cycle = patch(r, 100, cycle),
            14 => spec.entity = patch(r, 100, |r| index(r, catalog.entities.len())),
            15 => {
                spec.tax = patch(r, 80, |r| *r.pick(&[0, 700, 1_900]));
                spec.category = if spec.tax == Patch::Set(0) { patch(r, 70, category) } else { Patch::Clear };
            }
            16 => {
                spec.category = patch(r, 100, category);
                spec.tax = if r.percent(50) { Patch::Set(0) } else { Patch::Keep };
            }
            17 | 18 => spec.discount = patch(r, 100, |r| *r.pick(&[0, 500, 1_000])),
            19 => spec.net_terms = patch(r, 100, net_terms),
            20 => spec.issue_in = patch(r, 100, |r| r.between(0, 80)),
            _ => {
                spec.note = patch(r, 100, |r| *r.pick(&["first", "third"]));
                spec.start_moves = r.maybe(60, |r| r.between(-20, 30));
            }
        }
    }
    spec
}

fn edit(r: &mut Random, catalog: &Catalog) -> Step {
    let changes =
        (0..4).map(|_| if r.percent(15) { ChangeSpec::Leave } else { ChangeSpec::Name(Box::new(named(r, catalog))) }).collect();
    let added = if r.percent(20) {
        let pricing = index(r, catalog.pricings.len());
        let renews = r.maybe(50, |r| index(r, 4));
        vec![ProductSpec { renews, ..product(r, catalog, pricing) }]
    } else {
        Vec::new()
    };
    let since = match r.below(10) {
        0..3 => SinceSpec::Next,
        3 | 4 => SinceSpec::Current,
        _ => SinceSpec::Day(day(r)),
    };
    Step::Edit { since, version: r.percent(30), changes, added, reversed: r.percent(20) }
}

fn when(r: &mut Random) -> When {
    match r.below(10) {
        0 | 1 => When::Ago(r.between(0, 3 * DAY)),
        2 => When::Ago(r.between(-250, 60)),
        3 => When::Ago(r.between(0, 90 * DAY)),
        4..8 => When::Inside { product: index(r, 4), period: index(r, 16), thousandths: r.between(0, 999) },
        _ => When::Boundary { product: index(r, 4), period: index(r, 16), seconds: *r.pick(&[0, -1, 1, -HOUR, HOUR, DAY]) },
    }
}

/// Draws a step, or several steps that belong together.
fn steps(r: &mut Random, catalog: &Catalog, kind: Kind) -> Vec<Step> {
    match r.below(100) {
        0..4 => undone(r, catalog, kind),
        4..7 if kind == Kind::Whole => moved_and_back(r),
        _ => vec![step(r, catalog, kind)],
    }
}

/// Draws an event that moves away and back, at once or after a billing run, mostly with its quantity.
fn moved_and_back(r: &mut Random) -> Vec<Step> {
    let (event, quantity) = (index(r, 64), r.maybe(20, quantity));
    let away = Step::Update { event, when: Some(when(r)), quantity, label: r.maybe(20, label) };
    let between = match r.below(4) {
        0 => vec![Step::Run],
        1 => vec![clock(r), Step::Run],
        _ => Vec::new(),
    };
    [vec![away], between, vec![Step::Update { event, when: Some(When::First), quantity: None, label: None }]].concat()
}

/// Draws an edit from a past day, and the edit that undoes it: of a pricing's currency or prices, or of the entity.
fn undone(r: &mut Random, catalog: &Catalog, kind: Kind) -> Vec<Step> {
    let number = index(r, catalog.pricings.len());
    let base = catalog.pricings[number].clone();
    let since = SinceSpec::Day(DaySpec::Period { product: index(r, 4), after: r.between(-4, 0) });
    let edit = |patch: PatchSpec| {
        let changes = vec![ChangeSpec::Name(Box::new(PatchSpec { says_no: true, ..patch }))];
        Step::Edit { since, version: false, changes, added: Vec::new(), reversed: false }
    };
    let of_entity = |entity| edit(PatchSpec { entity, ..PatchSpec::default() });
    if r.percent(25) {
        return vec![of_entity(Patch::Set(index(r, catalog.entities.len()))), of_entity(Patch::Clear)];
    }
    let changed = match r.below(3) {
        0 => {
            let currency = *r.pick(&CURRENCIES);
            PricingSpec { currency, ..base.clone() }
        }
        1 => free_of_charge(&base),
        _ => other_prices(r, &base, &catalog.usage),
    };
    let repriced = || edit(PatchSpec { reprice: true, ..PatchSpec::default() });
    let mut steps = vec![Step::EditPricing { pricing: number, content: changed }, repriced()];
    if r.percent(50) {
        steps.push(step(r, catalog, kind));
    }
    steps.extend([Step::EditPricing { pricing: number, content: base }, repriced()]);
    steps
}

fn step(r: &mut Random, catalog: &Catalog, kind: Kind) -> Step {
    if kind == Kind::Terms {
        return match r.below(100) {
            0..15 => edit_pricing(r, catalog),
            15..20 => edit_customer(r, catalog),
            20..55 => edit(r, catalog),
            55..65 => quantity_step(r),
            65..70 => cancel(r),
            70..75 => Step::Resume,
            _ => clock(r),
        };
    }
    match r.below(100) {
        0..3 => edit_pricing(r, catalog),
        3..5 => Step::EditEntity {
            entity: index(r, catalog.entities.len()),
            zone: r.pick::<&str>(&ZONES),
            grace_hours: grace(r),
            prefix: r.maybe(30, |r| index(r, 5)),
            is_default: r.percent(20),
            tax: r.maybe(30, |r| {
                let category = r.maybe(80, category);
                (TaxSpec { rate: None, category }, r.maybe(50, day))
            }),
            strict: r.percent(10),
            lacks_rate: r.percent(5),
        },
        5..7 => edit_customer(r, catalog),
        7..17 => edit(r, catalog),
        17..21 => quantity_step(r),
        21 => cancel(r),
        22..25 => Step::Resume,
        25..47 => {
            let (usage, of) = (index(r, 2), r.maybe(90, |r| index(r, 4)));
            Step::Event { usage, of, when: when(r), quantity: quantity(r), label: label(r) }
        }
        47..55 => {
            let event = index(r, 64);
            let when = r.maybe(45, |r| if r.percent(15) { When::First } else { when(r) });
            Step::Update { event, when, quantity: r.maybe(60, quantity), label: r.maybe(30, label) }
        }
        55..58 => Step::Delete { event: index(r, 64) },
        58..62 => charged(r),
        62..64 => Step::EditCharge {
            charge: index(r, 64),
            day: r.maybe(40, day),
            quantity: r.maybe(40, |r| small(r, 5_000).into()),
            price: r.maybe(60, signed_price),
            issue: r.percent(30),
        },
        64 => Step::DeleteCharge { charge: index(r, 64) },
        65..68 => Step::Issue { document: index(r, 64) },
        68..72 => Step::Void { document: index(r, 64) },
        72..84 => Step::Run,
        84..87 => Step::Foreseen { next: r.percent(50) },
        87..93 => money(r),
        _ => clock(r),
    }
}

fn signed_price(r: &mut Random) -> SignedPrice {
    let price = price(r).cast_signed();
    // Negative prices are mostly small, so that they do not exceed the billed amount.
    if !r.percent(40) {
        return price;
    }
    if price >= FINE.cast_signed() { -price } else { -price / *r.pick(&[1, 10, 100]) }
}

fn charged(r: &mut Random) -> Step {
    Step::Charge {
        product: index(r, 4),
        names_product: r.percent(80),
        day: day(r),
        quantity: if r.percent(70) { 1_000 } else { small(r, 5_000).into() },
        price: signed_price(r),
        fixed: r.percent(35),
        discountable: r.percent(40),
        issue: r.percent(25),
    }
}

fn edit_customer(r: &mut Random, catalog: &Catalog) -> Step {
    Step::EditCustomer {
        entity: r.maybe(30, |r| index(r, catalog.entities.len())),
        tax: r.maybe(60, |r| (tax(r), r.maybe(50, day))),
        complete: r.percent(60),
        net_terms: r.maybe(20, net_terms),
        applies_balance: r.percent(85),
    }
}

fn part(r: &mut Random) -> PartSpec {
    match r.below(10) {
        0..5 => PartSpec::All,
        5..9 => PartSpec::Some(r.between(0, 1_000)),
        _ => PartSpec::More(r.between(1, 5_000)),
    }
}

fn money(r: &mut Random) -> Step {
    let (many, days) = (64, |r: &mut Random| r.maybe(40, |r| r.between(-40, 3)));
    Step::Money(match r.below(22) {
        0..8 => MoneySpec::Pay { document: index(r, many), part: part(r), takes_more: r.percent(60), days: days(r) },
        8..11 => MoneySpec::Reverse { payment: index(r, many), days: days(r) },
        11..13 => MoneySpec::Refund { source: index(r, many), part: part(r) },
        13..15 => MoneySpec::Apply { source: index(r, many), document: index(r, many), part: part(r) },
        15..17 => MoneySpec::Unapply { application: index(r, many) },
        17..20 => MoneySpec::WriteOff { document: index(r, many), undo: r.percent(30) },
        _ => MoneySpec::Deposit { entity: index(r, many), pricing: index(r, many), minor: r.between(0, 20_000), days: days(r) },
    })
}

fn quantity_step(r: &mut Random) -> Step {
    Step::Quantity {
        product: index(r, 4),
        item: index(r, 4),
        quantity: seats(r),
        from: r.maybe(70, |r| if r.percent(70) { DaySpec::In(r.between(-60, 40)) } else { day(r) }),
        prorate: r.percent(85),
    }
}

fn cancel(r: &mut Random) -> Step {
    let last_day = match r.below(4) {
        0 => LastDaySpec::PeriodEnd,
        1 => LastDaySpec::Today,
        2 => LastDaySpec::Day(DaySpec::In(r.between(-80, 60))),
        _ => LastDaySpec::Day(day(r)),
    };
    Step::Cancel { last_day }
}

fn clock(r: &mut Random) -> Step {
    Step::Clock {
        seconds: match r.below(10) {
            0 => -r.between(1, 30 * HOUR),
            1..4 => r.between(1, 20 * HOUR),
            4..8 => r.between(1, 20 * DAY),
            _ => r.between(20 * DAY, 70 * DAY),
        },
    }
}

/// Draws new content for a pricing, mostly only other prices, and rarely another currency.
fn edit_pricing(r: &mut Random, catalog: &Catalog) -> Step {
    let number = index(r, catalog.pricings.len());
    let content = other_prices(r, &catalog.pricings[number], &catalog.usage);
    let currency = if r.percent(10) { *r.pick(&CURRENCIES) } else { content.currency };
    Step::EditPricing { pricing: number, content: PricingSpec { currency, ..content } }
}
