use super::*;

#[test]
fn names_lead_back_to_tiers() {
    for tier in Tier::ALL {
        assert_eq!(tier.name().parse(), Ok(tier));
    }
    let error = "sse9".parse::<Tier>().expect_err("no such tier");
    assert_eq!(
        error.to_string(),
        "no SIMD tier \"sse9\" (there are portable, neon, ssse3, avx2, avx2-gfni, \
         avx512bw, avx512bw-gfni)"
    );
}

#[test]
fn a_forced_tier_is_known_and_supported_or_an_error() {
    assert_eq!(parse_forced(""), Ok(None));
    assert_eq!(
        parse_forced("AVX2"),
        Err(TierError::Unknown("AVX2".to_owned()))
    );
    for tier in Tier::ALL {
        let expected = match tier.kernels() {
            Some(_) => Ok(Some(tier)),
            None => Err(TierError::Unsupported(tier)),
        };
        assert_eq!(parse_forced(tier.name()), expected);
    }
}

#[test]
fn the_tier_in_use_is_available() {
    let available = tiers_available();
    assert!(available.contains(&tier()));
    assert_eq!(available.first(), Some(&Tier::Portable));
    assert!(available.is_sorted());
    assert_eq!(
        available.contains(&Tier::Neon),
        cfg!(target_arch = "aarch64")
    );
}

/// Set in the processes that the next test starts.
const CHILD: &str = "RAIDLAB_PARITY_TEST_EXPECTS";

#[test]
fn the_variable_forces_each_tier() {
    if let Ok(expected) = std::env::var(CHILD) {
        assert_eq!(tier().name(), expected);
        return;
    }
    // Whether the choice by itself is the same in another process.
    let by_itself = tier();
    let names = tiers_available()
        .into_iter()
        .map(|tier| (tier.name(), tier));
    for (value, expected) in names.chain([("", by_itself), ("sse9", by_itself)]) {
        if forced().ok().flatten().is_some() && expected == by_itself {
            continue;
        }
        let program = std::env::current_exe().expect("this test");
        let status = std::process::Command::new(program)
            .args(["--exact", "tier::tests::the_variable_forces_each_tier"])
            .env(SIMD_VARIABLE, value)
            .env(CHILD, expected.name())
            .stdout(std::process::Stdio::null())
            .status()
            .expect("this test as a child");
        assert!(status.success(), "{value:?}");
    }
}
