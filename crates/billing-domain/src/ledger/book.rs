//! One contract with everything a decision about it needs: parties, terms, documents, lines, sums and usage.
//! It decides nothing: it answers look-ups, says what drafts say, and takes entries up.

mod legal_particulars;

pub use legal_particulars::CurrencyPair;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::Entry;
use crate::calendar::Timestamp;
use crate::charge::{Charge, Charges};
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ContractProduct, ContractState, ProductPeriod};
use crate::document::lines::{
    BillWith, BilledAmounts, BilledKey, DiscountAndTax, DocumentLedgerLine, DocumentLine, FamilySums, LedgerLine, LineKey,
};
use crate::document::linking::{BillingSlot, ProductPart, part_for, part_in};
use crate::document::totals::{DocumentContent, RatedLines, UsageTotals, lines_of_period, total_up};
use crate::document::{
    BookDocument, DocumentHead, DocumentKind, DraftContent, LifecycleStatus, Parties, Purpose, Settlement, join_notes,
};
use crate::money::{AmountOutOfRange, Money, MoneyError, Percentage};
use crate::party::bank::BankAccountProfile;
use crate::party::{Customer, Entity, NetTerms, PaymentDetails};
use crate::refs::{BankAccountRef, DocumentRef, EntityRef, LineItemId, ProductNo};
use crate::refusal::Refusal;
use crate::tax::{ExchangeRate, TaxTreatment};
use crate::text::Prose;
use crate::usage::{UsageKey, UsageTotal};

/// How much of a contract a book was read with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it but the issued children of events due upon usage: every decision can be made.
    Whole,
    /// What adding usage to drafts that are there needs.
    Drafts,
}

/// The rows a book is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookRows {
    /// The contract's documents by creation, void ones too; of the children of events due upon usage the open ones alone.
    pub documents: Vec<BookDocument>,
    /// The ledger lines of the contract's documents that aren't void, of children, too.
    pub lines: Vec<DocumentLedgerLine>,
    /// The sums of their families.
    pub sums: BTreeMap<DocumentRef, FamilySums>,
    /// The running totals.
    pub usage: UsageTotals,
    /// The charges, deleted ones too.
    pub charges: Vec<Charge>,
    /// Those of its drafts and void documents that an event stands on that isn't deleted.
    pub with_events: BTreeSet<DocumentRef>,
}

/// A contract as it is stored, before anything of its book is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractHeader {
    /// The contract.
    pub contract: Contract,
    /// Who pays.
    pub customer: Customer,
    /// When the billing run looks at the contract again; `None`: never.
    pub next_due_at: Option<Timestamp>,
}

/// One contract's book.
#[derive(Clone, Debug)]
pub struct ContractBook {
    /// The contract.
    pub contract: Arc<Contract>,
    /// Who pays.
    pub customer: Customer,
    /// Who bills it, in any version.
    pub entities: Vec<Entity>,
    /// The bank accounts that payment details name; `None` of one that isn't there.
    bank_accounts: BTreeMap<BankAccountRef, Option<BankAccountProfile>>,
    /// What documents' currencies are worth in those that entities account for tax in; `None` where nobody said.
    exchange_rates: Vec<(CurrencyPair, Option<ExchangeRate>)>,
    extent: Extent,
    /// The instant at which drafts are looked at.
    as_of: Option<Timestamp>,
    /// When the billing run looks at the contract again, as stored; unknown of a contract that isn't.
    next_due: Option<Option<Timestamp>>,
    documents: BTreeMap<DocumentRef, BookDocument>,
    /// In the order they were opened.
    order: Vec<DocumentRef>,
    places: BTreeMap<BillingSlot, DocumentRef>,
    /// Of documents that aren't void and aren't a period's own draft.
    lines: BTreeMap<DocumentRef, Vec<LedgerLine>>,
    documented: BilledAmounts,
    /// The issued documents of periods' own that bill the fixed items or the usage of a service period.
    billed_on: BTreeMap<(ProductNo, NaiveDate, BillWith), DocumentRef>,
    sums: BTreeMap<DocumentRef, FamilySums>,
    usage: UsageTotals,
    charges: Charges,
    with_events: BTreeSet<DocumentRef>,
    entries: Vec<Entry>,
    /// How many of them were checked.
    checked: usize,
}

