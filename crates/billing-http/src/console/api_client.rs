//! Reads the responses of operations to obtain the data of a page.

use actix_web::HttpResponse;
use actix_web::body::MessageBody as _;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, LINK};
use billing_console::PageLinks;
use serde_json::Value;

use billing_api::problem::Problem;
use billing_api::query::TOTAL;
use billing_api::query::documents::{TOTAL_AMOUNT, TOTAL_AMOUNT_DUE};

/// Returns the JSON of a response, or null if the object does not exist.
pub(super) fn or_nothing(answer: Result<Value, Problem>) -> Result<Value, Problem> {
    match answer {
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Ok(Value::Null),
        answer => answer,
    }
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) elements: Value,
    pub(super) total: Option<String>,
    pub(super) amount: Option<String>,
    pub(super) amount_due: Option<String>,
    pub(super) neighbours: PageLinks,
}

impl Listed {
    /// Reads the response with a page of a list.
    pub(super) fn of(answer: HttpResponse) -> Result<Self, Problem> {
        let header = |name: HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (total, amount, amount_due) = (header(TOTAL), header(TOTAL_AMOUNT), header(TOTAL_AMOUNT_DUE));
        let neighbours = neighbours(answer.headers());
        Ok(Self { elements: written(answer)?, total, amount, amount_due, neighbours })
    }
}

/// Returns the JSON of a response, with all digits of numbers.
pub(super) fn written(answer: HttpResponse) -> Result<Value, Problem> {
    let bytes = answer.into_body().try_into_bytes().map_err(|_| Problem::internal())?;
    serde_json::from_slice(&bytes).map_err(|_| Problem::internal())
}

/// Returns the queries in the `Link` header.
fn neighbours(headers: &HeaderMap) -> PageLinks {
    let mut found = PageLinks::default();
    let links = headers.get(LINK).and_then(|value| value.to_str().ok()).unwrap_or_default();
    for link in links.split(", <") {
        let Some((address, relation)) = link.split_once(">; rel=") else { continue };
        let query = address.split_once('?').map(|(_, query)| query.to_owned());
        match relation.trim_matches('"') {
            "first" => found.first = query,
            "prev" => found.previous = query,
            "next" => found.next = query,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_list_knows_its_neighbours_and_all_digits() {
        let link = r#"</api/x?a=b,c&pageSize=2&pageNumber=0>; rel="first", </api/x?a=b,c&pageSize=2&pageNumber=2>; rel="next""#;
        let answer = HttpResponse::Ok()
            .insert_header((LINK, link))
            .insert_header(("x-total-count", "7"))
            .body("[{\"total\":12345678901234.000001}]");
        let listed = Listed::of(answer).expect("a list");
        assert_eq!(listed.neighbours.next.as_deref(), Some("a=b,c&pageSize=2&pageNumber=2"));
        assert_eq!((listed.neighbours.previous, listed.total.as_deref()), (None, Some("7")));
        assert_eq!(listed.elements[0]["total"].to_string(), "12345678901234.000001");
    }
}
