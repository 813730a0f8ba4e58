//! Bytes as hexadecimal digits, for tokens, checksums and exports.

/// Two lowercase digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that these digits are; nothing where they are none.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back_and_anything_else_is_not() {
        assert_eq!(hex(&[0, 9, 16, 255]), "000910ff");
        assert_eq!(unhex("000910fF"), Some(vec![0, 9, 16, 255]));
        for bad in ["0", "0g", "+f", "0x", "ä"] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
