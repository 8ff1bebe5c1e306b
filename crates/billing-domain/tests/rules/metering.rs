//! Which line item counts an event: prices by attributes, and two products of one pricing (billing rules 4 to 7).

use billing_domain::catalog::Aggregation::{Count, Unique};
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{Bill, Simulation, Terms, per_unit, pricing, terms};

#[track_caller]
fn bill(simulation: &Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}: {refusal:?}"))
}

#[track_caller]
fn refused(simulation: &Simulation, day: &str) -> (Vec<&'static str>, String) {
    let refusal: Refusal = simulation.until(day).expect_err("a refusal");
    (refusal.codes(), refusal.to_string())
}

const GPT5_INPUT: &[(&str, &str)] = &[("model", "gpt-5"), ("kind", "input")];
const GPT5_OUTPUT: &[(&str, &str)] = &[("model", "gpt-5"), ("kind", "output")];
const MINI_INPUT: &[(&str, &str)] = &[("model", "gpt-5-mini"), ("kind", "input")];
const GPT6_INPUT: &[(&str, &str)] = &[("model", "gpt-6"), ("kind", "input")];

/// Prices of tokens by model and kind, and a fee for each request.
fn tokens(has_rest: bool) -> Terms {
    let of_tokens = |price: &str| per_unit(price).of_usage("tokens");
    let priced = terms("2026-01-01", "2026-12-31")
        .pricing("models")
        .usage("in", of_tokens("0.000002").where_labels(&[("model", &["gpt-5"]), ("kind", &["input"])]))
        .usage("out", of_tokens("0.000008").where_labels(&[("model", &["gpt-5"]), ("kind", &["output"])]))
        .usage("mini", of_tokens("0.0000005").where_labels(&[("model", &["gpt-5-mini"])]));
    let priced = if has_rest { priced.usage("other", of_tokens("0.00001").rest()) } else { priced };
    priced.usage("requests", of_tokens("0.01").counted_as(Count))
}

fn reported(terms: Terms) -> Simulation {
    Simulation::new()
        .contract(terms)
        .on("2026-01-10")
        .labels(GPT5_INPUT)
        .event("2026-01-10", "tokens", "1000000")
        .on("2026-01-11")
        .labels(GPT5_OUTPUT)
        .event("2026-01-11", "tokens", "200000")
        .on("2026-01-12")
        .labels(MINI_INPUT)
        .event("2026-01-12", "tokens", "4000000")
        .named("E3")
        .on("2026-01-13")
        .labels(GPT6_INPUT)
        .event("2026-01-13", "tokens", "100000")
}

#[test]
fn each_label_has_its_price_and_the_rest_has_one() {
    let bill = bill(&reported(tokens(true)), "2026-01-20");
    let draft = bill.document("UB-INV-1");
    assert_eq!(draft.amounts(), ["in 2.00", "out 1.60", "mini 2.00", "other 1.00", "requests 0.04"]);
    assert_eq!(draft.total().to_string(), "6.64 EUR");
}

#[test]
fn another_label_changes_the_line_item_in_a_draft() {
    let story = reported(tokens(true)).on("2026-01-15").update_event("E3", |event| event.labels(GPT5_INPUT));
    let bill = bill(&story, "2026-01-20");
    assert_eq!(bill.document("UB-INV-1").amounts(), ["in 10.00", "out 1.60", "other 1.00", "requests 0.04"]);
}

#[test]
fn another_label_of_billed_usage_is_one_debit() {
    let story = reported(tokens(true)).on("2026-02-05").update_event("E3", |event| event.labels(GPT5_INPUT));
    let bill = bill(&story, "2026-02-05");
    assert_eq!(bill.document("UB-DBT-1").amounts(), ["in 8.00", "mini -2.00"]);
    assert_eq!(bill.document("UB-DBT-1").total().to_string(), "6.00 EUR");
    assert_eq!(bill.documents().len(), 2, "one difference, one document");
}

/// The prices of [`tokens`] with one of gpt-6.
fn with_gpt6(has_rest: bool) -> billing_domain::simulate::PriceList {
    let of_tokens = |price: &str| per_unit(price).of_usage("tokens");
    let priced = pricing("models")
        .usage("in", of_tokens("0.000002").where_labels(&[("model", &["gpt-5"]), ("kind", &["input"])]))
        .usage("out", of_tokens("0.000008").where_labels(&[("model", &["gpt-5"]), ("kind", &["output"])]))
        .usage("mini", of_tokens("0.0000005").where_labels(&[("model", &["gpt-5-mini"])]))
        .usage("g6", of_tokens("0.000004").where_labels(&[("model", &["gpt-6"])]));
    let priced = if has_rest { priced.usage("other", of_tokens("0.00001").rest()) } else { priced };
    priced.usage("requests", of_tokens("0.01").counted_as(Count))
}

