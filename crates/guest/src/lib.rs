//! A throw-away virtual machine with this host'"s.
