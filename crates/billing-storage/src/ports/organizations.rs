//! Organizations.

use billing_domain::calendar::Timestamp;
use billing_domain::party::Organization;
use billing_domain::ports::{Insertion, Organizations, StoreResult};
use billing_domain::refs::{EntityRef, OrganizationId};
use billing_domain::text::OneLine;
use diesel::prelude::*;
use uuid::Uuid;

use super::counted;
use crate::row::{Cell, Row};
use crate::schema::{entities, organizations};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = organizations)]
struct OrganizationRow {
    organization_id: Cell<Uuid>,
    name: String,
    default_entity_ref: Option<String>,
    created_at: Cell<Timestamp>,
}

impl OrganizationRow {
    fn read(self) -> StoreResult<Organization> {
        let row = Row::new("organizations", self.organization_id.clone());
        Ok(Organization {
            id: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            name: row.leaf("name", &self.name)?,
            default_entity: row.optional_leaf("default_entity_ref", self.default_entity_ref.as_deref())?,
            created_at: row.cell("created_at", self.created_at)?,
        })
    }
}

impl Transaction<'_> {
    /// Gives the organization's catalog a new stamp, so that caches read its entities and usage products again.
    pub(super) fn raise_catalog_stamp(&mut self, organization: OrganizationId) -> StoreResult<()> {
        let stamp = self.new_stamp();
        with_conn!(self, "organizations", |conn| diesel::update(organizations::table.find(Bound(organization.as_uuid())))
            .set(organizations::catalog_stamp.eq(Bound(stamp)))
            .execute(conn))?;
        Ok(())
    }
}

impl Organizations for Transaction<'_> {
    fn insert_organization(&mut self, organization: &Organization) -> StoreResult<Insertion> {
        let inserted = with_conn!(self, "organizations", |conn| diesel::insert_into(organizations::table)
            .values((
                organizations::organization_id.eq(Bound(organization.id.as_uuid())),
                organizations::name.eq(organization.name.as_str()),
                organizations::default_entity_ref.eq(organization.default_entity.as_ref().map(EntityRef::as_str)),
                organizations::created_at.eq(Bound(organization.created_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            return Ok(Insertion::Done);
        }
        match self.organization_by_name(&organization.name)? {
            Some(_) => Ok(Insertion::Taken("name")),
            None => self.refuse(format!("organizations {}: the identity is in use", organization.id)),
        }
    }

    fn organization(&mut self, id: OrganizationId) -> StoreResult<Option<Organization>> {
        let row: Option<OrganizationRow> = with_conn!(self, "organizations", |conn| organizations::table
            .find(Bound(id.as_uuid()))
            .select(OrganizationRow::as_select())
            .first(conn)
            .optional())?;
        row.map(OrganizationRow::read).transpose()
    }

    fn organization_by_name(&mut self, name: &OneLine) -> StoreResult<Option<Organization>> {
        let row: Option<OrganizationRow> = with_conn!(self, "organizations", |conn| organizations::table
            .filter(organizations::name.eq(name.as_str()))
            .select(OrganizationRow::as_select())
            .first(conn)
            .optional())?;
        row.map(OrganizationRow::read).transpose()
    }

    fn count_organizations(&mut self) -> StoreResult<u64> {
        counted(with_conn!(self, "organizations", |conn| organizations::table.count().get_result(conn))?)
    }

    fn set_default_entity(&mut self, id: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()> {
        let before = self.organization(id)?.and_then(|organization| organization.default_entity);
        if let Some(before) = before.filter(|before| before != entity_ref) {
            with_conn!(self, "entities", |conn| diesel::update(entities::table.find((Bound(id.as_uuid()), before.as_str())))
                .set(entities::updated_at.eq(Bound(at)))
                .execute(conn))?;
        }
        with_conn!(self, "organizations", |conn| diesel::update(organizations::table.find(Bound(id.as_uuid())))
            .set(organizations::default_entity_ref.eq(entity_ref.as_str()))
            .execute(conn))?;
        Ok(())
    }
}
