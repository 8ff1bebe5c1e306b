//! Usage: events that are valid or invalid, new or repeated under their key, sent alone, with a format or in a batch; and changes
//! to these events.

use std::collections::BTreeSet;

use acceptance::naive::{Event, KINDS};
use acceptance::when::{self, Day};
use acceptance::{Answer, catalog};
use serde_json::{Value, json};

use crate::histories::asking::{Deed, Ended};
use crate::histories::history::History;
use crate::histories::senders::Needs;

/// The permission to report and change usage.
const WRITE: Needs = Needs::Scope("usage:write");
/// The code of events that are rejected before any lookup.
const UNREADABLE: &str = "out_of_range";
/// The largest quantity of an event.
const MOST: i64 = 700;

/// An event as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The serial number in the event, which identifies it among the stored events.
    pub(crate) serial: String,
    pub(crate) known_by: Option<KnownBy>,
    /// The index of the format that reads the event, and the format's name in the request.
    pub(crate) format: Option<(usize, String)>,
    pub(crate) event: Value,
    pub(crate) day: Day,
    /// The quantity as sent. A format multiplies it.
    pub(crate) quantity: i64,
    pub(crate) kind: &'static str,
    /// Whether the event updates the event of its key, if that has other facts.
    pub(crate) updates: bool,
    pub(crate) wrong: Option<Wrong>,
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) at: String,
    /// The quantity that counts.
    pub(crate) quantity: i64,
    pub(crate) kind: &'static str,
}

/// The identification of an event that is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    Key(String),
    /// A file name and a line number.
    Line(String, usize),
}

/// The error in an invalid event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Quantity,
    Customer,
    TooEarly,
    Ahead,
}

/// A recorded event, as it was last delivered under its key.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) sent: Sent,
    pub(crate) facts: Facts,
    /// The free-form event that the recorded event has.
    pub(crate) raw: Option<Value>,
    pub(crate) event_ref: Value,
}

