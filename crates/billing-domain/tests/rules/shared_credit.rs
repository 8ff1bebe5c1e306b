//! Tests of credit that several contracts of a customer share (billing rules 12).

use billing_domain::credit::{CreditGrant, NewCreditGrant};
use billing_domain::document::{BookDocument, LifecycleStatus};
use billing_domain::ledger::credit::CreditView;
use billing_domain::ledger::{ContractBook, issue, post};
use billing_domain::ports::IdSource as _;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractRef, CreditGrantRef, EventRef};
use billing_domain::usage::CountedEvent;
use billing_testkit::CountingIds;
use billing_testkit::fixtures::{self, at, date, eur, line, quantity};

/// The books of two contracts of a customer for usage at 1.00 a call, with given credit of 100.00.
struct Contracts {
    ids: CountingIds,
    first: ContractBook,
    second: ContractBook,
}

impl Contracts {
    fn new(only: impl Fn(&ContractBook) -> Option<ContractRef>) -> Self {
        let ids = CountingIds::new();
        let (entity, customer) = (fixtures::entity("main"), fixtures::customer(&ids, "acme"));
        let pricing = fixtures::pricing("plan", vec![fixtures::per_unit("calls", "1.00")]);
        let terms = fixtures::agreed(&pricing, "2026-01-01", "2026-12-31");
        let book = || {
            let contract = fixtures::contract(&ids, &customer, vec![terms.clone()]);
            ContractBook::new(contract, customer.clone(), vec![fixtures::entity("main")])
        };
        let (mut first, second) = (book(), book());
        let account = AccountKey { customer_id: customer.id, entity_ref: entity.entity_ref, currency: eur() };
        let contract_ref = only(&second);
        let new =
            NewCreditGrant { account, amount: "100.00".to_owned(), name: line("Credit"), from: None, to: None, contract_ref };
        let grant = CreditGrant::new(new, CreditGrantRef::from_uuid(ids.new_id()), None, at("2026-01-01T00:00:00Z"));
        first.set_credit(CreditView { grants: vec![grant.expect("an amount")], ..CreditView::default() });
        Self { ids, first, second }
    }

    /// Reports calls of January on a contract, and shows them to the other.
    fn report(mut self, is_first: bool, calls: &str) -> Self {
        let Self { ids, first, second } = &mut self;
        let (book, other) = if is_first { (first, second) } else { (second, first) };
        book.take_over_credit(other).expect("small amounts");
        let usage_product = fixtures::usage_product_ref("calls");
        let key = fixtures::usage_key(&book.contract, 0, "2026-01-01", &usage_product);
        let now = at("2026-01-10T12:00:00Z");
        let event = CountedEvent {
            event_ref: EventRef::from_uuid(ids.new_id()),
            occurred_at: now,
            service_date: date("2026-01-10"),
            quantity: quantity(calls),
            is_distinct: None,
        };
        post::post_usage(book, &key, &[event], now, &mut || ids.new_id()).expect("usage");
        other.take_over_credit(book).expect("small amounts");
        self
    }

    /// Issues the draft of a contract, and shows it to the other.
    fn issue(mut self, is_first: bool) -> Self {
        let Self { ids, first, second } = &mut self;
        let (book, other) = if is_first { (first, second) } else { (second, first) };
        let document_ref = draft(book).head.document_ref;
        issue::issue(book, document_ref, at("2026-02-01T12:00:00Z"), &mut || ids.new_id()).expect("an issue");
        other.take_over_credit(book).expect("small amounts");
        self
    }

    /// Returns what the draft of each contract takes, and what is drawn and free, in minor units.
    #[track_caller]
    fn state(&self) -> ([i64; 2], [i64; 2]) {
        let balance = |book: &ContractBook| {
            let grant = &book.credit().expect("credit").grants[0];
            grant.balance(&book.draft_draws().expect("small amounts")).expect("small amounts")
        };
        assert_eq!(balance(&self.first), balance(&self.second), "both contracts see the same credit");
        let takes = |book: &ContractBook| {
            let draft = book.documents().find(|document| document.status == LifecycleStatus::Draft);
            draft.map_or(0, |draft| {
                book.content(draft.head.document_ref).expect("a draft").total_prepaid().expect("a small sum").minor()
            })
        };
        let balance = balance(&self.first);
        ([takes(&self.first), takes(&self.second)], [balance.drawn.minor(), balance.free.minor()])
    }
}

fn draft(book: &ContractBook) -> &BookDocument {
    book.documents().find(|document| document.status == LifecycleStatus::Draft).expect("a draft")
}

#[test]
fn drafts_of_all_contracts_share_credit_in_the_order_of_their_opening() {
    let contracts = Contracts::new(|_| None).report(false, "60").report(true, "60");
    assert_eq!(contracts.state(), ([4_000, 6_000], [0, 0]));
    // More usage of the draft that was opened first takes credit of the other.
    let contracts = contracts.report(false, "30");
    assert_eq!(contracts.state(), ([1_000, 9_000], [0, 0]));
}

#[test]
fn an_issue_draws_credit_for_all_contracts() {
    let contracts = Contracts::new(|_| None).report(false, "60").report(true, "60");
    // An issue takes what the draft showed, and leaves the earlier draft of the other contract its credit.
    let contracts = contracts.issue(true);
    assert_eq!(contracts.state(), ([0, 6_000], [4_000, 0]));
    assert_eq!(contracts.issue(false).state(), ([0, 0], [10_000, 0]));
}

#[test]
fn credit_of_a_contract_covers_its_documents_only() {
    let contracts = Contracts::new(|book| Some(book.contract.contract_ref)).report(true, "60").report(false, "60");
    assert_eq!(contracts.state(), ([0, 6_000], [0, 4_000]));
}
