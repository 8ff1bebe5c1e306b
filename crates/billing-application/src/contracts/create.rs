//! Creates contracts: the terms of every product are agreed on and frozen (billing rules 7).

use billing_domain::audit::AuditAction;
use billing_domain::contract::amendment::ProductPatch;
use billing_domain::contract::resolve::Catalog;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::contract::{Contract, ContractProduct, check_products};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::Entry;
use billing_domain::ledger::amend::{self, BackdatingPolicy};
use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::notification::notify;
use billing_domain::party::Customer;
use billing_domain::patch::Patch;
use billing_domain::ports::{Lock, Tx};
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef, OrganizationId, PricingRef, ProductNo};
use billing_domain::text::OneLine;
use billing_domain::warning::{Warning, earliest_duplicate};

use super::{ContractView, view};
use crate::audit::{AuditChange, AuditSubject};
use crate::book_repository::distinct;
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UNKNOWN_REFERENCE, UseCaseResult, unknown_reference};
use crate::notifications;
use crate::permissions::allow_payment_details_of_contract;

/// A request to create a contract.
#[derive(Clone, Debug)]
pub struct ContractRequest {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The purchase order number.
    pub po_number: Option<OneLine>,
    /// The metadata.
    pub metadata: Metadata,
    /// The products in order.
    pub products: Vec<RequestedProduct>,
    /// Whether the higher limit applies to the number of documents that become due at once (billing rules 1.6).
    pub allow_backdated: bool,
}

/// Creates a contract.
///
/// # Errors
/// Returns [`Invalid`](crate::error::UseCaseError::Invalid) with every violation of every product.
pub fn create_contract(cx: &mut Cx<'_>, request: &ContractRequest) -> UseCaseResult<ContractView> {
    let (organization, now) = (cx.organization, cx.now);
    let backdated = if request.allow_backdated { BackdatingPolicy::Allowed } else { BackdatingPolicy::Refused };
    let customer = cx.tx.customers_by_refs(organization, std::slice::from_ref(&request.customer_ref))?.into_iter().next();
    let named: Vec<ResolvedReferences<'_>> = request
        .products
        .iter()
        .map(|product| ResolvedReferences { pricing_ref: &product.pricing_ref, entity_ref: product.entity_ref.as_ref() })
        .collect();
    let Some(customer) = customer else {
        let mut found = unknown_reference(&["customer_ref"], ResourceKind::Customer);
        // Report other unknown references at once. Violations that depend on the customer cannot be determined.
        if let Err(violations) = catalog_without(cx.tx, organization, &named)?.agree_all(&request.products) {
            let unknown = violations.into_iter().filter(|violation| violation.code == UNKNOWN_REFERENCE);
            found.extend_below(&[], unknown.collect());
        }
        return Err(found.into());
    };
    let catalog = catalog_of(cx.tx, organization, &customer, &named)?;
    let agreed = catalog.agree_all(&request.products)?;
    let products: Vec<ContractProduct> =
        agreed.into_iter().zip(0u16..).map(|(terms, no)| ContractProduct::new(ProductNo(no), terms)).collect();
    check_products(&products, |no| Some(usize::from(no.0)))?;
    // A first limit of the customer waits until this contract is there, or this transaction waits for the limit. The number comes
    // later, because all new contracts of the organization wait for it.
    let (_, is_watched) = cx.tx.watched_customer(organization, customer.id, Some(Lock::Shared))?;
    let contract = Contract {
        contract_ref: ContractRef::from_uuid(cx.services.ids.new_id()),
        number: cx.tx.next_contract_number(organization)?,
        customer_id: customer.id,
        customer_ref: customer.customer_ref.clone(),
        po_number: request.po_number.clone(),
        metadata: request.metadata.clone(),
        version: 1,
        created_at: now,
        updated_at: now,
        cancelled_at: None,
        is_watched,
        products,
    };
    allow_payment_details_of_contract(cx.principal()?, None, &contract)?;
    let refs = distinct(contract.entity_refs().cloned());
    let entities = cx.tx.lock_entities_shared(organization, &refs)?;
    let mut book = ContractBook::new(contract, customer, entities);
    amend::create(&mut book, backdated, now)?;
    let due = book.take_entries().into_iter().find_map(|entry| match entry {
        Entry::Due(at) => at,
        _ => None,
    });
    // The number is taken, so creations of the organization take turns, and each one finds those before it.
    let like = cx.tx.contracts_like(organization, &book.contract, earliest_duplicate(now))?;
    if let Some(warning) = Warning::of_duplicate(&book.contract, &like) {
        cx.warn(warning);
    }
    Warning::of_product_taxes(&book, None, now)?.into_iter().for_each(|warning| cx.warn(warning));
    cx.tx.insert_contract(organization, &book.contract, due)?;
    let subject = MetadataSubject::Contract(book.contract.customer_id, book.contract.contract_ref);
    cx.tx.put_metadata(organization, subject, &Metadata::default(), &book.contract.metadata)?;
    let (fact, notice) = notify::created(&book, now)?;
    notifications::record(cx, &[fact], notice.as_slice())?;
    if let Some(recorder) = cx.recorder() {
        recorder.capture_contract(book.contract.key(organization));
    }
    let made = view((*book.contract).clone(), &book.entities, now)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Contract(&made)))?;
    Ok(ContractView { warnings: cx.warnings().to_vec(), ..made })
}

/// The catalog references in a product of a request.
pub(super) struct ResolvedReferences<'a> {
    pub(super) pricing_ref: &'a PricingRef,
    pub(super) entity_ref: Option<&'a EntityRef>,
}

/// Returns the catalog references in the products of an edit.
pub(super) fn named_by(patches: &[ProductPatch]) -> Vec<ResolvedReferences<'_>> {
    patches
        .iter()
        .map(|patch| ResolvedReferences {
            pricing_ref: &patch.pricing_ref,
            entity_ref: match &patch.entity_ref {
                Patch::Set(entity_ref) => Some(entity_ref),
                Patch::Keep | Patch::Clear => None,
            },
        })
        .collect()
}

/// Loads the catalog entries that products reference, for a customer.
pub(super) fn catalog_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer: &Customer,
    named: &[ResolvedReferences<'_>],
) -> UseCaseResult<Catalog> {
    let mut catalog = catalog_without(tx, organization, named)?;
    catalog.default_entity = customer.profile.entity_ref.clone().or(catalog.default_entity);
    Ok(catalog)
}

/// Does the same as [`catalog_of`] without a customer.
fn catalog_without(tx: &mut dyn Tx, organization: OrganizationId, named: &[ResolvedReferences<'_>]) -> UseCaseResult<Catalog> {
    let pricings = tx.pricings_by_refs(organization, &distinct(named.iter().map(|product| product.pricing_ref.clone())))?;
    let metered = pricings.iter().flat_map(|pricing| pricing.content.metered());
    let metered = distinct(metered.map(|(_, usage_product_ref)| usage_product_ref.clone()));
    let stated = distinct(named.iter().filter_map(|product| product.entity_ref.cloned()));
    let entities = if stated.is_empty() { Vec::new() } else { tx.entities_by_refs(organization, &stated)? };
    Ok(Catalog {
        usage_products: tx.usage_products_by_refs(organization, &metered)?,
        entities: entities.into_iter().map(|entity| entity.entity_ref).collect(),
        default_entity: tx.organization(organization)?.and_then(|organization| organization.default_entity),
        pricings,
    })
}
