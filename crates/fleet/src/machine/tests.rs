//! The life of one claim, as tables.
