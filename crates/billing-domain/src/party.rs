//! The two parties of a document: the customer who pays and the supplier entity that bills.

pub mod appearance;
pub mod bank;
pub mod legal;

use std::sync::Arc;

use thiserror::Error;

use crate::calendar::{TimeZone, Timestamp};
use crate::codes::CountryCode;
use crate::credit::unit::CreditUnits;
use crate::metadata::Metadata;
use crate::money::Currency;
use crate::refs::{BankAccountRef, CustomerId, CustomerRef, EntityRef, OrganizationId};
use crate::refusal::Refusal;
use crate::tax::DefaultTaxes;
use crate::text::{OneLine, Prose};
use crate::violation::Violations;
use legal::{BuyerReference, DocumentSettings, EInvoiceProfile, LegalProfile};

/// The maximum net terms in days.
pub const MAX_NET_TERMS_DAYS: u16 = 3650;
/// The maximum grace in hours between the natural date of a document and its issue.
pub const MAX_GRACE_HOURS: u16 = 720;
/// The default grace of an entity in hours.
pub const DEFAULT_GRACE_HOURS: u16 = 2;
/// The maximum length of a number prefix in characters.
pub const MAX_PREFIX_CHARS: usize = 16;

/// A tenant of the installation. All data belongs to one organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name, unique in the installation.
    pub name: OneLine,
    /// The entity that bills if neither the product nor the customer names one. Initially, it is the first entity created.
    pub default_entity: Option<EntityRef>,
    /// The time of creation.
    pub created_at: Timestamp,
}

/// The time a customer has to pay (billing rules 2 and 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetTerms {
    /// Payment is due a number of days after the issue date, 1 to [`MAX_NET_TERMS_DAYS`].
    Days(u16),
    /// Payment is due on the issue date.
    DueUponReceipt,
    /// Every event has an invoice of its own, which is due immediately (billing rules 3).
    DueUponUsage,
}

/// The error for a number of days outside 1 to [`MAX_NET_TERMS_DAYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be a whole number of days from 1 to 3650, or DUE_UPON_RECEIPT, or DUE_UPON_USAGE")]
pub struct NetTermsError;

impl NetTerms {
    /// Creates net terms of a number of days.
    ///
    /// # Errors
    /// Returns [`NetTermsError`] if the number is outside 1 to [`MAX_NET_TERMS_DAYS`].
    pub fn days(days: u16) -> Result<Self, NetTermsError> {
        if (1..=MAX_NET_TERMS_DAYS).contains(&days) { Ok(Self::Days(days)) } else { Err(NetTermsError) }
    }

    /// Returns the number of days between the issue date and the due date.
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
    /// The first line.
    pub line1: Option<Prose>,
    /// The second line.
    pub line2: Option<Prose>,
    /// The city.
    pub city: Option<Prose>,
    /// The state or province.
    pub state: Option<Prose>,
    /// The postal code.
    pub zip_code: Option<Prose>,
    /// The country in words.
    pub country: Option<Prose>,
    /// The country code.
    pub country_code: Option<CountryCode>,
}

/// The payment details of a document. They are copied onto a document when the document is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaymentDetails {
    /// The bank account.
    pub bank_transfer: Option<BankTransferDetails>,
    /// The card or other online payment.
    pub online: Option<OnlinePaymentDetails>,
    /// The crypto wallet.
    pub crypto: Option<CryptoDetails>,
}

impl PaymentDetails {
    /// Returns these details. A kind that isn't set comes from the fallback (billing rules 7, defaults).
    pub fn or(&self, fallback: &Self) -> Self {
        Self {
            bank_transfer: self.bank_transfer.clone().or_else(|| fallback.bank_transfer.clone()),
            online: self.online.clone().or_else(|| fallback.online.clone()),
            crypto: self.crypto.clone().or_else(|| fallback.crypto.clone()),
        }
    }
}

/// A reference to a bank account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BankTransferDetails {
    /// The identifier of the bank account.
    pub billing_account_id: Option<OneLine>,
}

impl BankTransferDetails {
    /// Returns the reference of the bank account, or `None` if the identifier is missing or isn't a valid reference.
    pub fn account_ref(&self) -> Option<BankAccountRef> {
        BankAccountRef::parse(self.billing_account_id.as_ref()?.as_str()).ok()
    }
}

/// References for online payment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OnlinePaymentDetails {
    /// Whether the customer is charged automatically.
    pub auto_charge: Option<bool>,
    /// The identifier of the payment gateway.
    pub payment_gateway_id: Option<OneLine>,
    /// A card that is defined in the gateway account.
    pub payment_gateway_card_id: Option<OneLine>,
}

/// A crypto wallet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CryptoDetails {
    /// The wallet address.
    pub address: Option<OneLine>,
    /// The tokens that the wallet supports.
    pub tokens: Vec<OneLine>,
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// The internal id. Stores distribute data by it.
    pub id: CustomerId,
    /// The reference that callers use.
    pub customer_ref: CustomerRef,
    /// The editable data.
    pub profile: CustomerProfile,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// The editable data of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerProfile {
    /// The name. Usage events may refer to the customer by name.
    pub name: OneLine,
    /// The registered name.
    pub legal_name: Option<OneLine>,
    /// The e-mail address.
    pub email: Option<OneLine>,
    /// The tax number.
    pub tax_id: Option<OneLine>,
    /// The postal address.
    pub billing_address: Option<Address>,
    /// The currency, for information only. The pricing determines the currency of a document.
    pub currency: Option<Currency>,
    /// The default taxes of the customer's products, each with the day from which it is in force (billing rules 7).
    pub taxes: DefaultTaxes,
    /// The default supplier entity of the customer's products.
    pub entity_ref: Option<EntityRef>,
    /// The default net terms.
    pub net_terms: Option<NetTerms>,
    /// The default payment details.
    pub payment: PaymentDetails,
    /// Whether balance is applied automatically to documents of other document families (billing rules 9).
    pub apply_balance: bool,
    /// The legal identifiers of the customer.
    pub legal: LegalProfile,
    /// The buyer reference on documents of products without a buyer reference of their own.
    pub buyer_reference: Option<BuyerReference>,
    /// The e-invoice profile of the customer's documents. `None` means the entity's profile.
    pub e_invoice_profile: Option<EInvoiceProfile>,
    /// The metadata.
    pub metadata: Metadata,
}

