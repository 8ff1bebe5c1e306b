//! Pages and forms for the team, the visitor's account and API keys.

use crate::{AccountAnswers, Enrollment, Frame, GeneratedKey, Invitation, KeyForm, Notice, ROOT, href};
use billing_api::console::{FormData, PageAnswer};
use billing_api::dto::administrators::InvitationJson;
use billing_api::dto::keys::RotatedKeyJson;
use billing_api::json_view::{JsonAnswer, JsonView};
use billing_api::operations::{
    ChangePassword, ConfirmIdentity, ConfirmSecondFactor, DeleteKey, EditAdministrator, EndOtherSessions, EndSession,
    EnrollSecondFactor, GenerateKey, GetSession, InviteAdministrator, ListAdministrators, ListKeys, ListSessions,
    RemoveSecondFactor, ResetAdministrator, RotateKey,
};
use billing_domain::access::Scope;
use serde_json::{Map, Value, json};

use super::form_data::{field, query};
use super::log_in::is_own;
use super::page_builder::PageBuilder;
use super::reply::{caption, html, reasons, to};
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// The page on which administrators enter their password again.
pub(super) const CONFIRM: &str = "confirm";

/// Returns the redirect to the page for the password, which then leads to a page of this part.
pub(super) fn to_confirmation(user: &SessionUser) -> PageAnswer {
    let path = user.request.path.as_str().trim_start_matches(ROOT);
    let part = path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    to(&format!("{}?{}", href(&[CONFIRM]), crate::query(&[("next", &href(&[part]))])))
}

pub(super) async fn confirm(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let next = field(submitted, "next").unwrap_or_default();
    match user.post::<ConfirmIdentity>(secrets(submitted, &["password"])).await {
        Ok(_) => Ok(to(if is_own(next) { next } else { ROOT })),
        Err(problem) if belongs_there(&problem) => {
            let made = PageBuilder::of("Confirm your password", "account", crate::confirmation(next, Some(&reason(&problem))));
            let page = made.page(user, None);
            Ok(caption(problem, page))
        }
        Err(problem) => Err(problem),
    }
}

/// Renders the page of one of these parts.
pub(super) async fn page(user: &SessionUser, part: &str) -> Result<PageBuilder, Problem> {
    match part {
        CONFIRM => {
            let next = query(&user.request);
            let body = crate::confirmation(field(&next, "next").unwrap_or_default(), None);
            user.shows(&ConfirmIdentity::SPEC, "", "");
            Ok(PageBuilder::of("Confirm your password", "account", body))
        }
        "keys" => keys(user, key_form(&Vec::new(), None)).await,
        "team" => team(user, Invitation::default()).await,
        _ => account(user, "", None).await,
    }
}

/// Returns the errors by field.
fn wrong(problem: Option<&Problem>) -> Vec<(String, String)> {
    let errors = problem.map_or(&[][..], Problem::errors);
    errors.iter().map(|error| (error.pointer.trim_start_matches('/').to_owned(), error.detail.clone())).collect()
}

/// Renders the page of a rejected form with the submitted values.
fn refused(user: &SessionUser, made: PageBuilder, problem: Problem) -> PageAnswer {
    let notice = Notice::Refused(problem.code().to_owned(), reasons(&problem));
    let page = made.page(user, Some(notice));
    caption(problem, page)
}

/// Returns whether a problem is shown beside its form. Other problems have a page of their own.
fn belongs_there(problem: &Problem) -> bool {
    matches!(problem.status().as_u16(), 409 | 422 | 429)
}

async fn keys(user: &SessionUser, form: KeyForm) -> Result<PageBuilder, Problem> {
    let keys = user.get::<ListKeys>("").await?;
    Ok(PageBuilder::of("API keys", "keys", crate::keys(keys.view(), &form)))
}

fn key_form(submitted: &FormData, problem: Option<&Problem>) -> KeyForm {
    let text = |name| field(submitted, name).unwrap_or_default().to_owned();
    let scopes: Vec<String> = Scope::ALL.iter().map(|scope| scope.as_str().to_owned()).collect();
    let chosen = if submitted.is_empty() { scopes.clone() } else { chosen_scopes(submitted) };
    KeyForm { scopes, name: text("name"), chosen, ends: text("ends"), wrong: wrong(problem) }
}

