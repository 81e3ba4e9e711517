//! The guests in machines: their tokens, the credentials of their runners, and what they say.

use super::claims::Managed;
use super::forges::Call;
use super::{Core, Due};
use crate::bootstrap::{self as border, Notice as GuestNotice, Offer};
use crate::cloud_init;
use crate::conditions::{read, shown};
use crate::forge::Hidden;
use crate::hypervisor::Power;
use crate::inbox::Received;
use crate::jobs::demand::Scope;
use crate::jobs::exchange::Event;
use crate::jobs::runners::{self, Phase, Why};
use crate::jobs::settings;
use crate::machine::runner::Runner;
use crate::machine::{Sight, Step};
use crate::notice::Notice;
use crate::object::Name;
use crate::outside::{Ask, Minted, Reply, Request};
use crate::versions::Outcome;
use api::fleet::{BootstrapInfo, GuestFailure, MachineClaimStatus, RunnerRecord, RunnerScope, Span};
use bootstrap::{Attestation, Config, EndReason, RefusalReason, Secret};
use jiff::Timestamp;
use std::time::Duration;

/// A token works at least so long: some guests boot slowly.
const SHORTEST_TOKEN_LIFE: Duration = Duration::from_secs(5 * 60);
/// A machine is not started with a token that works for less than this.
const LEAST_LEFT: Duration = Duration::from_secs(3 * 60);
/// A runner that is not connected for a day is removed by GitHub, so that its credentials are of no use any more.
const CREDENTIALS_LAST: Duration = Duration::from_secs(24 * 60 * 60);
const GUEST_FAILED: &str = "GuestFailed";
/// So many characters of what a guest says are in the status of its claim.
const LONGEST_MESSAGE: usize = 1_000;

/// What is known of the runner and the guest of a claim.
#[derive(Debug, Default)]
pub(super) struct Hosted {
    /// The runner as the status is to have it.
    runner: Option<RunnerRecord>,
    /// What the guest has proved, as the status is to have it.
    info: Option<BootstrapInfo>,
    /// The token that is about to be given to the machine.
    token: Option<Box<Minted>>,
    is_minting: bool,
    /// The configuration that this process has got for the runner with this id, and when.
    pub(super) config: Option<(u64, Hidden, Timestamp)>,
    /// Since when that is offered to the guest.
    pub(super) offered: Option<change::Moment>,
    /// Why the claim ends, once no runner is left.
    pub(super) released: Option<Why>,
    /// Why it may not end before.
    pub(super) held: String,
    pub(super) was_drained: bool,
    /// Why the guest has ended, unless it is as it should be.
    said: Option<Box<GuestFailure>>,
    /// The same, if it had no job.
    pub(super) failure: Option<String>,
    /// What that says about the version of its runner.
    pub(super) outcome: Option<Outcome>,
    /// Whether its guest has said that a job runs.
    pub(super) had_job: bool,
    /// Since when a job waits for its runner, which is online.
    pub(super) awaited: Option<change::Moment>,
}

impl Hosted {
    /// As the status of the claim has it.
    pub(super) fn new(status: &MachineClaimStatus) -> Hosted {
        let runner = status.runner.as_deref().cloned();
        let info = status.bootstrap_info.as_deref().cloned();
        let said = status.guest_failure.clone();
        Hosted { runner, info, said, held: "its runner is looked for".to_owned(), ..Hosted::default() }
    }

