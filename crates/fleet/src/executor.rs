//! The executor: carries out each effect that the outbox driver gives out, as a separate task.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use imbl::OrdMap;
use kernel::command::Happened;
use kernel::effect::{StepStart, StepTree};
use kernel::rooms::Seat;
use kernel::{Actor, Answer, Ask, Command, Effect, Refusal};
use machines::names::{EffectId, TaskId, WorkerName};
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{
    Shared, after_landing, endings, gate, health, landing, main_tests, pull_request, seats, shell, step,
    step_commands, step_commands::StepCommand, tickets, trees,
};
use base::clock;
use base::crash;
use log::outbox::{Attempt, Clock, Executor, Meaning, Next, OutboxHost};
use log::owner::{Handle, SubmitError};
use log::{Fence, Leased, Millis, Pending};
use project::settings::LandBy;

/// What the fleet carries effects out with: each is a task of its own.
pub(super) struct EffectExecutor<'a> {
    pub shared: &'a Arc<Shared>,
    pub host: &'a Shared,
    pub tasks: &'a mut JoinSet<Fence>,
}

impl<'a> Executor for EffectExecutor<'a> {
    type Host = &'a Shared;

    fn host(&mut self) -> &mut &'a Shared {
        &mut self.host
    }

    fn leaves(&self, effect: &Effect) -> bool {
        self.shared.waits(effect)
    }

    fn begin(&mut self, attempt: Attempt) {
        let shared = self.shared.clone();
        if let Some(whose) = whose(&attempt.effect).filter(|_| shared.once) {
            shared.stepped.lock().unwrap_or_else(PoisonError::into_inner).insert(whose);
        }
        let words = step_commands::register(&shared, &attempt.id, &attempt.effect);
        let is_step = matches!(*attempt.effect, Effect::StartStep { .. });
        let work = async move {
            let (id, fence) = (attempt.id.clone(), attempt.fence());
            // Only an owner that has stopped gets in the way of an outcome; then everything ends.
            if let Err(error) = shared.carry_out(attempt, words).await {
                shared.notice(format!("effect {id}: {error}"));
            }
            shared.steps.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            fence
        };
        match is_step {
            true => self.tasks.spawn_on(work, self.shared.listener.handle()),
            false => self.tasks.spawn(work),
        };
    }

    fn cannot_read(&mut self, effect: &str) {
        self.shared.notice(format!("bug: effect {effect} cannot be read"));
    }
}

/// Asks once, in the system's name.
pub(super) async fn submit(handle: &Handle, ask: Ask, fence: Option<Fence>) -> Result<Answer, SubmitError> {
    let command = Command {
        id: clock::unique(),
        at: clock::now(),
        actor: Actor::System,
        token_for: None,
        key: None,
        ask,
    };
    let (send, receive) = oneshot::channel();
    handle.send(command, fence, move |answered| drop(send.send(answered)))?;
    receive.await.unwrap_or(Err(SubmitError::Stopped))
}

/// Who works or speaks, where each does so once.
pub(super) fn whose(effect: &Effect) -> Option<Who> {
    let Effect::StartStep { of, .. } = effect else { return None };
    Some(match of {
        StepStart::Task { worker, .. } => Who::Worker(worker.clone()),
        StepStart::Seat { seat, .. } => Who::Seat(seat.clone()),
    })
}

/// Who takes a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Worker(WorkerName),
    Seat(Seat),
}

impl Clock for &Shared {
    fn now(&self) -> Millis {
        clock::now()
    }

    fn steady(&self) -> Millis {
        clock::steady()
    }

    fn slept(&self) -> Millis {
        self.sleep.slept()
    }
}

impl OutboxHost for &Shared {
    type Error = SubmitError;

    fn meaning(error: &SubmitError) -> Meaning {
        Meaning::of(error)
    }

    fn effects(&self) -> OrdMap<EffectId, Arc<Effect>> {
        self.world().effects.clone()
    }

    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn has_no_room(&self) -> bool {
        Shared::has_no_room(self)
    }

