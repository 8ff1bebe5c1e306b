//! Prepaid credit in histories: given and sold grants, with a naive model of what documents take (billing rules 12).
//!
//! The model reads the net amounts of documents and the facts of grants. It computes everything else again.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::credit::{CreditGrant, CreditGrantEdit, CreditSale, NewCreditGrant};
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{BookDocument, DocumentKind, DocumentState, LifecycleStatus};
use billing_domain::ledger::Entry;
use billing_domain::ledger::credit::CreditView;
use billing_domain::money::{Currency, Money};
use billing_domain::patch::Patch;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{CreditGrantRef, DocumentRef};
use billing_domain::tax::TaxTreatment;
use billing_domain::text::OneLine;
use billing_testkit::random::Random;
use uuid::Uuid;

use crate::histories::convert;
use crate::histories::follow::{Deed, GrantDeed};
use crate::histories::generate::index;
use crate::histories::model::calendar::{Date, plus, service_date};
use crate::histories::spec::{GrantSpec, Step};
use crate::histories::world::{Checked, World, sign};

/// Families with more drafts are checked by the laws alone, because the model tries each order of a family's drafts.
const MOST_DRAFTS: usize = 5;

/// Signed amounts by tax treatment and grant.
type Takings = BTreeMap<(TaxTreatment, CreditGrantRef), i64>;

/// What issued documents of a family bill and have taken: net amounts by tax treatment, and credit.
#[derive(Clone, Default)]
struct FamilyState {
    nets: BTreeMap<TaxTreatment, i64>,
    taken: Takings,
}

impl FamilyState {
    fn add(&mut self, kind: DocumentKind, content: &DocumentContent) {
        for (treatment, net) in nets(kind, content) {
            *self.nets.entry(treatment).or_insert(0) += net;
        }
        for (key, minor) in taken(kind, content) {
            *self.taken.entry(key).or_insert(0) += minor;
        }
    }

    fn prepaid(&self, treatment: &TaxTreatment) -> i64 {
        self.taken.iter().filter(|((other, _), _)| other == treatment).map(|(_, minor)| minor).sum()
    }
}

fn nets(kind: DocumentKind, content: &DocumentContent) -> BTreeMap<TaxTreatment, i64> {
    let mut nets = BTreeMap::new();
    for product in &content.products {
        *nets.entry(product.rates.tax.clone()).or_insert(0) += sign(kind) * product.net.minor();
    }
    nets
}

fn taken(kind: DocumentKind, content: &DocumentContent) -> Takings {
    let mut taken = Takings::new();
    for prepaid in &content.prepaid {
        *taken.entry((prepaid.treatment.clone(), prepaid.grant_ref)).or_insert(0) += sign(kind) * prepaid.amount.minor();
    }
    taken
}

/// Returns the first and the last day of the lines of a document.
fn days(document: &BookDocument, content: &DocumentContent) -> (Date, Date) {
    let lines = || content.products.iter().flat_map(|product| &product.lines);
    let first = lines().map(|line| line.service_period.start()).min();
    let last = lines().map(|line| line.service_period.last_day()).max();
    (first.unwrap_or(document.head.period.start()), last.unwrap_or(document.head.period.last_day()))
}

impl World {
    fn grants(&self) -> &[CreditGrant] {
        self.book.credit().map_or(&[], |credit| &credit.grants)
    }

    /// Loads the present state and amounts of the sales of credit, as an application would.
    pub(crate) fn learn_sales(&mut self) -> Checked {
        if let Some(credit) = self.credit_now()? {
            self.book.set_credit(credit);
        }
        Ok(())
    }

    /// Returns the credit with the present state and amounts of its sales.
    pub(crate) fn credit_now(&self) -> Result<Option<CreditView>, String> {
        let Some(mut credit) = self.book.credit().cloned() else { return Ok(None) };
        for sale in credit.grants.iter_mut().filter_map(|grant| grant.sale.as_mut()) {
            let document = self.book.document(sale.document_ref).ok_or("a sale without a document")?;
            sale.state = document.state().map_err(|error| error.to_string())?;
            let net = self.book.sums_of(sale.document_ref).net(document.head.currency);
            sale.family_net = net.map_err(|error| error.to_string())?;
        }
        Ok(Some(credit))
    }

