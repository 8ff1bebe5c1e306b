//! Records of billing runs.

use std::cell::Cell;

use billing_application::UseCase;
use billing_application::billing_run::{BillingRunRequest, count_late_contracts, run_billing_everywhere};
use billing_application::catalog::{TaxBasisPatch, WantedEntity, create_entity, edit_entity};
use billing_application::documents::issue_document;
use billing_application::error::{ResourceKind, UseCaseError};
use billing_application::notifications::number_notifications;
use billing_application::run_history::{forget_old_billing_runs, get_billing_run, list_billing_runs};
use billing_application::verify::verify;
use billing_domain::audit::AuditActor;
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::document::lines::BillWith;
use billing_domain::notification::NotificationType;
use billing_domain::page::{Direction, ListSortKey, PageRequest};
use billing_domain::party::Entity;
use billing_domain::party::legal::Strictness;
use billing_domain::patch::Changes;
use billing_domain::ports::{NotificationFilter, RunFilter};
use billing_domain::refs::{BillingRunRef, ContractRef, ServerRef};
use billing_domain::runs::{BillingRunRecord, FailedDocument, RunFailure, RunHead, RunState};
use billing_domain::warning::Warning;
use billing_testkit::fixtures::{self, fixed, per_unit, requested};
use uuid::Uuid;

use crate::books::Books;
use crate::support::{read, run, run_billing};

fn fees(contracts: usize) -> Books {
    let books = Books::at("2025-12-20T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    for _ in 0..contracts {
        books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    }
    books
}

fn runs(books: &Books) -> Vec<RunHead> {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    read(services, principal, UseCase::ListBillingRuns, |cx| {
        let page = PageRequest::LARGEST.in_direction(Direction::Backward);
        list_billing_runs(cx, &RunFilter::default(), ListSortKey::Created, page)
    })
    .expect("runs")
    .items
}

fn whole(books: &Books, run_ref: BillingRunRef) -> BillingRunRecord {
    read(&books.bench.services, &books.bench.principal, UseCase::GetBillingRun, |cx| get_billing_run(cx, run_ref)).expect("a run")
}

#[test]
fn a_run_tells_what_it_issued_and_a_dry_run_leaves_nothing() {
    let books = fees(3);
    books.clock("2026-02-02T00:00:00Z");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let dry = run_billing(services, principal, BillingRunRequest::whole(true)).expect("a run");
    assert_eq!((dry.run_ref, runs(&books)), (None, Vec::new()));

    let report = run_billing(services, principal, BillingRunRequest::whole(false)).expect("a run");
    let run_ref = report.run_ref.expect("a run record");
    let BillingRunRecord { head, documents, failures } = whole(&books, run_ref);
    assert_eq!((head.state(), head.author, head.contracts), (RunState::Finished, AuditActor::CommandLine, 3));
    assert_eq!((head.issued, head.voided, head.failed, failures), (3, 0, 0, Vec::<RunFailure>::new()));
    let reported: Vec<String> = documents.iter().map(|document| document.number.to_string()).collect();
    let issued: Vec<String> =
        report.issued.iter().filter_map(|document| document.opened.as_ref()).map(|(_, number)| number.to_string()).collect();
    assert_eq!(reported, issued);
    assert_eq!(runs(&books), [head]);
    let unknown =
        read(services, principal, UseCase::GetBillingRun, |cx| get_billing_run(cx, BillingRunRef::from_uuid(Uuid::nil())));
    assert!(matches!(unknown, Err(UseCaseError::Unknown(ResourceKind::BillingRun))));
}

