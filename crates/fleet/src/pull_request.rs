//! Landing by pull request, if main is protected: a tested tip is pushed as a branch, a command of the user
//! opens the pull request, and the task has landed when the remote's main has its change.
//!
//! Git and the command run as the user, in the user's checkout, with the user's credentials. Everything can run twice: a
//! branch that exists is not pushed again, and the command runs under a keeper, which the next process finds again.

use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use kernel::Timer;
use kernel::command::Happened;
use kernel::world::HeldUp;
use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::kept_command::{self, KeptCommand, Ran};
use super::landing::{self, InTheWay, LandingError};
use super::{Missing, Shared, endings, tickets, user_commands};
use base::files::FileError;
use git::{Edit, GitError, Moved, Oid, Push, Stands};
use log::outbox;
use project::settings::Hook;

/// How often main is moved after the remote's where somebody else moves it too.
const MOVES_MAX: usize = 3;
/// The longest address that is kept.
const URL_BYTES_MAX: usize = 2000;

/// What keeps a landing waiting, or why it cannot be tried at all.
enum Stop {
    Held(Happened),
    Failed(LandingError),
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Stop {
        match error {
            GitError::NotSigned { why, command } => {
                let why = format!("your git settings require signed commits, and signing failed ({why})");
                Stop::Held(Happened::CheckoutInTheWay { why, command })
            }
            error => Stop::Failed(error.into()),
        }
    }
}

impl From<LandingError> for Stop {
    fn from(error: LandingError) -> Stop {
        Stop::Failed(error)
    }
}

fn remote_in_the_way(why: String) -> Stop {
    Stop::Held(Happened::RemoteInTheWay { why })
}

/// The branch on the remote.
fn branch_of(task: &TaskId) -> String {
    format!("adjutant/{task}")
}

/// Lands what the remote's main has, or offers what is tested. `None`: it was ended, and is done again.
pub async fn land(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    tip: &SmolStr,
) -> Result<Option<Happened>, LandingError> {
    match try_to_land(shared, id, task, tip).await {
        Ok(what) => Ok(what),
        Err(Stop::Held(what)) => Ok(Some(what)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

async fn try_to_land(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    tip: &SmolStr,
) -> Result<Option<Happened>, Stop> {
    let main = follow(shared, task).await?;
    let known = shared.world().task(task).cloned();
    let known = known.ok_or_else(|| LandingError::from(Missing::Task(task.clone())))?;
    let tip = landing::commit(tip)?;
    let at = known.review.approved.as_ref().map_or(known.created_at, |approved| approved.at) / 1000;
    let (host, by_agent, ticket) = (shared.clone(), known.work.run.is_some(), known.origin.ticket.clone());
    let (change, brought) = {
        let tip = tip.clone();
        let work = move || -> Result<_, Stop> {
            let edits: Vec<Edit> = match &ticket {
                Some(ticket) => tickets::close_in_landing(&host, ticket)?.into_iter().collect(),
                None => Vec::new(),
            };
            let message = format!("Close {}\n", ticket.as_deref().unwrap_or_default());
            let change = host.repository.with_edits(&tip, &message, &edits, at)?;
            let Some((merge, old)) = host.repository.brought_by(&change, &main)? else {
                return Ok((change, None));
            };
            let tickets = match by_agent {
                true => tickets::added(&host, &old, &merge)?,
                false => Vec::new(),
            };
            let [merge, old] = [merge, old].map(|oid| SmolStr::new(oid.as_str()));
            Ok((change, Some(Happened::MergeGreen { merge, old, tickets })))
        };
        shared.blocking(work).await?
    };
    if brought.is_some() {
        return Ok(brought);
    }
    // Whoever merges it merges what is green with main as it is now.
    match landing::tested(shared, id, task, &SmolStr::new(tip.as_str())).await? {
        Some(Happened::MergeGreen { merge, old, .. }) if merge != old => {}
        other => return Ok(other),
    }
    push(shared, task, &change).await?;
    base::crash::effect("pull_request", "pushed");
    let url = match &known.landing.pull_request {
        Some(_) => None,
        None => match open(shared, id, &known).await? {
            Some(url) => url,
            None => return Ok(None),
        },
    };
    base::crash::effect("pull_request", "opened");
    Ok(Some(Happened::PullRequestOpen { url, branch: SmolStr::new(branch_of(task)) }))
}

/// Fetches the remote's main, and moves main to it where that is a fast-forward.
async fn follow(shared: &Arc<Shared>, task: &TaskId) -> Result<Oid, Stop> {
    let settings = shared.in_force().settings.clone();
    fetch(shared, &settings.project.main).await?;
    let (host, name) = (shared.clone(), task.clone());
    let work = move || -> Result<Oid, Stop> {
        let (remote, main) = (&settings.landing.remote, &settings.project.main);
        let there = host.repository.fetched(remote, main)?;
        let there = there.ok_or_else(|| remote_in_the_way(format!("`{remote}` has no branch `{main}`")))?;
        host.remote_mains.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), there.clone());
        for _ in 0..MOVES_MAX {
            let here = host.repository.main_tip()?;
            match host.repository.compared(&here, &there)? {
                Stands::Ahead => return Ok(there),
                Stands::Apart => {
                    let why = format!("your {main} and {remote}'s have diverged");
                    let command = format!("git -C '{}' rebase {remote}/{main}", host.layout.root().display());
                    return Err(Stop::Held(Happened::CheckoutInTheWay { why, command }));
                }
                Stands::Behind => {}
            }
            landing::distrust(&host.layout, &host.repository, &there)?;
            if let Moved::InTheWay { why, files, command, at } = host.repository.move_main(&there, &here)? {
                let mut held_up = host.held_up.lock().unwrap_or_else(PoisonError::into_inner);
                held_up.insert(name, InTheWay::look(&at, &files));
                return Err(Stop::Held(Happened::CheckoutInTheWay { why, command }));
            }
        }
        Err(LandingError::Contended(main.clone()).into())
    };
    shared.blocking(work).await
}

async fn fetch(shared: &Arc<Shared>, branch: &str) -> Result<(), Stop> {
    let remote = shared.in_force().settings.landing.remote.clone();
    let refspec = format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}");
    git(shared, &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &remote, &refspec])
        .await
        .map(drop)
}

