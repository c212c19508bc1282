use super::lines::{Line, read_line};
use super::place::{PlaceError, file_in};
use super::{
    ClientError, ControlClient, ControlError, ControlRequest, ControlResponse, ControlServer,
    Controlled, DeviceReport, EventReport, MAXIMUM_LINE_BYTES, Publisher, StatusReport, converse,
};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

/// Remembers what it was asked.
#[derive(Default)]
struct Recorder {
    asked: Mutex<Vec<ControlRequest>>,
    publisher: Publisher,
}

impl Controlled for Recorder {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        let response = match &request {
            ControlRequest::Status {} => ControlResponse::Status {
                status: Box::new(StatusReport {
                    name: "here:data".to_owned(),
                    ..StatusReport::default()
                }),
            },
            ControlRequest::Fail { device } => ControlResponse::Refused {
                error: format!("no such device: {device}"),
            },
            _ => ControlResponse::Done,
        };
        self.asked.lock().expect("whole").push(request);
        response
    }

    fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}

/// The answers to what a client sends, and whether it asked for events.
fn talk(input: &[u8]) -> (String, bool, Vec<ControlRequest>) {
    let recorder = Recorder::default();
    let mut output = Vec::new();
    let events = converse(&mut &input[..], &mut output, &recorder).expect("memory");
    let asked = recorder.asked.into_inner().expect("whole");
    (String::from_utf8(output).expect("JSON"), events, asked)
}

/// On a busy machine a spare that was added just now has no slot yet when it is looked at.
#[test]
fn a_spare_beside_a_missing_member_is_to_be_filled() {
    let is_filled = |health: &str, state: &str| {
        let device = DeviceReport {
            state: state.to_owned(),
            ..DeviceReport::default()
        };
        let status = StatusReport {
            health: health.to_owned(),
            devices: vec![device],
            ..StatusReport::default()
        };
        status.has_whom_to_fill()
    };
    assert!(is_filled("[_U]", "spare"));
    assert!(is_filled("[_U]", "spare rebuilding"));
    assert!(is_filled("[UU]", "spare rebuilding"), "a replacement");
    assert!(!is_filled("[UU]", "spare"), "it only waits");
    assert!(!is_filled("[_U]", "active sync"));
}

/// A killed or hasty client must not cost a descriptor for as long as the array
/// is served.
#[test]
fn clients_that_went_away_leave_no_descriptor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let server = ControlServer::start(&path, Arc::new(Recorder::default())).expect("a server");
    let open = || std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    let before = open();
    for _ in 0..200 {
        loop {
            let mut client = ControlClient::connect(&path).expect("a client");
            // The places of those before may still be on their way back.
            if client.ask(&ControlRequest::Idle {}).is_ok() {
                break;
            }
        }
    }
    // Other tests open some too; a leak would be 200.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while open() > before + 100 {
        assert!(
            std::time::Instant::now() < until,
            "{before}, then {}",
            open()
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(server);
    assert!(!path.exists());
}

