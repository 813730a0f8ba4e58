//! Marks stories as done in the files of their spec: only in the commit that lands the story.
//!
//! Marks are not merged: changes of a branch to marks are dropped before it is merged, and the landing sets only
//! its own mark. So two stories with neighbouring boxes never conflict, and no agent ticks the box of another story.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::World;
use kernel::specs;
use kernel::world::Task;
use machines::names::TaskId;
use smol_str::SmolStr;

use documents::specs::{Restore, Tick, Ticked, restore, tick};
use git::{Edit, GitError, Oid, Repository, Settle};

/// The mark of a story, with what it takes to find it again.
#[derive(Clone)]
pub struct Mark {
    pub task: TaskId,
    pub format: SmolStr,
    pub key: SmolStr,
    pub at: specs::Mark,
}

/// The mark that stands for a task, where it is a story of a spec and has one.
pub fn of(world: &World, task: &Task) -> Option<Mark> {
    let spec = world.spec_of(task)?;
    let story = spec.stories.iter().find(|story| story.task == task.id)?;
    mark(spec, story)
}

fn mark(spec: &specs::Spec, story: &specs::Loaded) -> Option<Mark> {
    let at = story.mark.clone()?;
    Some(Mark { task: story.task.clone(), format: spec.format.clone(), key: story.key.clone(), at })
}

/// The mark of the story that a task takes back, or brings again by taking that back.
pub fn undone_by(world: &World, task: &Task) -> Option<Mark> {
    let undone = world.task(task.origin.undoes.as_ref()?)?;
    of(world, undone).or_else(|| undone_by(world, undone))
}

/// The file and the part of it that is a task's mark, for taking back what it landed.
pub fn taken_back_with(world: &World, task: &Task) -> Option<(String, Settle)> {
    let mark = of(world, task).or_else(|| undone_by(world, task))?;
    Some((mark.at.path.clone(), settle(&mark)))
}

/// The marks of other stories in the same file.
fn others(world: &World, own: &Mark) -> Vec<Mark> {
    let all = world.specs.values().flat_map(|spec| spec.stories.iter().filter_map(|story| mark(spec, story)));
    all.filter(|mark| mark.at.path == own.at.path && mark.task != own.task).collect()
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

    /// One version of the file with this mark as another version has it.
    fn restored(&self, from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
        let (from, to) = (std::str::from_utf8(from).ok()?, std::str::from_utf8(to).ok()?);
        restore(&self.format, &Restore { mark: &self.at, key: &self.key, from, to }).map(String::into_bytes)
    }
}

/// The part of a file that is this mark.
pub fn settle(mark: &Mark) -> Settle {
    let mark = mark.clone();
    Box::new(move |from, to| mark.restored(from, to))
}

/// What a landing does with the file of its story.
pub struct InLanding {
    own: Mark,
    others: Vec<Mark>,
    /// The marks of others that the branch had changed.
    put_back: Arc<Mutex<BTreeSet<usize>>>,
}

impl InLanding {
    pub fn of(world: &World, task: &Task) -> Option<InLanding> {
        let own = of(world, task)?;
        let others = others(world, &own);
        Some(InLanding::new(own, others))
    }

    pub fn new(own: Mark, others: Vec<Mark>) -> InLanding {
        InLanding { own, others, put_back: Arc::default() }
    }

    /// The tick for the landing's own commit. None is set where the user's copy of the file was changed: their checkout could
    /// not take it.
    pub fn edit(&self, repository: &Repository, at: i64) -> Result<Edit, GitError> {
        let path = self.own.at.path.clone();
        let left = repository.file_on_main(&path)?.is_none() || is_changed(repository, &path)?;
        let own = self.own.clone();
        let change = move |merged: Option<&[u8]>| match own.tick(merged, at) {
            Ticked::Now(content) if !left => Some(content.into_bytes()),
            _ => None,
        };
        let (own, others, put_back) = (self.own.clone(), self.others.clone(), self.put_back.clone());
        let merged_as = move |from: &[u8], to: &[u8]| {
            let mut content = own.restored(from, to);
            for (number, other) in others.iter().enumerate() {
                if let Some(new) = other.restored(from, content.as_deref().unwrap_or(to)) {
                    put_back.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
                    content = Some(new);
                }
            }
            content
        };
        Ok(Edit { path, change: Box::new(change), merged_as: Some(Box::new(merged_as)) })
    }

    /// What people should know of a merge: why it does not have the tick, and which marks it does not change.
    pub fn said(&self, repository: &Repository, merge: &Oid) -> Result<Vec<String>, GitError> {
        let path = &self.own.at.path;
        let put_back = self.put_back.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let foreign = put_back.into_iter().filter_map(|number| self.others.get(number)).map(|other| {
            let (line, task) = (shown(other), &other.task);
            format!("its agent changed the mark of `{line}` in {path}; only {task} may change it, so it lands unchanged")
        });
        Ok(self.left(repository, merge)?.into_iter().chain(foreign).collect())
    }

