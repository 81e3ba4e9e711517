//! Connections to CI platforms: one for each pool with runners, checked regularly, with what they are asked and answer.

mod logins;

use super::facts::{facts, repository, repository_name, seen};
use super::scale_sets::Listening;
use super::webhooks::{Receiver, Search};
use super::{Core, Due, Timer};
use crate::forge::{self, Failure, ForgeKey, JitConfig, RunnerId, RunnerWanted, ScaleSetAsk, ScaleSetId};
use crate::jobs::demand::Scope;
use crate::jobs::exchange::{Ask, Event, Registration, Removal};
use crate::jobs::job::{JobKey, Repository};
use crate::jobs::settings::Settings;
use crate::jobs::table::{List, LookUp};
use crate::notice::Notice;
use crate::object::Name;
use crate::outside::Request;
use change::{Key, Kind, Moment};
use jiff::Timestamp;
use protocol::{Command, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) type ForgeAnswer = Result<forge::Answer, Failure>;

/// How often a connection is checked that works, and one that does not.
const CHECK: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(30));
/// A platform without a limit is treated as one with this.
const UNLIMITED: u32 = 1_000_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// The connection of a pool to its CI platform.
#[derive(Debug)]
pub(super) struct Forge {
    /// The uid of the pool, and the generation that the settings are of.
    of: (String, i64),
    pub(super) settings: Result<Settings, (String, String)>,
    /// The last check; nothing before the first one.
    checked: Option<Result<Vec<String>, Failure>>,
    is_checking: bool,
    /// Whether a login has ever shown that the runners of this scope are in these hands.
    is_proved: bool,
    /// Whether something has changed during a check.
    is_stale: bool,
    /// The repositories whose jobs this login has listed: if it does not see one of them any more, that is gone.
    read: BTreeSet<Repository>,
    /// Why no machine can get its credentials, if so.
    pub(super) no_endpoint: Option<String>,
    /// The only authorities of the platform's certificate, as PEM, as the last check has found them.
    pub(super) authorities: Option<String>,
    /// The webhook that the fleet is reached by.
    pub(super) webhook: Search,
    secrets: BTreeMap<String, String>,
    pub(super) listening: Listening,
    reported: Option<&'static str>,
}

/// A request without an answer.
#[derive(Debug)]
pub(super) enum Call {
    Check(Name),
    /// Jobs of a server were asked for.
    Jobs {
        pool: Name,
        api: String,
        owner: String,
        asked: Timestamp,
    },
    LookUp {
        pool: Name,
        repository: Repository,
        api: String,
        key: JobKey,
        asked: Timestamp,
    },
    Runners {
        api: String,
        scope: Scope,
        asked: Moment,
    },
    Register {
        api: String,
        claim: Name,
        uid: String,
    },
    Find {
        api: String,
        claim: Name,
        name: String,
    },
    Remove {
        api: String,
        scope: Scope,
        id: u64,
        claim: Option<Name>,
    },
    /// A step of the listener of a pool's scale set, with the number of the listener.
    Listen(Name, u64, super::scale_sets::Asked),
    /// A token for the guest of the claim with this uid.
    Mint(Name, String),
    /// The versions that the platform of a pool offers.
    Versions(Name),
    /// The webhook of a pool.
    Webhook(Name),
    Deliveries(Receiver),
    Redelivery(Receiver),
    /// What arrives.
    Receive,
    /// Nobody waits for the answer.
    Other,
}

impl Forge {
    pub(super) fn api(&self) -> Option<&str> {
        self.settings.as_ref().ok().map(|settings| settings.address.api.as_str())
    }

    /// The uid of its pool.
    pub(super) fn uid(&self) -> &str {
        &self.of.0
    }

    /// Whether a login has ever worked: a pool may name any organisation.
    pub(super) fn is_proved(&self) -> bool {
        self.is_proved
    }

    /// Whether the last check went well.
    pub(super) fn is_connected(&self) -> bool {
        matches!(&self.checked, Some(Ok(missing)) if missing.is_empty())
    }

    /// Whether the platform has refused the login at the last check, or what it needs: nothing else can be had from it.
    pub(super) fn is_refused(&self) -> bool {
        match &self.checked {
            Some(Ok(missing)) => !missing.is_empty(),
            Some(Err(failure)) => matches!(failure, Failure::Configuration { .. } | Failure::Permanent(_)),
            None => false,
        }
    }

