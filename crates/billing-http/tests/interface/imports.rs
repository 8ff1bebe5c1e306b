//! An import that stops early reports the line at which it stopped. When the file is sent again, the import continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Reply, Server};
use billing_domain::ports::{Access, RollBack, Store, StoreError, StoreResult, Tx};
use billing_teststore::TestStore;
use serde_json::{Value, json};

/// A store that reports contention after a number of writes.
struct Tiring {
    store: Arc<TestStore>,
    writes_left: AtomicUsize,
}

impl Store for Tiring {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        let left = |left: usize| left.checked_sub(usize::from(access == Access::Write));
        match self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => self.store.run(access, work),
            Err(_) => Err(StoreError::Contended),
        }
    }

    fn ready(&self) -> StoreResult<()> {
        self.store.ready()
    }
}

/// Creates what events need, and returns the bearer header.
async fn stage(server: &Server) -> String {
    let bearer = server.bearer(&["usage:write", "contracts:write", "catalog:write"]).await;
    let post = async |path: &str, body: Value| server.post(path, ("authorization", &bearer), &body.to_string()).await;
    post("/api/customers/", json!({"customer_ref": "acme", "name": "Acme"})).await;
    post("/api/usage/products/", json!({"usage_product_ref": "calls", "name": "Calls"})).await;
    let price = json!({"model": "PER_UNIT", "unit_price": "0.0025"});
    let line_item =
        json!({"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "calls", "price": price});
    post("/api/pricings/", json!({"product_pricing_ref": "api", "name": "API", "currency": "EUR", "line_items": [line_item]}))
        .await;
    let product = json!({"product_pricing_ref": "api", "billing_start_date": "2026-01-01", "billing_end_date": "2026-12-31"});
    assert_eq!(post("/api/contracts/", json!({"customer_ref": "acme", "products": [product]})).await.status, 200);
    // Opens the document first, so that each transaction runs only once.
    assert_eq!(post("/api/usage/import", file(1)).await.status, 200);
    bearer
}

fn event(key: usize) -> Value {
    json!({"timestamp": "2026-01-20T10:00:00Z", "customer_ref": "acme", "usage_product_ref": "calls", "quantity": 1,
           "idempotency_key": key.to_string()})
}

/// Returns a file of events with keys. The first event of each file is the same.
fn file(events: usize) -> Value {
    (0..events).map(event).collect()
}

/// Returns a file with three new events, each in a transaction of its own. The elements between them are invalid, so they take
/// little time.
fn with_gaps(lines_per_transaction: usize) -> Value {
    let element = |index: usize| {
        if index.is_multiple_of(lines_per_transaction) { event(index + 1) } else { json!({"event_ref": 1}) }
    };
    (0..=2 * lines_per_transaction).map(element).collect()
}

/// Returns the first line of a request, and the numbers of recorded, existing and rejected events.
#[track_caller]
fn counts(result: &Value) -> [u64; 4] {
    ["from_line", "recorded", "already_there", "refused"].map(|field| result[field].as_u64().expect("a count"))
}

async fn import(server: &Server, bearer: &str, query: &str, file: &Value) -> Reply {
    server.post(&format!("/api/usage/import{query}"), ("authorization", bearer), &file.to_string()).await
}

/// Checks the problem of an import that stopped, and returns the result in it.
#[track_caller]
fn stopped_at(reply: &Reply, line: u64, code: &str) -> Value {
    assert_eq!(reply.problem(), (503, "import_stopped".to_owned()));
    let problem = reply.json();
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains(&format!("at line {line} ")) && detail.contains(&format!("from_line={line}")), "{detail}");
    let result = problem["import"].clone();
    assert_eq!((&result["stopped"]["line"], &result["stopped"]["code"]), (&json!(line), &json!(code)), "{result}");
    result
}

#[actix_web::test]
async fn a_file_that_stops_in_between_says_where_and_goes_on_when_it_comes_again() {
    let store = Arc::new(TestStore::new());
    let tiring = Arc::new(Tiring { store: Arc::clone(&store), writes_left: AtomicUsize::new(usize::MAX) });
    let server = Server::on(Arc::clone(&tiring) as _, store, "http://billing.test", |_| {});
    let bearer = stage(&server).await;
    let file = file(1_500);

    // The writes of the import record and of the first events.
    tiring.writes_left.store(2, Ordering::Relaxed);
    let stopped = stopped_at(&import(&server, &bearer, "", &file).await, 1_001, "contended");

    assert_eq!([&stopped["recorded"], &stopped["already_there"]], [999, 1]);
    assert_eq!(stopped["documents"][0]["events"], 999);
    tiring.writes_left.store(0, Ordering::Relaxed);
    let refused = import(&server, &bearer, "", &file).await;
    assert_eq!(refused.problem(), (503, "contended".to_owned()), "nothing was stored");
    assert!(refused.json().get("import").is_none(), "{refused:?}");
    tiring.writes_left.store(usize::MAX, Ordering::Relaxed);
    let rest = import(&server, &bearer, "", &file).await;
    assert_eq!(rest.status, 200);
    let rest = rest.json();
    assert_eq!([&rest["recorded"], &rest["already_there"], &rest["stopped"]], [&json!(500), &json!(1_000), &Value::Null]);
}

#[actix_web::test]
async fn lines_that_are_recorded_need_no_write() {
    let store = Arc::new(TestStore::new());
    let tiring = Arc::new(Tiring { store: Arc::clone(&store), writes_left: AtomicUsize::new(usize::MAX) });
    let server = Server::on(Arc::clone(&tiring) as _, store, "http://billing.test", |_| {});
    let bearer = stage(&server).await;
    let mut file = file(1_500);
    assert_eq!(import(&server, &bearer, "", &file).await.status, 200);

    // The begin and the end of the import record.
    tiring.writes_left.store(2, Ordering::Relaxed);
    let again = import(&server, &bearer, "", &file).await;
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!([&again.json()["recorded"], &again.json()["already_there"]], [0, 1_500]);
    tiring.writes_left.store(0, Ordering::Relaxed);
    let dry = import(&server, &bearer, "?dry_run=true", &file).await;
    assert_eq!((dry.status.as_u16(), &dry.json()["already_there"]), (200, &json!(1_500)), "{dry:?}");

    tiring.writes_left.store(usize::MAX, Ordering::Relaxed);
    file[1_200]["quantity"] = json!(2);
    let changed = import(&server, &bearer, "", &file).await.json();
    assert_eq!([&changed["recorded"], &changed["already_there"], &changed["refused"]], [0, 1_499, 1]);
    assert_eq!(
        (&changed["rejects"][0]["line"], &changed["rejects"][0]["code"]),
        (&json!(1_201), &json!("idempotency_key_reuse"))
    );
}

#[actix_web::test]
async fn an_import_that_runs_out_of_time_can_be_continued_from_its_line() {
    // All of the time is reserved for the response, so an import stops after its first transaction.
    let server = Server::with("http://billing.test", |settings| settings.request_timeout = Duration::from_secs(5));
    let bearer = stage(&server).await;
    let file = with_gaps(1_000);

    let first = stopped_at(&import(&server, &bearer, "", &file).await, 1_001, "timed_out");
    assert_eq!(counts(&first), [1, 1, 0, 999]);
    let second = stopped_at(&import(&server, &bearer, "?from_line=1001", &file).await, 2_001, "timed_out");
    assert_eq!(counts(&second), [1_001, 1, 0, 999]);
    let last = import(&server, &bearer, "?from_line=2001", &file).await;
    assert_eq!((last.status.as_u16(), counts(&last.json())), (200, [2_001, 1, 0, 0]), "{last:?}");

    let again = stopped_at(&import(&server, &bearer, "", &file).await, 1_001, "timed_out");
    assert_eq!(counts(&again), [1, 0, 1, 999]);
    let behind_the_end = import(&server, &bearer, "?from_line=2002", &file).await;
    assert_eq!((behind_the_end.status.as_u16(), counts(&behind_the_end.json())), (200, [2_002, 0, 0, 0]));
}

#[actix_web::test]
async fn a_dry_run_that_stops_says_so_and_has_no_totals() {
    let store = Arc::new(TestStore::new());
    let tiring = Arc::new(Tiring { store: Arc::clone(&store), writes_left: AtomicUsize::new(usize::MAX) });
    let server = Server::on(Arc::clone(&tiring) as _, store, "http://billing.test", |_| {});
    let bearer = stage(&server).await;
    let file = with_gaps(10_000);
    tiring.writes_left.store(1, Ordering::Relaxed);
    let reply = import(&server, &bearer, "?dry_run=true", &file).await;
    let stopped = stopped_at(&reply, 10_001, "contended");
    assert_eq!(counts(&stopped), [1, 1, 0, 9_999]);
    assert_eq!((&stopped["dry_run"], &stopped["documents"][0]["total"]), (&json!(true), &Value::Null));
    assert!(reply.text.contains("nothing is stored"), "{reply:?}");
}
