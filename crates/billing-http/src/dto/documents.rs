//! Documents: invoices, credits and debits, stored or previewed.

use billing_application::documents::{DocumentView, Related};
use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::Parties;
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::paper::Paper;
use billing_domain::document::totals::{BilledProduct, Tax};
use billing_domain::party::BankTransferDetails;
use billing_domain::rating::RatedTier;
use serde::Serialize;
use utoipa::ToSchema;

use super::bank_accounts::{BankAccountJson, ShownAccount};
use super::contract_lines::QuantityStepJson;
use super::legal::{
    ContactJson, CorrectedDocumentJson, ElectronicAddressJson, LegalNoteJson, RegistrationJson, TaxInCurrencyJson,
};
use super::money::{ApplicationJson, WriteOffJson};
use super::party::{AddressJson, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    AssignedRef, BuyerReferenceText, CurrencyCode, DateText, EmailText, ExactNumber, ExemptionCodeText, LineItemRef, LineText,
    NamedRef, NetTermsValue, TimestampText, UnitCodeText, VatIdText,
};
use super::words::{DocumentKindWord, DocumentStateWord, LanguageWord, PaperSizeWord, PurposeWord, TaxCategoryWord};

/// A document. Null is what it doesn't have yet.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentJson {
    /// Reference; null of a preview.
    document_ref: Option<AssignedRef>,
    /// Number in the series of its entity and kind; null of a preview.
    #[schema(example = "UB-INV-1")]
    document_number: Option<String>,
    /// What it does to what the customer owes.
    kind: DocumentKindWord,
    /// How far it has come.
    state: DocumentStateWord,
    /// Why it exists.
    purpose: PurposeWord,
    /// The contract it bills.
    contract_ref: AssignedRef,
    /// The contract's number.
    #[schema(example = "C-1")]
    contract_number: String,
    /// Counts the contract's documents from 1; null of a preview.
    #[schema(minimum = 1)]
    number_in_contract: Option<u32>,
    /// The void document it bills again.
    replaces_document_ref: Option<AssignedRef>,
    /// Who pays.
    customer: DocumentCustomerJson,
    /// Who bills.
    entity: DocumentEntityJson,
    /// The one currency of all its amounts.
    currency: CurrencyCode,
    /// How long the customer has to pay.
    net_terms: NetTermsValue,
    /// First day of its own period.
    period_start: DateText,
    /// Last day of its own period.
    period_end: DateText,
    /// Whether its period is shorter than a whole one.
    is_partial_period: bool,
    /// When it was opened; null of a preview.
    created_at: Option<TimestampText>,
    /// When it was issued.
    issue_date: Option<DateText>,
    /// When it has to be paid; null of a credit and of a void document.
    due_date: Option<DateText>,
    /// When nothing was left to pay.
    paid_date: Option<DateText>,
    /// Whether the due date has passed with something left to pay.
    overdue: bool,
    /// The invoice it belongs to.
    parent_document_ref: Option<AssignedRef>,
    /// That invoice's number.
    parent_document_number: Option<String>,
    /// Documents that belong to it.
    related_documents: Vec<RelatedDocumentJson>,
    /// The products it bills.
    products: Vec<DocumentProductJson>,
    /// Its taxes, one per rate, category and reason.
    taxes: Vec<TaxJson>,
    /// Sum of the products.
    sub_total: ExactNumber,
    /// Sum of the discounts.
    total_discount: ExactNumber,
    /// Sum of the taxes.
    total_tax: ExactNumber,
    /// Credits applied to it.
    credits_amount: ExactNumber,
    /// `sub_total − total_discount + total_tax`.
    total: ExactNumber,
    /// Payments applied to it.
    paid_amount: ExactNumber,
    /// What was given up on.
    written_off_amount: ExactNumber,
    /// What is left to pay: `total − credits_amount − paid_amount − written_off_amount`, never below zero; null of a credit and of a
    /// void document.
    amount_due: Option<ExactNumber>,
    /// What of a credit is neither applied nor refunded; null of what is no issued credit.
    unapplied_amount: Option<ExactNumber>,
    /// What settles it, and what it settles.
    applications: Vec<ApplicationJson>,
    /// What of it was given up on, and by what that was lessened.
    write_offs: Vec<WriteOffJson>,
    /// Purchase order number.
    po_number: Option<LineText>,
    /// The products' notes, joined by line breaks.
    note: Option<String>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// The bank account that is named above, where it is one of `/api/bank_accounts/`.
    bank_account: Option<BankAccountJson>,
    /// What the payer wants to find on it.
    buyer_reference: Option<BuyerReferenceText>,
    /// The issued document that it corrects, of a credit, debit or adjustment.
    corrects: Option<CorrectedDocumentJson>,
    /// Its taxes in the currency that its entity accounts for them in, where that is another; null of a draft whose rate isn't known.
    tax_in_currency: Option<TaxInCurrencyJson>,
    /// What its taxes are called.
    tax_label: Option<LineText>,
    /// What its entity's law wants on it.
    legal_notes: Vec<LegalNoteJson>,
    /// In which language it is written.
    language: Option<LanguageWord>,
    /// The size of its pages.
    paper_size: Option<PaperSizeWord>,
    /// The shape of what is frozen of it: 1 lacks addresses, numbers, bank account, categories and codes; 2 has them.
    #[schema(minimum = 1, maximum = 2)]
    format: u8,
    /// What the law asks for that it doesn't say: pointers such as `/customer/legal_name`. An entity whose `paper` is STRICT issues
    /// no document with any.
    missing: Vec<String>,
}

