//! Contracts: a chain of immutable versions, each in force from a date (billing rules 7).
//! What they cost is [`rating`](crate::rating)'s and [`document`](crate::document)'s business.

pub mod amendment;
pub mod resolve;
pub mod schedule;
pub mod terms;

use chrono::NaiveDate;

use crate::calendar::{Period, TimeZone, Timestamp};
use crate::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, EntityRef, LineItemId, OrganizationId, PricingRef, ProductNo,
};
use crate::text::OneLine;
use crate::violation::Violations;
use schedule::BillingPeriod;
use terms::ProductTerms;

/// The most products of a contract.
pub const MAX_PRODUCTS: usize = 100;

/// A contract: what a customer is billed for, and everything it was ever agreed to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Assigned by the service.
    pub contract_ref: ContractRef,
    /// Counts the organization's contracts from 1.
    pub number: u64,
    /// The customer, for the store.
    pub customer_id: CustomerId,
    /// The customer, for people.
    pub customer_ref: CustomerRef,
    /// Purchase order number.
    pub po_number: Option<OneLine>,
    /// The newest version, counted from 1.
    pub version: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// Its products in their order, ended ones included.
    pub products: Vec<ContractProduct>,
}

/// One product of a contract through all versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractProduct {
    /// Kept for the contract's whole life.
    pub no: ProductNo,
    /// Versions of its terms, oldest first, of one version by date. From its date on, a segment takes the place of all
    /// before it.
    pub segments: Vec<Segment>,
}

/// What holds for a product from a date on, until the next segment's date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The contract version that brought it.
    pub version: u32,
    /// The first day it is in force.
    pub in_force_from: NaiveDate,
    /// What is agreed.
    pub agreed: SegmentTerms,
}

/// What a segment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentTerms {
    /// The product is billed on these terms.
    Billed(Box<ProductTerms>),
    /// Nothing is billed any more, because the contract was cancelled or an edit left the product out.
    Ended(EndReason),
}

impl SegmentTerms {
    /// The terms, of days that are billed.
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

/// Why a product is billed no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The contract was cancelled.
    Cancelled,
    /// An edit left the product out.
    Removed,
}

/// A contract's state on a day (billing rules 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractState {
    /// Not started.
    Pending,
    /// Billing.
    Active,
    /// Cancelled, its last period still bills.
    Cancelling,
    /// Cancelled and over.
    Cancelled,
    /// Over.
    Completed,
}

/// Days on which one set of terms holds: what a version's plan for a product is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermsInterval<'c> {
    /// The terms.
    pub terms: &'c ProductTerms,
    /// The days.
    pub days: Period,
    /// Why it ends before its terms do, where no other terms follow.
    pub cut: Option<EndReason>,
}

/// A billing period together with the terms in force in it.
#[derive(Clone, Copy, Debug)]
pub struct ProductPeriod<'c> {
    /// The product's number.
    pub product_no: ProductNo,
    /// The product.
    pub product: &'c ContractProduct,
    /// The terms in force.
    pub terms: &'c ProductTerms,
    /// The days.
    pub period: BillingPeriod,
}

impl PartialEq for ProductPeriod<'_> {
    /// Of one contract: a product's period with the same terms.
    fn eq(&self, other: &Self) -> bool {
        self.product_no == other.product_no && self.period == other.period && self.terms == other.terms
    }
}

impl Eq for ProductPeriod<'_> {}

impl ProductPeriod<'_> {
    /// The days billed.
    pub const fn days(&self) -> Period {
        self.period.span()
    }

    /// The first day billed, which names the period within its product.
    pub const fn start(&self) -> NaiveDate {
        self.period.span().start()
    }
}

impl Contract {
    /// What names it in a store, as an organization's.
    pub const fn key(&self, organization: OrganizationId) -> ContractKey {
        ContractKey { organization, customer: self.customer_id, contract: self.contract_ref }
    }

    /// Its number as people read it.
    pub fn number_text(&self) -> String {
        format!("C-{}", self.number)
    }

    /// Reads a number as people read it; `None` for anything else.
    pub fn read_number(text: &str) -> Option<u64> {
        let number: u64 = text.strip_prefix("C-")?.parse().ok()?;
        (number > 0 && format!("C-{number}") == text).then_some(number)
    }

    /// Its state at an instant, by a zone's calendar.
    pub fn state(&self, zone: TimeZone, now: Timestamp) -> ContractState {
        self.state_on(zone.service_date(now))
    }

