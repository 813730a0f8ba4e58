//! Questions that are answered in words, and what an agent at work says of itself.

use super::types::Nothing;
use super::types::request::{
    Answer, Claim, ListQuery, NewAnswer, NewRequest, Plan, Request, ShowQuery, WaitsFor, Wish, Wished,
};
use super::types::{Page, task};
use super::{Call, Problem, awaiting, board, field, scope, time};
use kernel::words::RequestKind;
use kernel::{Actor, Ask, World, world};
use machines::names::{RequestId, RunId, TaskId};
use smol_str::SmolStr;

pub fn list(call: &Call, (): (), query: ListQuery, _: Nothing) -> Result<Page<Request>, Problem> {
    let world = call.world();
    let mut asked: Vec<&world::Request> = match query.all {
        true => world.requests.values().map(AsRef::as_ref).collect(),
        false => world.open_requests().collect(),
    };
    asked.retain(|asked| call.request.actor.is_human() || sees(call, &world, asked));
    asked.sort_by_key(|asked| asked.asked_at);
    Ok(Page::made_of(asked, query.after, query.limit, |asked| shown(&world, asked)))
}

fn sees(call: &Call, world: &World, asked: &world::Request) -> bool {
    let task = asked.task.as_ref().and_then(|id| world.task(id));
    task.is_some_and(|task| call.sees(world, task))
}

pub fn show(call: &Call, id: RequestId, query: ShowQuery, _: Nothing) -> Result<Request, Problem> {
    let answered = |world: &World| {
        let asked = world.requests.get(&id)?;
        (!world.is_open_request(asked)).then_some(())
    };
    let known = call.world().requests.contains_key(&id);
    let _ = awaiting::awaited(call, query.wait && known, answered);
    let world = call.world();
    Ok(shown(&world, self::known(&world, &id)?))
}

pub(super) fn known<'w>(world: &'w World, id: &RequestId) -> Result<&'w world::Request, Problem> {
    world.requests.get(id).map(AsRef::as_ref).ok_or_else(|| {
        Problem::not_found(format!("there is no request `{id}`")).hint("`adj requests` lists the open ones")
    })
}

pub fn shown(world: &World, asked: &world::Request) -> Request {
    let answer = asked.answer.as_ref().map(|given| Answer {
        by: given.by.to_string(),
        at: time(given.at),
        text: given.text.clone(),
        abandoned: given.abandoned,
        reply: given.reply.as_ref().map(ToString::to_string),
    });
    let open = world.is_open_request(asked);
    let place = world.architect_queue.iter().position(|id| *id == asked.id);
    let with_architect = world.config.architect.is_some() && place.is_some() && !asked.for_person;
    let waits_for = match (open, with_architect) {
        (false, _) => None,
        (true, true) => Some(WaitsFor::Architect),
        (true, false) => Some(WaitsFor::Person),
    };
    Request {
        id: asked.id.to_string(),
        kind: asked.kind,
        task: asked.task.as_ref().map(ToString::to_string),
        run: asked.run.as_ref().map(ToString::to_string),
        by: asked.by.to_string(),
        text: asked.text.clone(),
        asked_at: time(asked.asked_at),
        open,
        answer,
        told: asked.told,
        spec: asked.spec.as_ref().map(ToString::to_string),
        tip: asked.tip.as_ref().map(ToString::to_string),
        waits_for,
        position: place.and_then(|place| u32::try_from(place + 1).ok()).filter(|_| open),
        notes: asked.notes.iter().map(ToString::to_string).collect(),
        tries: asked.tries,
    }
}

pub fn ask(call: &Call, (): (), _: Nothing, new: NewRequest) -> Result<Request, Problem> {
    let kind = new.kind.unwrap_or(RequestKind::Question);
    let task = new.task.map(|task| field::<TaskId>("task", &task)).transpose()?;
    let run = match &call.request.actor {
        Actor::Agent { .. } => Some(own_run(call, new.run.as_deref())?),
        _ => None,
    };
    let reply = call.submit(Ask::MakeRequest { kind, task, run, text: new.text })?;
    let id = reply.id.unwrap_or_default();
    show(call, super::name(&id)?, ShowQuery::default(), Nothing {})
}

