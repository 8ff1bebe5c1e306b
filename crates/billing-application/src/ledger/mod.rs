//! What several use cases do with documents inside a transaction: open one, say what it says, check it.
//! It isn't a use case: it opens no transaction.

mod content;
mod issue;
mod redraw;
mod settle;

pub(crate) use issue::{Issued, IssuedShare, issue_draft, issue_share};
pub(crate) use redraw::{Stranded, changed_products, period_from, redraw, rehome_void};
pub(crate) use settle::{Change, settle};

use billing_domain::calendar::{Date, Period, TimeZone, Timestamp, day_after};
use billing_domain::contract::terms::{ProductTerms, ResolvedTerms};
use billing_domain::contract::{Contract, ContractProduct, ProductPeriod};
use billing_domain::document::linking::{Share, Slot, companions, share, shares_of_period};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::RatedShare;
use billing_domain::document::{Document, DocumentHead, DocumentKind, DocumentPart, Parties, Purpose, join_notes};
use billing_domain::money::Currency;
use billing_domain::party::{Customer, Entity, NetTerms, PaymentDetails};
use billing_domain::ports::{StoreError, Tx};
use billing_domain::refs::{DocumentRef, EntityRef, OrganizationId, ProductNo};
use billing_domain::text::Prose;

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// A contract with the parties that bill it, read once per transaction.
pub(crate) struct Account {
    pub(crate) organization: OrganizationId,
    pub(crate) contract: Contract,
    pub(crate) customer: Customer,
    pub(crate) entities: Vec<Entity>,
}

/// A document before it has a reference and numbers.
pub(crate) struct Unnumbered<'a> {
    pub(crate) kind: DocumentKind,
    pub(crate) purpose: Purpose,
    pub(crate) entity_ref: &'a EntityRef,
    pub(crate) currency: Currency,
    pub(crate) period: Period,
    pub(crate) is_partial_period: bool,
    pub(crate) parts: Vec<DocumentPart>,
    pub(crate) net_terms: NetTerms,
    pub(crate) payment: PaymentDetails,
    pub(crate) parent: Option<DocumentRef>,
    pub(crate) replaces: Option<DocumentRef>,
}

/// A regular document that could be: its products in contract order, never none.
pub(crate) struct Planned<'c> {
    pub(crate) shares: Vec<(Share<'c>, ResolvedTerms)>,
}

impl<'c> Planned<'c> {
    /// The one currency of its amounts.
    pub(crate) fn currency(&self) -> Currency {
        self.shares[0].1.currency
    }

    /// Its shares with the rates it would be opened with.
    pub(crate) fn rated(&self) -> Vec<RatedShare<'c>> {
        let rated = |(share, terms): &(Share<'c>, ResolvedTerms)| RatedShare {
            share: *share,
            discount_rate: terms.discount_rate,
            tax_rate: terms.tax_rate,
        };
        self.shares.iter().map(rated).collect()
    }
}

/// The entities that bill contracts.
pub(crate) fn entities_of<'c>(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    contracts: impl IntoIterator<Item = &'c Contract>,
) -> UseCaseResult<Vec<Entity>> {
    let mut refs: Vec<EntityRef> = contracts.into_iter().flat_map(Contract::entity_refs).cloned().collect();
    refs.sort();
    refs.dedup();
    let entities = tx.entities_by_refs(organization, &refs)?;
    if entities.len() != refs.len() {
        return Err(StoreError::Corrupt("a contract has an entity that is not there".to_owned()).into());
    }
    Ok(entities)
}

impl Account {
    /// Reads a contract's customer and entities.
    pub(crate) fn read(tx: &mut dyn Tx, organization: OrganizationId, contract: Contract) -> UseCaseResult<Self> {
        let customer = tx.customers_by_ids(organization, &[contract.customer_id])?.into_iter().next();
        let customer = customer.ok_or_else(|| corrupt("a contract", &contract.contract_ref, "has no customer"))?;
        Self::of(tx, organization, contract, customer)
    }

    /// Reads the entities of a contract whose customer is at hand.
    pub(crate) fn of(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        contract: Contract,
        customer: Customer,
    ) -> UseCaseResult<Self> {
        let entities = entities_of(tx, organization, [&contract])?;
        Ok(Self { organization, contract, customer, entities })
    }

    /// An entity of the contract.
    pub(crate) fn entity(&self, entity_ref: &EntityRef) -> UseCaseResult<&Entity> {
        let found = self.entities.iter().find(|entity| entity.entity_ref == *entity_ref);
        found.ok_or_else(|| corrupt("an entity", entity_ref, "is not there"))
    }

    /// The service date of an instant for terms.
    pub(crate) fn today(&self, terms: &ProductTerms, now: Timestamp) -> UseCaseResult<Date> {
        Ok(self.entity(&terms.entity_ref)?.profile.time_zone.service_date(now))
    }

