//! Runs random histories through the use cases, which must read, decide and write as the ledger does, whose decisions a model checks.
//! `USE_CASE_HISTORIES=n` sets the number of histories, `SEED=s` the first seed.
#![allow(clippy::expect_used, clippy::panic, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "environment variables choose the histories to play")]
#![allow(dead_code, reason = "this crate uses only a part of the domain's histories")]

mod advances;
#[path = "../../../../billing-domain/tests/rules/histories/check.rs"]
mod check;
#[path = "../../../../billing-domain/tests/rules/histories/concrete.rs"]
mod concrete;
#[path = "../../../../billing-domain/tests/rules/histories/convert.rs"]
mod convert;
#[path = "../../../../billing-domain/tests/rules/histories/credit.rs"]
mod credit;
#[path = "../../../../billing-domain/tests/rules/histories/follow.rs"]
mod follow;
#[path = "../../../../billing-domain/tests/rules/histories/generate.rs"]
mod generate;
mod grants;
mod limits;
#[path = "../../../../billing-domain/tests/rules/histories/model/mod.rs"]
mod model;
#[path = "../../../../billing-domain/tests/rules/histories/money.rs"]
mod money;
mod movements;
#[path = "../../../../billing-domain/tests/rules/histories/plans.rs"]
mod plans;
mod rehearsals;
#[path = "../../../../billing-domain/tests/rules/histories/shrink.rs"]
mod shrink;
#[path = "../../../../billing-domain/tests/rules/histories/spec.rs"]
mod spec;
#[path = "../../../../billing-domain/tests/rules/histories/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::Debug;

use billing_application::billing_run::BillingRunRequest;
use billing_application::catalog::{
    TaxBasisPatch, WantedEntity, create_customer, create_entity, create_pricing, create_usage_product, edit_customer,
    edit_entity, edit_pricing,
};
use billing_application::charges::{ChargeRequest, delete_charge, edit_charge, record_charge};
use billing_application::contracts::{
    ContractRequest, cancel_contract, change_quantity, create_contract, edit_contract, resume_contract,
};
use billing_application::credit::edit_credit_grant;
use billing_application::documents::{DocumentQuery, PaymentQuery, issue_document, list_documents, list_payments, void_document};
use billing_application::dry_run::Effects;
use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::formats::NamedFormat;
use billing_application::notifications::number_notifications;
use billing_application::usage::{
    EventUpdate, FileImport, NO_ANSWER, NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict, delete_event, record_event,
    undo_import, update_event,
};
use billing_application::verify::verify;
use billing_application::{Cx, Transactions, UseCase};
use billing_domain::access::Actor;
use billing_domain::audit::AuditActor;
use billing_domain::charge::Charge;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::document::{Document, LifecycleStatus, Settlement, lines::LedgerLine, totals::DocumentContent};
use billing_domain::format::BuiltInFormat;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::imports::ImportedFileFacts;
use billing_domain::ledger::BookRows;
use billing_domain::metadata::Metadata;
use billing_domain::money::Money;
use billing_domain::notification::{Notification, Subject};
use billing_domain::page::PageRequest;
use billing_domain::patch::Changes;
use billing_domain::ports::{DocumentFilter, NotificationFilter};
use billing_domain::refs::{ContractRef, CreditGrantRef, DocumentRef, EventRef, ImportRef, PaymentRef, ServerRef};
use billing_domain::usage::{EventChanges, MAX_AHEAD_SECONDS};
use billing_domain::verification::Finding;
use billing_testkit::Singly as _;
use uuid::Uuid;

use crate::support::{Bench, read, run, run_billing};
use follow::{Deed, Follower};
use generate::Kind;
use grants::unnamed;
use limits::Limits;
use rehearsals::{DocumentFigures, check_rehearsal, use_case_of};
use world::{Checked, World};

