//! The audit log.

use billing_domain::access::RequestId;
use billing_domain::audit::{AuditAction, AuditActor, AuditEntry, AuditedKind};
use billing_domain::ports::{Access, AuditFilter, AuditPart, IdSource as _, Store, StoreError, transact};
use billing_domain::refs::{AdminRef, ApiKeyRef, AuditRef, OrganizationId};

use super::{done, later, read, world, write};
use crate::{FreshIds, fixtures};

const ALL: AuditPart = AuditPart { after: None, skip: 0, limit: 1000 };

/// Creates an audit event at a time offset in seconds.
fn entry(seconds: i64) -> AuditEntry {
    AuditEntry {
        audit_ref: AuditRef::from_uuid(FreshIds.new_id()),
        at: later(seconds),
        author: AuditActor::CommandLine,
        action: AuditAction::Edit,
        kind: AuditedKind::Customer,
        reference: "acme".to_owned(),
        before: Some(r#"{"name":"Acme"}"#.to_owned()),
        after: Some(r#"{"name":"Acme Ltd"}"#.to_owned()),
        request_id: None,
    }
}

fn append(store: &dyn Store, organization: OrganizationId, entries: &[&AuditEntry]) {
    write(store, |tx| entries.iter().try_for_each(|entry| tx.append_audit_entry(organization, None, entry)));
}

fn found(store: &dyn Store, organization: OrganizationId, filter: &AuditFilter) -> Vec<AuditEntry> {
    let found = read(store, |tx| tx.audit_entries(organization, filter, ALL));
    assert_eq!(read(store, |tx| tx.count_audit_entries(organization, filter)), found.len() as u64);
    found
}

pub fn an_entry_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let plain = AuditEntry { before: None, after: None, ..entry(1) };
    let full = AuditEntry {
        author: AuditActor::Admin(AdminRef::from_uuid(FreshIds.new_id())),
        kind: AuditedKind::UsageFile,
        reference: "a file, of 2026.csv".to_owned(),
        // The original text is preserved, including digits and spaces.
        before: Some(r#"{ "b" : 1.50, "a": "ä\u0000"}"#.to_owned()),
        request_id: RequestId::parse("their/request=7"),
        ..entry(2)
    };
    append(store, w.org, &[&plain, &full]);
    assert_eq!(found(store, w.org, &AuditFilter::default()), [full, plain]);
}

pub fn entries_come_newest_first_in_parts(store: &dyn Store) {
    let w = world(store);
    let (first, mut same_time, last) = (entry(1), [entry(5), entry(5), entry(5)], entry(9));
    append(store, w.org, &[&same_time[1], &last, &same_time[0], &first, &same_time[2]]);
    same_time.sort_by_key(|entry| std::cmp::Reverse(entry.audit_ref));
    let [a, b, c] = same_time;
    let all = [last, a, b, c, first];
    let part = |part: AuditPart| read(store, |tx| tx.audit_entries(w.org, &AuditFilter::default(), part));
    assert_eq!(part(ALL), all);
    assert_eq!(part(AuditPart { limit: 2, ..ALL }), all[..2]);
    assert_eq!(part(AuditPart { skip: 3, limit: 2, ..ALL }), all[3..]);
    for (place, entry) in all.iter().enumerate() {
        let after = Some(entry.position());
        assert_eq!(part(AuditPart { after, ..ALL }), all[place + 1..], "after {place}");
        assert_eq!(part(AuditPart { after, limit: 1, ..ALL }), all[place + 1..(place + 2).min(5).max(place + 1)]);
    }
    assert_eq!(part(AuditPart { skip: 9, ..ALL }), []);
}

pub fn each_field_of_a_filter_narrows_the_entries(store: &dyn Store) {
    let w = world(store);
    let key = AuditActor::ApiKey(ApiKeyRef::from_uuid(FreshIds.new_id()));
    let plain = entry(1);
    let other = AuditEntry {
        author: key,
        action: AuditAction::Delete,
        kind: AuditedKind::ApiKey,
        reference: "acme:2".to_owned(),
        request_id: RequestId::parse("r-1"),
        ..entry(2)
    };
    let third = AuditEntry { kind: AuditedKind::Entity, request_id: RequestId::parse("r-2"), ..entry(3) };
    append(store, w.org, &[&plain, &other, &third]);
    let none = AuditFilter::default;
    for (filter, expected) in [
        (AuditFilter { author: Some(key), ..none() }, vec![&other]),
        (AuditFilter { author: Some(AuditActor::CommandLine), ..none() }, vec![&third, &plain]),
        (AuditFilter { author: Some(AuditActor::Nobody), ..none() }, vec![]),
        (AuditFilter { action: Some(AuditAction::Delete), ..none() }, vec![&other]),
        (AuditFilter { kind: Some(AuditedKind::ApiKey), ..none() }, vec![&other]),
        (AuditFilter { kind: Some(AuditedKind::Customer), ..none() }, vec![&plain]),
        // A reference matches objects of any kind, or of one kind with a kind filter. It is never a prefix match.
        (AuditFilter { reference: Some("acme".to_owned()), ..none() }, vec![&third, &plain]),
        (AuditFilter { kind: Some(AuditedKind::Entity), reference: Some("acme".to_owned()), ..none() }, vec![&third]),
        (AuditFilter { kind: Some(AuditedKind::Contract), reference: Some("acme".to_owned()), ..none() }, vec![]),
        (AuditFilter { reference: Some("%".to_owned()), ..none() }, vec![]),
        (AuditFilter { from: Some(later(2)), ..none() }, vec![&third, &other]),
        (AuditFilter { to: Some(later(2)), ..none() }, vec![&plain]),
        (AuditFilter { from: Some(later(2)), to: Some(later(3)), ..none() }, vec![&other]),
        (AuditFilter { request_id: RequestId::parse("r-2"), ..none() }, vec![&third]),
        (AuditFilter { request_id: RequestId::parse("r"), ..none() }, vec![]),
        (AuditFilter { without_access: true, ..none() }, vec![&third, &plain]),
        (AuditFilter { author: Some(AuditActor::CommandLine), from: Some(later(2)), ..none() }, vec![&third]),
    ] {
        let expected: Vec<AuditEntry> = expected.into_iter().cloned().collect();
        assert_eq!(found(store, w.org, &filter), expected, "{filter:?}");
    }
}

pub fn another_organization_has_entries_of_its_own(store: &dyn Store) {
    let w = world(store);
    let stranger = fixtures::organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&stranger)));
    let (own, others) = (entry(1), entry(1));
    append(store, w.org, &[&own]);
    append(store, stranger.id, &[&others]);
    assert_eq!(found(store, w.org, &AuditFilter::default()), [own]);
    assert_eq!(found(store, stranger.id, &AuditFilter::default()), [others]);
}

pub fn an_entry_that_is_undone_is_not_there(store: &dyn Store) {
    let w = world(store);
    let undone = transact::<(), StoreError>(store, Access::Write, |tx| {
        tx.append_audit_entry(w.org, None, &entry(1))?;
        Err(StoreError::Contended)
    });
    assert!(undone.is_err());
    assert_eq!(found(store, w.org, &AuditFilter::default()), []);
}
