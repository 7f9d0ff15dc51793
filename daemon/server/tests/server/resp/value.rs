//! A reply as it was meant, in either version of the protocol.

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::{PATIENCE, Talk};

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
    /// As RESP2 has it.
    pub(super) fn flat(&self) -> Value {
        match self {
            Value::Bool(bool) => Value::Int(i64::from(*bool)),
            Value::List(all) => Value::List(all.iter().map(Value::flat).collect()),
            Value::Map(all) => Value::List(
                all.iter().flat_map(|(name, value)| [name.flat(), value.flat()]).collect(),
            ),
            other => other.clone(),
        }
    }

    /// The value of a name of a map.
    pub(super) fn get(&self, name: &str) -> &Value {
        let Value::Map(all) = self else { panic!("{self:?} is no map") };
        let found = all.iter().find(|(x, _)| *x == Value::Text(name.to_owned()));
        found.map_or(&Value::Null, |(_, value)| value)
    }
}

impl Talk {
    /// Reads one reply.
    pub(super) async fn value(&mut self) -> Value {
        let line = self.line().await;
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        let many = || usize::try_from(number()).unwrap();
        match kind {
            "_" => Value::Null,
            "$" | "*" if number() < 0 => Value::Null,
            "#" => Value::Bool(rest == "t"),
            ":" => Value::Int(number()),
            "+" => Value::Text(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            "$" | "=" => {
                let mut bytes = vec![0; many() + 2];
                timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap().unwrap();
                bytes.truncate(bytes.len() - 2);
                Value::Text(bytes.escape_ascii().to_string())
            }
            "*" | "~" => {
                let mut all = Vec::new();
                for _ in 0..many() {
                    all.push(Box::pin(self.value()).await);
                }
                Value::List(all)
            }
            "%" => {
                let mut all = Vec::new();
                for _ in 0..many() {
                    let name = Box::pin(self.value()).await;
                    all.push((name, Box::pin(self.value()).await));
                }
                Value::Map(all)
            }
            other => panic!("{other:?} is no kind of reply"),
        }
    }

    pub(super) async fn ask_value(&mut self, words: &str) -> Value {
        self.send(&super::words(words)).await;
        self.value().await
    }
}
