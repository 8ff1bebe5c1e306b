//! What is done once in a while without being asked: the billing run, the same use case as on request, and forgetting
//! the answers that are no longer given again.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use billing_application::Services;
use billing_application::billing_run::run_billing_everywhere;
use billing_application::idempotency::forget_old_answers;

/// A thread that does it until it is stopped.
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
                run_billing(&services);
                forget(&services);
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

fn run_billing(services: &Services) {
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

fn forget(services: &Services) {
    match forget_old_answers(services) {
        Ok(0) => {}
        Ok(answers) => tracing::info!(answers, "forgot answers that are no longer given again"),
        Err(error) => tracing::error!(%error, "old answers could not be forgotten"),
    }
}
