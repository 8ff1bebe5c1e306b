//! Contracts as the rules tell them: terms in force from a day, periods counted from an anchor.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::linking::Slot;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;

use super::calendar::{Date, days_between, plus, plus_months};
use crate::spec::{Catalog, ChargeSpec, ItemSpec, PricingSpec, Rate, UsageSpec};

/// A product as it is asked for. `end` is the day after the last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) pricing: usize,
    pub(crate) start: Date,
    pub(crate) end: Date,
    pub(crate) items: Option<Vec<&'static str>>,
    pub(crate) entity: Option<usize>,
    pub(crate) cycle: Option<(CycleUnit, u16)>,
    pub(crate) issue_day: Option<Date>,
    pub(crate) payment_time: Option<PaymentTime>,
    pub(crate) tax: Option<Rate>,
    pub(crate) discount: Option<Rate>,
    pub(crate) net_terms: Option<NetTerms>,
    pub(crate) note: Option<&'static str>,
}

/// One element of an edit's list.
#[derive(Clone, Debug)]
pub(crate) struct ProductPatch {
    pub(crate) pricing: usize,
    pub(crate) start: Option<Date>,
    pub(crate) end: Option<Date>,
    pub(crate) items: Patch<Vec<&'static str>>,
    pub(crate) entity: Patch<usize>,
    pub(crate) cycle: Patch<(CycleUnit, u16)>,
    pub(crate) issue_day: Patch<Date>,
    pub(crate) payment_time: Patch<PaymentTime>,
    pub(crate) tax: Patch<Rate>,
    pub(crate) discount: Patch<Rate>,
    pub(crate) net_terms: Patch<NetTerms>,
    pub(crate) note: Patch<&'static str>,
}

impl ProductPatch {
    pub(crate) fn onto(&self, present: Wanted) -> Wanted {
        Wanted {
            pricing: self.pricing,
            start: self.start.unwrap_or(present.start),
            end: self.end.unwrap_or(present.end),
            items: self.items.clone().apply(present.items),
            entity: self.entity.clone().apply(present.entity),
            cycle: self.cycle.clone().apply(present.cycle),
            issue_day: self.issue_day.clone().apply(present.issue_day),
            payment_time: self.payment_time.clone().apply(present.payment_time),
            tax: self.tax.clone().apply(present.tax),
            discount: self.discount.clone().apply(present.discount),
            net_terms: self.net_terms.clone().apply(present.net_terms),
            note: self.note.clone().apply(present.note),
        }
    }
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    pub(crate) wanted: Wanted,
    pub(crate) currency: &'static str,
    pub(crate) minimum_fee: Option<u32>,
    pub(crate) items: Vec<ItemSpec>,
    pub(crate) aggregations: Vec<Aggregation>,
    pub(crate) entity: usize,
    pub(crate) payment_time: PaymentTime,
}

impl Terms {
    /// `None` when the request can't be taken.
    pub(crate) fn agree(wanted: Wanted, pricing: &PricingSpec, entity: usize, catalog: &Catalog) -> Option<Self> {
        let items: Vec<ItemSpec> = match &wanted.items {
            None => pricing.items.clone(),
            Some(ids) => {
                let find = |id: &&'static str| pricing.items.iter().find(|item| item.id == *id).cloned();
                ids.iter().map(find).collect::<Option<_>>()?
            }
        };
        let payment_time = wanted.payment_time.unwrap_or(PaymentTime::AfterUse);
        let prepaid = items.iter().filter_map(usage_of).any(|usage| usage.prepaid.is_some());
        let issue_day_fits = wanted.issue_day.is_none_or(|day| wanted.start <= day && day <= wanted.end);
        if wanted.end <= wanted.start || !issue_day_fits || prepaid && payment_time != PaymentTime::BeforeUse {
            return None;
        }
        let wanted = Wanted {
            items: Some(items.iter().map(|item| item.id).collect()),
            cycle: Some(wanted.cycle.unwrap_or((CycleUnit::Monthly, 1))),
            payment_time: Some(payment_time),
            ..wanted
        };
        let (currency, minimum_fee) = (pricing.currency, pricing.minimum_fee);
        Some(Self { wanted, currency, minimum_fee, items, aggregations: catalog.usage.clone(), entity, payment_time })
    }

    pub(crate) fn meters(&self, usage: usize) -> bool {
        self.items.iter().filter_map(usage_of).any(|metered| metered.usage == usage)
    }

    /// The whole period around a day, between two boundaries counted from the anchor.
    fn nominal(&self, day: Date) -> (Date, Date) {
        let (unit, count) = self.wanted.cycle.expect("filled in");
        let months = i64::from(count)
            * match unit {
                CycleUnit::OneTime => return (self.wanted.start, self.wanted.end),
                CycleUnit::Monthly => 1,
                CycleUnit::Quarterly => 3,
                CycleUnit::Yearly => 12,
            };
        let anchor = self.wanted.issue_day.unwrap_or(self.wanted.end);
        let boundaries = (-60..60).map(|k| plus_months(anchor, k * months));
        let pairs = boundaries.clone().zip(boundaries.skip(1));
        pairs.into_iter().find(|(from, to)| *from <= day && day < *to).expect("a boundary on either side")
    }
}

