//! Administrators, as owners see and change them. A password that works once goes out once, from the answer that made it.

use billing_application::administrators::{AdministratorEdit, IssuedInvitation};
use billing_domain::access::{Administrator, Role};
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, fields};
use super::enums::RoleWord;
use super::values::Email;
use super::wire::{AssignedRef, EmailText, TimestampText};

body! {
    /// An administrator to make.
    InvitationBody {
        /// E-mail address: the log-in name, unique in the installation.
        email: Email,
        /// What they may do.
        role: Role,
    }
}

fields! {
    AdministratorEdit {
        /// What they may do.
        role: Option<Role>,
        /// Whether they are kept from logging in.
        disabled: Option<bool>,
    }
}

body! {
    /// Changes to an administrator: fields left out are kept.
    AdministratorEditBody {
        @flat edit: AdministratorEdit,
    }
}

body! {
    /// How an administrator is helped who can't log in. The whole body may be left out.
    AdministratorResetBody {
        /// Whether log-ins take no code any more, for who has lost their device and the recovery codes; false when left out.
        remove_second_factor: bool = false,
    }
}

answer! {
    /// An administrator.
    AdministratorJson of administrator: Administrator {
        /// Reference.
        admin_ref: AssignedRef = administrator.admin_ref,
        /// Their e-mail address.
        email: EmailText = &administrator.email,
        /// What they may do.
        role: RoleWord = administrator.role,
        /// Since when a log-in takes a code, too; null where it takes none.
        second_factor_since: Option<TimestampText> = administrator.second_factor.since(),
        /// Until when the password that they were given lets them set their own; null once they have.
        one_time_until: Option<TimestampText> = administrator.one_time_until,
        /// When they were made.
        created_at: TimestampText = administrator.created_at,
        /// Since when they can't log in; null where they can.
        disabled_at: Option<TimestampText> = administrator.disabled_at,
    }
}

/// An administrator who was given a password that works once.
#[derive(Serialize, ToSchema)]
pub(crate) struct InvitationJson {
    /// The administrator.
    admin_ref: AssignedRef,
    /// Their e-mail address.
    email: EmailText,
    /// What they may do.
    role: RoleWord,
    /// A password that lets them set their own; it can't be shown again.
    password: String,
    /// Until when it does.
    one_time_until: Option<TimestampText>,
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