    fn resolve(&self, terms: &ProductTerms) -> Option<ResolvedTerms> {
        self.entity(&terms.entity_ref).ok().map(|entity| terms.resolve(&self.customer, entity))
    }

    /// When a share's document is issued.
    pub(crate) fn due_at(&self, share: &Share<'_>) -> UseCaseResult<Timestamp> {
        Ok(share.due_at(self.entity(&share.own.terms.entity_ref)?))
    }

    /// The document in the slot of a product's period that isn't void.
    pub(crate) fn stored(&self, tx: &mut dyn Tx, share: &Share<'_>) -> UseCaseResult<Option<Document>> {
        let contract = &self.contract;
        let start = share.own.period.span().start();
        let (customer_id, contract_ref, product_no) = (contract.customer_id, contract.contract_ref, share.own.product_no);
        Ok(tx.regular_document(self.organization, customer_id, contract_ref, product_no, start, share.slot, None)?)
    }

    /// The document a share would be opened on, with the products that share it. Products that stand on a
    /// stored document already stay there.
    pub(crate) fn plan(&self, tx: &mut dyn Tx, share_of_one: &Share<'_>) -> UseCaseResult<Planned<'_>> {
        let mut shares = Vec::new();
        for (share, terms) in companions(&self.contract, share_of_one, |terms| self.resolve(terms)) {
            let itself = share.own.product_no == share_of_one.own.product_no;
            if itself || self.stored(tx, &share)?.is_none() {
                shares.push((share, terms));
            }
        }
        if shares.is_empty() {
            return Err(UseCaseError::InvariantViolation("a document without a product"));
        }
        Ok(Planned { shares })
    }

    /// Opens a planned document as a draft, with its number. The contract must be held exclusively. A void
    /// document of the same place is replaced, and its events come along.
    pub(crate) fn open(&self, services: &Services, tx: &mut dyn Tx, planned: &Planned<'_>) -> UseCaseResult<DocumentHead> {
        let contract = &self.contract;
        let (first, terms) = &planned.shares[0];
        let parent = match first.slot {
            Slot::Period | Slot::Closing => None,
            Slot::UsageDebit => Some(self.invoice_of_period(services, tx, first)?.document_ref),
        };
        let start = first.own.period.span().start();
        let (customer_id, contract_ref) = (contract.customer_id, contract.contract_ref);
        let replaces = tx.last_void(self.organization, customer_id, contract_ref, first.own.product_no, start, first.slot)?;
        let part = |(share, terms): &(Share<'_>, ResolvedTerms)| DocumentPart {
            product_no: share.own.product_no,
            tax_rate: terms.tax_rate,
            discount_rate: terms.discount_rate,
        };
        let head = self.number(
            services,
            tx,
            Unnumbered {
                kind: first.slot.kind(),
                purpose: Purpose::Regular(first.slot),
                entity_ref: &terms.entity_ref,
                currency: terms.currency,
                period: first.own.period.span(),
                is_partial_period: first.own.period.is_partial(),
                parts: planned.shares.iter().map(part).collect(),
                net_terms: terms.net_terms,
                payment: terms.payment.clone(),
                parent,
                replaces,
            },
        )?;
        if let Some(void) = replaces {
            tx.move_events(self.organization, customer_id, void, head.document_ref)?;
        }
        // A draft of a period that is over may be opened long after the billing run passed it.
        tx.bring_due_forward(self.organization, customer_id, contract_ref, self.due_at(first)?)?;
        Ok(head)
    }

    /// The invoice of a usage debit's period: the debit's parent, opened where it isn't there.
    fn invoice_of_period(&self, services: &Services, tx: &mut dyn Tx, debit: &Share<'_>) -> UseCaseResult<DocumentHead> {
        let invoice = self.share_in(debit.own, Slot::Period)?;
        match self.stored(tx, &invoice)? {
            Some(document) => Ok(document.head),
            None => {
                let planned = self.plan(tx, &invoice)?;
                self.open(services, tx, &planned)
            }
        }
    }

    /// Gives a document its reference and numbers, and stores it as a draft.
    pub(crate) fn number(&self, services: &Services, tx: &mut dyn Tx, new: Unnumbered<'_>) -> UseCaseResult<DocumentHead> {
        let contract = &self.contract;
        let entity = self.entity(new.entity_ref)?;
        let number_in_contract = tx.next_number_in_contract(self.organization, contract.customer_id, contract.contract_ref)?;
        let sequence = tx.next_document_number(self.organization, new.entity_ref, new.kind)?;
        let head = DocumentHead {
            document_ref: DocumentRef::from_uuid(services.ids.new_id()),
            number: DocumentNumber { prefix: entity.profile.number_prefix.clone(), kind: new.kind, sequence },
            kind: new.kind,
            purpose: new.purpose,
            contract_ref: contract.contract_ref,
            number_in_contract,
            customer_id: contract.customer_id,
            entity_ref: new.entity_ref.clone(),
            currency: new.currency,
            period: new.period,
            is_partial_period: new.is_partial_period,
            parts: new.parts,
            net_terms: new.net_terms,
            payment: new.payment,
            parent: new.parent,
            replaces: new.replaces,
            created_at: services.now(),
        };
        tx.open_document(self.organization, &head)?;
        Ok(head)
    }

    /// The notes of a document's products.
    pub(crate) fn note(shares: &[Share<'_>]) -> Option<Prose> {
        join_notes(shares.iter().filter_map(|share| share.own.terms.note.as_ref()))
    }

    /// The notes that a document shows: a regular one's products'.
    pub(crate) fn note_of(&self, head: &DocumentHead) -> UseCaseResult<Option<Prose>> {
        match head.purpose {
            Purpose::Regular(_) => {
                let shares: Vec<Share<'_>> = self.rated_shares(head)?.iter().map(|rated| rated.share).collect();
                Ok(Self::note(&shares))
            }
            Purpose::Usage | Purpose::Adjustment => Ok(None),
        }
    }

    /// Who bills whom on a document of an entity.
    pub(crate) fn parties(&self, entity_ref: &EntityRef) -> UseCaseResult<Parties> {
        Ok(Parties::of(&self.customer, self.entity(entity_ref)?))
    }

    /// When the contract next has something to issue after an instant: a regular document, or an open adjustment.
    pub(crate) fn next_due_after(&self, tx: &mut dyn Tx, now: Timestamp) -> UseCaseResult<Option<Timestamp>> {
        let mut dues: Vec<Timestamp> = Vec::new();
        for product in &self.contract.products {
            let mut next: Option<Timestamp> = None;
            for period in product.periods() {
                if next.is_some_and(|next| !may_be_due(&period, next)) {
                    break;
                }
                for share in shares_of_period(product, period) {
                    let due = Some(self.due_at(&share)?).filter(|due| *due > now);
                    next = next.into_iter().chain(due).min();
                }
            }
            dues.extend(next);
        }
        for draft in tx.drafts_of_contract(self.organization, self.contract.customer_id, self.contract.contract_ref)? {
            dues.extend(self.draft_due_at(&draft.head)?);
        }
        Ok(dues.into_iter().min())
    }

    /// When a draft is issued; `None` of one that bills nothing any more.
    pub(crate) fn draft_due_at(&self, head: &DocumentHead) -> UseCaseResult<Option<Timestamp>> {
        match head.purpose {
            Purpose::Usage | Purpose::Adjustment => Ok(Some(self.adjustment_due_at(head)?)),
            Purpose::Regular(_) => {
                let shares = self.rated_shares(head)?;
                let dues = shares.iter().map(|rated| self.due_at(&rated.share)).collect::<UseCaseResult<Vec<_>>>()?;
                Ok(dues.into_iter().min())
            }
        }
    }

    /// When an open adjustment is issued: on the first service date after the one it was opened on.
    pub(crate) fn adjustment_due_at(&self, head: &DocumentHead) -> UseCaseResult<Timestamp> {
        let zone = self.entity(&head.entity_ref)?.profile.time_zone;
        Ok(zone.start_of_day(day_after(zone.service_date(head.created_at))))
    }

    /// The share of a slot of a period, by the product it belongs to.
    pub(crate) fn share_in<'c>(&'c self, own: ProductPeriod<'c>, slot: Slot) -> UseCaseResult<Share<'c>> {
        Ok(share(self.product(own.product_no)?, own, slot))
    }

    /// A product that must be there.
    pub(crate) fn product(&self, no: ProductNo) -> UseCaseResult<&ContractProduct> {
        self.contract.product(no).ok_or_else(|| corrupt("a contract", &self.contract.contract_ref, "has no such product"))
    }
}

/// Whether a document of a period can be due by an instant: none is before its period's first day, which comes up to
/// a day earlier in other zones than in UTC. Documents of later periods may be due before those of earlier ones, where
/// entity, grace or issue day changed between them.
pub(crate) fn may_be_due(period: &ProductPeriod<'_>, by: Timestamp) -> bool {
    period.period.span().start() <= day_after(TimeZone::UTC.service_date(by))
}

/// A state the store's own rules exclude.
pub(crate) fn corrupt(what: &str, which: &dyn std::fmt::Display, how: &str) -> UseCaseError {
    StoreError::Corrupt(format!("{what} {which} {how}")).into()
}
