//! Random histories of contracts over HTTP. Operations come in any order, from any caller and in any form. After every step, the
//! billed amounts equal the cost of the usage, and callers without permission have changed nothing. `HTTP_HISTORIES=n` plays n
//! histories on each database, and `SEED=s` begins with history s. `drawn.rs` lists which operations are drawn here and which
//! elsewhere.

mod asking;
mod contract;
mod deliveries;
mod drawn;
mod feed;
mod files;
mod formats;
mod history;
mod papers;
mod rehearsal;
mod senders;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use acceptance::random::setting;
use acceptance::{Client, Database, Server, binary, on_both_databases};
use feed::Feed;
use history::{History, RefusedCounts, Stage};

on_both_databases!(what_is_billed_is_what_was_used_after_every_step);

const HISTORIES: u64 = 10;
/// The number of histories from which on every operation must be drawn.
const ALL_DRAWN: u64 = 40;
/// The number of histories between two verifications. A verification takes longer each time.
const VERIFIED_EVERY: u64 = 8;
/// The server's cache of events never drops an entry, so a wrong one would be used.
const LARGEST_CACHE: [&str; 2] = ["--event-cache", "100000"];
/// On PostgreSQL, a second server gets every second request. Its cache drops entries.
const SMALLEST_CACHE: [&str; 2] = ["--event-cache", "1"];
/// A run of several hours logs in often and needs credentials that stay valid.
const FLAGS: [&str; 6] = ["--token-lifetime-seconds", "86400", "--logins-per-minute", "1000000", "--login-failures", "10000"];

fn what_is_billed_is_what_was_used_after_every_step(database: &Database) {
    let start = |cache: [&str; 2]| Server::start_with(database, &[FLAGS.as_slice(), cache.as_slice()].concat());
    let mut servers = vec![start(LARGEST_CACHE)];
    if !database.is_sqlite() {
        servers.push(start(SMALLEST_CACHE));
    }
    let stage = Stage::new(&servers[0], servers.get(1));
    let (first, count) = (setting("SEED", 1), setting("HTTP_HISTORIES", HISTORIES));
    let (mut refused, mut done) = (RefusedCounts::new(), BTreeSet::from(Stage::DONE));
    let mut feed = Feed::default();
    for seed in first.. {
        // A run of the usual length continues until every operation is drawn, but at most for the same number of histories again.
        let is_drawn = count < ALL_DRAWN || done == drawn::here();
        if seed >= first + count && (is_drawn || seed >= first + 2 * count) {
            assert!(is_drawn, "{done:?} is drawn, not {:?}", drawn::here());
            break;
        }
        let left = History::play(&stage, seed);
        feed.read_on(database, &stage.client, seed);
        refused.extend(left.refused);
        done.extend(left.done);
        if (seed - first) % VERIFIED_EVERY == VERIFIED_EVERY - 1
            && let Err(found) = binary::verify(database.url())
        {
            panic!("SEED={} HTTP_HISTORIES={VERIFIED_EVERY}: {found}", seed + 1 - VERIFIED_EVERY);
        }
    }
    feed.end(database, &stage.client);
    // A server writes its counts of rejected usage when it exits.
    for mut server in servers {
        server.terminate();
        assert!(server.wait_for_exit(Duration::from_secs(30)).is_some(), "the server exits");
    }
    let server = Server::start(database);
    let counted = counted(&Client::new_key(&server));
    for (key, count) in refused.iter().chain(&counted) {
        assert_eq!(
            (refused.get(key), counted.get(key)),
            (Some(count), Some(count)),
            "rejected usage of {key:?}: use the number as SEED, and HTTP_HISTORIES=1"
        );
    }
}

/// Returns the counts of all rejected usage, summed over all days.
fn counted(client: &Client) -> RefusedCounts {
    let mut counts = BTreeMap::new();
    for page in 0.. {
        let rows = client.get(&format!("/api/usage/refused/filter?pageSize=1000&pageNumber={page}")).ok();
        let rows = rows.as_array().expect("a list");
        for row in rows {
            let [customer, usage_product, code] =
                ["customer_ref", "usage_product_ref", "code"].map(|field| row[field].as_str().expect(field).to_owned());
            *counts.entry((customer, usage_product, code)).or_default() += row["count"].as_u64().expect("a count");
        }
        if rows.is_empty() {
            break;
        }
    }
    counts
}
