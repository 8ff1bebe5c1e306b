//! `verify`: recomputes every invariant from raw events, reading alone, and names what is wrong where.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Principal;
use billing_domain::account::AccountRows;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::document::lines::{LedgerLine, LineKey, sign};
use billing_domain::document::{Document, DocumentKind, Lifecycle, Purpose};
use billing_domain::ledger::receive::{Account, check_account};
use billing_domain::ledger::{ContractBook, check};
use billing_domain::money::MoneySum;
use billing_domain::page::PageRequest;
use billing_domain::ports::{Access, ApplicationsOf, DocumentFilter, DocumentsOf, PaymentsOf, StoreError, Tx, transact};
use billing_domain::refs::{ContractRef, OrganizationId};
use billing_domain::usage::{UsageKey, UsageTotal};
use billing_domain::verification::{RecordedVerification, Verification};

use crate::books::{self, corrupt};
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 100;

/// Looks at everything there is; where it is to be recorded, each organization then has what was found of it.
///
/// # Errors
/// [`UseCaseError::Store`] when the store can't be read, or written; what can't be right is a finding, not an error.
pub fn verify(services: &Services, is_recorded: bool) -> UseCaseResult<Verification> {
    let mut verification = Verification::default();
    let organizations = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.all_organizations()?))?;
    for organization in organizations {
        let begun_at = services.now();
        let found = verify_organization(services, organization)?;
        if is_recorded {
            let recorded = RecordedVerification::of(begun_at, services.now(), found.clone());
            transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.put_verification(organization, &recorded)?))?;
        }
        verification.add(found);
    }
    Ok(verification)
}

/// The last verification of the organization that was recorded.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn last_verification(services: &Services, principal: &Principal) -> UseCaseResult<Option<RecordedVerification>> {
    let organization = allow(principal, UseCase::GetVerification)?;
    transact(&*services.store, Access::Glance, |tx| Ok(tx.last_verification(organization)?))
}

fn verify_organization(services: &Services, organization: OrganizationId) -> UseCaseResult<Verification> {
    let mut verification = transact(&*services.store, Access::Read, |tx| {
        let mut verification = Verification::default();
        let broken = [tx.broken_series(organization)?, tx.broken_seals(organization)?, tx.broken_files(organization)?];
        broken.into_iter().flatten().for_each(|broken| verification.find(organization, broken));
        Ok::<_, UseCaseError>(verification)
    })?;
    let now = services.now();
    let looked_at_next = due_contracts(services, organization, now)?;
    let mut after = None;
    loop {
        let contracts = transact(&*services.store, Access::Read, |tx| {
            Ok::<_, UseCaseError>(tx.contracts_after(organization, after, CONTRACTS_PER_PAGE)?)
        })?;
        let Some(last) = contracts.last() else { break };
        after = Some(last.contract_ref);
        for contract in contracts {
            let contract_ref = contract.contract_ref;
            // In a transaction of its own: a row that can't be read is a finding, and the rest is looked at.
            let looked_at = transact(&*services.store, Access::Read, |tx| {
                let mut found = Verification::default();
                let is_looked_at = looked_at_next.contains(&contract_ref);
                verify_contract(tx, organization, contract.clone(), is_looked_at, now, &mut found)?;
                Ok::<_, UseCaseError>(found)
            });
            match looked_at {
                Ok(found) => verification.add(found),
                Err(UseCaseError::Store(StoreError::Corrupt(detail))) => verification.find(contract_ref, detail),
                Err(error) => return Err(error),
            }
        }
    }
    verify_accounts(services, organization, &mut verification)?;
    Ok(verification)
}

/// What is owed: every account adds up (billing rules 9).
fn verify_accounts(services: &Services, organization: OrganizationId, found: &mut Verification) -> UseCaseResult<()> {
    let keys = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.accounts(organization, None)?))?;
    for (key, _) in keys {
        let looked_at = transact(&*services.store, Access::Read, |tx| {
            let unapplied = tx.accounts(organization, Some(key.customer_id))?.into_iter().find(|(other, _)| *other == key);
            let mut account =
                Account::new(key.clone(), true, unapplied.map_or(MoneySum::zero(key.currency), |(_, unapplied)| unapplied));
            account.add(AccountRows {
                documents: tx.account_documents(organization, &key, DocumentsOf::All)?,
                payments: tx.account_payments(organization, &key, PaymentsOf::All)?,
                applications: tx.account_applications(organization, &key, ApplicationsOf::All)?,
            });
            let written_off = tx.written_off(organization, key.customer_id)?.into_iter().find(|(other, _)| *other == key);
            let written_off = written_off.map_or(MoneySum::zero(key.currency), |(_, written_off)| written_off);
            check_account(&account, written_off).map_err(UseCaseError::from)
        });
        let subject = format!("account of customer {} with {} in {}", key.customer_id, key.entity_ref, key.currency);
        match looked_at {
            Ok(wrong) => wrong.into_iter().for_each(|detail| found.find(&subject, detail)),
            Err(UseCaseError::Store(StoreError::Corrupt(detail))) => found.find(&subject, detail),
            Err(UseCaseError::Store(error)) => return Err(error.into()),
            Err(error) => found.find(&subject, error.to_string()),
        }
    }
    Ok(())
}

