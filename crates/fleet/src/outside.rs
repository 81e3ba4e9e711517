//! What the fleet asks for outside of the API server, and the answers: hypervisors, CI platforms, and its own border to guests.

use crate::bootstrap::{Offer, Record};
use crate::forge::ForgeKey;
use crate::inbox::Received;
use crate::{forge, hypervisor};
use bootstrap::{Claim, Secret};
use std::time::Duration;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To a hypervisor.
    Hypervisor(hypervisor::Request),
    /// To a CI platform.
    Forge(forge::Request),
    /// Forget the connection to a CI platform, with its credentials and the secrets of its webhooks.
    ForgetForge(ForgeKey),
    /// To the border, where guests and webhooks arrive.
    Border(Ask),
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Of a hypervisor.
    Hypervisor(Result<hypervisor::Answer, hypervisor::Failure>),
    /// Of a CI platform.
    Forge(Result<forge::Answer, forge::Failure>),
    /// Of the border.
    Border(Reply),
}

/// What the border is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Wait until something arrives.
    Receive,
    /// Make a token for the guest of a claim.
    Mint {
        /// The claim.
        claim: Claim,
        /// How long it works.
        life: Duration,
    },
    /// Know these records of an earlier process, and answer guests from then on.
    Restore(Vec<Record>),
    /// Give a guest the credentials of its runner when it asks.
    Offer {
        /// The uid of the claim.
        uid: String,
        /// The credentials.
        offer: Box<Offer>,
    },
    /// Tell a guest to end unless a job runs.
    Drain(String),
    /// Forget a claim that is gone.
    Forget(String),
}

/// What the border answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What arrived, and what is recorded now of the claims that it is about.
    Received(Vec<Received>, Vec<Record>),
    /// A token.
    Minted(Box<Minted>),
    /// No token: the reason and the remedy.
    NotMinted(String),
    /// It is done.
    Done,
}

/// A token for a guest, and where it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The token.
    pub token: Secret,
    /// What is recorded of it.
    pub record: Record,
    /// Where guests reach the bootstrap endpoint.
    pub endpoint: String,
    /// The only authority of its certificate, as PEM.
    pub ca: String,
}
