//! The bank test: many concurrent writers and readers of a few customers, so that they interfere. Every read shows a single
//! moment, no request returns a deadlock, and at the end all data equals a model, to the cent. On PostgreSQL there are two
//! servers, and one is killed halfway. Its unanswered requests are sent again to the other server, under their keys.
//!
//! `SEED=s` begins with other numbers: it repeats the actions of each thread, but not their interleaving. `BANK_SECONDS=n` sets a
//! longer run on each database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use acceptance::naive::{Event, KINDS, Model, OVER, Terms};
use acceptance::random::{Random, setting};
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Request, Server, books, catalog};
use serde_json::{Value, json};

/// The length of a round. Each round has new customers, so that one page contains all documents of a customer.
const ROUND: Duration = Duration::from_secs(5);
const WRITERS: usize = 6;
const READERS: usize = 3;
/// The events that each writer moves but never changes otherwise.
const MOVED_OF_EACH: usize = 12;
/// The actions of writers in alphabetical order. `issue` is a billing run that finds something due.
const DONE: [&str; 8] = ["batch", "change", "delete", "edit", "issue", "move", "pay", "report"];
/// The maximum number of rounds after the time is over, until every action was performed.
const MAX_MORE: u32 = 20;
/// The settings of a server whose cache of events drops entries, and of a server that never drops one.
const SMALLEST_CACHE: [&str; 2] = ["--event-cache", "1"];
const LARGEST_CACHE: [&str; 2] = ["--event-cache", "100000"];
/// The maximum page size.
const PAGE: usize = 1000;
/// The maximum number of times that a request is sent while its first attempt is in progress at another server.
const MAX_TRIES: usize = 60;

#[test]
fn sqlite_keeps_every_cent_under_concurrent_requests() {
    for (cache, seconds) in [(SMALLEST_CACHE, 6), (LARGEST_CACHE, 6)] {
        let database = Database::sqlite();
        let server = Server::start_with(&database, &cache);
        let client = Client::new_key(&server);
        prepare(&client);
        play(setting("BANK_SECONDS", seconds), |round| Bank::open(&client, round).play(&[&client], || ()));
    }
}

#[test]
fn postgres_keeps_every_cent_with_two_servers_and_kills() {
    let database = Database::postgres();
    // One server nearly always reads what it needs, and the other one nearly always has it in its cache.
    let server = Server::start_with(&database, &LARGEST_CACHE);
    let client = Client::new_key(&server);
    prepare(&client);
    let mut killed = 0;
    play(setting("BANK_SECONDS", 18), |round| {
        let other = Server::start_with(&database, &SMALLEST_CACHE);
        let at_other = client.at(&other);
        Bank::open(&client, round).play(&[&client, &at_other], || {
            thread::sleep(ROUND / 2);
            other.kill_9();
            killed += 1;
        })
    });
    assert!(killed > 0, "no server was killed");
}

/// Plays rounds until the time is over and every action was performed: the number of actions in a round depends on the machine.
fn play(seconds: u64, mut round: impl FnMut(u64) -> BTreeMap<&'static str, usize>) {
    let began = Instant::now();
    let (mut done, mut more) = (BTreeSet::new(), 0);
    for seed in setting("SEED", 1).. {
        eprintln!("SEED={seed} BANK_SECONDS=1");
        done.extend(round(seed).into_keys());
        if began.elapsed() >= Duration::from_secs(seconds) {
            if done.iter().eq(&DONE) {
                return;
            }
            assert!(more < MAX_MORE, "some actions were not performed, only {done:?}");
            more += 1;
        }
    }
}

fn prepare(client: &Client) {
    client.post("/api/usage/products/", &json!({"usage_product_ref": catalog::API_CALLS, "name": "API calls"})).ok();
}

/// The kind of changes to a customer's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Events move between days and between contracts: their total quantity is constant.
    Move,
    /// Events are added: their total quantity never falls.
    Grow,
    /// All kinds of changes.
    Mix,
}

