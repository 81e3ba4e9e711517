//! Checks that a binary needs no other file to run.

/// The type of the program header that names a dynamic linker.
const INTERPRETER: u32 = 3;

/// Whether a 64-bit ELF file has no dynamic linker; otherwise why it is unfit.
pub(super) fn check(binary: &[u8]) -> Result<(), &'static str> {
    const BROKEN: &str = "it is not a 64-bit little-endian ELF file";
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return Err(BROKEN);
    }
    let number = |at: usize, bytes: usize| {
        let field = binary.get(at..at + bytes).ok_or(BROKEN)?;
        Ok::<usize, &str>(field.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in 0..count {
        if number(table + header * size, 4)? == INTERPRETER as usize {
            return Err("it is linked dynamically");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    /// An ELF file with one program header of this type.
    fn elf(kind: u8) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[32], file[54], file[56], file[64]) = (64, 56, 1, kind);
        file
    }

    #[test]
    fn a_binary_with_a_dynamic_linker_is_refused() {
        assert_eq!(check(&elf(1)), Ok(()));
        assert_eq!(check(&elf(3)), Err("it is linked dynamically"));
        assert!(check(b"#!/bin/sh").is_err() && check(&elf(1)[..70]).is_ok() && check(&elf(1)[..60]).is_err());
        // This test is linked dynamically.
        assert!(check(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).is_err());
    }
}
