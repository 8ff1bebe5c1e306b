//! Documents: invoices, credits and debits, stored or previewed.

use billing_application::documents::{DocumentView, RelatedDocument};
use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::totals::{BilledProduct, PrepaidAmount, Tax};
use billing_domain::party::BankTransferDetails;
use billing_domain::party::appearance::Footer;
use billing_domain::ports::PurposeKind;

use super::bank_accounts::{BankAccountJson, BankAccountResponse};
use super::calculations::{
    AppliedAtIssueJson, DocumentQuantityJson, DocumentTierJson, ExcludedAmountJson, PackagesJson, PercentageJson,
    PreviouslyBilledJson, ProrationJson, UnissuedAmountJson, excluded_of, quantities_of, tiers_of, unit_price_of,
};
use super::credit_unit::UnitsJson;
use super::declare::answer;
use super::enums::{
    DocumentKindWord, DocumentStateWord, LanguageWord, PaperSizeWord, PurposeWord, SupplyCategoryWord, TaxCategoryWord,
};
use super::legal::{
    ContactJson, CorrectedDocumentJson, ElectronicAddressJson, LegalNoteJson, RegistrationJson, TaxInCurrencyJson,
};
use super::money::{ApplicationJson, WriteOffJson};
use super::party::{AddressJson, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::values::{
    AccentColorText, BuyerReferenceText, CurrencyCode, DateText, ExemptionCodeText, FooterText, LineText, LogoText,
    TimestampText, UnitCodeText, VatIdText,
};
use super::wire::{AssignedRef, EmailText, ExactNumber, LineItemRef, NamedRef, NetTermsValue};

answer! {
    /// A document. Fields without a value yet are null.
    DocumentJson of view: DocumentView {
        let (opened, content, payment) = (view.opened.as_ref(), &view.content, &view.payment);
        let parent = opened.and_then(|opened| opened.parent.as_ref());
        let paper = view.paper.as_deref();
        let account_ref = payment.bank_transfer.as_ref().and_then(BankTransferDetails::account_ref);
        let account = paper.and_then(|paper| paper.bank_account.as_ref());
        /// Reference; null for a preview.
        document_ref: Option<AssignedRef> = opened.map(|opened| opened.document_ref),
        /// Number in the series of its entity and kind; null for a preview.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = opened.map(|opened| opened.number.to_string()),
        /// Document kind.
        kind: DocumentKindWord = view.kind,
        /// State.
        state: DocumentStateWord = view.state,
        /// Purpose.
        purpose: PurposeWord = PurposeKind::from(view.purpose),
        /// Billed contract.
        contract_ref: AssignedRef = view.contract_ref,
        /// Number of the contract.
        #[schema(example = "C-1")]
        contract_number: String = view.contract_number.clone(),
        /// Sequence number in the contract, starting at 1; null for a preview.
        #[schema(minimum = 1)]
        number_in_contract: Option<u32> = opened.map(|opened| opened.number_in_contract),
        /// Void document that this document replaces.
        replaces_document_ref: Option<AssignedRef> = opened.and_then(|opened| opened.replaces),
        /// Customer.
        customer: DocumentCustomerJson = view,
        /// Supplier entity.
        entity: DocumentEntityJson = view,
        /// Currency of all amounts.
        currency: CurrencyCode = view.currency,
        /// Time to pay.
        net_terms: NetTermsValue = view.net_terms,
        /// First day of the document's own period.
        period_start: DateText = view.period.start(),
        /// Last day of the document's own period.
        period_end: DateText = view.period.last_day(),
        /// Whether the document's period is a partial period.
        is_partial_period: bool = view.is_partial_period,
        /// Time of creation; null for a preview.
        created_at: Option<TimestampText> = opened.map(|opened| opened.created_at),
        /// Time of the last change: creation, issue, void, payment, credit, application or write-off. Of a draft, also a change
        /// of its period, its products or its contract, but not of its usage. Null for a preview.
        updated_at: Option<TimestampText> = opened.map(|opened| opened.updated_at),
        /// Date of issue.
        issue_date: Option<DateText> = view.issued.map(|issued| issued.issue_date),
        /// Due date; null for a credit or a void document.
        due_date: Option<DateText> = view.issued.and_then(|issued| issued.due_date),
        /// Date on which the amount due became 0.
        paid_date: Option<DateText> = view.settlement.paid_date,
        /// Whether an amount is still due after the due date.
        overdue: bool = view.issued.is_some_and(|issued| issued.overdue),
        /// Parent invoice.
        parent_document_ref: Option<AssignedRef> = parent.map(|parent| parent.document_ref),
        /// Number of the parent invoice.
        parent_document_number: Option<String> = parent.map(|parent| parent.number.to_string()),
        /// Child documents.
        related_documents: Vec<RelatedDocumentJson> = opened.into_iter().flat_map(|opened| &opened.related),
        /// Billed products.
        products: Vec<DocumentProductJson> = &content.products,
        /// Taxes by rate, category and exemption reason.
        taxes: Vec<TaxJson> = &content.taxes,
        /// Sum of the products before discount.
        sub_total: ExactNumber = content.sub_total,
        /// Sum of the discounts.
        total_discount: ExactNumber = content.total_discount,
        /// Prepaid credit that the document takes after discounts and before tax, by grant and tax. On a credit, what it returns.
        prepaid: Vec<DocumentPrepaidJson> = &content.prepaid,
        /// Sum of the prepaid credit.
        total_prepaid: ExactNumber = view.total_prepaid,
        /// Sum of the taxes.
        total_tax: ExactNumber = content.total_tax,
        /// Applied credits.
        credits_amount: ExactNumber = view.settlement.credits,
        /// `sub_total − total_discount − total_prepaid + total_tax`.
        total: ExactNumber = content.total,
        /// Applied payments.
        paid_amount: ExactNumber = view.settlement.paid,
        /// Amount written off.
        written_off_amount: ExactNumber = view.owed.written_off,
        /// Amount due: `total − credits_amount − paid_amount − written_off_amount`, never negative; null for a credit or
        /// a void document.
        amount_due: Option<ExactNumber> = view.owed.amount_due,
        /// Amounts applied in the request that issued the document: for an invoice or a debit, credits and balance; for a
        /// credit, what it settled. Later payments and credits do not change them. Empty before format 3.
        applied_at_issue: Vec<AppliedAtIssueJson> = view.at_issue.iter().flat_map(|at_issue| &at_issue.applied),
        /// Total less `applied_at_issue`: the amount due at the issue, or what was left of a credit. Null for a document that
        /// is not issued, and before format 3.
        due_at_issue: Option<ExactNumber> = view.at_issue.as_ref().map(|at_issue| at_issue.due),
        /// Amount of a credit that is neither applied nor refunded; null unless the document is an issued credit.
        unapplied_amount: Option<ExactNumber> = view.owed.unapplied,
        /// Applications to and from this document.
        applications: Vec<ApplicationJson> = &view.applications,
        /// Write-offs of this document, and their reductions and reversals.
        write_offs: Vec<WriteOffJson> = &view.write_offs,
        /// Purchase order number.
        po_number: Option<LineText> = view.po_number.as_ref(),
        /// Notes of the products, joined by line breaks.
        note: Option<String> = view.note.as_ref().map(ToString::to_string),
        /// Bank account.
        billing_bank_transfer_details: Option<BankTransferJson> = payment.bank_transfer.as_ref(),
        /// Online payment.
        billing_online_payment_details: Option<OnlinePaymentJson> = payment.online.as_ref(),
        /// Crypto wallet.
        billing_crypto_details: Option<CryptoJson> = payment.crypto.as_ref(),
        /// Bank account named in `billing_bank_transfer_details`, if it exists in `/api/bank_accounts/`.
        bank_account: Option<BankAccountJson> =
            account_ref
                .zip(account)
                .map(|(account_ref, profile)| BankAccountResponse { account_ref, profile: profile.clone(), updated_at: None })
                .as_ref(),
        /// Buyer reference.
        buyer_reference: Option<BuyerReferenceText> =
            paper.and_then(|paper| paper.buyer_reference.as_ref()).map(|reference| reference.as_str()),
        /// Issued document that this credit, debit or adjustment corrects. If it corrects several children of an invoice
        /// that is not issued, the first of them.
        corrects: Option<CorrectedDocumentJson> = paper.and_then(|paper| paper.corrects.as_ref()),
        /// Last of several corrected children of an invoice that is not issued.
        corrects_last: Option<CorrectedDocumentJson> = paper.and_then(|paper| paper.corrects_last.as_ref()),
        /// Taxes in the entity's tax currency, if it differs from the document's currency; null for a draft without a
        /// known exchange rate.
        tax_in_currency: Option<TaxInCurrencyJson> = paper.and_then(|paper| paper.tax_in_currency.as_ref()),
        /// Whether the document bills services, goods or both; omitted unless the entity is in France.
        @omitted supply: Option<SupplyCategoryWord> = paper.and_then(|paper| paper.supply),
        /// Name of the tax on the document.
        tax_label: Option<LineText> = paper.map(|paper| &paper.tax_label),
        /// Legal notes required by the entity's jurisdiction.
        legal_notes: Vec<LegalNoteJson> = paper.into_iter().flat_map(|paper| &paper.legal_notes),
        /// Logo: the format and the SHA-256 hash of the image.
        logo: Option<LogoText> = paper.and_then(|paper| paper.logo.as_ref()),
        /// Color of the title and the rules.
        accent_color: Option<AccentColorText> = paper.and_then(|paper| paper.accent_color),
        /// Text at the end of the document.
        footer: Option<FooterText> = paper.and_then(|paper| paper.footer.as_ref()).map(Footer::as_str),
        /// Language.
        language: Option<LanguageWord> = paper.map(|paper| paper.language),
        /// Page size.
        paper_size: Option<PaperSizeWord> = paper.map(|paper| paper.size),
        /// Format of the frozen content. Format 1 lacks addresses, tax numbers, bank account, tax categories and codes;
        /// format 2 has them. Format 3 also has the factors of each line's amount and what was due at the issue. From format 4
        /// on, `previously` of an issued document names issued documents alone.
        #[schema(minimum = 1, maximum = 4)]
        format: u8 = view.format,
        /// Legally required fields that are missing, as JSON pointers such as `/customer/legal_name`. Entities whose
        /// `paper` is STRICT issue no document with missing fields.
        missing: Vec<String> = view.missing(),
        /// Characters that no font of the server has. In the PDF file, each is a box, and the file is made anew with each request
        /// until fonts have all characters. At most 50. Null if there are none, and in lists, previews and answers to changes.
        missing_glyphs: Option<String> = view.missing_glyphs.clone(),
    }
}

answer! {
    /// The customer as shown on the document.
    DocumentCustomerJson of view: DocumentView {
        let (parties, details) = (&view.parties, view.paper.as_deref().map(|paper| &paper.customer));
        /// Reference.
        customer_ref: NamedRef = &parties.customer_ref,
        /// Name.
        customer_name: LineText = &parties.customer_name,
        /// Legal name.
        customer_legal_name: Option<LineText> = parties.customer_legal_name.as_ref(),
        /// Postal address.
        address: Option<AddressJson> = details.and_then(|details| details.address.as_ref()),
        /// E-mail address.
        email: Option<EmailText> = details.and_then(|details| details.email.as_ref()),
        /// Tax number other than the VAT number.
        tax_id: Option<LineText> = details.and_then(|details| details.tax_id.as_ref()),
        /// VAT identification number.
        vat_id: Option<VatIdText> = details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| vat_id.as_str()),
        /// Company registration number.
        registration: Option<RegistrationJson> = details.and_then(|details| details.registration.as_ref()),
        /// Electronic address for e-invoices.
        electronic_address: Option<ElectronicAddressJson> = details.and_then(|details| details.electronic_address.as_ref()),
    }
}

