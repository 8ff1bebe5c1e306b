//! Search.

use actix_web::web::Json;
use billing_application::search as use_case;

use super::{Answer, Caller};
use crate::dto::search::FoundJson;
use crate::query::Query;

/// Finds whatever has a text as number, reference, key, purchase order number or name.
#[utoipa::path(get, path = "/api/search", tag = "service", params(crate::openapi::SearchParams),
    responses((status = 200, description = "At most 20 things: what is exactly so, then what has a name that begins so",
        body = Vec<FoundJson>)))]
pub(crate) async fn search(caller: Caller, query: Query) -> Answer<Vec<FoundJson>> {
    let sought = query.sought()?;
    let found = caller.run(move |services, principal| use_case::search(services, principal, &sought)).await?;
    Ok(Json(found.iter().map(FoundJson::from).collect()))
}
