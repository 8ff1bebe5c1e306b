//! Edits, cancels, resumes and quantities (billing rules 7).

use std::collections::BTreeSet;
use std::rc::Rc;

use billing_domain::calendar::Timestamp;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::patch::Patch;

use super::calendar::{Date, plus};
use super::terms::{CutBy, Item, Product, Refused, Stretch, Terms, replaced};
use super::{Model, State, Verdict};
use crate::histories::spec::*;

/// The known facts about documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Products that have billed or have usage.
    pub(crate) begun: BTreeSet<u16>,
    /// Products that may have begun: their documents are void, or their events are deleted.
    pub(crate) maybe_begun: BTreeSet<u16>,
    /// Service periods with an issued document in force: product and first day.
    pub(crate) issued: BTreeSet<(u16, Date)>,
    /// Service periods for which children of events are issued, or wait to be, or corrections are issued: product and first day.
    /// Their amounts can sum to zero.
    pub(crate) issued_children: BTreeSet<(u16, Date)>,
}

/// Returns whether two products have the same pricing on the same day.
pub(super) fn comes_twice(products: &[Product]) -> bool {
    products.iter().enumerate().any(|(i, a)| {
        products[..i].iter().any(|b| {
            a.pricing() == b.pricing()
                && a.periods.iter().any(|one| b.periods.iter().any(|other| one.start < other.end && other.start < one.end))
        })
    })
}

/// Returns the values of an element that differ from the newest agreed terms, and whether it names the same line items.
fn beyond(element: &Element, newest: &Terms) -> (Element, bool) {
    let mut rest = element.clone();
    rest.minimum_fee = rest.minimum_fee.unless(newest.minimum_fee.as_ref());
    rest.entity = match rest.entity {
        // Naming the entity that already bills changes nothing.
        Patch::Set(entity) if entity == newest.entity => Patch::Keep,
        other => other.unless(newest.stated_entity.as_ref()),
    };
    rest.cycle = match rest.cycle {
        Patch::Clear => Patch::Set((billing_domain::contract::schedule::CycleUnit::Monthly, 1)),
        other => other,
    }
    .unless(Some(&newest.cycle));
    rest.payment_time = match rest.payment_time {
        Patch::Clear => Patch::Set(billing_domain::contract::terms::PaymentTime::AfterUse),
        other => other,
    }
    .unless(Some(&newest.payment_time));
    if rest.entity == Patch::Set(newest.entity) {
        rest.entity = Patch::Keep;
    }
    rest.issue_day = rest.issue_day.unless(newest.issue_day.as_ref());
    rest.tax = rest.tax.unless(newest.tax.as_ref());
    rest.category = rest.category.unless(newest.category.as_ref());
    rest.discount = rest.discount.unless(newest.discount.as_ref());
    let mut same_set = false;
    match &mut rest.items {
        Patch::Set(requests) => {
            let agreed = |id: &str| newest.items.iter().find(|item| item.id == id);
            for request in requests.iter_mut() {
                if let Some(item) = agreed(request.id) {
                    *request = item_beyond(request.clone(), item);
                }
            }
            same_set = requests.len() == newest.items.len() && requests.iter().all(|request| agreed(request.id).is_some());
            if same_set && requests.iter().all(says_nothing) {
                rest.items = Patch::Keep;
            }
        }
        Patch::Clear if newest.all_items => rest.items = Patch::Keep,
        Patch::Clear | Patch::Keep => {}
    }
    (rest, same_set)
}

fn item_beyond(request: ItemRequest, item: &Item) -> ItemRequest {
    let (price, usage) = match &item.charge {
        ChargeSpec::Fixed { price, .. } => (price, None),
        ChargeSpec::Usage(usage) => (&usage.price, Some(usage)),
    };
    ItemRequest {
        id: request.id,
        quantities: request.quantities.filter(|list| *list != item.quantities),
        price: request.price.unless(Some(price)),
        included: request.included.unless(usage.map(|usage| &usage.included)),
        prepaid: request.prepaid.unless(usage.and_then(|usage| usage.prepaid.as_ref())),
        minimum: request.minimum.unless(usage.and_then(|usage| usage.minimum.as_ref())),
        maximum: request.maximum.unless(usage.and_then(|usage| usage.maximum.as_ref())),
    }
}

