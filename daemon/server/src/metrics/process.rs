//! Metrics of this process, from `/proc`. On systems without it they are absent.

use std::fs;

use super::families::{CPU, MAX_FILES, MEMORY, OPEN_FILES, START, THREADS, VIRTUAL_MEMORY};
use super::page::{Page, Value};

/// The length of a tick in `/proc`, in µs. Linux reports 100 ticks a second there on every kernel.
const TICK: u64 = 10_000;

/// Writes the metrics that are available.
pub(super) fn write(page: &mut Page) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = stat_field(&stat, 14).zip(stat_field(&stat, 15));
    let started = number_after(&boot, "btime ").zip(stat_field(&stat, 22));
    let bytes = |name| number_after(&status, name).map(|kib| Value::Whole(kib * 1024));
    // Without the file descriptor that lists them.
    let files = fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1));
    for (family, value) in [
        (&CPU, cpu.map(|(user, system)| Value::Micros((user + system) * TICK))),
        (&MEMORY, bytes("VmRSS:")),
        (&VIRTUAL_MEMORY, bytes("VmSize:")),
        (&OPEN_FILES, files.ok().map(Value::count)),
        (&MAX_FILES, number_after(&limits, "Max open files").map(Value::Whole)),
        (&THREADS, number_after(&status, "Threads:").map(Value::Whole)),
        (&START, started.map(|(boot, ticks)| Value::Micros(boot * 1_000_000 + ticks * TICK))),
    ] {
        if let Some(value) = value {
            page.sample(family, &[], value);
        }
    }
}

/// The number after a word at the beginning of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A field of `/proc/self/stat`, numbered as in proc(5): from 1; the second is the name of the program
/// in brackets, which may contain spaces and brackets.
fn stat_field(stat: &str, number: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::page::Format;
    use super::*;

    #[test]
    fn the_name_of_the_program_may_contain_brackets() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20 0 4 0 5000 1 2";
        assert_eq!([14, 15, 22].map(|field| stat_field(stat, field)), [120, 30, 5000].map(Some));
        assert_eq!(stat_field("", 14), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn all_metrics_of_this_process_are_written() {
        let mut page = Page::new(Format::Classic);
        write(&mut page);
        let page = page.finish();
        for family in [&CPU, &MEMORY, &VIRTUAL_MEMORY, &OPEN_FILES, &MAX_FILES, &THREADS, &START] {
            let line = page.lines().find(|line| line.starts_with(&format!("{} ", family.name)));
            let value: f64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value > 0.0 || family.name == CPU.name, "{line:?}");
        }
    }
}
