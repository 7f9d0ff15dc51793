//! `tollgate replay` of a synthetic access log, on all cores.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use bench::Effort;
use bench::figures::ratio;
use bench::process::{self, children_cpu_ns};
use bench::report::{Report, Row, Sample};
use tollgate_state::Clock;

/// Lines per second of the log.
const RATE: u64 = 20_000;

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    process::unpin()?;
    let seconds = if effort.divisor == 1 { 100 } else { 10 };
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-replay.log");
    let traffic = format!("zipf rate {RATE}/s for {seconds}s keys 1000000");
    let mut generate = Command::new(process::tollgate()?);
    generate.args(["replay", "--generate", &traffic, "--write-log"]).arg(&log);
    run_quietly(&mut generate)?;
    let mut replay = Command::new(process::tollgate()?);
    replay.arg("replay").arg(&log).args(["--limit", "10/s burst 20"]);
    let name = format!("replay of {} lines", RATE * seconds);
    let mut systems = [("tollgate".to_owned(), replay)];
    let row =
        Row::measure(name, effort.rounds, &mut systems, |replay| measure(replay, RATE * seconds))?;
    report.rows.push(row);
    Ok(std::fs::remove_file(log)?)
}

fn measure(replay: &mut Command, lines: u64) -> Result<Sample> {
    let clock = Clock::system();
    let (start, cpu) = (clock.now(), children_cpu_ns()?);
    run_quietly(replay)?;
    let elapsed = clock.now().duration_since(start).get();
    let cpu_ns = children_cpu_ns()? - cpu;
    Ok(Sample { rate: ratio(lines * 10_000, elapsed), cpu_ps: cpu_ns * 1_000 / lines })
}

fn run_quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
