//! Limits in the histories: their numbers are those that users read, and they reject what does not fit, and nothing else.

use std::cell::RefCell;
use std::collections::BTreeMap;

use billing_application::balances::balance;
use billing_application::documents::{DocumentQuery, list_documents};
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::limits::{LimitRequest, create_limit, delete_limit, edit_limit, list_limits};
use billing_application::usage::{EventView, NO_ANSWER, NewUsageEvent, record_event};
use billing_application::{Cx, UseCase};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::limit::{LimitMetric, LimitReached, MetricKind};
use billing_domain::money::{Currency, MoneySum};
use billing_domain::page::PageRequest;
use billing_domain::refs::{EntityRef, LimitRef};
use billing_testkit::fixtures;

use super::world::Checked;
use super::{UseCases, same};
use crate::support::{read, run};

/// What is owed in each account, as users read it.
type Owed = BTreeMap<(EntityRef, Currency), MoneySum>;

/// The limits of a history.
#[derive(Default)]
pub(super) struct Limits {
    are_drawn: bool,
    /// The limits with their maxima in minor units.
    known: BTreeMap<(EntityRef, Currency), (LimitRef, i128)>,
    /// Whether an event was judged since the last step.
    is_judged: RefCell<bool>,
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

/// Returns an amount in minor units as a decimal.
fn amount(minor: i128, currency: Currency) -> String {
    MoneySum::from_minor(minor, currency).expect("a small amount").to_decimal().to_string()
}

impl UseCases {
    /// Returns what is owed in each account: the balances, and the totals of the drafts in lists.
    fn owed(&self) -> Result<Owed, String> {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let failed = |error: UseCaseError| format!("{error:?}");
        let customer_ref = fixtures::customer_ref("acme");
        let balances = read(services, principal, UseCase::GetBalance, |cx| balance(cx, &customer_ref)).map_err(failed)?;
        let mut owed = Owed::new();
        for balance in balances {
            let sum = balance.due.checked_add(balance.written_off).and_then(|sum| sum.checked_sub(balance.unapplied));
            owed.insert((balance.entity_ref, balance.due.currency()), sum.map_err(|error| format!("{error:?}"))?);
        }
        let query = DocumentQuery::default();
        let listed =
            read(services, principal, UseCase::ListDocuments, |cx| list_documents(cx, &query, PageRequest::LARGEST.into()));
        for draft in listed.map_err(failed)?.items.iter().filter(|document| document.state == DocumentState::Draft) {
            let total = draft.content.total;
            let sum =
                owed.entry((draft.parties.entity_ref.clone(), total.currency())).or_insert(MoneySum::zero(total.currency()));
            let changed = if draft.kind == DocumentKind::Credit { sum.checked_sub(total) } else { sum.checked_add(total) };
            *sum = changed.map_err(|error| format!("{error:?}"))?;
        }
        Ok(owed)
    }

    /// Creates, edits and deletes limits now and then. Returns what is owed before the next step.
    pub(super) fn change_limits(&mut self) -> Result<Owed, String> {
        if !self.limits.are_drawn {
            return Ok(Owed::new());
        }
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let owed = self.owed()?;
        self.limits.steps += 1;
        let step = self.limits.steps;
        let failed = |error: UseCaseError| format!("a limit isn't taken: {error:?}");
        for ((entity_ref, currency), sum) in owed.iter().filter(|_| step % 3 == 1) {
            // Some limits are reached already, some at the next event, and some never.
            let max = (sum.minor() + [-1, 0, 1, 500, 100_000][(step as usize / 3) % 5]).max(0);
            let account = (entity_ref.clone(), *currency);
            if let Some((limit_ref, known)) = self.limits.known.get_mut(&account) {
                let limit_ref = *limit_ref;
                if step.is_multiple_of(5) {
                    run(services, principal, UseCase::DeleteLimit, |cx| delete_limit(cx, limit_ref)).map_err(failed)?;
                    self.limits.known.remove(&account);
                } else {
                    let text = amount(max, *currency);
                    run(services, principal, UseCase::EditLimit, |cx| edit_limit(cx, limit_ref, &text)).map_err(failed)?;
                    *known = max;
                }
                continue;
            }
            let request = LimitRequest {
                metric: MetricKind::Owed,
                customer_ref: fixtures::customer_ref("acme"),
                entity_ref: Some(entity_ref.clone()),
                currency: *currency,
                max: amount(max, *currency),
            };
            let made = run(services, principal, UseCase::CreateLimit, |cx| create_limit(cx, &request)).map_err(failed)?;
            self.limits.known.insert(account, (made.number.limit.limit_ref, max));
        }
        self.limits.is_judged.replace(false);
        self.limits.rejected.replace(None);
        Ok(owed)
    }

    /// Records an event. If a limit rejects it, sends it again as usage that has already happened.
    pub(super) fn report(&self, cx: &mut Cx<'_>, event: &NewUsageEvent) -> UseCaseResult<EventView> {
        self.limits.is_judged.replace(event.is_rejectable());
        self.limits.rejected.replace(None);
        let taken = match record_event(cx, event.clone(), NO_ANSWER) {
            Err(UseCaseError::LimitReached(reached)) if event.is_rejectable() => {
                self.limits.rejected.replace(Some(*reached));
                record_event(cx, NewUsageEvent { occurred: true, ..event.clone() }, NO_ANSWER)
            }
            taken => taken,
        };
        Ok(taken?.now().expect("a newly recorded event"))
    }

    /// Checks the numbers of all limits after a step, and whether its event was judged rightly.
    pub(super) fn check_limits(&self, before: &Owed) -> Checked {
        if self.limits.known.is_empty() {
            return Ok(());
        }
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let after = self.owed()?;
        let listed = read(services, principal, UseCase::ListLimits, |cx| list_limits(cx, None, PageRequest::LARGEST));
        let listed = listed.map_err(|error| format!("{error:?}"))?.items;
        same("how many limits", &self.limits.known.len(), &listed.len())?;
        let number = |owed: &Owed, entity_ref: &EntityRef, currency: Currency| {
            owed.get(&(entity_ref.clone(), currency)).map_or(0, |sum| sum.minor())
        };
        let rejected = self.limits.rejected.borrow();
        for view in listed {
            let LimitMetric::Owed { entity_ref, currency } = &view.number.limit.metric;
            let (was, is) = (number(before, entity_ref, *currency), number(&after, entity_ref, *currency));
            same("the number of a limit", &amount(is, *currency), &view.number.value.to_string())?;
            let (_, max) = self.limits.known[&(entity_ref.clone(), *currency)];
            let is_above = is > was && is > max;
            match &*rejected {
                Some(reached) if reached.limit_ref == view.number.limit.limit_ref => {
                    same("the number before a rejected event", &amount(was, *currency), &reached.value.to_string())?;
                    same("what a rejected event needs", &amount(is - was, *currency), &reached.needed.to_string())?;
                    same("whether a rejected event is above the limit", &is_above, &true)?;
                }
                None if *self.limits.is_judged.borrow() && is_above => {
                    return Err(format!("an event was accepted that carried {was} to {is}, above the limit of {max}"));
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
