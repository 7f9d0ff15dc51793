//! Commands on the connection itself.

use tollgate_testkit::Reply;

use super::{Context, Error, NO_CLUSTER, Outcome, SYNTAX, bulk, integer, is_word};

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const HELLO_WITHOUT_LOGIN: &str = "NOAUTH HELLO must be called with the client already \
    authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client \
    and select the RESP protocol version at the same time";
const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";

pub(super) fn ping(_: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    match words {
        [_] => Ok(Reply::Simple("PONG".to_owned())),
        [_, text] => Ok(bulk(text)),
        _ => Err(super::wrong_arity("ping")),
    }
}

pub(super) fn asking(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    if !context.node.is_cluster() {
        return Err(NO_CLUSTER);
    }
    context.session.is_asking = true;
    Ok(Reply::ok())
}

pub(super) fn select(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let number = integer(&words[1])?;
    if context.node.is_cluster() && number != 0 {
        return Err("ERR SELECT is not allowed in cluster mode".into());
    }
    let index = usize::try_from(number).ok();
    let index = index.filter(|index| *index < context.node.databases.len());
    context.session.database = index.ok_or("ERR DB index is out of range")?;
    Ok(Reply::ok())
}

pub(super) fn auth(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    match words {
        [_, _] if context.node.login.is_none() => Err(NO_PASSWORD.into()),
        [_, password] => log_in(context, b"default", password),
        [_, user, password] => log_in(context, user, password),
        _ => Err(SYNTAX),
    }
}

fn log_in(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Outcome {
    let is_right = match &context.node.login {
        Some(login) => login.user.as_bytes() == user && login.password.as_bytes() == password,
        None => user == b"default",
    };
    if !is_right {
        return Err(WRONG_PASSWORD.into());
    }
    context.session.is_authenticated = true;
    Ok(Reply::ok())
}

/// Supports version 2 of the protocol only.
pub(super) fn hello(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let mut options = &words[1..];
    if let Some((version, rest)) = options.split_first() {
        let version = integer(version)
            .map_err(|_| Error::from("ERR Protocol version is not an integer or out of range"))?;
        if version != 2 {
            return Err("NOPROTO unsupported protocol version".into());
        }
        options = rest;
    }
    while let Some((option, rest)) = options.split_first() {
        options = match rest {
            [user, password, rest @ ..] if is_word(option, "AUTH") => {
                log_in(context, user, password)?;
                rest
            }
            [name, rest @ ..] if is_word(option, "SETNAME") => {
                context.session.name.clone_from(name);
                rest
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Syntax error in HELLO option '{option}'").into());
            }
        };
    }
    if !context.node.is_logged_in(context.session) {
        return Err(HELLO_WITHOUT_LOGIN.into());
    }
    let id = Reply::Integer(i64::try_from(context.session.id).unwrap_or(i64::MAX));
    let mode = match (context.node.is_cluster(), context.node.is_sentinel()) {
        (true, _) => "cluster",
        (_, true) => "sentinel",
        _ => "standalone",
    };
    let role = if context.node.primary.is_some() { "replica" } else { "master" };
    let fields = [
        ("server", bulk("redis")),
        ("version", bulk(super::server::VERSION)),
        ("proto", Reply::Integer(2)),
        ("id", id),
        ("mode", bulk(mode)),
        ("role", bulk(role)),
        ("modules", Reply::Array(Vec::new())),
    ];
    Ok(Reply::Array(fields.into_iter().flat_map(|(name, value)| [bulk(name), value]).collect()))
}

pub(super) fn client_setname(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    if words[2].iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        return Err(
            "ERR Client names cannot contain spaces, newlines or special characters.".into()
        );
    }
    context.session.name.clone_from(&words[2]);
    Ok(Reply::ok())
}

pub(super) fn client_getname(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    let name = &context.session.name;
    Ok(if name.is_empty() { Reply::Null } else { bulk(name) })
}

pub(super) fn client_id(context: &mut Context<'_>, _: &[Vec<u8>]) -> Outcome {
    Ok(Reply::Integer(i64::try_from(context.session.id).unwrap_or(i64::MAX)))
}
