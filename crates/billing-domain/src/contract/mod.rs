//! Contracts: chains of immutable versions, each in force from a date (billing rules 7).
//!
//! Prices are applied in [`rating`](crate::rating), documents are in [`document`](crate::document).

pub mod amendment;
pub mod quantities;
pub mod resolve;
pub mod schedule;
pub mod selection;
pub mod terms;

use chrono::NaiveDate;

use crate::calendar::{Period, TimeZone, Timestamp};
use crate::metadata::Metadata;
use crate::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, EntityRef, LineItemId, OrganizationId, PricingRef, ProductNo,
};
use crate::text::OneLine;
use crate::usage::{ReportData, UsageEvent, UsageKey};
use crate::violation::Violations;
use schedule::BillingPeriod;
use selection::Uncounted;
use terms::ProductTerms;

/// The maximum number of products of a contract.
pub const MAX_PRODUCTS: usize = 100;

/// A contract with all its versions. It states the products that a customer is billed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The reference, assigned by the service.
    pub contract_ref: ContractRef,
    /// The contract number, counted per organization from 1.
    pub number: u64,
    /// The customer's ID in the store.
    pub customer_id: CustomerId,
    /// The customer's reference, chosen by the caller.
    pub customer_ref: CustomerRef,
    /// The purchase order number.
    pub po_number: Option<OneLine>,
    /// The metadata.
    pub metadata: Metadata,
    /// The newest version, counted from 1.
    pub version: u32,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the newest version.
    pub updated_at: Timestamp,
    /// The time of cancellation.
    pub cancelled_at: Option<Timestamp>,
    /// Whether the customer may have limits (billing rules 11).
    pub is_watched: bool,
    /// The products in their order, including ended products.
    pub products: Vec<ContractProduct>,
}

/// One product of a contract with all its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractProduct {
    /// The product number. It never changes.
    pub no: ProductNo,
    /// The segments of all versions, oldest version first, by date within a version. From its date on, a segment replaces
    /// all earlier elements of the list.
    pub segments: Vec<Segment>,
}

/// The terms of a product from a date until the date of the next segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The contract version that added the segment.
    pub version: u32,
    /// The first day in force, as agreed. Terms that follow other terms take effect with a period: see [`ContractProduct::plan`].
    pub in_force_from: NaiveDate,
    /// The agreed terms.
    pub agreed: SegmentTerms,
}

/// The content of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentTerms {
    /// The product is billed on these terms.
    Billed(Box<ProductTerms>),
    /// The product is no longer billed, because the contract was canceled or an edit removed the product.
    Ended(EndReason),
}

impl SegmentTerms {
    /// Returns the terms, or `None` if the product is not billed.
    pub fn terms(&self) -> Option<&ProductTerms> {
        match self {
            Self::Billed(terms) => Some(terms),
            Self::Ended(_) => None,
        }
    }

    fn terms_mut(&mut self) -> Option<&mut ProductTerms> {
        match self {
            Self::Billed(terms) => Some(terms),
            Self::Ended(_) => None,
        }
    }
}

/// The reason why a product is no longer billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The contract was canceled.
    Cancelled,
    /// An edit removed the product.
    Removed,
}

/// The state of a contract on a day (billing rules 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractState {
    /// The first day is in the future.
    Pending,
    /// The contract bills.
    Active,
    /// The contract is canceled, but its last period still bills.
    Cancelling,
    /// The contract is canceled and its last day has passed.
    Cancelled,
    /// The last day has passed without a cancellation.
    Completed,
}

/// An interval of a product's plan in which one set of terms is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermsInterval<'c> {
    /// The terms.
    pub terms: &'c ProductTerms,
    /// The days of the interval.
    pub days: Period,
    /// The reason why the interval ends before its terms do, if no other terms follow.
    pub cut: Option<EndReason>,
}

/// A billing period with the terms in force.
#[derive(Clone, Copy, Debug)]
pub struct ProductPeriod<'c> {
    /// The product number.
    pub product_no: ProductNo,
    /// The product.
    pub product: &'c ContractProduct,
    /// The terms in force.
    pub terms: &'c ProductTerms,
    /// The days of the period.
    pub period: BillingPeriod,
}

impl PartialEq for ProductPeriod<'_> {
    /// Compares periods of the same contract by product, days and terms.
    fn eq(&self, other: &Self) -> bool {
        self.product_no == other.product_no && self.period == other.period && self.terms == other.terms
    }
}

impl Eq for ProductPeriod<'_> {}

impl ProductPeriod<'_> {
    /// Returns the billed days.
    pub const fn days(&self) -> Period {
        self.period.span()
    }

    /// Returns the first billed day. It identifies the period within its product.
    pub const fn start(&self) -> NaiveDate {
        self.period.span().start()
    }
}

