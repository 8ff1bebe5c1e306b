//! Accepted bearer tokens. All other tokens are rejected with the same error.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use billing_auth::{JwtSigner, MAX_TOKEN_BYTES};
use billing_domain::access::{SecretPurpose, SigningSecret, TokenClaims};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{SecretError, TokenSigner as _};
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use uuid::Uuid;

const NOW: &str = "2026-03-01T12:00:00Z";
const NOW_SECONDS: i64 = 1_772_366_400;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect(text)
}

fn secret(kid: &str, byte: u8) -> SigningSecret {
    SigningSecret { kid: kid.to_owned(), purpose: SecretPurpose::BearerToken, secret: vec![byte; 32], created_at: at(NOW) }
}

fn signer() -> JwtSigner {
    JwtSigner::new(&[secret("new", 2), secret("old", 1)], "issuer", "audience").expect("two valid secrets")
}

fn claims() -> TokenClaims {
    TokenClaims {
        api_key_ref: ApiKeyRef::from_uuid(Uuid::from_u128(1)),
        organization: OrganizationId::from_uuid(Uuid::from_u128(2)),
        token_id: Uuid::from_u128(3),
        issued_at: at(NOW),
        expires_at: at("2026-03-01T13:00:00Z"),
    }
}

fn good() -> Value {
    json!({
        "iss": "issuer", "aud": "audience", "sub": Uuid::from_u128(1).to_string(), "org": Uuid::from_u128(2).to_string(),
        "jti": Uuid::from_u128(3).to_string(), "iat": NOW_SECONDS, "nbf": NOW_SECONDS, "exp": NOW_SECONDS + 3600,
    })
}

fn header(algorithm: Algorithm, kid: &str) -> Header {
    Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) }
}

fn signed(header: &Header, claims: &Value, byte: u8) -> String {
    encode(header, claims, &EncodingKey::from_secret(&[byte; 32])).expect("signed")
}

/// Returns a token with these claims, signed like the service signs it.
fn with(claims: &Value) -> String {
    signed(&header(Algorithm::HS256, "new"), claims, 2)
}

fn verify(token: &str) -> Result<TokenClaims, SecretError> {
    signer().verify(token, at(NOW))
}

fn refused(token: &str, why: &str) {
    assert_eq!(verify(token), Err(SecretError::InvalidToken), "{why}: {token}");
}

#[test]
fn what_was_signed_is_read_back() {
    let token = signer().sign(&claims()).expect("signed");
    assert_eq!(verify(&token), Ok(claims()));
    let later = JwtSigner::new(&[secret("newest", 3), secret("new", 2)], "issuer", "audience").expect("valid secrets");
    assert_eq!(later.verify(&token, at(NOW)), Ok(claims()), "after a new secret is added");
}

#[test]
fn times_are_cut_to_seconds() {
    let claims = TokenClaims { issued_at: at("2026-03-01T12:00:00.9Z"), ..claims() };
    let token = signer().sign(&claims).expect("signed");
    assert_eq!(verify(&token).map(|read| read.issued_at), Ok(at(NOW)));
}

#[test]
fn the_newest_secret_signs_and_every_active_one_checks() {
    let token = signer().sign(&claims()).expect("signed");
    assert_eq!(jsonwebtoken::decode_header(&token).expect("a header").kid.as_deref(), Some("new"));
    assert_eq!(verify(&signed(&header(Algorithm::HS256, "old"), &good(), 1)), Ok(claims()));
    let only_new = JwtSigner::new(&[secret("new", 2)], "issuer", "audience").expect("a valid secret");
    let old = signed(&header(Algorithm::HS256, "old"), &good(), 1);
    assert_eq!(only_new.verify(&old, at(NOW)), Err(SecretError::InvalidToken), "a removed secret");
}

#[test]
fn the_kid_must_name_the_secret_that_signed() {
    refused(&signed(&header(Algorithm::HS256, "new"), &good(), 1), "signed by the other secret");
    refused(&signed(&header(Algorithm::HS256, "unknown"), &good(), 2), "unknown kid");
    refused(&signed(&Header::new(Algorithm::HS256), &good(), 2), "no kid");
    refused(&signed(&header(Algorithm::HS256, "new"), &good(), 9), "signed by somebody else");
}

#[test]
fn no_other_algorithm_is_taken_even_with_the_right_secret() {
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        refused(&signed(&header(algorithm, "new"), &good(), 2), "another hash");
    }
    let token = with(&good());
    let (rest, signature) = token.rsplit_once('.').expect("three parts");
    let (_, payload) = rest.split_once('.').expect("three parts");
    for algorithm in ["none", "None", "RS256", "ES256", "HS384", "hs256", ""] {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": algorithm, "typ": "JWT", "kid": "new"}).to_string());
        refused(&format!("{header}.{payload}.{signature}"), algorithm);
        refused(&format!("{header}.{payload}."), algorithm);
    }
}

