//! Terms as the rules define them (billing rules 7): the agreed terms of a product in stretches of days, and the periods
//! counted from an anchor.

use std::rc::Rc;

use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::patch::Patch;

use super::calendar::{Date, days_between, plus_months};
use super::rating;
use crate::histories::spec::*;

/// An agreed line item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) id: &'static str,
    pub(crate) charge: ChargeSpec,
    pub(crate) quantities: Vec<(Date, Amount)>,
}

/// The agreed terms of a product. `end` is the day after the last day. Boundaries are counted from the anchor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) pricing: usize,
    pub(crate) currency: &'static str,
    pub(crate) minimum_fee: Option<Price>,
    pub(crate) items: Vec<Item>,
    pub(crate) all_items: bool,
    pub(crate) start: Date,
    pub(crate) end: Date,
    pub(crate) cycle: (CycleUnit, u16),
    pub(crate) issue_day: Option<Date>,
    pub(crate) anchor: Date,
    pub(crate) payment_time: PaymentTime,
    pub(crate) stated_entity: Option<usize>,
    pub(crate) entity: usize,
    pub(crate) tax: Option<Rate>,
    pub(crate) category: Option<Category>,
    pub(crate) discount: Option<Rate>,
}

/// The days for which one set of terms is agreed, or on which they apply. `to` is the day after the last day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) from: Date,
    pub(crate) to: Date,
    pub(crate) terms: Rc<Terms>,
}

/// A billing period, and the whole period that contains it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Period {
    pub(crate) terms: Rc<Terms>,
    pub(crate) start: Date,
    pub(crate) end: Date,
    pub(crate) whole: (Date, Date),
}

impl Period {
    pub(crate) fn share(&self) -> (i64, i64) {
        (days_between(self.start, self.end), days_between(self.whole.0, self.whole.1))
    }

    pub(crate) fn contains(&self, day: Date) -> bool {
        self.start <= day && day < self.end
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CutBy {
    Cancel,
    Removal,
}

#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) no: u16,
    /// The agreed terms by day, including days after the end.
    pub(crate) whole: Vec<Stretch>,
    /// The day after the agreed last day.
    pub(crate) until: Date,
    /// Every value that `until` ever had.
    pub(crate) untils: Vec<Date>,
    /// The first day without the product, if the product was cut short.
    pub(crate) cut: Option<(Date, CutBy)>,
    pub(crate) periods: Rc<Vec<Period>>,
    /// Every line item that was ever agreed on.
    pub(crate) ever: Vec<&'static str>,
}

pub(crate) type Refused = &'static str;

impl Terms {
    /// Returns the terms that a request agrees on for one product (billing rules 7).
    pub(crate) fn agree(element: &Element, catalog: &Catalog) -> Result<Self, Refused> {
        let pricing = &catalog.pricings[element.pricing];
        let (start, end) = (element.start.ok_or("no start")?, element.end.ok_or("no end")?);
        let listed: Vec<Item> = pricing.items.iter().map(listed).collect();
        let base = Self {
            pricing: element.pricing,
            currency: pricing.currency,
            minimum_fee: pricing.minimum_fee,
            items: listed,
            all_items: true,
            start,
            end,
            cycle: (CycleUnit::Monthly, 1),
            issue_day: None,
            anchor: end,
            payment_time: PaymentTime::AfterUse,
            stated_entity: None,
            entity: default_entity(catalog),
            tax: None,
            category: None,
            discount: None,
        };
        if end <= start {
            return Err("ends before it starts");
        }
        let mut agreed = base.with(element, false, catalog)?;
        agreed.all_items &= !matches!(element.items, Patch::Set(_));
        agreed.check_issue_day()?;
        Ok(agreed)
    }

    /// Returns the price of a whole period without usage, if each item had its largest agreed quantity all the time.
    pub(crate) fn most_agreed(&self) -> i128 {
        let of_item = |item: &Item| match &item.charge {
            ChargeSpec::Fixed { price, .. } => {
                let quantities = item.quantities.iter().map(|(_, quantity)| *quantity).chain([1_000]);
                quantities.map(|quantity| rating::fixed(price, &[(quantity, 1)], 1, self.currency)).max().unwrap_or(0)
            }
            ChargeSpec::Usage(usage) => {
                usage.prepaid.map_or(0, |prepaid| rating::usage(usage, rating::raw_quantity(prepaid), 0, (1, 1), self.currency))
            }
        };
        self.items.iter().map(|item| i128::from(of_item(item))).sum()
    }

