//! `restore` and `restored`: a database continues from a backup, in another epoch of notifications.

use std::time::{Duration, Instant};

use billing_application::notifications::start_epoch;
use billing_domain::notification::epoch::Restore;
use billing_domain::ports::{Access, Clock as _, StoreError, transact};
use billing_storage::{Database, DatabaseUrl, RestoreError, restore_file};
use secrecy::ExposeSecret as _;

use crate::composition;
use crate::environment::SystemClock;
use crate::failure::{CommandError, CommandResult};
use crate::say;
use crate::settings::{RestoreSettings, RestoredSettings};

/// The time for connections that are ending.
const CONNECTIONS_WAIT: Duration = Duration::from_secs(2);
/// The pause between two counts of connections.
const CONNECTIONS_PAUSE: Duration = Duration::from_millis(100);

impl From<RestoreError> for CommandError {
    fn from(error: RestoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Replaces a SQLite database by a backup.
pub(crate) fn restore(settings: &RestoreSettings) -> CommandResult<()> {
    let url = DatabaseUrl::parse(settings.store.database_url()?.expose_secret())?;
    let Some(path) = url.file() else {
        let reason = "restore replaces only SQLite files: restore a PostgreSQL database with its own tools, and run `usage-billing \
                      restored`";
        return Err(CommandError::Setting(reason.to_owned()));
    };
    let now = SystemClock::default().now();
    let mut started = None;
    let stamp = u64::try_from(now.as_micros() / 1_000_000).unwrap_or_default();
    let former = restore_file(&url, &settings.file, stamp, |tx| {
        started = Some(start_epoch(tx, now)?);
        Ok(())
    })?;
    say(&format!("Restored {} to {}.", settings.file.display(), path.display()))?;
    if let Some(former) = former {
        say(&format!("The former database is {}.", former.display()))?;
    }
    started.map_or(Ok(()), |restore| say_position(&restore))
}

/// Starts an epoch in a PostgreSQL database that other tools restored.
pub(crate) fn restored(settings: &RestoredSettings) -> CommandResult<()> {
    let mut store = settings.store.clone();
    if DatabaseUrl::parse(store.database_url()?.expose_secret())?.file().is_some() {
        return Err(CommandError::Setting("the database is a SQLite file: run `usage-billing restore FILE`".to_owned()));
    }
    store.database_connections = 1;
    let database = composition::open_as_it_is(&store)?;
    require_alone(&database, "stop all servers and other clients first")?;
    let now = SystemClock::default().now();
    let restore = transact::<Restore, StoreError>(&database, Access::Write, |tx| start_epoch(tx, now));
    let restore = restore.map_err(CommandError::store)?;
    // A server that started meanwhile may know the earlier epoch only.
    require_alone(&database, "stop it, and run the command again")?;
    say_position(&restore)
}

/// Checks that no other client has a connection to the database.
pub(crate) fn require_alone(database: &Database, remedy: &str) -> CommandResult<()> {
    let began = Instant::now();
    loop {
        let others = database.other_connections().map_err(CommandError::store)?;
        if others == 0 {
            return Ok(());
        }
        if began.elapsed() >= CONNECTIONS_WAIT {
            let them = if others == 1 { "another client is".to_owned() } else { format!("{others} other clients are") };
            return Err(CommandError::Failed(format!("{them} connected to the database: {remedy}")));
        }
        std::thread::sleep(CONNECTIONS_PAUSE);
    }
}

fn say_position(restore: &Restore) -> CommandResult<()> {
    let start = restore.epoch.start();
    say(&format!("Positions of notifications continue after {start}. Clients have everything up to {}.", restore.restored_to))
}
