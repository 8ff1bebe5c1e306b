//! Draws histories.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

use crate::random::Random;
use crate::spec::*;

/// The most steps of a history.
const MAX_STEPS: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const ITEMS: [&str; 5] = ["a", "b", "c", "d", "e"];
const CURRENCIES: [&str; 3] = ["EUR", "JPY", "KWD"];
const ZONES: [&str; 4] = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"];

/// The history of a seed.
pub(crate) fn history(seed: u64) -> History {
    let r = &mut Random::new(seed);
    let catalog = catalog(r);
    let length = r.between(1, MAX_STEPS);
    let mut steps = vec![create(r, &catalog)];
    for _ in 1..length {
        steps.push(step(r, &catalog));
    }
    History { catalog, steps }
}

fn catalog(r: &mut Random) -> Catalog {
    let zones = ZONES.iter().take(usize::try_from(r.between(1, 4)).expect("a count"));
    let entities: Vec<EntitySpec> = zones
        .map(|zone| EntitySpec {
            zone,
            grace_hours: *r.pick(&[0, 2, 2, 24, 72]),
            net_terms: r.maybe(20, |r| *r.pick(&[NetTerms::Days(14), NetTerms::DueUponReceipt])),
        })
        .collect();
    let customers = (0..r.between(1, 2))
        .map(|_| CustomerSpec {
            entity: r.maybe(30, |r| index(r, entities.len())),
            tax: r.maybe(30, |r| *r.pick(&[700, 1900])),
            net_terms: r.maybe(15, |r| *r.pick(&[NetTerms::Days(30), NetTerms::DueUponUsage])),
        })
        .collect();
    let usage = (0..2)
        .map(|_| *r.pick(&[Aggregation::Sum, Aggregation::Sum, Aggregation::Count, Aggregation::Max, Aggregation::Latest]))
        .collect();
    let pricings = (0..r.between(2, 4)).map(|_| pricing(r)).collect();
    Catalog { entities, customers, usage, pricings }
}

fn index(r: &mut Random, count: usize) -> usize {
    usize::try_from(r.below(count as u64)).expect("an index")
}

fn price(r: &mut Random) -> Price {
    let digits = *r.pick(&[10_000, 100_000, 1_000_000]);
    u32::try_from(r.below(digits)).expect("a price")
}

fn quantity(r: &mut Random) -> Amount {
    match r.below(10) {
        0 => 0,
        1 => u32::try_from(r.below(5_000)).expect("a quantity"),
        _ => u32::try_from(r.below(300)).expect("a quantity") * 1_000,
    }
}

fn pricing(r: &mut Random) -> PricingSpec {
    let count = r.between(1, 4);
    let mut ids = ITEMS.to_vec();
    let items = (0..count)
        .map(|_| {
            let id = ids.remove(index(r, ids.len()));
            ItemSpec { id, charge: charge(r) }
        })
        .collect();
    PricingSpec { currency: CURRENCIES[index(r, 3)], minimum_fee: r.maybe(30, price), items }
}

fn charge(r: &mut Random) -> ChargeSpec {
    if r.percent(35) {
        return ChargeSpec::Flat { amount: price(r), once: r.percent(25) };
    }
    let model = match r.below(6) {
        0 | 1 => PriceModel::PerUnit(price(r)),
        2 => PriceModel::Graduated(tiers(r)),
        3 => PriceModel::Volume(tiers(r)),
        4 => PriceModel::Package { size: 1_000 * (1 + u32::try_from(r.below(100)).expect("a size")), price: price(r) },
        _ => PriceModel::Percentage { rate: u32::try_from(r.below(10_000)).expect("a rate"), fixed: price(r) },
    };
    ChargeSpec::Usage(UsageSpec {
        usage: index(r, 2),
        model,
        included: if r.percent(20) { quantity(r) } else { 0 },
        prepaid: r.maybe(15, quantity),
        minimum: r.maybe(20, price),
        maximum: r.maybe(15, price),
    })
}

fn tiers(r: &mut Random) -> Vec<TierSpec> {
    let mut bound = 0;
    let count = r.between(1, 3);
    let mut tiers: Vec<TierSpec> = (0..count)
        .map(|_| {
            bound += 1_000 * (1 + u32::try_from(r.below(200)).expect("a bound"));
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
    ]);
    (unit, *r.pick(&[1, 1, 1, 2]))
}

fn items(r: &mut Random) -> Vec<&'static str> {
    let mut items: Vec<&str> = ITEMS.into_iter().filter(|_| r.percent(60)).collect();
    if r.percent(30) {
        items.reverse();
    }
    items
}

/// Products of pricings with prepaid quantities are mostly billed before use, as they must be.
fn product(r: &mut Random, catalog: &Catalog) -> ProductSpec {
    let pricing = index(r, catalog.pricings.len());
    product_of(r, catalog, pricing)
}

fn product_of(r: &mut Random, catalog: &Catalog, pricing: usize) -> ProductSpec {
    let content = &catalog.pricings[pricing];
    let prepaid = content.items.iter().any(|item| matches!(&item.charge, ChargeSpec::Usage(usage) if usage.prepaid.is_some()));
    let payment_time = if prepaid && r.percent(95) { Some(PaymentTime::BeforeUse) } else { r.maybe(75, payment_time) };
    let days = *r.pick(&[1, 20, 45, 61, 100, 200, 365, 400]) + r.between(0, 15);
    ProductSpec {
        pricing,
        start_in: r.between(-75, 25),
        days,
        items: r.maybe(5, items),
        entity: r.maybe(50, |r| index(r, catalog.entities.len())),
        cycle: r.maybe(40, cycle),
        issue_in: r.maybe(20, |r| r.between(0, 80.min(days + 1))),
        payment_time,
        tax: r.maybe(40, |r| *r.pick(&[0, 700, 1_900, 1_925])),
        discount: r.maybe(30, |r| *r.pick(&[500, 1_033, 10_000])),
        net_terms: r.maybe(35, net_terms),
        note: r.maybe(15, |r| *r.pick(&["first", "second"])),
    }
}

