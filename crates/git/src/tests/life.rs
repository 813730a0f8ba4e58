//! A task's life from the first tree to the landing.

use super::*;

#[test]
fn a_task_lives_from_tree_to_landing() {
    let project = Project::new();
    let main = oid(&project.git(&["rev-parse", "main"]));
    assert_eq!(project.prepare(), main);
    assert_eq!(project.agent(&["status", "--porcelain"]), "");
    assert_eq!(project.agent(&["branch", "--show-current"]), BRANCH);
    let committed = project.agent_commits("src/three", "3\n");
    write(&project.tree().join("notes"), "left over\n");

    let left = project.leftovers();
    assert_eq!(left.commit.as_ref(), Some(&left.tip));
    assert_eq!(oid(&project.agent(&["rev-parse", "HEAD^"])), committed);
    assert_eq!(project.agent(&["status", "--porcelain"]), "", "the agent sees the commit and nothing else");
    assert_eq!(oid(&project.git(&["rev-parse", BRANCH])), left.tip);
    assert_eq!(oid(&project.git(&["rev-parse", "refs/adjutant/tasks/c1"])), left.tip);

    assert_eq!(project.land(), Moved::Moved);
    assert_eq!(fs::read_to_string(project.root().join("notes")).unwrap(), "left over\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.git(&["log", "-1", "--format=%an <%ae> %s"]), "Ada <ada@example.org> Land c1");
    assert!(project.repository.main_contains(&left.tip).unwrap());

    assert_eq!(project.repository.remove_tree(&task(), TREE, "e9").unwrap(), None);
    assert!(!project.tree().exists());
    assert_eq!(project.repository.delete_branch(&task(), BRANCH).unwrap(), BranchDeleted::Deleted);
    assert_eq!(project.git(&["branch", "--list", "agent/*"]), "");
    assert_eq!(project.git(&["fsck", "--strict"]), "");
}

#[test]
fn a_repository_is_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Repository>();
    let project = Project::new();
    let names: Vec<String> = (0..6).map(|n| format!("c{n}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let repository = project.repository.clone();
            scope.spawn(move || {
                let task = TaskId::new(name).unwrap();
                let (tree, branch) = (format!("A-{name}"), format!("agent/A-{name}"));
                repository.prepare_tree(&task, &tree, &branch).unwrap();
                write(&repository.places().trees.join(format!("A-{name}/{name}")), name);
                repository.commit_leftovers(&task, &tree, &branch, "x", &coder()).unwrap().commit.unwrap();
            });
        }
    });
    assert_eq!(project.git(&["branch", "--list", "agent/*"]).lines().count(), names.len());
    assert_eq!(project.git(&["fsck", "--strict"]), "");
}

/// Looking at a repository that is then refused leaves no trace in it.
#[test]
fn opening_a_repository_makes_nothing() {
    let project = Project::new();
    project.repository.obstacles().unwrap();
    assert!(!project.repository.places().state.exists() && !project.repository.places().trees.exists());
}
