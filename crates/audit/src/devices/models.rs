//! Properties of a disk that follow from the name of its model.

/// Drives that store 4096-byte sectors but report 512 bytes, or whose sector size is known from
/// their makers' papers alone.
///
/// Western Digital: its first Advanced Format drives (models ending in ARS,
/// EARS, EARX, EZRS, EZRX), which report 512 bytes. Samsung: EcoGreen F4.
/// Seagate: BarraCuda and IronWolf product manuals, "512E". Not complete.
const FOUR_KIB_MODELS: &str = include_str!("models/four_kib.txt");

/// The beginnings of the model names of rotating disks.
const ROTATING_MODELS: &str =
    "WD ST HDWD HDWL DT0 MQ0 MG0 HUA HUS HUH HDS HDT HD10 HD15 HD20 SP0 SP1 SP2";

fn words(model: &str) -> impl Iterator<Item = String> {
    let parts = model.split([' ', '_']);
    parts.map(str::to_ascii_uppercase)
}

/// Whether a word of a model's name begins with one of these.
fn begins_with(model: &str, known: &str) -> bool {
    words(model).any(|word| {
        let mut known = known.split_whitespace();
        known.any(|known| word.starts_with(known))
    })
}

/// Whether a model stores 4096-byte sectors, whatever it reports.
pub(super) fn has_4_kib_sectors(model: &str) -> bool {
    begins_with(model, FOUR_KIB_MODELS)
}

/// Whether a model's name is that of a rotating disk: a known beginning with a digit after it, so
/// that WDS500G (an SSD) does not count.
pub(super) fn is_rotating_model(model: &str) -> bool {
    words(model).any(|word| {
        ROTATING_MODELS.split_whitespace().any(|begin| {
            let rest = word.strip_prefix(begin);
            rest.is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
        })
    })
}

/// Whether a model's name is that of a virtual disk made by a hypervisor.
pub(super) fn is_virtual_model(model: &str) -> bool {
    begins_with(model, "QEMU VBOX VMWARE VIRTUAL MSFT")
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