    /// Grants credit.
    pub(crate) fn grant(&mut self, spec: &GrantSpec) -> Checked {
        let sale = spec.source.and_then(|number| self.sale(number, spec.paid));
        let documents: Vec<&BookDocument> = self.book.documents().collect();
        let account = match (&sale, documents.len()) {
            (Some(document), _) => AccountKey::of(document),
            (None, 0) => self.account_of_pricing(spec.account),
            (None, count) => AccountKey::of(documents[spec.account % count]),
        };
        let today = service_date("UTC", self.now);
        let on = |days: Option<i64>| days.map(|days| plus(today, days));
        let new = NewCreditGrant {
            amount: Money::from_minor(spec.minor, account.currency).to_decimal().to_string(),
            account: account.clone(),
            name: OneLine::parse("Credit").expect("a name"),
            from: on(spec.from),
            to: on(spec.to),
            contract_ref: None,
        };
        let place = sale.as_ref().and_then(|document| self.place_of(document.head.document_ref));
        let deed = Deed::Grant(GrantDeed { new: new.clone(), sale: place });
        let mut credit = self.book.credit().cloned().unwrap_or_default();
        let sale = match sale {
            Some(document) => {
                let (document_ref, sums) = (document.head.document_ref, self.book.sums_of(document.family));
                let content = match self.frozen.get(&document_ref) {
                    Some(content) => content.clone(),
                    None => self.content(&document)?,
                };
                let is_usable = self.can_sell(&document, &content, credit.sales.contains(&document_ref));
                let made = CreditSale::of(&account, &document, (&content, &sums), credit.sales.contains(&document_ref));
                if made.is_ok() != is_usable {
                    return Err(format!("{} sells credit: {is_usable}, and {made:?}", self.reported(&document)));
                }
                let Ok(made) = made else {
                    self.note("grant refused: source");
                    return self.tell(deed, false);
                };
                credit.sales.insert(document_ref);
                Some(made)
            }
            None => None,
        };
        self.ids += 1;
        let is_right = spec.minor > 0 && spec.from.zip(spec.to).is_none_or(|(from, to)| from <= to);
        let is_sold = sale.is_some();
        let made = CreditGrant::new(new, CreditGrantRef::from_uuid(Uuid::from_u128(self.ids)), sale, self.now);
        if made.is_ok() != is_right {
            return Err(format!("a grant {spec:?} is {made:?}"));
        }
        let Ok(grant) = made else {
            self.note("grant refused");
            return self.tell(deed, false);
        };
        credit.grants.push(grant);
        self.book.set_credit(credit);
        self.note(if is_sold { "credit sold" } else { "credit given" });
        self.tell(deed, true)
    }

    /// Edits the amount and the last day of a grant.
    pub(crate) fn edit_grant(&mut self, grant: usize, minor: Option<i64>, to: Option<Option<i64>>) -> Checked {
        let Some(mut credit) = self.book.credit().cloned() else { return Ok(()) };
        let Some(index) = grant.checked_rem(credit.grants.len()) else { return Ok(()) };
        let present = &credit.grants[index];
        let today = service_date("UTC", self.now);
        let edit = CreditGrantEdit {
            to: match to {
                None => Patch::Keep,
                Some(None) => Patch::Clear,
                Some(Some(days)) => Patch::Set(plus(today, days)),
            },
            amount: minor.map(|minor| Money::from_minor(minor, present.amount.currency()).to_decimal().to_string()),
            ..CreditGrantEdit::default()
        };
        let drawn = self.drawn(present.grant_ref);
        let takes_amount =
            minor.is_none_or(|minor| minor > 0 && minor >= drawn && (present.sale.is_none() || minor == present.amount.minor()));
        let last = edit.to.clone().apply(present.to);
        let expected = takes_amount && present.from.zip(last).is_none_or(|(from, to)| from <= to);
        let made = present.edited(&edit, self.now);
        if made.is_ok() != expected {
            return Err(format!("the edit {edit:?} of {present:?} is {made:?}"));
        }
        if let Ok(edited) = made {
            credit.grants[index] = edited;
            self.book.set_credit(credit);
        }
        self.note(if expected { "grant edited" } else { "edit of a grant refused" });
        self.tell(Deed::EditGrant(index, edit), expected)
    }

