//! What customers, entities, contract products and documents share: addresses, net terms, payment details, both ways.

use billing_domain::codes::CountryCode;
use billing_domain::party::{
    Address, BankTransferDetails, CryptoDetails, MAX_NET_TERMS_DAYS, NetTerms, NetTermsError, OnlinePaymentDetails,
    PaymentDetails,
};
use billing_domain::patch::Patch;
use serde::Serialize;
use utoipa::ToSchema;

use super::input::{Fields, Node};
use super::wire::{CountryCodeText, DUE_UPON_RECEIPT, DUE_UPON_USAGE, LineText, ProseText};

/// The most tokens of a wallet.
pub(super) const MAX_TOKENS: usize = 100;

/// A postal address. Every part is optional.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddressJson {
    /// First line.
    line1: Option<ProseText>,
    /// Second line.
    line2: Option<ProseText>,
    /// City.
    city: Option<ProseText>,
    /// State or province.
    state: Option<ProseText>,
    /// Postal code.
    zip_code: Option<ProseText>,
    /// Country, in words.
    country: Option<ProseText>,
    /// Country.
    country_code: Option<CountryCodeText>,
}

/// A bank account, by reference.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BankTransferJson {
    /// Bank account identifier.
    billing_account_id: Option<LineText>,
}

/// Online payment, by reference.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnlinePaymentJson {
    /// Whether charging is automatic.
    auto_charge: Option<bool>,
    /// Payment gateway identifier.
    payment_gateway_id: Option<LineText>,
    /// A card defined in the gateway account.
    payment_gateway_card_id: Option<LineText>,
}

/// A crypto wallet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CryptoJson {
    /// Wallet address.
    address: Option<LineText>,
    /// Tokens the wallet supports, such as USDC, USDT, BTC, ETH.
    #[schema(max_items = 100, required = false)]
    tokens: Vec<LineText>,
}

impl From<&Address> for AddressJson {
    fn from(address: &Address) -> Self {
        let part = |part: &Option<_>| part.as_ref().map(ProseText::from);
        Self {
            line1: part(&address.line1),
            line2: part(&address.line2),
            city: part(&address.city),
            state: part(&address.state),
            zip_code: part(&address.zip_code),
            country: part(&address.country),
            country_code: address.country_code.map(CountryCodeText::from),
        }
    }
}

impl From<&BankTransferDetails> for BankTransferJson {
    fn from(details: &BankTransferDetails) -> Self {
        Self { billing_account_id: details.billing_account_id.as_ref().map(LineText::from) }
    }
}

impl From<&OnlinePaymentDetails> for OnlinePaymentJson {
    fn from(details: &OnlinePaymentDetails) -> Self {
        Self {
            auto_charge: details.auto_charge,
            payment_gateway_id: details.payment_gateway_id.as_ref().map(LineText::from),
            payment_gateway_card_id: details.payment_gateway_card_id.as_ref().map(LineText::from),
        }
    }
}

impl From<&CryptoDetails> for CryptoJson {
    fn from(details: &CryptoDetails) -> Self {
        Self {
            address: details.address.as_ref().map(LineText::from),
            tokens: details.tokens.iter().map(LineText::from).collect(),
        }
    }
}

/// Reads a postal address; in an edit too it replaces the one before as a whole.
pub(super) fn address(node: Node<'_>) -> Option<Address> {
    node.object(|fields| {
        Some(Address {
            line1: fields.optional("line1", Node::prose),
            line2: fields.optional("line2", Node::prose),
            city: fields.optional("city", Node::prose),
            state: fields.optional("state", Node::prose),
            zip_code: fields.optional("zip_code", Node::prose),
            country: fields.optional("country", Node::prose),
            country_code: fields.optional("country_code", |node| node.parsed(CountryCode::parse)),
        })
    })
}

/// Reads net terms: days as a number or numeric string, or a word.
pub(super) fn net_terms(node: Node<'_>) -> Option<NetTerms> {
    match node.as_text() {
        Some(DUE_UPON_RECEIPT) => Some(NetTerms::DueUponReceipt),
        Some(DUE_UPON_USAGE) => Some(NetTerms::DueUponUsage),
        Some(_) | None => node.whole_or(1..=MAX_NET_TERMS_DAYS, &NetTermsError.to_string()).map(NetTerms::Days),
    }
}

/// Reads the three kinds of payment details from the fields they are given in; each replaces the one before as a whole.
pub(super) fn payment(fields: Fields<'_>, present: Option<&PaymentDetails>) -> PaymentDetails {
    let (bank, online, crypto) = match present {
        Some(present) => (present.bank_transfer.as_ref(), present.online.as_ref(), present.crypto.as_ref()),
        None => (None, None, None),
    };
    PaymentDetails {
        bank_transfer: fields.optional_or("billing_bank_transfer_details", bank, bank_transfer),
        online: fields.optional_or("billing_online_payment_details", online, online_payment),
        crypto: fields.optional_or("billing_crypto_details", crypto, crypto_wallet),
    }
}

/// The same, of an edit that doesn't know the present ones.
pub(super) fn payment_patch(
    fields: Fields<'_>,
) -> (Patch<BankTransferDetails>, Patch<OnlinePaymentDetails>, Patch<CryptoDetails>) {
    (
        fields.patch("billing_bank_transfer_details", bank_transfer),
        fields.patch("billing_online_payment_details", online_payment),
        fields.patch("billing_crypto_details", crypto_wallet),
    )
}

fn bank_transfer(node: Node<'_>) -> Option<BankTransferDetails> {
    node.object(|fields| {
        fields.only(&["billing_account_id"]);
        Some(BankTransferDetails { billing_account_id: fields.optional("billing_account_id", Node::line) })
    })
}

fn online_payment(node: Node<'_>) -> Option<OnlinePaymentDetails> {
    node.object(|fields| {
        fields.only(&["auto_charge", "payment_gateway_id", "payment_gateway_card_id"]);
        Some(OnlinePaymentDetails {
            auto_charge: fields.optional("auto_charge", Node::boolean),
            payment_gateway_id: fields.optional("payment_gateway_id", Node::line),
            payment_gateway_card_id: fields.optional("payment_gateway_card_id", Node::line),
        })
    })
}

fn crypto_wallet(node: Node<'_>) -> Option<CryptoDetails> {
    node.object(|fields| {
        fields.only(&["address", "tokens"]);
        Some(CryptoDetails {
            address: fields.optional("address", Node::line),
            tokens: fields.optional("tokens", |node| node.list(MAX_TOKENS, Node::line)).unwrap_or_default(),
        })
    })
}
