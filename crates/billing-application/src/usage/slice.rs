//! A slice of events in one transaction: each is put on its document, or refused without a trace and without
//! failing its neighbours (billing rules 3 and 4).
//!
//! What the events have in common is read, held and written once: customers and products, contracts, running totals.
//! Contracts are held before totals and totals before numbers are given, each kind in the order of its references, so
//! that slices that meet wait for each other and not in a circle.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::contract::Contract;
use billing_domain::document::numbering::DocumentNumbers;
use billing_domain::document::totals::usage_key;
use billing_domain::document::{DocumentHead, DocumentState};
use billing_domain::idempotency::{IdempotencyKey, RequestKey};
use billing_domain::matching::{EventFacts, match_event};
use billing_domain::party::{Entity, NetTerms};
use billing_domain::ports::{Lock, StoreError, Tx, attempt};
use billing_domain::refs::{ContractRef, CustomerId, EventRef, ProductNo, UsageProductRef};
use billing_domain::usage::{KeptEvent, Placement, UsageEvent, UsageKey, UsageTotal};

use super::names::{Named, Names};
use super::place::{MAX_HOLD_ATTEMPTS, goes_on_a_draft, place, refuse_future};
use super::read::{EventView, period_invoice};
use super::record::{NewUsageEvent, TakenUsage};
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::TWIN_WAIT;
use crate::ledger::{Account, Change, corrupt, entities_of, settle};

/// What the keys of events are held under, wherever the events come in.
const EVENT_KEYS: &str = "usage events";

/// Events on their way into one transaction.
pub(super) struct Slice<'a> {
    pub(super) services: &'a Services<'a>,
    pub(super) principal: &'a Principal,
    pub(super) events: &'a [NewUsageEvent],
    /// What the repeats of an event with a key are answered.
    pub(super) answer: &'a dyn Fn(&EventView) -> String,
    pub(super) now: Timestamp,
}

/// An event whose customer and product are known.
#[derive(Clone, Copy)]
struct Known<'n> {
    index: usize,
    named: Named<'n>,
}

/// An event whose place is known.
struct Landed<'n> {
    known: Known<'n>,
    event_ref: EventRef,
    key: UsageKey,
    service_period: Period,
}

/// A service period of a contract product.
type PeriodKey = (ContractRef, ProductNo, Date);
type Accounts = BTreeMap<ContractRef, Account>;

/// What has become of the events so far.
struct Progress<'n> {
    outcomes: Vec<Option<UseCaseResult<TakenUsage>>>,
    /// Repeats of an event of the same slice, with the index of that event.
    twins: Vec<(usize, usize)>,
    totals: BTreeMap<UsageKey, UsageTotal>,
    placed: Vec<(Landed<'n>, DocumentHead)>,
}

impl<'n> Progress<'n> {
    fn refuse(&mut self, index: usize, error: UseCaseError) -> Result<(), StoreError> {
        match error {
            UseCaseError::Store(error) => Err(error),
            refusal => {
                self.outcomes[index] = Some(Err(refusal));
                Ok(())
            }
        }
    }

    fn total(&self, key: &UsageKey) -> UseCaseResult<UsageTotal> {
        self.totals.get(key).copied().ok_or_else(|| corrupt("a running total", &key.usage_product_ref, "is not there"))
    }

    fn put(&mut self, events: impl IntoIterator<Item = Landed<'n>>, head: &DocumentHead, total: UsageTotal) {
        for landed in events {
            self.totals.insert(landed.key.clone(), total);
            self.placed.push((landed, head.clone()));
        }
    }
}

