//! What a job is, in fio's terms, and the requests it makes.
