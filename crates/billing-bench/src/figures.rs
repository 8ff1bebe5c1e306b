//! The measurements of a run by row and database, and their medians.

use std::collections::BTreeMap;

use crate::load::{Sample, as_f64};
use crate::process::CpuSeconds;
use crate::stage::Kind;

/// The columns of processor time. The first four are the threads of the server, and `server` is their sum.
pub(crate) const CPU_COLUMNS: [&str; 7] =
    ["HTTP threads", "usage writer", "checkpoint", "other threads", "server", "PostgreSQL", "load generator"];
/// The place of the server in [`CPU_COLUMNS`].
const SERVER: usize = 4;
/// The place of PostgreSQL in [`CPU_COLUMNS`].
const DATABASE: usize = 5;

/// Returns microseconds of processor time per unit of `worth`, in the order of [`CPU_COLUMNS`].
pub(crate) fn cpu_micros(cpu: CpuSeconds, worth: f64) -> Option<[f64; CPU_COLUMNS.len()]> {
    let CpuSeconds { servers, http, writer, checkpoint, database, generator, .. } = cpu;
    let columns = [http, writer, checkpoint, cpu.other_threads(), servers, database, generator];
    (worth > 0.0).then(|| columns.map(|seconds| seconds / worth * 1e6))
}

/// One measurement of one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// The rate per second, or the value itself for rows that are not rates.
    pub(crate) value: f64,
    /// The median and the 99th percentile of the response times, in milliseconds.
    pub(crate) latency: Option<(f64, f64)>,
    /// Microseconds of processor time per event, in the order of [`CPU_COLUMNS`].
    pub(crate) cpu: Option<[f64; CPU_COLUMNS.len()]>,
    /// The number of processors that the rest of the machine kept busy.
    pub(crate) others: Option<f64>,
    /// The number of unexpected responses and broken connections.
    pub(crate) refused: u64,
}

impl Figure {
    /// Creates a figure with a value only.
    pub(crate) fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Returns the microseconds of processor time per event of the server and PostgreSQL together.
    pub(crate) fn service_micros(&self) -> Option<f64> {
        self.cpu.map(|cpu| cpu[SERVER] + cpu[DATABASE])
    }
}

impl From<&Sample> for Figure {
    fn from(sample: &Sample) -> Self {
        let cpu = sample.cpu;
        Self {
            value: sample.rate(),
            latency: (!sample.latency.is_empty()).then(|| (sample.millis(0.5), sample.millis(0.99))),
            cpu: cpu_micros(cpu, as_f64(sample.worth)),
            others: (sample.seconds > 0.0).then(|| cpu.others() / sample.seconds),
            refused: sample.others(),
        }
    }
}

/// All figures of a run, of one build of the server.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// The label of the build in the messages of a run.
    label: &'static str,
    rows: BTreeMap<(&'static str, Option<Kind>), Vec<Figure>>,
    order: Vec<&'static str>,
    notes: Vec<String>,
}

impl Figures {
    /// Creates figures whose messages begin with a label.
    pub(crate) fn labeled(label: &'static str) -> Self {
        Self { label, ..Self::default() }
    }

    /// Adds a measurement of a row.
    pub(crate) fn add(&mut self, row: &'static str, kind: Option<Kind>, figure: Figure) {
        let shown = match kind {
            Some(kind) => format!("{row} ({})", kind.name()),
            None => row.to_owned(),
        };
        eprintln!("bench: {}{shown}: {}", self.label, short(figure.value));
        if !self.order.contains(&row) {
            self.order.push(row);
        }
        self.rows.entry((row, kind)).or_default().push(figure);
    }

