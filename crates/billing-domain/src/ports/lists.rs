//! Filtered and sorted lists for finance, and search by number, reference, key or name.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use uuid::Uuid;

use super::{DocumentFilter, StoreResult};
use crate::audit::AuditedKind;
use crate::calendar::{Timestamp, plus_months};
use crate::contract::{Contract, ContractState};
use crate::document::Document;
use crate::document::numbering::{DocumentNumber, NumberEnd};
use crate::metadata::{Metadata, MetadataSubject};
use crate::money::{Currency, Money, MoneySum};
use crate::page::{Order, Page, PageRequest, UpdateFilter};
use crate::party::{Customer, Entity};
use crate::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, OrganizationId, PricingRef};
use crate::text::OneLine;

/// The current date in the time zone of each entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalDates {
    /// The UTC date, for objects without an entity.
    elsewhere: NaiveDate,
    of_entities: BTreeMap<NaiveDate, BTreeSet<EntityRef>>,
}

impl LocalDates {
    /// Returns the dates at an instant.
    pub fn at(now: Timestamp, entities: &[Entity]) -> Self {
        let mut of_entities: BTreeMap<NaiveDate, BTreeSet<EntityRef>> = BTreeMap::new();
        for entity in entities {
            let today = entity.profile.time_zone.service_date(now);
            of_entities.entry(today).or_default().insert(entity.entity_ref.clone());
        }
        Self { elsewhere: crate::calendar::TimeZone::UTC.service_date(now), of_entities }
    }

    /// Returns the date of an entity, or the UTC date without an entity.
    pub fn of(&self, entity_ref: Option<&EntityRef>) -> NaiveDate {
        let has = |entities: &BTreeSet<EntityRef>| entity_ref.is_some_and(|entity_ref| entities.contains(entity_ref));
        self.of_entities.iter().find(|(_, entities)| has(entities)).map_or(self.elsewhere, |(today, _)| *today)
    }

    /// Returns the UTC date, for objects without an entity.
    pub const fn elsewhere(&self) -> NaiveDate {
        self.elsewhere
    }

    /// Returns the entities grouped by date, earliest date first.
    pub fn of_entities(&self) -> impl ExactSizeIterator<Item = (NaiveDate, &BTreeSet<EntityRef>)> {
        self.of_entities.iter().map(|(today, entities)| (*today, entities))
    }

    /// Returns the latest date in any time zone.
    pub fn latest(&self) -> NaiveDate {
        self.of_entities.keys().next_back().map_or(self.elsewhere, |latest| self.elsewhere.max(*latest))
    }

    /// Returns the earliest date in any time zone.
    pub fn earliest(&self) -> NaiveDate {
        self.of_entities.keys().next().map_or(self.elsewhere, |earliest| self.elsewhere.min(*earliest))
    }
}

/// A sort key for documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DocumentSortKey {
    /// The time of opening.
    #[default]
    Created,
    /// The issue date.
    IssueDate,
    /// The due date.
    DueDate,
    /// The total. Documents are grouped by currency, in the order of the currency code.
    Amount,
    /// The time of the last change.
    Updated,
}

/// An order of documents. Equal keys are ordered by reference.
///
/// Documents without a sort key come last in both directions. Drafts have neither issue date nor total. Credits and void
/// documents have no due date.
pub type DocumentOrder = Order<DocumentSortKey>;

/// A sort key for contracts. Equal keys are ordered by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContractSortKey {
    /// The time of creation.
    #[default]
    Created,
    /// The last day. Contracts without an end come after all others.
    LastDay,
    /// The time of the newest version.
    Updated,
}

/// A sort key for customers. Equal keys are ordered by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomerSortKey {
    /// The time of creation.
    #[default]
    Created,
    /// The name. The letters A to Z are compared case-insensitively, all other characters by code point.
    Name,
    /// The time of the last change.
    Updated,
}

/// The value of a document's sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedBy {
    /// The time of opening.
    Created(Timestamp),
    /// The time of the last change.
    Updated(Timestamp),
    /// The issue date or due date.
    Day(NaiveDate),
    /// The total.
    Amount(Money),
    /// The document has no value for the sort key.
    Nothing,
}

/// A position in a sorted list of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentPosition {
    /// The sort key value of the document at the position.
    pub key: OrderedBy,
    /// The document at the position.
    pub document_ref: DocumentRef,
}

