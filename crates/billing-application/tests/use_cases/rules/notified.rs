//! Section 9: notifications of documents that are settled when they are issued.

use billing_application::notifications::number_notifications;
use billing_domain::contract::amendment::EffectiveFrom;
use billing_domain::party::NetTerms;
use billing_domain::ports::NotificationFilter;
use billing_domain::refs::ServerRef;
use billing_testkit::fixtures::{self, per_unit, requested};
use uuid::Uuid;

use crate::books::{Books, repriced};

/// Returns the number, the state and the amount due of each notification `document.settled`.
fn settled(books: &Books) -> Vec<String> {
    let organization = books.bench.principal.organization();
    number_notifications(&books.bench.services, ServerRef::from_uuid(Uuid::nil()), &|| false).expect("numbers");
    let all = books.bench.read(|tx| tx.notifications(organization, &NotificationFilter::default(), 0, u32::MAX));
    let settled = all.into_iter().filter(|notification| notification.kind.as_str() == "document.settled");
    settled.map(|notification| notification.body.splitn(4, ' ').last().unwrap_or_default().to_owned()).collect()
}

/// A child of 5.00 gets a credit of 4.00 by an edit. Both documents are numbered and settled in the transactions that issue them.
#[test]
fn a_document_that_is_settled_at_its_issue_is_notified_with_its_number() {
    let books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    let contract = books.contract(vec![product]);
    books.calls("2026-01-15T00:00:00Z", "5");
    books.reprice(&api, vec![per_unit("calls", "0.20")]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::Day(fixtures::date("2026-01-01"))).expect("an edit");
    let mut reported = settled(&books);
    reported.sort();
    assert_eq!(reported, ["UB-CRD-1 Settled 0", "UB-INV-2 PartiallyPaid 100"]);
}
