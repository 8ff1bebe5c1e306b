//! Usage formats: one row per format, with the number and name of its newest version, and one row per version.

use billing_domain::calendar::Timestamp;
use billing_domain::format::{FormatVersion, UsageFormat};
use billing_domain::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use billing_domain::ports::{Insertion, StoreResult, Update, UsageFormats};
use billing_domain::refs::{FormatRef, OrganizationId};
use billing_domain::search_words::words;
use billing_domain::text::OneLine;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use uuid::Uuid;

use super::update_lists::after_position;
use super::{counted, limits, stored};
use crate::failure::StatementError;
use crate::json::{StoredMapping, StoredMappingRef};
use crate::row::{Cell, Row, to_json};
use crate::schema::{usage_format_versions, usage_formats};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, with_conn};

#[derive(Insertable)]
#[diesel(table_name = usage_format_versions)]
struct NewVersion<'a> {
    organization_id: Bound<Uuid>,
    format_ref: &'a str,
    version: i32,
    name: &'a str,
    mapping: JsonText,
    created_at: Bound<Timestamp>,
    created_by: String,
}

impl<'a> NewVersion<'a> {
    fn of(organization: OrganizationId, made: &'a FormatVersion) -> StoreResult<Self> {
        Ok(Self {
            organization_id: Bound(organization.as_uuid()),
            format_ref: made.format.format_ref.as_str(),
            version: stored(made.format.version)?,
            name: made.format.name.as_str(),
            mapping: to_json(&StoredMappingRef(&made.format.mapping))?,
            created_at: Bound(made.made_at),
            created_by: made.made_by.to_string(),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_format_versions)]
struct VersionRow {
    format_ref: String,
    version: i32,
    name: String,
    mapping: JsonText,
    created_at: Cell<Timestamp>,
    created_by: String,
}

impl VersionRow {
    fn read(self) -> StoreResult<FormatVersion> {
        let row = Row::new("usage_format_versions", format!("{}/{}", self.format_ref, self.version));
        let mapping: StoredMapping = row.json("mapping", &self.mapping)?;
        Ok(FormatVersion {
            format: UsageFormat {
                format_ref: row.leaf("format_ref", &self.format_ref)?,
                name: row.leaf("name", &self.name)?,
                version: row.checked("version", u32::try_from(self.version))?,
                mapping: mapping.0,
            },
            made_at: row.cell("created_at", self.created_at)?,
            made_by: row.leaf("created_by", &self.created_by)?,
        })
    }
}

/// The newest versions of an organization's formats.
macro_rules! newest_of {
    ($organization:expr) => {
        usage_formats::table
            .inner_join(
                usage_format_versions::table.on(usage_format_versions::organization_id
                    .eq(usage_formats::organization_id)
                    .and(usage_format_versions::format_ref.eq(usage_formats::format_ref))
                    .and(usage_format_versions::version.eq(usage_formats::version))),
            )
            .filter(usage_formats::organization_id.eq(Bound($organization.as_uuid())))
    };
}

impl Transaction<'_> {
    fn insert_version(&mut self, organization: OrganizationId, made: &FormatVersion) -> StoreResult<()> {
        let row = NewVersion::of(organization, made)?;
        with_conn!(self, "usage_format_versions", |conn| diesel::insert_into(usage_format_versions::table)
            .values(row)
            .execute(conn))?;
        Ok(())
    }
}

impl UsageFormats for Transaction<'_> {
    fn insert_format(&mut self, organization: OrganizationId, first: &FormatVersion) -> StoreResult<Insertion> {
        let version: i32 = stored(first.format.version)?;
        let inserted = with_conn!(self, "usage_formats", |conn| diesel::insert_into(usage_formats::table)
            .values((
                usage_formats::organization_id.eq(Bound(organization.as_uuid())),
                usage_formats::format_ref.eq(first.format.format_ref.as_str()),
                usage_formats::name.eq(first.format.name.as_str()),
                usage_formats::version.eq(version),
                usage_formats::created_at.eq(Bound(first.made_at)),
                usage_formats::updated_at.eq(Bound(first.made_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            self.insert_version(organization, first)?;
            let format = &first.format;
            self.put_words(organization, ("usage_formats", format.format_ref.as_str()), &words([format.name.as_str()]))?;
            return Ok(Insertion::Done);
        }
        let same_ref = self.format(organization, &first.format.format_ref)?;
        Ok(Insertion::Taken(if same_ref.is_none() { "format_name" } else { "format_ref" }))
    }

    fn append_format_version(&mut self, organization: OrganizationId, next: &FormatVersion) -> StoreResult<Update> {
        let UsageFormat { format_ref, name, .. } = &next.format;
        if self.format(organization, format_ref)?.is_none() {
            return Ok(Update::Unknown);
        }
        let namesake = self.format_by_name(organization, name)?;
        if namesake.is_some_and(|namesake| namesake.format.format_ref != *format_ref) {
            return Ok(Update::Taken("format_name"));
        }
        let version: i32 = stored(next.format.version)?;
        // The statement that replaces the version also checks the previous one.
        let changed = with_conn!(self, "usage_formats", |conn| {
            let found = usage_formats::table.find((Bound(organization.as_uuid()), format_ref.as_str()));
            let change = diesel::update(found).filter(usage_formats::version.eq(version - 1)).set((
                usage_formats::version.eq(version),
                usage_formats::name.eq(name.as_str()),
                usage_formats::updated_at.eq(Bound(next.made_at)),
            ));
            match change.execute(conn) {
                // Another transaction took the name after the check; the next attempt sees it.
                Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(0),
                changed => changed,
            }
        })?;
        if changed == 0 {
            return Err(self.remember(StatementError::Contended));
        }
        self.insert_version(organization, next)?;
        self.put_words(organization, ("usage_formats", format_ref.as_str()), &words([name.as_str()]))?;
        Ok(Update::Done)
    }

    fn format(&mut self, organization: OrganizationId, format_ref: &FormatRef) -> StoreResult<Option<FormatVersion>> {
        let row: Option<VersionRow> = with_conn!(self, "usage_format_versions", |conn| newest_of!(organization)
            .filter(usage_formats::format_ref.eq(format_ref.as_str()))
            .select(VersionRow::as_select())
            .first(conn)
            .optional())?;
        row.map(VersionRow::read).transpose()
    }

    fn format_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Option<FormatVersion>> {
        let row: Option<VersionRow> = with_conn!(self, "usage_format_versions", |conn| newest_of!(organization)
            .filter(usage_formats::name.eq(name.as_str()))
            .select(VersionRow::as_select())
            .first(conn)
            .optional())?;
        row.map(VersionRow::read).transpose()
    }

    fn format_version(
        &mut self,
        organization: OrganizationId,
        format_ref: &FormatRef,
        version: u32,
    ) -> StoreResult<Option<FormatVersion>> {
        // A version that the column cannot hold does not exist.
        let Ok(version) = i32::try_from(version) else { return Ok(None) };
        let row: Option<VersionRow> = with_conn!(self, "usage_format_versions", |conn| usage_format_versions::table
            .find((Bound(organization.as_uuid()), format_ref.as_str(), version))
            .select(VersionRow::as_select())
            .first(conn)
            .optional())?;
        row.map(VersionRow::read).transpose()
    }

    fn listed_formats(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<FormatVersion>> {
        let (limit, offset) = limits(page);
        let (after, backward) = (updates.after.as_ref(), page.is_backward());
        let (rows, total): (Vec<VersionRow>, i64) = with_conn!(self, "usage_format_versions", |conn| {
            let narrowed = || {
                let mut query = newest_of!(organization).into_boxed::<Db>();
                if let Some(since) = updates.since {
                    query = query.filter(usage_formats::updated_at.ge(Bound(since)));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = after_position!(narrowed(), usage_formats::updated_at, usage_formats::format_ref, text, after, backward);
            let ordered = match (by, backward) {
                (ListSortKey::Created, false) => query.order((usage_formats::created_at, usage_formats::format_ref)),
                (ListSortKey::Created, true) => query.order((usage_formats::created_at.desc(), usage_formats::format_ref.desc())),
                (ListSortKey::Updated, false) => query.order((usage_formats::updated_at, usage_formats::format_ref)),
                (ListSortKey::Updated, true) => query.order((usage_formats::updated_at.desc(), usage_formats::format_ref.desc())),
            };
            Ok((ordered.limit(limit).offset(offset).select(VersionRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: rows.into_iter().map(VersionRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }

    fn formats(&mut self, organization: OrganizationId, skip: u64, limit: u32) -> StoreResult<Page<FormatVersion>> {
        let skip = i64::try_from(skip).unwrap_or(i64::MAX);
        let (rows, total): (Vec<VersionRow>, i64) = with_conn!(self, "usage_format_versions", |conn| {
            let of_organization = usage_formats::organization_id.eq(Bound(organization.as_uuid()));
            let total = usage_formats::table.filter(of_organization).count().get_result(conn)?;
            let ordered = newest_of!(organization)
                .order((usage_formats::created_at, usage_formats::format_ref))
                .limit(i64::from(limit))
                .offset(skip);
            Ok((ordered.select(VersionRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: rows.into_iter().map(VersionRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}
