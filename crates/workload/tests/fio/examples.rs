//! The example job files of fio's own source, from `RAIDLAB_FIO_EXAMPLES` or where
//! Debian's package puts them: each is modelled or refused by name. Says so where
//! there are none. They are fio's (GPL) and no part of this project.

use raidlab_random::Stream;
use raidlab_units::{Bytes, lists};
use raidlab_workload::{FioJobs, JobFileError, Permission, Placed, ZonedDevice};
use std::path::{Path, PathBuf};

/// A mirror of two disks of 8 TB.
const DEVICE: Bytes = Bytes(8_001_563_222_016);

/// Options beside the load that examples use, and values for their variables:
/// what a user would allow who wants to see them on a modelled array.
const ALLOWED: &str = "\
     filename directory filename_format write_bw_log write_lat_log ioengine verify_dump \
     clientname pool conf rbdname cont volume brick nfs_url uri libblkio_path hostname port \
     listen http_host program arguments std_redirect donorname ${FIO_BS}=4k ${FIO_RW}=randread \
     ${FIO_IODEPTH}=4 ${POOL}=p ${CONT}=c ${uri}=nbd://localhost ${FIO_DIR}=/d ${GPU_DEV_IDS}=0 \
     ${S3_KEY}=k ${S3_ID}=i ${SSE_KEY}=s ${STORAGE_CLASS}=c ${SWIFT_id}=s http_s3_key \
     http_s3_keyid http_swift_auth_token";

/// Those that are modelled, where the examples at hand have them.
const MODELLED: &str = "\
     1mbs_clients aio-read atomic-verify backwards-read basic-verify butterfly cmdprio-bssplit \
     cmdprio-percentage cpp_null cross-stripe-verify dedupe-global dev-dax dfs disk-zone-profile \
     enospc-pressure example_latency_steadystate exitwhat fio-rand-RW fio-rand-read \
     fio-rand-write fio-seq-RW fio-seq-read fio-seq-write fixed-rate-submission flow fsx gfapi \
     http-s3 http-s3-crypto http-s3-storage-class http-swift http-webdav ime \
     iometer-file-access-server jesd219 latency-profile libblkio-io_uring \
     libblkio-virtio-blk-vfio-pci libcufile-cufile libcufile-posix libhdfs libhipfile-hipfile \
     libhipfile-posix libiscsi libpmem libzbc-rand-write libzbc-seq-read mtd nbd nfs null numa \
     poisson-rate-submission rados rand-zones rbd sequence-distribution sprandom ssd-steadystate \
     ssd-test steadystate surface-scan tiobench-example uring-cmd-fdp uring-cmd-ng \
     uring-cmd-pi-ext uring-cmd-pi-sb uring-cmd-trim-multi-range waitfor xnvme-compare xnvme-fdp \
     xnvme-pi zbd-rand-write zbd-rand-write-trim-gc zbd-rand-write-zone-reset-gc zbd-seq-read \
     zipf";

fn examples() -> Vec<PathBuf> {
    let folder = std::env::var_os("RAIDLAB_FIO_EXAMPLES").map_or_else(
        || PathBuf::from("/usr/share/doc/fio/examples"),
        PathBuf::from,
    );
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!(
            "no examples of fio's in {}: nothing is read",
            folder.display()
        );
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "fio"))
        .collect();
    paths.sort();
    paths
}

fn permission() -> Permission {
    let mut permission = Permission::default();
    for allowed in ALLOWED.split_whitespace() {
        permission
            .allow(allowed, |_| None)
            .expect("an option of fio's");
    }
    permission
}

fn read(path: &Path) -> Result<(), JobFileError> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path).expect("readable");
    let none = |_: &str| Err("no file".to_owned());
    let jobs = FioJobs::from_job_file(&name, &text, &permission(), &none)?;
    let file = jobs.model()?;
    for job in file.groups.iter().flat_map(|group| &group.jobs) {
        for clone in 0..job.num_jobs {
            let mut stream = job
                .request_stream(clone, DEVICE, Stream::new(1))
                .unwrap_or_else(|error| panic!("{name}, {}: {error}", job.name));
            let mut zones = ZonedDevice::default();
            for _ in 0..1_000 {
                let Some(drawn) = stream.next_unit() else {
                    break;
                };
                let unit = match zones.place((clone, job), stream.region(), drawn, true) {
                    Placed::At(unit) => {
                        zones.ended(job, unit);
                        unit
                    }
                    Placed::Emptied(unit) => unit,
                    Placed::Wait => panic!("{name}: nothing is in flight"),
                    Placed::Nowhere => break,
                };
                stream.put(&drawn, &unit);
                let ranges = std::iter::from_fn(|| stream.next_range());
                for unit in std::iter::once(unit).chain(ranges) {
                    let end = unit.offset.0 + unit.length.0;
                    assert!(end <= DEVICE.0, "{name}: {unit:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn each_example_is_modelled_or_refused_by_name() {
    let examples = examples();
    let mut modelled = Vec::new();
    for path in &examples {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match read(path) {
            Ok(()) => modelled.push(stem),
            Err(error) => {
                let text = raidlab_units::in_one_line(&error);
                assert!(text.contains(".fio, line "), "{text}");
                assert!(!lists(MODELLED, &stem), "{text}");
                println!("refused: {text}");
            }
        }
    }
    // All that fio's source tree has since 3.40.
    assert!(examples.len() < 107 || modelled.len() >= 77);
    println!(
        "modelled: {} of {}: {}",
        modelled.len(),
        examples.len(),
        modelled.join(" ")
    );
}
