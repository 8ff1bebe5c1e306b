//! The measurements of a run by row and database, and their medians.

use std::collections::BTreeMap;

use crate::load::Sample;
use crate::stage::Kind;

/// One measurement of one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// The rate per second, or the value itself for rows that are not rates.
    pub(crate) value: f64,
    /// The median and the 99th percentile of the response times, in milliseconds.
    pub(crate) latency: Option<(f64, f64)>,
    /// Seconds of processor time per million: servers, database, load generator.
    pub(crate) cpu: Option<[f64; 3]>,
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
}

impl From<&Sample> for Figure {
    fn from(sample: &Sample) -> Self {
        let millions = crate::load::as_f64(sample.worth) / 1e6;
        let each = |seconds: f64| seconds / millions;
        let cpu = sample.cpu;
        Self {
            value: sample.rate(),
            latency: (!sample.latency.is_empty()).then(|| (sample.millis(0.5), sample.millis(0.99))),
            cpu: (millions > 0.0).then(|| [cpu.servers, cpu.database, cpu.generator].map(each)),
            others: (sample.seconds > 0.0).then(|| cpu.others() / sample.seconds),
            refused: sample.others(),
        }
    }
}

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rows: BTreeMap<(&'static str, Option<Kind>), Vec<Figure>>,
    order: Vec<&'static str>,
    notes: Vec<String>,
}

impl Figures {
    /// Adds a measurement of a row.
    pub(crate) fn add(&mut self, row: &'static str, kind: Option<Kind>, figure: Figure) {
        let shown = match kind {
            Some(kind) => format!("{row} ({})", kind.name()),
            None => row.to_owned(),
        };
        eprintln!("bench: {shown}: {}", short(figure.value));
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

    /// Returns the median of the ratios between two rows, computed round by round. A disturbance of both rows affects this
    /// median least.
    pub(crate) fn ratio(&self, row: &'static str, of: Option<Kind>, base: &'static str, of_base: Option<Kind>) -> Option<f64> {
        let (row, base) = (self.rows.get(&(row, of))?, self.rows.get(&(base, of_base))?);
        if row.len() != base.len() {
            let medians = [row, base].map(|rounds| median(rounds.iter().map(|figure| figure.value).collect()));
            return medians[0].zip(medians[1]).map(|(row, base)| row / base);
        }
        let pairs = row.iter().zip(base).filter(|(_, base)| base.value > 0.0);
        median(pairs.map(|(row, base)| row.value / base.value).collect())
    }

    /// Returns the rows that were measured with requests, in the order of measurement, with all their figures.
    pub(crate) fn details(&self) -> impl Iterator<Item = Detail> {
        let of_row = |row: &'static str| self.rows.iter().filter(move |((name, _), _)| *name == row);
        self.order.iter().copied().flat_map(of_row).filter_map(|((row, kind), figures)| Detail::new(row, *kind, figures))
    }
}

/// A row with all its figures.
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) row: &'static str,
    pub(crate) kind: Option<Kind>,
    /// Median, minimum and maximum per second.
    pub(crate) rate: [f64; 3],
    pub(crate) latency: Option<(f64, f64)>,
    pub(crate) cpu: Option<[f64; 3]>,
    pub(crate) others: Option<f64>,
    pub(crate) refused: u64,
}

impl Detail {
    fn new(row: &'static str, kind: Option<Kind>, figures: &[Figure]) -> Option<Self> {
        let of = |pick: &dyn Fn(&Figure) -> Option<f64>| median(figures.iter().filter_map(pick).collect());
        let rates = figures.iter().map(|figure| figure.value);
        let rate = [of(&|figure| Some(figure.value))?, rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max)];
        let cpu = [0, 1, 2].map(|who| of(&|figure| figure.cpu.map(|cpu| cpu[who])));
        // A row without these figures is not a load. The main table shows all its figures.
        of(&|figure| figure.others.or(figure.cpu.map(|[_, database, _]| database)))?;
        Some(Self {
            row,
            kind,
            rate,
            latency: of(&|figure| figure.latency.map(|(half, _)| half)).zip(of(&|figure| figure.latency.map(|(_, most)| most))),
            cpu: cpu[0].zip(cpu[1]).zip(cpu[2]).map(|((servers, database), generator)| [servers, database, generator]),
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
        assert_eq!(figures.ratio("row", None, "base", None), Some(0.75));
        assert_eq!(figures.ratio("row", None, "missing", None), None);
    }

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        let shown = [0.0, 0.0123, 0.456, 12.34, 999.6, 1234567.0].map(short);
        assert_eq!(shown, ["0.00", "0.012", "0.46", "12.3", "1,000", "1,234,567"]);
    }
}