/// The use cases on SQLite in memory.
struct UseCases {
    bench: Bench,
    contract: Option<ContractRef>,
    events: Vec<EventRef>,
    /// Each event as it was last delivered under its key.
    delivered: Vec<NewUsageEvent>,
    /// Every second event is imported. Undoing the import deletes the event.
    imports: Vec<Option<ImportRef>>,
    /// In the order they were recorded.
    payments: Vec<PaymentRef>,
    /// Set when the history contains usage from the future, which the use cases reject.
    is_over: bool,
    /// The number of requested operations.
    asked: u32,
    /// The feed as a client has read it.
    notified: Vec<Notification>,
    limits: Limits,
    grants: Vec<CreditGrantRef>,
}

/// The compared data of a document. References are positions in the order of opening.
#[derive(Debug, PartialEq)]
struct DocumentSnapshot {
    head: String,
    status: LifecycleStatus,
    parent: Option<usize>,
    replaces: Option<usize>,
    family: usize,
    settlement: Settlement,
    stated: Option<DocumentContent>,
    lines: Vec<LedgerLine>,
}

fn same<T: PartialEq + Debug>(what: &str, decided: &T, stored: &T) -> Checked {
    if decided == stored { Ok(()) } else { Err(format!("{what}: {decided:#?} is decided, {stored:#?} is stored")) }
}

impl UseCases {
    fn new() -> Self {
        Self {
            bench: Bench::at(plans::START),
            contract: None,
            events: Vec::new(),
            delivered: Vec::new(),
            imports: Vec::new(),
            payments: Vec::new(),
            is_over: false,
            asked: 0,
            notified: Vec::new(),
            limits: Limits::default(),
            grants: Vec::new(),
        }
    }

    fn contract(&self) -> ContractRef {
        self.contract.expect("a contract")
    }

    fn rows(&self) -> BookRows {
        let organization = self.bench.principal.organization();
        let contract = self.bench.read(|tx| tx.contract(organization, self.contract())).expect("a contract");
        self.bench.read(|tx| tx.book_rows(contract.key(organization)))
    }

    /// Returns all documents in the order of opening.
    fn documents(&self) -> Vec<Document> {
        let mut all = Vec::new();
        let mut page = PageRequest::LARGEST;
        loop {
            let found = self.bench.read(|tx| tx.documents(self.bench.principal.organization(), &DocumentFilter::default(), page));
            all.extend(found.items);
            if all.len() as u64 >= found.total {
                all.sort_by_key(|document| document.head.number_in_contract);
                return all;
            }
            page = page.next();
        }
    }

    fn document(&self, place: usize) -> DocumentRef {
        self.documents()[place].head.document_ref
    }

    /// Executes an operation. Every third operation has a dry run first, whose prediction must match.
    fn ask(&mut self, deed: &Deed, world: &World) -> Result<UseCaseResult<()>, String> {
        self.asked += 1;
        let rehearsed = if self.asked.is_multiple_of(3) { self.rehearse(deed, world)? } else { None };
        let before = rehearsed.as_ref().map(|_| self.views());
        let delivery = self.delivery(deed, world);
        let done = self.carry_out(deed, world);
        if let (Ok(_), Some((event, delivery))) = (&done, delivery) {
            match self.delivered.get_mut(event) {
                Some(delivered) => *delivered = delivery,
                None => self.delivered.push(delivery),
            }
        }
        if let (Some(rehearsed), Some(before)) = (rehearsed, before) {
            let after = if done.is_ok() { self.views() } else { before.clone() };
            check_rehearsal(&rehearsed, done.is_ok(), &before, &after).map_err(|why| format!("{deed:?}: {why}"))?;
        }
        Ok(done.and_then(|made| self.take_up(made)))
    }

