//! Files of issued documents.

use std::sync::Barrier;
use std::thread;

use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::ports::{IdSource as _, Store};
use billing_domain::refs::{CustomerId, DocumentKey};

use super::corrections::void_issued;
use super::{later, read, world, write};
use crate::FreshIds;
use crate::fixtures::{self, cents};

fn file(form: FileForm, text: &[u8], sha256: [u8; 32], seconds: i64) -> DocumentFile {
    let made = RenderedFile { bytes: text.to_vec(), sha256, maker: "a test 1".to_owned() };
    DocumentFile { form, made, made_at: later(seconds) }
}

fn pdf(seconds: i64) -> DocumentFile {
    file(FileForm::Pdf, b"%PDF\0\xff", PDF_HASH, seconds)
}

/// The SHA-256 digests of the file contents. Stores may verify them.
const PDF_HASH: [u8; 32] = [
    0x28, 0xa1, 0x1d, 0x2f, 0x75, 0xc7, 0xfe, 0x40, 0xf1, 0xe5, 0x2f, 0x08, 0x1d, 0x32, 0x6f, 0x2f, 0xfb, 0xf4, 0x78, 0x46, 0x87,
    0x7d, 0xac, 0xad, 0x97, 0xd8, 0x6b, 0x61, 0x55, 0x66, 0x4f, 0x62,
];
const EMPTY_HASH: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64,
    0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

pub fn the_first_file_of_a_document_in_a_form_stays(store: &dyn Store) {
    let w = world(store);
    let head = w.issue(store, w.head(1), cents(100));
    let other = w.issue(store, w.head(2), cents(100));
    let (key, other) = (head.key(w.org), other.key(w.org));
    let kept = |key: DocumentKey, form| read(store, |tx| tx.document_file(key, form));
    assert_eq!(kept(key, FileForm::Pdf), None);
    let (first, late) = (pdf(1), file(FileForm::Pdf, b"", EMPTY_HASH, 2));
    assert_eq!(write(store, |tx| tx.keep_document_file(key, &first)), Some(first.clone()));
    assert_eq!(write(store, |tx| tx.keep_document_file(key, &late)), Some(first.clone()), "the one that stays");
    assert_eq!(kept(key, FileForm::Pdf), Some(first.clone()));
    assert_eq!((kept(key, FileForm::Ubl), kept(key, FileForm::Cii), kept(other, FileForm::Pdf)), (None, None, None));
    // Other forms and other documents have their own files. A file may be empty.
    let ubl = file(FileForm::Ubl, b"", EMPTY_HASH, 3);
    write(store, |tx| {
        assert_eq!(tx.keep_document_file(key, &ubl)?, Some(ubl.clone()));
        assert_eq!(tx.keep_document_file(other, &late)?, Some(late.clone()));
        Ok(())
    });
    assert_eq!((kept(key, FileForm::Ubl), kept(other, FileForm::Pdf)), (Some(ubl), Some(late)));
    assert_eq!(kept(key, FileForm::Pdf), Some(first.clone()));
    assert_eq!(read(store, |tx| tx.broken_files(w.org)), [""; 0]);
    // A void document keeps its files.
    assert!(void_issued(store, &w, &head));
    assert_eq!(kept(key, FileForm::Pdf), Some(first));
}

pub fn only_issued_documents_of_the_key_have_files(store: &dyn Store) {
    let w = world(store);
    let (issued, draft) = (w.issue(store, w.head(1), cents(100)), w.open(store, w.head(2)));
    let key = issued.key(w.org);
    let stranger = fixtures::organization(&FreshIds);
    let another = CustomerId::from_uuid(FreshIds.new_id());
    let elsewhere =
        [draft.key(w.org), DocumentKey { organization: stranger.id, ..key }, DocumentKey { customer: another, ..key }];
    for key in elsewhere {
        assert_eq!(write(store, |tx| tx.keep_document_file(key, &pdf(1))), None);
    }
    write(store, |tx| tx.keep_document_file(key, &pdf(2)));
    for key in elsewhere {
        assert_eq!(read(store, |tx| tx.document_file(key, FileForm::Pdf)), None);
        assert_eq!(write(store, |tx| tx.keep_document_file(key, &pdf(3))), None);
    }
    assert_eq!(read(store, |tx| tx.document_file(key, FileForm::Pdf)), Some(pdf(2)));
}

pub fn of_files_made_at_once_one_stays(store: &dyn Store) {
    let w = world(store);
    let key = w.issue(store, w.head(1), cents(100)).key(w.org);
    let start = Barrier::new(4);
    let kept: Vec<Option<DocumentFile>> = thread::scope(|scope| {
        let keep = |seconds: i64| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                write(store, |tx| tx.keep_document_file(key, &pdf(seconds)))
            })
        };
        let threads: Vec<_> = (0..4).map(keep).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let stays = read(store, |tx| tx.document_file(key, FileForm::Pdf));
    assert!(stays.is_some() && kept.iter().all(|kept| *kept == stays), "{kept:?} {stays:?}");
}
