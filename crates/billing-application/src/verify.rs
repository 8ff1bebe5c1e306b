//! Verification: recomputes every invariant from raw events in read transactions, and reports violations with their location.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use billing_domain::calendar::Timestamp;
use billing_domain::credit::CreditDraw;
use billing_domain::document::lines::{LedgerLine, LineKey, sign};
use billing_domain::document::{Document, DocumentKind, Lifecycle, Purpose};
use billing_domain::ledger::overdue::{self, VersionTimes};
use billing_domain::ledger::receivables::{ReceivablesAccount, check_account};
use billing_domain::ledger::recount::Recount;
use billing_domain::ledger::{ContractBook, check};
use billing_domain::money::{AmountOutOfRange, MoneySum};
use billing_domain::notification::NOTIFICATION_DAYS;
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    Access, ApplicationsOf, DocumentFilter, DocumentsOf, DrawFilter, GrantFilter, PaymentsOf, StoreError, StoreResult,
    StoredDraw, Tx, transact,
};
use billing_domain::receivables::AccountRows;
use billing_domain::refs::{ContractKey, ContractRef, CreditGrantRef, CustomerId, DocumentRef, OrganizationId};
use billing_domain::refusal::Refusal;
use billing_domain::usage::{UsageKey, UsageTotal};
use billing_domain::verification::{RecordedVerification, Verification};

use crate::Services;
use crate::basics::{DAY_SECONDS, corrupt};
use crate::book_repository;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// The number of contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 100;
/// The number of documents of a grant read at a time.
const DOCUMENTS_AT_ONCE: usize = 100;
/// A time that no transaction takes, in seconds.
const LONGEST_TRANSACTION_SECONDS: i64 = 3600;

/// Verifies every organization and returns the findings of each. If `is_recorded` is set, also saves the findings in each
/// organization.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the database is unavailable. Invalid data is a finding and does not stop the
/// verification.
pub fn verify(services: &Services, is_recorded: bool) -> UseCaseResult<Vec<(OrganizationId, Verification)>> {
    let organizations = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.all_organizations()?))?;
    let mut verified = Vec::with_capacity(organizations.len());
    for organization in organizations {
        let begun_at = services.now();
        let found = verify_organization(services, organization)?;
        if is_recorded {
            let recorded = RecordedVerification::of(begun_at, services.now(), found.clone());
            transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.put_verification(organization, &recorded)?))?;
        }
        verified.push((organization, found));
    }
    Ok(verified)
}

/// Returns the latest recorded verification of the organization.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the verification cannot be read.
pub fn last_verification(cx: &mut Cx<'_>) -> UseCaseResult<Option<RecordedVerification>> {
    Ok(cx.tx.last_verification(cx.organization)?)
}

/// Reads in a separate transaction. Unreadable data is a finding, and an unavailable database is an error.
fn look<T>(
    services: &Services,
    subject: impl Display,
    found: &mut Verification,
    read: impl Fn(&mut dyn Tx) -> UseCaseResult<T>,
) -> UseCaseResult<Option<T>> {
    match transact(&*services.store, Access::Read, read) {
        Ok(read) => Ok(Some(read)),
        Err(UseCaseError::Store(error @ StoreError::Unavailable(_))) => Err(error.into()),
        Err(error) => {
            found.find(subject, reason(&error));
            Ok(None)
        }
    }
}

/// Returns the error message, including the details of invalid rows.
fn reason(error: &UseCaseError) -> String {
    match error {
        UseCaseError::Store(StoreError::Corrupt(detail)) => detail.clone(),
        error => error.to_string(),
    }
}

fn verify_organization(services: &Services, organization: OrganizationId) -> UseCaseResult<Verification> {
    let mut found = Verification::default();
    let now = services.now();
    let series: [ReadFindings; 3] = [
        |tx, organization| tx.broken_series(organization),
        |tx, organization| tx.broken_seals(organization),
        |tx, organization| tx.broken_files(organization),
    ];
    for broken in series {
        let broken = look(services, organization, &mut found, |tx| Ok(broken(tx, organization)?))?;
        broken.into_iter().flatten().for_each(|broken| found.find(organization, broken));
    }
    let looked_at_next = look(services, organization, &mut found, |tx| due_contracts(tx, organization, now))?.unwrap_or_default();
    let mut after = None;
    loop {
        let page =
            look(services, organization, &mut found, |tx| Ok(tx.contracts_after(organization, after, CONTRACTS_PER_PAGE)?))?;
        let page = page.unwrap_or_default();
        let Some(last) = page.last() else { break };
        after = Some(last.contract);
        for key in page {
            let is_looked_at = looked_at_next.contains(&key.contract);
            let verified = look(services, key.contract, &mut found, |tx| {
                let mut found = Verification::default();
                verify_contract(tx, key, Due { now, is_looked_at }, &mut found)?;
                Ok(found)
            })?;
            found.contracts += 1;
            if let Some(verified) = verified {
                found.add(verified);
            }
        }
    }
    verify_accounts(services, organization, &mut found)?;
    verify_limits(services, organization, &mut found)?;
    verify_credit(services, organization, &mut found)?;
    verify_notifications(services, organization, &mut found)?;
    Ok(found)
}

