//! Limits in the histories: their numbers are those that users read, and they reject what does not fit, and nothing else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use billing_application::balances::balance;
use billing_application::documents::{DocumentQuery, DocumentView, list_documents};
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::limits::{LimitEdit, LimitRequest, create_limit, delete_limit, edit_limit, list_limits};
use billing_application::usage::{
    EventQuery, EventView, HeldUsage, HoldRequest, HoldView, NO_ANSWER, NamedUsageProduct, NewUsageEvent, create_hold,
    list_events, record_event, release_hold,
};
use billing_application::{Cx, UseCase};
use billing_domain::calendar::{Period, Timestamp};
use billing_domain::catalog::Aggregation;
use billing_domain::charge::Charges;
use billing_domain::contract::Contract;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::document::totals::{NetPrice, lines_of_period};
use billing_domain::document::{Document, DocumentKind, DocumentState};
use billing_domain::hold::Hold;
use billing_domain::ledger::BookRows;
use billing_domain::limit::{LimitMetric, LimitReached, LimitValue};
use billing_domain::money::{Currency, MoneySum};
use billing_domain::notification::Subject;
use billing_domain::page::PageRequest;
use billing_domain::patch::Patch;
use billing_domain::ports::{EventSortKey, GrantFilter};
use billing_domain::refs::{DocumentRef, EntityRef, HoldRef, LimitRef, UsageProductRef};
use billing_domain::usage::{Placement, UsageEvent, UsageKey};
use billing_testkit::fixtures;
use rust_decimal::Decimal;

use super::world::Checked;
use super::{UseCases, same};
use crate::support::{read, run};

/// The limits of a history.
#[derive(Default)]
pub(super) struct Limits {
    are_drawn: bool,
    /// The limits with their maxima.
    known: BTreeMap<LimitMetric, (LimitRef, Decimal)>,
    /// Where the last step put an event that a limit could reject.
    judged: RefCell<Option<Placement>>,
    holds: RefCell<Vec<DrawnHold>>,
    /// The rejection of the last event, which was then sent again as usage that has already happened.
    rejected: RefCell<Option<LimitReached>>,
    steps: u32,
}

impl Limits {
    /// About every second history has limits, because each of its steps reads all amounts again.
    pub(super) fn of_history(products: &[RequestedProduct]) -> Self {
        Self { are_drawn: products.len() % 2 == 1, ..Self::default() }
    }
}

impl Limits {
    /// Returns which holds have ended.
    pub(super) fn ended(&self) -> Vec<bool> {
        self.holds.borrow().iter().map(|hold| hold.has_ended).collect()
    }

    /// Takes back what a rehearsal ended.
    pub(super) fn take_back(&self, ended: &[bool]) {
        self.holds.borrow_mut().iter_mut().zip(ended).for_each(|(hold, ended)| hold.has_ended = *ended);
    }
}

/// A hold with one entry.
struct DrawnHold {
    hold_ref: HoldRef,
    key: UsageKey,
    quantity: Decimal,
    expires_at: Timestamp,
    has_ended: bool,
}

/// What users read: the numbers of limits are counted from it.
pub(super) struct Figures {
    /// What is owed in each account.
    owed: BTreeMap<(EntityRef, Currency), MoneySum>,
    contract: Contract,
    events: Vec<UsageEvent>,
    rows: BookRows,
    /// What open holds would add to the numbers of limits.
    held: BTreeMap<LimitMetric, Decimal>,
}

