use super::*;

fn frame(texts: &[&str]) -> Frame {
    Frame {
        at: std::time::Duration::ZERO,
        contents: texts.iter().map(|text| Some((*text).to_owned())).collect(),
    }
}

fn value<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    let mut found = facts.all.iter().filter(|fact| fact.name == name);
    found.next().map(|fact| fact.value.as_str())
}

#[test]
fn the_arc_and_the_clock_are_compared() {
    let arc = |hits: u64, misses: u64, prefetched: u64, waited: u64| {
        format!(
            "13 1 0x01 123 33456 1 2\nname type data\nhits 4 {}\n\
             demand_data_hits                4    {hits}\ndemand_data_iohits 4 {waited}\n\
             demand_data_misses              4    {misses}\n\
             demand_hit_predictive_prefetch  4    {prefetched}\narc_meta_used 4 1\n",
            9 * hits
        )
    };
    let mut facts = Facts::new(Scope::default());
    let before = frame(&["cpu  1 2 3\nbtime 1700000000\n", &arc(100, 7, 10, 1)]);
    let after = frame(&["cpu  1 2 3\nbtime 1700000002\n", &arc(150, 9, 40, 4)]);
    between(&mut facts, &before, &after);
    // 50 found, 30 of them because prefetch had fetched them.
    assert_eq!(value(&facts, fact::ARC_HITS), Some("20"));
    // 2 not found, 3 on their way, 30 prefetched.
    assert_eq!(value(&facts, fact::ARC_MISSES), Some("35"));
    assert_eq!(value(&facts, fact::CLOCK_STEP_NS), Some("2000000000"));
    let mut none = Facts::new(Scope::default());
    between(&mut none, &frame(&["cpu 1\n"]), &frame(&["cpu 2\n"]));
    assert!(none.all.is_empty());
}
