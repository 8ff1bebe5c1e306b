//! `verify` finds tampered tables and reports nothing otherwise.

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentHead;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::ports::{Lock, StoreError};
use sha2::{Digest as _, Sha256};

use crate::rows::{World, world};
use crate::support::{TestDatabase, on_one_server, read, write};
use billing_testkit::Singly as _;

on_one_server!(
    a_row_changed_behind_our_back_breaks_a_seal,
    an_issued_document_removed_behind_our_back_is_missed,
    a_series_that_was_not_counted_is_broken,
    a_number_of_several_documents_is_reported,
    more_documents_than_a_page_have_their_seals,
    a_file_changed_behind_our_back_is_named_and_not_handed_out,
);

fn issue(test: &TestDatabase, w: &World, month: u32, minor: i64) -> DocumentHead {
    let head = w.open(test, month);
    write(test, |tx| {
        tx.lock_contract(head.contract_key(w.organization), Lock::Exclusive)?;
        assert!(tx.issue_document(head.key(w.organization), &w.frozen(&head, minor))?);
        Ok(())
    });
    head
}

/// Drops the triggers that prevent accidental changes.
fn drop_triggers(test: &TestDatabase) {
    let names: &[&str] = if test.is_sqlite() {
        &[
            "issued_documents_frozen_update",
            "issued_documents_frozen_delete",
            "document_lines_frozen_update",
            "document_lines_frozen_delete",
        ]
    } else {
        &["issued_documents_frozen ON issued_documents", "document_lines_frozen ON document_lines"]
    };
    for name in names {
        test.beside().execute(&format!("DROP TRIGGER {name}")).expect(name);
    }
}

fn broken_seals(test: &TestDatabase, w: &World) -> Vec<String> {
    read(test, |tx| tx.broken_seals(w.organization)).expect("seals are read")
}

/// Replaces a word in the content of the second document.
fn rewrite(from: &str, to: &str) -> String {
    format!("issued_documents SET content = replace(content, '{from}', '{to}') WHERE chain_position = 2")
}

fn a_row_changed_behind_our_back_breaks_a_seal(test: &TestDatabase) {
    let w = world(test);
    for (month, minor) in [(1, 100), (2, 200), (3, 300)] {
        issue(test, &w, month, minor);
    }
    drop_triggers(test);
    assert_eq!(broken_seals(test, &w), [""; 0]);
    let second = "WHERE document_id = (SELECT document_id FROM documents WHERE sequence = 2)";
    let of = |change: &str| format!("{change} {second}");
    // Moves the first byte to the end, which changes any hash.
    let flipped = if test.is_sqlite() {
        "unhex(substr(hex(@), 3) || substr(hex(@), 1, 2))"
    } else {
        "decode(substr(encode(@, 'hex'), 3) || substr(encode(@, 'hex'), 1, 2), 'hex')"
    };
    let flip = |column: &str| format!("{column} = {}", flipped.replace('@', column));
    let rows: [(String, &str, &[&str]); 19] = [
        (rewrite("Base fee", "Base fei"), "MAIN-INV-2", &["its content doesn't have its hash"]),
        (rewrite("2.00", "2.01"), "MAIN-INV-2", &["its content doesn't have its hash", "total, lines differ"]),
        (rewrite("document_ref", "ref"), "MAIN-INV-2", &["its content doesn't have its hash", "content:"]),
        (of(&format!("issued_documents SET {}", flip("content_hash"))), "MAIN-INV-2", &["its content doesn't have its hash"]),
        (
            of(&format!("issued_documents SET {}", flip("content_hash"))),
            "MAIN-INV-3",
            &["isn't chained to the document issued before"],
        ),
        (of("issued_documents SET chain_position = 7"), "MAIN-INV-2", &["it is number 7 in its chain, after number 3"]),
        (of("documents SET total_minor = 201"), "MAIN-INV-2", &["total differ from what was issued"]),
        (of("documents SET due_date = due_date + 1"), "MAIN-INV-2", &["due date differ"]),
        (of("documents SET lifecycle = 'DRAFT', net_terms = '30'"), "MAIN-INV-2", &["state, net terms differ"]),
        (of("documents SET sequence = 9"), "MAIN-INV-9", &["number differ"]),
        (of("documents SET currency = 'nonsense'"), "MAIN-INV-2", &["currency:", "differ from what was issued"]),
        (of("document_parts SET product_no = 7"), "MAIN-INV-2", &["products differ"]),
        (of("document_lines SET amount_minor = 201"), "MAIN-INV-2", &["lines differ"]),
        (of("document_lines SET frozen = FALSE"), "MAIN-INV-2", &["frozen lines differ"]),
        (of("document_lines SET tax_rate = '7'"), "MAIN-INV-2", &["lines differ"]),
        (of("document_lines SET bill_with = 'USAGE'"), "MAIN-INV-2", &["lines differ"]),
        (of("document_lines SET has_default_tax = NOT has_default_tax"), "MAIN-INV-2", &["lines differ"]),
        (
            "number_series SET chain_length = 4 WHERE kind = 'INVOICE'".to_owned(),
            "INVOICE",
            &["ends at 3, and its series counts 4"],
        ),
        (format!("number_series SET {} WHERE kind = 'INVOICE'", flip("chain_head")), "INVOICE", &["doesn't end with the hash"]),
    ];
    for (change, name, what) in rows {
        let table = change.split(' ').next().expect("a table");
        let mut beside = test.beside();
        beside.execute(&format!("CREATE TABLE kept AS SELECT * FROM {table}")).expect("a copy");
        beside.execute(&format!("UPDATE {change}")).expect(&change);
        let found = broken_seals(test, &w);
        for what in what {
            assert!(found.iter().any(|sentence| sentence.contains(name) && sentence.contains(what)), "{change}: {found:?}");
        }
        put_back(test, table);
        assert_eq!(broken_seals(test, &w), [""; 0], "{change}");
    }
}

