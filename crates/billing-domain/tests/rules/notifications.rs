//! Tests of the notifications that changes cause, and of the notices of time.

use billing_domain::access::Actor;
use billing_domain::calendar::{Period, Timestamp, plus_months};
use billing_domain::contract::Contract;
use billing_domain::document::{BookDocument, DocumentKind, DocumentState, LifecycleStatus, Settlement};
use billing_domain::ledger::receivables::{AccountParties, DecisionContext, Issuance, NewPayment, ReceivablesAccount};
use billing_domain::ledger::{BookRows, ContractBook, ContractHeader, ContractNotifications, Entry, Extent};
use billing_domain::metadata::Metadata;
use billing_domain::money::Money;
use billing_domain::notification::notify::{self, Review};
use billing_domain::notification::{BillingProblem, Fact, FactData, Notice, NotificationType, Subject};
use billing_domain::party::{Customer, Entity};
use billing_domain::receivables::AccountKey;
use billing_domain::runs::{DocumentFailure, FailedDocument};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, at, cents, date, eur, per_unit, period, pricing, zone};
use uuid::Uuid;

use NotificationType::{ContractChanged, DocumentIssued, DocumentOpened, DocumentSettled, DocumentVoided};

/// A contract of 2027 in Berlin, and a document of its first month.
struct Scene {
    entity: Entity,
    customer: Customer,
    contract: Contract,
    document: BookDocument,
}

impl Scene {
    fn new() -> Self {
        let ids = CountingIds::default();
        let mut entity = fixtures::entity("main");
        entity.profile.time_zone = zone("Europe/Berlin");
        let customer = fixtures::customer(&ids, "acme");
        let terms = agreed(&pricing("api", vec![per_unit("calls", "1")]), "2027-01-01", "2027-12-31");
        let contract = fixtures::contract(&ids, &customer, vec![terms]);
        let head = fixtures::document_head(&ids, &contract, &entity, period("2027-01-01", "2027-01-31"));
        let document = BookDocument {
            family: head.document_ref,
            updated_at: head.created_at,
            head,
            status: LifecycleStatus::Draft,
            total: None,
            issue_date: None,
            due_date: None,
            settlement: Settlement::none(eur()),
            notifications: 1,
        };
        Self { entity, customer, contract, document }
    }

    /// Returns the document as it is issued for an amount, after a number of notifications.
    fn issued(&self, minor: i64, notifications: u64) -> BookDocument {
        BookDocument {
            status: LifecycleStatus::Issued,
            total: Some(cents(minor)),
            issue_date: Some(date("2027-02-01")),
            due_date: Some(date("2027-03-03")),
            notifications,
            ..self.document.clone()
        }
    }

    /// Returns the book with a document and a number of notifications about the contract.
    fn book(&self, document: BookDocument, notifications: u64) -> ContractBook {
        let header = ContractHeader {
            contract: self.contract.clone(),
            customer: self.customer.clone(),
            next_due_at: None,
            notifications: ContractNotifications { count: notifications, failure: None },
        };
        let rows = BookRows { documents: vec![document], ..BookRows::default() };
        ContractBook::of(header, vec![self.entity.clone().into()]).with_rows(Extent::Whole, rows).expect("a book without lines")
    }

    fn opened_entry(&self) -> Entry {
        Entry::Opened { head: Box::new(self.document.head.clone()), family: self.document.family }
    }

    fn issued_entry(&self, minor: i64) -> Entry {
        let issued = fixtures::frozen(&self.document.head, &self.contract, &self.customer, &self.entity, cents(minor));
        Entry::Issued { document_ref: self.document.head.document_ref, issued: Box::new(issued), mentions: Vec::new() }
    }

    fn account(&self) -> ReceivablesAccount {
        let parties = AccountParties { customer_ref: self.customer.customer_ref.clone(), zone: self.entity.profile.time_zone };
        let key = AccountKey::of(&self.document);
        ReceivablesAccount::new(key, true, Money::zero(eur())).with_parties(parties)
    }
}

fn now() -> Timestamp {
    at("2027-02-01T12:00:00Z")
}

fn moment(scene: &Scene) -> DecisionContext {
    DecisionContext { at: now(), zone: scene.entity.profile.time_zone, by: Actor::Service }
}

fn ids() -> impl FnMut() -> Uuid {
    let mut last = 0;
    move || {
        last += 1;
        Uuid::from_u128(last)
    }
}

