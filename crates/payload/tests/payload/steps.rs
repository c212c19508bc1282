//! Every step against naive code.
//!
//! The oracle keeps each buffer as a vector, copies what a step reads, works
//! byte by byte with a bitwise product, and copies what the step writes back.
//! After each step every byte of every buffer must be the same on both sides,
//! so that a step that writes beside its buffers is found too.

use super::vectors::Vectors;
use proptest::prelude::*;
use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId, StepResult};
use raidlab_random::Stream;
use raidlab_units::Sectors;
use std::collections::BTreeMap;

const SECTOR: usize = 512;

/// The naive side: bytes by the name of the buffer at skip 0.
struct Oracle {
    buffers: BTreeMap<(bool, u64), Vec<u8>>,
}

fn key(buffer: BufferId) -> Option<((bool, u64), usize)> {
    match buffer {
        BufferId::Request { request, skip } => Some(((true, request.0), skip.0 as usize * SECTOR)),
        BufferId::Scratch { scratch, skip } => {
            Some(((false, scratch.0.into()), skip.0 as usize * SECTOR))
        }
        BufferId::None => None,
    }
}

impl Oracle {
    fn read(&self, buffer: BufferId, bytes: usize) -> Option<Vec<u8>> {
        let (key, start) = key(buffer)?;
        Some(self.buffers[&key][start..start + bytes].to_vec())
    }

    fn write(&mut self, buffer: BufferId, bytes: &[u8]) {
        if let Some((key, start)) = key(buffer) {
            let buffer = self.buffers.get_mut(&key).expect("a known buffer");
            buffer[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn parity(&self, data: &[BufferId], bytes: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut p, mut q) = (vec![0; bytes], vec![0; bytes]);
        let mut coefficient = 1;
        for &block in data {
            for (place, byte) in self.read(block, bytes).into_iter().flatten().enumerate() {
                p[place] ^= byte;
                q[place] ^= product(coefficient, byte);
            }
            coefficient = product(coefficient, 2);
        }
        (p, q)
    }

    fn execute(&mut self, step: &ComputeStep) -> Option<(StepId, StepResult)> {
        let bytes = |count: Sectors| count.0 as usize * SECTOR;
        match step {
            ComputeStep::Allocate { .. } | ComputeStep::Release { .. } => {
                unreachable!("tested by themselves")
            }
            ComputeStep::Fill { to, bytes } => self.write(*to, bytes),
            ComputeStep::Zero { to, count } => self.write(*to, &vec![0; bytes(*count)]),
            ComputeStep::Copy { from, to, count } => {
                let from = self.read(*from, bytes(*count)).expect("a buffer");
                self.write(*to, &from);
            }
            ComputeStep::Fetch { id, from, count } => {
                let bytes = self.read(*from, bytes(*count)).expect("a buffer");
                return Some((*id, StepResult::Bytes(bytes)));
            }
            ComputeStep::Compare {
                id,
                left,
                right,
                count,
            } => {
                let left = self.read(*left, bytes(*count)).expect("a buffer");
                let right = self.read(*right, bytes(*count)).expect("a buffer");
                let different = different_sectors(&left, &right);
                return Some((*id, StepResult::Compared { different }));
            }
            ComputeStep::Generate { count, data, p, q } => {
                let (made_p, made_q) = self.parity(data, bytes(*count));
                self.write(*p, &made_p);
                self.write(*q, &made_q);
            }
            ComputeStep::Update {
                count,
                index,
                old,
                new,
                p,
                q,
            } => self.update(bytes(*count), *index, [*old, *new], [*p, *q]),
            ComputeStep::Check { id, .. } => {
                let result = self.check(step);
                return Some((*id, result));
            }
            ComputeStep::Recover { .. } => unreachable!("tested against what was lost"),
            ComputeStep::Seal {
                header,
                header_bytes,
                at,
                seal_at,
                blocks,
            } => {
                let mut sealed = self
                    .read(*header, *header_bytes as usize)
                    .expect("a header");
                for (place, (block, count)) in blocks.iter().enumerate() {
                    let block = self.read(*block, bytes(*count)).expect("a buffer");
                    let at = *at as usize + 4 * place;
                    sealed[at..at + 4].copy_from_slice(&crc32c_bitwise(&block).to_le_bytes());
                }
                let seal_at = *seal_at as usize;
                sealed[seal_at..seal_at + 4].fill(0);
                let seal = crc32c_bitwise(&sealed).to_le_bytes();
                sealed[seal_at..seal_at + 4].copy_from_slice(&seal);
                self.write(*header, &sealed);
            }
        }
        None
    }

    fn update(
        &mut self,
        bytes: usize,
        index: u8,
        [old, new]: [BufferId; 2],
        parity: [BufferId; 2],
    ) {
        let zeros = || vec![0; bytes];
        let old = self.read(old, bytes).unwrap_or_else(zeros);
        let new = self.read(new, bytes).unwrap_or_else(zeros);
        let coefficient = (0..index).fold(1, |power, _| product(power, 2));
        for (parity, coefficient) in parity.into_iter().zip([1, coefficient]) {
            if let Some(mut changed) = self.read(parity, bytes) {
                for (place, byte) in changed.iter_mut().enumerate() {
                    *byte ^= product(coefficient, old[place] ^ new[place]);
                }
                self.write(parity, &changed);
            }
        }
    }

    fn check(&self, step: &ComputeStep) -> StepResult {
        let ComputeStep::Check {
            count, data, p, q, ..
        } = step
        else {
            unreachable!("a check")
        };
        let bytes = count.0 as usize * SECTOR;
        let (made_p, made_q) = self.parity(data, bytes);
        let p = self.read(*p, bytes).expect("a buffer");
        let q = self.read(*q, bytes).unwrap_or_else(|| made_q.clone());
        StepResult::Parity {
            p_different: different_sectors(&p, &made_p),
            q_different: different_sectors(&q, &made_q),
        }
    }
}

fn different_sectors(left: &[u8], right: &[u8]) -> Sectors {
    let mut different = 0;
    for sector in 0..left.len() / SECTOR {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        different += u64::from(left[range.clone()] != right[range]);
    }
    Sectors(different)
}

/// The product in the field of 0x11d, bit by bit.
fn product(mut left: u8, right: u8) -> u8 {
    let mut product = 0;
    for bit in 0..8 {
        if right & (1 << bit) != 0 {
            product ^= left;
        }
        left = (left << 1) ^ if left & 0x80 == 0 { 0 } else { 0x1d };
    }
    product
}

/// CRC-32C by the definition: reflected, polynomial 0x1EDC6F41.
fn crc32c_bitwise(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for byte in bytes {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = register & 1;
            register = (register >> 1) ^ (carry * 0x82f6_3b78);
        }
    }
    !register
}

/// Both sides with the same bytes, and the ranges of `count` sectors that no
/// step has used, in random order.
struct World {
    buffers: Vectors,
    oracle: Oracle,
    free: Vec<BufferId>,
    random: Stream,
}

impl World {
    fn new(seed: u64, count: Sectors) -> Self {
        let mut world = Self {
            buffers: Vectors::new(0xa5),
            oracle: Oracle {
                buffers: BTreeMap::new(),
            },
            free: Vec::new(),
            random: Stream::new(seed),
        };
        for place in 0..6 {
            world.add(place, count);
        }
        for place in (1..world.free.len()).rev() {
            let other = world.random.below(place as u64 + 1) as usize;
            world.free.swap(place, other);
        }
        world
    }