    pub(crate) fn is_one_time(&self) -> bool {
        self.months().is_none()
    }

    /// Returns these terms with another start and end. If the product has `begun`, the boundaries stay, and a one-time product
    /// ends no later than its first end.
    pub(crate) fn over(&self, start: Date, end: Date, begun: bool) -> Result<Self, Refused> {
        if end <= start {
            return Err("ends before it starts");
        }
        if begun {
            let end = if self.is_one_time() { end.min(self.anchor) } else { end };
            return Ok(Self { start, end, ..self.clone() });
        }
        let mut anew = Self { start, end, ..self.clone() };
        anew.count_anew();
        anew.check_issue_day()?;
        Ok(anew)
    }

    /// Counts the boundaries again: from the issue day, or back from the end.
    pub(crate) fn count_anew(&mut self) {
        self.anchor = self.issue_day.filter(|_| !self.is_one_time()).unwrap_or(self.end);
    }

    /// Returns these terms with the values of an element, except its quantities, start and end. With `keep_set`, the element
    /// names the newest agreed line items, so these terms keep their own line items.
    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    pub(crate) fn with(&self, element: &Element, keep_set: bool, catalog: &Catalog) -> Result<Self, Refused> {
        let pricing = &catalog.pricings[element.pricing];
        let mut next = self.clone();
        let find_listed = |id: &str| pricing.items.iter().find(|item| item.id == id).map(listed);
        if element.reprice {
            next.minimum_fee = pricing.minimum_fee;
            next.currency = pricing.currency;
            let ids: Vec<&str> = match next.all_items {
                true => pricing.items.iter().map(|item| item.id).collect(),
                false => next.items.iter().map(|item| item.id).collect(),
            };
            next.items = ids
                .into_iter()
                .filter_map(|id| {
                    let agreed = self.items.iter().find(|item| item.id == id);
                    match (find_listed(id), agreed) {
                        (Some(now), agreed) => {
                            Some(Item { quantities: agreed.map(|agreed| agreed.quantities.clone()).unwrap_or_default(), ..now })
                        }
                        (None, agreed) => agreed.cloned(),
                    }
                })
                .collect();
        }
        match &element.items {
            Patch::Keep => {}
            Patch::Clear => {
                let before = std::mem::take(&mut next.items);
                let kept = |id: &str| before.iter().find(|item| item.id == id).cloned();
                next.items = pricing.items.iter().map(|item| kept(item.id).unwrap_or_else(|| listed(item))).collect();
                next.all_items = true;
            }
            Patch::Set(requests) if keep_set && !element.reprice => {
                for request in requests {
                    if let Some(item) = next.items.iter_mut().find(|item| item.id == request.id) {
                        *item = overridden(item.clone(), request, find_listed(request.id).as_ref())?;
                    }
                }
            }
            Patch::Set(requests) => {
                let before = std::mem::take(&mut next.items);
                // Naming exactly the agreed line items does not change the selection.
                next.all_items &= self.items.len() == requests.len()
                    && requests.iter().all(|given| self.items.iter().any(|item| item.id == given.id));
                for request in requests {
                    if next.items.iter().any(|item| item.id == request.id) {
                        return Err("a line item twice");
                    }
                    let now = find_listed(request.id);
                    let agreed = before.iter().find(|item| item.id == request.id).cloned();
                    let dropped = || self.items.iter().find(|item| item.id == request.id).cloned();
                    let base = agreed.or_else(|| now.clone()).or_else(dropped).ok_or("an unknown line item")?;
                    next.items.push(overridden(base, request, now.as_ref())?);
                }
            }
        }
        match element.minimum_fee {
            Patch::Keep => {}
            Patch::Clear => next.minimum_fee = pricing.minimum_fee,
            Patch::Set(fee) => next.minimum_fee = Some(fee),
        }
        match element.entity {
            Patch::Keep => {}
            Patch::Clear => (next.stated_entity, next.entity) = (None, default_entity(catalog)),
            Patch::Set(entity) => (next.stated_entity, next.entity) = (Some(entity), entity),
        }
        if element.cycle.is_named() {
            next.cycle = element.cycle.clone().apply(None).unwrap_or((CycleUnit::Monthly, 1));
        }
        if element.payment_time.is_named() {
            next.payment_time = element.payment_time.clone().apply(None).unwrap_or(PaymentTime::AfterUse);
        }
        next.issue_day = element.issue_day.clone().apply(next.issue_day);
        // Only an edit that names the issue day moves boundaries. A one-time product is billed over the whole range.
        if next.issue_day != self.issue_day {
            next.check_issue_day()?;
            if !next.is_one_time() {
                next.count_anew();
            }
        }
        if next.is_one_time() && !self.is_one_time() {
            next.anchor = next.end;
        }
        next.tax = element.tax.clone().apply(next.tax);
        next.category = element.category.clone().apply(next.category);
        next.discount = element.discount.clone().apply(next.discount);
        next.check()?;
        Ok(next)
    }

