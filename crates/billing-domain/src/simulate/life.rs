//! The life of a contract: its book, and the related data that an application stores. Each step is one decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;
use uuid::Uuid;

use super::accounts::Accounts;
use super::event::SimulatedEvent;
use super::price::{PriceList, add_usage_product};
use super::setup::{Setup, entities, unknown};
use super::value::Given;
use crate::access::Actor;
use crate::calendar::{Period, TimeZone, Timestamp};
use crate::contract::resolve::Catalog;
use crate::contract::{Contract, ContractProduct, check_products};
use crate::document::totals::DocumentContent;
use crate::document::{BookDocument, DocumentKind, IssuedDocument};
use crate::ledger::amend::BackdatingPolicy;
use crate::ledger::issue::Failure;
use crate::ledger::overdue::VersionTimes;
use crate::ledger::{ContractBook, Entry, amend as amending, check, issue};
use crate::metadata::Metadata;
use crate::party::{Customer, CustomerProfile};
use crate::receivables::AccountKey;
use crate::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, ProductNo};
use crate::refusal::Refusal;
use crate::tax::ExchangeRate;
use crate::text::OneLine;

/// The maximum number of documents that a simulated run issues at a time.
const ALL: usize = usize::MAX;

/// The content of a document at the time it was issued or voided.
#[derive(Clone, Debug)]
pub(super) enum Frozen {
    Issued(Box<IssuedDocument>),
    Discarded(Box<DocumentContent>),
}

/// A book, a clock and related data.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) book: ContractBook,
    pub(super) now: Timestamp,
    /// The policy for steps that may exceed the limit of documents due at once.
    pub(super) backdated: BackdatingPolicy,
    /// The name of the current step.
    pub(super) name: Option<String>,
    pub(super) events: Vec<SimulatedEvent>,
    pub(super) accounts: Accounts,
    pub(super) frozen: BTreeMap<DocumentRef, Frozen>,
    /// The documents that the last run failed to issue.
    pub(super) failed: Vec<Failure>,
    /// The times at which the versions of the contract were created.
    pub(super) versions: VersionTimes,
    catalog: Catalog,
    rates: Vec<ExchangeRate>,
    due: Option<Timestamp>,
    runs: bool,
    series: BTreeMap<(String, DocumentKind), u64>,
    opened: u32,
    ids: u128,
}

impl Life {
    /// Creates the contract. `first_step` is the time of the first step; the contract is created before it.
    pub(super) fn begin(setup: &Setup, first_step: Option<Timestamp>) -> Result<Self, Refusal> {
        let entities = entities(setup)?;
        let mut customer = Customer {
            id: CustomerId::from_uuid(Uuid::from_u128(1)),
            customer_ref: CustomerRef::parse("customer").map_err(|error| Refusal::Broken(error.to_string()))?,
            profile: CustomerProfile::plain(Given::<OneLine>::from("Customer").read("name")?),
            created_at: Timestamp::MIN,
            updated_at: Timestamp::MIN,
        };
        for change in &setup.customer {
            change.apply(&mut customer, NaiveDate::MIN)?;
        }
        let mut catalog = Catalog {
            pricings: Vec::new(),
            usage_products: Vec::new(),
            entities: entities.iter().map(|entity| entity.entity_ref.clone()).collect(),
            default_entity: customer.profile.entity_ref.clone().or(entities.first().map(|entity| entity.entity_ref.clone())),
        };
        let own = setup.terms.iter().zip(0..).filter_map(|(terms, no)| terms.own_prices(no));
        for prices in setup.pricings.iter().cloned().chain(own) {
            put_prices(&mut catalog, &prices)?;
        }
        let requests = setup.terms.iter().zip(0..).map(|(terms, no)| terms.request(no)).collect::<Result<Vec<_>, Refusal>>()?;
        let agreed = catalog.agree_all(&requests)?;
        let products: Vec<ContractProduct> =
            (0..).map(ProductNo).zip(agreed).map(|(no, terms)| ContractProduct::new(no, terms)).collect();
        check_products(&products, |no| Some(usize::from(no.0)))?;
        let zone = setup.zone()?;
        let first_day = products.iter().filter_map(|product| product.billed().map(Period::start)).min();
        let begins = first_day.map_or(Timestamp::MIN, |first| zone.start_of_day(first));
        let created_at = match &setup.created {
            Some(created) => created.read("created")?.in_zone(zone),
            None => first_step.map_or(begins, |first| first.min(begins)),
        };
        let contract = Contract {
            contract_ref: ContractRef::from_uuid(Uuid::from_u128(2)),
            number: 1,
            customer_id: customer.id,
            customer_ref: customer.customer_ref.clone(),
            po_number: None,
            metadata: Metadata::default(),
            version: 1,
            created_at,
            updated_at: created_at,
            cancelled_at: None,
            is_watched: false,
            products,
        };
        let mut life = Self {
            book: ContractBook::of_shared(Arc::new(contract), Arc::new(customer), entities),
            now: created_at,
            backdated: setup.backdated,
            name: None,
            events: Vec::new(),
            accounts: Accounts::default(),
            frozen: BTreeMap::new(),
            failed: Vec::new(),
            versions: VersionTimes::from([(1, created_at)]),
            catalog,
            rates: Vec::new(),
            due: None,
            runs: setup.runs,
            series: BTreeMap::new(),
            opened: 0,
            ids: 2,
        };
        life.decide(|life, _| amending::create(&mut life.book, life.backdated, life.now))?;
        Ok(life)
    }

