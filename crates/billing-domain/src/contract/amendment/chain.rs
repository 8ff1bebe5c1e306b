//! What holds for a product from day to day, and the segments by which a new version says so. A product in the making has
//! one segment for each day on which its terms change, and none of them twice.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::Amendment;
use crate::calendar::Period;
use crate::contract::terms::{ProductTerms, Quantities, SelectedCharge, SelectedLineItem};
use crate::contract::{Agreed, Clip, Contract, ContractProduct, EndReason, Segment};
use crate::party::PaymentDetails;
use crate::refs::ProductNo;

/// The next version in the making.
pub(super) struct Draft {
    pub(super) contract: Contract,
    /// Why what ends by it ends.
    ends: EndReason,
    pub(super) since: BTreeMap<ProductNo, NaiveDate>,
    pub(super) restructured: BTreeMap<ProductNo, NaiveDate>,
}

impl Draft {
    pub(super) fn of(contract: &Contract, ends: EndReason) -> Self {
        let contract = Contract { version: contract.version + 1, ..contract.clone() };
        Self { contract, ends, since: BTreeMap::new(), restructured: BTreeMap::new() }
    }

    /// Lets the new version say of a product what differs from what it has. `otherwise` is the day of a change that bills no
    /// day otherwise.
    pub(super) fn put(&mut self, next: &ContractProduct, otherwise: NaiveDate) {
        let version = self.contract.version;
        let Some(product) = self.contract.products.iter_mut().find(|product| product.no == next.no) else { return };
        let (was, is) = (present(product), as_of(next, u32::MAX));
        let same = was.segments.iter().zip(&is.segments).take_while(|(was, is)| was == is).count();
        let mut said = is.segments[same..].to_vec();
        // What was said for the days before it goes on where it isn't taken back.
        if let Some(first) = was.segments.get(same).map(|first| first.in_force_from)
            && said.first().is_none_or(|next| first < next.in_force_from)
        {
            let agreed = same.checked_sub(1).map_or(Agreed::Ended(self.ends), |before| was.segments[before].agreed.clone());
            said.insert(0, Segment { version, in_force_from: first, agreed });
        }
        if said.is_empty() {
            return;
        }
        product.segments.extend(said.into_iter().map(|segment| Segment { version, ..segment }));
        self.since.insert(next.no, first_change(&was.plan(), &is.plan()).unwrap_or(otherwise));
    }

    /// The amendment; nothing has changed where neither the products nor what is above them did.
    pub(super) fn done(self, before: &Contract) -> Amendment {
        let Self { contract, since, restructured, .. } = self;
        let unchanged = Contract { version: before.version, ..contract.clone() } == *before;
        Amendment { contract: if unchanged { before.clone() } else { contract }, since, restructured }
    }
}

/// The product with what holds now.
pub(super) fn present(product: &ContractProduct) -> ContractProduct {
    as_of(product, u32::MAX)
}

/// The product with what held as a version had it.
pub(super) fn as_of(product: &ContractProduct, version: u32) -> ContractProduct {
    let mut segments: Vec<Segment> = Vec::new();
    let end = |in_force_from| Segment { version: 0, in_force_from, agreed: Agreed::Ended(EndReason::Removed) };
    for segment in product.chain_of(version) {
        match (segments.last().map(|before| &before.agreed), &segment.agreed) {
            (None | Some(Agreed::Ended(_)), Agreed::Ended(_)) => continue,
            (Some(Agreed::Billed(before)), Agreed::Billed(terms)) => {
                if before == terms {
                    continue;
                }
                // Days between that aren't billed were once left unsaid.
                let until = before.schedule.range().end();
                if until < segment.in_force_from && segment.in_force_from < terms.schedule.range().end() {
                    segments.push(end(until));
                }
            }
            _ => {}
        }
        segments.push(Segment { version: 0, ..segment.clone() });
    }
    ContractProduct { no: product.no, segments }
}

/// The product without the days from one on.
pub(super) fn cut(product: &ContractProduct, end: NaiveDate, reason: EndReason) -> ContractProduct {
    let mut next = present(product);
    if product.billed().is_some_and(|billed| end < billed.end()) {
        next.segments.retain(|segment| segment.in_force_from < end);
        let in_force_from = take_end(&mut next).unwrap_or(end);
        next.segments.push(Segment { version: 0, in_force_from, agreed: Agreed::Ended(reason) });
    }
    next
}

/// Takes back that a product ends otherwise than its terms do; returns the day it ended on.
fn take_end(product: &mut ContractProduct) -> Option<NaiveDate> {
    let last = product.segments.pop_if(|last| matches!(last.agreed, Agreed::Ended(_)))?;
    Some(last.in_force_from)
}