    /// Returns the effects of a dry run, or `None` if the operation has no dry run. Checks that the dry run stores nothing.
    fn rehearse(&self, deed: &Deed, world: &World) -> Result<Option<UseCaseResult<Effects>>, String> {
        let is_undone = |event: &usize| self.imports[*event].is_some();
        if matches!(deed, Deed::Pricing(_) | Deed::Run) || matches!(deed, Deed::Delete(event) if is_undone(event)) {
            return Ok(None);
        }
        let organization = self.bench.principal.organization();
        let unnumbered = || self.bench.read(|tx| tx.unnumbered_notifications(organization, u32::MAX));
        let stored = || (self.views(), self.bench.audit_log().len(), self.rows(), unnumbered());
        let (before, ended) = (stored(), self.limits.ended());
        let effects = run(&self.bench.services, &self.bench.principal, use_case_of(deed), |cx| {
            cx.dry_run(&mut |cx| {
                let import = self.begin_import(&mut Transactions::Joined(cx), deed)?;
                self.perform(cx, deed, import, world).map(drop)
            })
        });
        self.limits.take_back(&ended);
        same("what is stored, after a rehearsal", &before, &stored())?;
        Ok(Some(effects))
    }

    /// Returns the figures of all documents by number.
    fn views(&self) -> BTreeMap<String, DocumentFigures> {
        let mut all = BTreeMap::new();
        let mut page = PageRequest::LARGEST;
        loop {
            let query = DocumentQuery::default();
            let listed = read(&self.bench.services, &self.bench.principal, UseCase::ListDocuments, |cx| {
                list_documents(cx, &query, page.into())
            })
            .expect("documents");
            let is_last = listed.items.len() < usize::try_from(page.size()).expect("a size");
            all.extend(listed.items.iter().map(DocumentFigures::of));
            if is_last {
                return all;
            }
            page = page.next();
        }
    }

    /// Remembers the created event, import and payment.
    fn take_up(&mut self, made: Option<(EventRef, Option<ImportRef>)>) -> UseCaseResult<()> {
        if let Some((event, import)) = made {
            self.events.push(event);
            self.imports.push(import);
        }
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let listed = read(services, principal, UseCase::ListPayments, |cx| {
            list_payments(cx, &PaymentQuery::default(), PageRequest::LARGEST)
        })?;
        let new = listed.items.into_iter().map(|view| view.payment.payment_ref).find(|new| !self.payments.contains(new));
        self.payments.extend(new);
        self.take_up_grants()
    }

    /// Executes an operation and returns the created event.
    fn carry_out(&self, deed: &Deed, world: &World) -> UseCaseResult<Option<(EventRef, Option<ImportRef>)>> {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        if matches!(deed, Deed::Run) {
            let report = run_billing(services, principal, BillingRunRequest::whole(false))?;
            // Only documents can fail, for missing legal particulars. Whole contracts must not fail.
            assert!(report.failed.iter().all(|failed| failed.document.is_some()), "{report:?}");
            return Ok(None);
        }
        if let Deed::Delete(event) = deed
            && let Some(import_ref) = self.imports[*event]
        {
            return self.undo(import_ref).map(|()| None);
        }
        let import = self.begin_import(&mut Transactions::Separate(services, Some(principal)), deed)?;
        run(services, principal, use_case_of(deed), |cx| self.perform(cx, deed, import, world))
    }

