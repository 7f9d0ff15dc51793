//! Ids of leases and reservations.

use core::fmt;
use core::str::FromStr;

/// The id of a lease or a reservation: 128 bits that the caller draws at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u128);

impl Id {
    /// Creates an id from 128 bits.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Id(bits)
    }

    /// The 128 bits.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

/// Writes 32 hexadecimal digits.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An error for a text that is not an [`Id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdError(());

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 32 hexadecimal digits")
    }
}

impl core::error::Error for IdError {}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex {
            return Err(IdError(()));
        }
        u128::from_str_radix(text, 16).map(Id).map_err(|_| IdError(()))
    }
}
