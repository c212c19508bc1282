use super::{Load, Parameter, jobs, ladders, size_words};
use crate::compute::view::View;
use crate::sample;
use raidlab_store::{Measurement, Operation};

/// A job of random reads.
fn job(sequence: u32, title: &str, block: u64, depth: u32) -> Measurement {
    let mut m = sample::cell("md", sequence);
    title.clone_into(&mut m.job_title);
    m.job = format!("job-{sequence}");
    "random".clone_into(&mut m.class);
    (m.op, m.streams) = (Operation::Read, 1);
    (m.block_size_bytes, m.queue_depth) = (block, depth);
    m
}

fn found(measurements: &[Measurement]) -> Vec<(Parameter, Vec<f64>)> {
    let view = View::of_rows(measurements);
    let all = ladders(&view);
    all.iter()
        .map(|ladder| {
            let values = ladder.steps.iter().map(|(number, _)| number.value);
            (ladder.parameter.clone(), values.collect())
        })
        .collect()
}

#[test]
fn the_quantity_with_the_most_steps_goes_along_the_axis() {
    let mut all = Vec::new();
    for (place, depth) in [1, 4, 16].into_iter().enumerate() {
        for (step, block) in [4096, 8192, 16384, 65536].into_iter().enumerate() {
            all.push(job((place * 4 + step) as u32, "read", block, depth));
        }
    }
    let ladders = found(&all);
    assert_eq!(ladders.len(), 3, "one for each depth");
    for (parameter, values) in ladders {
        assert_eq!(parameter, Parameter::BlockSize);
        assert_eq!(values, [4096.0, 8192.0, 16384.0, 65536.0]);
    }
}

#[test]
fn jobs_of_another_block_size_are_not_lost_in_a_ladder_of_depths() {
    let all = [
        job(0, "a", 4096, 1),
        job(1, "b", 4096, 2),
        job(2, "c", 4096, 4),
        job(3, "d", 16384, 4),
    ];
    assert_eq!(found(&all), [(Parameter::QueueDepth, vec![1.0, 2.0, 4.0])]);
}

#[test]
fn two_values_are_no_ladder() {
    let all = [job(0, "a", 4096, 1), job(1, "b", 4096, 16)];
    assert!(found(&all).is_empty());
}

#[test]
fn a_number_in_the_title_is_a_ladder_where_nothing_else_differs() {
    let all: Vec<Measurement> = [10, 1, 100]
        .into_iter()
        .enumerate()
        .map(|(place, ms)| job(place as u32, &format!("a pause of {ms} ms"), 4096, 1))
        .collect();
    assert_eq!(
        found(&all),
        [(
            Parameter::Named("a pause of N ms".to_owned()),
            vec![1.0, 10.0, 100.0]
        )]
    );
}

#[test]
fn the_mix_is_read_from_what_was_counted_and_its_ends_are_pure() {
    let mut all = Vec::new();
    for (sequence, (reads, writes)) in [(0.0, 90.0), (31.0, 69.0), (68.5, 31.5), (80.0, 0.0)]
        .into_iter()
        .enumerate()
    {
        for (op, iops) in [(Operation::Read, reads), (Operation::Write, writes)] {
            if iops > 0.0 {
                let share = [0, 30, 70, 100][sequence];
                let mut m = job(sequence as u32, &format!("{share} % reads"), 4096, 16);
                (m.op, m.iops) = (op, iops);
                all.push(m);
            }
        }
    }
    assert_eq!(
        found(&all),
        [(Parameter::ReadShare, vec![0.0, 30.0, 70.0, 100.0])]
    );
    let view = View::of_rows(&all);
    let mixed = &jobs(&view)[1];
    assert_eq!(mixed.load, Load::Mixed);
    assert_eq!(mixed.figure(0, false).unwrap().value, 100.0);
}

#[test]
fn threads_of_one_request_each_are_streams() {
    let mut all: Vec<Measurement> = (1..=6)
        .map(|streams| {
            let mut m = job(streams, "streams", 131_072, streams);
            m.streams = streams;
            m
        })
        .collect();
    let (parameter, values) = found(&all).swap_remove(0);
    assert_eq!((parameter, values.len()), (Parameter::Streams, 6));
    // Up to four they stand as bars.
    all.truncate(4);
    assert!(found(&all).is_empty());
}

#[test]
fn sizes_are_spoken_of_in_their_unit() {
    for (bytes, words) in [
        (512.0, "512 B"),
        (4096.0, "4 KiB"),
        (1_572_864.0, "1.5 MiB"),
    ] {
        assert_eq!(size_words(bytes).replace('\u{a0}', " "), words);
    }
}