#[test]
fn words_are_as_they_are_documented() {
    let cases = [
        (r#"{"verb":"status"}"#, ControlRequest::Status {}),
        (
            r#"{"verb":"fail","device":"3"}"#,
            ControlRequest::Fail {
                device: "3".to_owned(),
            },
        ),
        (
            r#"{"verb":"re-add","path":"/a"}"#,
            ControlRequest::ReAdd {
                path: "/a".to_owned(),
            },
        ),
        (r#"{"verb":"read-only"}"#, ControlRequest::ReadOnly {}),
        (
            r#"{"verb":"speed","minimum":1000,"maximum":200000}"#,
            ControlRequest::Speed {
                minimum: 1000,
                maximum: 200_000,
            },
        ),
    ];
    for (line, request) in cases {
        assert_eq!(serde_json::to_string(&request).expect("JSON"), line);
        assert_eq!(talk(line.as_bytes()).2, [request]);
    }
}

#[test]
fn a_bad_message_is_refused_and_the_conversation_goes_on() {
    let input = b"{\"verb\":\"dance\"}\nnot json\n\n{\"verb\":\"fail\",\"device\":\"1\",\"hard\":true}\n{\"verb\":\"stop\",\"dry_run\":true}\n\xff\n{\"verb\":\"check\"}\n";
    let (output, events, asked) = talk(input);
    assert_eq!(asked, [ControlRequest::Check {}]);
    assert!(!events);
    let answers: Vec<ControlResponse> = output
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(answers.len(), 7);
    let refused = |answer: &ControlResponse| matches!(answer, ControlResponse::Refused { .. });
    assert!(answers[..6].iter().all(refused), "{answers:?}");
    assert_eq!(answers[6], ControlResponse::Done);
}

#[test]
fn a_line_without_end_is_not_kept() {
    let mut input = vec![b'x'; MAXIMUM_LINE_BYTES + 5];
    let (output, _, _) = talk(&input);
    assert_eq!(
        output,
        "{\"answer\":\"refused\",\"error\":\"the line is too long\"}\n"
    );
    input[MAXIMUM_LINE_BYTES - 1] = b'\n';
    let line = read_line(&mut &input[..]).expect("memory");
    assert_eq!(line, Line::Whole(vec![b'x'; MAXIMUM_LINE_BYTES - 1]));
}

proptest! {
    /// Every line gets one answer, whatever it is.
    #[test]
    fn any_bytes_are_answered(input in prop::collection::vec(any::<u8>(), 0..400)) {
        let (output, events, _) = talk(&input);
        prop_assert!(!events);
        let lines = input.split(|&byte| byte == b'\n').count()
            - usize::from(input.last().is_none_or(|&byte| byte == b'\n'));
        prop_assert_eq!(output.lines().count(), lines);
    }
}

fn socket() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file_in(&folder.path().join("raidlab"), "here:data", ".sock").expect("a place");
    (folder, path)
}

#[test]
fn a_client_asks_and_watches() {
    let (_folder, path) = socket();
    let recorder = Arc::new(Recorder::default());
    let server = ControlServer::start(&path, Arc::clone(&recorder) as _).expect("listens");
    let mode = std::fs::metadata(&path)
        .expect("is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = ControlServer::start(&path, Arc::clone(&recorder) as _);
    assert!(matches!(second, Err(ControlError::InUse(_))));

    let mut client = ControlClient::connect(&path).expect("connects");
    assert_eq!(
        client.ask(&ControlRequest::Check {}).expect("done"),
        ControlResponse::Done
    );
    let fail = ControlRequest::Fail {
        device: "9".to_owned(),
    };
    let refused = client.ask(&fail).expect_err("refused");
    assert_eq!(refused.to_string(), "no such device: 9");
    client.watch().expect("watches");
    let event = EventReport {
        at_ns: 5,
        what: "member-failed".to_owned(),
        device: Some(2),
        start: None,
        count: None,
    };
    recorder.publisher.publish(&event);
    assert_eq!(client.next_event().expect("an event"), event);

    drop(server);
    assert!(matches!(
        client.next_event(),
        Err(ClientError::Closed | ClientError::Io(_))
    ));
    assert!(!path.exists());
    let gone = ControlClient::connect(&path).expect_err("gone");
    assert!(
        gone.to_string().starts_with("no array is served at "),
        "{gone}"
    );
}

#[test]
fn what_a_killed_server_left_is_replaced() {
    let (_folder, path) = socket();
    drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
    assert!(path.exists());
    let recorder: Arc<Recorder> = Arc::default();
    let server = ControlServer::start(&path, recorder).expect("listens");
    let mut client = ControlClient::connect(server.path()).expect("connects");
    let status = client.ask(&ControlRequest::Status {}).expect("answers");
    assert!(matches!(status, ControlResponse::Status { status } if status.name == "here:data"));
}

#[test]
fn a_subscriber_that_does_not_read_is_let_go() {
    let publisher = Publisher::default();
    let subscription = publisher.subscribe();
    let event = EventReport {
        at_ns: 0,
        what: "sync-started".to_owned(),
        device: None,
        start: Some(0),
        count: None,
    };
    for _ in 0..5000 {
        publisher.publish(&event);
    }
    let patience = std::time::Duration::ZERO;
    let mut seen = 0;
    while let Ok(Some(_)) = subscription.next(patience) {
        seen += 1;
    }
    assert_eq!(seen, 4096);
    assert!(subscription.next(patience).is_err(), "the end, not a gap");
}

#[test]
fn names_lead_nowhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "",
        "../up",
        "a/b",
        ".hidden",
        "q.nbd",
        "nul\0",
        &"x".repeat(65),
    ] {
        let place = file_in(folder.path(), name, ".sock");
        assert!(matches!(place, Err(PlaceError::Name(_))), "{name:?}");
    }
    let open = folder.path().join("open");
    std::fs::create_dir(&open).expect("makes");
    let everyone = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&open, everyone).expect("opens");
    assert!(matches!(
        file_in(&open, "data", ".sock"),
        Err(PlaceError::NotOurs(_))
    ));
}

/// Tells that it was asked, and answers a moment later.
struct Slow {
    asked: std::sync::mpsc::Sender<()>,
    publisher: Publisher,
}

impl Controlled for Slow {
    fn control(&self, _: ControlRequest) -> ControlResponse {
        self.asked.send(()).expect("the test waits");
        std::thread::sleep(std::time::Duration::from_millis(50));
        ControlResponse::Done
    }

    fn publisher(&self) -> &Publisher {
        &self.publisher
    }
}

#[test]
fn an_answer_under_way_goes_out_before_the_server_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("control");
    let (asked, was_asked) = std::sync::mpsc::channel();
    let slow = Slow {
        asked,
        publisher: Publisher::default(),
    };
    let server = ControlServer::start(&path, Arc::new(slow)).expect("listening");
    let mut client = ControlClient::connect(&path).expect("connected");
    let idle = ControlClient::connect(&path).expect("connected");
    let answer = std::thread::spawn(move || client.ask(&ControlRequest::Stop {}));
    was_asked.recv().expect("asked");
    drop(server);
    let answer = answer.join().expect("no panic").expect("an answer");
    assert_eq!(answer, ControlResponse::Done);
    drop(idle);
}

#[test]
fn a_client_that_is_one_too_many_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("control");
    let server = ControlServer::start(&path, Arc::new(Recorder::default())).expect("listening");
    let others: Vec<_> = (0..32)
        .map(|_| {
            let mut client = ControlClient::connect(&path).expect("connected");
            client.ask(&ControlRequest::Check {}).expect("an answer");
            client
        })
        .collect();
    let mut client = ControlClient::connect(&path).expect("connected");
    let refused = client
        .ask(&ControlRequest::Stop {})
        .expect_err("one too many");
    assert!(matches!(refused, ClientError::Closed), "{refused:?}");
    assert!(refused.to_string().contains("32 others"), "{refused}");
    drop((others, server));
}