impl Figures {
    /// Returns the number of a metric; of a service period, if the metric has any.
    fn number(&self, metric: &LimitMetric, window: Option<Period>) -> Result<Decimal, String> {
        let period = metric.product().zip(window).and_then(|((_, no), window)| self.contract.period_from(no, window.start()));
        match (metric, period) {
            (LimitMetric::Prepaid { .. }, _) => Err("a metric that isn't drawn".to_owned()),
            (LimitMetric::Owed { entity_ref, currency }, _) => {
                let sum = self.owed.get(&(entity_ref.clone(), *currency)).copied();
                Ok(sum.unwrap_or(MoneySum::zero(*currency)).to_decimal())
            }
            // An edit can move a product to a pricing in another currency.
            (LimitMetric::Spend { currency, .. }, Some(period)) if period.terms.pricing.currency != *currency => {
                Ok(metric.zero())
            }
            (LimitMetric::Spend { .. }, Some(period)) => {
                let charges = Charges::new(self.rows.charges.iter().cloned());
                let items = period.terms.line_items.iter();
                let lines = lines_of_period(&self.contract, &period, items, (&self.rows.usage, &charges));
                let net = lines.and_then(|lines| NetPrice::of(&lines, &period, &charges)?.amount());
                net.map(|net| net.to_decimal()).map_err(|error| format!("{error:?}"))
            }
            (LimitMetric::Quantity { product_no, usage_product_ref, line_item_id, .. }, Some(period)) => {
                let counts = |event: &&UsageEvent| {
                    !event.deleted
                        && event.placement.product_no == *product_no
                        && event.placement.service_period.start() == period.start()
                        && event.usage_product_ref == *usage_product_ref
                        && line_item_id.as_ref().is_none_or(|id| self.contract.line_items_of(event).contains(id))
                };
                let quantities = self.events.iter().filter(counts).map(|event| event.quantity.as_decimal());
                let mut items = period.terms.metering(usage_product_ref);
                let item = items.find(|(item, _)| line_item_id.as_ref().is_none_or(|id| item.id == *id));
                Ok(match item.map(|(_, metered)| metered.aggregation) {
                    Some(Aggregation::Sum) => quantities.sum(),
                    Some(Aggregation::Count) => Decimal::from(quantities.count()),
                    Some(Aggregation::Max) => quantities.max().unwrap_or_default(),
                    Some(Aggregation::Latest | Aggregation::Unique) => return Err("a metric that isn't drawn".to_owned()),
                    None => Decimal::ZERO,
                })
            }
            (_, None) => Ok(metric.zero()),
        }
    }

    /// Returns the metrics that limits can have: of all accounts and contract products.
    fn metrics(&self) -> Vec<LimitMetric> {
        let account = |(entity_ref, currency): &(EntityRef, Currency)| LimitMetric::Owed {
            entity_ref: entity_ref.clone(),
            currency: *currency,
        };
        let mut all: Vec<LimitMetric> = self.owed.keys().map(account).collect();
        let contract_ref = self.contract.contract_ref;
        for product in &self.contract.products {
            let Some(terms) = product.newest_terms() else { continue };
            all.push(LimitMetric::Spend { contract_ref, product_no: product.no, currency: terms.pricing.currency });
            for usage_product_ref in terms.metered_products().collect::<BTreeSet<_>>() {
                if !terms.metering(usage_product_ref).all(|(_, metered)| metered.aggregation.is_holdable()) {
                    continue;
                }
                let of_item = terms.metering(usage_product_ref).last().map(|(item, _)| item.id.clone());
                let quantity = |line_item_id| LimitMetric::Quantity {
                    contract_ref,
                    product_no: product.no,
                    usage_product_ref: usage_product_ref.clone(),
                    line_item_id,
                };
                all.extend([quantity(None), quantity(of_item)]);
            }
        }
        all
    }
}

/// Returns thresholds around a maximum.
fn thresholds_around(metric: &LimitMetric, max: Decimal) -> Vec<String> {
    let step = Decimal::new(1, metric.currency().map_or(0, |currency| currency.exponent()));
    let around = [max - step, max, max + step * Decimal::from(700)];
    let is_allowed = |level: &Decimal| metric.product().is_none() || *level > Decimal::ZERO;
    around.into_iter().filter(is_allowed).map(|level| level.to_string()).collect()
}

/// Returns a request for a limit of a metric.
fn request(metric: &LimitMetric, max: Decimal) -> LimitRequest {
    let of_nothing = LimitRequest {
        metric: metric.kind(),
        customer_ref: None,
        entity_ref: None,
        currency: None,
        contract_ref: metric.product().map(|(contract_ref, _)| contract_ref),
        pricing_ref: None,
        product_no: metric.product().map(|(_, product_no)| product_no),
        usage_product_ref: None,
        line_item_id: None,
        max: Some(max.to_string()),
        thresholds: thresholds_around(metric, max),
    };
    match metric {
        LimitMetric::Owed { entity_ref, currency } => LimitRequest {
            customer_ref: Some(fixtures::customer_ref("acme")),
            entity_ref: Some(entity_ref.clone()),
            currency: Some(*currency),
            ..of_nothing
        },
        LimitMetric::Prepaid { .. } | LimitMetric::Spend { .. } => of_nothing,
        LimitMetric::Quantity { usage_product_ref, line_item_id, .. } => {
            LimitRequest { usage_product_ref: Some(usage_product_ref.clone()), line_item_id: line_item_id.clone(), ..of_nothing }
        }
    }
}

