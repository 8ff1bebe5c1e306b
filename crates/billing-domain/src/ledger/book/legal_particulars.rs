//! Legal particulars of a book's documents (billing rules 10): bank accounts, exchange rates and tax categories.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use super::ContractBook;
use crate::calendar::Timestamp;
use crate::contract::terms::{ProductTerms, SelectedLineItem};
use crate::contract::{Contract, ContractProduct};
use crate::document::legal_particulars::{
    CorrectedDocument, LegalParticulars, LegalParticularsInput, SupplyCategory, is_correction,
};
use crate::document::lines::{BillWith, DocumentLine, LedgerLine};
use crate::document::totals::DocumentContent;
use crate::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, Purpose};
use crate::money::Currency;
use crate::party::bank::BankAccount;
use crate::party::{BankTransferDetails, Entity};
use crate::refs::{BankAccountRef, DocumentRef, EntityRef, ProductNo};
use crate::refusal::Refusal;
use crate::tax::{ConvertedTax, ExchangeRate, TaxCategory, TaxInCurrency, mixes_untaxable};

/// The key of an exchange rate: the document's currency, the entity's tax currency and the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrencyPair {
    /// The document's currency.
    pub from: Currency,
    /// The entity's tax currency.
    pub to: Currency,
    /// The date of the rate.
    pub on: NaiveDate,
}

impl ContractBook {
    /// Records the result of loading bank accounts. Accounts in `asked` that aren't in `found` don't exist.
    pub fn set_bank_accounts(&mut self, asked: Vec<BankAccountRef>, found: Vec<BankAccount>) {
        self.bank_accounts.extend(asked.into_iter().map(|account_ref| (account_ref, None)));
        self.bank_accounts.extend(found.into_iter().map(|account| (account.account_ref, Some(account.profile))));
    }

    /// Records the result of loading the exchange rate of a currency pair.
    pub fn set_exchange_rate(&mut self, pair: CurrencyPair, rate: Option<ExchangeRate>) {
        self.exchange_rates.push((pair, rate));
    }

    /// Sets the newly assigned number of a document's parent in the legal particulars that name it.
    pub(super) fn name_corrected(
        &self,
        document_ref: DocumentRef,
        paper: Option<&mut LegalParticulars>,
        given: &BTreeMap<DocumentRef, (u64, u32)>,
    ) {
        let parent = self.documents.get(&document_ref).and_then(|document| document.head.parent);
        let number = parent.and_then(|parent| given.get(&parent));
        if let (Some(corrected), Some((sequence, _))) = (paper.and_then(|paper| paper.corrects.as_mut()), number) {
            corrected.number.sequence = *sequence;
        }
    }

    /// Returns the rate that converts a document's taxes into the entity's tax currency. Returns `None` if both currencies are
    /// equal, and `Some(None)` if no rate is known.
    pub(in crate::ledger) fn rate_of_exchange(
        &self,
        entity_ref: &EntityRef,
        from: Currency,
    ) -> Result<Option<Option<ExchangeRate>>, Refusal> {
        let own = self.entity(entity_ref)?.profile.paper.tax_currency.filter(|currency| *currency != from);
        let known = |to| self.exchange_rates.iter().rev().find(|(pair, _)| (pair.from, pair.to) == (from, to));
        Ok(own.map(|to| known(to).and_then(|(_, rate)| *rate)))
    }

    /// Returns the current legal particulars of a document (billing rules 10), with taxes converted at a rate.
    /// Does the same as [`rate_of_exchange`](Self::rate_of_exchange) for a document. A credit or an adjustment has the rate of the
    /// documents that it corrects, so that it gives back what they state (billing rules 10).
    pub(in crate::ledger) fn rate_of_document(&self, head: &DocumentHead) -> Result<Option<Option<ExchangeRate>>, Refusal> {
        let today = self.rate_of_exchange(&head.entity_ref, head.currency)?;
        let is_correction = head.kind == DocumentKind::Credit || head.purpose == Purpose::Adjustment;
        let own = self.entity(&head.entity_ref)?.profile.paper.tax_currency;
        let Some(to) = own.filter(|_| is_correction && today.is_some()) else { return Ok(today) };
        let parent = head.parent.and_then(|parent| self.documents.get(&parent));
        let corrected = match parent {
            Some(parent) if parent.status.is_issued() => vec![parent.head.document_ref],
            _ => self.children_corrected_by(head.document_ref),
        };
        let converted = corrected.iter().filter_map(|document_ref| self.converted_taxes.get(document_ref));
        let converted: Vec<ConvertedTax> = converted.filter(|tax| tax.rate.to == to).copied().collect();
        Ok(ConvertedTax::rate_of(&converted).map_or(today, |rate| Some(Some(rate))))
    }

