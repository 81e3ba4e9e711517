//! Machines of the stand-in of Proxmox VE that really run their guest: `virtpilot-guest` as a process for each machine that is switched on,
//! with the configuration of its cloud-init image, and with a program in place of the runner of GitHub or GitLab.

mod gitlab_runner;
mod image;
mod machine;
mod runner;
mod server;

pub use runner::run as run_runner;

use crate::proxmox::ProxmoxStandIn;
use crate::user_error::UserError;
use image::Image;
use machine::Machine;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked who is switched on.
const PAUSE: Duration = Duration::from_millis(10);

/// One run of one machine: what has the same id later is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    vmid: u32,
    birth: u64,
    since: Duration,
}

/// All machines with a guest, until this value is dropped.
pub struct Machines {
    image: Image,
    said: Arc<Mutex<String>>,
    faults: Arc<Mutex<VecDeque<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Machines {
    /// Starts the guests of all machines that are switched on from now on. A job takes so long. The CI platform has its certificate from this
    /// authority; `lost` hears of each of its runners whose machine is off.
    pub fn start(
        proxmox: &ProxmoxStandIn,
        ca: &str,
        job: Duration,
        lost: impl Fn(u64) + Send + 'static,
    ) -> Result<Machines, UserError> {
        let image = Image::create(ca, job)?;
        let (stop, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(String::new())));
        let faults = Arc::new(Mutex::new(VecDeque::new()));
        let room = Room {
            proxmox: proxmox.shared(),
            lost: Box::new(lost),
            folder: image.folder().to_owned(),
            stop: Arc::clone(&stop),
            said: Arc::clone(&said),
            faults: Arc::clone(&faults),
            machines: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("machines".into()).spawn(move || room.run());
        let thread = thread.map_err(|error| {
            UserError::new("the machines cannot be started", "close other programs and run again").with_source(error)
        })?;
        Ok(Machines { image, said, faults, stop, thread: Some(thread) })
    }

    /// The archive with the runner, as it is in the image of the machines: its path, and its SHA-256.
    pub fn archive(&self) -> (&Path, &str) {
        self.image.archive()
    }

    /// Everything that guests have written to their consoles.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The guests that start next have these faults, one each, as `virtpilot-guest --fault` takes them.
    pub fn break_next(&self, faults: impl IntoIterator<Item = String>) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// The disks of the machines that are switched on.
    pub fn disks(&self) -> PathBuf {
        self.image.folder().to_owned()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Room {
    proxmox: Arc<crate::proxmox::Shared>,
    lost: Box<dyn Fn(u64) + Send>,
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    said: Arc<Mutex<String>>,
    faults: Arc<Mutex<VecDeque<String>>>,
    machines: BTreeMap<Run, Machine>,
}

impl Room {
    fn run(mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            self.follow();
            std::thread::sleep(PAUSE);
        }
        for (run, machine) in std::mem::take(&mut self.machines) {
            self.end(run, machine);
        }
    }

    /// Starts and ends processes as machines are switched on and off, and the other way round.
    fn follow(&mut self) {
        let mut on = BTreeMap::new();
        let machines = &self.machines;
        self.proxmox.with(|state, now| {
            for (vmid, vm) in state.vms() {
                let Some(power) = vm.run.filter(|power| now >= power.since + vm.guest.boot) else { continue };
                let run = Run { vmid: *vmid, birth: vm.birth, since: power.since };
                let config = || state.medium(*vmid).and_then(machine::guest_config);
                on.insert(run, if machines.contains_key(&run) { None } else { config() });
            }
        });
        let gone: Vec<Run> = self.machines.keys().filter(|run| !on.contains_key(run)).copied().collect();
        for run in gone {
            if let Some(machine) = self.machines.remove(&run) {
                self.end(run, machine);
            }
        }
        for (run, config) in on {
            if let Some(machine) = self.machines.get_mut(&run) {
                if machine.has_powered_off() {
                    self.power_off(run);
                }
                continue;
            }
            let start = |config| {
                let fault = self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                Machine::start(&self.folder, run, &config, fault.as_deref())
            };
            match config.map(start) {
                Some(Ok(machine)) => drop(self.machines.insert(run, machine)),
                Some(Err(error)) => self.say(run, &error.to_string()),
                None => {}
            }
        }
    }

    fn power_off(&self, run: Run) {
        self.proxmox.with(|state, _| {
            if state.vm(run.vmid).is_some_and(|vm| vm.birth == run.birth) {
                state.power_off(run.vmid);
            }
        });
    }

    /// A machine is off: nothing of it runs on, and nobody tells the CI platform, which finds out later.
    fn end(&self, run: Run, machine: Machine) {
        let (text, runner) = machine.end();
        self.say(run, &text);
        if let Some(id) = runner {
            (self.lost)(id);
        }
    }

    fn say(&self, run: Run, text: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        text.lines().for_each(|line| said.push_str(&format!("machine {}: {line}\n", run.vmid)));
    }
}
