//! How many members an array may lose.

use super::{HEAD, JOB, parse};

/// What no array of the level survives passed the dry run and failed after all the work. Which
/// halves of a RAID 10 may go together is the array's to say, and a member that has come back
/// may be whole again.
#[test]
fn more_members_than_the_level_survives_are_not_taken_out() {
    let four = HEAD.replace(
        "\"wd4000fyyz\", \"wd4000fyyz\"",
        "\"a\", \"b\", \"c\", \"d\"",
    );
    for (subject, survives) in [
        ("md-raid1-clean", 3),
        ("md-raid4-clean", 1),
        ("md-raid5-clean", 1),
        ("md-raid6-clean", 2),
        ("md-raid10-clean", 2),
    ] {
        let head = four.replace("\"md\"", &format!("\"{subject}\""));
        let event = |kind: &str, member: usize| {
            format!("\n[[step]]\nevent = \"{kind}\"\nmember = {member}\n")
        };
        let gone: String = (0..survives)
            .map(|member| event("remove", member))
            .collect();
        let one_back = event("insert", 0) + &event("fail", survives);
        parse(&format!("{head}{JOB}{gone}{one_back}")).expect(subject);
        let one_more = format!("{head}{JOB}{gone}{}", event("fail", survives));
        let error = parse(&one_more).expect_err(subject).to_string();
        let place = format!("step[{}].member: this leaves ", survives + 2);
        assert!(error.contains(&place), "{error}");
        let listed = (0..=survives).map(|member| member.to_string());
        let listed = listed.collect::<Vec<_>>().join(", ");
        let entry = format!("{{ subject = \"{subject}\", removed = [{listed}] }}");
        let head = four.replace("\"md\"", &entry);
        let error = parse(&format!("{head}{JOB}"))
            .expect_err(subject)
            .to_string();
        assert!(error.contains("removed["), "{error}");
    }
}
