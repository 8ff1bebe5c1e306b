//! Usage formats and their versions.

use billing_domain::access::Actor;
use billing_domain::format::{FieldPath, FormatMapping, FormatVersion, Naming, ReportMapping};
use billing_domain::ports::{Insertion, Store, StoreError, Update};
use billing_domain::refs::AdminRef;
use uuid::Uuid;

use super::{done, later, read, transact_answer, undo, updated, world, write};
use crate::fixtures::{self, expression, format_ref, line};

fn full_format() -> FormatVersion {
    let mut full = fixtures::format("full:1_2.3-4");
    full.format.name = line("CDN »lines« 100 %");
    full.format.mapping = FormatMapping {
        timestamp: expression("date_time(\n\tevent.\"when\",\r\n\t\"%d/%b/%Y %z\")"),
        customer: Naming::Either { reference: expression("get(event, \"a\")"), name: expression("event.b") },
        usage_product: Naming::Name(expression("\"Größe\" + event.c")),
        quantity: expression(&format!("1{}", " + 0.10".repeat(200))),
        // The columns aren't in alphabetical order.
        report_data: fixtures::columns(&[("z", "event.z"), ("a \"quoted\" \\ key", "1.50"), ("ü", "()")]),
        currency: Some(expression("\"EUR\"")),
        entity_ref: Some(expression("event.entity")),
        idempotency_key: Some(expression("concat(event.id, \"/\", item)")),
        skip_if: Some(expression("item == \"cached\"")),
        for_each: Some(expression("[\"input\", \"cached\"]")),
    };
    full.made_by = Actor::Admin(AdminRef::from_uuid(Uuid::now_v7()));
    full
}

pub fn a_format_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    for format in [full_format(), fixtures::format("least")] {
        write(store, |tx| done(tx.insert_format(w.org, &format)));
        read(store, |tx| {
            let (reference, name) = (&format.format.format_ref, &format.format.name);
            assert_eq!(tx.format(w.org, reference)?, Some(format.clone()));
            assert_eq!(tx.format_by_name(w.org, name)?, Some(format.clone()));
            assert_eq!(tx.format_version(w.org, reference, 1)?, Some(format.clone()));
            assert!(tx.formats(w.org, 0, 1000)?.items.contains(&format));
            Ok(())
        });
    }
}

pub fn every_kind_of_report_mapping_comes_back(store: &dyn Store) {
    let w = world(store);
    let kinds = [
        ReportMapping::None,
        ReportMapping::Rest,
        ReportMapping::Field(FieldPath::of_event("a \"field\" \u{0} of ü")),
        ReportMapping::Field(FieldPath { parents: vec!["a".to_owned(), String::new()], name: "b.c".to_owned() }),
        ReportMapping::PlainRest(FieldPath::of_event("data")),
        fixtures::columns(&[]),
        fixtures::columns(&[("rest", "event.rest")]),
    ];
    for (i, report_data) in kinds.into_iter().enumerate() {
        let mut format = fixtures::format(&format!("kind-{i}"));
        format.format.mapping.report_data = report_data;
        write(store, |tx| done(tx.insert_format(w.org, &format)));
        assert_eq!(read(store, |tx| tx.format(w.org, &format.format.format_ref)), Some(format));
    }
}

pub fn what_is_no_format_is_not_there(store: &dyn Store) {
    let w = world(store);
    write(store, |tx| done(tx.insert_format(w.org, &fixtures::format("one"))));
    read(store, |tx| {
        assert_eq!(tx.format(w.org, &format_ref("other"))?, None);
        assert_eq!(tx.format(w.org, &format_ref("ONE"))?, None, "references differ by case");
        assert_eq!(tx.format_by_name(w.org, &line("One"))?, None, "names differ by case");
        assert_eq!(tx.format_by_name(w.org, &line("on%"))?, None);
        assert_eq!(tx.format_version(w.org, &format_ref("one"), 2)?, None);
        assert_eq!(tx.format_version(w.org, &format_ref("one"), 0)?, None);
        assert_eq!(tx.format_version(w.org, &format_ref("one"), u32::MAX)?, None);
        Ok(())
    });
}

pub fn a_formats_reference_and_name_are_taken_once_without_ending_the_transaction(store: &dyn Store) {
    let w = world(store);
    let one = fixtures::format("one");
    write(store, |tx| {
        done(tx.insert_format(w.org, &one))?;
        let mut same_ref = fixtures::format("one");
        same_ref.format.name = line("another");
        assert_eq!(tx.insert_format(w.org, &same_ref)?, Insertion::Taken("format_ref"));
        let mut same_name = fixtures::format("another");
        same_name.format.name = line("one");
        assert_eq!(tx.insert_format(w.org, &same_name)?, Insertion::Taken("format_name"));
        done(tx.insert_format(w.org, &fixtures::format("ONE")))
    });
    assert_eq!(read(store, |tx| tx.formats(w.org, 0, 1000)).items, [fixtures::format("ONE"), one]);
}

pub fn a_long_name_is_a_name_like_any_other(store: &dyn Store) {
    let w = world(store);
    let mut long = fixtures::format("long");
    long.format.name = line(&"ü".repeat(2048));
    let mut longer = fixtures::format("other");
    longer.format.name = line(&format!("{}x", "ü".repeat(2047)));
    write(store, |tx| {
        done(tx.insert_format(w.org, &long))?;
        done(tx.insert_format(w.org, &longer))
    });
    assert_eq!(read(store, |tx| tx.format_by_name(w.org, &long.format.name)), Some(long));
}

