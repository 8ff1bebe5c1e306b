//! `verify`: recomputes every invariant from raw events, read-only, and names what is wrong where.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::document::correction::sign;
use billing_domain::document::{Document, DocumentKind, Lifecycle, Purpose};
use billing_domain::ports::{Access, StoreError, Tx, transact};
use billing_domain::refs::{ContractRef, OrganizationId};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::ledger::Account;

/// Contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong: a contract, a document, a series.
    pub subject: String,
    /// How.
    pub detail: String,
}

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Verification {
    /// Contracts looked at.
    pub contracts: u64,
    /// Documents looked at.
    pub documents: u64,
    /// Events counted again.
    pub events: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Verification {
    fn add(&mut self, other: Self) {
        self.contracts += other.contracts;
        self.documents += other.documents;
        self.events += other.events;
        self.findings.extend(other.findings);
    }

    fn find(&mut self, subject: impl std::fmt::Display, detail: impl Into<String>) {
        self.findings.push(Finding { subject: subject.to_string(), detail: detail.into() });
    }
}

/// Looks at everything there is.
///
/// # Errors
/// [`UseCaseError::Store`] when the store can't be read; what can't be right is a finding, not an error.
pub fn verify(services: &Services) -> UseCaseResult<Verification> {
    let mut verification = Verification::default();
    let organizations = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.all_organizations()?))?;
    for organization in organizations {
        let seen = verification;
        verification = transact(&*services.store, Access::Read, |tx| {
            let mut verification = seen.clone();
            for broken in tx.broken_series(organization)?.into_iter().chain(tx.broken_seals(organization)?) {
                verification.find(organization, broken);
            }
            Ok::<_, UseCaseError>(verification)
        })?;
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
                    verify_contract(tx, organization, contract.clone(), &mut found)?;
                    Ok::<_, UseCaseError>(found)
                });
                match looked_at {
                    Ok(found) => verification.add(found),
                    Err(UseCaseError::Store(StoreError::Corrupt(detail))) => verification.find(contract_ref, detail),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(verification)
}

fn verify_contract(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contract: Contract,
    found: &mut Verification,
) -> UseCaseResult<()> {
    found.contracts += 1;
    let contract_ref = contract.contract_ref;
    let account = match Account::read(tx, organization, contract) {
        Ok(account) => account,
        Err(error) => {
            found.find(contract_ref, error.to_string());
            return Ok(());
        }
    };
    verify_periods(&account, found);
    verify_totals(tx, &account, found)?;
    let customer_id = account.contract.customer_id;
    let always = Period::new(Date::MIN, Date::MAX).ok_or(UseCaseError::InvariantViolation("an empty calendar"))?;
    let documents = tx.documents_of_contract(organization, customer_id, contract_ref, always)?;
    for document in &documents {
        found.documents += 1;
        verify_document(tx, &account, document, found)?;
    }
    verify_numbers_in_contract(contract_ref, &documents, found);
    verify_conservation(tx, &account, &documents, found)
}

/// P1, P3: the periods of a product partition what it bills.
fn verify_periods(account: &Account, found: &mut Verification) {
    for product in &account.contract.products {
        let mut next: Option<Date> = None;
        for period in product.periods() {
            let span = period.period.span();
            if next.is_some_and(|next| span.start() < next) {
                found.find(
                    account.contract.contract_ref,
                    format!("product {}: period {span} overlaps the one before", product.no.0),
                );
            }
            next = Some(span.end());
        }
    }
}

