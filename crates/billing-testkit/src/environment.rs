//! Deterministic clocks, identifiers, document printers and webhook senders for tests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use billing_domain::calendar::Timestamp;
use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::einvoice::Syntax;
use billing_domain::einvoice::business_terms::BusinessTerms;
use billing_domain::party::appearance::Logo;
use billing_domain::ports::{
    Clock, DocumentPrinter, EInvoiceWriter, IdSource, PrintError, SandboxClock, WebhookRequest, WebhookResponse, WebhookSender,
    WebhookUrlPolicy, WebhookUrlRefusal,
};
use billing_domain::receivables::StatementPrintout;
use billing_domain::webhook::{AttemptOutcome, WebhookUrl};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

/// A clock that stands still until a test sets it.
#[derive(Debug)]
pub struct FixedClock(Mutex<Timestamp>);

impl FixedClock {
    /// Creates a clock at an instant in RFC 3339.
    pub fn at(text: &str) -> Self {
        Self(Mutex::new(crate::fixtures::at(text)))
    }

    /// Sets the clock to an instant, which may be earlier.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = now;
    }

    /// Advances the clock by seconds.
    pub fn advance(&self, seconds: i64) {
        self.set(self.now().plus_seconds(seconds));
    }
}

impl SandboxClock for FixedClock {
    fn move_to(&self, now: Timestamp) {
        self.set(now);
    }

    fn begin_advance(&self) -> bool {
        true
    }

    fn end_advance(&self) {}
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Identifiers in the form of UUID version 7 that count up from 1. They are the same in every run.
#[derive(Debug, Default)]
pub struct CountingIds(AtomicU64);

impl CountingIds {
    /// Creates a counter that starts at 1.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl IdSource for CountingIds {
    fn new_id(&self) -> Uuid {
        // 2026-01-01T00:00:00Z. Each identifier adds one millisecond.
        const BASE_MILLIS: u64 = 1_767_225_600_000;
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut rest = [0; 10];
        rest[2..].copy_from_slice(&n.to_be_bytes());
        Builder::from_unix_timestamp_millis(BASE_MILLIS + n, &rest).into_uuid()
    }
}

/// Real UUIDs of version 7. They differ in every run and process, so tests can share a store.
#[derive(Debug, Default)]
pub struct FreshIds;

impl IdSource for FreshIds {
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// A printer that renders a document as plain text and never fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainPrinter;

impl DocumentPrinter for PlainPrinter {
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError> {
        Ok(plain(format!("{printout:?}"), "PlainPrinter 1"))
    }

    fn missing_glyphs(&self, _printout: &Printout) -> String {
        String::new()
    }

    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError> {
        Ok(plain(format!("{statement:?}"), "PlainPrinter 1"))
    }

    fn can_print_logo(&self, _logo: &Logo) -> Result<bool, PrintError> {
        Ok(true)
    }
}

fn plain(text: String, maker: &str) -> RenderedFile {
    let sha256 = Sha256::digest(&text).into();
    RenderedFile { bytes: text.into_bytes(), sha256, maker: maker.to_owned() }
}

/// A writer of e-invoices that writes the terms as plain text.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainEInvoices;

impl EInvoiceWriter for PlainEInvoices {
    fn write(&self, terms: &BusinessTerms, syntax: Syntax) -> Result<RenderedFile, PrintError> {
        Ok(plain(format!("{syntax:?} {terms:?}"), "PlainEInvoices 1"))
    }
}

/// A sender of webhooks that permits every URL and reaches none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWebhooks;

impl WebhookUrlPolicy for NoWebhooks {
    fn check(&self, _url: &WebhookUrl) -> Result<(), WebhookUrlRefusal> {
        Ok(())
    }
}

impl WebhookSender for NoWebhooks {
    fn send(&self, _request: &WebhookRequest<'_>) -> WebhookResponse {
        WebhookResponse {
            status: None,
            outcome: AttemptOutcome::Unreachable,
            retry_after_seconds: None,
            millis: 0,
            excerpt: Some("no endpoint is reached in this test".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_identifiers_rise_and_say_version_7() {
        let ids = CountingIds::new();
        let made: Vec<Uuid> = (0..1000).map(|_| ids.new_id()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
        assert_eq!(made[0], CountingIds::new().new_id());
    }

    #[test]
    fn a_fixed_clock_moves_only_when_told() {
        let clock = FixedClock::at("2026-01-31T23:59:59Z");
        assert_eq!(clock.now(), clock.now());
        clock.advance(1);
        assert_eq!(clock.now().to_string(), "2026-02-01T00:00:00Z");
    }
}
