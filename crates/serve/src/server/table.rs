//! The table of connections, and the places that they occupy.
//!
//! A connection first has a place for its handshake, then one of a client. Any host can begin a
//! handshake, so handshakes never keep others out: each has a deadline, and when there are too many
//! the one that began first is cut off for the newest. Cutting off shuts the socket down; its
//! thread sees the end of the stream, as if the client had gone, and frees all its resources. A
//! place is a value: dropping it, in whatever way, frees it.

use super::{ConnectionError, Limits, socket::Socket};
use std::{
    collections::BTreeMap,
    net::Shutdown,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The reason why a handshake was cut off.
#[derive(Clone, Copy)]
enum Cut {
    Overdue,
    Displaced,
}

impl Cut {
    fn error(self, limits: &Limits) -> ConnectionError {
        match self {
            Self::Overdue => ConnectionError::Overdue(limits.handshake_timeout),
            Self::Displaced => ConnectionError::Displaced(limits.handshakes),
        }
    }
}

/// The time that a new connection waits for others that were cut off to end.
const CUTTING: Duration = Duration::from_millis(100);

enum Phase {
    Handshake { deadline: Instant },
    Cut(Cut),
    Client,
}

struct Entry {
    socket: Arc<Socket>,
    phase: Phase,
}

#[derive(Default)]
struct State {
    next: u32,
    entries: BTreeMap<u32, Entry>,
    closing: bool,
}

impl State {
    /// Returns the handshake that began first: all have the same time limit.
    fn oldest_handshake(&self) -> Option<(u32, Instant)> {
        let deadlines = self.entries.iter().filter_map(|(&client, entry)| {
            let Phase::Handshake { deadline } = entry.phase else {
                return None;
            };
            Some((client, deadline))
        });
        deadlines.min_by_key(|&(_, deadline)| deadline)
    }

    fn count(&self, which: impl Fn(&Phase) -> bool) -> usize {
        let phases = self.entries.values().map(|entry| &entry.phase);
        phases.filter(|phase| which(phase)).count()
    }

    fn cut(&mut self, client: u32, why: Cut) {
        if let Some(entry) = self.entries.get_mut(&client) {
            entry.phase = Phase::Cut(why);
            entry.socket.shutdown(Shutdown::Both);
        }
    }

    fn shut_down(&self, how: Shutdown) {
        self.entries
            .values()
            .for_each(|entry| entry.socket.shutdown(how));
    }
}

/// All connections of a server.
pub(super) struct Table {
    limits: Limits,
    state: Mutex<State>,
    gone: Condvar,
}

impl Table {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
            gone: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of connections, those that are still in their handshake included.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns a place for the handshake of a new connection; `None` when no more are accepted.
    pub fn enter(self: &Arc<Self>, socket: &Arc<Socket>) -> Option<Place> {
        let most = self.limits.handshakes.max(1);
        // Connections that were cut off need a moment to end.
        let many = |state: &mut State| {
            let clients = state.count(|phase| matches!(phase, Phase::Client));
            state.entries.len() - clients >= 2 * most
        };
        let (mut state, waited) = self
            .gone
            .wait_timeout_while(self.lock(), CUTTING, many)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closing || waited.timed_out() {
            return None;
        }
        let handshakes = state.count(|phase| matches!(phase, Phase::Handshake { .. }));
        if handshakes >= most
            && let Some((oldest, _)) = state.oldest_handshake()
        {
            state.cut(oldest, Cut::Displaced);
        }
        // The numbers wrap around; a client may still have the same one.
        while state.entries.contains_key(&state.next) {
            state.next = state.next.wrapping_add(1);
        }
        let client = state.next;
        state.next = state.next.wrapping_add(1);
        let entry = Entry {
            socket: Arc::clone(socket),
            phase: Phase::Handshake {
                deadline: Instant::now() + self.limits.handshake_timeout,
            },
        };
        state.entries.insert(client, entry);
        Some(Place {
            table: Arc::clone(self),
            client,
        })
    }

    /// Cuts off the handshakes that are overdue; returns the time until the next one is.
    pub fn cut_overdue(&self) -> Option<Duration> {
        let mut state = self.lock();
        while let Some((client, deadline)) = state.oldest_handshake() {
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Some(left);
            }
            state.cut(client, Cut::Overdue);
        }
        None
    }

    /// Takes no more connections and no more requests, and waits for all to end: at most for
    /// `drain`, then all are cut. Returns whether none had to be cut.
    pub fn close(&self, drain: Duration) -> bool {
        let mut state = self.lock();
        state.closing = true;
        state.shut_down(Shutdown::Read);
        state = self.wait_gone(state, drain);
        let drained = state.entries.is_empty();
        state.shut_down(Shutdown::Both);
        // A reader that waits only for the network ends now.
        drop(self.wait_gone(state, Duration::from_millis(500)));
        drained
    }

    fn wait_gone<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        let some = |state: &mut State| !state.entries.is_empty();
        self.gone
            .wait_timeout_while(state, most, some)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

/// A connection's place, freed when it is dropped.
pub(super) struct Place {
    table: Arc<Table>,
    pub client: u32,
}

impl Place {
    /// Turns the place into a client's, when the handshake is done.
    ///
    /// # Errors
    /// There are too many clients, or the handshake was cut off.
    pub fn settle(&self) -> Result<(), ConnectionError> {
        let mut state = self.table.lock();
        let clients = state.count(|phase| matches!(phase, Phase::Client));
        let Some(entry) = state.entries.get_mut(&self.client) else {
            return Ok(());
        };
        match entry.phase {
            Phase::Cut(cut) => Err(cut.error(&self.table.limits)),
            _ if clients >= self.table.limits.connections => Err(ConnectionError::Full(clients)),
            _ => {
                entry.phase = Phase::Client;
                Ok(())
            }
        }
    }

    /// Returns the result of a connection; a cut handshake is reported as such rather than by the
    /// error that its thread saw.
    pub fn result(&self, result: Result<(), ConnectionError>) -> Result<(), ConnectionError> {
        match self.table.lock().entries.get(&self.client) {
            Some(Entry {
                phase: Phase::Cut(cut),
                ..
            }) => Err(cut.error(&self.table.limits)),
            _ => result,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.table.lock().entries.remove(&self.client);
        self.table.gone.notify_all();
    }
}
