//! The running totals of events, which labels select, and counting them again.

use billing_domain::catalog::Aggregation;
use billing_domain::contract::Contract;
use billing_domain::labels::LabelDigest;
use billing_domain::ledger::live_labels::LiveLabels;
use billing_domain::ledger::recount::Recount;
use billing_domain::refs::ProductNo;
use billing_domain::refusal::Refusal;
use billing_domain::usage::{CountedEvent, UsageKey, UsageTotal};

use super::World;
use crate::histories::convert;
use crate::histories::model::Event;
use crate::histories::spec::LABELS;

impl World {
    pub(super) fn key(&self, event: &Event) -> UsageKey {
        let period = self.model.product(event.product).period_at(event.day).expect("the event's period");
        UsageKey {
            contract_ref: self.book.contract.contract_ref,
            product_no: ProductNo(event.product),
            period_start: period.start,
            usage_product_ref: convert::usage_ref(event.usage),
            line_item_id: period.terms.selected(event.usage, event.label).map(convert::item_id),
        }
    }

    /// Returns the running total without an event.
    pub(super) fn without(&self, index: usize) -> UsageTotal {
        let key = self.key(&self.model.events[index]);
        let others = self.model.events.iter().enumerate().filter(|(i, event)| {
            *i != index && !event.deleted && event.usage == self.model.events[index].usage && self.key(event) == key
        });
        let mut live = LiveLabels::default();
        others.fold(UsageTotal::ZERO, |total, (i, event)| {
            let counted = live.add(&key, self.digest(event), self.counted(i, event));
            total.plus(counted).expect("small quantities")
        })
    }

    /// Returns the digest of an event's label, if its usage product counts distinct labels.
    pub(super) fn digest(&self, event: &Event) -> Option<LabelDigest> {
        let is_unique = self.model.catalog.usage[event.usage] == Aggregation::Unique;
        event.label.filter(|_| is_unique).map(|label| LabelDigest::of(LABELS[label]))
    }

    /// Returns the live events with each counted label, optionally without one event.
    pub(super) fn live_labels(&self, except: Option<usize>) -> LiveLabels {
        let mut live = LiveLabels::default();
        for (i, event) in self.model.events.iter().enumerate().filter(|(i, event)| Some(*i) != except && !event.deleted) {
            if let Some(digest) = self.digest(event) {
                let CountedEvent { .. } = live.add(&self.key(event), Some(digest), self.counted(i, event));
            }
        }
        live
    }

    /// Returns a function that counts the events of a period by the terms of a contract.
    pub(super) fn recount(&self) -> impl FnMut(&Contract, &UsageKey) -> Result<Recount, Refusal> + use<> {
        let live = self.model.events.iter().enumerate().filter(|(_, event)| !event.deleted);
        let of_event = |(i, event): (usize, &Event)| {
            (self.key(event).of_line_item(None), convert::labels(event.label), self.digest(event), self.counted(i, event))
        };
        let events: Vec<_> = live.map(of_event).collect();
        move |contract, key| {
            let mut recount = Recount::default();
            for (_, labels, digest, counted) in events.iter().filter(|(period, ..)| period == key) {
                recount.count(contract, key, labels.clone(), *digest, *counted)?;
            }
            Ok(recount)
        }
    }
}
