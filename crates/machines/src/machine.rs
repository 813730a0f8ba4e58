//! What a machine is, and the one `step` that runs all five.
//!
//! Invariants: a refused event changes nothing; the state is entered before the actions run, so an effect never
//! shows a state that the machine is not in; at most one row takes an event.

use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A table of rows and what its guards and actions mean. The implementing type is the machine's state: plain
/// data that can be cloned, stored, compared and printed.
pub trait Machine: Clone + Sized + 'static {
    const NAME: &'static str;
    /// The number of the source document that the table comes from.
    const SEED: &'static str;
    /// Where a fresh instance stands.
    const INITIAL: Self::State;
    const TABLE: &'static [Row<Self>];
    /// States that nothing leaves.
    const FINAL: &'static [Self::State];
    /// Where an instance stands before it exists. Its rows make one, so that a creation is an event like any other;
    /// what is printed shows them as the way in to `INITIAL` and does not count it among the states.
    const BEFORE: Option<Self::State> = None;

    type State: Wire;
    type Kind: Wire;
    type Guard: Wire;
    type Action: Wire;
    type Event;
    type Effect;

    /// Where the table's rows stand by state and event, made once from the table.
    fn index() -> &'static Index;
    fn state(&self) -> Self::State;
    fn enter(&mut self, state: Self::State);
    fn kind(event: &Self::Event) -> Self::Kind;
    fn holds(&self, guard: Self::Guard, event: &Self::Event) -> bool;
    /// Changes the machine's own data and says what must happen in the world. The new state has been entered;
    /// `from` is the one before it.
    fn perform(
        &mut self,
        action: Self::Action,
        from: Self::State,
        event: &Self::Event,
        effects: &mut Vec<Self::Effect>,
    );

    /// Looks at the event before any row does: its fields, its turn number, its tools.
    fn check(&self, _event: &Self::Event) -> Result<Checked, Refusal> {
        Ok(Checked::New)
    }

    /// Whether the one who sends the event is meant by `who`. `None`: nobody asks who it is, as where the machine is only
    /// tried.
    fn permits(&self, who: Who, by: Option<Caller>, _event: &Self::Event) -> bool {
        by.is_none_or(|by| who.means(by))
    }

    /// The field that a guard asks for, where the guard is a requirement on the payload rather than a choice
    /// between rows. A missing one is answered by its name and message.
    fn requirement(_guard: Self::Guard) -> Option<FieldError> {
        None
    }

    /// The code of a refusal where no row takes the event.
    fn no_row_code(&self, _event: &Self::Event) -> (Code, &'static str) {
        (Code::NotAllowed, "no row of the table takes this event here")
    }

    /// Facts about a state that are part of the table.
    fn meta(_state: Self::State) -> Vec<(&'static str, Meta)> {
        Vec::new()
    }

    /// What the sender of `event` could send instead, from here.
    fn allowed(&self, event: &Self::Event, by: Option<Caller>) -> Vec<&'static str> {
        allowed_kinds(self, event, by).into_iter().map(|kind| kind.name()).collect()
    }
}

/// The kinds of event that have a row here which `event`'s sender may use, in the order of their declaration.
pub fn allowed_kinds<M: Machine>(machine: &M, event: &M::Event, by: Option<Caller>) -> Vec<M::Kind> {
    let open = |kind: &M::Kind| {
        rows_at(machine.state(), *kind).any(|(number, row)| permitted(machine, number, row, event, by))
    };
    M::Kind::ALL.iter().copied().filter(|kind| open(kind)).collect()
}

/// The rows of a table by state and event, so that a step looks only at those that could take it.
pub struct Index {
    kinds: usize,
    rows: Vec<Vec<u16>>,
}

impl Index {
    pub fn of<M: Machine>() -> Self {
        let kinds = M::Kind::ALL.len();
        let mut rows = vec![Vec::new(); kinds * M::State::ALL.len()];
        for (number, row) in M::TABLE.iter().enumerate() {
            let number = u16::try_from(number).expect("a table is read by people");
            rows[row.from.ordinal() * kinds + row.event.ordinal()].push(number);
        }
        Self { kinds, rows }
    }
}