    /// Executes an operation that needs one transaction and returns the created event.
    fn perform(
        &self,
        cx: &mut Cx<'_>,
        deed: &Deed,
        import: Option<ImportRef>,
        world: &World,
    ) -> UseCaseResult<Option<(EventRef, Option<ImportRef>)>> {
        let catalog = || convert::catalog(&world.model.catalog);
        match deed {
            Deed::Pricing(pricing) => {
                let pricing = &catalog().pricings[*pricing];
                edit_pricing(cx, &pricing.pricing_ref, &Changes::to(pricing.content.clone())).map(drop)
            }
            Deed::Entity(entity, wanted, is_default) => {
                let mut catalog = world.model.catalog.clone();
                catalog.entities[*entity] = wanted.clone();
                let entity = convert::entities(&catalog).swap_remove(*entity);
                let wanted = WantedEntity {
                    profile: entity.profile,
                    is_default: is_default.then_some(true),
                    tax: TaxBasisPatch::default(),
                };
                edit_entity(cx, &entity.entity_ref, &Changes::to(wanted)).map(drop)
            }
            Deed::Customer => {
                let customer = convert::customer(&world.model.catalog);
                edit_customer(cx, &customer.customer_ref, &Changes::to(customer.profile.into())).map(drop)
            }
            Deed::Edit(edit) => edit_contract(cx, self.contract(), None, edit, true).map(drop),
            Deed::Quantity(change) => change_quantity(cx, self.contract(), change, true).map(drop),
            Deed::Cancel(last_day) => cancel_contract(cx, self.contract(), *last_day, true).map(drop),
            Deed::Resume => resume_contract(cx, self.contract(), true).map(drop),
            Deed::Event { .. } => {
                let (_, event) = self.delivery(deed, world).expect("a new event");
                let taken = self.report(cx, &NewUsageEvent { import, ..event })?;
                return Ok(Some((taken.event.event_ref, import)));
            }
            Deed::Update { event, at, quantity, labels } => {
                if let Some((_, delivery)) = self.delivery(deed, world) {
                    return record_event(cx, delivery, NO_ANSWER).map(|_| None);
                }
                let update = EventUpdate { occurred_at: *at, quantity: *quantity, ..EventUpdate::default() };
                update_event(cx, self.events[*event], &EventUpdate { report_data: labels.clone(), ..update }).map(drop)
            }
            Deed::Delete(event) => delete_event(cx, self.events[*event]),
            Deed::Charge(charge, issue) => {
                let request = ChargeRequest { contract_ref: self.contract(), charge: charge.clone(), issue: *issue };
                record_charge(cx, &request).map(drop)
            }
            Deed::EditCharge(charge_ref, edit, issue) => edit_charge(cx, charge_ref, edit, *issue).map(drop),
            Deed::DeleteCharge(charge_ref) => delete_charge(cx, charge_ref),
            Deed::Issue(place) => issue_document(cx, self.document(*place), false).map(drop),
            Deed::Void(place) => void_document(cx, self.document(*place)).map(drop),
            Deed::Money(deed) => self.move_money(cx, &convert::customer(&world.model.catalog).customer_ref, deed),
            Deed::Grant(grant) => self.grant(cx, grant, world),
            Deed::EditGrant(grant, edit) => edit_credit_grant(cx, self.grants[*grant], edit).map(drop),
            Deed::Run => panic!("a billing run has transactions of its own"),
        }
        .map(|()| None)
    }

    /// Returns the event that an operation delivers under its key, and the event's place: a new one, or every second update. An update
    /// to the facts of the last delivery would be a repeat of it.
    fn delivery(&self, deed: &Deed, world: &World) -> Option<(usize, NewUsageEvent)> {
        match deed {
            Deed::Event { usage_product_ref, at, quantity, labels } => {
                let event = NewUsageEvent {
                    customer: NamedCustomer::Ref(convert::customer(&world.model.catalog).customer_ref),
                    usage_product: NamedUsageProduct::Ref(usage_product_ref.clone()),
                    occurred_at: *at,
                    is_time_of_receipt: false,
                    quantity: *quantity,
                    report_data: labels.clone(),
                    validations: None,
                    formatted: None,
                    key: IdempotencyKey::parse(&format!("event-{}", self.asked)).ok(),
                    on_conflict: OnConflict::Update,
                    occurred: false,
                    hold_ref: None,
                    import: None,
                };
                Some((self.events.len(), event))
            }
            Deed::Update { event, at, quantity, labels } if self.asked.is_multiple_of(2) => {
                let present = self.bench.read(|tx| tx.event(self.bench.principal.organization(), self.events[*event]))?;
                let delivered = &self.delivered[*event];
                let delivery = NewUsageEvent {
                    occurred_at: at.unwrap_or(present.occurred_at),
                    quantity: quantity.unwrap_or(present.quantity),
                    report_data: labels.clone().apply(present.report_data),
                    ..delivered.clone()
                };
                (delivery.facts() != delivered.facts()).then_some((*event, delivery))
            }
            _ => None,
        }
    }

