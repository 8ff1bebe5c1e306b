//! Supplier entities.

use billing_application::catalog::{EntityView, WantedEntity};
use billing_domain::calendar::TimeZone;
use billing_domain::party::{DEFAULT_GRACE_HOURS, EntityProfile, MAX_GRACE_HOURS, NumberPrefix};
use billing_domain::refs::EntityRef;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::legal::{self, ContactJson, ElectronicAddressJson, LegalNoteJson, RegistrationJson};
use super::party::{self, AddressJson, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    self, CurrencyCode, ExemptionCodeText, LineText, NamedRef, NetTermsInput, NetTermsValue, NumberPrefixText, TimeZoneName,
    VatIdText, edit_of,
};
use super::words::{LanguageWord, PaperSizeWord, StrictnessWord, TaxCategoryWord};

/// A supplier entity to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "entity_ref": "emea",
    "name": "Example EMEA",
    "legal_name": "Example EMEA GmbH",
    "number_prefix": "EMEA",
    "timezone": "Europe/Berlin",
    "currency": "EUR",
    "address": {"line1": "Am Markt 1", "city": "Bremen", "zip_code": "28195", "country": "Germany", "country_code": "DE"},
    "tax_id": "60/987/65432",
    "vat_id": "DE987654321",
    "registration": {"scheme": "0002", "value": "303265045"},
    "contact": {"name": "Billing", "phone": "+49 421 1234", "email": "billing@example.com"},
    "net_terms": 30,
    "grace_hours": 2,
    "billing_bank_transfer_details": {"billing_account_id": "main-account"}
}))]
pub(crate) struct EntityBody {
    /// Reference; assigned when left out.
    entity_ref: Option<NamedRef>,
    /// Name.
    name: LineText,
    /// Registered name.
    legal_name: Option<LineText>,
    /// Start of every document number; unique in the organization.
    number_prefix: NumberPrefixText,
    /// The zone whose calendar dates periods and issue dates are; UTC when left out.
    timezone: Option<TimeZoneName>,
    /// Information only: a document's currency is its pricing's.
    currency: Option<CurrencyCode>,
    /// Postal address.
    address: Option<AddressJson>,
    /// Tax number.
    tax_id: Option<LineText>,
    /// Net terms of products that state none, nor their customer.
    net_terms: Option<NetTermsInput>,
    /// Whether it bills where neither product nor customer names an entity. True moves that from another one to this; false or null is
    /// refused on the one that is the default: name another one instead.
    default: Option<bool>,
    /// Hours between a document's natural day and its issue; 2 when left out.
    #[schema(schema_with = wire::grace_hours_input)]
    grace_hours: Option<u16>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
    /// In which language documents are written; English when left out.
    language: Option<LanguageWord>,
    /// How products are taxed at a rate of 0 where neither they nor their customer state a category. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// Whether documents are issued that lack what the law asks for; LENIENT when left out: they are, and say what they lack.
    paper: Option<StrictnessWord>,
    /// The size of documents' pages; its country's when left out.
    paper_size: Option<PaperSizeWord>,
    /// What taxes are called on documents; its country's word when left out.
    tax_label: Option<LineText>,
    /// Whom payers ask.
    contact: Option<ContactJson>,
    /// What its law wants on documents.
    #[schema(max_items = 5)]
    legal_notes: Option<Vec<LegalNoteJson>>,
    /// The currency that it accounts for tax in, where that is another than a document's.
    tax_currency: Option<CurrencyCode>,
}

edit_of! {
    /// Changes to a supplier entity: fields left out are kept, null clears or brings the default back.
    EntityEditBody of EntityBody
}

impl EntityBody {
    /// Reads an entity to make, and its reference where one is given.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(Option<EntityRef>, WantedEntity), Violations> {
        input::read(body, |fields| {
            let reference = fields.optional("entity_ref", |node| node.parsed(EntityRef::parse));
            Some((reference, wanted(fields, None)?))
        })
    }

    /// Reads changes to the entity with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(body: &Value, reference: &EntityRef, present: &EntityProfile) -> Result<WantedEntity, Violations> {
        input::read(body, |fields| {
            fields.unchanged("entity_ref", reference.as_str());
            wanted(fields, Some(present))
        })
    }
}

fn wanted(fields: Fields<'_>, present: Option<&EntityProfile>) -> Option<WantedEntity> {
    // In a new entity null says nothing; in an edit it takes away what false takes away.
    let cleared = present.map(|_| false);
    let is_default = fields.defaulted("default", Some(&None), cleared, |node| node.boolean().map(Some));
    Some(WantedEntity { profile: profile(fields, present)?, is_default })
}

