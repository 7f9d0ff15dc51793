//! Asking a store that others keep: all that a batch asks, in as few calls as it can be.

use tollgate::{Answer, Check, FailureKind, Key, Limiter, Request, StoreError};

use super::asking::Scene;
use super::out::Out;
use super::question::{Asks, OwnCheck, Placed, Said};
use super::session::TOO_MUCH;

/// The most requests of a call: all of a call have one deadline, and a long pipeline must not miss
/// it for being long.
const MAX_BATCH: usize = 256;

/// Asks what the batch has asked, and puts each answer where it belongs among the replies.
pub(super) async fn settle(scene: &mut Scene<'_>, out: &mut Out) {
    if scene.questions.is_empty() {
        return;
    }
    let questions = std::mem::take(&mut scene.questions);
    let said = ask(scene.daemon.limiter(), &questions).await;
    let speaks = out.protocol;
    let replies = out.take();
    let mut written = 0;
    for (Placed { question, at, protocol }, said) in questions.into_iter().zip(said) {
        if out.len() > TOO_MUCH {
            return;
        }
        out.raw(replies.get(written..at).unwrap_or_default());
        written = at;
        out.protocol = protocol;
        if let Err(failure) = question.write(said, &mut scene.counted, &mut scene.sum, out) {
            out.error(failure.line());
        }
    }
    out.raw(replies.get(written..).unwrap_or_default());
    out.protocol = speaks;
}

/// What is said to each, in order.
async fn ask(limiter: &Limiter, questions: &[Placed<'_>]) -> Vec<Result<Said, StoreError>> {
    let mut said = Vec::with_capacity(questions.len());
    let mut rest = questions;
    // What could not be looked at for want of the store: the next need not wait as long.
    let mut away = None;
    while let Some(first) = rest.first() {
        if let Asks::Inspect(value) = &first.question.asks {
            let looked = match away.clone() {
                Some(error) => Err(error),
                None => inspect(limiter, value).await,
            };
            away = looked.as_ref().err().filter(|error| error.failure().is_some()).cloned();
            said.push(looked);
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let run = rest.iter().take(MAX_BATCH).map_while(|x| match &x.question.asks {
            Asks::Decide { verb, checks, request_id } => Some((verb, checks, request_id)),
            Asks::Inspect(_) => None,
        });
        let run: Vec<_> = run.collect();
        let checks: Vec<Vec<Check<'_>>> =
            run.iter().map(|run| run.1.iter().map(OwnCheck::check).collect()).collect();
        let requests: Vec<_> = run
            .iter()
            .zip(&checks)
            .map(|((verb, _, id), checks)| Request {
                operation: **verb,
                checks,
                request_id: id.as_deref(),
            })
            .collect();
        let answers = limiter.decide_batch(&requests).await;
        said.extend(
            answers.into_iter().map(|answer: Result<Answer, _>| answer.map(Said::Decisions)),
        );
        rest = rest.get(requests.len()..).unwrap_or_default();
        // One answer for each is promised; without it the next would be taken for another's.
        let no_answer = || Err(StoreError::unavailable(FailureKind::Protocol, "no answer"));
        said.resize_with(questions.len() - rest.len(), no_answer);
    }
    said
}

async fn inspect(limiter: &Limiter, asked: &OwnCheck) -> Result<Said, StoreError> {
    let key = Key::new(&asked.key).map_err(StoreError::Request)?;
    limiter.inspect(&asked.policy, key).await.map(Said::Inspection)
}
