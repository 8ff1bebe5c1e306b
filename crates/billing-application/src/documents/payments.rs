//! Payments, reversals, refunds, manual applications and write-offs (billing rules 9).

use std::collections::BTreeMap;

use billing_domain::audit::{AuditAction, AuditedKind};
use billing_domain::calendar::Date;
use billing_domain::document::BookDocument;
use billing_domain::ledger::receivables::{AccountEntry, NewPayment, ReceivablesAccount};
use billing_domain::money::{Currency, Money};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{PaymentFilter, PaymentSortKey, PaymentsOf, Tx};
use billing_domain::receivables::{AccountKey, Application, ApplicationSource, Payment, PaymentKind};
use billing_domain::refs::{ApplicationRef, CustomerId, CustomerRef, DocumentRef, EntityRef, OrganizationId, PaymentRef};
use billing_domain::refusal::Refusal;
use billing_domain::text::OneLine;

use super::{ApplicationView, DocumentView, applications_shown, document_view};
use crate::accounts::{self, AccountQuery};
use crate::audit::{AuditChange, AuditSubject};
use crate::basics::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::catalog::{entity_of_customer, narrow_to_customer, only};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::names::{NameRequest, read_names};

/// A payment or refund with its applications.
#[derive(Clone, Debug)]
pub struct PaymentView {
    /// The payment.
    pub payment: Payment,
    /// The entity that is paid.
    pub entity_ref: EntityRef,
    /// The amount that is neither applied nor refunded.
    pub unapplied: Money,
    /// The applications of the payment.
    pub applications: Vec<ApplicationView>,
    /// The number of the document that the payment is recorded on.
    pub document_number: Option<String>,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The customer's name.
    pub customer_name: OneLine,
}

/// The result of a reversal or a refund.
#[derive(Clone, Debug)]
pub enum PaymentOutcome {
    /// The document that the payment is recorded on.
    Document(Box<DocumentView>),
    /// The payment or refund, if it belongs to a deposit.
    Deposit(Box<PaymentView>),
}

/// The account of a deposit, as requested.
#[derive(Clone, Debug)]
pub struct DepositAccount {
    /// The entity; the default entity of the customer or the organization if `None`.
    pub entity_ref: Option<EntityRef>,
    /// The currency.
    pub currency: Currency,
}

/// The filter and order of a list of payments.
#[derive(Clone, Debug, Default)]
pub struct PaymentQuery {
    /// Only payments of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// The other conditions.
    pub filter: PaymentFilter,
    /// The sort key.
    pub by: PaymentSortKey,
}

/// A reference to a source of money, which is either a credit or a payment.
#[derive(Clone, Copy, Debug)]
pub struct SourceRef {
    /// The reference if the source is a credit.
    pub document_ref: DocumentRef,
    /// The reference if the source is a payment.
    pub payment_ref: PaymentRef,
}

