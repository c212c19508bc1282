//! Leaves in memory, and arrays of arrays made of them.

use crate::array::tests::arrays::options;
use crate::array::{ArrayExport, Nest, assemble, create, versions_on};
use crate::export::{ErrorCode, Export, Features, MemoryExport, Operation, Request};
use crate::member::{BackendKind, Member, NestedMember};
use raidlab_array::{AssembleOptions, Level, Stale};
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version};
use raidlab_units::{Bytes, Sectors};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LEAF_BYTES: u64 = 6 << 20;

/// A disk in memory that counts what matters for durability, and may break.
pub(super) struct Leaf {
    memory: MemoryExport,
    pub(super) broken: AtomicBool,
    /// Cannot be read, until it is written.
    pub(super) bad: Mutex<Option<u64>>,
    pub(super) flushes: AtomicU64,
    /// Writes and discards.
    pub(super) writes: AtomicU64,
    /// Byte offsets written with FUA.
    pub(super) forced: Mutex<Vec<u64>>,
}

impl Leaf {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryExport::new(LEAF_BYTES).expect("room"),
            broken: AtomicBool::new(false),
            bad: Mutex::default(),
            flushes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            forced: Mutex::default(),
        })
    }

    pub(super) fn member(self: &Arc<Self>, number: usize) -> Member {
        let export = Arc::clone(self) as Arc<dyn Export>;
        Member::Array(Arc::new(NestedMember::new(
            &format!("leaf-{number}"),
            export,
        )))
    }

    pub(super) fn bytes(self: &Arc<Self>) -> Vec<u8> {
        let mut bytes = vec![0; LEAF_BYTES as usize];
        let read = self.member(0).read_exact_at(&mut bytes, 0);
        read.expect("reads");
        bytes
    }

    /// Another disk with the bytes of now.
    pub(super) fn copy(self: &Arc<Self>) -> Arc<Self> {
        let copy = Self::new();
        let written = copy.member(0).write_all_at(&self.bytes(), 0);
        written.expect("writes");
        copy
    }
}

