//! Bank accounts that customers pay to.

use billing_domain::party::bank::{BankAccount, BankAccountProfile, Bic, Iban, RoutingNumber};
use billing_domain::refs::BankAccountRef;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::wire::{BicText, IbanText, LineText, NamedRef, RoutingNumberText, edit_of};

/// A bank account to make: with an `iban`, or with an `account_number`.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "billing_account_id": "main-account",
    "account_name": "Example EMEA GmbH",
    "iban": "DE89370400440532013000",
    "bic": "COBADEFFXXX",
    "bank_name": "Commerzbank"
}))]
pub(crate) struct BankAccountBody {
    /// As `billing_bank_transfer_details` name it.
    billing_account_id: NamedRef,
    /// In whose name it is.
    account_name: Option<LineText>,
    /// International number. Spaces are left out.
    iban: Option<IbanText>,
    /// National number.
    account_number: Option<LineText>,
    /// The bank of a national number in the United States.
    routing_number: Option<RoutingNumberText>,
    /// The bank, internationally.
    bic: Option<BicText>,
    /// The bank's name.
    bank_name: Option<LineText>,
}

edit_of! {
    /// Changes to a bank account: fields left out are kept, null clears.
    BankAccountEditBody of BankAccountBody
}

const FIELDS: [&str; 7] = ["billing_account_id", "account_name", "iban", "account_number", "routing_number", "bic", "bank_name"];

impl BankAccountBody {
    /// Reads a bank account to make, and its reference.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(BankAccountRef, BankAccountProfile), Violations> {
        input::read(body, |fields| {
            let reference = fields.required("billing_account_id", |node| node.parsed(BankAccountRef::parse));
            let profile = profile(fields, None);
            Some((reference?, profile?))
        })
    }

    /// Reads changes to the bank account with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(
        body: &Value,
        reference: &BankAccountRef,
        present: &BankAccountProfile,
    ) -> Result<BankAccountProfile, Violations> {
        input::read(body, |fields| {
            fields.unchanged("billing_account_id", reference.as_str());
            profile(fields, Some(present))
        })
    }
}

/// A misspelt field would send money elsewhere and is refused.
fn profile(fields: Fields<'_>, present: Option<&BankAccountProfile>) -> Option<BankAccountProfile> {
    fields.only(&FIELDS);
    let name = present.and_then(|p| p.account_name.as_ref());
    let number = present.and_then(|p| p.account_number.as_ref());
    let routing = present.and_then(|p| p.routing_number.as_ref());
    let profile = BankAccountProfile {
        account_name: fields.optional_or("account_name", name, Node::line),
        iban: fields.optional_or("iban", present.and_then(|p| p.iban.as_ref()), |node| node.parsed(Iban::parse)),
        account_number: fields.optional_or("account_number", number, Node::line),
        routing_number: fields.optional_or("routing_number", routing, |node| node.parsed(RoutingNumber::parse)),
        bic: fields.optional_or("bic", present.and_then(|p| p.bic.as_ref()), |node| node.parsed(Bic::parse)),
        bank_name: fields.optional_or("bank_name", present.and_then(|p| p.bank_name.as_ref()), Node::line),
    };
    // Of a number that can't be read it isn't said that it is missing.
    if fields.is_faultless() {
        fields.agreed(profile.check())?;
    }
    Some(profile)
}

/// A bank account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BankAccountJson {
    /// As `billing_bank_transfer_details` name it.
    billing_account_id: NamedRef,
    /// In whose name it is.
    account_name: Option<LineText>,
    /// International number.
    iban: Option<IbanText>,
    /// National number.
    account_number: Option<LineText>,
    /// The bank of a national number in the United States.
    routing_number: Option<RoutingNumberText>,
    /// The bank, internationally.
    bic: Option<BicText>,
    /// The bank's name.
    bank_name: Option<LineText>,
}

impl BankAccountJson {
    /// What a document says of an account.
    pub(super) fn of(reference: &BankAccountRef, profile: &BankAccountProfile) -> Self {
        Self {
            billing_account_id: NamedRef::from(reference),
            account_name: profile.account_name.as_ref().map(LineText::from),
            iban: profile.iban.as_ref().map(|iban| IbanText::from(iban.as_str())),
            account_number: profile.account_number.as_ref().map(LineText::from),
            routing_number: profile.routing_number.as_ref().map(|number| RoutingNumberText::from(number.as_str())),
            bic: profile.bic.as_ref().map(|bic| BicText::from(bic.as_str())),
            bank_name: profile.bank_name.as_ref().map(LineText::from),
        }
    }
}

impl From<&BankAccount> for BankAccountJson {
    fn from(account: &BankAccount) -> Self {
        Self::of(&account.account_ref, &account.profile)
    }
}
