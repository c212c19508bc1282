//! Checks of the fields of on-disk structures, and the error of a broken rule.

use std::fmt;

/// A field of an on-disk structure whose value breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct FieldError {
    /// The field's name in the kernel's header (md_p.h, md-bitmap.h).
    pub field: &'static str,
    /// Bytes from the structure's start to the field.
    pub offset: u32,
    /// The value of the field.
    pub value: u64,
    /// The rule that the value breaks.
    pub fault: Fault,
}

/// The rule that a field's value breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The field has to have this value.
    Expected(u64),
    /// The field has to be at least this.
    AtLeast(u64),
    /// The field may be at most this.
    AtMost(u64),
    /// The field exceeds these sectors, which are all that the device has room for.
    NoRoom(u64),
    /// The field has bits that are not known here.
    UnknownBits(u64),
    /// The field has bits that exclude each other.
    ExclusiveBits(u64),
    /// The field has to be a power of two.
    NotPowerOfTwo,
    /// The field has none of the known values.
    UnknownValue,
    /// The field has to be zero.
    NotZero,
    /// The place that the field points at overlaps something else or lies outside the device.
    OutOfPlace,
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            offset,
            value,
            fault,
        } = self;
        write!(formatter, "{field} (at byte {offset}) is {value:#x}")?;
        match fault {
            Fault::Expected(wanted) => write!(formatter, ", not {wanted:#x}"),
            Fault::AtLeast(least) => write!(formatter, ", less than {least:#x}"),
            Fault::AtMost(most) => write!(formatter, ", more than {most:#x}"),
            Fault::NoRoom(most) => write!(
                formatter,
                ", and the device has room for {most:#x} sectors: it is shorter than it was"
            ),
            Fault::UnknownBits(bits) => write!(formatter, ", with unknown bits {bits:#x}"),
            Fault::ExclusiveBits(bits) => {
                write!(formatter, ", of which {bits:#x} exclude each other")
            }
            Fault::NotPowerOfTwo => formatter.write_str(", not a power of two"),
            Fault::UnknownValue => formatter.write_str(", which is not known"),
            Fault::NotZero => formatter.write_str(", not zero"),
            Fault::OutOfPlace => formatter.write_str(", which points out of place"),
        }
    }
}

/// A field that is checked against one rule after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    field: &'static str,
    offset: u32,
    value: u64,
}

/// Begins the checks of the field `field` at byte `offset`, with the value found.
pub(crate) fn check(field: &'static str, offset: u32, value: impl Into<u64>) -> Checked {
    Checked {
        field,
        offset,
        value: value.into(),
    }
}

impl Checked {
    /// Returns the error that this field has this fault.
    pub(crate) fn fault(self, fault: Fault) -> FieldError {
        FieldError {
            field: self.field,
            offset: self.offset,
            value: self.value,
            fault,
        }
    }

    /// Fails with `fault` unless `sound`.
    pub(crate) fn require(self, sound: bool, fault: Fault) -> Result<Self, FieldError> {
        if sound {
            Ok(self)
        } else {
            Err(self.fault(fault))
        }
    }

    pub(crate) fn equal(self, wanted: impl Into<u64>) -> Result<Self, FieldError> {
        let wanted = wanted.into();
        self.require(self.value == wanted, Fault::Expected(wanted))
    }

    pub(crate) fn at_most(self, most: u64) -> Result<Self, FieldError> {
        self.require(self.value <= most, Fault::AtMost(most))
    }

    pub(crate) fn at_least(self, least: u64) -> Result<Self, FieldError> {
        self.require(self.value >= least, Fault::AtLeast(least))
    }
}
