//! Ports on the loopback interface, asked from the kernel.

use crate::trouble::Trouble;
use std::net::{Ipv4Addr, TcpListener};

/// A port that nobody listens on at this moment.
pub fn free() -> Result<u16, Trouble> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| {
            Trouble::new("the kernel gave us no free port on 127.0.0.1", "end what holds so many connections")
                .from(error)
        })
}

/// A port that somebody asked for by number, if it is free.
pub fn wanted(port: u16) -> Result<u16, Trouble> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(port),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(taken(port)),
        Err(error) => Err(Trouble::new(
            format!("port {port} on 127.0.0.1 cannot be used"),
            "choose a --port of 1024 or more, or leave --port out: then a free one is taken",
        )
        .from(error)),
    }
}

/// The message about a port that somebody else holds.
pub fn taken(port: u16) -> Trouble {
    Trouble::new(
        format!("port {port} on 127.0.0.1 is taken"),
        format!(
            "end what listens there (`ss -ltnp 'sport = :{port}'` shows it), choose another --port, or leave --port out: \
             then a free one is taken"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{free, wanted};
    use std::net::TcpListener;

    #[test]
    fn a_port_somebody_listens_on_is_refused_with_a_remedy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let trouble = wanted(port).unwrap_err().to_string();
        assert!(trouble.starts_with(&format!("port {port} on 127.0.0.1 is taken")), "{trouble}");
        assert!(free().unwrap() > 0);
    }
}
