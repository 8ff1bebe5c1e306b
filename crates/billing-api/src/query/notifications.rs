//! Filters of notifications.

use std::ops::RangeInclusive;

use billing_application::notifications::NotificationQuery;
use billing_domain::notification::{NotificationType, Subject};
use billing_domain::page::MAX_PAGE_SIZE;
use billing_domain::refs::CustomerRef;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::lists::possible;
use super::{DEFAULT_PAGE_SIZE, SearchRef, digits};
use crate::dto::declare::{params, wire};
use crate::dto::input::Node;
use crate::dto::schemas::integer;

/// Largest position. JavaScript represents all numbers up to it exactly.
const MAX_POSITION: u64 = 9_007_199_254_740_991;
/// Range of the number of notifications in a response.
const SIZES: RangeInclusive<u32> = 1..=MAX_PAGE_SIZE;

params! {
    /// Filters of notifications.
    NotificationParams {
        /// Position after which the list starts: the position of the last notification that the caller has seen. Default: 0.
        after: Position = 0,
        /// Type.
        kind as "type": Option<NotificationType>,
        /// Subject: `document:`, `contract:`, `limit:` or `endpoint:` and a reference.
        subject: Option<SearchRef<Subject>>,
        /// Customer whom the subjects belong to.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Maximum number of elements.
        page_size as "pageSize": FeedSize = DEFAULT_PAGE_SIZE,
    }
}

impl NotificationParams {
    /// Returns the query; `None` if nothing can match.
    pub fn asked(self) -> Option<NotificationQuery> {
        Some(NotificationQuery {
            kind: self.kind,
            subject: possible(self.subject)?,
            customer_ref: possible(self.customer_ref)?,
            after: self.after,
            limit: self.page_size,
        })
    }
}

/// A position in the feed.
pub struct Position;

/// The number of notifications in a response.
pub struct FeedSize;

wire! {
    Position of u64: position,
        |_| ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(MAX_POSITION));
    FeedSize of u32: |node| digits(node, &SIZES, &format!("must be a whole number from 1 to {MAX_PAGE_SIZE}")),
        |_| integer(1, MAX_PAGE_SIZE);
}

fn position(node: Node<'_>) -> Option<u64> {
    let text = node.text()?;
    let are_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse().ok().filter(|position| are_digits && *position <= MAX_POSITION) {
        Some(position) => Some(position),
        None => {
            let code = if are_digits || text.starts_with('-') { "out_of_range" } else { "invalid_format" };
            node.refuse(code, format!("must be a whole number from 0 to {MAX_POSITION}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn query(raw: &str) -> Query {
        Query::of("/api/notifications/filter", raw).expect(raw)
    }

    #[test]
    fn the_feed_starts_at_its_beginning_unless_a_position_is_given() {
        let asked = query("").read::<NotificationParams>().expect("right").asked().expect("something");
        assert_eq!((asked.after, asked.limit, asked.kind, asked.subject), (0, DEFAULT_PAGE_SIZE, None, None));
        let raw =
            "after=7&type=document.issued&subject=document:0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e&customer_ref=acme&pageSize=1000";
        let asked = query(raw).read::<NotificationParams>().expect("right").asked().expect("something");
        assert_eq!((asked.after, asked.limit, asked.kind), (7, 1000, Some(NotificationType::DocumentIssued)));
        assert!(asked.subject.is_some() && asked.customer_ref.is_some());
        assert!(query("subject=invoice:7").read::<NotificationParams>().expect("right").asked().is_none());
    }

    #[test]
    fn every_wrong_parameter_is_named() {
        let problem =
            query("after=-1&type=document.*&pageSize=1001").read::<NotificationParams>().map(|_| ()).expect_err("refused");
        let expected = [("/after", "out_of_range"), ("/type", "invalid_value"), ("/pageSize", "out_of_range")];
        assert_eq!(problem.fields(), expected.map(|(pointer, code)| (pointer.to_owned(), code)));
    }
}