fn create(r: &mut Random, catalog: &Catalog) -> Step {
    // One pricing twice over the same days is refused: mostly different ones.
    let (first, count) = (index(r, catalog.pricings.len()), *r.pick(&[1, 1, 2, 2, 3]));
    let pricings = (first..first + count).map(|i| i % catalog.pricings.len());
    let products = pricings.map(|pricing| product_of(r, catalog, pricing)).collect();
    Step::Create { customer: index(r, catalog.customers.len()), products }
}

fn patch<T>(r: &mut Random, chance: u64, draw: impl FnOnce(&mut Random) -> T) -> Patch<T> {
    if !r.percent(chance) {
        Patch::Keep
    } else if r.percent(25) {
        Patch::Clear
    } else {
        Patch::Set(draw(r))
    }
}

fn edit(r: &mut Random, catalog: &Catalog) -> Step {
    let present = (0..4)
        .map(|_| {
            if r.percent(15) {
                return ProductChange::Remove;
            }
            ProductChange::Change(Box::new(ProductPatchSpec {
                end_in: r.maybe(25, |r| r.between(-40, 250)),
                items: patch(r, 20, items),
                known_items: r.percent(90),
                payment_time: patch(r, 6, payment_time),
                cycle: patch(r, 6, cycle),
                entity: patch(r, 5, |r| index(r, catalog.entities.len())),
                tax: patch(r, 20, |r| *r.pick(&[0, 700, 1_900])),
                discount: patch(r, 20, |r| *r.pick(&[0, 500, 1_000])),
                net_terms: patch(r, 10, net_terms),
                note: patch(r, 10, |r| *r.pick(&["first", "third"])),
            }))
        })
        .collect();
    let added = if r.percent(15) { vec![product(r, catalog)] } else { Vec::new() };
    Step::Edit {
        contract: index(r, 8),
        current: r.percent(50),
        po_number: patch(r, 20, |_| "PO-7"),
        products: r.maybe(90, |_| ProductsChange { present, added }),
    }
}

fn when(r: &mut Random) -> When {
    match r.below(10) {
        0 | 1 => When::Ago(r.between(0, 3 * DAY)),
        2 => When::Ago(r.between(-600, 60)),
        3 => When::Ago(r.between(0, 90 * DAY)),
        4..8 => {
            When::Inside { contract: index(r, 8), product: index(r, 4), period: index(r, 16), thousandths: r.between(0, 999) }
        }
        _ => When::Boundary {
            contract: index(r, 8),
            product: index(r, 4),
            period: index(r, 16),
            seconds: *r.pick(&[0, -1, 1, -HOUR, HOUR, DAY]),
        },
    }
}

fn step(r: &mut Random, catalog: &Catalog) -> Step {
    match r.below(100) {
        0..5 => create(r, catalog),
        5..8 => {
            let pricing = index(r, catalog.pricings.len());
            Step::EditPricing { pricing, content: pricing_like(r, &catalog.pricings[pricing]) }
        }
        8..16 => edit(r, catalog),
        16..19 => Step::Cancel { contract: index(r, 8), current: r.percent(50) },
        19..48 => Step::Event {
            customer: index(r, catalog.customers.len()),
            usage: index(r, 2),
            of: r.maybe(85, |r| (index(r, 8), index(r, 4))),
            when: when(r),
            quantity: quantity(r),
            checks: r.maybe(10, |r| ChecksSpec {
                currency: r.maybe(60, |r| *r.pick(&CURRENCIES)),
                entity: r.maybe(40, |r| index(r, catalog.entities.len())),
            }),
        },
        48..58 => Step::Update {
            event: index(r, 64),
            when: r.maybe(45, when),
            quantity: r.maybe(60, quantity),
            data: r.maybe(20, |r| u8::try_from(r.below(3)).expect("a byte")),
        },
        58..63 => Step::Delete { event: index(r, 64) },
        63..67 => Step::Issue { document: index(r, 64) },
        67..71 => Step::Void { document: index(r, 64) },
        71..75 => Step::Pay { document: index(r, 64), percent: *r.pick(&[1, 50, 100, 100]) },
        75..85 => Step::Run,
        85..97 => Step::Clock {
            seconds: match r.below(10) {
                0 => -r.between(1, 30 * HOUR),
                1..4 => r.between(1, 20 * HOUR),
                4..8 => r.between(1, 20 * DAY),
                _ => r.between(20 * DAY, 70 * DAY),
            },
        },
        _ => Step::Preview,
    }
}

/// New content for a pricing; its currency mostly stays, or no issued document could be corrected.
fn pricing_like(r: &mut Random, base: &PricingSpec) -> PricingSpec {
    if r.percent(60) {
        // Only the prices change.
        let items = base
            .items
            .iter()
            .map(|item| ItemSpec {
                id: item.id,
                charge: match &item.charge {
                    ChargeSpec::Flat { once, .. } => ChargeSpec::Flat { amount: price(r), once: *once },
                    ChargeSpec::Usage(usage) => {
                        ChargeSpec::Usage(UsageSpec { model: PriceModel::PerUnit(price(r)), ..usage.clone() })
                    }
                },
            })
            .collect();
        return PricingSpec { items, ..base.clone() };
    }
    let drawn = pricing(r);
    if r.percent(80) { PricingSpec { currency: base.currency, ..drawn } } else { drawn }
}
