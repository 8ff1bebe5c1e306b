//! Handlers for search.

use actix_web::web::Json;
use billing_application::search as use_case;

use super::Answer;
use crate::caller::Caller;
use crate::dto::search::SearchResultJson;
use crate::query::Query;
use crate::query::lists::SearchParams;

pub(crate) async fn search(caller: Caller, query: Query) -> Answer<Vec<SearchResultJson>> {
    let SearchParams { q: sought } = query.read()?;
    let found = caller.run(move |services, principal| use_case::search(services, principal, &sought)).await?;
    Ok(Json(found.iter().map(SearchResultJson::from).collect()))
}
