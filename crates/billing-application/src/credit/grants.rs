//! Creates, changes and reads grants, and reads draws.

use std::collections::BTreeMap;

use billing_domain::audit::AuditAction;
use billing_domain::calendar::TimeZone;
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::credit::{CreditBalance, CreditGrant, CreditGrantEdit, CreditSale, GrantView, MAX_GRANTS, NewCreditGrant};
use billing_domain::money::MoneySum;
use billing_domain::notification::notify;
use billing_domain::notification::{Fact, Notice, NotificationType};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Customer;
use billing_domain::ports::{GrantFilter, StoredDraw};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractRef, CreditGrantRef, CustomerId, CustomerRef, DocumentRef};
use billing_domain::refusal::Refusal;

use super::{DrawQuery, DrawView, GrantQuery, GrantRequest};
use crate::audit::{AuditChange, AuditSubject};
use crate::basics::{corrupt, distinct};
use crate::book_repository;
use crate::carry_out::Cx;
use crate::catalog::{KnownEntities, entity_of_customer, narrow_to_customer};
use crate::credit_books::balances_of;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};
use crate::limits::{begin_watch, require_few_drafts};
use crate::notifications;

/// Grants credit: given, or sold by an issued invoice. Documents of the account take it from now on.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] for an unknown reference, an invalid amount or day, `currency_mismatch`, `source_not_usable` or
///   `too_many_grants`.
/// - [`UseCaseError::Conflict`] `too_many_drafts` if the account has too many drafts.
pub fn create_credit_grant(cx: &mut Cx<'_>, request: &GrantRequest) -> UseCaseResult<GrantView> {
    let customer = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(&request.customer_ref))?.pop();
    let customer = customer.ok_or_else(|| unknown_reference(&["customer_ref"], ResourceKind::Customer))?;
    // For ever: a payment or a return can free credit at any time.
    begin_watch(cx, customer.id)?;
    let entity = entity_of_customer(cx, &customer, request.entity_ref.as_ref())?;
    let (entity_ref, zone) = (entity.entity_ref, entity.profile.time_zone);
    let account = AccountKey { customer_id: customer.id, entity_ref, currency: request.currency };
    if let Some(contract_ref) = request.contract_ref {
        require_billing_contract(cx, &account, contract_ref)?;
    }
    cx.lock_accounts(&[customer.id])?;
    // Later transactions of the customer meet at this row.
    cx.tx.hold_account(cx.organization, &account)?;
    require_room(cx, &account)?;
    capture(cx, customer.id)?;
    let sale = request.source.map(|source| sale_of(cx, &account, source)).transpose()?;
    let GrantRequest { amount, name, from, to, contract_ref, .. } = request.clone();
    let new = NewCreditGrant { account, amount, name, from, to, contract_ref };
    let mut grant = CreditGrant::new(new, CreditGrantRef::from_uuid(cx.services.ids.new_id()), sale, cx.now)?;
    grant.notifications = 1;
    cx.tx.insert_grant(cx.organization, &grant)?;
    // Levels that the new credit reaches or leaves are notified.
    cx.watch(&[customer.id])?;
    let view = view_of(cx, grant, &customer)?;
    let notice = notify::credit_ending_notice(&view.grant, zone, cx.now);
    let fact = notify::grant_fact(NotificationType::CreditGranted, view.clone());
    notifications::record(cx, &[fact], notice.as_slice())?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::CreditGrant(&view)))?;
    Ok(view)
}

/// Changes a grant. What documents have taken stays.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the grant does not exist.
/// - [`UseCaseError::Invalid`] for an invalid day, `credit_in_use` or `not_allowed`.
pub fn edit_credit_grant(cx: &mut Cx<'_>, grant_ref: CreditGrantRef, edit: &CreditGrantEdit) -> UseCaseResult<GrantView> {
    let unknown = || UseCaseError::Unknown(ResourceKind::CreditGrant);
    let customer_id = cx.tx.grant(cx.organization, grant_ref)?.ok_or_else(unknown)?.account.customer_id;
    cx.watch(&[customer_id])?;
    let present = cx.tx.grant(cx.organization, grant_ref)?.ok_or_else(unknown)?;
    let edited = present.edited(edit, cx.now)?;
    capture(cx, customer_id)?;
    let (customer, _) = cx.tx.watched_customer(cx.organization, customer_id, None)?;
    let before = view_of(cx, present, &customer)?;
    if !cx.tx.update_grant(cx.organization, &edited)? {
        return Err(unknown());
    }
    let after = view_of(cx, edited, &customer)?;
    if after.grant.to != before.grant.to {
        let zone = zone_of(cx, &after.grant)?;
        let notice = notify::credit_ending_notice(&after.grant, zone, cx.now);
        notifications::record(cx, &[], notice.as_slice())?;
    }
    cx.audit(AuditAction::Edit, AuditChange::From(AuditSubject::CreditGrant(&before), AuditSubject::CreditGrant(&after)))?;
    Ok(after)
}

