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

use super::declare::{NotClearable, answer, body, edit, fields};
use super::enums::{BillWithWord, DocumentStateWord, EventActionWord};
use super::schemas::names_in;
use super::wire::{AssignedRef, CurrencyCode, DateText, ExactNumber, LineText, NamedRef, ProseText, TimestampText};

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
}

fields! {
    ChargeEdit {
        /// The day it counts on; it may move the charge to another period.
        date: NotClearable<Date>,
        /// What it is for.
        name: NotClearable<OneLine>,
        /// How many.
        quantity: NotClearable<Quantity>,
        /// The price of one.
        unit_price: NotClearable<SignedPrice>,
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
        /// The contract it is charged in.
        contract_ref: AssignedRef = charge.contract_ref,
        /// Who pays.
        customer_ref: NamedRef = &view.customer_ref,
        /// The product whose documents bill it.
        product_pricing_ref: NamedRef = &view.product_pricing_ref,
        /// The day it counts on.
        date: DateText = charge.date,
        /// What it is for.
        name: LineText = &charge.name,
        /// How many.
        quantity: ExactNumber = charge.quantity,
        /// The price of one.
        unit_price: ExactNumber = charge.unit_price,
        /// What one is called.
        unit: Option<LineText> = charge.unit.as_ref(),
        /// `quantity × unit_price`, rounded.
        amount: ExactNumber = view.amount,
        /// The product's.
        currency: CurrencyCode = charge.currency,
        /// Whether the document of the period's usage bills it, or that of its fixed items.
        bill_with: BillWithWord = charge.bill_with,
        /// Whether the product's discount applies to it.
        discountable: bool = charge.discountable,
        /// For whoever reads it.
        note: Option<ProseText> = charge.note.as_ref(),
        /// Why it was made.
        reason: Option<ProseText> = charge.reason.as_ref(),
        /// The latest document that carries it; null while it waits for one that replaces a void one.
        related_document_ref: Option<AssignedRef> = documents.map(|documents| documents.document_ref),
        /// Numbers of all documents that carry it in its period, joined by `, `.
        related_document_numbers: Option<String> = documents.map(|documents| documents.numbers.to_string()),
        /// State of the related document.
        document_state: Option<DocumentStateWord> = documents.map(|documents| documents.state),
        /// When it was first stored.
        created_at: TimestampText = charge.recorded_at,
        /// Counts its changes from 1.
        #[schema(minimum = 1)]
        revision: u32 = charge.revision,
        /// Its changes, oldest first.
        history: Vec<ChargeRevisionJson> = &view.history,
    }
}

answer! {
    /// One change of a charge.
    ChargeRevisionJson of revision: ChargeRevision {
        /// Counts the charge's changes from 1.
        #[schema(minimum = 1)]
        revision: u32 = revision.revision,
        /// When.
        changed_at: TimestampText = revision.changed_at,
        /// Who: `api_key:` or `admin:` and a reference.
        changed_by: String = revision.changed_by.to_string(),
        /// What.
        action: EventActionWord = revision.action,
        /// What of it can be edited, as it was before; null of the first.
        before: Option<RevisedChargeJson> = revision.before.as_ref(),
        /// The same after the change.
        after: RevisedChargeJson = &revision.after,
    }
}

answer! {
    /// What of a charge can be edited, as one of its changes left it.
    RevisedChargeJson of charge: Charge {
        /// The day it counts on.
        date: DateText = charge.date,
        /// What it is for.
        name: LineText = &charge.name,
        /// How many.
        quantity: ExactNumber = charge.quantity,
        /// The price of one.
        unit_price: ExactNumber = charge.unit_price,
        /// For whoever reads it.
        note: Option<ProseText> = charge.note.as_ref(),
    }
}
