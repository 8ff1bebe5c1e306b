//! The contract book: a contract with its parties, terms, documents, lines, sums and usage, as decisions need them. The book
//! makes no decisions. It answers look-ups, computes the content of drafts and applies entries.

mod calculations;
mod contents;
mod credit;
mod entries;
mod legal_particulars;
mod rows;

pub(super) use calculations::ExplainedContent;
pub use calculations::UnnumberedMention;
pub use legal_particulars::CurrencyPair;
pub use rows::{BillingFailure, BookRows, ContractHeader, ContractNotifications};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::Entry;
use super::credit::CreditView;
use crate::calendar::Timestamp;
use crate::charge::{Charge, Charges};
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ContractProduct, ContractState, ProductPeriod};
use crate::document::lines::{
    BillWith, BilledAmounts, BilledKey, DiscountAndTax, DocumentLedgerLine, DocumentLine, FamilySums, LedgerLine, LineKey,
    LineStatus,
};
use crate::document::linking::{BillingSlot, ProductPart, part_for, part_in};
use crate::document::numbering::DocumentNumber;
use crate::document::totals::{DocumentContent, RatedLines, UsageTotals, lines_of_period, total_up, usage_key};
use crate::document::{
    BookDocument, DocumentHead, DocumentKind, DraftContent, LifecycleStatus, Parties, Purpose, Settlement, join_notes,
};
use crate::money::{AmountOutOfRange, Money, MoneyError, Percentage};
use crate::party::bank::BankAccountProfile;
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::refs::{BankAccountRef, DocumentRef, EntityRef, LineItemId, ProductNo};
use crate::refusal::Refusal;
use crate::runs::DocumentFailure;
use crate::tax::{ConvertedTax, ExchangeRate, TaxTreatment};
use crate::text::Prose;
use crate::usage::{UsageKey, UsageTotal};

/// The part of a contract that a book was loaded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything except issued child documents of events due upon usage. Sufficient for every decision.
    Whole,
    /// The rows needed to add usage to existing drafts.
    Drafts,
    /// The rows needed to compute the content of all drafts, and to add usage to them.
    Open,
}

/// A contract with everything a decision about it needs.
#[derive(Clone, Debug)]
pub struct ContractBook {
    /// The contract.
    pub contract: Arc<Contract>,
    /// The customer who pays.
    pub customer: Arc<Customer>,
    /// The entities that bill the contract, in any version.
    pub entities: Vec<Arc<Entity>>,
    /// The bank accounts that payment details name; `None` if the account doesn't exist.
    bank_accounts: BTreeMap<BankAccountRef, Option<BankAccountProfile>>,
    /// The exchange rates from document currencies to the entities' tax currencies; `None` if no rate is known.
    exchange_rates: Vec<(CurrencyPair, Option<ExchangeRate>)>,
    extent: Extent,
    /// The instant at which the content of drafts is computed.
    as_of: Option<Timestamp>,
    /// The stored time of the next billing run; the outer `None` means that the contract isn't stored.
    next_due: Option<Option<Timestamp>>,
    documents: BTreeMap<DocumentRef, BookDocument>,
    /// In the order of opening.
    order: Vec<DocumentRef>,
    places: BTreeMap<BillingSlot, DocumentRef>,
    /// The lines of documents that are neither void nor a period's regular draft.
    lines: BTreeMap<DocumentRef, Vec<LedgerLine>>,
    /// The numbers and families of documents that the book has only lines of.
    elsewhere: BTreeMap<DocumentRef, (DocumentNumber, DocumentRef)>,
    /// The taxes of issued documents that were converted into the seller's tax currency.
    converted_taxes: BTreeMap<DocumentRef, ConvertedTax>,
    documented: BilledAmounts,
    /// The issued regular documents that bill the fixed items or the usage of a service period.
    billed_on: BTreeMap<(ProductNo, NaiveDate, BillWith), DocumentRef>,
    sums: BTreeMap<DocumentRef, FamilySums>,
    usage: UsageTotals,
    charges: Charges,
    /// The credit of the customer; `None` for a customer without.
    credit: Option<Arc<CreditView>>,
    with_events: BTreeSet<DocumentRef>,
    entries: Vec<Entry>,
    /// The number of entries that are already checked.
    checked: usize,
    /// What notifications about the contract need; no decision on documents reads it.
    pub notifications: ContractNotifications,
    /// Whether a new version of the contract ends on another day than the loaded version.
    is_end_moved: bool,
}