/// The type, the sequence and, of a document, the state and the amount due of a fact.
type FactSummary = (NotificationType, u64, Option<(DocumentState, Option<i64>)>);

fn shown(facts: &[Fact]) -> Vec<FactSummary> {
    let document = |fact: &Fact| match &fact.data {
        FactData::Document(document) => Some((document.state, document.owed.and_then(|owed| owed.amount_due).map(Money::minor))),
        FactData::Contract(_) | FactData::Billing(_) | FactData::Limit(_) | FactData::Grant(_) | FactData::Endpoint(_) => None,
    };
    facts.iter().map(|fact| (fact.kind, fact.sequence, document(fact))).collect()
}

#[test]
fn each_entry_causes_its_notification_with_the_state_at_its_sequence() {
    let scene = Scene::new();
    let document_ref = scene.document.head.document_ref;
    let draft = |notifications| BookDocument { notifications, ..scene.document.clone() };
    let with_status = |status, document: BookDocument| BookDocument { status, ..document };
    let amended = || Entry::Amended(Box::new(Contract { version: 2, ..scene.contract.clone() }));
    let content = fixtures::draft_content(&scene.document.head, &scene.contract, &scene.customer, &scene.entity, cents(500));
    let discarded = || Entry::Discarded { document_ref, content: Box::new(content.clone()), at: now() };
    let voided = || Entry::Voided { document_ref, content: Box::new(content.content.clone()), at: now(), on: date("2027-02-01") };
    let quiet = || {
        vec![
            Entry::Redrawn(Box::new(scene.document.head.clone())),
            Entry::Lines { document_ref, lines: Vec::new() },
            Entry::EventsMoved { from: document_ref, to: document_ref, of: None },
            Entry::Due(Some(now())),
        ]
    };
    let is_draft = Some((DocumentState::Draft, None));
    let is_void = Some((DocumentState::Void, None));
    let is_issued = |minor| Some((DocumentState::Issued, Some(minor)));
    for (what, document, notifications, entries, expected) in [
        ("nothing of an event on a draft", draft(1), 0, quiet(), vec![]),
        ("an opened draft", draft(1), 0, vec![scene.opened_entry()], vec![(DocumentOpened, 1, is_draft)]),
        (
            "a draft that is opened and issued",
            scene.issued(500, 2),
            0,
            vec![scene.opened_entry(), scene.issued_entry(500)],
            vec![(DocumentOpened, 1, is_draft), (DocumentIssued, 2, is_issued(500))],
        ),
        // Nothing is due of an amount of zero.
        (
            "an issued draft without an amount",
            scene.issued(0, 7),
            0,
            vec![scene.issued_entry(0)],
            vec![(DocumentIssued, 7, Some((DocumentState::Paid, Some(0))))],
        ),
        (
            "a discarded draft",
            with_status(LifecycleStatus::Discarded, draft(2)),
            0,
            vec![discarded()],
            vec![(DocumentVoided, 2, is_void)],
        ),
        (
            "a void document",
            with_status(LifecycleStatus::Void, scene.issued(500, 5)),
            0,
            vec![voided()],
            vec![(DocumentVoided, 5, is_void)],
        ),
        (
            "a new version that opens a draft",
            draft(1),
            4,
            vec![amended(), scene.opened_entry()],
            vec![(ContractChanged, 4, None), (DocumentOpened, 1, is_draft)],
        ),
        (
            "two new versions",
            draft(1),
            4,
            vec![amended(), amended()],
            vec![(ContractChanged, 3, None), (ContractChanged, 4, None)],
        ),
    ] {
        let facts = notify::of(&scene.book(document, notifications), &entries, now()).expect(what);
        assert_eq!(shown(&facts), expected, "{what}");
    }
}

