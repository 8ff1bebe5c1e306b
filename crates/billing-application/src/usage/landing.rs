//! Where the events of a slice land: contracts found, and held so that nothing moves until the commit.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period};
use billing_domain::contract::Contract;
use billing_domain::document::totals::usage_key;
use billing_domain::matching::match_event;
use billing_domain::party::Entity;
use billing_domain::ports::{Lock, StoreError, Tx};
use billing_domain::refs::{ContractRef, CustomerId, EventRef, ProductNo, UsageProductRef};
use billing_domain::usage::UsageKey;

use super::arrivals::Known;
use super::place::{MAX_HOLD_ATTEMPTS, goes_on_a_draft};
use super::slice::{Progress, Slice};
use crate::error::{UseCaseError, UseCaseResult};
use crate::ledger::{Account, entities_of};

/// An event whose place is known.
pub(super) struct Landed<'n> {
    pub(super) known: Known<'n>,
    pub(super) event_ref: EventRef,
    pub(super) key: UsageKey,
    pub(super) service_period: Period,
}

/// A service period of a contract product.
type PeriodKey = (ContractRef, ProductNo, Date);
/// Contracts by reference.
pub(super) type Accounts = BTreeMap<ContractRef, Account>;

impl Slice<'_> {
    /// Finds the contracts the events land on and holds them: shared where all that lands goes on drafts that are
    /// there, exclusively where a document has to be opened or corrected, so that nothing moves until the commit.
    pub(super) fn hold<'n>(
        &self,
        tx: &mut dyn Tx,
        known: &[Known<'n>],
        progress: &mut Progress<'_>,
    ) -> UseCaseResult<(Accounts, Vec<Landed<'n>>)> {
        let mut exclusive: BTreeSet<ContractRef> = BTreeSet::new();
        for _ in 0..MAX_HOLD_ATTEMPTS {
            let (accounts, landed, refused) = self.land(tx, known)?;
            exclusive.extend(self.not_on_drafts(tx, &accounts, &landed)?);
            let mut unchanged = true;
            for (contract_ref, account) in &accounts {
                let lock = if exclusive.contains(contract_ref) { Lock::Exclusive } else { Lock::Shared };
                let contract = &account.contract;
                let version = tx.lock_contract(account.organization, contract.customer_id, *contract_ref, lock)?;
                unchanged &= version == Some(contract.version);
            }
            // Look again now that nobody can change it: a contract may have been edited, a document issued.
            let shared = |landed: &&Landed<'_>| !exclusive.contains(&landed.key.contract_ref);
            if unchanged && self.not_on_drafts(tx, &accounts, landed.iter().filter(shared))?.is_empty() {
                for (index, refusal) in refused {
                    progress.refuse(index, refusal)?;
                }
                return Ok((accounts, landed));
            }
        }
        Err(StoreError::Contended.into())
    }

    /// Where the events land, as things are.
    #[allow(clippy::type_complexity, reason = "read in one place")]
    fn land<'n>(
        &self,
        tx: &mut dyn Tx,
        known: &[Known<'n>],
    ) -> UseCaseResult<(Accounts, Vec<Landed<'n>>, Vec<(usize, UseCaseError)>)> {
        let organization = self.principal.organization;
        let mut candidates: BTreeMap<(CustomerId, &UsageProductRef), Vec<Contract>> = BTreeMap::new();
        for Known { customer, product, .. } in known {
            let pair = (customer.id, &product.usage_product_ref);
            if let std::collections::btree_map::Entry::Vacant(place) = candidates.entry(pair) {
                place.insert(tx.contracts_metering(organization, customer.id, pair.1)?);
            }
        }
        let entities = entities_of(tx, organization, candidates.values().flatten())?;
        let (mut accounts, mut landed, mut refused) = (Accounts::new(), Vec::with_capacity(known.len()), Vec::new());
        for known in known {
            let Known { customer, product, .. } = *known;
            let contracts = candidates.get(&(customer.id, &product.usage_product_ref)).map_or(&[][..], Vec::as_slice);
            match match_event(self.facts(known), contracts, &entities) {
                Ok(found) => {
                    let contract_ref = found.contract.contract_ref;
                    let key = usage_key(contract_ref, &found.period, &product.usage_product_ref);
                    // In the order of arrival: of two at one instant, the later has the greater reference.
                    let event_ref = EventRef::from_uuid(self.services.ids.new_id());
                    let service_period = found.period.period.span();
                    landed.push(Landed { known: *known, event_ref, key, service_period });
                    accounts.entry(contract_ref).or_insert_with(|| Account {
                        organization,
                        contract: found.contract.clone(),
                        customer: customer.clone(),
                        entities: entities.iter().filter(|entity| bills(found.contract, entity)).cloned().collect(),
                    });
                }
                Err(refusal) => refused.push((known.index, refusal.into())),
            }
        }
        Ok((accounts, landed, refused))
    }

    /// The contracts of events that do more than add to the usage of a draft that is there.
    fn not_on_drafts<'l, 'n: 'l>(
        &self,
        tx: &mut dyn Tx,
        accounts: &Accounts,
        landed: impl IntoIterator<Item = &'l Landed<'n>>,
    ) -> UseCaseResult<BTreeSet<ContractRef>> {
        let mut seen: BTreeSet<PeriodKey> = BTreeSet::new();
        let mut others = BTreeSet::new();
        for landed in landed {
            let key = &landed.key;
            if !seen.insert((key.contract_ref, key.product_no, key.period_start)) || others.contains(&key.contract_ref) {
                continue;
            }
            let account = &accounts[&key.contract_ref];
            if !goes_on_a_draft(tx, account, self.facts(&landed.known))? {
                others.insert(key.contract_ref);
            }
        }
        Ok(others)
    }
}

fn bills(contract: &Contract, entity: &Entity) -> bool {
    contract.entity_refs().any(|entity_ref| *entity_ref == entity.entity_ref)
}