/// The rows from `state` on `kind`, each with its place in the table.
pub(crate) fn rows_at<M: Machine>(
    state: M::State,
    kind: M::Kind,
) -> impl Iterator<Item = (usize, &'static Row<M>)> {
    let index = M::index();
    let numbers = &index.rows[state.ordinal() * index.kinds + kind.ordinal()];
    numbers.iter().map(|number| (usize::from(*number), &M::TABLE[usize::from(*number)]))
}

/// One row: in `from`, on `event`, if every guard holds and the sender is one of `who`, go to `to` and act.
pub struct Row<M: Machine> {
    pub from: M::State,
    pub event: M::Kind,
    pub guards: &'static [M::Guard],
    pub actions: &'static [M::Action],
    pub to: M::State,
    /// Empty where anyone may.
    pub who: &'static [Who],
}

pub const fn row<M: Machine>(
    from: M::State,
    event: M::Kind,
    guards: &'static [M::Guard],
    actions: &'static [M::Action],
    to: M::State,
    who: &'static [Who],
) -> Row<M> {
    Row { from, event, guards, actions, to, who }
}

crate::wire_enum! {
    /// The role that a caller's credential gives. Never part of a request.
    pub enum Role {
        Intern = "intern",
        Specialist = "specialist",
        Lead = "lead",
        Human = "human",
        System = "system",
    }
}

/// Who sends an event: the role that the credential gives, and whether what it moves is the sender's own. A task's machine
/// has its sender in the event, because the log keeps who moved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub role: Role,
    /// The sender is the agent whose run or place it is.
    pub own: bool,
}

impl Caller {
    /// A rule, or what came of an effect.
    pub const SYSTEM: Caller = Caller { role: Role::System, own: false };
}

/// Who may use a row: a role, and on what condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Anyone with the role.
    Any(Role),
    /// The agent whose run or place it is, whatever its role.
    Own,
    /// With the role, and assigned to the task.
    Assigned(Role),
    /// With the role, and assigning only itself.
    Claiming(Role),
    /// With the role, where the project's policy allows it; never for its own work, nor where a person must look.
    ByPolicy(Role),
    /// Named as reviewer of the task, not an assignee, not an intern. A relation, not a role.
    Reviewer,
}

impl Who {
    /// Whether the caller is meant, by role or because it is its own. Relations to a task only its own machine knows.
    fn means(self, by: Caller) -> bool {
        match self {
            Who::Any(role) => by.role == role,
            Who::Own => by.own,
            Who::Assigned(_) | Who::Claiming(_) | Who::ByPolicy(_) | Who::Reviewer => false,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Who::Any(role) | Who::Assigned(role) | Who::Claiming(role) | Who::ByPolicy(role) => role.name(),
            Who::Own => "agent",
            Who::Reviewer => "reviewer",
        }
    }

    /// The condition in words, for the printed table.
    pub fn condition(self) -> Option<&'static str> {
        match self {
            Who::Any(_) => None,
            Who::Own => Some("its own"),
            Who::Assigned(_) => Some("assigned to it"),
            Who::Claiming(_) => Some("for itself only"),
            Who::ByPolicy(_) => Some("where policy allows; not its own, nor what needs a person"),
            Who::Reviewer => Some("named for the task"),
        }
    }
}

/// A fact about a state: yes or no, or a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Meta {
    Is(bool),
    Text(&'static str),
}

/// What `check` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    New,
    /// The same event was taken before: it is answered again and nothing is done twice.
    Repeated,
}

/// The row that took an event, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<S> {
    /// `None` where the event was a repetition.
    pub row: Option<usize>,
    pub from: S,
    pub to: S,
}

