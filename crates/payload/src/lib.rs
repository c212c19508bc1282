//! Buffers, and the array core's compute steps executed on their bytes.
