//! Documents as rows: the head, its products and the issued content.

use std::collections::{BTreeSet, HashMap};

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{
    BookDocument, Document, DocumentHead, DocumentKind, DraftContent, Lifecycle, LifecycleStatus, Purpose, Settlement,
};
use billing_domain::money::Money;
use billing_domain::ports::StoreResult;
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::stored;
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::json::{Frozen, StoredDraft, StoredPayment, StoredPaymentRef};
use crate::nested_rows::PartsOfDocument;
use crate::nodes::shards::Nodes;
use crate::row::{Cell, ColumnsOf, Row, columns_of, to_json};
use crate::schema::{documents, issued_documents};
use crate::sql_types::JsonText;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{Columns, InsertRows, checked_column, column};

pub(super) const DRAFT: &str = "DRAFT";
pub(super) const ISSUED: &str = "ISSUED";
pub(super) const VOID: &str = "VOID";
pub(super) const UNCOLLECTIBLE: &str = "UNCOLLECTIBLE";
const REGULAR: &str = "REGULAR";
pub(super) const USAGE: &str = "USAGE";
const ADJUSTMENT: &str = "ADJUSTMENT";

#[derive(Queryable, Selectable)]
#[diesel(table_name = documents)]
pub(super) struct DocumentRow {
    document_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    contract_id: Cell<Uuid>,
    entity_ref: String,
    kind: String,
    number_prefix: String,
    sequence: i64,
    purpose: String,
    slot: Option<String>,
    number_in_contract: i32,
    currency: String,
    period_start: Cell<NaiveDate>,
    period_end: Cell<NaiveDate>,
    is_partial_period: bool,
    net_terms: String,
    payment: JsonText,
    parent_document_id: Option<Cell<Uuid>>,
    replaces_document_id: Option<Cell<Uuid>>,
    family_document_id: Cell<Uuid>,
    created_at: Cell<Timestamp>,
    lifecycle: String,
    issue_date: Option<Cell<NaiveDate>>,
    due_date: Option<Cell<NaiveDate>>,
    total_minor: Option<i64>,
    paid_minor: i64,
    credits_minor: i64,
    used_minor: i64,
    paid_date: Option<Cell<NaiveDate>>,
    updated_at: Cell<Timestamp>,
    notification_count: i64,
}

/// A document with its products.
#[derive(Queryable)]
pub(super) struct WithParts {
    document: DocumentRow,
    parts: Option<JsonText>,
}

/// The issued contents, by document.
type Issued = HashMap<Uuid, Frozen>;
/// The contents of voided drafts, by document.
type Discarded = HashMap<Uuid, DraftContent>;

impl WithParts {
    /// Returns the columns, for documents on these nodes.
    pub(super) fn columns(nodes: &Nodes) -> (ColumnsOf<DocumentRow>, PartsOfDocument) {
        (columns_of::<DocumentRow>(), PartsOfDocument::on(nodes))
    }

    pub(super) fn id(&self) -> StoreResult<Uuid> {
        self.document.id()
    }

    pub(super) fn customer(&self) -> StoreResult<Uuid> {
        self.document.customer()
    }

    /// Returns the number as text, valid or not.
    pub(super) fn number(&self) -> String {
        self.document.number()
    }

    pub(super) fn is_draft(&self) -> bool {
        self.document.is_draft()
    }

    fn parts(&self) -> StoreResult<Vec<ProductNo>> {
        let row = Row::new("document_parts", self.id()?);
        let mut parts: Vec<(i32, i32)> = row.under("product_no", self.parts.as_ref())?;
        parts.sort_unstable();
        parts.into_iter().map(|(_, no)| Ok(ProductNo(row.checked("product_no", u16::try_from(no))?))).collect()
    }

    /// Returns the head of the document, known since it was opened.
    pub(super) fn head(self) -> StoreResult<DocumentHead> {
        let parts = self.parts()?;
        self.document.head(parts)
    }

    /// Returns the document as a contract book has it.
    pub(super) fn read_for_book(self) -> StoreResult<BookDocument> {
        let parts = self.parts()?;
        self.document.read_for_book(parts)
    }
}

impl DocumentRow {
    fn id(&self) -> StoreResult<Uuid> {
        Row::new("documents", "").cell("document_id", self.document_id.clone())
    }

    fn customer(&self) -> StoreResult<Uuid> {
        Row::new("documents", self.id()?).cell("customer_id", self.customer_id.clone())
    }

    fn number(&self) -> String {
        let kind = DocumentKind::parse_text(&self.kind).map_or_else(|| self.kind.clone(), |kind| kind.abbreviation().to_owned());
        format!("{}-{kind}-{}", self.number_prefix, self.sequence)
    }

