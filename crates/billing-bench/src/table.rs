//! The table of a run, in Markdown.

use std::fmt::Write as _;

use crate::figures::{CPU_COLUMNS, CompareValues, Figures, short};
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

const fn value(row: &'static str, what: &'static str, reach: Reach, unit: &'static str) -> Value {
    Value { row, what, reach, unit }
}

/// Compares processor times of the server and its database with that of the ceiling, which depends on the machine as they do.
const fn micros(row: &'static str, kind: Kind, most: f64) -> Ratio {
    Ratio { row, base: rows::CEILING_MICROS, kind: Some(kind), reach: Reach::AtMost(most), unit: " µs" }
}

const fn reported(row: &'static str, base: &'static str) -> Ratio {
    Ratio { reach: Reach::Nothing, ..least(row, base, 0.0) }
}

const RATIOS: [Ratio; 29] = [
    micros(rows::UNIFORM_MICROS, Kind::Sqlite, 6.0),
    micros(rows::UNIFORM_MICROS, Kind::Postgres, 10.0),
    micros(rows::HOT_MICROS, Kind::Sqlite, 3.5),
    micros(rows::HOT_MICROS, Kind::Postgres, 7.0),
    reported(rows::ZIPF, rows::UNIFORM),
    reported(rows::HOT, rows::UNIFORM),
    least(rows::BY_LABEL, rows::UNIFORM, 0.9),
    of_postgres(rows::BY_LABEL_HOT, rows::HOT, 1.0),
    least(rows::DISTINCT, rows::LARGEST, 0.8),
    least(rows::WATCHED, rows::UNIFORM, 0.7),
    least(rows::WATCHED_HOT, rows::HOT, 0.5),
    least(rows::CREDITED_HOT, rows::HOT, 0.5),
    reported(rows::KEYED, rows::UNIFORM),
    of_postgres(rows::UNIFORM, rows::SAME_UNIFORM, 4.0),
    of_postgres(rows::HOT, rows::SAME_HOT, 10.0),
    of_postgres(rows::UNIFORM, rows::LEAST_UNIFORM, 2.0),
    of_postgres(rows::HOT, rows::LEAST_HOT, 8.0),
    of_postgres(rows::UNIFORM, rows::PLAIN_UNIFORM, 8.0),
    of_postgres(rows::HOT, rows::PLAIN_HOT, 12.0),
    least(rows::BATCH_OF_ONE, rows::UNIFORM, 1.5),
    Ratio { kind: Some(Kind::Sqlite), ..least(rows::BATCH_OF_MANY, rows::BATCH_OF_ONE, 0.5) },
    of_postgres(rows::BATCH_OF_MANY, rows::BATCH_OF_ONE, 0.3),
    least(rows::EDIT, rows::UNIFORM, 0.3),
    least(rows::DELETE, rows::UNIFORM, 0.3),
    least(rows::LATE, rows::UNIFORM, 0.3),
    of_postgres(rows::TWO, rows::UNIFORM, 0.9),
    least(rows::OVERLOAD, rows::UNIFORM, 0.8),
    least(rows::GROWN, rows::NOT_GROWN, 0.8),
    Ratio { row: rows::INVOICE_OF_MANY, base: rows::INVOICE_OF_FEW, kind: None, reach: Reach::AtMost(1.5), unit: " ms" },
];

const VALUES: [Value; 24] = [
    value(rows::HALF_P99, "p99 at half the maximum rate, on schedule", Reach::AtMost(8.0), " ms"),
    value(rows::HALF_PAUSES, "half the rate: pauses of writers above 5 ms, in a round", Reach::Nothing, ""),
    value(rows::HALF_PAUSED_MS, "half the rate: all pauses of writers, in a round", Reach::Nothing, " ms"),
    value(rows::HALF_SLOW, "half the rate: transactions above 10 ms, in a round", Reach::Nothing, ""),
    value(rows::HALF_SLOW_COMMITS, "half the rate: commits above 5 ms, in a round", Reach::Nothing, ""),
    value(rows::OVERLOAD_MS, "3 × the rate: p99 of accepted", Reach::Nothing, " ms"),
    value(rows::OVERLOAD_REFUSED, "3 × the rate: refused in a second", Reach::Nothing, "/s"),
    value(rows::OVERLOAD_REFUSED_MS, "3 × the rate: p99 of refusals", Reach::Nothing, " ms"),
    value(rows::OVERLOAD_UNANSWERED, "3 × the rate: unanswered in a second", Reach::Nothing, "/s"),
    value(rows::OVERLOAD_MB, "3 × the rate: memory", Reach::Nothing, " MB"),
    value(rows::OVERLOAD_RECOVERY, "3 × the rate: time to an answer in 10 ms", Reach::Nothing, " ms"),
    value(rows::ISSUE, "issuing, a document a contract", Reach::AtLeast(1000.0), "/s"),
    value(rows::IDLE_MB, "memory idle", Reach::AtMost(20.0), " MB"),
    value(rows::LOAD_MB, "memory under single events", Reach::AtMost(90.0), " MB"),
    value(rows::BATCH_MB, "memory with batches of 10,000", Reach::AtMost(160.0), " MB"),
    value(rows::START, "start to first answer, many events", Reach::AtMost(300.0), " ms"),
    value(rows::PAGE, "slowest page of the console, many events", Reach::AtMost(100.0), " ms"),
    value(rows::PAGE_KB, "largest page of the console, many events", Reach::AtMost(100.0), " KB"),
    value(rows::EVENT_LIST, "list of events, many events", Reach::AtMost(100.0), " ms"),
    value(rows::EVENTS_BY_TIME, "console's events by their time, many events", Reach::AtMost(100.0), " ms"),
    value(rows::DOCUMENT_LIST, "list of documents, many events", Reach::AtMost(100.0), " ms"),
    value(rows::LONG_DOCUMENT_LIST, "list of 1,000 documents, many events", Reach::Nothing, " ms"),
    value(rows::REPORT_MB, "usage report of many events: memory over idle", Reach::AtMost(64.0), " MB"),
    value(rows::FSYNC, rows::FSYNC, Reach::Nothing, "/s"),
];

