//! The disks that the command line names.

use crate::failure::{Failure, Kind};
use raidlab_disk::State;
use raidlab_lab::{MOST_DISKS, Suite};

/// Sets the suite's disks to those named: none to keep its own, one for all of its members, or one
/// for each member, which may then be more or fewer than the suite's own.
///
/// # Errors
/// When there are fewer than the suite's steps refer to.
pub(crate) fn choose_disks(suite: &mut Suite, named: &[String]) -> Result<(), Failure> {
    let mut disks = counted(named)?;
    match disks.as_slice() {
        [] => return Ok(()),
        [one] => disks = vec![one.clone(); suite.disks.len()],
        many if many.len() >= suite.fewest_disks() => {}
        few => {
            let words = format!(
                "{} disks are named, but suite `{}` speaks of member {}",
                few.len(),
                suite.name,
                suite.fewest_disks() - 1
            );
            return Err(Failure::words(Kind::Usage, words).help(
                "give --disk once for all members, or once for each member; members count from 0",
            ));
        }
    }
    suite.use_disks(disks.iter().map(|(name, _)| name.clone()).collect());
    for (region, (_, state)) in suite.regions.iter_mut().zip(disks) {
        region.state = state;
    }
    Ok(())
}

/// The disks that are named, in order, and the state of each, empty where none is named:
/// `6xpm9a3:steady` is six of them. What stands behind a colon and is no state belongs to the name.
///
/// # Errors
/// When a name makes none, or all together are more than an array can have.
fn counted(named: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut disks = Vec::new();
    for name in named {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let (count, disk) = match name[digits..].strip_prefix('x') {
            Some(disk) if digits > 0 && !disk.is_empty() => {
                (name[..digits].parse().unwrap_or(usize::MAX), disk)
            }
            _ => (1, name.as_str()),
        };
        let is_state = |word: &str| State::ALL.iter().any(|(_, name)| *name == word);
        let (disk, state) = match disk.rsplit_once(':') {
            Some((disk, state)) if is_state(state) && !disk.is_empty() => (disk, state),
            _ => (disk, ""),
        };
        if let Some((known, word)) = disk.rsplit_once(':')
            && raidlab_data::text("disks", known).is_some()
        {
            let words = format!("`--disk {name}`: `{word}` is no state of a disk");
            let states = State::ALL.map(|(_, name)| name).join(", ");
            let help = format!("solid-state disks begin in one of these: {states}");
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        if count == 0 || count > MOST_DISKS - disks.len() {
            let words = format!("`--disk {name}`: an array has 1 to {MOST_DISKS} disks");
            return Err(Failure::words(Kind::Usage, words).help("6xNAME is six disks NAME"));
        }
        let disk = (disk.to_owned(), state.to_owned());
        disks.extend(std::iter::repeat_n(disk, count));
    }
    Ok(disks)
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn a_name_stands_for_as_many_disks_as_it_says() {
        let all = |named: &[&str]| -> Result<Vec<String>, String> {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            let disks = counted(&named).map_err(|error| error.to_string())?;
            assert!(disks.iter().all(|(_, state)| state.is_empty()));
            Ok(disks.into_iter().map(|(name, _)| name).collect())
        };
        let names = |list: &[&str]| Ok(list.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(
            all(&["2xpm9a3", "870evo"]),
            names(&["pm9a3", "pm9a3", "870evo"])
        );
        assert_eq!(all(&["2x./own.toml"]), names(&["./own.toml", "./own.toml"]));
        for whole in ["x", "2x", "xpm9a3", "sn850x", "0.x", ":steady", "a:b"] {
            assert_eq!(all(&[whole]), names(&[whole]));
        }
        let too_many = format!("{}x870evo", u128::MAX);
        for wrong in [
            &["0x870evo"][..],
            &["256x870evo", "pm9a3"],
            &[&too_many],
            &["pm9a3:worn"],
        ] {
            assert!(all(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_may_say_the_state_of_its_disks() {
        let named = ["2xpm9a3:steady", "./a:b.toml:fresh", "870evo"].map(str::to_owned);
        let found = counted(&named).expect("three names");
        let found: Vec<_> = found
            .iter()
            .map(|(name, state)| (&**name, &**state))
            .collect();
        assert_eq!(
            found,
            [
                ("pm9a3", "steady"),
                ("pm9a3", "steady"),
                ("./a:b.toml", "fresh"),
                ("870evo", "")
            ]
        );
    }
}
