//! Tests of edits and cancels of contracts, from the next invoice on or with the current invoice (billing rules 7).

use billing_domain::contract::ContractState;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::{DocumentState, Purpose};
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Bill, ContractChange, SimulatedDocument, Simulation, customer, item, product, terms};

use super::{api_plan, bill, fee, overview, year};

/// Returns the API plan for January and February at the customer's 19 %.
fn plan() -> Simulation {
    Simulation::new().customer(customer().tax(19)).contract(api_plan(terms("2026-01-01", "2026-02-28").pricing("plan")))
}

/// Returns the same plan with 1,500 calls on 11 January.
fn used() -> Simulation {
    plan().event("2026-01-11", "calls", 1500).named("event")
}

/// Returns a contract with two fixed items, 30.00 and 12.00, at 19 %. Its invoice is issued in advance.
fn in_advance() -> Simulation {
    let both = terms("2026-01-01", "2026-02-28").pricing("both").fixed("a", "30.00").fixed("b", "12.00");
    Simulation::new().customer(customer().tax(19)).contract(both.payment_time(PaymentTime::BeforeUse))
}

#[track_caller]
fn current(bill: &Bill) -> SimulatedDocument {
    only(bill.preview_current().expect("a preview"))
}

#[track_caller]
fn next(bill: &Bill) -> SimulatedDocument {
    only(bill.preview_next().expect("a preview"))
}

#[track_caller]
fn only(mut documents: Vec<SimulatedDocument>) -> SimulatedDocument {
    assert_eq!(documents.len(), 1, "{documents:?}");
    documents.remove(0)
}

#[test]
fn an_edit_holds_from_the_next_period() {
    let before = bill(&used(), "2026-01-11");
    let story = used().on("2026-01-11").edit(|contract| contract.product("plan", |plan| plan.discount(50).tax(7)));
    let edited = bill(&story, "2026-01-11");
    assert_eq!(current(&edited).totals(), current(&before).totals());
    assert_eq!(next(&edited).totals(), ["49.00", "24.50", "1.72", "26.22"]);
    assert_eq!(next(&edited).period.to_string(), "2026-02-01…2026-02-28");
    // Omitted values stay unchanged.
    let cleared = story.on("2026-01-11").edit(|contract| contract.product("plan", |plan| plan.default_tax()));
    assert_eq!(next(&bill(&cleared, "2026-01-11")).totals()[2], "4.66", "the customer's 19 % of 24.50");
}

#[test]
fn an_edit_with_the_current_invoice_recomputes_its_draft() {
    let story = used().on("2026-01-11").edit(|contract| {
        let calls = item("calls");
        contract.include_current_invoice().product("plan", |plan| plan.discount(10).tax(7).note("Thank you").line_item(calls))
    });
    let edited = bill(&story, "2026-01-11");
    let draft = current(&edited);
    assert_eq!((&draft.number, draft.number.to_string().as_str()), (&edited.document_of_event("event").number, "UB-INV-1"));
    assert_eq!(draft.amounts(), ["calls 60.00"]);
    assert_eq!(draft.totals(), ["60.00", "6.00", "3.78", "57.78"]);
    assert_eq!(draft.note(), Some("Thank you"));
    assert_eq!(edited.documents().len(), 1, "nothing is issued, so nothing is corrected");
}

#[test]
fn an_edit_with_the_current_invoice_settles_an_issued_one_at_once() {
    let invoice = bill(&in_advance(), "2026-01-11");
    let story = in_advance()
        .on("2026-01-11")
        .edit(|contract| contract.include_current_invoice().product("both", |both| both.line_item(item("a"))));
    let lowered = bill(&story, "2026-01-11");
    let credit = lowered.document("UB-CRD-1");
    assert_eq!((credit.purpose(), credit.parent().as_deref()), (Purpose::Adjustment, Some("UB-INV-1")));
    assert_eq!(credit.issue_date().map(|day| day.to_string()).as_deref(), Some("2026-01-11"));
    assert_eq!((credit.amounts(), credit.total().minor()), (vec!["b 12.00".to_owned()], 1428));
    assert_eq!(lowered.document("UB-INV-1").amount_due().map(|due| due.minor()), Some(3570));

    let all = |story: Simulation| {
        story.on("2026-01-11").edit(|contract| contract.include_current_invoice().product("both", |both| both.all_line_items()))
    };
    let story = all(story);
    let raised = bill(&story, "2026-01-11");
    let debit = raised.document("UB-DBT-1");
    assert_eq!(debit.to_string(), "UB-DBT-1 ISSUED 2026-01-01…2026-01-31: 14.28 EUR");
    assert_eq!((debit.purpose(), debit.amounts()), (Purpose::Adjustment, vec!["b 12.00".to_owned()]));
    let again = bill(&all(story), "2026-01-11");
    assert_eq!(again.documents().len(), 3, "repeating the edit corrects nothing");
    assert!(again.document("UB-INV-1").says_the_same_as(invoice.document("UB-INV-1")));
}

