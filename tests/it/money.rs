//! Amounts due and their documents: credits, payments and their reversals, balances and statements.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use acceptance::scene::{each, product, refused};
use acceptance::{Client, Database, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_credit_settles_the_debit_it_takes_back_and_leaves_the_invoice,
    a_credit_of_a_usage_debit_leaves_what_was_paid_for_in_advance,
    a_year_that_was_paid_and_cancelled_pays_another_contract_and_the_rest_is_refunded,
    a_payment_that_bounces_makes_its_document_overdue_again,
    payments_that_cannot_be_are_refused_each_with_its_reason,
    what_is_paid_above_what_is_due_pays_what_comes_next,
    balance_goes_by_hand_alone_where_the_customer_wants_it_so,
    what_is_given_up_on_can_be_paid_later_and_taken_back,
    what_money_lies_on_is_not_voided,
    a_void_leaves_earlier_statements_as_they_were,
    lists_and_references_of_money_are_ones_own,
    twenty_at_once_on_two_servers_leave_nothing_below_zero,
    a_document_that_is_written_off_meanwhile_is_not_voided,
);

const OWED: [&str; 5] = ["state", "paid_amount", "credits_amount", "amount_due", "overdue"];

fn owed(client: &Client, number: &str) -> [String; 5] {
    books::fields(&books::numbered(client, number), OWED)
}