#[test]
fn a_settlement_is_told_once_and_only_if_the_outstanding_amounts_changed() {
    let scene = Scene::new();
    let document_ref = scene.document.head.document_ref;
    let mut account = scene.account();
    let mut id_generator = ids();
    account
        .issue(
            vec![Issuance { document: scene.issued(500, 2), takes_back: Default::default() }],
            &moment(&scene),
            &mut id_generator,
        )
        .expect("an invoice");
    let entries = account.take_entries().expect("small amounts");
    assert_eq!(notify::of_account(&account, &entries, now()).expect("facts"), (Vec::new(), Vec::new()), "nothing settles it");
    let mut pay = |account: &mut ReceivablesAccount, amount: &str| {
        let facts = NewPayment {
            amount: amount.to_owned(),
            paid_date: None,
            reference: None,
            method: None,
            metadata: Metadata::default(),
        };
        account.record_payment(document_ref, &facts, false, &moment(&scene), &mut id_generator).expect("a payment")
    };
    let reported = |account: &mut ReceivablesAccount| {
        let entries = account.take_entries().expect("small amounts");
        let (facts, notices) = notify::of_account(account, &entries, now()).expect("facts");
        (shown(&facts), notices)
    };
    // Two payments in one transaction are one settlement.
    pay(&mut account, "1.00");
    pay(&mut account, "1.50");
    let partly = Some((DocumentState::PartiallyPaid, Some(250)));
    assert_eq!(reported(&mut account), (vec![(DocumentSettled, 3, partly)], Vec::new()));
    let last = pay(&mut account, "2.50");
    assert_eq!(reported(&mut account), (vec![(DocumentSettled, 4, Some((DocumentState::Paid, Some(0))))], Vec::new()));
    // An amount that is due again before the due date is over needs its notice again.
    account.reverse(last, None, None, &moment(&scene), &mut ids()).expect("a reversal");
    let due_again = Notice {
        customer_id: scene.customer.id,
        subject: Subject::Document(document_ref),
        kind: NotificationType::DocumentOverdue,
        at: at("2027-03-03T23:00:00Z"),
    };
    assert_eq!(reported(&mut account), (vec![(DocumentSettled, 5, partly)], vec![due_again]));
    account.write_off(document_ref, None, &moment(&scene), &mut ids()).expect("a write-off");
    let written_off = Some((DocumentState::Uncollectible, Some(0)));
    assert_eq!(reported(&mut account), (vec![(DocumentSettled, 6, written_off)], Vec::new()));
    assert_eq!(account.document(document_ref).map(|document| document.notifications), Some(6));
}

#[test]
fn a_notice_is_stored_with_the_issue_and_reviewed_when_its_instant_comes() {
    let scene = Scene::new();
    let zone = scene.entity.profile.time_zone;
    let notice = Notice {
        customer_id: scene.customer.id,
        subject: Subject::Document(scene.document.head.document_ref),
        kind: NotificationType::DocumentOverdue,
        at: at("2027-03-03T23:00:00Z"),
    };
    let book = scene.book(scene.issued(500, 2), 0);
    assert_eq!(notify::notices(&book, &[scene.issued_entry(500)], now()).expect("notices"), [notice]);
    let credit = |mut document: BookDocument| {
        document.head.kind = DocumentKind::Credit;
        document
    };
    let paid = |document: BookDocument| BookDocument {
        settlement: Settlement { paid: cents(500), ..Settlement::none(eur()) },
        ..document
    };
    let written_off = |document: BookDocument| BookDocument { status: LifecycleStatus::Uncollectible, ..document };
    let later = |document: BookDocument| BookDocument { due_date: Some(date("2027-04-01")), ..document };
    let moved = Notice { at: at("2027-04-01T22:00:00Z"), ..notice };
    for (what, document, now, expected) in [
        ("a day early", scene.issued(500, 2), "2027-03-03T22:59:59Z", Review::Move(notice)),
        ("on its day", scene.issued(500, 2), "2027-03-03T23:00:00Z", Review::Notify),
        ("paid", paid(scene.issued(500, 2)), "2027-03-03T23:00:00Z", Review::Drop),
        ("written off", written_off(scene.issued(500, 2)), "2027-03-03T23:00:00Z", Review::Drop),
        ("a credit", credit(scene.issued(500, 2)), "2027-03-03T23:00:00Z", Review::Drop),
        ("a draft", scene.document.clone(), "2027-03-03T23:00:00Z", Review::Drop),
        ("due later", later(scene.issued(500, 2)), "2027-03-03T23:00:00Z", Review::Move(moved)),
    ] {
        assert_eq!(notify::review_document(&document, zone, at(now)).expect(what), expected, "{what}");
    }
}

