//! Bank accounts that customers pay to.

use billing_domain::party::bank::{BankAccount, BankAccountProfile, Bic, Iban, RoutingNumber};
use billing_domain::refs::BankAccountRef;
use billing_domain::text::OneLine;

use super::declare::{answer, body, edit, fields};

fields! {
    edit answer BankAccountProfile {
        /// In whose name it is.
        account_name: Option<OneLine>,
        /// International number. Spaces are left out.
        iban: Option<Iban>,
        /// National number.
        account_number: Option<OneLine>,
        /// The bank of a national number in the United States.
        routing_number: Option<RoutingNumber>,
        /// The bank, internationally.
        bic: Option<Bic>,
        /// The bank's name.
        bank_name: Option<OneLine>,
    }
}

body! {
    /// A bank account to make: with an `iban`, or with an `account_number`.
    BankAccountBody {
        /// As `billing_bank_transfer_details` name it.
        billing_account_id: BankAccountRef,
        @flat profile: BankAccountProfile,
    }
}

edit! {
    /// Changes to a bank account: fields left out are kept, null clears.
    BankAccountEditBody of BankAccountProfile named "billing_account_id": BankAccountRef
}

/// What is answered of a bank account, by itself and on a document.
#[derive(Clone, Debug)]
pub(crate) struct BankAccountResponse {
    pub(crate) account_ref: BankAccountRef,
    pub(crate) profile: BankAccountProfile,
}

impl From<&BankAccount> for BankAccountJson {
    fn from(account: &BankAccount) -> Self {
        Self(BankAccountResponse { account_ref: account.account_ref.clone(), profile: account.profile.clone() })
    }
}

answer! {
    /// A bank account.
    BankAccountJson of BankAccountResponse {
        /// As `billing_bank_transfer_details` name it.
        account_ref as "billing_account_id": BankAccountRef,
        @flat profile: BankAccountProfile,
    }
}
