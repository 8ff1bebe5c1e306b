//! Edit and cancel → the contract's next version (billing rules 7). Past periods are never touched.
//!
//! What follows for documents isn't decided here: the new chain of versions is all that events, previews and
//! issues read.

use chrono::NaiveDate;

use super::terms::{ProductTerms, RequestedProduct};
use super::{Agreed, Contract, ContractProduct, EndReason, Segment};
use crate::calendar::{Timestamp, day_after};
use crate::contract::schedule::BillingCycle;
use crate::contract::terms::PaymentTime;
use crate::money::Percentage;
use crate::party::{BankTransferDetails, CryptoDetails, NetTerms, OnlinePaymentDetails};
use crate::patch::Patch;
use crate::refs::{EntityRef, LineItemId, PricingRef, ProductNo};
use crate::text::{Line, Prose};
use crate::violation::Violations;

/// From when a change holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// From each product's next period.
    #[default]
    NextInvoice,
    /// From the start of each product's current period; a cancel: from tomorrow.
    CurrentInvoice,
}

/// One element of an edit's `products`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductPatch {
    /// Which product, together with `billing_start_date` where that is ambiguous.
    pub pricing_ref: PricingRef,
    /// First day billed.
    pub billing_start_date: Option<NaiveDate>,
    /// Last day billed.
    pub billing_end_date: Option<NaiveDate>,
    /// The selected line items; cleared: all of the pricing's.
    pub line_items: Patch<Vec<LineItemId>>,
    /// Supplier entity.
    pub entity_ref: Patch<EntityRef>,
    /// Interval of invoices.
    pub billing_cycle: Patch<BillingCycle>,
    /// Date of the first invoice.
    pub issue_day: Patch<NaiveDate>,
    /// Timing of payment.
    pub payment_time: Patch<PaymentTime>,
    /// Tax in percent.
    pub tax: Patch<Percentage>,
    /// Discount in percent.
    pub discount: Patch<Percentage>,
    /// Net terms.
    pub net_terms: Patch<NetTerms>,
    /// Free text for the document.
    pub note: Patch<Prose>,
    /// Bank account.
    pub bank_transfer: Patch<BankTransferDetails>,
    /// Online payment.
    pub online: Patch<OnlinePaymentDetails>,
    /// Crypto wallet.
    pub crypto: Patch<CryptoDetails>,
}

/// What an edit asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractEdit {
    /// Purchase order number.
    pub po_number: Patch<Line>,
    /// The new full list of products; `None` keeps the present one.
    pub products: Option<Vec<ProductPatch>>,
    /// From when it holds.
    pub reach: Reach,
}

/// A product of the next version: which present one it goes on from, and what it is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedProduct {
    /// The present product; `None` of one that is added.
    pub no: Option<ProductNo>,
    /// Present terms with the edit's fields in their place.
    pub request: RequestedProduct,
}

impl ProductPatch {
    fn onto(self, present: RequestedProduct) -> RequestedProduct {
        RequestedProduct {
            pricing_ref: self.pricing_ref,
            billing_start_date: self.billing_start_date.unwrap_or(present.billing_start_date),
            billing_end_date: self.billing_end_date.unwrap_or(present.billing_end_date),
            line_items: self.line_items.apply(present.line_items),
            entity_ref: self.entity_ref.apply(present.entity_ref),
            billing_cycle: self.billing_cycle.apply(present.billing_cycle),
            issue_day: self.issue_day.apply(present.issue_day),
            payment_time: self.payment_time.apply(present.payment_time),
            tax: self.tax.apply(present.tax),
            discount: self.discount.apply(present.discount),
            net_terms: self.net_terms.apply(present.net_terms),
            note: self.note.apply(present.note),
            payment: crate::party::PaymentDetails {
                bank_transfer: self.bank_transfer.apply(present.payment.bank_transfer),
                online: self.online.apply(present.payment.online),
                crypto: self.crypto.apply(present.payment.crypto),
            },
        }
    }
}

/// Matches an edit's products to the contract's, by pricing, and by billing start where that is ambiguous, and
/// merges them field by field.
///
/// # Errors
/// Violations of products that are added without the dates they need, and of a pricing named twice without a
/// date that tells which.
pub fn match_products(contract: &Contract, patches: Vec<ProductPatch>) -> Result<Vec<MatchedProduct>, Violations> {
    let mut found = Violations::none();
    let mut taken: Vec<ProductNo> = Vec::new();
    let mut matched = Vec::new();
    for (i, patch) in patches.into_iter().enumerate() {
        let index = i.to_string();
        let same_pricing: Vec<(&ContractProduct, &ProductTerms)> = contract
            .products
            .iter()
            .filter(|product| !product.is_removed() && !taken.contains(&product.no))
            .filter_map(|product| Some((product, product.newest_terms()?)))
            .filter(|(_, terms)| terms.pricing.pricing_ref == patch.pricing_ref)
            .collect();
        let present = match same_pricing.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => {
                let named = patch
                    .billing_start_date
                    .and_then(|date| several.iter().find(|(_, terms)| terms.schedule.range().start() == date));
                if named.is_none() {
                    let detail = "must tell which of the contract's products with this pricing is meant";
                    found.add(&["products", &index, "billing_start_date"], "ambiguous_product", detail);
                    continue;
                }
                named.copied()
            }
        };
        match present {
            Some((product, terms)) => {
                taken.push(product.no);
                matched.push(MatchedProduct { no: Some(product.no), request: patch.onto(terms.as_request()) });
            }
            None => match added(patch) {
                Ok(request) => matched.push(MatchedProduct { no: None, request }),
                Err(violations) => found.extend_below(&["products", &index], violations),
            },
        }
    }
    found.or(matched)
}

