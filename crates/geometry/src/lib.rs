//! Where array sectors lie on members, and back, for every level and layout.
//!
//! Pure functions: no state, no I/O. A [`Slot`] is a member's place in the
//! array. Member sectors count from the start of the member's data area.

mod level;
mod parity;
mod slots;

pub use level::{Copies, Layout, Level, ParityLayout, UnknownLayout, UnknownLevel, ZoneLayout};
pub use parity::{BlockRole, MemberSector, Place, Row, StripeMap, StripeMapError};
pub use slots::{MAXIMUM_MEMBERS, Slot, SlotSet};