    /// Begins an import for every second event.
    fn begin_import(&self, transactions: &mut Transactions<'_, '_>, deed: &Deed) -> UseCaseResult<Option<ImportRef>> {
        if !matches!(deed, Deed::Event { .. }) || !self.events.len().is_multiple_of(2) {
            return Ok(None);
        }
        let file = ImportedFileFacts { name: None, bytes: 0, sha256: [0; 32] };
        let format = NamedFormat::Name(BuiltInFormat::Default.name());
        Ok(FileImport::begin(transactions, (format, file), OnConflict::Reject, false)?.import_ref())
    }

    /// Undoes the import of one event.
    fn undo(&self, import_ref: ImportRef) -> UseCaseResult<()> {
        let transactions = &mut Transactions::Separate(&self.bench.services, Some(&self.bench.principal));
        let mut undone = undo_import(transactions, import_ref, &|| true, &mut |transactions, step| step.carry_out(transactions))?;
        match (undone.refused.pop(), undone.deleted) {
            (Some((_, refusal)), _) => Err(refusal),
            (None, 1) => Ok(()),
            (None, _) => Err(UseCaseError::Unknown(ResourceKind::Event)),
        }
    }

    /// Returns the number of audit log entries and the state that the operation may leave unchanged.
    fn changing(&self, deed: &Deed) -> (usize, String) {
        let organization = self.bench.principal.organization();
        let state = match deed {
            Deed::Pricing(_) => format!("{:?}", self.bench.read(|tx| tx.pricings(organization, PageRequest::LARGEST))),
            Deed::Entity(..) => {
                let entities = self.bench.read(|tx| tx.entities(organization, PageRequest::LARGEST));
                format!("{entities:?} {:?}", self.bench.read(|tx| tx.organization(organization)))
            }
            Deed::Customer => format!("{:?}", self.bench.read(|tx| tx.customers(organization, PageRequest::LARGEST))),
            Deed::Run => format!("{:?}", self.documents()),
            Deed::EditCharge(..) => format!("{:?}", self.rows().charges),
            Deed::EditGrant(grant, _) => self.stored_grant(*grant),
            _ => format!("{:?}", self.bench.read(|tx| tx.contract(organization, self.contract()))),
        };
        (self.bench.audit_log().len(), state)
    }

    /// Checks that an operation with a change records one audit event. Rejected operations, operations without a change and
    /// usage record none.
    fn check_audit_log(&self, deed: &Deed, taken: bool, (entries, state): (usize, String)) -> Checked {
        let is_done = match deed {
            Deed::Event { .. } | Deed::Update { .. } => false,
            // The audit event of undoing the import.
            Deed::Delete(event) => self.imports[*event].is_some(),
            Deed::Charge(..) | Deed::DeleteCharge(_) | Deed::Issue(_) | Deed::Void(_) | Deed::Money(_) | Deed::Grant(_) => true,
            _ => self.changing(deed).1 != state,
        };
        let log = self.bench.audit_log();
        same(&format!("entries of the audit log after {deed:?}"), &(entries + usize::from(taken && is_done)), &log.len())?;
        // Finds the newest entry by reference, because the clock may have moved back.
        match log.iter().max_by_key(|entry| entry.audit_ref).filter(|_| log.len() > entries) {
            Some(newest) => {
                same("who did it, and when", &(AuditActor::CommandLine, self.bench.now()), &(newest.author, newest.at))
            }
            None => Ok(()),
        }
    }

