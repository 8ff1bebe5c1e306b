//! Elements of edits → terms (billing rules 7).

use chrono::NaiveDate;

use super::chain::keeping_quantities;
use crate::codes::ExemptionCode;
use crate::contract::ContractProduct;
use crate::contract::resolve::Catalog;
use crate::contract::schedule::{BillingCycle, BillingSchedule};
use crate::contract::terms::{
    FrozenPricing, PaymentTime, ProductTerms, RequestedLineItem, SelectedCharge, SelectedLineItem, freeze, select,
};
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
    /// Which product; where it is left out, pricing and start tell.
    pub product_no: Option<ProductNo>,
    /// Which product, together with `billing_start_date` where that is ambiguous.
    pub pricing_ref: PricingRef,
    /// First day billed.
    pub billing_start_date: Option<NaiveDate>,
    /// Last day billed.
    pub billing_end_date: Option<NaiveDate>,
    /// Whether prices, minimum fee and, where all were taken, line items are as the pricing has them now.
    pub reprice: bool,
    /// The selected line items; cleared: all of the pricing's.
    pub line_items: Patch<Vec<RequestedLineItem>>,
    /// The least a period costs; cleared: the pricing's.
    pub minimum_fee: Patch<Price>,
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
    /// How it is taxed at a rate of 0.
    pub treatment: TaxTreatmentPatch,
    /// What the payer wants to find on its documents.
    pub buyer_reference: Patch<BuyerReference>,
}

/// How something is taxed, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxTreatmentPatch {
    /// The category.
    pub category: Patch<TaxCategory>,
    /// The reason, as a code.
    pub exemption_code: Patch<ExemptionCode>,
    /// The reason, in words.
    pub exemption_reason: Patch<OneLine>,
}

impl TaxTreatmentPatch {
    /// A patch that says nothing.
    const KEEP: Self = Self { category: Patch::Keep, exemption_code: Patch::Keep, exemption_reason: Patch::Keep };

    /// The treatment after the edit.
    pub fn apply(self, present: TaxBasis) -> TaxBasis {
        TaxBasis {
            category: self.category.apply(present.category),
            exemption_code: self.exemption_code.apply(present.exemption_code),
            exemption_reason: self.exemption_reason.apply(present.exemption_reason),
        }
    }

    /// A category and its reason are one value: what repeats both says nothing, what changes one says both.
    pub(super) fn unless(self, agreed: &TaxBasis) -> Self {
        if self.clone().apply(agreed.clone()) == *agreed { Self::default() } else { self }
    }
}

/// A patch of a field that has a default: clearing it states that.
fn defaulted<T: Default>(patch: Patch<T>) -> Patch<T> {
    if matches!(patch, Patch::Clear) { Patch::Set(T::default()) } else { patch }
}

