//! A host and a fleet that only tests have. The tests of the server include this file, too, so it names this crate as others do.

use api::host::{
    Commit, Configured, Diff, Entry, Finding, Level, Of, Prompt, Restore, Salvage, SalvageId, Span, TestRun,
    Trash,
};
use api::{Control, FleetStatus, Host, Problem, time, types};
use kernel::World;
use machines::Millis;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Git and files, as far as a request can tell.
pub struct Fake;

impl Host for Fake {
    fn verify(&self) -> Result<types::history::Verified, Problem> {
        let (at, hash) = (time(0), String::new());
        Ok(types::history::Verified { ok: true, at, records: 0, hash, checks: Vec::new() })
    }

    fn export_head(&self) -> Result<types::history::ExportHead, Problem> {
        Ok(types::history::ExportHead { records: 0, hash: String::new() })
    }

    fn export(&self, _: &mut dyn std::io::Write) -> Result<(), Problem> {
        Ok(())
    }

    fn tokens(&self) -> Result<Vec<types::token::TokenLine>, Problem> {
        Ok(Vec::new())
    }

    fn create_token(
        &self,
        name: &str,
        role: types::token::TokenRole,
        now: Millis,
        _: Option<Millis>,
    ) -> Result<types::token::Minted, Problem> {
        let line = types::token::TokenLine {
            id: "1".to_owned(),
            name: name.to_owned(),
            role,
            created_at: time(now),
            expires_at: None,
        };
        Ok(types::token::Minted { line, token: "t".to_owned() })
    }

    fn revoke_token(&self, _: &str) -> Result<Option<types::token::TokenLine>, Problem> {
        Ok(None)
    }

    fn tests(&self, task: &kernel::world::Task) -> Result<Vec<TestRun>, Problem> {
        let run = |hook: Option<&str>| TestRun {
            effect: "e1".into(),
            hook: hook.map(str::to_owned),
            command: "make test".into(),
            folder: "/tree".into(),
            ended: Some("exit code 1".into()),
            output: format!("{} failed", task.id),
        };
        Ok(vec![run(Some("worktree-create")), run(None), run(None)])
    }

    fn diff(&self, task: &kernel::world::Task, wish: &git::DiffWish) -> Result<Diff, Problem> {
        let diff = format!("{} {}", task.id, wish.stat);
        Ok(Diff { base: "b".into(), tip: "t".into(), diff, cut: None, moved: None })
    }

    fn salvage(&self) -> Result<Vec<Salvage>, Problem> {
        let id = SalvageId::read("c-1/e1")?;
        Ok(vec![Salvage { id, commit: "abc".into(), at: 0, files: vec!["x".into()], commits: Vec::new() }])
    }

    fn salvage_show(&self, _: &SalvageId) -> Result<String, Problem> {
        Ok("+x".into())
    }

    fn revert(
        &self,
        _: &World,
        task: &kernel::world::Task,
        _: &machines::names::TaskId,
    ) -> Result<String, Problem> {
        Err(Problem::new(409, "CONFLICT", format!("{} cannot be taken back", task.id)))
    }

    fn salvage_restore(&self, _: &SalvageId, to: &Restore) -> Result<String, Problem> {
        match to {
            Restore::Branch(Some(branch)) if branch == "taken" => {
                Err(Problem::new(409, "EXISTS", "it is there"))
            }
            Restore::Branch(branch) => Ok(branch.clone().unwrap_or_else(|| "made-up".into())),
            Restore::Folder(folder) => Ok(folder.display().to_string()),
        }
    }

    fn transcript(&self, of: &Of, span: &Span) -> Result<Vec<Entry>, Problem> {
        let name = match of {
            Of::Worker(name) if name.as_str() == "Q" => return Ok(Vec::new()),
            Of::Worker(name) => name.to_string(),
            Of::Task(id) => id.to_string(),
            Of::Replies(whose) => format!("{whose:?}"),
        };
        let all = (1..=5).map(|cursor| Entry {
            cursor,
            at: Some(time(cursor as Millis)),
            kind: "text".into(),
            text: name.clone(),
            raw: None,
        });
        let all: Vec<Entry> = all.collect();
        Ok(match span.after {
            Some(after) => all.into_iter().filter(|entry| entry.cursor > after).take(span.limit).collect(),
            None => all[all.len().saturating_sub(span.limit)..].to_vec(),
        })
    }

    fn prompts(&self) -> Result<Vec<Prompt>, Problem> {
        Ok(vec![Prompt { name: "init".into(), file: None, text: "Begin.".into() }])
    }

    fn prompt_for(&self, _: &World, task: &kernel::world::Task, kind: &str) -> Result<Prompt, Problem> {
        Ok(Prompt { name: kind.to_owned(), file: None, text: format!("Begin {}.", task.id) })
    }

    fn commits(&self, _: &kernel::world::Task) -> Result<Vec<Commit>, Problem> {
        Ok(vec![Commit { oid: "abc".into(), subject: "Paint it".into() }])
    }

    fn config(&self) -> Result<Configured, Problem> {
        let (text, settings) = ("[fleet]\n".into(), json!({"fleet": {}}));
        Ok(Configured {
            file: Some("adjutant.toml".into()),
            trusted: true,
            gone: false,
            text,
            settings,
            waiting: None,
        })
    }

    fn config_check(&self) -> Result<Vec<Finding>, Problem> {
        let subject = "adjutant.toml:3".into();
        Ok(vec![Finding { level: Level::Error, subject, text: "unknown key".into(), hint: None }])
    }

    fn config_schema(&self) -> Result<Value, Problem> {
        Ok(json!({"type": "object"}))
    }

    fn config_trust(&self) -> Result<Configured, Problem> {
        self.config()
    }

    fn config_forget(&self) -> Result<Configured, Problem> {
        self.config()
    }

    fn ticket_problems(&self) -> Result<Vec<Finding>, Problem> {
        Ok(Vec::new())
    }

    fn doctor(&self) -> Result<Vec<Finding>, Problem> {
        Err(Problem::new(500, "GIT", "git is not there").hint("install it"))
    }

    fn trash(&self, empty: bool) -> Result<Trash, Problem> {
        Ok(Trash { folder: "/t".into(), trees: 2, bytes: u64::from(empty) })
    }

    fn init(&self, _with_hooks: bool) -> Result<Vec<Finding>, Problem> {
        Ok(Vec::new())
    }
}

/// A fleet that was told to stop remembers it.
#[derive(Clone, Default)]
pub struct Running(pub Arc<Mutex<Vec<bool>>>);

impl Control for Running {
    fn status(&self) -> FleetStatus {
        FleetStatus {
            running: true,
            pid: 7,
            url: None,
            listens: None,
            shared_port: None,
            since: 0,
            workers: 3,
            sandbox: None,
            tests: Vec::new(),
        }
    }

    fn start(&self, _: Option<u32>) -> Result<(), Problem> {
        Err(Problem::new(409, "RUNNING", "it runs already"))
    }

    fn stop(&self, now: bool) {
        self.0.lock().unwrap().push(now);
    }

    fn reread(&self) {}
}