impl ContractBook {
    /// The book of a contract that has nothing yet.
    pub fn new(contract: Contract, customer: Customer, entities: Vec<Entity>) -> Self {
        Self {
            contract: Arc::new(contract),
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
            documented: BilledAmounts::nothing(),
            billed_on: BTreeMap::new(),
            sums: BTreeMap::new(),
            usage: UsageTotals::default(),
            charges: Charges::default(),
            with_events: BTreeSet::new(),
            entries: Vec::new(),
            checked: 0,
        }
    }

    /// The book of a stored contract, before anything else of it is read.
    pub fn of(agreement: ContractHeader, entities: Vec<Entity>) -> Self {
        let ContractHeader { contract, customer, next_due_at } = agreement;
        Self { next_due: Some(next_due_at), ..Self::new(contract, customer, entities) }
    }

    /// With what was read of it.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when the lines can't be added up.
    pub fn with_rows(mut self, extent: Extent, rows: BookRows) -> Result<Self, AmountOutOfRange> {
        self.extent = extent;
        for document in rows.documents {
            self.order.push(document.head.document_ref);
            self.note_places(&document.head, document.status);
            self.documents.insert(document.head.document_ref, document);
        }
        for DocumentLedgerLine { document_ref, family, kind, line } in rows.lines {
            self.documented.add(family, kind, &line, 1)?;
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

    /// Adds documents that a decision turned out to need: parents and children.
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

    /// In the order they were opened, which a clock that was put back doesn't tell; numbers do.
    fn put_in_order(&mut self) {
        let number =
            |document_ref: &DocumentRef| self.documents.get(document_ref).map(|document| document.head.number_in_contract);
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_key(number);
        self.order = order;
    }

    /// Notes what an account says of documents, of those that it holds.
    pub fn note_settled<'a>(&mut self, settled: impl IntoIterator<Item = &'a BookDocument>) {
        for document in settled {
            if let Some(known) = self.documents.get_mut(&document.head.document_ref) {
                (known.status, known.settlement) = (document.status, document.settlement);
            }
        }
    }

    /// The documents that bill what a credit takes back of, at the rates at which it does.
    pub fn takes_back(&self, credit: DocumentRef) -> BTreeSet<DocumentRef> {
        fn billed(lines: &[LedgerLine]) -> impl Iterator<Item = (&LineKey, &DiscountAndTax)> {
            lines.iter().filter(|line| line.amount.minor() != 0).map(|line| (&line.key, &line.rates))
        }
        let taken: BTreeSet<(&LineKey, &DiscountAndTax)> =
            self.lines.get(&credit).map_or_else(BTreeSet::new, |lines| billed(lines).collect());
        let bills = |lines: &[LedgerLine]| billed(lines).any(|line| taken.contains(&line));
        self.lines().filter(|(document_ref, lines)| *document_ref != credit && bills(lines)).map(|(other, _)| other).collect()
    }

    /// Puts a running total that was counted again in the place of one that doesn't tell all.
    pub fn put_usage(&mut self, key: UsageKey, total: UsageTotal) {
        self.usage.put(key, total);
    }

    /// How much of the contract it was read with.
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    /// All documents, in the order they were opened.
    pub fn documents(&self) -> impl DoubleEndedIterator<Item = &BookDocument> {
        self.order.iter().filter_map(|document_ref| self.documents.get(document_ref))
    }

    /// A document.
    pub fn document(&self, document_ref: DocumentRef) -> Option<&BookDocument> {
        self.documents.get(&document_ref)
    }

    /// What documents in force bill.
    pub const fn documented(&self) -> &BilledAmounts {
        &self.documented
    }

    /// The ledger lines of documents that aren't void: of all but a period's own drafts.
    pub fn lines(&self) -> impl Iterator<Item = (DocumentRef, &[LedgerLine])> {
        self.lines.iter().map(|(document_ref, lines)| (*document_ref, lines.as_slice()))
    }

    /// Whether events due upon usage have documents of their own, which the book doesn't hold.
    pub fn has_children(&self) -> bool {
        self.lines.keys().any(|document_ref| !self.documents.contains_key(document_ref))
    }

    /// The sums of a family.
    pub fn sums_of(&self, family: DocumentRef) -> FamilySums {
        self.sums.get(&family).cloned().unwrap_or_default()
    }

    /// The sums of all families.
    pub fn sums(&self) -> impl Iterator<Item = (DocumentRef, &FamilySums)> {
        self.sums.iter().map(|(family, sums)| (*family, sums))
    }

    /// The running totals.
    pub const fn usage(&self) -> &UsageTotals {
        &self.usage
    }

    /// The charges, deleted ones too.
    pub const fn charges(&self) -> &Charges {
        &self.charges
    }

    /// Whether a running total tells what the line items of its period ask for; else only counting the events again does.
    pub fn total_suffices(&self, key: &UsageKey, total: &UsageTotal) -> bool {
        let period = self.contract.product(key.product_no).and_then(|product| product.period_from(key.period_start));
        period.is_none_or(|period| {
            period.terms.metering(&key.usage_product_ref).all(|(_, metered)| total.knows(metered.aggregation))
        })
    }

    /// What decisions have written since it was asked last.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        self.checked = 0;
        std::mem::take(&mut self.entries)
    }

