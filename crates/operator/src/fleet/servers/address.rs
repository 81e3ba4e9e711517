//! The address of the bootstrap endpoint as machines see it.

use rustls::pki_types::ServerName;
use std::fmt;
use std::net::IpAddr;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicAddress {
    /// A name or an IP address, without brackets; it is in the certificate.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl PublicAddress {
    /// Reads `HOST:PORT`; nothing if it is empty.
    pub(crate) fn parse(text: &str) -> Result<Option<PublicAddress>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || {
            format!(
                "{text:?} is not an address that machines can reach; write HOST:PORT, for example fleet.example.com:8443"
            )
        };
        let rest = text.strip_prefix("https://").unwrap_or(text);
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
        ServerName::try_from(host).map_err(|_| wrong())?;
        if host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified()) {
            return Err(wrong());
        }
        Ok(Some(PublicAddress { host: host.to_owned(), port }))
    }
}

impl fmt::Display for PublicAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "https://[{}]:{}", self.host, self.port),
            false => write!(f, "https://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PublicAddress;

    #[test]
    fn an_address_has_a_host_and_a_port_that_machines_can_reach() {
        for (text, shown) in [
            ("fleet.example.com:8443", "https://fleet.example.com:8443"),
            ("https://10.0.0.7:443", "https://10.0.0.7:443"),
            ("[2001:db8::1]:443", "https://[2001:db8::1]:443"),
        ] {
            let address = PublicAddress::parse(text).unwrap().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(PublicAddress::parse(&address.to_string()).unwrap(), Some(address));
        }
        assert_eq!(PublicAddress::parse("").unwrap(), None);
        for wrong in ["fleet", ":8443", "0.0.0.0:8443", "[::]:1", "a b:1", "a:0", "a:99999", "http://a:1", "a:1/x"] {
            assert!(PublicAddress::parse(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
    }
}
