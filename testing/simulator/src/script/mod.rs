//! Scripts: the interpreter, and the conversions between its values and replies.

mod errors;
mod packing;

use std::cell::RefCell;
use std::collections::BTreeMap;

use mlua::{Function, IntoLua, Lua, LuaString, MultiValue, Result, StdLib, Table, Value};
use tollgate_testkit::Reply;

use errors::Raised;

/// The names of a script and of a library in messages.
const CHUNKS: [&str; 2] = ["@user_script", "@user_function"];

/// The interpreter. All servers of a thread share one, so that a script is compiled once: a script
/// cannot leave anything behind in it, and a library only what does not change what its function does.
struct Engine {
    lua: Lua,
    environment: Table,
    run: Function,
    /// Calls a function of a library, and loads a library.
    call: Function,
    load: Function,
    /// The compiled scripts, by SHA-1, and the functions of libraries, by name.
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

/// Returns the name in the first line of a library, `#!lua name=NAME`.
pub(crate) fn library_name(text: &str) -> std::result::Result<&str, &'static str> {
    let name = text.lines().next().and_then(|line| line.strip_prefix("#!lua name="));
    name.ok_or("ERR the simulator supports only libraries that begin with #!lua name=NAME")
}

/// Loads a library, which registers a function of its name.
pub(crate) fn load_library(name: &str, text: &str) -> std::result::Result<(), String> {
    let body = text.find('\n').map_or("", |end| &text[end..]);
    ENGINE.with(|engine| {
        engine.load_library(name, body).map_err(|error| errors::compile_error(&error))
    })
}

/// Runs a compiled script. `execute` runs a command of the script.
pub(crate) fn run(
    sha: &str,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
    execute: &mut dyn FnMut(Vec<Vec<u8>>) -> Reply,
) -> Reply {
    ENGINE.with(|engine| {
        let runner = &engine.run;
        engine
            .run(runner, sha, keys, arguments, execute)
            .expect("the interpreter has enough memory")
    })
}

/// Calls the function of a library.
pub(crate) fn call_function(
    name: &str,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
    execute: &mut dyn FnMut(Vec<Vec<u8>>) -> Reply,
) -> Reply {
    ENGINE.with(|engine| {
        let runner = &engine.call;
        engine
            .run(runner, name, keys, arguments, execute)
            .expect("the interpreter has enough memory")
    })
}

impl Engine {
    fn new() -> Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, mlua::LuaOptions::default())?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (environment, run, call, load) = prelude.call((
            lua.create_function(packing::pack)?,
            lua.create_function(packing::unpack)?,
            lua.create_function(packing::size)?,
            lua.create_function(errors::text)?,
            lua.create_function(errors::describe)?,
            delegate(&lua, EXECUTE)?,
            delegate(&lua, TRY)?,
        ))?;
        Ok(Engine { lua, environment, run, call, load, compiled: RefCell::default() })
    }

    fn compile(&self, sha: &str, body: &str) -> Result<()> {
        if self.compiled.borrow().contains_key(sha) {
            return Ok(());
        }
        let script = self.chunk(body, CHUNKS[0])?;
        self.compiled.borrow_mut().insert(sha.to_owned(), script);
        Ok(())
    }

    fn load_library(&self, name: &str, body: &str) -> Result<()> {
        if self.compiled.borrow().contains_key(name) {
            return Ok(());
        }
        let function = self.load.call((self.chunk(body, CHUNKS[1])?, name))?;
        self.compiled.borrow_mut().insert(name.to_owned(), function);
        Ok(())
    }

    fn chunk(&self, body: &str, name: &str) -> Result<Function> {
        let chunk = self.lua.load(body).set_name(name).set_mode(mlua::chunk::ChunkMode::Text);
        chunk.set_environment(self.environment.clone()).into_function()
    }

    fn run(
        &self,
        runner: &Function,
        name: &str,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
        execute: &mut dyn FnMut(Vec<Vec<u8>>) -> Reply,
    ) -> Result<Reply> {
        let script = self.compiled.borrow().get(name).cloned();
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
            self.lua.set_named_registry_value(EXECUTE, call)?;
            self.lua.set_named_registry_value(TRY, pcall)?;
            let (is_ok, value): (bool, Value) = runner.call((script, keys, arguments))?;
            if is_ok { to_reply(&value) } else { errors::to_reply(name, &value) }
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

/// The names of what executes the commands of the script that runs.
const EXECUTE: &str = "execute";
const TRY: &str = "try";

/// Returns a function that calls the one that is registered under a name: a library keeps `redis.call` of
/// its first call.
fn delegate(lua: &Lua, name: &'static str) -> Result<Function> {
    lua.create_function(move |lua, words: MultiValue| {
        let current: Function = lua.named_registry_value(name)?;
        current.call::<Value>(words).map_err(|error| match error {
            mlua::Error::CallbackError { cause, .. } => (*cause).clone(),
            error => error,
        })
    })
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