impl ContractBook {
    /// Creates the book of a contract without documents.
    pub fn new(contract: Contract, customer: Customer, entities: Vec<Entity>) -> Self {
        Self::of_shared(Arc::new(contract), Arc::new(customer), entities.into_iter().map(Arc::new).collect())
    }

    /// Does the same as [`new`](Self::new) for a contract and parties that other books may share.
    pub fn of_shared(contract: Arc<Contract>, customer: Arc<Customer>, entities: Vec<Arc<Entity>>) -> Self {
        Self {
            contract,
            customer,
            entities,
            bank_accounts: BTreeMap::new(),
            exchange_rates: Vec::new(),
            extent: Extent::Whole,
            as_of: None,
            next_due: None,
            documents: BTreeMap::new(),
            order: Vec::new(),
            places: BTreeMap::new(),
            lines: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            converted_taxes: BTreeMap::new(),
            documented: BilledAmounts::nothing(),
            billed_on: BTreeMap::new(),
            sums: BTreeMap::new(),
            usage: UsageTotals::default(),
            charges: Charges::default(),
            credit: None,
            with_events: BTreeSet::new(),
            entries: Vec::new(),
            checked: 0,
            notifications: ContractNotifications::default(),
            is_end_moved: false,
        }
    }

    /// Creates the book of a stored contract, before its rows are loaded.
    pub fn of(agreement: ContractHeader, entities: Vec<Arc<Entity>>) -> Self {
        let ContractHeader { contract, customer, next_due_at, notifications } = agreement;
        let (contract, customer) = (Arc::new(contract), Arc::new(customer));
        Self { next_due: Some(next_due_at), notifications, ..Self::of_shared(contract, customer, entities) }
    }

    /// Returns the book as it was before rows were loaded.
    #[must_use]
    pub fn without_rows(self) -> Self {
        let Self { contract, customer, entities, next_due, notifications, .. } = self;
        Self { next_due, notifications, ..Self::of_shared(contract, customer, entities) }
    }

    /// Adds the loaded rows.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] when a sum of lines is out of range.
    pub fn with_rows(mut self, extent: Extent, rows: BookRows) -> Result<Self, AmountOutOfRange> {
        self.extent = extent;
        for document in rows.documents {
            self.order.push(document.head.document_ref);
            self.note_places(&document.head, document.status);
            self.documents.insert(document.head.document_ref, document);
        }
        for DocumentLedgerLine { document_ref, family, number, converted_tax, line } in rows.lines {
            self.converted_taxes.extend(converted_tax.map(|tax| (document_ref, tax)));
            let status = self.line_status(document_ref, &line);
            self.documented.add(family, number.kind, &line, status)?;
            if !self.documents.contains_key(&document_ref) {
                self.elsewhere.entry(document_ref).or_insert((number, family));
            }
            self.lines.entry(document_ref).or_default().push(line);
        }
        for document_ref in self.order.clone() {
            self.note_billed(document_ref);
        }
        self.put_in_order();
        self.sums = rows.sums;
        self.usage = rows.usage;
        self.charges = Charges::new(rows.charges);
        self.with_events = rows.with_events;
        Ok(self)
    }

    /// Adds documents that a decision needs in addition: parents and children.
    pub fn add_documents(&mut self, documents: Vec<BookDocument>) {
        for document in documents {
            let document_ref = document.head.document_ref;
            if !self.documents.contains_key(&document_ref) {
                self.note_places(&document.head, document.status);
                self.order.push(document_ref);
                self.documents.insert(document_ref, document);
            }
        }
        self.put_in_order();
    }

