//! Work on several threads at once.

/// Does something with each of some things, on a thread for each but the first.
pub(crate) fn each<T: Send>(things: &mut [T], work: impl Fn(&mut T) + Sync) {
    let Some((first, rest)) = things.split_first_mut() else { return };
    std::thread::scope(|scope| {
        for thing in rest {
            let work = &work;
            scope.spawn(move || work(thing));
        }
        work(first);
    });
}

/// Does something with each of many things, on so many threads.
pub(crate) fn each_on<T: Send>(threads: usize, things: &mut [T], work: impl Fn(&mut T) + Sync) {
    let size = things.len().div_ceil(threads.max(1)).max(1);
    let mut shares: Vec<_> = things.chunks_mut(size).collect();
    each(&mut shares, |share| share.iter_mut().for_each(&work));
}
