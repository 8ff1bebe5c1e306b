//! The customers of the statement that is being written, for its subqueries on a [distributed](crate::distribute) database.
//!
//! Such a database sends a statement to all shards unless each subquery names its customers by constants. Subqueries in lists of
//! columns ([`nested_rows`](crate::nested_rows)) are types without values, so the statement's customers are kept here while diesel
//! writes the statement, which happens on the calling thread.

use std::cell::RefCell;
use std::fmt::Write as _;

use uuid::Uuid;

thread_local! {
    /// The condition after the column, such as ` = ANY('{…}')`. Empty if no customers are named.
    static CONDITION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Names customers until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct NamedCustomers {
    before: Option<String>,
}

/// Names the customers of the next statements, if the database is distributed.
pub(crate) fn name_customers(is_spread: bool, customers: impl IntoIterator<Item = Uuid>) -> NamedCustomers {
    if !is_spread {
        return NamedCustomers { before: None };
    }
    let mut condition = " = ANY('{".to_owned();
    for (place, customer) in customers.into_iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        // Writing to a text never fails.
        let _ = write!(condition, "{comma}{customer}");
    }
    condition.push_str("}'::uuid[])");
    NamedCustomers { before: Some(CONDITION.replace(condition)) }
}

impl Drop for NamedCustomers {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            CONDITION.set(before);
        }
    }
}

/// Calls `push` with the condition on the customers of a table, if customers are named.
pub(crate) fn with_condition(table: &str, push: &mut dyn FnMut(&str)) {
    CONDITION.with_borrow(|condition| {
        if !condition.is_empty() {
            for part in [" AND ", table, ".customer_id", condition] {
                push(part);
            }
        }
    });
}

/// Returns whether customers are named. The text of the statement then depends on them.
pub(crate) fn is_naming() -> bool {
    CONDITION.with_borrow(|condition| !condition.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition() -> String {
        let mut text = String::new();
        with_condition("t", &mut |part| text.push_str(part));
        text
    }

    #[test]
    fn customers_are_named_in_their_scope_on_a_distributed_database() {
        let one = Uuid::from_u128(1);
        assert_eq!(condition(), "");
        let plain = name_customers(false, [one]);
        assert!(!is_naming());
        drop(plain);
        let outer = name_customers(true, [one]);
        let named = " AND t.customer_id = ANY('{00000000-0000-0000-0000-000000000001}'::uuid[])";
        assert_eq!(condition(), named);
        drop(name_customers(true, [Uuid::nil(), one]));
        assert_eq!(condition(), named);
        drop(outer);
        assert_eq!(condition(), "");
    }
}
