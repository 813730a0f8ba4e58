//! The story of a fleet: what its events mean to someone who watches. Most mean nothing.
//!
//! `adj run` and `adj demo` tell it as it happens, and count what went wrong and was survived.

use crate::format::{self, rounded_dollars};
use fleet::standstill::{self, Standstill};
use kernel::command::RedBy;
use kernel::config::Review;
use kernel::event::{Event, SaidKind};
use kernel::specs::SpecState;
use kernel::why::{first_and_last, last_line, last_lines, service_words};
use kernel::words::{ActorKind, GateCause, LandingEnd, NoteKind, RequestKind};
use kernel::world::{AskedCall, HeldUp, Holder, ProposalState, SentBack};
use kernel::{LIMIT_PASSED, World};
use machines::task::{ApprovalCause, BlockReason, Status};
use machines::{Millis, Wire, architect, run, worker};
use std::collections::{BTreeMap, BTreeSet};

machines::wire_enum! {
    /// How a line is meant.
    pub enum Tone {
        Plain = "plain",
        Good = "good",
        Wrong = "warning",
        /// It goes on when a person has decided.
        You = "you",
        /// Something came to an end that nobody wanted.
        Loud = "error",
    }
}

/// What is tried again and again is told of each time that so many tries have failed.
const TRIES_TOLD: u32 = 20;

