//! scratch
use raidlab_array::*;
use raidlab_disk::*;
use raidlab_random::*;
use raidlab_sim::*;
use raidlab_units::*;
fn main() {
    let preset = Preset::parse(
        "p",
        &std::fs::read_to_string("disks/wd4000fyyz.toml").unwrap(),
    )
    .unwrap();
    let p = preset.parameters("strict").unwrap();
    let rec = match std::env::args().nth(1).unwrap().as_str() {
        "md" => RecoveryConfig::md_3_16(),
        "gmirror" => RecoveryConfig::gmirror(),
        _ => RecoveryConfig::gflash(),
    };
    let pol = match std::env::args().nth(1).unwrap().as_str() {
        "md" => "md-3.16",
        "gmirror" => "gmirror-load",
        _ => "gflash",
    };
    let m = MemberConfig {
        size: p.capacity,
        data_offset: Sectors(2048),
        rotational: true,
        write_mostly: false,
    };
    let a = Array::new(ArrayConfig {
        members: vec![m.clone(); 2],
        size: Sectors(p.capacity.0 - 4096),
        read_policy: pol.parse().unwrap(),
        recovery: rec,
        maximum_request: Sectors(if pol.starts_with("md") { 1024 } else { 256 }),
    })
    .unwrap();
    let r = Stream::new(1);
    let mut mm = Machine::new(MachineConfig {
        subject: Box::new(ArraySubject::new(a, m)),
        disks: (0..2)
            .map(|i| {
                Disk::new(
                    p.clone(),
                    Nanos(r.fork("p", i).below(8_333_333)),
                    r.fork("d", i),
                )
            })
            .collect(),
        host: Host {
            turnaround: Nanos::from_micros(59),
            tags: 32,
            maximum_request: Bytes(131072),
        },
        random: r.clone(),
        leaps: false,
    });
    mm.remove(Slot(1)).unwrap();
    mm.insert(Slot(1)).unwrap();
    let mut last = 0;
    for i in 0..40 {
        mm.wait(Nanos::from_millis(if i < 30 { 100 } else { 5000 }))
            .unwrap();
        let s = mm.sync().unwrap();
        print!(
            "{:.1} ",
            (s.position.0 - last) as f64 * 512.0 / 1e6 / if i < 30 { 0.1 } else { 5.0 }
        );
        last = s.position.0;
    }
    println!();
}
