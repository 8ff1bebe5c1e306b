//! Signatures of Standard Webhooks 1.0.0.

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_domain::refs::NotificationRef;
use billing_domain::webhook::WebhookSecret;

/// Returns the signatures of a request by each secret, as the header `webhook-signature` has them. Returns `None` if a secret is
/// not base64.
pub(crate) fn signatures(secrets: &[WebhookSecret], id: NotificationRef, timestamp: i64, body: &str) -> Option<String> {
    let signatures: Option<Vec<String>> = secrets.iter().map(|secret| signature(secret, id, timestamp, body)).collect();
    signatures.map(|signatures| signatures.join(" "))
}

fn signature(secret: &WebhookSecret, id: NotificationRef, timestamp: i64, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.base64()).ok()?;
    let mut signing = Context::with_key(&Key::new(HMAC_SHA256, &key));
    signing.update(format!("{id}.{timestamp}.").as_bytes());
    signing.update(body.as_bytes());
    Some(format!("v1,{}", STANDARD.encode(signing.sign().as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = concat!(
        r#"{"type":"document.issued","timestamp":"2026-02-01T02:00:03.412771Z","#,
        r#""subject":"document:0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e","epoch":0,"sequence":2,"#,
        r#""data":{"document_ref":"0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e","document_number":"UB-INV-1","kind":"INVOICE","#,
        r#""purpose":"REGULAR","state":"ISSUED","contract_ref":"0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b","customer_ref":"acme","#,
        r#""entity_ref":"default","currency":"EUR","period_start":"2026-01-01","period_end":"2026-01-31","total":129.71,"#,
        r#""amount_due":129.71,"issue_date":"2026-02-01","due_date":"2026-03-03","parent_document_ref":null}}"#,
    );

    #[test]
    fn the_documented_request_has_the_documented_signature() {
        let secret = WebhookSecret::parse("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("a secret");
        let other = WebhookSecret::parse("whsec_HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("a secret");
        let id = NotificationRef::parse("019c1686-5d54-7cc0-8f43-b8ec1dfa1f60").expect("a reference");
        let documented = "v1,/YNPsSt3RxrMAYG42BDcCtFTR0GoKGG+XsaJHivV9Ag=";
        let signed = |secrets: &[WebhookSecret]| signatures(secrets, id, 1_769_911_204, BODY).expect("base64");
        assert_eq!(signed(std::slice::from_ref(&secret)), documented);
        // During a rotation, both secrets sign.
        let both = signed(&[other, secret]);
        let (first, second) = both.split_once(' ').expect("two signatures");
        assert!(first.starts_with("v1,") && first != documented, "{both}");
        assert_eq!(second, documented);
    }

    #[test]
    fn a_secret_that_is_not_base64_signs_nothing() {
        let secret = WebhookSecret::parse("whsec_*").expect("a secret");
        let id = NotificationRef::parse("019c1686-5d54-7cc0-8f43-b8ec1dfa1f60").expect("a reference");
        assert_eq!(signatures(&[secret], id, 0, ""), None);
    }
}
