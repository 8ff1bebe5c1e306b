//! Webhook endpoints, their secrets, and deliveries of notifications.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::notification::{NotificationType, Subject};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{
    DeliveryBacklog, DeliveryCounts, DeliveryFilter, DeliveryLease, ListedDelivery, Lock, ReplayCandidate, ReplayRange,
    StoreResult, WebhookDeliveries, WebhookEndpoints,
};
use billing_domain::refs::{CustomerId, CustomerRef, EndpointRef, NotificationRef, OrganizationId, ServerRef};
use billing_domain::webhook::{
    AttemptOutcome, Delivery, DeliveryAttempt, DeliveryState, EndpointProfile, EventType, SealedWebhookSecret, WebhookEndpoint,
};
use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{counted, limits, stored};
use crate::in_list::{Value, one_of_ids, one_of_rows};
use crate::row::{Cell, Row, to_json};
use crate::schema::{notifications, webhook_deliveries, webhook_endpoints, webhook_secrets};
use crate::sql_types::{Bound, Id, JsonText, Ts};
use crate::statement::Statement;
use crate::text_value::{self, TextValue as _};
use crate::tx::{Connection, Transaction, load_held, with_conn};
use crate::written_rows::{Columns, InsertRows, checked_column, column};

/// Makes an existing delivery pending again. Its earlier attempts stay listed.
const SCHEDULED_AGAIN: &str = " ON CONFLICT (endpoint_id, notification_id) DO UPDATE SET state = excluded.state, \
    attempt = excluded.attempt, due_at = excluded.due_at, updated_at = excluded.updated_at, lease_by = NULL, lease_until = NULL";
/// The beginning of the condition that a notification is one of an organization. On a cluster, deliveries and notifications are not
/// at the same nodes, so the notifications are looked up first.
const OF_NOTIFICATIONS: &str = "notification_id IN (SELECT n.notification_id FROM notifications n WHERE n.organization_id = ";
/// The condition of the index of pending deliveries. With a bound value, SQLite does not use the index.
const PENDING: &str = "state = 'PENDING'";

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_endpoints)]
struct EndpointRow {
    organization_id: Cell<Uuid>,
    endpoint_id: Cell<Uuid>,
    url: String,
    event_types: JsonText,
    customer_refs: Option<JsonText>,
    description: Option<String>,
    enabled: bool,
    disabled_reason: Option<String>,
    paused_until: Option<Cell<Timestamp>>,
    pauses: i32,
    failing_since: Option<Cell<Timestamp>>,
    failures: i64,
    last_delivered_at: Option<Cell<Timestamp>>,
    notification_count: i64,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = webhook_endpoints, treat_none_as_null = true)]
struct EndpointColumns {
    url: String,
    event_types: JsonText,
    customer_refs: Option<JsonText>,
    description: Option<String>,
    enabled: bool,
    disabled_reason: Option<String>,
    paused_until: Option<Bound<Timestamp>>,
    pauses: i32,
    failing_since: Option<Bound<Timestamp>>,
    failures: i64,
    last_delivered_at: Option<Bound<Timestamp>>,
    notification_count: i64,
    created_at: Bound<Timestamp>,
    updated_at: Bound<Timestamp>,
}

