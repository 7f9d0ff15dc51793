//! Rules: which policy, key and cost a request is checked with.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use tollgate::{Check, Cost, Policies, Policy, UnknownPolicy};

use crate::BoxError;
use crate::key::KeyExtractor;

/// A function of the head of a request.
pub(crate) type FromHead<T> = Arc<dyn Fn(&Parts) -> T + Send + Sync>;

/// One check of each request: a policy, the key that is counted, and the cost.
///
/// A layer with several rules checks them together: all of them are charged, or none.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tollgate::{Cost, Policies, Tiers};
/// use tollgate_tower::{Fallback, KeyExtractor, Rule};
///
/// let mut policies = Policies::new();
/// policies.define("api", "10/s burst 20")?;
/// let mut tiers = Tiers::new();
/// tiers.add("pro", "100/s")?;
/// policies.set_tiers("api", &tiers)?;
///
/// #[derive(Clone)]
/// struct Plan(&'static str);
///
/// let rule = Rule::named(Arc::new(policies), "api", KeyExtractor::header("x-account"))?
///     // The plan of the account, which another layer has put into the extensions.
///     .tier(|head| head.extensions.get::<Plan>().map(|plan| plan.0.to_owned()))
///     .cost(|head| if head.uri.path() == "/export" { Cost::from(10) } else { Cost::ONE })
///     .skip_if(|head| head.uri.path() == "/health")
///     .on_missing(Fallback::Key("anonymous".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Rule {
    policy: PolicySource,
    key: KeyExtractor,
    cost: CostSource,
    skip_if: Option<FromHead<bool>>,
    on_missing: Fallback,
    on_invalid: Fallback,
}

#[derive(Clone)]
enum PolicySource {
    Fixed(Policy),
    Function(FromHead<Result<Policy, BoxError>>),
    Named { policies: Arc<Policies>, name: Box<str>, tier: Option<FromHead<Option<String>>> },
}

#[derive(Clone)]
enum CostSource {
    Fixed(Cost),
    Function(FromHead<Result<Cost, BoxError>>),
}

/// What a rule does with a request for which it has no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fallback {
    /// Rejects the request with 400 (in gRPC `INVALID_ARGUMENT`).
    #[default]
    Reject,
    /// Does not check this rule.
    Skip,
    /// Uses this key, which all such requests share.
    Key(Box<str>),
}

/// A check of one request.
#[derive(Clone, Debug)]
pub(crate) struct RuleCheck {
    pub(crate) policy: Policy,
    pub(crate) key: Box<[u8]>,
    pub(crate) cost: Cost,
}

impl RuleCheck {
    pub(crate) fn borrow(&self) -> Check<'_> {
        Check { policy: &self.policy, key: &self.key, cost: self.cost }
    }
}

/// Why a request is not checked.
#[derive(Debug)]
pub(crate) enum KeyFailure {
    Missing,
    Invalid(BoxError),
}

/// An error for a policy without a name.
#[derive(Debug)]
pub(crate) struct UnnamedPolicy(pub(crate) Policy);

impl fmt::Display for UnnamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = self.0.to_string();
        write!(
            f,
            "the policy {limits:?} has no name, so that it would count together with every policy of the \
             same limits; create it with Policy::named(\"NAME\", {limits:?}), or add .with_name(\"NAME\")?"
        )
    }
}

impl std::error::Error for UnnamedPolicy {}

impl Rule {
    /// A rule with one policy for all requests, and a cost of 1.
    ///
    /// Usage is stored by the name of the policy and the key, so the policy needs a name: policies that are
    /// parsed from the same text would count together, such as the limits of logins and of searches.
    ///
    /// # Panics
    /// Panics if the policy has no [name](Policy::is_named).
    pub fn new(policy: Policy, key: KeyExtractor) -> Self {
        assert!(policy.is_named(), "{}", UnnamedPolicy(policy));
        Rule::with_policy(PolicySource::Fixed(policy), key)
    }

    /// A rule with a policy for each request. An error makes the request invalid. A policy without a
    /// [name](Policy::is_named) rejects it, whatever [`Rule::on_invalid`] is.
    pub fn from_fn<E: Into<BoxError>>(
        policy: impl Fn(&Parts) -> Result<Policy, E> + Send + Sync + 'static,
        key: KeyExtractor,
    ) -> Self {
        let policy = move |parts: &Parts| policy(parts).map_err(Into::into);
        Rule::with_policy(PolicySource::Function(Arc::new(policy)), key)
    }

    /// A rule with a named policy, with the overrides of its keys.
    ///
    /// # Errors
    /// There is no policy with this name.
    pub fn named(
        policies: Arc<Policies>,
        name: &str,
        key: KeyExtractor,
    ) -> Result<Self, UnknownPolicy> {
        policies.get(name)?;
        Ok(Rule::with_policy(PolicySource::Named { policies, name: name.into(), tier: None }, key))
    }

