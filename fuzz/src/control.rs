//! Any bytes to a control socket: no panic, and one answer for each line.

use raidlab_serve::control::{
    ControlRequest, ControlResponse, Controlled, Publisher, StatusReport, converse,
};

#[derive(Default)]
struct Nothing(Publisher);

impl Controlled for Nothing {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        // What was understood can be said again, in the same words.
        let line = serde_json::to_vec(&request).expect("requests are JSON");
        let again: ControlRequest = serde_json::from_slice(&line).expect("our own words");
        assert_eq!(again, request);
        match request {
            ControlRequest::Status {} => ControlResponse::Status {
                status: Box::<StatusReport>::default(),
            },
            ControlRequest::Fail { device } => ControlResponse::Refused { error: device },
            _ => ControlResponse::Done,
        }
    }

    fn publisher(&self) -> &Publisher {
        &self.0
    }
}

/// Reads these bytes.
pub fn run(data: &[u8]) {
    let mut output = Vec::new();
    let events = converse(&mut &*data, &mut output, &Nothing::default()).expect("memory");
    let answers = output
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    let mut count = 0;
    for answer in answers {
        serde_json::from_slice::<ControlResponse>(answer).expect("an answer");
        count += 1;
    }
    let ends = data.iter().filter(|&&byte| byte == b'\n').count();
    assert!(count <= ends + 1);
    assert!(events || count >= ends.min(1));
}
