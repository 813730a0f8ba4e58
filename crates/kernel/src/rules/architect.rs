//! The architect: an agent that splits specs, answers questions and reviews work; everything else about it is rules.
//!
//! Requests are served one at a time, in the order in which they came. One leaves the queue when it is answered, withdrawn,
//! or left to a person; nothing else removes it.

use machines::machine::{Caller, Role};
use machines::names::{AgentName, EffectId, RequestId, ServiceName, SpecId, TaskId};
use machines::suspended::Wrapped;
use machines::task::{self, Status};
use machines::{architect, task::TaskType};
use smol_str::{SmolStr, format_smolstr};

use super::Rule;
use super::approval::decide;
use super::landing::{approve, is_at_tip};
use super::people::person_moves;
use super::seats::{self, Said, Spoken};
use super::sessions;
use crate::budget;
use crate::checks::check_text;
use crate::choice::Choice;
use crate::command::{Actor, ArchitectAnswer, Decision, NewSpec, Refusal, Reply};
use crate::config::Review;
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, Say, StepTree, Timer};
use crate::event::{
    AnswerTold, ReplyDecided, RequestAnswered, RequestForPerson, RequestLeft, RequestNoted, RequestQueued,
    RequestTried, Requested, SpecReviewed, SpecSubmitted, StoryLoaded, TaskAdded, TaskEdited,
};
use crate::probe::Probe;
use crate::rooms::Seat;
use crate::session::Session;
use crate::specs::{self, SPEC_BYTES_MAX, SpecState, Story, TRIES_MAX};
use crate::words::{NoteKind, RequestKind};
use crate::world::Request;

/// The architect's own agent, by a rule that speaks for it.
const ARCHITECT: Caller = Caller { role: Role::System, own: true };

fn agent(d: &Draft) -> Option<AgentName> {
    d.world.config.architect.as_ref().map(|architect| architect.agent.clone())
}

/// The architect's agent, as whoever reviews.
fn speaker(d: &Draft) -> Actor {
    match agent(d) {
        Some(name) => Actor::Agent { role: d.world.config.agent(&name).role, name },
        None => Actor::System,
    }
}

fn state(d: &Draft) -> Option<architect::State> {
    let architect = d.world.architect.as_ref().filter(|architect| architect.suspension().is_none())?;
    Some(architect.inner().state)
}

fn tell(d: &mut Draft, event: architect::Event) -> Ruled {
    d.move_architect(&Wrapped::Inner(event), ARCHITECT).map(drop)
}

/// What the architect is asked: written down, and put into its queue.
fn ask(
    d: &mut Draft,
    kind: RequestKind,
    task: Option<&TaskId>,
    spec: Option<&SpecId>,
    text: String,
) -> Result<RequestId, Refusal> {
    let id = RequestId::new(format!("r{}", d.world.next + 1)).expect("a counted id is a name");
    let by = SmolStr::new(d.command.actor.to_string());
    let tip = task.and_then(|task| d.world.task(task)).and_then(|task| task.work.place.as_ref()?.tip.clone());
    let tip = tip.filter(|_| matches!(kind, RequestKind::Code | RequestKind::Completion));
    d.emit(Requested {
        id: id.clone(),
        kind,
        task: task.cloned(),
        run: None,
        by,
        at: d.at(),
        text,
        spec: spec.cloned(),
        tip,
    });
    enqueue(d, &id)?;
    Ok(id)
}

/// A request joins the queue; an architect that has nothing in hand takes it up.
pub(super) fn enqueue(d: &mut Draft, id: &RequestId) -> Ruled {
    d.rule(Rule::ArchitectAsked);
    d.emit(RequestQueued { id: id.clone() });
    wake(d)
}

/// A question of an agent goes to the architect, where there is one.
pub(super) fn takes_questions(d: &Draft) -> bool {
    d.world.config.architect.is_some()
}

// What it is asked about.

