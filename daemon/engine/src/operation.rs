//! The table of operations.
//!
//! HTTP routes, RESP commands, OpenAPI and the RESP reference derive from [`OPERATIONS`]; an
//! operation is added here and nowhere else.

use tollgate::{Block, Cost, Decision, Id, Micros, Operation, Timestamp, random_id};

use crate::config::Scope;
use crate::error::Error;
use crate::parameter::Parameter;

/// The arguments of an operation itself, apart from its checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arguments {
    /// [`Parameter::MaxWait`].
    pub max_wait: Option<Micros>,
    /// [`Parameter::For`].
    pub span: Option<Micros>,
    /// [`Parameter::Time`].
    pub time: Option<Timestamp>,
    /// [`Parameter::LeaseId`].
    pub lease: Option<Id>,
    /// [`Parameter::ReservationId`].
    pub reservation: Option<Id>,
}

impl Arguments {
    fn required_lease(&self) -> Result<Id, Error> {
        self.lease.ok_or_else(|| missing_id(Parameter::LeaseId, "lease", "acquire"))
    }

    fn required_reservation(&self) -> Result<Id, Error> {
        self.reservation
            .ok_or_else(|| missing_id(Parameter::ReservationId, "reservation", "reserve"))
    }
}

fn missing_id(parameter: Parameter, object: &str, source: &str) -> Error {
    let detail = format!(
        "the {object} id is missing; send the one that {source} returned, 32 hexadecimal digits"
    );
    Error::bad_request(detail).with_parameter(parameter)
}

/// The action of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Executes an operation of the store.
    Execute(Operation),
    /// Reads the state of a key.
    Inspect,
}

impl Action {
    /// The block of the key after the operation, if the operation determines it.
    #[must_use]
    pub fn block_after(self, decision: &Decision) -> Option<Option<Block>> {
        let until = |span| Block::Until(decision.time.saturating_add(span));
        match self {
            Action::Execute(Operation::Block { span }) => {
                Some(Some(span.map_or(Block::Forever, until)))
            }
            Action::Execute(Operation::Unblock) => Some(None),
            // Without state, only a block differs from an unknown key.
            Action::Execute(Operation::Reset) => Some(match decision.reset_after {
                None => Some(Block::Forever),
                Some(time) => (time > Micros::ZERO).then(|| until(time)),
            }),
            Action::Execute(_) | Action::Inspect => None,
        }
    }
}

/// The shape of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// A decision that admits or denies.
    Verdict,
    /// The decision that a check would return; nothing was charged.
    Preview,
    /// Whether the operation changed anything, and what the limits have left.
    Change,
    /// The state of a key.
    Inspection,
}

/// An operation as clients see it.
#[derive(Debug)]
pub struct OperationSpec {
    /// Its name: `POST /v1/<name>`, `TOLLGATE.<NAME>`.
    pub name: &'static str,
    /// Its description, in one sentence.
    pub summary: &'static str,
    /// The parameters that it accepts.
    pub parameters: &'static [Parameter],
    /// The parameters that it requires, apart from policy and key.
    pub required: &'static [Parameter],
    /// The scopes that permit it; one of them is enough.
    pub scopes: &'static [Scope],
    /// The shape of its response.
    pub response: ResponseKind,
    /// Builds the call's action from its arguments.
    action: fn(&Arguments) -> Result<Action, Error>,
}

