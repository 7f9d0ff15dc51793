//! Replies that arrive before their deadline, or late.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};
use tollgate_algorithms::Request;
use tollgate_state::{Answer, Failure, FailureKind, StoreError};

use crate::context::StoreContext;
use crate::request::{self, Outcome};

/// A request, and the time until which its caller waits.
#[derive(Clone, Copy, Debug)]
pub struct TimedRequest<'a> {
    /// The request.
    pub request: Request<'a>,
    /// The end of the wait. A request that was not sent by then is not sent.
    pub deadline: Instant,
}

/// The reply to a [`TimedRequest`].
#[derive(Debug)]
pub enum Reply {
    /// The store answered, or failed, before the deadline.
    Answer(Result<Answer, StoreError>),
    /// The deadline passed after the request was sent.
    Late(LateReply),
}

/// A request that was sent and not answered before its deadline.
///
/// The caller decides itself, and the store reconciles when the answer arrives. By default the request
/// counts as denied: what it was charged is then taken back. The exception are requests with an id:
/// their repeat gets the recorded answer.
#[derive(Debug)]
pub struct LateReply {
    answer: PendingAnswer,
    context: Arc<StoreContext>,
}

impl LateReply {
    /// Records that the caller admitted the request. A charge is then kept, and a denial is counted
    /// in [`RedisStats::overshoot`](crate::RedisStats::overshoot).
    pub fn admit(self) {
        let LateReply { answer, context } = self;
        tokio::spawn(async move {
            if let Ok(answer) = answer.receive().await
                && !answer.allowed()
            {
                context.counters.lock().overshoot += 1;
            }
        });
    }
}

/// An answer in progress. If it is dropped, the request is not admitted.
#[derive(Debug)]
pub(crate) enum PendingAnswer {
    /// The request was not sent.
    Failed(StoreError),
    Single(oneshot::Receiver<Outcome>),
    CrossSlot(oneshot::Receiver<Result<Answer, StoreError>>),
}

impl PendingAnswer {
    async fn receive(self) -> Result<Answer, StoreError> {
        match self {
            PendingAnswer::Failed(error) => Err(error),
            PendingAnswer::Single(receiver) => request::into_answer(receiver.await),
            PendingAnswer::CrossSlot(receiver) => receiver.await.unwrap_or_else(|_| closed()),
        }
    }

    /// Waits until a deadline. `timer` is reused for the next request with the same deadline.
    pub(crate) async fn receive_by(
        mut self,
        deadline: Instant,
        mut timer: Pin<&mut Sleep>,
        context: &Arc<StoreContext>,
    ) -> Reply {
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        let answer = match &mut self {
            PendingAnswer::Failed(error) => Some(Err(error.clone())),
            PendingAnswer::Single(receiver) => tokio::select! {
                biased;
                delivery = receiver => Some(request::into_answer(delivery)),
                () = timer => None,
            },
            PendingAnswer::CrossSlot(receiver) => tokio::select! {
                biased;
                answer = receiver => Some(answer.unwrap_or_else(|_| closed())),
                () = timer => None,
            },
        };
        match answer {
            Some(answer) => Reply::Answer(answer),
            None => Reply::Late(LateReply { answer: self, context: Arc::clone(context) }),
        }
    }
}

fn closed() -> Result<Answer, StoreError> {
    Err(Failure::new(FailureKind::ConnectionLost, "the store was closed").into())
}
