//! Intel's ISA-L, loaded at run time: it is neither linked nor required.

#![expect(unsafe_code, reason = "calls a C library")]

use libloading::Library;
use std::ffi::{c_int, c_void};

/// The type of `pq_gen` and similar functions: the number of blocks with parity, bytes of each,
/// their addresses; returns 0 for success.
type Generate = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;

/// The loaded ISA-L library.
pub struct Isal {
    library: Library,
}

/// One function of ISA-L.
#[derive(Clone, Copy)]
pub struct Function(Generate);

/// The alignment in bytes that ISA-L requires of blocks.
const ALIGNMENT: usize = 32;

/// The most blocks of one call here, with parity.
const MAXIMUM_BLOCKS: usize = 64;

impl Isal {
    /// Loads the library, if it is installed.
    pub fn load() -> Option<Self> {
        let names = ["libisal.so.2", "libisal.so", "libisal.2.dylib"];
        names.into_iter().find_map(|name| {
            // SAFETY: the library has no constructors that matter.
            let library = unsafe { Library::new(name) }.ok()?;
            Some(Self { library })
        })
    }

    /// Returns the function of this name, of the type of `pq_gen`, if there is one.
    pub fn function(&self, name: &str) -> Option<Function> {
        // SAFETY: callers name functions of this type, and the library is kept
        // as long as they call them.
        let function = unsafe { self.library.get::<Generate>(name.as_bytes()) };
        Some(Function(*function.ok()?))
    }
}

impl Function {
    /// Calls the function on blocks of one length, parity last, aligned to 32 bytes.
    ///
    /// # Panics
    /// When lengths differ, an address is not aligned, there are too many blocks, or ISA-L refuses.
    pub fn call(self, blocks: &mut [&mut [u8]]) {
        let bytes = blocks[0].len();
        for block in blocks.iter() {
            assert_eq!(block.len(), bytes, "length");
            assert!(
                block.as_ptr().addr().is_multiple_of(ALIGNMENT),
                "ISA-L's alignment"
            );
        }
        // No allocation: the call is measured.
        let mut addresses = [std::ptr::null_mut::<c_void>(); MAXIMUM_BLOCKS];
        for (address, block) in addresses[..blocks.len()].iter_mut().zip(blocks.iter_mut()) {
            *address = block.as_mut_ptr().cast();
        }
        let count = c_int::try_from(blocks.len()).expect("few blocks");
        let bytes = c_int::try_from(bytes).expect("short blocks");
        // SAFETY: the addresses are those of distinct blocks of that length.
        let result = unsafe { self.0(count, bytes, addresses.as_mut_ptr()) };
        assert_eq!(result, 0, "ISA-L refused");
    }
}