    /// Returns the document that a number selects to sell credit: mostly an issued invoice without a parent.
    /// Returns an invoice that can sell credit, or sometimes another document.
    fn sale(&self, number: usize, is_paid: bool) -> Option<BookDocument> {
        let can = |document: &&BookDocument| {
            document.head.kind == DocumentKind::Invoice && document.head.parent.is_none() && document.status.is_issued()
        };
        let mut of: Vec<&BookDocument> = self.book.documents().filter(can).collect();
        if of.is_empty() || number.is_multiple_of(7) {
            of = self.book.documents().filter(|document| document.status != LifecycleStatus::Discarded).collect();
        }
        let paid: Vec<&BookDocument> =
            of.iter().filter(|document| document.state() == Ok(DocumentState::Paid)).copied().collect();
        if is_paid && !paid.is_empty() {
            of = paid;
        }
        (!of.is_empty()).then(|| of[number % of.len()].clone())
    }

    fn can_sell(&self, document: &BookDocument, content: &DocumentContent, sells: bool) -> bool {
        let head = &document.head;
        let family = self.family_state(document.family);
        let is_root = head.kind == DocumentKind::Invoice && head.parent.is_none() && document.status.is_issued();
        let takes_none = content.prepaid.is_empty() && family.taken.values().all(|minor| *minor == 0);
        is_root && nets(head.kind, content).len() == 1 && takes_none && !sells
    }

    fn account_of_pricing(&self, number: usize) -> AccountKey {
        let catalog = &self.model.catalog;
        let currency = catalog.pricings[number % catalog.pricings.len()].currency;
        AccountKey {
            customer_id: self.book.customer.id,
            entity_ref: convert::entity_ref(number % catalog.entities.len()),
            currency: Currency::from_code(currency).expect("a currency"),
        }
    }

    /// Returns the issued documents in force with their contents.
    fn issued(&self) -> impl Iterator<Item = (&BookDocument, &DocumentContent)> {
        self.frozen.iter().filter_map(|(document_ref, content)| {
            let document = self.book.document(*document_ref)?;
            document.status.is_issued().then_some((document, content))
        })
    }

    fn family_state(&self, family: DocumentRef) -> FamilyState {
        let mut state = FamilyState::default();
        for (document, content) in self.issued().filter(|(document, _)| document.family == family) {
            state.add(document.head.kind, content);
        }
        state
    }

    fn drawn(&self, grant_ref: CreditGrantRef) -> i64 {
        let of_document = |(document, content): (&BookDocument, &DocumentContent)| {
            let taken = taken(document.head.kind, content);
            taken.iter().filter(|((_, other), _)| *other == grant_ref).map(|(_, minor)| minor).sum::<i64>()
        };
        self.issued().map(of_document).sum()
    }

    /// Returns the usable credit of a grant (billing rules 12).
    fn usable(&self, grant: &CreditGrant) -> i64 {
        let amount = grant.amount.minor();
        let Some(sale) = &grant.sale else { return amount };
        let document = self.book.document(sale.document_ref).expect("a document of the book");
        let total = document.total.expect("an issued document").minor();
        let is_paid = document.settlement.paid.minor() + document.settlement.credits.minor() >= total;
        let is_available = match document.status {
            LifecycleStatus::Issued | LifecycleStatus::Uncollectible => is_paid,
            _ => false,
        };
        if !is_available {
            return 0;
        }
        let own: i64 = nets(DocumentKind::Invoice, &self.frozen[&sale.document_ref]).values().sum();
        let family: i64 = self.family_state(sale.document_ref).nets.values().sum();
        if own == 0 {
            return amount;
        }
        let part = i128::from(amount) * i128::from(family.max(0)) / i128::from(own);
        i64::try_from(part.min(i128::from(amount))).expect("at most the amount")
    }

