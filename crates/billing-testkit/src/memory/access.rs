//! Organizations, administrators, keys, sessions, tokens and secrets.

use billing_domain::access::{AdminSession, Administrator, ApiKey, SecretDigest, SecretPurpose, SigningSecret, TokenClaims};
use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Organization;
use billing_domain::ports::{
    Administrators, ApiKeys, Insertion, KeyUse, Organizations, Sessions, SigningSecrets, StoreError, StoreResult, Tokens,
};
use billing_domain::refs::{AdminRef, ApiKeyRef, EntityRef, OrganizationId, SessionRef};
use billing_domain::text::OneLine;
use uuid::Uuid;

use super::{MemoryTx, corrupt, page};

impl Organizations for MemoryTx {
    fn insert_organization(&mut self, organization: &Organization) -> StoreResult<Insertion> {
        if self.organization_by_name(&organization.name)?.is_some() {
            return Ok(Insertion::Taken("name"));
        }
        self.state.organizations.push(organization.clone());
        Ok(Insertion::Done)
    }

    fn organization(&mut self, id: OrganizationId) -> StoreResult<Option<Organization>> {
        Ok(self.state.organizations.iter().find(|row| row.id == id).cloned())
    }

    fn organization_by_name(&mut self, name: &OneLine) -> StoreResult<Option<Organization>> {
        Ok(self.state.organizations.iter().find(|row| row.name == *name).cloned())
    }

    fn count_organizations(&mut self) -> StoreResult<u64> {
        Ok(self.state.organizations.len() as u64)
    }

    fn set_default_entity(&mut self, id: OrganizationId, entity_ref: &EntityRef) -> StoreResult<()> {
        let known = self.state.entities.of(id).any(|entity| entity.entity_ref == *entity_ref);
        let row = self.state.organizations.iter_mut().find(|row| row.id == id).filter(|_| known);
        let row = row.ok_or_else(|| corrupt(format!("{id:?} has no {entity_ref:?}")))?;
        row.default_entity = Some(entity_ref.clone());
        Ok(())
    }
}

impl Administrators for MemoryTx {
    fn insert_administrator(&mut self, administrator: &Administrator) -> StoreResult<Insertion> {
        if self.administrator_by_email(administrator.email.as_str())?.is_some() {
            return Ok(Insertion::Taken("email"));
        }
        self.state.administrators.push(administrator.clone());
        Ok(Insertion::Done)
    }

    fn administrator_by_email(&mut self, email: &str) -> StoreResult<Option<Administrator>> {
        Ok(self.state.administrators.iter().find(|row| row.email.as_str() == email).cloned())
    }

    fn administrator(&mut self, admin_ref: AdminRef) -> StoreResult<Option<Administrator>> {
        Ok(self.state.administrators.iter().find(|row| row.admin_ref == admin_ref).cloned())
    }

    fn hold_administrator(&mut self, email: &str) -> StoreResult<Option<Administrator>> {
        self.administrator_by_email(email)
    }

    fn administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>> {
        let mut rows: Vec<_> = self.state.administrators.iter().filter(|row| row.organization == organization).cloned().collect();
        rows.sort_by(|a, b| a.email.as_str().cmp(b.email.as_str()));
        Ok(rows)
    }

    fn hold_administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>> {
        self.administrators(organization)
    }

    fn update_administrator(&mut self, administrator: &Administrator) -> StoreResult<()> {
        if let Some(row) = self.state.administrators.iter_mut().find(|row| row.admin_ref == administrator.admin_ref) {
            row.role = administrator.role;
            row.password_hash = administrator.password_hash.clone();
            row.one_time_until = administrator.one_time_until;
            row.second_factor = administrator.second_factor.clone();
            row.disabled_at = administrator.disabled_at;
        }
        Ok(())
    }
}

impl ApiKeys for MemoryTx {
    fn insert_api_key(&mut self, key: &ApiKey) -> StoreResult<Insertion> {
        if self.api_key_by_name(&key.api_key)?.is_some() {
            return Ok(Insertion::Taken("api_key"));
        }
        self.state.api_keys.push(key.clone());
        Ok(Insertion::Done)
    }

    fn api_key_by_name(&mut self, api_key: &str) -> StoreResult<Option<ApiKey>> {
        Ok(self.state.api_keys.iter().find(|row| row.api_key == api_key).cloned())
    }

    fn keys_of_tokens(&mut self, tokens: &[TokenClaims]) -> StoreResult<Vec<Option<ApiKey>>> {
        let key_of = |token: &TokenClaims| {
            let mut keys = self.state.api_keys.iter();
            let found = keys.find(|row| row.organization == token.organization && row.api_key_ref == token.api_key_ref);
            found.filter(|_| !self.state.revoked_tokens.contains_key(&token.token_id)).cloned()
        };
        Ok(tokens.iter().map(key_of).collect())
    }