    /// A request's payload or a scratch buffer of a few times `count` sectors
    /// and a bit.
    fn add(&mut self, place: u64, count: Sectors) {
        let ranges = 1 + self.random.below(7);
        let offset = self.random.below(3);
        let sectors = Sectors(ranges * count.0 + offset);
        let mut bytes = vec![0; sectors.0 as usize * SECTOR];
        bytes.fill_with(|| self.random.next_u64() as u8);
        let is_request = place.is_multiple_of(2);
        let name = |skip| match is_request {
            true => BufferId::Request {
                request: RequestId(place),
                skip,
            },
            false => BufferId::Scratch {
                scratch: ScratchId(place as u32),
                skip,
            },
        };
        if is_request {
            self.buffers.insert(RequestId(place), bytes.clone());
        } else {
            let scratch = ScratchId(place as u32);
            let step = ComputeStep::Allocate {
                scratch,
                count: sectors,
            };
            assert_eq!(self.buffers.execute(&step), Ok(None));
            let filled = self.buffers.slice_mut(name(Sectors(0)), sectors);
            filled.expect("just allocated").copy_from_slice(&bytes);
        }
        let (key, _) = key(name(Sectors(0))).expect("a buffer");
        self.oracle.buffers.insert(key, bytes);
        self.free
            .extend((0..ranges).map(|range| name(Sectors(range * count.0 + offset))));
    }

    /// A range that is in nobody's way, or, if wanted so, sometimes none.
    fn range(&mut self, none_percent: u32) -> BufferId {
        if self.random.percent(none_percent) {
            return BufferId::None;
        }
        self.free.pop().unwrap_or(BufferId::None)
    }

    fn assert_same_bytes(&self) {
        for (&(is_request, name), bytes) in &self.oracle.buffers {
            let skip = Sectors(0);
            let buffer = match is_request {
                true => BufferId::Request {
                    request: RequestId(name),
                    skip,
                },
                false => BufferId::Scratch {
                    scratch: ScratchId(name as u32),
                    skip,
                },
            };
            let count = Sectors((bytes.len() / SECTOR) as u64);
            let there = self.buffers.slice(buffer, count).expect("it is there");
            assert!(there == bytes, "{buffer:?}");
        }
    }

    fn run(&mut self, step: &ComputeStep) {
        let result = self.buffers.execute(step);
        assert_eq!(result, Ok(self.oracle.execute(step)), "{step:?}");
        self.assert_same_bytes();
    }

