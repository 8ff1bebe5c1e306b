//! Notifications, their numbering, and the deliveries that it creates.

use std::sync::atomic::Ordering;

use billing_domain::calendar::Timestamp;
use billing_domain::ledger::BillingFailure;
use billing_domain::notification::epoch::{Epoch, Restore};
use billing_domain::notification::numbering::{Subscription, Unnumbered};
use billing_domain::notification::{Notice, Notification, NotificationType, epoch};
use billing_domain::ports::{Lock, NewDelivery, NotificationFilter, Notifications, NumberedNotification, StoreResult};
use billing_domain::refs::{
    ContractKey, CustomerId, DocumentKey, DocumentRef, EndpointRef, NotificationRef, OrganizationId, ServerRef,
};
use diesel::dsl::max;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use uuid::Uuid;

use super::runs::BillingFailureJson;
use super::stored;
use crate::row::{Cell, Row, to_json};
use crate::schema::{
    contracts, documents, notices, notification_heads, notifications, restores, webhook_deliveries, webhook_endpoints,
};
use crate::sql_types::{Bound, Id, JsonText, Ts};
use crate::statement::Statement;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, load_held, with_conn};
use crate::written_rows::{InsertRows, UpdateRows, checked_column, column};

/// The state of a delivery that is not sent yet.
const PENDING: &str = "PENDING";
/// The attempts of a delivery that is not sent yet.
const NO_ATTEMPTS: &str = "[]";

/// The columns of a notification, in the order of [`Fields`].
const SELECTED: &str =
    "SELECT notification_id, customer_id, subject, sequence, kind, body, created_at, position FROM notifications";
type SqlColumns = (Id, Id, Text, BigInt, Text, Text, Ts, Nullable<BigInt>);
type Fields = (Cell<Uuid>, Cell<Uuid>, String, i64, String, String, Cell<Timestamp>, Option<i64>);

/// Returns the stored customer of a subject. A subject without a customer has the organization.
fn stored_customer(organization: OrganizationId, customer_id: Option<CustomerId>) -> Uuid {
    customer_id.map_or(organization.as_uuid(), CustomerId::as_uuid)
}

/// Returns the customer of a subject from the stored one.
fn customer_of(organization: OrganizationId, stored: Uuid) -> Option<CustomerId> {
    (stored != organization.as_uuid()).then(|| CustomerId::from_uuid(stored))
}

fn read(organization: OrganizationId, fields: Fields) -> StoreResult<Notification> {
    let (notification_id, customer_id, subject, sequence, kind, body, created_at, position) = fields;
    let id = Row::new("notifications", "").cell("notification_id", notification_id)?;
    let row = Row::new("notifications", id);
    Ok(Notification {
        notification_ref: NotificationRef::from_uuid(id),
        customer_id: customer_of(organization, row.cell("customer_id", customer_id)?),
        subject: row.leaf("subject", &subject)?,
        sequence: row.checked("sequence", u64::try_from(sequence))?,
        kind: row.leaf("kind", &kind)?,
        body,
        created_at: row.cell("created_at", created_at)?,
        position: position.map(|position| row.checked("position", u64::try_from(position))).transpose()?,
    })
}

