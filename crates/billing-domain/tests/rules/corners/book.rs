//! A driver of a simulation for the edge case tests. Each method is a step.

use std::collections::BTreeSet;

use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::catalog::{PriceModel, Pricing, UsagePrice};
use billing_domain::contract::amendment::{ContractEdit, EffectiveFrom, ProductPatch, TaxTreatmentPatch};
use billing_domain::contract::terms::{RequestedLineItem, RequestedProduct};
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, LifecycleStatus};
use billing_domain::ledger::overdue::Overdue;
use billing_domain::party::legal::{Strictness, VatId};
use billing_domain::party::{Customer, CustomerProfile, Entity, EntityProfile};
use billing_domain::patch::Patch;
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{
    Bill, PriceList, SimulatedDocument, Simulation, StepBuilder, Terms, charge, customer, default_tax, entity,
};
use billing_domain::tax::{DefaultTaxes, StatedTax, TaxBasis, TaxCategory};
use billing_testkit::{CountingIds, fixtures};
use chrono::NaiveDate;
use fixtures::{date, line, percent, price};

/// Parses an instant. A day without a time means noon in UTC.
pub(crate) fn at(text: &str) -> Timestamp {
    if text.len() == 10 { fixtures::at(&format!("{text}T12:00:00Z")) } else { fixtures::at(text) }
}

/// Returns the code that the API returns for a refusal.
pub(crate) fn code(refusal: &Refusal) -> &'static str {
    refusal.codes().first().unwrap_or_else(|| panic!("{refusal}"))
}

/// Returns a tax category, with a reason if the category needs one.
pub(crate) fn treatment(category: TaxCategory) -> TaxBasis {
    let reason = category.needs_reason().then(|| line("As agreed"));
    TaxBasis { category: Some(category), exemption_code: None, exemption_reason: reason }
}

/// Returns the treatment of [`treatment`] for an element of an edit.
pub(crate) fn treatment_patch(category: TaxCategory) -> TaxTreatmentPatch {
    let treatment = treatment(category);
    TaxTreatmentPatch {
        category: Patch::Set(category),
        exemption_code: Patch::Clear,
        exemption_reason: treatment.exemption_reason.map_or(Patch::Clear, Patch::Set),
    }
}

/// Returns an element of an edit's `products`.
pub(crate) fn element(pricing: &str, change: impl FnOnce(&mut ProductPatch)) -> ProductPatch {
    let mut element = ProductPatch::of(fixtures::pricing_ref(pricing));
    change(&mut element);
    element
}

/// Returns a line item of an element with another unit price.
pub(crate) fn repriced(id: &str, unit_price: &str) -> RequestedLineItem {
    let model = PriceModel::Metered(UsagePrice::PerUnit { unit_price: price(unit_price) });
    RequestedLineItem { price: Patch::Set(model), ..RequestedLineItem::plain(fixtures::line_item_id(id)) }
}

/// Returns a day as the effective date of an edit.
pub(crate) fn from(day: &str) -> EffectiveFrom {
    EffectiveFrom::Day(date(day))
}

/// The input of a contract: entity `main` in UTC without grace hours, and customer `acme` without defaults.
pub(crate) struct Setup {
    entities: Vec<Entity>,
    customer: Customer,
    pricings: Vec<Pricing>,
    products: Vec<RequestedProduct>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let mut customer = fixtures::customer(&CountingIds::new(), "acme");
        customer.profile.legal_name = Some(line("Acme Inc."));
        customer.profile.billing_address = Some(fixtures::full_address());
        customer.profile.entity_ref = Some(fixtures::entity_ref("main"));
        let setup = Self { entities: Vec::new(), customer, pricings: Vec::new(), products: Vec::new() };
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

    /// Makes entity `main` issue only complete documents.
    pub(crate) fn strict(self) -> Self {
        self.entity("main", |main| main.profile.paper.strictness = Strictness::Strict)
    }

    /// Sets the customer's default tax.
    pub(crate) fn customer_tax(mut self, rate: &str, treatment: TaxBasis) -> Self {
        self.customer.profile.taxes = DefaultTaxes::always(StatedTax { rate: Some(percent(rate)), basis: treatment });
        self
    }