    /// For a decision about the claim.
    pub(super) fn view(&self, job_timeout: Option<Duration>) -> Runner<'_> {
        Runner {
            has_asked: self.info.as_ref().is_some_and(|info| info.nonce.is_some()),
            held: self.released.is_none().then_some(self.held.as_str()),
            ended: self.released,
            failure: self.said.as_deref().map(|said| (said.reason.as_str(), said.message.as_str())),
            job_timeout,
        }
    }

    /// Writes the runner to the status; whether that is news. It is registered at the server with this address.
    pub(super) fn record(&mut self, record: Option<&runners::RunnerRecord>, api: &str) -> bool {
        // One that is registered elsewhere stays there.
        let known = self.runner.as_ref().filter(|known| record.is_some_and(|record| record.id == known.id));
        let server = known.and_then(|known| known.scope.as_ref()).map_or(api, |scope| scope.server.as_str()).to_owned();
        let record = record.map(|record| RunnerRecord {
            id: record.id,
            name: record.name.clone(),
            scale_set: record.scale_set,
            scope: record.scope.as_ref().map(|scope| RunnerScope {
                server,
                owner: scope.owner.clone(),
                repository: scope.repository.clone(),
            }),
            registered_time: shown(record.registered_time),
            delivered_time: record.delivered_time.map(shown),
        });
        if record.is_none() {
            (self.config, self.offered) = (None, None);
        }
        let is_news = self.runner != record;
        self.runner = record;
        is_news
    }

    /// The runner as the server has it.
    pub(super) fn recorded(&self, status: &MachineClaimStatus) -> Option<runners::RunnerRecord> {
        let record = status.runner.as_deref()?;
        let registered_time = read(&record.registered_time)?;
        let info = status.bootstrap_info.as_deref();
        // An earlier process may have ended between the answer to the guest and its own note of that.
        let granted =
            info.and_then(|info| info.granted_time.as_ref()).and_then(read).filter(|at| *at >= registered_time);
        let delivered_time = record.delivered_time.as_ref().and_then(read).or(granted);
        let (name, scale_set) = (record.name.clone(), record.scale_set);
        let scope = record
            .scope
            .as_ref()
            .map(|found| Scope { owner: found.owner.clone(), repository: found.repository.clone() });
        Some(runners::RunnerRecord { id: record.id, name, scale_set, scope, registered_time, delivered_time })
    }

    /// Whether the guest has said that it ends.
    pub(super) fn has_ended(&self) -> bool {
        self.info.as_ref().is_some_and(|info| info.has_ended)
    }

    /// Its machine has switched itself off. A guest has nobody to tell why before it has its credentials.
    pub(super) fn note_power_off(&mut self) {
        let Some(info) = self.info.as_ref().filter(|info| self.said.is_none() && info.granted_time.is_none()) else {
            return;
        };
        let what = if info.nonce.is_none() { "it asked for credentials" } else { "it got its credentials" };
        let (reason, message) = (GUEST_FAILED.to_owned(), format!("its guest stopped before {what}"));
        self.said = Some(Box::new(GuestFailure { reason, message }));
    }

    /// The name of its runner, if it has one.
    pub(super) fn runner_name(&self) -> Option<&str> {
        self.runner.as_ref().map(|runner| runner.name.as_str())
    }

    /// Whether there is surely no runner.
    pub(super) fn is_bare(&self) -> bool {
        self.runner.is_none() && self.config.is_none()
    }

    /// Completes a status that was decided.
    pub(super) fn complete(&self, phase: Option<&Phase>, status: &mut MachineClaimStatus) {
        status.runner = self.runner.clone().map(Box::new);
        status.bootstrap_info = self.info.clone().map(Box::new);
        status.guest_failure.clone_from(&self.said);
        status.idle_since = match phase {
            Some(Phase::Online(since)) => Some(shown(*since)),
            _ => None,
        };
    }
}

impl Managed {
    /// Whether its machine ran and does not any more.
    pub(super) fn has_stopped(&self) -> bool {
        let status = &self.entry.object.status;
        match &self.sight {
            Sight::Ours { power: Power::Stopped, .. } | Sight::Unrecorded { power: Power::Stopped, .. } => {
                status.started_time.is_some()
            }
            Sight::Absent(_) | Sight::Foreign(_) => status.created_time.is_some(),
            Sight::Ours { .. } | Sight::Unrecorded { .. } | Sight::Unknown => false,
        }
    }
}

impl Core {
    /// The claim as guests name it.
    fn guest_claim(name: &Name, uid: &str) -> bootstrap::Claim {
        bootstrap::Claim { namespace: name.namespace.to_string(), name: name.name.to_string(), uid: uid.to_owned() }
    }

    /// What is recorded of the guest of a claim.
    fn guest_record(&self, name: &Name) -> Option<border::Record> {
        let managed = self.claims.get(name)?;
        let info = managed.runner.as_deref()?.info.as_ref()?;
        border::status::record(Core::guest_claim(name, &managed.entry.object.uid), info)
    }

    /// Once every claim is known, guests are answered: one that an earlier process knew must not be refused.
    pub(super) fn open_border(&mut self) {
        if self.ci.forges.is_empty() || std::mem::replace(&mut self.ci.is_open, true) {
            return;
        }
        let records = self.claims.keys().filter_map(|name| self.guest_record(name)).collect();
        self.call(Call::Other, Request::Border(Ask::Restore(records)));
        self.receive();
        self.due.insert(Due::Jobs);
    }

