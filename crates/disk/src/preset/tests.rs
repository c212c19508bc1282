//! Good presets, and what people are told of bad ones.

use super::{Basis, Preset};
use raidlab_units::{Bytes, Nanos, Sectors, table};

const SHIPPED: &str = include_str!("../../../../data/disks/wd4000fyyz.toml");

/// The shipped preset with one piece of its text replaced.
fn edited(from: &str, to: &str) -> String {
    assert!(SHIPPED.contains(from), "`{from}` is not in the preset");
    SHIPPED.replacen(from, to, 1)
}

/// The error and its causes, one to a line.
fn complaint(text: &str) -> String {
    let error = Preset::parse("disk.toml", text).expect_err("a mistake");
    raidlab_units::reasons(&error).join("\n  ")
}

/// What is wrong, and the change that makes it so; `\n` is the end of a line.
const MISTAKES: &str = r#"
not TOML                          schema = 1                              schema = = 1
another version                   schema = 1                              schema = 2
a field of its own                schema = 1                              schema = 1\ncolour = 3
no title                          title =                                 # title =
a value of the wrong kind         value = 16,                             value = "16",
a number alone                    read_segments = {                       read_segments = 16 # {
a number without a source         { value = 32, basis = "fitted", source  { value = 32, basis = "fitted", sauce
an unknown parameter              \nread_segments                         \nsegments
an unknown parameter in a set     \nseek_knee                             \nknee
a missing parameter               \nread_segments                         \n# read_segments
a parameter that one set lacks    \nseek_knee                             \n# seek_knee
a negative value                  value = 0.7662                          value = -0.7662
a fraction that would be cut off  value = 16,                             value = 16.5,
no number                         value = 0.7662                          value = nan
too large                         value = 7814037168                      value = 1e300
no such capacity                  value = 7814037168                      value = 2047
a slow platter                    value = 8333.333                        value = 833333.3
a curve that falls back           [0.017,                                 [0.5,
a margin of two revolutions       value = 0.5224                          value = 16.7
a knee outside                    value = 0.1346                          value = 1.01
an arm that waits for ever        value = 35,                             value = 1e9,
an unknown default                default_set = "strict"                  default_set = "loose"
no default                        default_set =                           # default_set =
"#;

#[test]
fn every_mistake_is_named_with_its_place() {
    let told = table(MISTAKES, |[what, from, to]| {
        let [from, to] = [from, to].map(|text| text.replace("\\n", "\n"));
        Some(format!("{what}:\n  {}", complaint(&edited(&from, &to))))
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_ends_of_a_range_are_within_it() {
    for rate in ["1e6", "1e12"] {
        let parsed = Preset::parse(
            "disk.toml",
            &edited("value = 600e6", &format!("value = {rate}")),
        );
        parsed.expect("from 1 MB/s to 1 TB/s");
    }
}

#[test]
fn an_unknown_set_lists_the_known_ones() {
    let preset = Preset::parse("disk.toml", SHIPPED).expect("the shipped preset is valid");
    let error = preset.parameters("loose").expect_err("no such set");
    insta::assert_snapshot!(
        error,
        @"wd4000fyyz has no parameter set `loose`; it has: strict, joint"
    );
    assert_eq!(preset.set_description("loose"), Err(error.clone()));
    assert_eq!(preset.provenance("loose"), Err(error));
}

#[test]
fn the_default_set_comes_first() {
    let shipped = Preset::parse("disk.toml", SHIPPED).expect("the shipped preset is valid");
    assert_eq!(shipped.set_names(), ["strict", "joint"]);
    let joint = edited("default_set = \"strict\"", "default_set = \"joint\"");
    let joint = Preset::parse("disk.toml", &joint).expect("valid");
    assert_eq!(joint.set_names(), ["joint", "strict"]);
    assert_eq!(joint.parameters("strict"), shipped.parameters("strict"));
}

#[test]
fn numbers_arrive_in_their_units() {
    let preset = Preset::parse("disk.toml", SHIPPED).expect("the shipped preset is valid");
    let disk = preset.parameters("strict").expect("a set");
    assert_eq!(disk.capacity, Sectors(7_814_037_168));
    let platters = disk.medium.platters().unwrap();
    assert_eq!(platters.revolution, Nanos(8_333_333));
    assert_eq!(platters.overhead_idle, Nanos(304_200));
    assert_eq!(platters.scheduling.margin_ns, 522_400);
    assert_eq!(platters.seek.settle_ns.round(), 766_200.0);
    assert_eq!(platters.stream.follow_on_wait, Nanos::from_micros(35));
    assert_eq!(platters.stream.visit_budget, Some(Bytes(3 << 20)));
    assert_eq!(disk.rate_curve[0].bytes_per_second, 173_900.0 * 1024.0);
}

#[test]
fn a_set_replaces_what_all_share_and_keeps_the_source() {
    let text = edited(
        "[set.joint.parameters]",
        "[set.joint.parameters]\nread_segments = { value = 8, source = \"a try\" }",
    );
    let preset = Preset::parse("disk.toml", &text).expect("valid");
    let segments = |set: &str| {
        let disk = preset.parameters(set).expect("a set");
        disk.medium.platters().expect("it has platters").segments
    };
    assert_eq!((segments("strict"), segments("joint")), (16, 8));
    let source = |set: &str| {
        let numbers = preset.provenance(set).expect("a set");
        let number = numbers.iter().find(|number| number.name == "read_segments");
        number.expect("every number has a source").source.clone()
    };
    assert_eq!(source("joint"), "a try");
    assert!(source("strict").starts_with("assumed"));
}

#[test]
fn a_set_is_fitted_where_some_numbers_are_and_none_is_of_another_disk() {
    let preset = Preset::parse("disk.toml", SHIPPED).expect("valid");
    assert_eq!(preset.is_fitted("strict"), Ok(true));
    let basis = |preset: &Preset, name: &str| {
        let numbers = preset.provenance("strict").expect("there is such a set");
        numbers
            .iter()
            .find(|number| number.name == name)
            .expect(name)
            .basis
    };
    assert_eq!(basis(&preset, "seek_settle_ms"), Basis::Fitted);
    assert_eq!(basis(&preset, "revolution_us"), Basis::Rated);
    assert_eq!(
        basis(&preset, "rate_curve_kibibytes_per_second"),
        Basis::Measured
    );
    let text = SHIPPED.replacen("basis = \"assumed\"", "basis = \"borrowed\"", 1);
    let preset = Preset::parse("disk.toml", &text).expect("valid");
    assert_eq!(preset.is_fitted("strict"), Ok(false), "one is borrowed");
    // What a file does not say it only assumes.
    let text = SHIPPED.replace("basis = \"fitted\", ", "");
    let preset = Preset::parse("disk.toml", &text).expect("valid");
    assert_eq!(preset.is_fitted("strict"), Ok(false));
    assert_eq!(basis(&preset, "seek_settle_ms"), Basis::Assumed);
}

/// Of every number of every medium: one and a half is refused where it would be one, in times and
/// rates never, and no shipped disk is.
#[test]
fn a_fraction_is_refused_where_it_would_be_cut_off() {
    use super::{Medium, OPTIONAL, counts};
    let of = |&medium: &Medium| {
        let names = medium.names().chain(OPTIONAL);
        names.filter(move |name| !counts(medium, name, 1.5))
    };
    let fractions: Vec<_> = Medium::ALL.iter().flat_map(of).collect();
    for name in [
        "flash_dies",
        "flash_bits_per_cell",
        "flash_victims",
        "read_segments",
    ] {
        assert!(!fractions.contains(&name), "{name}");
    }
    let is_time_or_rate = |name: &str| super::FRACTIONS.iter().any(|unit| name.ends_with(unit));
    let mut others: Vec<_> = fractions
        .iter()
        .filter(|name| !is_time_or_rate(name))
        .collect();
    others.sort_unstable();
    others.dedup();
    assert_eq!(
        others,
        [
            &"flash_over_provisioning",
            &"schedule_age_weight",
            &"seek_knee"
        ]
    );
}

/// What is yes or no is 0 or 1, and 2 is none of both.
#[test]
fn what_is_yes_or_no_is_no_other_number() {
    use super::{Medium, OPTIONAL, only};
    let flags = Medium::ALL.iter().flat_map(|&medium| {
        let names = medium.names().chain(OPTIONAL);
        names.filter(move |name| only(medium, name, 2.0) == only(medium, name, 1.0))
    });
    let flags: Vec<_> = flags.collect();
    assert_eq!(flags, ["flash_reads_pass", "flash_power_loss_protection"]);
    let flash = include_str!("../../../../data/disks/ssd950pro.toml");
    let text = flash.replace(
        "flash_reads_pass = { value = 1",
        "flash_reads_pass = { value = 2",
    );
    let error = Preset::parse("disk.toml", &text).expect_err("neither yes nor no");
    let why = "`flash_reads_pass` is 2.0, but must be 0 or 1";
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn a_number_of_another_medium_is_refused() {
    let flash = include_str!("../../../../data/disks/ssd950pro.toml");
    let number = "revolution_us = { value = 8333.333, source = \"a try\" }";
    let text = flash.replacen("flash_dies", &format!("{number}\nflash_dies"), 1);
    let error = Preset::parse("disk.toml", &text).expect_err("flash does not turn");
    assert!(
        error
            .to_string()
            .contains("`revolution_us` is not a parameter"),
        "{error}"
    );
}

/// The second point of a curve would change nothing.
#[test]
fn a_disk_that_does_not_turn_has_no_curve() {
    let flash = include_str!("../../../../data/disks/ssd950pro.toml");
    let text = flash.replace(
        "points = [",
        "points = [[0.0, 1000000.0], [1.0, 1000.0]] # [",
    );
    let error = Preset::parse("disk.toml", &text).expect_err("two rates");
    let reasons = raidlab_units::reasons(&error).join(", ");
    assert!(
        reasons.contains("rate_curve: must be one point"),
        "{reasons}"
    );
}

/// The error names the number at its own line, not the first of its kind.
#[test]
fn a_time_of_flash_that_is_too_long_is_named() {
    let flash = include_str!("../../../../data/disks/ssd950pro.toml");
    let long = "flash_erase_us = { value = 1e9, source = \"a try\" } #";
    let text = flash.replace("flash_erase_us = ", long);
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with(long))
        .expect("it is there");
    let error = Preset::parse("disk.toml", &text).expect_err("no drive");
    let reasons = raidlab_units::reasons(&error).join(", ");
    assert!(
        reasons.starts_with(&format!("disk.toml:{line}: ")),
        "{reasons}"
    );
    assert!(
        reasons.contains("flash_erase_us: must be below 1 s"),
        "{reasons}"
    );
}

#[test]
fn a_controller_does_more_than_one_command_a_second() {
    let flash = include_str!("../../../../data/disks/ssd950pro.toml");
    let (before, rest) = flash
        .split_once("flash_commands_per_second = { value = ")
        .expect("it is there");
    let (_, rest) = rest.split_once(',').expect("it has a basis");
    let of = |value: &str| {
        let text = format!("{before}flash_commands_per_second = {{ value = {value},{rest}");
        Preset::parse("disk.toml", &text).map(drop)
    };
    assert!(of("2").is_ok());
    for value in ["0", "0.5", "1"] {
        let error = format!("{:?}", of(value).expect_err("that is no drive"));
        assert!(error.contains("flash_commands_per_second"), "{error}");
    }
}
