//! Work on many threads, whose results come in the order of the work.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

/// So many items of work wait for each thread, besides the one that it works at.
const WAITING: usize = 2;

/// Works at `items` on so many threads, and gives the results to `then` in the order of the items, on
/// this thread. `worker` makes what each thread keeps to work with. At most a few items for each thread
/// are under way, whatever their number.
///
/// It ends with the items, or when `then` breaks; what is under way then is thrown away.
///
/// ```
/// use std::ops::ControlFlow;
/// use tollgate_replay::input::in_order;
///
/// let mut squares = Vec::new();
/// in_order(1..=4_u64, 2, || |number: u64| number * number, |square| {
///     squares.push(square);
///     ControlFlow::Continue(())
/// });
/// assert_eq!(squares, [1, 4, 9, 16]);
/// ```
///
/// # Panics
/// If `worker` or what it makes panics.
pub fn in_order<T, R, W>(
    items: impl IntoIterator<Item = T>,
    threads: usize,
    worker: impl Fn() -> W + Sync,
    mut then: impl FnMut(R) -> ControlFlow<()>,
) where
    T: Send,
    R: Send,
    W: FnMut(T) -> R,
{
    let mut items = items.into_iter();
    thread::scope(|scope| {
        let lanes: Vec<Lane<T, R>> = (0..threads.max(1))
            .map(|_| {
                let ((work, asked), (done, results)) =
                    (sync_channel::<T>(WAITING), sync_channel(WAITING + 1));
                let worker = &worker;
                scope.spawn(move || {
                    let mut worker = worker();
                    // Whoever no longer wants results ends the work.
                    asked.into_iter().map(&mut worker).try_for_each(|it| done.send(it).ok())
                });
                Lane { work, results }
            })
            .collect();
        // Lanes take turns, both at getting work and at giving results, so that these are in order. So
        // many items are under way that no lane has to wait for this thread; and a result that is there is
        // given before the next item is waited for.
        let most = lanes.len() * (WAITING + 1);
        let (mut work, mut results) = (lanes.iter().cycle(), lanes.iter().cycle().peekable());
        let (mut under_way, mut has_ended) = (0, false);
        loop {
            if under_way < most && !has_ended {
                match items.next() {
                    Some(item) => {
                        let Some(Ok(())) = work.next().map(|lane| lane.work.send(item)) else {
                            return;
                        };
                        under_way += 1;
                    }
                    None => has_ended = true,
                }
            }
            let Some(lane) = results.peek().filter(|_| under_way > 0) else { return };
            let result = match lane.results.try_recv() {
                Err(TryRecvError::Empty) if under_way < most && !has_ended => continue,
                Err(TryRecvError::Empty) => lane.results.recv().ok(),
                result => result.ok(),
            };
            results.next();
            under_way -= 1;
            if result.is_none_or(|it| then(it).is_break()) {
                return;
            }
        }
    });
}

/// The way to one thread and back.
#[derive(Debug)]
struct Lane<T, R> {
    work: SyncSender<T>,
    results: Receiver<R>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(items: u32, threads: usize, most: usize) {
        let mut found = Vec::new();
        in_order(
            0..items,
            threads,
            || {
                let mut seen = 0_u64;
                move |item| {
                    seen += 1;
                    (item, seen)
                }
            },
            |(item, _)| {
                found.push(item);
                if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        let expected: Vec<u32> = (0..items).take(most).collect();
        assert_eq!(found, expected, "{items} items on {threads} threads");
    }

    #[test]
    fn results_come_in_the_order_of_the_work() {
        for threads in 0..5 {
            for items in [0, 1, 2, 3, 100] {
                check(items, threads, usize::MAX);
                check(items, threads, 7);
            }
        }
    }

    #[test]
    fn a_worker_that_panics_is_not_waited_for() {
        let panicked = std::panic::catch_unwind(|| {
            in_order(0..100, 2, || |item| assert_ne!(item, 5), |()| ControlFlow::Continue(()));
        });
        assert!(panicked.is_err());
    }
}
