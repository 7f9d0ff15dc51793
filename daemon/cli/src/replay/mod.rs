//! `tollgate replay`: a log through limits.

pub(crate) mod arguments;
mod asking;
mod decisions;
mod facts;
mod interrupt;
mod keyed;
mod nothing;
mod outputs;
mod progress;
mod ruled;
mod share;
mod stores;
mod traffic;

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use tollgate::parse_duration;
use tollgate_replay::input::Input;
use tollgate_replay::log::{Fields, Format, TimeUnit};
use tollgate_replay::report::Report;
use tollgate_replay::{Answered, Log, Options, verbs};

use arguments::{LogFormat, Replay, Stamps, Unit};
use asking::Asking;
use decisions::Decisions;
use progress::Bar;

/// What an interrupted command exits with: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &Replay) -> Result<ExitCode> {
    let options = options(arguments)?;
    if let (Some(text), Some(file)) = (&arguments.generate, &arguments.write_log) {
        return traffic::write(text, file);
    }
    let stop = interrupt::flag()?;
    let asking = Asking::of(arguments)?;
    // What cannot be written is found before an hour's work, not after.
    let outputs = outputs::Outputs::open(arguments)?;
    let bar = Bar::new();
    let report = replay(arguments, &asking, options, stop, &bar);
    bar.finish();
    let mut report = report?;
    report.source.command = Some(Replay::command());
    if report.source.names.is_empty() {
        // A file without a line is named by nobody else.
        let names = arguments.logs.iter().map(|log| log.display().to_string());
        report.source.names = names.collect();
    }
    outputs.write(&report)?;
    if let Some(why) = report.source.failed {
        bail!(why);
    }
    nothing::refuse(&report)?;
    let interrupted = report.source.interrupted;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn replay(
    arguments: &Replay,
    asking: &Asking,
    options: Options,
    stop: &'static std::sync::atomic::AtomicBool,
    bar: &Bar,
) -> Result<Report> {
    let mut progress = |x| bar.show(x);
    let replay = tollgate_replay::Replay {
        alternatives: &asking.alternatives,
        options,
        stop,
        progress: &mut progress,
    };
    if let Some(text) = &arguments.generate {
        asking.refuse_concurrent()?;
        return Ok(replay.generated(&traffic::of(text)?, text.clone())?);
    }
    let mut log = log(arguments, asking)?;
    let has_verbs = arguments.verbs || log.has_verbs(stop)?;
    if !has_verbs {
        asking.refuse_concurrent()?;
    }
    let is_one_by_one = has_verbs || arguments.store.is_some() || arguments.decisions.is_some();
    if asking.is_plain && !is_one_by_one {
        return Ok(replay.by_key(log, &*asking.ask)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stores = stores::Stores::open(arguments, asking).await?;
        let mut decisions = Decisions::open(arguments, asking)?;
        let tell = &mut |answered: &Answered<'_>| decisions.tell(answered);
        let done = replay.together(log, &*asking.ask, &stores.all, tell).await;
        let erased = stores.erase().await;
        decisions.finish()?;
        let report = done?;
        erased.map(|()| report)
    })
}

/// The log, and how its lines are read.
fn log(arguments: &Replay, asking: &Asking) -> Result<Log> {
    let mut fields = Fields::default();
    for text in &arguments.fields {
        fields.assign(text).map_err(|error| anyhow!("--field {text:?}: {error}"))?;
    }
    for name in &asking.headers {
        fields.want(&format!("header.{name}"))?;
    }
    // Other logs of JSON have `verb` and `request_id` too, and mean the method and a trace.
    if arguments.verbs {
        for name in verbs::FIELDS {
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
    let usual = Options::default();
    let reorder = parse_duration(&arguments.reorder)
        .map_err(|error| anyhow!("--reorder {:?}: {error}", arguments.reorder))?;
    Ok(Options {
        threads: arguments.threads.map_or(usual.threads, usize::from),
        reorder,
        spread: arguments.stamps == Stamps::Spread,
        strict: arguments.strict,
        worst: arguments.worst,
        suggest: arguments.suggest.as_deref().map(share::parts_per_million).transpose()?,
    })
}
