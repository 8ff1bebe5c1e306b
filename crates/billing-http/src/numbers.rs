//! Decimals as strings, for clients whose JSON numbers are binary floating point: `Prefer: numbers=string` (RFC 7240).

use std::sync::LazyLock;

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, MessageBody as _, to_bytes};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY};
use billing_domain::report::NumbersAs;
use serde_json::Value;

use crate::preference::{PREFER, wants_strings};
use crate::respond::HttpProblem;
use billing_api::decimals::rewrite;
use billing_api::media_type::JSON;
use billing_api::openapi;
use billing_api::openapi::AS_STRINGS;
use billing_api::operation::OperationSpec;
use billing_api::problem::Problem;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The OpenAPI document, which determines which values are decimals.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| openapi::described(NumbersAs::Number));

/// Returns whether the caller prefers the decimals of the operation's response as strings.
pub(crate) fn prefers_strings(operation: &OperationSpec, headers: &HeaderMap) -> bool {
    wants_strings(headers) && operation.answers.schema.is_some()
}

/// Rewrites the decimals of a response as strings. Streamed responses are written in the preferred form already.
pub(crate) async fn rewrite_as_strings(
    operation: &'static OperationSpec,
    answered: ServiceResponse<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    // Only the OpenAPI document is compressed, and it has no decimals of a response.
    let is_rewritable = is_json(answered.headers()) && !answered.headers().contains_key(CONTENT_ENCODING);
    if !answered.status().is_success() || !is_rewritable {
        return Ok(answered);
    }
    let (request, response) = answered.into_parts();
    let (mut response, body) = response.into_parts();
    let body = match body.size() {
        BodySize::Sized(_) => {
            let bytes = to_bytes(body).await.map_err(|_| internal())?;
            BoxBody::new(with_strings(operation, &bytes).ok_or_else(internal)?)
        }
        BodySize::None | BodySize::Stream => body,
    };
    response.headers_mut().insert(PREFERENCE_APPLIED, HeaderValue::from_static(AS_STRINGS));
    response.headers_mut().append(VARY, HeaderValue::from_name(PREFER));
    Ok(ServiceResponse::new(request, response.set_body(body)))
}

fn internal() -> HttpProblem {
    Problem::internal().into()
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(JSON.as_bytes()))
}

/// Returns a JSON response with its decimals as strings.
fn with_strings(operation: &OperationSpec, answer: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(answer).ok()?;
    let answered = &DESCRIPTION["paths"][operation.path][operation.method.as_str().to_ascii_lowercase()]["responses"]["200"];
    rewrite(&DESCRIPTION, &[&openapi::resolved(&DESCRIPTION, answered)["content"][JSON]["schema"]], &mut value);
    serde_json::to_vec(&value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use billing_api::operations::OPERATIONS;

    fn rewritten(id: &str, answer: &str) -> Value {
        let operation = OPERATIONS.iter().find(|operation| operation.id == id).expect(id);
        serde_json::from_slice(&with_strings(operation, answer.as_bytes()).expect("JSON")).expect("JSON")
    }

    #[test]
    fn decimals_become_strings_with_every_digit_and_whole_numbers_stay() {
        let document = r#"{"total":12345678901234.10,"number_in_contract":7,"net_terms":30,"taxes":[{"rate":19,"base":1.50}],
            "products":[{"line_items":[{"tiers":[{"up_to":null,"unit_price":0.000001}]}]}],"related_documents":[]}"#;
        let expected = json!({"total": "12345678901234.10", "number_in_contract": 7, "net_terms": 30,
            "taxes": [{"rate": "19", "base": "1.50"}],
            "products": [{"line_items": [{"tiers": [{"up_to": null, "unit_price": "0.000001"}]}]}], "related_documents": []});
        assert_eq!(rewritten("get_document", document), expected);
        assert_eq!(rewritten("list_documents", &format!("[{document}]")), json!([expected]));
    }

    #[test]
    fn report_data_become_strings_and_a_free_form_event_stays_as_it_was_submitted() {
        let event = r#"{"quantity":1.0,"revision":2,"additional_report_data":{"a":12.50,"b":true,"c":"x"},"event":{"n":1.50}}"#;
        let expected = json!({"quantity": "1.0", "revision": 2, "additional_report_data": {"a": "12.50", "b": true, "c": "x"}});
        let mut answered = rewritten("get_event", event);
        assert_eq!(
            answered.as_object_mut().expect("an object").shift_remove("event").expect("an event").to_string(),
            r#"{"n":1.50}"#
        );
        assert_eq!(answered, expected);
    }
}
