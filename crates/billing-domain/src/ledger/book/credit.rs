//! The credit of a book's drafts (billing rules 12).

use super::*;
use crate::credit::CreditDraw;
use crate::document::DocumentState;
use crate::document::lines::signed_amount;
use crate::document::prepaid::PrepaidAmount;
use crate::ledger::credit::{CreditFamily, CreditNeed, CreditView, cover};

/// A family's drafts with their contents, in the order of their issue.
type FamilyContents<'b> = Vec<(&'b BookDocument, DocumentContent)>;

impl ContractBook {
    /// Sets the credit of the customer. Without it, documents take none.
    pub fn set_credit(&mut self, credit: CreditView) {
        self.credit = Some(Arc::new(credit));
    }

    /// Removes the credit of the customer, so that documents take none: those of a sale of credit.
    pub fn clear_credit(&mut self) {
        self.credit = None;
    }

    /// Returns the credit of the customer as the entries of the book have changed it, if it is set.
    pub fn credit(&self) -> Option<&CreditView> {
        self.credit.as_deref()
    }

    /// Takes over the credit of the customer from the book of another contract: what its decisions have drawn, and what its drafts
    /// need. Books of one customer are decided one after the other, and each takes over from the one before it.
    ///
    /// # Errors
    /// Returns the errors of [`content`](Self::content).
    pub fn take_over_credit(&mut self, decided: &Self) -> Result<(), Refusal> {
        let Some(credit) = decided.credit() else { return Ok(()) };
        let others = credit.families.iter().filter(|family| family.contract_ref != decided.contract.contract_ref);
        let families = others.cloned().chain(decided.credit_families()?).collect();
        self.set_credit(CreditView { families: Arc::new(families), ..credit.clone() });
        Ok(())
    }

    /// Returns the families with drafts, with what the drafts need of credit. Books of the customer's other contracts read them.
    ///
    /// # Errors
    /// Returns the errors of [`content`](Self::content).
    pub fn credit_families(&self) -> Result<Vec<CreditFamily>, Refusal> {
        let mut families = Vec::new();
        for family in self.families_with_drafts() {
            let drafts = self.drafts_before_credit(family, None)?;
            families.extend(self.credit_family(family, &drafts)?);
        }
        Ok(families)
    }

    /// Returns the credit that all drafts of the customer take, those of this book and those of the other contracts.
    ///
    /// # Errors
    /// Returns the errors of [`content`](Self::content).
    pub fn draft_draws(&self) -> Result<Vec<CreditDraw>, Refusal> {
        self.draws_of(&self.credit_families()?)
    }