fn chosen_scopes(submitted: &FormData) -> Vec<String> {
    submitted.iter().filter(|(name, _)| name == "scopes").map(|(_, scope)| scope.clone()).collect()
}

pub(super) async fn make_key(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let mut body = Map::from_iter([("scopes".to_owned(), json!(chosen_scopes(submitted)))]);
    if let Some(name) = field(submitted, "name") {
        body.insert("name".to_owned(), name.into());
    }
    if let Some(day) = field(submitted, "ends") {
        body.insert("expires_at".to_owned(), format!("{day}T00:00:00Z").into());
    }
    match user.post::<GenerateKey>(Value::Object(body)).await {
        Ok(made) => Ok(shown_key(user, made.into_json().into())),
        Err(problem) if belongs_there(&problem) => {
            Ok(refused(user, keys(user, key_form(submitted, Some(&problem))).await?, problem))
        }
        Err(problem) => Err(problem),
    }
}

pub(super) async fn rotate_key(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let hours = field(submitted, "overlap_hours").and_then(|hours| hours.parse::<u16>().ok());
    let body = hours.map(|hours| json!({"overlap_hours": hours}));
    let rotated = user.carry_out::<RotateKey>(reference, None, body).await?;
    Ok(shown_key(user, rotated))
}

/// Renders the page of a new key. The password is shown only once.
fn shown_key(user: &SessionUser, answer: JsonAnswer<RotatedKeyJson>) -> PageAnswer {
    let service = user.service();
    shown_once(user, "New API key", "keys", crate::generated_key(&GeneratedKey { answer, service }))
}

fn shown_once(user: &SessionUser, title: &str, part: &'static str, body: maud::Markup) -> PageAnswer {
    html(user.page(&Frame { part, ..user.frame(title.to_owned()) }, &body))
}

pub(super) async fn delete_key(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    user.answer(&DeleteKey::SPEC, reference, "").await?;
    Ok(to(&format!("{}?done=delete-key", href(&["keys"]))))
}

async fn team(user: &SessionUser, invitation: Invitation) -> Result<PageBuilder, Problem> {
    let all = user.get::<ListAdministrators>("").await?;
    let body = crate::team(all.view(), &user.who().email, &invitation);
    Ok(PageBuilder::of("Team", "team", body))
}

pub(super) async fn invite(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let text = |name| field(submitted, name).unwrap_or_default().to_owned();
    let (email, role) = (text("email"), text("role"));
    match user.post::<InviteAdministrator>(json!({"email": email, "role": role})).await {
        Ok(invited) => Ok(shown_invitation(user, invited.view())),
        Err(problem) if belongs_there(&problem) => {
            let invitation = Invitation { email, role, wrong: wrong(Some(&problem)) };
            Ok(refused(user, team(user, invitation).await?, problem))
        }
        Err(problem) => Err(problem),
    }
}

fn shown_invitation(user: &SessionUser, answer: JsonView<'_, InvitationJson>) -> PageAnswer {
    let body = crate::invited(answer, &user.service());
    shown_once(user, "One-time password", "team", body)
}

pub(super) async fn reset(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let body = json!({"remove_second_factor": field(submitted, "remove_second_factor").is_some()});
    match user.carry_out::<ResetAdministrator>(reference, None, Some(body)).await {
        Ok(reset) => Ok(shown_invitation(user, reset.view())),
        Err(problem) => team_refused(user, problem).await,
    }
}

pub(super) async fn edit(user: &SessionUser, action: &str, reference: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let (body, done) = match action {
        "role" => (json!({"role": field(submitted, "role")}), "edit"),
        "disable" => (json!({"disabled": true}), "disable"),
        "enable" => (json!({"disabled": false}), "enable"),
        _ => return Err(Problem::unknown_route()),
    };
    match user.carry_out::<EditAdministrator>(reference, None, Some(body)).await {
        Ok(_) => Ok(to(&format!("{}?done={done}", href(&["team"])))),
        Err(problem) => team_refused(user, problem).await,
    }
}