fn profile(fields: Fields<'_>, present: Option<&EntityProfile>) -> Option<EntityProfile> {
    let name = fields.required_or("name", present.map(|p| &p.name), Node::line);
    let legal_name = fields.optional_or("legal_name", present.and_then(|p| p.legal_name.as_ref()), Node::line);
    let prefix = present.map(|p| &p.number_prefix);
    let number_prefix = fields.required_or("number_prefix", prefix, |node| node.parsed(NumberPrefix::parse));
    let zone = present.map(|p| &p.time_zone);
    let time_zone = fields.defaulted("timezone", zone, TimeZone::UTC, |node| node.parsed(TimeZone::parse));
    let currency = fields.optional_or("currency", present.and_then(|p| p.currency.as_ref()), Node::currency);
    let address = fields.optional_or("address", present.and_then(|p| p.address.as_ref()), party::address);
    let tax_id = fields.optional_or("tax_id", present.and_then(|p| p.tax_id.as_ref()), Node::line);
    let net_terms = fields.optional_or("net_terms", present.and_then(|p| p.net_terms.as_ref()), party::net_terms);
    let grace = present.map(|p| &p.grace_hours);
    let grace_hours = fields.defaulted("grace_hours", grace, DEFAULT_GRACE_HOURS, |node| node.whole(0..=MAX_GRACE_HOURS));
    let payment = party::payment(fields, present.map(|p| &p.payment));
    let legal = legal::profile(fields, present.map(|p| &p.legal), None);
    let paper = legal::paper(fields, present.map(|p| &p.paper));
    Some(EntityProfile {
        name: name?,
        legal_name,
        number_prefix: number_prefix?,
        time_zone,
        currency,
        address,
        tax_id,
        net_terms,
        grace_hours,
        payment,
        legal,
        paper,
    })
}

/// A supplier entity.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntityJson {
    /// Reference.
    entity_ref: NamedRef,
    /// Name.
    name: LineText,
    /// Registered name.
    legal_name: Option<LineText>,
    /// Start of every document number.
    number_prefix: NumberPrefixText,
    /// The zone whose calendar dates periods and issue dates are.
    timezone: TimeZoneName,
    /// Information only: a document's currency is its pricing's.
    currency: Option<CurrencyCode>,
    /// Postal address.
    address: Option<AddressJson>,
    /// Tax number.
    tax_id: Option<LineText>,
    /// Net terms of products that state none, nor their customer.
    net_terms: Option<NetTermsValue>,
    /// Whether it bills where neither product nor customer names an entity: one of the organization's does.
    default: bool,
    /// Hours between a document's natural day and its issue.
    #[schema(minimum = 0, maximum = 720)]
    grace_hours: u16,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
    /// In which language documents are written; English when left out.
    language: Option<LanguageWord>,
    /// How products are taxed at a rate of 0 where neither they nor their customer state a category. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// Whether documents are issued that lack what the law asks for.
    paper: StrictnessWord,
    /// The size of documents' pages; its country's when left out.
    paper_size: Option<PaperSizeWord>,
    /// What taxes are called on documents; its country's word when left out.
    tax_label: Option<LineText>,
    /// Whom payers ask.
    contact: Option<ContactJson>,
    /// What its law wants on documents.
    legal_notes: Vec<LegalNoteJson>,
    /// The currency that it accounts for tax in, where that is another than a document's.
    tax_currency: Option<CurrencyCode>,
}

impl From<&EntityView> for EntityJson {
    fn from(EntityView { entity, is_default }: &EntityView) -> Self {
        let (profile, payment) = (&entity.profile, &entity.profile.payment);
        Self {
            entity_ref: NamedRef::from(&entity.entity_ref),
            name: LineText::from(&profile.name),
            legal_name: profile.legal_name.as_ref().map(LineText::from),
            number_prefix: NumberPrefixText::from(profile.number_prefix.as_str()),
            timezone: TimeZoneName::from(profile.time_zone.name()),
            currency: profile.currency.map(CurrencyCode::from),
            address: profile.address.as_ref().map(AddressJson::from),
            tax_id: profile.tax_id.as_ref().map(LineText::from),
            net_terms: profile.net_terms.map(NetTermsValue::from),
            default: *is_default,
            grace_hours: profile.grace_hours,
            billing_bank_transfer_details: payment.bank_transfer.as_ref().map(BankTransferJson::from),
            billing_online_payment_details: payment.online.as_ref().map(OnlinePaymentJson::from),
            billing_crypto_details: payment.crypto.as_ref().map(CryptoJson::from),
            vat_id: profile.legal.vat_id.as_ref().map(|vat_id| VatIdText::from(vat_id.as_str())),
            registration: profile.legal.registration.as_ref().map(RegistrationJson::from),
            electronic_address: profile.legal.electronic_address.as_ref().map(ElectronicAddressJson::from),
            language: profile.legal.language.map(LanguageWord::from),
            tax_category: profile.legal.treatment.category.map(TaxCategoryWord::from),
            exemption_code: profile.legal.treatment.exemption_code.map(ExemptionCodeText::from),
            exemption_reason: profile.legal.treatment.exemption_reason.as_ref().map(LineText::from),
            paper: StrictnessWord::from(profile.paper.strictness),
            paper_size: profile.paper.size.map(PaperSizeWord::from),
            tax_label: profile.paper.tax_label.as_ref().map(LineText::from),
            contact: profile.paper.contact.as_ref().map(ContactJson::from),
            legal_notes: profile.paper.legal_notes.iter().map(LegalNoteJson::from).collect(),
            tax_currency: profile.paper.tax_currency.map(CurrencyCode::from),
        }
    }
}

/// A supplier entity's name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntityNameJson {
    /// Reference.
    entity_ref: NamedRef,
    /// Name.
    name: LineText,
}

impl From<&EntityView> for EntityNameJson {
    fn from(EntityView { entity, .. }: &EntityView) -> Self {
        Self { entity_ref: NamedRef::from(&entity.entity_ref), name: LineText::from(&entity.profile.name) }
    }
}
