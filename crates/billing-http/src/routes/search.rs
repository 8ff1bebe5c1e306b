//! Handlers for search.

use billing_application::search as use_case;

use crate::call::{Call, Reply};
use billing_api::dto::search::SearchResultJson;
use billing_api::query::lists::SearchParams;

pub(crate) async fn search(call: Call) -> Reply {
    let SearchParams { q: sought } = call.query.read()?;
    call.read_all::<SearchResultJson, _>(move |cx| use_case::search(cx, &sought)).await
}
