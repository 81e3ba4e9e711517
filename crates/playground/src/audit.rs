//! Counts API requests from the API server's audit log.

use crate::user_error::{self, UserError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The audit log of an API server.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A position in the log, where a window begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Mark {
    /// The beginning of the log.
    pub const BEGINNING: Mark = Mark(0);
}

/// The category of a request. Every request has exactly one: the first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A dry run.
    DryRun,
    /// A watch.
    Watch,
    /// Any other request for a Lease.
    Lease,
    /// Any other request for an Event.
    Event,
    /// Any other request for the ConfigMap with the operator's report.
    Report,
    /// A read.
    Read,
    /// A write.
    Write,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The user who made it.
    pub user: String,
    /// The Kubernetes verb: get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// `resource[/subresource][.group]`, or the path of a non-resource request.
    pub resource: String,
    /// The object's name; empty if there is none.
    pub name: String,
    /// Its category.
    pub kind: Kind,
    /// The HTTP status of the response.
    pub code: u16,
    /// When the server received it.
    pub at: Timestamp,
    /// When the server finished the response.
    pub ended: Timestamp,
}

/// The requests of a window of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(pub Vec<Request>);

/// Where the last complete line ends: the server may be in the middle of writing another.
fn end_of_last_line(mut file: File) -> std::io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let mut chunk = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (&mut file).take(end - start).read_to_end(&mut chunk)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

impl AuditLog {
    /// The log in this file.
    pub fn at(path: impl Into<PathBuf>) -> AuditLog {
        AuditLog { path: path.into() }
    }

    /// The current end of the log. The server logs a request before its response ends, so every finished request is before it.
    pub fn mark(&self) -> Result<Mark, UserError> {
        match File::open(&self.path).and_then(end_of_last_line) {
            Ok(end) => Ok(Mark(end)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Mark::BEGINNING),
            Err(error) => Err(user_error::io("read the audit log", &self.path, error)),
        }
    }

    /// The requests finished since a mark.
    pub fn since(&self, from: Mark) -> Result<Requests, UserError> {
        self.between(from, Mark(u64::MAX))
    }

    /// The requests finished between two marks.
    pub fn between(&self, from: Mark, to: Mark) -> Result<Requests, UserError> {
        let (mut requests, mut started) = (Vec::new(), BTreeSet::new());
        self.read(from, to, |entry| requests.extend(entry.request(&mut started)))?;
        Ok(Requests(requests))
    }

    /// The watches that are open.
    pub fn open_watches(&self) -> Result<Requests, UserError> {
        let mut open = BTreeMap::new();
        self.read(Mark::BEGINNING, Mark(u64::MAX), |entry| {
            let (id, starts) = (entry.audit_id.clone(), entry.stage == "ResponseStarted");
            match entry.request(&mut BTreeSet::new()) {
                Some(watch) if starts && watch.code < 400 => open.insert(id, watch),
                _ => open.remove(&id),
            };
        })?;
        Ok(Requests(open.into_values().collect()))
    }

    fn read(&self, from: Mark, to: Mark, mut take: impl FnMut(Entry)) -> Result<(), UserError> {
        let failed = |error| user_error::io("read the audit log", &self.path, error);
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(from.0)).map_err(failed)?;
        let mut lines = BufReader::new(file);
        let mut position = from.0;
        let mut line = String::new();
        while position < to.0 {
            line.clear();
            let length = lines.read_line(&mut line).map_err(failed)?;
            if !line.ends_with('\n') {
                break;
            }
            position += length as u64;
            let entry: Entry = serde_json::from_str(&line).map_err(|error| {
                UserError::new(
                    format!("{} contains a line that is not an audit event", self.path.display()),
                    "pass the audit log of a playground",
                )
                .with_source(error)
            })?;
            take(entry);
        }
        Ok(())
    }
}

impl Requests {
    /// The requests of one user; a service account may be given as `namespace/name`.
    #[must_use]
    pub fn by(&self, user: &str) -> Requests {
        let user = match user.split_once('/') {
            Some((namespace, name)) => format!("system:serviceaccount:{namespace}:{name}"),
            None => user.to_owned(),
        };
        self.filter(|request| request.user == user)
    }

    /// The requests of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Requests {
        self.filter(|request| request.kind == kind)
    }

    /// The requests received at or after this time.
    #[must_use]
    pub fn after(&self, time: Timestamp) -> Requests {
        self.filter(|request| request.at >= time)
    }

    /// The requests that satisfy a predicate.
    #[must_use]
    pub fn filter(&self, predicate: impl Fn(&Request) -> bool) -> Requests {
        Requests(self.0.iter().filter(|request| predicate(request)).cloned().collect())
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The number of requests by user, kind, verb and resource.
    pub fn table(&self) -> BTreeMap<Row, usize> {
        let mut table = BTreeMap::new();
        for Request { user, kind, verb, resource, .. } in self.0.iter().cloned() {
            *table.entry(Row { user, kind, verb, resource }).or_default() += 1;
        }
        table
    }
}

/// What requests are grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Row {
    /// The user.
    pub user: String,
    /// The category.
    pub kind: Kind,
    /// The Kubernetes verb.
    pub verb: String,
    /// The resource, as in [`Request::resource`].
    pub resource: String,
}

/// The fields used of one audit event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    api_group: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: u16,
}

