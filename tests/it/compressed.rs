//! `Content-Encoding: gzip`: batches and files are decompressed while they arrive, within the limits of plain bodies.

use std::fs;
use std::io::Write as _;

use acceptance::{Answer, Client, Database, Request, binary, catalog, on_sqlite, when};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

on_sqlite!(
    compressed_batches_and_files_are_as_plain_ones,
    a_compressed_body_that_is_damaged_is_rejected,
    a_small_body_that_decompresses_to_a_large_one_is_rejected_with_little_memory,
    a_compressed_file_is_imported_on_the_command_line,
);

const NDJSON: &str = "application/x-ndjson";
const IMPORT: &str = "/api/usage/import?name=a.ndjson";
const BATCH: &str = "/api/usage/event/batch";
/// The limit of a batch or a file over HTTP.
const LIMIT: usize = 8 * 1024 * 1024;

fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_ref()).expect("memory");
    encoder.finish().expect("memory")
}

fn send(client: &Client, path: &str, content_type: &str, body: impl Into<Vec<u8>>, coding: &str) -> Answer {
    client.send(&Request::post(path, body).with("Content-Type", content_type).with("Content-Encoding", coding))
}

/// Returns events of which each has a key, one per line.
fn lines(count: usize) -> String {
    let event = catalog::with(catalog::event(catalog::ACME, 1), &json!({"timestamp": when::now()}));
    let line = |index: usize| format!("{}\n", catalog::with(event.clone(), &json!({"idempotency_key": format!("k-{index}")})));
    (0..count).map(line).collect()
}

fn compressed_batches_and_files_are_as_plain_ones(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let lines = lines(3_000);
    let imported = send(&client, IMPORT, NDJSON, gzip(&lines), "gzip").ok();
    assert_eq!((&imported["recorded"], &imported["refused"]), (&json!(3_000), &json!(0)), "{imported}");
    let import = client.get("/api/usage/imports/filter").ok()[0].clone();
    assert_eq!(import["bytes"], json!(lines.len()), "the size of the file is that of its content");
    // In several members, as parallel compressors write.
    let (first, second) = lines.split_at(lines.len() / 2);
    let members = [gzip(first), gzip(second)].concat();
    for coding in ["gzip", "GZIP", "x-gzip"] {
        let answer = send(&client, BATCH, NDJSON, members.clone(), coding);
        assert_eq!((answer.status, answer.text.matches("event_ref").count()), (200, 3_000), "{coding}");
    }
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let batch = send(&client, BATCH, "application/json", gzip(json!({"events": events}).to_string()), "gzip").ok();
    assert_eq!(batch["results"].as_array().map(Vec::len), Some(3_000));
    let plain = send(&client, IMPORT, NDJSON, lines, "identity").ok();
    assert_eq!(plain["already_there"], json!(3_000));
    // The Idempotency-Key compares the content.
    let keyed = client.with_header("Idempotency-Key", "one");
    let event = events[0].to_string();
    let once = send(&keyed, IMPORT, NDJSON, gzip(&event), "gzip");
    let again = send(&keyed, IMPORT, NDJSON, event, "identity");
    assert_eq!((once.status, again.header("Idempotency-Replayed"), once.text), (200, "true", again.text.clone()));
    let count = client.get("/api/usage/event/filter?pageSize=1");
    assert_eq!(count.header("X-Total-Count"), "3000");
}

fn a_compressed_body_that_is_damaged_is_rejected(database: &Database) {
    let (_server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let whole = gzip(lines(100));
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    for (what, body) in [
        ("cut", whole[..whole.len() - 9].to_vec()),
        ("damaged", damaged),
        ("plain", lines(1).into_bytes()),
        ("empty", Vec::new()),
    ] {
        let refused = send(&client, IMPORT, NDJSON, body, "gzip");
        assert_eq!((refused.status, refused.text_of("code").as_str()), (400, "incomplete_body"), "{what}: {}", refused.text);
    }
    assert_eq!(client.get("/api/usage/event/filter?pageSize=1").header("X-Total-Count"), "0");
    for (path, coding) in [(IMPORT, "br"), (BATCH, "deflate"), (IMPORT, "gzip, gzip"), ("/api/usage/event", "gzip")] {
        let refused =
            send(&client, path, if path == "/api/usage/event" { "application/json" } else { NDJSON }, whole.clone(), coding);
        assert_eq!((refused.status, refused.text_of("code").as_str()), (415, "unsupported_media_type"), "{path} {coding}");
    }
}

/// Returns the largest memory of a process so far, in KiB.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the largest memory");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}

fn a_small_body_that_decompresses_to_a_large_one_is_rejected_with_little_memory(database: &Database) {
    let (server, client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let known = lines(1_000);
    send(&client, IMPORT, NDJSON, gzip(&known), "gzip").ok();
    let before = peak_memory(server.id());
    // Each member is 1 MiB of blanks, so the body is that of a file of gigabytes.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&[b' '; 1024 * 1024]).expect("memory");
    let member = encoder.finish().expect("memory");
    let bomb = member.repeat(LIMIT / member.len());
    assert!(bomb.len() <= LIMIT && LIMIT / member.len() > 1_000, "{}", member.len());
    for (path, content_type) in [(IMPORT, NDJSON), (IMPORT, "text/csv"), (BATCH, "application/json")] {
        let refused = send(&client, path, content_type, bomb.clone(), "gzip");
        assert_eq!(
            (refused.status, refused.text_of("code").as_str()),
            (413, "body_too_large"),
            "{path} {content_type}: {}",
            refused.text
        );
    }
    // A batch of lines has its status before the rest arrives.
    let refused = send(&client, BATCH, NDJSON, bomb, "gzip");
    assert!(refused.text.contains("body_too_large"), "{}", refused.text);
    let grown = peak_memory(server.id()).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
    // The limit of what arrives holds, too.
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(&vec![b' '; LIMIT]).expect("memory");
    let refused = send(&client, IMPORT, NDJSON, stored.finish().expect("memory"), "gzip");
    assert_eq!(refused.status, 413, "{}", refused.text);
    let longest = send(
        &client,
        IMPORT,
        NDJSON,
        gzip(format!("{}\n{}", known.lines().next().expect("a line"), " ".repeat(LIMIT - 1_000))),
        "gzip",
    );
    assert_eq!(longest.ok()["already_there"], json!(1));
}

fn a_compressed_file_is_imported_on_the_command_line(database: &Database) {
    let (_server, _client, _) = catalog::stage_with(database, &catalog::contract(catalog::ACME));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let row = format!("{},acme,api-calls,1\n", when::now());
    let file = format!("timestamp,customer_ref,usage_product_ref,quantity\n{}", row.repeat(5));
    let import = |name: &str, content: Vec<u8>| {
        let path = directory.path().join(name);
        fs::write(&path, content).expect("a file");
        binary::succeed(database, &["import", path.to_str().expect("a path")])
    };
    assert!(import("usage.csv.gz", gzip(&file)).starts_with("Events recorded: 5; duplicates: 0; rejected: 0.\n"));
    // Its lines are those of the plain file.
    assert!(import("usage.csv", file.into_bytes()).starts_with("Events recorded: 0; duplicates: 5; rejected: 0.\n"));
    assert!(import("keys.ndjson", gzip(lines(2))).starts_with("Events recorded: 2;"), "the content decides, not the name");
}
