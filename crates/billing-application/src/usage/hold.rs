//! Holds: room that limits reserve for usage that is about to happen (billing rules 11).

use std::collections::BTreeSet;

use billing_domain::calendar::Timestamp;
use billing_domain::event_input::{NamedCustomer, NamedUsageProduct, NewUsageEvent, OnConflict};
use billing_domain::hold::{Hold, HoldEntry, HoldState, KEPT_SECONDS, MAX_OPEN_ENTRIES, digest_of};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::limit::judge;
use billing_domain::limit::LimitValue;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Insertion, StoreError};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerId, CustomerRef, HoldRef, UsageProductRef};
use billing_domain::refusal::Refusal;
use billing_domain::usage::{FactsDigest, ReportData, UsageKey, Validations};
use billing_domain::violation::Violations;

use super::ingest::{IngestBatch, IngestItem, periods_of};
use super::progress::{IngestProgress, MatchedEvent};
use super::recall::recall;
use super::record::NO_ANSWER;
use crate::Services;
use crate::basics::purge_in_parts;
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};
use crate::limits::{AddedNumbers, Watch};

/// The number of entries deleted in one transaction.
const PURGED_PER_TRANSACTION: u32 = 1_000;

/// An entry of a requested hold.
#[derive(Clone, Debug)]
pub struct HeldUsage {
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The quantity.
    pub quantity: Quantity,
    /// The labels, which can decide where the usage counts.
    pub report_data: Option<ReportData>,
    /// The checks against the document.
    pub validations: Option<Validations>,
}

/// A request for a hold.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// The caller's reference, unique within the customer.
    pub hold_ref: HoldRef,
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The usage; all of it gets room, or nothing.
    pub usage: Vec<HeldUsage>,
    /// The time for which the hold stays open, in seconds.
    pub expires_in: u32,
}

/// A hold with its state.
#[derive(Clone, Debug)]
pub struct HoldView {
    /// The hold.
    pub hold: Hold,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The state now.
    pub state: HoldState,
    /// What is left of the customer's limits, for a hold that was made now.
    pub limits: Option<Vec<LimitValue>>,
}

impl HoldView {
    fn of(hold: Hold, customer_ref: &CustomerRef, now: Timestamp) -> Self {
        Self { state: hold.state(now), hold, customer_ref: customer_ref.clone(), limits: None }
    }
}

