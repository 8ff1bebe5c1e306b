//! The terms of a product by day, and the segments that record them in a new version.
//!
//! A product under construction has one segment for each day on which its terms change, without duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::Amendment;
use crate::calendar::Period;
use crate::contract::terms::{ProductTerms, SelectedCharge, SelectedLineItem};
use crate::contract::{Contract, ContractProduct, EndReason, Segment, SegmentTerms, TermsInterval};
use crate::refs::ProductNo;

/// A builder of the next version.
pub(super) struct VersionBuilder {
    pub(super) contract: Contract,
    /// The reason for products that end in this version.
    ends: EndReason,
    pub(super) since: BTreeMap<ProductNo, NaiveDate>,
    pub(super) restructured: BTreeMap<ProductNo, NaiveDate>,
}

impl VersionBuilder {
    pub(super) fn of(contract: &Contract, ends: EndReason) -> Self {
        let contract = Contract { version: contract.version + 1, ..contract.clone() };
        Self { contract, ends, since: BTreeMap::new(), restructured: BTreeMap::new() }
    }

    /// Records the differences between a product's current and new terms in the new version. `otherwise` is the date of
    /// the change if no billed day changes.
    pub(super) fn put(&mut self, next: &ContractProduct, otherwise: NaiveDate) {
        let version = self.contract.version;
        let Some(product) = self.contract.products.iter_mut().find(|product| product.no == next.no) else { return };
        let (was, is) = (present(product), as_of(next, u32::MAX));
        let same = was.segments.iter().zip(&is.segments).take_while(|(was, is)| was == is).count();
        let mut segments = is.segments[same..].to_vec();
        // Repeat the preceding segment in the new version. Otherwise the replaced segment would stay in force until the
        // first new segment.
        if let Some(first) = was.segments.get(same).map(|first| first.in_force_from)
            && segments.first().is_none_or(|next| first < next.in_force_from)
        {
            let nothing = Segment { version, in_force_from: first, agreed: SegmentTerms::Ended(self.ends) };
            segments.insert(0, same.checked_sub(1).map_or(nothing, |before| was.segments[before].clone()));
        }
        if segments.is_empty() {
            return;
        }
        product.segments.extend(segments.into_iter().map(|segment| Segment { version, ..segment }));
        self.since.insert(next.no, first_change(&was.plan(), &is.plan()).unwrap_or(otherwise));
    }

    /// Returns the amendment. The contract is unchanged if neither its products nor its own fields changed.
    pub(super) fn done(self, before: &Contract) -> Amendment {
        let unchanged = Contract { version: before.version, ..self.contract.clone() } == *before;
        let contract = if unchanged { before.clone() } else { self.contract };
        Amendment { contract, since: self.since, restructured: self.restructured }
    }
}

/// Returns the product with the current terms.
pub(super) fn present(product: &ContractProduct) -> ContractProduct {
    as_of(product, u32::MAX)
}

