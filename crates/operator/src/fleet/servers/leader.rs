//! Where the replica that leads listens: one that does not lead passes on what arrives.

use super::Settings;
use api::fleet::LEADER_ADDRESS;
use cluster::Server;
use cluster::lease::{Replica, holder};
use runtime::health::BindAddress;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// For so long the lease is not read again, however many connections arrive.
const FRESH: Duration = Duration::from_secs(2);
/// An API server that does not answer keeps nobody waiting for longer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The servers of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The receiver of webhooks.
    Webhooks,
    /// The bootstrap endpoint.
    Bootstrap,
}

/// The ports of a replica, as other pods reach them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ports {
    webhooks: Option<u16>,
    bootstrap: Option<u16>,
}

/// The addresses of a replica, which it publishes on its lease while it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Published {
    address: IpAddr,
    ports: Ports,
}

impl Published {
    /// Of the replica that holds the lease; one that publishes nothing may have left what another one said.
    fn read(replica: &Replica) -> Option<Published> {
        let text = replica.annotations.get(LEADER_ADDRESS)?;
        let [pod, address, webhooks, bootstrap] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        let ports = Ports { webhooks: port(webhooks), bootstrap: port(bootstrap) };
        (pod == replica.name).then_some(Published { address: address.parse().ok()?, ports })
    }

    fn of(self, which: Which) -> Option<SocketAddr> {
        let port = match which {
            Which::Webhooks => self.ports.webhooks,
            Which::Bootstrap => self.ports.bootstrap,
        };
        Some(SocketAddr::new(self.address, port?))
    }
}

/// Says on the lease where this replica listens, if the address of its pod is known.
pub(crate) fn publish(replica: &mut Replica, address: Option<&str>, settings: &Settings) {
    let Some(address) = address.and_then(|text| text.parse::<IpAddr>().ok()) else { return };
    let port = |bound: Option<&BindAddress>| match bound {
        Some(BindAddress::Every(port)) => *port,
        Some(found @ BindAddress::Host(text)) if !found.is_loopback() => {
            text.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default()
        }
        _ => 0,
    };
    let bootstrap = settings.bootstrap.as_ref().filter(|_| settings.bootstrap_address.is_some());
    let ports = (port(settings.webhooks.as_ref()), port(bootstrap));
    let text = format!("{} {address} {} {}", replica.name, ports.0, ports.1);
    replica.annotations.insert(LEADER_ADDRESS.to_owned(), text);
}

/// The replica that leads, as its lease says.
pub(crate) struct Leader {
    /// Where the lease is, and the name of this replica; without it, what is known never changes.
    source: Option<(Server, String, String)>,
    known: Mutex<(Option<Instant>, Option<Published>)>,
}

impl Leader {
    /// Another replica than `own` of the fleet in a namespace.
    pub(crate) fn new(server: &Server, namespace: &str, own: &str) -> Leader {
        Leader { source: Some((server.clone(), namespace.to_owned(), own.to_owned())), known: Mutex::default() }
    }

    /// A leader that listens here.
    #[cfg(test)]
    pub(super) fn at(address: SocketAddr) -> Leader {
        let ports = Ports { webhooks: Some(address.port()), bootstrap: Some(address.port()) };
        let published = Published { address: address.ip(), ports };
        Leader { source: None, known: Mutex::new((None, Some(published))) }
    }

    /// Where connections of a peer are passed on to. Those of the leader itself are not: it believes that this replica leads.
    pub(super) async fn address(&self, which: Which, peer: IpAddr) -> Option<SocketAddr> {
        let found = self.find().await?.of(which)?;
        (found.ip().to_canonical() != peer.to_canonical()).then_some(found)
    }

    async fn find(&self) -> Option<Published> {
        let mut known = self.known.lock().await;
        let Some((server, namespace, own)) = &self.source else { return known.1 };
        if known.0.is_none_or(|asked| asked.elapsed() >= FRESH) {
            known.0 = Some(Instant::now());
            // Without an answer it is perhaps still the one of before: whether it is there, a connection tells.
            if let Ok(Ok(found)) = tokio::time::timeout(TIMEOUT, holder(server, namespace)).await {
                let other = found.map(|found| found.replica).filter(|replica| replica.name != *own);
                known.1 = other.as_ref().and_then(Published::read);
            }
        }
        known.1
    }
}

#[cfg(test)]
mod tests {
    use super::{Published, Settings, Which, publish};
    use cluster::lease::Replica;
    use runtime::health::BindAddress;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_published_is_read_again_and_only_of_the_replica_that_has_written_it() {
        let mut replica = Replica { name: "fleet-0".into(), annotations: BTreeMap::new() };
        let mut settings = Settings {
            webhooks: Some(BindAddress::Every(8083)),
            webhook_certificate: None,
            bootstrap: Some(BindAddress::Host("0.0.0.0:8443".into())),
            bootstrap_address: None,
        };
        for unknown in [None, Some(""), Some("somewhere")] {
            publish(&mut replica, unknown, &settings);
            assert_eq!(Published::read(&replica), None);
        }
        publish(&mut replica, Some("10.0.0.7"), &settings);
        let found = Published::read(&replica).unwrap();
        assert_eq!(found.of(Which::Webhooks), Some("10.0.0.7:8083".parse().unwrap()));
        assert_eq!(found.of(Which::Bootstrap), None, "it is off");
        settings.bootstrap_address = crate::fleet::servers::PublicAddress::parse("fleet.example.com:443").unwrap();
        settings.webhooks = Some(BindAddress::Host("127.0.0.1:8083".into()));
        publish(&mut replica, Some("2001:db8::7"), &settings);
        let found = Published::read(&replica).unwrap();
        assert_eq!(found.of(Which::Webhooks), None, "nobody else reaches it");
        assert_eq!(found.of(Which::Bootstrap), Some("[2001:db8::7]:8443".parse().unwrap()));
        replica.name = "fleet-1".into();
        assert_eq!(Published::read(&replica), None);
    }
}
