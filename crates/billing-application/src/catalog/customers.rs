//! Customers. Several may have the same name; usage reported by name then needs the reference.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{Customer, CustomerProfile};
use billing_domain::patch::Changes;
use billing_domain::ports::{Access, CustomerFilter, CustomerSortKey, DocumentFilter, transact};
use billing_domain::refs::{CustomerId, CustomerRef};

use super::{check_entity, inserted, only, updated};
use crate::audit::{Audited, Change, Doer, note};
use crate::error::{Thing, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Makes one; without a reference it is assigned.
///
/// # Errors
/// [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists), or [`Invalid`](crate::error::UseCaseError::Invalid) values and references.
pub fn create_customer(
    services: &Services,
    principal: &Principal,
    reference: Option<CustomerRef>,
    profile: CustomerProfile,
) -> UseCaseResult<Customer> {
    let organization = allow(principal, UseCase::CreateCustomer)?;
    profile.check()?;
    let made = Customer {
        id: CustomerId::from_uuid(services.ids.new_id()),
        customer_ref: reference.unwrap_or_else(|| CustomerRef::assigned(services.ids.new_id())),
        profile,
        created_at: services.now(),
    };
    transact(&*services.store, Access::Write, |tx| {
        check_entity(tx, organization, made.profile.entity_ref.as_ref())?;
        inserted(Thing::Customer, tx.insert_customer(organization, &made)?)?;
        note(tx, services, Doer::of(principal), AuditAction::Create, Change::Made(Audited::Customer(&made)))?;
        Ok(made.clone())
    })
}

/// Changes one.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown), or [`Invalid`](crate::error::UseCaseError::Invalid) values and references.
pub fn edit_customer(
    services: &Services,
    principal: &Principal,
    reference: &CustomerRef,
    changes: &Changes<CustomerProfile>,
) -> UseCaseResult<Customer> {
    let organization = allow(principal, UseCase::EditCustomer)?;
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.customers_by_refs(organization, std::slice::from_ref(reference))?;
        let present = only(Thing::Customer, found)?;
        let mut made = present.clone();
        changes.apply(&mut made.profile);
        made.profile.check()?;
        check_entity(tx, organization, made.profile.entity_ref.as_ref())?;
        if let Some(rehearsal) = services.rehearsal() {
            let filter = DocumentFilter { customer_id: Some(present.id), ..DocumentFilter::default() };
            rehearsal.look_at_drafts(tx, organization, &filter, services.now())?;
        }
        updated(Thing::Customer, tx.update_customer(organization, &made)?)?;
        let change = Change::From(Audited::Customer(&present), Audited::Customer(&made));
        note(tx, services, Doer::of(principal), AuditAction::Edit, change)?;
        Ok(made)
    })
}

/// Reads one.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown).
pub fn get_customer(services: &Services, principal: &Principal, reference: &CustomerRef) -> UseCaseResult<Customer> {
    let organization = allow(principal, UseCase::GetCustomer)?;
    transact(&*services.store, Access::Read, |tx| {
        only(Thing::Customer, tx.customers_by_refs(organization, std::slice::from_ref(reference))?)
    })
}

/// Reads a page of those that pass a filter, in an order.
///
/// # Errors
/// [`Store`](crate::error::UseCaseError::Store).
pub fn list_customers(
    services: &Services,
    principal: &Principal,
    filter: &CustomerFilter,
    by: CustomerSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<Customer>> {
    let organization = allow(principal, UseCase::ListCustomers)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.listed_customers(organization, filter, by, page)?))
}