impl EndpointRow {
    fn read(self) -> StoreResult<WebhookEndpoint> {
        let endpoint_id = Row::new("webhook_endpoints", "").cell("endpoint_id", self.endpoint_id)?;
        let row = Row::new("webhook_endpoints", endpoint_id);
        let event_types: Vec<String> = row.json("event_types", &self.event_types)?;
        let event_types =
            event_types.iter().map(|text| row.leaf::<EventType>("event_types", text)).collect::<StoreResult<_>>()?;
        let customer_refs: Option<Vec<String>> = self.customer_refs.map(|refs| row.json("customer_refs", &refs)).transpose()?;
        let customer_refs = customer_refs
            .map(|refs| refs.iter().map(|text| row.leaf::<CustomerRef>("customer_refs", text)).collect::<StoreResult<_>>())
            .transpose()?;
        Ok(WebhookEndpoint {
            endpoint_ref: EndpointRef::from_uuid(endpoint_id),
            organization: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            profile: EndpointProfile {
                url: row.leaf("url", &self.url)?,
                event_types,
                customer_refs,
                enabled: self.enabled,
                description: row.optional_leaf("description", self.description.as_deref())?,
            },
            disabled_reason: row.optional_leaf("disabled_reason", self.disabled_reason.as_deref())?,
            paused_until: row.optional("paused_until", self.paused_until)?,
            pauses: stored(self.pauses)?,
            failing_since: row.optional("failing_since", self.failing_since)?,
            failures: counted(self.failures)?,
            last_delivered_at: row.optional("last_delivered_at", self.last_delivered_at)?,
            notification_count: counted(self.notification_count)?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

impl EndpointColumns {
    fn of(endpoint: &WebhookEndpoint) -> StoreResult<Self> {
        let EndpointProfile { url, event_types, customer_refs, enabled, description } = &endpoint.profile;
        let event_types: Vec<&str> = event_types.iter().map(EventType::as_str).collect();
        let customer_refs: Option<Vec<&str>> = customer_refs.as_ref().map(|refs| refs.iter().map(CustomerRef::as_str).collect());
        Ok(Self {
            url: url.as_str().to_owned(),
            event_types: to_json(&event_types)?,
            customer_refs: customer_refs.as_ref().map(to_json).transpose()?,
            description: description.as_ref().map(|text| text.as_str().to_owned()),
            enabled: *enabled,
            disabled_reason: endpoint.disabled_reason.map(|reason| reason.as_str().to_owned()),
            paused_until: endpoint.paused_until.map(Bound),
            pauses: stored(endpoint.pauses)?,
            failing_since: endpoint.failing_since.map(Bound),
            failures: stored(endpoint.failures)?,
            last_delivered_at: endpoint.last_delivered_at.map(Bound),
            notification_count: stored(endpoint.notification_count)?,
            created_at: Bound(endpoint.created_at),
            updated_at: Bound(endpoint.updated_at),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_secrets)]
struct SecretRow {
    endpoint_id: Cell<Uuid>,
    kid: String,
    secret: Vec<u8>,
    created_at: Cell<Timestamp>,
    expires_at: Option<Cell<Timestamp>>,
}

impl SecretRow {
    fn read(self) -> StoreResult<(EndpointRef, SealedWebhookSecret)> {
        let Self { endpoint_id, kid, secret, created_at, expires_at } = self;
        let endpoint_id = Row::new("webhook_secrets", "").cell("endpoint_id", endpoint_id)?;
        let row = Row::new("webhook_secrets", format!("{endpoint_id} {kid}"));
        let secret = SealedWebhookSecret {
            kid: row.checked("kid", kid.parse::<u32>())?,
            sealed: secret,
            created_at: row.cell("created_at", created_at)?,
            expires_at: row.optional("expires_at", expires_at)?,
        };
        Ok((EndpointRef::from_uuid(endpoint_id), secret))
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries)]
struct DeliveryRow {
    endpoint_id: Cell<Uuid>,
    notification_id: Cell<Uuid>,
    organization_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    position: i64,
    state: String,
    attempt: i32,
    due_at: Option<Cell<Timestamp>>,
    attempts: JsonText,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

/// The columns of a delivery that change.
#[derive(AsChangeset)]
#[diesel(table_name = webhook_deliveries, treat_none_as_null = true)]
struct DeliveryColumns {
    state: String,
    attempt: i32,
    due_at: Option<Bound<Timestamp>>,
    attempts: JsonText,
    updated_at: Bound<Timestamp>,
}

/// An attempt, in one column with the others.
#[derive(Serialize, Deserialize)]
struct AttemptJson {
    #[serde(with = "text_value")]
    at: Timestamp,
    ms: u32,
    status: Option<u16>,
    #[serde(with = "text_value")]
    outcome: AttemptOutcome,
    excerpt: Option<String>,
}

fn attempts_json(attempts: &[DeliveryAttempt]) -> StoreResult<JsonText> {
    let written = |DeliveryAttempt { at, millis, status, outcome, excerpt }: &DeliveryAttempt| AttemptJson {
        at: *at,
        ms: *millis,
        status: *status,
        outcome: *outcome,
        excerpt: excerpt.clone(),
    };
    to_json(&attempts.iter().map(written).collect::<Vec<_>>())
}

impl DeliveryRow {
    fn read(self) -> StoreResult<Delivery> {
        let notification_id = Row::new("webhook_deliveries", "").cell("notification_id", self.notification_id)?;
        let row = Row::new("webhook_deliveries", notification_id);
        let attempts: Vec<AttemptJson> = row.json("attempts", &self.attempts)?;
        let read =
            |AttemptJson { at, ms, status, outcome, excerpt }| DeliveryAttempt { at, millis: ms, status, outcome, excerpt };
        Ok(Delivery {
            endpoint_ref: EndpointRef::from_uuid(row.cell("endpoint_id", self.endpoint_id)?),
            notification_ref: NotificationRef::from_uuid(notification_id),
            organization: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            customer: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            position: counted(self.position)?,
            state: row.leaf("state", &self.state)?,
            attempt: stored(self.attempt)?,
            due_at: row.optional("due_at", self.due_at)?,
            attempts: attempts.into_iter().map(read).collect(),
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

impl DeliveryColumns {
    fn of(delivery: &Delivery) -> StoreResult<Self> {
        Ok(Self {
            state: delivery.state.as_str().to_owned(),
            attempt: stored(delivery.attempt)?,
            due_at: delivery.due_at.map(Bound),
            attempts: attempts_json(&delivery.attempts)?,
            updated_at: Bound(delivery.updated_at),
        })
    }
}

fn columns_of(deliveries: &[Delivery]) -> StoreResult<Columns> {
    Ok(vec![
        ("endpoint_id", column(deliveries, |delivery| delivery.endpoint_ref.as_uuid())),
        ("notification_id", column(deliveries, |delivery| delivery.notification_ref.as_uuid())),
        ("organization_id", column(deliveries, |delivery| delivery.organization.as_uuid())),
        ("customer_id", column(deliveries, |delivery| delivery.customer.as_uuid())),
        ("position", checked_column(deliveries, |delivery| stored::<i64, _>(delivery.position))?),
        ("state", column(deliveries, |delivery| delivery.state.as_str())),
        ("attempt", checked_column(deliveries, |delivery| stored::<i32, _>(delivery.attempt))?),
        ("due_at", column(deliveries, |delivery| delivery.due_at)),
        ("attempts", checked_column(deliveries, |delivery| attempts_json(&delivery.attempts))?),
        ("created_at", column(deliveries, |delivery| delivery.created_at)),
        ("updated_at", column(deliveries, |delivery| delivery.updated_at)),
    ])
}

impl WebhookEndpoints for Transaction<'_> {
    fn insert_webhook_endpoint(&mut self, endpoint: &WebhookEndpoint) -> StoreResult<()> {
        let columns = EndpointColumns::of(endpoint)?;
        with_conn!(self, "webhook_endpoints", |conn| diesel::insert_into(webhook_endpoints::table)
            .values((
                webhook_endpoints::organization_id.eq(Bound(endpoint.organization.as_uuid())),
                webhook_endpoints::endpoint_id.eq(Bound(endpoint.endpoint_ref.as_uuid())),
                &columns,
            ))
            .execute(conn))?;
        Ok(())
    }

    fn update_webhook_endpoint(&mut self, endpoint: &WebhookEndpoint) -> StoreResult<()> {
        let columns = EndpointColumns::of(endpoint)?;
        with_conn!(self, "webhook_endpoints", |conn| diesel::update(
            webhook_endpoints::table.find((Bound(endpoint.organization.as_uuid()), Bound(endpoint.endpoint_ref.as_uuid())))
        )
        .set(&columns)
        .execute(conn))?;
        Ok(())
    }

    fn delete_webhook_endpoint(&mut self, organization: OrganizationId, endpoint_ref: EndpointRef) -> StoreResult<()> {
        let id = endpoint_ref.as_uuid();
        let deleted = with_conn!(self, "webhook_endpoints", |conn| diesel::delete(
            webhook_endpoints::table.find((Bound(organization.as_uuid()), Bound(id)))
        )
        .execute(conn))?;
        // The other tables do not name the organization, so nothing is deleted there for an endpoint of another organization.
        if deleted > 0 {
            with_conn!(self, "webhook_secrets", |conn| diesel::delete(webhook_secrets::table)
                .filter(webhook_secrets::endpoint_id.eq(Bound(id)))
                .execute(conn))?;
            with_conn!(self, "webhook_deliveries", |conn| diesel::delete(webhook_deliveries::table)
                .filter(webhook_deliveries::endpoint_id.eq(Bound(id)))
                .execute(conn))?;
        }
        Ok(())
    }

    fn webhook_endpoint(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
        lock: Option<Lock>,
    ) -> StoreResult<Option<WebhookEndpoint>> {
        let found: Vec<EndpointRow> = load_held!(
            self,
            "webhook_endpoints",
            lock,
            webhook_endpoints::table
                .find((Bound(organization.as_uuid()), Bound(endpoint_ref.as_uuid())))
                .select(EndpointRow::as_select())
        )?;
        found.into_iter().next().map(EndpointRow::read).transpose()
    }

    fn try_lock_webhook_endpoint(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
    ) -> StoreResult<Option<WebhookEndpoint>> {
        let key = (Bound(organization.as_uuid()), Bound(endpoint_ref.as_uuid()));
        let found: QueryResult<Vec<EndpointRow>> = match &mut self.connection {
            Connection::Sqlite(connection) => {
                webhook_endpoints::table.find(key).select(EndpointRow::as_select()).load(*connection)
            }
            Connection::Postgres(connection) => {
                let query = webhook_endpoints::table.find(key).select(EndpointRow::as_select());
                query.for_update().skip_locked().load(*connection)
            }
        };
        let found = found.map_err(|error| self.failed("webhook_endpoints", &error))?;
        found.into_iter().next().map(EndpointRow::read).transpose()
    }

    fn webhook_endpoints(&mut self, organization: OrganizationId) -> StoreResult<Vec<WebhookEndpoint>> {
        let rows: Vec<EndpointRow> = with_conn!(self, "webhook_endpoints", |conn| webhook_endpoints::table
            .filter(webhook_endpoints::organization_id.eq(Bound(organization.as_uuid())))
            .order((webhook_endpoints::created_at, webhook_endpoints::endpoint_id))
            .select(EndpointRow::as_select())
            .load(conn))?;
        rows.into_iter().map(EndpointRow::read).collect()
    }

    fn put_webhook_secret(&mut self, endpoint_ref: EndpointRef, secret: &SealedWebhookSecret) -> StoreResult<()> {
        let expires_at = secret.expires_at.map(Bound);
        with_conn!(self, "webhook_secrets", |conn| diesel::insert_into(webhook_secrets::table)
            .values((
                webhook_secrets::endpoint_id.eq(Bound(endpoint_ref.as_uuid())),
                webhook_secrets::kid.eq(secret.kid.to_string()),
                webhook_secrets::secret.eq(secret.sealed.as_slice()),
                webhook_secrets::created_at.eq(Bound(secret.created_at)),
                webhook_secrets::expires_at.eq(expires_at),
            ))
            .on_conflict((webhook_secrets::endpoint_id, webhook_secrets::kid))
            .do_update()
            .set((webhook_secrets::secret.eq(secret.sealed.as_slice()), webhook_secrets::expires_at.eq(expires_at)))
            .execute(conn))?;
        Ok(())
    }

    fn delete_webhook_secret(&mut self, endpoint_ref: EndpointRef, kid: u32) -> StoreResult<()> {
        with_conn!(self, "webhook_secrets", |conn| diesel::delete(
            webhook_secrets::table.find((Bound(endpoint_ref.as_uuid()), kid.to_string()))
        )
        .execute(conn))?;
        Ok(())
    }

    fn webhook_secrets(&mut self, endpoints: &[EndpointRef]) -> StoreResult<Vec<(EndpointRef, SealedWebhookSecret)>> {
        let ids: Vec<Uuid> = endpoints.iter().map(|endpoint_ref| endpoint_ref.as_uuid()).collect();
        let rows: Vec<SecretRow> = with_conn!(self, "webhook_secrets", |conn| webhook_secrets::table
            .filter(one_of_ids(webhook_secrets::endpoint_id, ids))
            .select(SecretRow::as_select())
            .load(conn))?;
        let mut secrets: Vec<_> = rows.into_iter().map(SecretRow::read).collect::<StoreResult<_>>()?;
        // The identifiers are numbers, which the column orders as texts.
        secrets.sort_by_key(|(endpoint_ref, secret)| (*endpoint_ref, secret.kid));
        Ok(secrets)
    }
}

/// A row of the due endpoints.
type DueEndpoint = (Cell<Uuid>, Cell<Uuid>);

impl WebhookDeliveries for Transaction<'_> {
    fn due_webhook_endpoints(&mut self, now: Timestamp, limit: u32) -> StoreResult<Vec<(OrganizationId, EndpointRef)>> {
        let mut s: Statement<(Id, Id)> = Statement::new(
            "SELECT e.organization_id, e.endpoint_id FROM webhook_endpoints e WHERE e.enabled \
             AND (e.paused_until IS NULL OR e.paused_until <= ",
        );
        s.ts(now).sql(
            ") AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.endpoint_id AND d.state = 'PENDING' \
             AND d.due_at <= ",
        );
        s.ts(now).sql(
            ") AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.endpoint_id \
             AND d.lease_by IS NOT NULL AND d.lease_until > ",
        );
        s.ts(now).sql(
            ") ORDER BY (SELECT MIN(d.due_at) FROM webhook_deliveries d WHERE d.endpoint_id = e.endpoint_id \
             AND d.state = 'PENDING'), e.endpoint_id LIMIT ",
        );
        s.number(i64::from(limit));
        let rows: Vec<DueEndpoint> = with_conn!(self, "webhook_endpoints", |conn| s.load(conn))?;
        let row = Row::new("webhook_endpoints", "");
        let read = |(organization, endpoint): DueEndpoint| {
            let organization = OrganizationId::from_uuid(row.cell("organization_id", organization)?);
            Ok((organization, EndpointRef::from_uuid(row.cell("endpoint_id", endpoint)?)))
        };
        rows.into_iter().map(read).collect()
    }

    fn has_leased_deliveries(&mut self, endpoint_ref: EndpointRef, now: Timestamp) -> StoreResult<bool> {
        with_conn!(self, "webhook_deliveries", |conn| {
            let leased = webhook_deliveries::table
                .filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())))
                .filter(webhook_deliveries::lease_by.is_not_null())
                .filter(webhook_deliveries::lease_until.gt(Bound(now)));
            diesel::select(exists(leased)).get_result(conn)
        })
    }

    fn claim_webhook_deliveries(
        &mut self,
        endpoint_ref: EndpointRef,
        lease: DeliveryLease,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Delivery>> {
        let rows: Vec<DeliveryRow> = with_conn!(self, "webhook_deliveries", |conn| webhook_deliveries::table
            .filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())))
            .filter(sql::<Bool>(PENDING))
            .filter(webhook_deliveries::due_at.le(Bound(now)))
            .order((webhook_deliveries::due_at, webhook_deliveries::position))
            .limit(i64::from(limit))
            .select(DeliveryRow::as_select())
            .load(conn))?;
        let deliveries: Vec<Delivery> = rows.into_iter().map(DeliveryRow::read).collect::<StoreResult<_>>()?;
        let ids: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.notification_ref.as_uuid()).collect();
        if !ids.is_empty() {
            with_conn!(self, "webhook_deliveries", |conn| diesel::update(webhook_deliveries::table)
                .filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())))
                .filter(one_of_ids(webhook_deliveries::notification_id, ids))
                .set((
                    webhook_deliveries::lease_by.eq(Some(Bound(lease.by.as_uuid()))),
                    webhook_deliveries::lease_until.eq(Some(Bound(lease.until))),
                ))
                .execute(conn))?;
        }
        Ok(deliveries)
    }