    /// The condition Connected: whether it holds, why in one word, and why in a sentence.
    pub(super) fn condition(&self) -> (bool, &'static str, String) {
        let settings = match &self.settings {
            Ok(settings) => settings,
            Err((message, remedy)) => return (false, "SettingsInvalid", format!("{message}; {remedy}")),
        };
        match &self.checked {
            None => (false, "Connecting", format!("logging in at {}", settings.address.api)),
            Some(Ok(missing)) if !missing.is_empty() => {
                (false, "PermissionMissing", format!("the credentials lack {}", missing.join(", ")))
            }
            Some(Ok(_)) => match &self.no_endpoint {
                Some(why) => (false, "NoBootstrapEndpoint", why.clone()),
                None => {
                    let webhooks = self.webhook.message(settings);
                    (true, "Connected", format!("runners are registered at {}{webhooks}", settings.address.page))
                }
            },
            Some(Err(failure @ Failure::Configuration { .. })) => (false, "ConfigurationError", failure.to_string()),
            Some(Err(failure @ Failure::RateLimited { .. })) => (false, "RateLimited", failure.to_string()),
            Some(Err(failure)) => (false, "Unreachable", failure.to_string()),
        }
    }
}

impl Core {
    /// The Secrets that pools name.
    pub(super) fn forge_secrets(&self) -> impl Iterator<Item = WatchTarget> {
        self.pools.iter().flat_map(|(name, managed)| {
            let runners = managed.entry.object.spec.workload.as_ref().and_then(api::fleet::Workload::runners);
            runners.into_iter().flat_map(api::fleet::Runners::refs).map(|reference| {
                let kind = Kind::new("v1", "Secret");
                let key = Key { kind, namespace: name.namespace.to_string(), name: reference.name.clone() };
                WatchTarget::only(&key)
            })
        })
    }

    /// Takes a pool that is new, or has perhaps another spec.
    pub(super) fn forge_seen(&mut self, pool: &Name) {
        let Some(managed) = self.pools.get(pool) else { return };
        let object = &managed.entry.object;
        let of = (object.uid.clone(), object.generation);
        let Some(runners) = object.spec.workload.as_ref().and_then(api::fleet::Workload::runners) else {
            return self.forge_gone(pool);
        };
        if self.ci.forges.get(pool).is_some_and(|forge| forge.of == of) {
            return;
        }
        let settings = Settings::of(runners);
        let mut before = self.ci.forges.remove(pool);
        let known = before.as_mut().map(|forge| {
            let api = forge.api().unwrap_or_default().to_owned();
            (api, std::mem::take(&mut forge.listening))
        });
        let listening = self.listener(pool, known, &settings);
        let is_moved = before
            .as_ref()
            .is_some_and(|forge| forge.api() != settings.as_ref().ok().map(|settings| settings.address.api.as_str()));
        let before = before.filter(|_| !is_moved);
        let is_known = before.is_some();
        let scope = settings.as_ref().ok().map(|settings| &settings.scope);
        let is_same = |forge: &Forge| forge.settings.as_ref().ok().map(|settings| &settings.scope) == scope;
        let forge = Forge {
            of,
            checked: before.as_ref().and_then(|forge| forge.checked.clone()),
            is_proved: before.as_ref().is_some_and(|forge| forge.is_proved && is_same(forge)),
            is_checking: before.as_ref().is_some_and(|forge| forge.is_checking),
            is_stale: before.as_ref().is_some_and(|forge| forge.is_checking),
            read: BTreeSet::new(),
            no_endpoint: None,
            authorities: before.as_ref().and_then(|forge| forge.authorities.clone()),
            webhook: Search::default(),
            secrets: before.as_ref().map(|forge| forge.secrets.clone()).unwrap_or_default(),
            reported: before.as_ref().and_then(|forge| forge.reported),
            listening,
            settings,
        };
        if let Ok(settings) = forge.settings.as_ref()
            && is_known
        {
            // Whether jobs are polled for may have changed.
            let (api, owner) = (settings.address.api.clone(), settings.scope.owner.clone());
            self.tell(&api, Event::ListFailed(owner));
        }
        self.ci.forges.insert(pool.clone(), forge);
        self.follow_secrets();
        self.check_forge(pool);
        self.due.insert(Due::Jobs);
    }

    /// The pool has no runners any more.
    pub(super) fn forge_gone(&mut self, pool: &Name) {
        self.ci.versions.remove(pool);
        let Some(forge) = self.ci.forges.remove(pool) else { return };
        let api = forge.api().unwrap_or_default().to_owned();
        // A pool that is gone has deleted its scale set before.
        drop(self.stop_listening(pool, &api, forge.listening));
        self.follow_secrets();
        let request = Request::ForgetForge(key(pool));
        self.call(Call::Other, request);
        self.due.insert(Due::Jobs);
    }