    fn with_policy(policy: PolicySource, key: KeyExtractor) -> Self {
        Rule {
            policy,
            key,
            cost: CostSource::Fixed(Cost::ONE),
            skip_if: None,
            on_missing: Fallback::Reject,
            on_invalid: Fallback::Reject,
        }
    }

    /// Sets the tier of each request in a rule with a [named](Self::named) policy. `None` is the
    /// policy itself; a tier that the policy does not have makes the request invalid.
    ///
    /// # Panics
    /// Panics if the rule has no named policy.
    pub fn tier(
        mut self,
        select: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        #[expect(clippy::panic, reason = "documented")]
        let PolicySource::Named { tier, .. } = &mut self.policy else {
            panic!("only a rule with a named policy has tiers; use Rule::named")
        };
        *tier = Some(Arc::new(select));
        self
    }

    /// Sets the cost of each request; it is 1 by default. A cost of 0 is checked but not charged.
    pub fn cost(mut self, cost: impl Fn(&Parts) -> Cost + Send + Sync + 'static) -> Self {
        self.cost = CostSource::Function(Arc::new(move |parts| Ok(cost(parts))));
        self
    }

    /// Sets the cost of each request by a function that may fail; the request is then invalid.
    pub fn try_cost<E: Into<BoxError>>(
        mut self,
        cost: impl Fn(&Parts) -> Result<Cost, E> + Send + Sync + 'static,
    ) -> Self {
        self.cost = CostSource::Function(Arc::new(move |parts| cost(parts).map_err(Into::into)));
        self
    }

    /// Does not check requests for which the function returns true.
    pub fn skip_if(mut self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.skip_if = Some(Arc::new(skip));
        self
    }

    /// Sets what happens to a request that has no key; the default is [`Fallback::Reject`].
    pub fn on_missing(mut self, fallback: Fallback) -> Self {
        self.on_missing = fallback;
        self
    }

    /// Sets what happens to a request whose key, policy or cost cannot be determined, because its
    /// function failed or the value is invalid; the default is [`Fallback::Reject`]. With
    /// [`Fallback::Skip`] a client that can cause the failure is not limited.
    pub fn on_invalid(mut self, fallback: Fallback) -> Self {
        self.on_invalid = fallback;
        self
    }

    /// The check of a request; `None` if the rule does not apply.
    pub(crate) async fn check(&self, parts: &Parts) -> Result<Option<RuleCheck>, KeyFailure> {
        if self.skip_if.as_ref().is_some_and(|skip| skip(parts)) {
            return Ok(None);
        }
        let (fallback, failure) = match self.key.extract(parts).await {
            Ok(Some(key)) => match self.with_key(parts, key) {
                Ok(check) => return Ok(Some(check)),
                // No fallback hides a mistake of the program.
                Err(error) if error.is::<UnnamedPolicy>() => {
                    return Err(KeyFailure::Invalid(error));
                }
                Err(error) => (&self.on_invalid, KeyFailure::Invalid(error)),
            },
            Ok(None) => (&self.on_missing, KeyFailure::Missing),
            Err(error) => (&self.on_invalid, KeyFailure::Invalid(error)),
        };
        match fallback {
            Fallback::Reject => Err(failure),
            Fallback::Skip => Ok(None),
            // A policy or cost that cannot be determined for the shared key either is an error.
            Fallback::Key(key) => match self.with_key(parts, key.as_bytes().to_vec()) {
                Ok(check) => Ok(Some(check)),
                Err(error) => Err(KeyFailure::Invalid(error)),
            },
        }
    }

    fn with_key(&self, parts: &Parts, key: Vec<u8>) -> Result<RuleCheck, BoxError> {
        tollgate::Key::new(&key)?;
        let policy = match &self.policy {
            PolicySource::Fixed(policy) => policy.clone(),
            PolicySource::Function(policy) => {
                let policy = policy(parts)?;
                if !policy.is_named() {
                    return Err(UnnamedPolicy(policy).into());
                }
                policy
            }
            PolicySource::Named { policies, name, tier } => {
                let tier = tier.as_ref().and_then(|tier| tier(parts));
                policies.resolve(name, &key, tier.as_deref())?.clone()
            }
        };
        let cost = match &self.cost {
            CostSource::Fixed(cost) => *cost,
            CostSource::Function(cost) => cost(parts)?,
        };
        Ok(RuleCheck { policy, key: key.into(), cost })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rule = f.debug_struct("Rule");
        match &self.policy {
            PolicySource::Fixed(policy) => rule.field("policy", &policy.name()),
            PolicySource::Named { name, .. } => rule.field("policy", name),
            PolicySource::Function(_) => rule.field("policy", &"(function)"),
        };
        rule.field("key", &self.key)
            .field("on_missing", &self.on_missing)
            .field("on_invalid", &self.on_invalid)
            .finish_non_exhaustive()
    }
}
