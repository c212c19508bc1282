//! A throw-away virtual machine with the tools of its host.
