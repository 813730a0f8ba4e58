//! How a client knows the server before it sends a token.
//!
//! Any program can listen at a port while the server is down, or at a path in a folder that it may write to. So a client
//! asks first: it sends the beginning of its token's hash, which is no secret, and a number that is used once. Only who
//! keeps the whole hash can answer with the right signature.
//!
//! A stranger could pass the question on to the real server, which listens elsewhere then. So the signature covers the
//! address: of the two ends of this connection as the system says, never as the other end says. A client sends its token
//! over the connection that was proven, and over no other.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::tokens::{self, Tokens};
use kernel::Millis;

pub const PATH: &str = "/proof";

/// What stands before all else that is signed, so that a signature means nothing anywhere else.
const PURPOSE: &str = "adjutant server proof 1";

/// What a client asks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Challenge {
    /// The beginning of the hash of the token that the client wants to send.
    pub token: String,
    pub nonce: String,
}

/// What the server answers.
#[derive(Serialize, Deserialize)]
pub struct Proof {
    pub proof: String,
}

impl Challenge {
    pub fn new(token: &str) -> std::io::Result<Challenge> {
        Ok(Challenge { token: tokens::id_of(&tokens::hash(token)).to_owned(), nonce: tokens::fresh()? })
    }

    /// Whether it has the form of one; nothing else is signed.
    pub fn is_whole(&self) -> bool {
        let digits =
            |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits(&self.token, tokens::ID_DIGITS) && digits(&self.nonce, base::secrets::TOKEN_DIGITS)
    }

    /// The answer of whoever keeps this hash and listens at this address.
    pub fn answer(&self, hash: &str, address: &str) -> Proof {
        let message = format!("{PURPOSE}\n{}\n{}\n{address}", self.token, self.nonce);
        Proof { proof: base::secrets::signature(hash.as_bytes(), message.as_bytes()) }
    }

    /// The answer of a server with these tokens; `None` if it does not know the client's token. The token itself is not sent.
    pub fn prove(&self, tokens: &Tokens, address: &str, now: Millis) -> Option<Proof> {
        let hash = tokens.hash_with_id(&self.token, now).filter(|_| self.is_whole())?;
        Some(self.answer(&hash, address))
    }

    /// Whether the answer is of a server that knows this token and listens where the client has connected.
    pub fn is_answered_by(&self, proof: &Proof, token: &str, address: &str) -> bool {
        tokens::is_same(&proof.proof, &self.answer(&tokens::hash(token), address).proof)
    }
}

/// The server's end of a TCP connection, as both ends write it.
pub fn tcp_address(end: SocketAddr) -> String {
    // A server of both families sees the older one inside of the newer.
    format!("tcp:{}", SocketAddr::new(end.ip().to_canonical(), end.port()))
}

/// A socket in the file system. Whoever binds one makes a file of its own: no two listeners have the same.
pub fn socket_address(device: u64, inode: u64) -> String {
    format!("unix:{device}:{inode}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_keeps_the_hash_and_listens_there_can_answer_and_only_once() {
        let (token, address) = ("5".repeat(64), "tcp:127.0.0.1:4600");
        let challenge = Challenge::new(&token).unwrap();
        assert!(challenge.is_whole() && !token.contains(&challenge.token));
        let hash = tokens::hash(&token);
        let right = challenge.answer(&hash, address);
        assert!(challenge.is_answered_by(&right, &token, address));
        assert!(!challenge.is_answered_by(&right, &token, "tcp:[::1]:4600"), "it was passed on");
        let again = Challenge { nonce: "0".repeat(64), ..Challenge::new(&token).unwrap() };
        assert!(!again.is_answered_by(&right, &token, address), "it was seen before");
        for guess in [&challenge.token, &token, ""] {
            assert!(!challenge.is_answered_by(&challenge.answer(guess, address), &token, address), "{guess}");
        }
        for wrong in ["", "x", &"g".repeat(12)] {
            assert!(!Challenge { token: wrong.to_owned(), nonce: "0".repeat(64) }.is_whole(), "{wrong}");
        }
    }

    #[test]
    fn both_ends_write_an_address_alike() {
        let both = ["127.0.0.1:4600", "[::ffff:127.0.0.1]:4600"].map(|end| tcp_address(end.parse().unwrap()));
        assert_eq!(both, ["tcp:127.0.0.1:4600", "tcp:127.0.0.1:4600"]);
    }
}
