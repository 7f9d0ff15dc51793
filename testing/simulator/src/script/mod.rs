//! Scripts: the interpreter, and the conversions between its values and replies.

mod errors;
mod packing;

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{Function, IntoLua, Lua, LuaString, MultiValue, Result, StdLib, Table, Value};
use tollgate_testkit::Reply;

use errors::Raised;

/// The name of a script in messages.
const CHUNK: &str = "@user_script";

/// The interpreter. All servers of a thread share one, so that a script is compiled once: a script
/// cannot leave anything behind in it.
struct Engine {
    lua: Lua,
    environment: Table,
    run: Function,
    /// The compiled scripts, by SHA-1.
    compiled: RefCell<BTreeMap<String, Function>>,
}

thread_local! {
    static ENGINE: Engine = Engine::new().expect("the interpreter starts");
}

/// Returns the error of a script that does not compile.
pub(crate) fn compile(sha: &str, text: &str) -> std::result::Result<(), String> {
    let (first_line, body) = text.split_at(text.find('\n').unwrap_or(text.len()));
    if first_line != "#!lua" {
        return Err(match first_line.split(' ').next() {
            Some("#!lua") => "ERR the simulator supports no flags of scripts".to_owned(),
            Some(engine) if engine.starts_with("#!") => {
                format!("ERR Unexpected engine in script shebang: {engine}")
            }
            _ => "ERR the simulator supports only scripts that begin with #!lua".to_owned(),
        });
    }
    ENGINE.with(|engine| engine.compile(sha, body).map_err(|error| errors::compile_error(&error)))
}

/// Runs a compiled script. `execute` runs a command of the script.
pub(crate) fn run(
    sha: &str,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
    execute: impl FnMut(Vec<Vec<u8>>) -> Reply,
) -> Reply {
    ENGINE.with(|engine| {
        engine.run(sha, keys, arguments, execute).expect("the interpreter has enough memory")
    })
}

impl Engine {
    fn new() -> Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, mlua::LuaOptions::default())?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (environment, run) = prelude.call((
            lua.create_function(packing::pack)?,
            lua.create_function(packing::unpack)?,
            lua.create_function(packing::size)?,
            lua.create_function(errors::text)?,
            lua.create_function(errors::describe)?,
        ))?;
        Ok(Engine { lua, environment, run, compiled: RefCell::default() })
    }

    fn compile(&self, sha: &str, body: &str) -> Result<()> {
        if self.compiled.borrow().contains_key(sha) {
            return Ok(());
        }
        let chunk = self.lua.load(body).set_name(CHUNK).set_mode(mlua::chunk::ChunkMode::Text);
        let function = chunk.set_environment(self.environment.clone()).into_function()?;
        self.compiled.borrow_mut().insert(sha.to_owned(), function);
        Ok(())
    }

    fn run(
        &self,
        sha: &str,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
        execute: impl FnMut(Vec<Vec<u8>>) -> Reply,
    ) -> Result<Reply> {
        let script = self.compiled.borrow().get(sha).cloned();
        let script = script.expect("a script is compiled when it is loaded");
        let (keys, arguments) = (self.strings(keys)?, self.strings(arguments)?);
        let execute = RefCell::new(execute);
        let reply_to = |lua: &Lua, words| match to_words(lua, words)? {
            Ok(words) => Ok((*execute.borrow_mut())(words)),
            Err(message) => Ok(Reply::Error(message.to_owned())),
        };
        self.lua.scope(|scope| {
            let call =
                scope.create_function(|lua, words: MultiValue| match reply_to(lua, words)? {
                    Reply::Error(message) => Err(Raised::reply(message)),
                    reply => from_reply(lua, reply),
                })?;
            let pcall = scope.create_function(|lua, words: MultiValue| {
                reply_to(lua, words).and_then(|reply| from_reply(lua, reply))
            })?;
            let (is_ok, value): (bool, Value) =
                self.run.call((script, call, pcall, keys, arguments))?;
            if is_ok { to_reply(&value) } else { errors::to_reply(sha, &value) }
        })
    }

    fn strings(&self, words: &[Vec<u8>]) -> Result<Table> {
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for word in words {
            table.raw_push(self.lua.create_string(word)?)?;
        }
        Ok(table)
    }
}

/// Converts the arguments of `redis.call`.
fn to_words(
    lua: &Lua,
    values: MultiValue,
) -> Result<std::result::Result<Vec<Vec<u8>>, &'static str>> {
    if values.is_empty() {
        return Ok(Err("ERR Please specify at least one argument for this redis lib call"));
    }
    let mut words = Vec::with_capacity(values.len());
    for value in values {
        words.push(match value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Integer(number) if number.unsigned_abs() < 100_000_000_000_000_000 => {
                number.to_string().into_bytes()
            }
            Value::Integer(_) | Value::Number(_) => {
                let format: Function = lua.globals().get::<Table>("string")?.get("format")?;
                format.call::<LuaString>(("%.17g", value))?.as_bytes().to_vec()
            }
            _ => return Ok(Err("ERR Lua redis lib command arguments must be strings or integers")),
        });
    }
    Ok(Ok(words))
}

/// Converts the reply to a command into a value of a script.
fn from_reply(lua: &Lua, reply: Reply) -> Result<Value> {
    match reply {
        Reply::Simple(text) => field(lua, "ok", &text),
        Reply::Error(text) => field(lua, "err", &text),
        Reply::Integer(number) => Ok(Value::Integer(number)),
        Reply::Bulk(bytes) => lua.create_string(bytes)?.into_lua(lua),
        Reply::Null => Ok(Value::Boolean(false)),
        Reply::Array(parts) | Reply::Push(parts) => {
            let table = lua.create_table_with_capacity(parts.len(), 0)?;
            for part in parts {
                table.raw_push(from_reply(lua, part)?)?;
            }
            table.into_lua(lua)
        }
    }
}

fn field(lua: &Lua, name: &str, text: &str) -> Result<Value> {
    let table = lua.create_table()?;
    table.raw_set(name, text)?;
    table.into_lua(lua)
}

/// Converts the value that a script returns.
fn to_reply(value: &Value) -> Result<Reply> {
    Ok(match value {
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => Reply::Integer(*number),
        Value::Number(number) => Reply::Integer(truncated(*number)),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => return table_reply(table),
        _ => Reply::Null,
    })
}

fn table_reply(table: &Table) -> Result<Reply> {
    if let Value::String(text) = table.raw_get("err")? {
        return Ok(Reply::Error(text.to_string_lossy()));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Reply::Simple(text.to_string_lossy()));
    }
    let mut parts = Vec::new();
    for index in 1.. {
        match table.raw_get(index)? {
            Value::Nil => break,
            value => parts.push(to_reply(&value)?),
        }
    }
    Ok(Reply::Array(parts))
}

/// Truncates a number; those out of range are the smallest integer, as on x86-64.
#[expect(clippy::as_conversions, reason = "in range")]
fn truncated(number: f64) -> i64 {
    let range = i64::MIN as f64..i64::MAX as f64;
    if range.contains(&number) { number as i64 } else { i64::MIN }
}
