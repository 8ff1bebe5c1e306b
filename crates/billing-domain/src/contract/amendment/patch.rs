//! Application of an edit's elements to terms (billing rules 7).

use std::sync::Arc;

use chrono::NaiveDate;

use super::chain::keeping_quantities;
use crate::codes::ExemptionCode;
use crate::contract::ContractProduct;
use crate::contract::resolve::Catalog;
use crate::contract::schedule::BillingCycle;
use crate::contract::terms::{
    FrozenPricing, PaymentTime, ProductTerms, RequestedLineItem, SelectedCharge, SelectedLineItem, freeze, select,
};
use crate::labels::Where;
use crate::money::{Percentage, Price};
use crate::party::legal::BuyerReference;
use crate::party::{BankTransferDetails, CryptoDetails, NetTerms, OnlinePaymentDetails, PaymentDetails};
use crate::patch::Patch;
use crate::refs::{EntityRef, LineItemId, PricingRef, ProductNo};
use crate::tax::{TaxBasis, TaxCategory};
use crate::text::{OneLine, Prose};
use crate::violation::Violations;

/// One element of an edit's `products`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductPatch {
    /// The product number. Without it, pricing and start identify the product.
    pub product_no: Option<ProductNo>,
    /// The pricing. It identifies the product, together with `billing_start_date` if ambiguous.
    pub pricing_ref: PricingRef,
    /// The first billed day.
    pub billing_start_date: Option<NaiveDate>,
    /// The last billed day.
    pub billing_end_date: Option<NaiveDate>,
    /// Whether to copy the current prices and minimum fee of the pricing. If all line items were selected, their list is
    /// copied, too.
    pub reprice: bool,
    /// The selected line items. Clearing selects all line items of the pricing.
    pub line_items: Patch<Vec<RequestedLineItem>>,
    /// The minimum fee of a period. Clearing restores the fee of the pricing.
    pub minimum_fee: Patch<Price>,
    /// The name on documents. Clearing restores the name of the pricing.
    pub name: Patch<OneLine>,
    /// The condition on the labels of events.
    pub condition: Patch<Where>,
    /// The supplier entity.
    pub entity_ref: Patch<EntityRef>,
    /// The invoice interval.
    pub billing_cycle: Patch<BillingCycle>,
    /// The date of the first invoice.
    pub issue_day: Patch<NaiveDate>,
    /// The payment time.
    pub payment_time: Patch<PaymentTime>,
    /// The tax rate in percent.
    pub tax: Patch<Percentage>,
    /// The discount in percent.
    pub discount: Patch<Percentage>,
    /// The net terms.
    pub net_terms: Patch<NetTerms>,
    /// The note on the document.
    pub note: Patch<Prose>,
    /// The bank account.
    pub bank_transfer: Patch<BankTransferDetails>,
    /// The online payment details.
    pub online: Patch<OnlinePaymentDetails>,
    /// The crypto wallet.
    pub crypto: Patch<CryptoDetails>,
    /// The tax treatment at a rate of 0.
    pub treatment: TaxTreatmentPatch,
    /// The buyer reference shown on documents.
    pub buyer_reference: Patch<BuyerReference>,
}

/// A patch of a tax treatment, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxTreatmentPatch {
    /// The tax category.
    pub category: Patch<TaxCategory>,
    /// The exemption reason as a code.
    pub exemption_code: Patch<ExemptionCode>,
    /// The exemption reason as text.
    pub exemption_reason: Patch<OneLine>,
}

impl TaxTreatmentPatch {
    /// A patch without changes.
    const KEEP: Self = Self { category: Patch::Keep, exemption_code: Patch::Keep, exemption_reason: Patch::Keep };

    /// Returns the tax treatment after the edit.
    pub fn apply(self, present: TaxBasis) -> TaxBasis {
        TaxBasis {
            category: self.category.apply(present.category),
            exemption_code: self.exemption_code.apply(present.exemption_code),
            exemption_reason: self.exemption_reason.apply(present.exemption_reason),
        }
    }

    /// Removes a patch that changes nothing. Category and reason are one value, so a patch that changes one of them stays
    /// whole.
    pub(super) fn unless(self, agreed: &TaxBasis) -> Self {
        if self.clone().apply(agreed.clone()) == *agreed { Self::default() } else { self }
    }
}

/// Replaces the clearing of a field with its default.
fn defaulted<T: Default>(patch: Patch<T>) -> Patch<T> {
    if matches!(patch, Patch::Clear) { Patch::Set(T::default()) } else { patch }
}

