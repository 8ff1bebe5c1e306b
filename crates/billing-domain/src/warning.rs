//! Warnings: what may be a mistake in a request that is accepted nevertheless.

use std::fmt;

use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::ledger::ContractBook;
use crate::money::Percentage;
use crate::party::{Customer, Entity};
use crate::refs::{ContractRef, PricingRef};
use crate::refusal::Refusal;
use crate::tax::{DatedTax, StatedTax, TaxTreatment};

/// The time within which an equal contract of the same customer is a possible duplicate.
const POSSIBLE_DUPLICATE_SECONDS: i64 = 5 * 60;

/// A possible mistake in an accepted request. Its text ([`Display`](fmt::Display)) names the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A created contract bills the same products as another one that was created shortly before.
    SameAs {
        /// The earlier contract.
        contract_ref: ContractRef,
        /// The display form of its number.
        contract_number: String,
    },
    /// A tax of 0 has no category.
    NoTaxCategory {
        /// The pricing of the contract product with the tax, or `None` for the default tax of a customer.
        pricing_ref: Option<PricingRef>,
    },
    /// A billing run issues corrections of periods that are not over.
    OpenPeriods {
        /// The number of documents.
        documents: usize,
    },
}

impl Warning {
    /// Returns the warning about the newest of the customer's contracts that a new one may duplicate.
    pub fn of_duplicate(created: &Contract, others: &[Contract]) -> Option<Self> {
        let since = earliest_duplicate(created.created_at);
        let is_same = |other: &&Contract| {
            let is_recent = other.created_at >= since && other.contract_ref != created.contract_ref;
            is_recent && other.cancelled_at.is_none() && created.bills_same_products(other)
        };
        let newest = others.iter().filter(is_same).max_by_key(|other| (other.created_at, other.number))?;
        Some(Self::SameAs { contract_ref: newest.contract_ref, contract_number: newest.number_text() })
    }

    /// Returns the warning about a customer's newest default tax. `entity` is the entity that bills the customer by default.
    pub fn of_default_tax(customer: &Customer, entity: Option<&Entity>, now: Timestamp) -> Option<Self> {
        let stated = customer.profile.taxes.as_slice().last().map(|DatedTax { stated, .. }| stated.clone())?;
        let of_entity = entity.map(|entity| entity.profile.taxes.on(entity.profile.time_zone.service_date(now)));
        let treatment = TaxTreatment::of(&[stated.clone(), of_entity.unwrap_or_default()]);
        lacks_category(&stated, &treatment).then_some(Self::NoTaxCategory { pricing_ref: None })
    }

    /// Returns the warnings about the taxes of a contract's products that the version before does not have.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] if the book lacks an entity.
    pub fn of_product_taxes(book: &ContractBook, before: Option<&Contract>, now: Timestamp) -> Result<Vec<Self>, Refusal> {
        let mut found = Vec::new();
        for product in book.contract.products.iter().filter(|product| !product.is_removed()) {
            let Some(terms) = product.newest_terms() else { continue };
            let terms_before =
                before.and_then(|contract| contract.product(product.no)).and_then(|product| product.newest_terms());
            let stated = terms.stated_tax();
            if terms_before.is_some_and(|before| before.stated_tax() == stated) {
                continue;
            }
            if lacks_category(&stated, &book.treatment_on(terms, book.today(terms, now)?)?) {
                found.push(Self::NoTaxCategory { pricing_ref: Some(terms.pricing.pricing_ref.clone()) });
            }
        }
        Ok(found)
    }

    /// Returns the warning about this number of documents with a period that is not over.
    pub const fn of_open_periods(documents: usize) -> Option<Self> {
        if documents == 0 { None } else { Some(Self::OpenPeriods { documents }) }
    }

    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::SameAs { .. } => "same_as",
            Self::NoTaxCategory { .. } => "no_tax_category",
            Self::OpenPeriods { .. } => "period_not_over",
        }
    }

    /// Returns the JSON pointer of the field that caused the warning, if one field did.
    pub const fn pointer(&self) -> Option<&str> {
        match self {
            Self::NoTaxCategory { pricing_ref: None } => Some("/tax_category"),
            Self::SameAs { .. } | Self::NoTaxCategory { pricing_ref: Some(_) } | Self::OpenPeriods { .. } => None,
        }
    }

    /// Returns the contract that the warning names.
    pub const fn contract_ref(&self) -> Option<ContractRef> {
        match self {
            Self::SameAs { contract_ref, .. } => Some(*contract_ref),
            Self::NoTaxCategory { .. } | Self::OpenPeriods { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameAs { contract_number, .. } => write!(
                f,
                "contract {contract_number} of the same customer bills the same products from the same first to the same last day, \
                 and is less than 5 minutes older: to annul a contract that was created by mistake, cancel it with the day before \
                 its first day as last_day"
            ),
            Self::NoTaxCategory { pricing_ref } => {
                f.write_str("the tax")?;
                if let Some(pricing_ref) = pricing_ref {
                    write!(f, " of the product with the pricing {pricing_ref}")?;
                }
                f.write_str(
                    " is 0 and has no category, which e-invoices require: set tax_category to AE for a reverse charge, or to Z, \
                     E, G or O",
                )
            }
            Self::OpenPeriods { documents } => {
                let (subject, verb) = if *documents == 1 { ("document", "corrects") } else { ("documents", "correct") };
                write!(
                    f,
                    "{documents} {subject} {verb} an invoice whose period is not over, and later usage of the period is on further \
                     debits or credits: for one invoice, issue it after its period"
                )
            }
        }
    }
}

/// Returns whether settings state a tax of 0, and the treatment that results from them has no category.
fn lacks_category(stated: &StatedTax, treatment: &TaxTreatment) -> bool {
    stated.rate == Some(Percentage::ZERO) && treatment.basis.category.is_none()
}

/// Returns the earliest time of creation of a contract that a contract created at an instant may duplicate.
pub fn earliest_duplicate(created_at: Timestamp) -> Timestamp {
    created_at.plus_seconds(-POSSIBLE_DUPLICATE_SECONDS)
}
