//! The life of a pool, as tables.
