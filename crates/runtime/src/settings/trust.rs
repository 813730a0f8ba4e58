//! Which content of `adjutant.toml` is in force. The file names programs that run as the user, so what came in with an
//! agent's branch holds only after the user said so; until then the content of before does.

use std::io;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Settings, SettingsError};
use crate::files::write_whole;
use crate::layout::Layout;

/// The settings in force.
#[derive(Clone, Debug)]
pub struct InForce {
    pub settings: Settings,
    /// False: the file has a content that the user has not trusted, and these are the settings of before.
    pub trusted: bool,
    /// The content that they were read from; what `adj init` would write where there is none.
    pub text: String,
}

fn kept(layout: &Layout) -> PathBuf {
    layout.state().join("trusted.toml")
}

fn list(layout: &Layout) -> PathBuf {
    layout.state().join("distrusted")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn distrusted(layout: &Layout) -> Vec<String> {
    let text = std::fs::read_to_string(list(layout)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The settings that hold now.
pub fn in_force(layout: &Layout) -> Result<InForce, SettingsError> {
    let content = std::fs::read(layout.settings()).unwrap_or_default();
    let trusted = !distrusted(layout).contains(&digest(&content));
    let path = if trusted { layout.settings() } else { kept(layout) };
    let settings = Settings::read(&path)?;
    let text = std::fs::read_to_string(path).unwrap_or_else(|_| super::template(&super::Found::default()));
    Ok(InForce { settings, trusted, text })
}

/// This content comes with an agent's branch. When it returns, it is not in force, whenever it arrives in the checkout.
pub fn arrives(layout: &Layout, content: &[u8]) -> io::Result<()> {
    let now = std::fs::read(layout.settings()).unwrap_or_default();
    let (mut known, coming) = (distrusted(layout), digest(content));
    if known.contains(&coming) {
        return Ok(());
    }
    if !known.contains(&digest(&now)) {
        write_whole(&kept(layout), &now)?;
    }
    known.push(coming);
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())
}

/// The user trusts the file as it is now.
pub fn trust(layout: &Layout) -> io::Result<()> {
    let content = digest(&std::fs::read(layout.settings())?);
    let known: Vec<_> = distrusted(layout).into_iter().filter(|known| *known != content).collect();
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())
}
