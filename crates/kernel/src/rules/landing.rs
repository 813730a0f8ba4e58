//! Gate, review, merge queue, landing.

use machines::names::{EffectId, TaskId, WorkerName};
use machines::task::{Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, task, worker};
use smol_str::SmolStr;

use super::Rule;
use super::leases::end_lease;
use super::main_tests::{gate_in_doubt, landing_in_doubt, not_run};
use super::outcome::past_ended;
use super::people::{canceled, landing_is_written};
use super::release::{abort_run, pause_run, release};
use super::sessions::{self, done, tip_moved};
use super::step::{seconds, stuck};
use super::tickets::write_ticket;
use crate::checks::{check_text, forbidden};
use crate::choice::Choice;
use crate::command::{Actor, RedBy, Refusal};
use crate::config::Review;
use crate::draft::{Draft, Ruled, system_for};
use crate::effect::{Effect, StepEnd, Timer};
use crate::event::{
    AfterwardsAdded, ApprovalVoided, Dequeued, EmptyDiffSeen, GateAlone, GatePassed, LandingDoubted,
    LandingEnded, LandingFailedOn, LandingHeldUp, LandingStarted, LandingWaits, LandingWritten,
    PullRequestOpened, Queued, SentBackTo, TaskApproved, TaskLanded,
};
use crate::happened::{GateConflict, GateEmpty, GateGreen, GateRed};
use crate::why;
use crate::words::{CommentKind, EffectEnd, GateCause, LandingEnd, PersonNeeded};
use crate::world::{HeldUp, Landed, PullRequest, SentBack};

/// A pull request is looked at so often where nothing says that the remote's main has moved.
const PULL_REQUEST_SECONDS: u32 = 60 * 60;

/// A gate that has been run: of which task, for which worker, and whether that has no step left.
pub(super) struct Gate<'a> {
    pub id: &'a TaskId,
    pub worker: Option<&'a WorkerName>,
    pub max_steps_reached: bool,
}

impl Gate<'_> {
    fn cause(&self) -> GateCause {
        GateCause::of(self.worker.is_some(), self.max_steps_reached)
    }
}

fn gate_over(d: &mut Draft, effect: &EffectId, gate: &Gate) {
    done(d, effect, gate.id);
    if gate.worker.is_none() {
        d.emit(GateAlone { id: gate.id.clone(), effect: None });
    }
}

pub(super) fn gate_found_green(d: &mut Draft, effect: &EffectId, gate: &Gate, green: &GateGreen) -> Ruled {
    gate_over(d, effect, gate);
    let needs_person = PersonNeeded::of(&green.facts, gate.max_steps_reached);
    gate_green(d, gate.id, gate.worker, Some(&green.tip), true, needs_person)
}

pub(super) fn gate_found_empty(d: &mut Draft, effect: &EffectId, gate: &Gate, empty: &GateEmpty) -> Ruled {
    gate_over(d, effect, gate);
    d.rule(Rule::GateEmpty);
    if d.task(gate.id)?.gate.empty_diffs > 0 {
        let needs_person = Some(PersonNeeded::NoChanges);
        return gate_green(d, gate.id, gate.worker, Some(&empty.tip), false, needs_person);
    }
    d.emit(EmptyDiffSeen { id: gate.id.clone(), cause: gate.cause() });
    let output = "There is no change in the branch. If none is needed, say so and why.";
    gate_red(d, gate.id, gate.worker, output, RedBy::NoChange, gate.cause())
}

pub(super) fn gate_found_red(d: &mut Draft, effect: &EffectId, gate: &Gate, red: &GateRed) -> Ruled {
    gate_over(d, effect, gate);
    let GateRed { output, tip, by } = red;
    tip_moved(d, gate.id, tip.as_ref());
    if gate.worker.is_some() && gate_in_doubt(d, gate.id, output, *by) {
        return Ok(());
    }
    if *by == RedBy::Environment {
        return not_run(d, gate.id, output);
    }
    gate_red(d, gate.id, gate.worker, output, *by, gate.cause())
}

pub(super) fn gate_conflicts(d: &mut Draft, effect: &EffectId, gate: &Gate, found: &GateConflict) -> Ruled {
    gate_over(d, effect, gate);
    let GateConflict { tip, files, main } = found;
    tip_moved(d, gate.id, Some(tip));
    gate_conflict(d, gate.id, gate.worker, &Conflict { tip, files, main }, gate.cause())
}

