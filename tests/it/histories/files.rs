//! Files of usage over HTTP: written in several ways, sent again, previewed and undone.

use acceptance::Request;
use serde_json::{Value, json};

use crate::histories::asking::{Deed, Ended};
use crate::histories::history::History;
use crate::histories::senders::Needs;
use crate::histories::usage::{Fate, KnownBy, Sent};

/// The column names in a client's own file, with the fields that they stand for.
const CALLED: [(&str, Option<&str>); 8] = [
    ("Nr", Some("idempotency_key")),
    ("Zeit", Some("timestamp")),
    ("Kunde", Some("customer_ref")),
    ("Produkt", Some("usage_product_ref")),
    ("Menge", Some("quantity")),
    ("id", Some("id")),
    ("Art", Some("kind")),
    ("Notiz", None),
];

/// A file of events.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) written: Written,
    pub(crate) rows: Vec<Sent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Csv,
    /// A CSV file with column names of its own.
    OwnCsv,
    /// A CSV file without keys: the lines identify the events.
    CsvByLine,
    Lines,
    Array,
    /// Lines for a usage format.
    Formatted,
}

/// The ways to write events in the default shape with their keys.
const BY_KEY: [Written; 4] = [Written::Csv, Written::OwnCsv, Written::Lines, Written::Array];

/// An imported file.
pub(crate) struct Import {
    pub(crate) import_ref: String,
    pub(crate) file: File,
    /// The events that the import recorded.
    pub(crate) recorded: Vec<Value>,
    pub(crate) is_undone: bool,
}

impl File {
    fn query(&self) -> String {
        let mut query = format!("name={}", self.name);
        if self.written == Written::OwnCsv {
            let columns: serde_json::Map<String, Value> =
                CALLED.iter().filter(|(own, is)| Some(*own) != *is).map(|(own, is)| ((*own).to_owned(), json!(is))).collect();
            query.push_str(&format!("&columns={}", encoded(&Value::Object(columns).to_string())));
        }
        match self.rows.first().and_then(|sent| sent.format.as_ref()) {
            Some((_, name)) => query + &format!("&format_name={}", encoded(name)),
            None => query,
        }
    }

    fn content_type(&self) -> &'static str {
        match self.written {
            Written::Csv | Written::OwnCsv | Written::CsvByLine => "text/csv",
            Written::Lines | Written::Formatted => "application/x-ndjson",
            Written::Array => "application/json",
        }
    }

    fn body(&self) -> String {
        let lines = |rows: Vec<String>| rows.iter().map(|row| format!("{row}\n")).collect();
        match self.written {
            Written::Csv => {
                let names = CALLED[..7].iter().filter_map(|(_, is)| *is).collect::<Vec<_>>().join(",");
                lines(std::iter::once(names).chain(self.rows.iter().map(|row| cells(row).join(","))).collect())
            }
            Written::OwnCsv => {
                let names = CALLED.map(|(own, _)| own).join(";");
                let row = |row: &Sent| format!("{};kept by nobody", cells(row).join(";"));
                lines(std::iter::once(names).chain(self.rows.iter().map(row)).collect())
            }
            Written::CsvByLine => {
                let names = CALLED[1..7].iter().filter_map(|(_, is)| *is).collect::<Vec<_>>().join(",");
                lines(std::iter::once(names).chain(self.rows.iter().map(|row| cells(row)[1..].join(","))).collect())
            }
            Written::Lines | Written::Formatted => lines(self.rows.iter().map(|row| row.with_key().to_string()).collect()),
            Written::Array => Value::Array(self.rows.iter().map(Sent::with_key).collect()).to_string(),
        }
    }
}

/// Returns the key, timestamp, customer, usage product, quantity, id and kind of an event in the default shape.
fn cells(row: &Sent) -> [String; 7] {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let event = row.with_key();
    let key = event.get("idempotency_key").map(text).unwrap_or_default();
    let [timestamp, customer, product, quantity] =
        ["timestamp", "customer_ref", "usage_product_ref", "quantity"].map(|field| text(&event[field]));
    let [id, kind] = ["id", "kind"].map(|label| text(&event["additional_report_data"][label]));
    [key, timestamp, customer, product, quantity, id, kind]
}

pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns the numbers of recorded, existing and rejected events.
fn counts(result: &Value) -> [Option<u64>; 3] {
    ["recorded", "already_there", "refused"].map(|field| result[field].as_u64())
}

impl History<'_> {
    pub(crate) fn import(&mut self) {
        if self.random.percent(30)
            && let Some(place) = self.place_in(self.imports.len())
        {
            return self.send_a_file_again(self.imports[place].file.clone());
        }
        let ways = [Written::Csv, Written::OwnCsv, Written::CsvByLine, Written::Lines, Written::Array, Written::Formatted];
        let (written, format) = match (*self.random.one_of(&ways), self.place_in(self.formats.len())) {
            (Written::Formatted, None) => (Written::Lines, None),
            (Written::Formatted, format) => (Written::Formatted, format),
            (written, _) => (written, None),
        };
        let mut rows = Vec::new();
        for _ in 0..self.random.between(1, 5) {
            rows.push(self.draw(format, written != Written::CsvByLine));
        }
        let name = format.map(|place| self.formats[place].name.clone());
        if written != Written::CsvByLine && self.random.percent(40) {
            rows.extend(self.draw_known(|sent| sent.format.as_ref().map(|(_, name)| name) == name.as_ref()));
        }
        let name = self.new_name("file");
        if written == Written::CsvByLine {
            for (line, row) in rows.iter_mut().enumerate() {
                row.known_by = Some(KnownBy::Line(name.clone(), line));
            }
        }
        self.send_file(File { name, written, rows });
    }

    /// Sends a file again, or its events with another operation: events that already count aren't recorded again.
    fn send_a_file_again(&mut self, file: File) {
        let is_by_key = BY_KEY.contains(&file.written);
        match self.random.below(3) {
            0 if is_by_key => self.send_batch(file.rows),
            1 if is_by_key => {
                let (name, written) = (self.new_name("file"), *self.random.one_of(&BY_KEY));
                self.send_file(File { name, written, ..file });
            }
            _ => self.send_file(file),
        }
    }

    /// Sends one event in a file of its own.
    pub(crate) fn send_in_a_file(&mut self, sent: Sent) {
        let written = match sent.format {
            Some(_) => Written::Formatted,
            None => *self.random.one_of(&BY_KEY),
        };
        let name = self.new_name("file");
        self.send_file(File { name, written, rows: vec![sent] });
    }

    fn send_file(&mut self, file: File) {
        let path = format!("/api/usage/import?{}", file.query());
        let format = file.rows.first().and_then(|sent| sent.format.clone());
        let is_renamed = format.as_ref().is_some_and(|(place, name)| self.formats[*place].name != *name);
        let shown = if self.random.percent(40) && !is_renamed {
            let dry_run = format!("{path}&dry_run=true");
            let dry_run = Request::post(&dry_run, file.body()).with("Content-Type", file.content_type());
            let shown = self.stage.client.send(&dry_run).ok();
            let before = self.totals(&shown);
            if before != field(&shown, "total_before") {
                self.fail(&format!("the dry run of the file shows {shown}, and its documents come to {before:?}"));
            }
            Some(shown)
        } else {
            None
        };
        let fates: Vec<Fate> = file.rows.iter().map(|row| self.fate(row)).collect();
        let refusals: &[&str] = if is_renamed { &["unknown_format"] } else { &[] };
        let deed = Deed::send("import_usage", path, file.content_type(), file.body());
        let deed = deed.reported(format!("a file, {:?}: {}", file.written, file.body())).refused_by(refusals);
        let Ended::Taken(answer) = self.ask(deed, |_, answer| answer.body["recorded"] != 0) else { return };
        let result = answer.body;
        let count = |is: fn(&Fate) -> bool| Some(fates.iter().filter(|fate| is(fate)).count() as u64);
        let expected = [
            count(|fate| matches!(fate, Fate::New)),
            count(|fate| matches!(fate, Fate::There(_))),
            count(|fate| matches!(fate, Fate::Refused(_))),
        ];
        if is_renamed || counts(&result) != expected {
            self.fail(&format!("{expected:?} are expected of the file, not {result}"));
        }
        let is_so = |shown: &Value| {
            counts(shown) == expected
                && shown["rejects"] == result["rejects"]
                && field(shown, "events") == field(&result, "events")
                && field(shown, "total") == self.totals(&result)
        };
        if let Some(shown) = shown.filter(|shown| !is_so(shown)) {
            self.fail(&format!("the dry run of the file shows {shown}, and {result} happens"));
        }
        self.is_changed = expected[0] != Some(0);
        self.take_file_up(file, fates, &result);
    }

    /// Returns the totals of the documents in a file's response; null for documents that don't exist.
    fn totals(&self, answer: &Value) -> Vec<Value> {
        let total = |document_ref: Value| match document_ref.as_str() {
            Some(document_ref) => self.stage.client.get(&format!("/api/documents/{document_ref}")).ok()["total"].clone(),
            None => Value::Null,
        };
        field(answer, "document_ref").into_iter().map(total).collect()
    }

    fn take_file_up(&mut self, file: File, fates: Vec<Fate>, result: &Value) {
        let stored = if self.is_changed { self.events() } else { Vec::new() };
        let mut recorded = Vec::new();
        for (sent, fate) in file.rows.iter().zip(fates) {
            match fate {
                Fate::Refused(code) => self.count_refused(sent, code),
                Fate::There(_) | Fate::Updated(_) => {}
                Fate::New => {
                    // If a file is imported again after an undo, its earlier events no longer count. The serial number then finds
                    // the new event.
                    let found = stored.iter().find(|event| event["additional_report_data"]["id"] == *sent.serial);
                    let Some(found) = found else { self.fail(&format!("{} isn't stored", sent.event)) };
                    let event_ref = found["event_ref"].clone();
                    self.formats_of.insert(event_ref.to_string(), sent.format.as_ref().map(|(place, _)| *place));
                    recorded.push(event_ref.clone());
                    self.take_up(sent.clone(), event_ref);
                }
            }
        }
        let import_ref = result["import_ref"].as_str().expect("a reference").to_owned();
        self.imports.push(Import { import_ref, file, recorded, is_undone: false });
    }

    pub(crate) fn undo(&mut self) {
        let Some(place) = self.place_in(self.imports.len()) else { return self.import() };
        let Import { import_ref, recorded, is_undone, .. } = &self.imports[place];
        let recorded = recorded.clone();
        let counts_still = |event_ref: &&Value| self.model.events.iter().any(|event| event.event_ref == **event_ref);
        let left = recorded.iter().filter(counts_still).count();
        let gone = if *is_undone { 0 } else { recorded.len() - left };
        let deed =
            Deed::post_nothing("undo_import", Needs::Scope("usage:write"), format!("/api/usage/imports/undo/{import_ref}"));
        let deed = deed.reported(format!("undo {}", self.imports[place].file.name));
        let Some(answer) = self.ask(deed, |_, _| left > 0).taken() else { return };
        let undone = ["deleted", "already_deleted", "refused", "left"].map(|field| answer.body[field].clone());
        if undone != [json!(left), json!(gone), json!(0), json!(0)] || answer.body["import"]["state"] != "UNDONE" {
            self.fail(&format!("{left} and {gone} are expected: {}", answer.text));
        }
        self.imports[place].is_undone = true;
        self.is_changed = left > 0;
        self.model.events.retain(|event| !recorded.contains(&event.event_ref));
        self.known.retain(|known| !recorded.contains(&known.event_ref));
    }
}

/// Returns a field of each document that contains events of the file.
fn field(result: &Value, name: &str) -> Vec<Value> {
    result["documents"].as_array().expect("documents").iter().map(|document| document[name].clone()).collect()
}
