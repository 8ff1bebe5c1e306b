//! The front door: terms, events and a day → the documents. For whoever wants to know what an agreement bills, and for
//! tests of billing rules: no store, no server, no clock.
//!
//! ```
//! use billing_domain::simulate::{Simulation, graduated, terms};
//!
//! # fn main() -> Result<(), billing_domain::refusal::Refusal> {
//! let prices = graduated([(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")]);
//! let bill = Simulation::new()
//!     .contract(terms("2026-01-15", "2026-12-31").fixed("platform", "49.00").usage("calls", prices).tax("19"))
//!     .event("2026-02-10T12:00:00Z", "calls", "1500")
//!     .event("2026-03-02T09:00:00Z", "calls", "200")
//!     .until("2026-03-05")?;
//! let january = &bill.documents()[0];
//! assert_eq!(january.to_string(), "UB-INV-1 ISSUED 2026-01-15…2026-01-31: 31.98 EUR");
//! assert_eq!(bill.documents()[1].total().to_string(), "129.71 EUR");
//! assert_eq!(bill.documents()[2].to_string(), "UB-INV-3 DRAFT 2026-03-01…2026-03-31: 76.16 EUR");
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::fmt;

use uuid::Uuid;

use crate::calendar::{Period, TimeZone, Timestamp, parse_date};
use crate::catalog::{
    Aggregation, Charge, FixedPrice, LineItem, Pricing, PricingContent, Recurrence, Tier, Tiers, UsageCharge, UsagePrice,
    UsageProduct, UsageProductProfile,
};
use crate::codes::UnitCode;
use crate::contract::agreement::Catalog;
use crate::contract::terms::{PaymentTime, RequestedProduct};
use crate::contract::{Contract, ContractProduct};
use crate::document::numbering::DocumentNumber;
use crate::document::totals::DocumentContent;
use crate::document::{DocumentKind, Standing};
use crate::ledger::terms::Backdated;
use crate::ledger::{ContractBook, Entry, issue, post, terms as amending};
use crate::matching::{EventFacts, match_event};
use crate::money::{Currency, Money, Percentage, Price};
use crate::party::{Customer, CustomerProfile, Entity, EntityProfile, NetTerms, NumberPrefix};
use crate::quantity::Quantity;
use crate::refs::{
    ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, EventRef, LineItemId, PricingRef, ProductNo, UsageProductRef,
};
use crate::refusal::Refusal;
use crate::text::OneLine;
use crate::usage::CountedEvent;

/// The most documents that a simulated run issues at a time.
const ALL: usize = usize::MAX;

/// Terms in the making: one product of a contract, billed monthly after use in EUR unless said otherwise. What can't be
/// read is told by [`Simulation::until`].
#[derive(Clone, Debug)]
pub struct Terms {
    first: String,
    last: String,
    currency: String,
    items: Vec<(String, Item)>,
    request: Vec<Said>,
}

#[derive(Clone, Debug)]
enum Item {
    Fixed(String),
    Usage(Prices),
}

#[derive(Clone, Debug)]
enum Said {
    Tax(String),
    Discount(String),
    Payment(PaymentTime),
    Net(NetTerms),
}

/// A price of usage in the making.
#[derive(Clone, Debug)]
pub enum Prices {
    /// A price for each unit.
    Each(String),
    /// Tiers, each with its upper bound and unit price; the last is open.
    Graduated(Vec<(Option<String>, String)>),
}

/// Terms from the first day billed to the last.
pub fn terms(first: &str, last: &str) -> Terms {
    Terms { first: first.to_owned(), last: last.to_owned(), currency: "EUR".to_owned(), items: Vec::new(), request: Vec::new() }
}

/// One price for each unit.
pub fn per_unit(unit_price: &str) -> Prices {
    Prices::Each(unit_price.to_owned())
}

/// Tiers by their upper bounds, each with its unit price; the last is open.
pub fn graduated<'a>(tiers: impl IntoIterator<Item = (Option<&'a str>, &'a str)>) -> Prices {
    Prices::Graduated(tiers.into_iter().map(|(up_to, price)| (up_to.map(str::to_owned), price.to_owned())).collect())
}

impl Terms {
    /// With an amount for each whole period.
    pub fn fixed(mut self, id: &str, amount: &str) -> Self {
        self.items.push((id.to_owned(), Item::Fixed(amount.to_owned())));
        self
    }

    /// With usage of a product at a price.
    pub fn usage(mut self, id: &str, prices: Prices) -> Self {
        self.items.push((id.to_owned(), Item::Usage(prices)));
        self
    }

