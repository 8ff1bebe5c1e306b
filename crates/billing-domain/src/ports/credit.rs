//! Prepaid credit: grants, and what documents took of them.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::credit::{CreditDraw, CreditGrant};
use crate::document::numbering::DocumentNumber;
use crate::money::{Currency, MoneySum};
use crate::page::{Page, PageRequest};
use crate::receivables::AccountKey;
use crate::refs::{CreditGrantRef, CustomerId, DocumentRef, EntityRef, OrganizationId};

/// Filters for grants. All given fields must match.
#[derive(Clone, Debug, Default)]
pub struct GrantFilter {
    /// The customer.
    pub customer_id: Option<CustomerId>,
    /// The entity that bills.
    pub entity_ref: Option<EntityRef>,
    /// The currency.
    pub currency: Option<Currency>,
    /// The invoice that sold the credit.
    pub source: Option<DocumentRef>,
}

/// Filters for draws. All given fields must match.
#[derive(Clone, Debug, Default)]
pub struct DrawFilter {
    /// The customer.
    pub customer_id: Option<CustomerId>,
    /// The grant.
    pub grant_ref: Option<CreditGrantRef>,
    /// The document.
    pub document_ref: Option<DocumentRef>,
}

/// A draw to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDraw {
    /// The customer of the document and of the grant.
    pub customer_id: CustomerId,
    /// The position among the draws of the document, from zero.
    pub draw_no: u32,
    /// The draw.
    pub draw: CreditDraw,
}

/// A stored draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDraw {
    /// The customer of the document and of the grant.
    pub customer_id: CustomerId,
    /// The entity of the document.
    pub entity_ref: EntityRef,
    /// The draw.
    pub draw: CreditDraw,
    /// The number of the document.
    pub document_number: DocumentNumber,
    /// When the document was issued or voided.
    pub at: Timestamp,
}

/// Storage of prepaid credit. Each grant is returned with the present state of its sale, and with the net amount of the sale's
/// family, as the sums of families have it.
pub trait Credits {
    /// Stores a new grant, from which nothing is drawn.
    fn insert_grant(&mut self, organization: OrganizationId, grant: &CreditGrant) -> StoreResult<()>;
    /// Updates the amount, the name, the days, the number of notifications and the time of the last change of a grant. Returns `false`
    /// when the grant does not exist.
    fn update_grant(&mut self, organization: OrganizationId, grant: &CreditGrant) -> StoreResult<bool>;
    /// Returns a grant, by reference alone.
    fn grant(&mut self, organization: OrganizationId, grant_ref: CreditGrantRef) -> StoreResult<Option<CreditGrant>>;
    /// Returns a page of grants that match a filter, ordered by creation. The order may be ascending or descending.
    fn grants(&mut self, organization: OrganizationId, filter: &GrantFilter, page: PageRequest)
    -> StoreResult<Page<CreditGrant>>;
    /// Returns the grants of these customers of whose amount something is not drawn, those among `named`, and those that an invoice
    /// among `sales` sold. Each is returned once, ordered by reference.
    fn grants_of(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        named: &[CreditGrantRef],
        sales: &[DocumentRef],
    ) -> StoreResult<Vec<CreditGrant>>;
    /// Returns what the documents in the families of these customers' sales have due or written off, by account. Omits accounts
    /// without such amounts.
    fn due_of_sales(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>>;
    /// Stores draws, and adds their amounts to what is drawn from their grants.
    fn add_draws(&mut self, organization: OrganizationId, draws: &[NewDraw], at: Timestamp) -> StoreResult<()>;
    /// Returns a page of draws that match a filter, ordered by time, document and position. The order may be ascending or
    /// descending.
    fn draws(&mut self, organization: OrganizationId, filter: &DrawFilter, page: PageRequest) -> StoreResult<Page<StoredDraw>>;
}
