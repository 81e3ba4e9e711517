//! Every event that the fleet publishes.

use super::{EventReason, NOTHING, normal, warning};

/// Every event that the fleet publishes; each begins with the kinds that it may be about.
pub const FLEET_EVENTS: [EventReason; 73] = [
    normal("Cloning", "MachineClaim: its machine is created", NOTHING),
    normal("Starting", "MachineClaim: its machine is started", NOTHING),
    normal("Ready", "MachineClaim: its machine is ready; the message says after which time", NOTHING),
    normal("Standby", "MachineClaim: its machine is configured and waits until spec.power is Running", NOTHING),
    normal("Retrying", "MachineClaim: an operation on its hypervisor failed and is tried again", NOTHING),
    normal(
        "PowerUnknown",
        "MachineClaim: the hypervisor does not say whether its machine runs",
        "check the node of the machine",
    ),
    normal(
        "LimitReached",
        "MachineClaim: its hypervisor has as many machines as limits.machines allows",
        "delete claims, or raise the limit",
    ),
    normal(
        "TemplateDeleting",
        "MachineClaim: its template is being deleted",
        "make another claim with another template",
    ),
    warning(
        "InsufficientResources",
        "MachineClaim: no node of its hypervisor has room",
        "wait, free room, or change overcommit",
    ),
    warning(
        "NoFreeId",
        "MachineClaim: no id of the range of its hypervisor is free",
        "widen vmIds of the HypervisorCluster",
    ),
    warning(
        "ClusterNotFound",
        "MachineClaim or HypervisorMachineTemplate: its HypervisorCluster does not exist",
        "create it",
    ),
    warning(
        "ClusterNotReady",
        "MachineClaim or HypervisorMachineTemplate: its HypervisorCluster cannot be used",
        "`virtpilot fleet check`",
    ),
    warning(
        "TemplateNotFound",
        "MachineClaim: its template does not exist; HypervisorMachineTemplate: the hypervisor has no such template",
        "create it, or correct the reference",
    ),
    warning(
        "TemplateInvalid",
        "MachineClaim: its template cannot be used",
        "see the condition TemplateValid of the template",
    ),
    warning(
        "ConfigurationError",
        "MachineClaim, HypervisorCluster or RunnerPool: the hypervisor or GitHub refuses, and a person has to change something",
        "see the message",
    ),
    warning(
        "ProvisioningFailed",
        "MachineClaim: its machine cannot be created",
        "see the message, then delete the claim",
    ),
    warning(
        "ProvisioningTimeout",
        "MachineClaim: its machine could not be made for `provisioningTimeout` of its pool, which makes another claim",
        "see the message, then delete the claim",
    ),
    warning(
        "BootTimeout",
        "MachineClaim: its guest agent reported no address in time",
        "install the guest agent, or set readiness.signal to Running; then delete the claim",
    ),
    warning(
        "MachineHalted",
        "MachineClaim: the hypervisor has halted its machine, often because a disk cannot be written",
        "see the space and the state of its storage, then resume it (`qm resume ID`); a pool replaces it after 5 minutes",
    ),
    warning("MachineVanished", "MachineClaim: somebody else deleted its machine", "delete the claim"),
    warning(
        "ClaimRefused",
        "RunnerPool: the API server refuses new claims, which is tried again a minute later",
        "see the message; often a ResourceQuota or an admission policy",
    ),
    warning(
        "BackingOff",
        "RunnerPool: many claims have failed lately, so that new ones are created slowly",
        "`virtpilot fleet list`, and look at the failed claims",
    ),
    normal("Busy", "MachineClaim: it is drained, and ends when its work is done", NOTHING),
    normal("MachineStopped", "MachineClaim: it is deleted because its machine has stopped", NOTHING),
    normal("VMShutdownDetected", "MachineClaim: its machine was seen to be stopped", NOTHING),
    normal("Expired", "MachineClaim: it is deleted because its ttl is over", NOTHING),
    normal(
        "MaxLifetimeReached",
        "MachineClaim: it is deleted because the maximum lifetime of its machine is over",
        NOTHING,
    ),
    normal("Drained", "MachineClaim: it is deleted because it was drained", NOTHING),
    normal("Destroying", "MachineClaim: its machine is destroyed", NOTHING),
    normal(
        "WaitingForRequests",
        "MachineClaim: an earlier request may still create its machine, so that its end waits for up to a minute",
        NOTHING,
    ),
    normal("Destroyed", "MachineClaim: its machine is gone", NOTHING),
    normal("NeverCreated", "MachineClaim: it ends without ever having had a machine", NOTHING),
    warning(
        "CleanupFailed",
        "MachineClaim: its machine could not be destroyed, which is tried again",
        "`virtpilot fleet explain NAME`",
    ),
    warning(
        "OwnerRecordMissing",
        "MachineClaim, HypervisorCluster: a machine of the fleet is there, and its record of whose it is was overwritten",
        "put the line of the message back into its notes, or delete the machine by hand",
    ),
    warning(
        "ProvisioningStuck",
        "MachineClaim: its machine could not be made for a quarter of an hour, and is tried further",
        "look at the hypervisor, or delete the claim",
    ),
    warning(
        "CleanupStuck",
        "MachineClaim: its machine was not gone after spec.cleanupDeadline (10 minutes) of its hypervisor",
        "see the message; the annotation hyperfleet.io/force-delete gives up the machine",
    ),
    warning(
        "Forced",
        "MachineClaim: it ends without its machine, as hyperfleet.io/force-delete asks",
        "look for the machine on the hypervisor",
    ),
    warning(
        "ForceDeleted",
        "MachineClaim: its finalizer was removed although its machine was not seen to be gone",
        "look for the machine on the hypervisor",
    ),
    normal("ConnectionSuccessful", "HypervisorCluster: it answers, and the credentials suffice", NOTHING),
    warning("ConnectionFailed", "HypervisorCluster: it does not answer", "`virtpilot fleet check`"),
    warning(
        "MissingPrivileges",
        "HypervisorCluster: the credentials lack privileges",
        "`virtpilot fleet check` names the commands",
    ),
    warning(
        "EndpointChanged",
        "HypervisorCluster: its endpoint was changed although it has machines",
        "set it back, or the annotation hyperfleet.io/same-hypervisor to the new endpoint",
    ),
    warning("NoQuorum", "HypervisorCluster: its nodes have no quorum", "bring its nodes back"),
    warning("ClockSkew", "HypervisorCluster: its clock differs", "synchronise the clocks with NTP"),
    warning(
        "OrphanFound",
        "HypervisorCluster: a machine of this installation has no claim",
        "nothing with orphans.policy Delete; otherwise delete the machine",
    ),
    warning(
        "OrphanDestroyed",
        "HypervisorCluster: a machine without a claim is destroyed after the grace period",
        NOTHING,
    ),
    warning(
        "SeedCleanupFailed",
        "HypervisorCluster: images of cloud-init data that nobody needs could not be listed or deleted",
        "mend the storage that is named, or grant Datastore.Allocate on it",
    ),
    normal("ValidationSucceeded", "HypervisorMachineTemplate: machines can be made from it", NOTHING),
    warning(
        "NamespaceNotAllowed",
        "HypervisorMachineTemplate: its namespace may not use the hypervisor",
        "add the namespace to spec.allowedNamespaces of the HypervisorCluster",
    ),
    warning("ValidationFailed", "HypervisorMachineTemplate: it does not fit its hypervisor", "see the message"),
    normal("Scaling", "RunnerPool: it wants another number of machines", NOTHING),
    normal("Deregistering", "MachineClaim: it is to end, and waits until its runner can take no job any more", NOTHING),
    normal("JobCompleted", "MachineClaim: it is deleted because the job of its runner is done", NOTHING),
    normal(
        "RunnerNotStarted",
        "MachineClaim: it is deleted because its runner was not online in time",
        "see the event of its guest, or the console of a machine that boots",
    ),
    normal("RunnerOffline", "MachineClaim: it is deleted because its runner was offline without a job", NOTHING),
    normal("RunnerRemoved", "MachineClaim: it is deleted because somebody else has removed its runner", NOTHING),
    warning(
        "GuestFailed",
        "MachineClaim: its guest has ended before a job was done; with the end of the output of the runner",
        "see the message",
    ),
    warning(
        "RunnerDeprecated",
        "MachineClaim: GitHub refuses the version of its runner",
        "build the template with a newer runner, or let the fleet choose one with workload.config.github.runner.upkeep",
    ),
    warning(
        "TokenReused",
        "MachineClaim: the bootstrap token of its machine was presented by somebody else, too, and refused",
        "find out who has read its cloud-init data, and delete the claim",
    ),
    normal("Connected", "RunnerPool: it can register runners", NOTHING),
    warning("SettingsInvalid", "RunnerPool: its workload.config.github cannot be used", "see the message"),
    warning(
        "PermissionMissing",
        "RunnerPool: its credentials lack a permission",
        "grant what the message names, and accept it for the installation of the App",
    ),
    warning(
        "NoBootstrapEndpoint",
        "RunnerPool: machines cannot get the credentials of their runners, because the operator serves no bootstrap endpoint",
        "start the fleet with one",
    ),
    warning("RateLimited", "RunnerPool: GitHub allows no more requests for a while", "wait, or use a GitHub App"),
    warning("Unreachable", "RunnerPool: its GitHub does not answer", "check the network, and status.github.com"),
    warning(
        "OrphanRunner",
        "RunnerPool: a runner of this installation was registered on GitHub without a claim, and is removed",
        NOTHING,
    ),
    normal(
        "WebhooksRedelivered",
        "RunnerPool: deliveries of the webhook failed, and GitHub is asked to make them again",
        "if it goes on: see the deliveries in the settings of the webhook",
    ),
    normal("RunnerVersionCanary", "RunnerPool: a new runner version is tried on a few machines", NOTHING),
    normal(
        "RunnerVersionPromoted",
        "RunnerPool: a new runner version has proved itself and is for all machines",
        NOTHING,
    ),
    warning(
        "RunnerVersionRolledBack",
        "RunnerPool: runners of a new version failed, so that it is not used any more",
        "see the message; the annotation hyperfleet.io/retry-runner-version tries it again",
    ),
    warning(
        "RunnerVersionAgeing",
        "RunnerPool: GitHub refuses the runner version that it uses in a few days",
        "with a version in the image or in the pool: take a newer one",
    ),
    warning(
        "RunnerVersionRefused",
        "RunnerPool: GitHub gives runners of the version that it uses no jobs",
        "take a newer version",
    ),
    warning(
        "NoRunnerVersion",
        "RunnerPool: no runner version can be used: each was rolled back, is refused or is not offered, so that no machine is made",
        "see the message; the annotation hyperfleet.io/retry-runner-version tries one that was rolled back again",
    ),
];