    /// Adds a pricing that no product uses yet.
    pub(crate) fn pricing(mut self, pricing: Pricing) -> Self {
        self.pricings.push(pricing);
        self
    }

    /// Adds a product for all of 2027, and its pricing.
    pub(crate) fn product(self, pricing: Pricing, change: impl FnOnce(&mut RequestedProduct)) -> Self {
        let pricing_ref = pricing.pricing_ref.clone();
        let mut request = RequestedProduct::plain(pricing_ref, date("2027-01-01"), date("2027-12-31"));
        change(&mut request);
        let mut setup =
            if self.pricings.iter().any(|known| known.pricing_ref == pricing.pricing_ref) { self } else { self.pricing(pricing) };
        setup.products.push(request);
        setup
    }

    /// Creates the contract, or returns the refusal.
    pub(crate) fn try_create(self, now: &str) -> Result<Book, Refusal> {
        let profile = self.customer.profile;
        let mut simulation = Simulation::new()
            .customer(customer().with(move |customer| customer.clone_from(&profile)))
            .created(at(now))
            .allow_backdated()
            .without_runs();
        for Entity { entity_ref, profile, .. } in self.entities {
            simulation = simulation.entity(entity(entity_ref).with(move |entity| entity.clone_from(&profile)));
        }
        for pricing in self.pricings {
            let usage_products = fixtures::products_of(&pricing);
            simulation = simulation.pricing(PriceList::of(pricing, usage_products));
        }
        for request in self.products {
            simulation = simulation.contract(Terms::of(request));
        }
        let bill = simulation.until(at(now))?;
        Ok(Book { simulation, bill, now: at(now), events: 0 })
    }

    pub(crate) fn create(self, now: &str) -> Book {
        self.try_create(now).expect("a contract")
    }
}

/// A simulation and its state after the last step.
pub(crate) struct Book {
    simulation: Simulation,
    bill: Bill,
    now: Timestamp,
    /// The number of reported events. Each event is named by its index.
    events: usize,
}

impl Book {
    /// Moves the clock.
    pub(crate) fn go_to(&mut self, now: &str) -> &mut Self {
        self.now = at(now);
        self.look();
        self
    }

    /// Runs a step now. A refused step changes nothing.
    fn step(&mut self, step: impl FnOnce(StepBuilder) -> Simulation) -> Result<(), Refusal> {
        let next = step(self.simulation.clone().on(self.now).allow_backdated());
        self.bill = next.until(self.now)?;
        self.simulation = next;
        Ok(())
    }

    /// Updates the state to the present time.
    fn look(&mut self) {
        self.bill = self.simulation.until(self.now).expect("accepted steps");
    }

    pub(crate) fn post_exchange_rate(&mut self, to: &str, day: &str, rate: &str) {
        self.step(|step| step.post_exchange_rate(("EUR", to), day, rate)).expect("an exchange rate");
    }

    /// Writes off the amount due of a document.
    pub(crate) fn write_off(&mut self, number: &str) {
        self.step(|step| step.write_off(&whole(number))).expect("a write-off");
    }

    /// Reports usage and returns the event's index.
    pub(crate) fn try_event(&mut self, usage: &str, when: &str, amount: &str) -> Result<usize, Refusal> {
        let name = self.events.to_string();
        self.step(|step| step.event(at(when), usage, amount).named(&name))?;
        self.events += 1;
        Ok(self.events - 1)
    }

    /// Reports usage of `calls`.
    pub(crate) fn event(&mut self, when: &str, amount: &str) -> usize {
        self.try_event("calls", when, amount).expect("an event")
    }

    /// Changes an event's timestamp, its quantity or both.
    pub(crate) fn update_event(&mut self, event: usize, when: Option<&str>, amount: Option<&str>) -> Result<(), Refusal> {
        self.step(|step| {
            step.update_event(&event.to_string(), |event| {
                let event = when.map_or(event.clone(), |when| event.at(at(when)));
                amount.map_or(event.clone(), |amount| event.quantity(amount))
            })
        })
    }