/// Makes a hold: its usage counts for limits like events of now, until events report it, or the hold is released or expires. It opens
/// no document. The same request again returns the stored hold.
///
/// # Errors
/// Returns one of these errors:
/// - The errors of events with this usage, with the paths of the entries.
/// - [`UseCaseError::LimitReached`] if the usage would raise a number above its maximum.
/// - [`UseCaseError::Invalid`] `not_holdable` for usage whose latest value or distinct values count, or `too_many_holds`.
/// - [`UseCaseError::AlreadyExists`] if the customer has another hold with the reference.
pub fn create_hold(cx: &mut Cx<'_>, request: &HoldRequest) -> UseCaseResult<HoldView> {
    let HoldRequest { hold_ref, customer_ref, usage, expires_in } = request;
    if usage.is_empty() {
        return Err(Refusal::field(&["usage"], "required", "must have at least one element").into());
    }
    let customer = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?.pop();
    let customer_id = customer.ok_or_else(|| unknown_reference(&["customer_ref"], ResourceKind::Customer))?.id;
    let facts = |held: &HeldUsage| {
        let usage_product = NamedUsageProduct::Ref(held.usage_product_ref.clone());
        FactsDigest::of(None, &usage_product, held.quantity, held.report_data.as_ref())
    };
    let digest = digest_of(*expires_in, usage.iter().map(|held| (facts(held), held.validations.as_ref())));
    if let Some(present) = cx.tx.hold(cx.organization, customer_id, hold_ref)? {
        if present.digest != digest {
            return Err(UseCaseError::AlreadyExists { thing: ResourceKind::Hold, field: "hold_ref" });
        }
        return Ok(HoldView::of(present, customer_ref, cx.now));
    }
    let event = |held: &HeldUsage| NewUsageEvent {
        customer: NamedCustomer::Ref(customer_ref.clone()),
        usage_product: NamedUsageProduct::Ref(held.usage_product_ref.clone()),
        occurred_at: cx.now,
        is_time_of_receipt: true,
        quantity: held.quantity,
        report_data: held.report_data.clone(),
        validations: held.validations.clone(),
        formatted: None,
        key: None,
        on_conflict: OnConflict::Reject,
        occurred: false,
        hold_ref: None,
        import: None,
    };
    let events: Vec<NewUsageEvent> = usage.iter().map(event).collect();
    let by = cx.by;
    let items: Vec<IngestItem<'_>> = events.iter().map(|event| IngestItem { event, by, answer: NO_ANSWER }).collect();
    let batch = IngestBatch { events: &items, shortcuts: None, also_held: &BTreeSet::new() };
    let (keys, limits) = batch.reserve(cx, customer_id)?;
    let entry = |(key, held): (UsageKey, &HeldUsage)| HoldEntry { key, quantity: held.quantity, end: None };
    let hold = Hold {
        hold_ref: hold_ref.clone(),
        customer_id,
        digest,
        made_at: cx.now,
        expires_at: cx.now.plus_seconds(i64::from(*expires_in)),
        entries: keys.into_iter().zip(usage).map(entry).collect(),
    };
    if cx.tx.insert_hold(cx.organization, &hold)? != Insertion::Done {
        // Another request made it; the next attempt finds it.
        return Err(StoreError::Contended.into());
    }
    cx.note_numbers(customer_id, Vec::new());
    Ok(HoldView { limits: Some(limits), ..HoldView::of(hold, customer_ref, cx.now) })
}

impl IngestBatch<'_> {
    /// Judges the events of a customer together with the open holds, and changes nothing. Returns the running totals in which they would
    /// count, and the numbers of limits if they are held.
    fn reserve(&self, cx: &mut Cx<'_>, customer_id: CustomerId) -> UseCaseResult<(Vec<UsageKey>, Vec<LimitValue>)> {
        let (names, _) = recall(cx, None, &Vec::from_iter(self.new_events()))?;
        let mut progress = IngestProgress::of(self.events.len());
        let resolved = self.fresh(cx, &names, &mut progress)?;
        let (mut books, mut matched, refused) = self.lock_contracts(cx, &resolved)?;
        for (index, refusal) in refused {
            progress.refuse(index, refusal)?;
        }
        for event in &matched {
            let book = books.get(&event.key.contract_ref);
            if let Some(violations) = book.and_then(|book| not_holdable(book, event)) {
                progress.refuse(event.resolved.index, violations.into())?;
            }
        }
        require_all(&mut progress)?;
        progress.live = self.lock_totals(cx, &matched, &mut books)?;
        let watch = Watch::lock(cx, &mut books, &periods_of(&matched), &BTreeSet::from([customer_id]))?;
        if watch.open_entries(customer_id) + matched.len() > MAX_OPEN_ENTRIES {
            let detail =
                format!("must be a customer with at most {MAX_OPEN_ENTRIES} open entries: release holds, or let them expire");
            return Err(Refusal::field(&["customer_ref"], "too_many_holds", detail).into());
        }
        matched.sort_by_key(|event| event.resolved.index);
        let keys = matched.iter().map(|event| event.key.clone()).collect();
        let mut before = AddedNumbers::default();
        watch.note(cx, &mut before, customer_id, &books, (None, &progress.settled))?;
        let loaded = Self::post_groups(cx, &mut books, matched, &mut progress)?;
        require_all(&mut progress)?;
        let mut after = before.clone();
        let changed = loaded.into_keys().collect();
        watch.note(cx, &mut after, customer_id, &books, (Some(&changed), &progress.settled))?;
        let (before, after) = (watch.values(customer_id, &before)?, watch.values(customer_id, &after)?);
        judge(&before, &after)?;
        // What the usage would add is held from now on.
        let held = before.into_iter().zip(after).map(|(before, after)| before.with_usage_held(&after));
        Ok((keys, held.collect::<Result<_, _>>()?))
    }
}

