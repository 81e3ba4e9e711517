//! The NoCloud seed of a machine: its image, and the name of its image.

use crate::iso;
use fleet::hypervisor::{Owner, Seed};
use sha2::{Digest, Sha256};

/// What the file names of our seeds begin with.
const PREFIX: &str = "virtpilot-";
/// The volume that the data source NoCloud looks for.
const VOLUME: &str = "cidata";

/// An image and the name of its file.
pub(crate) struct Image {
    /// Names the owner and the content: it is nobody else's, and the same name means the same content.
    pub(crate) file: String,
    pub(crate) bytes: Vec<u8>,
}

/// The image of a seed.
pub(crate) fn image(seed: &Seed, owner: &Owner) -> Result<Image, String> {
    let bytes = iso::image(VOLUME, &seed.files)?;
    let digest: String = Sha256::digest(&bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok(Image { file: format!("{}{digest}.iso", prefix(owner)?), bytes })
}

/// Whether a volume, `STORAGE:iso/FILE`, is a seed of this owner.
pub(crate) fn is_of(volume: &str, owner: &Owner) -> bool {
    prefix(owner).is_ok() && claim_of(volume, &owner.operator).as_ref() == Some(&owner.uid)
}

/// The uid of the claim that a volume, `STORAGE:iso/FILE`, is the seed of; nothing unless an installation made it.
pub(crate) fn claim_of(volume: &str, operator: &str) -> Option<String> {
    let (_, file) = volume.split_once(":iso/")?;
    let rest = file.strip_prefix(&format!("{PREFIX}{}-", mark(operator)))?.strip_suffix(".iso")?;
    let (uid, digest) = rest.rsplit_once('-')?;
    let is_digest = digest.len() == 12 && digest.chars().all(|digit| digit.is_ascii_hexdigit());
    (is_digest && is_plain(uid)).then(|| uid.to_owned())
}

fn prefix(owner: &Owner) -> Result<String, String> {
    match is_plain(&owner.uid) {
        true => Ok(format!("{PREFIX}{}-{}-", mark(&owner.operator), owner.uid)),
        false => Err(format!("the uid {:?} of a claim cannot be part of a file name", owner.uid)),
    }
}

/// Tells installations apart in the name of a file.
fn mark(operator: &str) -> String {
    Sha256::digest(operator).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a name can be part of a file name or a script as it is.
pub(crate) fn is_plain(uid: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
    !uid.is_empty() && uid.len() <= 64 && uid.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::{claim_of, image, is_of};
    use fleet::hypervisor::{Owner, Seed};
    use hadris_io::Cursor;
    use hadris_iso::read::DirEntry;
    use hadris_iso::sync::IsoImage;
    use std::collections::BTreeMap;

    fn owner(uid: &str) -> Owner {
        Owner { operator: "op".into(), claim: "ci/a".into(), uid: uid.into() }
    }

    fn seed() -> Seed {
        let user_data = format!("#cloud-config\nhostname: a\n{}", "# a long line\n".repeat(400));
        let files = [("user-data", user_data.as_str()), ("meta-data", "instance-id: a\n"), ("network-config", "")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        Seed { storage: "local".into(), bus: "ide2".into(), files: BTreeMap::from(files) }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_one_another_name() {
        let (first, second) = (image(&seed(), &owner("u-1")).unwrap(), image(&seed(), &owner("u-1")).unwrap());
        assert!(first.bytes == second.bytes && first.file == second.file);
        let mut other = seed();
        other.files.insert("meta-data".into(), "instance-id: b\n".into());
        assert_ne!(image(&other, &owner("u-1")).unwrap().file, first.file);
    }

    #[test]
    fn only_seeds_of_the_same_owner_are_recognized() {
        let volume = |file: &str| format!("local:iso/{file}");
        let file = image(&seed(), &owner("u-1")).unwrap().file;
        assert!(is_of(&volume(&file), &owner("u-1")));
        let mark = super::mark("op");
        for other in [
            format!("virtpilot-{mark}-u-1-.iso"),
            format!("virtpilot-{mark}-u-1-0123456789abc.iso"),
            format!("virtpilot-{mark}-u-1-0123456789ab"),
            "virtpilot-u-1-0123456789ab.iso".to_owned(),
            "debian.iso".to_owned(),
        ] {
            assert!(!is_of(&volume(&other), &owner("u-1")), "{other}");
        }
        assert!(
            !is_of(&volume(&file), &owner("u-2"))
                && !is_of(&volume(&file), &owner("u"))
                && !is_of(&file, &owner("u-1"))
        );
        assert_eq!(claim_of(&volume(&file), "op").as_deref(), Some("u-1"));
        assert_eq!(claim_of(&volume(&file), "another installation"), None);
        assert!(image(&seed(), &owner("../a")).is_err() && image(&seed(), &owner("")).is_err());
    }

    #[test]
    fn names_that_cannot_be_exact_and_too_many_files_are_refused() {
        for name in ["", "a b", "A", "a/b", "a.b", &"a".repeat(31)] {
            let mut seed = seed();
            seed.files.insert(name.to_owned(), String::new());
            assert!(image(&seed, &owner("u")).is_err(), "{name:?}");
        }
        let mut many = seed();
        many.files = (0..40).map(|number| (format!("file-{number}"), String::new())).collect();
        assert!(image(&many, &owner("u")).err().unwrap().contains("too many"));
    }

    #[test]
    fn another_reader_finds_volume_names_and_content() {
        let image = image(&seed(), &owner("u")).unwrap();
        assert_eq!(&image.bytes[16 * 2048 + 40..][..32], format!("{:32}", "cidata").as_bytes());
        let read = IsoImage::open(Cursor::new(&image.bytes)).unwrap();
        assert!(read.supports_rrip());
        assert_eq!(read.root_dirs().iter().count(), 2, "Rock Ridge and Joliet");
        for root in read.root_dirs().iter() {
            let mut found = BTreeMap::new();
            for entry in root.iter(&read).entries().map(Result::unwrap).filter(DirEntry::is_file) {
                let content = String::from_utf8(read.read_file(&entry).unwrap()).unwrap();
                // The reader leaves names of Joliet as they are: two bytes for each character, and a version.
                let name = entry.display_name().replace('\0', "");
                found.insert(name.trim_end_matches(";1").to_owned(), content);
            }
            assert!(found == seed().files, "{:?}: {:?}", root.entry_type(), found.keys());
        }
    }
}