/// The expected outcome of an event.
pub(crate) enum Fate {
    New,
    /// The event already exists under this reference, even if it was changed or deleted.
    There(Value),
    /// The event under this reference gets the facts. Null if an event of the same request recorded it.
    Updated(Value),
    /// Rejected, and counted under this code.
    Refused(&'static str),
}

impl Sent {
    /// Creates a valid event in the default shape.
    pub(crate) fn right(
        customer: &str,
        (serial, known_by): (String, Option<KnownBy>),
        (day, at): (Day, String),
        (quantity, kind): (i64, &'static str),
    ) -> Self {
        let fields = json!({"timestamp": at, "additional_report_data": {"id": serial, "kind": kind}});
        let event = catalog::with(catalog::event(customer, quantity), &fields);
        Self { serial, known_by, format: None, event, day, quantity, kind, updates: false, wrong: None }
    }

    /// Returns the event with its key as a field.
    pub(crate) fn with_key(&self) -> Value {
        match &self.known_by {
            Some(KnownBy::Key(key)) => catalog::with(self.event.clone(), &json!({"idempotency_key": key})),
            Some(KnownBy::Line(..)) | None => self.event.clone(),
        }
    }

    pub(crate) fn is_right(&self) -> bool {
        self.wrong.is_none()
    }
}

/// Returns the code of a problem as a whole, from the code of its first field.
fn of_the_whole(code: &'static str) -> &'static str {
    if matches!(code, UNREADABLE | "unknown_reference") { "validation_failed" } else { code }
}

/// Returns whether a problem, or a result with a problem, has this code.
fn has_code(problem: &Value, code: &'static str) -> bool {
    problem["code"] == of_the_whole(code)
}

pub(crate) fn timestamp(day: Day) -> String {
    if day == Day::today() { when::in_seconds(-1) } else { day.noon() }
}

impl History<'_> {
    /// Draws a new event. Some events are invalid.
    pub(crate) fn draw(&mut self, format: Option<usize>, is_keyed: bool) -> Sent {
        let serial = self.new_name("event");
        let (day, quantity, kind) = (self.day(), self.random.between(0, MOST), *self.random.one_of(&KINDS));
        let wrong = if self.random.percent(12) {
            Some(*self.random.one_of(&[Wrong::Quantity, Wrong::Customer, Wrong::TooEarly, Wrong::Ahead]))
        } else {
            None
        };
        let customer = match wrong {
            Some(Wrong::Customer) => format!("nobody-{}", self.seed),
            _ => self.model.customer.clone(),
        };
        let at = match wrong {
            Some(Wrong::TooEarly) => self.model.start.plus_days(-3).noon(),
            Some(Wrong::Ahead) => when::in_seconds(3600),
            _ => timestamp(day),
        };
        let quantity = if matches!(wrong, Some(Wrong::Quantity)) { -1 } else { quantity };
        let event = match format {
            Some(_) => {
                // In a file, this field is the event's key. The event has the same content in every form of request.
                let key = if is_keyed { json!({"idempotency_key": serial}) } else { json!({}) };
                catalog::with(json!({"at": at, "customer_ref": customer, "count": quantity, "id": serial, "kind": kind}), &key)
            }
            None => {
                let fields = json!({"timestamp": at, "additional_report_data": {"id": serial, "kind": kind}});
                catalog::with(catalog::event(&customer, quantity), &fields)
            }
        };
        let known_by = is_keyed.then(|| KnownBy::Key(serial.clone()));
        let format = format.map(|place| (place, self.formats[place].name.clone()));
        Sent { serial, known_by, format, event, day, quantity, kind, updates: false, wrong }
    }

    /// Draws an event that was recorded under a key, unchanged or with other content under the same key.
    pub(crate) fn draw_known(&mut self, fits: impl Fn(&Sent) -> bool) -> Option<Sent> {
        let is_keyed = |known: &&Known| matches!(known.sent.known_by, Some(KnownBy::Key(_)));
        let fitting: Vec<Sent> = self.known.iter().filter(is_keyed).map(|known| known.sent.clone()).filter(fits).collect();
        let mut sent = fitting[self.place_in(fitting.len())?].clone();
        if self.random.percent(25) {
            sent.quantity += 1;
            let field = if sent.format.is_some() { "count" } else { "quantity" };
            sent.event[field] = json!(sent.quantity);
        }
        // The response to the request could be stored, and the event have other content by now.
        let is_same_text = |known: &Known| known.sent.known_by == sent.known_by && known.sent.event == sent.event;
        let is_unsure =
            |known: &Known| is_same_text(known) && known.facts != self.facts(&sent) && known.raw.as_ref() != Some(&sent.event);
        if self.known.iter().any(is_unsure) { None } else { Some(sent) }
    }

    /// Returns the facts of an event that is sent now.
    pub(crate) fn facts(&self, sent: &Sent) -> Facts {
        let (at, factor) = match &sent.format {
            Some((place, _)) => (&sent.event["at"], self.formats[*place].factor),
            None => (&sent.event["timestamp"], 1),
        };
        Facts { at: at.as_str().expect("a timestamp").to_owned(), quantity: sent.quantity * factor, kind: sent.kind }
    }

    /// Returns the expected outcome of an event.
    pub(crate) fn fate(&self, sent: &Sent) -> Fate {
        let same_key = |known: &&Known| known.sent.known_by.is_some() && known.sent.known_by == sent.known_by;
        match (sent.wrong, self.known.iter().find(same_key)) {
            (_, Some(known)) if known.facts == self.facts(sent) => Fate::There(known.event_ref.clone()),
            (_, Some(known)) if sent.updates => {
                let counts = self.model.events.iter().any(|event| event.event_ref == known.event_ref);
                if counts { Fate::Updated(known.event_ref.clone()) } else { Fate::Refused("event_deleted") }
            }
            (_, Some(known)) if known.raw.as_ref() == Some(&sent.event) => Fate::There(known.event_ref.clone()),
            (_, Some(_)) => Fate::Refused("idempotency_key_reuse"),
            (None, None) => Fate::New,
            (Some(Wrong::Quantity), None) => Fate::Refused(if sent.format.is_some() { "format_error" } else { UNREADABLE }),
            (Some(Wrong::Customer), None) => Fate::Refused("unknown_reference"),
            (Some(Wrong::TooEarly), None) => Fate::Refused("no_matching_contract"),
            (Some(Wrong::Ahead), None) => Fate::Refused("timestamp_in_future"),
        }
    }

    /// Counts a rejected event.
    pub(crate) fn count_refused(&mut self, sent: &Sent, code: &str) {
        let [customer, usage_product] =
            ["customer_ref", "usage_product_ref"].map(|field| sent.event[field].as_str().unwrap_or_default().to_owned());
        *self.left.refused.entry((customer, usage_product, code.to_owned())).or_default() += 1;
    }

    /// Adds a recorded event to the model.
    pub(crate) fn take_up(&mut self, sent: Sent, event_ref: Value) {
        let factor = sent.format.as_ref().map_or(1, |(place, _)| self.formats[*place].factor);
        let (quantity, kind) = (sent.quantity * factor, sent.kind);
        let event = Event { event_ref: event_ref.clone(), day: sent.day, quantity, kind };
        self.model.events.push(event);
        if sent.known_by.is_some() {
            let (facts, raw) = (self.facts(&sent), sent.format.is_some().then(|| sent.event.clone()));
            self.known.push(Known { sent, facts, raw, event_ref });
        }
    }

    pub(crate) fn report(&mut self) {
        let is_keyed = self.random.percent(50);
        let sent = self.draw(None, is_keyed);
        self.send_alone(sent);
    }

    /// Sends an event alone, with its key in the header or in the event.
    pub(crate) fn send_alone(&mut self, sent: Sent) {
        let (operation, path) = match &sent.format {
            None => ("record_event", "/api/usage/event"),
            Some(_) => ("record_formatted_event", "/api/usage/event/formatted"),
        };
        let deed = match (&sent.known_by, &sent.format) {
            (Some(KnownBy::Key(_)), None) if self.random.percent(50) => {
                Deed::post(operation, WRITE, path, &sent.with_key()).never_keyed()
            }
            (known_by, format) => {
                let body = format.as_ref().map(|(_, name)| json!({"format_name": name, "event": sent.event}));
                let deed = Deed::post(operation, WRITE, path, &body.unwrap_or_else(|| sent.event.clone()));
                match known_by {
                    // A dry run doesn't receive the key.
                    Some(KnownBy::Key(key)) => deed.under(key.clone()).not_rehearsed(),
                    Some(KnownBy::Line(..)) | None => deed.never_keyed(),
                }
            }
        };
        let fate = self.fate(&sent);
        let refusals: &[&str] = match &fate {
            Fate::Refused(_) => {
                &["format_error", "idempotency_key_reuse", "no_matching_contract", "timestamp_in_future", "validation_failed"]
            }
            Fate::New | Fate::There(_) | Fate::Updated(_) => &[],
        };
        let deed = deed.reported(format!("{operation} {}", sent.with_key())).refused_by(refusals);
        match (self.ask(deed, |_, _| false), fate) {
            (Ended::Barred, _) => {}
            (Ended::Taken(answer), Fate::New) => {
                let event_ref = answer.body["event_ref"].clone();
                if let Some((place, _)) = sent.format {
                    self.formats_of.insert(event_ref.to_string(), Some(place));
                }
                self.take_up(sent, event_ref);
            }
            (Ended::Taken(answer), Fate::There(event_ref)) if answer.body["event_ref"] == event_ref => self.is_changed = false,
            (Ended::Refused(answer), Fate::Refused(code)) if has_code(&answer.body, code) => self.count_refused(&sent, code),
            (Ended::Taken(answer) | Ended::Refused(answer), _) => self.fail(&answer.text),
        }
    }

    /// Sends a recorded event again, or another event under its key, with any operation.
    pub(crate) fn send_again(&mut self) {
        let names: Vec<String> = self.formats.iter().map(|format| format.name.clone()).collect();
        // A renamed format isn't found under its old name.
        let is_found = |sent: &Sent| sent.format.as_ref().is_none_or(|(place, name)| names[*place] == *name);
        let Some(sent) = self.draw_known(is_found) else { return self.report_a_batch() };
        match self.random.below(3) {
            0 if sent.format.is_none() => self.send_batch(vec![sent]),
            1 => self.send_alone(sent),
            _ => self.send_in_a_file(sent),
        }
    }

    pub(crate) fn report_a_batch(&mut self) {
        let mut events = Vec::new();
        for _ in 0..self.random.between(1, 4) {
            let is_keyed = self.random.percent(60);
            events.push(self.draw(None, is_keyed));
        }
        if self.random.percent(40) {
            events.extend(self.draw_known(|sent| sent.format.is_none()));
        }
        self.send_batch(events);
    }

    pub(crate) fn send_batch(&mut self, events: Vec<Sent>) {
        let (is_atomic, are_lines) = (self.random.percent(30), self.random.percent(40));
        let fates: Vec<Fate> = events.iter().map(|sent| self.fate(sent)).collect();
        let of_each: Vec<Value> = events.iter().map(Sent::with_key).collect();
        let path = "/api/usage/event/batch";
        let deed = if are_lines {
            let lines: String = of_each.iter().map(|event| format!("{event}\n")).collect();
            Deed::send("record_batch", format!("{path}?atomic={is_atomic}"), "application/x-ndjson", lines)
        } else {
            Deed::post("record_batch", WRITE, path, &json!({"events": of_each, "atomic": is_atomic}))
        };
        let is_refused = is_atomic && fates.iter().any(|fate| matches!(fate, Fate::Refused(_)));
        let refusals: &[&str] = if is_refused { &["batch_refused"] } else { &[] };
        let deed = deed.reported(format!("batch, atomic {is_atomic}, lines {are_lines}: {of_each:?}")).refused_by(refusals);
        let answer = match self.ask(deed, |_, _| false) {
            Ended::Barred => return,
            Ended::Taken(answer) | Ended::Refused(answer) => answer,
        };
        if is_refused != (answer.status == 422) {
            self.fail(&answer.text);
        }
        if is_refused {
            return self.is_refused_whole(&events, &fates, &answer);
        }
        let results = results(&answer, are_lines);
        if results.len() != events.len() {
            self.fail(&answer.text);
        }
        self.is_changed = fates.iter().any(|fate| matches!(fate, Fate::New));
        for ((sent, fate), result) in events.into_iter().zip(fates).zip(results) {
            match fate {
                Fate::Refused(code) if has_code(&result, code) => self.count_refused(&sent, code),
                Fate::New if result["event_ref"].is_string() => self.take_up(sent, result["event_ref"].clone()),
                Fate::There(event_ref) if result["event_ref"] == event_ref => {}
                Fate::New | Fate::There(_) | Fate::Updated(_) | Fate::Refused(_) => {
                    self.fail(&format!("{}: {result}", sent.event));
                }
            }
        }
    }

    /// A rejected atomic batch names the events that it was rejected for, and these events are counted.
    fn is_refused_whole(&mut self, events: &[Sent], fates: &[Fate], answer: &Answer) {
        // If an event can't be read, the other events aren't checked further.
        let is_unread = fates.iter().any(|fate| matches!(fate, Fate::Refused(UNREADABLE)));
        let mut named = BTreeSet::new();
        for (place, (sent, fate)) in events.iter().zip(fates).enumerate() {
            match fate {
                Fate::Refused(code) if !is_unread || *code == UNREADABLE => {
                    named.insert(place.to_string());
                    self.count_refused(sent, code);
                }
                Fate::New | Fate::There(_) | Fate::Updated(_) | Fate::Refused(_) => {}
            }
        }
        let pointers = answer.body["errors"].as_array().into_iter().flatten().filter_map(|error| error["pointer"].as_str());
        let found: BTreeSet<String> = pointers.filter_map(|pointer| Some(pointer.split('/').nth(2)?.to_owned())).collect();
        if found != named {
            self.fail(&format!("the events {named:?} should be named: {}", answer.text));
        }
    }

    pub(crate) fn update(&mut self) {
        let Some(place) = self.place_in(self.model.events.len()) else { return self.report() };
        if !self.formats.is_empty() && self.random.percent(30) {
            return self.update_by_a_format(place);
        }
        let mut event = self.model.events[place].clone();
        let mut change = json!({"event_ref": event.event_ref});
        if self.random.percent(70) {
            event.quantity = self.random.between(0, MOST);
            change["quantity"] = json!(event.quantity);
        }
        if self.random.percent(40) {
            event.day = self.day();
            change["timestamp"] = json!(timestamp(event.day));
        }
        if self.random.percent(25) {
            event.kind = *self.random.one_of(&KINDS);
            change["additional_report_data"] = json!({"kind": event.kind});
        }
        let deed = Deed::post("update_event", WRITE, "/api/usage/event/update", &change);
        if self.ask(deed.reported(format!("update to {change}")), |_, _| false).taken().is_some() {
            if event != self.model.events[place] || change.get("additional_report_data").is_some() {
                self.note_raw(&event.event_ref, None);
            }
            self.model.events[place] = event;
        }
    }

    /// Replaces an event with another free-form event, with a named format or with the format that processed it before.
    fn update_by_a_format(&mut self, place: usize) {
        let Some(format) = self.place_in(self.formats.len()) else { return };
        let Event { event_ref, .. } = self.model.events[place].clone();
        let before = self.formats_of.get(&event_ref.to_string()).copied();
        let Sent { event, day, quantity, kind, .. } = self.draw_right(format);
        let mut body = json!({"event_ref": event_ref, "event": event});
        // If no format is named, events of the built-in format are read by the built-in format.
        let is_named = before == Some(None) || self.random.percent(60);
        if is_named {
            body["format_name"] = json!(self.formats[format].name);
        }
        let format = if is_named { Some(format) } else { before.flatten() };
        let refusals: &[&str] = if format.is_none() { &["validation_failed"] } else { &[] };
        let deed = Deed::post("update_formatted_event", WRITE, "/api/usage/event/formatted/update", &body);
        let deed = deed.reported(format!("update by a format: {body}")).refused_by(refusals);
        if let (Some(_), Some(format)) = (self.ask(deed, |_, _| false).taken(), format) {
            self.formats_of.insert(event_ref.to_string(), Some(format));
            self.note_raw(&event_ref, Some(&body["event"]));
            let quantity = quantity * self.formats[format].factor;
            self.model.events[place] = Event { event_ref, day, quantity, kind };
        }
    }

    /// Notes the free-form event that a recorded event has after an update.
    fn note_raw(&mut self, event_ref: &Value, raw: Option<&Value>) {
        for known in self.known.iter_mut().filter(|known| known.event_ref == *event_ref) {
            known.raw = raw.cloned();
        }
    }

    fn draw_right(&mut self, format: usize) -> Sent {
        loop {
            let sent = self.draw(Some(format), false);
            if sent.is_right() {
                return sent;
            }
        }
    }

    pub(crate) fn delete(&mut self) {
        let Some(place) = self.place_in(self.model.events.len()) else { return self.report() };
        let event_ref = self.model.events[place].event_ref.clone();
        let path = format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"));
        let deed = Deed::delete("delete_event", WRITE, path).reported(format!("delete {event_ref}"));
        if self.ask(deed, |_, _| false).taken().is_some() {
            self.model.events.remove(place);
        }
    }
}

/// Returns the result of each event in a batch.
pub(crate) fn results(answer: &Answer, are_lines: bool) -> Vec<Value> {
    if are_lines {
        return answer.text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    }
    answer.body["results"].as_array().cloned().unwrap_or_default()
}
