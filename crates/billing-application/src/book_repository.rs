//! Loads and saves contract books. Only this module knows which rows make up a book, in which order they are locked, and
//! which statements write its entries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use billing_domain::calendar::Timestamp;
use billing_domain::credit::CreditDraw;
use billing_domain::document::lines::{BaseAndAmount, FamilySums, LedgerLine, SumKey};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{BookDocument, DocumentHead, DocumentKind};
use billing_domain::ledger::receivables::ReceivablesAccount;
use billing_domain::ledger::{ContractBook, Entry};
use billing_domain::money::Money;
use billing_domain::notification::Fact;
use billing_domain::notification::notify;
use billing_domain::ports::{FamilySum, Lock, NewDraw, Tx};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, EntityRef, OrganizationId};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::accounts;
pub(crate) use crate::basics::{corrupt, distinct};
pub(crate) use crate::book_rows::{
    billing, entities_of, load_documents, load_documents_of_all, load_draft_books, load_header, load_headers, load_legal_data,
    load_rows, recount_all, slots_of_usage, usage_total, with_parties,
};
use crate::book_rows::{only, with_parties_all};
use crate::carry_out::Cx;
use crate::catalog::inserted;
use crate::credit_books::set_credit;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::notifications;

/// Locks a contract exclusively and loads its whole book, for a decision. Returns `None` if the contract does not exist.
pub(crate) fn lock_book(cx: &mut Cx<'_>, key: ContractKey) -> UseCaseResult<Option<ContractBook>> {
    let book = load_header(cx.tx, key, Some(Lock::Exclusive))?;
    book.map(|book| only(load_locked(cx, vec![book])?)).transpose()
}

/// Does the same as [`lock_book`] for a contract given by its reference alone.
pub(crate) fn lock_book_by_ref(cx: &mut Cx<'_>, contract_ref: ContractRef) -> UseCaseResult<Option<ContractBook>> {
    match cx.tx.contract_key(cx.organization, contract_ref)? {
        Some(key) => lock_book(cx, key),
        None => Ok(None),
    }
}

/// Locks contracts of an organization exclusively and loads their whole books, for decisions, ordered by reference. Missing
/// contracts are skipped.
pub(crate) fn lock_books(cx: &mut Cx<'_>, contracts: &[ContractKey]) -> UseCaseResult<Vec<ContractBook>> {
    let books = lock_headers(cx.tx, cx.organization, contracts)?;
    load_locked(cx, books)
}

/// Loads the whole books of locked contracts. Credit changes only under the lock on the customers' accounts.
fn load_locked(cx: &mut Cx<'_>, books: Vec<ContractBook>) -> UseCaseResult<Vec<ContractBook>> {
    let mut books = load_rows(cx.tx, cx.organization, books, cx.now)?;
    let watched = books.iter().filter(|book| book.contract.is_watched);
    let watched = distinct(watched.map(|book| book.contract.customer_id));
    if !watched.is_empty() {
        cx.lock_accounts(&watched)?;
        set_credit(cx.tx, cx.organization, &mut books, cx.now)?;
    }
    Ok(books)
}

/// Locks contracts of an organization exclusively and returns their books before any rows are loaded, ordered by reference.
/// Missing contracts are skipped.
pub(crate) fn lock_headers(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contracts: &[ContractKey],
) -> UseCaseResult<Vec<ContractBook>> {
    let alone: Vec<(ContractKey, Lock)> = contracts.iter().map(|contract| (*contract, Lock::Exclusive)).collect();
    tx.hold_contracts(&alone)?;
    // Load after locking, because the contracts can no longer change.
    let agreements = tx.agreements(contracts)?;
    with_parties_all(tx, organization, agreements)
}

/// Loads the rest of a contract's book, so that every decision can be made on it as of `now`.
pub(crate) fn load_book(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: ContractBook,
    now: Timestamp,
) -> UseCaseResult<ContractBook> {
    only(load_books(tx, organization, vec![book], now)?)
}

