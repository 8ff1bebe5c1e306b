//! Records a batch of events in one transaction. Each event is put on its document or rejected. A rejected event leaves no
//! trace and does not affect the others (billing rules 3 and 4).
//!
//! Rows that events share are read, locked and written once. Locks are taken in this order: contracts, totals, document
//! series. Each kind is locked in the order of its references, so that concurrent batches wait for each other and do not
//! deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::document::BookDocument;
use billing_domain::event_input::NewUsageEvent;
use billing_domain::imports::ImportedEvent;
use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::ledger::{ContractBook, ContractHeader, Entry, Extent, post};
use billing_domain::matching::{EventFacts, match_event};
use billing_domain::party::Entity;
use billing_domain::ports::{LabelOfTotal, Lock, StoreError};
use billing_domain::refs::{
    ContractKey, ContractRef, CustomerId, DocumentRef, EventRef, ImportPartRef, ImportRef, UsageProductRef,
};
use billing_domain::usage::{CountedEvent, EventKeyRecord, NewEventKeyRecord, Placement, UsageEvent, UsageKey, UsageTotal};

use super::event_cache::PeriodKey;
use super::outcome::{Duplicate, EventAnswer, IngestOutcome};
use super::progress::{IngestProgress, MatchedEvent, NumbersByCustomer, ResolvedEvent, is_fatal};
use super::read::EventReferences;
use super::recall::{ReadContracts, Recalled, Shortcuts, learn, no_draft_error, recall};
use crate::book_repository::{self, corrupt, entities_of, usage_total};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::limits::Watch;

/// How often a contract or document may change between finding and locking it, before the operation fails with
/// [`StoreError::Contended`].
pub(super) const MAX_HOLD_ATTEMPTS: u32 = 4;

/// Events of an organization to be recorded in one transaction.
pub(super) struct IngestBatch<'a> {
    pub(super) events: &'a [IngestItem<'a>],
    /// Only for [`IngestPath::DraftsOnly`].
    pub(super) shortcuts: Option<&'a Shortcuts<'a>>,
    /// Contracts to lock exclusively besides those of the events, because later decisions of the transaction need them.
    pub(super) also_held: &'a BTreeSet<ContractKey>,
}

/// An event, its actor, and the response for duplicates of its idempotency key.
#[derive(Clone, Copy)]
pub(super) struct IngestItem<'a> {
    pub(super) event: &'a NewUsageEvent,
    pub(super) by: Actor,
    pub(super) answer: EventAnswer,
}

/// Books by contract reference, loaded as far as the events need.
pub(super) type BooksByRef = BTreeMap<ContractRef, ContractBook>;
/// The books of the matched contracts, the matched events, and the events without a match.
type LockedBooks<'n> = (BooksByRef, Vec<MatchedEvent<'n>>, Vec<(usize, UseCaseError)>);

/// Running totals by key.
type Totals = Vec<(UsageKey, UsageTotal)>;

/// How a batch locks contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IngestPath {
    /// Only for events on existing drafts, which is the usual case. Takes shared locks with the fewest statements. Leaves
    /// other events to the general path.
    DraftsOnly,
    /// For all events. First checks which lock each contract needs, because upgrading a shared lock can deadlock with another
    /// upgrade.
    General,
}