/// Who pays, as the document says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentCustomerJson {
    /// Reference.
    customer_ref: NamedRef,
    /// Name.
    customer_name: LineText,
    /// Registered name.
    customer_legal_name: Option<LineText>,
    /// Postal address.
    address: Option<AddressJson>,
    /// E-mail address.
    email: Option<EmailText>,
    /// Any other tax number.
    tax_id: Option<LineText>,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
}

/// Who bills, as the document says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentEntityJson {
    /// Reference.
    entity_ref: NamedRef,
    /// Name.
    entity_name: LineText,
    /// Registered name.
    entity_legal_name: Option<LineText>,
    /// Postal address.
    address: Option<AddressJson>,
    /// E-mail address.
    email: Option<EmailText>,
    /// Any other tax number.
    tax_id: Option<LineText>,
    /// Number for value added tax.
    vat_id: Option<VatIdText>,
    /// Number in a register.
    registration: Option<RegistrationJson>,
    /// Where e-invoices go to.
    electronic_address: Option<ElectronicAddressJson>,
    /// Whom payers ask.
    contact: Option<ContactJson>,
}

/// A document that belongs to another.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RelatedDocumentJson {
    /// Reference.
    document_ref: AssignedRef,
    /// Number.
    document_number: String,
    /// What it does to what the customer owes.
    kind: DocumentKindWord,
    /// Why it exists.
    purpose: PurposeWord,
    /// How far it has come.
    state: DocumentStateWord,
}

impl From<&Related> for RelatedDocumentJson {
    fn from(related: &Related) -> Self {
        Self {
            document_ref: AssignedRef::from(related.document_ref),
            document_number: related.number.to_string(),
            kind: DocumentKindWord::from(related.kind),
            purpose: PurposeWord::from(related.purpose),
            state: DocumentStateWord::from(related.state),
        }
    }
}

/// One product of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentProductJson {
    /// Its pricing.
    product_pricing_ref: NamedRef,
    /// The pricing's name.
    product_name: LineText,
    /// The least a period costs.
    minimum_fee: Option<ExactNumber>,
    /// Its lines.
    line_items: Vec<DocumentLineJson>,
    /// Sum of the lines.
    sub_total: ExactNumber,
    /// Discount in percent.
    discount_rate: ExactNumber,
    /// Discount.
    discount: ExactNumber,
    /// `sub_total − discount`.
    net: ExactNumber,
    /// Tax in percent.
    tax_rate: ExactNumber,
    /// Tax category; null where a rate of 0 has none.
    tax_category: Option<TaxCategoryWord>,
    /// Why it isn't taxed, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// Why it isn't taxed, in words.
    exemption_reason: Option<LineText>,
}

