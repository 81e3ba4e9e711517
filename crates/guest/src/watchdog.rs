//! The watchdog: a process of its own that starts the guest, and powers off as soon as the guest is gone or silent.

use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::output::Output;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs the guest, and returns when the machine has to be powered off.
pub(crate) fn watch(arguments: &Arguments, words: &[OsString], output: &Output, terminated: &Arc<AtomicBool>) {
    // The kernel shall not end the guest when a job uses all memory; without the right to say so it goes on.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let mut command = Command::new("/proc/self/exe");
    command.args(words).arg("--watched").stdin(Stdio::piped()).stdout(Stdio::piped());
    match command.spawn() {
        Ok(mut guest) => until_gone(&mut guest, arguments.hang, output, terminated),
        Err(error) => output.say(&format!("could not start the guest: {error}")),
    }
}

fn until_gone(guest: &mut Child, hang: Duration, output: &Output, terminated: &AtomicBool) {
    // Its end shows the guest that the watchdog is gone.
    let _stdin = guest.stdin.take();
    let beats = guest.stdout.take().map(beats);
    let clock = Clock::start();
    let (mut last, mut is_passed_on) = (clock.now(), false);
    loop {
        match beats.as_ref().map(|beats| beats.recv_timeout(Duration::from_millis(200))) {
            Some(Ok(())) => last = clock.now(),
            Some(Err(RecvTimeoutError::Timeout)) => {}
            // The guest has closed its output: it is about to exit, or something is wrong with it.
            Some(Err(RecvTimeoutError::Disconnected)) | None => thread::sleep(Duration::from_millis(200)),
        }
        match guest.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) if status.success() => return,
            Ok(Some(status)) => return output.say(&format!("the guest has failed: {status}")),
            Err(error) => return output.say(&format!("the guest cannot be watched: {error}")),
        }
        if clock.now() - last > hang {
            output.say(&format!("the guest was silent for {} seconds", hang.as_secs()));
            let _ = guest.kill();
            return;
        }
        if terminated.load(Ordering::Relaxed) && !is_passed_on {
            is_passed_on = true;
            if let Some(pid) = i32::try_from(guest.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

/// The signs of life of the guest: one for whatever it writes.
fn beats(mut stdout: ChildStdout) -> Receiver<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while stdout.read(&mut buffer).is_ok_and(|size| size > 0) {
            if sender.send(()).is_err() {
                break;
            }
        }
    });
    receiver
}
