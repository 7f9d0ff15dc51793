//! The commands `TOLLGATE.<OPERATION>`, and how their arguments become calls of the engine.

use std::borrow::Cow;

use tollgate::{Cost, Id, Key, Micros, Operation, Timestamp, parse_duration};
use tollgate_engine::{
    Action, Arguments, AuditRecord, Call, CheckRequest, Checks, ErrorKind, OperationSpec,
    Parameter, PolicySelector, RequestId, ResponseKind,
};

use super::command::{Argument, Command, Flag, Handler, Keys};
use super::context::CommandContext;
use super::decision;
use super::deferred::CheckReply;
use super::failure::{Failure, quoted};
use super::pending::ReplyFormat;
use tollgate_document::did_you_mean;

/// A keyword that may follow a policy and its key, and the parameter of its value.
#[derive(Debug)]
struct Keyword {
    parameter: Parameter,
    token: &'static str,
    /// The value in `COMMAND DOCS`.
    value: Argument,
}

/// Every keyword, in the order of documentation.
static KEYWORDS: [Keyword; 9] = [
    keyword(Parameter::Cost, "COST", Argument::integer("cost")),
    keyword(Parameter::Tier, "TIER", Argument::text("tier")),
    keyword(Parameter::Note, "NOTE", Argument::text("note")),
    keyword(Parameter::RequestId, "ID", Argument::text("request-id")),
    keyword(Parameter::MaxWait, "MAXWAIT", Argument::integer("max-wait-us")),
    keyword(Parameter::For, "FOR", Argument::integer("for-us")),
    keyword(Parameter::Time, "TIME", Argument::integer("time-us")),
    keyword(Parameter::LeaseId, "LEASE", Argument::text("lease-id")),
    keyword(Parameter::ReservationId, "RESERVATION", Argument::text("reservation-id")),
];

const fn keyword(parameter: Parameter, token: &'static str, value: Argument) -> Keyword {
    Keyword { parameter, token, value: value.after(token) }
}

impl Keyword {
    /// The keyword of a token in any case.
    fn from_token(token: &[u8]) -> Option<&'static Self> {
        KEYWORDS.iter().find(|keyword| keyword.token.as_bytes().eq_ignore_ascii_case(token))
    }

    /// Whether each check may have its own; the others are written before the first `AND`.
    fn is_per_check(&self) -> bool {
        matches!(
            self.parameter,
            Parameter::Cost | Parameter::Tier | Parameter::Note | Parameter::RequestId
        )
    }
}

/// The name of the operation of plain checks.
const CHECK: &str = "check";

/// The command `TOLLGATE.<NAME>` of an operation. Leaks its name and arguments: the table is built
/// once.
pub(super) fn command(spec: &'static OperationSpec) -> Command {
    let flags: &[Flag] = if spec.is_read_only() {
        &[Flag::ReadOnly, Flag::Fast, Flag::MovableKeys]
    } else if spec.name == CHECK {
        &[Flag::Write, Flag::Fast, Flag::MovableKeys, Flag::Deferring]
    } else {
        &[Flag::Write, Flag::Fast, Flag::MovableKeys]
    };
    let mut arguments = vec![Argument::text("policy"), Argument::key("key")];
    for keyword in KEYWORDS.iter().filter(|keyword| spec.accepts(keyword.parameter)) {
        let is_optional = !spec.required.contains(&keyword.parameter);
        arguments.push(Argument { is_optional, ..keyword.value });
    }
    if spec.accepts(Parameter::Checks) {
        let more = Argument::text("policy key …").after("AND");
        arguments.push(more.optional().multiple());
    }
    Command {
        name: format!("tollgate.{}", spec.name).leak(),
        summary: spec.summary,
        group: "tollgate",
        since: "0.1.0",
        arity: -3,
        flags,
        keys: Keys::OfChecks,
        arguments: arguments.leak(),
        scopes: spec.scopes,
        audited_as: spec.is_audited().then_some(spec.name),
        handler: Handler::Operation(spec),
    }
}

/// Executes `TOLLGATE.CHECK policy key`, the most frequent command, if that needs no answer of the store.
/// On the memory store, the check waits for those that follow it. Returns false if nothing was done;
/// commands with keywords have a parser.
fn try_check(context: &mut CommandContext<'_, '_>) -> Result<bool, Failure> {
    let subject = Subject::parse(context, 1)?;
    if subject.kind != SubjectKind::Policy || context.args.len() != subject.next {
        return Ok(false);
    }
    let policy = resolve(context, &subject, None)?;
    let key = context.key(subject.key)?;
    if context.batch.engine_batch.memory().is_some() {
        context.session.deferred.add(&policy, key, Cost::ONE, CheckReply::Decision);
        return Ok(true);
    }
    let decision = context.check_now(&policy, key, Cost::ONE, None);
    let decision = decision.inspect(|decision| {
        decision::write(context.out, &policy, decision, None);
    });
    Ok(decision.is_some())
}