    /// Adds a note below the table. A repeated note appears once.
    pub(crate) fn note(&mut self, note: String) {
        eprintln!("bench: {note}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Returns the notes below the table.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the median of a row.
    pub(crate) fn median(&self, row: &'static str, kind: Option<Kind>) -> Option<f64> {
        median(self.rows.get(&(row, kind))?.iter().map(|figure| figure.value).collect())
    }

    /// Returns the median of the ratios between two rows on a database, computed round by round. A disturbance of both rows
    /// affects this median least. A base without a database, such as the plain server, is compared with every database.
    pub(crate) fn ratio(&self, row: &'static str, base: &'static str, kind: Option<Kind>) -> Option<f64> {
        let row = self.rows.get(&(row, kind))?;
        median_ratio(row, self.rows.get(&(base, self.kind_of_base(base, kind)))?, |figure| Some(figure.value))
    }

    /// Returns the database of the base that a row on `kind` is compared with.
    pub(crate) fn kind_of_base(&self, base: &'static str, kind: Option<Kind>) -> Option<Kind> {
        kind.filter(|_| self.rows.contains_key(&(base, kind)))
    }

    /// Returns the rows that were also measured with another build, in the order of measurement.
    pub(crate) fn compared(&self, before: &Self) -> Vec<Comparison> {
        let of_row = |row: &'static str| self.rows.iter().filter(move |((name, _), _)| *name == row);
        let found = self.order.iter().copied().flat_map(of_row);
        let comparison = |((row, kind), after): (&(&'static str, Option<Kind>), &Vec<Figure>)| {
            let before = before.rows.get(&(*row, *kind))?;
            let values = CompareValues::new(before, after, |figure| Some(figure.value))?;
            let p99 = CompareValues::new(before, after, |figure| figure.latency.map(|(_, most)| most));
            let micros = CompareValues::new(before, after, Figure::service_micros);
            Some(Comparison { row, kind: *kind, values, p99, micros })
        };
        found.filter_map(comparison).collect()
    }

    /// Returns the rows that were measured with requests, in the order of measurement, with all their figures.
    pub(crate) fn details(&self) -> impl Iterator<Item = Detail> {
        let of_row = |row: &'static str| self.rows.iter().filter(move |((name, _), _)| *name == row);
        self.order.iter().copied().flat_map(of_row).filter_map(|((row, kind), figures)| Detail::new(row, *kind, figures))
    }
}

/// A row that two builds were measured with.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) row: &'static str,
    pub(crate) kind: Option<Kind>,
    /// The rate per second, or the value itself for rows that are not rates.
    pub(crate) values: CompareValues,
    /// The 99th percentile of the response times in milliseconds.
    pub(crate) p99: Option<CompareValues>,
    /// Microseconds of processor time per event of the server and PostgreSQL together.
    pub(crate) micros: Option<CompareValues>,
}

/// The medians of both builds, and the median of the ratios of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompareValues {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The value after, divided by the value before.
    pub(crate) ratio: f64,
}

impl CompareValues {
    fn new(before: &[Figure], after: &[Figure], pick: impl Fn(&Figure) -> Option<f64>) -> Option<Self> {
        let middle = |figures: &[Figure]| median(figures.iter().filter_map(&pick).collect());
        Some(Self { before: middle(before)?, after: middle(after)?, ratio: median_ratio(after, before, &pick)? })
    }
}

/// Returns the median of the ratios of the rounds, or the ratio of the medians if the numbers of rounds differ.
fn median_ratio(row: &[Figure], base: &[Figure], pick: impl Fn(&Figure) -> Option<f64>) -> Option<f64> {
    if row.len() != base.len() {
        let [row, base] = [row, base].map(|rounds| median(rounds.iter().filter_map(&pick).collect()));
        return row.zip(base).filter(|(_, base)| *base > 0.0).map(|(row, base)| row / base);
    }
    let pairs = row.iter().zip(base).filter_map(|(row, base)| pick(row).zip(pick(base))).filter(|(_, base)| *base > 0.0);
    median(pairs.map(|(row, base)| row / base).collect())
}

/// A row with all its figures.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) row: &'static str,
    pub(crate) kind: Option<Kind>,
    /// Median, minimum and maximum per second.
    pub(crate) rate: [f64; 3],
    pub(crate) latency: Option<(f64, f64)>,
    /// In the order of [`CPU_COLUMNS`].
    pub(crate) cpu: Option<[f64; CPU_COLUMNS.len()]>,
    pub(crate) others: Option<f64>,
    pub(crate) refused: u64,
}