/// Loads the rest of several contracts' books and returns the books in the same order.
pub(crate) fn load_books(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: Vec<ContractBook>,
    now: Timestamp,
) -> UseCaseResult<Vec<ContractBook>> {
    let mut books = load_rows(tx, organization, books, now)?;
    set_credit(tx, organization, &mut books, now)?;
    Ok(books)
}

/// Writes the entries decided on one contract and returns them. The contract must be locked: exclusively, or shared if only
/// usage is added to existing drafts.
pub(crate) fn write(cx: &mut Cx<'_>, book: &mut ContractBook) -> UseCaseResult<Vec<Entry>> {
    Ok(write_all(cx, [book])?.pop().unwrap_or_default())
}

/// Writes the entries decided on several contracts in one transaction, together with the resulting settlements. Returns the
/// entries for each contract. Similar entries share one statement.
///
/// Document numbers are assigned here for all contracts at once. Series are processed in one fixed order. Within a series,
/// documents get their numbers in the order in which they were opened.
pub(crate) fn write_all<'b>(
    cx: &mut Cx<'_>,
    books: impl IntoIterator<Item = &'b mut ContractBook>,
) -> UseCaseResult<Vec<Vec<Entry>>> {
    write_all_with(cx, books, Vec::new())
}

/// Does the same as [`write_all`], and records notifications of `facts` together with those of the entries.
pub(crate) fn write_all_with<'b>(
    cx: &mut Cx<'_>,
    books: impl IntoIterator<Item = &'b mut ContractBook>,
    mut facts: Vec<Fact>,
) -> UseCaseResult<Vec<Vec<Entry>>> {
    let organization = cx.organization;
    let mut decided: Vec<(&mut ContractBook, Vec<Entry>)> = Vec::new();
    for book in books {
        let entries = book.take_entries();
        decided.push((book, entries));
    }
    if let Some(recorder) = cx.recorder() {
        let decided: Vec<_> = decided.iter().map(|(book, entries)| (&**book, entries.as_slice())).collect();
        recorder.capture_books(cx.tx, organization, &decided, cx.now)?;
    }
    cx.watch(&accounts::watched(&decided))?;
    let mut accounts = accounts::settle_accounts(cx, decided.iter().map(|(book, entries)| (&**book, entries.as_slice())))?;
    let mut numbers = give_numbers(cx.tx, organization, &decided)?;
    for (book, entries) in &mut decided {
        book.number(entries, |head| {
            let number = numbers.remove(&head.document_ref);
            number.ok_or_else(|| UseCaseError::InvariantViolation("a document without a number"))
        })?;
    }
    number_accounts(&mut accounts, &decided);
    accounts::freeze_applied(cx, &accounts, &mut decided)?;
    let mut kept = DeferredWrites::default();
    for (book, entries) in &decided {
        kept.take_up(organization, book, entries)?;
    }
    write_steps(cx, &decided)?;
    kept.write(cx)?;
    note_settled(&mut decided, &accounts);
    let mut notices = Vec::new();
    for (book, entries) in &decided {
        facts.extend(notify::of(book, entries, cx.now)?);
        notices.extend(notify::notices(book, entries, cx.now)?);
    }
    let saved = accounts::save(cx, &mut accounts)?;
    // The notifications of settlements are counted in the accounts.
    note_settled(&mut decided, &accounts);
    facts.extend(saved.facts);
    notices.extend(saved.notices);
    notifications::record(cx, &facts, &notices)?;
    Ok(decided.into_iter().map(|(_, entries)| entries).collect())
}

/// Copies the numbers of the documents that the books opened to the accounts. Accounts are settled first, because they are
/// locked before number series.
fn number_accounts(accounts: &mut [ReceivablesAccount], decided: &[(&mut ContractBook, Vec<Entry>)]) {
    let books: BTreeMap<ContractRef, &ContractBook> =
        decided.iter().map(|(book, _)| (book.contract.contract_ref, &**book)).collect();
    for account in accounts {
        account.number(|head| Some(&books.get(&head.contract_ref)?.document(head.document_ref)?.head));
    }
}

