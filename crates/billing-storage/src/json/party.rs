//! Addresses and payment details.

use billing_domain::codes::CountryCode;
use billing_domain::party::{Address, BankTransferDetails, CryptoDetails, OnlinePaymentDetails, PaymentDetails};
use billing_domain::text::{OneLine, Prose};
use serde::{Deserialize, Serialize};

use super::{column, option_of};
use crate::text_value;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Address")]
pub(super) struct AddressMirror {
    #[serde(with = "text_value::option")]
    line1: Option<Prose>,
    #[serde(with = "text_value::option")]
    line2: Option<Prose>,
    #[serde(with = "text_value::option")]
    city: Option<Prose>,
    #[serde(with = "text_value::option")]
    state: Option<Prose>,
    #[serde(with = "text_value::option")]
    zip_code: Option<Prose>,
    #[serde(with = "text_value::option")]
    country: Option<Prose>,
    // Addresses stored by earlier releases lack this field.
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    country_code: Option<CountryCode>,
}
column!(
    /// A postal address.
    StoredAddressRef, StoredAddress: Address = "AddressMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "PaymentDetails")]
pub(super) struct PaymentMirror {
    #[serde(with = "bank_transfer")]
    bank_transfer: Option<BankTransferDetails>,
    #[serde(with = "online")]
    online: Option<OnlinePaymentDetails>,
    #[serde(with = "crypto")]
    crypto: Option<CryptoDetails>,
}
column!(
    /// Payment details.
    StoredPaymentRef, StoredPayment: PaymentDetails = "PaymentMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "BankTransferDetails")]
struct BankTransferMirror {
    #[serde(with = "text_value::option")]
    billing_account_id: Option<OneLine>,
}
option_of!(bank_transfer: BankTransferDetails = "BankTransferMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "OnlinePaymentDetails")]
struct OnlineMirror {
    auto_charge: Option<bool>,
    #[serde(with = "text_value::option")]
    payment_gateway_id: Option<OneLine>,
    #[serde(with = "text_value::option")]
    payment_gateway_card_id: Option<OneLine>,
}
option_of!(online: OnlinePaymentDetails = "OnlineMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "CryptoDetails")]
struct CryptoMirror {
    #[serde(with = "text_value::option")]
    address: Option<OneLine>,
    #[serde(with = "text_value::list")]
    tokens: Vec<OneLine>,
}
option_of!(crypto: CryptoDetails = "CryptoMirror");
