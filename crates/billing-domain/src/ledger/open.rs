//! Opening of documents: regular documents with the products that share them, adjustments and children (billing rules 2, 3, 5).

use std::sync::Arc;

use chrono::NaiveDate;

use super::book::product_of;
use super::{ContractBook, Entry, IdGenerator};
use crate::calendar::{Period, Timestamp};
use crate::contract::{Contract, ContractProduct, ProductPeriod};
use crate::document::linking::{BillingSlot, ProductPart, SlotKind, part_for_fixed, part_for_usage, part_in, parts_of_period};
use crate::document::numbering::DocumentNumber;
use crate::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, Purpose};
use crate::money::Currency;
use crate::party::{NetTerms, PaymentDetails};
use crate::refs::{DocumentRef, EntityRef, ProductNo};
use crate::refusal::Refusal;

/// The input for opening a document.
pub(super) struct NewDocument {
    pub(super) kind: DocumentKind,
    pub(super) purpose: Purpose,
    pub(super) entity_ref: EntityRef,
    pub(super) currency: Currency,
    pub(super) period: Period,
    pub(super) is_partial_period: bool,
    pub(super) parts: Vec<ProductNo>,
    pub(super) net_terms: NetTerms,
    pub(super) payment: PaymentDetails,
    pub(super) parent: Option<DocumentRef>,
    pub(super) replaces: Option<DocumentRef>,
}

/// Returns the part in a slot of a contract, which must exist.
pub(super) fn part_of(contract: &Contract, slot: BillingSlot) -> Result<ProductPart<'_>, Refusal> {
    let part = part_in(product_of(contract, slot.product_no)?, slot);
    part.ok_or_else(|| Refusal::Broken(format!("product {} bills nothing in {}", slot.product_no.0, slot.period_start)))
}

impl ContractBook {
    /// Returns the document of a slot: the existing one, a draft that the part joins, or a new one with all products that share
    /// it. A void document that the new one replaces hands over its events.
    pub(super) fn document_in(
        &mut self,
        slot: BillingSlot,
        now: Timestamp,
        id_generator: &mut impl IdGenerator,
    ) -> Result<DocumentRef, Refusal> {
        if let Some(there) = self.document_in_slot(slot) {
            return Ok(there.head.document_ref);
        }
        self.require_whole()?;
        let contract = Arc::clone(&self.contract);
        let part = part_of(&contract, slot)?;
        let (net_terms, payment) = self.payment_terms(&part)?;
        let joined = self
            .documents()
            .find(|draft| self.can_consolidate(draft, &part, net_terms, &payment))
            .map(|draft| draft.head.clone());
        if let Some(head) = joined {
            let document_ref = head.document_ref;
            self.add_part_to_draft(head, &part)?;
            return Ok(document_ref);
        }
        let parent = match slot.kind {
            SlotKind::Period | SlotKind::Closing => None,
            SlotKind::UsageDebit => Some(self.document_in(BillingSlot { kind: SlotKind::Period, ..slot }, now, id_generator)?),
        };
        let parts = self.parts_to_consolidate(&contract, &part, net_terms, &payment)?;
        let head = self.open(
            NewDocument {
                kind: slot.kind.document_kind(),
                purpose: Purpose::Regular(slot.kind),
                entity_ref: part.own.terms.entity_ref.clone(),
                currency: part.own.terms.pricing.currency,
                period: part.own.days(),
                is_partial_period: part.own.period.is_partial(),
                parts: parts.iter().map(|part| part.own.product_no).collect(),
                net_terms,
                payment,
                parent,
                replaces: self.last_void(slot),
            },
            now,
            id_generator,
        )?;
        for part in &parts {
            self.take_over(part, head)?;
        }
        Ok(head)
    }

    /// Adds the products that share a regular draft and have no document yet (billing rules 2).
    pub(super) fn consolidate_products(&mut self, document_ref: DocumentRef) -> Result<(), Refusal> {
        let contract = Arc::clone(&self.contract);
        let start = self.require_document(document_ref)?.head.period.start();
        let parts = contract.products.iter().filter_map(|product| product.period_from(start)).flat_map(parts_of_period);
        for part in parts {
            if self.document_in_slot(part.slot()).is_some() {
                continue;
            }
            let (net_terms, payment) = self.payment_terms(&part)?;
            let draft = self.require_document(document_ref)?;
            if self.can_consolidate(draft, &part, net_terms, &payment) {
                let head = draft.head.clone();
                self.add_part_to_draft(head, &part)?;
            }
        }
        Ok(())
    }

    /// Adds a part to a draft that it can share.
    fn add_part_to_draft(&mut self, mut head: DocumentHead, part: &ProductPart<'_>) -> Result<(), Refusal> {
        let document_ref = head.document_ref;
        head.parts.push(part.own.product_no);
        head.parts.sort();
        self.put(Entry::Redrawn(Box::new(head)))?;
        self.take_over(part, document_ref)
    }

