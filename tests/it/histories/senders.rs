//! The possible callers: API keys with their scopes and people with their roles, while the callers, their tokens and their
//! sessions are valid.

use acceptance::when;
use acceptance::{Answer, Client};
use serde_json::{Value, json};

use crate::histories::asking::Deed;
use crate::histories::history::History;

const SCOPES: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];
/// Each role has all permissions of the role before it.
const ROLES: [&str; 4] = ["read", "finance", "operator", "owner"];

/// The permission that an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A key with this scope, or a person whose role includes it.
    Scope(&'static str),
    /// A key with the scope `catalog:write`, or a person with the role finance or a higher one.
    Customers,
    /// A person with the role owner.
    Owner,
    /// A person with any role.
    Person,
}

/// All possible callers.
#[derive(Default)]
pub(crate) struct Senders {
    keys: Vec<Key>,
    people: Vec<Person>,
    senders: Vec<Sender>,
}

/// A token or a session.
struct Sender {
    client: Client,
    whose: Whose,
    has_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Key(usize),
    Person(usize),
}

struct Key {
    api_key_ref: String,
    log_in: Value,
    scopes: Vec<&'static str>,
    /// The key no longer permits a log-in.
    is_gone: bool,
    is_deleted: bool,
    is_rotated: bool,
}

struct Person {
    admin_ref: String,
    email: String,
    password: String,
    role: &'static str,
    is_disabled: bool,
}

impl Senders {
    pub(crate) fn client(&self, sender: usize) -> Client {
        self.senders[sender].client.clone()
    }

    pub(crate) fn reported(&self, sender: usize) -> String {
        match self.senders[sender].whose {
            Whose::Key(key) => format!("{:?}: ", self.keys[key].scopes),
            Whose::Person(person) => format!("{}: ", self.people[person].role),
        }
    }

    /// Returns the error code for a caller without permission, or `None` if the caller has the permission.
    pub(crate) fn barred(&self, sender: usize, needs: Needs) -> Option<&'static str> {
        let Sender { whose, has_ended, .. } = &self.senders[sender];
        let place = |role: &str| ROLES.iter().position(|known| *known == role);
        match whose {
            _ if *has_ended => Some("unauthenticated"),
            Whose::Key(key) => match needs {
                Needs::Scope(scope) => (!self.keys[*key].scopes.contains(&scope)).then_some("insufficient_scope"),
                Needs::Customers => self.barred(sender, Needs::Scope("catalog:write")),
                Needs::Owner | Needs::Person => Some("admin_session_required"),
            },
            Whose::Person(person) => {
                let least = match needs {
                    Needs::Scope("read") | Needs::Person => "read",
                    Needs::Scope("contracts:write" | "documents:write") | Needs::Customers => "finance",
                    Needs::Scope(_) => "operator",
                    Needs::Owner => "owner",
                };
                (place(self.people[*person].role) < place(least)).then_some("insufficient_role")
            }
        }
    }

    /// Ends the tokens and sessions of a key or a person, except one.
    fn end(&mut self, whose: Whose, but: Option<usize>) {
        let others = self.senders.iter_mut().enumerate().filter(|(index, sender)| sender.whose == whose && Some(*index) != but);
        others.for_each(|(_, sender)| sender.has_ended = true);
    }

    /// Returns the valid sessions of a person.
    fn sessions(&self, person: usize) -> Vec<usize> {
        let works = |index: &usize| self.senders[*index].whose == Whose::Person(person) && !self.senders[*index].has_ended;
        (0..self.senders.len()).filter(works).collect()
    }
}

