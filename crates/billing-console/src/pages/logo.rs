//! The logo of an entity: upload, preview on paper, and removal. The forms carry the file from page to page.

use crate::{Crumb, LogoPage, href, listings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_api::console::{Gateway, PageAnswer, Upload};
use billing_api::dto::entities::EntityJson;
use billing_api::json_view::JsonAnswer;
use billing_api::logo::parse;
use billing_api::operations::{EditEntity, GetEntity};
use billing_api::problem::Problem;
use billing_application::UseCase;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::appearance::Logo;
use serde_json::{Value, json};

use super::lists::crumbs;
use super::page_builder::PageBuilder;
use super::refused_to;
use super::reply::{belongs_beside, caption, html, to};
use super::session_user::SessionUser;

/// Path segment below an entity.
pub(super) const LOGO: &str = "logo";

/// Renders the page of an entity's logo.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    page_with(user, reference, None, None).await
}

async fn page_with(
    user: &SessionUser,
    reference: &str,
    uploaded: Option<(Logo, String)>,
    wrong: Option<String>,
) -> Result<PageBuilder, Problem> {
    let entity: JsonAnswer<EntityJson> = user.quietly().get::<GetEntity>(reference).await?;
    user.shows(&EditEntity::SPEC, reference, "");
    let entity_name = entity.view().profile().name().to_text();
    let own = Crumb { name: entity_name.clone(), href: href(&[listings::ENTITIES.part, reference]) };
    let has_logo = entity.view().profile().paper().logo().is_there();
    let page = LogoPage { entity_ref: reference.to_owned(), entity_name, has_logo, uploaded, wrong, key: user.unique() };
    let crumbs = crumbs(&listings::ENTITIES).into_iter().chain([own]).collect();
    Ok(PageBuilder { title: "Logo".to_owned(), part: listings::ENTITIES.part, crumbs, body: crate::logo(&page) })
}

/// Handles the submitted forms of the page.
pub(super) async fn act(user: &SessionUser, gateway: &dyn Gateway, reference: &str) -> PageAnswer {
    // The file is read only after authentication.
    let outcome = match (user.allow(UseCase::EditEntity), gateway.upload().await) {
        (Ok(()), Ok(form)) => carry_out(user, reference, &form).await,
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    };
    outcome.unwrap_or_else(|problem| refused_to(user, problem))
}

async fn carry_out(user: &SessionUser, reference: &str, form: &Upload) -> Result<PageAnswer, Problem> {
    let content = match (form.text("do"), form.file("file")) {
        (Some("remove"), _) => return save(user, reference, form, Value::Null).await,
        (Some("save"), _) => return save(user, reference, form, form.text("content").into()).await,
        (_, Some((_, bytes))) => STANDARD.encode(bytes),
        (_, None) => String::new(),
    };
    let (uploaded, wrong) = match parse(&content) {
        Ok(logo) => (Some((logo, content)), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(html(page_with(user, reference, uploaded, wrong).await?.page(user, None)))
}

async fn save(user: &SessionUser, reference: &str, form: &Upload, logo: Value) -> Result<PageAnswer, Problem> {
    let key = form.text("form_key").and_then(|key| IdempotencyKey::parse(key).ok());
    match user.change(&EditEntity::SPEC, reference, key, Some(json!({"logo": logo}))).await {
        Ok(_) => Ok(to(&format!("{}?done=edit", href(&[listings::ENTITIES.part, reference])))),
        Err(problem) if belongs_beside(&problem) => {
            let reason = problem.errors().first().map_or_else(|| problem.detail().to_owned(), |error| error.detail.clone());
            let page = page_with(user, reference, None, Some(reason)).await?.page(user, None);
            Ok(caption(problem, page))
        }
        Err(problem) => Err(problem),
    }
}