impl<'a> IngestBatch<'a> {
    pub(super) fn new_events(&self) -> impl Iterator<Item = &'a NewUsageEvent> {
        self.events.iter().map(|item| item.event)
    }

    /// Records the events and returns the results in the same order. The result is `None` for an event that the path does not
    /// handle.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] or [`UseCaseError::InvariantViolation`].
    pub(super) fn ingest(&self, cx: &mut Cx<'_>, path: IngestPath) -> UseCaseResult<Vec<Option<UseCaseResult<IngestOutcome>>>> {
        let (names, recalled) = recall(cx, self.shortcuts, &Vec::from_iter(self.new_events()))?;
        let mut progress = IngestProgress::of(self.events.len());
        let resolved = self.fresh(cx, &names, &mut progress)?;
        let (mut books, matched, refused) = match path {
            // The statement that finds the contracts also locks them.
            IngestPath::DraftsOnly => {
                let ((contracts, matched, refused), read) = self.match_events(cx, &resolved, recalled.lock(), &recalled)?;
                let known = recalled.documents();
                let (mut books, off_drafts) = self.on_drafts(cx, contracts.into_values(), &matched, &known)?;
                // The events of a watched customer are judged together, in the order of arrival.
                let judged_later: BTreeSet<CustomerId> = books
                    .values()
                    .filter(|book| book.contract.is_watched && off_drafts.contains(&book.contract.contract_ref))
                    .map(|book| book.contract.customer_id)
                    .collect();
                books.retain(|contract_ref, book| {
                    !off_drafts.contains(contract_ref) && !judged_later.contains(&book.contract.customer_id)
                });
                let (matched, left): (Vec<_>, Vec<_>) =
                    matched.into_iter().partition(|event| books.contains_key(&event.key.contract_ref));
                progress.left = left.iter().map(|matched| matched.resolved.index).collect();
                if let Some(shortcuts) = self.shortcuts {
                    let known = matched.iter().map(|matched| (matched.resolved.customer, &matched.key));
                    learn(shortcuts, cx.organization, (&names, &recalled, &read), &books, known)?;
                }
                (books, matched, refused)
            }
            IngestPath::General => self.lock_contracts(cx, &resolved)?,
        };
        for (index, refusal) in refused {
            progress.refuse(index, refusal)?;
        }
        let added = self.add_totals(cx, &matched, &mut books)?;
        if added.is_none() {
            progress.live = self.lock_totals(cx, &matched, &mut books)?;
        }
        let all = matched.len();
        let settling = matched.iter().filter(|event| self.events[event.resolved.index].event.hold_ref.is_some());
        let settling = settling.map(|event| event.resolved.customer.id).collect();
        let watch = Watch::lock(cx, &mut books, &periods_of(&matched), &settling)?;
        let (limited, free): (Vec<_>, Vec<_>) = matched.into_iter().partition(|matched| watch.has(matched.resolved.customer.id));
        Self::post_groups(cx, &mut books, free, &mut progress)?;
        self.settle_holds(&watch, 0, &mut progress);
        let numbers = self.post_within_limits(cx, &watch, &mut books, limited, &mut progress)?;
        if let Some((shortcuts, totals)) = added {
            // All of it is stored already, or nothing stays.
            if progress.placed.len() < all || !are_stored(&totals, &books) {
                return Err(shortcuts.give_up());
            }
        } else {
            let mut decided: Vec<&mut ContractBook> = books.values_mut().filter(|book| !book.entries().is_empty()).collect();
            for book in decided.iter_mut().filter(|book| book.extent() == Extent::Whole) {
                billing_domain::ledger::issue::schedule_next_run(book, cx.now)?;
            }
            book_repository::write_all(cx, decided)?;
        }
        let outcomes = self.store(cx, path, (&books, &numbers), progress)?;
        numbers.into_iter().for_each(|(customer_id, numbers)| cx.note_numbers(customer_id, numbers.to_vec()));
        Ok(outcomes)
    }

    /// Finds the contracts of the events and locks them. The lock is shared if all events go on existing drafts. It is
    /// exclusive if a document has to be opened or corrected. Then nothing changes until the commit.
    pub(super) fn lock_contracts<'n>(&self, cx: &mut Cx<'_>, resolved: &[ResolvedEvent<'n>]) -> UseCaseResult<LockedBooks<'n>> {
        let organization = cx.organization;
        let mut exclusive: BTreeSet<ContractRef> = self.also_held.iter().map(|contract| contract.contract).collect();
        for _ in 0..MAX_HOLD_ATTEMPTS {
            let ((contracts, matched, refused), _) = self.match_events(cx, resolved, None, &Recalled::default())?;
            let unknown = contracts.iter().filter(|(contract_ref, _)| !exclusive.contains(contract_ref));
            let (_, off_drafts) = self.on_drafts(cx, unknown.map(|(_, book)| book.clone()), &matched, &BTreeMap::new())?;
            exclusive.extend(off_drafts);
            if contracts.is_empty() && self.also_held.is_empty() {
                return Ok((contracts, matched, refused));
            }
            let lock_of = |(contract_ref, book): (&ContractRef, &ContractBook)| {
                let lock = if exclusive.contains(contract_ref) { Lock::Exclusive } else { Lock::Shared };
                (book.contract.key(organization), lock)
            };
            let locks: Vec<(ContractKey, Lock)> = contracts.iter().map(lock_of).collect();
            let also_held = self.also_held.iter().map(|contract| (*contract, Lock::Exclusive));
            let all: BTreeMap<ContractRef, (ContractKey, Lock)> =
                locks.iter().copied().chain(also_held).map(|lock| (lock.0.contract, lock)).collect();
            cx.tx.hold_contracts(&Vec::from_iter(all.into_values()))?;
            // Load after locking: the contract may have been changed, or a document issued, in between.
            let agreements = cx.tx.agreements(&locks.into_iter().map(|(key, _)| key).collect::<Vec<_>>())?;
            let is_same = |agreement: &ContractHeader| {
                let found = contracts.get(&agreement.contract.contract_ref);
                found.is_some_and(|found| found.contract.version == agreement.contract.version)
            };
            if agreements.len() < contracts.len() || !agreements.iter().all(is_same) {
                continue;
            }
            let with_entities = |agreement: ContractHeader| {
                let entities = contracts.get(&agreement.contract.contract_ref).map(|book| book.entities.clone());
                ContractBook::of(agreement, entities.unwrap_or_default())
            };
            let books = agreements.into_iter().map(with_entities);
            let (alone, shared): (Vec<_>, Vec<_>) = books.partition(|book| exclusive.contains(&book.contract.contract_ref));
            let (mut books, off_drafts) = self.on_drafts(cx, shared, &matched, &BTreeMap::new())?;
            if off_drafts.is_empty() {
                let whole = book_repository::load_rows(cx.tx, organization, alone, cx.now)?;
                books.extend(whole.into_iter().map(|book| (book.contract.contract_ref, book)));
                return Ok((books, matched, refused));
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Matches the events to the current periods of contracts. Also returns the contracts that were read for this, because
    /// they are not recalled.
    fn match_events<'n>(
        &self,
        cx: &mut Cx<'_>,
        resolved: &[ResolvedEvent<'n>],
        lock: Option<Lock>,
        recalled: &Recalled,
    ) -> UseCaseResult<(LockedBooks<'n>, ReadContracts)> {
        let organization = cx.organization;
        let rows_of = |resolved: &ResolvedEvent<'_>| recalled.rows_of(resolved.customer.id, &resolved.product.usage_product_ref);
        let unknown = resolved.iter().filter(|resolved| rows_of(resolved).is_none());
        let pairs: BTreeSet<(CustomerId, UsageProductRef)> =
            unknown.map(|resolved| (resolved.customer.id, resolved.product.usage_product_ref.clone())).collect();
        let mut read = ReadContracts::default();
        for contract in cx.tx.contracts_metering(organization, &Vec::from_iter(pairs), lock)? {
            if recalled.may_use(&contract) {
                read.contracts.entry(contract.customer_id).or_default().push(Arc::new(contract));
            }
        }
        read.entities = entities_of(cx.tx, organization, read.contracts.values().flatten().map(|contract| &**contract))?;
        let (mut contracts, mut matched, mut refused) = (BooksByRef::new(), Vec::with_capacity(resolved.len()), Vec::new());
        for resolved in resolved {
            let ResolvedEvent { customer, product, .. } = *resolved;
            let event = self.events[resolved.index].event;
            let facts = EventFacts {
                usage_product_ref: &product.usage_product_ref,
                occurred_at: event.occurred_at,
                labels: event.report_data.as_ref(),
                validations: event.validations.as_ref(),
            };
            let (of_customer, entities): (&[Arc<Contract>], &[Arc<Entity>]) = match rows_of(resolved) {
                Some(rows) => (rows.contracts.as_slice(), &*rows.entities),
                None => (read.contracts.get(&customer.id).map_or(&[][..], Vec::as_slice), read.entities.as_slice()),
            };
            match match_event(facts, of_customer.iter().map(|contract| &**contract), entities) {
                Ok(found) => {
                    let contract_ref = found.contract.contract_ref;
                    // References are created in order of arrival, so that the later of two simultaneous events has the
                    // greater reference.
                    let counted = CountedEvent {
                        event_ref: EventRef::from_uuid(cx.services.ids.new_id()),
                        occurred_at: event.occurred_at,
                        service_date: found.service_date,
                        quantity: event.quantity,
                        is_distinct: None,
                    };
                    let key = found.usage_key(&product.usage_product_ref);
                    let (unique_digest, service_period) = (found.unique_digest, found.period.days());
                    matched.push(MatchedEvent { resolved: *resolved, counted, key, unique_digest, service_period });
                    contracts.entry(contract_ref).or_insert_with(|| {
                        let entities = book_repository::billing(found.contract, entities);
                        let shared = of_customer.iter().find(|contract| contract.contract_ref == contract_ref);
                        let contract = shared.map_or_else(|| Arc::new(found.contract.clone()), Arc::clone);
                        ContractBook::of_shared(contract, Arc::clone(customer), entities)
                    });
                }
                Err(refusal) => refused.push((resolved.index, refusal.into())),
            }
        }
        Ok(((contracts, matched, refused), read))
    }

    /// Loads the books with the drafts that carry the usage of the events. Also returns the contracts with an event that does
    /// not go on an existing draft. The documents of `known` periods are not loaded.
    fn on_drafts(
        &self,
        cx: &mut Cx<'_>,
        books: impl IntoIterator<Item = ContractBook>,
        matched: &[MatchedEvent<'_>],
        known: &BTreeMap<PeriodKey, &[BookDocument]>,
    ) -> UseCaseResult<(BooksByRef, BTreeSet<ContractRef>)> {
        let periods = periods_of(matched);
        let books = book_repository::load_draft_books(cx.tx, cx.organization, books, &periods, known)?;
        let mut off_drafts = BTreeSet::new();
        for (contract_ref, product_no, start) in periods {
            let Some(book) = books.get(&contract_ref) else { continue };
            let period = book.contract.period_from(product_no, start);
            let period = period.ok_or_else(|| corrupt("a contract", &contract_ref, "has no such period"))?;
            if !post::only_extends_draft(book, &period)? {
                off_drafts.insert(contract_ref);
            }
        }
        Ok((books, off_drafts))
    }

    /// Adds the events to their running totals with one statement, instead of locking the totals now and replacing them later.
    /// The books then have the totals before these events, as far as sums and counts need them. Returns the totals after the
    /// events, or `None` if totals have to be locked: without shortcuts, for other aggregations than sums and counts, and for
    /// watched customers.
    fn add_totals(
        &self,
        cx: &mut Cx<'_>,
        matched: &[MatchedEvent<'_>],
        books: &mut BooksByRef,
    ) -> UseCaseResult<Option<(&Shortcuts<'_>, Totals)>> {
        let Some(shortcuts) = self.shortcuts else { return Ok(None) };
        let mut added: BTreeMap<UsageKey, (CustomerId, UsageTotal)> = BTreeMap::new();
        for MatchedEvent { resolved, counted, key, .. } in matched {
            let (_, total) = added.entry(key.clone()).or_insert((resolved.customer.id, UsageTotal::ZERO));
            let Ok(sum) = total.plus(*counted) else { return Ok(None) };
            *total = sum;
        }
        let is_summed = |key: &UsageKey| books.get(&key.contract_ref).is_some_and(|book| is_summed(book, key));
        // The usage of watched customers is judged before it is added.
        let is_watched = books.values().any(|book| book.contract.is_watched);
        if added.is_empty() || is_watched || !added.keys().all(is_summed) {
            return Ok(None);
        }
        let new: Vec<(CustomerId, UsageKey, UsageTotal)> =
            added.iter().map(|(key, (customer_id, total))| (*customer_id, key.clone(), *total)).collect();
        let Some(totals) = cx.tx.add_usage(cx.organization, &new)? else { return Err(shortcuts.give_up()) };
        for (key, total) in &totals {
            if let (Some(book), Some((_, new))) = (books.get_mut(&key.contract_ref), added.get(key)) {
                let Ok(before) = total.before_adding(*new) else { return Err(shortcuts.give_up()) };
                book.put_usage(key.clone(), before);
            }
        }
        Ok(Some((shortcuts, totals)))
    }

    /// Locks the running totals of the events, and completes the totals where the lines of their periods need it. Returns which
    /// texts of labels are counted already.
    pub(super) fn lock_totals(
        &self,
        cx: &mut Cx<'_>,
        matched: &[MatchedEvent<'_>],
        books: &mut BooksByRef,
    ) -> UseCaseResult<LiveLabels> {
        let keys: BTreeSet<(CustomerId, UsageKey)> =
            matched.iter().map(|matched| (matched.resolved.customer.id, matched.key.clone())).collect();
        for (key, total) in cx.tx.lock_usage(cx.organization, &Vec::from_iter(keys))? {
            if let Some(book) = books.get_mut(&key.contract_ref) {
                book.put_usage(key.clone(), total);
                usage_total(cx.tx, cx.organization, book, &key)?;
            }
        }
        let labels = matched.iter().filter_map(|MatchedEvent { resolved, key, unique_digest, .. }| {
            let digest = (*unique_digest)?;
            Some((resolved.customer.id, key.clone(), digest))
        });
        let labels: BTreeSet<LabelOfTotal> = labels.collect();
        if labels.is_empty() {
            return Ok(LiveLabels::default());
        }
        // One event with a text is enough to know that a new one isn't distinct.
        Ok(cx.tx.live_labels(&Vec::from_iter(labels), 1)?)
    }

    /// Puts the events of one running total on documents. Events that only extend a draft are posted together, at the same
    /// cost for any number of events. Others are posted one by one.
    pub(super) fn post_group<'n>(
        cx: &Cx<'_>,
        (before, book): (&ContractBook, &mut ContractBook),
        group: Vec<MatchedEvent<'n>>,
        progress: &mut IngestProgress<'n>,
    ) -> UseCaseResult<()> {
        let (now, mut ids) = (cx.now, cx.ids());
        let mut post = |book: &mut ContractBook, key: &UsageKey, events: &[CountedEvent]| {
            book.decide_or_restore(before, |book| post::post_usage(book, key, events, now, &mut ids)).map_err(UseCaseError::from)
        };
        let mut rest = group.into_iter();
        let mut may_share = true;
        while let Some(first) = rest.next() {
            let contract = std::sync::Arc::clone(&book.contract);
            let period = contract.period_of(&first.key);
            let on_draft = match period {
                Some(period) => post::only_extends_draft(book, &period)?,
                None => false,
            };
            if may_share && on_draft && rest.len() > 0 {
                let all = || std::iter::once(&first).chain(rest.as_slice());
                let counted: Vec<CountedEvent> = all().map(|matched| matched.added_to(&mut progress.live)).collect();
                match post(book, &first.key, &counted) {
                    Ok(document_ref) => {
                        progress.placed.extend(std::iter::once(first).chain(rest).map(|matched| (matched, document_ref)));
                        return Ok(());
                    }
                    Err(error) if is_fatal(&error) => return Err(error),
                    // The document cannot take all events together. Posting them one by one finds the events to reject.
                    Err(_) => {
                        may_share = false;
                        all().for_each(|matched| matched.take_from(&mut progress.live));
                    }
                }
            }
            let counted = first.added_to(&mut progress.live);
            match post(book, &first.key, &[counted]) {
                Ok(document_ref) => progress.placed.push((first, document_ref)),
                Err(refusal) => {
                    first.take_from(&mut progress.live);
                    progress.refuse(first.resolved.index, refusal)?;
                }
            }
        }
        Ok(())
    }

    /// Stores the events and their idempotency keys.
    fn store(
        &self,
        cx: &mut Cx<'_>,
        path: IngestPath,
        (books, numbers): (&BooksByRef, &NumbersByCustomer),
        progress: IngestProgress<'_>,
    ) -> UseCaseResult<Vec<Option<UseCaseResult<IngestOutcome>>>> {
        let IngestProgress { mut outcomes, duplicates, shown, mut placed, settled, mut left, live: _ } = progress;
        let (organization, now) = (cx.organization, cx.now);
        placed.sort_by_key(|(matched, _)| matched.resolved.index);
        let events: Vec<UsageEvent> =
            placed.iter().map(|(matched, document_ref)| self.event(now, matched, *document_ref)).collect();
        match path {
            // The last safeguard against usage on an issued document, should a change of a document not renew its stamp.
            IngestPath::DraftsOnly => {
                if !cx.tx.insert_events_on_drafts(organization, &events)? {
                    return Err(no_draft_error(self.shortcuts, organization, self.new_events()));
                }
            }
            IngestPath::General => cx.tx.insert_events(organization, &events)?,
        }
        let mut kept: Vec<(CustomerId, NewEventKeyRecord)> = Vec::new();
        let mut made: BTreeMap<ImportRef, Vec<ImportedEvent>> = BTreeMap::new();
        let around =
            EventReferences::of_books(books.values()).with_products(placed.iter().map(|(matched, _)| matched.resolved.product));
        for ((matched, document_ref), event) in placed.into_iter().zip(events) {
            let (index, event_ref, customer_id) = (matched.resolved.index, event.event_ref, event.customer_id);
            let mut view = around.view(event)?;
            view.limits = numbers.get(&customer_id).cloned().unwrap_or_default();
            let IngestItem { event, answer, .. } = self.events[index];
            if let Some(import_ref) = event.import {
                let key = event.key.clone();
                made.entry(import_ref).or_default().push(ImportedEvent { event_ref, key });
            }
            if let Some(key) = &event.key {
                let document_number = around.document(document_ref)?.head.number.clone();
                let EventAnswer { form, render } = answer;
                let event = EventKeyRecord { key: key.clone(), facts: event.facts(), event_ref, answer: render(&view), form };
                kept.push((customer_id, NewEventKeyRecord { kept: event, document_ref, document_number }));
            }
            outcomes[index] = Some(Ok(IngestOutcome::Recorded(Box::new(view))));
        }
        if !settled.is_empty() {
            cx.tx.settle_entries(organization, &Vec::from_iter(settled), now)?;
        }
        if !kept.is_empty() {
            cx.tx.save_event_keys(organization, &kept)?;
        }
        for (import_ref, events) in made {
            let part = ImportPartRef::from_uuid(cx.services.ids.new_id());
            cx.tx.add_imported_events(organization, import_ref, part, &events)?;
        }
        for (index, view) in self.views_of(cx, shown)? {
            outcomes[index] = Some(Ok(IngestOutcome::Replayed((self.events[index].answer.render)(&view))));
        }
        for Duplicate { index, first, is_same } in duplicates {
            if left.contains(&first) {
                left.insert(index);
                continue;
            }
            let outcome = match &outcomes[first] {
                Some(Ok(IngestOutcome::Recorded(view))) if is_same => {
                    Ok(IngestOutcome::Replayed((self.events[first].answer.render)(view)))
                }
                Some(Ok(IngestOutcome::Recorded(_))) => Err(UseCaseError::EventChanged(None)),
                _ => Err(UseCaseError::Conflict {
                    code: "repeats_refused_event",
                    detail: "an earlier event of the request has the same idempotency key and was rejected".to_owned(),
                }),
            };
            outcomes[index] = Some(outcome);
        }
        let is_left = |(index, outcome): (usize, &Option<_>)| outcome.is_none() == left.contains(&index);
        if !outcomes.iter().enumerate().all(is_left) {
            return Err(UseCaseError::InvariantViolation("an event without an outcome"));
        }
        Ok(outcomes)
    }

    fn event(&self, now: Timestamp, matched: &MatchedEvent<'_>, document_ref: DocumentRef) -> UsageEvent {
        let IngestItem { event: new, by, .. } = self.events[matched.resolved.index];
        UsageEvent {
            event_ref: matched.counted.event_ref,
            customer_id: matched.resolved.customer.id,
            usage_product_ref: matched.key.usage_product_ref.clone(),
            occurred_at: new.occurred_at,
            service_date: matched.counted.service_date,
            quantity: new.quantity,
            report_data: new.report_data.clone(),
            validations: new.validations.clone(),
            placement: Placement {
                contract_ref: matched.key.contract_ref,
                product_no: matched.key.product_no,
                service_period: matched.service_period,
                document_ref,
            },
            unique_digest: matched.unique_digest,
            first_match: None,
            formatted: new.formatted.clone(),
            recorded_at: now,
            revision: 1,
            revised_at: now,
            revised_by: by,
            deleted: false,
        }
    }
}

/// Returns whether all line items that a running total prices need only its sum or its number of events.
fn is_summed(book: &ContractBook, key: &UsageKey) -> bool {
    let period = book.contract.period_of(key);
    period.is_some_and(|period| period.terms.rated_by(key).all(|(_, metered)| metered.aggregation.is_additive()))
}

/// Returns whether the decisions on books changed nothing but the running totals, which are stored with these values.
fn are_stored(totals: &[(UsageKey, UsageTotal)], books: &BooksByRef) -> bool {
    let is_of_total = |entry: &Entry| matches!(entry, Entry::UsageMoved { .. });
    let has_total =
        |(key, total): &(UsageKey, UsageTotal)| books.get(&key.contract_ref).is_some_and(|book| book.usage().get(key) == *total);
    books.values().flat_map(ContractBook::entries).all(is_of_total) && totals.iter().all(has_total)
}

/// Returns the periods of events.
pub(super) fn periods_of(matched: &[MatchedEvent<'_>]) -> BTreeSet<PeriodKey> {
    matched.iter().map(|MatchedEvent { key, .. }| (key.contract_ref, key.product_no, key.period_start)).collect()
}

/// Groups events by running total, ordered by the first event of each group.
pub(super) fn grouped(matched: Vec<MatchedEvent<'_>>) -> Vec<Vec<MatchedEvent<'_>>> {
    let mut places: BTreeMap<UsageKey, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<MatchedEvent<'_>>> = Vec::new();
    for matched in matched {
        let place = *places.entry(matched.key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(matched);
    }
    groups
}