/// Executes an operation.
pub(super) fn execute(
    context: &mut CommandContext<'_, '_>,
    spec: &'static OperationSpec,
) -> Result<(), Failure> {
    if spec.name == CHECK {
        if try_check(context)? {
            return Ok(());
        }
        context.decide_deferred();
    }
    if !spec.is_audited() {
        let request = OperationRequest::parse(context, spec)?;
        return request.submit(context, spec.response, None);
    }
    let mut audit = context.batch.audit(spec.name);
    if let Ok(subject) = Subject::parse(context, 1) {
        let policy = String::from_utf8_lossy(subject.policy);
        audit.set_subject(context.batch.active, &policy, subject.key);
    }
    let request = authorize(context, spec).and_then(|()| OperationRequest::parse(context, spec));
    match request {
        Ok(request) => request.submit(context, spec.response, Some(audit)),
        Err(failure) => {
            audit.fail(failure.is_denial, failure.detail());
            Err(failure)
        }
    }
}

fn authorize(context: &CommandContext<'_, '_>, spec: &OperationSpec) -> Result<(), Failure> {
    Ok(context.batch.principal()?.authorize(spec.scopes, spec.name)?)
}

/// The arguments of a command.
struct OperationRequest<'s> {
    action: Action,
    request_id: Option<RequestId<'s>>,
    first: CheckRequest<'s>,
    /// The checks after `AND`.
    more: Vec<CheckRequest<'s>>,
}

impl<'s> OperationRequest<'s> {
    fn parse<'a: 's>(
        context: &CommandContext<'s, 'a>,
        spec: &'static OperationSpec,
    ) -> Result<Self, Failure> {
        let mut parser = Parser {
            context,
            spec,
            position: 1,
            arguments: Arguments::default(),
            request_id: None,
        };
        let first = parser.check(true)?;
        let mut more = Vec::new();
        while let Some(and) = context.args.get(parser.position) {
            if !spec.accepts(Parameter::Checks) {
                let name = context.command.name;
                let detail = format!("{name} takes one check; unexpected {}", quoted(and));
                return Err(Failure::bad(detail));
            }
            let max = context.batch.active.bounds.checks;
            if more.len() + 1 >= max {
                let detail = format!("a request has at most {max} checks; send several requests");
                return Err(Failure::bad(detail));
            }
            parser.position += 1;
            more.push(parser.check(false)?);
        }
        let action = spec.action(&parser.arguments)?;
        Ok(OperationRequest { action, request_id: parser.request_id, first, more })
    }

    fn submit<'a>(
        self,
        context: &mut CommandContext<'_, 'a>,
        response: ResponseKind,
        audit: Option<AuditRecord<'a>>,
    ) -> Result<(), Failure> {
        let OperationRequest { action, request_id, first, more } = self;
        // The fast path: nearly all commands are plain checks.
        if matches!(action, Action::Execute(Operation::Check { lease: None }))
            && request_id.is_none()
            && more.is_empty()
        {
            let key = Key::new(&first.key).map_err(|error| Failure::bad(error.to_string()))?;
            let note = first.note.as_deref();
            if let Some(decision) = context.check_now(&first.policy, key, first.cost, note) {
                let hint = first.hint.as_deref();
                decision::write(context.out, &first.policy, &decision, hint);
                return Ok(());
            }
        }
        let checks = match more.is_empty() {
            true => Checks::One(first),
            false => Checks::Several([first].into_iter().chain(more).collect()),
        };
        let principal = context.batch.principal()?;
        let format = match response {
            // With an id, any client could release the lease of another.
            ResponseKind::Inspection => {
                ReplyFormat::Inspection { has_ids: principal.is_operator() }
            }
            response => ReplyFormat::Operation(response),
        };
        let mut call = Call::new(action, checks).with_request_id(request_id.as_ref(), principal);
        if let Some(audit) = audit {
            call = call.with_audit(audit);
        }
        context.submit(call, format)
    }
}

/// What precedes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubjectKind {
    /// The name of a policy.
    Policy,
    /// `LIMIT` and limits.
    Limit,
    /// `DOMAIN` and a domain of Envoy's rate limit service; the key is a descriptor.
    Domain,
}

impl SubjectKind {
    fn from_token(token: &[u8]) -> Self {
        if token.eq_ignore_ascii_case(b"LIMIT") {
            SubjectKind::Limit
        } else if token.eq_ignore_ascii_case(b"DOMAIN") {
            SubjectKind::Domain
        } else {
            SubjectKind::Policy
        }
    }
}

