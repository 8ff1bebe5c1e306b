//! Charts as server-rendered SVG, without scripts. A table beside each chart contains the same data for other readers.
//! SVG elements need explicit closing tags, because none of them is void in HTML.

use maud::{Markup, html};

use crate::figure::{Axis, billionths};

const WIDTH: i128 = 720;
const HEIGHT: i128 = 200;
/// Margins for labels.
const LEFT: i128 = 64;
const TOP: i128 = 12;
const RIGHT: i128 = 28;
const BOTTOM: i128 = 40;
/// Line coordinates have a resolution of this many parts per unit.
const PARTS: i128 = 10;
/// Maximum number of labels below an axis.
const NAMES: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    /// Label below the bar, if there is room.
    pub(crate) name: String,
    /// Tooltip.
    pub(crate) caption: String,
    /// Height as an exact decimal.
    pub(crate) value: String,
    /// Link target.
    pub(crate) href: String,
}

/// Renders a bar chart. Only positive values have a bar. If the chart is wider than its container, the last bars are
/// visible first.
pub(crate) fn bars(name: &str, bars: &[Bar]) -> Markup {
    let largest = bars.iter().filter_map(|bar| billionths(&bar.value)).max().unwrap_or_default();
    let axis = Axis::holding(largest);
    let count = i128::try_from(bars.len().max(1)).unwrap_or(1);
    let place = |index: usize| LEFT + WIDTH * i128::try_from(index).unwrap_or_default() / count;
    let every = bars.len().div_ceil(NAMES).max(1);
    drawing(
        name,
        "chart latest",
        &html! {
            (heights(axis))
            @for (index, bar) in bars.iter().enumerate() {
                @let (from, to) = (place(index), place(index + 1));
                @let high = axis.along(billionths(&bar.value).unwrap_or_default(), HEIGHT);
                @if high > 0 {
                    // One link contains both rectangles, so that the area above a low bar is clickable.
                    // SVG links ignore the `base` of an enclosing frame, so the target is explicit.
                    a href=(bar.href) target="_top" tabindex="-1" {
                        title { (bar.caption) }
                        rect.over x=(from) y=(TOP) width=(to - from) height=(HEIGHT) {}
                        rect.bar x=(from + 1) y=(TOP + HEIGHT - high) width=((to - from - 2).max(1)) height=(high) {}
                    }
                }
                @if index % every == 0 {
                    text x=((from + to) / 2) y=(TOP + HEIGHT + 18) text-anchor="middle" { (bar.name) }
                }
            }
        },
    )
}

/// A point of a line chart, as exact decimals.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: String,
    pub(crate) y: String,
}

impl Point {
    fn places(&self) -> Option<(i128, i128)> {
        Some((billionths(&self.x)?, billionths(&self.y)?))
    }
}

/// Renders a line through points in order, with an optional marked point.
pub(crate) fn line(name: &str, points: &[Point], marked: Option<&Point>, below: &str, caption: &str) -> Markup {
    let places: Vec<(i128, i128)> = points.iter().chain(marked).filter_map(Point::places).collect();
    let far = Axis::holding(places.iter().map(|(x, _)| *x).max().unwrap_or_default());
    let high = Axis::holding(places.iter().map(|(_, y)| *y).max().unwrap_or_default());
    let at = |(x, y): (i128, i128)| {
        let (right, up) = (far.along(x, WIDTH * PARTS), high.along(y, HEIGHT * PARTS));
        (in_parts(LEFT * PARTS + right), in_parts((TOP + HEIGHT) * PARTS - up))
    };
    let line: Vec<String> = points.iter().filter_map(Point::places).map(at).map(|(x, y)| format!("{x},{y}")).collect();
    drawing(
        name,
        "chart",
        &html! {
            (heights(high))
            @for mark in far.marks() {
                text x=(LEFT + far.along(mark, WIDTH)) y=(TOP + HEIGHT + 18) text-anchor="middle" { (far.written(mark)) }
            }
            text x=(LEFT + WIDTH) y=(TOP + HEIGHT + 36) text-anchor="end" { (below) }
            polyline.line points=(line.join(" ")) {}
            @if let Some((x, y)) = marked.and_then(Point::places).map(at) {
                circle.mark cx=(x) cy=(y) r="6" { title { (caption) } }
            }
        },
    )
}

