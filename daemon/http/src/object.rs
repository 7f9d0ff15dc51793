//! The parameters of a request as sent, in a JSON body or a query.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use tollgate_engine::Parameter;

use super::problem::{Problem, quoted};
use super::value::{Source, Value};
use tollgate_document::did_you_mean;
use tollgate_rules::query;

/// The query parameter that sets the status of all decisions.
pub(super) const STATUS: &str = "status";

/// A request, or one of its checks: known parameters, each at most once.
#[derive(Debug)]
pub(super) struct Object<'a> {
    parameters: Vec<(Parameter, Value<'a>)>,
    /// [`STATUS`], of queries only.
    status: Option<Value<'a>>,
    /// The first unknown or duplicate parameter.
    problem: Option<Problem>,
}

impl<'a> Object<'a> {
    /// Parses a JSON object with these parameters.
    pub(super) fn from_json(
        text: &'a str,
        accepted: &'static [Parameter],
    ) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = Accepted(accepted).deserialize(&mut json);
        let object = parsed
            .and_then(|object| json.end().map(|()| object))
            .map_err(|error| malformed(text, error))?;
        object.checked()
    }

    /// Parses a query with these parameters and [`STATUS`].
    pub(super) fn from_query(
        text: &'a str,
        accepted: &'static [Parameter],
    ) -> Result<Self, Problem> {
        let mut object = Object::empty();
        for (name, value) in query::pairs(text.as_bytes()) {
            let (name, source) = (String::from_utf8_lossy(&name), Source::Query(value));
            if name != STATUS {
                object.add(&name, source, accepted, &[STATUS]);
            } else if object.status.replace(Value { name: STATUS, source }).is_some() {
                object.problem.get_or_insert_with(|| duplicate(STATUS));
            }
        }
        object.checked()
    }

    /// Parses a JSON array of objects, such as `checks`, up to one more than `max`.
    pub(super) fn list(
        array: &'a str,
        accepted: &'static [Parameter],
        max: usize,
    ) -> Result<Vec<Self>, Problem> {
        let mut json = serde_json::Deserializer::from_str(array);
        let objects = json.deserialize_seq(List { accepted, max }).map_err(|_| {
            let example = "[{\"policy\":\"api\",\"key\":\"user:42\"}]";
            Problem::bad_request(format!(
                "checks is not a list of checks; write one, such as {example}"
            ))
            .at(Parameter::Checks.name())
            .with_value(array)
        })?;
        objects
            .into_iter()
            .enumerate()
            .map(|(index, object)| object.checked().map_err(|problem| problem.in_check(index)))
            .collect()
    }

    fn empty() -> Self {
        const USUAL_PARAMETERS: usize = 4;
        Object { parameters: Vec::with_capacity(USUAL_PARAMETERS), status: None, problem: None }
    }

    fn checked(self) -> Result<Self, Problem> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self),
        }
    }

    fn add(
        &mut self,
        name: &str,
        source: Source<'a>,
        accepted: &[Parameter],
        others: &[&'static str],
    ) {
        let known = Parameter::from_name(name).filter(|known| accepted.contains(known));
        let Some(parameter) = known else {
            self.problem
                .get_or_insert_with(|| unknown(name, accepted, others).with_value(&source.json()));
            return;
        };
        if self.has(parameter) {
            self.problem.get_or_insert_with(|| duplicate(parameter.name()));
        }
        self.parameters.push((parameter, Value { name: parameter.name(), source }));
    }

    fn has(&self, parameter: Parameter) -> bool {
        self.parameters.iter().any(|(known, _)| *known == parameter)
    }

    /// Removes and returns a value; null is the same as absent.
    pub(super) fn take(&mut self, parameter: Parameter) -> Option<Value<'a>> {
        let index = self.parameters.iter().position(|(known, _)| *known == parameter)?;
        let (_, value) = self.parameters.swap_remove(index);
        Some(value).filter(|value| !matches!(value.source, Source::Json("null")))
    }

    /// Removes and returns the value of [`STATUS`].
    pub(super) fn take_status(&mut self) -> Option<Value<'a>> {
        self.status.take()
    }

    /// The value of a parameter.
    pub(super) fn get(&self, parameter: Parameter) -> Option<&Value<'a>> {
        self.parameters.iter().find(|(known, _)| *known == parameter).map(|(_, value)| value)
    }

    /// The first of these parameters that is present.
    pub(super) fn first_present(&self, parameters: &[Parameter]) -> Option<Parameter> {
        parameters.iter().copied().find(|parameter| self.has(*parameter))
    }
}

fn duplicate(name: &'static str) -> Problem {
    Problem::bad_request(format!("{name} occurs twice; leave one of them out")).at(name)
}

fn unknown(name: &str, accepted: &[Parameter], others: &[&'static str]) -> Problem {
    let names = accepted.iter().map(|parameter| parameter.name()).chain(others.iter().copied());
    let hint = did_you_mean(name, names.clone())
        .unwrap_or_else(|| format!("expected one of {}", names.collect::<Vec<_>>().join(", ")));
    let shown: String = name.chars().take(64).collect();
    Problem::bad_request(format!("unknown field {}; {hint}", quoted(&shown))).at_unknown(name)
}

fn malformed(text: &str, error: serde_json::Error) -> Problem {
    if text.trim_start().is_empty() {
        return Problem::bad_request(
            r#"the body is empty; send a JSON object, such as {"policy":"api","key":"user:42"}"#,
        );
    }
    Problem::bad_request(format!("the body is not a JSON object: {error}"))
}

/// Deserializes an object with these parameters.
#[derive(Clone, Copy)]
struct Accepted(&'static [Parameter]);

impl<'a> DeserializeSeed<'a> for Accepted {
    type Value = Object<'a>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Object<'a>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Accepted {
    type Value = Object<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Object<'a>, A::Error> {
        let mut object = Object::empty();
        while let Some(name) = map.next_key_seed(Name)? {
            let value: &RawValue = map.next_value()?;
            let source = Source::Json(value.get());
            match name {
                Ok(parameter) if self.0.contains(&parameter) && !object.has(parameter) => {
                    object.parameters.push((parameter, Value { name: parameter.name(), source }));
                }
                Ok(parameter) => object.add(parameter.name(), source, self.0, &[]),
                Err(unknown) => object.add(&unknown, source, self.0, &[]),
            }
        }
        Ok(object)
    }
}

/// Deserializes the name of a parameter, without allocating if it is known.
struct Name;

impl<'a> DeserializeSeed<'a> for Name {
    type Value = Result<Parameter, String>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Result<Parameter, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Parameter::from_name(name).ok_or_else(|| name.to_owned()))
    }
}

/// Deserializes a list of objects, up to one more than the maximum.
struct List {
    accepted: &'static [Parameter],
    max: usize,
}

impl<'a> Visitor<'a> for List {
    type Value = Vec<Object<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while objects.len() <= self.max {
            match list.next_element_seed(Accepted(self.accepted))? {
                Some(object) => objects.push(object),
                None => return Ok(objects),
            }
        }
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(objects)
    }
}
