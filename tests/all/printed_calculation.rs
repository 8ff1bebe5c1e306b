//! Recomputes the amounts of a printed document from its text alone, as a reader with a pocket calculator does. It has its own
//! arithmetic, so that it doesn't check the service with the service's code.

/// The digits after the point of an exact number.
const FRACTION: usize = 12;
const ONE: i128 = 10_i128.pow(12);
const CENT: i128 = ONE / 100;

/// A row of a calculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// A factor's exact part of the price.
    Part(i128),
    /// The rounded part of a quantity that applies to some of the days.
    Share(i128),
    /// The billed days of a whole period.
    Days(i128, i128),
    /// The amount that a minimum, a maximum or a minimum fee gives.
    Limit(i128),
    /// The price now, what other documents bill, and the difference.
    Previously(i128, i128, i128),
    /// A row that explains a quantity.
    Quantity,
}

/// Checks that the printed factors of a line give its printed amount. `first` is the row with the name and the amount, `rows` are the
/// rows below it. Rows that aren't part of a calculation, such as the end of a page, are skipped.
///
/// # Panics
/// Panics if the factors give another amount.
pub(crate) fn check(name: &str, first: &str, rows: &[&str]) {
    let explain = |what: &str| format!("{what}: {name}: {first:?} {rows:#?}");
    let columns: Vec<&str> = first[name.len()..].split(' ').filter(|column| !column.is_empty()).collect();
    let amount = columns.last().and_then(|amount| exact(amount)).unwrap_or_else(|| panic!("{}", explain("no amount")));
    let rows: Vec<Row> = rows.iter().filter_map(|row| parse(row).unwrap_or_else(|why| panic!("{}", explain(&why)))).collect();
    let price = if rows.is_empty() {
        match columns.as_slice() {
            [_] => 0,
            // Without usage, a tiered price has no unit price.
            [quantity, ..] if exact(quantity) == Some(0) => 0,
            [quantity, .., unit_price, _] => {
                let factors = exact(quantity).zip(exact(unit_price)).unwrap_or_else(|| panic!("{}", explain("no factors")));
                rounded(product(factors.0, factors.1), 1, 1)
            }
            _ => panic!("{}", explain("a quantity without a price")),
        }
    } else {
        price_of(&rows)
    };
    let previously = rows.iter().find_map(|row| if let Row::Previously(..) = row { Some(*row) } else { None });
    let due = match previously {
        Some(Row::Previously(now, billed, difference)) => {
            assert_eq!((now, difference), (price, now - billed), "{}", explain("a difference"));
            difference
        }
        _ => price,
    };
    assert!(amount == due || amount == -due, "{}", explain("the factors give another amount"));
}

/// Returns the price that the rows give, in whole cents.
fn price_of(rows: &[Row]) -> i128 {
    if let Some(limit) = rows.iter().rev().find_map(|row| if let Row::Limit(amount) = row { Some(*amount) } else { None }) {
        return limit;
    }
    let shares: Vec<i128> =
        rows.iter().filter_map(|row| if let Row::Share(amount) = row { Some(*amount) } else { None }).collect();
    if !shares.is_empty() {
        return shares.iter().sum();
    }
    let parts: i128 = rows.iter().filter_map(|row| if let Row::Part(amount) = row { Some(*amount) } else { None }).sum();
    let days = rows.iter().find_map(|row| if let Row::Days(days, of) = row { Some((*days, *of)) } else { None });
    let (days, of) = days.unwrap_or((1, 1));
    rounded(parts, days, of)
}

