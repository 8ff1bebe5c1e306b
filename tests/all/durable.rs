//! System calls between a request and its response: `kill -9` proves nothing about a power failure.

use std::time::Duration;

use acceptance::{Client, Database, Server, catalog};

const POSTS: usize = 200;

#[test]
fn the_data_is_on_disk_before_each_answer() {
    let database = Database::sqlite();
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("trace");
    let traced = "--trace=recvfrom,read,readv,write,writev,sendto,sendmsg,fsync,fdatasync";
    let output = trace.to_str().expect("UTF-8");
    // -D: the server stays a child process of the test.
    let strace = ["strace", "-D", "-f", "-qq", "-s", "40", traced, "-o", output];
    let password = [("USAGE_BILLING_ADMIN_PASSWORD", acceptance::server::ADMIN_PASSWORD)];
    let mut server = Server::start_under(&strace, &database, &[], &password);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract("acme"));
    for _ in 0..POSTS {
        client.post("/api/usage/event", &catalog::event("acme", 1)).ok();
    }
    server.terminate();
    server.wait_for_exit(Duration::from_secs(30)).expect("the server exits");
    drop(server);

    let trace = std::fs::read_to_string(&trace).expect("a trace");
    let (mut answered, mut flushed) = (0, None);
    for line in trace.lines() {
        if line.contains("\"POST /api/usage/event ") {
            flushed = Some(0);
        } else if line.contains("fdatasync") && line.ends_with("= 0") {
            flushed = flushed.map(|flushed| flushed + 1);
        } else if line.contains("\"HTTP/1.1 200 OK")
            && let Some(flushed) = flushed.take()
        {
            answered += 1;
            assert!(flushed > 0, "response {answered} was sent before its data was on disk");
        }
    }
    assert_eq!(answered, POSTS, "requests and responses are traced:\n{}", trace.get(..4000).unwrap_or(&trace));
}
