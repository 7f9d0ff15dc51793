//! Tollgate beside other rate limiters, both sides in the same run.
//!
//! A server has one core and the load another. Each round measures all systems of a row in turn;
//! the report has the median and the spread of the rounds. It compares CPU time per operation: the
//! rate also depends on the load generator, which shares the machine. There are 100,000 keys unless
//! a row names another number. Programs that are not installed are reported, with a way to get
//! them.
//!
//! `cargo xtask bench [GROUP] [--quick] [--json FILE]`; `UPDATE=1` writes the figures of the groups into
//! `docs/benchmarks.md`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod grpc;
mod http;
mod leased;
mod memory;
mod open_loop;
mod peers;
mod redis;
mod replay;
mod resp;
mod servers;
mod tail;
mod text;
mod track;

use std::fs;

use anyhow::{Context, Result, ensure};
use bench::report::Report;
use bench::{Effort, chart, machine};
use serde_json::Value;

/// Rows that are measured together.
#[derive(Debug)]
struct Group {
    name: &'static str,
    title: &'static str,
    run: fn(Effort, &mut Report) -> Result<()>,
    /// Whether it runs without being named.
    is_default: bool,
}

const GROUPS: &[Group] = &[
    Group { name: "memory", title: "In process", run: memory::run, is_default: true },
    Group { name: "resp", title: "RESP", run: resp::run, is_default: true },
    Group { name: "http", title: "HTTP", run: http::run, is_default: true },
    Group { name: "grpc", title: "gRPC", run: grpc::run, is_default: true },
    Group { name: "redis", title: "On Redis", run: redis::run, is_default: true },
    Group {
        name: "redis-tables",
        title: "Every kind of limit on Redis",
        run: redis::run_tables,
        is_default: false,
    },
    Group { name: "leased", title: "Leases of quota", run: leased::run, is_default: true },
    Group { name: "track", title: "Tracked keys", run: track::run, is_default: true },
    Group { name: "replay", title: "Replay", run: replay::run, is_default: true },
    Group { name: "growth", title: "Growth", run: grow, is_default: true },
    Group {
        name: "tail",
        title: "Latencies at half of the saturation",
        run: tail::run,
        is_default: true,
    },
];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures/growth/");

fn main() -> Result<()> {
    if let Some(port) = servers::constant_port() {
        return servers::serve_constant(port);
    }
    let Some(effort) = Effort::from_args(5, 20) else { return Ok(()) };
    let (name, should_update) = (named_group()?, std::env::var_os("UPDATE").is_some());
    ensure!(effort.divisor == 1 || !should_update, "UPDATE=1 needs all rounds: omit --quick");
    let mut reports = Vec::new();
    for group in GROUPS {
        if name.as_deref().map_or(group.is_default, |name| name == group.name) {
            println!("== {}", group.name);
            let (title, machine) = (group.title, machine::describe()?);
            let mut report = Report { title, machine, ..Report::default() };
            (group.run)(effort, &mut report)?;
            println!("\n{}", report.markdown());
            if should_update {
                write_section(group.name, &report)?;
            }
            reports.push(report.json());
        }
    }
    if let Some(file) = argument_after("--json")? {
        let text = format!("{:#}\n", Value::Array(reports));
        fs::write(&file, text).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// How costs grow with keys, limits of a policy, entries of a log, and commands of a pipeline.
fn grow(effort: Effort, report: &mut Report) -> Result<()> {
    memory::grow(effort, report)?;
    resp::grow(effort, report)
}

/// Replaces the figures of a group in the page, and its pictures.
fn write_section(name: &str, report: &Report) -> Result<()> {
    let page = fs::read_to_string(PAGE)?;
    let [begin, end] = ["begin", "end"].map(|part| format!("<!-- {part} {name} -->\n"));
    let section = page.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let (before, after) =
        section.with_context(|| format!("{PAGE} has no lines {begin} and {end}"))?;
    fs::write(PAGE, format!("{before}{begin}\n{}\n{end}{after}", report.markdown().trim_end()))?;
    for curve in &report.growth {
        fs::write(format!("{PICTURES}{}", curve.file()), chart::svg(curve)?)?;
    }
    Ok(())
}

/// The group that the arguments name.
fn named_group() -> Result<Option<String>> {
    let file = argument_after("--json")?;
    let mut names = std::env::args().skip(1);
    let name = names.find(|arg| !arg.starts_with("--") && Some(arg) != file.as_ref());
    if let Some(name) = &name {
        let known: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
        ensure!(
            known.contains(&&**name),
            "unknown group {name}; expected one of {}",
            known.join(", ")
        );
    }
    Ok(name)
}

fn argument_after(flag: &str) -> Result<Option<String>> {
    let mut arguments = std::env::args().skip_while(|arg| arg != flag);
    match (arguments.next(), arguments.next()) {
        (None, _) => Ok(None),
        (Some(_), value) => value.with_context(|| format!("{flag} needs a value")).map(Some),
    }
}
