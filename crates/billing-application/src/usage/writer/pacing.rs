//! Pauses between the transactions of an organization, on a database with one writer.
//!
//! A transaction occupies the writer for as long as it takes, and nothing else is written meanwhile. After each one, its
//! organization's next transaction therefore waits until the others had the writer for the same time. The pause is measured and
//! not estimated, so it is fair whatever a transaction costs. It applies only while others are active, because most clients send
//! their next request when they have the response to the last one: at the end of a transaction, their queue is often empty.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use billing_domain::refs::OrganizationId;

/// The duration up to which a transaction causes no pause. Short ones delay others no longer than a group of events does.
const SHORT: Duration = Duration::from_millis(5);
/// The maximum pause. A request must be able to wait for it within its time limit.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The time for which an organization counts as active after a request.
const ACTIVE: Duration = Duration::from_secs(1);

/// The pauses of organizations. By default, there are none.
#[derive(Default)]
pub(super) struct Pacing {
    is_enabled: bool,
    /// When each pause ends.
    pauses: HashMap<OrganizationId, Instant>,
    /// The organization with the latest request, and the time of the request.
    latest: Option<(OrganizationId, Instant)>,
    /// The same among all other organizations.
    latest_of_others: Option<(OrganizationId, Instant)>,
}

impl Pacing {
    /// Creates pauses for a database with one writer.
    pub(super) fn enabled() -> Self {
        Self { is_enabled: true, ..Self::default() }
    }

    /// Ends all pauses for good.
    pub(super) fn disable(&mut self) {
        self.is_enabled = false;
        self.pauses.clear();
    }

    /// Records that an organization has a request that waits or is being written.
    pub(super) fn note(&mut self, organization: OrganizationId, now: Instant) {
        if self.latest.is_some_and(|(latest, _)| latest != organization) {
            self.latest_of_others = self.latest;
        }
        self.latest = Some((organization, now));
    }

    /// Begins the pause of an organization whose transaction occupied the writer for a time. `waiting` are the organizations
    /// with waiting transactions. Each of them and every paused organization has the same share of the time.
    pub(super) fn pause(
        &mut self,
        organization: OrganizationId,
        took: Duration,
        waiting: impl Iterator<Item = OrganizationId>,
        now: Instant,
    ) {
        if !self.is_enabled || took < SHORT {
            return;
        }
        self.pauses.retain(|_, until| *until > now);
        let paused = self.pauses.keys().copied();
        let others: HashSet<OrganizationId> = waiting.chain(paused).filter(|other| *other != organization).collect();
        let shares = u32::try_from(others.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.pauses.insert(organization, now + took.saturating_mul(shares).min(MAX_PAUSE));
    }

    /// Returns when the transactions of an organization may go on, or `None` if they may now.
    pub(super) fn paused_until(&self, organization: OrganizationId, now: Instant) -> Option<Instant> {
        let until = *self.pauses.get(&organization)?;
        let is_latest = self.latest.is_some_and(|(latest, _)| latest == organization);
        let (_, active) = if is_latest { self.latest_of_others } else { self.latest }?;
        Some(until.min(active + ACTIVE)).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const LONG: Duration = Duration::from_millis(200);

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(n))
    }

    /// Returns pauses in which the organizations 1 to 3 had requests at the given milliseconds, and the start of the time.
    fn pacing(requests: &[(u128, u64)]) -> (Pacing, Instant) {
        let (mut pacing, start) = (Pacing::enabled(), Instant::now());
        for (n, at) in requests {
            pacing.note(organization(*n), start + Duration::from_millis(*at));
        }
        (pacing, start)
    }

    #[test]
    fn a_pause_is_as_long_as_the_transaction_and_for_each_that_waits() {
        for (waiting, expected) in [(vec![], LONG), (vec![1], LONG), (vec![2], LONG * 2), (vec![2, 3, 3], LONG * 3)] {
            let (mut pacing, now) = pacing(&[(1, 0), (2, 0)]);
            pacing.pause(organization(1), LONG, waiting.into_iter().map(organization), now);
            assert_eq!(pacing.paused_until(organization(1), now), Some(now + expected));
            assert_eq!(pacing.paused_until(organization(2), now), None);
            assert_eq!(pacing.paused_until(organization(1), now + expected), None);
        }
    }

    #[test]
    fn who_pauses_has_a_share_too() {
        let (mut pacing, now) = pacing(&[(1, 0), (2, 0)]);
        pacing.pause(organization(1), LONG, std::iter::empty(), now);
        pacing.pause(organization(2), LONG, std::iter::empty(), now);
        assert_eq!(pacing.paused_until(organization(2), now), Some(now + LONG * 2));
        let later = now + LONG * 3;
        pacing.pause(organization(2), LONG, std::iter::empty(), later);
        assert_eq!(pacing.paused_until(organization(2), later), Some(later + LONG), "the first pause is over");
    }

    #[test]
    fn nobody_pauses_for_nobody() {
        let (mut alone, now) = pacing(&[(1, 0)]);
        alone.pause(organization(1), LONG, std::iter::empty(), now);
        assert_eq!(alone.paused_until(organization(1), now), None);
        // Another organization was active, but not for the last second.
        for (last, is_paused) in [(0, false), (600, true)] {
            let (mut pacing, start) = pacing(&[(2, last), (1, 1_000)]);
            let now = start + Duration::from_millis(1_200);
            pacing.pause(organization(1), LONG, std::iter::empty(), now);
            assert_eq!(pacing.paused_until(organization(1), now).is_some(), is_paused, "{last}");
        }
    }

    #[test]
    fn a_pause_ends_with_the_activity_of_the_others() {
        let (mut pacing, start) = pacing(&[(3, 100), (2, 500), (1, 600), (1, 1_000)]);
        let now = start + Duration::from_millis(1_400);
        pacing.pause(organization(1), LONG, std::iter::empty(), now);
        assert_eq!(pacing.paused_until(organization(1), now), Some(start + Duration::from_millis(1_500)));
    }

    #[test]
    fn short_transactions_cause_no_pause_and_long_ones_a_limited_one() {
        let (mut pacing, now) = pacing(&[(1, 0), (2, 60_000)]);
        pacing.pause(organization(1), SHORT / 2, std::iter::empty(), now);
        assert_eq!(pacing.paused_until(organization(1), now), None);
        pacing.pause(organization(1), LONG * 1_000, std::iter::empty(), now);
        assert_eq!(pacing.paused_until(organization(1), now), Some(now + MAX_PAUSE));
        pacing.disable();
        assert_eq!(pacing.paused_until(organization(1), now), None);
        pacing.pause(organization(1), LONG, std::iter::empty(), now);
        assert_eq!(pacing.paused_until(organization(1), now), None);
        let mut several_writers = Pacing::default();
        several_writers.note(organization(2), now);
        several_writers.pause(organization(1), LONG, std::iter::empty(), now);
        assert_eq!(several_writers.paused_until(organization(1), now), None);
    }
}