fn overrides(request: &ItemRequest) -> bool {
    request.price.is_named()
        || request.included.is_named()
        || request.prepaid.is_named()
        || request.minimum.is_named()
        || request.maximum.is_named()
}

fn says_nothing(request: &ItemRequest) -> bool {
    !overrides(request) && request.quantities.is_none()
}

/// Returns whether an element names a value that takes effect on the edit's day. Notes, net terms, quantities, and first and
/// last days do not.
fn is_dated(rest: &Element, same_set: bool) -> bool {
    let items = match &rest.items {
        Patch::Keep => false,
        Patch::Clear => true,
        Patch::Set(requests) => !same_set || requests.iter().any(overrides),
    };
    items
        || rest.reprice
        || rest.minimum_fee.is_named()
        || rest.entity.is_named()
        || rest.cycle.is_named()
        || rest.payment_time.is_named()
        || rest.issue_day.is_named()
        || rest.tax.is_named()
        || rest.category.is_named()
        || rest.discount.is_named()
}

/// Returns whether consecutive stretches bill the same. An edit can merge them.
fn splits_by_name(product: &Product) -> bool {
    product.whole.windows(2).any(|two| two[0].to == two[1].from && two[0].terms.shows_as(&two[1].terms))
}

/// The product that an element matches.
enum Matched {
    Product(u16),
    New,
}

