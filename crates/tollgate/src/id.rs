//! Random ids for leases and reservations.

use tollgate_algorithms::Id;

/// Returns a new random 128-bit id for a lease or a reservation, such as the one in
/// [`Operation::Acquire`](crate::Operation::Acquire).
///
/// # Panics
/// Panics if the operating system provides no random bytes. Two processes must not draw the same
/// id: the second acquire would then count as a repeat of the first and be admitted uncharged.
///
/// # Examples
/// ```
/// assert_ne!(tollgate::random_id(), tollgate::random_id());
/// ```
#[must_use]
pub fn random_id() -> Id {
    let mut bytes = [0; 16];
    #[expect(clippy::expect_used, reason = "a predictable id would admit requests uncharged")]
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    Id::from_u128(u128::from_ne_bytes(bytes))
}