fn reference(client: &Client, number: &str) -> Value {
    books::numbered(client, number)["document_ref"].clone()
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

fn a_credit_settles_the_debit_it_takes_back_and_leaves_the_invoice(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    scene.sell(&[catalog::with(year("p"), &json!({"tax": 19}))]);
    scene.run_on("2026-02-02");
    books::pay(&scene.client, &reference(&scene.client, "UB-INV-1"), &json!({"amount": "58.31"})).ok();
    let late = scene.calls("2026-01-20", 600)["event_ref"].clone();
    scene.run_on("2026-02-04");
    assert_eq!(owed(&scene.client, "UB-DBT-1"), ["ISSUED", "0.00", "0.00", "714.00", "false"]);

    books::delete(&scene.client, &late);
    scene.run_on("2026-02-06");

    assert_eq!(owed(&scene.client, "UB-DBT-1"), ["PAID", "0.00", "714.00", "0.00", "false"]);
    assert_eq!(owed(&scene.client, "UB-INV-1"), ["PAID", "58.31", "0.00", "0.00", "false"]);
    let credit = books::numbered(&scene.client, "UB-CRD-1");
    assert_eq!(
        books::fields(&credit, ["state", "amount_due", "due_date", "unapplied_amount", "overdue"]),
        ["SETTLED", "null", "null", "0.00", "false"]
    );
    let application = catalog::only(credit["applications"].clone());
    let names = ["from_document_number", "to_document_number", "amount", "date"];
    assert_eq!(books::fields(&application, names), ["UB-CRD-1", "UB-DBT-1", "714.00", "2026-02-06"]);
    assert_eq!(books::numbered(&scene.client, "UB-DBT-1")["applications"], json!([application]));
    assert_eq!(books::balance(&scene.client, "acme"), [["0.00", "0.00", "0.00", "0.00"].map(str::to_owned)]);
}

fn a_credit_of_a_usage_debit_leaves_what_was_paid_for_in_advance(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    scene.sell(&[catalog::with(product("p", "2026-01-01", "2026-01-31"), &json!({"payment_time": "BEFORE_USE"}))]);
    scene.run_on("2026-01-02");
    let event = scene.calls("2026-01-01", 600)["event_ref"].clone();
    scene.run_on("2026-02-02");
    assert_eq!(owed(&scene.client, "UB-DBT-1")[3], "600.00");

    books::update(&scene.client, &event, json!({"quantity": 0})).ok();
    scene.run_on("2026-02-04");

    assert_eq!(owed(&scene.client, "UB-DBT-1"), ["PAID", "0.00", "600.00", "0.00", "false"]);
    assert_eq!(owed(&scene.client, "UB-INV-1"), ["ISSUED", "0.00", "0.00", "49.00", "true"]);
}

fn a_year_that_was_paid_and_cancelled_pays_another_contract_and_the_rest_is_refunded(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("year", "1200.00");
    scene.fee("month", "150.00");
    let cycle = json!({"payment_time": "BEFORE_USE", "billing_cycle": {"unit": "YEARLY", "cycle": 1}});
    let contract = scene.sell(&[catalog::with(year("year"), &cycle)]);
    scene.run_on("2026-01-02");
    books::pay(&scene.client, &reference(&scene.client, "UB-INV-1"), &json!({"amount": "1200.00"})).ok();
    scene.sell(&[product("month", "2026-06-01", "2026-07-31")]);
    scene.go_to("2026-07-02");

    // The first half of the year has 181 of 365 days.
    scene.cancel(&contract, &json!({"last_day": "2026-06-30"}));

    let credit = books::numbered(&scene.client, "UB-CRD-1");
    assert_eq!(books::fields(&credit, ["state", "total", "unapplied_amount"]), ["ISSUED", "604.93", "604.93"]);
    scene.run_on("2026-07-03");
    assert_eq!(owed(&scene.client, "UB-INV-2"), ["PAID", "0.00", "150.00", "0.00", "false"]);
    assert_eq!(books::balance(&scene.client, "acme"), [["0.00", "0.00", "454.93", "0.00"].map(str::to_owned)]);
    let credit_ref = credit["document_ref"].clone();
    refused(&books::refund(&scene.client, &credit_ref, &json!({"amount": "454.94"})), 422, "above_unapplied");
    let refunded = books::refund(&scene.client, &credit_ref, &json!({"amount": "454.93", "reference": "SEPA 1"})).ok();
    assert_eq!(books::fields(&refunded, ["document_number", "state", "unapplied_amount"]), ["UB-CRD-1", "SETTLED", "0.00"]);

    let statement = books::statement(&scene.client, "acme");

    assert_eq!(
        statement,
        [
            "2026-01-02 INVOICE UB-INV-1 1200.00 1200.00",
            "2026-01-02 PAYMENT UB-INV-1 -1200.00 0.00",
            "2026-07-02 CREDIT UB-CRD-1 -604.93 -604.93",
            "2026-07-03 INVOICE UB-INV-2 150.00 -454.93",
            "2026-07-03 REFUND UB-CRD-1 454.93 0.00",
        ]
    );
    let path = "/api/customers/statement/acme?from=2026-07-03&to=2026-07-03";
    let part = catalog::only(scene.client.get(path).ok());
    assert_eq!(books::fields(&part, ["opening_balance", "closing_balance"]), ["-604.93", "0.00"]);
    assert_eq!(part["entries"].as_array().map(Vec::len), Some(2));
    let table = scene.client.get(&format!("{path}&format=csv"));
    assert_eq!(table.header("content-type"), "text/csv; charset=utf-8");
    let rows: Vec<&str> = table.text.lines().collect();
    assert_eq!(rows[0], "entity_ref,currency,date,kind,document_number,document_ref,payment_ref,reference,amount,balance");
    assert!(rows[1].ends_with(",OPENING_BALANCE,,,,,,-604.93") && rows[4].ends_with(",CLOSING_BALANCE,,,,,,0.00"), "{rows:?}");
}

fn a_payment_that_bounces_makes_its_document_overdue_again(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "49.00");
    scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    let payment = json!({"amount": "49.00", "reference": "bank 1", "method": "SEPA"});
    books::pay(&scene.client, &invoice, &payment).ok();
    scene.go_to("2026-02-10");
    assert_eq!(owed(&scene.client, "UB-INV-1"), ["PAID", "49.00", "0.00", "0.00", "false"]);

    let payment = catalog::only(Value::Array(books::payments(&scene.client, &invoice)));
    let reversed = books::reverse(&scene.client, &payment["payment_ref"], &json!({"reason": "no funds"})).ok();

    assert_eq!(books::fields(&reversed, OWED), ["ISSUED", "0.00", "0.00", "49.00", "true"]);
    let reversal = catalog::only(Value::Array(books::payments(&scene.client, &invoice)));
    let names = ["kind", "amount", "paid_date", "reference", "method", "unapplied_amount", "reversed_date", "reason"];
    assert_eq!(
        books::fields(&reversal, names),
        ["PAYMENT", "49.00", "2026-02-02", "bank 1", "SEPA", "0.00", "2026-02-10", "no funds"]
    );
    assert!(reversal["recorded_by"].as_str().is_some_and(|by| by.starts_with("api_key:")), "{reversal}");
    refused(&books::reverse(&scene.client, &payment["payment_ref"], &json!({})), 409, "already_reversed");
    assert_eq!(
        books::statement(&scene.client, "acme").last().map(String::as_str),
        Some("2026-02-10 REVERSAL UB-INV-1 49.00 49.00")
    );
}

