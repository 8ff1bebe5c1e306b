//! Violations of the invariants of an account.

use super::*;

/// Returns the inconsistencies of a fully loaded account, one sentence each. `written_off` is the sum of its write-offs. Checks
/// for negative amounts, stored sums that differ from the applications, and the equation of billing rules 9.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] when an amount is out of range.
#[expect(clippy::too_many_lines, reason = "one check after the other, each of a few lines")]
pub fn check_account(account: &ReceivablesAccount, written_off: impl Into<MoneySum>) -> Result<Vec<String>, Refusal> {
    let written_off = written_off.into();
    let mut found = Vec::new();
    let mut to: BTreeMap<(DocumentRef, bool), i128> = BTreeMap::new();
    let mut from: BTreeMap<ApplicationSource, i128> = BTreeMap::new();
    for application in account.applications() {
        let amount = i128::from(application.amount.minor());
        if amount <= 0 {
            found.push(format!("application {}: it is of {amount}", application.application_ref));
        }
        *to.entry((application.to, matches!(application.from, ApplicationSource::Payment(_)))).or_default() += amount;
        *from.entry(application.from).or_default() += amount;
    }
    let (mut billed, mut moved, mut owed, mut given_up) = (0_i128, 0_i128, 0_i128, 0_i128);
    let mut unapplied = 0_i128;
    for payment in account.payments().filter(|payment| payment.reversal.is_none()) {
        match payment.kind {
            PaymentKind::Payment => {
                moved -= i128::from(payment.amount.minor());
                unapplied += i128::from(payment.unapplied()?.minor());
            }
            PaymentKind::Refund(source) => {
                moved += i128::from(payment.amount.minor());
                *from.entry(source).or_default() += i128::from(payment.amount.minor());
            }
        }
    }
    for payment in account.payments().filter(|payment| payment.kind == PaymentKind::Payment) {
        let used = from.remove(&ApplicationSource::Payment(payment.payment_ref)).unwrap_or(0);
        let allowed = if payment.reversal.is_none() { i128::from(payment.amount.minor()) } else { 0 };
        if used != i128::from(payment.used.minor()) || used < 0 || used > allowed {
            let noted = payment.used.minor();
            found
                .push(format!("payment {}: {used} of {allowed} are applied or refunded, {noted} are noted", payment.payment_ref));
        }
    }
    for document in account.documents() {
        let number = &document.head.number;
        let document_ref = document.head.document_ref;
        let Some(total) = document.total.filter(|_| document.status.is_issued()) else { continue };
        let settlement = &document.settlement;
        let is_credit = document.head.kind == DocumentKind::Credit;
        billed += i128::from(total.minor()) * if is_credit { -1 } else { 1 };
        let paid = to.remove(&(document_ref, true)).unwrap_or(0);
        let credits = to.remove(&(document_ref, false)).unwrap_or(0);
        let used = from.remove(&ApplicationSource::Credit(document_ref)).unwrap_or(0);
        let noted = [settlement.paid, settlement.credits, settlement.used].map(|amount| i128::from(amount.minor()));
        if noted != [paid, credits, used] {
            found.push(format!(
                "{number}: payments, credits and uses of {noted:?} are noted, {:?} are there",
                [paid, credits, used]
            ));
        }
        let of = document.owed()?;
        let amounts = [of.amount_due.unwrap_or(account.zero()), of.written_off, of.unapplied.unwrap_or(account.zero())];
        if amounts.iter().any(|amount| amount.minor() < 0) {
            found.push(format!("{number}: an amount below zero is owed by it: {amounts:?}"));
        }
        owed += i128::from(amounts[0].minor());
        given_up += i128::from(amounts[1].minor());
        unapplied += i128::from(amounts[2].minor());
        let is_settled = !is_credit && settlement.rest(total)?.minor() == 0;
        if settlement.paid_date.is_some() != is_settled {
            found.push(format!("{number}: its paid date is {:?}", settlement.paid_date));
        }
    }
    if let Some(((document_ref, _), minor)) = to.first_key_value() {
        found.push(format!("{minor} are applied to {document_ref}, which isn't owed"));
    }
    if let Some((source, minor)) = from.first_key_value() {
        found.push(format!("{minor} are used of {source:?}, which isn't there"));
    }
    if unapplied != account.unapplied.minor() {
        found.push(format!("{unapplied} are unapplied, {} are noted", account.unapplied.minor()));
    }
    if given_up != written_off.minor() {
        found.push(format!("{given_up} are written off, {} are noted", written_off.minor()));
    }
    if billed + moved != owed + given_up - unapplied {
        found.push(format!("billed {billed} and moved {moved}, but owed {owed}, given up {given_up}, unapplied {unapplied}"));
    }
    Ok(found)
}
