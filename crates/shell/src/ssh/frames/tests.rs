use super::*;
use proptest::prelude::*;

const STREAM: &[u8] = b"MARK 4\ncpu 1 2\n\nMARK 0\n\nMARK 1\nno newline\nMARK 7\n\
    MARK 5\n\nMARK 0\nMARK 9\n\nMARK 0\n\xff\nMARK 3\n";

fn ticks() -> Vec<Tick> {
    let some = |text: &str| Some(text.to_owned());
    vec![
        Tick {
            number: 4,
            contents: vec![some("cpu 1 2\n"), None, some("no newline")],
        },
        Tick {
            number: 5,
            contents: vec![some(""), some("MARK 9\n"), None],
        },
    ]
}

fn parser() -> Parser {
    Parser::new("MARK", vec![vec![0], vec![0], vec![0, 7]])
}

#[test]
fn a_half_told_tick_is_known_by_its_number() {
    let mut parser = parser();
    assert_eq!(parser.push(b"MARK 4\ncpu"), []);
    assert_eq!(parser.begun(), Some(4));
}

proptest! {
    #[test]
    fn ticks_do_not_depend_on_how_the_stream_is_cut(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let mut parser = parser();
        let mut found = Vec::new();
        for pair in cuts.windows(2) {
            found.extend(parser.push(&STREAM[pair[0]..pair[1]]));
        }
        prop_assert_eq!(found, ticks());
    }
}
