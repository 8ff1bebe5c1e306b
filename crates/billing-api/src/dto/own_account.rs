//! The caller's own account: session, password, second factor. Only the response that creates a secret contains it.

use billing_application::own_account::{OwnAccount, OwnSession, RecoveryCodes, SecondFactorEnrollment};
use billing_domain::access::SecondFactor;
use billing_domain::text::OneLine;
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, response};
use super::enums::RoleWord;
use super::values::{LineText, Password, TimestampText};
use super::wire::{AssignedRef, EmailText};

/// Issuer name that authenticator apps show.
const ISSUER: &str = "Usage Billing";

body! {
    /// The caller's own password, again.
    ConfirmationBody {
        /// Current password.
        password: Password,
    }
}

body! {
    /// A change of password.
    PasswordChangeBody {
        /// Current password.
        password: Password,
        /// New password of 12 to 72 bytes; common passwords are rejected.
        new_password: Password,
    }
}

body! {
    /// The first code of an authenticator app with the new secret.
    SecondFactorCodeBody {
        /// Six-digit code.
        code: OneLine,
    }
}

body! {
    /// Confirmation for removing the second factor.
    SecondFactorRemovalBody {
        /// Password.
        password: Password,
        /// Six-digit code or recovery code.
        code: OneLine,
    }
}

answer! {
    /// The current administrator and session.
    OwnAccountJson of account: OwnAccount {
        let administrator = &account.administrator;
        /// Reference of the administrator.
        admin_ref: AssignedRef = administrator.admin_ref,
        /// E-mail address.
        email: EmailText = &administrator.email,
        /// Role.
        role: RoleWord = administrator.role,
        /// Name of the organization.
        organization: LineText = &account.organization.name,
        /// Time since which log-ins require a second factor; null if they do not.
        second_factor_since: Option<TimestampText> = administrator.second_factor.since(),
        /// Number of unused recovery codes.
        recovery_codes_left: u32 = recovery_codes_left(&administrator.second_factor),
        /// Reference of the session.
        session_ref: AssignedRef = account.session.session_ref,
        /// Start time.
        created_at: TimestampText = account.session.created_at,
        /// Latest end of the session.
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
    /// One of the caller's own sessions.
    OwnSessionJson of own: OwnSession {
        /// Reference.
        session_ref: AssignedRef = own.session.session_ref,
        /// Start time.
        created_at: TimestampText = own.session.created_at,
        /// Time of the latest request in this session, accurate to about a minute.
        last_seen_at: TimestampText = own.session.last_seen_at,
        /// Latest end of the session.
        expires_at: TimestampText = own.session.expires_at(),
        /// User agent of the browser.
        user_agent: Option<LineText> = own.session.user_agent.as_ref(),
        /// Whether this is the current session.
        is_current: bool = own.is_current,
    }
}

response! {
    /// A second factor that is not confirmed yet.
    #[derive(Serialize, ToSchema)]
    pub struct SecondFactorEnrollmentJson {
        /// Secret in base32, for typing into an authenticator app.
        #[schema(pattern = "^[A-Z2-7]{32}$")]
        secret: String,
        /// Secret as a URI, for a QR code.
        #[schema(
            example = "otpauth://totp/Usage%20Billing:a%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Usage%20Billing"
        )]
        uri: String,
    }
}

impl From<&SecondFactorEnrollment> for SecondFactorEnrollmentJson {
    fn from(enrolled: &SecondFactorEnrollment) -> Self {
        let SecondFactorEnrollment { email, secret } = enrolled;
        let issuer = encoded(ISSUER);
        let uri = format!("otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}", encoded(email));
        Self { secret: secret.clone(), uri }
    }
}

/// Percent-encodes a text for a URI.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

response! {
    /// Single-use codes for logging in without the device.
    #[derive(Serialize, ToSchema)]
    pub struct RecoveryCodesJson {
        /// Recovery codes; not shown again.
        #[schema(min_items = 10, max_items = 10)]
        recovery_codes: Vec<String>,
    }
}

impl From<&RecoveryCodes> for RecoveryCodesJson {
    fn from(codes: &RecoveryCodes) -> Self {
        Self { recovery_codes: codes.0.clone() }
    }
}
