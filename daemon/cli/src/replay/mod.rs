//! `tollgate replay`: replays a log through limits.

pub(crate) mod arguments;
mod decisions;
mod extractors;
mod interrupt;
mod outputs;
mod plan;
mod stores;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use tollgate::parse_duration;
use tollgate_replay::generate::{Traffic, write_combined};
use tollgate_replay::input::Input;
use tollgate_replay::log::{Fields, Format, OPERATION_FIELDS, TimeUnit};
use tollgate_replay::report::Report;
use tollgate_replay::{DecisionRecord, Log, Options};

use arguments::{LogFormat, Replay, Stamps, Unit, parts_per_million};
use decisions::Decisions;
use outputs::{Bar, Outputs};
use plan::ReplayPlan;
pub(crate) use plan::read_overrides_files;

/// The exit code after a signal: 128 plus the number of the signal.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &Replay) -> Result<ExitCode> {
    let options = options(arguments)?;
    if let (Some(text), Some(file)) = (&arguments.generate, &arguments.write_log) {
        write_traffic(text, file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = interrupt::stop_flag()?;
    let plan = ReplayPlan::from_arguments(arguments)?;
    // An output that cannot be written is an error before a long replay.
    let outputs = Outputs::open(arguments)?;
    let bar = Bar::new();
    let report = replay(arguments, &plan, options, stop, &bar);
    bar.finish();
    let mut report = report?;
    report.source.command = Some(Replay::command());
    report.source.key_alternatives = plan.alternatives.lines();
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
        return Ok(replay.synthetic(&parse_traffic(text)?, text.clone())?);
    }
    let mut log = log(arguments, plan)?;
    let has_operations = arguments.log.verbs || log.has_operations(stop)?;
    if !has_operations {
        plan.reject_concurrent()?;
    }
    let is_sequential =
        has_operations || arguments.limits.store.is_some() || arguments.report.decisions.is_some();
    if plan.is_plain && !is_sequential {
        return Ok(replay.parallel(log, &*plan.extractor)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stores = stores::open(arguments, plan).await?;
        let decisions = arguments.report.decisions.as_deref();
        let mut decisions = decisions.map(|path| Decisions::open(path, plan)).transpose()?;
        let output = &mut |record: &DecisionRecord<'_>| match &mut decisions {
            Some(decisions) => decisions.write(record),
            None => Ok(()),
        };
        let report = replay.sequential(log, &*plan.extractor, &stores, output).await;
        let cleanup = stores::flush(&stores).await;
        if let Some(decisions) = decisions {
            decisions.finish()?;
        }
        let report = report?;
        cleanup.map(|()| report)
    })
}

fn parse_traffic(text: &str) -> Result<Traffic> {
    text.parse().map_err(|error| anyhow!("--generate {text:?}: {error}"))
}

/// Writes synthetic traffic as an access log.
fn write_traffic(text: &str, to: &Path) -> Result<()> {
    let traffic = parse_traffic(text)?;
    let write = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(to)?);
        write_combined(&traffic, &mut file)?;
        file.flush()
    };
    write().with_context(|| to.display().to_string())
}

/// The log and the mapping of its fields.
fn log(arguments: &Replay, plan: &ReplayPlan) -> Result<Log> {
    let mut fields = Fields::default();
    for text in &arguments.log.fields {
        fields.assign(text).map_err(|error| anyhow!("--field {text:?}: {error}"))?;
    }
    for name in &plan.headers {
        fields.want(&format!("header.{name}"))?;
    }
    // In other JSON logs, `verb` is the method and `request_id` a trace id.
    if arguments.log.verbs {
        for name in OPERATION_FIELDS {
            fields.want(name)?;
        }
    }
    fields.set_time_unit(match arguments.log.time_unit {
        Unit::S => TimeUnit::Seconds,
        Unit::Ms => TimeUnit::Millis,
        Unit::Us => TimeUnit::Micros,
        Unit::Ns => TimeUnit::Nanos,
    });
    let format = arguments.log.format.map(|format| match format {
        LogFormat::Common => Format::Common,
        LogFormat::Combined => Format::Combined,
        LogFormat::Json => Format::Json,
        LogFormat::Csv => Format::Csv,
    });
    Ok(Log::new(Input::open(&arguments.logs), format, fields))
}

fn options(arguments: &Replay) -> Result<Options> {
    let default = Options::default();
    let reorder = parse_duration(&arguments.log.reorder)
        .map_err(|error| anyhow!("--reorder {:?}: {error}", arguments.log.reorder))?;
    Ok(Options {
        threads: arguments.log.threads.map_or(default.threads, usize::from),
        reorder,
        spread: arguments.log.stamps == Stamps::Spread,
        strict: arguments.log.strict,
        worst: arguments.report.worst,
        suggest: arguments.limits.suggest.as_deref().map(parts_per_million).transpose()?,
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
            "no line had a key; --key selects its source, and --field names a field of JSON or CSV; \
             the combined format has no headers except Referer and User-Agent"
        );
    }
    if source.unruled > 0 {
        bail!("no rule matched any line; check the paths and methods of the rules");
    }
    Ok(())
}