/// Checks that notifications stated the levels that a number has reached, after a transaction of the customer. `notified` counts the
/// notifications before the last step.
fn check_levels(number: &LimitValue, notified: usize) -> Checked {
    let LimitValue { limit, value, .. } = number;
    let reached = limit.levels.thresholds.iter().filter(|level| *level <= value).count();
    same("the thresholds that notifications state", &reached, &limit.reached.thresholds)?;
    let is_above = limit.levels.max.is_some_and(|max| *value > max);
    same("whether notifications state the maximum", &is_above, &limit.reached.max_at.is_some())?;
    same("whether notifications are lost", &true, &(limit.notifications >= notified as u64))
}

impl UseCases {
    /// Returns what users read: balances, lists of documents and events, and the contract.
    fn figures(&self) -> Result<Figures, String> {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let failed = |error: UseCaseError| format!("{error:?}");
        let customer_ref = fixtures::customer_ref("acme");
        let balances = read(services, principal, UseCase::GetBalance, |cx| balance(cx, &customer_ref)).map_err(failed)?;
        let mut owed = BTreeMap::new();
        for balance in balances {
            let sum = balance.due.checked_add(balance.written_off).and_then(|sum| sum.checked_sub(balance.unapplied));
            owed.insert((balance.entity_ref, balance.due.currency()), sum.map_err(|error| format!("{error:?}"))?);
        }
        // What is due for credit is not owed for usage.
        let of_sales = self.documents_of_sales();
        for document in &of_sales {
            let Some(issued) = document.lifecycle.issued() else { continue };
            let (kind, status) = (document.head.kind, document.lifecycle.status());
            let outstanding = document.settlement.owed(kind, status, issued.content.total).expect("small amounts");
            let key = (document.head.entity_ref.clone(), document.head.currency);
            let sum = owed.get_mut(&key).ok_or("a sale without a balance")?;
            for amount in outstanding.amount_due.into_iter().chain([outstanding.written_off]) {
                *sum = sum.checked_sub(amount).map_err(|error| format!("{error:?}"))?;
            }
        }
        let query = DocumentQuery::default();
        let listed =
            read(services, principal, UseCase::ListDocuments, |cx| list_documents(cx, &query, PageRequest::LARGEST.into()));
        let is_counted = |document: &&DocumentView| {
            let opened = document.opened.as_ref().map(|opened| opened.document_ref);
            document.state == DocumentState::Draft && !of_sales.iter().any(|sale| Some(sale.head.document_ref) == opened)
        };
        for draft in listed.map_err(failed)?.items.iter().filter(is_counted) {
            let total = draft.content.total;
            let sum =
                owed.entry((draft.parties.entity_ref.clone(), total.currency())).or_insert(MoneySum::zero(total.currency()));
            let changed = if draft.kind == DocumentKind::Credit { sum.checked_sub(total) } else { sum.checked_add(total) };
            *sum = changed.map_err(|error| format!("{error:?}"))?;
        }
        let query = EventQuery::default();
        let listed = read(services, principal, UseCase::ListEvents, |cx| {
            list_events(cx, &query, EventSortKey::Timestamp, PageRequest::LARGEST)
        });
        let events = listed.map_err(failed)?.items.into_iter().map(|view| view.event).collect();
        let contract = self.bench.read(|tx| tx.contract(principal.organization(), self.contract())).expect("a contract");
        let listed = read(services, principal, UseCase::ListLimits, |cx| list_limits(cx, None, PageRequest::LARGEST));
        let held = listed.map_err(failed)?.items.into_iter().map(|view| (view.number.limit.metric, view.number.held)).collect();
        Ok(Figures { owed, contract, events, rows: self.rows(), held })
    }

    /// Returns the documents of families that sold credit.
    fn documents_of_sales(&self) -> Vec<Document> {
        let organization = self.bench.principal.organization();
        let grants = self.bench.read(|tx| tx.grants(organization, &GrantFilter::default(), PageRequest::LARGEST)).items;
        let sales: BTreeSet<DocumentRef> = grants.iter().filter_map(|grant| Some(grant.sale.as_ref()?.document_ref)).collect();
        if sales.is_empty() {
            return Vec::new();
        }
        self.documents().into_iter().filter(|document| sales.contains(&document.family)).collect()
    }

