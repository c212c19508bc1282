//! Waiting until a cache has written back all dirty data.

use crate::error::HostError;
use crate::session::Session;
use crate::watch::Watch;
use raidlab_shell::Target;
use std::time::Duration;

/// The time between two looks at the dirty data: device-mapper is queried by a program, which takes
/// a moment itself.
const LOOK: Duration = Duration::from_secs(1);

/// Makes the cache write back its dirty data, and waits until none is left.
///
/// # Errors
/// When the cache cannot be queried, data is still dirty after `limit`, or the watcher
/// stops the step.
pub fn wait(
    session: &mut Session<'_>,
    limit: Duration,
    watch: &mut Watch<'_>,
) -> Result<(), HostError> {
    let system = session.system();
    // An array without a cache has no dirty data.
    let Some(write_back) = system.write_back(&session.built) else {
        return Ok(());
    };
    for command in &write_back.begin {
        session.target.run(command)?;
    }
    let waited = until_clean(session, limit, watch);
    // The cache returns to its configured mode, whatever the outcome.
    for command in &write_back.end {
        session.target.run(command)?;
    }
    waited
}

fn until_clean(
    session: &mut Session<'_>,
    limit: Duration,
    watch: &mut Watch<'_>,
) -> Result<(), HostError> {
    let begun = session.now();
    loop {
        let now = watch.poll(session)?;
        let state = session.system().cache(&session.target, &session.built)?;
        let dirty = state.map_or(0, |state| state.dirty.0);
        if dirty == 0 {
            return Ok(());
        }
        if now - begun >= limit {
            return Err(HostError::Late {
                what: format!("the cache still has {dirty} bytes to write back"),
                seconds: limit.as_secs(),
            });
        }
        std::thread::sleep(LOOK.min(limit.saturating_sub(now - begun)));
    }
}
