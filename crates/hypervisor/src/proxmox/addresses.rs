//! Asks the guest agent of a machine for its addresses.

use crate::proxmox::client::Client;
use crate::proxmox::machine::owned;
use crate::proxmox::power::after;
use crate::proxmox::trouble::Trouble;
use fleet::hypervisor::{Failure, GuestNetwork, Target};
use serde::Deserialize;
use std::net::IpAddr;

#[derive(Deserialize)]
struct Interfaces {
    #[serde(default)]
    result: Vec<Interface>,
}

#[derive(Deserialize)]
struct Interface {
    #[serde(default, rename = "hardware-address")]
    mac: Option<String>,
    #[serde(default, rename = "ip-addresses")]
    addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "ip-address")]
    address: String,
}

pub(crate) async fn addresses(client: &Client, target: &Target) -> Result<Option<GuestNetwork>, Failure> {
    let (machine, _) = owned(client, target).await?;
    let path = "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces";
    match client.get::<Interfaces>(path, &[&machine.node, &target.id.0]).await {
        Ok(interfaces) => Ok(Some(reachable(&interfaces))),
        Err(trouble) if is_silent(&trouble) => Ok(None),
        Err(trouble) => Err(after(client, &trouble, &target.id, &machine.node, "asking the guest of").await),
    }
}

/// Whether the guest agent does not answer yet: the guest boots, or the agent starts again. Everything that the agent itself answers is something else.
pub(crate) fn is_silent(trouble: &Trouble) -> bool {
    let Trouble::Answered { code: 500, message } = trouble else { return false };
    let lower = message.to_lowercase();
    let is_command = lower.contains("guest-") && !lower.contains("agent error");
    lower.contains("guest agent is not running")
        || (lower.starts_with("vm ") && lower.trim_end().ends_with(" is not running"))
        || (is_command && (lower.contains("timeout") || lower.contains("unable to connect")))
}

/// The addresses that others can reach, each once.
fn reachable(interfaces: &Interfaces) -> GuestNetwork {
    let mut found = GuestNetwork::default();
    for interface in &interfaces.result {
        for Address { address } in &interface.addresses {
            let is_reachable = match address.parse() {
                Ok(IpAddr::V4(v4)) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
                Ok(IpAddr::V6(v6)) => !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
                Err(_) => false,
            };
            if is_reachable {
                found.add(address, interface.mac.as_deref());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{is_silent, reachable};
    use crate::proxmox::trouble::Trouble;

    #[test]
    fn loopback_and_link_local_addresses_are_left_out() {
        let answer = r#"{"result":[{"name":"lo","hardware-address":"00:00:00:00:00:00","ip-addresses":[{"ip-address":"127.0.0.1","prefix":8},{"ip-address":"::1"}]},
            {"name":"eth0","hardware-address":"bc:24:11:00:00:07","ip-addresses":[{"ip-address":"10.0.0.7"},{"ip-address":"fe80::1"},{"ip-address":"2001:db8::7"}]},
            {"name":"eth1","ip-addresses":[{"ip-address":"169.254.1.1"},{"ip-address":"10.0.0.7"},{"ip-address":"x"}]},{"name":"eth2"}]}"#;
        let found = reachable(&serde_json::from_str(answer).unwrap());
        assert_eq!(found.addresses, ["10.0.0.7", "2001:db8::7"]);
        assert_eq!(found.mac.as_deref(), Some("bc:24:11:00:00:07"), "of the interface with the first address");
    }

    #[test]
    fn a_guest_that_does_not_answer_is_no_error_and_everything_else_is() {
        let answered = |code, message: &str| Trouble::Answered { code, message: message.into() };
        assert!(is_silent(&answered(500, "QEMU guest agent is not running")));
        assert!(is_silent(&answered(500, "VM 105 qga command 'guest-ping' failed - got timeout")));
        assert!(is_silent(&answered(
            500,
            "VM 105 qmp command 'guest-network-get-interfaces' failed - unable to connect to VM 105 qga socket"
        )));
        for wrong in [
            "No QEMU guest agent configured",
            "Agent error: The command guest-ping has been disabled for this instance",
            "Agent error: guest agent: command guest-exec is not allowed",
            "Agent error: Failed to execute child process: the service is not running",
        ] {
            assert!(!is_silent(&answered(500, wrong)), "{wrong}");
        }
        assert!(is_silent(&answered(500, "VM 105 is not running")));
        assert!(!is_silent(&answered(500, "can't lock file - got timeout")));
        assert!(!is_silent(&answered(403, "Permission check failed (/vms/105, VM.GuestAgent.Audit)")));
        assert!(!is_silent(&Trouble::Unanswered("guest agent".into())));
    }
}
