//! Prepaid credit of customers (billing rules 12).

mod grants;
mod sell;

use billing_domain::calendar::Date;
use billing_domain::credit::unit::{CreditUnit, UnitAmounts};
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::money::{Currency, Money};
use billing_domain::party::NetTerms;
use billing_domain::ports::{DrawFilter, GrantFilter, StoredDraw};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CreditGrantRef, CustomerRef, DocumentRef, EntityRef, PricingRef};
use billing_domain::text::OneLine;

pub use billing_domain::credit::GrantView;
pub(crate) use grants::{announce_ending, free_of};
pub use grants::{create_credit_grant, edit_credit_grant, get_credit_grant, list_credit_draws, list_credit_grants};
pub use sell::sell_credit;

/// A request to grant credit.
#[derive(Clone, Debug)]
pub struct GrantRequest {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The entity that bills; the customer's or the default entity if `None`.
    pub entity_ref: Option<EntityRef>,
    /// The currency.
    pub currency: Currency,
    /// The decimal amount.
    pub amount: String,
    /// The name on documents.
    pub name: OneLine,
    /// The first day of the service that the credit covers.
    pub from: Option<Date>,
    /// The last day of the service that the credit covers.
    pub to: Option<Date>,
    /// The contract whose documents take the credit; every contract of the account if `None`.
    pub contract_ref: Option<ContractRef>,
    /// The invoice that sold the credit; `None` for given credit.
    pub source: Option<DocumentRef>,
}

/// The filter of a list of grants.
#[derive(Clone, Debug, Default)]
pub struct GrantQuery {
    /// Only grants of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// The other conditions.
    pub filter: GrantFilter,
}

/// The filter of a list of draws.
#[derive(Clone, Debug, Default)]
pub struct DrawQuery {
    /// Only draws of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// The other conditions.
    pub filter: DrawFilter,
}

/// A draw with its customer.
#[derive(Clone, Debug)]
pub struct DrawView {
    /// The draw and its document.
    pub stored: StoredDraw,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The entity's unit of credit; `None` without one.
    pub unit: Option<CreditUnit>,
}

impl DrawView {
    /// Returns the amount in the entity's unit of credit, if it has one.
    pub fn units(&self) -> Option<UnitAmounts<1>> {
        self.unit.as_ref().map(|unit| unit.convert([self.stored.draw.amount.to_decimal()]))
    }
}

/// A request to sell credit.
#[derive(Clone, Debug)]
pub struct CreditSaleRequest {
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The pricing, which has only fixed line items.
    pub pricing_ref: PricingRef,
    /// The quantity of each line item; 1 if `None`.
    pub quantity: Option<Quantity>,
    /// The decimal amount of the credit; the net amount of the invoice if `None`.
    pub amount: Option<String>,
    /// The name on documents.
    pub name: OneLine,
    /// The last day of the service that the credit covers.
    pub to: Option<Date>,
    /// The contract whose documents take the credit; every contract of the account if `None`.
    pub contract_ref: Option<ContractRef>,
    /// The entity that bills; the customer's or the default entity if `None`.
    pub entity_ref: Option<EntityRef>,
    /// The net terms of the invoice.
    pub net_terms: Option<NetTerms>,
    /// The payment of the invoice.
    pub payment: Option<NewPayment>,
}

/// Credit that was sold.
#[derive(Clone, Debug)]
pub struct SoldCredit {
    /// The grant.
    pub grant_ref: CreditGrantRef,
    /// The contract of the sale.
    pub contract_ref: ContractRef,
    /// The invoice.
    pub document_ref: DocumentRef,
    /// The invoice's number.
    pub document_number: String,
    /// The invoice's total with tax.
    pub total: Money,
}
