//! Usage counted again from its events by the terms of a contract (billing rules 7).

use std::collections::{BTreeMap, BTreeSet};

use super::ContractBook;
use super::live_labels::LiveLabels;
use crate::contract::Contract;
use crate::contract::amendment::Amendment;
use crate::decimal::AmountOutOfRange;
use crate::document::totals::UsageTotals;
use crate::labels::{LabelDigest, LabelKey};
use crate::refs::EventRef;
use crate::refusal::Refusal;
use crate::usage::{CountedEvent, ReportData, ReportValue, UsageKey, UsageTotal};

/// The maximum number of events that one edit counts again. An exclusive lock delays all events of the contract meanwhile.
pub const MAX_RECOUNTED_EVENTS: u64 = 100_000;

/// Running totals counted again from events, one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recount {
    /// The totals with an event.
    pub totals: BTreeMap<UsageKey, UsageTotal>,
    /// The texts of labels that the totals count (`UNIQUE`). They take memory for each distinct text.
    live: LiveLabels,
    /// The events that the terms don't count, if any.
    pub uncounted: Option<UncountedEvents>,
}

/// Events that the terms of their contract don't count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncountedEvents {
    /// The first of them.
    pub first: EventRef,
    /// The labels of the first.
    pub labels: Option<ReportData>,
    /// Their number.
    pub count: u64,
}

impl Recount {
    /// Returns a total, which is zero without an event.
    pub fn total(&self, key: &UsageKey) -> UsageTotal {
        self.totals.get(key).copied().unwrap_or(UsageTotal::ZERO)
    }

    /// Counts one more event of a contract's period. `digest` is that of the label that `UNIQUE` counts.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if a sum exceeds its digits.
    pub fn count(
        &mut self,
        contract: &Contract,
        period_key: &UsageKey,
        labels: Option<ReportData>,
        digest: Option<LabelDigest>,
        event: CountedEvent,
    ) -> Result<(), AmountOutOfRange> {
        let terms = contract.period_of(period_key).map(|period| period.terms);
        let is_unique = terms.is_some_and(|terms| terms.unique_by(&period_key.usage_product_ref).is_some());
        let digest = digest.filter(|_| is_unique);
        let counting = terms.and_then(|terms| terms.select(&period_key.usage_product_ref, labels.as_ref()).ok());
        match counting.filter(|_| digest.is_some() == is_unique) {
            Some(line_item) => {
                let key = period_key.of_line_item(line_item);
                let event = self.live.add(&key, digest, event);
                let total = self.totals.entry(key).or_insert(UsageTotal::ZERO);
                *total = total.plus(event)?;
            }
            None => match &mut self.uncounted {
                Some(uncounted) => uncounted.count += 1,
                None => self.uncounted = Some(UncountedEvents { first: event.event_ref, labels, count: 1 }),
            },
        }
        Ok(())
    }
}

/// Counts usage again where an edit selects its line items otherwise. Returns the changed totals (billing rules 7).
///
/// `recount` counts the events of a usage product in a period by the terms of the amended contract.
///
/// # Errors
/// Returns [`Refusal::Invalid`] `too_many_events`, [`Refusal::Conflict`] `usage_already_reported` for an event that the new terms
/// don't count, and the errors of `recount`.
pub(super) fn recount_reselected<E: From<Refusal>>(
    book: &ContractBook,
    amendment: &Amendment,
    mut recount: impl FnMut(&Contract, &UsageKey) -> Result<Recount, E>,
) -> Result<UsageTotals, E> {
    let mut reselected: BTreeSet<UsageKey> = BTreeSet::new();
    for (key, _) in book.usage().iter().filter(|(_, total)| total.events > 0) {
        let Some(from) = amendment.since.get(&key.product_no) else { continue };
        let (Some(old), Some(new)) = (book.contract.period_of(key), amendment.contract.period_of(key)) else { continue };
        let is_changed = old.days().end() > *from && new.terms.meters(&key.usage_product_ref);
        if let Some(label) = new.terms.unique_by(&key.usage_product_ref).filter(|_| is_changed)
            && old.terms.unique_by(&key.usage_product_ref) != Some(label)
        {
            return Err(uncounted_label(key, label).into());
        }
        if is_changed && old.terms.is_reselected(new.terms, &key.usage_product_ref, key.line_item_id.as_ref()) {
            reselected.insert(key.of_line_item(None));
        }
    }
    let mut events: u64 = 0;
    for period_key in &reselected {
        events = events.saturating_add(book.usage().joined(period_key).map_err(Refusal::from)?.events);
    }
    if events > MAX_RECOUNTED_EVENTS {
        let detail = format!(
            "must be a later date, because the change selects line items otherwise for {events} reported events, and one edit \
             counts at most {MAX_RECOUNTED_EVENTS} events again"
        );
        return Err(Refusal::field(&["effective_from"], "too_many_events", detail).into());
    }
    let mut changed = UsageTotals::default();
    for period_key in &reselected {
        let counted = recount(&amendment.contract, period_key)?;
        if let Some(uncounted) = counted.uncounted {
            return Err(uncounted_usage(period_key, &uncounted).into());
        }
        for (key, _) in book.usage().of_period(period_key).iter() {
            changed.put(key.clone(), UsageTotal::ZERO);
        }
        for (key, total) in counted.totals {
            changed.put(key, total);
        }
    }
    Ok(changed)
}

/// Refuses an edit whose terms don't count reported usage.
fn uncounted_usage(key: &UsageKey, uncounted: &UncountedEvents) -> Refusal {
    let UncountedEvents { first, labels, count } = uncounted;
    let others = count - 1;
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let detail = format!(
        "the event {first}{more} of {} with the labels {} is already reported in the period from {} and would have no line item: \
         add a line item for it or one with rest, choose a later day for the change, or change the event first",
        key.usage_product_ref,
        labels_text(labels.as_ref()),
        key.period_start
    );
    Refusal::conflict("usage_already_reported", detail)
}

/// Refuses an edit that counts distinct texts of a label for reported usage, whose labels were not compared.
fn uncounted_label(key: &UsageKey, label: &LabelKey) -> Refusal {
    let detail = format!(
        "usage of {} is already reported in the period from {}, and its distinct values of {} were not counted: choose a later day for \
         the change",
        key.usage_product_ref,
        key.period_start,
        label.as_str()
    );
    Refusal::conflict("usage_already_reported", detail)
}

/// Returns labels as `key: text`, separated by commas.
fn labels_text(labels: Option<&ReportData>) -> String {
    let entries = labels.map_or(&[][..], ReportData::entries);
    let shown = entries.iter().filter(|(_, value)| *value != ReportValue::Null).take(MAX_LISTED_LABELS).map(|(key, _)| {
        let text = labels.and_then(|labels| labels.label(key)).unwrap_or_default();
        format!("{key}: {text}")
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "(none)".to_owned() } else { shown.join(", ") }
}

/// The maximum number of labels that a refusal lists.
const MAX_LISTED_LABELS: usize = 10;
