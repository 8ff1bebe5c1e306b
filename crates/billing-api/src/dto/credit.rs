//! Prepaid credit of customers.

use billing_application::credit::{CreditSaleRequest, DrawView, GrantRequest, GrantView, SoldCredit};
use billing_domain::calendar::Date;
use billing_domain::credit::{CreditDraw, CreditGrantEdit};
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::money::Currency;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, EntityRef, PricingRef};
use billing_domain::text::OneLine;

use super::credit_unit::{GrantUnitsJson, UnitsJson};
use super::declare::{NotClearable, answer, body, fields};
use super::enums::TaxCategoryWord;
use super::values::{AmountText, CurrencyCode, DateText, LineText, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

fields! {
    GrantRequest {
        /// Customer reference.
        customer_ref: CustomerRef,
        /// Supplier entity whose documents take the credit. Default: the customer's entity, else the default entity.
        entity_ref: Option<EntityRef>,
        /// Currency.
        currency: Currency,
        /// Credit before tax, above 0.
        amount: AmountText,
        /// Name on documents.
        name: OneLine,
        /// First day of the service that the credit covers. Default: any day.
        from: Option<Date>,
        /// Last day of the service that the credit covers; a period that it cuts is covered whole. Default: any day.
        to: Option<Date>,
        /// Contract whose documents take the credit. Default: all contracts of the customer with the entity and currency.
        contract_ref: Option<ContractRef>,
        /// Issued invoice that sold the credit. The credit is usable while the invoice is paid, and covers only amounts at the
        /// invoice's tax. Without it the credit is given, and covers amounts at any tax.
        source as "source_document_ref": Option<DocumentRef>,
    }
}

body! {
    /// Credit to grant.
    GrantBody {
        @flat request: GrantRequest,
    }
}

fields! {
    CreditGrantEdit {
        /// Name on documents that are not issued.
        name: NotClearable<OneLine>,
        /// First day of the service that the credit covers; null removes it.
        from: Patch<Date>,
        /// Last day of the service that the credit covers; null removes it.
        to: Patch<Date>,
        /// Amount of given credit, at least what is drawn.
        amount: NotClearable<AmountText>,
    }
}

body! {
    /// Changes to a grant. Omitted fields stay unchanged.
    GrantEditBody {
        @flat edit: CreditGrantEdit,
    }
}

fields! {
    CreditSaleRequest {
        /// Customer reference.
        customer_ref: CustomerRef,
        /// Pricing of the sale, with fixed line items only.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// Quantity of each line item. Default: 1.
        quantity: Option<Quantity>,
        /// Credit before tax. Default: the invoice's total before tax.
        amount: Option<AmountText>,
        /// Name of the credit on documents.
        name: OneLine,
        /// Last day of the service that the credit covers. Default: any day.
        to: Option<Date>,
        /// Contract whose documents take the credit. Default: all contracts of the customer with the entity and currency.
        contract_ref: Option<ContractRef>,
        /// Supplier entity that sells the credit. Default: the customer's entity, else the default entity.
        entity_ref: Option<EntityRef>,
        /// Net terms of the invoice, in the form of a contract product's. Default: those of the customer, else of the entity.
        net_terms: Option<NetTerms>,
        /// Payment of the invoice. The balance pays first; what is left of the payment becomes balance. Default: the invoice is not
        /// paid yet, and its credit is not usable.
        payment: Option<NewPayment>,
    }
}

body! {
    /// Credit to sell.
    CreditSaleBody {
        @flat request: CreditSaleRequest,
    }
}

answer! {
    /// Credit that was sold.
    SoldCreditJson of sold: SoldCredit {
        /// Reference of the grant.
        grant_ref: AssignedRef = sold.grant_ref,
        /// One-time contract of the sale.
        contract_ref: AssignedRef = sold.contract_ref,
        /// Issued invoice of the sale.
        document_ref: AssignedRef = sold.document_ref,
        /// Number of the invoice.
        #[schema(example = "UB-INV-1")]
        document_number: LineText = &sold.document_number,
        /// Total of the invoice with tax.
        total: ExactNumber = sold.total,
    }
}

answer! {
    /// Prepaid credit of a customer.
    GrantJson of view: GrantView {
        let (grant, balance) = (&view.grant, &view.balance);
        let sale = grant.sale.as_ref();
        /// Reference.
        grant_ref: AssignedRef = grant.grant_ref,
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Supplier entity whose documents take the credit.
        entity_ref: NamedRef = &grant.account.entity_ref,
        /// Currency.
        currency: CurrencyCode = grant.account.currency,
        /// Credit that was given or sold.
        amount: ExactNumber = grant.amount,
        /// Name on documents.
        name: LineText = &grant.name,
        /// First day of the service that the credit covers; null for any day.
        from: Option<DateText> = grant.from,
        /// Last day of the service that the credit covers; null for any day.
        to: Option<DateText> = grant.to,
        /// Contract whose documents take the credit; null for all.
        contract_ref: Option<AssignedRef> = grant.contract_ref,
        /// Invoice that sold the credit; null for given credit.
        source_document_ref: Option<AssignedRef> = sale.map(|sale| sale.document_ref),
        /// Number of that invoice.
        source_document_number: Option<LineText> = sale.map(|sale| sale.number.to_string()),
        /// What documents may take in all: `amount`, and for sold credit the part that the sale still bills, once it is paid.
        usable: ExactNumber = balance.usable,
        /// What issued documents have taken.
        drawn: ExactNumber = balance.drawn,
        /// What drafts take.
        covered: ExactNumber = balance.covered,
        /// What further documents can take.
        free: ExactNumber = balance.free,
        /// The same in the entity's unit of credit, rounded towards zero to 2 decimals; null without such a unit.
        units: Option<GrantUnitsJson> = view.units().as_ref(),
        /// Time of creation.
        created_at: TimestampText = grant.created_at,
        /// Time of the last change.
        updated_at: TimestampText = grant.updated_at,
    }
}

answer! {
    /// Credit that an issued document took from a grant, or returned to it.
    DrawJson of view: DrawView {
        let CreditDraw { document_ref, grant_ref, treatment, amount } = &view.stored.draw;
        /// Grant.
        grant_ref: AssignedRef = *grant_ref,
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Document.
        document_ref: AssignedRef = *document_ref,
        /// Number of the document.
        #[schema(example = "UB-INV-1")]
        document_number: LineText = view.stored.document_number.to_string(),
        /// Tax rate of the covered amounts in percent.
        tax_rate: ExactNumber = treatment.rate,
        /// Tax category of the covered amounts; null for a rate of 0 without a category.
        tax_category: Option<TaxCategoryWord> = treatment.basis.category,
        /// Currency of the amount.
        currency: CurrencyCode = amount.currency(),
        /// Amount; below 0 if the document returned it, or was voided.
        amount: ExactNumber = *amount,
        /// The same in the entity's unit of credit, rounded towards zero to 2 decimals; null without such a unit.
        units: Option<UnitsJson> = view.units().as_ref(),
        /// When the document was issued or voided.
        recorded_at: TimestampText = view.stored.at,
    }
}
