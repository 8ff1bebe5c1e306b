//! Permits for work that occupies a database connection, a processor or much memory. Organizations share them.
//!
//! Requests that wait for a permit queue by organization. The next permit goes to the organization that holds the fewest
//! permits; among equals, to the one whose turn is longest ago. So an organization with many requests delays another one by at
//! most the work in progress, and never by its waiting requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use billing_domain::refs::OrganizationId;
use tokio::sync::oneshot;

/// The maximum number of requests of one organization that wait for a permit. It limits the memory of their bodies.
const MAX_WAITING_PER_ORGANIZATION: usize = 64;
/// The same for permits of short requests, of which a client may send many at the same time.
const MAX_SHORT_WAITING_PER_ORGANIZATION: usize = 512;

/// A fixed number of permits. Clones share them.
#[derive(Clone)]
pub(crate) struct FairPermits(Arc<Mutex<Permits>>);

/// The right to do the work. The thread that does the work holds it until the end, even if the request was abandoned.
pub(crate) struct FairPermit {
    permits: FairPermits,
    organization: OrganizationId,
}

struct Permits {
    free: usize,
    /// The maximum number of permits that one organization holds.
    limit_per_organization: usize,
    /// The maximum number of waiting requests of one organization.
    max_waiting: usize,
    /// The number of permits of each organization that has one.
    held: HashMap<OrganizationId, usize>,
    waiting: HashMap<OrganizationId, VecDeque<WaitingRequest>>,
    /// The organizations with waiting requests, in the order of their turns.
    order: VecDeque<OrganizationId>,
    next_id: u64,
}

struct WaitingRequest {
    id: u64,
    grant: oneshot::Sender<FairPermit>,
}

/// A place in the queue. Dropping it removes the request from the queue, if the request still waits.
struct QueuePlace {
    permits: FairPermits,
    organization: OrganizationId,
    id: u64,
}

impl FairPermits {
    /// Creates permits of which one organization may hold all while no other organization waits.
    pub(crate) fn new(permits: usize) -> Self {
        Self::with_limit(permits, permits, MAX_WAITING_PER_ORGANIZATION)
    }

    /// Creates permits for short requests.
    pub(crate) fn for_short_requests(permits: usize) -> Self {
        Self::with_limit(permits, permits, MAX_SHORT_WAITING_PER_ORGANIZATION)
    }

    /// Creates permits of which one organization holds at most one, for work that waits for another host.
    pub(crate) fn with_one_each(permits: usize) -> Self {
        Self::with_limit(permits, 1, MAX_WAITING_PER_ORGANIZATION)
    }

    /// Creates permits of which one organization never holds all, for work that a slow client can prolong. If there is only one
    /// permit, any organization may hold it.
    pub(crate) fn with_reserve(permits: usize) -> Self {
        Self::with_limit(permits, permits.saturating_sub(1).max(1), MAX_WAITING_PER_ORGANIZATION)
    }

    /// Creates permits of which one organization holds at most half, and at least one, for work that lasts long and uses what
    /// other work of the server needs, too.
    pub(crate) fn with_half_reserved(permits: usize) -> Self {
        Self::with_limit(permits, permits.div_ceil(2).max(1), MAX_WAITING_PER_ORGANIZATION)
    }

    fn with_limit(permits: usize, limit_per_organization: usize, max_waiting: usize) -> Self {
        Self(Arc::new(Mutex::new(Permits {
            free: permits,
            limit_per_organization,
            max_waiting,
            held: HashMap::new(),
            waiting: HashMap::new(),
            order: VecDeque::new(),
            next_id: 0,
        })))
    }

    /// Waits for a permit, at most for `wait`. Returns `None` if no permit was free in time, or at once if too many requests of
    /// the organization wait already.
    pub(crate) async fn acquire(&self, organization: OrganizationId, wait: Duration) -> Option<FairPermit> {
        let (place, granted) = self.enqueue(organization)?;
        self.grant();
        let outcome = tokio::time::timeout(wait, granted).await;
        drop(place);
        outcome.ok()?.ok()
    }

    fn enqueue(&self, organization: OrganizationId) -> Option<(QueuePlace, oneshot::Receiver<FairPermit>)> {
        let (grant, granted) = oneshot::channel();
        let id = self.locked().enqueue(organization, grant)?;
        Some((QueuePlace { permits: self.clone(), organization, id }, granted))
    }

    /// Gives free permits to waiting requests.
    fn grant(&self) {
        let granted = self.locked().next_grants();
        for (organization, grant) in granted {
            // If the receiver is gone, this drops the permit, which gives it to the next request.
            drop(grant.send(FairPermit { permits: self.clone(), organization }));
        }
    }

