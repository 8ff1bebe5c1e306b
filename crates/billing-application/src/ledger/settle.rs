//! Putting a change of usage on documents (billing rules 3 and 5): a draft is re-rated, an issued document gets
//! the difference as an adjustment, an event due upon usage a document of its own.

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::ProductPeriod;
use billing_domain::document::correction::{LedgerLine, difference, kind_of, merge, negated};
use billing_domain::document::linking::{Share, share_for_usage, shares_billing};
use billing_domain::document::totals::{Documented, UsageFacts, lines_of_share, lines_of_step, usage_key};
use billing_domain::document::{Document, DocumentHead, DocumentKind, DocumentPart, Lifecycle, Purpose};
use billing_domain::money::{Currency, Money};
use billing_domain::party::NetTerms;
use billing_domain::ports::Tx;
use billing_domain::refs::{DocumentRef, ProductNo, UsageProductRef};
use billing_domain::usage::{UsageKey, UsageTotal};

use super::issue::{child_kind, freeze};
use super::{Account, Unnumbered, corrupt};
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// A change of one running total.
#[derive(Clone, Copy)]
pub(crate) struct Change<'c> {
    /// The service period.
    pub(crate) period: ProductPeriod<'c>,
    /// What was used.
    pub(crate) usage_product_ref: &'c UsageProductRef,
    /// The total that is stored.
    pub(crate) before: UsageTotal,
    /// The total that is about to be stored.
    pub(crate) after: UsageTotal,
    /// The document the changed event's last change stands on; `None` of a new event.
    pub(crate) standing: Option<DocumentRef>,
}

impl Change<'_> {
    /// Names the running total.
    pub(crate) fn key(&self, account: &Account) -> UsageKey {
        usage_key(account.contract.contract_ref, &self.period, self.usage_product_ref)
    }
}

/// Puts a change on a document and answers it. Amounts that can't be held refuse the change before anything of
/// it is written. But for a new event on a draft that is there, the contract must be held exclusively.
pub(crate) fn settle(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    change: Change<'_>,
    now: Timestamp,
) -> UseCaseResult<DocumentHead> {
    let product = account.product(change.period.product_no)?;
    let carrier_share = share_for_usage(product, change.period);
    let carrier = account.stored(tx, &carrier_share)?;
    if carrier.is_none() {
        // The billing run may have passed it because it had nothing to bill; now it may have, if only a true-up.
        let (contract, due_at) = (&account.contract, account.due_at(&carrier_share)?);
        tx.bring_due_forward(account.organization, contract.customer_id, contract.contract_ref, due_at)?;
    }
    let Some(standing) = change.standing else {
        if account.is_due_upon_usage(carrier.as_ref(), change.period)? {
            return own_document(services, tx, account, change, &carrier_share, carrier, now);
        }
        return match carrier {
            None => open_carrier(services, tx, account, change, &carrier_share),
            Some(carrier) if carrier.is_draft() => re_rate(tx, account, change, carrier.head),
            Some(carrier) => {
                let parent = parent_of(tx, account, &carrier)?;
                adjust(services, tx, account, change, &parent)
            }
        };
    };
    let standing = account.document(tx, standing)?;
    let is_carrier = carrier.as_ref().is_some_and(|carrier| carrier.head.document_ref == standing.head.document_ref);
    match (&standing.lifecycle, standing.head.purpose) {
        (Lifecycle::Draft, Purpose::Regular(_)) if is_carrier => return re_rate(tx, account, change, standing.head),
        (Lifecycle::Draft, Purpose::Usage | Purpose::Adjustment) => {
            let lines = difference_of(tx, account, change, &standing.head)?;
            let signed = if standing.head.kind == DocumentKind::Credit { negated(lines)? } else { lines };
            return collect(tx, account, standing.head, signed);
        }
        (Lifecycle::Draft | Lifecycle::Issued(_) | Lifecycle::Uncollectible(_) | Lifecycle::Void(_), _) => {}
    }
    let is_own_document = account.is_due_upon_usage(carrier.as_ref(), change.period)?
        && !matches!(standing.head.purpose, Purpose::Regular(_))
        && !matches!(standing.lifecycle, Lifecycle::Void(_));
    match carrier {
        // The period's usage isn't billed, or by a draft: that one bills whatever isn't documented.
        None if !is_own_document => open_carrier(services, tx, account, change, &carrier_share),
        Some(carrier) if carrier.is_draft() && !is_own_document => re_rate(tx, account, change, carrier.head),
        Some(carrier) if standing.is_draft() => {
            let parent = parent_of(tx, account, &carrier)?;
            adjust(services, tx, account, change, &parent)
        }
        Some(_) | None => {
            let parent = parent_of(tx, account, &standing)?;
            adjust(services, tx, account, change, &parent)
        }
    }
}

