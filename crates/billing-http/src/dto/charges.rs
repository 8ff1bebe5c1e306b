//! Charges: one-off amounts and manual credit notes.

use billing_application::charges::{ChargeRequest, ChargeRevision, ChargeView};
use billing_domain::calendar::Date;
use billing_domain::charge::{Charge, ChargeEdit, NewCharge};
use billing_domain::document::lines::BillWith;
use billing_domain::money::SignedPrice;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ChargeRef, ContractRef, PricingRef};
use billing_domain::text::{OneLine, Prose};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::declare::{Kept, body, edit, fields};
use super::schemas::names_in;
use super::wire::{AssignedRef, CurrencyCode, DateText, ExactNumber, LineText, NamedRef, ProseText, TimestampText};
use super::words::{BillWithWord, DocumentStateWord, EventActionWord};

fields! {
    NewCharge {
        /// Reference; assigned when left out.
        charge_ref: Option<ChargeRef>,
        /// The product whose documents bill it; needed where several products of the contract bill the day.
        product_pricing_ref: Option<PricingRef>,
        /// The day it counts on: its period's documents bill it.
        date: Date,
        /// What it is for.
        name: OneLine,
        /// How many; 1 when left out.
        quantity: Quantity = Quantity::ONE,
        /// The price of one in the product's currency; below zero it gives money back.
        unit_price: SignedPrice,
        /// What one is called.
        unit: Option<OneLine>,
        /// Whether the document of the period's usage bills it, or that of its fixed items; `USAGE` when left out.
        bill_with: BillWith = BillWith::Usage,
        /// Whether the product's discount applies to it; otherwise not.
        discountable: bool = false,
        /// For whoever reads it.
        note: Option<Prose>,
        /// Why it is made.
        reason: Option<Prose>,
    }
}

fields! {
    ChargeRequest {
        /// The contract it is charged in.
        contract_ref: ContractRef,
        @flat charge: NewCharge,
        /// Whether the debit or credit it goes on, where its document is issued, is issued at once.
        issue: bool = false,
    }
}

body! {
    /// A charge to record.
    ChargeBody {
        @flat request: ChargeRequest,
    }
    example json!({
        "charge_ref": "setup-1",
        "contract_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b",
        "date": "2026-01-10",
        "name": "Setup",
        "unit_price": 500
    });
}

fields! {
    ChargeEdit {
        /// The day it counts on; it may move the charge to another period.
        date: Kept<Date>,
        /// What it is for.
        name: Kept<OneLine>,
        /// How many.
        quantity: Kept<Quantity>,
        /// The price of one.
        unit_price: Kept<SignedPrice>,
        /// For whoever reads it; null clears it.
        note: Patch<Prose>,
    }
}

edit! {
    /// What of a charge is to change; what is left out is kept. What an answer adds to a charge is ignored.
    ChargeEditBody named "charge_ref": ChargeRef {
        @flat edit: ChargeEdit,
        /// Whether debits and credits that follow are issued at once.
        issue: bool = false,
    }
    example json!({"unit_price": 450});
    with {
        fn answered() -> &'static [String] {
            static NAMES: OnceLock<Vec<String>> = OnceLock::new();
            NAMES.get_or_init(|| {
                let made_with = ChargeRequest::names();
                names_in::<ChargeJson>().into_iter().filter(|name| !made_with.contains(&name.as_str())).collect()
            })
        }
    }
}

