//! Serializes requests with the same idempotency key, so that duplicates in one process wait without occupying threads
//! and connections. The store detects duplicates across processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use billing_domain::idempotency::ScopedIdempotencyKey;
use billing_domain::refs::OrganizationId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use billing_api::problem::Problem;

type InFlightKey = (OrganizationId, ScopedIdempotencyKey);
type Slots = Arc<Mutex<HashMap<InFlightKey, Queue>>>;

/// The requests with one key: one runs, the others wait.
struct Queue {
    turns: Arc<Semaphore>,
    members: usize,
}

/// The in-flight requests of one server.
#[derive(Clone, Default)]
pub(crate) struct InFlightRequests(Slots);

/// The right to run a request under its key. The work holds it until it is done, even if the request was abandoned.
pub(crate) struct InFlightGuard {
    // Dropped before the queue position.
    _permit: OwnedSemaphorePermit,
    _place: QueuePosition,
}

/// A position in a queue. Dropping the last position removes the queue.
struct QueuePosition {
    slots: Slots,
    slot: InFlightKey,
}

impl InFlightRequests {
    /// Waits until no duplicate is in flight.
    ///
    /// # Errors
    /// Returns `request_in_progress` if the wait exceeds `wait`.
    pub(crate) async fn turn(
        &self,
        organization: OrganizationId,
        request: &ScopedIdempotencyKey,
        wait: Duration,
    ) -> Result<InFlightGuard, Problem> {
        let (place, turns) = self.place((organization, request.clone()));
        match tokio::time::timeout(wait, turns.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(InFlightGuard { _permit: permit, _place: place }),
            // The semaphore is never closed, so this error is always the timeout.
            Ok(Err(_)) | Err(_) => Err(Problem::request_in_progress()),
        }
    }

    fn place(&self, slot: InFlightKey) -> (QueuePosition, Arc<Semaphore>) {
        let mut slots = locked(&self.0);
        let queue = slots.entry(slot.clone()).or_insert_with(|| Queue { turns: Arc::new(Semaphore::new(1)), members: 0 });
        queue.members += 1;
        (QueuePosition { slots: Arc::clone(&self.0), slot }, Arc::clone(&queue.turns))
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        let mut slots = locked(&self.slots);
        let Some(queue) = slots.get_mut(&self.slot) else { return };
        queue.members -= 1;
        if queue.members == 0 {
            slots.remove(&self.slot);
        }
    }
}

/// Locks the map. Nothing panics while the lock is held, so a poisoned lock has consistent content.
fn locked(slots: &Slots) -> MutexGuard<'_, HashMap<InFlightKey, Queue>> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use billing_domain::idempotency::IdempotencyKey;
    use uuid::Uuid;

    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    fn organization(n: u128) -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(n))
    }

    fn request(path: &str, key: &str) -> ScopedIdempotencyKey {
        ScopedIdempotencyKey { path: path.to_owned(), key: IdempotencyKey::parse(key).expect(key) }
    }

    fn code(outcome: Result<InFlightGuard, Problem>) -> Option<&'static str> {
        outcome.err().map(|problem| problem.code())
    }

    #[actix_web::test]
    async fn twins_have_their_turns_one_after_the_other() {
        let gate = InFlightRequests::default();
        let (mine, wait) = (request("/a", "k"), Duration::from_secs(20));
        let first = gate.turn(organization(1), &mine, wait).await.expect("nobody is before it");
        let mut second = std::pin::pin!(gate.turn(organization(1), &mine, wait));
        assert!(tokio::time::timeout(SOON, second.as_mut()).await.is_err(), "it has to wait");
        for (organization, request) in
            [(organization(2), &mine), (organization(1), &request("/b", "k")), (organization(1), &request("/a", "K"))]
        {
            assert!(gate.turn(organization, request, Duration::ZERO).await.is_ok(), "another request");
        }
        drop(first);
        assert!(second.await.is_ok());
    }

    #[actix_web::test]
    async fn who_has_waited_long_enough_is_told_so() {
        let gate = InFlightRequests::default();
        let _first = gate.turn(organization(1), &request("/a", "k"), SOON).await.expect("nobody is before it");
        assert_eq!(code(gate.turn(organization(1), &request("/a", "k"), SOON).await), Some("request_in_progress"));
    }

    #[actix_web::test]
    async fn nothing_is_left_of_a_request_that_is_over_however_it_ended() {
        let gate = InFlightRequests::default();
        let mine = request("/a", "k");
        let first = gate.turn(organization(1), &mine, SOON).await.expect("nobody is before it");
        assert!(gate.turn(organization(1), &mine, SOON).await.is_err());
        // Simulates a client that disconnects while it waits.
        let waiting = gate.turn(organization(1), &mine, Duration::from_secs(20));
        assert!(tokio::time::timeout(SOON, waiting).await.is_err());
        assert_eq!(locked(&gate.0).len(), 1);
        let panicked = std::thread::spawn(move || {
            let _turn = first;
            panic!("as the test wants it");
        });
        assert!(panicked.join().is_err());
        assert_eq!(locked(&gate.0).len(), 0);
        assert!(gate.turn(organization(1), &mine, SOON).await.is_ok());
        assert_eq!(locked(&gate.0).len(), 0);
    }
}