/// One line of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentLineJson {
    /// The line item, `charge:` and the reference of a charge; null of what trues a period up to the minimum fee.
    line_item_id: Option<LineItemRef>,
    /// What it is for.
    name: LineText,
    /// First day it bills.
    service_period_start: DateText,
    /// Last day it bills.
    service_period_end: DateText,
    /// The usage product, of usage.
    usage_product_ref: Option<NamedRef>,
    /// The period's quantity, of usage; the agreed quantity, of a fixed line item with one for all its days; a charge's.
    /// Null of a charge's difference.
    quantity: Option<ExactNumber>,
    /// The agreed quantities, each with its first day, of a fixed line item that has other ones than 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    quantities: Vec<QuantityStepJson>,
    /// What one of it is called.
    unit: Option<LineText>,
    /// What one of it is, for machines; null in format 1.
    unit_code: Option<UnitCodeText>,
    /// The price of one, where there is a single one.
    unit_price: Option<ExactNumber>,
    /// The day of a charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    date: Option<DateText>,
    /// The tiers reached, of a tiered price.
    tiers: Vec<DocumentTierJson>,
    /// The line's amount, rounded once.
    amount: ExactNumber,
}

/// What one tier adds to a line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentTierJson {
    /// The largest quantity in it; null in the last tier.
    up_to: Option<ExactNumber>,
    /// Price of one.
    unit_price: ExactNumber,
    /// Added once where the tier is reached.
    flat_amount: ExactNumber,
    /// Units priced by it.
    quantity: ExactNumber,
    /// Its part of the line, not rounded.
    amount: ExactNumber,
}

/// What a document taxes alike.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaxJson {
    /// Tax category; null where a rate of 0 has none.
    tax_category: Option<TaxCategoryWord>,
    /// Why it isn't taxed, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// Why it isn't taxed, in words.
    exemption_reason: Option<LineText>,
    /// Percent.
    rate: ExactNumber,
    /// Net amount of the products that are taxed so.
    base: ExactNumber,
    /// The tax.
    amount: ExactNumber,
}

