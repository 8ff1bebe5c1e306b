//! Common elements of pages: amounts, dates, states and links.

use billing_api::operation::encoded;
use maud::{Markup, Render, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::frame::ROOT;
use billing_api::dto::party::AddressJson;
use billing_api::json_view::JsonView;
use billing_domain::money::Currency;
use billing_domain::party::legal::Language;

/// Returns the URL of a console page. Path segments are percent-encoded.
pub fn href(parts: &[&str]) -> String {
    let mut href = ROOT.to_owned();
    for part in parts {
        href.push('/');
        href.push_str(&encoded(part));
    }
    href
}

/// Builds a query string.
pub fn query(pairs: &[(&str, &str)]) -> String {
    pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

/// Renders a link to an object's audit events.
pub(crate) fn changes(kind: &str, reference: &str) -> Markup {
    let narrowed = query(&[("object_kind", kind), ("object_ref", reference)]);
    html! { @if !reference.is_empty() { a href=(format!("{}?{narrowed}", href(&["audit"]))) { "Audit log" } } }
}

/// Returns the author of a change in words: a name, or what is known of an author without a name.
pub(crate) fn actor<T>(at: JsonView<'_, T>) -> String {
    author_in(at.any(), "actor")
}

/// Returns the author in a field in words, as [`actor`] does: the name is in the field with `_name`.
pub(crate) fn author_in(at: JsonView<'_>, field: &str) -> String {
    let name = at.at_path(&format!("{field}_name"));
    if name.is_there() { name.to_text() } else { author(&at.at_path(field).to_text()) }
}

/// Returns what is known of an author without a name.
pub(crate) fn author(code: &str) -> String {
    match code.split_once(':').map_or(code, |(kind, _)| kind) {
        "admin" => "An administrator",
        "api_key" => "An API key",
        "command_line" => "The command line",
        "scheduler" => "The scheduler",
        "nobody" => "Somebody without log-in",
        _ => code,
    }
    .to_owned()
}

/// Renders an identifier that only programs need: hidden until it is opened, then with a button that copies it. Without the
/// script, one click selects the identifier.
pub(crate) fn identifier(name: &str, reference: &str) -> Markup {
    html! {
        @if !reference.is_empty() {
            details.identifier {
                summary { (name) }
                code { (reference) }
                " " button.plain type="button" hidden data-copy=(reference) { "Copy" }
            }
        }
    }
}

/// Renders a link, or plain text without a target. The text may be a name.
pub(crate) fn link(href: Option<String>, text: &str) -> Markup {
    html! {
        @match href {
            Some(href) => a href=(href) { (isolated(text)) },
            None => (isolated(text)),
        }
    }
}

/// Renders a text that people wrote. Its direction of writing follows from its letters and does not change the text around it.
pub(crate) fn isolated(text: &str) -> Markup {
    html! { @if text.is_ascii() { (text) } @else { bdi { (text) } } }
}

/// Renders the content of a field that people wrote, as [`isolated`] does.
pub(crate) fn name<T>(at: JsonView<'_, T>) -> Markup {
    isolated(&at.to_text())
}

/// Formats a number with groups of three digits and a Unicode minus.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("\u{2212}", digits));
    if digits.contains(['e', 'E']) {
        return number.to_owned();
    }
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Renders a number with digit groups and the exact value as tooltip.
pub(crate) fn number<T>(at: JsonView<'_, T>) -> Markup {
    let exact = at.to_text();
    html! { @if at.is_there() { data class="number" value=(exact) title=(exact) { (grouped(&exact)) } } }
}

/// Renders an amount of credit in the unit of its entity; nothing without a unit.
pub(crate) fn in_units<T, U>(unit: JsonView<'_, T>, amount: JsonView<'_, U>) -> Markup {
    html! { @if unit.is_there() { span.muted { " (" (number(amount)) " " (name(unit)) ")" } } }
}

/// Returns a unit as it stands beside a quantity. An empty quantity stands for any.
pub fn unit_of(quantity: &str, unit: &str) -> String {
    let quantity = Decimal::from_str_exact(quantity).unwrap_or_default();
    billing_domain::units::unit_of(Language::En, quantity, unit).into_owned()
}

/// Writes an amount with at least the digits of its currency. Prices can have more digits.
pub fn with_digits(amount: &str, currency: &str) -> String {
    let Ok(currency) = Currency::from_code(currency) else { return amount.to_owned() };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let digits = usize::try_from(currency.exponent()).unwrap_or_default();
    if whole.is_empty() || amount.contains(['e', 'E']) || fraction.len() >= digits {
        return amount.to_owned();
    }
    format!("{whole}.{fraction:0<digits$}")
}

/// Writes an amount with its currency, for sentences.
pub fn amount_text(amount: &str, currency: &str) -> String {
    format!("{} {currency}", grouped(&with_digits(amount, currency)))
}

/// Writes a number with the singular or the plural of a noun.
pub fn count_text(count: &str, noun: &str) -> String {
    if count == "1" { format!("1 {noun}") } else { format!("{} {noun}s", grouped(count)) }
}

/// Writes the name of a product with its number in the contract.
pub(crate) fn numbered(name: &str, product_no: &str) -> String {
    format!("{name} (product {product_no})")
}

/// Renders the subject of a notification by its name, with a link to its page.
pub(crate) fn subject(subject: &str, name: &str) -> Markup {
    let (kind, reference) = subject.split_once(':').unwrap_or((subject, ""));
    let part = [
        ("document", "documents"),
        ("contract", "contracts"),
        ("limit", "limits"),
        ("grant", "credit"),
        ("endpoint", "webhooks"),
    ];
    let page = part.into_iter().find(|(of, _)| *of == kind).map(|(_, part)| href(&[part, reference]));
    let shown = match kind {
        _ if name.is_empty() => words(kind),
        // A limit is named by its metric.
        "limit" => words(name),
        _ => name.to_owned(),
    };
    link(page, &shown)
}

/// Renders an amount in a column of its currency.
pub(crate) fn amount_alone(amount: &str, currency: &str) -> Markup {
    html! {
        @if !amount.is_empty() {
            data class="number" value=(amount) title=(format!("{amount} {currency}")) { (grouped(&with_digits(amount, currency))) }
        }
    }
}

/// Renders the text of an amount with its currency.
pub(crate) fn amount_of(amount: &str, currency: &str) -> Markup {
    money(JsonView::<Value>::of(&Value::from(amount)), currency)
}

/// Renders an amount with its currency, or a quantity, which has no currency.
pub(crate) fn money<T>(amount: JsonView<'_, T>, currency: &str) -> Markup {
    if currency.is_empty() {
        return number(amount);
    }
    let exact = amount.to_text();
    html! {
        @if amount.is_there() {
            data class="number" value=(exact) title=(format!("{exact} {currency}")) { (grouped(&with_digits(&exact, currency))) " " span.currency { (currency) } }
        }
    }
}

/// Renders the amounts of a list's header, such as `EUR 5311.62, USD 3.00`.
pub(crate) fn amounts(caption: &str) -> Markup {
    html! {
        @for (place, one) in caption.split(", ").enumerate() {
            @if place > 0 { ", " }
            @if let Some((currency, amount)) = one.split_once(' ') { (amount_of(amount, currency)) } @else { (one) }
        }
    }
}

/// Renders a timestamp to the second in UTC, which [`with_instants`] can replace. The exact value is the tooltip.
pub(crate) fn instant<T>(at: JsonView<'_, T>) -> Markup {
    html! { @if at.is_there() { (instant_of(&at.to_text())) } }
}

/// Renders a timestamp in API format, as [`instant`] does.
pub(crate) fn instant_of(exact: &str) -> Markup {
    let shown = exact.get(..19).map_or(exact.to_owned(), |seconds| format!("{} UTC", seconds.replace('T', " ")));
    html! { time.instant datetime=(exact) title=(exact) { (shown) } }
}

/// Beginning of the markup of [`instant`]. User input cannot contain it, because `<` is escaped.
const INSTANT: &str = "<time class=\"instant\" datetime=\"";

/// Replaces the timestamps of a page. `written` receives each timestamp in API format.
pub fn with_instants(page: &str, written: impl Fn(&str) -> Option<String>) -> String {
    let otherwise = |rest: &str| {
        let (exact, rest) = rest.split_once('"')?;
        let (attributes, rest) = rest.split_once('>')?;
        let (_, rest) = rest.split_once('<')?;
        let text = written(exact)?;
        Some(format!("{exact}\"{attributes}>{}<{rest}", html! { (text) }.into_string()))
    };
    let mut parts = page.split(INSTANT);
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |page, rest| page + INSTANT + &otherwise(rest).unwrap_or_else(|| rest.to_owned()))
}

/// Renders the text of a date.
pub(crate) fn day_of(date: &str) -> Markup {
    html! { time datetime=(date) { (date) } }
}

/// Renders a date.
pub(crate) fn day<T>(at: JsonView<'_, T>) -> Markup {
    html! { @if at.is_there() { time datetime=(at.to_text()) { (at.to_text()) } } }
}

/// API words whose meaning needs other words.
const WORDS: [(&str, &str); 2] = [("OWED", "Amount owed"), ("PREPAID", "Prepaid credit")];

/// Converts an API word such as `PARTIALLY_PAID` to readable text.
pub(crate) fn words(code: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == code) {
        return (*words).to_owned();
    }
    // The API's words have British spelling here, pages have American.
    let mut words = code.replace('_', " ").to_lowercase().replace("cancell", "cancel");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// Renders a state or kind with its color.
pub(crate) fn state<T>(at: JsonView<'_, T>) -> Markup {
    let code = at.to_text();
    html! { @if at.is_there() { span.state data-state=(code) { (words(&code)) } } }
}

/// Renders a list of names and values, and omits empty values.
pub(crate) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, fact) in facts.iter().filter(|(_, fact)| !fact.0.is_empty()) {
                div { dt { (name) } dd { (fact) } }
            }
        }
    }
}

