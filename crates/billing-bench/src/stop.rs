//! Ctrl-C: everything under way ends by itself, so that nothing that was started stays behind.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Failure, Outcome};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens for SIGINT and SIGTERM from now on.
///
/// # Errors
/// When the system doesn't let us.
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

/// Whether somebody asked us to stop.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Goes on unless somebody asked us to stop.
///
/// # Errors
/// [`Failure::Stopped`].
pub(crate) fn check() -> Outcome<()> {
    if is_asked() { Err(Failure::Stopped) } else { Ok(()) }
}