/// The product as if no edit had left it out: as it is to its end, then as it was planned before, in the quantities agreed
/// since.
pub(super) fn before_removal(product: &ContractProduct) -> ContractProduct {
    let versions = product.segments.iter().rev().map(|segment| as_of(product, segment.version.saturating_sub(1)));
    let planned = versions.into_iter().find(|planned| matches!(planned.segments.last(), Some(last) if last.agreed.terms().is_some()));
    let mut base = present(product);
    let end = take_end(&mut base);
    let (Some(planned), Some(end), Some(agreed)) = (&planned, end, base.newest_terms().cloned()) else {
        return planned.unwrap_or(base);
    };
    let at_end = planned.segments.iter().rfind(|segment| segment.in_force_from <= end).into_iter();
    for segment in at_end.chain(planned.segments.iter().filter(|segment| segment.in_force_from > end)) {
        let mut segment = Segment { in_force_from: segment.in_force_from.max(end), ..segment.clone() };
        for item in segment.agreed.terms_mut().into_iter().flat_map(|terms| &mut terms.line_items) {
            if let Some(agreed) = agreed.line_item(&item.id) {
                *item = keeping_quantities(item.clone(), agreed);
            }
        }
        base.segments.push(segment);
    }
    present(&base)
}

/// The product with days left out that bills again from the second day on.
pub(super) fn interrupted(product: &ContractProduct, end: NaiveDate, again: NaiveDate) -> ContractProduct {
    let agreed = product.segments.iter().rfind(|segment| segment.in_force_from <= again).map(|segment| segment.agreed.clone());
    let later = product.segments.iter().filter(|segment| segment.in_force_from > again).cloned();
    let mut segments: Vec<Segment> = product.segments.iter().filter(|segment| segment.in_force_from < end).cloned().collect();
    segments.push(Segment { version: 0, in_force_from: end, agreed: Agreed::Ended(EndReason::Removed) });
    segments.extend(agreed.map(|agreed| Segment { version: 0, in_force_from: again, agreed }));
    segments.extend(later);
    present(&ContractProduct { no: product.no, segments })
}

/// A line item as it is priced now, in the quantities that were agreed.
pub(super) fn keeping_quantities(mut now: SelectedLineItem, agreed: &SelectedLineItem) -> SelectedLineItem {
    if let (SelectedCharge::Fixed { quantities, .. }, SelectedCharge::Fixed { quantities: kept, .. }) =
        (&mut now.charge, &agreed.charge)
    {
        *quantities = kept.clone();
    }
    now
}

/// The first day on which a plan bills otherwise than another: other terms, other days, or another quantity.
fn first_change(was: &[Clip<'_>], is: &[Clip<'_>]) -> Option<NaiveDate> {
    let (timed_was, timed_is) = (timed(was), timed(is));
    let same = timed_was.iter().zip(&timed_is).take_while(|(was, is)| was == is).count();
    let by_terms = match (timed_was.get(same), timed_is.get(same)) {
        (Some((was, old)), Some((is, new))) if was == is && old.start() == new.start() => Some(old.end().min(new.end())),
        (Some((_, was)), Some((_, is))) => Some(was.start().min(is.start())),
        (Some((_, only)), None) | (None, Some((_, only))) => Some(only.start()),
        (None, None) => None,
    };
    let mut by_steps: Vec<NaiveDate> = Vec::new();
    for was in was {
        for is in is {
            let Some(days) = was.days.intersection(is.days) else { continue };
            by_steps
                .extend(first_step_changed(was.terms, is.terms).filter(|day| *day < days.end()).map(|day| day.max(days.start())));
        }
    }
    by_terms.into_iter().chain(by_steps).min()
}

/// A plan of stripped terms, those that are the same joined.
fn timed(plan: &[Clip<'_>]) -> Vec<(ProductTerms, Period)> {
    let mut timed: Vec<(ProductTerms, Period)> = Vec::new();
    for clip in plan {
        let mut terms = clip.terms.clone();
        strip(&mut terms);
        match timed.last_mut() {
            Some((before, days)) if *before == terms && days.end() == clip.days.start() => {
                *days = Period::new(days.start(), clip.days.end()).unwrap_or(*days);
            }
            _ => timed.push((terms, clip.days)),
        }
    }
    timed
}

/// The first day on which a line item that both terms have has another quantity.
fn first_step_changed(was: &ProductTerms, is: &ProductTerms) -> Option<NaiveDate> {
    let changed = was.line_items.iter().filter_map(|item| {
        let (SelectedCharge::Fixed { quantities: a, .. }, SelectedCharge::Fixed { quantities: b, .. }) =
            (&item.charge, &is.line_item(&item.id)?.charge)
        else {
            return None;
        };
        let (a, b) = (a.as_slice(), b.as_slice());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        [a.get(same), b.get(same)].into_iter().flatten().map(|step| step.from).min()
    });
    changed.min()
}

/// Terms without what holds by its own dates, or for documents that aren't there yet.
fn strip(terms: &mut ProductTerms) {
    for item in &mut terms.line_items {
        if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
            *quantities = Quantities::default();
        }
    }
    terms.note = None;
    terms.buyer_reference = None;
    terms.net_terms = None;
    terms.payment = PaymentDetails::default();
    terms.schedule = terms.schedule.endless();
}

