use super::{ModuleError, Modules, alias_file, dependency_file};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::fs;
use std::path::Path;

/// Writes a module that says these things of itself.
fn module(folder: &Path, path: &str, information: &[&str]) {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
    let text: String = information.iter().flat_map(|pair| [pair, "\0"]).collect();
    object.append_section_data(section, text.as_bytes(), 1);
    let file = folder.join(path);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(file, object.write().expect("an ELF file")).expect("written");
}

/// The part of a kernel that RAID 5 and 6 need, as Debian's 6.1 has it.
fn kernel() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    module(
        at,
        "kernel/drivers/md/raid456.ko",
        &[
            "alias=md-level-6",
            "alias=md-level-5",
            "depends=async_tx,md-mod,raid6_pq,async_pq",
            "name=raid456",
        ],
    );
    module(at, "kernel/drivers/md/md-mod.ko", &["alias=md", "depends="]);
    module(at, "kernel/lib/raid6/raid6_pq.ko", &["depends="]);
    module(at, "kernel/crypto/async_tx/async_tx.ko", &["depends="]);
    module(
        at,
        "kernel/crypto/async_tx/async_pq.ko",
        &["depends=async_tx,raid6_pq,crc32"],
    );
    module(at, "kernel/fs/broken.ko", &["depends=nowhere"]);
    fs::write(at.join("modules.builtin"), "kernel/lib/crc32.ko\n").expect("written");
    folder
}

#[test]
fn each_module_comes_after_those_it_needs() {
    let folder = kernel();
    let modules = Modules::below(folder.path()).expect("modules");
    let order = modules.closure(["raid456", "md_mod"]).expect("all here");
    let names: Vec<_> = order.iter().map(|module| module.name.as_str()).collect();
    assert_eq!(
        names,
        ["async_tx", "md_mod", "raid6_pq", "async_pq", "raid456"]
    );
    for (place, module) in order.iter().enumerate() {
        assert!(modules.file(module).is_file());
        for needed in module.depends.iter().filter(|name| *name != "crc32") {
            assert!(names[..place].contains(&needed.as_str()), "{needed}");
        }
    }
}

#[test]
fn what_modprobe_reads() {
    let folder = kernel();
    let modules = Modules::below(folder.path()).expect("modules");
    let order = modules.closure(["raid456"]).expect("all here");
    insta::assert_snapshot!(dependency_file(&order) + &alias_file(&order), @r"
    kernel/crypto/async_tx/async_tx.ko:
    kernel/drivers/md/md-mod.ko:
    kernel/lib/raid6/raid6_pq.ko:
    kernel/crypto/async_tx/async_pq.ko: kernel/lib/raid6/raid6_pq.ko kernel/crypto/async_tx/async_tx.ko
    kernel/drivers/md/raid456.ko: kernel/crypto/async_tx/async_pq.ko kernel/lib/raid6/raid6_pq.ko kernel/drivers/md/md-mod.ko kernel/crypto/async_tx/async_tx.ko
    alias md md_mod
    alias md-level-6 raid456
    alias md-level-5 raid456
    ");
}

#[test]
fn what_is_built_in_is_there_but_not_loaded() {
    let folder = kernel();
    let modules = Modules::below(folder.path()).expect("modules");
    assert!(modules.has("crc32") && modules.has("md-mod") && !modules.has("xfs"));
    assert_eq!(modules.closure(["crc32"]).expect("built in"), []);
}

#[test]
fn what_the_kernel_has_not_is_named() {
    let folder = kernel();
    let modules = Modules::below(folder.path()).expect("modules");
    let error = modules.closure(["broken"]).expect_err("it needs another");
    assert!(
        error.to_string().ends_with("has no module nowhere"),
        "{error}"
    );
    fs::write(folder.path().join("kernel/fs/text.ko"), "no module").expect("written");
    let modules = Modules::below(folder.path()).expect("modules");
    let error = modules.closure(["text"]).expect_err("no ELF file");
    assert!(matches!(error, ModuleError::Elf { .. }), "{error:?}");
}

#[test]
fn a_folder_without_modules_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Modules::below(folder.path()).expect_err("empty");
    assert!(matches!(error, ModuleError::None { .. }), "{error:?}");
}