impl Notifications for Transaction<'_> {
    fn insert_notifications(&mut self, organization: OrganizationId, notifications: &[Notification]) -> StoreResult<()> {
        if notifications.is_empty() {
            return Ok(());
        }
        let customer = |notification: &Notification| stored_customer(organization, notification.customer_id);
        let columns = vec![
            ("notification_id", column(notifications, |notification| notification.notification_ref.as_uuid())),
            ("customer_id", column(notifications, customer)),
            ("organization_id", column(notifications, |_| organization.as_uuid())),
            ("subject", column(notifications, |notification| notification.subject.to_text())),
            ("sequence", checked_column(notifications, |notification| stored::<i64, _>(notification.sequence))?),
            ("kind", column(notifications, |notification| notification.kind.as_str())),
            ("body", column(notifications, |notification| notification.body.as_str())),
            ("created_at", column(notifications, |notification| notification.created_at)),
        ];
        // A duplicate sequence is an error, so nothing is skipped.
        self.insert_rows(InsertRows::new("notifications", columns).on_conflict("")).map(drop)
    }

    fn notifications(
        &mut self,
        organization: OrganizationId,
        filter: &NotificationFilter,
        after: u64,
        limit: u32,
    ) -> StoreResult<Vec<Notification>> {
        let mut s: Statement<SqlColumns> = Statement::new(SELECTED);
        s.sql(" WHERE organization_id = ").id(organization.as_uuid());
        s.sql(" AND position > ").number(i64::try_from(after).unwrap_or(i64::MAX));
        let NotificationFilter { kind, subject, customer_id } = filter;
        if let Some(kind) = kind {
            s.sql(" AND kind = ").text(kind.as_str());
        }
        if let Some(subject) = subject {
            s.sql(" AND subject = ").text(subject.to_text());
        }
        if let Some(customer_id) = customer_id {
            s.sql(" AND customer_id = ").id(customer_id.as_uuid());
        }
        s.sql(" ORDER BY position LIMIT ").number(i64::from(limit));
        let rows: Vec<Fields> = with_conn!(self, "notifications", |conn| s.load(conn))?;
        rows.into_iter().map(|fields| read(organization, fields)).collect()
    }

    fn notification(
        &mut self,
        organization: OrganizationId,
        notification_ref: NotificationRef,
    ) -> StoreResult<Option<Notification>> {
        let mut s: Statement<SqlColumns> = Statement::new(SELECTED);
        s.sql(" WHERE organization_id = ").id(organization.as_uuid());
        s.sql(" AND notification_id = ").id(notification_ref.as_uuid());
        let rows: Vec<Fields> = with_conn!(self, "notifications", |conn| s.load(conn))?;
        rows.into_iter().next().map(|fields| read(organization, fields)).transpose()
    }

    fn organizations_to_number(&mut self) -> StoreResult<Vec<OrganizationId>> {
        let rows: Vec<Cell<Uuid>> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(notifications::position.is_null())
            .select(notifications::organization_id)
            .distinct()
            .load(conn))?;
        let row = Row::new("notifications", "");
        rows.into_iter().map(|id| Ok(OrganizationId::from_uuid(row.cell("organization_id", id)?))).collect()
    }

    fn lease_positions(
        &mut self,
        organization: OrganizationId,
        server: ServerRef,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<u64>> {
        // The statement locks the row, also when it only extends the lease.
        let mut s: Statement<BigInt> =
            Statement::new("INSERT INTO notification_heads (organization_id, position, lease_by, lease_until) VALUES (");
        s.id(organization.as_uuid()).sql(", 0, ").id(server.as_uuid()).sql(", ").ts(until);
        s.sql(
            ") ON CONFLICT (organization_id) DO UPDATE SET lease_by = excluded.lease_by, lease_until = excluded.lease_until \
             WHERE notification_heads.lease_until IS NULL OR notification_heads.lease_by = excluded.lease_by \
             OR notification_heads.lease_until <= ",
        );
        s.ts(now).sql(" RETURNING position");
        let positions: Vec<i64> = with_conn!(self, "notification_heads", |conn| s.load(conn))?;
        let row = Row::new("notification_heads", organization);
        positions.first().map(|position| row.checked("position", u64::try_from(*position))).transpose()
    }

    fn unnumbered_notifications(&mut self, organization: OrganizationId, limit: u32) -> StoreResult<Vec<Unnumbered>> {
        type Unread = (Cell<Uuid>, Cell<Uuid>, String, i64, String, bool);
        let mut s: Statement<(Id, Id, Text, BigInt, Text, Bool)> = Statement::new(
            "SELECT n.notification_id, n.customer_id, n.subject, n.sequence, n.kind, EXISTS (SELECT 1 FROM notifications p \
             WHERE p.customer_id = n.customer_id AND p.subject = n.subject AND p.sequence = n.sequence - 1 \
             AND p.position IS NULL) FROM notifications n WHERE n.organization_id = ",
        );
        s.id(organization.as_uuid()).sql(" AND n.position IS NULL ORDER BY n.notification_id LIMIT ").number(i64::from(limit));
        let rows: Vec<Unread> = with_conn!(self, "notifications", |conn| s.load(conn))?;
        let read = |(id, customer_id, subject, sequence, kind, is_after_unnumbered): Unread| {
            let id = Row::new("notifications", "").cell("notification_id", id)?;
            let row = Row::new("notifications", id);
            Ok(Unnumbered {
                notification_ref: NotificationRef::from_uuid(id),
                customer_id: customer_of(organization, row.cell("customer_id", customer_id)?),
                subject: row.leaf("subject", &subject)?,
                sequence: row.checked("sequence", u64::try_from(sequence))?,
                kind: row.leaf("kind", &kind)?,
                is_after_unnumbered,
            })
        };
        rows.into_iter().map(read).collect()
    }

    fn number_notifications(&mut self, organization: OrganizationId, numbered: &[NumberedNotification]) -> StoreResult<()> {
        let Some(last) = numbered.last() else { return Ok(()) };
        let last: i64 = stored(last.position)?;
        let owner = organization.as_uuid();
        let keys = vec![
            ("customer_id", column(numbered, |one| stored_customer(organization, one.customer_id))),
            ("notification_id", column(numbered, |one| one.notification_ref.as_uuid())),
            ("organization_id", column(numbered, |_| owner)),
        ];
        let changes = vec![("position", checked_column(numbered, |one| stored::<i64, _>(one.position))?)];
        let update = UpdateRows::new("notifications", keys, changes).only(" AND notifications.position IS NULL");
        if self.update_rows(update)? < numbered.len() {
            return self.refuse("notifications: one that is to be numbered has a position".to_owned());
        }
        with_conn!(self, "notification_heads", |conn| diesel::update(notification_heads::table.find(Bound(owner)))
            .set(notification_heads::position.eq(last))
            .execute(conn))?;
        Ok(())
    }

    fn webhook_subscriptions(&mut self, organization: OrganizationId) -> StoreResult<Vec<Subscription>> {
        // A locking statement cannot go to several nodes.
        let lock = (!self.is_spread).then_some(Lock::Shared);
        let rows: Vec<(Cell<Uuid>, JsonText, Option<JsonText>)> = load_held!(
            self,
            "webhook_endpoints",
            lock,
            webhook_endpoints::table
                .filter(webhook_endpoints::organization_id.eq(Bound(organization.as_uuid())))
                .filter(webhook_endpoints::enabled.eq(true))
                .order(webhook_endpoints::endpoint_id)
                .select((webhook_endpoints::endpoint_id, webhook_endpoints::event_types, webhook_endpoints::customer_refs))
        )?;
        let read = |(id, event_types, customer_refs): (Cell<Uuid>, JsonText, Option<JsonText>)| {
            let id = Row::new("webhook_endpoints", "").cell("endpoint_id", id)?;
            let row = Row::new("webhook_endpoints", id);
            let refs: Option<Vec<String>> = customer_refs.map(|refs| row.json("customer_refs", &refs)).transpose()?;
            let refs = refs.map(|refs| refs.iter().map(|text| row.leaf("customer_refs", text)).collect::<StoreResult<_>>());
            Ok(Subscription {
                endpoint_ref: EndpointRef::from_uuid(id),
                event_types: row.json("event_types", &event_types)?,
                customer_refs: refs.transpose()?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    fn insert_deliveries(&mut self, organization: OrganizationId, deliveries: &[NewDelivery], at: Timestamp) -> StoreResult<()> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let customer = |one: &NewDelivery| stored_customer(organization, one.notification.customer_id);
        let columns = vec![
            ("endpoint_id", column(deliveries, |one| one.endpoint_ref.as_uuid())),
            ("notification_id", column(deliveries, |one| one.notification.notification_ref.as_uuid())),
            ("organization_id", column(deliveries, |_| organization.as_uuid())),
            ("customer_id", column(deliveries, customer)),
            ("position", checked_column(deliveries, |one| stored::<i64, _>(one.notification.position))?),
            ("state", column(deliveries, |_| PENDING)),
            ("attempt", column(deliveries, |_| 0_i32)),
            ("due_at", column(deliveries, |_| at)),
            ("attempts", column(deliveries, |_| JsonText(NO_ATTEMPTS.to_owned()))),
            ("created_at", column(deliveries, |_| at)),
            ("updated_at", column(deliveries, |_| at)),
        ];
        self.insert_rows(InsertRows::new("webhook_deliveries", columns)).map(drop)
    }

    fn last_position(&mut self, organization: OrganizationId) -> StoreResult<u64> {
        let owner = Bound(organization.as_uuid());
        let head: Option<i64> = with_conn!(self, "notification_heads", |conn| notification_heads::table
            .find(owner)
            .select(notification_heads::position)
            .first(conn)
            .optional())?;
        // The nodes of a distributed database do not commit at the same moment. A client can see a position before the head has
        // it.
        let listed: Option<i64> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(notifications::organization_id.eq(owner))
            .filter(notifications::position.is_not_null())
            .select(max(notifications::position))
            .first(conn))?;
        let last = head.unwrap_or_default().max(listed.unwrap_or_default());
        Row::new("notification_heads", organization).checked("position", u64::try_from(last))
    }

    fn epoch(&mut self) -> StoreResult<Epoch> {
        match self.epoch.load(Ordering::Relaxed).checked_sub(1) {
            Some(number) => Ok(Epoch::new(number)),
            None => Ok(epoch::current(&self.restores()?)),
        }
    }

    fn restores(&mut self) -> StoreResult<Vec<Restore>> {
        let rows: Vec<(i64, Cell<Timestamp>)> =
            with_conn!(self, "restores", |conn| restores::table.order(restores::epoch).load(conn))?;
        let read = |(epoch, restored_to): (i64, Cell<Timestamp>)| {
            let row = Row::new("restores", epoch);
            let number = row.checked("epoch", u64::try_from(epoch))?;
            Ok(Restore { epoch: Epoch::new(number), restored_to: row.cell("restored_to", restored_to)? })
        };
        let restores: Vec<Restore> = rows.into_iter().map(read).collect::<StoreResult<_>>()?;
        self.epoch.store(epoch::current(&restores).number().saturating_add(1), Ordering::Relaxed);
        Ok(restores)
    }

    fn highest_position(&mut self) -> StoreResult<u64> {
        let highest: Option<i64> = with_conn!(self, "notification_heads", |conn| notification_heads::table
            .select(max(notification_heads::position))
            .first(conn))?;
        Row::new("notification_heads", "").checked("position", u64::try_from(highest.unwrap_or_default()))
    }

    fn insert_restore(&mut self, restore: &Restore) -> StoreResult<()> {
        let (epoch, restored_to): (i64, _) = (stored(restore.epoch.number())?, Bound(restore.restored_to));
        with_conn!(self, "restores", |conn| diesel::insert_into(restores::table)
            .values((restores::epoch.eq(epoch), restores::restored_to.eq(restored_to)))
            .execute(conn))?;
        Ok(())
    }

    fn put_notices(&mut self, organization: OrganizationId, notices: &[Notice]) -> StoreResult<()> {
        if notices.is_empty() {
            return Ok(());
        }
        let columns = vec![
            ("customer_id", column(notices, |notice| notice.customer_id.as_uuid())),
            ("subject", column(notices, |notice| notice.subject.to_text())),
            ("kind", column(notices, |notice| notice.kind.as_str())),
            ("organization_id", column(notices, |_| organization.as_uuid())),
            ("at", column(notices, |notice| notice.at)),
        ];
        let insert = InsertRows::new("notices", columns)
            .on_conflict(" ON CONFLICT (customer_id, subject, kind) DO UPDATE SET at = excluded.at");
        self.insert_rows(insert).map(drop)
    }

    fn take_notice(&mut self, organization: OrganizationId, notice: &Notice) -> StoreResult<bool> {
        let key = (Bound(notice.customer_id.as_uuid()), notice.subject.to_text(), notice.kind.as_str());
        let taken = with_conn!(self, "notices", |conn| diesel::delete(notices::table.find(key))
            .filter(notices::organization_id.eq(Bound(organization.as_uuid())))
            .filter(notices::at.eq(Bound(notice.at)))
            .execute(conn))?;
        Ok(taken > 0)
    }

    fn due_notices(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, Notice)>> {
        type Due = (Cell<Uuid>, Cell<Uuid>, String, String, Cell<Timestamp>);
        let rows: Vec<Due> = with_conn!(self, "notices", |conn| {
            let mut query = notices::table
                .filter(notices::at.le(Bound(now)))
                .order((notices::at, notices::customer_id, notices::subject))
                .limit(i64::from(limit))
                .select((notices::organization_id, notices::customer_id, notices::subject, notices::kind, notices::at))
                .into_boxed::<Db>();
            if let Some(organization) = organization {
                query = query.filter(notices::organization_id.eq(Bound(organization.as_uuid())));
            }
            query.load(conn)
        })?;
        let read = |(organization, customer_id, subject, kind, at): Due| {
            let row = Row::new("notices", subject.clone());
            let organization = OrganizationId::from_uuid(row.cell("organization_id", organization)?);
            let notice = Notice {
                customer_id: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
                subject: row.leaf("subject", &subject)?,
                kind: row.leaf("kind", &kind)?,
                at: row.cell("at", at)?,
            };
            Ok((organization, notice))
        };
        rows.into_iter().map(read).collect()
    }

    fn count_document_notification(&mut self, key: DocumentKey) -> StoreResult<()> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let changed = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(id))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .set(documents::notification_count.eq(documents::notification_count + 1_i64))
            .execute(conn))?;
        if changed == 0 { self.refuse(format!("documents {}: it does not exist", key.document)) } else { Ok(()) }
    }

    fn count_contract_notification(&mut self, key: ContractKey) -> StoreResult<()> {
        self.require_contract(key.contract, "count_contract_notification")?;
        let id = (Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid()));
        let changed = with_conn!(self, "contracts", |conn| diesel::update(contracts::table.find(id))
            .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid())))
            .set(contracts::notification_count.eq(contracts::notification_count + 1_i64))
            .execute(conn))?;
        if changed == 0 { self.refuse(format!("contracts {}: it does not exist", key.contract)) } else { Ok(()) }
    }

    fn put_billing_failure(&mut self, key: ContractKey, failure: Option<&BillingFailure>) -> StoreResult<()> {
        self.require_contract(key.contract, "put_billing_failure")?;
        let failures = failure.map(|failure| to_json(&BillingFailureJson::of(failure))).transpose()?;
        let id = (Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid()));
        let changed = with_conn!(self, "contracts", |conn| diesel::update(contracts::table.find(id))
            .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid())))
            .set((
                contracts::failures.eq(failures),
                contracts::failure_told_at.eq(failure.map(|failure| Bound(failure.notified_at))),
            ))
            .execute(conn))?;
        if changed == 0 { self.refuse(format!("contracts {}: it does not exist", key.contract)) } else { Ok(()) }
    }

    fn purge_notifications(&mut self, organization: OrganizationId, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let owner = Bound(organization.as_uuid());
        let rows: Vec<(Option<i64>, Cell<Timestamp>)> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(notifications::organization_id.eq(owner))
            .filter(notifications::position.is_not_null())
            .order(notifications::position)
            .limit(i64::from(limit))
            .select((notifications::position, notifications::created_at))
            .load(conn))?;
        let row = Row::new("notifications", organization);
        let mut last = None;
        for (position, created_at) in rows {
            if row.cell("created_at", created_at)? >= before {
                break;
            }
            last = position;
        }
        let Some(last) = last else { return Ok(0) };
        with_conn!(self, "webhook_deliveries", |conn| diesel::delete(webhook_deliveries::table)
            .filter(webhook_deliveries::organization_id.eq(owner))
            .filter(webhook_deliveries::position.le(last))
            .execute(conn))?;
        let purged = with_conn!(self, "notifications", |conn| diesel::delete(notifications::table)
            .filter(notifications::organization_id.eq(owner))
            .filter(notifications::position.is_not_null())
            .filter(notifications::position.le(Some(last)))
            .execute(conn))?;
        Ok(purged as u64)
    }

    fn oldest_notification(&mut self, organization: OrganizationId) -> StoreResult<Option<Timestamp>> {
        let found: Option<Cell<Timestamp>> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(notifications::organization_id.eq(Bound(organization.as_uuid())))
            .filter(notifications::position.is_not_null())
            .order(notifications::position)
            .select(notifications::created_at)
            .first(conn)
            .optional())?;
        Row::new("notifications", organization).optional("created_at", found)
    }

    fn issued_without_notification(
        &mut self,
        organization: OrganizationId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<Vec<DocumentRef>> {
        let mut s: Statement<Id> = Statement::new("SELECT d.document_id FROM issued_documents d WHERE d.organization_id = ");
        s.id(organization.as_uuid()).sql(" AND d.issued_at >= ").ts(from).sql(" AND d.issued_at < ").ts(to);
        s.sql(
            " AND NOT EXISTS (SELECT 1 FROM notifications n WHERE n.customer_id = d.customer_id \
             AND n.subject = 'document:' || ",
        );
        s.on_postgres("d.document_id::text");
        s.on_sqlite(
            "lower(substr(hex(d.document_id), 1, 8) || '-' || substr(hex(d.document_id), 9, 4) || '-' \
             || substr(hex(d.document_id), 13, 4) || '-' || substr(hex(d.document_id), 17, 4) || '-' \
             || substr(hex(d.document_id), 21))",
        );
        s.sql(" AND n.kind = ").text(NotificationType::DocumentIssued.as_str()).sql(") ORDER BY d.document_id");
        let rows: Vec<Cell<Uuid>> = with_conn!(self, "issued_documents", |conn| s.load(conn))?;
        let row = Row::new("issued_documents", "");
        rows.into_iter().map(|id| Ok(DocumentRef::from_uuid(row.cell("document_id", id)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::Timestamp;
    use billing_domain::ports::{NotificationFilter, Notifications as _};
    use billing_domain::refs::{CustomerId, OrganizationId};
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn the_feed_and_the_numbering_read_their_indexes() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let now = Timestamp::from_micros(0).expect("an instant");
        let all = NotificationFilter::default();
        let of_customer =
            NotificationFilter { customer_id: Some(CustomerId::from_uuid(Uuid::from_u128(2))), ..NotificationFilter::default() };
        let plans = plans_of(|tx| {
            tx.notifications(organization, &all, 0, 100).expect("a page");
            tx.notifications(organization, &of_customer, 0, 100).expect("a page");
            tx.organizations_to_number().expect("organizations");
            tx.unnumbered_notifications(organization, 500).expect("notifications");
            tx.due_notices(None, now, 100).expect("notices");
            tx.oldest_notification(organization).expect("an instant");
        });
        assert_eq!(plans.len(), 6, "{plans:?}");
        for plan in plans {
            assert!(plan.steps.iter().all(|step| !step.starts_with("SCAN n") || step.contains("USING")), "{plan:?}");
        }
    }
}
