//! Commands about the server: `INFO`, `CONFIG`, `DBSIZE`, `TIME`, `ROLE`, and the answers that
//! clients of clusters and sentinels look for.

use std::fmt::Write;

use crate::command::{Argument, Command, Flag};
use crate::context::CommandContext;
use crate::failure::{Failure, quoted};
use tollgate_config::Scope;

/// The version of Redis that clients see.
pub(super) const REDIS_VERSION: &str = "7.4.0";

const GROUP: &str = "server";

pub(super) const COMMANDS: [Command; 7] = [
    Command::new(
        "info",
        "Returns the sections server, clients, persistence, replication, cluster and keyspace.",
        GROUP,
        info,
    )
    .with_arguments(&[Argument::text("section").optional().multiple()]),
    Command {
        // `CONFIG` with any other subcommand gets an explanation.
        arity: -2,
        ..Command::new(
            "config",
            "CONFIG GET returns nothing: the daemon is configured by its file.",
            GROUP,
            config,
        )
        .with_arguments(&[Argument::token("get", "GET"), Argument::text("parameter").multiple()])
    },
    Command {
        scopes: &[Scope::Read],
        ..Command::new("dbsize", "Returns the number of keys in memory.", GROUP, dbsize)
            .with_flags(&[Flag::ReadOnly])
    },
    Command::new(
        "time",
        "Returns the time in seconds since 1970, and the microseconds of the second.",
        GROUP,
        time,
    ),
    Command::new("role", "Returns that this is a master without replicas.", GROUP, role),
    Command {
        arity: -1,
        ..Command::new("cluster", "Not supported: the daemon is not a cluster.", GROUP, |_| {
            Err(Failure::bad("This instance has cluster support disabled"))
        })
    },
    Command {
        arity: -1,
        ..Command::new("sentinel", "Not supported: the daemon is not a sentinel.", GROUP, |_| {
            let detail = "this is not a sentinel; configure its address in the client as a server";
            Err(Failure::bad(detail))
        })
    },
];

/// A section of `INFO`: its name, and the function that writes it.
type Section = (&'static str, fn(&mut String, &CommandContext<'_, '_>));

static SECTIONS: [Section; 6] = [
    ("Server", server_section),
    ("Clients", clients_section),
    ("Persistence", |text, _| text.push_str("loading:0\r\n")),
    ("Replication", |text, _| text.push_str("role:master\r\nconnected_slaves:0\r\n")),
    ("Cluster", |text, _| text.push_str("cluster_enabled:0\r\n")),
    ("Keyspace", keyspace_section),
];

fn info(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let is_requested = |name: &str| {
        let names = [&b"all"[..], b"everything", b"default", name.as_bytes()];
        context.args.len() == 1
            || context
                .args
                .from(1)
                .any(|arg| names.iter().any(|name| arg.eq_ignore_ascii_case(name)))
    };
    let mut text = String::new();
    for (name, write_section) in SECTIONS.iter().filter(|section| is_requested(section.0)) {
        let separator = if text.is_empty() { "" } else { "\r\n" };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{separator}# {name}\r\n");
        write_section(&mut text, context);
    }
    context.out.verbatim(&text);
    Ok(())
}

fn server_section(text: &mut String, context: &CommandContext<'_, '_>) {
    let engine = context.batch.engine;
    let uptime = engine.clock().now().duration_since(engine.started()).get() / 1_000_000;
    let _ = write!(
        text,
        "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ntollgate_version:{}\r\n\
         process_id:{}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        uptime / 86_400,
    );
}

fn clients_section(text: &mut String, context: &CommandContext<'_, '_>) {
    let connected = context.batch.state.connections.count();
    let max = context.batch.active.bounds.connections;
    let _ = write!(text, "connected_clients:{connected}\r\nmaxclients:{max}\r\n");
}

/// As in Redis, empty without keys.
fn keyspace_section(text: &mut String, context: &CommandContext<'_, '_>) {
    let keys = context.batch.engine_batch.memory().map_or(0, |memory| memory.stats().keys);
    if keys > 0 {
        let _ = write!(text, "db0:keys={keys},expires={keys},avg_ttl=0\r\n");
    }
}

fn config(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let subcommand = context.arg(1);
    if !subcommand.eq_ignore_ascii_case(b"get") {
        let detail = "the daemon is configured by its file, which is reloaded when it changes";
        let subcommand = quoted(subcommand);
        return Err(Failure::bad(format!("CONFIG {subcommand} is not supported; {detail}")));
    }
    if context.args.len() < 3 {
        return Err(context.wrong_arity());
    }
    context.out.map(0);
    Ok(())
}

fn dbsize(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let Some(memory) = context.batch.engine_batch.memory() else {
        return Err(Failure::bad("the keys are in the store; send DBSIZE to that"));
    };
    context.out.size(memory.stats().keys);
    Ok(())
}

fn time(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let now = match context.batch.engine_batch.memory() {
        Some(memory) => memory.now(),
        None => context.batch.engine.clock().now(),
    };
    let micros = now.as_micros();
    context.out.array(2);
    context.out.text(&(micros / 1_000_000).to_string());
    context.out.text(&(micros % 1_000_000).to_string());
    Ok(())
}

fn role(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.out.array(3);
    context.out.text("master");
    context.out.integer(0);
    context.out.array(0);
    Ok(())
}
