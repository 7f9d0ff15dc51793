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
