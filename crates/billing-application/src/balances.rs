//! Balances and statements of customers (billing rules 9).

use std::collections::BTreeMap;

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, TimeZone};
use billing_domain::document::files::RenderedFile;
use billing_domain::money::MoneySum;
use billing_domain::party::Customer;
use billing_domain::receivables::{AccountKey, AccountStatement, Balance, MAX_PRINTED_ROWS, StatementPrintout, statement};
use billing_domain::refs::{CustomerRef, EntityRef};

use crate::book_repository::distinct;
use crate::carry_out::Cx;
use crate::catalog::{KnownEntities, only};
use crate::credit::free_of;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Returns the balances of a customer, by entity and currency.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer does not exist.
pub fn balance(cx: &mut Cx<'_>, customer_ref: &CustomerRef) -> UseCaseResult<Vec<Balance>> {
    let customer = known(cx, customer_ref)?;
    let accounts = cx.tx.accounts(cx.organization, Some(&[customer.id]))?;
    let entities = KnownEntities::read(cx, accounts.iter().map(|(key, _)| &key.entity_ref))?;
    let mut balances: BTreeMap<AccountKey, Balance> = BTreeMap::new();
    for (key, unapplied) in accounts {
        let zero = MoneySum::zero(key.currency);
        let entity_ref = key.entity_ref.clone();
        let (credit_free, credit_covered) = (zero, zero);
        let balance = Balance {
            entity_ref,
            due: zero,
            overdue: zero,
            unapplied,
            written_off: zero,
            credit_free,
            credit_covered,
            credit_unit: None,
        };
        balances.insert(key, balance);
    }
    for (key, due_date, amount) in cx.tx.due_by_day(cx.organization, &[customer.id])? {
        let today = entities.today(&key.entity_ref, cx.now);
        let balance = balances.get_mut(&key).ok_or(UseCaseError::InvariantViolation("a document without an account"))?;
        balance.due = balance.due.checked_add(amount)?;
        if due_date < today {
            balance.overdue = balance.overdue.checked_add(amount)?;
        }
    }
    for (key, amount) in cx.tx.written_off(cx.organization, &[customer.id])? {
        let balance = balances.get_mut(&key).ok_or(UseCaseError::InvariantViolation("a write-off without an account"))?;
        balance.written_off = balance.written_off.checked_add(amount)?;
    }
    for (key, (free, covered)) in free_of(cx, customer.id)? {
        let balance = balances.get_mut(&key).ok_or(UseCaseError::InvariantViolation("credit without an account"))?;
        (balance.credit_free, balance.credit_covered) = (free, covered);
        balance.credit_unit = entities.credit_unit(&key.entity_ref, key.currency);
    }
    Ok(balances.into_values().collect())
}

/// The amount that a customer owes to an entity in a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerDue {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The amount due of the documents.
    pub due: MoneySum,
    /// The part of the amount due whose due date is before today.
    pub overdue: MoneySum,
}

/// Returns the amounts due of several customers, by customer, entity and currency. Omits customers that owe nothing and unknown
/// references.
///
/// # Errors
/// Returns [`Store`](UseCaseError::Store) if the amounts cannot be read.
pub fn amounts_due(cx: &mut Cx<'_>, customers: &[CustomerRef]) -> UseCaseResult<Vec<CustomerDue>> {
    let customers = cx.tx.customers_by_refs(cx.organization, customers)?;
    let ids: Vec<_> = customers.iter().map(|customer| customer.id).collect();
    let due_by_day = cx.tx.due_by_day(cx.organization, &ids)?;
    let entities = KnownEntities::read(cx, due_by_day.iter().map(|(key, ..)| &key.entity_ref))?;
    let mut due: BTreeMap<AccountKey, (MoneySum, MoneySum)> = BTreeMap::new();
    for (key, due_date, amount) in due_by_day {
        let today = entities.today(&key.entity_ref, cx.now);
        let zero = MoneySum::zero(key.currency);
        let (due, overdue) = due.entry(key).or_insert((zero, zero));
        *due = due.checked_add(amount)?;
        if due_date < today {
            *overdue = overdue.checked_add(amount)?;
        }
    }
    let owed_by = |customer: &Customer| {
        let of_customer = due.iter().filter(|(key, _)| key.customer_id == customer.id);
        let owed = of_customer.map(|(key, (due, overdue))| CustomerDue {
            customer_ref: customer.customer_ref.clone(),
            entity_ref: key.entity_ref.clone(),
            due: *due,
            overdue: *overdue,
        });
        owed.collect::<Vec<_>>()
    };
    Ok(customers.iter().flat_map(owed_by).collect())
}

/// Returns the changes of a customer's balances from one day to another, both inclusive, by entity and currency.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer does not exist.
pub fn customer_statement(
    cx: &mut Cx<'_>,
    customer_ref: &CustomerRef,
    from: Option<Date>,
    to: Option<Date>,
) -> UseCaseResult<Vec<AccountStatement>> {
    let customer = known(cx, customer_ref)?;
    let entries = cx.tx.statement_entries(cx.organization, customer.id, to)?;
    Ok(statement(entries, from, to)?)
}

/// Returns the statements of [`customer_statement`] with the parties that [`print_statement`] names. The date is today's in the
/// time zone of the first entity.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer does not exist, and [`UseCaseError::TooMuch`] if the statements have too many
/// rows for a printed document.
pub fn statement_printout(
    cx: &mut Cx<'_>,
    customer_ref: &CustomerRef,
    from: Option<Date>,
    to: Option<Date>,
) -> UseCaseResult<StatementPrintout> {
    let accounts = customer_statement(cx, customer_ref, from, to)?;
    let rows: usize = accounts.iter().map(|account| account.lines.len()).sum();
    if rows > MAX_PRINTED_ROWS {
        let detail = format!(
            "the statement has {rows} rows, and a PDF file has at most {MAX_PRINTED_ROWS}: use the format csv, or a shorter period"
        );
        return Err(UseCaseError::TooMuch { code: "too_many_rows", detail });
    }
    let customer = known(cx, customer_ref)?;
    let refs = distinct(accounts.iter().map(|account| account.entity_ref.clone()));
    let entities = cx.tx.entities_by_refs(cx.organization, &refs)?;
    let zone = entities.first().map_or(TimeZone::UTC, |entity| entity.profile.time_zone);
    Ok(StatementPrintout { customer, entities, accounts, from, to, day: zone.service_date(cx.now) })
}

/// Prints the statements of a customer. The file is not stored.
///
/// # Errors
/// Returns [`UseCaseError::Print`] if printing fails.
pub fn print_statement(services: &Services, principal: &Principal, statement: &StatementPrintout) -> UseCaseResult<RenderedFile> {
    allow(principal, UseCase::GetStatement)?;
    Ok(services.printer.print_statement(statement)?)
}

fn known(cx: &mut Cx<'_>, customer_ref: &CustomerRef) -> UseCaseResult<Customer> {
    only(ResourceKind::Customer, cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?)
}