    /// Its state on a day of the calendar that tells it.
    pub fn state_on(&self, today: NaiveDate) -> ContractState {
        let start = self.starts_on();
        let over = match self.effective_end_date() {
            Some(last) => today > last,
            // Without a billed day a cancelled contract is over; one that never had products isn't.
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

    /// The earliest first day of its products.
    pub fn starts_on(&self) -> Option<NaiveDate> {
        self.products.iter().filter_map(|product| product.billed().map(Period::start)).min()
    }

    /// The entity whose calendar tells its state: that of its first product.
    pub fn stating_entity(&self) -> Option<&EntityRef> {
        self.products.first().and_then(|product| product.newest_terms()).map(|terms| &terms.entity_ref)
    }

    /// The latest last day of its products.
    pub fn effective_end_date(&self) -> Option<NaiveDate> {
        self.products.iter().filter_map(|product| product.billed().map(Period::last_day)).max()
    }

    /// The first day any of its products was ever to bill, in any version.
    pub fn first_day(&self) -> Option<NaiveDate> {
        let starts = self.products.iter().flat_map(|product| &product.segments).map(|segment| segment.in_force_from);
        starts.min()
    }

    /// The product and the first day of the period that bills a `ONCE` line item of a pricing: the first in which the contract has
    /// it, whichever product that is of (billing rules 6).
    pub fn once_billed_in(&self, pricing: &PricingRef, item: &LineItemId) -> Option<(NaiveDate, ProductNo)> {
        let has_item =
            |clip: &TermsInterval<'_>| clip.terms.pricing.pricing_ref == *pricing && clip.terms.line_item(item).is_some();
        let first =
            |product: &ContractProduct| product.plan().into_iter().find(has_item).map(|clip| (clip.days.start(), product.no));
        self.products.iter().filter_map(first).min()
    }

    /// A product by its number.
    pub fn product(&self, no: ProductNo) -> Option<&ContractProduct> {
        self.products.iter().find(|product| product.no == no)
    }

    /// The entities its products are billed by, in any version.
    pub fn entity_refs(&self) -> impl Iterator<Item = &EntityRef> {
        self.products.iter().flat_map(|product| product.terms()).map(|terms| &terms.entity_ref)
    }
}

impl ContractProduct {
    /// A product as a new contract has it: in force from its first day.
    pub fn new(no: ProductNo, terms: ProductTerms) -> Self {
        let in_force_from = terms.schedule.range().start();
        Self { no, segments: vec![Segment { version: 1, in_force_from, agreed: SegmentTerms::Billed(Box::new(terms)) }] }
    }

    /// The newest terms; those of a product that has ended are its last.
    pub fn newest_terms(&self) -> Option<&ProductTerms> {
        self.terms().last()
    }

    /// Whether an edit left it out.
    pub fn is_removed(&self) -> bool {
        matches!(self.segments.last(), Some(Segment { agreed: SegmentTerms::Ended(EndReason::Removed), .. }))
    }

    /// The terms in force on a day; of a day without any, the next ones, or else the last.
    pub fn terms_on(&self, date: NaiveDate) -> Option<&ProductTerms> {
        let plan = self.plan();
        let next = plan.iter().find(|clip| date < clip.days.end()).or(plan.last());
        next.map(|clip| clip.terms).or_else(|| self.newest_terms())
    }

    /// All terms, oldest first.
    pub fn terms(&self) -> impl Iterator<Item = &ProductTerms> {
        self.segments.iter().filter_map(|segment| segment.agreed.terms())
    }

    /// From the first day billed to the last; `None` when no day is.
    pub fn billed(&self) -> Option<Period> {
        let plan = self.plan();
        Period::new(plan.first()?.days.start(), plan.last()?.days.end())
    }

    /// The period a day is billed in.
    pub fn period_at(&self, date: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_in(&self.plan(), date)
    }

    /// The period that starts on a day.
    pub fn period_from(&self, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_at(start).filter(|period| period.start() == start)
    }

    fn period_in<'c>(&'c self, plan: &[TermsInterval<'c>], date: NaiveDate) -> Option<ProductPeriod<'c>> {
        let clip = plan.iter().find(|clip| clip.days.contains(date))?;
        let period = clip.terms.schedule.period_at(date)?.clip(clip.days)?;
        Some(ProductPeriod { product_no: self.no, product: self, terms: clip.terms, period })
    }

    /// The first period.
    pub fn first_period(&self) -> Option<ProductPeriod<'_>> {
        self.billed().and_then(|billed| self.period_at(billed.start()))
    }

    /// The period that follows a day, over a gap where there is one.
    pub fn period_after(&self, end: NaiveDate) -> Option<ProductPeriod<'_>> {
        self.period_after_in(&self.plan(), end)
    }

    fn period_after_in<'c>(&'c self, plan: &[TermsInterval<'c>], end: NaiveDate) -> Option<ProductPeriod<'c>> {
        let next = plan.iter().find(|clip| clip.days.end() > end)?;
        self.period_in(plan, next.days.start().max(end))
    }

    /// The period that ends where a day begins or before it.
    pub fn period_before(&self, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        let plan = self.plan();
        let last = plan.iter().rfind(|clip| clip.days.start() < start)?;
        self.period_in(&plan, last.days.end().min(start).pred_opt()?)
    }

    /// All periods, first to last, each worked out when it is asked for.
    pub fn periods(&self) -> impl Iterator<Item = ProductPeriod<'_>> {
        let plan = self.plan();
        let first = plan.first().and_then(|clip| self.period_in(&plan, clip.days.start()));
        std::iter::successors(first, move |period| self.period_after_in(&plan, period.days().end()))
    }

    /// What is billed when, as the newest version has it.
    pub fn plan(&self) -> Vec<TermsInterval<'_>> {
        self.plan_of(u32::MAX)
    }