/// The remote has the change under the task's branch when this returns. A branch that somebody else changed is theirs, and
/// enough where it has the change.
async fn push(shared: &Arc<Shared>, task: &TaskId, change: &Oid) -> Result<(), Stop> {
    let (remote, branch) = (shared.in_force().settings.landing.remote.clone(), branch_of(task));
    let reference = format!("refs/heads/{branch}");
    let listed = git(shared, &["ls-remote", "--refs", &remote, &reference]).await?;
    let there = listed.split_whitespace().next().and_then(Oid::new);
    if there.as_ref() == Some(change) {
        return Ok(());
    }
    let ours = {
        let (host, task, there) = (shared.clone(), task.clone(), there.clone());
        let look = move || -> Result<bool, GitError> {
            let ours =
                [host.repository.pushed(&task, Push::Begun)?, host.repository.pushed(&task, Push::Done)?];
            Ok(there.is_none() || ours.contains(&there))
        };
        shared.blocking(look).await?
    };
    if !ours {
        fetch(shared, &branch).await?;
        let (host, remote, name, change) = (shared.clone(), remote.clone(), branch.clone(), change.clone());
        let look = move || -> Result<bool, GitError> {
            let there = host.repository.fetched(&remote, &name)?;
            there.map_or(Ok(false), |there| host.repository.has(&there, &change))
        };
        return match shared.blocking(look).await? {
            true => Ok(()),
            false => {
                Err(remote_in_the_way(format!("somebody else changed the branch `{branch}` on the remote")))
            }
        };
    }
    let (host, name, commit) = (shared.clone(), task.clone(), change.clone());
    let begin = move || -> Result<(), GitError> {
        host.repository.hand_out(&commit)?;
        host.repository.write_pushed(&name, Push::Begun, &commit)
    };
    shared.blocking(begin).await?;
    let lease = there.as_ref().map_or("", |there| there.as_str());
    let lease = format!("--force-with-lease={reference}:{lease}");
    git(shared, &["push", "--quiet", &lease, &remote, &format!("{change}:{reference}")]).await?;
    let (host, name, commit) = (shared.clone(), task.clone(), change.clone());
    Ok(shared.blocking(move || host.repository.write_pushed(&name, Push::Done, &commit)).await?)
}

