//! Plays a history through the ledger and through the model. This module has all calls of the ledger.

#[path = "world_labels.rs"]
mod labels;

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::charge::{ChargeEdit, NewCharge};
use billing_domain::contract::ContractProduct;
use billing_domain::contract::resolve;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::lines::{BillWith, DocumentLine};
use billing_domain::document::totals::{BilledProduct, DocumentContent};
use billing_domain::document::{BookDocument, DocumentKind, LifecycleStatus, Purpose};
use billing_domain::ledger::amend::BackdatingPolicy;
use billing_domain::ledger::charge::{self, ChargeContext};
use billing_domain::ledger::preview::DocumentPreview;
use billing_domain::ledger::{ContractBook, Entry, amend, check, issue, overdue, post, preview};
use billing_domain::matching::{match_changed_event, match_event};
use billing_domain::patch::Patch;
use billing_domain::refs::{ChargeRef, DocumentRef, EventRef, ProductNo};
use billing_domain::refusal::Refusal;
use billing_domain::usage::CountedEvent;
use uuid::Uuid;

use crate::histories::check::explained;
use crate::histories::concrete;
use crate::histories::convert;
use crate::histories::follow::{Deed, Follower};
use crate::histories::model::calendar::{Date, service_date};
use crate::histories::model::terms::Product;
use crate::histories::model::{Charge, Event, Facts, LastDay, Model, Slot, Verdict, With};
use crate::histories::money::Accounts;
use crate::histories::plans::{Reached, START};
use crate::histories::spec::*;

/// What is reached by each line of an issued document whose factors give its amount.
pub(crate) const EXPLAINED: &str = "explained line";

/// A result whose error describes the problem.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// An event as the application would store it.
pub(crate) struct StoredEvent {
    pub(crate) event_ref: EventRef,
    /// The document that has the event's latest change.
    pub(crate) listed_on: DocumentRef,
}

pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) book: ContractBook,
    pub(crate) now: Timestamp,
    /// One stored event for each event of the model.
    pub(crate) events: Vec<StoredEvent>,
    /// The contents of issued documents at the time of issue.
    pub(crate) frozen: BTreeMap<DocumentRef, DocumentContent>,
    /// The events on issued documents at the time of issue.
    pub(crate) listed: BTreeMap<DocumentRef, BTreeSet<usize>>,
    /// Whether the latest step was a billing run.
    pub(crate) has_run: bool,
    pub(crate) ids: u128,
    pub(crate) money: Accounts,
    pub(crate) reached: Reached,
    pub(crate) follower: Option<Box<dyn Follower>>,
}

/// Plays all steps. Returns the reached outcomes, or the number of the failed step and its problem.
pub(crate) fn play(history: &History) -> Result<Reached, (usize, String)> {
    play_before(history, None)
}

/// Plays all steps like [`play`], with a follower that receives the requests.
pub(crate) fn play_before(history: &History, follower: Option<Box<dyn Follower>>) -> Result<Reached, (usize, String)> {
    let now = convert::at(START);
    let elements: Vec<Element> = history.products.iter().map(|spec| concrete::element(spec, service_date("UTC", now))).collect();
    let (Ok(model), Ok(contract)) =
        (Model::created(history.catalog.clone(), &elements), convert::contract(&elements, &history.catalog, now))
    else {
        return Ok(Reached::from([("create refused".to_owned(), 1)]));
    };
    let mut book = ContractBook::new(contract, convert::customer(&history.catalog), convert::entities(&history.catalog));
    match amend::create(&mut book, BackdatingPolicy::Allowed, now) {
        Ok(()) => {}
        Err(Refusal::AmountOutOfRange(_)) if (Model { products: Vec::new(), ..model.clone() }).makes_too_large(&model) => {
            return Ok(Reached::from([("create refused: too large".to_owned(), 1)]));
        }
        Err(refusal) => return Err((0, format!("a create was refused: {refusal:?}"))),
    }
    let mut world = World {
        model,
        book,
        now,
        events: Vec::new(),
        frozen: BTreeMap::new(),
        listed: BTreeMap::new(),
        has_run: false,
        ids: 1_000,
        money: Accounts::default(),
        reached: Reached::from([("create taken".to_owned(), 1)]),
        follower: None,
    };
    if let Some(mut follower) = follower {
        let products = elements.iter().map(convert::requested).collect();
        follower.begin(&history.catalog, products, &world).map_err(|problem| (0, problem))?;
        world.follower = Some(follower);
    }
    for (i, step) in history.steps.iter().enumerate() {
        world.has_run = false;
        let done = world.step(step).and_then(|()| world.learn_sales());
        let done = done.and_then(|()| world.check()).and_then(|()| world.check_readable());
        done.map_err(|problem| {
            (i + 1, if std::env::var("DUMP").is_ok() { format!("{problem}\n{}", world.dump()) } else { problem })
        })?;
    }
    Ok(world.reached)
}

impl World {
    pub(crate) fn note(&mut self, what: &str) {
        *self.reached.entry(what.to_owned()).or_insert(0) += 1;
    }

    pub(crate) fn tell(&mut self, deed: Deed, taken: bool) -> Checked {
        let Some(mut follower) = self.follower.take() else { return Ok(()) };
        let followed = follower.follow(deed, taken, self);
        self.follower = Some(follower);
        followed
    }

    /// Checks that users can always read the previews and the overdue documents.
    fn check_readable(&self) -> Checked {
        let read = |what: &str, shown: Result<Vec<DocumentPreview>, Refusal>| {
            let shown = shown.map_err(|refusal| format!("{what} can't be read: {refusal:?}"))?;
            let content = shown.iter().filter_map(|shown| shown.content.as_ref());
            let odd = content.clone().find(|draft| !draft.content.adds_up());
            for draft in &shown {
                let content = draft.content.as_ref().map(|stated| explained(&stated.content, draft.document.head.kind));
                content.transpose().map_err(|problem| format!("{what}: {problem}"))?;
            }
            odd.map_or(Ok(()), |odd| Err(format!("{what} shows what doesn't add up: {odd:?}")))
        };
        read("the current period", preview::preview_current_period(&self.book, self.now))?;
        read("the next period", preview::preview_next_period(&self.book, self.now))?;
        overdue::overdue(&self.book, &overdue::VersionTimes::new(), self.now)
            .map(drop)
            .map_err(|refusal| format!("verify refuses: {refusal:?}"))
    }

    /// Returns the index of a document among the opened documents.
    pub(crate) fn place_of(&self, document_ref: DocumentRef) -> Option<usize> {
        self.book.documents().position(|document| document.head.document_ref == document_ref)
    }

    fn catalog(&self) -> resolve::Catalog {
        convert::catalog(&self.model.catalog)
    }

