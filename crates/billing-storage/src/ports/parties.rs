//! Supplier entities and customers.

use std::collections::BTreeSet;

use billing_domain::calendar::Timestamp;
use billing_domain::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use billing_domain::party::appearance::Logo;
use billing_domain::party::{Customer, Entity, EntityUse};
use billing_domain::ports::{Customers, Entities, Insertion, Lock, StoreResult, Update};
use billing_domain::refs::{CustomerId, CustomerRef, EntityRef, OrganizationId};
use billing_domain::search_words::words;
use billing_domain::text::OneLine;
use diesel::prelude::*;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::search_words::words_of_customer;
use super::update_lists::list_rows;
use super::{counted, limits};
use crate::column_values::Columns as _;
use crate::failure::StatementError;
use crate::in_list::{one_of_ids, one_of_texts};
use crate::row::{Cell, Row};
use crate::schema::{CustomerColumns, EntityColumns, accounts, customer_refs, customers, entities, logos};
use crate::sql_types::Bound;
use crate::tx::{Transaction, load_held, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = entities)]
struct EntityRow {
    entity_ref: String,
    #[diesel(embed)]
    profile: EntityColumns,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

impl EntityRow {
    fn read(self) -> StoreResult<Entity> {
        let row = Row::new("entities", &self.entity_ref);
        Ok(Entity {
            entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
            profile: self.profile.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

impl Transaction<'_> {
    /// Returns the entity that has a number prefix.
    fn entity_with_prefix(&mut self, organization: OrganizationId, prefix: &str) -> StoreResult<Option<String>> {
        with_conn!(self, "entities", |conn| entities::table
            .filter(entities::organization_id.eq(Bound(organization.as_uuid())))
            .filter(entities::number_prefix.eq(prefix))
            .select(entities::entity_ref)
            .first(conn)
            .optional())
    }
}

impl Entities for Transaction<'_> {
    fn insert_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Insertion> {
        let columns = EntityColumns::of(&entity.profile)?;
        let prefix = columns.number_prefix.clone();
        let inserted = with_conn!(self, "entities", |conn| diesel::insert_into(entities::table)
            .values((
                entities::organization_id.eq(Bound(organization.as_uuid())),
                entities::entity_ref.eq(entity.entity_ref.as_str()),
                columns,
                entities::created_at.eq(Bound(entity.created_at)),
                entities::updated_at.eq(Bound(entity.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            self.insert_series(organization, entity.entity_ref.as_str(), &prefix)?;
            let words = words([entity.profile.name.as_str()]);
            self.put_words(organization, ("entities", entity.entity_ref.as_str()), &words)?;
            return Ok(Insertion::Done);
        }
        let same_ref = self.entities_by_refs(organization, std::slice::from_ref(&entity.entity_ref))?;
        Ok(Insertion::Taken(if same_ref.is_empty() { "number_prefix" } else { "entity_ref" }))
    }

    fn hold_entity(&mut self, organization: OrganizationId, read: &Entity) -> StoreResult<()> {
        let mut rows: Vec<EntityRow> = load_held!(
            self,
            "entities",
            Some(Lock::Exclusive),
            entities::table.find((Bound(organization.as_uuid()), read.entity_ref.as_str())).select(EntityRow::as_select())
        )?;
        match rows.pop().map(EntityRow::read).transpose()? {
            Some(present) if present == *read => Ok(()),
            Some(_) | None => Err(self.remember(StatementError::Contended)),
        }
    }

    fn update_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Update> {
        let columns = EntityColumns::of(&entity.profile)?;
        let own = entity.entity_ref.as_str();
        let owner = self.entity_with_prefix(organization, &columns.number_prefix)?;
        if owner.as_deref() != Some(own) {
            let is_known = !self.entities_by_refs(organization, std::slice::from_ref(&entity.entity_ref))?.is_empty();
            match (is_known, owner) {
                (false, _) => return Ok(Update::Unknown),
                (true, Some(_)) => return Ok(Update::Taken("number_prefix")),
                (true, None) => self.change_prefix(organization, own, &columns.number_prefix)?,
            }
        }
        let updated = with_conn!(self, "entities", |conn| {
            let found = entities::table.find((Bound(organization.as_uuid()), entity.entity_ref.as_str()));
            match diesel::update(found).set((columns, entities::updated_at.eq(Bound(entity.updated_at)))).execute(conn) {
                // Another transaction took the prefix after the check; the next attempt sees it.
                Err(diesel::result::Error::DatabaseError(diesel::result::DatabaseErrorKind::UniqueViolation, _)) => Ok(None),
                updated => updated.map(Some),
            }
        })?;
        match updated {
            None => Err(self.remember(StatementError::Contended)),
            Some(0) => Ok(Update::Unknown),
            Some(_) => {
                self.put_words(organization, ("entities", own), &words([entity.profile.name.as_str()]))?;
                self.raise_catalog_stamp(organization)?;
                Ok(Update::Done)
            }
        }
    }

    fn lock_entities_shared(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<EntityRow> = load_held!(
            self,
            "entities",
            Some(Lock::Shared),
            entities::table
                .filter(entities::organization_id.eq(Bound(organization.as_uuid())))
                .filter(one_of_texts(entities::entity_ref, refs.iter().map(EntityRef::as_str)))
                .order((entities::created_at, entities::entity_ref))
                .select(EntityRow::as_select())
        )?;
        if rows.len() < refs.len() {
            return Err(self.remember(StatementError::Contended));
        }
        rows.into_iter().map(EntityRow::read).collect()
    }

    fn entity_user(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<Option<EntityUse>> {
        let customer: Option<String> = with_conn!(self, "customers", |conn| customers::table
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .filter(customers::entity_ref.eq(entity_ref.as_str()))
            .select(customers::customer_ref)
            .first(conn)
            .optional())?;
        if let Some(customer) = customer {
            return Ok(Some(EntityUse::Customer(Row::new("customers", &customer).leaf("customer_ref", &customer)?)));
        }
        if let Some(number) = self.contract_naming(organization, entity_ref)? {
            return Ok(Some(EntityUse::Contract(number)));
        }
        let payer: Option<Cell<Uuid>> = with_conn!(self, "accounts", |conn| accounts::table
            .filter(accounts::organization_id.eq(Bound(organization.as_uuid())))
            .filter(accounts::entity_ref.eq(entity_ref.as_str()))
            .select(accounts::customer_id)
            .first(conn)
            .optional())?;
        let Some(payer) = payer else { return Ok(None) };
        let payer = CustomerId::from_uuid(Row::new("accounts", "").cell("customer_id", payer)?);
        let payer = self.customers_by_ids(organization, &[payer])?.pop();
        Ok(payer.map(|payer| EntityUse::Payer(payer.customer_ref)))
    }

    fn delete_entity(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<()> {
        let own = entity_ref.as_str();
        self.delete_series(organization, own)?;
        self.put_words(organization, ("entities", own), &BTreeSet::new())?;
        with_conn!(self, "entities", |conn| diesel::delete(entities::table.find((Bound(organization.as_uuid()), own)))
            .execute(conn))?;
        self.raise_catalog_stamp(organization)
    }

    fn entities_by_refs(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>> {
        let rows: Vec<EntityRow> = with_conn!(self, "entities", |conn| entities::table
            .filter(entities::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(entities::entity_ref, refs.iter().map(EntityRef::as_str)))
            .order((entities::created_at, entities::entity_ref))
            .select(EntityRow::as_select())
            .load(conn))?;
        rows.into_iter().map(EntityRow::read).collect()
    }

    fn listed_entities(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Entity>> {
        let (rows, total): (Vec<EntityRow>, i64) =
            list_rows!(self, "entities", entities::entity_ref as text, EntityRow, organization, updates, by, page);
        Ok(Page { items: rows.into_iter().map(EntityRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }

    fn keep_logo(&mut self, organization: OrganizationId, logo: &Logo) -> StoreResult<()> {
        let Some(image) = &logo.image else { return Ok(()) };
        with_conn!(self, "logos", |conn| diesel::insert_into(logos::table)
            .values((
                logos::organization_id.eq(Bound(organization.as_uuid())),
                logos::sha256.eq(logo.sha256.as_slice()),
                logos::format.eq(logo.format.as_str()),
                logos::image.eq(image.as_ref()),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(())
    }

    fn logo_with_image(&mut self, organization: OrganizationId, logo: &Logo) -> StoreResult<Option<Logo>> {
        let found: Option<Vec<u8>> = with_conn!(self, "logos", |conn| logos::table
            .filter(logos::organization_id.eq(Bound(organization.as_uuid())))
            .filter(logos::sha256.eq(logo.sha256.as_slice()))
            .filter(logos::format.eq(logo.format.as_str()))
            .select(logos::image)
            .first(conn)
            .optional())?;
        let Some(image) = found else { return Ok(None) };
        // An image that was changed outside the program is never printed.
        if Sha256::digest(&image).as_slice() != logo.sha256 {
            return Err(Row::new("logos", logo).corrupt("image", "hasn't the hash that is its key"));
        }
        Ok(Some(Logo { image: Some(image.into()), ..logo.clone() }))
    }
}

#[derive(Queryable, Selectable, Deserialize)]
#[diesel(table_name = customers)]
pub(super) struct CustomerRow {
    customer_id: Cell<Uuid>,
    customer_ref: String,
    #[diesel(embed)]
    profile: CustomerColumns,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

impl CustomerRow {
    pub(super) fn read(self) -> StoreResult<Customer> {
        let row = Row::new("customers", self.customer_id.clone());
        Ok(Customer {
            id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            customer_ref: row.leaf("customer_ref", &self.customer_ref)?,
            profile: self.profile.read(&row)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

impl Transaction<'_> {
    /// Returns the identifiers of customers.
    fn directory(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<CustomerId>> {
        let found: Vec<Cell<Uuid>> = with_conn!(self, "customer_refs", |conn| customer_refs::table
            .filter(customer_refs::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(customer_refs::customer_ref, refs.iter().map(CustomerRef::as_str)))
            .select(customer_refs::customer_id)
            .load(conn))?;
        let row = Row::new("customer_refs", "");
        found.into_iter().map(|id| Ok(CustomerId::from_uuid(row.cell("customer_id", id)?))).collect()
    }
}

fn read_customers(rows: Vec<CustomerRow>) -> StoreResult<Vec<Customer>> {
    rows.into_iter().map(CustomerRow::read).collect()
}

impl Customers for Transaction<'_> {
    fn insert_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Insertion> {
        let columns = CustomerColumns::of(&customer.profile)?;
        // The directory is unique also where customers are distributed.
        let named = with_conn!(self, "customer_refs", |conn| diesel::insert_into(customer_refs::table)
            .values((
                customer_refs::organization_id.eq(Bound(organization.as_uuid())),
                customer_refs::customer_ref.eq(customer.customer_ref.as_str()),
                customer_refs::customer_id.eq(Bound(customer.id.as_uuid())),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if named == 0 {
            return Ok(Insertion::Taken("customer_ref"));
        }
        let inserted = with_conn!(self, "customers", |conn| diesel::insert_into(customers::table)
            .values((
                customers::customer_id.eq(Bound(customer.id.as_uuid())),
                customers::organization_id.eq(Bound(organization.as_uuid())),
                customers::customer_ref.eq(customer.customer_ref.as_str()),
                columns,
                customers::created_at.eq(Bound(customer.created_at)),
                customers::updated_at.eq(Bound(customer.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            self.put_words(organization, ("customers", customer.customer_ref.as_str()), &words_of_customer(customer))?;
            return Ok(Insertion::Done);
        }
        self.refuse(format!("customers {}: the identity is in use", customer.id))
    }

    fn update_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Update> {
        let (columns, stamp) = (CustomerColumns::of(&customer.profile)?, self.new_stamp());
        let updated = with_conn!(self, "customers", |conn| diesel::update(customers::table.find(Bound(customer.id.as_uuid())))
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .set((columns, customers::stamp.eq(Bound(stamp)), customers::updated_at.eq(Bound(customer.updated_at))))
            .execute(conn))?;
        if updated != 1 {
            return Ok(Update::Unknown);
        }
        self.put_words(organization, ("customers", customer.customer_ref.as_str()), &words_of_customer(customer))?;
        Ok(Update::Done)
    }

    fn customers_by_refs(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<Customer>> {
        if self.is_spread {
            let ids = self.directory(organization, refs)?;
            return if ids.is_empty() { Ok(Vec::new()) } else { self.customers_by_ids(organization, &ids) };
        }
        let mut found = read_customers(with_conn!(self, "customers", |conn| customers::table
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(customers::customer_ref, refs.iter().map(CustomerRef::as_str)))
            .select(CustomerRow::as_select())
            .load(conn))?)?;
        // Sorted here, because SQLite would scan all customers of the organization to sort them.
        found.sort_by(|a, b| (a.created_at, &a.customer_ref).cmp(&(b.created_at, &b.customer_ref)));
        Ok(found)
    }

    fn customers_by_ids(&mut self, organization: OrganizationId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>> {
        let found: Vec<(CustomerRow, Cell<Uuid>)> = with_conn!(self, "customers", |conn| customers::table
            .filter(one_of_ids(customers::customer_id, ids.iter().map(|id| id.as_uuid())))
            .order((customers::created_at, customers::customer_ref))
            .select((CustomerRow::as_select(), customers::organization_id))
            .load(conn))?;
        // The organization is compared here: with this condition in the query, SQLite would scan all customers of the
        // organization.
        let mut own = Vec::new();
        for (customer, owner) in found {
            let row = Row::new("customers", customer.customer_id.clone());
            if row.cell("organization_id", owner)? == organization.as_uuid() {
                own.push(customer);
            }
        }
        read_customers(own)
    }

    fn customers_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<Customer>> {
        read_customers(with_conn!(self, "customers", |conn| customers::table
            .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
            .filter(customers::name.eq(name.as_str()))
            .order((customers::created_at, customers::customer_ref))
            .limit(2)
            .select(CustomerRow::as_select())
            .load(conn))?)
    }

    fn customers(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Customer>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<CustomerRow>, i64) = with_conn!(self, "customers", |conn| {
            let of_organization = || customers::table.filter(customers::organization_id.eq(Bound(organization.as_uuid())));
            let total = of_organization().count().get_result(conn)?;
            let ordered = of_organization().order((customers::created_at, customers::customer_ref)).limit(limit).offset(offset);
            Ok((ordered.select(CustomerRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: read_customers(rows)?, total: counted(total)? })
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::ports::Customers as _;
    use billing_domain::refs::{CustomerId, CustomerRef, OrganizationId};
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn customers_are_found_by_what_events_call_them_without_a_walk_through_all() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let refs = ["a", "b"].map(|text| CustomerRef::parse(text).expect("a reference"));
        let plans = plans_of(|tx| {
            assert_eq!(tx.customers_by_refs(organization, &refs).expect("a look-up"), []);
            assert_eq!(tx.customers_by_ids(organization, &[CustomerId::from_uuid(Uuid::from_u128(2))]).expect("a look-up"), []);
        });
        let by_ref = plans[0].steps.iter().any(|step| step.ends_with("(organization_id=? AND customer_ref=?)"));
        let by_id = plans[1].steps.iter().any(|step| step.ends_with("(customer_id=?)"));
        assert!(by_ref && by_id, "{plans:?}");
    }
}
