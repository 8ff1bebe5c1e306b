//! Issued documents never change, and each is chained to the previous one.

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentHead;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::ports::{Access, DocumentFilter, Lock, Store, StoreError, transact};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text};
use sha2::{Digest as _, Sha256};

use crate::rows::{World, world};
use crate::support::{Beside, TestDatabase, on_both, read, write};
use billing_testkit::Singly as _;

on_both!(
    an_issued_document_and_its_lines_refuse_every_change,
    a_line_put_beside_those_of_an_issued_document_is_found,
    each_hash_is_taken_over_the_one_before,
    an_issue_that_is_rolled_back_leaves_no_link,
    a_head_changed_behind_our_back_is_found_when_read,
    the_audit_log_is_append_only,
);

#[derive(QueryableByName)]
struct Link {
    #[diesel(sql_type = BigInt)]
    chain_position: i64,
    #[diesel(sql_type = Binary)]
    previous_hash: Vec<u8>,
    #[diesel(sql_type = Binary)]
    content_hash: Vec<u8>,
    #[diesel(sql_type = Text)]
    content: String,
}

fn chain(test: &TestDatabase) -> Vec<Link> {
    let query = diesel::sql_query(
        "SELECT chain_position, previous_hash, content_hash, CAST(content AS TEXT) AS content \
         FROM issued_documents ORDER BY chain_position",
    );
    match test.beside() {
        Beside::Sqlite(mut connection) => query.load(&mut connection),
        Beside::Postgres(mut connection) => query.load(&mut connection),
    }
    .expect("the chain")
}

fn issue(test: &TestDatabase, w: &World, head: &DocumentHead, minor: i64) -> bool {
    write(test, |tx| {
        tx.lock_contract(head.contract_key(w.organization), Lock::Exclusive)?;
        tx.issue_document(head.key(w.organization), &w.frozen(head, minor))
    })
}

fn an_issued_document_and_its_lines_refuse_every_change(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    assert!(issue(test, &w, &head, 1000));
    let before = read(test, |tx| tx.document(w.organization, head.document_ref)).expect("a document");
    let made = RenderedFile { bytes: Vec::new(), sha256: Sha256::digest([]).into(), maker: "a test".to_owned() };
    let file = DocumentFile { form: FileForm::Pdf, made, made_at: Timestamp::MIN };
    assert_eq!(write(test, |tx| tx.keep_document_file(head.key(w.organization), &file)).as_ref(), Some(&file));
    let attempts = [
        "UPDATE issued_documents SET content = '{}'",
        "DELETE FROM issued_documents",
        "UPDATE document_lines SET amount_minor = 1",
        "UPDATE document_lines SET frozen = FALSE",
        "DELETE FROM document_lines",
        "UPDATE document_files SET maker = 'another'",
        "DELETE FROM document_files",
    ];
    for sql in attempts {
        let error = test.beside().execute(sql).expect_err(sql).to_string();
        assert!(error.contains("never change"), "{sql}: {error}");
    }
    if !test.is_sqlite() {
        test.beside().execute("TRUNCATE document_files").expect_err("truncated");
        test.beside().execute("TRUNCATE issued_documents CASCADE").expect_err("truncated");
    }
    assert_eq!(read(test, |tx| tx.document_file(head.key(w.organization), FileForm::Pdf)).expect("the file"), Some(file));
    assert_eq!(read(test, |tx| tx.document(w.organization, head.document_ref)).expect("a document"), before);
}

fn a_line_put_beside_those_of_an_issued_document_is_found(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    assert!(issue(test, &w, &head, 1000));
    let copied = "document_id, customer_id, contract_id, product_no, line_item_id, bill_with, billed_period_start, discount_rate, \
                  tax_rate, tax_basis, has_default_tax, usage_product_ref, service_period_start, service_period_end, quantity, amount_minor, frozen";
    let copy = format!("INSERT INTO document_lines (ordinal, {copied}) SELECT ordinal + 1, {copied} FROM document_lines");
    test.beside().execute(&copy).expect("no trigger rejects the insert");
    let found = read(test, |tx| tx.broken_seals(w.organization)).expect("seals are read");
    assert_eq!(found, ["MAIN-INV-1: lines differ from what was issued"]);
    test.beside().execute("DELETE FROM document_lines WHERE ordinal = 1").expect_err("the added line is frozen, too");
}

fn each_hash_is_taken_over_the_one_before(test: &TestDatabase) {
    let w = world(test);
    for (month, minor) in [(1, 100), (2, 200), (3, 300)] {
        let head = w.open(test, month);
        assert!(issue(test, &w, &head, minor));
    }
    let mut previous = vec![0; 32];
    for (position, link) in (1..).zip(chain(test)) {
        assert_eq!((link.chain_position, &link.previous_hash), (position, &previous));
        let hash = Sha256::new().chain_update(&previous).chain_update(&link.content).finalize().to_vec();
        assert_eq!(link.content_hash, hash);
        previous = hash;
    }
    assert_eq!(chain(test).len(), 3);
}

fn an_issue_that_is_rolled_back_leaves_no_link(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    let undone = transact::<(), StoreError>(test, Access::Write, |tx| {
        assert!(tx.issue_document(head.key(w.organization), &w.frozen(&head, 1))?);
        Err(StoreError::Corrupt("not this time".to_owned()))
    });
    assert!(undone.is_err());
    assert!(chain(test).is_empty());
    assert!(issue(test, &w, &head, 2));
    assert_eq!(chain(test).iter().map(|link| link.chain_position).collect::<Vec<_>>(), [1]);
}

fn a_head_changed_behind_our_back_is_found_when_read(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    assert!(issue(test, &w, &head, 1000));
    test.beside().execute("UPDATE documents SET net_terms = '30'").expect("no trigger rejects the update");
    let answer = read(test, |tx| tx.document(w.organization, head.document_ref));
    let Err(StoreError::Corrupt(what)) = answer else { panic!("not found: {answer:?}") };
    assert!(what.contains("it isn't what was issued"), "{what}");
}

fn the_audit_log_is_append_only(test: &TestDatabase) {
    let (id, now) = if test.is_sqlite() { ("x'00'", "0") } else { ("gen_random_uuid()", "now()") };
    let insert = format!(
        "INSERT INTO audit_log (audit_id, organization_id, beside, at, actor, action, subject) VALUES ({id}, {id}, {id}, {now}, 'service', 'a', 'b')"
    );
    test.beside().execute(&insert).expect("an entry");
    for sql in ["UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log"] {
        test.beside().execute(sql).expect_err(sql);
    }
    let listed = read(test, |tx| tx.documents(world(test).organization, &DocumentFilter::default(), crate::rows::all()));
    assert_eq!(listed.expect("a list").total, 0);
    assert!(test.ready().is_ok());
}
