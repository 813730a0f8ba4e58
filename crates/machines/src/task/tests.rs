use super::*;
use crate::machine::step;
use crate::tests::{Script, play};
use crate::wire::Wire;
use proptest::prelude::*;

/// A new task; and one that is in progress with code that has landed, under a policy that lets a lead finish it.
pub(crate) fn starts() -> Vec<Task> {
    let small = Facts { max_review_cycles: 1, max_landing_rounds: 1, ..Facts::default() };
    let reviewed = Task { reviewer_id: Some("rev".into()), facts: small, ..Task::default() };
    let landed = Facts { lead_may_complete: true, has_code: true, landed: true, ..small };
    vec![reviewed.clone(), Task { facts: landed, ..reviewed }]
}

/// Every move by every role, with all that it requires and with nothing.
pub(crate) fn samples() -> Vec<Event> {
    let everything = "plan=3 deliverable=d checklist=answered feedback=f reason=manual cause=budget decision=d \
                      approval=a clarification=c";
    let mut lines = vec![
        format!("system landing_failed {everything}"),
        format!("system landing_failed_again {everything}"),
        "system landing_failed".to_owned(),
    ];
    for sender in ["intern:ann", "specialist:ann", "lead:ann", "specialist:rev", "human", "system"] {
        for to in Status::ALL {
            lines.push(format!("{sender} {to}"));
            let assignee = if *to == Assigned { "for=ann" } else { "" };
            let itself = if sender.ends_with("rev") { "for=rev" } else { assignee };
            lines.push(format!("{sender} {to} {everything} {itself}"));
        }
    }
    lines.iter().map(|line| Task::default().read(&line.split_whitespace().collect::<Vec<_>>())).collect()
}

/// `role[:id] STATUS key=value…`, as a caller would move the task.
impl Script for Task {
    fn read(&self, words: &[&str]) -> Event {
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let text = |name: &str| value(name).map(str::to_owned);
        let (role, id) = words[0].split_once(':').unwrap_or((words[0], words[0]));
        let by = Sender { id: id.into(), role: Role::read(role).unwrap() };
        let payload = Box::new(Payload {
            assignee_ids: value("for")
                .map(|ids| ids.split(',').filter(|id| !id.is_empty()).map(SmolStr::from).collect()),
            work_plan: value("plan").map(|count| {
                let bullets = (0..count.parse().unwrap()).map(|bullet| format!(" step {bullet}"));
                WorkPlan::new(bullets)
            }),
            deliverable: text("deliverable").map(|content| Deliverable { content, artifacts: Vec::new() }),
            review_checklist: value("checklist").map(|kind| Checklist {
                task_type: if kind == "other-type" { TaskType::Bug } else { TaskType::Task },
                items: vec![ChecklistItem {
                    item: "tests".to_owned(),
                    answer: (kind != "open").then(|| "yes".to_owned()),
                }],
            }),
            cost_summary: value("cost")
                .map(|cost| CostSummary { total_cost: cost.parse().unwrap(), ..Default::default() }),
            feedback: text("feedback"),
            reason: value("reason").map(|reason| BlockReason::read(reason).unwrap()),
            cause: value("cause").map(|cause| ApprovalCause::read(cause).unwrap()),
            approval: text("approval").map(|decision_note| Completion {
                approval_id: None,
                approved_by: "me".into(),
                approved_at: 0,
                decision_note,
            }),
            decision: text("decision"),
            clarification: text("clarification"),
        });
        match words[1] {
            "landing_failed" => Event::LandingFailed { by, payload, solved: false },
            "landing_failed_again" => Event::LandingFailed { by, payload, solved: true },
            to => Event::Move { to: Status::read(to).unwrap(), by, payload },
        }
    }

