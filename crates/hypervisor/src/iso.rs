//! An ISO 9660 image with one directory. Names are exact for Linux (Rock Ridge) and for Windows (Joliet), and the same files give the same
//! bytes.

use std::collections::BTreeMap;

const SECTOR: usize = 2048;
/// Where the parts of the image are. The first 16 sectors are not used.
const PRIMARY: usize = 16;
const JOLIET: usize = 17;
const TERMINATOR: usize = 18;
const PRIMARY_PATHS: usize = 19;
const JOLIET_PATHS: usize = 21;
const PRIMARY_ROOT: usize = 23;
const JOLIET_ROOT: usize = 24;
const FILES: usize = 25;
/// Years since 1900, month, day, hour, minute, second, time zone: an image has no time of its own.
const DATE: [u8; 7] = [100, 1, 1, 0, 0, 0, 0];
const LONG_DATE: &[u8; 17] = b"2000010100000000\0";
const NO_DATE: &[u8; 17] = b"0000000000000000\0";

/// The image of a volume with these files. Names consist of a-z, 0-9 and dashes.
pub(crate) fn image(volume: &str, files: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut extents = BTreeMap::new();
    for (name, text) in files {
        let is_plain =
            |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        if name.is_empty() || name.len() > 30 || !name.chars().all(is_plain) {
            return Err(format!("a file of a seed cannot be named {name:?}: use at most 30 of a-z, 0-9 and -"));
        }
        extents.insert(name.as_str(), (FILES + content.len() / SECTOR, text.len()));
        content.extend_from_slice(text.as_bytes());
        content.resize(content.len().next_multiple_of(SECTOR), 0);
    }
    let mut image = vec![0; FILES * SECTOR];
    let sectors = FILES + content.len() / SECTOR;
    put(&mut image, PRIMARY, &descriptor(1, &ascii(volume, 32), PRIMARY_PATHS, PRIMARY_ROOT, sectors))?;
    put(&mut image, JOLIET, &descriptor(2, &wide(volume, 32), JOLIET_PATHS, JOLIET_ROOT, sectors))?;
    put(&mut image, TERMINATOR, b"\xffCD001\x01")?;
    for (paths, root) in [(PRIMARY_PATHS, PRIMARY_ROOT), (JOLIET_PATHS, JOLIET_ROOT)] {
        let (little, big) = ((root as u32).to_le_bytes(), (root as u32).to_be_bytes());
        put(&mut image, paths, &[&[1, 0], &little[..], &[1, 0, 0, 0]].concat())?;
        put(&mut image, paths + 1, &[&[1, 0], &big[..], &[0, 1, 0, 0]].concat())?;
    }
    put(&mut image, PRIMARY_ROOT, &primary_directory(&extents))?;
    put(&mut image, JOLIET_ROOT, &joliet_directory(&extents))?;
    image.extend_from_slice(&content);
    Ok(image)
}

fn put(image: &mut [u8], sector: usize, bytes: &[u8]) -> Result<(), String> {
    let place = image.get_mut(sector * SECTOR..(sector + 1) * SECTOR).and_then(|place| place.get_mut(..bytes.len()));
    place.ok_or("there are too many files for the directory of a seed")?.copy_from_slice(bytes);
    Ok(())
}

type Extents<'a> = BTreeMap<&'a str, (usize, usize)>;

fn primary_directory(extents: &Extents) -> Vec<u8> {
    // System use sharing protocol with the extension Rock Ridge; Linux looks for both in the first entry.
    let announced = [&b"SP\x07\x01\xbe\xef\x00"[..], &b"ER\x12\x01\x0a\x00\x00\x01RRIP_1991A"[..]].concat();
    let root = attributes(0o040_555, 2);
    let mut directory = record(&[0], PRIMARY_ROOT, SECTOR, true, &[announced, root.clone()].concat());
    directory.extend(record(&[1], PRIMARY_ROOT, SECTOR, true, &root));
    // Entries are sorted by their short names.
    let short = |name: &str| format!("{}.;1", name.to_ascii_uppercase().replace('-', "_"));
    let sorted: BTreeMap<_, _> = extents.iter().map(|(name, extent)| (short(name), (name, extent))).collect();
    for (short, (name, (sector, length))) in sorted {
        let long = [&[b'N', b'M', 5 + name.len() as u8, 1, 0], name.as_bytes()].concat();
        let system = [long, attributes(0o100_444, 1)].concat();
        directory.extend(record(short.as_bytes(), *sector, *length, false, &system));
    }
    directory
}

