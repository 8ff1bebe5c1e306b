//! Bearer tokens: JWT with HMAC-SHA-256, and nothing else of what JWT allows.
//!
//! The header chooses which of *our* secrets is tried, never how. All claims are checked here against the
//! time that is passed in: jsonwebtoken reads the system's clock, and it misreads numbers when another crate
//! turns serde_json's `arbitrary_precision` on.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use billing_domain::access::{SecretPurpose, SigningSecret, TokenClaims};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{SecretError, TokenSigner};
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::failed;

/// How far the clocks of two servers may differ.
pub const LEEWAY_SECONDS: i64 = 30;
/// The fewest bytes of a signing secret: as many as the hash has.
pub const MIN_SECRET_BYTES: usize = 32;
/// The longest text that is looked at; ours have about 500 bytes.
pub const MAX_TOKEN_BYTES: usize = 4096;

const ALGORITHM: Algorithm = Algorithm::HS256;

/// Signs with the first secret and takes what any of them signed, so that secrets can be changed while
/// tokens are out.
pub struct JwtSigner {
    ring: RwLock<Ring>,
    validation: Validation,
    issuer: String,
    audience: String,
}

/// The secrets in use.
struct Ring {
    signing: (String, EncodingKey),
    checking: Vec<(String, DecodingKey)>,
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
        })
    }
}

#[derive(Serialize, Deserialize)]
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
    /// With the secrets in use, the one that signs first, and what the tokens are issued by and for.
    ///
    /// # Errors
    /// [`SecretError::Failed`] without a secret, and for one that is too short, meant for something else, or
    /// shares its name with another.
    pub fn new(secrets: &[SigningSecret], issuer: impl Into<String>, audience: impl Into<String>) -> Result<Self, SecretError> {
        // Signature and algorithm are the library's, the claims are checked by `accept`.
        let mut validation = Validation::new(ALGORITHM);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Ok(Self { ring: RwLock::new(Ring::of(secrets)?), validation, issuer: issuer.into(), audience: audience.into() })
    }

    /// Takes up the secrets that are in use now, in the place of those before.
    ///
    /// # Errors
    /// As [`new`](Self::new); those before stay.
    pub fn take_up(&self, secrets: &[SigningSecret]) -> Result<(), SecretError> {
        let ring = Ring::of(secrets)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
        Ok(())
    }

    /// A poisoned lock still guards a whole ring: it is replaced in one go.
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
    /// Times are cut to seconds: JWT's readers expect whole ones.
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
            // RFC 7515: a header that says something must be understood and isn't, makes the token invalid.
            let header = jsonwebtoken::decode_header(short_enough).ok().filter(|header| header.crit.is_none())?;
            let ring = self.ring();
            let (_, key) = ring.checking.iter().find(|(kid, _)| Some(kid) == header.kid.as_ref())?;
            let claims = jsonwebtoken::decode::<Claims>(short_enough, key, &self.validation).ok()?.claims;
            self.accept(&claims, now)
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