/// Announces the end of a grant whose notice has come, if something is free. Returns the fact, and the next notice.
pub(crate) fn announce_ending(
    cx: &mut Cx<'_>,
    notice: &Notice,
    grant_ref: CreditGrantRef,
) -> UseCaseResult<(Option<Fact>, Option<Notice>)> {
    cx.lock_accounts(&[notice.customer_id])?;
    let Some(mut grant) = cx.tx.grant(cx.organization, grant_ref)? else { return Ok((None, None)) };
    let (customer, _) = cx.tx.watched_customer(cx.organization, notice.customer_id, None)?;
    let zone = zone_of(cx, &grant)?;
    let next = notify::credit_ending_notice(&grant, zone, cx.now);
    let view = view_of(cx, grant.clone(), &customer)?;
    if !notify::is_credit_ending_notified(notice, &view, zone) {
        return Ok((None, next));
    }
    grant.notifications += 1;
    cx.tx.update_grant(cx.organization, &grant)?;
    let view = GrantView { grant, ..view };
    Ok((Some(notify::grant_fact(NotificationType::CreditEnding, view)), next))
}

fn zone_of(cx: &mut Cx<'_>, grant: &CreditGrant) -> UseCaseResult<TimeZone> {
    let entity_ref = &grant.account.entity_ref;
    let entity = cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(entity_ref))?.pop();
    Ok(entity.ok_or_else(|| corrupt("an entity", entity_ref, "is not there"))?.profile.time_zone)
}

/// Returns a grant with its amounts.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the grant does not exist.
pub fn get_credit_grant(cx: &mut Cx<'_>, grant_ref: CreditGrantRef) -> UseCaseResult<GrantView> {
    let grant = cx.tx.grant(cx.organization, grant_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::CreditGrant))?;
    views_of(cx, vec![grant])?.pop().ok_or(UseCaseError::InvariantViolation("a grant without a view"))
}

/// Returns a page of grants with their amounts, ordered by creation. The page is empty if the customer does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the grants cannot be read.
pub fn list_credit_grants(cx: &mut Cx<'_>, query: &GrantQuery, page: PageRequest) -> UseCaseResult<Page<GrantView>> {
    let mut filter = query.filter.clone();
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Page::empty());
    }
    let found = cx.tx.grants(cx.organization, &filter, page)?;
    Ok(Page { items: views_of(cx, found.items)?, total: found.total })
}

/// Returns a page of what documents took from grants and returned to them, in the order of time. The page is empty if the customer
/// does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the draws cannot be read.
pub fn list_credit_draws(cx: &mut Cx<'_>, query: &DrawQuery, page: PageRequest) -> UseCaseResult<Page<DrawView>> {
    let mut filter = query.filter.clone();
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Page::empty());
    }
    let found = cx.tx.draws(cx.organization, &filter, page)?;
    let customers = customer_refs(cx, found.items.iter().map(|draw| draw.customer_id))?;
    let entities = KnownEntities::read(cx, found.items.iter().map(|draw| &draw.entity_ref))?;
    let view = |stored: StoredDraw| {
        let customer_ref = customers.get(&stored.customer_id).cloned();
        let customer_ref = customer_ref.ok_or_else(|| corrupt("a draw", &stored.draw.grant_ref, "has no customer"))?;
        let unit = entities.credit_unit(&stored.entity_ref, stored.draw.amount.currency());
        Ok(DrawView { stored, customer_ref, unit })
    };
    Ok(Page { items: found.items.into_iter().map(view).collect::<UseCaseResult<_>>()?, total: found.total })
}

/// Captures the credit of a customer before a grant changes, for a dry run.
fn capture(cx: &mut Cx<'_>, customer_id: CustomerId) -> UseCaseResult<()> {
    match cx.recorder() {
        Some(recorder) => recorder.capture_credit(cx.tx, cx.organization, customer_id, true, cx.now),
        None => Ok(()),
    }
}

/// Checks that a contract of the customer can have documents in an account.
fn require_billing_contract(cx: &mut Cx<'_>, account: &AccountKey, contract_ref: ContractRef) -> UseCaseResult<()> {
    let found = cx.tx.agreement_of(cx.organization, contract_ref)?;
    let found = found.filter(|found| found.contract.customer_id == account.customer_id);
    let Contract { products, .. } = found.ok_or_else(|| unknown_reference(&["contract_ref"], ResourceKind::Contract))?.contract;
    let terms = || products.iter().flat_map(ContractProduct::terms);
    if !terms().any(|terms| terms.pricing.currency == account.currency) {
        let detail = "must be a currency that the contract bills in";
        return Err(Refusal::field(&["currency"], "currency_mismatch", detail).into());
    }
    if !terms().any(|terms| terms.pricing.currency == account.currency && terms.entity_ref == account.entity_ref) {
        let detail = "must be an entity that bills the contract in this currency";
        return Err(Refusal::field(&["entity_ref"], "not_allowed", detail).into());
    }
    Ok(())
}

