//! What the array systems of GEOM have in common beside their text: how an array of a
//! class is built, found and taken down. A class says only what it does differently.

use super::{Class, Geom};
use crate::array::steps::kernel_name;
use crate::array::{
    Access, ArrayStatus, ArraySystem, Built, ChangeMembers, Member, Need, OperatingSystem,
    ReadBack, ReadState, Result,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;

/// What GEOM calls the members.
pub(in crate::array) fn providers(array: &Built) -> impl Iterator<Item = String> {
    let members = array.members.iter();
    members.map(|member| kernel_name(&member.device).to_owned())
}

/// An array of a class, in what the classes do differently; the rest is the same in all
/// of them.
pub(in crate::array) trait GeomArray: ChangeMembers + Send + Sync {
    /// The class of GEOM that it is of.
    const CLASS: Class;
    /// The verb that takes an array down.
    const STOP: &'static str;

    /// Whether its settings go together and the class takes them, whatever its members.
    fn settings_agree(&self) -> Result<()> {
        Ok(())
    }

    /// Whether so many members of such sizes can be built into it.
    fn accepts(&self, members: &[Member]) -> Result<()>;

    /// The bytes it will hold, roughly.
    fn room(&self, members: &[Member]) -> Bytes;

    /// The tool's arguments that make it.
    fn label(&self, array: &Built) -> Vec<String>;

    /// What is told it once it is there.
    fn configure(&self, _: &Built) -> Vec<Command> {
        Vec::new()
    }

    /// Its state, out of what `list` says.
    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus;

    /// Its settings as `list` tells them; `source` is what they were read with.
    fn told(&self, array: &Built, geom: &Geom, source: &str) -> Vec<ReadBack>;
}

impl<T: GeomArray> ArraySystem for T {
    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::FreeBsd]
    }

    /// The tool, a part of the system or a third party's without a package, and
    /// the module.
    fn needs(&self) -> Vec<Need> {
        vec![
            Need::Program {
                name: T::CLASS.tool,
                apt: "",
                pkg: "",
            },
            Need::Module(T::CLASS.module),
        ]
    }

    fn check_settings(&self) -> Result<()> {
        self.settings_agree()
    }

    fn check(&self, members: &[Member]) -> Result<()> {
        self.settings_agree()?;
        self.accepts(members)
    }

    fn capacity(&self, members: &[Member]) -> Bytes {
        self.room(members)
    }

    fn create(&self, array: &Built) -> Result<Vec<Command>> {
        self.check(&array.members)?;
        let mut commands = T::CLASS.prepare(&array.members);
        commands.push(Command::destroys(T::CLASS.tool, self.label(array)));
        commands.extend(self.configure(array));
        Ok(commands)
    }

    fn access(&self, array: &Built) -> Access {
        Access::Device(format!("/dev/{}/{}", T::CLASS.folder, array.name))
    }

    fn destroy(&self, array: &Built) -> Vec<Command> {
        let mut commands = vec![T::CLASS.destroys(&[T::STOP, "-f", &array.name])];
        commands.extend(T::CLASS.clear(&array.members));
        commands
    }
}

impl<T: GeomArray> ReadState for T {
    /// The kernel's tables by way of `list`; no disk is touched.
    fn sources(&self, array: &Built) -> Vec<Watched> {
        vec![Watched::Command(T::CLASS.reads(&["list", &array.name]))]
    }

    fn interpret(&self, array: &Built, contents: &[Option<String>]) -> Result<ArrayStatus> {
        Ok(self.state(array, &T::CLASS.find_in(&array.name, contents)?))
    }

    fn settings(&self, target: &dyn Target, array: &Built) -> Result<Vec<ReadBack>> {
        let geom = T::CLASS.read(target, &array.name)?;
        let mut all = self.told(array, &geom, &format!("{} list", T::CLASS.tool));
        all.extend(T::CLASS.tunables(target)?);
        Ok(all)
    }

    fn find(&self, target: &dyn Target, prefix: &str) -> Result<Vec<Built>> {
        T::CLASS.find(target, prefix)
    }
}