pub(super) fn gate_green(
    d: &mut Draft,
    id: &TaskId,
    worker: Option<&WorkerName>,
    tip: Option<&SmolStr>,
    has_code: bool,
    needs_person: Option<PersonNeeded>,
) -> Ruled {
    d.rule(Rule::GateGreen);
    let run =
        d.world.run_of(id).map(|run| (run.id.clone(), run.agent.clone(), run.machine.inner().current_turn));
    let by = run.as_ref().map_or(Actor::System, |(_, agent, _)| system_for(agent));
    if needs_person.is_some() {
        d.rule(Rule::PersonNeeded);
    }
    let untested = !has_code || needs_person == Some(PersonNeeded::NoTests);
    d.emit(GatePassed { id: id.clone(), tip: tip.cloned(), has_code, needs_person });
    let task = d.task(id)?;
    let branch = task.work.place.as_ref().map_or_else(String::new, |place| place.branch.clone());
    let said = d.world.run_of(id).and_then(|run| run.claimed.as_ref()?.summary.clone());
    let content = if has_code { format!("branch {branch}") } else { "no change was needed".to_owned() };
    let content = said.map_or(content.clone(), |said| format!("{content}\n\n{said}"));
    let answer = |text: &str| Some(text.to_owned());
    let payload = Payload {
        deliverable: Some(task::Deliverable {
            content,
            artifacts: tip.map(|tip| tip.to_string().into()).into_iter().collect(),
        }),
        review_checklist: Some(task::Checklist {
            task_type: task.machine.task_type,
            items: vec![
                task::ChecklistItem { item: "nothing left uncommitted".to_owned(), answer: answer("yes") },
                task::ChecklistItem {
                    item: "the diff holds a change".to_owned(),
                    answer: answer(if has_code { "yes" } else { "no" }),
                },
                task::ChecklistItem {
                    item: "tests are green".to_owned(),
                    answer: answer(if untested { "not run" } else { "yes" }),
                },
            ],
        }),
        ..Payload::default()
    };
    d.move_task(id, &by, Status::Review, payload)?;
    if let Some((run, _, turns)) = run
        && d.run(&run)?.state() == run::State::Running
    {
        let result =
            needs_person.map_or_else(|| "done".to_owned(), |reason| format!("done, but {}", reason.text()));
        d.step_run(&run, run::Event::Complete { result, diff: None, turn_count: turns.max(1) })?;
    }
    match worker {
        Some(worker) => drop(d.move_worker(worker, worker::Event::HandedOver)?),
        None => end_lease(d, id),
    }
    reviewed_by_policy(d, id)
}

pub(super) fn gate_red(
    d: &mut Draft,
    id: &TaskId,
    worker: Option<&WorkerName>,
    output: &str,
    by: RedBy,
    cause: GateCause,
) -> Ruled {
    d.rule(Rule::GateRed);
    d.emit(SentBackTo { id: id.clone(), what: SentBack::Gate(output.to_owned()), by, cause });
    let Some(worker) = worker else { return Ok(()) };
    match d.move_worker(worker, worker::Event::GateFailed)? {
        worker::State::Stuck => {
            let error = match by {
                RedBy::Tests | RedBy::InDoubt | RedBy::Environment => {
                    format!("no fix round is left; tests failed: {}", why::last_line(output))
                }
                RedBy::ConflictMarkers | RedBy::Conflict | RedBy::Branch | RedBy::NoChange => {
                    format!("no fix round is left: {}", why::last_line(output))
                }
            };
            stuck(d, worker, id, &error)
        }
        _ => Ok(()),
    }
}

/// A tip that does not merge with main.
pub(super) struct Conflict<'a> {
    pub tip: &'a SmolStr,
    pub files: &'a [String],
    pub main: &'a SmolStr,
}

impl Conflict<'_> {
    fn happened(&self, id: &TaskId) -> LandingFailedOn {
        LandingFailedOn {
            id: id.clone(),
            tip: self.tip.clone(),
            main: self.main.clone(),
            conflict: true,
            files: self.files.to_vec(),
        }
    }

    /// What the agent is told. `main` is the name of the branch.
    fn feedback(&self, main: &str) -> String {
        if self.files.is_empty() {
            return format!(
                "The branch has no commit in common with {main}, so nothing can be merged. Begin again on {main}."
            );
        }
        format!("The merge with {main} conflicts in: {}", self.files.join(", "))
    }
}