    /// Lets the guest of an earlier process go on with what it has.
    pub(super) fn restore_guest(&mut self, name: &Name) {
        if self.ci.is_open
            && let Some(record) = self.guest_record(name)
        {
            self.call(Call::Other, Request::Border(Ask::Restore(vec![record])));
        }
        self.due.insert(Due::Jobs);
    }

    /// Waits for what arrives.
    fn receive(&mut self) {
        if !std::mem::replace(&mut self.ci.is_receiving, true) {
            self.call(Call::Receive, Request::Border(Ask::Receive));
        }
    }

    /// Whether a step may be taken as far as the guest is concerned; otherwise what it needs is asked for.
    pub(super) fn is_guest_prepared(&mut self, name: &Name, step: Step) -> bool {
        let now = self.now;
        if matches!(step, Step::Configure | Step::Deliver) && !self.has_cloud_init(name) {
            self.withhold(name, "the template has no cloudInit, which starts the guest: set cloudInit: {}".to_owned());
            return false;
        }
        let Some(managed) = self.claims.get_mut(name) else { return false };
        let object = &managed.entry.object;
        let Some(hosted) = managed.runner.as_deref_mut() else { return true };
        let recorded = object.status.bootstrap_info.as_deref();
        let is_used = recorded.is_some_and(|info| info.nonce.is_some());
        let left =
            |info: &BootstrapInfo| read(&info.expires).is_some_and(|at| change::now::later(now.wall, LEAST_LEFT) <= at);
        match step {
            Step::Configure | Step::Deliver if is_used => true,
            Step::Configure | Step::Deliver => {
                let token = hosted.token.as_deref();
                // Before the machine gets it, it is recorded: another process must know it, too.
                let is_recorded = token.is_some_and(|minted| {
                    let info = border::status::info(&minted.record);
                    recorded.is_some_and(|recorded| recorded.token == info.token && left(recorded))
                });
                if is_recorded {
                    return true;
                }
                let is_fresh = hosted.info.as_ref().is_some_and(left) && token.is_some();
                if !hosted.is_minting && !is_fresh {
                    self.mint(name);
                }
                false
            }
            // The token is in an image: if it may expire before the guest asks, the machine gets another one first.
            Step::Start if !is_used && !recorded.is_some_and(left) && self.seeds_by_image(name) => {
                if let Some(managed) = self.claims.get_mut(name)
                    && let Sight::Ours { is_configured, .. } = &mut managed.sight
                {
                    *is_configured = false;
                    self.due.insert(Due::Claim(name.clone()));
                }
                false
            }
            _ => true,
        }
    }

    /// Whether the guest of a claim can be started, if it is to have one.
    fn has_cloud_init(&self, name: &Name) -> bool {
        let Some(managed) = self.claims.get(name).filter(|managed| managed.runner.is_some()) else { return true };
        let template = self.templates.get(&name.beside(None, &managed.entry.object.spec.template_ref.name));
        template.is_none_or(|template| {
            let spec = &template.entry.object.spec;
            spec.cloud_init.is_some() || spec.template.kubevirt.is_some()
        })
    }

    fn seeds_by_image(&self, name: &Name) -> bool {
        let Some(managed) = self.claims.get(name) else { return false };
        let template = self.templates.get(&name.beside(None, &managed.entry.object.spec.template_ref.name));
        let delivery = template.and_then(|template| cloud_init::delivery(&template.entry.object.spec));
        delivery != Some(api::fleet::SeedDelivery::GuestAgent)
    }

    fn mint(&mut self, name: &Name) {
        let Some(managed) = self.claims.get_mut(name) else { return };
        let object = &managed.entry.object;
        let template = self.templates.get(&name.beside(None, &object.spec.template_ref.name));
        let timeout = template.and_then(|template| Span::duration(&template.entry.object.spec.readiness.timeout));
        // It is made right before the start: a guest that is not up by then is given up.
        let life = timeout.unwrap_or_default().clamp(SHORTEST_TOKEN_LIFE, border::LONGEST_TOKEN_LIFE);
        let (claim, uid) = (Core::guest_claim(name, &object.uid), object.uid.clone());
        if let Some(hosted) = managed.runner.as_deref_mut() {
            hosted.is_minting = true;
        }
        self.call(Call::Mint(name.clone(), uid), Request::Border(Ask::Mint { claim, life }));
    }