answer! {
    /// The supplier entity as shown on the document.
    DocumentEntityJson of view: DocumentView {
        let (parties, paper) = (&view.parties, view.paper.as_deref());
        let details = paper.map(|paper| &paper.entity);
        /// Reference.
        entity_ref: NamedRef = &parties.entity_ref,
        /// Name.
        entity_name: LineText = &parties.entity_name,
        /// Legal name.
        entity_legal_name: Option<LineText> = parties.entity_legal_name.as_ref(),
        /// Postal address.
        address: Option<AddressJson> = details.and_then(|details| details.address.as_ref()),
        /// E-mail address.
        email: Option<EmailText> = details.and_then(|details| details.email.as_ref()),
        /// Tax number other than the VAT number.
        tax_id: Option<LineText> = details.and_then(|details| details.tax_id.as_ref()),
        /// VAT identification number.
        vat_id: Option<VatIdText> = details.and_then(|details| details.vat_id.as_ref()).map(|vat_id| vat_id.as_str()),
        /// Company registration number.
        registration: Option<RegistrationJson> = details.and_then(|details| details.registration.as_ref()),
        /// Electronic address for e-invoices.
        electronic_address: Option<ElectronicAddressJson> = details.and_then(|details| details.electronic_address.as_ref()),
        /// Contact for questions from payers.
        contact: Option<ContactJson> = paper.and_then(|paper| paper.contact.as_ref()),
    }
}