/// Parses a row and checks that its own factors give its amount. Returns `None` if it isn't a row of a calculation.
fn parse(row: &str) -> Result<Option<Row>, String> {
    if let Some(rest) = row.strip_prefix("now ") {
        return previously(rest).map(Some).ok_or_else(|| format!("{row:?} is not understood"));
    }
    let Some((what, amount)) = row.rsplit_once(" = ") else {
        if let Some((days, of)) = days(row) {
            return Ok(Some(Row::Days(days, of)));
        }
        // A minimum or maximum that is the amount itself.
        let limit = row.strip_prefix("minimum ").or_else(|| row.strip_prefix("maximum ")).and_then(exact);
        if let Some(limit) = limit {
            return Ok(Some(Row::Limit(limit)));
        }
        return if row.ends_with(" billed") { quantities(row).map(Some) } else { Ok(None) };
    };
    let amount = exact(amount).ok_or_else(|| format!("{row:?} has no amount"))?;
    let differs = |given: i128| Err(format!("{row:?} gives {given}"));
    if let Some(fee) = what.strip_prefix("minimum fee ") {
        // The lines that don't count explain the amount that counts.
        let fee = fee.split_once("; not counted: ").map_or(fee, |(fee, _)| fee);
        let parts: Vec<&str> = fee.split(", ").collect();
        let billed = parts.last().and_then(|last| exact(last.strip_suffix(" billed").or_else(|| last.strip_prefix("counted "))?));
        let given = limit(&parts).zip(billed).map(|(fee, billed)| (fee - billed).max(0));
        return if given == Some(amount) { Ok(Some(Row::Limit(amount))) } else { differs(given.unwrap_or(-1)) };
    }
    if let Some(least) = what.strip_prefix("minimum ").or_else(|| what.strip_prefix("maximum ")) {
        let given = limit(&least.split(", ").collect::<Vec<_>>());
        return if given == Some(amount) { Ok(Some(Row::Limit(amount))) } else { differs(given.unwrap_or(-1)) };
    }
    if what.ends_with(" days") {
        let parts: Vec<&str> = what.split(", ").collect();
        let (Some(factors), Some((days, of))) = (parts.first(), parts.last().and_then(|last| days(last))) else {
            return Err(format!("{row:?} is not understood"));
        };
        if let Some(price) = value(factors).filter(|_| factors.contains(" × ")) {
            // A part is the difference of two rounded sums, so that it can differ by a cent.
            let given = rounded(price, days, of);
            if (given - amount).abs() > CENT {
                return differs(given);
            }
        }
        return Ok(Some(Row::Share(amount)));
    }
    match value(what) {
        Some(given) if given == amount => Ok(Some(Row::Part(amount))),
        Some(given) => differs(given),
        None => Err(format!("{row:?} is not understood")),
    }
}

/// Returns the exact value of `2.9% of 1,000.00 + 12 × 0.30`, `3 × 1,000 at 35.00`, `100 × 0.10 + 5.00` or a number.
fn value(text: &str) -> Option<i128> {
    if let Some((first, second)) = text.split_once(" + ") {
        return Some(value(first)? + value(second)?);
    }
    if let Some((rate, base)) = text.split_once("% of ") {
        return Some(product(exact(rate)?, exact(base)?) / 100);
    }
    if let Some((packages, price)) = text.split_once(" at ") {
        return Some(product(exact(packages.split_once(" × ")?.0)?, exact(price)?));
    }
    match text.split_once(" × ") {
        Some((quantity, price)) => Some(product(exact(quantity)?, exact(price)?)),
        None => exact(text),
    }
}

/// Returns the rounded amount of `50.00` or `50.00, 24 of 30 days`.
fn limit(parts: &[&str]) -> Option<i128> {
    let (days, of) = parts.iter().find_map(|part| days(part)).unwrap_or((1, 1));
    Some(rounded(exact(parts.first()?)?, days, of))
}

/// Parses `24 of 30 days`.
fn days(text: &str) -> Option<(i128, i128)> {
    let (days, of) = text.strip_suffix(" days")?.split_once(" of ")?;
    Some((days.parse().ok()?, of.parse().ok()?))
}

/// Parses `60.00, billed on UB-INV-1: 49.00, on documents not issued yet: -10.00, difference 21.00`, of which the issued documents or
/// the others may be absent.
fn previously(text: &str) -> Option<Row> {
    let (text, difference) = text.rsplit_once(", difference ")?;
    let amount = |part: &str| exact(part.rsplit_once(": ")?.1);
    let (text, unissued) = match text.split_once(", on documents not issued yet") {
        Some((text, unissued)) => (text, amount(unissued)?),
        None => (text, 0),
    };
    let (now, billed) = match text.split_once(", billed ") {
        Some((now, billed)) => (now, amount(billed)?),
        None => (text, 0),
    };
    Some(Row::Previously(exact(now)?, billed + unissued, exact(difference)?))
}