    pub(crate) fn delete_event(&mut self, event: usize) -> Result<(), Refusal> {
        self.step(|step| step.delete_event(&event.to_string()))
    }

    /// Records a charge beside the usage of a day's period under a reference.
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
        let charge = charge(reference, day, unit_price);
        let charge = if bill_with == BillWith::Fixed { charge.with_fixed_items() } else { charge };
        let charge = if issue { charge.issued_at_once() } else { charge };
        self.step(|step| step.charge(charge))
    }

    /// Changes the unit price of a charge.
    pub(crate) fn edit_charge(&mut self, reference: &str, unit_price: &str) -> Result<(), Refusal> {
        self.step(|step| step.edit_charge(reference, |charge| charge.unit_price(unit_price)))
    }

    pub(crate) fn delete_charge(&mut self, reference: &str) -> Result<(), Refusal> {
        self.step(|step| step.delete_charge(reference))
    }

    /// Edits the contract with the new full list of products.
    pub(crate) fn edit(&mut self, since: EffectiveFrom, products: Vec<ProductPatch>) -> Result<(), Refusal> {
        let edit = ContractEdit { po_number: Patch::Keep, metadata: Patch::Keep, products: Some(products), since, version: None };
        self.step(|step| step.edit_as(edit))
    }

    /// Changes the contract's metadata.
    pub(crate) fn edit_metadata(&mut self, value: &str) {
        let metadata = Patch::Set(fixtures::metadata(&[("key", value)]));
        let since = EffectiveFrom::NextPeriod;
        let edit = ContractEdit { po_number: Patch::Keep, metadata, products: None, since, version: None };
        self.step(|step| step.edit_as(edit)).expect("an edit of metadata");
    }

    /// Replaces a pricing of the catalog.
    pub(crate) fn edit_pricing(&mut self, pricing: Pricing) {
        let usage_products = fixtures::products_of(&pricing);
        self.step(|step| step.edit_pricing(PriceList::of(pricing, usage_products))).expect("an edit of a pricing");
    }

    pub(crate) fn cancel_on(&mut self, last_day: &str) -> Result<(), Refusal> {
        self.step(|step| step.cancel_on(last_day))
    }

    pub(crate) fn resume(&mut self) -> Result<(), Refusal> {
        self.step(StepBuilder::resume)
    }

    /// Moves the clock and issues the due documents.
    pub(crate) fn try_run(&mut self, now: &str) -> Result<(), Refusal> {
        self.now = if now.len() == 10 { fixtures::at(&format!("{now}T00:00:00Z")) } else { at(now) };
        self.step(StepBuilder::run)
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
        self.step(|step| step.issue(&whole(number)))
    }

    /// Voids an issued document.
    pub(crate) fn void(&mut self, number: &str) {
        self.step(|step| step.void(&whole(number))).expect("a document that can be voided");
    }

    /// Replaces the customer's default tax from today on, or from the beginning if the customer had no default.
    pub(crate) fn edit_customer_tax(&mut self, rate: &str, treatment: TaxBasis) {
        self.set_customer_tax(rate, treatment, None);
    }

    /// Replaces the customer's default tax from a day on.
    pub(crate) fn edit_customer_tax_from(&mut self, rate: &str, treatment: TaxBasis, from: &str) {
        self.set_customer_tax(rate, treatment, Some(date(from)));
    }

    fn set_customer_tax(&mut self, rate: &str, basis: TaxBasis, from: Option<NaiveDate>) {
        let tax = default_tax(rate);
        let reason = basis.exemption_reason.as_ref().map(|reason| reason.as_str());
        let tax = basis.category.map_or(tax.clone(), |category| tax.category(category, reason));
        let tax = from.map_or(tax.clone(), |day| tax.from_day(day));
        self.step(|step| step.edit_customer(customer().tax(tax))).expect("a default tax");
    }

    /// Runs and lists the documents that could not be issued: the first day of the period and the code.
    pub(crate) fn run_failures(&mut self, now: &str) -> Vec<String> {
        self.now = at(now);
        self.step(StepBuilder::run).expect("a run");
        let failed = self.bill.failures().iter();
        failed.map(|failure| format!("{} {}", failure.period.start(), code(&failure.refusal))).collect()
    }

    /// Lists the documents that are due for more than a day: the first day of the period and the code.
    pub(crate) fn overdue(&mut self, now: &str) -> Vec<String> {
        self.go_to(now);
        let overdue = self.bill.overdue().expect("a book that can be read");
        let reason = |overdue: &Overdue| overdue.reason.as_ref().map_or("", code);
        overdue.iter().map(|overdue| format!("{} {}", overdue.period_start, reason(overdue)).trim_end().to_owned()).collect()
    }

    pub(crate) fn edit_entity(&mut self, reference: &str, change: impl Fn(&mut EntityProfile) + Send + Sync + 'static) {
        self.step(|step| step.edit_entity(entity(reference).with(change))).expect("an edit");
    }

    /// Returns the result of `invoices/current`, like [`Self::documents`]. A document that is not opened has its kind instead of
    /// a number.
    pub(crate) fn preview_current(&mut self) -> Result<Vec<String>, Refusal> {
        self.bill.preview_current().map(|shown| shown.iter().map(previewed).collect())
    }

    /// Returns the result of `invoices/next`.
    pub(crate) fn preview_next(&mut self) -> Result<Vec<String>, Refusal> {
        self.bill.preview_next().map(|shown| shown.iter().map(previewed).collect())
    }

    /// Returns the days and the discount in percent of each period of the first product.
    pub(crate) fn periods(&self) -> Vec<(String, String)> {
        let periods = self.bill.contract().products[0].periods();
        let discount = |terms: &billing_domain::contract::terms::ProductTerms| {
            terms.discount.map_or_else(|| "0".to_owned(), |discount| discount.as_decimal().normalize().to_string())
        };
        periods.map(|period| (period.days().to_string(), discount(period.terms))).collect()
    }

    /// Removes the customer's default tax from today on.
    pub(crate) fn pause_customer_tax(&mut self) {
        let today = TimeZone::UTC.service_date(self.now);
        let none = move |profile: &mut CustomerProfile| profile.taxes = profile.taxes.with(StatedTax::default(), None, today);
        self.step(|step| step.edit_customer(customer().with(none))).expect("no default tax");
    }

    /// Moves a charge to another day.
    pub(crate) fn move_charge(&mut self, reference: &str, day: &str) -> Result<(), Refusal> {
        self.step(|step| step.edit_charge(reference, |charge| charge.date(day)))
    }

    fn named(&self, number: &str) -> &SimulatedDocument {
        self.bill.document(&whole(number))
    }

    /// Returns all documents in the order of opening, such as `CRD-1 10.00 ISSUED of INV-1`. A VOID document has no amount.
    pub(crate) fn documents(&self) -> Vec<String> {
        self.bill.all_documents().into_iter().map(describe).collect()
    }

    /// Returns the sum of the totals of issued documents.
    pub(crate) fn owed(&self) -> String {
        self.bill.owed().to_decimal().to_string()
    }

    /// Returns the sum of the totals of issued documents and drafts.
    pub(crate) fn billed(&self) -> String {
        let [.., total] = self.bill.sums();
        total
    }

    /// Returns the nonzero lines of a document: line item, first day of the service period, amount.
    pub(crate) fn lines(&self, number: &str) -> Vec<String> {
        lines(self.named(number))
    }

    /// Returns the taxes of a document with a nonzero base: rate, category, base, amount.
    pub(crate) fn taxes(&self, number: &str) -> Vec<String> {
        let taxes = self.named(number).content.taxes.iter().filter(|tax| tax.base.minor() != 0);
        let text = |tax: &billing_domain::document::totals::Tax| {
            let category =
                tax.treatment.basis.category.map_or_else(|| "-".to_owned(), |category| format!("{category:?}").to_uppercase());
            let rate = tax.treatment.rate.as_decimal().normalize();
            format!("{rate} {category} {} {}", tax.base.to_decimal(), tax.amount.to_decimal())
        };
        taxes.map(text).collect()
    }

    /// Returns the period of a document and the days of its lines.
    pub(crate) fn days_of(&self, number: &str) -> Vec<String> {
        let document = self.named(number);
        let lines = document.lines().map(|line| line.days().to_string());
        [document.period.to_string()].into_iter().chain(lines).collect()
    }

    /// Returns the exchange rate of a document's tax and the converted tax.
    pub(crate) fn tax_in_currency(&self, number: &str) -> String {
        let converted = self.named(number).tax_in_currency().expect("a converted tax");
        format!("{} {}", converted.rate.rate.as_decimal(), converted.total)
    }

    /// Returns the numbers of the documents that an issued document names as corrected.
    pub(crate) fn corrects(&self, number: &str) -> Vec<String> {
        self.named(number).corrects().iter().map(|number| short(number)).collect()
    }

    /// Returns the legal information that an issued document lacks.
    pub(crate) fn missing(&self, number: &str) -> Vec<String> {
        self.named(number).missing()
    }

    /// Returns the amount due of a document.
    pub(crate) fn due(&self, number: &str) -> String {
        self.named(number).amount_due().map_or_else(|| "-".to_owned(), |due| due.to_decimal().to_string())
    }

    /// Returns the written-off amount of a document.
    pub(crate) fn written_off(&self, number: &str) -> String {
        self.named(number).written_off().expect("small amounts").to_decimal().to_string()
    }

    /// Returns the number of the document that has an event's latest change.
    pub(crate) fn standing_of(&self, event: usize) -> String {
        short(&self.bill.document_of_event(&event.to_string()).number.to_string())
    }

    /// Describes every document with its lines.
    pub(crate) fn dump(&self) -> String {
        let text = |document: &SimulatedDocument| {
            let lines = if document.status.is_void() { Vec::new() } else { lines(document) };
            format!("{} {lines:?}", describe(document))
        };
        self.bill.all_documents().into_iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the numbers of the documents that are not void.
    pub(crate) fn numbers(&self) -> BTreeSet<String> {
        self.bill.documents().iter().map(|document| short(&document.number.to_string())).collect()
    }
}

