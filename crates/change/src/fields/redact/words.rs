//! The names of secrets, and texts that contain one.

/// Parts of a key, in lower case and without separators, that name something secret.
const PARTS: [&str; 22] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "credential",
    "bearer",
    "authoriz",
    "authentic",
    "privatekey",
    "accesskey",
    "apikey",
    "sshkey",
    "connectionstring",
    "kubeconfig",
    "dockerconfig",
    "userdata",
    "networkdata",
    "cloudinit",
    "cookie",
    "binarydata",
    "lastappliedconfiguration",
];
/// Words of a key that name something secret; as parts they would match too much, such as `author`.
const WORDS: [&str; 9] = ["key", "keys", "auth", "oauth", "dsn", "pwd", "pass", "jwt", "contents"];
/// The ends of keys that name something public in spite of such a word.
const PUBLIC: [&str; 2] = ["topologykey", "publickey"];

/// Whether a value of this name is secret.
pub(super) fn is_secret_key(key: &str) -> bool {
    let plain: Vec<u8> =
        key.bytes().filter(u8::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect();
    if PUBLIC.iter().any(|end| plain.ends_with(end.as_bytes())) {
        return false;
    }
    // Nearly every key has none of them, so they are looked for in one pass before it is split into words.
    let has_any_of = |parts: &[&str]| {
        (0..plain.len()).any(|start| parts.iter().any(|part| plain[start..].starts_with(part.as_bytes())))
    };
    has_any_of(&PARTS) || (has_any_of(&WORDS) && words(key).any(|word| WORDS.contains(&word.as_str())))
}

/// The words of a key such as `tls.key`, `api_key`, `apiKey` or `APIKey`, in lower case.
fn words(key: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = key.chars().collect();
    let mut words = vec![String::new()];
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| characters.get(index));
        let begins_word = character.is_ascii_uppercase()
            && (before.is_some_and(char::is_ascii_lowercase)
                || characters.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if begins_word || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_ascii_alphanumeric()) {
            word.push(character.to_ascii_lowercase());
        }
    }
    words.into_iter()
}

/// Whether a text is a secret or contains one, wherever it is: an assignment to a name of one, a flag with such a name, a URL with a
/// password, a data URL, a key, a token or the hash of a password.
pub(super) fn is_secret_text(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("data:")
        || start.starts_with("eyJ")
        || (start.starts_with('$') && start.matches('$').count() > 2)
        || text.contains("-----BEGIN")
        || text.contains("data:;base64,")
        || has_password_in_url(text)
        || has_assignment(text)
}

fn has_password_in_url(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(|c: char| "/?# \n\"'".contains(c)).next().unwrap_or_default();
        authority.contains('@')
    })
}

/// Whether a name of a secret is followed by `=` or `:`, or is a flag or the scheme of an authorization.
fn has_assignment(text: &str) -> bool {
    let mut rest = text;
    while let Some(start) = rest.find(is_of_key) {
        let run = &rest[start..];
        let end = run.find(|c| !is_of_key(c)).unwrap_or(run.len());
        let (run, after) = run.split_at(end);
        // `example.com/auth-proxy:v1` is an image.
        let is_image = rest[..start].ends_with('/') && after.starts_with(':') && !after.starts_with(": ");
        let follows = after.trim_start_matches(['"', '\'', '\\', ' ']);
        let is_given = follows.starts_with(['=', ':']) && !follows.starts_with("://") && !is_image;
        let is_flag = run.starts_with('-') && !run.trim_start_matches('-').is_empty();
        let is_scheme = run.eq_ignore_ascii_case("bearer") && after.starts_with(' ');
        if is_scheme || ((is_given || is_flag) && is_secret_key(run)) {
            return true;
        }
        rest = after;
    }
    false
}

fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.".contains(character)
}

#[cfg(test)]
mod tests {
    use super::{is_secret_key, is_secret_text};

    #[test]
    fn keys_that_name_secrets_are_recognised() {
        for key in [
            "password",
            "DB_PASSWORD",
            "adminPasswd",
            "token",
            "bearerToken",
            "tls.key",
            "api_key",
            "APIKey",
            "TLSKey",
            "sshKeys",
            "auth",
            "basicAuth",
            "dsn",
            "POSTGRES_DSN",
            "connection-string",
            "userData",
            "cloudInitNoCloud",
            "key",
            "clientSecret",
            "aws-credentials",
            "kubeconfig",
            ".dockerconfigjson",
            "passwordHash",
            "contents",
            "sshAuthorizedKeys",
            "kubectl.kubernetes.io/last-applied-configuration",
            "example.com/token",
        ] {
            assert!(is_secret_key(key), "{key}");
        }
        for key in [
            "replicas",
            "image",
            "name",
            "author",
            "monkey",
            "keyboard",
            "topologyKey",
            "level",
            "passive",
            "bypass",
            "app.kubernetes.io/name",
            "kernelArguments",
            "maxPods",
            "machineconfiguration.openshift.io/role",
        ] {
            assert!(!is_secret_key(key), "{key}");
        }
    }

    #[test]
    fn texts_that_contain_secrets_are_recognised() {
        for text in [
            "--password",
            "--token=x",
            "PASSWORD=x",
            "Environment=A=1 TOKEN=x",
            r#"{"password": "x"}"#,
            "token: x",
            "token:x",
            "Authorization: Bearer x",
            "bearer x",
            "data:,x",
            "data:text/plain;base64,eA==",
            "eyJhbGciOi.x.y",
            "postgres://me:x@host/db",
            "-----BEGIN PRIVATE KEY-----",
            "$6$salt$hash",
            r#"\"apiKey\":\"x\""#,
        ] {
            assert!(is_secret_text(text), "{text}");
        }
        for text in [
            "secrets",
            "3",
            "quay.io/a/oauth-proxy:v1",
            "psi=1",
            "$(HOST)$(PORT)",
            "from $1 to $2 and $3",
            "https://host/path",
            "a password is needed",
            "--level=3",
            "kubernetes.io/hostname",
            "50%",
            "node-role.kubernetes.io/worker",
            "",
        ] {
            assert!(!is_secret_text(text), "{text}");
        }
    }
}
