//! Conditions on the time of the last change, the order by it, and its cursors.

use billing_application::catalog::{CustomerView, EntityView};
use billing_application::charges::ChargeView;
use billing_application::contracts::ContractView;
use billing_application::documents::PaymentView;
use billing_application::formats::FormatView;
use billing_application::names::Named;
use billing_application::usage::EventView;
use billing_application::webhooks::EndpointView;
use billing_domain::access::{Administrator, ApiKey};
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::imports::ImportRecord;
use billing_domain::page::{Page, PageRequest, UpdateFilter, UpdatePosition};
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::StoredExchangeRate;
use billing_domain::runs::{BillingRunRecord, RunHead};
use http::header::LINK;
use serde::Serialize;

use super::{CURSOR, Query, TOTAL, last_page, require_number_or_cursor};
use crate::dto::declare::{params, wire};
use crate::dto::input::Node;
use crate::dto::schemas::text;
use crate::dto::wire::written;
use crate::stored_response::Success;

const ORDER: &str = "order";
/// The words of the orders by the time of the last change.
const BY_UPDATE: [&str; 2] = ["updated_at", "-updated_at"];
/// The maximum length of the reference in a cursor.
const MAX_KEY_CHARS: usize = 300;
const CURSOR_REASON: &str = "must come from the `next` link of the same list in the same order";

params! {
    /// Conditions on the time of the last change.
    UpdateParams {
        /// Earliest time of the last change (`updated_at`), RFC 3339 with an offset.
        updated_since: Option<Timestamp>,
        /// Position to continue from, as in the `next` link of the same list in the order `updated_at` or `-updated_at`.
        /// Excludes `pageNumber`.
        cursor: Option<UpdateCursor>,
    }
    with {
        fn check(fields: Fields<'_>) {
            require_number_or_cursor(fields);
            let of_another_order = |cursor: &str| parse_cursor(cursor).is_some_and(|(word, _)| fields.peek(ORDER) != Some(word));
            if fields.peek(CURSOR).is_some_and(of_another_order) {
                fields.refuse::<()>(CURSOR, "invalid_value", CURSOR_REASON);
            }
        }
    }
}

impl UpdateParams {
    /// Returns the conditions.
    pub fn filter(&self) -> UpdateFilter {
        UpdateFilter { since: self.updated_since, after: self.cursor.clone() }
    }
}

/// A position in a list in an order by the time of the last change.
pub struct UpdateCursor;

wire! {
    UpdateCursor of UpdatePosition: |node: Node<'_>| match parse_cursor(node.text()?) {
        Some((_, position)) => Some(position),
        None => node.refuse("invalid_value", CURSOR_REASON),
    }, |_| text();
}

/// Encodes a position for callers: the order, the time in microseconds and the reference.
fn encode_cursor(word: &str, position: &UpdatePosition) -> String {
    format!("{word}~{}~{}", position.updated_at.as_micros(), position.key)
}

/// Reads an order and a position as written by [`encode_cursor`].
fn parse_cursor(text: &str) -> Option<(&str, UpdatePosition)> {
    let mut parts = text.splitn(3, '~');
    let (word, micros, key) = (parts.next()?, parts.next()?, parts.next()?);
    let is_key = !key.is_empty() && key.chars().count() <= MAX_KEY_CHARS && !key.chars().any(char::is_control);
    if !is_key || !BY_UPDATE.contains(&word) {
        return None;
    }
    let updated_at = Timestamp::from_micros(micros.parse().ok()?).ok()?;
    Some((word, UpdatePosition { updated_at, key: key.to_owned() }))
}

impl Query {
    fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Builds the response with a page of a list that can be ordered by the time of the last change. In this order, the `next`
    /// link has a cursor. A page after a cursor has no total, because the whole list is not counted again.
    pub fn answer_updated<'t, T: LastChange, J: From<&'t T> + Serialize>(
        &self,
        asked: PageRequest,
        page: &'t Page<T>,
    ) -> Success {
        let Some(word) = self.value(ORDER).filter(|word| BY_UPDATE.contains(word)) else {
            return self.answer::<_, J>(asked, page);
        };
        let is_continued = self.value(CURSOR).is_some();
        let (size, number) = (u64::from(asked.size()), u64::from(asked.number()));
        // After a cursor, a full page may be the last one. The page after it is then empty.
        let has_more = if is_continued { page.items.len() as u64 == size } else { (number + 1) * size < page.total };
        let last = page.items.last().filter(|_| has_more);
        let next = last.map(|last| format!("{CURSOR}={}", encode_cursor(word, &last.position())));
        let elements: Vec<J> = page.items.iter().map(J::from).collect();
        let answer = Success::json(written(&elements));
        if is_continued {
            return answer.with(LINK, &self.links_around(size, None, next, None));
        }
        let links = self.links_around(size, Some(number), next, Some(last_page(page.total, size)));
        answer.with(LINK, &links).with(TOTAL, &page.total.to_string())
    }
}

/// An element of a list that can be ordered by the time of the last change.
pub trait LastChange {
    /// Returns the time of the last change, and the reference that orders elements with equal times.
    fn position(&self) -> UpdatePosition;
}

