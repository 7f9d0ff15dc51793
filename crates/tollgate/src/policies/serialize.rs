//! Policies as serde reads them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use tollgate_algorithms::Policy;

use super::Policies;

/// Reads a map from the name of each policy to its limits, or to the fields of [`Policy`] without a name.
/// Overrides and tiers are set afterwards. The format must be self-describing, such as JSON, YAML or TOML.
///
/// # Examples
/// ```
/// use tollgate::Policies;
///
/// #[derive(serde::Deserialize)]
/// struct Config {
///     policies: Policies,
/// }
///
/// let config: Config = serde_json::from_str(
///     r#"{ "policies": {
///         "api": "10/s burst 20",
///         "login": { "limits": "5/15min log", "on_store_error": "deny" }
///     } }"#,
/// )?;
/// assert_eq!(config.policies.get("login")?.to_string(), "5/15min log");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'de> Deserialize<'de> for Policies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PoliciesVisitor;

        impl<'de> Visitor<'de> for PoliciesVisitor {
            type Value = Policies;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from names to policies")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Policies, A::Error> {
                let mut policies = Policies::new();
                while let Some((name, policy)) = map.next_entry::<String, Policy>()? {
                    if policy.is_named() {
                        let message = format!("the policy {name:?} has a name already: remove it");
                        return Err(A::Error::custom(message));
                    }
                    let policy = policy.with_name(&name).map_err(A::Error::custom)?;
                    policies.add(policy).map_err(A::Error::custom)?;
                }
                Ok(policies)
            }
        }

        deserializer.deserialize_map(PoliciesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported() {
        for (text, expected) in [
            (r#"{"a b":"1/s"}"#, "a policy's name is a letter followed by"),
            (r#"{"a":"1/s","a":"2/s"}"#, "policy \"a\" already exists; choose another name"),
            (r#"{"a":{"name":"b","limits":"1/s"}}"#, "the policy \"a\" has a name already"),
            (r#"{"a":"1"}"#, "write it after the count, as in 10/s"),
            (r#"["1/s"]"#, "expected a map from names to policies"),
        ] {
            let error = serde_json::from_str::<Policies>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