    /// Why a merge does not have the tick, in words for people. Nothing where it does.
    fn left(&self, repository: &Repository, merge: &Oid) -> Result<Option<String>, GitError> {
        let path = &self.own.at.path;
        let why = match self.own.tick(repository.file_in(merge, path)?.as_deref(), 0) {
            Ticked::Before => return Ok(None),
            Ticked::No(why) => why,
            Ticked::Now(_) => "your checkout has local changes in it",
        };
        let line = shown(&self.own);
        Ok(Some(format!("{path} is left unchanged; mark `{line}` in it as done yourself: {why}")))
    }
}

/// What the landing of an undo does with the file of the story that it takes back: the mark is as the undo has it, whatever
/// was ticked around it meanwhile.
pub fn untick(repository: &Repository, mark: &Mark, tip: &Oid) -> Result<Option<Edit>, GitError> {
    let path = mark.at.path.clone();
    let Some(undone) = repository.file_in(tip, &path)? else { return Ok(None) };
    let own = mark.clone();
    let change = move |merged: Option<&[u8]>| own.restored(&undone, merged?);
    Ok(Some(Edit { path, change: Box::new(change), merged_as: Some(settle(mark)) }))
}

fn is_changed(repository: &Repository, path: &str) -> Result<bool, GitError> {
    let has_copy = !repository.bare() && repository.stands_on_main();
    Ok(has_copy && !repository.checkout_copy_unchanged(path)?)
}

fn shown(mark: &Mark) -> String {
    let line = mark.at.line.trim();
    let short: String = line.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use git::{Isolation, Merged, Moved, Oid, Places};
    use std::fs;
    use std::path::Path;
    use testing::Folder;

    const AT: i64 = 1_700_000_000;

    fn git(root: &Path, arguments: &str) -> String {
        let mut command = std::process::Command::new("git");
        let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
        command.args(identity).args(arguments.split(' ')).current_dir(root);
        let ran = command.output().expect("git runs");
        assert!(ran.status.success(), "{arguments}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("text").trim_end().to_owned()
    }

    #[test]
    fn the_box_of_a_story_is_ticked_in_its_merge_and_left_where_that_cannot_be() {
        let tasks = "# Tasks\n\n- [ ] 1. Door\n  - [x] 1.1 Frame\n  - [ ] 1.2 Leaf\n";
        let path = ".kiro/specs/door/tasks.md";
        let folder = Folder::new();
        let root = folder.path.join("project");
        folder.write(Path::new("project").join(path), tasks);
        git(&root, "init --quiet --initial-branch=main");
        git(&root, "add -A");
        git(&root, "commit -q -m Spec");
        let places = Places {
            root: root.clone(),
            state: root.join(".git/adjutant"),
            trees: root.with_extension("agents"),
            temporary: folder.path.join("temporary"),
            main: "main".to_owned(),
            isolation: Isolation::Clone,
        };
        let repository = Repository::open(places).expect("a repository");
        let (task, tree, branch) = (TaskId::new("door-1").expect("a name"), "A-door-1", "agent/A-door-1");
        repository.prepare_tree(&task, tree, branch).expect("a tree");
        let at = repository.tree_path(tree).expect("a path");
        fs::write(at.join("new"), "new\n").expect("a file");
        git(&at, "add -A");
        git(&at, "commit -q -m Work");
        let tip = repository.take_tip(&task, tree, branch).expect("its tip").tip;
        let main = repository.main_tip().expect("main");
        let line = "  - [ ] 1.2 Leaf".to_owned();
        let mark = |path: &str| Mark {
            task: TaskId::new("door-1").expect("a name"),
            format: "kiro".into(),
            key: "1.2".into(),
            at: specs::Mark { path: path.to_owned(), line: line.clone() },
        };
        let landing = |path: &str| InLanding::new(mark(path), Vec::new());
        let edit = |path: &str| landing(path).edit(&repository, AT).expect("an edit");
        let merge = |edits: &[Edit]| match repository.merge(&main, &tip, "Land", edits, AT).expect("a merge")
        {
            Merged::Clean { commit, .. } => commit,
            other => panic!("{other:?}"),
        };
        let said = |path: &str, merge: &Oid| {
            landing(path).said(&repository, merge).expect("what is said").join("\n")
        };
        let unmarked = merge(&[]);
        assert_eq!(merge(&[edit("none.md")]), unmarked, "what main does not have is not made");
        assert!(said("none.md", &unmarked).contains("main does not have it"));

        // The user is at work on the file: the landing could not be brought into their checkout.
        fs::write(root.join(path), "mine\n").expect("a file");
        assert_eq!(merge(&[edit(path)]), unmarked);
        assert!(said(path, &unmarked).contains("local changes"), "{}", said(path, &unmarked));

        fs::write(root.join(path), tasks).expect("a file");
        let ticked = merge(&[edit(path)]);
        assert_eq!(said(path, &ticked), "");
        assert_eq!(repository.move_main(&ticked, &main).expect("a move"), Moved::Moved);
        assert_eq!(git(&root, &format!("diff --name-only {main} main")), format!("{path}\nnew"));
        let after = fs::read_to_string(root.join(path)).expect("a file");
        assert_eq!(after, tasks.replace("[ ]", "[x]"), "the parent goes with its last child");
    }
}
