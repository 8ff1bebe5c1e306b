//! The examples of the OpenAPI document are real responses of the server. `EXAMPLES=write` writes the current responses, which
//! are built into the binary.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use acceptance::{Database, tour};
use serde_json::{Map, Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/billing-api/src/openapi/examples.json");
/// The server's time of day at the beginning of the tour.
const BEGIN: &str = "T12:00:00Z";
/// A description would contain itself as an example, metrics differ each time, a PDF file is not text, and an e-invoice is long.
const WITHOUT: [&str; 4] = ["openapi", "metrics", "get_document_pdf", "get_document_xml"];

#[test]
fn every_operation_has_an_example_that_is_answered_as_it_says() {
    let database = Database::sqlite();
    let (server, _clock) = tour::begin(&database, &[]);
    let taken = tour::take(&server);
    let mut placeholders = Placeholders::default();
    let mut examples = Map::new();
    for exchange in taken.exchanges.iter().filter(|exchange| !WITHOUT.contains(&exchange.operation)) {
        let mut example = Map::new();
        let is_text = exchange.answer.body.is_null() && !exchange.answer.text.is_empty();
        let answer = if is_text { json!(exchange.answer.text) } else { exchange.answer.body.clone() };
        for (part, value) in [("request", exchange.request.clone().unwrap_or_default()), ("answer", answer)] {
            if !value.is_null() {
                example.insert(part.to_owned(), placeholders.put("", value));
            }
        }
        let first = examples.insert(exchange.operation.to_owned(), Value::Object(example));
        assert!(first.is_none(), "{} has two examples", exchange.operation);
    }

    let described = taken.client.get("/openapi.json").ok();
    let items =
        described["paths"].as_object().expect("paths").values().flat_map(|item| item.as_object().expect("methods").values());
    let described: BTreeSet<&str> = items.map(|operation| operation["operationId"].as_str().expect("a name")).collect();
    let shown: BTreeSet<&str> = examples.keys().map(String::as_str).chain(WITHOUT).collect();
    assert_eq!(shown, described, "each operation has an example");

    let now = format!("{:#}\n", Value::Object(examples));
    if std::env::var("EXAMPLES").is_ok_and(|what| what == "write") {
        fs::write(FILE, &now).expect("the examples are written");
    }
    let kept = fs::read_to_string(FILE).expect("the examples");
    let differs = kept.lines().zip(now.lines()).enumerate().find(|(_, (kept, now))| kept != now);
    assert!(kept == now, "{FILE} differs, first in {differs:?}: set EXAMPLES=write to update it");
}

/// Stable replacements for values that differ between runs.
#[derive(Default)]
struct Placeholders {
    references: HashMap<String, String>,
}

impl Placeholders {
    fn put(&mut self, field: &str, value: Value) -> Value {
        match value {
            Value::Object(members) => members.into_iter().map(|(name, member)| (name.clone(), self.put(&name, member))).collect(),
            Value::Array(elements) => elements.into_iter().map(|element| self.put(field, element)).collect(),
            Value::String(text) => json!(self.text(field, &text)),
            Value::Number(_) if field == "ms" => json!(84),
            other => other,
        }
    }

    fn text(&mut self, field: &str, text: &str) -> String {
        match field {
            "api_key" => return "K7Q2M9X4T1R8W5Z3B6N0".to_owned(),
            "password" => return "shown-once-when-the-key-is-generated".to_owned(),
            "code" if text.contains('-') => return "ABCD-EFGH-IJKL-MNOP".to_owned(),
            "code" => return "287082".to_owned(),
            "recovery_codes" => return "ABCD-EFGH-IJKL-MNOP".to_owned(),
            "secret" if text.starts_with("whsec_") => return WEBHOOK_SECRET.to_owned(),
            "secret" => return SECRET.to_owned(),
            "url" | "endpoint_url" if text.starts_with("http://127") => return "https://hooks.example.com/billing".to_owned(),
            "uri" => {
                let (before, after) = text.split_once("secret=").expect("a secret");
                return format!("{before}secret={SECRET}{}", after.get(SECRET.len()..).unwrap_or_default());
            }
            // Times that are hours or days after the beginning.
            "one_time_until" | "expires_at" | "previous_expires_at" | "rotated_expires_at" => {
                return format!("{}:00:00Z", &text[..13]);
            }
            _ if text.starts_with("eyJ") => return "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0aGUga2V5In0.c2lnbmF0dXJl".to_owned(),
            _ if text.starts_with(&format!("{}{}", tour::DAY, &BEGIN[..4])) => return format!("{}{BEGIN}", tour::DAY),
            _ => {}
        }
        let mut put = text.to_owned();
        for start in 0..text.len() {
            let Some(reference) = text.get(start..start + UUID_LENGTH).filter(|part| is_uuid(part)) else { continue };
            let next = self.references.len() + 1;
            let placeholder =
                self.references.entry(reference.to_owned()).or_insert_with(|| format!("01a1c554-5600-7000-8000-{next:012}"));
            put = put.replace(reference, placeholder);
        }
        put
    }
}

const UUID_LENGTH: usize = 36;
/// A secret of 32 zero bytes.
const WEBHOOK_SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
/// The secret of the example in the RFC.
const SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(i, byte)| if [8, 13, 18, 23].contains(&i) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}