impl History<'_> {
    pub(crate) fn a_sender(&mut self) -> Option<usize> {
        self.place_in(self.senders.senders.len())
    }

    fn log_in(&mut self, body: &Value) -> Answer {
        let answer = self.stage.anonymous().post("/auth/login", body);
        self.reported.push(format!("log in: {}", answer.status));
        answer
    }

    /// Logs in with valid credentials.
    fn let_in(&mut self, whose: Whose, body: &Value) -> usize {
        let answer = self.log_in(body);
        if answer.status != 200 {
            self.fail(&answer.text);
        }
        let nobody = self.stage.anonymous();
        let client = match answer.body.as_str() {
            Some(token) => nobody.with_header("Authorization", &format!("Bearer {token}")),
            None => nobody.with_header("Cookie", answer.header("Set-Cookie").split(';').next().unwrap_or_default()),
        };
        self.senders.senders.push(Sender { client, whose, has_ended: false });
        self.senders.senders.len() - 1
    }

    fn is_refused_a_log_in(&mut self, body: &Value) {
        let answer = self.log_in(body);
        if (answer.status, &answer.body["code"]) != (401, &json!("invalid_credentials")) {
            self.fail(&format!("the log-in should be refused: {}", answer.text));
        }
    }

    pub(crate) fn manage_keys(&mut self) {
        if self.senders.keys.is_empty() || self.random.percent(20) {
            self.generate_key();
        }
        let Some(key) = self.place_in(self.senders.keys.len()) else { return };
        match self.random.below(4) {
            0 => self.rotate_key(key),
            1 => self.delete_key(key),
            2 => self.log_out(),
            _ => {}
        }
    }

    fn generate_key(&mut self) {
        let mut scopes: Vec<&str> = SCOPES.into_iter().filter(|_| self.random.percent(50)).collect();
        if scopes.is_empty() {
            scopes = SCOPES.to_vec();
        }
        let mut body = json!({"name": format!("key of {}", self.seed), "scopes": scopes});
        if self.random.percent(50) {
            body["expires_at"] = json!(when::in_seconds(86_400));
        }
        let deed = Deed::post("generate_key", Needs::Owner, "/auth/keys/generate", &body);
        if let Some(made) = self.ask(deed, |_, _| true).taken() {
            self.take_key_up(&made, scopes);
        }
    }

    fn take_key_up(&mut self, made: &Answer, scopes: Vec<&'static str>) {
        let log_in = json!({"api_key": made.body["api_key"], "password": made.body["password"]});
        let api_key_ref = made.text_of("api_key_ref");
        let key = Key { api_key_ref, log_in: log_in.clone(), scopes, is_gone: false, is_deleted: false, is_rotated: false };
        self.senders.keys.push(key);
        self.let_in(Whose::Key(self.senders.keys.len() - 1), &log_in);
    }

    /// Ends a key and checks that it no longer permits a log-in.
    fn key_is_gone(&mut self, key: usize) {
        self.senders.keys[key].is_gone = true;
        self.senders.end(Whose::Key(key), None);
        self.is_refused_a_log_in(&self.senders.keys[key].log_in.clone());
    }

    fn rotate_key(&mut self, key: usize) {
        let Key { api_key_ref, scopes, is_gone, is_deleted, is_rotated, .. } = &self.senders.keys[key];
        let (path, scopes) = (format!("/auth/keys/rotate/{api_key_ref}"), scopes.clone());
        let refusals: &[&str] = match (*is_deleted, *is_rotated || *is_gone) {
            (true, _) => &["api_key_not_found"],
            (false, true) => &["key_rotated", "key_expired"],
            (false, false) => &[],
        };
        let hours = *self.random.one_of(&[0, 24]);
        let deed = Deed::post("rotate_key", Needs::Owner, path, &json!({"overlap_hours": hours})).refused_by(refusals);
        if let Some(made) = self.ask(deed, |_, _| true).taken() {
            self.senders.keys[key].is_rotated = true;
            if hours == 0 {
                self.key_is_gone(key);
            }
            self.take_key_up(&made, scopes);
        }
    }

    fn delete_key(&mut self, key: usize) {
        let Key { api_key_ref, is_deleted, .. } = &self.senders.keys[key];
        let refusals: &[&str] = if *is_deleted { &["api_key_not_found"] } else { &[] };
        let deed = Deed::delete("delete_key", Needs::Owner, format!("/auth/user/{api_key_ref}")).refused_by(refusals);
        if self.ask(deed, |_, _| true).taken().is_some() {
            self.senders.keys[key].is_deleted = true;
            self.key_is_gone(key);
        }
    }

    fn log_out(&mut self) {
        let Some(sender) = self.a_sender() else { return };
        let client = self.senders.client(sender);
        let deed = Deed::post_nothing("log_out", Needs::Person, "/auth/logout").never_keyed();
        // Any caller may log out.
        self.ask_as(&client, &self.senders.reported(sender), None, deed, |_, _| false);
        self.senders.senders[sender].has_ended = true;
    }

    pub(crate) fn manage_people(&mut self) {
        if self.senders.people.is_empty() || self.random.percent(20) {
            self.invite();
        }
        let Some(person) = self.place_in(self.senders.people.len()) else { return };
        match self.random.below(5) {
            0 => self.edit_person(person),
            1 => self.reset_person(person),
            _ => self.look_after_their_account(person),
        }
    }

    fn invite(&mut self) {
        let (role, name) = (*self.random.one_of(&ROLES), self.new_name("person"));
        let body = json!({"email": format!("{name}@example.com"), "role": role});
        let deed = Deed::post("invite_administrator", Needs::Owner, "/api/administrators/", &body);
        let ended = self.ask(deed.refused_by(&["too_many_administrators"]), |_, _| true);
        let Some(invited) = ended.taken() else { return };
        let (admin_ref, email) = (invited.text_of("admin_ref"), invited.text_of("email"));
        self.senders.people.push(Person { admin_ref, email, password: String::new(), role, is_disabled: false });
        self.first_log_in(self.senders.people.len() - 1, &invited.text_of("password"));
    }

    /// Logs a person in with a one-time password.
    fn first_log_in(&mut self, person: usize, given: &str) {
        let own = self.new_name("a pass phrase of one's own");
        let Person { email, password, .. } = &mut self.senders.people[person];
        own.clone_into(password);
        let body = json!({"email": email, "password": given, "new_password": own});
        self.let_in(Whose::Person(person), &body);
    }

    fn edit_person(&mut self, person: usize) {
        let mut is_ended = false;
        let Person { role, is_disabled, admin_ref, .. } = &self.senders.people[person];
        let (mut role, mut is_disabled, path) = (*role, *is_disabled, format!("/api/administrators/edit/{admin_ref}"));
        let changes = if is_disabled || self.random.percent(30) {
            is_disabled = !is_disabled;
            is_ended = is_disabled;
            json!({"disabled": is_disabled})
        } else {
            role = *self.random.one_of(&ROLES);
            json!({"role": role})
        };
        let is_other = role != self.senders.people[person].role || is_disabled != self.senders.people[person].is_disabled;
        let deed = Deed::post("edit_administrator", Needs::Owner, path, &changes);
        if self.ask(deed.clone().reported(format!("{} {changes}", deed.what)), |_, _| is_other).taken().is_none() {
            return;
        }
        let edited = &mut self.senders.people[person];
        (edited.role, edited.is_disabled) = (role, is_disabled);
        if is_ended {
            self.senders.end(Whose::Person(person), None);
        }
    }

    fn reset_person(&mut self, person: usize) {
        let path = format!("/api/administrators/reset/{}", self.senders.people[person].admin_ref);
        // Owners can't reset their own account.
        let deed = Deed::post_nothing("reset_administrator", Needs::Owner, path).refused_by(&["own_account"]);
        let Some(reset) = self.ask(deed, |_, _| true).taken() else { return };
        self.senders.end(Whose::Person(person), None);
        if !self.senders.people[person].is_disabled {
            self.first_log_in(person, &reset.text_of("password"));
        }
    }

    /// Ends a person's sessions or changes the password, as that person.
    fn look_after_their_account(&mut self, person: usize) {
        let Person { email, password, is_disabled, .. } = &self.senders.people[person];
        let log_in = json!({"email": email, "password": password});
        if *is_disabled {
            return self.is_refused_a_log_in(&log_in);
        }
        let others = self.senders.sessions(person);
        let own = self.let_in(Whose::Person(person), &log_in);
        if let Some(other) = others.first() {
            self.end_a_session(person, own, *other);
        }
        if self.random.percent(50) {
            self.change_password(person, own);
        }
    }

    fn end_a_session(&mut self, person: usize, own: usize, other: usize) {
        let (client, reported) = (self.senders.client(own), self.senders.reported(own));
        if self.random.percent(50) {
            let session = self.senders.client(other).get("/auth/session").ok();
            let path = format!("/auth/sessions/{}", session["session_ref"].as_str().expect("a reference"));
            self.ask_as(&client, &reported, None, Deed::delete("end_session", Needs::Person, path), |_, _| true);
            self.senders.senders[other].has_ended = true;
        } else {
            let deed = Deed::delete("end_other_sessions", Needs::Person, "/auth/sessions/others".to_owned());
            self.ask_as(&client, &reported, None, deed, |_, _| true);
            self.senders.end(Whose::Person(person), Some(own));
        }
    }

    fn change_password(&mut self, person: usize, own: usize) {
        let new_password = self.new_name("another pass phrase");
        let body = json!({"password": self.senders.people[person].password, "new_password": new_password});
        let deed = Deed::post("change_password", Needs::Person, "/auth/password", &body).never_keyed();
        self.ask_as(&self.senders.client(own), &self.senders.reported(own), None, deed, |_, _| true);
        self.senders.people[person].password = new_password;
        self.senders.end(Whose::Person(person), Some(own));
    }
}