    /// Creates, edits and deletes limits now and then. Returns the figures before the next step, if there are limits.
    pub(super) fn change_limits(&mut self) -> Result<Option<Figures>, String> {
        self.limits.judged.replace(None);
        self.limits.rejected.replace(None);
        if !self.limits.are_drawn {
            return Ok(None);
        }
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let figures = self.figures()?;
        self.limits.steps += 1;
        let step = self.limits.steps;
        let failed = |error: UseCaseError| format!("a limit isn't taken: {error:?}");
        // Each step changes other limits, so that one rejects what another one allows.
        let drawn = figures.metrics().into_iter().enumerate().filter(|(index, _)| (step as usize + index).is_multiple_of(4));
        for (index, metric) in drawn {
            // Some limits are reached already, some at the next event, and some never.
            let more = [-1, 0, 1, 500, 100_000][(step as usize / 3 + index) % 5];
            let digits = metric.currency().map_or(0, |currency| currency.exponent());
            let present = self.present_window(&metric)?;
            let max = (figures.number(&metric, present)? + Decimal::new(more, digits)).max(Decimal::ZERO);
            let Some((limit_ref, known)) = self.limits.known.get_mut(&metric) else {
                let made = run(services, principal, UseCase::CreateLimit, |cx| create_limit(cx, &request(&metric, max)));
                let made = made.map_err(failed)?.number.limit;
                same("the metric of a new limit", &metric, &made.metric)?;
                self.limits.known.insert(metric, (made.limit_ref, max));
                continue;
            };
            let limit_ref = *limit_ref;
            if step.is_multiple_of(5) {
                run(services, principal, UseCase::DeleteLimit, |cx| delete_limit(cx, limit_ref)).map_err(failed)?;
                self.limits.known.remove(&metric);
            } else {
                let thresholds = Some(thresholds_around(&metric, max)).filter(|_| step.is_multiple_of(2));
                let edit = LimitEdit { max: Patch::Set(max.to_string()), thresholds };
                run(services, principal, UseCase::EditLimit, |cx| edit_limit(cx, limit_ref, &edit)).map_err(failed)?;
                *known = max;
            }
        }
        self.change_holds(&figures.contract)?;
        if self.limits.known.is_empty() { Ok(None) } else { self.figures().map(Some) }
    }

    /// Makes and releases holds now and then.
    fn change_holds(&self, contract: &Contract) -> Checked {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let (step, customer_ref) = (self.limits.steps as usize, fixtures::customer_ref("acme"));
        let mut holds = self.limits.holds.borrow_mut();
        if let Some(released) = holds.get_mut(step / 2).filter(|_| step.is_multiple_of(5)) {
            run(services, principal, UseCase::ReleaseHold, |cx| release_hold(cx, &customer_ref, &released.hold_ref))
                .map_err(|error| format!("a hold isn't released: {error:?}"))?;
            released.has_ended = true;
        }
        let terms = contract.products.iter().filter_map(|product| product.newest_terms());
        let products: Vec<UsageProductRef> = terms.flat_map(|terms| terms.metered_products()).cloned().collect();
        let Some(usage_product_ref) = products.get(step % products.len().max(1)).filter(|_| step % 3 == 2) else { return Ok(()) };
        let quantity = fixtures::quantity(["0", "0.000000001", "3", "40000"][step % 4]);
        let held = HeldUsage { usage_product_ref: usage_product_ref.clone(), quantity, report_data: None, validations: None };
        let hold_ref = HoldRef::parse(&format!("hold-{step}")).expect("a reference");
        let request = HoldRequest { hold_ref, customer_ref, usage: vec![held], expires_in: 86_400 };
        match run(services, principal, UseCase::CreateHold, |cx| create_hold(cx, &request)) {
            Ok(HoldView { hold, .. }) => {
                let (key, quantity) = (hold.entries[0].key.clone(), hold.entries[0].quantity.as_decimal());
                let Hold { hold_ref, expires_at, .. } = hold;
                holds.push(DrawnHold { hold_ref, key, quantity, expires_at, has_ended: false });
                Ok(())
            }
            // A limit, the labels, the aggregation or the end of the contract reject the hold.
            Err(
                UseCaseError::LimitReached(_)
                | UseCaseError::Invalid(_)
                | UseCaseError::NoMatch(_)
                | UseCaseError::AmountOutOfRange(_),
            ) => Ok(()),
            Err(other) => Err(format!("a hold isn't taken: {other:?}")),
        }
    }

    /// Returns what open holds add to a quantity, if it is a sum of all line items.
    fn held_quantity(&self, figures: &Figures, metric: &LimitMetric, window: Option<Period>) -> Option<Decimal> {
        let LimitMetric::Quantity { product_no, usage_product_ref, line_item_id: None, .. } = metric else { return None };
        let period = figures.contract.period_from(*product_no, window?.start())?;
        let mut items = period.terms.metering(usage_product_ref);
        if !items.all(|(_, metered)| metered.aggregation == Aggregation::Sum) {
            return None;
        }
        let now = self.bench.services.clock.now();
        let counts = |hold: &&DrawnHold| {
            !hold.has_ended
                && hold.expires_at > now
                && (hold.key.product_no, hold.key.period_start) == (*product_no, period.start())
                && hold.key.usage_product_ref == *usage_product_ref
        };
        Some(self.limits.holds.borrow().iter().filter(counts).map(|hold| hold.quantity).sum())
    }