/// Opens the document that bills the period's usage; the event stands on it.
fn open_carrier(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    change: Change<'_>,
    share: &Share<'_>,
) -> UseCaseResult<DocumentHead> {
    let planned = account.plan(tx, share)?;
    account.content(tx, planned.currency(), &planned.rated(), Some((&change.key(account), change.after)))?;
    account.open(services, tx, &planned)
}

/// Checks that a draft can be rated with the change; it holds no amounts of its own.
fn re_rate(tx: &mut dyn Tx, account: &Account, change: Change<'_>, head: DocumentHead) -> UseCaseResult<DocumentHead> {
    account.content(tx, head.currency, &account.rated_shares(&head)?, Some((&change.key(account), change.after)))?;
    Ok(head)
}

/// The invoice an adjustment of a document's event names as its parent (billing rules 5).
fn parent_of(tx: &mut dyn Tx, account: &Account, standing: &Document) -> UseCaseResult<DocumentHead> {
    let head = &standing.head;
    match (head.kind, head.parent) {
        (DocumentKind::Invoice, _) => Ok(head.clone()),
        (DocumentKind::Credit | DocumentKind::Debit, Some(parent)) => Ok(account.document(tx, parent)?.head),
        (DocumentKind::Credit | DocumentKind::Debit, None) => Err(corrupt("a document", &head.document_ref, "has no parent")),
    }
}

/// Puts the difference on the open adjustment of the parent and of the kind that its sign asks for.
fn adjust(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    change: Change<'_>,
    parent: &DocumentHead,
) -> UseCaseResult<DocumentHead> {
    let lines = difference_of(tx, account, change, parent)?;
    let sum = Money::sum(parent.currency, lines.iter().map(|line| line.amount))?;
    let kind = kind_of(sum);
    let signed = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
    let open = tx.open_adjustment(account.organization, parent.customer_id, parent.document_ref, kind)?;
    let head = match open {
        Some(document) => document.head,
        None => {
            let head = account.open_adjustment(services, tx, parent, kind, change.period, parent.parts.clone())?;
            let due = account.adjustment_due_at(&head)?;
            tx.bring_due_forward(account.organization, head.customer_id, head.contract_ref, due)?;
            head
        }
    };
    collect(tx, account, head, signed)
}

/// Adds lines to an open adjustment.
fn collect(tx: &mut dyn Tx, account: &Account, mut head: DocumentHead, lines: Vec<LedgerLine>) -> UseCaseResult<DocumentHead> {
    let present = tx.ledger_lines(account.organization, head.customer_id, head.document_ref)?;
    let merged = merge(present, lines)?;
    account.add_parts(tx, &mut head, &merged)?;
    // Amounts that can't be added up refuse the change.
    account.content_of_lines(&head, &merged)?;
    tx.put_ledger_lines(account.organization, head.customer_id, head.document_ref, &merged)?;
    Ok(head)
}

/// What the change makes a difference of: to everything that is documented where the period's usage is billed,
/// true-ups included; a step of the incremental price where it isn't billed yet.
fn difference_of(tx: &mut dyn Tx, account: &Account, change: Change<'_>, on: &DocumentHead) -> UseCaseResult<Vec<LedgerLine>> {
    let product = account.product(change.period.product_no)?;
    let carrier = account.stored(tx, &share_for_usage(product, change.period))?;
    if carrier.is_none_or(|carrier| carrier.is_draft()) {
        let lines = lines_of_step(&change.period, change.usage_product_ref, on.currency, &change.before, &change.after)?;
        return Ok(lines.iter().map(|line| LedgerLine::of(change.period.product_no, line)).collect());
    }
    account.undocumented(tx, change.period, on.currency, Some((&change.key(account), change.before, change.after)), None)
}

