//! Shared fixtures: the use cases on SQLite in memory, with a clock and identifiers that tests control.
#![allow(dead_code, reason = "each test binary uses only a part")]

use std::sync::Arc;

use billing_application::audit::{AuditDiff, AuditRenderer, AuditSubject};
use billing_application::billing_run::{self, BillingReport, BillingRunRequest};
use billing_application::documents::{DocumentQuery, DocumentView, list_documents};
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::{Cx, Services, Transactions, UseCase};
use billing_domain::access::{CodeSecret, PasswordHash, Principal, SecretDigest, TokenClaims};
use billing_domain::audit::AuditEntry;
use billing_domain::calendar::Timestamp;
use billing_domain::money::Money;
use billing_domain::notification::epoch::Epoch;
use billing_domain::notification::{Fact, FactData};
use billing_domain::page::{MAX_PAGE_SIZE, PageRequest};
use billing_domain::ports::{
    Access, AuditFilter, AuditPart, CodeChecker, Insertion, KeyMaker, NewKey, PasswordCheck, PasswordHasher, Sealer, SecretError,
    StoreError, TokenSigner, Tx, transact,
};
use billing_formats::RhaiMapper;
use billing_testkit::{CountingIds, FixedClock, NoWebhooks, PlainEInvoices, PlainPrinter, fixtures};
use billing_teststore::TestStore;

/// A placeholder for the ports of secrets, which billing does not use.
struct NoSecrets;

const NO_SECRETS: &str = "no secrets in this test";

impl PasswordHasher for NoSecrets {
    fn hash(&self, _password: &str) -> Result<PasswordHash, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }

    fn check(&self, _password: &str, _hash: Option<&PasswordHash>) -> PasswordCheck {
        PasswordCheck::Wrong
    }

    fn is_outdated(&self, _hash: &PasswordHash) -> bool {
        false
    }
}

impl KeyMaker for NoSecrets {
    fn new_key(&self) -> Result<NewKey, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }

    fn new_secret(&self) -> Result<String, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }

    fn digest(&self, _secret: &str) -> SecretDigest {
        SecretDigest([0; 32])
    }

    fn matches(&self, _secret: &str, _digest: Option<&SecretDigest>) -> bool {
        false
    }
}

/// A renderer that prints the debug format. Tests only need to know whether there is a difference.
struct AsTheyAre;

impl AuditRenderer for AsTheyAre {
    fn render_diff(&self, before: Option<AuditSubject<'_>>, after: Option<AuditSubject<'_>>) -> Option<AuditDiff> {
        let reported = |thing: AuditSubject<'_>| format!("{thing:?}");
        let (before, after) = (before.map(reported), after.map(reported));
        (before != after).then_some(AuditDiff { before, after })
    }

    fn reason(&self, error: &UseCaseError) -> (&'static str, String) {
        let code = match error {
            UseCaseError::Conflict { code, .. } => code,
            _ => "refused",
        };
        (code, error.to_string())
    }

    /// Returns the type, the subject, the sequence, and the number, the state and the amount due of a document.
    fn render_notification(&self, fact: &Fact, _epoch: Epoch, _at: Timestamp) -> String {
        let state = match &fact.data {
            FactData::Document(document) => {
                let due = document.owed.and_then(|owed| owed.amount_due).map_or(0, Money::minor);
                format!("{} {:?} {due}", document.document.head.number, document.state)
            }
            FactData::Contract(contract) => format!("version {}", contract.contract.version),
            FactData::Billing(billing) => {
                let failures = billing.failure.iter().flat_map(|problem| &problem.failures);
                failures.map(|failure| failure.code.clone()).collect::<Vec<_>>().join(" ")
            }
            FactData::Endpoint(endpoint) => endpoint.url.clone(),
        };
        format!("{} {} {} {state}", fact.kind, fact.subject(), fact.sequence)
    }
}

impl TokenSigner for NoSecrets {
    fn sign(&self, _claims: &TokenClaims) -> Result<String, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }

    fn verify(&self, _token: &str, _now: Timestamp) -> Result<TokenClaims, SecretError> {
        Err(SecretError::InvalidToken)
    }
}

impl CodeChecker for NoSecrets {
    fn new_code_secret(&self) -> Result<CodeSecret, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }

    fn spelled(&self, _secret: &CodeSecret) -> String {
        String::new()
    }

    fn step_of(&self, _secret: &CodeSecret, _code: &str, _now: Timestamp, _after: Option<i64>) -> Option<i64> {
        None
    }

    fn new_recovery_code(&self) -> Result<String, SecretError> {
        Err(SecretError::Failed(NO_SECRETS.to_owned()))
    }
}

impl Sealer for NoSecrets {
    /// Returns the text unencrypted, but bound to secret and place.
    fn seal(&self, secret: &str, place: &str, text: &[u8]) -> Result<Vec<u8>, SecretError> {
        Ok([format!("{secret} {place}:").as_bytes(), text].concat())
    }

