//! The cost of parity over 8 data blocks of 64 KiB, by tier, with ISA-L's functions as peers where
//! it is installed. For figures that are compared with each other use the example `peers`, which
//! interleaves its contenders.

#[path = "../examples/peers/isal.rs"]
mod isal;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use raidlab_parity::tiers_available;

const BLOCKS: usize = 8;
const BYTES: usize = 64 << 10;

fn parity(criterion: &mut Criterion) {
    let isal = isal::Isal::load();
    if isal.is_none() {
        println!("ISA-L (libisal.so.2) is not installed: no peer to compare with");
    }
    let mut memory = vec![0x5a; (BLOCKS + 2) * BYTES + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let mut blocks: Vec<&mut [u8]> = memory[start..].chunks_exact_mut(BYTES).collect();
    blocks.truncate(BLOCKS + 2);

    let mut group = criterion.benchmark_group("generate_pq");
    group.throughput(Throughput::Bytes((BLOCKS * BYTES) as u64));
    if let Some(pq_gen) = isal.as_ref().and_then(|isal| isal.function("pq_gen")) {
        group.bench_function("isal", |bencher| bencher.iter(|| pq_gen.call(&mut blocks)));
    }
    for tier in tiers_available() {
        let kernels = tier.kernels().expect("the tier is available");
        group.bench_function(tier.name(), |bencher| {
            let (data, parity) = blocks.split_at_mut(BLOCKS);
            let [p, q] = parity else {
                unreachable!("two are left")
            };
            bencher.iter(|| kernels.generate_pq(data, p, q));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("generate_p");
    group.throughput(Throughput::Bytes((BLOCKS * BYTES) as u64));
    if let Some(xor_gen) = isal.as_ref().and_then(|isal| isal.function("xor_gen")) {
        group.bench_function("isal", |bencher| {
            bencher.iter(|| xor_gen.call(&mut blocks[..=BLOCKS]));
        });
    }
    for tier in tiers_available() {
        let kernels = tier.kernels().expect("the tier is available");
        group.bench_function(tier.name(), |bencher| {
            let (data, parity) = blocks.split_at_mut(BLOCKS);
            bencher.iter(|| kernels.generate_p(data, parity[0]));
        });
    }
    group.finish();
}

criterion_group!(benches, parity);
criterion_main!(benches);
