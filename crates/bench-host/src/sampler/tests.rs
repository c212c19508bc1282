use super::*;
use raidlab_shell::Recorded;
use raidlab_systems::{ArraySpec, Member};
use raidlab_units::Bytes;

const HEALTHY: &str = "Label: 'raidlab0'  uuid: 3d323ebd-70f5-4313-8541-5bfe4498ab18\n\
    \tTotal devices 2 FS bytes used 315375616\n\
    \tdevid    1 size 536870912 used 503316480 path /dev/loop0\n\
    \tdevid    2 size 536870912 used 337117184 path /dev/loop1\n\n";
const DEGRADED: &str = "Label: 'raidlab0'  uuid: 3d323ebd-70f5-4313-8541-5bfe4498ab18\n\
    \tTotal devices 2 FS bytes used 315375616\n\
    \tdevid    1 size 536870912 used 503316480 path /dev/loop0\n\
    \tdevid    2 size 0 used 0 path  MISSING\n\n";
const NEVER: &str = "Never started\n";

/// A frame at so many milliseconds, with sectors read of loop0.
fn frame(at: u64, sectors: u64, show: Option<&str>, replace: &str) -> Frame {
    let disks = format!(
        "   7       0 loop0 {sectors} 0 {sectors} 0 0 0 0 0 0 0 0\n   \
         7       1 loop1 0 0 0 0 0 0 0 0 0 0 0\n"
    );
    Frame {
        at: Duration::from_millis(at),
        contents: vec![
            Some(disks),
            Some("MemTotal: 1000 kB\n".to_owned()),
            Some("cpu  1 0 1 1 0 0 0 0 0 0\n".to_owned()),
            show.map(str::to_owned),
            Some(replace.to_owned()),
            None,
        ],
    }
}

#[test]
fn frames_become_series_and_changes_of_state_events() {
    let machine = Recorded::new("store1")
        .file_missing("/proc/spl/kstat/zfs/arcstats")
        .folder("/sys/class/hwmon", &[])
        .frames(vec![
            frame(0, 0, Some(HEALTHY), NEVER),
            frame(1000, 2048, Some(HEALTHY), NEVER),
            // Unmounted for a moment: the state before holds.
            frame(2000, 2048, None, NEVER),
            frame(3000, 4096, Some(DEGRADED), NEVER),
            frame(
                8000,
                4096,
                Some(DEGRADED),
                "15.5% done, 0 write errs, 0 uncorr. read errs\n",
            ),
            frame(
                9000,
                4096,
                Some(HEALTHY),
                "Started on x, finished on y, 0 write errs\n",
            ),
        ]);
    let spec: ArraySpec = toml::from_str("btrfs = { data = \"raid1\" }").unwrap();
    let member = |device: &str| Member {
        device: device.to_owned(),
        size: Bytes(512 << 20),
        backing: None,
        away: false,
    };
    let built = Built {
        name: "raidlab0".to_owned(),
        members: vec![member("/dev/loop0"), member("/dev/loop1")],
        folder: "/run/raidlab/raidlab0".to_owned(),
    };
    let system = &*spec;
    let begun = Instant::now();
    let mut sampler = Sampler::new(&machine, System::Linux, system, &built, None, begun).unwrap();
    for _ in 0..3 {
        sampler.poll(system, &built).unwrap();
    }
    let (at, status) = sampler.status().unwrap();
    assert_eq!(status.health, Health::Optimal);
    assert!(
        at >= Duration::from_secs(1) && at < Duration::from_millis(1900),
        "{at:?}"
    );
    for _ in 0..3 {
        sampler.poll(system, &built).unwrap();
    }

    let scope = Scope::host("store1");
    let events: Vec<(&'static str, String)> = sampler
        .drain_events(&scope)
        .into_iter()
        .map(|event| match event.kind.as_str() {
            "sampling-gap" => ("gap", event.text),
            "state" => ("state", event.text),
            other => panic!("an event of kind {other}"),
        })
        .collect();
    let expected = [
        ("state", "the array is degraded"),
        ("gap", "nothing was sampled for 5.0 s"),
        ("state", "the array is optimal"),
    ];
    assert_eq!(events, expected.map(|(kind, text)| (kind, text.to_owned())));

    // Out of these the times of the rebuild are derived.
    let looks = sampler.drain_looks();
    assert!(looks.iter().all(|look| !look.is_exact));
    let seen = looks.iter().map(|look| {
        let sync = look.sync.map(|sync| (sync.op, sync.percent));
        (look.letters.clone(), sync)
    });
    let recovery = Some((Operation::Recovery, Some(15.5)));
    let expected = [
        ("[UU]", None),
        ("[UU]", None),
        ("[U_]", None),
        ("[U_]", recovery),
        ("[UU]", None),
    ];
    assert!(seen.eq(expected.map(|(letters, sync)| (letters.to_owned(), sync))));
    assert!(sampler.drain_looks().is_empty());

    let series = sampler.drain_series(&scope);
    let points = |name: &str| {
        let found = series.iter().find(|series| series.name == name).unwrap();
        found
            .points
            .iter()
            .map(|(_, value)| *value)
            .collect::<Vec<f64>>()
    };
    // 2048 sectors a second are 1 MiB; the array is seen by its members.
    let mebibyte = 1_048_576.0;
    assert_eq!(
        points(series::READ_BYTES_PER_SECOND),
        [mebibyte, 0.0, mebibyte, 0.0, 0.0]
    );
    assert_eq!(points(&series::member(0, "read_iops"))[0], 2048.0);
    assert_eq!(points(series::SYNC_PERCENT), [15.5]);
    assert!(sampler.drain_series(&scope).is_empty());
}