answer! {
    /// A child document.
    RelatedDocumentJson of related: RelatedDocument {
        /// Reference.
        document_ref: AssignedRef = related.document_ref,
        /// Number.
        document_number: String = related.number.to_string(),
        /// Document kind.
        kind: DocumentKindWord = related.kind,
        /// Purpose.
        purpose: PurposeWord = PurposeKind::from(related.purpose),
        /// State.
        state: DocumentStateWord = related.state,
    }
}

answer! {
    /// A product of a document.
    DocumentProductJson of product: BilledProduct {
        /// Number of the product in the contract.
        product_no: u16 = product.product_no.0,
        /// Pricing reference.
        product_pricing_ref: NamedRef = &product.pricing_ref,
        /// Name of the product, or else of the pricing.
        product_name: LineText = &product.name,
        /// Minimum amount per period.
        minimum_fee: Option<ExactNumber> = product.minimum_fee,
        /// Lines.
        line_items: Vec<DocumentLineJson> = &product.lines,
        /// Sum of the lines.
        sub_total: ExactNumber = product.sub_total,
        /// Discount in percent.
        discount_rate: ExactNumber = product.rates.discount,
        /// Discount amount.
        discount: ExactNumber = product.discount,
        /// `sub_total − discount`.
        net: ExactNumber = product.net,
        /// Tax in percent.
        tax_rate: ExactNumber = product.rates.tax.rate,
        /// Tax category; null for a rate of 0 without a category.
        tax_category: Option<TaxCategoryWord> = product.rates.tax.basis.category,
        /// Code of the exemption reason.
        exemption_code: Option<ExemptionCodeText> = product.rates.tax.basis.exemption_code,
        /// Text of the exemption reason.
        exemption_reason: Option<LineText> = product.rates.tax.basis.exemption_reason.as_ref(),
    }
}