async fn team_refused(user: &SessionUser, problem: Problem) -> Result<PageAnswer, Problem> {
    if !belongs_there(&problem) {
        return Err(problem);
    }
    Ok(refused(user, team(user, Invitation::default()).await?, problem))
}

async fn account(user: &SessionUser, tried: &str, problem: Option<&Problem>) -> Result<PageBuilder, Problem> {
    let own = user.get::<GetSession>("").await?;
    let sessions = user.get::<ListSessions>("").await?;
    let answers = AccountAnswers { account: own, sessions, tried: tried.to_owned(), wrong: wrong(problem) };
    Ok(PageBuilder::of("Your account", "account", crate::account(&answers)))
}

/// Renders the account page with the result or the problem of an action.
async fn account_after(user: &SessionUser, form: &str, outcome: Result<(), Problem>) -> Result<PageAnswer, Problem> {
    match outcome {
        Ok(_) => Ok(to(&format!("{}?done={form}", href(&["account"])))),
        Err(problem) if belongs_there(&problem) => Ok(refused(user, account(user, form, Some(&problem)).await?, problem)),
        Err(problem) => Err(problem),
    }
}

pub(super) async fn change_password(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let changed = user.post::<ChangePassword>(secrets(submitted, &["password", "new_password"])).await.map(drop);
    account_after(user, "password", changed).await
}

/// Returns fields without trimming, because every character of a password counts.
fn secrets(submitted: &FormData, names: &[&str]) -> Value {
    let value =
        |name: &str| submitted.iter().find(|(submitted, _)| submitted == name).map(|(_, value)| Value::from(value.as_str()));
    Value::Object(names.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?))).collect())
}

pub(super) async fn second_factor(user: &SessionUser, action: &str, submitted: &FormData) -> Result<PageAnswer, Problem> {
    match action {
        "enroll" => {
            let answer = user.carry_out::<EnrollSecondFactor>("", None, None).await?;
            let (secret, uri) = (answer.view().secret().to_text(), answer.view().uri().to_text());
            let enrollment = Enrollment { secret, uri, wrong: Vec::new() };
            Ok(shown_once(user, "Second factor setup", "account", crate::enrolled(&enrollment)))
        }
        "confirm" => match user.post::<ConfirmSecondFactor>(secrets(submitted, &["code"])).await {
            Ok(codes) => Ok(shown_once(user, "Recovery codes", "account", crate::recovery_codes(&codes))),
            Err(problem) if problem.is_invalid_code() || problem.status().as_u16() == 429 => {
                Ok(wrong_code(user, submitted, problem))
            }
            Err(problem) => account_after(user, "enroll", Err(problem)).await,
        },
        "remove" => {
            let removed = user.post::<RemoveSecondFactor>(secrets(submitted, &["password", "code"])).await.map(drop);
            account_after(user, "remove", removed).await
        }
        _ => Err(Problem::unknown_route()),
    }
}

/// Renders the enrollment page again after a wrong code. The form carries the secret.
fn wrong_code(user: &SessionUser, submitted: &FormData, problem: Problem) -> PageAnswer {
    let text = |name| field(submitted, name).unwrap_or_default().to_owned();
    let enrollment = Enrollment { secret: text("secret"), uri: text("uri"), wrong: vec![reason(&problem)] };
    let made = PageBuilder::of("Second factor setup", "account", crate::enrolled(&enrollment));
    let page = made.page(user, None);
    caption(problem, page)
}

fn reason(problem: &Problem) -> String {
    problem.errors().first().map_or_else(|| problem.detail().to_owned(), |error| error.detail.clone())
}

pub(super) async fn end_session(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    user.answer(&EndSession::SPEC, reference, "").await?;
    Ok(to(&format!("{}?done=end-session", href(&["account"]))))
}

pub(super) async fn end_other_sessions(user: &SessionUser) -> Result<PageAnswer, Problem> {
    user.answer(&EndOtherSessions::SPEC, "", "").await?;
    Ok(to(&format!("{}?done=end-session", href(&["account"]))))
}