    /// Returns the contents of all drafts. The drafts of a family are in the order of their issue.
    pub(in crate::ledger) fn draft_contents(&self) -> Result<FamilyContents<'_>, Refusal> {
        let (mut before_credit, mut families) = (Vec::new(), Vec::new());
        for family in self.families_with_drafts() {
            let drafts = self.drafts_before_credit(family, None)?;
            if self.credit.is_some() {
                families.extend(self.credit_family(family, &drafts)?);
            }
            before_credit.push((family, drafts));
        }
        let draws = self.draws_of(&families)?;
        let mut contents = Vec::new();
        for (family, drafts) in before_credit {
            contents.extend(if draws.is_empty() { drafts } else { self.with_credit(family, drafts, &draws)? });
        }
        Ok(contents)
    }

    /// Returns the content of a document with the credit that it takes if it is issued now. Of its family, only the issued documents
    /// come before it. Drafts of earlier families take their credit first, as they do on drafts.
    pub(in crate::ledger) fn with_credit_if_issued(
        &self,
        document: &BookDocument,
        content: DocumentContent,
    ) -> Result<DocumentContent, Refusal> {
        if self.credit.is_none() {
            return Ok(content);
        }
        let issued = [(document, content)];
        let mut families: Vec<CreditFamily> = self.credit_family(document.family, &issued)?.into_iter().collect();
        if let Some(position) = families.first().map(CreditFamily::position) {
            for family in self.families_with_drafts().into_iter().filter(|family| *family != document.family) {
                if (self.require_document(family)?.head.period.start(), family) < position {
                    families.extend(self.credit_family(family, &self.drafts_before_credit(family, None)?)?);
                }
            }
        }
        let draws = self.draws_of(&families)?;
        let sums = self.sums_of(document.family);
        let [(_, content)] = issued;
        self.covered(document, content, &draws, &sums)
    }

    fn families_with_drafts(&self) -> BTreeSet<DocumentRef> {
        self.documents().filter(|document| document.status == LifecycleStatus::Draft).map(|draft| draft.family).collect()
    }

    /// Returns a family with its drafts' contents before credit; `None` for a family that takes none, because it sold credit.
    fn credit_family(
        &self,
        family: DocumentRef,
        drafts: &[(&BookDocument, DocumentContent)],
    ) -> Result<Option<CreditFamily>, Refusal> {
        if self.extent == Extent::Drafts {
            return Err(Refusal::Broken("the book was read without the sums that credit needs".to_owned()));
        }
        if self.is_sale(family) {
            return Ok(None);
        }
        let needs = drafts.iter().map(|(draft, content)| CreditNeed::of(&draft.head, content)).collect::<Result<_, _>>()?;
        let of_root = CreditFamily::of_root(self.require_document(family)?, self.sums_of(family));
        Ok(Some(CreditFamily { drafts: needs, ..of_root }))
    }

    /// Returns whether a family sold credit. It takes none, and what is owed for it is owed for credit, not for usage.
    pub(in crate::ledger) fn is_sale(&self, family: DocumentRef) -> bool {
        self.credit.as_ref().is_some_and(|credit| credit.sales.contains(&family))
    }

    /// Covers families of this book together with the families of other contracts.
    fn draws_of(&self, own: &[CreditFamily]) -> Result<Vec<CreditDraw>, Refusal> {
        let Some(credit) = &self.credit else { return Ok(Vec::new()) };
        let others = credit.families.iter().filter(|family| family.contract_ref != self.contract.contract_ref);
        cover(&credit.grants, own.iter().chain(others))
    }

    /// Returns the contents of a family's drafts with credit.
    fn with_credit<'b>(
        &self,
        family: DocumentRef,
        drafts: FamilyContents<'b>,
        draws: &[CreditDraw],
    ) -> Result<FamilyContents<'b>, Refusal> {
        let mut sums = self.sums_of(family);
        let mut contents = Vec::with_capacity(drafts.len());
        for (draft, content) in drafts {
            let content = self.covered(draft, content, draws, &sums)?;
            content.add_to(&mut sums, draft.head.kind, 1)?;
            contents.push((draft, content));
        }
        Ok(contents)
    }

    /// Returns a content with the document's part of the draws. `before` holds the sums of the documents before it.
    fn covered(
        &self,
        document: &BookDocument,
        content: DocumentContent,
        draws: &[CreditDraw],
        before: &FamilySums,
    ) -> Result<DocumentContent, Refusal> {
        let head = &document.head;
        let own = draws.iter().filter(|draw| draw.document_ref == head.document_ref);
        let prepaid = own.map(|draw| self.prepaid_amount(head, draw)).collect::<Result<Vec<_>, Refusal>>()?;
        Ok(content.with_prepaid(head.kind, prepaid, before)?)
    }

    fn prepaid_amount(&self, head: &DocumentHead, draw: &CreditDraw) -> Result<PrepaidAmount, Refusal> {
        let mut grants = self.credit.iter().flat_map(|credit| &credit.grants);
        let grant = grants.find(|grant| grant.grant_ref == draw.grant_ref);
        let grant = grant.ok_or_else(|| Refusal::Broken(format!("grant {} isn't in the book", draw.grant_ref)))?;
        Ok(PrepaidAmount {
            grant_ref: grant.grant_ref,
            name: grant.name.clone(),
            sold_by: grant.sale.as_ref().map(|sale| sale.number.clone()),
            treatment: draw.treatment.clone(),
            amount: signed_amount(head.kind, draw.amount)?,
            unit: self.entity(&head.entity_ref)?.profile.credit_unit.of(head.currency).cloned(),
        })
    }

    /// Changes the credit after a document was issued (`times` 1) or voided (−1): what grants have drawn, and the net amount of a sale.
    pub(super) fn note_credit(
        &mut self,
        document_ref: DocumentRef,
        content: &DocumentContent,
        times: i64,
    ) -> Result<(), Refusal> {
        let document = known(&self.documents, document_ref)?;
        let (family, kind, currency) = (document.family, document.head.kind, document.head.currency);
        let is_sale = self.is_sale(family);
        let Some(credit) = self.credit.as_mut().filter(|_| is_sale || !content.prepaid.is_empty()) else { return Ok(()) };
        let credit = Arc::make_mut(credit);
        for draw in CreditDraw::of_content(document_ref, kind, content)? {
            for grant in credit.grants.iter_mut().filter(|grant| grant.grant_ref == draw.grant_ref) {
                let drawn = if times < 0 { grant.drawn.checked_sub(draw.amount) } else { grant.drawn.checked_add(draw.amount) };
                grant.drawn = drawn?;
            }
        }
        let sales = credit.grants.iter_mut().filter_map(|grant| grant.sale.as_mut());
        for sale in sales.filter(|sale| sale.document_ref == family) {
            sale.family_net = self.sums.get(&family).map_or(Ok(Money::zero(currency)), |sums| sums.net(currency))?;
            if sale.document_ref == document_ref && times < 0 {
                sale.state = DocumentState::Void;
            }
        }
        Ok(())
    }

    /// Returns whether a void of an issued document gives back only what its family has drawn, and keeps the law of prepaid credit.
    /// Credit that a document returned can be in use elsewhere, so its void could take back too much.
    pub(in crate::ledger) fn can_give_back(&self, document: &BookDocument, content: &DocumentContent) -> Result<bool, Refusal> {
        let draws = CreditDraw::of_content(document.head.document_ref, document.head.kind, content)?;
        let mut sums = self.sums_of(document.family);
        content.add_to(&mut sums, document.head.kind, -1)?;
        Ok(draws.iter().all(|draw| draw.amount.minor() >= 0) && sums.is_credit_lawful()?)
    }
}
