//! The users of the machine, from its list of passwords.

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: String,
}

/// The user of this name.
pub(crate) fn find(name: &str) -> Result<User, String> {
    let text =
        std::fs::read_to_string("/etc/passwd").map_err(|error| format!("could not read /etc/passwd: {error}"))?;
    in_text(&text, name)
        .ok_or_else(|| format!("the image has no user {name:?}: create it, or change the template's user"))
}

fn in_text(text: &str, name: &str) -> Option<User> {
    text.lines().find_map(|line| {
        let [found, _, uid, gid, _, home, ..] = line.split(':').collect::<Vec<_>>()[..] else { return None };
        (found == name).then_some(())?;
        Some(User { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: home.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::{User, find, in_text};

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let text = "root:x:0:0:root:/root:/bin/bash\nrunner:x:1001:1002::/home/runner:/bin/sh\nbroken\n";
        let user = User { name: "runner".to_owned(), uid: 1001, gid: 1002, home: "/home/runner".to_owned() };
        assert_eq!(in_text(text, "runner"), Some(user));
        assert_eq!(in_text(text, "run"), None);
        assert_eq!(in_text(text, "broken"), None);
        assert!(find("nobody-has-this-name").unwrap_err().contains("create it"));
    }
}
