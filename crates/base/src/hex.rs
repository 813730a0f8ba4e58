//! Bytes as people and file names have them.

/// Two lowercase digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The hash that these digits are; nothing where they are none.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 2 * hash.len() || !text.is_ascii() {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_is_two_digits() {
        assert_eq!(super::hex(&[0, 9, 16, 255]), "000910ff");
    }
}
