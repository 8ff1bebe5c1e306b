//! The notifications of the histories, as a client reads them that asks for the next ones after each history.

use std::collections::BTreeMap;

use acceptance::{Client, Database, books};
use serde_json::{Value, json};

/// The feed as it was read so far.
#[derive(Default)]
pub(crate) struct Feed {
    read: Vec<Value>,
    /// The last notification of each subject, by its place in the feed.
    last: BTreeMap<String, usize>,
}

impl Feed {
    /// Reads the next notifications. Checks that positions and sequences count from 1, and that the last notification of each of a
    /// customer's documents has the state of the document.
    pub(crate) fn read_on(&mut self, database: &Database, client: &Client, seed: u64) {
        let failure = format!("use {seed} as SEED, and HTTP_HISTORIES=1");
        for notification in books::feed(database, client, self.read.len() as u64) {
            assert_eq!(notification["position"], json!(self.read.len() + 1), "{failure}");
            let subject = notification["subject"].as_str().expect("a subject").to_owned();
            let previous = self.last.insert(subject, self.read.len());
            let sequence = previous.map_or(0, |place| self.read[place]["sequence"].as_u64().expect("a sequence"));
            assert_eq!(notification["sequence"], json!(sequence + 1), "{notification}: {failure}");
            self.read.push(notification);
        }
        let documents = client.get(&format!("/api/documents/filter?customer_ref=customer-{seed}&pageSize=1000")).ok();
        for document in documents.as_array().expect("a list") {
            let subject = format!("document:{}", document["document_ref"].as_str().expect("a reference"));
            let place = self.last.get(&subject).unwrap_or_else(|| panic!("nothing about {subject}: {failure}"));
            let data = &self.read[*place]["data"];
            assert_eq!(data["state"], document["state"], "{document}: {failure}");
            // A document that was never issued has no amounts, also if it is void.
            if !document["issue_date"].is_null() {
                for field in ["total", "amount_due", "unapplied_amount", "issue_date", "due_date"] {
                    assert_eq!(data[field], document[field], "{field} of {document}: {failure}");
                }
            }
        }
    }

    /// Checks that a client that reads everything at the end reads the same.
    pub(crate) fn end(self, database: &Database, client: &Client) {
        assert_eq!(books::feed(database, client, 0), self.read);
    }
}
