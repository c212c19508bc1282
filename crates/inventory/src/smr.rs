//! Disk models whose firmware hides shingled tracks (drive-managed SMR).
//!
//! Such a drive reports `zoned: none` like any other. It writes fast into a conventional area and
//! then, once that is full, rewrites whole bands: rates fall to a tenth and single commands last
//! seconds. So it is recognized only by its model; the list holds what the makers have published
//! and is not complete. A model that is not in it may be shingled too.

/// A family of models with shingled tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// The beginning of the model number, as the drive reports it without a maker's name before it.
    pub begins: &'static str,
    /// The document that states it for the family.
    pub source: &'static str,
}

const WESTERN_DIGITAL: &str =
    "Western Digital, \"On WD Red NAS Drives\", blog post with the list of SMR models, April 2020";
const SEAGATE: &str = "Seagate, \"CMR and SMR Hard Drives\", product list";
const SEAGATE_ARCHIVE: &str = "Seagate, Archive HDD product manual";
const TOSHIBA: &str = "Toshiba Electronic Devices & Storage, news of 2020-04-28 on SMR in \
                       consumer drives";

/// The families, by maker.
pub(crate) const MODELS: &[Model] = &[
    by("WD20EFAX", WESTERN_DIGITAL),
    by("WD30EFAX", WESTERN_DIGITAL),
    by("WD40EFAX", WESTERN_DIGITAL),
    by("WD60EFAX", WESTERN_DIGITAL),
    by("WD20EZAZ", WESTERN_DIGITAL),
    by("WD60EZAZ", WESTERN_DIGITAL),
    by("WD10SPZX", WESTERN_DIGITAL),
    by("WD20SPZX", WESTERN_DIGITAL),
    by("WD10SPSX", WESTERN_DIGITAL),
    by("ST2000DM008", SEAGATE),
    by("ST3000DM007", SEAGATE),
    by("ST4000DM004", SEAGATE),
    by("ST6000DM003", SEAGATE),
    by("ST8000DM004", SEAGATE),
    by("ST500LM030", SEAGATE),
    by("ST1000LM048", SEAGATE),
    by("ST2000LM015", SEAGATE),
    by("ST3000LM024", SEAGATE),
    by("ST4000LM024", SEAGATE),
    by("ST5000LM000", SEAGATE),
    by("ST5000AS0011", SEAGATE_ARCHIVE),
    by("ST6000AS0002", SEAGATE_ARCHIVE),
    by("ST8000AS0002", SEAGATE_ARCHIVE),
    by("HDWD240", TOSHIBA),
    by("HDWD260", TOSHIBA),
    by("DT02ABA400", TOSHIBA),
    by("DT02ABA600", TOSHIBA),
    by("HDWL110", TOSHIBA),
    by("HDWL120", TOSHIBA),
    by("MQ04ABF100", TOSHIBA),
    by("MQ04ABD200", TOSHIBA),
];

const fn by(begins: &'static str, source: &'static str) -> Model {
    Model { begins, source }
}

/// The entry for a model as a drive reports it: `ST4000DM004-2CV104`,
/// `WDC WD40EFAX-68JH4N0`, `TOSHIBA HDWD240`; or as people and presets write it, `st4000dm004`.
#[must_use]
pub fn find(model: &str) -> Option<&'static Model> {
    let mut words = model.split([' ', '_']).map(str::to_ascii_uppercase);
    words.find_map(|word| MODELS.iter().find(|known| word.starts_with(known.begins)))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn shingled_models_are_found_under_the_names_that_drives_report() {
        for model in [
            "ST4000DM004-2CV104",
            "WDC WD40EFAX-68JH4N0",
            "TOSHIBA HDWD240",
            "WDC_WD60EFAX-68SHWN0",
            "st4000dm004",
        ] {
            assert!(find(model).is_some(), "{model}");
        }
    }

    #[test]
    fn conventional_models_are_not() {
        for model in [
            "WDC WD4000FYYZ-01UL1B2",
            "WDC WD40EFRX-68N32N0",
            "ST6000VN001",
            "",
        ] {
            assert!(find(model).is_none(), "{model}");
        }
    }
}
