//! scratch
use raidlab_fit::*;
fn main() {
    let facts = Facts::parse(
        "facts",
        &std::fs::read_to_string(std::env::var("FACTS").unwrap_or("facts/wd4000fyyz.toml".into()))
            .unwrap(),
    )
    .unwrap_or_else(|e| panic!("{e} {:?}", e));
    let preset = raidlab_disk::Preset::parse(
        "p",
        &std::fs::read_to_string("disks/wd4000fyyz.toml").unwrap(),
    )
    .unwrap();
    let set = std::env::args().nth(1).unwrap();
    let secs: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let seed: u64 = std::env::args().nth(3).map_or(1, |s| s.parse().unwrap());
    let mut base = preset.parameters(&set).unwrap().clone();
    for kv in std::env::var("SETP")
        .unwrap_or_default()
        .split(',')
        .filter(|s| !s.is_empty())
    {
        let (k, v) = kv.split_once('=').unwrap();
        assert!(base.set_named(k, v.parse().unwrap()));
    }
    let base = &base;
    let t = std::time::Instant::now();
    if std::env::args().nth(4).is_some() {
        let o = fit(&facts, &set, base, secs, seed, &|_p| {}).unwrap();
        for (n, v) in &o.parameters {
            println!("{n} = {v}");
        }
        println!("cost {} evals {} {:?}", o.cost, o.evaluations, t.elapsed());
        for r in &o.rows {
            println!(
                "{:24} {:8.2} {:8.2} {:+6.1} {}",
                r.id, r.measured, r.fitted, r.error_percent, r.used
            );
        }
    } else {
        for r in check(&facts, &set, base, secs, seed).unwrap() {
            println!(
                "{:24} {:8.2} {:8.2} {:+6.1} {}",
                r.id, r.measured, r.fitted, r.error_percent, r.used
            );
        }
        println!("{:?}", t.elapsed());
    }
}