/// The contracts that the next billing run looks at.
fn due_contracts(services: &Services, organization: OrganizationId, now: Timestamp) -> UseCaseResult<BTreeSet<ContractRef>> {
    transact(&*services.store, Access::Read, |tx| {
        let mut due: BTreeSet<ContractRef> = BTreeSet::new();
        let mut after = None;
        loop {
            let page = tx.contracts_due(Some(organization), now, after, CONTRACTS_PER_PAGE)?;
            due.extend(page.iter().map(|contract| contract.key.contract));
            match page.last() {
                Some(last) => after = Some(*last),
                None => return Ok::<_, UseCaseError>(due),
            }
        }
    })
}

fn verify_contract(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contract: Contract,
    is_looked_at: bool,
    now: Timestamp,
    found: &mut Verification,
) -> UseCaseResult<()> {
    found.contracts += 1;
    let contract_ref = contract.contract_ref;
    let number = contract.number_text();
    let book = books::empty(tx, contract.key(organization), None).and_then(|book| match book {
        Some(book) => books::whole(tx, organization, book, now),
        None => Err(corrupt("a contract", &contract_ref, "is not there")),
    });
    let mut book = match book {
        Ok(book) => book,
        Err(UseCaseError::Store(error @ StoreError::Unavailable(_))) => return Err(error.into()),
        Err(error) => {
            found.find(contract_ref, error.to_string());
            return Ok(());
        }
    };
    verify_totals(tx, organization, &book, found)?;
    books::recount_all(tx, organization, &mut book)?;
    let wrong = check::check(&book).and_then(|wrong| {
        // What the next run looks at isn't lost.
        let lost = if is_looked_at { Vec::new() } else { check::check_due(&book, now)? };
        Ok(wrong.into_iter().chain(lost).collect::<Vec<_>>())
    });
    match wrong {
        Ok(wrong) => wrong.into_iter().for_each(|detail| found.find(format!("{number} ({contract_ref})"), detail)),
        Err(refusal) => found.find(contract_ref, refusal.to_string()),
    }
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

/// M2: running totals are the aggregate of the live events, as far as they tell it.
fn verify_totals(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    found: &mut Verification,
) -> UseCaseResult<()> {
    let contract = &book.contract;
    let kept: BTreeMap<&UsageKey, &UsageTotal> = book.usage().iter().filter(|(_, total)| total.events > 0).collect();
    let counted: BTreeMap<UsageKey, UsageTotal> = tx.recount_contract(contract.key(organization))?.into_iter().collect();
    found.events += counted.values().map(|total| total.events).sum::<u64>();
    for key in kept.keys().copied().chain(counted.keys()).collect::<BTreeSet<_>>() {
        if !same_total(kept.get(key).copied(), counted.get(key)) {
            let detail = format!(
                "usage of {} in the period from {}: kept {:?}, counted {:?}",
                key.usage_product_ref,
                key.period_start,
                kept.get(key),
                counted.get(key)
            );
            found.find(contract.contract_ref, detail);
        }
    }
    Ok(())
}

/// What a kept total doesn't know any more isn't wrong.
fn same_total(kept: Option<&UsageTotal>, counted: Option<&UsageTotal>) -> bool {
    match (kept, counted) {
        (Some(kept), Some(counted)) => {
            kept.sum == counted.sum
                && kept.events == counted.events
                && (kept.max.is_none() || kept.max == counted.max)
                && (kept.latest.is_none() || kept.latest == counted.latest)
                && (kept.last_day.is_none() || kept.last_day == counted.last_day)
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// M1, M5, N4: an issued document adds up, in one currency, and its ledger lines, parent and settlement are right.
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
    // Documents of early releases don't say what of usage they bill in advance.
    let compared = |line: LedgerLine| {
        let LineKey { product_no, period_start, line_item_id, .. } = line.key;
        (product_no, period_start, line_item_id, line.rates, line.amount.minor())
    };
    let mut kept: Vec<_> = tx.ledger_lines(head.key(organization))?.into_iter().map(compared).collect();
    let mut said: Vec<_> = content.ledger_lines().into_iter().map(compared).collect();
    kept.sort();
    said.sort();
    if kept != said {
        found.find(number, "its ledger lines are not its content's");
    }
    if head.parent.is_none() && (head.kind != DocumentKind::Invoice || head.purpose == Purpose::Usage) {
        found.find(number, "it has no parent");
    }
    if head.kind != DocumentKind::Invoice && content.total.minor() < 0 && !matches!(document.lifecycle, Lifecycle::Void(_)) {
        found.find(number, format!("its total has the wrong sign for {}", sign(head.kind)));
    }
    Ok(())
}