/// Verifies that customers with limits are watched, and that notifications state no level that a limit does not have.
fn verify_limits(services: &Services, organization: OrganizationId, found: &mut Verification) -> UseCaseResult<()> {
    let mut page = PageRequest::LARGEST;
    loop {
        let read = look(services, organization, found, |tx| {
            let limits = tx.limits(organization, None, page)?;
            let flags = limits.items.iter().map(|limit| tx.watched_customer(organization, limit.customer_id, None));
            let flags = flags.collect::<StoreResult<Vec<_>>>()?;
            Ok((limits, flags))
        })?;
        let Some((limits, flags)) = read else { return Ok(()) };
        for (limit, (customer, is_watched)) in limits.items.iter().zip(flags) {
            let subject = format!("limit {}", limit.limit_ref);
            if !is_watched {
                found.find(
                    &subject,
                    format!("the customer {} is not watched, so the limit rejects nothing", customer.customer_ref),
                );
            }
            if limit.reached.thresholds > limit.levels.thresholds.len() {
                found.find(&subject, "notifications state more thresholds than it has");
            }
        }
        if limits.items.len() < usize::try_from(page.size()).unwrap_or(usize::MAX) {
            return Ok(());
        }
        page = page.next();
    }
}

/// Verifies that each grant's draws are what its documents state, and add up to what is drawn (billing rules 12).
fn verify_credit(services: &Services, organization: OrganizationId, found: &mut Verification) -> UseCaseResult<()> {
    let mut page = PageRequest::LARGEST;
    loop {
        let read = look(services, organization, found, |tx| Ok(tx.grants(organization, &GrantFilter::default(), page)?.items))?;
        let Some(grants) = read else { return Ok(()) };
        for grant in &grants {
            let subject = format!("credit grant {}", grant.grant_ref);
            let wrong = look(services, &subject, found, |tx| verify_grant(tx, organization, grant.grant_ref))?;
            wrong.into_iter().flatten().for_each(|detail| found.find(&subject, detail));
        }
        if grants.len() < usize::try_from(page.size()).unwrap_or(usize::MAX) {
            return Ok(());
        }
        page = page.next();
    }
}

fn verify_grant(tx: &mut dyn Tx, organization: OrganizationId, grant_ref: CreditGrantRef) -> UseCaseResult<Vec<String>> {
    let grant = tx.grant(organization, grant_ref)?.ok_or_else(|| corrupt("a grant", &grant_ref, "is not there"))?;
    let customer_id = grant.account.customer_id;
    let drawn = drawn_by_document(tx, organization, customer_id, grant_ref)?;
    let mut wrong = Vec::new();
    let sum = drawn.values().try_fold(0i64, |sum, minor| sum.checked_add(*minor)).ok_or(AmountOutOfRange)?;
    if sum != grant.drawn.minor() {
        wrong.push(format!("its draws add up to {sum} minor units, and {} are drawn", grant.drawn.minor()));
    }
    let (_, is_watched) = tx.watched_customer(organization, customer_id, None)?;
    if !is_watched {
        wrong.push("its customer is not watched, so two documents can take the same credit".to_owned());
    }
    let refs: Vec<DocumentRef> = drawn.keys().copied().collect();
    for documents in refs.chunks(DOCUMENTS_AT_ONCE) {
        let read = tx.documents_by_refs(organization, &[customer_id], documents)?;
        for document_ref in documents {
            let document = read.iter().find(|document| document.head.document_ref == *document_ref);
            let stated = document.map(|document| stated_draw(document, grant_ref)).transpose()?.unwrap_or_default();
            if drawn.get(document_ref) != Some(&stated) {
                let drawn = drawn.get(document_ref).copied().unwrap_or_default();
                wrong.push(format!("document {document_ref} states {stated} minor units of it, and its draws {drawn}"));
            }
        }
    }
    Ok(wrong)
}

