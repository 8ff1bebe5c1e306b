//! The table of a run, in Markdown.

use std::fmt::Write as _;

use crate::figures::{Figures, short};
use crate::rows;
use crate::settings::Settings;
use crate::stage::Kind;
use crate::{Failure, Outcome, process};

const BEGIN: &str = "<!-- make bench: begin -->";
const END: &str = "<!-- make bench: end -->";

/// The target of a figure.
#[derive(Clone, Copy)]
enum Reach {
    AtLeast(f64),
    AtMost(f64),
    /// The value is shown and not compared with a target.
    Nothing,
}

impl Reach {
    fn shown(self, unit: &str) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {}{unit}", bare(least)),
            Self::AtMost(most) => format!("≤ {}{unit}", bare(most)),
            Self::Nothing => "–".to_owned(),
        }
    }

    fn is_met(self, value: f64) -> &'static str {
        match self {
            Self::AtLeast(least) if value >= least => "yes",
            Self::AtMost(most) if value <= most => "yes",
            Self::AtLeast(_) | Self::AtMost(_) => "no",
            Self::Nothing => "–",
        }
    }
}

/// The ratio between the figures of two rows.
struct Ratio {
    row: &'static str,
    base: &'static str,
    /// The only database that has the ratio, or `None` for both databases.
    kind: Option<Kind>,
    reach: Reach,
    unit: &'static str,
}

/// A figure that is not a ratio.
struct Value {
    row: &'static str,
    /// The label in the table, which may differ from the row.
    what: &'static str,
    reach: Reach,
    unit: &'static str,
}

const fn least(row: &'static str, base: &'static str, least: f64) -> Ratio {
    Ratio { row, base, kind: None, reach: Reach::AtLeast(least), unit: "/s" }
}

const fn of_postgres(row: &'static str, base: &'static str, least: f64) -> Ratio {
    Ratio { kind: Some(Kind::Postgres), ..self::least(row, base, least) }
}

const fn told(row: &'static str, base: &'static str) -> Ratio {
    Ratio { reach: Reach::Nothing, ..least(row, base, 0.0) }
}

const RATIOS: [Ratio; 20] = [
    Ratio { kind: Some(Kind::Sqlite), ..least(rows::UNIFORM, rows::CEILING, 0.4) },
    of_postgres(rows::UNIFORM, rows::CEILING, 0.45),
    told(rows::ZIPF, rows::UNIFORM),
    told(rows::HOT, rows::UNIFORM),
    told(rows::KEYED, rows::UNIFORM),
    of_postgres(rows::UNIFORM, rows::SAME_UNIFORM, 4.0),
    of_postgres(rows::HOT, rows::SAME_HOT, 10.0),
    told(rows::UNIFORM, rows::LEAST_UNIFORM),
    told(rows::HOT, rows::LEAST_HOT),
    told(rows::UNIFORM, rows::PLAIN_UNIFORM),
    told(rows::HOT, rows::PLAIN_HOT),
    least(rows::BATCH_OF_ONE, rows::UNIFORM, 1.5),
    least(rows::BATCH_OF_MANY, rows::BATCH_OF_ONE, 0.3),
    least(rows::EDIT, rows::UNIFORM, 0.3),
    least(rows::DELETE, rows::UNIFORM, 0.3),
    least(rows::LATE, rows::UNIFORM, 0.3),
    of_postgres(rows::TWO, rows::UNIFORM, 0.9),
    least(rows::OVERLOAD, rows::UNIFORM, 0.8),
    least(rows::GROWN, rows::NOT_GROWN, 0.8),
    Ratio { row: rows::INVOICE_OF_MANY, base: rows::INVOICE_OF_FEW, kind: None, reach: Reach::AtMost(1.5), unit: " ms" },
];

