//! File imports and their events.

use std::sync::mpsc;
use std::time::Duration;

use billing_domain::access::RequestId;
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::imports::{ImportRecord, ImportUndo, ImportedDocument, ImportedEvent, ImportedFileFacts};
use billing_domain::ports::{ImportFilter, MadePart, Store};
use billing_domain::refs::{ApiKeyRef, EventRef, ImportPartRef, ImportRef};
use billing_domain::usage::{AnswerForm, EventKeyRecord, FactsDigest, NewEventKeyRecord, UsageEvent};
use uuid::Uuid;

use super::{World, all, done, keep_events, kept_events, later, long_ago, page, read, world, write};
use crate::{FreshIds, fixtures};

/// The time limit for a transaction that waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);

fn import(at: Timestamp) -> ImportRecord {
    let file = ImportedFileFacts { name: Some("a.csv".to_owned()), bytes: 12, sha256: std::array::from_fn(|i| i as u8) };
    ImportRecord::begun(ImportRef::from_uuid(Uuid::now_v7()), file, AuditActor::CommandLine, None, at)
}

fn put(store: &dyn Store, w: &World, import: &ImportRecord) {
    write(store, |tx| tx.put_import(w.org, import));
}

fn found(store: &dyn Store, w: &World, filter: &ImportFilter) -> Vec<ImportRecord> {
    read(store, |tx| tx.imports(w.org, filter, all())).items
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect(text)
}

fn part() -> ImportPartRef {
    ImportPartRef::from_uuid(Uuid::now_v7())
}

fn made(event_ref: EventRef, sent: Option<&str>) -> ImportedEvent {
    ImportedEvent { event_ref, key: sent.map(key) }
}

fn fresh_event() -> EventRef {
    EventRef::from_uuid(Uuid::now_v7())
}

pub fn an_import_comes_back_as_it_was_kept_last(store: &dyn Store) {
    let w = world(store);
    let mut kept = import(later(0));
    put(store, &w, &kept);
    assert_eq!(read(store, |tx| tx.import(w.org, kept.import_ref)), Some(kept.clone()));

    let head = w.head(1);
    kept.author = AuditActor::ApiKey(ApiKeyRef::from_uuid(Uuid::now_v7()));
    kept.request_id = RequestId::parse("r-1");
    (kept.ended_at, kept.stopped_at) = (Some(later(9)), Some(1002));
    (kept.recorded, kept.updated, kept.already_there, kept.refused) = (1000, 5, 1, 2);
    (kept.skipped, kept.more_documents) = (4, 3);
    kept.documents = vec![ImportedDocument {
        document_ref: head.document_ref,
        number: head.number,
        customer_ref: w.customer.customer_ref.clone(),
        currency: fixtures::eur(),
        events: 1000,
    }];
    let undone =
        ImportUndo { author: AuditActor::CommandLine, begun_at: later(10), ended_at: None, deleted: 5, already_deleted: 6 };
    for undone in [Some(undone.clone()), Some(ImportUndo { ended_at: Some(later(11)), ..undone }), None] {
        kept.undone = undone;
        put(store, &w, &kept);
        assert_eq!(read(store, |tx| tx.import(w.org, kept.import_ref)), Some(kept.clone()));
    }
    kept.file.name = None;
    put(store, &w, &kept);
    assert_eq!(found(store, &w, &ImportFilter::default()), [kept]);
}

pub fn imports_come_newest_first_narrowed_and_in_pages(store: &dyn Store) {
    let w = world(store);
    let mut imports = [import(later(20)), import(later(10)), import(later(10)), import(later(0))];
    imports[3].file.name = Some("b.csv".to_owned());
    // Of two imports at the same instant, the one with the greater reference comes first.
    let expected: Vec<ImportRecord> = [0, 2, 1, 3].map(|index: usize| imports[index].clone()).to_vec();
    for index in [2, 0, 3, 1] {
        put(store, &w, &imports[index]);
    }
    let none = ImportFilter::default;
    assert_eq!(found(store, &w, &none()), expected);
    assert_eq!(found(store, &w, &ImportFilter { from: Some(later(10)), ..none() }), expected[..3]);
    assert_eq!(found(store, &w, &ImportFilter { to: Some(later(10)), ..none() }), expected[3..]);
    assert_eq!(found(store, &w, &ImportFilter { name: Some("a.csv".to_owned()), ..none() }), expected[..3]);
    assert_eq!(found(store, &w, &ImportFilter { name: Some("A.csv".to_owned()), ..none() }), []);
    let second = read(store, |tx| tx.imports(w.org, &none(), page(3, 1)));
    assert_eq!((second.items.as_slice(), second.total), (&expected[3..], 4));
    let stranger = world(store);
    assert_eq!(found(store, &stranger, &none()), []);
    assert_eq!(read(store, |tx| tx.import(stranger.org, imports[0].import_ref)), None);
}