/// Returns what documents have taken of a grant, in minor units.
fn drawn_by_document(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    grant_ref: CreditGrantRef,
) -> UseCaseResult<BTreeMap<DocumentRef, i64>> {
    let filter = DrawFilter { customer_id: Some(customer_id), grant_ref: Some(grant_ref), ..DrawFilter::default() };
    let (mut drawn, mut page) = (BTreeMap::<DocumentRef, i64>::new(), PageRequest::LARGEST);
    loop {
        let read = tx.draws(organization, &filter, page)?.items;
        for StoredDraw { draw, .. } in &read {
            let sum = drawn.entry(draw.document_ref).or_default();
            *sum = sum.checked_add(draw.amount.minor()).ok_or(AmountOutOfRange)?;
        }
        if read.len() < usize::try_from(page.size()).unwrap_or(usize::MAX) {
            return Ok(drawn);
        }
        page = page.next();
    }
}

/// Returns what a document's content states that it took of a grant, in minor units. A void document has given it back.
fn stated_draw(document: &Document, grant_ref: CreditGrantRef) -> Result<i64, Refusal> {
    let (Lifecycle::Issued(issued) | Lifecycle::Uncollectible(issued)) = &document.lifecycle else { return Ok(0) };
    let draws = CreditDraw::of_content(document.head.document_ref, document.head.kind, &issued.content)?;
    let of_grant = draws.iter().filter(|draw| draw.grant_ref == grant_ref).map(|draw| draw.amount.minor());
    Ok(of_grant.sum())
}

/// Verifies that issued documents have their notifications, as far as notifications are retained.
fn verify_notifications(services: &Services, organization: OrganizationId, found: &mut Verification) -> UseCaseResult<()> {
    let missing = look(services, organization, found, |tx| {
        let now = services.now();
        let since = notified_since(tx.oldest_notification(organization)?, now);
        Ok(tx.issued_without_notification(organization, since, now)?)
    })?;
    for document_ref in missing.into_iter().flatten() {
        found.find(format!("document {document_ref}"), "it is issued, and no notification states that");
    }
    Ok(())
}

/// Returns the instant since which every issued document has a notification. `oldest` is the creation time of the oldest
/// notification.
fn notified_since(oldest: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let shortest = i64::from(*NOTIFICATION_DAYS.start()) * DAY_SECONDS;
    // A transaction can commit an older notification than another one that is already deleted.
    let retained = now.plus_seconds(LONGEST_TRANSACTION_SECONDS - shortest);
    oldest.map_or(retained, |oldest| retained.min(oldest.plus_seconds(LONGEST_TRANSACTION_SECONDS)))
}

/// A query that returns a sentence for each violation in an organization.
type ReadFindings = fn(&mut dyn Tx, OrganizationId) -> StoreResult<Vec<String>>;

/// Verifies that every account adds up (billing rules 9).
fn verify_accounts(services: &Services, organization: OrganizationId, found: &mut Verification) -> UseCaseResult<()> {
    let keys = look(services, organization, found, |tx| Ok(tx.accounts(organization, None)?))?;
    for (key, _) in keys.into_iter().flatten() {
        let subject = format!("account of customer {} with {} in {}", key.customer_id, key.entity_ref, key.currency);
        let wrong = look(services, &subject, found, |tx| {
            let unapplied = tx.accounts(organization, Some(&[key.customer_id]))?.into_iter().find(|(other, _)| *other == key);
            let unapplied = unapplied.map_or(MoneySum::zero(key.currency), |(_, unapplied)| unapplied);
            let mut account = ReceivablesAccount::new(key.clone(), true, unapplied);
            account.add(AccountRows {
                documents: tx.account_documents(organization, &key, DocumentsOf::All)?,
                payments: tx.account_payments(organization, &key, PaymentsOf::All)?,
                applications: tx.account_applications(organization, &key, ApplicationsOf::All)?,
            });
            let written_off = tx.written_off(organization, &[key.customer_id])?.into_iter().find(|(other, _)| *other == key);
            let written_off = written_off.map_or(MoneySum::zero(key.currency), |(_, written_off)| written_off);
            check_account(&account, written_off).map_err(UseCaseError::from)
        })?;
        found.accounts += 1;
        wrong.into_iter().flatten().for_each(|detail| found.find(&subject, detail));
    }
    Ok(())
}

