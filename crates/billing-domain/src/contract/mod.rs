//! Contracts: a chain of immutable versions, each in force from a date (billing rules 7).
//! What they cost is [`rating`](crate::rating)'s and [`document`](crate::document)'s business.

pub mod amendment;
pub mod schedule;
pub mod terms;

use chrono::NaiveDate;

use crate::calendar::{Period, TimeZone, Timestamp};
use crate::refs::{ContractRef, CustomerId, CustomerRef, EntityRef, ProductNo};
use crate::text::Line;
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
    pub po_number: Option<Line>,
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
    /// Versions of its terms, oldest first. From its date on, a version takes the place of all before it.
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
    pub agreed: Agreed,
}

/// What a segment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreed {
    /// The product is billed on these terms.
    Billed(Box<ProductTerms>),
    /// Nothing is billed any more, because the contract was cancelled or an edit left the product out.
    Ended(EndReason),
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

/// A billing period together with the terms in force in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductPeriod<'c> {
    /// The product.
    pub product_no: ProductNo,
    /// The terms in force.
    pub terms: &'c ProductTerms,
    /// The days.
    pub period: BillingPeriod,
    /// Whether it is the product's first: where `ONCE` items are billed.
    pub is_first: bool,
}

impl Contract {
    /// Its number as people read it.
    pub fn number_text(&self) -> String {
        format!("C-{}", self.number)
    }

    /// Its state at an instant, by a zone's calendar.
    pub fn state(&self, zone: TimeZone, now: Timestamp) -> ContractState {
        let today = zone.service_date(now);
        let start = self.products.iter().filter_map(|product| product.billed().map(Period::start)).min();
        let over = match self.effective_end_date() {
            // One that was cancelled at once is over on the day itself.
            Some(last) => today > last || self.cancelled_at.is_some_and(|at| last <= zone.service_date(at)),
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

    /// The latest last day of its products.
    pub fn effective_end_date(&self) -> Option<NaiveDate> {
        self.products.iter().filter_map(|product| product.billed().map(Period::last_day)).max()
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
        Self { no, segments: vec![Segment { version: 1, in_force_from, agreed: Agreed::Billed(Box::new(terms)) }] }
    }

    /// The newest terms; those of a product that has ended are its last.
    pub fn newest_terms(&self) -> Option<&ProductTerms> {
        self.terms().last()
    }

    /// Whether an edit left it out.
    pub fn is_removed(&self) -> bool {
        matches!(self.segments.last(), Some(Segment { agreed: Agreed::Ended(EndReason::Removed), .. }))
    }

    /// All terms, oldest first.
    pub fn terms(&self) -> impl Iterator<Item = &ProductTerms> {
        self.segments.iter().filter_map(|segment| match &segment.agreed {
            Agreed::Billed(terms) => Some(&**terms),
            Agreed::Ended(_) => None,
        })
    }

    /// From the first day billed to the last; `None` when no day is.
    pub fn billed(&self) -> Option<Period> {
        let first = self.clipped_terms().map(|(_, range)| range.start()).min()?;
        let last = self.clipped_terms().map(|(_, range)| range.end()).max()?;
        Period::new(first, last)
    }

    /// The period a day is billed in.
    pub fn period_at(&self, date: NaiveDate) -> Option<ProductPeriod<'_>> {
        let (terms, range) = self.clipped_terms().find(|(_, range)| range.contains(date))?;
        let period = terms.schedule.period_at(date)?.clip(range)?;
        let is_first = self.billed().is_some_and(|billed| billed.start() == period.span().start());
        Some(ProductPeriod { product_no: self.no, terms, period, is_first })
    }

    /// The first period.
    pub fn first_period(&self) -> Option<ProductPeriod<'_>> {
        self.billed().and_then(|billed| self.period_at(billed.start()))
    }

    /// The period that follows a day, over a gap between two versions where there is one.
    pub fn period_after(&self, end: NaiveDate) -> Option<ProductPeriod<'_>> {
        let next = self.clipped_terms().find(|(_, range)| range.end() > end)?.1;
        self.period_at(next.start().max(end))
    }

    /// The period that ends where a day begins or before it.
    pub fn period_before(&self, start: NaiveDate) -> Option<ProductPeriod<'_>> {
        let last = self.clipped_terms().filter(|(_, range)| range.start() < start).last()?.1;
        self.period_at(last.end().min(start).pred_opt()?)
    }

    /// All periods, first to last.
    pub fn periods(&self) -> impl Iterator<Item = ProductPeriod<'_>> {
        std::iter::successors(self.first_period(), |period| self.period_after(period.period.span().end()))
    }

    /// Each version's terms with the days they bill: their own range within their time in force.
    fn clipped_terms(&self) -> impl Iterator<Item = (&ProductTerms, Period)> {
        self.segments.iter().enumerate().filter_map(|(i, segment)| {
            let Agreed::Billed(terms) = &segment.agreed else { return None };
            // A later version rules from its date on, also where it begins before an earlier one.
            let until = self.segments[i + 1..].iter().map(|later| later.in_force_from).min().unwrap_or(NaiveDate::MAX);
            let in_force = Period::new(segment.in_force_from, until)?;
            Some((&**terms, terms.schedule.range().intersection(in_force)?))
        })
    }
}

/// Checks what no single product shows: how many there are, and that no pricing comes twice over the same
/// days (billing rules 7).
///
/// # Errors
/// Every violation found, with paths below the contract.
pub fn check_products(products: &[ProductTerms]) -> Result<(), Violations> {
    let mut found = Violations::none();
    if products.len() > MAX_PRODUCTS {
        found.add(&["products"], "too_many", format!("must have at most {MAX_PRODUCTS} elements"));
    }
    for (i, terms) in products.iter().enumerate() {
        let twin = products[..i].iter().any(|other| {
            other.pricing.pricing_ref == terms.pricing.pricing_ref
                && other.schedule.range().intersection(terms.schedule.range()).is_some()
        });
        if twin {
            let index = i.to_string();
            found.add(
                &["products", &index, "product_pricing_ref"],
                "duplicate_product",
                "must not be in the contract twice with overlapping dates",
            );
        }
    }
    found.or(())
}
