//! Services for tests of use cases. Each port is a mock that fails a test at every call that the test does not expect.

use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::money::Money;
use billing_domain::notification::epoch::Epoch;
use billing_domain::notification::{Fact, FactData};
use billing_domain::ports::{
    MockClock, MockCodeChecker, MockDocumentPrinter, MockEInvoiceWriter, MockEventMapper, MockIdSource, MockKeyMaker,
    MockPasswordHasher, MockSealer, MockStore, MockTokenSigner, MockWebhookUrlPolicy,
};

use crate::Services;
use crate::audit::{AuditDiff, AuditRenderer, AuditSubject};
use crate::error::UseCaseError;

/// Returns services that expect no call. A test replaces the ports that its use case calls.
pub fn services() -> Services {
    Services {
        store: Arc::new(MockStore::new()),
        clock: Arc::new(MockClock::new()),
        machine: Arc::new(MockClock::new()),
        sandbox: None,
        ids: Arc::new(MockIdSource::new()),
        passwords: Arc::new(MockPasswordHasher::new()),
        keys: Arc::new(MockKeyMaker::new()),
        codes: Arc::new(MockCodeChecker::new()),
        tokens: Arc::new(MockTokenSigner::new()),
        mapper: Arc::new(MockEventMapper::new()),
        sealer: Arc::new(MockSealer::new()),
        teller: Arc::new(DebugRenderer),
        printer: Arc::new(MockDocumentPrinter::new()),
        e_invoices: Arc::new(MockEInvoiceWriter::new()),
        webhook_urls: Arc::new(MockWebhookUrlPolicy::new()),
        token_lifetime_seconds: 60,
    }
}

/// A renderer that prints the debug format, because tests only need to know whether there is a difference.
#[derive(Clone, Copy, Debug)]
pub struct DebugRenderer;

impl AuditRenderer for DebugRenderer {
    fn render_diff(&self, before: Option<AuditSubject<'_>>, after: Option<AuditSubject<'_>>) -> Option<AuditDiff> {
        let render = |subject: AuditSubject<'_>| format!("{subject:?}");
        let (before, after) = (before.map(render), after.map(render));
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
            FactData::Grant(view) => format!("{} free", view.balance.free),
            FactData::Limit(limit) => format!("{} of {}", limit.number.value, limit.level),
            FactData::Endpoint(endpoint) => endpoint.url.clone(),
        };
        format!("{} {} {} {state}", fact.kind, fact.subject(), fact.sequence)
    }
}
