//! Lists that are ordered by creation or by the time of the last change, and the metadata by which resources are found.

use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::page::UpdatePosition;
use billing_domain::ports::StoreResult;
use billing_domain::refs::OrganizationId;
use diesel::prelude::*;
use uuid::Uuid;

use crate::schema::metadata;
use crate::sql_types::Bound;
use crate::statement::Statement;
use crate::tx::{Transaction, with_conn};

/// Returns the identifier that a position names. A key that is no identifier is before all others.
pub(crate) fn id_of(position: &UpdatePosition) -> Uuid {
    Uuid::parse_str(&position.key).unwrap_or_default()
}

/// The key of a position, as a text or an identifier.
macro_rules! position_key {
    (text, $position:ident) => {
        $position.key.as_str()
    };
    (id, $position:ident) => {
        $crate::sql_types::Bound($crate::ports::update_lists::id_of($position))
    };
}
pub(super) use position_key;

/// Narrows a query to the rows after a position in an order by the last change. The first condition is a range of an index.
macro_rules! after_position {
    ($query:expr, $updated_at:expr, $key:expr, $form:ident, $after:expr, $backward:expr) => {
        match $after {
            None => $query,
            Some(position) => {
                let at = $crate::sql_types::Bound(position.updated_at);
                let key = $crate::ports::update_lists::position_key!($form, position);
                if $backward {
                    $query.filter($updated_at.le(at)).filter($updated_at.lt(at).or($key.lt(key)))
                } else {
                    $query.filter($updated_at.ge(at)).filter($updated_at.gt(at).or($key.gt(key)))
                }
            }
        }
    };
}
pub(super) use after_position;

/// Loads a page of an organization's rows, and counts all of them unless the page begins after a position.
macro_rules! list_rows {
    (
        $tx:expr, $name:literal, $table:ident::$key:ident as $form:ident, $row:ty,
        $organization:expr, $updates:expr, $by:expr, $page:expr
    ) => {{
        let (limit, offset) = $crate::ports::limits($page);
        let (after, backward) = ($updates.after.as_ref(), $page.is_backward());
        $crate::tx::with_conn!($tx, $name, |conn| {
            let narrowed = || {
                let own = $table::organization_id.eq($crate::sql_types::Bound($organization.as_uuid()));
                let mut query = $table::table.filter(own).into_boxed::<Db>();
                if let Some(since) = $updates.since {
                    query = query.filter($table::updated_at.ge($crate::sql_types::Bound(since)));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = $crate::ports::update_lists::after_position!(
                narrowed(),
                $table::updated_at,
                $table::$key,
                $form,
                after,
                backward
            );
            let ordered = match ($by, backward) {
                (billing_domain::page::ListSortKey::Created, false) => query.order(($table::created_at, $table::$key)),
                (billing_domain::page::ListSortKey::Created, true) => {
                    query.order(($table::created_at.desc(), $table::$key.desc()))
                }
                (billing_domain::page::ListSortKey::Updated, false) => query.order(($table::updated_at, $table::$key)),
                (billing_domain::page::ListSortKey::Updated, true) => {
                    query.order(($table::updated_at.desc(), $table::$key.desc()))
                }
            };
            Ok((ordered.limit(limit).offset(offset).select(<$row>::as_select()).load(conn)?, total))
        })?
    }};
}
pub(super) use list_rows;

/// Writes conditions on the time of the last change of rows with an identifier or a reference as their key.
pub(super) fn push_updates<R>(
    s: &mut Statement<R>,
    updates: &billing_domain::page::UpdateFilter,
    (updated_at, key): (&'static str, PositionColumn),
    backward: bool,
) {
    if let Some(since) = updates.since {
        s.sql(" AND ").sql(updated_at).sql(" >= ").ts(since);
    }
    let Some(position) = &updates.after else { return };
    let (PositionColumn::Id(column) | PositionColumn::Text(column)) = key;
    s.sql(" AND (").sql(updated_at).sql(", ").sql(column).sql(if backward { ") < (" } else { ") > (" });
    s.ts(position.updated_at).sql(", ");
    match key {
        PositionColumn::Id(_) => s.id(id_of(position)),
        PositionColumn::Text(_) => s.text(position.key.as_str()),
    };
    s.sql(")");
}

/// A column that orders rows with equal times.
#[derive(Clone, Copy, Debug)]
pub(super) enum PositionColumn {
    /// An identifier.
    Id(&'static str),
    /// A reference chosen by the caller.
    Text(&'static str),
}

/// The kind of a customer in `metadata`.
pub(super) const CUSTOMER: &str = "CUSTOMER";
/// The kind of a contract in `metadata`.
pub(super) const CONTRACT: &str = "CONTRACT";
/// The kind of a payment or refund in `metadata`.
pub(super) const PAYMENT: &str = "PAYMENT";

/// Restricts to rows whose metadata has keys with values.
pub(super) fn push_metadata<R>(
    s: &mut Statement<R>,
    organization: OrganizationId,
    wanted: &Metadata,
    (kind, column): (&'static str, &'static str),
) {
    for (key, value) in wanted.entries() {
        s.sql(" AND ").sql(column).sql(" IN (SELECT m.subject_id FROM metadata m WHERE m.organization_id = ");
        s.id(organization.as_uuid()).sql(" AND m.kind = ").text(kind);
        s.sql(" AND m.key = ").text(key).sql(" AND m.value = ").text(value).sql(")");
    }
}

impl Transaction<'_> {
    /// Writes the rows by which a resource is found. The primary key finds the stored ones.
    pub(super) fn write_metadata(
        &mut self,
        organization: OrganizationId,
        subject: MetadataSubject,
        before: &Metadata,
        after: &Metadata,
    ) -> StoreResult<()> {
        let kind = match subject {
            MetadataSubject::Customer(_) => CUSTOMER,
            MetadataSubject::Contract(..) => CONTRACT,
            MetadataSubject::Payment(..) => PAYMENT,
        };
        let (owner, customer, id) = (Bound(organization.as_uuid()), Bound(subject.customer().as_uuid()), Bound(subject.id()));
        for (key, value) in before.entries().filter(|(key, value)| after.get(key) != Some(*value)) {
            with_conn!(self, "metadata", |conn| diesel::delete(metadata::table.find((owner, kind, key, value, customer, id)))
                .execute(conn))?;
        }
        let added: Vec<(&str, &str)> = after.entries().filter(|(key, value)| before.get(key) != Some(*value)).collect();
        if !added.is_empty() {
            with_conn!(self, "metadata", |conn| {
                let rows = added.iter().map(|(key, value)| {
                    (
                        metadata::organization_id.eq(owner),
                        metadata::kind.eq(kind),
                        metadata::key.eq(*key),
                        metadata::value.eq(*value),
                        metadata::customer_id.eq(customer),
                        metadata::subject_id.eq(id),
                    )
                });
                diesel::insert_into(metadata::table).values(rows.collect::<Vec<_>>()).execute(conn)
            })?;
        }
        Ok(())
    }
}
