//! What several use cases do with documents inside a transaction: open one, say what it says, check it.
//! It isn't a use case: it opens no transaction.

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::terms::{ProductTerms, ResolvedTerms};
use billing_domain::contract::{Contract, ProductPeriod};
use billing_domain::document::linking::{Share, Slot, companions, share, shares_of_document, shares_of_period};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::{DocumentContent, RatedShare, UsageFacts, bill, usage_keys};
use billing_domain::document::{Document, DocumentHead, DocumentPart, Parties, Purpose, join_notes};
use billing_domain::money::Currency;
use billing_domain::party::{Customer, Entity, NetTerms};
use billing_domain::ports::{StoreError, Tx};
use billing_domain::refs::{DocumentRef, EntityRef, OrganizationId, ProductNo};
use billing_domain::text::Prose;
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// A contract with the parties that bill it, read once per transaction.
pub(crate) struct Account {
    pub(crate) organization: OrganizationId,
    pub(crate) contract: Contract,
    pub(crate) customer: Customer,
    pub(crate) entities: Vec<Entity>,
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
pub(crate) fn entities_of(tx: &mut dyn Tx, organization: OrganizationId, contracts: &[Contract]) -> UseCaseResult<Vec<Entity>> {
    let mut refs: Vec<EntityRef> = contracts.iter().flat_map(Contract::entity_refs).cloned().collect();
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
        let entities = entities_of(tx, organization, std::slice::from_ref(&contract))?;
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
        if shares.iter().any(|(_, terms)| terms.net_terms == NetTerms::DueUponUsage) {
            return Err(UseCaseError::NotSupportedYet("net_terms DUE_UPON_USAGE"));
        }
        Ok(Planned { shares })
    }

    /// Opens a planned document as a draft, with its number. The contract must be held exclusively.
    pub(crate) fn open(&self, services: &Services, tx: &mut dyn Tx, planned: &Planned<'_>) -> UseCaseResult<DocumentHead> {
        let contract = &self.contract;
        let (first, terms) = &planned.shares[0];
        let entity = self.entity(&terms.entity_ref)?;
        let kind = first.slot.kind();
        let number_in_contract = tx.next_number_in_contract(self.organization, contract.customer_id, contract.contract_ref)?;
        let sequence = tx.next_document_number(self.organization, &terms.entity_ref, kind)?;
        let part = |(share, terms): &(Share<'_>, ResolvedTerms)| DocumentPart {
            product_no: share.own.product_no,
            tax_rate: terms.tax_rate,
            discount_rate: terms.discount_rate,
        };
        let head = DocumentHead {
            document_ref: DocumentRef::from_uuid(services.ids.new_id()),
            number: DocumentNumber { prefix: entity.profile.number_prefix.clone(), kind, sequence },
            kind,
            purpose: Purpose::Regular(first.slot),
            contract_ref: contract.contract_ref,
            number_in_contract,
            customer_id: contract.customer_id,
            entity_ref: terms.entity_ref.clone(),
            currency: terms.currency,
            period: first.own.period.span(),
            is_partial_period: first.own.period.is_partial(),
            parts: planned.shares.iter().map(part).collect(),
            net_terms: terms.net_terms,
            payment: terms.payment.clone(),
            parent: None,
            replaces: None,
            created_at: services.now(),
        };
        tx.open_document(self.organization, &head)?;
        // A draft of a period that is over may be opened long after the billing run passed it.
        tx.bring_due_forward(self.organization, contract.customer_id, contract.contract_ref, self.due_at(first)?)?;
        Ok(head)
    }

    /// What a planned document says with the usage there is.
    pub(crate) fn preview(&self, tx: &mut dyn Tx, planned: &Planned<'_>) -> UseCaseResult<DocumentContent> {
        self.content(tx, planned.currency(), &planned.rated(), None)
    }

    /// What a draft says with the usage there is.
    pub(crate) fn draft_content(&self, tx: &mut dyn Tx, head: &DocumentHead) -> UseCaseResult<DocumentContent> {
        self.content(tx, head.currency, &self.rated_shares(head)?, None)
    }

    /// The shares a draft bills, with the rates it was opened with.
    pub(crate) fn rated_shares(&self, head: &DocumentHead) -> UseCaseResult<Vec<RatedShare<'_>>> {
        let Purpose::Regular(slot) = head.purpose else {
            return Err(corrupt("a draft", &head.document_ref, "is no regular document"));
        };
        let numbers: Vec<ProductNo> = head.parts.iter().map(|part| part.product_no).collect();
        let shares = shares_of_document(&self.contract, &numbers, head.period, slot);
        let rated = shares.into_iter().filter_map(|share| {
            let part = head.parts.iter().find(|part| part.product_no == share.own.product_no)?;
            Some(RatedShare { share, discount_rate: part.discount_rate, tax_rate: part.tax_rate })
        });
        Ok(rated.collect())
    }

    /// Bills shares with the usage there is, and with a total that is about to be stored. Every amount of every
    /// document comes from here.
    pub(crate) fn content(
        &self,
        tx: &mut dyn Tx,
        currency: Currency,
        rated: &[RatedShare<'_>],
        about_to_be: Option<(&UsageKey, UsageTotal)>,
    ) -> UseCaseResult<DocumentContent> {
        let shares: Vec<Share<'_>> = rated.iter().map(|rated| rated.share).collect();
        let keys = usage_keys(self.contract.contract_ref, &shares);
        let mut totals = tx.usage(self.organization, self.contract.customer_id, &keys)?;
        totals.extend(about_to_be.map(|(key, total)| (key.clone(), total)));
        let usage = UsageFacts::new(totals);
        let content = bill(self.contract.contract_ref, currency, rated, &usage)?;
        if !content.adds_up() {
            return Err(UseCaseError::InvariantViolation("a document's total is not the sum of its lines"));
        }
        Ok(content)
    }

    /// The notes of a document's products.
    pub(crate) fn note(shares: &[Share<'_>]) -> Option<Prose> {
        join_notes(shares.iter().filter_map(|share| share.own.terms.note.as_ref()))
    }

    /// Who bills whom on a document of an entity.
    pub(crate) fn parties(&self, entity_ref: &EntityRef) -> UseCaseResult<Parties> {
        Ok(Parties::of(&self.customer, self.entity(entity_ref)?))
    }

    /// When the contract next has something to issue after an instant, as far as its versions say.
    pub(crate) fn next_due_after(&self, now: Timestamp) -> UseCaseResult<Option<Timestamp>> {
        let mut next: Option<Timestamp> = None;
        for product in &self.contract.products {
            for period in product.periods() {
                let dues = shares_of_period(product, period)
                    .iter()
                    .map(|share| self.due_at(share))
                    .collect::<UseCaseResult<Vec<_>>>()?;
                if let Some(due) = dues.into_iter().filter(|due| *due > now).min() {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    break;
                }
            }
        }
        Ok(next)
    }

    /// The share of a slot of a period, by the product it belongs to.
    pub(crate) fn share_in<'c>(&'c self, own: ProductPeriod<'c>, slot: Slot) -> UseCaseResult<Share<'c>> {
        let product = self.contract.product(own.product_no);
        let product = product.ok_or_else(|| corrupt("a contract", &self.contract.contract_ref, "has no such product"))?;
        Ok(share(product, own, slot))
    }
}

/// A state the store's own rules exclude.
pub(crate) fn corrupt(what: &str, which: &dyn std::fmt::Display, how: &str) -> UseCaseError {
    StoreError::Corrupt(format!("{what} {which} {how}")).into()
}