pub(crate) fn submit_spec(d: &mut Draft, new: &NewSpec) -> Result<Reply, Refusal> {
    if new.title.trim().is_empty() {
        return Err(Refusal::field("title", "a spec needs a title"));
    }
    check_text(&d.world, "title", Some(&new.title))?;
    if new.text.len() > SPEC_BYTES_MAX {
        return Err(Refusal::field("text", format!("a spec has at most {SPEC_BYTES_MAX} bytes")));
    }
    if new.text.trim().is_empty() {
        return Err(Refusal::field("text", "a spec must not be empty"));
    }
    let known = d.world.specs.get(&new.id).cloned();
    if let Some(known) = known.as_ref().filter(|known| known.state != SpecState::NeedsChanges) {
        let message = format!("spec `{}` is {} already", new.id, known.state);
        return Err(Refusal::new(409, "EXISTS", message).hint(match known.state {
            SpecState::Submitted => "wait for what the architect says of it",
            _ => "submit what is new under another name",
        }));
    }
    if let Some(stories) = &new.stories {
        let problem = specs::problem(stories, d.world.config.limits.text_bytes);
        if let Some(problem) = problem {
            return Err(Refusal::field("stories", problem));
        }
    } else if d.world.config.architect.is_none() {
        let message = "there is no architect to split a spec that is not a list of tasks";
        return Err(Refusal::new(409, "NO_ARCHITECT", message)
            .hint("name one of the agents: `agent = \"…\"` in [architect] of adjutant.toml"));
    }
    let by = SmolStr::new(d.command.actor.to_string());
    d.emit(SpecSubmitted {
        id: new.id.clone(),
        version: known.map_or(1, |known| known.version + 1),
        title: new.title.trim().to_owned(),
        path: new.path.clone(),
        format: new.format.clone(),
        text: new.text.clone(),
        by,
        at: d.at(),
    });
    match &new.stories {
        Some(stories) => {
            d.rule(Rule::SpecRead);
            load_stories(d, &new.id, stories)?;
        }
        None => {
            ask(d, RequestKind::Spec, None, Some(&new.id), new.title.trim().to_owned())?;
        }
    }
    Ok(Reply { id: Some(SmolStr::new(new.id.as_str())), ..Reply::default() })
}

/// Stories become tasks. What they are named is the spec's name and their place in it.
fn load_stories(d: &mut Draft, id: &SpecId, stories: &[Story]) -> Ruled {
    let taken = |d: &Draft, task: &TaskId| {
        d.world.task(task).is_some() || d.world.tickets.contains_key(task.as_str())
    };
    let mut ids: Vec<TaskId> = Vec::new();
    let mut number = 0;
    for _ in stories {
        loop {
            number += 1;
            let named = TaskId::new(format!("{id}-{number}"));
            let named = named.map_err(|_| Refusal::field("id", "the name of the spec is too long"))?;
            if !taken(d, &named) {
                ids.push(named);
                break;
            }
        }
    }
    let of = |key: &SmolStr| stories.iter().position(|story| story.key == *key).map(|at| ids[at].clone());
    for (story, task) in stories.iter().zip(&ids) {
        let usual = if story.infrastructure { 0 } else { 2 };
        d.emit(TaskAdded {
            id: task.clone(),
            title: story.title.trim().to_owned(),
            body: story.text(),
            task_type: TaskType::Task,
            priority: story.priority.unwrap_or(usual),
            at: d.at(),
            ticket: None,
            reopens: None,
            plan: story.plan.clone(),
            reviewer: None,
            depends_on: story.depends_on.iter().filter_map(of).collect(),
            created: None,
            plan_source: story.plan.as_ref().map(|_| task::PlanSource::Ticket),
            proposed: None,
        });
        d.emit(StoryLoaded {
            spec: id.clone(),
            task: task.clone(),
            key: story.key.clone(),
            mark: story.mark.clone(),
        });
    }
    let by = SmolStr::new(d.command.actor.to_string());
    d.emit(SpecReviewed { id: id.clone(), state: SpecState::Approved, feedback: None, by, at: d.at() });
    Ok(())
}

/// A plan is approved at once, and stored: nobody is asked.
pub(super) fn plan_submitted(d: &mut Draft, task: &TaskId, text: &str) -> Ruled {
    match takes_questions(d) {
        true => ask(d, RequestKind::Plan, Some(task), None, text.to_owned()).map(drop),
        false => Ok(()),
    }
}

/// Work that came to REVIEW is looked at by the architect, where the policy says so and nothing needs a person.
pub(super) fn review_asked(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let by_architect = d.world.config.fleet.review == Review::Architect && takes_questions(d);
    let waits =
        task.status() == Status::Review && task.review.approved.is_none() && task.gate.needs_person.is_none();
    let tip = task.work.place.as_ref().and_then(|place| place.tip.clone());
    let asked = d.world.requests.values().any(|request| {
        request.task.as_ref() == Some(id)
            && request.kind.is_review()
            && request.answer.is_none()
            && request.tip == tip
    });
    if !by_architect || !waits || asked {
        return Ok(());
    }
    let kind = if task.has_code() { RequestKind::Code } else { RequestKind::Completion };
    let (text, reviewer) = (task.title.clone(), task.machine.reviewer_id.clone());
    let architect = agent(d).map(|agent| SmolStr::new(agent.as_str()));
    if reviewer != architect {
        // By the policy it is the one who reviews.
        d.emit(TaskEdited {
            id: id.clone(),
            title: None,
            body: None,
            priority: None,
            plan: None,
            reviewer: architect,
            plan_source: None,
        });
    }
    ask(d, kind, Some(id), None, text).map(drop)
}

