//! Decides which changes cause notifications, and when time alone can cause one.
//!
//! An event on a draft that exists causes none: its response states the change.

use std::collections::BTreeMap;

use super::{
    BillingFact, BillingProblem, ContractFact, DocumentFact, Fact, FactData, MAX_FAILURES, Notice, NotificationType, Subject,
};
use crate::calendar::{TimeZone, Timestamp, day_after, minus_days};
use crate::contract::Contract;
use crate::credit::{CreditGrant, GrantView};
use crate::document::{BookDocument, DocumentHead, DocumentKind, IssuedDocument, LifecycleStatus, Settlement};
use crate::ledger::receivables::{AccountEntry, AccountParties, ReceivablesAccount};
use crate::ledger::{BillingFailure, ContractBook, Entry};
use crate::money::Money;
use crate::refs::{CustomerRef, DocumentRef};
use crate::refusal::Refusal;
use crate::runs::DocumentFailure;

/// The number of days before the end of a contract at which a notification announces the end.
const ENDING_DAYS: u32 = 30;
/// The numbers of days before the end of prepaid credit at which notifications announce the end.
const CREDIT_ENDING_DAYS: [u32; 2] = [30, 7];
/// The time after which a notification repeats that a contract cannot be billed, in seconds.
const FAILURE_REPEATED_SECONDS: i64 = 86_400;

/// Returns the facts that entries of a contract make true, in order. The book includes the effect of the entries.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks a document or an entity of the entries, and
/// [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn of(book: &ContractBook, entries: &[Entry], now: Timestamp) -> Result<Vec<Fact>, Refusal> {
    let document = |document: BookDocument| document_data(document, book.contract.customer_ref.clone());
    let mut facts = Vec::new();
    for entry in entries {
        let (kind, data) = match entry {
            Entry::Amended(contract) => (NotificationType::ContractChanged, contract_data(book, contract, now)?),
            Entry::Opened { head, family } => (NotificationType::DocumentOpened, document(opened(head, *family))?),
            Entry::Issued { document_ref, issued: content, .. } => {
                (NotificationType::DocumentIssued, document(issued(known(book, *document_ref)?, content))?)
            }
            Entry::Discarded { document_ref, .. } | Entry::Voided { document_ref, .. } => {
                (NotificationType::DocumentVoided, document(known(book, *document_ref)?.clone())?)
            }
            Entry::Redrawn(_)
            | Entry::Lines { .. }
            | Entry::EventsMoved { .. }
            | Entry::UsageMoved { .. }
            | Entry::Charged { .. }
            | Entry::Due(_) => continue,
        };
        facts.push(Fact { kind, sequence: 0, data });
    }
    // The counts of the book include the new facts, so the last fact of a subject has the count as its sequence.
    let mut lasts: BTreeMap<Subject, u64> = BTreeMap::new();
    for fact in facts.iter_mut().rev() {
        let count = match fact.subject() {
            Subject::Document(document_ref) => known(book, document_ref)?.notifications,
            Subject::Contract(_) | Subject::Limit(_) | Subject::Grant(_) | Subject::Endpoint(_) => book.notifications.count,
        };
        let last = lasts.entry(fact.subject()).or_insert(count);
        fact.sequence = *last;
        *last = last.saturating_sub(1);
    }
    Ok(facts)
}

/// Returns the notices that entries of a contract require. The book includes the effect of the entries and of the settlement.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks a document or an entity of the entries, and
/// [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn notices(book: &ContractBook, entries: &[Entry], now: Timestamp) -> Result<Vec<Notice>, Refusal> {
    let mut notices = Vec::new();
    for entry in entries {
        match entry {
            Entry::Issued { document_ref, .. } => {
                let document = known(book, *document_ref)?;
                let zone = book.entity(&document.head.entity_ref)?.profile.time_zone;
                notices.extend(overdue_notice(document, zone)?);
            }
            Entry::Amended(contract) if book.is_end_moved() => notices.extend(ending_notice(book, contract, now)?),
            _ => {}
        }
    }
    Ok(notices)
}

/// Returns the fact that a contract was created, and the notice of its end.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks an entity of the contract.
pub fn created(book: &ContractBook, now: Timestamp) -> Result<(Fact, Option<Notice>), Refusal> {
    let data = contract_data(book, &book.contract, now)?;
    Ok((Fact { kind: NotificationType::ContractChanged, sequence: 1, data }, ending_notice(book, &book.contract, now)?))
}

