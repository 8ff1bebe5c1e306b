//! Money in histories: payments, reversals, refunds, applications and write-offs, with a check of the amounts owed after
//! every step (billing rules 9).

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::calendar::TimeZone;
use billing_domain::document::{BookDocument, DocumentKind, DocumentState, LifecycleStatus, Purpose};
use billing_domain::ledger::Entry;
use billing_domain::ledger::receivables::{
    AccountEntry, DecisionContext, Issuance, NewPayment, ReceivablesAccount, check_account,
};
use billing_domain::metadata::Metadata;
use billing_domain::money::{Currency, Money};
use billing_domain::receivables::{AccountKey, ApplicationSource, Payment, PaymentKind};
use billing_domain::refs::{DocumentRef, EntityRef, PaymentRef};
use billing_domain::refusal::Refusal;
use uuid::Uuid;

use crate::histories::convert;
use crate::histories::follow::{Deed, MoneyDeed, SourceDeed};
use crate::histories::model::calendar::plus;
use crate::histories::spec::{MoneySpec, PartSpec};
use crate::histories::world::{Checked, World, sign};

/// The domain's account, and the model's facts about it.
pub(crate) struct AccountState {
    pub(crate) account: ReceivablesAccount,
    /// The sum of the write-offs in entries.
    written_off: i64,
    /// Payments less refunds, without reversed ones.
    received: i64,
    /// Whether an application was ever removed by hand, or balance was not applied automatically.
    by_hand: bool,
}

/// All accounts, and all payments and refunds in the order of recording.
#[derive(Default)]
pub(crate) struct Accounts {
    pub(crate) accounts: BTreeMap<AccountKey, AccountState>,
    pub(crate) payments: Vec<(AccountKey, PaymentRef)>,
}

impl Accounts {
    /// Returns an account, which begins without rows.
    fn account(&mut self, key: &AccountKey, applies: bool) -> &mut AccountState {
        self.accounts.entry(key.clone()).or_insert_with(|| AccountState {
            account: ReceivablesAccount::new(key.clone(), applies, Money::zero(key.currency)),
            written_off: 0,
            received: 0,
            by_hand: !applies,
        })
    }
}

impl World {
    fn moment(&self, document: &BookDocument) -> DecisionContext {
        self.moment_of(&document.head.entity_ref)
    }

    fn moment_of(&self, entity_ref: &EntityRef) -> DecisionContext {
        let zone = TimeZone::parse(self.model.zone(convert::entity(entity_ref))).expect("a zone");
        DecisionContext { at: self.now, zone, by: Actor::Service }
    }

