//! Recorded verification results.

use billing_domain::verification::{Finding, RecordedVerification};

use super::declare::answer;
use super::values::TimestampText;

/// The recorded verification, if any.
pub type Recorded = Option<RecordedVerification>;

answer! {
    /// A verification of all documents and accounts against the raw events.
    VerificationJson of recorded: Recorded {
        let seen = recorded.as_ref().map(|recorded| &recorded.seen);
        /// Start time; null if no verification is recorded.
        begun_at: Option<TimestampText> = recorded.as_ref().map(|recorded| recorded.begun_at),
        /// End time; null if no verification is recorded.
        ended_at: Option<TimestampText> = recorded.as_ref().map(|recorded| recorded.ended_at),
        /// Number of verified contracts.
        contracts: u64 = seen.map_or(0, |seen| seen.contracts),
        /// Number of verified documents.
        documents: u64 = seen.map_or(0, |seen| seen.documents),
        /// Number of recounted usage events.
        events: u64 = seen.map_or(0, |seen| seen.events),
        /// Number of verified accounts.
        accounts: u64 = seen.map_or(0, |seen| seen.accounts),
        /// Number of errors found.
        wrong: u64 = recorded.as_ref().map_or(0, |recorded| recorded.wrong),
        /// First 100 errors.
        findings: Vec<FindingJson> = seen.map_or(&[][..], |seen| &seen.findings),
    }
}

answer! {
    /// An error found by the verification.
    FindingJson of finding: Finding {
        /// Subject of the error: a contract, document, number series or account.
        subject: String = finding.subject.clone(),
        /// Description of the error.
        detail: String = finding.detail.clone(),
    }
}
