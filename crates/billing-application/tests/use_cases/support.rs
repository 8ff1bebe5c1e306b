//! Shared fixtures: the use cases on SQLite in memory, with a clock and identifiers that tests control.
#![allow(dead_code, reason = "each test binary uses only a part")]

use std::sync::Arc;

use billing_application::billing_run::{self, BillingReport, BillingRunRequest};
use billing_application::documents::{DocumentQuery, DocumentView, list_documents};
use billing_application::error::UseCaseResult;
use billing_application::{Cx, Services, Transactions, UseCase, mocks};
use billing_domain::access::Principal;
use billing_domain::audit::AuditEntry;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{MAX_PAGE_SIZE, PageRequest};
use billing_domain::ports::{
    Access, AuditFilter, AuditPart, Insertion, MockSealer, MockStore, Store as _, StoreError, Tx, transact,
};
use billing_formats::RhaiMapper;
use billing_testkit::{CountingIds, FixedClock, NoWebhooks, PlainEInvoices, PlainPrinter, fixtures};
use billing_teststore::TestStore;

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
        machine: Arc::clone(clock) as _,
        sandbox: None,
        ids: Arc::clone(ids) as _,
        mapper: Arc::new(RhaiMapper::new()),
        sealer: Arc::new(sealer()),
        printer: Arc::new(PlainPrinter),
        e_invoices: Arc::new(PlainEInvoices),
        webhook_urls: Arc::new(NoWebhooks),
        ..mocks::services()
    }
}

/// Returns a mock of a store whose write transaction after this many others fails.
pub(crate) fn failing_store(store: &Arc<TestStore>, writes: usize) -> Arc<MockStore> {
    let [reader, first, later] = [(); 3].map(|()| Arc::clone(store));
    let mut mock = MockStore::new();
    mock.expect_run().withf(|access, _| *access != Access::Write).returning(move |access, work| reader.run(access, work));
    mock.expect_run().times(writes).returning(move |access, work| first.run(access, work));
    mock.expect_run().times(1).returning(|_, _| Err(StoreError::Unavailable("a failure of this test".into())));
    mock.expect_run().returning(move |access, work| later.run(access, work));
    Arc::new(mock)
}

/// Returns a sealer that does not encrypt a text, but binds it to secret and place.
fn sealer() -> MockSealer {
    let prefix = |secret: &str, place: &str| format!("{secret} {place}:").into_bytes();
    let mut sealer = MockSealer::new();
    sealer.expect_seal().returning(move |secret, place, text| Ok([&prefix(secret, place), text].concat()));
    sealer.expect_open().returning(move |secret, place, sealed| sealed.strip_prefix(&*prefix(secret, place)).map(<[u8]>::to_vec));
    sealer
}
