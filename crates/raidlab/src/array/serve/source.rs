//! The sources of an export: arrays put together from devices, and files.

use super::{Prepared, Served};
use crate::array::devices::{Named, Opening, named};
use crate::array::{LOOKING, bitmap_refused, claim_refused, look_at, mdadm_size, named_once};
use crate::failure::{Failure, Kind};
use crate::output;
use clap::{Args, ValueEnum};
use raidlab_array::{
    AssembleError, AssembleOptions, Assembly, EngineOptions, Part, ReadPolicyError, ReadPolicyKind,
    Stale, Update,
};
use raidlab_geometry::Level;
use raidlab_serve::array::{
    Assembled, DriverConfig, FileExport, FilesError, Nest, ServeOptions, assemble, decide,
};
use raidlab_serve::member::{Access, BackendKind, Member, MemberFile, MembersConfig, OpenOptions};
use raidlab_store::text::visible_path;
use raidlab_units::{Nanos, SECTOR_BYTES, Sectors, count};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What becomes of members that are out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StaleMembers {
    /// They are left out.
    Ignore,
    /// They are added again if the bitmap knows what they lack, and left out otherwise.
    ReAdd,
    /// They are added again if the bitmap knows what they lack, and filled anew otherwise.
    Rebuild,
}

/// To what size an array grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grow {
    /// As much as the smallest member has room for.
    Max,
}

/// How commands reach the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// `io_uring` where the kernel allows it, else threads.
    Auto,
    /// `io_uring` alone, and an error where the kernel does not allow it.
    IoUring,
    /// Threads that call pread and pwrite.
    Threads,
}

/// How an array is put together and driven.
#[derive(Debug, Args)]
#[command(next_help_heading = "The array")]
pub struct Assembling {
    /// Members, in any order: files or block devices, or arrays of them in
    /// brackets.
    #[arg(value_name = "DEVICE", help_heading = None::<&str>)]
    devices: Vec<PathBuf>,

    /// Start even where data may be lost: with out-of-date members, or a degraded array
    /// that was not stopped cleanly and has no log.
    #[arg(short, long)]
    force: bool,

    /// Start although members that were in service are missing.
    #[arg(short = 'R', long)]
    run: bool,

    /// Serve the array read-only, and write nothing to its members.
    #[arg(short = 'o', long)]
    readonly: bool,

    /// What becomes of members that are out of date.
    #[arg(long, value_enum, default_value = "re-add")]
    stale: StaleMembers,

    /// The file that holds the array's write-intent bitmap. Only for arrays that were created
    /// with such a file.
    #[arg(short, long, value_name = "FILE")]
    bitmap: Option<PathBuf>,

    /// Grow the array to the size of its smallest member, once all were
    /// replaced by larger ones.
    #[arg(long, value_enum, value_name = "max")]
    size: Option<Grow>,

    /// Keep no log at levels 4, 5 and 6. After a crash a stripe may then hold old data
    /// with new parity (the write hole).
    #[arg(long)]
    no_log: bool,

    /// Which copy serves a read at levels 1 and 10: md-6.9, md-raid10-5.4, least-pending or
    /// round-robin, also with its stripe as in `round-robin:256k`. Default: md-6.9.
    #[arg(long, value_name = "NAME", value_parser = served_policy)]
    read_policy: Option<ReadPolicyKind>,

    /// How commands reach the members.
    #[arg(long, value_enum, default_value = "auto")]
    backend: Backend,

    /// With `io_uring`: how much memory for data is registered with the kernel at most,
    /// where 0 is none.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = mdadm_size)]
    registered_memory: Sectors,

    /// Go through the page cache, even where a member allows direct I/O.
    #[arg(long)]
    buffered: bool,

    /// Fail a member that has not answered for this many seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    member_timeout: u64,
}

/// Parses a read policy that an array with data offers; a policy of a model's is refused as such.
fn served_policy(text: &str) -> Result<ReadPolicyKind, String> {
    text.parse().map_err(|error: ReadPolicyError| {
        let own = ReadPolicyKind::OWN.map(|kind| kind.name()).join(", ");
        match raidlab_policies::read_policy(text) {
            Ok(model) => format!(
                "`{}` imitates another driver and is for models; an array with data has one of {own}",
                model.name()
            ),
            Err(_) => raidlab_units::in_one_line(&error),
        }
    })
}