/// Returns the contracts that the next billing run checks.
fn due_contracts(tx: &mut dyn Tx, organization: OrganizationId, now: Timestamp) -> UseCaseResult<BTreeSet<ContractRef>> {
    let mut due: BTreeSet<ContractRef> = BTreeSet::new();
    let mut after = None;
    loop {
        let page = tx.contracts_due(Some(organization), now, after, CONTRACTS_PER_PAGE)?;
        due.extend(page.iter().map(|contract| contract.key.contract));
        match page.last() {
            Some(last) => after = Some(*last),
            None => return Ok(due),
        }
    }
}

/// The facts that decide whether a due document is late.
#[derive(Clone, Copy)]
struct Due {
    now: Timestamp,
    /// Whether the next billing run checks the contract.
    is_looked_at: bool,
}

fn verify_contract(tx: &mut dyn Tx, key: ContractKey, due: Due, found: &mut Verification) -> UseCaseResult<()> {
    let (organization, contract_ref) = (key.organization, key.contract);
    let book =
        book_repository::load_header(tx, key, None)?.ok_or_else(|| corrupt("a contract", &contract_ref, "is not there"))?;
    let mut book = book_repository::load_book(tx, organization, book, due.now)?;
    let subject = format!("{} ({contract_ref})", book.contract.number_text());
    verify_totals(tx, organization, &book, found)?;
    let (_, is_watched) = tx.watched_customer(organization, key.customer, None)?;
    if book.contract.is_watched != is_watched {
        found.find(&subject, "the customer is watched and the contract is not, or the other way round");
    }
    // No foreign key connects events with documents.
    match tx.events_without_document(key)? {
        0 => {}
        lost => found.find(&subject, format!("{lost} of its events are on documents that do not exist")),
    }
    book_repository::recount_all(tx, organization, &mut book)?;
    let mut note = |wrong: Result<Vec<String>, Refusal>| match wrong {
        Ok(wrong) => wrong.into_iter().for_each(|detail| found.find(&subject, detail)),
        Err(refusal) => found.find(&subject, refusal.to_string()),
    };
    note(check::check(&book));
    // A contract with a document that is due and not issued is always among those that the next run checks.
    let versions = if due.is_looked_at { tx.version_times(key)? } else { VersionTimes::new() };
    note(unissued(&book, &versions, due));
    let filter = DocumentFilter { contract_ref: Some(contract_ref), ..DocumentFilter::default() };
    let mut numbers: BTreeSet<u32> = BTreeSet::new();
    let mut documents: u64 = 0;
    let mut page = PageRequest::LARGEST;
    loop {
        let read = tx.documents(organization, &filter, page)?;
        for document in &read.items {
            verify_document(tx, organization, document, found)?;
            numbers.insert(document.head.number_in_contract);
        }
        documents += read.items.len() as u64;
        if read.items.is_empty() || documents >= read.total {
            break;
        }
        page = page.next();
    }
    found.documents += documents;
    if numbers.len() as u64 != documents || numbers.last().is_some_and(|last| u64::from(*last) != documents) {
        found.find(contract_ref, "its documents are not numbered 1 to n");
    }
    Ok(())
}

/// Returns a sentence for each document that has been due for a day but is not issued, with the reason. Also returns due
/// documents of contracts that the next billing run does not check (billing rules 2).
fn unissued(book: &ContractBook, versions: &VersionTimes, due: Due) -> Result<Vec<String>, Refusal> {
    let describe = |late: overdue::Overdue, reason: String| {
        let number = late.document_ref.and_then(|document_ref| book.document(document_ref)).map(|it| it.head.number.to_string());
        let what = number.unwrap_or_else(|| "a document that isn't opened".to_owned());
        format!("{what}, period from {}: it is due since {} and is not issued: {reason}", late.period_start, late.due_at)
    };
    if !due.is_looked_at {
        let lost = overdue::unissued(book, due.now)?.into_iter();
        return Ok(lost.map(|lost| describe(lost, "no billing run would look at it".to_owned())).collect());
    }
    let overdue = overdue::overdue(book, versions, due.now)?.into_iter();
    let reason = |overdue: &overdue::Overdue| {
        let reason = |refusal: &Refusal| format!("{}: {refusal}", refusal.conflict_code().unwrap_or("refused"));
        overdue.reason.as_ref().map_or_else(|| "a billing run would issue it".to_owned(), reason)
    };
    Ok(overdue
        .map(|overdue| {
            let reason = reason(&overdue);
            describe(overdue, reason)
        })
        .collect())
}

