//! Editing and cancelling a contract: the next version, and what it means for drafts and issued documents
//! (billing rules 7).

use std::collections::BTreeSet;

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::contract::amendment::{ContractEdit, ProductPatch, Reach, cancelled, edited, match_products};
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{ContractProduct, ContractState, ProductPeriod, check_products};
use billing_domain::document::correction::{LedgerLine, difference, kind_of, negated};
use billing_domain::document::linking::{shares_billing, shares_of_period};
use billing_domain::document::{Document, DocumentHead, DocumentKind, DocumentPart};
use billing_domain::money::Money;
use billing_domain::ports::{Access, Lock, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerRef, ProductNo};
use billing_domain::usage::{UsageKey, UsageTotal};
use billing_domain::violation::Violations;

use super::create::Catalog;
use super::{ContractView, view};
use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::{Account, Stranded, changed_products, issue_draft, issue_share, may_be_due, period_from, redraw};

/// Edits a contract. `customer_ref` may be given, but not changed.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::Invalid`] with every violation; [`UseCaseError::Conflict`] when the
/// contract is cancelled or over, or the edit would leave usage without a line item or a period.
pub fn edit_contract(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    customer_ref: Option<&CustomerRef>,
    edit: &ContractEdit,
) -> UseCaseResult<ContractView> {
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let before = hold(tx, principal, contract_ref)?;
        if customer_ref.is_some_and(|given| *given != before.contract.customer_ref) {
            return Err(Violations::one(&["customer_ref"], "not_changeable", "can't be changed: make a new contract").into());
        }
        refuse_over(&before, now)?;
        let products = match &edit.products {
            None => None,
            Some(patches) => Some(agree(tx, &before, patches.clone())?),
        };
        let today = |terms: &ProductTerms| before.today(terms, now).unwrap_or(Date::MIN);
        let next = edited(&before.contract, edit.po_number.clone(), products, edit.reach, &today);
        let after = Account::of(tx, principal.organization, next, before.customer.clone())?;
        refuse_homeless_usage(tx, &before, &after)?;
        tx.append_contract_version(principal.organization, &after.contract, now, principal.actor)?;
        let stranded = redraw(services, tx, &before, &after, now)?;
        correct_issued(services, tx, &before, &after, &stranded, now)?;
        remind(tx, &before, &after, now)?;
        view(after.contract, &after.entities, now)
    })
}

/// Cancels a contract.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::Conflict`] when it is cancelled already or over, or usage is reported
/// that is dated after its last day.
pub fn cancel_contract(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    reach: Reach,
) -> UseCaseResult<ContractView> {
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let before = hold(tx, principal, contract_ref)?;
        match (state(&before, now)?, reach) {
            (ContractState::Pending | ContractState::Active, _) | (ContractState::Cancelling, Reach::CurrentInvoice) => {}
            (ContractState::Cancelling | ContractState::Cancelled | ContractState::Completed, _) => {
                return Err(UseCaseError::Conflict {
                    code: "contract_over",
                    detail: "the contract is cancelled or over already".to_owned(),
                });
            }
        }
        let today = |terms: &ProductTerms| before.today(terms, now).unwrap_or(Date::MIN);
        let next = cancelled(&before.contract, reach, now, &today);
        let after = Account::of(tx, principal.organization, next, before.customer.clone())?;
        refuse_homeless_usage(tx, &before, &after)?;
        tx.append_contract_version(principal.organization, &after.contract, now, principal.actor)?;
        let stranded = redraw(services, tx, &before, &after, now)?;
        correct_issued(services, tx, &before, &after, &stranded, now)?;
        if reach == Reach::CurrentInvoice {
            issue_everything(services, tx, &after, now)?;
        }
        remind(tx, &before, &after, now)?;
        view(after.contract, &after.entities, now)
    })
}

fn hold(tx: &mut dyn Tx, principal: &Principal, contract_ref: ContractRef) -> UseCaseResult<Account> {
    let unknown = UseCaseError::Unknown(Thing::Contract);
    let contract = tx.contract(principal.organization, contract_ref)?.ok_or(unknown)?;
    tx.lock_contract(principal.organization, contract.customer_id, contract_ref, Lock::Exclusive)?;
    // Again, as it is now that nobody can change it.
    let contract = tx.contract(principal.organization, contract_ref)?.ok_or(UseCaseError::Unknown(Thing::Contract))?;
    Account::read(tx, principal.organization, contract)
}

fn state(account: &Account, now: Timestamp) -> UseCaseResult<ContractState> {
    Ok(view(account.contract.clone(), &account.entities, now)?.state)
}

fn refuse_over(account: &Account, now: Timestamp) -> UseCaseResult<()> {
    match state(account, now)? {
        ContractState::Pending | ContractState::Active => Ok(()),
        ContractState::Cancelling | ContractState::Cancelled | ContractState::Completed => Err(UseCaseError::Conflict {
            code: "contract_over",
            detail: "a contract that is cancelled or over can't be edited".to_owned(),
        }),
    }
}