/// The agent was sent back because of a conflict and has not solved it: no test and no review would bring it further.
fn gate_conflict(
    d: &mut Draft,
    id: &TaskId,
    worker: Option<&WorkerName>,
    conflict: &Conflict,
    cause: GateCause,
) -> Ruled {
    d.rule(Rule::GateConflict);
    d.emit(conflict.happened(id));
    let feedback = conflict.feedback(&d.world.config.main);
    let payload = Payload { feedback: Some(feedback.clone()), ..Payload::default() };
    let (by, payload) = (Actor::System.sender(), Box::new(payload));
    d.drive_task(id, task::Event::LandingFailed { by, payload, solved: false }, &Actor::System)?;
    let what = SentBack::Landing(feedback.clone());
    d.emit(SentBackTo { id: id.clone(), what, by: RedBy::Conflict, cause });
    if d.task(id)?.status() == Status::Blocked {
        if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
            pause_run(d, &run, run::PauseReason::UserInput)?;
        }
        return release(d, id, ReleaseReason::Blocked);
    }
    let Some(worker) = worker else { return Ok(()) };
    match d.move_worker(worker, worker::Event::GateFailed)? {
        worker::State::Stuck => stuck(d, worker, id, &format!("no fix round is left: {feedback}")),
        _ => Ok(()),
    }
}

/// The merge conflicts: its agent is told the files.
pub(super) fn landing_conflicts(
    d: &mut Draft,
    id: &TaskId,
    conflict: &Conflict,
    dropped: &[String],
    solved: bool,
) -> Ruled {
    let main = &d.world.config.main;
    let mut feedback = conflict.feedback(main);
    // Whoever reads which files conflict reads why: nobody sees it in main as it is now.
    if !dropped.is_empty() {
        feedback.push_str(&format!(
            ". {main} no longer has {}, on which the branch was made: take out of your files what came with it",
            dropped.join(", ")
        ));
    }
    d.emit(conflict.happened(id));
    landing_failed(d, id, feedback, RedBy::Conflict, solved)
}

/// The policy may have become another: what waits in REVIEW is asked of it again.
pub(crate) fn reconsider(d: &mut Draft) -> Ruled {
    let waits = |task: &&std::sync::Arc<crate::world::Task>| {
        task.status() == Status::Review && task.review.approved.is_none()
    };
    let waiting: Vec<TaskId> = d.world.tasks.values().filter(waits).map(|task| task.id.clone()).collect();
    waiting.iter().try_for_each(|id| reviewed_by_policy(d, id))
}

pub(super) fn reviewed_by_policy(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let auto = d.world.config.fleet.review == Review::Auto;
    if task.status() == Status::Review
        && auto
        && task.gate.needs_person.is_none()
        && task.conflict().is_none()
    {
        let tip = task.work.place.as_ref().and_then(|place| place.tip.clone());
        d.rule(Rule::ReviewedByPolicy);
        return approve(d, id, tip, SmolStr::new_static("policy:auto"), "the gate is green".to_owned());
    }
    super::architect::review_asked(d, id)
}

/// The tip of a task's branch, which must be the one that somebody has looked at.
pub(crate) fn is_at_tip(d: &Draft, id: &TaskId, seen: Option<&SmolStr>) -> Result<Option<SmolStr>, Refusal> {
    let current = d.task(id)?.work.place.as_ref().and_then(|place| place.tip.clone());
    if seen.is_none_or(|seen| current.as_ref() == Some(seen)) {
        return Ok(current);
    }
    let current = current.unwrap_or_default();
    let message = format!("the tip of `{id}` is {current}, not the one that was looked at");
    let refused = Refusal::new(409, "OTHER_TIP", message).hint("look at it again");
    Err(refused.next([Choice::ShowDiff { task: id.clone() }]))
}