/// Copies the state of accounts' documents to the books.
fn note_settled(decided: &mut [(&mut ContractBook, Vec<Entry>)], accounts: &[ReceivablesAccount]) {
    let settled = accounts.iter().flat_map(|account| account.documents().map(|document| (account.key().customer_id, document)));
    let settled: Vec<(CustomerId, &BookDocument)> = settled.collect();
    for (book, _) in decided {
        let customer_id = book.contract.customer_id;
        let of_customer = settled.iter().filter(|(customer, _)| *customer == customer_id);
        book.note_settled(of_customer.map(|(_, document)| *document));
    }
}

/// Rows that are written once for all contracts, in their final state, independently of the write steps.
#[derive(Default)]
struct DeferredWrites<'e> {
    lines: BTreeMap<DocumentKey, &'e [LedgerLine]>,
    sums: BTreeMap<(CustomerId, DocumentRef, SumKey), BaseAndAmount>,
    totals: BTreeMap<UsageKey, (CustomerId, UsageTotal)>,
    due: BTreeMap<ContractKey, Option<Timestamp>>,
    draws: Vec<NewDraw>,
}

impl<'e> DeferredWrites<'e> {
    /// Collects the deferred rows of a contract's entries.
    fn take_up(&mut self, organization: OrganizationId, book: &ContractBook, entries: &'e [Entry]) -> UseCaseResult<()> {
        let contract = book.contract.key(organization);
        let customer = contract.customer;
        for entry in entries {
            match entry {
                Entry::Lines { document_ref, lines } => {
                    self.lines.insert(DocumentKey { organization, customer, document: *document_ref }, lines);
                }
                Entry::Issued { document_ref, issued, .. } => self.add_content(book, *document_ref, 1, &issued.content)?,
                Entry::Voided { document_ref, content, .. } => self.add_content(book, *document_ref, -1, content)?,
                Entry::UsageMoved { key, total, onto: _ } => {
                    self.totals.insert(key.clone(), (customer, *total));
                }
                Entry::Due(at) => {
                    self.due.insert(contract, *at);
                }
                Entry::Opened { .. }
                | Entry::Amended(_)
                | Entry::Redrawn(_)
                | Entry::Discarded { .. }
                | Entry::EventsMoved { .. }
                | Entry::Charged { .. } => {}
            }
        }
        // Issued and discarded documents are frozen with their own lines.
        for entry in entries {
            if let Entry::Issued { document_ref, .. } | Entry::Discarded { document_ref, .. } = entry {
                self.lines.remove(&DocumentKey { organization, customer, document: *document_ref });
            }
        }
        Ok(())
    }

    /// Adds what a document that is issued (`times` 1) or voided (−1) adds to sums and draws.
    fn add_content(
        &mut self,
        book: &ContractBook,
        document_ref: DocumentRef,
        times: i64,
        content: &DocumentContent,
    ) -> UseCaseResult<()> {
        let document = book.document(document_ref);
        let document = document.ok_or(UseCaseError::InvariantViolation("a document that isn't in its book"))?;
        let mut sums = FamilySums::default();
        content.add_to(&mut sums, document.head.kind, times)?;
        for (key, sum) in sums.iter() {
            let added = self.sums.entry((book.contract.customer_id, document.family, key.clone())).or_default();
            (added.base, added.amount) = (added.base + sum.base, added.amount + sum.amount);
        }
        let customer_id = book.contract.customer_id;
        let draws = CreditDraw::of_content(document_ref, document.head.kind, content)?;
        // A void adds the opposite draws after those of the issue.
        let first = if times < 0 { draws.len() } else { 0 };
        for (draw_no, draw) in (first..).zip(draws) {
            let amount = if times < 0 { Money::zero(draw.amount.currency()).checked_sub(draw.amount)? } else { draw.amount };
            let draw = CreditDraw { amount, ..draw };
            self.draws.push(NewDraw { customer_id, draw_no: many(draw_no)?, draw });
        }
        Ok(())
    }