pub fn answer(call: &Call, id: RequestId, _: Nothing, given: NewAnswer) -> Result<Request, Problem> {
    let text = given.text.unwrap_or_default();
    call.submit(match given.abandon {
        true => Ask::AbandonRequest { id: id.clone(), reason: text },
        false => Ask::AnswerRequest { id: id.clone(), text },
    })?;
    show(call, id, ShowQuery::default(), Nothing {})
}

pub fn receive(call: &Call, id: RequestId, _: Nothing, _: Nothing) -> Result<Request, Problem> {
    call.submit(Ask::ReceiveAnswer { id: id.clone() })?;
    show(call, id, ShowQuery::default(), Nothing {})
}

/// The run that the caller speaks of: that of its token, or where the token is for none, one that it reports from outside.
/// `named` is needed only where there are several of those.
fn own_run(call: &Call, named: Option<&str>) -> Result<RunId, Problem> {
    let named = named.map(|run| field::<RunId>("run", run)).transpose()?;
    let world = call.world();
    let own = scope::own_runs(&world, call.request);
    if !matches!(call.request.actor, Actor::Agent { .. }) {
        return Err(Problem::new(403, "FORBIDDEN", "only an agent that is working on a task may ask this")
            .hint("its token is in ADJ_TOKEN during the run"));
    }
    match (named, &own[..]) {
        (Some(named), own) if own.contains(&named) => Ok(named),
        (Some(named), _) => {
            Err(Problem::new(403, "FORBIDDEN", format!("run `{named}` is not an active run of the caller"))
                .hint("omit `run`, or name one of your own"))
        }
        (None, [run]) => Ok(run.clone()),
        (None, []) => Err(Problem::new(409, "NO_RUN", "the caller has no active run")
            .hint("an agent that runs outside the fleet starts one with `POST /runs`")),
        (None, several) => {
            let several: Vec<&str> = several.iter().map(|run| run.as_str()).collect();
            let message = format!("the caller has several active runs: {}", several.join(", "));
            Err(Problem::new(409, "WHICH_RUN", message).hint("name one with `run`"))
        }
    }
}

pub fn plan(call: &Call, (): (), _: Nothing, plan: Plan) -> Result<task::Task, Problem> {
    let run = own_run(call, plan.run.as_deref())?;
    call.submit(Ask::SubmitPlan { run: run.clone(), plan: plan.steps })?;
    own_task(call, &run)
}

pub fn claim(call: &Call, (): (), _: Nothing, claim: Claim) -> Result<task::Task, Problem> {
    let run = own_run(call, claim.run.as_deref())?;
    call.submit(Ask::ClaimDone { run: run.clone(), summary: claim.summary })?;
    own_task(call, &run)
}

fn own_task(call: &Call, run: &RunId) -> Result<task::Task, Problem> {
    let world = call.world();
    let task = world.run(run).map(|run| run.task.clone());
    board::shown(call, &task.ok_or_else(|| Problem::not_found(format!("there is no run `{run}`")))?)
}

pub fn wish(call: &Call, (): (), _: Nothing, wish: Wish) -> Result<Wished, Problem> {
    let run = own_run(call, wish.run.as_deref())?;
    let argument = agents::argument(&wish.tool, &wish.input);
    let ask = Ask::AskApproval { run, tool: SmolStr::new(&wish.tool), argument, input: wish.input };
    let reply = call.submit(ask)?;
    let allowed = reply.code.as_deref() == Some("ALLOWED");
    Ok(Wished { allowed, approval: reply.id.filter(|_| !allowed).map(|id| id.to_string()) })
}