    /// With tax in percent.
    pub fn tax(mut self, percent: &str) -> Self {
        self.request.push(Said::Tax(percent.to_owned()));
        self
    }

    /// With a discount in percent.
    pub fn discount(mut self, percent: &str) -> Self {
        self.request.push(Said::Discount(percent.to_owned()));
        self
    }

    /// With another timing of payment.
    pub fn payment_time(mut self, payment_time: PaymentTime) -> Self {
        self.request.push(Said::Payment(payment_time));
        self
    }

    /// With net terms.
    pub fn net_terms(mut self, net_terms: NetTerms) -> Self {
        self.request.push(Said::Net(net_terms));
        self
    }

    fn pricing(&self) -> Result<(Pricing, Vec<UsageProduct>), Refusal> {
        let at = Timestamp::MIN;
        let mut line_items = Vec::new();
        let mut usage_products = Vec::new();
        for (id, item) in &self.items {
            let charge = match item {
                Item::Fixed(amount) => {
                    Charge::Fixed { price: FixedPrice::Flat { amount: price(amount)? }, recurrence: Recurrence::EachPeriod }
                }
                Item::Usage(prices) => {
                    let usage_product_ref = UsageProductRef::parse(id).map_err(|error| unread("usage", id, &error))?;
                    usage_products.push(UsageProduct {
                        usage_product_ref: usage_product_ref.clone(),
                        profile: UsageProductProfile {
                            name: line(id)?,
                            unit: None,
                            unit_code: UnitCode::ONE,
                            aggregation: Aggregation::Sum,
                        },
                        created_at: at,
                    });
                    Charge::Usage(UsageCharge {
                        usage_product_ref,
                        price: prices.read()?,
                        included_quantity: Quantity::ZERO,
                        prepaid_quantity: None,
                        minimum_amount: None,
                        maximum_amount: None,
                    })
                }
            };
            let id = LineItemId::parse(id).map_err(|error| unread("line_item_id", id, &error))?;
            line_items.push(LineItem { name: line(id.as_str())?, id, charge });
        }
        let content = PricingContent {
            name: line("Pricing")?,
            currency: Currency::from_code(&self.currency).map_err(|error| unread("currency", &self.currency, &error))?,
            minimum_fee: None,
            line_items,
        };
        let pricing_ref = PricingRef::parse("pricing").map_err(|error| unread("pricing", "pricing", &error))?;
        Ok((Pricing { pricing_ref, content, created_at: at }, usage_products))
    }

    fn request(&self, pricing_ref: &PricingRef) -> Result<RequestedProduct, Refusal> {
        let date = |field, text: &str| parse_date(text).map_err(|error| unread(field, text, &error));
        let first = date("billing_start_date", &self.first)?;
        let mut request = RequestedProduct::plain(pricing_ref.clone(), first, date("billing_end_date", &self.last)?);
        let percent = |field, text: &str| Percentage::parse(text).map_err(|error| unread(field, text, &error));
        for said in &self.request {
            match said {
                Said::Tax(text) => request.tax = Some(percent("tax", text)?),
                Said::Discount(text) => request.discount = Some(percent("discount", text)?),
                Said::Payment(payment_time) => request.payment_time = Some(*payment_time),
                Said::Net(net_terms) => request.net_terms = Some(*net_terms),
            }
        }
        Ok(request)
    }
}

impl Prices {
    fn read(&self) -> Result<UsagePrice, Refusal> {
        match self {
            Self::Each(unit_price) => Ok(UsagePrice::PerUnit { unit_price: price(unit_price)? }),
            Self::Graduated(tiers) => {
                let tier = |(up_to, unit_price): &(Option<String>, String)| {
                    Ok(Tier {
                        up_to: up_to.as_deref().map(price).transpose()?,
                        unit_price: price(unit_price)?,
                        flat_amount: Price::ZERO,
                    })
                };
                let tiers = tiers.iter().map(tier).collect::<Result<Vec<_>, Refusal>>()?;
                Ok(UsagePrice::Graduated(Tiers::new(tiers)?))
            }
        }
    }
}

/// A contract's life: an entity `UB` in UTC bills a customer, every document is issued when it is due.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    terms: Vec<Terms>,
    events: Vec<(String, String, String, Option<String>)>,
}

impl Simulation {
    /// Nothing agreed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the terms of a contract; each call adds a product to it.
    pub fn contract(mut self, terms: Terms) -> Self {
        self.terms.push(terms);
        self
    }