    fn write(self, cx: &mut Cx<'_>) -> UseCaseResult<()> {
        let (organization, at) = (cx.organization, cx.services.now());
        let tx = &mut *cx.tx;
        if !self.lines.is_empty() {
            tx.put_lines_of_drafts(organization, &Vec::from_iter(self.lines))?;
        }
        if !self.sums.is_empty() {
            let sum = |((customer, family, key), sum)| (customer, FamilySum { family, key, sum });
            tx.add_sums_of_families(organization, &self.sums.into_iter().map(sum).collect::<Vec<_>>())?;
        }
        if !self.totals.is_empty() {
            let totals = self.totals.into_iter().map(|(key, (customer, total))| (customer, key, total));
            tx.put_usage(organization, &Vec::from_iter(totals))?;
        }
        if !self.due.is_empty() {
            tx.set_next_dues(&self.due)?;
        }
        if !self.draws.is_empty() {
            tx.add_draws(organization, &self.draws, at)?;
        }
        Ok(())
    }
}

/// The kinds of write that keep the order in which a contract decided them. For several contracts, the next writes of the
/// same kind are written together, earlier kinds first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WriteStep {
    Amend,
    Discard,
    Void,
    Redraw,
    Open,
    MoveEvents,
    Charge,
    Issue,
}

impl WriteStep {
    /// Returns the write step of an entry, or `None` for a [deferred](DeferredWrites) write.
    const fn of(entry: &Entry) -> Option<Self> {
        Some(match entry {
            Entry::Amended(_) => Self::Amend,
            Entry::Discarded { .. } => Self::Discard,
            Entry::Voided { .. } => Self::Void,
            Entry::Redrawn(_) => Self::Redraw,
            Entry::Opened { .. } => Self::Open,
            Entry::EventsMoved { .. } => Self::MoveEvents,
            Entry::Charged { .. } => Self::Charge,
            Entry::Issued { .. } => Self::Issue,
            Entry::Lines { .. } | Entry::UsageMoved { .. } | Entry::Due(_) => return None,
        })
    }
}

/// Writes the contracts' entries, except [deferred](DeferredWrites) writes.
fn write_steps(cx: &mut Cx<'_>, decided: &[(&mut ContractBook, Vec<Entry>)]) -> UseCaseResult<()> {
    let mut left: Vec<(CustomerId, VecDeque<(WriteStep, &Entry)>)> = Vec::with_capacity(decided.len());
    for (book, entries) in decided {
        let steps = entries.iter().filter_map(|entry| Some((WriteStep::of(entry)?, entry)));
        left.push((book.contract.customer_id, steps.collect()));
    }
    while let Some(step) = left.iter().filter_map(|(_, steps)| steps.front()).map(|(step, _)| *step).min() {
        let mut together: Vec<(CustomerId, &Entry)> = Vec::new();
        for (customer, steps) in &mut left {
            while let Some((_, entry)) = steps.pop_front_if(|(next, _)| *next == step) {
                together.push((*customer, entry));
            }
        }
        write_together(cx, &together)?;
    }
    Ok(())
}

/// Writes entries of one kind.
fn write_together(cx: &mut Cx<'_>, entries: &[(CustomerId, &Entry)]) -> UseCaseResult<()> {
    let (organization, now, by) = (cx.organization, cx.now, cx.by);
    // A billing run decides as of its start, but its changes show from this transaction on.
    let updated_at = cx.services.now();
    let tx = &mut *cx.tx;
    let (mut opened, mut issued) = (Vec::new(), Vec::new());
    for (customer, entry) in entries {
        let key_of = |document: &DocumentRef| DocumentKey { organization, customer: *customer, document: *document };
        match entry {
            Entry::Opened { head, family } => opened.push((&**head, *family)),
            Entry::Issued { document_ref, issued: content, .. } => issued.push((key_of(document_ref), &**content)),
            Entry::Amended(amended) => tx.append_contract_version(organization, amended, now, by)?,
            Entry::Redrawn(head) => still(tx.update_draft(organization, head, updated_at)?)?,
            Entry::Discarded { document_ref, content, .. } => still(tx.void_draft(key_of(document_ref), content, updated_at)?)?,
            Entry::Voided { document_ref, at, on, .. } => still(tx.void_issued(key_of(document_ref), *at, *on)?)?,
            Entry::EventsMoved { from, to, of: None } => tx.move_events(key_of(from), *to)?,
            Entry::EventsMoved { from, to, of: Some((product_no, start)) } => {
                tx.move_events_of_period(key_of(from), *to, *product_no, *start)?;
            }
            Entry::Charged { superseded: None, charge } => {
                inserted(ResourceKind::Charge, tx.insert_charge(organization, charge)?)?
            }
            Entry::Charged { superseded: Some(superseded), charge } => tx.revise_charge(organization, superseded, charge)?,
            Entry::Lines { .. } | Entry::UsageMoved { .. } | Entry::Due(_) => {}
        }
    }
    if !opened.is_empty() {
        tx.open_documents(organization, &opened, updated_at)?;
    }
    if !issued.is_empty() {
        still(tx.issue_documents(organization, &issued, updated_at)?)?;
    }
    Ok(())
}

