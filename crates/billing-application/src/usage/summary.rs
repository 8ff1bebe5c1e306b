//! Summaries of usage by hour, day or month.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use billing_domain::calendar::Timestamp;
use billing_domain::quantity::QuantitySum;
use billing_domain::refs::{CustomerId, CustomerRef, UsageProductRef};
use billing_domain::summary::{Grouping, Summary, SummaryError, SummaryIntervals, SummaryRow};

use super::list::EventQuery;
use crate::book_repository::corrupt;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// The usage of one interval.
#[derive(Clone, Debug)]
pub struct SummaryLine {
    /// The first instant of the interval.
    pub from: Timestamp,
    /// The first instant after the interval.
    pub to: Timestamp,
    /// The usage product, or `None` if the summary is not grouped by product.
    pub usage_product_ref: Option<UsageProductRef>,
    /// The customer, or `None` if the summary is not grouped by customer.
    pub customer_ref: Option<CustomerRef>,
    /// The quantity by the aggregation of each usage product and customer, summed over usage products and customers.
    pub quantity: QuantitySum,
    /// The number of events.
    pub events: u64,
}

/// Summarizes the usage that matches a query, by interval, usage product and customer. Omits intervals without events.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::TooMuch`] if there are more rows than a summary supports.
/// - [`UseCaseError::AmountOutOfRange`] if a sum is too large.
pub fn summarize_usage(
    cx: &mut Cx<'_>,
    query: &EventQuery,
    intervals: SummaryIntervals,
    grouping: Grouping,
) -> UseCaseResult<Vec<SummaryLine>> {
    let Some(filter) = query.resolve(cx.tx, cx.organization)? else { return Ok(Vec::new()) };
    let aggregations = cx.tx.aggregations(cx.organization)?;
    let is_of_one = [filter.customer_id.is_some(), filter.contract_ref.is_some(), filter.document_ref.is_some()].contains(&true);
    let is_counted = |product: &UsageProductRef| filter.usage_product_ref.as_ref().is_none_or(|only| only == product);
    let mut counted = aggregations.iter().filter(|(product, _)| is_counted(product));
    let by_customer = !is_of_one && counted.any(|(_, aggregation)| !aggregation.is_additive());
    let (mut summary, mut refused) = (Summary::new(intervals, grouping, &aggregations), None);
    cx.tx.visit_metered(cx.organization, &filter, by_customer, &mut |metered| match summary.add(metered) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            refused = Some(error);
            ControlFlow::Break(())
        }
    })?;
    if let Some(error) = refused {
        return Err(refusal(error));
    }
    let rows = summary.into_rows().map_err(refusal)?;
    let ids: BTreeSet<CustomerId> = rows.iter().filter_map(|row| row.customer_id).collect();
    let customers = cx.tx.customers_by_ids(cx.organization, &Vec::from_iter(ids))?;
    named(rows, &customers.into_iter().map(|customer| (customer.id, customer.customer_ref)).collect())
}

fn refusal(error: SummaryError) -> UseCaseError {
    match error {
        SummaryError::TooManyRows => UseCaseError::TooMuch {
            code: "too_many_rows",
            detail: format!("{error}: choose a longer interval, fewer groups, or a shorter range from `from` to `to`"),
        },
        SummaryError::OutOfRange(error) => UseCaseError::AmountOutOfRange(error),
    }
}

fn named(rows: Vec<SummaryRow>, names: &HashMap<CustomerId, CustomerRef>) -> UseCaseResult<Vec<SummaryLine>> {
    let line = |row: SummaryRow| {
        let customer_ref = match row.customer_id {
            Some(id) => Some(names.get(&id).cloned().ok_or_else(|| corrupt("usage", &id, "has no customer"))?),
            None => None,
        };
        let SummaryRow { from, to, usage_product_ref, quantity, events, .. } = row;
        Ok(SummaryLine { from, to, usage_product_ref, customer_ref, quantity, events })
    };
    let mut lines: Vec<SummaryLine> = rows.into_iter().map(line).collect::<UseCaseResult<_>>()?;
    lines.sort_by(|a, b| (a.from, &a.usage_product_ref, &a.customer_ref).cmp(&(b.from, &b.usage_product_ref, &b.customer_ref)));
    Ok(lines)
}
