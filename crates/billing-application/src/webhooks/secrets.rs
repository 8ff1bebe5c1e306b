//! The encryption of endpoints' secrets: as those of second factors, with a secret that all servers share.

use billing_domain::access::{SecretPurpose, SigningSecret};
use billing_domain::ports::{StoreError, Tx};
use billing_domain::refs::{ApiKeyRef, EndpointRef};
use billing_domain::webhook::{SealedWebhookSecret, WebhookSecret};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::secrets::{shared_secrets, shared_secrets_within};

/// The purpose of the shared secret.
pub(super) const PURPOSE: SecretPurpose = SecretPurpose::SecondFactor;

/// Generates a secret for an endpoint.
pub(super) fn new_secret(services: &Services) -> UseCaseResult<WebhookSecret> {
    WebhookSecret::of_random(&services.keys.new_secret()?).ok_or(UseCaseError::InvariantViolation("a secret without 32 bytes"))
}

/// Encrypts a secret of an endpoint within a transaction.
pub(super) fn seal(
    tx: &mut dyn Tx,
    services: &Services,
    (endpoint_ref, kid): (EndpointRef, u32),
    secret: &WebhookSecret,
) -> UseCaseResult<Vec<u8>> {
    let keys = shared_secrets_within(tx, &*services.keys, services.machine_now(), PURPOSE)?;
    let newest = keys.first().ok_or_else(missing)?;
    Ok(services.sealer.seal(text(newest)?, &place(endpoint_ref, kid), secret.as_str().as_bytes())?)
}

/// Decrypts the secrets of an endpoint with the shared secrets. Secrets that cannot be decrypted are left out.
pub(super) fn unseal(
    services: &Services,
    keys: &[SigningSecret],
    endpoint_ref: EndpointRef,
    sealed: &[SealedWebhookSecret],
) -> Vec<WebhookSecret> {
    let open = |secret: &SealedWebhookSecret| {
        let place = place(endpoint_ref, secret.kid);
        let opened = keys.iter().find_map(|key| services.sealer.open(text(key).ok()?, &place, &secret.sealed));
        let read = opened.and_then(|bytes| WebhookSecret::parse(&String::from_utf8(bytes).ok()?));
        if read.is_none() {
            tracing::error!(%endpoint_ref, kid = secret.kid, "a secret of a webhook endpoint cannot be decrypted: rotate it");
        }
        read
    };
    sealed.iter().filter_map(open).collect()
}

/// Returns the secret that encrypts the stored response of an API key's request with an idempotency key, if the response has a
/// secret. A repeat of the request by the same API key gets the same response, also with another token, and other keys do not.
///
/// # Errors
/// Returns [`UseCaseError::Store`] or [`UseCaseError::Secret`] if the shared secret cannot be read or created.
pub fn response_secret(services: &Services, key: ApiKeyRef) -> UseCaseResult<String> {
    let keys = shared_secrets(&*services.store, &*services.keys, services.machine_now(), PURPOSE)?;
    Ok(format!("{} response to {key}", text(keys.first().ok_or_else(missing)?)?))
}

fn place(endpoint_ref: EndpointRef, kid: u32) -> String {
    format!("webhook secret {kid} of {endpoint_ref}")
}

fn text(secret: &SigningSecret) -> UseCaseResult<&str> {
    std::str::from_utf8(&secret.secret)
        .map_err(|_| StoreError::Corrupt("the secret of second factors is no text".to_owned()).into())
}

fn missing() -> UseCaseError {
    StoreError::Corrupt("no secret exists that encrypts the secrets of webhook endpoints".to_owned()).into()
}
