//! Makes steps concrete: days from today become dates, and numbers become products and events of the model.

use billing_domain::calendar::Timestamp;
use billing_domain::patch::Patch;
use billing_domain::usage::MAX_AHEAD_SECONDS;

use crate::histories::model::calendar::{Date, midnight, plus, service_date};
use crate::histories::model::terms::{Period, Product};
use crate::histories::model::{LastDay, Model, QuantityRequest};
use crate::histories::spec::*;

/// Returns a contract's product as a request names it.
pub(crate) fn element(spec: &ProductSpec, today: Date) -> Element {
    let start = plus(today, spec.start_in);
    let set = |picks: &Vec<PickSpec>| Patch::Set(picks.iter().map(|pick| item(pick, today)).collect());
    fn stated<T>(value: Option<T>) -> Patch<T> {
        value.map_or(Patch::Keep, Patch::Set)
    }
    Element {
        no: None,
        pricing: spec.pricing,
        start: Some(start),
        end: Some(plus(start, spec.days)),
        reprice: false,
        items: spec.items.as_ref().map_or(Patch::Keep, set),
        minimum_fee: stated(spec.minimum_fee),
        entity: stated(spec.entity),
        cycle: stated(spec.cycle),
        issue_day: stated(spec.issue_in.map(|days| plus(start, days))),
        payment_time: stated(spec.payment_time),
        tax: stated(spec.tax),
        category: stated(spec.category),
        discount: stated(spec.discount),
        net_terms: stated(spec.net_terms),
        note: stated(spec.note),
    }
}

fn item(pick: &PickSpec, today: Date) -> ItemRequest {
    let steps = |steps: &Vec<(i64, Amount)>| steps.iter().map(|(days, quantity)| (plus(today, *days), *quantity)).collect();
    ItemRequest {
        id: pick.id,
        quantities: pick.quantities.as_ref().map(steps),
        price: pick.price.clone(),
        included: pick.included.clone(),
        prepaid: pick.prepaid.clone(),
        minimum: pick.minimum.clone(),
        maximum: pick.maximum.clone(),
    }
}

fn plain(id: &'static str) -> ItemRequest {
    ItemRequest {
        id,
        quantities: None,
        price: Patch::Keep,
        included: Patch::Keep,
        prepaid: Patch::Keep,
        minimum: Patch::Keep,
        maximum: Patch::Keep,
    }
}

impl Model {
    /// Returns today in UTC, from which the days of steps count.
    fn day_of(now: Timestamp) -> Date {
        service_date("UTC", now)
    }

    fn numbered(&self, product: usize) -> &Product {
        &self.products[product % self.products.len()]
    }

    pub(crate) fn date(&self, day: DaySpec, now: Timestamp) -> Date {
        let today = Self::day_of(now);
        match day {
            DaySpec::In(days) => plus(today, days),
            DaySpec::End { product } => self.numbered(product).end().unwrap_or(today),
            DaySpec::Period { product, after } => {
                let product = self.numbered(product);
                let starts: Vec<Date> = product.periods.iter().map(|period| period.start).collect();
                let current = i64::try_from(starts.iter().filter(|start| **start <= today).count()).expect("a count") - 1;
                let wanted = usize::try_from((current + after).max(0)).expect("an index");
                starts.get(wanted).or(starts.last()).copied().unwrap_or(today)
            }
        }
    }

    /// Returns an edit with a list of the contract's present products.
    pub(crate) fn request(&self, step: &Step, now: Timestamp) -> EditRequest {
        let Step::Edit { since, version, changes, added, reversed } = step else { panic!("not an edit: {step:?}") };
        let today = Self::day_of(now);
        let since = match since {
            SinceSpec::Next => From::Next,
            SinceSpec::Current => From::Current,
            SinceSpec::Day(day) => From::Day(self.date(*day, now)),
        };
        let mut elements = Vec::new();
        for (product, change) in self.products.iter().zip(changes.iter().cycle()) {
            let ChangeSpec::Name(patch) = change else { continue };
            if product.bills() {
                elements.push(self.patched_element(product, patch, today));
            }
        }
        elements.extend(added.iter().map(|spec| self.added_element(spec, today)));
        if *reversed {
            elements.reverse();
        }
        EditRequest { since, version: *version, elements }
    }

    /// Returns a product to add. A renewal bills from the day after the last day of the renewed product.
    fn added_element(&self, spec: &ProductSpec, today: Date) -> Element {
        let added = element(spec, today);
        match spec.renews.map(|product| self.numbered(product)).and_then(|product| Some((product, product.end()?))) {
            Some((product, start)) => {
                let issue_day = spec.issue_in.map_or(Patch::Keep, |days| Patch::Set(plus(start, days)));
                Element {
                    pricing: product.pricing(),
                    start: Some(start),
                    end: Some(plus(start, spec.days)),
                    items: Patch::Keep,
                    issue_day,
                    ..added
                }
            }
            None => added,
        }
    }

