//! Records of imports, and the undo of imports.

use billing_application::error::{ResourceKind, UseCaseError};
use billing_application::formats::NamedFormat;
use billing_application::usage::{
    Atomicity, BatchOutcome, ChangedTotal, FileImport, ImportView, NO_ANSWER, NewUsageEvent, OnConflict, RefusedLine,
    UNDONE_PER_TRANSACTION, UndoResult, delete_event, forget_old_imports, get_import, list_imports, record_usage, undo_import,
};
use billing_application::{Transactions, UseCase};
use billing_domain::audit::AuditAction;
use billing_domain::event_input::{FileEvent, FileEventKey};
use billing_domain::format::BuiltInFormat;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::imports::{ImportState, ImportedFileFacts};
use billing_domain::money::MoneySum;
use billing_domain::page::{Direction, ListSortKey, PageRequest};
use billing_domain::party::NetTerms;
use billing_domain::ports::{EventFilter, EventSortKey, ImportFilter};
use billing_domain::refs::{EventRef, ImportRef};
use billing_testkit::fixtures::{self, per_unit, requested};
use uuid::Uuid;

use crate::books::{Books, code};
use crate::rules::{assert_documents, billed};
use crate::support::{read, run};

fn january() -> Books {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    books
}

fn line(number: u64) -> FileEvent {
    let event =
        r#"{"timestamp":"2026-01-10T00:00:00Z","customer_ref":"acme","usage_product_ref":"calls","quantity":1}"#.to_owned();
    let key = IdempotencyKey::parse(&format!("import/a.csv/{number}")).expect("a key");
    let known_by = Some(FileEventKey::Line(key));
    FileEvent { line: number, event, shaped: None, event_ref: None, known_by }
}

/// Imports lines. Returns the import, the number of recorded events and the number of events that already existed.
fn import(books: &Books, lines: std::ops::Range<u64>, dry_run: bool) -> (Option<ImportRef>, u64, u64) {
    let import = imported(books, lines, dry_run);
    (import.import_ref(), import.summary().recorded, import.summary().already_there)
}

/// Imports lines. Returns the number of events per document.
fn documents(books: &Books, lines: std::ops::Range<u64>, dry_run: bool) -> Vec<u64> {
    imported(books, lines, dry_run).summary().documents.iter().map(|document| document.events).collect()
}

fn imported(books: &Books, lines: std::ops::Range<u64>, dry_run: bool) -> FileImport {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let file = ImportedFileFacts { name: Some("a.csv".to_owned()), bytes: 9, sha256: [7; 32] };
    let format = NamedFormat::Name(BuiltInFormat::Default.name());
    let transactions = &mut Transactions::Separate(services, Some(principal));
    let mut import = FileImport::begin(transactions, (format, file), OnConflict::Reject, dry_run).expect("an import");
    let mut record = |_: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| {
        let results =
            run(services, principal, UseCase::RecordUsage, |cx| record_usage(cx, &events, Atomicity::PerEvent, NO_ANSWER))?;
        Ok(BatchOutcome { results, stopped_by: None })
    };
    let lines: Vec<FileEvent> = lines.map(line).collect();
    for lines in lines.chunks(200) {
        let taken = import.take(transactions, lines, &mut record).expect("lines");
        assert!(taken.refused.is_empty() && taken.stopped.is_none(), "{taken:?}");
    }
    import.end(transactions, 0, None).expect("a finished import");
    import
}

fn undo(books: &Books, import_ref: ImportRef, may_go_on: &dyn Fn() -> bool) -> UndoResult {
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let transactions = &mut Transactions::Separate(services, Some(principal));
    undo_import(transactions, import_ref, may_go_on, &mut |transactions, step| step.carry_out(transactions))
        .expect("an undone import")
}

fn view(books: &Books, import_ref: ImportRef) -> ImportView {
    read(&books.bench.services, &books.bench.principal, UseCase::GetImport, |cx| get_import(cx, import_ref)).expect("an import")
}

