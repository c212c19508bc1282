//! Control verbs for an array that is also a block device.

use super::UblkDevice;
use crate::control::{ControlRequest, ControlResponse, Controlled, Publisher};
use std::sync::Arc;
use std::time::Duration;

/// The operations that a guard needs of a block device.
trait Guarded: Send + Sync {
    fn is_in_use(&self) -> bool;
    fn name(&self) -> String;
    fn end(&self) -> Result<(), String>;
}

/// The control of an array below a block device. While the device is mounted or otherwise claimed,
/// the array can be neither stopped nor made read-only; and the block device is deleted before the
/// array stops, so that its dirty pages are written while the array still takes them.
pub struct UblkGuard(Guard<OneDevice>);

impl UblkGuard {
    /// Guards an array's block device. `patience` is how long a stop may take.
    #[must_use]
    pub fn new(
        controlled: Arc<dyn Controlled>,
        device: Arc<UblkDevice>,
        patience: Duration,
    ) -> Self {
        Self(Guard {
            controlled,
            device: OneDevice(device, patience),
        })
    }
}

impl Controlled for UblkGuard {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        self.0.control(request)
    }

    fn publisher(&self) -> &Publisher {
        self.0.controlled.publisher()
    }
}

struct OneDevice(Arc<UblkDevice>, Duration);

impl Guarded for OneDevice {
    fn is_in_use(&self) -> bool {
        self.0.is_in_use()
    }

    fn name(&self) -> String {
        self.0.path().display().to_string()
    }

    fn end(&self) -> Result<(), String> {
        // A program that merely has it open keeps its number, no more.
        self.0
            .stop(self.1)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

struct Guard<D> {
    controlled: Arc<dyn Controlled>,
    device: D,
}

impl<D: Guarded> Guard<D> {
    fn control(&self, request: ControlRequest) -> ControlResponse {
        let ends_service = matches!(
            request,
            ControlRequest::Stop {} | ControlRequest::ReadOnly {}
        );
        if ends_service && self.device.is_in_use() {
            let error = format!("{} is mounted or otherwise in use", self.device.name());
            return ControlResponse::Refused { error };
        }
        if matches!(request, ControlRequest::Stop {})
            && let Err(error) = self.device.end()
        {
            return ControlResponse::Refused { error };
        }
        self.controlled.control(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Log {
        lines: Mutex<Vec<String>>,
        publisher: Publisher,
    }

    impl Controlled for Log {
        fn control(&self, request: ControlRequest) -> ControlResponse {
            self.lines.lock().unwrap().push(format!("{request:?}"));
            ControlResponse::Done
        }

        fn publisher(&self) -> &Publisher {
            &self.publisher
        }
    }

    struct Device {
        log: Arc<Log>,
        in_use: bool,
        ends: bool,
    }

    impl Guarded for Device {
        fn is_in_use(&self) -> bool {
            self.in_use
        }

        fn name(&self) -> String {
            "/dev/ublkb3".to_owned()
        }

        fn end(&self) -> Result<(), String> {
            self.log.lines.lock().unwrap().push("end".to_owned());
            self.ends.then_some(()).ok_or_else(|| "slow".to_owned())
        }
    }

    fn said(in_use: bool, ends: bool, requests: &[ControlRequest]) -> (Vec<String>, Vec<String>) {
        let log = Arc::new(Log::default());
        let guard = Guard {
            controlled: Arc::clone(&log) as Arc<dyn Controlled>,
            device: Device {
                log: Arc::clone(&log),
                in_use,
                ends,
            },
        };
        let answer = |request: &ControlRequest| match guard.control(request.clone()) {
            ControlResponse::Refused { error } => error,
            other => format!("{other:?}"),
        };
        let answers = requests.iter().map(answer).collect();
        let lines = log.lines.lock().unwrap().clone();
        (answers, lines)
    }

    #[test]
    fn the_device_goes_before_the_array_stops() {
        let (answers, lines) = said(false, true, &[ControlRequest::Stop {}]);
        assert_eq!(answers, ["Done"]);
        assert_eq!(lines, ["end", "Stop"]);
    }

    #[test]
    fn a_mounted_device_keeps_its_array() {
        let requests = [
            ControlRequest::Stop {},
            ControlRequest::ReadOnly {},
            ControlRequest::Check {},
        ];
        let (answers, lines) = said(true, true, &requests);
        let refused = "/dev/ublkb3 is mounted or otherwise in use";
        assert_eq!(answers, [refused, refused, "Done"]);
        assert_eq!(lines, ["Check"]);
    }

    #[test]
    fn a_device_that_does_not_end_keeps_its_array() {
        let (answers, lines) = said(false, false, &[ControlRequest::Stop {}]);
        assert_eq!(answers, ["slow"]);
        assert_eq!(lines, ["end"]);
    }
}