pub fn a_formats_next_version_leaves_those_before_as_they_were(store: &dyn Store) {
    let w = world(store);
    let first = full_format();
    let mut second = fixtures::next_version(&first);
    second.format.name = line("Renamed");
    second.made_by = Actor::Service;
    let third = fixtures::next_version(&second);
    write(store, |tx| {
        done(tx.insert_format(w.org, &first))?;
        updated(tx.append_format_version(w.org, &second))?;
        updated(tx.append_format_version(w.org, &third))
    });
    let reference = &first.format.format_ref;
    read(store, |tx| {
        assert_eq!(tx.format(w.org, reference)?, Some(third.clone()));
        assert_eq!(tx.formats(w.org, 0, 1000)?.items, std::slice::from_ref(&third));
        for version in [&first, &second, &third] {
            assert_eq!(tx.format_version(w.org, reference, version.format.version)?.as_ref(), Some(version));
        }
        assert_eq!(tx.format_by_name(w.org, &line("Renamed"))?, Some(third.clone()));
        assert_eq!(tx.format_by_name(w.org, &first.format.name)?, None, "the name it had is free");
        Ok(())
    });
}

pub fn a_formats_next_version_may_not_have_anothers_name(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (fixtures::format("one"), fixtures::format("other"));
    let mut renamed = fixtures::next_version(&other);
    renamed.format.name = one.format.name.clone();
    write(store, |tx| {
        done(tx.insert_format(w.org, &one))?;
        done(tx.insert_format(w.org, &other))?;
        assert_eq!(tx.append_format_version(w.org, &renamed)?, Update::Taken("format_name"));
        // The transaction continues, and a format's own name is no conflict.
        updated(tx.append_format_version(w.org, &fixtures::next_version(&other)))?;
        assert_eq!(tx.append_format_version(w.org, &fixtures::next_version(&fixtures::format("none")))?, Update::Unknown);
        Ok(())
    });
    let names: Vec<String> =
        read(store, |tx| tx.formats(w.org, 0, 1000)).items.iter().map(|row| row.format.name.to_string()).collect();
    assert_eq!(names, ["one", "other"]);
}

pub fn a_formats_version_that_does_not_follow_is_contended(store: &dyn Store) {
    let w = world(store);
    let first = fixtures::format("one");
    let second = fixtures::next_version(&first);
    write(store, |tx| {
        done(tx.insert_format(w.org, &first))?;
        updated(tx.append_format_version(w.org, &second))
    });
    for wrong in [second.clone(), fixtures::next_version(&fixtures::next_version(&second))] {
        let refused = transact_answer(store, |tx| tx.append_format_version(w.org, &wrong));
        assert!(matches!(refused, Err(StoreError::Contended)), "{refused:?}");
    }
    assert_eq!(read(store, |tx| tx.format(w.org, &first.format.format_ref)), Some(second));
}

pub fn a_formats_version_rolled_back_leaves_the_one_before(store: &dyn Store) {
    let w = world(store);
    let first = fixtures::format("one");
    undo(store, |tx| done(tx.insert_format(w.org, &first)));
    assert_eq!(read(store, |tx| tx.formats(w.org, 0, 1000)).total, 0);
    write(store, |tx| done(tx.insert_format(w.org, &first)));
    undo(store, |tx| updated(tx.append_format_version(w.org, &fixtures::next_version(&first))));
    read(store, |tx| {
        assert_eq!(tx.format(w.org, &first.format.format_ref)?, Some(first.clone()));
        assert_eq!(tx.format_version(w.org, &first.format.format_ref, 2)?, None);
        Ok(())
    });
}

pub fn formats_come_by_creation_then_by_reference_in_any_part(store: &dyn Store) {
    let w = world(store);
    let shuffled = [("b", 5), ("a", 5), ("Z", 5), ("_", 5), ("late", 9), ("old", 1)];
    write(store, |tx| {
        for (reference, seconds) in shuffled {
            let made_at = later(seconds);
            let first = FormatVersion { made_at, ..fixtures::format(reference) };
            done(tx.insert_format(w.org, &first))?;
            // A later version doesn't change the position of the format.
            updated(tx.append_format_version(w.org, &FormatVersion { made_at: later(99), ..fixtures::next_version(&first) }))?;
        }
        Ok(())
    });
    let in_order = ["old", "Z", "_", "a", "b", "late"];
    for (skip, limit) in [(0, 1000), (0, 2), (1, 3), (4, 1000), (5, 0), (6, 5), (u64::MAX, 1)] {
        let page = read(store, |tx| tx.formats(w.org, skip, limit));
        let shown: Vec<&str> = page.items.iter().map(|row| row.format.format_ref.as_str()).collect();
        let (skip, limit) = (usize::try_from(skip).unwrap_or(usize::MAX), usize::try_from(limit).expect("small"));
        let expected: Vec<&str> = in_order.into_iter().skip(skip).take(limit).collect();
        assert_eq!((shown, page.total), (expected, 6), "after {skip}, at most {limit}");
    }
}