#[test]
fn a_header_that_must_be_understood_and_is_not_refuses_the_token() {
    let header = Header { crit: Some(vec!["b64".to_owned()]), ..header(Algorithm::HS256, "new") };
    refused(&signed(&header, &good(), 2), "crit");
}

#[test]
fn every_claim_is_required_and_has_one_type() {
    assert_eq!(verify(&with(&good())), Ok(claims()));
    for claim in ["iss", "aud", "sub", "org", "iat", "nbf", "exp", "jti"] {
        let mut missing = good();
        missing.as_object_mut().expect("an object").remove(claim);
        refused(&with(&missing), claim);
        for wrong in [Value::Null, json!(true), json!([]), json!({}), json!("x"), json!(-1), json!(1.5)] {
            let mut changed = good();
            changed[claim] = wrong.clone();
            // A negative iat or nbf is valid: the token became valid long ago.
            if !(wrong == json!(-1) && matches!(claim, "iat" | "nbf")) {
                refused(&with(&changed), &format!("{claim} {wrong}"));
            }
        }
    }
}

#[test]
fn issuer_and_audience_must_be_ours() {
    let wrong_ones = [("iss", json!("other")), ("aud", json!("other")), ("aud", json!(["audience"])), ("iss", json!("Issuer"))];
    for (claim, wrong) in wrong_ones {
        let mut changed = good();
        changed[claim] = wrong;
        refused(&with(&changed), claim);
    }
}

#[test]
fn a_token_works_from_its_start_to_its_end_with_30_seconds_leeway() {
    let token = signer().sign(&claims()).expect("signed");
    let rows = [
        ("2026-03-01T11:59:29Z", false),
        ("2026-03-01T11:59:30Z", true),
        ("2026-03-01T13:00:00Z", true),
        ("2026-03-01T13:00:29.999999Z", true),
        ("2026-03-01T13:00:30Z", false),
        ("2027-03-01T13:00:00Z", false),
    ];
    let kept = signer();
    for (now, works) in rows {
        assert_eq!(signer().verify(&token, at(now)).is_ok(), works, "{now}");
        assert_eq!(kept.verify(&token, at(now)).is_ok(), works, "{now}, verified before");
    }
}

#[test]
fn a_token_that_was_verified_before_needs_its_secret_and_each_of_its_bytes() {
    let signer = signer();
    let token = signed(&header(Algorithm::HS256, "old"), &good(), 1);
    assert_eq!([signer.verify(&token, at(NOW)), signer.verify(&token, at(NOW))], [Ok(claims()), Ok(claims())]);
    let mut changed = token.clone();
    let last = changed.pop().expect("a token");
    changed.push(if last == 'A' { 'E' } else { 'A' });
    assert_eq!(signer.verify(&changed, at(NOW)), Err(SecretError::InvalidToken));
    signer.take_up(&[secret("new", 2)]).expect("a valid secret");
    assert_eq!(signer.verify(&token, at(NOW)), Err(SecretError::InvalidToken), "a removed secret");
    assert_eq!(signer.verify(&token, at(NOW)), Err(SecretError::InvalidToken), "it is not kept");
}

#[test]
fn iat_and_nbf_are_each_checked() {
    for claim in ["iat", "nbf"] {
        for (ahead, works) in [(30, true), (31, false)] {
            let mut changed = good();
            changed[claim] = json!(NOW_SECONDS + ahead);
            assert_eq!(verify(&with(&changed)).is_ok(), works, "{claim} {ahead} s ahead");
        }
    }
}

#[test]
fn numbers_at_the_edge_of_their_type_are_refused_without_a_panic() {
    for wrong in [i64::MAX, i64::MIN, i64::MAX / 1_000_000 + 1] {
        for claim in ["iat", "exp"] {
            let mut changed = good();
            changed[claim] = json!(wrong);
            refused(&with(&changed), claim);
        }
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let token = with(&good());
    let changed = format!("{}A", &token[..token.len() - 1]);
    let longer = format!("{token}.");
    for bad in ["", "..", "a.b.c", "a.b", "a.b.c.d", "é.é.é", &token[1..], &token[..token.len() - 2], &changed, &longer] {
        refused(bad, "malformed");
    }
    refused(&"a".repeat(MAX_TOKEN_BYTES + 1), "too long");
}

#[test]
fn secrets_that_are_not_fit_are_refused_at_the_start() {
    let short = SigningSecret { secret: vec![1; 31], ..secret("short", 1) };
    let cookie = SigningSecret { purpose: SecretPurpose::SessionCookie, ..secret("cookie", 1) };
    for bad in [vec![], vec![short], vec![secret("a", 1), cookie], vec![secret("a", 1), secret("a", 2)]] {
        let names: Vec<_> = bad.iter().map(|secret| secret.kid.clone()).collect();
        assert!(matches!(JwtSigner::new(&bad, "issuer", "audience"), Err(SecretError::Failed(_))), "{names:?}");
    }
}

#[test]
fn a_signer_does_not_show_its_secrets_when_printed() {
    assert_eq!(format!("{:?}", signer()), "JwtSigner(new ***)");
}
