//! The model bench: experiments on modelled disks in virtual time.
