//! The expected decision of a store.

use std::fmt::Debug;

use tollgate_algorithms::{Decision, Id, LimitDecision, Micros, Reason, Timestamp};

/// Defines [`Expected`] with a field for each of these fields of a [`Decision`].
macro_rules! expected {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// Every field of a [`Decision`] that a store decides.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Expected {
            $($(#[$doc])* pub $field: $type,)*
            /// The decision of each limit.
            pub limits: Vec<LimitDecision>,
        }

        impl From<&Decision> for Expected {
            fn from(decision: &Decision) -> Self {
                Expected { $($field: decision.$field,)* limits: decision.limits() }
            }
        }

        impl Expected {
            /// Names each field in which another answer differs, with both values.
            #[must_use]
            pub fn differences(&self, other: &Expected) -> Vec<String> {
                let mut found = Differences::default();
                $(found.field(stringify!($field), &self.$field, &other.$field);)*
                found.field("limits", &self.limits.len(), &other.limits.len());
                for (index, (expected, limit)) in self.limits.iter().zip(&other.limits).enumerate() {
                    found.field(&format!("limits[{index}]"), expected, limit);
                }
                found.0
            }
        }
    };
}

expected! {
    /// Whether the request may go on.
    allowed: bool,
    /// The reason.
    reason: Reason,
    /// Whether waiting does not help.
    never: bool,
    /// The capacity of the binding limit.
    capacity: u64,
    /// The smallest remaining cost of the limits.
    remaining: u64,
    /// How long until the same cost would be admitted.
    retry_after: Option<Micros>,
    /// How long until nothing is used.
    reset_after: Option<Micros>,
    /// How long to wait before acting.
    delay: Micros,
    /// The cost that was charged or refunded.
    granted: u64,
    /// Whether anything changed.
    changed: bool,
    /// Whether this is an earlier answer.
    replayed: bool,
    /// Whether the policy only records.
    shadow: bool,
    /// The time of the decision.
    time: Timestamp,
    /// The lease it is about.
    lease: Option<Id>,
    /// The reservation it is about.
    reservation: Option<Id>,
    /// Which limit is binding.
    binding: usize,
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn field<T: PartialEq + Debug>(&mut self, name: &str, expected: &T, found: &T) {
        if expected != found {
            self.0.push(format!("{name}: expected {expected:?}, found {found:?}"));
        }
    }
}
