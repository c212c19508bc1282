//! What the name of a disk's model says of it.

/// Drives that store 4096-byte sectors and say 512, or that are known to from
/// their makers' papers alone.
///
/// Western Digital: its first Advanced Format drives (models ending in ARS,
/// EARS, EARX, EZRS, EZRX), which report 512 bytes. Samsung: EcoGreen F4.
/// Seagate: BarraCuda and IronWolf product manuals, "512E". Not complete.
const FOUR_KIB_MODELS: &[&str] = &[
    "WD5000AARS",
    "WD6400AARS",
    "WD7500AARS",
    "WD8000AARS",
    "WD10EARS",
    "WD15EARS",
    "WD20EARS",
    "WD25EZRS",
    "WD30EZRS",
    "WD10EARX",
    "WD15EARX",
    "WD20EARX",
    "WD25EZRX",
    "WD30EZRX",
    "WD40EFRX",
    "WD40EFAX",
    "HD155UI",
    "HD204UI",
    "ST2000DM008",
    "ST4000DM004",
    "ST6000DM003",
    "ST8000DM004",
    "ST4000VN008",
    "ST6000VN001",
    "ST12000VN0007",
    "ST12000VN0008",
];

/// How models of disks that turn begin.
const ROTATING_MODELS: &[&str] = &[
    "WD", "ST", "HDWD", "HDWL", "DT0", "MQ0", "MG0", "HUA", "HUS", "HUH", "HDS", "HDT", "HD10",
    "HD15", "HD20", "SP0", "SP1", "SP2",
];

fn words(model: &str) -> impl Iterator<Item = String> {
    let parts = model.split([' ', '_']);
    parts.map(str::to_ascii_uppercase)
}

/// Whether a model stores 4096-byte sectors, whatever it reports.
pub(super) fn has_4_kib_sectors(model: &str) -> bool {
    words(model).any(|word| FOUR_KIB_MODELS.iter().any(|known| word.starts_with(known)))
}

/// Whether a model's name is one of disks that turn: a known beginning with a
/// digit after it, so that WDS500G (an SSD) is none.
pub(super) fn is_rotating_model(model: &str) -> bool {
    words(model).any(|word| {
        ROTATING_MODELS.iter().any(|begin| {
            let rest = word.strip_prefix(begin);
            rest.is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
        })
    })
}

/// Disks that a hypervisor makes up.
pub(super) fn is_virtual_model(model: &str) -> bool {
    words(model).any(|word| {
        ["QEMU", "VBOX", "VMWARE", "VIRTUAL", "MSFT"]
            .iter()
            .any(|known| word.starts_with(known))
    })
}

#[cfg(test)]
mod tests {
    use super::is_rotating_model;

    #[test]
    fn models_tell_what_turns() {
        for model in [
            "WDC WD15EARS-00Z5B1",
            "ST4000DM004-2CV104",
            "SAMSUNG SP1614N",
            "wd4000fyyz",
        ] {
            assert!(is_rotating_model(model), "{model}");
        }
        for model in [
            "WDC WDS500G2B0A",
            "Samsung SSD 950 PRO",
            "SanDisk SDSSDH3",
            "",
        ] {
            assert!(!is_rotating_model(model), "{model}");
        }
    }
}
