//! Draws pricings, the events that their line items count, and the labels of events.

use billing_domain::catalog::Aggregation;

use super::{CURRENCIES, ITEMS, Random, charge, fixed_model, index, price, quantity, usage_model};
use crate::histories::spec::*;

/// Draws the events that usage line items count. Numbers of distinct labels are not split.
fn split(r: &mut Random, items: &mut [ItemSpec], usage: &[Aggregation]) {
    for (number, aggregation) in usage.iter().enumerate() {
        let (mut labels, mut has_rest): (Vec<usize>, bool) = ((0..LABELS.len()).collect(), false);
        for item in &mut *items {
            let ChargeSpec::Usage(of) = &mut item.charge else { continue };
            if of.usage != number || *aggregation == Aggregation::Unique {
                continue;
            }
            of.counts = match r.below(5) {
                0 | 1 if !labels.is_empty() => {
                    let count = index(r, labels.len().min(2)) + 1;
                    Counts::Where((0..count).map(|_| labels.remove(index(r, labels.len()))).collect())
                }
                2 | 3 if !has_rest => {
                    has_rest = true;
                    Counts::Rest
                }
                _ => Counts::Every,
            };
        }
    }
}

pub(super) fn label(r: &mut Random) -> Label {
    r.maybe(92, |r| index(r, LABELS.len()))
}

pub(super) fn pricing(r: &mut Random, currency: &'static str, usage: &[Aggregation]) -> PricingSpec {
    let currency = if r.percent(85) { currency } else { *r.pick(&CURRENCIES) };
    let count = r.between(1, 4);
    let mut ids = ITEMS.to_vec();
    let mut items: Vec<ItemSpec> = (0..count)
        .map(|_| {
            let id = ids.remove(index(r, ids.len()));
            ItemSpec { id, charge: charge(r) }
        })
        .collect();
    if r.percent(40) {
        split(r, &mut items, usage);
    }
    PricingSpec { currency, minimum_fee: r.maybe(30, price), items }
}

/// Returns a pricing whose line items cost nothing.
pub(super) fn free_of_charge(base: &PricingSpec) -> PricingSpec {
    let free = |item: &ItemSpec| ItemSpec {
        id: item.id,
        charge: match &item.charge {
            ChargeSpec::Fixed { once, .. } => ChargeSpec::Fixed { price: PriceModel::Flat(0), once: *once },
            ChargeSpec::Usage(usage) => {
                ChargeSpec::Usage(UsageSpec { price: PriceModel::PerUnit(0), minimum: None, ..usage.clone() })
            }
        },
    };
    PricingSpec { minimum_fee: None, items: base.items.iter().map(free).collect(), ..base.clone() }
}

pub(super) fn other_prices(r: &mut Random, base: &PricingSpec, usage: &[Aggregation]) -> PricingSpec {
    let mut items: Vec<ItemSpec> = base
        .items
        .iter()
        .map(|item| ItemSpec {
            id: item.id,
            charge: match &item.charge {
                ChargeSpec::Fixed { once, .. } => ChargeSpec::Fixed { price: fixed_model(r), once: *once },
                ChargeSpec::Usage(usage) => ChargeSpec::Usage(UsageSpec {
                    price: usage_model(r),
                    included: if r.percent(20) { quantity(r) } else { usage.included },
                    minimum: if r.percent(20) { r.maybe(50, price) } else { usage.minimum },
                    ..usage.clone()
                }),
            },
        })
        .collect();
    if r.percent(20)
        && let Some(id) = ITEMS.iter().find(|id| items.iter().all(|item| item.id != **id))
    {
        let charge = match charge(r) {
            ChargeSpec::Usage(usage) => ChargeSpec::Usage(UsageSpec { prepaid: None, ..usage }),
            fixed @ ChargeSpec::Fixed { .. } => fixed,
        };
        items.push(ItemSpec { id, charge });
    }
    if r.percent(25) {
        split(r, &mut items, usage);
    }
    if r.percent(10) && items.len() > 1 {
        items.remove(index(r, items.len()));
    }
    let minimum_fee = if r.percent(50) { base.minimum_fee } else { r.maybe(30, price) };
    PricingSpec { currency: base.currency, minimum_fee, items }
}