    async fn rest(&mut self, wait: Duration, error: &SubmitError) {
        if Shared::is_stopping(self) {
            return tokio::time::sleep(wait).await;
        }
        self.notice(format!("{error}; retrying in {} ms", wait.as_millis()));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.stopping() => {}
        }
    }

    async fn submit(&mut self, ask: Ask, fence: Option<Fence>) -> Result<Answer, SubmitError> {
        submit(&self.handle, ask, fence).await
    }

    fn refused(&mut self, fence: &Fence, _: &Happened, refusal: Refusal) -> Result<(), SubmitError> {
        self.notice(format!("bug: an outcome of {} was refused: {refusal}", fence.effect));
        Ok(())
    }

    fn unfit(&mut self, fence: &Fence, effect: &Effect, what: &Happened) -> Result<(), SubmitError> {
        let (id, kind, came) = (&fence.effect, effect.kind(), what.kind().name());
        self.notice(format!("bug: effect {id} ({kind}) cannot come to {came}; it counts as failed"));
        Ok(())
    }

    async fn lease(
        &mut self,
        holder: &'static str,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, SubmitError> {
        let handle = self.handle.clone();
        self.blocking(move || handle.lease(holder, clock::now(), until, limit)).await
    }

    async fn release(&mut self, fence: &Fence) -> Result<(), SubmitError> {
        let (handle, fence) = (self.handle.clone(), fence.clone());
        self.blocking(move || handle.release(&fence)).await.map(drop)
    }

    async fn pending(&mut self) -> Result<Vec<Pending>, SubmitError> {
        let handle = self.handle.clone();
        self.blocking(move || handle.outbox()).await
    }
}

impl Shared {
    /// Carries an effect out, as often as that takes.
    async fn carry_out(
        self: &Arc<Self>,
        mut attempt: Attempt,
        mut words: Option<mpsc::UnboundedReceiver<StepCommand>>,
    ) -> Result<(), SubmitError> {
        if !shell::is_left(self, &attempt.id, &attempt.effect).await {
            return Ok(());
        }
        loop {
            crash::effect(attempt.effect.kind(), "before");
            let Some(what) = self.perform(&attempt, &mut words).await? else { return Ok(()) };
            match attempt.tell(&mut &**self, what).await? {
                Next::Over => return Ok(()),
                Next::Again { wait } => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.stopping() => return Ok(()),
                },
                Next::WhenThereIsRoom { error } => {
                    self.waits_for_room(&error).await;
                    if self.is_stopping() {
                        // It stays in the outbox.
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Does in the world what an effect asks for, and says what came of it. `None`: nothing that the log should hear.
    async fn perform(
        self: &Arc<Self>,
        attempt: &Attempt,
        words: &mut Option<mpsc::UnboundedReceiver<StepCommand>>,
    ) -> Result<Option<Happened>, SubmitError> {
        let id = &attempt.id;
        Ok(match &*attempt.effect {
            Effect::StartStep { .. } => {
                let words = words.take().expect("a step is carried out once");
                return step::carry_out(self, attempt, words).await;
            }
            Effect::EndStep { of, step } => step::end(self, of, step).await,
            Effect::AnswerCall { step, call, allow, note, .. } => {
                step::answer(self, step, call, *allow, note).await
            }
            Effect::TellAgent { of, step } => step::tell(self, of, step).await,
            Effect::PrepareTree { of: StepTree::Task { task, tree, branch, .. } } => {
                trees::prepare(self, id, task, tree, branch).await
            }
            Effect::PrepareTree { of: StepTree::Seat { seat } } => Some(seats::prepare(self, seat).await),
            Effect::SaveWork { task } => trees::save(self, id, task).await,
            Effect::RemoveTree { task, start_over } => trees::remove(self, id, task, *start_over).await,
            Effect::DeleteBranch { task, branch } => trees::delete_branch(self, task, branch).await,
            Effect::RunLandedHook { task, merge } => after_landing::run(self, id, task, merge).await,
            Effect::RunGate { task, worker, .. } => {
                gate::run(self, id, task, worker.as_ref(), words.as_mut()).await
            }
            Effect::TestMerge { task, tip } => test_merge(self, id, task, tip).await,
            Effect::TestMain { again } => main_tests::run(self, id, *again, words.as_mut()).await,
            Effect::MoveMain { task, merge, old, .. } => landing::move_main(self, task, merge, old).await,
            Effect::WriteTicket { task, ticket, status, note } => {
                tickets::write(self, id, task, ticket, *status, note.as_deref()).await
            }
            Effect::CheckHealth { service } => Some(health::ask(self, service).await),
            // A timer is never handed out: it is reported when it is due.
            Effect::Timer { .. } => None,
        })
    }
}

/// Merges main with the approved tip and runs the tests on the result. `None`: it was ended, and is done again.
async fn test_merge(shared: &Arc<Shared>, id: &EffectId, task: &TaskId, tip: &SmolStr) -> Option<Happened> {
    let landed = match shared.in_force().settings.landing.by {
        LandBy::Merge => landing::tested(shared, id, task, tip).await,
        LandBy::PullRequest => pull_request::land(shared, id, task, tip).await,
    };
    match landed {
        Ok(what) => what,
        Err(error) => Some(endings::failed(format_args!("the merge could not be tested: {error}"))),
    }
}
