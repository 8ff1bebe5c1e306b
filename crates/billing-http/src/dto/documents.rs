//! Documents: invoices, credits and debits, stored or previewed.

use billing_application::documents::{DocumentView, RelatedDocument};
use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::totals::{BilledProduct, Tax};
use billing_domain::party::BankTransferDetails;
use billing_domain::ports::PurposeKind;
use billing_domain::rating::RatedTier;

use super::bank_accounts::{BankAccountJson, BankAccountResponse};
use super::contract_lines::QuantityStepJson;
use super::declare::answer;
use super::enums::{DocumentKindWord, DocumentStateWord, LanguageWord, PaperSizeWord, PurposeWord, TaxCategoryWord};
use super::legal::{
    ContactJson, CorrectedDocumentJson, ElectronicAddressJson, LegalNoteJson, RegistrationJson, TaxInCurrencyJson,
};
use super::money::{ApplicationJson, WriteOffJson};
use super::party::{AddressJson, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    AssignedRef, BuyerReferenceText, CurrencyCode, DateText, EmailText, ExactNumber, ExemptionCodeText, LineItemRef, LineText,
    NamedRef, NetTermsValue, TimestampText, UnitCodeText, VatIdText,
};

answer! {
    /// A document. Null is what it doesn't have yet.
    DocumentJson of view: DocumentView {
        let (opened, content, payment) = (view.opened.as_ref(), &view.content, &view.payment);
        let parent = opened.and_then(|opened| opened.parent.as_ref());
        let paper = view.paper.as_deref();
        let account_ref = payment.bank_transfer.as_ref().and_then(BankTransferDetails::account_ref);
        let account = paper.and_then(|paper| paper.bank_account.as_ref());
        /// Reference; null of a preview.
        document_ref: Option<AssignedRef> = opened.map(|opened| opened.document_ref),
        /// Number in the series of its entity and kind; null of a preview.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = opened.map(|opened| opened.number.to_string()),
        /// What it does to what the customer owes.
        kind: DocumentKindWord = view.kind,
        /// How far it has come.
        state: DocumentStateWord = view.state,
        /// Why it exists.
        purpose: PurposeWord = PurposeKind::from(view.purpose),
        /// The contract it bills.
        contract_ref: AssignedRef = view.contract_ref,
        /// The contract's number.
        #[schema(example = "C-1")]
        contract_number: String = view.contract_number.clone(),
        /// Counts the contract's documents from 1; null of a preview.
        #[schema(minimum = 1)]
        number_in_contract: Option<u32> = opened.map(|opened| opened.number_in_contract),
        /// The void document it bills again.
        replaces_document_ref: Option<AssignedRef> = opened.and_then(|opened| opened.replaces),
        /// Who pays.
        customer: DocumentCustomerJson = view,
        /// Who bills.
        entity: DocumentEntityJson = view,
        /// The one currency of all its amounts.
        currency: CurrencyCode = view.currency,
        /// How long the customer has to pay.
        net_terms: NetTermsValue = view.net_terms,
        /// First day of its own period.
        period_start: DateText = view.period.start(),
        /// Last day of its own period.
        period_end: DateText = view.period.last_day(),
        /// Whether its period is shorter than a whole one.
        is_partial_period: bool = view.is_partial_period,
        /// When it was opened; null of a preview.
        created_at: Option<TimestampText> = opened.map(|opened| opened.created_at),
        /// When it was issued.
        issue_date: Option<DateText> = view.issued.map(|issued| issued.issue_date),
        /// When it has to be paid; null of a credit and of a void document.
        due_date: Option<DateText> = view.issued.and_then(|issued| issued.due_date),
        /// When nothing was left to pay.
        paid_date: Option<DateText> = view.settlement.paid_date,
        /// Whether the due date has passed with something left to pay.
        overdue: bool = view.issued.is_some_and(|issued| issued.overdue),
        /// The invoice it belongs to.
        parent_document_ref: Option<AssignedRef> = parent.map(|parent| parent.document_ref),
        /// That invoice's number.
        parent_document_number: Option<String> = parent.map(|parent| parent.number.to_string()),
        /// Documents that belong to it.
        related_documents: Vec<RelatedDocumentJson> = opened.into_iter().flat_map(|opened| &opened.related),
        /// The products it bills.
        products: Vec<DocumentProductJson> = &content.products,
        /// Its taxes, one per rate, category and reason.
        taxes: Vec<TaxJson> = &content.taxes,
        /// Sum of the products.
        sub_total: ExactNumber = content.sub_total,
        /// Sum of the discounts.
        total_discount: ExactNumber = content.total_discount,
        /// Sum of the taxes.
        total_tax: ExactNumber = content.total_tax,
        /// Credits applied to it.
        credits_amount: ExactNumber = view.settlement.credits,
        /// `sub_total − total_discount + total_tax`.
        total: ExactNumber = content.total,
        /// Payments applied to it.
        paid_amount: ExactNumber = view.settlement.paid,
        /// What was given up on.
        written_off_amount: ExactNumber = view.owed.written_off,
        /// What is left to pay: `total − credits_amount − paid_amount − written_off_amount`, never below zero; null of a credit and of a
        /// void document.
        amount_due: Option<ExactNumber> = view.owed.amount_due,
        /// What of a credit is neither applied nor refunded; null of what is no issued credit.
        unapplied_amount: Option<ExactNumber> = view.owed.unapplied,
        /// What settles it, and what it settles.
        applications: Vec<ApplicationJson> = &view.applications,
        /// What of it was given up on, and by what that was lessened.
        write_offs: Vec<WriteOffJson> = &view.write_offs,
        /// Purchase order number.
        po_number: Option<LineText> = view.po_number.as_ref(),
        /// The products' notes, joined by line breaks.
        note: Option<String> = view.note.as_ref().map(ToString::to_string),
        /// Bank account.
        billing_bank_transfer_details: Option<BankTransferJson> = payment.bank_transfer.as_ref(),
        /// Online payment.
        billing_online_payment_details: Option<OnlinePaymentJson> = payment.online.as_ref(),
        /// Crypto wallet.
        billing_crypto_details: Option<CryptoJson> = payment.crypto.as_ref(),
        /// The bank account that is named above, where it is one of `/api/bank_accounts/`.
        bank_account: Option<BankAccountJson> =
            account_ref
                .zip(account)
                .map(|(account_ref, profile)| BankAccountResponse { account_ref, profile: profile.clone() })
                .as_ref(),
        /// What the payer wants to find on it.
        buyer_reference: Option<BuyerReferenceText> =
            paper.and_then(|paper| paper.buyer_reference.as_ref()).map(|reference| reference.as_str()),
        /// The issued document that it corrects, of a credit, debit or adjustment; of children of an invoice that isn't issued, the first.
        corrects: Option<CorrectedDocumentJson> = paper.and_then(|paper| paper.corrects.as_ref()),
        /// The last of several children that it corrects, of an invoice that isn't issued.
        corrects_last: Option<CorrectedDocumentJson> = paper.and_then(|paper| paper.corrects_last.as_ref()),
        /// Its taxes in the currency that its entity accounts for them in, where that is another; null of a draft whose rate isn't known.
        tax_in_currency: Option<TaxInCurrencyJson> = paper.and_then(|paper| paper.tax_in_currency.as_ref()),
        /// What its taxes are called.
        tax_label: Option<LineText> = paper.map(|paper| &paper.tax_label),
        /// What its entity's law wants on it.
        legal_notes: Vec<LegalNoteJson> = paper.into_iter().flat_map(|paper| &paper.legal_notes),
        /// In which language it is written.
        language: Option<LanguageWord> = paper.map(|paper| paper.language),
        /// The size of its pages.
        paper_size: Option<PaperSizeWord> = paper.map(|paper| paper.size),
        /// The shape of what is frozen of it: 1 lacks addresses, numbers, bank account, categories and codes; 2 has them.
        #[schema(minimum = 1, maximum = 2)]
        format: u8 = view.format(),
        /// What the law asks for that it doesn't say: pointers such as `/customer/legal_name`. An entity whose `paper` is STRICT issues
        /// no document with any.
        missing: Vec<String> = view.missing(),
    }
}

