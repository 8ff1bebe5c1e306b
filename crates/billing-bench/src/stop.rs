//! The handling of Ctrl-C. All work in progress ends on its own, so that nothing that the run started is left behind.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Failure, Outcome};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens for SIGINT and SIGTERM from now on.
///
/// # Errors
/// Fails if the system rejects the signal handler.
pub(crate) fn listen() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut terminate = {
        let _entered = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                }
                ASKED.store(true, Ordering::SeqCst);
            }
        });
    });
    Ok(())
}

/// Returns whether a signal requested a stop.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Checks that no signal requested a stop.
///
/// # Errors
/// Returns [`Failure::Stopped`] after such a signal.
pub(crate) fn check() -> Outcome<()> {
    if is_asked() { Err(Failure::Stopped) } else { Ok(()) }
}
