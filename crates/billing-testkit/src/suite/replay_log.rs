//! Idempotency records, and locks of idempotency keys.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::{
    BodyHash, IdempotencyKey, IdempotencyRecord, MAX_KEY_CHARS, ScopedIdempotencyKey, StoredResponse,
};
use billing_domain::ports::{Store, StoreResult, Tx};
use billing_domain::refs::OrganizationId;

use super::{later, long_ago, read, undo, world, write, write_contended};

const THREADS: u32 = 4;
/// A time limit that exceeds every step of these tests.
const PATIENCE: Duration = Duration::from_secs(20);

fn request(path: &str, key: &str) -> ScopedIdempotencyKey {
    ScopedIdempotencyKey { path: path.to_owned(), key: IdempotencyKey::parse(key).expect(key) }
}

fn kept(body: &str, kept_at: Timestamp) -> IdempotencyRecord {
    IdempotencyRecord { body: BodyHash([7; 32]), answer: StoredResponse(body.as_bytes().to_vec()), kept_at }
}

fn keep(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    request: &ScopedIdempotencyKey,
    kept: &IdempotencyRecord,
) -> StoreResult<()> {
    assert!(tx.hold_key(organization, request, PATIENCE)?);
    tx.save_idempotency_record(organization, request, kept)
}

fn find(store: &dyn Store, organization: OrganizationId, request: &ScopedIdempotencyKey) -> Option<IdempotencyRecord> {
    read(store, |tx| tx.idempotency_record(organization, request, later(0)))
}

pub fn a_kept_request_comes_back_to_the_byte(store: &dyn Store) {
    let w = world(store);
    let longest = "é".repeat(MAX_KEY_CHARS);
    for (n, (key, body)) in [("k", &b"{\"a\":1.50}"[..]), (&longest, b""), ("\"a b\"", &[0, 255, 10, 13])].into_iter().enumerate()
    {
        let request = request("/api/customers/edit/a:b", key);
        let mut wanted = kept("", later(1).plus_seconds(i64::try_from(n).expect("small")));
        wanted.answer = StoredResponse(body.to_vec());
        write(store, |tx| keep(tx, w.org, &request, &wanted));
        assert_eq!(find(store, w.org, &request), Some(wanted));
    }
}

pub fn a_kept_request_is_told_by_organization_path_and_key(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    let mine = request("/api/customers", "k");
    write(store, |tx| keep(tx, one.org, &mine, &kept("mine", later(1))));
    for (organization, request) in [
        (other.org, mine.clone()),
        (one.org, request("/api/entities", "k")),
        (one.org, request("/api/customers", "K")),
        (one.org, request("/api/customers", "k ")),
    ] {
        assert_eq!(find(store, organization, &request), None, "{request:?}");
    }
    write(store, |tx| keep(tx, other.org, &mine, &kept("theirs", later(1))));
    assert_eq!(find(store, one.org, &mine), Some(kept("mine", later(1))));
    assert_eq!(find(store, other.org, &mine), Some(kept("theirs", later(1))));
}

pub fn what_was_kept_before_an_instant_does_not_come_back(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    write(store, |tx| keep(tx, w.org, &request, &kept("x", later(5))));
    for (since, found) in [(4, true), (5, true), (6, false)] {
        let answered = read(store, |tx| tx.idempotency_record(w.org, &request, later(since)));
        assert_eq!(answered.is_some(), found, "since {since}");
    }
}

pub fn a_request_kept_again_takes_the_place_of_the_older_one(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    write(store, |tx| keep(tx, w.org, &request, &kept("older", later(1))));
    let newer = IdempotencyRecord { body: BodyHash([8; 32]), ..kept("newer", later(2)) };
    write(store, |tx| keep(tx, w.org, &request, &newer));
    assert_eq!(find(store, w.org, &request), Some(newer));
}

pub fn a_kept_request_rolled_back_was_never_kept(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    undo(store, |tx| keep(tx, w.org, &request, &kept("x", later(1))));
    assert_eq!(find(store, w.org, &request), None);
}

