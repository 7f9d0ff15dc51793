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

/// Calls `work` with each of many items, on the given number of threads.
pub(crate) fn for_each_on<T: Send>(threads: usize, items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let size = items.len().div_ceil(threads.max(1)).max(1);
    let mut shares: Vec<_> = items.chunks_mut(size).collect();
    for_each(&mut shares, |share| share.iter_mut().for_each(&work));
}
