//! Customers.

use billing_domain::money::Percentage;
use billing_domain::party::{Customer, CustomerProfile};
use billing_domain::refs::{CustomerRef, EntityRef};
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::legal::{self, ElectronicAddressJson, RegistrationJson};
use super::party::{self, AddressJson, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    BuyerReferenceText, CurrencyCode, EmailText, ExactNumber, ExemptionCodeText, LineText, NamedRef, NetTermsInput,
    NetTermsValue, PercentageInput, VatIdText, edit_of,
};
use super::words::{LanguageWord, TaxCategoryWord};

/// A customer to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "customer_ref": "acme",
    "name": "Acme",
    "legal_name": "Acme GmbH",
    "email": "billing@example.com",
    "tax_id": "60/123/45678",
    "billing_address": {"line1": "Am Markt 1", "city": "Bremen", "zip_code": "28195", "country": "Germany", "country_code": "DE"},
    "currency": "EUR",
    "tax": 19,
    "net_terms": 30,
    "vat_id": "DE123456789",
    "electronic_address": {"scheme": "EM", "value": "invoices@example.com"},
    "language": "de",
    "buyer_reference": "04011000-12345-35"
}))]
pub(crate) struct CustomerBody {
    /// Reference; assigned when left out.
    customer_ref: Option<NamedRef>,
    /// Name; usage may be reported under it.
    name: LineText,
    /// Registered name.
    legal_name: Option<LineText>,
    /// E-mail address.
    email: Option<EmailText>,
    /// Tax number.
    tax_id: Option<LineText>,
    /// Postal address.
    billing_address: Option<AddressJson>,
    /// Information only: a document's currency is its pricing's.
    currency: Option<CurrencyCode>,
    /// Tax in percent of this customer's products that state none.
    tax: Option<PercentageInput>,
    /// Supplier entity of this customer's products that state none.
    entity_ref: Option<NamedRef>,
    /// Net terms of this customer's products that state none.
    net_terms: Option<NetTermsInput>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// Whether what is unapplied of credits and payments settles other documents by itself; true when left out.
    apply_balance: Option<bool>,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
    /// In which language it wants documents; the entity's when left out.
    language: Option<LanguageWord>,
    /// How products are taxed at a rate of 0 that state no category. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// What it wants to find on documents of products that state nothing else.
    buyer_reference: Option<BuyerReferenceText>,
}

edit_of! {
    /// Changes to a customer: fields left out are kept, null clears.
    CustomerEditBody of CustomerBody
}

impl CustomerBody {
    /// Reads a customer to make, and its reference where one is given.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(Option<CustomerRef>, CustomerProfile), Violations> {
        input::read(body, |fields| {
            let reference = fields.optional("customer_ref", |node| node.parsed(CustomerRef::parse));
            Some((reference, profile(fields, None)?))
        })
    }

    /// Reads changes to the customer with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(
        body: &Value,
        reference: &CustomerRef,
        present: &CustomerProfile,
    ) -> Result<CustomerProfile, Violations> {
        input::read(body, |fields| {
            fields.unchanged("customer_ref", reference.as_str());
            profile(fields, Some(present))
        })
    }
}

fn profile(fields: Fields<'_>, present: Option<&CustomerProfile>) -> Option<CustomerProfile> {
    let name = fields.required_or("name", present.map(|p| &p.name), Node::line);
    let legal_name = fields.optional_or("legal_name", present.and_then(|p| p.legal_name.as_ref()), Node::line);
    let email = fields.optional_or("email", present.and_then(|p| p.email.as_ref()), Node::email);
    let tax_id = fields.optional_or("tax_id", present.and_then(|p| p.tax_id.as_ref()), Node::line);
    let address = present.and_then(|p| p.billing_address.as_ref());
    let billing_address = fields.optional_or("billing_address", address, party::address);
    let currency = fields.optional_or("currency", present.and_then(|p| p.currency.as_ref()), Node::currency);
    let tax = fields.optional_or("tax", present.and_then(|p| p.tax.as_ref()), |node| node.decimal(Percentage::parse));
    let entity = present.and_then(|p| p.entity_ref.as_ref());
    let entity_ref = fields.optional_or("entity_ref", entity, |node| node.parsed(EntityRef::parse));
    let net_terms = fields.optional_or("net_terms", present.and_then(|p| p.net_terms.as_ref()), party::net_terms);
    let payment = party::payment(fields, present.map(|p| &p.payment));
    let apply_balance = fields.defaulted("apply_balance", present.map(|p| &p.apply_balance), true, Node::boolean);
    let legal = legal::profile(fields, present.map(|p| &p.legal), tax);
    let wanted = present.and_then(|p| p.buyer_reference.as_ref());
    let buyer_reference = fields.optional_or("buyer_reference", wanted, legal::buyer_reference);
    Some(CustomerProfile {
        name: name?,
        legal_name,
        email,
        tax_id,
        billing_address,
        currency,
        tax,
        entity_ref,
        net_terms,
        payment,
        apply_balance,
        legal,
        buyer_reference,
    })
}