pub fn a_key_is_held_by_one_transaction_at_a_time(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    std::thread::scope(|threads| {
        let mut twin = None;
        let (sender, receiver) = mpsc::channel();
        write(store, |tx| {
            assert!(tx.hold_key(w.org, &request, PATIENCE)?);
            // The work may be retried, but the duplicate must start only once.
            twin.get_or_insert_with(|| {
                let (sender, w, request) = (sender.clone(), &w, &request);
                threads.spawn(move || {
                    let held = write_contended(store, |tx| tx.hold_key(w.org, request, Duration::from_millis(50)));
                    sender.send(held).ok();
                });
            });
            // The duplicate can't lock the key, or it still waits for the only writer.
            let meanwhile = receiver.recv_timeout(Duration::from_millis(500));
            assert_ne!(meanwhile, Ok(true));
            Ok(())
        });
    });
    assert!(write(store, |tx| tx.hold_key(w.org, &request, Duration::ZERO)), "held no longer");
}

pub fn who_held_a_key_after_another_sees_what_was_kept(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    let (start, firsts) = (Barrier::new(THREADS as usize), AtomicU32::new(0));
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                let first = write_contended(store, |tx| {
                    assert!(tx.hold_key(w.org, &request, PATIENCE)?);
                    if tx.idempotency_record(w.org, &request, later(0))?.is_some() {
                        return Ok(false);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                    tx.save_idempotency_record(w.org, &request, &kept("x", later(1))).map(|()| true)
                });
                firsts.fetch_add(u32::from(first), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(firsts.into_inner(), 1);
}

pub fn a_key_held_twice_by_one_transaction_is_held(store: &dyn Store) {
    let w = world(store);
    let request = request("/api/customers", "k");
    let held =
        write(store, |tx| Ok((tx.hold_key(w.org, &request, Duration::ZERO)?, tx.hold_key(w.org, &request, Duration::ZERO)?)));
    assert_eq!(held, (true, true));
}

pub fn other_keys_are_held_beside_a_held_one(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    let mine = request("/api/customers", "k");
    let others = [
        (other.org, mine.clone()),
        (one.org, request("/api/entities", "k")),
        (one.org, request("/api/customers", "k2")),
        // The concatenation of path and key is the same, but the parts differ.
        (one.org, request("/api/customersk", "k")),
    ];
    std::thread::scope(|threads| {
        let mut beside = None;
        let handle = write(store, |tx| {
            assert!(tx.hold_key(one.org, &mine, PATIENCE)?);
            beside.get_or_insert_with(|| {
                threads.spawn(|| {
                    write_contended(store, |tx| {
                        others.iter().try_fold(true, |all, (organization, request)| {
                            Ok(all & tx.hold_key(*organization, request, Duration::ZERO)?)
                        })
                    })
                })
            });
            // A store with several writers has finished by then. A store with one writer waits for this transaction.
            std::thread::sleep(Duration::from_millis(100));
            Ok(beside.take())
        });
        assert!(handle.expect("it was started").join().expect("no panic"));
    });
}

pub fn purging_forgets_the_oldest_first_and_about_as_many_as_asked(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    // The limit is so old that purging doesn't affect the rows of other tests.
    let limit = long_ago();
    let requests: Vec<_> = [(&one, -30), (&other, -20), (&one, -10), (&other, -10), (&one, 0), (&other, 5)]
        .into_iter()
        .enumerate()
        .map(|(n, (w, seconds))| (w.org, request("/api/customers", &n.to_string()), limit.plus_seconds(seconds)))
        .collect();
    write(store, |tx| {
        requests.iter().try_for_each(|(organization, request, at)| keep(tx, *organization, request, &kept("x", *at)))
    });
    let left = || {
        let since = limit.plus_seconds(-60);
        let found = |n: &usize| {
            let (organization, request, _) = &requests[*n];
            read(store, |tx| tx.idempotency_record(*organization, request, since)).is_some()
        };
        (0..requests.len()).filter(found).collect::<Vec<_>>()
    };
    assert_eq!(left(), [0, 1, 2, 3, 4, 5]);
    for (asked, went, stay) in [(1, 1, &[1, 2, 3, 4, 5][..]), (2, 3, &[4, 5]), (9, 0, &[4, 5])] {
        // No other rows are that old, so only rows of this test are purged.
        assert_eq!(write(store, |tx| tx.purge_kept_requests(limit, asked)), went, "asked for {asked}");
        assert_eq!(left(), stay);
    }
}