    /// Takes the version of a Secret.
    pub(super) fn forge_secret_seen(&mut self, name: &Name, version: &str) {
        let mut changed = Vec::new();
        for (pool, forge) in self.ci.forges.iter_mut().filter(|(pool, _)| pool.namespace == name.namespace) {
            let Ok(settings) = &forge.settings else { continue };
            if !settings.github.refs().any(|reference| *reference.name == *name.name) {
                continue;
            }
            let before = forge.secrets.insert(name.name.to_string(), version.to_owned());
            // It was perhaps missing at the last check.
            if before.map_or(matches!(forge.checked, Some(Err(_))), |before| before != version) {
                forge.read.clear();
                changed.push(pool.clone());
            }
        }
        for pool in changed {
            self.check_forge(&pool);
        }
    }

    /// Logs in anew, with the credentials of this moment.
    pub(super) fn check_forge(&mut self, pool: &Name) {
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        if forge.settings.is_err() {
            return self.forge_checked(pool);
        }
        if forge.is_checking {
            forge.is_stale = true;
            return;
        }
        forge.is_checking = true;
        self.ask_forge(pool, forge::Ask::Check, Call::Check(pool.clone()));
    }

    fn forge_checked(&mut self, pool: &Name) {
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let (is_connected, reason, message) = forge.condition();
        let pause = if is_connected { CHECK.0 } else { CHECK.1 };
        self.timers.set(Timer::Forge(pool.clone()), self.now.monotonic.after(pause));
        self.due.extend([Due::Pool(pool.clone()), Due::Jobs]);
        if forge.reported.replace(reason) != Some(reason) {
            let uid = forge.of.0.clone();
            self.notify(Notice::Forge { pool: pool.clone(), uid, is_connected, reason, message });
        }
        if is_connected {
            self.list_versions(pool);
        }
    }

    /// Sends a request to the platform of a pool.
    pub(super) fn ask_forge(&mut self, pool: &Name, ask: forge::Ask, call: Call) {
        let Some(Ok(settings)) = self.ci.forges.get(pool).map(|forge| &forge.settings) else { return };
        let address = settings.link.clone();
        self.call(call, Request::Forge(forge::Request { forge: key(pool), address, ask }));
    }

    pub(super) fn call(&mut self, call: Call, request: Request) {
        self.last_number += 1;
        self.ci.calls.insert(self.last_number, call);
        self.commands.push(Command::Elsewhere(self.last_number, request));
    }

    /// Carries out what the jobs of a server ask for.
    pub(super) fn ask_for_jobs(&mut self, api: &str, ask: Ask) {
        let wall = self.now.wall;
        let api = api.to_owned();
        match ask {
            Ask::Limits(owner) => {
                let pools: Vec<Name> = self
                    .ci
                    .forges
                    .iter()
                    .filter(|(_, forge)| {
                        let is_of = |settings: &Settings| settings.address.api == api && settings.scope.owner == owner;
                        forge.settings.as_ref().is_ok_and(is_of) && !forge.is_checking
                    })
                    .map(|(pool, _)| pool.clone())
                    .collect();
                pools.iter().for_each(|pool| self.check_forge(pool));
            }
            Ask::ListJobs(owner) => {
                let listers = self.listers(&api, &owner);
                if listers.is_empty() {
                    return self.tell(&api, Event::ListFailed(owner));
                }
                for (pool, repositories) in listers {
                    let call = Call::Jobs { pool: pool.clone(), api: api.clone(), owner: owner.clone(), asked: wall };
                    self.ask_forge(&pool, forge::Ask::ListJobs { repositories }, call);
                }
            }
            Ask::LookUp(repository, key) => {
                let (Some(pool), JobKey::Job { id, .. }) = (self.viewer(&api, &repository), key) else {
                    return self.tell(&api, Event::LookedUp { key, asked: wall, answer: LookUp::Failed });
                };
                let ask = forge::Ask::Job { repository: repository_name(&repository), id: forge::JobId(id) };
                let call = Call::LookUp { pool: pool.clone(), repository, api, key, asked: wall };
                self.ask_forge(&pool, ask, call);
            }
            Ask::ListRunners(scope) => {
                let asked = self.now.monotonic;
                let Some(pool) = self.connection(&api, |settings| settings.scope == scope) else { return };
                let call = Call::Runners { api, scope, asked };
                self.ask_forge(&pool, forge::Ask::ListRunners { name: None }, call);
            }
            Ask::Register { claim, name, scale_set } => {
                let Some((pool, uid)) = self.pool_of(&claim) else { return };
                let Some(Ok(settings)) = self.ci.forges.get(&pool).map(|forge| &forge.settings) else { return };
                let ask = match scale_set.map(ScaleSetId) {
                    Some(set) => forge::Ask::ScaleSet(ScaleSetAsk::JitConfig { set, name }),
                    None => {
                        let (labels, group) = (settings.labels.clone(), settings.github.runner_group.clone());
                        forge::Ask::JitConfig(RunnerWanted { name, labels, group })
                    }
                };
                self.ask_forge(&pool, ask, Call::Register { api, claim, uid });
            }
            Ask::Find { scope, claim, name } => {
                let Some(pool) = self.login_for(&api, &scope, Some(&claim)) else {
                    return self.tell(&api, Event::Found { claim, answer: Err(()) });
                };
                let ask = forge::Ask::ListRunners { name: Some(name.clone()) };
                self.ask_forge(&pool, ask, Call::Find { api, claim, name });
            }
            Ask::Remove { scope, id, claim } => {
                let Some(pool) = self.login_for(&api, &scope, claim.as_ref()) else {
                    return self.tell(&api, Event::Removed { scope, id, claim, answer: Removal::Unknown });
                };
                self.ask_forge(&pool, forge::Ask::RemoveRunner(RunnerId(id)), Call::Remove { api, scope, id, claim });
            }
        }
    }

