//! Arrays and modelled disks on real files, served over NBD.
