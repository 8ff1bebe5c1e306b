//! A contract's book with a clock, a catalog and receivables accounts. Every call of the ledger is here.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::account::AccountKey;
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::catalog::{PriceModel, Pricing, UsagePrice};
use billing_domain::charge::{ChargeEdit, NewCharge};
use billing_domain::contract::agreement::Catalog;
use billing_domain::contract::amendment::{ContractEdit, LastDay, ProductPatch, Since, TreatmentPatch};
use billing_domain::contract::terms::{RequestedLineItem, RequestedProduct};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::document::lines::{BillWith, sign};
use billing_domain::document::paper::missing;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{BookDocument, DocumentKind, IssuedDocument, Standing};
use billing_domain::ledger::charge::{self, Occasion};
use billing_domain::ledger::receive::{Account, Issue, Moment};
use billing_domain::ledger::terms::{self, Backdated};
use billing_domain::ledger::view::{self, Shown};
use billing_domain::ledger::{ContractBook, Entry, check, issue, overdue, post};
use billing_domain::matching::{EventFacts, match_event, match_moved_event};
use billing_domain::money::{Money, SignedPrice};
use billing_domain::party::legal::{Strictness, VatId};
use billing_domain::party::{Customer, Entity};
use billing_domain::patch::Patch;
use billing_domain::refs::{ChargeRef, DocumentRef, EventRef, ProductNo, UsageProductRef};
use billing_domain::refusal::{MatchRefusal, Refusal};
use billing_domain::tax::{DefaultTaxes, ExchangeRate, StatedTax, TaxBasis, TaxCategory};
use billing_domain::usage::{CountedEvent, UsageKey, UsageTotal};
use billing_testkit::{CountingIds, fixtures};
use chrono::NaiveDate;
use fixtures::{date, line, percent, price, quantity};
use uuid::Uuid;

/// Parses an instant. A day alone stands for its noon in UTC.
pub(crate) fn at(text: &str) -> Timestamp {
    if text.len() == 10 { fixtures::at(&format!("{text}T12:00:00Z")) } else { fixtures::at(text) }
}

/// Returns the code that the interface answers for a refusal.
pub(crate) fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid(violations) => violations.iter().next().expect("a violation").code,
        Refusal::Conflict { code, .. } => code,
        Refusal::NoMatch(MatchRefusal::NoMatchingContract | MatchRefusal::NoChargedProduct) => "no_matching_contract",
        Refusal::NoMatch(_) => "validation_mismatch",
        Refusal::AmountOutOfRange(_) => "amount_out_of_range",
        Refusal::Broken(problem) => panic!("the books are broken: {problem}"),
    }
}

/// A tax category with a reason where it needs one.
pub(crate) fn treatment(category: TaxCategory) -> TaxBasis {
    let reason = category.needs_reason().then(|| line("As agreed"));
    TaxBasis { category: Some(category), exemption_code: None, exemption_reason: reason }
}

/// The same of an element of an edit.
pub(crate) fn treatment_patch(category: TaxCategory) -> TreatmentPatch {
    let treatment = treatment(category);
    TreatmentPatch {
        category: Patch::Set(category),
        exemption_code: Patch::Clear,
        exemption_reason: treatment.exemption_reason.map_or(Patch::Clear, Patch::Set),
    }
}

/// An element of an edit's `products`.
pub(crate) fn element(pricing: &str, change: impl FnOnce(&mut ProductPatch)) -> ProductPatch {
    let mut element = ProductPatch::of(fixtures::pricing_ref(pricing));
    change(&mut element);
    element
}

/// A price of one unit in an element's line item.
pub(crate) fn repriced(id: &str, unit_price: &str) -> RequestedLineItem {
    let model = PriceModel::Metered(UsagePrice::PerUnit { unit_price: price(unit_price) });
    RequestedLineItem { price: Patch::Set(model), ..RequestedLineItem::plain(fixtures::line_item_id(id)) }
}

/// A day as the day from which an edit holds.
pub(crate) fn from(day: &str) -> Since {
    Since::Day(date(day))
}

