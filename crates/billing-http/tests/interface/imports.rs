//! An import that stops early reports the line at which it stopped. When the file is sent again, the import continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::Server;
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

#[actix_web::test]
async fn a_file_that_stops_in_between_says_where_and_goes_on_when_it_comes_again() {
    let store = Arc::new(TestStore::new());
    let tiring = Arc::new(Tiring { store: Arc::clone(&store), writes_left: AtomicUsize::new(usize::MAX) });
    let server = Server::on(Arc::clone(&tiring) as _, store, "http://billing.test", |_| {});
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
    let event = |key: usize| {
        json!({"timestamp": "2026-01-20T10:00:00Z", "customer_ref": "acme", "usage_product_ref": "calls", "quantity": 1,
               "idempotency_key": key.to_string()})
    };
    // Opens the document first, so that each transaction runs only once.
    assert_eq!(post("/api/usage/import", json!([event(0)])).await.status, 200);
    let file: Value = (0..1_500).map(event).collect();

    // The writes of the import record and of the first events.
    tiring.writes_left.store(2, Ordering::Relaxed);
    let stopped = post("/api/usage/import", file.clone()).await.json();

    assert_eq!([&stopped["recorded"], &stopped["already_there"]], [999, 1]);
    assert_eq!((&stopped["stopped"]["line"], &stopped["stopped"]["code"]), (&json!(1_001), &json!("contended")));
    assert_eq!(stopped["documents"][0]["events"], 999);
    tiring.writes_left.store(0, Ordering::Relaxed);
    assert_eq!(post("/api/usage/import", file.clone()).await.problem(), (503, "contended".to_owned()), "nothing was stored");
    tiring.writes_left.store(usize::MAX, Ordering::Relaxed);
    let rest = post("/api/usage/import", file).await.json();
    assert_eq!([&rest["recorded"], &rest["already_there"], &rest["stopped"]], [&json!(500), &json!(1_000), &Value::Null]);
}