    fn detail(&self) -> String {
        let cycles = (self.review_cycles > 0).then(|| format!("reviews {}", self.review_cycles));
        let rounds = (self.landing_rounds > 0).then(|| format!("landings {}", self.landing_rounds));
        let reason = self.block_reason.map(|reason| format!("({reason})"));
        [reason, cycles, rounds].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A task of Ann's, with a plan, at that status.
fn task(status: Status) -> Task {
    Task {
        status,
        assignee_ids: ["ann".into()].into(),
        reviewer_id: Some("rev".into()),
        work_plan: Some(WorkPlan::new(["a", "b", "c"])),
        ..Task::default()
    }
}

#[track_caller]
fn check(start: Task, script: &str) -> Task {
    play(start, script)
}

/// The codes of a move by each sender, in the senders' order.
fn codes(task: &Task, senders: &[&str], rest: &str) -> Vec<String> {
    let came = senders.iter().map(|sender| {
        let line = format!("{sender} {rest}");
        let event = task.read(&line.split_whitespace().collect::<Vec<_>>());
        step(task, &event).err().map_or("ok".to_owned(), |refusal| refusal.code.to_string())
    });
    came.collect()
}

#[test]
fn a_task_goes_from_inbox_to_done() {
    let done = check(
        Task::default(),
        "human ASSIGNED for=ann -> ASSIGNED []
         intern:ann IN_PROGRESS plan=3 -> IN_PROGRESS [postWorkPlan step 0/step 1/step 2]
         intern:ann REVIEW deliverable=patch checklist=answered -> REVIEW []
         human DONE approval=good -> DONE [postApproval good]
         human CANCELED -> refused NOT_ALLOWED, allowed []",
    );
    assert_eq!(*done.work_plan.unwrap().bullets, ["step 0", "step 1", "step 2"]);
}

/// The matrix, marked as the document marks it, walked by the one who may make every move.
#[test]
fn a_person_may_make_every_move_of_the_matrix_and_no_other() {
    #[rustfmt::skip]
    let matrix = [
        //              INBOX ASSIGNED IN_PROGRESS REVIEW NEEDS_APPROVAL BLOCKED DONE CANCELED
        (Inbox,         [0,   1,       0,          0,     0,             0,      0,   1]),
        (Assigned,      [1,   0,       1,          0,     0,             0,      0,   1]),
        (InProgress,    [0,   0,       0,          1,     1,             1,      0,   1]),
        (Review,        [0,   0,       1,          0,     1,             1,      1,   1]),
        (NeedsApproval, [1,   1,       1,          1,     0,             1,      1,   1]),
        (Blocked,       [0,   1,       1,          0,     1,             0,      0,   1]),
        (Done,          [0,   0,       0,          0,     0,             0,      0,   0]),
        (Canceled,      [0,   0,       0,          0,     0,             0,      0,   0]),
    ];
    let everything = "for=ann plan=3 deliverable=d checklist=answered feedback=f reason=manual cause=budget decision=d approval=a";
    for (from, marks) in matrix {
        let marked: Vec<Status> =
            Status::ALL.iter().zip(marks).filter(|(_, mark)| *mark == 1).map(|(to, _)| *to).collect();
        let human = Sender { id: "me".into(), role: Role::Human };
        assert_eq!(task(from).moves_of(&human), marked, "{from}");
        for to in Status::ALL {
            let line = format!("human {to} {everything}");
            let came = step(&task(from), &task(from).read(&line.split(' ').collect::<Vec<_>>()));
            let ended = came.map(|step| step.state.status).map_err(|refusal| refusal.code);
            assert_eq!(
                ended,
                if marked.contains(to) { Ok(*to) } else { Err(Code::NotAllowed) },
                "{from} to {to}"
            );
        }
    }
}

/// What each role is offered on a task of its own, which is also what an error lists.
#[test]
fn each_role_may_do_what_the_document_says() {
    let offered = |status, sender: &str, role| {
        let moves = task(status).moves_of(&Sender { id: sender.into(), role });
        moves.iter().map(|to| to.name()).collect::<Vec<_>>().join(" ")
    };
    #[rustfmt::skip]
    let expected = [
        // status        ann: intern    ann: specialist       ann: lead               rev: specialist  system
        (Inbox,         ["",            "ASSIGNED",           "ASSIGNED",             "ASSIGNED",      "ASSIGNED"]),
        (Assigned,      ["IN_PROGRESS", "IN_PROGRESS",        "INBOX IN_PROGRESS",    "",              "IN_PROGRESS"]),
        (InProgress,    ["REVIEW",      "REVIEW BLOCKED",     "REVIEW BLOCKED",       "",              "REVIEW NEEDS_APPROVAL BLOCKED"]),
        (Review,        ["",            "",                   "",                     "IN_PROGRESS",   "NEEDS_APPROVAL BLOCKED DONE"]),
        (NeedsApproval, ["",            "",                   "",                     "",              "INBOX ASSIGNED IN_PROGRESS REVIEW BLOCKED DONE"]),
        (Blocked,       ["",            "",                   "",                     "",              "NEEDS_APPROVAL"]),
    ];
    for (status, moves) in expected {
        let actual = [
            offered(status, "ann", Role::Intern),
            offered(status, "ann", Role::Specialist),
            offered(status, "ann", Role::Lead),
            offered(status, "rev", Role::Specialist),
            offered(status, "system", Role::System),
        ];
        assert_eq!(actual, moves, "{status}");
    }
    let strangers = ["intern:bob", "specialist:bob", "lead:bob"];
    assert_eq!(codes(&task(Assigned), &strangers, "IN_PROGRESS"), ["FORBIDDEN"; 3]);
    assert_eq!(codes(&task(InProgress), &strangers, "BLOCKED reason=manual"), ["FORBIDDEN"; 3]);
}

#[test]
fn a_specialist_claims_for_itself_only_and_nobody_below_a_lead_reassigns() {
    let bobs = Task { assignee_ids: ["bob".into()].into(), ..Task::default() };
    assert_eq!(codes(&Task::default(), &["specialist:ann", "lead:ann"], "ASSIGNED for=ann"), ["ok", "ok"]);
    assert_eq!(
        codes(&Task::default(), &["specialist:ann", "lead:ann"], "ASSIGNED for=bob"),
        ["FORBIDDEN", "ok"]
    );
    assert_eq!(codes(&Task::default(), &["specialist:ann"], "ASSIGNED for=ann,bob"), ["FORBIDDEN"]);
    assert_eq!(codes(&bobs, &["specialist:ann", "specialist:bob"], "ASSIGNED"), ["FORBIDDEN", "ok"]);
    let senders = ["intern:ann", "specialist:ann", "lead:ann", "human"];
    assert_eq!(
        codes(&task(Assigned), &senders, "IN_PROGRESS for=bob"),
        ["FORBIDDEN", "FORBIDDEN", "ok", "ok"]
    );
    assert_eq!(
        codes(&task(Review), &["specialist:rev", "human"], "IN_PROGRESS feedback=f for=bob"),
        ["FORBIDDEN", "ok"]
    );
}

/// A relation, not a role: an assignee and an intern are no reviewers, whatever the task names.
#[test]
fn changes_are_asked_for_by_the_named_reviewer() {
    let senders = ["specialist:rev", "lead:rev", "intern:rev", "lead:bob", "human", "system"];
    let expected = ["ok", "ok", "FORBIDDEN", "FORBIDDEN", "ok", "FORBIDDEN"];
    assert_eq!(codes(&task(Review), &senders, "IN_PROGRESS feedback=f"), expected);
    let own = Task { reviewer_id: Some("ann".into()), ..task(Review) };
    assert_eq!(codes(&own, &["lead:ann"], "IN_PROGRESS feedback=f"), ["FORBIDDEN"]);
}

/// Never its own, and never what a person must look at.
#[test]
fn a_lead_finishes_a_task_only_where_policy_allows() {
    let with = |facts: Facts| Task { facts: Facts { lead_may_complete: true, ..facts }, ..task(Review) };
    let finish = |task: &Task, senders: &[&str]| codes(task, senders, "DONE approval=a").join(" ");
    assert_eq!(finish(&task(Review), &["lead:bob", "human"]), "FORBIDDEN ok");
    let lenient = with(Facts::default());
    assert_eq!(finish(&lenient, &["lead:bob", "specialist:bob", "lead:ann"]), "ok FORBIDDEN FORBIDDEN");
    for facts in
        [Facts { needs_person: true, ..Facts::default() }, Facts { own_work: true, ..Facts::default() }]
    {
        assert_eq!(finish(&with(facts), &["lead:bob", "human", "system"]), "FORBIDDEN ok ok");
    }
}

/// Each missing piece is one field with one message; a move with all of them is made.
#[test]
fn what_a_move_requires_is_named_piece_by_piece() {
    check(
        Task { assignee_ids: Default::default(), work_plan: None, ..task(Assigned) },
        "human IN_PROGRESS -> refused MISSING_FIELD; workPlan: Work plan required for IN_PROGRESS; assigneeIds: Must have at least one assignee, allowed [INBOX, IN_PROGRESS, CANCELED]
         human IN_PROGRESS for=ann plan=2 -> refused MISSING_FIELD; workPlan: Work plan required for IN_PROGRESS, allowed [INBOX, IN_PROGRESS, CANCELED]
         human IN_PROGRESS for=ann plan=7 -> refused MISSING_FIELD; workPlan: Work plan required for IN_PROGRESS, allowed [INBOX, IN_PROGRESS, CANCELED]
         human IN_PROGRESS for=ann plan=6 -> IN_PROGRESS [postWorkPlan step 0/step 1/step 2/step 3/step 4/step 5]",
    );
    check(
        Task::default(),
        "human ASSIGNED for= -> refused MISSING_FIELD; assigneeIds: Must have at least one assignee, allowed [ASSIGNED, CANCELED]",
    );
    check(
        task(InProgress),
        "intern:ann REVIEW -> refused MISSING_FIELD; deliverable: Deliverable with content required for REVIEW; reviewChecklist: Review checklist of the task's type required, with every item answered, allowed [REVIEW]
         intern:ann REVIEW deliverable= checklist=open -> refused MISSING_FIELD; deliverable: Deliverable with content required for REVIEW; reviewChecklist: Review checklist of the task's type required, with every item answered, allowed [REVIEW]
         intern:ann REVIEW deliverable=d checklist=other-type -> refused MISSING_FIELD; reviewChecklist: Review checklist of the task's type required, with every item answered, allowed [REVIEW]
         intern:ann REVIEW deliverable=d checklist=answered cost=1 -> refused MISSING_FIELD; costSummary: Cost summary is computed from the runs and cannot be set, allowed [REVIEW]
         system NEEDS_APPROVAL -> refused MISSING_FIELD; cause: Approval request with a cause required for NEEDS_APPROVAL, allowed [REVIEW, NEEDS_APPROVAL, BLOCKED]
         system BLOCKED -> refused MISSING_FIELD; reason: Reason required for BLOCKED, allowed [REVIEW, NEEDS_APPROVAL, BLOCKED]
         system REVIEW deliverable=d checklist=answered cost=1 -> REVIEW []",
    );
    check(
        task(Review),
        "specialist:rev IN_PROGRESS -> refused MISSING_FIELD; feedback: Feedback required for changes, allowed [IN_PROGRESS]
         human DONE -> refused MISSING_FIELD; approval: Approval record with a decisionNote required for DONE, allowed [IN_PROGRESS, NEEDS_APPROVAL, BLOCKED, DONE, CANCELED]
         human DONE approval= -> refused MISSING_FIELD; approval: Approval record with a decisionNote required for DONE, allowed [IN_PROGRESS, NEEDS_APPROVAL, BLOCKED, DONE, CANCELED]
         system landing_failed -> refused MISSING_FIELD; feedback: Feedback required for changes, allowed [NEEDS_APPROVAL, BLOCKED, DONE]",
    );
    check(
        task(NeedsApproval),
        "human IN_PROGRESS -> refused MISSING_FIELD; decision: Decision required to leave NEEDS_APPROVAL, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE, CANCELED]
         human REVIEW decision=yes -> refused MISSING_FIELD; deliverable: Deliverable with content required for REVIEW; reviewChecklist: Review checklist of the task's type required, with every item answered, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE, CANCELED]
         human DONE decision=yes -> refused MISSING_FIELD; approval: Approval record with a decisionNote required for DONE, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE, CANCELED]",
    );
}

#[test]
fn a_blank_bullet_is_no_bullet() {
    let plan = |bullets: [&str; 3]| WorkPlan::new(bullets).is_complete();
    assert!(plan(["a", "b", "c"]));
    assert!(!plan(["a", "b", " \t"]));
}

#[test]
fn code_is_done_only_when_it_has_landed() {
    let facts = Facts { has_code: true, ..Facts::default() };
    let task = Task { facts, ..task(Review) };
    check(
        task.clone(),
        "human DONE approval=a -> refused MISSING_FIELD; landing: The task has code that has not landed, allowed [IN_PROGRESS, NEEDS_APPROVAL, BLOCKED, DONE, CANCELED]",
    );
    let landed = Task { facts: Facts { landed: true, ..facts }, ..task };
    assert_eq!(codes(&landed, &["human", "system"], "DONE approval=a"), ["ok", "ok"]);
}

/// Three reviews may ask for changes; the fourth takes the task out of the loop, and a person starts the count anew.
#[test]
fn the_fourth_request_for_changes_blocks_the_task() {
    let submit = "intern:ann REVIEW deliverable=d checklist=answered -> REVIEW";
    check(
        task(Review),
        &format!(
            "specialist:rev IN_PROGRESS feedback=f -> IN_PROGRESS reviews 1 [postReview f]
             {submit} reviews 1 []
             human IN_PROGRESS feedback=f -> IN_PROGRESS reviews 2 [postReview f]
             {submit} reviews 2 []
             human IN_PROGRESS feedback=f -> IN_PROGRESS reviews 3 [postReview f]
             {submit} reviews 3 []
             human IN_PROGRESS feedback=f -> BLOCKED (review_cycles) reviews 3 [postReview f, postLoopSummary 3 f]
             human IN_PROGRESS -> refused MISSING_FIELD; clarification: Clarified requirements required after the review limit, allowed [ASSIGNED, IN_PROGRESS, NEEDS_APPROVAL, CANCELED]
             system IN_PROGRESS clarification=c -> refused FORBIDDEN, allowed [NEEDS_APPROVAL]
             human IN_PROGRESS clarification=c -> IN_PROGRESS [postClarification c]
             {submit} []"
        ),
    );
}

/// A failed landing is nobody's review. The fourth asks a person; one whose earlier failure was solved is not counted.
#[test]
fn a_failed_landing_counts_no_review() {
    let submit = "intern:ann REVIEW deliverable=d checklist=answered -> REVIEW";
    check(
        task(Review),
        &format!(
            "human landing_failed feedback=f -> refused FORBIDDEN, allowed [IN_PROGRESS, NEEDS_APPROVAL, BLOCKED, DONE, CANCELED]
             system landing_failed feedback=f -> IN_PROGRESS landings 1 [postReview f]
             {submit} landings 1 []
             system landing_failed feedback=f -> IN_PROGRESS landings 2 [postReview f]
             {submit} landings 2 []
             system landing_failed feedback=f -> IN_PROGRESS landings 3 [postReview f]
             {submit} landings 3 []
             system landing_failed_again feedback=f -> IN_PROGRESS landings 3 [postReview f]
             {submit} landings 3 []
             system landing_failed feedback=f -> BLOCKED (landing) landings 3 [postReview f]"
        ),
    );
}

#[test]
fn a_decision_leads_back_with_what_the_status_requires() {
    check(
        task(InProgress),
        "lead:ann NEEDS_APPROVAL cause=budget -> refused FORBIDDEN, allowed [REVIEW, BLOCKED]
         system NEEDS_APPROVAL cause=budget -> NEEDS_APPROVAL []
         system IN_PROGRESS -> refused MISSING_FIELD; decision: Decision required to leave NEEDS_APPROVAL, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE]
         system CANCELED decision=no -> refused FORBIDDEN, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE]
         system IN_PROGRESS decision=yes -> IN_PROGRESS []
         intern:ann REVIEW deliverable=d checklist=answered -> REVIEW []
         system NEEDS_APPROVAL cause=escalation -> NEEDS_APPROVAL []
         system REVIEW decision=yes -> REVIEW []
         human IN_PROGRESS feedback=f -> IN_PROGRESS reviews 1 [postReview f]
         system NEEDS_APPROVAL cause=red_action -> NEEDS_APPROVAL reviews 1 []
         system REVIEW decision=yes -> refused MISSING_FIELD; deliverable: Deliverable with content required for REVIEW; reviewChecklist: Review checklist of the task's type required, with every item answered, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE]
         system BLOCKED decision=no -> refused MISSING_FIELD; reason: Reason required for BLOCKED, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE]
         human CANCELED decision=no -> CANCELED reviews 1 []",
    );
}

