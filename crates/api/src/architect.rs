//! The architect: where it stands, and what its agent says by a tool.

use super::types::Nothing;
use super::types::architect::{Architect, ArchitectAnswer, Says, Taken};
use super::{Call, Problem, requests, view, wrong};
use kernel::Ask;
use kernel::rooms::Seat;

pub fn show(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Architect, Problem> {
    let world = call.world();
    let machine = world.architect.as_ref();
    let seated = world.seated(&Seat::Architect);
    let queue = world.architect_queue.iter().filter_map(|id| world.requests.get(id));
    Ok(Architect {
        agent: world.config.architect.as_ref().map(|architect| architect.agent.to_string()),
        state: machine.map(|machine| format!("architect.{}", machine.name())),
        cause: machine.and_then(|machine| machine.inner().cause.clone()),
        service: machine.and_then(|machine| Some(machine.suspension()?.service.to_string())),
        spec_in_work: machine.is_some_and(|machine| machine.inner().spec_in_work),
        request: world.in_hand().map(|asked| requests::shown(&world, asked)),
        speaks: seated.is_some_and(|seated| seated.reply.is_some()),
        queue: queue.map(|asked| requests::shown(&world, asked)).collect(),
        cost: seated.map(|seated| view::spend(&world, &seated.spend)).unwrap_or_default(),
    })
}

pub fn recover(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Architect, Problem> {
    call.submit(Ask::RecoverArchitect)?;
    show(call, (), Nothing {}, Nothing {})
}

/// Only in its own seat: the same agent may sit in a room, where it speaks for itself alone. The token names the reply, and the
/// reply the request that is answered: a caller has no say in that.
pub fn answer(call: &Call, (): (), _: Nothing, said: ArchitectAnswer) -> Result<Taken, Problem> {
    let own = call.request.reply.clone().filter(|_| call.request.seat == Some(Seat::Architect));
    let Some(reply) = own else {
        return Err(Problem::new(403, "FORBIDDEN", "only the architect's agent may answer here")
            .hint("the agent's token is in ADJ_TOKEN while it answers; a person answers with `adj answer`"));
    };
    let reply = call.submit(Ask::ArchitectAnswers { reply, answer: read(said)? })?;
    let accepted = reply.code.as_deref() != Some("NOT_ACCEPTED");
    Ok(Taken { accepted, message: reply.message })
}

fn read(said: ArchitectAnswer) -> Result<kernel::command::ArchitectAnswer, Problem> {
    use kernel::command::ArchitectAnswer as Answer;
    let ArchitectAnswer { answer, text, stories } = said;
    if stories.is_some() && answer != Says::Stories {
        return Err(wrong("stories", format!("`{answer}` has no stories")));
    }
    let text = text.unwrap_or_default();
    Ok(match answer {
        Says::Answer => Answer::Answer { text },
        Says::Approve => Answer::Approve { note: text },
        Says::Changes => Answer::Changes { text },
        Says::Feedback => Answer::Feedback { text },
        Says::Stories => {
            let stories = stories.unwrap_or_default();
            Answer::Stories { stories: stories.into_iter().map(Into::into).collect() }
        }
        Says::Escalate => Answer::CannotAnswer { why: text },
    })
}