impl Tone {
    pub fn mark(self) -> &'static str {
        match self {
            Tone::Plain => " ",
            Tone::Good => "✓",
            Tone::Wrong => "!",
            Tone::You => "→",
            Tone::Loud => "✗",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Line {
    pub at: Millis,
    pub tone: Tone,
    pub text: String,
}

/// What has been told so far, as far as it matters for what is told next.
#[derive(Default)]
pub struct Story {
    /// Who held each task last.
    holders: BTreeMap<String, String>,
    healthy: BTreeMap<String, bool>,
    /// Workers that are stuck and whose place was not filled yet.
    stuck: u32,
    /// Tasks with a step of unknown price: one is told of, the summary counts them all.
    unpriced: BTreeSet<String>,
    /// What keeps each landing waiting: it is looked at again and again, and told once.
    held_up: BTreeMap<String, String>,
    /// Whether main was last heard to fail its own tests.
    main_red: bool,
    /// What was last heard beside the log, such as a line of an agent's standard error.
    heard: String,
    /// What went wrong with each task or service, in words, with how often: survived once it has landed, or is back.
    met: BTreeMap<String, BTreeMap<&'static str, u32>>,
    /// What went wrong and was survived, in words, with how often.
    pub survived: BTreeMap<&'static str, u32>,
    pub landed: u32,
}

impl Story {
    /// Something that is told as it is.
    pub fn hears(&mut self, text: &str) {
        text.clone_into(&mut self.heard);
    }

    fn wrong(&mut self, with: &str, what: &'static str, text: String) -> Option<(Tone, String)> {
        self.meets(with, what);
        Some((Tone::Wrong, text))
    }

    fn meets(&mut self, with: &str, what: &'static str) {
        *self.met.entry(with.to_owned()).or_default().entry(what).or_default() += 1;
    }

    /// The task has landed, or the service is back: what went wrong with it is behind it.
    fn survives(&mut self, with: &str) {
        for (what, times) in self.met.remove(with).unwrap_or_default() {
            *self.survived.entry(what).or_default() += times;
        }
    }

    /// What an event means, in one line. `world` is the one after it.
    pub fn lines(&mut self, world: &World, at: Millis, event: &Event) -> Vec<Line> {
        let said = self.words(world, event).into_iter();
        let said = said.chain(beneath(world, event).into_iter().map(|text| (Tone::Plain, text)));
        said.map(|(tone, text)| Line { at, tone, text }).collect()
    }

    pub fn words(&mut self, world: &World, event: &Event) -> Option<(Tone, String)> {
        let of_run =
            |id: &machines::names::RunId| world.run(id).map(|run| (run.task.clone(), who(&run.holder)));
        if let Event::TaskMoved(moved) = event {
            self.held_up.remove(moved.id.as_str());
            if moved.to == Status::Done {
                self.survives(moved.id.as_str());
            }
        }
        match event {
            Event::TaskAdded(added) => {
                let proposed = added.proposed.as_ref()?;
                let (id, by) = (&added.id, kernel::why::proposed_by(proposed));
                let title = title(world, id.as_str());
                Some(match proposed.state {
                    ProposalState::Waiting => {
                        (Tone::You, format!("{id} is {by}: {title}: adj task accept {id}"))
                    }
                    _ => (Tone::Plain, format!("{id} is {by}: {title}")),
                })
            }
            Event::LeaseGiven(given) => {
                let Holder::Worker(name) = &given.holder else { return None };
                let before = self.holders.insert(given.id.to_string(), name.to_string());
                let text = match before {
                    None => format!("{name} takes {}: {}", given.id, title(world, given.id.as_str())),
                    Some(before) if before == name.as_str() => {
                        format!("{name} takes {} up again, in the same tree", given.id)
                    }
                    Some(before) => {
                        format!("{name} takes {} up where {before} left it, in the same tree", given.id)
                    }
                };
                Some((Tone::Plain, text))
            }
            Event::RunMoved(moved) if moved.state == run::State::InError && moved.from != moved.to => {
                let (task, who) = of_run(&moved.id)?;
                let error = world.run(&moved.id).and_then(|run| run.machine.inner().last_error.clone());
                if error.as_ref().is_some_and(|error| error.code == "RETRY") {
                    return Some((Tone::Plain, format!("{who} retries {task}, as a person asked")));
                }
                // Nothing is tried again: that it is blocked, and by which limit, comes next.
                if error.as_ref().is_some_and(|error| error.code == LIMIT_PASSED) {
                    return None;
                }
                let error = error.map(|error| error.message).unwrap_or_default();
                let error = first_and_last(&error);
                // Its last words stand in the line above.
                let last = self.heard.strip_prefix(&format!("{who} {task}: ")).unwrap_or_default();
                let brief = error.strip_suffix(last).filter(|brief| !last.is_empty() && !brief.is_empty());
                let error =
                    brief.map_or(error.as_str(), |brief| brief.trim_end_matches([':', ' '])).to_owned();
                self.wrong(task.as_str(), "failed step", format!("{who}'s step on {task} failed: {error}"))
            }
            Event::WorkerLost(lost) => self.wrong(
                lost.id.as_str(),
                "lost worker",
                format!("{}: its worker was lost; the next worker continues the task", lost.id),
            ),
            Event::StepRetried(retried) if retried.retried => {
                let (task, _) = of_run(&retried.id)?;
                self.wrong(
                    task.as_str(),
                    "step repeated",
                    format!("{task}: the step hung or lost its session; retried with a new session"),
                )
            }
            // A fleet that starts tries credentials that were refused before; what comes of it is told.
            Event::HealthSeen(seen)
                if seen.refused
                    && seen.probe.is_some()
                    && !self.healthy.contains_key(seen.service.as_str()) =>
            {
                let name = service_words(&seen.service);
                let text = format!("{name} did not accept the credentials; trying them again");
                Some((Tone::Plain, text))
            }
            Event::HealthSeen(seen) => {
                let (name, known) = (service_words(&seen.service), seen.service.to_string());
                // No task waits for it any more, and its state is unknown: the next step will report it.
                if seen.healthy && seen.probe.is_some() {
                    let away = self.healthy.get(&known) == Some(&false);
                    let text = format!("{name} has not answered yet; the next run tries it");
                    return away.then_some((Tone::Plain, text));
                }
                let before = self.healthy.insert(known, seen.healthy).unwrap_or(true);
                let error = seen.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
                match (before, seen.healthy) {
                    (true, false) if seen.refused => {
                        self.meets(seen.service.as_str(), "outage");
                        let text = format!(
                            "{name} does not accept the credentials{error}; no agent starts until you fix them and run adj retry --all"
                        );
                        Some((Tone::Loud, text))
                    }
                    (true, false) => {
                        let when = match seen.resets_at {
                            Some(reset) => format!("in {}", format::duration(reset - seen.at)),
                            None => format!("in {} s", world.config.limits.health_poll_seconds),
                        };
                        let text = format!("{name} is unavailable{error}: its runs wait and retry {when}");
                        self.wrong(seen.service.as_str(), "outage", text)
                    }
                    (false, true) => {
                        self.survives(seen.service.as_str());
                        Some((Tone::Good, format!("{name} is available again: runs continue")))
                    }
                    _ => None,
                }
            }
            Event::GatePassed(passed) => {
                let (id, by_policy) = (&passed.id, world.config.fleet.review == Review::Auto);
                // The commit of an undo is made by rule: no tests have run yet, and nobody waits.
                if world.task(id).is_some_and(|task| task.origin.undoes.is_some())
                    && world.run_of(id).is_none()
                {
                    return None;
                }
                let before = world.task(id).and_then(|task| task.review.sent_back_tip.as_ref());
                if passed.tip.is_some() && before == passed.tip.as_ref() {
                    let text = "nothing has changed since the review";
                    let review = world.config.fleet.review;
                    return Some(match (passed.needs_person, review) {
                        (None, Review::Auto) => (Tone::Plain, format!("{id}: {text}; retried unchanged")),
                        (None, Review::Architect) => {
                            (Tone::Plain, format!("{id}: {text}; the architect reviews it again"))
                        }
                        _ => (Tone::You, format!("{id}: {text}; it waits for you: adj review {id}")),
                    });
                }
                Some(match &passed.needs_person {
                    Some(reason) => {
                        let why = reason.text();
                        (Tone::You, format!("{id}: a person must look at it ({why}): adj review {id}"))
                    }
                    None if by_policy => (Tone::Plain, format!("{id}: the tests pass")),
                    None if world.config.fleet.review == Review::Architect => {
                        (Tone::Plain, format!("{id}: the tests pass; the architect reviews it"))
                    }
                    None => (Tone::You, format!("{id}: the tests pass; it waits for you: adj review {id}")),
                })
            }
            Event::EmptyDiffSeen(seen) => {
                let what = match seen.cause {
                    GateCause::Claim => "DONE without a change",
                    _ => "no change",
                };
                let text = format!("{}: {}, but nothing has changed", seen.id, seen.cause.text());
                self.wrong(seen.id.as_str(), what, text)
            }
            Event::SentBackTo(sent) => {
                let (id, main, before) = (&sent.id, &world.config.main, sent.cause.text());
                let (SentBack::Gate(output) | SentBack::Landing(output)) = &sent.what;
                let last = last_line(output);
                let of_gate = match &sent.what {
                    SentBack::Gate(_) => true,
                    SentBack::Landing(_) => sent.by == RedBy::Conflict && sent.cause != GateCause::Landing,
                };
                let conflict = || {
                    let failed = world.task(id).and_then(|task| task.landing.failed.as_ref());
                    let failed = failed.filter(|failed| failed.conflict);
                    failed.map_or_else(|| format!("conflicts with {main}"), |failed| failed.words(main))
                };
                let (what, text) = match (of_gate, sent.red_by()) {
                    // That nothing has changed was told already.
                    (_, RedBy::NoChange) => return None,
                    // That it is blocked, and by what, comes next.
                    (false, _) if world.task(id)?.status() == Status::Blocked => return None,
                    (true, RedBy::Conflict) => {
                        ("merge conflict", format!("{id}: {before}, but it still {}", conflict()))
                    }
                    (false, RedBy::Conflict) => {
                        ("merge conflict", format!("{id}: {}; sent back to work", conflict()))
                    }
                    (false, _) => (
                        "red merge",
                        format!("{id}: tests failed when merged with {main}: {last}; sent back to work"),
                    ),
                    (true, RedBy::Tests | RedBy::InDoubt) => {
                        ("failed test run", format!("{id}: {before}, but tests failed: {last}"))
                    }
                    (true, RedBy::Environment) => {
                        ("tests not run", format!("{id}: its tests could not be run: {last}"))
                    }
                    (true, RedBy::ConflictMarkers) => {
                        ("conflict markers", format!("{id}: {before}, but conflict markers are left: {last}"))
                    }
                    (true, RedBy::Branch) => (
                        "branch that cannot land",
                        format!("{id}: {before}, but the branch cannot land: {last}"),
                    ),
                };
                self.wrong(id.as_str(), what, text)
            }
            Event::GateDoubted(doubted) => {
                let doubt = doubted.what.as_ref()?;
                let (id, last) = (&doubted.id, last_line(&doubt.output));
                let text = match doubt.by {
                    RedBy::Tests => {
                        format!("{id}: its tests fail ({last}); testing main first: it may fail them, too")
                    }
                    _ => format!(
                        "{id}: its tests did not run as they should ({last}); testing main to see why"
                    ),
                };
                self.wrong(id.as_str(), "tests in doubt", text)
            }
            Event::LandingDoubted(doubted) if doubted.doubted => self.wrong(
                doubted.id.as_str(),
                "tests in doubt",
                format!(
                    "{}: its merge does not pass the tests; testing main first: it may fail them, too",
                    doubted.id
                ),
            ),
            Event::MainTested(tested) => {
                let was_red = std::mem::replace(&mut self.main_red, tested.red.is_some());
                match &tested.red {
                    Some(output) => {
                        let last = last_line(output);
                        let text = format!(
                            "the tests fail on main itself, so no agent starts: {last} (adj doctor --tests)"
                        );
                        Some((Tone::Loud, text))
                    }
                    None if was_red => Some((Tone::Good, "main passes its tests; agents start".to_owned())),
                    None => None,
                }
            }
            Event::LandingEnded(ended) if ended.why == LandingEnd::MainMovedByOther => self.wrong(
                ended.id.as_str(),
                "main moved during a landing",
                format!("{}: {} moved meanwhile; merged and tested again", ended.id, world.config.main),
            ),
            Event::LandingHeldUp(held) => {
                // It is tried again and again; it is told again only where something else is in the way.
                let why = held.why.as_ref()?;
                let before = self.held_up.insert(held.id.to_string(), why.to_string());
                if before.as_deref() == Some(why.as_str()) {
                    return None;
                }
                self.wrong(held.id.as_str(), "landing held up", format!("{} waits to land: {why}", held.id))
            }
            Event::LandingWaits(waits) => {
                let why = world.task(&waits.id)?.held_up_by()?;
                if self.held_up.insert(waits.id.to_string(), why.clone()).as_ref() == Some(&why) {
                    return None;
                }
                match waits.what {
                    HeldUp::PullRequest { .. } => {
                        Some((Tone::You, format!("{} waits to land: {why}", waits.id)))
                    }
                    HeldUp::Checkout { .. } | HeldUp::Remote { .. } => {
                        let text = format!("{} waits to land: {why}", waits.id);
                        self.wrong(waits.id.as_str(), "landing held up", text)
                    }
                }
            }
            Event::TaskLanded(landed) => {
                self.landed += 1;
                self.survives(landed.id.as_str());
                Some((Tone::Good, format!("{} landed on {}", landed.id, world.config.main)))
            }
            Event::Restarted(restarted) => {
                Some((Tone::Plain, format!("{} is restarted from main", restarted.id)))
            }
            // What a person asks for, that person knows.
            Event::TaskMoved(moved) if moved.from == Status::Review && moved.to == Status::InProgress => {
                let machines::task::Event::Move { by, payload, .. } = &moved.input else { return None };
                if matches!(by.role, machines::machine::Role::Human | machines::machine::Role::System) {
                    return None;
                }
                let name = by.id.as_str();
                let architect = world.config.architect.as_ref().is_some_and(|it| it.agent.as_str() == name);
                let who = if architect { "the architect" } else { name };
                let feedback = note(payload.feedback.as_deref().unwrap_or_default());
                Some((Tone::Wrong, format!("{}: {who} asks for changes{feedback}", moved.id)))
            }
            Event::TaskMoved(moved) if moved.to == Status::Canceled => {
                let title = title(world, moved.id.as_str());
                Some((Tone::Plain, format!("{} is canceled: {title}", moved.id)))
            }
            Event::WorkerSpawned(spawned) if !spawned.by_person && self.stuck > 0 => {
                self.stuck -= 1;
                Some((Tone::Plain, format!("{} takes the place of a stuck worker", spawned.name)))
            }
            Event::WorkerMoved(moved) if moved.to == worker::State::Stuck => {
                self.stuck += 1;
                None
            }
            // One that is led on in the same breath was only moved through it.
            Event::TaskMoved(moved) if moved.to == Status::Blocked => {
                if matches!(&moved.input, machines::task::Event::Move { by, .. } if by.role == machines::machine::Role::System)
                    && world.task(&moved.id)?.status() != Status::Blocked
                {
                    return None;
                }
                let task = world.task(&moved.id)?;
                let reason = task.machine.block_reason;
                let error = world.run_of(&moved.id).and_then(|run| run.machine.inner().last_error.as_ref());
                let said = error.filter(|_| reason == Some(BlockReason::Limit));
                let said = said.map(|error| format!("{}: ", error.message)).unwrap_or_default();
                let reason = reason.map_or("", |reason| reason.name());
                Some((Tone::Loud, format!("{} is BLOCKED ({reason}): {said}adj why {}", moved.id, moved.id)))
            }
            Event::ApprovalAsked(asked) => {
                let task = asked.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
                let paused = asked.run.as_ref().filter(|_| asked.cause == ApprovalCause::Escalation);
                let answers = match paused {
                    Some(run) => format!("adj resume {run}, or adj abort {run}"),
                    None => format!("adj approve {0}, or adj deny {0}", asked.id),
                };
                let text = format!("{task}{} ({answers})", asked.question);
                // The whole call, if it is longer than the line: the person must see the command before answering.
                let whole = asked.what.as_ref().filter(|call| asked.question != brief(call));
                let more: String = whole.map(shown_call).unwrap_or_default();
                Some((Tone::You, text + &more))
            }
            Event::Requested(asked) => {
                let task = asked.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
                let (by, text, id) = (&asked.by, &asked.text, &asked.id);
                match (world.config.architect.is_some(), asked.kind) {
                    (false, _) => {
                        Some((Tone::You, format!("{task}{by} asks: {text} (adj answer {id} TEXT)")))
                    }
                    (true, RequestKind::Question) => {
                        Some((Tone::Plain, format!("{task}{by} asks the architect: {text}")))
                    }
                    (true, RequestKind::Spec) => {
                        Some((Tone::Plain, format!("the architect is asked about the spec {text}")))
                    }
                    // The others are told by what they are about.
                    (true, _) => None,
                }
            }
            Event::Posted(posted) => {
                let by = posted.by.split_once(':').map_or(posted.by.as_str(), |(_, name)| name);
                let text = posted.text.split_whitespace().collect::<Vec<_>>().join(" ");
                Some((Tone::Plain, format!("{} {by}: {text}", posted.channel)))
            }
            Event::ChannelSaid(said) if said.kind == SaidKind::Announcement => {
                Some((Tone::Wrong, format!("{}: {}", said.channel, said.text)))
            }
            Event::ChannelSaid(said) if said.is_unended() => {
                Some((Tone::Wrong, format!("{}: ⚠️ {}", said.channel, said.text)))
            }
            Event::TurnMoved(moved) => turn_waits(world, moved),
            Event::RequestForPerson(left) => {
                let asked = world.requests.get(&left.id)?;
                let (id, what) = (&asked.id, asked.kind.noun());
                let of = asked.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
                // A note says whose it is, and so does the line.
                let note = asked.notes.back();
                let does = match note.map(|note| note.kind) {
                    Some(NoteKind::GaveUp) => "gave up and leaves",
                    Some(NoteKind::Escalation | NoteKind::Plain) | None => "leaves",
                };
                let why = note.map(|note| note.text.as_str()).unwrap_or_default();
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                let text = format!("{of}the architect {does} the {what} to you{why} (adj answer {id} TEXT)");
                Some((Tone::You, text))
            }
            Event::SpecReviewed(reviewed) => {
                let id = &reviewed.id;
                match reviewed.state {
                    SpecState::NeedsChanges => Some((
                        Tone::You,
                        format!(
                            "the spec {id} needs changes{}: adj spec show {id}",
                            note(reviewed.feedback.as_deref().unwrap_or_default())
                        ),
                    )),
                    SpecState::Approved => Some((Tone::Plain, format!("the spec {id} is split into tasks"))),
                    SpecState::Done => Some((Tone::Plain, format!("the spec {id} is done"))),
                    SpecState::Submitted => None,
                }
            }
            Event::ArchitectMoved(moved)
                if moved.state == architect::State::InError && moved.from != moved.to =>
            {
                let cause = world.architect.as_ref().and_then(|architect| architect.inner().cause.clone());
                let cause = cause.unwrap_or_else(|| "no reason was given".to_owned());
                Some((Tone::Loud, format!("the architect has stopped ({cause}): adj retry architect")))
            }
            // Without a budget nobody needs to know before the summary.
            Event::Charged(charged) if !charged.priced && has_budget(world) => {
                let (task, _) = of_run(&charged.id)?;
                let tokens = charged.input_tokens + charged.output_tokens;
                let text = match kernel::budget::estimate(world, &charged.tariff(), tokens) {
                    Some(_) => format!("{task}: a step ended without a price; it is estimated by its tokens"),
                    None => {
                        let held = rounded_dollars(charged.cost);
                        format!("{task}: a step ended without a price; budgets keep {held} set aside for it")
                    }
                };
                self.unpriced.insert(task.to_string()).then_some((Tone::Wrong, text))
            }
            // Once it is only a lock that somebody holds for a moment.
            Event::EffectFailed(failed) if failed.tries == 2 || failed.tries % TRIES_TOLD == 0 => {
                let error = failed.error.lines().next().unwrap_or_default();
                let with = failed.task.as_ref().map(|task| task.as_str()).unwrap_or_default();
                let task = failed.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
                self.wrong(with, "retried effect", format!("{task}{error}; it is tried again"))
            }
            Event::StoodStill(said) => Some((Tone::You, standstill::headline(said.reasons.len()))),
            Event::DiskSeen(seen) => match &seen.full {
                Some(found) => Some((Tone::Loud, format!("the disk is full ({found}): no new work starts"))),
                None => Some((Tone::Good, "the disk has free space again".to_owned())),
            },
            _ => None,
        }
    }
}

/// Whether the settings limit what anything may cost.
fn has_budget(world: &World) -> bool {
    let (budget, mut agents) = (&world.config.budget, world.config.agents.values());
    let limits = [budget.run, budget.task, budget.day];
    limits.iter().any(Option::is_some) || agents.any(|agent| agent.budget.is_some())
}

/// How a call that has nothing to it but its argument is asked about.
fn brief(call: &AskedCall) -> String {
    format!("The agent asks to use {}: {}", call.tool, call.argument)
}

/// The call whole, each line of it on one of its own.
fn shown_call(call: &AskedCall) -> String {
    call.lines().iter().map(|line| format!("\n{line}")).collect()
}

impl Story {
    /// What people and agents did, and what a fleet that runs need not be told: for a history.
    pub fn deed(&mut self, world: &World, event: &Event, actor: &str) -> Option<(Tone, String)> {
        let by = ActorKind::of(actor);
        let by_person = by == Some(ActorKind::Human);
        let plain = |text: String| Some((Tone::Plain, text));
        match event {
            Event::ProposalAccepted(accepted) => {
                plain(format!("{}, which an agent proposed, was accepted by {}", accepted.id, accepted.by))
            }
            Event::TaskAdded(added) => {
                let ticket = if added.ticket.is_some() { " from its ticket" } else { "" };
                plain(format!("{} was added{ticket}: {}", added.id, title(world, added.id.as_str())))
            }
            Event::TaskApproved(approved) => {
                let note = note(&approved.note);
                Some((Tone::Good, format!("{} was approved by {}{note}", approved.id, approved.by)))
            }
            Event::ApprovalDecided(decided) => {
                let task = world.approvals.get(&decided.id).and_then(|asked| asked.task.as_ref());
                let task = task.map(|task| format!("{task}: ")).unwrap_or_default();
                plain(format!(
                    "{task}{} {} by {}{}",
                    decided.id,
                    decided.decision,
                    decided.by,
                    note(&decided.note)
                ))
            }
            Event::TaskMoved(moved) if moved.to == Status::Canceled => {
                Some((Tone::Loud, format!("{} was canceled", moved.id)))
            }
            Event::TaskMoved(moved) if moved.to == Status::Done => {
                Some((Tone::Good, format!("{} is DONE", moved.id)))
            }
            Event::TaskMoved(moved) if matches!(by, Some(ActorKind::Human | ActorKind::Agent)) => {
                plain(format!("{} was moved from {} to {}", moved.id, moved.from, moved.to))
            }
            Event::Commented(comment) if ActorKind::of(&comment.by) == Some(ActorKind::Human) => {
                plain(format!("{}: comment{}", comment.id, note(&comment.text)))
            }
            Event::WorkerMoved(moved) => {
                let text = match moved.input {
                    worker::Event::Kill => format!("{} was killed", moved.name),
                    worker::Event::Retry if by_person => format!("{} was asked to retry", moved.name),
                    _ => return None,
                };
                Some((Tone::Wrong, text))
            }
            Event::WorkerSpawned(spawned) if by_person => {
                plain(format!("worker {} was created", spawned.name))
            }
            Event::SpecSubmitted(spec) => {
                let again =
                    if spec.version > 1 { format!(", version {}", spec.version) } else { String::new() };
                plain(format!("the spec {} was submitted by {}{again}: {}", spec.id, spec.by, spec.title))
            }
            Event::RequestAnswered(answered) => {
                let done = if answered.abandoned { "was given up" } else { "was answered" };
                let reply =
                    answered.reply.as_ref().map(|reply| format!(" in reply {reply}")).unwrap_or_default();
                plain(format!("{} {done} by {}{reply}{}", answered.id, answered.by, note(&answered.text)))
            }
            Event::MemberAdded(added) => plain(format!("{} was added to {}", added.agent, added.channel)),
            Event::MemberRemoved(removed) => {
                plain(format!("{} was removed from {}", removed.agent, removed.channel))
            }
            Event::TurnMoved(moved) => plain(turn_words(moved)?),
            Event::MemberSkipped(skipped) => plain(match skipped.skipped {
                true => format!("the next turn of {} in {} is to be skipped", skipped.agent, skipped.channel),
                false => format!("the turn of {} in {} was skipped", skipped.agent, skipped.channel),
            }),
            Event::AgentSwitched(switched) => {
                let done = if switched.enabled { "enabled" } else { "disabled" };
                let why = note(switched.reason.as_deref().unwrap_or_default());
                plain(format!("agent {} was {done} by {}{why}", switched.agent, switched.by))
            }
            Event::BudgetRaised(raised) => {
                plain(format!("the {} budget was raised by {}", raised.scope, rounded_dollars(raised.by)))
            }
            Event::FleetSwitched(switched) => plain(if switched.running {
                "the fleet started".to_owned()
            } else {
                "the fleet stopped".to_owned()
            }),
            Event::ConfigChanged(_) => plain("adjutant.toml was read".to_owned()),
            _ => None,
        }
    }
}

/// A turn that stands still, or a member that gets none any more: why, and how it continues.
fn turn_waits(world: &World, moved: &kernel::event::TurnMoved) -> Option<(Tone, String)> {
    use machines::turn::{Event as Turn, WaitReason};
    let (agent, channel) = (&moved.agent, &moved.channel);
    let resume = format!("adj turn resume {channel} --as {agent}");
    let within = |seconds: u32| kernel::why::duration(i64::from(seconds) * 1000);
    Some(match &moved.input {
        Turn::WaitRequested { because: WaitReason::Service, note: what, .. } => {
            let why = note(what.as_deref().unwrap_or_default());
            let text =
                format!("{channel}: {agent} waits in its turn{why}; it continues when the service is back");
            (Tone::Wrong, text)
        }
        Turn::WaitRequested { wait_seconds, note: what, .. } => {
            let why = note(what.as_deref().unwrap_or_default());
            let left = within(*wait_seconds);
            let text = format!(
                "{channel}: {agent} waits in its turn{why}; it loses the turn in {left}, or: {resume}"
            );
            (Tone::You, text)
        }
        Turn::Interrupt { wait_seconds, .. } => {
            let left = within(*wait_seconds);
            let text = format!(
                "{channel}: {agent} waits in its turn: a person interrupted it; it loses the turn in {left}, or: {resume}"
            );
            (Tone::You, text)
        }
        // The channel itself says so, unless it was told not to.
        Turn::WaitTimeout if world.channel(channel).is_none_or(|room| !room.config.announce_timeouts) => {
            (Tone::Wrong, format!("{channel}: {agent} waited too long and lost its turn"))
        }
        Turn::Disconnects { .. } => {
            let back = match world.disabled.contains_key(agent) {
                true => format!("adj agent enable {agent}"),
                false => format!("adj channel add {channel} {agent}"),
            };
            (Tone::You, format!("{channel}: {agent} is OFFLINE and gets no turn: {back}"))
        }
        _ => return None,
    })
}

/// What happened to a turn in a channel. What the channel is told anyway stands there.
fn turn_words(moved: &kernel::event::TurnMoved) -> Option<String> {
    use machines::turn::{EndedBy, Event as Turn, State};
    let (agent, channel) = (&moved.agent, &moved.channel);
    Some(match &moved.input {
        Turn::TurnGranted { .. } => format!("{agent} has the turn in {channel}"),
        Turn::TurnComplete { ended_by: Some(EndedBy::Skip), .. } => {
            format!("the turn of {agent} in {channel} was skipped")
        }
        Turn::TurnComplete { ended_by: Some(EndedBy::Cancel), .. } => {
            format!("the turn of {agent} in {channel} was canceled")
        }
        Turn::TurnComplete { auto: true, .. } => {
            format!("the turn of {agent} in {channel} is over (silence)")
        }
        Turn::TurnComplete { .. } => format!("the turn of {agent} in {channel} is over"),
        Turn::WaitRequested { note: what, .. } => {
            format!("{agent} pauses its turn in {channel}{}", note(what.as_deref().unwrap_or_default()))
        }
        Turn::Interrupt { .. } => format!("{agent} was interrupted in {channel} by a person"),
        Turn::WaitResolved { .. } => format!("{agent} continues its turn in {channel}"),
        Turn::HumanOverride { to: State::Active, .. } => {
            format!("a person gave {agent} its turn in {channel} back")
        }
        Turn::HumanOverride { .. } => format!("a person took the turn in {channel} from {agent}"),
        Turn::Disconnects { .. } => format!("{agent} is OFFLINE in {channel}"),
        Turn::AgentStarts
        | Turn::AgentStops
        | Turn::Assigned
        | Turn::RemovedFromChannel
        | Turn::WaitTimeout
        | Turn::Timeout { .. } => return None,
    })
}

/// The first line of what somebody said, behind a colon.
fn note(text: &str) -> String {
    text.lines().next().filter(|line| !line.is_empty()).map(|line| format!(": {line}")).unwrap_or_default()
}

/// What is shown under an event's line: the last lines of what failed, where nobody would find them otherwise; all that the
/// fleet stands still for.
fn beneath(world: &World, event: &Event) -> Vec<String> {
    match event {
        Event::StoodStill(said) => Standstill::of(world, said.at).map(|it| it.lines()).unwrap_or_default(),
        Event::MainTested(tested) => {
            let output = tested.red.as_deref().map(last_lines).unwrap_or_default();
            output.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

fn who(holder: &Holder) -> String {
    match holder {
        Holder::Worker(name) => name.to_string(),
        Holder::Outside(name) => name.to_string(),
    }
}

fn title(world: &World, id: &str) -> String {
    let id = machines::names::TaskId::new(id).ok();
    let task = id.and_then(|id| world.tasks.get(&id).cloned());
    task.map(|task| task.title.lines().next().unwrap_or_default().to_owned()).unwrap_or_default()
}
