//! Acting on one document: issue a draft now, void an issued one, record a payment.

use std::collections::BTreeSet;

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::decimal::Digits;
use billing_domain::document::correction::LedgerLine;
use billing_domain::document::linking::Slot;
use billing_domain::document::totals::LineKey;
use billing_domain::document::{Document, DocumentKind, DocumentState, Lifecycle, Payment, Purpose};
use billing_domain::money::Money;
use billing_domain::ports::{Access, Lock, Tx, transact};
use billing_domain::refs::{DocumentRef, PaymentRef, ProductNo};
use billing_domain::text::Line;
use billing_domain::violation::Violations;

use super::{DocumentView, view_stored};
use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::{Account, corrupt, issue_draft, rehome_void};

/// A payment as reported.
#[derive(Clone, Debug)]
pub struct PaymentRequest {
    /// The amount's digits, in the document's currency.
    pub amount: String,
    /// When it was paid; the entity's service date when left out.
    pub paid_date: Option<Date>,
    /// The payer's or the bank's reference.
    pub reference: Option<Line>,
}

/// Issues a draft now, whatever its day.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::Conflict`] when it isn't a draft.
pub fn issue_document(services: &Services, principal: &Principal, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    act(services, principal, document_ref, |tx, account, document, now| {
        if !document.is_draft() {
            return Err(conflict("not_a_draft", "only a draft can be issued"));
        }
        match issue_draft(services, tx, account, document.head, now)? {
            crate::ledger::Issued::Issued(head, _) => Ok(head.document_ref),
            crate::ledger::Issued::Voided(_) => Ok(document_ref),
        }
    })
}

/// Puts an unpaid issued document out of force: its period is unbilled, and a replacement bills everything again.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::Conflict`] for a draft, a document with payments, adjustments or
/// children, one that is itself an adjustment or a child, and one whose usage another issued document bills now.
pub fn void_document(services: &Services, principal: &Principal, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    act(services, principal, document_ref, |tx, account, document, now| {
        let head = &document.head;
        let Purpose::Regular(slot) = head.purpose else {
            return Err(conflict("not_voidable", "an adjustment or a child can't be voided: change its usage instead"));
        };
        if !matches!(document.lifecycle, Lifecycle::Issued(_)) {
            return Err(conflict("not_issued", "only an issued document can be voided"));
        }
        if document.settlement.paid.minor() != 0 {
            return Err(conflict("document_paid", "a document with payments can't be voided"));
        }
        let dependents = tx.documents_of_parent(account.organization, head.customer_id, document_ref)?;
        let is_named = dependents.iter().any(|dependent| !matches!(dependent.lifecycle, Lifecycle::Void(_)));
        if is_named || is_corrected(tx, account, &document)? {
            return Err(conflict("document_has_dependents", "a document with adjustments or children can't be voided"));
        }
        if !tx.void_issued(account.organization, head.customer_id, document_ref, now)? {
            return Err(UseCaseError::InvariantViolation("a document that is held changed"));
        }
        remind(tx, account, &document, slot)?;
        rehome_void(services, tx, account, &document)?;
        Ok(document_ref)
    })
}

/// Whether a child or an adjustment bills anything that a document bills, whichever invoice it names: those of a usage
/// debit name the period's.
fn is_corrected(tx: &mut dyn Tx, account: &Account, document: &Document) -> UseCaseResult<bool> {
    let Some(issued) = document.lifecycle.issued() else { return Ok(false) };
    let keys: BTreeSet<LineKey> = issued.content.ledger_lines().iter().map(LedgerLine::key).collect();
    let periods: BTreeSet<(ProductNo, Date)> = keys.iter().map(|key| (key.product_no, key.period_start)).collect();
    let periods: Vec<(ProductNo, Date)> = periods.into_iter().collect();
    let head = &document.head;
    let documented = tx.documented(account.organization, head.customer_id, head.contract_ref, &periods)?;
    Ok(documented.iter().any(|other| !other.is_regular && keys.contains(&other.line.key())))
}

