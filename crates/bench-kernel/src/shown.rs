//! The disks as the guest sees them: as far as virtio goes by the devices themselves, and beside
//! that by the [agent](crate::agent)'s words to the kernel.
//!
//! A disk shows itself as the drive of its preset would. A write cache is one that a loss of power
//! empties: a drive that is protected against it declares none, so it is never flushed. The
//! physical sector is the one that the drive reports, which may not be the one that it has. The
//! queue has 32 commands of SATA, one on a PATA cable, and for an NVMe drive as many as the ring of
//! User-Mode Linux: 256, of the 1023 that Linux would send.

use crate::agent::disks::{Kind, SATA_TAGS};
use crate::error::DisksError;
use crate::settings::Settings;
use raidlab_bench_model::presets;
use raidlab_bench_model::wiring::{self, Wired};
use raidlab_disk::DiskParameters;
use raidlab_lab::{Experiment, Files};
use raidlab_uml_calendar::{DeviceConfig, DiskModel};
use raidlab_units::{Bytes, Sectors};

/// The number of commands that the guest lets into an NVMe drive: the entries of its ring, as a
/// command takes one (`MAX_SUPPORTED_QUEUE_SIZE` in `arch/um/drivers/virtio_uml.c`).
const NVME_TAGS: usize = 256;

/// The number of commands that the guest lets into each disk: as many as the one with most tags
/// takes. Those with fewer have the others wait before them.
pub(crate) fn queue_depth(configs: &[DeviceConfig]) -> usize {
    configs.iter().map(|config| config.tags).max().unwrap_or(1)
}

/// The kind of a disk with these numbers, as its host sees it.
fn kind(parameters: &DiskParameters) -> Kind {
    match parameters.medium.medium().facts().rotational {
        true => Kind::Rotating,
        false if parameters.is_nvme() => Kind::Nvme,
        false => Kind::Flash,
    }
}

/// The members' sizes, slot by slot, as far as they are used;
/// `None` where a preset cannot be read, which the run itself says.
pub(crate) fn sizes(experiment: &Experiment, settings: &Settings) -> Option<Vec<Bytes>> {
    let wired = wire(experiment, &settings.files).ok()?;
    let limit = settings.member;
    let sizes = wired.iter().map(|(one, _)| used(one, limit).to_bytes());
    Some(sizes.collect())
}

/// The used part of a member: the size in its suite, else the limit.
fn used(wired: &Wired, limit: Option<Bytes>) -> Sectors {
    let limit = limit.filter(|_| !wired.fixed_size).map(Bytes::to_sectors);
    limit.map_or(wired.size, |limit| wired.size.min(limit))
}

/// Makes the disks of an experiment, with the angles and the chance that they have on the model
/// bench too, and their numbers.
fn wire(
    experiment: &Experiment,
    files: &Files,
) -> Result<Vec<(Wired, DiskParameters)>, DisksError> {
    let parameters = experiment.disks.iter().enumerate().map(|(member, name)| {
        let preset = presets::load_from(files, name)?;
        let parameters = preset.parameters(preset.set_beside(&experiment.fit));
        let parameters = parameters.cloned().map_err(|source| DisksError::Preset {
            disk: name.clone(),
            source,
        })?;
        wiring::place(experiment, member, parameters).map_err(|source| DisksError::State {
            disk: name.clone(),
            source,
        })
    });
    let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
    let random = wiring::chance(experiment);
    let wired = wiring::wire(&experiment.regions, &parameters, &random)?;
    Ok(wired.into_iter().zip(parameters).collect())
}

/// Makes the devices of an experiment, with the kind that each is to its host.
pub(crate) fn disks(
    experiment: &Experiment,
    settings: &Settings,
) -> Result<(Vec<DeviceConfig>, Vec<Kind>), DisksError> {
    let wired = wire(experiment, &settings.files)?.into_iter().enumerate();
    let disks = wired.map(|(index, (wired, parameters))| {
        let kind = kind(&parameters);
        let size = used(&wired, settings.member);
        let tags = match kind {
            // A PATA disk has no queue: the guest sorts the waiting commands.
            _ if wired.disk.one_at_a_time() => 1,
            Kind::Nvme => NVME_TAGS,
            Kind::Rotating | Kind::Flash => SATA_TAGS,
        };
        let model = DiskModel {
            disk: wired.disk,
            capacity: wired.size,
        };
        let mut config = DeviceConfig::new(model, format!("raidlab{index}"));
        config.tags = tags;
        config.write_cache = parameters.declares_write_cache();
        config.physical_block = parameters.told_sector();
        config.discard = parameters.discard.is_some();
        config.size = Some(size);
        let faults = settings.faults.iter().filter(|(disk, _)| *disk == index);
        config.faults = faults.map(|(_, fault)| *fault).collect();
        (config, kind)
    });
    Ok(disks.unzip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Region, Suite};

    /// An experiment on a mirror of these disks.
    fn mirror(disks: [&str; 2]) -> Experiment {
        let mut suite = Suite::load("quick").expect("built in");
        suite.use_disks(disks.map(str::to_owned).to_vec());
        let choices = Choices {
            fits: vec!["strict".to_owned()],
            ..Choices::default()
        };
        suite.experiments(&suite.subjects, &choices).remove(0)
    }

    /// A disk on a PATA cable and a SATA disk: neither set of parameters nor queue is the
    /// other's.
    #[test]
    fn disks_of_two_kinds_keep_their_own_sets_and_queues() {
        let mut experiment = mirror(["sp1614n", "wd4000fyyz"]);
        let cable = Region {
            channel: "ide0".to_owned(),
            ..Region::default()
        };
        experiment.regions = vec![cable, Region::default()];
        let (configs, _) = disks(&experiment, &Settings::default()).expect("both can be had");
        let tags: Vec<usize> = configs.iter().map(|config| config.tags).collect();
        assert_eq!(tags, [1, 32]);
        assert_eq!(queue_depth(&configs), 32);
    }

    /// Every preset's kind, tags, write cache, physical sector and discards, as its maker or
    /// Linux says them.
    #[test]
    fn a_disk_shows_what_the_drive_of_its_preset_would() {
        use Kind::{Flash, Nvme, Rotating};
        let cases = [
            ("wd4000fyyz", (Rotating, 32, true, 512, false)),
            // Its sectors have 4 KiB, which it does not say.
            ("wd15ears", (Rotating, 32, true, 512, false)),
            ("870evo", (Flash, 32, true, 512, true)),
            // Protected against the loss of power, of which SATA has no word.
            ("pm883", (Flash, 32, true, 512, true)),
            ("980pro", (Nvme, 256, true, 512, true)),
            ("pm9a3", (Nvme, 256, false, 512, true)),
        ];
        for (preset, expected) in cases {
            let experiment = mirror([preset, "wd4000fyyz"]);
            let (configs, kinds) = disks(&experiment, &Settings::default()).expect(preset);
            let config = &configs[0];
            let shown = (
                kinds[0],
                config.tags,
                config.write_cache,
                config.physical_block.0,
                config.discard,
            );
            assert_eq!(shown, expected, "{preset}");
        }
    }
}
