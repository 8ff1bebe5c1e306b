//! Laws of prices by attributes, on random lives (billing rules 4 to 7):
//! - **Twins.** A life with `where` bills the same documents as one with a usage product for each line item.
//! - **Order.** Facts that were reported late, relabeled, or selected by a later edit cost what they cost if they are reported
//!   so at once.
//!
//! `LIVES=n` plays `n` lives of each law, and `SEED=s` starts with seed `s`.
#![allow(clippy::disallowed_methods, reason = "environment variables choose the lives to play")]

use std::collections::BTreeMap;

use billing_domain::catalog::Aggregation;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::DocumentKind;
use billing_domain::party::NetTerms;
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{
    Bill, PriceList, Prices, Simulation, Terms, graduated, package, per_unit, pricing, terms, volume,
};

/// The number of lives of each law that are played by default.
const LIVES: u64 = 300;
/// After the last period with an event, so that each such period is billed, whether its draft was opened early or not.
const END: &str = "2026-07-20";
const MODELS: [&str; 5] = ["a", "b", "c", "d", ""];

/// A small generator of pseudo-random numbers: a life is repeated by its seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).expect("an index")]
    }
}

/// A price, and how it aggregates.
#[derive(Clone)]
struct Item {
    id: &'static str,
    prices: Prices,
    aggregation: Aggregation,
}

fn drawn_prices(draw: &mut Draw) -> Prices {
    let cents = |draw: &mut Draw| format!("0.{:03}", draw.below(999) + 1);
    let (first, second) = (cents(draw), cents(draw));
    let mut prices = match draw.below(4) {
        0 => per_unit(first.as_str()),
        1 => graduated([(Some("10"), first.as_str()), (None, second.as_str())]),
        2 => volume([(Some("20"), first.as_str()), (None, second.as_str())]),
        _ => package("7", first.as_str()),
    };
    if draw.one_in(3) {
        prices = prices.included(i32::try_from(draw.below(10)).expect("small"));
    }
    if draw.one_in(4) {
        prices = prices.at_least("1.50");
    }
    if draw.one_in(4) {
        prices = prices.at_most("4.00");
    }
    prices
}

/// What a life has in common in all its forms.
struct Plan {
    /// Line items for `a`, `b`, `c` with `d`, and the rest.
    items: Vec<Item>,
    /// A line item without a condition, which only the law of order has.
    every: Option<Item>,
    payment_time: PaymentTime,
    is_due_upon_usage: bool,
    has_minimum_fee: bool,
    has_discount: bool,
}

impl Plan {
    fn draw(draw: &mut Draw) -> Self {
        let aggregations = [Aggregation::Sum, Aggregation::Sum, Aggregation::Count, Aggregation::Max, Aggregation::Latest];
        let mut item = |id| Item { id, prices: drawn_prices(draw), aggregation: draw.of(&aggregations) };
        let items = vec![item("a"), item("b"), item("cd"), item("rest")];
        let every = item("every");
        Self {
            items,
            every: draw.one_in(2).then_some(every),
            payment_time: draw.of(&[PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse]),
            is_due_upon_usage: draw.one_in(4),
            has_minimum_fee: draw.one_in(3),
            has_discount: draw.one_in(3),
        }
    }

    fn terms(&self) -> Terms {
        let terms = terms("2026-01-01", "2026-12-31").pricing("plan").payment_time(self.payment_time).tax("19");
        let terms = if self.is_due_upon_usage { terms.net_terms(NetTerms::DueUponUsage) } else { terms };
        if self.has_discount { terms.discount("7.5") } else { terms }
    }

    fn listed(&self) -> PriceList {
        let list = pricing("plan").fixed("fee", "3.33");
        if self.has_minimum_fee { list.minimum_fee("9.00") } else { list }
    }

