//! No key of `adjutant.toml` without a test that would fail if it were read and then ignored.
//!
//! The list below names that test. It cannot fall behind: a key that is not in it fails, and so does a test that is gone
//! or that no longer sets the key.

use super::SETTINGS;
use project::settings::keys;
use std::collections::BTreeMap;

const SOURCES: &[(&str, &str)] = &[
    ("architect", include_str!("architect.rs")),
    ("claude", include_str!("claude.rs")),
    ("dead_ends", include_str!("dead_ends.rs")),
    ("disk", include_str!("disk.rs")),
    ("faults", include_str!("faults.rs")),
    ("odd", include_str!("odd.rs")),
    ("people", include_str!("people.rs")),
    ("land_as", include_str!("land_as.rs")),
    ("landed", include_str!("landed.rs")),
    ("limits", include_str!("limits.rs")),
    ("places", include_str!("places.rs")),
    ("main_tests", include_str!("main_tests.rs")),
    ("mcp", include_str!("mcp.rs")),
    ("members", include_str!("members.rs")),
    ("policies", include_str!("policies.rs")),
    ("proposals", include_str!("proposals.rs")),
    ("pull_requests", include_str!("pull_requests.rs")),
    ("reach", include_str!("reach.rs")),
    ("rooms", include_str!("rooms.rs")),
    ("settings", include_str!("settings.rs")),
    ("setup", include_str!("setup.rs")),
    ("standstill", include_str!("standstill.rs")),
    ("stopping", include_str!("stopping.rs")),
    ("webhooks", include_str!("webhooks.rs")),
];