    /// Entries whose effect on the laws of amounts wasn't checked yet.
    pub(super) fn unchecked_entries(&self) -> &[Entry] {
        self.entries.get(self.checked..).unwrap_or_default()
    }

    /// Notes that the laws of amounts hold with all entries.
    pub(super) const fn note_checked(&mut self) {
        self.checked = self.entries.len();
    }

    /// What decisions have written and nobody took yet.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Lets a decision change the book. A refusal leaves it as it was: as `before`, a copy of it, with what was decided since. So
    /// one copy does for any number of decisions, of which few are refused.
    ///
    /// # Errors
    /// The decision's.
    pub fn decide_or_restore<T>(
        &mut self,
        before: &Self,
        decide: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let since = before.entries.len()..self.entries.len();
        let decided = decide(self);
        if decided.is_err() {
            let kept: Vec<Entry> = self.entries.drain(since).collect();
            self.clone_from(before);
            kept.into_iter().try_for_each(|entry| self.put(entry))?;
        }
        decided
    }

    /// Gives the documents that entries open their numbers: `give` answers the next of their series, and in the contract.
    ///
    /// # Errors
    /// What `give` says.
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
                Entry::Issued { document_ref, issued } => self.name_corrected(*document_ref, issued.paper.as_deref_mut(), &given),
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

    /// The contract's state at an instant, by the calendar of its first product's entity.
    pub fn state(&self, now: Timestamp) -> ContractState {
        let zone = self.contract.products.first().and_then(ContractProduct::newest_terms).and_then(|terms| {
            self.entities.iter().find(|entity| entity.entity_ref == terms.entity_ref).map(|entity| entity.profile.time_zone)
        });
        self.contract.state(zone.unwrap_or(crate::calendar::TimeZone::UTC), now)
    }

    /// What a draft says now; of any other document it isn't known here.
    ///
    /// # Errors
    /// [`Refusal::AmountOutOfRange`]; [`Refusal::Broken`] when the book doesn't hold what it is asked for.
    pub fn content(&self, document_ref: DocumentRef) -> Result<DocumentContent, Refusal> {
        let document = self.require_document(document_ref)?;
        // Discount and tax are differences: over what is issued, then over the drafts opened before (billing rules 5).
        let mut sums = self.sums_of(document.family);
        for other in self.documents().filter(|other| other.family == document.family && other.status == LifecycleStatus::Draft) {
            let content = total_up(other.head.currency, other.head.kind, self.rated_lines(other, None)?, &sums)?;
            if other.head.document_ref == document_ref {
                return Ok(content);
            }
            content.add_to(&mut sums, other.head.kind, 1)?;
        }
        Err(Refusal::Broken(format!("document {document_ref} is no draft")))
    }