/// What a contract is created from: entity `main` in UTC without grace, customer `acme` without defaults.
pub(crate) struct Setup {
    entities: Vec<Entity>,
    customer: Customer,
    pricings: Vec<Pricing>,
    products: Vec<RequestedProduct>,
    rates: Vec<ExchangeRate>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let mut customer = fixtures::customer(&CountingIds::new(), "acme");
        customer.profile.legal_name = Some(line("Acme Inc."));
        customer.profile.billing_address = Some(fixtures::full_address());
        let setup = Self { entities: Vec::new(), customer, pricings: Vec::new(), products: Vec::new(), rates: Vec::new() };
        setup.entity("main", |_| {})
    }

    pub(crate) fn entity(mut self, reference: &str, change: impl FnOnce(&mut Entity)) -> Self {
        let mut entity = fixtures::entity(reference);
        entity.profile.grace_hours = 0;
        entity.profile.legal_name = Some(line("Seller GmbH"));
        entity.profile.address = Some(fixtures::full_address());
        entity.profile.legal.vat_id = VatId::parse("DE123456789").ok();
        change(&mut entity);
        self.entities.retain(|other| other.entity_ref != entity.entity_ref);
        self.entities.push(entity);
        self
    }

    /// With an entity `main` that issues only complete papers.
    pub(crate) fn strict(self) -> Self {
        self.entity("main", |main| main.profile.paper.strictness = Strictness::Strict)
    }

    pub(crate) fn customer(mut self, change: impl FnOnce(&mut Customer)) -> Self {
        change(&mut self.customer);
        self
    }

    /// With a default tax of the customer.
    pub(crate) fn customer_tax(self, rate: &str, treatment: TaxBasis) -> Self {
        let tax = percent(rate);
        self.customer(|customer| {
            customer.profile.taxes = DefaultTaxes::always(StatedTax { rate: Some(tax), basis: treatment });
        })
    }

    /// With a pricing that no product has yet.
    pub(crate) fn pricing(mut self, pricing: Pricing) -> Self {
        self.pricings.push(pricing);
        self
    }

    /// With a product for all of 2027, and its pricing.
    pub(crate) fn product(self, pricing: Pricing, change: impl FnOnce(&mut RequestedProduct)) -> Self {
        let pricing_ref = pricing.pricing_ref.clone();
        let request = RequestedProduct::plain(pricing_ref, date("2027-01-01"), date("2027-12-31"));
        let mut setup =
            if self.pricings.iter().any(|known| known.pricing_ref == pricing.pricing_ref) { self } else { self.pricing(pricing) };
        setup.products.push(request);
        change(setup.products.last_mut().expect("the product"));
        setup
    }

    /// Creates the contract, or says why it can't be.
    pub(crate) fn try_create(self, now: &str) -> Result<Book, Refusal> {
        let mut usage_products = Vec::new();
        for product in self.pricings.iter().flat_map(fixtures::products_of) {
            if !usage_products.contains(&product) {
                usage_products.push(product);
            }
        }
        let catalog = Catalog {
            pricings: self.pricings,
            usage_products,
            entities: self.entities.iter().map(|entity| entity.entity_ref.clone()).collect(),
            default_entity: Some(fixtures::entity_ref("main")),
        };
        let agreed = catalog.agree_all(&self.products)?;
        let products: Vec<ContractProduct> =
            (0..).map(ProductNo).zip(agreed).map(|(no, terms)| ContractProduct::new(no, terms)).collect();
        billing_domain::contract::check_products(&products, |no| Some(usize::from(no.0)))?;
        let contract =
            Contract { products, created_at: at(now), ..fixtures::contract(&CountingIds::new(), &self.customer, Vec::new()) };
        let mut book = Book {
            ledger: ContractBook::new(contract, self.customer, self.entities),
            now: at(now),
            catalog,
            ids: 1_000,
            opened: 0,
            series: BTreeMap::new(),
            issued: BTreeMap::new(),
            events: Vec::new(),
            accounts: BTreeMap::new(),
            rates: self.rates,
        };
        book.decide(|ledger, now, _| terms::create(ledger, Backdated::Allowed, now))?;
        Ok(book)
    }

    pub(crate) fn create(self, now: &str) -> Book {
        self.try_create(now).expect("a contract")
    }
}

