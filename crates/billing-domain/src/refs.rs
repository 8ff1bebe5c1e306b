//! Typed references: one type per thing, so that a customer can't be passed where a contract is meant.
//!
//! *Assigned* references are UUIDs that the service makes (version 7, so they sort by creation). *Named*
//! references may be chosen by the caller: 1–64 characters of `A–Z a–z 0–9 . _ : -`, unique in the
//! organization, never changed.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

/// The most characters a named reference may have.
pub const MAX_REF_CHARS: usize = 64;

/// Why a text is no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefError {
    /// Not the text of a UUID.
    #[error("must be a UUID such as 0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b")]
    NotAUuid,
    /// Empty, longer than [`MAX_REF_CHARS`], or with a character outside `A–Z a–z 0–9 . _ : -`.
    #[error("must be 1 to 64 characters of A-Z a-z 0-9 . _ : -")]
    NotAName,
}

/// What a reference in a path or a body stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// An administrator.
    Administrator,
    /// An API key.
    ApiKey,
    /// A bank account.
    BankAccount,
    /// A credit or a payment that was applied to a document.
    Application,
    /// A charge.
    Charge,
    /// A contract.
    Contract,
    /// A customer.
    Customer,
    /// A document.
    Document,
    /// A supplier entity.
    Entity,
    /// A usage event.
    Event,
    /// A usage format.
    Format,
    /// A billing run.
    BillingRun,
    /// An import of a file.
    Import,
    /// An organization.
    Organization,
    /// A payment or a refund.
    Payment,
    /// A pricing.
    Pricing,
    /// An administrator's session.
    Session,
    /// A usage product.
    UsageProduct,
}

impl ResourceKind {
    /// Its word in the interface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::ApiKey => "API key",
            Self::BankAccount => "bank account",
            Self::Application => "application",
            Self::Charge => "charge",
            Self::Contract => "contract",
            Self::Customer => "customer",
            Self::Document => "document",
            Self::Entity => "entity",
            Self::Event => "usage event",
            Self::Format => "usage format",
            Self::BillingRun => "billing run",
            Self::Import => "import",
            Self::Organization => "organization",
            Self::Payment => "payment",
            Self::Pricing => "pricing",
            Self::Session => "session",
            Self::UsageProduct => "usage product",
        }
    }
}

macro_rules! assigned_ref {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps an identifier made by [`IdSource`](crate::ports::IdSource) or read from a store.
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            /// The identifier itself.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }

            /// Reads the hyphenated form.
            ///
            /// # Errors
            /// [`RefError::NotAUuid`] for anything else.
            pub fn parse(text: &str) -> Result<Self, RefError> {
                if text.len() != 36 {
                    return Err(RefError::NotAUuid);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| RefError::NotAUuid)
            }
        }

        from_str!($name: RefError);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )+};
}

macro_rules! named_ref {
    ($($(#[$meta:meta])* $name:ident $(where $is_name:ident)?;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Reads a reference chosen by a caller.
            ///
            /// # Errors
            /// [`RefError::NotAName`] when the text breaks the rule for names.
            pub fn parse(text: &str) -> Result<Self, RefError> {
                let is_taken = named_ref!(@rule $($is_name)?)(text);
                if is_taken { Ok(Self(text.into())) } else { Err(RefError::NotAName) }
            }

            /// The reference the service assigns when the caller gives none.
            pub fn assigned(id: Uuid) -> Self {
                Self(id.hyphenated().to_string().into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        from_str!($name: RefError);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )+};
    (@rule) => { is_name };
    (@rule $is_name:ident) => { $is_name };
}

/// What the line items of charges begin with, which no pricing's do.
pub const CHARGE_PREFIX: &str = "charge:";

impl LineItemId {
    /// The line item of a charge (billing rules 5).
    pub fn of_charge(charge_ref: &ChargeRef) -> Self {
        Self(format!("{CHARGE_PREFIX}{charge_ref}").into())
    }

    /// Whether it is a charge's.
    pub fn is_of_charge(&self) -> bool {
        self.0.starts_with(CHARGE_PREFIX)
    }
}

/// The line item of a charge has its reference whole.
fn is_line_item(text: &str) -> bool {
    is_name(text) || text.strip_prefix(CHARGE_PREFIX).is_some_and(is_name)
}

fn is_name(text: &str) -> bool {
    (1..=MAX_REF_CHARS).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

assigned_ref! {
    /// The organization all data belongs to. Every port method on an organization's data takes one,
    /// alone or in a key; use cases get it from an authenticated [`Principal`](crate::access::Principal) alone.
    OrganizationId;
    /// An administrator.
    AdminRef;
    /// An API key record.
    ApiKeyRef;
    /// An administrator's session.
    SessionRef;
    /// A customer's internal identity: the unit of distribution in the store.
    CustomerId;
    /// A contract.
    ContractRef;
    /// A usage event.
    EventRef;
    /// An invoice, credit or debit.
    DocumentRef;
    /// A payment recorded on a document, or a refund.
    PaymentRef;
    /// A credit or a payment that was applied to a document.
    ApplicationRef;
    /// An amount that was written off, or lessened.
    WriteOffRef;
    /// An entry of the audit log.
    AuditRef;
    /// A billing run.
    BillingRunRef;
    /// An import of a file of usage events.
    ImportRef;
    /// Some of the events that an import made.
    ImportPartRef;
}

named_ref! {
    /// A customer, as callers name it.
    CustomerRef;
    /// A usage product.
    UsageProductRef;
    /// A pricing.
    PricingRef;
    /// A supplier entity.
    EntityRef;
    /// A usage format.
    FormatRef;
    /// A bank account.
    BankAccountRef;
    /// A charge; it may name what is billed by hand.
    ChargeRef;
    /// A line item; unique within its pricing. Those that begin with [`CHARGE_PREFIX`] are of charges.
    LineItemId where is_line_item;
}

/// A contract product's place in its contract, counted from 0 and kept for the contract's whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProductNo(pub u16);

/// Names one contract in a store: under another organization or another customer there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContractKey {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Who pays.
    pub customer: CustomerId,
    /// The contract.
    pub contract: ContractRef,
}

/// Names one document in a store: under another organization or another customer there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Who pays.
    pub customer: CustomerId,
    /// The document.
    pub document: DocumentRef,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_the_allowed_characters_and_lengths_only() {
        for good in ["a", "Acme:eu-1_x.9", &"x".repeat(64)] {
            assert_eq!(CustomerRef::parse(good).expect(good).as_str(), good);
        }
        for bad in ["", " ", "a b", "ä", "a/b", "a\n", &"x".repeat(65)] {
            assert_eq!(CustomerRef::parse(bad), Err(RefError::NotAName), "{bad:?}");
        }
    }

    #[test]
    fn only_the_hyphenated_form_is_an_assigned_reference() {
        let text = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
        assert_eq!(EventRef::parse(text).expect("a UUID").to_string(), text);
        for bad in ["", "0198c5f27c3e7b1a9d550c2f6d1e8a4b", "{0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b}", "nonsense"] {
            assert_eq!(EventRef::parse(bad), Err(RefError::NotAUuid), "{bad:?}");
        }
    }
}