    /// Checks the notifications: sequences and positions count from 1, each notification of a document has its number, the last one
    /// has its state, and a client that reads step by step reads the whole feed.
    fn check_notifications(&mut self) -> Checked {
        let (services, organization) = (&self.bench.services, self.bench.principal.organization());
        // Always the same server: another one would wait for the end of its lease.
        number_notifications(services, ServerRef::from_uuid(Uuid::nil()), &|| false).map_err(|error| format!("{error:?}"))?;
        let after = |after| self.bench.read(|tx| tx.notifications(organization, &NotificationFilter::default(), after, u32::MAX));
        let (all, new) = (after(0), after(self.notified.len() as u64));
        let numbers: BTreeMap<Subject, String> = self
            .documents()
            .iter()
            .map(|document| (Subject::Document(document.head.document_ref), document.head.number.to_string()))
            .collect();
        for Notification { subject, body, .. } in &new {
            let has_number = numbers.get(subject).is_none_or(|number| body.split(' ').any(|word| word == number));
            if !has_number {
                return Err(format!("a notification of {:?} is {body}", numbers.get(subject)));
            }
        }
        self.notified.extend(new);
        same("the feed, read step by step", &self.notified, &all)?;
        let mut last: BTreeMap<Subject, (u64, &str)> = BTreeMap::new();
        for (notification, position) in all.iter().zip(1..) {
            same("a position", &Some(position), &notification.position)?;
            let (sequence, body) = last.entry(notification.subject).or_default();
            same("a sequence", &(*sequence + 1), &notification.sequence)?;
            (*sequence, *body) = (notification.sequence, notification.body.as_str());
        }
        for document in self.documents() {
            let document_ref = document.head.document_ref;
            let reported = last.get(&Subject::Document(document_ref)).map(|(_, body)| *body).unwrap_or_default();
            let total = document.lifecycle.issued().map(|issued| issued.content.total);
            let owed = total.map(|total| document.settlement.owed(document.head.kind, document.lifecycle.status(), total));
            let due = owed.transpose().map_err(|error| format!("{error:?}"))?.and_then(|owed| owed.amount_due);
            let state = document.state().map_err(|error| format!("{error:?}"))?;
            let shown = format!("{} {state:?} {}", document.head.number, due.map_or(0, Money::minor));
            if !reported.ends_with(&shown) {
                return Err(format!("the last notification of {document_ref} is {reported:?}, and its state is {shown}"));
            }
        }
        Ok(())
    }

    /// Checks that the store contains the decisions of the ledger.
    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    fn compare(&self, world: &World) -> Checked {
        let contract = self.bench.read(|tx| tx.contract(self.bench.principal.organization(), self.contract()));
        let contract = contract.ok_or("the contract is gone")?;
        same("version", &world.book.contract.version, &contract.version)?;
        same("products", &world.book.contract.products, &contract.products)?;
        let (rows, documents) = (self.rows(), self.documents());
        check_numbers(&documents, world)?;
        let places: BTreeMap<DocumentRef, usize> =
            documents.iter().zip(0..).map(|(document, place)| (document.head.document_ref, place)).collect();
        let mut stored: Vec<DocumentSnapshot> = documents
            .iter()
            .map(|document| {
                let head = &document.head;
                DocumentSnapshot {
                    head: said_of(head),
                    status: document.lifecycle.status(),
                    parent: head.parent.map(|parent| places[&parent]),
                    replaces: head.replaces.map(|replaced| places[&replaced]),
                    family: places[&document.family],
                    settlement: document.settlement,
                    stated: document.lifecycle.issued().map(|issued| unnamed(&issued.content, &self.grants)),
                    lines: Vec::new(),
                }
            })
            .collect();
        for line in rows.lines {
            stored[places[&line.document_ref]].lines.push(line.line);
        }
        let decided_grants = world.grant_refs();
        same("how many grants", &decided_grants.len(), &self.grants.len())?;
        let mut decided: Vec<DocumentSnapshot> = Vec::new();
        for document in world.book.documents() {
            let place = |document_ref: DocumentRef| world.place_of(document_ref).expect("a document of the book");
            decided.push(DocumentSnapshot {
                head: said_of(&document.head),
                status: document.status,
                parent: document.head.parent.map(place),
                replaces: document.head.replaces.map(place),
                family: place(document.family),
                settlement: document.settlement,
                stated: world.frozen.get(&document.head.document_ref).map(|content| unnamed(content, &decided_grants)),
                lines: Vec::new(),
            });
        }
        for (document_ref, lines) in world.book.lines() {
            decided[world.place_of(document_ref).expect("a document of the book")].lines = lines.to_vec();
        }
        let reported = |charges: Vec<Charge>| -> Vec<Charge> {
            let by = |charge: Charge| Charge {
                customer_id: contract.customer_id,
                contract_ref: contract.contract_ref,
                revised_by: Actor::Service,
                ..charge
            };
            let mut charges: Vec<Charge> = charges.into_iter().filter(|charge| !charge.deleted).map(by).collect();
            charges.sort_by(|a, b| a.charge_ref.cmp(&b.charge_ref));
            charges
        };
        same("charges", &reported(world.book.charges().live().cloned().collect()), &reported(rows.charges))?;
        same("how many documents", &decided.len(), &stored.len())?;
        for (place, (decided, stored)) in decided.iter_mut().zip(&mut stored).enumerate() {
            for seen in [&mut *decided, &mut *stored] {
                // The digests are of event references, which differ.
                seen.lines.iter_mut().filter_map(|line| line.usage.as_mut()).for_each(|usage| usage.changes = EventChanges::NONE);
                seen.lines.sort_by(|a, b| (&a.key, &a.rates, a.amount.minor()).cmp(&(&b.key, &b.rates, b.amount.minor())));
            }
            same(&format!("document {}", place + 1), decided, stored)?;
        }
        self.compare_grants(world)?;
        for (event_ref, kept) in self.events.iter().zip(&world.events) {
            let event = self.bench.read(|tx| tx.event(self.bench.principal.organization(), *event_ref)).expect("an event");
            if !event.deleted {
                same("event's document", &world.place_of(kept.listed_on), &places.get(&event.placement.document_ref).copied())?;
            }
        }
        Ok(())
    }
}

