//! Bank accounts that customers pay to.

use billing_domain::calendar::Timestamp;
use billing_domain::party::bank::{BankAccount, BankAccountProfile, Bic, Iban, RoutingNumber};
use billing_domain::refs::BankAccountRef;
use billing_domain::text::OneLine;

use super::declare::{SkipIfNone, answer, body, edit, fields, ignore_response_fields};
use super::values::NewBankAccountRef;

fields! {
    edit answer BankAccountProfile {
        /// Account holder.
        account_name: Option<OneLine>,
        /// International bank account number (IBAN). Spaces are removed.
        iban: Option<Iban>,
        /// National account number.
        account_number: Option<OneLine>,
        /// Routing number of a United States bank.
        routing_number: Option<RoutingNumber>,
        /// Bank identifier code (BIC).
        bic: Option<Bic>,
        /// Name of the bank.
        bank_name: Option<OneLine>,
    }
    with {
        ignore_response_fields!(BankAccountJson);
    }
}

body! {
    /// A bank account to create, with either `iban` or `account_number`.
    BankAccountBody {
        /// Identifier, as used in `billing_bank_transfer_details`.
        billing_account_id: NewBankAccountRef,
        @flat profile: BankAccountProfile,
    }
    with {
        ignore_response_fields!(BankAccountJson);
    }
}

edit! {
    /// Changes to a bank account. Omitted fields stay unchanged; null clears a field.
    BankAccountEditBody of BankAccountProfile named "billing_account_id": BankAccountRef
}

/// A bank account in a response or on a document.
#[derive(Clone, Debug)]
pub struct BankAccountResponse {
    pub account_ref: BankAccountRef,
    pub profile: BankAccountProfile,
    pub updated_at: Option<Timestamp>,
}

impl From<&BankAccount> for BankAccountJson {
    fn from(account: &BankAccount) -> Self {
        Self(BankAccountResponse {
            account_ref: account.account_ref.clone(),
            profile: account.profile.clone(),
            updated_at: Some(account.updated_at),
        })
    }
}

answer! {
    /// A bank account.
    BankAccountJson of BankAccountResponse {
        /// Identifier, as used in `billing_bank_transfer_details`.
        account_ref as "billing_account_id": BankAccountRef,
        @flat profile: BankAccountProfile,
        /// Time of the last change; omitted on documents.
        updated_at: SkipIfNone<Timestamp>,
    }
}