impl ProductPatch {
    /// A patch that says nothing but which product it is.
    pub const fn of(pricing_ref: PricingRef) -> Self {
        Self {
            product_no: None,
            pricing_ref,
            billing_start_date: None,
            billing_end_date: None,
            reprice: false,
            line_items: Patch::Keep,
            minimum_fee: Patch::Keep,
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

    /// Whether its list names the line items of terms only because it has to: it is about their values.
    pub(super) fn chooses_no_line_items(&self, newest: &ProductTerms) -> bool {
        matches!(&self.line_items, Patch::Set(items) if !self.reprice && newest.has_line_items(items))
    }

    /// Without what the newest agreed terms say already.
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

    /// What it says of the line items that terms have, and no other choice of them.
    pub(super) fn for_line_items_of(mut self, terms: &ProductTerms) -> Self {
        if let Patch::Set(given) = &mut self.line_items {
            let said = |item: &SelectedLineItem| given.iter().find(|given| given.id == item.id).cloned();
            let of_terms = terms.line_items.iter().map(|item| said(item).unwrap_or(RequestedLineItem::plain(item.id.clone())));
            *given = of_terms.collect();
        }
        self
    }

    /// Terms with the fields that hold whatever the day.
    pub(super) fn timeless_onto(&self, terms: &ProductTerms) -> ProductTerms {
        let mut terms = terms.clone();
        terms.note = self.note.clone().apply(terms.note);
        terms.buyer_reference = self.buyer_reference.clone().apply(terms.buyer_reference);
        terms.net_terms = self.net_terms.clone().apply(terms.net_terms);
        terms.payment = PaymentDetails {
            bank_transfer: self.bank_transfer.clone().apply(terms.payment.bank_transfer),
            online: self.online.clone().apply(terms.payment.online),
            crypto: self.crypto.clone().apply(terms.payment.crypto),
        };
        let Patch::Set(items) = &self.line_items else { return terms };
        for item in &mut terms.line_items {
            let list = items.iter().find(|given| given.id == item.id).and_then(|given| given.quantities.as_ref());
            if let (Some(list), SelectedCharge::Fixed { quantities, .. }) = (list, &mut item.charge) {
                *quantities = quantities.replaced_by(list);
            }
        }
        terms
    }

    /// Terms with every field the patch names in its place; what it doesn't name is as agreed (billing rules 7).
    pub(super) fn onto(
        &self,
        present: &ProductTerms,
        product: &ContractProduct,
        catalog: &Catalog,
    ) -> Result<ProductTerms, Violations> {
        let mut found = Violations::none();
        let range = present.schedule.range();
        let mut terms = self.timeless_onto(present);
        let mut listed_fee = None;
        if self.reprice || self.line_items.is_named() || matches!(self.minimum_fee, Patch::Clear) {
            let pricing = catalog.pricing(&self.pricing_ref)?;
            if self.reprice {
                let minimum_fee = pricing.content.minimum_fee;
                terms.pricing = FrozenPricing { minimum_fee, ..FrozenPricing::of(pricing) };
            }
            let items = terms.line_items.clone();
            // One that these terms don't have is as the pricing has it now, or else as it was ever agreed.
            let agreed = |id: &LineItemId| {
                let listed = pricing.content.line_items.iter().find(|item| item.id == *id);
                let ever = || product.terms().filter_map(|terms| terms.line_item(id)).last().filter(|_| listed.is_none());
                let agreed = items.iter().find(|item| item.id == *id).or_else(ever)?;
                let now = listed.filter(|_| self.reprice).and_then(|item| freeze(item, &catalog.usage_products).ok());
                Some(now.map_or_else(|| agreed.clone(), |now| keeping_quantities(now, agreed)))
            };
            // Who names what was agreed takes no other choice.
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
                    // Another order of the same line items is no change.
                    let place = |item: &SelectedLineItem| terms.line_items.iter().position(|was| was.id == item.id);
                    if items.len() == terms.line_items.len() && items.iter().all(|item| place(item).is_some()) {
                        items.sort_by_key(place);
                    }
                    terms.line_items = items;
                }
                Err(violations) => found.extend_below(&[], violations),
            }
            listed_fee = pricing.content.minimum_fee;
        }
        self.minimum_fee.put_optional(&mut terms.pricing.minimum_fee, listed_fee);
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
        let first = self.billing_start_date.unwrap_or(range.start());
        let cycle = self.billing_cycle.clone().apply(Some(present.schedule.cycle())).unwrap_or_default();
        let issue_day = self.issue_day.clone().apply(present.schedule.issue_day());
        let schedule = if first == range.start() {
            present.schedule.rescheduled(cycle, issue_day)
        } else {
            BillingSchedule::new(first, self.billing_end_date.unwrap_or(range.last_day()), cycle, issue_day)
        };
        match schedule {
            Ok(schedule) => terms.schedule = schedule,
            Err(violations) => found.extend_below(&[], violations),
        }
        if let Err(violations) = terms.check() {
            found.extend_below(&[], violations);
        }
        found.or(terms)
    }
}