answer! {
    /// Who pays, as the document says.
    DocumentCustomerJson of view: DocumentView {
        let (parties, details) = (&view.parties, view.paper.as_deref().map(|paper| &paper.customer));
        /// Reference.
        customer_ref: NamedRef = &parties.customer_ref,
        /// Name.
        customer_name: LineText = &parties.customer_name,
        /// Registered name.
        customer_legal_name: Option<LineText> = parties.customer_legal_name.as_ref(),
        /// Postal address.
        address: Option<AddressJson> = details.and_then(|details| details.address.as_ref()),
        /// E-mail address.
        email: Option<EmailText> = details.and_then(|details| details.email.as_ref()),
        /// Any other tax number.
        tax_id: Option<LineText> = details.and_then(|details| details.tax_id.as_ref()),
        /// Number for value added tax.
        vat_id: Option<VatIdText> = details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| vat_id.as_str()),
        /// Number in a register.
        registration: Option<RegistrationJson> = details.and_then(|details| details.registration.as_ref()),
        /// Where e-invoices go to.
        electronic_address: Option<ElectronicAddressJson> = details.and_then(|details| details.electronic_address.as_ref()),
    }
}

answer! {
    /// Who bills, as the document says.
    DocumentEntityJson of view: DocumentView {
        let (parties, paper) = (&view.parties, view.paper.as_deref());
        let details = paper.map(|paper| &paper.entity);
        /// Reference.
        entity_ref: NamedRef = &parties.entity_ref,
        /// Name.
        entity_name: LineText = &parties.entity_name,
        /// Registered name.
        entity_legal_name: Option<LineText> = parties.entity_legal_name.as_ref(),
        /// Postal address.
        address: Option<AddressJson> = details.and_then(|details| details.address.as_ref()),
        /// E-mail address.
        email: Option<EmailText> = details.and_then(|details| details.email.as_ref()),
        /// Any other tax number.
        tax_id: Option<LineText> = details.and_then(|details| details.tax_id.as_ref()),
        /// Number for value added tax.
        vat_id: Option<VatIdText> = details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| vat_id.as_str()),
        /// Number in a register.
        registration: Option<RegistrationJson> = details.and_then(|details| details.registration.as_ref()),
        /// Where e-invoices go to.
        electronic_address: Option<ElectronicAddressJson> = details.and_then(|details| details.electronic_address.as_ref()),
        /// Whom payers ask.
        contact: Option<ContactJson> = paper.and_then(|paper| paper.contact.as_ref()),
    }
}