/// Whether a token precedes what is in the place of a policy.
pub(super) fn is_selector(token: &[u8]) -> bool {
    SubjectKind::from_token(token) != SubjectKind::Policy
}

/// The policy, or the limits or the domain in its place, and the key of a check.
#[derive(Clone, Copy, Debug)]
struct Subject<'s> {
    policy: &'s [u8],
    kind: SubjectKind,
    key: &'s [u8],
    /// The position after them.
    next: usize,
}

impl<'s> Subject<'s> {
    /// Parses `policy key`, `LIMIT limits key` or `DOMAIN domain descriptor`.
    fn parse(context: &CommandContext<'s, '_>, position: usize) -> Result<Self, Failure> {
        let kind = context.args.get(position).map_or(SubjectKind::Policy, SubjectKind::from_token);
        let position = position + usize::from(kind != SubjectKind::Policy);
        match (context.args.get(position), context.args.get(position + 1)) {
            (Some(policy), Some(key)) => Ok(Subject { policy, kind, key, next: position + 2 }),
            _ => Err(context.wrong_arity()),
        }
    }
}

/// Parses the arguments of a command from left to right.
struct Parser<'c, 's, 'a> {
    context: &'c CommandContext<'s, 'a>,
    spec: &'static OperationSpec,
    position: usize,
    arguments: Arguments,
    request_id: Option<RequestId<'s>>,
}

impl<'s, 'a: 's> Parser<'_, 's, 'a> {
    /// Parses a check, up to `AND` or the end.
    fn check(&mut self, is_first: bool) -> Result<CheckRequest<'s>, Failure> {
        let subject = Subject::parse(self.context, self.position)?;
        self.position = subject.next;
        let (mut cost, mut tier, mut note) = (None, None, None);
        while let Some(token) = self.context.args.get(self.position) {
            if token.eq_ignore_ascii_case(b"AND") {
                break;
            }
            let keyword = self.keyword(token, is_first)?;
            let Some(value) = self.context.args.get(self.position + 1) else {
                return Err(Failure::bad(format!("{} has no value", keyword.token)));
            };
            self.position += 2;
            match keyword.parameter {
                Parameter::Cost => cost = Some(parse_cost(value)?),
                Parameter::Tier => tier = Some(parse_text(keyword.token, value)?),
                Parameter::Note => note = Some(parse_text(keyword.token, value)?.into()),
                _ => self.argument(keyword, value)?,
            }
        }
        let cost = self.spec.cost(cost)?;
        if subject.kind == SubjectKind::Domain {
            return Ok(self.descriptor(&subject, tier, cost)?.with_note(note)?);
        }
        let policy = resolve(self.context, &subject, tier)?;
        let key = self.context.key(subject.key)?.as_bytes();
        let hint = self.context.batch.engine_batch.tier_hint(&policy, tier);
        let check = CheckRequest::new(policy, Cow::Borrowed(key), cost);
        let mut check = check.with_note(note)?;
        check.hint = hint;
        Ok(check)
    }

    #[cold]
    fn descriptor(
        &self,
        subject: &Subject<'s>,
        tier: Option<&str>,
        cost: Cost,
    ) -> Result<CheckRequest<'s>, Failure> {
        if !self.spec.accepts(Parameter::Domain) {
            let name = self.context.command.name;
            return Err(Failure::bad(format!("{name} takes no DOMAIN; write policy and key")));
        }
        if tier.is_some() {
            return Err(Failure::bad(
                "DOMAIN and TIER are mutually exclusive; only a policy has tiers",
            ));
        }
        let domain = parse_text("DOMAIN", subject.policy)?;
        let descriptor = parse_text("descriptor", subject.key)?;
        let batch = &*self.context.batch;
        let (policy, key) =
            batch.engine_batch.resolve_descriptor(batch.principal()?, domain, descriptor)?;
        Ok(CheckRequest::new(policy, Cow::Owned(key), cost))
    }

    fn keyword(&self, token: &[u8], is_first: bool) -> Result<&'static Keyword, Failure> {
        let known =
            Keyword::from_token(token).filter(|keyword| self.spec.accepts(keyword.parameter));
        let Some(keyword) = known else { return Err(self.unknown(token)) };
        if !is_first && !keyword.is_per_check() {
            let token = keyword.token;
            let detail = format!("{token} applies to all checks; write it before the first AND");
            return Err(Failure::bad(detail));
        }
        if self.occurs_again(keyword) {
            let detail = format!("{} occurs twice in a check; write it once", keyword.token);
            return Err(Failure::bad(detail));
        }
        Ok(keyword)
    }

    /// Whether the keyword at the position occurs again in the same check.
    fn occurs_again(&self, keyword: &Keyword) -> bool {
        let mut position = self.position + 2;
        while let Some(token) = self.context.args.get(position) {
            if token.eq_ignore_ascii_case(b"AND") {
                return false;
            }
            if token.eq_ignore_ascii_case(keyword.token.as_bytes()) {
                return true;
            }
            position += 2;
        }
        false
    }

    #[cold]
    fn unknown(&self, token: &[u8]) -> Failure {
        let tokens = KEYWORDS
            .iter()
            .filter(|keyword| self.spec.accepts(keyword.parameter))
            .map(|keyword| keyword.token);
        let upper = String::from_utf8_lossy(token).to_ascii_uppercase();
        let hint = did_you_mean(&upper, tokens.clone()).unwrap_or_else(|| {
            format!("expected one of {}", tokens.collect::<Vec<_>>().join(", "))
        });
        let name = self.context.command.name;
        Failure::bad(format!("unknown keyword {} of {name}; {hint}", quoted(token)))
    }

    /// Parses an argument of the operation itself.
    fn argument(&mut self, keyword: &Keyword, value: &'s [u8]) -> Result<(), Failure> {
        let token = keyword.token;
        match keyword.parameter {
            Parameter::RequestId => self.request_id = Some(RequestId::new(value)?),
            Parameter::MaxWait => self.arguments.max_wait = Some(parse_micros(token, value)?),
            Parameter::For => self.arguments.span = Some(parse_span(token, value)?),
            Parameter::Time => {
                let time = parse_micros(token, value)?;
                self.arguments.time = Some(Timestamp::from_micros(time.get()));
            }
            Parameter::LeaseId => self.arguments.lease = Some(parse_id(token, value)?),
            Parameter::ReservationId => {
                self.arguments.reservation = Some(parse_id(token, value)?);
            }
            other => unreachable!("{} is not an argument of an operation", other.name()),
        }
        Ok(())
    }
}

