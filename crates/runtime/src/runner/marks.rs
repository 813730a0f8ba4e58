//! Marks of stories in the files of their spec: a box is ticked in the commit that lands the story, and nowhere else.

use kernel::World;
use kernel::specs;
use kernel::world::Task;
use smol_str::SmolStr;

use crate::git::{Edit, GitError, Oid, Repository};
use crate::specs::{Tick, Ticked, tick};

/// The mark of a story, with what it takes to find it again.
#[derive(Clone)]
pub struct Mark {
    pub format: SmolStr,
    pub key: SmolStr,
    pub at: specs::Mark,
}

/// The mark that stands for a task, where it is a story of a spec and has one.
pub fn of(world: &World, task: &Task) -> Option<Mark> {
    let spec = world.spec_of(task)?;
    let story = spec.stories.iter().find(|story| story.task == task.id)?;
    let at = story.mark.clone()?;
    Some(Mark { format: spec.format.clone(), key: story.key.clone(), at })
}

impl Mark {
    fn tick(&self, content: Option<&[u8]>, at: i64) -> Ticked {
        let content = content.map(std::str::from_utf8);
        match content {
            Some(Ok(content)) => tick(&self.format, &Tick { mark: &self.at, key: &self.key, content, at }),
            Some(Err(_)) => Ticked::No("it is not UTF-8"),
            None => Ticked::No("main does not have it"),
        }
    }
}

/// The tick for the landing's own commit. Nothing where the user's copy of the file was changed: their checkout could not
/// take it.
pub fn tick_in_landing(repository: &Repository, mark: &Mark, at: i64) -> Result<Option<Edit>, GitError> {
    let path = mark.at.path.clone();
    if repository.file_on_main(&path)?.is_none() || is_changed(repository, &path)? {
        return Ok(None);
    }
    let mark = mark.clone();
    let change = move |merged: Option<&[u8]>| match mark.tick(merged, at) {
        Ticked::Now(content) => Some(content.into_bytes()),
        Ticked::Before | Ticked::No(_) => None,
    };
    Ok(Some(Edit { path, change: Box::new(change) }))
}

fn is_changed(repository: &Repository, path: &str) -> Result<bool, GitError> {
    let has_copy = !repository.bare() && repository.stands_on_main();
    Ok(has_copy && !repository.checkout_copy_unchanged(path)?)
}

/// Why a merge does not have the tick, in words for people. Nothing where it does.
pub fn left(repository: &Repository, mark: &Mark, merge: &Oid) -> Result<Option<String>, GitError> {
    let path = &mark.at.path;
    let why = match mark.tick(repository.file_in(merge, path)?.as_deref(), 0) {
        Ticked::Before => return Ok(None),
        Ticked::No(why) => why,
        Ticked::Now(_) => "your checkout has local changes in it",
    };
    Ok(Some(format!("{path} is left as it is, and `{}` in it is yours to mark as done: {why}", shown(mark))))
}

fn shown(mark: &Mark) -> String {
    let line = mark.at.line.trim();
    let short: String = line.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}