fn a_number_of_several_documents_is_reported(test: &TestDatabase) {
    let w = world(test);
    for month in 1..=3 {
        w.open(test, month);
    }
    let mut beside = test.beside();
    let change = "UPDATE documents SET sequence = 1 WHERE sequence = 2";
    beside.execute(change).expect_err("a number is unique");
    beside.execute(&format!("DROP INDEX documents_numbers; {change}")).expect("no unique index");
    let broken = read(test, |tx| tx.broken_series(w.organization)).expect("series are read");
    assert!(broken.contains(&"the number MAIN-INV-1 is on 2 documents".to_owned()), "{broken:?}");
    assert!(!broken.iter().any(|sentence| sentence.contains("MAIN-INV-3")), "{broken:?}");
}

/// Returns the columns of a table that can be written.
fn columns_written(test: &TestDatabase, table: &str) -> String {
    let sql = if test.is_sqlite() {
        format!("SELECT group_concat(name) AS text FROM pragma_table_xinfo('{table}') WHERE hidden = 0")
    } else {
        format!(
            "SELECT string_agg(column_name, ',') AS text FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = '{table}' AND is_generated = 'NEVER'"
        )
    };
    test.beside().text(&sql)
}

/// Restores the copied rows of a table.
fn put_back(test: &TestDatabase, table: &str) {
    // Suspends foreign keys, because other rows refer to the deleted rows.
    let (before, after) = if test.is_sqlite() {
        ("PRAGMA foreign_keys = OFF; BEGIN", "COMMIT")
    } else {
        ("BEGIN; SET LOCAL session_replication_role = replica", "COMMIT")
    };
    // Generated columns cannot be written.
    let columns = columns_written(test, table);
    let sql = format!(
        "{before}; DELETE FROM {table}; INSERT INTO {table} ({columns}) SELECT {columns} FROM kept; DROP TABLE kept; {after}"
    );
    test.beside().execute(&sql).expect("the restored rows");
}

fn an_issued_document_removed_behind_our_back_is_missed(test: &TestDatabase) {
    let w = world(test);
    for month in 1..=3 {
        issue(test, &w, month, 100);
    }
    drop_triggers(test);
    test.beside().execute("DELETE FROM issued_documents WHERE chain_position = 2").expect("no trigger rejects the change");
    let found = broken_seals(test, &w);
    for what in ["MAIN-INV-2: it was issued, but what it said is gone", "MAIN-INV-3: it is number 3 in its chain, after number 1"]
    {
        assert!(found.iter().any(|sentence| sentence == what), "{what}: {found:?}");
    }
    test.beside().execute("DELETE FROM issued_documents; DELETE FROM number_series").expect("no trigger rejects the change");
    let found = broken_seals(test, &w);
    assert_eq!(found.iter().filter(|sentence| sentence.ends_with("what it said is gone")).count(), 3, "{found:?}");
}

fn a_series_that_was_not_counted_is_broken(test: &TestDatabase) {
    let w = world(test);
    for month in 1..=3 {
        w.open(test, month);
    }
    let broken = || read(test, |tx| tx.broken_series(w.organization)).expect("series are read");
    assert_eq!(broken(), [""; 0]);
    let rows = [
        ("number_series SET last = @ WHERE kind = 'INVOICE'", "4", "3", "the series INVOICE of entity main"),
        ("documents SET sequence = @ WHERE number_in_contract = 2", "7", "2", "3 documents with 3 different numbers from 1 to 7"),
        ("documents SET sequence = @ WHERE number_in_contract = 1", "0", "1", "numbers from 0 to 3"),
        ("contracts SET documents_opened = @", "4", "3", "the documents of contract C-1"),
        ("documents SET number_in_contract = @ WHERE sequence = 3", "7", "3", "the documents of contract C-1"),
    ];
    for (change, wrong, right, what) in rows {
        test.beside().execute(&format!("UPDATE {}", change.replace('@', wrong))).expect(change);
        let found = broken();
        assert!(matches!(&found[..], [sentence] if sentence.contains(what)), "{change}: {found:?}");
        test.beside().execute(&format!("UPDATE {}", change.replace('@', right))).expect(change);
        assert_eq!(broken(), [""; 0]);
    }
    test.beside().execute("DELETE FROM number_series WHERE kind = 'INVOICE'").expect("no trigger rejects the change");
    assert_eq!(broken().len(), 1);
}

