//! The library `struct` of scripts: numbers and strings as bytes.
//!
//! It has the integers and strings of the original, without alignment, floats, `c0` and `s`.

use mlua::{IntoLua, Lua, LuaString, MultiValue, Result, Value};

use super::errors::Raised;

/// The maximum size of an integer.
const MAX_SIZE: usize = 32;

/// A part of a format.
#[derive(Clone, Copy, Debug)]
enum Field {
    Integer { size: usize, is_signed: bool, is_big: bool },
    Characters(usize),
    Padding,
}

impl Field {
    fn size(self) -> usize {
        match self {
            Field::Integer { size, .. } | Field::Characters(size) => size,
            Field::Padding => 1,
        }
    }
}

/// Why a format is invalid.
enum FormatError {
    Option(u8),
    Size(usize),
}

/// Iterates over the fields of a format.
struct Format<'a> {
    text: &'a [u8],
    is_big: bool,
}

impl Format<'_> {
    /// Reads the digits that follow.
    fn number(&mut self) -> Option<usize> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.text.split_at(digits);
        self.text = rest;
        str::from_utf8(number).ok()?.parse().ok()
    }
}

impl Iterator for Format<'_> {
    type Item = std::result::Result<Field, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (option, rest) = self.text.split_first()?;
            self.text = rest;
            let is_signed = option.is_ascii_lowercase();
            let size = match option {
                b'<' | b'>' => {
                    self.is_big = *option == b'>';
                    continue;
                }
                b' ' => continue,
                b'x' => return Some(Ok(Field::Padding)),
                b'c' => {
                    let size = self.number().unwrap_or(1);
                    return Some(match size {
                        0 => Err(FormatError::Option(b'c')),
                        size => Ok(Field::Characters(size)),
                    });
                }
                b'b' | b'B' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' => 8,
                b'i' | b'I' => self.number().unwrap_or(4),
                other => return Some(Err(FormatError::Option(*other))),
            };
            if size > MAX_SIZE {
                return Some(Err(FormatError::Size(size)));
            }
            return Some(Ok(Field::Integer { size, is_signed, is_big: self.is_big }));
        }
    }
}

fn fields(format: &[u8]) -> Format<'_> {
    Format { text: format, is_big: false }
}

/// The arguments of a function.
struct Arguments<'a> {
    lua: &'a Lua,
    values: MultiValue,
    /// What a missing argument is called.
    missing: &'static str,
    /// The number of arguments taken so far.
    taken: usize,
}

impl Arguments<'_> {
    fn error(&self, number: usize, why: &str) -> mlua::Error {
        let name = self.lua.inspect_stack(0, |frame| frame.names().name.map(String::from));
        let name = name.flatten().unwrap_or_else(|| "?".to_owned());
        Raised::at_caller(self.lua, format!("bad argument #{number} to '{name}' ({why})"))
    }

    fn invalid_format(&self, why: FormatError) -> mlua::Error {
        match why {
            FormatError::Option(option) => {
                self.error(1, &format!("invalid format option '{}'", char::from(option)))
            }
            FormatError::Size(size) => Raised::at_caller(
                self.lua,
                format!("integral size {size} is larger than limit of {MAX_SIZE}"),
            ),
        }
    }

    fn next(&mut self) -> Value {
        self.taken += 1;
        self.values.pop_front().unwrap_or(Value::Nil)
    }

    fn expected(&self, kind: &str, found: &Value) -> mlua::Error {
        let found = if found.is_nil() { self.missing } else { found.type_name() };
        self.error(self.taken, &format!("{kind} expected, got {found}"))
    }

    fn string(&mut self) -> Result<LuaString> {
        let value = self.next();
        let text = self.lua.coerce_string(value.clone())?;
        text.ok_or_else(|| self.expected("string", &value))
    }

    fn number(&mut self) -> Result<f64> {
        let value = self.next();
        let number = self.lua.coerce_number(value.clone())?;
        number.ok_or_else(|| self.expected("number", &value))
    }
}

