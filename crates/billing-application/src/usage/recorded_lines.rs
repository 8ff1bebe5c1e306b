//! Finds the lines of a file that are already recorded. This needs only reads, so such lines wait for no writer.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::event_input::NamedCustomer;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ports::Tx;
use billing_domain::refs::{CustomerId, CustomerRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::usage::FactsDigest;

use crate::error::UseCaseResult;

/// A line with a key and a customer.
pub(super) struct KeyedLine {
    /// The position of the line.
    pub(super) index: usize,
    pub(super) customer: NamedCustomer,
    pub(super) key: IdempotencyKey,
    pub(super) facts: FactsDigest,
}

/// Finds recorded lines. Each customer is looked up once for the whole file.
#[derive(Debug, Default)]
pub(super) struct RecordedLines {
    by_ref: BTreeMap<CustomerRef, CustomerId>,
    by_name: BTreeMap<OneLine, CustomerId>,
}

impl RecordedLines {
    /// Returns the positions of the lines that are recorded with the same content. The keys of all lines are read together.
    /// A line that is not among them may be new, changed or invalid.
    pub(super) fn find(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        lines: &[KeyedLine],
    ) -> UseCaseResult<BTreeSet<usize>> {
        self.look_up_customers(tx, organization, lines)?;
        let keyed: Vec<(&KeyedLine, (CustomerId, IdempotencyKey))> =
            lines.iter().filter_map(|line| Some((line, (self.id_of(&line.customer)?, line.key.clone())))).collect();
        let keys: BTreeSet<&(CustomerId, IdempotencyKey)> = keyed.iter().map(|(_, key)| key).collect();
        if keys.is_empty() {
            return Ok(BTreeSet::new());
        }
        let recorded = tx.delivered_facts(organization, &Vec::from_iter(keys.into_iter().cloned()))?;
        let same = keyed.iter().filter(|(line, key)| recorded.get(key).is_some_and(|facts| *facts == line.facts));
        Ok(same.map(|(line, _)| line.index).collect())
    }

    /// Looks up the customers that no earlier line named.
    fn look_up_customers(&mut self, tx: &mut dyn Tx, organization: OrganizationId, lines: &[KeyedLine]) -> UseCaseResult<()> {
        let (mut refs, mut names) = (BTreeSet::new(), BTreeSet::new());
        for line in lines.iter().filter(|line| self.id_of(&line.customer).is_none()) {
            match &line.customer {
                NamedCustomer::Ref(customer_ref) => refs.insert(customer_ref.clone()),
                NamedCustomer::Name(name) => names.insert(name.clone()),
            };
        }
        if !refs.is_empty() {
            let found = tx.customers_by_refs(organization, &Vec::from_iter(refs))?;
            self.by_ref.extend(found.into_iter().map(|customer| (customer.customer_ref, customer.id)));
        }
        for name in names {
            // A name of several customers identifies none of them.
            if let [only] = tx.customers_by_name(organization, &name)?.as_slice() {
                self.by_name.insert(name, only.id);
            }
        }
        Ok(())
    }

    fn id_of(&self, customer: &NamedCustomer) -> Option<CustomerId> {
        match customer {
            NamedCustomer::Ref(customer_ref) => self.by_ref.get(customer_ref).copied(),
            NamedCustomer::Name(name) => self.by_name.get(name).copied(),
        }
    }
}