    /// Returns the present service period of a metric, as its limit shows it.
    fn present_window(&self, metric: &LimitMetric) -> Result<Option<Period>, String> {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let listed = read(services, principal, UseCase::ListLimits, |cx| list_limits(cx, None, PageRequest::LARGEST));
        let listed = listed.map_err(|error| format!("{error:?}"))?.items;
        let found = listed.into_iter().find(|view| view.number.limit.metric == *metric);
        Ok(found.and_then(|view| view.number.window))
    }

    /// Records an event. If a limit rejects it, sends it again as usage that has already happened.
    pub(super) fn report(&self, cx: &mut Cx<'_>, event: &NewUsageEvent) -> UseCaseResult<EventView> {
        let now = self.bench.services.clock.now();
        let mut holds = self.limits.holds.borrow_mut();
        let of_product = |hold: &&mut DrawnHold| {
            let is_meant =
                matches!(&event.usage_product, NamedUsageProduct::Ref(product) if *product == hold.key.usage_product_ref);
            is_meant && !hold.has_ended && hold.expires_at > now
        };
        let mut settled = holds.iter_mut().find(of_product).filter(|_| self.limits.steps.is_multiple_of(2));
        let event = &NewUsageEvent { hold_ref: settled.as_ref().map(|hold| hold.hold_ref.clone()), ..event.clone() };
        let taken = match record_event(cx, event.clone(), NO_ANSWER) {
            Err(UseCaseError::LimitReached(reached)) if event.is_rejectable() => {
                self.limits.rejected.replace(Some(*reached));
                record_event(cx, NewUsageEvent { occurred: true, ..event.clone() }, NO_ANSWER)
            }
            taken => taken,
        };
        let taken = taken?.now().expect("a newly recorded event");
        if let Some(settled) = &mut settled {
            settled.has_ended = true;
        }
        self.limits.judged.replace(event.is_rejectable().then_some(taken.event.placement));
        Ok(taken)
    }

    /// Checks the numbers of all limits after a step, and whether its event was judged rightly.
    pub(super) fn check_limits(&self, before: Option<&Figures>) -> Checked {
        let Some(before) = before else { return Ok(()) };
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let after = self.figures()?;
        let listed = read(services, principal, UseCase::ListLimits, |cx| list_limits(cx, None, PageRequest::LARGEST));
        let listed = listed.map_err(|error| format!("{error:?}"))?.items;
        same("how many limits", &self.limits.known.len(), &listed.len())?;
        let (rejected, judged) = (self.limits.rejected.borrow(), self.limits.judged.borrow());
        for view in listed {
            let metric = &view.number.limit.metric;
            same("the number of a limit", &after.number(metric, view.number.window)?, &view.number.value)?;
            if let Some(held) = self.held_quantity(&after, metric, view.number.window) {
                same("what is held", &held, &view.number.held)?;
            }
            let notified = self.notified.iter().filter(|it| it.subject == Subject::Limit(view.number.limit.limit_ref)).count();
            let Some(placement) = *judged else { continue };
            check_levels(&view.number, notified)?;
            if metric.product().is_some_and(|product| product != (placement.contract_ref, placement.product_no)) {
                continue;
            }
            // Usage is judged by the number of its own period, which can be over.
            let window = Some(placement.service_period);
            let (was, is) = (before.number(metric, window)?, after.number(metric, window)?);
            let (_, max) = self.limits.known[metric];
            // The list shows what is held in the present period.
            if metric.product().is_some() && view.number.window != window && !self.limits.holds.borrow().is_empty() {
                continue;
            }
            let (held_before, held_after) = (before.held.get(metric).copied().unwrap_or_default(), view.number.held);
            let needed = (is + held_after) - (was + held_before);
            let is_above = needed > Decimal::ZERO && is + held_after > max;
            match &*rejected {
                Some(reached) if reached.limit_ref == view.number.limit.limit_ref => {
                    same("the number before a rejected event", &was, &reached.value)?;
                    same("what is held before a rejected event", &held_before, &reached.held)?;
                    same("what a rejected event needs", &needed, &reached.needed)?;
                    same("whether a rejected event is above the limit", &is_above, &true)?;
                }
                None if is_above => {
                    return Err(format!("an event was accepted that carried {was} to {is}, above the limit of {max}"));
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
