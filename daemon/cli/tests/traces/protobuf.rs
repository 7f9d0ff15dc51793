//! A protobuf reader for spans: <https://protobuf.dev/programming-guides/encoding/>.

/// A field of a message: a number, or bytes.
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// All fields of a message, by their numbers.
pub(crate) fn fields(mut message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut message)),
            1 => Value::Number(u64::from_le_bytes(take(&mut message, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut message).try_into().unwrap();
                Value::Bytes(take(&mut message, length))
            }
            5 => {
                let number = take(&mut message, 4).try_into().unwrap();
                Value::Number(u32::from_le_bytes(number).into())
            }
            other => panic!("no field has type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

/// The contents of all fields with this number.
pub(crate) fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    let fields = fields(message).into_iter().filter(|(known, _)| *known == number);
    let bytes = fields.map(|(_, value)| match value {
        Value::Bytes(bytes) => bytes,
        Value::Number(value) => panic!("field {number} is the number {value}"),
    });
    bytes.collect()
}

/// The contents of all nested fields with this path of numbers.
pub(crate) fn nested<'a>(message: &'a [u8], path: &[u64]) -> Vec<&'a [u8]> {
    path.iter().fold(vec![message], |messages, number| {
        messages.into_iter().flat_map(|message| all(message, *number)).collect()
    })
}

/// The numeric field with this number.
pub(crate) fn number(message: &[u8], number: u64) -> u64 {
    let mut fields = fields(message).into_iter().filter(|(known, _)| *known == number);
    match fields.next() {
        Some((_, Value::Number(number))) => number,
        _ => panic!("there is no numeric field {number}"),
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint is too long")
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(length);
    *rest = after;
    taken
}
