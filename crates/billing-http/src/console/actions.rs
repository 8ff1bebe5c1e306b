//! What forms of the console ask for: the same operations that software asks for, by their own handlers.

use actix_web::HttpResponse;
use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{Frame, GeneratedKey, ROOT};
use serde_json::{Map, Value};

use super::answers::list;
use super::reply::{html, to};
use super::said::{Said, field, key};
use super::visitor::{Visitor, service};
use crate::body::{Body, OptionalBody};
use crate::problem::Problem;
use crate::routes::{auth, documents, money};

/// What was refused, and the place of the page that says so.
type Refused = (Problem, Vec<String>);

/// Does what a form asks for.
///
/// # Errors
/// What refuses it, and on which page that is told.
pub(super) async fn carry_out(visitor: &Visitor, place: &[&str], said: &Said) -> Result<HttpResponse, Refused> {
    let at = |place: &[&str]| place.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    match place {
        ["keys"] => make_key(visitor, said).await.map_err(|problem| (problem, at(&["keys"]))),
        ["keys", "delete"] => delete_key(visitor, said).await.map_err(|problem| (problem, at(&["keys"]))),
        ["documents", reference, action] => {
            on_document(visitor, reference, action, said).await.map_err(|problem| (problem, at(&["documents", reference])))
        }
        _ => Err((Problem::unknown_route(), at(&["nowhere", "nowhere"]))),
    }
}

async fn make_key(visitor: &Visitor, said: &Said) -> Result<HttpResponse, Problem> {
    let body = body(said, &["name"]);
    let caller = visitor.caller(UseCase::GenerateKey);
    let made = list(auth::generate_key(caller, visitor.request.clone(), OptionalBody(Some(body)))).await?;
    let service = service(&visitor.request);
    let page = billing_console::generated_key(&GeneratedKey { answer: made.elements, service: service.clone() });
    let frame = Frame { part: "keys", ..Frame::bare("A new API key".to_owned(), service) };
    Ok(html(billing_console::page(&frame, &page)))
}

async fn delete_key(visitor: &Visitor, said: &Said) -> Result<HttpResponse, Problem> {
    let reference = field(said, "api_key_ref").unwrap_or_default().to_owned();
    auth::delete_key(visitor.caller(UseCase::DeleteKey), Path::from(reference)).await?;
    Ok(to(&format!("{ROOT}/keys?done=delete-key")))
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
    Ok(to(&format!("{ROOT}/documents/{reference}?done={action}")))
}

/// The fields of a form as a body.
fn body(said: &Said, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), Value::from(field(said, name)?))));
    Value::Object(fields.collect::<Map<_, _>>())
}
