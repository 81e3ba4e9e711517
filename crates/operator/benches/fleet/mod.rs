//! The receiver of webhooks as the operator has it, for the benchmark: the operator is a program and no library.

// The core and the bootstrap endpoint have no part in it, and tests are compiled but not run.
#[allow(dead_code, unused_imports)]
#[path = "../../src/fleet/border.rs"]
pub(crate) mod border;
pub(crate) mod core;
#[allow(dead_code, unused_imports)]
#[path = "../../src/fleet/servers/mod.rs"]
pub(crate) mod servers;
