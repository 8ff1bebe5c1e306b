//! Checks that issued documents are unchanged: their hashes, the chain of their series, and the columns that repeat
//! their content. A difference is a finding, not an error.

use std::collections::{BTreeMap, HashMap};

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentHead;
use billing_domain::document::lines::LedgerLine;
use billing_domain::ports::{StoreError, StoreResult};
use billing_domain::refs::OrganizationId;
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::WithParts;
use super::issue::chained;
use super::ledger::LineRow;
use super::numbers::{CHAIN_START, CONTRACT_KIND};
use crate::json::{Frozen, StoredConvertedTax};
use crate::nodes::shards::Nodes;
use crate::row::{Cell, Row};
use crate::schema::{documents, issued_documents, number_series};
use crate::sql_types::{Bound, JsonText};
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

/// Documents per query; each can have thousands of lines.
const SEALS_PER_PAGE: usize = 100;

/// The seal, and the columns of the document that repeat the sealed content.
#[derive(Queryable, Selectable)]
#[diesel(table_name = issued_documents)]
struct SealRow {
    document_id: Cell<Uuid>,
    chain_position: i64,
    previous_hash: Vec<u8>,
    content_hash: Vec<u8>,
    content: JsonText,
    issued_at: Cell<Timestamp>,
}
type Repeated = (Option<Cell<NaiveDate>>, Option<Cell<NaiveDate>>, Option<i64>, Option<JsonText>);
type Sealed = (SealRow, WithParts, Repeated);

/// The documents of one kind of an entity, and the state of their chain in the number series.
struct Series {
    entity_ref: String,
    kind: String,
    length: i64,
    head: Vec<u8>,
}

/// The end of the chain so far.
struct Chain {
    length: i64,
    head: Vec<u8>,
}