impl Assembling {
    fn opening(&self) -> OpenOptions {
        OpenOptions {
            buffered: self.buffered,
            access: match self.readonly {
                true => Access::Read,
                false => Access::Write,
            },
        }
    }

    fn open(&self, path: &Path) -> Result<MemberFile, Failure> {
        MemberFile::open(path, self.opening()).map_err(claim_refused)
    }

    /// Opens the file with the bitmap, if one is named.
    fn bitmap(&self, options: OpenOptions) -> Result<Option<Member>, Failure> {
        let open = |path: &PathBuf| MemberFile::open(path, options).map_err(bitmap_refused);
        let file = self.bitmap.as_ref().map(open).transpose()?;
        Ok(file.map(Member::from))
    }

    /// Opens all members, and starts those that are arrays. These keep their size: their content
    /// may have its superblock at the end.
    fn members(
        &self,
        nest: &Arc<Nest>,
        how: &AssembleOptions,
        file: &dyn Fn(&Path) -> Result<Member, Failure>,
        report: &mut dyn FnMut(&Assembled),
    ) -> Result<Vec<Member>, Failure> {
        let how = &AssembleOptions {
            update: None,
            ..how.clone()
        };
        let opening = Opening { nest, how, file };
        let devices: Vec<Named> = named(&self.devices)?;
        let brackets = ["[", "]"].map(Path::new);
        let paths = self.devices.iter().chain(&self.bitmap);
        let paths = paths.map(PathBuf::as_path);
        named_once(paths.filter(|path| !brackets.contains(path)))?;
        let members = devices.iter().map(|device| opening.open(device, report));
        members.collect()
    }

    fn nest(&self, log: bool) -> Arc<Nest> {
        Nest::new(ServeOptions {
            engine: EngineOptions::new(self.read_policy.unwrap_or(ReadPolicyKind::MD_6_9)),
            log,
            driver: self.driver(),
        })
    }

    fn driver(&self) -> DriverConfig {
        DriverConfig {
            backend: match self.backend {
                Backend::Auto => BackendKind::Automatic,
                Backend::IoUring => BackendKind::Ring,
                Backend::Threads => BackendKind::Threads,
            },
            registered_bytes: self.registered_memory.to_bytes().0,
            members: MembersConfig {
                command_limit: Nanos::from_secs(self.member_timeout),
            },
        }
    }

