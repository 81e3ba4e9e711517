//! What a hypervisor has to be able to do, whichever it is.

use fleet::hypervisor::{
    Answer, Blueprint, Checked, Delivery, Failure, GuestNetwork, Inspected, Listed, MachineId, Operation, SeedImage,
    SeedSearch, SeedsFound, Target, Template, TemplateRef,
};
use futures::future::BoxFuture;
use std::future::Future;

/// A hypervisor. Every method that changes something returns when the change has ended and was seen; `Target` and `Blueprint` say whose a
/// machine must be, which is checked with a record that is read right before.
pub trait Provider: Send + Sync {
    /// Log in, and find out what is there and what is allowed.
    fn check(&self) -> impl Future<Output = Result<Checked, Failure>> + Send;
    /// List all machines, and what nodes and storages have left.
    fn list(&self) -> impl Future<Output = Result<Listed, Failure>> + Send;
    /// Find a template: one for each node that has it.
    fn find_template(&self, wanted: &TemplateRef) -> impl Future<Output = Result<Vec<Template>, Failure>> + Send;
    /// Read one machine; nothing if there is surely none.
    fn inspect(&self, id: &MachineId) -> impl Future<Output = Result<Option<Inspected>, Failure>> + Send;
    /// Clone a template into a new machine, with its owner record.
    fn create(&self, blueprint: &Blueprint) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Bring a machine to its blueprint.
    fn configure(&self, blueprint: &Blueprint) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Switch it on.
    fn start(&self, target: &Target) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Switch it off without asking the guest.
    fn stop(&self, target: &Target) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Switch it off, delete everything that belongs to it, and see that it is gone.
    fn destroy(&self, target: &Target) -> impl Future<Output = Result<(), Failure>> + Send;
    /// In which state the hypervisor has halted a machine that it shows as running; nothing if it has not.
    fn look(&self, target: &Target) -> impl Future<Output = Result<Option<String>, Failure>> + Send;
    /// Ask the guest for its addresses; nothing while it does not answer.
    fn addresses(&self, target: &Target) -> impl Future<Output = Result<Option<GuestNetwork>, Failure>> + Send;
    /// Detach and delete the image of its seed; fine if there is none.
    fn remove_seed(&self, target: &Target) -> impl Future<Output = Result<(), Failure>> + Send;
    /// Let the guest agent carry out a seed; whether cloud-init has ended well.
    fn deliver(&self, delivery: &Delivery) -> impl Future<Output = Result<bool, Failure>> + Send;
    /// List the images of seeds of an installation, on all storages that can be listed.
    fn list_seeds(&self, search: &SeedSearch) -> impl Future<Output = Result<SeedsFound, Failure>> + Send;
    /// Delete an image of a seed.
    fn delete_seed(&self, image: &SeedImage) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Any provider, for those who keep several kinds of them.
pub trait CarryOut: Send + Sync {
    /// Carries out one operation.
    fn carry_out<'a>(&'a self, operation: &'a Operation) -> BoxFuture<'a, Result<Answer, Failure>>;
}

impl<P: Provider> CarryOut for P {
    fn carry_out<'a>(&'a self, operation: &'a Operation) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            match operation {
                Operation::Check => self.check().await.map(|checked| Answer::Checked(Box::new(checked))),
                Operation::List => self.list().await.map(|listed| Answer::Listed(Box::new(listed))),
                Operation::FindTemplate(wanted) => self.find_template(wanted).await.map(Answer::Templates),
                Operation::Inspect(id) => self.inspect(id).await.map(|found| Answer::Inspected(found.map(Box::new))),
                Operation::Create(blueprint) => self.create(blueprint).await.map(|()| Answer::Done),
                Operation::Configure(blueprint) => self.configure(blueprint).await.map(|()| Answer::Done),
                Operation::Start(target) => self.start(target).await.map(|()| Answer::Done),
                Operation::Stop(target) => self.stop(target).await.map(|()| Answer::Done),
                Operation::Destroy(target) => self.destroy(target).await.map(|()| Answer::Done),
                Operation::Look(target) => self.look(target).await.map(Answer::Looked),
                Operation::Addresses(target) => self.addresses(target).await.map(Answer::Addresses),
                Operation::RemoveSeed(target) => self.remove_seed(target).await.map(|()| Answer::Done),
                Operation::Deliver(delivery) => self.deliver(delivery).await.map(Answer::Delivered),
                Operation::ListSeeds(search) => self.list_seeds(search).await.map(Answer::Seeds),
                Operation::DeleteSeed(image) => self.delete_seed(image).await.map(|()| Answer::Done),
                // The connection is kept elsewhere.
                Operation::Disconnect => Ok(Answer::Done),
            }
        })
    }
}