/// An event due upon usage: an invoice of its own, issued at once, or a credit where it lowers the price.
fn own_document(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    change: Change<'_>,
    carrier_share: &Share<'_>,
    carrier: Option<Document>,
    now: Timestamp,
) -> UseCaseResult<DocumentHead> {
    let parent = match carrier {
        Some(carrier) => parent_of(tx, account, &carrier)?,
        None => {
            let planned = account.plan(tx, carrier_share)?;
            let head = account.open(services, tx, &planned)?;
            match head.parent {
                Some(invoice) => account.document(tx, invoice)?.head,
                None => head,
            }
        }
    };
    let lines = difference_of(tx, account, change, &parent)?;
    let sum = Money::sum(parent.currency, lines.iter().map(|line| line.amount))?;
    let kind = child_kind(sum);
    let lines = if kind == DocumentKind::Credit { negated(lines)? } else { lines };
    let own = account.number(
        services,
        tx,
        Unnumbered {
            kind,
            purpose: Purpose::Usage,
            entity_ref: &parent.entity_ref,
            currency: parent.currency,
            period: change.period.period.span(),
            is_partial_period: change.period.period.is_partial(),
            parts: vec![account.part_of(&parent, change.period.product_no)?],
            net_terms: NetTerms::DueUponUsage,
            payment: parent.payment.clone(),
            parent: Some(parent.document_ref),
            replaces: None,
        },
    )?;
    let content = account.content_of_lines(&own, &lines)?;
    freeze(tx, account, &own, content, now)?;
    Ok(own)
}

impl Account {
    /// A document that must be there.
    pub(crate) fn document(&self, tx: &mut dyn Tx, document_ref: DocumentRef) -> UseCaseResult<Document> {
        tx.document(self.organization, document_ref)?.ok_or_else(|| corrupt("a document", &document_ref, "is not there"))
    }

    /// Whether the events of a period are documents of their own: as its document was opened, or would be.
    pub(crate) fn is_due_upon_usage(&self, carrier: Option<&Document>, period: ProductPeriod<'_>) -> UseCaseResult<bool> {
        let net_terms = match carrier {
            Some(carrier) => carrier.head.net_terms,
            None => period.terms.resolve(&self.customer, self.entity(&period.terms.entity_ref)?).net_terms,
        };
        Ok(net_terms == NetTerms::DueUponUsage)
    }

    /// What a service period costs by the documents that are issued, less what is documented: for a total that
    /// is about to change, or as things are. `agreed_before` is the contract before an amendment.
    pub(crate) fn undocumented(
        &self,
        tx: &mut dyn Tx,
        period: ProductPeriod<'_>,
        currency: Currency,
        change: Option<(&UsageKey, UsageTotal, UsageTotal)>,
        agreed_before: Option<&Account>,
    ) -> UseCaseResult<Vec<LedgerLine>> {
        let product = self.product(period.product_no)?;
        let issued = self.issued_shares(tx, period)?;
        let before = self.usage(tx, &issued, change.map(|(key, before, _)| (key, before)))?;
        let after = self.usage(tx, &issued, change.map(|(key, _, after)| (key, after)))?;
        let before = self.lines_of_period(&issued, period, currency, &before)?;
        let target = self.lines_of_period(&issued, period, currency, &after)?;
        // Where usage isn't billed yet, children and corrections of it come off the draft that will; what is billed in
        // advance is documented as it was agreed on before the amendment.
        let documented = if issued.contains(&share_for_usage(product, period)) {
            self.documented(tx, std::iter::once(period), |_| true)?
        } else {
            let mut in_advance = Documented::nothing();
            if let Some(agreed_before) = agreed_before {
                agreed_before.add_issued(tx, period.product_no, period.period.span().start(), currency, &mut in_advance)?;
            }
            in_advance
        };
        Ok(difference(period.product_no, period.period.span(), currency, &before, &target, &documented)?)
    }

