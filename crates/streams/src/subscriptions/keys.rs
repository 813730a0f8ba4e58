//! The key that signs webhooks, the tokens of their answers, and unguessable names.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::hex::{hex, unhex};
use crate::storage::Store;

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
    /// The keys of the store, made when they are asked for first.
    pub fn load(store: &mut dyn Store) -> Result<Keys, String> {
        let signing = store.secret("webhook", &mut new_signing_key)?;
        let tokens = store.secret("token", &mut new_token_key)?;
        Keys::of(&signing, &tokens)
    }

    /// Keys that are kept nowhere.
    pub fn unstored() -> Result<Keys, String> {
        Keys::of(&new_signing_key()?, &new_token_key()?)
    }

    fn of(signing: &[u8], tokens: &[u8]) -> Result<Keys, String> {
        let signing = Ed25519KeyPair::from_pkcs8(signing).map_err(|error| error.to_string())?;
        let kid = thumbprint(&signing);
        let tokens = hmac::Key::new(hmac::HMAC_SHA256, tokens);
        Ok(Keys { signing: Arc::new(signing), tokens: Arc::new(tokens), kid })
    }

    /// The key that receivers check with.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [{
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": self.kid,
            "use": "sig",
            "alg": "EdDSA",
            "x": URL_SAFE_NO_PAD.encode(self.signing.public_key().as_ref()),
        }] })
    }

    /// The header `Webhook-Signature` for a body that is sent now.
    pub fn signature(&self, unix_seconds: u64, body: &[u8]) -> String {
        let mut signed = format!("{unix_seconds}.").into_bytes();
        signed.extend_from_slice(body);
        let signature = URL_SAFE_NO_PAD.encode(self.signing.sign(&signed).as_ref());
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
    let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    format!("ds_{}", URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref()))
}

fn new_signing_key() -> Result<Vec<u8>, String> {
    let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|error| error.to_string())?;
    Ok(made.as_ref().to_vec())
}

fn new_token_key() -> Result<Vec<u8>, String> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|error| error.to_string())?;
    Ok(key.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::memory::MemoryStore;

    fn keys() -> Keys {
        let mut store = MemoryStore::default();
        let keys = Keys::load(&mut store).unwrap();
        assert_eq!(keys.kid, Keys::load(&mut store).unwrap().kid, "a key outlives the process");
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
        assert!(header.ends_with(&URL_SAFE_NO_PAD.encode(signature.as_ref())));
    }
}
