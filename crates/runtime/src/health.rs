//! Serves `/healthz`, `/readyz` and `/metrics`.

use crate::access::Guard;
use crate::http_server;
use crate::tls::{self, Certificate};
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::get;
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How many connections may wait to be accepted; probes and scrapes are few.
const BACKLOG: i32 = 128;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// Every interface, with IPv6 and IPv4.
    Every(u16),
    /// One host by its name or IP address, and a port.
    Host(String),
}

impl BindAddress {
    /// Whether only this machine reaches it.
    pub fn is_loopback(&self) -> bool {
        let BindAddress::Host(text) = self else { return false };
        let address = text.parse::<SocketAddr>();
        address.map_or_else(|_| text.starts_with("localhost:"), |address| address.ip().is_loopback())
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindAddress::Every(port) => write!(f, ":{port}"),
            BindAddress::Host(text) => write!(f, "{text}"),
        }
    }
}

/// Parses an address: `:8080` is every interface, `0` is nothing.
pub fn parse_address(text: &str) -> Result<Option<BindAddress>, String> {
    if text == "0" {
        return Ok(None);
    }
    let is_host = |host: &str| {
        let name = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
        let is_address = format!("{host}:0").parse::<SocketAddr>().is_ok();
        // A name of digits only is an IP address that is none.
        is_address || (host.chars().all(name) && host.chars().any(|character| character.is_ascii_alphabetic()))
    };
    let parsed = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match parsed {
        Some(("" | "[::]", port)) => Ok(Some(BindAddress::Every(port))),
        Some((host, _)) if is_host(host) => Ok(Some(BindAddress::Host(text.to_owned()))),
        _ => Err(format!(
            "{text:?} is not an address; write it as :8080, localhost:8080 or 127.0.0.1:8080, or 0 for none"
        )),
    }
}

/// Serves these routes, or nothing without an address; over TLS if a certificate is given. A port that is taken and a certificate that
/// cannot be used are errors at once.
pub async fn serve(
    address: Option<BindAddress>,
    what: &str,
    certificate: Option<tls::Source>,
    routes: Router,
) -> anyhow::Result<()> {
    let Some(address) = address else { return Ok(()) };
    let listener = listen(&address, what).await?;
    let certificate = certificate.map(Certificate::load).transpose()?;
    tokio::spawn(http_server::serve(listener, certificate, routes, http_server::PATIENCE));
    Ok(())
}

/// Listens at an address. A port that is taken is an error that says what to do.
pub async fn listen(address: &BindAddress, what: &str) -> anyhow::Result<TcpListener> {
    let bound = match address {
        BindAddress::Every(port) => bind_every(*port),
        BindAddress::Host(text) => TcpListener::bind(text).await,
    };
    bound.map_err(|error| {
        anyhow::anyhow!(
            "could not listen on {address} for {what}: {error}; stop the process that listens there, or choose another address"
        )
    })
}

/// Listens on every interface: with one socket for IPv6 and IPv4, or for IPv4 only where there is no IPv6.
fn bind_every(port: u16) -> io::Result<TcpListener> {
    match bind(Domain::IPV6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
        Err(error) if is_without_ipv6(&error) => bind(Domain::IPV4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        bound => bound,
    }
}

/// Whether this machine has no IPv6; a port that is taken is another matter.
fn is_without_ipv6(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::AddrInUse && error.kind() != io::ErrorKind::PermissionDenied
}

fn bind(domain: Domain, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    // A restarted process may listen again at once.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// `/healthz`, and `/readyz` that answers what the product waits for, or that it is a standby replica.
pub fn probes(products: Vec<Shown>) -> Router {
    let ready = move || async move {
        let missing: Vec<String> = products.iter().flat_map(|(missing, _)| missing.borrow().clone()).collect();
        let standby = products.iter().map(|(_, standby)| standby.borrow().clone());
        let standby: Vec<String> = standby.filter(|standby| !standby.is_empty()).collect();
        match missing.is_empty() {
            true if standby.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
            true => (StatusCode::OK, format!("ok, {}\n", standby.join("; "))),
            false => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", missing.join(", "))),
        }
    };
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready))
}

/// What a product waits for, and what it says while it is on standby.
pub type Shown = (watch::Receiver<Vec<String>>, watch::Receiver<String>);

/// `/metrics`, with the text that a product makes in the OpenMetrics format; with a guard, only for those whom it lets pass.
pub fn metrics(text: impl Fn() -> String + Clone + Send + Sync + 'static, guard: Option<Guard>) -> Router {
    let (guard, content) = (Arc::new(guard), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let answer = move |headers: HeaderMap| async move {
        if let Some(guard) = guard.as_ref() {
            guard.check(&headers).await?;
        }
        Ok::<_, (StatusCode, String)>(([(header::CONTENT_TYPE, content)], text()))
    };
    Router::new().route("/metrics", get(answer))
}

#[cfg(test)]
mod tests {
    use super::{BindAddress, bind_every, parse_address, probes, serve};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::watch;

    #[test]
    fn an_address_may_leave_out_the_interface_and_zero_is_none() {
        assert_eq!(parse_address(":8080").unwrap(), Some(BindAddress::Every(8080)));
        assert_eq!(parse_address("[::]:8080").unwrap(), Some(BindAddress::Every(8080)));
        for host in ["127.0.0.1:1", "[::1]:1", "localhost:8081", "my-host.example:80", "0.0.0.0:8080"] {
            assert_eq!(parse_address(host).unwrap(), Some(BindAddress::Host(host.to_owned())));
        }
        assert_eq!(parse_address("0").unwrap(), None);
        let is_loopback = |text: &str| parse_address(text).unwrap().is_some_and(|address| address.is_loopback());
        assert!(["127.0.0.1:1", "[::1]:1", "localhost:8081"].into_iter().all(is_loopback));
        assert!(![":1", "[::]:1", "0.0.0.0:1", "10.1.1.1:1", "localhost.example:1"].into_iter().any(is_loopback));
        for wrong in ["8080", "", ":", ":99999", "::1:80", "1.2.3:80", "a b:80", "host", "http://x:80", "[::1:80"] {
            assert!(parse_address(wrong).unwrap_err().contains("write it as :8080"), "{wrong}");
        }
    }

    async fn health(host: IpAddr, port: u16) -> String {
        let mut stream = TcpStream::connect((host, port)).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// A port that was free just now.
    fn free_port() -> u16 {
        bind_every(0).unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn an_address_without_a_host_answers_ipv4_and_ipv6() {
        let port = free_port();
        let routes = || probes(vec![(watch::channel(Vec::new()).1, watch::channel(String::new()).1)]);
        serve(Some(BindAddress::Every(port)), "probes", None, routes()).await.unwrap();
        assert!(health(Ipv4Addr::LOCALHOST.into(), port).await.ends_with("ok\n"));
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            assert!(health(Ipv6Addr::LOCALHOST.into(), port).await.ends_with("ok\n"));
        }
        let taken = serve(Some(BindAddress::Every(port)), "metrics", None, routes()).await.unwrap_err().to_string();
        assert!(taken.starts_with(&format!("could not listen on :{port} for metrics: ")), "{taken}");
    }

    #[tokio::test]
    async fn a_host_may_be_a_name() {
        let port = free_port();
        let address = parse_address(&format!("localhost:{port}")).unwrap();
        let routes = probes(vec![(watch::channel(Vec::new()).1, watch::channel(String::new()).1)]);
        serve(address, "probes", None, routes).await.unwrap();
        let found = TcpStream::connect(("localhost", port)).await.unwrap();
        assert!(found.peer_addr().unwrap().ip().is_loopback());
    }
}
