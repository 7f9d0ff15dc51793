//! Limits, costs and ids as serde reads and writes them, and decisions as serde writes them.

use alloc::string::String;
use core::fmt::Display;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::decision::{Decision, LimitDecision, Reason, Source};
use crate::id::Id;
use crate::limit::Limit;
use crate::request::Cost;
use crate::time::Micros;

/// Parses a text.
pub(crate) fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// Writes the canonical text.
impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a text in the notation of limits.
impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

/// Writes 32 hexadecimal digits.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

/// Writes the number of units.
impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cost::try_from(u64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Writes the name.
impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Writes the name.
impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Writes the fields of the daemon's JSON, but times in whole microseconds, in fields that end in `_us`.
/// `lease_id` and `reservation_id` are left out if there are none.
impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Decision", 18)?;
        fields.serialize_field("allowed", &self.allowed)?;
        fields.serialize_field("reason", self.reason_name())?;
        fields.serialize_field("never", &self.never)?;
        fields.serialize_field("capacity", &self.capacity)?;
        fields.serialize_field("remaining", &self.remaining)?;
        fields.serialize_field("retry_after_us", &self.retry_after.map(Micros::get))?;
        fields.serialize_field("reset_after_us", &self.reset_after.map(Micros::get))?;
        fields.serialize_field("delay_us", &self.delay.get())?;
        fields.serialize_field("granted", &self.granted)?;
        fields.serialize_field("changed", &self.changed)?;
        fields.serialize_field("source", &self.source)?;
        fields.serialize_field("degraded", &self.degraded)?;
        fields.serialize_field("replayed", &self.replayed)?;
        fields.serialize_field("shadow", &self.shadow)?;
        fields.serialize_field("time_us", &self.time.as_micros())?;
        for (name, id) in [("lease_id", &self.lease), ("reservation_id", &self.reservation)] {
            match id {
                Some(id) => fields.serialize_field(name, id)?,
                None => fields.skip_field(name)?,
            }
        }
        fields.serialize_field("limits", &self.limits())?;
        fields.end()
    }
}

impl Serialize for LimitDecision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LimitDecision", 7)?;
        fields.serialize_field("allowed", &self.allowed)?;
        fields.serialize_field("never", &self.never)?;
        fields.serialize_field("binding", &self.binding)?;
        fields.serialize_field("capacity", &self.capacity)?;
        fields.serialize_field("remaining", &self.remaining)?;
        fields.serialize_field("retry_after_us", &self.retry_after.map(Micros::get))?;
        fields.serialize_field("reset_after_us", &self.reset_after.get())?;
        fields.end()
    }
}