/// A supplier entity: the legal person that bills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The reference that callers use.
    pub entity_ref: EntityRef,
    /// The editable data.
    pub profile: EntityProfile,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change, also of whether the entity is the organization's default.
    pub updated_at: Timestamp,
}

impl Entity {
    /// Returns the refusal to change the number prefix once documents have numbers with it.
    pub fn numbers_given(&self) -> Refusal {
        let prefix = self.profile.number_prefix.as_str();
        let detail = format!(
            "number_prefix cannot change, because numbers of documents begin with {prefix}: make another entity for another prefix"
        );
        Refusal::conflict("numbers_given", detail)
    }
}

/// What prevents the deletion of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityUse {
    /// The entity is the default of the organization.
    Default,
    /// A customer names the entity.
    Customer(CustomerRef),
    /// A version of the contract with this number names the entity.
    Contract(u64),
    /// This customer has a receivables account with the entity: a deposit needs no contract.
    Payer(CustomerRef),
}

impl EntityUse {
    /// Returns the refusal to delete the entity.
    pub fn refusal(&self) -> Refusal {
        let detail = match self {
            Self::Default => {
                "the entity is the default of the organization: set `default` on another entity, then delete this one".to_owned()
            }
            Self::Customer(customer_ref) => format!(
                "the customer {customer_ref} names the entity: set its entity_ref to another entity or to null, then delete this one"
            ),
            Self::Contract(number) => format!(
                "a version of the contract C-{number} names the entity, so the entity stays: name another entity in new contracts"
            ),
            Self::Payer(customer_ref) => format!(
                "payments of the customer {customer_ref} are recorded for the entity, so the entity stays: name another entity in new payments"
            ),
        };
        Refusal::conflict("entity_in_use", detail)
    }
}

/// The editable data of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityProfile {
    /// The name.
    pub name: OneLine,
    /// The registered name.
    pub legal_name: Option<OneLine>,
    /// The prefix of every document number, unique in the organization.
    pub number_prefix: NumberPrefix,
    /// The time zone of service dates, periods and issue dates.
    pub time_zone: TimeZone,
    /// The currency, for information only. The pricing determines the currency of a document.
    pub currency: Option<Currency>,
    /// The postal address.
    pub address: Option<Address>,
    /// The tax number.
    pub tax_id: Option<OneLine>,
    /// The default net terms.
    pub net_terms: Option<NetTerms>,
    /// The hours between the natural date of a document and its issue, 0 to [`MAX_GRACE_HOURS`].
    pub grace_hours: u16,
    /// The default payment details.
    pub payment: PaymentDetails,
    /// The legal identifiers of the entity.
    pub legal: LegalProfile,
    /// The default tax categories of the entity's products at a rate of 0, each with the day from which it is in force (billing
    /// rules 7).
    pub taxes: DefaultTaxes,
    /// The legal and layout settings of the entity's documents.
    pub paper: DocumentSettings,
    /// The units of prepaid credit, by currency.
    pub credit_unit: CreditUnits,
}

impl CustomerProfile {
    /// Checks rules that involve more than one field (billing rules 10).
    ///
    /// # Errors
    /// Returns all violations.
    pub fn check(&self) -> Result<(), Violations> {
        self.taxes.check()
    }

    /// Creates a profile that has only a name.
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
            e_invoice_profile: None,
            metadata: Metadata::default(),
        }
    }
}

impl EntityProfile {
    /// Checks rules that involve more than one field (billing rules 10).
    ///
    /// # Errors
    /// Returns all violations.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = self.taxes.check().err().unwrap_or_default();
        found.extend(self.paper.check().err().unwrap_or_default());
        found.or(())
    }

    /// Creates a profile that has only a name and a prefix, with the time zone UTC and the default grace.
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
            credit_unit: CreditUnits::default(),
        }
    }

    /// Returns whether documents become due at other times than with another profile.
    pub fn bills_at_other_times_than(&self, other: &Self) -> bool {
        self.time_zone != other.time_zone || self.grace_hours != other.grace_hours
    }
}

/// The prefix of an entity's document numbers: 1 to 16 characters `A–Z 0–9`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberPrefix(Arc<str>);

/// The error for text that isn't a number prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 1 to 16 characters of A-Z 0-9")]
pub struct NumberPrefixError;

impl NumberPrefix {
    /// Parses a prefix.
    ///
    /// # Errors
    /// Returns [`NumberPrefixError`] if the text is invalid.
    pub fn parse(text: &str) -> Result<Self, NumberPrefixError> {
        let fits =
            (1..=MAX_PREFIX_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if fits { Ok(Self(text.into())) } else { Err(NumberPrefixError) }
    }

    /// Returns the prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(NumberPrefix: NumberPrefixError);
