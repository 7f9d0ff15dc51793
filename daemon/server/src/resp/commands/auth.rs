//! `AUTH`: shows a token.

use crate::access::{Digest, Who};
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Argument, Command, Flag, Type};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    flags: &[Flag::Fast, Flag::NoAuth],
    arguments: &[Argument::new("name", Type::Text).optional(), Argument::new("token", Type::Text)],
    ..Command::new("auth", "Shows a token, with its name or without.", "connection", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    match (asking.args.len(), asking.args.get(1), asking.args.get(2)) {
        (2, Some(secret), _) => authenticate(asking, None, secret)?,
        (3, Some(name), Some(secret)) => authenticate(asking, Some(name), secret)?,
        _ => return Err(asking.wrong_number()),
    }
    asking.out.ok();
    Ok(())
}

/// Takes a token, if it is one; `default` is a name that clients send where they were told none.
pub(super) fn authenticate(
    asking: &mut Asking<'_, '_>,
    name: Option<&[u8]>,
    secret: &[u8],
) -> Result<(), Failure> {
    let scene = &mut asking.scene;
    if scene.live.access.is_open() {
        return Err(Failure::bad(
            "AUTH called without any token configured; leave it out, or configure tokens",
        ));
    }
    let digest = Digest::of(secret);
    let is_meant = |who: &Who<'_>| match name {
        None | Some(b"default") => true,
        Some(name) => who.name().as_bytes() == name,
    };
    let Some(who) = scene.live.access.known(&digest).filter(is_meant) else {
        scene.daemon.failures.add(scene.daemon.clock.now(), scene.remote);
        let detail = "invalid username-password pair or user is disabled; send AUTH TOKEN with a \
                      token of the daemon's";
        return Err(Failure::of("WRONGPASS", detail));
    };
    scene.who = Some(who);
    asking.session.token = Some(digest);
    Ok(())
}
