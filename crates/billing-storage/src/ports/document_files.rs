//! Stored files of issued documents.

use billing_domain::calendar::Timestamp;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::ports::{DocumentFiles, StoreResult};
use billing_domain::refs::{DocumentKey, OrganizationId};
use diesel::prelude::*;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::row::{Cell, Row};
use crate::schema::{document_files, issued_documents};
use crate::sql_types::Bound;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

/// Files read per query.
const FILES_PER_PAGE: i64 = 50;

#[derive(Queryable, Selectable)]
#[diesel(table_name = document_files)]
struct FileRow {
    file: String,
    bytes: Vec<u8>,
    sha256: Vec<u8>,
    maker: String,
    made_at: Cell<Timestamp>,
}

impl FileRow {
    fn has_its_hash(&self) -> bool {
        Sha256::digest(&self.bytes).as_slice() == self.sha256
    }

    /// Checks the hash: a file that was changed outside the program is never returned.
    fn read(self, key: DocumentKey) -> StoreResult<DocumentFile> {
        let row = Row::new("document_files", key.document);
        if !self.has_its_hash() {
            return Err(row.corrupt("sha256", "isn't that of the bytes"));
        }
        let sha256 = self.sha256.try_into().map_err(|_| row.corrupt("sha256", "hasn't 32 bytes"))?;
        Ok(DocumentFile {
            form: row.leaf("file", &self.file)?,
            made: RenderedFile { bytes: self.bytes, sha256, maker: self.maker },
            made_at: row.cell("made_at", self.made_at)?,
        })
    }
}

impl DocumentFiles for Transaction<'_> {
    fn document_file(&mut self, key: DocumentKey, form: FileForm) -> StoreResult<Option<DocumentFile>> {
        let found: Option<FileRow> = with_conn!(self, "document_files", |conn| document_files::table
            .inner_join(
                issued_documents::table.on(issued_documents::document_id
                    .eq(document_files::document_id)
                    .and(issued_documents::customer_id.eq(document_files::customer_id)))
            )
            .filter(document_files::document_id.eq(Bound(key.document.as_uuid())))
            .filter(document_files::customer_id.eq(Bound(key.customer.as_uuid())))
            .filter(document_files::file.eq(form.to_text()))
            .filter(issued_documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .select(FileRow::as_select())
            .first(conn)
            .optional())?;
        found.map(|row| row.read(key)).transpose()
    }

    fn keep_document_file(&mut self, key: DocumentKey, file: &DocumentFile) -> StoreResult<Option<DocumentFile>> {
        let own = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let is_issued: i64 = with_conn!(self, "issued_documents", |conn| issued_documents::table
            .filter(issued_documents::document_id.eq(own.0))
            .filter(issued_documents::customer_id.eq(own.1))
            .filter(issued_documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .count()
            .get_result(conn))?;
        if is_issued == 0 {
            return Ok(None);
        }
        let inserted = with_conn!(self, "document_files", |conn| diesel::insert_into(document_files::table)
            .values((
                document_files::document_id.eq(own.0),
                document_files::customer_id.eq(own.1),
                document_files::file.eq(file.form.to_text()),
                document_files::bytes.eq(&file.made.bytes),
                document_files::sha256.eq(file.made.sha256.as_slice()),
                document_files::maker.eq(&file.made.maker),
                document_files::made_at.eq(Bound(file.made_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 { Ok(Some(file.clone())) } else { self.document_file(key, file.form) }
    }
}

impl Transaction<'_> {
    /// Reads every file page by page and returns the files whose hash is wrong.
    pub(super) fn files_without_their_hash(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let mut broken = Vec::new();
        let mut after = (Uuid::nil(), String::new());
        loop {
            let page: Vec<(Cell<Uuid>, FileRow)> = with_conn!(self, "document_files", |conn| document_files::table
                .inner_join(
                    issued_documents::table.on(issued_documents::document_id
                        .eq(document_files::document_id)
                        .and(issued_documents::customer_id.eq(document_files::customer_id)))
                )
                .filter(issued_documents::organization_id.eq(Bound(organization.as_uuid())))
                .filter(document_files::document_id.ge(Bound(after.0)))
                .filter(document_files::document_id.gt(Bound(after.0)).or(document_files::file.gt(&after.1)))
                .order((document_files::document_id, document_files::file))
                .limit(FILES_PER_PAGE)
                .select((document_files::document_id, FileRow::as_select()))
                .load(conn))?;
            if page.is_empty() {
                return Ok(broken);
            }
            for (id, row) in page {
                let id = Row::new("document_files", "").cell("document_id", id)?;
                if !row.has_its_hash() {
                    broken.push(format!("document {id}: its file {} doesn't have its hash", row.file));
                }
                after = (id, row.file);
            }
        }
    }
}
