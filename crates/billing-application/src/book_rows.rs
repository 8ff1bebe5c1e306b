//! Loads the rows of contract books. Only this module and [`book_repository`](crate::book_repository) know which rows make up a book.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::{Contract, ProductPeriod};
use billing_domain::document::linking::{BillingSlot, SlotKind, part_for_usage};
use billing_domain::document::{BookDocument, LifecycleStatus};
use billing_domain::hold::OpenEntry;
use billing_domain::ledger::limit::has_rows_of_held;
use billing_domain::ledger::{BookRows, ContractBook, ContractHeader, CurrencyPair, Extent};
use billing_domain::party::Entity;
use billing_domain::ports::{Lock, StoreError, Tx};
use billing_domain::refs::{BankAccountRef, ContractKey, ContractRef, DocumentRef, OrganizationId, ProductNo};
use billing_domain::tax::ExchangeRate;
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::basics::{corrupt, distinct};
use crate::error::{UseCaseError, UseCaseResult};

/// Returns the entities that bill the contracts, in any version.
pub(crate) fn entities_of<'c>(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contracts: impl IntoIterator<Item = &'c Contract>,
) -> UseCaseResult<Vec<Arc<Entity>>> {
    let refs = distinct(contracts.into_iter().flat_map(Contract::entity_refs).cloned());
    if refs.is_empty() {
        return Ok(Vec::new());
    }
    let entities = tx.entities_by_refs(organization, &refs)?;
    if entities.len() != refs.len() {
        return Err(StoreError::Corrupt("a contract has an entity that is not there".to_owned()).into());
    }
    Ok(entities.into_iter().map(Arc::new).collect())
}

/// Loads a contract and its parties without the rows of its book. Returns `None` if the contract does not exist.
pub(crate) fn load_header(tx: &mut dyn Tx, key: ContractKey, lock: Option<Lock>) -> UseCaseResult<Option<ContractBook>> {
    let agreed = tx.agreement(key, lock)?;
    agreed.map(|agreed| with_parties(tx, key.organization, agreed)).transpose()
}

/// Does the same as [`load_header`] for several contracts, without locks. Missing contracts are skipped.
pub(crate) fn load_headers(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contracts: &[ContractKey],
) -> UseCaseResult<Vec<ContractBook>> {
    let agreements = tx.agreements(contracts)?;
    with_parties_all(tx, organization, agreements)
}

/// Returns the book of a contract with its customer and billing entities, before any other rows are loaded.
pub(crate) fn with_parties(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    agreement: ContractHeader,
) -> UseCaseResult<ContractBook> {
    only(with_parties_all(tx, organization, vec![agreement])?)
}

/// Does the same as [`with_parties`] for several contracts.
pub(crate) fn with_parties_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    agreements: Vec<ContractHeader>,
) -> UseCaseResult<Vec<ContractBook>> {
    let entities = entities_of(tx, organization, agreements.iter().map(|agreement| &agreement.contract))?;
    let with_parties = |agreement: ContractHeader| {
        let entities = billing(&agreement.contract, &entities);
        ContractBook::of(agreement, entities)
    };
    Ok(agreements.into_iter().map(with_parties).collect())
}

/// Returns the given entities that bill a contract, in any version.
pub(crate) fn billing(contract: &Contract, entities: &[Arc<Entity>]) -> Vec<Arc<Entity>> {
    let bills = |entity: &&Arc<Entity>| contract.entity_refs().any(|named| *named == entity.entity_ref);
    entities.iter().filter(bills).cloned().collect()
}

/// Returns the only book of a list.
pub(crate) fn only(mut books: Vec<ContractBook>) -> UseCaseResult<ContractBook> {
    books.pop().ok_or(UseCaseError::InvariantViolation("a contract without a book"))
}

/// Does the same as [`load_books`] without the credit of the customers. A decision that reads it locks their accounts first.
pub(crate) fn load_rows(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: Vec<ContractBook>,
    now: Timestamp,
) -> UseCaseResult<Vec<ContractBook>> {
    if books.is_empty() {
        return Ok(books);
    }
    let contracts: Vec<ContractKey> = books.iter().map(|book| book.contract.key(organization)).collect();
    let mut rows = tx.rows_of_books(&contracts)?;
    let (mut whole, mut wanted) = (Vec::with_capacity(books.len()), Vec::with_capacity(books.len()));
    for (book, contract) in books.into_iter().zip(contracts) {
        let rows = rows.remove(&contract).unwrap_or_default();
        // An adjustment of a child document has that child as its parent, and the child is not among the loaded rows.
        let open = rows.documents.iter().filter(|document| document.status == LifecycleStatus::Draft);
        let parents: BTreeSet<DocumentRef> = open.filter_map(|document| document.head.parent).collect();
        let mut book = book.with_rows(Extent::Whole, rows)?;
        book.set_as_of(now);
        wanted.push(parents);
        whole.push(book);
    }
    load_documents_of_all(tx, organization, whole.iter_mut().collect(), wanted)?;
    load_legal_data_of_all(tx, organization, &mut whole, now)?;
    Ok(whole)
}

