//! Tests of credit allocation and of sums that exceed the range of a single amount (billing rules 9).

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::calendar::TimeZone;
use billing_domain::document::linking::SlotKind;
use billing_domain::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, Purpose, Settlement};
use billing_domain::ledger::receivables::{AccountEntry, DecisionContext, Issuance, ReceivablesAccount, check_account};
use billing_domain::money::{Money, MoneySum};
use billing_domain::receivables::{AccountKey, AccountRows, StatementEntry, StatementKind, statement};
use billing_domain::refs::DocumentRef;
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, at, cents, date, eur, per_unit, period, pricing};
use uuid::Uuid;

const ROOT: u128 = 1;

fn reference(number: u128) -> DocumentRef {
    DocumentRef::from_uuid(Uuid::from_u128(number))
}

/// Returns an issued document of the family of [`ROOT`].
fn document(number: u128, kind: DocumentKind, purpose: Purpose, parent: Option<u128>, minor: i64) -> BookDocument {
    let ids = CountingIds::default();
    let terms = agreed(&pricing("api", vec![per_unit("calls", "1")]), "2027-01-01", "2027-12-31");
    let contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), vec![terms]);
    let head = fixtures::document_head(&ids, &contract, &fixtures::entity("main"), period("2027-01-01", "2027-01-31"));
    BookDocument {
        head: DocumentHead { document_ref: reference(number), kind, purpose, parent: parent.map(reference), ..head },
        family: reference(ROOT),
        status: LifecycleStatus::Issued,
        total: Some(cents(minor)),
        issue_date: Some(date("2027-02-01")),
        due_date: Some(date("2027-02-01")),
        settlement: Settlement::none(eur()),
        updated_at: fixtures::at(fixtures::CREATED_AT),
        notifications: 0,
    }
}

fn root(minor: i64) -> BookDocument {
    document(ROOT, DocumentKind::Invoice, Purpose::Regular(SlotKind::Period), None, minor)
}

fn child(number: u128, minor: i64) -> BookDocument {
    document(number, DocumentKind::Invoice, Purpose::Usage, Some(ROOT), minor)
}

fn adjustment(number: u128, kind: DocumentKind, parent: u128, minor: i64) -> BookDocument {
    document(number, kind, Purpose::Adjustment, Some(parent), minor)
}

fn written_off(document: BookDocument) -> BookDocument {
    BookDocument { status: LifecycleStatus::Uncollectible, ..document }
}

/// Issues a credit of a parent that reverses other documents. Returns the settled documents and amounts, in order.
fn settled(parent: u128, minor: i64, takes_back: &[u128], family: Vec<BookDocument>) -> Vec<(u128, i64)> {
    let credit = adjustment(1_000, DocumentKind::Credit, parent, minor);
    let mut account = ReceivablesAccount::new(AccountKey::of(&credit), true, Money::zero(eur()));
    account.add(AccountRows { documents: family, ..AccountRows::default() });
    let takes_back: BTreeSet<DocumentRef> = takes_back.iter().copied().map(reference).collect();
    issue(&mut account, vec![Issuance { document: credit, takes_back }]);
    let entries = account.take_entries().expect("small amounts");
    let applied = entries.iter().filter_map(|entry| match entry {
        AccountEntry::Applied(application) => Some((application.to.as_uuid().as_u128(), application.amount.minor())),
        _ => None,
    });
    applied.collect()
}

fn issue(account: &mut ReceivablesAccount, issued: Vec<Issuance>) {
    let moment = DecisionContext { at: at("2027-03-01T00:00:00Z"), zone: TimeZone::UTC, by: Actor::Service };
    let mut last = 0;
    let mut ids = || {
        last += 1;
        Uuid::from_u128(last)
    };
    account.issue(issued, &moment, &mut ids).expect("documents that can be issued");
}

#[test]
fn a_credit_of_an_event_settles_that_event_and_no_later_one() {
    let children = || vec![root(0), child(2, 1_000), child(3, 2_000), child(4, 3_000)];
    assert_eq!(settled(3, 2_000, &[2, 3, 4], children()), [(3, 2_000)]);
    assert_eq!(settled(3, 2_500, &[2, 3, 4], children()), [(3, 2_000), (4, 500)], "then the rest, latest first");
    let late = adjustment(5, DocumentKind::Debit, 3, 700);
    let with_late = || children().into_iter().chain([late.clone(), child(6, 900)]).collect();
    assert_eq!(settled(3, 2_800, &[3], with_late()), [(3, 2_000), (5, 700), (6, 100)], "debits of the event come next");
}

