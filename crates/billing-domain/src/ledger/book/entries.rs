//! The entries of a book, and how they change it.

use super::*;

impl ContractBook {
    /// Records when the billing run processes the contract next, if that changes.
    pub(in crate::ledger) fn put_due(&mut self, at: Option<Timestamp>) -> Result<(), Refusal> {
        if self.next_due == Some(at) { Ok(()) } else { self.put(Entry::Due(at)) }
    }

    /// Records that the billing run processes the contract at an instant, unless it runs earlier.
    pub(in crate::ledger) fn bring_due_forward(&mut self, at: Timestamp) -> Result<(), Refusal> {
        let is_before = self.next_due.flatten().is_some_and(|due| due <= at);
        if is_before { Ok(()) } else { self.put_due(Some(at)) }
    }

    /// Applies an entry and records it for saving.
    pub(in crate::ledger) fn put(&mut self, entry: Entry) -> Result<(), Refusal> {
        self.apply(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each entry")]
    fn apply(&mut self, entry: &Entry) -> Result<(), Refusal> {
        match entry {
            Entry::Amended(contract) => {
                self.is_end_moved |= contract.effective_end_date() != self.contract.effective_end_date();
                self.notifications.count += 1;
                self.contract = Arc::new((**contract).clone());
            }
            Entry::Opened { head, family } => {
                let document = BookDocument {
                    head: (**head).clone(),
                    family: *family,
                    status: LifecycleStatus::Draft,
                    total: None,
                    issue_date: None,
                    due_date: None,
                    settlement: Settlement::none(head.currency),
                    updated_at: head.created_at,
                    notifications: 1,
                };
                self.note_places(head, LifecycleStatus::Draft);
                self.order.push(head.document_ref);
                self.documents.insert(head.document_ref, document);
            }
            Entry::Redrawn(head) => {
                self.places.retain(|_, other| *other != head.document_ref);
                self.note_places(head, LifecycleStatus::Draft);
                self.change(head.document_ref, |document| document.head = (**head).clone())?;
            }
            Entry::Lines { document_ref, lines } => {
                self.remove_lines(*document_ref)?;
                self.add_lines(*document_ref, lines.clone())?;
            }
            Entry::Issued { document_ref, issued, .. } => {
                self.remove_lines(*document_ref)?;
                let (family, kind) = self.change(*document_ref, |document| {
                    document.status = LifecycleStatus::Issued;
                    document.total = Some(issued.content.total);
                    document.issue_date = Some(issued.issue_date);
                    document.due_date = Some(issued.due_date);
                    document.notifications += 1;
                    (document.family, document.head.kind)
                })?;
                self.add_lines(*document_ref, issued.content.ledger_lines())?;
                issued.content.add_to(self.sums.entry(family).or_default(), kind, 1)?;
                self.note_credit(*document_ref, &issued.content, 1)?;
                self.converted_taxes.extend(issued.converted_tax().map(|tax| (*document_ref, tax)));
                self.note_billed(*document_ref);
            }
            Entry::Discarded { document_ref, .. } => {
                self.remove_lines(*document_ref)?;
                self.places.retain(|_, other| other != document_ref);
                self.change(*document_ref, |document| {
                    document.status = LifecycleStatus::Discarded;
                    document.notifications += 1;
                })?;
            }
            Entry::Voided { document_ref, content, .. } => {
                self.billed_on.retain(|_, billing| billing != document_ref);
                self.remove_lines(*document_ref)?;
                self.places.retain(|_, other| other != document_ref);
                let (family, kind) = self.change(*document_ref, |document| {
                    document.status = LifecycleStatus::Void;
                    document.notifications += 1;
                    (document.family, document.head.kind)
                })?;
                content.add_to(self.sums.entry(family).or_default(), kind, -1)?;
                self.note_credit(*document_ref, content, -1)?;
            }
            Entry::EventsMoved { from, to, of } => {
                if self.with_events.contains(from) {
                    self.with_events.insert(*to);
                    if of.is_none() {
                        self.with_events.remove(from);
                    }
                }
            }
            Entry::UsageMoved { key, total, onto } => {
                self.usage.put(key.clone(), *total);
                self.with_events.extend(*onto);
            }
            Entry::Charged { charge, superseded: _ } => self.charges.put((**charge).clone()),
            Entry::Due(at) => self.next_due = Some(*at),
        }
        Ok(())
    }

    /// Replaces the set of documents that carry events.
    pub fn put_events(&mut self, with_events: BTreeSet<DocumentRef>) {
        self.with_events = with_events;
    }

    pub(in crate::ledger) fn note_places(&mut self, head: &DocumentHead, status: LifecycleStatus) {
        if let (Purpose::Regular(kind), false) = (head.purpose, status.is_void()) {
            for no in &head.parts {
                self.places.insert(BillingSlot { product_no: *no, period_start: head.period.start(), kind }, head.document_ref);
            }
        }
    }

    /// Records the service periods that an issued regular document bills.
    pub(in crate::ledger) fn note_billed(&mut self, document_ref: DocumentRef) {
        let is_regular =
            |document: &&BookDocument| document.status.is_issued() && matches!(document.head.purpose, Purpose::Regular(_));
        if self.documents.get(&document_ref).filter(is_regular).is_none() {
            return;
        }
        for line in self.lines.get(&document_ref).into_iter().flatten() {
            let LineKey { product_no, period_start, bill_with, .. } = line.key;
            self.billed_on.entry((product_no, period_start, bill_with)).or_insert(document_ref);
        }
    }

    fn change<T>(&mut self, document_ref: DocumentRef, change: impl FnOnce(&mut BookDocument) -> T) -> Result<T, Refusal> {
        let document = self.documents.get_mut(&document_ref);
        document.map(change).ok_or_else(|| Refusal::Broken(format!("document {document_ref} isn't in the book")))
    }

    /// Removes the lines of a document, whose status must be the one that they were added with.
    fn remove_lines(&mut self, document_ref: DocumentRef) -> Result<(), Refusal> {
        let document = known(&self.documents, document_ref)?;
        for line in self.lines.remove(&document_ref).unwrap_or_default() {
            let status = line_status(Some(document), &line);
            self.documented.remove(document.family, document.head.kind, &line, status)?;
        }
        Ok(())
    }

    /// Adds the lines of a document without lines.
    fn add_lines(&mut self, document_ref: DocumentRef, lines: Vec<LedgerLine>) -> Result<(), Refusal> {
        let document = known(&self.documents, document_ref)?;
        for line in &lines {
            self.documented.add(document.family, document.head.kind, line, line_status(Some(document), line))?;
        }
        if !lines.is_empty() {
            self.lines.insert(document_ref, lines);
        }
        Ok(())
    }
}
