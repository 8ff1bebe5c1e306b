//! Reports of other systems, imported by the usage formats of the guide. The samples have the fields and the irregularities of such
//! reports: empty cells, records that are no usage, floats, and texts of any form. Their values are ours.

use std::collections::BTreeMap;
use std::fs;

use acceptance::documentation::{Kind, Page, root};
use acceptance::{Client, Clock, Database, Request, Server, binary, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    openai_usage_is_billed_by_kind_of_tokens,
    a_focus_report_of_1000_rows_is_imported_without_rejects,
    call_records_are_billed_by_started_minutes,
    nginx_access_logs_are_billed_by_traffic_and_requests,
    opencost_allocations_are_billed_by_resource,
);

const GUIDE: &str = "docs/guides/usage-from-other-systems.md";
const NDJSON: &str = "application/x-ndjson";
/// The instant at which the guide starts.
const NOW: &str = "2026-03-06T09:00:00Z";
/// A billionth, the smallest quantity, is the unit of [`Quantities`].
const ONE: i128 = 1_000_000_000;

/// Billed quantities by customer and line item.
type Quantities = BTreeMap<(String, String), i128>;

/// A server with the catalog and the usage formats of the guide.
struct Stage {
    _server: Server,
    clock: Clock,
    client: Client,
    /// The customers with their contracts.
    contracts: Vec<(String, String)>,
}

/// Returns the calls `post PATH 'BODY'` of the guide.
fn calls() -> Vec<(String, Value)> {
    let blocks = Page::read(GUIDE).blocks.into_iter().filter(|block| block.kind() == Kind::Calls && block.not_run.is_none());
    let mut calls = Vec::new();
    for block in blocks {
        for call in block.text.split("post ").skip(1).filter(|call| call.starts_with("/api/")) {
            let (path, rest) = call.split_once(" '").expect("a body in quotes");
            let (body, _) = rest.split_once('\'').expect("the end of the body");
            calls.push((path.to_owned(), serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))));
        }
    }
    calls
}

fn stage(database: &Database) -> Stage {
    let clock = Clock::at(NOW);
    let server = Server::start_on(database, &clock);
    let client = Client::new_key(&server);
    let mut contracts = Vec::new();
    for (path, body) in calls() {
        let made = client.post(&path, &body).ok();
        if path == "/api/contracts/" {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            contracts.push((text(&body["customer_ref"]), text(&made["contract_ref"])));
        }
    }
    Stage { _server: server, clock, client, contracts }
}

impl Stage {
    /// Imports a file over HTTP as the guide does.
    fn import(&self, format: &str, content_type: &str, file: impl Into<Vec<u8>>) -> Value {
        let path = format!("/api/usage/import?name={format}&format_name={format}&on_conflict=UPDATE");
        self.client.send(&Request::post(&path, file).with("Content-Type", content_type)).ok()
    }

    /// Imports a file on the command line, and returns the first line of the output.
    fn import_locally(&self, database: &Database, format: &str, file_name: &str, file: &str) -> String {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join(file_name);
        fs::write(&path, file).expect("a file");
        let arguments = ["import", path.to_str().expect("a path"), "--format", format, "--on-conflict", "update"];
        let clock = self.clock.environment();
        let environment: Vec<(&str, &str)> = clock.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let environment = [&environment[..], &[("USAGE_BILLING_DATABASE_URL", database.url())]].concat();
        let finished = binary::run(&arguments, &environment);
        finished.stdout.lines().next().unwrap_or(&finished.stderr).to_owned()
    }

    /// Returns the quantities above zero on the drafts.
    fn billed(&self) -> Quantities {
        let mut billed = Quantities::new();
        for (customer, contract) in &self.contracts {
            let draft = catalog::current_invoice(&self.client, contract);
            assert_eq!(draft["state"], "DRAFT");
            for item in draft["products"][0]["line_items"].as_array().expect("line items") {
                let quantity = billionths(&item["quantity"].to_string());
                if quantity != 0 {
                    billed.insert((customer.clone(), item["line_item_id"].as_str().expect("an id").to_owned()), quantity);
                }
            }
        }
        billed
    }

    /// Imports the records of a report, then again, then with a correction of one event. Compares counts and drafts.
    #[track_caller]
    fn deliver(&self, format: &str, [first, corrected]: [&Report; 2], skipped: u64) {
        let lines = |report: &Report| report.records.iter().map(|record| format!("{record}\n")).collect::<String>();
        let known = first.events;
        for (report, expected) in
            [(first, [known, 0, 0, 0, skipped]), (first, [0, 0, known, 0, skipped]), (corrected, [0, 1, known - 1, 0, skipped])]
        {
            let result = self.import(format, NDJSON, lines(report));
            assert_eq!(counts(&result), expected, "{result}");
            assert_eq!(self.billed(), report.quantities);
        }
    }
}

