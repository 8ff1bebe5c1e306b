//! Loads the data of the pages with prepaid credit.

use crate::limits::{free_credit, is_owed};
use crate::{CreditAnswers, FREE_CREDIT, GRANT_NAME, GrantAnswers, JsonView, MAX_CREDITS, listings};
use billing_api::dto::credit::GrantJson;
use billing_api::dto::effects::EffectsJson;
use billing_api::dto::limits::LimitJson;
use billing_api::json_view::JsonAnswer;
use billing_api::operations::{GetContract, GetGrant, GetLimitsLeft, ListGrants};
use billing_api::problem::Problem;
use billing_application::UseCase;
use serde_json::Value;

use super::api_client::or_nothing;
use super::forms;
use super::lists::{crumbs, few};
use super::page_builder::PageBuilder;
use super::session_user::{AnswerOf, SessionUser};
use super::webhooks;

/// Number of grants among which the page of a customer finds those of which something is left.
const GRANTS: &str = "1000";

/// Number of draws on the page of their grant, oldest first. The list of draws has all.
const DRAWS: &str = "100";

/// Renders the page of a grant.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let grant = user.get::<GetGrant>(reference).await?;
    let (grant_ref, contract_ref) = (grant.view().grant_ref().to_text(), grant.view().contract_ref().to_text());
    let contract = if contract_ref.is_empty() {
        JsonAnswer::default()
    } else {
        or_nothing(user.quietly().get::<GetContract>(&contract_ref).await)?
    };
    let draws = few(user, &listings::DRAWS, &[("grant_ref", &grant_ref), ("pageSize", DRAWS)]).await?;
    let notifications = webhooks::of_subject(user, "grant", &grant_ref).await?;
    let title = grant.view().name().to_text();
    let may_edit = forms::may(user, "edit", listings::CREDIT.part);
    let body = crate::grant(&GrantAnswers { grant, contract, draws, notifications, may_edit });
    Ok(PageBuilder { title, part: listings::CREDIT.part, crumbs: crumbs(&listings::CREDIT), body })
}

/// Loads the grants of a customer.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn of_customer(user: &SessionUser, reference: &str) -> Result<CreditAnswers, Problem> {
    let narrowed = crate::query(&[("customer_ref", reference), ("pageSize", GRANTS)]);
    let grants = user.get_with::<ListGrants>("", &narrowed).await?;
    Ok(CreditAnswers { grants, may_grant: user.may(UseCase::CreateGrant) })
}

/// Loads what is left of a customer's limits, which has the credit that is free today, if a limit counts what the customer owes.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn free_today(user: &SessionUser, limits: JsonView<'_, Vec<LimitJson>>) -> AnswerOf<GetLimitsLeft> {
    match limits.items().find(|limit| is_owed(*limit)) {
        Some(limit) => {
            user.get_with::<GetLimitsLeft>("", &crate::query(&[("customer_ref", &limit.customer_ref().to_text())])).await
        }
        None => Ok(JsonAnswer::default()),
    }
}

/// Adds the names of the grants that a preview shows. A grant that the change would create has none yet.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn with_names(
    user: &SessionUser,
    mut effects: JsonAnswer<EffectsJson>,
) -> Result<JsonAnswer<EffectsJson>, Problem> {
    let changed: Vec<String> = effects.view().credits().items().map(|change| change.grant_ref().to_text()).collect();
    for (place, grant_ref) in changed.iter().take(MAX_CREDITS).enumerate() {
        let grant: JsonAnswer<GrantJson> = or_nothing(user.quietly().get::<GetGrant>(grant_ref).await)?;
        effects.json_mut()["credits"][place][GRANT_NAME] = grant.view().name().json().clone();
    }
    Ok(effects)
}

/// Adds the credit that is free today to a limit on an amount owed. What is left of the limit includes it.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn beside_limit(user: &SessionUser, mut limit: JsonAnswer) -> Result<JsonAnswer, Problem> {
    let limits: JsonAnswer<Vec<LimitJson>> = Value::Array(vec![limit.view().json().clone()]).into();
    let left = free_today(user, limits.view()).await?;
    let free = free_credit(limit.view().read_as(), left.view()).map(|free| free.json().clone());
    if let (Some(free), Some(fields)) = (free, limit.json_mut().as_object_mut()) {
        fields.insert(FREE_CREDIT.to_owned(), free);
    }
    Ok(limit)
}
