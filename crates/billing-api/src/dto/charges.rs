//! Charges: one-off amounts and manual credit notes.

use billing_application::charges::{ChargeRequest, ChargeRevision, ChargeView};
use billing_domain::calendar::Date;
use billing_domain::charge::{Charge, ChargeEdit, NewCharge};
use billing_domain::document::lines::BillWith;
use billing_domain::money::SignedPrice;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ChargeRef, ContractRef, PricingRef, ProductNo};
use billing_domain::text::{OneLine, Prose};

use super::declare::{NotClearable, answer, body, edit, fields};
use super::enums::{BillWithWord, DocumentStateWord, EventActionWord};
use super::schemas::names_in;
use super::values::{CurrencyCode, DateText, LineText, NewChargeRef, ProseText, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

fields! {
    NewCharge {
        /// Reference. Default: assigned by the service.
        charge_ref: Option<NewChargeRef>,
        /// Pricing of the product that bills the charge; required if several products of the contract bill the date.
        product_pricing_ref: Option<PricingRef>,
        /// Number of that product; required if several products with the pricing bill the date.
        product_no: Option<ProductNo>,
        /// Service date; the documents of its period bill the charge.
        date: Date,
        /// Description on documents.
        name: OneLine,
        /// Quantity. Default: 1.
        quantity: Quantity = Quantity::ONE,
        /// Price per unit in the product's currency; a negative price is a credit.
        unit_price: SignedPrice,
        /// Unit name.
        unit: Option<OneLine>,
        /// Whether the document for the period's usage or for its fixed items bills the charge. Default: `USAGE`.
        bill_with: BillWith = BillWith::Usage,
        /// Whether the product's discount applies. Default: false.
        discountable: bool = false,
        /// Whether the charge is for a good instead of a service. French documents state it. Default: false.
        goods: bool = false,
        /// Note, not shown on documents.
        note: Option<Prose>,
        /// Reason for the charge.
        reason: Option<Prose>,
    }
}

fields! {
    ChargeRequest {
        /// Contract that the charge belongs to.
        contract_ref: ContractRef,
        @flat charge: NewCharge,
        /// Whether to issue the resulting debit or credit immediately, if the charge's document is already issued.
        /// Default: false.
        issue: bool = false,
    }
}

body! {
    /// A charge to record.
    ChargeBody {
        @flat request: ChargeRequest,
    }
}

fields! {
    ChargeEdit {
        /// Service date; a change can move the charge to another period.
        date: NotClearable<Date>,
        /// Description on documents.
        name: NotClearable<OneLine>,
        /// Quantity.
        quantity: NotClearable<Quantity>,
        /// Price per unit.
        unit_price: NotClearable<SignedPrice>,
        /// Note, not shown on documents; null clears it.
        note: Patch<Prose>,
    }
}

edit! {
    /// Changes to a charge. Omitted fields stay unchanged. Fields that only responses contain are ignored.
    ChargeEditBody named "charge_ref": ChargeRef {
        @flat edit: ChargeEdit,
        /// Whether to issue resulting debits and credits immediately. Default: false.
        issue: bool = false,
    }
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

answer! {
    /// A charge.
    ChargeJson of view: ChargeView {
        let (charge, documents) = (&view.charge, view.documents.as_ref());
        /// Reference.
        charge_ref: NamedRef = &charge.charge_ref,
        /// Contract that the charge belongs to.
        contract_ref: AssignedRef = charge.contract_ref,
        /// Number of the contract.
        #[schema(example = "C-1")]
        contract_number: String = view.contract_number.clone(),
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Customer name.
        customer_name: LineText = &view.customer_name,
        /// Pricing of the product that bills the charge.
        product_pricing_ref: NamedRef = &view.product_pricing_ref,
        /// Number of that product in the contract.
        product_no: u16 = charge.product_no.0,
        /// Service date.
        date: DateText = charge.date,
        /// Description on documents.
        name: LineText = &charge.name,
        /// Quantity.
        quantity: ExactNumber = charge.quantity,
        /// Price per unit.
        unit_price: ExactNumber = charge.unit_price,
        /// Unit name.
        unit: Option<LineText> = charge.unit.as_ref(),
        /// `quantity × unit_price`, rounded.
        amount: ExactNumber = view.amount,
        /// The part of `amount` that counts: a credit takes at most what its period bills without it.
        billed_amount: ExactNumber = view.billed_amount,
        /// Currency of the product.
        currency: CurrencyCode = charge.currency,
        /// Whether the document for the period's usage or for its fixed items bills the charge.
        bill_with: BillWithWord = charge.bill_with,
        /// Whether the product's discount applies.
        discountable: bool = charge.discountable,
        /// Whether the charge is for a good instead of a service.
        goods: bool = charge.goods,
        /// Note, not shown on documents.
        note: Option<ProseText> = charge.note.as_ref(),
        /// Reason for the charge.
        reason: Option<ProseText> = charge.reason.as_ref(),
        /// Latest document that bills the charge; null between a void and its replacement.
        related_document_ref: Option<AssignedRef> = documents.map(|documents| documents.document_ref),
        /// Numbers of all documents that bill the charge in its period, joined by `, `.
        related_document_numbers: Option<String> = documents.map(|documents| documents.numbers.to_string()),
        /// State of the related document.
        document_state: Option<DocumentStateWord> = documents.map(|documents| documents.state),
        /// Time when it was first stored.
        created_at: TimestampText = charge.recorded_at,
        /// Time of the creation or the last change of the charge.
        updated_at: TimestampText = charge.revised_at,
        /// Revision number, starting at 1.
        #[schema(minimum = 1)]
        revision: u32 = charge.revision,
        /// Changes, oldest first.
        history: Vec<ChargeRevisionJson> = &view.history,
    }
}

answer! {
    /// A change of a charge.
    ChargeRevisionJson of revision: ChargeRevision {
        /// Revision number, starting at 1.
        #[schema(minimum = 1)]
        revision: u32 = revision.revision,
        /// Time of the change.
        changed_at: TimestampText = revision.changed_at,
        /// Author of the change: `api_key:` or `admin:` and a reference.
        changed_by: String = revision.changed_by.to_string(),
        /// E-mail address of the administrator or name of the API key, if the caller may see it. Null in the response to a change.
        changed_by_name: Option<String> = revision.changed_by_name.clone(),
        /// Action.
        action: EventActionWord = revision.action,
        /// Editable fields before the change; null for the first revision.
        before: Option<RevisedChargeJson> = revision.before.as_ref(),
        /// Editable fields after the change.
        after: RevisedChargeJson = &revision.after,
    }
}

answer! {
    /// The editable fields of a charge at one revision.
    RevisedChargeJson of charge: Charge {
        /// Service date.
        date: DateText = charge.date,
        /// Description on documents.
        name: LineText = &charge.name,
        /// Quantity.
        quantity: ExactNumber = charge.quantity,
        /// Price per unit.
        unit_price: ExactNumber = charge.unit_price,
        /// Note, not shown on documents.
        note: Option<ProseText> = charge.note.as_ref(),
    }
}