    fn notification_bodies(&mut self, wanted: &[(CustomerId, NotificationRef)]) -> StoreResult<Vec<(NotificationRef, String)>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let keys = wanted.iter().map(|(customer, id)| vec![Value::Id(customer.as_uuid()), Value::Id(id.as_uuid())]);
        let rows: Vec<(Cell<Uuid>, String)> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(one_of_rows("customer_id, notification_id", keys).on_nodes(self.is_spread))
            .select((notifications::notification_id, notifications::body))
            .load(conn))?;
        let row = Row::new("notifications", "");
        let read = |(id, body): (Cell<Uuid>, String)| Ok((NotificationRef::from_uuid(row.cell("notification_id", id)?), body));
        rows.into_iter().map(read).collect()
    }

    fn record_webhook_delivery(&mut self, delivery: &Delivery, by: ServerRef, attempt: u32) -> StoreResult<bool> {
        let (columns, attempt) = (DeliveryColumns::of(delivery)?, stored::<i32, _>(attempt)?);
        let changed = with_conn!(self, "webhook_deliveries", |conn| diesel::update(
            webhook_deliveries::table
                .find((Bound(delivery.endpoint_ref.as_uuid()), Bound(delivery.notification_ref.as_uuid())))
                .filter(webhook_deliveries::lease_by.eq(Bound(by.as_uuid())))
                .filter(webhook_deliveries::attempt.eq(attempt))
        )
        .set((
            &columns,
            webhook_deliveries::lease_by.eq(None::<Bound<Uuid>>),
            webhook_deliveries::lease_until.eq(None::<Bound<Timestamp>>),
        ))
        .execute(conn))?;
        Ok(changed > 0)
    }

    fn cancel_webhook_deliveries(&mut self, endpoint_ref: EndpointRef, now: Timestamp) -> StoreResult<u64> {
        let cancelled = with_conn!(self, "webhook_deliveries", |conn| diesel::update(webhook_deliveries::table)
            .filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())))
            .filter(sql::<Bool>(PENDING))
            .set((
                webhook_deliveries::state.eq(DeliveryState::Cancelled.as_str()),
                webhook_deliveries::due_at.eq(None::<Bound<Timestamp>>),
                webhook_deliveries::lease_by.eq(None::<Bound<Uuid>>),
                webhook_deliveries::lease_until.eq(None::<Bound<Timestamp>>),
                webhook_deliveries::updated_at.eq(Bound(now)),
            ))
            .execute(conn))?;
        stored(cancelled)
    }

    fn replay_candidates(
        &mut self,
        organization: OrganizationId,
        endpoint_ref: EndpointRef,
        range: &ReplayRange,
        limit: u32,
    ) -> StoreResult<Vec<ReplayCandidate>> {
        type Candidate = (Cell<Uuid>, Cell<Uuid>, String, Option<i64>);
        let rows: Vec<Candidate> = with_conn!(self, "notifications", |conn| {
            let mut query = notifications::table
                .filter(notifications::organization_id.eq(Bound(organization.as_uuid())))
                .filter(notifications::position.is_not_null())
                .order(notifications::position)
                .limit(i64::from(limit))
                .select((
                    notifications::notification_id,
                    notifications::customer_id,
                    notifications::kind,
                    notifications::position,
                ))
                .into_boxed::<Db>();
            match range {
                ReplayRange::Positions(after, up_to) => {
                    let bound = |position: u64| i64::try_from(position).unwrap_or(i64::MAX);
                    query =
                        query.filter(notifications::position.gt(bound(*after))).filter(notifications::position.le(bound(*up_to)));
                }
                ReplayRange::Notifications(wanted) => {
                    query = query.filter(one_of_ids(notifications::notification_id, wanted.iter().map(|id| id.as_uuid())));
                }
            }
            query.load(conn)
        })?;
        let row = Row::new("notifications", "");
        let read = |(id, customer, kind, position): Candidate| {
            let id = row.cell("notification_id", id)?;
            let row = Row::new("notifications", id);
            let position = position.ok_or_else(|| row.corrupt("position", "is missing"))?;
            Ok(ReplayCandidate {
                notification_ref: NotificationRef::from_uuid(id),
                customer: CustomerId::from_uuid(row.cell("customer_id", customer)?),
                kind: row.leaf("kind", &kind)?,
                position: counted(position)?,
                state: None,
            })
        };
        let mut candidates: Vec<ReplayCandidate> = rows.into_iter().map(read).collect::<StoreResult<_>>()?;
        let ids: Vec<Uuid> = candidates.iter().map(|candidate| candidate.notification_ref.as_uuid()).collect();
        let states: Vec<(Cell<Uuid>, String)> = with_conn!(self, "webhook_deliveries", |conn| webhook_deliveries::table
            .filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())))
            .filter(one_of_ids(webhook_deliveries::notification_id, ids))
            .select((webhook_deliveries::notification_id, webhook_deliveries::state))
            .load(conn))?;
        let row = Row::new("webhook_deliveries", "");
        let read = |(id, state): (Cell<Uuid>, String)| {
            Ok((NotificationRef::from_uuid(row.cell("notification_id", id)?), row.leaf("state", &state)?))
        };
        let states: BTreeMap<NotificationRef, DeliveryState> = states.into_iter().map(read).collect::<StoreResult<_>>()?;
        for candidate in &mut candidates {
            candidate.state = states.get(&candidate.notification_ref).copied();
        }
        Ok(candidates)
    }

    fn schedule_webhook_deliveries(&mut self, deliveries: &[Delivery]) -> StoreResult<()> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let insert = InsertRows::new("webhook_deliveries", columns_of(deliveries)?).on_conflict(SCHEDULED_AGAIN);
        self.insert_rows(insert).map(drop)
    }

    fn webhook_deliveries(
        &mut self,
        organization: OrganizationId,
        filter: &DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ListedDelivery>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<DeliveryRow>, i64) = with_conn!(self, "webhook_deliveries", |conn| {
            let narrowed = || {
                let own = webhook_deliveries::organization_id.eq(Bound(organization.as_uuid()));
                let mut query = webhook_deliveries::table.filter(own).into_boxed::<Db>();
                if let Some(endpoint_ref) = filter.endpoint_ref {
                    query = query.filter(webhook_deliveries::endpoint_id.eq(Bound(endpoint_ref.as_uuid())));
                }
                if let Some(state) = filter.state {
                    query = query.filter(webhook_deliveries::state.eq(state.as_str()));
                }
                if let Some(from) = filter.from {
                    query = query.filter(webhook_deliveries::created_at.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(webhook_deliveries::created_at.lt(Bound(to)));
                }
                if let Some(kind) = filter.kind {
                    let of_kind = sql::<Bool>(OF_NOTIFICATIONS).bind::<Id, _>(Bound(organization.as_uuid()));
                    query = query.filter(of_kind.sql(" AND n.kind = ").bind::<Text, _>(kind.to_text()).sql(")"));
                }
                if let Some(subject) = filter.subject {
                    let about = sql::<Bool>(OF_NOTIFICATIONS).bind::<Id, _>(Bound(organization.as_uuid()));
                    query = query.filter(about.sql(" AND n.subject = ").bind::<Text, _>(subject.to_text()).sql(")"));
                }
                query
            };
            let total = narrowed().count().get_result(conn)?;
            let order = (webhook_deliveries::position.desc(), webhook_deliveries::endpoint_id.desc());
            let rows = narrowed().order(order).limit(limit).offset(offset).select(DeliveryRow::as_select()).load(conn)?;
            Ok((rows, total))
        })?;
        let deliveries: Vec<Delivery> = rows.into_iter().map(DeliveryRow::read).collect::<StoreResult<_>>()?;
        let facts = self.notification_facts(&deliveries)?;
        let listed = deliveries.into_iter().filter_map(|delivery| {
            let (kind, subject, sequence) = *facts.get(&delivery.notification_ref)?;
            Some(ListedDelivery { delivery, kind, subject, sequence })
        });
        Ok(Page { items: listed.collect(), total: counted(total)? })
    }

    fn webhook_delivery_counts(&mut self, endpoints: &[EndpointRef]) -> StoreResult<Vec<(EndpointRef, DeliveryCounts)>> {
        let mut counts: BTreeMap<EndpointRef, DeliveryCounts> = BTreeMap::new();
        for endpoint_ref in endpoints {
            let mut s: Statement<(BigInt, BigInt)> =
                Statement::new("SELECT (SELECT count(*) FROM webhook_deliveries WHERE state = 'PENDING' AND endpoint_id = ");
            s.id(endpoint_ref.as_uuid());
            s.sql("), (SELECT count(*) FROM webhook_deliveries WHERE state = 'FAILED' AND endpoint_id = ");
            s.id(endpoint_ref.as_uuid()).sql(")");
            let (pending, failed): (i64, i64) = with_conn!(self, "webhook_deliveries", |conn| s.get_result(conn))?;
            let found = DeliveryCounts { pending: counted(pending)?, failed: counted(failed)? };
            if found != DeliveryCounts::default() {
                counts.insert(*endpoint_ref, found);
            }
        }
        Ok(counts.into_iter().collect())
    }

    fn webhook_backlog(&mut self) -> StoreResult<DeliveryBacklog> {
        let s: Statement<(BigInt, Nullable<Ts>)> =
            Statement::new("SELECT count(*), min(created_at) FROM webhook_deliveries WHERE state = 'PENDING'");
        let (pending, oldest): (i64, Option<Cell<Timestamp>>) =
            with_conn!(self, "webhook_deliveries", |conn| s.get_result(conn))?;
        let oldest = Row::new("webhook_deliveries", "").optional("created_at", oldest)?;
        Ok(DeliveryBacklog { pending: counted(pending)?, oldest })
    }
}