/// A customer with two contracts. The second contract begins when the first one ends.
struct Account {
    habit: Habit,
    name: String,
    contracts: [Contract; 2],
    /// The paid amount, in cents.
    paid: AtomicI64,
    /// The quantity that was sent, and (`taken`) the quantity that was acknowledged.
    sent: AtomicI64,
    taken: AtomicI64,
}

struct Contract {
    contract_ref: String,
    pricing: String,
    model: Mutex<Model>,
}

/// An event that only its writer changes.
struct Owned {
    account: usize,
    event: Event,
}

/// The customers of a round.
struct Bank {
    seed: u64,
    accounts: Vec<Account>,
    is_over: AtomicBool,
}

impl Bank {
    fn open(client: &Client, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let habits = [Habit::Move, Habit::Grow, Habit::Mix, Habit::Mix];
        let accounts = habits.into_iter().enumerate();
        let accounts = accounts.map(|(number, habit)| Account::open(client, &mut random, habit, format!("c-{seed}-{number}")));
        Self { seed, accounts: accounts.collect(), is_over: AtomicBool::new(false) }
    }

    /// Runs all writers and readers for a round, with `meanwhile` at the same time; then checks the results. Returns how often
    /// each action was performed.
    fn play(self, clients: &[&Client], meanwhile: impl FnOnce()) -> BTreeMap<&'static str, usize> {
        let (reads, mut done) = (AtomicUsize::new(0), BTreeMap::<&'static str, usize>::new());
        let owned = thread::scope(|threads| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let bank = &self;
                    let mut writer = Writer::new(bank, number, Asking::of(clients, number));
                    writer.begin();
                    threads.spawn(move || {
                        while !bank.is_over.load(Ordering::SeqCst) {
                            writer.step();
                        }
                        (writer.owned, writer.done)
                    })
                })
                .collect();
            let readers: Vec<_> = (0..READERS)
                .map(|number| {
                    let (bank, reads) = (&self, &reads);
                    let mut reader = Reader { bank, asking: Asking::of(clients, number), least: 0 };
                    threads.spawn(move || {
                        while !bank.is_over.load(Ordering::SeqCst) {
                            reader.read();
                            reads.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            let began = Instant::now();
            meanwhile();
            thread::sleep(ROUND.saturating_sub(began.elapsed()));
            self.is_over.store(true, Ordering::SeqCst);
            readers.into_iter().for_each(|reader| reader.join().expect("the reader doesn't panic"));
            let mut owned = Vec::new();
            for writer in writers {
                let (of_writer, did) = writer.join().expect("the writer doesn't panic");
                owned.extend(of_writer);
                did.into_iter().for_each(|(what, times)| *done.entry(what).or_default() += times);
            }
            owned
        });
        eprintln!("{reads:?} reads, {done:?}");
        assert!(reads.into_inner() > READERS, "too few reads");
        self.count(clients[0], owned);
        done
    }

    /// Issues everything due, then checks that every document, event and payment equals the acknowledged ones.
    fn count(self, client: &Client, owned: Vec<Owned>) {
        let mut owned_by: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
        for Owned { account, event } in owned {
            owned_by.entry(account).or_default().push(event);
        }
        let mut random = Random::new(self.seed);
        let mut models: Vec<[Model; 2]> = Vec::new();
        for (number, account) in self.accounts.iter().enumerate() {
            let mut pair = account.contracts.each_ref().map(|contract| contract.model.lock().expect("no poisoned lock").clone());
            for event in owned_by.remove(&number).unwrap_or_default() {
                let stored = books::event(client, &event.event_ref);
                let reported = books::fields(&stored, ["quantity"]);
                assert!(
                    reported[0] == event.quantity.to_string() && stored["timestamp"] == timestamp(event.day),
                    "{stored} is stored, not {event:?}"
                );
                pair[usize::from(event.day >= pair[1].start)].events.push(event);
            }
            if account.habit == Habit::Mix {
                let now = random.percent(50);
                books::cancel(client, &account.contracts[1].contract_ref, now).ok();
                pair[1].cancelled(now);
            }
            models.push(pair);
        }
        books::run(client);
        for (account, pair) in self.accounts.iter().zip(&models) {
            account.count(client, pair);
        }
    }

    fn of(&self, habit: Habit) -> impl Iterator<Item = (usize, &Account)> {
        self.accounts.iter().enumerate().filter(move |(_, account)| account.habit == habit)
    }
}

impl Account {
    fn open(client: &Client, random: &mut Random, habit: Habit, name: String) -> Self {
        catalog::make_customer(client, &name);
        let mut second = Model::new(random, &name);
        let mut first = Model::new(random, &name);
        first.start = second.start.plus_months(-OVER);
        first.months = OVER;
        if habit != Habit::Mix {
            (first, second) = (first.by_the_call(), second.by_the_call());
        }
        let contracts = [first, second].map(|model| {
            let pricing = format!("{name}-{}", model.start);
            catalog::make_pricing(client, &pricing, &model.pricing());
            let contract_ref = catalog::make_contract(client, &model.contract(&pricing));
            Contract { contract_ref, pricing, model: Mutex::new(model) }
        });
        let [paid, sent, taken] = [0; 3].map(AtomicI64::new);
        Self { habit, name, contracts, paid, sent, taken }
    }

    /// Returns a random day on which the customer may have usage.
    fn day(&self, random: &mut Random) -> Day {
        let model = random.one_of(&self.contracts).model.lock().expect("no poisoned lock");
        let end = model.month(model.months).plus_days(-1);
        let days = model.start.days_until(end).min(model.start.days_until(Day::today()));
        model.start.plus_days(random.between(0, days))
    }

    /// Checks the customer after everything is issued: its documents cost as much as its events, and it owes that amount less the
    /// payments.
    fn count(&self, client: &Client, models: &[Model; 2]) {
        let mut documents = Vec::new();
        for (contract, model) in self.contracts.iter().zip(models) {
            let path = format!("/api/documents/filter?contract_ref={}", contract.contract_ref);
            let of_contract = pages(client, &path);
            if let Err(wrong) = model.check(&of_contract, true) {
                panic!("{} of {}: {wrong}\n{}", contract.contract_ref, self.name, reported(&of_contract));
            }
            documents.extend(of_contract);
        }
        self.look_at(&documents, true);
        let used: i64 = models.iter().flat_map(|model| &model.events).map(|event| event.quantity).sum();
        let count: usize = models.iter().map(|model| model.events.len()).sum();
        let path = format!("/api/usage/summary?interval=month&group_by=customer_ref&customer_ref={}", self.name);
        let months = client.get(&path).ok();
        let sum = |field: &str| months.as_array().expect("months").iter().map(|month| whole(&month[field])).sum::<i64>();
        assert_eq!((sum("quantity"), sum("events")), (used, i64::try_from(count).expect("a small count")), "{}", self.name);

        let issued = documents.iter().filter(|document| !["DRAFT", "VOID"].iter().any(|state| document["state"] == *state));
        let billed: i64 = issued.map(|document| sign(document) * cents(&document["total"])).sum();
        let owed = billed - self.paid.load(Ordering::SeqCst);
        let balance = client.get(&format!("/api/customers/balance/{}", self.name)).ok();
        let balance = catalog::only(balance);
        assert_eq!(cents(&balance["due"]) - cents(&balance["unapplied"]), owed, "{}: {balance}", self.name);
        let statement = catalog::only(client.get(&format!("/api/customers/statement/{}", self.name)).ok());
        assert_eq!(cents(&statement["closing_balance"]), owed, "{}", self.name);
    }

    /// Checks documents of one moment: each is the sum of its lines, and the tax of a family follows from its net amount. If
    /// `is_all` is false, the checks that need other documents are skipped.
    fn look_at(&self, documents: &[Value], is_all: bool) {
        let mut parents = BTreeMap::new();
        let mut families: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for document in documents {
            parents.insert(document["document_ref"].to_string(), document["parent_document_ref"].to_string());
        }
        for document in documents.iter().filter(|document| document["state"] != "VOID") {
            let lines: i64 = books::lines(document).iter().map(|[_, _, _, amount]| cents(&json!(amount))).sum();
            let [sub_total, discount, prepaid, tax, total] =
                ["sub_total", "total_discount", "total_prepaid", "total_tax", "total"].map(|field| cents(&document[field]));
            assert_eq!((lines, sub_total - discount - prepaid + tax), (sub_total, total), "{document}");
            let mut root = document["document_ref"].to_string();
            while let Some(parent) = parents.get(&root).filter(|parent| *parent != "null") {
                root.clone_from(parent);
            }
            let family = families.entry(root).or_default();
            family.0 += sign(document) * (sub_total - discount - prepaid);
            family.1 += sign(document) * tax;
        }
        for (root, (net, tax)) in families.iter().filter(|_| is_all) {
            // 19 %, rounded half away from zero.
            let exact = 2 * 19 * net.abs() + 100;
            assert_eq!(tax.abs(), exact / 200, "{}: tax of the family of {root}, net {net}\n{}", self.name, reported(documents));
        }
    }
}

/// The clients of the servers. The second client is used once the first server is gone.
struct Asking {
    clients: Vec<Client>,
}

impl Asking {
    fn of(clients: &[&Client], number: usize) -> Self {
        let mut clients: Vec<Client> = clients.iter().map(|client| client.with_own_connections()).collect();
        let places = clients.len();
        clients.rotate_left(number % places);
        Self { clients }
    }

    /// Returns the response, and whether an earlier attempt may have carried the request out.
    fn ask(&mut self, request: &Request<'_>) -> (Answer, bool) {
        let mut again = false;
        for _ in 0..MAX_TRIES {
            match self.clients[0].try_send(request) {
                // The first attempt may still be in progress at the server that is gone.
                Ok(answer) if answer.body["code"] == "request_in_progress" && again => thread::sleep(Duration::from_millis(50)),
                Ok(answer) => {
                    assert!(answer.status < 500, "{} {}: {}", request.method, request.path, answer.text);
                    return (answer, again);
                }
                Err(error) => {
                    assert!(self.clients.len() > 1, "{} {}: {error}", request.method, request.path);
                    self.clients.remove(0);
                    again = true;
                }
            }
        }
        panic!("{} {} stays in progress", request.method, request.path)
    }

    fn get(&mut self, path: &str) -> Answer {
        self.ask(&Request::get(path)).0
    }
}

struct Writer<'b> {
    bank: &'b Bank,
    number: usize,
    random: Random,
    asking: Asking,
    sent: usize,
    owned: Vec<Owned>,
    /// The number of times that each action was performed.
    done: BTreeMap<&'static str, usize>,
}

impl<'b> Writer<'b> {
    fn new(bank: &'b Bank, number: usize, asking: Asking) -> Self {
        let random = Random::new(bank.seed.wrapping_mul(1000).wrapping_add(number as u64));
        Self { bank, number, random, asking, sent: 0, owned: Vec::new(), done: BTreeMap::new() }
    }

