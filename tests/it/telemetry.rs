//! Traces that an OpenTelemetry collector receives. The tests' server is built with the feature `telemetry`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use acceptance::cluster::wait_until;
use acceptance::server::ADMIN_PASSWORD;
use acceptance::{Client, Database, Request, Server};

/// A collector that accepts every request.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<u8>>>);

impl Collector {
    /// Starts to listen and returns the address.
    fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let reported = self.clone();
        std::thread::spawn(move || listener.incoming().for_each(|stream| reported.take(stream.expect("a connection"))));
        format!("http://{address}")
    }

    fn take(&self, mut stream: TcpStream) {
        let (mut stated, mut bytes) = (Vec::new(), [0; 4096]);
        loop {
            let count = stream.read(&mut bytes).expect("a request");
            stated.extend_from_slice(&bytes[..count]);
            let text = String::from_utf8_lossy(&stated).to_lowercase();
            let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            if stated.len() >= head.len() + 4 + length.unwrap_or(0) || count == 0 {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("a response");
        self.0.lock().expect("no poisoned lock").extend(stated);
    }

    fn has(&self, part: &[u8]) -> bool {
        self.0.lock().expect("no poisoned lock").windows(part.len()).any(|window| window == part)
    }
}

#[test]
fn a_collector_is_told_of_each_request_as_a_part_of_its_callers_trace() {
    let (database, collector) = (Database::sqlite(), Collector::default());
    let endpoint = collector.listen();
    let environment = [
        ("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let server = Server::start_in(&database, &[], &environment);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let request = Request::get("/api/customers/filter?email=secret@example.com").with("traceparent", &parent);
    let refused = Client::anonymous(&server).send(&request);
    assert_eq!(refused.status, 401);
    wait_until("the trace arrives", || collector.has(b"GET /api/customers/filter"));
    let trace: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&trace[2 * at..2 * at + 2], 16).expect("two digits")).collect();
    assert!(collector.has(&trace) && collector.has(b"POST /v1/traces") && collector.has(b"usage-billing"));
    assert!(collector.has(refused.header("x-request-id").as_bytes()) && !collector.has(b"secret@example.com"));
}
