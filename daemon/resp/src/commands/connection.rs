//! Commands about the connection: `HELLO`, `AUTH`, `PING`, `ECHO`, `SELECT`, `CLIENT`, `RESET`,
//! `QUIT` and those of cluster clients.

use tollgate_engine::Digest;

use super::server::REDIS_VERSION;
use crate::command::{Argument, Command, Flag, Function};
use crate::context::CommandContext;
use crate::failure::{Failure, quoted};
use crate::reply_buffer::Protocol;

const GROUP: &str = "connection";

pub(super) const COMMANDS: [Command; 10] = [
    Command::new(
        "hello",
        "Selects RESP2 or RESP3, authenticates, names the connection; returns the server's \
         properties.",
        GROUP,
        hello,
    )
    .with_flags(&[Flag::Fast, Flag::NoAuth])
    .with_arguments(&[
        Argument::integer("protover").optional(),
        Argument::text("name token").after("AUTH").optional(),
        Argument::text("clientname").after("SETNAME").optional(),
    ]),
    Command::new("auth", "Authenticates with a token, with or without its name.", GROUP, auth)
        .with_flags(&[Flag::Fast, Flag::NoAuth])
        .with_arguments(&[Argument::text("name").optional(), Argument::text("token")]),
    Command::new("ping", "Returns PONG, or the message.", GROUP, ping)
        .with_arguments(&[Argument::text("message").optional()]),
    Command::new("echo", "Returns the message.", GROUP, |context| {
        context.out.bulk(context.arg(1));
        Ok(())
    })
    .with_arguments(&[Argument::text("message")]),
    Command::new("select", "Selects a database; only 0 exists.", GROUP, select)
        .with_arguments(&[Argument::integer("index")]),
    Command::new(
        "client",
        "ID, GETNAME, SETNAME, SETINFO, INFO and LIST are about this connection; NO-EVICT, \
         NO-TOUCH, TRACKING OFF, REPLY ON, CACHING and UNPAUSE change nothing.",
        GROUP,
        client,
    )
    .with_arguments(&[
        Argument::text("subcommand"),
        Argument::text("argument").optional().multiple(),
    ]),
    Command::new("readonly", "Does nothing: there are no replicas.", GROUP, ok),
    Command::new("readwrite", "Does nothing: there are no replicas.", GROUP, ok),
    Command::new(
        "reset",
        "Clears the token, the name, the protocol version and queued commands.",
        GROUP,
        reset,
    )
    .with_flags(ALWAYS),
    Command {
        // Arguments are ignored.
        arity: -1,
        ..Command::new("quit", "Closes the connection.", GROUP, quit).with_flags(ALWAYS)
    },
];

/// Before authentication, and within a transaction.
const ALWAYS: &[Flag] = &[Flag::Fast, Flag::NoAuth, Flag::NotQueued];

fn hello(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let mut protocol = context.out.protocol;
    if let Some(version) = context.args.get(1) {
        let number = std::str::from_utf8(version).ok().and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number else {
            let detail = "Protocol version is not an integer or out of range";
            return Err(Failure::bad(format!("{detail}: {}; write 2 or 3", quoted(version))));
        };
        protocol = u8::try_from(number).ok().and_then(Protocol::from_number).ok_or_else(|| {
            Failure::new("NOPROTO", format!("unsupported protocol version {number}; write 2 or 3"))
        })?;
    }
    let mut name = None;
    let mut position = 2;
    while let Some(option) = context.args.get(position) {
        match (context.args.get(position + 1), context.args.get(position + 2)) {
            (Some(user), Some(secret)) if option.eq_ignore_ascii_case(b"AUTH") => {
                authenticate(context, Some(user), secret)?;
                position += 3;
            }
            (Some(value), _) if option.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(parse_name("SETNAME", value)?);
                position += 2;
            }
            _ => {
                let detail = "write HELLO 3 [AUTH name token] [SETNAME name]";
                let shown = quoted(option);
                return Err(Failure::bad(format!("Syntax error in HELLO at {shown}; {detail}")));
            }
        }
    }
    if context.batch.principal.is_none() {
        let detail = "HELLO must be called with the client already authenticated, otherwise write \
                      HELLO 3 AUTH default TOKEN";
        return Err(Failure::new("NOAUTH", detail));
    }
    context.out.protocol = protocol;
    if let Some(name) = name {
        context.session.name = name;
    }
    write_hello(context);
    Ok(())
}

fn write_hello(context: &mut CommandContext<'_, '_>) {
    let (out, id) = (&mut *context.out, context.session.id);
    out.map(7);
    // Clients decide by these two which commands they send.
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        out.text(name);
        out.text(value);
    }
    out.text("proto");
    out.integer(out.protocol.number().into());
    out.text("id");
    out.count(id);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        out.text(name);
        out.text(value);
    }
    out.text("modules");
    out.array(0);
}

fn auth(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    match (context.args.len(), context.args.get(1), context.args.get(2)) {
        (2, Some(secret), _) => authenticate(context, None, secret)?,
        (3, Some(name), Some(secret)) => authenticate(context, Some(name), secret)?,
        _ => return Err(context.wrong_arity()),
    }
    context.out.ok();
    Ok(())
}

/// Authenticates the connection. Clients without a configured name send `default`.
fn authenticate(
    context: &mut CommandContext<'_, '_>,
    name: Option<&[u8]>,
    secret: &[u8],
) -> Result<(), Failure> {
    let access = &context.batch.active.access;
    if access.is_open() {
        return Err(Failure::bad(
            "AUTH called without any token configured; leave it out, or configure tokens",
        ));
    }
    let digest = Digest::new(secret);
    let principal = access.find(&digest).filter(|principal| match name {
        None | Some(b"default") => true,
        Some(name) => principal.name().as_bytes() == name,
    });
    let Some(principal) = principal else {
        context.batch.engine.report_unauthenticated(context.batch.remote);
        context.session.has_wrong_token = true;
        let detail = "invalid username-password pair or user is disabled; send AUTH TOKEN with a \
                      token that is configured in tokens";
        return Err(Failure::new("WRONGPASS", detail));
    };
    context.batch.principal = Some(principal);
    context.batch.remote.authentication.finish();
    context.session.token = Some(digest);
    Ok(())
}

