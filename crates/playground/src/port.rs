//! TCP ports on the loopback interface.

use crate::user_error::UserError;
use std::net::{Ipv4Addr, TcpListener};

/// A port that is free at this moment.
pub fn free() -> Result<u16, UserError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| {
            UserError::new("there is no free port on 127.0.0.1", "close some of the connections open on this machine")
                .with_source(error)
        })
}

/// The requested port, if it is free.
pub fn requested(port: u16) -> Result<u16, UserError> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(port),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(in_use(port)),
        Err(error) => Err(UserError::new(
            format!("port {port} on 127.0.0.1 cannot be used"),
            "choose a --port of 1024 or more, or omit --port to use a free one",
        )
        .with_source(error)),
    }
}

/// The error for a port that another process listens on.
pub fn in_use(port: u16) -> UserError {
    UserError::new(
        format!("port {port} on 127.0.0.1 is already in use"),
        format!(
            "stop the process that listens there (`ss -ltnp 'sport = :{port}'` shows it), choose another --port, or omit --port \
             to use a free one"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{free, requested};
    use std::net::TcpListener;

    #[test]
    fn a_port_in_use_is_refused_with_a_fix() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = requested(port).unwrap_err().to_string();
        assert!(error.starts_with(&format!("port {port} on 127.0.0.1 is already in use")), "{error}");
        assert!(free().unwrap() > 0);
    }
}