/// Returns a number without the prefix of `main`.
fn short(number: &str) -> String {
    number.strip_prefix("MAIN-").unwrap_or(number).to_owned()
}

/// Returns a number with the prefix of `main`, unless the number has another prefix.
fn whole(number: &str) -> String {
    if number.matches('-').count() == 1 { format!("MAIN-{number}") } else { number.to_owned() }
}

fn lines(document: &SimulatedDocument) -> Vec<String> {
    let lines = document.lines().filter(|line| line.amount().minor() != 0);
    lines.map(|line| format!("{} {} {}", line.name(), line.details().period_start, line.amount().to_decimal())).collect()
}

fn describe(document: &SimulatedDocument) -> String {
    let parent = document.parent().map_or_else(String::new, |parent| format!(" of {}", short(&parent)));
    let is_void = document.status.is_void();
    let amount = if is_void { String::new() } else { format!(" {}", document.total().to_decimal()) };
    format!("{}{amount} {}{parent}", short(&document.number.to_string()), status(document.status))
}

fn previewed(document: &SimulatedDocument) -> String {
    let total = document.total().to_decimal();
    if document.is_opened() {
        format!("{} {total} {}", short(&document.number.to_string()), status(document.status))
    } else {
        format!("{} {total}", kind(document.kind()))
    }
}

const fn status(status: LifecycleStatus) -> &'static str {
    match status {
        LifecycleStatus::Draft => "DRAFT",
        LifecycleStatus::Issued => "ISSUED",
        LifecycleStatus::Uncollectible => "UNCOLLECTIBLE",
        LifecycleStatus::Void | LifecycleStatus::Discarded => "VOID",
    }
}

const fn kind(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Invoice => "INVOICE",
        DocumentKind::Credit => "CREDIT",
        DocumentKind::Debit => "DEBIT",
    }
}