/// Returns the events that are not deleted, ordered by timestamp.
fn events(books: &Books) -> Vec<EventRef> {
    let organization = books.bench.principal.organization();
    let found =
        books.bench.read(|tx| tx.events(organization, &EventFilter::default(), EventSortKey::Timestamp, PageRequest::LARGEST));
    found.into_iter().map(|event| event.event_ref).collect()
}

#[test]
fn a_dry_run_says_what_documents_come_to_of_a_file_that_is_tried_as_a_whole() {
    let books = january();
    let totals = |lines, dry_run| {
        let documents = imported(&books, lines, dry_run).summary().documents.clone();
        let amounts = |total: ChangedTotal| (total.before.map(|before| before.to_string()), total.after.to_string());
        documents.iter().map(|document| document.total.map(amounts)).collect::<Vec<_>>()
    };
    assert_eq!(totals(2..12, true), [Some((None, "1.00 EUR".to_owned()))]);
    assert_eq!(totals(2..12, false), [None]);
    let more = Some((Some("1.00 EUR".to_owned()), "2.00 EUR".to_owned()));
    assert_eq!(totals(2..22, true), [more], "ten events exist");
    assert_eq!(totals(2..300, true), [None], "two slices");
    assert_documents(&books, &["UB-INV-1 DRAFT | 2026-01-01…2026-01-31 calls × 10: 1.00 | total 1.00 EUR"]);
}

#[test]
fn lines_that_are_recorded_are_not_recorded_again_and_changed_ones_are_refused() {
    let books = january();
    import(&books, 2..12, false);
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let changed = FileEvent { event: line(4).event.replace(":1}", ":2}"), ..line(4) };
    for dry_run in [true, false] {
        let file = ImportedFileFacts { name: Some("a.csv".to_owned()), bytes: 9, sha256: [7; 32] };
        let format = NamedFormat::Name(BuiltInFormat::Default.name());
        let transactions = &mut Transactions::Separate(services, Some(principal));
        let mut import = FileImport::begin(transactions, (format, file), OnConflict::Reject, dry_run).expect("an import");
        let mut given = Vec::new();
        let mut record = |_: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| {
            given.push(events.len());
            let results =
                run(services, principal, UseCase::RecordUsage, |cx| record_usage(cx, &events, Atomicity::PerEvent, NO_ANSWER))?;
            Ok(BatchOutcome { results, stopped_by: None })
        };
        let lines = [line(2), line(3), changed.clone(), line(12)];
        let taken = import.take(transactions, &lines, &mut record).expect("lines");
        assert!(
            matches!(taken.refused.as_slice(), [RefusedLine { number: 4, item: None, error: UseCaseError::LineChanged(_) }]),
            "dry run: {dry_run}: {taken:?}"
        );
        let taken = import.take(transactions, &[line(5), line(6)], &mut record).expect("lines");
        assert!(taken.refused.is_empty(), "{taken:?}");
        assert_eq!((import.summary().recorded, import.summary().already_there), (1, 4), "dry run: {dry_run}");
        assert_eq!(given, if dry_run { vec![] } else { vec![2] }, "the changed line and the new one");
    }
    assert_eq!(billed(&books, "2026-01-01", "calls"), "1.10");
}