/// Matches, merges and agrees on an edit's products.
fn agree(
    tx: &mut dyn Tx,
    account: &Account,
    patches: Vec<ProductPatch>,
) -> UseCaseResult<Vec<(Option<ProductNo>, ProductTerms)>> {
    let matched = match_products(&account.contract, patches)?;
    let requests: Vec<_> = matched.iter().map(|product| product.request.clone()).collect();
    let catalog = Catalog::look_up(tx, account.organization, &account.contract.customer_ref, &requests)?;
    let terms = catalog.agree(&requests)?;
    check_products(&terms)?;
    Ok(matched.into_iter().map(|product| product.no).zip(terms).collect())
}

/// Refuses a change that would leave usage already reported without a line item, a period or a document. A cancel
/// can do that to usage that is dated ahead of the clock.
fn refuse_homeless_usage(tx: &mut dyn Tx, before: &Account, after: &Account) -> UseCaseResult<()> {
    for (product, changed) in changed_products(&before.contract, &after.contract) {
        let Some(from) = changed.segments.last().map(|segment| segment.in_force_from) else { continue };
        // A change within a period cuts it: what was used in it may lie behind the cut.
        let from = product.period_at(from).map_or(from, |cut| cut.period.span().start());
        let (customer_id, contract_ref) = (before.contract.customer_id, before.contract.contract_ref);
        for (key, total) in tx.usage_since(before.organization, customer_id, contract_ref, product.no, from)? {
            if !has_a_home(before, product, after, changed, &key, &total)? {
                let detail = format!(
                    "usage of {} in the period from {} is reported already and would be left without a line item, a period or its document; let the change start with the next invoice",
                    key.usage_product_ref, key.period_start
                );
                return Err(UseCaseError::Conflict { code: "usage_already_reported", detail });
            }
        }
    }
    Ok(())
}

/// Whether usage stays in its period, on its line item, on the same documents.
fn has_a_home(
    before: &Account,
    product: &ContractProduct,
    after: &Account,
    changed: &ContractProduct,
    key: &UsageKey,
    total: &UsageTotal,
) -> UseCaseResult<bool> {
    let (Some(old), Some(new)) = (product.period_at(key.period_start), changed.period_at(key.period_start)) else {
        return Ok(false);
    };
    let zone = after.entity(&new.terms.entity_ref)?.profile.time_zone;
    let last_day = total.latest.map(|latest| zone.service_date(latest.occurred_at));
    Ok(new.period.span().start() == key.period_start
        && last_day.is_none_or(|day| new.period.span().contains(day))
        && new.terms.meters(&key.usage_product_ref)
        && new.terms.payment_time == old.terms.payment_time
        && new.terms.entity_ref == old.terms.entity_ref
        && new.terms.pricing.currency == old.terms.pricing.currency
        && before.is_due_upon_usage(None, old)? == after.is_due_upon_usage(None, new)?)
}

/// Gives every issued document that the new version makes wrong the difference, issued at once: changed tax or
/// discount rates as a credit of the product at the old rates and a debit at the new.
fn correct_issued(
    services: &Services,
    tx: &mut dyn Tx,
    before: &Account,
    after: &Account,
    stranded: &[Stranded],
    now: Timestamp,
) -> UseCaseResult<()> {
    for (product, changed) in changed_products(&before.contract, &after.contract) {
        let Some(from) = changed.segments.last().map(|segment| segment.in_force_from) else { continue };
        // The usage of the period before may be billed by another document now.
        let from = product.period_before(from).map_or(from, |before| before.period.span().start());
        // A draft may have been issued long before its day, so what has begun is not the limit.
        let Some(until) = issued_until(tx, before, from)? else { continue };
        let touched = product.periods().chain(changed.periods()).map(|period| period.period.span());
        let touched: BTreeSet<Date> =
            touched.filter(|span| span.end() > from && span.start() < until).map(Period::start).collect();
        for start in touched {
            let period = (period_from(product, start), period_from(changed, start));
            correct_period(services, tx, before, after, period, stranded, now)?;
        }
    }
    Ok(())
}

/// The end of the last period from a day on that an issued document belongs to.
fn issued_until(tx: &mut dyn Tx, account: &Account, from: Date) -> UseCaseResult<Option<Date>> {
    let contract = &account.contract;
    let Some(within) = Period::new(from, Date::MAX) else { return Ok(None) };
    let documents = tx.documents_of_contract(account.organization, contract.customer_id, contract.contract_ref, within)?;
    Ok(documents.iter().filter(|document| !document.is_draft()).map(|document| document.head.period.end()).max())
}

