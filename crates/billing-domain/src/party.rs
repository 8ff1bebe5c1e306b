//! The two sides of a document: the customer who pays and the supplier entity that bills.

pub mod bank;
pub mod legal;

use thiserror::Error;

use crate::calendar::{TimeZone, Timestamp};
use crate::codes::CountryCode;
use crate::money::Currency;
use crate::refs::{BankAccountRef, CustomerId, CustomerRef, EntityRef, OrganizationId};
use crate::refusal::Refusal;
use crate::tax::DefaultTaxes;
use crate::text::{OneLine, Prose};
use crate::violation::Violations;
use legal::{BuyerReference, DocumentSettings, LegalProfile};

/// The most days of net terms.
pub const MAX_NET_TERMS_DAYS: u16 = 3650;
/// The most hours of grace between a document's natural day and its issue.
pub const MAX_GRACE_HOURS: u16 = 720;
/// The grace of an entity that states none, in hours.
pub const DEFAULT_GRACE_HOURS: u16 = 2;
/// The most characters of a number prefix.
pub const MAX_PREFIX_CHARS: usize = 16;

/// An organization: whoever runs its billing here. All data belongs to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Its identity.
    pub id: OrganizationId,
    /// Its name, unique in the installation.
    pub name: OneLine,
    /// The entity that bills where neither product nor customer names one: the first one made, until another is named.
    pub default_entity: Option<EntityRef>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// How long a customer has to pay (billing rules 2 and 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetTerms {
    /// Due a number of days after the issue date, 1 to [`MAX_NET_TERMS_DAYS`].
    Days(u16),
    /// Due on the issue date.
    DueUponReceipt,
    /// Every event is an invoice of its own, due at once (billing rules 3).
    DueUponUsage,
}

/// A number of days outside 1 to [`MAX_NET_TERMS_DAYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be a whole number of days from 1 to 3650, or DUE_UPON_RECEIPT, or DUE_UPON_USAGE")]
pub struct NetTermsError;

impl NetTerms {
    /// A number of days.
    ///
    /// # Errors
    /// [`NetTermsError`] outside 1 to [`MAX_NET_TERMS_DAYS`].
    pub fn days(days: u16) -> Result<Self, NetTermsError> {
        if (1..=MAX_NET_TERMS_DAYS).contains(&days) { Ok(Self::Days(days)) } else { Err(NetTermsError) }
    }

    /// Days between issue date and due date.
    pub const fn due_after_days(self) -> u32 {
        match self {
            Self::Days(days) => days as u32,
            Self::DueUponReceipt | Self::DueUponUsage => 0,
        }
    }
}

/// A postal address. Every part is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// First line.
    pub line1: Option<Prose>,
    /// Second line.
    pub line2: Option<Prose>,
    /// City.
    pub city: Option<Prose>,
    /// State or province.
    pub state: Option<Prose>,
    /// Postal code.
    pub zip_code: Option<Prose>,
    /// Country, in words.
    pub country: Option<Prose>,
    /// Country.
    pub country_code: Option<CountryCode>,
}

/// Where and how to pay. Copied onto a document when it is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaymentDetails {
    /// Bank account.
    pub bank_transfer: Option<BankTransferDetails>,
    /// Card or other online payment.
    pub online: Option<OnlinePaymentDetails>,
    /// Crypto wallet.
    pub crypto: Option<CryptoDetails>,
}

impl PaymentDetails {
    /// Each kind of details from the first that states it (billing rules 7, defaults).
    pub fn or(&self, fallback: &Self) -> Self {
        Self {
            bank_transfer: self.bank_transfer.clone().or_else(|| fallback.bank_transfer.clone()),
            online: self.online.clone().or_else(|| fallback.online.clone()),
            crypto: self.crypto.clone().or_else(|| fallback.crypto.clone()),
        }
    }
}

/// A bank account, by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BankTransferDetails {
    /// Bank account identifier.
    pub billing_account_id: Option<OneLine>,
}

impl BankTransferDetails {
    /// The bank account that it names, where it can name one.
    pub fn account_ref(&self) -> Option<BankAccountRef> {
        BankAccountRef::parse(self.billing_account_id.as_ref()?.as_str()).ok()
    }
}

/// Online payment, by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OnlinePaymentDetails {
    /// Whether charging is automatic.
    pub auto_charge: Option<bool>,
    /// Payment gateway identifier.
    pub payment_gateway_id: Option<OneLine>,
    /// A card defined in the gateway account.
    pub payment_gateway_card_id: Option<OneLine>,
}

