//! Notifications that time alone causes: overdue documents, contracts and credit that end, and contracts that cannot be billed. The billing
//! run records them.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::TimeZone;
use billing_domain::document::BookDocument;
use billing_domain::ledger::ContractBook;
use billing_domain::notification::notify::{self, Review};
use billing_domain::notification::{BillingProblem, Fact, Notice, NotificationType, Subject};
use billing_domain::ports::StoreError;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, CustomerRef, DocumentRef, OrganizationId};
use billing_domain::runs::DocumentFailure;

use crate::basics::{corrupt, distinct};
use crate::book_repository;
use crate::carry_out::{Cx, Transactions};
use crate::credit::announce_ending;
use crate::error::{UseCaseError, UseCaseResult};
use crate::notifications;
use crate::run_history::FailedContract;

/// The number of notices looked up at a time.
const NOTICES_PER_PAGE: u32 = 500;
/// The maximum number of notices reviewed in one transaction.
const NOTICES_PER_TRANSACTION: usize = 50;

/// Reviews the notices of one organization or of all whose instants have come, as far as time permits. A notice that cannot be
/// reviewed stays for the next run.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the notices cannot be read.
pub(crate) fn review_due(
    transactions: &mut Transactions<'_, '_>,
    organization: Option<OrganizationId>,
    may_go_on: &dyn Fn() -> bool,
) -> UseCaseResult<()> {
    loop {
        let now = transactions.services().now();
        let due = transactions.glance(|tx| Ok(tx.due_notices(organization, now, NOTICES_PER_PAGE)?))?;
        let is_last = due.len() < usize::try_from(NOTICES_PER_PAGE).unwrap_or(usize::MAX);
        let mut of_organization: BTreeMap<OrganizationId, Vec<Notice>> = BTreeMap::new();
        for (organization, notice) in due {
            of_organization.entry(organization).or_default().push(notice);
        }
        let mut are_reviewed = true;
        for (organization, notices) in of_organization {
            for together in notices.chunks(NOTICES_PER_TRANSACTION) {
                if !may_go_on() {
                    return Ok(());
                }
                are_reviewed &= review_together(transactions, organization, together);
            }
        }
        if is_last || !are_reviewed {
            return Ok(());
        }
    }
}

/// Reviews notices in one transaction. On failure, bisects them until the failing one is alone. Returns whether all were
/// reviewed.
fn review_together(transactions: &mut Transactions<'_, '_>, organization: OrganizationId, notices: &[Notice]) -> bool {
    let Err(error) = transactions.write(organization, |cx| review(cx, notices)) else { return true };
    if notices.len() > 1 && !matches!(error, UseCaseError::Store(StoreError::Unavailable(_))) {
        let (some, others) = notices.split_at(notices.len() / 2);
        let some = review_together(transactions, organization, some);
        return review_together(transactions, organization, others) && some;
    }
    let subject = notices.first().map(|notice| notice.subject.to_string()).unwrap_or_default();
    tracing::warn!(%error, %subject, "cannot review a notice; the next billing run tries again");
    false
}

fn review(cx: &mut Cx<'_>, notices: &[Notice]) -> UseCaseResult<()> {
    // Contracts are locked before accounts.
    let mut books = lock_contracts(cx, notices)?;
    let mut documents = lock_documents(cx, notices)?;
    let (mut facts, mut moved) = (Vec::new(), Vec::new());
    for notice in notices {
        // Another server may have reviewed the notice.
        if !cx.tx.take_notice(cx.organization, notice)? {
            continue;
        }
        match notice.subject {
            Subject::Contract(contract_ref) => {
                let Some(book) = books.get_mut(&contract_ref) else { continue };
                match notify::review_contract(book, cx.now)? {
                    Review::Drop => {}
                    Review::Move(later) => moved.push(later),
                    Review::Notify => {
                        cx.tx.count_contract_notification(book.contract.key(cx.organization))?;
                        facts.push(notify::ending(book, cx.now)?);
                    }
                }
            }
            Subject::Document(document_ref) => {
                let Some(locked) = documents.get_mut(&document_ref) else { continue };
                match notify::review_document(&locked.document, locked.zone, cx.now)? {
                    Review::Drop => {}
                    Review::Move(later) => moved.push(later),
                    Review::Notify => {
                        cx.tx.count_document_notification(locked.document.head.key(cx.organization))?;
                        locked.document.notifications += 1;
                        let (document, customer_ref) = (locked.document.clone(), locked.customer_ref.clone());
                        facts.push(notify::document_fact(NotificationType::DocumentOverdue, document, customer_ref)?);
                    }
                }
            }
            Subject::Grant(grant_ref) => {
                let (fact, next) = announce_ending(cx, notice, grant_ref)?;
                facts.extend(fact);
                moved.extend(next);
            }
            Subject::Limit(_) | Subject::Endpoint(_) => {}
        }
    }
    notifications::record(cx, &facts, &moved)
}

