//! Where a CI platform is and whose runners are meant, from the address that people write.

use super::{RepositoryName, Scope};

/// The address of an enterprise, an organisation or a repository, and of its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address as it is registered with, such as `https://github.com/acme`.
    pub page: String,
    /// Where the API begins, such as `https://api.github.com` or `https://github.example/api/v3`.
    pub api: String,
    /// Whose runners.
    pub scope: Scope,
}

impl Address {
    /// Reads the address of an enterprise, an organisation or a repository of GitHub. What is wrong with it otherwise, with the remedy.
    pub fn github(text: &str, allows_http: bool) -> Result<Address, (String, String)> {
        let wrong = |what: &str| {
            let remedy = "use an address such as https://github.com/ORGANISATION, https://github.com/OWNER/REPOSITORY or \
                          https://HOST/enterprises/ENTERPRISE";
            // What has a user may have a password.
            let shown = if text.contains('@') { "the address".to_owned() } else { format!("{text:?}") };
            Err((format!("{shown} {what}"), remedy.to_owned()))
        };
        let plain = text.trim().trim_end_matches('/');
        let Some((scheme, rest)) = plain.split_once("://") else { return wrong("is no address with https://") };
        match scheme {
            "https" => {}
            "http" if allows_http => {}
            "http" => return wrong("would send credentials in clear text"),
            _ => return wrong("is no address with https://"),
        }
        let Some((host, path)) = rest.split_once('/') else { return wrong("names no organisation") };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return wrong("has no plain host");
        }
        let is_name = |part: &&str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !part.is_empty() && part.bytes().all(is_allowed) && !part.bytes().all(|byte| byte == b'.')
        };
        let parts: Vec<&str> = path.split('/').collect();
        let path = path.strip_suffix(".git").unwrap_or(path);
        let scope = match parts.as_slice() {
            parts if !parts.iter().all(is_name) => {
                return wrong("is not the address of an organisation or a repository");
            }
            ["enterprises", name] => Scope::Enterprise((*name).to_owned()),
            ["orgs" | "organizations", name] | [name] => Scope::Organization((*name).to_owned()),
            [owner, name] => {
                let name = name.strip_suffix(".git").unwrap_or(name);
                Scope::Repository(RepositoryName { owner: (*owner).to_owned(), name: name.to_owned() })
            }
            _ => return wrong("is not the address of an organisation or a repository"),
        };
        let page = match &scope {
            // The page of an organisation has this prefix only for people.
            Scope::Organization(name) => format!("{scheme}://{host}/{name}"),
            _ => format!("{scheme}://{host}/{path}"),
        };
        let lower = host.to_ascii_lowercase();
        let api = match lower.as_str() {
            "github.com" | "www.github.com" => "https://api.github.com".to_owned(),
            cloud if cloud.ends_with(".ghe.com") => format!("https://api.{cloud}"),
            _ => format!("{scheme}://{host}/api/v3"),
        };
        Ok(Address { page, api, scope })
    }
}

impl Scope {
    /// The path of its part of the REST API of GitHub.
    pub fn api_path(&self) -> String {
        match self {
            Scope::Enterprise(name) => format!("/enterprises/{name}"),
            Scope::Organization(name) => format!("/orgs/{name}"),
            Scope::Repository(name) => format!("/repos/{name}"),
        }
    }

    /// Whether jobs of a repository can come here, as far as its name says. Names are the same whatever their case is.
    pub fn covers(&self, repository: &RepositoryName) -> bool {
        match self {
            Scope::Enterprise(_) => true,
            Scope::Organization(name) => name.eq_ignore_ascii_case(&repository.owner),
            Scope::Repository(own) => {
                own.owner.eq_ignore_ascii_case(&repository.owner) && own.name.eq_ignore_ascii_case(&repository.name)
            }
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scope::Enterprise(name) => write!(f, "enterprise {name}"),
            Scope::Organization(name) => write!(f, "organisation {name}"),
            Scope::Repository(name) => write!(f, "repository {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_of_all_kinds_are_read() {
        for (text, page, api, path) in [
            ("https://github.com/acme", "https://github.com/acme", "https://api.github.com", "/orgs/acme"),
            ("https://github.com/acme/", "https://github.com/acme", "https://api.github.com", "/orgs/acme"),
            ("https://github.com/orgs/acme", "https://github.com/acme", "https://api.github.com", "/orgs/acme"),
            (
                "https://github.com/acme/shop",
                "https://github.com/acme/shop",
                "https://api.github.com",
                "/repos/acme/shop",
            ),
            (
                "https://github.com/acme/shop.git",
                "https://github.com/acme/shop",
                "https://api.github.com",
                "/repos/acme/shop",
            ),
            ("https://acme.ghe.com/team", "https://acme.ghe.com/team", "https://api.acme.ghe.com", "/orgs/team"),
            ("https://git.example/acme", "https://git.example/acme", "https://git.example/api/v3", "/orgs/acme"),
            (
                "https://git.example:8443/enterprises/corp",
                "https://git.example:8443/enterprises/corp",
                "https://git.example:8443/api/v3",
                "/enterprises/corp",
            ),
        ] {
            let address = Address::github(text, false).unwrap();
            let found = (address.page.as_str(), address.api.as_str(), address.scope.api_path());
            assert_eq!(found, (page, api, path.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_remedy() {
        for (text, expected) in [
            ("http://github.com/acme", "would send credentials in clear text"),
            ("github.com/acme", "is no address with https://"),
            ("ftp://github.com/acme", "is no address with https://"),
            ("https://github.com", "names no organisation"),
            ("https:///acme", "has no plain host"),
            ("https://user:pass@github.com/acme", "has no plain host"),
            ("https://github.com/acme?x=1", "is not the address"),
            ("https://github.com/acme/..", "is not the address"),
            ("https://github.com/acme/shop/settings", "is not the address"),
            ("https://github.com//acme", "is not the address"),
        ] {
            let (message, remedy) = Address::github(text, false).unwrap_err();
            assert!(message.contains(expected) && remedy.contains("https://github.com/"), "{text}: {message}");
            assert!(!message.contains("pass"), "{message}");
        }
        assert!(Address::github("http://127.0.0.1:80/acme", true).is_ok());
    }
}
