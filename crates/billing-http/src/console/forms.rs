//! Forms that make and edit things: their fields are those of the bodies that the OpenAPI document describes.

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpResponse, ResponseError as _};
use billing_application::UseCase;
use billing_console::{Field, Form, Group, InputKind, href};
use billing_domain::idempotency::RequestKey;
use serde_json::{Map, Value};

use super::answers::written;
use super::described::groups;
use super::said::{Said, field as field_of, key};
use super::things;
use super::visitor::Visitor;
use crate::body::Body;
use crate::problem::Problem;
use crate::routes::catalog;

/// Something that forms make and edit.
struct Made {
    part: &'static str,
    one: &'static str,
    makes: &'static str,
    edits: &'static str,
    reference: &'static str,
}

const MADE: &[Made] = &[
    Made {
        part: "customers",
        one: "customer",
        makes: "/api/customers/",
        edits: "/api/customers/edit/{customer_ref}",
        reference: "customer_ref",
    },
    Made {
        part: "usage-products",
        one: "usage product",
        makes: "/api/usage/products/",
        edits: "/api/usage/products/edit/{usage_product_ref}",
        reference: "usage_product_ref",
    },
    Made {
        part: "entities",
        one: "entity",
        makes: "/api/entities/",
        edits: "/api/entities/edit/{entity_ref}",
        reference: "entity_ref",
    },
    Made {
        part: "bank-accounts",
        one: "bank account",
        makes: "/api/bank_accounts/",
        edits: "/api/bank_accounts/edit/{billing_account_id}",
        reference: "billing_account_id",
    },
];

/// Whether a part of the console has forms.
pub(super) fn has(part: &str) -> bool {
    made(part).is_ok()
}

fn made(part: &str) -> Result<&'static Made, Problem> {
    MADE.iter().find(|made| made.part == part).ok_or_else(Problem::unknown_route)
}

/// What a form says, and what was wrong with that.
#[derive(Default)]
pub(super) struct Tried<'t> {
    said: Option<&'t Said>,
    problem: Option<&'t Problem>,
}

/// A form's page: what it is called, and its body.
///
/// # Errors
/// Where there is no such form, or nothing that it edits.
pub(super) async fn page(
    visitor: &Visitor,
    part: &str,
    edited: Option<&str>,
    tried: Tried<'_>,
) -> Result<(String, Form), Problem> {
    let made = made(part)?;
    let present = match edited {
        Some(reference) => things::read(visitor, part, reference).await?,
        None => Value::Null,
    };
    let (title, path, action, button) = match edited {
        Some(reference) => (format!("Edit {reference}"), made.edits, href(&["edit", part, reference]), "Save"),
        None => (format!("New {}", made.one), made.makes, href(&["new", part]), "Make"),
    };
    let mut groups = groups(path, edited.map(|_| made.reference));
    for field in groups.iter_mut().flat_map(|group| &mut group.fields) {
        let pointer = format!("/{}", field.name);
        field.value = match tried.said {
            Some(said) => field_of(said, &field.name).unwrap_or_default().to_owned(),
            None => present.pointer(&pointer).map(text).unwrap_or_default(),
        };
        let errors = tried.problem.map_or(&[][..], Problem::errors);
        field.wrong = errors.iter().filter(|error| error.pointer == pointer).map(|error| error.detail.clone()).collect();
    }
    let others = tried.problem.map(|problem| others(problem, &groups)).unwrap_or_default();
    Ok((title.clone(), Form { title, action, button, key: visitor.unique(), groups, others }))
}

/// What is wrong and stands beside no field.
fn others(problem: &Problem, groups: &[Group]) -> Vec<String> {
    if problem.errors().is_empty() {
        return vec![problem.detail().to_owned()];
    }
    let has_field =
        |pointer: &str| groups.iter().flat_map(|group| &group.fields).any(|field| pointer == format!("/{}", field.name));
    let beside_none = problem.errors().iter().filter(|error| !has_field(&error.pointer));
    beside_none.map(|error| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail)).collect()
}

/// Makes or edits a thing as a form says, and answers its page's address.
///
/// # Errors
/// What refuses it.
pub(super) async fn carry_out(visitor: &Visitor, part: &str, edited: Option<&str>, said: &Said) -> Result<String, Problem> {
    let made = made(part)?;
    let (path, present) = match edited {
        Some(reference) => (made.edits, things::read(visitor, part, reference).await?),
        None => (made.makes, Value::Null),
    };
    let body = Body(body(&groups(path, edited.map(|_| made.reference)), said, &present));
    let asked_at = match edited {
        None => made.makes.trim_end_matches('/').to_owned(),
        Some(reference) => made.edits.replace(&format!("{{{}}}", made.reference), reference),
    };
    let key = key(said, &asked_at);
    let answer = match edited {
        None => make(visitor, made, key, body).await,
        Some(reference) => edit(visitor, made, reference, key, body).await,
    };
    let answer = written(answer?).await?;
    Ok(href(&[part, answer[made.reference].as_str().unwrap_or_default()]))
}