    /// Returns the grants in the order in which they give, with what is free of each.
    fn free(&self) -> Vec<(CreditGrant, i64)> {
        let free = |grant: &CreditGrant| (grant.clone(), (self.usable(grant) - self.drawn(grant.grant_ref)).max(0));
        let mut grants: Vec<(CreditGrant, i64)> = self.grants().iter().map(free).collect();
        grants.sort_by_key(|(grant, _)| (grant.to.is_none(), grant.to, grant.sale.is_some(), grant.created_at, grant.grant_ref));
        grants
    }

    fn is_sale(&self, family: DocumentRef) -> bool {
        self.book.credit().is_some_and(|credit| credit.sales.contains(&family))
    }

    /// Returns what a document takes after the documents of a state. Changes the state, and what is free.
    fn expected(
        &self,
        document: &BookDocument,
        content: &DocumentContent,
        state: &mut FamilyState,
        free: &mut [(CreditGrant, i64)],
    ) -> Takings {
        let mut all = Takings::new();
        let (first, last) = days(document, content);
        for (treatment, net) in nets(document.head.kind, content) {
            *state.nets.entry(treatment.clone()).or_insert(0) += net;
            let (most, prepaid) = (state.nets[&treatment].max(0), state.prepaid(&treatment));
            let mut changes: Vec<(CreditGrantRef, i64)> = Vec::new();
            if prepaid > most {
                let mut excess = prepaid - most;
                for (grant, _) in free.iter().rev() {
                    let of_grant = state.taken.get(&(treatment.clone(), grant.grant_ref)).copied().unwrap_or(0);
                    let minor = excess.min(of_grant.max(0));
                    excess -= minor;
                    changes.push((grant.grant_ref, -minor));
                }
            } else {
                let mut wanted = net.min(most - prepaid).max(0);
                for (grant, left) in free.iter_mut() {
                    let fits = grant.account == AccountKey::of(document)
                        && grant.sale.as_ref().is_none_or(|sale| sale.treatment == treatment)
                        && grant.from.is_none_or(|from| from <= last)
                        && grant.to.is_none_or(|to| to >= first);
                    let minor = if fits && !self.is_sale(document.family) { wanted.min(*left) } else { 0 };
                    wanted -= minor;
                    *left -= minor;
                    changes.push((grant.grant_ref, minor));
                }
            }
            for (grant_ref, minor) in changes.into_iter().filter(|(_, minor)| *minor != 0) {
                all.insert((treatment.clone(), grant_ref), minor);
                *state.taken.entry((treatment.clone(), grant_ref)).or_insert(0) += minor;
            }
        }
        all
    }

    /// Checks the laws of credit, and what drafts take.
    pub(crate) fn check_prepaid(&self) -> Checked {
        for (document, content) in self.issued() {
            self.check_within(document, content)?;
        }
        let families: BTreeSet<DocumentRef> = self.issued().map(|(document, _)| document.family).collect();
        for family in families {
            let state = self.family_state(family);
            for treatment in state.taken.keys().map(|(treatment, _)| treatment) {
                let (net, prepaid) = (state.nets.get(treatment).copied().unwrap_or(0), state.prepaid(treatment));
                if prepaid < 0 || prepaid > net.max(0) {
                    return Err(format!("family {family} has taken {prepaid} of {net} at {treatment:?}"));
                }
            }
        }
        for grant in self.grants() {
            let drawn = self.drawn(grant.grant_ref);
            if drawn < 0 || grant.drawn.minor() != drawn || grant.usable().minor() != self.usable(grant) {
                return Err(format!("{drawn} are drawn and {} are usable of {grant:?}", self.usable(grant)));
            }
        }
        if self.grants().is_empty() { Ok(()) } else { self.check_drafts() }
    }