    /// Runs one decision of the ledger and applies its results: numbers, document contents and settlement.
    pub(super) fn decide<T>(
        &mut self,
        decide: impl FnOnce(&mut Self, &mut dyn FnMut() -> Uuid) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.learn()?;
        let mut ids = self.ids;
        let decided = decide(self, &mut || next_id(&mut ids));
        self.ids = ids;
        let decided = decided?;
        let mut entries = self.book.take_entries();
        let (series, opened) = (&mut self.series, &mut self.opened);
        self.book.number(&mut entries, |head| {
            let last = series.entry((head.number.prefix.as_str().to_owned(), head.kind)).or_default();
            *last += 1;
            *opened += 1;
            Ok::<_, Refusal>((*last, *opened))
        })?;
        let mut accounts = std::mem::take(&mut self.accounts);
        accounts.take_up(&mut self.book, &mut entries, self.now, &mut || next_id(&mut self.ids))?;
        self.accounts = accounts;
        for entry in entries {
            match entry {
                Entry::Issued { document_ref, issued, .. } => {
                    self.frozen.insert(document_ref, Frozen::Issued(issued));
                }
                Entry::Discarded { document_ref, content, .. } => {
                    self.frozen.insert(document_ref, Frozen::Discarded(Box::new(content.content)));
                }
                Entry::EventsMoved { from, to, of } => {
                    self.events.iter_mut().for_each(|event| event.follow(from, to, of));
                }
                Entry::Due(at) => self.due = at,
                Entry::Amended(contract) => {
                    self.versions.insert(contract.version, self.now);
                }
                _ => {}
            }
        }
        Ok(decided)
    }

    /// Loads the data into the book that an application reads before a decision.
    pub(super) fn learn(&mut self) -> Result<(), Refusal> {
        self.learn_sales()?;
        let live = self.events.iter().filter(|event| !event.is_deleted);
        self.book.put_events(live.map(|event| event.listed_on).collect::<BTreeSet<_>>());
        for pair in self.book.missing_exchange_rates(self.now) {
            let known = |rate: &&ExchangeRate| (rate.from, rate.to) == (pair.from, pair.to) && rate.date <= pair.on;
            let rate = self.rates.iter().filter(known).max_by_key(|rate| rate.date).copied();
            self.book.set_exchange_rate(pair, rate);
        }
        Ok(())
    }

    /// Returns a new identifier.
    pub(super) const fn new_id(&mut self) -> Uuid {
        next_id(&mut self.ids)
    }

    /// Returns the account of the first product.
    pub(super) fn first_account(&self) -> Result<AccountKey, Refusal> {
        let first = self.book.contract.products.first().and_then(|product| product.newest_terms());
        let first = first.ok_or_else(|| Refusal::Broken("the contract has no product".to_owned()))?;
        let customer_id = self.book.customer.id;
        Ok(AccountKey { customer_id, entity_ref: first.entity_ref.clone(), currency: first.pricing.currency })
    }

