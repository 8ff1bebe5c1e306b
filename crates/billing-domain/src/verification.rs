//! What a verification of the books found, as it is told afterwards.

use std::fmt::Display;

use crate::calendar::Timestamp;

/// The most findings that are kept one by one.
pub const MAX_KEPT_FINDINGS: usize = 100;
/// The most characters that are kept of one.
const MAX_KEPT_CHARACTERS: usize = 500;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong: a contract, a document, a series.
    pub subject: String,
    /// How.
    pub detail: String,
}

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Contracts looked at.
    pub contracts: u64,
    /// Documents looked at.
    pub documents: u64,
    /// Events counted again.
    pub events: u64,
    /// Accounts added up.
    pub accounts: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Takes up what another one looked at and found.
    pub fn add(&mut self, other: Self) {
        self.contracts += other.contracts;
        self.documents += other.documents;
        self.events += other.events;
        self.accounts += other.accounts;
        self.findings.extend(other.findings);
    }

    /// Notes something that is wrong.
    pub fn find(&mut self, subject: impl Display, detail: impl Into<String>) {
        self.findings.push(Finding { subject: subject.to_string(), detail: detail.into() });
    }
}

/// The last verification of an organization that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVerification {
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How many things are wrong.
    pub wrong: u64,
    /// What was looked at, and the first of what is wrong.
    pub seen: Verification,
}

impl RecordedVerification {
    /// What is recorded of a verification: at most [`MAX_KEPT_FINDINGS`] of what it found, none of them long.
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