impl Contract {
    /// Returns the key of the contract in an organization.
    pub const fn key(&self, organization: OrganizationId) -> ContractKey {
        ContractKey { organization, customer: self.customer_id, contract: self.contract_ref }
    }

    /// Returns the display form of the contract number.
    pub fn number_text(&self) -> String {
        format!("C-{}", self.number)
    }

    /// Parses the display form of a contract number. Returns `None` for any other text.
    pub fn read_number(text: &str) -> Option<u64> {
        let number: u64 = text.strip_prefix("C-")?.parse().ok()?;
        (number > 0 && format!("C-{number}") == text).then_some(number)
    }

    /// Returns the state at an instant in a time zone.
    pub fn state(&self, zone: TimeZone, now: Timestamp) -> ContractState {
        self.state_on(zone.service_date(now))
    }

    /// Returns the state on a day.
    pub fn state_on(&self, today: NaiveDate) -> ContractState {
        let start = self.starts_on();
        let over = match self.effective_end_date() {
            Some(last) => today > last,
            // A canceled contract without a billed day is over. A contract that never had products is not.
            None => self.cancelled_at.is_some(),
        };
        match (self.cancelled_at, over) {
            (Some(_), true) => ContractState::Cancelled,
            (Some(_), false) => ContractState::Cancelling,
            (None, true) => ContractState::Completed,
            (None, false) if start.is_some_and(|start| today < start) => ContractState::Pending,
            (None, false) => ContractState::Active,
        }
    }

    /// Returns the earliest first day of the products.
    pub fn starts_on(&self) -> Option<NaiveDate> {
        self.products.iter().filter_map(|product| product.billed().map(Period::start)).min()
    }

    /// Returns the entity whose time zone determines the state: the entity of the first product.
    pub fn stating_entity(&self) -> Option<&EntityRef> {
        self.products.first().and_then(|product| product.newest_terms()).map(|terms| &terms.entity_ref)
    }

    /// Returns the latest last day of the products.
    pub fn effective_end_date(&self) -> Option<NaiveDate> {
        self.products.iter().filter_map(|product| product.billed().map(Period::last_day)).max()
    }

    /// Returns the earliest first day of any product in any version.
    pub fn first_day(&self) -> Option<NaiveDate> {
        let starts = self.products.iter().flat_map(|product| &product.segments).map(|segment| segment.in_force_from);
        starts.min()
    }

    /// Returns whether another contract bills the same pricings with the same `where` over the same days, in any order. A contract that bills nothing
    /// is never the same.
    pub fn bills_same_products(&self, other: &Self) -> bool {
        let billed = |contract: &Self| {
            let of_product = |product: &ContractProduct| {
                let days = product.billed()?;
                let terms = product.newest_terms()?;
                Some((terms.pricing.pricing_ref.clone(), terms.condition.clone(), days.start(), days.last_day()))
            };
            let mut billed: Vec<_> = contract.products.iter().filter_map(of_product).collect();
            billed.sort();
            billed
        };
        let own = billed(self);
        !own.is_empty() && own == billed(other)
    }

    /// Returns the product and the first day of the period that bills a `ONCE` line item of a pricing. This is the first
    /// period in which any product of the contract has the line item (billing rules 6).
    pub fn once_billed_in(&self, pricing: &PricingRef, item: &LineItemId) -> Option<(NaiveDate, ProductNo)> {
        let has_item =
            |clip: &TermsInterval<'_>| clip.terms.pricing.pricing_ref == *pricing && clip.terms.line_item(item).is_some();
        let first =
            |product: &ContractProduct| product.plan().into_iter().find(has_item).map(|clip| (clip.days.start(), product.no));
        self.products.iter().filter_map(first).min()
    }

    /// Returns the key of the running total that counts an event, by the terms in force in its period and its labels.
    ///
    /// # Errors
    /// Returns [`Uncounted`] if the terms don't count the event.
    pub fn usage_key(&self, event: &UsageEvent) -> Result<UsageKey, Uncounted> {
        self.counting_key(&event.period_key(), event.report_data.as_ref())
    }

    /// Returns the line items that count an event, in the order of the contract.
    pub fn line_items_of(&self, event: &UsageEvent) -> Vec<LineItemId> {
        let Ok(key) = self.usage_key(event) else { return Vec::new() };
        let period = self.period_of(&key);
        period.into_iter().flat_map(|period| period.terms.rated_by(&key)).map(|(item, _)| item.id.clone()).collect()
    }

