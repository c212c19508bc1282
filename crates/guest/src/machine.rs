//! The virtual machine that QEMU is told to be.
//!
//! It has no display, no devices beyond a serial console, disks and three ports into files, and no
//! network but, where it is asked for, a way to the guest's ssh. Disks have serial numbers, so that
//! the guest knows them by `/dev/disk/by-id` as it would real ones.

use raidlab_units::{Bytes, BytesPerSecond};
use std::fmt;
use std::path::{Path, PathBuf};

/// The name of the program that is the machine.
pub const QEMU: &str = "qemu-system-x86_64";

/// The way in which QEMU runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// Translation by QEMU, which works anywhere, some twenty times slower than the processor
    /// itself. Only times of waiting for disks may be believed.
    Tcg,
    /// Execution by the processor, where the machine allows it.
    Kvm,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcg => "TCG",
            Self::Kvm => "KVM",
        })
    }
}

/// The bus that connects the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bus {
    /// virtio-scsi: `sda`, `sdb`... A disk can be pulled by the guest itself
    /// (`/sys/block/sdb/device/delete`) and put back by a scan of the host.
    Scsi,
    /// virtio-blk: `vda`, `vdb`...
    Block,
}

/// One disk, empty at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// The serial number: letters and digits, at most 20 (virtio-blk's limit).
    pub serial: String,
    /// The size in bytes: a multiple of 512.
    pub size: Bytes,
    /// Whether it says that it rotates; virtio-blk disks always do.
    pub rotates: bool,
    /// The most requests in a second.
    pub requests_per_second: Option<u32>,
    /// The most bytes in a second.
    pub bytes_per_second: Option<BytesPerSecond>,
}

impl Disk {
    /// Makes `count` disks without limits, called `RAIDLAB0`, `RAIDLAB1`...
    #[must_use]
    pub fn several(count: usize, size: Bytes) -> Vec<Self> {
        (0..count)
            .map(|index| Self {
                serial: format!("RAIDLAB{index}"),
                size,
                rotates: false,
                requests_per_second: None,
                bytes_per_second: None,
            })
            .collect()
    }
}

/// A disk that a server of this machine exports over NBD: its contents stay
/// when the guest is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The serial number, as [`Disk::serial`].
    pub serial: String,
    /// The Unix socket that the server listens on.
    pub socket: PathBuf,
    /// The export's name.
    pub name: String,
}

/// The virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The way in which its instructions are run.
    pub accelerator: Accelerator,
    /// The number of the machine's processors.
    pub processors: u32,
    /// The size of its memory, which also holds the first file system.
    pub memory: Bytes,
    /// The bus that connects the disks.
    pub bus: Bus,
    /// The machine's disks, in order.
    pub disks: Vec<Disk>,
    /// Disks behind those, exported by others.
    pub exports: Vec<Export>,
    /// The port of 127.0.0.1 that leads to port 22 of the guest, at 10.0.2.15; nothing leads from
    /// the guest to elsewhere.
    pub ssh_port: Option<u16>,
}

/// The default machine: two processors and 1.5 GiB without disks, translated.
impl Default for Machine {
    fn default() -> Self {
        Self {
            accelerator: Accelerator::Tcg,
            processors: 2,
            memory: Bytes(1536 << 20),
            bus: Bus::Scsi,
            disks: Vec::new(),
            exports: Vec::new(),
            ssh_port: None,
        }
    }
}

/// The files of one boot, in a folder of its own.
#[derive(Debug, Clone, Copy)]
pub struct BootFiles<'a>(pub &'a Path);

impl BootFiles<'_> {
    /// The path of the archive that the guest boots with (its initramfs).
    #[must_use]
    pub fn initrd(&self) -> PathBuf {
        self.0.join("initrd")
    }

    /// The file into which the guest's console is written.
    #[must_use]
    pub fn console(&self) -> PathBuf {
        self.0.join("console")
    }

    /// The file of a port's output: `stdout`, `stderr` or `result`.
    #[must_use]
    pub fn port(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The file with the contents of a disk.
    #[must_use]
    pub fn disk(&self, index: usize) -> PathBuf {
        self.0.join(format!("disk{index}"))
    }
}

/// The ports, by their names behind `raidlab.`.
pub(crate) const PORTS: [&str; 3] = ["stdout", "stderr", "result"];

