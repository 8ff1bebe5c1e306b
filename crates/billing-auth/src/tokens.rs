//! Bearer tokens: JWT, restricted to HMAC-SHA-256.
//!
//! The token's header selects one of *our* secrets, never the algorithm. This module checks all claims against a given
//! time. jsonwebtoken reads the system clock, and misreads numbers when another crate enables serde_json's
//! `arbitrary_precision`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use billing_domain::access::{SecretPurpose, SigningSecret, TokenClaims};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{SecretError, TokenSigner};
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::failed;

/// The tolerated clock difference between two servers.
pub const LEEWAY_SECONDS: i64 = 30;
/// The minimum size of a signing secret, equal to the hash size.
pub const MIN_SECRET_BYTES: usize = 32;
/// The maximum length of a token; our tokens have about 500 bytes.
pub const MAX_TOKEN_BYTES: usize = 4096;

/// The number of verified tokens that are kept: about a megabyte.
const KEPT_TOKENS: usize = 1_000;

const ALGORITHM: Algorithm = Algorithm::HS256;

/// A signer that signs with the first secret and accepts signatures of all secrets, so that secrets can be rotated
/// while tokens are valid.
pub struct JwtSigner {
    ring: RwLock<Ring>,
    validation: Validation,
    issuer: String,
    audience: String,
}

struct Ring {
    signing: (String, EncodingKey),
    checking: Vec<(String, DecodingKey)>,
    /// The claims of tokens whose signatures these secrets verified. Clients send a token with thousands of requests.
    verified: Cache<String, Claims>,
}

impl Ring {
    fn of(secrets: &[SigningSecret]) -> Result<Self, SecretError> {
        let first = secrets.first().ok_or_else(|| failed("there is no secret to sign tokens with"))?;
        for (i, secret) in secrets.iter().enumerate() {
            if secret.purpose != SecretPurpose::BearerToken || secret.secret.len() < MIN_SECRET_BYTES {
                return Err(failed(format!("secret {} is not fit to sign tokens", secret.kid)));
            }
            if secrets[..i].iter().any(|other| other.kid == secret.kid) {
                return Err(failed(format!("two secrets are named {}", secret.kid)));
            }
        }
        Ok(Self {
            signing: (first.kid.clone(), EncodingKey::from_secret(&first.secret)),
            checking: secrets.iter().map(|s| (s.kid.clone(), DecodingKey::from_secret(&s.secret))).collect(),
            verified: Cache::new(KEPT_TOKENS),
        })
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    org: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: String,
}

impl JwtSigner {
    /// Creates a signer with the secrets in use, the signing secret first, and the issuer and audience of the tokens.
    ///
    /// # Errors
    /// Returns [`SecretError::Failed`] if no secret is given. It also fails for a secret that is too short, has another
    /// purpose, or has the same name as another secret.
    pub fn new(secrets: &[SigningSecret], issuer: impl Into<String>, audience: impl Into<String>) -> Result<Self, SecretError> {
        // The library checks signature and algorithm; `accept` checks the claims.
        let mut validation = Validation::new(ALGORITHM);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Ok(Self { ring: RwLock::new(Ring::of(secrets)?), validation, issuer: issuer.into(), audience: audience.into() })
    }

    /// Replaces the secrets in use.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new); the previous secrets then stay in use.
    pub fn take_up(&self, secrets: &[SigningSecret]) -> Result<(), SecretError> {
        let ring = Ring::of(secrets)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
        Ok(())
    }

    /// Returns the ring. A poisoned lock still guards a complete ring, because the ring is replaced as a whole.
    fn ring(&self) -> RwLockReadGuard<'_, Ring> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, claims: &Claims, now: Timestamp) -> Option<TokenClaims> {
        let now = seconds(now);
        let ours = claims.iss == self.issuer && claims.aud == self.audience;
        let begun = claims.iat.max(claims.nbf) <= now + LEEWAY_SECONDS;
        let ended = now - LEEWAY_SECONDS >= claims.exp;
        if !ours || !begun || ended {
            return None;
        }
        Some(TokenClaims {
            api_key_ref: ApiKeyRef::parse(&claims.sub).ok()?,
            organization: OrganizationId::from_uuid(Uuid::try_parse(&claims.org).ok()?),
            token_id: Uuid::try_parse(&claims.jti).ok()?,
            issued_at: Timestamp::from_micros(claims.iat.checked_mul(1_000_000)?).ok()?,
            expires_at: Timestamp::from_micros(claims.exp.checked_mul(1_000_000)?).ok()?,
        })
    }
}

impl TokenSigner for JwtSigner {
    /// Truncates times to seconds, because JWT parsers expect integers.
    fn sign(&self, claims: &TokenClaims) -> Result<String, SecretError> {
        let ring = self.ring();
        let (kid, key) = &ring.signing;
        let issued = seconds(claims.issued_at);
        let claims = Claims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: claims.api_key_ref.to_string(),
            org: claims.organization.to_string(),
            iat: issued,
            nbf: issued,
            exp: seconds(claims.expires_at),
            jti: claims.token_id.hyphenated().to_string(),
        };
        let header = Header { kid: Some(kid.clone()), ..Header::new(ALGORITHM) };
        jsonwebtoken::encode(&header, &claims, key).map_err(failed)
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<TokenClaims, SecretError> {
        let check = || {
            let short_enough = Some(token).filter(|token| token.len() <= MAX_TOKEN_BYTES)?;
            let ring = self.ring();
            // The signature stays valid; the times are checked again.
            if let Some(claims) = ring.verified.get(short_enough) {
                return self.accept(&claims, now);
            }
            // RFC 7515: a token is invalid if its `crit` header names an extension that is not understood.
            let header = jsonwebtoken::decode_header(short_enough).ok().filter(|header| header.crit.is_none())?;
            let (_, key) = ring.checking.iter().find(|(kid, _)| Some(kid) == header.kid.as_ref())?;
            let claims = jsonwebtoken::decode::<Claims>(short_enough, key, &self.validation).ok()?.claims;
            let accepted = self.accept(&claims, now)?;
            ring.verified.insert(short_enough.to_owned(), claims);
            Some(accepted)
        };
        check().ok_or(SecretError::InvalidToken)
    }
}

impl std::fmt::Debug for JwtSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JwtSigner({} ***)", self.ring().signing.0)
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}