pub fn what_an_import_made_comes_part_by_part(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (import(later(0)), import(later(0)));
    put(store, &w, &one);
    put(store, &w, &other);
    let parts = [part(), part(), part()];
    let events: [EventRef; 4] = std::array::from_fn(|_| fresh_event());
    write(store, |tx| {
        tx.add_imported_events(w.org, one.import_ref, parts[2], &[made(events[3], None)])?;
        tx.add_imported_events(w.org, one.import_ref, parts[0], &[made(events[1], Some("k")), made(events[0], None)])?;
        tx.add_imported_events(w.org, other.import_ref, parts[1], &[made(events[2], None)])
    });
    let next = |import: &ImportRecord, after| read(store, |tx| tx.imported_events(w.org, import.import_ref, after));
    let first = next(&one, None);
    assert_eq!(first, Some(MadePart { part: parts[0], events: vec![events[1], events[0]] }));
    assert_eq!(next(&one, Some(parts[0])), Some(MadePart { part: parts[2], events: vec![events[3]] }));
    assert_eq!(next(&one, Some(parts[2])), None);
    let count = |import: &ImportRecord| read(store, |tx| tx.count_imported_events(w.org, import.import_ref));
    assert_eq!((count(&one), count(&other)), (3, 1));
    let stranger = world(store);
    assert_eq!(read(store, |tx| tx.count_imported_events(stranger.org, one.import_ref)), 0);
    assert_eq!(read(store, |tx| tx.imported_events(stranger.org, one.import_ref, None)), None);
}

pub fn who_sends_the_key_of_a_forgotten_event_sends_a_new_one(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let event = |_| fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("2"));
    let events: [UsageEvent; 3] = [(); 3].map(event);
    let keys = [key("a"), key("b"), key("c")];
    let taken = |index: usize| {
        let (key, event_ref) = (keys[index].clone(), events[index].event_ref);
        let kept =
            EventKeyRecord { key, facts: FactsDigest([7; 16]), event_ref, answer: "{}".to_owned(), form: AnswerForm::Event };
        NewEventKeyRecord { kept, document_ref: head.document_ref, document_number: head.number.clone() }
    };
    let (kept, part) = (import(later(0)), part());
    put(store, &w, &kept);
    write(store, |tx| {
        tx.insert_events(w.org, &events)?;
        keep_events(tx, w.org, w.customer.id, &[taken(0), taken(1), taken(2)])?;
        let noted = [made(events[0].event_ref, Some("a")), made(events[1].event_ref, Some("b")), made(fresh_event(), None)];
        tx.add_imported_events(w.org, kept.import_ref, part, &noted)
    });
    let known = || -> Vec<IdempotencyKey> {
        read(store, |tx| kept_events(tx, w.org, w.customer.id, &keys)).into_iter().map(|kept| kept.key).collect()
    };
    let forget = |events: &[EventRef]| {
        let events: Vec<_> = events.iter().map(|event_ref| (w.customer.id, *event_ref)).collect();
        write(store, |tx| tx.forget_imported_events(w.org, kept.import_ref, part, &events));
    };
    forget(&[events[1].event_ref]);
    assert_eq!(known(), [key("a"), key("c")]);
    let left = read(store, |tx| tx.imported_events(w.org, kept.import_ref, None)).expect("a part");
    assert_eq!((left.events.len(), left.events[0]), (2, events[0].event_ref));
    // An event that the import didn't record keeps its key.
    forget(&[events[2].event_ref]);
    assert_eq!(known(), [key("a"), key("c")]);
    forget(&left.events);
    assert_eq!(known(), [key("c")]);
    assert_eq!(read(store, |tx| tx.imported_events(w.org, kept.import_ref, None)), None);
    assert_eq!(read(store, |tx| tx.count_imported_events(w.org, kept.import_ref)), 0);
    forget(&left.events);
}

pub fn an_import_is_held_by_one_transaction_at_a_time(store: &dyn Store) {
    let w = world(store);
    let kept = import(later(0));
    put(store, &w, &kept);
    let (held, is_held) = mpsc::channel();
    let (reported, tell) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(store, |tx| {
                let mut import = tx.hold_import(w.org, kept.import_ref)?.expect("it is there");
                let _ = held.send(());
                // By then, the other transaction has begun and waits.
                std::thread::sleep(Duration::from_millis(100));
                import.recorded += 1;
                tx.put_import(w.org, &import)
            });
            let _ = reported.send(());
        });
        is_held.recv_timeout(PATIENCE).expect("held");
        write(store, |tx| {
            let mut import = tx.hold_import(w.org, kept.import_ref)?.expect("it is there");
            import.recorded += 1;
            tx.put_import(w.org, &import)
        });
        tell.recv_timeout(PATIENCE).expect("both are done");
    });
    assert_eq!(read(store, |tx| tx.import(w.org, kept.import_ref)).map(|import| import.recorded), Some(2));
}

pub fn imports_are_forgotten_with_what_they_made(store: &dyn Store) {
    let (w, began) = (world(store), long_ago());
    let stranger = fixtures::organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&stranger)));
    let imports = [import(began.plus_seconds(-2)), import(began.plus_seconds(-1)), import(began), import(later(0))];
    for import in &imports {
        put(store, &w, import);
        write(store, |tx| tx.add_imported_events(w.org, import.import_ref, part(), &[made(fresh_event(), None)]));
    }
    let is_there = |import: &ImportRecord| {
        let left = read(store, |tx| tx.count_imported_events(w.org, import.import_ref));
        let kept = read(store, |tx| tx.import(w.org, import.import_ref)).is_some();
        assert_eq!(left == 1, kept);
        kept
    };
    write(store, |tx| tx.forget_import(stranger.id, imports[3].import_ref));
    assert!(is_there(&imports[3]));
    write(store, |tx| tx.forget_import(w.org, imports[3].import_ref));
    assert!(!is_there(&imports[3]));
    while write(store, |tx| tx.purge_imports(began, 1)) == 1 {}
    assert_eq!(imports.each_ref().map(is_there), [false, false, true, false]);
}