    fn pool_of(&self, claim: &Name) -> Option<(Name, String)> {
        let object = &self.claims.get(claim)?.entry.object;
        let pool = object.spec.runner_pool_ref.as_ref()?;
        Some((claim.beside(None, &pool.name), object.uid.clone()))
    }

    /// Takes the answer of a platform.
    pub(super) fn forge_answered(&mut self, number: u64, answer: ForgeAnswer) {
        let Some(call) = self.ci.calls.remove(&number) else { return };
        self.due.insert(Due::Jobs);
        let limited = match &answer {
            Err(Failure::RateLimited { until, .. }) => Some(*until),
            _ => None,
        };
        let message = answer.as_ref().err().map(Failure::to_string);
        match (call, answer) {
            (Call::Check(pool), answer) => self.take_check(&pool, answer),
            (Call::Jobs { pool, api, owner, asked }, answer) => {
                self.pause(&api, &owner, limited);
                let event = match answer {
                    Ok(forge::Answer::Jobs(found)) => {
                        let read: BTreeSet<Repository> = found.read.iter().map(repository).collect();
                        if let Some(forge) = self.ci.forges.get_mut(&pool) {
                            forge.read.extend(read.iter().cloned());
                        }
                        let jobs = found.jobs.values().filter_map(facts).collect();
                        Event::Listed(Box::new(List { owner, read, asked, jobs }))
                    }
                    _ => {
                        self.notify(Notice::ForgeFailed { what: "list jobs", message: message.unwrap_or_default() });
                        Event::ListFailed(owner)
                    }
                };
                self.tell(&api, event);
            }
            (Call::LookUp { pool, repository, api, key, asked }, answer) => {
                let has_read = self.ci.forges.get(&pool).is_some_and(|forge| forge.read.contains(&repository));
                let answer = match answer {
                    Ok(forge::Answer::Job(None)) => LookUp::Absent,
                    // Another login, or this one never, sees it; or it was deleted, transferred, or taken from this login.
                    Ok(forge::Answer::NoRepository) if has_read => LookUp::Absent,
                    Ok(forge::Answer::Job(Some(job))) => {
                        facts(&job).map_or(LookUp::Failed, |facts| LookUp::Found(Box::new(facts)))
                    }
                    _ => {
                        self.ci.failed_look_ups += 1;
                        LookUp::Failed
                    }
                };
                self.tell(&api, Event::LookedUp { key, asked, answer });
            }
            (Call::Runners { api, scope, asked }, answer) => {
                self.pause(&api, &scope.owner, limited);
                let runners = match answer {
                    Ok(forge::Answer::Runners(found)) if found.is_complete => {
                        Some(found.runners.iter().map(seen).collect())
                    }
                    _ => None,
                };
                self.tell(&api, Event::Runners { scope, asked, runners });
            }
            (Call::Register { api, claim, uid }, answer) => self.take_registration(&api, &claim, &uid, answer),
            (Call::Find { api, claim, name }, answer) => {
                let answer = match answer {
                    Ok(forge::Answer::Runners(found)) => {
                        Ok(found.runners.iter().find(|(_, runner)| runner.name == name).map(|(id, _)| id.0))
                    }
                    _ => Err(()),
                };
                self.tell(&api, Event::Found { claim, answer });
            }
            (Call::Remove { api, scope, id, claim }, answer) => {
                self.pause(&api, &scope.owner, limited);
                let answer = match answer {
                    Ok(_) => Removal::Removed,
                    Err(Failure::StillBusy(_)) => Removal::Busy,
                    Err(_) => {
                        self.notify(Notice::ForgeFailed {
                            what: "remove a runner",
                            message: message.unwrap_or_default(),
                        });
                        Removal::Unknown
                    }
                };
                self.tell(&api, Event::Removed { scope, id, claim, answer });
            }
            (Call::Listen(pool, round, asked), answer) => self.listened(&pool, round, asked, answer),
            (Call::Versions(pool), answer) => self.versions_listed(&pool, answer),
            (Call::Webhook(pool), answer) => self.webhook_found(&pool, answer),
            (Call::Deliveries(of), answer) => self.deliveries_listed(&of, answer, limited),
            (Call::Redelivery(of), answer) => self.redelivered(&of, answer, limited),
            (Call::Mint(..) | Call::Receive | Call::Other, _) => {}
        }
    }