fn repriced(story: Simulation, day: &str) -> Simulation {
    story.on(day).edit(|contract| {
        contract.effective_from("2026-01-01").product("models", |models| models.with(|patch| patch.reprice = true))
    })
}

#[test]
fn a_price_of_its_own_takes_usage_from_the_rest() {
    let story = reported(tokens(true)).on("2026-02-05").edit_pricing(with_gpt6(true));
    let bill = bill(&repriced(story, "2026-02-05"), "2026-02-05");
    let credit = bill.document("UB-CRD-1");
    assert_eq!(credit.amounts(), ["g6 -0.40", "other 1.00"]);
    assert_eq!(credit.to_string(), "UB-CRD-1 ISSUED 2026-01-01…2026-01-31: 0.60 EUR");
}

#[test]
fn a_label_without_a_price_is_refused_unless_the_rest_has_one() {
    let (codes, detail) = refused(&reported(tokens(false)), "2026-01-20");
    assert_eq!(codes, ["no_matching_line"]);
    assert_eq!(
        detail,
        "the label model is gpt-6, and the contract has prices for gpt-5, gpt-5-mini: report one of them, or add a line item for \
         this model"
    );
    let missing = Simulation::new().contract(tokens(false)).event("2026-01-10", "tokens", "1");
    assert!(
        refused(&missing, "2026-01-20").1.starts_with("the label model is missing, and the contract has prices for gpt-5-mini:")
    );
    let bill = bill(&reported(tokens(false)).refused("no_matching_line"), "2026-01-20");
    assert_eq!(bill.document("UB-INV-1").total().to_string(), "5.63 EUR");
}

#[test]
fn an_edit_cannot_leave_usage_without_a_line_item() {
    let story = reported(tokens(true)).on("2026-02-05").edit_pricing(with_gpt6(false));
    let without_g6 = ["in", "out", "mini", "requests"];
    let edit = story.on("2026-02-05").edit(|contract| {
        let items = without_g6.into_iter().map(billing_domain::simulate::item);
        contract
            .effective_from("2026-01-01")
            .product("models", |models| items.fold(models, |models, item| models.line_item(item)))
    });
    let (codes, detail) = refused(&edit, "2026-02-05");
    assert_eq!(codes, ["usage_already_reported"]);
    assert!(detail.contains("with the labels model: gpt-6, kind: input is already reported"), "{detail}");
    // The usage of the line item that goes has another one.
    let story = reported(tokens(true)).on("2026-02-05").edit_pricing(with_gpt6(false));
    let bill = bill(&repriced(story, "2026-02-05"), "2026-02-05");
    assert_eq!(bill.document("UB-CRD-1").amounts(), ["g6 -0.40", "other 1.00"]);
}

#[test]
fn one_price_is_split_by_model_afterwards() {
    let calls = |id: &str, price: &str, models: &[&str]| {
        (id.to_owned(), per_unit(price).of_usage("calls").where_labels(&[("model", models)]))
    };
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-12-31").pricing("plan").usage("all", per_unit("1.00").of_usage("calls")))
        .on("2026-01-10")
        .labels(&[("model", "a")])
        .event("2026-01-10", "calls", 10)
        .on("2026-01-11")
        .labels(&[("model", "b")])
        .event("2026-01-11", "calls", 20);
    let (a, b) = (calls("a", "0.50", &["a"]), calls("b", "2.00", &["b", "c"]));
    let split = pricing("plan").usage(a.0, a.1).usage(b.0, b.1);
    let edit = |story: Simulation, day: &str| {
        story.on(day).edit_pricing(split.clone()).on(day).edit(|contract| {
            contract.effective_from("2026-01-01").product("plan", |plan| plan.with(|patch| patch.reprice = true))
        })
    };
    let draft = bill(&edit(story.clone(), "2026-01-20"), "2026-01-20");
    assert_eq!(draft.document("UB-INV-1").amounts(), ["a 5.00", "b 40.00"]);
    let late = bill(&edit(story.clone(), "2026-02-05"), "2026-02-05");
    assert_eq!(late.document("UB-DBT-1").amounts(), ["a 5.00", "b 40.00", "all -30.00"]);
    // And joined again.
    let joined =
        edit(story, "2026-02-05").on("2026-02-06").edit_pricing(pricing("plan").usage("all", per_unit("1.00").of_usage("calls")));
    let joined = joined
        .on("2026-02-06")
        .edit(|contract| contract.effective_from("2026-01-01").product("plan", |plan| plan.with(|patch| patch.reprice = true)));
    let bill = bill(&joined, "2026-02-06");
    assert_eq!(bill.owed().to_string(), "30.00 EUR");
}