impl ProductPatch {
    /// Returns a patch that only identifies its product.
    pub const fn of(pricing_ref: PricingRef) -> Self {
        Self {
            product_no: None,
            pricing_ref,
            billing_start_date: None,
            billing_end_date: None,
            reprice: false,
            line_items: Patch::Keep,
            minimum_fee: Patch::Keep,
            name: Patch::Keep,
            condition: Patch::Keep,
            entity_ref: Patch::Keep,
            billing_cycle: Patch::Keep,
            issue_day: Patch::Keep,
            payment_time: Patch::Keep,
            tax: Patch::Keep,
            discount: Patch::Keep,
            net_terms: Patch::Keep,
            note: Patch::Keep,
            bank_transfer: Patch::Keep,
            online: Patch::Keep,
            crypto: Patch::Keep,
            treatment: TaxTreatmentPatch::KEEP,
            buyer_reference: Patch::Keep,
        }
    }

    /// Returns whether the patch lists exactly the agreed line items. Such a list changes values of line items, not their
    /// selection.
    pub(super) fn chooses_no_line_items(&self, newest: &ProductTerms) -> bool {
        matches!(&self.line_items, Patch::Set(items) if !self.reprice && newest.has_line_items(items))
    }

    /// Removes the values that equal the newest agreed terms.
    pub(super) fn beyond(self, agreed: &ProductTerms) -> Self {
        let range = agreed.schedule.range();
        let line_items = match self.line_items {
            Patch::Set(items) => {
                let same = agreed.has_line_items(&items);
                let beyond = |item: RequestedLineItem| match agreed.line_item(&item.id) {
                    Some(present) => item.beyond(present),
                    None => item,
                };
                let items: Vec<RequestedLineItem> = items.into_iter().map(beyond).collect();
                if same && items.iter().all(RequestedLineItem::is_plain) { Patch::Keep } else { Patch::Set(items) }
            }
            Patch::Clear if agreed.all_line_items => Patch::Keep,
            other => other,
        };
        let entity_ref = self.entity_ref.unless(agreed.stated_entity.as_ref());
        let entity_ref = if entity_ref == Patch::Set(agreed.entity_ref.clone()) { Patch::Keep } else { entity_ref };
        Self {
            billing_start_date: self.billing_start_date.filter(|day| *day != range.start()),
            line_items,
            minimum_fee: self.minimum_fee.unless(agreed.pricing.minimum_fee.as_ref()),
            name: self.name.unless(agreed.name.as_ref()),
            condition: self.condition.unless(agreed.condition.as_ref()),
            entity_ref,
            billing_cycle: defaulted(self.billing_cycle).unless(Some(&agreed.schedule.cycle())),
            issue_day: self.issue_day.unless(agreed.schedule.issue_day().as_ref()),
            payment_time: defaulted(self.payment_time).unless(Some(&agreed.payment_time)),
            tax: self.tax.unless(agreed.tax.as_ref()),
            discount: self.discount.unless(agreed.discount.as_ref()),
            net_terms: self.net_terms.unless(agreed.net_terms.as_ref()),
            note: self.note.unless(agreed.note.as_ref()),
            bank_transfer: self.bank_transfer.unless(agreed.payment.bank_transfer.as_ref()),
            online: self.online.unless(agreed.payment.online.as_ref()),
            crypto: self.crypto.unless(agreed.payment.crypto.as_ref()),
            treatment: self.treatment.unless(&agreed.treatment),
            buyer_reference: self.buyer_reference.unless(agreed.buyer_reference.as_ref()),
            ..self
        }
    }

    /// Restricts the patch to the line items of the terms and keeps their selection.
    pub(super) fn for_line_items_of(mut self, terms: &ProductTerms) -> Self {
        if let Patch::Set(given) = &mut self.line_items {
            let given_for = |item: &SelectedLineItem| given.iter().find(|given| given.id == item.id).cloned();
            let of_terms =
                terms.line_items.iter().map(|item| given_for(item).unwrap_or(RequestedLineItem::plain(item.id.clone())));
            *given = of_terms.collect();
        }
        self
    }