#[test]
fn what_is_corrected_and_written_off_is_lessened_before_anything_else() {
    let children = || vec![root(500), child(2, 1_000), written_off(child(3, 2_000)), child(4, 3_000)];
    assert_eq!(settled(3, 2_000, &[2, 3, 4], children()), [(3, 2_000)]);
    let taken_back = vec![root(500), written_off(adjustment(2, DocumentKind::Debit, ROOT, 300))];
    assert_eq!(settled(ROOT, 400, &[ROOT, 2], taken_back), [(2, 300), (ROOT, 100)]);
}

#[test]
fn a_debit_that_is_taken_back_is_settled_before_its_invoice() {
    let late = |number| adjustment(number, DocumentKind::Debit, ROOT, 300);
    assert_eq!(settled(ROOT, 300, &[ROOT, 2], vec![root(5_000), late(2), late(3)]), [(2, 300)]);
    assert_eq!(settled(ROOT, 700, &[ROOT, 2, 3], vec![root(5_000), late(2), late(3)]), [(3, 300), (2, 300), (ROOT, 100)]);
}

#[test]
fn the_rest_of_the_family_comes_latest_first_and_what_is_written_off_last() {
    let family = vec![root(100), child(2, 100), written_off(child(3, 100)), adjustment(4, DocumentKind::Debit, ROOT, 100)];
    assert_eq!(settled(ROOT, 400, &[], family.clone()), [(4, 100), (2, 100), (ROOT, 100), (3, 100)]);
    assert_eq!(settled(ROOT, 150, &[ROOT], family), [(ROOT, 100), (4, 50)]);
}

#[test]
fn an_account_holds_any_number_of_large_documents() {
    const LARGE: i64 = 5_000_000_000_000_000_000;
    let credit = |number| adjustment(number, DocumentKind::Credit, ROOT, LARGE);
    let key = AccountKey::of(&credit(2));
    let mut account = ReceivablesAccount::new(key, true, Money::zero(eur()));
    let issued = (2..7).map(|number| Issuance { document: credit(number), takes_back: BTreeSet::new() });
    issue(&mut account, issued.collect());
    assert_eq!(account.unapplied().to_string(), "250000000000000000.00 EUR");
    assert_eq!(check_account(&account, MoneySum::zero(eur())), Ok(Vec::new()));
    let invoice = |number| BookDocument { family: reference(number), ..child(number, LARGE) };
    let issued = (10..16).map(|number| Issuance { document: invoice(number), takes_back: BTreeSet::new() });
    issue(&mut account, issued.collect());
    assert_eq!(account.unapplied(), MoneySum::zero(eur()));
    assert_eq!(check_account(&account, MoneySum::zero(eur())), Ok(Vec::new()));
    let due: BTreeMap<u128, i64> = account
        .documents()
        .filter_map(|document| Some((document.head.document_ref.as_uuid().as_u128(), document.owed().ok()?.amount_due?.minor())))
        .filter(|(_, due)| *due > 0)
        .collect();
    assert_eq!(due, BTreeMap::from([(15, LARGE)]));
}

#[test]
fn a_void_in_march_leaves_the_statement_of_february_as_it_was() {
    let invoice = root(12_300).head;
    let entry = |day: &str, kind, minor| StatementEntry {
        entity_ref: invoice.entity_ref.clone(),
        date: date(day),
        kind,
        document: Some((invoice.document_ref, invoice.number.clone())),
        payment_ref: None,
        reference: None,
        amount: cents(minor),
    };
    let (issued, voided) =
        (entry("2027-02-01", StatementKind::Invoice, 12_300), entry("2027-03-02", StatementKind::Void, -12_300));
    let february = |entries| statement(entries, Some(date("2027-02-01")), Some(date("2027-02-28"))).expect("a statement");
    let before = february(vec![issued.clone()]);
    assert_eq!(february(vec![issued.clone(), voided.clone()]), before);
    let march = statement(vec![issued, voided], Some(date("2027-03-01")), None).expect("a statement");
    let balances: Vec<i128> = march[0].lines.iter().map(|line| line.balance.minor()).collect();
    assert_eq!((march[0].opening_balance.minor(), balances, march[0].closing_balance.minor()), (12_300, vec![0], 0));
}

#[test]
fn a_statement_adds_any_number_of_large_documents_up() {
    let head = root(0).head;
    let entry = StatementEntry {
        entity_ref: head.entity_ref.clone(),
        date: date("2027-02-01"),
        kind: StatementKind::Invoice,
        document: Some((head.document_ref, head.number)),
        payment_ref: None,
        reference: None,
        amount: cents(i64::MAX),
    };
    let accounts = statement(vec![entry; 20], None, None).expect("a statement");
    assert_eq!(accounts[0].closing_balance.minor(), 20 * i128::from(i64::MAX));
}