/// M2: verifies that running totals equal the aggregates of the live events, as far as the totals have values.
fn verify_totals(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    found: &mut Verification,
) -> UseCaseResult<()> {
    let contract = &book.contract;
    let kept: BTreeMap<&UsageKey, &UsageTotal> = book.usage().iter().filter(|(_, total)| total.events > 0).collect();
    let Recount { totals: counted, uncounted, .. } = tx.recount_contract(organization, contract)?;
    found.events += counted.values().map(|total| total.events).sum::<u64>();
    if let Some(uncounted) = uncounted {
        found.events += uncounted.count;
        let detail = format!("{} events are counted by no line item, the first is {}", uncounted.count, uncounted.first);
        found.find(contract.contract_ref, detail);
    }
    for key in kept.keys().copied().chain(counted.keys()).collect::<BTreeSet<_>>() {
        if !same_total(kept.get(key).copied(), counted.get(key)) {
            let detail = format!(
                "usage of {}{} in the period from {}: kept {:?}, counted {:?}",
                key.usage_product_ref,
                key.line_item_id.as_ref().map_or_else(String::new, |id| format!(", line item {id},")),
                key.period_start,
                kept.get(key),
                counted.get(key)
            );
            found.find(contract.contract_ref, detail);
        }
    }
    Ok(())
}

/// Compares totals. Values missing in the stored total are no differences.
fn same_total(kept: Option<&UsageTotal>, counted: Option<&UsageTotal>) -> bool {
    match (kept, counted) {
        (Some(kept), Some(counted)) => {
            kept.sum == counted.sum
                && kept.events == counted.events
                && (kept.max.is_none() || kept.max == counted.max)
                && (kept.latest.is_none() || kept.latest == counted.latest)
                && (kept.last_day.is_none() || kept.last_day == counted.last_day)
                && kept.distinct.zip(counted.distinct).is_none_or(|(kept, counted)| kept == counted)
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// M1, M5, N4: verifies that an issued document adds up in one currency, and that its ledger lines, parent and sign are
/// right.
fn verify_document(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    document: &Document,
    found: &mut Verification,
) -> UseCaseResult<()> {
    let head = &document.head;
    let number = &head.number;
    let Some(issued) = document.lifecycle.issued() else { return Ok(()) };
    let content = &issued.content;
    if !content.adds_up() {
        found.find(number, "its totals are not the sums of its lines");
    }
    if content.total.currency() != head.currency {
        found.find(number, "its content has another currency than its head");
    }
    // Documents of early releases lack the mark for usage billed in advance, so it is not compared.
    let compared = |line: LedgerLine| {
        let LineKey { product_no, period_start, line_item_id, .. } = line.key;
        (product_no, period_start, line_item_id, line.rates, line.amount.minor())
    };
    let mut kept: Vec<_> = tx.ledger_lines(head.key(organization))?.into_iter().map(compared).collect();
    let mut actual: Vec<_> = content.ledger_lines().into_iter().map(compared).collect();
    kept.sort();
    actual.sort();
    if kept != actual {
        found.find(number, "its ledger lines are not its content's");
    }
    let in_force = matches!(document.lifecycle, Lifecycle::Issued(_) | Lifecycle::Uncollectible(_));
    if in_force && !content.prepaid.is_empty() {
        let (customer_id, document_ref) = (Some(head.customer_id), Some(head.document_ref));
        let filter = DrawFilter { customer_id, document_ref, grant_ref: None };
        let draws = tx.draws(organization, &filter, PageRequest::LARGEST)?.items;
        if draws.len() != content.prepaid.len() {
            found.find(number, format!("it states credit of {} grants, and has {} draws", content.prepaid.len(), draws.len()));
        }
    }
    if head.parent.is_none() && (head.kind != DocumentKind::Invoice || head.purpose == Purpose::Usage) {
        found.find(number, "it has no parent");
    }
    if head.kind != DocumentKind::Invoice && content.total.minor() < 0 && !matches!(document.lifecycle, Lifecycle::Void(_)) {
        found.find(number, format!("its total has the wrong sign for {}", sign(head.kind)));
    }
    Ok(())
}
