//! How long everything takes.

use std::time::Duration;

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A linked clone.
    pub linked_clone: Duration,
    /// A full clone.
    pub full_clone: Duration,
    /// The task that starts a VM.
    pub start: Duration,
    /// From the start of a VM until its guest agent answers.
    pub boot: Duration,
    /// The task that stops a VM.
    pub stop: Duration,
    /// A shutdown by the guest.
    pub shutdown: Duration,
    /// The task that destroys a VM.
    pub destroy: Duration,
    /// A change of the configuration, a resize, and the deletion of a volume.
    pub change: Duration,
    /// The copy of an upload into its storage.
    pub upload: Duration,
    /// How long a clone waits for the lock of its source.
    pub clone_lock: Duration,
    /// How long other tasks wait for the lock of their VM.
    pub vm_lock: Duration,
    /// The time between two rounds of the status daemon; zero to show in `cluster/resources` what is true now.
    pub statistics: Duration,
}

impl Timing {
    /// Times of a small cluster with real disks.
    pub const fn real() -> Timing {
        let seconds = Duration::from_secs;
        Timing {
            linked_clone: seconds(3),
            full_clone: seconds(40),
            start: seconds(2),
            boot: seconds(25),
            stop: seconds(1),
            shutdown: seconds(6),
            destroy: seconds(2),
            change: Duration::from_millis(300),
            upload: seconds(1),
            clone_lock: seconds(1),
            vm_lock: seconds(10),
            statistics: seconds(10),
        }
    }

    /// Times for tests with a real clock: the same order of events, in milliseconds.
    pub const fn short() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            linked_clone: milliseconds(40),
            full_clone: milliseconds(80),
            start: milliseconds(20),
            boot: milliseconds(100),
            stop: milliseconds(20),
            shutdown: milliseconds(60),
            destroy: milliseconds(20),
            change: milliseconds(5),
            upload: milliseconds(10),
            clone_lock: milliseconds(20),
            vm_lock: milliseconds(200),
            statistics: milliseconds(50),
        }
    }

    /// Times for an audience: every step can be seen, and a VM is up within two seconds.
    pub const fn demo() -> Timing {
        let milliseconds = Duration::from_millis;
        Timing {
            linked_clone: milliseconds(200),
            full_clone: milliseconds(600),
            start: milliseconds(200),
            boot: milliseconds(1000),
            stop: milliseconds(150),
            shutdown: milliseconds(400),
            destroy: milliseconds(200),
            change: milliseconds(30),
            upload: milliseconds(50),
            clone_lock: milliseconds(100),
            vm_lock: milliseconds(1000),
            statistics: milliseconds(200),
        }
    }
}