/// Returns the size of a format.
pub(super) fn size(lua: &Lua, values: MultiValue) -> Result<usize> {
    let mut arguments = Arguments { lua, values, missing: "no value", taken: 0 };
    let format = arguments.string()?;
    let mut size = 0;
    for field in fields(&format.as_bytes()) {
        size += field.map_err(|why| arguments.invalid_format(why))?.size();
    }
    Ok(size)
}

/// Writes values as bytes.
pub(super) fn pack(lua: &Lua, values: MultiValue) -> Result<LuaString> {
    let mut arguments = Arguments { lua, values, missing: "nil", taken: 0 };
    let format = arguments.string()?;
    let mut packed = Vec::new();
    for field in fields(&format.as_bytes()) {
        match field.map_err(|why| arguments.invalid_format(why))? {
            Field::Padding => packed.push(0),
            Field::Characters(size) => {
                let text = arguments.string()?;
                let text = text.as_bytes();
                // The number is one too high in the original, too.
                let too_short = || arguments.error(arguments.taken + 1, "string too short");
                packed.extend_from_slice(text.get(..size).ok_or_else(too_short)?);
            }
            Field::Integer { size, is_big, .. } => {
                let bits = to_bits(arguments.number()?);
                let start = packed.len();
                let byte = |shift: u32| bits.checked_shr(shift).unwrap_or(0).to_le_bytes()[0];
                packed.extend((0_u32..).step_by(8).take(size).map(byte));
                if is_big {
                    packed[start..].reverse();
                }
            }
        }
    }
    lua.create_string(packed)
}

/// Reads values from bytes; returns them and the position after them.
pub(super) fn unpack(lua: &Lua, values: MultiValue) -> Result<MultiValue> {
    let mut arguments = Arguments { lua, values, missing: "no value", taken: 0 };
    let (format, data) = (arguments.string()?, arguments.string()?);
    let start = if arguments.values.is_empty() { 1 } else { to_index(arguments.number()?) };
    let first = start.checked_sub(1);
    let mut at = first.ok_or_else(|| arguments.error(3, "offset must be 1 or greater"))?;
    let (mut values, data) = (Vec::new(), data.as_bytes());
    for field in fields(&format.as_bytes()) {
        let field = field.map_err(|why| arguments.invalid_format(why))?;
        let end = at.saturating_add(field.size());
        let bytes = data.get(at..end);
        let bytes = bytes.ok_or_else(|| arguments.error(2, "data string too short"))?;
        at = end;
        match field {
            Field::Padding => {}
            Field::Characters(_) => values.push(lua.create_string(bytes)?.into_lua(lua)?),
            Field::Integer { is_signed, is_big, .. } => {
                values.push(Value::Number(from_bytes(bytes, is_signed, is_big)));
            }
        }
    }
    values.push((at + 1).into_lua(lua)?);
    Ok(MultiValue::from_vec(values))
}

#[expect(clippy::as_conversions, reason = "the conversions of C, which saturate here")]
fn to_bits(number: f64) -> u64 {
    if number < 0.0 { (number as i64).cast_unsigned() } else { number as u64 }
}

#[expect(clippy::as_conversions, reason = "the conversion of C, which saturates here")]
fn to_index(number: f64) -> usize {
    number as usize
}

#[expect(clippy::as_conversions, reason = "rounds to the nearest double, as in C")]
fn from_bytes(bytes: &[u8], is_signed: bool, is_big: bool) -> f64 {
    let push = |bits: u64, byte: &u8| (bits << 8) | u64::from(*byte);
    let bits = match is_big {
        true => bytes.iter().fold(0, push),
        false => bytes.iter().rev().fold(0, push),
    };
    let unused = 64_u32.saturating_sub(u32::try_from(bytes.len() * 8).unwrap_or(64));
    match is_signed {
        true => ((bits << unused).cast_signed() >> unused) as f64,
        false => bits as f64,
    }
}