impl Transaction<'_> {
    /// Returns type, subject and sequence of the notifications of deliveries.
    fn notification_facts(
        &mut self,
        deliveries: &[Delivery],
    ) -> StoreResult<BTreeMap<NotificationRef, (NotificationType, Subject, u64)>> {
        if deliveries.is_empty() {
            return Ok(BTreeMap::new());
        }
        let key =
            |delivery: &Delivery| vec![Value::Id(delivery.customer.as_uuid()), Value::Id(delivery.notification_ref.as_uuid())];
        let rows: Vec<(Cell<Uuid>, String, String, i64)> = with_conn!(self, "notifications", |conn| notifications::table
            .filter(one_of_rows("customer_id, notification_id", deliveries.iter().map(key)).on_nodes(self.is_spread))
            .select((notifications::notification_id, notifications::kind, notifications::subject, notifications::sequence))
            .load(conn))?;
        let read = |(id, kind, subject, sequence): (Cell<Uuid>, String, String, i64)| {
            let id = Row::new("notifications", "").cell("notification_id", id)?;
            let row = Row::new("notifications", id);
            let facts = (row.leaf("kind", &kind)?, row.leaf("subject", &subject)?, counted(sequence)?);
            Ok((NotificationRef::from_uuid(id), facts))
        };
        rows.into_iter().map(read).collect()
    }
}