/// Checks that the account can have another grant. Each of its grants and drafts is read for each event.
fn require_room(cx: &mut Cx<'_>, account: &AccountKey) -> UseCaseResult<()> {
    let open = cx.tx.grants_of(cx.organization, &[account.customer_id], &[], &[])?;
    if open.iter().filter(|grant| grant.account == *account).count() >= MAX_GRANTS {
        let detail = format!(
            "must be of a customer with fewer than {MAX_GRANTS} grants of which something is left: lower the amount of a given one to \
             what is drawn"
        );
        return Err(Refusal::field(&["customer_ref"], "too_many_grants", detail).into());
    }
    require_few_drafts(cx, account.clone(), "credit")
}

/// Returns the sale of credit by an invoice.
fn sale_of(cx: &mut Cx<'_>, account: &AccountKey, source: DocumentRef) -> UseCaseResult<CreditSale> {
    let unknown = || unknown_reference(&["source_document_ref"], ResourceKind::Document);
    let found = cx.tx.documents_by_refs(cx.organization, &[account.customer_id], &[source])?.pop().ok_or_else(unknown)?;
    let header = book_repository::load_header(cx.tx, found.head.contract_key(cx.organization), None)?;
    let header = header.ok_or_else(|| corrupt("a document", &source, "has no contract"))?;
    let mut book = book_repository::load_rows(cx.tx, cx.organization, vec![header], cx.now)?.pop().ok_or_else(unknown)?;
    book_repository::load_documents(cx.tx, cx.organization, &mut book, &[source])?;
    let document = book.document(source).ok_or_else(|| corrupt("a document", &source, "isn't in its book"))?;
    let Some(issued) = found.lifecycle.issued() else {
        let detail = "must be an issued invoice without a parent";
        return Err(Refusal::field(&["source_document_ref"], "source_not_usable", detail).into());
    };
    let of_source = GrantFilter { customer_id: Some(account.customer_id), source: Some(source), ..GrantFilter::default() };
    let others = cx.tx.grants(cx.organization, &of_source, PageRequest::LARGEST)?;
    let sums = book.sums_of(document.family);
    Ok(CreditSale::of(account, document, (&issued.content, &sums), others.total > 0)?)
}

fn view_of(cx: &mut Cx<'_>, grant: CreditGrant, customer: &Customer) -> UseCaseResult<GrantView> {
    let known = balances_of(cx.tx, cx.organization, &[customer.id], cx.now)?;
    let entities = KnownEntities::read(cx, [&grant.account.entity_ref])?;
    with_balance(&known, &entities, grant, customer.customer_ref.clone())
}

/// Returns the views of grants, in the same order.
fn views_of(cx: &mut Cx<'_>, grants: Vec<CreditGrant>) -> UseCaseResult<Vec<GrantView>> {
    let customers = customer_refs(cx, grants.iter().map(|grant| grant.account.customer_id))?;
    let known = balances_of(cx.tx, cx.organization, &Vec::from_iter(customers.keys().copied()), cx.now)?;
    let entities = KnownEntities::read(cx, grants.iter().map(|grant| &grant.account.entity_ref))?;
    let view = |grant: CreditGrant| {
        let customer_ref = customers.get(&grant.account.customer_id).cloned();
        let customer_ref = customer_ref.ok_or_else(|| corrupt("a grant", &grant.grant_ref, "has no customer"))?;
        with_balance(&known, &entities, grant, customer_ref)
    };
    grants.into_iter().map(view).collect()
}

/// Returns the view of a grant. No draft takes anything of a grant that isn't among the `known` ones, which have something left.
fn with_balance(
    known: &[(CreditGrant, CreditBalance)],
    entities: &KnownEntities,
    grant: CreditGrant,
    customer_ref: CustomerRef,
) -> UseCaseResult<GrantView> {
    let known = known.iter().find(|(known, _)| known.grant_ref == grant.grant_ref).map(|(_, balance)| *balance);
    let balance = known.map_or_else(|| grant.balance(&[]), Ok)?;
    let unit = entities.credit_unit(&grant.account.entity_ref, grant.account.currency);
    Ok(GrantView { grant, customer_ref, balance, unit })
}

/// Returns what is free of the grants of a customer, and what drafts take of them, by account. Accounts without grants that have
/// something left are omitted.
pub(crate) fn free_of(cx: &mut Cx<'_>, customer_id: CustomerId) -> UseCaseResult<BTreeMap<AccountKey, (MoneySum, MoneySum)>> {
    let mut accounts: BTreeMap<AccountKey, (MoneySum, MoneySum)> = BTreeMap::new();
    for (grant, balance) in balances_of(cx.tx, cx.organization, &[customer_id], cx.now)? {
        let zero = MoneySum::zero(grant.account.currency);
        let (free, covered) = accounts.entry(grant.account).or_insert((zero, zero));
        (*free, *covered) = (free.checked_add(balance.free)?, covered.checked_add(balance.covered)?);
    }
    Ok(accounts)
}

fn customer_refs(
    cx: &mut Cx<'_>,
    customers: impl Iterator<Item = CustomerId>,
) -> UseCaseResult<BTreeMap<CustomerId, CustomerRef>> {
    let customers = cx.tx.customers_by_ids(cx.organization, &distinct(customers))?;
    Ok(customers.into_iter().map(|customer| (customer.id, customer.customer_ref)).collect())
}