/// What a step asks for: somebody carries it out, or says why not.
#[must_use = "what a row asks for is carried out, or the row says something that is not so"]
#[derive(Clone, Debug, PartialEq)]
pub struct Advanced<M: Machine> {
    pub taken: Taken<M::State>,
    pub effects: Vec<M::Effect>,
}

/// A step that was taken, as values.
#[must_use = "what a row asks for is carried out, or the row says something that is not so"]
#[derive(Clone, Debug, PartialEq)]
pub struct Step<M: Machine> {
    pub state: M,
    pub effects: Vec<M::Effect>,
    pub taken: Taken<M::State>,
}

/// One missing or wrong field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    pub field: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

impl FieldError {
    pub fn new(field: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

crate::wire_enum! {
    /// Why an event was refused. The run machine's codes are the source document's.
    pub enum Code {
        /// No row from this state takes the event: 409.
        NotAllowed = "NOT_ALLOWED",
        /// A row would take it, but not from this sender: 403.
        Forbidden = "FORBIDDEN",
        /// A row would take it if the named fields were there: 422.
        MissingField = "MISSING_FIELD",
        /// A field is there and wrong: 422.
        InvalidField = "INVALID_FIELD",
        /// Not an event of this machine at all: 400.
        Malformed = "MALFORMED",
        StaleTurn = "STALE_TURN",
        TaskNotFound = "TASK_NOT_FOUND",
        AgentAlreadyRunning = "AGENT_ALREADY_RUNNING",
        AgentToolNotAllowed = "AGENT_TOOL_NOT_ALLOWED",
        AgentTurnLimitExceeded = "AGENT_TURN_LIMIT_EXCEEDED",
        AgentExecutionError = "AGENT_EXECUTION_ERROR",
        AgentNotRunning = "AGENT_NOT_RUNNING",
        AgentNoAvailableTask = "AGENT_NO_AVAILABLE_TASK",
    }
}

impl Code {
    /// The class of the answer over HTTP.
    pub fn status(self) -> u16 {
        match self {
            Code::Malformed => 400,
            Code::Forbidden | Code::AgentToolNotAllowed => 403,
            Code::TaskNotFound => 404,
            Code::MissingField | Code::InvalidField => 422,
            Code::AgentTurnLimitExceeded => 200,
            // As a refusal: the error was the agent's, and the answer is about the state that it left.
            Code::AgentExecutionError
            | Code::NotAllowed
            | Code::StaleTurn
            | Code::AgentAlreadyRunning
            | Code::AgentNotRunning
            | Code::AgentNoAvailableTask => 409,
        }
    }
}

/// A rule said no. Nothing is wrong with the program: the answer says where the machine stands and what it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub machine: &'static str,
    pub state: &'static str,
    pub event: &'static str,
    pub code: Code,
    pub message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    pub allowed: Vec<&'static str>,
}

impl Refusal {
    pub fn of<M: Machine>(
        machine: &M,
        event: &M::Event,
        code: Code,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            machine: M::NAME,
            state: machine.state().name(),
            event: M::kind(event).name(),
            code,
            message: message.into(),
            errors: Vec::new(),
            allowed: machine.allowed(event, None),
        }
    }

    pub fn with(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} does not take `{}`: {}", self.machine, self.state, self.event, self.message)?;
        for error in &self.errors {
            write!(f, "; {}: {}", error.field, error.message)?;
        }
        if self.allowed.is_empty() { Ok(()) } else { write!(f, " (allowed: {})", self.allowed.join(", ")) }
    }
}

impl std::error::Error for Refusal {}

/// Takes `event` in `state` and gives the new state with its effects, or says why not. Nobody asks who sends it.
pub fn step<M: Machine>(state: &M, event: &M::Event) -> Result<Step<M>, Refusal> {
    let mut state = state.clone();
    let Advanced { taken, effects } = advance(&mut state, event, None)?;
    Ok(Step { state, effects, taken })
}

