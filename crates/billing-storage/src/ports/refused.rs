//! Rejected usage.

use billing_domain::access::RequestId;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{RefusedFilter, RefusedUsage, StoreResult};
use billing_domain::refs::OrganizationId;
use billing_domain::refused::{RefusedCount, RefusedExample, RefusedKey};
use chrono::NaiveDate;
use diesel::prelude::*;
use serde::{Deserialize, Serialize};

use super::{counted, limits, stored};
use crate::row::{Cell, Row, to_json};
use crate::schema::refused_usage;
use crate::sql_types::{Bound, JsonText};
use crate::statement::Statement;
use crate::text_value;
use crate::tx::{Transaction, with_conn};

/// Adds to the existing row.
const ADDED: &str = ") ON CONFLICT (organization_id, day, code, customer_ref, usage_product_ref) DO UPDATE SET \
    count = refused_usage.count + excluded.count, \
    first_at = CASE WHEN excluded.first_at < refused_usage.first_at THEN excluded.first_at ELSE refused_usage.first_at END, \
    example = CASE WHEN excluded.last_at >= refused_usage.last_at THEN excluded.example ELSE refused_usage.example END, \
    last_at = CASE WHEN excluded.last_at >= refused_usage.last_at THEN excluded.last_at ELSE refused_usage.last_at END";

#[derive(Queryable, Selectable)]
#[diesel(table_name = refused_usage)]
struct CountRow {
    day: Cell<NaiveDate>,
    code: String,
    customer_ref: String,
    usage_product_ref: String,
    count: i64,
    first_at: Cell<Timestamp>,
    last_at: Cell<Timestamp>,
    example: JsonText,
}

/// The example, in one column.
#[derive(Serialize, Deserialize)]
struct ExampleJson {
    event: String,
    pointer: Option<String>,
    detail: String,
    #[serde(with = "text_value::option")]
    request_id: Option<RequestId>,
}

impl CountRow {
    fn read(self, organization: OrganizationId) -> StoreResult<(RefusedKey, RefusedCount)> {
        let Self { day, code, customer_ref, usage_product_ref, count, first_at, last_at, example } = self;
        let row = Row::new("refused_usage", format!("{code} {customer_ref} {usage_product_ref}"));
        let ExampleJson { event, pointer, detail, request_id } = row.json("example", &example)?;
        let counted = RefusedCount {
            count: counted(count)?,
            first_at: row.cell("first_at", first_at)?,
            last_at: row.cell("last_at", last_at)?,
            example: RefusedExample { event, pointer, detail, request_id },
        };
        let day = row.cell("day", day)?;
        Ok((RefusedKey { organization, day, code, customer_ref, usage_product_ref }, counted))
    }
}

impl RefusedUsage for Transaction<'_> {
    fn add_refused_usage(&mut self, counts: &[(RefusedKey, RefusedCount)]) -> StoreResult<()> {
        for (key, RefusedCount { count, first_at, last_at, example }) in counts {
            let RefusedExample { event, pointer, detail, request_id } = example.clone();
            let JsonText(example) = to_json(&ExampleJson { event, pointer, detail, request_id })?;
            let mut s: Statement<()> = Statement::new(
                "INSERT INTO refused_usage \
                 (organization_id, day, code, customer_ref, usage_product_ref, count, first_at, last_at, example) VALUES (",
            );
            s.id(key.organization.as_uuid()).sql(", ").day(key.day).sql(", ").text(key.code.as_str()).sql(", ");
            s.text(key.customer_ref.as_str()).sql(", ").text(key.usage_product_ref.as_str()).sql(", ");
            s.number(stored(*count)?).sql(", ").ts(*first_at).sql(", ").ts(*last_at).sql(", ").text(example).sql(ADDED);
            with_conn!(self, "refused_usage", |conn| s.execute(conn))?;
        }
        Ok(())
    }

    fn refused_usage(
        &mut self,
        organization: OrganizationId,
        filter: &RefusedFilter,
        page: PageRequest,
    ) -> StoreResult<Page<(RefusedKey, RefusedCount)>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<CountRow>, i64) = with_conn!(self, "refused_usage", |conn| {
            let narrowed = || {
                let own = refused_usage::organization_id.eq(Bound(organization.as_uuid()));
                let mut query = refused_usage::table.filter(own).into_boxed::<Db>();
                if let Some(from) = filter.from {
                    query = query.filter(refused_usage::day.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(refused_usage::day.le(Bound(to)));
                }
                if let Some(code) = &filter.code {
                    query = query.filter(refused_usage::code.eq(code.as_str()));
                }
                if let Some(customer_ref) = &filter.customer_ref {
                    query = query.filter(refused_usage::customer_ref.eq(customer_ref.as_str()));
                }
                if let Some(usage_product_ref) = &filter.usage_product_ref {
                    query = query.filter(refused_usage::usage_product_ref.eq(usage_product_ref.as_str()));
                }
                query
            };
            let total = narrowed().count().get_result(conn)?;
            let order =
                (refused_usage::day.desc(), refused_usage::code, refused_usage::customer_ref, refused_usage::usage_product_ref);
            Ok((narrowed().order(order).limit(limit).offset(offset).select(CountRow::as_select()).load(conn)?, total))
        })?;
        let items = rows.into_iter().map(|row| row.read(organization)).collect::<StoreResult<_>>()?;
        Ok(Page { items, total: counted(total)? })
    }

    fn purge_refused_usage(&mut self, before: NaiveDate) -> StoreResult<u64> {
        let went = with_conn!(self, "refused_usage", |conn| diesel::delete(refused_usage::table)
            .filter(refused_usage::day.lt(Bound(before)))
            .execute(conn))?;
        Ok(went as u64)
    }
}
