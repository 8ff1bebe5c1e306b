//! Targets that send bodies, queries and cookies of arbitrary bytes to a complete server in the same process, on SQLite in
//! memory.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;

use actix_web::http::Uri;
use actix_web::http::header::HeaderValue;
use actix_web::rt::{System, SystemRunner};
use actix_web::test::{TestRequest, init_service};
use billing_api::operation::HttpMethod;
use billing_api::operations::{OPERATIONS, OperationSpec};
use billing_domain::access::Permission;

use crate::server::{Reply, Server, UNKNOWN, answer, from_elsewhere};

const BEARER: &str = "authorization";
const JSON: &str = "application/json";
/// The placeholder for the session cookie in corpus inputs, because each run has another cookie.
const SESSION: &str = "SESSION";
/// The number of requests per server. A new server limits the earlier requests on which a failure can depend.
const REQUESTS_EACH: u32 = 500;
/// Operations that end the session or key that the next request needs.
const ENDING: [&str; 2] = ["log_out", "end_session"];

/// A service in a box, because its concrete type has no name.
type TestService = Box<dyn Fn(TestRequest) -> Pin<Box<dyn Future<Output = Reply>>>>;

/// A server with a contract, and the credentials of its callers.
struct World {
    asked: TestService,
    system: SystemRunner,
    bearer: String,
    cookie: String,
    requests: u32,
}

/// The directory of a server's database. It is deleted even if the server is not dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // A dropped server has already deleted its directory.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

impl World {
    fn new() -> (Self, Directory) {
        let system = System::new();
        let (asked, directory, bearer, cookie) = system.block_on(async {
            let server = Server::new();
            let bearer = server.bearer(&["usage:write", "contracts:write", "catalog:write", "documents:write", "read"]).await;
            let cookie = server.session().await;
            server.make_a_contract(&bearer).await;
            let directory = Directory(server.store.directory().to_owned());
            let app = Rc::new(init_service(billing_http::app(server.state)).await);
            let asked = move |request| {
                let (app, request) = (Rc::clone(&app), from_elsewhere(request).to_request());
                Box::pin(async move { answer(&*app, request).await }) as _
            };
            (Box::new(asked), directory, bearer, cookie)
        });
        (Self { system, asked, bearer, cookie, requests: 0 }, directory)
    }

    fn ask(&mut self, request: TestRequest) -> Reply {
        self.requests += 1;
        let reply = self.system.block_on((self.asked)(request));
        assert!(!reply.status.is_server_error(), "{reply:?}");
        reply
    }

    /// Adds the credential that the operation requires.
    fn allowed(&self, operation: &OperationSpec, request: TestRequest) -> TestRequest {
        match operation.need() {
            None => request,
            Some(Permission::Administrator | Permission::Owner) => request.insert_header(("cookie", self.cookie.as_str())),
            Some(Permission::Scope(_) | Permission::ScopeAndRead(_) | Permission::ScopeOrRole(..)) => {
                request.insert_header((BEARER, self.bearer.as_str()))
            }
        }
    }
}

fn in_a_world(try_out: impl FnOnce(&mut World)) {
    // Dropping a server needs thread-local values of actix, which may be gone when the thread ends. The server is not dropped
    // then.
    thread_local!(static WORLD: RefCell<Option<(ManuallyDrop<World>, Directory)>> = const { RefCell::new(None) });
    WORLD.with_borrow_mut(|world| {
        if let Some((used, _directory)) = world.take_if(|(world, _)| world.requests >= REQUESTS_EACH) {
            drop(ManuallyDrop::into_inner(used));
        }
        let (world, _directory) = world.get_or_insert_with(|| {
            let (world, directory) = World::new();
            (ManuallyDrop::new(world), directory)
        });
        try_out(world);
    });
}

/// Sends an event of arbitrary bytes. It must be rejected, or the document in the response must exist.
pub(crate) fn event(bytes: &[u8]) {
    in_a_world(|world| {
        let post = |path: &str| TestRequest::post().uri(path).insert_header(("content-type", JSON));
        let bearer = (BEARER, world.bearer.clone());
        let reply = world.ask(post("/api/usage/event").insert_header(bearer.clone()).set_payload(bytes.to_vec()));
        if reply.status.is_success() {
            let document = reply.json()["related_document_ref"].as_str().expect("a document").to_owned();
            let shown = world.ask(TestRequest::get().uri(&format!("/api/documents/{document}")).insert_header(bearer));
            assert_eq!(shown.status, 200, "{reply:?}, then {shown:?}");
        } else {
            reply.problem();
        }
    });
}

/// Calls the operation that the first byte selects, with an arbitrary body.
pub(crate) fn body(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let Some(operation) = chosen(*choice, |operation| operation.method != HttpMethod::GET) else { return };
    in_a_world(|world| {
        let request = TestRequest::default().method(operation.method.method()).uri(&path_of(operation));
        let request = world.allowed(operation, request.insert_header(("content-type", JSON))).set_payload(body.to_vec());
        if world.ask(request).status == 401 {
            world.requests = REQUESTS_EACH;
        }
    });
}

/// Calls the GET operation that the first byte selects, with an arbitrary query.
pub(crate) fn query(bytes: &[u8]) {
    let Some((choice, query)) = bytes.split_first() else { return };
    let Some(operation) = chosen(*choice, |operation| operation.method == HttpMethod::GET) else { return };
    let Ok(query) = str::from_utf8(query) else { return };
    let Ok(uri) = format!("{}?{query}", path_of(operation)).parse::<Uri>() else { return };
    in_a_world(|world| {
        let request = TestRequest::get().uri(&uri.to_string());
        world.ask(world.allowed(operation, request));
    });
}

/// Sends an arbitrary cookie, which must not give access without a session.
pub(crate) fn cookie(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    in_a_world(|world| {
        let real = world.cookie.clone();
        let Ok(header) = HeaderValue::from_str(&text.replace(SESSION, &real)) else { return };
        let reply = world.ask(TestRequest::get().uri("/api/customers/filter").insert_header(("cookie", header)));
        assert!(reply.status != 200 || text.contains(SESSION), "access granted by {text}");
    });
}

fn chosen(choice: u8, may_be: impl Fn(&OperationSpec) -> bool) -> Option<&'static OperationSpec> {
    let all: Vec<_> = OPERATIONS.iter().filter(|operation| may_be(operation) && !ENDING.contains(&operation.id)).collect();
    all.get(usize::from(choice) % all.len()).copied()
}

/// Returns the path of an operation. It names resources of [`World::new`] if they exist, and unknown references otherwise.
fn path_of(operation: &OperationSpec) -> String {
    let filled = |segment: &str| match segment {
        "{customer_ref}" => "acme".to_owned(),
        "{usage_product_ref}" => "calls".to_owned(),
        "{product_pricing_ref}" => "api".to_owned(),
        _ if segment.starts_with('{') => UNKNOWN.to_owned(),
        _ => segment.to_owned(),
    };
    operation.path.split('/').map(filled).collect::<Vec<_>>().join("/")
}
