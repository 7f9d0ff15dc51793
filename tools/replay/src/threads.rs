//! Work on several threads.

/// Calls `work` with each item, on one thread per item; the first runs on the current thread.
pub(crate) fn for_each<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let Some((first, rest)) = items.split_first_mut() else { return };
    std::thread::scope(|scope| {
        for item in rest {
            let work = &work;
            scope.spawn(move || work(item));
        }
        work(first);
    });
}