    /// Applies issued and voided documents to their accounts. A refusal changes nothing.
    pub(crate) fn settle(&mut self, entries: &[Entry]) -> Checked<Result<(), Refusal>> {
        let mut touched: BTreeMap<AccountKey, (Vec<Issuance>, Vec<DocumentRef>, DecisionContext)> = BTreeMap::new();
        for entry in entries {
            let (Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. }) = entry else { continue };
            let document = self.book.document(*document_ref).ok_or("an unknown document is issued or void")?.clone();
            let moment = self.moment(&document);
            let (issued, voided, _) =
                touched.entry(AccountKey::of(&document)).or_insert_with(|| (Vec::new(), Vec::new(), moment));
            match entry {
                Entry::Voided { .. } => voided.push(*document_ref),
                _ => issued.push(Issuance { takes_back: self.book.takes_back(*document_ref), document }),
            }
        }
        for (key, (issued, voided, moment)) in touched {
            let applies = self.model.catalog.customer.applies_balance;
            let kept = self.money.account(&key, applies);
            kept.by_hand |= !applies;
            let mut account = kept.account.clone();
            account.set_applies_balance(applies);
            let credits: Vec<Issuance> =
                issued.iter().filter(|issue| issue.document.head.kind == DocumentKind::Credit).cloned().collect();
            let id_generator = &mut || {
                self.ids += 1;
                Uuid::from_u128(self.ids)
            };
            let decide = || {
                for void in &voided {
                    account.void(*void, &moment, id_generator)?;
                }
                account.issue(issued, &moment, id_generator)
            };
            match decide() {
                Err(refusal @ Refusal::Broken(_)) => return Err(format!("broken: {refusal:?}")),
                Err(refusal) => return Ok(Err(refusal)),
                Ok(()) => self.keep(&key, account)?,
            }
            for credit in credits {
                self.check_credit(&key, &credit)?;
            }
        }
        Ok(Ok(()))
    }

    /// Returns whether a document's money allows voiding it. A credit must not be refunded. Other documents must have no payments
    /// and no credits.
    pub(crate) fn may_be_voided(&self, document: &BookDocument) -> bool {
        let (key, document_ref) = (AccountKey::of(document), document.head.document_ref);
        if document.head.kind == DocumentKind::Credit {
            return self.refunded(&key, ApplicationSource::Credit(document_ref)) == 0;
        }
        let account = &self.money.accounts[&key].account;
        let is_paid = account.payments().any(|payment| {
            payment.document_ref == Some(document_ref) && payment.kind == PaymentKind::Payment && payment.reversal.is_none()
        });
        !is_paid && document.settlement.paid.minor() == 0 && document.settlement.credits.minor() == 0
    }

    /// Stores an account after a decision.
    fn keep(&mut self, key: &AccountKey, mut account: ReceivablesAccount) -> Checked {
        let entries = account.take_entries().map_err(|error| format!("{error:?}"))?;
        let kept = self.money.accounts.get_mut(key).ok_or("an unknown account")?;
        for entry in &entries {
            match entry {
                AccountEntry::WrittenOff(write_off) => kept.written_off += write_off.amount.minor(),
                AccountEntry::Recorded(payment) => self.money.payments.push((key.clone(), payment.payment_ref)),
                _ => {}
            }
        }
        kept.account = account;
        // Drafts are loaded only to be refused. The book has their present state.
        self.book.note_settled(kept.account.documents().filter(|document| document.status != LifecycleStatus::Draft));
        Ok(())
    }

    /// Checks the order in which a credit settles documents. The check only uses the contents of documents.
    ///
    /// 1. The documents that the credit corrects, due or written off. If the parent is a child document, these are the child and
    ///    its debits. Otherwise, they are the documents that bill the credited lines: debits and children first, latest first.
    /// 2. The rest of the family, latest first: due documents, then written-off documents.
    /// 3. Any other document.
    fn check_credit(&self, key: &AccountKey, credit: &Issuance) -> Checked {
        let account = &self.money.accounts[key].account;
        let document_ref = credit.document.head.document_ref;
        let billed = |document_ref: DocumentRef| -> BTreeSet<_> {
            let content = self.frozen.get(&document_ref);
            let lines = content.into_iter().flat_map(|content| &content.products).flat_map(|product| {
                let lines = product.lines.iter().filter(|line| line.amount.minor() != 0);
                let rates = &product.rates;
                lines.map(move |line| {
                    (product.product_no, line.line_item_id.clone(), line.period_start, line.bill_with, rates.clone())
                })
            });
            lines.collect()
        };
        let taken = billed(document_ref);
        let is_of_event =
            |document: &BookDocument| document.head.kind == DocumentKind::Invoice && document.head.purpose == Purpose::Usage;
        let parent = credit.document.head.parent.and_then(|parent| self.book.document(parent));
        let of_event = parent.filter(|parent| is_of_event(parent)).map(|parent| parent.head.document_ref);
        let turn = |document: &BookDocument| -> u8 {
            let (head, is_written_off) = (&document.head, document.status == LifecycleStatus::Uncollectible);
            let rest = if is_written_off { 4 } else { 3 };
            if document.family != credit.document.family {
                return 5;
            }
            match of_event {
                Some(event) if head.document_ref == event => 0,
                Some(event) if head.parent == Some(event) => 1,
                Some(_) => rest,
                None if billed(head.document_ref).is_disjoint(&taken) => rest,
                None if head.kind == DocumentKind::Debit || is_of_event(document) => 1,
                None => 2,
            }
        };
        let of_family: Vec<&BookDocument> = account
            .documents()
            .filter(|other| other.family == credit.document.family && other.head.kind != DocumentKind::Credit)
            .filter(|other| other.status.is_issued())
            .collect();
        let settled: Vec<&BookDocument> = account
            .applications()
            .filter(|application| application.from == ApplicationSource::Credit(document_ref))
            .filter_map(|application| account.documents().find(|other| other.head.document_ref == application.to))
            .collect();
        for to in settled {
            let better = of_family.iter().find(|other| {
                let rest = other.settlement.rest(other.total.expect("a total")).expect("small amounts").minor();
                let place = |document: &BookDocument| {
                    (turn(document), std::cmp::Reverse((document.issue_date, document.head.document_ref)))
                };
                rest > 0 && place(other) < place(to)
            });
            if let Some(better) = better {
                return Err(format!("a credit settles {} before {}", self.reported(to), self.reported(better)));
            }
        }
        Ok(())
    }

    /// Returns the document that a number selects among the documents that fit.
    fn chosen(&self, number: usize, fits: impl Fn(&BookDocument) -> bool) -> Option<BookDocument> {
        let of: Vec<&BookDocument> = self.book.documents().filter(|document| fits(document)).collect();
        (!of.is_empty()).then(|| of[number % of.len()].clone())
    }

    fn part_of(part: PartSpec, whole: i64) -> i64 {
        match part {
            PartSpec::All => whole,
            PartSpec::Some(thousandths) => whole * thousandths / 1_000,
            PartSpec::More(minor) => whole + minor,
        }
    }

    fn text(minor: i64, currency: billing_domain::money::Currency) -> String {
        Money::from_minor(minor, currency).to_decimal().to_string()
    }

    /// Returns the account of a credit or a payment, the source, and its description.
    fn source(&self, number: usize) -> Option<(AccountKey, ApplicationSource, SourceDeed)> {
        let credits = self.book.documents().filter(|document| {
            document.head.kind == DocumentKind::Credit && document.status.is_issued() || number.is_multiple_of(7)
        });
        let mut of: Vec<(AccountKey, ApplicationSource, SourceDeed)> = credits
            .map(|credit| {
                let document_ref = credit.head.document_ref;
                let place = self.place_of(document_ref).expect("a document of the book");
                (AccountKey::of(credit), ApplicationSource::Credit(document_ref), SourceDeed::Document(place))
            })
            .collect();
        let payments = self.money.payments.iter().enumerate();
        of.extend(
            payments.map(|(i, (key, payment))| (key.clone(), ApplicationSource::Payment(*payment), SourceDeed::Payment(i))),
        );
        // Mostly chooses a source with an unapplied amount.
        let left: Vec<_> = of
            .iter()
            .filter(|(key, source, _)| self.money.accounts.contains_key(key) && self.left_of(key, *source) > 0)
            .cloned()
            .collect();
        let of = if left.is_empty() || number.is_multiple_of(5) { of } else { left };
        (!of.is_empty()).then(|| of[number % of.len()].clone())
    }

    fn payment(&self, key: &AccountKey, payment_ref: PaymentRef) -> &Payment {
        let account = &self.money.accounts[key].account;
        account.payments().find(|payment| payment.payment_ref == payment_ref).expect("a payment of the account")
    }

    fn left_of(&self, key: &AccountKey, source: ApplicationSource) -> i64 {
        match source {
            ApplicationSource::Payment(payment_ref) => self.payment(key, payment_ref).unapplied().expect("small amounts").minor(),
            ApplicationSource::Credit(credit) => {
                let document = self.book.document(credit).expect("a document of the book");
                document.owed().expect("small amounts").unapplied.map_or(0, Money::minor)
            }
        }
    }

    /// Runs a money step.
    pub(crate) fn money(&mut self, spec: &MoneySpec) -> Checked {
        match *spec {
            MoneySpec::Pay { document, part, takes_more, days } => self.pay(document, part, takes_more, days),
            MoneySpec::Deposit { entity, pricing, minor, days } => self.deposit(entity, pricing, minor, days),
            MoneySpec::Reverse { payment, days } => self.reverse(payment, days),
            MoneySpec::Refund { source, part } => self.refund(source, part),
            MoneySpec::Apply { source, document, part } => self.apply(source, document, part),
            MoneySpec::Unapply { application } => self.unapply(application),
            MoneySpec::WriteOff { document, undo } => self.write_off(document, undo),
        }
    }

    fn rest_of(document: &BookDocument) -> i64 {
        let rest = document.total.map(|total| document.settlement.rest(total).expect("small amounts").minor());
        rest.unwrap_or(0)
    }

    fn pay(&mut self, document: usize, part: PartSpec, takes_more: bool, days: Option<i64>) -> Checked {
        // Mostly chooses a document that is owed.
        let owed = |document: &BookDocument| {
            document.head.kind != DocumentKind::Credit && document.status.is_issued() && Self::rest_of(document) > 0
        };
        let chosen = if document.is_multiple_of(9) { None } else { self.chosen(document, owed) };
        let Some(chosen) = chosen.or_else(|| self.chosen(document, |_| true)) else { return Ok(()) };
        let (key, moment, rest) = (AccountKey::of(&chosen), self.moment(&chosen), Self::rest_of(&chosen));
        let amount = Self::part_of(part, rest);
        let today = moment.zone.service_date(self.now);
        let paid_date = days.map(|days| plus(today, days));
        let is_owed = chosen.head.kind != DocumentKind::Credit && chosen.status.is_issued();
        let opened = moment.zone.service_date(chosen.head.created_at);
        let date_fits = paid_date.is_none_or(|date| opened <= date && date <= plus(today, 1).max(opened));
        let expected = is_owed && amount > 0 && (takes_more || amount <= rest) && date_fits;
        let facts = NewPayment {
            amount: Self::text(amount, key.currency),
            paid_date,
            reference: None,
            method: None,
            metadata: Metadata::default(),
        };
        let place = self.place_of(chosen.head.document_ref).ok_or("an unknown document")?;
        let deed = MoneyDeed::Pay { place, facts: facts.clone(), takes_more };
        let document_ref = chosen.head.document_ref;
        let taken = self.on_account("payment", &key, expected, |account, mut id_generator| {
            account.record_payment(document_ref, &facts, takes_more, &moment, &mut id_generator).map(drop)
        })?;
        if taken {
            self.kept(&key).received += amount;
        }
        self.tell(Deed::Money(deed), taken)
    }

    /// Deposits an amount in the currency of a pricing, mostly to the account of a document.
    fn deposit(&mut self, entity: usize, pricing: usize, minor: i64, days: Option<i64>) -> Checked {
        let catalog = &self.model.catalog;
        let currency = catalog.pricings[pricing % catalog.pricings.len()].currency;
        let other = AccountKey {
            customer_id: self.book.customer.id,
            entity_ref: convert::entity_ref(entity % catalog.entities.len()),
            currency: Currency::from_code(currency).expect("a currency"),
        };
        let billed = if pricing.is_multiple_of(4) { None } else { self.chosen(entity, |_| true) };
        let key = billed.map_or(other, |document| AccountKey::of(&document));
        let moment = self.moment_of(&key.entity_ref);
        let today = moment.zone.service_date(self.now);
        let paid_date = days.map(|days| plus(today, days));
        let expected = minor > 0 && paid_date.is_none_or(|date| date <= plus(today, 1));
        let facts = NewPayment {
            amount: Self::text(minor, key.currency),
            paid_date,
            reference: None,
            method: None,
            metadata: Metadata::default(),
        };
        if expected {
            self.money.account(&key, self.model.catalog.customer.applies_balance);
        }
        let taken = self.on_account("deposit", &key, expected, |account, mut id_generator| {
            account.record_deposit(&facts, &moment, &mut id_generator).map(drop)
        })?;
        if taken {
            self.kept(&key).received += minor;
        }
        let AccountKey { entity_ref, currency, .. } = key;
        self.tell(Deed::Money(MoneyDeed::Deposit { entity_ref, currency, facts }), taken)
    }

    fn reverse(&mut self, payment: usize, days: Option<i64>) -> Checked {
        let Some(index) = payment.checked_rem(self.money.payments.len()) else { return Ok(()) };
        let (key, payment_ref) = self.money.payments[index].clone();
        let payment = self.payment(&key, payment_ref).clone();
        let moment = self.moment_of(&key.entity_ref);
        let today = moment.zone.service_date(self.now);
        let date = days.map(|days| plus(today, days));
        let date_fits = date.is_none_or(|date| payment.paid_date <= date && date <= plus(today, 1).max(payment.paid_date));
        let is_refunded = self.refunded(&key, ApplicationSource::Payment(payment_ref)) > 0;
        let expected = payment.reversal.is_none() && date_fits && !is_refunded;
        let taken = self.on_account("reversal", &key, expected, |account, mut id_generator| {
            account.reverse(payment_ref, date, None, &moment, &mut id_generator)
        })?;
        if taken {
            let amount = payment.amount.minor();
            self.kept(&key).received -= if payment.kind == PaymentKind::Payment { amount } else { -amount };
        }
        self.tell(Deed::Money(MoneyDeed::Reverse { payment: index, date }), taken)
    }

    /// Returns the refunded amount of a source, without reversed refunds.
    fn refunded(&self, key: &AccountKey, source: ApplicationSource) -> i64 {
        let payments = self.money.accounts[key].account.payments();
        let refunds = payments.filter(|payment| payment.kind == PaymentKind::Refund(source) && payment.reversal.is_none());
        refunds.map(|refund| refund.amount.minor()).sum()
    }

    fn refund(&mut self, source: usize, part: PartSpec) -> Checked {
        let Some((key, source, reported)) = self.source(source) else { return Ok(()) };
        if !self.money.accounts.contains_key(&key) {
            return Ok(());
        }
        let left = self.left_of(&key, source);
        let amount = Self::part_of(part, left);
        let moment = self.moment_of(&key.entity_ref);
        let facts = NewPayment {
            amount: Self::text(amount, key.currency),
            paid_date: None,
            reference: None,
            method: None,
            metadata: Metadata::default(),
        };
        let deed = MoneyDeed::Refund { source: reported, facts: facts.clone() };
        let taken = self.on_account("refund", &key, amount > 0 && amount <= left, |account, mut id_generator| {
            account.refund(source, &facts, &moment, &mut id_generator).map(drop)
        })?;
        if taken {
            self.kept(&key).received -= amount;
        }
        self.tell(Deed::Money(deed), taken)
    }

    fn apply(&mut self, source: usize, document: usize, part: PartSpec) -> Checked {
        let Some((key, source, reported)) = self.source(source) else { return Ok(()) };
        let of_account = |document: &BookDocument| AccountKey::of(document) == key && document.status.is_issued();
        let owed = |document: &BookDocument| of_account(document) && Self::rest_of(document) > 0;
        let chosen = self.chosen(document, owed).or_else(|| self.chosen(document, of_account));
        let Some(chosen) = chosen else { return Ok(()) };
        let (left, rest) = (self.left_of(&key, source), Self::rest_of(&chosen));
        let amount = Self::part_of(part, left.min(rest));
        let is_owed = chosen.head.kind != DocumentKind::Credit;
        let moment = self.moment(&chosen);
        let document_ref = chosen.head.document_ref;
        let place = self.place_of(document_ref).ok_or("an unknown document")?;
        let text = Self::text(amount, key.currency);
        let deed = MoneyDeed::Apply { source: reported, place, amount: text.clone() };
        let expected = is_owed && amount > 0 && amount <= left && amount <= rest;
        let taken = self.on_account("application by hand", &key, expected, |account, mut id_generator| {
            account.apply(source, document_ref, &text, &moment, &mut id_generator)
        })?;
        self.tell(Deed::Money(deed), taken)
    }

    fn unapply(&mut self, application: usize) -> Checked {
        let mut all: Vec<_> = Vec::new();
        for (key, kept) in &self.money.accounts {
            all.extend(kept.account.applications().map(|application| (application.application_ref, application.to, key.clone())));
        }
        all.sort();
        let Some(index) = application.checked_rem(all.len()) else { return Ok(()) };
        let (application_ref, to, key) = all.swap_remove(index);
        let moment = self.moment(&self.book.document(to).ok_or("an application to no document")?.clone());
        let taken = self.on_account("unapplying", &key, true, |account, mut id_generator| {
            account.unapply(application_ref, &moment, &mut id_generator)
        })?;
        self.kept(&key).by_hand = true;
        self.tell(Deed::Money(MoneyDeed::Unapply(index)), taken)
    }

    fn write_off(&mut self, document: usize, undo: bool) -> Checked {
        let status = if undo { LifecycleStatus::Uncollectible } else { LifecycleStatus::Issued };
        let mostly = |document: &BookDocument| document.status == status && Self::rest_of(document) > 0;
        let Some(chosen) = self.chosen(document, mostly).or_else(|| self.chosen(document, |_| true)) else { return Ok(()) };
        let (key, moment, document_ref) = (AccountKey::of(&chosen), self.moment(&chosen), chosen.head.document_ref);
        let place = self.place_of(document_ref).ok_or("an unknown document")?;
        let is_owed =
            chosen.head.kind != DocumentKind::Credit && chosen.status == LifecycleStatus::Issued && Self::rest_of(&chosen) > 0;
        let expected = if undo { chosen.status == LifecycleStatus::Uncollectible } else { is_owed };
        let taken =
            self.on_account(if undo { "undone write-off" } else { "write-off" }, &key, expected, |account, mut id_generator| {
                if undo {
                    account.reverse_write_off(document_ref, None, &moment, &mut id_generator)
                } else {
                    account.write_off(document_ref, None, &moment, &mut id_generator)
                }
            })?;
        self.tell(Deed::Money(MoneyDeed::WriteOff { place, undo }), taken)
    }

    fn kept(&mut self, key: &AccountKey) -> &mut AccountState {
        self.money.accounts.get_mut(key).expect("an account")
    }

    /// Runs a decision of an account. A refusal leaves the account unchanged.
    fn on_account(
        &mut self,
        what: &str,
        key: &AccountKey,
        expected: bool,
        decide: impl FnOnce(&mut ReceivablesAccount, &mut dyn FnMut() -> Uuid) -> Result<(), Refusal>,
    ) -> Checked<bool> {
        let applies = self.model.catalog.customer.applies_balance;
        let Some(kept) = self.money.accounts.get(key) else {
            return if expected { Err(format!("no account for a {what}")) } else { Ok(false) };
        };
        let mut account = kept.account.clone();
        account.set_applies_balance(applies);
        // Drafts and void documents are also loaded with an account.
        let documents = self.book.documents().filter(|document| AccountKey::of(document) == *key).cloned().collect();
        account.add(billing_domain::receivables::AccountRows { documents, ..Default::default() });
        let mut ids = self.ids;
        let mut id_generator = || {
            ids += 1;
            Uuid::from_u128(ids)
        };
        let made = decide(&mut account, &mut id_generator);
        self.ids = ids;
        match (made, expected) {
            (Ok(()), true) => {
                self.kept(key).by_hand |= !applies;
                self.keep(key, account)?;
                self.note(&format!("{what} taken"));
                Ok(true)
            }
            (Err(Refusal::Broken(why)), _) => Err(format!("broken: {why}")),
            (Err(_), false) => {
                self.note(&format!("{what} refused"));
                Ok(false)
            }
            (Ok(()), false) => Err(format!("a {what} was taken")),
            (Err(refusal), true) => Err(format!("a {what} was refused: {refusal:?}")),
        }
    }

    /// Checks the amounts owed, computed only from totals and payments.
    pub(crate) fn check_money(&self) -> Checked {
        for (key, kept) in &self.money.accounts {
            let account = &kept.account;
            let written_off = Money::from_minor(kept.written_off, key.currency);
            let wrong = check_account(account, written_off).map_err(|refusal| format!("{refusal:?}"))?;
            if !wrong.is_empty() {
                return Err(format!("the account's own check: {wrong:?}"));
            }
            let (mut billed, mut due, mut given_up, mut unapplied) = (0, 0, 0, 0);
            for document in self.book.documents().filter(|document| AccountKey::of(document) == *key) {
                let owed = document.owed().map_err(|error| format!("{error:?}"))?;
                let state = document.state().map_err(|error| format!("{error:?}"))?;
                let amount = owed.amount_due.map_or(0, Money::minor);
                let left = owed.unapplied.map_or(0, Money::minor);
                if let Some(total) = document.total.filter(|_| document.status.is_issued()) {
                    billed += sign(document.head.kind) * total.minor();
                    let of_it = document.settlement.paid.minor() + document.settlement.credits.minor();
                    let is_credit = document.head.kind == DocumentKind::Credit;
                    let covered = if is_credit {
                        document.settlement.used.minor() + left
                    } else {
                        of_it + amount + owed.written_off.minor()
                    };
                    if covered != total.minor() || amount < 0 || left < 0 || owed.written_off.minor() < 0 {
                        return Err(format!("{} of {total}: {owed:?} {:?}", self.reported(document), document.settlement));
                    }
                    let expected = match (is_credit, amount, owed.written_off.minor(), left) {
                        (true, _, _, 0) => DocumentState::Settled,
                        (true, ..) => DocumentState::Issued,
                        (false, 0, 0, _) => DocumentState::Paid,
                        (false, 0, ..) => DocumentState::Uncollectible,
                        (false, amount, ..) if amount == total.minor() => DocumentState::Issued,
                        _ => DocumentState::PartiallyPaid,
                    };
                    if state != expected {
                        return Err(format!("{} is {state:?}, not {expected:?}", self.reported(document)));
                    }
                    due += amount;
                    given_up += owed.written_off.minor();
                    unapplied += left;
                } else if owed.unapplied.is_some() || document.status.is_void() && owed.amount_due.is_some() {
                    return Err(format!("{} owes {owed:?}", self.reported(document)));
                }
            }
            for payment in account.payments() {
                unapplied += payment.unapplied().expect("small amounts").minor();
            }
            if billed - kept.received != due + given_up - unapplied {
                return Err(format!(
                    "{key:?}: billed {billed}, received {}, but due {due}, written off {given_up}, unapplied {unapplied}",
                    kept.received
                ));
            }
            if !kept.by_hand && due > 0 && unapplied > 0 {
                return Err(format!("{key:?}: {due} are due beside a balance of {unapplied}"));
            }
        }
        Ok(())
    }
}