    /// Opens a file that is served as it is.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(super) fn file(&self, path: &Path) -> Result<Served, Failure> {
        let file = self.open(path)?;
        if file.size() == Sectors::ZERO {
            let words = format!("{} has no whole sector of 512 bytes", visible_path(path));
            return Err(Failure::words(Kind::Input, words));
        }
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        match bytes % SECTOR_BYTES {
            0 => {}
            rest => output::say(&format!(
                "warning: the last {rest} bytes of {} are no whole sector, and are not served",
                visible_path(path)
            )),
        }
        let export = FileExport::start(Arc::new(file), self.driver()).map_err(Failure::run)?;
        Ok(Served::Other(Arc::new(export)))
    }

    /// The assembly that the devices make, in words; nothing is changed.
    ///
    /// # Errors
    /// When they do not make an array that may be started.
    pub fn verdict(&self) -> Result<String, Failure> {
        let how = AssembleOptions {
            read_only: true,
            ..self.options()
        };
        let mut text = String::new();
        let mut chooses = false;
        let mut report = |one: &Assembled| {
            chooses |= has_copies(&one.assembly);
            text.push_str(&words(&one.assembly));
        };
        let members = self.members(&self.nest(false), &how, &look_at, &mut report)?;
        let bitmap = self.bitmap(LOOKING)?;
        decide(&members, bitmap.as_ref(), &self.options())
            .map(|assembly| text + &self.words_of(&assembly, chooses))
            .map_err(not_assembled)
    }

    /// The assembly of devices in words, and the option that has no effect on it. `chooses` says
    /// that an array among its members has copies.
    fn words_of(&self, assembly: &Assembly, chooses: bool) -> String {
        let mut text = words(assembly);
        if self.read_policy.is_some() && !chooses && !has_copies(assembly) {
            text.push_str("  it has no copies to choose from: `--read-policy` has no effect\n");
        }
        if self.size.is_some() && !assembly.has_grown() {
            text.push_str("  it keeps its size: the smallest member has no more room\n");
        }
        text
    }

    /// Turns these arguments into words, for the server.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let flags = [
            (self.force, "--force"),
            (self.run, "--run"),
            (self.readonly, "--readonly"),
            (self.no_log, "--no-log"),
            (self.buffered, "--buffered"),
        ];
        words.extend(
            flags
                .iter()
                .filter(|(set, _)| *set)
                .map(|(_, flag)| OsString::from(flag)),
        );
        if let Some(size) = self.size {
            words.extend(["--size".into(), word(size)]);
        }
        if let Some(bitmap) = &self.bitmap {
            // It may have a name that begins with a dash.
            let mut word = OsString::from("--bitmap=");
            word.push(bitmap);
            words.push(word);
        }
        words.extend(["--stale".into(), word(self.stale)]);
        words.extend(["--backend".into(), word(self.backend)]);
        let registered = format!("{}k", self.registered_memory.0.div_ceil(2));
        words.extend(["--registered-memory".into(), registered.into()]);
        if let Some(policy) = self.read_policy {
            words.extend(["--read-policy".into(), policy.to_string().into()]);
        }
        words.extend([
            "--member-timeout".into(),
            self.member_timeout.to_string().into(),
        ]);
        // A device may have a name that begins with a dash.
        words.push("--".into());
        words.extend(
            self.devices
                .iter()
                .map(|path| path.clone().into_os_string()),
        );
        words
    }

    /// Whether any member is named.
    #[must_use]
    pub fn has_devices(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Whether a member is an array itself.
    pub fn has_inner_arrays(&self) -> bool {
        self.devices.iter().any(|device| device == Path::new("["))
    }

    fn options(&self) -> AssembleOptions {
        AssembleOptions {
            force: self.force,
            run_degraded: self.run,
            read_only: self.readonly,
            stale: match self.stale {
                StaleMembers::Ignore => Stale::LeaveOut,
                StaleMembers::ReAdd => Stale::ReAdd,
                StaleMembers::Rebuild => Stale::Rebuild,
            },
            update: self.size.map(|Grow::Max| Update::Size),
            ..AssembleOptions::default()
        }
    }

    /// Puts the devices together and replays the log, and prints what they are; nothing is started.
    fn assemble(&self, nest: &Arc<Nest>) -> Result<Assembled, Failure> {
        let open = |path: &Path| self.open(path).map(Member::from);
        let mut chooses = false;
        let mut report = |inner: &Assembled| {
            chooses |= has_copies(&inner.assembly);
            announce(inner, &words(&inner.assembly));
        };
        let members = self.members(nest, &self.options(), &open, &mut report)?;
        let bitmap = self.bitmap(self.opening())?;
        let assembled =
            assemble(&members, bitmap.as_ref(), &self.options()).map_err(not_assembled)?;
        announce(&assembled, &self.words_of(&assembled.assembly, chooses));
        Ok(assembled)
    }
}

impl Assembling {
    /// Prepares the array, of which only the arrays that are its members are started, and
    /// returns its name.
    ///
    /// # Errors
    /// When the devices do not make an array that may be started.
    pub(super) fn array(&self) -> Result<(Prepared, String), Failure> {
        let nest = self.nest(!self.no_log && !self.readonly);
        let assembled = self.assemble(&nest)?;
        let full = assembled.assembly.array.name.clone();
        let name = full.rsplit(':').next().unwrap_or_default();
        let name = if name.is_empty() { "array" } else { name }.to_owned();
        Ok((Prepared::Array(Box::new(assembled), nest), name))
    }
}

/// Prints the assembly of devices, in these words, before it is started.
fn announce(assembled: &Assembled, words: &str) {
    output::say(words.trim_end());
    if assembled.replayed > 0 {
        let writes = count(assembled.replayed, "write", "writes");
        output::say(&format!("  the log made {writes} good"));
    }
}

