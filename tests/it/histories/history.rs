//! One history: the steps of a contract's life, and the conditions that hold after each step.

use std::collections::{BTreeMap, BTreeSet};

use acceptance::naive::Model;
use acceptance::random::Random;
use acceptance::server::ADMIN_PASSWORD;
use acceptance::when::Day;
use acceptance::{Client, Server, books, catalog};
use serde_json::{Value, json};

use crate::histories::files::Import;
use crate::histories::formats::Format;
use crate::histories::papers::Papers;
use crate::histories::rehearsal::Rehearsed;
use crate::histories::senders::Senders;
use crate::histories::usage::Known;

const MAX_STEPS: u64 = 32;

/// The number of rejected events by customer, usage product and code.
pub(crate) type RefusedCounts = BTreeMap<(String, String, String), u64>;

/// The server and the callers that histories use, one after the other.
pub(crate) struct Stage<'s> {
    server: &'s Server,
    /// A second server on the same database. Each client sends its requests to both in turn.
    other: Option<&'s Server>,
    /// An API key with every scope that is never deleted.
    pub(crate) client: Client,
    /// The first administrator.
    pub(crate) owner: Client,
}

impl<'s> Stage<'s> {
    /// The operations that set up the stage and begin a history.
    pub(crate) const DONE: [&'static str; 5] =
        ["create_contract", "create_customer", "create_pricing", "create_usage_product", "log_in"];

    pub(crate) fn new(server: &'s Server, other: Option<&'s Server>) -> Self {
        let in_turn = |client: Client| other.map_or_else(|| client.clone(), |other| client.alternating(other));
        let client = in_turn(Client::new_key(server));
        catalog::make(&client);
        Self { server, other, client, owner: in_turn(Client::admin(server)) }
    }

    /// Returns a client without a credential.
    pub(crate) fn anonymous(&self) -> Client {
        let client = Client::anonymous(self.server);
        self.other.map_or_else(|| client.clone(), |other| client.alternating(other))
    }
}

/// The results of a history.
pub(crate) struct Left {
    pub(crate) refused: RefusedCounts,
    /// The operations that were carried out.
    pub(crate) done: BTreeSet<&'static str>,
}

/// The life of one contract.
pub(crate) struct History<'s> {
    pub(crate) stage: &'s Stage<'s>,
    pub(crate) seed: u64,
    pub(crate) random: Random,
    pub(crate) pricing: String,
    pub(crate) contract_ref: String,
    pub(crate) model: Model,
    /// The possible callers, without those of the stage.
    pub(crate) senders: Senders,
    pub(crate) formats: Vec<Format>,
    /// The format that processed each event last, by the event's reference; `None` for the built-in format.
    pub(crate) formats_of: BTreeMap<String, Option<usize>>,
    /// The events that a key or a line identifies, including events that no longer count.
    pub(crate) known: Vec<Known>,
    pub(crate) imports: Vec<Import>,
    pub(crate) papers: Papers,
    /// The number of names used so far.
    pub(crate) named: u64,
    /// The dry run of this step's operation.
    pub(crate) rehearsed: Option<Rehearsed>,
    /// Whether this step changed anything.
    pub(crate) is_changed: bool,
    /// The documents after the previous step.
    pub(crate) seen: Vec<Value>,
    /// The paid amount, in cents.
    pub(crate) paid: i64,
    /// The log of operations and responses.
    pub(crate) reported: Vec<String>,
    pub(crate) left: Left,
}

impl<'s> History<'s> {
    pub(crate) fn play(stage: &'s Stage<'s>, seed: u64) -> Left {
        let mut history = Self::begin(stage, seed);
        let steps = 1 + history.random.below(MAX_STEPS);
        for _ in 0..steps {
            history.step();
            history.check(false);
        }
        history.end()
    }

    fn begin(stage: &'s Stage<'s>, seed: u64) -> Self {
        // Printed for failures that no check reports, such as a panic.
        eprintln!("SEED={seed} HTTP_HISTORIES=1");
        // A confirmation holds for five minutes, and all histories together may take longer.
        let confirmed = stage.owner.post("/auth/session/confirm", &json!({"password": ADMIN_PASSWORD}));
        assert_eq!(confirmed.status, 204, "{}", confirmed.text);
        let mut random = Random::new(seed);
        let (pricing, customer) = (format!("plan-{seed}"), format!("customer-{seed}"));
        let model = Model::new(&mut random, &customer);
        catalog::make_customer(&stage.client, &customer);
        catalog::make_pricing(&stage.client, &pricing, &model.pricing());
        let contract_ref = catalog::make_contract(&stage.client, &model.contract(&pricing));
        let mut history = Self {
            stage,
            seed,
            random,
            pricing,
            contract_ref,
            model,
            senders: Senders::default(),
            formats: Vec::new(),
            formats_of: BTreeMap::new(),
            known: Vec::new(),
            imports: Vec::new(),
            papers: Papers::default(),
            named: 0,
            rehearsed: None,
            is_changed: false,
            seen: Vec::new(),
            paid: 0,
            reported: Vec::new(),
            left: Left { refused: RefusedCounts::new(), done: BTreeSet::new() },
        };
        history.make_record_formats();
        history.seen = history.documents();
        history
    }