    /// Checks that a document takes between zero and its net amount at each tax treatment, and returns at most what it takes back.
    fn check_within(&self, document: &BookDocument, content: &DocumentContent) -> Checked {
        let nets = nets(document.head.kind, content);
        let mut sums: BTreeMap<TaxTreatment, i64> = BTreeMap::new();
        for ((treatment, _), minor) in taken(document.head.kind, content) {
            *sums.entry(treatment).or_insert(0) += minor;
        }
        for (treatment, minor) in sums {
            let net = nets.get(&treatment).copied().unwrap_or(0);
            if minor < net.min(0) || minor > net.max(0) {
                return Err(format!("{} takes {minor} of {net}", self.reported(document)));
            }
        }
        Ok(())
    }

    fn check_drafts(&self) -> Checked {
        let mut families: BTreeMap<(Date, DocumentRef), Vec<(&BookDocument, DocumentContent)>> = BTreeMap::new();
        for draft in self.book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
            let root = self.book.document(draft.family).ok_or("a family without its invoice")?;
            let content = self.content(draft)?;
            self.check_within(draft, &content)?;
            families.entry((root.head.period.start(), draft.family)).or_default().push((draft, content));
        }
        let mut free = self.free();
        let mut covered: BTreeMap<CreditGrantRef, i64> = BTreeMap::new();
        for ((_, family), drafts) in families {
            let takes: Vec<Takings> = drafts.iter().map(|(draft, content)| taken(draft.head.kind, content)).collect();
            let is_expected = |order: &[usize]| {
                let (mut state, mut free) = (self.family_state(family), free.clone());
                order.iter().all(|index| {
                    let (draft, content) = &drafts[*index];
                    self.expected(draft, content, &mut state, &mut free) == takes[*index]
                })
            };
            let mut order: Vec<usize> = (0..drafts.len()).collect();
            if drafts.len() <= MOST_DRAFTS && !any_order(&mut order, 0, &is_expected) {
                return Err(format!("the drafts of {family} take {takes:?} with {free:?} free: {drafts:?}"));
            }
            for ((_, grant_ref), minor) in takes.iter().flatten().filter(|(_, minor)| **minor > 0) {
                *covered.entry(*grant_ref).or_insert(0) += minor;
                let grant = free.iter_mut().find(|(grant, _)| grant.grant_ref == *grant_ref);
                grant.ok_or("credit of an unknown grant")?.1 -= minor;
            }
        }
        for (grant, left) in free {
            let covered = covered.get(&grant.grant_ref).copied().unwrap_or(0);
            if left < 0 || covered > 0 && self.drawn(grant.grant_ref) + covered > self.usable(&grant) {
                return Err(format!("{covered} are covered by {grant:?}"));
            }
        }
        Ok(())
    }

    /// Checks what a document took when it was issued. `later` are the later entries of the same decision. Drafts of earlier families
    /// keep their credit, so the document can take less than is free, where there are drafts.
    pub(crate) fn check_issued_credit(
        &mut self,
        document_ref: DocumentRef,
        content: &DocumentContent,
        later: &[Entry],
    ) -> Checked {
        let document = self.book.document(document_ref).ok_or("an unknown document is issued")?.clone();
        self.check_within(&document, content)?;
        if self.grants().is_empty() && content.prepaid.is_empty() {
            return Ok(());
        }
        let (mut state, mut free) = (self.family_state(document.family), self.free());
        let expected = self.expected(&document, content, &mut state, &mut free);
        let found = taken(document.head.kind, content);
        let is_after_drafts =
            self.book.documents().any(|other| other.status == LifecycleStatus::Draft && other.family != document.family)
                || later.iter().any(|entry| matches!(entry, Entry::Issued { .. } | Entry::Discarded { .. }));
        let returns = |taken: &Takings| taken.values().filter(|minor| **minor < 0).sum::<i64>();
        let takes = |taken: &Takings| taken.values().filter(|minor| **minor > 0).sum::<i64>();
        let is_right = if is_after_drafts {
            returns(&found) == returns(&expected) && takes(&found) <= takes(&expected)
        } else {
            found == expected
        };
        if !is_right {
            return Err(format!("{} takes {found:?}, not {expected:?}", self.reported(&document)));
        }
        if takes(&found) > 0 {
            self.note("credit taken at an issue");
        }
        if returns(&found) < 0 {
            self.note("credit returned at an issue");
        }
        Ok(())
    }

    /// Returns whether issued documents return credit, or change the credit of a sale.
    pub(crate) fn has_freed_credit(&self, entries: &[Entry]) -> bool {
        entries.iter().any(|entry| {
            let Entry::Issued { document_ref, issued, .. } = entry else { return false };
            let document = self.book.document(*document_ref).expect("an issued document");
            self.is_sale(document.family) || taken(document.head.kind, &issued.content).values().any(|minor| *minor < 0)
        })
    }

    /// Returns whether a void gives back only what its family has drawn, and leaves credit of at most the net amounts.
    pub(crate) fn can_give_back(&self, document: &BookDocument, content: &DocumentContent) -> bool {
        let own = taken(document.head.kind, content);
        let mut state = self.family_state(document.family);
        for (treatment, net) in nets(document.head.kind, content) {
            *state.nets.entry(treatment).or_insert(0) -= net;
        }
        for (key, minor) in &own {
            *state.taken.entry(key.clone()).or_insert(0) -= minor;
        }
        let is_lawful =
            |treatment: &TaxTreatment| state.prepaid(treatment) <= state.nets.get(treatment).copied().unwrap_or(0).max(0);
        own.values().all(|minor| *minor >= 0)
            && state.taken.values().all(|minor| *minor >= 0)
            && state.taken.keys().all(|(treatment, _)| is_lawful(treatment))
    }
}