#[test]
fn the_end_of_a_contract_is_announced_30_days_before() {
    let scene = Scene::new();
    let book = scene.book(scene.document.clone(), 1);
    let (fact, notice) = notify::created(&book, now()).expect("a contract");
    assert_eq!(shown(&[fact]), [(ContractChanged, 1, None)]);
    let announced = notice.map(|notice| (notice.kind, notice.at));
    assert_eq!(announced, Some((NotificationType::ContractEnding, at("2027-11-30T23:00:00Z"))));
    for (now, expected) in [
        ("2027-11-30T22:59:59Z", false),
        ("2027-11-30T23:00:00Z", true),
        ("2027-12-31T22:59:59Z", true),
        // The contract is over.
        ("2027-12-31T23:00:00Z", false),
    ] {
        let is_told = notify::review_contract(&book, at(now)).expect(now) == Review::Notify;
        assert_eq!(is_told, expected, "{now}");
    }
    let mut book = book;
    let fact = notify::ending(&mut book, now()).expect("a contract");
    assert_eq!((fact.kind, fact.sequence, book.notifications.count), (NotificationType::ContractEnding, 2, 2));
}

#[test]
fn a_failure_is_notified_first_with_another_document_or_code_and_then_once_a_day() {
    let document = |month: u32| {
        let first = date(&format!("2027-{month:02}-01"));
        Some(FailedDocument { period: Period::new(first, plus_months(first, 1)).expect("a month"), document_ref: None })
    };
    let problem = |failures: &[(Option<FailedDocument>, &str)]| BillingProblem {
        failures: failures
            .iter()
            .map(|(document, code)| DocumentFailure { document: *document, code: (*code).to_owned() })
            .collect(),
        detail: "too many".to_owned(),
    };
    let paper = (document(1), "paper_incomplete");
    let (stored, is_notified) = notify::billing_failure(&problem(&[paper]), None, at("2027-02-01T12:00:00Z"));
    assert!(is_notified);
    let then = |failures: &[(Option<FailedDocument>, &str)], now: &str| {
        let (next, is_notified) = notify::billing_failure(&problem(failures), Some(&stored), at(now));
        (is_notified, next.notified_at == at(now), next.count)
    };
    assert_eq!(then(&[paper], "2027-02-01T12:01:00Z"), (false, false, 1));
    assert_eq!(then(&[(document(1), "exchange_rate_missing")], "2027-02-01T12:01:00Z"), (true, true, 1), "another code");
    assert_eq!(then(&[(document(2), "paper_incomplete")], "2027-02-01T12:01:00Z"), (true, true, 1), "another document");
    assert_eq!(then(&[paper, (None, "refused")], "2027-02-01T12:01:00Z"), (true, true, 2));
    assert_eq!(then(&[paper], "2027-02-02T11:59:59Z"), (false, false, 1));
    assert_eq!(then(&[paper], "2027-02-02T12:00:00Z"), (true, true, 1));
    // What recovered and fails again is notified again, also of more failures than are stored.
    let both = notify::billing_failure(&problem(&[paper, (document(2), "x")]), None, at("2027-02-01T12:00:00Z")).0;
    let one = notify::billing_failure(&problem(&[paper]), Some(&both), at("2027-02-01T12:01:00Z"));
    assert_eq!((one.1, one.0.count, one.0.notified_at), (false, 1, both.notified_at));
    assert!(notify::billing_failure(&problem(&[paper, (document(2), "x")]), Some(&one.0), at("2027-02-01T12:02:00Z")).1);
    let many: Vec<_> = (1..=25).map(|n| (document(1 + n % 12), "x")).collect();
    let all = notify::billing_failure(&problem(&many), None, at("2027-02-01T12:00:00Z")).0;
    assert_eq!((all.count, all.first.len()), (25, 20));
    let fewer = notify::billing_failure(&problem(&many[1..]), Some(&all), at("2027-02-01T12:01:00Z"));
    assert_eq!((fewer.1, fewer.0.count), (false, 24));
    assert!(notify::billing_failure(&problem(&many), Some(&fewer.0), at("2027-02-01T12:02:00Z")).1);
    let scene = Scene::new();
    let mut book = scene.book(scene.document.clone(), 3);
    let failed = notify::billing(&mut book, Some(problem(&many)));
    let FactData::Billing(fact) = &failed.data else { panic!("{failed:?}") };
    assert_eq!(fact.failure.as_ref().map(|problem| problem.failures.len()), Some(20));
    let recovered = notify::billing(&mut book, None);
    assert_eq!((failed.kind, failed.sequence), (NotificationType::BillingFailed, 4));
    assert_eq!((recovered.kind, recovered.sequence), (NotificationType::BillingRecovered, 5));
    assert_eq!(failed.subject(), Subject::Contract(scene.contract.contract_ref));
}