#[test]
fn another_tax_rate_is_a_credit_at_the_old_and_a_debit_at_the_new() {
    let invoice = bill(&in_advance(), "2026-01-11");
    let story =
        in_advance().on("2026-01-11").edit(|contract| contract.include_current_invoice().product("both", |both| both.tax(7)));
    let edited = bill(&story, "2026-01-11");
    assert_eq!(edited.document("UB-CRD-1").totals(), ["42.00", "0.00", "7.98", "49.98"]);
    assert_eq!(edited.document("UB-DBT-1").totals(), ["42.00", "0.00", "2.94", "44.94"]);
    assert_eq!(next(&edited).total().minor(), 4494);
    let after = edited.document("UB-INV-1");
    assert_eq!((after.state(), after.amount_due().map(|due| due.minor())), (Ok(DocumentState::Paid), Some(0)));
    assert!(after.says_the_same_as(invoice.document("UB-INV-1")));
}

#[test]
fn an_edit_that_would_leave_usage_without_a_place_is_refused() {
    let without_calls = |story: Simulation, now: bool| {
        story.on("2026-01-11").edit(|contract| {
            let contract = if now { contract.include_current_invoice() } else { contract };
            contract.product("plan", |plan| plan.line_item(item("platform-fee")))
        })
    };
    let refusal = without_calls(used(), true).until("2026-01-11").expect_err("a refusal");
    assert_eq!(refusal.codes(), ["usage_already_reported"]);
    assert!(refusal.to_string().contains("calls"), "{refusal}");
    let ends = |contract: ContractChange| contract.include_current_invoice().product("plan", |p| p.billed_until("2026-01-10"));
    bill(&used().on("2026-01-11").edit(ends).refused("usage_already_reported"), "2026-01-11");
    let edited = bill(&without_calls(used(), false), "2026-01-11");
    assert_eq!(current(&edited).amounts(), ["platform-fee 49.00", "calls 60.00"]);
    assert_eq!(next(&edited).amounts(), ["platform-fee 49.00"]);
}

#[test]
fn a_product_is_added_and_another_left_out() {
    let of = |name: &str| terms("2026-01-01", "2026-03-31").pricing(name).fixed(name, "10.00");
    let story = Simulation::new()
        .contract(of("old"))
        .pricing(billing_domain::simulate::pricing("new").fixed("new", "10.00"))
        .on("2026-01-11")
        .edit(|contract| contract.products([product("new").billed("2026-01-01", "2026-03-31")]));
    let edited = bill(&story, "2026-01-11");
    let mut billed: Vec<String> =
        edited.preview_current().expect("a preview").iter().flat_map(SimulatedDocument::amounts).collect();
    billed.sort();
    assert_eq!(billed, ["new 10.00", "old 10.00"], "a product that is left out ends with its period");
    assert_eq!(next(&edited).amounts(), ["new 10.00"]);
}

