//! The hands of the fleet outside of the API server: hypervisors, CI platforms, and the border to guests and webhooks.

use super::border::Border;
use super::connections::Connections;
use super::forges::Forges;
use bootstrap::Claim;
use fleet::bootstrap::Record;
use fleet::inbox::Received;
use fleet::outside::{Answer, Ask, Minted, Reply, Request};
use jiff::Timestamp;
use runtime::Elsewhere;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Everything that the fleet asks elsewhere.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) connections: Arc<Connections>,
    pub(super) forges: Arc<Forges>,
    pub(super) border: Arc<Border>,
}

impl Elsewhere<Request, Answer> for Outside {
    fn carry_out(&self, request: Request) -> impl Future<Output = Answer> + Send + 'static {
        let hands = self.clone();
        async move {
            match request {
                Request::Hypervisor(request) => Answer::Hypervisor(hands.connections.carry_out(&request).await),
                Request::Forge(request) => Answer::Forge(hands.forges.carry_out(&request).await),
                Request::ForgetForge(forge) => {
                    hands.forges.forget(&forge);
                    Answer::Border(Reply::Done)
                }
                Request::Border(ask) => Answer::Border(answer(&hands.border, ask).await),
            }
        }
    }
}

async fn answer(border: &Border, ask: Ask) -> Reply {
    match ask {
        Ask::Receive => {
            let received = border.receive().await;
            let records = records(border, &received);
            return Reply::Received(received, records);
        }
        Ask::Mint { claim, life } => return mint(border, claim, life),
        Ask::Restore(records) => {
            border.restore(records);
            // Only now: a guest that an earlier process knows must not be refused.
            border.open();
        }
        Ask::Offer { uid, offer } => border.offer(&uid, *offer),
        Ask::Drain(uid) => border.drain(&uid),
        Ask::Forget(uid) => border.forget(&uid),
    }
    Reply::Done
}

/// What is recorded of the guests that something was received of.
fn records(border: &Border, received: &[Received]) -> Vec<Record> {
    use fleet::bootstrap::Notice;
    let uid = |one: &Received| match one {
        Received::Job(_) => None,
        Received::Guest(Notice::Ended(end)) => Some(end.claim.uid.clone()),
        Received::Guest(
            Notice::Attested(claim)
            | Notice::Granted(claim)
            | Notice::TokenReused(claim)
            | Notice::Refused(claim, _)
            | Notice::Reported(claim, _),
        ) => Some(claim.uid.clone()),
    };
    let uids: BTreeSet<String> = received.iter().filter_map(uid).collect();
    uids.iter().filter_map(|uid| border.record(uid)).collect()
}

fn mint(border: &Border, claim: Claim, life: Duration) -> Reply {
    let Some(endpoint) = border.endpoint() else {
        let why = "the operator serves no bootstrap endpoint, where machines get the credentials of their runners: start it with an \
                   address for that";
        return Reply::NotMinted(why.to_owned());
    };
    let mut random = [0; 32];
    if rustls::crypto::ring::default_provider().secure_random.fill(&mut random).is_err() {
        return Reply::NotMinted("this machine has no random numbers".to_owned());
    }
    match border.mint(claim, random, life, Timestamp::now()) {
        Ok((token, Some(record))) => {
            let minted = Minted { token, record, endpoint: endpoint.address, ca: endpoint.ca };
            Reply::Minted(Box::new(minted))
        }
        Ok((_, None)) => Reply::NotMinted("the token was forgotten at once".to_owned()),
        Err(_) => Reply::NotMinted("there are as many machines that boot as tokens can be known of: wait".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;
    use crate::fleet::border::{Border, Endpoint};
    use bootstrap::{Attestation, Claim, Exchange, Secret};
    use fleet::bootstrap::Notice;
    use fleet::inbox::Received;
    use fleet::outside::{Ask, Reply};
    use jiff::Timestamp;
    use std::time::Duration;

    fn claim() -> Claim {
        Claim { namespace: "ci".into(), name: "a".into(), uid: "u".into() }
    }

    fn mint() -> Ask {
        Ask::Mint { claim: claim(), life: Duration::from_secs(60) }
    }

    #[tokio::test]
    async fn a_token_is_random_made_only_for_an_endpoint_and_its_use_comes_with_its_record() {
        let border = Border::new();
        assert!(
            matches!(answer(&border, mint()).await, Reply::NotMinted(why) if why.contains("no bootstrap endpoint"))
        );
        border.serve_at(Endpoint { address: "https://a".into(), ca: "pem".into() });
        let Reply::Minted(first) = answer(&border, mint()).await else { panic!("no token") };
        let Reply::Minted(minted) = answer(&border, mint()).await else { panic!("no token") };
        assert!(first.token != minted.token, "no two are the same");
        assert_eq!(answer(&border, Ask::Restore(Vec::new())).await, Reply::Done);
        assert!(border.is_open(), "guests are answered once their records are known");
        let exchange = Exchange {
            claim: claim(),
            attestation: Attestation::Token { token: minted.token.clone() },
            nonce: Secret::new("n".repeat(32)),
            version: String::new(),
        };
        border.exchange(&exchange, Timestamp::now()).unwrap();
        let Reply::Received(received, records) = answer(&border, Ask::Receive).await else { panic!("nothing") };
        assert_eq!(received, [Received::Guest(Notice::Attested(claim()))]);
        assert!(records.len() == 1 && records[0].used.is_some(), "{records:?}");
        assert_eq!(answer(&border, Ask::Forget("u".into())).await, Reply::Done);
        assert_eq!(border.record("u"), None);
    }
}