    fn patched_element(&self, product: &Product, patch: &PatchSpec, today: Date) -> Element {
        let terms = product.newest();
        let over = product.end().is_some_and(|end| end <= today);
        let twins = self.products.iter().filter(|other| other.pricing() == product.pricing()).count();
        let again = patch.end_again.map(|which| product.untils[which % product.untils.len()]);
        let start = match patch.start_moves {
            Some(days) if (twins == 1 || patch.says_no) && !over => Some(plus(product.start(), days)),
            _ => (patch.says_start || ((twins > 1 || over) && !patch.says_no)).then_some(product.start()),
        };
        let listed = &self.catalog.pricings[product.pricing()].items;
        let same = || terms.items.iter().map(|item| plain(item.id)).collect::<Vec<_>>();
        let items = match &patch.items {
            ItemsSpec::Keep => Patch::Keep,
            ItemsSpec::All => Patch::Clear,
            ItemsSpec::These(picks) => {
                let known = picks.iter().filter_map(|pick| {
                    let charge = terms.items.iter().find(|item| item.id == pick.id).map(|item| &item.charge);
                    let charge = charge.or_else(|| listed.iter().find(|item| item.id == pick.id).map(|item| &item.charge))?;
                    Some(fitted(item(pick, today), charge))
                });
                Patch::Set(known.collect())
            }
            ItemsSpec::Same { which, pick } if !terms.items.is_empty() => {
                let mut items = same();
                let which = which % items.len();
                let given = ItemRequest { id: items[which].id, ..item(pick, today) };
                items[which] = fitted(given, &terms.items[which].charge);
                Patch::Set(items)
            }
            ItemsSpec::Same { .. } => Patch::Keep,
        };
        let later = patch.end_later.map(|days| plus(product.end().unwrap_or(product.until).max(product.until), days));
        Element {
            no: patch.says_no.then_some(product.no),
            pricing: product.pricing(),
            start,
            end: later.or(again).or_else(|| patch.end_in.map(|days| plus(today, days))),
            reprice: patch.reprice,
            items,
            minimum_fee: patch.minimum_fee.clone(),
            entity: patch.entity.clone(),
            cycle: patch.cycle.clone(),
            issue_day: match patch.issue_in {
                Patch::Keep => Patch::Keep,
                Patch::Clear => Patch::Clear,
                Patch::Set(days) => Patch::Set(plus(product.start(), days)),
            },
            payment_time: patch.payment_time.clone(),
            tax: patch.tax.clone(),
            category: patch.category.clone(),
            discount: patch.discount.clone(),
            net_terms: patch.net_terms.clone(),
            note: patch.note.clone(),
        }
    }

    pub(crate) fn last_day(&self, spec: LastDaySpec, now: Timestamp) -> LastDay {
        match spec {
            LastDaySpec::PeriodEnd => LastDay::PeriodEnd,
            LastDaySpec::Today => LastDay::Today,
            LastDaySpec::Day(day) => LastDay::Day(plus(self.date(day, now), -1)),
        }
    }

    /// Returns a quantity change of a fixed line item, if the product has one.
    pub(crate) fn quantity_request(&self, step: &Step, now: Timestamp) -> Option<QuantityRequest> {
        let Step::Quantity { product, item, quantity, from, prorate } = step else { panic!("not a quantity: {step:?}") };
        let product = self.numbered(*product);
        let fixed: Vec<&'static str> = product
            .newest()
            .items
            .iter()
            .filter(|item| matches!(item.charge, ChargeSpec::Fixed { .. }))
            .map(|item| item.id)
            .collect();
        let id = fixed.get(item % fixed.len().max(1))?;
        Some(QuantityRequest {
            product: product.no,
            item: id,
            quantity: *quantity,
            from: from.map(|day| self.date(day, now)),
            prorate: *prorate,
        })
    }

    fn period(&self, product: usize, period: usize) -> Option<(&Product, &Period)> {
        let product = self.numbered(product);
        let count = product.periods.len();
        (count > 0).then(|| (product, &product.periods[period % count]))
    }

    /// Returns an instant of usage, never further in the future than allowed.
    pub(crate) fn instant(&self, when: When, now: Timestamp) -> Timestamp {
        let at = match when {
            When::Ago(seconds) => now.plus_seconds(-seconds),
            When::Boundary { product, period, seconds } => match self.period(product, period) {
                Some((_, period)) => midnight(self.zone(period.terms.entity), period.start).plus_seconds(seconds),
                None => now,
            },
            When::Inside { product, period, thousandths } => match self.period(product, period) {
                Some((_, period)) => {
                    let from = midnight(self.zone(period.terms.entity), period.start);
                    let to = midnight(self.zone(period.terms.entity), period.end).min(now);
                    let seconds = (to.as_micros() - from.as_micros()).max(0) / 1_000_000 * thousandths / 1_000;
                    from.plus_seconds(seconds)
                }
                None => now,
            },
            When::First => now,
        };
        at.min(now.plus_seconds(MAX_AHEAD_SECONDS))
    }
}

/// Removes the values that a line item of this kind does not have.
fn fitted(request: ItemRequest, charge: &ChargeSpec) -> ItemRequest {
    match charge {
        ChargeSpec::Fixed { .. } => ItemRequest {
            included: Patch::Keep,
            prepaid: Patch::Keep,
            minimum: Patch::Keep,
            maximum: Patch::Keep,
            price: match request.price {
                Patch::Set(PriceModel::Percentage { .. }) => Patch::Keep,
                other => other,
            },
            ..request
        },
        ChargeSpec::Usage(_) => ItemRequest {
            quantities: None,
            price: match request.price {
                Patch::Set(PriceModel::Flat(_)) => Patch::Keep,
                other => other,
            },
            ..request
        },
    }
}