const KINDS: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

/// Returns the measured ratios that are below half of their target.
pub(crate) fn lost(figures: &Figures) -> Vec<String> {
    let mut lost = Vec::new();
    for ratio in &RATIOS {
        let Reach::AtLeast(least) = ratio.reach else { continue };
        for kind in KINDS.into_iter().filter(|kind| ratio.kind.is_none_or(|only| only == *kind)) {
            let measured = figures.ratio(ratio.row, ratio.base, Some(kind));
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
    let Some(found) = figures.ratio(ratio.row, ratio.base, of) else { return };
    let shown = |row, kind| figures.median(row, kind).map_or_else(String::new, short);
    let (row, base) = (shown(ratio.row, of), shown(ratio.base, figures.kind_of_base(ratio.base, of)));
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
        "\nRounds of {} s, {} of each, all in one run by turns: medians. Processor time is in microseconds per event, or per \
         document; the server's is the sum of its threads. The last column is how many processors others kept busy meanwhile, \
         the kernel's own work among them.\n\n\
         | load | in a second, least–most | p50, ms | p99, ms | {} | not wanted | others |\n\
         |---|---|---|---|{}---|---|\n",
        settings.seconds,
        settings.rounds,
        CPU_COLUMNS.join(" | "),
        "---|".repeat(CPU_COLUMNS.len())
    );
    for detail in details {
        let [median, least, most] = detail.rate.map(short);
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
        let (half, most_of) = detail.latency.unzip();
        let (half, most_of) = (or_dash(half), or_dash(most_of));
        let micros = detail.cpu.unwrap_or_default().map(|micros| or_dash(Some(micros).filter(|micros| *micros > 0.0)));
        let cpu = micros.join(" | ");
        let (what, others) = (with_kind(detail.row, detail.kind), or_dash(detail.others));
        let _ =
            writeln!(text, "| {what} | {median}, {least}–{most} | {half} | {most_of} | {cpu} | {} | {others} |", detail.refused);
    }
}

/// Returns the table that compares two builds, measured by turns in one run.
pub(crate) fn comparison(before: &Figures, after: &Figures) -> String {
    let mut text = "\nBoth builds by turns: medians, and the median of the ratios of the rounds.\n\n\
                    | what | before | after | after / before |\n|---|---|---|---|\n"
        .to_owned();
    for compared in after.compared(before) {
        // The line of the load itself also shows its processor time.
        if [rows::UNIFORM_MICROS, rows::HOT_MICROS].contains(&compared.row) {
            continue;
        }
        let what = with_kind(compared.row, compared.kind);
        let lines = [("", Some(compared.values)), (": p99, ms", compared.p99), (": processor time, µs", compared.micros)];
        for (of, values) in lines {
            let Some(CompareValues { before, after, ratio }) = values else { continue };
            let _ = writeln!(text, "| {what}{of} | {} | {} | {} |", short(before), short(after), short(ratio));
        }
    }
    text
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

    fn settings() -> Settings {
        Settings {
            rounds: 1,
            seconds: 1.0,
            kinds: vec![Kind::Sqlite, Kind::Postgres],
            rows: vec!["single".to_owned()],
            connections: 1,
            contracts: 1,
            events: 1,
            growth: 1,
            endpoints: 0,
            base: None,
        }
    }

    fn figures_of(row: &'static str, rounds: &[f64]) -> Figures {
        let mut figures = Figures::default();
        for value in rounds {
            figures.add(row, Some(Kind::Sqlite), Figure::of(*value));
        }
        figures
    }

    #[test]
    fn a_goal_is_met_or_not_by_the_median_of_the_rounds() {
        let mut figures = figures_of(rows::EDIT, &[300.0, 500.0, 600.0]);
        for _ in 0..3 {
            figures.add(rows::UNIFORM, Some(Kind::Sqlite), Figure::of(1000.0));
        }
        let mut text = String::new();
        ratio_line(&mut text, &figures, &least(rows::EDIT, rows::UNIFORM, 0.4), Kind::Sqlite);
        assert_eq!(text, "| edits of events, SQLite | single events | ≥ 0.4 × | 0.50 × (500/s, 1,000/s) | yes |\n");
        assert_eq!(Reach::AtLeast(0.4).is_met(0.39), "no");
        assert_eq!(Reach::AtMost(10.0).is_met(10.1), "no");
    }

    #[test]
    fn the_ceiling_has_no_database() {
        let mut figures = figures_of(rows::UNIFORM_MICROS, &[100.0]);
        figures.add(rows::CEILING_MICROS, None, Figure::of(20.0));
        let mut text = String::new();
        ratio_line(&mut text, &figures, &RATIOS[0], Kind::Sqlite);
        let (row, base) = (rows::UNIFORM_MICROS, rows::CEILING_MICROS);
        assert_eq!(text, format!("| {row}, SQLite | {base} | ≤ 6 × | 5.00 × (100 µs, 20.0 µs) | yes |\n"));
        assert!(lost(&figures).is_empty());
    }

    #[test]
    fn a_ratio_is_lost_below_half_of_its_goal() {
        for (edits, expected) in
            [(160.0, vec![]), (140.0, vec!["edits of events, SQLite: 0.14 × single events, of 0.3".to_owned()])]
        {
            let mut figures = figures_of(rows::EDIT, &[edits]);
            figures.add(rows::UNIFORM, Some(Kind::Sqlite), Figure::of(1000.0));
            assert_eq!(lost(&figures), expected);
        }
    }

    #[test]
    fn each_database_has_its_own_goal_of_processor_time() {
        let mut figures = figures_of(rows::UNIFORM_MICROS, &[100.0]);
        figures.add(rows::UNIFORM_MICROS, Some(Kind::Postgres), Figure::of(100.0));
        figures.add(rows::CEILING_MICROS, None, Figure::of(12.5));
        let text = markdown(&settings(), &figures);
        let lines = text.lines().filter(|line| line.contains(rows::CEILING_MICROS));
        let met: Vec<&str> = lines.map(|line| line.rsplit(" × ").next().expect("a ratio")).collect();
        assert_eq!(met, ["(100 µs, 12.5 µs) | no |", "(100 µs, 12.5 µs) | yes |"]);
    }

    #[test]
    fn the_details_have_a_column_for_each_group_of_threads() {
        let mut figures = Figures::default();
        let cpu = Some([40.0, 50.0, 5.0, 1.0, 96.0, 0.0, 20.0]);
        figures.add(rows::UNIFORM, Some(Kind::Sqlite), Figure { cpu, others: Some(0.5), ..Figure::of(1000.0) });
        let mut text = String::new();
        details(&mut text, &settings(), &figures);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        let columns = |line: &str| line.matches('|').count();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{text}");
        let expected =
            "| single events, SQLite | 1,000, 1,000–1,000 | – | – | 40.0 | 50.0 | 5.00 | 1.00 | 96.0 | – | 20.0 | 0 | 0.50 |";
        assert_eq!(lines[2], expected);
    }

    #[test]
    fn a_comparison_shows_both_builds_and_their_ratio() {
        let figure = |value, micros| Figure {
            latency: Some((1.0, value / 10.0)),
            cpu: Some([0.0, 0.0, 0.0, micros, micros, 0.0, 0.0]),
            ..Figure::of(value)
        };
        let (mut before, mut after) = (Figures::default(), Figures::default());
        before.add(rows::UNIFORM, Some(Kind::Sqlite), figure(100.0, 200.0));
        after.add(rows::UNIFORM, Some(Kind::Sqlite), figure(150.0, 100.0));
        let text = comparison(&before, &after);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("SQLite")).collect();
        let expected = [
            "| single events, SQLite | 100 | 150 | 1.50 |",
            "| single events, SQLite: p99, ms | 10.0 | 15.0 | 1.50 |",
            "| single events, SQLite: processor time, µs | 200 | 100 | 0.50 |",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_table_takes_the_place_of_the_last_one() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let put = put_in(&page, "new\n").map_err(|failure| failure.to_string());
        assert_eq!(put, Ok(format!("above\n{BEGIN}\nnew\n{END}\nbelow\n")));
        assert!(put_in("no place", "new").is_err());
    }
}