/// Renders a section with a heading.
pub(crate) fn section(title: &(impl Render + ?Sized), body: &Markup) -> Markup {
    html! { section { h2 { (title) } (body) } }
}

/// Renders an address in postal order. As on the printed document, the postal code precedes the city, but follows the state if
/// there is one.
pub(crate) fn address(at: JsonView<'_, AddressJson>) -> Markup {
    let at = at.object();
    let joined = |parts: [String; 2], by: &str| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(by);
    let (zip_code, city, state) = (at.zip_code().to_text(), at.city().to_text(), at.state().to_text());
    let place =
        if state.is_empty() { joined([zip_code, city], " ") } else { joined([city, joined([state, zip_code], " ")], ", ") };
    let country = if at.country().is_there() { at.country().to_text() } else { at.country_code().to_text() };
    let lines = [at.line1().to_text(), at.line2().to_text(), place, country];
    html! {
        @if at.is_there() {
            address { @for line in lines.iter().filter(|line| !line.is_empty()) { (isolated(line)) br; } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_without_losing_a_digit() {
        for (exact, shown) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("1234567.89", "1,234,567.89"),
            ("-1234.000001", "\u{2212}1,234.000001"),
            ("12345678901234.000001", "12,345,678,901,234.000001"),
            ("1e30", "1e30"),
        ] {
            assert_eq!(grouped(exact), shown);
        }
    }

    #[test]
    fn amounts_have_at_least_the_digits_of_their_currency() {
        for (amount, currency, shown) in [
            ("99", "EUR", "99.00 EUR"),
            ("13.5", "EUR", "13.50 EUR"),
            ("0.0005", "EUR", "0.0005 EUR"),
            ("-1234.5", "EUR", "\u{2212}1,234.50 EUR"),
            ("1200", "JPY", "1,200 JPY"),
            ("1.5", "KWD", "1.500 KWD"),
            ("7", "?", "7 ?"),
        ] {
            assert_eq!(amount_text(amount, currency), shown);
        }
        assert!(amount_of("99", "EUR").into_string().contains(">99.00 <span"));
        assert!(amount_alone("", "EUR").into_string().is_empty());
        assert_eq!(amount_of("1200", "").into_string(), "<data class=\"number\" value=\"1200\" title=\"1200\">1,200</data>");
    }

    #[test]
    fn a_number_has_the_singular_or_the_plural() {
        assert_eq!(["0", "1", "1200"].map(|count| count_text(count, "event")), ["0 events", "1 event", "1,200 events"]);
    }

    #[test]
    fn what_stands_in_a_path_can_not_leave_it() {
        assert_eq!(href(&["customers", "a/../b?c#d é"]), "/console/customers/a%2F..%2Fb%3Fc%23d%20%C3%A9");
    }

    #[test]
    fn texts_of_people_do_not_change_the_direction_of_others() {
        assert_eq!(isolated("Acme <b>").0, "Acme &lt;b&gt;");
        assert_eq!(isolated("شركة (1)").0, "<bdi>شركة (1)</bdi>");
        assert_eq!(link(None, "אקמה").0, "<bdi>אקמה</bdi>");
    }

    #[test]
    fn a_subject_is_named_and_leads_to_its_page() {
        for (subject_of, name, expected) in [
            ("document:d", "UB-INV-1", "<a href=\"/console/documents/d\">UB-INV-1</a>"),
            ("limit:l", "QUANTITY", "<a href=\"/console/limits/l\">Quantity</a>"),
            ("limit:l", "", "<a href=\"/console/limits/l\">Limit</a>"),
            ("grant:g", "Welcome", "<a href=\"/console/credit/g\">Welcome</a>"),
            ("else:e", "", "Else"),
        ] {
            assert_eq!(subject(subject_of, name).into_string(), expected);
        }
    }

    #[test]
    fn codes_are_words() {
        assert_eq!(words("PARTIALLY_PAID"), "Partially paid");
        assert_eq!(["CANCELLING", "CANCELLED", "CANCEL"].map(words), ["Canceling", "Canceled", "Cancel"]);
        assert_eq!(["OWED", "PREPAID", "SPEND"].map(words), ["Amount owed", "Prepaid credit", "Spend"]);
        assert_eq!(words(""), "");
    }
}