async fn make(visitor: &Visitor, made: &Made, key: Option<RequestKey>, body: Body) -> Result<HttpResponse, Problem> {
    match made.part {
        "customers" => catalog::create_customer(visitor.keyed(UseCase::CreateCustomer, key), body).await,
        "usage-products" => catalog::create_usage_product(visitor.keyed(UseCase::CreateUsageProduct, key), body).await,
        "entities" => catalog::create_entity(visitor.keyed(UseCase::CreateEntity, key), body).await,
        "bank-accounts" => catalog::create_bank_account(visitor.keyed(UseCase::CreateBankAccount, key), body).await,
        _ => Err(Problem::unknown_route()),
    }
}

async fn edit(
    visitor: &Visitor,
    made: &Made,
    reference: &str,
    key: Option<RequestKey>,
    body: Body,
) -> Result<HttpResponse, Problem> {
    let path = Path::from(reference.to_owned());
    match made.part {
        "customers" => catalog::edit_customer(visitor.keyed(UseCase::EditCustomer, key), path, body).await,
        "usage-products" => catalog::edit_usage_product(visitor.keyed(UseCase::EditUsageProduct, key), path, body).await,
        "entities" => catalog::edit_entity(visitor.keyed(UseCase::EditEntity, key), path, body).await,
        "bank-accounts" => catalog::edit_bank_account(visitor.keyed(UseCase::EditBankAccount, key), path, body).await,
        _ => Err(Problem::unknown_route()),
    }
}

/// What is asked for: of something new what is said, of something there what is said otherwise; a part of it as a whole.
fn body(groups: &[Group], said: &Said, present: &Value) -> Value {
    let mut body = Map::new();
    for Group { name, fields, .. } in groups {
        if name.is_empty() {
            for field in fields {
                let (now, before) = (value(field, said), present.get(&field.name));
                if now.as_ref().map(text).unwrap_or_default() != before.map(text).unwrap_or_default() {
                    body.insert(field.name.clone(), now.unwrap_or(Value::Null));
                }
            }
            continue;
        }
        let own = |field: &Field| field.name.rsplit('/').next().unwrap_or_default().to_owned();
        let now: Map<String, Value> = fields.iter().filter_map(|field| Some((own(field), value(field, said)?))).collect();
        let is_as_before = fields.iter().all(|field| {
            let before = present.pointer(&format!("/{}", field.name)).map(text).unwrap_or_default();
            now.get(&own(field)).map(text).unwrap_or_default() == before
        });
        if !is_as_before {
            body.insert(name.clone(), if now.is_empty() { Value::Null } else { Value::Object(now) });
        }
    }
    Value::Object(body)
}

/// What is said of a field, as the interface takes it.
fn value(field: &Field, said: &Said) -> Option<Value> {
    let text = field_of(said, &field.name)?;
    Some(match (&field.kind, text) {
        (InputKind::Flag, "true") => Value::Bool(true),
        (InputKind::Flag, "false") => Value::Bool(false),
        _ => Value::from(text),
    })
}

fn text(value: &Value) -> String {
    billing_console::At(value).text()
}

impl<'t> Tried<'t> {
    /// What a form said that was refused.
    pub(super) const fn refused(said: &'t Said, problem: &'t Problem) -> Self {
        Self { said: Some(said), problem: Some(problem) }
    }
}

/// Whether what refuses a form belongs beside it; anything else has a page of its own.
pub(super) fn belongs_beside(problem: &Problem) -> bool {
    matches!(problem.status_code(), StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(pairs: &[(&str, &str)]) -> Said {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_form_has_fields_of_its_operation() {
        for made in MADE {
            for (path, kept) in [(made.makes, None), (made.edits, Some(made.reference))] {
                let groups = groups(path, kept);
                assert!(groups[0].fields.len() > 2, "{path}: {groups:?}");
                assert_eq!(groups[0].fields.iter().any(|field| field.name == made.reference), kept.is_none(), "{path}");
            }
        }
        let customer = groups("/api/customers/", None);
        assert_eq!((customer[0].fields[0].name.as_str(), customer[0].fields[0].required), ("name", true));
        let address = customer.iter().find(|group| group.name == "billing_address").expect("an address");
        assert!(address.fields.iter().any(|field| field.name == "billing_address/city"));
    }

    #[test]
    fn an_edit_sends_what_is_said_otherwise_and_clears_what_is_empty() {
        let groups = groups("/api/customers/edit/{customer_ref}", Some("customer_ref"));
        let present = json!({"name": "Acme", "email": "a@acme.example", "tax": 19, "apply_balance": true,
            "billing_address": {"city": "Dublin", "line1": "1 Main Street"}});
        let same = [("name", "Acme"), ("email", "a@acme.example"), ("tax", "19"), ("apply_balance", "true")];
        let address = [("billing_address/city", "Dublin"), ("billing_address/line1", "1 Main Street")];
        assert_eq!(body(&groups, &said(&[same.as_slice(), &address].concat()), &present), json!({}));
        let other =
            [("name", "Acme Ltd"), ("email", ""), ("tax", "7"), ("apply_balance", "false"), ("billing_address/city", "Cork")];
        let expected =
            json!({"name": "Acme Ltd", "email": null, "tax": "7", "apply_balance": false, "billing_address": {"city": "Cork"}});
        assert_eq!(body(&groups, &said(&other), &present), expected);
    }
}