impl Transaction<'_> {
    /// Checks the chain of each series.
    pub(super) fn broken_chains(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let mut broken = Vec::new();
        for series in self.chained_series(organization)? {
            let mut chain = Chain { length: 0, head: CHAIN_START.to_vec() };
            let mut after = (0, Uuid::nil());
            loop {
                let page = self.sealed_after(organization, &series, after)?;
                let Some((last, _, _)) = page.last() else { break };
                let last_id = Row::new("issued_documents", "").cell("document_id", last.document_id.clone())?;
                after = (last.chain_position, last_id);
                self.check_page(&series, page, &mut chain, &mut broken)?;
            }
            let Series { entity_ref, kind, length, head } = series;
            if chain.length != length {
                broken.push(format!(
                    "the chain of {kind} of entity {entity_ref} ends at {}, and its series counts {length}",
                    chain.length
                ));
            } else if chain.head != head {
                broken.push(format!("the chain of {kind} of entity {entity_ref} doesn't end with the hash its series has"));
            }
        }
        Ok(broken)
    }

    /// Returns issued documents without a seal.
    pub(super) fn unsealed_documents(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let rows: Vec<WithParts> = with_conn!(self, "documents", |conn| documents::table
            .left_join(
                issued_documents::table.on(issued_documents::document_id
                    .eq(documents::document_id)
                    .and(issued_documents::customer_id.eq(documents::customer_id)))
            )
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::issue_date.is_not_null())
            .filter(issued_documents::document_id.nullable().is_null())
            .order((documents::created_at, documents::document_id))
            .select(WithParts::columns(&Nodes::default()))
            .load(conn))?;
        Ok(rows.iter().map(|row| format!("{}: it was issued, but what it said is gone", row.number())).collect())
    }

    /// Returns every series that has or should have a chain.
    fn chained_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<Series>> {
        let chains: Vec<(String, String)> = with_conn!(self, "issued_documents", |conn| issued_documents::table
            .filter(issued_documents::organization_id.eq(Bound(organization.as_uuid())))
            .select((issued_documents::entity_ref, issued_documents::kind))
            .distinct()
            .load(conn))?;
        let counted: Vec<(String, String, i64, Vec<u8>)> = with_conn!(self, "number_series", |conn| number_series::table
            .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
            .filter(number_series::kind.ne(CONTRACT_KIND))
            .select((number_series::entity_ref, number_series::kind, number_series::chain_length, number_series::chain_head))
            .load(conn))?;
        let mut series: BTreeMap<(String, String), (i64, Vec<u8>)> =
            chains.into_iter().map(|key| (key, (0, CHAIN_START.to_vec()))).collect();
        series.extend(counted.into_iter().map(|(entity_ref, kind, length, head)| ((entity_ref, kind), (length, head))));
        let of = |((entity_ref, kind), (length, head))| Series { entity_ref, kind, length, head };
        Ok(series.into_iter().map(of).collect())
    }

    /// Returns the next documents of a series in chain order. A manipulated chain can contain a position twice.
    fn sealed_after(
        &mut self,
        organization: OrganizationId,
        series: &Series,
        (position, document_id): (i64, Uuid),
    ) -> StoreResult<Vec<Sealed>> {
        let limit = i64::try_from(SEALS_PER_PAGE).unwrap_or(i64::MAX);
        with_conn!(self, "issued_documents", |conn| issued_documents::table
            .inner_join(
                documents::table.on(documents::document_id
                    .eq(issued_documents::document_id)
                    .and(documents::customer_id.eq(issued_documents::customer_id)))
            )
            .filter(issued_documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(issued_documents::entity_ref.eq(&series.entity_ref))
            .filter(issued_documents::kind.eq(&series.kind))
            .filter(issued_documents::chain_position.ge(position))
            .filter(issued_documents::chain_position.gt(position).or(issued_documents::document_id.gt(Bound(document_id))))
            .order((issued_documents::chain_position, issued_documents::document_id))
            .limit(limit)
            .select((
                SealRow::as_select(),
                WithParts::columns(&Nodes::default()),
                (documents::issue_date, documents::due_date, documents::total_minor, documents::converted_tax),
            ))
            .load(conn))
    }

    fn check_page(&mut self, series: &Series, page: Vec<Sealed>, chain: &mut Chain, broken: &mut Vec<String>) -> StoreResult<()> {
        let ids: Vec<Uuid> = page.iter().map(|(_, document, _)| document.id()).collect::<StoreResult<_>>()?;
        let customers = page.iter().map(|(_, document, _)| document.customer()).collect::<StoreResult<_>>()?;
        let mut lines: HashMap<Uuid, Vec<LineRow>> = HashMap::new();
        for line in self.line_rows(customers, &ids)? {
            lines.entry(line.document_id()?).or_default().push(line);
        }
        for (id, (seal, document, repeated)) in ids.into_iter().zip(page) {
            let number = document.number();
            let mut find = |what: String| broken.push(format!("{number}: {what}"));
            seal.check_link(chain, &mut find);
            match Row::new("issued_documents", id).json::<Frozen>("content", &seal.content) {
                Ok(stated) => {
                    let kept = SealedColumns { series, lines: lines.remove(&id).unwrap_or_default(), repeated };
                    let different = kept.differs_from(&seal, document, &stated)?;
                    if !different.is_empty() {
                        find(format!("{} differ from what was issued", different.join(", ")));
                    }
                }
                Err(error) => find(why(error)?),
            }
        }
        Ok(())
    }
}

impl SealRow {
    /// Checks the hash, and the link to the previous document.
    fn check_link(&self, chain: &mut Chain, find: &mut impl FnMut(String)) {
        if self.chain_position != chain.length + 1 {
            find(format!("it is number {} in its chain, after number {}", self.chain_position, chain.length));
        }
        if self.previous_hash != chain.head {
            find("its hash isn't chained to the document issued before it".to_owned());
        }
        if chained(&self.previous_hash, &self.content).as_slice() != self.content_hash {
            find("its content doesn't have its hash".to_owned());
        }
        *chain = Chain { length: self.chain_position, head: self.content_hash.clone() };
    }
}

