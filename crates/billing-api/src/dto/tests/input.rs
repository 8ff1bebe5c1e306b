//! Tests of the reader.

use billing_domain::calendar::parse_date;
use billing_domain::violation::{Violation, Violations};
use serde_json::{Map, Value, json};

use super::super::input::{Node, read};
use super::refusals;

#[test]
fn a_body_that_is_no_object_is_one_violation_of_the_whole() {
    for body in [json!(null), json!([]), json!("text"), json!(1), json!(true)] {
        assert_eq!(refusals(read(&body, |_| Some(()))), ["/ wrong_type"], "{body}");
    }
}

#[test]
fn a_body_that_may_be_left_out_is_an_object_where_it_is_there() {
    assert!(super::billing_run(None).is_ok() && super::billing_run(Some(&json!({}))).is_ok());
    for body in [json!(null), json!([]), json!(false)] {
        assert_eq!(refusals(super::billing_run(Some(&body))), ["/ wrong_type"], "{body}");
    }
}

#[test]
fn violations_come_in_the_order_of_the_document_and_missing_fields_last() {
    let body = json!({"c": 1, "list": [{"b": 1, "a": 1}, 5], "x": 1, "a": 1});
    let answer = read(&body, |fields| {
        fields.only_beside(&["a", "c", "list", "missing"], &[]);
        let a = fields.required("a", Node::line);
        let missing = fields.required("missing", Node::line);
        let list = fields.required("list", |node| {
            node.list(9, |node| {
                node.object(|fields| {
                    let a = fields.required("a", Node::line);
                    let b = fields.required("b", Node::line);
                    Some((a?, b?))
                })
            })
        });
        let c = fields.required("c", Node::line);
        Some((a?, missing?, list?, c?))
    });
    let expected = [
        "/c wrong_type",
        "/list/0/b wrong_type",
        "/list/0/a wrong_type",
        "/list/1 wrong_type",
        "/x unknown_field",
        "/a wrong_type",
        "/missing required",
    ];
    assert_eq!(refusals(answer), expected);
}

#[test]
fn an_answer_lists_a_hundred_violations_and_counts_the_others() {
    let body = Value::Object((0..50_000).map(|i| (format!("field {i}"), Value::Null)).collect::<Map<_, _>>());
    let answer = read(&body, |fields| {
        fields.only_beside(&["a"], &[]);
        fields.required("a", Node::line)
    });
    let refused = answer.expect_err("unknown fields");
    assert_eq!((refused.iter().count(), refused.unlisted()), (100, 49_901));
    assert_eq!(refused.iter().last().map(|violation| violation.path.join("/")), Some("field 99".to_owned()));
}

#[test]
fn the_violations_of_a_rule_count_towards_the_limit() {
    let body = json!({"a": 1, "b": 2});
    let answer = read(&body, |fields| {
        let violation = |i: u32| Violation { path: vec![i.to_string()], code: "duplicate", detail: "must differ".to_owned() };
        fields.required("a", Node::line);
        fields.agreed::<()>(Err((0..130).map(violation).collect()));
        fields.required("b", Node::line)
    });
    let refused = answer.expect_err("violations");
    assert_eq!((refused.iter().count(), refused.unlisted()), (100, 32));
}

#[test]
fn values_that_are_read_separately_list_a_thousand_violations_together() {
    let body = json!({"list": vec![json!({"x": 1, "y": 2}); 1_000]});
    let whole = |value: &Value| {
        read(value, |fields| {
            fields.only_beside(&["a"], &[]);
            fields.required("a", Node::line)
        })
    };
    let answer = read(&body, |fields| fields.required("list", |node| node.list(1_000, |node| Some(node.read_separately(whole)))));
    let results = answer.expect("the violations of an element are no violations of the body");
    let refused: Vec<Violations> = results.into_iter().filter_map(Result::err).collect();
    let listed: Vec<usize> = refused.iter().map(|refused| refused.iter().count()).collect();
    assert_eq!((&listed[..333], &listed[333..]), (&[3; 333][..], &[1; 667][..]));
    assert!(refused.iter().all(|refused| refused.iter().count() + refused.unlisted() == 3));
}

#[test]
fn no_detail_repeats_what_was_submitted() {
    let secret = "hunter2-hunter2";
    let body = json!({
        "line": format!("{secret}\u{0}"), "email": secret, "date": secret, "currency": secret, "whole": secret, "time": secret,
        "bool": secret, "object": secret, "list": secret,
    });
    let answer = read(&body, |fields| {
        fields.optional("line", Node::line);
        fields.optional("email", Node::email);
        fields.optional("date", |node| node.parsed(parse_date));
        fields.optional("currency", Node::currency);
        fields.optional("whole", |node| node.whole(1..=2));
        fields.optional("time", Node::timestamp);
        fields.optional("bool", Node::boolean);
        fields.optional("object", |node| node.object(|_| Some(())));
        fields.optional("list", |node| node.list(1, Node::line));
        Some(())
    });
    let refused = answer.expect_err("nine wrong fields");
    assert_eq!(refused.iter().count(), 9);
    assert!(!format!("{refused:?}").contains(secret), "{refused:?}");
}

#[test]
fn every_detail_says_what_would_be_right() {
    let body = json!({"a": "", "b": [1, 2], "c": 1.5, "d": "x"});
    let answer = read(&body, |fields| {
        fields.optional("a", Node::line);
        fields.optional("b", |node| node.list(1, Node::line));
        fields.optional("c", |node| node.whole(0..=720));
        fields.optional("d", Node::email);
        fields.required("e", Node::line)
    });
    let refused = answer.expect_err("five wrong fields");
    let details: Vec<&str> = refused.iter().map(|violation| violation.detail.as_str()).collect();
    let expected = [
        "must not be empty",
        "must have at most 1 elements",
        "must be a whole number from 0 to 720",
        "must be an e-mail address such as billing@example.com",
        "must be given",
    ];
    assert_eq!(details, expected);
}