    /// Moves the clock. Unless automatic runs are off, issues each document when it is due, after all steps of an
    /// instant.
    pub(super) fn go_to(&mut self, instant: Timestamp) -> Result<(), Refusal> {
        if instant == self.now {
            return Ok(());
        }
        while let Some(due) = self.due.filter(|due| self.runs && *due <= instant) {
            // A change can make documents due in the past. They are issued now.
            self.now = self.now.max(due);
            self.run()?;
            if self.due == Some(due) {
                break;
            }
        }
        self.now = self.now.max(instant);
        Ok(())
    }

    pub(super) fn run(&mut self) -> Result<(), Refusal> {
        self.failed = self.decide(|life, mut ids| issue::issue_due(&mut life.book, life.now, ALL, &mut ids))?.failed;
        Ok(())
    }

    /// Reschedules the next run after a change outside the contract.
    pub(super) fn remind(&mut self) -> Result<(), Refusal> {
        self.decide(|life, _| issue::schedule_next_run(&mut life.book, life.now))
    }

    pub(super) fn put_prices(&mut self, prices: &PriceList) -> Result<(), Refusal> {
        put_prices(&mut self.catalog, prices)
    }

    pub(super) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Makes all existing entities available to products.
    pub(super) fn note_entities(&mut self) {
        self.catalog.entities = self.book.entities.iter().map(|entity| entity.entity_ref.clone()).collect();
    }

    pub(super) fn put_exchange_rate(&mut self, rate: ExchangeRate) -> Result<(), Refusal> {
        rate.check()?;
        self.rates.push(rate);
        Ok(())
    }

    /// Returns today's date in the time zone of an entity.
    pub(super) fn today(&self, entity_ref: &EntityRef) -> NaiveDate {
        let zone = self.book.entity(entity_ref).map_or(TimeZone::UTC, |entity| entity.profile.time_zone);
        zone.service_date(self.now)
    }

    /// Returns today's date in the time zone of the first entity.
    pub(super) fn first_entitys_today(&self) -> NaiveDate {
        let zone = self.book.entities.first().map_or(TimeZone::UTC, |entity| entity.profile.time_zone);
        zone.service_date(self.now)
    }

    /// Returns the document with a number.
    pub(super) fn numbered(&self, number: &str) -> Result<&BookDocument, Refusal> {
        let found = self.book.documents().find(|document| document.head.number.to_string() == number);
        found.ok_or_else(|| unknown("document", number))
    }

    /// Returns the content of a document: the frozen content, or the current content of a draft.
    pub(super) fn content(&self, document_ref: DocumentRef) -> Result<DocumentContent, Refusal> {
        match self.frozen.get(&document_ref) {
            Some(Frozen::Issued(issued)) => Ok(issued.content.clone()),
            Some(Frozen::Discarded(content)) => Ok((**content).clone()),
            None => Ok(self.book.draft_content(document_ref)?.content),
        }
    }

    /// Rejects a book that violates a rule, which is a defect of the ledger.
    pub(super) fn require_lawful(&self) -> Result<(), Refusal> {
        let problems = check::check(&self.book)?;
        if problems.is_empty() { Ok(()) } else { Err(Refusal::Broken(problems.join("; "))) }
    }

    pub(super) const fn by() -> Actor {
        Actor::Service
    }
}

/// Replaces the price list with the same reference. Usage products keep their first definition, to which a label to
/// count can be added.
fn put_prices(catalog: &mut Catalog, prices: &PriceList) -> Result<(), Refusal> {
    let (pricing, usage_products) = prices.read()?;
    catalog.pricings.retain(|other| other.pricing_ref != pricing.pricing_ref);
    catalog.pricings.push(pricing);
    usage_products.into_iter().for_each(|product| add_usage_product(&mut catalog.usage_products, product));
    Ok(())
}

const fn next_id(ids: &mut u128) -> Uuid {
    *ids += 1;
    Uuid::from_u128(*ids)
}
