use super::Plan;
use raidlab_lab::{Choices, Files, Suite};

#[test]
fn a_member_of_flash_does_not_turn() {
    let text = r#"schema = 1
name = "mixed"
title = "mixed"
description = "a disk of flash beside one with platters"
source = "this test"
disks = ["ssd950pro", "wd4000fyyz"]
subjects = ["md", "md-raid1"]

[[step]]
job = "read"
title = "reads"
class = "random-read"
queue = "fio"
fio = "--rw=randread --bs=4k --ioengine=libaio --direct=1 --runtime=1"
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mixed.toml");
    std::fs::write(&path, text).expect("a file");
    let suite = Suite::load(&path.to_string_lossy()).expect("a suite");
    let choices = Choices {
        fits: vec!["strict".to_owned()],
        seed: 1,
        ..Choices::default()
    };
    for experiment in suite.experiments(&suite.subjects, &choices) {
        let plan = Plan::new(&experiment, &Files::default()).expect("a plan");
        assert_eq!(plan.rotational().collect::<Vec<_>>(), [false, true]);
        let md = plan.md.as_ref().map(super::MdArray::rotational);
        assert!(md.is_none_or(|members| members == [false, true]));
    }
}
