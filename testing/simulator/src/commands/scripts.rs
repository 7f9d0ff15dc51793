//! Scripts: loading, calling, and the commands that they call.

use sha1_smol::Sha1;
use tollgate_testkit::Reply;

use super::{Command, Context, Error, NO_SCRIPT, Outcome, bulk, integer, is_word};
use crate::node::{Node, Session};
use crate::script;
use crate::slots::Redirection;

const NO_SUCH_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

pub(super) fn script_load(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let sha = Sha1::from(&words[2]).digest().to_string();
    if !context.node.scripts.contains(&sha) {
        let text = str::from_utf8(&words[2]).map_err(|_| "ERR the script is not UTF-8")?;
        script::compile(&sha, text)?;
        context.node.scripts.insert(sha.clone());
    }
    Ok(bulk(sha))
}

pub(super) fn script_exists(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let exists = |sha: &Vec<u8>| {
        let sha = String::from_utf8_lossy(sha).to_lowercase();
        Reply::Integer(i64::from(context.node.scripts.contains(&sha)))
    };
    Ok(Reply::Array(words[2..].iter().map(exists).collect()))
}

pub(super) fn script_flush(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    match &words[2..] {
        [] => {}
        [word] if is_word(word, "SYNC") || is_word(word, "ASYNC") => {}
        _ => return Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into()),
    }
    context.node.scripts.clear();
    Ok(Reply::ok())
}

pub(super) fn evalsha(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let sha = String::from_utf8_lossy(&words[1]).to_lowercase();
    let (keys, arguments) = words[3..].split_at(number_of_keys(integer(&words[2])?, words)?);
    if !context.node.scripts.contains(&sha) {
        return Err(NO_SUCH_SCRIPT.into());
    }
    Ok(run(context, |execute| script::run(&sha, keys, arguments, execute)))
}

pub(super) fn function_load(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let [text] = &words[2..] else {
        return Err("ERR the simulator supports no options of FUNCTION LOAD".into());
    };
    let text = str::from_utf8(text).map_err(|_| "ERR the library is not UTF-8")?;
    let name = script::library_name(text)?;
    if context.node.functions.contains(name) {
        return Err(format!("ERR Library '{name}' already exists").into());
    }
    script::load_library(name, text)?;
    context.node.functions.insert(name.to_owned());
    Ok(bulk(name))
}

pub(super) fn function_flush(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    if words.len() > 2 {
        return Err("ERR the simulator supports no options of FUNCTION FLUSH".into());
    }
    context.node.functions.clear();
    Ok(Reply::ok())
}

pub(super) fn fcall(context: &mut Context<'_>, words: &[Vec<u8>]) -> Outcome {
    let name = String::from_utf8_lossy(&words[1]).into_owned();
    if !context.node.functions.contains(&name) {
        return Err("ERR Function not found".into());
    }
    let count = integer(&words[2]).map_err(|_| "ERR Bad number of keys provided")?;
    let (keys, arguments) = words[3..].split_at(number_of_keys(count, words)?);
    Ok(run(context, |execute| script::call_function(&name, keys, arguments, execute)))
}

/// Checks the number of keys of a script or a function.
fn number_of_keys(count: i64, words: &[Vec<u8>]) -> Result<usize, &'static str> {
    let count = usize::try_from(count).map_err(|_| "ERR Number of keys can't be negative")?;
    if count > words.len() - 3 {
        return Err("ERR Number of keys can't be greater than number of args");
    }
    Ok(count)
}

/// Runs a script, which gets a function that executes its commands.
fn run(
    context: &mut Context<'_>,
    script: impl FnOnce(&mut dyn FnMut(Vec<Vec<u8>>) -> Reply) -> Reply,
) -> Reply {
    let (node, session) = (&mut *context.node, &*context.session);
    let mut script_session = session.for_script();
    let reply = script(&mut |words| {
        script_session.is_asking = session.is_asking;
        call(node, &mut script_session, &words).unwrap_or_else(|error| Reply::Error(error.into()))
    });
    context.node.script_runs += 1;
    reply
}

/// Executes a command that a script calls.
fn call(node: &mut Node, session: &mut Session, words: &[Vec<u8>]) -> Outcome {
    let unknown = |_| Error::from("ERR Unknown Redis command called from script");
    let command = Command::find(words, false).map_err(unknown)?;
    command
        .check_arity(words)
        .map_err(|_| Error::from("ERR Wrong number of args calling Redis command from script"))?;
    if command.has(NO_SCRIPT) {
        return Err("ERR This Redis command is not allowed from script".into());
    }
    if let Some(cluster) = &node.cluster {
        let keys = command.keys(words);
        cluster.route(keys, session.is_asking, |key| node.has_key(key)).map_err(not_local)?;
    }
    command.run(node, session, words)
}

fn not_local(redirection: Redirection) -> Error {
    Error::from(match redirection {
        Redirection::Down => "ERR Script attempted to execute a command while the cluster is down",
        _ => "ERR Script attempted to access a non local key in a cluster node",
    })
}
