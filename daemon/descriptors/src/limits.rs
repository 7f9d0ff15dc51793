//! From the numbers of a limit to a policy.

use tollgate::{Kind, Limit, Micros, Policy, Spec};

use super::rule::Limits;
use super::unit::Unit;
use super::{Charging, ReadOptions};

/// What every policy's name begins with.
const PREFIX: &str = "@envoy.";
/// The most bytes of a policy's name.
const MAX_NAME_BYTES: usize = 128;
/// From Monday, where windows of weeks begin, to Thursday, where the reference's do.
const TO_THURSDAY: Micros = Micros::from_secs(3 * 86_400);

/// Makes the policies of a domain. All have one name: state is kept by it and the key, so a
/// changed limit goes on from what was used.
#[derive(Debug)]
pub(super) struct Maker {
    name: String,
    options: ReadOptions,
}

impl Maker {
    pub(super) fn new(domain: &str, options: &ReadOptions) -> Self {
        Maker { name: name_of(domain), options: options.clone() }
    }

    /// Whether the name of its policies tells the domain.
    pub(super) fn tells(&self, domain: &str) -> bool {
        self.name.strip_prefix(PREFIX) == Some(domain)
    }

    /// Whether a rule's policy never denies. Where charging is atomic a rule of quotas has no say
    /// in what is charged, and the service decides on its verdict.
    pub(super) fn is_shadow(&self, shadow: bool, quota: bool) -> bool {
        shadow || (quota && self.options.charging == Charging::Atomic)
    }

    /// The limit of requests per unit.
    pub(super) fn per_unit(&self, count: u32, unit: Unit, shadow: bool) -> Limits {
        if count == 0 {
            return Limits::DenyAll;
        }
        let limit = spec(count, unit, self.options.charging).build();
        let policy =
            limit.map_err(|error| error.to_string()).and_then(|error| self.policy([error], shadow));
        match policy {
            Ok(policy) => Limits::Policy(policy),
            Err(error) => {
                unreachable!("every count fits every unit, and every domain a name: {error}")
            }
        }
    }

    /// The policy of limits in our notation.
    ///
    /// # Errors
    /// They are too many, or of requests in flight.
    pub(super) fn of_limits(&self, limits: Vec<Limit>, shadow: bool) -> Result<Policy, String> {
        if let Some(limit) = limits.iter().find(|limit| limit.is_concurrent()) {
            return Err(format!(
                "write another limit than {limit}; nobody would say when a request ends"
            ));
        }
        self.policy(limits, shadow)
    }

    fn policy(
        &self,
        limits: impl IntoIterator<Item = Limit>,
        shadow: bool,
    ) -> Result<Policy, String> {
        let policy = Policy::reserved(&self.name, limits).map_err(|error| error.to_string())?;
        let policy = policy.with_on_store_error(self.options.on_store_error);
        Ok(if shadow { policy.shadow() } else { policy })
    }
}

/// The windows are the reference's; what it charges is told by `charging`.
fn spec(count: u32, unit: Unit, charging: Charging) -> Spec {
    let is_thursday = unit == Unit::Week && charging == Charging::Reference;
    let offset = if is_thursday { TO_THURSDAY } else { Micros::ZERO };
    let spec = Spec::new(u64::from(count), unit.window(), Kind::Fixed { offset });
    match charging {
        Charging::Atomic => spec,
        Charging::Reference => spec.count_denied(),
    }
}

/// `@envoy.` and the domain, with `_` for what a policy's name cannot have, cut where it is long.
fn name_of(domain: &str) -> String {
    let can_be = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let domain = domain.chars().map(|c| if can_be(&c) { c } else { '_' });
    PREFIX.chars().chain(domain).take(MAX_NAME_BYTES).collect()
}
