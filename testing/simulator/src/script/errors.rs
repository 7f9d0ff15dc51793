//! Errors of scripts, with the messages of Redis.

use std::fmt;

use mlua::{Lua, LuaString, Result, Table, Value};
use tollgate_testkit::Reply;

use super::CHUNKS;

/// An error that a function of the simulator raises.
#[derive(Debug)]
pub(super) struct Raised {
    message: String,
    /// Whether it is the error reply to a command, which has a code.
    is_reply: bool,
}

impl Raised {
    pub(super) fn reply(message: String) -> mlua::Error {
        mlua::Error::external(Raised { message, is_reply: true })
    }

    /// An error with the position of the function's caller, if that is a script.
    pub(super) fn at_caller(lua: &Lua, message: String) -> mlua::Error {
        let position = lua.inspect_stack(1, |frame| {
            let (source, line) = (frame.source().source?, frame.current_line()?);
            Some(format!("{}:{line}: ", source.trim_start_matches('@')))
        });
        let position = position.flatten().unwrap_or_default();
        mlua::Error::external(Raised { message: position + &message, is_reply: false })
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Raised {}

/// Returns the text of an error that `pcall` has caught; other values are returned unchanged.
pub(super) fn text(lua: &Lua, error: Value) -> Result<Value> {
    match &error {
        Value::Table(table) => Ok(match table.raw_get("err")? {
            message @ Value::String(_) => message,
            _ => error,
        }),
        Value::Error(raised) => match raised.downcast_ref::<Raised>() {
            Some(raised) => lua.create_string(&raised.message).map(Value::String),
            None => Err((**raised).clone()),
        },
        _ => Ok(error),
    }
}

/// Describes an error that a script has not caught: a table with the message and the position.
pub(super) fn describe(lua: &Lua, error: Value) -> Result<Table> {
    let described = lua.create_table()?;
    match &error {
        Value::Table(table) => described.raw_set("err", table.raw_get::<Value>("err")?)?,
        Value::Error(raised) => match raised.downcast_ref::<Raised>() {
            Some(Raised { message, is_reply: true }) => {
                described.raw_set("err", message.as_str())?
            }
            Some(Raised { message, .. }) => described.raw_set("err", format!("ERR {message}"))?,
            None => return Err((**raised).clone()),
        },
        other => described.raw_set("err", format!("ERR {}", other.to_string()?))?,
    }
    let line_at = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source().source?;
            let chunk = CHUNKS.iter().find(|chunk| **chunk == source)?;
            Some((*chunk, frame.current_line()?))
        })
    };
    let position = (1..).map_while(line_at).flatten().next();
    described.raw_set("at", position.map(|(chunk, line)| format!("{chunk}:{line}")))?;
    Ok(described)
}

/// Converts a described error into the reply of the script.
pub(super) fn to_reply(name: &str, error: &Value) -> Result<Reply> {
    let described = error.as_table().ok_or_else(|| {
        mlua::Error::runtime(format!("the error of a script has no description: {error:?}"))
    })?;
    let message: LuaString = described.raw_get("err")?;
    let message = message.to_string_lossy();
    Ok(Reply::Error(match described.raw_get::<Option<String>>("at")? {
        Some(at) => format!("{message} script: {name}, on {at}."),
        None => message,
    }))
}

pub(super) fn compile_error(error: &mlua::Error) -> String {
    let why = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        error => error.to_string(),
    };
    format!("ERR Error compiling script (new function): {why}")
}
