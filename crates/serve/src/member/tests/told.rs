use super::super::{
    Backend, Ended, Job, Member, MemberFile, Members, MembersConfig, OpenOptions, Storage, Transfer,
};
use super::{memory, read, write, zero};
use raidlab_array::{CommandId, MemberError};
use raidlab_units::Nanos;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the next jobs meet: `None` hangs.
type Script = Arc<Mutex<VecDeque<Option<Ended>>>>;

#[derive(Debug, Default)]
struct Told {
    script: Script,
    /// Where each attempt began.
    attempts: Arc<Mutex<Vec<usize>>>,
    hung: Arc<Mutex<Vec<Job>>>,
    ended: Vec<(Job, Ended)>,
}

impl Backend for Told {
    fn name(&self) -> &'static str {
        "told"
    }
    fn attach(&mut self, _: usize, _: &Arc<dyn Storage>) -> io::Result<()> {
        Ok(())
    }
    fn detach(&mut self, _: usize) {}
    fn submit(&mut self, job: Job) {
        self.attempts.lock().expect("whole").push(job.moved);
        match self.script.lock().expect("whole").pop_front() {
            Some(Some(result)) => self.ended.push((job, result)),
            _ => self.hung.lock().expect("whole").push(job),
        }
    }
    fn wait(&mut self, _: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        let hung = &mut *self.hung.lock().expect("whole");
        if self.script.lock().expect("whole").front() == Some(&Some(Ok(0))) {
            ended.extend(hung.drain(..).map(|job| (job, Ok(512))));
        }
        ended.append(&mut self.ended);
        Ok(())
    }
}

struct Scene {
    members: Members,
    script: Script,
    attempts: Arc<Mutex<Vec<usize>>>,
    member: Arc<dyn Storage>,
    /// The member's, which is to have its name.
    _file: tempfile::NamedTempFile,
}

fn scene(script: impl IntoIterator<Item = Option<Ended>>) -> Scene {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    let member: Arc<dyn Storage> = Arc::new(member);
    let told = Told::default();
    *told.script.lock().expect("whole") = script.into_iter().collect();
    let (script, attempts) = (Arc::clone(&told.script), Arc::clone(&told.attempts));
    let mut members = Members::new(Box::new(told), MembersConfig::default(), None);
    for place in 0..2 {
        let member = Member::Storage(Arc::clone(&member));
        members.attach(place, &member).expect("attaches");
    }
    Scene {
        members,
        script,
        attempts,
        member,
        _file: file,
    }
}

/// The result of one command under a script.
fn outcome(script: impl IntoIterator<Item = Ended>, transfer: Transfer) -> Result<(), MemberError> {
    let mut scene = scene(script.into_iter().map(Some));
    scene.members.submit(zero(), CommandId(1), 0, 0, transfer);
    let mut answers = Vec::new();
    let mut now = zero();
    while answers.is_empty() {
        let waited = scene.members.wait(None, &|| now, &mut answers);
        waited.expect("works");
        now = scene.members.next_attempt().unwrap_or(now);
    }
    assert_eq!(answers.len(), 1);
    assert_eq!(scene.members.in_flight(), 0);
    answers[0].result
}

#[test]
fn short_commands_go_on_where_they_ended() {
    let mut scene = scene([Ok(512), Err(Errno::INTR), Ok(1024), Ok(512)].map(Some));
    let mut answers = Vec::new();
    scene
        .members
        .submit(zero(), CommandId(1), 0, 4096, write(&[1; 2048]));
    while answers.is_empty() {
        scene
            .members
            .wait(None, &zero, &mut answers)
            .expect("works");
    }
    assert_eq!(answers[0].result, Ok(()));
    assert_eq!(*scene.attempts.lock().expect("whole"), [0, 512, 512, 1536]);
}

#[test]
fn errors_are_told_in_the_core_s_words() {
    let cases = [
        (Errno::IO, MemberError::Medium),
        (Errno::NODATA, MemberError::Medium),
        (Errno::ILSEQ, MemberError::Medium),
        (Errno::NODEV, MemberError::Gone),
        (Errno::NXIO, MemberError::Gone),
        (Errno::BADF, MemberError::Gone),
        (Errno::NOSPC, MemberError::Gone),
        (Errno::TIMEDOUT, MemberError::Gone),
    ];
    for (error, told) in cases {
        assert_eq!(outcome([Err(error)], read(512)), Err(told), "{error:?}");
        assert_eq!(
            outcome([Err(error)], write(&[0; 512])),
            Err(told),
            "{error:?}"
        );
    }
    assert_eq!(
        outcome([Err(Errno::IO)], Transfer::Flush),
        Err(MemberError::Gone)
    );
}