/// A customer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CustomerJson {
    /// Reference.
    customer_ref: NamedRef,
    /// Name.
    name: LineText,
    /// Registered name.
    legal_name: Option<LineText>,
    /// E-mail address.
    email: Option<EmailText>,
    /// Tax number.
    tax_id: Option<LineText>,
    /// Postal address.
    billing_address: Option<AddressJson>,
    /// Information only: a document's currency is its pricing's.
    currency: Option<CurrencyCode>,
    /// Tax in percent of this customer's products that state none.
    tax: Option<ExactNumber>,
    /// Supplier entity of this customer's products that state none.
    entity_ref: Option<NamedRef>,
    /// Net terms of this customer's products that state none.
    net_terms: Option<NetTermsValue>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// Whether what is unapplied of credits and payments settles other documents by itself.
    apply_balance: bool,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
    /// In which language it wants documents; the entity's when left out.
    language: Option<LanguageWord>,
    /// How products are taxed at a rate of 0 that state no category. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// What it wants to find on documents of products that state nothing else.
    buyer_reference: Option<BuyerReferenceText>,
}

impl From<&Customer> for CustomerJson {
    fn from(customer: &Customer) -> Self {
        let (profile, payment) = (&customer.profile, &customer.profile.payment);
        Self {
            customer_ref: NamedRef::from(&customer.customer_ref),
            name: LineText::from(&profile.name),
            legal_name: profile.legal_name.as_ref().map(LineText::from),
            email: profile.email.as_ref().map(EmailText::from),
            tax_id: profile.tax_id.as_ref().map(LineText::from),
            billing_address: profile.billing_address.as_ref().map(AddressJson::from),
            currency: profile.currency.map(CurrencyCode::from),
            tax: profile.tax.map(ExactNumber::from),
            entity_ref: profile.entity_ref.as_ref().map(NamedRef::from),
            net_terms: profile.net_terms.map(NetTermsValue::from),
            billing_bank_transfer_details: payment.bank_transfer.as_ref().map(BankTransferJson::from),
            billing_online_payment_details: payment.online.as_ref().map(OnlinePaymentJson::from),
            billing_crypto_details: payment.crypto.as_ref().map(CryptoJson::from),
            apply_balance: profile.apply_balance,
            vat_id: profile.legal.vat_id.as_ref().map(|vat_id| VatIdText::from(vat_id.as_str())),
            registration: profile.legal.registration.as_ref().map(RegistrationJson::from),
            electronic_address: profile.legal.electronic_address.as_ref().map(ElectronicAddressJson::from),
            language: profile.legal.language.map(LanguageWord::from),
            tax_category: profile.legal.treatment.category.map(TaxCategoryWord::from),
            exemption_code: profile.legal.treatment.exemption_code.map(ExemptionCodeText::from),
            exemption_reason: profile.legal.treatment.exemption_reason.as_ref().map(LineText::from),
            buyer_reference: profile.buyer_reference.as_ref().map(|reference| BuyerReferenceText::from(reference.as_str())),
        }
    }
}

/// A customer's name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CustomerNameJson {
    /// Reference.
    customer_ref: NamedRef,
    /// Name.
    name: LineText,
}

impl From<&Customer> for CustomerNameJson {
    fn from(customer: &Customer) -> Self {
        Self { customer_ref: NamedRef::from(&customer.customer_ref), name: LineText::from(&customer.profile.name) }
    }
}