    fn is_draft(&self) -> bool {
        self.lifecycle == DRAFT
    }

    /// Returns whether the document is a voided draft.
    fn is_discarded(&self) -> bool {
        self.lifecycle == VOID && self.issue_date.is_none()
    }

    fn read(self, parts: Vec<ProductNo>, issued: &mut Issued, discarded: &mut Discarded) -> StoreResult<Document> {
        let id = self.id()?;
        let row = Row::new("documents", id);
        let (frozen_head, issued) = issued.remove(&id).map(|frozen| (frozen.document, Box::new(frozen.issued))).unzip();
        let lifecycle = match (self.lifecycle.as_str(), issued) {
            (DRAFT, None) => Lifecycle::Draft,
            (VOID, Some(issued)) => Lifecycle::Void(issued),
            (VOID, None) if self.is_discarded() => Lifecycle::Discarded(discarded.remove(&id).map(Box::new)),
            (ISSUED, Some(issued)) => Lifecycle::Issued(issued),
            (UNCOLLECTIBLE, Some(issued)) => Lifecycle::Uncollectible(issued),
            (other, issued) => {
                let content = if issued.is_some() { "with" } else { "without" };
                return Err(row.corrupt("lifecycle", format_args!("{other:?} {content} issued content")));
            }
        };
        let (family, settlement, updated_at) = (self.family()?, self.settlement()?, self.updated_at()?);
        let head = self.head(parts)?;
        if frozen_head.is_some_and(|frozen| frozen != head) {
            return Err(row.corrupt("content", "it isn't what was issued"));
        }
        Ok(Document { head, family, lifecycle, settlement, updated_at })
    }

    /// Returns the document as a contract book has it.
    fn read_for_book(self, parts: Vec<ProductNo>) -> StoreResult<BookDocument> {
        let row = Row::new("documents", self.id()?);
        let status = match self.lifecycle.as_str() {
            DRAFT => LifecycleStatus::Draft,
            ISSUED => LifecycleStatus::Issued,
            UNCOLLECTIBLE => LifecycleStatus::Uncollectible,
            VOID if self.is_discarded() => LifecycleStatus::Discarded,
            VOID => LifecycleStatus::Void,
            other => return Err(row.corrupt("lifecycle", format_args!("{other:?} is no lifecycle"))),
        };
        let currency = row.leaf("currency", &self.currency)?;
        let total = match (status, self.total_minor) {
            (LifecycleStatus::Draft | LifecycleStatus::Discarded, _) => None,
            (_, Some(minor)) => Some(Money::from_minor(minor, currency)),
            (_, None) => return Err(row.corrupt("total_minor", "issued without a total")),
        };
        let (family, settlement, updated_at) = (self.family()?, self.settlement()?, self.updated_at()?);
        let (issue_date, due_date) = match total {
            None => (None, None),
            Some(_) => (row.optional("issue_date", self.issue_date.clone())?, row.optional("due_date", self.due_date.clone())?),
        };
        let notifications = row.checked("notification_count", u64::try_from(self.notification_count))?;
        let head = self.head(parts)?;
        Ok(BookDocument { head, family, status, total, issue_date, due_date, settlement, updated_at, notifications })
    }

    fn family(&self) -> StoreResult<DocumentRef> {
        let family = Row::new("documents", self.id()?).cell("family_document_id", self.family_document_id.clone())?;
        Ok(DocumentRef::from_uuid(family))
    }

    fn updated_at(&self) -> StoreResult<Timestamp> {
        Row::new("documents", self.id()?).cell("updated_at", self.updated_at.clone())
    }

    fn settlement(&self) -> StoreResult<Settlement> {
        let row = Row::new("documents", self.id()?);
        let currency = row.leaf("currency", &self.currency)?;
        let paid_date = row.optional("paid_date", self.paid_date.clone())?;
        let money = |minor| Money::from_minor(minor, currency);
        let (paid, credits, used) = (money(self.paid_minor), money(self.credits_minor), money(self.used_minor));
        Ok(Settlement { paid, credits, used, paid_date })
    }

