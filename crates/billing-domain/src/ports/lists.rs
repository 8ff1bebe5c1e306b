//! Lists as finance asks for them: narrowed by anything, in several orders, continued from any place; and what any number,
//! reference, key or name belongs to.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use uuid::Uuid;

use super::{DocumentFilter, StoreResult};
use crate::calendar::Timestamp;
use crate::contract::{Contract, ContractState};
use crate::document::Document;
use crate::document::numbering::DocumentNumber;
use crate::money::{Currency, Money, MoneySum};
use crate::page::{Order, Page, PageRequest};
use crate::party::{Customer, Entity};
use crate::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, OrganizationId, PricingRef};
use crate::text::OneLine;

/// What day it is, by the calendar of each entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalDates {
    /// Of what no entity bills: by UTC.
    elsewhere: NaiveDate,
    of_entities: BTreeMap<NaiveDate, BTreeSet<EntityRef>>,
}

impl LocalDates {
    /// At an instant.
    pub fn at(now: Timestamp, entities: &[Entity]) -> Self {
        let mut of_entities: BTreeMap<NaiveDate, BTreeSet<EntityRef>> = BTreeMap::new();
        for entity in entities {
            let today = entity.profile.time_zone.service_date(now);
            of_entities.entry(today).or_default().insert(entity.entity_ref.clone());
        }
        Self { elsewhere: crate::calendar::TimeZone::UTC.service_date(now), of_entities }
    }

    /// Where an entity is, or by UTC.
    pub fn of(&self, entity_ref: Option<&EntityRef>) -> NaiveDate {
        let has = |entities: &BTreeSet<EntityRef>| entity_ref.is_some_and(|entity_ref| entities.contains(entity_ref));
        self.of_entities.iter().find(|(_, entities)| has(entities)).map_or(self.elsewhere, |(today, _)| *today)
    }

    /// Where no entity is.
    pub const fn elsewhere(&self) -> NaiveDate {
        self.elsewhere
    }

    /// Entities by their day, the earliest first.
    pub fn of_entities(&self) -> impl ExactSizeIterator<Item = (NaiveDate, &BTreeSet<EntityRef>)> {
        self.of_entities.iter().map(|(today, entities)| (*today, entities))
    }

    /// The latest day anywhere.
    pub fn latest(&self) -> NaiveDate {
        self.of_entities.keys().next_back().map_or(self.elsewhere, |latest| self.elsewhere.max(*latest))
    }

    /// The earliest day anywhere.
    pub fn earliest(&self) -> NaiveDate {
        self.of_entities.keys().next().map_or(self.elsewhere, |earliest| self.elsewhere.min(*earliest))
    }
}

/// By what documents are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DocumentSortKey {
    /// When they were opened.
    #[default]
    Created,
    /// When they were issued.
    IssueDate,
    /// When they have to be paid.
    DueDate,
    /// Their totals, those of one currency together, in the order of its code.
    Amount,
}

/// An order of documents; equals come by reference. What wasn't issued has neither date nor total, and credits
/// and void documents have no due date: what has nothing to be ordered by comes last, whichever the direction.
pub type DocumentOrder = Order<DocumentSortKey>;

/// By what contracts are ordered; equals come by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContractSortKey {
    /// When they were made.
    #[default]
    Created,
    /// Their last days. What never ends, ends after everything else.
    LastDay,
}

/// By what customers are ordered; equals come by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomerSortKey {
    /// When they were made.
    #[default]
    Created,
    /// Their names, letters A to Z in either case, others by their code points.
    Name,
}

/// What a document is ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedBy {
    /// When it was opened.
    Created(Timestamp),
    /// Its date.
    Day(NaiveDate),
    /// Its total.
    Amount(Money),
    /// It has nothing to be ordered by.
    Nothing,
}

/// A place in an ordered list of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentPosition {
    /// What the document there is ordered by.
    pub key: OrderedBy,
    /// The document there.
    pub document_ref: DocumentRef,
}

impl DocumentOrder {
    /// Where a document stands.
    pub fn position(self, document: &Document) -> DocumentPosition {
        let issued = document.lifecycle.issued();
        let key = match self.by {
            DocumentSortKey::Created => Some(OrderedBy::Created(document.head.created_at)),
            DocumentSortKey::IssueDate => issued.map(|issued| OrderedBy::Day(issued.issue_date)),
            DocumentSortKey::DueDate => document.due_date().map(OrderedBy::Day),
            DocumentSortKey::Amount => issued.map(|issued| OrderedBy::Amount(issued.content.total)),
        };
        DocumentPosition { key: key.unwrap_or(OrderedBy::Nothing), document_ref: document.head.document_ref }
    }

