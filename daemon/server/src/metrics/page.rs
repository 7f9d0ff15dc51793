//! The encoding of the metrics page, in both formats.
//!
//! Every scraper reads the classic format
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>). In OpenMetrics
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) the metadata of counters omits their
//! suffix, the page ends with `# EOF`, and buckets have exemplars.

use std::fmt::Write;

use super::families::{Family, FamilyKind};
use tollgate_engine::{Exemplar, LatencyHistogram};

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Classic,
    OpenMetrics,
}

impl Format {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A value of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Whole(u64),
    /// µs, shown as seconds.
    Micros(u64),
}

impl Value {
    #[expect(clippy::expect_used, reason = "a usize has at most 64 bits")]
    pub(super) fn count(count: usize) -> Self {
        Value::Whole(count.try_into().expect("a usize fits"))
    }
}

/// A bucket of a histogram.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// The upper bound; absent for the last bucket.
    pub(super) bound: Option<Value>,
    /// The number of values in this bucket alone.
    pub(super) count: u64,
    pub(super) exemplar: Option<Exemplar>,
}

/// The page that is being written.
#[derive(Debug)]
pub(super) struct Page {
    format: Format,
    text: String,
    /// The family of the last sample.
    family: Option<&'static str>,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Page { format, text: String::with_capacity(16 * 1024), family: None }
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes a sample, with the values of the family's labels in order. Callers write all samples
    /// of a family consecutively.
    pub(super) fn sample(&mut self, family: &'static Family, labels: &[&str], value: Value) {
        self.head(family);
        self.series(family, "", labels, None, value);
        self.text.push('\n');
    }

    /// Writes the samples of a histogram.
    pub(super) fn histogram(
        &mut self,
        family: &'static Family,
        labels: &[&str],
        buckets: &[Bucket],
        sum: Value,
    ) {
        self.head(family);
        let mut count = 0_u64;
        for bucket in buckets {
            count += bucket.count;
            self.series(family, "_bucket", labels, Some(bucket.bound), Value::Whole(count));
            self.exemplar(bucket.exemplar.as_ref());
            self.text.push('\n');
        }
        for (suffix, value) in [("_sum", sum), ("_count", Value::Whole(count))] {
            self.series(family, suffix, labels, None, value);
            self.text.push('\n');
        }
    }

    /// Writes the samples of a latency histogram.
    pub(super) fn latency(
        &mut self,
        family: &'static Family,
        labels: &[&str],
        latency: &LatencyHistogram,
    ) {
        let buckets = latency.buckets().into_iter().map(|bucket| Bucket {
            bound: bucket.bound.map(|bound| Value::Micros(bound.get())),
            count: bucket.count,
            exemplar: bucket.exemplar,
        });
        let sum = Value::Micros(latency.sum_micros());
        self.histogram(family, labels, &buckets.collect::<Vec<_>>(), sum);
    }