/// A usage event as the application keeps it.
struct Event {
    counted: CountedEvent,
    usage_product_ref: UsageProductRef,
    product_no: ProductNo,
    period_start: NaiveDate,
    /// The document its latest change stands on.
    standing: DocumentRef,
    is_deleted: bool,
}

/// A contract's book, and the facts around it that an application stores.
pub(crate) struct Book {
    pub(crate) ledger: ContractBook,
    now: Timestamp,
    catalog: Catalog,
    ids: u128,
    opened: u32,
    series: BTreeMap<(String, DocumentKind), u64>,
    issued: BTreeMap<DocumentRef, IssuedDocument>,
    events: Vec<Event>,
    accounts: BTreeMap<AccountKey, Account>,
    /// The exchange rates that were posted.
    rates: Vec<ExchangeRate>,
}

impl Book {
    /// Moves the clock.
    pub(crate) fn go_to(&mut self, now: &str) -> &mut Self {
        self.now = at(now);
        self
    }

    pub(crate) fn post_exchange_rate(&mut self, to: &str, day: &str, rate: &str) {
        let (from, to) = (fixtures::eur(), fixtures::currency(to));
        self.rates.push(ExchangeRate { from, to, date: date(day), rate: price(rate) });
    }

    /// Runs one decision of the ledger. A refusal leaves the book as it was. Entries are numbered, stored and settled.
    fn decide<T>(
        &mut self,
        decide: impl FnOnce(&mut ContractBook, Timestamp, &mut dyn FnMut() -> Uuid) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.learn();
        let before = self.ledger.clone();
        let now = self.now;
        let mut ids = self.ids;
        let decided = decide(&mut self.ledger, now, &mut || {
            ids += 1;
            Uuid::from_u128(ids)
        });
        self.ids = ids;
        let decided = match decided {
            Ok(decided) => decided,
            Err(refusal) => {
                self.ledger = before;
                return Err(refusal);
            }
        };
        let mut entries = self.ledger.take_entries();
        let (series, opened) = (&mut self.series, &mut self.opened);
        self.ledger.number(&mut entries, |head| {
            let last = series.entry((head.number.prefix.as_str().to_owned(), head.kind)).or_default();
            *last += 1;
            *opened += 1;
            Ok::<_, Refusal>((*last, *opened))
        })?;
        if let Err(refusal) = self.settle(&entries) {
            self.ledger = before;
            return Err(refusal);
        }
        self.store(entries);
        let problems = check::check(&self.ledger)?;
        assert!(problems.is_empty(), "{problems:#?}\n{}", self.dump());
        Ok(decided)
    }

    /// Gives the book what an application reads before a decision.
    fn learn(&mut self) {
        let live = self.events.iter().filter(|event| !event.is_deleted);
        self.ledger.put_events(live.map(|event| event.standing).collect());
        for pair in self.ledger.unknown_exchange_rates(self.now) {
            let known = |rate: &&ExchangeRate| (rate.from, rate.to) == (pair.from, pair.to) && rate.date <= pair.on;
            let rate = self.rates.iter().filter(known).max_by_key(|rate| rate.date).copied();
            self.ledger.learn_exchange_rate(pair, rate);
        }
    }