/// An approval is no way around the clarification that the review limit asks for.
#[test]
fn a_question_about_a_blocked_task_does_not_unblock_it_by_itself() {
    let blocked = Task { block_reason: Some(BlockReason::ReviewCycles), review_cycles: 3, ..task(Blocked) };
    check(
        blocked,
        "system NEEDS_APPROVAL cause=escalation -> NEEDS_APPROVAL (review_cycles) reviews 3 []
         system IN_PROGRESS decision=yes -> refused MISSING_FIELD; clarification: Clarified requirements required after the review limit, allowed [INBOX, ASSIGNED, IN_PROGRESS, REVIEW, BLOCKED, DONE]
         system BLOCKED decision=no -> BLOCKED (review_cycles) reviews 3 []
         system NEEDS_APPROVAL cause=escalation -> NEEDS_APPROVAL (review_cycles) reviews 3 []
         system IN_PROGRESS decision=yes clarification=c -> IN_PROGRESS [postClarification c]",
    );
}

/// Whichever way it leads out of BLOCKED, the counters begin again.
#[test]
fn an_unblocked_task_starts_its_counters_anew() {
    let blocked = Task {
        block_reason: Some(BlockReason::Landing),
        review_cycles: 2,
        landing_rounds: 3,
        ..task(Blocked)
    };
    let asked = Task { status: NeedsApproval, came_from: Some(Blocked), ..blocked.clone() };
    for to in ["ASSIGNED", "IN_PROGRESS"] {
        check(blocked.clone(), &format!("human {to} -> {to} []"));
        check(asked.clone(), &format!("human {to} decision=yes -> {to} []"));
    }
    check(asked.clone(), "human INBOX decision=yes -> INBOX []");
    check(asked, "human REVIEW decision=yes deliverable=d checklist=answered -> REVIEW []");
}