    pub(crate) fn check(&self) -> Result<(), Refused> {
        let prepaid = self.items.iter().any(|item| matches!(&item.charge, ChargeSpec::Usage(usage) if usage.prepaid.is_some()));
        if prepaid && self.payment_time != PaymentTime::BeforeUse {
            return Err("prepaid_needs_before_use");
        }
        if self.category.is_some() && self.tax.is_some_and(|rate| rate > 0) {
            return Err("tax_category_rate");
        }
        if self.has_overlap() {
            return Err("overlapping_where or several_rest");
        }
        Ok(())
    }

    pub(crate) fn check_issue_day(&self) -> Result<(), Refused> {
        let is_outside = self.issue_day.is_some_and(|day| day < self.start || day > self.end);
        if is_outside { Err("the issue day lies outside") } else { Ok(()) }
    }

    /// Returns whether other terms bill the same.
    pub(crate) fn shows_as(&self, other: &Self) -> bool {
        let mut items: (Vec<&Item>, Vec<&Item>) = (self.items.iter().collect(), other.items.iter().collect());
        items.0.sort_by_key(|item| item.id);
        items.1.sort_by_key(|item| item.id);
        let plain = |terms: &Self| Self { items: Vec::new(), all_items: true, stated_entity: None, ..terms.clone() };
        items.0 == items.1 && plain(self) == plain(other)
    }

    pub(crate) fn meters(&self, usage: usize) -> bool {
        self.metering(usage).next().is_some()
    }

    fn metering(&self, usage: usize) -> impl Iterator<Item = (&'static str, &UsageSpec)> {
        self.items.iter().filter_map(move |item| match &item.charge {
            ChargeSpec::Usage(metered) if metered.usage == usage => Some((item.id, metered)),
            _ => None,
        })
    }

    /// Returns whether the terms count an event. With a `where` or `rest` of the usage product, one line item must select it.
    pub(crate) fn counts(&self, usage: usize, label: Label) -> bool {
        let is_selective = self.metering(usage).any(|(_, metered)| metered.counts != Counts::Every);
        self.meters(usage) && (!is_selective || self.selected(usage, label).is_some())
    }

    /// Returns the line item whose `where` or `rest` selects an event.
    pub(crate) fn selected(&self, usage: usize, label: Label) -> Option<&'static str> {
        let is_met = |counts: &Counts| matches!((counts, label), (Counts::Where(labels), Some(label)) if labels.contains(&label));
        let by_where = self.metering(usage).find(|(_, metered)| is_met(&metered.counts));
        let rest = || self.metering(usage).find(|(_, metered)| metered.counts == Counts::Rest);
        by_where.or_else(rest).map(|(id, _)| id)
    }

    /// Returns whether two line items would count one event as alternatives.
    fn has_overlap(&self) -> bool {
        let counts: Vec<(usize, &Counts)> =
            (0..2).flat_map(|usage| self.metering(usage)).map(|(_, metered)| (metered.usage, &metered.counts)).collect();
        let overlaps = |(usage, one): &(usize, &Counts), (other_usage, other): &(usize, &Counts)| {
            usage == other_usage
                && match (one, other) {
                    (Counts::Where(one), Counts::Where(other)) => one.iter().any(|label| other.contains(label)),
                    (Counts::Rest, Counts::Rest) => true,
                    _ => false,
                }
        };
        (0..counts.len()).any(|i| counts[..i].iter().any(|earlier| overlaps(earlier, &counts[i])))
    }

