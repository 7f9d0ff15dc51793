//! `CLIENT`: what a connection says of itself, and hears of itself.

use crate::resp::asking::Asking;
use crate::resp::failure::{Failure, shown};
use crate::resp::table::{Argument, Command, Type};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    arguments: &[
        Argument::new("subcommand", Type::Text),
        Argument::new("argument", Type::Text).optional().multiple(),
    ],
    ..Command::new(
        "client",
        "ID, GETNAME, SETNAME, SETINFO, INFO and LIST are about this connection; NO-EVICT, \
         NO-TOUCH, TRACKING OFF, REPLY ON, CACHING and UNPAUSE change nothing.",
        "connection",
        answer,
    )
};

/// The most bytes of a name.
const MAX_NAME: usize = 128;

/// A word after `CLIENT`: how many arguments there are with it, and what it does.
struct Subcommand {
    name: &'static str,
    arity: usize,
    answer: fn(&mut Asking<'_, '_>) -> Result<(), Failure>,
}

static SUBCOMMANDS: [Subcommand; 14] = [
    Subcommand { name: "id", arity: 2, answer: id },
    Subcommand { name: "getname", arity: 2, answer: name },
    Subcommand { name: "setname", arity: 3, answer: set_name },
    Subcommand { name: "setinfo", arity: 4, answer: set_info },
    Subcommand { name: "info", arity: 2, answer: info },
    Subcommand { name: "list", arity: 2, answer: info },
    Subcommand { name: "no-evict", arity: 3, answer: switch },
    Subcommand { name: "no-touch", arity: 3, answer: switch },
    Subcommand { name: "caching", arity: 3, answer: no_tracking },
    Subcommand { name: "tracking", arity: 3, answer: tracking },
    Subcommand { name: "reply", arity: 3, answer: reply },
    Subcommand { name: "unpause", arity: 2, answer: switch },
    Subcommand { name: "getredir", arity: 2, answer: redirection },
    Subcommand { name: "help", arity: 2, answer: help },
];

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let word = asking.arg(1);
    let found =
        SUBCOMMANDS.iter().find(|subcommand| subcommand.name.as_bytes().eq_ignore_ascii_case(word));
    let Some(found) = found else {
        let shown = shown(word);
        return Err(Failure::bad(format!("unknown subcommand {shown}. Try CLIENT HELP.")));
    };
    // TRACKING has more that may follow, none of which there is.
    if asking.args.len() != found.arity && found.name != "tracking" {
        let name = found.name;
        let detail = format!("wrong number of arguments for 'client|{name}' command");
        return Err(Failure::bad(detail));
    }
    (found.answer)(asking)
}

fn id(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.count(asking.session.id);
    Ok(())
}

fn name(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    match &*asking.session.name {
        "" => asking.out.null(),
        name => asking.out.text(name),
    }
    Ok(())
}

fn set_name(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.session.name = checked("SETNAME", asking.arg(2))?;
    asking.out.ok();
    Ok(())
}

fn set_info(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let [library, version] = &mut asking.session.library;
    let (kept, name) = match asking.args.get(2) {
        Some(args) if args.eq_ignore_ascii_case(b"lib-name") => (library, "lib-name"),
        Some(args) if args.eq_ignore_ascii_case(b"lib-ver") => (version, "lib-ver"),
        other => {
            let shown = shown(other.unwrap_or_default());
            let detail = "write lib-name or lib-ver";
            return Err(Failure::bad(format!("Unrecognized option {shown}; {detail}")));
        }
    };
    *kept = checked(name, asking.args.get(3).unwrap_or_default())?;
    asking.out.ok();
    Ok(())
}

/// A name as lists can show it.
pub(super) fn checked(what: &str, bytes: &[u8]) -> Result<String, Failure> {
    let is_plain = bytes.iter().all(u8::is_ascii_graphic) && bytes.len() <= MAX_NAME;
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_plain);
    text.map(str::to_owned).ok_or_else(|| {
        Failure::bad(format!(
            "{what} is {}; names cannot contain spaces, newlines or special characters, and have \
             at most {MAX_NAME} bytes",
            shown(bytes)
        ))
    })
}

fn info(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let session = &asking.session;
    let protocol = asking.out.protocol.number();
    let [library, version] = &session.library;
    let user = asking.scene.who.map_or("", |who| who.name());
    let line = format!(
        "id={} addr={} name={} db=0 user={user} resp={protocol} lib-name={library} lib-ver={version}\n",
        session.id, asking.scene.remote.peer, session.name,
    );
    asking.out.verbatim(&line);
    Ok(())
}

fn switch(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.ok();
    Ok(())
}

fn tracking(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if !asking.args.get(2).is_some_and(|arg| arg.eq_ignore_ascii_case(b"off")) {
        let detail = "there are no values that a client could keep; send CLIENT TRACKING OFF";
        return Err(Failure::bad(format!("TRACKING is not supported: {detail}")));
    }
    asking.out.ok();
    Ok(())
}

fn no_tracking(_: &mut Asking<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad("CLIENT CACHING can be called only when the client is in tracking mode"))
}

fn reply(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if !asking.arg(2).eq_ignore_ascii_case(b"on") {
        let shown = shown(asking.arg(2));
        return Err(Failure::bad(format!("CLIENT REPLY is ON here, not {shown}")));
    }
    asking.out.ok();
    Ok(())
}

fn redirection(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    // As Redis says where nothing is tracked.
    asking.out.integer(-1);
    Ok(())
}

fn help(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.array(SUBCOMMANDS.len());
    for subcommand in &SUBCOMMANDS {
        asking.out.simple(&format!("CLIENT {}", subcommand.name.to_ascii_uppercase()));
    }
    Ok(())
}
