//! Ledger lines of documents: the lines of issued documents and of open adjustments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use billing_domain::calendar::Period;
use billing_domain::document::lines::{DiscountAndTax, DocumentLedgerLine, LedgerLine, LedgerUsage, LineKey};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::ledger::BookRows;
use billing_domain::money::{Currency, Money, Percentage};
use billing_domain::ports::StoreResult;
use billing_domain::refs::{
    ContractKey, ContractRef, CustomerId, DocumentKey, DocumentRef, LineItemId, OrganizationId, ProductNo,
};
use billing_domain::tax::{TaxBasis, TaxTreatment};
use billing_domain::usage::EventChanges;
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::books::load_of_contracts;
use super::document_rows::VOID;
use super::stored;
use crate::in_list::{Value, also_one_of_ids, one_of_ids, one_of_rows};
use crate::json::{StoredConvertedTax, StoredTaxBasis, StoredTaxBasisRef};
use crate::row::{Cell, Row, to_json};
use crate::schema::{document_lines, documents};
use crate::sql_types::{Bound, JsonText};
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{Columns, InsertRows, checked_column, column};

/// The text of a tax basis that states neither category nor reason.
const NO_BASIS: &str = "";

/// A line of a document to write, with its position.
type NewLine<'a> = (DocumentKey, ContractRef, usize, &'a LedgerLine);

fn columns_of(rows: &[NewLine<'_>], frozen: bool) -> StoreResult<Columns> {
    Ok(vec![
        ("document_id", column(rows, |(key, ..)| key.document.as_uuid())),
        ("customer_id", column(rows, |(key, ..)| key.customer.as_uuid())),
        ("ordinal", checked_column(rows, |(_, _, ordinal, _)| stored::<i32, _>(*ordinal))?),
        ("contract_id", column(rows, |(_, contract_ref, ..)| contract_ref.as_uuid())),
        ("product_no", column(rows, |(.., line)| i32::from(line.key.product_no.0))),
        ("line_item_id", column(rows, |(.., line)| line.key.line_item_id.as_ref().map(LineItemId::as_str))),
        ("bill_with", column(rows, |(.., line)| line.key.bill_with.to_text())),
        ("billed_period_start", column(rows, |(.., line)| line.key.period_start)),
        ("discount_rate", column(rows, |(.., line)| line.rates.discount.as_decimal())),
        ("tax_rate", column(rows, |(.., line)| line.rates.tax.rate.as_decimal())),
        ("tax_basis", checked_column(rows, |(.., line)| basis_text(&line.rates.tax.basis))?),
        ("has_default_tax", column(rows, |(.., line)| line.has_default_tax)),
        ("usage_product_ref", column(rows, |(.., line)| line.usage.as_ref().map(|usage| usage.usage_product_ref.as_str()))),
        ("service_period_start", column(rows, |(.., line)| line.service_period.start())),
        ("service_period_end", column(rows, |(.., line)| line.service_period.end())),
        ("quantity", column(rows, |(.., line)| line.usage.as_ref().map(|usage| usage.quantity))),
        ("event_changes", column(rows, |(.., line)| line.usage.as_ref().map_or(0, |usage| usage.changes.sum()))),
        ("amount_minor", column(rows, |(.., line)| line.amount.minor())),
        ("frozen", column(rows, |_| frozen)),
    ])
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = document_lines)]
pub(super) struct LineRow {
    document_id: Cell<Uuid>,
    ordinal: i32,
    product_no: i32,
    line_item_id: Option<String>,
    bill_with: String,
    billed_period_start: Cell<NaiveDate>,
    discount_rate: Cell<Decimal>,
    tax_rate: Cell<Decimal>,
    tax_basis: String,
    has_default_tax: bool,
    usage_product_ref: Option<String>,
    service_period_start: Cell<NaiveDate>,
    service_period_end: Cell<NaiveDate>,
    quantity: Option<Cell<Decimal>>,
    event_changes: i64,
    amount_minor: i64,
    frozen: bool,
}

