//! The flags of the fleet's two servers.

use super::Address;
use crate::fleet::servers::{PublicAddress, Settings};
use runtime::health;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct FleetServers {
    /// The address of the fleet's receiver of webhooks, such as :8083; 0 disables it
    #[arg(long, default_value = "0", value_name = "ADDRESS", env = "WEBHOOK_BIND_ADDRESS", value_parser = health::parse_address)]
    webhook_bind_address: Address,
    /// The folder with tls.crt and tls.key of the receiver of webhooks, which are read again when they change. Without it, it does not
    /// encrypt: put it behind an Ingress that does
    #[arg(long, value_name = "FOLDER", env = "WEBHOOK_CERT_PATH")]
    webhook_cert_path: Option<PathBuf>,
    /// The address of the fleet's bootstrap endpoint, where guests get the credentials of their runners; 0 disables it
    #[arg(long, default_value = ":8443", value_name = "ADDRESS", env = "BOOTSTRAP_BIND_ADDRESS", value_parser = health::parse_address)]
    bootstrap_bind_address: Address,
    /// The same as machines reach it, such as fleet.example.com:8443. Without it there is no endpoint, and no runner is started
    #[arg(long, default_value = "", value_name = "HOST:PORT", env = "BOOTSTRAP_ADDRESS", value_parser = PublicAddress::parse, hide_default_value = true)]
    bootstrap_address: PublicAddressOrNone,
}

// An alias, because clap treats a plain Option as an optional argument.
type PublicAddressOrNone = std::option::Option<PublicAddress>;

impl FleetServers {
    pub(super) fn settings(&self) -> Settings {
        Settings {
            webhooks: self.webhook_bind_address.clone(),
            webhook_certificate: self.webhook_cert_path.clone(),
            bootstrap: self.bootstrap_bind_address.clone(),
            bootstrap_address: self.bootstrap_address.clone(),
        }
    }
}