/// Runs the command that opens the pull request. The address that it prints, if it prints one; nothing where it was ended.
async fn open(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &kernel::world::Task,
) -> Result<Option<Option<SmolStr>>, Stop> {
    let settings = shared.in_force().settings.clone();
    let Hook { command, timeout } = settings.landing.open.clone();
    let (title, body) = landing::offer(task);
    let file = shared.layout.state().join("pull-requests").join(format!("{}.md", task.id));
    let written =
        file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&file, body));
    written.map_err(FileError::at("write", &file)).map_err(LandingError::from)?;
    let root = shared.layout.root().to_owned();
    let mut env = user_commands::own_environment();
    let told = [
        ("ADJ_PROJECT", root.display().to_string()),
        ("ADJ_TASK", task.id.to_string()),
        ("ADJ_TITLE", title),
        ("ADJ_BODY_FILE", file.display().to_string()),
        ("ADJ_MAIN", settings.project.main.clone()),
        ("ADJ_BRANCH", branch_of(&task.id)),
        ("ADJ_REMOTE", settings.landing.remote.clone()),
    ];
    env.extend(told.map(|(name, value)| (name.to_owned(), value)));
    let argv = kept_command::shell(&command);
    let name = format!("{id}.pull-request");
    let kept = KeptCommand { name, of: command.clone(), argv, cwd: root, env, limit: timeout, sandbox: None };
    let (exit, output) = match kept_command::run(shared, kept, None).await.map_err(LandingError::from)? {
        Ran::Ended => return Ok(None),
        Ran::Over { exit, output } => (exit, output),
    };
    let url = address(&output);
    let opened = exit.succeeded();
    // One that was opened before this process knew of it is the one that is meant.
    if opened || (url.is_some() && output.contains("already exists")) {
        return Ok(Some(url));
    }
    let how = endings::how_it_ended(&exit, timeout);
    Err(remote_in_the_way(format!("`{command}` {how}: {}", last_line(&output))))
}

/// The first word of a text that is an address.
fn address(output: &str) -> Option<SmolStr> {
    let mut words = output.split(|c: char| c.is_whitespace() || c.is_control() || "<>\"'()".contains(c));
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    words.find(is_address).filter(|word| word.len() <= URL_BYTES_MAX).map(SmolStr::new)
}

fn last_line(text: &str) -> String {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Git as the user would run it; what it printed.
async fn git(shared: &Arc<Shared>, arguments: &[&str]) -> Result<String, Stop> {
    let limit: Duration = shared.in_force().settings.landing.open.timeout;
    let doing = arguments.first().copied().unwrap_or_default();
    let not_done = |why: String| remote_in_the_way(format!("git {doing} failed: {why}"));
    let mut command = tokio::process::Command::new("git");
    command.args(arguments).current_dir(shared.layout.root()).env_clear();
    let of_others = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];
    command.envs(
        user_commands::own_environment().into_iter().filter(|(name, _)| !of_others.contains(&name.as_str())),
    );
    // Nobody is there to type a password.
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(|error| not_done(error.to_string()))?;
    let ended = tokio::time::timeout(limit, child.wait_with_output()).await;
    let output = ended.map_err(|_| not_done(format!("it took longer than {} s", limit.as_secs())))?;
    let output = output.map_err(|error| not_done(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(not_done(last_line(&String::from_utf8_lossy(&output.stderr))))
}

/// Asks the remote, once for all tasks, whether its main has moved, and lands again what waits for that.
pub fn look(shared: &Arc<Shared>) {
    let waiting = waiting(shared);
    let Ok(turn) = shared.remote_look.clone().try_lock_owned() else { return };
    if waiting.is_empty() {
        return;
    }
    let shared = shared.clone();
    tokio::spawn(async move {
        let _turn = turn;
        let (remote, main) = {
            let in_force = shared.in_force();
            (in_force.settings.landing.remote.clone(), in_force.settings.project.main.clone())
        };
        // A remote that does not answer is asked again; whoever lands next is told.
        if fetch(&shared, &main).await.is_err() {
            return;
        }
        let host = shared.clone();
        let Ok(Some(there)) = shared.blocking(move || host.repository.fetched(&remote, &main)).await else {
            return;
        };
        let world = shared.world();
        for task in waiting {
            let seen = shared.remote_mains.lock().unwrap_or_else(PoisonError::into_inner).get(&task).cloned();
            if seen.as_ref() != Some(&there)
                && let Some(timer) = world.timers.get(&Timer::Checkout { task })
            {
                // What is not told now is told by the next look.
                let _ = outbox::ring(&mut &*shared, timer).await;
            }
        }
    });
}

fn waiting(shared: &Shared) -> Vec<TaskId> {
    let world = shared.world();
    let open =
        world.tasks.values().filter(|task| matches!(task.landing.held_up, Some(HeldUp::PullRequest { .. })));
    open.map(|task| task.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn the_address_of_a_pull_request_is_found_in_what_its_command_printed() {
        let said = "Creating pull request for adjutant/t-1\n\nhttps://host.example/o/r/pull/7\n";
        assert_eq!(address(said).as_deref(), Some("https://host.example/o/r/pull/7"));
        let said = "a pull request for branch \"x\" already exists:\nhttps://host.example/o/r/pull/7";
        assert_eq!(address(said).as_deref(), Some("https://host.example/o/r/pull/7"));
        assert_eq!(address("ftp://x and nothing else"), None);
    }
}
