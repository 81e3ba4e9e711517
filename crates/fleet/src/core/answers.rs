//! What hypervisors answered.

use super::asking::{Asked, What};
use super::claims::Managed;
use super::{Core, HypervisorAnswer, Timer};
use crate::backoff;
use crate::hypervisor::{Answer, Failure, Inspected, Owner, Power};
use crate::machine::{self, Failed, REQUESTS_LAST, Sight, Step};
use crate::notice::Notice;
use crate::object::Name;
use crate::record::{self, Record};
use api::fleet::FailureClass;
use change::Moment;
use std::time::Duration;

/// A list so long after an operation that has failed, or that has made room.
const LIST_AFTER: Duration = Duration::from_secs(5);

impl Core {
    /// Takes an answer. One to a request of nobody is ignored.
    pub(super) fn answered(&mut self, number: u64, answer: HypervisorAnswer) {
        let Some(asked) = self.asked.remove(&number) else { return };
        let Asked { cluster, uid, what, sent, clone, slot, machine, node } = asked;
        if let (Some((holder, _)), Some(hypervisor)) = (slot, self.clusters.get_mut(&cluster)) {
            hypervisor.slots.release(&holder);
        }
        if let Some((storage, node)) = clone {
            self.clone_ended(&cluster, &storage, &node);
        }
        // What a hypervisor of the same name has answered says nothing about this one.
        let is_same = self.clusters.get(&cluster).is_some_and(|found| found.entry.object.uid == uid);
        if !is_same && !matches!(what, What::Claim { .. }) {
            return;
        }
        let failure = answer.as_ref().err().map(|failure| (backoff::class(failure), backoff::message(failure)));
        let claim = match &what {
            What::Claim { name, .. } | What::Look { claim: name, .. } => Some(name.clone()),
            _ => None,
        };
        let took = self.now.monotonic.elapsed().saturating_sub(sent.elapsed());
        let (operation, failed) = (what.word(), failure.clone());
        self.notify(Notice::Operation {
            cluster: cluster.clone(),
            claim,
            machine,
            node,
            operation,
            took,
            failure: failed,
        });
        let is_of_machine = matches!(what, What::Claim { .. } | What::Survey(_) | What::Orphan(_));
        let is_explicable = answer.as_ref().is_err_and(backoff::may_be_of_cluster);
        if is_of_machine && is_explicable {
            self.check_soon(&cluster);
        }
        let unexpected = (FailureClass::Transient, "the hypervisor answered something else".to_owned());
        match (what, answer) {
            (What::Check, Ok(Answer::Checked(checked))) => self.checked(&cluster, Ok(*checked)),
            (What::Check, _) => self.checked(&cluster, Err(failure.unwrap_or(unexpected))),
            (What::List, Ok(Answer::Listed(listed))) => self.listed(&cluster, sent, Ok(listed)),
            (What::List, _) => self.listed(&cluster, sent, Err(failure.unwrap_or(unexpected).1)),
            (What::LookUp(reference), Ok(Answer::Templates(found))) => self.looked_up(&cluster, &reference, Ok(found)),
            (What::LookUp(reference), _) => self.looked_up(&cluster, &reference, Err(failure.unwrap_or(unexpected))),
            (What::Survey(id), Ok(Answer::Inspected(found))) => self.surveyed(&cluster, &id, Some(found)),
            (What::Survey(id), _) => self.surveyed(&cluster, &id, None),
            (What::Orphan(id), result) => {
                let is_over = !matches!(
                    result,
                    Err(Failure::Transient(_)
                        | Failure::NoQuorum(_)
                        | Failure::Resource { .. }
                        | Failure::Configuration { .. }
                        | Failure::Hidden(_)
                        | Failure::Permanent(_))
                );
                self.orphan_ended(&cluster, &id, is_over);
            }
            (What::Look { claim, uid }, Ok(Answer::Looked(state))) => self.looked(&cluster, &claim, &uid, state),
            // It is looked at again when it is its turn.
            (What::Look { .. }, _) => {}
            (What::Seeds, Ok(Answer::Seeds(found))) => self.seeds_listed(&cluster, found),
            (What::DeleteSeed, Ok(_)) => {}
            // It is looked for again.
            (What::Seeds | What::DeleteSeed, _) => {
                let (_, message) = failure.unwrap_or(unexpected);
                self.notify(Notice::SeedTrouble { cluster, message });
            }
            (What::Claim { name, uid, step }, answer) => {
                let is_it =
                    |managed: &super::Managed| managed.entry.object.uid == uid && managed.operation == Some(number);
                if self.claims.get(&name).is_some_and(|managed| is_it(managed)) {
                    self.step_ended(&cluster, &name, step, sent, answer);
                }
            }
        }
    }

