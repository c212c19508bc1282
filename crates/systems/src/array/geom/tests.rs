use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Geom {
    let mut geoms = parse_list("list", text).unwrap();
    assert_eq!(geoms.len(), 1);
    geoms.remove(0)
}

#[test]
fn reads_a_real_list_of_disks() {
    let geoms = parse_list("geom disk list", include_str!("data/disk-list-2015.txt")).unwrap();
    let names: Vec<&str> = geoms.iter().map(|geom| geom.name.as_str()).collect();
    assert_eq!(names, ["ada2", "ada3"]);
    let disk = &geoms[1].providers[0];
    assert_eq!(disk.fields.get("descr"), Some("WDC WD4000FYYZ-01UL1B2"));
    assert_eq!(disk.fields.get("ident"), Some("WD-WCC133L4YFU8"));
    assert_eq!(disk.fields.number("Mediasize"), Some(4_000_787_030_016));
    assert!(geoms[1].consumers.is_empty());
}

#[test]
fn keys_that_share_a_line_are_told_apart() {
    let geom = one(include_str!("data/gflash-synchronizing-2015.txt"));
    assert_eq!(geom.fields, Fields::default());
    let device = &geom.providers[0];
    assert_eq!(device.name, "flash/f0");
    assert_eq!(
        device.fields.get("READ"),
        Some("....... 391767 7008570 27377")
    );
    let member = &geom.consumers[1];
    assert_eq!(member.fields.get("State"), Some("START"));
    assert_eq!(member.fields.get("Role"), Some("DATA"));
    assert_eq!(member.fields.number("Synchronized"), Some(11));
}

#[test]
fn fields_of_the_whole_and_of_its_parts_are_kept_apart() {
    let geom = one(include_str!("data/gmirror-synchronizing-2015.txt"));
    assert_eq!(geom.fields.get("State"), Some("DEGRADED"));
    assert_eq!(geom.fields.get("Flags"), Some("NONE"));
    assert_eq!(
        geom.consumers[1].fields.get("Flags"),
        Some("DIRTY, SYNCHRONIZING")
    );
    assert_eq!(geom.providers[0].fields.get("State"), None);
}

#[test]
fn a_member_that_is_gone_has_no_name() {
    let geom = one("Geom name: m0\nConsumers:\n1. [no provider]\n   State: NONE\n");
    assert_eq!(geom.consumers[0].name, "");
    assert_eq!(geom.consumers[0].fields.get("State"), Some("NONE"));
}

#[test]
fn what_is_no_list_is_refused_by_line() {
    let error = parse_list("gmirror list", "gmirror: Unknown command: list.\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot understand gmirror list, line 1: nothing can come before `Geom name:`: \
         `gmirror: Unknown command: list.`"
    );
    let error = parse_list("gmirror list", "Geom name: m0\n\n???\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot understand gmirror list, line 3: no `Key: value`: `???`"
    );
}

#[test]
fn percents_are_refined_by_bytes_only_where_both_agree() {
    let part = |percent: &str, bytes: &str| {
        let text = format!(
            "Geom name: m\nConsumers:\n1. Name: a\n   Mediasize: 1000 (1k)\n   \
             BytesSynced: {bytes}\n   Synchronized: {percent}%\n"
        );
        percent_of(&text)
    };
    assert_eq!(part("14", "145"), Some(14.5));
    // After a restart the bytes count from where it went on.
    assert_eq!(part("57", "145"), Some(57.0));
    assert_eq!(part("180", "1"), Some(100.0));
}

fn percent_of(text: &str) -> Option<f64> {
    percent(&one(text).consumers[0])
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "[ -~\n\t]{0,400}") {
        let _ = parse_list("list", &text);
    }

    /// Real text cut off anywhere, with a line of anything in the middle.
    #[test]
    fn damaged_lists_do_not_panic(cut in 0_usize..900, noise in "\\PC{0,40}") {
        let whole = include_str!("data/gmirror-synchronizing-2015.txt");
        let cut = cut.min(whole.len());
        let text = format!("{}{noise}\n{}", &whole[..cut], &whole[cut..]);
        let _ = parse_list("list", &text);
    }

    /// What is printed in `list`'s form is read back as it was.
    #[test]
    fn lists_are_read_back(
        keys in prop::collection::vec("[A-Z][a-zA-Z]{1,9}", 0..5),
        values in prop::collection::vec("[a-zA-Z0-9.%()]{1,9}( [a-z0-9]{1,4})?", 5),
        members in prop::collection::vec("[a-z]{1,4}[0-9]{1,2}", 0..4),
    ) {
        let pairs: Vec<(String, String)> = keys.into_iter().zip(values).collect();
        let lines = |indent: &str| -> String {
            pairs.iter().map(|(k, v)| format!("{indent}{k}: {v}\n")).collect()
        };
        let mut text = format!("Geom name: m0\n{}Providers:\n1. Name: mirror/m0\n", lines(""));
        text.push_str("Consumers:\n");
        for (number, name) in members.iter().enumerate() {
            text.push_str(&format!("{}. Name: {name}\n{}", number + 1, lines("   ")));
        }
        let geom = one(&text);
        prop_assert_eq!(&geom.fields.0, &pairs);
        prop_assert_eq!(geom.consumers.len(), members.len());
        for (part, name) in geom.consumers.iter().zip(&members) {
            prop_assert_eq!(&part.name, name);
            prop_assert_eq!(&part.fields.0, &pairs);
        }
    }
}