answer! {
    /// A line of a document.
    DocumentLineJson of line: DocumentLine {
        let (usage, charge, calculation) = (line.usage.as_ref(), line.charge.as_ref(), line.calculation.as_deref());
        /// Line item, or `charge:` and the reference of a charge; null for the line that raises a period to its minimum
        /// fee.
        line_item_id: Option<LineItemRef> = line.line_item_id.as_ref(),
        /// Description.
        name: LineText = &line.name,
        /// First day billed.
        service_period_start: DateText = line.service_period.start(),
        /// Last day billed.
        service_period_end: DateText = line.service_period.last_day(),
        /// Usage product; null unless the line bills usage.
        usage_product_ref: Option<NamedRef> = usage.map(|usage| &usage.usage_product_ref),
        /// Quantity of the period's usage, of a charge, or of a fixed line item whose quantity is the same on all days.
        /// Null for the difference of a charge.
        quantity: Option<ExactNumber> =
            usage
                .map(|usage| ExactNumber::from(usage.quantity))
                .or_else(|| constant(&line.quantities))
                .or_else(|| charge.map(|charge| ExactNumber::from(charge.quantity))),
        /// Quantity of the period's usage, for usage; in format 3 and later, as all factors of the amount.
        @omitted usage_quantity: Option<ExactNumber> = calculation.and_then(|factors| factors.usage_quantity),
        /// Included quantity, if it is above 0.
        @omitted included_quantity: Option<ExactNumber> = calculation.and_then(|factors| factors.included_quantity),
        /// Quantity billed in advance, if it is above 0. At least this quantity is priced.
        @omitted prepaid_quantity: Option<ExactNumber> = calculation.and_then(|factors| factors.prepaid_quantity),
        /// Priced quantity. For usage, the usage or the prepaid quantity if that is larger, less the included quantity.
        @omitted billable_quantity: Option<ExactNumber> = calculation.and_then(|factors| factors.billable_quantity),
        /// Quantities of a fixed line item: agreed ones with their first days, if any is not 1; in format 3 and later, with
        /// their days and parts of the amount if the quantity changes within the period.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        quantities: Vec<DocumentQuantityJson> = quantities_of(line),
        /// Unit name.
        unit: Option<LineText> =
            usage.and_then(|usage| usage.unit.as_ref()).or_else(|| charge.and_then(|charge| charge.unit.as_ref())),
        /// Unit code (UN/ECE); null in format 1.
        unit_code: Option<UnitCodeText> = line.unit_code,
        /// Price per unit; null if the line has no single unit price.
        unit_price: Option<ExactNumber> = unit_price_of(line),
        /// Service date of a charge.
        @omitted date: Option<DateText> = charge.map(|charge| charge.date),
        /// Tiers reached by a tiered price.
        tiers: Vec<DocumentTierJson> = tiers_of(line),
        /// Packages, for a price by package.
        @omitted packages: Option<PackagesJson> = calculation.and_then(|factors| factors.packages.as_ref()),
        /// Percentage, for a price in percent.
        @omitted percentage: Option<PercentageJson> = calculation.and_then(|factors| factors.percentage.as_ref()),
        /// Billed days of a partial period. They apply to the price of a fixed line item and to minimums. Quantities that
        /// change within the period have their own days.
        @omitted proration: Option<ProrationJson> = calculation.and_then(|factors| factors.proration.as_ref()),
        /// Minimum amount of a whole period that raised the amount. For a charge below zero, what it could take at most; on a
        /// credit, this is the maximum.
        @omitted minimum: Option<ExactNumber> = calculation.and_then(|factors| factors.minimum),
        /// Maximum amount that lowered the amount.
        @omitted maximum: Option<ExactNumber> = calculation.and_then(|factors| factors.maximum),
        /// Minimum fee of a whole period, for the line that raises the period to it.
        @omitted minimum_fee: Option<ExactNumber> =
            calculation.and_then(|factors| factors.minimum_fee.as_ref()).map(|minimum_fee| minimum_fee.fee),
        /// Sum of the period's lines that count for the minimum fee. The line's amount is what is missing.
        @omitted billed_for_minimum_fee: Option<ExactNumber> =
            calculation.and_then(|factors| factors.minimum_fee.as_ref()).map(|minimum_fee| minimum_fee.billed),
        /// Lines of the period that do not count for the minimum fee: one-time items and charges. Together with
        /// `billed_for_minimum_fee`, they are the period's price without the minimum fee. In format 4 and later.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        excluded_from_minimum_fee: Vec<ExcludedAmountJson> = excluded_of(line),
        /// Amounts that issued documents bill of the same price. The line's amount is the price that the other factors give
        /// less `previously` and `unissued`; on a credit with the opposite sign.
        @omitted previously: Option<PreviouslyBilledJson> = calculation.and_then(|factors| factors.previously.as_ref()),
        /// Amounts that drafts bill of the same price. In format 4 and later.
        @omitted unissued: Option<UnissuedAmountJson> = calculation.and_then(|factors| factors.unissued.as_ref()),
        /// Amount of the line, rounded once.
        amount: ExactNumber = line.amount,
    }
}