impl LineRow {
    pub(super) fn document_id(&self) -> StoreResult<Uuid> {
        Row::new("document_lines", self.ordinal).cell("document_id", self.document_id.clone())
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Returns the line of a document in a currency.
    pub(super) fn read(self, currency: Currency) -> StoreResult<(DocumentRef, LedgerLine)> {
        let row = Row::new("document_lines", format!("{}/{}", self.document_id, self.ordinal));
        let (start, end) = (
            row.cell("service_period_start", self.service_period_start)?,
            row.cell("service_period_end", self.service_period_end)?,
        );
        let usage = match (self.usage_product_ref, self.quantity) {
            (Some(product), Some(quantity)) => Some(LedgerUsage {
                usage_product_ref: row.leaf("usage_product_ref", &product)?,
                quantity: row.cell("quantity", quantity)?,
                changes: EventChanges::from_sum(self.event_changes),
            }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(row.corrupt("quantity", "usage product and quantity don't come together"));
            }
        };
        let rate = |column, cell| -> StoreResult<Percentage> {
            let rate: Decimal = row.cell(column, cell)?;
            row.leaf(column, &rate.to_string())
        };
        let line = LedgerLine {
            key: LineKey {
                product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
                period_start: row.cell("billed_period_start", self.billed_period_start)?,
                line_item_id: row.optional_leaf("line_item_id", self.line_item_id.as_deref())?,
                bill_with: row.leaf("bill_with", &self.bill_with)?,
            },
            rates: DiscountAndTax {
                discount: rate("discount_rate", self.discount_rate)?,
                tax: TaxTreatment { rate: rate("tax_rate", self.tax_rate)?, basis: read_basis(&row, &self.tax_basis)? },
            },
            has_default_tax: self.has_default_tax,
            service_period: Period::new(start, end).ok_or_else(|| row.corrupt("service_period_end", "a period without a day"))?,
            usage,
            amount: Money::from_minor(self.amount_minor, currency),
        };
        Ok((DocumentRef::from_uuid(row.cell("document_id", self.document_id)?), line))
    }
}

/// Returns a tax category and its reason as part of a key: equal values have equal texts.
pub(super) fn basis_text(basis: &TaxBasis) -> StoreResult<String> {
    if *basis == TaxBasis::default() { Ok(NO_BASIS.to_owned()) } else { Ok(to_json(&StoredTaxBasisRef(basis))?.0) }
}

/// Parses a tax category and its reason.
pub(super) fn read_basis<K: fmt::Display>(row: &Row<K>, text: &str) -> StoreResult<TaxBasis> {
    if text == NO_BASIS {
        return Ok(TaxBasis::default());
    }
    row.json::<StoredTaxBasis>("tax_basis", &JsonText(text.to_owned())).map(|stored| stored.0)
}

/// Parses the currency of a document.
pub(super) fn currency_of(text: &str) -> StoreResult<Currency> {
    Row::new("documents", "").leaf("currency", text)
}

impl Transaction<'_> {
    /// Replaces the lines of drafts. Lines of documents being issued are frozen and never change again.
    pub(super) fn write_lines(
        &mut self,
        documents: &[(DocumentKey, ContractRef, Vec<LedgerLine>)],
        frozen: bool,
    ) -> StoreResult<()> {
        let ids: Vec<Uuid> = documents.iter().map(|(key, _, _)| key.document.as_uuid()).collect();
        let customers: BTreeSet<Uuid> = documents.iter().map(|(key, _, _)| key.customer.as_uuid()).collect();
        with_conn!(self, "document_lines", |conn| diesel::delete(document_lines::table)
            .filter(one_of_ids(document_lines::document_id, ids))
            .filter(also_one_of_ids(document_lines::customer_id, customers))
            .execute(conn))?;
        let mut rows: Vec<NewLine<'_>> = Vec::new();
        for (key, contract_ref, lines) in documents {
            rows.extend(lines.iter().enumerate().map(|(ordinal, line)| (*key, *contract_ref, ordinal, line)));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let insert = InsertRows::new("document_lines", columns_of(&rows, frozen)?);
        if self.insert_rows(insert)? < rows.len() {
            return self.refuse("document_lines: there already".to_owned());
        }
        Ok(())
    }

    /// Returns the lines of contracts' documents that are not void.
    pub(super) fn lines_in_force(
        &mut self,
        organization: OrganizationId,
        contracts: &[ContractKey],
        books: &mut BTreeMap<ContractKey, BookRows>,
    ) -> StoreResult<()> {
        type InForce = (LineRow, Cell<Uuid>, Cell<Uuid>, String, (String, String, i64), Cell<Uuid>, Option<JsonText>);
        let rows: Vec<InForce> = load_of_contracts!(
            self,
            "document_lines",
            contracts,
            (document_lines::customer_id, document_lines::contract_id, "document_lines.customer_id, document_lines.contract_id"),
            Some("documents.customer_id"),
            document_lines::table
                .inner_join(
                    documents::table.on(documents::document_id
                        .eq(document_lines::document_id)
                        .and(documents::customer_id.eq(document_lines::customer_id)))
                )
                .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
                .filter(documents::lifecycle.ne(VOID))
                .select((
                    LineRow::as_select(),
                    document_lines::customer_id,
                    document_lines::contract_id,
                    documents::currency,
                    (documents::kind, documents::number_prefix, documents::sequence),
                    documents::family_document_id,
                    documents::converted_tax,
                ))
        );
        for (line, customer_id, contract_id, currency, (kind, prefix, sequence), family, converted_tax) in rows {
            let (document_ref, line) = line.read(currency_of(&currency)?)?;
            let row = Row::new("documents", document_ref);
            let key = ContractKey {
                organization,
                customer: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
                contract: ContractRef::from_uuid(row.cell("contract_id", contract_id)?),
            };
            let family = DocumentRef::from_uuid(row.cell("family_document_id", family)?);
            let number = DocumentNumber {
                prefix: row.leaf("number_prefix", &prefix)?,
                kind: row.leaf("kind", &kind)?,
                sequence: row.checked("sequence", u64::try_from(sequence))?,
            };
            let converted_tax: Option<StoredConvertedTax> =
                converted_tax.as_ref().map(|text| row.json("converted_tax", text)).transpose()?;
            let converted_tax = converted_tax.map(|stored| stored.0);
            let line = DocumentLedgerLine { document_ref, family, number, converted_tax, line };
            books.entry(key).or_default().lines.push(line);
        }
        Ok(())
    }

    /// Returns the stored lines of customers' documents, in order.
    pub(super) fn line_rows(&mut self, customers: BTreeSet<Uuid>, ids: &[Uuid]) -> StoreResult<Vec<LineRow>> {
        with_conn!(self, "document_lines", |conn| document_lines::table
            .filter(one_of_ids(document_lines::document_id, ids.iter().copied()))
            .filter(also_one_of_ids(document_lines::customer_id, customers))
            .order((document_lines::document_id, document_lines::ordinal))
            .select(LineRow::as_select())
            .load(conn))
    }
}
