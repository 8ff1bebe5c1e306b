//! The router: registers each path with its operations and puts the guard in front of each operation.

use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{Route, guard, web};

use crate::auth::admit;
use crate::numbers::prefer;
use crate::operations::{OPERATIONS, Operation};
use crate::problem::Problem;

/// Registers every operation in the actix configuration.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let mut done: Vec<&str> = Vec::new();
    for Operation { path, .. } in OPERATIONS {
        if done.contains(path) {
            continue;
        }
        done.push(path);
        let trimmed = path.trim_end_matches('/');
        let of_path: Vec<&'static Operation> = OPERATIONS.iter().filter(|operation| operation.path == *path).collect();
        let methods: Vec<&str> = of_path.iter().flat_map(|operation| answered_methods(operation)).collect();
        let allowed = methods.join(", ");
        // One resource per pattern: actix compiles a resource with two patterns into a regular expression set, even if
        // both are fixed texts.
        for pattern in [trimmed.to_owned(), format!("{trimmed}/")] {
            let mut resource = web::resource(pattern);
            for operation in &of_path {
                let operation: &'static Operation = operation;
                let guarded = from_fn(move |request, next| admit(operation, request, next));
                let preferred = from_fn(move |request, next| prefer(operation, request, next));
                // The last wrapper is the outermost.
                let route = route_of(operation).wrap(guarded).wrap(preferred);
                resource = resource.route(route);
            }
            let allowed = allowed.clone();
            let wrong_method = move || std::future::ready(Err::<String, _>(Problem::method_not_allowed(&allowed)));
            config.service(resource.default_service(web::to(wrong_method)));
        }
    }
}

/// Returns the methods that an operation answers. `HEAD` is answered like `GET`, and the middleware removes the content.
fn answered_methods(operation: &'static Operation) -> Vec<&'static str> {
    let method = operation.method.as_str();
    if operation.method == Method::GET { vec![method, "HEAD"] } else { vec![method] }
}

/// Returns the route of an operation for its methods.
fn route_of(operation: &'static Operation) -> Route {
    if operation.method == Method::GET {
        operation.route().guard(guard::Any(guard::Get()).or(guard::Head()))
    } else {
        operation.route().method(operation.method.clone())
    }
}
