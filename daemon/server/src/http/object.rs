//! The fields of a request as they were written, before they mean anything.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::field::Field;
use super::problem::{Problem, quoted};
use super::written::Written;
use crate::nearest::did_you_mean;
use crate::query;

/// A request, or one of its checks, as it was written: known fields, each once.
#[derive(Debug)]
pub(super) struct Object<'a> {
    fields: Vec<(Field, Written<'a>)>,
    /// The first of what is wrong with a field's name.
    problem: Option<Problem>,
}

impl<'a> Object<'a> {
    /// Reads a JSON object of no other fields than `known`.
    pub(super) fn of_json(text: &'a str, known: &'static [Field]) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Known(known).deserialize(&mut json);
        let object =
            read.and_then(|x| json.end().map(|()| x)).map_err(|error| malformed(text, error))?;
        object.checked()
    }

    /// Reads a query of no other fields than `known`.
    pub(super) fn of_query(text: &'a str, known: &'static [Field]) -> Result<Self, Problem> {
        let mut object = Object::empty();
        for (name, value) in query::pairs(text.as_bytes()) {
            object.add(&String::from_utf8_lossy(&name), Written::Query(value), known);
        }
        object.checked()
    }

    /// The objects of a JSON array, such as `checks`.
    pub(super) fn list(
        array: &'a str,
        known: &'static [Field],
        most: usize,
    ) -> Result<Vec<Self>, Problem> {
        let mut json = serde_json::Deserializer::from_str(array);
        let objects = json.deserialize_seq(List { known, most }).map_err(|_| {
            let remedy =
                "write a list of checks, such as [{\"policy\":\"api\",\"key\":\"user:42\"}]";
            Problem::bad(format!("checks is not a list of checks; {remedy}"))
                .of(Field::Checks)
                .with_value(array)
        })?;
        let objects = objects.into_iter().enumerate();
        objects.map(|(index, x)| x.checked().map_err(|error| error.in_check(index))).collect()
    }

    fn empty() -> Self {
        const USUAL_FIELDS: usize = 4;
        Object { fields: Vec::with_capacity(USUAL_FIELDS), problem: None }
    }

    fn checked(self) -> Result<Self, Problem> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(self),
        }
    }

    fn add(&mut self, name: &str, value: Written<'a>, known: &[Field]) {
        let field = Field::of_name(name).filter(|x| known.contains(x));
        let Some(field) = field else {
            self.problem.get_or_insert_with(|| unknown(name, known).with_value(&value.json()));
            return;
        };
        if self.has(field) {
            let detail = format!("{name} is there twice; leave one of them out");
            self.problem.get_or_insert_with(|| Problem::bad(detail).of(field));
        }
        self.fields.push((field, value));
    }

    fn has(&self, field: Field) -> bool {
        self.fields.iter().any(|(x, _)| *x == field)
    }

    /// Takes a field's value; null is as if it was absent.
    pub(super) fn take(&mut self, field: Field) -> Option<Written<'a>> {
        let found = self.fields.iter().position(|(x, _)| *x == field)?;
        let (_, value) = self.fields.swap_remove(found);
        Some(value).filter(|x| !matches!(x, Written::Json("null")))
    }

    /// A field's value, which stays.
    pub(super) fn get(&self, field: Field) -> Option<&Written<'a>> {
        self.fields.iter().find(|(x, _)| *x == field).map(|(_, value)| value)
    }

    /// Which of these fields it has first.
    pub(super) fn first_of(&self, fields: &[Field]) -> Option<Field> {
        fields.iter().copied().find(|field| self.has(*field))
    }
}

fn unknown(name: &str, known: &[Field]) -> Problem {
    let names = known.iter().map(|x| x.name());
    let hint = did_you_mean(name, names.clone())
        .unwrap_or_else(|| format!("known are {}", names.collect::<Vec<_>>().join(", ")));
    let shown: String = name.chars().take(64).collect();
    Problem::bad(format!("there is no field {} here; {hint}", quoted(&shown))).of_unknown(name)
}

fn malformed(text: &str, error: serde_json::Error) -> Problem {
    if text.trim_start().is_empty() {
        return Problem::bad(
            "the body is empty; send a JSON object, such as {\"policy\":\"api\",\"key\":\"user:42\"}",
        );
    }
    Problem::bad(format!("the body is not a JSON object: {error}"))
}

/// Reads an object of known fields.
#[derive(Clone, Copy)]
struct Known(&'static [Field]);

impl<'a> DeserializeSeed<'a> for Known {
    type Value = Object<'a>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Object<'a>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Known {
    type Value = Object<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Object<'a>, A::Error> {
        let mut object = Object::empty();
        while let Some(name) = map.next_key_seed(Name)? {
            let value: &RawValue = map.next_value()?;
            let value = Written::Json(value.get());
            match name {
                Ok(field) if self.0.contains(&field) && !object.has(field) => {
                    object.fields.push((field, value));
                }
                Ok(field) => object.add(field.name(), value, self.0),
                Err(unknown) => object.add(&unknown, value, self.0),
            }
        }
        Ok(object)
    }
}

/// Reads the name of a field, without keeping it if it is known.
struct Name;

impl<'a> DeserializeSeed<'a> for Name {
    type Value = Result<Field, String>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Result<Field, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Field::of_name(name).ok_or_else(|| name.to_owned()))
    }
}

/// Reads a list of objects of known fields, up to one more than there may be.
struct List {
    known: &'static [Field],
    most: usize,
}

impl<'a> Visitor<'a> for List {
    type Value = Vec<Object<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while objects.len() <= self.most {
            match list.next_element_seed(Known(self.known))? {
                Some(object) => objects.push(object),
                None => return Ok(objects),
            }
        }
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(objects)
    }
}