#[test]
fn a_run_warns_of_corrections_of_a_period_that_is_not_over() {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let base = books.pricing("base", vec![fixed("fee", "10.00")]);
    let in_advance = books.contract(vec![RequestedProduct {
        payment_time: Some(PaymentTime::BeforeUse),
        ..requested(&base, "2026-01-01", "2026-12-31")
    }]);
    books.calls("2026-01-05T10:00:00Z", "3");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let preview = || run_billing(services, principal, BillingRunRequest::whole(true)).expect("a run");
    let report = preview();
    assert_eq!((report.issued.len(), report.warning()), (1, None), "an invoice in advance is as agreed");
    books.bill("2026-01-05T12:00:00Z");
    let invoice = books.reference("UB-INV-1");
    run(services, principal, UseCase::IssueDocument, |cx| issue_document(cx, invoice, false)).expect("an early invoice");
    books.clock("2026-01-06T12:00:00Z");
    books.calls("2026-01-06T10:00:00Z", "2");
    books.charge_with(BillWith::Fixed, in_advance, "2026-01-06", "Goodwill", "-1").expect("a credit");
    books.clock("2026-01-07T12:00:00Z");
    let report = preview();
    // The credit corrects an invoice in advance, so usage of the period corrects nothing.
    assert_eq!((report.issued.len(), report.warning()), (2, Some(Warning::OpenPeriods { documents: 1 })));
    assert!(report.issued.iter().all(|document| document.period == fixtures::period("2026-01-01", "2026-01-31")));
    books.clock("2026-02-01T12:00:00Z");
    assert_eq!(preview().warning(), None, "the period is over");
}

#[test]
fn a_run_that_is_broken_off_shows_as_unfinished_with_what_it_issued() {
    let books = fees(60);
    books.clock("2026-02-02T00:00:00Z");
    let left = Cell::new(2);
    let breaks_off = || {
        left.set(left.get() - 1);
        assert!(left.get() > 0, "the process ends here");
        true
    };
    let wanted = BillingRunRequest { dry_run: false, trust_clock: false, after: None, may_go_on: &breaks_off };
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_billing(&books.bench.services, &books.bench.principal, wanted).map(drop)
    }));
    assert!(broken.is_err());
    let unfinished = runs(&books).pop().expect("a run");
    assert_eq!((unfinished.state(), unfinished.issued, unfinished.ended_at), (RunState::Unfinished, 50, None));
    assert_eq!(whole(&books, unfinished.run_ref).documents.len(), 50);
}

#[test]
fn a_run_without_time_is_cut_short() {
    let books = fees(60);
    books.clock("2026-02-02T00:00:00Z");
    let left = Cell::new(1);
    let may_go_on = || left.replace(left.get() - 1) > 0;
    let wanted = BillingRunRequest { dry_run: false, trust_clock: false, after: None, may_go_on: &may_go_on };
    run_billing(&books.bench.services, &books.bench.principal, wanted).expect("a run");
    assert_eq!(runs(&books).pop().map(|run| (run.state(), run.issued, run.contracts)), Some((RunState::CutShort, 50, 50)));
}

#[test]
fn runs_of_the_clock_that_do_nothing_do_not_add_up() {
    let books = fees(1);
    let run_everywhere = || run_billing_everywhere(&books.bench.services).expect("a run");
    for _ in 0..3 {
        run_everywhere();
    }
    assert_eq!(runs(&books), [], "nothing is due");
    books.clock("2026-02-02T00:00:00Z");
    run_everywhere();
    let issued = runs(&books);
    assert_eq!((issued.len(), issued[0].issued, issued[0].author), (1, 1, AuditActor::Scheduler));
    let before = books.bench.store.contents();
    run_everywhere();
    assert_eq!(books.bench.store.contents(), before);
    // A requested run is always listed. Of several runs without effect, only the last is listed.
    for minute in 1..4 {
        books.clock(&format!("2026-02-02T00:0{minute}:00Z"));
        let asked = run_billing(&books.bench.services, &books.bench.principal, BillingRunRequest::whole(false)).expect("a run");
        let now = runs(&books);
        assert_eq!((now.len(), Some(now[0].run_ref)), (2, asked.run_ref));
        assert_eq!(now[1], issued[0]);
    }
}

