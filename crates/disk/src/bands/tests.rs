use super::{Band, Bands, BandsError, Load};
use crate::medium::Medium;
use std::fmt::Write;

/// Every band that there must be, each of its own width.
fn file() -> String {
    let mut text = String::from("schema = 1\n");
    for (first, medium) in [(10, Medium::Platters), (20, Medium::Flash)] {
        for (number, load) in (first..).zip(Load::ALL) {
            let (medium, load) = (medium.name(), load.name());
            let _ = writeln!(
                text,
                "[[band]]\nmedium = \"{medium}\"\nload = \"{load}\"\nlow = 0.5\nhigh = {number}.0\nratio = 1.1"
            );
        }
    }
    text
}

#[test]
fn shingles_are_platters_where_nothing_else_is_known() {
    let text = file();
    let bands = Bands::parse("bands.toml", &text).unwrap();
    let high = |medium, load| bands.of(medium, load).high;
    assert_eq!(high(Medium::Platters, Load::RandomWrite), 12.0);
    assert_eq!(high(Medium::Flash, Load::RandomWrite), 22.0);
    assert_eq!(high(Medium::Shingles, Load::RandomWrite), 12.0);
    // Without an arm several streams are as one.
    assert_eq!(
        high(Medium::Flash, Load::Streams),
        high(Medium::Flash, Load::Stream)
    );
    let own = "[[band]]\nmedium = \"shingles\"\nload = \"random-write\"\nlow = 0.5\nhigh = 3.0\nratio = 1.1\n";
    let bands = Bands::parse("bands.toml", &(text + own)).unwrap();
    assert_eq!(bands.of(Medium::Shingles, Load::RandomWrite).high, 3.0);
    assert_eq!(bands.of(Medium::Shingles, Load::Stream).high, 14.0);
}

#[test]
fn a_band_holds_its_own_figure_and_none_is_forgotten() {
    let wrong = file().replacen("high = 12.0", "high = 0.9", 1);
    let error = Bands::parse("bands.toml", &wrong).unwrap_err();
    assert!(
        matches!(
            error,
            BandsError::Empty {
                load: "random-write",
                ..
            }
        ),
        "{error}"
    );
    let lacking = file().replacen("load = \"streams\"", "load = \"stream\"", 1);
    let error = Bands::parse("bands.toml", &lacking).unwrap_err();
    assert!(
        matches!(
            error,
            BandsError::Missing {
                load: "streams",
                ..
            }
        ),
        "{error}"
    );
    assert!(Bands::parse("bands.toml", "band = 3").is_err());
}

#[test]
fn of_two_bands_the_one_around_both() {
    let (a, b) = (
        Band {
            low: 0.5,
            high: 1.2,
            ratio: 1.1,
        },
        Band {
            low: 0.8,
            high: 2.0,
            ratio: 1.3,
        },
    );
    assert_eq!(
        a.or(b),
        Band {
            low: 0.5,
            high: 2.0,
            ratio: 1.3
        }
    );
    assert_eq!(Band::NONE.or(a), a);
}
