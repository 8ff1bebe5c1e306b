//! Durations that a server counts, read from its metrics.

/// A histogram of the text format of Prometheus.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// The upper bound of each bucket in seconds, with the number of durations up to the bound.
    buckets: Vec<(f64, f64)>,
    sum: f64,
}

impl Histogram {
    /// Reads the histogram of a name, and of a label as `kind="events"` if the metric has labels. Returns `None` if the server
    /// does not have the metric.
    pub(crate) fn read(text: &str, name: &str, label: &str) -> Option<Self> {
        let of = |suffix: &str| {
            let start = format!("{name}_{suffix}");
            let lines = text.lines().filter_map(move |line| line.strip_prefix(start.as_str())?.rsplit_once(' '));
            lines.filter(move |(labels, _)| labels.contains(label))
        };
        let bucket = |(labels, value): (&str, &str)| {
            let (bound, _) = labels.split_once("le=\"")?.1.split_once('"')?;
            Some((bound.parse::<f64>().ok()?, value.parse::<f64>().ok()?))
        };
        let buckets: Vec<(f64, f64)> = of("bucket").filter_map(bucket).collect();
        let (_, sum) = of("sum").next()?;
        (!buckets.is_empty()).then_some(Self { buckets, sum: sum.parse().ok()? })
    }

    /// Returns the number of durations above a bound that the histogram has, since an earlier reading.
    pub(crate) fn above_since(&self, before: &Self, seconds: f64) -> f64 {
        self.above(seconds) - before.above(seconds)
    }

    /// Returns the sum of the durations in milliseconds, since an earlier reading.
    pub(crate) fn millis_since(&self, before: &Self) -> f64 {
        (self.sum - before.sum) * 1000.0
    }

    fn above(&self, seconds: f64) -> f64 {
        let up_to = self.buckets.iter().filter(|(bound, _)| *bound <= seconds).map(|(_, count)| *count).fold(0.0, f64::max);
        self.buckets.last().map_or(0.0, |(_, all)| all - up_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE x_seconds histogram\n\
                        x_seconds_sum{kind=\"events\"} 0.5\nx_seconds_count{kind=\"events\"} 9\n\
                        x_seconds_bucket{le=\"0.001\",kind=\"events\"} 4\nx_seconds_bucket{le=\"0.005\",kind=\"events\"} 6\n\
                        x_seconds_bucket{le=\"+Inf\",kind=\"events\"} 9\n\
                        x_seconds_sum{kind=\"changes\"} 7.0\nx_seconds_bucket{le=\"+Inf\",kind=\"changes\"} 1\n\
                        y_seconds_sum 0.25\ny_seconds_count 1\ny_seconds_bucket{le=\"0.005\"} 0\ny_seconds_bucket{le=\"+Inf\"} 1\n";

    #[test]
    fn a_histogram_is_read_by_its_name_and_label() {
        let x = Histogram::read(TEXT, "x_seconds", "kind=\"events\"").expect("a histogram");
        let expected = Histogram { buckets: vec![(0.001, 4.0), (0.005, 6.0), (f64::INFINITY, 9.0)], sum: 0.5 };
        assert_eq!(x, expected);
        let y = Histogram::read(TEXT, "y_seconds", "").expect("a histogram");
        assert_eq!((y.sum, y.above_since(&Histogram::default(), 0.005)), (0.25, 1.0));
        assert_eq!(Histogram::read(TEXT, "z_seconds", ""), None);
    }

    #[test]
    fn durations_count_since_an_earlier_reading() {
        let before = Histogram { buckets: vec![(0.005, 2.0), (f64::INFINITY, 3.0)], sum: 0.25 };
        let after = Histogram { buckets: vec![(0.005, 10.0), (f64::INFINITY, 14.0)], sum: 1.0 };
        assert_eq!((after.above_since(&before, 0.005), after.millis_since(&before)), (3.0, 750.0));
    }
}
