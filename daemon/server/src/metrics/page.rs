//! The text that a scrape reads, in both of its forms.
//!
//! The classic form is the one that every reader knows (<https://prometheus.io/docs/instrumenting/exposition_formats/>);
//! OpenMetrics (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) names counters without their ending, ends in a mark,
//! and carries exemplars.

use std::fmt::Write;

use super::families::{Family, FamilyKind};
use tollgate_engine::Exemplar;

/// A form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Classic,
    OpenMetrics,
}

impl Form {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Form::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
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

/// One class of a histogram: the most of it, or nothing for the last; how many are in it alone; one
/// of them.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) most: Option<Value>,
    pub(super) count: u64,
    pub(super) exemplar: Option<Exemplar>,
}

/// The text, as it is written.
#[derive(Debug)]
pub(super) struct Page {
    form: Form,
    text: String,
    /// Whose samples are being written.
    family: Option<&'static str>,
}

impl Page {
    pub(super) fn new(form: Form) -> Self {
        Page { form, text: String::with_capacity(16 * 1024), family: None }
    }

    pub(super) fn finish(mut self) -> String {
        if self.form == Form::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// A sample, with the values of the family's labels in their order. All samples of a family
    /// are written one after the other.
    pub(super) fn sample(&mut self, family: &'static Family, labels: &[&str], value: Value) {
        self.head(family);
        self.text.push_str(family.name);
        self.labels(family, labels, None);
        self.value(value);
        self.text.push('\n');
    }

    /// The samples of a histogram.
    pub(super) fn histogram(
        &mut self,
        family: &'static Family,
        labels: &[&str],
        classes: &[Class],
        sum: Value,
    ) {
        self.head(family);
        let mut count = 0_u64;
        for class in classes {
            count += class.count;
            self.text.push_str(family.name);
            self.text.push_str("_bucket");
            self.labels(family, labels, Some(class.most));
            self.value(Value::Whole(count));
            self.exemplar(class.exemplar.as_ref());
            self.text.push('\n');
        }
        for (suffix, value) in [("_sum", sum), ("_count", Value::Whole(count))] {
            self.text.push_str(family.name);
            self.text.push_str(suffix);
            self.labels(family, labels, None);
            self.value(value);
            self.text.push('\n');
        }
    }

    /// What it is, before its first sample.
    fn head(&mut self, family: &'static Family) {
        if self.family.replace(family.name) == Some(family.name) {
            return;
        }
        let ending = match family.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Info => "_info",
            FamilyKind::Gauge | FamilyKind::Histogram | FamilyKind::Unknown => "",
        };
        let (name, kind) = match (self.form, family.kind) {
            (Form::OpenMetrics, kind) => {
                (family.name.strip_suffix(ending).unwrap_or(family.name), kind.as_str())
            }
            (Form::Classic, FamilyKind::Info) => (family.name, FamilyKind::Gauge.as_str()),
            (Form::Classic, FamilyKind::Unknown) => (family.name, "untyped"),
            (Form::Classic, kind) => (family.name, kind.as_str()),
        };
        let help = family.help;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn labels(&mut self, family: &Family, values: &[&str], most: Option<Option<Value>>) {
        let mut open = '{';
        for (name, value) in family.labels.iter().zip(values) {
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
        if let Some(most) = most {
            self.write(format_args!("{open}le=\""));
            match most {
                None => self.text.push_str("+Inf"),
                // The same in both forms, so that a series has one name.
                Some(Value::Whole(whole)) => self.write(format_args!("{whole}.0")),
                Some(Value::Micros(micros)) => self.seconds(micros),
            }
            self.text.push('"');
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
    }

    fn value(&mut self, value: Value) {
        self.text.push(' ');
        match value {
            Value::Whole(whole) => self.write(format_args!("{whole}")),
            Value::Micros(micros) => self.seconds(micros),
        }
    }

    fn exemplar(&mut self, exemplar: Option<&Exemplar>) {
        let Some(exemplar) = exemplar.filter(|_| self.form == Form::OpenMetrics) else { return };
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
        // A text takes whatever is written to it.
        let _ = self.text.write_fmt(text);
    }
}

impl FamilyKind {
    /// The word that stands for it on the page.
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

    fn page(form: Form) -> String {
        let mut page = Page::new(form);
        page.sample(&DEGRADED, &["a\"b\\c\nd", "denied"], Value::Whole(3));
        page.sample(&DEGRADED, &["x", "allowed"], Value::Whole(0));
        page.sample(&KEYS, &[], Value::Whole(7));
        page.sample(&BUILD, &["1.2.3"], Value::Whole(1));
        let trace =
            TraceId::from_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
                .unwrap();
        let exemplar =
            Exemplar { trace, duration: Micros::new(30), time: Timestamp::from_micros(1_500_000) };
        let classes = [
            Class { most: Some(Value::Micros(25)), count: 2, exemplar: None },
            Class { most: Some(Value::Micros(1_000_000)), count: 1, exemplar: Some(exemplar) },
            Class { most: None, count: 1, exemplar: None },
        ];
        page.histogram(&DURATION, &["http"], &classes, Value::Micros(2_000_030));
        page.finish()
    }

    #[test]
    fn both_forms_say_the_same() {
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
        for (form, expected) in
            [(Form::Classic, classic.to_owned()), (Form::OpenMetrics, openmetrics + "# EOF\n")]
        {
            let mut said = page(form);
            for family in [&DEGRADED, &KEYS, &BUILD, &DURATION] {
                said = said.replace(family.help, "~");
            }
            assert_eq!(said, expected, "{form:?}");
        }
    }
}
