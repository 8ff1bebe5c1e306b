//! Resources whose page shows a single API response.

use crate::Listing;
use billing_api::json_view::JsonAnswer;

use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// Returns the API response for an object in a part of the console.
///
/// # Errors
/// Returns a problem if the part or the object does not exist.
pub(super) async fn read(user: &SessionUser, part: &str, reference: &str) -> Result<JsonAnswer, Problem> {
    let id = Listing::of(part).and_then(|listing| listing.read).ok_or_else(Problem::unknown_route)?;
    user.shows(id, reference, "");
    Ok(JsonAnswer::from(user.answer(id, reference, "").await?.json()?))
}

#[cfg(test)]
mod tests {
    use crate::listings;
    use billing_api::operation::HttpMethod;

    #[test]
    fn every_part_has_the_operations_of_its_list_and_objects() {
        for listing in listings::ALL {
            for operation in [Some(listing.operation), listing.read].into_iter().flatten() {
                assert!(operation.method == HttpMethod::GET, "{operation:?}");
            }
        }
    }
}