impl Export for Leaf {
    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
    }

    fn features(&self) -> Features {
        self.memory.features()
    }

    fn has_failed(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    fn submit(&self, request: Request) {
        if self.has_failed() {
            return request.complete(Err(ErrorCode::Io));
        }
        let mut bad = self.bad.lock().expect("whole");
        let touches =
            |bad: u64| (request.offset..request.offset + u64::from(request.length)).contains(&bad);
        match request.operation {
            Operation::Read if bad.is_some_and(touches) => {
                return request.complete(Err(ErrorCode::Io));
            }
            Operation::Write if bad.is_some_and(touches) => *bad = None,
            _ => {}
        }
        drop(bad);
        if request.operation == Operation::Flush {
            self.flushes.fetch_add(1, Ordering::SeqCst);
        }
        if matches!(request.operation, Operation::Write | Operation::Trim) {
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
        if request.flags.force_unit_access {
            self.forced.lock().expect("whole").push(request.offset);
        }
        self.memory.submit(request);
    }
}

/// Levels of both layers: the outer one over inner ones with so many leaves, and
/// leaves of its own.
#[derive(Debug, Clone)]
pub(super) struct Design {
    pub(super) outer: Level,
    pub(super) inner: Vec<(Level, usize)>,
    pub(super) own: usize,
}

impl Design {
    pub(super) fn new(outer: Level, inner: &[(Level, usize)], own: usize) -> Self {
        let inner = inner.to_vec();
        Self { outer, inner, own }
    }

    pub(super) fn leaves(&self) -> Vec<Arc<Leaf>> {
        let inner: usize = self.inner.iter().map(|(_, leaves)| leaves).sum();
        (0..inner + self.own).map(|_| Leaf::new()).collect()
    }

    pub(super) fn name(number: usize) -> String {
        format!("inner{number}")
    }

    /// The members of the arrays, those of the outer one that are leaves last.
    fn split<'a>(&self, mut members: &'a [Member]) -> (Vec<&'a [Member]>, &'a [Member]) {
        let mut groups = Vec::new();
        for (_, leaves) in &self.inner {
            let (group, rest) = members.split_at(*leaves);
            groups.push(group);
            members = rest;
        }
        (groups, members)
    }

    /// Makes all arrays.
    pub(super) fn create(&self, leaves: &[Arc<Leaf>]) {
        let members: Vec<_> = (0..)
            .zip(leaves)
            .map(|(number, leaf)| leaf.member(number))
            .collect();
        let (groups, own) = self.split(&members);
        let nest = Nest::new(options(BackendKind::Threads));
        let mut outer = Vec::new();
        for ((number, (level, _)), group) in (0..).zip(&self.inner).zip(groups) {
            make(*level, &Self::name(number), group);
            let how = AssembleOptions::default();
            let name = nest.start(group, &how, &mut |_| {}).expect("starts");
            outer.push(nest.claim_for_new(&name).expect("is free"));
        }
        outer.extend_from_slice(own);
        make(self.outer, "outer", &outer);
    }

    /// Starts all of them; leaves that are `None` are missing.
    pub(super) fn start(&self, leaves: &[Option<Arc<Leaf>>], backend: BackendKind) -> Stack {
        let how = AssembleOptions {
            run_degraded: leaves.iter().any(Option::is_none),
            stale: Stale::ReAdd,
            ..AssembleOptions::default()
        };
        self.start_so(leaves, backend, &how)
    }

    pub(super) fn start_so(
        &self,
        leaves: &[Option<Arc<Leaf>>],
        backend: BackendKind,
        how: &AssembleOptions,
    ) -> Stack {
        let nest = Nest::new(options(backend));
        let mut numbered = (0..).zip(leaves);
        let mut take = |count: usize| -> Vec<Member> {
            let next = numbered.by_ref().take(count);
            next.filter_map(|(number, leaf)| Some(leaf.as_ref()?.member(number)))
                .collect()
        };
        let mut outer = Vec::new();
        for (number, (_, count)) in self.inner.iter().enumerate() {
            let group = take(*count);
            let name = nest.start(&group, how, &mut |_| {}).expect("starts");
            assert_eq!(name, Self::name(number));
            outer.push(nest.claim_for_new(&name).expect("is free"));
        }
        outer.extend(take(self.own));
        let assembled = assemble(&outer, None, how).expect("assembles");
        let top = nest.start_top(assembled).expect("starts");
        Stack { top, nest }
    }
}

pub(super) struct Stack {
    pub(super) top: ArrayExport,
    pub(super) nest: Arc<Nest>,
}

impl Stack {
    pub(super) fn stop(self) {
        self.top.stop();
        assert!(self.top.wait_until_stopped(Duration::from_secs(60)));
        assert!(self.nest.stop(Duration::from_secs(60)));
    }
}

pub(super) fn make(level: Level, name: &str, members: &[Member]) {
    let redundant = !matches!(level, Level::Linear | Level::Raid0);
    let mut uuid = [0; 16];
    uuid[..name.len()].copy_from_slice(name.as_bytes());
    let spec = CreateSpec {
        version: Version::V1_2,
        level,
        layout: None,
        chunk: (level != Level::Raid1).then_some(Sectors(64)),
        raid_disks: members.len(),
        array_uuid: Uuid(uuid),
        host: "here".to_owned(),
        name: name.to_owned(),
        created: 1_700_000_000,
        size: None,
        data_offset: None,
        bitmap: match redundant {
            true => BitmapChoice::Internal(Some(Bytes(65_536))),
            false => BitmapChoice::None,
        },
        initial: InitialSync::AssumeClean,
        log: LogReserve::AtLeast(Sectors(1024)),
        bad_block_log: true,
    };
    let size = |(number, member): (u8, &Member)| {
        Some(MemberSize {
            size: member.size().to_bytes(),
            device_uuid: Uuid([number; 16]),
            flags: DeviceFlags::default(),
            found: versions_on(member),
        })
    };
    let sizes: Vec<_> = (0..).zip(members).map(size).collect();
    let plan = plan(&spec, &sizes).expect("a plan");
    create(&plan, members).expect("writes");
}

pub(super) fn present(leaves: &[Arc<Leaf>]) -> Vec<Option<Arc<Leaf>>> {
    leaves.iter().cloned().map(Some).collect()
}