    pub(in crate::ledger) fn paper_of(
        &self,
        head: &DocumentHead,
        content: &DocumentContent,
        rate: Option<ExchangeRate>,
    ) -> Result<LegalParticulars, Refusal> {
        let newest = head.parts.iter().filter_map(|no| self.contract.product(*no)?.newest_terms());
        let named = head.payment.bank_transfer.as_ref().and_then(BankTransferDetails::account_ref);
        let taxes = content.taxes.iter().map(|tax| tax.amount);
        let (corrects, corrects_last) = self.corrected_by(head).map_or((None, None), |(first, last)| (Some(first), last));
        let facts = LegalParticularsInput {
            buyer_reference: newest.filter_map(|terms| terms.buyer_reference.clone()).next(),
            bank_account: named.and_then(|named| self.bank_accounts.get(&named).cloned().flatten()),
            corrects,
            corrects_last,
            tax_in_currency: rate.map(|rate| TaxInCurrency::of(taxes, rate)).transpose()?,
            supply: self.supply_of(content),
        };
        Ok(LegalParticulars::of(&self.customer, self.entity(&head.entity_ref)?, facts))
    }

    /// Returns what a document bills: services, goods or both.
    fn supply_of(&self, content: &DocumentContent) -> Option<SupplyCategory> {
        let is_goods = |no: ProductNo, line: &DocumentLine| {
            let id = line.line_item_id.as_ref();
            if let Some(charge) = self.charges.of_line(id) {
                return charge.goods;
            }
            // The terms of a credited line may no longer have the line item.
            let product = self.contract.product(no);
            let in_force = product.and_then(|product| product.period_from(line.period_start)).map(|period| period.terms);
            let terms = in_force.into_iter().chain(product.into_iter().flat_map(ContractProduct::terms));
            let mut items = terms.flat_map(|terms| terms.line_items.iter());
            items.find(|item| Some(&item.id) == id).is_some_and(SelectedLineItem::is_goods)
        };
        let products = content.products.iter();
        SupplyCategory::of(products.flat_map(|product| product.lines.iter().map(move |line| is_goods(product.product_no, line))))
    }

    /// Returns the issued document that a document corrects. If the parent is an open invoice, returns the first and last of
    /// its children that bill the same lines.
    fn corrected_by(&self, head: &DocumentHead) -> Option<(CorrectedDocument, Option<CorrectedDocument>)> {
        let parent = self.documents.get(&head.parent?).filter(|_| is_correction(head.kind, head.purpose))?;
        let corrected = |document: &BookDocument| {
            let issue_date = document.issue_date.filter(|_| document.status.is_issued())?;
            Some(CorrectedDocument { number: document.head.number.clone(), issue_date })
        };
        if parent.status.is_issued() {
            return corrected(parent).map(|corrected| (corrected, None));
        }
        let children = self.children_corrected_by(head.document_ref);
        let (first, last) = (*children.first()?, *children.last()?);
        let named = |child: DocumentRef| self.documents.get(&child).and_then(corrected);
        Some((named(first)?, named(last).filter(|_| first != last)))
    }

    /// Returns the issued children of an open invoice that bill lines that an adjustment corrects, in order.
    fn children_corrected_by(&self, adjustment: DocumentRef) -> Vec<DocumentRef> {
        let lines = self.lines_of(adjustment);
        let is_same = |line: &LedgerLine| lines.iter().any(|corrected| corrected.key == line.key);
        let is_child = |document_ref: &DocumentRef| {
            self.documents.get(document_ref).is_none_or(|document| document.head.purpose == Purpose::Usage)
        };
        self.lines().filter(|(child, lines)| is_child(child) && lines.iter().any(is_same)).map(|(child, _)| child).collect()
    }