    /// Reports the events that are moved later.
    fn begin(&mut self) {
        for (account, _) in self.bank.of(Habit::Move) {
            self.batch(&[account; MOVED_OF_EACH]);
        }
    }

    fn step(&mut self) {
        let bank = self.bank;
        let (mixed, _) = *self.random.one_of(&bank.of(Habit::Mix).collect::<Vec<_>>());
        let grown = bank.of(Habit::Grow).next().map_or(mixed, |(account, _)| account);
        match self.random.below(200) {
            0..40 => self.report(mixed),
            40..60 => self.report(grown),
            60..70 => self.batch(&[mixed, grown, mixed]),
            70..120 => self.change(Habit::Mix),
            120..150 => self.change(Habit::Move),
            150..170 => self.delete(),
            170..186 => self.pay(mixed),
            186..196 => self.edit(mixed),
            _ => self.run(),
        }
    }

    fn did(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    /// Sends a POST under a key of its own.
    fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.sent += 1;
        let key = format!("{}-{}-{}", self.bank.seed, self.number, self.sent);
        self.asking.ask(&Request::post(path, body.to_string()).with("Idempotency-Key", &key)).0
    }

    fn event(&mut self, account: usize) -> (Value, Event) {
        let account = &self.bank.accounts[account];
        let (day, quantity) = (account.day(&mut self.random), self.random.between(1, 300));
        account.sent.fetch_add(quantity, Ordering::SeqCst);
        let mut body = catalog::event(&account.name, quantity);
        body["timestamp"] = json!(timestamp(day));
        (body, Event { event_ref: Value::Null, day, quantity, kind: KINDS[0] })
    }

