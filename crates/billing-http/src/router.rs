//! The router, which puts the guard in front of each operation. A path without parameters is looked up in a table. Other paths
//! are patterns of the framework's router, which compares a path with one pattern after the other.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::rc::Rc;

use actix_web::body::BoxBody;
use actix_web::dev::{Service, ServiceFactory, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::Method;
use actix_web::middleware::{Next, from_fn};
use actix_web::{Error, Route, guard, web};

use billing_api::operation::HttpMethod;
use billing_api::operations::{OPERATIONS, OperationSpec};

use crate::auth::admit;
use crate::endpoints;
use crate::numbers::{prefers_strings, rewrite_as_strings};
use crate::respond::HttpProblem;
use billing_api::problem::Problem;

/// Registers the patterns in the actix configuration: those of all operations with parameters, and for each path without
/// parameters the answer to a method that it does not have.
pub(crate) fn register(config: &mut web::ServiceConfig) {
    let mut done: Vec<&str> = Vec::new();
    for OperationSpec { path, .. } in OPERATIONS {
        if done.contains(path) {
            continue;
        }
        done.push(path);
        let of_path: Vec<&'static OperationSpec> = OPERATIONS.iter().filter(|operation| operation.path == *path).collect();
        let methods: Vec<&str> = of_path.iter().flat_map(|operation| answered_methods(operation)).collect();
        let allowed = methods.join(", ");
        // One resource per pattern: actix compiles a resource with two patterns into a regular expression set, even if
        // both are fixed texts.
        for pattern in spellings(path) {
            let mut resource = web::resource(pattern);
            for operation in of_path.iter().filter(|operation| !is_fixed(operation)) {
                resource = resource.route(guarded(operation, route_of(operation)));
            }
            let allowed = allowed.clone();
            let wrong_method = move || ready(Err::<String, _>(HttpProblem(Problem::method_not_allowed(&allowed))));
            config.service(resource.default_service(web::to(wrong_method)));
        }
    }
}

/// Returns the texts of a path. A trailing slash makes no difference.
fn spellings(path: &str) -> [String; 2] {
    let trimmed = path.trim_end_matches('/');
    [trimmed.to_owned(), format!("{trimmed}/")]
}

/// Returns whether the path of an operation has no parameters.
fn is_fixed(operation: &OperationSpec) -> bool {
    !operation.path.contains('{')
}

/// Returns the methods that an operation answers. `HEAD` is answered like `GET`, and the middleware removes the content.
fn answered_methods(operation: &'static OperationSpec) -> Vec<&'static str> {
    let method = operation.method.as_str();
    if operation.method == HttpMethod::GET { vec![method, "HEAD"] } else { vec![method] }
}

/// Returns whether an operation answers a method.
fn answers(operation: &OperationSpec, method: &Method) -> bool {
    operation.method.method() == *method || (operation.method == HttpMethod::GET && *method == Method::HEAD)
}

/// Returns the route of an operation for its methods.
fn route_of(operation: &'static OperationSpec) -> Route {
    if operation.method == HttpMethod::GET {
        endpoints::route(operation).guard(guard::Any(guard::Get()).or(guard::Head()))
    } else {
        endpoints::route(operation).method(operation.method.method())
    }
}

/// Puts the guard of an operation in front of its route.
fn guarded(operation: &'static OperationSpec, route: Route) -> Route {
    route.wrap(from_fn(move |request, next| serve(operation, request, next)))
}

/// Passes a request to its operation if it is admitted, and writes the decimals of the response as the caller prefers.
async fn serve(
    operation: &'static OperationSpec,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let wants_strings = prefers_strings(operation, request.headers());
    let answered = admit(operation, request, next).await?;
    if wants_strings { rewrite_as_strings(operation, answered).await } else { Ok(answered) }
}

/// The operations on paths without parameters, by their paths.
struct FixedPaths<T>(HashMap<String, Vec<(&'static OperationSpec, T)>>);

impl<T: Clone> FixedPaths<T> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn insert(&mut self, operation: &'static OperationSpec, value: &T) {
        for path in spellings(operation.path) {
            self.0.entry(path).or_default().push((operation, value.clone()));
        }
    }

    fn find(&self, path: &str, method: &Method) -> Option<&T> {
        let operations = self.0.get(path)?;
        operations.iter().find(|(operation, _)| answers(operation, method)).map(|(_, value)| value)
    }
}

/// The middleware that looks up the path of a request before the framework's router.
pub(crate) struct PathLookup;

/// The service of an operation.
type OperationService = <Route as ServiceFactory<ServiceRequest>>::Service;

/// The future of a response, as the services of the framework return it.
type BoxedResponse = Pin<Box<dyn Future<Output = Result<ServiceResponse<BoxBody>, Error>>>>;

impl<S> Transform<S, ServiceRequest> for PathLookup
where
    S: Service<ServiceRequest, Response = ServiceResponse<BoxBody>, Error = Error, Future = BoxedResponse> + 'static,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Transform = Router<S>;
    type InitError = ();
    type Future = Pin<Box<dyn Future<Output = Result<Router<S>, ()>>>>;

    fn new_transform(&self, patterns: S) -> Self::Future {
        Box::pin(async move {
            let mut fixed = FixedPaths::new();
            for operation in OPERATIONS.iter().filter(|operation| is_fixed(operation)) {
                let service = guarded(operation, endpoints::route(operation)).new_service(()).await?;
                fixed.insert(operation, &Rc::new(service));
            }
            Ok(Router { fixed, patterns })
        })
    }
}

/// The router: the table of paths without parameters, and the framework's router for all others.
pub(crate) struct Router<S> {
    fixed: FixedPaths<Rc<OperationService>>,
    patterns: S,
}

impl<S> Service<ServiceRequest> for Router<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<BoxBody>, Error = Error, Future = BoxedResponse>,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Future = BoxedResponse;

    forward_ready!(patterns);

    fn call(&self, request: ServiceRequest) -> BoxedResponse {
        // The decoded path, as the framework's router compares it.
        match self.fixed.find(request.match_info().as_str(), request.method()) {
            Some(operation) => operation.call(request),
            None => self.patterns.call(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::App;
    use actix_web::http::StatusCode;
    use actix_web::http::header::ALLOW;
    use actix_web::test::{TestRequest, call_service, init_service};

    use super::*;
    use crate::routes::unknown_route;

    fn table() -> FixedPaths<&'static str> {
        let mut fixed = FixedPaths::new();
        for operation in OPERATIONS.iter().filter(|operation| is_fixed(operation)) {
            fixed.insert(operation, &operation.id);
        }
        fixed
    }

    #[test]
    fn each_operation_on_a_fixed_path_is_found_by_its_method_and_path() {
        let fixed = table();
        let (mut found, mut with_parameters) = (0, 0);
        for operation in OPERATIONS {
            let expected = is_fixed(operation).then_some(operation.id);
            for path in spellings(operation.path) {
                assert_eq!(fixed.find(&path, &operation.method.method()).copied(), expected, "{path}");
                let head = fixed.find(&path, &Method::HEAD).copied();
                assert!(operation.method != HttpMethod::GET || head == expected, "{path}");
            }
            if expected.is_some() { found += 1 } else { with_parameters += 1 }
        }
        assert!(found > 0 && with_parameters > 0);
        let unknown = [("/api/usage/event", Method::PATCH), ("/api/usage/event//", Method::POST), ("/api/usage", Method::POST)];
        for (path, method) in unknown {
            assert_eq!(fixed.find(path, &method), None, "{path}");
        }
    }

    #[actix_web::test]
    async fn other_methods_and_paths_are_answered_by_the_patterns() {
        let app = init_service(App::new().wrap(PathLookup).configure(register).default_service(web::to(unknown_route))).await;
        for operation in OPERATIONS {
            let url = operation.url("x");
            for uri in spellings(&url) {
                let request = TestRequest::default().method(Method::PATCH).uri(&uri).to_request();
                let response = call_service(&app, request).await;
                assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{uri}");
                let allowed = response.headers().get(ALLOW).and_then(|allowed| allowed.to_str().ok()).unwrap_or_default();
                let is_named = |method: &str| allowed.split(", ").any(|allowed| allowed == method);
                assert!(answered_methods(operation).into_iter().all(is_named), "{uri}: {allowed}");
            }
        }
        for uri in ["/api/unknown", "/api/usage/event//", "/API/usage/event", "/api/usage/event%2F"] {
            let request = TestRequest::default().method(Method::POST).uri(uri).to_request();
            assert_eq!(call_service(&app, request).await.status(), StatusCode::NOT_FOUND, "{uri}");
        }
    }
}
