//! Charts of the months of a year and of the days of a month. They are small enough for their labels to be readable on a phone.
//! A table beside each chart contains the same data for other readers. SVG elements need explicit closing tags, because none of
//! them is void in HTML.

use maud::{Markup, html};

use crate::chart::Bar;
use crate::figure::{Axis, billionths};

/// Width of one of several charts beside each other, and of a chart that fills a row.
const WIDTH: i128 = 340;
const WIDE: i128 = 740;
const HEIGHT: i128 = 130;
/// Margins for labels.
const LEFT: i128 = 52;
const TOP: i128 = 10;
const RIGHT: i128 = 8;
const BOTTOM: i128 = 24;
/// Line coordinates have a resolution of this many parts per unit.
const PARTS: i128 = 10;
/// The longest month has this many intervals between its days.
const DAYS_BETWEEN: i128 = 30;
/// Days with a label.
const LABELED_DAYS: [i128; 5] = [1, 8, 15, 22, 29];

/// Renders a bar per month, each with a label. Only positive values have a bar. A chart that is alone fills its row.
pub(crate) fn month_bars(bars: &[Bar], is_alone: bool) -> Markup {
    let width = width(is_alone);
    let high = Axis::holding(bars.iter().filter_map(|bar| billionths(&bar.value)).max().unwrap_or_default());
    let count = position(bars.len()).max(1);
    let place = |index: usize| LEFT + width * position(index) / count;
    drawing(
        width,
        &html! {
            (heights(high, width))
            @for (index, bar) in bars.iter().enumerate() {
                @let (from, to) = (place(index), place(index + 1));
                @let length = high.along(billionths(&bar.value).unwrap_or_default(), HEIGHT);
                @if length > 0 {
                    a href=(bar.href) target="_top" tabindex="-1" {
                        title { (bar.caption) }
                        rect.over x=(from) y=(TOP) width=(to - from) height=(HEIGHT) {}
                        rect.bar x=(from + 2) y=(TOP + HEIGHT - length) width=((to - from - 4).max(1)) height=(length) {}
                    }
                }
                text x=((from + to) / 2) y=(TOP + HEIGHT + 17) text-anchor="middle" { (bar.name) }
            }
        },
    )
}

/// Renders two lines over the days of a month: this month up to today, and the month before. Values are in billionths. A chart that
/// is alone fills its row.
pub(crate) fn day_lines(now: &[i128], before: &[i128], is_alone: bool) -> Markup {
    let width = width(is_alone);
    let high = Axis::holding(now.iter().chain(before).copied().max().unwrap_or_default());
    let at = |(index, value): (usize, &i128)| {
        let right = width * PARTS * position(index) / DAYS_BETWEEN;
        (in_parts(LEFT * PARTS + right), in_parts((TOP + HEIGHT) * PARTS - high.along(*value, HEIGHT * PARTS)))
    };
    let line = |values: &[i128]| {
        let points: Vec<String> = values.iter().enumerate().map(at).map(|(x, y)| format!("{x},{y}")).collect();
        points.join(" ")
    };
    drawing(
        width,
        &html! {
            (heights(high, width))
            @for day in LABELED_DAYS {
                text x=(LEFT + width * (day - 1) / DAYS_BETWEEN) y=(TOP + HEIGHT + 17) text-anchor="middle" { (day) }
            }
            polyline.line.before points=(line(before)) {}
            polyline.line points=(line(now)) {}
            @if let Some((x, y)) = now.iter().enumerate().next_back().map(at) { circle.mark cx=(x) cy=(y) r="4" {} }
        },
    )
}

const fn width(is_alone: bool) -> i128 {
    if is_alone { WIDE } else { WIDTH }
}

/// Converts an index. A chart has few elements.
fn position(index: usize) -> i128 {
    i128::try_from(index).unwrap_or_default()
}

/// Formats a coordinate given in parts.
fn in_parts(length: i128) -> String {
    format!("{}.{}", length / PARTS, length % PARTS)
}

/// Renders the labels and grid lines of the vertical axis.
fn heights(axis: Axis, width: i128) -> Markup {
    html! {
        @for mark in axis.marks() {
            @let y = TOP + HEIGHT - axis.along(mark, HEIGHT);
            line.grid x1=(LEFT) y1=(y) x2=(LEFT + width) y2=(y) {}
            text x=(LEFT - 6) y=(y + 4) text-anchor="end" { (axis.written(mark)) }
        }
    }
}

fn drawing(width: i128, inside: &Markup) -> Markup {
    let is_wide = width == WIDE;
    let (width, height) = (LEFT + width + RIGHT, TOP + HEIGHT + BOTTOM);
    html! {
        div.chart.compact.wide[is_wide] {
            // Hidden from assistive technology, because the table has the same data and links.
            svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) aria-hidden="true" { (inside) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::ONE;

    fn bar(value: &str) -> Bar {
        Bar { name: format!("n{value}"), caption: format!("<{value}>"), value: value.to_owned(), href: format!("?v={value}") }
    }

    #[test]
    fn each_month_has_a_label_and_each_positive_amount_a_bar() {
        let svg = month_bars(&["40.00", "0", "-7", "20", "80"].map(bar), false).into_string();
        let of = |rest: &str| rest.split("height=\"").nth(1)?.split('"').next()?.parse().ok();
        let drawn: Vec<i128> = svg.split("<rect class=\"bar\"").skip(1).filter_map(of).collect();
        assert_eq!(drawn, [65, 33, 130], "{svg}");
        for value in ["40.00", "0", "-7", "20", "80"] {
            assert!(svg.contains(&format!(">n{value}</text>")), "{value}: {svg}");
        }
        assert!(svg.contains("href=\"?v=80\"") && svg.contains("&lt;80&gt;") && !svg.contains("?v=-7"), "{svg}");
        assert!(!svg.contains("style="), "the policy lets no style in: {svg}");
        assert_eq!(svg.matches("<rect").count(), svg.matches("</rect>").count(), "{svg}");
        assert!(month_bars(&[], false).into_string().contains("<svg"));
    }

    #[test]
    fn a_chart_that_is_alone_is_twice_as_wide() {
        let svg = month_bars(&["40"].map(bar), true).into_string();
        assert!(svg.contains("class=\"chart compact wide\"") && svg.contains("viewBox=\"0 0 800 164\""), "{svg}");
        assert!(day_lines(&[ONE], &[ONE; 31], true).into_string().contains("792.0,"));
    }

    #[test]
    fn this_month_ends_today_and_the_month_before_is_whole() {
        let before: Vec<i128> = (1..=31).map(|day| day * ONE).collect();
        let svg = day_lines(&[ONE, 40 * ONE], &before, false).into_string();
        // The axis ends at 40.
        assert!(svg.contains("points=\"52.0,136.7 63.3,10.0\""), "{svg}");
        assert!(svg.contains("class=\"line before\"") && svg.contains("392.0,"), "the 31st is at the right end: {svg}");
        assert!(svg.contains("<circle class=\"mark\" cx=\"63.3\" cy=\"10.0\""), "{svg}");
        assert!(day_lines(&[], &[], false).into_string().contains("points=\"\""));
    }
}