pub(crate) fn approve_by_person(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>, note: &str) -> Ruled {
    let task = d.task(id)?;
    let actor = d.command.actor.clone();
    let judged = d.world.judged(task, &actor.sender());
    if !judged.may_approve(&actor.sender()) {
        let lacks = match &actor {
            Actor::Agent { name, .. } => crate::why::approver_lacks(&d.world, task, name),
            _ => None,
        };
        let usual = "an agent approves nothing of its own, and only a lead what others did";
        return Err(forbidden("approve this task").hint(lacks.unwrap_or_else(|| usual.to_owned())));
    }
    if task.status() != Status::Review {
        let status = task.status();
        return Err(Refusal::new(409, "NOT_IN_REVIEW", format!("task `{id}` is {status}, not REVIEW"))
            .next([Choice::ExplainTask { task: id.clone() }]));
    }
    if task.review.approved.is_some() {
        return Err(Refusal::new(409, "APPROVED", format!("task `{id}` is approved already"))
            .next([Choice::ShowQueue]));
    }
    check_text(&d.world, "note", Some(note))?;
    let current = is_at_tip(d, id, tip)?;
    if let Some(refused) = still_conflicts(d, id)? {
        return Err(refused);
    }
    approve(d, id, current, SmolStr::new(actor.to_string()), note.trim().to_owned())
}

/// The refusal of an approval where the same tip was merged with the same main before, and conflicts.
fn still_conflicts(d: &Draft, id: &TaskId) -> Result<Option<Refusal>, Refusal> {
    let task = d.task(id)?;
    let Some(conflict) = task.conflict() else { return Ok(None) };
    let moved = d.world.main.verdict.as_ref().is_some_and(|verdict| verdict.main != conflict.main);
    if moved {
        return Ok(None);
    }
    let main = &d.world.config.main;
    let message = format!("task `{id}` {} and cannot land as it is", conflict.words(main));
    let hint = format!("have its agent solve the conflict, or merge {main} into its branch yourself");
    let next = [
        Choice::RequestChanges { task: id.clone() },
        Choice::OpenTree { task: id.clone() },
        Choice::RestartTask { task: id.clone() },
    ];
    Ok(Some(Refusal::new(409, "CONFLICT", message).hint(hint).next(next)))
}

pub(super) fn approve(d: &mut Draft, id: &TaskId, tip: Option<SmolStr>, by: SmolStr, note: String) -> Ruled {
    d.rule(Rule::Approved);
    let told = match note.is_empty() {
        true => format!("was approved by {by}"),
        false => format!("was approved by {by}: {note}"),
    };
    d.emit(TaskApproved { id: id.clone(), tip, by, at: d.at(), note });
    super::rooms::task_decided(d, id, &told)?;
    super::architect::withdraw_reviews(d, id, "it was approved")?;
    if d.task(id)?.has_code() {
        d.emit(Queued { id: id.clone() });
        Ok(())
    } else {
        finish(d, id)
    }
}

/// The task leaves the queue, and what was approved of it is void.
pub(super) fn unqueue(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let (queued, approved, held_up) =
        (task.landing.queued.is_some(), task.review.approved.is_some(), task.landing.held_up.is_some());
    if queued {
        d.emit(Dequeued { id: id.clone() });
    }
    if held_up {
        d.clear_timer(&Timer::Checkout { task: id.clone() });
        d.emit(LandingHeldUp { id: id.clone(), why: None, at: None });
    }
    if let Some(landing) =
        d.world.landing.clone().filter(|landing| landing.task == *id && landing.written.is_none())
    {
        d.end(&landing.effect, EffectEnd::Superseded);
        d.emit(LandingEnded { id: id.clone(), why: LandingEnd::NotApproved });
        sessions::end_step(d, StepEnd::Task { task: id.clone(), run: None }, landing.effect.clone());
    }
    if approved {
        d.emit(ApprovalVoided { id: id.clone() });
    }
    Ok(())
}

pub(super) fn start_landing(d: &mut Draft) -> Ruled {
    let of_main = d.world.main.under_way.is_some() || d.world.main.again || !d.world.main_is_green();
    if d.world.landing.is_some() || !d.world.fleet_running || of_main {
        return Ok(());
    }
    let Some(id) = d.world.queue.values().next().cloned() else { return Ok(()) };
    d.rule(Rule::LandingStarted);
    d.emit(Dequeued { id: id.clone() });
    test_merge(d, &id)
}

pub(super) fn test_merge(d: &mut Draft, id: &TaskId) -> Ruled {
    let tip =
        d.task(id)?.review.approved.as_ref().and_then(|approved| approved.tip.clone()).unwrap_or_default();
    let effect = d.ask(Effect::TestMerge { task: id.clone(), tip: tip.clone() });
    d.emit(LandingStarted { id: id.clone(), tip, effect, at: d.at() });
    Ok(())
}