/// A crypto wallet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CryptoDetails {
    /// Wallet address.
    pub address: Option<OneLine>,
    /// Tokens the wallet supports.
    pub tokens: Vec<OneLine>,
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// Internal identity: the unit of distribution in the store.
    pub id: CustomerId,
    /// As callers name it.
    pub customer_ref: CustomerRef,
    /// What can be edited.
    pub profile: CustomerProfile,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What can be edited of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerProfile {
    /// Name; usage may be reported under it.
    pub name: OneLine,
    /// Registered name.
    pub legal_name: Option<OneLine>,
    /// E-mail address.
    pub email: Option<OneLine>,
    /// Tax number.
    pub tax_id: Option<OneLine>,
    /// Postal address.
    pub billing_address: Option<Address>,
    /// Information only: a document's currency is its pricing's.
    pub currency: Option<Currency>,
    /// Default taxes of this customer's products, by the day from which each holds (billing rules 7).
    pub taxes: DefaultTaxes,
    /// Default supplier entity of this customer's products.
    pub entity_ref: Option<EntityRef>,
    /// Default net terms.
    pub net_terms: Option<NetTerms>,
    /// Default payment details.
    pub payment: PaymentDetails,
    /// Whether balance goes to documents of other families by itself (billing rules 9).
    pub apply_balance: bool,
    /// How authorities and networks know it.
    pub legal: LegalProfile,
    /// What it wants to find on documents of products that don't say it themselves.
    pub buyer_reference: Option<BuyerReference>,
}

/// A supplier entity: the legal person that bills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// As callers name it.
    pub entity_ref: EntityRef,
    /// What can be edited.
    pub profile: EntityProfile,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Entity {
    /// Why its number prefix can't change once documents have its numbers.
    pub fn numbers_given(&self) -> Refusal {
        let prefix = self.profile.number_prefix.as_str();
        let detail = format!(
            "number_prefix can't change any more, because documents have numbers that begin with {prefix}: \
             make another entity for another prefix"
        );
        Refusal::conflict("numbers_given", detail)
    }
}

/// What can be edited of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityProfile {
    /// Name.
    pub name: OneLine,
    /// Registered name.
    pub legal_name: Option<OneLine>,
    /// Start of every document number; unique in the organization.
    pub number_prefix: NumberPrefix,
    /// The zone whose calendar dates periods and issue dates are.
    pub time_zone: TimeZone,
    /// Information only: a document's currency is its pricing's.
    pub currency: Option<Currency>,
    /// Postal address.
    pub address: Option<Address>,
    /// Tax number.
    pub tax_id: Option<OneLine>,
    /// Default net terms.
    pub net_terms: Option<NetTerms>,
    /// Hours between a document's natural day and its issue, 0 to [`MAX_GRACE_HOURS`].
    pub grace_hours: u16,
    /// Default payment details.
    pub payment: PaymentDetails,
    /// How authorities and networks know it.
    pub legal: LegalProfile,
    /// Default tax categories of its products at a rate of 0, by the day from which each holds (billing rules 7).
    pub taxes: DefaultTaxes,
    /// What its documents are like as papers.
    pub paper: DocumentSettings,
}

impl CustomerProfile {
    /// Checks what no single field shows (billing rules 10).
    ///
    /// # Errors
    /// Every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        self.taxes.check()
    }

    /// One that says nothing but a name.
    pub fn plain(name: OneLine) -> Self {
        Self {
            name,
            legal_name: None,
            email: None,
            tax_id: None,
            billing_address: None,
            currency: None,
            taxes: DefaultTaxes::default(),
            entity_ref: None,
            net_terms: None,
            payment: PaymentDetails::default(),
            apply_balance: true,
            legal: LegalProfile::default(),
            buyer_reference: None,
        }
    }
}

impl EntityProfile {
    /// Checks what no single field shows (billing rules 10).
    ///
    /// # Errors
    /// Every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        self.taxes.check()
    }

    /// One in UTC with the default grace that says nothing else but its name and prefix.
    pub fn plain(name: OneLine, number_prefix: NumberPrefix) -> Self {
        Self {
            name,
            legal_name: None,
            number_prefix,
            time_zone: TimeZone::UTC,
            currency: None,
            address: None,
            tax_id: None,
            net_terms: None,
            grace_hours: DEFAULT_GRACE_HOURS,
            payment: PaymentDetails::default(),
            legal: LegalProfile::default(),
            taxes: DefaultTaxes::default(),
            paper: DocumentSettings::default(),
        }
    }

    /// Whether documents become due at other times than by another profile.
    pub fn bills_at_other_times_than(&self, other: &Self) -> bool {
        self.time_zone != other.time_zone || self.grace_hours != other.grace_hours
    }
}

/// The start of an entity's document numbers: 1 to 16 characters `A–Z 0–9`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberPrefix(Box<str>);

/// Not a number prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 1 to 16 characters of A-Z 0-9")]
pub struct NumberPrefixError;

impl NumberPrefix {
    /// Reads a prefix.
    ///
    /// # Errors
    /// [`NumberPrefixError`] when the text breaks the rule.
    pub fn parse(text: &str) -> Result<Self, NumberPrefixError> {
        let fits =
            (1..=MAX_PREFIX_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if fits { Ok(Self(text.into())) } else { Err(NumberPrefixError) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(NumberPrefix: NumberPrefixError);
