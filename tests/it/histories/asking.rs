//! Sends the requests of a history as different callers and checks the answers: a caller without permission is refused, each change
//! records an audit event, a request with an idempotency key is carried out once, and some requests are sent as dry runs first.

use acceptance::{Answer, Client, Request};
use serde_json::{Value, json};

use crate::histories::history::History;
use crate::histories::rehearsal::{self, Rehearsed};
use crate::histories::senders::Needs;

/// An operation to be carried out.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    /// The operation id in the OpenAPI document.
    pub(crate) operation: &'static str,
    /// A description of the operation.
    pub(crate) what: String,
    pub(crate) needs: Needs,
    method: &'static str,
    path: String,
    content_type: &'static str,
    body: Option<String>,
    keyed: Keyed,
    is_rehearsed: bool,
    /// The error codes allowed for a caller with permission.
    refusals: &'static [&'static str],
}

/// The `Idempotency-Key` of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keyed {
    /// A random key in some of the requests.
    Freely,
    Under(String),
    Never,
}

/// The outcome of an operation.
pub(crate) enum Ended {
    Taken(Answer),
    /// Rejected with one of the allowed codes.
    Refused(Answer),
    /// The caller lacks the permission.
    Barred,
}

impl Ended {
    pub(crate) fn taken(self) -> Option<Answer> {
        match self {
            Self::Taken(answer) => Some(answer),
            Self::Refused(_) | Self::Barred => None,
        }
    }
}

impl Deed {
    pub(crate) fn post(operation: &'static str, needs: Needs, path: impl Into<String>, body: &Value) -> Self {
        Self { body: Some(body.to_string()), content_type: "application/json", ..Self::post_nothing(operation, needs, path) }
    }

    pub(crate) fn post_nothing(operation: &'static str, needs: Needs, path: impl Into<String>) -> Self {
        Self {
            operation,
            what: operation.to_owned(),
            needs,
            method: "POST",
            path: path.into(),
            content_type: "",
            body: None,
            keyed: Keyed::Freely,
            is_rehearsed: rehearsal::CAN_BE.contains(&operation),
            refusals: &[],
        }
    }

    pub(crate) fn send(operation: &'static str, path: String, content_type: &'static str, body: String) -> Self {
        Self { body: Some(body), content_type, ..Self::post_nothing(operation, Needs::Scope("usage:write"), path) }
    }

    pub(crate) fn delete(operation: &'static str, needs: Needs, path: String) -> Self {
        Self { method: "DELETE", ..Self::post_nothing(operation, needs, path) }.never_keyed()
    }

    pub(crate) fn reported(self, what: String) -> Self {
        Self { what, ..self }
    }

    pub(crate) fn refused_by(self, refusals: &'static [&'static str]) -> Self {
        Self { refusals, ..self }
    }

    pub(crate) fn under(self, key: String) -> Self {
        Self { keyed: Keyed::Under(key), ..self }
    }

    pub(crate) fn not_rehearsed(self) -> Self {
        Self { is_rehearsed: false, ..self }
    }

    pub(crate) fn never_keyed(self) -> Self {
        Self { keyed: Keyed::Never, ..self }
    }

    fn request(&self) -> Request<'_> {
        let headers = self.body.iter().map(|_| ("Content-Type", self.content_type));
        let headers = headers.chain(match &self.keyed {
            Keyed::Under(key) => Some(("Idempotency-Key", key.as_str())),
            Keyed::Freely | Keyed::Never => None,
        });
        let body = self.body.as_ref().map(|body| body.clone().into_bytes());
        let body = if self.method == "POST" { Some(body.unwrap_or_default()) } else { None };
        Request { method: self.method, path: &self.path, headers: headers.collect(), body }
    }

    /// Returns the dry-run request for the operation.
    fn rehearsal(&self) -> Option<Value> {
        if !self.is_rehearsed {
            return None;
        }
        let body = self.body.as_ref().map(|body| serde_json::from_str::<Value>(body).expect("JSON"));
        Some(body.map_or_else(|| json!({"path": self.path}), |body| json!({"path": self.path, "body": body})))
    }
}

