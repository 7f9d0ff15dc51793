//! The types that scalars are converted to.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use tollgate::{Cost, OnStoreError, Policy, TableFull};
use tollgate_descriptors::Charging;
use tollgate_headers::HeaderStyle;
use tollgate_rules::{
    AmbiguousPaths, HostPattern, Ipv6Prefix, MethodName, Networks, OnMissing, OnNoRule, PathCase,
    PathPattern, Template,
};

use super::envoy::{FailureMode, RefundsAndLimits};
use super::operation::{LogFormat, LogLevel, Privacy};
use super::tokens::{Operators, Scope};
use super::track::TimelineSpec;
use crate::address::Address;
use crate::fields::FromValue;
use crate::schema::Value;
use crate::store::StoreUrl;

macro_rules! from_values {
    ($($type:ty { $($pattern:pat => $result:expr,)+ })+) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $($pattern => $result,)+
                    _ => None,
                }
            }
        })+
    };
}

from_values! {
    String { Value::Text(text) => Some(text.clone()), }
    &'static str { Value::Keyword(word) => Some(*word), }
    bool { Value::Bool(bool) => Some(*bool), }
    Duration { Value::Duration(duration) => Some(*duration), }
    // A bound beyond the address space is the same as its end.
    u64 { Value::Number(number) => Some(*number), }
    usize { Value::Number(number) => Some(usize::try_from(*number).unwrap_or(usize::MAX)), }
    u16 { Value::Number(number) => u16::try_from(*number).ok(), }
    Cost { Value::Number(number) => Cost::new(*number), }
    Ipv6Prefix { Value::Number(bits) => u8::try_from(*bits).ok().and_then(Ipv6Prefix::new), }
    Address { Value::Address(address) => Some(address.clone()), }
    HeaderName { Value::HeaderName(name) => Some(name.clone()), }
    HostPattern { Value::Host(host) => Some(host.clone()), }
    MethodName { Value::Method(method) => Some(method.clone()), }
    [u8; 32] { Value::Sha256(digest) => Some(*digest), }
    Networks { Value::Networks(networks) => Some(networks.clone()), }
    OnMissing { Value::Keyword(word) => OnMissing::parse(word).ok(), }
    PathBuf { Value::Path(path) => Some(path.clone()), }
    PathPattern { Value::PathPattern(pattern) => Some(pattern.clone()), }
    Policy { Value::Limits(limits) => Some(limits.clone()), }
    StoreUrl { Value::Url(url) => Some(url.as_str().into()), }
    TimelineSpec { Value::Timeline(timeline) => Some(*timeline), }
    Template { Value::Template(template) => Some(template.clone()), }
}

macro_rules! keywords {
    ($($type:ident { $($word:literal => $variant:ident,)+ })+) => {
        from_values! { $($type { $(Value::Keyword($word) => Some($type::$variant),)+ })+ }
    };
}

keywords! {
    AmbiguousPaths { "strictest" => Strictest, "deny" => Deny, }
    Charging { "atomic" => Atomic, "reference" => Reference, }
    FailureMode { "local" => Local, "deny" => Deny, "allow" => Allow, "error" => Error, }
    HeaderStyle {
        "draft11" => Draft11, "legacy-delta" => LegacyDelta, "legacy-epoch" => LegacyEpoch,
        "draft6" => Draft6,
    }
    LogFormat { "text" => Text, "json" => Json, }
    LogLevel {
        "error" => Error, "warn" => Warn, "info" => Info, "debug" => Debug, "trace" => Trace,
    }
    OnNoRule { "pass" => Pass, "deny" => Deny, }
    Operators { "tokens" => Tokens, "loopback" => Loopback, }
    OnStoreError { "local" => Local, "deny" => Deny, "allow" => Allow, }
    PathCase { "sensitive" => Sensitive, "insensitive" => Insensitive, }
    Privacy { "plain" => Plain, "masked" => Masked, "hashed" => Hashed, }
    RefundsAndLimits { "rules" => Rules, "all" => All, "operators" => Operators, }
    Scope { "check" => Check, "operate" => Operate, "read" => Read, "admin" => Admin, }
    TableFull { "deny" => Deny, "allow" => Allow, }
}
