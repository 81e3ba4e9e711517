//! Reaches the API server through a proxy, if the kubeconfig or HTTPS_PROXY names one.

use http::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;
use std::net::IpAddr;

/// The proxy for this server: that of the kubeconfig always, and that of HTTPS_PROXY for all servers but those of NO_PROXY and this machine.
pub(crate) fn of(config: &Config) -> kube::Result<Option<Intercept>> {
    let variable = |names: [&str; 2]| {
        let set = names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        set.unwrap_or_default()
    };
    // The library fills in the variable where the kubeconfig names none.
    let Some(proxy) = &config.proxy_url else { return Ok(None) };
    let is_environment =
        proxy.to_string().trim_end_matches('/') == variable(["HTTPS_PROXY", "https_proxy"]).trim_end_matches('/');
    let exceptions = if is_environment { variable(["NO_PROXY", "no_proxy"]) } else { String::new() };
    if is_environment && is_direct(&config.cluster_url, &exceptions) {
        return Ok(None);
    }
    choose(proxy, &exceptions, &config.cluster_url)
}

/// Whether a server is reached directly although no name of the exceptions matches: as Go does, this machine, a star, and one with its port.
fn is_direct(server: &Uri, exceptions: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let port = server.port_u16().unwrap_or(443);
    let names = |exception: &str| exception == "*" || exception.rsplit_once(':') == Some((host, &port.to_string()));
    is_here || exceptions.split(',').map(str::trim).any(names)
}

fn choose(proxy: &Uri, exceptions: &str, server: &Uri) -> kube::Result<Option<Intercept>> {
    let found = Matcher::builder().all(proxy.to_string()).no(exceptions).build().intercept(server);
    match found {
        Some(found) if found.uri().scheme_str() != Some("http") => {
            let scheme = found.uri().scheme_str().unwrap_or_default();
            let why = format!("the proxy has the scheme {scheme}; only proxies with http:// are supported");
            Err(kube::Error::Service(why.into()))
        }
        found => Ok(found),
    }
}

/// A connection through a proxy, as its URL asks for it.
pub(crate) fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(user) => tunnel.with_auth(user.clone()),
        None => tunnel,
    }
}

#[cfg(test)]
mod tests {
    use super::{choose, is_direct};

    #[test]
    fn a_proxy_is_used_for_all_servers_but_those_that_are_named() {
        let chosen = |proxy: &str, exceptions: &str| {
            let server = "https://api.example.com:6443".parse().unwrap();
            let chosen = choose(&proxy.parse().unwrap(), exceptions, &server);
            chosen.map(|found| found.map(|found| found.uri().to_string())).map_err(|error| error.to_string())
        };
        let proxy = "http://user:word@proxy.example.com:3128";
        assert_eq!(chosen(proxy, ""), Ok(Some("http://proxy.example.com:3128/".to_owned())));
        assert!(chosen(proxy, "localhost,other.com").unwrap().is_some());
        for exceptions in ["example.com", "localhost,.example.com", "*"] {
            assert_eq!(chosen(proxy, exceptions), Ok(None), "{exceptions}");
        }
        let is_direct = |server: &str, exceptions: &str| is_direct(&server.parse().unwrap(), exceptions);
        assert!(
            ["https://127.0.0.1:6443", "https://localhost", "https://[::1]:1"]
                .iter()
                .all(|server| is_direct(server, ""))
        );
        assert!(is_direct("https://10.0.0.1:6443", "a, *") && is_direct("https://a.com:6443", "a.com:6443"));
        assert!(!is_direct("https://10.0.0.1:6443", "10.0.0.2") && !is_direct("https://a.com:6443", "a.com:443"));
        let error = chosen("socks5://proxy.example.com:1080", "").unwrap_err();
        assert!(error.ends_with("only proxies with http:// are supported"), "{error}");
    }
}
