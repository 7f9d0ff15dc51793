//! Tollgate beside other rate limiters, both sides in the same run.
//!
//! A server has one core and the load another. Each round measures all systems of a row in turn;
//! the report has the median and the spread of the rounds. It compares CPU time per operation: the
//! rate also depends on the load generator, which shares the machine. There are 100,000 keys unless
//! a row names another number. Programs that are not installed are reported, with a way to get
//! them.
//!
//! `cargo xtask bench [GROUP] [--quick] [--json FILE]`; `UPDATE=1` writes the whole report into
//! `docs/benchmarks.md`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod grpc;
mod http;
mod leased;
mod memory;
mod peers;
mod redis;
mod replay;
mod resp;
mod servers;
mod tail;
mod track;

use std::fs;

use anyhow::{Context, Result, ensure};
use bench::report::Report;
use bench::{Effort, machine};

/// Rows that are measured together.
#[derive(Debug)]
struct Group {
    name: &'static str,
    run: fn(Effort, &mut Report) -> Result<()>,
    /// Whether it runs without being named.
    is_default: bool,
}

const GROUPS: &[Group] = &[
    Group { name: "memory", run: memory::run, is_default: true },
    Group { name: "resp", run: resp::run, is_default: true },
    Group { name: "http", run: http::run, is_default: true },
    Group { name: "grpc", run: grpc::run, is_default: true },
    Group { name: "redis", run: redis::run, is_default: true },
    Group { name: "redis-tables", run: redis::run_tables, is_default: false },
    Group { name: "leased", run: leased::run, is_default: true },
    Group { name: "track", run: track::run, is_default: true },
    Group { name: "replay", run: replay::run, is_default: true },
    Group { name: "growth", run: grow, is_default: true },
    Group { name: "tail", run: tail::run, is_default: true },
];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
const BEGIN: &str = "<!-- UPDATE=1 cargo xtask bench writes what follows. -->\n";

fn main() -> Result<()> {
    if let Some(port) = servers::constant_port() {
        return servers::serve_constant(port);
    }
    let Some(effort) = Effort::from_args(5, 20) else { return Ok(()) };
    let mut report = Report { machine: machine::describe()?, ..Report::default() };
    let name = named_group()?;
    for group in GROUPS {
        if name.as_deref().map_or(group.is_default, |name| name == group.name) {
            println!("== {}", group.name);
            (group.run)(effort, &mut report)?;
        }
    }
    println!("\n{}", report.markdown());
    if let Some(file) = argument_after("--json")? {
        fs::write(&file, report.json()).with_context(|| format!("cannot write {file}"))?;
    }
    if std::env::var_os("UPDATE").is_some() {
        ensure!(
            name.is_none() && effort.divisor == 1,
            "UPDATE=1 needs the whole run: omit {}",
            name.as_deref().unwrap_or("--quick")
        );
        write_page(&report)?;
    }
    Ok(())
}

/// How costs grow with keys, limits of a policy, entries of a log, and commands of a pipeline.
fn grow(effort: Effort, report: &mut Report) -> Result<()> {
    memory::grow(effort, report)?;
    resp::grow(effort, report)
}

/// Replaces the figures at the end of the page.
fn write_page(report: &Report) -> Result<()> {
    let page = fs::read_to_string(PAGE)?;
    let (text, _) =
        page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    fs::write(PAGE, format!("{text}{BEGIN}\n{}", report.markdown()))?;
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