    fn take_check(&mut self, pool: &Name, answer: ForgeAnswer) {
        let (wall, mut limits) = (self.now.wall, None);
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        forge.is_checking = false;
        forge.checked = Some(match answer {
            Ok(forge::Answer::Checked(checked)) => {
                // GitLab counts by minutes, over before the next check: its client keeps to that.
                let is_hourly = forge.settings.as_ref().is_ok_and(|settings| settings.platform.is_github());
                let budget = checked.budget.filter(|_| is_hourly);
                let reset = checked.reset.filter(|_| is_hourly);
                let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                let (limit, left) = budget.map_or((UNLIMITED, UNLIMITED), |(limit, left)| (small(limit), small(left)));
                let reset = reset.unwrap_or_else(|| change::now::later(wall, HOUR));
                // Whoever has no right to the runners has another limit than those who have.
                limits = checked.missing.is_empty().then_some((limit, left, reset));
                forge.authorities = checked.authorities;
                Ok(checked.missing)
            }
            Ok(_) => Err(Failure::Transient("the platform answered something else".into())),
            Err(failure) => Err(failure),
        });
        let is_stale = std::mem::take(&mut forge.is_stale);
        // What was checked while the pool changed was perhaps another scope.
        forge.is_proved |= !is_stale && forge.is_connected();
        let of = forge.settings.as_ref().ok().map(|found| (found.address.api.clone(), found.scope.owner.clone()));
        if let (Some((api, owner)), Some((limit, remaining, reset))) = (of, limits) {
            self.tell(&api, Event::Limits { owner, limit, remaining, reset });
        }
        self.forge_checked(pool);
        if is_stale {
            self.check_forge(pool);
        }
    }

    fn take_registration(&mut self, api: &str, claim: &Name, uid: &str, answer: ForgeAnswer) {
        let wall = self.now.wall;
        if let Err(failure) = &answer {
            let message = failure.to_string();
            self.notify(Notice::ForgeFailed { what: "register a runner", message });
        }
        let pool = self.pool_of(claim).map(|(pool, _)| pool);
        let answer = match answer {
            Ok(forge::Answer::JitConfig(JitConfig { runner, config })) => {
                // For a claim that is gone since, the runner is an orphan: two lists find it.
                let managed = self.claims.get_mut(claim).filter(|managed| managed.entry.object.uid == uid);
                if let Some(hosted) = managed.and_then(|managed| managed.runner.as_deref_mut()) {
                    hosted.config = Some((runner.0, config, wall));
                }
                Registration::Done(runner.0)
            }
            Err(Failure::Exists(_)) => Registration::NameTaken,
            Err(failure @ (Failure::Permanent(_) | Failure::Configuration { .. } | Failure::RateLimited { .. })) => {
                // What a person has to change is shown where they look.
                if let (Failure::Configuration { .. }, Some(pool)) = (&failure, &pool) {
                    self.check_forge(pool);
                }
                Registration::Refused
            }
            Ok(_) | Err(_) => Registration::Unknown,
        };
        self.tell(api, Event::Registered { claim: claim.clone(), answer });
    }

    pub(super) fn pause(&mut self, api: &str, owner: &str, limited: Option<Timestamp>) {
        if let Some(until) = limited {
            self.tell(api, Event::Paused { owner: owner.to_owned(), until });
        }
    }
}

pub(super) fn key(pool: &Name) -> ForgeKey {
    ForgeKey { namespace: pool.namespace.to_string(), name: pool.name.to_string() }
}