impl From<&DocumentView> for DocumentJson {
    fn from(view: &DocumentView) -> Self {
        let (opened, content, payment) = (view.opened.as_ref(), &view.content, &view.payment);
        let parent = opened.and_then(|opened| opened.parent.as_ref());
        let paper = view.paper.as_deref();
        let account_ref = payment.bank_transfer.as_ref().and_then(BankTransferDetails::account_ref);
        let account = paper.and_then(|paper| paper.bank_account.as_ref());
        Self {
            document_ref: opened.map(|opened| AssignedRef::from(opened.document_ref)),
            document_number: opened.map(|opened| opened.number.to_string()),
            kind: DocumentKindWord::from(view.kind),
            state: DocumentStateWord::from(view.state),
            purpose: PurposeWord::from(view.purpose),
            contract_ref: AssignedRef::from(view.contract_ref),
            contract_number: view.contract_number.clone(),
            number_in_contract: opened.map(|opened| opened.number_in_contract),
            replaces_document_ref: opened.and_then(|opened| opened.replaces).map(AssignedRef::from),
            customer: DocumentCustomerJson::of(&view.parties, paper),
            entity: DocumentEntityJson::of(&view.parties, paper),
            currency: CurrencyCode::from(view.currency),
            net_terms: NetTermsValue::from(view.net_terms),
            period_start: DateText::from(view.period.start()),
            period_end: DateText::from(view.period.last_day()),
            is_partial_period: view.is_partial_period,
            created_at: opened.map(|opened| TimestampText::from(opened.created_at)),
            issue_date: view.issued.map(|issued| DateText::from(issued.issue_date)),
            due_date: view.issued.and_then(|issued| issued.due_date).map(DateText::from),
            paid_date: view.settlement.paid_date.map(DateText::from),
            overdue: view.issued.is_some_and(|issued| issued.overdue),
            parent_document_ref: parent.map(|parent| AssignedRef::from(parent.document_ref)),
            parent_document_number: parent.map(|parent| parent.number.to_string()),
            related_documents: opened
                .map(|opened| opened.related.iter().map(RelatedDocumentJson::from).collect())
                .unwrap_or_default(),
            products: content.products.iter().map(DocumentProductJson::from).collect(),
            taxes: content.taxes.iter().map(TaxJson::from).collect(),
            sub_total: ExactNumber::from(content.sub_total),
            total_discount: ExactNumber::from(content.total_discount),
            total_tax: ExactNumber::from(content.total_tax),
            credits_amount: ExactNumber::from(view.settlement.credits),
            total: ExactNumber::from(content.total),
            paid_amount: ExactNumber::from(view.settlement.paid),
            written_off_amount: ExactNumber::from(view.owed.written_off),
            amount_due: view.owed.amount_due.map(ExactNumber::from),
            unapplied_amount: view.owed.unapplied.map(ExactNumber::from),
            applications: view.applications.iter().map(ApplicationJson::from).collect(),
            write_offs: view.write_offs.iter().map(WriteOffJson::from).collect(),
            po_number: view.po_number.as_ref().map(LineText::from),
            note: view.note.as_ref().map(ToString::to_string),
            billing_bank_transfer_details: payment.bank_transfer.as_ref().map(BankTransferJson::from),
            billing_online_payment_details: payment.online.as_ref().map(OnlinePaymentJson::from),
            billing_crypto_details: payment.crypto.as_ref().map(CryptoJson::from),
            bank_account: account_ref
                .zip(account)
                .map(|(account_ref, profile)| BankAccountJson::from(&ShownAccount { account_ref, profile: profile.clone() })),
            buyer_reference: paper
                .and_then(|paper| paper.buyer_reference.as_ref())
                .map(|reference| BuyerReferenceText::from(reference.as_str())),
            corrects: paper.and_then(|paper| paper.corrects.as_ref()).map(CorrectedDocumentJson::from),
            tax_in_currency: paper.and_then(|paper| paper.tax_in_currency.as_ref()).map(TaxInCurrencyJson::from),
            tax_label: paper.map(|paper| LineText::from(&paper.tax_label)),
            legal_notes: paper.map(|paper| paper.legal_notes.iter().map(LegalNoteJson::from).collect()).unwrap_or_default(),
            language: paper.map(|paper| LanguageWord::from(paper.language)),
            paper_size: paper.map(|paper| PaperSizeWord::from(paper.size)),
            format: view.format(),
            missing: view.missing(),
        }
    }
}

impl DocumentCustomerJson {
    fn of(parties: &Parties, paper: Option<&Paper>) -> Self {
        let details = paper.map(|paper| &paper.customer);
        Self {
            customer_ref: NamedRef::from(&parties.customer_ref),
            customer_name: LineText::from(&parties.customer_name),
            customer_legal_name: parties.customer_legal_name.as_ref().map(LineText::from),
            address: details.and_then(|details| details.address.as_ref()).map(AddressJson::from),
            email: details.and_then(|details| details.email.as_ref()).map(EmailText::from),
            tax_id: details.and_then(|details| details.tax_id.as_ref()).map(LineText::from),
            vat_id: details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| VatIdText::from(vat_id.as_str())),
            registration: details.and_then(|details| details.registration.as_ref()).map(RegistrationJson::from),
            electronic_address: details.and_then(|details| details.electronic_address.as_ref()).map(ElectronicAddressJson::from),
        }
    }
}

impl DocumentEntityJson {
    fn of(parties: &Parties, paper: Option<&Paper>) -> Self {
        let details = paper.map(|paper| &paper.entity);
        Self {
            entity_ref: NamedRef::from(&parties.entity_ref),
            entity_name: LineText::from(&parties.entity_name),
            entity_legal_name: parties.entity_legal_name.as_ref().map(LineText::from),
            address: details.and_then(|details| details.address.as_ref()).map(AddressJson::from),
            email: details.and_then(|details| details.email.as_ref()).map(EmailText::from),
            tax_id: details.and_then(|details| details.tax_id.as_ref()).map(LineText::from),
            vat_id: details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| VatIdText::from(vat_id.as_str())),
            registration: details.and_then(|details| details.registration.as_ref()).map(RegistrationJson::from),
            electronic_address: details.and_then(|details| details.electronic_address.as_ref()).map(ElectronicAddressJson::from),
            contact: paper.and_then(|paper| paper.contact.as_ref()).map(ContactJson::from),
        }
    }
}