fn more_documents_than_a_page_have_their_seals(test: &TestDatabase) {
    let w = world(test);
    write(test, |tx| {
        for n in 0..250 {
            let mut head = w.head(1);
            tx.lock_contract(head.contract_key(w.organization), Lock::Exclusive)?;
            head.purpose = billing_domain::document::Purpose::Usage;
            head.number.sequence = tx.take_document_numbers(w.organization, &head.entity_ref, head.kind, 1)?;
            head.number_in_contract = tx.take_numbers_in_contract(head.contract_key(w.organization), 1)?;
            tx.open_document(w.organization, &head, head.document_ref)?;
            assert!(tx.issue_document(head.key(w.organization), &w.frozen(&head, n))?);
        }
        Ok(())
    });
    assert_eq!(broken_seals(test, &w), [""; 0]);
    drop_triggers(test);
    // A duplicate chain position at the end of a page.
    test.beside()
        .execute("UPDATE issued_documents SET chain_position = 100 WHERE chain_position IN (99, 101)")
        .expect("no trigger rejects the change");
    let found = broken_seals(test, &w);
    let places = found.iter().filter(|sentence| sentence.contains("in its chain, after number")).count();
    assert_eq!(places, 4, "{found:?}");
}

fn pdf_of(head: &DocumentHead) -> DocumentFile {
    let bytes = head.document_ref.to_string().into_bytes();
    let made = RenderedFile { sha256: Sha256::digest(&bytes).into(), bytes, maker: "a test".to_owned() };
    DocumentFile { form: FileForm::Pdf, made, made_at: Timestamp::MIN }
}

fn a_file_changed_behind_our_back_is_named_and_not_handed_out(test: &TestDatabase) {
    let w = world(test);
    // More files than are read at once.
    let heads: Vec<DocumentHead> = (1..=55)
        .map(|n| {
            let mut head = w.head(1);
            head.purpose = billing_domain::document::Purpose::Usage;
            write(test, |tx| {
                tx.lock_contract(head.contract_key(w.organization), Lock::Exclusive)?;
                head.number.sequence = tx.take_document_numbers(w.organization, &head.entity_ref, head.kind, 1)?;
                head.number_in_contract = tx.take_numbers_in_contract(head.contract_key(w.organization), 1)?;
                tx.open_document(w.organization, &head, head.document_ref)?;
                assert!(tx.issue_document(head.key(w.organization), &w.frozen(&head, n))?);
                for form in [FileForm::Pdf, FileForm::Cii] {
                    tx.keep_document_file(head.key(w.organization), &DocumentFile { form, ..pdf_of(&head) })?;
                }
                Ok(())
            });
            head
        })
        .collect();
    let broken = || read(test, |tx| tx.broken_files(w.organization)).expect("files are read");
    assert_eq!(broken(), [""; 0]);
    let dropped: &[&str] =
        if test.is_sqlite() { &["document_files_frozen_update"] } else { &["document_files_frozen ON document_files"] };
    for name in dropped {
        test.beside().execute(&format!("DROP TRIGGER {name}")).expect(name);
    }
    let changes = [(0, "bytes", FileForm::Pdf, "PDF"), (30, "sha256", FileForm::Cii, "CII"), (54, "bytes", FileForm::Cii, "CII")];
    let mut named = Vec::new();
    for (n, column, form, word) in changes {
        let document_ref = heads[n].document_ref;
        let id = if test.is_sqlite() { format!("x'{}'", document_ref.as_uuid().simple()) } else { format!("'{document_ref}'") };
        let zero = if test.is_sqlite() { "x'00'" } else { "'\\x00'" };
        let sql = format!("UPDATE document_files SET {column} = {zero} WHERE document_id = {id} AND file = '{word}'");
        test.beside().execute(&sql).expect("no trigger rejects the change");
        named.push(format!("document {document_ref}: its file {word} doesn't have its hash"));
        let answer = read(test, |tx| tx.document_file(heads[n].key(w.organization), form));
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    }
    let mut found = broken();
    found.sort();
    named.sort();
    assert_eq!(found, named);
    let whole = heads[1].key(w.organization);
    assert_eq!(read(test, |tx| tx.document_file(whole, FileForm::Pdf)).expect("an unchanged file"), Some(pdf_of(&heads[1])));
}