/// Returns the corners of a line that jumps behind each point and is horizontal between the points, as for prices of packages.
pub(crate) fn stepped(points: &[Point]) -> Vec<Point> {
    let corners = points.windows(2).flat_map(|pair| [Point { x: pair[0].x.clone(), y: pair[1].y.clone() }, pair[1].clone()]);
    points.first().cloned().into_iter().chain(corners).collect()
}

/// Formats a coordinate given in parts.
fn in_parts(length: i128) -> String {
    format!("{}.{}", length / PARTS, length % PARTS)
}

/// Renders the labels and grid lines of the vertical axis.
fn heights(axis: Axis) -> Markup {
    html! {
        @for mark in axis.marks() {
            @let y = TOP + HEIGHT - axis.along(mark, HEIGHT);
            line.grid x1=(LEFT) y1=(y) x2=(LEFT + WIDTH) y2=(y) {}
            text x=(LEFT - 8) y=(y + 4) text-anchor="end" { (axis.written(mark)) }
        }
    }
}

fn drawing(name: &str, class: &str, inside: &Markup) -> Markup {
    let (width, height) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    html! {
        div class=(format!("scrolls {class}")) tabindex="0" role="region" aria-label=(name) {
            // Hidden from assistive technology, because the table has the same data and links.
            svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) aria-hidden="true" { (inside) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: &str) -> Bar {
        Bar { name: format!("n{value}"), caption: format!("<{value}>"), value: value.to_owned(), href: format!("?v={value}") }
    }

    /// Returns the heights of the drawn bars in order.
    fn drawn(svg: &str) -> Vec<i128> {
        let of = |rest: &str| rest.split("height=\"").nth(1)?.split('"').next()?.parse().ok();
        svg.split("<rect class=\"bar\"").skip(1).map(|rest| of(rest).expect("a height")).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_numbers_and_lead_where_they_say() {
        let svg = bars("Usage", &["40", "0", "20", "80", "0.0001"].map(bar)).into_string();
        assert_eq!(drawn(&svg), [100, 50, 200, 1], "{svg}");
        for value in ["40", "20", "80"] {
            assert!(svg.contains(&format!("href=\"?v={value}\"")) && svg.contains(&format!("&lt;{value}&gt;")), "{svg}");
        }
        assert!(!svg.contains("?v=0\""), "nothing leads to nothing: {svg}");
        assert!(!svg.contains("style="), "the policy lets no style in: {svg}");
        assert_eq!(svg.matches("<rect").count(), svg.matches("</rect>").count(), "an open one would swallow the others: {svg}");
    }

    #[test]
    fn as_many_bars_as_there_are_stay_within_the_drawing() {
        for count in [0, 1, 7, 93, 700] {
            let svg = bars("Usage", &vec![bar("4"); count]).into_string();
            assert_eq!(drawn(&svg), vec![200; count]);
            let names = svg.matches(">n4<").count();
            assert!(names <= NAMES && (names > 0) == (count > 0), "{count}: {names}");
        }
    }

    #[test]
    fn a_line_goes_through_its_points_and_marks_one() {
        let point = |x: &str, y: &str| Point { x: x.to_owned(), y: y.to_owned() };
        let marked = point("1500", "60.00");
        let points = [point("0", "0.00"), point("1000", "55.00"), point("2000", "65.00")];
        let svg = line("Price", &points, Some(&marked), "calls", "at 1,500 → 60.00").into_string();
        // The axes end at 2,000 and 80.
        assert!(svg.contains("points=\"64.0,212.0 424.0,74.5 784.0,49.5\""), "{svg}");
        assert!(svg.contains("<circle class=\"mark\" cx=\"604.0\" cy=\"62.0\""), "{svg}");
        assert!(svg.contains("at 1,500 → 60.00"), "{svg}");
    }
}
