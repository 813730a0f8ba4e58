//! Where a live view reads a project: in the process that owns it, or over that process's socket or address.

use std::sync::Arc;

use super::Failure;
use super::project::{Project, encoded, understood};
use api::types::Page;
use api::types::overview::{Overview, StoryLine, StoryQuery};
use api::types::{Cursor, Limit, Nothing, PAGE_MAX};
use api::{Control, Host, Method, ProjectAccess, Request};
use log::owner::Handle;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub trait LiveSource: Send + Sync {
    /// What the fleet does now.
    fn overview(&self) -> Result<Overview, Failure>;
    /// What it has told behind the line of this number.
    fn story(&self, after: u64) -> Result<Vec<StoryLine>, Failure>;
}

impl LiveSource for Project {
    fn overview(&self) -> Result<Overview, Failure> {
        self.get("/overview")
    }

    fn story(&self, after: u64) -> Result<Vec<StoryLine>, Failure> {
        pages(after, |query| self.get_with("/story", query))
    }
}

/// A project that this process owns: the same routes answer, without a connection.
pub struct OwnedProject {
    project: Project,
    handle: Handle,
    host: Arc<dyn Host>,
    control: Arc<dyn Control>,
}

impl OwnedProject {
    pub fn new(project: &Project, handle: Handle, control: Arc<dyn Control>) -> OwnedProject {
        OwnedProject { host: project.host(), project: project.clone(), handle, control }
    }

    fn get<A: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<A, Failure> {
        let request = Request { query: encoded(query)?, ..self.project.request(Method::Get, path) };
        let access = ProjectAccess {
            project: &self.handle,
            host: &*self.host,
            control: Some(&*self.control),
            given_up: None,
        };
        let answer = api::answer(&access, &request);
        match answer.status {
            ..400 => understood(answer.body),
            status => Err(Failure::of_problem(status, answer.body)),
        }
    }
}

impl LiveSource for OwnedProject {
    fn overview(&self) -> Result<Overview, Failure> {
        self.get("/overview", &Nothing {})
    }

    fn story(&self, after: u64) -> Result<Vec<StoryLine>, Failure> {
        pages(after, |query| self.get("/story", query))
    }
}

/// Every line behind this one, page after page.
fn pages(
    mut after: u64,
    read: impl Fn(&StoryQuery) -> Result<Page<StoryLine>, Failure>,
) -> Result<Vec<StoryLine>, Failure> {
    let mut lines = Vec::new();
    loop {
        let limit = Some(Limit(PAGE_MAX));
        let page = read(&StoryQuery { after: Some(Cursor(after)), limit, wait: false })?;
        after = page.items.last().map_or(after, |line| line.number);
        lines.extend(page.items);
        if page.next.is_none() {
            return Ok(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Address;
    use super::super::hosted::{Switch, SwitchControl};
    use super::super::live::LiveView;
    use super::super::screen::Screen;
    use super::super::serve::{self, Listen};
    use super::super::terminal::Paint;
    use super::super::{Globals, story_lines};
    use super::*;
    use clap::Parser;
    use serde_json::{Value, json};
    use server::{HttpServer, Listener, Socket};
    use std::collections::BTreeMap;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        listen: Listen,
    }

    /// All that a terminal of this size would show.
    fn lines(source: &dyn LiveSource, (width, height): (usize, usize)) -> Vec<String> {
        // It is asked for at several moments; that is no difference.
        let overview = Overview { at: "2026-01-02T03:04:05.000Z".to_owned(), ..source.overview().unwrap() };
        let mut out = Vec::new();
        let screen = Screen::new(&mut out, Paint::none(), true, false, "in a project".to_owned(), 0);
        let told = source.story(0).unwrap().into_iter();
        let told = told.map(|line| story_lines::print(&line.into(), Paint::none(), width));
        told.chain(screen.frame(&LiveView::new(&overview, 0), width, height)).collect()
    }

    /// Whoever watches sees the same, wherever that is.
    #[test]
    fn a_view_has_the_same_lines_in_the_owning_process_over_its_socket_and_over_its_address() {
        // No hidden name: some things are not done in a hidden folder.
        let folder = tempfile::Builder::new().prefix("adj-test-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = std::process::Command::new("git").args(["init", "--quiet"]).arg(&root).status();
        assert!(git.unwrap().success());
        let globals = Globals { project: vec![root], quiet: true, ..Globals::default() };
        let over_socket = Project::find(&globals).unwrap();
        let owner = over_socket.owner_of(over_socket.own_log().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (notices, _heard) = tokio::sync::mpsc::unbounded_channel();
        let switch = Switch::new(&over_socket, owner.handle(), notices).unwrap();
        let (socket, url) = runtime.block_on(async {
            let mounted = switch.mounted(None);
            let (socket, listener) = Socket::bind(&over_socket.folder()).await.unwrap();
            let server = HttpServer::of_socket("x", mounted.clone());
            let listener = Listener::Socket(listener, socket.address());
            tokio::spawn(server::serve(listener, server, std::future::pending()));
            let wished = Line::parse_from(["serve", "--port", "0"]).listen.wished();
            let projects = BTreeMap::from([("x".to_owned(), mounted)]);
            let front = serve::open_address(&wished, projects, std::slice::from_ref(&switch)).await.unwrap();
            tokio::spawn(server::serve(front.listener, front.server, std::future::pending()));
            (socket, front.url)
        });

        let asks: [(&str, Value); 8] = [
            ("/tasks", json!({"id": "t-1", "title": "Name the file"})),
            ("/tasks", json!({"id": "t-2", "title": "Say it"})),
            ("/tasks", json!({"id": "t-3", "title": "Wait for t-2", "dependsOn": ["t-2"]})),
            ("/tasks/t-2/transitions", json!({"to": "CANCELED"})),
            ("/workers", json!({"name": "A"})),
            ("/workers", json!({"name": "B"})),
            ("/workers/A/assign", json!({"task": "t-1"})),
            ("/requests", json!({"task": "t-1", "text": "Which file?"})),
        ];
        for (path, body) in &asks {
            over_socket.post::<Value>(path, body).unwrap();
        }
        switch.story().hear(0, "something that no log holds");
        switch.story().follow(&owner.handle()).unwrap();

        let owned = OwnedProject::new(&over_socket, owner.handle(), Arc::new(SwitchControl(switch.clone())));
        let token = server::read_token(&over_socket.folder()).unwrap();
        let over_address = Project::away(Address::read(&url).unwrap(), token, &globals).unwrap();
        for size in [(80, 24), (120, 40), (30, 10)] {
            let here = lines(&owned, size);
            assert_eq!(lines(&over_socket, size), here, "over the socket, {size:?}");
            assert_eq!(lines(&over_address, size), here, "over the address, {size:?}");
            let all = here.join("\n");
            for shown in ["something that no log holds", "A takes t-1: Name the file", "adj answer r"] {
                assert!(size.0 < 80 || all.contains(shown), "{shown}: {all}");
            }
        }
        let all = lines(&owned, (80, 24));
        let board = all.iter().position(|line| line.starts_with("WAIT 0")).unwrap();
        let words: Vec<&str> = all[board + 1].split_whitespace().collect();
        assert_eq!(words, ["t-1", "t-3", "t-2"], "two wait for a person, one is over: {all:#?}");
        assert!(
            all.iter().any(|line| line.contains("t-1 Name the file") && line.contains("creates its tree"))
        );
        drop(socket);
        runtime.shutdown_background();
    }
}