/// Memory, say: all members would be lost at once. What a flush that has failed was to make
/// durable may be forgotten, whatever a second one says.
#[test]
fn what_the_host_lacks_for_a_moment_is_no_member_s_fault() {
    for lacks in [Errno::NOMEM, Errno::BUSY] {
        let script = [Err(lacks), Ok(512)];
        assert_eq!(outcome(script, read(512)), Ok(()));
        assert_eq!(outcome(script, write(&[0; 512])), Ok(()));
        let flushed = outcome([Err(lacks), Ok(0)], Transfer::Flush);
        assert_eq!(flushed, Err(MemberError::Gone));
        let script = [Err(lacks), Ok(0)];
        let discarded = outcome(script, Transfer::Discard { bytes: 4096 });
        assert_eq!(discarded, Ok(()));
    }
}

/// A hundred attempts without a pause are over in a moment. With pauses a command can wait for
/// as long as a member may take to answer.
#[test]
fn what_the_host_lacks_for_longer_is_waited_for() {
    let lacks = std::iter::repeat_n(Err(Errno::NOMEM), 200);
    let script = lacks.chain([Ok(256), Err(Errno::NOMEM), Ok(256)]);
    assert_eq!(outcome(script, write(&[0; 512])), Ok(()));
    let never = std::iter::repeat_n(Err(Errno::NOMEM), 400);
    assert_eq!(outcome(never, read(512)), Err(MemberError::Gone));
}

/// A member is given up for one command while another one waits for the host: that one is not
/// sent any more.
#[test]
fn what_waits_for_the_host_goes_with_its_member() {
    let mut scene = scene([None, Some(Err(Errno::NOMEM))]);
    scene.members.submit(zero(), CommandId(1), 0, 0, read(512));
    let late = Nanos::from_secs(30).saturating_sub(Nanos(1000));
    scene.members.submit(late, CommandId(2), 0, 0, read(512));
    let mut answers = Vec::new();
    for now in [late, Nanos::from_secs(30), Nanos::from_secs(31)] {
        let waited = scene.members.wait(None, &|| now, &mut answers);
        waited.expect("works");
    }
    let told = answers.iter().map(|answer| (answer.id, answer.result));
    let gone = Err(MemberError::Gone);
    assert!(told.eq([(CommandId(1), gone), (CommandId(2), gone)]));
    assert_eq!(scene.attempts.lock().expect("whole").len(), 2);
    assert_eq!(scene.members.abandoned(), 1, "the one that hangs");
}

#[test]
fn a_discard_that_cannot_be_is_none() {
    let discard = || Transfer::Discard { bytes: 4096 };
    assert_eq!(outcome([Err(Errno::OPNOTSUPP)], discard()), Ok(()));
    assert_eq!(outcome([Err(Errno::INVAL)], discard()), Ok(()));
    // The others have forgotten the range, and this one has not.
    assert_eq!(
        outcome([Err(Errno::IO)], discard()),
        Err(MemberError::Medium)
    );
    assert_eq!(
        outcome([Err(Errno::NODEV)], discard()),
        Err(MemberError::Gone)
    );
}

/// A file system that was full has room again: the array keeps a member that it cannot do without.
#[test]
fn who_answers_again_is_not_lost() {
    let mut scene = scene([Err(Errno::NOSPC), Err(Errno::IO), Ok(512)].map(Some));
    for (id, is_lost) in [(1, true), (2, true), (3, false)] {
        let transfer = write(&[0; 512]);
        scene.members.submit(zero(), CommandId(id), 0, 0, transfer);
        let waited = scene.members.wait(None, &zero, &mut Vec::new());
        waited.expect("works");
        assert_eq!(scene.members.is_lost(0), is_lost, "{id}");
    }
    assert!(scene.members.why_lost(0).is_some(), "it once was");
}

#[test]
fn a_member_that_only_asks_to_repeat_is_gone() {
    let script = std::iter::repeat_n(Err(Errno::AGAIN), 1000);
    assert_eq!(outcome(script, read(512)), Err(MemberError::Gone));
}