    fn api_keys(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<ApiKey>> {
        let rows = self.state.api_keys.iter().filter(|row| row.organization == organization);
        Ok(page(rows, request, |row| (row.created_at, row.api_key_ref)))
    }

    fn hold_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>> {
        let mut rows = self.state.api_keys.iter();
        Ok(rows.find(|row| row.organization == organization && row.api_key_ref == api_key_ref).cloned())
    }

    fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()> {
        let mut rows = self.state.api_keys.iter_mut();
        if let Some(row) = rows.find(|row| row.organization == key.organization && row.api_key_ref == key.api_key_ref) {
            row.expires_at = key.expires_at;
            row.successor = key.successor;
        }
        Ok(())
    }

    fn touch_api_keys(&mut self, uses: &[KeyUse]) -> StoreResult<()> {
        for KeyUse { organization, api_key_ref, at } in uses {
            let mut rows = self.state.api_keys.iter_mut();
            if let Some(row) = rows.find(|row| row.organization == *organization && row.api_key_ref == *api_key_ref) {
                row.last_used_at = row.last_used_at.max(Some(*at));
            }
        }
        Ok(())
    }

    fn delete_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>> {
        let place = self.state.api_keys.iter().position(|row| row.organization == organization && row.api_key_ref == api_key_ref);
        Ok(place.map(|place| self.state.api_keys.remove(place)))
    }
}

impl Sessions for MemoryTx {
    fn insert_session(&mut self, session: &AdminSession) -> StoreResult<()> {
        if self.session(session.digest)?.is_some() {
            return Err(StoreError::Corrupt("two sessions with one digest".to_owned()));
        }
        self.state.sessions.push(session.clone());
        Ok(())
    }

    fn session(&mut self, digest: SecretDigest) -> StoreResult<Option<AdminSession>> {
        Ok(self.state.sessions.iter().find(|row| row.digest == digest).cloned())
    }

    fn touch_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()> {
        if let Some(row) = self.state.sessions.iter_mut().find(|row| row.digest == digest) {
            row.last_seen_at = at;
        }
        Ok(())
    }

    fn delete_session(&mut self, digest: SecretDigest) -> StoreResult<()> {
        self.state.sessions.retain(|row| row.digest != digest);
        Ok(())
    }

    fn sessions(&mut self, admin_ref: AdminRef) -> StoreResult<Vec<AdminSession>> {
        let mut found: Vec<_> = self.state.sessions.iter().filter(|row| row.admin_ref == admin_ref).cloned().collect();
        found.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.session_ref)));
        Ok(found)
    }

    fn delete_session_of(&mut self, admin_ref: AdminRef, session_ref: SessionRef) -> StoreResult<bool> {
        let before = self.state.sessions.len();
        self.state.sessions.retain(|row| row.admin_ref != admin_ref || row.session_ref != session_ref);
        Ok(self.state.sessions.len() < before)
    }

    fn delete_sessions(&mut self, admin_ref: AdminRef, kept: Option<SecretDigest>) -> StoreResult<()> {
        self.state.sessions.retain(|row| row.admin_ref != admin_ref || Some(row.digest) == kept);
        Ok(())
    }

    fn purge_sessions(&mut self, began_before: Timestamp) -> StoreResult<()> {
        self.state.sessions.retain(|row| row.created_at >= began_before);
        Ok(())
    }
}

impl Tokens for MemoryTx {
    fn revoke_token(&mut self, token_id: Uuid, expires_at: Timestamp) -> StoreResult<()> {
        self.state.revoked_tokens.entry(token_id).or_insert(expires_at);
        Ok(())
    }

    fn purge_revoked_tokens(&mut self, expired_before: Timestamp) -> StoreResult<()> {
        self.state.revoked_tokens.retain(|_, expires_at| *expires_at >= expired_before);
        Ok(())
    }
}

impl SigningSecrets for MemoryTx {
    fn insert_signing_secret(&mut self, secret: &SigningSecret) -> StoreResult<Insertion> {
        if self.state.signing_secrets.iter().any(|row| row.kid == secret.kid) {
            return Ok(Insertion::Taken("kid"));
        }
        self.state.signing_secrets.push(secret.clone());
        Ok(Insertion::Done)
    }

    fn delete_signing_secret(&mut self, kid: &str) -> StoreResult<()> {
        self.state.signing_secrets.retain(|row| row.kid != kid);
        Ok(())
    }

    fn signing_secrets(&mut self, purpose: SecretPurpose) -> StoreResult<Vec<SigningSecret>> {
        let mut found: Vec<_> = self.state.signing_secrets.iter().filter(|row| row.purpose == purpose).cloned().collect();
        found.sort_by(|a, b| (b.created_at, &b.kid).cmp(&(a.created_at, &a.kid)));
        Ok(found)
    }
}
