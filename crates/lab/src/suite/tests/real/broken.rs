//! What can be wrong in a suite for real machines.

use super::REAL;
use crate::edited::edited;
use raidlab_units::table;

/// What is wrong, and the change that makes it so. `MANY` stands for more values
/// than are allowed.
const MISTAKES: &str = r#"
file system misspelt              "ext4"                          "ext5"
file system's option misspelt     options = [                     option = [
file system twice                 "ext4"                          "none"
no file system                    filesystems = ["none"] }        filesystems = [] }
file system of a number           "ext4"                          4
no repetition                     repetitions = 3                 repetitions = 0
subject's field misspelt          members = [0, 2]                member = [0, 2]
subject's disk unknown            members = [0, 2]                members = [0, 4]
subject's disk twice              members = [0, 2]                members = [2, 2]
no disks for a subject            members = [0, 2]                members = []
two disks for a single one        members = [2]                   members = [1, 2]
removed is no member              removed = [3]                   removed = [4]
removed from what is bare         "md-raid6", title = "degraded"  "md-raid0", title = "degraded"
all removed                       removed = [3]                   removed = [3, 2, 1, 0]
subject named as another          "md-of-two"                     "md-raid1"
subject unknown                   subject = "md-raid6"            subject = "md-raid7"
event beyond a subject's members  STEP                            event = "remove"\nmember = 2
placeholder unknown               {capacity*3/4}                  {capcity*3/4}
placeholder's arithmetic          {capacity*3/4}                  {capacity-1}
argument's placeholder            {memory*2/1048576}              {memory*2/1M}
fio's own mistake besides         --size={capacity*3/4}           --rate=1m --sise={capacity}
tool misspelt                     tool = "bonnie++"               tool = "bonie++"
tool without arguments            JOB                             tool = "dd"
tool with fio                     JOB                             tool = "dd"\narguments = []\nfio = "--rw=read"
tool with queue                   JOB                             tool = "dd"\narguments = []\nqueue = "fio"
arguments of fio                  JOB                             arguments = []\nfio = "--rw=read"
dd onto a disk                    JOB                             tool = "dd"\narguments = ["if=/dev/zero", "of=/dev/sda"]
matrix key                        { rw = [                        { RW = [
matrix of a placeholder           JOB                             matrix = { memory = [1] }\nfio = "--rw=read"
matrix empty                      JOB                             matrix = {}\nfio = "--rw=read"
matrix without values             JOB                             matrix = { n = [] }\nfio = "--rw=read"
matrix of tables                  JOB                             matrix = { n = [{}] }\nfio = "--rw=read"
matrix not in the name            JOB                             matrix = { n = [1, 2] }\nfio = "--rw=read"
matrix too large                  JOB                             matrix = { a = [MANY], b = [MANY] }\nfio = "--rw=read"
rounds without table              [rounds.cells]                  [rounds.sells]
rounds of nobody                  [rounds.cells]                  [rounds.other]\nat_most = 5\ntrack = "x"\n[rounds.cells]
rounds too few                    at_most = 25                    at_most = 4
rounds' job unknown               track = "write-4k"              track = "write-8k"
rounds in two pieces              JOB                             round = "cells"\nfio = "--rw=read"
rounds with event                 job = "both"                    events = [{ at = 1, event = "fail", member = 0 }]\njob = "both"
rounds with an event              job = "both"                    events = [{ at = "1s", event = "fail", member = 0 }]\njob = "both"
round of a wait                   STEP                            wait = "1s"\nround = "cells"
event without a time              at = "10s",                     NOTHING
event with two times              at = "10s",                     at = "10s", sync_percent = 4,
event too early                   at = "20s"                      at = "5s"
event's percent                   sync_percent = 45.5             sync_percent = 145.5
event's member                    event = "fail", member = 0      event = "fail", member = 2
event out of order                event = "re-add"                event = "remove"
wait for what                     wait = "idle"                   wait = "idel"
wait without limit                at_most = "5m"                  NOTHING
wait of a time with limit         STEP                            wait = "5s"\nat_most = "5m"
wait for no percent               wait_sync_percent = 50          wait_sync_percent = 0
prepares what                     prepares = true                 prepares = "yes"
"#;

/// Suites with one mistake each.
pub(super) fn broken() -> Vec<(&'static str, String)> {
    let many = "1,".repeat(101);
    table(MISTAKES, |[what, from, to]| {
        Some((what, edited(REAL, from, &to.replace("MANY", &many))))
    })
}