answer! {
    /// A document that belongs to another.
    RelatedDocumentJson of related: RelatedDocument {
        /// Reference.
        document_ref: AssignedRef = related.document_ref,
        /// Number.
        document_number: String = related.number.to_string(),
        /// What it does to what the customer owes.
        kind: DocumentKindWord = related.kind,
        /// Why it exists.
        purpose: PurposeWord = PurposeKind::from(related.purpose),
        /// How far it has come.
        state: DocumentStateWord = related.state,
    }
}

answer! {
    /// One product of a document.
    DocumentProductJson of product: BilledProduct {
        /// Its pricing.
        product_pricing_ref: NamedRef = &product.pricing_ref,
        /// The pricing's name.
        product_name: LineText = &product.name,
        /// The least a period costs.
        minimum_fee: Option<ExactNumber> = product.minimum_fee,
        /// Its lines.
        line_items: Vec<DocumentLineJson> = &product.lines,
        /// Sum of the lines.
        sub_total: ExactNumber = product.sub_total,
        /// Discount in percent.
        discount_rate: ExactNumber = product.rates.discount,
        /// Discount.
        discount: ExactNumber = product.discount,
        /// `sub_total − discount`.
        net: ExactNumber = product.net,
        /// Tax in percent.
        tax_rate: ExactNumber = product.rates.tax.rate,
        /// Tax category; null where a rate of 0 has none.
        tax_category: Option<TaxCategoryWord> = product.rates.tax.basis.category,
        /// Why it isn't taxed, as a code.
        exemption_code: Option<ExemptionCodeText> = product.rates.tax.basis.exemption_code,
        /// Why it isn't taxed, in words.
        exemption_reason: Option<LineText> = product.rates.tax.basis.exemption_reason.as_ref(),
    }
}