    /// The shares of a period whose documents are issued.
    fn issued_shares<'c>(&'c self, tx: &mut dyn Tx, period: ProductPeriod<'c>) -> UseCaseResult<Vec<Share<'c>>> {
        let mut issued = Vec::new();
        for share in shares_billing(self.product(period.product_no)?, period) {
            if self.stored(tx, &share)?.is_some_and(|document| !document.is_draft()) {
                issued.push(share);
            }
        }
        Ok(issued)
    }

    /// Adds what the issued documents of a period bill before its usage.
    fn add_issued(
        &self,
        tx: &mut dyn Tx,
        product_no: ProductNo,
        start: Date,
        currency: Currency,
        into: &mut Documented,
    ) -> UseCaseResult<()> {
        let Some(period) = self.product(product_no)?.period_at(start) else { return Ok(()) };
        let issued: Vec<Share<'_>> =
            self.issued_shares(tx, period)?.iter().map(|share| Share { usage: None, ..*share }).collect();
        for line in self.lines_of_period(&issued, period, currency, &UsageFacts::default())? {
            into.add(line.key(product_no), line.amount.minor())?;
        }
        Ok(())
    }

    /// The lines of shares that bill one service period.
    pub(super) fn lines_of_period(
        &self,
        shares: &[Share<'_>],
        period: ProductPeriod<'_>,
        currency: Currency,
        usage: &UsageFacts,
    ) -> UseCaseResult<Vec<billing_domain::document::totals::DocumentLine>> {
        let mut lines = Vec::new();
        for share in shares {
            lines.extend(lines_of_share(self.contract.contract_ref, currency, share, usage)?);
        }
        lines.retain(|line| line.service_period.start() == period.period.span().start());
        Ok(lines)
    }

    /// Opens an adjustment of a parent.
    pub(crate) fn open_adjustment(
        &self,
        services: &Services,
        tx: &mut dyn Tx,
        parent: &DocumentHead,
        kind: DocumentKind,
        period: ProductPeriod<'_>,
        parts: Vec<DocumentPart>,
    ) -> UseCaseResult<DocumentHead> {
        self.number(
            services,
            tx,
            Unnumbered {
                kind,
                purpose: Purpose::Adjustment,
                entity_ref: &parent.entity_ref,
                currency: parent.currency,
                period: period.period.span(),
                is_partial_period: period.period.is_partial(),
                parts,
                net_terms: parent.net_terms,
                payment: parent.payment.clone(),
                parent: Some(parent.document_ref),
                replaces: None,
            },
        )
    }

    /// The rates a document has for a product; of one that isn't on it, the product's own.
    pub(crate) fn part_of(&self, head: &DocumentHead, product_no: ProductNo) -> UseCaseResult<DocumentPart> {
        if let Some(part) = head.parts.iter().find(|part| part.product_no == product_no) {
            return Ok(*part);
        }
        let product = self.product(product_no)?;
        let terms = product
            .newest_terms()
            .ok_or_else(|| corrupt("a contract", &self.contract.contract_ref, "has a product without terms"))?;
        let terms = terms.resolve(&self.customer, self.entity(&terms.entity_ref)?);
        Ok(DocumentPart { product_no, tax_rate: terms.tax_rate, discount_rate: terms.discount_rate })
    }

    /// Puts the products of lines on a draft that doesn't list them yet.
    fn add_parts(&self, tx: &mut dyn Tx, head: &mut DocumentHead, lines: &[LedgerLine]) -> UseCaseResult<()> {
        let listed = head.parts.len();
        for line in lines {
            if !head.parts.iter().any(|part| part.product_no == line.product_no) {
                let part = self.part_of(head, line.product_no)?;
                head.parts.push(part);
            }
        }
        if head.parts.len() > listed && !tx.update_draft(self.organization, head)? {
            return Err(UseCaseError::InvariantViolation("a draft that is held changed"));
        }
        Ok(())
    }
}
