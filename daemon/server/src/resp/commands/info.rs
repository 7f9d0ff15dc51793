//! `INFO`: what clients look up before they send anything.

use std::fmt::Write;

use super::hello::REDIS_VERSION;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Argument, Command, Type};
use crate::role::Role;

pub(super) const COMMAND: Command = Command {
    arity: -1,
    arguments: &[Argument::new("section", Type::Text).optional().multiple()],
    ..Command::new(
        "info",
        "Answers what runs here: server, clients, persistence, replication, cluster, keyspace.",
        "server",
        answer,
    )
};

/// A section: its name, and what writes it.
type Section = (&'static str, fn(&mut String, &Asking<'_, '_>));

static SECTIONS: [Section; 6] = [
    ("Server", server),
    ("Clients", clients),
    ("Persistence", |text, _| text.push_str("loading:0\r\n")),
    ("Replication", |text, _| text.push_str("role:master\r\nconnected_slaves:0\r\n")),
    ("Cluster", |text, _| text.push_str("cluster_enabled:0\r\n")),
    ("Keyspace", keyspace),
];

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let is_all = |x: &[u8]| {
        [&b"all"[..], b"everything", b"default"].iter().any(|all| x.eq_ignore_ascii_case(all))
    };
    let is_asked = |name: &str| {
        let named = |x: &[u8]| is_all(x) || x.eq_ignore_ascii_case(name.as_bytes());
        asking.args.len() == 1 || asking.args.from(1).any(named)
    };
    let mut text = String::new();
    for (name, write_section) in SECTIONS.iter().filter(|section| is_asked(section.0)) {
        let between = if text.is_empty() { "" } else { "\r\n" };
        // Writing to a string does not fail.
        let _ = write!(text, "{between}# {name}\r\n");
        write_section(&mut text, asking);
    }
    asking.out.verbatim(&text);
    Ok(())
}

fn server(text: &mut String, asking: &Asking<'_, '_>) {
    let daemon = asking.scene.daemon;
    let uptime = daemon.resp.uptime(daemon.clock.now()).get() / 1_000_000;
    let _ = write!(
        text,
        "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ntollgate_version:{}\r\n\
         process_id:{}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        uptime / 86_400,
    );
}

fn clients(text: &mut String, asking: &Asking<'_, '_>) {
    let daemon = asking.scene.daemon;
    let (now, most) = (daemon.places(Role::Resp).count(), asking.scene.live.bounds.connections);
    let _ = write!(text, "connected_clients:{now}\r\nmaxclients:{most}\r\n");
}

/// As Redis has it, nothing where there is no key.
fn keyspace(text: &mut String, asking: &Asking<'_, '_>) {
    let keys = asking.scene.memory.map_or(0, |memory| memory.usage().keys);
    if keys > 0 {
        let _ = write!(text, "db0:keys={keys},expires={keys},avg_ttl=0\r\n");
    }
}