/// M2: running totals are the aggregate of the live events.
fn verify_totals(tx: &mut dyn Tx, account: &Account, found: &mut Verification) -> UseCaseResult<()> {
    let contract = &account.contract;
    let by_key = |totals: Vec<(UsageKey, UsageTotal)>| {
        totals.into_iter().filter(|(_, total)| total.events > 0).collect::<BTreeMap<_, _>>()
    };
    let kept = by_key(tx.usage_of_contract(account.organization, contract.customer_id, contract.contract_ref)?);
    let counted = by_key(tx.recount_contract(account.organization, contract.customer_id, contract.contract_ref)?);
    found.events += counted.values().map(|total| total.events).sum::<u64>();
    for key in kept.keys().chain(counted.keys()).collect::<BTreeSet<_>>() {
        if !same_total(kept.get(key), counted.get(key)) {
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

fn same_total(a: Option<&UsageTotal>, b: Option<&UsageTotal>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// M1, M5, N4: a document adds up, in one currency, and its ledger lines, parent and settlement are right.
fn verify_document(tx: &mut dyn Tx, account: &Account, document: &Document, found: &mut Verification) -> UseCaseResult<()> {
    let head = &document.head;
    let number = &head.number;
    let content = match document.lifecycle.issued() {
        Some(issued) => issued.content.clone(),
        None if document.is_draft() => account.draft_content(tx, head)?,
        None => return Ok(()),
    };
    if !content.adds_up() {
        found.find(number, "its totals are not the sums of its lines");
    }
    if content.total.currency() != head.currency {
        found.find(number, "its content has another currency than its head");
    }
    if document.lifecycle.issued().is_some() {
        let kept = tx.ledger_lines(account.organization, head.customer_id, head.document_ref)?;
        let mut kept: Vec<_> = kept.iter().map(|line| (line.key(), line.amount.minor())).collect();
        let mut said: Vec<_> = content.ledger_lines().iter().map(|line| (line.key(), line.amount.minor())).collect();
        kept.sort();
        said.sort();
        if kept != said {
            found.find(number, "its ledger lines are not its content's");
        }
    }
    if head.parent.is_none() && (head.kind != DocumentKind::Invoice || head.purpose == Purpose::Usage) {
        found.find(number, "it has no parent");
    }
    let mut credits = 0;
    for child in tx.documents_of_parent(account.organization, head.customer_id, head.document_ref)? {
        if let (DocumentKind::Credit, Lifecycle::Issued(issued)) = (child.head.kind, &child.lifecycle) {
            credits += issued.content.total.minor();
        }
    }
    if document.settlement.credits.minor() != credits {
        found.find(number, format!("credits of {} are noted, {credits} are issued", document.settlement.credits.minor()));
    }
    let paid = tx.sum_of_payments(account.organization, head.customer_id, head.document_ref)?;
    if document.settlement.paid.minor() != paid {
        found.find(number, format!("payments of {} are noted, {paid} are recorded", document.settlement.paid.minor()));
    }
    Ok(())
}

/// A contract's documents count 1…n.
fn verify_numbers_in_contract(contract_ref: ContractRef, documents: &[Document], found: &mut Verification) {
    let numbers: BTreeSet<u32> = documents.iter().map(|document| document.head.number_in_contract).collect();
    if numbers.len() != documents.len() || numbers.last().is_some_and(|last| *last as usize != documents.len()) {
        found.find(contract_ref, "its documents are not numbered 1 to n");
    }
}

/// M3, conservation (billing rules 5): Σ INVOICE + Σ DEBIT − Σ CREDIT is the price of the live usage, for every
/// product, line item and service period. What a draft bills is what is missing, so a period that isn't issued
/// is right by construction; one that is must have nothing undocumented.
fn verify_conservation(
    tx: &mut dyn Tx,
    account: &Account,
    documents: &[Document],
    found: &mut Verification,
) -> UseCaseResult<()> {
    let begun: Vec<Date> = documents.iter().map(|document| document.head.period.end()).collect();
    let Some(last) = begun.into_iter().max() else { return Ok(()) };
    for product in &account.contract.products {
        for period in periods_until(product, last) {
            let currency = period.terms.pricing.currency;
            let missing = account.undocumented(tx, period, currency, None, None)?;
            let carrier = account.stored(tx, &billing_domain::document::linking::share_for_usage(product, period))?;
            if carrier.is_none_or(|carrier| carrier.is_draft()) {
                continue;
            }
            for line in missing.into_iter().filter(|line| line.amount.minor() != 0) {
                let detail = format!(
                    "product {}, {:?}, {}: {} is not documented",
                    product.no.0, line.line_item_id, line.service_period, line.amount
                );
                found.find(account.contract.contract_ref, detail);
            }
        }
    }
    verify_signs(documents, found);
    Ok(())
}

fn periods_until(product: &ContractProduct, end: Date) -> impl Iterator<Item = billing_domain::contract::ProductPeriod<'_>> {
    product.periods().take_while(move |period| period.period.span().start() < end)
}

/// An issued credit takes back and a debit adds: neither has the other's sign.
fn verify_signs(documents: &[Document], found: &mut Verification) {
    for document in documents {
        let Lifecycle::Issued(issued) = &document.lifecycle else { continue };
        if document.head.kind != DocumentKind::Invoice && issued.content.total.minor() < 0 {
            found.find(&document.head.number, format!("its total has the wrong sign for {}", sign(document.head.kind)));
        }
    }
}