    /// Returns the first and last child of each service period whose own document is open, if the book doesn't hold them. A
    /// document that corrects several children names these two (billing rules 3).
    pub fn outer_children(&self) -> BTreeSet<DocumentRef> {
        let mut outer: BTreeMap<(ProductNo, NaiveDate), (DocumentRef, DocumentRef)> = BTreeMap::new();
        for (child, lines) in self.lines().filter(|(document_ref, _)| !self.documents.contains_key(document_ref)) {
            for line in lines {
                outer
                    .entry((line.key.product_no, line.key.period_start))
                    .and_modify(|ends| ends.1 = child)
                    .or_insert((child, child));
            }
        }
        let is_open = |(no, start): &(ProductNo, NaiveDate)| {
            let period = self.contract.period_from(*no, *start);
            period.is_some_and(|period| !self.is_billed(&period, BillWith::Usage))
        };
        outer.retain(|period, _| is_open(period));
        outer.into_values().flat_map(|(first, last)| [first, last]).collect()
    }

    /// Returns the bank accounts that must still be loaded: those named by drafts, terms and parties, and those in `also`.
    pub fn missing_bank_accounts(&self, also: impl IntoIterator<Item = BankAccountRef>) -> Vec<BankAccountRef> {
        let terms = self.contract.products.iter().flat_map(ContractProduct::terms).map(|terms| &terms.payment);
        let parties = self.entities.iter().map(|entity| &entity.profile.payment).chain([&self.customer.profile.payment]);
        let drafts = self.documents().filter(|document| document.status == LifecycleStatus::Draft);
        let stated = terms.chain(parties).chain(drafts.map(|document| &document.head.payment));
        let named = stated.filter_map(|payment| payment.bank_transfer.as_ref()?.account_ref()).chain(also);
        let unknown: BTreeSet<BankAccountRef> = named.filter(|named| !self.bank_accounts.contains_key(named)).collect();
        Vec::from_iter(unknown)
    }

    /// Returns the currency pairs whose rate on the day of an instant must still be loaded.
    pub fn missing_exchange_rates(&self, now: Timestamp) -> Vec<CurrencyPair> {
        let terms = self.contract.products.iter().flat_map(ContractProduct::terms);
        let of_terms = terms.map(|terms| (&terms.entity_ref, terms.pricing.currency));
        let of_documents = self.documents().map(|document| (&document.head.entity_ref, document.head.currency));
        let mut unknown = Vec::new();
        for (entity_ref, from) in of_terms.chain(of_documents) {
            let Ok(Entity { profile, .. }) = self.entity(entity_ref) else { continue };
            let Some(to) = profile.paper.tax_currency.filter(|to| *to != from) else { continue };
            let pair = CurrencyPair { from, to, on: profile.time_zone.service_date(now) };
            if !unknown.contains(&pair) && !self.exchange_rates.iter().any(|(known, _)| *known == pair) {
                unknown.push(pair);
            }
        }
        unknown
    }

    /// Refuses a contract that would bill items not subject to tax on one document with other items (billing rules 10). A
    /// contract that already does so before the change is accepted.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] `o_stands_alone`.
    pub(in crate::ledger) fn require_apart(&self, contract: &Contract, before: Option<&Contract>) -> Result<(), Refusal> {
        let is_mixed = |contract: &Contract| self.mixes(contract);
        if !is_mixed(contract)? || before.map(is_mixed).transpose()?.unwrap_or(false) {
            return Ok(());
        }
        let detail = "must not have tax_category O beside another category for the same entity and days, because one document bills \
                      them: make a contract of its own for what isn't subject to tax";
        Err(Refusal::field(&["products"], "o_stands_alone", detail))
    }

    /// Returns whether products that one document bills mix tax category O with another category.
    fn mixes(&self, contract: &Contract) -> Result<bool, Refusal> {
        let mut categories: Vec<(&ContractProduct, &ProductTerms, TaxCategory)> = Vec::new();
        for product in &contract.products {
            let Some(terms) = product.newest_terms() else { continue };
            let today = self.as_of().map(|now| self.today(terms, now)).transpose()?.unwrap_or(terms.schedule.range().start());
            if let Some(category) = self.treatment_on(terms, today)?.basis.category {
                categories.push((product, terms, category));
            }
        }
        let together = |a: &ContractProduct, b: &ContractProduct| match (a.billed(), b.billed()) {
            (Some(a), Some(b)) => a.intersection(b).is_some(),
            _ => false,
        };
        let mixed = categories.iter().enumerate().any(|(i, (product, terms, category))| {
            categories[..i].iter().any(|(other, others, beside)| {
                (&terms.entity_ref, terms.pricing.currency) == (&others.entity_ref, others.pricing.currency)
                    && mixes_untaxable([*category, *beside])
                    && together(product, other)
            })
        });
        Ok(mixed)
    }
}
