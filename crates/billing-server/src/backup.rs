//! `backup`: copies a SQLite database, also while a server writes.

use std::fs::File;
use std::io;
use std::path::Path;

use billing_storage::DatabaseUrl;
use secrecy::ExposeSecret as _;

use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::sandbox;
use crate::say;
use crate::settings::BackupSettings;

/// Writes the backup. The file gets its name only when it is complete and on disk, so that an incomplete copy never
/// looks like a backup.
pub(crate) fn back_up(settings: &BackupSettings) -> CommandResult<()> {
    let file = &settings.file;
    if DatabaseUrl::parse(settings.store.database_url()?.expose_secret())?.file().is_none() {
        return Err(CommandError::Setting("backup copies only SQLite files: use pg_dump for a PostgreSQL database".to_owned()));
    }
    if file.symlink_metadata().is_ok() {
        return Err(CommandError::Setting(format!("the backup must be a new file: {} exists", file.display())));
    }
    let failed = |error: io::Error| CommandError::Failed(format!("cannot write {}: {error}", file.display()));
    let database = composition::open_existing(&settings.store)?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only its owner can read the file, as with the database. The file is deleted unless it gets its name.
    let mut named = tempfile::Builder::new();
    let copy = named.prefix(".usage-billing-backup").tempfile_in(directory).map_err(failed)?;
    let administrators = if settings.sandbox {
        // The second copy has nothing of the deleted rows, which the first one still has in unused pages.
        let folder = named.tempdir_in(directory).map_err(failed)?;
        let first = folder.path().join("copy.sqlite3");
        File::create(&first).map_err(failed)?;
        database.copy_into(&first).map_err(CommandError::store)?;
        sandbox::convert(&first, copy.path())?
    } else {
        database.copy_into(copy.path()).map_err(CommandError::store)?;
        Vec::new()
    };
    copy.as_file().sync_all().map_err(failed)?;
    copy.persist_noclobber(file).map_err(|error| failed(error.error))?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    say(&format!("Wrote {}.", file.display()))?;
    sandbox::say_administrators(&administrators)
}