    /// A step of a claim has ended.
    fn step_ended(&mut self, cluster: &Name, name: &Name, step: Step, sent: Moment, answer: HypervisorAnswer) {
        let now = self.now.monotonic;
        let Some(managed) = self.claims.get_mut(name) else { return };
        let owner = machine::owner(&managed.entry.object, &self.config.operator);
        (managed.operation, managed.touched) = (None, now);
        let node = || {
            let vm_ref = managed.entry.object.status.vm_ref.as_ref();
            vm_ref.and_then(|vm_ref| vm_ref.node.clone()).unwrap_or_default()
        };
        let mut failure = None;
        match (step, answer) {
            (Step::Inspect, Ok(Answer::Inspected(Some(found)))) if found.owner.as_ref() == Some(&owner) => {
                let (power, node) = (found.seen.power, found.seen.node.to_string());
                managed.sight = Sight::Ours { power, is_configured: found.is_configured, node };
                managed.failed = None;
            }
            (Step::Inspect, Ok(Answer::Inspected(found))) => {
                let pool =
                    self.clusters.get(cluster).and_then(|found| found.entry.object.spec.resource_pool.as_deref());
                managed.sight = match found {
                    Some(found) if is_unrecorded(&found, managed, pool) => unrecorded(managed, &found, owner, sent),
                    Some(_) => Sight::Foreign(sent),
                    None => Sight::Absent(sent),
                };
                // What has failed before is tried again, and only that tells whether it still fails.
            }
            (Step::Create, Ok(_)) => {
                managed.sight = Sight::Ours { power: Power::Stopped, is_configured: false, node: node() };
                managed.failed = None;
            }
            (Step::Configure, Ok(_)) => {
                if let Sight::Ours { is_configured, .. } = &mut managed.sight {
                    *is_configured = true;
                }
                // Whether what kept it from starting is mended, only the next start tells.
                managed.failed = managed.failed.take().filter(|failed| failed.of == Step::Start);
                managed.retry_now(now);
            }
            (Step::Start, Ok(_)) => {
                if let Sight::Ours { power, .. } = &mut managed.sight {
                    *power = Power::Running;
                }
                (managed.failed, managed.halted) = (None, None);
                self.drop_token(name);
                return self.claim_changed(name);
            }
            (Step::Destroy, Ok(_)) => {
                managed.sight = Sight::Absent(now);
                managed.failed = None;
                self.timers.set(Timer::List(cluster.clone()), now.after(LIST_AFTER));
            }
            (Step::AskGuest, Ok(answer)) => {
                if let Answer::Addresses(Some(guest)) = answer {
                    managed.guest = guest;
                }
                (managed.failed, managed.guest_trouble) = (None, None);
            }
            (Step::Deliver, Ok(Answer::Delivered(is_done))) => {
                managed.is_seeded = is_done;
                (managed.failed, managed.guest_trouble) = (None, None);
            }
            (Step::RemoveSeed, Ok(_)) => {
                managed.is_seeded = true;
                managed.failed = None;
            }
            (
                Step::AskGuest | Step::Deliver,
                Err(error @ (Failure::Transient(_) | Failure::NoQuorum(_) | Failure::Resource { .. })),
            ) => managed.guest_trouble = Some(backoff::message(&error)),
            (Step::Create, Err(Failure::Exists(_))) => managed.sight = Sight::Unknown,
            (Step::Create, Err(Failure::Transient(message))) => {
                managed.sight = Sight::Unknown;
                managed.unresolved_until = managed.unresolved_until.max(now.after(REQUESTS_LAST));
                failure = Some((FailureClass::Transient, message));
            }
            (Step::Create, Err(error)) => {
                // Only what was refused for certain has left nothing behind.
                if !matches!(error, Failure::Permanent(_)) {
                    managed.sight = Sight::Unknown;
                }
                failure = Some((backoff::class(&error), backoff::message(&error)));
            }
            (_, Err(Failure::Hidden(_)))
                if managed.entry.object.status.created_time.is_none()
                    && !matches!(managed.sight, Sight::Ours { .. }) =>
            {
                managed.sight = Sight::Foreign(sent);
            }
            // It may be this claim's, which somebody has taken out of the resource pool.
            (_, Err(error @ Failure::Hidden(_))) => {
                managed.sight = Sight::Unknown;
                failure = Some((backoff::class(&error), backoff::message(&error)));
            }
            (_, Err(Failure::Absent(_))) => managed.sight = Sight::Absent(sent),
            // Whether its record was overwritten, its name and its tags tell.
            (_, Err(Failure::NotOurs { found: None, .. })) => managed.sight = Sight::Unknown,
            (_, Err(Failure::NotOurs { .. })) => managed.sight = Sight::Foreign(sent),
            (Step::Inspect | Step::Destroy | Step::RemoveSeed, Err(error)) => {
                // Neither of them says anything about the claim.
                let class = match backoff::class(&error) {
                    FailureClass::Permanent => FailureClass::Transient,
                    class => class,
                };
                failure = Some((class, backoff::message(&error)));
            }
            (Step::Start, Err(error @ Failure::Configuration { .. })) => {
                // What is wrong may be in the template, and corrected there by the next attempt.
                if let Sight::Ours { is_configured, .. } = &mut managed.sight {
                    *is_configured = false;
                }
                failure = Some((backoff::class(&error), backoff::message(&error)));
            }
            (_, Err(error)) => failure = Some((backoff::class(&error), backoff::message(&error))),
            (_, Ok(_)) => failure = Some((FailureClass::Transient, "the hypervisor answered something else".into())),
        }
        if let Some((class, message)) = failure {
            let count = managed.failed.as_ref().map_or(0, |failed| failed.count);
            // A hypervisor that cannot be used says nothing about what can be made on it.
            let is_ready = self.clusters.get(cluster).is_some_and(|found| found.is_ready);
            let since = managed.failed.as_ref().filter(|_| is_ready).map_or(now, |failed| failed.since);
            let lasted = now.elapsed().saturating_sub(since.elapsed());
            let retry_at = now.after(backoff::pause(class, count, &managed.entry.object.uid));
            let count = count.saturating_add(1);
            managed.failed = Some(Failed { of: step, class, message, retry_at, count, since, lasted });
            self.timers.set(Timer::List(cluster.clone()), now.after(LIST_AFTER));
        }
        self.claim_changed(name);
    }
}

/// Whether a machine that does not say whose it is has everything else of the one of a claim.
fn is_unrecorded(found: &Inspected, managed: &Managed, pool: Option<&str>) -> bool {
    let Inspected { seen, owner, .. } = found;
    let was_ours = managed.entry.object.status.created_time.is_some();
    let is_in_pool = pool.is_some() && seen.pool.as_deref() == pool;
    owner.is_none() && *seen.name == *managed.host_name && (was_ours || seen.is_tagged || is_in_pool)
}

fn unrecorded(managed: &Managed, found: &Inspected, owner: Owner, at: Moment) -> Sight {
    let status = &managed.entry.object.status;
    let id = status.vm_ref.as_ref().map(|vm_ref| vm_ref.vm_id.clone()).unwrap_or_default();
    let is_configured = status.started_time.is_some();
    let record = record::line(&Record { id, owner, seed: None, is_configured });
    Sight::Unrecorded { at, power: found.seen.power, record: record.into() }
}