const VALUES: [Value; 15] = [
    Value { row: rows::HALF_P99, what: "p99 at half the maximum rate, on schedule", reach: Reach::AtMost(10.0), unit: " ms" },
    Value { row: rows::OVERLOAD_MS, what: "3 × the rate: p99 of accepted", reach: Reach::Nothing, unit: " ms" },
    Value { row: rows::OVERLOAD_REFUSED, what: "3 × the rate: refused in a second", reach: Reach::Nothing, unit: "/s" },
    Value { row: rows::OVERLOAD_REFUSED_MS, what: "3 × the rate: p99 of refusals", reach: Reach::Nothing, unit: " ms" },
    Value { row: rows::OVERLOAD_UNANSWERED, what: "3 × the rate: unanswered in a second", reach: Reach::Nothing, unit: "/s" },
    Value { row: rows::OVERLOAD_MB, what: "3 × the rate: memory", reach: Reach::Nothing, unit: " MB" },
    Value { row: rows::OVERLOAD_RECOVERY, what: "3 × the rate: time to an answer in 10 ms", reach: Reach::Nothing, unit: " ms" },
    Value { row: rows::ISSUE, what: "issuing, a document a contract", reach: Reach::AtLeast(1000.0), unit: "/s" },
    Value { row: rows::IDLE_MB, what: "memory idle", reach: Reach::AtMost(20.0), unit: " MB" },
    Value { row: rows::LOAD_MB, what: "memory under single events", reach: Reach::AtMost(128.0), unit: " MB" },
    Value { row: rows::BATCH_MB, what: "memory with batches of 10,000", reach: Reach::AtMost(160.0), unit: " MB" },
    Value { row: rows::START, what: "start to first answer, many events", reach: Reach::AtMost(300.0), unit: " ms" },
    Value { row: rows::PAGE, what: "slowest page of the console, many events", reach: Reach::AtMost(100.0), unit: " ms" },
    Value {
        row: rows::REPORT_MB,
        what: "usage report of many events: memory over idle",
        reach: Reach::AtMost(64.0),
        unit: " MB",
    },
    Value { row: rows::FSYNC, what: rows::FSYNC, reach: Reach::Nothing, unit: "/s" },
];

const KINDS: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

/// Returns the measured ratios that are below half of their target.
pub(crate) fn lost(figures: &Figures) -> Vec<String> {
    let mut lost = Vec::new();
    for ratio in &RATIOS {
        let Reach::AtLeast(least) = ratio.reach else { continue };
        for kind in KINDS.into_iter().filter(|kind| ratio.kind.is_none_or(|only| only == *kind)) {
            let measured = figures.ratio(ratio.row, Some(kind), ratio.base, Some(kind));
            if let Some(measured) = measured.filter(|measured| *measured < least / 2.0) {
                let (row, measured) = (with_kind(ratio.row, Some(kind)), short(measured));
                lost.push(format!("{row}: {measured} × {}, of {least}", ratio.base));
            }
        }
    }
    lost
}

/// Returns all results of a run.
pub(crate) fn markdown(settings: &Settings, figures: &Figures) -> String {
    let now = acceptance::when::now();
    let mut text = format!("`{}`, {now}, {}", settings.command(), process::machine());
    if let Some(fsync) = figures.median(rows::FSYNC, None) {
        let _ = write!(text, ", {} `fdatasync` a second", short(fsync));
    }
    text += ".\n\n| what | against | reach | measured | met |\n|---|---|---|---|---|\n";
    for ratio in &RATIOS {
        for kind in KINDS.into_iter().filter(|kind| ratio.kind.is_none_or(|only| only == *kind)) {
            ratio_line(&mut text, figures, ratio, kind);
        }
    }
    for value in &VALUES {
        for kind in [Some(Kind::Sqlite), Some(Kind::Postgres), None] {
            let Some(median) = figures.median(value.row, kind) else { continue };
            let (unit, met) = (value.unit, value.reach.is_met(median));
            let (what, reach) = (with_kind(value.what, kind), value.reach.shown(unit));
            let _ = writeln!(text, "| {what} | – | {reach} | {}{unit} | {met} |", short(median));
        }
    }
    details(&mut text, settings, figures);
    for note in figures.notes() {
        let _ = write!(text, "\n- {}", note.trim_end().replace('\n', " "));
    }
    text.trim_end().to_owned() + "\n"
}

