//! Resources whose page shows a single API response.

use billing_console::Listing;
use serde_json::Value;

use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// Returns the API response for an object in a part of the console.
///
/// # Errors
/// Returns a problem if the part or the object does not exist.
pub(super) async fn read(visitor: &SessionUser, part: &str, reference: &str) -> Result<Value, Problem> {
    let id = Listing::of(part).and_then(|listing| listing.read).ok_or_else(Problem::unknown_route)?;
    visitor.get(id, reference).await
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method;
    use billing_console::listings;

    use billing_api::operations;

    #[test]
    fn every_part_has_the_operations_of_its_list_and_objects() {
        for listing in listings::ALL {
            for id in [Some(listing.operation), listing.read].into_iter().flatten() {
                assert!(operations::named(id).is_ok_and(|operation| operation.method == Method::GET), "{id}");
            }
        }
    }

    #[test]
    fn every_operation_that_the_console_names_exists() {
        let calls = ["get", "get_with", "list", "post", "change", "rehearse", "call", "shows"];
        let of = |caller: &str| calls.map(|call| format!("{caller}.{call}(\""));
        let places = ["self", "visitor", "quietly()"].map(of).concat();
        let mut named = 0;
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/console")).expect("a folder") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for place in places.iter().map(String::as_str).chain(["operations::named(\""]) {
                for id in code.split(place).skip(1).filter_map(|rest| rest.split('"').next()) {
                    assert!(operations::named(id).is_ok(), "{id}");
                    named += 1;
                }
            }
        }
        assert!(named > 30, "{named}");
    }
}