/// Checks that each entity's numbers of a kind count from 1 in the order of opening, after the entity's permanent prefix.
fn check_numbers(documents: &[Document], world: &World) -> Checked {
    let entities = convert::entities(&world.model.catalog);
    let mut given = BTreeMap::new();
    for document in documents {
        let head = &document.head;
        let entity = entities.iter().find(|entity| entity.entity_ref == head.entity_ref).ok_or("an unknown entity")?;
        let sequence = given.entry((head.entity_ref.clone(), head.kind.abbreviation())).or_insert(0);
        *sequence += 1;
        let number = format!("{}-{}-{sequence}", entity.profile.number_prefix.as_str(), head.kind.abbreviation());
        same("a number", &number, &head.number.to_string())?;
    }
    Ok(())
}

/// Formats the data that a document has since its opening, without the data that differs between stores.
fn said_of(head: &billing_domain::document::DocumentHead) -> String {
    format!(
        "{:?} {:?} of {} in {}, {:?} partial {}, products {:?}, {:?}, opened {}",
        head.kind,
        head.purpose,
        head.entity_ref,
        head.currency,
        head.period,
        head.is_partial_period,
        head.parts,
        head.net_terms,
        head.created_at
    )
}

impl Follower for UseCases {
    fn begin(&mut self, catalog: &spec::Catalog, products: Vec<RequestedProduct>, world: &World) -> Checked {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let agreed = convert::catalog(catalog);
        let failed = |error: &dyn Debug| format!("the catalog isn't taken: {error:?}");
        for entity in convert::entities(catalog) {
            let is_default = Some(convert::entity_ref(catalog.default_entity) == entity.entity_ref);
            let wanted = WantedEntity { profile: entity.profile, is_default, tax: TaxBasisPatch::default() };
            run(services, principal, UseCase::CreateEntity, |cx| create_entity(cx, Some(entity.entity_ref), wanted))
                .map_err(|error| failed(&error))?;
        }
        let customer = convert::customer(catalog);
        run(services, principal, UseCase::CreateCustomer, |cx| {
            create_customer(cx, Some(customer.customer_ref.clone()), customer.profile.into())
        })
        .map_err(|error| failed(&error))?;
        for product in agreed.usage_products {
            run(services, principal, UseCase::CreateUsageProduct, |cx| {
                create_usage_product(cx, Some(product.usage_product_ref), product.profile)
            })
            .map_err(|error| failed(&error))?;
        }
        for pricing in agreed.pricings {
            run(services, principal, UseCase::CreatePricing, |cx| create_pricing(cx, Some(pricing.pricing_ref), pricing.content))
                .map_err(|error| failed(&error))?;
        }
        self.limits = Limits::of_history(&products);
        let request = ContractRequest {
            customer_ref: customer.customer_ref,
            po_number: None,
            metadata: Metadata::default(),
            products,
            allow_backdated: true,
        };
        let made = run(services, principal, UseCase::CreateContract, |cx| create_contract(cx, &request))
            .map_err(|error| format!("the contract isn't taken: {error:?}"))?;
        self.contract = Some(made.contract.contract_ref);
        self.check_notifications()?;
        self.compare(world)
    }