    /// Writes the metadata of a family before its first sample.
    fn head(&mut self, family: &'static Family) {
        if self.family.replace(family.name) == Some(family.name) {
            return;
        }
        let suffix = match family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Info => "_info",
            FamilyKind::Gauge | FamilyKind::Histogram | FamilyKind::Unknown => "",
        };
        let (name, kind) = match (self.format, family.kind) {
            (Format::OpenMetrics, kind) => {
                (family.name.strip_suffix(suffix).unwrap_or(family.name), kind.as_str())
            }
            (Format::Classic, FamilyKind::Info) => (family.name, FamilyKind::Gauge.as_str()),
            (Format::Classic, FamilyKind::Unknown) => (family.name, "untyped"),
            (Format::Classic, kind) => (family.name, kind.as_str()),
        };
        let help = family.help;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Writes the name, the labels and the value of a series; `bound` is that of a bucket.
    fn series(
        &mut self,
        family: &Family,
        suffix: &str,
        labels: &[&str],
        bound: Option<Option<Value>>,
        value: Value,
    ) {
        self.text.push_str(family.name);
        self.text.push_str(suffix);
        let mut open = '{';
        for (name, value) in family.labels.iter().zip(labels) {
            self.write(format_args!("{open}{name}=\""));
            for letter in value.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
            open = ',';
        }
        if let Some(bound) = bound {
            self.write(format_args!("{open}le=\""));
            match bound {
                None => self.text.push_str("+Inf"),
                // The same in both formats, so that a series has one name.
                Some(Value::Whole(whole)) => self.write(format_args!("{whole}.0")),
                Some(Value::Micros(micros)) => self.seconds(micros),
            }
            self.text.push('"');
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
        self.text.push(' ');
        match value {
            Value::Whole(whole) => self.write(format_args!("{whole}")),
            Value::Micros(micros) => self.seconds(micros),
        }
    }

    fn exemplar(&mut self, exemplar: Option<&Exemplar>) {
        let Some(exemplar) = exemplar.filter(|_| self.format == Format::OpenMetrics) else {
            return;
        };
        self.write(format_args!(" # {{trace_id=\"{}\"}} ", exemplar.trace));
        self.seconds(exemplar.duration.get());
        self.text.push(' ');
        self.seconds(exemplar.time.as_micros());
    }

    /// Seconds, exact to the µs.
    fn seconds(&mut self, micros: u64) {
        let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
        if part == 0 {
            return self.write(format_args!("{whole}.0"));
        }
        let part = format!("{part:06}");
        self.write(format_args!("{whole}.{}", part.trim_end_matches('0')));
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

impl FamilyKind {
    /// The name on the page.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
            FamilyKind::Info => "info",
            FamilyKind::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate::{Micros, Timestamp};

    use super::super::families::{BUILD, DEGRADED, DURATION, KEYS};
    use super::*;
    use tollgate_engine::TraceId;

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        page.sample(&DEGRADED, &["a\"b\\c\nd", "denied"], Value::Whole(3));
        page.sample(&DEGRADED, &["x", "allowed"], Value::Whole(0));
        page.sample(&KEYS, &[], Value::Whole(7));
        page.sample(&BUILD, &["1.2.3"], Value::Whole(1));
        let trace =
            TraceId::from_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
                .unwrap();
        let exemplar =
            Exemplar { trace, duration: Micros::new(30), time: Timestamp::from_micros(1_500_000) };
        let buckets = [
            Bucket { bound: Some(Value::Micros(25)), count: 2, exemplar: None },
            Bucket { bound: Some(Value::Micros(1_000_000)), count: 1, exemplar: Some(exemplar) },
            Bucket { bound: None, count: 1, exemplar: None },
        ];
        page.histogram(&DURATION, &["http"], &buckets, Value::Micros(2_000_030));
        page.finish()
    }

    #[test]
    fn both_formats_have_the_same_samples() {
        let classic = "\
# HELP tollgate_degraded_decisions_total ~
# TYPE tollgate_degraded_decisions_total counter
tollgate_degraded_decisions_total{policy=\"a\\\"b\\\\c\\nd\",answer=\"denied\"} 3
tollgate_degraded_decisions_total{policy=\"x\",answer=\"allowed\"} 0
# HELP tollgate_keys ~
# TYPE tollgate_keys gauge
tollgate_keys 7
# HELP tollgate_build_info ~
# TYPE tollgate_build_info gauge
tollgate_build_info{version=\"1.2.3\"} 1
# HELP tollgate_decision_duration_seconds ~
# TYPE tollgate_decision_duration_seconds histogram
tollgate_decision_duration_seconds_bucket{surface=\"http\",le=\"0.000025\"} 2
tollgate_decision_duration_seconds_bucket{surface=\"http\",le=\"1.0\"} 3
tollgate_decision_duration_seconds_bucket{surface=\"http\",le=\"+Inf\"} 4
tollgate_decision_duration_seconds_sum{surface=\"http\"} 2.00003
tollgate_decision_duration_seconds_count{surface=\"http\"} 4
";
        let openmetrics = classic
            .replace(
                "# HELP tollgate_degraded_decisions_total",
                "# HELP tollgate_degraded_decisions",
            )
            .replace(
                "# TYPE tollgate_degraded_decisions_total",
                "# TYPE tollgate_degraded_decisions",
            )
            .replace("# HELP tollgate_build_info", "# HELP tollgate_build")
            .replace("# TYPE tollgate_build_info gauge", "# TYPE tollgate_build info")
            .replace(
                "le=\"1.0\"} 3",
                "le=\"1.0\"} 3 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\"} 0.00003 1.5",
            );
        for (format, expected) in
            [(Format::Classic, classic.to_owned()), (Format::OpenMetrics, openmetrics + "# EOF\n")]
        {
            let mut text = page(format);
            for family in [&DEGRADED, &KEYS, &BUILD, &DURATION] {
                text = text.replace(family.help, "~");
            }
            assert_eq!(text, expected, "{format:?}");
        }
    }
}