    fn taken(&mut self, account: usize, event: Event, answer: &Value) {
        let event = Event { event_ref: answer["event_ref"].clone(), ..event };
        self.bank.accounts[account].taken.fetch_add(event.quantity, Ordering::SeqCst);
        self.owned.push(Owned { account, event });
    }

    fn report(&mut self, account: usize) {
        let (body, event) = self.event(account);
        let answer = self.post("/api/usage/event", &body).ok();
        self.taken(account, event, &answer);
        self.did("report");
        if self.random.percent(20) {
            self.follow(&answer["event_ref"]);
        }
    }

    fn batch(&mut self, accounts: &[usize]) {
        let events: Vec<(Value, Event)> = accounts.iter().map(|account| self.event(*account)).collect();
        let bodies: Vec<&Value> = events.iter().map(|(body, _)| body).collect();
        let answer = self.post("/api/usage/event/batch", &json!({"events": bodies})).ok();
        let results = answer["results"].as_array().expect("results");
        assert_eq!(results.len(), accounts.len(), "{answer}");
        for ((account, (_, event)), result) in accounts.iter().zip(events).zip(results) {
            assert!(result["event_ref"].is_string(), "{answer}");
            self.taken(*account, event, result);
        }
        self.did("batch");
    }

    /// Returns one of the writer's own events, of a customer with this habit.
    fn one_of_its_own(&mut self, habit: Habit) -> Option<usize> {
        let accounts = &self.bank.accounts;
        let places = self.owned.iter().enumerate().filter(|(_, owned)| accounts[owned.account].habit == habit);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        (!places.is_empty()).then(|| *self.random.one_of(&places))
    }