/// Records, and the events that they must give.
#[derive(Default)]
struct Report {
    records: Vec<Value>,
    events: u64,
    quantities: Quantities,
}

impl Report {
    fn add(&mut self, customer: &str, line_item: &str, quantity: i128) {
        if quantity != 0 {
            *self.quantities.entry((customer.to_owned(), line_item.to_owned())).or_default() += quantity;
        }
    }

    fn add_event(&mut self, customer: &str, line_item: &str, quantity: i128) {
        self.events += 1;
        self.add(customer, line_item, quantity);
    }
}

/// Returns the numbers of recorded, updated, existing, rejected and skipped events.
fn counts(result: &Value) -> [u64; 5] {
    let count = |field: &str| result[field].as_u64().expect("a count");
    ["recorded", "updated", "already_there", "refused", "skipped"].map(count)
}

/// Returns a decimal with at most nine decimals in billionths.
fn billionths(text: &str) -> i128 {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    assert!(fraction.len() <= 9 && !text.starts_with('-'), "{text}");
    format!("{integer}{fraction:0<9}").parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sample(name: &str) -> String {
    fs::read_to_string(root().join("tests/samples").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json_of(name: &str) -> Value {
    serde_json::from_str(&sample(name)).expect("JSON")
}

fn int(value: &Value) -> i128 {
    value.as_u64().expect("an integer").into()
}

/// Maps a name in a report to its customer.
#[track_caller]
fn customer(value: &Value, table: [(&str, &'static str); 2]) -> &'static str {
    table.iter().find(|(name, _)| value == name).map(|(_, customer)| *customer).unwrap_or_else(|| panic!("{value}"))
}

fn openai(page: &Value) -> Report {
    let mut report = Report::default();
    for bucket in page["data"].as_array().expect("buckets") {
        for result in bucket["results"].as_array().expect("results") {
            // As `{start_time} + .results[]` of the guide.
            report.records.push(catalog::with(json!({"start_time": bucket["start_time"]}), result));
            let customer = customer(&result["project_id"], [("proj_Xq81LkTr", "acme"), ("proj_b7WmZz20", "globex")]);
            let cached = result.get("input_cached_tokens").map_or(0, int);
            report.add_event(customer, "input", (int(&result["input_tokens"]) - cached) * ONE);
            report.add_event(customer, "cached", cached * ONE);
            report.add_event(customer, "output", int(&result["output_tokens"]) * ONE);
        }
    }
    report
}

fn openai_usage_is_billed_by_kind_of_tokens(database: &Database) {
    let mut page = json_of("openai.json");
    let first = openai(&page);
    page["data"][3]["results"][0]["output_tokens"] = json!(1_000_700);
    assert_eq!(first.events, 24);
    stage(database).deliver("openai", [&first, &openai(&page)], 0);
}

fn call_records(page: &Value) -> Report {
    let mut report = Report::default();
    for call in page["calls"].as_array().expect("calls") {
        report.records.push(call.clone());
        if call["status"] == "completed" {
            let accounts = [("AC0f3a5d1c77e24b0c9d5be1a2f6c8d901", "acme"), ("AC7be2904411d84f6ab1c35e90d7f2a802", "globex")];
            let seconds: i128 = call["duration"].as_str().expect("a text").parse().expect("seconds");
            report.add_event(customer(&call["account_sid"], accounts), "calls", (seconds + 59) / 60 * ONE);
        }
    }
    report
}

fn call_records_are_billed_by_started_minutes(database: &Database) {
    let mut page = json_of("calls.json");
    let first = call_records(&page);
    page["calls"][2]["duration"] = json!("121");
    assert_eq!(first.events, 6);
    stage(database).deliver("calls", [&first, &call_records(&page)], 6);
}

fn nginx(log: &str) -> Report {
    let mut report = Report::default();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if line["customer"] != "" {
            let customer = line["customer"].as_str().expect("a text");
            // A byte is a billionth of a GB.
            report.add_event(customer, "egress", int(&line["bytes"]));
            report.add(customer, "requests", ONE);
        }
        report.records.push(line);
    }
    report
}

fn nginx_access_logs_are_billed_by_traffic_and_requests(database: &Database) {
    let log = sample("nginx.ndjson");
    let (first, corrected) = (nginx(&log), nginx(&log.replace("\"bytes\":734003200", "\"bytes\":734003201")));
    assert_eq!(first.events, 7);
    stage(database).deliver("nginx", [&first, &corrected], 2);
}

/// Returns a positive JSON number, also with an exponent, rounded to billionths.
fn rounded(number: &str) -> i128 {
    let (decimal, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let (integer, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let digits: i128 = format!("{integer}{fraction}").parse().expect("digits");
    let exponent: i32 = exponent.parse().expect("an exponent");
    let shift = exponent + 9 - i32::try_from(fraction.len()).expect("a short number");
    let power = 10_i128.pow(shift.unsigned_abs());
    if shift < 0 { quotient(digits, power) } else { digits * power }
}

/// Divides and rounds half up.
fn quotient(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor / 2) / divisor
}

fn opencost(answer: &Value) -> Report {
    const GIB: i128 = 1 << 30;
    let resources =
        [("cpuCoreHours", "cpu", 1), ("ramByteHours", "ram", GIB), ("pvByteHours", "disk", GIB), ("gpuHours", "gpu", 1)];
    let mut report = Report::default();
    for window in answer["data"].as_array().expect("windows").iter().filter_map(Value::as_object) {
        for (name, allocation) in window {
            report.records.push(allocation.clone());
            for (field, line_item, unit) in resources.iter().filter(|_| ["acme", "globex"].contains(&name.as_str())) {
                let hours = &allocation[field];
                let quantity = if hours.is_null() { 0 } else { quotient(rounded(&hours.to_string()), *unit) };
                if quantity != 0 {
                    report.add_event(name, line_item, quantity);
                }
            }
        }
    }
    report
}

fn opencost_allocations_are_billed_by_resource(database: &Database) {
    let mut answer = json_of("opencost.json");
    let first = opencost(&answer);
    answer["data"][2]["acme"]["gpuHours"] = json!(1.75);
    assert_eq!((first.records.len(), first.events), (8, 9));
    stage(database).deliver("opencost", [&first, &opencost(&answer)], 4 * 8 - 9);
}

/// The columns of FOCUS 1.2.
const FOCUS: &str = "AvailabilityZone,BilledCost,BillingAccountId,BillingAccountName,BillingAccountType,BillingCurrency,\
    BillingPeriodEnd,BillingPeriodStart,CapacityReservationId,CapacityReservationStatus,ChargeCategory,ChargeClass,\
    ChargeDescription,ChargeFrequency,ChargePeriodEnd,ChargePeriodStart,CommitmentDiscountCategory,CommitmentDiscountId,\
    CommitmentDiscountName,CommitmentDiscountQuantity,CommitmentDiscountStatus,CommitmentDiscountType,CommitmentDiscountUnit,\
    ConsumedQuantity,ConsumedUnit,ContractedCost,ContractedUnitPrice,EffectiveCost,InvoiceId,InvoiceIssuerName,ListCost,\
    ListUnitPrice,PricingCategory,PricingCurrency,PricingCurrencyContractedUnitPrice,PricingCurrencyEffectiveCost,\
    PricingCurrencyListUnitPrice,PricingQuantity,PricingUnit,ProviderName,PublisherName,RegionId,RegionName,ResourceId,\
    ResourceName,ResourceType,ServiceCategory,ServiceName,ServiceSubcategory,SkuId,SkuMeter,SkuPriceDetails,SkuPriceId,\
    SubAccountId,SubAccountName,SubAccountType,Tags";

/// Returns the consumed quantity of a row as a provider writes it, and in billionths. `None` is no usage.
fn consumed(row: i128) -> (String, Option<i128>) {
    let digits = (row + 1) * 7_919_104_729 % 1_000_000_007;
    match row % 20 {
        0 | 1 => ("NULL".to_owned(), None),
        2 | 3 => (String::new(), None),
        4 => (format!("-0.{digits:012}"), None),
        5 => ("0".to_owned(), Some(0)),
        6 => (format!("{digits}"), Some(digits * ONE)),
        7 => (format!("{}.{digits:09}00", row), Some(row * ONE + digits)),
        8 => (format!("1.{:02}E-7", row % 89 + 10), Some(100 + row % 89 + 10)),
        9 => (format!("{row}e+2"), Some(row * 100 * ONE)),
        // A float of 17 decimals.
        10 | 11 => (format!("0.{:017}", digits * 40_000_003), Some((digits * 40_000_003 + 50_000_000) / 100_000_000)),
        _ => (format!("{}.{:012}", row % 7, digits * 997), Some(row % 7 * ONE + (digits * 997 + 500) / 1_000)),
    }
}

/// A row of a FOCUS report.
struct FocusRow {
    /// The cells that aren't empty, by column.
    cells: BTreeMap<&'static str, String>,
    /// The customer, line item and quantity, if the row is usage.
    billed: Option<(&'static str, &'static str, i128)>,
}

fn focus_row(row: i128) -> FocusRow {
    let (quantity, billed) = consumed(row);
    let (account, customer) = if row % 3 == 0 { ("310987654321", "globex") } else { ("210987654321", "acme") };
    let (unit, line_item) = if row % 2 == 0 { ("Hours", "machine-hours") } else { ("GB", "gigabytes") };
    let day = row % 5 + 1;
    let start = match row % 4 {
        0 => format!("2026-03-0{day}T00:00:00Z"),
        1 => format!("2026-03-0{day}T00:00Z"),
        2 => format!("2026-03-0{day} 00:00:00"),
        _ => format!("2026-03-0{day}T00:00:00.000Z"),
    };
    let category = match row % 20 {
        0 => "Tax",
        1 => "Credit",
        2 => "Purchase",
        _ => "Usage",
    };
    // A row without usage has no price either, except unused parts of a commitment.
    let null = if billed.is_none() && row % 20 < 2 { "NULL" } else { "" };
    let or_null = |text: String| if row % 20 < 3 { null.to_owned() } else { text };
    let cells = [
        ("BilledCost", format!("{}0.{:012}", if row % 20 == 1 { "-" } else { "" }, row * 1_291)),
        ("ChargeCategory", category.to_owned()),
        ("ChargeClass", if row % 20 == 4 { "Correction" } else { "" }.to_owned()),
        ("ChargeDescription", format!("Büro Zürich; \"row\"\nnumber {row}, second line")),
        ("ChargePeriodStart", start),
        ("CommitmentDiscountStatus", if row % 20 == 3 { "Unused" } else { "" }.to_owned()),
        ("ConsumedQuantity", quantity),
        ("ConsumedUnit", or_null(unit.to_owned())),
        ("PricingCategory", or_null("Standard".to_owned())),
        ("RegionId", or_null("eu-central-1".to_owned())),
        ("ResourceId", if row % 25 == 9 { null.to_owned() } else { or_null(format!("/rg/Büro/disks/disk-{row}")) }),
        ("ServiceName", "Virtual Machines".to_owned()),
        ("SkuId", or_null(format!("SKU{}", row % 9))),
        ("SkuPriceId", or_null(format!("SKU{}-{row}", row % 9))),
        ("SubAccountId", account.to_owned()),
        ("Tags", json!({"team": "Küche", "nested": {"list": [1, "a;b"], "text": "one\ntwo"}}).to_string()),
    ];
    FocusRow {
        cells: cells.into_iter().filter(|(_, text)| !text.is_empty()).collect(),
        billed: billed.map(|quantity| (customer, line_item, quantity)),
    }
}

/// Returns a report of 1,000 rows as CSV with a delimiter. Some cells are replaced.
fn focus(delimiter: &str, line_break: &str, replaced: &[(i128, &'static str, &str)]) -> String {
    let names: Vec<&str> = FOCUS.split(',').collect();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut file = names.join(delimiter) + line_break;
    for row in 0..1_000 {
        let mut cells = focus_row(row).cells;
        for (_, name, text) in replaced.iter().filter(|(of, ..)| *of == row) {
            cells.insert(name, (*text).to_owned());
        }
        let cell = |name: &&str| cells.get(name).map_or(String::new(), |text| quoted(text));
        file += &(names.iter().map(cell).collect::<Vec<_>>().join(delimiter) + line_break);
    }
    file
}

fn a_focus_report_of_1000_rows_is_imported_without_rejects(database: &Database) {
    let stage = stage(database);
    let mut expected = Report::default();
    for (customer, line_item, quantity) in (0..1_000).filter_map(|row| focus_row(row).billed) {
        expected.add_event(customer, line_item, quantity);
    }
    assert_eq!(expected.events, 750);
    for counted in [[750, 0, 0, 0, 250], [0, 0, 750, 0, 250]] {
        let result = stage.import("focus", "text/csv", focus(",", "\n", &[]));
        assert_eq!(counts(&result), counted, "{result}");
        assert_eq!(stage.billed(), expected.quantities);
    }

    // The provider corrects a row. The same report comes from a spreadsheet, by the command line.
    let (customer, line_item, before) = focus_row(12).billed.expect("usage");
    expected.add(customer, line_item, 5 * ONE - before);
    let file = format!("\u{feff}sep=;\r\n{}", focus(";", "\r\n", &[(12, "ConsumedQuantity", "5.000000000000")]));
    let printed = stage.import_locally(database, "focus", "focus.csv", &file);
    assert_eq!(printed, "Events recorded: 0; updated: 1; duplicates: 749; rejected: 0; skipped: 250.");
    assert_eq!(stage.billed(), expected.quantities);
}
