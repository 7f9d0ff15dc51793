//! Work on several threads.

/// Calls `work` with each item: the first on the current thread, the others on a pool of one thread per core,
/// where they take turns if there are more. Threads that are started for each call take longer: with few
/// cores, the system often starts a thread on the core of its parent while another core is idle.
pub(crate) fn for_each<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let Some((first, rest)) = items.split_first_mut() else { return };
    if rest.is_empty() {
        return work(first);
    }
    rayon_core::in_place_scope(|scope| {
        for item in rest {
            let work = &work;
            scope.spawn(move |_| work(item));
        }
        work(first);
    });
}