impl Entry {
    /// A watch is logged when it starts and again when it ends; it is counted when it starts. A refused watch may be logged only
    /// when it ends; it is counted then, unless its start is in `started`.
    fn request(self, started: &mut BTreeSet<String>) -> Option<Request> {
        let starts = self.stage == "ResponseStarted";
        let is_long_running = self.verb == "watch" || starts;
        if starts {
            started.insert(self.audit_id);
        } else if is_long_running && (self.response_status.code < 400 || started.contains(&self.audit_id)) {
            return None;
        }
        let (path, query) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        let dry_run = query.split('&').any(|pair| pair.strip_prefix("dryRun=").is_some_and(|value| !value.is_empty()));
        let kind = if dry_run {
            Kind::DryRun
        } else if is_long_running {
            Kind::Watch
        } else if self.object_ref.resource == "leases" {
            Kind::Lease
        } else if self.object_ref.resource == "events" {
            Kind::Event
        } else if self.object_ref.resource == "configmaps" && self.object_ref.name == api::STATUS {
            Kind::Report
        } else if matches!(self.verb.as_str(), "get" | "list" | "head" | "options") {
            Kind::Read
        } else {
            Kind::Write
        };
        let object = &self.object_ref;
        let mut resource = object.resource.clone();
        if resource.is_empty() {
            path.clone_into(&mut resource);
        }
        for (separator, part) in [("/", &object.subresource), (".", &object.api_group)] {
            if !part.is_empty() {
                resource.push_str(separator);
                resource.push_str(part);
            }
        }
        Some(Request {
            user: self.user.username,
            verb: self.verb,
            resource,
            name: self.object_ref.name,
            kind,
            code: self.response_status.code,
            at: self.request_received_timestamp,
            ended: self.stage_timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditLog, Kind, Mark};
    use expect_test::expect;
    use std::io::Write;

    fn line(id: &str, stage: &str, verb: &str, uri: &str, resource: &str, code: u16) -> String {
        let object = if resource.is_empty() {
            String::new()
        } else {
            format!(r#""objectRef":{{"resource":"{resource}","apiGroup":"g.io","name":"n"}},"#)
        };
        format!(
            r#"{{"auditID":"{id}","stage":"{stage}","verb":"{verb}","requestURI":"{uri}","user":{{"username":"system:serviceaccount:a:b"}},{object}"responseStatus":{{"code":{code}}},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:01.000000Z"}}"#
        )
    }

    fn log(lines: &[String], unfinished: &str) -> (tempfile::NamedTempFile, AuditLog) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        write!(file, "{unfinished}").unwrap();
        let audit = AuditLog::at(file.path());
        (file, audit)
    }

    #[test]
    fn a_mark_is_never_in_the_middle_of_a_line() {
        let get = |id: &str| line(id, "ResponseComplete", "get", "/apis", "", 200);
        let unfinished = get("b");
        let (half, rest) = unfinished.split_at(unfinished.len() / 2);
        let (mut file, audit) = log(&[get("a")], half);
        let mark = audit.mark().unwrap();
        write!(file, "{rest}\n{}\n", get("c")).unwrap();
        assert_eq!(audit.since(mark).unwrap().count(), 2, "the request that was being logged is after the mark");
        let (_file, audit) = log(&[], half);
        assert_eq!(audit.mark().unwrap(), super::Mark::BEGINNING);
    }

    #[test]
    fn every_request_has_one_kind_and_a_watch_is_counted_once() {
        let lines = [
            line("a", "ResponseComplete", "get", "/apis", "", 200),
            line("b", "ResponseComplete", "patch", "/x?fieldManager=m&dryRun=All", "things", 200),
            line("c", "ResponseComplete", "patch", "/x?dryRun=", "things", 200),
            line("d", "ResponseStarted", "watch", "/x?watch=true", "things", 200),
            line("d", "ResponseComplete", "watch", "/x?watch=true", "things", 200),
            line("e", "ResponseComplete", "watch", "/x?watch=true", "things", 429),
            line("f", "ResponseStarted", "watch", "/x?watch=true", "things", 403),
            line("f", "ResponseComplete", "watch", "/x?watch=true", "things", 403),
            line("g", "ResponseComplete", "update", "/l", "leases", 200),
            line("h", "ResponseComplete", "create", "/e", "events", 201),
            line("i", "ResponseComplete", "delete", "/x", "things", 404),
        ];
        let (_file, audit) = log(&lines, "{\"stage\":\"Respo");
        let all = audit.since(Mark::BEGINNING).unwrap().by("a/b");
        let shown: String = all
            .0
            .iter()
            .map(|request| format!("{:?} {} {} {}\n", request.kind, request.verb, request.resource, request.code))
            .collect();
        expect![[r#"
            Read get /apis 200
            DryRun patch things.g.io 200
            Write patch things.g.io 200
            Watch watch things.g.io 200
            Watch watch things.g.io 429
            Watch watch things.g.io 403
            Lease update leases.g.io 200
            Event create events.g.io 201
            Write delete things.g.io 404
        "#]]
        .assert_eq(&shown);
        assert_eq!(all.of(Kind::Watch).count(), 3);
        assert_eq!(audit.open_watches().unwrap().count(), 0);
        let (_file, audit) = log(&lines[..4], "");
        assert_eq!(audit.open_watches().unwrap().count(), 1);
        assert_eq!(all.by("other").count(), 0);
    }

    #[test]
    fn a_window_contains_the_requests_between_its_marks() {
        let one = line("a", "ResponseComplete", "get", "/a", "things", 200);
        let (mut file, audit) = log(std::slice::from_ref(&one), "");
        let from = audit.mark().unwrap();
        writeln!(file, "{one}\n{one}").unwrap();
        let to = audit.mark().unwrap();
        writeln!(file, "{one}").unwrap();
        assert_eq!(audit.between(from, to).unwrap().count(), 2);
        assert_eq!(audit.since(from).unwrap().count(), 3);
        assert_eq!(audit.since(audit.mark().unwrap()).unwrap().count(), 0);
    }
}