#[test]
fn usage_due_at_once_bills_each_line_item_that_counts_it() {
    let story = Simulation::new().contract(tokens(true).net_terms(billing_domain::party::NetTerms::DueUponUsage));
    let story = story.on("2026-01-13").labels(GPT6_INPUT).event("2026-01-13", "tokens", "100000").named("E4");
    let bill = bill(&story, "2026-01-13");
    assert_eq!(bill.document_of_event("E4").amounts(), ["other 1.00", "requests 0.01"]);
    // Another model: the child's amounts are corrected on a credit, once.
    let story = story.on("2026-01-14").update_event("E4", |event| event.labels(GPT5_INPUT));
    let bill = self::bill(&story, "2026-01-14");
    assert_eq!(bill.document_of_event("E4").amounts(), ["in -0.20", "other 1.00"]);
}

#[test]
fn siblings_do_not_overlap_and_one_is_the_rest() {
    let of = |prices: billing_domain::simulate::Prices| prices.of_usage("tokens");
    let twice = tokens(true).usage("x", of(per_unit("1").where_labels(&[("kind", &["input"])])));
    let (codes, detail) = refused(&Simulation::new().contract(twice), "2026-01-01");
    assert_eq!(codes, ["overlapping_where"]);
    assert!(detail.contains("with the line item in of the same usage product"), "{detail}");
    let rests = tokens(true).usage("x", of(per_unit("1").rest()));
    assert_eq!(refused(&Simulation::new().contract(rests), "2026-01-01").0, ["several_rest"]);
    // Another usage product has siblings of its own.
    let other = tokens(true).usage("x", per_unit("1").of_usage("calls").where_labels(&[("kind", &["input"])]));
    bill(&Simulation::new().contract(other), "2026-01-01");
}

/// A fee and calls, 100 of them included, for one workspace.
fn team(workspace: &str) -> Terms {
    terms("2026-01-01", "2026-12-31").pricing("team").where_labels(&[("workspace", &[workspace])])
}

fn two_teams() -> Simulation {
    let prices = pricing("team").fixed("fee", "50.00").usage("calls", per_unit("0.10").included(100));
    let story = Simulation::new().pricing(prices).contract(team("w1").named("Team w1")).contract(team("w2"));
    let report = |story: Simulation, day: &str, workspace: &str, calls: i32| {
        story.on(day).labels(&[("workspace", workspace)]).event(day.to_owned(), "calls", calls)
    };
    let story = report(story, "2026-01-10", "w1", 89);
    let story = report(story, "2026-01-11", "w1", 1).named("call");
    report(story, "2026-01-12", "w2", 90)
}

#[test]
fn two_subscriptions_of_one_pricing_are_on_one_invoice() {
    let bill = bill(&two_teams(), "2026-01-20");
    let draft = bill.document("UB-INV-1");
    assert_eq!(draft.amounts(), ["fee 50.00", "calls 0.00", "fee 50.00", "calls 0.00"]);
    assert_eq!(draft.total().to_string(), "100.00 EUR");
    let names: Vec<&str> = draft.content.products.iter().map(|product| product.name.as_str()).collect();
    assert_eq!(names, ["Team w1", "team"]);
}

#[test]
fn another_label_moves_usage_to_the_other_subscription() {
    let story = two_teams().on("2026-01-15").update_event("call", |event| event.labels(&[("workspace", "w2")]));
    let story = story.on("2026-01-16").labels(&[("workspace", "w2")]).event("2026-01-16", "calls", 20);
    let bill = bill(&story, "2026-01-20");
    assert_eq!(bill.document("UB-INV-1").amounts(), ["fee 50.00", "calls 0.00", "fee 50.00", "calls 1.10"]);
    let (codes, _) =
        refused(&two_teams().on("2026-01-15").labels(&[("workspace", "w3")]).event("2026-01-15", "calls", 1), "2026-01-20");
    assert_eq!(codes, ["no_matching_line"]);
}

#[test]
fn the_same_pricing_twice_needs_disjoint_conditions() {
    let prices = || pricing("team").fixed("fee", "50.00").usage("calls", per_unit("0.10"));
    let both = |second: Terms| Simulation::new().pricing(prices()).contract(team("w1")).contract(second);
    assert_eq!(refused(&both(team("w1")), "2026-01-01").0, ["duplicate_product"]);
    let without = terms("2026-01-01", "2026-12-31").pricing("team");
    assert_eq!(refused(&both(without), "2026-01-01").0, ["duplicate_product"]);
    bill(&both(team("w2")), "2026-01-01");
}