    fn change(&mut self, habit: Habit) {
        let Some(place) = self.one_of_its_own(habit) else { return };
        let mut event = self.owned[place].event.clone();
        let mut change = json!({"event_ref": event.event_ref});
        if habit == Habit::Move || self.random.percent(50) {
            event.day = self.bank.accounts[self.owned[place].account].day(&mut self.random);
            change["timestamp"] = json!(timestamp(event.day));
        }
        if habit == Habit::Mix && self.random.percent(70) {
            event.quantity = self.random.between(0, 300);
            change["quantity"] = json!(event.quantity);
        }
        let answer = self.post("/api/usage/event/update", &change).ok();
        assert_eq!(whole(&answer["quantity"]), event.quantity, "{answer}");
        self.owned[place].event = event;
        self.did(if habit == Habit::Move { "move" } else { "change" });
        if self.random.percent(20) {
            self.follow(&answer["event_ref"]);
        }
    }

    fn delete(&mut self) {
        let Some(place) = self.one_of_its_own(Habit::Mix) else { return };
        let event_ref = self.owned.swap_remove(place).event.event_ref;
        let path = format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"));
        let (answer, again) = self.asking.ask(&Request { method: "DELETE", ..Request::get(&path) });
        assert!(answer.status == 204 || (again && answer.status == 404), "{}", answer.text);
        assert_eq!(self.asking.get(&path).status, 404, "a deleted event isn't found");
        self.did("delete");
    }