impl DocumentOrder {
    /// Returns the position of a document.
    pub fn position(self, document: &Document) -> DocumentPosition {
        let issued = document.lifecycle.issued();
        let key = match self.by {
            DocumentSortKey::Created => Some(OrderedBy::Created(document.head.created_at)),
            DocumentSortKey::IssueDate => issued.map(|issued| OrderedBy::Day(issued.issue_date)),
            DocumentSortKey::DueDate => document.due_date().map(OrderedBy::Day),
            DocumentSortKey::Amount => issued.map(|issued| OrderedBy::Amount(issued.content.total)),
            DocumentSortKey::Updated => Some(OrderedBy::Updated(document.updated_at)),
        };
        DocumentPosition { key: key.unwrap_or(OrderedBy::Nothing), document_ref: document.head.document_ref }
    }

    /// Compares two positions. The result for positions of another order is unspecified.
    pub fn compare(self, a: &DocumentPosition, b: &DocumentPosition) -> Ordering {
        let directed = |order: Ordering| if self.descending { order.reverse() } else { order };
        let keys = match (a.key, b.key) {
            (OrderedBy::Nothing, OrderedBy::Nothing) => Ordering::Equal,
            (OrderedBy::Nothing, _) => return Ordering::Greater,
            (_, OrderedBy::Nothing) => return Ordering::Less,
            (OrderedBy::Created(a), OrderedBy::Created(b)) | (OrderedBy::Updated(a), OrderedBy::Updated(b)) => a.cmp(&b),
            (OrderedBy::Day(a), OrderedBy::Day(b)) => a.cmp(&b),
            (OrderedBy::Amount(a), OrderedBy::Amount(b)) => {
                (a.currency().code(), a.minor()).cmp(&(b.currency().code(), b.minor()))
            }
            _ => Ordering::Equal,
        };
        directed(keys.then(a.document_ref.cmp(&b.document_ref)))
    }
}

/// A window into a sorted list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListWindow {
    /// The position after which the window starts. Without a position, the window starts at the beginning.
    pub after: Option<DocumentPosition>,
    /// The number of elements to skip from there. Skipping an element costs as much as reading it.
    pub skip: u64,
    /// The maximum number of elements.
    pub limit: u32,
}

impl From<PageRequest> for ListWindow {
    fn from(page: PageRequest) -> Self {
        Self { after: None, skip: page.offset(), limit: page.size() }
    }
}

/// The count and amounts of a list of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSums {
    /// The number of documents.
    pub count: u64,
    /// The amounts per currency, ordered by currency code.
    pub amounts: Vec<DocumentAmounts>,
}

/// The amounts of documents in one currency. Documents that are not issued or are void count as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentAmounts {
    /// The sum of totals; credits count as negative.
    pub total: MoneySum,
    /// The sum of amounts due of invoices and debits.
    pub due: MoneySum,
}

impl DocumentAmounts {
    /// Returns the currency of the amounts.
    pub const fn currency(&self) -> Currency {
        self.total.currency()
    }
}

/// The documents that were issued or voided in a month in one currency (billing rules 9).
///
/// A voided document counts in the month of its issue, and is subtracted in the month of its void. So a void changes no earlier
/// month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BilledMonth {
    /// The first day of the month.
    pub first_day: NaiveDate,
    /// The number of documents issued.
    pub documents: u64,
    /// The sum of the totals of invoices and debits issued.
    pub invoiced: MoneySum,
    /// The sum of the totals of credits issued.
    pub credited: MoneySum,
    /// The sum of the totals of documents voided.
    pub voided: MoneySum,
    /// The difference of `invoiced` and the other two sums.
    pub billed: MoneySum,
}

impl BilledMonth {
    /// Returns the last day of the month.
    pub fn last_day(&self) -> NaiveDate {
        plus_months(self.first_day, 1).pred_opt().unwrap_or(self.first_day)
    }
}

/// A filter for lists of contracts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractFilter {
    /// Matches contracts of this customer.
    pub customer_id: Option<CustomerId>,
    /// Matches the contract with this number.
    pub number: Option<u64>,
    /// Matches contracts with this purchase order number.
    pub po_number: Option<OneLine>,
    /// Matches contracts in this state on these local dates.
    pub state: Option<(ContractState, LocalDates)>,
    /// Matches contracts whose last day is before this date.
    pub ends_before: Option<NaiveDate>,
    /// Matches contracts with this pricing in any version.
    pub pricing_ref: Option<PricingRef>,
    /// Matches contracts whose next document is due to be issued before this instant.
    pub issues_before: Option<Timestamp>,
    /// Matches contracts whose metadata has these keys with these values.
    pub metadata: Metadata,
    /// Conditions on the time of the newest version.
    pub updates: UpdateFilter,
}

