//! ISA-L as an independent oracle for P and Q.
//!
//! `cargo test -p raidlab-parity --test isal -- --ignored`, with ISA-L
//! (libisal.so.2) installed.

#[path = "../examples/peers/isal.rs"]
mod isal;

use raidlab_parity::tiers_available;
use raidlab_random::Stream;

#[test]
#[ignore = "needs ISA-L, libisal.so.2; ./check runs it where there is one"]
fn isal_makes_the_same_parity() {
    let isal = isal::Isal::load().expect("libisal.so.2 is installed");
    let pq_gen = isal.function("pq_gen").expect("pq_gen");
    let xor_gen = isal.function("xor_gen").expect("xor_gen");
    let mut random = Stream::new(1);
    for blocks in 2..=40 {
        for bytes in [32, 64, 96, 512, 1024, 4096, 4128, 65_536] {
            let mut memory = vec![0; (blocks + 2) * bytes + 32];
            memory.fill_with(|| random.next_u64() as u8);
            let start = memory.as_ptr().align_offset(32);
            let mut list: Vec<&mut [u8]> = memory[start..].chunks_exact_mut(bytes).collect();
            list.truncate(blocks + 2);
            pq_gen.call(&mut list);
            let (data, parity) = list.split_at(blocks);
            let what = format!("{blocks} x {bytes}");
            for tier in tiers_available() {
                let kernels = tier.kernels().expect("available");
                let (mut p, mut q) = (vec![0; bytes], vec![0; bytes]);
                kernels.generate_pq(&as_slices(data), &mut p, &mut q);
                assert!(p == *parity[0] && q == *parity[1], "{tier} {what}");
            }
            let p = parity[0].to_vec();
            list.truncate(blocks + 1);
            list[blocks].fill(0);
            xor_gen.call(&mut list);
            assert!(p == *list[blocks], "xor_gen {what}");
        }
    }
}

fn as_slices<'a>(data: &'a [&mut [u8]]) -> Vec<&'a [u8]> {
    data.iter().map(|block| &**block).collect()
}