#[test]
fn a_failure_is_recorded_when_it_changes() {
    let books = Books::with("2025-12-20T00:00:00Z", |entity| entity.profile.paper.strictness = Strictness::Strict, |_| {});
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    let failed = |now: &str| {
        books.clock(now);
        run_billing_everywhere(&books.bench.services).expect("a run").failed.len()
    };
    assert_eq!(failed("2026-01-10T00:00:00Z"), 0);
    assert_eq!(runs(&books), []);
    assert_eq!(failed("2026-02-01T03:00:00Z"), 1);
    let first = runs(&books);
    assert_eq!((first.len(), first[0].failed, first[0].issued), (1, 1, 0));
    assert_eq!(whole(&books, first[0].run_ref).failures[0].contract_ref, contract);
    for minute in 1..5 {
        assert_eq!(failed(&format!("2026-02-01T03:0{minute}:00Z")), 1);
        assert_eq!(runs(&books), first, "the failure is unchanged");
    }
    let dry = run_billing(&books.bench.services, &books.bench.principal, BillingRunRequest::whole(true)).expect("a run");
    assert_eq!((dry.failed.len(), runs(&books)), (1, first));
    let edit = Changes::of(|wanted: &mut WantedEntity| wanted.profile.paper.strictness = Strictness::Lenient);
    run(&books.bench.services, &books.bench.principal, UseCase::EditEntity, |cx| {
        edit_entity(cx, &fixtures::entity_ref("main"), &edit)
    })
    .expect("an entity");
    assert_eq!(failed("2026-02-01T03:06:00Z"), 0);
    let last = runs(&books);
    assert_eq!((last[0].failed, last[0].issued), (0, 1));
}

/// Creates an entity `other` that lacks legal information, and a contract of it and of `main`, whose documents are due earlier.
fn waiting_beside_another(change: impl Fn(&mut Entity)) -> (Books, ContractRef) {
    let books = Books::with(
        "2025-12-20T00:00:00Z",
        |main| {
            main.profile.grace_hours = 0;
            change(main);
        },
        |_| {},
    );
    let mut other = fixtures::entity("other");
    other.profile.paper.strictness = Strictness::Strict;
    let wanted = WantedEntity { profile: other.profile, is_default: None, tax: TaxBasisPatch::default() };
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    run(services, principal, UseCase::CreateEntity, |cx| create_entity(cx, Some(other.entity_ref), wanted)).expect("an entity");
    let (api, more) = (books.pricing("api", vec![fixed("fee", "10.00")]), books.pricing("more", vec![fixed("fee", "5.00")]));
    let mut of_main = requested(&api, "2026-01-01", "2026-02-28");
    of_main.entity_ref = Some(fixtures::entity_ref("main"));
    let mut of_other = requested(&more, "2026-01-01", "2026-02-28");
    of_other.entity_ref = Some(fixtures::entity_ref("other"));
    let contract = books.contract(vec![of_main, of_other]);
    (books, contract)
}

/// The contract is due again at a later instant, once its first document is issued.
#[test]
fn a_run_reports_a_failing_document_once_after_it_issued_another_one() {
    let (books, contract) = waiting_beside_another(|_| {});
    books.clock("2026-02-02T00:00:00Z");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    for dry_run in [true, false] {
        let report = run_billing(services, principal, BillingRunRequest::whole(dry_run)).expect("a run");
        let failed: Vec<_> = report.failed.iter().map(|failed| (failed.contract_ref, failed.document)).collect();
        let january = FailedDocument { period: fixtures::period("2026-01-01", "2026-01-31"), document_ref: None };
        assert_eq!((report.issued.len(), failed), (1, vec![(contract, Some(january))]), "dry run: {dry_run}");
    }
    let head = runs(&books).pop().expect("a run");
    assert_eq!((head.contracts, head.issued, head.failed), (1, 1, 1));
}

