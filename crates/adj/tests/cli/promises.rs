//! What is promised about faults and attackers, each with the tests that drive it. `docs/promises.md` is this table,
//! printed; a test that is renamed or removed is missed here.
//!
//! `ADJ_WRITE_DOCS=1 cargo test --workspace --test cli promises` writes the page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A promise, and the tests by which it would be noticed broken. `NONE` says what is not there yet.
type Promise = (&'static str, &'static [&'static str]);

/// Not built or not driven yet: the reason stands in its place.
const NONE: &[&str] = &[];

const NOTHING_LOST: &[Promise] = &[
    (
        "Every acknowledged command is in the log, whatever is killed",
        &[
            "a_process_killed_anywhere_loses_nothing_it_acknowledged",
            "a_task_that_was_printed_is_there_after_a_kill_anywhere",
        ],
    ),
    (
        "Damage and loss of durable streams are reported, and nothing damaged is read or written",
        &["damage_and_loss_of_streams_are_said_and_nothing_damaged_is_read_or_written"],
    ),
    (
        "A backup of a running project is restored into a fresh clone and continues",
        &["a_backup_of_a_running_project_is_restored_into_a_fresh_clone_and_goes_on"],
    ),
    (
        "A server stops within a second, and its readers get an answer that tells them to reconnect",
        &[
            "a_server_stops_within_a_second_whoever_reads_and_answers_those_who_wait",
            "a_stop_waits_for_no_request_that_a_git_takes_long_to_answer",
        ],
    ),
    (
        "Webhooks of streams reach no private address unless it is allowed, and follow no redirect",
        &[
            "webhooks_of_streams_do_not_reach_this_machine_or_a_private_network_unless_it_is_allowed",
            "webhooks_of_streams_are_sent_over_https_and_follow_no_redirect",
        ],
    ),
    (
        "The token of an earlier reply of the architect is refused",
        &["the_token_of_an_earlier_reply_of_the_architect_answers_nothing"],
    ),
    (
        "A reader's token changes nothing, over HTTP and by tools",
        &["a_readers_token_is_offered_only_the_tools_that_read"],
    ),
    (
        "Every commit that an agent made is kept",
        &[
            "every_commit_that_an_agent_made_is_held_by_what_is_saved",
            "commits_are_saved_wherever_the_git_directory_was_put",
            "a_cleanup_saves_commits_whose_git_directory_was_moved",
        ],
    ),
    (
        "Uncommitted files are kept, or saved to a ref before anything is removed",
        &[
            "every_kind_of_file_is_kept_as_it_is",
            "cleanup_and_clean_save_everything_before_they_remove_it",
            "a_temporary_folder_goes_to_the_trash",
        ],
    ),
    (
        "The output of an agent before a fault is kept",
        &["output_survives_its_servers", "any_bytes_are_kept_as_they_are"],
    ),
    (
        "Cost and tokens are counted once",
        &[
            "tokens_and_dollars_agree_by_step_run_task_worker_agent_and_day",
            "a_server_that_is_killed_in_the_middle_of_a_step_finds_it_again",
        ],
    ),
    (
        "A fleet that is killed before or after any effect finishes as if nothing had happened",
        &[
            "a_fleet_that_is_killed_around_any_effect_ends_as_if_nothing_had_happened",
            "a_fleet_with_worktrees_that_is_killed_ends_as_if_nothing_had_happened",
            "a_task_in_a_clone_lives_on_after_a_kill_anywhere",
        ],
    ),
    (
        "A killed agent or keeper costs one step and no work",
        &[
            "a_killed_keeper_and_a_killed_agent_cost_a_step_and_no_work",
            "a_keeper_that_is_killed_leaves_nothing_that_cannot_be_found",
        ],
    ),
    (
        "Tests that are killed, hang or fork leave no process, and the agent gets the reason",
        &["tests_that_hang_fork_or_are_killed_leave_nothing_and_are_told_to_the_agent"],
    ),
    (
        "A git that is killed at any rename or unlink leaves no lock and no half-moved checkout",
        &[
            "a_git_that_is_killed_at_any_rename_or_unlink_leaves_no_lock_and_no_half_moved_checkout",
            "a_git_that_is_killed_while_it_brings_objects_begins_again",
            "locks_that_an_agents_own_git_left_are_gone_before_its_next_step",
            "a_git_that_is_killed_among_worktrees_leaves_no_lock_either",
            "a_fleet_that_is_killed_together_with_its_git_puts_the_checkout_right_when_it_is_back",
        ],
    ),
    (
        "Agents that hang, exit silently or leave a daemon are ended, and leave no process",
        &[
            "agents_that_hang_quit_crash_or_leave_daemons_end_done_and_leave_nothing_running",
            "a_daemon_is_ended_with_its_program",
        ],
    ),
    (
        "A full disk is reported and loses nothing; work continues when there is space",
        &[
            "a_full_disk_is_said_loses_nothing_and_is_over_when_there_is_room",
            "a_fleet_that_meets_a_full_disk_again_and_again_stays_up_and_lands_everything",
            "adj_stop_ends_the_fleet_on_a_full_disk_and_the_next_one_goes_on",
            "what_an_agent_made_is_taken_in_when_there_is_room_for_it",
            "a_landing_waits_for_room_and_is_not_said_to_have_failed",
            "a_disk_that_is_full_for_a_while_loses_nothing",
            "what_is_deleted_while_agents_run_is_free_at_once",
        ],
    ),
    ("A failed sync is not acknowledged", &["a_failed_sync_is_not_acknowledged_and_the_file_is_opened_anew"]),
    (
        "A power cut at any moment loses nothing that was acknowledged",
        &[
            "a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged",
            "a_run_whose_power_is_cut_at_any_moment_ends_by_itself_with_all_that_was_recorded",
            "tickets_that_git_does_not_know_are_whole_after_a_power_cut",
            "main_in_an_agents_clone_is_whole_after_a_power_cut",
            "what_a_program_printed_is_on_the_disk_before_how_it_ended_is",
            "a_run_on_a_real_disk_whose_power_is_cut_ends_by_itself_with_all_that_was_recorded",
            "an_agent_whose_power_is_cut_in_the_middle_of_a_step_goes_on_in_a_sound_tree",
        ],
    ),
    (
        "Flipped, truncated or overwritten bytes are never read as valid data",
        &[
            "a_flipped_byte_in_the_database_is_never_read_as_if_it_were_right",
            "a_write_ahead_log_that_was_cut_short_loses_nothing_in_silence",
            "a_land_git_with_damaged_objects_is_made_anew",
            "a_damaged_log_is_never_taken_for_an_empty_one",
        ],
    ),
    (
        "If `land.git` is removed, it is created again",
        &["a_land_git_that_is_removed_in_the_middle_of_a_run_is_made_again"],
    ),
    (
        "A changed clock delays nothing and ends nothing early",
        &[
            "a_clock_that_is_set_while_a_worker_waits_delays_nothing",
            "a_clock_that_is_set_forward_ends_nothing_early",
        ],
    ),
    (
        "Locks that no process holds are removed; locks of the user are waited for",
        &[
            "locks_that_nobody_holds_are_removed_and_others_are_not",
            "the_index_locked_by_the_user_is_waited_for_and_never_unlocked",
            "main_locked_by_the_user_is_waited_for_and_never_unlocked",
        ],
    ),
    (
        "A tree that is deleted, corrupted or switched manually is created again, and no work is lost",
        &[
            "a_tree_that_is_deleted_or_switched_by_hand_is_made_again",
            "agents_that_ruin_their_own_git_directory_lose_no_work",
        ],
    ),
    (
        "A second server on one project is refused, and a first one that wakes up again cannot write",
        &[
            "a_second_fleet_is_refused_and_once_gives_each_worker_one_step",
            "an_owner_whose_lock_was_deleted_cannot_write_over_its_successor",
        ],
    ),
    (
        "If a model's service is unavailable, agents wait without an error, and one of them alone retries",
        &[
            "a_service_that_is_away_is_waited_for_and_costs_no_error",
            "an_outage_that_goes_on_is_told_once_and_tried_by_one_run",
            "an_outage_suspends_and_the_health_command_restores",
            "a_run_that_tries_an_unavailable_service_gives_up_as_soon_as_the_others",
            "a_model_that_goes_away_under_a_fleet_is_tried_by_one_alone_and_nothing_is_lost",
            "a_limit_is_waited_for_by_rooms_and_the_architect_of_which_one_goes_first",
        ],
    ),
    (
        "A decision of the architect counts only for the request that it was shown",
        &[
            "what_a_reply_says_after_its_decision_decides_no_other_review",
            "the_last_words_of_a_review_are_no_answer_to_a_question",
            "the_architect_s_quotations_decide_nothing",
            "claude_as_architect_of_two_queued_reviews_decides_each_by_its_tool",
            "no_message_decides_by_what_it_quotes",
            "an_answer_of_a_reply_that_was_not_shown_the_request_is_noticed",
        ],
    ),
    (
        "The same command sent twice is executed once",
        &["a_key_answers_twice_what_was_done_once", "input_is_journaled_and_the_same_id_is_passed_on_once"],
    ),
    ("A slow reader delays nobody", &["a_slow_reader_holds_up_nobody"]),
    (
        "Output of any kind (without newlines, invalid UTF-8, escapes, very long) does no harm",
        &[
            "output_of_any_kind_is_survived_and_shown_harmless",
            "a_line_of_a_hundred_megabytes_flows_through_a_small_keeper",
            "a_program_that_writes_too_much_is_ended",
        ],
    ),
    (
        "An agent that commits to main, deletes branches, rewrites refs or runs gc loses no work and moves no other branch",
        &[
            "an_agent_in_a_worktree_moves_its_own_branch_and_no_other",
            "an_agents_clone_has_no_way_to_the_users_repository",
            "an_agent_that_tidies_up_loses_nothing",
            "a_main_that_was_moved_past_the_gate_is_said_loudly",
            "the_same_commit_in_two_trees_is_no_main_that_was_moved",
        ],
    ),
    (
        "If the user removes commits from main, they do not come back; if main moves during a merge, the merge is tested again",
        &[
            "a_commit_that_the_user_takes_off_main_does_not_come_back_by_a_landing",
            "a_commit_that_was_taken_off_main_stays_off_it_without_land_git_too",
            "a_commit_that_was_seen_to_leave_main_stays_off_it_when_land_git_is_lost_later",
            "what_was_taken_off_main_is_no_commit_of_the_agents_and_is_named_where_it_conflicts",
            "what_the_user_amends_on_main_is_not_taken_for_the_agents_work",
            "a_main_that_the_user_moves_during_a_landing_is_tested_anew",
        ],
    ),
    (
        "Failing and conflicting work goes back to its agent, and does not stop other work",
        &["conflicts_and_red_merges_go_back_to_work_until_the_rounds_are_used_up"],
    ),
    (
        "Time asleep ends no question, suspension, heartbeat, lease or step",
        &[
            "time_asleep_ends_no_question_in_a_running_fleet_or_after_a_restart",
            "time_asleep_ends_no_suspension_no_heartbeat_no_lease_and_no_step",
        ],
    ),
    (
        "An upgrade that is killed is done again; an older program does not touch a newer log",
        &[
            "a_failed_upgrade_leaves_the_file_as_it_was_and_is_redone",
            "a_log_of_a_newer_version_is_left_alone",
        ],
    ),
    (
        "A single command, `adj import` included, can be killed anywhere, and the log still opens",
        &[
            "an_import_that_was_killed_anywhere_leaves_a_log_that_opens",
            "a_log_whose_making_was_killed_can_be_read_at_once",
        ],
    ),
    (
        "Main is always a commit that was tested as merged",
        &[
            "a_merge_that_was_tested_for_a_killed_server_does_not_stand_for_another_one",
            "a_fleet_that_is_killed_around_any_effect_ends_as_if_nothing_had_happened",
        ],
    ),
    ("A runner on another machine loses its connection: such runners do not exist yet", NONE),
    ("A reader reconnects after its records were deleted: the log deletes no records yet", NONE),
    (
        "`adj init` writes settings with which the tests of a fresh tree pass",
        &[
            "trees_of_every_ecosystem_are_set_up_by_init_so_that_their_tests_pass",
            "a_repository_lands_a_change_with_what_init_wrote",
            "what_the_files_of_other_tools_say_is_taken_over_by_init",
        ],
    ),
    (
        "Commit hooks that do not run in trees are reported, and run with the tests if asked for",
        &["init_says_that_commit_hooks_do_not_run_and_adds_them_to_the_tests_if_asked"],
    ),
];

const NOBODY_GETS_IN: &[Promise] = &[
    (
        "The same settings are in force for every command, the socket, the server and the fleet",
        &[
            "settings_are_in_force_for_commands_without_a_server_and_with_one",
            "a_server_applies_the_settings_when_they_change_and_shows_what_waits",
        ],
    ),
    (
        "The settings also limit agents that Adjutant does not start",
        &[
            "a_server_applies_the_settings_when_they_change_and_shows_what_waits",
            "an_agent_outside_has_one_run_at_a_time_and_speaks_for_no_other",
            "a_dependency_holds_an_agent_outside",
            "an_agent_outside_reports_results_output_and_cost_and_its_red_calls_are_asked",
            "budgets_hold_an_agent_outside_and_turns_are_raised_within_the_limit",
            "the_limits_of_an_agent_outside_hold_by_tools_too",
        ],
    ),
    (
        "An idempotency key belongs to its caller, and a repeated request gets the first response, also after a kill",
        &["a_key_is_its_callers_own_and_a_replay_is_the_first_response"],
    ),
    (
        "Every request needs a token",
        &[
            "nobody_is_answered_without_a_token",
            "every_route_is_closed_to_strangers_and_takes_no_nonsense",
            "only_our_own_name_and_page_are_answered_and_never_without_a_token",
        ],
    ),
    (
        "Every route is open only to the roles in its row",
        &["every_route_is_open_to_whom_its_row_says_and_to_nobody_else"],
    ),
    (
        "The server checks host and origin, and accepts a change with a cookie only from its own page",
        &[
            "only_our_own_name_and_page_are_answered_and_never_without_a_token",
            "a_browser_comes_in_by_a_link_that_works_once",
            "a_link_on_another_page_may_be_followed_and_nothing_else_comes_from_there",
        ],
    ),
    (
        "A browser's cookie alone is refused, so a program at another port cannot use the session",
        &[
            "a_browser_that_opens_an_agents_page_gives_it_nothing_that_lets_it_in",
            "a_cookie_without_the_page_key_of_its_session_lets_nobody_in_and_ends_nothing",
        ],
    ),
    (
        "A client sends its token only to a server that has proven that it knows the token, for the address in use",
        &[
            "a_program_at_the_servers_port_is_named_and_is_sent_no_token",
            "a_program_that_passes_the_question_on_to_the_real_server_is_sent_no_token",
            "an_agent_at_the_port_of_the_server_is_named_and_is_sent_no_token",
            "only_who_keeps_the_hash_and_listens_there_can_answer_and_only_once",
        ],
    ),
    (
        "If one project cannot be opened, the others are served",
        &[
            "a_project_that_is_not_there_keeps_no_other_from_being_served",
            "several_projects_are_served_each_under_its_name_and_one_that_is_broken_keeps_nobody_out",
        ],
    ),
    (
        "Revoking a token or session ends its event streams, long polls and waits within a second",
        &["a_token_that_is_revoked_ends_what_is_read_and_waited_for_with_it"],
    ),
    ("The link of a revoked token is refused", &["a_link_of_a_revoked_token_lets_nobody_in"]),
    (
        "Two hundred clients that read nothing cost a server at most 64 MB",
        &["two_hundred_readers_that_take_nothing_cost_little_memory_whatever_they_read"],
    ),
    (
        "A server listens beyond this machine only with TLS or behind a proxy",
        &["a_server_listens_beyond_this_machine_only_behind_tls_or_a_proxy"],
    ),
    (
        "A reader's token cannot change anything, and a revoked one cannot read",
        &[
            "a_token_for_reading_changes_nothing_and_a_revoked_one_reads_nothing",
            "a_token_for_reading_reads_everything_and_changes_nothing",
        ],
    ),
    (
        "Only the user can read tokens; no log, transcript or argument contains one",
        &[
            "folder_socket_and_token_are_the_users_alone",
            "a_token_that_an_agent_prints_or_sends_is_kept_nowhere",
            "a_token_comes_into_no_log_whichever_process_writes_it",
            "modes_of_our_own_state_are_mended_and_said",
        ],
    ),
    (
        "Names and ids have one strict alphabet, and no name reaches git as an option",
        &["hostile_names_are_refused_or_harmless", "names_that_could_be_options_or_paths_reach_no_git"],
    ),
    (
        "Bodies that are too large or too deep are refused, and the next request is answered",
        &[
            "what_is_not_a_small_json_document_is_refused_and_the_next_request_is_fine",
            "nonsense_is_refused_by_every_route_and_the_next_request_is_fine",
            "who_is_slow_silent_or_gone_keeps_nobody_else_waiting",
        ],
    ),
    (
        "Idle connections block nobody",
        &[
            "an_agent_that_holds_every_connection_holds_up_nobody_else",
            "a_connection_without_a_request_is_closed_after_a_few_seconds",
            "who_is_slow_silent_or_gone_keeps_nobody_else_waiting",
            "a_token_that_asks_without_end_is_held_back_and_the_user_is_not",
        ],
    ),
    (
        "Adjutant runs no hook, filter, driver or alias of a repository",
        &[
            "no_hook_filter_or_driver_is_run_by_us_in_a_whole_life",
            "nothing_that_an_agent_plants_is_ever_run",
            "what_an_agent_in_a_worktree_plants_in_the_users_settings_is_not_run_by_us",
        ],
    ),
    (
        "Agent settings in a repository are not used until they are trusted",
        &[
            "what_a_repository_holds_for_claude_is_not_taken_up",
            "it_is_started_so_that_it_asks_and_takes_up_nothing_of_the_repository",
            "what_an_agent_leaves_for_the_next_start_of_codex_is_gone",
            "settings_from_an_agents_branch_are_not_in_force_until_they_are_trusted",
        ],
    ),
    (
        "Links out of a tree are not followed, and nothing outside it is changed",
        &[
            "links_out_of_the_git_directory_are_not_followed",
            "nothing_outside_the_tree_is_changed_in_any_way_and_sockets_are_out_of_sight",
            "nothing_about_a_file_outside_can_be_changed",
            "bubblewrap_holds_agents_and_tests_as_our_own_namespaces_do",
        ],
    ),
    (
        "Tests see the tree under test, and only linked or declared files of the user's checkout",
        &[
            "tests_see_nothing_of_the_checkout_but_what_is_linked_or_declared",
            "a_linked_environment_that_leads_back_into_the_checkout_is_refused_before_an_agent_starts",
            "workspace_packages_in_a_linked_folder_are_refused_and_no_hint_recommends_to_link_them",
        ],
    ),
    (
        "If main fails its tests, the fleet stops, and no agent is asked to fix it",
        &[
            "no_agent_starts_while_main_fails_and_a_running_fleet_notices_the_fix",
            "a_main_that_turned_red_unseen_stops_the_fleet_and_is_no_agents_fault",
            "a_red_merge_with_a_main_that_somebody_broke_is_no_agents_fault",
        ],
    ),
    (
        "Files that a hook leaves in a tree are not committed as an agent's work",
        &[
            "what_a_hook_leaves_in_a_tree_is_not_committed_as_the_agents_work",
            "a_branch_that_holds_what_the_hook_left_goes_back_to_its_agent",
        ],
    ),
    (
        "A list of files that an agent wrote copies none of the user's files",
        &[
            "what_trees_get_is_read_from_content_that_a_person_trusted",
            "content_of_an_agents_branch_holds_only_once_it_is_trusted",
        ],
    ),
    (
        "Credentials are hidden",
        &[
            "credentials_are_hidden_from_agents_and_tests",
            "strict_lets_nothing_be_read_but_system_tree_and_declared_places",
        ],
    ),
    (
        "Other processes are not visible",
        &["an_agent_sees_and_signals_none_but_its_own_processes", "nobody_outside_can_be_signalled"],
    ),
    (
        "Restrictions that a system cannot enforce are reported, and `strict` refuses to start",
        &[
            "a_system_without_namespaces_is_said_with_what_is_not_held",
            "strict_starts_nothing_that_it_cannot_hold",
            "a_sandbox_that_is_off_is_said_by_run_and_doctor",
        ],
    ),
    (
        "Agents and tests listen only at the ports of their own block, not at the server's",
        &[
            "agents_and_tests_listen_at_their_own_ports_and_not_at_the_servers",
            "a_program_listens_at_its_own_ports_and_where_the_system_lets_it_choose",
        ],
    ),
    (
        "Agents that run as root have no capability over the machine",
        &["root_keeps_only_what_work_on_files_takes"],
    ),
    (
        "Key files that the documentation names are hidden from agents and tests",
        &[
            "credentials_are_hidden_from_agents_and_tests",
            "every_file_of_ours_that_the_documentation_names_outside_of_a_project_is_hidden",
        ],
    ),
    ("Links into a git directory are not followed", &["a_link_into_a_git_directory_is_read_by_nobody"]),
    (
        "Commands that count as reading evaluate nothing",
        &[
            "what_could_change_or_run_something_is_not_reading",
            "no_line_is_too_odd_and_none_that_reads_is_evaluated",
        ],
    ),
    (
        "An agent's environment is an allow-list",
        &[
            "an_agents_environment_is_the_allow_list_and_its_ports_and_temporary_folder_are_its_own",
            "the_environment_is_exactly_what_was_said",
        ],
    ),
    (
        "Texts of agents are printed without control characters",
        &["output_of_any_kind_is_survived_and_shown_harmless"],
    ),
    (
        "A role is bound to its token, and an agent makes no decisions of a person",
        &[
            "an_agent_with_its_own_token_decides_nothing",
            "an_agent_works_with_its_token_and_decides_nothing_with_an_owner_or_without",
        ],
    ),
    (
        "A run's token acts for that run and its task, and a turn's token in its channel",
        &["a_token_of_a_run_acts_for_that_run_and_its_task_and_one_of_a_turn_in_its_channel"],
    ),
    (
        "An agent reads its own task, and not the work of others",
        &[
            "an_agent_reads_its_own_task_and_not_what_others_do",
            "a_sandboxed_agent_cannot_write_outside_its_tree_nor_read_tokens_or_another_tree",
        ],
    ),
    (
        "Tasks that agents add wait for a person, and their number is limited",
        &[
            "tasks_that_an_agent_adds_wait_for_a_person_and_are_no_more_than_the_settings_allow",
            "a_chain_of_tasks_that_the_policy_accepts_ends",
        ],
    ),
    (
        "The call that a person approves is the call that runs, once",
        &[
            "a_call_is_shown_whole_before_a_person_allows_it",
            "a_call_that_is_too_long_to_be_shown_is_refused",
        ],
    ),
    (
        "Processes and memory have limits, and other agents continue",
        &[
            "an_agent_that_takes_too_much_is_blocked_with_the_limit_while_others_land",
            "tests_of_main_that_take_too_much_are_red_with_the_limit",
            "an_ordinary_users_agents_are_refused_more_than_twice_the_limit_by_the_kernel",
            "a_tree_with_too_many_processes_or_too_much_memory_is_ended_whole",
            "a_delegated_cgroup_holds_each_step_to_its_limit_and_is_gone_afterwards",
        ],
    ),
    (
        "A git directory is never committed as files",
        &[
            "commits_are_saved_wherever_the_git_directory_was_put",
            "work_lands_wherever_the_git_directory_was_put_and_nothing_of_it_does",
        ],
    ),
    (
        "Changes to the log by other programs are reported with the first bad record",
        &[
            "verify_says_what_it_looked_at_and_names_the_first_record_that_was_edited",
            "what_somebody_else_made_in_the_database_is_named_and_a_trigger_stops_every_write",
        ],
    ),
];

/// What people are shown, and what an agent or a member of a room cannot keep others from.
const RULES_HOLD: &[Promise] = &[
    (
        "A decision word counts as the first or last line of a message, alone and not quoted",
        &["no_message_decides_by_what_it_quotes", "done_in_the_output_of_a_tool_or_in_a_quote_is_not_done"],
    ),
    (
        "A conflict that is not solved is shown as one, with its files and branch, and is not offered as ready",
        &[
            "a_conflict_that_is_not_solved_is_shown_as_one_and_an_agent_that_repeats_itself_is_stopped",
            "a_conflict_that_is_not_solved_comes_to_no_review",
            "a_conflict_in_review_is_shown_and_its_approval_refused",
        ],
    ),
    (
        "Only landings without progress by the agent count towards `policy.max_landing_rounds`",
        &[
            "a_conflict_with_a_newer_main_is_not_counted_where_the_one_before_was_solved",
            "conflicts_and_red_merges_go_back_to_work_until_the_rounds_are_used_up",
        ],
    ),
    (
        "A tree that was tested is not tested again because its ticket was closed",
        &["a_landing_keeps_its_caches_and_tests_nothing_twice"],
    ),
    (
        "A review shows the commits and the diff, or why it cannot",
        &["a_review_shows_commits_while_a_git_of_the_fleet_holds_a_lock_and_the_reason_if_it_cannot"],
    ),
    (
        "A suspension ends after its timeout for everybody, and a service is back only after it answered",
        &["a_run_that_tries_an_unavailable_service_gives_up_as_soon_as_the_others"],
    ),
    (
        "A lead completes the work of an agent that Adjutant does not start only if the policy allows it",
        &["a_lead_completes_the_work_of_an_agent_outside_if_the_policy_allows_it"],
    ),
    (
        "An invalid `adjutant.toml` is reported",
        &["a_settings_file_that_is_invalid_is_named_by_every_command_that_would_use_it"],
    ),
    (
        "A fleet that is started after a key was set tries at once",
        &["a_fleet_that_is_started_again_tries_refused_credentials_at_once"],
    ),
    (
        "A login is stored for its user alone and hidden from agents",
        &["a_login_is_kept_for_the_user_alone_and_given_to_the_agent_whose_env_names_it"],
    ),
    (
        "A disabled agent takes no task and no turn",
        &[
            "an_agent_that_is_disabled_takes_no_task_until_a_person_enables_it",
            "an_agent_that_is_disabled_in_its_turn_is_offline_and_idle_once_it_is_enabled",
        ],
    ),
    (
        "A full disk or a torn session file keeps no agent out of its room",
        &[
            "an_agent_whose_reply_fails_on_a_full_disk_stays_in_its_room_and_speaks_when_there_is_room",
            "a_member_whose_session_file_is_torn_begins_a_new_session_and_stays_in_its_room",
        ],
    ),
    ("Rooms leave tasks a share of the machine", &["no_more_replies_run_at_once_than_the_settings_allow"]),
    (
        "A turn that is ended by a tool leaves the agent's session as it is",
        &["a_turn_that_claude_ends_by_its_tool_leaves_its_session_as_it_is"],
    ),
    (
        "Members that wait or are lost, specs that need changes and a stopped architect are reported",
        &[
            "a_member_that_waits_and_a_wait_that_is_forfeited_are_told_by_the_fleet_and_in_the_room",
            "a_member_that_is_lost_is_told_by_the_fleet_with_the_way_back",
            "a_member_that_was_lost_and_a_turn_that_was_skipped_are_named_as_what_they_are",
            "changes_that_the_architect_asks_for_and_its_end_are_told_and_a_spec_that_needs_changes_waits",
        ],
    ),
    (
        "A reviewer that cannot approve is told what is missing",
        &["a_reviewer_that_cannot_approve_is_told_what_is_missing"],
    ),
    (
        "A page of tasks costs by its size, a server raises its file limit, and its log rotates",
        &[
            "a_page_of_tasks_looks_at_no_more_tasks_than_it_shows",
            "a_server_raises_its_file_limit_and_serves_more_readers_than_the_usual_one_allows",
            "the_log_of_a_server_in_the_background_is_set_aside_and_opened_again",
        ],
    ),
];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every test of the project, and the file that it is in.
fn tests() -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![project().join("crates")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of ours").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file of ours");
                let file = path.strip_prefix(project()).expect("it is in the project").display().to_string();
                let mut is_test = false;
                for line in text.lines().map(str::trim) {
                    let name = line
                        .trim_start_matches("pub(super) ")
                        .trim_start_matches("async ")
                        .strip_prefix("fn ");
                    match name.and_then(|name| name.split_once('(')) {
                        Some((name, _)) if is_test => drop(found.insert(name.to_owned(), file.clone())),
                        _ => {}
                    }
                    is_test = line.starts_with("#[test]") || is_test && line.starts_with("#[");
                }
            }
        }
    }
    found
}

