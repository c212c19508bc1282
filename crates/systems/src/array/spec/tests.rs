use super::ArraySpec;
use serde::Deserialize;

/// What a subject's file has around it.
#[derive(Debug, Deserialize)]
struct File {
    build: ArraySpec,
}

fn refused(text: &str) -> String {
    let text = format!("name = 'x'\n{text}");
    match toml::from_str::<File>(&text) {
        Ok(file) => panic!("{} was read", file.build.system().title()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_system_is_a_table_in_build() {
    let cases = [
        ("[build.md]\nlevel = 'raid5'\nchunk = '512k'", "md raid5"),
        ("[build.btrfs]\ndata = 'raid1'", "btrfs raid1"),
        ("[build.lvm]\nlevel = 'raid10'", "LVM raid10"),
        ("[build.disk]", "disk"),
        ("[build.nbd]\nuri = 'nbd://h/'\nsize = '1g'", "NBD export"),
    ];
    for (text, title) in cases {
        let file: File = toml::from_str(text).expect(text);
        assert_eq!(file.build.system().title(), title);
    }
}

#[test]
fn what_is_wrong_is_shown_at_its_line() {
    let cases = [
        "[build.md]\nlevel = 'raid5'\nchunks = '512k'",
        "[build.md]\nlevel = 'raid5'\nchunk = '512q'",
        "[build.md]\nlevel = 'raid7'",
        "[build.md]\nchunk = '512k'",
        "[build.raid]\nlevel = 'raid5'",
        "[build]\nsystem = 'md'\nlevel = 'raid5'",
        "[build.disk]\nlevel = 'raid5'",
        "[build.md]\nlevel = 'raid1'\n[build.disk]",
    ];
    let messages: Vec<String> = cases.into_iter().map(refused).collect();
    insta::assert_snapshot!(messages.join("\n"));
}
