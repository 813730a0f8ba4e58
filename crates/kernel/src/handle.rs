//! `handle`: one command in, one commit out.

use crate::World;
use crate::command::*;
use crate::dispatch::dispatch;
use crate::draft::{Commit, Draft};
use crate::event::*;
use crate::hash::fnv;
use crate::rules;
use smol_str::{SmolStr, format_smolstr};

/// Decides one command. `Err` means that nothing is to be written. A `Commit` may hold a refusal too: one that is
/// remembered, because it was asked under a key or because the refusal itself is part of the audit.
pub fn handle(world: &World, command: &Command) -> Result<Commit, Refusal> {
    let Some(key) = &command.key else { return decide(world, command) };
    let scope = scope(command);
    let fingerprint = fingerprint(&command.ask);
    if let Some(kept) = world.kept.get(&(scope.clone(), key.clone())) {
        return again(world, kept, fingerprint);
    }
    if let Some(kept) = kept_before(world, command, key, fingerprint) {
        return again(world, kept, fingerprint);
    }
    let mut draft = Draft::new(world, command);
    let (answer, kept) = match decide(world, command) {
        Ok(commit) => {
            let kept = match &commit.answer {
                Ok(reply) => Answer::Done(reply.clone()),
                Err(refusal) => Answer::Refused(refusal.clone()),
            };
            let answer = commit.answer.clone();
            draft.adopt(commit);
            (answer, kept)
        }
        Err(refusal) => (Err(refusal.clone()), Answer::Refused(refusal)),
    };
    let command = draft.command_name();
    draft.emit(AnswerKept { scope, key: key.clone(), fingerprint, command, answer: kept });
    Ok(draft.finish(answer))
}

/// The first decided answer, again; or a conflict where the key was used for something else.
fn again(world: &World, kept: &crate::world::IdempotentAnswer, fingerprint: u64) -> Result<Commit, Refusal> {
    if kept.fingerprint != fingerprint {
        let message = "this idempotency key was used for another request";
        return Err(Refusal::new(409, "KEY_REUSED", message).hint("use a new key for a new request"));
    }
    match &kept.answer {
        Answer::Refused(refusal) => Err(refusal.clone()),
        Answer::Done(reply) => Ok(Commit {
            events: Vec::new(),
            answer: Ok(Reply { replayed: true, ..reply.clone() }),
            rules: Vec::new(),
            rows: Vec::new(),
            world: world.clone(),
        }),
    }
}

/// What an earlier version kept without saying for whom. A person may ask again for what was done; a refusal that may have been
/// another's stands for nobody.
fn kept_before<'w>(
    world: &'w World,
    command: &Command,
    key: &SmolStr,
    fingerprint: u64,
) -> Option<&'w crate::world::IdempotentAnswer> {
    let kept = world.kept.get(&(format_smolstr!("{}", command.ask.scope()), key.clone()))?;
    let done = matches!(kept.answer, Answer::Done(_)) && kept.fingerprint == fingerprint;
    (done && command.actor.is_human()).then_some(&**kept)
}

/// A key belongs to its caller and to the task that it was used on; without one, to the kind of request.
pub fn scope(command: &Command) -> SmolStr {
    format_smolstr!("{} {}", command.ask.scope(), command.actor)
}

fn fingerprint(ask: &Ask) -> u64 {
    let text = serde_json::to_string(ask).expect("a command is plain data");
    fnv(text.as_bytes())
}

fn decide(world: &World, command: &Command) -> Result<Commit, Refusal> {
    let mut draft = Draft::new(world, command);
    let answer = dispatch(&mut draft, &command.ask)?;
    if answer.is_ok() {
        rules::settle(&mut draft)?;
    }
    Ok(draft.finish(answer))
}