fn page() -> String {
    let tests = tests();
    let mut page = "<!-- Written by `ADJ_WRITE_DOCS=1 cargo test --workspace --test cli promises`. -->\n# Promises\n\n\
        What Adjutant guarantees under faults and attacks, and the tests that check it. `make test` runs all of them; \
        `make cuts` cuts the power at every moment of a run instead of some.\n"
        .to_owned();
    let sections = [
        ("No work is lost", NOTHING_LOST),
        ("Access is restricted", NOBODY_GETS_IN),
        ("The rules hold", RULES_HOLD),
    ];
    for (title, promises) in sections {
        page.push_str(&format!("\n## {title}\n\n| promise | tests |\n| --- | --- |\n"));
        for (promise, driven_by) in promises {
            let named: Vec<String> = driven_by
                .iter()
                .map(|name| {
                    let file = tests.get(*name).unwrap_or_else(|| panic!("there is no test `{name}`"));
                    format!("[`{name}`](../{file})")
                })
                .collect();
            let named = if named.is_empty() { "nothing yet".to_owned() } else { named.join("<br>") };
            page.push_str(&format!("| {promise} | {named} |\n"));
        }
    }
    page
}

#[test]
fn every_promise_names_the_tests_that_drive_it() {
    let (path, page) = (project().join("docs/promises.md"), page());
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("a page of ours");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/promises.md is not what the table says; ADJ_WRITE_DOCS=1 cargo test --workspace --test cli promises writes it:\n{}",
        super::diff::diff(&written, &page)
    );
}