#[rustfmt::skip]
const SHOWN: &[(&str, &str)] = &[
    ("project.main", "odd::a_main_of_another_name_in_a_folder_with_a_space"),
    ("project.max_turns", "dead_ends::the_turn_limit_of_the_project_holds_where_the_agent_has_none"),
    ("project.merge", "land_as::a_task_lands_as_one_commit_of_its_agent_where_the_settings_squash"),
    ("project.credit", "reach::the_settings_say_how_a_person_is_credited"),

    ("fleet.agent", "settings::a_lead_approves_what_another_did_where_the_settings_let_it"),
    ("fleet.workers", "people::a_command_that_a_workers_state_does_not_take_is_refused_with_the_reason"),
    ("fleet.isolation", "setup::a_worktree_of_the_repository_lands_a_ticket_too"),
    ("fleet.trees", "places::trees_lie_in_the_checkout_by_choice"),
    ("fleet.max_steps", "policies::no_changes_and_no_steps_left_need_a_person"),
    ("fleet.max_fix_rounds", "people::a_stuck_worker_goes_on_when_a_person_tries_it_again"),
    ("fleet.step_timeout", "faults::agents_that_hang_quit_crash_or_leave_daemons_end_done_and_leave_nothing_running"),
    ("fleet.stop_timeout", "stopping::a_call_that_is_running_ends_before_the_fleet_does"),
    ("fleet.review", "policies::tokens_and_dollars_agree_by_step_run_task_worker_agent_and_day"),
    ("fleet.plan", "mcp::the_plan_is_the_agents_where_the_settings_leave_it_to_agents"),
    ("fleet.restore", "settings::a_run_goes_on_when_all_services_are_back_or_its_own_as_the_settings_say"),

    ("test.command", "policies::the_settings_say_what_an_agent_is_told_of_failing_tests_and_in_which_words"),
    ("test.timeout", "faults::tests_that_hang_fork_or_are_killed_leave_nothing_and_are_told_to_the_agent"),

    ("test.env", "main_tests::tests_get_the_variables_that_are_named_for_them_and_everybody_the_proxy"),
    ("test.check_main", "main_tests::agents_start_on_a_main_that_fails_where_the_settings_let_them"),

    ("sandbox.namespaces", "reach::bubblewrap_holds_agents_and_tests_as_our_own_namespaces_do"),
    ("agents.*.adapter", "settings::a_command_is_run_as_the_settings_say_and_told_the_agents_own_prompt"),
    ("agents.*.command", "settings::a_command_is_run_as_the_settings_say_and_told_the_agents_own_prompt"),
    ("agents.*.author", "reach::agents_commit_unsigned_as_themselves_and_merges_are_signed_where_the_person_signs"),
    ("agents.*.model", "claude::a_ticket_lands_and_its_second_step_goes_on_in_the_session_that_was_written_down_before_the_first"),
    ("agents.*.role", "policies::a_yellow_call_of_an_intern_asks_a_person"),
    ("agents.*.kind", "settings::a_conversational_agent_has_more_turns_than_one_for_tasks"),
    ("agents.*.prompt", "settings::a_command_is_run_as_the_settings_say_and_told_the_agents_own_prompt"),
    ("agents.*.allowed_tools", "policies::a_tool_off_the_list_is_refused"),
    ("agents.*.max_turns", "claude::the_turn_limit_asks_a_person_who_can_let_it_go_on"),
    ("agents.*.env", "setup::an_agents_environment_is_the_allow_list_and_its_ports_and_temporary_folder_are_its_own"),
    ("agents.*.service", "policies::an_outage_suspends_and_the_health_command_restores"),
    ("agents.*.resume", "settings::sessions_are_begun_anew_where_the_settings_say_that_they_cannot_be_taken_up"),
    ("agents.*.budget_usd", "policies::an_agent_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised"),

    ("budget.run_usd", "policies::a_run_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised"),
    ("budget.task_usd", "policies::a_task_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised"),
    ("budget.day_usd", "policies::a_day_that_reaches_its_budget_asks_once_for_all_and_begins_nothing_new"),
    ("budget.step_usd", "policies::a_step_of_unknown_price_is_said_loudly_and_stays_set_aside"),

    ("tickets.source", "settings::tickets_are_read_from_the_folder_that_the_settings_name_and_from_none_where_they_say_so"),
    ("tickets.dir", "settings::tickets_are_read_from_the_folder_that_the_settings_name_and_from_none_where_they_say_so"),

    ("sandbox.mode", "setup::a_sandbox_that_is_off_is_said_by_run_and_doctor"),
    ("sandbox.caches", "setup::a_declared_cache_can_be_written_and_ports_come_in_the_blocks_that_the_settings_say"),
    ("sandbox.read", "settings::a_sandboxed_agent_reads_what_is_hidden_where_the_settings_let_it"),
    ("sandbox.hide", "reach::credentials_are_hidden_from_agents_and_tests"),
    ("sandbox.ports", "reach::agents_and_tests_listen_at_their_own_ports_and_not_at_the_servers"),
    ("sandbox.network", "reach::tests_have_no_network_where_the_settings_say_so"),

    ("policy.red", "policies::a_red_call_waits_and_is_done_only_where_a_person_allows_it"),
    ("policy.yellow", "policies::a_yellow_call_of_an_intern_asks_a_person"),
    ("policy.green", "policies::the_settings_say_when_calls_are_a_loop_and_how_many_may_fail_and_what_never_asks"),
    ("policy.lead_may_complete", "settings::a_lead_approves_what_another_did_where_the_settings_let_it"),
    ("policy.max_review_cycles", "settings::one_review_more_than_the_settings_allow_blocks_the_task"),
    ("policy.max_landing_rounds", "faults::conflicts_and_red_merges_go_back_to_work_until_the_rounds_are_used_up"),
    ("policy.cap_in_progress", "policies::a_cap_holds_tasks_back_and_says_so"),
    ("policy.cap_per_agent", "policies::an_agents_cap_leaves_its_other_workers_idle_and_says_so"),
    ("policy.proposals", "proposals::a_chain_of_tasks_that_the_policy_accepts_ends"),

    ("architect.agent", "architect::a_spec_is_split_built_reviewed_and_landed"),
    ("architect.escalation", "architect::nobody_who_answers_in_time_is_an_error_that_keeps_everything"),
    ("architect.raises_budgets", "architect::the_architect_raises_a_budget_once_where_the_settings_let_it"),

    ("prompts.init", "settings::an_agent_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.step", "settings::an_agent_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.test_failure", "policies::the_settings_say_what_an_agent_is_told_of_failing_tests_and_in_which_words"),
    ("prompts.merge_conflict", "settings::an_agent_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.turn", "rooms::an_agent_is_told_that_it_is_its_turn_in_the_words_of_the_settings"),

    ("prompts.spec", "architect::the_architect_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.review", "architect::the_architect_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.question", "architect::the_architect_is_told_everything_in_the_words_of_the_settings"),
    ("prompts.budget", "architect::the_architect_is_told_everything_in_the_words_of_the_settings"),

    ("landing.by", "pull_requests::a_running_fleet_sees_that_a_pull_request_was_merged_on_the_remote_that_the_settings_name"),
    ("landing.remote", "pull_requests::a_running_fleet_sees_that_a_pull_request_was_merged_on_the_remote_that_the_settings_name"),
    ("landing.open", "pull_requests::a_running_fleet_sees_that_a_pull_request_was_merged_on_the_remote_that_the_settings_name"),

    ("hooks.worktree.create", "setup::hooks_run_at_their_points_with_a_time_limit_and_their_output_kept"),
    ("hooks.worktree.remove", "setup::hooks_run_at_their_points_with_a_time_limit_and_their_output_kept"),
    ("hooks.step.before", "setup::hooks_run_at_their_points_with_a_time_limit_and_their_output_kept"),
    ("hooks.step.after", "setup::hooks_run_at_their_points_with_a_time_limit_and_their_output_kept"),
    ("hooks.notify", "setup::the_notify_hook_runs_when_a_person_is_needed_and_knows_why"),
    ("hooks.landed", "landed::the_landed_hook_pushes_each_landing_to_the_remote"),
    ("notify.desktop", "land_as::the_desktop_is_told_when_a_person_is_needed"),
    ("notify.severity", "webhooks::the_hook_is_told_only_of_what_matters_as_much_as_the_settings_say"),
    ("webhooks.*.url", "webhooks::a_message_that_is_not_taken_is_sent_again_with_the_same_id_and_signed"),
    ("webhooks.*.secret_env", "webhooks::a_message_that_is_not_taken_is_sent_again_with_the_same_id_and_signed"),
    ("webhooks.*.severity", "webhooks::a_message_that_is_not_taken_is_sent_again_with_the_same_id_and_signed"),
    ("hooks.timeout", "setup::hooks_run_at_their_points_with_a_time_limit_and_their_output_kept"),

    ("worktree.copy", "setup::files_that_git_ignores_come_into_the_tree_as_the_settings_say_and_land_nowhere"),
    ("worktree.symlink", "main_tests::a_virtual_environment_that_is_ignored_with_a_slash_is_linked_into_every_tree"),

    ("trash.age", "disk::the_trash_is_held_to_its_size_and_to_its_age"),
    ("trash.size", "disk::the_trash_is_held_to_its_size_and_to_its_age"),
    ("logs.age", "disk::what_agents_and_tests_printed_is_held_to_its_age_and_to_its_size"),
    ("logs.size", "disk::what_agents_and_tests_printed_is_held_to_its_age_and_to_its_size"),

    ("ports.first", "setup::a_declared_cache_can_be_written_and_ports_come_in_the_blocks_that_the_settings_say"),
    ("ports.block", "setup::a_declared_cache_can_be_written_and_ports_come_in_the_blocks_that_the_settings_say"),
    ("ports.blocks", "settings::no_more_runs_than_the_settings_have_blocks_of_ports_are_at_work"),

    ("services.*.health", "policies::an_outage_suspends_and_the_health_command_restores"),
    ("services.*.timeout", "settings::the_settings_say_how_often_services_are_asked_and_how_long_they_may_take_to_answer"),
    ("services.*.agents", "settings::a_run_that_waited_for_its_service_as_long_as_the_settings_say_frees_its_worker"),

    ("limits.suspension", "settings::a_run_that_waited_for_its_service_as_long_as_the_settings_say_frees_its_worker"),
    ("limits.health_poll", "settings::the_settings_say_how_often_services_are_asked_and_how_long_they_may_take_to_answer"),
    ("limits.question", "policies::an_unanswered_call_frees_the_worker_and_its_decision_goes_into_the_next_prompt"),
    ("limits.silence", "claude::a_stream_that_stalls_is_ended_and_tried_once_more_in_a_fresh_session"),
    ("limits.lost_workers", "settings::a_task_that_lost_as_many_workers_as_the_settings_allow_is_blocked"),
    ("limits.outside_lease", "settings::an_agent_from_outside_that_gives_no_sign_of_life_loses_its_task_when_the_settings_say"),
    ("limits.standstill", "standstill::a_fleet_whose_only_agent_asks_says_what_it_waits_for_when_the_settings_say_and_once"),
    ("limits.heartbeat", "settings::a_connected_agent_that_misses_its_heartbeats_loses_its_task_when_the_settings_say"),
    ("limits.checkout", "faults::a_landing_waits_for_local_changes_in_its_files_and_for_nothing_else"),
    ("limits.backoff", "people::five_failing_steps_make_a_worker_stuck_and_its_tree_stays"),
    ("limits.replies", "members::no_more_replies_run_at_once_than_the_settings_allow"),
    ("limits.same_step", "faults::a_conflict_that_is_not_solved_is_shown_as_one_and_an_agent_that_repeats_itself_is_stopped"),
    ("limits.same_call", "policies::the_settings_say_when_calls_are_a_loop_and_how_many_may_fail_and_what_never_asks"),
    ("limits.tool_failures", "policies::the_settings_say_when_calls_are_a_loop_and_how_many_may_fail_and_what_never_asks"),
    ("limits.effect_tries", "settings::the_settings_say_after_how_many_tries_a_person_is_told"),
    ("limits.pull_request", "pull_requests::a_running_fleet_sees_that_a_pull_request_was_merged_on_the_remote_that_the_settings_name"),
    ("limits.text_bytes", "policies::the_settings_say_how_much_is_read_of_tickets_and_taken_of_texts"),
    ("limits.dependencies", "policies::the_settings_say_how_much_is_read_of_tickets_and_taken_of_texts"),
    ("limits.proposals", "proposals::tasks_that_an_agent_adds_wait_for_a_person_and_are_no_more_than_the_settings_allow"),
    ("limits.kept_answers", "settings::the_settings_say_how_many_answers_are_kept_for_keys"),
    ("limits.ticket_bytes", "policies::the_settings_say_how_much_is_read_of_tickets_and_taken_of_texts"),
    ("limits.tickets", "settings::more_tickets_than_the_settings_allow_are_not_read_and_said"),
    ("limits.line_bytes", "policies::the_settings_say_how_long_a_line_and_all_that_a_step_prints_may_be"),
    ("limits.output_bytes", "policies::the_settings_say_how_long_a_line_and_all_that_a_step_prints_may_be"),
    ("limits.test_output_bytes", "policies::the_settings_say_what_an_agent_is_told_of_failing_tests_and_in_which_words"),
    ("limits.copy_files", "setup::more_ignored_files_than_the_settings_allow_are_not_copied_and_said"),
    ("limits.copy_bytes", "setup::more_ignored_files_than_the_settings_allow_are_not_copied_and_said"),
    ("limits.processes", "limits::an_agent_that_takes_too_much_is_blocked_with_the_limit_while_others_land"),
    ("limits.memory", "limits::an_agent_that_takes_too_much_is_blocked_with_the_limit_while_others_land"),
];