/// Returns the product with the terms as of a version.
pub(super) fn as_of(product: &ContractProduct, version: u32) -> ContractProduct {
    let mut segments: Vec<Segment> = Vec::new();
    let end = |in_force_from| Segment { version: 0, in_force_from, agreed: SegmentTerms::Ended(EndReason::Removed) };
    for segment in product.chain_of(version) {
        match (segments.last().map(|before| &before.agreed), &segment.agreed) {
            (None | Some(SegmentTerms::Ended(_)), SegmentTerms::Ended(_)) => continue,
            (Some(SegmentTerms::Billed(before)), SegmentTerms::Billed(terms)) => {
                if before == terms {
                    continue;
                }
                // Older versions did not record gaps between billed days.
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

/// Removes the days from `end` on from a product. An end on the last day is recorded, too.
pub(super) fn cut(product: &ContractProduct, end: NaiveDate, reason: EndReason) -> ContractProduct {
    let mut next = present(product);
    if product.billed().is_some_and(|billed| end <= billed.end()) {
        next.segments.retain(|segment| segment.in_force_from < end);
        let in_force_from = take_end(&mut next).unwrap_or(end);
        next.segments.push(Segment { version: 0, in_force_from, agreed: SegmentTerms::Ended(reason) });
    }
    next
}

/// Removes the end segment of a product, so that the product ends with its terms. Returns the date of the removed
/// segment.
pub(super) fn take_end(product: &mut ContractProduct) -> Option<NaiveDate> {
    let last = product.segments.pop_if(|last| matches!(last.agreed, SegmentTerms::Ended(_)))?;
    Some(last.in_force_from)
}

/// Restores a product to the state before an edit removed it. Terms up to the end of the product stay. Later terms follow
/// the previous plan, with the quantities and notes agreed since.
pub(super) fn before_removal(product: &ContractProduct) -> ContractProduct {
    let versions = product.segments.iter().rev().map(|segment| as_of(product, segment.version.saturating_sub(1)));
    let planned =
        versions.into_iter().find(|planned| matches!(planned.segments.last(), Some(last) if last.agreed.terms().is_some()));
    let mut base = present(product);
    let end = take_end(&mut base);
    let (Some(planned), Some(end), Some(agreed)) = (&planned, end, base.newest_terms().cloned()) else {
        return planned.unwrap_or(base);
    };
    let was = planned.segments.iter().rfind(|segment| segment.in_force_from < end).and_then(|was| was.agreed.terms());
    let at_end = planned.segments.iter().rfind(|segment| segment.in_force_from <= end).into_iter();
    for segment in at_end.chain(planned.segments.iter().filter(|segment| segment.in_force_from > end)) {
        let mut segment = Segment { in_force_from: segment.in_force_from.max(end), ..segment.clone() };
        if let Some(terms) = segment.agreed.terms_mut() {
            keep_timeless(terms, &agreed, was);
        }
        base.segments.push(segment);
    }
    present(&base)
}

/// Adds a gap to a product: billing stops on `end` and resumes on `again`, with the terms agreed until then, also where the
/// product was to end.
pub(super) fn interrupted(product: &ContractProduct, end: NaiveDate, again: NaiveDate) -> ContractProduct {
    let is_agreed = |segment: &&Segment| segment.in_force_from <= again && segment.agreed.terms().is_some();
    let agreed = product.segments.iter().rfind(is_agreed).map(|segment| segment.agreed.clone());
    let later = product.segments.iter().filter(|segment| segment.in_force_from > again).cloned();
    let mut segments: Vec<Segment> = product.segments.iter().filter(|segment| segment.in_force_from < end).cloned().collect();
    segments.push(Segment { version: 0, in_force_from: end, agreed: SegmentTerms::Ended(EndReason::Removed) });
    segments.extend(agreed.map(|agreed| Segment { version: 0, in_force_from: again, agreed }));
    segments.extend(later);
    present(&ContractProduct { no: product.no, segments })
}

/// Copies the values that do not depend on a day from agreed terms. Copies only the quantities that changed.
fn keep_timeless(terms: &mut ProductTerms, agreed: &ProductTerms, was: Option<&ProductTerms>) {
    for item in Arc::make_mut(&mut terms.line_items) {
        let before = was.and_then(|was| was.line_item(&item.id));
        if let Some(agreed) = agreed.line_item(&item.id).filter(|agreed| before != Some(agreed)) {
            *item = keeping_quantities(item.clone(), agreed);
        }
    }
    terms.note.clone_from(&agreed.note);
    terms.buyer_reference.clone_from(&agreed.buyer_reference);
    terms.net_terms = agreed.net_terms;
    terms.payment.clone_from(&agreed.payment);
}

/// Returns the current line item with the agreed quantities.
pub(super) fn keeping_quantities(mut now: SelectedLineItem, agreed: &SelectedLineItem) -> SelectedLineItem {
    if let (SelectedCharge::Fixed { quantities, .. }, SelectedCharge::Fixed { quantities: kept, .. }) =
        (&mut now.charge, &agreed.charge)
    {
        *quantities = kept.clone();
    }
    now
}

/// Returns the first day whose billing differs: by terms, by quantity, or because billing stops or starts on the day.
fn first_change(was: &[TermsInterval<'_>], is: &[TermsInterval<'_>]) -> Option<NaiveDate> {
    let (old, new) = (timed(was), timed(is));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    match (old.get(same), new.get(same)) {
        (Some((old, was)), Some((new, is))) if old == new && was.start() == is.start() => Some(was.end().min(is.end())),
        (old, new) => old.into_iter().chain(new).map(|(_, days)| days.start()).min(),
    }
}

/// Returns the billed intervals of a plan, without settings that only affect future documents. Merges adjacent intervals
/// with equal terms and quantities.
fn timed(plan: &[TermsInterval<'_>]) -> Vec<(ProductTerms, Period)> {
    let mut timed: Vec<(ProductTerms, Period)> = Vec::new();
    for clip in plan {
        let steps = clip.terms.line_items.iter().flat_map(SelectedLineItem::steps).map(|step| step.from);
        let begins: BTreeSet<NaiveDate> = steps.filter(|day| clip.days.contains(*day)).chain([clip.days.start()]).collect();
        let ends = begins.iter().skip(1).copied().chain([clip.days.end()]);
        for days in begins.iter().zip(ends).filter_map(|(from, until)| Period::new(*from, until)) {
            let terms = clip.terms.clone().billed_on(days.start());
            match timed.last_mut() {
                Some((before, whole)) if *before == terms && whole.end() == days.start() => {
                    *whole = Period::new(whole.start(), days.end()).unwrap_or(*whole);
                }
                _ => timed.push((terms, days)),
            }
        }
    }
    timed
}
