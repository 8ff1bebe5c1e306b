//! The law of a sandbox: an advance does the same by way of any instants.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing_application::Services;
use billing_application::notifications::number_notifications;
use billing_application::sandbox::{AdvanceRequest, advance_clock};
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::notification::NotificationType;
use billing_domain::ports::NotificationFilter;
use billing_domain::refs::ServerRef;
use uuid::Uuid;

use super::{Bench, Checked, DocumentFigures, same};

/// The length of an advance, in days.
const DAYS: i64 = 100;
const DAY_MICROS: i64 = 86_400_000_000;
/// Of this many checks, one is made.
const EVERY: u64 = 3;
/// The number of instants at which the second advance stops.
const STOPS: u64 = 6;

/// A document with the dates of its issue.
type Dated = (DocumentFigures, Option<(Date, Option<Date>, bool)>);

/// Checks that a copy of the bench that is moved at once, and another one that is moved by way of some instants, end alike. `seed`
/// chooses the instants. Of [`EVERY`] checks, one is made, because all of them would make the histories half as long again.
pub(super) fn check_advance(bench: &Bench, seed: u64) -> Checked {
    if !seed.is_multiple_of(EVERY) {
        return Ok(());
    }
    let end = bench.now().plus_seconds(DAYS * 86_400);
    let mut stops: Vec<Timestamp> =
        (0..STOPS).map(|stop| instant(bench.now(), seed.wrapping_mul(STOPS).wrapping_add(stop))).collect();
    stops.sort();
    stops.push(end);
    let (at_once, in_steps) = (bench.fork(), bench.fork());
    advance(&at_once, &[end])?;
    advance(&in_steps, &stops)?;
    let way = format!("by way of {stops:?}");
    same(&format!("the documents after an advance {way}"), &documents(&at_once), &documents(&in_steps))?;
    same(&format!("the feed after an advance {way}"), &feed(&at_once), &feed(&in_steps))
}

/// Returns an instant of the advance. Every second one is the beginning of a day.
fn instant(now: Timestamp, seed: u64) -> Timestamp {
    // Steele, Lea and Flood's SplitMix64.
    let mut word = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let micros = now.as_micros() + i64::try_from(word >> 1).expect("63 bits") % (DAYS * DAY_MICROS);
    let micros = if seed.is_multiple_of(2) { micros } else { (micros - micros.rem_euclid(DAY_MICROS)).max(now.as_micros()) };
    Timestamp::from_micros(micros).expect("an instant")
}

fn advance(bench: &Bench, stops: &[Timestamp]) -> Checked {
    let services = &Services { sandbox: Some(Arc::clone(&bench.clock) as _), ..bench.services.clone() };
    let principal = &bench.principal;
    let server = ServerRef::from_uuid(Uuid::nil());
    let number = || number_notifications(services, server, &|| false).map(drop);
    for to in stops {
        let wanted = AdvanceRequest { number: Some(&number), ..AdvanceRequest::whole(*to) };
        let advanced = advance_clock(services, principal, wanted).map_err(|error| format!("{error:?}"))?;
        same("what the clock shows", &(*to, true), &(advanced.now, advanced.reached))?;
    }
    Ok(())
}

fn documents(bench: &Bench) -> BTreeMap<String, Dated> {
    let dated = |view| {
        let (number, figures) = DocumentFigures::of(&view);
        (number, (figures, view.issued.map(|issued| (issued.issue_date, issued.due_date, issued.overdue))))
    };
    bench.documents().into_iter().map(dated).collect()
}

/// Returns the notifications in their order. Those of failures are repeated once a day by the runs of an instant, of which a way with
/// more instants has more.
fn feed(bench: &Bench) -> Vec<(NotificationType, Timestamp, String)> {
    let organization = bench.principal.organization();
    let all = bench.read(|tx| tx.notifications(organization, &NotificationFilter::default(), 0, u32::MAX));
    let others = all.into_iter().filter(|one| one.kind != NotificationType::BillingFailed);
    // References differ, and so does the sequence of a contract that cannot be billed.
    let comparable = |body: &str| match body.split(' ').collect::<Vec<_>>().as_slice() {
        [kind, subject, _, rest @ ..] if subject.starts_with("contract:") => format!("{kind} {}", rest.join(" ")),
        [kind, _, rest @ ..] => format!("{kind} {}", rest.join(" ")),
        _ => body.to_owned(),
    };
    others.map(|one| (one.kind, one.created_at, comparable(&one.body))).collect()
}