    /// Sorts documents by the order of opening. Uses numbers, because timestamps are wrong if the clock was set back.
    fn put_in_order(&mut self) {
        let number =
            |document_ref: &DocumentRef| self.documents.get(document_ref).map(|document| document.head.number_in_contract);
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_key(number);
        self.order = order;
    }

    /// Returns whether a new version of the contract ends on another day than the loaded version.
    pub const fn is_end_moved(&self) -> bool {
        self.is_end_moved
    }

    /// Copies the status, the settlement and the number of notifications from documents of an account to the book's documents.
    pub fn note_settled<'a>(&mut self, settled: impl IntoIterator<Item = &'a BookDocument>) {
        for document in settled {
            if let Some(known) = self.documents.get_mut(&document.head.document_ref) {
                (known.status, known.settlement) = (document.status, document.settlement);
                known.notifications = document.notifications;
            }
        }
    }

    /// Returns the documents that billed the amounts of a credit, at the same discount and tax.
    pub fn takes_back(&self, credit: DocumentRef) -> BTreeSet<DocumentRef> {
        fn billed(lines: &[LedgerLine]) -> impl Iterator<Item = (&LineKey, &DiscountAndTax)> {
            lines.iter().filter(|line| line.amount.minor() != 0).map(|line| (&line.key, &line.rates))
        }
        let taken: BTreeSet<(&LineKey, &DiscountAndTax)> =
            self.lines.get(&credit).map_or_else(BTreeSet::new, |lines| billed(lines).collect());
        let bills = |lines: &[LedgerLine]| billed(lines).any(|line| taken.contains(&line));
        self.lines().filter(|(document_ref, lines)| *document_ref != credit && bills(lines)).map(|(other, _)| other).collect()
    }

    /// Replaces an incomplete running total by a recounted one.
    pub fn put_usage(&mut self, key: UsageKey, total: UsageTotal) {
        self.usage.put(key, total);
    }

    /// Returns the part of the contract that the book was loaded with.
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns all documents in the order of opening.
    pub fn documents(&self) -> impl DoubleEndedIterator<Item = &BookDocument> {
        self.order.iter().filter_map(|document_ref| self.documents.get(document_ref))
    }

    /// Returns a document of the book.
    pub fn document(&self, document_ref: DocumentRef) -> Option<&BookDocument> {
        self.documents.get(&document_ref)
    }

    /// Returns the amounts that documents in force bill.
    pub const fn documented(&self) -> &BilledAmounts {
        &self.documented
    }

    /// Returns the ledger lines of all documents except void documents and a period's regular drafts.
    pub fn lines(&self) -> impl Iterator<Item = (DocumentRef, &[LedgerLine])> {
        self.lines.iter().map(|(document_ref, lines)| (*document_ref, lines.as_slice()))
    }

    /// Returns whether a line of a document counts as issued.
    pub(super) fn line_status(&self, document_ref: DocumentRef, line: &LedgerLine) -> LineStatus {
        line_status(self.documents.get(&document_ref), line)
    }

    /// Returns whether events due upon usage have child documents that the book doesn't hold.
    pub fn has_children(&self) -> bool {
        self.lines.keys().any(|document_ref| !self.documents.contains_key(document_ref))
    }

    /// Returns the family of a document in force, also of an issued child that the book has only lines of.
    pub(super) fn family_of(&self, document_ref: DocumentRef) -> Option<DocumentRef> {
        let known = self.documents.get(&document_ref).map(|document| document.family);
        known.or_else(|| self.elsewhere.get(&document_ref).map(|(_, family)| *family))
    }

    /// Returns the sums of a family.
    pub fn sums_of(&self, family: DocumentRef) -> FamilySums {
        self.sums.get(&family).cloned().unwrap_or_default()
    }

    /// Returns the sums of all families.
    pub fn sums(&self) -> impl Iterator<Item = (DocumentRef, &FamilySums)> {
        self.sums.iter().map(|(family, sums)| (*family, sums))
    }

    /// Returns the running totals.
    pub const fn usage(&self) -> &UsageTotals {
        &self.usage
    }

    /// Returns the charges, including deleted ones.
    pub const fn charges(&self) -> &Charges {
        &self.charges
    }

    /// Returns whether a running total has all aggregations that the line items of its period need. Otherwise the events must
    /// be counted again.
    pub fn total_suffices(&self, key: &UsageKey, total: &UsageTotal) -> bool {
        self.contract
            .period_of(key)
            .is_none_or(|period| period.terms.rated_by(key).all(|(_, metered)| total.knows(metered.aggregation)))
    }

    /// Takes the entries added since the last call.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        self.checked = 0;
        std::mem::take(&mut self.entries)
    }

    /// Returns the entries whose effect on the amount invariants isn't checked yet.
    pub(super) fn unchecked_entries(&self) -> &[Entry] {
        self.entries.get(self.checked..).unwrap_or_default()
    }

    /// Marks all entries as checked against the amount invariants.
    pub(super) const fn note_checked(&mut self) {
        self.checked = self.entries.len();
    }

    /// Returns the entries that decisions added and that aren't taken yet.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Runs a decision that changes the book. After a refusal, restores the book from `before`, an earlier copy, and replays
    /// the entries added between the copy and the decision. One copy therefore serves many decisions if few are refused.
    ///
    /// # Errors
    /// Returns the error of the decision.
    pub fn decide_or_restore<T>(
        &mut self,
        before: &Self,
        decide: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let since = before.entries.len()..self.entries.len();
        let credit = self.credit.clone();
        let decided = decide(self);
        if decided.is_err() {
            let kept: Vec<Entry> = self.entries.drain(since).collect();
            self.clone_from(before);
            kept.into_iter().try_for_each(|entry| self.put(entry))?;
            // Other books may have drawn since the copy was made.
            self.credit = credit;
        }
        decided
    }

    /// Numbers the documents that entries open. `give` returns the next number of the document's series and the next number in
    /// the contract.
    ///
    /// # Errors
    /// Returns the error of `give`.
    pub fn number<E>(
        &mut self,
        entries: &mut [Entry],
        mut give: impl FnMut(&DocumentHead) -> Result<(u64, u32), E>,
    ) -> Result<(), E> {
        let mut given: BTreeMap<DocumentRef, (u64, u32)> = BTreeMap::new();
        for entry in entries {
            match entry {
                Entry::Opened { head, .. } => {
                    let numbers = give(head)?;
                    given.insert(head.document_ref, numbers);
                    (head.number.sequence, head.number_in_contract) = numbers;
                }
                Entry::Redrawn(head) => {
                    if let Some(numbers) = given.get(&head.document_ref) {
                        (head.number.sequence, head.number_in_contract) = *numbers;
                    }
                }
                Entry::Issued { document_ref, issued, mentions } => {
                    self.name_corrected(*document_ref, issued.paper.as_deref_mut(), &given);
                    self.name_mentioned(&mut issued.content, mentions, &given);
                }
                Entry::Discarded { document_ref, content, .. } => {
                    self.name_corrected(*document_ref, content.paper.as_deref_mut(), &given);
                }
                _ => {}
            }
        }
        for (document_ref, numbers) in given {
            if let Some(document) = self.documents.get_mut(&document_ref) {
                (document.head.number.sequence, document.head.number_in_contract) = numbers;
            }
        }
        Ok(())
    }

    /// Returns the contract's state at an instant, in the time zone of its first product's entity.
    pub fn state(&self, now: Timestamp) -> ContractState {
        let zone = self.contract.products.first().and_then(ContractProduct::newest_terms).and_then(|terms| {
            self.entities.iter().find(|entity| entity.entity_ref == terms.entity_ref).map(|entity| entity.profile.time_zone)
        });
        self.contract.state(zone.unwrap_or(crate::calendar::TimeZone::UTC), now)
    }

    /// Returns the instant at which the content of drafts is computed, if set.
    pub const fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// Sets the instant at which the content of drafts is computed. The content can depend on it (billing rules 7, defaults).
    pub const fn set_as_of(&mut self, now: Timestamp) {
        self.as_of = Some(now);
    }

    /// Returns the document in force in a slot.
    pub fn document_in_slot(&self, slot: BillingSlot) -> Option<&BookDocument> {
        self.places.get(&slot).and_then(|document_ref| self.documents.get(document_ref))
    }

    /// Returns the document that bills the fixed items or the usage of a service period. It is the issued document that billed
    /// them, even if the plan now has another slot for them, or else the document in the planned slot.
    pub(super) fn billing_document(&self, period: &ProductPeriod<'_>, with: BillWith) -> Option<&BookDocument> {
        let billed_on = self.billed_on.get(&(period.product_no, period.start(), with));
        billed_on
            .and_then(|document_ref| self.documents.get(document_ref))
            .or_else(|| self.document_in_slot(part_for(*period, with).slot()))
    }

    /// Returns whether an issued document bills the fixed items or the usage of a service period.
    pub(super) fn is_billed(&self, period: &ProductPeriod<'_>, with: BillWith) -> bool {
        self.billing_document(period, with).is_some_and(|home| home.status.is_issued())
    }

    /// Returns the oldest open adjustment of a parent and kind.
    pub(super) fn open_adjustment(&self, parent: DocumentRef, kind: DocumentKind) -> Option<&BookDocument> {
        self.documents().find(|document| {
            document.status == LifecycleStatus::Draft
                && document.head.purpose == Purpose::Adjustment
                && document.head.parent == Some(parent)
                && document.head.kind == kind
        })
    }

    /// Returns the ledger lines of a document.
    pub(super) fn lines_of(&self, document_ref: DocumentRef) -> &[LedgerLine] {
        self.lines.get(&document_ref).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a document carries an event.
    pub fn has_events(&self, document_ref: DocumentRef) -> bool {
        self.with_events.contains(&document_ref)
    }

    /// Returns whether a line belongs to a charge that isn't deleted. Such a document is issued at any amount, like a document
    /// with events.
    pub(super) fn is_of_live_charge(&self, line: &DocumentLine) -> bool {
        self.charges.of_line(line.line_item_id.as_ref()).is_some_and(|charge| !charge.deleted)
    }

    /// Returns the documents in force that carry a charge in its period, in the order of opening. These are the documents with
    /// a line of the charge, and the draft that bills the period. The result is empty for a deleted charge, and while a void
    /// document isn't replaced yet. It can be empty for a charge below zero that counts nothing.
    pub fn documents_of_charge(&self, charge: &Charge) -> Vec<&BookDocument> {
        let period = self.contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        let Some(period) = period.filter(|_| !charge.deleted) else { return Vec::new() };
        let key = LineKey {
            product_no: charge.product_no,
            period_start: period.start(),
            line_item_id: Some(charge.line_item_id()),
            bill_with: charge.bill_with,
        };
        let home = self.billing_document(&period, charge.bill_with).filter(|home| home.status == LifecycleStatus::Draft);
        let carries = |document: &&BookDocument| {
            let document_ref = document.head.document_ref;
            let has_line = || self.lines.get(&document_ref).is_some_and(|lines| lines.iter().any(|line| line.key == key));
            home.is_some_and(|home| home.head.document_ref == document_ref) || has_line()
        };
        self.documents().filter(|document| !document.status.is_void()).filter(carries).collect()
    }

    /// Returns whether a document that isn't void names this one as its parent. The book doesn't hold issued children of events
    /// due upon usage, but it has their family's sums.
    pub fn has_dependents(&self, document: &BookDocument) -> bool {
        let document_ref = document.head.document_ref;
        let named = |other: &&BookDocument| other.head.parent == Some(document_ref) && !other.status.is_void();
        let is_root_of_issued = document.family == document_ref
            && document.status == LifecycleStatus::Draft
            && self.sums.get(&document_ref).is_some_and(|sums| !sums.is_empty());
        is_root_of_issued || self.documents.values().any(|other| named(&other))
    }

    /// Returns a document, which must be in the book.
    pub(super) fn require_document(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        known(&self.documents, document_ref)
    }

    /// Returns an entity.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] when the entity isn't in the book.
    pub fn entity(&self, entity_ref: &EntityRef) -> Result<&Entity, Refusal> {
        let found = self.entities.iter().find(|entity| entity.entity_ref == *entity_ref);
        found.map(|entity| &**entity).ok_or_else(|| Refusal::Broken(format!("entity {entity_ref} isn't in the book")))
    }

    /// Returns a product of the contract.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] when the contract has no such product.
    pub fn product(&self, no: ProductNo) -> Result<&ContractProduct, Refusal> {
        product_of(&self.contract, no)
    }

    /// Returns the service date of an instant in the time zone of the entity of the terms.
    ///
    /// # Errors
    /// Returns [`Refusal::Broken`] when the entity isn't in the book.
    pub fn today(&self, terms: &ProductTerms, now: Timestamp) -> Result<NaiveDate, Refusal> {
        Ok(self.entity(&terms.entity_ref)?.profile.time_zone.service_date(now))
    }

    /// Returns when a part's document is due to be issued.
    pub(super) fn due_at(&self, part: &ProductPart<'_>) -> Result<Timestamp, Refusal> {
        Ok(part.due_at(self.entity(&part.own.terms.entity_ref)?))
    }

    /// Returns the net terms and payment details of a document that a part opens now, from the newest terms (billing rules 7).
    pub(super) fn payment_terms(&self, part: &ProductPart<'_>) -> Result<(NetTerms, PaymentDetails), Refusal> {
        let entity = self.entity(&part.own.terms.entity_ref)?;
        let newest = self.product(part.own.product_no)?.newest_terms().unwrap_or(part.own.terms);
        Ok((newest.net_terms(&self.customer, entity), newest.payment(&self.customer, entity)))
    }

    /// Refuses decisions that need more than the loaded rows. This is a defect of the loading code.
    pub(super) fn require_whole(&self) -> Result<(), Refusal> {
        match self.extent {
            Extent::Whole => Ok(()),
            Extent::Drafts | Extent::Open => Err(Refusal::Broken("the book was read for drafts alone".to_owned())),
        }
    }
}

fn known(documents: &BTreeMap<DocumentRef, BookDocument>, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
    documents.get(&document_ref).ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the book")))
}

/// Returns whether a line counts as issued. The document of an event counts also while it waits, but not with an amount of zero,
/// which a change of the event left. Only issued children of events are not in the book.
fn line_status(document: Option<&BookDocument>, line: &LedgerLine) -> LineStatus {
    let waits = |document: &BookDocument| document.head.purpose == Purpose::Usage && line.amount.minor() != 0;
    let is_issued = document.is_none_or(|document| document.status.is_issued() || waits(document));
    if is_issued { LineStatus::Issued } else { LineStatus::Open }
}

/// Returns a product, which must be in the contract.
pub(super) fn product_of(contract: &Contract, no: ProductNo) -> Result<&ContractProduct, Refusal> {
    contract.product(no).ok_or_else(|| Refusal::Broken(format!("contract {} has no product {}", contract.contract_ref, no.0)))
}

/// Returns whether a document is a child that bills an amount and waits to be issued.
fn waits_as_bill(document: &BookDocument) -> bool {
    let is_child = document.head.purpose == Purpose::Usage && document.head.kind != DocumentKind::Credit;
    is_child && document.status == LifecycleStatus::Draft
}
