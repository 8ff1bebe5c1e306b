//! Records that are delivered several times, each time by another door and in another form, with the same or with corrected facts.

use acceptance::Answer;
use acceptance::naive::{Event, KINDS};
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::histories::asking::{Deed, Ended};
use crate::histories::files::{File, Import, Written, encoded};
use crate::histories::history::History;
use crate::histories::senders::Needs;
use crate::histories::usage::{Fate, Known, KnownBy, Sent, results, timestamp};

const WRITE: Needs = Needs::Scope("usage:write");
const EVENT: &str = "/api/usage/event";
const FORMATTED: &str = "/api/usage/event/formatted";
const BATCH: &str = "/api/usage/event/batch";
const NDJSON: &str = "application/x-ndjson";
/// The source of the records that can be sent as CloudEvents.
const SOURCE: &str = "/histories";

/// A way to send records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Event,
    FormattedEvent,
    CloudEvent,
    Batch,
    BareBatch,
    BatchLines,
    FormattedLines,
    /// A batch with one record, whose elements are the events.
    Elements,
    CloudEvents,
    CsvFile,
    ArrayFile,
    FormattedFile,
    ElementsFile,
}

const DOORS: [Door; 13] = [
    Door::Event,
    Door::FormattedEvent,
    Door::CloudEvent,
    Door::Batch,
    Door::BareBatch,
    Door::BatchLines,
    Door::FormattedLines,
    Door::Elements,
    Door::CloudEvents,
    Door::CsvFile,
    Door::ArrayFile,
    Door::FormattedFile,
    Door::ElementsFile,
];

impl Door {
    const fn is_for_one(self) -> bool {
        matches!(self, Self::Event | Self::FormattedEvent | Self::CloudEvent)
    }

    const fn is_of_cloud_events(self) -> bool {
        matches!(self, Self::CloudEvent | Self::CloudEvents)
    }

    const fn is_a_file(self) -> bool {
        matches!(self, Self::CsvFile | Self::ArrayFile | Self::FormattedFile | Self::ElementsFile)
    }

    /// Returns the format that reads the records.
    const fn format(self) -> Option<&'static str> {
        match self {
            Self::FormattedEvent | Self::FormattedLines | Self::FormattedFile => Some("records"),
            Self::Elements | Self::ElementsFile => Some("elements"),
            _ => None,
        }
    }
}

