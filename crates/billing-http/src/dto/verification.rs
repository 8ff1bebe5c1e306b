//! What `verify` found, as it is told afterwards.

use billing_domain::verification::{Finding, RecordedVerification};

use super::declare::answer;
use super::wire::TimestampText;

/// One that was recorded, if any.
pub(crate) type Recorded = Option<RecordedVerification>;

answer! {
    /// A verification of all documents and accounts, from the raw events.
    VerificationJson of recorded: Recorded {
        let seen = recorded.as_ref().map(|recorded| &recorded.seen);
        /// When it began; null where none was recorded.
        begun_at: Option<TimestampText> = recorded.as_ref().map(|recorded| recorded.begun_at),
        /// When it ended; null where none was recorded.
        ended_at: Option<TimestampText> = recorded.as_ref().map(|recorded| recorded.ended_at),
        /// Contracts it looked at.
        contracts: u64 = seen.map_or(0, |seen| seen.contracts),
        /// Documents it looked at.
        documents: u64 = seen.map_or(0, |seen| seen.documents),
        /// Usage events it counted again.
        events: u64 = seen.map_or(0, |seen| seen.events),
        /// Accounts it added up.
        accounts: u64 = seen.map_or(0, |seen| seen.accounts),
        /// How many things are wrong.
        wrong: u64 = recorded.as_ref().map_or(0, |recorded| recorded.wrong),
        /// The first 100 of them.
        findings: Vec<FindingJson> = seen.map_or(&[][..], |seen| &seen.findings),
    }
}

answer! {
    /// Something that is wrong.
    FindingJson of finding: Finding {
        /// What: a contract, a document, a series of numbers, an account.
        subject: String = finding.subject.clone(),
        /// How.
        detail: String = finding.detail.clone(),
    }
}