/// Assigns numbers to the opened documents, in the order in which they were opened. Locks all series in one fixed order,
/// including the series of the documents issued in the same transaction.
fn give_numbers(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    decided: &[(&mut ContractBook, Vec<Entry>)],
) -> UseCaseResult<BTreeMap<DocumentRef, (u64, u32)>> {
    let mut opened: Vec<&DocumentHead> = Vec::new();
    let mut issued: BTreeSet<(&EntityRef, DocumentKind)> = BTreeSet::new();
    for (book, entries) in decided {
        for entry in entries {
            match entry {
                Entry::Opened { head, .. } => opened.push(head),
                Entry::Issued { document_ref, .. } => {
                    let head = book.document(*document_ref).map(|document| &document.head);
                    issued.extend(head.map(|head| (&head.entity_ref, head.kind)));
                }
                _ => {}
            }
        }
    }
    // References increase in the order of opening, across all contracts.
    opened.sort_by_key(|head| head.document_ref);
    let mut contracts: BTreeMap<ContractKey, Vec<DocumentRef>> = BTreeMap::new();
    let mut series: BTreeMap<(&EntityRef, DocumentKind), Vec<&DocumentHead>> = BTreeMap::new();
    for head in opened {
        contracts.entry(head.contract_key(organization)).or_default().push(head.document_ref);
        series.entry((&head.entity_ref, head.kind)).or_default().push(head);
    }
    if series.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut counts: BTreeMap<ContractKey, u32> = BTreeMap::new();
    for (contract, documents) in &contracts {
        counts.insert(*contract, many(documents.len())?);
    }
    let firsts = tx.take_numbers_in_contracts(&counts)?;
    let mut in_contract: BTreeMap<DocumentRef, u32> = BTreeMap::new();
    for (contract, documents) in contracts {
        let first = firsts.get(&contract).copied();
        let first = first.ok_or(UseCaseError::InvariantViolation("a contract that gives no numbers"))?;
        in_contract.extend(documents.into_iter().zip(first..));
    }
    // Issuing locks its series later. Locking them here too keeps the one order of locks.
    for issued in issued {
        series.entry(issued).or_default();
    }
    let mut numbers = BTreeMap::new();
    for ((entity_ref, kind), heads) in series {
        let first = tx.take_document_numbers(organization, entity_ref, kind, many(heads.len())?)?;
        for (head, sequence) in heads.into_iter().zip(first..) {
            numbers.insert(head.document_ref, (sequence, in_contract[&head.document_ref]));
        }
    }
    Ok(numbers)
}

fn many(documents: usize) -> UseCaseResult<u32> {
    u32::try_from(documents).map_err(|_| UseCaseError::InvariantViolation("more documents than can be numbered at once"))
}

fn still(is_as_it_was: bool) -> UseCaseResult<()> {
    if is_as_it_was { Ok(()) } else { Err(UseCaseError::InvariantViolation("a draft that is held changed")) }
}

/// Returns the number of a document in a book.
pub(crate) fn number_of(book: &ContractBook, document_ref: DocumentRef) -> UseCaseResult<DocumentNumber> {
    let document = book.document(document_ref);
    let head = document.map(|document| &document.head);
    head.map(|head| head.number.clone()).ok_or_else(|| corrupt("a document", &document_ref, "isn't in its book"))
}