impl Detail {
    fn new(row: &'static str, kind: Option<Kind>, figures: &[Figure]) -> Option<Self> {
        let of = |pick: &dyn Fn(&Figure) -> Option<f64>| median(figures.iter().filter_map(pick).collect());
        let rates = figures.iter().map(|figure| figure.value);
        let rate = [of(&|figure| Some(figure.value))?, rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max)];
        let mut cpu = [0.0; CPU_COLUMNS.len()];
        for (place, seconds) in cpu.iter_mut().enumerate() {
            *seconds = of(&|figure| figure.cpu.map(|cpu| cpu[place])).unwrap_or_default();
        }
        let is_timed = figures.iter().any(|figure| figure.cpu.is_some());
        // A row without these figures is not a load. The main table shows all its figures.
        of(&|figure| figure.others.or(figure.service_micros()))?;
        Some(Self {
            row,
            kind,
            rate,
            latency: of(&|figure| figure.latency.map(|(half, _)| half)).zip(of(&|figure| figure.latency.map(|(_, most)| most))),
            cpu: is_timed.then_some(cpu),
            others: of(&|figure| figure.others),
            refused: figures.iter().map(|figure| figure.refused).sum(),
        })
    }
}

/// Returns the middle value, or the mean of the two middle values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Formats a figure with its significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a whole number with commas between groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_both() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut figures = Figures::default();
        for (row, base) in [(1.0, 2.0), (10.0, 10.0), (3.0, 4.0)] {
            figures.add("row", None, Figure::of(row));
            figures.add("base", None, Figure::of(base));
        }
        assert_eq!(figures.ratio("row", "base", None), Some(0.75));
        assert_eq!(figures.ratio("row", "missing", None), None);
    }

    #[test]
    fn a_base_without_a_database_is_compared_with_every_database() {
        let mut figures = Figures::default();
        figures.add("plain", None, Figure::of(10.0));
        figures.add("row", Some(Kind::Sqlite), Figure::of(4.0));
        figures.add("row", Some(Kind::Postgres), Figure::of(2.0));
        assert_eq!(figures.ratio("row", "plain", Some(Kind::Sqlite)), Some(0.4));
        assert_eq!(figures.ratio("row", "plain", Some(Kind::Postgres)), Some(0.2));
        // A base with databases is compared on the same one only.
        assert_eq!(figures.ratio("plain", "row", None), None);
    }

    #[test]
    fn processor_time_is_counted_per_event_and_both_sides_are_added() {
        let cpu = CpuSeconds { servers: 0.5, http: 0.1, writer: 0.3, database: 0.25, ..CpuSeconds::default() };
        assert_eq!(cpu_micros(cpu, 0.0), None);
        let cpu = cpu_micros(cpu, 5_000.0).map(|columns| columns.map(f64::round));
        assert_eq!(cpu, Some([20.0, 60.0, 0.0, 20.0, 100.0, 50.0, 0.0]));
        assert_eq!(Figure { cpu, ..Figure::default() }.service_micros(), Some(150.0));
    }

    #[test]
    fn two_builds_are_compared_round_by_round() {
        let (mut before, mut after) = (Figures::default(), Figures::default());
        for (old, new) in [(100.0, 150.0), (50.0, 75.0), (100.0, 120.0)] {
            before.add("row", Some(Kind::Sqlite), Figure::of(old));
            after.add("row", Some(Kind::Sqlite), Figure::of(new));
        }
        after.add("only after", None, Figure::of(1.0));
        let compared = after.compared(&before);
        assert_eq!(compared.len(), 1);
        assert_eq!(compared[0].values, CompareValues { before: 100.0, after: 120.0, ratio: 1.5 });
        assert_eq!((compared[0].p99, compared[0].micros), (None, None));
    }

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        let shown = [0.0, 0.0123, 0.456, 12.34, 999.6, 1234567.0].map(short);
        assert_eq!(shown, ["0.00", "0.012", "0.46", "12.3", "1,000", "1,234,567"]);
    }
}