/// Corrects the issued documents of a period as it was and as it is; either may be missing.
fn correct_period(
    services: &Services,
    tx: &mut dyn Tx,
    before: &Account,
    after: &Account,
    (old, new): (Option<ProductPeriod<'_>>, Option<ProductPeriod<'_>>),
    stranded: &[Stranded],
    now: Timestamp,
) -> UseCaseResult<()> {
    let Some(either) = old.or(new) else { return Ok(()) };
    let no = either.product_no;
    let mut issued: Vec<Document> = Vec::new();
    for (account, period) in [(before, old), (after, new)] {
        let Some(period) = period else { continue };
        for share in shares_billing(account.product(no)?, period) {
            issued.extend(account.stored(tx, &share)?.filter(|document| !document.is_draft()));
        }
    }
    let invoice = issued.iter().find(|document| document.head.kind == DocumentKind::Invoice);
    let parent = match (invoice, issued.first()) {
        (Some(invoice), _) => invoice.head.clone(),
        // Of a debit that was issued before its period's invoice.
        (None, Some(Document { head: DocumentHead { parent: Some(parent), .. }, .. })) => before.document(tx, *parent)?.head,
        (None, _) => return Ok(()),
    };
    let old_part = after.part_of(&parent, no)?;
    let take_back = |tx: &mut dyn Tx| {
        let documented = before.documented(tx, std::iter::once(either), |_| true)?;
        let back = difference(no, either.period.span(), parent.currency, &[], &[], &documented)?;
        adjust_now(services, tx, after, &parent, either, old_part, back, &[], now)
    };
    // A period that is billed no more: everything documented for it is taken back.
    let Some(new) = new else { return take_back(tx) };
    if new.terms.entity_ref != parent.entity_ref || new.terms.pricing.currency != parent.currency {
        let detail = format!("{} is issued: entity and currency can change from the next invoice on", parent.number);
        return Err(UseCaseError::Conflict { code: "document_issued", detail });
    }
    let terms = new.terms.resolve(&after.customer, after.entity(&new.terms.entity_ref)?);
    let new_part = DocumentPart { product_no: no, tax_rate: terms.tax_rate, discount_rate: terms.discount_rate };
    if old_part == new_part || old.is_some_and(|old| old.terms == new.terms) {
        let lines = after.undocumented(tx, new, parent.currency, None, Some(before))?;
        return adjust_now(services, tx, after, &parent, new, old_part, lines, stranded, now);
    }
    take_back(tx)?;
    let again = after.undocumented(tx, new, parent.currency, None, None)?;
    adjust_now(services, tx, after, &parent, new, new_part, again, stranded, now)
}

/// Opens an adjustment for lines and issues it; none for no lines.
#[allow(clippy::too_many_arguments, reason = "one document's parts, and where to write")]
fn adjust_now(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    parent: &DocumentHead,
    period: ProductPeriod<'_>,
    part: DocumentPart,
    lines: Vec<LedgerLine>,
    stranded: &[Stranded],
    now: Timestamp,
) -> UseCaseResult<()> {
    let (no, start) = (period.product_no, period.period.span().start());
    let mut stranded = stranded.iter().filter(|usage| usage.product_no == no && usage.start == start).peekable();
    if lines.iter().all(|line| line.amount.minor() == 0) && stranded.peek().is_none() {
        return Ok(());
    }
    let sum = Money::sum(parent.currency, lines.iter().map(|line| line.amount))?;
    let kind = kind_of(sum);
    let lines = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
    let head = account.open_adjustment(services, tx, parent, kind, period, vec![part])?;
    tx.put_ledger_lines(account.organization, head.customer_id, head.document_ref, &lines)?;
    for usage in stranded {
        tx.move_events_of_period(account.organization, head.customer_id, usage.on, head.document_ref, no, start)?;
    }
    issue_draft(services, tx, account, head, now)?;
    Ok(())
}

/// After a cancel with the current invoice: issues what the contract still has to bill, as final.
fn issue_everything(services: &Services, tx: &mut dyn Tx, account: &Account, now: Timestamp) -> UseCaseResult<()> {
    for product in &account.contract.products {
        for period in product.periods() {
            for share in shares_of_period(product, period) {
                issue_share(services, tx, account, &share, now)?;
            }
        }
    }
    let contract = &account.contract;
    for draft in tx.drafts_of_contract(account.organization, contract.customer_id, contract.contract_ref)? {
        issue_draft(services, tx, account, draft.head, now)?;
    }
    Ok(())
}

/// Sets when the billing run has to look at the contract again: the new version may have something due that
/// the old one hadn't.
fn remind(tx: &mut dyn Tx, before: &Account, after: &Account, now: Timestamp) -> UseCaseResult<()> {
    let (organization, contract) = (after.organization, &after.contract);
    let mut earliest = after.next_due_after(tx, now)?;
    let is_changed = |product: &&ContractProduct| before.contract.product(product.no) != Some(product);
    for product in contract.products.iter().filter(is_changed) {
        for period in product.periods().take_while(|period| may_be_due(period, now)) {
            for share in shares_of_period(product, period) {
                let due = after.due_at(&share)?;
                if due <= now && after.stored(tx, &share)?.is_none_or(|document| document.is_draft()) {
                    earliest = Some(earliest.map_or(due, |earliest| earliest.min(due)));
                }
            }
        }
    }
    match earliest {
        Some(at) => Ok(tx.bring_due_forward(organization, contract.customer_id, contract.contract_ref, at)?),
        None => Ok(()),
    }
}
