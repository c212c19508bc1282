//! scratch
use raidlab_lab::*;
use raidlab_model::ModelBench;
use raidlab_store::*;
struct O(Vec<Measurement>, bool);
impl Observer for O {
    fn progress(&mut self, p: Progress) {
        if self.1 {
            eprintln!("{p:?}");
        }
    }
    fn setting(&mut self, _: Setting) {}
    fn measured(&mut self, m: Measurement) {
        self.0.push(m)
    }
    fn cancelled(&self) -> bool {
        false
    }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let suite = Suite::load(&std::env::var("SUITE").unwrap_or("mirror-2015".into())).unwrap();
    let fits: Vec<String> = args[1].split(',').map(String::from).collect();
    let names: Vec<&str> = args[2].split(',').collect();
    let without: Vec<String> = args.get(3).map_or(vec![], |s| {
        s.split(',')
            .filter(|s| !s.is_empty())
            .map(String::from)
            .collect()
    });
    let seed = args.get(4).map_or(1, |s| s.parse().unwrap());
    let subjects: Vec<Subject> = names.iter().map(|n| suite.subject(n).unwrap()).collect();
    let experiments = suite.experiments(
        &subjects,
        &Choices {
            fits,
            seed,
            without,
        },
    );
    let published = suite.published.clone().unwrap();
    for e in &experiments {
        let t = std::time::Instant::now();
        let mut o = O(vec![], std::env::var("V").is_ok());
        ModelBench
            .run(e, &mut o)
            .unwrap_or_else(|e| panic!("{e:?}"));
        println!("== {} {} {:?}", e.subject.name, e.fit, t.elapsed());
        let mut abs = vec![];
        for m in &mut o.0 {
            published.attach(m);
            let p = m.published.first().map(|p| p.iops);
            let err = p.map(|p| (m.iops / p - 1.0) * 100.0);
            if let (Some(e), Ok(j)) = (err, m.job.parse::<u32>()) {
                if (6..=15).contains(&j) {
                    abs.push(e.abs());
                }
            }
            println!(
                "{:>3} {:5} {:9.2} {:9.2} {:+6.1}% run {:7.1} sync {:?} {:?} leap {:4.1} ovf {} members {:?} lat {:.1}",
                m.job,
                format!("{:?}", m.op),
                m.iops,
                p.unwrap_or(0.0),
                err.unwrap_or(0.0),
                m.runtime_ns as f64 / 1e9,
                m.sync_percent_start.map(|x| (x * 10.0).round() / 10.0),
                m.published.first().and_then(|p| p.sync_percent),
                m.leaped_percent,
                m.tag_overflows,
                m.members
                    .iter()
                    .map(|u| (u.read_ios, u.write_ios))
                    .collect::<Vec<_>>(),
                m.latency.mean_ns / 1e6
            );
        }
        println!(
            "mean 6-15 {:.2} worst {:.2}",
            abs.iter().sum::<f64>() / abs.len() as f64,
            abs.iter().cloned().fold(0.0, f64::max)
        );
    }
}