    /// Applies the fields that do not depend on a day to terms.
    pub(super) fn timeless_onto(&self, terms: &ProductTerms) -> ProductTerms {
        let mut terms = terms.clone();
        terms.name = self.name.clone().apply(terms.name);
        terms.note = self.note.clone().apply(terms.note);
        terms.buyer_reference = self.buyer_reference.clone().apply(terms.buyer_reference);
        terms.net_terms = self.net_terms.clone().apply(terms.net_terms);
        terms.payment = PaymentDetails {
            bank_transfer: self.bank_transfer.clone().apply(terms.payment.bank_transfer),
            online: self.online.clone().apply(terms.payment.online),
            crypto: self.crypto.clone().apply(terms.payment.crypto),
        };
        let Patch::Set(items) = &self.line_items else { return terms };
        for item in Arc::make_mut(&mut terms.line_items) {
            let list = items.iter().find(|given| given.id == item.id).and_then(|given| given.quantities.as_ref());
            if let (Some(list), SelectedCharge::Fixed { quantities, .. }) = (list, &mut item.charge) {
                *quantities = quantities.replaced_by(list);
            }
        }
        terms
    }

    /// Applies every field of the patch to terms. Other fields stay as agreed (billing rules 7).
    pub(super) fn onto(
        &self,
        present: &ProductTerms,
        product: &ContractProduct,
        catalog: &Catalog,
    ) -> Result<ProductTerms, Violations> {
        let mut found = Violations::none();
        let mut terms = self.timeless_onto(present);
        let mut listed_fee = None;
        if self.reprice || self.line_items.is_named() || matches!(self.minimum_fee, Patch::Clear) {
            let pricing = catalog.pricing(&self.pricing_ref)?;
            if self.reprice {
                let minimum_fee = pricing.content.minimum_fee;
                terms.pricing = FrozenPricing { minimum_fee, ..FrozenPricing::of(pricing) };
            }
            let items = Arc::clone(&terms.line_items);
            // A line item that these terms lack is copied from the pricing, or else from its last agreed terms.
            let agreed = |id: &LineItemId| {
                let listed = pricing.content.line_items.iter().find(|item| item.id == *id);
                let ever = || product.terms().filter_map(|terms| terms.line_item(id)).last().filter(|_| listed.is_none());
                let agreed = items.iter().find(|item| item.id == *id).or_else(ever)?;
                let now = listed.filter(|_| self.reprice).and_then(|item| freeze(item, &catalog.usage_products).ok());
                Some(now.map_or_else(|| agreed.clone(), |now| keeping_quantities(now, agreed)))
            };
            // Listing exactly the agreed line items does not change the selection.
            terms.all_line_items = match &self.line_items {
                Patch::Set(items) => terms.all_line_items && terms.has_line_items(items),
                Patch::Clear => true,
                Patch::Keep => terms.all_line_items,
            };
            let kept = || terms.line_items.iter().map(|item| RequestedLineItem::plain(item.id.clone())).collect();
            let wanted = match &self.line_items {
                Patch::Set(items) => Some(items.clone()),
                Patch::Keep if !self.reprice || !terms.all_line_items => Some(kept()),
                Patch::Keep | Patch::Clear => None,
            };
            match select(wanted.as_deref(), pricing, &catalog.usage_products, agreed) {
                Ok(mut items) => {
                    // A different order of the same line items is not a change.
                    let place = |item: &SelectedLineItem| terms.line_items.iter().position(|was| was.id == item.id);
                    if items.len() == terms.line_items.len() && items.iter().all(|item| place(item).is_some()) {
                        items.sort_by_key(place);
                    }
                    terms.line_items = items.into();
                }
                Err(violations) => found.extend_below(&[], violations),
            }
            listed_fee = pricing.content.minimum_fee;
        }
        self.minimum_fee.put_optional(&mut terms.pricing.minimum_fee, listed_fee);
        terms.condition = self.condition.clone().apply(terms.condition);
        if self.entity_ref.is_named() {
            terms.stated_entity = self.entity_ref.clone().apply(None);
            match catalog.entity(terms.stated_entity.as_ref()) {
                Ok(entity_ref) => terms.entity_ref = entity_ref,
                Err(violations) => found.extend_below(&[], violations),
            }
        }
        terms.payment_time = self.payment_time.clone().apply(Some(terms.payment_time)).unwrap_or_default();
        terms.tax = self.tax.clone().apply(terms.tax);
        terms.treatment = self.treatment.clone().apply(terms.treatment);
        terms.discount = self.discount.clone().apply(terms.discount);
        let cycle = self.billing_cycle.clone().apply(Some(present.schedule.cycle())).unwrap_or_default();
        let issue_day = self.issue_day.clone().apply(present.schedule.issue_day());
        match present.schedule.rescheduled(cycle, issue_day) {
            Ok(schedule) => terms.schedule = schedule,
            Err(violations) => found.extend_below(&[], violations),
        }
        if let Err(violations) = terms.check() {
            found.extend_below(&[], violations);
        }
        found.or(terms)
    }
}
