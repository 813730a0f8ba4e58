//! Sends each command to the rule that decides it, once the caller is known to be allowed to ask.

use crate::authority;
use crate::checks::check_plan;
use crate::command::*;
use crate::draft::Draft;
use crate::event::*;
use crate::rules::{self, task_reply, worker_reply};
use crate::world::AskedCall;
use machines::task::{self, Status};
use machines::wire::Wire;
use machines::worker;
use smol_str::SmolStr;

/// Takes a command apart. What moves one machine is done here; the rest is a rule.
pub(crate) fn dispatch(d: &mut Draft, ask: &Ask) -> Result<Result<Reply, Refusal>, Refusal> {
    let actor = d.command.actor.clone();
    authority::check(&d.world, d.command, ask)?;
    let reply = match ask {
        Ask::AddTask(new) => rules::add_task(d, new)?,
        Ask::EditTask { id, .. } => {
            rules::edit_task(d, ask)?;
            task_reply(d, id)?
        }
        Ask::MoveTask { id, to, payload } => {
            rules::person_moves(d, id, &actor, *to, payload)?;
            task_reply(d, id)?
        }
        Ask::RequestChanges { id, tip, feedback } => {
            rules::is_at_tip(d, id, tip.as_ref())?;
            let payload = task::Payload { feedback: Some(feedback.clone()), ..task::Payload::default() };
            rules::person_moves(d, id, &actor, Status::InProgress, &payload)?;
            task_reply(d, id)?
        }
        Ask::AcceptTask { id } => {
            rules::accept_proposal(d, id)?;
            task_reply(d, id)?
        }
        Ask::Comment { id, text } => {
            rules::comment(d, id, text)?;
            task_reply(d, id)?
        }
        Ask::KeepDraft { id, draft, comment } => {
            let draft = rules::keep_draft(d, id, draft.as_ref(), comment)?;
            Reply { id: Some(draft), ..Reply::default() }
        }
        Ask::DropDraft { id, draft } => {
            rules::drop_draft(d, id, draft)?;
            Reply::default()
        }
        Ask::SendRound { id, tip, note } => {
            rules::send_round(d, id, tip.as_ref(), note)?;
            task_reply(d, id)?
        }
        Ask::AddDependency { id, on } => {
            rules::add_dependency(d, id, on)?;
            task_reply(d, id)?
        }
        Ask::RemoveDependency { id, on } => {
            rules::remove_dependency(d, id, on)?;
            task_reply(d, id)?
        }
        Ask::Approve { id, tip, note } => {
            rules::approve_by_person(d, id, tip.as_ref(), note)?;
            task_reply(d, id)?
        }
        Ask::Decide { id, decision } => {
            rules::decide(d, id, decision)?;
            Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() }
        }
        Ask::SeeTicket(ticket) => {
            rules::ticket_seen(d, ticket)?;
            Reply::default()
        }
        Ask::MissTicket { id } => {
            rules::ticket_missed(d, id)?;
            Reply::default()
        }

        Ask::StartFleet { workers } => {
            rules::start_fleet(d, *workers)?;
            Reply::default()
        }
        Ask::StopFleet => {
            if d.world.fleet_running {
                d.emit(FleetSwitched { running: false, workers: None });
            }
            Reply::default()
        }
        Ask::Spawn { name, agent } => {
            let name = &name.clone().unwrap_or_else(|| rules::free_name(&d.world));
            let agent = agent.clone().unwrap_or_else(|| d.world.config.fleet.agent.clone());
            rules::spawn(d, name, &agent, true, d.caller(false))?;
            worker_reply(d, name)?
        }
        Ask::Assign { worker, task, clarification } => {
            rules::assign_by_person(d, worker, task, clarification.as_deref())?;
            worker_reply(d, worker)?
        }
        Ask::Kill { worker } => {
            rules::ended_by_person(d, worker, worker::Event::Kill)?;
            worker_reply(d, worker)?
        }
        Ask::Retry { worker } => {
            rules::retry(d, worker)?;
            worker_reply(d, worker)?
        }
        Ask::RetryTask { id } => {
            rules::retry_task(d, id)?;
            task_reply(d, id)?
        }
        Ask::RestartTask { id, note } => {
            rules::restart(d, id, note.as_deref())?;
            task_reply(d, id)?
        }
        Ask::UndoTask { id, by, tip } => {
            rules::undo(d, id, by, tip)?;
            task_reply(d, by)?
        }
        Ask::Cleanup { worker, force } => {
            let live_process = rules::has_live_process(d, worker);
            rules::ended_by_person(d, worker, worker::Event::Cleanup { live_process, force: *force })?;
            worker_reply(d, worker)?
        }
        Ask::Clean { worker } => {
            rules::ended_by_person(d, worker, worker::Event::Clean)?;
            Reply { id: Some(SmolStr::new(worker.as_str())), ..Reply::default() }
        }
        Ask::Recover { worker, tree, step_under_way, said_done, resumable } => {
            let event = worker::Event::Recover {
                tree: *tree,
                step_under_way: *step_under_way,
                said_done: *said_done,
                resumable: *resumable,
            };
            rules::recover(d, worker, event)?;
            worker_reply(d, worker)?
        }

        Ask::OpenRun { task, prompt, options } => rules::open_outside_run(d, task, prompt, options.as_ref())?,
        Ask::StartRun { agent, task } => rules::start_by_person(d, agent, task)?,
        Ask::RunEvent { run, event } => return rules::run_event(d, run, event),

        Ask::SwitchAgent { agent, enabled, reason } => {
            rules::switch_agent(d, agent, *enabled, reason.as_deref())?
        }
        Ask::Presence { agent, what } => rules::presence(d, agent, *what)?,
        Ask::SubmitPlan { run, plan } => {
            check_plan(Some(plan))?;
            rules::submit_plan(d, run, plan)?
        }
        Ask::ClaimDone { run, summary } => rules::claim_done(d, run, summary.as_deref())?,
        Ask::AskApproval { run, tool, argument, input } => {
            let (tool, argument, input) = (tool.clone(), argument.clone(), input.clone());
            rules::ask_approval(d, run, AskedCall { tool, argument, input })?
        }
        Ask::MakeRequest { kind, task, run, text } => {
            rules::make_request(d, *kind, task.as_ref(), run.as_ref(), text)?
        }
        Ask::AnswerRequest { id, text } => rules::answer_request(d, id, text)?,
        Ask::ReceiveAnswer { id } => rules::receive_answer(d, id)?,

        Ask::Configure { config } => {
            rules::configure(d, config)?;
            Reply::default()
        }

        Ask::SeeDisk { full } => {
            if d.world.disk_full != *full {
                d.emit(DiskSeen { full: full.clone(), at: Some(d.at()) });
            }
            Reply::default()
        }

        Ask::TestMain => {
            rules::test_main_for_person(d)?;
            Reply::default()
        }
        Ask::SeeMain { tip } => {
            rules::main_seen(d, tip);
            Reply::default()
        }

        Ask::MakeChannel { name, config, about } => rules::make_channel(d, name, config, about)?,
        Ask::AbandonRequest { id, reason } => rules::abandon_request(d, id, reason)?,
        Ask::SubmitSpec(new) => rules::submit_spec(d, new)?,
        Ask::ArchitectAnswers { reply, answer } => rules::architect_answers(d, reply, answer)?,
        Ask::RecoverArchitect => rules::recover_architect(d)?,
        Ask::CloseChannel { name } => rules::close_channel(d, name)?,
        Ask::AddMember { channel, agent, times } => rules::add_member(d, channel, agent, *times)?,
        Ask::RemoveMember { channel, agent } => rules::remove_member(d, channel, agent)?,
        Ask::Post { channel, text } => rules::post(d, channel, text)?,
        Ask::Hear { channel, agent } => rules::hear(d, channel, agent)?,
        Ask::TakeTurn { channel, agent, word } => rules::take_turn(d, channel, agent, word)?,
        Ask::DecideInRoom { channel, approve, note } => rules::decide_in_room(d, channel, *approve, note)?,
        Ask::WasAway { since, hosted } => {
            rules::was_away(d, *since, *hosted);
            Reply::default()
        }
        Ask::TurnEvent { channel, agent, event } => {
            let own = actor.is_agent(agent);
            let state = d.move_turn(channel, agent, event, d.caller(own))?;
            let state = Some(SmolStr::new(format!("turn.{}", state.name())));
            Reply { id: Some(SmolStr::new(agent.as_str())), state, ..Reply::default() }
        }
        Ask::ArchitectEvent { event } => {
            let state = d.move_architect(event, d.caller(false))?;
            Reply { state: Some(SmolStr::new(format!("architect.{state}"))), ..Reply::default() }
        }

        Ask::Outcome(outcome) => rules::outcome(d, outcome)?,
    };
    Ok(Ok(reply))
}