#[test]
fn a_granted_budget_forgives_no_review() {
    let reviewed = Task { review_cycles: 2, landing_rounds: 1, ..task(InProgress) };
    check(
        reviewed,
        "system NEEDS_APPROVAL cause=budget -> NEEDS_APPROVAL reviews 2 landings 1 []
         system IN_PROGRESS decision=yes -> IN_PROGRESS reviews 2 landings 1 []",
    );
}

#[test]
fn a_refusal_answers_in_the_tasks_own_members() {
    let none = Task { assignee_ids: Default::default(), work_plan: None, ..task(Assigned) };
    let refusal = step(&none, &none.read(&["human", "IN_PROGRESS"])).unwrap_err();
    let expected = serde_json::json!({
        "success": false,
        "errors": [
            {"field": "workPlan", "message": "Work plan required for IN_PROGRESS"},
            {"field": "assigneeIds", "message": "Must have at least one assignee"},
        ],
        "allowedTransitions": ["INBOX", "IN_PROGRESS", "CANCELED"],
    });
    let answer = serde_json::json!({
        "success": false,
        "errors": refusal.errors,
        "allowedTransitions": refusal.allowed,
    });
    assert_eq!((answer, refusal.code.status()), (expected, 422));
    let status = |task: Task, line: &str| {
        step(&task, &task.read(&line.split(' ').collect::<Vec<_>>())).unwrap_err().code.status()
    };
    assert_eq!(status(task(Assigned), "intern:bob IN_PROGRESS"), 403);
    assert_eq!(status(task(Done), "human INBOX"), 409);
}