/// A charge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChargeJson {
    /// Reference.
    charge_ref: NamedRef,
    /// The contract it is charged in.
    contract_ref: AssignedRef,
    /// Who pays.
    customer_ref: NamedRef,
    /// The product whose documents bill it.
    product_pricing_ref: NamedRef,
    /// The day it counts on.
    date: DateText,
    /// What it is for.
    name: LineText,
    /// How many.
    quantity: ExactNumber,
    /// The price of one.
    unit_price: ExactNumber,
    /// What one is called.
    unit: Option<LineText>,
    /// `quantity × unit_price`, rounded.
    amount: ExactNumber,
    /// The product's.
    currency: CurrencyCode,
    /// Whether the document of the period's usage bills it, or that of its fixed items.
    bill_with: BillWithWord,
    /// Whether the product's discount applies to it.
    discountable: bool,
    /// For whoever reads it.
    note: Option<ProseText>,
    /// Why it was made.
    reason: Option<ProseText>,
    /// The latest document that carries it; null while it waits for one that replaces a void one.
    related_document_ref: Option<AssignedRef>,
    /// Numbers of all documents that carry it in its period, joined by `, `.
    related_document_numbers: Option<String>,
    /// State of the related document.
    document_state: Option<DocumentStateWord>,
    /// When it was first stored.
    created_at: TimestampText,
    /// Counts its changes from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// Its changes, oldest first.
    history: Vec<ChargeRevisionJson>,
}

/// One change of a charge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChargeRevisionJson {
    /// Counts the charge's changes from 1.
    #[schema(minimum = 1)]
    revision: u32,
    /// When.
    changed_at: TimestampText,
    /// Who: `api_key:` or `admin:` and a reference.
    changed_by: String,
    /// What.
    action: EventActionWord,
    /// What of it can be edited, as it was before; null of the first.
    before: Option<RevisedChargeJson>,
    /// The same after the change.
    after: RevisedChargeJson,
}

/// What of a charge can be edited, as one of its changes left it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisedChargeJson {
    /// The day it counts on.
    date: DateText,
    /// What it is for.
    name: LineText,
    /// How many.
    quantity: ExactNumber,
    /// The price of one.
    unit_price: ExactNumber,
    /// For whoever reads it.
    note: Option<ProseText>,
}

impl From<&Charge> for RevisedChargeJson {
    fn from(charge: &Charge) -> Self {
        Self {
            date: DateText::from(charge.date),
            name: LineText::from(&charge.name),
            quantity: ExactNumber::from(charge.quantity),
            unit_price: ExactNumber::from(charge.unit_price),
            note: charge.note.as_ref().map(ProseText::from),
        }
    }
}

impl From<&ChargeRevision> for ChargeRevisionJson {
    fn from(revision: &ChargeRevision) -> Self {
        Self {
            revision: revision.revision,
            changed_at: TimestampText::from(revision.changed_at),
            changed_by: revision.changed_by.to_string(),
            action: EventActionWord::from(revision.action),
            before: revision.before.as_ref().map(RevisedChargeJson::from),
            after: RevisedChargeJson::from(&revision.after),
        }
    }
}

impl From<&ChargeView> for ChargeJson {
    fn from(view: &ChargeView) -> Self {
        let (charge, documents) = (&view.charge, view.documents.as_ref());
        Self {
            charge_ref: NamedRef::from(&charge.charge_ref),
            contract_ref: AssignedRef::from(charge.contract_ref),
            customer_ref: NamedRef::from(&view.customer_ref),
            product_pricing_ref: NamedRef::from(&view.product_pricing_ref),
            date: DateText::from(charge.date),
            name: LineText::from(&charge.name),
            quantity: ExactNumber::from(charge.quantity),
            unit_price: ExactNumber::from(charge.unit_price),
            unit: charge.unit.as_ref().map(LineText::from),
            amount: ExactNumber::from(view.amount),
            currency: CurrencyCode::from(charge.currency),
            bill_with: BillWithWord::from(charge.bill_with),
            discountable: charge.discountable,
            note: charge.note.as_ref().map(ProseText::from),
            reason: charge.reason.as_ref().map(ProseText::from),
            related_document_ref: documents.map(|documents| AssignedRef::from(documents.document_ref)),
            related_document_numbers: documents.map(|documents| documents.numbers.to_string()),
            document_state: documents.map(|documents| DocumentStateWord::from(documents.state)),
            created_at: TimestampText::from(charge.recorded_at),
            revision: charge.revision,
            history: view.history.iter().map(ChargeRevisionJson::from).collect(),
        }
    }
}
