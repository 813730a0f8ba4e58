//! The project that a command works on: where it is, and how to ask it something.
//!
//! Where a process owns the project and listens, every request goes there. Otherwise the same handlers answer in this
//! process: a question opens the log for reading, and anything else makes this process the owner for as long as it
//! takes.

use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::address::Address;
use super::client::Client;
use super::download::Download;
use super::text::shown;
use super::{Exit, Failure, Globals};
use api::operation::EXPORT;
use api::types::fleet::Fleet;
use api::types::host::Finding;
use api::types::{Nothing, Page};
use api::{self, Host, Method, Problem, ProjectAccess, Reading, Request};
use kernel::World;
use log::owner::{self, Handle, Owner, SubmitError};
use log::{self, Location, Log, MemoryLog, Record, Seq};
use project::layout::{self, Layout, Moved};
use project::settings::trust;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use server::{self, Caller, Tokens};

/// A command that finds the project held waits in line, as long as the line moves: most commands are over in a moment.
/// One and the same process is waited for so long, and all of them together for so long.
const HELD_WAIT: Duration = Duration::from_secs(5);
const LINE_WAIT: Duration = Duration::from_secs(300);
/// How often is looked, at first and later on.
const HELD_POLL: Duration = Duration::from_millis(20);
const HELD_POLL_MAX: Duration = Duration::from_millis(160);
/// Whoever has waited for so long is told what for.
const HELD_SAID: Duration = Duration::from_secs(1);

/// The project, found.
#[derive(Clone)]
pub struct Project {
    layout: Layout,
    client: Client,
    /// The owner was named: where it does not listen, nobody answers for it.
    named: bool,
    /// Its files are on another machine, or might be.
    away: bool,
    /// Nothing is said beside what was asked for.
    quiet: bool,
    caller: Result<Caller, String>,
}

impl Project {
    /// `--project`, or the git repository around the current directory. From a linked worktree it is the main one.
    pub fn find(globals: &Globals) -> Result<Project, Failure> {
        if let Some(server) = &globals.server {
            return Project::served(server, globals);
        }
        let start = match &globals.project[..] {
            [] => PathBuf::from("."),
            [folder] => folder.clone(),
            [first, .., last] => {
                let message = format!("two projects are named, `{}` and `{}`", shown(first), shown(last));
                return Err(Failure::new(Exit::Usage, message)
                    .hint("only `adj serve` takes several; name one of them"));
            }
        };
        let start = start.canonicalize().map_err(|error| {
            Failure::not_found(format!("there is no folder `{}`: {error}", shown(&start)))
        })?;
        let root = layout::repository_around(&start).ok_or_else(|| {
            Failure::not_found(format!("`{}` is not in a git repository", shown(&start)))
                .hint("change to one, name one with --project DIR, or create one with `git init`")
        })?;
        let (layout, moved) = Layout::open(root);
        match moved {
            Some(Moved::To(to)) if !globals.quiet => {
                eprintln!(
                    "note: `.adjutant` was moved to `{}`, where `git clean` leaves it alone",
                    shown(&to)
                );
            }
            Some(Moved::Not(why)) if !globals.quiet => eprintln!("warning: {why}"),
            _ => {}
        }
        let socket = layout.socket();
        Ok(Project::at(layout, socket, false, globals))
    }

    /// Says that the settings file is invalid, to whoever is about to use it: on standard error, where no document is printed. Over a
    /// server its own terminal says so.
    pub fn warn_of_invalid_settings(globals: &Globals) {
        let told = globals.quiet || globals.server.is_some();
        let agent = std::env::var_os("ADJ_TOKEN").is_some();
        let found = (!told && !agent).then(|| Project::find(globals).ok()).flatten();
        if let Some(project) = found
            && let Err(error) = fleet::apply_settings::read(&project.layout)
        {
            let error = error.to_string();
            let first = error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            eprintln!("warning: adjutant.toml is invalid, so the previous settings stay in force: {first}");
            eprintln!("hint: `adj config check` lists all that is wrong with it");
        }
    }

