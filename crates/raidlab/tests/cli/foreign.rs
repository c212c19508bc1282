//! Job files and suites that a stranger might send: what does more than shape
//! the load is refused by name, file and line before anything is planned, on
//! every bench; the same file without its sting plans.

use crate::lab::Lab;
use std::fs;
use std::path::Path;

/// A job file of the folder, with the line of its sting and the option that is
/// to be named.
struct Hostile {
    name: String,
    text: String,
    line: usize,
    option: String,
}

fn hostile() -> Vec<Hostile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/fio");
    let files = fs::read_dir(folder).expect("the folder is there");
    let mut all: Vec<Hostile> = files
        .map(|file| {
            let path = file.expect("readable").path();
            let text = fs::read_to_string(&path).expect("readable");
            let mut lines = text.lines().enumerate();
            let (line, option) = lines
                .find_map(|(line, words)| {
                    let (_, option) = words.split_once(" # sting ")?;
                    Some((line + 1, option.to_owned()))
                })
                .expect("a file with a sting");
            let name = path.file_name().expect("a name").to_string_lossy();
            Hostile {
                name: name.into_owned(),
                text,
                line,
                option,
            }
        })
        .collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

const BENCHES: [&str; 3] = [
    "--on model",
    "--on kernel --subject md-raid1",
    "--on host --subject md-raid1",
];

/// Plans a run on a bench, and gives what it says on standard error where it is
/// refused.
fn refused(lab: &Lab, file: &str, bench: &str) -> String {
    let words = format!("run {file} --dry-run {bench}");
    let ran = lab.run(&words);
    assert!(ran.code != 0, "{file} {bench:?} is planned");
    ran.stderr
}

#[test]
fn job_files_with_a_sting_are_refused_by_name_on_every_bench() {
    let lab = Lab::new();
    let all = hostile();
    assert!(all.len() >= 50, "{}", all.len());
    for (index, one) in all.iter().enumerate() {
        lab.write(&one.name, &one.text);
        let file = format!("./{}", one.name);
        // One reader serves the benches: all of them are asked for some.
        let benches = if index % 10 == 0 {
            &BENCHES[..]
        } else {
            &BENCHES[index % 3..=index % 3]
        };
        for bench in benches {
            let error = refused(&lab, &file, bench);
            let place = format!("{file}, line {}", one.line);
            assert!(error.contains(&place), "{}: {error}", one.name);
            assert!(
                error.contains(&format!("`{}", one.option)),
                "{}: {error}",
                one.name
            );
        }
    }
}

#[test]
fn the_same_job_files_without_their_sting_plan() {
    let lab = Lab::new();
    for one in hostile() {
        let harmless: Vec<&str> = one
            .text
            .lines()
            .filter(|line| !line.contains(" # sting "))
            .collect();
        lab.write(&one.name, &harmless.join("\n"));
        lab.ok(&["run", &format!("./{}", one.name), "--dry-run"]);
    }
}

/// A suite of one job whose fio options are these.
fn suite(fio: &str) -> String {
    format!(
        "schema = 1\nname = \"own\"\ntitle = \"t\"\ndescription = \"t\"\nsource = \"t\"\n\
         disks = [\"wd4000fyyz\", \"wd4000fyyz\"]\nsubjects = [\"md-raid1\"]\n\n\
         [[step]]\njob = \"j\"\ntitle = \"t\"\nclass = \"c\"\n{fio}\n"
    )
}

#[test]
fn suites_with_a_sting_are_refused_with_their_line_on_every_bench() {
    let lab = Lab::new();
    lab.write("evil.fio", "[a]\nsize=1m\nexec_prerun=reboot\n");
    let plain = "--rw=randread --bs=4k --size=1m";
    let cases = [
        (
            format!("fio = \"{plain} --exec_prerun=reboot\""),
            "exec_prerun",
            13,
        ),
        (
            format!("fio = \"{plain} --filename=/dev/sda\""),
            "filename",
            13,
        ),
        (
            format!("fio = [\"{plain}\", \"{plain} --output /etc/passwd\"]"),
            "output",
            13,
        ),
        (
            format!("fio = \"{plain}\\n--ioengine=external:/x.so\""),
            "ioengine",
            13,
        ),
        (
            format!("fio = \"{plain} --write_bw_log=/root/x\""),
            "write_bw_log",
            13,
        ),
        ("fio_file = \"evil.fio\"".to_owned(), "exec_prerun", 13),
        (
            "fio_job = \"\"\"\n[a]\nsize=1m\ninclude evil.fio\n\"\"\"".to_owned(),
            "include",
            16,
        ),
        (
            format!("matrix = {{ what = [\"exec_prerun=reboot\"] }}\nfio = \"{plain} --{{what}}\""),
            "exec_prerun",
            14,
        ),
        (
            format!("matrix = {{ bs = [\"4k --directory=/\"] }}\nfio = \"{plain} --bs={{bs}}\""),
            "directory",
            14,
        ),
    ];
    for (fio, option, line) in cases {
        lab.write("own.toml", &suite(&fio));
        for bench in BENCHES {
            let error = refused(&lab, "./own.toml", bench);
            assert!(
                error.contains(&format!("./own.toml:{line}:")),
                "{fio}: {error}"
            );
            assert!(error.contains(&format!("`{option}")), "{fio}: {error}");
        }
    }
    lab.write("own.toml", &suite(&format!("fio = \"{plain}\"")));
    lab.ok("run ./own.toml --dry-run --subject md");
}

#[test]
fn what_the_user_allows_passes_for_this_run_and_nothing_else_does() {
    let lab = Lab::new();
    let text = "[a]\nrw=read\nsize=${SIZE}\nfilename=/dev/sda\nexec_prerun=true\n";
    lab.write("own.fio", text);
    let allowed = "--allow-fio ${SIZE}=1m --allow-fio filename";
    let words = format!("run ./own.fio --dry-run {allowed}");
    let error = lab.run(&words).stderr;
    assert!(
        error.contains("./own.fio, line 5: option `exec_prerun`"),
        "{error}"
    );
    assert!(error.contains("--allow-fio exec_prerun"), "{error}");
    let words = format!("{words} --allow-fio exec_prerun");
    lab.ok(&words);
    let misspelt = "run ./own.fio --dry-run --allow-fio filenam";
    let error = lab.run(misspelt).stderr;
    assert!(error.contains("did you mean `filename`?"), "{error}");
}