/// A budget of a task or its run is used up: the architect may raise it once, where the settings let it.
pub(super) fn budget_asked(d: &mut Draft, id: &TaskId, question: &str) -> Ruled {
    let may = d.world.config.architect.as_ref().is_some_and(|architect| architect.raises_budgets);
    let before = |request: &&std::sync::Arc<Request>| {
        request.kind == RequestKind::Budget && request.task.as_ref() == Some(id)
    };
    if may && d.world.requests.values().find(before).is_none() {
        ask(d, RequestKind::Budget, Some(id), None, question.to_owned())?;
    }
    Ok(())
}

/// A story is over, by its landing or by a person: whoever waits for it may begin, and the spec may be done.
pub(super) fn story_over(d: &mut Draft, id: &TaskId, how: &str) -> Ruled {
    let Some(spec) = d.world.task(id).and_then(|task| d.world.spec_of(task)).cloned() else { return Ok(()) };
    let in_work = d.world.architect.as_ref().is_some_and(|architect| architect.inner().spec_in_work);
    if in_work {
        ask(d, RequestKind::Merge, Some(id), Some(&spec.id), format!("{id} {how}"))?;
    }
    if spec.state == SpecState::Approved && !spec.has_open_stories(&d.world) {
        d.rule(Rule::SpecDone);
        let by = SmolStr::new_static("system");
        d.emit(SpecReviewed { id: spec.id, state: SpecState::Done, feedback: None, by, at: d.at() });
    }
    Ok(())
}

/// What was asked about a task is of no use any more.
pub(crate) fn withdraw_reviews(d: &mut Draft, id: &TaskId, why: &str) -> Ruled {
    let open = |request: &&std::sync::Arc<Request>| {
        request.task.as_ref() == Some(id) && request.kind.is_review() && request.answer.is_none()
    };
    let ids: Vec<RequestId> =
        d.world.requests.values().filter(open).map(|request| request.id.clone()).collect();
    for request in ids {
        withdraw(d, &request, why)?;
    }
    Ok(())
}

fn withdraw(d: &mut Draft, id: &RequestId, why: &str) -> Ruled {
    d.rule(Rule::RequestWithdrawn);
    let in_hand = d.world.in_hand().is_some_and(|request| request.id == *id);
    settled(d, id, "system", why, false, None);
    if in_hand {
        quit(d, id);
        put_down(d)?;
    }
    Ok(())
}

/// What its agent is saying of this request is ended. The last words about another are let be.
fn quit(d: &mut Draft, id: &RequestId) {
    let reply = d.world.seated(&Seat::Architect).and_then(|seated| seated.reply.clone());
    let shown = reply.and_then(|reply| d.world.shown_in(&reply).map(|(request, _)| request.clone()));
    if shown.as_ref() == Some(id) {
        sessions::quit(d, &Session::Seat(Seat::Architect), false);
    }
}

/// The request in hand is settled by somebody else: the architect goes on from wherever it stands.
fn put_down(d: &mut Draft) -> Ruled {
    match state(d) {
        Some(architect::State::Request) => handle(d),
        Some(architect::State::Escalated) => {
            let person = Caller { role: Role::Human, own: false };
            // It comes to REQUEST, and finds that it was answered.
            d.move_architect(&Wrapped::Inner(architect::Event::HumanAnswer), person).map(drop)
        }
        // From SETUP it does the same.
        _ => Ok(()),
    }
}

/// A request is settled, and nobody waits to be told so. `reply`: the one that answers it, where the architect does.
fn settled(d: &mut Draft, id: &RequestId, by: &str, text: &str, abandoned: bool, reply: Option<&EffectId>) {
    let asked = d.world.requests.get(id);
    let task = asked.and_then(|request| request.task.clone());
    // An agent that asked hears of it with its next step.
    let told = asked.is_some_and(|request| request.run.is_none());
    let (by, at, text, reply) = (SmolStr::new(by), d.at(), text.to_owned(), reply.cloned());
    d.emit(RequestAnswered { id: id.clone(), task: task.clone(), by, at, text, abandoned, reply });
    if told {
        d.emit(AnswerTold { id: id.clone(), task });
    }
    leave_queue(d, id);
}

fn leave_queue(d: &mut Draft, id: &RequestId) {
    if d.world.is_queued(id) {
        d.emit(RequestLeft { id: id.clone() });
    }
}

// The loop.

