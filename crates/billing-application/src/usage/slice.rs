//! A slice of events in one transaction: each is put on its document, or refused without a trace and without
//! failing its neighbours (billing rules 3 and 4).
//!
//! What the events have in common is read, held and written once: customers and products, contracts, running totals.
//! Contracts are held before totals and totals before numbers are given, contracts and totals in the order of their
//! references, so that slices that meet wait for each other. Number series are held as documents are opened: two slices may
//! meet there in a circle, and the store runs one of them again.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::numbering::DocumentNumbers;
use billing_domain::document::{DocumentHead, DocumentState};
use billing_domain::matching::EventFacts;
use billing_domain::party::NetTerms;
use billing_domain::ports::{StoreError, Tx, attempt};
use billing_domain::refs::{ContractRef, CustomerId};
use billing_domain::usage::{KeptEvent, Placement, UsageEvent, UsageKey, UsageTotal};

use super::arrivals::Known;
use super::landing::Landed;
use super::names::Names;
use super::place::{goes_on_a_draft, place};
use super::read::{EventView, document, period_invoice};
use super::record::{NewUsageEvent, TakenUsage};
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::ledger::{Account, Change, corrupt, settle};

/// Events on their way into one transaction.
pub(super) struct Slice<'a> {
    pub(super) services: &'a Services<'a>,
    pub(super) principal: &'a Principal,
    pub(super) events: &'a [NewUsageEvent],
    /// What the repeats of an event with a key are answered.
    pub(super) answer: &'a dyn Fn(&EventView) -> String,
    pub(super) now: Timestamp,
}

/// What has become of the events so far.
pub(super) struct Progress<'n> {
    outcomes: Vec<Option<UseCaseResult<TakenUsage>>>,
    /// Repeats of an event of the same slice, with the index of that event.
    twins: Vec<(usize, usize)>,
    totals: BTreeMap<UsageKey, UsageTotal>,
    placed: Vec<(Landed<'n>, DocumentHead)>,
}

impl<'n> Progress<'n> {
    /// Notes a refusal. What shows that the books are wrong, or the store, is none: it stops the whole slice.
    pub(super) fn refuse(&mut self, index: usize, error: UseCaseError) -> UseCaseResult<()> {
        if is_fatal(&error) {
            return Err(error);
        }
        self.outcomes[index] = Some(Err(error));
        Ok(())
    }

    /// Notes an event that was taken before.
    pub(super) fn repeat(&mut self, index: usize, answer: String) {
        self.outcomes[index] = Some(Ok(TakenUsage::Before(answer)));
    }

    /// Notes a repeat of an event of the same slice.
    pub(super) fn twin(&mut self, index: usize, first: usize) {
        self.twins.push((index, first));
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
        let known = self.fresh(tx, &names, &mut progress)?;
        let (accounts, landed) = self.hold(tx, &known, &mut progress)?;
        self.lock_totals(tx, &landed, &mut progress)?;
        for (contract_ref, group) in grouped(landed) {
            let account = accounts.get(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))?;
            self.settle_group(tx, account, group, &mut progress)?;
        }
        self.store(tx, progress)
    }

    pub(super) fn facts<'f>(&'f self, known: &Known<'f>) -> EventFacts<'f> {
        let event = &self.events[known.index];
        EventFacts {
            usage_product_ref: &known.product.usage_product_ref,
            occurred_at: event.occurred_at,
            validations: event.validations.as_ref(),
        }
    }

    fn lock_totals(&self, tx: &mut dyn Tx, landed: &[Landed<'_>], progress: &mut Progress<'_>) -> Result<(), StoreError> {
        let mut keys: BTreeMap<CustomerId, BTreeSet<UsageKey>> = BTreeMap::new();
        for landed in landed {
            keys.entry(landed.known.customer.id).or_default().insert(landed.key.clone());
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
                match self.settle(tx, account, &first, rest.as_slice(), progress) {
                    Ok((head, total)) => {
                        progress.put(std::iter::once(first).chain(rest), &head, total);
                        return Ok(());
                    }
                    Err(error) if is_fatal(&error) => return Err(error),
                    // One of them is too much for the document; which, shows one by one.
                    Err(_) => may_share = false,
                }
            }
            // A refused event must leave nothing behind, and its neighbours are stored.
            let outcome = if self.events.len() == 1 {
                self.settle(tx, account, &first, &[], progress)
            } else {
                attempt(tx, |tx| self.settle(tx, account, &first, &[], progress))
            };
            match outcome {
                Ok((head, total)) => progress.put([first], &head, total),
                Err(refusal) => progress.refuse(first.known.index, refusal)?,
            }
        }
        Ok(())
    }

    /// Puts an event, and the rest with it, on one document.
    fn settle(
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
            let event = &self.events[landed.known.index];
            after = after.plus(event.occurred_at, landed.event_ref, event.quantity)?;
        }
        let (period, _) = place(account, self.facts(&first.known))?;
        let usage_product_ref = &first.key.usage_product_ref;
        let change = Change { period, usage_product_ref, before, after, standing: None };
        let head = settle(self.services, tx, account, change, self.now)?;
        tx.put_usage(account.organization, account.contract.customer_id, &[(first.key.clone(), after)])?;
        Ok((head, after))
    }

    /// Stores the events and the keys they were sent with.
    fn store(&self, tx: &mut dyn Tx, progress: Progress<'_>) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
        let Progress { mut outcomes, twins, mut placed, .. } = progress;
        let organization = self.principal.organization;
        placed.sort_by_key(|(landed, _)| landed.known.index);
        let events: Vec<UsageEvent> = placed.iter().map(|(landed, head)| self.event(landed, head)).collect();
        tx.insert_events(organization, &events)?;
        let mut kept: BTreeMap<CustomerId, Vec<KeptEvent>> = BTreeMap::new();
        for ((landed, head), event) in placed.into_iter().zip(events) {
            let (index, event_ref, customer_id) = (landed.known.index, event.event_ref, event.customer_id);
            let view = self.view(tx, landed.known, head, event)?;
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
                    detail: "an event before it has the same idempotency key and was refused".to_owned(),
                }),
            };
            outcomes[index] = Some(outcome);
        }
        let nothing = || UseCaseError::InvariantViolation("an event without an outcome");
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(nothing()))).collect())
    }

    fn event(&self, landed: &Landed<'_>, head: &DocumentHead) -> UsageEvent {
        let new = &self.events[landed.known.index];
        UsageEvent {
            event_ref: landed.event_ref,
            customer_id: landed.known.customer.id,
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
        }
    }

    fn view(&self, tx: &mut dyn Tx, known: Known<'_>, head: DocumentHead, event: UsageEvent) -> UseCaseResult<EventView> {
        // Only a document of an event's own is issued with it, and has a parent.
        let (document_state, parent) = if head.net_terms == NetTerms::DueUponUsage {
            let document = document(tx, self.principal.organization, head.document_ref)?;
            (document.state()?, period_invoice(tx, self.principal.organization, &document)?)
        } else {
            (DocumentState::Draft, None)
        };
        Ok(EventView {
            event,
            customer_ref: known.customer.customer_ref.clone(),
            customer_name: known.customer.profile.name.clone(),
            usage_product_name: known.product.profile.name.clone(),
            document_numbers: DocumentNumbers::of_one(head.number),
            document_state,
            parent,
        })
    }
}

fn is_fatal(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))
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
