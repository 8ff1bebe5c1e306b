//! What forms of the console ask for: the same operations that software asks for, by their own handlers.

use actix_web::HttpResponse;
use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{Frame, GeneratedKey, href};
use serde_json::{Map, Value};

use super::answers::written;
use super::imports;
use super::reply::{html, to};
use super::said::{Said, field, key};
use super::visitor::{Visitor, service};
use crate::body::{Body, OptionalBody};
use crate::problem::Problem;
use crate::routes::{auth, documents, money};

/// The page that a form stands on, which tells what refuses it; none of what is no form.
pub(super) fn page_of<'p, 'a>(place: &'p [&'a str]) -> Option<&'p [&'a str]> {
    match place {
        ["keys"] | ["keys", "delete"] => Some(&place[..1]),
        ["documents", _, _] => Some(&place[..2]),
        ["imports", _, "undo"] => Some(place),
        _ => None,
    }
}

/// Does what a form asks for.
///
/// # Errors
/// What refuses it.
pub(super) async fn carry_out(visitor: &Visitor, place: &[&str], said: &Said) -> Result<HttpResponse, Problem> {
    match place {
        ["keys"] => make_key(visitor, said).await,
        ["keys", "delete"] => delete_key(visitor, said).await,
        ["imports", reference, "undo"] => imports::undo(visitor, reference).await,
        ["documents", reference, action] => on_document(visitor, reference, action, said).await,
        _ => Err(Problem::unknown_route()),
    }
}

async fn make_key(visitor: &Visitor, said: &Said) -> Result<HttpResponse, Problem> {
    let body = body(said, &["name"]);
    let caller = visitor.caller(UseCase::GenerateKey);
    let made = auth::generate_key(caller, visitor.request.clone(), OptionalBody(Some(body))).await?;
    let service = service(&visitor.request);
    let page = billing_console::generated_key(&GeneratedKey { answer: written(made).await?, service: service.clone() });
    let frame = Frame { part: "keys", ..Frame::bare("A new API key".to_owned(), service) };
    Ok(html(billing_console::page(&frame, &page)))
}

async fn delete_key(visitor: &Visitor, said: &Said) -> Result<HttpResponse, Problem> {
    let reference = field(said, "api_key_ref").unwrap_or_default().to_owned();
    auth::delete_key(visitor.caller(UseCase::DeleteKey), Path::from(reference)).await?;
    Ok(to(&format!("{}?done=delete-key", href(&["keys"]))))
}

async fn on_document(visitor: &Visitor, reference: &str, action: &str, said: &Said) -> Result<HttpResponse, Problem> {
    let path = || Path::from(reference.to_owned());
    match action {
        "issue" => documents::issue_document(visitor.caller(UseCase::IssueDocument), path()).await?,
        "void" => documents::void_document(visitor.caller(UseCase::VoidDocument), path()).await?,
        "payment" => {
            let body = body(said, &["amount", "paid_date", "reference"]);
            // A form that is sent twice records one payment.
            let key = key(said, &format!("/api/documents/payments/{reference}"));
            money::record_payment(visitor.keyed(UseCase::RecordPayment, key), path(), Body(body)).await?
        }
        "reverse-payment" => {
            let payment = Path::from(field(said, "payment_ref").unwrap_or_default().to_owned());
            money::reverse_payment(visitor.caller(UseCase::ReversePayment), payment, OptionalBody(None)).await?
        }
        _ => return Err(Problem::unknown_route()),
    };
    Ok(to(&format!("{}?done={action}", href(&["documents", reference]))))
}

/// The fields of a form as a body.
fn body(said: &Said, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), Value::from(field(said, name)?))));
    Value::Object(fields.collect::<Map<_, _>>())
}