impl Slice<'_> {
    /// Takes the events: what becomes of each, in their order.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn take(&self, tx: &mut dyn Tx) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
        self.hold_key(tx)?;
        let names = Names::read(tx, self.principal.organization, self.events)?;
        let mut progress = Progress {
            outcomes: self.events.iter().map(|_| None).collect(),
            twins: Vec::new(),
            totals: BTreeMap::new(),
            placed: Vec::new(),
        };
        let known = self.resolve(&names, &mut progress)?;
        let known = self.without_repeats(tx, known, &mut progress)?;
        let known = self.without_future(known, &mut progress)?;
        let (accounts, landed) = self.hold(tx, &known, &mut progress)?;
        self.lock_totals(tx, &landed, &mut progress)?;
        for (contract_ref, group) in grouped(landed) {
            let account = accounts.get(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))?;
            self.settle_group(tx, account, group, &mut progress)?;
        }
        self.store(tx, progress)
    }

    /// Holds the key of an event that comes alone against a twin on another server, which waits here and nowhere else. In
    /// a slice of many there is too much to hold: there a twin is met when the keys are kept, and the slice runs again.
    fn hold_key(&self, tx: &mut dyn Tx) -> UseCaseResult<()> {
        let [NewUsageEvent { sent: Some(sent), .. }] = self.events else { return Ok(()) };
        let request = RequestKey { path: EVENT_KEYS.to_owned(), key: sent.key.clone() };
        if tx.hold_key(self.principal.organization, &request, TWIN_WAIT)? { Ok(()) } else { Err(UseCaseError::RequestInProgress) }
    }

    fn resolve<'n>(&self, names: &'n Names, progress: &mut Progress<'_>) -> Result<Vec<Known<'n>>, StoreError> {
        let mut known = Vec::with_capacity(self.events.len());
        for (index, event) in self.events.iter().enumerate() {
            match names.of(event) {
                Ok(named) => known.push(Known { index, named }),
                Err(violations) => progress.refuse(index, violations.into())?,
            }
        }
        Ok(known)
    }

    /// Answers the events that were taken before under their keys, and sets repeats within the slice aside.
    fn without_repeats<'n>(
        &self,
        tx: &mut dyn Tx,
        known: Vec<Known<'n>>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Known<'n>>, StoreError> {
        let mut keys: BTreeMap<CustomerId, Vec<IdempotencyKey>> = BTreeMap::new();
        for known in &known {
            if let Some(sent) = &self.events[known.index].sent {
                keys.entry(known.named.customer.id).or_default().push(sent.key.clone());
            }
        }
        let mut kept: BTreeMap<(CustomerId, IdempotencyKey), KeptEvent> = BTreeMap::new();
        for (customer_id, keys) in keys {
            for event in tx.kept_events(self.principal.organization, customer_id, &keys)? {
                kept.insert((customer_id, event.sent.key.clone()), event);
            }
        }
        let mut first: BTreeMap<(CustomerId, &IdempotencyKey), usize> = BTreeMap::new();
        let mut fresh = Vec::with_capacity(known.len());
        for known in known {
            let Some(sent) = &self.events[known.index].sent else {
                fresh.push(known);
                continue;
            };
            let customer_id = known.named.customer.id;
            if let Some(kept) = kept.get(&(customer_id, sent.key.clone())) {
                let same = kept.sent.body == sent.body;
                let outcome =
                    if same { Ok(TakenUsage::Before(kept.answer.clone())) } else { Err(UseCaseError::IdempotencyKeyReuse) };
                progress.outcomes[known.index] = Some(outcome);
                continue;
            }
            match first.get(&(customer_id, &sent.key)) {
                None => {
                    first.insert((customer_id, &sent.key), known.index);
                    fresh.push(known);
                }
                Some(first) if self.events[*first].sent.as_ref() == Some(sent) => progress.twins.push((known.index, *first)),
                Some(_) => progress.refuse(known.index, UseCaseError::IdempotencyKeyReuse)?,
            }
        }
        Ok(fresh)
    }

    fn without_future<'n>(&self, known: Vec<Known<'n>>, progress: &mut Progress<'_>) -> Result<Vec<Known<'n>>, StoreError> {
        let mut past = Vec::with_capacity(known.len());
        for known in known {
            match refuse_future(self.events[known.index].occurred_at, self.now) {
                Ok(()) => past.push(known),
                Err(refusal) => progress.refuse(known.index, refusal)?,
            }
        }
        Ok(past)
    }

    fn facts<'f>(&'f self, known: &Known<'f>) -> EventFacts<'f> {
        let event = &self.events[known.index];
        EventFacts {
            usage_product_ref: &known.named.product.usage_product_ref,
            occurred_at: event.occurred_at,
            validations: event.validations.as_ref(),
        }
    }

    /// Finds the contracts the events land on and holds them: shared where all that lands goes on drafts that are
    /// there, exclusively where a document has to be opened or corrected, so that nothing moves until the commit.
    fn hold<'n>(
        &self,
        tx: &mut dyn Tx,
        known: &[Known<'n>],
        progress: &mut Progress<'_>,
    ) -> UseCaseResult<(Accounts, Vec<Landed<'n>>)> {
        let mut exclusive: BTreeSet<ContractRef> = BTreeSet::new();
        for _ in 0..MAX_HOLD_ATTEMPTS {
            let (accounts, landed, refused) = self.land(tx, known)?;
            exclusive.extend(self.not_on_drafts(tx, &accounts, &landed)?);
            let mut unchanged = true;
            for (contract_ref, account) in &accounts {
                let lock = if exclusive.contains(contract_ref) { Lock::Exclusive } else { Lock::Shared };
                let contract = &account.contract;
                let version = tx.lock_contract(account.organization, contract.customer_id, *contract_ref, lock)?;
                unchanged &= version == Some(contract.version);
            }
            // Look again now that nobody can change it: a contract may have been edited, a document issued.
            let shared = |landed: &&Landed<'_>| !exclusive.contains(&landed.key.contract_ref);
            if unchanged && self.not_on_drafts(tx, &accounts, landed.iter().filter(shared))?.is_empty() {
                for (index, refusal) in refused {
                    progress.refuse(index, refusal)?;
                }
                return Ok((accounts, landed));
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Where the events land, as things are.
    #[allow(clippy::type_complexity, reason = "read in one place")]
    fn land<'n>(
        &self,
        tx: &mut dyn Tx,
        known: &[Known<'n>],
    ) -> UseCaseResult<(Accounts, Vec<Landed<'n>>, Vec<(usize, UseCaseError)>)> {
        let organization = self.principal.organization;
        let mut candidates: BTreeMap<(CustomerId, &UsageProductRef), Vec<Contract>> = BTreeMap::new();
        for Known { named: Named { customer, product }, .. } in known {
            let pair = (customer.id, &product.usage_product_ref);
            if let std::collections::btree_map::Entry::Vacant(place) = candidates.entry(pair) {
                place.insert(tx.contracts_metering(organization, customer.id, pair.1)?);
            }
        }
        let entities = entities_of(tx, organization, candidates.values().flatten())?;
        let (mut accounts, mut landed, mut refused) = (Accounts::new(), Vec::with_capacity(known.len()), Vec::new());
        for known in known {
            let Named { customer, product } = known.named;
            let contracts = candidates.get(&(customer.id, &product.usage_product_ref)).map_or(&[][..], Vec::as_slice);
            match match_event(self.facts(known), contracts, &entities) {
                Ok(found) => {
                    let contract_ref = found.contract.contract_ref;
                    let key = usage_key(contract_ref, &found.period, &product.usage_product_ref);
                    // In the order of arrival: of two at one instant, the later has the greater reference.
                    let event_ref = EventRef::from_uuid(self.services.ids.new_id());
                    let service_period = found.period.period.span();
                    landed.push(Landed { known: *known, event_ref, key, service_period });
                    accounts.entry(contract_ref).or_insert_with(|| Account {
                        organization,
                        contract: found.contract.clone(),
                        customer: customer.clone(),
                        entities: entities.iter().filter(|entity| bills(found.contract, entity)).cloned().collect(),
                    });
                }
                Err(refusal) => refused.push((known.index, refusal.into())),
            }
        }
        Ok((accounts, landed, refused))
    }

    /// The contracts of events that do more than add to the usage of a draft that is there.
    fn not_on_drafts<'l, 'n: 'l>(
        &self,
        tx: &mut dyn Tx,
        accounts: &Accounts,
        landed: impl IntoIterator<Item = &'l Landed<'n>>,
    ) -> UseCaseResult<BTreeSet<ContractRef>> {
        let mut seen: BTreeSet<PeriodKey> = BTreeSet::new();
        let mut others = BTreeSet::new();
        for landed in landed {
            let key = &landed.key;
            if !seen.insert((key.contract_ref, key.product_no, key.period_start)) || others.contains(&key.contract_ref) {
                continue;
            }
            let account = &accounts[&key.contract_ref];
            if !goes_on_a_draft(tx, account, self.facts(&landed.known))? {
                others.insert(key.contract_ref);
            }
        }
        Ok(others)
    }

    fn lock_totals(&self, tx: &mut dyn Tx, landed: &[Landed<'_>], progress: &mut Progress<'_>) -> Result<(), StoreError> {
        let mut keys: BTreeMap<CustomerId, BTreeSet<UsageKey>> = BTreeMap::new();
        for landed in landed {
            keys.entry(landed.known.named.customer.id).or_default().insert(landed.key.clone());
        }
        for (customer_id, keys) in keys {
            let keys = Vec::from_iter(keys);
            progress.totals.extend(tx.lock_usage(self.principal.organization, customer_id, &keys)?);
        }
        Ok(())
    }

    /// Puts events of one running total on documents: together where they only add to the usage of a draft, which
    /// costs the same for any number of them; else one after the other.
    fn settle_group<'n>(
        &self,
        tx: &mut dyn Tx,
        account: &Account,
        group: Vec<Landed<'n>>,
        progress: &mut Progress<'n>,
    ) -> UseCaseResult<()> {
        let mut rest = group.into_iter();
        let mut may_share = true;
        while let Some(first) = rest.next() {
            if may_share && rest.len() > 0 && goes_on_a_draft(tx, account, self.facts(&first.known))? {
                match self.settle_together(tx, account, &first, rest.as_slice(), progress) {
                    Ok((head, total)) => {
                        progress.put(std::iter::once(first).chain(rest), &head, total);
                        return Ok(());
                    }
                    Err(UseCaseError::Store(error)) => return Err(error.into()),
                    // One of them is too much for the document; which, shows one by one.
                    Err(_) => may_share = false,
                }
            }
            // A refused event must leave nothing behind, and its neighbours are stored.
            let outcome = if self.events.len() == 1 {
                self.settle_one(tx, account, &first, progress)
            } else {
                attempt(tx, |tx| self.settle_one(tx, account, &first, progress))
            };
            match outcome {
                Ok((head, total)) => progress.put([first], &head, total),
                Err(refusal) => progress.refuse(first.known.index, refusal)?,
            }
        }
        Ok(())
    }

    fn settle_together(
        &self,
        tx: &mut dyn Tx,
        account: &Account,
        first: &Landed<'_>,
        rest: &[Landed<'_>],
        progress: &Progress<'_>,
    ) -> UseCaseResult<(DocumentHead, UsageTotal)> {
        let before = progress.total(&first.key)?;
        let mut after = before;
        for landed in std::iter::once(first).chain(rest) {
            after = self.plus(after, landed)?;
        }
        self.settle(tx, account, first, before, after)
    }

    fn settle_one(
        &self,
        tx: &mut dyn Tx,
        account: &Account,
        landed: &Landed<'_>,
        progress: &Progress<'_>,
    ) -> UseCaseResult<(DocumentHead, UsageTotal)> {
        let before = progress.total(&landed.key)?;
        self.settle(tx, account, landed, before, self.plus(before, landed)?)
    }

    fn plus(&self, total: UsageTotal, landed: &Landed<'_>) -> UseCaseResult<UsageTotal> {
        let event = &self.events[landed.known.index];
        Ok(total.plus(event.occurred_at, landed.event_ref, event.quantity)?)
    }

    fn settle(
        &self,
        tx: &mut dyn Tx,
        account: &Account,
        landed: &Landed<'_>,
        before: UsageTotal,
        after: UsageTotal,
    ) -> UseCaseResult<(DocumentHead, UsageTotal)> {
        let (period, _) = place(account, self.facts(&landed.known))?;
        let usage_product_ref = &landed.key.usage_product_ref;
        let change = Change { period, usage_product_ref, before, after, standing: None };
        let head = settle(self.services, tx, account, change, self.now)?;
        tx.put_usage(account.organization, account.contract.customer_id, &[(landed.key.clone(), after)])?;
        Ok((head, after))
    }

    /// Stores the events and the keys they were sent with.
    fn store(&self, tx: &mut dyn Tx, progress: Progress<'_>) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
        let Progress { mut outcomes, twins, mut placed, .. } = progress;
        let organization = self.principal.organization;
        placed.sort_by_key(|(landed, _)| landed.known.index);
        let events: Vec<UsageEvent> =
            placed.iter().map(|(landed, head)| self.event(landed, head)).collect::<UseCaseResult<_>>()?;
        tx.insert_events(organization, &events)?;
        let mut kept: BTreeMap<CustomerId, Vec<KeptEvent>> = BTreeMap::new();
        for ((landed, head), event) in placed.into_iter().zip(events) {
            let (index, event_ref, customer_id) = (landed.known.index, event.event_ref, event.customer_id);
            let view = self.view(tx, landed.known.named, head, event)?;
            if let Some(sent) = &self.events[index].sent {
                let answer = (self.answer)(&view);
                kept.entry(customer_id).or_default().push(KeptEvent { sent: sent.clone(), event_ref, answer });
            }
            outcomes[index] = Some(Ok(TakenUsage::Now(Box::new(view))));
        }
        for (customer_id, kept) in kept {
            tx.keep_events(organization, customer_id, &kept)?;
        }
        for (index, first) in twins {
            let outcome = match &outcomes[first] {
                Some(Ok(TakenUsage::Now(view))) => Ok(TakenUsage::Before((self.answer)(view))),
                _ => Err(UseCaseError::Conflict {
                    code: "repeats_refused_event",
                    detail: format!("the event at index {first} has the same idempotency key and was refused"),
                }),
            };
            outcomes[index] = Some(outcome);
        }
        let nothing = || UseCaseError::InvariantViolation("an event without an outcome");
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(nothing()))).collect())
    }

    fn event(&self, landed: &Landed<'_>, head: &DocumentHead) -> UseCaseResult<UsageEvent> {
        let new = &self.events[landed.known.index];
        Ok(UsageEvent {
            event_ref: landed.event_ref,
            customer_id: landed.known.named.customer.id,
            usage_product_ref: landed.key.usage_product_ref.clone(),
            occurred_at: new.occurred_at,
            quantity: new.quantity,
            report_data: new.report_data.clone(),
            validations: new.validations.clone(),
            placement: Placement {
                contract_ref: landed.key.contract_ref,
                product_no: landed.key.product_no,
                service_period: landed.service_period,
                document_ref: head.document_ref,
            },
            formatted: new.formatted.clone(),
            recorded_at: self.now,
            revision: 1,
            revised_at: self.now,
            revised_by: self.principal.actor,
            deleted: false,
        })
    }

    fn view(&self, tx: &mut dyn Tx, named: Named<'_>, head: DocumentHead, event: UsageEvent) -> UseCaseResult<EventView> {
        // Only a document of an event's own is issued with it, and has a parent.
        let (document_state, parent) = if head.net_terms == NetTerms::DueUponUsage {
            let document = tx.document(self.principal.organization, head.document_ref)?;
            let document = document.ok_or_else(|| corrupt("a document", &head.document_ref, "is not there"))?;
            (document.state()?, period_invoice(tx, self.principal.organization, &document)?)
        } else {
            (DocumentState::Draft, None)
        };
        Ok(EventView {
            event,
            customer_ref: named.customer.customer_ref.clone(),
            customer_name: named.customer.profile.name.clone(),
            usage_product_name: named.product.profile.name.clone(),
            document_numbers: DocumentNumbers::of_one(head.number),
            document_state,
            parent,
        })
    }
}

fn bills(contract: &Contract, entity: &Entity) -> bool {
    contract.entity_refs().any(|entity_ref| *entity_ref == entity.entity_ref)
}

/// Events of one running total each, in the order in which the first of each came.
fn grouped(landed: Vec<Landed<'_>>) -> Vec<(ContractRef, Vec<Landed<'_>>)> {
    let mut places: BTreeMap<UsageKey, usize> = BTreeMap::new();
    let mut groups: Vec<(ContractRef, Vec<Landed<'_>>)> = Vec::new();
    for landed in landed {
        let place = *places.entry(landed.key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((landed.key.contract_ref, Vec::new()));
        }
        groups[place].1.push(landed);
    }
    groups
}