    fn months(&self) -> Option<i64> {
        let of_unit = match self.cycle.0 {
            CycleUnit::OneTime => return None,
            CycleUnit::Monthly => 1,
            CycleUnit::Quarterly => 3,
            CycleUnit::Yearly => 12,
        };
        Some(of_unit * i64::from(self.cycle.1))
    }

    /// Returns the values that determine the structure of documents (billing rules 7).
    pub(crate) fn structure(&self) -> (usize, PaymentTime, (CycleUnit, u16), Option<Date>, Date, &'static str) {
        (self.entity, self.payment_time, self.cycle, self.issue_day, self.anchor, self.currency)
    }

    /// Returns the whole periods that cover a range of days, first to last (billing rules 1).
    fn whole_periods(&self, from: Date, to: Date) -> Vec<(Date, Date)> {
        let Some(months) = self.months() else { return vec![(self.start, self.anchor)] };
        let anchor = self.anchor;
        let mut k = 0;
        while plus_months(anchor, k * months) > from {
            k -= 1;
        }
        while plus_months(anchor, (k + 1) * months) <= from {
            k += 1;
        }
        let mut found = Vec::new();
        loop {
            let whole = (plus_months(anchor, k * months), plus_months(anchor, (k + 1) * months));
            if whole.0 >= to {
                return found;
            }
            found.push(whole);
            k += 1;
        }
    }
}

pub(crate) fn default_entity(catalog: &Catalog) -> usize {
    catalog.customer.entity.unwrap_or(catalog.default_entity)
}

/// Returns a line item as the pricing lists it now.
fn listed(item: &ItemSpec) -> Item {
    Item { id: item.id, charge: item.charge.clone(), quantities: Vec::new() }
}

/// Returns the steps of a line item after an edit. The list replaces all steps from its first day on.
pub(crate) fn replaced(steps: &[(Date, Amount)], list: &[(Date, Amount)]) -> Vec<(Date, Amount)> {
    let Some((first, _)) = list.first() else { return Vec::new() };
    steps.iter().filter(|(from, _)| from < first).chain(list).copied().collect()
}

/// Returns a line item with the overrides of a request.
fn overridden(mut item: Item, request: &ItemRequest, listed: Option<&Item>) -> Result<Item, Refused> {
    match &mut item.charge {
        ChargeSpec::Fixed { price, .. } => {
            match (&request.price, listed.map(|listed| &listed.charge)) {
                (Patch::Set(PriceModel::Percentage { .. }), _) => return Err("a fixed percentage"),
                (Patch::Set(model), _) => *price = model.clone(),
                (Patch::Clear, Some(ChargeSpec::Fixed { price: now, .. })) => *price = now.clone(),
                _ => {}
            }
            let named = [request.included.is_set(), request.prepaid.is_set(), request.minimum.is_set(), request.maximum.is_set()];
            if named.contains(&true) {
                return Err("a fixed line item with usage fields");
            }
            if let Some(list) = &request.quantities {
                item.quantities = replaced(&item.quantities, list);
            }
        }
        ChargeSpec::Usage(usage) => {
            let now = match listed.map(|listed| &listed.charge) {
                Some(ChargeSpec::Usage(now)) => Some(now),
                _ => None,
            };
            match (&request.price, now) {
                (Patch::Set(PriceModel::Flat(_)), _) => return Err("flat usage"),
                (Patch::Set(model), _) => usage.price = model.clone(),
                (Patch::Clear, Some(now)) => usage.price = now.price.clone(),
                _ => {}
            }
            match (&request.included, now) {
                (Patch::Set(included), _) => usage.included = *included,
                (Patch::Clear, Some(now)) => usage.included = now.included,
                _ => {}
            }
            for (patch, value, now) in [
                (&request.prepaid, &mut usage.prepaid, now.and_then(|now| now.prepaid)),
                (&request.minimum, &mut usage.minimum, now.and_then(|now| now.minimum)),
                (&request.maximum, &mut usage.maximum, now.and_then(|now| now.maximum)),
            ] {
                match patch {
                    Patch::Keep => {}
                    Patch::Clear => *value = now,
                    Patch::Set(set) => *value = Some(*set),
                }
            }
            if request.quantities.is_some() {
                return Err("quantities of usage");
            }
        }
    }
    Ok(item)
}