    /// What a draft says when it is issued now, with those of its lines that are kept: its discount and tax follow what is
    /// issued of its family.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub(super) fn content_if_issued(
        &self,
        document_ref: DocumentRef,
        now: Timestamp,
        keep: impl Fn(&DocumentLine) -> bool,
    ) -> Result<DocumentContent, Refusal> {
        let document = self.require_document(document_ref)?;
        let mut lines = self.rated_lines(document, Some(now))?;
        for rated in &mut lines {
            rated.lines.retain(&keep);
        }
        Ok(total_up(document.head.currency, document.head.kind, lines, &self.sums_of(document.family))?)
    }

    /// What a draft says now, with everything that is frozen when it is put out of force.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn draft_content(&self, document_ref: DocumentRef) -> Result<DraftContent, Refusal> {
        let head = &self.require_document(document_ref)?.head;
        let content = self.content(document_ref)?;
        let rate = self.rate_of_exchange(&head.entity_ref, head.currency)?.flatten();
        Ok(DraftContent {
            parties: Parties::of(&self.customer, self.entity(&head.entity_ref)?),
            po_number: self.contract.po_number.clone(),
            note: self.note_of(head),
            paper: Some(Box::new(self.paper_of(head, &content, rate)?)),
            content,
        })
    }

    /// The notes that a document that isn't issued shows: its products', as they were agreed last.
    pub fn note_of(&self, head: &DocumentHead) -> Option<Prose> {
        match head.purpose {
            Purpose::Regular(_) => {
                let products = head.parts.iter().filter_map(|no| self.contract.product(*no)?.newest_terms());
                join_notes(products.filter_map(|terms| terms.note.as_ref()))
            }
            Purpose::Usage | Purpose::Adjustment => None,
        }
    }

    /// A draft's lines, with what they are billed at, when it is issued at an instant or, without one, as it is expected to be.
    fn rated_lines(&self, document: &BookDocument, issued_at: Option<Timestamp>) -> Result<Vec<RatedLines<'_>>, Refusal> {
        match document.head.purpose {
            Purpose::Regular(slot) => {
                let mut rated = Vec::new();
                for no in &document.head.parts {
                    let product = self.product(*no)?;
                    let place = BillingSlot { product_no: *no, period_start: document.head.period.start(), slot };
                    if let Some(part) = part_in(product, place) {
                        rated.extend(self.lines_of_part(&part, issued_at)?);
                    }
                }
                if document.head.kind == DocumentKind::Credit {
                    // It stands for a debit below zero, and says what it gives back.
                    for line in rated.iter_mut().flat_map(|rated| &mut rated.lines) {
                        line.amount = Money::zero(line.amount.currency()).checked_sub(line.amount)?;
                    }
                }
                Ok(rated)
            }
            Purpose::Usage if waits_as_bill(document) => self.lines_of_ledger(&self.lines_if_issued(document, issued_at)?),
            Purpose::Usage | Purpose::Adjustment => self.lines_of_ledger(self.lines_of(document.head.document_ref)),
        }
    }

    /// Returns the lines of a child document that waits to be issued, as they are if it is issued at an instant or, without one, now.
    /// What the child bills has the default tax in force on the day of issue, not on the day of the event (billing rules 7). Lines
    /// that take back an amount, and amounts that were taken back since, keep the tax at which they were billed.
    fn lines_if_issued(&self, child: &BookDocument, issued_at: Option<Timestamp>) -> Result<Vec<LedgerLine>, Refusal> {
        let mut issued: Vec<LedgerLine> = Vec::new();
        for (index, line) in self.lines_of(child.head.document_ref).iter().enumerate() {
            let period = self.product(line.key.product_no)?.period_at(line.key.period_start);
            let mut rest = line.clone();
            if let (Some(period), Some(at)) = (period, issued_at.or(self.as_of))
                && line.has_default_tax
                && line.amount.minor() > 0
            {
                let day = self.today(period.terms, at)?.min(period.days().last_day());
                let tax = self.treatment_on(period.terms, day)?;
                let moved = if tax == line.rates.tax { 0 } else { self.standing_amount(child, index, line) };
                if moved != 0 {
                    let amount = Money::from_minor(moved, line.amount.currency());
                    rest = LedgerLine { amount: line.amount.checked_sub(amount)?, usage: None, ..rest };
                    issued.push(LedgerLine { rates: DiscountAndTax { tax, ..line.rates.clone() }, amount, ..line.clone() });
                }
            }
            if rest.amount.minor() != 0 || line.amount.minor() == 0 {
                issued.push(rest);
            }
        }
        Ok(issued)
    }

    /// Returns the part of a waiting child's line that no later document took back, in minor units. Amounts taken back reduce the
    /// latest child first.
    fn standing_amount(&self, child: &BookDocument, index: usize, line: &LedgerLine) -> i64 {
        let billed = line.billed_by(child.family);
        let of_period = self.documented.of_period(line.key.product_no, line.key.period_start);
        let standing: i64 = of_period.filter(|(key, _)| **key == billed).map(|(_, minor)| minor).sum();
        let mut before = 0;
        for other in self.documents().filter(|other| waits_as_bill(other) && other.family == child.family) {
            let order = |document: &BookDocument| (document.head.number_in_contract, document.head.document_ref);
            let (is_same, is_earlier) = (order(other) == order(child), order(other) < order(child));
            let lines = self.lines_of(other.head.document_ref).iter().enumerate();
            let earlier = lines.filter(|(at, _)| is_earlier || is_same && *at < index).map(|(_, line)| line);
            before += earlier.filter(|it| it.billed_by(child.family) == billed).map(|it| it.amount.minor().max(0)).sum::<i64>();
        }
        (standing - before).clamp(0, line.amount.minor())
    }

    /// Ledger lines as a document shows them, by product and rates.
    pub(super) fn lines_of_ledger(&self, lines: &[LedgerLine]) -> Result<Vec<RatedLines<'_>>, Refusal> {
        let mut groups: BTreeMap<(ProductNo, &DiscountAndTax), Vec<&LedgerLine>> = BTreeMap::new();
        for line in lines {
            groups.entry((line.key.product_no, &line.rates)).or_default().push(line);
        }
        let mut rated = Vec::new();
        for ((product_no, rates), lines) in groups {
            let product = self.product(product_no)?;
            let period = |line: &LedgerLine| product.period_at(line.key.period_start);
            let terms = period(lines[0]).map(|period| period.terms).or(product.newest_terms());
            let terms = terms.ok_or_else(|| Refusal::Broken(format!("product {} has no terms", product_no.0)))?;
            let shown =
                |line: &LedgerLine| line.shown(period(line).as_ref(), self.charges.name_of(line.key.line_item_id.as_ref()));
            let lines = lines.into_iter().map(shown).collect();
            rated.push(RatedLines { product_no, terms, rates: rates.clone(), lines });
        }
        Ok(rated)
    }

    /// What a product's part of a regular draft bills: its periods' prices, less what other documents bill of them. What an issued
    /// document bills is put right by adjustments of it.
    pub(super) fn lines_of_part(
        &self,
        part: &ProductPart<'_>,
        issued_at: Option<Timestamp>,
    ) -> Result<Vec<RatedLines<'_>>, Refusal> {
        let product = self.product(part.own.product_no)?;
        let find = |period: &ProductPeriod<'_>| -> Result<ProductPeriod<'_>, Refusal> {
            product.period_from(period.start()).ok_or_else(|| Refusal::Broken("a period of another contract".to_owned()))
        };
        let own = find(&part.own)?;
        let mut by_rates: Vec<RatedLines<'_>> = Vec::new();
        let accounts = if part.fixed == part.usage {
            vec![(part.fixed, &[BillWith::Fixed, BillWith::Usage][..])]
        } else {
            vec![(part.fixed, &[BillWith::Fixed][..]), (part.usage, &[BillWith::Usage][..])]
        };
        for (period, withs) in accounts {
            let Some(period) = period else { continue };
            let period = find(&period)?;
            let open: Vec<BillWith> = withs.iter().copied().filter(|with| !self.is_billed(&period, *with)).collect();
            let day = self.taxed_on(part, &period, issued_at)?;
            let unbilled = self.unbilled(&period, &self.price_of(&period)?, false)?;
            for unbilled in unbilled.lines.into_iter().filter(|unbilled| open.contains(&unbilled.line.bill_with)) {
                let amount = unbilled.rest()?;
                if unbilled.is_unpriced && amount.minor() == 0 {
                    continue;
                }
                let (rates, has_default_tax) = self.rates_on(unbilled.line.line_item_id.as_ref(), period.terms, day)?;
                let line = DocumentLine { amount, has_default_tax, ..unbilled.line };
                match by_rates.iter_mut().find(|rated| rated.rates == rates) {
                    Some(rated) => rated.lines.push(line),
                    None => by_rates.push(RatedLines { product_no: product.no, terms: period.terms, rates, lines: vec![line] }),
                }
            }
        }
        if by_rates.is_empty() {
            let (rates, _) = self.rates_on(None, own.terms, self.taxed_on(part, &own, issued_at)?)?;
            by_rates.push(RatedLines { product_no: product.no, terms: own.terms, rates, lines: Vec::new() });
        }
        Ok(by_rates)
    }

    /// The day whose default tax a period's lines have on a part's document: that of its issue, or the last of the service period if
    /// that is earlier (billing rules 7).
    fn taxed_on(
        &self,
        part: &ProductPart<'_>,
        period: &ProductPeriod<'_>,
        issued_at: Option<Timestamp>,
    ) -> Result<NaiveDate, Refusal> {
        let today = issued_at.or(self.as_of).map(|at| self.today(part.own.terms, at)).transpose()?;
        let issue_day = match (issued_at, today) {
            (Some(_), Some(today)) => today,
            (_, today) => today.map_or(part.issue_day(), |today| today.max(part.issue_day())),
        };
        Ok(issue_day.min(period.days().last_day()))
    }

    /// The lines of a period's price with the usage there is.
    pub(super) fn price_of(&self, period: &ProductPeriod<'_>) -> Result<Vec<DocumentLine>, MoneyError> {
        lines_of_period(&self.contract, period, &self.usage, &self.charges)
    }

    /// Discount and tax of a line of terms with the default taxes of a day, and whether the tax follows one. A charge that isn't
    /// discountable has no discount (billing rules 5, 7).
    pub(super) fn rates_on(
        &self,
        line_item: Option<&LineItemId>,
        terms: &ProductTerms,
        day: NaiveDate,
    ) -> Result<(DiscountAndTax, bool), Refusal> {
        let stated = terms.stated_tax();
        let rates = DiscountAndTax { discount: self.discount_of(line_item, terms), tax: self.treatment_on(terms, day)? };
        Ok((rates, !stated.is_complete()))
    }

    /// The discount of a line of terms in percent.
    pub(super) fn discount_of(&self, line_item: Option<&LineItemId>, terms: &ProductTerms) -> Percentage {
        let is_discountable = self.charges.of_line(line_item).is_none_or(|charge| charge.discountable);
        terms.discount.filter(|_| is_discountable).unwrap_or(Percentage::ZERO)
    }

    /// How terms are taxed with the default taxes of a day: as they say, or else the customer, or else their entity (billing
    /// rules 7, 10).
    pub fn treatment_on(&self, terms: &ProductTerms, day: NaiveDate) -> Result<TaxTreatment, Refusal> {
        let entity = self.entity(&terms.entity_ref)?.profile.taxes.on(day);
        Ok(TaxTreatment::of(&[terms.stated_tax(), self.customer.profile.taxes.on(day), entity]))
    }

    /// Whether what is billed stands at the discount and the tax in force (billing rules 5). What the contract leaves to a default
    /// stands at what its document had at its issue.
    pub(super) fn has_current_rates(&self, billed: &BilledKey, terms: &ProductTerms) -> bool {
        billed.rates.discount == self.discount_of(billed.line.line_item_id.as_ref(), terms)
            && terms.stated_tax().allows(&billed.rates.tax)
    }

    /// The instant at which drafts are looked at, where one is known.
    pub const fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// Says at which instant drafts are looked at: what they say can depend on it (billing rules 7, defaults).
    pub const fn set_as_of(&mut self, now: Timestamp) {
        self.as_of = Some(now);
    }

    /// The document in force in a place.
    pub fn document_in_slot(&self, place: BillingSlot) -> Option<&BookDocument> {
        self.places.get(&place).and_then(|document_ref| self.documents.get(document_ref))
    }

    /// The document that bills the fixed items or the usage of a service period: the issued one that did, wherever the plan
    /// would put it now, or else the one in the place that the plan has for it.
    pub(super) fn billing_document(&self, period: &ProductPeriod<'_>, with: BillWith) -> Option<&BookDocument> {
        let billed_on = self.billed_on.get(&(period.product_no, period.start(), with));
        billed_on
            .and_then(|document_ref| self.documents.get(document_ref))
            .or_else(|| self.document_in_slot(part_for(*period, with).place()))
    }

    /// Whether the fixed items or the usage of a service period are billed by an issued document.
    pub(super) fn is_billed(&self, period: &ProductPeriod<'_>, with: BillWith) -> bool {
        self.billing_document(period, with).is_some_and(|home| home.status.is_issued())
    }

    /// The open adjustment of a parent and kind; the oldest, where there are several.
    pub(super) fn open_adjustment(&self, parent: DocumentRef, kind: DocumentKind) -> Option<&BookDocument> {
        self.documents().find(|document| {
            document.status == LifecycleStatus::Draft
                && document.head.purpose == Purpose::Adjustment
                && document.head.parent == Some(parent)
                && document.head.kind == kind
        })
    }

    /// The ledger lines of a document.
    pub(super) fn lines_of(&self, document_ref: DocumentRef) -> &[LedgerLine] {
        self.lines.get(&document_ref).map_or(&[], Vec::as_slice)
    }

    /// Whether an event stands on a document.
    pub fn has_events(&self, document_ref: DocumentRef) -> bool {
        self.with_events.contains(&document_ref)
    }

    /// Whether a line is of a charge that counts: its document is issued at any amount, as with events.
    pub(super) fn is_of_live_charge(&self, line: &DocumentLine) -> bool {
        self.charges.of_line(line.line_item_id.as_ref()).is_some_and(|charge| !charge.deleted)
    }

    /// The documents in force that carry a charge in the period it counts in, in the order they were opened: those with a
    /// line of it, and the draft that bills the period. None of a deleted one, and none between a void document and what
    /// replaces it.
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

    /// Whether a document that isn't void names one as its parent. The children of events due upon usage aren't in the
    /// book, but their family's sums are.
    pub fn has_dependents(&self, document: &BookDocument) -> bool {
        let document_ref = document.head.document_ref;
        let named = |other: &&BookDocument| other.head.parent == Some(document_ref) && !other.status.is_void();
        let is_root_of_issued = document.family == document_ref
            && document.status == LifecycleStatus::Draft
            && self.sums.get(&document_ref).is_some_and(|sums| !sums.is_empty());
        is_root_of_issued || self.documents.values().any(|other| named(&other))
    }

    /// A document that must be there.
    pub(super) fn require_document(&self, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
        self.documents.get(&document_ref).ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the book")))
    }

    /// An entity that must be there.
    pub fn entity(&self, entity_ref: &EntityRef) -> Result<&Entity, Refusal> {
        let found = self.entities.iter().find(|entity| entity.entity_ref == *entity_ref);
        found.ok_or_else(|| Refusal::Broken(format!("entity {entity_ref} isn't in the book")))
    }

    /// A product that must be there.
    pub fn product(&self, no: ProductNo) -> Result<&ContractProduct, Refusal> {
        product_of(&self.contract, no)
    }

    /// The service date of an instant, where terms bill.
    ///
    /// # Errors
    /// [`Refusal::Broken`] when their entity isn't in the book.
    pub fn today(&self, terms: &ProductTerms, now: Timestamp) -> Result<NaiveDate, Refusal> {
        Ok(self.entity(&terms.entity_ref)?.profile.time_zone.service_date(now))
    }

    /// When a part's document is issued.
    pub(super) fn due_at(&self, part: &ProductPart<'_>) -> Result<Timestamp, Refusal> {
        Ok(part.due_at(self.entity(&part.own.terms.entity_ref)?))
    }

    /// Net terms and payment details of a document that a part opens now: the newest agreed (billing rules 7).
    pub(super) fn payment_terms(&self, part: &ProductPart<'_>) -> Result<(NetTerms, PaymentDetails), Refusal> {
        let entity = self.entity(&part.own.terms.entity_ref)?;
        let newest = self.product(part.own.product_no)?.newest_terms().unwrap_or(part.own.terms);
        Ok((newest.net_terms(&self.customer, entity), newest.payment(&self.customer, entity)))
    }

    /// Refuses decisions that need more than was read: a defect of the reader.
    pub(super) fn require_whole(&self) -> Result<(), Refusal> {
        match self.extent {
            Extent::Whole => Ok(()),
            Extent::Drafts => Err(Refusal::Broken("the book was read for drafts alone".to_owned())),
        }
    }

    /// Notes when the billing run has to look at the contract again, where that changes.
    pub(super) fn put_due(&mut self, at: Option<Timestamp>) -> Result<(), Refusal> {
        if self.next_due == Some(at) { Ok(()) } else { self.put(Entry::Due(at)) }
    }

    /// Notes that the billing run has to look at the contract at an instant, if it doesn't before.
    pub(super) fn bring_due_forward(&mut self, at: Timestamp) -> Result<(), Refusal> {
        let is_before = self.next_due.flatten().is_some_and(|due| due <= at);
        if is_before { Ok(()) } else { self.put_due(Some(at)) }
    }

    /// Takes an entry up, and keeps it to be written.
    pub(super) fn put(&mut self, entry: Entry) -> Result<(), Refusal> {
        self.apply(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), Refusal> {
        match entry {
            Entry::Amended(contract) => self.contract = Arc::new((**contract).clone()),
            Entry::Opened { head, family } => {
                let document = BookDocument {
                    head: (**head).clone(),
                    family: *family,
                    status: LifecycleStatus::Draft,
                    total: None,
                    issue_date: None,
                    due_date: None,
                    settlement: Settlement::none(head.currency),
                };
                self.note_places(head, LifecycleStatus::Draft);
                self.order.push(head.document_ref);
                self.documents.insert(head.document_ref, document);
            }
            Entry::Redrawn(head) => {
                self.places.retain(|_, standing| *standing != head.document_ref);
                self.note_places(head, LifecycleStatus::Draft);
                self.change(head.document_ref, |document| document.head = (**head).clone())?;
            }
            Entry::Lines { document_ref, lines } => self.replace_lines(*document_ref, lines.clone())?,
            Entry::Issued { document_ref, issued } => {
                self.replace_lines(*document_ref, issued.content.ledger_lines())?;
                let (family, kind) = self.change(*document_ref, |document| {
                    document.status = LifecycleStatus::Issued;
                    document.total = Some(issued.content.total);
                    document.issue_date = Some(issued.issue_date);
                    document.due_date = Some(issued.due_date);
                    (document.family, document.head.kind)
                })?;
                issued.content.add_to(self.sums.entry(family).or_default(), kind, 1)?;
                self.note_billed(*document_ref);
            }
            Entry::Discarded { document_ref, .. } => {
                self.replace_lines(*document_ref, Vec::new())?;
                self.places.retain(|_, standing| standing != document_ref);
                self.change(*document_ref, |document| document.status = LifecycleStatus::Discarded)?;
            }
            Entry::Voided { document_ref, content, .. } => {
                self.billed_on.retain(|_, billing| billing != document_ref);
                self.replace_lines(*document_ref, Vec::new())?;
                self.places.retain(|_, standing| standing != document_ref);
                let (family, kind) = self.change(*document_ref, |document| {
                    document.status = LifecycleStatus::Void;
                    (document.family, document.head.kind)
                })?;
                content.add_to(self.sums.entry(family).or_default(), kind, -1)?;
            }
            Entry::EventsMoved { from, to, of } => {
                if self.with_events.contains(from) {
                    self.with_events.insert(*to);
                    if of.is_none() {
                        self.with_events.remove(from);
                    }
                }
            }
            Entry::UsageMoved { key, total, onto } => {
                self.usage.put(key.clone(), *total);
                self.with_events.extend(*onto);
            }
            Entry::Charged { charge, superseded: _ } => self.charges.put((**charge).clone()),
            Entry::Due(at) => self.next_due = Some(*at),
        }
        Ok(())
    }

    /// Replaces what is noted of the documents that events stand on.
    pub fn put_events(&mut self, with_events: BTreeSet<DocumentRef>) {
        self.with_events = with_events;
    }

    fn note_places(&mut self, head: &DocumentHead, standing: LifecycleStatus) {
        if let (Purpose::Regular(slot), false) = (head.purpose, standing.is_void()) {
            for no in &head.parts {
                self.places.insert(BillingSlot { product_no: *no, period_start: head.period.start(), slot }, head.document_ref);
            }
        }
    }

    /// Notes what an issued document of a period's own bills.
    fn note_billed(&mut self, document_ref: DocumentRef) {
        let is_regular =
            |document: &&BookDocument| document.status.is_issued() && matches!(document.head.purpose, Purpose::Regular(_));
        if self.documents.get(&document_ref).filter(is_regular).is_none() {
            return;
        }
        for line in self.lines.get(&document_ref).into_iter().flatten() {
            let LineKey { product_no, period_start, bill_with, .. } = line.key;
            self.billed_on.entry((product_no, period_start, bill_with)).or_insert(document_ref);
        }
    }

    fn change<T>(&mut self, document_ref: DocumentRef, change: impl FnOnce(&mut BookDocument) -> T) -> Result<T, Refusal> {
        let document = self.documents.get_mut(&document_ref);
        document.map(change).ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the book")))
    }

    fn replace_lines(&mut self, document_ref: DocumentRef, lines: Vec<LedgerLine>) -> Result<(), Refusal> {
        let document = self.require_document(document_ref)?;
        let (family, kind) = (document.family, document.head.kind);
        for line in self.lines.remove(&document_ref).unwrap_or_default() {
            self.documented.add(family, kind, &line, -1)?;
        }
        for line in &lines {
            self.documented.add(family, kind, line, 1)?;
        }
        if !lines.is_empty() {
            self.lines.insert(document_ref, lines);
        }
        Ok(())
    }
}

/// A product of a contract that must be there.
pub(super) fn product_of(contract: &Contract, no: ProductNo) -> Result<&ContractProduct, Refusal> {
    contract.product(no).ok_or_else(|| Refusal::Broken(format!("contract {} has no product {}", contract.contract_ref, no.0)))
}

/// Whether a document is a child that bills an amount and waits to be issued.
fn waits_as_bill(document: &BookDocument) -> bool {
    let is_child = document.head.purpose == Purpose::Usage && document.head.kind != DocumentKind::Credit;
    is_child && document.status == LifecycleStatus::Draft
}
