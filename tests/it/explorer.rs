//! The console's usage explorer, first page, pricings and first steps: they show the same data as the API.

use acceptance::client::Request;
use acceptance::console::{is_page, links, page, submit};
use acceptance::scene::{Scene, calls, each, product};
use acceptance::when::Day;
use acceptance::{Client, Database, Server, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    the_explorer_draws_what_the_summary_says,
    quantities_follow_the_aggregation_of_their_usage_product,
    the_first_page_tells_ages_refusals_and_what_is_due,
    the_page_of_a_pricing_says_what_a_quantity_costs_and_who_agreed_on_it,
    from_nothing_to_the_first_invoice
);

/// Returns the values of the drawn bars as `DAY: QUANTITY UNIT, events: COUNT`.
fn reported(page: &str) -> Vec<String> {
    let titles = page.split("<title>").skip(2).filter_map(|rest| rest.split("</title>").next());
    titles.map(str::to_owned).collect()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} of {value} isn't a string"))
}

/// Reports an event of an unknown customer and waits until it is counted.
fn refuse_one(software: &Client, event: &Value) {
    let refused = software.post("/api/usage/event", &catalog::with(event.clone(), &json!({"customer_ref": "nobody"})));
    assert_eq!(refused.status, 422, "{}", refused.text);
    while software.get("/api/usage/refused/filter").ok() == json!([]) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

fn the_explorer_draws_what_the_summary_says(database: &Database) {
    let server = Server::start(database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    catalog::make_contract(&software, &catalog::contract("acme"));
    let today = Day::today();
    for (ago, quantity) in [(9, "1200.5"), (9, "0.000000001"), (4, "7"), (1, "999999999999")] {
        software.post("/api/usage/event", &catalog::event_on("acme", today.plus_days(-ago), json!(quantity))).ok();
    }
    refuse_one(&software, &catalog::event_on("acme", today.plus_days(-1), 3));

    let explorer = page(&admin, "/console/usage?customer_ref=acme&interval=&contract_ref=");
    let rows = software.get("/api/usage/summary?interval=day&group_by=usage_product_ref&customer_ref=acme").ok();
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    let grouped = |quantity: String| match quantity.as_str() {
        "1200.500000001" => "1,200.500000001".to_owned(),
        "999999999999" | "999999999999.0" => "999,999,999,999".to_owned(),
        other => other.trim_end_matches(".0").to_owned(),
    };
    let expected: Vec<String> = rows
        .iter()
        .map(|row| {
            format!("{}: {} calls, events: {}", &text(row, "from")[..10], grouped(row["quantity"].to_string()), row["events"])
        })
        .collect();
    assert_eq!(reported(&explorer), expected, "a bar for each row");
    assert!(explorer.contains("value=\"1000000001206.500000001\""), "the sum is exact: {explorer}");

    let unknown = page(&admin, "/console/usage");
    assert!(
        unknown.contains(">nobody<") && unknown.contains("must be the reference of an existing customer"),
        "rejected usage is listed: {unknown}"
    );
    assert!(!explorer.contains(">nobody<"), "the rejected usage isn't acme's");

    // A bar leads to the hours of its day, an hour to its events, and an event to its document.
    let closer = links(&explorer).into_iter().find(|link| link.contains("usage_product_ref=api-calls&from=")).expect("a bar");
    let day = page(&admin, &closer);
    let hours: Vec<String> = reported(&day);
    assert_eq!(hours, [format!("{} 12:00: 1,200.500000001 calls, events: 2", today.plus_days(-9))]);
    let events = links(&day).into_iter().find(|link| link.starts_with("/console/events?")).expect("events");
    let listed = page(&admin, &events);
    assert!(listed.contains("Results: 2"), "{listed}");
    let event = links(&listed).into_iter().find(|link| link.starts_with("/console/events/")).expect("an event");
    assert!(links(&page(&admin, &event)).iter().any(|link| link.starts_with("/console/documents/")));

    // The customer's page shows the same bars.
    assert_eq!(reported(&page(&admin, "/console/customers/acme")), expected);
    // Days depend on the time zone.
    let there = page(&admin, &format!("/console/usage?from={0}&to={0}&timezone=Pacific/Kiritimati", today.plus_days(-8)));
    assert_eq!(reported(&there), [format!("{} 02:00: 1,200.500000001 calls, events: 2", today.plus_days(-8))]);

    for (query, field) in [
        ("from=2026-02-01&to=2026-01-31", "to:"),
        ("from=1990-01-01&to=2026-01-31", "from:"),
        ("from=yesterday", "from:"),
        ("timezone=Berlin", "timezone:"),
        ("interval=week", "interval:"),
    ] {
        let wrong = admin.get(&format!("/console/usage?{query}"));
        assert!(wrong.status == 422 && is_page(&wrong) && wrong.text.contains(field), "{query}: {}", wrong.text);
    }
    let empty = page(&admin, "/console/usage?from=2020-01-01&to=2020-12-31&interval=hour");
    assert!(empty.contains("No usage in this period.") && empty.contains("too many bars"), "{empty}");
}

fn quantities_follow_the_aggregation_of_their_usage_product(database: &Database) {
    let scene = Scene::begin(database, "2026-01-20");
    scene.client.post("/api/customers/", &json!({"customer_ref": "globex", "name": "Globex"})).ok();
    let aggregations = ["MAX", "LATEST", "COUNT", "SUM"];
    let items = aggregations.map(|aggregation| {
        let product = json!({"usage_product_ref": aggregation, "name": format!("By {aggregation}"), "aggregation": aggregation});
        scene.client.post("/api/usage/products/", &product).ok();
        catalog::with(each("0.10"), &json!({"line_item_id": aggregation, "usage_product_ref": aggregation}))
    });
    scene.pricing("plan", &items);
    for customer_ref in [catalog::ACME, "globex"] {
        let contract = json!({"customer_ref": customer_ref, "products": [product("plan", "2026-01-01", "2026-12-31")]});
        catalog::make_contract(&scene.client, &contract);
    }
    for (customer_ref, at, quantity) in [
        (catalog::ACME, "2026-01-05T10:00:00Z", 100),
        (catalog::ACME, "2026-01-05T09:00:00Z", 40),
        (catalog::ACME, "2026-01-06T09:00:00Z", 70),
        (catalog::ACME, "2026-01-06T09:00:00Z", 60),
        ("globex", "2026-01-05T10:00:00Z", 10),
        ("globex", "2026-01-18T10:00:00Z", 30),
    ] {
        for usage_product_ref in aggregations {
            let event = json!({"timestamp": at, "customer_ref": customer_ref, "usage_product_ref": usage_product_ref, "quantity": quantity});
            scene.client.post("/api/usage/event", &event).ok();
        }
    }
    let month = "from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z";
    let quantities = |query: &str, aggregation: &str| {
        let path = format!("/api/usage/summary?{query}&group_by=usage_product_ref&usage_product_ref={aggregation}");
        let rows = scene.client.get(&path).ok();
        rows.as_array().expect("rows").iter().map(|row| row["quantity"].to_string()).collect::<Vec<_>>()
    };
    let admin = scene.admin();
    let (home, explorer) = (page(&admin, "/console"), page(&admin, "/console/usage?from=2026-01-01&to=2026-01-20"));
    let document = catalog::only(scene.client.get("/api/documents/filter?customer_ref=acme&state=DRAFT").ok());
    let lines = document["products"][0]["line_items"].as_array().expect("lines").clone();
    for (aggregation, days, whole, billed) in [
        ("MAX", ["110", "70", "30"], "130", "100"),
        ("LATEST", ["110", "60", "30"], "90", "60"),
        ("COUNT", ["3", "2", "1"], "6", "4"),
        ("SUM", ["150", "130", "30"], "310", "270"),
    ] {
        assert_eq!(quantities("interval=day", aggregation), days, "{aggregation}");
        assert_eq!(quantities("interval=month", aggregation), [whole], "{aggregation}");
        assert_eq!(quantities(month, aggregation), [whole], "{aggregation}");
        // The customer's quantity is the billed one.
        assert_eq!(quantities(&format!("{month}&customer_ref=acme"), aggregation), [billed], "{aggregation}");
        let line = lines.iter().find(|line| line["line_item_id"] == *aggregation).expect("a line");
        assert_eq!(line["quantity"].to_string(), billed, "{aggregation}");
        assert_eq!(row(&home, &format!("By {aggregation}"))[0], whole, "{aggregation}: {home}");
        let (_, totals) = explorer.split_once(">Totals<").expect("the totals");
        let total = &row(totals, &format!("By {aggregation}"))[0];
        assert!(total.contains(&format!("value=\"{whole}\"")), "{aggregation}: {total}");
        let rows = scene.client.get("/api/usage/summary?interval=month&group_by=customer_ref,usage_product_ref").ok();
        let of_acme = rows
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["customer_ref"] == "acme" && row["usage_product_ref"] == *aggregation);
        assert_eq!(of_acme.map(|row| row["quantity"].to_string()).as_deref(), Some(billed), "{aggregation}");
    }
    assert_eq!(scene.client.get("/api/usage/summary?from=2026-01-01T00:00:00Z").status, 422);
}

/// Returns the cells of the table row that begins with a link of this name.
fn row(page: &str, name: &str) -> Vec<String> {
    let row = page.split("<tr>").find(|row| row.contains(&format!(">{name}</a>"))).unwrap_or_else(|| panic!("{name}: {page}"));
    let cell = |cell: &str| cell.split("</td>").next().unwrap_or_default().to_owned();
    row.split("<td class=\"amount\">").skip(1).map(cell).collect()
}

fn the_first_page_tells_ages_refusals_and_what_is_due(database: &Database) {
    let scene = Scene::begin(database, "2026-01-15");
    scene.pricing("plan", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    scene.sell(&[catalog::with(product("plan", "2026-01-01", "2026-12-31"), &json!({"net_terms": 14}))]);
    scene.calls("2026-01-15", 10);
    scene.run_on("2026-02-02");
    scene.calls("2026-02-02", 20);
    scene.run_on("2026-03-02");
    // 101.00 for January is due on 15 February; 102.00 for February is due on 16 March.
    scene.go_to("2026-04-01");
    refuse_one(&scene.client, &calls("2026-04-01", 1));
    let admin = scene.admin();
    let home = page(&admin, "/console");
    for (age, amount) in [("1 to 30 days overdue", "102.00"), ("31 to 60 days overdue", "101.00")] {
        let cells = row(&home, age);
        assert!(cells[0] == "1" && cells[1].contains(&format!("title=\"{amount} EUR\"")), "{age}: {cells:?}");
    }
    assert_eq!(row(&home, "Not due yet")[0], "0", "{home}");
    assert!(row(&home, "All amounts due")[1].contains("title=\"203.00 EUR\""), "{home}");
    // January was issued in February, and February in March. The page shows what the API returns.
    let months = scene.client.get("/api/documents/summary?issued_from=2026-01-01").ok();
    let billed: Vec<String> = months.as_array().expect("months").iter().map(|month| month["billed"].to_string()).collect();
    assert_eq!((billed, &months[1]["issued_to"]), (vec!["101.00".to_owned(), "102.00".to_owned()], &json!("2026-03-31")));
    for bar in ["February 2026: 101.00 EUR, 1 document", "March 2026: 102.00 EUR, 1 document"] {
        assert!(home.contains(bar), "{bar}: {home}");
    }
    assert_eq!(scene.client.get("/api/documents/summary?customer_ref=nobody").ok(), json!([]));
    let (_, rejected) = home.split_once("Usage events rejected since yesterday").expect("the rejected usage");
    assert!(rejected.contains("<strong>1</strong>") && rejected.contains("nobody"), "{home}");
    for link in links(&home).iter().filter(|link| link.starts_with("/console/documents?")) {
        page(&admin, link);
    }
    let due = links(&home).into_iter().find(|link| link.contains("issues_before=2026-04-02T00")).expect("contracts due today");
    assert!(page(&admin, &due).contains("C-1"), "March is issued today");
    assert!(home.contains("No usage in this month and the month before."), "{home}");
    scene.go_to("2026-04-02");
    scene.calls("2026-04-02", 50);
    let home = page(&scene.admin(), "/console");
    let (_, usage) = home.split_once("Usage this month").expect("the usage");
    assert_eq!(row(usage, "API calls"), ["50", "0", "–"], "{home}");
}

fn the_page_of_a_pricing_says_what_a_quantity_costs_and_who_agreed_on_it(database: &Database) {
    let server = Server::start(database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    let place = "/console/pricings/api-plan";
    let unused = page(&admin, place);
    assert!(unused.contains("No contracts yet.") && unused.contains("<polyline"), "{unused}");
    let contract = catalog::make_contract(&software, &catalog::contract("acme"));
    let asked = page(&admin, &format!("{place}?quantity=1500"));
    assert!(asked.contains("at 1,500 → 60.00 EUR") && asked.contains("<circle"), "{asked}");
    assert!(links(&asked).contains(&format!("/console/contracts/{contract}")), "the contract with this pricing");
    // Every drawn amount equals the amount that the API returns.
    let drawn =
        asked.split("<td class=\"amount\">").skip(1).filter_map(|rest| rest.split('<').next()).map(|text| text.replace(',', ""));
    let drawn: Vec<String> = drawn.collect();
    let start = drawn.windows(2).position(|pair| pair == ["0", "0.00"]).expect("the beginning of the table");
    let points: Vec<&[String]> = drawn[start..].chunks_exact(2).collect();
    assert!(points.len() > 20, "{points:?}");
    let quantities: Vec<&str> = points.iter().map(|point| point[0].as_str()).collect();
    let rates = software.get(&format!("/api/pricings/rates/api-plan?quantity={}", quantities.join(","))).ok();
    for (point, rate) in points.iter().zip(rates.as_array().expect("rates")) {
        assert_eq!(point[1], rate["line_items"][0]["amount"].to_string(), "{point:?}");
    }
    let wrong = page(&admin, &format!("{place}?quantity=many"));
    assert!(wrong.contains("aria-invalid") && wrong.contains("value=\"many\""), "{wrong}");
    assert_eq!(admin.get("/console/pricings/nothing").status, 404);
}

/// Encodes form fields as a browser does.
fn encoded(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.replace('%', "%25").replace('/', "%2F").replace('&', "%26").replace(' ', "+");
    fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect::<Vec<_>>().join("&")
}

/// Returns the value of an input or a choice.
fn value_of(page: &str, name: &str) -> String {
    if let Some((_, choice)) = page.split_once(&format!("<select id=\"field-{name}\"")) {
        let mut options = choice.split("</select>").next().unwrap_or_default().split("<option value=\"");
        let selected = options.find(|option| option.contains(" selected")).unwrap_or_else(|| panic!("{name}: {page}"));
        return selected.split('"').next().unwrap_or_default().to_owned();
    }
    let input = page
        .split("<input")
        .find(|input| input.contains(&format!("name=\"{name}\"")))
        .unwrap_or_else(|| panic!("{name}: {page}"));
    input.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn from_nothing_to_the_first_invoice(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let first = admin.send(&Request::get("/console"));
    assert_eq!((first.status, first.header("Location")), (303, "/console/start"));
    let steps = page(&admin, "/console/start");
    assert!(steps.contains("action=\"/console/start/entity\"") && !steps.contains(">Done<"), "{steps}");

    let address = [
        ("name", "We & Co"),
        ("legal_name", "We & Co GmbH"),
        ("tax_id", "27/123/45678"),
        ("address/line1", "1 Main Street"),
        ("address/city", "Berlin"),
        ("timezone", "Europe/Berlin"),
        ("number_prefix", "UB"),
    ];
    let wrong =
        submit(&admin, "/console/start/entity", &encoded(&[address.as_slice(), &[("address/country_code", "Germany")]].concat()));
    assert!(
        wrong.status == 422 && wrong.text.contains("aria-invalid") && wrong.text.contains("value=\"We &amp; Co\""),
        "{}",
        wrong.text
    );
    let forms: [(&str, &[(&str, &str)]); 5] = [
        ("entity", &[address.as_slice(), &[("address/country_code", "DE")]].concat()),
        ("usage-product", &[("name", "API calls"), ("usage_product_ref", "calls"), ("unit", "call")]),
        (
            "pricing",
            &[
                ("name", "Plan"),
                ("currency", "EUR"),
                ("line_items/0/usage_product_ref", "calls"),
                ("line_items/0/price/unit_price", "0.05"),
                ("line_items/1/price/amount", "49"),
            ],
        ),
        (
            "customer",
            &[
                ("name", "Acme Ltd"),
                ("legal_name", "Acme Limited"),
                ("customer_ref", "acme"),
                ("billing_address/line1", "2 High Street"),
                ("billing_address/city", "Dublin"),
                ("billing_address/country_code", "IE"),
                ("tax", "19"),
            ],
        ),
        ("contract", &[]),
    ];
    for (done, (step, fields)) in forms.into_iter().enumerate() {
        let shown = page(&admin, "/console/start");
        assert_eq!(shown.matches(">Done<").count(), done, "{shown}");
        assert!(shown.contains(&format!("action=\"/console/start/{step}\"")), "{step}: {shown}");
        // The last form is submitted with its suggested values.
        let usual =
            ["customer_ref", "products/0/product_pricing_ref", "products/0/billing_start_date", "products/0/billing_end_date"];
        let stated: Vec<String> = usual.iter().filter(|_| fields.is_empty()).map(|name| value_of(&shown, name)).collect();
        let fields: Vec<(&str, &str)> =
            fields.iter().copied().chain(usual.into_iter().zip(stated.iter().map(String::as_str))).collect();
        let made = submit(&admin, &format!("/console/start/{step}"), &encoded(&fields));
        assert_eq!(
            (made.status, made.header("Location")),
            (303, format!("/console/start?done={step}").as_str()),
            "{}",
            made.text
        );
    }

    let key = submit(&admin, "/console/start/key", "");
    assert!(key.status == 200 && is_page(&key) && key.text.contains("/api/usage/event"), "{}", key.text);
    let wait = links(&key.text).into_iter().find(|link| link.starts_with("/console/start/wait")).expect("the waiting page");
    let waiting = admin.get(&wait);
    assert!(waiting.header("Refresh") == "4" && waiting.text.contains("Waiting for the first event"), "{}", waiting.text);
    let paused = admin.get(&format!("{wait}&paused=true"));
    assert_eq!((paused.status, paused.header("Refresh")), (200, ""), "a paused page doesn't reload");

    // The displayed call works in a shell.
    let call = key.text.split("<code id=\"call\">").nth(1).and_then(|rest| rest.split("</code>").next()).expect("a call");
    let call = call.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&amp;", "&");
    let answer = std::process::Command::new("sh").arg("-c").arg(&call).output().expect("a shell");
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap_or_else(|_| panic!("{call}: {answer:?}"));
    let invoice = admin.get(&wait);
    assert_eq!((invoice.status, invoice.header("Refresh")), (200, ""));
    assert!(
        links(&invoice.text).contains(&format!("/console/documents/{}", text(&answer, "related_document_ref"))),
        "{}",
        invoice.text
    );
    // A fee of 49.00 and 1,500 calls at 0.05, plus 19 % tax.
    assert!(invoice.text.contains("147.56"), "{}", invoice.text);
    let document_ref = text(&answer, "related_document_ref");
    let document = Client::new_key(&server).get(&format!("/api/documents/{document_ref}")).ok();
    assert_eq!(document["missing"], json!([]), "the steps ask for everything that an invoice needs");
    assert!(page(&admin, "/console").contains("<h1>Home</h1>"));
    assert!(page(&admin, "/console/start").contains("The first event is on"));
}

#[test]
fn a_step_that_is_no_step_and_a_foreign_page_get_nowhere() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    assert_eq!(submit(&admin, "/console/start/nothing", "name=x").status, 404);
    let early = submit(&admin, "/console/start/key", "");
    assert_eq!((early.status, early.header("Location")), (303, "/console/start"), "no contract exists yet");
    assert_eq!(admin.get("/auth/keys/list").ok(), json!([]));
    let foreign = admin.with_header("Sec-Fetch-Site", "cross-site");
    assert_eq!(submit(&foreign, "/console/start/customer", "name=x").status, 403);
    assert_eq!(submit(&Client::anonymous(&server), "/console/start/customer", "name=x").status, 303, "log-in is required");
    assert_eq!(admin.get("/api/customers/filter").ok(), json!([]));
}

/// Returns the address of a page's frame.
fn framed(page: &str) -> Option<String> {
    let (_, frame) = page.split_once("<iframe")?;
    let source = frame.split("src=\"").nth(1)?.split('"').next()?;
    Some(source.replace("&amp;", "&"))
}

#[test]
fn sums_of_many_events_stand_in_frames_of_their_own() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let (admin, software) = (Client::admin(&server), Client::new_key(&server));
    catalog::make(&software);
    catalog::make_contract(&software, &catalog::contract("acme"));
    let event = catalog::with(catalog::event_on("acme", Day::today(), 1), &json!({"timestamp": acceptance::when::now()}));
    let pages = ["/console", "/console/customers/acme", "/console/usage?customer_ref=acme"];
    for _ in 0..5 {
        let batch = json!({"events": vec![&event; 10_000]});
        assert_eq!(software.post("/api/usage/event/batch", &batch).status, 200);
    }
    let before = pages.map(|address| page(&admin, address));
    assert_eq!(before.each_ref().map(|page| framed(page)), [None, None, None], "50,000 events need no frame");

    software.post("/api/usage/event", &event).ok();
    // A page of the list is the same with and without the filter for the only customer.
    for number in [0, 1665, 1666, 1667, 16_666] {
        let listed = |narrowed: &str| {
            let list = "/api/usage/event/filter?order=-created&pageSize=3&pageNumber=";
            software.get(&format!("{list}{number}{narrowed}")).ok()
        };
        let all = listed("");
        assert!(all == listed("&customer_ref=acme") && all.as_array().is_some_and(|all| all.len() == 3), "{number}: {all}");
    }
    for (address, before) in pages.into_iter().zip(before) {
        let whole = page(&admin, address);
        let frame = framed(&whole).unwrap_or_else(|| panic!("no frame in {address}: {whole}"));
        assert!(before.contains("50,000") && !whole.contains("50,001"), "{address}");
        let part = admin.get(&frame);
        let (policy, options) = (part.header("Content-Security-Policy"), part.header("X-Frame-Options"));
        assert_eq!((part.status, options), (200, "SAMEORIGIN"), "{}", part.text);
        assert!(policy.contains("frame-ancestors 'self'") && policy.contains("form-action 'none'"), "{policy}");
        assert!(part.text.contains("50,001") && part.text.contains("<base target=\"_top\">"), "{address}: {}", part.text);
        assert_eq!(reported(&part.text).len(), reported(&before).len(), "{address} draws the same bars");
        let drawn: Vec<&str> = part.text.split("<svg").skip(1).filter_map(|drawing| drawing.split("</svg>").next()).collect();
        let bars = drawn.iter().flat_map(|drawing| drawing.split("<a ").skip(1));
        assert!(bars.clone().all(|bar| bar.contains("target=\"_top\"")), "a bar navigates the whole page: {address}");
        assert_eq!(bars.count() > 0, address != "/console");
        assert_eq!(Client::anonymous(&server).get(&frame).status, 303);
    }
    let wrong = admin.get("/console/sums/customer?customer_ref=acme&customer=acme");
    assert!(wrong.status == 422 && wrong.text.contains("unknown_parameter"), "{}", wrong.text);
    assert_eq!(wrong.header("X-Frame-Options"), "SAMEORIGIN", "the error is shown in the frame");
    assert_eq!(admin.get("/console/sums/nothing").status, 404);
    let elsewhere = admin.get("/console");
    let policy = elsewhere.header("Content-Security-Policy");
    assert!(policy.contains("frame-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
}