    /// Locks the permits. Nothing panics while the lock is held, so a poisoned lock has consistent content.
    fn locked(&self) -> MutexGuard<'_, Permits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permits {
    /// Adds a request to the queue and returns its id, or `None` if too many requests of its organization wait.
    fn enqueue(&mut self, organization: OrganizationId, grant: oneshot::Sender<FairPermit>) -> Option<u64> {
        let requests = self.waiting.entry(organization).or_default();
        if requests.len() >= self.max_waiting {
            return None;
        }
        if requests.is_empty() {
            self.order.push_back(organization);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        requests.push_back(WaitingRequest { id, grant });
        Some(id)
    }

    /// Assigns free permits and returns the requests that get them.
    fn next_grants(&mut self) -> Vec<(OrganizationId, oneshot::Sender<FairPermit>)> {
        let mut grants = Vec::new();
        while self.free > 0
            && let Some(organization) = self.next_organization()
        {
            let Some(requests) = self.waiting.get_mut(&organization) else { continue };
            let next = requests.pop_front();
            if requests.is_empty() {
                self.waiting.remove(&organization);
            } else {
                self.order.push_back(organization);
            }
            if let Some(WaitingRequest { grant, .. }) = next
                && !grant.is_closed()
            {
                self.free -= 1;
                *self.held.entry(organization).or_default() += 1;
                grants.push((organization, grant));
            }
        }
        grants
    }

    /// Removes and returns the organization whose turn it is: the one with the fewest permits, and of several the first.
    fn next_organization(&mut self) -> Option<OrganizationId> {
        let held = |organization: &OrganizationId| self.held.get(organization).copied().unwrap_or_default();
        let may_take = |(_, held): &(usize, usize)| *held < self.limit_per_organization;
        let (place, _) = self.order.iter().map(held).enumerate().filter(may_take).min_by_key(|(_, held)| *held)?;
        self.order.remove(place)
    }

    fn release(&mut self, organization: OrganizationId) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(&organization) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&organization);
            }
        }
    }

    fn remove_request(&mut self, organization: OrganizationId, id: u64) {
        let Some(requests) = self.waiting.get_mut(&organization) else { return };
        requests.retain(|request| request.id != id);
        if requests.is_empty() {
            self.waiting.remove(&organization);
            self.order.retain(|other| *other != organization);
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        self.permits.locked().release(self.organization);
        self.permits.grant();
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.permits.locked().remove_request(self.organization, self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};

    use uuid::Uuid;

    use super::*;

    /// Longer than any test.
    const LONG: Duration = Duration::from_secs(60);
    const SOON: Duration = Duration::from_millis(5);

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(n))
    }

    /// Returns a request that waits for a permit of a cloned set of permits.
    fn request(permits: &FairPermits, n: u128) -> Pin<Box<dyn Future<Output = Option<FairPermit>>>> {
        let permits = permits.clone();
        Box::pin(async move { permits.acquire(organization(n), LONG).await })
    }

    /// Polls a request once or a few times. Returns its permit if it has one.
    async fn poll(request: &mut Pin<Box<dyn Future<Output = Option<FairPermit>>>>) -> Option<FairPermit> {
        tokio::time::timeout(SOON, request.as_mut()).await.ok().flatten()
    }

    #[actix_web::test]
    async fn free_permits_are_taken_at_once_and_the_others_refused_after_the_wait() {
        let permits = FairPermits::new(2);
        let first = permits.acquire(organization(1), Duration::ZERO).await.expect("a free permit");
        let _second = permits.acquire(organization(1), Duration::ZERO).await.expect("a free permit");
        assert!(permits.acquire(organization(1), SOON).await.is_none());
        drop(first);
        assert!(permits.acquire(organization(2), Duration::ZERO).await.is_some());
        assert!(FairPermits::new(0).acquire(organization(1), SOON).await.is_none());
        assert!(FairPermits::with_reserve(0).acquire(organization(1), SOON).await.is_none());
    }

    #[actix_web::test]
    async fn requests_of_one_organization_are_served_in_the_order_of_arrival() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(organization(1), LONG).await.expect("a free permit");
        let (mut first, mut second) = (request(&permits, 1), request(&permits, 1));
        assert!(poll(&mut first).await.is_none() && poll(&mut second).await.is_none());
        drop(held);
        assert!(poll(&mut second).await.is_none(), "the other one came first");
        let held = poll(&mut first).await.expect("its turn");
        drop(held);
        assert!(poll(&mut second).await.is_some());
    }

    #[actix_web::test]
    async fn another_organization_gets_the_next_permit_however_many_requests_wait() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(organization(1), LONG).await.expect("a free permit");
        let mut own: Vec<_> = (0..20).map(|_| request(&permits, 1)).collect();
        for waiting in &mut own {
            assert!(poll(waiting).await.is_none());
        }
        let mut other = request(&permits, 2);
        assert!(poll(&mut other).await.is_none());
        // One request of the organization with many came before the other organization's request.
        drop(held);
        let held = poll(&mut own[0]).await.expect("the first that came");
        drop(held);
        assert!(poll(&mut own[1]).await.is_none());
        let held = poll(&mut other).await.expect("the other organization's turn");
        drop(held);
        assert!(poll(&mut own[1]).await.is_some());
    }

    #[actix_web::test]
    async fn who_holds_fewer_permits_is_served_before_who_came_first() {
        let permits = FairPermits::new(3);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(permits.acquire(organization(1), LONG).await.expect("a free permit"));
        }
        let (mut own, mut other) = (request(&permits, 1), request(&permits, 2));
        assert!(poll(&mut own).await.is_none() && poll(&mut other).await.is_none());
        held.pop();
        assert!(poll(&mut own).await.is_none());
        assert!(poll(&mut other).await.is_some());
    }

    #[actix_web::test]
    async fn one_organization_never_holds_the_last_permit_of_a_reserve() {
        for (count, limit) in [(1, 1), (2, 1), (3, 2)] {
            let permits = FairPermits::with_reserve(count);
            let mut held = Vec::new();
            for _ in 0..limit {
                held.push(permits.acquire(organization(1), Duration::ZERO).await.expect("below its limit"));
            }
            assert!(permits.acquire(organization(1), SOON).await.is_none(), "{count}");
            let other = permits.acquire(organization(2), Duration::ZERO).await;
            assert_eq!(other.is_some(), count > 1, "{count}");
            held.pop();
            assert!(permits.acquire(organization(1), Duration::ZERO).await.is_some(), "{count}");
        }
    }

    #[actix_web::test]
    async fn an_organization_holds_one_permit_where_each_has_one() {
        let permits = FairPermits::with_one_each(2);
        let held = permits.acquire(organization(1), Duration::ZERO).await.expect("its permit");
        assert!(permits.acquire(organization(1), SOON).await.is_none());
        let other = permits.acquire(organization(2), Duration::ZERO).await;
        assert!(other.is_some() && permits.acquire(organization(3), SOON).await.is_none());
        drop(held);
        assert!(permits.acquire(organization(1), Duration::ZERO).await.is_some());
    }

    #[actix_web::test]
    async fn a_request_that_gives_up_leaves_nothing_behind() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(organization(1), LONG).await.expect("a free permit");
        assert!(permits.acquire(organization(2), SOON).await.is_none());
        {
            let mut abandoned = pin!(permits.acquire(organization(2), LONG));
            assert!(tokio::time::timeout(SOON, abandoned.as_mut()).await.is_err());
            assert_eq!(permits.locked().order.len(), 1);
        }
        assert!(permits.locked().waiting.is_empty());
        assert!(permits.locked().order.is_empty());
        // This request gets the permit and is dropped before it is polled again.
        let mut abandoned = request(&permits, 3);
        assert!(poll(&mut abandoned).await.is_none());
        drop(held);
        assert_eq!(permits.locked().free, 0);
        drop(abandoned);
        assert_eq!(permits.locked().free, 1);
        assert!(permits.locked().held.is_empty());
    }

    #[actix_web::test]
    async fn a_permit_is_returned_by_a_thread_that_panics() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(organization(1), LONG).await.expect("a free permit");
        let panicked = std::thread::spawn(move || {
            let _permit = held;
            panic!("as the test wants it");
        });
        assert!(panicked.join().is_err());
        assert!(permits.acquire(organization(1), Duration::ZERO).await.is_some());
    }

    #[actix_web::test]
    async fn one_organization_cannot_fill_the_queue_of_others() {
        for (permits, max_waiting) in [
            (FairPermits::new(1), MAX_WAITING_PER_ORGANIZATION),
            (FairPermits::for_short_requests(1), MAX_SHORT_WAITING_PER_ORGANIZATION),
        ] {
            let _held = permits.acquire(organization(1), LONG).await.expect("a free permit");
            let mut own: Vec<_> = (0..max_waiting).map(|_| request(&permits, 1)).collect();
            for waiting in &mut own {
                assert!(futures_util::FutureExt::now_or_never(waiting.as_mut()).is_none());
            }
            assert!(permits.acquire(organization(1), LONG).await.is_none(), "refused at once");
            let mut other = request(&permits, 2);
            assert!(poll(&mut other).await.is_none());
            assert_eq!(permits.locked().waiting.len(), 2);
        }
    }
}