    /// Checks that the document that an event names contains the event. Nobody else changes the event, but its document may be
    /// replaced in the meantime.
    fn follow(&mut self, event_ref: &Value) {
        let path = format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"));
        let mut event = self.asking.get(&path).ok();
        loop {
            let document_ref = event["related_document_ref"].as_str().expect("a document").to_owned();
            let on_it = pages_by(&mut self.asking, &format!("/api/usage/event/filter?document_ref={document_ref}"));
            let has_it = on_it.iter().any(|other| other["event_ref"] == *event_ref);
            let document = self.asking.get(&format!("/api/documents/{document_ref}")).ok();
            let again = self.asking.get(&path).ok();
            if again["related_document_ref"] == event["related_document_ref"] {
                assert!(has_it, "{document_ref} doesn't contain {event_ref}");
                assert_eq!(document["customer"]["customer_ref"], event["customer_ref"], "{document}");
                return;
            }
            event = again;
        }
    }

    fn pay(&mut self, account: usize) {
        let account = &self.bank.accounts[account];
        let path = format!("/api/documents/filter?customer_ref={}&has_amount_due=true&totals=false", account.name);
        let open = self.asking.get(&path).ok();
        let open = open.as_array().expect("a list");
        if open.is_empty() {
            return;
        }
        let document = self.random.one_of(open);
        let due = cents(&document["amount_due"]);
        let amount = if self.random.percent(50) { due } else { self.random.between(1, due) };
        let path = format!("/api/documents/payments/{}", document["document_ref"].as_str().expect("a reference"));
        let body = json!({"amount": format!("{}.{:02}", amount / 100, amount % 100)});
        let answer = self.post(&path, &body);
        match answer.status {
            200 => {
                account.paid.fetch_add(amount, Ordering::SeqCst);
                self.did("pay");
            }
            // Another writer was faster.
            _ => assert!(["not_owed", "validation_failed"].contains(&answer.text_of("code").as_str()), "{}", answer.text),
        }
    }

    fn edit(&mut self, account: usize) {
        let contract = &self.bank.accounts[account].contracts[1];
        // Edits run one at a time, so that the last edit is known.
        let mut model = contract.model.lock().expect("no poisoned lock");
        let terms = match self.random.below(2) {
            0 => Terms { fee: !model.terms.fee, ..model.terms },
            _ => Terms { discount: self.random.between(0, 50), ..model.terms },
        };
        let include_current = self.random.percent(60);
        let body = model.edit(&contract.pricing, terms, include_current);
        let answer = self.post(&format!("/api/contracts/edit/{}", contract.contract_ref), &body);
        // An edit from the next period has no effect on a contract that ends before it.
        if !include_current && answer.status == 409 {
            assert_eq!(answer.text_of("code"), "product_over", "{}", answer.text);
            return;
        }
        answer.ok();
        model.edited(terms, include_current);
        self.did("edit");
    }

    fn run(&mut self) {
        let (answer, _) = self.asking.ask(&Request::post("/api/billing/run", "{}"));
        let report = answer.ok();
        assert_eq!(report["failed"], json!([]), "every contract can be billed");
        if report["issued"] != json!([]) {
            self.did("issue");
        }
    }
}

struct Reader<'b> {
    bank: &'b Bank,
    asking: Asking,
    /// The last value read of a growing quantity.
    least: i64,
}

