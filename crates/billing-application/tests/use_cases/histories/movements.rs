//! The movements of money that histories draw, as use cases.

use billing_application::Cx;
use billing_application::documents::{
    DepositAccount, SourceRef, apply, record_deposit, record_payment, refund, reverse_payment, unapply, write_off,
};
use billing_application::error::UseCaseResult;
use billing_domain::ports::ApplicationsOf;
use billing_domain::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef};

use super::UseCases;
use super::follow::{MoneyDeed, SourceDeed};

impl UseCases {
    fn source(&self, source: SourceDeed) -> SourceRef {
        let id = match source {
            SourceDeed::Document(place) => self.document(place).as_uuid(),
            SourceDeed::Payment(index) => self.payments[index].as_uuid(),
        };
        SourceRef { document_ref: DocumentRef::from_uuid(id), payment_ref: PaymentRef::from_uuid(id) }
    }

    /// Returns all applications in force, in the order of their references.
    fn applications(&self) -> Vec<ApplicationRef> {
        let organization = self.bench.principal.organization();
        let mut all = Vec::new();
        for (key, _) in self.bench.read(|tx| tx.accounts(organization, None)) {
            all.extend(self.bench.read(|tx| tx.account_applications(organization, &key, ApplicationsOf::All)));
        }
        all.sort_by_key(|application| application.application_ref);
        all.into_iter().map(|application| application.application_ref).collect()
    }

    pub(super) fn move_money(&self, cx: &mut Cx<'_>, customer_ref: &CustomerRef, deed: &MoneyDeed) -> UseCaseResult<()> {
        match deed {
            MoneyDeed::Pay { place, facts, takes_more } => {
                record_payment(cx, self.document(*place), facts, *takes_more).map(drop)
            }
            MoneyDeed::Deposit { entity_ref, currency, facts } => {
                let account = DepositAccount { entity_ref: Some(entity_ref.clone()), currency: *currency };
                record_deposit(cx, customer_ref, &account, facts).map(drop)
            }
            MoneyDeed::Reverse { payment, date } => reverse_payment(cx, self.payments[*payment], *date, None).map(drop),
            MoneyDeed::Refund { source, facts } => refund(cx, self.source(*source), facts).map(drop),
            MoneyDeed::Apply { source, place, amount } => {
                apply(cx, self.source(*source), self.document(*place), amount).map(drop)
            }
            MoneyDeed::Unapply(index) => unapply(cx, self.applications()[*index]).map(drop),
            MoneyDeed::WriteOff { place, undo } => write_off(cx, self.document(*place), None, *undo).map(drop),
        }
    }
}