/// A choice in the spelling of the command line.
fn word(choice: impl ValueEnum) -> OsString {
    let value = choice.to_possible_value();
    value
        .map(|value| value.get_name().into())
        .unwrap_or_default()
}

/// The failure for devices that make no array, with a remedy.
pub fn not_assembled(error: FilesError) -> Failure {
    let help = match &error {
        FilesError::Assemble(AssembleError::SplitBrain { .. }) => {
            Some("leave out the devices whose data are not wanted, or `--force` keeps the newest")
        }
        FilesError::Assemble(AssembleError::DirtyDegraded { .. }) => {
            Some("bring the missing member back, or `--force` accepts the loss")
        }
        FilesError::Assemble(AssembleError::LogUnreadable { .. }) => {
            Some("leave that device out: with `--run` the others start, and it can be added again")
        }
        FilesError::Assemble(AssembleError::ReplayNeedsWrite) => {
            Some("without `--readonly` it starts, and the log makes good what was being written")
        }
        FilesError::Assemble(AssembleError::CannotGrow(_)) => {
            Some("without `--size` it starts as large as it is")
        }
        FilesError::Assemble(AssembleError::ForeignBitmap) | FilesError::Bitmap { .. } => {
            Some("without --bitmap it starts, and resyncs everything")
        }
        FilesError::Assemble(AssembleError::NeedsRun { .. }) => {
            Some("`raidlab examine` shows what each device says; `--run` starts a degraded array")
        }
        FilesError::Assemble(_) => Some("`raidlab examine` shows what each device says"),
        FilesError::Examine { .. } => {
            Some("leave it out, if the others are enough; `raidlab create` makes an array")
        }
        _ => None,
    };
    Failure::new(Kind::Input, error).maybe_help(help)
}

/// Whether the array has copies among which a policy chooses for a read.
const fn has_copies(assembly: &Assembly) -> bool {
    matches!(assembly.level, Level::Raid1 | Level::Raid10)
}

/// The assembly of devices, in words.
fn words(assembly: &Assembly) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} `{}`, {} slots, {}",
        assembly.level,
        assembly.array.name,
        assembly.slot_count(),
        assembly.size.to_bytes()
    );
    for member in &assembly.members {
        let part = match &member.part {
            Part::InSync(slot) => format!("slot {}, in sync", slot.0),
            Part::Recovering(slot, _) => format!("slot {}, to be recovered", slot.0),
            Part::Replacing(slot, _) => format!("replaces the member of slot {}", slot.0),
            Part::Spare => "spare".to_owned(),
        };
        let _ = writeln!(text, "  {}: {part}", member.candidate.name);
    }
    for (slot, _) in assembly
        .slots()
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_none())
    {
        let _ = writeln!(text, "  slot {slot}: missing");
    }
    for (name, why) in &assembly.left_out {
        let _ = writeln!(text, "  {name}: left out: {why}");
    }
    for name in &assembly.forced {
        let _ = writeln!(text, "  {name}: taken by force");
    }
    if let Some(name) = &assembly.bitmap_does_not_fit {
        let _ = writeln!(text, "  its bitmap is given up: {name} has no room for it");
    }
    if assembly.replay.is_some() {
        let _ = writeln!(text, "  the log has to make writes good");
    }
    if let Some(sync) = &assembly.resync {
        let _ = match &sync.ranges {
            Some(ranges) => {
                let ranges = count(ranges.len(), "range", "ranges");
                writeln!(text, "  a resync of {ranges} is needed")
            }
            None => writeln!(text, "  a resync is needed"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::served_policy;

    #[test]
    fn what_models_alone_have_is_refused_with_what_there_is() {
        let refusal = |text| served_policy(text).unwrap_err();
        assert_eq!(
            refusal("gmirror-load"),
            "`gmirror-load` imitates another driver and is for models; an array with data has \
             one of md-6.9, md-raid10-5.4, least-pending, round-robin"
        );
        assert!(refusal("md-6.8").starts_with("`md-6.8` is not a read policy; known are md-6.9,"));
        assert!(refusal("round-robin:x").contains("is not a size"));
        assert_eq!(
            served_policy("round-robin:64k").unwrap().name(),
            "round-robin"
        );
    }
}