impl Machine {
    /// Makes the arguments for QEMU 7 or later.
    ///
    /// After the panic of a kernel told `panic=-1` and `-no-reboot` QEMU ends.
    /// Data on disks are lost with the machine, so the host need not be asked
    /// to make them safe: `cache=unsafe`.
    #[must_use]
    pub fn arguments(&self, image: &Path, files: BootFiles<'_>) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| {
            arguments.push(format!("-{option}"));
            arguments.push(value);
        };
        // With translation by QEMU 7.2, most starts of Linux 6.12 end in a fault, often behind
        // cmpxchg16b; without that instruction few do.
        let (accelerator, processor) = match self.accelerator {
            Accelerator::Tcg => ("tcg,thread=multi", "max,-cx16"),
            Accelerator::Kvm => ("kvm", "max"),
        };
        add("accel", accelerator.to_owned());
        add("cpu", processor.to_owned());
        add("smp", self.processors.to_string());
        add("m", format!("{}k", self.memory.0 >> 10));
        add("display", "none".to_owned());
        add("serial", format!("file:{}", escaped(&files.console())));
        add("kernel", image.to_string_lossy().into_owned());
        add("initrd", files.initrd().to_string_lossy().into_owned());
        // A kernel that looks for its timer gives up too early where this
        // machine is so busy that the guest stands still for a moment.
        add(
            "append",
            "console=ttyS0 panic=-1 quiet no_timer_check".to_owned(),
        );
        add("device", "virtio-serial-pci".to_owned());
        for port in PORTS {
            let path = escaped(&files.port(port));
            add("chardev", format!("file,id={port},path={path}"));
            add(
                "device",
                format!("virtserialport,chardev={port},name=raidlab.{port}"),
            );
        }
        let disks = self.disks.len() + self.exports.len();
        if self.bus == Bus::Scsi && disks > 0 {
            add("device", "virtio-scsi-pci,id=scsi".to_owned());
        }
        for (index, disk) in self.disks.iter().enumerate() {
            add("drive", drive(index, disk, files));
            add("device", self.device(index, &disk.serial, disk.rotates));
        }
        for (index, export) in (self.disks.len()..).zip(&self.exports) {
            add("drive", exported(index, export));
            add("device", self.device(index, &export.serial, false));
        }
        if let Some(port) = self.ssh_port {
            let forward = format!("hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22");
            add("netdev", format!("user,id=net,restrict=on,{forward}"));
            add("device", "virtio-net-pci,netdev=net".to_owned());
        }
        arguments.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        arguments
    }

    /// The argument for the disk as the guest sees it.
    fn device(&self, index: usize, serial: &str, rotates: bool) -> String {
        match self.bus {
            // The rate 1 means no rotating medium (SBC-4, medium rotation rate).
            Bus::Scsi => format!(
                "scsi-hd,bus=scsi.0,scsi-id={index},drive=disk{index},serial={serial},rotation_rate={}",
                if rotates { 7200 } else { 1 }
            ),
            Bus::Block => format!("virtio-blk-pci,drive=disk{index},serial={serial}"),
        }
    }
}

/// The argument for the disk as the host holds it.
fn drive(index: usize, disk: &Disk, files: BootFiles<'_>) -> String {
    let path = escaped(&files.disk(index));
    let mut text =
        format!("if=none,id=disk{index},file={path},format=raw,cache=unsafe,discard=unmap");
    if let Some(limit) = disk.requests_per_second {
        text += &format!(",throttling.iops-total={limit}");
    }
    if let Some(limit) = disk.bytes_per_second {
        text += &format!(",throttling.bps-total={:.0}", limit.0);
    }
    text
}

/// The argument for the disk as its server holds it. Writes that the guest flushes must be safe
/// there: no `cache=unsafe`.
fn exported(index: usize, export: &Export) -> String {
    let path = escaped(&export.socket);
    let name = escaped(Path::new(&export.name));
    format!(
        "if=none,id=disk{index},driver=nbd,server.type=unix,server.path={path},export={name},\
         cache=none,discard=unmap"
    )
}

/// Escapes a path in an option's value: commas are doubled.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::{Accelerator, BootFiles, Bus, Disk, Export, Machine};
    use raidlab_units::{Bytes, BytesPerSecond};
    use std::path::Path;

    fn shown(machine: &Machine) -> String {
        machine
            .arguments(Path::new("/boot/vmlinuz"), BootFiles(Path::new("/a,b")))
            .join(" ")
            .replace(" -", "\n-")
    }

    #[test]
    fn a_machine_with_two_disks() {
        let mut disks = Disk::several(2, Bytes(64 << 20));
        disks[1].rotates = true;
        disks[1].requests_per_second = Some(100);
        disks[1].bytes_per_second = Some(BytesPerSecond(8e6));
        let machine = Machine {
            disks,
            ..Machine::default()
        };
        insta::assert_snapshot!(shown(&machine));
    }

    #[test]
    fn an_exported_disk_comes_behind_the_own_ones() {
        let machine = Machine {
            disks: Disk::several(1, Bytes(1 << 20)),
            exports: vec![Export {
                serial: "EXPORT0".to_owned(),
                socket: "/run/a,b.sock".into(),
                name: "home".to_owned(),
            }],
            ..Machine::default()
        };
        let shown = shown(&machine);
        assert!(
            shown.contains(
                "-drive if=none,id=disk1,driver=nbd,server.type=unix,server.path=/run/a,,b.sock,\
                 export=home,cache=none,discard=unmap\n\
                 -device scsi-hd,bus=scsi.0,scsi-id=1,drive=disk1,serial=EXPORT0,rotation_rate=1\n"
            ),
            "{shown}"
        );
    }

    #[test]
    fn a_port_leads_to_the_guest_and_nothing_out_of_it() {
        let machine = Machine {
            ssh_port: Some(2201),
            ..Machine::default()
        };
        let shown = shown(&machine);
        assert!(
            shown.contains(
                "-netdev user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:2201-10.0.2.15:22\n\
                 -device virtio-net-pci,netdev=net\n"
            ),
            "{shown}"
        );
    }

    #[test]
    fn the_other_bus_and_accelerator() {
        let machine = Machine {
            accelerator: Accelerator::Kvm,
            bus: Bus::Block,
            disks: Disk::several(1, Bytes(1 << 20)),
            ..Machine::default()
        };
        let shown = shown(&machine);
        assert!(shown.starts_with("-accel kvm\n"), "{shown}");
        assert!(shown.contains("-device virtio-blk-pci,drive=disk0,serial=RAIDLAB0\n"));
        assert!(!shown.contains("scsi"), "{shown}");
    }
}
