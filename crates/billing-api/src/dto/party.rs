//! Fields shared by customers, entities, contract products and documents: addresses and payment details.

use billing_domain::codes::CountryCode;
use billing_domain::party::{Address, BankTransferDetails, CryptoDetails, OnlinePaymentDetails, PaymentDetails};
use billing_domain::text::{OneLine, Prose};

use super::declare::{SharedObjectResponse, fields, object};

object! {
    /// A postal address. All fields are optional.
    answer Address as "Address" {
        /// First line.
        line1: Option<Prose>,
        /// Second line.
        line2: Option<Prose>,
        /// City.
        city: Option<Prose>,
        /// State or province.
        state: Option<Prose>,
        /// Postal code.
        zip_code: Option<Prose>,
        /// Country name.
        country: Option<Prose>,
        /// Country code.
        country_code: Option<CountryCode>,
    }
}

object! {
    /// A bank account, by reference.
    answer BankTransferDetails as "BankTransfer" {
        /// Bank account identifier.
        billing_account_id: Option<OneLine>,
    }
}

object! {
    /// Online payment, by reference.
    answer OnlinePaymentDetails as "OnlinePayment" {
        /// Whether charging is automatic.
        auto_charge: Option<bool>,
        /// Payment gateway identifier.
        payment_gateway_id: Option<OneLine>,
        /// A card defined in the gateway account.
        payment_gateway_card_id: Option<OneLine>,
    }
}

object! {
    /// A crypto wallet.
    answer CryptoDetails as "Crypto" {
        /// Wallet address.
        address: Option<OneLine>,
        /// Tokens the wallet supports, such as USDC, USDT, BTC, ETH.
        tokens: Vec<OneLine> = Vec::new(),
    }
}

fields! {
    edit answer PaymentDetails {
        /// Bank account.
        bank_transfer as "billing_bank_transfer_details": Option<BankTransferDetails>,
        /// Online payment.
        online as "billing_online_payment_details": Option<OnlinePaymentDetails>,
        /// Crypto wallet.
        crypto as "billing_crypto_details": Option<CryptoDetails>,
    }
}

pub type AddressJson = SharedObjectResponse<Address>;
pub type BankTransferJson = SharedObjectResponse<BankTransferDetails>;
pub type OnlinePaymentJson = SharedObjectResponse<OnlinePaymentDetails>;
pub type CryptoJson = SharedObjectResponse<CryptoDetails>;
