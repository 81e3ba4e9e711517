//! The runner's archive: downloading it, comparing its checksum, unpacking it.

mod unpack;

pub(crate) use unpack::unpack;

use crate::http::{Request, Trust, Url, send};
use crate::operator::Failure;
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The largest archive: those of GitHub have about 200 MB.
const MAX_ARCHIVE: u64 = 2 << 30;
/// How many other addresses one may refer to.
const REDIRECTS: usize = 5;
/// The pauses before further attempts; the guest's limit for its preparation holds for all of them.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];

/// Downloads an archive, again if the network fails. It gets no token of anybody.
pub(crate) fn download(trust: &Trust, operator: &Url, address: &str, to: &Path) -> Result<(), String> {
    let start = operator.refer(address)?;
    let mut pauses = PAUSES.iter();
    loop {
        match (attempt(trust, &start, to), pauses.next()) {
            (Ok(()), _) => return Ok(()),
            (Err(Failure::Transient(_)), Some(pause)) => thread::sleep(*pause),
            (Err(Failure::Transient(error) | Failure::Permanent(error)), _) => {
                return Err(format!("{address}: {error}"));
            }
        }
    }
}

fn attempt(trust: &Trust, start: &Url, to: &Path) -> Result<(), Failure> {
    let mut url = start.clone();
    for _ in 0..=REDIRECTS {
        let request = Request { method: "GET", bearer: None, body: &[] };
        let mut response = send(trust, &url, &request).map_err(Failure::Transient)?;
        match (response.status, &response.location) {
            (200, _) => return write(&mut response.body, to),
            (301 | 302 | 303 | 307 | 308, Some(location)) => url = url.refer(location).map_err(Failure::Permanent)?,
            (status, _) => {
                let error = format!("{}:{} answers {status}", url.host, url.port);
                return Err(if status >= 500 { Failure::Transient(error) } else { Failure::Permanent(error) });
            }
        }
    }
    Err(Failure::Permanent(format!("it refers to other addresses more than {REDIRECTS} times")))
}

fn write(body: &mut impl Read, to: &Path) -> Result<(), Failure> {
    let unwritten = |error| Failure::Permanent(format!("could not write {}: {error}", to.display()));
    let mut file = File::create(to).map_err(unwritten)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        let read = body.read(&mut buffer);
        let read = read.map_err(|error| Failure::Transient(format!("the download broke off: {error}")))?;
        if read == 0 {
            return Ok(());
        }
        size += u64::try_from(read).unwrap_or(MAX_ARCHIVE);
        if size > MAX_ARCHIVE {
            return Err(Failure::Permanent(format!("it has more than {MAX_ARCHIVE} bytes")));
        }
        file.write_all(&buffer[..read]).map_err(unwritten)?;
    }
}

/// Whether a file has this SHA-256.
pub(crate) fn verify(path: &Path, sha256: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("could not read {}: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(failed)?;
        if read == 0 {
            break;
        }
        context.update(&buffer[..read]);
    }
    let actual: String = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    if actual.eq_ignore_ascii_case(sha256) {
        return Ok(());
    }
    Err(format!(
        "the archive has the SHA-256 {actual} and not {sha256}: it is not the one that was asked for; nothing of it was run"
    ))
}

#[cfg(test)]
mod tests {
    use super::verify;

    #[test]
    fn only_the_right_checksum_is_accepted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(verify(file.path(), right), Ok(()));
        assert_eq!(verify(file.path(), &right.to_uppercase()), Ok(()));
        for wrong in ["", &right[1..], &right.replace("ad", "ae")] {
            assert!(verify(file.path(), wrong).unwrap_err().contains(right), "{wrong}");
        }
    }
}