    /// Which of two places comes first. Places of another order come in no particular one.
    pub fn compare(self, a: &DocumentPosition, b: &DocumentPosition) -> Ordering {
        let directed = |order: Ordering| if self.descending { order.reverse() } else { order };
        let keys = match (a.key, b.key) {
            (OrderedBy::Nothing, OrderedBy::Nothing) => Ordering::Equal,
            (OrderedBy::Nothing, _) => return Ordering::Greater,
            (_, OrderedBy::Nothing) => return Ordering::Less,
            (OrderedBy::Created(a), OrderedBy::Created(b)) => a.cmp(&b),
            (OrderedBy::Day(a), OrderedBy::Day(b)) => a.cmp(&b),
            (OrderedBy::Amount(a), OrderedBy::Amount(b)) => {
                (a.currency().code(), a.minor()).cmp(&(b.currency().code(), b.minor()))
            }
            _ => Ordering::Equal,
        };
        directed(keys.then(a.document_ref.cmp(&b.document_ref)))
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListWindow {
    /// What comes after this place; from the beginning on when there is none.
    pub after: Option<DocumentPosition>,
    /// Elements to leave out from there on. They cost what the elements cost that are read.
    pub skip: u64,
    /// Elements at most.
    pub limit: u32,
}

impl From<PageRequest> for ListWindow {
    fn from(page: PageRequest) -> Self {
        Self { after: None, skip: page.offset(), limit: page.size() }
    }
}

/// What documents amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSums {
    /// How many there are.
    pub count: u64,
    /// Of each currency they have, by code.
    pub amounts: Vec<DocumentAmounts>,
}

/// What the documents of one currency amount to. Those that aren't issued, and void ones, count for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentAmounts {
    /// Σ totals, credits below zero.
    pub total: MoneySum,
    /// Σ what is left to pay of invoices and debits.
    pub due: MoneySum,
}

impl DocumentAmounts {
    /// Their currency.
    pub const fn currency(&self) -> Currency {
        self.total.currency()
    }
}

/// What a list of contracts is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// With this number.
    pub number: Option<u64>,
    /// With this purchase order number.
    pub po_number: Option<OneLine>,
    /// In this state, and the days that tell.
    pub state: Option<(ContractState, LocalDates)>,
    /// Whose last day is before this one.
    pub ends_before: Option<NaiveDate>,
    /// That agree on this pricing in any of their versions.
    pub pricing_ref: Option<PricingRef>,
    /// That next have a document to issue before this instant.
    pub issues_before: Option<Timestamp>,
}

/// What a list of customers is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomerFilter {
    /// Whose name begins so; letters A to Z in either case.
    pub name: Option<String>,
    /// With this e-mail address; letters A to Z in either case.
    pub email: Option<String>,
    /// With this tax number.
    pub tax_id: Option<String>,
}

/// What something is that was searched for.
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
    /// A payment: the document it is recorded on is named beside it.
    Payment,
    /// An API key.
    ApiKey,
}

/// Something that was searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// What it is.
    pub kind: SearchHitKind,
    /// Its reference.
    pub reference: String,
    /// Its number as people read it, or the key that it was looked for by.
    pub number: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Whose it is.
    pub customer_ref: Option<CustomerRef>,
    /// The document it belongs to.
    pub document_ref: Option<DocumentRef>,
}

/// What is searched for, read in every way it can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerms {
    /// As it was written.
    pub text: OneLine,
    /// As the number of a document.
    pub document_number: Option<DocumentNumber>,
    /// As the number of a contract.
    pub contract_number: Option<u64>,
    /// As an assigned reference.
    pub id: Option<Uuid>,
    /// Whether API keys may be found.
    pub with_api_keys: bool,
}

/// Lists, and what is found in all of them.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ListQueries {
    /// A part of the documents that pass a filter, in an order.
    fn listed_documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        order: DocumentOrder,
        part: ListWindow,
    ) -> StoreResult<Vec<Document>>;
    /// What all documents that pass a filter amount to.
    fn document_sums(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<DocumentSums>;
    /// The numbers of those of these customers' contracts that have one of these references.
    fn contract_numbers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[ContractRef],
    ) -> StoreResult<Vec<(ContractRef, u64)>>;
    /// Contracts that pass a filter, in an order, from either end.
    fn contracts(
        &mut self,
        organization: OrganizationId,
        filter: &ContractFilter,
        by: ContractSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>>;
    /// Customers that pass a filter, in an order, from either end.
    fn listed_customers(
        &mut self,
        organization: OrganizationId,
        filter: &CustomerFilter,
        by: CustomerSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Customer>>;
    /// Those that have what is searched for as number, reference, key, purchase order number or name; then those whose
    /// name begins with it, letters A to Z in either case. By kind, then by reference; about as many as asked.
    fn search(&mut self, organization: OrganizationId, sought: &SearchTerms, limit: u32) -> StoreResult<Vec<SearchHit>>;
}
