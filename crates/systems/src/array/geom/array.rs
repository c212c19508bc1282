//! The common parts of the array systems of GEOM beside their text: how an array of a class is
//! built, found and taken down. A class defines only its differences.

use super::{Class, Geom};
use crate::array::steps::kernel_name;
use crate::array::{
    Access, ArrayStatus, ArraySystem, Built, ChangeMembers, Member, Need, OperatingSystem,
    ReadBack, ReadState, Result,
};
use raidlab_shell::{Command, Target, Watched};
use raidlab_units::Bytes;

/// GEOM's names of the members.
pub(in crate::array) fn providers(array: &Built) -> impl Iterator<Item = String> {
    let members = array.members.iter();
    members.map(|member| kernel_name(&member.device).to_owned())
}

/// An array of a GEOM class: the parts in which the classes differ; the rest is the same in
/// all of them.
pub(in crate::array) trait GeomArray: ChangeMembers + Send + Sync {
    /// The GEOM class of the array.
    const CLASS: Class;
    /// The verb that takes an array down.
    const STOP: &'static str;

    /// Checks that the settings are consistent and accepted by the class, whatever the members.
    fn settings_agree(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that an array can be built of so many members of these sizes.
    fn accepts(&self, members: &[Member]) -> Result<()>;

    /// The expected capacity in bytes, roughly.
    fn room(&self, members: &[Member]) -> Bytes;

    /// The tool's arguments that create the array.
    fn label(&self, array: &Built) -> Vec<String>;

    /// The commands that configure the array once it exists.
    fn configure(&self, _: &Built) -> Vec<Command> {
        Vec::new()
    }

    /// The array's state, from the output of `list`.
    fn state(&self, array: &Built, geom: &Geom) -> ArrayStatus;

    /// The array's settings in the output of `list`; `source` is the command that printed them.
    fn told(&self, array: &Built, geom: &Geom, source: &str) -> Vec<ReadBack>;
}

impl<T: GeomArray> ArraySystem for T {
    fn runs_on(&self) -> &'static [OperatingSystem] {
        &[OperatingSystem::FreeBsd]
    }

    /// The needs: the tool, a part of the system or a third party's without a package,
    /// and the module.
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
    /// The kernel's tables by way of `list`, which touches no disk.
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
