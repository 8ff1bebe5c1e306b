//! Credit grants in the histories: users read what the ledger has.

use std::collections::BTreeMap;

use billing_application::credit::{GrantQuery, GrantRequest, GrantView, create_credit_grant, list_credit_grants};
use billing_application::error::UseCaseResult;
use billing_application::{Cx, UseCase};
use billing_domain::document::totals::DocumentContent;
use billing_domain::page::PageRequest;
use billing_domain::ports::DrawFilter;
use billing_domain::refs::CreditGrantRef;
use uuid::Uuid;

use super::follow::GrantDeed;
use super::world::{Checked, World};
use super::{UseCases, convert, same};
use crate::support::read;

impl UseCases {
    pub(super) fn grant(&self, cx: &mut Cx<'_>, GrantDeed { new, sale }: &GrantDeed, world: &World) -> UseCaseResult<()> {
        let request = GrantRequest {
            customer_ref: convert::customer(&world.model.catalog).customer_ref,
            entity_ref: Some(new.account.entity_ref.clone()),
            currency: new.account.currency,
            amount: new.amount.clone(),
            name: new.name.clone(),
            from: new.from,
            to: new.to,
            contract_ref: None,
            source: sale.map(|place| self.document(place)),
        };
        create_credit_grant(cx, &request).map(drop)
    }

    /// Remembers a grant that was created.
    pub(super) fn take_up_grants(&mut self) -> UseCaseResult<()> {
        let new = self.listed()?.into_keys().find(|new| !self.grants.contains(new));
        self.grants.extend(new);
        Ok(())
    }

    pub(super) fn stored_grant(&self, grant: usize) -> String {
        format!("{:?}", self.bench.read(|tx| tx.grant(self.bench.principal.organization(), self.grants[grant])))
    }

    fn listed(&self) -> UseCaseResult<BTreeMap<CreditGrantRef, GrantView>> {
        let (services, principal) = (&self.bench.services, &self.bench.principal);
        let listed = read(services, principal, UseCase::ListGrants, |cx| {
            list_credit_grants(cx, &GrantQuery::default(), PageRequest::LARGEST)
        })?;
        Ok(listed.items.into_iter().map(|view| (view.grant.grant_ref, view)).collect())
    }

    /// Checks that users read the amounts of grants that the ledger has, and that draws add up to what is drawn.
    pub(super) fn compare_grants(&self, world: &World) -> Checked {
        let listed = self.listed().map_err(|error| format!("{error:?}"))?;
        for (grant_ref, (decided, balance)) in self.grants.iter().zip(world.grant_balances()?) {
            let stored = &listed[grant_ref];
            same("the amounts of a grant", &balance, &stored.balance)?;
            same("what is drawn", &decided.drawn, &stored.grant.drawn)?;
            let filter = DrawFilter { grant_ref: Some(*grant_ref), ..DrawFilter::default() };
            let draws = self.bench.read(|tx| tx.draws(self.bench.principal.organization(), &filter, PageRequest::LARGEST)).items;
            let sum = draws.iter().map(|draw| draw.draw.amount.minor()).sum::<i64>();
            same("the sum of draws", &decided.drawn.minor(), &sum)?;
        }
        Ok(())
    }
}

/// Returns content whose calculations name no documents, and whose grants have the references of their positions. The domain's
/// histories assign no numbers.
pub(super) fn unnamed(content: &DocumentContent, grants: &[CreditGrantRef]) -> DocumentContent {
    let mut content = content.clone();
    for prepaid in &mut content.prepaid {
        let position = grants.iter().position(|grant_ref| *grant_ref == prepaid.grant_ref).expect("a grant of the history");
        (prepaid.grant_ref, prepaid.sold_by) = (CreditGrantRef::from_uuid(Uuid::from_u128(position as u128)), None);
    }
    for line in content.products.iter_mut().flat_map(|product| &mut product.lines) {
        if let Some(previously) = line.calculation.as_mut().and_then(|calculation| calculation.previously.as_mut()) {
            previously.documents.clear();
        }
    }
    content
}
