//! Tasks: work that goes on after the request that started it.

use crate::access::Caller;
use crate::effects::Work;
use crate::route::Call;
use crate::stand_in::{Happening, StandIn};
use serde_json::{Value, json};
use std::time::Duration;

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// `UPID:NODE:PID:PSTART:STARTTIME:TYPE:ID:USER:`
    pub upid: String,
    /// The node it runs on.
    pub node: String,
    /// What it does: `qmclone`, `qmstart` ...
    pub kind: &'static str,
    /// The VM that it is about, or nothing.
    pub id: String,
    /// Who started it.
    pub user: String,
    /// When it started.
    pub started: Duration,
    /// When it ended.
    pub ended: Option<Duration>,
    /// `OK`, or what went wrong.
    pub exit: Option<String>,
    /// What it printed.
    pub log: Vec<String>,
    pub(crate) pid: u32,
    pub(crate) pstart: u32,
    pub(crate) start_time: i64,
    pub(crate) due: Option<Duration>,
    pub(crate) work: Option<Work>,
    /// What it fails with at its end.
    pub(crate) planned_failure: Option<String>,
}

impl Task {
    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.exit.is_none()
    }

    /// As `tasks/UPID/status` has it.
    pub(crate) fn status(&self) -> Value {
        let (user, token) = self.user.split_once('!').unwrap_or((&self.user, ""));
        let mut status = json!({
            "upid": self.upid,
            "node": self.node,
            "pid": self.pid,
            "pstart": self.pstart,
            "starttime": self.start_time,
            "type": self.kind,
            "id": self.id,
            "user": user,
            "status": if self.is_running() { "running" } else { "stopped" },
        });
        if !token.is_empty() {
            status["tokenid"] = token.into();
        }
        if let Some(exit) = &self.exit {
            status["exitstatus"] = exit.as_str().into();
        }
        status
    }

    /// All lines of its log; the last one is the exit status.
    pub(crate) fn lines(&self) -> Vec<String> {
        let end = self.exit.as_ref().map(|exit| match exit.as_str() {
            "OK" => "TASK OK".to_owned(),
            error => format!("TASK ERROR: {error}"),
        });
        self.log.iter().cloned().chain(end).collect()
    }
}

impl StandIn {
    /// Starts a task that takes so long; returns its id.
    pub(crate) fn start_task(
        &mut self,
        call: &Call<'_>,
        kind: &'static str,
        id: &str,
        work: Work,
        takes: Duration,
    ) -> Value {
        let upid = self.new_task(&call.caller, call.node(), kind, id, call.now);
        let planned = self.faults.take_planned(call.request);
        let lock = self.wait_for_vm(&work, call.now);
        let Some(task) = self.tasks.get_mut(&upid) else { return Value::Null };
        let due = match lock {
            Ok(from) => Some(from + takes),
            Err(text) => {
                task.planned_failure = Some(text);
                Some(call.now + self.timing.vm_lock)
            }
        };
        task.work = Some(work);
        task.due = due;
        match planned {
            Some(Some(text)) => task.planned_failure = Some(text),
            Some(None) => task.due = None,
            None => {}
        }
        if let Some(due) = task.due {
            self.schedule(due, Happening::TaskDue(upid.clone()));
        }
        upid.into()
    }

    fn new_task(&mut self, caller: &Caller, node: &str, kind: &'static str, id: &str, now: Duration) -> String {
        self.next_pid += 1 + u32::try_from(self.random.next() % 7).unwrap_or_default();
        let (pid, pstart) = (self.next_pid, u32::try_from(now.as_millis() / 10 + 100_000).unwrap_or(u32::MAX));
        let (start_time, user) = (self.clock(now), caller.subject());
        let upid = format!("UPID:{node}:{pid:08X}:{pstart:08X}:{start_time:08X}:{kind}:{id}:{user}:");
        let task = Task {
            upid: upid.clone(),
            node: node.to_owned(),
            kind,
            id: id.to_owned(),
            user,
            started: now,
            ended: None,
            exit: None,
            log: Vec::new(),
            pid,
            pstart,
            start_time,
            due: None,
            work: None,
            planned_failure: None,
        };
        self.tasks.insert(upid.clone(), task);
        self.running.insert(upid.clone());
        upid
    }

    pub(crate) fn running_tasks(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().filter_map(|upid| self.tasks.get(upid))
    }

    /// From when on the lock of the VM is free, or the error if that is too late.
    fn wait_for_vm(&self, work: &Work, now: Duration) -> Result<Duration, String> {
        let Some(vmid) = work.locks() else { return Ok(now) };
        let mut free = now;
        for task in self.running_tasks().filter(|task| task.work.as_ref().and_then(Work::locks) == Some(vmid)) {
            match task.due {
                Some(due) if due <= now + self.timing.vm_lock => free = free.max(due),
                _ => return Err(format!("can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout")),
            }
        }
        Ok(free)
    }

    /// Ends a task whose time has come.
    pub(crate) fn finish_task(&mut self, upid: &str, now: Duration) {
        let Some(task) = self.tasks.get_mut(upid) else { return };
        if !task.is_running() || task.due != Some(now) {
            return;
        }
        let planned = task.planned_failure.take();
        let Some(work) = task.work.take() else { return };
        let outcome = self.perform(upid, work, planned, now);
        let Some(exit) = outcome else { return };
        self.end(upid, exit, now);
    }

    /// Ends a task in the middle, as if its process was killed: what it did so far is undone where the real one does so.
    pub(crate) fn interrupt(&mut self, upid: &str, now: Duration) {
        let Some(task) = self.tasks.get_mut(upid).filter(|task| task.is_running()) else { return };
        let work = task.work.take();
        if let Some(work) = work {
            self.undo(&work);
        }
        self.end(upid, "interrupted by signal".to_owned(), now);
    }

    fn end(&mut self, upid: &str, exit: String, now: Duration) {
        if let Some(task) = self.tasks.get_mut(upid) {
            task.exit = Some(exit);
            task.ended = Some(now);
            task.due = None;
            task.work = None;
        }
        self.running.remove(upid);
        self.forget_old_tasks();
    }

    /// The real server keeps a long archive; here it is bounded so that long simulations stay small.
    fn forget_old_tasks(&mut self) {
        const MOST: usize = 20_000;
        if self.tasks.len() > MOST {
            let mut ended: Vec<(Duration, String)> =
                self.tasks.values().filter_map(|task| Some((task.ended?, task.upid.clone()))).collect();
            ended.sort();
            for (_, upid) in ended.into_iter().take(MOST / 10) {
                self.tasks.remove(&upid);
            }
        }
    }
}