#[test]
fn a_percentage_and_a_fee_per_transaction_are_two_line_items() {
    let of = |prices: billing_domain::simulate::Prices| prices.of_usage("payments");
    let priced = terms("2026-01-01", "2026-12-31")
        .usage("share", of(billing_domain::simulate::percentage("2.9", "0")))
        .usage("each", of(per_unit("0.25").included(10).counted_as(Count)));
    let mut story = Simulation::new().contract(priced);
    for n in 0..12 {
        story = story.event("2026-01-10", "payments", if n == 0 { 890 } else { 10 });
    }
    let bill = bill(&story, "2026-01-20");
    assert_eq!(bill.document("UB-INV-1").amounts(), ["share 29.00", "each 0.50"]);
}

#[test]
fn a_label_that_was_forgotten_takes_usage_to_the_product_that_asks_for_it_and_back() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-12-31").pricing("list").usage("calls", per_unit("1.00")))
        .contract(
            terms("2026-01-01", "2026-12-31")
                .pricing("w1")
                .usage("w1-calls", per_unit("0.10").of_usage("calls"))
                .where_labels(&[("workspace", &["w1"])]),
        )
        .event("2026-01-10", "calls", 1)
        .named("call");
    let total = |story: &Simulation| bill(story, "2026-01-20").owed().to_string();
    let drafted = |story: &Simulation| bill(story, "2026-01-20").document("UB-INV-1").total().to_string();
    assert_eq!((total(&story), drafted(&story)), ("0.00 EUR".to_owned(), "1.00 EUR".to_owned()));
    let story = story.on("2026-01-11").update_event("call", |event| event.labels(&[("workspace", "w1")]));
    assert_eq!(drafted(&story), "0.10 EUR");
    let story = story.on("2026-01-12").update_event("call", |event| event.labels(&[]));
    assert_eq!(drafted(&story), "1.00 EUR");
}

#[test]
fn unused_prices_are_no_empty_lines() {
    let bill = bill(&Simulation::new().contract(tokens(true)), "2026-01-20");
    let current = bill.preview_current().expect("a preview");
    assert_eq!(current[0].amounts(), ["requests 0.00"]);
}

#[test]
fn a_line_item_counts_at_most_sixteen_digits() {
    let story = (0..12).fold(Simulation::new().contract(tokens(true)), |story, _| {
        story.on("2026-01-10").labels(&[("model", "free")]).event("2026-01-10", "tokens", "900000000000000")
    });
    assert_eq!(refused(&story, "2026-01-20").0, ["out_of_range"]);
}

/// A price for each distinct user of calls.
fn users() -> Terms {
    terms("2026-01-01", "2026-12-31")
        .pricing("team")
        .usage("users", per_unit("1.00").of_usage("calls").counted_as(Unique).unique_by("user"))
}

fn called(story: Simulation, day: &str, user: &str, name: &str) -> Simulation {
    story.on(day).labels(&[("user", user)]).event(day, "calls", "5").named(name)
}

/// Calls of `u1`, `u1`, `u2` and `u1`.
fn calls_of_two_users() -> Simulation {
    let users = [("u1", "E1"), ("u1", "E2"), ("u2", "E3"), ("u1", "E4")];
    let story = Simulation::new().contract(self::users());
    users.into_iter().fold(story, |story, (user, name)| called(story, "2026-01-10", user, name))
}

#[test]
fn distinct_users_count_once_while_one_of_their_events_is_there() {
    let draft = |story: Simulation| bill(&story, "2026-01-20").document("UB-INV-1").amounts();
    assert_eq!(draft(calls_of_two_users()), ["users 2.00"]);
    let without =
        |names: &[&str]| names.iter().fold(calls_of_two_users(), |story, name| story.on("2026-01-12").delete_event(name));
    assert_eq!(draft(without(&["E1"])), ["users 2.00"]);
    assert_eq!(draft(without(&["E1", "E2", "E4"])), ["users 1.00"]);
    assert_eq!(draft(without(&["E1", "E2", "E4", "E3"])), ["users 0.00"]);
    let relabeled = |name: &str, user: &str| {
        draft(calls_of_two_users().on("2026-01-12").update_event(name, |event| event.labels(&[("user", user)])))
    };
    assert_eq!(relabeled("E3", "u1"), ["users 1.00"]);
    assert_eq!(relabeled("E1", "u3"), ["users 3.00"]);
    assert_eq!(relabeled("E3", "u3"), ["users 2.00"]);
}