    /// Returns the head of the document, known since it was opened.
    fn head(self, parts: Vec<ProductNo>) -> StoreResult<DocumentHead> {
        let id = self.id()?;
        let row = Row::new("documents", id);
        let kind = row.leaf("kind", &self.kind)?;
        let purpose = match (self.purpose.as_str(), self.slot.as_deref()) {
            (REGULAR, Some(slot)) => Purpose::Regular(row.leaf("slot", slot)?),
            (USAGE, None) => Purpose::Usage,
            (ADJUSTMENT, None) => Purpose::Adjustment,
            (other, slot) => return Err(row.corrupt("purpose", format_args!("{other:?} with slot {slot:?}"))),
        };
        let (start, end) = (row.cell("period_start", self.period_start)?, row.cell("period_end", self.period_end)?);
        let payment: StoredPayment = row.json("payment", &self.payment)?;
        Ok(DocumentHead {
            document_ref: DocumentRef::from_uuid(id),
            number: DocumentNumber {
                prefix: row.leaf("number_prefix", &self.number_prefix)?,
                kind,
                sequence: row.checked("sequence", u64::try_from(self.sequence))?,
            },
            kind,
            purpose,
            contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
            number_in_contract: row.checked("number_in_contract", u32::try_from(self.number_in_contract))?,
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
            currency: row.leaf("currency", &self.currency)?,
            period: Period::new(start, end).ok_or_else(|| row.corrupt("period_end", "a period without a day"))?,
            is_partial_period: self.is_partial_period,
            parts,
            net_terms: row.leaf("net_terms", &self.net_terms)?,
            payment: payment.0,
            parent: row.optional("parent_document_id", self.parent_document_id)?.map(DocumentRef::from_uuid),
            replaces: row.optional("replaces_document_id", self.replaces_document_id)?.map(DocumentRef::from_uuid),
            created_at: row.cell("created_at", self.created_at)?,
        })
    }
}

fn part_columns(parts: &[(&DocumentHead, (usize, &ProductNo))]) -> StoreResult<Columns> {
    Ok(vec![
        ("document_id", column(parts, |(head, _)| head.document_ref.as_uuid())),
        ("customer_id", column(parts, |(head, _)| head.customer_id.as_uuid())),
        ("product_no", column(parts, |(_, (_, product_no))| i32::from(product_no.0))),
        ("position", checked_column(parts, |(_, (position, _))| stored::<i32, _>(*position))?),
        ("contract_id", column(parts, |(head, _)| head.contract_ref.as_uuid())),
        ("period_start", column(parts, |(head, _)| head.period.start())),
        ("slot", column(parts, |(head, _)| slot_of(head.purpose))),
        ("active", column(parts, |_| true)),
    ])
}

fn head_columns(organization: OrganizationId, drafts: &[(&DocumentHead, DocumentRef)], at: Timestamp) -> StoreResult<Columns> {
    Ok(vec![
        ("document_id", column(drafts, |(head, _)| head.document_ref.as_uuid())),
        ("customer_id", column(drafts, |(head, _)| head.customer_id.as_uuid())),
        ("organization_id", column(drafts, |_| organization.as_uuid())),
        ("contract_id", column(drafts, |(head, _)| head.contract_ref.as_uuid())),
        ("entity_ref", column(drafts, |(head, _)| head.entity_ref.as_str())),
        ("kind", column(drafts, |(head, _)| head.kind.to_text())),
        ("number_prefix", column(drafts, |(head, _)| head.number.prefix.as_str())),
        ("sequence", checked_column(drafts, |(head, _)| stored::<i64, _>(head.number.sequence))?),
        ("purpose", column(drafts, |(head, _)| purpose_of(head.purpose))),
        ("slot", column(drafts, |(head, _)| slot_of(head.purpose))),
        ("number_in_contract", checked_column(drafts, |(head, _)| stored::<i32, _>(head.number_in_contract))?),
        ("currency", column(drafts, |(head, _)| head.currency.code())),
        ("period_start", column(drafts, |(head, _)| head.period.start())),
        ("period_end", column(drafts, |(head, _)| head.period.end())),
        ("is_partial_period", column(drafts, |(head, _)| head.is_partial_period)),
        ("net_terms", column(drafts, |(head, _)| head.net_terms.to_text())),
        ("payment", checked_column(drafts, |(head, _)| to_json(&StoredPaymentRef(&head.payment)))?),
        ("parent_document_id", column(drafts, |(head, _)| head.parent.map(|parent| parent.as_uuid()))),
        ("replaces_document_id", column(drafts, |(head, _)| head.replaces.map(|replaced| replaced.as_uuid()))),
        ("family_document_id", column(drafts, |(_, family)| family.as_uuid())),
        ("created_at", column(drafts, |(head, _)| head.created_at)),
        ("updated_at", column(drafts, |_| at)),
        ("lifecycle", column(drafts, |_| DRAFT)),
        ("paid_minor", column(drafts, |_| 0_i64)),
        ("credits_minor", column(drafts, |_| 0_i64)),
        ("used_minor", column(drafts, |_| 0_i64)),
        ("notification_count", column(drafts, |_| 1_i64)),
    ])
}

const fn purpose_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Regular(_) => REGULAR,
        Purpose::Usage => USAGE,
        Purpose::Adjustment => ADJUSTMENT,
    }
}

