//! Clones of agents that speak outside of any task.

use super::*;

#[test]
fn a_seat_s_clone_is_main_again_before_each_reply_and_nothing_of_it_is_kept() {
    for isolation in [Isolation::Clone, Isolation::Worktree] {
        let project = Project::with(isolation, |_, _| {});
        project.prepare();
        project.agent_commits("new", "new\n");
        let tip = project.take_tip().tip;
        let review = UnderReview { branch: BRANCH.to_owned(), tip: tip.clone() };
        let seat = |review| project.repository.seat_tree("room+talk+anna", review).unwrap();
        let folder = seat(Some(&review));
        let git = |arguments: &[&str]| project.folder.git(&folder, arguments);
        let main = project.repository.main_tip().unwrap();
        assert_eq!(oid(&git(&["rev-parse", "HEAD"])), main);
        assert_eq!(git(&["branch", "--show-current"]), "", "no branch is checked out");
        assert_eq!(git(&["diff", "--name-only", &format!("origin/main...{BRANCH}")]), "new");
        // Whatever an agent does there.
        write(&folder.join("README"), "scribbled\n");
        write(&folder.join("mine"), "mine\n");
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "mine"]);
        write(&folder.join(".git/hooks/post-checkout"), "#!/bin/sh\nexit 1\n");
        let newer = project.user_commits("src/one", "one\n");
        let again = seat(None);
        assert_eq!((again, oid(&git(&["rev-parse", "HEAD"]))), (folder.clone(), newer.clone()));
        assert_eq!(git(&["status", "--porcelain", "--ignored"]), "");
        assert!(!folder.join("mine").exists() && !folder.join(".git/hooks/post-checkout").exists());
        assert_eq!(git(&["branch", "--list", BRANCH]), "", "nothing is under review any more");
        assert_eq!(project.repository.main_tip().unwrap(), newer, "nothing of it landed");
    }
    let project = Project::new();
    assert!(project.repository.seat_tree("room+..+anna", None).is_err());
}
