//! Administrators, API keys, sessions, revoked tokens and secrets.

use billing_domain::access::{
    AdminSession, Administrator, ApiKey, CodeSource, KnownAddresses, PasswordHash, SealedSecret, SecondFactor, SecretDigest,
    SecretPurpose, SigningSecret, TokenClaims,
};
use billing_domain::calendar::Timestamp;
use billing_domain::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use billing_domain::ports::{Administrators, ApiKeys, Insertion, KeyUse, Lock, Sessions, SigningSecrets, StoreResult, Tokens};
use billing_domain::refs::{AdminRef, ApiKeyRef, OrganizationId, SessionRef};
use billing_domain::text::OneLine;
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use uuid::Uuid;

use super::counted;
use super::update_lists::list_rows;
use crate::in_list::one_of_ids;
use crate::row::{Cell, Row};
use crate::schema::{administrators, api_keys, revoked_tokens, sessions, signing_secrets};
use crate::sql_types::Bound;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, load_held, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = administrators)]
struct AdministratorRow {
    admin_id: Cell<Uuid>,
    organization_id: Cell<Uuid>,
    email: String,
    password_hash: String,
    created_at: Cell<Timestamp>,
    disabled_at: Option<Cell<Timestamp>>,
    role: String,
    one_time_until: Option<Cell<Timestamp>>,
    second_factor_secret: Option<Vec<u8>>,
    second_factor_since: Option<Cell<Timestamp>>,
    second_factor_step: Option<i64>,
    recovery_digests: Option<Vec<u8>>,
    failed_codes: i64,
    known_addresses: Vec<u8>,
    updated_at: Cell<Timestamp>,
}

const DIGEST_BYTES: usize = 32;