fn ratio_line(text: &mut String, figures: &Figures, ratio: &Ratio, kind: Kind) {
    let of = Some(kind);
    let Some(found) = figures.ratio(ratio.row, of, ratio.base, of) else { return };
    let [row, base] = [ratio.row, ratio.base].map(|row| figures.median(row, of).map_or_else(String::new, short));
    let (what, unit, reach) = (with_kind(ratio.row, of), ratio.unit, ratio.reach.shown(" ×"));
    let met = ratio.reach.is_met(found);
    let _ = writeln!(text, "| {what} | {} | {reach} | {} × ({row}{unit}, {base}{unit}) | {met} |", ratio.base, short(found));
}

/// Appends the rates behind the ratios, with their latencies and processor time.
fn details(text: &mut String, settings: &Settings, figures: &Figures) {
    let mut details = figures.details().peekable();
    if details.peek().is_none() {
        return;
    }
    let _ = write!(
        text,
        "\nRounds of {} s, {} of each, all in one run by turns: medians. Processor time is in seconds for a million events. The \
         last column is how many processors others kept busy meanwhile, the kernel's own work among them.\n\n\
         | load | in a second, least–most | p50, ms | p99, ms | server | PostgreSQL | load generator | not wanted | others |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        settings.seconds, settings.rounds
    );
    for detail in details {
        let [median, least, most] = detail.rate.map(short);
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
        let (half, most_of) = detail.latency.unzip();
        let (half, most_of) = (or_dash(half), or_dash(most_of));
        let cpu = [0, 1, 2].map(|who| or_dash(detail.cpu.map(|cpu| cpu[who]).filter(|seconds| *seconds > 0.0)));
        let [server, database, generator] = cpu;
        let (what, others) = (with_kind(detail.row, detail.kind), or_dash(detail.others));
        let _ = writeln!(
            text,
            "| {what} | {median}, {least}–{most} | {half} | {most_of} | {server} | {database} | {generator} | {} | {others} |",
            detail.refused
        );
    }
}

fn with_kind(what: &str, kind: Option<Kind>) -> String {
    kind.map_or_else(|| what.to_owned(), |kind| format!("{what}, {}", kind.name()))
}

/// Formats the number of a target with no more digits than necessary.
fn bare(value: f64) -> String {
    format!("{value}")
}

/// Replaces the previous table of a page.
///
/// # Errors
/// Fails if the page does not have the lines that enclose the table.
pub(crate) fn put_in(page: &str, table: &str) -> Outcome<String> {
    let places = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = places.ok_or_else(|| Failure::new(format!("the page has no lines {BEGIN} and {END}")))?;
    Ok(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    #[test]
    fn a_goal_is_met_or_not_by_the_median_of_the_rounds() {
        let mut figures = Figures::default();
        for (single, ceiling) in [(300.0, 1000.0), (500.0, 1000.0), (600.0, 1000.0)] {
            figures.add(rows::UNIFORM, Some(Kind::Sqlite), Figure::of(single));
            figures.add(rows::CEILING, Some(Kind::Sqlite), Figure::of(ceiling));
        }
        let mut text = String::new();
        ratio_line(&mut text, &figures, &RATIOS[0], Kind::Sqlite);
        let expected = format!("| single events, SQLite | {} | ≥ 0.4 × | 0.50 × (500/s, 1,000/s) | yes |\n", rows::CEILING);
        assert_eq!(text, expected);
        assert_eq!(Reach::AtLeast(0.4).is_met(0.39), "no");
        assert_eq!(Reach::AtMost(10.0).is_met(10.1), "no");
    }

    #[test]
    fn a_ratio_is_lost_below_half_of_its_goal() {
        for (single, expected) in
            [(210.0, vec![]), (190.0, vec![format!("single events, SQLite: 0.19 × {}, of 0.4", rows::CEILING)])]
        {
            let mut figures = Figures::default();
            figures.add(rows::UNIFORM, Some(Kind::Sqlite), Figure::of(single));
            figures.add(rows::CEILING, Some(Kind::Sqlite), Figure::of(1000.0));
            assert_eq!(lost(&figures), expected);
        }
    }

    #[test]
    fn a_table_takes_the_place_of_the_last_one() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let put = put_in(&page, "new\n").map_err(|failure| failure.to_string());
        assert_eq!(put, Ok(format!("above\n{BEGIN}\nnew\n{END}\nbelow\n")));
        assert!(put_in("no place", "new").is_err());
    }
}