impl Reader<'_> {
    /// Reads the documents of every customer, each customer in one request.
    fn read(&mut self) {
        for account in &self.bank.accounts {
            let taken = account.taken.load(Ordering::SeqCst);
            let path = format!("/api/documents/filter?customer_ref={}&pageSize={PAGE}&totals=false", account.name);
            let documents = self.asking.get(&path).ok();
            let sent = account.sent.load(Ordering::SeqCst);
            let documents = documents.as_array().expect("documents");
            let is_all = documents.len() < PAGE;
            account.look_at(documents, is_all);
            if account.habit == Habit::Mix {
                self.read_money(account);
                continue;
            }
            assert!(is_all, "a page contains all documents of {}", account.name);
            let billed = calls(documents);
            match account.habit {
                Habit::Move => assert_eq!(billed, taken, "{}: moved, none lost\n{}", account.name, reported(documents)),
                _ => {
                    assert!(
                        (taken..=sent).contains(&billed) && billed >= self.least,
                        "{taken} ≤ {billed} ≤ {sent}, {}",
                        self.least
                    );
                    self.least = billed;
                }
            }
        }
    }

    /// Checks that a statement is the sum of its entries and contains every acknowledged payment.
    fn read_money(&mut self, account: &Account) {
        let paid = account.paid.load(Ordering::SeqCst);
        let statements = self.asking.get(&format!("/api/customers/statement/{}", account.name)).ok();
        for statement in statements.as_array().expect("statements") {
            let entries = statement["entries"].as_array().expect("entries");
            let mut balance = cents(&statement["opening_balance"]);
            for entry in entries {
                balance += cents(&entry["amount"]);
                assert_eq!(cents(&entry["balance"]), balance, "{statement}");
            }
            assert_eq!(cents(&statement["closing_balance"]), balance, "{statement}");
            let payments = entries.iter().filter(|entry| entry["kind"] == "PAYMENT");
            let reported = payments.map(|entry| -cents(&entry["amount"])).sum::<i64>();
            assert!(reported >= paid, "{paid} cents were paid, but {reported} are listed");
        }
    }
}

/// Returns the number of calls that documents bill. Each call costs seven cents.
fn calls(documents: &[Value]) -> i64 {
    let mut billed = 0;
    for document in documents.iter().filter(|document| document["state"] != "VOID") {
        for [_, _, quantity, amount] in books::lines(document).into_iter().filter(|[line_item, ..]| line_item == "calls") {
            let quantity: i64 = quantity.parse().expect("a whole quantity");
            assert_eq!(cents(&json!(amount)), 7 * quantity, "{document}");
            billed += sign(document) * quantity;
        }
    }
    billed
}

/// Returns all items of a list that nobody writes to.
fn pages(client: &Client, path: &str) -> Vec<Value> {
    pages_by(&mut Asking { clients: vec![client.clone()] }, path)
}

/// Returns all items of a list, or the existing items of a list that others write to.
fn pages_by(asking: &mut Asking, path: &str) -> Vec<Value> {
    let (mut items, mut seen) = (Vec::new(), BTreeSet::new());
    for page in 0.. {
        let of_page = asking.get(&format!("{path}&pageSize={PAGE}&pageNumber={page}")).ok();
        let of_page = of_page.as_array().expect("a list");
        items.extend(of_page.iter().filter(|item| seen.insert(item.to_string())).cloned());
        if of_page.len() < PAGE {
            break;
        }
    }
    items
}

fn timestamp(day: Day) -> String {
    // Noon of today may be in the future.
    if day == Day::today() { format!("{day}T00:00:00Z") } else { day.noon() }
}

fn sign(document: &Value) -> i64 {
    if document["kind"] == "CREDIT" { -1 } else { 1 }
}

fn whole(number: &Value) -> i64 {
    number.to_string().trim_matches('"').parse().unwrap_or_else(|_| panic!("{number} is not a whole number"))
}

/// Converts an amount to cents.
fn cents(amount: &Value) -> i64 {
    let text = amount.to_string();
    let text = text.trim_matches('"');
    assert_eq!(text.chars().rev().position(|character| character == '.'), Some(2), "{amount} has two decimal places");
    text.replace('.', "").parse().unwrap_or_else(|_| panic!("{amount} is not an amount"))
}

/// Formats documents for the message of a failed check.
fn reported(documents: &[Value]) -> String {
    let lines = documents.iter().map(|document| {
        let head = books::shown(document).join(" ");
        format!("{head} of {} for {}: {:?}", document["parent_document_number"], document["period_start"], books::lines(document))
    });
    lines.collect::<Vec<_>>().join("\n")
}