pub(super) fn landing_written(
    d: &mut Draft,
    id: &TaskId,
    tip: &SmolStr,
    merge: &SmolStr,
    old: &SmolStr,
    tickets: &[SmolStr],
) -> Ruled {
    d.rule(Rule::LandingWritten);
    let effect = d.ask(Effect::MoveMain {
        task: id.clone(),
        tip: tip.clone(),
        merge: merge.clone(),
        old: old.clone(),
    });
    let landed = Landed { tip: tip.clone(), merge: merge.clone(), old_main: old.clone() };
    let tickets = tickets.to_vec();
    d.emit(LandingWritten { id: id.clone(), landed, effect, at: d.at(), tickets });
    Ok(())
}

/// `solved`: the branch has solved what the landing before failed of.
pub(super) fn landing_failed(d: &mut Draft, id: &TaskId, output: String, by: RedBy, solved: bool) -> Ruled {
    d.rule(Rule::LandingFailed);
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::Failed });
    d.emit(ApprovalVoided { id: id.clone() });
    let feedback =
        if output.trim().is_empty() { "The tests of the merge failed.".to_owned() } else { output };
    let payload = Payload { feedback: Some(feedback.clone()), ..Payload::default() };
    let event = task::Event::LandingFailed { by: Actor::System.sender(), payload: Box::new(payload), solved };
    d.drive_task(id, event, &Actor::System)?;
    let cause = GateCause::Landing;
    d.emit(SentBackTo { id: id.clone(), what: SentBack::Landing(feedback), by, cause });
    if d.task(id)?.landing.doubted {
        d.emit(LandingDoubted { id: id.clone(), doubted: false });
    }
    Ok(())
}

/// A merge whose tests failed, or were not run.
pub(super) struct RedMerge<'a> {
    pub tip: &'a SmolStr,
    pub main: &'a SmolStr,
    pub output: &'a str,
    pub by: RedBy,
    pub solved: bool,
}

/// The merge is red: its task's own fault, or one that main's tests must tell apart first.
pub(super) fn merge_red(d: &mut Draft, id: &TaskId, red: &RedMerge) -> Ruled {
    let RedMerge { tip, main, output, by, solved } = *red;
    if landing_in_doubt(d, id, by, main)? {
        return Ok(());
    }
    if by != RedBy::Environment {
        let (tip, main) = (tip.clone(), main.clone());
        d.emit(LandingFailedOn { id: id.clone(), tip, main, conflict: false, files: Vec::new() });
        return landing_failed(d, id, output.to_owned(), by, solved);
    }
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::Failed });
    d.emit(ApprovalVoided { id: id.clone() });
    if d.task(id)?.landing.doubted {
        d.emit(LandingDoubted { id: id.clone(), doubted: false });
    }
    not_run(d, id, output)
}

pub(super) fn held_up(d: &mut Draft, id: &TaskId, why: &str, command: &str) -> Ruled {
    d.rule(Rule::LandingHeldUp);
    let why = format!("{why}, run {command}");
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::HeldUp });
    d.emit(LandingHeldUp { id: id.clone(), why: Some(SmolStr::new(why)), at: Some(d.at()) });
    let due = d.at() + seconds(d.world.config.limits.checkout_seconds);
    d.set_timer(Timer::Checkout { task: id.clone() }, due);
    Ok(())
}

/// Main is not ours to move: somebody merges the pull request, and the landing goes on when the remote's main has it.
pub(super) fn offered(d: &mut Draft, id: &TaskId, url: Option<SmolStr>, branch: &SmolStr) -> Ruled {
    d.rule(Rule::PullRequestOpened);
    let known = d.task(id)?.landing.pull_request.clone();
    let url = url.or_else(|| known.as_ref().and_then(|known| known.url.clone()));
    let opened = PullRequest { url, branch: branch.clone() };
    if known.as_ref() != Some(&opened) {
        d.emit(PullRequestOpened { id: id.clone(), pull_request: opened });
    }
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::HeldUp });
    // Since the approval: it is looked at again and again, and offered all the while.
    let since = d.task(id)?.review.approved.as_ref().map_or(d.at(), |approved| approved.at);
    d.emit(LandingWaits { id: id.clone(), what: HeldUp::PullRequest { since }, at: Some(d.at()) });
    // The runner looks at the remote far more often, and rings when its main has moved.
    let due = d.at() + seconds(PULL_REQUEST_SECONDS);
    d.set_timer(Timer::Checkout { task: id.clone() }, due);
    Ok(())
}

