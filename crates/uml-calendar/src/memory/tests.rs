use super::{GuestMemory, MemoryError, Outside, Process};
use crate::vhost_user::MemoryRegion;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

fn file(bytes: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(bytes).unwrap();
    file
}

fn region(guest_address: u64, size: u64, file_offset: u64) -> MemoryRegion {
    MemoryRegion {
        guest_address,
        size,
        user_address: guest_address + 0x1_0000_0000,
        file_offset,
    }
}

fn map(regions: &[MemoryRegion], file: &File) -> Result<GuestMemory, MemoryError> {
    let files = regions
        .iter()
        .map(|_| OwnedFd::from(file.try_clone().unwrap()));
    GuestMemory::map(regions.to_vec(), files.collect())
}

#[test]
fn regions_in_any_order_are_one_memory() {
    let file = file(0x4000);
    let memory = map(
        &[region(0x9000, 0x1000, 0x3000), region(0x8000, 0x1000, 0)],
        &file,
    )
    .unwrap();
    memory.write(0x8ffe, &[1, 2, 3, 4]).unwrap();
    let mut bytes = [0; 2];
    file.read_exact_at(&mut bytes, 0x3000).unwrap();
    assert_eq!(bytes, [3, 4]);
    let mut bytes = [0; 4];
    memory.read(None, 0x8ffe, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4]);
    assert_eq!(memory.guest_address(0x1_0000_9fff), Some(0x9fff));
    assert_eq!(memory.guest_address(0x1_0000_a000), None);
    assert_eq!(memory.guest_address(0x9000), None);
}

#[test]
fn nothing_outside_is_reached() {
    let file = file(0x1000);
    let memory = map(&[region(0x8000, 0x1000, 0)], &file).unwrap();
    for address in [0, 0x7fff, 0x8ffd, 0x9000, u64::MAX - 1, u64::MAX] {
        assert_eq!(memory.read(None, address, &mut [0; 4]), Err(Outside));
        assert_eq!(memory.write(address, &[0; 4]), Err(Outside));
    }
    let process = Process::open(rustix::process::getpid().as_raw_pid(), u64::MAX - 8).unwrap();
    for address in [0, 4, 9, u64::MAX] {
        assert_eq!(
            memory.read(Some(&process), address, &mut [0; 4]),
            Err(Outside)
        );
    }
}

#[test]
fn the_process_has_what_the_file_has_not() {
    let image = [7_u8, 8, 9, 10];
    let at = image.as_ptr().addr() as u64 - 0x100;
    let process = Process::open(rustix::process::getpid().as_raw_pid(), at).unwrap();
    let memory = map(&[region(0x8000, 0x1000, 0)], &file(0x1000)).unwrap();
    let mut bytes = [0; 4];
    memory.read(Some(&process), 0x100, &mut bytes).unwrap();
    assert_eq!(bytes, image);
}

#[test]
fn tables_that_are_no_memory_are_refused() {
    let file = file(0x2000);
    let error = |regions: &[MemoryRegion]| map(regions, &file).unwrap_err();
    let small = error(&[region(0, 0x2001, 0)]);
    assert!(matches!(small, MemoryError::TooSmall { there: 0x2000, .. }));
    assert!(matches!(
        error(&[region(0, 0x1000, u64::MAX)]),
        MemoryError::TooSmall { .. }
    ));
    assert!(matches!(error(&[region(0, 0, 0)]), MemoryError::Map { .. }));
    assert!(matches!(
        error(&[region(0, 0x1000, 5)]),
        MemoryError::Map { .. }
    ));
    let twice = [region(0x1000, 0x1000, 0), region(0x1800, 0x1000, 0x1000)];
    assert!(matches!(error(&twice), MemoryError::Regions(_)));
    let mut end = region(0, 0x1000, 0);
    end.guest_address = u64::MAX - 5;
    assert!(matches!(error(&[end]), MemoryError::NoEnd { .. }));
    end.user_address = u64::MAX - 5;
    assert!(matches!(error(&[end]), MemoryError::NoEnd { .. }));
    let files = GuestMemory::map(vec![region(0, 0x1000, 0)], Vec::new());
    assert!(matches!(
        files,
        Err(MemoryError::Files {
            regions: 1,
            files: 0
        })
    ));
}