    /// All that are named; where none is, the one around the current directory.
    pub fn find_all(globals: &Globals) -> Result<Vec<Project>, Failure> {
        if globals.server.is_some() || globals.project.len() < 2 {
            return Ok(vec![Project::find(globals)?]);
        }
        let one =
            |folder: &PathBuf| Project::find(&Globals { project: vec![folder.clone()], ..globals.clone() });
        globals.project.iter().map(one).collect()
    }

    /// How it is called among others: its folder's name, in the alphabet of names.
    pub fn name(&self) -> String {
        let name = self.root().file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let name: String = name.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
        let name = name.trim_matches(['-', '.']).to_owned();
        if machines::names::check(&name).is_ok() { name } else { "project".to_owned() }
    }

    /// `--server unix:PATH`: the owner that listens there, wherever this is.
    fn served(server: &str, globals: &Globals) -> Result<Project, Failure> {
        // A password in it would be shown on the screen, and in the log of whatever runs this.
        if let Some((scheme, rest)) = server.split_once("://")
            && let Some((_, host)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
        {
            let message =
                format!("an address holds no user and no password: `{scheme}://…@{}`", host.escape_debug());
            return Err(Failure::new(Exit::Usage, message)
                .hint("set ADJ_TOKEN to the token, and leave out what stands before the `@`"));
        }
        let cannot = || Failure::new(Exit::Unreachable, format!("cannot reach `{}`", server.escape_debug()));
        if let Some(address) = Address::read(server) {
            return Project::away(address, super::set_variable("ADJ_TOKEN"), globals);
        }
        let Some(path) = server.strip_prefix("unix:") else {
            return Err(cannot().hint("an address is https://HOST, http://127.0.0.1:PORT or unix:PATH"));
        };
        let socket = std::path::absolute(path).map_err(|_| cannot())?;
        let folder = server::folder_of(&socket);
        let git_dir = folder.parent().unwrap_or(folder);
        let root = if git_dir.file_name() == Some(".git".as_ref()) { git_dir.parent() } else { None };
        Ok(Project::at(Layout::new(root.unwrap_or(git_dir)), socket, true, globals))
    }

    /// `--server https://HOST`: a server that may be on another machine. Nothing of the project is on this one.
    pub(super) fn away(
        address: Address,
        token: Option<String>,
        globals: &Globals,
    ) -> Result<Project, Failure> {
        if !address.is_safe() {
            let message = format!("{address} would send your token where others can read it");
            return Err(Failure::new(Exit::Refused, message).hint("use https://"));
        }
        let client = Client::at(address, token, user());
        let layout = Layout::new("/nonexistent");
        Ok(Project { layout, client, named: true, away: true, quiet: globals.quiet, caller: Ok(person()) })
    }

    /// Where requests go, for people.
    pub fn place(&self) -> String {
        self.client.place()
    }

    /// Its files are on another machine, or might be.
    pub fn is_away(&self) -> bool {
        self.away
    }

    /// Writes the whole log as the server sends it, and says how many records there were.
    pub fn export_from_away(&self, out: &mut dyn Write) -> Result<u64, Failure> {
        let mut whole = Download::new(out);
        self.client.download(&self.request(Method::Get, "/export"), EXPORT, &mut whole)?;
        whole.records()
    }

    /// For what works on the project's files.
    pub fn check_here(&self, what: &str) -> Result<(), Failure> {
        if !self.away {
            return Ok(());
        }
        let message = format!("{what} works on the files of the project, and these are where the server is");
        Err(Failure::new(Exit::Usage, message).hint("run it there, without --server"))
    }

    fn at(layout: Layout, socket: PathBuf, named: bool, globals: &Globals) -> Project {
        let folder = server::folder_of(&socket).to_owned();
        let token = super::set_variable("ADJ_TOKEN");
        let caller = caller(&folder, token.as_deref());
        let client = Client::new(socket, log_in(&folder), token, user());
        Project { layout, client, named, away: false, quiet: globals.quiet, caller }
    }

    pub fn log_path(&self) -> PathBuf {
        self.layout.log()
    }

    /// The log for reading; `None` where none has been begun.
    pub fn read_log(&self) -> Result<Option<Box<dyn Log>>, Problem> {
        Ok(server::log_file::read(&self.log_path())?)
    }

    /// The log for its owner, which this process becomes.
    pub fn own_log(&self) -> Result<Box<dyn Log>, Failure> {
        self.make_folder()?;
        Ok(log::open(&Location::File(self.log_path())).map_err(Problem::from)?)
    }

    /// The same for a fleet, which waits a moment where the log is held: a command is over soon, and a process that was
    /// killed while it started another lets go only when that one is on its way.
    pub fn own_log_soon(&self) -> Result<Box<dyn Log>, Failure> {
        let mut line = Line::new(self);
        loop {
            match self.own_log() {
                Err(failure) if failure.exit() == Exit::Unreachable && line.wait() => {}
                owned => return owned,
            }
        }
    }

    /// For the user alone: the token is in it.
    fn make_folder(&self) -> Result<(), Failure> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = self.folder();
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Failure::new(Exit::Failed, format!("cannot write to `{}`: {error}", shown(&folder))))
            }
            _ => Ok(()),
        }
    }

    /// Where everything of it is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Ours, in the repository's git directory.
    pub fn folder(&self) -> PathBuf {
        self.layout.state()
    }

    /// The main checkout, or the bare repository.
    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Where a task's tree is, from the name that the log has for it.
    pub fn tree(&self, name: &str) -> PathBuf {
        if self.away {
            let fleet: Option<Fleet> = self.get("/fleet").ok();
            return PathBuf::from(fleet.map(|fleet| fleet.trees).unwrap_or_default())
                .join(name.rsplit('/').next().unwrap_or(name));
        }
        // Where they stand is written down; without that, it is what the settings in force say.
        let settings = trust::in_force(&self.layout).map(|in_force| in_force.settings).unwrap_or_default();
        self.layout.trees(&settings.fleet.trees).join(name.rsplit('/').next().unwrap_or(name))
    }

    /// What is not in the log.
    pub fn host(&self) -> Arc<dyn Host> {
        Arc::new(server::real_host::RealHost::new(self.layout.clone()))
    }

    /// What is there, as one document.
    pub fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, Failure> {
        self.get_with(path, &Nothing {})
    }

    /// The same, with what stands behind the `?`.
    pub fn get_with<A: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<A, Failure> {
        let request = Request { query: encoded(query)?, ..self.request(Method::Get, path) };
        match self.over_socket(&request)? {
            Some(answer) => understood(answer),
            None => understood(self.answered(&*self.reading()?, &request)?),
        }
    }

    /// Every page of a list, one after the other. Without an owner they are all of one moment.
    pub fn get_all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<Vec<T>, Failure> {
        let mut reading: Option<Box<dyn api::Project>> = None;
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        loop {
            // Every list takes these two.
            let mut page = form_urlencoded::Serializer::new(encoded(query)?);
            page.extend_pairs(after.iter().map(|after| ("after", after)));
            page.append_pair("limit", &api::types::PAGE_MAX.to_string());
            let request = Request { query: page.finish(), ..self.request(Method::Get, path) };
            let answer = match &reading {
                Some(reading) => self.answered(&**reading, &request)?,
                None => match self.over_socket(&request)? {
                    Some(answer) => answer,
                    None => {
                        reading = Some(self.reading()?);
                        continue;
                    }
                },
            };
            let page: Page<T> = understood(answer)?;
            items.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// Asks for a change that needs no key.
    pub fn post<A: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<A, Failure> {
        self.ask(Method::Post, path, body, None)
    }

    /// Asks for a change: the owner where one runs, otherwise as the owner for as long as it takes.
    pub fn ask<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<A, Failure> {
        let body =
            serde_json::to_value(body).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        let request =
            Request { body, x_idempotency_key: key.map(str::to_owned), ..self.request(method, path) };
        let mut line = Line::new(self);
        loop {
            if let Some(answer) = self.over_socket(&request)? {
                return understood(answer);
            }
            self.check_caller()?;
            match self.own() {
                Ok(owner) => {
                    self.apply_settings(&owner.handle());
                    // What cannot be told now, such as a ticket with a fault, is told by `adj doctor`.
                    let _ = fleet::see_alone(&owner.handle(), &self.layout);
                    let answer = self.answered(&owner.handle(), &request);
                    self.after_one_shot(&owner.handle());
                    return understood(answer?);
                }
                // Another command, over in a moment; or an owner that has begun and does not listen yet.
                Err(failure) if failure.exit() == Exit::Unreachable && line.wait() => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Puts the settings in force before anything is decided. If that is impossible, those of before stay in force.
    fn apply_settings(&self, handle: &Handle) {
        let _ = fleet::apply_settings::apply(handle, &self.layout);
    }

    /// What a command that is its own owner does before it lets the project go. It has decided and is durable; what it
    /// asked of the world waits for `adj run`, except for the ticket files, which people look at right away.
    fn after_one_shot(&self, handle: &Handle) {
        // What cannot be written now is written by the fleet.
        let _ = fleet::write_alone(handle, &self.layout);
    }

    /// The process that runs a fleet here, if one does.
    pub fn running(&self) -> Result<Option<u32>, Failure> {
        let request = self.request(Method::Get, "/fleet");
        let Some(answer) = self.over_socket(&request)? else { return Ok(None) };
        Ok(understood::<Fleet>(answer)?.pid)
    }

    /// A hint for whoever asked for something that only a fleet does, where none runs.
    pub fn hint_without_fleet(&self, globals: &Globals, hint: &str) {
        let asked = !globals.json && !globals.quiet;
        // What was asked for is done; that this cannot be known is no reason to say otherwise.
        if asked && self.get("/fleet").is_ok_and(|fleet: Fleet| !fleet.running) {
            eprintln!("hint: {hint}");
        }
    }

    /// A hint about what was just done, whoever does the rest of it.
    pub fn hint(globals: &Globals, hint: &str) {
        if !globals.json && !globals.quiet {
            eprintln!("hint: {hint}");
        }
    }

    fn own(&self) -> Result<Owner, Failure> {
        self.owner_of(self.own_log()?)
    }

    /// The owner of this project's log, in whatever process: no token comes into it.
    pub fn owner_of(&self, log: Box<dyn Log>) -> Result<Owner, Failure> {
        let folder = self.folder();
        let hashes = move || Tokens::read(&folder).map(|tokens| tokens.hashes()).unwrap_or_default();
        let settings = owner::Settings { secrets: owner::Secrets::by(hashes), ..owner::Settings::default() };
        Ok(Owner::open_with(log, settings).map_err(Problem::from)?)
    }

    fn reading(&self) -> Result<Box<dyn api::Project>, Failure> {
        self.check_caller()?;
        let Some(log) = self.read_log()? else { return self.not_begun() };
        let reading = Reading::new(Some(log))?;
        if self.see_tickets(&reading) {
            return Ok(Box::new(Reading::new(self.read_log()?)?));
        }
        Ok(Box::new(reading))
    }

    /// A project whose log has not been begun, with its tickets as they are. Whoever only looks begins none.
    fn not_begun(&self) -> Result<Box<dyn api::Project>, Failure> {
        let owner = Owner::open(Box::new(MemoryLog::new())).map_err(Problem::from)?;
        // What cannot be told now, such as a ticket with a fault, is told by `adj doctor`.
        let _ = fleet::see_alone(&owner.handle(), &self.layout);
        Ok(Box::new(NotBegun { owner }))
    }

    /// Tickets are files: whoever asks sees them as they are, also before a fleet has run. What they say goes through an
    /// owner; where there is none to be had, the log says what it knows. True: something new was told.
    fn see_tickets(&self, reading: &Reading) -> bool {
        let layout = &self.layout;
        let untold = fleet::untold(&fleet::look_alone(layout), &api::Project::world(reading));
        // A log that is not begun is not begun for nothing.
        if untold.is_empty() {
            return false;
        }
        let Ok(owner) = self.own() else { return false };
        self.apply_settings(&owner.handle());
        let told = fleet::see_alone(&owner.handle(), layout).is_ok();
        self.after_one_shot(&owner.handle());
        told
    }

    /// Says where the previous settings stay in force because the file is gone.
    pub fn warn_of_settings(&self, globals: &Globals) {
        if !globals.json && !globals.quiet && project::settings::trust::is_gone(&self.layout) {
            eprintln!("warning: {}", project::settings::trust::GONE);
        }
    }

    /// The same, and which files are no tickets: what is not in the list that follows.
    pub fn warn_of_tickets(&self, globals: &Globals) {
        if globals.json || globals.quiet {
            return;
        }
        self.warn_of_settings(globals);
        let problems: Vec<Finding> = self.get_all("/tickets/problems", &Nothing {}).unwrap_or_default();
        for Finding { subject, text, hint, .. } in problems {
            let hint = super::text::dash(hint);
            let [subject, text, hint] = [subject, text, hint].map(|said| super::text::visible(&said));
            eprintln!("warning: {subject}: {text}; {hint}");
        }
    }

    /// `None`: nobody owns the project for longer than a command takes.
    fn over_socket(&self, request: &Request) -> Result<Option<Value>, Failure> {
        match self.client.send(request)? {
            Some((status, body)) if status < 400 => Ok(Some(body)),
            Some((status, body)) => Err(Failure::of_problem(status, body)),
            None if self.named => {
                let place = self.client.place();
                Err(Failure::new(Exit::Unreachable, format!("no fleet is running at `{place}`"))
                    .hint("start it with `adj run`, or omit --server and ADJ_SERVER"))
            }
            None => Ok(None),
        }
    }

    /// Without an owner whoever can write the files may ask. A token that is shown is looked at all the same.
    fn check_caller(&self) -> Result<(), Failure> {
        match &self.caller {
            Ok(_) => Ok(()),
            Err(why) => Err(Failure::new(Exit::Refused, why.clone())
                .hint("it is an agent's, and ends with its run; a person needs none")),
        }
    }

    /// For what works on the files themselves.
    pub fn check_person(&self, what: &str) -> Result<(), Failure> {
        self.check_caller()?;
        match &self.caller {
            Ok(caller) if !caller.actor.is_human() => {
                Err(Failure::new(Exit::Refused, format!("the caller's role may not {what}")))
            }
            _ => Ok(()),
        }
    }

    /// The process that owns the project now, as it says itself.
    pub fn owner(&self) -> Option<log::Holder> {
        log::holder(&log_in(&self.folder()))
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Request {
        // Over the socket the token says who asks, and this is not sent.
        let Caller { actor, run, seat, reply, token, reads_only, .. } =
            self.caller.clone().unwrap_or_else(|_| person());
        Request {
            method,
            path: format!("/api/v1{path}"),
            query: String::new(),
            body: Value::Null,
            actor,
            run,
            seat,
            reply,
            reads_only,
            token,
            id: base::clock::unique(),
            at: base::clock::now(),
            x_idempotency_key: None,
            idempotency_key: None,
        }
    }

    fn answered(&self, project: &dyn api::Project, request: &Request) -> Result<Value, Failure> {
        let host = self.host();
        let answer =
            api::answer(&ProjectAccess { project, host: &*host, control: None, given_up: None }, request);
        if answer.status < 400 {
            Ok(answer.body)
        } else {
            Err(Failure::of_problem(answer.status, answer.body))
        }
    }
}

/// What the log would hold if somebody began it now. It is never written.
struct NotBegun {
    owner: Owner,
}

impl api::Project for NotBegun {
    fn world(&self) -> Arc<World> {
        self.owner.handle().world()
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
        api::Project::scan(&self.owner.handle(), after, visit)
    }

    fn stream_between(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, Problem> {
        api::Project::stream_between(&self.owner.handle(), stream, after, through)
    }

    fn submit(&self, _: kernel::Command) -> Result<kernel::Answer, SubmitError> {
        Err(SubmitError::Log(log::LogError::ReadOnly))
    }
}

/// The line of those who want to own the project for a moment. Nobody has a number in it: whoever looks when it is free is next.
struct Line<'p> {
    project: &'p Project,
    begun: Instant,
    /// Who was last seen to hold the project, and since when.
    holder: Option<log::Holder>,
    since: Instant,
    pause: Duration,
    said: bool,
}

impl Line<'_> {
    fn new(project: &Project) -> Line<'_> {
        let now = Instant::now();
        Line { project, begun: now, holder: None, since: now, pause: HELD_POLL, said: false }
    }

    /// Waits a little. False: it has been long enough.
    fn wait(&mut self) -> bool {
        let now = Instant::now();
        // While one lets go and the next takes it, nobody is named.
        if let Some(holder) = self.project.owner()
            && self.holder.as_ref() != Some(&holder)
        {
            self.holder = Some(holder);
            self.since = now;
        }
        if now - self.since >= HELD_WAIT || now - self.begun >= LINE_WAIT {
            return false;
        }
        if now - self.begun >= HELD_SAID && !self.said && !self.project.quiet {
            let who = self.holder.as_ref().map(|holder| format!(" (now pid {})", holder.pid));
            eprintln!("note: waiting for other commands to finish{}", who.unwrap_or_default());
            self.said = true;
        }
        // Many who look at once would only keep each other from working.
        let part = u32::try_from(base::clock::unique() % 64).unwrap_or_default();
        std::thread::sleep(self.pause / 2 + self.pause * part / 64);
        self.pause = (self.pause * 2).min(HELD_POLL_MAX);
        true
    }
}

/// The log of the project whose socket is in this folder.
fn log_in(folder: &Path) -> Location {
    Location::File(folder.join(layout::LOG))
}

/// Who asks where no owner does the asking: the agent whose token is in the environment, or a person.
fn caller(folder: &Path, token: Option<&str>) -> Result<Caller, String> {
    let Some(token) = token else { return Ok(person()) };
    let tokens = Tokens::read(folder).map_err(|error| error.to_string())?;
    tokens
        .caller(token, &user(), base::clock::now())
        .ok_or_else(|| "ADJ_TOKEN is not a token that this project knows".to_owned())
}

fn person() -> Caller {
    Caller::person(&user())
}

pub(super) fn encoded(query: &impl Serialize) -> Result<String, Failure> {
    serde_urlencoded::to_string(query).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

/// An answer as what it should be.
pub(super) fn understood<A: DeserializeOwned>(answer: Value) -> Result<A, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        Failure::new(Exit::Unreachable, format!("cannot read the answer of the running fleet: {error}"))
            .hint("it may be of another version: `adj stop`, then `adj run` again")
    })
}

/// Whoever may read the project's files is its user; the name is for the record.
fn user() -> String {
    let names = ["ADJ_USER", "USER", "LOGNAME"];
    let name = names.iter().find_map(|name| super::set_variable(name));
    // Services and containers often set none of them.
    let known = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name);
    let name = name.or_else(known).filter(|name| machines::names::check(name).is_ok());
    name.unwrap_or_else(|| "local".to_owned())
}