/// Whether the event would be taken from the sender. Nothing is changed, so nothing is asked for.
pub fn would_take<M: Machine>(machine: &M, event: &M::Event, by: Caller) -> Result<(), Refusal> {
    if machine.check(event)? == Checked::Repeated {
        return Ok(());
    }
    find_row(machine, event, Some(by)).map(drop).ok_or_else(|| refuse(machine, event, Some(by)))
}

/// `step` in place. A refusal leaves the machine as it was: everything is looked at before anything is changed.
pub fn advance<M: Machine>(
    machine: &mut M,
    event: &M::Event,
    by: Option<Caller>,
) -> Result<Advanced<M>, Refusal> {
    let mut effects = Vec::new();
    let taken = advance_into(machine, event, by, &mut effects)?;
    Ok(Advanced { taken, effects })
}

/// `advance` for whoever keeps a list of effects to add to.
pub fn advance_into<M: Machine>(
    machine: &mut M,
    event: &M::Event,
    by: Option<Caller>,
    effects: &mut Vec<M::Effect>,
) -> Result<Taken<M::State>, Refusal> {
    let from = machine.state();
    if machine.check(event)? == Checked::Repeated {
        return Ok(Taken { row: None, from, to: from });
    }
    let Some((number, row)) = find_row(machine, event, by) else { return Err(refuse(machine, event, by)) };
    run_row(machine, number, row, event, effects);
    Ok(Taken { row: Some(number), from, to: machine.state() })
}

/// Takes `event` again as the log has it: the row was chosen when it was written, so a guard is asked only where several
/// rows lead to the same state. `None` where none leads from here to `to` on this event: the log was written by a table
/// that this one is not. What the
/// row asks for was carried out then, except for what is made of the log each time that it is read.
pub fn replay<M: Machine>(machine: &mut M, event: &M::Event, to: M::State) -> Option<Vec<M::Effect>> {
    let kind = M::kind(event);
    let mut rows = rows_at::<M>(machine.state(), kind).filter(|(_, row)| row.to == to);
    let first = rows.next()?;
    let (number, row) = match rows.next() {
        None => first,
        Some(second) => {
            let mut all = [first, second].into_iter().chain(rows);
            all.find(|(_, row)| guarded(machine, row, event)).unwrap_or(first)
        }
    };
    let mut effects = Vec::new();
    run_row(machine, number, row, event, &mut effects);
    Some(effects)
}

/// Whether any row takes this kind of event from the caller, wherever the machine stands. For machines whose events do not
/// name their sender.
pub fn may_send<M: Machine>(kind: M::Kind, by: Caller) -> bool {
    let mut of_kind = M::TABLE.iter().enumerate().filter(|(_, row)| row.event == kind);
    of_kind.any(|(number, row)| {
        sabotage::lets_all(M::NAME, number) || row.who.is_empty() || row.who.iter().any(|who| who.means(by))
    })
}

/// Every row that would take the event. More than one is a fault of the table; a test walks for it.
pub fn rows_taking<M: Machine>(machine: &M, event: &M::Event) -> Vec<usize> {
    let takes = |number: usize, row: &Row<M>| {
        guarded(machine, row, event) && permitted(machine, number, row, event, None)
    };
    let rows = rows_at::<M>(machine.state(), M::kind(event));
    rows.filter(|(number, row)| takes(*number, row)).map(|(number, _)| number).collect()
}

fn find_row<M: Machine>(
    machine: &M,
    event: &M::Event,
    by: Option<Caller>,
) -> Option<(usize, &'static Row<M>)> {
    rows_at::<M>(machine.state(), M::kind(event))
        .find(|(number, row)| guarded(machine, row, event) && permitted(machine, *number, row, event, by))
}

fn run_row<M: Machine>(
    machine: &mut M,
    number: usize,
    row: &Row<M>,
    event: &M::Event,
    effects: &mut Vec<M::Effect>,
) {
    machine.enter(row.to);
    for (place, action) in row.actions.iter().enumerate() {
        if let Some(action) = sabotage::performed(M::NAME, number, place, *action) {
            machine.perform(action, row.from, event, effects);
        }
    }
}

