//! `DEL`: resets keys of `CL.THROTTLE`.

use tollgate::{Cost, Operation};

use crate::audit;
use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::question::{Asks, OwnCheck, Question, Reply};
use crate::resp::table::{Argument, Command, Flag, Keys, Type};
use crate::resp::throttles::NAME;
use crate::resp::verb::{audited, begin_record, must_operate};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    flags: &[Flag::Write],
    keys: Keys::All,
    arguments: &[Argument::new("key", Type::Key).multiple()],
    scopes: &[Scope::Operate],
    ..Command::new(
        "del",
        "Resets keys of CL.THROTTLE; answers for how many of them anything was kept.",
        "generic",
        answer,
    )
};

/// Resets each key, with a line of the audit each.
pub(super) fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let last = asking.args.len() - 1;
    let keys: Vec<_> = asking.args.from(1).collect();
    keys.iter().try_for_each(|key| asking.key(key).map(drop))?;
    let policy = asking.scene.daemon.resp.throttles.any();
    let policy = policy.map_err(|error| Failure::bad(error.to_string()))?;
    let verb = audited(asking.command);
    let may = must_operate(asking, verb).and_then(|()| asking.may_use(&policy));
    for (index, key) in (1..).zip(keys) {
        let record = begin_record(asking.scene, verb);
        record.is_about(audit::Subject {
            policy: NAME.to_owned(),
            key: asking.scene.live.shown(key),
        });
        if let Err(refusal) = &may {
            record.refused(refusal.detail());
            continue;
        }
        record.asks(&Operation::Reset, 0);
        let check = OwnCheck { policy: policy.clone(), key: key.into(), cost: Cost::ZERO };
        let asks = Asks::Decide { verb: Operation::Reset, checks: vec![check], request_id: None };
        let reply = Reply::Sum { is_last: index == last };
        asking.ask(Question { asks, reply, record: Some(record) })?;
    }
    may
}
