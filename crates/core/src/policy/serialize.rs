//! Policies as serde reads and writes them.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

use super::{Ban, KeyList, LOG_ENTRIES, OnStoreError, Parts, Policy};
use crate::limit::Limit;
use crate::notation::display::Length;
use crate::notation::{parse_duration, parse_limits};
use crate::time::Micros;

/// The fields of a policy, as in the configuration of the daemon.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    limits: Limits,
    #[serde(default, skip_serializing_if = "is_default")]
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Hold>,
    #[serde(default, skip_serializing_if = "is_default")]
    shadow: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    on_store_error: OnStoreError,
    #[serde(skip_serializing_if = "Option::is_none")]
    ban: Option<Ban>,
    #[serde(default, skip_serializing_if = "KeyList::is_empty")]
    allow: KeyList,
    #[serde(default, skip_serializing_if = "KeyList::is_empty")]
    deny: KeyList,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_keys: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_entries: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Exact,
    Leased,
}

/// A hold time as text.
struct Hold(Micros);

impl Serialize for Hold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Length(self.0))
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Hold).map_err(D::Error::custom)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Fields {
    fn new(policy: &Policy) -> Self {
        // Destructured, so that a new part is not forgotten.
        let Parts {
            name,
            limits: _,
            shadow,
            log_entries,
            max_keys,
            on_store_error,
            ban,
            hold,
            allow,
            deny,
            lists: _,
            plain_limits: _,
            name_hash: _,
        } = &*policy.0;
        Fields {
            name: Some(&**name).filter(|_| policy.is_named()).map(ToOwned::to_owned),
            limits: Limits(policy.declared_limits().to_vec()),
            mode: if hold.is_some() { Mode::Leased } else { Mode::Exact },
            hold: policy.hold().map(Hold),
            shadow: *shadow,
            on_store_error: *on_store_error,
            ban: *ban,
            allow: allow.clone(),
            deny: deny.clone(),
            max_keys: *max_keys,
            log_entries: Some(*log_entries).filter(|entries| *entries != LOG_ENTRIES),
        }
    }

    fn build<E: Error>(self) -> Result<Policy, E> {
        let Fields {
            name,
            limits,
            mode,
            hold,
            shadow,
            on_store_error,
            ban,
            allow,
            deny,
            max_keys,
            log_entries,
        } = self;
        let limits = limits.0;
        let policy = match name.as_deref() {
            Some(name) if name.starts_with('@') => Policy::reserved(name, limits),
            Some(name) => Policy::new(name, limits),
            None => Policy::unnamed(limits),
        };
        let policy = policy.map_err(E::custom)?.with(|parts| {
            parts.shadow = shadow;
            (parts.on_store_error, parts.ban) = (on_store_error, ban);
            (parts.allow, parts.deny) = (allow, deny);
        });
        let policy = match max_keys {
            Some(max) => policy.with_max_keys(max),
            None => policy,
        };
        let policy = match log_entries {
            Some(entries) => policy.with_log_entries(entries),
            None => policy,
        };
        match mode {
            Mode::Exact if hold.is_some() => {
                Err(E::custom("hold has no effect without mode: leased"))
            }
            Mode::Exact => Ok(policy),
            Mode::Leased => policy.leased(hold.map(|hold| hold.0)).map_err(E::custom),
        }
    }
}

/// Writes the fields of the daemon's configuration that are not the default: `name`, `limits`, `mode`,
/// `hold`, `shadow`, `on_store_error`, `ban`, `allow`, `deny` and `max_keys`, and `log_entries`.
///
/// # Errors
/// A key of a list is not UTF-8.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Fields::new(self).serialize(serializer)
    }
}

/// Reads the fields that [`Policy`] writes, of which `limits` is required: a text, or a list of texts.
/// A text alone is a policy without a name, as if it were [parsed](Policy#impl-FromStr-for-Policy). The
/// format must be self-describing, such as JSON, YAML or TOML.
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PolicyVisitor;

        impl<'de> Visitor<'de> for PolicyVisitor {
            type Value = Policy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("limits, such as \"10/s burst 20\", or a policy with name and limits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Policy, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Policy, A::Error> {
                Fields::deserialize(MapAccessDeserializer::new(map))?.build()
            }
        }

        deserializer.deserialize_any(PolicyVisitor)
    }
}

/// Limits: a text, or a list of texts.
struct Limits(Vec<Limit>);

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&super::Canonical(&self.0))
    }
}

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LimitsVisitor;

        impl<'de> Visitor<'de> for LimitsVisitor {
            type Value = Limits;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("limits, such as \"10/s burst 20\", or a list of limits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limits, E> {
                parse_limits(text).map(Limits).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Limits, A::Error> {
                let mut limits = Vec::new();
                while let Some(text) = texts.next_element::<String>()? {
                    limits.extend(parse_limits(&text).map_err(A::Error::custom)?);
                }
                Ok(Limits(limits))
            }
        }

        deserializer.deserialize_any(LimitsVisitor)
    }
}

/// The fields of a ban. Durations are texts, such as `10min`.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct BanFields {
    denials: u64,
    within: String,
    #[serde(rename = "for")]
    span: String,
}

/// Writes the fields of the daemon's configuration: `denials`, and as texts `within` and `for`.
impl Serialize for Ban {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |span: Micros| Length(span).to_string();
        let (denials, within, span) = (self.denials(), text(self.within()), text(self.span()));
        BanFields { denials, within, span }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ban {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BanFields::deserialize(deserializer)?;
        let duration = |text: &str| parse_duration(text).map_err(D::Error::custom);
        let (within, span) = (duration(&fields.within)?, duration(&fields.span)?);
        Ban::new(fields.denials, within, span).map_err(D::Error::custom)
    }
}

/// Writes a list of texts.
///
/// # Errors
/// A key is not UTF-8.
impl Serialize for KeyList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let exact = self.exact.iter().map(|key| key.to_vec());
        let prefixes = self.prefixes.iter().map(|prefix| [prefix, &b"*"[..]].concat());
        let texts = exact.chain(prefixes).map(String::from_utf8).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|_| S::Error::custom("a key of a list is not UTF-8"))?;
        serializer.collect_seq(texts)
    }
}

impl<'de> Deserialize<'de> for KeyList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(deserializer).map(|keys| keys.into_iter().collect())
    }
}