/// Loads the bank accounts and exchange rates that documents of the books need and the books lack. Reads nothing if nothing
/// is missing.
fn load_legal_data_of_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: &mut [ContractBook],
    now: Timestamp,
) -> UseCaseResult<()> {
    let asked: Vec<Vec<BankAccountRef>> = books.iter().map(|book| book.missing_bank_accounts([])).collect();
    let all = distinct(asked.iter().flatten().cloned());
    let found = if all.is_empty() { Vec::new() } else { tx.bank_accounts_by_refs(organization, &all)? };
    let mut rates: Vec<(CurrencyPair, Option<ExchangeRate>)> = Vec::new();
    for (book, asked) in books.iter_mut().zip(asked) {
        let found = found.iter().filter(|account| asked.contains(&account.account_ref)).cloned().collect();
        book.set_bank_accounts(asked, found);
        for pair in book.missing_exchange_rates(now) {
            let known = rates.iter().find(|(known, _)| *known == pair).map(|(_, rate)| *rate);
            let rate = match known {
                Some(rate) => rate,
                None => tx.exchange_rate(organization, pair.from, pair.to, pair.on)?,
            };
            if known.is_none() {
                rates.push((pair, rate));
            }
            book.set_exchange_rate(pair, rate);
        }
    }
    Ok(())
}

/// Loads the bank accounts and exchange rates that the book's documents need and the book lacks. Also loads the bank accounts
/// `also`.
pub(crate) fn load_legal_data(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &mut ContractBook,
    also: impl IntoIterator<Item = BankAccountRef>,
    now: Timestamp,
) -> UseCaseResult<()> {
    let accounts = book.missing_bank_accounts(also);
    if !accounts.is_empty() {
        let found = tx.bank_accounts_by_refs(organization, &accounts)?;
        book.set_bank_accounts(accounts, found);
    }
    load_legal_data_of_all(tx, organization, std::slice::from_mut(book), now)
}

/// Returns the slots of the documents that may carry a period's usage, as far as adding usage to drafts needs them.
pub(crate) fn slots_of_usage(period: ProductPeriod<'_>) -> Vec<BillingSlot> {
    let slot = part_for_usage(period).slot();
    let mut slots = vec![slot];
    if slot.kind == SlotKind::UsageDebit {
        slots.push(BillingSlot { kind: SlotKind::Period, ..slot });
    }
    slots
}

/// Loads the documents that adding usage to drafts needs: those that carry the usage of the given periods. A period is
/// identified by product number and first day. Documents of `known` periods are not loaded.
pub(crate) fn load_draft_books(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: impl IntoIterator<Item = ContractBook>,
    periods: &BTreeSet<(ContractRef, ProductNo, Date)>,
    known: &BTreeMap<(ContractRef, ProductNo, Date), &[BookDocument]>,
) -> UseCaseResult<BTreeMap<ContractRef, ContractBook>> {
    let books: BTreeMap<ContractRef, ContractBook> = books.into_iter().map(|book| (book.contract.contract_ref, book)).collect();
    let mut places: Vec<(ContractKey, BillingSlot)> = Vec::new();
    let mut documents: BTreeMap<ContractRef, BTreeMap<DocumentRef, BookDocument>> = BTreeMap::new();
    for period in periods {
        let (contract_ref, product_no, start) = period;
        let Some(book) = books.get(contract_ref) else { continue };
        if let Some(known) = known.get(period) {
            let known = known.iter().map(|document| (document.head.document_ref, document.clone()));
            documents.entry(*contract_ref).or_default().extend(known);
            continue;
        }
        let period = book.contract.period_from(*product_no, *start);
        let period = period.ok_or_else(|| corrupt("a contract", contract_ref, "has no such period"))?;
        let contract = book.contract.key(organization);
        places.extend(slots_of_usage(period).into_iter().map(|slot| (contract, slot)));
    }
    let found = if places.is_empty() { Vec::new() } else { tx.documents_in_places(&places)? };
    for document in found {
        documents.entry(document.head.contract_ref).or_default().insert(document.head.document_ref, document);
    }
    let with_rows = |(contract_ref, book): (ContractRef, ContractBook)| {
        // The book sorts its documents.
        let documents = documents.remove(&contract_ref).unwrap_or_default().into_values().collect();
        Ok((contract_ref, book.with_rows(Extent::Drafts, BookRows { documents, ..BookRows::default() })?))
    };
    books.into_iter().map(with_rows).collect()
}

/// Loads documents that the book lacks, and their ancestors.
pub(crate) fn load_documents(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &mut ContractBook,
    refs: &[DocumentRef],
) -> UseCaseResult<()> {
    load_documents_of_all(tx, organization, vec![book], vec![refs.iter().copied().collect()])
}

