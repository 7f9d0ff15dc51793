//! `HELLO`: which version of the protocol is spoken from here on, by whom, under which name.

use super::{auth, client};
use crate::resp::asking::Asking;
use crate::resp::failure::{Failure, shown};
use crate::resp::out::Protocol;
use crate::resp::table::{Argument, Command, Flag, Type};

pub(super) const COMMAND: Command = Command {
    arity: -1,
    flags: &[Flag::Fast, Flag::NoAuth],
    arguments: &[
        Argument::new("protover", Type::Integer).optional(),
        Argument::new("name token", Type::Text).after("AUTH").optional(),
        Argument::new("clientname", Type::Text).after("SETNAME").optional(),
    ],
    ..Command::new(
        "hello",
        "Chooses RESP2 or RESP3, shows a token, names the connection; says who is here.",
        "connection",
        answer,
    )
};

/// Which version of Redis clients may take this for.
pub(super) const REDIS_VERSION: &str = "7.4.0";

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let mut protocol = asking.out.protocol;
    if let Some(asked) = asking.args.get(1) {
        let number = std::str::from_utf8(asked).ok().and_then(|x| x.parse::<i64>().ok());
        let Some(number) = number else {
            let detail = "Protocol version is not an integer or out of range";
            return Err(Failure::bad(format!("{detail}: {}; write 2 or 3", shown(asked))));
        };
        protocol = u8::try_from(number).ok().and_then(Protocol::of_number).ok_or_else(|| {
            Failure::of("NOPROTO", format!("unsupported protocol version {number}; write 2 or 3"))
        })?;
    }
    let mut name = None;
    let mut at = 2;
    while let Some(word) = asking.args.get(at) {
        match (asking.args.get(at + 1), asking.args.get(at + 2)) {
            (Some(user), Some(secret)) if word.eq_ignore_ascii_case(b"AUTH") => {
                auth::authenticate(asking, Some(user), secret)?;
                at += 3;
            }
            (Some(given), _) if word.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(client::checked("SETNAME", given)?);
                at += 2;
            }
            _ => {
                let detail = "write HELLO 3 [AUTH name token] [SETNAME name]";
                let shown = shown(word);
                return Err(Failure::bad(format!("Syntax error in HELLO at {shown}; {detail}")));
            }
        }
    }
    if asking.scene.who.is_none() {
        let detail = "HELLO must be called with the client already authenticated, otherwise write \
                      HELLO 3 AUTH default TOKEN";
        return Err(Failure::of("NOAUTH", detail));
    }
    asking.out.protocol = protocol;
    if let Some(name) = name {
        asking.session.name = name;
    }
    write(asking);
    Ok(())
}

fn write(asking: &mut Asking<'_, '_>) {
    let (out, id) = (&mut *asking.out, asking.session.id);
    out.map(7);
    // Clients choose by these two what they may send.
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