fn payments_that_cannot_be_are_refused_each_with_its_reason(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    let yen =
        json!({"product_pricing_ref": "yen", "name": "Yen", "currency": "JPY", "line_items": [catalog::fixed("fee", "500")]});
    scene.client.post("/api/pricings/", &yen).ok();
    scene.sell(&[product("yen", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    for (payment, pointer, code) in [
        (json!({"amount": 0.5}), "/amount", "invalid_format"),
        (json!({"amount": 501}), "/amount", "above_amount_due"),
        (json!({"amount": 0}), "/amount", "out_of_range"),
        (json!({"amount": 1, "paid_date": "2099-01-01"}), "/paid_date", "out_of_range"),
        (json!({"amount": 1, "paid_date": "2026-02-04"}), "/paid_date", "out_of_range"),
        (json!({"amount": 1, "paid_date": "2026-02-01"}), "/paid_date", "out_of_range"),
        (json!({"amount": 1, "overpayment": "yes"}), "/overpayment", "wrong_type"),
    ] {
        let answer = books::pay(&scene.client, &invoice, &payment);
        refused(&answer, 422, code);
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{}", answer.text);
    }
    assert_eq!(books::payments(&scene.client, &invoice), [] as [Value; 0]);
    books::pay(&scene.client, &invoice, &json!({"amount": 500, "paid_date": "2026-02-03"})).ok();
    refused(&books::pay(&scene.client, &invoice, &json!({"amount": 1})), 422, "above_amount_due");
}

fn what_is_paid_above_what_is_due_pays_what_comes_next(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-03-31")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    let paid = books::pay(&scene.client, &invoice, &json!({"amount": "250.00", "overpayment": true})).ok();
    assert_eq!(books::fields(&paid, OWED), ["PAID", "100.00", "0.00", "0.00", "false"]);
    assert_eq!(books::balance(&scene.client, "acme")[0][2], "150.00");
    scene.run_on("2026-03-02");
    assert_eq!(owed(&scene.client, "UB-INV-2"), ["PAID", "100.00", "0.00", "0.00", "false"]);
    scene.run_on("2026-04-02");
    assert_eq!(owed(&scene.client, "UB-INV-3"), ["PARTIALLY_PAID", "50.00", "0.00", "50.00", "false"]);

    // Half of the payment is refunded. It can't be reversed before the refund is.
    let payment = catalog::only(Value::Array(books::payments(&scene.client, &invoice)));
    assert_eq!(payment["applications"].as_array().map(Vec::len), Some(3));
    let third = payment["applications"][2]["application_ref"].clone();
    books::unapply(&scene.client, &third).ok();
    let payment_ref = payment["payment_ref"].clone();
    books::refund(&scene.client, &payment_ref, &json!({"amount": "20.00"})).ok();
    refused(&books::reverse(&scene.client, &payment_ref, &json!({})), 409, "payment_refunded");
    let refund = books::payments(&scene.client, &invoice)[1].clone();
    assert_eq!(books::fields(&refund, ["kind", "amount"]), ["REFUND", "20.00"]);
    assert_eq!(refund["refunded_payment_ref"], payment_ref);
    books::reverse(&scene.client, &refund["payment_ref"], &json!({})).ok();
    books::reverse(&scene.client, &payment_ref, &json!({})).ok();
    for number in ["UB-INV-1", "UB-INV-2", "UB-INV-3"] {
        assert_eq!(owed(&scene.client, number)[..4], ["ISSUED", "0.00", "0.00", "100.00"], "{number}");
    }
    assert_eq!(books::balance(&scene.client, "acme")[0], ["300.00", "200.00", "0.00", "0.00"]);
}

fn balance_goes_by_hand_alone_where_the_customer_wants_it_so(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.edit_customer("acme", &json!({"apply_balance": false}));
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-02-28")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    books::pay(&scene.client, &invoice, &json!({"amount": "130.00", "overpayment": true})).ok();
    scene.run_on("2026-03-02");
    assert_eq!(books::balance(&scene.client, "acme")[0], ["100.00", "0.00", "30.00", "0.00"]);
    let payment = books::payments(&scene.client, &invoice)[0]["payment_ref"].clone();
    let second = reference(&scene.client, "UB-INV-2");
    refused(&books::apply(&scene.client, &payment, &second, "30.01"), 422, "above_unapplied");
    refused(&books::apply(&scene.client, &invoice, &second, "1.00"), 409, "not_unapplied");
    refused(&books::apply(&scene.client, &payment, &invoice, "1.00"), 422, "above_amount_due");
    let applied = books::apply(&scene.client, &payment, &second, "30.00").ok();
    assert_eq!(books::fields(&applied, OWED), ["PARTIALLY_PAID", "30.00", "0.00", "70.00", "false"]);
    let back = books::unapply(&scene.client, &applied["applications"][0]["application_ref"]).ok();
    assert_eq!(books::fields(&back, OWED), ["ISSUED", "0.00", "0.00", "100.00", "false"]);
    let gone = books::unapply(&scene.client, &applied["applications"][0]["application_ref"]);
    refused(&gone, 404, "application_not_found");
}

fn what_is_given_up_on_can_be_paid_later_and_taken_back(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    let amounts = |document: &Value| books::fields(document, ["state", "paid_amount", "written_off_amount", "amount_due"]);
    refused(&books::write_off(&scene.client, &invoice, &json!({"undo": true})), 409, "not_written_off");
    let given_up = books::write_off(&scene.client, &invoice, &json!({"reason": "insolvent"})).ok();
    assert_eq!(amounts(&given_up), ["UNCOLLECTIBLE", "0.00", "100.00", "0.00"]);
    refused(&books::write_off(&scene.client, &invoice, &json!({})), 409, "already_written_off");
    refused(&books::void(&scene.client, &invoice), 409, "not_issued");
    scene.go_to_instant("2026-02-02T12:01:00Z");
    let part = books::pay(&scene.client, &invoice, &json!({"amount": "40.00"})).ok();
    assert_eq!(amounts(&part), ["UNCOLLECTIBLE", "40.00", "60.00", "0.00"]);
    assert_eq!(books::balance(&scene.client, "acme")[0], ["0.00", "0.00", "0.00", "60.00"]);
    let back = books::write_off(&scene.client, &invoice, &json!({"undo": true})).ok();
    assert_eq!(amounts(&back), ["PARTIALLY_PAID", "40.00", "0.00", "60.00"]);
    let reported = back["write_offs"].as_array().expect("a list");
    let reported: Vec<[String; 2]> = reported.iter().map(|reported| books::fields(reported, ["amount", "reason"])).collect();
    assert_eq!(reported, [["100.00", "insolvent"], ["-40.00", "null"], ["-60.00", "null"]]);
    assert!(back["write_offs"][0]["recorded_by"].as_str().is_some_and(|by| by.starts_with("api_key:")), "{back}");
    let kinds: Vec<String> = books::statement(&scene.client, "acme");
    assert_eq!(
        kinds,
        [
            "2026-02-02 INVOICE UB-INV-1 100.00 100.00",
            "2026-02-02 WRITE_OFF UB-INV-1 -100.00 0.00",
            "2026-02-02 PAYMENT UB-INV-1 -40.00 -40.00",
            "2026-02-02 WRITE_OFF UB-INV-1 40.00 0.00",
            "2026-02-02 WRITE_OFF UB-INV-1 60.00 60.00",
        ]
    );
}

fn a_void_leaves_earlier_statements_as_they_were(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let february = "/api/customers/statement/acme?from=2026-02-01&to=2026-02-28";
    let before = scene.client.get(february).ok();
    scene.run_on("2026-03-03");
    books::void(&scene.client, &reference(&scene.client, "UB-INV-1")).ok();
    assert_eq!(scene.client.get(february).ok(), before);
    scene.run_on("2026-03-04");
    let billed_again = [
        "2026-02-02 INVOICE UB-INV-1 100.00 100.00",
        "2026-03-03 VOID UB-INV-1 -100.00 0.00",
        "2026-03-04 INVOICE UB-INV-2 100.00 100.00",
    ];
    assert_eq!(books::statement(&scene.client, "acme"), billed_again);
    let table = scene.client.get("/api/customers/statement/acme?from=2026-03-01&to=2026-03-03&format=csv");
    let rows: Vec<&str> = table.text.lines().collect();
    assert!(rows[1].ends_with(",OPENING_BALANCE,,,,,,100.00") && rows[2].contains(",VOID,UB-INV-1,"), "{rows:?}");
}

fn what_money_lies_on_is_not_voided(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-02-28")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    books::pay(&scene.client, &invoice, &json!({"amount": "10.00"})).ok();
    refused(&books::void(&scene.client, &invoice), 409, "document_paid");
    let payment = books::payments(&scene.client, &invoice)[0].clone();
    // An unapplied payment is still a payment recorded on the invoice.
    books::unapply(&scene.client, &payment["applications"][0]["application_ref"]).ok();
    refused(&books::void(&scene.client, &invoice), 409, "document_paid");
    books::reverse(&scene.client, &payment["payment_ref"], &json!({})).ok();
    let void = books::void(&scene.client, &invoice).ok();
    assert_eq!(books::fields(&void, ["state", "amount_due", "due_date"]), ["VOID", "null", "null"]);
    refused(&books::pay(&scene.client, &invoice, &json!({"amount": "1.00"})), 409, "not_owed");
    assert_eq!(books::balance(&scene.client, "acme")[0], ["0.00", "0.00", "0.00", "0.00"]);
}

fn lists_and_references_of_money_are_ones_own(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-02");
    let invoice = reference(&scene.client, "UB-INV-1");
    for amount in ["10.00", "20.00"] {
        books::pay(&scene.client, &invoice, &json!({"amount": amount, "reference": format!("bank {amount}")})).ok();
    }
    let list = |query: &str| {
        let payments = scene.client.get(&format!("/api/documents/payments/filter{query}"));
        let count = payments.header("x-total-count").to_owned();
        let amounts = payments.ok().as_array().expect("a list").iter().map(|payment| payment["amount"].to_string()).collect();
        (count, amounts)
    };
    let both: (String, Vec<String>) = ("2".to_owned(), vec!["10.00".to_owned(), "20.00".to_owned()]);
    assert_eq!(list(""), both);
    assert_eq!(list("?customer_ref=acme&from=2026-02-02&to=2026-02-02"), both);
    assert_eq!(list("?reference=bank%2020.00").1, ["20.00"]);
    assert_eq!(list("?customer_ref=nobody").1, [] as [String; 0]);
    assert_eq!(list("?from=2026-02-03").1, [] as [String; 0]);
    for path in ["balance", "statement"] {
        refused(&scene.client.get(&format!("/api/customers/{path}/nobody")), 404, "customer_not_found");
    }
    let unknown = json!("0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b");
    refused(&books::reverse(&scene.client, &unknown, &json!({})), 404, "payment_not_found");
    refused(&books::refund(&scene.client, &unknown, &json!({"amount": 1})), 404, "document_not_found");
    refused(&books::apply(&scene.client, &invoice, &unknown, "1.00"), 422, "unknown_reference");
    refused(&scene.client.get("/api/customers/statement/acme?from=2026-02-02&to=2026-02-01"), 422, "out_of_range");
    let payment = books::payments(&scene.client, &invoice)[0]["payment_ref"].clone();
    refused(&books::apply(&scene.client, &payment, &invoice, "1.00"), 422, "above_unapplied");
}

const THREADS: usize = 20;
const INVOICES: usize = 6;

fn twenty_at_once_on_two_servers_leave_nothing_below_zero(database: &Database) {
    let first = Server::start(database);
    let client = Client::new_key(&first);
    catalog::make_plan(&client);
    catalog::make_customer(&client, "acme");
    for _ in 0..INVOICES {
        catalog::sell(&client, &[catalog::ended(catalog::API_PLAN)]);
    }
    books::run(&client);
    let invoices: Vec<Value> = catalog::documents(&client).iter().map(|document| document["document_ref"].clone()).collect();
    assert_eq!(invoices.len(), INVOICES);
    // Only one server can use a SQLite file.
    let second = (!database.is_sqlite()).then(|| Server::start(database));
    let clients: Vec<Client> = (0..THREADS)
        .map(|i| match &second {
            Some(second) if i % 2 == 1 => client.at(second).with_own_connections(),
            _ => client.with_own_connections(),
        })
        .collect();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for (i, client) in clients.iter().enumerate() {
            let (invoices, barrier) = (&invoices, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..6 {
                    play(client, &invoices[(i + round) % INVOICES], &invoices[(i * 7 + round * 3) % INVOICES], i + round);
                }
            });
        }
    });
    // The amounts due less the unapplied amounts equal the billed amounts less the paid amounts.
    let (mut billed, mut due, mut unapplied, mut paid) = (0, 0, 0, 0);
    for document in catalog::documents(&client) {
        let names = ["total", "paid_amount", "amount_due", "written_off_amount"];
        let [total, of_it, left, written_off] = books::fields(&document, names).map(|text| cents(&text));
        if document["state"] != "VOID" {
            assert_eq!(total, of_it + left + written_off, "{document}");
            assert!(left >= 0 && written_off >= 0, "{document}");
            (billed, due) = (billed + total, due + left + written_off);
        }
    }
    for payment in client.get("/api/documents/payments/filter?pageSize=1000").ok().as_array().expect("a list") {
        let [amount, left] = books::fields(payment, ["amount", "unapplied_amount"]).map(|text| cents(&text));
        assert!(left >= 0, "{payment}");
        if payment["reversed_date"].is_null() {
            let sign = if payment["kind"] == "REFUND" { -1 } else { 1 };
            (paid, unapplied) = (paid + sign * amount, unapplied + left);
        }
    }
    assert_eq!(billed - paid, due - unapplied);
    let balance = books::balance(&client, "acme").remove(0).map(|text| cents(&text));
    assert_eq!((balance[0] + balance[3], balance[2]), (due, unapplied));
}