#[test]
fn an_undone_import_counts_no_more_and_the_file_counts_again() {
    let books = january();
    books.calls("2026-01-09T00:00:00Z", "5");
    let (import_ref, recorded, _) = import(&books, 2..12, false);
    let import_ref = import_ref.expect("an import record");
    assert_eq!((recorded, billed(&books, "2026-01-01", "calls").as_str()), (10, "1.50"));
    let reported = view(&books, import_ref);
    assert_eq!((reported.import.state(), reported.import.recorded, reported.left), (ImportState::Finished, 10, 10));
    assert_eq!(
        (reported.import.documents[0].number.to_string(), reported.import.documents[0].events),
        ("UB-INV-1".to_owned(), 10)
    );

    // Another import of the same file records nothing, and its undo deletes nothing.
    let (again, recorded, there) = import(&books, 2..12, false);
    assert_eq!((recorded, there), (0, 10));
    let nothing = undo(&books, again.expect("an import record"), &|| true);
    assert_eq!((nothing.deleted, nothing.view.import.state()), (0, ImportState::Undone));
    assert_eq!(billed(&books, "2026-01-01", "calls"), "1.50");

    let undone = undo(&books, import_ref, &|| true);
    assert_eq!((undone.deleted, undone.already_deleted.len(), undone.refused.len(), undone.view.left), (10, 0, 0, 0));
    assert_eq!(undone.view.import.state(), ImportState::Undone);
    assert_eq!(billed(&books, "2026-01-01", "calls"), "0.50");
    assert_eq!(books.bench.audit_log()[0].action, AuditAction::UndoImport);

    // A second undo changes nothing.
    let entries = books.bench.audit_log().len();
    let before = view(&books, import_ref);
    let repeated = undo(&books, import_ref, &|| true);
    assert_eq!((repeated.deleted, repeated.already_deleted.len(), view(&books, import_ref)), (0, 0, before));
    assert_eq!(books.bench.audit_log().len(), entries);

    let (_, recorded, there) = import(&books, 2..12, false);
    assert_eq!((recorded, there, billed(&books, "2026-01-01", "calls").as_str()), (10, 0, "1.50"));
}

#[test]
fn what_is_billed_gets_its_credit_and_what_was_deleted_before_is_told() {
    let books = january();
    let (import_ref, ..) = import(&books, 2..12, false);
    let deleted = events(&books)[3];
    run(&books.bench.services, &books.bench.principal, UseCase::DeleteEvent, |cx| delete_event(cx, deleted))
        .expect("a deleted event");
    books.bill("2026-02-02T00:00:00Z");
    assert_eq!(billed(&books, "2026-01-01", "calls"), "0.90");
    let undone = undo(&books, import_ref.expect("an import record"), &|| true);
    assert_eq!((undone.deleted, undone.already_deleted), (9, vec![deleted]));
    assert_eq!(billed(&books, "2026-01-01", "calls"), "0.00");
    let credits =
        books.bench.documents().into_iter().filter(|document| document.kind == billing_domain::document::DocumentKind::Credit);
    assert_eq!(credits.count(), 1, "one credit for all events");
    let (_, recorded, there) = import(&books, 2..12, false);
    assert_eq!((recorded, there), (10, 0), "including the deleted event");
}

#[test]
fn undoing_stops_when_there_is_no_time_and_goes_on_where_it_was() {
    let books = january();
    let many = UNDONE_PER_TRANSACTION as u64 + 50;
    let (import_ref, ..) = import(&books, 0..many, false);
    let import_ref = import_ref.expect("an import record");
    let first = undo(&books, import_ref, &|| false);
    assert_eq!((first.view.import.state(), first.deleted + first.view.left), (ImportState::Undoing, many));
    assert!(first.deleted > 0 && first.view.left > 0, "{first:?}");
    let rest = undo(&books, import_ref, &|| true);
    assert_eq!((rest.deleted, rest.view.left, rest.view.import.state()), (first.view.left, 0, ImportState::Undone));
    assert_eq!(rest.view.import.undone.map(|undone| undone.deleted), Some(many));
    assert_documents(&books, &["UB-INV-1 DRAFT | 2026-01-01…2026-01-31 calls × 0: 0.00 | total 0.00 EUR"]);
}

#[test]
fn an_undo_in_several_transactions_has_each_document_once_with_its_totals() {
    let books = january();
    books.calls("2026-01-09T00:00:00Z", "5");
    let many = 2 * UNDONE_PER_TRANSACTION as u64 + 50;
    let (import_ref, ..) = import(&books, 0..many, false);
    let total = |figure: Option<MoneySum>| figure.map(|sum| sum.to_decimal().to_string());
    let (before, after) = (Some("55.50".to_owned()), Some("0.50".to_owned()));
    let undone = undo(&books, import_ref.expect("an import record"), &|| true);
    let [change] = undone.changes.as_slice() else { panic!("one document: {:?}", undone.changes) };
    let number = change.document.as_ref().map(|(_, number)| number.to_string());
    assert_eq!((number.as_deref(), undone.deleted), (Some("UB-INV-1"), many));
    assert_eq!((total(change.billed.before), total(change.billed.after)), (before.clone(), after.clone()));
    let [sums] = undone.totals.as_slice() else { panic!("one currency: {:?}", undone.totals) };
    assert_eq!((total(sums.billed.before), total(sums.billed.after)), (before, after));
}