    /// Returns prices of one usage product by conditions. `is_split` gives `c` and `d` a line item, which the rest has otherwise.
    fn by_condition(&self, is_split: bool, has_every: bool) -> PriceList {
        let mut list = self.listed();
        for Item { id, prices, aggregation } in &self.items {
            let prices = prices.clone().of_usage("usage").counted_as(*aggregation);
            list = match *id {
                "rest" => list.usage(*id, prices.rest()),
                "cd" if !is_split => list,
                "cd" => list.usage(*id, prices.where_labels(&[("model", &["c", "d"])])),
                model => list.usage(*id, prices.where_labels(&[("model", &[model])])),
            };
        }
        match self.every.as_ref().filter(|_| has_every) {
            Some(Item { id, prices, aggregation }) => list.usage(*id, prices.clone().of_usage("usage").counted_as(*aggregation)),
            None => list,
        }
    }

    /// Returns the same prices with a usage product for each line item.
    fn by_product(&self) -> PriceList {
        self.items.iter().fold(self.listed(), |list, Item { id, prices, aggregation }| {
            list.usage(*id, prices.clone().of_usage(*id).aggregated(*aggregation))
        })
    }
}

fn item_of(model: &str) -> &'static str {
    match model {
        "a" => "a",
        "b" => "b",
        "c" | "d" => "cd",
        _ => "rest",
    }
}

