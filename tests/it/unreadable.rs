//! Data that isn't HTTP: the server returns a bare status and closes the connection. Requests that can be read receive a problem
//! document.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use acceptance::{Client, Database, Server};

/// Returns the server's response to these bytes, read until the server closes the connection.
fn answer(server: &Server, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(server.address()).expect("a connection");
    // A server that rejects the beginning need not read the rest.
    let _ = connection.write_all(bytes);
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    let _ = connection.shutdown(Shutdown::Both);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(headers: &str) -> Vec<u8> {
    format!("GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").into_bytes()
}

#[test]
fn a_head_that_is_not_http_gets_a_bare_status() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let fields = |count: usize| (0..count).map(|n| format!("X-{n}: a\r\n")).collect::<String>();
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("no request line", b"NONSENSE\r\n\r\n".to_vec(), "400"),
        ("another version", b"GET / HTTP/3.0\r\nHost: x\r\n\r\n".to_vec(), "400"),
        ("a method of other characters", b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "400"),
        ("a space in the address", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "400"),
        ("a byte no address has", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "400"),
        ("a long address", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(65_535)).into_bytes(), "400"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), "400"),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), "400"),
        ("no host", b"GET /nothing HTTP/1.1\r\n\r\n".to_vec(), "400"),
        ("a NUL in a value", get("X: a\0b\r\n"), "400"),
        ("a control character in a value", get("X: a\u{1}b\r\n"), "400"),
        ("a space in a name", get("X y: a\r\n"), "400"),
        ("a length that is no number", get("Content-Length: x\r\n"), "400"),
        ("two lengths", get("Content-Length: 1\r\nContent-Length: 2\r\n"), "400"),
        ("length and chunks", get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "400"),
        ("another coding", get("Transfer-Encoding: gzip\r\n"), "400"),
        ("a long head", get(&format!("X: {}\r\n", "a".repeat(140_000))), "431"),
        ("too many fields", get(&fields(97)), "431"),
    ];
    for (what, bytes, status) in rows {
        let answer = answer(&server, &bytes);
        let bare = answer.contains("\r\ncontent-length: 0\r\n") && answer.ends_with("\r\n\r\n");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && bare, "{what}: {answer}");
    }
    let read: Vec<(&str, Vec<u8>, &str)> = vec![
        ("bytes above ASCII in a value", [get("")[..get("").len() - 2].to_vec(), b"X: \xe4\r\n\r\n".to_vec()].concat(), "404"),
        ("a head within the limit", get(&format!("X: {}\r\n", "a".repeat(100_000))), "404"),
        ("as many fields as may be", get(&fields(94)), "404"),
    ];
    for (what, bytes, status) in read {
        let answer = answer(&server, &bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
        assert!(answer.contains("application/problem+json") && answer.contains("\"route_not_found\""), "{what}: {answer}");
    }
    assert_eq!(Client::anonymous(&server).get("/health/ready").status, 200);
}