fn added(patch: ProductPatch) -> Result<RequestedProduct, Violations> {
    let mut found = Violations::none();
    if patch.billing_start_date.is_none() {
        found.add(&["billing_start_date"], "required", "must be given for a product that is added");
    }
    if patch.billing_end_date.is_none() {
        found.add(&["billing_end_date"], "required", "must be given for a product that is added");
    }
    let (Some(billing_start_date), Some(billing_end_date)) = (patch.billing_start_date, patch.billing_end_date) else {
        return Err(found);
    };
    let nothing = RequestedProduct {
        pricing_ref: patch.pricing_ref.clone(),
        billing_start_date,
        billing_end_date,
        line_items: None,
        entity_ref: None,
        billing_cycle: None,
        issue_day: None,
        payment_time: None,
        tax: None,
        discount: None,
        net_terms: None,
        note: None,
        payment: crate::party::PaymentDetails::default(),
    };
    Ok(patch.onto(nothing))
}

/// The contract after an edit whose products were agreed on; `today` is a product's service date.
pub fn edited(
    contract: &Contract,
    po_number: Patch<Line>,
    products: Option<Vec<(Option<ProductNo>, ProductTerms)>>,
    reach: Reach,
    today: &dyn Fn(&ProductTerms) -> NaiveDate,
) -> Contract {
    let mut next =
        Contract { version: contract.version + 1, po_number: po_number.apply(contract.po_number.clone()), ..contract.clone() };
    let Some(agreed) = products else { return next };
    let kept: Vec<ProductNo> = agreed.iter().filter_map(|(no, _)| *no).collect();
    for product in next.products.iter_mut().filter(|product| !product.is_removed() && !kept.contains(&product.no)) {
        end(product, next.version, EndReason::Removed, reach, today);
    }
    for (no, terms) in agreed {
        let present = no.and_then(|no| next.products.iter_mut().find(|product| product.no == no));
        match present {
            Some(product) => {
                let in_force_from = changes_from(product, &terms, reach, today);
                // The same terms again are news only where they are to hold earlier.
                let holds_then = product.segments.last().is_some_and(|segment| segment.in_force_from <= in_force_from);
                if !(holds_then && product.newest_terms() == Some(&terms)) {
                    product.segments.push(Segment {
                        version: next.version,
                        in_force_from,
                        agreed: Agreed::Billed(Box::new(terms)),
                    });
                }
            }
            None => {
                let no = ProductNo(next.products.iter().map(|product| product.no.0 + 1).max().unwrap_or(0));
                let mut product = ContractProduct::new(no, terms);
                product.segments[0].version = next.version;
                next.products.push(product);
            }
        }
    }
    next
}

/// The contract after a cancel; `today` is a product's service date.
pub fn cancelled(contract: &Contract, reach: Reach, at: Timestamp, today: &dyn Fn(&ProductTerms) -> NaiveDate) -> Contract {
    let mut next = Contract { version: contract.version + 1, cancelled_at: Some(at), ..contract.clone() };
    for product in &mut next.products {
        // One that an edit left out may still have days to bill; it stays left out.
        let reason = if product.is_removed() { EndReason::Removed } else { EndReason::Cancelled };
        end(product, next.version, reason, reach, today);
    }
    next
}

/// Ends a product: after its current period, or after today. One that hasn't started is never billed, one
/// that is over stays as it is.
fn end(product: &mut ContractProduct, version: u32, reason: EndReason, reach: Reach, today: &dyn Fn(&ProductTerms) -> NaiveDate) {
    let (Some(terms), Some(billed)) = (product.newest_terms(), product.billed()) else { return };
    let today = today(terms);
    let in_force_from = if today < billed.start() {
        billed.start()
    } else {
        match (reach, product.period_at(today)) {
            (_, None) if today >= billed.end() => billed.end(),
            (Reach::NextInvoice, Some(current)) => current.period.span().end(),
            (Reach::CurrentInvoice, _) | (Reach::NextInvoice, None) => day_after(today),
        }
    };
    product.segments.push(Segment { version, in_force_from, agreed: Agreed::Ended(reason) });
}

/// From when changed terms of a product hold (billing rules 7).
fn changes_from(
    product: &ContractProduct,
    terms: &ProductTerms,
    reach: Reach,
    today: &dyn Fn(&ProductTerms) -> NaiveDate,
) -> NaiveDate {
    let new_start = terms.schedule.range().start();
    let (Some(newest), Some(billed)) = (product.newest_terms(), product.billed()) else { return new_start };
    let today = today(newest);
    if today < billed.start() {
        // Nothing has begun: the new terms take the old ones' place altogether.
        return billed.start().min(new_start);
    }
    match (product.period_at(today), reach) {
        (Some(current), Reach::CurrentInvoice) => current.period.span().start(),
        (Some(current), Reach::NextInvoice) => current.period.span().end(),
        (None, _) => product.period_after(today).map_or(billed.end(), |next| next.period.span().start()),
    }
}
