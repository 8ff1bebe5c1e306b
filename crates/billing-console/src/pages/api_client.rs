//! Reads the responses of operations to obtain the data of a page.

use crate::PageLinks;
use http::StatusCode;
use http::header::{HeaderName, LINK};
use serde_json::Value;

use billing_api::console::ApiAnswer;
use billing_api::json_view::JsonAnswer;
use billing_api::problem::Problem;
use billing_api::query::TOTAL;
use billing_api::query::documents::{TOTAL_AMOUNT, TOTAL_AMOUNT_DUE};

/// Returns the JSON of a response, or null if the object does not exist.
pub(super) fn or_nothing<T>(answer: Result<JsonAnswer<T>, Problem>) -> Result<JsonAnswer<T>, Problem> {
    match answer {
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Ok(JsonAnswer::default()),
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
    pub(super) fn of(answer: &ApiAnswer) -> Result<Self, Problem> {
        let header = |name: HeaderName| answer.header(name).map(str::to_owned);
        let (total, amount, amount_due) = (header(TOTAL), header(TOTAL_AMOUNT), header(TOTAL_AMOUNT_DUE));
        let neighbours = neighbours(answer.header(LINK).unwrap_or_default());
        Ok(Self { elements: answer.json()?, total, amount, amount_due, neighbours })
    }
}

/// Returns the queries in a `Link` header.
fn neighbours(links: &str) -> PageLinks {
    let mut found = PageLinks::default();
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
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn a_part_of_a_list_knows_its_neighbours_and_all_digits() {
        let link = r#"</api/x?a=b,c&pageSize=2&pageNumber=0>; rel="first", </api/x?a=b,c&pageSize=2&pageNumber=2>; rel="next""#;
        let headers = HeaderMap::from_iter([(LINK, HeaderValue::from_static(link)), (TOTAL, HeaderValue::from_static("7"))]);
        let body = b"[{\"total\":12345678901234.000001}]".to_vec();
        let listed = Listed::of(&ApiAnswer { status: StatusCode::OK, headers, body }).expect("a list");
        assert_eq!(listed.neighbours.next.as_deref(), Some("a=b,c&pageSize=2&pageNumber=2"));
        assert_eq!((listed.neighbours.previous, listed.total.as_deref()), (None, Some("7")));
        assert_eq!(listed.elements[0]["total"].to_string(), "12345678901234.000001");
    }
}
