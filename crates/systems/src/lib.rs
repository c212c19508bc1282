//! Arrays and file systems of real operating systems, each behind the same verbs.
