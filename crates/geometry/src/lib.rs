//! The map between array sectors and member sectors, both ways, for every level and layout.
//!
//! Pure functions: no state, no I/O. A [`Slot`] is a member's place in the array. Member sectors
//! count from the start of the member's data area.

mod copies;
mod layout;
mod level;
mod parity;
mod shape;
mod size;
mod slots;

pub use copies::{Content, CopyMap, Extent, Inverse};
pub use level::{
    Copies, FarSets, Layout, Level, ParityLayout, UnknownLayout, UnknownLevel, ZoneLayout,
};
pub use parity::{BlockRole, Place, Row, StripeMap, StripeMapError};
pub use shape::{Shape, ShapeError};
pub use slots::{MAXIMUM_MEMBERS, Slot, SlotSet, Slots};