fn joliet_directory(extents: &Extents) -> Vec<u8> {
    let mut directory = record(&[0], JOLIET_ROOT, SECTOR, true, &[]);
    directory.extend(record(&[1], JOLIET_ROOT, SECTOR, true, &[]));
    for (name, (sector, length)) in extents {
        let name: Vec<u8> = format!("{name};1").encode_utf16().flat_map(u16::to_be_bytes).collect();
        directory.extend(record(&name, *sector, *length, false, &[]));
    }
    directory
}

/// An entry of a directory.
fn record(name: &[u8], sector: usize, length: usize, is_directory: bool, system_use: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0];
    record.extend(both32(sector));
    record.extend(both32(length));
    record.extend(DATE);
    record.extend([u8::from(is_directory) * 2, 0, 0]);
    record.extend(both16(1));
    record.push(name.len() as u8);
    record.extend(name);
    record.resize(record.len().next_multiple_of(2), 0);
    record.extend(system_use);
    record.resize(record.len().next_multiple_of(2), 0);
    record[0] = record.len() as u8;
    record
}

/// The Rock Ridge entry with mode and number of links, owned by root.
fn attributes(mode: usize, links: usize) -> Vec<u8> {
    let numbers = [mode, links, 0, 0];
    [b"PX\x24\x01".to_vec(), numbers.into_iter().flat_map(both32).collect()].concat()
}

/// A volume descriptor: 1 is the primary one, 2 the one of Joliet.
fn descriptor(kind: u8, volume: &[u8], paths: usize, root: usize, sectors: usize) -> Vec<u8> {
    let text = |length: usize| if kind == 2 { wide("", length) } else { ascii("", length) };
    let mut bytes = [&[kind], &b"CD001\x01\x00"[..]].concat();
    bytes.extend(text(32));
    bytes.extend(volume);
    bytes.extend([0; 8]);
    bytes.extend(both32(sectors));
    bytes.extend(if kind == 2 { *b"%/E" } else { [0; 3] });
    bytes.extend([0; 29]);
    bytes.extend(both16(1));
    bytes.extend(both16(1));
    bytes.extend(both16(SECTOR));
    bytes.extend(both32(10));
    bytes.extend((paths as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend((paths as u32 + 1).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(record(&[0], root, SECTOR, true, &[]));
    // Set, publisher, preparer, application; copyright, abstract and bibliography.
    for length in [128, 128, 128, 128, 37, 37, 37] {
        bytes.extend(text(length));
    }
    bytes.extend(LONG_DATE);
    bytes.extend(LONG_DATE);
    bytes.extend(NO_DATE);
    bytes.extend(LONG_DATE);
    bytes.push(1);
    bytes
}

fn ascii(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}

fn wide(text: &str, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    while bytes.len() + 2 <= length {
        bytes.extend([0, b' ']);
    }
    bytes.resize(length, 0);
    bytes
}

fn both32(number: usize) -> [u8; 8] {
    let (little, big) = ((number as u32).to_le_bytes(), (number as u32).to_be_bytes());
    [little[0], little[1], little[2], little[3], big[0], big[1], big[2], big[3]]
}

fn both16(number: usize) -> [u8; 4] {
    let (little, big) = ((number as u16).to_le_bytes(), (number as u16).to_be_bytes());
    [little[0], little[1], big[0], big[1]]
}