impl Model {
    fn matches(&self, elements: &[Element], now: Timestamp) -> Result<Verdict<Vec<Matched>>, Refused> {
        let mut found: Vec<Option<Matched>> = elements.iter().map(|_| None).collect();
        let mut taken = BTreeSet::new();
        for (element, found) in elements.iter().zip(&mut found) {
            let Some(no) = element.no else { continue };
            match self.products.iter().find(|product| product.no == no) {
                None => return Err("unknown_product"),
                Some(product) if product.pricing() != element.pricing => return Err("pricing_mismatch"),
                Some(_) if !taken.insert(no) => return Err("ambiguous_product"),
                Some(_) => *found = Some(Matched::Product(no)),
            }
        }
        for (element, found) in elements.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let same = self.products.iter().filter(|product| {
                product.pricing() == element.pricing && Some(product.start()) == element.start && !taken.contains(&product.no)
            });
            let same: Vec<u16> = same.map(|product| product.no).collect();
            match same.as_slice() {
                [] => {}
                [no] => {
                    taken.insert(*no);
                    *found = Some(Matched::Product(*no));
                }
                _ => return Ok(Verdict::Skip("two products of one start")),
            }
        }
        for (i, element) in elements.iter().enumerate() {
            if found[i].is_some() {
                continue;
            }
            if elements.iter().zip(&found).filter(|(other, found)| other.pricing == element.pricing && found.is_none()).count()
                > 1
            {
                return Ok(Verdict::Skip("several unmatched elements of a pricing"));
            }
            let mut left = Vec::new();
            for product in
                self.products.iter().filter(|product| product.pricing() == element.pricing && !taken.contains(&product.no))
            {
                let Some(today) = self.today(product, now) else { return Ok(Verdict::Skip("two todays")) };
                if product.end().is_some_and(|end| today < end) {
                    left.push(product.no);
                }
            }
            found[i] = Some(match left.as_slice() {
                [] => Matched::New,
                [no] => Matched::Product(*no),
                _ => return Err("ambiguous_product"),
            });
        }
        Ok(Verdict::Take(found.into_iter().map(|found| found.expect("every element is matched")).collect()))
    }

    /// Returns the products after an edit.
    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    pub(crate) fn edited(&self, request: &EditRequest, facts: &Facts, now: Timestamp) -> Verdict<Vec<Product>> {
        let mut doubt = None;
        match self.state(now) {
            None => return Verdict::Skip("two states"),
            Some(State::Cancelling | State::Cancelled) => return Verdict::Refuse("contract_over"),
            Some(State::Pending | State::Active | State::Completed) => {}
        }
        if matches!(request.since, From::Day(day) if day < self.first_day) {
            return Verdict::Refuse("before the first day");
        }
        let matched = match self.matches(&request.elements, now) {
            Ok(Verdict::Take(matched)) => matched,
            Ok(Verdict::Skip(why)) => return Verdict::Skip(why),
            Ok(_) => unreachable!("no other verdict on matches"),
            Err(why) => return Verdict::Refuse(why),
        };
        let mut next = self.products.clone();
        for product in &mut next {
            if matched.iter().any(|matched| matches!(matched, Matched::Product(no) if *no == product.no)) {
                continue;
            }
            let Some(today) = self.today(product, now) else { return Verdict::Skip("two todays") };
            let Some(end) = product.end() else { continue };
            // An ended product bills no more. A product that was left out before keeps its end.
            if end <= today || product.cut.is_some() {
                continue;
            }
            let day = match request.since {
                From::Next => ends_with_period(product, today),
                From::Current => plus(today, 1).max(product.first_day().expect("the product bills")),
                From::Day(day) => day,
            };
            let day = if matches!(request.since, From::Current) && product.first_day().is_some_and(|first| today < first) {
                product.first_day().expect("the product bills")
            } else {
                day
            };
            // A product that is left out in its last period keeps its end when it is left out again.
            product.cut = Some((day.min(end), CutBy::Removal));
            product.count_periods();
        }
        let mut added = Vec::new();
        for (element, matched) in request.elements.iter().zip(&matched) {
            match matched {
                Matched::New => {
                    let no = next.iter().chain(&added).map(|product: &Product| product.no + 1).max().unwrap_or(0);
                    match Terms::agree(element, &self.catalog) {
                        Ok(terms) => added.push(Product::new(no, terms)),
                        Err(why) => return Verdict::Refuse(why),
                    }
                }
                Matched::Product(no) => {
                    let product = next.iter_mut().find(|product| product.no == *no).expect("the matched product");
                    match self.patched(product, element, request, facts, now) {
                        Verdict::Take(patched) => *product = patched,
                        Verdict::May(why, patched) => {
                            doubt = doubt.or(Some(why));
                            *product = patched;
                        }
                        Verdict::Refuse(why) => return Verdict::Refuse(why),
                        Verdict::Skip(why) => return Verdict::Skip(why),
                    }
                }
            }
        }
        next.extend(added);
        if comes_twice(&next) {
            return Verdict::Refuse("duplicate_product");
        }
        if !self.keeps_usage(&next) {
            return Verdict::Refuse("usage_already_reported");
        }
        if !self.keeps_charges(&next) {
            return Verdict::Refuse("charge_already_recorded");
        }
        match doubt {
            Some(why) => Verdict::May(why, next),
            None => Verdict::Take(next),
        }
    }

    #[expect(clippy::too_many_lines, reason = "the model follows the order of the rules")]
    fn patched(
        &self,
        product: &Product,
        element: &Element,
        request: &EditRequest,
        facts: &Facts,
        now: Timestamp,
    ) -> Verdict<Product> {
        let Some(today) = self.today(product, now) else { return Verdict::Skip("two todays") };
        let mut next = product.clone();
        let newest = Rc::clone(product.newest());
        let (full, full_same_set) = beyond(element, &newest);
        let ids = |terms: &Terms| terms.items.iter().map(|item| item.id).collect::<BTreeSet<_>>();
        let everywhere = product.whole.iter().all(|stretch| ids(&stretch.terms) == ids(&newest));
        let (rest, same_set) = if request.since == From::Next || request.version {
            (full, full_same_set)
        } else {
            (element.clone(), full_same_set && everywhere)
        };
        let Some(end) = product.end() else {
            return Verdict::Skip("a product that never bills");
        };
        let is_over = end <= today;
        let dated = is_dated(&rest, same_set);
        if is_over && product.whole.iter().any(|stretch| stretch.from >= end) {
            return Verdict::Skip("P13: a product that ended before its newest terms came, which no answer shows");
        }
        let moves = element.start.is_some_and(|start| start != product.start());
        let agreed_end = element.end.filter(|new| *new != newest.end);
        let goes_on = is_over && element.end.is_some_and(|new| new > end);
        let new_end = if is_over { agreed_end.filter(|new| *new != end) } else { agreed_end };
        if is_over && !goes_on && new_end.is_none() {
            match (request.since, dated || rest.items.is_named()) {
                _ if moves => return Verdict::Skip("an ended product's first day"),
                _ if quantities_of(&rest).next().is_some() => return Verdict::Skip("an ended product's quantities"),
                (_, false) => return Verdict::Take(next),
                // No billed day is left that the edit could change.
                (From::Next | From::Current, true) => return self.without_days(next, &rest, same_set, None),
                (From::Day(day), true) if day >= end => return self.without_days(next, &rest, same_set, None),
                (From::Day(_), true) if product.cut.is_some() => return Verdict::Skip("the past terms of a product left out"),
                (From::Day(_), true) => {}
            }
        }
        if is_over && new_end.is_some() && (moves || quantities_of(element).next().is_some()) {
            return Verdict::Skip("an ended product's end together with its start or quantities");
        }
        // The day from which an ended product continues. Billed days are not billed again. The days in between are not billed.
        let mut again = None;
        if goes_on {
            match request.since {
                From::Day(day) if day >= element.end.expect("a named end") => {
                    return Verdict::Refuse("an ended product that goes on after its end");
                }
                From::Day(day) => again = Some(day.max(end)),
                From::Next | From::Current => return Verdict::Refuse("product_over"),
            }
        }
        let mut put_back = false;
        // A product that is restored before its end continues without a gap.
        if next.cut.is_some() && (!is_over || goes_on) {
            if self.was_resumed {
                return Verdict::Skip("P12: put back after a cancel was taken back");
            }
            next.cut = None;
            next.count_periods();
            put_back = true;
        }
        let base = next.clone();
        let mut doubt = None;
        let start = element.start.unwrap_or(product.start());
        // The first day as the edit leaves it counts.
        let begun = facts.begun.contains(&product.no) || start <= today;
        if moves {
            if facts.begun.contains(&product.no) {
                return Verdict::Refuse("already_started");
            }
            if product.cut.is_some() || rest.issue_day.is_named() {
                return Verdict::Skip("a first day that moves together with other things");
            }
            if facts.maybe_begun.contains(&product.no) {
                doubt = Some("has it begun?");
            }
        }
        if let Some(new) = new_end {
            if facts.maybe_begun.contains(&product.no) && !begun {
                return Verdict::Skip("an end, and has it begun?");
            }
            let first = product.first_day().expect("the product bills");
            // The first day that is billed by only one of the two ends.
            let changes = new.min(end);
            let next_period = match product.period_at(today) {
                Some(period) if period.end == end => Some(period.whole.1),
                Some(period) => Some(period.end),
                None => product.next_start(today),
            };
            let is_asked_for = match request.since {
                From::Next => false,
                From::Current => true,
                From::Day(day) => day <= changes,
            };
            let is_early = next_period.is_none_or(|start| changes < start);
            if begun && !goes_on && first <= today && new != end && is_early && !is_asked_for {
                return Verdict::Refuse("ends_before_next_period");
            }
            let last = &next.whole.last().expect("a stretch").terms;
            if begun && last.is_one_time() && new > last.anchor {
                return Verdict::Refuse("not_retroactive: billed once");
            }
            if !begun && rest.issue_day.is_named() {
                return Verdict::Skip("an end and an issue day of a product that hasn't begun");
            }
            // The named end replaces the end from the removal.
            next.cut = None;
        }
        if (moves || new_end.is_some())
            && let Err(why) = next.cover(start, new_end.unwrap_or(next.until), begun)
        {
            return Verdict::Refuse(why);
        }
        if let Some(again) = again.filter(|again| *again > end) {
            let mut whole: Vec<Stretch> = Vec::new();
            for stretch in &next.whole {
                for (from, to) in [(stretch.from, stretch.to.min(end)), (stretch.from.max(again), stretch.to)] {
                    if from < to {
                        whole.push(Stretch { from, to, ..stretch.clone() });
                    }
                }
            }
            whole.sort_by_key(|stretch| stretch.from);
            next.whole = whole;
            next.count_periods();
        }
        if full_same_set && !everywhere && is_dated(&rest, same_set) && rest.items.is_named() {
            return Verdict::Skip("P7: the newest line items with other values, and others before");
        }
        if let Patch::Set(requests) = &rest.items {
            let again = |request: &&ItemRequest| {
                product.ever.contains(&request.id)
                    && product.whole.iter().any(|stretch| !ids(&stretch.terms).contains(request.id))
            };
            if requests.iter().any(|request| again(&request)) {
                return Verdict::Skip("P11: a line item that comes back");
            }
        }
        if matches!(rest.items, Patch::Clear) && product.ever.len() > newest.items.len() {
            return Verdict::Skip("P11: a line item that comes back");
        }
        // Quantities have their own dates.
        for (id, list) in quantities_of(&rest) {
            let known = |stretch: &Stretch| stretch.terms.items.iter().find(|item| item.id == id).map(|item| item.charge.clone());
            match next.whole.last().and_then(known) {
                Some(ChargeSpec::Fixed { .. }) => {}
                Some(ChargeSpec::Usage(_)) => return Verdict::Refuse("quantities of usage"),
                None => return Verdict::Skip("quantities of a new line item"),
            }
            set_quantities(&mut next, id, |steps| replaced(steps, list));
        }
        let Some(first) = next.first_day() else { return Verdict::Skip("a product that never bills") };
        let carries = product.periods.iter().any(|period| period.terms.payment_time == PaymentTime::DuringUse);
        if put_back && carries && facts.begun.contains(&product.no) {
            doubt = Some("L10: usage of a product that is put back");
        }
        if !is_dated(&rest, same_set) && new_end.is_none() && !moves {
            let splits = |day: Date| next.period_at(day).is_some_and(|period| period.start != day);
            return match request.since {
                From::Day(day) if splits(day) && element.items.is_named() => {
                    Verdict::May("the agreed line items, from within a period", next)
                }
                _ => doubt.map_or(Verdict::Take(next.clone()), |why| Verdict::May(why, next)),
            };
        }
        let last_end = next.end().unwrap_or(first);
        let from = match request.since {
            _ if !is_dated(&rest, same_set) => last_end,
            From::Next | From::Current if today < first || product.first_day().is_some_and(|first| today < first) => Date::MIN,
            From::Next => next.next_start(today).unwrap_or(last_end),
            // The current period begins on the same day under an earlier end.
            From::Current => match base.period_at(today).or(next.period_at(today)) {
                Some(period) => period.start,
                None => next.next_start(today).unwrap_or(last_end),
            },
            // The terms of the first day move with it.
            From::Day(day) if day <= first => Date::MIN,
            From::Day(day) if day >= last_end => day,
            From::Day(day) => match next.period_at(day) {
                Some(period) if period.start == day => day,
                Some(_) if splits_by_name(&next) => return Verdict::Skip("stretches that only differ in what they state"),
                Some(_) if self.changes_nothing(&next, &rest, same_set, day) => {
                    return Verdict::May("not_a_period_start, and nothing changes in effect", next);
                }
                Some(_) if self.begins_later(&next, &rest, same_set, day) => {
                    doubt = Some("not_a_period_start, and what changes begins later");
                    day
                }
                Some(_) if beyond_is_nothing(element, &newest) => {
                    return Verdict::May("not_a_period_start, and nothing changes", next);
                }
                Some(_) => return Verdict::Refuse("not_a_period_start"),
                None => return Verdict::Skip("a change in a gap"),
            },
        };
        let from = if from <= first { Date::MIN } else { from };
        if is_dated(&rest, same_set) && from >= last_end {
            // No billed day is left that the edit could change.
            return self.without_days(next, &rest, same_set, doubt);
        }
        let mut stretches = Vec::new();
        for stretch in &next.whole {
            if stretch.from < from {
                stretches.push(Stretch { to: stretch.to.min(from), ..stretch.clone() });
            }
            if from < stretch.to {
                let start = stretch.from.max(from);
                let terms = match is_dated(&rest, same_set) {
                    true => stretch.terms.with(&rest, same_set, &self.catalog).map(Rc::new),
                    false => Ok(Rc::clone(&stretch.terms)),
                };
                match terms {
                    Ok(terms) => stretches.push(Stretch { from: start, to: stretch.to, terms }),
                    Err(why) => return Verdict::Refuse(why),
                }
            }
        }
        // Terms that are equal before and after a day do not begin on that day.
        let mut merged: Vec<Stretch> = Vec::new();
        for stretch in stretches {
            match merged.last_mut() {
                Some(before) if before.to == stretch.from && before.terms == stretch.terms => before.to = stretch.to,
                _ => merged.push(stretch),
            }
        }
        let mut changed = Product { whole: merged, ..next.clone() };
        changed.count_periods();
        // The structure of documents changes only from a period without an issued document. A restored period may also count,
        // because its document is issued.
        let structure_at = |product: &Product, day: Date| {
            let applied = product.applied();
            let stretch = applied.iter().find(|stretch| stretch.from <= day && day < stretch.to);
            stretch.map(|stretch| stretch.terms.structure())
        };
        let issued = facts.issued.iter().filter(|(no, _)| *no == product.no).map(|(_, start)| *start);
        let starts: BTreeSet<Date> = product.periods.iter().map(|period| period.start).chain(issued).collect();
        let is_restructured = |start: &&Date| {
            let after = structure_at(&changed, **start);
            after.is_some() && structure_at(product, **start).is_some_and(|before| after != Some(before))
        };
        if let Some(restructured) = starts.iter().find(is_restructured) {
            let from_there = |(no, start): &(u16, Date)| *no == product.no && start >= restructured;
            let is_planned = product.periods.iter().any(|period| period.start == *restructured);
            let is_issued = |issued: &BTreeSet<(u16, Date)>| issued.contains(&(product.no, *restructured));
            if is_planned && is_issued(&facts.issued) {
                return Verdict::Refuse("not_retroactive");
            }
            if is_planned && is_issued(&facts.issued_children) {
                return Verdict::Refuse("not_retroactive: children or corrections are issued");
            }
            if facts.issued.iter().chain(&facts.issued_children).any(from_there) {
                doubt = Some("a later period, or one that comes back, is issued");
            }
        }
        // Usage stays in its period. A period with another first day is another period. The plan decides which period usage gets.
        let begins = |product: &Product, day| product.period_at(day).map(|period| period.start);
        let events = self.events.iter().filter(|event| !event.deleted && event.product == product.no);
        if events.into_iter().any(|event| begins(product, event.day) != begins(&changed, event.day)) {
            doubt = Some("L1: usage gets another period");
        }
        match doubt {
            Some(why) => Verdict::May(why, changed),
            None => Verdict::Take(changed),
        }
    }

    /// Returns the verdict on an edit that would hold after a product's last day. An edit changes every field that it names, or
    /// is refused.
    fn without_days(&self, product: Product, rest: &Element, same_set: bool, doubt: Option<&'static str>) -> Verdict<Product> {
        let newest = Rc::clone(product.newest());
        match newest.with(rest, same_set, &self.catalog) {
            Err(why) => Verdict::Refuse(why),
            Ok(terms) if terms == *newest => doubt.map_or(Verdict::Take(product.clone()), |why| Verdict::May(why, product)),
            Ok(terms) if terms.shows_as(&newest) => Verdict::May("an edit without effect after the last day", product),
            Ok(_) => Verdict::Refuse("product_over"),
        }
    }

    /// Returns whether an element changes no billed value from a day on.
    fn changes_nothing(&self, product: &Product, rest: &Element, same_set: bool, from: Date) -> bool {
        product
            .whole
            .iter()
            .filter(|stretch| from < stretch.to)
            .all(|stretch| stretch.terms.with(rest, same_set, &self.catalog).is_ok_and(|terms| terms.shows_as(&stretch.terms)))
    }

    /// Returns whether an element changes no billed value in the terms of a day.
    fn begins_later(&self, product: &Product, rest: &Element, same_set: bool, day: Date) -> bool {
        let applied = product.applied();
        let of_day = applied.iter().find(|stretch| stretch.from < day && day < stretch.to);
        of_day.is_some_and(|stretch| {
            stretch.terms.with(rest, same_set, &self.catalog).is_ok_and(|terms| terms.shows_as(&stretch.terms))
        })
    }

    /// Returns whether every event still has a period and a line item.
    fn keeps_usage(&self, next: &[Product]) -> bool {
        self.events.iter().filter(|event| !event.deleted).all(|event| {
            let product = next.iter().find(|product| product.no == event.product).expect("products are kept");
            product.period_at(event.day).is_some_and(|period| period.terms.counts(event.usage, event.label))
        })
    }

    /// Returns whether every charge still has a period in its currency.
    fn keeps_charges(&self, next: &[Product]) -> bool {
        self.charges.iter().filter(|charge| !charge.deleted).all(|charge| {
            let product = next.iter().find(|product| product.no == charge.product).expect("products are kept");
            product.period_at(charge.day).is_some_and(|period| period.terms.currency == charge.currency)
        })
    }

    /// Returns the products after a cancel.
    pub(crate) fn cancelled(&self, last_day: LastDay, now: Timestamp) -> Verdict<Vec<Product>> {
        let state = match self.state(now) {
            None => return Verdict::Skip("two states"),
            Some(State::Cancelled) => return Verdict::Refuse("cancelled twice"),
            Some(state) => state,
        };
        let whole_end = self.products.iter().filter_map(Product::end).max();
        if let (LastDay::Day(day), Some(end)) = (last_day, whole_end)
            && (day < plus(self.first_day, -1) || day >= end)
        {
            return Verdict::Refuse("a last day outside the contract");
        }
        let mut next = self.products.clone();
        for product in &mut next {
            let Some(today) = self.today(product, now) else { return Verdict::Skip("two todays") };
            let Some(end) = product.end() else { continue };
            let day = match last_day {
                LastDay::PeriodEnd => ends_with_period(product, today),
                LastDay::Today => plus(today, 1),
                LastDay::Day(day) => plus(day, 1),
            };
            // Products that have not started never start.
            let first = product.first_day().expect("the product bills");
            let day = if last_day == LastDay::Today && today < first { first } else { day };
            if day < end {
                product.cut = Some((day, CutBy::Cancel));
                product.count_periods();
            }
        }
        if !self.keeps_usage(&next) {
            return Verdict::Refuse("usage_already_reported");
        }
        if !self.keeps_charges(&next) {
            return Verdict::Refuse("charge_already_recorded");
        }
        match state {
            State::Cancelling => {
                let next_end = next.iter().filter_map(Product::end).max();
                if next_end < whole_end {
                    Verdict::Take(next)
                } else {
                    Verdict::May("cancelled again without an earlier day", next)
                }
            }
            State::Completed => Verdict::May("a completed contract cancelled", next),
            State::Pending | State::Active | State::Cancelled => Verdict::Take(next),
        }
    }

    /// Returns the products after a resume.
    pub(crate) fn resumed(&self, now: Timestamp) -> Verdict<Vec<Product>> {
        let Some(before) = &self.before_cancel else { return Verdict::Refuse("not cancelled") };
        if self.products.iter().zip(before).any(|(now, before)| before.bills() && !now.bills()) {
            return Verdict::Skip("P2b: a product that never started, resumed");
        }
        match self.state(now) {
            None => Verdict::Skip("two states"),
            Some(State::Cancelling) => Verdict::Take(before.clone()),
            Some(State::Cancelled) if self.products.iter().all(|product| !product.bills()) => {
                Verdict::May("an annulled contract resumed", before.clone())
            }
            Some(_) => Verdict::Refuse("contract_over"),
        }
    }

    /// Returns the products after a quantity change.
    pub(crate) fn with_quantity(&self, change: &QuantityRequest, now: Timestamp) -> Verdict<Vec<Product>> {
        if self.before_cancel.is_some() {
            return Verdict::Skip("quantities of a cancelled contract");
        }
        let product = self.product(change.product);
        let Some(today) = self.today(product, now) else { return Verdict::Skip("two todays") };
        if product.end().is_none_or(|end| end <= today) || product.cut.is_some() {
            return Verdict::Skip("quantities of an ended product");
        }
        if product.whole.last().is_some_and(|last| product.end().is_none_or(|end| end <= last.from)) {
            return Verdict::Skip("quantities of terms planned for after the end");
        }
        let item = product.newest().items.iter().find(|item| item.id == change.item);
        match item.map(|item| &item.charge) {
            None => return Verdict::Refuse("no such line item"),
            Some(ChargeSpec::Usage(_)) => return Verdict::Refuse("quantities of usage"),
            Some(ChargeSpec::Fixed { .. }) => {}
        }
        let asked = change.from.unwrap_or(today.max(product.first_day().expect("the product bills")));
        let from = match (change.prorate, product.period_at(asked)) {
            (true, _) => asked,
            (false, Some(period)) if period.start == asked => {
                return Verdict::Skip("a step on a period's first day, not prorated");
            }
            (false, Some(period)) => period.end,
            (false, None) => return Verdict::Skip("a step outside, not prorated"),
        };
        let mut next = self.products.clone();
        let changed = next.iter_mut().find(|other| other.no == product.no).expect("the product exists");
        set_quantities(changed, change.item, |steps| {
            let mut steps: Vec<_> = steps.iter().filter(|(day, _)| *day != from).copied().collect();
            steps.push((from, change.quantity));
            steps.sort_unstable();
            steps
        });
        if product.period_at(from).is_none() { Verdict::May("a step outside", next) } else { Verdict::Take(next) }
    }
}

