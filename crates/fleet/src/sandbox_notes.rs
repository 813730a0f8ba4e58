//! Warnings about the sandbox that people should see before agents run.

use super::repository::open_repository;
use super::{checkout, trees};
use process::sandbox;
use project::layout::Layout;
use project::settings::{self, SandboxMode, Settings};
use project::workplace;

/// Why nothing may be run here: the settings demand of the sandbox what this system cannot do.
pub fn sandbox_refusal(settings: &Settings) -> Option<String> {
    let wanted = &settings.sandbox;
    let support = sandbox::support_by(settings.sandbox.namespaces);
    if wanted.mode == settings::SandboxMode::Strict && support.level != sandbox::Level::Full {
        return Some(format!(
            "sandbox.mode is \"strict\", and the sandbox is not complete here: {}",
            support.what
        ));
    }
    if wanted.network == settings::Network::None && !support.namespaces {
        return Some(format!(
            "sandbox.network is \"none\", and the network of tests cannot be disabled here: {}",
            support.what
        ));
    }
    None
}

/// What people should know of the sandbox before agents run; nothing where it holds.
pub fn sandbox_note(settings: &Settings) -> Option<String> {
    let notes: Vec<String> = unenforced(settings).into_iter().map(|gap| gap.what).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Something that the sandbox does not enforce on this machine, and what can be done about it.
pub struct Gap {
    pub what: String,
    pub hint: &'static str,
}

/// All that the sandbox does not enforce here and would elsewhere or with other settings. `adj run` and `adj doctor` both
/// report this.
pub fn unenforced(settings: &Settings) -> Vec<Gap> {
    let shared = worktree_note(settings).map(|what| Gap { what, hint: "set `fleet.isolation = \"clone\"`" });
    let checkout =
        checkout_note(settings).map(|what| Gap { what, hint: "docs/sandbox.md lists the requirements" });
    [gaps(settings), checkout, shared].into_iter().flatten().collect()
}

/// That the person's checkout cannot be hidden from tests here; nothing where it is.
pub fn checkout_note(settings: &Settings) -> Option<String> {
    sandbox_held(settings).is_none().then(|| {
        "your checkout is not hidden from tests: a test can pass because of files there that are not under test"
            .to_owned()
    })
}

/// Why nothing may be run here: what trees get of the person's checkout leads their tests back into it. The lines say what
/// was found, and the last what to do.
pub struct LeadsBack {
    pub found: Vec<String>,
    pub fix: String,
}

/// Looks for that. What cannot be looked at is said by whoever needs it.
pub fn leads_back(layout: &Layout, settings: &Settings) -> Option<LeadsBack> {
    let repository = open_repository(layout, settings).ok()?;
    let leads = checkout::leads_back(layout, &repository, settings).ok().filter(|leads| !leads.is_empty())?;
    let fix = workplace::fix(layout.root(), &leads);
    Some(LeadsBack { found: trees::told(&leads), fix })
}

/// What agents reach of the user's git directory because their worktrees share it; nothing where they have clones.
fn worktree_note(settings: &Settings) -> Option<String> {
    let sandboxed = sandbox_held(settings).is_some();
    let shares = settings.fleet.isolation == settings::Isolation::Worktree;
    let others = match sandbox::support_by(settings.sandbox.namespaces).namespaces {
        true => "",
        false => "can move the branches of other agents, and ",
    };
    (sandboxed && shares).then(|| {
        format!(
            "agents share your git directory (fleet.isolation = \"worktree\"): each {others}can delete objects in it; \
             \"clone\" keeps them apart"
        )
    })
}

fn gaps(settings: &Settings) -> Option<Gap> {
    match settings.sandbox.mode {
        SandboxMode::Off => Some(Gap {
            what: "the sandbox is off: agents can reach everything that you can, and their roles are only advisory"
                .to_owned(),
            hint: "set `sandbox.mode = \"auto\"`",
        }),
        SandboxMode::Auto | SandboxMode::Strict => {
            let support = sandbox::support_by(settings.sandbox.namespaces);
            let said = match support.level {
                sandbox::Level::Full => return None,
                sandbox::Level::Partial => "the sandbox has gaps",
                sandbox::Level::None => "there is no sandbox, and roles of agents are only advisory",
            };
            let what = format!("{said}: {}", support.what);
            Some(Gap { what, hint: "docs/sandbox.md lists the requirements" })
        }
    }
}

/// What holds agents back, in a sentence; nothing where roles are advisory.
pub fn sandbox_held(settings: &Settings) -> Option<String> {
    let support = sandbox::support_by(settings.sandbox.namespaces);
    let off = settings.sandbox.mode == settings::SandboxMode::Off || support.level == sandbox::Level::None;
    (!off).then_some(support.what)
}