#[test]
fn a_hung_member_is_given_up_whole_and_keeps_its_bytes() {
    let mut scene = scene([None, None, Some(Ok(512))]);
    let target = memory(&[0; 1024]);
    let transfer = Transfer::Read(target.write(0..512).expect("free"));
    scene.members.submit(Nanos(5), CommandId(1), 0, 0, transfer);
    let transfer = Transfer::Read(target.write(512..1024).expect("free"));
    scene
        .members
        .submit(Nanos(90), CommandId(2), 0, 0, transfer);
    scene
        .members
        .submit(Nanos(99), CommandId(3), 1, 0, read(512));
    let limit = Nanos::from_secs(30);
    assert_eq!(scene.members.next_deadline(), Some(Nanos(5 + limit.0)));

    let mut answers = Vec::new();
    let just_before = || Nanos(4 + limit.0);
    scene
        .members
        .wait(None, &just_before, &mut answers)
        .expect("works");
    assert_eq!(
        answers
            .drain(..)
            .map(|answer| answer.id)
            .collect::<Vec<_>>(),
        [CommandId(3)]
    );

    let then = || Nanos(5 + limit.0);
    scene
        .members
        .wait(None, &then, &mut answers)
        .expect("works");
    let told: Vec<_> = answers
        .drain(..)
        .map(|answer| (answer.id, answer.result, answer.transfer.is_some()))
        .collect();
    let gone = Err(MemberError::Gone);
    assert_eq!(
        told,
        [(CommandId(1), gone, false), (CommandId(2), gone, false)]
    );
    assert_eq!(scene.members.abandoned(), 2);
    assert_eq!(scene.members.next_deadline(), None);
    assert!(
        target.write(0..512).is_err(),
        "the kernel may still write there"
    );

    // Nothing more goes to it.
    scene.members.submit(then(), CommandId(4), 0, 0, read(512));
    scene
        .members
        .wait(None, &then, &mut answers)
        .expect("works");
    assert_eq!((answers[0].id, answers[0].result), (CommandId(4), gone));
    answers.clear();
    scene.members.detach(0);
    assert!(Arc::strong_count(&scene.member) > 2, "still claimed");

    // The late answers come, to nobody.
    scene.script.lock().expect("whole").push_back(Some(Ok(0)));
    scene
        .members
        .wait(None, &then, &mut answers)
        .expect("works");
    assert!(answers.is_empty());
    assert_eq!(scene.members.abandoned(), 0);
    assert!(target.write(0..1024).is_ok());
    assert_eq!(Arc::strong_count(&scene.member), 2);
}

/// The thread that looks for answers, or the whole process, stood still.
#[test]
fn who_was_not_looked_for_is_not_given_up() {
    let mut scene = scene([None]);
    scene.members.submit(zero(), CommandId(1), 0, 0, read(512));
    let limit = Nanos::from_secs(30);
    let mut answers = Vec::new();
    // Ten seconds of patience are used up, and the next wait of one second takes an hour.
    let hour = Nanos::from_secs(3600);
    let begun = Nanos::from_secs(10);
    let times = Mutex::new(VecDeque::from([begun, begun + hour]));
    let clock = || times.lock().expect("whole").pop_front().expect("two");
    let second = Some(Duration::from_secs(1));
    let waited = scene.members.wait(second, &clock, &mut answers);
    waited.expect("works");
    assert!(answers.is_empty(), "no time of its own");
    let left = scene.members.next_deadline();
    assert_eq!(left, Some(hour + limit.saturating_sub(Nanos::SECOND)));
    scene.members.excuse(hour);
    assert_eq!(scene.members.next_deadline(), left.map(|left| left + hour));
    let then = || hour + hour + limit;
    let waited = scene.members.wait(None, &then, &mut answers);
    waited.expect("works");
    assert_eq!(answers[0].result, Err(MemberError::Gone));
}

/// Whoever looks is late each time, and yet has looked often enough.
#[test]
fn a_member_that_hangs_is_given_up_by_one_that_is_always_late() {
    let mut scene = scene([None]);
    scene.members.submit(zero(), CommandId(1), 0, 0, read(512));
    let late = Nanos::from_secs(5);
    let mut answers = Vec::new();
    let mut now = zero();
    for _ in 0..30 {
        now += late;
        scene.members.excuse(late);
        let then = || now;
        let waited = scene
            .members
            .wait(Some(Duration::ZERO), &then, &mut answers);
        waited.expect("works");
    }
    assert_eq!(answers.len(), 1);
}

/// A command takes as long as it takes, whoever was not there to look.
#[test]
fn excused_time_is_time_of_service() {
    let mut scene = scene([Some(Ok(512))]);
    scene.members.submit(zero(), CommandId(1), 0, 0, read(512));
    scene.members.excuse(Nanos::from_secs(100));
    let mut answers = Vec::new();
    let then = || Nanos::from_secs(101);
    let waited = scene.members.wait(None, &then, &mut answers);
    waited.expect("works");
    assert_eq!(answers[0].result, Ok(()));
    let served = scene.members.counters(0).service_ns;
    assert_eq!(served, Nanos::from_secs(101).0);
}