    /// Runs a decision of the ledger and returns its entries. A refusal leaves the book unchanged.
    fn decide<T>(
        &mut self,
        decide: impl FnOnce(&mut ContractBook, Timestamp, &mut dyn FnMut() -> Uuid) -> Result<T, Refusal>,
    ) -> Result<Result<(T, Vec<Entry>), Refusal>, String> {
        // Brings the book into the state of a newly loaded book.
        let listed_on =
            self.events.iter().zip(&self.model.events).filter(|(_, event)| !event.deleted).map(|(kept, _)| kept.listed_on);
        self.book.put_events(listed_on.collect());
        self.learn_sales()?;
        let before = self.book.clone();
        let mut ids = self.ids;
        let mut id_generator = || {
            ids += 1;
            Uuid::from_u128(ids)
        };
        let made = decide(&mut self.book, self.now, &mut id_generator);
        self.ids = ids;
        match made {
            Err(refusal @ Refusal::Broken(_)) => Err(format!("broken: {refusal:?}")),
            Err(refusal) => {
                self.book = before;
                Ok(Err(refusal))
            }
            Ok(value) => {
                let entries = self.book.take_entries();
                Ok(Ok((value, entries)))
            }
        }
    }

    /// Handles the entries that the application would write.
    fn write(&mut self, entries: &[Entry]) -> Checked {
        for (index, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Issued { document_ref, issued, mentions } => {
                    self.check_issued_credit(*document_ref, &issued.content, &entries[index + 1..])?;
                    if self.frozen.insert(*document_ref, issued.content.clone()).is_some() {
                        return Err(format!("{document_ref:?} is issued twice"));
                    }
                    if issued.content.total.minor() < 0 {
                        return Err(format!("a document is issued with a total of {}", issued.content.total));
                    }
                    let document = self.book.document(*document_ref).ok_or("an unknown document is issued")?.clone();
                    *self.reached.entry(EXPLAINED.to_owned()).or_insert(0) += explained(&issued.content, document.head.kind)?;
                    self.check_elsewhere(&document, &issued.content, mentions)?;
                    self.note(&format!("issued {:?} {:?}", document.head.kind, document.head.purpose));
                    let is_opened =
                        |other: &Entry| matches!(other, Entry::Opened { head, .. } if head.document_ref == *document_ref);
                    self.check_days(&document, &issued.content)?;
                    // A child that waits for missing information has the tax of the day of its event, and an adjustment that of
                    // the days on which it was extended.
                    if matches!(document.head.purpose, Purpose::Regular(_)) || entries.iter().any(is_opened) {
                        self.check_taxes(&document, &issued.content, entries)?;
                    }
                }
                Entry::EventsMoved { from, to, of } => {
                    for i in 0..self.events.len() {
                        let event = &self.model.events[i];
                        let here = of.is_none_or(|(no, start)| {
                            no.0 == event.product
                                && self
                                    .model
                                    .product(event.product)
                                    .period_at(event.day)
                                    .is_some_and(|period| period.start == start)
                        });
                        if here && self.events[i].listed_on == *from {
                            self.events[i].listed_on = *to;
                        }
                    }
                }
                _ => {}
            }
        }
        for entry in entries {
            if let Entry::Issued { document_ref, .. } = entry {
                let on_it = self.events.iter().enumerate().filter(|(_, event)| event.listed_on == *document_ref);
                self.listed.insert(*document_ref, on_it.map(|(index, _)| index).collect());
            }
        }
        self.settle(entries)?.map_err(|refusal| format!("an account refused: {refusal:?}"))
    }

    /// Checks that the lines of usage on a child or an adjustment have the days of the period in force (billing rules 2). A line
    /// without usage, such as a correction by an edit, has the days that it gives back or adds.
    fn check_days(&self, document: &BookDocument, content: &DocumentContent) -> Checked {
        if matches!(document.head.purpose, Purpose::Regular(_)) {
            return Ok(());
        }
        for (no, line) in content.products.iter().flat_map(|it| it.lines.iter().map(|line| (it.product_no.0, line))) {
            let period = self
                .model
                .product(no)
                .period_at(line.period_start)
                .filter(|_| line.usage.as_ref().is_some_and(|usage| !usage.quantity.is_zero()));
            let days = (line.service_period.start(), line.service_period.end());
            if period.is_some_and(|period| days != (period.start, period.end)) {
                return Err(format!("{} has the days {days:?} of {line:?}", self.reported(document)));
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::EditPricing { pricing, content } => {
                self.model.catalog.pricings[*pricing] = content.clone();
                self.tell(Deed::Pricing(*pricing), true)
            }
            Step::EditEntity { entity, zone, grace_hours, prefix, is_default, tax, strict, lacks_rate } => {
                let present = &self.model.catalog.entities[*entity];
                let today = service_date(zone, self.now);
                let mut taxes = present.taxes.clone();
                if let Some((tax, from)) = tax {
                    let theirs = convert::entities(&self.model.catalog).swap_remove(*entity).profile.taxes;
                    let from = from.map(|from| self.model.date(from, self.now));
                    taxes = convert::default_taxes(&taxes, &theirs, (tax, from), today)?;
                }
                let wanted = EntitySpec {
                    zone,
                    grace_hours: *grace_hours,
                    prefix: prefix.unwrap_or(present.prefix),
                    taxes,
                    strict: *strict,
                    lacks_rate: *lacks_rate,
                };
                let deed = Deed::Entity(*entity, wanted.clone(), *is_default);
                if let Some(why) = self.prefix_refused(*entity, wanted.prefix) {
                    self.note(&format!("entity refused: {why}"));
                    return self.tell(deed, false);
                }
                self.note(if wanted.prefix == present.prefix { "entity taken" } else { "entity taken with another prefix" });
                self.model.catalog.entities[*entity] = wanted;
                if *is_default {
                    self.model.catalog.default_entity = *entity;
                }
                self.book.entities = convert::entities(&self.model.catalog).into_iter().map(Into::into).collect();
                self.tell(deed, true)
            }
            Step::EditCustomer { entity, tax, complete, net_terms, applies_balance } => {
                self.model.catalog.customer.applies_balance = *applies_balance;
                self.model.catalog.customer.entity = *entity;
                self.model.catalog.customer.complete = *complete;
                if let Some((tax, from)) = tax {
                    let today = service_date(self.model.zone(self.model.catalog.default_entity), self.now);
                    let from = from.map(|from| self.model.date(from, self.now));
                    let theirs = self.book.customer.profile.taxes.clone();
                    let taxes = convert::default_taxes(&self.model.catalog.customer.taxes, &theirs, (tax, from), today)?;
                    self.model.catalog.customer.taxes = taxes;
                }
                self.model.catalog.customer.net_terms = *net_terms;
                self.book.customer = convert::customer(&self.model.catalog).into();
                self.tell(Deed::Customer, true)
            }
            Step::Clock { seconds } => {
                self.now = self.now.plus_seconds(*seconds);
                Ok(())
            }
            Step::Edit { .. } => {
                let request = self.model.request(step, self.now);
                let verdict = self.model.edited(&request, &self.facts(), self.now);
                let (edit, catalog) = (convert::edit(&request, &self.book.contract), self.catalog());
                let (before, recount) = (self.model.products.clone(), self.recount());
                let taken = self.amend("edit", verdict, &request, Deed::Edit(edit.clone()), |book, now, mut ids| {
                    amend::edit(book, (&edit, &catalog), BackdatingPolicy::Allowed, now, recount, &mut ids)
                })?;
                if taken { self.check_children(&before) } else { Ok(()) }
            }
            Step::Quantity { .. } => {
                let Some(request) = self.model.quantity_request(step, self.now) else { return Ok(()) };
                let verdict = self.model.with_quantity(&request, self.now);
                let product = self.model.product(request.product);
                let change = convert::quantity_change(&request, product.pricing(), product.start());
                self.amend("quantity", verdict, &request, Deed::Quantity(change.clone()), |book, now, mut ids| {
                    amend::change_quantity(book, &change, BackdatingPolicy::Allowed, now, &mut ids)
                })
                .map(|_| ())
            }
            Step::Cancel { last_day } => {
                let last_day = self.model.last_day(*last_day, self.now);
                let verdict = self.model.cancelled(last_day, self.now);
                let before = self.model.products.clone();
                let todays = self.model.todays(self.now);
                let asked = convert::last_day(last_day);
                let taken = self.amend("cancel", verdict, &last_day, Deed::Cancel(asked), |book, now, mut ids| {
                    amend::cancel(book, asked, BackdatingPolicy::Allowed, now, &mut ids)
                })?;
                if taken {
                    self.model.before_cancel.get_or_insert(before);
                    let is_final = match last_day {
                        LastDay::PeriodEnd => false,
                        LastDay::Today => true,
                        LastDay::Day(day) => todays.iter().all(|today| day <= *today),
                    };
                    let open = self.book.documents().find(|document| document.status == LifecycleStatus::Draft);
                    if let Some(open) = open.filter(|open| is_final && !self.may_lack(open)) {
                        return Err(format!("a final cancel leaves a draft open: {}", self.reported(open)));
                    }
                }
                Ok(())
            }
            Step::Resume => {
                let verdict = self.model.resumed(self.now);
                let taken = self.amend("resume", verdict, &(), Deed::Resume, |book, now, mut ids| {
                    amend::resume(book, BackdatingPolicy::Allowed, now, &mut ids)
                })?;
                if taken {
                    self.model.was_resumed = true;
                    self.model.before_cancel = None;
                }
                Ok(())
            }
            Step::Event { usage, of, when, quantity, label } => self.event(*usage, *of, *when, *quantity, *label),
            Step::Update { event, when, quantity, label } => self.update(*event, *when, *quantity, *label),
            Step::Delete { event } => self.delete(*event),
            Step::Charge { .. } => self.charge(step),
            Step::EditCharge { charge, day, quantity, price, issue } => {
                let Some(index) = self.live_charge(*charge) else { return Ok(()) };
                let edit = ChargeEdit {
                    date: day.map(|day| self.model.date(day, self.now)),
                    quantity: quantity.map(convert::quantity),
                    unit_price: price.map(convert::signed_price),
                    ..ChargeEdit::default()
                };
                let before = self.model.charges[index].clone();
                let after = Charge {
                    day: edit.date.unwrap_or(before.day),
                    quantity: quantity.unwrap_or(before.quantity),
                    price: price.unwrap_or(before.price),
                    ..before
                };
                self.edit_charge(index, after, edit, *issue)
            }
            Step::DeleteCharge { charge } => self.delete_charge(*charge),
            Step::Issue { document } => self.issue(*document),
            Step::Void { document } => self.void(*document),
            Step::Run => self.run(),
            Step::Money(spec) => self.money(spec),
            Step::Grant(spec) => self.grant(spec),
            Step::EditGrant { grant, minor, to } => self.edit_grant(*grant, *minor, *to),
            Step::Foreseen { next } => self.foreseen(*next),
        }
    }

    /// Returns why an entity cannot have a prefix: another entity has it, or the entity has assigned numbers.
    fn prefix_refused(&self, entity: usize, prefix: usize) -> Option<&'static str> {
        let entities = &self.model.catalog.entities;
        if entities[entity].prefix == prefix {
            return None;
        }
        if entities.iter().any(|other| other.prefix == prefix) {
            return Some("another's prefix");
        }
        let reference = convert::entity_ref(entity);
        let has_given = self.book.documents().any(|document| document.head.entity_ref == reference);
        has_given.then_some("numbers given")
    }

    /// Returns the facts about documents for the model.
    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for document in self.book.documents() {
            let content = self.frozen.get(&document.head.document_ref);
            let lines = content
                .into_iter()
                .flat_map(|content| &content.products)
                .flat_map(|product| product.lines.iter().map(|line| (product.product_no.0, line.period_start)));
            let mut of: BTreeSet<(u16, Date)> = lines.collect();
            if matches!(document.head.purpose, Purpose::Regular(_)) {
                of.extend(document.head.parts.iter().map(|no| (no.0, document.head.period.start())));
            }
            let nos = of.iter().map(|(no, _)| *no);
            if document.status.is_issued() {
                facts.begun.extend(nos);
                match document.head.purpose {
                    Purpose::Usage | Purpose::Adjustment => facts.issued_children.extend(of),
                    Purpose::Regular(_) => facts.issued.extend(of),
                }
            } else {
                facts.maybe_begun.extend(nos);
                if document.status == LifecycleStatus::Draft && document.head.purpose == Purpose::Usage {
                    let lines = self.book.lines().find(|(other, _)| *other == document.head.document_ref);
                    let lines = lines.into_iter().flat_map(|(_, lines)| lines).filter(|line| line.amount.minor() != 0);
                    facts.issued_children.extend(lines.map(|line| (line.key.product_no.0, line.key.period_start)));
                }
            }
        }
        for event in &self.model.events {
            let into = if event.deleted { &mut facts.maybe_begun } else { &mut facts.begun };
            into.insert(event.product);
        }
        for charge in &self.model.charges {
            let into = if charge.deleted { &mut facts.maybe_begun } else { &mut facts.begun };
            into.insert(charge.product);
        }
        facts
    }

    fn amend(
        &mut self,
        what: &str,
        verdict: Verdict<Vec<Product>>,
        request: &impl std::fmt::Debug,
        deed: Deed,
        decide: impl FnOnce(&mut ContractBook, Timestamp, &mut dyn FnMut() -> Uuid) -> Result<(), Refusal>,
    ) -> Checked<bool> {
        if let Verdict::Skip(why) = verdict {
            self.note(&format!("{what} skipped: {why}"));
            return Ok(false);
        }
        let made =
            self.decide(|book, now, ids| decide(book, now, ids)).map_err(|problem| format!("{problem} {what} {request:?}"))?;
        match (verdict, made) {
            (Verdict::Take(products) | Verdict::May(_, products), Ok(((), entries))) => {
                self.note(&format!("{what} taken"));
                let first = products.iter().map(Product::start).min();
                self.model.first_day = first.map_or(self.model.first_day, |first| first.min(self.model.first_day));
                self.model.products = products;
                self.write(&entries)?;
                self.tell(deed, true)?;
                Ok(true)
            }
            (Verdict::Refuse(why), Err(_)) => {
                self.note(&format!("{what} refused: {why}"));
                self.tell(deed, false)?;
                Ok(false)
            }
            (Verdict::May(why, _), Err(_)) => {
                self.note(&format!("{what} may be, and was refused: {why}"));
                self.tell(deed, false)?;
                Ok(false)
            }
            (Verdict::Refuse(why), Ok(_)) => Err(format!("the {what} was taken, but {why}: {request:?}")),
            // Prices and seats alone can make large amounts, also in future periods.
            (Verdict::Take(products), Err(Refusal::AmountOutOfRange(_)))
                if self.model.makes_too_large(&Model { products: products.clone(), ..self.model.clone() }) =>
            {
                self.note(&format!("{what} refused: too large"));
                self.tell(deed, false)?;
                Ok(false)
            }
            (Verdict::Take(_), Err(refusal)) => Err(format!("the {what} was refused: {refusal:?}: {request:?}")),
            (Verdict::Skip(_), _) => unreachable!("skipped operations are not run"),
        }
    }

    /// Returns the product and the service date of usage by the model. The domain's matching must return the same.
    fn landing(&self, usage: usize, at: Timestamp, label: Label) -> Checked<Option<(u16, Date)>> {
        let candidates = self.model.candidates(usage, at, label, None);
        let (usage_product_ref, labels) = (convert::usage_ref(usage), convert::labels(label));
        let contracts = [(*self.book.contract).clone()];
        let theirs = match_event(convert::facts(&usage_product_ref, at, labels.as_ref()), &contracts, &self.book.entities);
        let theirs = theirs
            .ok()
            .map(|found| (found.period.product_no.0, found.entity.profile.time_zone.service_date(at), found.period.start()));
        match (candidates.first(), theirs) {
            (None, None) => Ok(None),
            // Terms of entities in several zones may cover several dates of one instant.
            (Some(first), Some((no, day, _))) if first.0 == no && candidates.contains(&(no, day)) => Ok(Some((no, day))),
            (mine, theirs) => Err(format!("usage at {at} lands at {theirs:?}, not {mine:?}")),
        }
    }

    fn counted(&self, index: usize, event: &Event) -> CountedEvent {
        CountedEvent {
            event_ref: self.events.get(index).map_or(EventRef::from_uuid(Uuid::from_u128(self.ids + 1)), |kept| kept.event_ref),
            occurred_at: event.at,
            service_date: event.day,
            quantity: convert::quantity(event.quantity),
            is_distinct: None,
        }
    }

    fn event(&mut self, usage: usize, of: Option<usize>, when: When, quantity: Amount, label: Label) -> Checked {
        // Mostly chooses usage that a product meters.
        let metered = of.and_then(|of| {
            let meters = |product: &&Product| product.bills() && (0..2).any(|usage| product.newest().meters(usage));
            let metered: Vec<&Product> = self.model.products.iter().filter(meters).collect();
            let product = metered.get(of % metered.len().max(1))?;
            product.newest().items.iter().find_map(|item| match &item.charge {
                ChargeSpec::Usage(metered) => Some(metered.usage),
                ChargeSpec::Fixed { .. } => None,
            })
        });
        let usage = metered.unwrap_or(usage);
        let at = self.model.instant(when, self.now);
        let (usage_product_ref, labels) = (convert::usage_ref(usage), convert::labels(label));
        let deed = Deed::Event { usage_product_ref, at, quantity: convert::quantity(quantity), labels };
        let Some((product, day)) = self.landing(usage, at, label)? else {
            self.note("event refused");
            return self.tell(deed, false);
        };
        let event = Event { usage, at, day, product, first: (at, product), quantity, label, deleted: false };
        self.ids += 1;
        let counted =
            CountedEvent { event_ref: EventRef::from_uuid(Uuid::from_u128(self.ids)), ..self.counted(usize::MAX, &event) };
        let key = self.key(&event);
        let counted = self.live_labels(None).add(&key, self.digest(&event), counted);
        let made = self.decide(|book, now, mut ids| post::post_usage(book, &key, &[counted], now, &mut ids))?;
        let mut next = self.model.clone();
        next.events.push(event);
        let Some((listed_on, entries)) = self.taken("an event", made, &next)? else { return self.tell(deed, false) };
        self.model = next;
        self.events.push(StoredEvent { event_ref: counted.event_ref, listed_on });
        self.note("event taken");
        self.write(&entries)?;
        self.tell(deed, true)
    }

    /// Checks a decision on usage. Usage must be refused if it makes an amount too large, and only then.
    fn taken<T>(&mut self, what: &str, made: Result<T, Refusal>, next: &Model) -> Checked<Option<T>> {
        match made {
            Ok(made) if !next.is_large() || !self.model.makes_too_large(next) => Ok(Some(made)),
            Ok(_) => Err(format!("{what} was taken, and makes an amount too large")),
            Err(Refusal::AmountOutOfRange(_)) if self.model.makes_too_large(next) => {
                self.note(&format!("{what} refused: too large"));
                Ok(None)
            }
            Err(refusal) => Err(format!("{what} was refused: {refusal:?}")),
        }
    }

    fn live(&self, event: usize) -> Option<usize> {
        let live: Vec<usize> = (0..self.model.events.len()).filter(|i| !self.model.events[*i].deleted).collect();
        (!live.is_empty()).then(|| live[event % live.len()])
    }

    fn update(&mut self, event: usize, when: Option<When>, quantity: Option<Amount>, label: Option<Label>) -> Checked {
        let Some(index) = self.live(event) else { return Ok(()) };
        let before = self.model.events[index].clone();
        let (quantity_after, label_after) = (quantity.unwrap_or(before.quantity), label.unwrap_or(before.label));
        let mut after = Event { quantity: quantity_after, label: label_after, ..before.clone() };
        if let Some(when) = when {
            after.at = if let When::First = when { before.first.0 } else { self.model.instant(when, self.now) };
        }
        let usage_product_ref = convert::usage_ref(before.usage);
        let deed = Deed::Update {
            event: index,
            at: when.map(|_| after.at),
            quantity: quantity.map(convert::quantity),
            labels: label.map_or(Patch::Keep, |label| convert::labels(label).map_or(Patch::Clear, Patch::Set)),
        };
        let reads_label =
            |product: &ContractProduct| product.terms().any(|terms| terms.reads_label(&usage_product_ref, LABEL_KEY));
        let is_read = after.label != before.label && self.book.contract.products.iter().any(reads_label);
        // The same timestamp and label are no change, regardless of the product that they would match now.
        if after.at != before.at || is_read {
            // The event goes to the product of its first match if that counts it. The domain must return the same.
            let (_, first) = before.first;
            let day = (after.at == before.at).then_some(before.day);
            let candidates = self.model.candidates(before.usage, after.at, after.label, day);
            let expected = candidates.iter().find(|(no, _)| *no == first).or(candidates.first());
            let (contracts, labels) = ([(*self.book.contract).clone()], convert::labels(after.label));
            let first_match = (self.book.contract.contract_ref, ProductNo(first));
            let facts = convert::facts(&usage_product_ref, after.at, labels.as_ref());
            let theirs = match_changed_event(facts, first_match, day, &contracts, &self.book.entities);
            let theirs = theirs.ok().map(|found| (found.period.product_no.0, found.service_date));
            // Terms of entities in several zones may cover several dates of one instant.
            match (expected, theirs) {
                (Some((no, _)), Some(theirs)) if theirs.0 == *no && candidates.contains(&theirs) => {
                    (after.product, after.day) = theirs;
                }
                (None, None) => {
                    self.note("update refused");
                    return self.tell(deed, false);
                }
                (mine, theirs) => return Err(format!("usage moved to {} lands at {theirs:?}, not {mine:?}", after.at)),
            }
        }
        let (key, new_key, listed_on) = (self.key(&before), self.key(&after), self.events[index].listed_on);
        let (counted, without) = (self.counted(index, &before), self.without(index));
        let present = post::PresentEvent { key: &key, counted, without, listed_on };
        let counted = self.live_labels(Some(index)).add(&new_key, self.digest(&after), self.counted(index, &after));
        let stays = key.is_of_same_period(&new_key);
        let made = self.decide(|book, now, mut ids| {
            if stays {
                return post::post_usage_change(book, present, Some((&new_key, counted)), now, &mut ids);
            }
            post::post_usage_change(book, present, None, now, &mut ids)?;
            post::post_usage(book, &new_key, &[counted], now, &mut ids)
        })?;
        let mut next = self.model.clone();
        next.events[index] = after;
        let Some((listed_on, entries)) = self.taken("an update", made, &next)? else { return self.tell(deed, false) };
        self.model = next;
        self.events[index].listed_on = listed_on;
        self.note(if stays { "update taken" } else { "update moved" });
        self.write(&entries)?;
        self.tell(deed, true)
    }

    fn delete(&mut self, event: usize) -> Checked {
        let Some(index) = self.live(event) else { return Ok(()) };
        let key = self.key(&self.model.events[index]);
        let (counted, without) = (self.counted(index, &self.model.events[index]), self.without(index));
        let present = post::PresentEvent { key: &key, counted, without, listed_on: self.events[index].listed_on };
        let made = self.decide(|book, now, mut ids| post::post_usage_change(book, present, None, now, &mut ids))?;
        let mut next = self.model.clone();
        next.events[index].deleted = true;
        let Some((_, entries)) = self.taken("a delete", made, &next)? else { return self.tell(Deed::Delete(index), false) };
        self.model = next;
        self.note("delete taken");
        self.write(&entries)?;
        self.tell(Deed::Delete(index), true)
    }

    fn occasion(&self, issue: bool) -> ChargeContext {
        ChargeContext { now: self.now, by: Actor::Service, issue }
    }

    fn charge(&mut self, step: &Step) -> Checked {
        let Step::Charge { product, names_product, day, quantity, price, fixed, discountable, issue } = step else {
            panic!("not a charge: {step:?}")
        };
        let day = self.model.date(*day, self.now);
        let pricing = self.model.products[product % self.model.products.len()].pricing();
        let named = names_product.then_some(pricing);
        let charge_ref = ChargeRef::parse(&format!("c{}", self.model.charges.len())).expect("a reference");
        let new = NewCharge {
            product_no: None,
            charge_ref: Some(charge_ref.clone()),
            product_pricing_ref: named.map(convert::pricing_ref),
            date: day,
            name: convert::line("charged"),
            quantity: convert::quantity(*quantity),
            unit_price: convert::signed_price(*price),
            unit: None,
            bill_with: if *fixed { BillWith::Fixed } else { BillWith::Usage },
            discountable: *discountable,
            goods: false,
            note: None,
            reason: None,
        };
        let candidates = self.model.charged_products(named, day);
        let charge = match candidates.as_slice() {
            [no] => Some(Charge {
                id: format!("charge:{charge_ref}"),
                product: *no,
                day,
                quantity: *quantity,
                price: *price,
                with: if *fixed { With::Fixed } else { With::Usage },
                discountable: *discountable,
                currency: self.model.product(*no).period_at(day).expect("a period of the day").terms.currency,
                recorded: self.now,
                deleted: false,
            }),
            _ => None,
        };
        let charge = charge.filter(|charge| !self.model.takes_too_much(None, charge));
        let occasion = self.occasion(*issue);
        let made = self.decide(|book, _, mut ids| charge::record(book, new.clone(), occasion, &mut ids))?;
        let deed = Deed::Charge(new, *issue);
        self.charged("charge", made, charge.map(|charge| (self.model.charges.len(), charge)), deed)
    }

    /// Compares the results of the ledger and the model for a charge, and stores the charge.
    fn charged(
        &mut self,
        what: &str,
        made: Result<(billing_domain::charge::Charge, Vec<Entry>), Refusal>,
        expected: Option<(usize, Charge)>,
        deed: Deed,
    ) -> Checked {
        match (made, expected) {
            (Ok((_, entries)), Some((index, charge))) => {
                let below = if charge.price < 0 { " below zero" } else { "" };
                self.note(&format!("{what}{below} taken"));
                match self.model.charges.get_mut(index) {
                    Some(present) => *present = charge,
                    None => self.model.charges.push(charge),
                }
                self.write(&entries)?;
                self.tell(deed, true)
            }
            (Err(_), None) => {
                self.note(&format!("{what} refused"));
                self.tell(deed, false)
            }
            (Ok(_), None) => Err(format!("the {what} was taken, and must be refused: {deed:?}")),
            (Err(Refusal::AmountOutOfRange(_)), Some((index, charge))) => {
                let mut next = self.model.clone();
                match next.charges.get_mut(index) {
                    Some(present) => *present = charge,
                    None => next.charges.push(charge),
                }
                if !self.model.makes_too_large(&next) {
                    return Err(format!("the {what} was refused as too large: {deed:?}"));
                }
                self.note(&format!("{what} refused: too large"));
                self.tell(deed, false)
            }
            (Err(refusal), Some(_)) => Err(format!("the {what} was refused: {refusal:?}: {deed:?}")),
        }
    }

    fn live_charge(&self, charge: usize) -> Option<usize> {
        let live: Vec<usize> = (0..self.model.charges.len()).filter(|i| !self.model.charges[*i].deleted).collect();
        (!live.is_empty()).then(|| live[charge % live.len()])
    }

    /// Returns the ledger's charge for a charge of the model.
    fn theirs(&self, index: usize) -> billing_domain::charge::Charge {
        let id = &self.model.charges[index].id;
        let found = self.book.charges().live().find(|charge| charge.line_item_id().as_str() == id);
        found.expect("a live charge is in the book").clone()
    }

    fn edit_charge(&mut self, index: usize, after: Charge, edit: ChargeEdit, issue: bool) -> Checked {
        let before = self.model.charges[index].clone();
        let currency = self.model.product(after.product).period_at(after.day).map(|period| period.terms.currency);
        // A charge never changes its currency.
        let after = Some(after).filter(|after| currency == Some(after.currency));
        let is_same = edit.applied_to(&self.theirs(index)) == self.theirs(index);
        let after = after.filter(|after| is_same || !self.model.takes_too_much(Some(&before), after));
        let (present, occasion) = (self.theirs(index), self.occasion(issue));
        let made = self.decide(|book, _, mut ids| charge::change(book, &present, &edit, occasion, &mut ids))?;
        self.charged(
            "edit of a charge",
            made,
            after.map(|after| (index, after)),
            Deed::EditCharge(present.charge_ref, edit, issue),
        )
    }

    fn delete_charge(&mut self, charge: usize) -> Checked {
        let Some(index) = self.live_charge(charge) else { return Ok(()) };
        let (present, occasion) = (self.theirs(index), self.occasion(false));
        let made = self.decide(|book, _, mut ids| charge::delete(book, &present, occasion, &mut ids))?;
        let deleted = Charge { deleted: true, ..self.model.charges[index].clone() };
        let expected = Some((index, deleted)).filter(|(_, deleted)| !self.model.takes_too_much(Some(deleted), deleted));
        self.charged("delete of a charge", made, expected, Deed::DeleteCharge(present.charge_ref))
    }

    fn numbered(&self, document: usize, status: LifecycleStatus) -> Option<BookDocument> {
        let of: Vec<&BookDocument> = self.book.documents().filter(|document| document.status == status).collect();
        (!of.is_empty()).then(|| of[document % of.len()].clone())
    }

    fn issue(&mut self, document: usize) -> Checked {
        let Some(draft) = self.numbered(document, LifecycleStatus::Draft) else { return Ok(()) };
        let made = self.decide(|book, now, mut ids| issue::issue(book, draft.head.document_ref, now, &mut ids))?;
        let place = self.place_of(draft.head.document_ref).ok_or("an unknown draft")?;
        let (_, entries) = match made {
            Ok(made) => made,
            Err(_) if self.may_lack(&draft) => {
                self.note("issue refused: the paper lacks something");
                return self.tell(Deed::Issue(place), false);
            }
            Err(refusal) => return Err(format!("the issue of a draft was refused: {refusal:?}")),
        };
        self.note("issue taken");
        self.write(&entries)?;
        self.tell(Deed::Issue(place), true)
    }

    fn void(&mut self, document: usize) -> Checked {
        let Some(issued) = self.numbered(document, LifecycleStatus::Issued) else { return Ok(()) };
        let document_ref = issued.head.document_ref;
        let content = self.frozen[&document_ref].clone();
        let named = |other: &BookDocument| other.head.parent == Some(document_ref) && !other.status.is_void();
        let is_regular = matches!(issued.head.purpose, Purpose::Regular(_));
        let is_child = |other: &BookDocument| named(other) && other.head.purpose == Purpose::Usage;
        let (has_children, is_named) = (self.book.documents().any(is_child), self.book.documents().any(named));
        let gives_back = self.can_give_back(&issued, &content);
        let before = self.book.clone();
        let made = self.decide(|book, now, _| issue::void(book, document_ref, &content, has_children, now))?;
        match made {
            Ok(((), entries)) => {
                let dated = entries.iter().find_map(|entry| if let Entry::Voided { on, .. } = entry { Some(*on) } else { None });
                if dated < issued.issue_date {
                    return Err(format!("a void is dated {dated:?}, before the issue of {}", self.reported(&issued)));
                }
                if !is_regular || is_named || !gives_back {
                    return Err(format!("a document was voided that can't be: {}", self.reported(&issued)));
                }
                let may_be = self.may_be_voided(&issued);
                match (self.settle(&entries)?, may_be) {
                    (Ok(()), true) => {}
                    (Err(_), false) => {
                        self.book = before;
                        self.note("void refused: paid");
                        let place = self.place_of(document_ref).ok_or("an unknown document")?;
                        return self.tell(Deed::Void(place), false);
                    }
                    (Ok(()), false) => return Err(format!("a paid document was voided: {}", self.reported(&issued))),
                    (Err(refusal), true) => return Err(format!("an account refused a void: {refusal:?}")),
                }
                self.note("void taken");
                let place = self.place_of(document_ref).ok_or("an unknown document")?;
                self.tell(Deed::Void(place), true)
            }
            // With `BEFORE_USE`, corrections of the usage debit have the invoice as parent. Usage may have moved elsewhere.
            Err(_) => {
                self.note(if is_regular && !is_named { "void may be, and was refused" } else { "void refused" });
                let place = self.place_of(document_ref).ok_or("an unknown document")?;
                self.tell(Deed::Void(place), false)
            }
        }
    }

    fn run(&mut self) -> Checked {
        let drafts: BTreeMap<DocumentRef, BookDocument> =
            self.book.documents().map(|document| (document.head.document_ref, document.clone())).collect();
        let shown = self.shown_drafts()?;
        let made = self.decide(|book, now, mut ids| issue::issue_due(book, now, usize::MAX, &mut ids))?;
        let (report, entries) = made.map_err(|refusal| format!("a run was refused: {refusal:?}"))?;
        let failed: Vec<DocumentRef> = report.failed.iter().filter_map(|failure| failure.document_ref).collect();
        if failed.iter().collect::<BTreeSet<_>>().len() < failed.len() {
            return Err(format!("a run reports a document twice: {:?}", report.failed));
        }
        self.check_cents(&shown, &entries)?;
        self.write(&entries)?;
        self.tell(Deed::Run, true)?;
        self.note("run");
        for entry in &entries {
            let Entry::Issued { document_ref, .. } = entry else { continue };
            let document = self.book.document(*document_ref).expect("an issued document").clone();
            let early = match document.head.purpose {
                Purpose::Regular(_) => self.due_of(&document).is_some_and(|due| due > self.now),
                Purpose::Usage => false,
                // An adjustment that takes over another's lines, or negative lines of an invoice, is opened and issued at once.
                Purpose::Adjustment => drafts.contains_key(document_ref) && !self.is_older(&document),
            };
            if early {
                return Err(format!(
                    "a run issues a document early: {} due {:?}",
                    self.reported(&document),
                    self.due_of(&document)
                ));
            }
        }
        let left = self.book.documents().find(|document| {
            document.status == LifecycleStatus::Draft
                && !self.may_lack(document)
                && match document.head.purpose {
                    Purpose::Regular(_) => self.due_of(document).is_some_and(|due| due <= self.now),
                    Purpose::Usage => document.head.created_at <= self.now,
                    Purpose::Adjustment => {
                        self.is_older(document) && self.period_goes_on(document).is_none_or(|due| due <= self.now)
                    }
                }
        });
        if let Some(left) = left {
            return Err(format!("a run leaves a due draft: {} due {:?}", self.reported(left), self.due_of(left)));
        }
        self.has_run = true;
        let again = self.decide(|book, now, mut ids| issue::issue_due(book, now, usize::MAX, &mut ids))?;
        let (_, entries) = again.map_err(|refusal| format!("a second run was refused: {refusal:?}"))?;
        if entries.iter().any(|entry| !matches!(entry, Entry::Due(_))) {
            return Err(format!("a second run does {entries:?}"));
        }
        Ok(())
    }

    /// Returns the contents of all drafts as they are shown now.
    fn shown_drafts(&mut self) -> Checked<BTreeMap<DocumentRef, (DocumentRef, DocumentContent)>> {
        self.book.set_as_of(self.now);
        let drafts = self.book.documents().filter(|document| document.status == LifecycleStatus::Draft);
        drafts.map(|draft| Ok((draft.head.document_ref, (draft.family, self.content(draft)?)))).collect()
    }

    /// Checks that drafts are issued with the discount and tax that they showed, in families where a run did nothing but issue
    /// drafts with the lines that they showed (billing rules 5).
    fn check_cents(&mut self, shown: &BTreeMap<DocumentRef, (DocumentRef, DocumentContent)>, entries: &[Entry]) -> Checked {
        let lines = |content: &DocumentContent| {
            let of_product = |it: &BilledProduct| (it.product_no, it.rates.clone(), it.sub_total);
            content.products.iter().map(of_product).collect::<Vec<_>>()
        };
        let (mut issued, mut others) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries {
            match entry {
                Entry::Issued { document_ref, issued: stated, .. } => match shown.get(document_ref) {
                    Some((family, before)) if lines(before) == lines(&stated.content) => {
                        issued.insert(*document_ref, (*family, before.total, stated.content.total));
                    }
                    Some((family, _)) => drop(others.insert(*family)),
                    None => {}
                },
                Entry::Opened { family, .. } => drop(others.insert(*family)),
                Entry::Discarded { document_ref, .. } => others.extend(shown.get(document_ref).map(|(family, _)| *family)),
                _ => {}
            }
        }
        // With credit, a document of another family can take what a draft showed, or return what a later draft takes.
        let moves_credit = self.book.credit().is_some() && (!others.is_empty() || self.has_freed_credit(entries));
        // A document that waits stays before or between the others.
        for (document_ref, (family, _)) in shown {
            let draft = self.book.document(*document_ref).ok_or("an unknown draft")?;
            if !issued.contains_key(document_ref) && self.may_lack(draft) {
                others.insert(*family);
            }
        }
        for (document_ref, (_, before, total)) in issued.iter().filter(|(_, (family, ..))| !others.contains(family)) {
            if before != total && !moves_credit {
                let document = self.book.document(*document_ref).ok_or("an unknown draft")?;
                return Err(format!("a draft shows {before}, and {total} is issued: {}", self.reported(document)));
            }
        }
        self.note("drafts issued as they were shown");
        Ok(())
    }

    fn entity_of(document: &BookDocument) -> usize {
        convert::entity(&document.head.entity_ref)
    }

    pub(crate) fn zone_of(&self, document: &BookDocument) -> &'static str {
        self.model.zone(Self::entity_of(document))
    }

    /// Returns whether a document may have to wait because it lacks information.
    pub(crate) fn may_lack(&self, document: &BookDocument) -> bool {
        self.model.may_lack(Self::entity_of(document))
    }

    /// Checks the taxes of a document that bills something for the first time (billing rules 7). The tax is the one in force on
    /// the issue date, or on the last day of the service period if that day is earlier.
    fn check_taxes(&self, document: &BookDocument, content: &DocumentContent, entries: &[Entry]) -> Checked {
        if document.head.kind == DocumentKind::Credit {
            return Ok(());
        }
        // Of the lines of an adjustment, only a new charge is billed for the first time.
        let is_adjustment = document.head.purpose == Purpose::Adjustment;
        let is_first = |of: &BilledProduct, line: &DocumentLine| {
            let key = line.key(of.product_no);
            let before = self.frozen.iter().filter(|(other, _)| **other != document.head.document_ref);
            let mut lines = before
                .flat_map(|(_, content)| &content.products)
                .flat_map(|product| product.lines.iter().map(|line| line.key(product.product_no)));
            line.line_item_id.as_ref().is_some_and(|id| id.is_of_charge()) && !lines.any(|other| other == key)
        };
        for product in &content.products {
            let first = product.lines.iter().filter(|line| !is_adjustment || is_first(product, line));
            for line in first.filter(|line| line.amount.minor() > 0) {
                let Some(period) = self.model.product(product.product_no.0).period_at(line.period_start) else { continue };
                let item = line.line_item_id.as_ref().map(|id| id.as_str());
                let day = self.model.taxed_on(item, period, service_date(self.zone_of(document), self.now));
                let expected = convert::treatment(self.model.treatment(&period.terms, day));
                let is_reversal = || self.documented_at(product, line, entries).map(|sum| sum <= 0);
                if product.rates.tax != expected && !is_reversal()? {
                    return Err(format!(
                        "{} bills {line:?} at {:?}, not {expected:?}",
                        self.reported(document),
                        product.rates.tax
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether a document was opened on an earlier service date.
    fn is_older(&self, document: &BookDocument) -> bool {
        let zone = self.zone_of(document);
        service_date(zone, document.head.created_at) < service_date(zone, self.now)
    }

    /// Returns when a debit is due that bills the rest of an invoice after use because its period continues (billing rules 7).
    fn period_goes_on(&self, document: &BookDocument) -> Option<Timestamp> {
        let parent = self.book.document(document.head.parent?)?;
        if document.head.kind != DocumentKind::Debit || slot(parent) != Some(Slot::Period) || !parent.status.is_issued() {
            return None;
        }
        let shared = parent.head.parts.iter().filter(|no| document.head.parts.contains(no));
        let dues = shared.filter_map(|no| {
            let product = self.model.product(no.0);
            let index = product.periods.iter().position(|period| period.start == parent.head.period.start())?;
            let period = &product.periods[index];
            let goes_on = period.terms.payment_time == PaymentTime::AfterUse && period.end > parent.head.period.end();
            goes_on.then(|| self.model.due_at(product, index, Slot::Period))
        });
        dues.max()
    }

    /// Returns when a regular document is due by the model, or `None` if the model has no such document.
    pub(crate) fn due_of(&self, document: &BookDocument) -> Option<Timestamp> {
        let slot = slot(document)?;
        let due = document.head.parts.iter().filter_map(|no| {
            let product = self.model.product(no.0);
            let index = product.periods.iter().position(|period| period.start == document.head.period.start())?;
            Some(self.model.due_at(product, index, slot))
        });
        due.min()
    }

    /// Checks that a run issues the previewed documents if nothing but time passes in between.
    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    fn foreseen(&mut self, next: bool) -> Checked {
        let shown = if next {
            preview::preview_next_period(&self.book, self.now)
        } else {
            preview::preview_current_period(&self.book, self.now)
        };
        let shown: Vec<DocumentPreview> = shown.map_err(|refusal| format!("a preview was refused: {refusal:?}"))?;
        let planned: Vec<DocumentPreview> = shown
            .into_iter()
            .filter(|shown| shown.document.status == LifecycleStatus::Draft && slot(&shown.document).is_some())
            .filter(|shown| !self.may_lack(&shown.document))
            .collect();
        let due = planned.iter().filter_map(|shown| self.due_of(&shown.document)).max();
        let Some(due) = due else { return Ok(()) };
        let on = |shown: &DocumentPreview| {
            let due = self.due_of(&shown.document).unwrap_or(self.now).max(self.now);
            (shown.document.head.document_ref, service_date(self.zone_of(&shown.document), due))
        };
        let expected_on: BTreeMap<DocumentRef, Date> = planned.iter().map(on).collect();
        self.now = self.now.max(due);
        self.run()?;
        self.note("foreseen");
        for shown in &planned {
            let Some(stated) = &shown.content else { return Err("a preview without content".to_owned()) };
            // A negative total changes the kind of the document.
            if stated.content.total.minor() < 0 {
                if shown.document.head.kind == DocumentKind::Invoice {
                    return Err(format!("a preview shows an invoice of {}", stated.content.total));
                }
                continue;
            }
            let says_nothing =
                stated.content.products.iter().flat_map(|product| &product.lines).all(|line| line.amount.minor() == 0);
            let issued = self.book.documents().find(|document| {
                !document.status.is_void()
                    && document.head.period == shown.document.head.period
                    && document.head.purpose == shown.document.head.purpose
                    && document.head.parts.iter().any(|no| shown.document.head.parts.contains(no))
            });
            let Some(issued) = issued else {
                if says_nothing {
                    continue;
                }
                return Err(format!("a preview shows what isn't issued: {}", self.reported(&shown.document)));
            };
            let is =
                self.frozen.get(&issued.head.document_ref).ok_or_else(|| format!("not issued: {}", self.reported(issued)))?;
            let lines = |content: &DocumentContent| {
                let of_product = content.products.iter().flat_map(|product| {
                    product.lines.iter().map(|line| {
                        (
                            product.product_no,
                            line.line_item_id.clone(),
                            line.service_period.start(),
                            line.bill_with,
                            line.amount.minor(),
                        )
                    })
                });
                let mut lines: Vec<_> = of_product.filter(|line| line.4 != 0).collect();
                lines.sort();
                lines
            };
            if lines(is) != lines(&stated.content) {
                return Err(format!("a preview shows {:?}, and {:?} is issued", lines(&stated.content), lines(is)));
            }
            let alone = self.book.documents().filter(|other| other.family == issued.family).count() == 1;
            // A default tax that begins in between changes documents that are issued after their due date.
            let is_on_its_day =
                issued.issue_date.is_some_and(|day| expected_on.get(&shown.document.head.document_ref) == Some(&day));
            if alone && is_on_its_day && self.book.credit().is_none() && is.total != stated.content.total {
                return Err(format!("a preview shows a total of {}, and {} is issued", stated.content.total, is.total));
            }
        }
        Ok(())
    }

    /// Returns the content of a document, as issued or as of now.
    pub(crate) fn content(&self, document: &BookDocument) -> Checked<DocumentContent> {
        if let Some(frozen) = self.frozen.get(&document.head.document_ref) {
            return Ok(frozen.clone());
        }
        self.book
            .content(document.head.document_ref)
            .map_err(|refusal| format!("no content of {}: {refusal:?}", self.reported(document)))
    }

    pub(crate) fn own_check(&self) -> Vec<String> {
        check::check(&self.book).unwrap_or_else(|refusal| vec![format!("{refusal:?}")])
    }

    /// Describes all documents, events and periods.
    fn dump(&self) -> String {
        let of = |document: &BookDocument| {
            let short = |document_ref: DocumentRef| document_ref.as_uuid().as_u128() - 1_000;
            let content = self.content(document).map(|content| {
                let of_product = content.products.iter().map(|product| {
                    let lines = product.lines.iter().map(|line| {
                        let id = line.line_item_id.as_ref().map_or("fee", |id| id.as_str());
                        format!("{id} {} {:?} {}", line.period_start, line.bill_with, line.amount.minor())
                    });
                    let lines: Vec<String> = lines.collect();
                    format!(
                        "{:?} d{:?} t{:?}: {}",
                        product.product_no.0,
                        product.rates.discount,
                        product.rates.tax,
                        lines.join(", ")
                    )
                });
                of_product.collect::<Vec<_>>().join(" | ")
            });
            format!(
                "DOC {} of {} parent {:?} replaces {:?}: {} {content:?}",
                short(document.head.document_ref),
                short(document.family),
                document.head.parent.map(short),
                document.head.replaces.map(short),
                self.reported(document)
            )
        };
        let documents: Vec<String> = self.book.documents().map(of).collect();
        let events = self
            .model
            .events
            .iter()
            .zip(&self.events)
            .map(|(event, kept)| format!("EVT {:?} on {}", event, kept.listed_on.as_uuid().as_u128() - 1_000));
        let periods = self.model.products.iter().map(|product| {
            let periods: Vec<String> = product
                .periods
                .iter()
                .map(|period| format!("{}–{} {:?} E{}", period.start, period.end, period.terms.payment_time, period.terms.entity))
                .collect();
            format!("PER {}: {}", product.no, periods.join(", "))
        });
        format!(
            "NOW {}\n{}\n{}\n{}",
            self.now,
            documents.join("\n"),
            events.collect::<Vec<_>>().join("\n"),
            periods.collect::<Vec<_>>().join("\n")
        )
    }

    pub(crate) fn reported(&self, document: &BookDocument) -> String {
        let head = &document.head;
        format!(
            "{:?} {:?} {:?} of {:?} {:?}, opened {}",
            head.kind, head.purpose, document.status, head.period, head.parts, head.created_at
        )
    }
}

/// Returns the slot of a regular document, or `None` for other documents.
pub(crate) fn slot(document: &BookDocument) -> Option<Slot> {
    use billing_domain::document::linking::SlotKind as Theirs;
    match document.head.purpose {
        Purpose::Regular(Theirs::Period) => Some(Slot::Period),
        Purpose::Regular(Theirs::UsageDebit) => Some(Slot::UsageDebit),
        Purpose::Regular(Theirs::Closing) => Some(Slot::Closing),
        Purpose::Usage | Purpose::Adjustment => None,
    }
}

/// Returns the sign of a kind's amounts.
pub(crate) fn sign(kind: DocumentKind) -> i64 {
    if kind == DocumentKind::Credit { -1 } else { 1 }
}
