//! The content of a file in an Ignition configuration, which is a data URL.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Decodes `data:[type][;base64],content`; `None` for anything else, such as an address elsewhere.
pub fn decode(url: &str) -> Option<Vec<u8>> {
    let (header, content) = url.strip_prefix("data:")?.split_once(',')?;
    let bytes = unescaped(content)?;
    if header.ends_with(";base64") { BASE64_STANDARD.decode(bytes.trim_ascii()).ok() } else { Some(bytes) }
}

fn unescaped(content: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn data_urls_are_decoded_and_nothing_else_is() {
        for (url, expected) in [
            ("data:,a%20b%0A", Some("a b\n")),
            ("data:text/plain;charset=utf-8,plain", Some("plain")),
            ("data:text/plain;charset=utf-8;base64,YSBiCg==", Some("a b\n")),
            ("data:;base64,YSBiCg%3D%3D", Some("a b\n")),
            ("data:,", Some("")),
            ("data:;base64,!", None),
            ("data:,%zz", None),
            ("data:,%4", None),
            ("https://example.com/x", None),
            ("data:no-comma", None),
        ] {
            assert_eq!(decode(url).as_deref(), expected.map(str::as_bytes), "{url}");
        }
        assert_eq!(decode("data:;base64,//8="), Some(vec![255, 255]), "any bytes");
    }
}
