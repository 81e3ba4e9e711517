//! HTTP/1.1 over TLS, as much of it as the guest needs: one request for each connection.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(20);
/// The longest head of an answer.
const MAX_HEAD: usize = 32 * 1024;
/// Where distributions keep the certificates of public authorities.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// A name or an IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) path: String,
}

impl Url {
    /// An `https` address.
    pub(crate) fn parse(text: &str) -> Result<Url, String> {
        let wrong = |what: &str| format!("{text:?} {what}: write https://HOST:PORT");
        let rest = text.strip_prefix("https://").ok_or_else(|| wrong("does not begin with https://"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) || authority.contains('@') {
            return Err(wrong("has characters that an address has not"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong("has no valid port"))?),
            _ => (authority, 443),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match ServerName::try_from(host) {
            Ok(_) => Ok(Url { host: host.to_owned(), port, path }),
            Err(_) => Err(wrong("has no valid host")),
        }
    }

    /// Another address that this one refers to: a whole one, or a path of the same host.
    pub(crate) fn refer(&self, to: &str) -> Result<Url, String> {
        if to.starts_with('/') && !to.starts_with("//") {
            let brackets = if self.host.contains(':') { ("[", "]") } else { ("", "") };
            return Url::parse(&format!("https://{}{}{}:{}{to}", brackets.0, self.host, brackets.1, self.port));
        }
        Url::parse(to)
    }

    fn is_same_server(&self, other: &Url) -> bool {
        self.host == other.host && self.port == other.port
    }
}

/// Which servers are trusted: some by authorities of their own, and all others by the public ones.
pub(crate) struct Trust {
    pinned: Vec<(Url, Arc<ClientConfig>)>,
}

impl Trust {
    /// Trust in one server by one authority.
    pub(crate) fn new(operator: Url, ca: &str) -> Result<Trust, String> {
        let roots = roots(ca.as_bytes());
        if roots.is_empty() {
            return Err(
                "ca has no certificate: write the PEM text of the authority that signed the operator's certificate, \
                with its BEGIN and END lines"
                    .to_owned(),
            );
        }
        Ok(Trust { pinned: vec![(operator, client(roots)?)] })
    }

    /// The same with another server, which is trusted by these authorities if there are any.
    pub(crate) fn with(&self, server: Url, ca: Option<&str>) -> Result<Trust, String> {
        let mut pinned = self.pinned.clone();
        if let Some(ca) = ca {
            pinned.push((server, client(roots(ca.as_bytes()))?));
        }
        Ok(Trust { pinned })
    }

    /// What decides whether this server is trusted.
    fn of(&self, url: &Url) -> Result<Arc<ClientConfig>, String> {
        if let Some((_, pinned)) = self.pinned.iter().find(|(server, _)| url.is_same_server(server)) {
            return Ok(Arc::clone(pinned));
        }
        let bundle = SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok());
        let bundle = bundle.ok_or("the image has no certificates of public authorities: install ca-certificates")?;
        client(roots(&bundle))
    }
}

fn roots(pem: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
    roots
}

fn client(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("TLS cannot be used: {error}"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// A request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) bearer: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// An answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) body: Body,
}

impl Response {
    /// The whole body, unless it is larger than so many bytes.
    pub(crate) fn read(self, most: usize) -> Result<Zeroizing<Vec<u8>>, String> {
        let mut body = Zeroizing::new(Vec::new());
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        self.body.take(limit).read_to_end(&mut body).map_err(|error| format!("the answer broke off: {error}"))?;
        if body.len() > most { Err(format!("the answer has more than {most} bytes")) } else { Ok(body) }
    }
}

/// Sends a request. The text of an error names the server.
pub(crate) fn send(trust: &Trust, url: &Url, request: &Request<'_>) -> Result<Response, String> {
    let attempt = || -> Result<Response, String> {
        let config = trust.of(url)?;
        let name = ServerName::try_from(url.host.clone()).map_err(|error| error.to_string())?;
        let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let mut stream = StreamOwned::new(connection, connect(url)?);
        let text = |error: Error| error.to_string();
        stream.write_all(&head(url, request)).map_err(text)?;
        stream.write_all(request.body).map_err(text)?;
        stream.flush().map_err(text)?;
        response(BufReader::new(stream)).map_err(text)
    };
    attempt().map_err(|error| format!("{}:{}: {error}", url.host, url.port))
}

fn connect(url: &Url) -> Result<TcpStream, String> {
    let addresses = (url.host.as_str(), url.port).to_socket_addrs();
    let addresses = addresses.map_err(|error| format!("the name cannot be resolved: {error}"))?;
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                let set = stream.set_read_timeout(Some(SILENCE)).and(stream.set_write_timeout(Some(SILENCE)));
                return set.map(|()| stream).map_err(|error| error.to_string());
            }
            Err(error) => last = format!("{address} cannot be reached: {error}"),
        }
    }
    Err(last)
}

