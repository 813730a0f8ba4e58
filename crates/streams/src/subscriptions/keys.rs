//! The key that signs webhooks, the tokens of their answers, and unguessable names.

use std::sync::Arc;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use ring::{digest, hmac};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use crate::base64;

/// How long a token is good for, if its wake is not over before.
const TOKEN_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone)]
pub struct Keys {
    signing: Arc<Ed25519KeyPair>,
    tokens: Arc<hmac::Key>,
    pub kid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    Invalid,
    Expired,
}

impl Keys {
    /// The keys in the file, made when they are asked for first.
    pub fn load(db: &Connection) -> Result<Keys, String> {
        let random = SystemRandom::new();
        let pkcs8 = secret(db, "webhook", || {
            Ok(Ed25519KeyPair::generate_pkcs8(&random).map_err(|error| error.to_string())?.as_ref().to_vec())
        })?;
        let signing = Ed25519KeyPair::from_pkcs8(&pkcs8).map_err(|error| error.to_string())?;
        let token_key = secret(db, "token", || {
            let mut key = [0; 32];
            random.fill(&mut key).map_err(|error| error.to_string())?;
            Ok(key.to_vec())
        })?;
        let kid = thumbprint(&signing);
        Ok(Keys {
            signing: Arc::new(signing),
            tokens: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &token_key)),
            kid,
        })
    }

    /// The key that receivers check with.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [{
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": self.kid,
            "use": "sig",
            "alg": "EdDSA",
            "x": base64::url_safe(self.signing.public_key().as_ref()),
        }] })
    }

    /// The header `Webhook-Signature` for a body that is sent now.
    pub fn signature(&self, unix_seconds: u64, body: &[u8]) -> String {
        let mut signed = format!("{unix_seconds}.").into_bytes();
        signed.extend_from_slice(body);
        let signature = base64::url_safe(self.signing.sign(&signed).as_ref());
        format!("t={unix_seconds},kid={},ed25519={signature}", self.kid)
    }

    /// A token for one wake of one subscription.
    pub fn token(&self, subscription: &str, generation: u64, now: u64) -> String {
        let expires = now.saturating_add(TOKEN_MS);
        let tag = hmac::sign(&self.tokens, token_text(subscription, generation, expires).as_bytes());
        format!("{generation}.{expires}.{}", hex(tag.as_ref()))
    }

    /// The generation that a token was made for.
    pub fn check(&self, token: &str, subscription: &str, now: u64) -> Result<u64, TokenError> {
        let mut parts = token.split('.');
        let mut part = || parts.next().ok_or(TokenError::Invalid);
        let generation = part()?.parse().map_err(|_| TokenError::Invalid)?;
        let expires = part()?.parse().map_err(|_| TokenError::Invalid)?;
        let tag = unhex(part()?).ok_or(TokenError::Invalid)?;
        let text = token_text(subscription, generation, expires);
        hmac::verify(&self.tokens, text.as_bytes(), &tag).map_err(|_| TokenError::Invalid)?;
        if now >= expires { Err(TokenError::Expired) } else { Ok(generation) }
    }
}

/// A name for a wake that nobody can guess.
pub fn wake_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(format!("w_{}", hex(&bytes)))
}

fn token_text(subscription: &str, generation: u64, expires: u64) -> String {
    format!("{subscription}\n{generation}\n{expires}")
}

/// The thumbprint of RFC 7638: the same key has the same name for ever.
fn thumbprint(pair: &Ed25519KeyPair) -> String {
    let x = base64::url_safe(pair.public_key().as_ref());
    let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    format!("ds_{}", base64::url_safe(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref()))
}

fn secret(
    db: &Connection,
    name: &str,
    make: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let known = db
        .query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| row.get(0))
        .optional()
        .map_err(|error| error.to_string())?;
    if let Some(known) = known {
        return Ok(known);
    }
    let made = make()?;
    db.execute("INSERT INTO secrets (name, value) VALUES (?1, ?2)", (name, &made))
        .map_err(|error| error.to_string())?;
    Ok(made)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL)").unwrap();
        let keys = Keys::load(&db).unwrap();
        assert_eq!(keys.kid, Keys::load(&db).unwrap().kid, "a key outlives the process");
        keys
    }

    #[test]
    fn a_token_is_good_for_its_subscription_until_it_expires() {
        let keys = keys();
        let token = keys.token("a", 7, 1000);
        assert_eq!(keys.check(&token, "a", 1000), Ok(7));
        assert_eq!(keys.check(&token, "b", 1000), Err(TokenError::Invalid));
        assert_eq!(keys.check(&token.replacen('7', "8", 1), "a", 1000), Err(TokenError::Invalid));
        assert_eq!(keys.check(&token, "a", 1000 + TOKEN_MS), Err(TokenError::Expired));
        for bad in ["", "7", "7.1.zz", "..", "7.1.abc"] {
            assert_eq!(keys.check(bad, "a", 0), Err(TokenError::Invalid), "{bad}");
        }
    }

    #[test]
    fn a_signature_is_checked_with_the_published_key() {
        let keys = keys();
        let header = keys.signature(1234, b"body");
        assert!(header.starts_with(&format!("t=1234,kid={},ed25519=", keys.kid)));
        let signature = keys.signing.sign(b"1234.body");
        let public =
            ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, keys.signing.public_key());
        assert!(public.verify(b"1234.body", signature.as_ref()).is_ok());
        assert!(public.verify(b"1235.body", signature.as_ref()).is_err());
        assert!(header.ends_with(&base64::url_safe(signature.as_ref())));
    }
}