/// Takes up what waits, as far as the architect's table lets it.
pub(super) fn settle_architect(d: &mut Draft) -> Ruled {
    if d.world.config.architect.is_none() {
        return Ok(());
    }
    // Each round moves the machine on; where nothing moves, it is done.
    for _ in 0..ROUNDS_MAX {
        let front = d.world.architect_queue.front().cloned();
        match (state(d), front) {
            (Some(architect::State::New), Some(_)) => tell(d, architect::Event::Start)?,
            (None, Some(_)) if d.world.architect.is_none() => tell(d, architect::Event::Start)?,
            (
                Some(architect::State::Waiting | architect::State::Monitoring | architect::State::Done),
                Some(id),
            ) => {
                take_up(d, &id)?;
            }
            (Some(architect::State::Dispatching), _) => dispatch(d)?,
            (Some(architect::State::Request), _) => {
                handle(d)?;
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// More than any cascade of rules has: requests that need no model are answered in one go.
const ROUNDS_MAX: usize = 1000;

fn take_up(d: &mut Draft, id: &RequestId) -> Ruled {
    let Some(request) = d.world.requests.get(id).cloned() else {
        leave_queue(d, id);
        return Ok(());
    };
    let kind = request.kind.as_architect();
    d.rule(Rule::RequestTaken);
    tell(d, architect::Event::Request { id: SmolStr::new(id.as_str()), request: kind })
}

/// A request that comes while the architect stands in ERROR leads out of it.
pub(super) fn wake(d: &mut Draft) -> Ruled {
    let front = d.world.architect_queue.front().cloned();
    match (state(d), front) {
        (Some(architect::State::InError), Some(id)) => take_up(d, &id),
        _ => Ok(()),
    }
}

/// What the workspace came to.
pub(super) fn workspace(d: &mut Draft, failed: Option<String>) -> Ruled {
    if state(d) != Some(architect::State::Setup) {
        return Ok(());
    }
    match failed {
        None => tell(d, architect::Event::WorkspaceReady),
        Some(reason) => {
            d.rule(Rule::ArchitectFailed);
            tell(d, architect::Event::SetupFailed { reason })
        }
    }
}

/// Serves the request in hand: by a rule where there is one, by the architect's agent where not.
pub(super) fn handle(d: &mut Draft) -> Ruled {
    let Some(request) = d.world.in_hand().cloned() else { return Ok(()) };
    if let Some(answer) = &request.answer {
        return match answer.abandoned && answer.by != "system" {
            true => tell(d, architect::Event::Abandon { reason: answer.text.clone() }),
            false => tell(d, architect::Event::Answered),
        };
    }
    match request.kind {
        RequestKind::Plan => {
            d.rule(Rule::PlanApproved);
            settled(d, &request.id, "system", "approved", false, None);
            tell(d, architect::Event::Answered)
        }
        RequestKind::Merge => {
            d.rule(Rule::MergeServed);
            settled(d, &request.id, "system", "its dependents are released", false, None);
            tell(d, architect::Event::MergeSucceeded)
        }
        RequestKind::Question
        | RequestKind::Code
        | RequestKind::Completion
        | RequestKind::Budget
        | RequestKind::Spec => {
            begin(d, &request);
            Ok(())
        }
    }
}

/// Its agent is asked, as soon as it can be.
fn begin(d: &mut Draft, request: &Request) {
    let Some(agent) = agent(d) else { return };
    let service = d.world.config.service_of(&agent);
    let there = d.world.may_begin(&service, Some(&Seat::Architect));
    let share = budget::share(&d.world, &agent);
    let rooms = budget::shared_rooms(&d.world, &agent, d.day());
    let short = rooms.into_iter().find(|room| !room.has(share));
    if !d.world.fleet_running || !there || d.world.disabled.contains_key(&agent) {
        return;
    }
    if let Some(room) = short {
        if room.is_spent(share) && !super::budgets::was_asked(&d.world, &room, &agent, d.day()) {
            d.rule(Rule::BudgetAsked);
            super::budgets::ask_budget(d, &room, &agent, None);
        }
        return;
    }
    let free = d.world.seated(&Seat::Architect).is_none_or(|seated| seated.is_free());
    if free {
        d.rule(Rule::ArchitectBegun);
        let (request, tip) = (request.id.clone(), request.tip.clone());
        seats::begin(d, &Seat::Architect, &agent, Say::Request { request, tip });
    }
}

/// DISPATCHING: what is ready is on the board already, by its dependencies; what is left is whether anything is.
fn dispatch(d: &mut Draft) -> Ruled {
    let open = |spec: &std::sync::Arc<specs::Spec>| {
        spec.state == SpecState::Approved && spec.has_open_stories(&d.world)
    };
    if d.world.specs.values().any(open) {
        d.rule(Rule::StoriesDispatched);
        return tell(d, architect::Event::StoriesQueued);
    }
    tell(d, architect::Event::NoStoriesLeft)
}

// What it says.

/// By a tool, in the middle of its reply: an answer to the request that the reply was started for, and to no other. What does
/// not fit it is refused, and changes nothing.
pub(crate) fn architect_answers(
    d: &mut Draft,
    reply: &EffectId,
    answer: &ArchitectAnswer,
) -> Result<Reply, Refusal> {
    let request = asked_in(d, reply)?;
    match accept(d, &request, reply, answer)? {
        Accepted::Yes => decided(d, reply, &request.id),
        Accepted::No(why) => {
            let tries = request.tries + 1;
            refused(d, &request.id, &why)?;
            if tries >= TRIES_MAX {
                // It has had its say: what a person adds is shown to the next reply.
                decided(d, reply, &request.id);
            }
            // The refusal is part of the record, so it is an answer that is kept and not an error without a trace.
            let left = TRIES_MAX.saturating_sub(tries);
            let message = match left {
                0 => format!("{why}; a person is asked now"),
                _ => format!("{why}; {left} more tries"),
            };
            return Ok(Reply {
                code: Some(SmolStr::new_static("NOT_ACCEPTED")),
                message: Some(message),
                ..Reply::default()
            });
        }
    }
    Ok(Reply { id: Some(SmolStr::new(request.id.as_str())), ..Reply::default() })
}

/// The request that a reply may decide now, or why it may not.
fn asked_in(d: &Draft, reply: &EffectId) -> Result<Request, Refusal> {
    const OWN_REPLY: &str = "the next request starts a reply of its own";
    let shown = d.world.shown_in(reply).map(|(id, tip)| (id.clone(), tip.cloned()));
    let Some((id, tip)) = shown else {
        let message = format!("the reply that this call belongs to is over; {OWN_REPLY}");
        return Err(
            Refusal::new(409, "REPLY_OVER", message).hint("nothing that it says now decides anything")
        );
    };
    if d.world.seated(&Seat::Architect).is_some_and(|seated| seated.decided.is_some()) {
        let message = format!("this reply has already answered {id}; {OWN_REPLY}");
        return Err(Refusal::new(409, "ALREADY_ANSWERED", message).hint("end your reply now"));
    }
    let in_hand = d.world.in_hand().filter(|request| request.id == id && request.answer.is_none());
    let Some(request) = in_hand.cloned() else {
        let message = format!("{id} is settled without this reply; {OWN_REPLY}");
        return Err(Refusal::new(409, "NOTHING_ASKED", message).hint("end your reply now"));
    };
    if state(d) != Some(architect::State::Request) {
        let message = format!("{id} waits for a person");
        return Err(Refusal::new(409, "WAITS_FOR_PERSON", message).hint("end your reply now"));
    }
    if tip != request.tip {
        let message = format!("this reply was shown another commit than the one that {id} is about");
        return Err(Refusal::new(409, "NOT_SHOWN", message).hint("end your reply now; you are asked again"));
    }
    Ok(request)
}

/// Whatever a reply says after its decision is about nothing that it was asked.
fn decided(d: &mut Draft, reply: &EffectId, request: &RequestId) {
    let seat = Seat::Architect;
    if d.world.seated(&seat).is_some_and(|seated| seated.reply.as_ref() == Some(reply)) {
        d.emit(ReplyDecided { seat, reply: reply.clone(), request: request.clone() });
    }
}

enum Accepted {
    Yes,
    No(String),
}

/// One answer to one request, where it fits, by the reply that was shown it.
fn accept(
    d: &mut Draft,
    request: &Request,
    reply: &EffectId,
    answer: &ArchitectAnswer,
) -> Result<Accepted, Refusal> {
    use ArchitectAnswer as Says;
    let no = |why: &str| Ok(Accepted::No(why.to_owned()));
    let (id, reply) = (&request.id, Some(reply));
    let by = agent(d).map_or(SmolStr::new_static("architect"), |agent| format_smolstr!("agent:{agent}"));
    match (request.kind, answer) {
        (_, Says::CannotAnswer { why }) => {
            check_text(&d.world, "why", Some(why))?;
            escalate(d, id, why)?;
        }
        (_, Says::Abandon { reason }) => {
            check_text(&d.world, "reason", Some(reason))?;
            abandon(d, id, reason)?;
        }
        (RequestKind::Question, Says::Answer { text }) => {
            check_text(&d.world, "text", Some(text))?;
            if text.trim().is_empty() {
                return no("an answer must not be empty");
            }
            answer_question(d, id, &by, text.trim(), reply)?;
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Code | RequestKind::Completion, Says::Approve { note }) => {
            check_text(&d.world, "note", Some(note))?;
            let Some(task) = request.task.clone() else { return no("it is about no task") };
            if is_at_tip(d, &task, request.tip.as_ref()).is_err() {
                // What it looked at is not what there is: it looks again. What it says meanwhile ends by itself.
                d.rule(Rule::RequestWithdrawn);
                settled(d, id, "system", "the work has changed since it was looked at", false, None);
                put_down(d)?;
                review_asked(d, &task)?;
                return Ok(Accepted::Yes);
            }
            let tip = request.tip.clone();
            d.rule(Rule::ArchitectApproved);
            settled(d, id, &by, "approved", false, reply);
            approve(d, &task, tip, by, note.trim().to_owned())?;
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Code | RequestKind::Completion, Says::Changes { text }) => {
            check_text(&d.world, "text", Some(text))?;
            if text.trim().is_empty() {
                return no("say what is to be changed");
            }
            let Some(task) = request.task.clone() else { return no("it is about no task") };
            d.rule(Rule::ArchitectSentBack);
            settled(d, id, &by, text.trim(), false, reply);
            let payload =
                task::Payload { feedback: Some(text.trim().to_owned()), ..task::Payload::default() };
            let speaker = speaker(d);
            person_moves(d, &task, &speaker, Status::InProgress, &payload)?;
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Budget, Says::Approve { note }) => {
            raise(d, request, note)?;
            settled(d, id, &by, "raised once", false, reply);
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Budget, Says::Changes { text } | Says::Answer { text }) => {
            check_text(&d.world, "text", Some(text))?;
            // It stays with the person who was asked.
            settled(d, id, &by, text.trim(), false, reply);
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Spec, Says::Feedback { text }) => {
            check_text(&d.world, "text", Some(text))?;
            if text.trim().is_empty() {
                return no("say what its author is to change");
            }
            let Some(spec) = request.spec.clone() else { return no("it is about no spec") };
            d.rule(Rule::SpecSentBack);
            settled(d, id, &by, text.trim(), false, reply);
            let (feedback, at) = (Some(text.trim().to_owned()), d.at());
            d.emit(SpecReviewed { id: spec, state: SpecState::NeedsChanges, feedback, by, at });
            tell(d, architect::Event::Answered)?;
        }
        (RequestKind::Spec, Says::Stories { stories }) => {
            let Some(spec) = request.spec.clone() else { return no("it is about no spec") };
            if let Some(problem) = specs::problem(stories, d.world.config.limits.text_bytes) {
                return Ok(Accepted::No(problem));
            }
            d.rule(Rule::SpecApproved);
            load_stories(d, &spec, stories)?;
            settled(d, id, &by, &format!("{} stories", stories.len()), false, reply);
            tell(d, architect::Event::SpecApproved)?;
        }
        (kind, answer) => {
            return Ok(Accepted::No(format!("a {kind} is not answered by `{}`", answer.name())));
        }
    }
    Ok(Accepted::Yes)
}

fn answer_question(d: &mut Draft, id: &RequestId, by: &str, text: &str, reply: Option<&EffectId>) -> Ruled {
    d.rule(Rule::QuestionAnswered);
    let task = d.world.requests.get(id).and_then(|request| request.task.clone());
    let (by, at, text, reply) = (SmolStr::new(by), d.at(), text.to_owned(), reply.cloned());
    d.emit(RequestAnswered { id: id.clone(), task: task.clone(), by, at, text, abandoned: false, reply });
    leave_queue(d, id);
    match task {
        Some(task) => super::next::wake(d, &task),
        None => Ok(()),
    }
}

fn raise(d: &mut Draft, request: &Request, note: &str) -> Ruled {
    let approval =
        request.task.as_ref().and_then(|task| d.world.task(task)).and_then(|task| task.approval.clone());
    let open = approval.filter(|id| {
        d.world.approvals.get(id).is_some_and(|approval| {
            approval.decided.is_none() && approval.cause == task::ApprovalCause::Budget
        })
    });
    let Some(approval) = open else { return Ok(()) };
    let decision = Decision {
        approve: true,
        note: note.to_owned(),
        to: None,
        raise: None,
        complete: false,
        always: false,
    };
    decide(d, &approval, &decision)
}

/// What it said is no answer: it is told why, and asked again; the third time a person is.
fn refused(d: &mut Draft, id: &RequestId, why: &str) -> Ruled {
    d.rule(Rule::ArchitectRefused);
    d.emit(RequestTried { id: id.clone(), why: SmolStr::new(why) });
    let tries = d.world.requests.get(id).map_or(0, |request| request.tries);
    if tries >= TRIES_MAX {
        return escalate(d, id, &format!("three answers were none: {why}"));
    }
    Ok(())
}

/// A person is asked; the request stays in hand.
fn escalate(d: &mut Draft, id: &RequestId, why: &str) -> Ruled {
    d.rule(Rule::ArchitectEscalated);
    d.emit(RequestNoted { id: id.clone(), note: SmolStr::new(why), kind: NoteKind::Escalation });
    d.emit(RequestForPerson { id: id.clone() });
    tell(d, architect::Event::CannotAnswer)
}

/// It gives up. What was asked stays open, for a person.
fn abandon(d: &mut Draft, id: &RequestId, reason: &str) -> Ruled {
    d.rule(Rule::ArchitectFailed);
    leave_to_person(d, id, reason);
    tell(d, architect::Event::Abandon { reason: reason.to_owned() })
}

/// The request leaves the queue and waits for a person alone.
fn leave_to_person(d: &mut Draft, id: &RequestId, why: &str) {
    d.emit(RequestNoted { id: id.clone(), note: SmolStr::new(why), kind: NoteKind::GaveUp });
    d.emit(RequestForPerson { id: id.clone() });
    leave_queue(d, id);
}

/// What the architect's agent said came to an end. Its last words are about the request that it was asked, and about no other
/// that has come into its hand meanwhile.
pub(super) fn reply_over(d: &mut Draft, spoken: &Spoken, said: &Said) -> Ruled {
    if state(d) != Some(architect::State::Request) {
        return Ok(());
    }
    let Some(request) = d.world.in_hand().filter(|request| request.answer.is_none()).cloned() else {
        return Ok(());
    };
    // By a tool, too, only the agent that the settings name decides.
    let is_architect = spoken.agent.is_some() && spoken.agent == agent(d);
    let may_decide = is_architect && spoken.decided.is_none() && spoken.shows(&request);
    if !may_decide && !matches!(said, Said::Away(_)) {
        d.rule(Rule::ReplyClosed);
        return Ok(());
    }
    match said {
        Said::Text(_) if agent(d).is_some_and(|agent| d.world.config.agent(&agent).has_tools) => {
            refused(d, &request.id, &by_tools(request.kind))
        }
        Said::Text(text) => {
            let answer = ArchitectAnswer::read(request.kind, text);
            let accepted = match answer {
                Ok(answer) => accept(d, &request, &spoken.reply, &answer),
                Err(why) => Ok(Accepted::No(why)),
            };
            match accepted {
                Ok(Accepted::Yes) => Ok(()),
                Ok(Accepted::No(why)) => refused(d, &request.id, &why),
                // It does not fit what the task has become meanwhile: it is looked at again.
                Err(refusal) => refused(d, &request.id, &refusal.message),
            }
        }
        // Its last words are those of somebody who is not finished.
        Said::Spent(_, what) => {
            d.rule(Rule::ReplySpent);
            refused(d, &request.id, &format!("it used the {what} that it had for a reply before it answered"))
        }
        Said::Stopped => Ok(()),
        Said::Crashed(error) => {
            sessions::renew(d, &Session::Seat(Seat::Architect), false);
            refused(d, &request.id, &format!("its program failed: {error}"))
        }
        Said::Away(away) => {
            d.rule(Rule::ArchitectSuspended);
            let of = Session::Seat(Seat::Architect);
            let suspension = super::service::suspension(d, &of, &away.service, away.resets_at);
            let until = suspension.until;
            d.move_architect(&Wrapped::Suspend(suspension), Caller::SYSTEM)?;
            d.set_timer(Timer::ArchitectSuspension, until);
            Ok(())
        }
    }
}

/// What an agent is told that has tools and answered in words.
fn by_tools(kind: RequestKind) -> String {
    let tools = match kind {
        RequestKind::Spec => "`submit_stories` or `spec_feedback`",
        RequestKind::Question => "`answer`",
        _ => "`review_decision`",
    };
    format!("no tool was called, and a message decides nothing: call {tools}, or `escalate`")
}

// People, and time.

/// A person answers what the architect could not, or did not yet.
pub(super) fn person_answers(d: &mut Draft, request: &Request, text: &str) -> Result<Reply, Refusal> {
    let id = &request.id;
    let by = d.command.actor.to_string();
    let in_hand = d.world.in_hand().is_some_and(|held| held.id == *id);
    let reply = Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() };
    if request.kind == RequestKind::Question {
        answer_question(d, id, &by, text, None)?;
        if in_hand {
            quit(d, id);
            put_down(d)?;
        }
        return Ok(reply);
    }
    if !in_hand && !request.for_person {
        let message = format!("`{id}` is a {}; the architect has not come to it yet", request.kind);
        return Err(Refusal::new(409, "NOT_ESCALATED", message).hint("it answers in order of arrival"));
    }
    d.rule(Rule::PersonAnswered);
    d.emit(RequestNoted { id: id.clone(), note: format_smolstr!("{by}: {text}"), kind: NoteKind::Plain });
    if !in_hand {
        // The architect had given it up: with what the person says it takes it up again.
        if !d.world.is_queued(id) {
            d.emit(RequestQueued { id: id.clone() });
        }
        wake(d)?;
        return Ok(reply);
    }
    if state(d) == Some(architect::State::Escalated) {
        let person = Caller { role: Role::Human, own: false };
        d.move_architect(&Wrapped::Inner(architect::Event::HumanAnswer), person)?;
    }
    Ok(reply)
}

/// A person gives up what the architect asked about: nothing is lost, and nobody waits for it.
pub(crate) fn abandon_request(d: &mut Draft, id: &RequestId, reason: &str) -> Result<Reply, Refusal> {
    let asked = d.world.requests.get(id).cloned();
    let request = asked.ok_or_else(|| Refusal::not_found("request", id).next([Choice::ListRequests]))?;
    if request.answer.is_some() {
        return Err(Refusal::new(409, "ANSWERED", format!("`{id}` was answered already")));
    }
    check_text(&d.world, "reason", Some(reason))?;
    let in_hand = d.world.in_hand().is_some_and(|held| held.id == *id);
    d.rule(Rule::PersonAbandoned);
    let by = d.command.actor.to_string();
    let reason = if reason.trim().is_empty() { "abandoned" } else { reason.trim() };
    settled(d, id, &by, reason, true, None);
    if let Some(spec) = request.spec.clone().filter(|_| request.kind == RequestKind::Spec) {
        let (feedback, at) = (Some(reason.to_owned()), d.at());
        let state = SpecState::NeedsChanges;
        d.emit(SpecReviewed { id: spec, state, feedback, by: SmolStr::new(&by), at });
    }
    if in_hand {
        quit(d, id);
        put_down(d)?;
    }
    if let Some(task) = &request.task {
        super::next::wake(d, task)?;
    }
    Ok(Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() })
}

/// Out of ERROR, by a person or by a fleet that starts. One that waits for a service tries it, whatever is known of that.
pub(crate) fn recover(d: &mut Draft) -> Result<Reply, Refusal> {
    let suspension = d.world.architect.as_ref().and_then(|architect| architect.suspension());
    if let Some(service) = suspension.and_then(|suspension| ServiceName::new(&suspension.service).ok()) {
        d.rule(Rule::Retried);
        super::service::goes_first(d, &service, &Seat::Architect);
        restore_architect(d, |_| true)?;
        return Ok(Reply::default());
    }
    if state(d) != Some(architect::State::InError) {
        let message = match &d.world.architect {
            Some(architect) => format!("the architect is architect.{}", architect.name()),
            None => "there is no architect at work".to_owned(),
        };
        return Err(Refusal::new(409, "NOT_IN_ERROR", message).hint("there is nothing to recover from"));
    }
    d.rule(Rule::ArchitectRecovered);
    tell(d, architect::Event::Recover)?;
    Ok(Reply { state: Some(SmolStr::new_static("architect.WAITING")), ..Reply::default() })
}

/// The settings have lost their architect, or have one again. What was asked of it is kept, and people can answer it.
pub(crate) fn configured(d: &mut Draft) -> Ruled {
    let named = d.world.config.architect.is_some();
    match (named, state(d)) {
        (false, Some(architect::State::Waiting | architect::State::Monitoring)) => {
            d.rule(Rule::ArchitectFailed);
            tell(d, architect::Event::ChannelClosed)
        }
        (true, Some(architect::State::InError)) => recover(d).map(drop),
        _ => Ok(()),
    }
}

/// A fleet that starts lets the architect go on.
pub(super) fn started_again(d: &mut Draft) -> Ruled {
    if state(d) == Some(architect::State::InError) {
        recover(d)?;
    }
    Ok(())
}

/// Nobody has answered in time: it gives up, and everything is kept.
pub(super) fn escalation_over(d: &mut Draft) -> Ruled {
    if state(d) != Some(architect::State::Escalated) {
        return Ok(());
    }
    d.rule(Rule::EscalationExpired);
    if let Some(id) = d.world.in_hand().map(|request| request.id.clone()) {
        leave_queue(d, &id);
    }
    tell(d, architect::Event::Timeout)
}

pub(super) fn suspension_over(d: &mut Draft) -> Ruled {
    if d.world.architect.as_ref().is_some_and(|architect| architect.suspension().is_some()) {
        d.rule(Rule::SuspensionExpired);
        super::service::outage_forgotten(d, Probe::Seat(Seat::Architect));
        d.move_architect(&Wrapped::Expire, Caller::SYSTEM)?;
    }
    Ok(())
}

/// Its service is back: it goes on where it was.
pub(super) fn restore_architect(d: &mut Draft, is_back: impl Fn(&str) -> bool) -> Ruled {
    let suspension = d.world.architect.as_ref().and_then(|architect| architect.suspension()).cloned();
    if suspension.is_some_and(|suspension| is_back(&suspension.service)) {
        d.rule(Rule::ArchitectRestored);
        d.clear_timer(&Timer::ArchitectSuspension);
        d.move_architect(&Wrapped::Restore, Caller::SYSTEM)?;
    }
    Ok(())
}

/// The workspace is asked for.
pub(super) fn prepare(d: &mut Draft) {
    if agent(d).is_some() {
        d.ask(Effect::PrepareTree { of: StepTree::Seat { seat: Seat::Architect } });
    }
}