fn head(url: &Url, request: &Request<'_>) -> Zeroizing<Vec<u8>> {
    let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: {host}:{}\r\nUser-Agent: virtpilot-guest/{}\r\nAccept: */*\r\nConnection: close\r\n",
        request.method,
        url.path,
        url.port,
        env!("CARGO_PKG_VERSION")
    );
    if !request.body.is_empty() {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", request.body.len()));
    }
    // Enough room for all of it, so that no copy of the token is left behind by a reallocation.
    let bearer = request.bearer.unwrap_or_default();
    let mut bytes = Zeroizing::new(Vec::with_capacity(head.len() + bearer.len() + 64));
    bytes.extend_from_slice(head.as_bytes());
    if !bearer.is_empty() {
        bytes.extend_from_slice(b"Authorization: Bearer ");
        bytes.extend_from_slice(bearer.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

type Stream = BufReader<StreamOwned<ClientConnection, TcpStream>>;

fn response(mut stream: Stream) -> Result<Response, Error> {
    let mut left = MAX_HEAD;
    let status_line = line(&mut stream, &mut left)?;
    let status = status_line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(|| Error::other("the server does not speak HTTP/1.1"))?;
    let (mut location, mut kind) = (None, None);
    loop {
        let line = line(&mut stream, &mut left)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(Error::other("the answer has a broken header"));
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "location" => location = Some(value.to_owned()),
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                kind = Some(Kind::Chunked { left: 0, is_first: true });
            }
            "transfer-encoding" => return Err(Error::other("the answer has an unknown transfer encoding")),
            "content-length" if kind.is_none() => {
                let length = value.parse().map_err(|_| Error::other("the answer has an invalid length"))?;
                kind = Some(Kind::Length(length));
            }
            _ => {}
        }
    }
    Ok(Response { status, location, body: Body { stream, kind: kind.unwrap_or(Kind::Close) } })
}

/// The next line without its end.
fn line(stream: &mut Stream, left: &mut usize) -> Result<String, Error> {
    let mut line = Vec::new();
    let limit = u64::try_from(*left).unwrap_or(u64::MAX);
    stream.take(limit).read_until(b'\n', &mut line)?;
    *left -= line.len();
    if line.pop() != Some(b'\n') {
        let broken = if *left == 0 { "the head of the answer is too long" } else { "the answer broke off" };
        return Err(Error::new(ErrorKind::UnexpectedEof, broken));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| Error::other("the answer has a header that is not text"))
}

/// The body of an answer.
pub(crate) struct Body {
    stream: Stream,
    kind: Kind,
}

enum Kind {
    /// So many bytes are left.
    Length(u64),
    /// So many bytes are left of this chunk.
    Chunked { left: u64, is_first: bool },
    /// It ends with the connection, which TLS closes with a message of its own.
    Close,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let left = match &mut self.kind {
            Kind::Close => return self.stream.read(buffer),
            Kind::Length(left) => left,
            Kind::Chunked { left, is_first } => {
                if *left == 0 {
                    let mut most = MAX_HEAD;
                    if !std::mem::take(is_first) {
                        line(&mut self.stream, &mut most)?;
                    }
                    let size = line(&mut self.stream, &mut most)?;
                    let size = size.split(';').next().unwrap_or_default().trim();
                    *left = u64::from_str_radix(size, 16).map_err(|_| Error::other("the answer has a broken chunk"))?;
                    if *left == 0 {
                        self.kind = Kind::Length(0);
                        return Ok(0);
                    }
                }
                left
            }
        };
        let most = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let size = self.stream.read(&mut buffer[..most])?;
        if size == 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the answer broke off"));
        }
        *left -= u64::try_from(size).unwrap_or_default();
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    fn url(host: &str, port: u16, path: &str) -> Url {
        Url { host: host.to_owned(), port, path: path.to_owned() }
    }

    #[test]
    fn addresses_are_parsed_or_refused_with_a_remedy() {
        assert_eq!(Url::parse("https://a.b").unwrap(), url("a.b", 443, "/"));
        assert_eq!(Url::parse("https://10.0.0.1:8443/x?y#z").unwrap(), url("10.0.0.1", 8443, "/x?y"));
        assert_eq!(Url::parse("https://[fd00::1]:8443/x").unwrap(), url("fd00::1", 8443, "/x"));
        assert_eq!(Url::parse("https://[fd00::1]").unwrap(), url("fd00::1", 443, "/"));
        assert_eq!(Url::parse("https://a?b").unwrap(), url("a", 443, "/?b"));
        for wrong in [
            "",
            "a",
            "http://a",
            "https://",
            "https://a:b",
            "https://a:99999",
            "https://u@a",
            "https://a/b c",
            "https://a/\r\nX: y",
            "https://a b",
        ] {
            assert!(Url::parse(wrong).unwrap_err().contains("https://HOST:PORT"), "{wrong}");
        }
    }

    #[test]
    fn a_path_refers_to_the_same_server_and_anything_else_to_another() {
        let base = url("fd00::1", 8443, "/a");
        assert_eq!(base.refer("/b").unwrap(), url("fd00::1", 8443, "/b"));
        assert_eq!(base.refer("https://c/d").unwrap(), url("c", 443, "/d"));
        for wrong in ["//c/d", "c", "http://c", ""] {
            assert!(base.refer(wrong).is_err(), "{wrong}");
        }
        assert!(base.is_same_server(&url("fd00::1", 8443, "/")) && !base.is_same_server(&url("fd00::1", 443, "/")));
    }
}