/// The write-off has the lock on the customer's accounts, and the void waits for it.
fn a_document_that_is_written_off_meanwhile_is_not_voided(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    catalog::make_customer(&client, "acme");
    catalog::sell(&client, &[catalog::ended(catalog::API_PLAN)]);
    books::run(&client);
    let invoice = catalog::documents(&client)[0]["document_ref"].clone();
    let held = database.hold_writes("write_offs");
    let waiting = |count: usize| {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(50));
            if database.is_sqlite() || database.ask(sessions) == [count.to_string()] {
                return;
            }
        }
        panic!("{count} requests do not wait");
    };
    let (written_off, voided) = thread::scope(|scope| {
        let first = scope.spawn(|| books::write_off(&client.with_own_connections(), &invoice, &json!({})));
        waiting(1);
        let second = scope.spawn(|| books::void(&client.with_own_connections(), &invoice));
        waiting(2);
        drop(held);
        (first.join().expect("an answer"), second.join().expect("an answer"))
    });
    // On SQLite, either is first.
    let statuses = [written_off.status, voided.status];
    assert!(statuses == [200, 409] || database.is_sqlite() && statuses == [409, 200], "{} {}", written_off.text, voided.text);
}

/// Converts an amount in euros to minor units.
fn cents(text: &str) -> i64 {
    if text == "null" { 0 } else { text.replace('.', "").parse().expect("an amount") }
}

/// Performs a money operation. A rejected operation must have an expected code.
fn play(client: &Client, invoice: &Value, other: &Value, what: usize) {
    let any = |payments: Vec<Value>| payments.into_iter().nth(what % 3);
    let answer = match what % 7 {
        0 | 1 => books::pay(client, invoice, &json!({"amount": "30.00", "overpayment": true})),
        2 => books::pay(client, invoice, &json!({"amount": "400.00", "overpayment": true})),
        3 => match any(books::payments(client, invoice)) {
            Some(payment) => books::reverse(client, &payment["payment_ref"], &json!({})),
            None => return,
        },
        4 => match any(books::payments(client, invoice)) {
            Some(payment) => books::apply(client, &payment["payment_ref"], other, "5.00"),
            None => return,
        },
        5 => books::void(client, invoice),
        _ => match any(books::payments(client, other)) {
            Some(payment) => books::refund(client, &payment["payment_ref"], &json!({"amount": "1.00"})),
            None => books::write_off(client, other, &json!({})),
        },
    };
    assert!([200, 409, 422].contains(&answer.status), "{}", answer.text);
}