/// Does the same as [`load_documents`] for several books. `wanted` has one set of documents for each book.
pub(crate) fn load_documents_of_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    mut books: Vec<&mut ContractBook>,
    mut wanted: Vec<BTreeSet<DocumentRef>>,
) -> UseCaseResult<()> {
    while wanted.iter().any(|wanted| !wanted.is_empty()) {
        let unknown = |(book, wanted): (&&mut ContractBook, &BTreeSet<DocumentRef>)| -> Vec<DocumentRef> {
            wanted.iter().filter(|wanted| book.document(**wanted).is_none()).copied().collect()
        };
        let unknown: Vec<Vec<DocumentRef>> = books.iter().zip(&wanted).map(unknown).collect();
        let all = distinct(unknown.iter().flatten().copied());
        let customers = distinct(books.iter().map(|book| book.contract.customer_id));
        let found = if all.is_empty() { Vec::new() } else { tx.book_documents_by_refs(organization, &customers, &all)? };
        for ((book, unknown), wanted) in books.iter_mut().zip(unknown).zip(&mut wanted) {
            let of_book = found.iter().filter(|document| unknown.contains(&document.head.document_ref)).cloned();
            let of_book: Vec<BookDocument> = of_book.collect();
            if of_book.len() < unknown.len() {
                return Err(corrupt("a contract", &book.contract.contract_ref, "names a document that was not found"));
            }
            if !of_book.is_empty() {
                book.add_documents(of_book);
            }
            *wanted = wanted.iter().filter_map(|document| book.document(*document)?.head.parent).collect();
        }
    }
    Ok(())
}

/// Returns a running total, recounted if it lacks a value that its line items need. It or its contract must be locked.
pub(crate) fn usage_total(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &mut ContractBook,
    key: &UsageKey,
) -> UseCaseResult<UsageTotal> {
    let kept = book.usage().get(key);
    if book.total_suffices(key, &kept) {
        return Ok(kept);
    }
    let total = tx.recount_usage(organization, &book.contract, &key.of_line_item(None), None)?.total(key);
    book.put_usage(key.clone(), total);
    Ok(total)
}

/// Recounts the running totals that lack a value the decision may need, as selected by `asks`. The totals must be locked,
/// unless the caller only reads.
pub(crate) fn recount(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &mut ContractBook,
    asks: impl Fn(&UsageKey, &UsageTotal) -> bool,
) -> UseCaseResult<()> {
    let unknown = book.usage().iter().filter(|(key, total)| total.events > 0 && asks(key, total));
    for period_key in BTreeSet::from_iter(unknown.map(|(key, _)| key.of_line_item(None))) {
        for (key, total) in tx.recount_usage(organization, &book.contract, &period_key, None)?.totals {
            book.put_usage(key, total);
        }
    }
    Ok(())
}

/// Recounts the running totals that lack a value the content of drafts needs.
pub(crate) fn recount_lacking(tx: &mut dyn Tx, organization: OrganizationId, book: &mut ContractBook) -> UseCaseResult<()> {
    let lacking = |(key, total): (&UsageKey, &UsageTotal)| (!book.total_suffices(key, total)).then(|| key.clone());
    let lacking: BTreeSet<UsageKey> = book.usage().iter().filter_map(lacking).collect();
    recount(tx, organization, book, |key, _| lacking.contains(key))
}

/// Determines every unknown maximum and last day, so that any decision can be made.
pub(crate) fn recount_all(tx: &mut dyn Tx, organization: OrganizationId, book: &mut ContractBook) -> UseCaseResult<()> {
    recount(tx, organization, book, |_, total| total.last_day.is_none() || total.max.is_none())
}

/// Loads the rows of several contracts' books that the content of their drafts needs, and returns the books. Contracts with an open hold
/// whose usage would not go on a draft are loaded whole.
pub(crate) fn load_open_books(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: Vec<ContractBook>,
    held: &[OpenEntry],
    now: Timestamp,
) -> UseCaseResult<Vec<ContractBook>> {
    if books.is_empty() {
        return Ok(books);
    }
    let contracts: Vec<ContractKey> = books.iter().map(|book| book.contract.key(organization)).collect();
    let mut rows = tx.rows_of_books(&contracts)?;
    let (mut open, mut off_drafts) = (Vec::with_capacity(books.len()), Vec::new());
    for (book, contract) in books.into_iter().zip(contracts) {
        let mut book = book.with_rows(Extent::Open, rows.remove(&contract).unwrap_or_default())?;
        if !has_rows_of_held(&book, held.iter().filter(|entry| entry.key.contract_ref == contract.contract))? {
            off_drafts.push(book.without_rows());
            continue;
        }
        book.set_as_of(now);
        recount_lacking(tx, organization, &mut book)?;
        open.push(book);
    }
    open.extend(load_rows(tx, organization, off_drafts, now)?);
    Ok(open)
}