/// Returns the facts that entries of an account make true, and the notices of documents that have an amount due again. The
/// account includes the effect of the entries, and knows its [parties](ReceivablesAccount::with_parties).
///
/// # Errors
/// Returns [`Refusal::Broken`] when the account lacks its parties or a document of the entries.
pub fn of_account(
    account: &ReceivablesAccount,
    entries: &[AccountEntry],
    now: Timestamp,
) -> Result<(Vec<Fact>, Vec<Notice>), Refusal> {
    let (mut facts, mut notices) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| entry.is_notified()) {
        let AccountEntry::Settled { document_ref, before, .. } = entry else { continue };
        let AccountParties { customer_ref, zone } =
            account.parties().ok_or_else(|| Refusal::Broken("an account without its parties".to_owned()))?;
        let document = account.document(*document_ref);
        let document = document.ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the account")))?;
        if before.amount_due.is_none_or(|due| due.minor() == 0) {
            notices.extend(overdue_notice(document, *zone)?.filter(|notice| notice.at > now));
        }
        facts.push(document_fact(NotificationType::DocumentSettled, document.clone(), customer_ref.clone())?);
    }
    Ok((facts, notices))
}

/// Returns the fact of a document whose count includes the fact.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn document_fact(kind: NotificationType, document: BookDocument, customer_ref: CustomerRef) -> Result<Fact, Refusal> {
    Ok(Fact { kind, sequence: document.notifications, data: document_data(document, customer_ref)? })
}

/// Returns the fact that the contract of a book ends soon. Counts it in the book.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks an entity of the contract.
pub fn ending(book: &mut ContractBook, now: Timestamp) -> Result<Fact, Refusal> {
    let sequence = book.notifications.count_next();
    Ok(Fact { kind: NotificationType::ContractEnding, sequence, data: contract_data(book, &book.contract, now)? })
}

/// Returns the fact that a contract could not be billed, with the first [`MAX_FAILURES`] failures, or that it is billed again. Counts
/// it in the book.
pub fn billing(book: &mut ContractBook, failure: Option<BillingProblem>) -> Fact {
    let sequence = book.notifications.count_next();
    let kind = if failure.is_some() { NotificationType::BillingFailed } else { NotificationType::BillingRecovered };
    let contract = &book.contract;
    let first = |mut problem: BillingProblem| {
        problem.failures.truncate(MAX_FAILURES);
        problem
    };
    let fact = BillingFact {
        contract_ref: contract.contract_ref,
        contract_number: contract.number_text(),
        customer_id: contract.customer_id,
        customer_ref: contract.customer_ref.clone(),
        failure: failure.map(first),
    };
    Fact { kind, sequence, data: FactData::Billing(Box::new(fact)) }
}

/// Returns the failure to store after a billing run, and whether a notification states it: the first time, when another document or
/// code comes to it, and then once a day.
pub fn billing_failure(problem: &BillingProblem, previous: Option<&BillingFailure>, now: Timestamp) -> (BillingFailure, bool) {
    let first: Vec<DocumentFailure> = problem.failures.iter().take(MAX_FAILURES).cloned().collect();
    let count = problem.failures.len() as u64;
    let is_notified = previous.is_none_or(|previous| {
        // Only the first failures are known. Of many failures, another one shows by the count.
        let are_known = usize::try_from(previous.count).is_ok_and(|count| count == previous.first.len());
        let has_new = are_known && first.iter().any(|failure| !previous.first.contains(failure));
        has_new || count > previous.count || previous.notified_at.plus_seconds(FAILURE_REPEATED_SECONDS) <= now
    });
    let notified_at = previous.filter(|_| !is_notified).map_or(now, |previous| previous.notified_at);
    (BillingFailure { count, first, notified_at }, is_notified)
}

/// Returns the notice of the day after a document's due date; `None` if no amount is due.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn overdue_notice(document: &BookDocument, zone: TimeZone) -> Result<Option<Notice>, Refusal> {
    if !document.status.is_issued() || document.head.kind == DocumentKind::Credit {
        return Ok(None);
    }
    let is_due = document.owed()?.amount_due.is_some_and(|due: Money| due.minor() > 0);
    let due_date = document.due_date.filter(|_| is_due);
    Ok(due_date.map(|due_date| Notice {
        customer_id: document.head.customer_id,
        subject: Subject::Document(document.head.document_ref),
        kind: NotificationType::DocumentOverdue,
        at: zone.start_of_day(day_after(due_date)),
    }))
}

/// Returns the notice 30 days before the end of a contract; `None` if it has no end or is over.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks an entity of the contract.
pub fn ending_notice(book: &ContractBook, contract: &Contract, now: Timestamp) -> Result<Option<Notice>, Refusal> {
    let zone = zone_of(book, contract)?;
    let last_day = contract.effective_end_date().filter(|last_day| *last_day >= zone.service_date(now));
    Ok(last_day.map(|last_day| Notice {
        customer_id: contract.customer_id,
        subject: Subject::Contract(contract.contract_ref),
        kind: NotificationType::ContractEnding,
        at: zone.start_of_day(minus_days(last_day, ENDING_DAYS)),
    }))
}