    /// With usage, reported when it happens.
    pub fn event(mut self, at: &str, usage: &str, quantity: &str) -> Self {
        self.events.push((at.to_owned(), usage.to_owned(), quantity.to_owned(), None));
        self
    }

    /// With usage that is reported later.
    pub fn late_event(mut self, at: &str, usage: &str, quantity: &str, reported_at: &str) -> Self {
        self.events.push((at.to_owned(), usage.to_owned(), quantity.to_owned(), Some(reported_at.to_owned())));
        self
    }

    /// Everything that is on documents at the end of a day.
    ///
    /// # Errors
    /// [`Refusal`]: a value that can't be read, or what the rules refuse.
    pub fn until(&self, day: &str) -> Result<Bill, Refusal> {
        let day = parse_date(day).map_err(|error| unread("until", day, &error))?;
        let end = TimeZone::UTC.start_of_day(crate::calendar::day_after(day)).plus_seconds(-1);
        let mut life = Life::begin(&self.terms)?;
        let mut reports = Vec::new();
        for (at, usage, quantity, reported_at) in &self.events {
            let instant = |text: &str| Timestamp::parse(text).map_err(|error| unread("timestamp", text, &error));
            let product = UsageProductRef::parse(usage).map_err(|error| unread("usage", usage, &error))?;
            let quantity = Quantity::parse(quantity).map_err(|error| unread("quantity", quantity, &error))?;
            reports.push((instant(reported_at.as_deref().unwrap_or(at))?, instant(at)?, product, quantity));
        }
        reports.sort_by_key(|(reported_at, ..)| *reported_at);
        for (reported_at, at, product, quantity) in reports.into_iter().filter(|(reported_at, ..)| *reported_at <= end) {
            life.run_until(reported_at)?;
            life.report(at, &product, quantity, reported_at)?;
        }
        life.run_until(end)?;
        life.bill()
    }
}

/// A book and what is around it.
struct Life {
    book: ContractBook,
    due: Option<Timestamp>,
    contents: BTreeMap<DocumentRef, DocumentContent>,
    series: BTreeMap<DocumentKind, u64>,
    ids: u128,
}

impl Life {
    fn begin(terms: &[Terms]) -> Result<Self, Refusal> {
        let entity_ref = EntityRef::parse("default").map_err(|error| unread("entity_ref", "default", &error))?;
        let entity = Entity {
            entity_ref: entity_ref.clone(),
            profile: EntityProfile::plain(
                line("Default")?,
                NumberPrefix::parse("UB").map_err(|error| unread("number_prefix", "UB", &error))?,
            ),
            created_at: Timestamp::MIN,
        };
        let customer_ref = CustomerRef::parse("customer").map_err(|error| unread("customer_ref", "customer", &error))?;
        let customer = Customer {
            id: CustomerId::from_uuid(Uuid::from_u128(1)),
            customer_ref: customer_ref.clone(),
            profile: CustomerProfile::plain(line("Customer")?),
            created_at: Timestamp::MIN,
        };
        let mut products = Vec::new();
        for (terms, no) in terms.iter().zip(0u16..) {
            let (mut pricing, usage_products) = terms.pricing()?;
            let text = format!("pricing-{no}");
            pricing.pricing_ref = PricingRef::parse(&text).map_err(|error| unread("pricing", &text, &error))?;
            let request = terms.request(&pricing.pricing_ref)?;
            let catalog = Catalog {
                pricings: vec![pricing],
                usage_products,
                entities: Vec::new(),
                default_entity: Some(entity_ref.clone()),
            };
            products.push(ContractProduct::new(ProductNo(no), catalog.agree(request)?));
        }
        let first = products.iter().filter_map(|product| product.billed().map(Period::start)).min();
        let created_at = first.map_or(Timestamp::MIN, |first| TimeZone::UTC.start_of_day(first));
        let contract = Contract {
            contract_ref: ContractRef::from_uuid(Uuid::from_u128(2)),
            number: 1,
            customer_id: customer.id,
            customer_ref,
            po_number: None,
            version: 1,
            created_at,
            cancelled_at: None,
            products,
        };
        let book = ContractBook::new(contract, customer, vec![entity]);
        let mut life = Self { book, due: None, contents: BTreeMap::new(), series: BTreeMap::new(), ids: 2 };
        amending::create(&mut life.book, Backdated::Allowed, created_at)?;
        life.take()?;
        Ok(life)
    }

