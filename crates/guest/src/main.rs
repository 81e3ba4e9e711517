//! The guest of a runner's machine: gets the runner's credentials, runs one job, and powers the machine off, whatever happens.

mod archive;
mod arguments;
mod clock;
mod config;
mod credentials;
mod fault;
mod guest;
mod http;
mod life;
mod operator;
mod output;
mod power;
mod runner;
mod users;
mod watchdog;
mod wipe;

use arguments::{Arguments, HELP, Request};
use clock::Clock;
use guest::Guest;
use life::{Action, Event, Life};
use output::Output;
use power::Power;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The longest time between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// How long a report after a panic may take.
const LAST_WORDS: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    let output = Arc::new(Output::default());
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments = match arguments::parse(words.iter().cloned()) {
        Ok(Request::Run(arguments)) => *arguments,
        Ok(Request::Help) => return print(HELP),
        Ok(Request::Version) => return print(concat!("virtpilot-guest ", env!("CARGO_PKG_VERSION"), "\n")),
        Err(error) => {
            output.say(&error);
            return off(&Power::Machine, &output);
        }
    };
    // A crash must not write what the guest knows to the disk.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let terminated = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&terminated)) {
            output.say(&format!("signal {signal} cannot be handled: {error}"));
        }
    }
    if arguments.is_watched {
        return live(arguments, &output, &terminated);
    }
    let (power, said) = (arguments.power.clone(), Arc::clone(&output));
    std::panic::set_hook(Box::new(move |panic| {
        said.say(&format!("the watchdog has a fault: {panic}"));
        off(&power, &said);
        exit(101);
    }));
    watchdog::watch(&arguments, &words, &output, &terminated);
    off(&arguments.power, &output)
}

fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Powers off, again and again: in a machine that stays on nothing else is left to do.
fn off(power: &Power, output: &Output) -> ExitCode {
    loop {
        output.say("powering off");
        power.off(output);
        if cfg!(debug_assertions) || !rustix::process::geteuid().is_root() {
            return ExitCode::SUCCESS;
        }
        thread::sleep(Duration::from_secs(10));
    }
}

/// The life of the guest under its watchdog, which powers off when this returns.
fn live(arguments: Arguments, output: &Arc<Output>, terminated: &AtomicBool) -> ExitCode {
    let clock = Clock::start();
    let (power, fault) = (arguments.power.clone(), arguments.fault);
    let (sender, events) = channel();
    let is_alone = watch_the_watchdog(sender.clone());
    let guest = Arc::new(Guest::new(arguments, Arc::clone(output), clock, sender));
    let at = Arc::new(Mutex::new(None));
    end_on_panic(&guest, &at);
    let (mut life, mut actions) = Life::start();
    let mut is_terminated = false;
    loop {
        if let Ok(mut at) = at.lock() {
            *at = life.at();
        }
        fault.happens_in_main(life.at());
        for action in actions {
            if action == Action::PowerOff {
                return if is_alone.load(Ordering::Relaxed) { off(&power, output) } else { ExitCode::SUCCESS };
            }
            guest.carry_out(action);
        }
        // A watchdog that is gone has no use for it.
        let _ = std::io::stdout().write_all(b".").and_then(|()| std::io::stdout().flush());
        let pause = life.deadline().saturating_sub(clock.now()).min(BEAT);
        let event = events.recv_timeout(pause).unwrap_or(Event::Tick);
        let now = clock.now();
        actions = life.step(event, now);
        if !is_terminated && (terminated.load(Ordering::Relaxed) || is_alone.load(Ordering::Relaxed)) {
            is_terminated = true;
            actions.extend(life.step(Event::Terminate, now));
        }
    }
}

/// Notices that the watchdog is gone: nobody else would power off.
fn watch_the_watchdog(events: Sender<Event>) -> Arc<AtomicBool> {
    let is_alone = Arc::new(AtomicBool::new(false));
    let found = Arc::clone(&is_alone);
    thread::spawn(move || {
        let mut byte = [0];
        while std::io::stdin().read(&mut byte).is_ok_and(|size| size > 0) {}
        found.store(true, Ordering::Relaxed);
        let _ = events.send(Event::Tick);
    });
    is_alone
}

/// After a panic in any thread, the reason is reported and everything wiped; the watchdog then powers off.
fn end_on_panic(guest: &Arc<Guest>, at: &Arc<Mutex<Option<bootstrap::Step>>>) {
    let (guest, at) = (Arc::clone(guest), Arc::clone(at));
    std::panic::set_hook(Box::new(move |panic| {
        let step = at.try_lock().ok().and_then(|at| *at);
        guest.panicked(&format!("the guest has a fault: {panic}"), step, LAST_WORDS);
        exit(101);
    }));
}