    /// The configuration of the guest of a claim, while its token is at hand.
    pub(super) fn guest_config(&self, name: &Name) -> Option<Config> {
        let managed = self.claims.get(name)?;
        let object = &managed.entry.object;
        let minted = managed.runner.as_deref()?.token.as_deref()?;
        let pool = name.beside(None, &object.spec.runner_pool_ref.as_ref()?.name);
        let lifecycle = self.pools.get(&pool).map(|pool| pool.entry.object.spec.lifecycle.clone()).unwrap_or_default();
        let Some(Ok(settings)) = self.ci.forges.get(&pool).map(|forge| &forge.settings) else { return None };
        Some(cloud_init::guest_config(Config {
            operator: minted.endpoint.clone(),
            ca: minted.ca.clone(),
            claim: Core::guest_claim(name, &object.uid),
            attestation: Attestation::Token { token: minted.token.clone() },
            limits: settings::limits(&settings.github, &lifecycle),
            copies: Vec::new(),
        }))
    }

    /// The credentials for the guest of a claim, while they are at hand.
    pub(super) fn offer(&self, name: &Name) -> Option<Offer> {
        let managed = self.claims.get(name)?;
        let pool = name.beside(None, &managed.entry.object.spec.runner_pool_ref.as_ref()?.name);
        let (id, config, at) = managed.runner.as_deref()?.config.as_ref()?;
        let recorded = managed.entry.object.status.runner.as_deref()?;
        let Some(Ok(settings)) = self.ci.forges.get(&pool).map(|forge| &forge.settings) else { return None };
        let runner = self.runner_program(&pool, &managed.entry.object.spec, settings)?;
        (recorded.id == *id).then(|| Offer {
            jit_config: Secret::new(config.expose().to_owned()),
            expires: change::now::later(*at, CREDENTIALS_LAST),
            runner,
        })
    }

    /// The machine runs: nobody needs its token here any more.
    pub(super) fn drop_token(&mut self, name: &Name) {
        if let Some(hosted) = self.claims.get_mut(name).and_then(|managed| managed.runner.as_deref_mut()) {
            hosted.token = None;
        }
    }

    /// Takes an answer of the border.
    pub(super) fn border_answered(&mut self, number: u64, reply: Reply) {
        match (self.ci.calls.remove(&number), reply) {
            (Some(Call::Receive), Reply::Received(received, records)) => {
                self.ci.is_receiving = false;
                self.receive();
                for record in records {
                    let name = Name::new(&record.claim.namespace, &record.claim.name);
                    let info = border::status::info(&record);
                    self.take_info(&name, &record.claim.uid, info);
                }
                for one in received {
                    match one {
                        Received::Job(signed) => self.observed(&signed),
                        Received::Guest(notice) => self.guest_said(notice),
                    }
                }
            }
            (Some(Call::Receive), _) => self.ci.is_receiving = false,
            (Some(Call::Mint(name, uid)), reply) => self.minted(&name, &uid, reply),
            _ => {}
        }
    }

    fn minted(&mut self, name: &Name, uid: &str, reply: Reply) {
        let Some(managed) = self.claims.get_mut(name).filter(|managed| managed.entry.object.uid == uid) else { return };
        let pool = managed.entry.object.spec.runner_pool_ref.as_ref().map(|pool| name.beside(None, &pool.name));
        let Some(hosted) = managed.runner.as_deref_mut() else { return };
        hosted.is_minting = false;
        let trouble = match reply {
            Reply::Minted(minted) => {
                hosted.info = Some(border::status::info(&minted.record));
                hosted.token = Some(minted);
                self.due.insert(Due::Claim(name.clone()));
                None
            }
            Reply::NotMinted(why) => Some(why),
            Reply::Received(..) | Reply::Done => Some("the operator has made no token".to_owned()),
        };
        if let Some(forge) = pool.as_ref().and_then(|pool| self.ci.forges.get_mut(pool))
            && forge.no_endpoint != trouble
        {
            forge.no_endpoint.clone_from(&trouble);
            self.due.extend(pool.map(Due::Pool));
        }
        if let Some(why) = trouble {
            self.withhold(name, why);
        }
    }

    /// What is recorded of a guest has changed.
    fn take_info(&mut self, name: &Name, uid: &str, info: BootstrapInfo) {
        let Some(managed) = self.claims.get_mut(name).filter(|managed| managed.entry.object.uid == uid) else { return };
        if let Some(hosted) = managed.runner.as_deref_mut()
            && hosted.info.as_ref() != Some(&info)
        {
            hosted.info = Some(info);
            self.due.extend([Due::Claim(name.clone()), Due::Jobs]);
        }
    }