#[test]
fn an_import_that_is_broken_off_is_unfinished_and_can_be_undone() {
    let books = january();
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let file = ImportedFileFacts { name: None, bytes: 0, sha256: [0; 32] };
    let format = NamedFormat::Name(BuiltInFormat::Default.name());
    let transactions = &mut Transactions::Separate(services, Some(principal));
    let mut broken = FileImport::begin(transactions, (format, file), OnConflict::Reject, false).expect("an import");
    let mut record = |_: &mut Transactions<'_, '_>, events: Vec<NewUsageEvent>| {
        let results =
            run(services, principal, UseCase::RecordUsage, |cx| record_usage(cx, &events, Atomicity::PerEvent, NO_ANSWER))?;
        Ok(BatchOutcome { results, stopped_by: None })
    };
    broken.take(transactions, &[line(2), line(3)], &mut record).expect("lines");
    let import_ref = broken.import_ref().expect("an import record");
    let reported = view(&books, import_ref);
    assert_eq!((reported.import.state(), reported.left), (ImportState::Unfinished, 2));
    assert_eq!(undo(&books, import_ref, &|| true).deleted, 2);
}

#[test]
fn a_dry_run_leaves_no_import_and_an_unknown_one_can_not_be_undone() {
    let books = january();
    assert_eq!(import(&books, 2..12, true), (None, 10, 0));
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let all = read(services, principal, UseCase::ListImports, |cx| {
        let page = PageRequest::LARGEST.in_direction(Direction::Backward);
        list_imports(cx, &ImportFilter::default(), ListSortKey::Created, page)
    })
    .expect("imports");
    assert_eq!(all.total, 0);
    let transactions = &mut Transactions::Separate(services, Some(principal));
    let import_ref = ImportRef::from_uuid(Uuid::nil());
    let unknown = undo_import(transactions, import_ref, &|| true, &mut |transactions, step| step.carry_out(transactions));
    assert!(matches!(unknown, Err(UseCaseError::Unknown(ResourceKind::Import))));
}

#[test]
fn an_import_in_an_unknown_format_is_refused_as_a_whole() {
    let books = january();
    let before = books.bench.store.contents();
    let file = ImportedFileFacts { name: None, bytes: 0, sha256: [0; 32] };
    let transactions = &mut Transactions::Separate(&books.bench.services, Some(&books.bench.principal));
    let refused = FileImport::begin(transactions, (NamedFormat::Name(fixtures::line("log")), file), OnConflict::Reject, false);
    assert_eq!(code(refused), "unknown_format");
    assert_eq!(books.bench.store.contents(), before);
}

#[test]
fn a_dry_run_shows_a_document_for_each_event_where_each_gets_one() {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    for is_dry_run in [true, false] {
        assert_eq!(documents(&books, 2..5, is_dry_run), [1, 1, 1], "dry run: {is_dry_run}");
    }
}

#[test]
fn imports_are_forgotten_after_400_days() {
    let books = january();
    let (import_ref, ..) = import(&books, 2..3, false);
    books.clock("2027-02-24T11:59:59Z");
    assert_eq!(forget_old_imports(&books.bench.services).expect("deleted imports"), 0);
    books.clock("2027-02-24T12:00:01Z");
    assert_eq!(forget_old_imports(&books.bench.services).expect("deleted imports"), 1);
    let gone = read(&books.bench.services, &books.bench.principal, UseCase::GetImport, |cx| {
        get_import(cx, import_ref.expect("an import record"))
    });
    assert!(matches!(gone, Err(UseCaseError::Unknown(ResourceKind::Import))));
    assert_eq!(events(&books).len(), 1, "the events remain");
}