/// The last day of a cancel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LastDay {
    PeriodEnd,
    Today,
    Day(Date),
}

/// A quantity change.
#[derive(Clone, Debug)]
pub(crate) struct QuantityRequest {
    pub(crate) product: u16,
    pub(crate) item: &'static str,
    pub(crate) quantity: Amount,
    pub(crate) from: Option<Date>,
    pub(crate) prorate: bool,
}

fn beyond_is_nothing(element: &Element, newest: &Terms) -> bool {
    let (rest, same_set) = beyond(element, newest);
    !is_dated(&rest, same_set)
}

/// Returns the first day without a product that ends with its current period.
fn ends_with_period(product: &Product, today: Date) -> Date {
    let first = product.first_day().expect("the product bills");
    if today < first {
        return first;
    }
    match product.period_at(today) {
        Some(period) => period.end,
        None => product.periods.iter().rev().map(|period| period.end).find(|end| *end <= today).expect("a past period"),
    }
}

fn quantities_of(element: &Element) -> impl Iterator<Item = (&'static str, &[(Date, Amount)])> {
    let requests = match &element.items {
        Patch::Set(requests) => requests.as_slice(),
        Patch::Keep | Patch::Clear => &[],
    };
    requests.iter().filter_map(|request| Some((request.id, request.quantities.as_deref()?)))
}

fn set_quantities(product: &mut Product, id: &str, change: impl Fn(&[(Date, Amount)]) -> Vec<(Date, Amount)>) {
    for stretch in &mut product.whole {
        let mut terms = (*stretch.terms).clone();
        for item in terms.items.iter_mut().filter(|item| item.id == id) {
            item.quantities = change(&item.quantities);
        }
        stretch.terms = Rc::new(terms);
    }
    product.count_periods();
}