    fn open(&self, secret: &str, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        sealed.strip_prefix(format!("{secret} {place}:").as_bytes()).map(<[u8]>::to_vec)
    }
}

/// The fixture of a test: one organization without content.
pub(crate) struct Bench {
    pub(crate) store: Arc<TestStore>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) ids: Arc<CountingIds>,
    pub(crate) services: Services,
    pub(crate) principal: Principal,
}

impl Bench {
    pub(crate) fn at(now: &str) -> Self {
        let clock = FixedClock::at(now);
        let (store, ids) = (Arc::new(TestStore::new()), Arc::new(CountingIds::new()));
        let clock = Arc::new(clock);
        let services = services(&store, &clock, &ids);
        // Omits the entity that a new organization has, because tests create their own.
        let organization = fixtures::organization(&*ids);
        let made = transact::<_, StoreError>(&*store, Access::Write, |tx| tx.insert_organization(&organization));
        assert_eq!(made.expect("an organization"), Insertion::Done);
        let principal = Principal::of_command_line(organization.id);
        Self { store, clock, ids, services, principal }
    }

    /// Returns a copy with the same content and time, to compare alternative continuations.
    pub(crate) fn fork(&self) -> Self {
        let store = Arc::new(self.store.fork());
        let clock = Arc::new(FixedClock::at(&self.services.now().to_string()));
        let ids = Arc::clone(&self.ids);
        let services = services(&store, &clock, &ids);
        Self { store, clock, ids, services, principal: self.principal.clone() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.services.now()
    }

    /// Returns all documents in the order of creation.
    pub(crate) fn documents(&self) -> Vec<DocumentView> {
        let mut all = Vec::new();
        for number in 0.. {
            let page = PageRequest::new(MAX_PAGE_SIZE, number).expect("a page");
            let page = read(&self.services, &self.principal, UseCase::ListDocuments, |cx| {
                list_documents(cx, &DocumentQuery::default(), page.into())
            })
            .expect("documents");
            all.extend(page.items);
            if page.next.is_none() {
                break;
            }
        }
        all
    }

    /// Returns the audit log, newest entry first.
    pub(crate) fn audit_log(&self) -> Vec<AuditEntry> {
        let all = AuditPart { after: None, skip: 0, limit: u32::MAX };
        self.read(|tx| tx.audit_entries(self.principal.organization(), &AuditFilter::default(), all))
    }

    /// Reads data that the use cases do not return.
    pub(crate) fn read<T>(&self, mut look: impl FnMut(&mut dyn Tx) -> Result<T, StoreError>) -> T {
        transact(&*self.store, Access::Read, |tx| look(tx)).expect("a readable store")
    }
}

/// Runs a use case that changes data. `work` can run only once, so nothing may conflict with it.
pub(crate) fn run<T>(
    services: &Services,
    principal: &Principal,
    use_case: UseCase,
    work: impl FnOnce(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<T> {
    billing_application::run(services, principal, use_case, once(work))
}

/// Runs a use case that only reads. `work` can run only once, so nothing may conflict with it.
pub(crate) fn read<T>(
    services: &Services,
    principal: &Principal,
    use_case: UseCase,
    work: impl FnOnce(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<T> {
    billing_application::read(services, principal, use_case, once(work))
}

/// Returns work that panics when it is called again.
fn once<T>(work: impl FnOnce(&mut Cx<'_>) -> UseCaseResult<T>) -> impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> {
    let mut work = Some(work);
    move |cx| work.take().expect("work that runs once")(cx)
}

/// Runs billing in transactions of its own.
pub(crate) fn run_billing(
    services: &Services,
    principal: &Principal,
    wanted: BillingRunRequest<'_>,
) -> UseCaseResult<BillingReport> {
    billing_run::run_billing(&mut Transactions::Separate(services, Some(principal)), wanted)
}

fn services(store: &Arc<TestStore>, clock: &Arc<FixedClock>, ids: &Arc<CountingIds>) -> Services {
    Services {
        store: Arc::clone(store) as _,
        clock: Arc::clone(clock) as _,
        ids: Arc::clone(ids) as _,
        passwords: Arc::new(NoSecrets),
        keys: Arc::new(NoSecrets),
        codes: Arc::new(NoSecrets),
        tokens: Arc::new(NoSecrets),
        mapper: Arc::new(RhaiMapper::new()),
        sealer: Arc::new(NoSecrets),
        teller: Arc::new(AsTheyAre),
        printer: Arc::new(PlainPrinter),
        e_invoices: Arc::new(PlainEInvoices),
        webhook_urls: Arc::new(NoWebhooks),
        token_lifetime_seconds: 60,
    }
}