    /// Takes what a request of a guest means.
    fn guest_said(&mut self, notice: GuestNotice) {
        let claim = match &notice {
            GuestNotice::Attested(claim)
            | GuestNotice::Granted(claim)
            | GuestNotice::TokenReused(claim)
            | GuestNotice::Refused(claim, _)
            | GuestNotice::Reported(claim, _) => claim,
            GuestNotice::Ended(end) => &end.claim,
        };
        let (name, uid) = (Name::new(&claim.namespace, &claim.name), claim.uid.clone());
        if self.claims.get(&name).is_none_or(|managed| managed.entry.object.uid != uid) {
            return;
        }
        self.due.extend([Due::Claim(name.clone()), Due::Jobs]);
        match notice {
            GuestNotice::Attested(_) => self.drop_token(&name),
            GuestNotice::Granted(_) => {
                if let Some(hosted) = self.claims.get_mut(&name).and_then(|managed| managed.runner.as_deref_mut()) {
                    (hosted.offered, hosted.config) = (None, None);
                }
                self.tell_of(&name, Event::Delivered { claim: name.clone(), is_delivered: true });
            }
            GuestNotice::Reported(_, phase) => {
                let is_busy = phase == bootstrap::Phase::Running;
                if let Some(hosted) = self.claims.get_mut(&name).and_then(|managed| managed.runner.as_deref_mut()) {
                    hosted.had_job |= is_busy;
                }
                if is_busy || phase == bootstrap::Phase::Idle {
                    self.tell_of(&name, Event::Reported { claim: name.clone(), is_busy });
                }
            }
            GuestNotice::TokenReused(_) => self.notify(Notice::TokenReused { claim: name, uid }),
            GuestNotice::Refused(_, refused) => self.note_refusal(&name, refused),
            GuestNotice::Ended(end) => {
                self.note_guest_end(&name, &end);
                let had_job = end.ran_job || self.had_job(&name);
                let is_expected = end.reason.is_expected();
                let mut message = format!("{:?} at {:?}: {}", end.reason, end.step, end.message);
                let said = GuestFailure {
                    reason: reason(end.reason).to_owned(),
                    message: message.chars().take(LONGEST_MESSAGE).collect(),
                };
                if !end.log.trim().is_empty() {
                    message = format!("{message}; the end of its output: {}", end.log.trim());
                }
                if let Some(hosted) = self.claims.get_mut(&name).and_then(|managed| managed.runner.as_deref_mut()) {
                    // What the guest itself says counts, whoever else has presented its token.
                    hosted.said = (!is_expected).then(|| Box::new(said));
                    if !is_expected {
                        hosted.failure = (!had_job).then(|| end.message.clone());
                    }
                }
                let reason = reason(end.reason);
                self.notify(Notice::GuestEnded { claim: name, uid, reason, is_expected, message });
            }
        }
    }

    /// A guest whose token is no longer valid powers off without a word. Only who has the token is told that, so that nobody else can
    /// make a claim look as if its guest had failed.
    fn note_refusal(&mut self, name: &Name, refused: RefusalReason) {
        let is_end = matches!(refused, RefusalReason::Expired | RefusalReason::Used);
        if is_end && let Some(hosted) = self.claims.get_mut(name).and_then(|managed| managed.runner.as_deref_mut()) {
            let message =
                format!("{:?} at {:?}: {}", EndReason::StepFailed, bootstrap::Step::Exchange, border::message(refused));
            hosted.said.get_or_insert_with(|| Box::new(GuestFailure { reason: GUEST_FAILED.to_owned(), message }));
        }
    }

    /// News about the runner of a claim.
    pub(super) fn tell_of(&mut self, claim: &Name, event: Event) {
        let pool = self.claims.get(claim).and_then(|managed| managed.entry.object.spec.runner_pool_ref.as_ref());
        let forge = pool.and_then(|pool| self.ci.forges.get(&claim.beside(None, &pool.name)));
        let api = forge.and_then(|forge| forge.settings.as_ref().ok()).map(|found| found.address.api.clone());
        if let Some(api) = api {
            self.tell(&api, event);
        }
    }

    /// A claim is gone: nobody asks for its credentials any more.
    pub(super) fn forget_guest(&mut self, uid: &str) {
        self.call(Call::Other, Request::Border(Ask::Forget(uid.to_owned())));
        self.due.insert(Due::Jobs);
    }
}

/// What an unexpected end of a guest is called: a runner that GitHub refuses needs another image, everything else a look at its output.
fn reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::RunnerDeprecated => "RunnerDeprecated",
        _ if reason.is_expected() => "GuestEnded",
        _ => GUEST_FAILED,
    }
}