fn ping(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    match (context.args.len(), context.args.get(1)) {
        (1, _) => context.out.simple("PONG"),
        (2, Some(message)) => context.out.bulk(message),
        _ => return Err(context.wrong_arity()),
    }
    Ok(())
}

fn select(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if context.arg(1) != b"0" {
        let index = quoted(context.arg(1));
        return Err(Failure::bad(format!("DB index is out of range: {index}; only 0 exists")));
    }
    context.out.ok();
    Ok(())
}

fn reset(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.session.reset();
    context.out.protocol = Protocol::default();
    let (remote, access) = (context.batch.remote, &context.batch.active.access);
    context.batch.principal = context.session.principal(remote, access);
    context.out.simple("RESET");
    Ok(())
}

/// Closes the connection once everything before is answered.
fn quit(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.out.ok();
    context.session.is_closing = true;
    Ok(())
}

/// The longest name of a connection or library, in bytes.
const MAX_NAME_LEN: usize = 128;

/// The subcommands of `CLIENT`, with their numbers of arguments, including both names.
static SUBCOMMANDS: [(&str, usize, Function); 14] = [
    ("id", 2, client_id),
    ("getname", 2, get_name),
    ("setname", 3, set_name),
    ("setinfo", 4, set_info),
    ("info", 2, client_info),
    ("list", 2, client_info),
    ("no-evict", 3, ok),
    ("no-touch", 3, ok),
    ("caching", 3, client_caching),
    ("tracking", 3, client_tracking),
    ("reply", 3, client_reply),
    ("unpause", 2, ok),
    ("getredir", 2, client_getredir),
    ("help", 2, client_help),
];

fn client(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let word = context.arg(1);
    let subcommand =
        SUBCOMMANDS.iter().find(|(name, ..)| name.as_bytes().eq_ignore_ascii_case(word));
    let Some((name, arity, execute)) = subcommand else {
        let shown = quoted(word);
        return Err(Failure::bad(format!("unknown subcommand {shown}. Try CLIENT HELP.")));
    };
    // TRACKING accepts any further arguments, none of which has an effect.
    if context.args.len() != *arity && *name != "tracking" {
        let detail = format!("wrong number of arguments for 'client|{name}' command");
        return Err(Failure::bad(detail));
    }
    execute(context)
}

fn client_id(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.out.count(context.session.id);
    Ok(())
}

fn get_name(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    match &*context.session.name {
        "" => context.out.null(),
        name => context.out.text(name),
    }
    Ok(())
}

fn set_name(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.session.name = parse_name("SETNAME", context.arg(2))?;
    context.out.ok();
    Ok(())
}

fn set_info(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let (option, value) = (context.arg(2), context.arg(3));
    let [library, version] = &mut context.session.library;
    if option.eq_ignore_ascii_case(b"lib-name") {
        *library = parse_name("lib-name", value)?;
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        *version = parse_name("lib-ver", value)?;
    } else {
        let (option, detail) = (quoted(option), "expected lib-name or lib-ver");
        return Err(Failure::bad(format!("Unrecognized option {option}; {detail}")));
    }
    context.out.ok();
    Ok(())
}

/// Parses a name without spaces or special characters.
fn parse_name(what: &str, bytes: &[u8]) -> Result<String, Failure> {
    let is_plain = bytes.iter().all(u8::is_ascii_graphic) && bytes.len() <= MAX_NAME_LEN;
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_plain);
    text.map(str::to_owned).ok_or_else(|| {
        Failure::bad(format!(
            "{what} is {}; names cannot contain spaces, newlines or special characters, and have \
             at most {MAX_NAME_LEN} bytes",
            quoted(bytes)
        ))
    })
}

fn client_info(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let session = &context.session;
    let protocol = context.out.protocol.number();
    let [library, version] = &session.library;
    let user = context.batch.principal.map_or("", |principal| principal.name());
    let line = format!(
        "id={} addr={} name={} db=0 user={user} resp={protocol} lib-name={library} \
         lib-ver={version}\n",
        session.id, context.batch.remote.peer, session.name,
    );
    context.out.verbatim(&line);
    Ok(())
}

fn ok(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.out.ok();
    Ok(())
}

fn client_tracking(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if !context.args.get(2).is_some_and(|arg| arg.eq_ignore_ascii_case(b"off")) {
        let detail = "there are no values to cache; send CLIENT TRACKING OFF";
        return Err(Failure::bad(format!("TRACKING is not supported: {detail}")));
    }
    context.out.ok();
    Ok(())
}

fn client_caching(_: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad("CLIENT CACHING can be called only when the client is in tracking mode"))
}

fn client_reply(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if !context.arg(2).eq_ignore_ascii_case(b"on") {
        let shown = quoted(context.arg(2));
        return Err(Failure::bad(format!("CLIENT REPLY supports ON only, not {shown}")));
    }
    context.out.ok();
    Ok(())
}

fn client_getredir(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    // The reply of Redis where nothing is tracked.
    context.out.integer(-1);
    Ok(())
}

fn client_help(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    context.out.array(SUBCOMMANDS.len());
    for (name, ..) in &SUBCOMMANDS {
        context.out.simple(&format!("CLIENT {}", name.to_ascii_uppercase()));
    }
    Ok(())
}
