//! The actix application: what is wrapped around what.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error, web};

use crate::middleware::answer;
use crate::state::HttpState;
use crate::{auth, operations, routes};

/// The application of one worker.
pub fn app(
    state: HttpState,
) -> App<impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<BoxBody>, Error = Error, InitError = ()>> {
    // The last wrapper is the outermost.
    App::new()
        .wrap(auth::session::middleware(&state))
        .wrap(from_fn(answer))
        .app_data(web::Data::new(state))
        .configure(operations::register)
        .default_service(web::to(routes::unknown_route))
}
