//! Usage products and pricings.

use billing_domain::calendar::Timestamp;
use billing_domain::catalog::{Aggregation, Pricing, UsageProduct};
use billing_domain::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use billing_domain::ports::{Insertion, Pricings, StoreResult, Update, UsageProducts};
use billing_domain::refs::{OrganizationId, PricingRef, UsageProductRef};
use billing_domain::search_words::words;
use billing_domain::summary::Aggregations;
use billing_domain::text::OneLine;
use diesel::prelude::*;

use super::counted;
use super::update_lists::list_rows;
use crate::column_values::Columns as _;
use crate::in_list::one_of_texts;
use crate::row::{Cell, Row};
use crate::schema::{PricingColumns, UsageProductColumns, pricings, usage_products};
use crate::sql_types::Bound;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_products)]
pub(super) struct UsageProductRow {
    usage_product_ref: String,
    #[diesel(embed)]
    profile: UsageProductColumns,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

impl UsageProductRow {
    pub(super) fn read(self) -> StoreResult<UsageProduct> {
        let row = Row::new("usage_products", &self.usage_product_ref);
        Ok(UsageProduct {
            usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
            profile: self.profile.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

fn read_usage_products(rows: Vec<UsageProductRow>) -> StoreResult<Vec<UsageProduct>> {
    rows.into_iter().map(UsageProductRow::read).collect()
}

impl Transaction<'_> {
    fn put_product_words(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<()> {
        let object = ("usage_products", product.usage_product_ref.as_str());
        self.put_words(organization, object, &words([product.profile.name.as_str()]))
    }

    fn put_pricing_words(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<()> {
        let object = ("pricings", pricing.pricing_ref.as_str());
        self.put_words(organization, object, &words([pricing.content.name.as_str()]))
    }
}

impl UsageProducts for Transaction<'_> {
    fn insert_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Insertion> {
        let columns = UsageProductColumns::of(&product.profile)?;
        let inserted = with_conn!(self, "usage_products", |conn| diesel::insert_into(usage_products::table)
            .values((
                usage_products::organization_id.eq(Bound(organization.as_uuid())),
                usage_products::usage_product_ref.eq(product.usage_product_ref.as_str()),
                columns,
                usage_products::created_at.eq(Bound(product.created_at)),
                usage_products::updated_at.eq(Bound(product.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted != 1 {
            return Ok(Insertion::Taken("usage_product_ref"));
        }
        self.put_product_words(organization, product)?;
        Ok(Insertion::Done)
    }

    fn update_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Update> {
        let columns = UsageProductColumns::of(&product.profile)?;
        let updated = with_conn!(self, "usage_products", |conn| {
            let found = usage_products::table.find((Bound(organization.as_uuid()), product.usage_product_ref.as_str()));
            diesel::update(found).set((columns, usage_products::updated_at.eq(Bound(product.updated_at)))).execute(conn)
        })?;
        if updated == 0 {
            return Ok(Update::Unknown);
        }
        self.put_product_words(organization, product)?;
        self.raise_catalog_stamp(organization)?;
        Ok(Update::Done)
    }

    fn usage_products_by_refs(
        &mut self,
        organization: OrganizationId,
        refs: &[UsageProductRef],
    ) -> StoreResult<Vec<UsageProduct>> {
        read_usage_products(with_conn!(self, "usage_products", |conn| usage_products::table
            .filter(usage_products::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(usage_products::usage_product_ref, refs.iter().map(UsageProductRef::as_str)))
            .order((usage_products::created_at, usage_products::usage_product_ref))
            .select(UsageProductRow::as_select())
            .load(conn))?)
    }

    fn usage_products_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<UsageProduct>> {
        read_usage_products(with_conn!(self, "usage_products", |conn| usage_products::table
            .filter(usage_products::organization_id.eq(Bound(organization.as_uuid())))
            .filter(usage_products::name.eq(name.as_str()))
            .order((usage_products::created_at, usage_products::usage_product_ref))
            .limit(2)
            .select(UsageProductRow::as_select())
            .load(conn))?)
    }

    fn aggregations(&mut self, organization: OrganizationId) -> StoreResult<Aggregations> {
        let rows: Vec<(String, String)> = with_conn!(self, "usage_products", |conn| usage_products::table
            .filter(usage_products::organization_id.eq(Bound(organization.as_uuid())))
            .filter(usage_products::aggregation.ne(Aggregation::Sum.to_text()))
            .select((usage_products::usage_product_ref, usage_products::aggregation))
            .load(conn))?;
        let read = |(usage_product_ref, aggregation): (String, String)| {
            let row = Row::new("usage_products", &usage_product_ref);
            Ok((row.leaf("usage_product_ref", &usage_product_ref)?, row.leaf("aggregation", &aggregation)?))
        };
        rows.into_iter().map(read).collect()
    }

    fn listed_usage_products(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<UsageProduct>> {
        let (rows, total): (Vec<UsageProductRow>, i64) = list_rows!(
            self,
            "usage_products",
            usage_products::usage_product_ref as text,
            UsageProductRow,
            organization,
            updates,
            by,
            page
        );
        Ok(Page { items: read_usage_products(rows)?, total: counted(total)? })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = pricings)]
struct PricingRow {
    pricing_ref: String,
    #[diesel(embed)]
    content: PricingColumns,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

impl PricingRow {
    fn read(self) -> StoreResult<Pricing> {
        let row = Row::new("pricings", &self.pricing_ref);
        Ok(Pricing {
            pricing_ref: row.leaf("pricing_ref", &self.pricing_ref)?,
            content: self.content.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

impl Pricings for Transaction<'_> {
    fn insert_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Insertion> {
        let columns = PricingColumns::of(&pricing.content)?;
        let inserted = with_conn!(self, "pricings", |conn| diesel::insert_into(pricings::table)
            .values((
                pricings::organization_id.eq(Bound(organization.as_uuid())),
                pricings::pricing_ref.eq(pricing.pricing_ref.as_str()),
                columns,
                pricings::created_at.eq(Bound(pricing.created_at)),
                pricings::updated_at.eq(Bound(pricing.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted != 1 {
            return Ok(Insertion::Taken("product_pricing_ref"));
        }
        self.put_pricing_words(organization, pricing)?;
        Ok(Insertion::Done)
    }

    fn update_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Update> {
        let columns = PricingColumns::of(&pricing.content)?;
        let updated = with_conn!(self, "pricings", |conn| {
            let found = pricings::table.find((Bound(organization.as_uuid()), pricing.pricing_ref.as_str()));
            diesel::update(found).set((columns, pricings::updated_at.eq(Bound(pricing.updated_at)))).execute(conn)
        })?;
        if updated != 1 {
            return Ok(Update::Unknown);
        }
        self.put_pricing_words(organization, pricing)?;
        Ok(Update::Done)
    }

    fn pricings_by_refs(&mut self, organization: OrganizationId, refs: &[PricingRef]) -> StoreResult<Vec<Pricing>> {
        let rows: Vec<PricingRow> = with_conn!(self, "pricings", |conn| pricings::table
            .filter(pricings::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(pricings::pricing_ref, refs.iter().map(PricingRef::as_str)))
            .order((pricings::created_at, pricings::pricing_ref))
            .select(PricingRow::as_select())
            .load(conn))?;
        rows.into_iter().map(PricingRow::read).collect()
    }

    fn listed_pricings(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Pricing>> {
        let (rows, total): (Vec<PricingRow>, i64) =
            list_rows!(self, "pricings", pricings::pricing_ref as text, PricingRow, organization, updates, by, page);
        Ok(Page { items: rows.into_iter().map(PricingRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}
