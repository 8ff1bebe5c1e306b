//! What an operation requires of its principal.

use std::fmt;

use super::{Role, Scope};

/// A permission that an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// An administrator of any role. Operations on the administrator's own account require it.
    Administrator,
    /// An administrator with the role owner, or the command line. No API key has it, regardless of its scopes.
    Owner,
    /// A scope. An administrator has the scopes of the role.
    Scope(Scope),
    /// A scope and [`Scope::Read`], for changes that also disclose data.
    ScopeAndRead(Scope),
    /// A scope, or an administrator with this role or a higher one. The role is lower than the lowest one with the scope.
    ScopeOrRole(Scope, Role),
}

impl Permission {
    /// Returns the lowest role that has this permission.
    pub fn role(self) -> Role {
        let has = |role: &Role| match self {
            Self::Administrator => true,
            Self::Owner => *role == Role::Owner,
            Self::ScopeOrRole(_, lowest) => *role >= lowest,
            Self::Scope(_) | Self::ScopeAndRead(_) => role.scopes().allow_all(&self.scopes()),
        };
        Role::ALL.into_iter().find(has).unwrap_or(Role::Owner)
    }

    /// Returns the scopes that an API key needs. It is empty for permissions that no API key has.
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Administrator | Self::Owner => Vec::new(),
            Self::Scope(scope) | Self::ScopeOrRole(scope, _) => vec![scope],
            Self::ScopeAndRead(scope) => vec![scope, Scope::Read],
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrator => f.write_str("an administrator"),
            Self::Owner => f.write_str("an owner"),
            Self::Scope(scope) | Self::ScopeOrRole(scope, _) => write!(f, "the scope {}", scope.as_str()),
            Self::ScopeAndRead(scope) => write!(f, "the scopes {} and {}", scope.as_str(), Scope::Read.as_str()),
        }
    }
}