fn code(answer: &Answer) -> &str {
    answer.body["code"].as_str().unwrap_or_default()
}

impl History<'_> {
    /// Sends the operation, mostly as a caller with permission. `leaves` returns whether the response must record an audit event.
    pub(crate) fn ask(&mut self, deed: Deed, leaves: impl FnOnce(&Self, &Answer) -> bool) -> Ended {
        let asking = if self.random.percent(70) { None } else { self.a_sender() };
        let Some(sender) = asking else {
            let client = if deed.needs == Needs::Owner { &self.stage.owner } else { &self.stage.client };
            return self.ask_as(&client.clone(), "", None, deed, leaves);
        };
        let (client, who) = (self.senders.client(sender), self.senders.reported(sender));
        let barred = self.senders.barred(sender, deed.needs);
        self.ask_as(&client, &who, barred, deed, leaves)
    }

    /// Sends the operation as this caller. `barred` is the expected error code if the caller lacks the permission.
    pub(crate) fn ask_as(
        &mut self,
        client: &Client,
        who: &str,
        barred: Option<&'static str>,
        mut deed: Deed,
        leaves: impl FnOnce(&Self, &Answer) -> bool,
    ) -> Ended {
        if deed.keyed == Keyed::Freely && self.random.percent(15) {
            deed.keyed = Keyed::Under(self.new_name("request"));
        }
        let rehearsed = deed.rehearsal().filter(|_| self.random.percent(40));
        let rehearsed = rehearsed.map(|asked| self.stage.client.post("/api/dry_run", &asked));
        let answer = client.send(&deed.request());
        let key = if let Keyed::Under(key) = &deed.keyed { format!(" under {key}") } else { String::new() };
        self.reported.push(format!("{who}{}{key}: {} {}", deed.what, answer.status, code(&answer)));
        let is_taken = matches!(answer.status, 200 | 204);
        let entries = format!("/api/audit/filter?request_id={}", answer.header("x-request-id"));
        if let Some(expected) = barred {
            if !matches!(answer.status, 401 | 403) || code(&answer) != expected {
                self.fail(&format!("{expected} is expected: {}", answer.text));
            }
        } else if !is_taken && !deed.refusals.contains(&code(&answer)) {
            self.fail(&answer.text);
        }
        let entries = self.stage.owner.get(&entries).ok();
        if entries.as_array().map(Vec::len) != Some(usize::from(is_taken && leaves(self, &answer))) {
            self.fail(&format!("the audit log tells {entries}"));
        }
        if let Some(rehearsed) = rehearsed.filter(|_| barred.is_none()) {
            self.note_rehearsal(&deed, &rehearsed, &answer);
        }
        if barred.is_some() {
            return Ended::Barred;
        }
        if !is_taken {
            return Ended::Refused(answer);
        }
        self.is_changed = true;
        self.left.done.insert(deed.operation);
        if matches!(deed.keyed, Keyed::Under(_)) && self.random.percent(50) {
            let again = client.send(&deed.request());
            if (again.status, &again.text, again.header("idempotency-replayed")) != (answer.status, &answer.text, "true") {
                self.fail(&format!("{} again: {}, not {}", deed.what, again.text, answer.text));
            }
        }
        Ended::Taken(answer)
    }

    fn note_rehearsal(&mut self, deed: &Deed, rehearsed: &Answer, answer: &Answer) {
        let is_taken = matches!(answer.status, 200 | 204);
        if (rehearsed.status == 200) != is_taken || (!is_taken && code(rehearsed) != code(answer)) {
            self.fail(&format!("the dry run of {} answers {}", deed.what, rehearsed.text));
        }
        if is_taken {
            self.left.done.insert("dry_run");
            self.rehearsed = Some(Rehearsed::of(&rehearsed.body));
        }
    }
}
