//! The balance of a job's reads over the members.

use raidlab_store::Measurement;

/// Each member's share of the read commands of a job, percent, in slot order,
/// resync included; `None` where the members read nothing.
pub(crate) fn read_shares_percent(m: &Measurement) -> Option<Vec<f64>> {
    let total: u64 = m.members.iter().map(|member| member.read_ios).sum();
    (total > 0).then(|| {
        m.members
            .iter()
            .map(|member| 100.0 * member.read_ios as f64 / total as f64)
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::read_shares_percent;
    use crate::sample;
    use proptest::prelude::*;
    use raidlab_store::MemberUse;

    proptest! {
        #[test]
        fn shares_sum_to_the_whole(counts in prop::collection::vec(0_u64..1 << 40, 0..8)) {
            let mut m = sample::cell("md", 0);
            m.members = counts
                .iter()
                .map(|&read_ios| MemberUse { read_ios, ..MemberUse::default() })
                .collect();
            match read_shares_percent(&m) {
                None => prop_assert!(counts.iter().all(|count| *count == 0)),
                Some(shares) => {
                    prop_assert_eq!(shares.len(), counts.len());
                    prop_assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn two_streams_on_one_disk_show() {
        // Job 18 of 2015 on md: sdc 65528 reads, sdd 8.
        let mut m = sample::cell("md", 17);
        m.members[0].read_ios = 65_528;
        m.members[1].read_ios = 8;
        let shares = read_shares_percent(&m).unwrap();
        assert!((shares[0] - 99.988).abs() < 1e-3);
    }
}