/// A filter for lists of customers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomerFilter {
    /// Matches customers whose name starts with this text. The letters A to Z match case-insensitively.
    pub name: Option<String>,
    /// Matches customers with this e-mail address. The letters A to Z match case-insensitively.
    pub email: Option<String>,
    /// Matches customers with this tax number.
    pub tax_id: Option<String>,
    /// Matches customers whose metadata has these keys with these values.
    pub metadata: Metadata,
    /// Conditions on the time of the last change.
    pub updates: UpdateFilter,
}

/// The kind of a search hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SearchHitKind {
    /// An invoice, credit or debit.
    Document,
    /// A contract.
    Contract,
    /// A customer.
    Customer,
    /// A supplier entity.
    Entity,
    /// A pricing.
    Pricing,
    /// A usage product.
    UsageProduct,
    /// A usage format.
    Format,
    /// A usage event.
    UsageEvent,
    /// A charge.
    Charge,
    /// A bank account.
    BankAccount,
    /// A payment. The hit also names the document it is recorded on.
    Payment,
    /// An API key.
    ApiKey,
}

/// A search hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The kind of the object.
    pub kind: SearchHitKind,
    /// The reference of the object.
    pub reference: String,
    /// The display number of the object, or the key that matched the search.
    pub number: Option<String>,
    /// The name of the object.
    pub name: Option<String>,
    /// The customer the object belongs to.
    pub customer_ref: Option<CustomerRef>,
    /// The name of that customer.
    pub customer_name: Option<OneLine>,
    /// The document the object belongs to.
    pub document_ref: Option<DocumentRef>,
}

/// An object, identified by its kind and its reference in the API.
pub type ObjectKey = (AuditedKind, String);

/// The name of an object for readers, and the customer that the object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The name. For a contract or document: its number. For a payment: the number of its document; for a deposit the
    /// customer's name. For an application: the number of the document that it settles. For an administrator: the e-mail address. For a webhook endpoint: the URL.
    pub name: String,
    /// The customer the object belongs to. For a customer: the customer itself.
    pub customer_ref: Option<CustomerRef>,
    /// The name of that customer.
    pub customer_name: Option<OneLine>,
}

/// A search text in all its possible interpretations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerms {
    /// The text as entered.
    pub text: OneLine,
    /// The text as a document number.
    pub document_number: Option<DocumentNumber>,
    /// The text as the end of a document number.
    pub number_end: Option<NumberEnd>,
    /// The text as a contract number.
    pub contract_number: Option<u64>,
    /// The text as an assigned reference.
    pub id: Option<Uuid>,
    /// Whether the search includes API keys.
    pub with_api_keys: bool,
}

/// Sorted lists and search.
pub trait ListQueries {
    /// Returns a window of the documents that match a filter, in an order.
    fn listed_documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        order: DocumentOrder,
        part: ListWindow,
    ) -> StoreResult<Vec<Document>>;
    /// Returns the count and amounts of all documents that match a filter.
    fn document_sums(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<DocumentSums>;
    /// Returns the sums of the documents issued and voided that match a filter, by month of the issue or void and currency, oldest
    /// month first. The filter's dates of issue also select voids, by their day.
    fn billed_months(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<Vec<BilledMonth>>;
    /// Returns the numbers of these customers' contracts with these references.
    fn contract_numbers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[ContractRef],
    ) -> StoreResult<Vec<(ContractRef, u64)>>;
    /// Returns a page of the contracts that match a filter. The order may be ascending or descending.
    fn contracts(
        &mut self,
        organization: OrganizationId,
        filter: &ContractFilter,
        by: ContractSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>>;
    /// Returns a page of the customers that match a filter. The order may be ascending or descending.
    fn listed_customers(
        &mut self,
        organization: OrganizationId,
        filter: &CustomerFilter,
        by: CustomerSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Customer>>;
    /// Replaces the keys and values by which a customer, contract or payment is found. `before` has the stored ones.
    fn put_metadata(
        &mut self,
        organization: OrganizationId,
        subject: MetadataSubject,
        before: &Metadata,
        after: &Metadata,
    ) -> StoreResult<()>;
    /// Returns about `limit` objects that match a search, ordered by kind, then by reference.
    ///
    /// Exact matches of a number, reference, key, purchase order number, name, e-mail address or tax number come first.
    /// Objects with a word that starts with each [word](crate::search_words) of the text follow. Of a word with very many
    /// matches, only a bounded number is examined.
    fn search(&mut self, organization: OrganizationId, sought: &SearchTerms, limit: u32) -> StoreResult<Vec<SearchHit>>;
    /// Returns the names of these objects. Unknown objects are missing, and so are kinds whose reference is the name.
    fn object_names(
        &mut self,
        organization: OrganizationId,
        objects: &BTreeSet<ObjectKey>,
    ) -> StoreResult<BTreeMap<ObjectKey, ObjectName>>;
}
