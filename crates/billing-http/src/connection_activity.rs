//! Whether a connection has a request in progress, so that the server can close connections that have none for too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;

/// The value of [`Activity::idle_since_ms`] while a request is in progress.
const IN_PROGRESS: u64 = u64::MAX;

/// The activity of one connection. The server adds it to the data of the connection, where each request finds it. Clones
/// share the activity.
#[derive(Clone, Debug)]
pub struct ConnectionActivity(Arc<Activity>);

#[derive(Debug)]
struct Activity {
    opened: Instant,
    /// Milliseconds from `opened` to the end of the last request, or [`IN_PROGRESS`].
    idle_since_ms: AtomicU64,
}

/// A request that is in progress on a connection, from its head until its response is sent or abandoned.
pub(crate) struct RequestInProgress(ConnectionActivity);

impl ConnectionActivity {
    /// Returns the activity of a new connection, which is idle from now on.
    pub fn of_new_connection() -> Self {
        Self(Arc::new(Activity { opened: Instant::now(), idle_since_ms: AtomicU64::new(0) }))
    }

    /// Returns the time since the last request ended, or since the connection was opened if there was no request. Returns
    /// `None` while a request is in progress.
    pub fn idle_time(&self) -> Option<Duration> {
        match self.0.idle_since_ms.load(Ordering::Relaxed) {
            IN_PROGRESS => None,
            since => Some(self.0.opened.elapsed().saturating_sub(Duration::from_millis(since))),
        }
    }

    fn begin_request(&self) -> RequestInProgress {
        self.0.idle_since_ms.store(IN_PROGRESS, Ordering::Relaxed);
        RequestInProgress(self.clone())
    }
}

impl RequestInProgress {
    /// Begins a request on its connection, if the server watches the connection. HTTP/1.1 answers the requests of a
    /// connection one after the other, so at most one of them is in progress.
    pub(crate) fn of(request: &HttpRequest) -> Option<Self> {
        request.conn_data::<ConnectionActivity>().map(ConnectionActivity::begin_request)
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let Activity { opened, idle_since_ms } = &*self.0.0;
        let now = u64::try_from(opened.elapsed().as_millis()).unwrap_or(IN_PROGRESS - 1);
        idle_since_ms.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::HttpResponse;

    use super::*;
    use crate::held_value::hold_until_sent;

    #[test]
    fn a_connection_is_idle_from_its_start_and_after_each_request() {
        let activity = ConnectionActivity::of_new_connection();
        std::thread::sleep(Duration::from_millis(30));
        assert!(activity.idle_time().is_some_and(|idle| idle >= Duration::from_millis(30)));
        for _ in 0..2 {
            let request = activity.begin_request();
            std::thread::sleep(Duration::from_millis(30));
            assert_eq!(activity.idle_time(), None);
            let before = activity.0.opened.elapsed();
            drop(request);
            let since = activity.0.idle_since_ms.load(Ordering::Relaxed);
            assert!(Duration::from_millis(since + 1) > before, "the idle time starts at the end of the request");
            assert!(activity.idle_time().is_some());
        }
    }

    #[test]
    fn a_request_is_in_progress_until_its_response_is_dropped() {
        let activity = ConnectionActivity::of_new_connection();
        let response = hold_until_sent(activity.begin_request(), HttpResponse::Ok().body("text"));
        assert_eq!(activity.idle_time(), None);
        drop(response);
        assert!(activity.idle_time().is_some());
    }
}
