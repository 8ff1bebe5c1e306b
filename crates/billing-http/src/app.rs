//! The actix application and the order of its middleware.

use std::sync::LazyLock;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error, web};
use billing_domain::report::NumbersAs;

use crate::endpoints;
use crate::middleware::answer;
use crate::routes::dry_run::CallAnswerer;
use crate::routes::service::Description;
use crate::state::HttpState;
use crate::static_text::StaticText;
use crate::{auth, console, public_pages, router, routes};
use billing_api::openapi;

/// Builds the application of one worker.
pub fn app(
    state: HttpState,
) -> App<impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>> {
    // The last wrapper is the outermost.
    App::new()
        .wrap(router::PathLookup)
        .wrap(auth::session::middleware(&state))
        .wrap(from_fn(answer))
        .app_data(web::Data::new(state))
        .app_data(web::Data::new(Description { json: description }))
        .app_data(web::Data::new(CallAnswerer {
            answer: |operation, call, reference, body| Box::pin(endpoints::answer(operation, call, reference, body)),
        }))
        .configure(router::register)
        .configure(public_pages::register)
        .configure(console::register)
        .default_service(web::to(routes::unknown_route))
}

/// Builds the application that serves only metrics, on an address of its own.
pub fn metrics_app(
    state: HttpState,
) -> App<impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>> {
    App::new()
        .wrap(from_fn(answer))
        .app_data(web::Data::new(state))
        .route("/metrics", web::get().to(routes::service::told_metrics))
        .route("/metrics", web::head().to(routes::service::told_metrics))
        .default_service(web::to(routes::unknown_route))
}

/// Returns the OpenAPI document, which is built once.
fn description(numbers: NumbersAs) -> &'static StaticText {
    static NUMBERS: LazyLock<StaticText> = LazyLock::new(|| built(NumbersAs::Number));
    static STRINGS: LazyLock<StaticText> = LazyLock::new(|| built(NumbersAs::String));
    fn built(numbers: NumbersAs) -> StaticText {
        StaticText::new(&openapi::described(numbers).to_string())
    }
    match numbers {
        NumbersAs::Number => &NUMBERS,
        NumbersAs::String => &STRINGS,
    }
}
