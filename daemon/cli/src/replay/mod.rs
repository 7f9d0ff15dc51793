//! `tollgate replay`: replays a log through limits.

pub(crate) mod arguments;
mod context;
mod decisions;
mod interrupt;
mod key_extractor;
mod outputs;
mod plan;
mod progress;
mod rule_extractor;
mod share;
mod stores;
mod traffic;

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use tollgate::parse_duration;
use tollgate_replay::input::Input;
use tollgate_replay::log::{Fields, Format, TimeUnit};
use tollgate_replay::report::Report;
use tollgate_replay::{DecisionRecord, Log, Options, operations};

use arguments::{LogFormat, Replay, Stamps, Unit};
use decisions::Decisions;
use plan::ReplayPlan;
use progress::Bar;

/// The exit code after a signal: 128 plus the number of the signal.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &Replay) -> Result<ExitCode> {
    let options = options(arguments)?;
    if let (Some(text), Some(file)) = (&arguments.generate, &arguments.write_log) {
        return traffic::write(text, file);
    }
    let stop = interrupt::stop_flag()?;
    let plan = ReplayPlan::from_arguments(arguments)?;
    // An output that cannot be written is an error before a long replay.
    let outputs = outputs::Outputs::open(arguments)?;
    let bar = Bar::new();
    let report = replay(arguments, &plan, options, stop, &bar);
    bar.finish();
    let mut report = report?;
    report.source.command = Some(Replay::command());
    if report.source.names.is_empty() {
        // An empty file has no block that names it.
        let names = arguments.logs.iter().map(|log| log.display().to_string());
        report.source.names = names.collect();
    }
    outputs.write(&report)?;
    if let Some(error) = report.source.failed {
        bail!(error);
    }
    reject_undecided(&report)?;
    let interrupted = report.source.interrupted;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn replay(
    arguments: &Replay,
    plan: &ReplayPlan,
    options: Options,
    stop: &'static std::sync::atomic::AtomicBool,
    bar: &Bar,
) -> Result<Report> {
    let mut progress = |progress| bar.show(progress);
    let replay = tollgate_replay::Replay {
        candidates: &plan.candidates,
        options,
        stop,
        progress: &mut progress,
    };
    if let Some(text) = &arguments.generate {
        plan.reject_concurrent()?;
        return Ok(replay.synthetic(&traffic::parse(text)?, text.clone())?);
    }
    let mut log = log(arguments, plan)?;
    let has_operations = arguments.verbs || log.has_operations(stop)?;
    if !has_operations {
        plan.reject_concurrent()?;
    }
    let is_sequential =
        has_operations || arguments.store.is_some() || arguments.decisions.is_some();
    if plan.is_plain && !is_sequential {
        return Ok(replay.parallel(log, &*plan.extractor)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stores = stores::Stores::open(arguments, plan).await?;
        let mut decisions = Decisions::open(arguments, plan)?;
        let output = &mut |record: &DecisionRecord<'_>| decisions.write(record);
        let report = replay.sequential(log, &*plan.extractor, &stores.all, output).await;
        let cleanup = stores.flush().await;
        decisions.finish()?;
        let report = report?;
        cleanup.map(|()| report)
    })
}

/// The log and the mapping of its fields.
fn log(arguments: &Replay, plan: &ReplayPlan) -> Result<Log> {
    let mut fields = Fields::default();
    for text in &arguments.fields {
        fields.assign(text).map_err(|error| anyhow!("--field {text:?}: {error}"))?;
    }
    for name in &plan.headers {
        fields.want(&format!("header.{name}"))?;
    }
    // In other JSON logs, `verb` is the method and `request_id` a trace id.
    if arguments.verbs {
        for name in operations::FIELDS {
            fields.want(name)?;
        }
    }
    fields.set_time_unit(match arguments.time_unit {
        Unit::S => TimeUnit::Seconds,
        Unit::Ms => TimeUnit::Millis,
        Unit::Us => TimeUnit::Micros,
        Unit::Ns => TimeUnit::Nanos,
    });
    let format = arguments.format.map(|format| match format {
        LogFormat::Common => Format::Common,
        LogFormat::Combined => Format::Combined,
        LogFormat::Json => Format::Json,
        LogFormat::Csv => Format::Csv,
    });
    Ok(Log::new(Input::open(&arguments.logs), format, fields))
}

fn options(arguments: &Replay) -> Result<Options> {
    let default = Options::default();
    let reorder = parse_duration(&arguments.reorder)
        .map_err(|error| anyhow!("--reorder {:?}: {error}", arguments.reorder))?;
    Ok(Options {
        threads: arguments.threads.map_or(default.threads, usize::from),
        reorder,
        spread: arguments.stamps == Stamps::Spread,
        strict: arguments.strict,
        worst: arguments.worst,
        suggest: arguments.suggest.as_deref().map(share::parts_per_million).transpose()?,
    })
}

/// Fails if lines were read but none was decided.
fn reject_undecided(report: &Report) -> Result<()> {
    let source = &report.source;
    if source.lines == 0 || source.interrupted || report.offered.requests > 0 {
        return Ok(());
    }
    if source.invalid == source.lines {
        bail!("no line could be read; the reasons are above");
    }
    if source.keyless > 0 {
        bail!(
            "no line had a key; --key selects its source, and --field names a field of JSON or CSV; the \
             combined format has no headers except Referer and User-Agent"
        );
    }
    if source.unruled > 0 {
        bail!("no rule matched any line; check the paths and methods of the rules");
    }
    Ok(())
}
