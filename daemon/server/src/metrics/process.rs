//! What the system says of this process, from `/proc`; nothing where there is none.

use std::fs;

use super::families::{CPU, MAX_FILES, MEMORY, OPEN_FILES, START, THREADS, VIRTUAL_MEMORY};
use super::page::{Page, Value};

/// µs of a tick of `/proc`: Linux counts a hundred a second there, whatever the kernel's own.
const TICK: u64 = 10_000;

/// Writes what is known.
pub(super) fn write(page: &mut Page) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpu = Some(stat_field(&stat, 14) + stat_field(&stat, 15)).filter(|_| !stat.is_empty());
    let started = number_after(&boot, "btime ").map(|x| x * 1_000_000);
    let started = started.map(|started| started + stat_field(&stat, 22) * TICK);
    let bytes = |name| number_after(&status, name).map(|x| x * 1024);
    // The one that is open to count them is not counted.
    let files = fs::read_dir("/proc/self/fd").map(|x| x.count().saturating_sub(1));
    let files = files.ok().and_then(|file| u64::try_from(file).ok());
    for (family, value) in [
        (&CPU, cpu.map(|cpu| Value::Micros(cpu * TICK))),
        (&MEMORY, bytes("VmRSS:").map(Value::Whole)),
        (&VIRTUAL_MEMORY, bytes("VmSize:").map(Value::Whole)),
        (&OPEN_FILES, files.map(Value::Whole)),
        (&MAX_FILES, number_after(&limits, "Max open files").map(Value::Whole)),
        (&THREADS, number_after(&status, "Threads:").map(Value::Whole)),
        (&START, started.map(Value::Micros)),
    ] {
        if let Some(value) = value {
            page.sample(family, &[], value);
        }
    }
}

/// The number after a word that begins a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A field of `/proc/self/stat`, as the manual counts them: from 1, the name of the program in
/// brackets being the second.
fn stat_field(stat: &str, number: usize) -> u64 {
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = after_name.split(' ').nth(number.saturating_sub(3));
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::page::Form;
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20 0 4 0 5000 1 2";
        assert_eq!([14, 15, 22].map(|it| stat_field(stat, it)), [120, 30, 5000]);
        assert_eq!(stat_field("", 14), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_known() {
        let mut page = Page::new(Form::Classic);
        write(&mut page);
        let page = page.finish();
        for family in [&CPU, &MEMORY, &VIRTUAL_MEMORY, &OPEN_FILES, &MAX_FILES, &THREADS, &START] {
            let line = page.lines().find(|line| line.starts_with(&format!("{} ", family.name)));
            let value: f64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value > 0.0 || family.name == CPU.name, "{line:?}");
        }
    }
}