answer! {
    /// One line of a document.
    DocumentLineJson of line: DocumentLine {
        let (usage, charge) = (line.usage.as_ref(), line.charge.as_ref());
        /// The line item, `charge:` and the reference of a charge; null of what trues a period up to the minimum fee.
        line_item_id: Option<LineItemRef> = line.line_item_id.as_ref(),
        /// What it is for.
        name: LineText = &line.name,
        /// First day it bills.
        service_period_start: DateText = line.service_period.start(),
        /// Last day it bills.
        service_period_end: DateText = line.service_period.last_day(),
        /// The usage product, of usage.
        usage_product_ref: Option<NamedRef> = usage.map(|usage| &usage.usage_product_ref),
        /// The period's quantity, of usage; the agreed quantity, of a fixed line item with one for all its days; a charge's.
        /// Null of a charge's difference.
        quantity: Option<ExactNumber> =
            usage
                .map(|usage| ExactNumber::from(usage.quantity))
                .or_else(|| constant(&line.quantities))
                .or_else(|| charge.map(|charge| ExactNumber::from(charge.quantity))),
        /// The agreed quantities, each with its first day, of a fixed line item that has other ones than 1.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        quantities: Vec<QuantityStepJson> = &line.quantities,
        /// What one of it is called.
        unit: Option<LineText> =
            usage.and_then(|usage| usage.unit.as_ref()).or_else(|| charge.and_then(|charge| charge.unit.as_ref())),
        /// What one of it is, for machines; null in format 1.
        unit_code: Option<UnitCodeText> = line.unit_code,
        /// The price of one, where there is a single one.
        unit_price: Option<ExactNumber> =
            usage
                .and_then(|usage| usage.unit_price)
                .map(ExactNumber::from)
                .or_else(|| charge.map(|charge| ExactNumber::from(charge.unit_price))),
        /// The day of a charge.
        @omitted date: Option<DateText> = charge.map(|charge| charge.date),
        /// The tiers reached, of a tiered price.
        tiers: Vec<DocumentTierJson> = usage.into_iter().flat_map(|usage| &usage.tiers),
        /// The line's amount, rounded once.
        amount: ExactNumber = line.amount,
    }
}

answer! {
    /// What one tier adds to a line.
    DocumentTierJson of rated: RatedTier {
        /// The largest quantity in it; null in the last tier.
        up_to: Option<ExactNumber> = rated.tier.up_to,
        /// Price of one.
        unit_price: ExactNumber = rated.tier.unit_price,
        /// Added once where the tier is reached.
        flat_amount: ExactNumber = rated.tier.flat_amount,
        /// Units priced by it.
        quantity: ExactNumber = rated.quantity,
        /// Its part of the line, not rounded.
        amount: ExactNumber = rated.amount,
    }
}

answer! {
    /// What a document taxes alike.
    TaxJson of tax: Tax {
        /// Tax category; null where a rate of 0 has none.
        tax_category: Option<TaxCategoryWord> = tax.treatment.basis.category,
        /// Why it isn't taxed, as a code.
        exemption_code: Option<ExemptionCodeText> = tax.treatment.basis.exemption_code,
        /// Why it isn't taxed, in words.
        exemption_reason: Option<LineText> = tax.treatment.basis.exemption_reason.as_ref(),
        /// Percent.
        rate: ExactNumber = tax.treatment.rate,
        /// Net amount of the products that are taxed so.
        base: ExactNumber = tax.base,
        /// The tax.
        amount: ExactNumber = tax.amount,
    }
}

/// The one quantity of all steps.
fn constant(steps: &[QuantityStep]) -> Option<ExactNumber> {
    let first = steps.first()?.quantity;
    steps.iter().all(|step| step.quantity == first).then(|| ExactNumber::from(first))
}
