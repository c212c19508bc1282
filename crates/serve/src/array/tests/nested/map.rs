//! Where the sectors of an array of arrays lie on its leaves. As with md over md, each array
//! knows only its own members: an inner array is a device, and what the outer array keeps
//! begins some sectors into it, after the outer's superblock. So a place is found by one
//! step a layer. Leaves are numbered from the left: all of member 0's, then all of member 1's.

use raidlab_geometry::{CopyMap, Layout, Shape, StripeMap};
use raidlab_units::Sectors;

/// What stands in a slot.
#[derive(Clone)]
pub(super) enum Member {
    /// A disk, which is no array itself.
    Leaf,
    /// Another array, and its sector at which the outer one's data area begins.
    Array(Box<NestedMap>, Sectors),
}

/// A sector of a leaf's data area.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafSector {
    pub(super) leaf: usize,
    pub(super) sector: Sectors,
}

#[derive(Clone)]
enum Layer {
    Copies(CopyMap),
    Stripes(StripeMap),
}

/// The map of an array of arrays.
#[derive(Clone)]
pub(super) struct NestedMap {
    layer: Layer,
    members: Vec<Member>,
}

impl NestedMap {
    /// An array of this shape whose slots have these members.
    pub(super) fn new(shape: &Shape, members: Vec<Member>) -> Self {
        let slots = shape.member_sizes.len();
        assert_eq!(slots, members.len());
        let (chunk, used) = (shape.chunk, shape.used_size);
        let layer = match shape.layout {
            Layout::Parity(layout) => {
                let map = StripeMap::new(shape.level, layout, slots, chunk, used);
                Layer::Stripes(map.expect("sound"))
            }
            _ => Layer::Copies(CopyMap::new(shape).expect("sound")),
        };
        Self { layer, members }
    }

    /// Sectors that the outermost array offers.
    pub(super) fn size(&self) -> Sectors {
        match &self.layer {
            Layer::Copies(map) => map.array_size(),
            Layer::Stripes(map) => map.size(),
        }
    }

    /// Where an array sector lies: every copy of it, without parity.
    pub(super) fn places(&self, start: Sectors) -> Vec<LeafSector> {
        let copies = match &self.layer {
            Layer::Copies(map) => map.extent(start).copies().collect(),
            Layer::Stripes(map) => {
                let place = map.locate(start);
                let slot = map.row(place.row).data_slot(place.index);
                vec![(slot, map.member_sector(place.row, place.offset))]
            }
        };
        let leaves_of = |(slot, sector): (raidlab_geometry::Slot, Sectors)| {
            let before = self.members[..slot.index()].iter();
            let first: usize = before.map(Member::leaves).sum();
            let below = match &self.members[slot.index()] {
                Member::Leaf => vec![LeafSector { leaf: 0, sector }],
                Member::Array(map, offset) => map.places(*offset + sector),
            };
            below.into_iter().map(move |place| LeafSector {
                leaf: first + place.leaf,
                ..place
            })
        };
        copies.into_iter().flat_map(leaves_of).collect()
    }
}

impl Member {
    fn leaves(&self) -> usize {
        match self {
            Self::Leaf => 1,
            Self::Array(map, _) => map.members.iter().map(Self::leaves).sum(),
        }
    }
}