/// Returns whether a condition holds for any order of the indexes from a position on.
fn any_order(order: &mut [usize], from: usize, holds: &impl Fn(&[usize]) -> bool) -> bool {
    if from == order.len() {
        return holds(order);
    }
    for index in from..order.len() {
        order.swap(from, index);
        if any_order(order, from + 1, holds) {
            return true;
        }
        order.swap(from, index);
    }
    false
}

/// Adds grants of credit to the steps of some histories. They are drawn apart, so that the other steps of a seed stay the same.
pub(crate) fn with_grants(seed: u64, mut steps: Vec<Step>) -> Vec<Step> {
    let r = &mut Random::new(seed ^ 0x00C0_FFEE);
    if r.percent(50) {
        return steps;
    }
    for _ in 0..r.between(1, 6) {
        let at = index(r, steps.len() + 1);
        let step = if r.percent(80) { Step::Grant(grant(r)) } else { edit_grant(r) };
        steps.insert(at, step);
    }
    steps
}

fn grant(r: &mut Random) -> GrantSpec {
    GrantSpec {
        minor: credit_amount(r),
        source: r.maybe(45, |r| index(r, 64)),
        paid: r.percent(60),
        from: r.maybe(20, |r| r.between(-90, 40)),
        to: r.maybe(40, |r| r.between(-60, 120)),
        account: index(r, 64),
    }
}

fn edit_grant(r: &mut Random) -> Step {
    let to = r.maybe(60, |r| r.maybe(70, |r| r.between(-60, 120)));
    Step::EditGrant { grant: index(r, 64), minor: r.maybe(60, credit_amount), to }
}

fn credit_amount(r: &mut Random) -> i64 {
    let most = *r.pick(&[100, 5_000, 50_000, 1_000_000]);
    r.between(0, most)
}