/// The period is unbilled now: the billing run has to look at it again.
fn remind(tx: &mut dyn Tx, account: &Account, document: &Document, slot: Slot) -> UseCaseResult<()> {
    let head = &document.head;
    for part in &head.parts {
        if let Some(own) = account.product(part.product_no)?.period_at(head.period.start()) {
            let due = account.due_at(&account.share_in(own, slot)?)?;
            tx.bring_due_forward(account.organization, head.customer_id, head.contract_ref, due)?;
        }
    }
    Ok(())
}

/// Records a payment.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::Conflict`] unless it is issued; [`UseCaseError::Invalid`] for an amount
/// that isn't above zero, or above what is due.
pub fn record_payment(
    services: &Services,
    principal: &Principal,
    document_ref: DocumentRef,
    request: &PaymentRequest,
) -> UseCaseResult<DocumentView> {
    act(services, principal, document_ref, |tx, account, document, now| {
        let state = document.state()?;
        let is_owed =
            matches!(state, DocumentState::Issued | DocumentState::PartiallyPaid) && document.head.kind != DocumentKind::Credit;
        let Some(issued) = document.lifecycle.issued().filter(|_| is_owed) else {
            let detail = "only an issued invoice or debit with something left to pay takes payments";
            return Err(conflict("nothing_to_pay", detail));
        };
        let total = issued.content.total;
        let amount = paid_amount(&request.amount, document.settlement.amount_due(total)?)?;
        let today = account.entity(&document.head.entity_ref)?.profile.time_zone.service_date(now);
        let payment = Payment {
            payment_ref: PaymentRef::from_uuid(services.ids.new_id()),
            amount,
            paid_date: request.paid_date.unwrap_or(today),
            reference: request.reference.clone(),
            recorded_at: now,
            recorded_by: principal.actor,
        };
        let mut settlement = document.settlement;
        settlement.paid = settlement.paid.checked_add(amount)?;
        let settlement = settlement.dated(total, payment.paid_date)?;
        tx.insert_payment(account.organization, document.head.customer_id, document_ref, &payment)?;
        tx.settle_document(account.organization, document.head.customer_id, document_ref, &settlement)?;
        Ok(document_ref)
    })
}

fn paid_amount(text: &str, due: Money) -> UseCaseResult<Money> {
    let currency = due.currency();
    let digits = Digits { integer: 15, fraction: currency.exponent() };
    let invalid = |code, detail: String| UseCaseError::from(Violations::one(&["amount"], code, detail));
    let amount = digits.parse(text).map_err(|reason| invalid("invalid_format", reason.to_string()))?;
    let amount = Money::round(amount, currency)?;
    if amount.minor() <= 0 {
        return Err(invalid("out_of_range", "must be greater than zero".to_owned()));
    }
    if amount.minor() > due.minor() {
        return Err(invalid("above_amount_due", format!("must be at most the amount due, {due}")));
    }
    Ok(amount)
}

/// Holds a document's contract, acts, and shows the document that the action answers.
fn act(
    services: &Services,
    principal: &Principal,
    document_ref: DocumentRef,
    mut action: impl FnMut(&mut dyn Tx, &Account, Document, Timestamp) -> UseCaseResult<DocumentRef>,
) -> UseCaseResult<DocumentView> {
    let now = services.now();
    let organization = principal.organization;
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.document(organization, document_ref)?.ok_or(UseCaseError::Unknown(Thing::Document))?;
        let (customer_id, contract_ref) = (found.head.customer_id, found.head.contract_ref);
        tx.lock_contract(organization, customer_id, contract_ref, Lock::Exclusive)?;
        let contract = tx.contract(organization, contract_ref)?;
        let account =
            Account::read(tx, organization, contract.ok_or_else(|| corrupt("a document", &document_ref, "has no contract"))?)?;
        // Again, as it is now that nobody can change it.
        let document = account.document(tx, document_ref)?;
        let answered = action(tx, &account, document, now)?;
        let document = account.document(tx, answered)?;
        view_stored(tx, &account, document, now)
    })
}

fn conflict(code: &'static str, detail: &str) -> UseCaseError {
    UseCaseError::Conflict { code, detail: detail.to_owned() }
}
