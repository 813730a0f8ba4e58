//! Base64 by RFC 4648, encoding only.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// With padding, for data events.
pub fn standard(bytes: &[u8]) -> String {
    encode(bytes, STANDARD, true)
}

/// Without padding, for keys, signatures and tokens.
pub fn url_safe(bytes: &[u8]) -> String {
    encode(bytes, URL_SAFE, false)
}

fn encode(bytes: &[u8], alphabet: &[u8; 64], padded: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (u32::from(three[0]) << 16)
            | (u32::from(three.get(1).copied().unwrap_or(0)) << 8)
            | u32::from(three.get(2).copied().unwrap_or(0));
        for digit in 0..4 {
            if digit <= three.len() {
                text.push(char::from(alphabet[(word >> (18 - 6 * digit)) as usize & 63]));
            } else if padded {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn the_vectors_of_the_standard_come_out() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(standard(bytes.as_bytes()), text);
        }
        assert_eq!(url_safe(&[0xfb, 0xff]), "-_8");
    }
}
