//! Usage formats: creating them, editing them into new versions, renaming them, and reporting events with them.

use serde_json::{Value, json};

use crate::histories::asking::Deed;
use crate::histories::history::History;
use crate::histories::senders::Needs;

const WRITE: Needs = Needs::Scope("catalog:write");

/// The expected state of a format.
pub(crate) struct Format {
    format_ref: String,
    pub(crate) name: String,
    /// The factor by which the format multiplies the quantity of an event.
    pub(crate) factor: i64,
    version: u64,
}

impl Format {
    fn mapping(&self) -> Value {
        json!({
            "timestamp": "event.at",
            "customer_ref": "event.customer_ref",
            "usage_product_ref": "\"api-calls\"",
            "quantity": format!("event.count * {}", self.factor),
            "additional_report_data": {"id": "event.id", "kind": "event.kind"},
        })
    }
}

impl History<'_> {
    fn make_a_format(&mut self) {
        let format_ref = self.new_name("format");
        let format = Format { name: format_ref.clone(), format_ref, factor: self.random.between(1, 3), version: 1 };
        let body = json!({"format_ref": format.format_ref, "format_name": format.name, "mapping": format.mapping()});
        let deed = Deed::post("create_usage_format", WRITE, "/api/usage/formats/", &body);
        if self.ask(deed.reported(format!("a format, factor {}", format.factor)), |_, _| true).taken().is_some() {
            self.formats.push(format);
        }
    }

    pub(crate) fn edit_a_format(&mut self) {
        let Some(place) = self.place_in(self.formats.len()) else { return self.make_a_format() };
        let Format { format_ref, name, factor, version } = &self.formats[place];
        let mut edited = Format { format_ref: format_ref.clone(), name: name.clone(), factor: *factor, version: *version };
        let body = if self.random.percent(25) {
            edited.name = format!("{format_ref}, {version}");
            json!({"format_name": edited.name})
        } else {
            edited.factor = self.random.between(1, 3);
            json!({"mapping": edited.mapping()})
        };
        let is_other = edited.name != *name || edited.factor != *factor;
        edited.version += u64::from(is_other);
        let deed = Deed::post("edit_usage_format", WRITE, format!("/api/usage/formats/edit/{format_ref}"), &body);
        let deed = deed.reported(format!("edit of {name}, factor {}", edited.factor));
        if let Some(answer) = self.ask(deed, |_, _| is_other).taken() {
            if answer.body["version"] != edited.version {
                self.fail(&answer.text);
            }
            self.formats[place] = edited;
        }
    }

    pub(crate) fn report_by_a_format(&mut self) {
        let Some(place) = self.place_in(self.formats.len()) else { return self.make_a_format() };
        let is_keyed = self.random.percent(50);
        let sent = self.draw(Some(place), is_keyed);
        if sent.is_right() && self.random.percent(30) {
            let body = json!({"format_name": self.formats[place].name, "event": sent.event});
            let deed = Deed::post("test_usage_format", Needs::Scope("read"), "/api/usage/formats/test", &body).never_keyed();
            let made = self.ask(deed, |_, _| false).taken();
            let quantity = sent.event["count"].as_i64().map(|count| count * self.formats[place].factor);
            if made.is_some_and(|made| made.body["mapped"]["quantity"].as_i64() != quantity) {
                self.fail("a format makes another quantity of the event");
            }
        }
        self.send_alone(sent);
    }
}