fn guarded<M: Machine>(machine: &M, row: &Row<M>, event: &M::Event) -> bool {
    row.guards.iter().all(|guard| machine.holds(*guard, event))
}

fn permitted<M: Machine>(
    machine: &M,
    number: usize,
    row: &Row<M>,
    event: &M::Event,
    by: Option<Caller>,
) -> bool {
    sabotage::lets_all(M::NAME, number)
        || row.who.is_empty()
        || row.who.iter().any(|who| machine.permits(*who, by, event))
}

/// The most helpful reason: the wrong state first, then the role, then what is missing.
#[cold]
fn refuse<M: Machine>(machine: &M, event: &M::Event, by: Option<Caller>) -> Refusal {
    let refusal = |code, message: &'static str| Refusal {
        allowed: machine.allowed(event, by),
        ..Refusal::of(machine, event, code, message)
    };
    let here = || rows_at::<M>(machine.state(), M::kind(event));
    let may = |(number, row): &(usize, &Row<M>)| permitted(machine, *number, row, event, by);
    if here().next().is_none() {
        let (code, message) = machine.no_row_code(event);
        return refusal(code, message);
    }
    if !here().any(|row| may(&row)) {
        return refusal(Code::Forbidden, "the caller's role may not make this move");
    }
    // Of the rows that this sender may use, the one that fails only in what it requires says what is missing.
    for (_, row) in here().filter(may) {
        let failing: Vec<_> = row.guards.iter().filter(|guard| !machine.holds(**guard, event)).collect();
        let missing: Vec<_> = failing.iter().filter_map(|guard| M::requirement(**guard)).collect();
        if missing.len() == failing.len() {
            return refusal(Code::MissingField, "something that the move requires is missing").with(missing);
        }
    }
    let (code, message) = machine.no_row_code(event);
    refusal(code, message)
}

/// One cell of a table, changed for as long as a test runs: whoever prints a table that nobody would miss a cell of prints
/// something that does not run. Nothing of it is in a program that is not built for tests.
pub mod sabotage {
    use crate::wire::Wire;

    /// What is changed of a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Change {
        /// The action at this place is left out.
        LeaveOut(usize),
        /// Another action stands at this place: the one at `with` in the list of the machine's actions.
        Replace { place: usize, with: usize },
        /// Anyone may use the row.
        LetAll,
    }

    #[cfg(feature = "sabotage")]
    thread_local! {
        static CHANGED: std::cell::Cell<Option<(&'static str, usize, Change)>> = const { std::cell::Cell::new(None) };
    }

    /// Runs `body` with the machine's row changed, on this thread alone.
    #[cfg(feature = "sabotage")]
    pub fn with<R>(machine: &'static str, row: usize, change: Change, body: impl FnOnce() -> R) -> R {
        struct PutBack;
        impl Drop for PutBack {
            fn drop(&mut self) {
                CHANGED.set(None);
            }
        }
        CHANGED.set(Some((machine, row, change)));
        let _put_back = PutBack;
        body()
    }

    #[cfg(feature = "sabotage")]
    fn change_of(machine: &'static str, row: usize) -> Option<Change> {
        let (changed, number, change) = CHANGED.get()?;
        (changed == machine && number == row).then_some(change)
    }

    #[cfg(not(feature = "sabotage"))]
    fn change_of(_: &'static str, _: usize) -> Option<Change> {
        None
    }

    /// The action that is performed where the row has `action`.
    pub(super) fn performed<A: Wire>(machine: &'static str, row: usize, at: usize, action: A) -> Option<A> {
        match change_of(machine, row) {
            Some(Change::LeaveOut(place)) if place == at => None,
            Some(Change::Replace { place, with }) if place == at => A::ALL.get(with).copied(),
            Some(Change::LeaveOut(_) | Change::Replace { .. } | Change::LetAll) | None => Some(action),
        }
    }

    pub(super) fn lets_all(machine: &'static str, row: usize) -> bool {
        change_of(machine, row) == Some(Change::LetAll)
    }
}