    fn step(&mut self) {
        match self.random.below(200) {
            0..24 => self.report(),
            24..32 => self.report_by_a_format(),
            32..42 => self.report_a_batch(),
            42..56 => self.deliver(),
            56..68 => self.import(),
            68..74 => self.undo(),
            74..86 => self.send_again(),
            86..106 => self.update(),
            106..118 => self.delete(),
            118..134 => self.issue(),
            134..142 => self.run(),
            142..152 => self.void(),
            152..156 => self.pay(),
            156..158 => self.deposit(),
            158..170 => self.edit(),
            170..174 => self.cancel(),
            174..180 => self.edit_a_format(),
            180..187 => self.manage_keys(),
            187..192 => self.manage_people(),
            192..195 => self.change_what_papers_say(),
            195 => self.delete_an_entity(),
            196..198 => self.run_with_strict_papers(),
            _ => self.read_a_paper(),
        }
    }

    /// Issues everything due and checks that no finished period is left unbilled.
    fn end(mut self) -> Left {
        self.run_by_the_stage();
        self.check(true);
        self.read_all_papers_again();
        self.left
    }

    pub(crate) fn fail(&self, what: &str) -> ! {
        let reported = |document: &Value| {
            let head = books::shown(document).join(" ");
            let parent = &document["parent_document_number"];
            format!("{head} of {parent} for {}: {:?}", document["period_start"], books::lines(document))
        };
        let documents: Vec<String> = self.documents().iter().map(reported).collect();
        panic!(
            "SEED={} HTTP_HISTORIES=1: {what}\n{} {} {}\n{}\n{}",
            self.seed,
            self.model.payment_time,
            self.model.net_terms,
            self.model.pricing(),
            self.reported.join("\n"),
            documents.join("\n")
        );
    }

    pub(crate) fn documents(&self) -> Vec<Value> {
        self.list(&format!("/api/documents/filter?contract_ref={}", self.contract_ref))
    }

    /// Returns the events that count.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.list(&format!("/api/usage/event/filter?customer_ref={}", self.model.customer))
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.stage.client.get(&format!("{path}&pageSize=1000")).ok().as_array().expect("a list").clone()
    }

    fn check(&mut self, all_due: bool) {
        let documents = self.documents();
        let before = std::mem::replace(&mut self.seen, documents);
        let is_refused = !std::mem::take(&mut self.is_changed);
        let is_right = || self.check_events().and_then(|()| self.check_balance());
        let checked = self.model.check(&self.seen, all_due).and_then(|()| is_right()).and_then(|()| {
            if is_refused && before != self.seen {
                return Err("what is refused changes nothing".to_owned());
            }
            self.rehearsed.take().map_or(Ok(()), |rehearsed| rehearsed.check(&before, &self.seen))
        });
        if let Err(wrong) = checked.and_then(|()| self.papers.check(&self.seen)) {
            self.fail(&wrong);
        }
    }

    /// Checks that the stored events are those of the model.
    fn check_events(&self) -> Result<(), String> {
        let stored: BTreeMap<String, (String, String)> = self
            .events()
            .iter()
            .map(|event| {
                let [event_ref, timestamp, quantity] = books::fields(event, ["event_ref", "timestamp", "quantity"]);
                (event_ref, (timestamp[..10].to_owned(), quantity))
            })
            .collect();
        let expected: BTreeMap<String, (String, String)> = self
            .model
            .events
            .iter()
            .map(|event| {
                let event_ref = event.event_ref.as_str().expect("a reference").to_owned();
                (event_ref, (event.day.to_string(), event.quantity.to_string()))
            })
            .collect();
        if stored == expected { Ok(()) } else { Err(format!("these events are stored: {stored:?}, not {expected:?}")) }
    }

    /// Returns a random day on which the contract may have usage.
    pub(crate) fn day(&mut self) -> Day {
        let days = self.model.start.days_until(Day::today());
        self.model.start.plus_days(self.random.between(0, days))
    }

    /// Returns a random index into a list, or `None` if the list is empty.
    pub(crate) fn place_in(&mut self, count: usize) -> Option<usize> {
        let count = u64::try_from(count).expect("a small count");
        (count > 0).then(|| usize::try_from(self.random.below(count)).expect("a small count"))
    }

    /// Returns an unused name.
    pub(crate) fn new_name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}-{}-{}", self.seed, self.named)
    }
}