/// Resolves the policy of a check for its key.
#[inline]
fn resolve<'a>(
    context: &CommandContext<'_, 'a>,
    subject: &Subject<'_>,
    tier: Option<&str>,
) -> Result<Cow<'a, tollgate::Policy>, Failure> {
    let selector = match subject.kind == SubjectKind::Limit {
        true => {
            let limit = Some(parse_text("LIMIT", subject.policy)?);
            PolicySelector { limit, tier, policy: None }
        }
        false => {
            let policy = Some(parse_text("policy", subject.policy)?);
            PolicySelector { policy, tier, limit: None }
        }
    };
    let principal = context.batch.principal()?;
    context.batch.engine_batch.resolve(principal, selector, subject.key).map_err(|error| {
        match (error.kind(), error.parameter()) {
            // Errors in the notation do not name the argument.
            (ErrorKind::BadRequest, Some(Parameter::Limit)) => {
                Failure::bad(format!("LIMIT: {}", error.detail()))
            }
            _ => error.into(),
        }
    })
}

fn parse_text<'s>(name: &str, bytes: &'s [u8]) -> Result<&'s str, Failure> {
    std::str::from_utf8(bytes)
        .map_err(|_| Failure::bad(format!("{name} is {}; write it in UTF-8", quoted(bytes))))
}

/// Parses a number of digits only.
fn parse_digits(bytes: &[u8]) -> Option<u64> {
    let is_digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| is_digits)?.parse().ok()
}

fn parse_cost(bytes: &[u8]) -> Result<Cost, Failure> {
    parse_digits(bytes).and_then(Cost::new).ok_or_else(|| {
        let remedy = "write an integer from 0 to 9007199254740991, such as 1";
        Failure::bad(format!("COST is {}; {remedy}", quoted(bytes)))
    })
}

fn parse_micros(name: &str, bytes: &[u8]) -> Result<Micros, Failure> {
    parse_digits(bytes).map(Micros::new).ok_or_else(|| {
        let remedy = "write microseconds in digits, such as 1500000";
        Failure::bad(format!("{name} is {}; {remedy}", quoted(bytes)))
    })
}

/// Parses microseconds, or a number and a unit.
fn parse_span(name: &str, bytes: &[u8]) -> Result<Micros, Failure> {
    let duration = || std::str::from_utf8(bytes).ok().and_then(|text| parse_duration(text).ok());
    parse_digits(bytes).map(Micros::new).or_else(duration).ok_or_else(|| {
        let remedy = "write microseconds in digits, or a duration such as 1h";
        Failure::bad(format!("{name} is {}; {remedy}", quoted(bytes)))
    })
}

fn parse_id(name: &str, bytes: &[u8]) -> Result<Id, Failure> {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        Failure::bad(format!("{name} is {}; an id is 32 hexadecimal digits", quoted(bytes)))
    })
}