pub(super) fn slot_of(purpose: Purpose) -> Option<String> {
    match purpose {
        Purpose::Regular(slot) => Some(slot.to_text()),
        Purpose::Usage | Purpose::Adjustment => None,
    }
}

/// Returns the identifiers of documents and their customers.
fn keys_of(documents: &[&DocumentRow]) -> StoreResult<(Vec<Uuid>, BTreeSet<Uuid>)> {
    let ids = documents.iter().map(|row| row.id()).collect::<StoreResult<_>>()?;
    Ok((ids, documents.iter().map(|row| row.customer()).collect::<StoreResult<_>>()?))
}

impl Transaction<'_> {
    /// Reads the contents of documents with one query each for issued documents and voided drafts.
    pub(super) fn with_content(&mut self, rows: Vec<WithParts>) -> StoreResult<Vec<Document>> {
        let (discarded, kept): (Vec<_>, Vec<_>) =
            rows.iter().map(|row| &row.document).filter(|row| !row.is_draft()).partition(|row| row.is_discarded());
        let (mut issued, mut discarded) = (self.issued_of(&kept)?, self.discarded_of(&discarded)?);
        let read = |row: WithParts| {
            let parts = row.parts()?;
            row.document.read(parts, &mut issued, &mut discarded)
        };
        rows.into_iter().map(read).collect()
    }

    fn issued_of(&mut self, documents: &[&DocumentRow]) -> StoreResult<Issued> {
        if documents.is_empty() {
            return Ok(Issued::new());
        }
        let (ids, customers) = keys_of(documents)?;
        let rows: Vec<(Cell<Uuid>, JsonText)> = with_conn!(self, "issued_documents", |conn| issued_documents::table
            .filter(one_of_ids(issued_documents::document_id, ids))
            .filter(also_one_of_ids(issued_documents::customer_id, customers))
            .select((issued_documents::document_id, issued_documents::content))
            .load(conn))?;
        let read = |(id, content): (Cell<Uuid>, JsonText)| {
            let row = Row::new("issued_documents", id.clone());
            let frozen: Frozen = row.json("content", &content)?;
            Ok((row.cell("document_id", id)?, frozen))
        };
        rows.into_iter().map(read).collect()
    }

    fn discarded_of(&mut self, rows: &[&DocumentRow]) -> StoreResult<Discarded> {
        if rows.is_empty() {
            return Ok(Discarded::new());
        }
        let (ids, customers) = keys_of(rows)?;
        let rows: Vec<(Cell<Uuid>, Option<JsonText>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, ids))
            .filter(also_one_of_ids(documents::customer_id, customers))
            .filter(documents::discarded_content.is_not_null())
            .select((documents::document_id, documents::discarded_content))
            .load(conn))?;
        let mut discarded = Discarded::new();
        for (id, content) in rows {
            let row = Row::new("documents", id.clone());
            if let Some(content) = content {
                discarded.insert(row.cell("document_id", id)?, row.json::<StoredDraft>("discarded_content", &content)?.0);
            }
        }
        Ok(discarded)
    }

    /// Inserts the products of documents into their billing slots. An occupied slot is rejected without a database
    /// error, which would abort the transaction on PostgreSQL.
    pub(super) fn insert_parts<'h>(&mut self, heads: impl IntoIterator<Item = &'h DocumentHead>) -> StoreResult<()> {
        let mut parts = Vec::new();
        let mut refs = Vec::new();
        for head in heads {
            parts.extend(head.parts.iter().enumerate().map(|part| (head, part)));
            refs.push(head.document_ref.to_string());
        }
        if self.insert_rows(InsertRows::new("document_parts", part_columns(&parts)?))? < parts.len() {
            let refs = refs.join(", ");
            return self.refuse(format!("documents {refs}: a product has a document in force for a period already"));
        }
        Ok(())
    }

    /// Inserts drafts, each into its family.
    pub(super) fn insert_heads(
        &mut self,
        organization: OrganizationId,
        drafts: &[(&DocumentHead, DocumentRef)],
        at: Timestamp,
    ) -> StoreResult<()> {
        let insert = InsertRows::new("documents", head_columns(organization, drafts, at)?);
        let insert = if self.is_spread {
            insert.with("po_number", "j.po_number").joining("contracts j ON j.contract_id = n.contract_id")
        } else {
            insert.with(
                "po_number",
                "(SELECT c.po_number FROM contracts c WHERE c.contract_id = {contract_id} AND c.customer_id = {customer_id})",
            )
        };
        if self.insert_rows(insert)? < drafts.len() {
            return self.refuse("documents: one with its number is there already".to_owned());
        }
        Ok(())
    }
}