impl From<&BilledProduct> for DocumentProductJson {
    fn from(product: &BilledProduct) -> Self {
        Self {
            product_pricing_ref: NamedRef::from(&product.pricing_ref),
            product_name: LineText::from(&product.name),
            minimum_fee: product.minimum_fee.map(ExactNumber::from),
            line_items: product.lines.iter().map(DocumentLineJson::from).collect(),
            sub_total: ExactNumber::from(product.sub_total),
            discount_rate: ExactNumber::from(product.discount_rate),
            discount: ExactNumber::from(product.discount),
            net: ExactNumber::from(product.net),
            tax_rate: ExactNumber::from(product.tax_rate),
            tax_category: product.treatment.category.map(TaxCategoryWord::from),
            exemption_code: product.treatment.exemption_code.map(ExemptionCodeText::from),
            exemption_reason: product.treatment.exemption_reason.as_ref().map(LineText::from),
        }
    }
}

impl From<&DocumentLine> for DocumentLineJson {
    fn from(line: &DocumentLine) -> Self {
        let (usage, charge) = (line.usage.as_ref(), line.charge.as_ref());
        Self {
            line_item_id: line.line_item_id.as_ref().map(LineItemRef::from),
            name: LineText::from(&line.name),
            service_period_start: DateText::from(line.service_period.start()),
            service_period_end: DateText::from(line.service_period.last_day()),
            usage_product_ref: usage.map(|usage| NamedRef::from(&usage.usage_product_ref)),
            quantity: usage
                .map(|usage| ExactNumber::from(usage.quantity))
                .or_else(|| constant(&line.quantities))
                .or_else(|| charge.map(|charge| ExactNumber::from(charge.quantity))),
            quantities: line.quantities.iter().map(QuantityStepJson::from).collect(),
            unit: usage
                .and_then(|usage| usage.unit.as_ref())
                .or_else(|| charge.and_then(|charge| charge.unit.as_ref()))
                .map(LineText::from),
            unit_code: line.unit_code.map(UnitCodeText::from),
            unit_price: usage
                .and_then(|usage| usage.unit_price)
                .map(ExactNumber::from)
                .or_else(|| charge.map(|charge| ExactNumber::from(charge.unit_price))),
            date: charge.map(|charge| DateText::from(charge.date)),
            tiers: usage.map(|usage| usage.tiers.iter().map(DocumentTierJson::from).collect()).unwrap_or_default(),
            amount: ExactNumber::from(line.amount),
        }
    }
}

/// The one quantity of all steps.
fn constant(steps: &[QuantityStep]) -> Option<ExactNumber> {
    let first = steps.first()?.quantity;
    steps.iter().all(|step| step.quantity == first).then(|| ExactNumber::from(first))
}

impl From<&RatedTier> for DocumentTierJson {
    fn from(rated: &RatedTier) -> Self {
        Self {
            up_to: rated.tier.up_to.map(ExactNumber::from),
            unit_price: ExactNumber::from(rated.tier.unit_price),
            flat_amount: ExactNumber::from(rated.tier.flat_amount),
            quantity: ExactNumber::from(rated.quantity),
            amount: ExactNumber::from(rated.amount),
        }
    }
}

impl From<&Tax> for TaxJson {
    fn from(tax: &Tax) -> Self {
        Self {
            tax_category: tax.treatment.category.map(TaxCategoryWord::from),
            exemption_code: tax.treatment.exemption_code.map(ExemptionCodeText::from),
            exemption_reason: tax.treatment.exemption_reason.as_ref().map(LineText::from),
            rate: ExactNumber::from(tax.rate),
            base: ExactNumber::from(tax.base),
            amount: ExactNumber::from(tax.amount),
        }
    }
}