impl OperationSpec {
    /// The operation of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static OperationSpec> {
        OPERATIONS.iter().find(|spec| spec.name == name)
    }

    /// Builds the call's action from its arguments. Draws a random id for a lease or reservation
    /// that is created without one.
    ///
    /// # Errors
    /// A required argument is missing.
    #[inline]
    pub fn action(&self, arguments: &Arguments) -> Result<Action, Error> {
        (self.action)(arguments)
    }

    /// Whether it accepts a parameter.
    #[must_use]
    pub fn accepts(&self, parameter: Parameter) -> bool {
        self.parameters.contains(&parameter)
    }

    /// The cost of a check that names this one or none.
    ///
    /// # Errors
    /// The operation requires a cost.
    #[inline]
    pub fn cost(&self, cost: Option<Cost>) -> Result<Cost, Error> {
        match cost {
            Some(cost) => Ok(cost),
            None if self.required.contains(&Parameter::Cost) => {
                let detail = format!("cost is missing; {} needs the actual cost", self.name);
                Err(Error::bad_request(detail).with_parameter(Parameter::Cost))
            }
            None => Ok(Cost::ONE),
        }
    }

    /// Whether it requires the scope of operators, and is therefore audited.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        self.scopes.contains(&Scope::Operate)
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self.response, ResponseKind::Preview | ResponseKind::Inspection)
    }

    /// Whether its response is a decision, which a policy can make without the store.
    #[must_use]
    pub fn decides(&self) -> bool {
        matches!(self.response, ResponseKind::Verdict | ResponseKind::Preview)
    }

    /// Whether it denies a cost above the capacity as `never`: `take` grants less instead.
    #[must_use]
    pub fn can_exceed_capacity(&self) -> bool {
        self.response == ResponseKind::Verdict && self.name != "take"
    }
}

/// Lists the parameters of a check, with or without a cost, and those of an operation. With
/// `Domain`, a descriptor can be in the place of policy and key.
macro_rules! parameters {
    (Domain, Cost $(, $parameter:ident)*) => {
        parameters!(@check [Domain Descriptor] [Cost] $($parameter)*)
    };
    (Domain $(, $parameter:ident)*) => {
        parameters!(@check [Domain Descriptor] [] $($parameter)*)
    };
    (Cost $(, $parameter:ident)*) => {
        parameters!(@check [] [Cost] $($parameter)*)
    };
    ($($parameter:ident),*) => {
        parameters!(@check [] [] $($parameter)*)
    };
    (@check [$($domain:ident)*] [$($cost:ident)?] $($parameter:ident)*) => {
        &[
            Parameter::Policy,
            Parameter::Tier,
            Parameter::Limit,
            Parameter::Key,
            Parameter::KeyBase64,
            $(Parameter::$domain,)*
            $(Parameter::$cost,)?
            Parameter::Note,
            $(Parameter::$parameter,)*
        ]
    };
}

/// The parameters of each element of [`Parameter::Checks`].
pub const CHECK_PARAMETERS: &[Parameter] = parameters![Cost];

const CHECK: &[Scope] = &[Scope::Check];
const READ: &[Scope] = &[Scope::Read];
const CHECK_OR_READ: &[Scope] = &[Scope::Check, Scope::Read];
const OPERATE: &[Scope] = &[Scope::Operate];