/// Returns why usage cannot be held: only sums, counts and maxima are known before the usage.
fn not_holdable(book: &ContractBook, event: &MatchedEvent<'_>) -> Option<Violations> {
    let period = book.contract.period_of(&event.key)?;
    let mut metering = period.terms.metering(&event.key.usage_product_ref);
    let is_holdable = metering.all(|(_, metered)| metered.aggregation.is_holdable());
    let detail = "must be a usage product whose quantities are summed, counted or compared: others cannot be held";
    (!is_holdable).then(|| Violations::one(&["usage_product_ref"], "not_holdable", detail))
}

/// Refuses the hold if an entry is refused. The paths of fields are those of the request.
fn require_all(progress: &mut IngestProgress<'_>) -> UseCaseResult<()> {
    let mut found = Violations::none();
    for (index, outcome) in progress.outcomes.iter_mut().enumerate() {
        match outcome.take() {
            Some(Err(UseCaseError::Invalid(violations))) => found.extend_below(&["usage", &index.to_string()], violations),
            Some(Err(other)) => return Err(other),
            _ => {}
        }
    }
    Ok(found.or(())?)
}

/// Returns a hold of a customer.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer has no such hold.
pub fn get_hold(cx: &mut Cx<'_>, customer_ref: &CustomerRef, hold_ref: &HoldRef) -> UseCaseResult<HoldView> {
    let unknown = || UseCaseError::Unknown(ResourceKind::Hold);
    let customer = cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(customer_ref))?.pop();
    let hold = cx.tx.hold(cx.organization, customer.ok_or_else(unknown)?.id, hold_ref)?;
    Ok(HoldView::of(hold.ok_or_else(unknown)?, customer_ref, cx.now))
}

/// Returns a page of the holds of a customer in the order of creation, or only of the open ones. The page is empty if the customer does
/// not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the holds cannot be read.
pub fn list_holds(
    cx: &mut Cx<'_>,
    customer_ref: &CustomerRef,
    is_open: bool,
    page: PageRequest,
) -> UseCaseResult<Page<HoldView>> {
    let mut customer_id = None;
    if !narrow_to_customer(cx.tx, cx.organization, Some(customer_ref), &mut customer_id)? {
        return Ok(Page::empty());
    }
    let Some(customer_id) = customer_id else { return Ok(Page::empty()) };
    let found = cx.tx.holds(cx.organization, customer_id, is_open.then_some(cx.now), page)?;
    let now = cx.now;
    let items = found.items.into_iter().map(|hold| HoldView::of(hold, customer_ref, now)).collect();
    Ok(Page { items, total: found.total })
}

/// Releases the open entries of a hold. It only makes room, so it takes no lock.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the customer has no such hold.
pub fn release_hold(cx: &mut Cx<'_>, customer_ref: &CustomerRef, hold_ref: &HoldRef) -> UseCaseResult<()> {
    let HoldView { hold, .. } = get_hold(cx, customer_ref, hold_ref)?;
    Ok(cx.tx.release_hold(cx.organization, hold.customer_id, hold_ref, cx.now)?)
}

/// Deletes holds that expired more than a day ago, in every organization. Returns the number of deleted entries.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if they cannot be deleted.
pub fn forget_old_holds(services: &Services) -> UseCaseResult<u64> {
    let before = services.now().plus_seconds(-KEPT_SECONDS);
    purge_in_parts(services, PURGED_PER_TRANSACTION, |tx, limit| tx.purge_holds(before, limit))
}