#[test]
fn a_user_of_two_periods_counts_in_both() {
    let moved = calls_of_two_users().on("2026-02-12").update_event("E1", |event| event.at("2026-02-03"));
    let bill = bill(&moved, "2026-02-12");
    assert_eq!(bill.document("UB-INV-1").amounts(), ["users 2.00"]);
    assert_eq!(bill.document("UB-INV-2").amounts(), ["users 1.00"]);
    let late = called(calls_of_two_users(), "2026-02-12", "u4", "late");
    let late = late.on("2026-02-13").update_event("late", |event| event.at("2026-01-30"));
    assert_eq!(self::bill(&late, "2026-02-13").document("UB-DBT-1").amounts(), ["users 1.00"]);
}

#[test]
fn an_event_without_the_counted_label_is_refused() {
    let (codes, detail) = refused(&Simulation::new().contract(users()).event("2026-01-10", "calls", "5"), "2026-01-20");
    assert_eq!(codes, ["no_matching_line"]);
    assert_eq!(detail, "the label user is missing, and the contract counts its distinct values: report the event with it");
}

#[test]
fn distinct_values_need_a_label_and_no_sibling_with_a_condition() {
    let refused_of = |list: billing_domain::simulate::PriceList| {
        let story = Simulation::new().pricing(list).contract(terms("2026-01-01", "2026-12-31").pricing("team"));
        refused(&story, "2026-01-02").0
    };
    let calls = || per_unit("1.00").of_usage("calls");
    assert_eq!(refused_of(pricing("team").usage("users", calls().counted_as(Unique))), ["unique_by_required"]);
    let of_users = || calls().counted_as(Unique).unique_by("user");
    let where_a = || calls().where_labels(&[("model", &["a"])]);
    assert_eq!(refused_of(pricing("team").usage("users", of_users()).usage("a", where_a())), ["unique_with_where"]);
    assert_eq!(refused_of(pricing("team").usage("a", where_a()).usage("users", of_users())), ["unique_with_where"]);
    assert_eq!(refused_of(pricing("team").usage("users", of_users().rest())), ["unique_with_where"]);
}

#[test]
fn an_edit_does_not_count_values_that_were_not_compared() {
    let calls = || per_unit("1.00").of_usage("calls");
    let story = Simulation::new().contract(terms("2026-01-01", "2026-12-31").pricing("team").usage("calls", calls()));
    let story = called(story, "2026-01-10", "u1", "E1");
    let list = |label: &str| pricing("team").usage("calls", calls()).usage("users", calls().counted_as(Unique).unique_by(label));
    let edited = |story: Simulation, day: &str, from: &str, label: &str| {
        let story = story.on(day).edit_pricing(list(label)).on(day);
        story.edit(|contract| contract.effective_from(from).product("team", |team| team.with(|patch| patch.reprice = true)))
    };
    let (codes, detail) = refused(&edited(story.clone(), "2026-02-01", "2026-01-01", "user"), "2026-02-01");
    assert_eq!(codes, ["usage_already_reported"]);
    assert!(detail.contains("its distinct values of user were not counted"), "{detail}");
    let later = called(edited(story, "2026-02-01", "2026-02-01", "user"), "2026-02-03", "u1", "E2");
    assert_eq!(bill(&later, "2026-02-04").document("UB-INV-2").amounts(), ["calls 5.00", "users 1.00"]);
    assert_eq!(refused(&edited(later, "2026-02-04", "2026-02-01", "team"), "2026-02-05").0, ["usage_already_reported"]);
}

#[test]
fn a_product_with_a_condition_counts_its_own_distinct_values() {
    let list = pricing("team").usage("users", per_unit("1.00").of_usage("calls").counted_as(Unique).unique_by("user"));
    let plan = |workspace: &str| terms("2026-01-01", "2026-12-31").pricing("team").where_labels(&[("workspace", &[workspace])]);
    let story = Simulation::new().pricing(list).contract(plan("w1")).contract(plan("w2"));
    let call = |story: Simulation, workspace: &str, user: &str| {
        story.on("2026-01-10").labels(&[("workspace", workspace), ("user", user)]).event("2026-01-10", "calls", "1")
    };
    let story = call(call(call(story, "w1", "u1"), "w2", "u1"), "w2", "u2");
    assert_eq!(bill(&story, "2026-01-20").document("UB-INV-1").total().to_string(), "3.00 EUR");
}