/// Checks `273,677 calls, 10,000 included, 263,677 billed`: what is used or prepaid, less what is included, is billed.
fn quantities(text: &str) -> Result<Row, String> {
    let (mut most, mut included, mut billed) = (0, 0, None);
    for part in text.split(", ") {
        let (number, word) = part.split_once(' ').unwrap_or((part, ""));
        let number = exact(number).ok_or_else(|| format!("{text:?} is not understood"))?;
        match word {
            "included" => included = number,
            "billed" => billed = Some(number),
            _ => most = most.max(number),
        }
    }
    let given = (most - included).max(0);
    if billed == Some(given) { Ok(Row::Quantity) } else { Err(format!("{text:?} gives {given}")) }
}

/// Returns `value × days ÷ of`, rounded to cents, half away from zero.
fn rounded(value: i128, days: i128, of: i128) -> i128 {
    let (numerator, denominator) = (value * days, of * CENT);
    let cents = (2 * numerator.abs() + denominator) / (2 * denominator);
    cents * numerator.signum() * CENT
}

fn product(a: i128, b: i128) -> i128 {
    let exact = a * b;
    assert_eq!(exact % ONE, 0, "a product has at most {FRACTION} digits after the point");
    exact / ONE
}

/// Parses a number of an English document.
fn exact(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let digits = digits.replace(',', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || fraction.len() > FRACTION || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scaled: i128 = format!("{whole}{fraction:0<FRACTION$}").parse().ok()?;
    Some(sign * scaled)
}

#[test]
fn what_the_printed_factors_dont_give_is_found() {
    check("Fee", "Fee 1 49.00 49.00", &[]);
    check("Calls", "Calls 3 calls 0.335 1.01", &[]);
    check("Calls", "Calls 150 calls 17.50", &["100 × 0.10 + 5.00 = 15.00", "50 × 0.05 = 2.50"]);
    check("Calls", "Calls 15 calls 1.00", &["15 calls, 10 included, 5 billed", "5 × 0.20 = 1.00"]);
    check("Seats", "Seats 5 48.00", &["5 × 12.00 = 60.00", "24 of 30 days"]);
    check("Late", "Late 60 calls 11.00", &["60 × 1.00 = 60.00", "now 60.00, billed on UB-INV-1: 49.00, difference 11.00"]);
    let open = "now 60.00, billed on UB-INV-1, UB-INV-2: 49.00, on documents not issued yet: -10.00, difference 21.00";
    check("Open", "Open 60 calls 21.00", &["60 × 1.00 = 60.00", open]);
    let draft = "now 60.00, on documents not issued yet: 10.00, difference 50.00";
    check("Draft", "Draft 60 calls 50.00", &["60 × 1.00 = 60.00", draft]);
    check("Fee", "Fee 11.00", &["minimum fee 100.00, counted 89.00; not counted: Set-up, once 250.00 = 11.00"]);
    check("Least", "Least 2 50.00", &["2 × 12.00 = 24.00", "minimum 50.00"]);
    check("Paid", "Paid 2 40.00", &["2.9% of 1,000.00 + 12 × 0.30 = 32.60", "minimum 50.00, 24 of 30 days = 40.00"]);
    let wrong: [(&str, &str, &[&str]); 6] = [
        ("Fee", "Fee 1 49.00 50.00", &[]),
        ("Fee", "Fee 1 49.00", &[]),
        ("Calls", "Calls 150 calls 17.50", &["100 × 0.10 = 10.00"]),
        ("Calls", "Calls 15 calls 1.00", &["15 calls, 9 included, 5 billed", "5 × 0.20 = 1.00"]),
        ("Calls", "Calls 150 calls 15.00", &["100 × 0.10 = 15.00"]),
        ("Late", "Late 60 calls 11.00", &["60 × 1.00 = 60.00", "now 60.00, billed on UB-INV-1: 48.00, difference 11.00"]),
    ];
    for (name, first, rows) in wrong {
        assert!(std::panic::catch_unwind(|| check(name, first, rows)).is_err(), "{first} {rows:?}");
    }
}