/// The decision about a notice whose instant has come. Since it was stored, its subject can have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// The notice no longer applies.
    Drop,
    /// The notice applies later.
    Move(Notice),
    /// A notification is due.
    Notify,
}

impl Review {
    fn of(notice: Option<Notice>, now: Timestamp) -> Self {
        match notice {
            None => Self::Drop,
            Some(notice) if notice.at > now => Self::Move(notice),
            Some(_) => Self::Notify,
        }
    }
}

/// Reviews the notice that a document is overdue. `zone` is the time zone of its entity.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] when an amount is out of range.
pub fn review_document(document: &BookDocument, zone: TimeZone, now: Timestamp) -> Result<Review, Refusal> {
    Ok(Review::of(overdue_notice(document, zone)?, now))
}

/// Reviews the notice that a contract ends.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks an entity of the contract.
pub fn review_contract(book: &ContractBook, now: Timestamp) -> Result<Review, Refusal> {
    Ok(Review::of(ending_notice(book, &book.contract, now)?, now))
}

/// Returns the next notice that prepaid credit ends; `None` if it has no end, or only 7 days are left. `zone` is the time zone of
/// its entity.
pub fn credit_ending_notice(grant: &CreditGrant, zone: TimeZone, now: Timestamp) -> Option<Notice> {
    let next = credit_ending_instants(grant, zone).find(|at| *at > now);
    next.map(|at| Notice {
        customer_id: grant.account.customer_id,
        subject: Subject::Grant(grant.grant_ref),
        kind: NotificationType::CreditEnding,
        at,
    })
}

/// Returns whether a notification states that prepaid credit ends: at the instant of a notice, if the end is still the same and
/// something is free.
pub fn is_credit_ending_notified(notice: &Notice, view: &GrantView, zone: TimeZone) -> bool {
    view.balance.free.minor() > 0 && credit_ending_instants(&view.grant, zone).any(|at| at == notice.at)
}

fn credit_ending_instants(grant: &CreditGrant, zone: TimeZone) -> impl Iterator<Item = Timestamp> + use<> {
    let last_day = grant.to;
    CREDIT_ENDING_DAYS.into_iter().filter_map(move |days| Some(zone.start_of_day(minus_days(last_day?, days))))
}

/// Returns the fact of a grant, whose number of notifications includes it.
pub fn grant_fact(kind: NotificationType, view: GrantView) -> Fact {
    Fact { kind, sequence: view.grant.notifications, data: FactData::Grant(Box::new(view)) }
}

fn zone_of(book: &ContractBook, contract: &Contract) -> Result<TimeZone, Refusal> {
    match contract.stating_entity() {
        None => Ok(TimeZone::UTC),
        Some(entity_ref) => Ok(book.entity(entity_ref)?.profile.time_zone),
    }
}

fn document_data(document: BookDocument, customer_ref: CustomerRef) -> Result<FactData, Refusal> {
    let state = document.state()?;
    let owed = if document.total.is_some() { Some(document.owed()?) } else { None };
    Ok(FactData::Document(Box::new(DocumentFact { document, customer_ref, state, owed })))
}

fn contract_data(book: &ContractBook, contract: &Contract, now: Timestamp) -> Result<FactData, Refusal> {
    let zone = zone_of(book, contract)?;
    let (state, today) = (contract.state(zone, now), zone.service_date(now));
    Ok(FactData::Contract(Box::new(ContractFact { contract: contract.clone(), state, today })))
}

fn opened(head: &DocumentHead, family: DocumentRef) -> BookDocument {
    BookDocument {
        head: head.clone(),
        family,
        status: LifecycleStatus::Draft,
        total: None,
        issue_date: None,
        due_date: None,
        settlement: Settlement::none(head.currency),
        updated_at: head.created_at,
        notifications: 0,
    }
}

/// Returns a document as it was issued, before anything settled it.
fn issued(document: &BookDocument, issued: &IssuedDocument) -> BookDocument {
    BookDocument {
        status: LifecycleStatus::Issued,
        total: Some(issued.content.total),
        issue_date: Some(issued.issue_date),
        due_date: Some(issued.due_date),
        settlement: Settlement::none(document.head.currency),
        ..document.clone()
    }
}

fn known(book: &ContractBook, document_ref: DocumentRef) -> Result<&BookDocument, Refusal> {
    book.document(document_ref).ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the book")))
}