/// Something that happens to usage on a day.
#[derive(Clone, Debug)]
enum Step {
    Event { day: String, at: String, model: &'static str, quantity: u64, name: String },
    Move { day: String, name: String, at: String },
    Quantity { day: String, name: String, quantity: u64 },
    Relabel { day: String, name: String, model: &'static str },
    Delete { day: String, name: String },
    Run { day: String },
}

fn day(number: u64) -> String {
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day");
    (first + chrono::Days::new(number)).to_string()
}

fn drawn_steps(draw: &mut Draw, relabels: bool) -> Vec<Step> {
    let mut live: Vec<String> = Vec::new();
    let mut today = 3;
    let mut steps = Vec::new();
    for number in 0..draw.below(25) + 3 {
        today = (today + draw.below(12)).min(165);
        let (on, model) = (day(today), draw.of(&MODELS));
        // No timestamp occurs twice, because of equal ones the last to arrive is the latest.
        let at = |draw: &mut Draw| format!("{}T{:02}:{:02}:00Z", day(draw.below(today.max(1))), number % 24, number % 60);
        let kind = if live.is_empty() { 0 } else { draw.below(if relabels { 10 } else { 8 }) };
        match kind {
            0..=3 => {
                let name = format!("e{number}");
                live.push(name.clone());
                steps.push(Step::Event { day: on, at: at(draw), model, quantity: draw.below(30), name });
            }
            4 => steps.push(Step::Move { day: on, name: draw_name(draw, &live), at: at(draw) }),
            5 => steps.push(Step::Quantity { day: on, name: draw_name(draw, &live), quantity: draw.below(30) }),
            6 => {
                let name = draw_name(draw, &live);
                live.retain(|other| *other != name);
                steps.push(Step::Delete { day: on, name });
            }
            7 => steps.push(Step::Run { day: on }),
            _ => steps.push(Step::Relabel { day: on, name: draw_name(draw, &live), model }),
        }
    }
    steps
}

fn draw_name(draw: &mut Draw, live: &[String]) -> String {
    live[usize::try_from(draw.below(live.len() as u64)).expect("an index")].clone()
}

/// Adds a step. Events are of the usage product that a model has.
fn with_step(story: Simulation, step: &Step, usage_of: impl Fn(&str) -> String) -> Simulation {
    match step.clone() {
        Step::Event { day, at, model, quantity, name } => {
            let labels = [("model", model)];
            let labels = if model.is_empty() { &labels[..0] } else { &labels[..] };
            let step = story.on(day).labels(labels);
            step.event(at, usage_of(model), i32::try_from(quantity).expect("small")).named(&name)
        }
        Step::Move { day, name, at } => story.on(day).update_event(&name, |event| event.at(at)),
        Step::Quantity { day, name, quantity } => {
            story.on(day).update_event(&name, |event| event.quantity(i32::try_from(quantity).expect("small")))
        }
        Step::Relabel { day, name, model } => {
            let labels = [("model", model)];
            let labels = if model.is_empty() { &labels[..0] } else { &labels[..] };
            story.on(day).update_event(&name, |event| event.labels(labels))
        }
        Step::Delete { day, name } => story.on(day).delete_event(&name),
        Step::Run { day } => story.on(day).run(),
    }
}

/// Returns each document with the amounts that its lines have.
fn documents(bill: &Bill) -> Vec<String> {
    let shown = |document: &billing_domain::simulate::SimulatedDocument| {
        let lines = document.lines().filter(|line| line.amount().minor() != 0);
        let lines: Vec<String> = lines.map(|line| format!("{} {}", line.name(), line.amount().to_decimal())).collect();
        format!("{document} {:?} {lines:?}", document.parent())
    };
    bill.all_documents().into_iter().map(shown).collect()
}

/// Returns what line items cost in each period, over all documents.
fn costs(bill: &Bill) -> BTreeMap<(String, String), i64> {
    let mut costs: BTreeMap<(String, String), i64> = BTreeMap::new();
    let mut add = |document: &billing_domain::simulate::SimulatedDocument| {
        let sign = if document.number.kind == DocumentKind::Credit { -1 } else { 1 };
        for line in document.lines() {
            let key = (line.details().period_start.to_string(), line.name().to_owned());
            *costs.entry(key).or_default() += sign * line.amount().minor();
        }
    };
    bill.documents()
        .iter()
        .filter(|document| document.state().is_ok_and(|state| state != billing_domain::document::DocumentState::Void))
        .for_each(&mut add);
    costs.retain(|_, minor| *minor != 0);
    costs
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
}

fn each_life(check: impl Fn(u64, &mut Draw)) {
    let first = number("SEED", 1);
    for seed in first..first + number("LIVES", LIVES) {
        check(seed, &mut Draw(seed));
    }
}

#[test]
fn a_life_with_conditions_bills_what_one_with_many_usage_products_bills() {
    each_life(|seed, draw| {
        let (plan, steps) = (Plan::draw(draw), drawn_steps(draw, false));
        let play = |list: PriceList, usage_of: fn(&str) -> String| -> Result<Bill, Refusal> {
            let story = Simulation::new().pricing(list).contract(plan.terms());
            steps.iter().fold(story, |story, step| with_step(story, step, usage_of)).until(END)
        };
        let with_where = play(plan.by_condition(true, false), |_| "usage".to_owned());
        let with_products = play(plan.by_product(), |model| item_of(model).to_owned());
        match (with_where, with_products) {
            (Ok(with_where), Ok(with_products)) => {
                assert_eq!(documents(&with_where), documents(&with_products), "SEED={seed} {steps:#?}");
            }
            (with_where, with_products) => {
                let refusals = (with_where.err(), with_products.err());
                assert_eq!(refusals.0, refusals.1, "SEED={seed} {steps:#?}");
            }
        }
    });
}

/// Returns the events as they are at the end, each reported once and on time.
fn in_the_end(steps: &[Step]) -> Vec<Step> {
    let mut events: BTreeMap<String, (String, &'static str, u64)> = BTreeMap::new();
    for step in steps.iter().cloned() {
        match step {
            Step::Event { at, model, quantity, name, .. } => {
                events.insert(name, (at, model, quantity));
            }
            Step::Move { name, at, .. } => events.get_mut(&name).expect("a live event").0 = at,
            Step::Quantity { name, quantity, .. } => events.get_mut(&name).expect("a live event").2 = quantity,
            Step::Relabel { name, model, .. } => events.get_mut(&name).expect("a live event").1 = model,
            Step::Delete { name, .. } => drop(events.remove(&name)),
            Step::Run { .. } => {}
        }
    }
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by(|a, b| a.1.0.cmp(&b.1.0));
    let reported = |(name, (at, model, quantity)): (String, (String, &'static str, u64))| Step::Event {
        day: at[..10].to_owned(),
        at,
        model,
        quantity,
        name,
    };
    events.into_iter().map(reported).collect()
}

#[test]
fn facts_cost_the_same_however_they_came_to_be() {
    each_life(|seed, draw| {
        let (mut plan, steps) = (Plan::draw(draw), drawn_steps(draw, true));
        // The minimum fee follows the price, which is compared without it.
        plan.has_minimum_fee = false;
        let edited_after = draw.one_in(2).then(|| usize::try_from(draw.below(steps.len() as u64)).expect("an index"));
        let starts_whole = draw.one_in(2);
        let usage_of = |_: &str| "usage".to_owned();
        let list = |is_first: bool| plan.by_condition(!is_first || starts_whole, true);
        let mut story = Simulation::new().pricing(list(edited_after.is_some())).contract(plan.terms());
        for (at, step) in steps.iter().enumerate() {
            story = with_step(story, step, usage_of);
            if edited_after == Some(at) {
                let (Step::Event { day, .. }
                | Step::Move { day, .. }
                | Step::Quantity { day, .. }
                | Step::Relabel { day, .. }
                | Step::Delete { day, .. }
                | Step::Run { day }) = step;
                story = story.on(day.clone()).edit_pricing(list(false)).on(day.clone()).edit(|contract| {
                    contract.effective_from("2026-01-01").product("plan", |plan| plan.with(|patch| patch.reprice = true))
                });
            }
        }
        let first = Simulation::new().pricing(list(false)).contract(plan.terms());
        let at_once = in_the_end(&steps).iter().fold(first, |story, step| with_step(story, step, usage_of));
        let (lived, at_once) = (story.until(END), at_once.until(END));
        let lived = lived.unwrap_or_else(|refusal| panic!("SEED={seed}: {refusal:?} {edited_after:?} {steps:#?}"));
        let at_once = at_once.unwrap_or_else(|refusal| panic!("SEED={seed}: {refusal:?} {steps:#?}"));
        assert_eq!(costs(&lived), costs(&at_once), "SEED={seed} {edited_after:?} {steps:#?}");
    });
}

/// Returns what distinct models of a life cost in each month, by counting them: 1.00 each, with and without a graduated price.
fn distinct_models(steps: &[Step]) -> BTreeMap<(String, String), i64> {
    let mut models: BTreeMap<String, std::collections::BTreeSet<&str>> = BTreeMap::new();
    for step in in_the_end(steps) {
        let Step::Event { at, model, .. } = step else { continue };
        models.entry(format!("{}-01", &at[..7])).or_default().insert(model);
    }
    let costs = models.into_iter().flat_map(|(month, models)| {
        let count = i64::try_from(models.len()).expect("few");
        let graduated = 300 * count.min(2) + 10 * (count - 2).max(0);
        [((month.clone(), "models".to_owned()), 100 * count), ((month, "tiers".to_owned()), graduated)]
    });
    costs.collect()
}

#[test]
fn distinct_values_are_those_of_the_live_events() {
    each_life(|seed, draw| {
        let plan = Plan::draw(draw);
        let mut steps = drawn_steps(draw, true);
        for step in &mut steps {
            if let Step::Event { model, .. } | Step::Relabel { model, .. } = step
                && model.is_empty()
            {
                *model = "e";
            }
        }
        let unique = |prices: Prices| prices.of_usage("usage").counted_as(Aggregation::Unique).unique_by("model");
        let tiers = graduated([(Some("2"), "3.00"), (None, "0.10")]);
        let list = pricing("plan").usage("models", unique(per_unit("1.00"))).usage("tiers", unique(tiers));
        let terms = Plan { has_discount: false, has_minimum_fee: false, ..plan }.terms();
        let story = Simulation::new().pricing(list).contract(terms);
        let lived = steps.iter().fold(story, |story, step| with_step(story, step, |_| "usage".to_owned())).until(END);
        let lived = lived.unwrap_or_else(|refusal| panic!("SEED={seed}: {refusal:?} {steps:#?}"));
        assert_eq!(costs(&lived), distinct_models(&steps), "SEED={seed} {steps:#?}");
    });
}