answer! {
    /// The prepaid credit of a grant that a document takes for the products with the same tax.
    DocumentPrepaidJson of prepaid: PrepaidAmount {
        /// Credit grant.
        grant_ref: AssignedRef = prepaid.grant_ref,
        /// Name of the grant.
        name: LineText = &prepaid.name,
        /// Tax of the products in percent.
        tax_rate: ExactNumber = prepaid.treatment.rate,
        /// Tax category; null for a rate of 0 without a category.
        tax_category: Option<TaxCategoryWord> = prepaid.treatment.basis.category,
        /// Amount. On a credit, the amount that it returns, above 0.
        amount: ExactNumber = prepaid.amount,
        /// The same in the entity's unit of credit, rounded towards zero to 2 decimals; null without such a unit.
        units: Option<UnitsJson> = prepaid.units().as_ref(),
    }
}

answer! {
    /// The tax on all products of a document with the same rate, category and exemption reason.
    TaxJson of tax: Tax {
        /// Tax category; null for a rate of 0 without a category.
        tax_category: Option<TaxCategoryWord> = tax.treatment.basis.category,
        /// Code of the exemption reason.
        exemption_code: Option<ExemptionCodeText> = tax.treatment.basis.exemption_code,
        /// Text of the exemption reason.
        exemption_reason: Option<LineText> = tax.treatment.basis.exemption_reason.as_ref(),
        /// Tax in percent.
        rate: ExactNumber = tax.treatment.rate,
        /// Net amount of the products with this tax, less their prepaid credit.
        base: ExactNumber = tax.base,
        /// Tax amount.
        amount: ExactNumber = tax.amount,
    }
}

/// Returns the quantity if all steps have the same one.
fn constant(steps: &[QuantityStep]) -> Option<ExactNumber> {
    let first = steps.first()?.quantity;
    steps.iter().all(|step| step.quantity == first).then(|| ExactNumber::from(first))
}
