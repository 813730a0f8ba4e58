//! Tokens that we gave out are left out of whatever we keep: output of agents and tests, and texts that agents send.
//!
//! Only hashes of tokens are kept, so a text is searched for anything that has the form of one and has such a hash. What a
//! program does to a token before it prints it (turns it round, encodes it) is not seen through.

use sha2::{Digest, Sha256};

/// A token is so many hexadecimal digits.
pub const TOKEN_DIGITS: usize = 64;
/// What stands in its place.
pub const HIDDEN: &str = "[ADJ_TOKEN hidden]";

/// The form in which hashes of tokens are kept.
pub fn hash(token: &[u8]) -> String {
    crate::hex::hex(&Sha256::digest(token))
}

/// HMAC-SHA256 (RFC 2104) in hexadecimal digits: only who knows the secret can have made it.
pub fn signature(secret: &[u8], message: &[u8]) -> String {
    const BLOCK: usize = 64;
    let mut key = [0; BLOCK];
    match secret.len() > BLOCK {
        true => key[..32].copy_from_slice(&Sha256::digest(secret)),
        false => key[..secret.len()].copy_from_slice(secret),
    }
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    crate::hex::hex(&Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize())
}

/// Hides tokens in a stream of bytes, also where one comes in several pieces.
#[derive(Debug, Default)]
pub struct TokenFilter {
    hashes: Vec<String>,
    /// The digits at the end of what came, fewer than a token has: they may be the beginning of one.
    held: Vec<u8>,
}

impl TokenFilter {
    pub fn new(hashes: Vec<String>) -> TokenFilter {
        TokenFilter { hashes, held: Vec::new() }
    }

    /// What may be written of this piece, and of what was held back before it.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.hashes.is_empty() {
            return bytes.to_vec();
        }
        let mut shown = Vec::with_capacity(bytes.len() + self.held.len());
        for &byte in bytes {
            if !byte.is_ascii_hexdigit() {
                shown.append(&mut self.held);
                shown.push(byte);
                continue;
            }
            self.held.push(byte);
            if self.held.len() < TOKEN_DIGITS {
                continue;
            }
            if self.hashes.contains(&hash(&self.held.to_ascii_lowercase())) {
                shown.extend_from_slice(HIDDEN.as_bytes());
                self.held.clear();
            } else {
                shown.push(self.held.remove(0));
            }
        }
        shown
    }

    /// Nothing more comes: what was held back was none.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// Whether there are as many digits in a row as a token has.
pub fn may_hold_one(text: &str) -> bool {
    text.len() >= TOKEN_DIGITS
        && text.as_bytes().split(|byte| !byte.is_ascii_hexdigit()).any(|digits| digits.len() >= TOKEN_DIGITS)
}

/// The same in all texts of a value. Names of members are not looked at.
pub fn hide_in(value: &mut serde_json::Value, hashes: &[String]) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            if let Some(shown) = hidden_in(text, hashes) {
                *text = shown;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, hashes)),
        Value::Object(members) => members.values_mut().for_each(|value| hide_in(value, hashes)),
        _ => {}
    }
}

/// A text without the tokens in it; `None` where there are none.
pub fn hidden_in(text: &str, hashes: &[String]) -> Option<String> {
    if text.len() < TOKEN_DIGITS {
        return None;
    }
    let mut hider = TokenFilter::new(hashes.to_vec());
    let mut shown = hider.pass(text.as_bytes());
    shown.extend(hider.rest());
    (shown != text.as_bytes()).then(|| String::from_utf8_lossy(&shown).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 2 and 6: a short key and one that is longer than a block.
    #[test]
    fn a_signature_is_the_one_that_everybody_else_computes() {
        let signed = signature(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(signed, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let signed = signature(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(signed, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn a_token_is_hidden_wherever_it_is_cut_and_nothing_else_is_changed() {
        let token = "0123456789abcdef".repeat(4);
        let hashes = vec![hash(b"another"), hash(token.as_bytes())];
        let said = format!("x{token}y a{token}{token}b {} \"{}\"\n12ab", &token[1..], token.to_uppercase());
        let shown = format!("x{HIDDEN}y a{HIDDEN}{HIDDEN}b {} \"{HIDDEN}\"\n12ab", &token[1..]);
        for cut in 1..said.len() {
            let mut hider = TokenFilter::new(hashes.clone());
            let mut all = Vec::new();
            for piece in said.as_bytes().chunks(cut) {
                all.extend(hider.pass(piece));
            }
            all.extend(hider.rest());
            assert_eq!(String::from_utf8(all).unwrap(), shown, "cut at {cut}");
        }
        assert_eq!(hidden_in(&said, &hashes), Some(shown));
        assert_eq!(hidden_in(&said[65..90], &hashes), None);
        assert_eq!(TokenFilter::new(Vec::new()).pass(said.as_bytes()), said.as_bytes());
    }
}