    /// What was to be billed when, as a version had it.
    pub fn plan_of(&self, version: u32) -> Vec<TermsInterval<'_>> {
        let chain = self.chain_of(version);
        let until = chain.iter().skip(1).map(|next| next.in_force_from).chain([NaiveDate::MAX]);
        let mut plan: Vec<TermsInterval<'_>> = Vec::with_capacity(chain.len());
        for (segment, until) in chain.iter().copied().zip(until) {
            if let Some(terms) = segment.agreed.terms()
                && let Some(in_force) = Period::new(segment.in_force_from, until)
                && let Some(days) = terms.schedule.range().intersection(in_force)
            {
                plan.push(TermsInterval { terms, days, cut: None });
            }
        }
        if let Some(last) = plan.last_mut()
            && let Some(Segment { in_force_from, agreed: SegmentTerms::Ended(reason), .. }) = chain.last().copied()
            && *in_force_from == last.days.end()
            && last.days.end() < last.terms.schedule.range().end()
        {
            last.cut = Some(*reason);
        }
        plan
    }

    /// The segments that hold as a version has them, each until the next one's date. Those after the last day billed say what
    /// was planned for a later end.
    fn chain_of(&self, version: u32) -> Vec<&Segment> {
        let mut chain: Vec<&Segment> = Vec::with_capacity(self.segments.len());
        // From its date on, a segment takes the place of all before it, also where it begins before them.
        for segment in self.segments.iter().rev().filter(|segment| segment.version <= version) {
            if chain.last().is_none_or(|next| segment.in_force_from < next.in_force_from) {
                chain.push(segment);
            }
        }
        chain.reverse();
        chain
    }
}

/// Checks what no single product shows: how many bill, and that no pricing comes twice over the same days, billed or to
/// be billed (billing rules 7). `named` tells a product's place in the request.
///
/// # Errors
/// Every violation found, with paths below the contract.
pub fn check_products(products: &[ContractProduct], named: impl Fn(ProductNo) -> Option<usize>) -> Result<(), Violations> {
    let mut found = Violations::none();
    if products.iter().filter(|product| !product.is_removed()).count() > MAX_PRODUCTS {
        found.add(&["products"], "too_many", format!("must have at most {MAX_PRODUCTS} elements"));
    }
    for (i, product) in products.iter().enumerate() {
        let plan = product.plan();
        let twin = products[..i].iter().find(|other| {
            other.plan().iter().any(|theirs| {
                plan.iter().any(|own| {
                    theirs.terms.pricing.pricing_ref == own.terms.pricing.pricing_ref
                        && theirs.days.intersection(own.days).is_some()
                })
            })
        });
        if let Some(twin) = twin {
            let index = named(product.no).or_else(|| named(twin.no)).unwrap_or(i).to_string();
            found.add(
                &["products", &index, "product_pricing_ref"],
                "duplicate_product",
                "must not be in the contract twice over the same days, ended products included",
            );
        }
    }
    found.or(())
}