/// Every operation.
pub static OPERATIONS: [OperationSpec; 15] = [
    OperationSpec {
        name: "check",
        summary: "Decides and charges; on a policy with a concurrent limit, acquires a lease.",
        parameters: parameters![Domain, Cost, RequestId, Checks, LeaseId],
        required: &[],
        scopes: CHECK,
        response: ResponseKind::Verdict,
        action: |arguments| Ok(Action::Execute(Operation::Check { lease: arguments.lease })),
    },
    OperationSpec {
        name: "peek",
        summary: "Returns what a check would return; changes nothing.",
        parameters: parameters![Domain, Cost, Checks],
        required: &[],
        scopes: CHECK_OR_READ,
        response: ResponseKind::Preview,
        action: |_| Ok(Action::Execute(Operation::Peek)),
    },
    OperationSpec {
        name: "settle",
        summary: "Replaces the cost that a check charged by the actual one, once.",
        parameters: parameters![Domain, Cost, RequestId, Checks],
        required: &[Parameter::Cost, Parameter::RequestId],
        scopes: CHECK,
        response: ResponseKind::Change,
        action: |_| Ok(Action::Execute(Operation::Settle)),
    },
    OperationSpec {
        name: "take",
        summary: "Grants the smaller of the cost and what remains.",
        parameters: parameters![Cost, RequestId],
        required: &[],
        scopes: CHECK,
        response: ResponseKind::Verdict,
        action: |_| Ok(Action::Execute(Operation::Take)),
    },
    OperationSpec {
        name: "reserve",
        summary: "Charges now for an action after the returned delay; denied if the delay exceeds \
                  the longest acceptable wait.",
        parameters: parameters![Cost, RequestId, MaxWait, ReservationId],
        required: &[],
        scopes: CHECK,
        response: ResponseKind::Verdict,
        action: |arguments| {
            let id = arguments.reservation.unwrap_or_else(random_id);
            // Without `max_wait`, any delay is acceptable.
            let max_wait = arguments.max_wait.unwrap_or(Micros::new(u64::MAX));
            Ok(Action::Execute(Operation::Reserve { id, max_wait }))
        },
    },
    OperationSpec {
        name: "cancel",
        summary: "Cancels a reservation before its time.",
        parameters: parameters![RequestId, ReservationId],
        required: &[Parameter::ReservationId],
        scopes: CHECK,
        response: ResponseKind::Change,
        action: |arguments| {
            Ok(Action::Execute(Operation::Cancel { id: arguments.required_reservation()? }))
        },
    },
    OperationSpec {
        name: "refund",
        summary: "Gives back a cost; with a decision's time, in the window of that decision.",
        parameters: parameters![Domain, Cost, RequestId, Time],
        required: &[],
        scopes: OPERATE,
        response: ResponseKind::Change,
        action: |arguments| Ok(Action::Execute(Operation::Refund { time: arguments.time })),
    },
    OperationSpec {
        name: "penalize",
        summary: "Charges even beyond the limit, up to a debt of one more capacity.",
        parameters: parameters![Domain, Cost, RequestId],
        required: &[],
        scopes: OPERATE,
        response: ResponseKind::Change,
        action: |_| Ok(Action::Execute(Operation::Penalize)),
    },
    OperationSpec {
        name: "reset",
        summary: "Deletes the counters, leases and reservations of a key; a block stays.",
        parameters: parameters![Domain, RequestId],
        required: &[],
        scopes: OPERATE,
        response: ResponseKind::Change,
        action: |_| Ok(Action::Execute(Operation::Reset)),
    },
    OperationSpec {
        name: "block",
        summary: "Denies every check of a key, for a time or until it is unblocked.",
        parameters: parameters![Domain, RequestId, For],
        required: &[],
        scopes: OPERATE,
        response: ResponseKind::Change,
        action: |arguments| Ok(Action::Execute(Operation::Block { span: arguments.span })),
    },
    OperationSpec {
        name: "unblock",
        summary: "Lifts a block.",
        parameters: parameters![Domain, RequestId],
        required: &[],
        scopes: OPERATE,
        response: ResponseKind::Change,
        action: |_| Ok(Action::Execute(Operation::Unblock)),
    },
    OperationSpec {
        name: "acquire",
        summary: "Acquires a lease on every concurrent limit of a policy.",
        parameters: parameters![Cost, RequestId, Checks, LeaseId],
        required: &[],
        scopes: CHECK,
        response: ResponseKind::Verdict,
        action: |arguments| {
            let lease = arguments.lease.unwrap_or_else(random_id);
            Ok(Action::Execute(Operation::Acquire { lease }))
        },
    },
    OperationSpec {
        name: "renew",
        summary: "Extends an unexpired lease to its full length from now.",
        parameters: parameters![RequestId, LeaseId],
        required: &[Parameter::LeaseId],
        scopes: CHECK,
        response: ResponseKind::Change,
        action: |arguments| {
            Ok(Action::Execute(Operation::Renew { lease: arguments.required_lease()? }))
        },
    },
    OperationSpec {
        name: "release",
        summary: "Releases a lease.",
        parameters: parameters![RequestId, LeaseId],
        required: &[Parameter::LeaseId],
        scopes: CHECK,
        response: ResponseKind::Change,
        action: |arguments| {
            Ok(Action::Execute(Operation::Release { lease: arguments.required_lease()? }))
        },
    },
    OperationSpec {
        name: "inspect",
        summary: "Returns the state of each limit, the block, the leases and the reservations of a \
                  key.",
        parameters: parameters![Domain],
        required: &[],
        scopes: READ,
        response: ResponseKind::Inspection,
        action: |_| Ok(Action::Inspect),
    },
];
