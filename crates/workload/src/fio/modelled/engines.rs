//! fio's engines, and the engines by which the model runs them.

use super::{Draft, Noted, choice, needed, not_modelled};
use crate::job::Engine;

/// fio's engines by how the model runs them.
const ENGINES: &[(Modelling, &str)] = &[
    (Modelling::As(Engine::Libaio, None), "libaio"),
    (
        Modelling::As(
            Engine::Libaio,
            Some("modelled as libaio: a queue of requests per clone"),
        ),
        "io_uring posixaio solarisaio windowsaio guasi syslet-rw",
    ),
    (Modelling::As(Engine::Sync, None), "sync psync"),
    (
        Modelling::As(
            Engine::Sync,
            Some("modelled as psync: one request at a time per clone"),
        ),
        "vsync pvsync pvsync2",
    ),
    (
        Modelling::As(
            Engine::Libaio,
            Some("the modelled device takes the place of what it reaches, with the same queue"),
        ),
        REACHES,
    ),
    (
        Modelling::As(
            Engine::Sync,
            Some("the modelled device takes the place of what it reaches, one request at a time"),
        ),
        "mmap splice sg libpmem dev-dax pmemblk mtd gfapi libhdfs ime_psync ime_psyncv \
         libcufile libhipfile libzbc http",
    ),
    (
        Modelling::As(
            Engine::Null,
            Some("no request reaches the device, as with fio's"),
        ),
        "null cpp_null",
    ),
    (
        Modelling::No,
        "net netsplice rdma cpuio exec external e4defrag falloc ftruncate filecreate \
         filestat filedelete dircreate dirstat dirdelete binject page_fault",
    ),
];

/// Engines with a queue of their own to the storage, which discards go through, too.
const REACHES: &str =
    "io_uring_cmd xnvme libblkio nbd rbd rados libiscsi gfapi_async nfs dfs ime_aio";

/// The way in which the model runs an engine.
#[derive(Debug, Clone, Copy)]
enum Modelling {
    /// The engine is run like this one, with a note.
    As(Engine, Option<&'static str>),
    /// The engine is not run by the model.
    No,
}

fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

fn engine(name: &str) -> Option<Modelling> {
    let found = ENGINES.iter().find(|(_, names)| lists(names, name));
    found.map(|&(modelling, _)| modelling)
}

pub(super) fn set_engine(draft: &mut Draft, value: Option<&str>) -> Noted {
    let text = needed(value)?;
    match engine(text) {
        Some(Modelling::As(engine, note)) => {
            draft.spec.engine = engine;
            draft.spec.queues_trims = lists(REACHES, text);
            draft.takes_ranges = text == "io_uring_cmd";
            Ok(note)
        }
        Some(Modelling::No) => Err(not_modelled("an I/O engine other than those for disks")),
        None => Err(choice(
            text,
            "libaio, io_uring, posixaio, sync, psync, vsync, pvsync, pvsync2",
        )),
    }
}