    /// Gives numbers, and keeps what was issued and when the next run is due.
    fn take(&mut self) -> Result<(), Refusal> {
        let mut entries = self.book.take_entries();
        let series = &mut self.series;
        let mut opened = self.contents.len() as u32;
        self.book.number(&mut entries, |head| {
            let last = series.entry(head.kind).or_default();
            *last += 1;
            opened += 1;
            Ok::<_, Refusal>((*last, opened))
        })?;
        for entry in entries {
            match entry {
                Entry::Issued { document_ref, issued } => {
                    self.contents.insert(document_ref, issued.content);
                }
                Entry::Due(at) => self.due = at,
                _ => {}
            }
        }
        Ok(())
    }

    fn run_until(&mut self, instant: Timestamp) -> Result<(), Refusal> {
        while let Some(due) = self.due.filter(|due| *due <= instant) {
            let ids = &mut self.ids;
            issue::run(&mut self.book, due, ALL, &mut || next_id(ids))?;
            self.take()?;
            if self.due == Some(due) {
                break;
            }
        }
        Ok(())
    }

    fn report(
        &mut self,
        at: Timestamp,
        product: &UsageProductRef,
        quantity: Quantity,
        reported_at: Timestamp,
    ) -> Result<(), Refusal> {
        let contract = std::sync::Arc::clone(&self.book.contract);
        let facts = EventFacts { usage_product_ref: product, occurred_at: at, validations: None };
        let entities = self.book.entities.clone();
        let found = match_event(facts, std::slice::from_ref(&*contract), &entities)?;
        let ids = &mut self.ids;
        let event = CountedEvent {
            event_ref: EventRef::from_uuid(next_id(ids)),
            occurred_at: at,
            service_date: found.service_date,
            quantity,
        };
        post::add(&mut self.book, found.period.product_no, product, &[event], reported_at, &mut || next_id(ids))?;
        issue::remind(&mut self.book, reported_at)?;
        self.take()
    }

    fn bill(self) -> Result<Bill, Refusal> {
        let mut documents = Vec::new();
        for document in self.book.documents() {
            let document_ref = document.head.document_ref;
            let content = match self.contents.get(&document_ref) {
                Some(content) => content.clone(),
                None if document.standing == Standing::Draft => self.book.content(document_ref)?,
                None => continue,
            };
            documents.push(SimulatedDocument {
                number: document.head.number.clone(),
                standing: document.standing,
                period: document.head.period,
                content,
            });
        }
        Ok(Bill { documents })
    }
}

fn next_id(ids: &mut u128) -> Uuid {
    *ids += 1;
    Uuid::from_u128(*ids)
}

fn line(text: &str) -> Result<OneLine, Refusal> {
    OneLine::parse(text).map_err(|error| unread("name", text, &error))
}

fn price(text: &str) -> Result<Price, Refusal> {
    Price::parse(text).map_err(|error| unread("price", text, &error))
}

fn unread(field: &str, text: &str, error: &dyn fmt::Display) -> Refusal {
    Refusal::field(&[field], "invalid_format", format!("{text:?} {error}"))
}

/// What a contract has on documents.
#[derive(Clone, Debug)]
pub struct Bill {
    documents: Vec<SimulatedDocument>,
}

impl Bill {
    /// The documents in force, in the order they were opened.
    pub fn documents(&self) -> &[SimulatedDocument] {
        &self.documents
    }

    /// What is owed in all by documents that are issued, in the minor units of their currency.
    pub fn owed_minor(&self) -> i64 {
        let issued = self.documents.iter().filter(|document| document.standing.is_issued());
        issued.map(|document| crate::document::lines::sign(document.number.kind) * document.total().minor()).sum()
    }
}

/// A document of a [`Bill`].
#[derive(Clone, Debug)]
pub struct SimulatedDocument {
    /// Its number.
    pub number: DocumentNumber,
    /// How far it has come.
    pub standing: Standing,
    /// Its own period.
    pub period: Period,
    /// Lines and totals.
    pub content: DocumentContent,
}

impl SimulatedDocument {
    /// Its total.
    pub const fn total(&self) -> Money {
        self.content.total
    }
}

impl fmt::Display for SimulatedDocument {
    /// Number, standing, period and total.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standing = match self.standing {
            Standing::Draft => "DRAFT",
            Standing::Issued => "ISSUED",
            Standing::Uncollectible => "UNCOLLECTIBLE",
            Standing::Void | Standing::Discarded => "VOID",
        };
        write!(f, "{} {standing} {}: {}", self.number, self.period, self.content.total)
    }
}
