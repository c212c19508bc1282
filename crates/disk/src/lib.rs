//! Modelled disks: mechanics, firmware, caches, presets with provenance.
