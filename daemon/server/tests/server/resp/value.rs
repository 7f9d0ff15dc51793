//! Decoded replies, in both versions of the protocol.

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::RespClient;
use crate::support::TIMEOUT;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Error(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// The value as RESP2 represents it.
    pub(super) fn to_resp2(&self) -> Value {
        match self {
            Value::Bool(value) => Value::Int(i64::from(*value)),
            Value::List(all) => Value::List(all.iter().map(Value::to_resp2).collect()),
            Value::Map(all) => Value::List(
                all.iter().flat_map(|(name, value)| [name.to_resp2(), value.to_resp2()]).collect(),
            ),
            other => other.clone(),
        }
    }

    /// The value of a field of a map; [`Value::Null`] if there is none.
    pub(super) fn get(&self, name: &str) -> &Value {
        let Value::Map(all) = self else { panic!("{self:?} is not a map") };
        let found = all.iter().find(|(field, _)| *field == Value::Text(name.to_owned()));
        found.map_or(&Value::Null, |(_, value)| value)
    }
}

impl RespClient {
    /// Reads one reply.
    pub(super) async fn read_value(&mut self) -> Value {
        let line = self.read_line().await;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        let count = || usize::try_from(number()).unwrap();
        match kind {
            "_" => Value::Null,
            "$" | "*" if number() < 0 => Value::Null,
            "#" => Value::Bool(rest == "t"),
            ":" => Value::Int(number()),
            "+" => Value::Text(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            "$" | "=" => {
                let mut bytes = vec![0; count() + 2];
                timeout(TIMEOUT, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
                bytes.truncate(bytes.len() - 2);
                Value::Text(bytes.escape_ascii().to_string())
            }
            "*" | "~" => {
                let mut all = Vec::new();
                for _ in 0..count() {
                    all.push(Box::pin(self.read_value()).await);
                }
                Value::List(all)
            }
            "%" => {
                let mut all = Vec::new();
                for _ in 0..count() {
                    let name = Box::pin(self.read_value()).await;
                    all.push((name, Box::pin(self.read_value()).await));
                }
                Value::Map(all)
            }
            other => panic!("{other:?} is not a reply type"),
        }
    }

    pub(super) async fn call_value(&mut self, command: &str) -> Value {
        self.send(&super::encode_words(command)).await;
        self.read_value().await
    }
}