/// The text of a test, from its name to its end.
fn text_of(test: &str) -> Option<&'static str> {
    let (module, name) = test.split_once("::")?;
    let (_, source) = SOURCES.iter().find(|(known, _)| *known == module)?;
    let (_, rest) = source.split_once(&format!("#[test]\nfn {name}() {{\n"))?;
    Some(rest.split_once("\n}\n").map_or(rest, |(text, _)| text))
}

/// Whether a text sets a key, as it stands in the file or as a word that is put there.
fn sets(text: &str, key: &str) -> bool {
    let before = |at: usize| text[..at].chars().next_back();
    let whole = |at: usize| {
        !before(at).is_some_and(|c| c.is_alphanumeric() && !text[..at].ends_with("\\n") || c == '_')
    };
    text.contains(&format!("\"{key}\"")) || text.match_indices(&format!("{key} = ")).any(|(at, _)| whole(at))
}

#[test]
fn every_key_has_a_test_that_shows_it() {
    let shown: BTreeMap<&str, &str> = SHOWN.iter().copied().collect();
    assert_eq!(shown.len(), SHOWN.len(), "a key is named once");
    let mut faults = Vec::new();
    let mut known = Vec::new();
    for (section, key) in
        keys::SECTIONS.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key)))
    {
        let path = format!("{}.{}", section.path, key.path);
        match shown.get(path.as_str()).map(|test| (test, text_of(test))) {
            None => faults.push(format!("{path}: no test is named; write one and name it here")),
            Some((test, None)) => faults.push(format!("{path}: there is no test {test}")),
            Some((test, Some(text))) if !sets(text, key.path) && !sets(SETTINGS, key.path) => {
                faults.push(format!("{path}: {test} does not set it"));
            }
            Some(_) => {}
        }
        known.push(path);
    }
    let gone = shown.keys().filter(|path| !known.iter().any(|known| known == *path));
    faults.extend(gone.map(|path| format!("{path}: there is no such key")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