#[test]
fn a_cancelled_contract_bills_its_current_period_to_the_end() {
    let story = plan().on("2026-01-11").cancel().event("2026-01-11", "calls", 1500);
    let cancelled = bill(&story, "2026-01-11");
    assert_eq!(cancelled.state(), ContractState::Cancelling);
    assert_eq!(cancelled.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-01-31"));
    assert_eq!(current(&cancelled).amounts(), ["platform-fee 49.00", "calls 60.00"]);
    assert_eq!(cancelled.preview_next(), Ok(Vec::new()));
    // The contract can still be cancelled today.
    let story = story
        .on("2026-01-11")
        .cancel()
        .refused("contract_over")
        .on("2026-01-11")
        .edit(|contract| contract.po_number("PO-8"))
        .refused("contract_over")
        .on("2026-01-11")
        .cancel_today()
        .on("2026-01-11")
        .cancel_today()
        .refused("contract_over");
    let cancelled = bill(&story, "2026-01-11");
    assert_eq!(cancelled.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-01-11"));
    assert!(cancelled.document("UB-INV-1").status.is_issued());
}

#[test]
fn a_contract_cancelled_now_bills_its_days_and_its_usage_at_once() {
    let story = used().on("2026-01-11").cancel_today();
    let cancelled = bill(&story, "2026-01-11");
    let invoice = cancelled.document("UB-INV-1");
    assert!(invoice.status.is_issued());
    assert_eq!(invoice.period.to_string(), "2026-01-01…2026-01-11");
    // 11 of 31 days of 49.00.
    assert_eq!(invoice.amounts(), ["platform-fee 17.39", "calls 60.00"]);
    // Usage of the contract's days is still accepted. Earlier usage is refused.
    let story = story
        .late_event("2026-01-10", "calls", 500, "2026-01-11")
        .named("late")
        .late_event("2025-12-31", "calls", 1, "2026-01-11")
        .refused("no_matching_contract");
    assert_eq!(bill(&story, "2026-01-11").document_of_event("late").number.to_string(), "UB-DBT-1");
}

#[test]
fn what_was_billed_in_advance_for_days_after_the_cancel_is_credited() {
    let invoice = bill(&in_advance(), "2026-01-11");
    let cancelled = bill(&in_advance().on("2026-01-11").cancel_today(), "2026-01-11");
    let credit = cancelled.document("UB-CRD-1");
    assert!(credit.status.is_issued());
    // 20 of 31 days of 30.00 and of 12.00.
    assert_eq!(credit.amounts(), ["a 19.35", "b 7.74"]);
    let after = cancelled.document("UB-INV-1");
    let due = after.total().minor() - credit.total().minor();
    assert_eq!(after.amount_due().map(|due| due.minor()), Some(due));
    assert!(after.says_the_same_as(invoice.document("UB-INV-1")));
    assert_eq!(cancelled.documents().len(), 2);
}

#[test]
fn a_contract_that_has_not_begun_is_cancelled_without_documents() {
    let contract = api_plan(terms("2026-01-16", "2026-03-16")).payment_time(PaymentTime::BeforeUse);
    let pending = Simulation::new().contract(contract).created("2026-01-11");
    assert_eq!(bill(&pending, "2026-01-11").state(), ContractState::Pending);
    for story in [pending.clone().on("2026-01-11").cancel(), pending.on("2026-01-11").cancel_today()] {
        let story = story.on("2026-01-11").cancel_today().refused("contract_over");
        let cancelled = bill(&story, "2026-01-11");
        assert_eq!(cancelled.state(), ContractState::Cancelled);
        assert_eq!([cancelled.preview_current(), cancelled.preview_next()], [Ok(Vec::new()), Ok(Vec::new())]);
        assert_eq!(overview(&story, "2026-04-01"), [""; 0]);
    }
}

#[test]
fn a_draft_keeps_its_net_terms_when_an_edit_changes_them() {
    let story = Simulation::new()
        .contract(api_plan(terms("2026-01-01", "2026-01-31").pricing("plan")).net_terms(NetTerms::Days(60)))
        .event("2026-01-11", "calls", 10)
        .on("2026-01-11")
        .edit(|contract| contract.include_current_invoice().product("plan", |plan| plan.net_terms(NetTerms::DueUponReceipt)));
    let due = bill(&story, "2026-02-01").document("UB-INV-1").due_date();
    assert_eq!(due.map(|day| day.to_string()).as_deref(), Some("2026-04-02"));
}

#[test]
fn a_product_left_out_from_a_past_day_is_credited_for_the_days_after_it() {
    let story = Simulation::new()
        .contract(fee("p", "28.00"))
        .contract(year("q").fixed("support", "5.00"))
        .on("2026-03-10")
        .edit(|contract| contract.effective_from("2026-02-15").remove("q"));
    let credit = bill(&story, "2026-03-10").document("UB-CRD-1").clone();
    // 14 of February's 28 days.
    assert_eq!(credit.amounts(), ["support 2.50"]);
    assert_eq!(credit.line("support").days().to_string(), "2026-02-15…2026-02-28");
}