    /// Returns the key of the running total that counts events with these labels in a period.
    ///
    /// # Errors
    /// Returns [`Uncounted`] if the terms don't count such events.
    pub fn counting_key(&self, period_key: &UsageKey, labels: Option<&ReportData>) -> Result<UsageKey, Uncounted> {
        let period = self.period_of(period_key).ok_or(Uncounted::NotMetered)?;
        Ok(period_key.of_line_item(period.terms.select(&period_key.usage_product_ref, labels)?))
    }

    /// Returns the period of a running total.
    pub fn period_of(&self, key: &UsageKey) -> Option<ProductPeriod<'_>> {
        self.period_from(key.product_no, key.period_start)
    }

    /// Returns the period of a product that starts on a day.
    pub fn period_from(&self, no: ProductNo, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.product(no)?.period_from(start)
    }

    /// Returns a product by number.
    pub fn product(&self, no: ProductNo) -> Option<&ContractProduct> {
        self.products.iter().find(|product| product.no == no)
    }

    /// Returns the entities that bill the products in any version.
    pub fn entity_refs(&self) -> impl Iterator<Item = &EntityRef> {
        self.products.iter().flat_map(|product| product.terms()).map(|terms| &terms.entity_ref)
    }
}

impl ContractProduct {
    /// Creates a product of a new contract, in force from its first day.
    pub fn new(no: ProductNo, terms: ProductTerms) -> Self {
        let in_force_from = terms.schedule.range().start();
        Self { no, segments: vec![Segment { version: 1, in_force_from, agreed: SegmentTerms::Billed(Box::new(terms)) }] }
    }

    /// Returns the newest terms. For an ended product, these are its last terms.
    pub fn newest_terms(&self) -> Option<&ProductTerms> {
        self.terms().last()
    }

    /// Returns whether both products have one pricing on the same day, where an event could meet the `where` of both.
    pub fn bills_twice_with(&self, other: &Self) -> bool {
        let (own, theirs) = (self.plan(), other.plan());
        let is_apart = |a: &ProductTerms, b: &ProductTerms| {
            a.condition.as_ref().zip(b.condition.as_ref()).is_some_and(|(a, b)| a.is_disjoint(b))
        };
        own.iter().any(|a| {
            theirs.iter().any(|b| {
                a.terms.pricing.pricing_ref == b.terms.pricing.pricing_ref
                    && a.days.intersection(b.days).is_some()
                    && !is_apart(a.terms, b.terms)
            })
        })
    }

    /// Returns whether an edit removed the product.
    pub fn is_removed(&self) -> bool {
        matches!(self.segments.last(), Some(Segment { agreed: SegmentTerms::Ended(EndReason::Removed), .. }))
    }

    /// Returns the terms in force on a day. For a day without terms, returns the next terms, or else the last terms.
    pub fn terms_on(&self, date: NaiveDate) -> Option<&ProductTerms> {
        let plan = self.plan();
        let next = plan.iter().find(|clip| date < clip.days.end()).or(plan.last());
        next.map(|clip| clip.terms).or_else(|| self.newest_terms())
    }

    /// Returns all terms, oldest first.
    pub fn terms(&self) -> impl Iterator<Item = &ProductTerms> {
        self.segments.iter().filter_map(|segment| segment.agreed.terms())
    }

    /// Returns the range from the first to the last billed day, or `None` without a billed day.
    pub fn billed(&self) -> Option<Period> {
        let plan = self.plan();
        Period::new(plan.first()?.days.start(), plan.last()?.days.end())
    }

    /// Returns the period that bills a day.
    pub fn period_at(&self, date: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_in(&self.plan(), date)
    }

    /// Returns the period that starts on a day.
    pub fn period_from(&self, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_at(start).filter(|period| period.start() == start)
    }

    /// Returns the period that starts on a day in the plan of a version.
    pub fn period_from_in(&self, version: u32, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_in(&self.plan_of(version), start).filter(|period| period.start() == start)
    }

    fn period_in<'c>(&'c self, plan: &[TermsInterval<'c>], date: NaiveDate) -> Option<ProductPeriod<'c>> {
        let clip = plan.iter().find(|clip| clip.days.contains(date))?;
        let period = clip.terms.schedule.period_at(date)?.clip(clip.days)?;
        Some(ProductPeriod { product_no: self.no, product: self, terms: clip.terms, period })
    }

    /// Returns the first period.
    pub fn first_period(&self) -> Option<ProductPeriod<'_>> {
        self.billed().and_then(|billed| self.period_at(billed.start()))
    }

    /// Returns the next period after a day, across a gap if necessary.
    pub fn period_after(&self, end: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_after_in(&self.plan(), end)
    }

