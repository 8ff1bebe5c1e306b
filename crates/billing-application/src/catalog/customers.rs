//! Customers. Several customers can have the same name. Usage reported by such a name is rejected and needs the reference.

use billing_domain::audit::AuditAction;
use billing_domain::calendar::Date;
use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{Customer, CustomerProfile, PaymentDetails};
use billing_domain::patch::Changes;
use billing_domain::ports::{CustomerFilter, CustomerSortKey, DocumentFilter};
use billing_domain::refs::{CustomerId, CustomerRef};
use billing_domain::tax::StatedTax;
use billing_domain::warning::Warning;

use super::taxes::{TaxPatch, default_entity, in_force, today_of_customers};
use super::{check_entity, inserted, only, updated};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseResult};
use crate::permissions::allow_payment_details;

/// A customer with its current default tax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerView {
    /// The customer.
    pub customer: Customer,
    /// The default tax in force today.
    pub tax: StatedTax,
    /// Possible mistakes in the change that the view responds to.
    pub warnings: Vec<Warning>,
}

impl CustomerView {
    /// Returns the view of a customer as of a day.
    fn of(customer: Customer, today: impl FnOnce() -> UseCaseResult<Date>) -> UseCaseResult<Self> {
        let tax = in_force(&customer.profile.taxes, today)?;
        Ok(Self { customer, tax, warnings: Vec::new() })
    }
}

/// The requested state of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCustomer {
    /// The requested profile.
    pub profile: CustomerProfile,
    /// The requested change of the default tax.
    pub tax: TaxPatch,
}

impl From<CustomerProfile> for WantedCustomer {
    fn from(profile: CustomerProfile) -> Self {
        Self { profile, tax: TaxPatch::default() }
    }
}

/// Creates a customer. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values and references.
pub fn create_customer(cx: &mut Cx<'_>, reference: Option<CustomerRef>, wanted: WantedCustomer) -> UseCaseResult<CustomerView> {
    let mut profile = wanted.profile;
    // No earlier tax is in force, so the day does not matter.
    profile.taxes = wanted.tax.apply(&profile.taxes, Date::MIN)?;
    profile.check()?;
    allow_payment_details(cx.principal()?, &PaymentDetails::default(), &profile.payment)?;
    let made = Customer {
        id: CustomerId::from_uuid(cx.services.ids.new_id()),
        customer_ref: reference.unwrap_or_else(|| CustomerRef::assigned(cx.services.ids.new_id())),
        profile,
        created_at: cx.now,
        updated_at: cx.now,
    };
    check_entity(cx.tx, cx.organization, made.profile.entity_ref.as_ref())?;
    inserted(ResourceKind::Customer, cx.tx.insert_customer(cx.organization, &made)?)?;
    let subject = MetadataSubject::Customer(made.id);
    cx.tx.put_metadata(cx.organization, subject, &Metadata::default(), &made.profile.metadata)?;
    let view = CustomerView::of(made, || today_of_customers(cx))?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Customer(&view)))?;
    warned(cx, view)
}

/// Changes a customer.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the customer does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values and references.
pub fn edit_customer(cx: &mut Cx<'_>, reference: &CustomerRef, changes: &Changes<WantedCustomer>) -> UseCaseResult<CustomerView> {
    let found = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(reference))?;
    let present = only(ResourceKind::Customer, found)?;
    let mut wanted = WantedCustomer::from(present.profile.clone());
    changes.apply(&mut wanted);
    let day = if wanted.tax.is_named() { Some(today_of_customers(cx)?) } else { None };
    wanted.profile.taxes = wanted.tax.apply(&wanted.profile.taxes, day.unwrap_or(Date::MIN))?;
    let updated_at = if wanted.profile == present.profile { present.updated_at } else { cx.now };
    let made = Customer { profile: wanted.profile, updated_at, ..present.clone() };
    made.profile.check()?;
    allow_payment_details(cx.principal()?, &present.profile.payment, &made.profile.payment)?;
    check_entity(cx.tx, cx.organization, made.profile.entity_ref.as_ref())?;
    if let Some(recorder) = cx.recorder() {
        let filter = DocumentFilter { customer_id: Some(present.id), ..DocumentFilter::default() };
        recorder.capture_drafts(cx.tx, cx.organization, &filter, cx.now)?;
    }
    updated(ResourceKind::Customer, cx.tx.update_customer(cx.organization, &made)?)?;
    let subject = MetadataSubject::Customer(made.id);
    cx.tx.put_metadata(cx.organization, subject, &present.profile.metadata, &made.profile.metadata)?;
    let mut today = || day.map_or_else(|| today_of_customers(cx), Ok);
    let is_taxed_anew = made.profile.taxes != present.profile.taxes;
    let before = CustomerView::of(present, &mut today)?;
    let view = CustomerView::of(made, &mut today)?;
    let change = AuditChange::From(AuditSubject::Customer(&before), AuditSubject::Customer(&view));
    cx.audit(AuditAction::Edit, change)?;
    if is_taxed_anew { warned(cx, view) } else { Ok(view) }
}

/// Returns the view of a customer with a warning about its default tax.
fn warned(cx: &mut Cx<'_>, view: CustomerView) -> UseCaseResult<CustomerView> {
    if view.customer.profile.taxes.as_slice().is_empty() {
        return Ok(view);
    }
    let entity_ref = match &view.customer.profile.entity_ref {
        Some(entity_ref) => Some(entity_ref.clone()),
        None => default_entity(cx)?,
    };
    let entities = cx.tx.entities_by_refs(cx.organization, entity_ref.as_slice())?;
    if let Some(warning) = Warning::of_default_tax(&view.customer, entities.first(), cx.now) {
        cx.warn(warning);
    }
    Ok(CustomerView { warnings: cx.warnings().to_vec(), ..view })
}

/// Returns a customer.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the customer does not exist.
pub fn get_customer(cx: &mut Cx<'_>, reference: &CustomerRef) -> UseCaseResult<CustomerView> {
    let customer = only(ResourceKind::Customer, cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    CustomerView::of(customer, || today_of_customers(cx))
}

/// Returns a page of the customers that match a filter, in the given order.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the customers cannot be read.
pub fn list_customers(
    cx: &mut Cx<'_>,
    filter: &CustomerFilter,
    by: CustomerSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<CustomerView>> {
    let found = cx.tx.listed_customers(cx.organization, filter, by, page)?;
    // The day is determined at most once, and only if a dated default tax needs it.
    let mut day = None;
    let mut items = Vec::with_capacity(found.items.len());
    for customer in found.items {
        items.push(CustomerView::of(customer, || match day {
            Some(day) => Ok(day),
            None => Ok(*day.insert(today_of_customers(cx)?)),
        })?);
    }
    Ok(Page { items, total: found.total })
}