pub(crate) fn usage_of(item: &ItemSpec) -> Option<&UsageSpec> {
    match &item.charge {
        ChargeSpec::Usage(usage) => Some(usage),
        ChargeSpec::Flat { .. } => None,
    }
}

/// From a day on: terms, or nothing any more.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) from: Date,
    pub(crate) terms: Option<Terms>,
}

#[derive(Clone, Debug)]
pub(crate) struct Period {
    /// Which segment's terms.
    pub(crate) segment: usize,
    pub(crate) start: Date,
    pub(crate) end: Date,
    pub(crate) of_days: i64,
    pub(crate) is_first: bool,
}

impl Period {
    pub(crate) fn share(&self) -> (i64, i64) {
        (days_between(self.start, self.end), self.of_days)
    }

    pub(crate) fn contains(&self, day: Date) -> bool {
        self.start <= day && day < self.end
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) no: u16,
    pub(crate) segments: Vec<Segment>,
    pub(crate) is_removed: bool,
    pub(crate) periods: Vec<Period>,
}

impl Product {
    pub(crate) fn new(no: u16, terms: Terms) -> Self {
        let from = terms.wanted.start;
        let mut product =
            Self { no, segments: vec![Segment { from, terms: Some(terms) }], is_removed: false, periods: Vec::new() };
        product.count_periods();
        product
    }

    /// Lists every period of every version within its time in force.
    pub(crate) fn count_periods(&mut self) {
        let mut periods = Vec::new();
        for (segment, Segment { from, terms }) in self.segments.iter().enumerate() {
            let Some(terms) = terms else { continue };
            let until = self.segments[segment + 1..].iter().map(|later| later.from).min().unwrap_or(Date::MAX);
            let mut day = (*from).max(terms.wanted.start);
            let last = terms.wanted.end.min(until);
            while day < last {
                let (start, end) = terms.nominal(day);
                let end_here = end.min(last);
                let of_days = days_between(start, end);
                periods.push(Period { segment, start: day, end: end_here, of_days, is_first: periods.is_empty() });
                day = end_here;
            }
        }
        self.periods = periods;
    }

    pub(crate) fn end_from(&mut self, from: Date) {
        self.segments.push(Segment { from, terms: None });
        self.count_periods();
    }

    pub(crate) fn terms_of(&self, period: &Period) -> &Terms {
        self.segments[period.segment].terms.as_ref().expect("a billed period")
    }

    pub(crate) fn newest_terms(&self) -> &Terms {
        self.segments.iter().rev().find_map(|segment| segment.terms.as_ref()).expect("terms")
    }

    pub(crate) fn period_at(&self, day: Date) -> Option<&Period> {
        self.periods.iter().find(|period| period.contains(day))
    }

    pub(crate) fn first_day(&self) -> Option<Date> {
        self.periods.first().map(|period| period.start)
    }

    pub(crate) fn end(&self) -> Option<Date> {
        self.periods.last().map(|period| period.end)
    }

    /// The first day of a change made today (billing rules 7).
    pub(crate) fn change_from(&self, new_start: Date, today: Date, current: bool) -> Date {
        let (Some(first), Some(end)) = (self.first_day(), self.end()) else { return new_start };
        if today < first {
            return first.min(new_start);
        }
        match self.period_at(today) {
            Some(period) if current => period.start,
            Some(period) => period.end,
            None => self.periods.iter().map(|period| period.start).find(|start| *start > today).unwrap_or(end),
        }
    }

    /// The first day without the product when it is ended today; `None` when it never had a day.
    pub(crate) fn end_of_life(&self, today: Date, current: bool) -> Option<Date> {
        let (first, end) = (self.first_day()?, self.end()?);
        Some(if today < first {
            first
        } else if today >= end {
            end
        } else {
            match self.period_at(today) {
                Some(period) if !current => period.end,
                Some(_) | None => plus(today, 1),
            }
        })
    }

    /// Where the usage of a period is billed: on which period's document, and which of its documents.
    pub(crate) fn usage_slot(&self, index: usize) -> (usize, Slot) {
        let period = &self.periods[index];
        let terms = self.terms_of(period);
        match terms.payment_time {
            PaymentTime::AfterUse => (index, Slot::Period),
            PaymentTime::BeforeUse => (index, Slot::UsageDebit),
            PaymentTime::DuringUse => {
                let goes_on = self.periods.get(index + 1).map(|next| self.terms_of(next)).is_some_and(|next| {
                    next.payment_time == PaymentTime::DuringUse && next.entity == terms.entity && next.currency == terms.currency
                });
                if goes_on { (index + 1, Slot::Period) } else { (index, Slot::Closing) }
            }
        }
    }

    /// The day a document may be issued on.
    pub(crate) fn issue_day(&self, index: usize, slot: Slot) -> Date {
        let period = &self.periods[index];
        let terms = self.terms_of(period);
        let natural = if slot == Slot::Period && terms.payment_time != PaymentTime::AfterUse { period.start } else { period.end };
        terms.wanted.issue_day.map_or(natural, |day| day.max(natural))
    }
}