#[test]
fn a_status_reads_as_a_tickets() {
    let read: Vec<_> = Status::ALL.iter().map(|status| ticket_status(*status).name()).collect();
    let work = "in_progress";
    assert_eq!(read, ["open", "open", work, work, work, work, "closed", "closed"]);
}

proptest! {
    /// DONE and CANCELED are never left, the counters keep to their limits, and work is never without a plan.
    #[test]
    fn a_task_keeps_its_promises(moves in prop::collection::vec(0usize..200, 0..60)) {
        let samples = samples();
        for start in starts() {
            let mut task = start;
            for choice in &moves {
                let Ok(taken) = step(&task, &samples[choice % samples.len()]) else { continue };
                prop_assert!(!matches!(task.status, Done | Canceled), "{:?} was left", task.status);
                task = taken.state;
                prop_assert!(task.review_cycles <= task.facts.max_review_cycles);
                prop_assert!(task.landing_rounds <= task.facts.max_landing_rounds);
                prop_assert_eq!(task.came_from.is_some(), task.status == NeedsApproval);
                if matches!(task.status, InProgress | Review) {
                    prop_assert!(task.work_plan.as_ref().is_some_and(WorkPlan::is_complete));
                    prop_assert!(!task.assignee_ids.is_empty());
                }
                let asked_while_blocked = task.status == NeedsApproval && task.came_from == Some(Blocked);
                prop_assert_eq!(task.block_reason.is_some(), task.status == Blocked || asked_while_blocked);
            }
        }
    }
}