impl<T: LastChange> LastChange for Named<T> {
    fn position(&self) -> UpdatePosition {
        self.item.position()
    }
}

macro_rules! last_changes {
    ($($type:ty: |$element:pat_param| $updated_at:expr, $key:expr;)+) => {$(
        impl LastChange for $type {
            fn position(&self) -> UpdatePosition {
                let $element = self;
                UpdatePosition { updated_at: $updated_at, key: $key }
            }
        }
    )+};
}

last_changes! {
    CustomerView: |view| view.customer.updated_at, view.customer.customer_ref.as_str().to_owned();
    EntityView: |view| view.entity.updated_at, view.entity.entity_ref.as_str().to_owned();
    UsageProduct: |product| product.updated_at, product.usage_product_ref.as_str().to_owned();
    Pricing: |pricing| pricing.updated_at, pricing.pricing_ref.as_str().to_owned();
    BankAccount: |account| account.updated_at, account.account_ref.as_str().to_owned();
    StoredExchangeRate: |stored| stored.updated_at, stored.key();
    // Lists in this order do not contain the built-in format.
    FormatView: |view| view.made.map_or(Timestamp::MIN, |(at, _)| at), view.format.format_ref.as_str().to_owned();
    ContractView: |view| view.contract.updated_at, view.contract.contract_ref.to_string();
    PaymentView: |view| view.payment.updated_at, view.payment.payment_ref.to_string();
    ChargeView: |view| view.charge.revised_at, view.charge.charge_ref.as_str().to_owned();
    EventView: |view| view.event.revised_at, view.event.event_ref.to_string();
    (ImportRecord, Option<u64>): |(import, _)| import.updated_at, import.import_ref.to_string();
    (RunHead, Option<BillingRunRecord>): |(head, _)| head.updated_at, head.run_ref.to_string();
    Administrator: |administrator| administrator.updated_at, administrator.admin_ref.to_string();
    ApiKey: |key| key.updated_at, key.api_key_ref.to_string();
    EndpointView: |view| view.endpoint.updated_at, view.endpoint.endpoint_ref.to_string();
}

#[cfg(test)]
mod tests {
    use billing_domain::page::{ListSortKey, Order};

    use super::*;
    use crate::query::lists::ListParams;

    fn query(raw: &str) -> Query {
        Query::of("/api/pricings/filter", raw).expect(raw)
    }

    fn product(reference: &str, seconds: i64) -> UsageProduct {
        let product = billing_testkit::fixtures::usage_product(reference);
        UsageProduct { updated_at: product.created_at.plus_seconds(seconds), ..product }
    }

    #[test]
    fn a_cursor_continues_the_list_that_it_comes_from() {
        let position = product("a:b", 1).position();
        for word in BY_UPDATE {
            assert_eq!(parse_cursor(&encode_cursor(word, &position)), Some((word, position.clone())));
        }
        let cursor = encode_cursor("updated_at", &position);
        let params = query(&format!("order=updated_at&cursor={cursor}&pageSize=5")).read::<ListParams>().expect("valid");
        assert_eq!(params.order, Order { by: ListSortKey::Updated, descending: false });
        assert_eq!(params.updates.filter().after, Some(position));
        for raw in [
            format!("cursor={cursor}"),
            format!("order=created&cursor={cursor}"),
            format!("order=-updated_at&cursor={cursor}"),
            "order=updated_at&cursor=updated_at~1~".to_owned(),
            "order=updated_at&cursor=updated_at~x~a".to_owned(),
            "order=created&cursor=created~1~a".to_owned(),
        ] {
            let problem = query(&raw).read::<ListParams>().expect_err(&raw);
            assert_eq!(problem.fields(), [("/cursor".to_owned(), "invalid_value")], "{raw}");
        }
        let raw = format!("order=updated_at&pageNumber=1&cursor={cursor}");
        let problem = query(&raw).read::<ListParams>().expect_err("two positions");
        assert_eq!(problem.fields(), [("/pageNumber".to_owned(), "invalid_value")]);
    }

    #[test]
    fn only_lists_by_the_last_change_link_to_a_cursor() {
        let page = Page { items: vec![product("a", 1), product("b", 2)], total: 3 };
        let asked = PageRequest::new(2, 0).expect("a page");
        let header = |raw: &str, name: &str| {
            let response = query(raw).answer_updated::<_, crate::dto::usage_products::UsageProductJson>(asked, &page);
            let found = response.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().expect("text").to_owned())
        };
        assert!(header("pageSize=2", "link").expect("links").contains("pageNumber=1>; rel=\"next\""));
        let links = header("order=updated_at&pageSize=2", "link").expect("links");
        let cursor = encode_cursor("updated_at", &page.items[1].position());
        assert!(links.contains(&format!("?order=updated_at&pageSize=2&cursor={cursor}>; rel=\"next\"")), "{links}");
        assert_eq!(header("order=updated_at", TOTAL.as_str()).as_deref(), Some("3"));
        let next = format!("order=updated_at&cursor={cursor}");
        assert!(header(&next, "link").expect("links").contains("rel=\"next\""), "a full page may not be the last");
        assert_eq!(header(&next, TOTAL.as_str()), None);
    }
}
