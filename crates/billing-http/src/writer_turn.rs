//! Work that waits for its turn in the queue of the usage writer.

use billing_application::Services;
use billing_application::error::UseCaseResult;
use billing_application::usage::{QueuedRequest, QueuedTransaction, Requester, Work};
use billing_domain::access::Principal;
use tokio::sync::oneshot;

use crate::context::RequestContext;
use crate::state::HttpState;
use billing_api::problem::Problem;

/// Work in a transaction of its own. Boxed, because a separate future type per operation makes compilation slow.
pub(crate) type TransactionWork<T> = Box<dyn FnOnce(&Services) -> UseCaseResult<T> + Send>;

/// The size of a transaction: the number of events as which it counts, and its approximate memory in bytes.
pub(crate) type TransactionSize = (usize, usize);

/// Submits work to the writer and waits for its reply.
///
/// # Errors
/// Returns `overloaded` if the queue is full, and `timed_out` if the request's deadline passes first.
pub(crate) async fn submit<T>(
    state: &HttpState,
    facts: &RequestContext,
    requester: Requester,
    work: Work,
    replied: oneshot::Receiver<T>,
) -> Result<T, Problem> {
    let waiting = QueuedRequest { requester, until: facts.deadline.into_std(), work };
    state.writer().submit(waiting).map_err(|_| Problem::overloaded())?;
    // The writer dropped the work: either its deadline passed, or the work panicked and the panic hook logged the cause.
    let is_late = || tokio::time::Instant::now() >= facts.deadline;
    replied.await.map_err(|_| if is_late() { Problem::timed_out() } else { Problem::internal() })
}

/// Runs work in a transaction of its own when its turn comes, and waits for its outcome. Work of a request that was abandoned
/// before its turn is not begun. Its log lines belong to the request's span.
///
/// # Errors
/// Returns the errors of [`submit`].
pub(crate) async fn run_in_turn<T: Send + 'static>(
    state: &HttpState,
    facts: &RequestContext,
    principal: &Principal,
    (events, bytes): TransactionSize,
    work: TransactionWork<T>,
) -> Result<UseCaseResult<T>, Problem> {
    let (reply, replied) = oneshot::channel();
    let span = tracing::Span::current();
    let work = Box::new(move |services: &Services| {
        if !reply.is_closed() {
            // The receiver is dropped when the request was abandoned.
            drop(reply.send(span.in_scope(|| work(services))));
        }
    });
    let work = Work::Whole(QueuedTransaction { events, bytes, work });
    submit(state, facts, Requester::Known(principal.clone()), work, replied).await
}
