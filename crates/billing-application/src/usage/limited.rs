//! Puts matched events on documents. Events of customers with limits are judged before anything is written (billing rules 11).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::ledger::limit::judge;
use billing_domain::limit::LimitValue;
use billing_domain::refs::CustomerId;

use super::ingest::{BooksByRef, IngestBatch, grouped};
use super::progress::{IngestProgress, MatchedEvent, NumbersByCustomer};
use crate::book_repository::corrupt;
use crate::carry_out::Cx;
use crate::credit_books::pass_credit_on;
use crate::error::UseCaseResult;
use crate::limits::{AddedNumbers, Watch};

impl IngestBatch<'_> {
    /// Puts events on documents. Returns the affected books as they were before.
    pub(super) fn post_groups<'n>(
        cx: &Cx<'_>,
        books: &mut BooksByRef,
        matched: Vec<MatchedEvent<'n>>,
        progress: &mut IngestProgress<'n>,
    ) -> UseCaseResult<BooksByRef> {
        // One copy of a book serves all its groups, because few decisions are refused.
        let mut loaded: BooksByRef = BTreeMap::new();
        for group in grouped(matched) {
            let contract_ref = group[0].key.contract_ref;
            let book = books.get_mut(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))?;
            let before = loaded.entry(contract_ref).or_insert_with(|| book.clone());
            Self::post_group(cx, (before, book), group, progress)?;
            pass_credit_on(books, contract_ref)?;
        }
        Ok(loaded)
    }

    /// Puts the events of customers with limits on documents. The events of a customer are judged as a whole first. If the whole
    /// does not fit, they are judged one by one, in the order of arrival. Returns the numbers afterwards, by customer.
    pub(super) fn post_within_limits<'n>(
        &self,
        cx: &Cx<'_>,
        watch: &Watch,
        books: &mut BooksByRef,
        matched: Vec<MatchedEvent<'n>>,
        progress: &mut IngestProgress<'n>,
    ) -> UseCaseResult<NumbersByCustomer> {
        let mut numbers: NumbersByCustomer = watch.customers().map(|customer_id| (customer_id, Arc::default())).collect();
        let mut of_customers: BTreeMap<CustomerId, Vec<MatchedEvent<'n>>> = BTreeMap::new();
        for event in matched {
            of_customers.entry(event.resolved.customer.id).or_default().push(event);
        }
        for (customer_id, mut events) in of_customers {
            events.sort_by_key(|event| event.resolved.index);
            let mut amounts = AddedNumbers::default();
            watch.note(cx, &mut amounts, customer_id, books, (None, &progress.settled))?;
            let after = match self.post_whole(cx, (watch, customer_id, &amounts), books, &events, progress)? {
                Some(after) => after,
                None => self.post_each(cx, (watch, customer_id, amounts), books, events, progress)?,
            };
            numbers.insert(customer_id, after.into_iter().filter(|number| number.is_present).collect());
        }
        Ok(numbers)
    }

    /// Puts all events of a customer on documents, and returns the numbers afterwards. Returns `None`, and leaves no trace, if a limit
    /// rejects one of them.
    fn post_whole<'n>(
        &self,
        cx: &Cx<'_>,
        (watch, customer_id, amounts): (&Watch, CustomerId, &AddedNumbers),
        books: &mut BooksByRef,
        events: &[MatchedEvent<'n>],
        progress: &mut IngestProgress<'n>,
    ) -> UseCaseResult<Option<Vec<LimitValue>>> {
        let is_judged = events.iter().any(|event| self.is_rejectable(event));
        if is_judged && events.len() == 1 {
            return Ok(None);
        }
        let placed = progress.placed.len();
        let credited = credited_books(books, customer_id);
        let mut before = Self::post_groups(cx, books, events.to_vec(), progress)?;
        self.settle_holds(watch, placed, progress);
        let mut after = amounts.clone();
        let changed = before.keys().copied().collect();
        watch.note(cx, &mut after, customer_id, books, (Some(&changed), &progress.settled))?;
        let after = watch.values(customer_id, &after)?;
        if !is_judged || judge(&watch.values(customer_id, amounts)?, &after).is_ok() {
            return Ok(Some(after));
        }
        progress.take_back(placed);
        for event in events {
            progress.outcomes[event.resolved.index] = None;
        }
        // The books of other contracts took over the credit.
        before.extend(credited);
        books.extend(before);
        Ok(None)
    }

    /// Puts the events of a customer on documents one by one, and returns the numbers afterwards. An event that a limit rejects leaves
    /// no trace.
    fn post_each<'n>(
        &self,
        cx: &Cx<'_>,
        (watch, customer_id, mut amounts): (&Watch, CustomerId, AddedNumbers),
        books: &mut BooksByRef,
        events: Vec<MatchedEvent<'n>>,
        progress: &mut IngestProgress<'n>,
    ) -> UseCaseResult<Vec<LimitValue>> {
        let mut before = watch.values(customer_id, &amounts)?;
        for event in events {
            let (index, contract_ref) = (event.resolved.index, event.key.contract_ref);
            let is_rejectable = self.is_rejectable(&event);
            let book = books.get_mut(&contract_ref).ok_or_else(|| corrupt("a contract", &contract_ref, "is not held"))?;
            let unchanged = book.clone();
            let placed = progress.placed.len();
            Self::post_group(cx, (&unchanged, book), vec![event], progress)?;
            if progress.placed.len() == placed {
                // Another rule rejected the event.
                continue;
            }
            self.settle_holds(watch, placed, progress);
            let credited = credited_books(books, customer_id);
            pass_credit_on(books, contract_ref)?;
            let mut with_event = amounts.clone();
            let changed = BTreeSet::from([contract_ref]);
            watch.note(cx, &mut with_event, customer_id, books, (Some(&changed), &progress.settled))?;
            let after = watch.values(customer_id, &with_event)?;
            match judge(&before, &after) {
                Err(refusal) if is_rejectable => {
                    books.extend(credited);
                    books.insert(contract_ref, unchanged);
                    progress.take_back(placed);
                    progress.refuse(index, refusal.into())?;
                }
                Ok(()) | Err(_) => (amounts, before) = (with_event, after),
            }
        }
        Ok(before)
    }

    /// Ends the open entries of holds that the placed events from `first` on name, in the order of arrival.
    pub(super) fn settle_holds(&self, watch: &Watch, first: usize, progress: &mut IngestProgress<'_>) {
        let mut placed: Vec<&MatchedEvent<'_>> = progress.placed[first..].iter().map(|(event, _)| event).collect();
        placed.sort_by_key(|event| event.resolved.index);
        for MatchedEvent { resolved, counted, key, .. } in placed {
            let Some(hold_ref) = &self.events[resolved.index].event.hold_ref else { continue };
            let entry = watch.entry_of((resolved.customer.id, hold_ref), &key.usage_product_ref, &progress.settled);
            if let Some(entry) = entry {
                progress.settled.insert(entry.clone(), counted.event_ref);
            }
        }
    }

    fn is_rejectable(&self, event: &MatchedEvent<'_>) -> bool {
        self.events[event.resolved.index].event.is_rejectable()
    }
}

/// Returns copies of the books of a customer with credit, which change together.
fn credited_books(books: &BooksByRef, customer_id: CustomerId) -> BooksByRef {
    let of_customer = books.iter().filter(|(_, book)| book.contract.customer_id == customer_id && book.credit().is_some());
    of_customer.map(|(contract_ref, book)| (*contract_ref, book.clone())).collect()
}