/// Locks the contracts of notices, and returns their books without documents.
fn lock_contracts(cx: &mut Cx<'_>, notices: &[Notice]) -> UseCaseResult<BTreeMap<ContractRef, ContractBook>> {
    let organization = cx.organization;
    let key = |notice: &Notice| match notice.subject {
        Subject::Contract(contract) => Some(ContractKey { organization, customer: notice.customer_id, contract }),
        Subject::Document(_) | Subject::Limit(_) | Subject::Grant(_) | Subject::Endpoint(_) => None,
    };
    let keys: Vec<ContractKey> = notices.iter().filter_map(key).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let books = book_repository::lock_headers(cx.tx, organization, &keys)?;
    Ok(books.into_iter().map(|book| (book.contract.contract_ref, book)).collect())
}

/// A document whose account is locked.
struct LockedDocument {
    document: BookDocument,
    customer_ref: CustomerRef,
    /// The time zone of the document's entity.
    zone: TimeZone,
}

/// Locks the accounts of notices' documents, and returns the documents.
fn lock_documents(cx: &mut Cx<'_>, notices: &[Notice]) -> UseCaseResult<BTreeMap<DocumentRef, LockedDocument>> {
    let organization = cx.organization;
    let (mut refs, mut customers): (Vec<DocumentRef>, BTreeSet<CustomerId>) = (Vec::new(), BTreeSet::new());
    for notice in notices {
        if let Subject::Document(document_ref) = notice.subject {
            refs.push(document_ref);
            customers.insert(notice.customer_id);
        }
    }
    if refs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let customers = Vec::from_iter(customers);
    let found = cx.tx.book_documents_by_refs(organization, &customers, &refs)?;
    let accounts: BTreeSet<AccountKey> = found.iter().map(AccountKey::of).collect();
    cx.tx.hold_accounts(organization, &accounts)?;
    // Load the documents again, because only now can nobody else settle them.
    let documents = cx.tx.book_documents_by_refs(organization, &customers, &refs)?;
    let entities = distinct(documents.iter().map(|document| document.head.entity_ref.clone()));
    let entities = cx.tx.entities_by_refs(organization, &entities)?;
    let customers = cx.tx.customers_by_ids(organization, &customers)?;
    let mut locked = BTreeMap::new();
    for document in documents {
        let (document_ref, head) = (document.head.document_ref, &document.head);
        let entity = entities.iter().find(|entity| entity.entity_ref == head.entity_ref);
        let entity = entity.ok_or_else(|| corrupt("an entity", &head.entity_ref, "is not there"))?;
        let customer = customers.iter().find(|customer| customer.id == head.customer_id);
        let customer = customer.ok_or_else(|| corrupt("a customer", &head.customer_id, "is not there"))?;
        let (customer_ref, zone) = (customer.customer_ref.clone(), entity.profile.time_zone);
        locked.insert(document_ref, LockedDocument { document, customer_ref, zone });
    }
    Ok(locked)
}

/// Records that contracts could not be billed, unless that was recorded before. A failure to record it is logged, because the
/// other contracts are billed.
pub(crate) fn record_failures(
    transactions: &mut Transactions<'_, '_>,
    organization: OrganizationId,
    failed: &[FailedContract],
) -> UseCaseResult<()> {
    let mut contracts: BTreeMap<ContractRef, BillingProblem> = BTreeMap::new();
    for FailedContract { contract_ref, document, problem, .. } in failed {
        // An unavailable database cannot record anything.
        if matches!(problem, UseCaseError::Store(StoreError::Unavailable(_))) {
            continue;
        }
        let (code, detail) = transactions.services().teller.reason(problem);
        let of_contract = contracts.entry(*contract_ref).or_insert_with(|| BillingProblem { failures: Vec::new(), detail });
        of_contract.failures.push(DocumentFailure { document: *document, code: code.to_owned() });
    }
    for (contract_ref, problem) in contracts {
        if let Err(error) = transactions.write(organization, |cx| record_failure(cx, contract_ref, problem.clone())) {
            if transactions.is_joined() {
                return Err(error);
            }
            tracing::warn!(%error, %contract_ref, "cannot record that a contract is not billed");
        }
    }
    Ok(())
}

fn record_failure(cx: &mut Cx<'_>, contract_ref: ContractRef, problem: BillingProblem) -> UseCaseResult<()> {
    let Some(key) = cx.tx.contract_key(cx.organization, contract_ref)? else { return Ok(()) };
    let mut books = book_repository::lock_headers(cx.tx, cx.organization, &[key])?;
    let Some(mut book) = books.pop() else { return Ok(()) };
    let (failure, is_notified) = notify::billing_failure(&problem, book.notifications.failure.as_ref(), cx.now);
    if book.notifications.failure.as_ref() != Some(&failure) {
        cx.tx.put_billing_failure(key, Some(&failure))?;
    }
    if !is_notified {
        return Ok(());
    }
    cx.tx.count_contract_notification(key)?;
    let fact = notify::billing(&mut book, Some(problem));
    notifications::record(cx, &[fact], &[])
}

/// Ends the failure to bill a contract, if there is one. Returns the fact that it is billed again, which the caller records.
pub(crate) fn end_failure(cx: &mut Cx<'_>, book: &mut ContractBook) -> UseCaseResult<Option<Fact>> {
    if book.notifications.failure.is_none() {
        return Ok(None);
    }
    book.notifications.failure = None;
    let key = book.contract.key(cx.organization);
    cx.tx.put_billing_failure(key, None)?;
    cx.tx.count_contract_notification(key)?;
    Ok(Some(notify::billing(book, None)))
}
