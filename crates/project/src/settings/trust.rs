//! Which content of `adjutant.toml` is in force. The file names programs that run as the user, so content from an
//! agent's branch is in force only after the user trusted it; until then the previous content is. The same is true if the file
//! is missing: a branch without it, or an editor that is about to write it, must not remove a budget or a restriction.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Settings, SettingsError};
use crate::layout::Layout;
use base::files::write_whole;

/// What people are told of settings that they have not trusted.
pub const UNTRUSTED: &str = "adjutant.toml came in with an agent's branch and is not in force: check it, then `adj config trust`; until then the previous settings stay in force";
/// What people are told of a settings file that is gone.
pub const GONE: &str = "adjutant.toml is gone: the previous settings stay in force; put it back (`git checkout main -- adjutant.toml`), or `adj config forget` to continue with the defaults";

/// The settings in force.
#[derive(Clone, Debug)]
pub struct InForce {
    pub settings: Settings,
    /// False: the file has a content that the user has not trusted, and these are the previous settings.
    pub trusted: bool,
    /// The file is not there, and these are the previous settings.
    pub gone: bool,
    /// The content that they were read from; empty where there is none.
    pub text: String,
    pub read: Read,
}

/// What the file itself had when the settings were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub content: Option<Vec<u8>>,
    /// It is what is in force.
    pub holds: bool,
}

impl InForce {
    /// What people should hear of it.
    pub fn note(&self) -> Option<&'static str> {
        match (self.trusted, self.gone) {
            (false, _) => Some(UNTRUSTED),
            (_, true) => Some(GONE),
            _ => None,
        }
    }
}

fn kept(layout: &Layout) -> PathBuf {
    layout.state().join("trusted.toml")
}

fn list(layout: &Layout) -> PathBuf {
    layout.state().join("distrusted")
}

fn digest(bytes: &[u8]) -> String {
    base::hex::hex(&Sha256::digest(bytes))
}

fn distrusted(layout: &Layout) -> Vec<String> {
    let text = std::fs::read_to_string(list(layout)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The settings that hold now.
pub fn in_force(layout: &Layout) -> Result<InForce, SettingsError> {
    let content = std::fs::read(layout.settings());
    let missing = content.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let content = content.ok();
    let gone = missing && kept(layout).exists();
    let trusted = missing || !distrusted(layout).contains(&digest(content.as_deref().unwrap_or_default()));
    let path = if trusted && !gone { layout.settings() } else { kept(layout) };
    let settings = Settings::read(&path)?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // Where it changed between the two looks, whoever waits for changes reads it again.
    let holds = trusted && content.as_deref() == Some(text.as_bytes());
    Ok(InForce { settings, trusted, gone, text, read: Read { content, holds } })
}

/// The content that was in force last; empty if none was kept.
pub fn last_good(layout: &Layout) -> String {
    std::fs::read_to_string(kept(layout)).unwrap_or_default()
}

/// How the files that [`in_force`] reads look from outside: while it is the same, so is what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp([Option<(u64, i64, i64, u64)>; 3]);

pub fn stamp(layout: &Layout) -> Stamp {
    let look = |path: std::path::PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
    };
    Stamp([layout.settings(), kept(layout), list(layout)].map(look))
}

/// What of the settings waits for a person.
pub fn facts(layout: &Layout) -> kernel::waiting::Facts {
    // What cannot be read at all is said by whoever needs it.
    let Ok(in_force) = in_force(layout) else { return kernel::waiting::Facts::default() };
    let changed = || {
        // A file that is gone was taken out of its folder.
        let place = if in_force.gone { layout.root().to_owned() } else { layout.settings() };
        changed_at(&place)
    };
    let untrusted = (in_force.gone || !in_force.trusted)
        .then(|| kernel::waiting::UntrustedSettings { gone: in_force.gone, since: changed() });
    let include = layout.root().join(git::names::INCLUDE_FILE);
    let untrusted_include = (!super::include::in_force(layout).trusted)
        .then(|| kernel::waiting::UntrustedInclude { since: changed_at(&include) });
    kernel::waiting::Facts { untrusted_settings: untrusted, untrusted_include }
}

fn changed_at(place: &std::path::Path) -> Option<kernel::Millis> {
    let at = place.metadata().and_then(|found| found.modified()).ok()?;
    let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Whether the previous settings stay in force because the file is gone.
pub fn is_gone(layout: &Layout) -> bool {
    !layout.settings().exists() && kept(layout).exists()
}

/// Keeps what is in force, for the time when the file is gone. To be called where settings take effect.
pub fn hold(layout: &Layout, read: &Read) -> io::Result<()> {
    match &read.content {
        Some(content) if read.holds => keep(layout, content),
        _ => Ok(()),
    }
}

/// The same for what is in force now.
pub fn remember(layout: &Layout) -> io::Result<()> {
    in_force(layout).map_or(Ok(()), |in_force| hold(layout, &in_force.read))
}

fn keep(layout: &Layout, content: &[u8]) -> io::Result<()> {
    match std::fs::read(kept(layout)) {
        Ok(known) if known == content => Ok(()),
        _ => write_whole(&kept(layout), content),
    }
}

/// The user has done away with the file: the defaults hold. False where the file is there, and nothing was done.
pub fn forget(layout: &Layout) -> io::Result<bool> {
    if layout.settings().exists() {
        return Ok(false);
    }
    match std::fs::remove_file(kept(layout)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(true),
    }
}

/// This content comes with an agent's branch. When it returns, it is not in force, whenever it arrives in the checkout.
pub fn arrives(layout: &Layout, content: &[u8]) -> io::Result<()> {
    let (mut known, coming) = (distrusted(layout), digest(content));
    if known.contains(&coming) {
        return Ok(());
    }
    // Where there has been no file, the defaults are what holds on.
    let now = match std::fs::read(layout.settings()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !kept(layout).exists() => Some(Vec::new()),
        now => now.ok(),
    };
    let holds = |now: &Vec<u8>| {
        let reads = std::str::from_utf8(now).is_ok_and(|text| Settings::parse(text).is_ok());
        !known.contains(&digest(now)) && reads
    };
    if let Some(now) = now.filter(holds) {
        keep(layout, &now)?;
    }
    known.push(coming);
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())
}

/// The user trusts the file as it is now.
pub fn trust(layout: &Layout) -> io::Result<()> {
    let content = digest(&std::fs::read(layout.settings())?);
    let known: Vec<_> = distrusted(layout).into_iter().filter(|known| *known != content).collect();
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())?;
    remember(layout)
}