    fn follow(&mut self, deed: Deed, taken: bool, world: &World) -> Checked {
        self.is_over |= match &deed {
            Deed::Event { at, .. } => *at > world.now.plus_seconds(MAX_AHEAD_SECONDS),
            Deed::Update { at, .. } => at.is_some_and(|at| at > world.now.plus_seconds(MAX_AHEAD_SECONDS)),
            _ => false,
        };
        if self.is_over {
            return Ok(());
        }
        self.bench.clock.set(world.now);
        let figures = self.change_limits()?;
        let before = self.changing(&deed);
        match (self.ask(&deed, world)?, taken) {
            (Ok(()), true) | (Err(_), false) => {}
            (Ok(()), false) => return Err(format!("the ledger refused {deed:?}")),
            (Err(error), true) => return Err(format!("the ledger did {deed:?}, the use case: {error:?}")),
        }
        self.check_audit_log(&deed, taken, before)?;
        self.check_limits(figures.as_ref())?;
        self.check_notifications()?;
        self.compare(world)?;
        if matches!(deed, Deed::Run) {
            let seen = verify(&self.bench.services, false).map_err(|error| format!("{error:?}"))?;
            // Documents can wait if legal particulars of their entities may be missing.
            let may_lack = (0..world.model.catalog.entities.len()).any(|entity| world.model.may_lack(entity));
            let waits = |finding: &Finding| may_lack && finding.detail.contains("is not issued");
            let findings = seen.into_iter().flat_map(|(_, seen)| seen.findings).filter(|finding| !waits(finding));
            same("findings", &Vec::new(), &findings.collect::<Vec<Finding>>())?;
            advances::check_advance(&self.bench, u64::from(self.asked))?;
        }
        Ok(())
    }
}

fn played(history: &spec::History) -> Result<plans::Reached, (usize, String)> {
    world::play_before(history, Some(Box::new(UseCases::new())))
}

#[test]
fn use_cases_store_what_the_ledger_decides() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
    };
    let (first, count) = (number("SEED", 1), number("USE_CASE_HISTORIES", 30));
    let threads = u64::try_from(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).expect("a small number");
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for seed in (first..first + count).filter(|seed| seed % threads == thread) {
                    let history = generate::history(seed, Kind::Whole);
                    if let Err((_, first)) = played(&history) {
                        let words = |problem: &str| problem.chars().take(20).collect::<String>();
                        let is_same =
                            |shorter: &spec::History| played(shorter).is_err_and(|(_, other)| words(&other) == words(&first));
                        let history = shrink::shrink(history, is_same);
                        let steps: Vec<String> =
                            history.steps.iter().zip(1..).map(|(step, i): (_, u32)| format!("{i}. {step:?}")).collect();
                        let reported = format!("{:?}\n{:?}\n{}", history.catalog, history.products, steps.join("\n"));
                        panic!("SEED={seed}: {:?}\n{reported}", played(&history));
                    }
                }
            });
        }
    });
}
