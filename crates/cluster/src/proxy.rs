//! Reaches the API server through a proxy, if the kubeconfig or HTTPS_PROXY names one.

use http::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;

/// The proxy for this server. NO_PROXY names servers that are reached without one.
pub(crate) fn of(config: &Config) -> kube::Result<Option<Intercept>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let exceptions = variable("NO_PROXY").or_else(|| variable("no_proxy"));
    choose(config.proxy_url.as_ref(), exceptions, &config.cluster_url)
}

fn choose(proxy: Option<&Uri>, exceptions: Option<String>, server: &Uri) -> kube::Result<Option<Intercept>> {
    let Some(proxy) = proxy else { return Ok(None) };
    let exceptions = exceptions.unwrap_or_default();
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
    use super::choose;

    #[test]
    fn a_proxy_is_used_for_all_servers_but_those_that_are_named() {
        let chosen = |proxy: &str, exceptions: &str| {
            let server = "https://api.example.com:6443".parse().unwrap();
            let chosen = choose(Some(&proxy.parse().unwrap()), Some(exceptions.to_owned()), &server);
            chosen.map(|found| found.map(|found| found.uri().to_string())).map_err(|error| error.to_string())
        };
        let proxy = "http://user:word@proxy.example.com:3128";
        assert_eq!(chosen(proxy, ""), Ok(Some("http://proxy.example.com:3128/".to_owned())));
        assert!(chosen(proxy, "localhost,other.com").unwrap().is_some());
        for exceptions in ["example.com", "localhost,.example.com", "*"] {
            assert_eq!(chosen(proxy, exceptions), Ok(None), "{exceptions}");
        }
        let error = chosen("socks5://proxy.example.com:1080", "").unwrap_err();
        assert!(error.ends_with("only proxies with http:// are supported"), "{error}");
    }
}
