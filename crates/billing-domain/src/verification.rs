//! Results of a verification of the ledger.

use std::fmt::Display;

use crate::calendar::Timestamp;

/// The maximum number of findings in the record of a verification.
pub const MAX_KEPT_FINDINGS: usize = 100;
/// The maximum length of a recorded text in characters.
const MAX_KEPT_CHARACTERS: usize = 500;

/// An inconsistency that a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The inconsistent object: a contract, a document or a number series.
    pub subject: String,
    /// The explanation of the inconsistency.
    pub detail: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of verified contracts.
    pub contracts: u64,
    /// The number of verified documents.
    pub documents: u64,
    /// The number of recounted events.
    pub events: u64,
    /// The number of recalculated accounts.
    pub accounts: u64,
    /// The inconsistencies.
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Adds the result of another verification.
    pub fn add(&mut self, other: Self) {
        self.contracts += other.contracts;
        self.documents += other.documents;
        self.events += other.events;
        self.accounts += other.accounts;
        self.findings.extend(other.findings);
    }

    /// Adds a finding.
    pub fn find(&mut self, subject: impl Display, detail: impl Into<String>) {
        self.findings.push(Finding { subject: subject.to_string(), detail: detail.into() });
    }
}

/// The record of an organization's latest verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVerification {
    /// The start time.
    pub begun_at: Timestamp,
    /// The end time.
    pub ended_at: Timestamp,
    /// The number of all findings.
    pub wrong: u64,
    /// The result with the first findings.
    pub seen: Verification,
}

impl RecordedVerification {
    /// Creates the record of a verification. It has at most [`MAX_KEPT_FINDINGS`] findings, and long texts are truncated.
    pub fn of(begun_at: Timestamp, ended_at: Timestamp, mut seen: Verification) -> Self {
        let wrong = seen.findings.len() as u64;
        seen.findings.truncate(MAX_KEPT_FINDINGS);
        for Finding { subject, detail } in &mut seen.findings {
            for text in [subject, detail] {
                if let Some((end, _)) = text.char_indices().nth(MAX_KEPT_CHARACTERS) {
                    text.truncate(end);
                }
            }
        }
        Self { begun_at, ended_at, wrong, seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_findings_are_counted_and_the_first_are_kept() {
        let at = Timestamp::from_micros(0).expect("an instant");
        let finding = |n: usize| Finding { subject: n.to_string(), detail: "ß".repeat(n) };
        let seen =
            Verification { contracts: 1, documents: 2, events: 3, accounts: 4, findings: (450..600).map(finding).collect() };
        let recorded = RecordedVerification::of(at, at, seen.clone());
        assert_eq!((recorded.wrong, recorded.seen.findings.len()), (150, MAX_KEPT_FINDINGS));
        assert_eq!(recorded.seen.findings[..51], seen.findings[..51]);
        assert!(recorded.seen.findings.iter().all(|finding| finding.detail.chars().count() <= MAX_KEPT_CHARACTERS));
        let clean = Verification { findings: Vec::new(), ..seen };
        assert_eq!(
            RecordedVerification::of(at, at, clean.clone()),
            RecordedVerification { begun_at: at, ended_at: at, wrong: 0, seen: clean }
        );
    }
}