/// Returns the key of a CloudEvent of [`SOURCE`], as the API guide defines it.
fn cloud_event_key(id: &str) -> String {
    let hash = digest(&SHA256, format!("{SOURCE}\0{id}").as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl History<'_> {
    /// Creates the formats of the doors.
    pub(crate) fn make_record_formats(&self) {
        let mapping = |of: &str| {
            json!({"timestamp": format!("{of}.at"), "customer_ref": "event.customer_ref", "usage_product_ref": "\"api-calls\"",
                "quantity": format!("{of}.n"), "additional_report_data": {"id": format!("{of}.id"), "kind": format!("{of}.kind")},
                "idempotency_key": format!("{of}.key")})
        };
        let mut of_items = mapping("item");
        of_items["for_each"] = json!("event.items");
        for (name, mapping) in [("records", mapping("event")), ("elements", of_items)] {
            let body = json!({"format_name": format!("{name}-{}", self.seed), "mapping": mapping});
            self.stage.client.post("/api/usage/formats/", &body).ok();
        }
    }

    /// Delivers one to three records by a door. Records that are known are repeated or corrected.
    pub(crate) fn deliver(&mut self) {
        let updates = self.random.percent(65);
        let mut rows: Vec<Sent> = Vec::new();
        for _ in 0..self.random.between(1, 3) {
            let row = match rows.last() {
                Some(row) if self.random.percent(30) => self.corrected(row.clone()),
                _ => self.draw_record(),
            };
            rows.push(Sent { updates, ..row });
        }
        let door = *self.random.one_of(&DOORS);
        let is_known_to_clouds = |row: &Sent| row.known_by == Some(KnownBy::Key(cloud_event_key(&row.serial)));
        let door = if door.is_of_cloud_events() && !rows.iter().all(is_known_to_clouds) { Door::BareBatch } else { door };
        // A record has no two events with the same key.
        let has_twins = (1..rows.len()).any(|index| rows[..index].iter().any(|earlier| earlier.known_by == rows[index].known_by));
        if door.is_for_one() || (has_twins && matches!(door, Door::Elements | Door::ElementsFile)) {
            rows.truncate(1);
        }
        self.deliver_by(door, rows, updates);
    }

    /// Draws a new record, or one that is known, unchanged or corrected.
    fn draw_record(&mut self) -> Sent {
        let keyed: Vec<Known> =
            self.known.iter().filter(|known| matches!(known.sent.known_by, Some(KnownBy::Key(_)))).cloned().collect();
        match self.place_in(keyed.len()) {
            Some(place) if self.random.percent(70) => {
                let known = self.in_default_shape(&keyed[place]);
                if self.random.percent(60) { self.corrected(known) } else { known }
            }
            _ => {
                let serial = self.new_name("record");
                let (day, quantity, kind) = (self.day(), self.random.between(0, 700), *self.random.one_of(&KINDS));
                let known_by = Some(KnownBy::Key(cloud_event_key(&serial)));
                Sent::right(&self.model.customer, (serial, known_by), (day, timestamp(day)), (quantity, kind))
            }
        }
    }

    /// Returns a known record in the default shape, with the facts that were last delivered.
    fn in_default_shape(&self, Known { sent, facts, .. }: &Known) -> Sent {
        let name = (sent.serial.clone(), sent.known_by.clone());
        Sent::right(&self.model.customer, name, (sent.day, facts.at.clone()), (facts.quantity, facts.kind))
    }

    /// Returns a record with another quantity, and possibly another day or label.
    fn corrected(&mut self, sent: Sent) -> Sent {
        let (day, at) = if self.random.percent(30) {
            let day = self.day();
            (day, timestamp(day))
        } else {
            (sent.day, sent.event["timestamp"].as_str().expect("a timestamp").to_owned())
        };
        let kind = if self.random.percent(25) { *self.random.one_of(&KINDS) } else { sent.kind };
        let quantity = if self.random.percent(80) { self.random.between(0, 700) } else { sent.quantity };
        Sent::right(&self.model.customer, (sent.serial, sent.known_by), (day, at), (quantity, kind))
    }

    fn deliver_by(&mut self, door: Door, rows: Vec<Sent>, updates: bool) {
        let name = self.new_name("delivery");
        let deed = self.delivery(door, &rows, updates, &name);
        let fates = self.fates(&rows);
        let is_refused = matches!(fates.as_slice(), [Fate::Refused(_)]) && door.is_for_one();
        let refusals: &[&str] = if is_refused { &["idempotency_key_reuse", "event_deleted"] } else { &[] };
        let shown: Vec<Value> = rows.iter().map(Sent::with_key).collect();
        let deed =
            deed.reported(format!("delivery by {door:?}, updates {updates}: {shown:?}")).refused_by(refusals).not_rehearsed();
        let leaves =
            |_: &Self, answer: &Answer| door.is_a_file() && (answer.body["recorded"] != 0 || answer.body["updated"] != 0);
        let answer = match self.ask(if door.is_for_one() { deed.never_keyed() } else { deed }, leaves) {
            Ended::Barred => return,
            Ended::Taken(answer) | Ended::Refused(answer) => answer,
        };
        self.is_changed = fates.iter().any(|fate| matches!(fate, Fate::New | Fate::Updated(_)));
        let found = if door.is_a_file() {
            self.check_counts(&fates, &answer);
            self.results_of_file(&rows)
        } else {
            results_of(door, &answer)
        };
        if found.len() != rows.len() {
            self.fail(&answer.text);
        }
        let mut recorded = Vec::new();
        for ((sent, fate), result) in rows.iter().zip(fates).zip(found) {
            let event_ref = result["event_ref"].clone();
            match fate {
                Fate::Refused(code) => {
                    if !door.is_a_file() && result["code"] != code {
                        self.fail(&format!("{code} is expected for {}: {result}", sent.with_key()));
                    }
                    self.count_refused_by(door, sent, code);
                }
                Fate::There(expected) if expected.is_null() || door.is_a_file() || event_ref == expected => {}
                Fate::Updated(expected) if event_ref.is_string() && (expected.is_null() || event_ref == expected) => {
                    self.take_delivery(door, sent, &event_ref);
                }
                Fate::New if event_ref.is_string() => {
                    self.take_up(sent.clone(), event_ref.clone());
                    recorded.push(event_ref.clone());
                    self.take_delivery(door, sent, &event_ref);
                }
                Fate::There(_) | Fate::Updated(_) | Fate::New => self.fail(&format!("{}: {result}", sent.with_key())),
            }
        }
        if door.is_a_file() {
            let import_ref = answer.body["import_ref"].as_str().expect("a reference").to_owned();
            let rows = rows.into_iter().map(|row| Sent { updates: false, ..row }).collect();
            self.imports.push(Import {
                import_ref,
                file: File { name, written: Written::Csv, rows },
                recorded,
                is_undone: false,
            });
        }
    }

    /// Returns the fate of each record. A record can follow another one with its key.
    fn fates(&self, rows: &[Sent]) -> Vec<Fate> {
        let mut fates: Vec<Fate> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let earlier = (0..index).rev().find(|earlier| {
                rows[*earlier].known_by == row.known_by && matches!(fates[*earlier], Fate::New | Fate::Updated(_))
            });
            fates.push(match earlier {
                None => self.fate(row),
                Some(earlier) if rows[earlier].event == row.event => Fate::There(Value::Null),
                Some(_) if row.updates => Fate::Updated(Value::Null),
                Some(_) => Fate::Refused("idempotency_key_reuse"),
            });
        }
        fates
    }

    /// Notes the facts that a record was delivered with.
    fn take_delivery(&mut self, door: Door, sent: &Sent, event_ref: &Value) {
        if door.format().is_some() || door.is_of_cloud_events() {
            // An update by a format must name another one.
            self.formats_of.insert(event_ref.to_string(), None);
        }
        let facts = self.facts(sent);
        for known in self.known.iter_mut().filter(|known| known.event_ref == *event_ref) {
            *known = Known { sent: Sent { updates: false, ..sent.clone() }, facts: facts.clone(), raw: None, ..known.clone() };
        }
        for event in self.model.events.iter_mut().filter(|event| event.event_ref == *event_ref) {
            *event = Event { event_ref: event_ref.clone(), day: sent.day, quantity: sent.quantity, kind: sent.kind };
        }
    }

    fn check_counts(&self, fates: &[Fate], answer: &Answer) {
        let count = |is: fn(&Fate) -> bool| json!(fates.iter().filter(|fate| is(fate)).count());
        let expected = [
            count(|fate| matches!(fate, Fate::New)),
            count(|fate| matches!(fate, Fate::Updated(_))),
            count(|fate| matches!(fate, Fate::There(_))),
            count(|fate| matches!(fate, Fate::Refused(_))),
        ];
        let found = ["recorded", "updated", "already_there", "refused"].map(|field| answer.body[field].clone());
        if found != expected {
            self.fail(&format!("{expected:?} are expected of the file: {}", answer.text));
        }
    }

    /// Returns the stored events of a file's records. An event that doesn't count is null.
    fn results_of_file(&self, rows: &[Sent]) -> Vec<Value> {
        let stored = self.events();
        let of = |row: &Sent| stored.iter().find(|event| event["additional_report_data"]["id"] == *row.serial).cloned();
        rows.iter().map(|row| of(row).unwrap_or_default()).collect()
    }

    /// Counts a rejected record. Its text names a customer and a usage product, or not.
    fn count_refused_by(&mut self, door: Door, sent: &Sent, code: &str) {
        let named = |field: &str| sent.event[field].as_str().unwrap_or_default().to_owned();
        let customer = if door.is_of_cloud_events() { String::new() } else { named("customer_ref") };
        let is_default = door.format().is_none() && !door.is_of_cloud_events();
        let product = if is_default { named("usage_product_ref") } else { String::new() };
        *self.left.refused.entry((customer, product, code.to_owned())).or_default() += 1;
    }

    /// Returns the request that delivers records, in random forms.
    fn delivery(&mut self, door: Door, rows: &[Sent], updates: bool, name: &str) -> Deed {
        let on_conflict = if updates { "on_conflict=UPDATE" } else { "on_conflict=REJECT" };
        let format = door.format().map(|name| format!("{name}-{}", self.seed));
        let named = format.as_ref().map_or_else(String::new, |format| format!("&format_name={}", encoded(format)));
        let file = format!("/api/usage/import?name={name}&{on_conflict}{named}");
        let events: Vec<Value> = rows.iter().map(|row| self.written(door, row)).collect();
        let lines = |events: &[Value]| -> String { events.iter().map(|event| format!("{event}\n")).collect() };
        let elements = json!({"customer_ref": self.model.customer, "items": events});
        match door {
            Door::Event => Deed::post("record_event", WRITE, format!("{EVENT}?{on_conflict}"), &events[0]),
            Door::FormattedEvent => {
                let body = json!({"format_name": format, "event": events[0]});
                Deed::post("record_formatted_event", WRITE, format!("{FORMATTED}?{on_conflict}"), &body)
            }
            Door::CloudEvent => {
                let (path, body) = (format!("{FORMATTED}?{on_conflict}"), events[0].to_string());
                Deed::send("record_formatted_event", path, "application/cloudevents+json", body)
            }
            Door::Batch => {
                let word = if updates { "UPDATE" } else { "REJECT" };
                Deed::post("record_batch", WRITE, BATCH, &json!({"events": events, "on_conflict": word}))
            }
            Door::BareBatch => Deed::post("record_batch", WRITE, format!("{BATCH}?{on_conflict}"), &json!(events)),
            Door::BatchLines | Door::FormattedLines => {
                Deed::send("record_batch", format!("{BATCH}?{on_conflict}{named}"), NDJSON, lines(&events))
            }
            Door::Elements => Deed::send("record_batch", format!("{BATCH}?{on_conflict}{named}"), NDJSON, lines(&[elements])),
            Door::CloudEvents => {
                let body = json!(events).to_string();
                Deed::send("record_batch", format!("{BATCH}?{on_conflict}"), "application/cloudevents-batch+json", body)
            }
            Door::CsvFile => {
                let columns = ["idempotency_key", "timestamp", "customer_ref", "usage_product_ref", "quantity"];
                let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let row = |event: &Value| {
                    let labels = ["id", "kind"].map(|label| cell(&event["additional_report_data"][label]));
                    columns.iter().map(|column| cell(&event[*column])).chain(labels).collect::<Vec<_>>().join(",")
                };
                let head = columns.join(",") + ",id,kind";
                let body = std::iter::once(head).chain(events.iter().map(row)).map(|row| row + "\n").collect();
                Deed::send("import_usage", file, "text/csv", body)
            }
            Door::ArrayFile => Deed::send("import_usage", file, "application/json", json!(events).to_string()),
            Door::FormattedFile => Deed::send("import_usage", file, NDJSON, lines(&events)),
            Door::ElementsFile => Deed::send("import_usage", file, NDJSON, lines(&[elements])),
        }
    }

    /// Returns a record as a door takes it, in a random form.
    fn written(&mut self, door: Door, row: &Sent) -> Value {
        let at = self.form_of_time(row.event["timestamp"].as_str().expect("a timestamp"));
        let quantity = if self.random.percent(40) { json!(row.quantity.to_string()) } else { json!(row.quantity) };
        let Some(KnownBy::Key(key)) = &row.known_by else { self.fail("a record without a key") };
        let labels = json!({"id": row.serial, "kind": row.kind});
        if door.is_of_cloud_events() {
            return json!({"specversion": "1.0", "source": SOURCE, "id": row.serial, "type": row.event["usage_product_ref"],
                "subject": row.event["customer_ref"], "time": at,
                "data": {"id": row.serial, "quantity": quantity, "kind": row.kind, "nested": [1]}});
        }
        if door.format().is_some() {
            return json!({"at": at, "customer_ref": row.event["customer_ref"], "n": quantity, "id": row.serial, "kind": row.kind,
                "key": key});
        }
        json!({"timestamp": at, "customer_ref": row.event["customer_ref"], "usage_product_ref": row.event["usage_product_ref"],
            "quantity": quantity, "additional_report_data": labels, "idempotency_key": key})
    }

    /// Returns an instant in another form.
    fn form_of_time(&mut self, at: &str) -> String {
        let hour: u32 = at[11..13].parse().expect("an hour");
        match self.random.below(4) {
            0 => at.replace('Z', "+00:00"),
            1 => at.replace('Z', ".000Z"),
            2 if hour < 22 => format!("{}{:02}{}+02:00", &at[..11], hour + 2, &at[13..19]),
            _ => at.to_owned(),
        }
    }
}

/// Returns the result of each record of a request without a file.
fn results_of(door: Door, answer: &Answer) -> Vec<Value> {
    match door {
        door if door.is_for_one() => vec![answer.body.clone()],
        Door::Elements => results(answer, true).first().and_then(Value::as_array).cloned().unwrap_or_default(),
        Door::BatchLines | Door::FormattedLines => results(answer, true),
        _ => results(answer, false),
    }
}