pub(super) fn remote_in_the_way(d: &mut Draft, id: &TaskId, why: &str) -> Ruled {
    d.rule(Rule::RemoteInTheWay);
    d.emit(LandingEnded { id: id.clone(), why: LandingEnd::HeldUp });
    d.emit(LandingWaits {
        id: id.clone(),
        what: HeldUp::Remote { why: SmolStr::new(why) },
        at: Some(d.at()),
    });
    let due = d.at() + seconds(d.world.config.limits.checkout_seconds);
    d.set_timer(Timer::Checkout { task: id.clone() }, due);
    Ok(())
}

/// A landing that waits is tried again now.
pub(super) fn land_again(d: &mut Draft, id: &TaskId) {
    d.emit(LandingHeldUp { id: id.clone(), why: None, at: None });
    d.emit(Queued { id: id.clone() });
}

pub(super) fn landed(d: &mut Draft, id: &TaskId, landed: Landed) -> Ruled {
    d.rule(Rule::Landed);
    let merge = landed.merge.clone();
    d.emit(TaskLanded { id: id.clone(), landed });
    if d.world.config.landed_hook {
        d.ask(Effect::RunLandedHook { task: id.clone(), merge });
    }
    finish(d, id)
}

/// What a completion says where whoever approved said nothing.
const NO_NOTE: &str = "no note was given";

/// REVIEW→DONE with the completion record, and what is to be tidied up after it.
pub(super) fn finish(d: &mut Draft, id: &TaskId) -> Ruled {
    let approved = d.task(id)?.review.approved.clone();
    let approval = approved.map(|approved| task::Completion {
        approval_id: None,
        approved_by: approved.by,
        approved_at: approved.at,
        // The record of a completion has a note; nobody's words are made up for it.
        decision_note: if task::is_blank(&approved.note) { NO_NOTE.to_owned() } else { approved.note },
    });
    d.move_task(id, &Actor::System, Status::Done, Payload { approval, ..Payload::default() })?;
    tidy_up(d, id)?;
    super::architect::story_over(d, id, "has landed")?;
    end_other_tries(d, id)
}

/// Whoever asked for several tries wanted the first that gets there.
fn end_other_tries(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let open = |other: &&crate::world::Task| !other.is_final();
    let others: Vec<TaskId> = d.world.other_tries(task).filter(open).map(|other| other.id.clone()).collect();
    for other in others.iter().filter(|other| !landing_is_written(d, other)).cloned().collect::<Vec<_>>() {
        d.rule(Rule::OtherTryDone);
        let why = format!("{id}, another try at the same task, is done");
        d.comment(&other, "system", CommentKind::OtherTry, why.clone());
        let approval = d.task(&other)?.approval.clone();
        let decision = approval.is_some().then_some(why);
        // It is a person's act: the one who asked for more than one try.
        let person = Actor::Human(SmolStr::new_static("tries"));
        d.move_task(&other, &person, Status::Canceled, Payload { decision, ..Payload::default() })?;
        canceled(d, &other)?;
    }
    Ok(())
}

/// After a final status: nobody works on it or waits for it, the ticket is closed, the tree removed, the branch
/// deleted. In that order.
pub(super) fn tidy_up(d: &mut Draft, id: &TaskId) -> Ruled {
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        abort_run(d, &run, "the task is closed")?;
    }
    release(d, id, ReleaseReason::Canceled)?;
    unqueue(d, id)?;
    let task = d.task(id)?;
    let status = task.status();
    let (ticket, place) = (task.origin.ticket.clone(), task.work.place.clone());
    if let Some(ticket) = ticket {
        let note = (status == Status::Canceled).then(|| "canceled".to_owned());
        write_ticket(d, id, ticket, status, note);
    }
    if let Some(place) = place {
        d.emit(AfterwardsAdded {
            id: id.clone(),
            what: Effect::RemoveTree { task: id.clone(), start_over: false },
        });
        // A canceled task keeps its branch: nothing else holds its commits.
        if status == Status::Done {
            d.emit(AfterwardsAdded {
                id: id.clone(),
                what: Effect::DeleteBranch { task: id.clone(), branch: place.branch },
            });
        }
        past_ended(d, id)?;
    }
    Ok(())
}