    /// Opens a document as a draft. Its numbers are assigned when the entry is written.
    pub(super) fn open(
        &mut self,
        new: NewDocument,
        now: Timestamp,
        id_generator: &mut impl IdGenerator,
    ) -> Result<DocumentRef, Refusal> {
        self.require_whole()?;
        let document_ref = DocumentRef::from_uuid(id_generator.next_id());
        let family = match new.parent {
            Some(parent) => self.require_document(parent)?.family,
            None => document_ref,
        };
        let prefix = self.entity(&new.entity_ref)?.profile.number_prefix.clone();
        let head = DocumentHead {
            document_ref,
            number: DocumentNumber { prefix, kind: new.kind, sequence: 0 },
            kind: new.kind,
            purpose: new.purpose,
            contract_ref: self.contract.contract_ref,
            number_in_contract: 0,
            customer_id: self.contract.customer_id,
            entity_ref: new.entity_ref,
            currency: new.currency,
            period: new.period,
            is_partial_period: new.is_partial_period,
            parts: new.parts,
            net_terms: new.net_terms,
            payment: new.payment,
            parent: new.parent,
            replaces: new.replaces,
            created_at: now,
        };
        self.put(Entry::Opened { head: Box::new(head), family })?;
        Ok(document_ref)
    }

    /// Returns whether a part without a document can join an existing draft (billing rules 2).
    fn can_consolidate(
        &self,
        draft: &BookDocument,
        part: &ProductPart<'_>,
        net_terms: NetTerms,
        payment: &PaymentDetails,
    ) -> bool {
        let head = &draft.head;
        let paid_like = head.parts.first().and_then(|no| {
            let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind: part.kind };
            Some(part_in(self.contract.product(*no)?, slot)?.own.terms.payment_time)
        });
        draft.status == LifecycleStatus::Draft
            && head.purpose == Purpose::Regular(part.kind)
            && head.period == part.own.days()
            && head.entity_ref == part.own.terms.entity_ref
            && head.currency == part.own.terms.pricing.currency
            && paid_like == Some(part.own.terms.payment_time)
            && head.net_terms == net_terms
            && head.payment == *payment
    }

    /// Returns the parts that one document bills, in contract order, without parts that already have a document. The parts have
    /// the same period, entity, currency, payment time, net terms and payment details (billing rules 2).
    pub(super) fn parts_to_consolidate<'c>(
        &self,
        contract: &'c Contract,
        of: &ProductPart<'_>,
        net_terms: NetTerms,
        payment: &PaymentDetails,
    ) -> Result<Vec<ProductPart<'c>>, Refusal> {
        let span = of.own.days();
        let in_slot = |product: &'c ContractProduct| {
            let own = product.period_from(span.start()).filter(|own| own.days() == span)?;
            parts_of_period(own).into_iter().find(|part| part.kind == of.kind)
        };
        let mut parts = Vec::new();
        for part in contract.products.iter().filter_map(in_slot) {
            let (a, b) = (part.own.terms, of.own.terms);
            let agrees = a.entity_ref == b.entity_ref
                && a.pricing.currency == b.pricing.currency
                && a.payment_time == b.payment_time
                && self.payment_terms(&part)? == (net_terms, payment.clone());
            let is_itself = part.own.product_no == of.own.product_no;
            if is_itself || (agrees && self.document_in_slot(part.slot()).is_none()) {
                parts.push(part);
            }
        }
        Ok(parts)
    }

    /// Returns the void document that a new document in a slot replaces: the last one issued there.
    fn last_void(&self, slot: BillingSlot) -> Option<DocumentRef> {
        let was_there = |document: &&BookDocument| {
            document.status == LifecycleStatus::Void
                && document.head.purpose == Purpose::Regular(slot.kind)
                && document.head.period.start() == slot.period_start
                && document.head.parts.contains(&slot.product_no)
        };
        self.documents().rfind(was_there).map(|document| document.head.document_ref)
    }

    /// Moves the events of a service period from void documents and from `emptied` documents to the document that carries the
    /// usage now.
    pub(super) fn move_events(
        &mut self,
        (product_no, start): (ProductNo, NaiveDate),
        emptied: &[DocumentRef],
        to: DocumentRef,
    ) -> Result<(), Refusal> {
        let is_left = |document: &&BookDocument| {
            let document_ref = document.head.document_ref;
            let is_void = document.status.is_void() && document.head.parts.contains(&product_no);
            document_ref != to && (is_void || emptied.contains(&document_ref)) && self.has_events(document_ref)
        };
        let left: Vec<DocumentRef> = self.documents().filter(is_left).map(|document| document.head.document_ref).collect();
        for from in left {
            self.put(Entry::EventsMoved { from, to, of: Some((product_no, start)) })?;
        }
        Ok(())
    }

    /// Moves the usage of a part from void documents to the draft that bills it now.
    fn take_over(&mut self, part: &ProductPart<'_>, to: DocumentRef) -> Result<(), Refusal> {
        part.usage.map_or(Ok(()), |usage| self.move_events((usage.product_no, usage.start()), &[], to))
    }
}

/// Returns the invoice that is the parent of children of a period's usage. With `BEFORE_USE` it is the period's own invoice,
/// with `DURING_USE` the invoice that bills the usage (billing rules 3).
pub(super) fn invoice_of<'c>(period: &ProductPeriod<'c>) -> ProductPart<'c> {
    let carrier = part_for_usage(*period);
    match carrier.kind {
        SlotKind::UsageDebit => part_for_fixed(*period),
        SlotKind::Period | SlotKind::Closing => carrier,
    }
}

/// Returns whether each event of a period gets its own document. The net terms of the period's document decide, or those it
/// would be opened with.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks a required row.
pub fn is_due_upon_usage(
    book: &ContractBook,
    carrier: Option<&BookDocument>,
    period: &ProductPeriod<'_>,
) -> Result<bool, Refusal> {
    let part = invoice_of(period);
    let net_terms = match carrier.or_else(|| book.document_in_slot(part.slot())) {
        Some(document) => document.head.net_terms,
        None => book.payment_terms(&part)?.0,
    };
    Ok(net_terms == NetTerms::DueUponUsage)
}