    fn store(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            match entry {
                Entry::Issued { document_ref, issued } => {
                    let before = self.issued.insert(document_ref, *issued);
                    assert!(before.is_none(), "a document is issued twice");
                }
                Entry::EventsMoved { from, to, of } => {
                    let is_moved = |event: &&mut Event| {
                        event.standing == from
                            && of.is_none_or(|(no, start)| (event.product_no, event.period_start) == (no, start))
                    };
                    self.events.iter_mut().filter(is_moved).for_each(|event| event.standing = to);
                }
                _ => {}
            }
        }
    }

    /// Applies what was issued and voided to the receivables accounts.
    fn settle(&mut self, entries: &[Entry]) -> Result<(), Refusal> {
        let mut affected: BTreeMap<AccountKey, (Vec<Issue>, Vec<DocumentRef>)> = BTreeMap::new();
        for entry in entries {
            let (Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. }) = entry else { continue };
            let document = self.ledger.document(*document_ref).expect("a document of the book").clone();
            let (issued, voided) = affected.entry(AccountKey::of(&document)).or_default();
            match entry {
                Entry::Voided { .. } => voided.push(*document_ref),
                _ => issued.push(Issue { takes_back: self.ledger.takes_back(*document_ref), document }),
            }
        }
        for (key, (issued, voided)) in affected {
            self.on_account(&key, |account, moment, mut ids| {
                for document_ref in voided {
                    account.void(document_ref, moment, &mut ids)?;
                }
                account.issue(issued, moment, &mut ids)
            })?;
        }
        Ok(())
    }

    fn on_account(
        &mut self,
        key: &AccountKey,
        decide: impl FnOnce(&mut Account, &Moment, &mut dyn FnMut() -> Uuid) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut account =
            self.accounts.get(key).cloned().unwrap_or_else(|| Account::new(key.clone(), true, Money::zero(key.currency)));
        let moment = Moment { at: self.now, zone: TimeZone::UTC, by: Actor::Service };
        let mut ids = self.ids;
        decide(&mut account, &moment, &mut || {
            ids += 1;
            Uuid::from_u128(ids)
        })?;
        self.ids = ids;
        account.take_entries()?;
        self.ledger.note_settled(account.documents().filter(|document| document.standing != Standing::Draft));
        self.accounts.insert(key.clone(), account);
        Ok(())
    }

    /// Writes off the amount due of a document.
    pub(crate) fn write_off(&mut self, number: &str) {
        let document = self.named(number).clone();
        let document_ref = document.head.document_ref;
        let written_off = self.on_account(&AccountKey::of(&document), |account, moment, mut ids| {
            account.write_off(document_ref, None, moment, &mut ids)
        });
        written_off.expect("a write-off");
    }

    /// Reports usage, and returns the event's index.
    pub(crate) fn try_event(&mut self, usage: &str, when: &str, amount: &str) -> Result<usize, Refusal> {
        let usage_product_ref = fixtures::usage_product_ref(usage);
        let (no, day, period_start) = self.landing(&usage_product_ref, at(when))?;
        self.ids += 1;
        let event_ref = EventRef::from_uuid(Uuid::from_u128(self.ids));
        let counted = CountedEvent { event_ref, occurred_at: at(when), service_date: day, quantity: quantity(amount) };
        let standing = self.decide(|ledger, now, mut ids| {
            let standing = post::add(ledger, no, &usage_product_ref, &[counted], now, &mut ids)?;
            issue::remind(ledger, now)?;
            Ok(standing)
        })?;
        self.events.push(Event { counted, usage_product_ref, product_no: no, period_start, standing, is_deleted: false });
        Ok(self.events.len() - 1)
    }

    /// Reports usage of `calls`.
    pub(crate) fn event(&mut self, when: &str, amount: &str) -> usize {
        self.try_event("calls", when, amount).expect("an event")
    }

    /// Returns where usage lands: the product, the service date and the first day of its service period.
    fn landing(&self, usage: &UsageProductRef, at: Timestamp) -> Result<(ProductNo, NaiveDate, NaiveDate), Refusal> {
        let facts = EventFacts { usage_product_ref: usage, occurred_at: at, validations: None };
        let contracts = [(*self.ledger.contract).clone()];
        let found = match_event(facts, &contracts, &self.ledger.entities)?;
        Ok((found.period.product_no, found.service_date, found.period.start()))
    }

    /// Returns where an event with another timestamp lands.
    fn new_landing(&self, event: usize, at: Timestamp) -> Result<(ProductNo, NaiveDate, NaiveDate), Refusal> {
        let event = &self.events[event];
        let facts = EventFacts { usage_product_ref: &event.usage_product_ref, occurred_at: at, validations: None };
        let contracts = [(*self.ledger.contract).clone()];
        let present = (self.ledger.contract.contract_ref, event.product_no);
        let found = match_moved_event(facts, present, &contracts, &self.ledger.entities)?;
        Ok((found.period.product_no, found.service_date, found.period.start()))
    }

    fn key(&self, event: usize) -> UsageKey {
        let event = &self.events[event];
        UsageKey {
            contract_ref: self.ledger.contract.contract_ref,
            product_no: event.product_no,
            period_start: event.period_start,
            usage_product_ref: event.usage_product_ref.clone(),
        }
    }

    /// Returns the running total of an event's service period without the event.
    fn without(&self, event: usize) -> UsageTotal {
        let key = self.key(event);
        let others = (0..self.events.len()).filter(|i| *i != event && !self.events[*i].is_deleted && self.key(*i) == key);
        others.fold(UsageTotal::ZERO, |total, i| total.plus(self.events[i].counted).expect("in range"))
    }

    /// Changes an event's timestamp, its quantity or both.
    pub(crate) fn update_event(&mut self, event: usize, when: Option<&str>, amount: Option<&str>) -> Result<(), Refusal> {
        let present = &self.events[event];
        let (no, day, period_start) = match when {
            Some(when) => self.new_landing(event, at(when))?,
            None => (present.product_no, present.counted.service_date, present.period_start),
        };
        let counted = CountedEvent {
            occurred_at: when.map_or(present.counted.occurred_at, at),
            service_date: day,
            quantity: amount.map_or(present.counted.quantity, quantity),
            ..present.counted
        };
        let (key, without, standing) = (self.key(event), self.without(event), present.standing);
        let stays = (no, period_start) == (key.product_no, key.period_start);
        let standing = self.decide(|ledger, now, mut ids| {
            let standing = if stays {
                post::change(ledger, &key, without, Some(counted), standing, now, &mut ids)?
            } else {
                post::change(ledger, &key, without, None, standing, now, &mut ids)?;
                post::add(ledger, no, &key.usage_product_ref, &[counted], now, &mut ids)?
            };
            issue::remind(ledger, now)?;
            Ok(standing)
        })?;
        let present = &mut self.events[event];
        (present.counted, present.product_no, present.period_start, present.standing) = (counted, no, period_start, standing);
        Ok(())
    }

    pub(crate) fn delete_event(&mut self, event: usize) -> Result<(), Refusal> {
        let (key, without, standing) = (self.key(event), self.without(event), self.events[event].standing);
        self.decide(|ledger, now, mut ids| {
            post::change(ledger, &key, without, None, standing, now, &mut ids)?;
            issue::remind(ledger, now)
        })?;
        self.events[event].is_deleted = true;
        Ok(())
    }

    fn occasion(&self, issue: bool) -> Occasion {
        Occasion { now: self.now, by: Actor::Service, issue }
    }

    /// Records a charge in the usage of a day's period under a reference.
    pub(crate) fn charge(&mut self, reference: &str, day: &str, unit_price: &str, issue: bool) -> Result<(), Refusal> {
        self.charge_with(BillWith::Usage, reference, day, unit_price, issue)
    }

    /// Records a charge beside the usage or the fixed items of a day's period.
    pub(crate) fn charge_with(
        &mut self,
        bill_with: BillWith,
        reference: &str,
        day: &str,
        unit_price: &str,
        issue: bool,
    ) -> Result<(), Refusal> {
        let new = NewCharge {
            charge_ref: Some(ChargeRef::parse(reference).expect(reference)),
            product_pricing_ref: None,
            date: date(day),
            name: line("Charged"),
            quantity: quantity("1"),
            unit_price: SignedPrice::parse(unit_price).expect(unit_price),
            unit: None,
            bill_with,
            discountable: false,
            note: None,
            reason: None,
        };
        let occasion = self.occasion(issue);
        self.decide(|ledger, now, mut ids| {
            charge::record(ledger, new, occasion, &mut ids)?;
            issue::remind(ledger, now)
        })
    }

    fn charge_of(&self, reference: &str) -> billing_domain::charge::Charge {
        let found = self.ledger.charges().live().find(|charge| charge.charge_ref.as_str() == reference);
        found.expect("a live charge").clone()
    }

    /// Gives a charge another unit price.
    pub(crate) fn edit_charge(&mut self, reference: &str, unit_price: &str) -> Result<(), Refusal> {
        let edit = ChargeEdit { unit_price: SignedPrice::parse(unit_price).ok(), ..ChargeEdit::default() };
        let (present, occasion) = (self.charge_of(reference), self.occasion(false));
        self.decide(|ledger, _, mut ids| charge::change(ledger, &present, &edit, occasion, &mut ids).map(drop))
    }

    pub(crate) fn delete_charge(&mut self, reference: &str) -> Result<(), Refusal> {
        let (present, occasion) = (self.charge_of(reference), self.occasion(false));
        self.decide(|ledger, _, mut ids| charge::delete(ledger, &present, occasion, &mut ids).map(drop))
    }

    /// Edits the contract: the new full list of products.
    pub(crate) fn edit(&mut self, since: Since, products: Vec<ProductPatch>) -> Result<(), Refusal> {
        let edit = ContractEdit { po_number: Patch::Keep, products: Some(products), since, version: None };
        let catalog = self.catalog.clone();
        self.decide(|ledger, now, mut ids| terms::edit(ledger, &edit, &catalog, Backdated::Allowed, now, &mut ids))
    }

    pub(crate) fn cancel(&mut self, last_day: LastDay) -> Result<(), Refusal> {
        self.decide(|ledger, now, mut ids| terms::cancel(ledger, last_day, Backdated::Allowed, now, &mut ids))
    }

    pub(crate) fn cancel_on(&mut self, last_day: &str) -> Result<(), Refusal> {
        self.cancel(LastDay::Day(date(last_day)))
    }

    pub(crate) fn resume(&mut self) -> Result<(), Refusal> {
        self.decide(|ledger, now, mut ids| terms::resume(ledger, Backdated::Allowed, now, &mut ids))
    }

    /// Moves the clock and issues what is due.
    pub(crate) fn try_run(&mut self, now: &str) -> Result<(), Refusal> {
        self.now = if now.len() == 10 { fixtures::at(&format!("{now}T00:00:00Z")) } else { at(now) };
        self.decide(|ledger, now, mut ids| issue::run(ledger, now, usize::MAX, &mut ids).map(drop))
    }

    /// Runs at the beginning of a day, or at an instant.
    pub(crate) fn run(&mut self, now: &str) -> &mut Self {
        self.try_run(now).expect("a run");
        self
    }

    /// Runs at the beginning of each of these days.
    pub(crate) fn run_on<const N: usize>(&mut self, days: [&str; N]) {
        for day in days {
            self.run(day);
        }
    }

    /// Issues a draft by hand.
    pub(crate) fn issue(&mut self, number: &str) -> Result<(), Refusal> {
        let document_ref = self.named(number).head.document_ref;
        self.decide(|ledger, now, mut ids| issue::issue(ledger, document_ref, now, &mut ids).map(drop))
    }

    /// Replaces the customer's default tax from today on; where there was none, from the beginning.
    pub(crate) fn edit_customer_tax(&mut self, rate: &str, treatment: TaxBasis) {
        self.set_customer_tax(rate, treatment, None);
    }

    /// Replaces the customer's default tax from a day on.
    pub(crate) fn edit_customer_tax_from(&mut self, rate: &str, treatment: TaxBasis, from: &str) {
        self.set_customer_tax(rate, treatment, Some(date(from)));
    }

    fn set_customer_tax(&mut self, rate: &str, basis: TaxBasis, from: Option<NaiveDate>) {
        let today = self.ledger.entities[0].profile.time_zone.service_date(self.now);
        let profile = &mut self.ledger.customer.profile;
        profile.taxes = profile.taxes.with(StatedTax { rate: Some(percent(rate)), basis }, from, today);
    }

    /// Runs, and lists what couldn't be issued: the first day of its period, and why.
    pub(crate) fn run_failures(&mut self, now: &str) -> Vec<String> {
        self.go_to(now);
        let run = self.decide(|ledger, now, mut ids| issue::run(ledger, now, usize::MAX, &mut ids)).expect("a run");
        run.failed.iter().map(|failure| format!("{} {}", failure.period_start, code(&failure.refusal))).collect()
    }

    /// What has been due for a day, and why it isn't issued.
    pub(crate) fn overdue(&mut self, now: &str) -> Vec<String> {
        self.go_to(now);
        let newest_version_at = self.ledger.contract.created_at;
        let overdue = overdue::overdue(&self.ledger, newest_version_at, self.now).expect("a book that can be read");
        let reason = |overdue: &overdue::Overdue| overdue.reason.as_ref().map_or("", code);
        overdue.iter().map(|overdue| format!("{} {}", overdue.period_start, reason(overdue)).trim_end().to_owned()).collect()
    }

    pub(crate) fn edit_entity(&mut self, reference: &str, change: impl FnOnce(&mut Entity)) {
        let entity = self.ledger.entities.iter_mut().find(|entity| entity.entity_ref.as_str() == reference);
        change(entity.expect("an entity"));
    }

    /// Returns what `invoices/current` answers, like [`Self::documents`]; a document that isn't opened has its kind for a
    /// number.
    pub(crate) fn preview_current(&mut self) -> Result<Vec<String>, Refusal> {
        self.learn();
        view::current(&self.ledger, self.now).map(|shown| self.previewed(&shown))
    }

    /// Returns what `invoices/next` answers.
    pub(crate) fn preview_next(&mut self) -> Result<Vec<String>, Refusal> {
        self.learn();
        view::next(&self.ledger, self.now).map(|shown| self.previewed(&shown))
    }

    fn previewed(&self, shown: &[Shown]) -> Vec<String> {
        let text = |shown: &Shown| {
            let total = shown.content.as_ref().map(|draft| draft.content.total).or(shown.document.total);
            let total = total.map_or_else(String::new, |total| total.to_decimal().to_string());
            if shown.is_opened {
                format!("{} {total} {}", self.number(&shown.document), standing(shown.document.standing))
            } else {
                format!("{} {total}", kind(shown.document.head.kind))
            }
        };
        shown.iter().map(text).collect()
    }

    /// Returns a document's number: without the prefix of `main`.
    fn number(&self, document: &BookDocument) -> String {
        let number = document.head.number.to_string();
        number.strip_prefix("MAIN-").map_or_else(|| number.clone(), str::to_owned)
    }

    fn named(&self, number: &str) -> &BookDocument {
        let found = self.ledger.documents().find(|document| self.number(document) == number);
        found.unwrap_or_else(|| panic!("no document {number}:\n{}", self.dump()))
    }

    /// Returns what a document says: as issued, or as of now.
    pub(crate) fn content(&self, document: &BookDocument) -> DocumentContent {
        match self.issued.get(&document.head.document_ref) {
            Some(issued) => issued.content.clone(),
            None => self.ledger.content(document.head.document_ref).expect("a draft's content"),
        }
    }

    /// Returns all documents in the order of opening, such as `CRD-1 10.00 ISSUED of INV-1`; one that is VOID has no amount.
    pub(crate) fn documents(&self) -> Vec<String> {
        self.ledger.documents().map(|document| self.describe(document)).collect()
    }

    fn describe(&self, document: &BookDocument) -> String {
        let parent = document.head.parent.and_then(|parent| self.ledger.document(parent));
        let parent = parent.map_or_else(String::new, |parent| format!(" of {}", self.number(parent)));
        let amount =
            if document.standing.is_void() { String::new() } else { format!(" {}", self.content(document).total.to_decimal()) };
        format!("{}{amount} {}{parent}", self.number(document), standing(document.standing))
    }

    /// Returns the sum of the totals of issued documents.
    pub(crate) fn owed(&self) -> String {
        self.total_of(|document| document.standing.is_issued())
    }

    /// Returns the sum of the totals of issued documents and drafts.
    pub(crate) fn billed(&self) -> String {
        self.total_of(|document| !document.standing.is_void())
    }

    fn total_of(&self, counts: impl Fn(&BookDocument) -> bool) -> String {
        let totals = self.ledger.documents().filter(|document| counts(document));
        let minor = totals.map(|document| sign(document.head.kind) * self.content(document).total.minor()).sum();
        Money::from_minor(minor, fixtures::eur()).to_decimal().to_string()
    }

    /// Returns the lines of a document that aren't zero: line item, first day of the service period, amount.
    pub(crate) fn lines(&self, number: &str) -> Vec<String> {
        let content = self.content(self.named(number));
        let lines = content.products.iter().flat_map(|product| &product.lines).filter(|line| line.amount.minor() != 0);
        let text = |line: &billing_domain::document::lines::DocumentLine| {
            let id = line.line_item_id.as_ref().map_or("minimum fee", |id| id.as_str());
            format!("{id} {} {}", line.period_start, line.amount.to_decimal())
        };
        lines.map(text).collect()
    }

    /// Returns the taxes of a document whose base isn't zero: rate, category, base, amount.
    pub(crate) fn taxes(&self, number: &str) -> Vec<String> {
        let content = self.content(self.named(number));
        let taxes = content.taxes.iter().filter(|tax| tax.base.minor() != 0);
        let text = |tax: &billing_domain::document::totals::Tax| {
            let category =
                tax.treatment.basis.category.map_or_else(|| "-".to_owned(), |category| format!("{category:?}").to_uppercase());
            format!(
                "{} {category} {} {}",
                tax.treatment.rate.as_decimal().normalize(),
                tax.base.to_decimal(),
                tax.amount.to_decimal()
            )
        };
        taxes.map(text).collect()
    }

    /// Returns the numbers of the documents that an issued document names as corrected.
    pub(crate) fn corrects(&self, number: &str) -> Vec<String> {
        let issued = &self.issued[&self.named(number).head.document_ref];
        let corrected = issued.paper.iter().flat_map(|paper| [&paper.corrects, &paper.corrects_last]).flatten();
        let number = |corrected: &billing_domain::document::paper::Corrected| {
            let number = corrected.number.to_string();
            number.strip_prefix("MAIN-").map_or_else(|| number.clone(), str::to_owned)
        };
        corrected.map(number).collect()
    }

    /// Returns what the law asks for that an issued document doesn't say.
    pub(crate) fn missing(&self, number: &str) -> Vec<String> {
        let issued = &self.issued[&self.named(number).head.document_ref];
        missing(&issued.parties, issued.paper.as_deref(), &issued.content)
    }

    /// Returns the amount due of a document.
    pub(crate) fn due(&self, number: &str) -> String {
        let owed = self.settled(number).owed().expect("small amounts");
        owed.amount_due.map_or_else(|| "-".to_owned(), |due| due.to_decimal().to_string())
    }

    /// Returns the amount of a document that is written off.
    pub(crate) fn written_off(&self, number: &str) -> String {
        self.settled(number).owed().expect("small amounts").written_off.to_decimal().to_string()
    }

    fn settled(&self, number: &str) -> &BookDocument {
        let document = self.named(number);
        let account = &self.accounts[&AccountKey::of(document)];
        let settled = account.documents().find(|settled| settled.head.document_ref == document.head.document_ref);
        settled.expect("a document of its account")
    }

    /// Returns which documents carry an event's service period's usage of its line item.
    pub(crate) fn standing_of(&self, event: usize) -> String {
        let standing = self.ledger.document(self.events[event].standing).expect("a document of the book");
        self.number(standing)
    }

    /// Describes every document with its lines.
    pub(crate) fn dump(&self) -> String {
        let text = |document: &BookDocument| {
            let lines = if document.standing.is_void() { Vec::new() } else { self.lines(&self.number(document)) };
            format!("{} {lines:?}", self.describe(document))
        };
        self.ledger.documents().map(text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the documents that aren't void by number.
    pub(crate) fn numbers(&self) -> BTreeSet<String> {
        let in_force = self.ledger.documents().filter(|document| !document.standing.is_void());
        in_force.map(|document| self.number(document)).collect()
    }
}

const fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Draft => "DRAFT",
        Standing::Issued => "ISSUED",
        Standing::Uncollectible => "UNCOLLECTIBLE",
        Standing::Void | Standing::Discarded => "VOID",
    }
}

const fn kind(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Invoice => "INVOICE",
        DocumentKind::Credit => "CREDIT",
        DocumentKind::Debit => "DEBIT",
    }
}
