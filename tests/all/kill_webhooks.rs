//! `kill -9` while webhooks are delivered: no notification is lost.

use acceptance::Database;
use acceptance::hooks::kill_while_delivering;
use acceptance::random::setting;

/// The number of kills. `WEBHOOK_KILLS` sets another number.
const KILLS: u64 = 200;

fn kills() -> usize {
    usize::try_from(setting("WEBHOOK_KILLS", KILLS)).expect("a small number")
}

#[test]
fn sqlite_delivers_every_notification_through_kill_9() {
    kill_while_delivering(&Database::sqlite(), kills());
}

#[test]
fn postgres_delivers_every_notification_through_kill_9() {
    kill_while_delivering(&Database::postgres(), kills());
}