/// The document data that the tables contain beside the content.
struct SealedColumns<'a> {
    series: &'a Series,
    lines: Vec<LineRow>,
    repeated: Repeated,
}

impl SealedColumns<'_> {
    /// Returns the fields that differ from the content.
    fn differs_from(self, seal: &SealRow, document: WithParts, stated: &Frozen) -> StoreResult<Vec<String>> {
        let row = Row::new("documents", stated.document.document_ref);
        let (issue_date, due_date, total, converted_tax) = self.repeated;
        let converted_tax =
            converted_tax.as_ref().map(|text| row.json::<StoredConvertedTax>("converted_tax", text)).transpose()?;
        let issued = &stated.issued;
        let of_series =
            stated.document.entity_ref.as_str() == self.series.entity_ref && stated.document.kind.to_text() == self.series.kind;
        let repeated = [
            ("state", !document.is_draft()),
            ("series", of_series),
            ("issue date", row.optional("issue_date", issue_date)? == Some(issued.issue_date)),
            ("due date", row.optional("due_date", due_date)? == Some(issued.due_date)),
            ("total", total == Some(issued.content.total.minor())),
            ("converted tax", converted_tax.map(|stored| stored.0) == issued.converted_tax()),
            ("instant of issue", row.cell("issued_at", seal.issued_at.clone())? == issued.issued_at),
        ];
        let mut different: Vec<String> =
            repeated.into_iter().filter(|(_, same)| !same).map(|(what, _)| what.to_owned()).collect();
        match document.head() {
            Ok(head) => different.extend(differing(&head, &stated.document).map(str::to_owned)),
            Err(error) => different.push(why(error)?),
        }
        if !self.lines.iter().all(LineRow::is_frozen) {
            different.push("frozen lines".to_owned());
        }
        let currency = stated.document.currency;
        let lines = self.lines.into_iter().map(|line| Ok(line.read(currency)?.1)).collect::<StoreResult<Vec<LedgerLine>>>();
        match lines {
            Ok(lines) if lines == issued.content.ledger_lines() => {}
            Ok(_) => different.push("lines".to_owned()),
            Err(error) => different.push(why(error)?),
        }
        Ok(different)
    }
}

/// Returns a finding for an unreadable row. An unreachable database is an error.
fn why(error: StoreError) -> StoreResult<String> {
    match error {
        StoreError::Corrupt(what) => Ok(what),
        StoreError::Unavailable(_) | StoreError::Contended | StoreError::Unsupported(_) => Err(error),
    }
}

/// Returns the fields in which two heads differ.
fn differing(kept: &DocumentHead, stated: &DocumentHead) -> impl Iterator<Item = &'static str> {
    // The pattern names every field, so that a new field fails to compile.
    let DocumentHead {
        document_ref,
        number,
        kind,
        purpose,
        contract_ref,
        number_in_contract,
        customer_id,
        entity_ref,
        currency,
        period,
        is_partial_period,
        parts,
        net_terms,
        payment,
        parent,
        replaces,
        created_at,
    } = stated;
    let same = [
        ("reference", kept.document_ref == *document_ref),
        ("number", kept.number == *number),
        ("kind", kept.kind == *kind),
        ("purpose", kept.purpose == *purpose),
        ("contract", kept.contract_ref == *contract_ref),
        ("number in its contract", kept.number_in_contract == *number_in_contract),
        ("customer", kept.customer_id == *customer_id),
        ("entity", kept.entity_ref == *entity_ref),
        ("currency", kept.currency == *currency),
        ("period", kept.period == *period),
        ("partial period", kept.is_partial_period == *is_partial_period),
        ("products", kept.parts == *parts),
        ("net terms", kept.net_terms == *net_terms),
        ("payment details", kept.payment == *payment),
        ("parent", kept.parent == *parent),
        ("replaced document", kept.replaces == *replaces),
        ("instant of opening", kept.created_at == *created_at),
    ];
    same.into_iter().filter(|(_, same)| !same).map(|(what, _)| what)
}