/// Records a payment of an issued invoice or debit. An amount above the amount due requires `overpayment`, and the excess
/// becomes balance.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Conflict`] `not_owed` for a credit, a draft or a void document.
/// - [`UseCaseError::Invalid`] for an invalid amount or date.
pub fn record_payment(
    cx: &mut Cx<'_>,
    document_ref: DocumentRef,
    facts: &NewPayment,
    overpayment: bool,
) -> UseCaseResult<DocumentView> {
    let document = known(cx.tx, cx.organization, document_ref)?;
    let (mut account, context) = accounts::lock_account(cx, AccountKey::of(&document))?;
    let amount = account.amount_of(&facts.amount)?;
    let open_up_to = overpayment.then_some(amount.into());
    let wanted = AccountQuery { documents: vec![document_ref], open_up_to, ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    account.record_payment(document_ref, facts, overpayment, &context, &mut cx.ids())?;
    save(cx, account, document_ref, AccountAction::Recorded)
}

/// Records a deposit: a payment of a customer without a document. It is applied to open documents, and the rest becomes balance.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the customer does not exist.
/// - [`UseCaseError::Invalid`] for an invalid amount or date, or for an entity that does not exist or is not stated.
pub fn record_deposit(
    cx: &mut Cx<'_>,
    customer_ref: &CustomerRef,
    wanted: &DepositAccount,
    facts: &NewPayment,
) -> UseCaseResult<PaymentView> {
    let customer = only(ResourceKind::Customer, cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?)?;
    let entity = entity_of_customer(cx, &customer, wanted.entity_ref.as_ref())?;
    cx.tx.lock_entities_shared(cx.organization, std::slice::from_ref(&entity.entity_ref))?;
    let key = AccountKey { customer_id: customer.id, entity_ref: entity.entity_ref, currency: wanted.currency };
    let (mut account, context) = accounts::lock_account(cx, key)?;
    let amount = account.amount_of(&facts.amount)?;
    let wanted = AccountQuery { open_up_to: Some(amount.into()), ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    let payment_ref = account.record_deposit(facts, &context, &mut cx.ids())?;
    let key = account.key().clone();
    save_and_audit(cx, account, None, AccountAction::Recorded)?;
    payment_now(cx, key, payment_ref)
}

/// Reverses a payment or refund and returns its document, or the payment or refund if it belongs to a deposit.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the payment does not exist.
/// - [`UseCaseError::Conflict`] `already_reversed` or `payment_refunded`.
/// - [`UseCaseError::Invalid`] for an invalid date.
pub fn reverse_payment(
    cx: &mut Cx<'_>,
    payment_ref: PaymentRef,
    date: Option<Date>,
    reason: Option<&OneLine>,
) -> UseCaseResult<PaymentOutcome> {
    let found = cx.tx.payment(cx.organization, payment_ref)?;
    let (key, payment) = found.ok_or(UseCaseError::Unknown(ResourceKind::Payment))?;
    let (mut account, context) = accounts::lock_account(cx, key)?;
    let (source, open_up_to) = match payment.kind {
        PaymentKind::Payment => (ApplicationSource::Payment(payment_ref), None),
        PaymentKind::Refund(source) => (source, Some(payment.amount.into())),
    };
    let wanted = AccountQuery {
        payments: vec![payment_ref],
        sources: vec![source],
        unapplied: open_up_to.is_none(),
        open_up_to,
        ..AccountQuery::default()
    };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    account.reverse(payment_ref, date, reason.cloned(), &context, &mut cx.ids())?;
    save_of_payment(cx, account, (payment_ref, payment.document_ref), AccountAction::Reversed(payment))
}

/// Refunds the unapplied amount of a credit or payment, or part of it, and returns its document, or the refund of a deposit.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the source does not exist.
/// - [`UseCaseError::Conflict`] `not_unapplied` if nothing is unapplied.
/// - [`UseCaseError::Invalid`] for an amount above the unapplied amount, or an invalid date.
pub fn refund(cx: &mut Cx<'_>, source: SourceRef, facts: &NewPayment) -> UseCaseResult<PaymentOutcome> {
    let (key, source, document_ref) = source_of(cx.tx, cx.organization, source)?;
    let (mut account, context) = accounts::lock_account(cx, key)?;
    let wanted = AccountQuery { sources: vec![source], ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    let payment_ref = account.refund(source, facts, &context, &mut cx.ids())?;
    save_of_payment(cx, account, (payment_ref, document_ref), AccountAction::Recorded)
}

/// Applies an amount of a credit or payment to a document, and returns the document.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the source does not exist.
/// - [`UseCaseError::Conflict`] `not_owed` or `not_unapplied`.
/// - [`UseCaseError::Invalid`] for an amount above the amount due or the unapplied amount.
/// - [`UseCaseError::Invalid`] `another_account` for a document of another customer, entity or currency.
pub fn apply(cx: &mut Cx<'_>, source: SourceRef, document_ref: DocumentRef, amount: &str) -> UseCaseResult<DocumentView> {
    let (key, source, _) = source_of(cx.tx, cx.organization, source)?;
    let Some(target) = find(cx.tx, cx.organization, document_ref)? else {
        return Err(Refusal::field(&["document_ref"], "unknown_reference", "no such document").into());
    };
    if AccountKey::of(&target) != key {
        let detail = "must be a document of the same customer, entity and currency";
        return Err(Refusal::field(&["document_ref"], "another_account", detail).into());
    }
    let (mut account, context) = accounts::lock_account(cx, key)?;
    let wanted = AccountQuery { documents: vec![document_ref], sources: vec![source], ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    account.apply(source, document_ref, amount, &context, &mut cx.ids())?;
    save(cx, account, document_ref, AccountAction::Applied)
}

/// Removes an application, and returns the document that it settled.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the application does not exist.
pub fn unapply(cx: &mut Cx<'_>, application_ref: ApplicationRef) -> UseCaseResult<DocumentView> {
    let found = cx.tx.application(cx.organization, application_ref)?;
    let (key, application) = found.ok_or(UseCaseError::Unknown(ResourceKind::Application))?;
    let (mut account, context) = accounts::lock_account(cx, key)?;
    let wanted = AccountQuery { application: Some(application_ref), ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    if account.applications().next().is_none() {
        return Err(UseCaseError::Unknown(ResourceKind::Application));
    }
    account.unapply(application_ref, &context, &mut cx.ids())?;
    save(cx, account, application.to, AccountAction::Unapplied(application))
}

/// Writes off the amount due of a document, or reverses the write-off if `undo` is set.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Conflict`] `not_owed`, `already_written_off` or `not_written_off`.
pub fn write_off(
    cx: &mut Cx<'_>,
    document_ref: DocumentRef,
    reason: Option<&OneLine>,
    undo: bool,
) -> UseCaseResult<DocumentView> {
    let document = known(cx.tx, cx.organization, document_ref)?;
    let (mut account, context) = accounts::lock_account(cx, AccountKey::of(&document))?;
    let before = Box::new(shown_now(cx, document.head.customer_id, document_ref)?);
    let wanted = AccountQuery { documents: vec![document_ref], unapplied: undo, ..AccountQuery::default() };
    accounts::read(cx.tx, cx.organization, &mut account, wanted)?;
    let action = if undo {
        account.reverse_write_off(document_ref, reason.cloned(), &context, &mut cx.ids())?;
        AuditAction::UndoWriteOff
    } else {
        account.write_off(document_ref, reason.cloned(), &context, &mut cx.ids())?;
        AuditAction::WriteOff
    };
    save(cx, account, document_ref, AccountAction::WrittenOff(action, before))
}

/// Returns the payments and refunds of a document, in the order in which they were recorded.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the document does not exist.
pub fn payments_of_document(cx: &mut Cx<'_>, document_ref: DocumentRef) -> UseCaseResult<Vec<PaymentView>> {
    let document = known(cx.tx, cx.organization, document_ref)?;
    let payments = cx.tx.payments_of_document(document.head.key(cx.organization))?;
    let account = AccountKey::of(&document);
    shown(cx.tx, cx.organization, payments.into_iter().map(|payment| (account.clone(), payment)).collect())
}

/// Returns a page of a customer's payments and refunds, with and without a document, in the order in which they were recorded.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer does not exist.
pub fn payments_of_customer(cx: &mut Cx<'_>, customer_ref: &CustomerRef, page: PageRequest) -> UseCaseResult<Page<PaymentView>> {
    let customer = only(ResourceKind::Customer, cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?)?;
    let filter = PaymentFilter { customer_id: Some(customer.id), ..PaymentFilter::default() };
    let found = cx.tx.payments(cx.organization, &filter, PaymentSortKey::Created, page)?;
    Ok(Page { items: shown(cx.tx, cx.organization, found.items)?, total: found.total })
}

/// Returns a page of payments and refunds. The page is empty if a reference does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the payments cannot be read.
pub fn list_payments(cx: &mut Cx<'_>, query: &PaymentQuery, page: PageRequest) -> UseCaseResult<Page<PaymentView>> {
    let mut filter = query.filter.clone();
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Page::empty());
    }
    let found = cx.tx.payments(cx.organization, &filter, query.by, page)?;
    Ok(Page { items: shown(cx.tx, cx.organization, found.items)?, total: found.total })
}

/// Returns the views of payments.
fn shown(tx: &mut dyn Tx, organization: OrganizationId, payments: Vec<(AccountKey, Payment)>) -> UseCaseResult<Vec<PaymentView>> {
    let mut views = Vec::with_capacity(payments.len());
    let mut used: BTreeMap<CustomerId, Vec<PaymentRef>> = BTreeMap::new();
    for (key, payment) in payments.iter().filter(|(_, payment)| payment.used.minor() != 0) {
        used.entry(key.customer_id).or_default().push(payment.payment_ref);
    }
    let mut applications = Vec::new();
    for (customer_id, used) in used {
        let around = tx.applications_around(organization, customer_id, &[], &used)?;
        applications.extend(applications_shown(tx, organization, customer_id, around)?);
    }
    let mut request = NameRequest::default();
    for document_ref in payments.iter().filter_map(|(_, payment)| payment.document_ref) {
        request.add(AuditedKind::Document, document_ref);
    }
    let names = read_names(tx, organization, &request)?;
    let customers = tx.customers_by_ids(organization, &distinct(payments.iter().map(|(key, _)| key.customer_id)))?;
    for (key, payment) in payments {
        let customer = customers.iter().find(|customer| customer.id == key.customer_id);
        let customer = customer.ok_or_else(|| corrupt("a customer", &key.customer_id, "is not there"))?;
        let document = payment.document_ref.and_then(|document_ref| names.of(AuditedKind::Document, document_ref));
        let own = applications
            .iter()
            .filter(|application| application.application.from == ApplicationSource::Payment(payment.payment_ref));
        views.push(PaymentView {
            applications: own.cloned().collect(),
            entity_ref: key.entity_ref,
            unapplied: payment.unapplied()?,
            document_number: document.map(|document| document.name.clone()),
            customer_ref: customer.customer_ref.clone(),
            customer_name: customer.profile.name.clone(),
            payment,
        });
    }
    Ok(views)
}

/// Returns an existing document.
fn known(tx: &mut dyn Tx, organization: OrganizationId, document_ref: DocumentRef) -> UseCaseResult<BookDocument> {
    find(tx, organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))
}

fn find(tx: &mut dyn Tx, organization: OrganizationId, document_ref: DocumentRef) -> UseCaseResult<Option<BookDocument>> {
    let Some(key) = tx.document_key(organization, document_ref)? else { return Ok(None) };
    Ok(tx.book_documents_by_refs(organization, &[key.customer], &[document_ref])?.pop())
}

/// Returns the account and the source of a source reference, and the document of the source unless it is a deposit.
fn source_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    reference: SourceRef,
) -> UseCaseResult<(AccountKey, ApplicationSource, Option<DocumentRef>)> {
    if let Some((key, payment)) = tx.payment(organization, reference.payment_ref)? {
        return Ok((key, ApplicationSource::Payment(payment.payment_ref), payment.document_ref));
    }
    let document = known(tx, organization, reference.document_ref)?;
    Ok((AccountKey::of(&document), ApplicationSource::Credit(reference.document_ref), Some(reference.document_ref)))
}

/// The change of an account to record in the audit log.
enum AccountAction {
    /// A payment or refund was recorded.
    Recorded,
    /// This payment or refund was reversed.
    Reversed(Payment),
    /// A credit or payment was applied.
    Applied,
    /// This application was removed.
    Unapplied(Application),
    /// A document was written off or its write-off was reversed. Contains the document as before.
    WrittenOff(AuditAction, Box<DocumentView>),
}

/// Saves the decision on an account, and returns the affected document.
fn save(
    cx: &mut Cx<'_>,
    account: ReceivablesAccount,
    document_ref: DocumentRef,
    done: AccountAction,
) -> UseCaseResult<DocumentView> {
    let view = save_and_audit(cx, account, Some(document_ref), done)?;
    view.ok_or(UseCaseError::InvariantViolation("a decision about a document that did not return it"))
}

/// Saves the decision on a payment or refund. Returns the affected document, or the payment or refund without a document.
fn save_of_payment(
    cx: &mut Cx<'_>,
    account: ReceivablesAccount,
    (payment_ref, document_ref): (PaymentRef, Option<DocumentRef>),
    done: AccountAction,
) -> UseCaseResult<PaymentOutcome> {
    let key = account.key().clone();
    match save_and_audit(cx, account, document_ref, done)? {
        Some(document) => Ok(PaymentOutcome::Document(Box::new(document))),
        None => Ok(PaymentOutcome::Deposit(Box::new(payment_now(cx, key, payment_ref)?))),
    }
}

/// Saves the decision on an account, and returns the affected document if there is one.
fn save_and_audit(
    cx: &mut Cx<'_>,
    account: ReceivablesAccount,
    document_ref: Option<DocumentRef>,
    done: AccountAction,
) -> UseCaseResult<Option<DocumentView>> {
    let customer_id = account.key().customer_id;
    let entries = accounts::write(cx, &mut [account])?;
    let view = document_ref.map(|document_ref| shown_now(cx, customer_id, document_ref)).transpose()?;
    tell(cx, customer_id, &entries, &done, view.as_ref())?;
    Ok(view)
}

/// Returns a payment or refund as of this transaction.
fn payment_now(cx: &mut Cx<'_>, key: AccountKey, payment_ref: PaymentRef) -> UseCaseResult<PaymentView> {
    let payments = cx.tx.account_payments(cx.organization, &key, PaymentsOf::These(&[payment_ref]))?;
    let payments = payments.into_iter().map(|payment| (key.clone(), payment)).collect();
    shown(cx.tx, cx.organization, payments)?.pop().ok_or(UseCaseError::Unknown(ResourceKind::Payment))
}

/// Returns a document as of this transaction.
fn shown_now(cx: &mut Cx<'_>, customer_id: CustomerId, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    let document = cx.tx.documents_by_refs(cx.organization, &[customer_id], &[document_ref])?.pop();
    document_view(cx.tx, cx.organization, document.ok_or(UseCaseError::Unknown(ResourceKind::Document))?, cx.now)
}

/// Records the saved change in the audit log.
fn tell(
    cx: &mut Cx<'_>,
    customer: CustomerId,
    entries: &[AccountEntry],
    done: &AccountAction,
    view: Option<&DocumentView>,
) -> UseCaseResult<()> {
    let missing = UseCaseError::InvariantViolation("a decision about an account that wrote nothing of it");
    let reversed;
    let (action, change) = match done {
        AccountAction::Recorded => {
            let recorded = entries.iter().find_map(|entry| match entry {
                AccountEntry::Recorded(payment) => Some(&**payment),
                _ => None,
            });
            (AuditAction::Create, AuditChange::Made(AuditSubject::Payment(recorded.ok_or(missing)?)))
        }
        AccountAction::Reversed(payment) => {
            let reversal = entries.iter().find_map(|entry| match entry {
                AccountEntry::Reversed { reversal, .. } => Some(reversal.clone()),
                _ => None,
            });
            reversed = Payment { reversal: Some(reversal.ok_or(missing)?), ..payment.clone() };
            (AuditAction::Reverse, AuditChange::From(AuditSubject::Payment(payment), AuditSubject::Payment(&reversed)))
        }
        AccountAction::Applied => {
            let applied = entries.iter().find_map(|entry| match entry {
                AccountEntry::Applied(application) => Some(application),
                _ => None,
            });
            (AuditAction::Create, AuditChange::Made(AuditSubject::Application(applied.ok_or(missing)?)))
        }
        AccountAction::Unapplied(application) => (AuditAction::Delete, AuditChange::Gone(AuditSubject::Application(application))),
        AccountAction::WrittenOff(action, before) => {
            (*action, AuditChange::From(AuditSubject::Document(before), AuditSubject::Document(view.ok_or(missing)?)))
        }
    };
    cx.audit_of(customer, action, change)
}