    fn period_after_in<'c>(&'c self, plan: &[TermsInterval<'c>], end: NaiveDate) -> Option<ProductPeriod<'c>> {
        let next = plan.iter().find(|clip| clip.days.end() > end)?;
        self.period_in(plan, next.days.start().max(end))
    }

    /// Returns the last period that ends on or before the start of a day.
    pub fn period_before(&self, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        let plan = self.plan();
        let last = plan.iter().rfind(|clip| clip.days.start() < start)?;
        self.period_in(&plan, last.days.end().min(start).pred_opt()?)
    }

    /// Returns all periods, first to last. Each period is computed lazily.
    pub fn periods(&self) -> impl Iterator<Item = ProductPeriod<'_>> {
        let plan = self.plan();
        let first = plan.first().and_then(|clip| self.period_in(&plan, clip.days.start()));
        std::iter::successors(first, move |period| self.period_after_in(&plan, period.days().end()))
    }

    /// Returns the plan of the newest version: the terms of each interval.
    pub fn plan(&self) -> Vec<TermsInterval<'_>> {
        self.plan_of(u32::MAX)
    }

    /// Returns the plan of a version: the terms of each interval.
    pub fn plan_of(&self, version: u32) -> Vec<TermsInterval<'_>> {
        let timeline = self.timeline_of(version);
        let until = timeline.iter().skip(1).map(|(from, _)| *from).chain([NaiveDate::MAX]);
        let mut plan: Vec<TermsInterval<'_>> = Vec::with_capacity(timeline.len());
        for ((from, segment), until) in timeline.iter().copied().zip(until) {
            if let Some(terms) = segment.agreed.terms()
                && let Some(in_force) = Period::new(from, until)
                && let Some(days) = terms.schedule.range().intersection(in_force)
            {
                plan.push(TermsInterval { terms, days, cut: None });
            }
        }
        if let Some(last) = plan.last_mut()
            && let Some((end, Segment { agreed: SegmentTerms::Ended(reason), .. })) = timeline.last().copied()
            && end == last.days.end()
            && last.days.end() < last.terms.schedule.range().end()
        {
            last.cut = Some(*reason);
        }
        plan
    }

    /// Returns the segments in force as of a version, each with the day on which it takes effect. Terms that follow other
    /// terms take effect with the first of their periods that begins on or after the agreed date, so no period is split. If a
    /// boundary moves, the change moves with it (billing rules 1.3). All other segments take effect on their date.
    fn timeline_of(&self, version: u32) -> Vec<(NaiveDate, &Segment)> {
        let mut timeline: Vec<(NaiveDate, &Segment)> = Vec::with_capacity(self.segments.len());
        for segment in self.chain_of(version) {
            let date = segment.in_force_from;
            let from = match timeline.last() {
                Some((since, Segment { agreed: SegmentTerms::Billed(before), .. })) if segment.agreed.terms().is_some() => {
                    if date > *since { before.schedule.period_start_from(date) } else { *since }
                }
                _ => date,
            };
            // A segment that never takes effect before the next one has no days.
            while timeline.pop_if(|(other, _)| *other >= from).is_some() {}
            timeline.push((from, segment));
        }
        timeline
    }

    /// Returns the segments in force as of a version, each until the date of the next segment. Segments after the last
    /// billed day belong to a plan with a later end.
    fn chain_of(&self, version: u32) -> Vec<&Segment> {
        let mut chain: Vec<&Segment> = Vec::with_capacity(self.segments.len());
        // From its date on, a newer segment replaces all older segments, including segments that start later.
        for segment in self.segments.iter().rev().filter(|segment| segment.version <= version) {
            if chain.last().is_none_or(|next| segment.in_force_from < next.in_force_from) {
                chain.push(segment);
            }
        }
        chain.reverse();
        chain
    }
}

/// Checks rules across products: the number of products, and that no pricing occurs twice on the same days, past or
/// future, unless both products have disjoint `where` (billing rules 7).
///
/// `named` returns the position of a product in the request.
///
/// # Errors
/// Returns every violation, with paths below the contract.
pub fn check_products(products: &[ContractProduct], named: impl Fn(ProductNo) -> Option<usize>) -> Result<(), Violations> {
    let mut found = Violations::none();
    if products.iter().filter(|product| !product.is_removed()).count() > MAX_PRODUCTS {
        found.add(&["products"], "too_many", format!("must have at most {MAX_PRODUCTS} elements"));
    }
    for (i, product) in products.iter().enumerate() {
        let twin = products[..i].iter().find(|other| other.bills_twice_with(product));
        if let Some(twin) = twin {
            let index = named(product.no).or_else(|| named(twin.no)).unwrap_or(i).to_string();
            found.add(
                &["products", &index, "product_pricing_ref"],
                "duplicate_product",
                "must not occur twice in the contract on the same days, including ended products, unless each has a where and no \
                 event can meet both",
            );
        }
    }
    found.or(())
}
