//! Features that few arrays have, drawn from a stream of their own, so that a seed whose array has
//! none of them stays what it was.

use super::{Options, between, pick};
use raidlab_array::ReadPolicyKind;
use raidlab_geometry::Level;
use raidlab_random::Stream;

/// Features that few arrays have; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seldom {
    /// The slots whose members are write-mostly, one bit each.
    pub write_mostly: u64,
    /// Whether the bitmap is kept in a file, on a disk of its own.
    pub bitmap_in_file: bool,
    /// Whether the array is larger than others, and each bit of its bitmap, which is in a file,
    /// stands for one sector, so that the bitmap has two pages.
    pub two_pages: bool,
    /// The number of sectors that are left on each disk behind those used at first; the array may
    /// grow into them when it starts. `None`: it never grows.
    pub room: Option<u64>,
    /// Whether starts may be forced without need.
    pub forces: bool,
    /// The read policy of an array of copies; `None`: the member with the fewest commands
    /// outstanding is read.
    pub read_policy: Option<ReadPolicyKind>,
}

/// Sectors of each member of an array whose bitmap has two pages: a bit for each is more than
/// the first page has room for.
const TWO_PAGES: u64 = 31_232;

impl Seldom {
    /// Draws the features for an array all of whose other options are drawn.
    pub(super) fn draw(random: &mut Stream, options: &Options) -> Self {
        let has_copies = matches!(options.level, Level::Raid1 | Level::Raid10);
        let is_bare = matches!(options.level, Level::Linear | Level::Raid0);
        let write_mostly = random.percent(15).then(|| random.next_u64());
        let in_file = random.percent(12);
        let two_pages = random.below(500) == 0;
        let grows = random.percent(8);
        let room = options.chunk * between(random, 1, 4) + pick(random, &[0, 2, 8]);
        let forces = random.percent(8);
        // Half of the arrays have the policy that an array has unless somebody asks for another.
        let policies = ReadPolicyKind::OWN;
        let drawn = random.below(2 * policies.len() as u64) as usize;
        let read_policy = *policies.get(drawn).unwrap_or(&ReadPolicyKind::MD_6_9);
        Self {
            write_mostly: write_mostly.filter(|_| has_copies).unwrap_or(0),
            bitmap_in_file: in_file && options.bitmap_chunk.is_some(),
            two_pages: two_pages && options.level == Level::Raid1,
            room: (grows && !is_bare).then_some(room),
            forces: forces && !is_bare,
            read_policy: has_copies.then_some(read_policy),
        }
    }

    /// Returns the options changed for these features.
    pub(super) fn apply(self, mut options: Options) -> Options {
        if self.two_pages {
            options.members = 2;
            options.used = TWO_PAGES;
            options.bitmap_chunk = Some(1);
            options.sync_block = options.sync_block.max(128);
        }
        let bitmap_in_file = self.bitmap_in_file || self.two_pages;
        options.seldom = Self {
            bitmap_in_file,
            ..self
        };
        options
    }
}