#[test]
fn a_failed_contract_is_notified_with_the_code_of_each_document() {
    let (books, _) = waiting_beside_another(|main| main.profile.paper.tax_currency = Some(fixtures::currency("PLN")));
    let organization = books.bench.principal.organization();
    let notified = |now: &str| {
        books.clock(now);
        run_billing_everywhere(&books.bench.services).expect("a run");
        number_notifications(&books.bench.services, ServerRef::from_uuid(Uuid::nil()), &|| false).expect("numbers");
        let all = books.bench.read(|tx| tx.notifications(organization, &NotificationFilter::default(), 0, u32::MAX));
        let of_billing = all.into_iter().filter(|notification| notification.kind == NotificationType::BillingFailed);
        let codes = |body: String| body.splitn(4, ' ').last().unwrap_or_default().to_owned();
        of_billing.map(|notification| format!("{} {}", notification.kind, codes(notification.body))).collect::<Vec<_>>()
    };
    let both = "billing.failed exchange_rate_missing paper_incomplete".to_owned();
    assert_eq!(notified("2026-02-01T01:00:00Z"), ["billing.failed exchange_rate_missing"]);
    let all = ["billing.failed exchange_rate_missing".to_owned(), both.clone()];
    assert_eq!(notified("2026-02-01T02:00:00Z"), all, "another document came to it");
    assert_eq!(notified("2026-02-01T03:00:00Z"), all);
    assert_eq!(notified("2026-02-02T02:00:00Z"), [all[0].clone(), both.clone(), both], "once a day");
}

#[test]
fn what_is_due_for_a_day_and_cannot_be_issued_is_verified_with_its_reason() {
    let books = Books::with("2025-12-20T00:00:00Z", |entity| entity.profile.paper.strictness = Strictness::Strict, |_| {});
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    let found = |now: &str| {
        books.clock(now);
        run_billing_everywhere(&books.bench.services).expect("a run");
        let verified = verify(&books.bench.services, false).expect("a verification");
        assert_eq!(verified.len(), 1);
        let (_, seen) = &verified[0];
        assert_eq!((seen.contracts, seen.documents, seen.accounts), (1, 0, 0));
        seen.findings.iter().map(|finding| finding.detail.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("2026-02-02T01:59:59Z"), [""; 0]);
    let [late] = found("2026-02-02T02:00:00Z").try_into().expect("one finding");
    assert!(late.contains("period from 2026-01-01: it is due since 2026-02-01T02:00:00"), "{late}");
    assert!(late.contains("legal_name"), "{late}");
}

#[test]
fn a_contract_is_late_when_its_document_is_due_for_an_hour_and_not_issued() {
    let late = |books: &Books| count_late_contracts(&books.bench.services).expect("a count");
    let run_everywhere = |books: &Books| run_billing_everywhere(&books.bench.services).expect("a run").failed_contracts();
    let books = fees(2);
    let due = books.bench.read(|tx| tx.contracts_due(None, fixtures::at("9000-01-01T00:00:00Z"), None, 100));
    let due_at = due.first().expect("a due contract").due_at;
    books.bench.clock.set(due_at.plus_seconds(3599));
    assert_eq!(late(&books), 0);
    books.bench.clock.set(due_at.plus_seconds(3600));
    assert_eq!(late(&books), 2);
    assert_eq!((run_everywhere(&books), late(&books)), (0, 0));

    // The entity has no legal name, so both documents of the contract fail.
    let books = Books::with("2025-12-20T00:00:00Z", |entity| entity.profile.paper.strictness = Strictness::Strict, |_| {});
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    books.clock("2026-03-05T00:00:00Z");
    assert_eq!((run_everywhere(&books), late(&books)), (1, 1));
}

#[test]
fn runs_are_forgotten_after_400_days() {
    let books = fees(1);
    books.bill("2026-02-02T00:00:00Z");
    books.clock("2027-03-08T23:59:59Z");
    assert_eq!((forget_old_billing_runs(&books.bench.services).expect("deleted runs"), runs(&books).len()), (0, 1));
    books.clock("2027-03-09T00:00:01Z");
    assert_eq!((forget_old_billing_runs(&books.bench.services).expect("deleted runs"), runs(&books).len()), (1, 0));
}
