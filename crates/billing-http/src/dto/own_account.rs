//! One's own account: session, password, second factor. What is secret goes out once, from the answer that made it.

use billing_application::own_account::{OwnAccount, OwnSession, RecoveryCodes, SecondFactorEnrollment};
use billing_domain::access::SecondFactor;
use billing_domain::text::OneLine;
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body};
use super::enums::RoleWord;
use super::values::Password;
use super::wire::{AssignedRef, EmailText, LineText, TimestampText};

/// Whose accounts they are, as apps show it.
const ISSUER: &str = "Usage Billing";

body! {
    /// Another password.
    PasswordChangeBody {
        /// The present password.
        password: Password,
        /// The new one: 12 to 72 bytes and no common one.
        new_password: Password,
    }
}

body! {
    /// A first code of a device that was given the secret.
    SecondFactorCodeBody {
        /// The code, of six digits.
        code: OneLine,
    }
}

body! {
    /// A second factor to remove.
    SecondFactorRemovalBody {
        /// The password.
        password: Password,
        /// A code of six digits, or a recovery code.
        code: OneLine,
    }
}

answer! {
    /// Who asks, and by which session.
    OwnAccountJson of account: OwnAccount {
        let administrator = &account.administrator;
        /// The administrator.
        admin_ref: AssignedRef = administrator.admin_ref,
        /// Their e-mail address.
        email: EmailText = &administrator.email,
        /// What they may do.
        role: RoleWord = administrator.role,
        /// Whose data they manage.
        organization: LineText = &account.organization.name,
        /// Since when a log-in takes a code, too; null where it takes none.
        second_factor_since: Option<TimestampText> = administrator.second_factor.since(),
        /// Recovery codes that weren't used yet.
        recovery_codes_left: u32 = recovery_codes_left(&administrator.second_factor),
        /// Reference of the session.
        session_ref: AssignedRef = account.session.session_ref,
        /// When it began.
        created_at: TimestampText = account.session.created_at,
        /// When it ends at the latest.
        expires_at: TimestampText = account.session.expires_at(),
    }
}

fn recovery_codes_left(second_factor: &SecondFactor) -> u32 {
    match second_factor {
        SecondFactor::Off | SecondFactor::Enrolled(_) => 0,
        SecondFactor::On(source) => u32::try_from(source.recovery.len()).unwrap_or(u32::MAX),
    }
}

answer! {
    /// A session of one's own.
    OwnSessionJson of own: OwnSession {
        /// Reference.
        session_ref: AssignedRef = own.session.session_ref,
        /// When it began.
        created_at: TimestampText = own.session.created_at,
        /// When a request last came with it, within about a minute.
        last_seen_at: TimestampText = own.session.last_seen_at,
        /// When it ends at the latest.
        expires_at: TimestampText = own.session.expires_at(),
        /// What the browser calls itself.
        user_agent: Option<LineText> = own.session.user_agent.as_ref(),
        /// Whether it is the one that asks.
        is_current: bool = own.is_current,
    }
}

/// A second factor that waits for its first code.
#[derive(Serialize, ToSchema)]
pub(crate) struct SecondFactorEnrollmentJson {
    /// The secret, to be typed into a device: base32.
    #[schema(pattern = "^[A-Z2-7]{32}$")]
    secret: String,
    /// The same for an app that reads a QR code.
    #[schema(
        example = "otpauth://totp/Usage%20Billing:a%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Usage%20Billing"
    )]
    uri: String,
}

impl From<&SecondFactorEnrollment> for SecondFactorEnrollmentJson {
    fn from(enrolled: &SecondFactorEnrollment) -> Self {
        let SecondFactorEnrollment { email, secret } = enrolled;
        let issuer = encoded(ISSUER);
        let uri = format!("otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}", encoded(email));
        Self { secret: secret.clone(), uri }
    }
}

/// A text as part of a URI.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Codes that let somebody in who has lost their device, each once.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryCodesJson {
    /// The codes; they can't be shown again.
    #[schema(min_items = 10, max_items = 10)]
    recovery_codes: Vec<String>,
}

impl From<&RecoveryCodes> for RecoveryCodesJson {
    fn from(codes: &RecoveryCodes) -> Self {
        Self { recovery_codes: codes.0.clone() }
    }
}
