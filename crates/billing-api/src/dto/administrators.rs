//! Administrators as seen and changed by owners. Only the response that creates a one-time password contains it.

use billing_application::administrators::{AdministratorEdit, IssuedInvitation};
use billing_domain::access::{Administrator, Role};
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, fields, response};
use super::enums::RoleWord;
use super::values::{Email, TimestampText};
use super::wire::{AssignedRef, EmailText};

body! {
    /// An administrator to create.
    InvitationBody {
        /// E-mail address: the log-in name, unique in the installation.
        email: Email,
        /// Role.
        role: Role,
    }
}

fields! {
    AdministratorEdit {
        /// Role.
        role: Option<Role>,
        /// Whether the administrator cannot log in.
        disabled: Option<bool>,
    }
}

body! {
    /// Changes to an administrator. Omitted fields stay unchanged.
    AdministratorEditBody {
        @flat edit: AdministratorEdit,
    }
}

body! {
    /// Options for resetting an administrator's access. The body may be omitted.
    AdministratorResetBody {
        /// Whether to remove the second factor, for administrators who lost their device and the recovery codes. Default:
        /// false.
        remove_second_factor: bool = false,
    }
}

answer! {
    /// An administrator.
    AdministratorJson of administrator: Administrator {
        /// Reference.
        admin_ref: AssignedRef = administrator.admin_ref,
        /// E-mail address.
        email: EmailText = &administrator.email,
        /// Role.
        role: RoleWord = administrator.role,
        /// Time since which log-ins require a second factor; null if they do not.
        second_factor_since: Option<TimestampText> = administrator.second_factor.since(),
        /// Expiry of the one-time password; null once the administrator has set their own password.
        one_time_until: Option<TimestampText> = administrator.one_time_until,
        /// Time of creation.
        created_at: TimestampText = administrator.created_at,
        /// Time since which the administrator cannot log in; null if they can.
        disabled_at: Option<TimestampText> = administrator.disabled_at,
        /// Time of the last change.
        updated_at: TimestampText = administrator.updated_at,
    }
}

response! {
    /// An administrator with a one-time password.
    #[derive(Serialize, ToSchema)]
    pub struct InvitationJson {
        /// Reference of the administrator.
        admin_ref: AssignedRef,
        /// E-mail address.
        email: EmailText,
        /// Role.
        role: RoleWord,
        /// One-time password for setting the administrator's own password; not shown again.
        password: String,
        /// Expiry of the one-time password.
        one_time_until: Option<TimestampText>,
    }
}

impl From<&IssuedInvitation> for InvitationJson {
    fn from(invited: &IssuedInvitation) -> Self {
        let IssuedInvitation { administrator, password } = invited;
        Self {
            admin_ref: AssignedRef::from(administrator.admin_ref),
            email: EmailText::from(&administrator.email),
            role: RoleWord::from(administrator.role),
            password: password.clone(),
            one_time_until: administrator.one_time_until.map(TimestampText::from),
        }
    }
}
