//! The speed of each tier, with ISA-L beside it.
//!
//! All contenders take turns on the same buffers, a batch of some milliseconds each, so that
//! other load on the machine affects all of them alike. Printed: the median over the rounds of
//! GB/s (1e9 bytes of data per second), the quartiles, and the median of the ratio to ISA-L in
//! the same round.
//!
//! `cargo run --release -p raidlab-parity --example peers -- [data blocks] [KiB per block]
//! [rounds]`; 8, 64 and 60 unless given.

mod isal;

use isal::Isal;
use raidlab_parity::{Kernels, tiers_available};
use std::time::{Duration, Instant};

const BATCH: Duration = Duration::from_millis(5);

/// Work on all blocks of a stripe, parity last.
type Run<'a> = Box<dyn Fn(&mut [&mut [u8]]) + 'a>;
/// Work on data, P and Q by the kernels of one tier.
type Work = fn(&Kernels, &mut [&mut [u8]], &mut [u8], &mut [u8]);

/// One line of a table.
struct Contender<'a> {
    name: String,
    run: Run<'a>,
    rates: Vec<f64>,
}

fn main() {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().expect("a number"))
        .collect();
    let argument = |place: usize, default| arguments.get(place).copied().unwrap_or(default);
    let (blocks, bytes, rounds) = (argument(0, 8), argument(1, 64) << 10, argument(2, 60));
    let isal = Isal::load();
    if isal.is_none() {
        println!("ISA-L (libisal.so.2) is not installed: no peer to compare with");
    }
    let mut memory = vec![0_u8; (blocks + 2) * bytes + 4096];
    for (place, byte) in memory.iter_mut().enumerate() {
        *byte = (place as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes()[0];
    }
    let start = memory.as_ptr().align_offset(4096);
    let mut list: Vec<&mut [u8]> = memory[start..].chunks_exact_mut(bytes).collect();
    list.truncate(blocks + 2);

    let peers = ["pq_gen", "pq_gen_avx512", "pq_gen_avx2"];
    let mut table = contenders(isal.as_ref(), &peers, blocks + 2);
    add(&mut table, "", |kernels, data, p, q| {
        kernels.generate_pq(data, p, q);
    });
    race(
        &format!("P and Q, {blocks} + 2 x {bytes} bytes"),
        table,
        &mut list,
        rounds,
    );

    let peers = ["xor_gen", "xor_gen_avx512", "xor_gen_avx"];
    let mut table = contenders(isal.as_ref(), &peers, blocks + 1);
    add(&mut table, "", |kernels, data, p, _| {
        kernels.generate_p(data, p)
    });
    race(
        &format!("P, {blocks} + 1 x {bytes} bytes"),
        table,
        &mut list,
        rounds,
    );

    let mut table = Vec::new();
    add(&mut table, " Q alone", |kernels, data, _, q| {
        kernels.generate_q(data, q)
    });
    add(&mut table, " check", |kernels, data, p, q| {
        kernels.generate_pq(data, p, q);
        std::hint::black_box(kernels.check(data, p, Some(q)));
    });
    add(&mut table, " D + D", |kernels, data, p, q| {
        kernels
            .recover(data, Some(p), Some(q), &[1, 4])
            .expect("two lost blocks");
    });
    add(&mut table, " D + P", |kernels, data, p, q| {
        let p_number = data.len();
        kernels
            .recover(data, Some(p), Some(q), &[1, p_number])
            .expect("two lost blocks");
    });
    add(&mut table, " update (x blocks)", |kernels, data, p, q| {
        kernels.update(3, &*data[0], &*data[1], Some(p), Some(q));
    });
    race(
        &format!("other work, {blocks} + 2 x {bytes} bytes"),
        table,
        &mut list,
        rounds,
    );
}

/// Returns those of ISA-L's functions that exist, on the first `count` blocks.
fn contenders<'a>(isal: Option<&'a Isal>, names: &[&str], count: usize) -> Vec<Contender<'a>> {
    let mut table = Vec::new();
    for name in names {
        let Some(function) = isal.and_then(|isal| isal.function(name)) else {
            continue;
        };
        table.push(Contender {
            name: format!("ISA-L {name}"),
            run: Box::new(move |blocks| function.call(&mut blocks[..count])),
            rates: Vec::new(),
        });
    }
    table
}

/// Adds every tier that the processor has to the table.
fn add(table: &mut Vec<Contender<'_>>, what: &str, work: Work) {
    for tier in tiers_available() {
        let kernels = tier.kernels().expect("the tier is available");
        table.push(Contender {
            name: format!("{tier}{what}"),
            run: Box::new(move |blocks| {
                let (data, parity) = blocks.split_at_mut(blocks.len() - 2);
                let [p, q] = parity else {
                    unreachable!("split off two")
                };
                work(&kernels, data, p, q);
            }),
            rates: Vec::new(),
        });
    }
}

fn race(title: &str, mut table: Vec<Contender<'_>>, blocks: &mut [&mut [u8]], rounds: usize) {
    let data_bytes = ((blocks.len() - 2) * blocks[0].len()) as f64;
    for round in 0..=rounds {
        for place in 0..table.len() {
            let count = table.len();
            let contender = &mut table[(place + round) % count];
            let start = Instant::now();
            let mut calls = 0;
            while start.elapsed() < BATCH {
                for _ in 0..16 {
                    (contender.run)(blocks);
                }
                calls += 16;
            }
            // The first round only warms up.
            if round > 0 {
                let seconds = start.elapsed().as_secs_f64();
                contender
                    .rates
                    .push(f64::from(calls) * data_bytes / seconds / 1e9);
            }
        }
    }
    println!("\n{title}");
    println!(
        "{:28} {:>8} {:>8} {:>8} {:>9}",
        "", "median", "lower", "upper", "of ISA-L"
    );
    let peer = table
        .first()
        .filter(|first| first.name.starts_with("ISA-L"));
    let peer = peer.map(|peer| peer.rates.clone());
    for contender in table {
        let ratio = peer.as_ref().map(|peer| {
            let ratios = contender.rates.iter().zip(peer);
            let mut ratios: Vec<f64> = ratios.map(|(ours, theirs)| ours / theirs).collect();
            quantile(&mut ratios, 0.5)
        });
        let mut rates = contender.rates;
        println!(
            "{:28} {:8.1} {:8.1} {:8.1} {:>9}",
            contender.name,
            quantile(&mut rates, 0.5),
            quantile(&mut rates, 0.25),
            quantile(&mut rates, 0.75),
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        );
    }
}

fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}