impl Product {
    pub(crate) fn new(no: u16, terms: Terms) -> Self {
        let until = terms.end;
        let stretch = Stretch { from: terms.start, to: Date::MAX, terms: Rc::new(terms) };
        let whole = vec![stretch];
        let mut product = Self { no, whole, until, untils: vec![until], cut: None, periods: Rc::default(), ever: Vec::new() };
        product.count_periods();
        product
    }

    /// Returns the stretches on the days on which they apply. A change holds from the first period that begins on or after its
    /// agreed day, counted in the periods before the change.
    pub(crate) fn applied(&self) -> Vec<Stretch> {
        let mut applied: Vec<Stretch> = Vec::new();
        let mut agreed_to = None;
        for stretch in &self.whole {
            let from = match applied.last_mut() {
                Some(before) if agreed_to == Some(stretch.from) => {
                    let whole = before.terms.whole_periods(before.from, stretch.from).pop();
                    let waits = stretch.from > before.from;
                    before.to = whole.filter(|_| waits).map_or(before.from, |whole| whole.1);
                    before.to
                }
                _ => {
                    // A gap begins on its own day.
                    let gap = agreed_to.unwrap_or(Date::MAX);
                    applied.iter_mut().for_each(|before| before.to = before.to.min(gap));
                    stretch.from.max(self.start())
                }
            };
            agreed_to = Some(stretch.to);
            applied.push(Stretch { from, ..stretch.clone() });
        }
        applied.retain(|stretch| stretch.from < stretch.to);
        applied
    }

    /// Returns the billed stretches: those before the end and the cut.
    pub(crate) fn plan(&self) -> impl Iterator<Item = Stretch> {
        let until = self.cut.map_or(self.until, |(day, _)| day.min(self.until));
        let clip = move |stretch: Stretch| Stretch { to: stretch.to.min(until), ..stretch };
        self.applied().into_iter().map(clip).filter(|stretch| stretch.from < stretch.to)
    }

    /// Lists every period of every stretch.
    pub(crate) fn count_periods(&mut self) {
        for item in self.whole.iter().flat_map(|stretch| &stretch.terms.items) {
            if !self.ever.contains(&item.id) {
                self.ever.push(item.id);
            }
        }
        let mut periods = Vec::new();
        for stretch in self.plan() {
            for whole in stretch.terms.whole_periods(stretch.from, stretch.to) {
                let (start, end) = (whole.0.max(stretch.from), whole.1.min(stretch.to));
                if start < end {
                    periods.push(Period { terms: Rc::clone(&stretch.terms), start, end, whole });
                }
            }
        }
        self.periods = Rc::new(periods);
    }

    /// Changes the start and the end, which take effect on their own days. Terms that are planned for later stay planned for
    /// their agreed days.
    pub(crate) fn cover(&mut self, start: Date, end: Date, begun: bool) -> Result<(), Refused> {
        for stretch in &mut self.whole {
            stretch.terms = Rc::new(stretch.terms.over(start, end, begun)?);
        }
        self.whole[0].from = self.whole[0].from.min(start);
        if self.until != end {
            self.until = end;
            self.untils.push(end);
        }
        self.count_periods();
        Ok(())
    }

    pub(crate) fn pricing(&self) -> usize {
        self.newest().pricing
    }

    pub(crate) fn newest(&self) -> &Rc<Terms> {
        &self.whole.last().expect("a stretch").terms
    }

    pub(crate) fn start(&self) -> Date {
        self.newest().start
    }

    pub(crate) fn bills(&self) -> bool {
        !self.periods.is_empty()
    }

    pub(crate) fn first_day(&self) -> Option<Date> {
        self.periods.first().map(|period| period.start)
    }

    /// Returns the day after the last billed day.
    pub(crate) fn end(&self) -> Option<Date> {
        self.periods.last().map(|period| period.end)
    }

    pub(crate) fn period_at(&self, day: Date) -> Option<&Period> {
        self.periods.iter().find(|period| period.contains(day))
    }

    /// Returns the start of the first period that starts after a day.
    pub(crate) fn next_start(&self, day: Date) -> Option<Date> {
        self.periods.iter().map(|period| period.start).find(|start| *start > day)
    }
}
