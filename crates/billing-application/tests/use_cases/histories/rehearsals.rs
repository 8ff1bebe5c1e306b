//! Dry runs of the histories' operations: what they say happens.

use std::collections::BTreeMap;

use billing_application::UseCase;
use billing_application::documents::DocumentView;
use billing_application::dry_run::Effects;
use billing_application::error::UseCaseResult;
use billing_domain::document::totals::BilledProduct;
use billing_domain::document::{DocumentKind, DocumentState, Settlement};
use billing_domain::money::{Money, MoneySum};

use super::follow::{Deed, MoneyDeed};
use super::same;
use super::world::Checked;

/// The compared figures of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DocumentFigures {
    state: DocumentState,
    total: Money,
    due: Option<Money>,
    settlement: Settlement,
    lines: Vec<BilledProduct>,
}

impl DocumentFigures {
    pub(super) fn of(view: &DocumentView) -> (String, Self) {
        let number = view.opened.as_ref().expect("an opened document").number.to_string();
        // A calculation can name other documents although the line stays as it is.
        let lines = view.content.without_calculations().products;
        let reported =
            Self { state: view.state, total: view.content.total, due: view.owed.amount_due, settlement: view.settlement, lines };
        (number, reported)
    }
}

/// Checks that the documents changed as the dry run predicted, and that nothing else changed.
pub(super) fn check_rehearsal(
    rehearsed: &UseCaseResult<Effects>,
    done: bool,
    before: &BTreeMap<String, DocumentFigures>,
    after: &BTreeMap<String, DocumentFigures>,
) -> Checked {
    same("whether it is refused", &rehearsed.is_ok(), &done)?;
    let Ok(effects) = rehearsed else { return Ok(()) };
    let Effects { opened, issued, recomputed, voided, settled, before: were, changes, .. } = effects;
    let reported = |views: &mut dyn Iterator<Item = &DocumentView>| -> BTreeMap<String, DocumentFigures> {
        views.map(DocumentFigures::of).collect()
    };
    let changed = reported(&mut opened.iter().chain(issued).chain(recomputed).chain(voided).chain(settled));
    let really = after.iter().filter(|(number, reported)| before.get(*number) != Some(reported));
    // Omits documents that were opened and voided within the same operation.
    let really = really.filter(|(number, reported)| before.contains_key(*number) || reported.state != DocumentState::Void);
    let really: BTreeMap<String, DocumentFigures> = really.map(|(number, reported)| (number.clone(), reported.clone())).collect();
    // The legal particulars may change although the amounts stay the same.
    let same_amounts = |number: &String, reported: &DocumentFigures| before.get(number) == Some(reported);
    let changed: BTreeMap<String, DocumentFigures> =
        changed.into_iter().filter(|(number, reported)| !same_amounts(number, reported)).collect();
    same("the documents concerned", &changed, &really)?;
    // Planned documents are not stored.
    let were = reported(&mut were.iter().filter(|view| view.opened.is_some()));
    let is_so = were.iter().all(|(number, reported)| before.get(number) == Some(reported));
    if !is_so {
        return Err(format!("what was before: {were:#?} is shown, {before:#?} was stored"));
    }
    // The billed amount of each stored document is compared, and no other.
    let compared = changes.iter().filter_map(|change| Some((change.document.as_ref()?.1.to_string(), change.billed.after)));
    let compared: BTreeMap<String, Option<MoneySum>> = compared.collect();
    let stored = opened.iter().chain(issued).chain(recomputed).chain(voided).chain(settled).map(|view| {
        let total = MoneySum::from(view.content.total).minor();
        let billed = match (view.state, view.kind) {
            (DocumentState::Void, _) => 0,
            (_, DocumentKind::Credit) => -total,
            (_, DocumentKind::Invoice | DocumentKind::Debit) => total,
        };
        (DocumentFigures::of(view).0, MoneySum::from_minor(billed, view.currency).ok())
    });
    same("the compared documents", &compared, &stored.collect())
}

/// Returns the use case that an operation requests.
pub(super) fn use_case_of(deed: &Deed) -> UseCase {
    match deed {
        Deed::Pricing(_) => UseCase::EditPricing,
        Deed::Entity(..) => UseCase::EditEntity,
        Deed::Customer => UseCase::EditCustomer,
        Deed::Edit(_) => UseCase::EditContract,
        Deed::Quantity(_) => UseCase::ChangeQuantity,
        Deed::Cancel(_) => UseCase::CancelContract,
        Deed::Resume => UseCase::ResumeContract,
        Deed::Event { .. } => UseCase::RecordUsage,
        Deed::Update { .. } => UseCase::UpdateEvent,
        Deed::Delete(_) => UseCase::DeleteEvent,
        Deed::Charge(..) => UseCase::RecordCharge,
        Deed::EditCharge(..) => UseCase::EditCharge,
        Deed::DeleteCharge(_) => UseCase::DeleteCharge,
        Deed::Issue(_) => UseCase::IssueDocument,
        Deed::Void(_) => UseCase::VoidDocument,
        Deed::Money(MoneyDeed::Pay { .. }) => UseCase::RecordPayment,
        Deed::Money(MoneyDeed::Deposit { .. }) => UseCase::RecordDeposit,
        Deed::Money(MoneyDeed::Reverse { .. }) => UseCase::ReversePayment,
        Deed::Money(MoneyDeed::Refund { .. }) => UseCase::Refund,
        Deed::Money(MoneyDeed::Apply { .. }) => UseCase::Apply,
        Deed::Money(MoneyDeed::Unapply(_)) => UseCase::Unapply,
        Deed::Money(MoneyDeed::WriteOff { .. }) => UseCase::WriteOff,
        Deed::Grant(_) => UseCase::CreateGrant,
        Deed::EditGrant(..) => UseCase::EditGrant,
        Deed::Run => UseCase::RunBilling,
    }
}