    fn stripe(&mut self, none_percent: u32) -> Vec<BufferId> {
        let blocks = self.random.below(10);
        (0..blocks).map(|_| self.range(none_percent)).collect()
    }
}

/// A world whose buffers have at least this many ranges.
fn world(count: Sectors, ranges: usize) -> impl Strategy<Value = World> {
    any::<u64>().prop_map(move |seed| {
        (0..)
            .map(|attempt| World::new(seed.wrapping_add(attempt), count))
            .find(|world| world.free.len() >= ranges)
            .expect("some world is large enough")
    })
}

impl std::fmt::Debug for World {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ranges {:?}", self.free)
    }
}

proptest! {
    #[test]
    fn simple_steps(mut world in world(Sectors(3), 8)) {
        let count = Sectors(3);
        let (from, to) = (world.range(0), world.range(0));
        world.run(&ComputeStep::Copy { from, to, count });
        world.run(&ComputeStep::Fetch { id: StepId(4), from: to, count });
        let compare = ComputeStep::Compare { id: StepId(5), left: from, right: to, count };
        world.run(&compare);
        let bytes = vec![0x3c; 2 * SECTOR];
        world.run(&ComputeStep::Fill { to, bytes });
        world.run(&compare);
        world.run(&ComputeStep::Zero { to: from, count: Sectors(2) });
        world.run(&compare);
    }

    #[test]
    fn generate_then_check(mut world in world(Sectors(2), 14), damaged: bool) {
        let count = Sectors(2);
        let data = world.stripe(20);
        let (p, q) = (world.range(20), world.range(40));
        world.run(&ComputeStep::Generate { count, data: data.clone(), p, q });
        if p == BufferId::None {
            return Ok(());
        }
        let present = data.iter().chain([&p, &q]).filter(|&&block| block != BufferId::None);
        let present: Vec<BufferId> = present.copied().collect();
        if damaged {
            let bad = present[world.random.below(present.len() as u64) as usize];
            let bytes = vec![0x77; SECTOR];
            world.run(&ComputeStep::Fill { to: bad, bytes });
        }
        world.run(&ComputeStep::Check { id: StepId(9), count, data, p, q });
    }

    #[test]
    fn check_of_anything(mut world in world(Sectors(1), 14)) {
        let data = world.stripe(20);
        let (p, q) = (world.range(0), world.range(40));
        prop_assume!(p != BufferId::None);
        world.run(&ComputeStep::Check { id: StepId(9), count: Sectors(1), data, p, q });
    }

    #[test]
    fn update(mut world in world(Sectors(2), 4), index in 0_u8..255) {
        let (old, new) = (world.range(20), world.range(20));
        let (p, q) = (world.range(20), world.range(20));
        let count = Sectors(2);
        world.run(&ComputeStep::Update { count, index, old, new, p, q });
    }

    #[test]
    fn recover(
        mut world in world(Sectors(2), 14),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..=2),
    ) {
        let count = Sectors(2);
        let data = world.stripe(20);
        let (p, q) = (world.range(0), world.range(0));
        world.run(&ComputeStep::Generate { count, data: data.clone(), p, q });
        let all: Vec<BufferId> = data.iter().copied().chain([p, q]).collect();
        let mut lost: Vec<u8> = lost.iter().map(|index| index.index(all.len()) as u8).collect();
        lost.dedup();
        lost.retain(|&block| all[usize::from(block)] != BufferId::None);
        for &block in &lost {
            let whole = world.buffers.slice_mut(all[usize::from(block)], count);
            whole.expect("a range of the world").fill(0xee);
        }
        let step = ComputeStep::Recover { count, data, p, q, lost };
        prop_assert_eq!(world.buffers.execute(&step), Ok(None));
        // The oracle never lost anything.
        world.assert_same_bytes();
    }

    #[test]
    fn seal(
        mut world in world(Sectors(2), 8),
        blocks in 0_usize..6,
        header_bytes in 64_u32..=1024,
        swapped: bool,
    ) {
        let header = world.range(0);
        let blocks = (0..blocks).map(|_| (world.range(0), Sectors(1 + world.random.below(2))));
        let blocks: Vec<(BufferId, Sectors)> = blocks.collect();
        let (at, seal_at) = if swapped { (40, 36) } else { (0, header_bytes - 4) };
        world.run(&ComputeStep::Seal { header, header_bytes, at, seal_at, blocks });
    }
}

#[test]
fn the_seal_is_that_of_rfc_3720() {
    // RFC 3720 B.4: 32 bytes of zeros have the CRC-32C 0x8a9136aa.
    assert_eq!(crc32c_bitwise(&[0; 32]), 0x8a91_36aa);
    let mut buffers = Vectors::new(0xa5);
    let scratch = ScratchId(0);
    let header = BufferId::Scratch {
        scratch,
        skip: Sectors(0),
    };
    let count = Sectors(1);
    let allocate = ComputeStep::Allocate { scratch, count };
    let seal = ComputeStep::Seal {
        header,
        header_bytes: 32,
        at: 0,
        seal_at: 28,
        blocks: Vec::new(),
    };
    for step in [allocate, ComputeStep::Zero { to: header, count }, seal] {
        assert_eq!(buffers.execute(&step), Ok(None));
    }
    let sealed = buffers.slice(header, count).expect("allocated");
    assert_eq!(sealed[28..33], [0xaa, 0x36, 0x91, 0x8a, 0]);
}