impl AdministratorRow {
    fn read(self) -> StoreResult<Administrator> {
        let row = Row::new("administrators", self.admin_id.clone());
        let known = self.known_addresses.chunks(DIGEST_BYTES).map(|bytes| digest(&row, "known_addresses", bytes));
        let known_addresses = KnownAddresses::new(known.collect::<StoreResult<Vec<_>>>()?);
        let since = row.optional("second_factor_since", self.second_factor_since)?;
        let second_factor = match (self.second_factor_secret.map(SealedSecret), since) {
            (None, _) => SecondFactor::Off,
            (Some(secret), None) => SecondFactor::Enrolled(secret),
            (Some(secret), Some(since)) => {
                let digests = self.recovery_digests.unwrap_or_default();
                let recovery = digests.chunks(DIGEST_BYTES).map(|bytes| digest(&row, "recovery_digests", bytes));
                SecondFactor::On(CodeSource {
                    secret,
                    since,
                    last_step: self.second_factor_step.unwrap_or_default(),
                    recovery: recovery.collect::<StoreResult<_>>()?,
                    failed_codes: row.checked("failed_codes", u32::try_from(self.failed_codes))?,
                })
            }
        };
        Ok(Administrator {
            role: row.leaf("role", &self.role)?,
            one_time_until: row.optional("one_time_until", self.one_time_until)?,
            second_factor,
            known_addresses,
            admin_ref: AdminRef::from_uuid(row.cell("admin_id", self.admin_id)?),
            organization: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            email: row.leaf("email", &self.email)?,
            password_hash: PasswordHash(self.password_hash),
            created_at: row.cell("created_at", self.created_at)?,
            disabled_at: row.optional("disabled_at", self.disabled_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

/// The columns of a second factor: secret, activation instant, last step, digests and number of failed codes.
type SecondFactorColumns<'a> = (Option<&'a [u8]>, Option<Bound<Timestamp>>, Option<i64>, Option<Vec<u8>>, i64);

fn second_factor_columns(second_factor: &SecondFactor) -> SecondFactorColumns<'_> {
    match second_factor {
        SecondFactor::Off => (None, None, None, None, 0),
        SecondFactor::Enrolled(secret) => (Some(&secret.0), None, None, None, 0),
        SecondFactor::On(CodeSource { secret, since, last_step, recovery, failed_codes }) => {
            let digests = recovery.iter().flat_map(|digest| digest.0).collect();
            (Some(&secret.0), Some(Bound(*since)), Some(*last_step), Some(digests), i64::from(*failed_codes))
        }
    }
}

fn known_addresses_column(administrator: &Administrator) -> Vec<u8> {
    administrator.known_addresses.as_slice().iter().flat_map(|digest| digest.0).collect()
}

impl Administrators for Transaction<'_> {
    fn insert_administrator(&mut self, administrator: &Administrator) -> StoreResult<Insertion> {
        let (secret, since, step, digests, failed_codes) = second_factor_columns(&administrator.second_factor);
        let inserted = with_conn!(self, "administrators", |conn| diesel::insert_into(administrators::table)
            .values((
                administrators::admin_id.eq(Bound(administrator.admin_ref.as_uuid())),
                administrators::organization_id.eq(Bound(administrator.organization.as_uuid())),
                administrators::email.eq(administrator.email.as_str()),
                administrators::password_hash.eq(&administrator.password_hash.0),
                administrators::created_at.eq(Bound(administrator.created_at)),
                administrators::disabled_at.eq(administrator.disabled_at.map(Bound)),
                administrators::role.eq(administrator.role.to_text()),
                administrators::one_time_until.eq(administrator.one_time_until.map(Bound)),
                administrators::second_factor_secret.eq(secret),
                administrators::second_factor_since.eq(since),
                administrators::second_factor_step.eq(step),
                administrators::recovery_digests.eq(&digests),
                administrators::failed_codes.eq(failed_codes),
                administrators::known_addresses.eq(known_addresses_column(administrator)),
                administrators::updated_at.eq(Bound(administrator.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            return Ok(Insertion::Done);
        }
        match self.administrator_by_email(administrator.email.as_str())? {
            Some(_) => Ok(Insertion::Taken("email")),
            None => self.refuse(format!("administrators {}: the reference is in use", administrator.admin_ref)),
        }
    }

    fn administrator_by_email(&mut self, email: &str) -> StoreResult<Option<Administrator>> {
        let row: Option<AdministratorRow> = with_conn!(self, "administrators", |conn| administrators::table
            .filter(administrators::email.eq(email))
            .select(AdministratorRow::as_select())
            .first(conn)
            .optional())?;
        row.map(AdministratorRow::read).transpose()
    }

    fn administrator(&mut self, admin_ref: AdminRef) -> StoreResult<Option<Administrator>> {
        let row: Option<AdministratorRow> = with_conn!(self, "administrators", |conn| administrators::table
            .find(Bound(admin_ref.as_uuid()))
            .select(AdministratorRow::as_select())
            .first(conn)
            .optional())?;
        row.map(AdministratorRow::read).transpose()
    }

    fn hold_administrator(&mut self, email: &str) -> StoreResult<Option<Administrator>> {
        let mut rows: Vec<AdministratorRow> = load_held!(
            self,
            "administrators",
            Some(Lock::Exclusive),
            administrators::table.filter(administrators::email.eq(email)).select(AdministratorRow::as_select())
        )?;
        rows.pop().map(AdministratorRow::read).transpose()
    }

    fn administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>> {
        let rows: Vec<AdministratorRow> = with_conn!(self, "administrators", |conn| administrators::table
            .filter(administrators::organization_id.eq(Bound(organization.as_uuid())))
            .order(administrators::email)
            .select(AdministratorRow::as_select())
            .load(conn))?;
        rows.into_iter().map(AdministratorRow::read).collect()
    }

    fn hold_administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>> {
        // A fixed order prevents deadlocks between transactions that lock administrators.
        let rows: Vec<AdministratorRow> = load_held!(
            self,
            "administrators",
            Some(Lock::Exclusive),
            administrators::table
                .filter(administrators::organization_id.eq(Bound(organization.as_uuid())))
                .order(administrators::email)
                .select(AdministratorRow::as_select())
        )?;
        rows.into_iter().map(AdministratorRow::read).collect()
    }

    fn update_administrator(&mut self, administrator: &Administrator) -> StoreResult<()> {
        let (secret, since, step, digests, failed_codes) = second_factor_columns(&administrator.second_factor);
        with_conn!(self, "administrators", |conn| diesel::update(
            administrators::table.find(Bound(administrator.admin_ref.as_uuid()))
        )
        .set((
            administrators::password_hash.eq(&administrator.password_hash.0),
            administrators::disabled_at.eq(administrator.disabled_at.map(Bound)),
            administrators::role.eq(administrator.role.to_text()),
            administrators::one_time_until.eq(administrator.one_time_until.map(Bound)),
            administrators::second_factor_secret.eq(secret),
            administrators::second_factor_since.eq(since),
            administrators::second_factor_step.eq(step),
            administrators::recovery_digests.eq(&digests),
            administrators::failed_codes.eq(failed_codes),
            administrators::known_addresses.eq(known_addresses_column(administrator)),
            administrators::updated_at.eq(Bound(administrator.updated_at)),
        ))
        .execute(conn))?;
        Ok(())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct ApiKeyRow {
    api_key_id: Cell<Uuid>,
    organization_id: Cell<Uuid>,
    api_key: String,
    password_digest: Vec<u8>,
    name: Option<String>,
    scopes: String,
    created_at: Cell<Timestamp>,
    last_used_at: Option<Cell<Timestamp>>,
    expires_at: Option<Cell<Timestamp>>,
    successor_id: Option<Cell<Uuid>>,
    updated_at: Cell<Timestamp>,
}

impl ApiKeyRow {
    fn read(self) -> StoreResult<ApiKey> {
        let row = Row::new("api_keys", self.api_key_id.clone());
        Ok(ApiKey {
            api_key_ref: ApiKeyRef::from_uuid(row.cell("api_key_id", self.api_key_id)?),
            organization: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            api_key: self.api_key,
            password_digest: digest(&row, "password_digest", &self.password_digest)?,
            name: row.optional_leaf("name", self.name.as_deref())?,
            scopes: row.leaf("scopes", &self.scopes)?,
            created_at: row.cell("created_at", self.created_at)?,
            last_used_at: row.optional("last_used_at", self.last_used_at)?,
            expires_at: row.optional("expires_at", self.expires_at)?,
            successor: row.optional("successor_id", self.successor_id)?.map(ApiKeyRef::from_uuid),
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

fn digest<K: std::fmt::Display>(row: &Row<K>, column: &str, bytes: &[u8]) -> StoreResult<SecretDigest> {
    row.checked(column, bytes.try_into()).map(SecretDigest)
}

impl ApiKeys for Transaction<'_> {
    fn insert_api_key(&mut self, key: &ApiKey) -> StoreResult<Insertion> {
        let inserted = with_conn!(self, "api_keys", |conn| diesel::insert_into(api_keys::table)
            .values((
                api_keys::api_key_id.eq(Bound(key.api_key_ref.as_uuid())),
                api_keys::organization_id.eq(Bound(key.organization.as_uuid())),
                api_keys::api_key.eq(&key.api_key),
                api_keys::password_digest.eq(key.password_digest.0.as_slice()),
                api_keys::name.eq(key.name.as_ref().map(OneLine::as_str)),
                api_keys::scopes.eq(key.scopes.to_text()),
                api_keys::created_at.eq(Bound(key.created_at)),
                api_keys::last_used_at.eq(key.last_used_at.map(Bound)),
                api_keys::expires_at.eq(key.expires_at.map(Bound)),
                api_keys::successor_id.eq(key.successor.map(|key| Bound(key.as_uuid()))),
                api_keys::updated_at.eq(Bound(key.updated_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        if inserted == 1 {
            return Ok(Insertion::Done);
        }
        match self.api_key_by_name(&key.api_key)? {
            Some(_) => Ok(Insertion::Taken("api_key")),
            None => self.refuse(format!("api_keys {}: the reference is in use", key.api_key_ref)),
        }
    }

    fn api_key_by_name(&mut self, api_key: &str) -> StoreResult<Option<ApiKey>> {
        let row: Option<ApiKeyRow> = with_conn!(self, "api_keys", |conn| api_keys::table
            .filter(api_keys::api_key.eq(api_key))
            .select(ApiKeyRow::as_select())
            .first(conn)
            .optional())?;
        row.map(ApiKeyRow::read).transpose()
    }

    fn keys_of_tokens(&mut self, tokens: &[TokenClaims]) -> StoreResult<Vec<Option<ApiKey>>> {
        // Nearly all requests have one token, so one statement suffices.
        let (rows, ended): (Vec<ApiKeyRow>, Vec<Cell<Uuid>>) = if let [token] = tokens {
            let rows = with_conn!(self, "api_keys", |conn| api_keys::table
                .find(Bound(token.api_key_ref.as_uuid()))
                .filter(not(exists(revoked_tokens::table.find(Bound(token.token_id)))))
                .select(ApiKeyRow::as_select())
                .load(conn))?;
            (rows, Vec::new())
        } else {
            let keys = || one_of_ids(api_keys::api_key_id, tokens.iter().map(|token| token.api_key_ref.as_uuid()));
            let ids = || one_of_ids(revoked_tokens::token_id, tokens.iter().map(|token| token.token_id));
            with_conn!(self, "api_keys", |conn| {
                let ended = revoked_tokens::table.filter(ids()).select(revoked_tokens::token_id).load(conn)?;
                Ok((api_keys::table.filter(keys()).select(ApiKeyRow::as_select()).load(conn)?, ended))
            })?
        };
        let keys: Vec<ApiKey> = rows.into_iter().map(ApiKeyRow::read).collect::<StoreResult<_>>()?;
        let read_token = |token: Cell<Uuid>| Row::new("revoked_tokens", "one").cell("token_id", token);
        let ended: Vec<Uuid> = ended.into_iter().map(read_token).collect::<StoreResult<_>>()?;
        let key_of = |token: &TokenClaims| {
            let mut keys = keys.iter().filter(|_| !ended.contains(&token.token_id));
            keys.find(|key| key.organization == token.organization && key.api_key_ref == token.api_key_ref).cloned()
        };
        Ok(tokens.iter().map(key_of).collect())
    }

    fn listed_api_keys(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<ApiKey>> {
        let (rows, total): (Vec<ApiKeyRow>, i64) =
            list_rows!(self, "api_keys", api_keys::api_key_id as id, ApiKeyRow, organization, updates, by, page);
        Ok(Page { items: rows.into_iter().map(ApiKeyRow::read).collect::<StoreResult<_>>()?, total: counted(total)? })
    }

    fn hold_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>> {
        let mut rows: Vec<ApiKeyRow> = load_held!(
            self,
            "api_keys",
            Some(Lock::Exclusive),
            api_keys::table
                .filter(api_keys::api_key_id.eq(Bound(api_key_ref.as_uuid())))
                .filter(api_keys::organization_id.eq(Bound(organization.as_uuid())))
                .select(ApiKeyRow::as_select())
        )?;
        rows.pop().map(ApiKeyRow::read).transpose()
    }

    fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()> {
        with_conn!(self, "api_keys", |conn| diesel::update(api_keys::table.find(Bound(key.api_key_ref.as_uuid())))
            .filter(api_keys::organization_id.eq(Bound(key.organization.as_uuid())))
            .set((
                api_keys::expires_at.eq(key.expires_at.map(Bound)),
                api_keys::successor_id.eq(key.successor.map(|key| Bound(key.as_uuid()))),
                api_keys::updated_at.eq(Bound(key.updated_at)),
            ))
            .execute(conn))?;
        Ok(())
    }

    fn touch_api_keys(&mut self, uses: &[KeyUse], now: Timestamp) -> StoreResult<()> {
        for KeyUse { organization, api_key_ref, at } in uses {
            with_conn!(self, "api_keys", |conn| diesel::update(api_keys::table.find(Bound(api_key_ref.as_uuid())))
                .filter(api_keys::organization_id.eq(Bound(organization.as_uuid())))
                .filter(api_keys::last_used_at.is_null().or(api_keys::last_used_at.lt(Bound(*at))))
                .set((api_keys::last_used_at.eq(Bound(*at)), api_keys::updated_at.eq(Bound(now))))
                .execute(conn))?;
        }
        Ok(())
    }

    fn delete_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>> {
        let (found, deleted): (Option<ApiKeyRow>, usize) = with_conn!(self, "api_keys", |conn| {
            let own = || api_keys::organization_id.eq(Bound(organization.as_uuid()));
            let key = || api_keys::table.find(Bound(api_key_ref.as_uuid()));
            let found = key().filter(own()).select(ApiKeyRow::as_select()).first(conn).optional()?;
            Ok((found, diesel::delete(key()).filter(own()).execute(conn)?))
        })?;
        // Another transaction may have deleted it first.
        found.filter(|_| deleted == 1).map(ApiKeyRow::read).transpose()
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
struct SessionRow {
    digest: Vec<u8>,
    session_id: Cell<Uuid>,
    admin_id: Cell<Uuid>,
    organization_id: Cell<Uuid>,
    created_at: Cell<Timestamp>,
    last_seen_at: Cell<Timestamp>,
    confirmed_at: Cell<Timestamp>,
    user_agent: Option<String>,
}

impl SessionRow {
    fn read(self) -> StoreResult<AdminSession> {
        // The digest is confidential, so messages name the row by its reference.
        let row = Row::new("sessions", self.session_id.clone());
        Ok(AdminSession {
            digest: digest(&row, "digest", &self.digest)?,
            session_ref: SessionRef::from_uuid(row.cell("session_id", self.session_id)?),
            admin_ref: AdminRef::from_uuid(row.cell("admin_id", self.admin_id)?),
            organization: OrganizationId::from_uuid(row.cell("organization_id", self.organization_id)?),
            created_at: row.cell("created_at", self.created_at)?,
            last_seen_at: row.cell("last_seen_at", self.last_seen_at)?,
            confirmed_at: row.cell("confirmed_at", self.confirmed_at)?,
            user_agent: row.optional_leaf("user_agent", self.user_agent.as_deref())?,
        })
    }
}

impl Sessions for Transaction<'_> {
    fn insert_session(&mut self, session: &AdminSession) -> StoreResult<()> {
        with_conn!(self, "sessions", |conn| diesel::insert_into(sessions::table)
            .values((
                sessions::digest.eq(session.digest.0.as_slice()),
                sessions::session_id.eq(Bound(session.session_ref.as_uuid())),
                sessions::admin_id.eq(Bound(session.admin_ref.as_uuid())),
                sessions::organization_id.eq(Bound(session.organization.as_uuid())),
                sessions::created_at.eq(Bound(session.created_at)),
                sessions::last_seen_at.eq(Bound(session.last_seen_at)),
                sessions::confirmed_at.eq(Bound(session.confirmed_at)),
                sessions::user_agent.eq(session.user_agent.as_ref().map(OneLine::as_str)),
            ))
            .execute(conn))?;
        Ok(())
    }

    fn session(&mut self, digest: SecretDigest) -> StoreResult<Option<AdminSession>> {
        let found: Option<SessionRow> = with_conn!(self, "sessions", |conn| sessions::table
            .find(digest.0.as_slice())
            .select(SessionRow::as_select())
            .first(conn)
            .optional())?;
        found.map(SessionRow::read).transpose()
    }

    fn sessions(&mut self, admin_ref: AdminRef) -> StoreResult<Vec<AdminSession>> {
        let rows: Vec<SessionRow> = with_conn!(self, "sessions", |conn| sessions::table
            .filter(sessions::admin_id.eq(Bound(admin_ref.as_uuid())))
            .order((sessions::created_at.desc(), sessions::session_id.desc()))
            .select(SessionRow::as_select())
            .load(conn))?;
        rows.into_iter().map(SessionRow::read).collect()
    }

    fn delete_session_of(&mut self, admin_ref: AdminRef, session_ref: SessionRef) -> StoreResult<bool> {
        let deleted = with_conn!(self, "sessions", |conn| diesel::delete(sessions::table)
            .filter(sessions::admin_id.eq(Bound(admin_ref.as_uuid())))
            .filter(sessions::session_id.eq(Bound(session_ref.as_uuid())))
            .execute(conn))?;
        Ok(deleted == 1)
    }

    fn confirm_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()> {
        with_conn!(self, "sessions", |conn| diesel::update(sessions::table.find(digest.0.as_slice()))
            .set(sessions::confirmed_at.eq(Bound(at)))
            .execute(conn))?;
        Ok(())
    }

    fn touch_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()> {
        with_conn!(self, "sessions", |conn| diesel::update(sessions::table.find(digest.0.as_slice()))
            .set(sessions::last_seen_at.eq(Bound(at)))
            .execute(conn))?;
        Ok(())
    }

    fn delete_session(&mut self, digest: SecretDigest) -> StoreResult<()> {
        with_conn!(self, "sessions", |conn| diesel::delete(sessions::table.find(digest.0.as_slice())).execute(conn))?;
        Ok(())
    }

    fn delete_sessions(&mut self, admin_ref: AdminRef, kept: Option<SecretDigest>) -> StoreResult<()> {
        // No digest is empty, so an empty value matches no session.
        let kept = kept.map(|digest| digest.0.to_vec()).unwrap_or_default();
        with_conn!(self, "sessions", |conn| diesel::delete(sessions::table)
            .filter(sessions::admin_id.eq(Bound(admin_ref.as_uuid())))
            .filter(sessions::digest.ne(&kept))
            .execute(conn))?;
        Ok(())
    }

    fn purge_sessions(&mut self, began_before: Timestamp) -> StoreResult<()> {
        with_conn!(self, "sessions", |conn| diesel::delete(sessions::table)
            .filter(sessions::created_at.lt(Bound(began_before)))
            .execute(conn))?;
        Ok(())
    }
}

impl Tokens for Transaction<'_> {
    fn revoke_token(&mut self, token_id: Uuid, expires_at: Timestamp) -> StoreResult<()> {
        with_conn!(self, "revoked_tokens", |conn| diesel::insert_into(revoked_tokens::table)
            .values((revoked_tokens::token_id.eq(Bound(token_id)), revoked_tokens::expires_at.eq(Bound(expires_at))))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(())
    }

    fn purge_revoked_tokens(&mut self, expired_before: Timestamp) -> StoreResult<()> {
        with_conn!(self, "revoked_tokens", |conn| diesel::delete(revoked_tokens::table)
            .filter(revoked_tokens::expires_at.lt(Bound(expired_before)))
            .execute(conn))?;
        Ok(())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = signing_secrets)]
struct SigningSecretRow {
    kid: String,
    purpose: String,
    secret: Vec<u8>,
    created_at: Cell<Timestamp>,
}

impl SigningSecretRow {
    fn read(self) -> StoreResult<SigningSecret> {
        let row = Row::new("signing_secrets", &self.kid);
        let purpose = row.leaf("purpose", &self.purpose)?;
        let created_at = row.cell("created_at", self.created_at)?;
        Ok(SigningSecret { kid: self.kid, purpose, secret: self.secret, created_at })
    }
}

impl SigningSecrets for Transaction<'_> {
    fn insert_signing_secret(&mut self, secret: &SigningSecret) -> StoreResult<Insertion> {
        let inserted = with_conn!(self, "signing_secrets", |conn| diesel::insert_into(signing_secrets::table)
            .values((
                signing_secrets::kid.eq(&secret.kid),
                signing_secrets::purpose.eq(secret.purpose.to_text()),
                signing_secrets::secret.eq(&secret.secret),
                signing_secrets::created_at.eq(Bound(secret.created_at)),
            ))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(if inserted == 1 { Insertion::Done } else { Insertion::Taken("kid") })
    }

    fn delete_signing_secret(&mut self, kid: &str) -> StoreResult<()> {
        with_conn!(self, "signing_secrets", |conn| diesel::delete(signing_secrets::table.find(kid)).execute(conn))?;
        Ok(())
    }

    fn signing_secrets(&mut self, purpose: SecretPurpose) -> StoreResult<Vec<SigningSecret>> {
        let rows: Vec<SigningSecretRow> = with_conn!(self, "signing_secrets", |conn| signing_secrets::table
            .filter(signing_secrets::purpose.eq(purpose.to_text()))
            .order((signing_secrets::created_at.desc(), signing_secrets::kid.desc()))
            .select(SigningSecretRow::as_select())
            .load(conn))?;
        rows.into_iter().map(SigningSecretRow::read).collect()
    }
}
