use super::*;
use raidlab_store::Scope;

#[test]
fn versions_are_found_in_what_programs_say() {
    assert_eq!(
        number_in("mdadm - v4.2 - 2021-12-30 - Debian 4.2-5"),
        Some("4.2")
    );
    assert_eq!(number_in("btrfs-progs v6.2 "), Some("6.2"));
    assert_eq!(
        number_in("zfs-2.1.11-1\nzfs-kmod-2.1.11-1"),
        Some("2.1.11-1")
    );
    assert_eq!(
        number_in("  LVM version:     2.03.16(2) (2022-05-18)"),
        Some("2.03.16(2)")
    );
    assert_eq!(number_in("no number"), None);
    assert_eq!(number_in("a . b"), None);
}

fn spec(text: &str) -> ArraySpec {
    toml::from_str(text).unwrap()
}

fn found(name: &str, value: &str) -> ReadBack {
    ReadBack {
        name: name.to_owned(),
        asked: None,
        found: value.to_owned(),
        applied: true,
        source: "test".to_owned(),
    }
}

fn facts(spec: &ArraySpec, count: usize, settings: &[ReadBack]) -> Vec<(String, String)> {
    let mut facts = Facts::new(Scope::default());
    of_array(&mut facts, spec, count, settings);
    let all = facts.all.into_iter();
    all.map(|fact| (fact.name, fact.value)).collect()
}

#[test]
fn md_s_words_become_the_audit_s() {
    let spec = spec("md = { level = \"raid6\", spares = 1 }");
    let settings = [found("chunk", "524288"), found("bitmap", "internal")];
    let facts = facts(&spec, 6, &settings);
    for (name, value) in [
        (fact::ARRAY_SYSTEM, "md"),
        (fact::ARRAY_LEVEL, "raid6"),
        (fact::ARRAY_CHUNK_BYTES, "524288"),
        // Three of five hold data, the sixth waits.
        (fact::ARRAY_STRIPE_BYTES, "1572864"),
        (fact::ARRAY_BITMAP, "internal"),
    ] {
        assert!(
            facts.contains(&(name.to_owned(), value.to_owned())),
            "{name} is not {value}: {facts:?}"
        );
    }
    assert_eq!(spec.role(6, 5), Some("spare"));
    assert_eq!(spec.role(6, 4), None);
}

#[test]
fn zfs_s_words_become_the_audit_s() {
    let spec = spec("zfs = { topology = \"mirror\", log = 1 }");
    let settings = [
        found("compression", "lz4"),
        found("compressratio", "1.07x"),
        found("fragmentation", "-"),
        found("capacity", "12%"),
        found("recordsize", "131072"),
    ];
    let facts = facts(&spec, 3, &settings);
    let value = |name: &str| {
        let mut named = facts.iter().filter(|(known, _)| known == name);
        named.next().map(|(_, value)| value.as_str())
    };
    assert_eq!(value(fact::COMPRESSION), Some("lz4"));
    assert_eq!(value(fact::COMPRESS_RATIO), Some("1.07"));
    assert_eq!(value(fact::FILL_PERCENT), Some("12"));
    assert_eq!(value(fact::FRAGMENTATION_PERCENT), None);
    assert_eq!(value(fact::ARRAY_RECORD_BYTES), Some("131072"));
    assert_eq!(value(fact::ARRAY_AUXILIARY), Some("log"));
    assert_eq!(value(fact::DEDUPLICATION), None);
}
