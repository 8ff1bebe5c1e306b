//! Runs the billing by itself: the same use case as on request, once in a while.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use billing_application::Services;
use billing_application::billing_run::run_billing_everywhere;

/// A thread that runs the billing until it is stopped.
pub(crate) struct Scheduler {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Scheduler {
    /// Starts it.
    pub(crate) fn start(services: Services<'static>, every: Duration) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            loop {
                run_once(&services);
                match stopped.recv_timeout(every) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self { stop, thread }
    }

    /// Lets the run that is going finish, and ends.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("the scheduler panicked");
        }
    }
}

fn run_once(services: &Services) {
    match run_billing_everywhere(services) {
        Ok(report) if report.issued.is_empty() && report.voided.is_empty() && report.failed.is_empty() => {}
        Ok(report) => tracing::info!(
            issued = report.issued.len(),
            voided = report.voided.len(),
            failed = report.failed.len(),
            "billing run"
        ),
        Err(error) => tracing::error!(%error, "the billing run could not read what is due"),
    }
}
