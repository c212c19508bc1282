use super::ArrivalProcess;
use raidlab_random::Stream;
use raidlab_units::Nanos;

/// Every process keeps the rate that it was told.
#[test]
fn every_process_has_its_rate() {
    for &(process, name) in ArrivalProcess::ALL {
        let mut random = Stream::new(7);
        let mut arrivals = process.begin(500 * 4096, 4096);
        assert_eq!(arrivals.due(), Nanos::ZERO, "{name}");
        let mut before = Nanos::ZERO;
        for _ in 0..100_000 {
            arrivals.sent(4096, &mut random);
            assert!(arrivals.due() >= before, "{name}");
            before = arrivals.due();
        }
        let seconds = before.as_secs_f64();
        assert!((seconds / 200.0 - 1.0).abs() < 0.01, "{name}: {seconds} s");
        arrivals.skip(Nanos::from_secs(3));
        let skipped = (arrivals.due() - before).as_secs_f64();
        assert!((skipped - 3.0).abs() < 0.003, "{name}: {skipped} s");
    }
}
