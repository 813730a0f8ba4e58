/** Patch, transcript, tests and story of the example task. */
import type { Entry, TestRun, Told } from '../screens/task/types';

const LONG = 'tests/fixtures/locale/zh-Hans-CN/numbers-with-fullwidth-digits-and-thousands-separators/０１２.txt';

export const EXAMPLE_PATCH = `diff --git a/commands/check b/commands/check
index 8eb7f5a..f1cff01 100755
--- a/commands/check
+++ b/commands/check
@@ -1,2 +1,6 @@
 # Passes numbers on; refuses the first line that is none, with its place.
-awk '!/^-?[0-9]+$/ { print "tally: line " NR " is not a number: " $0 > "/dev/stderr"; exit 1 } { print }'
+awk '
+  !/^-?[0-9]+$/ { print "tally: " FILENAME ":" NR ": not a number: " $0 > "/dev/stderr"; exit 3 }
+	{ print }
+'
+# Exit 3: a line was refused. README.md lists the exit codes.
diff --git a/tests/check.test b/tests/check.test
new file mode 100644
index 0000000..668eddd
--- /dev/null
+++ b/tests/check.test
@@ -0,0 +1,7 @@
+printf '3\\nx\\n' | sh tally check >/dev/null 2>&1 && { echo "x was taken for a number"; exit 1; }
+got=$(printf '3\\n-4\\n' | sh tally check | wc -l)
+[ "$got" -eq 2 ] || { echo "check of 3 -4: expected 2 lines, got $got"; exit 1; }
+got=$(sh tally check <'${LONG}' 2>&1)
+[ "$got" = 'tally: -:1: not a number: ０１２' ] || { echo "０１２ was taken: $got"; exit 1; }
+got=$(printf '\\u202e21' | sh tally check 2>&1) # \u202e21
+exit 0
\\ No newline at end of file
diff --git a/${LONG} b/${LONG}
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/${LONG}
@@ -0,0 +1,3 @@
+０
+１
+２
diff --git a/README.md b/README.md
index 8eb7f5a..f1cff01 100644
--- a/README.md
+++ b/README.md
@@ -8,5 +8,9 @@ Small commands over columns of numbers
 ## Exit codes
 
-0: everything was read. 1: something else.
-2: usage.
+0: every line was read. 1: something else.
+2: usage error.
+3: a line was refused; its place stands in the message.
+
+Numbers are decimal, with a sign or without.
+Digits of other scripts are refused.
 
diff --git a/docs/picture.png b/docs/picture.png
index 1111111..2222222 100644
Binary files a/docs/picture.png and b/docs/picture.png differ
`;

const at = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const entry = (cursor: number, kind: string, text: string): Entry => ({ cursor, at: at(2000 - cursor * 8), kind, text });

export const EXAMPLE_ENTRIES: Entry[] = [
  entry(1, 'step', 'ta-8 init, worker B'),
  entry(2, 'text', 'I look at how check passes numbers on before I change it.'),
  entry(3, 'tool', 'Read(commands/check)'),
  entry(4, 'result', "Read: # Passes numbers on\nawk '!/^-?[0-9]+$/ {\n…"),
  entry(5, 'tool', 'Edit(commands/check)'),
  entry(6, 'tool', 'Write(tests/check.test)'),
  entry(7, 'result', 'Edit: changed commands/check'),
  entry(8, 'result', 'Write: wrote tests/check.test'),
  entry(9, 'tool', 'Bash(sh tests/run)'),
  entry(10, 'failure', 'Bash: exit code 1\nFAIL tests/check.test: x was taken for a number'),
  entry(11, 'text', 'The pattern takes an empty line; I anchor it.'),
  entry(12, 'tool', 'Bash(git add -A && git commit -m "Refuse what is not a number")'),
  entry(13, 'result', 'Bash: '),
  entry(14, 'text', 'DONE'),
  entry(15, 'end', 'ended with exit code 0'),
];

export const EXAMPLE_TESTS: TestRun[] = [{
  effect: 'e96', hook: null, command: 'sh tests/run', folder: '/home/me/tally.agents/landing', ended: 'exit code 0',
  output: 'ok    tests/check.test\nok    tests/count.test\nok    tests/max.test\nok    tests/median.test\nok    tests/min.test\n',
}];

const told = (seconds: number, tone: Told['tone'], text: string, run: string | null = null): Told => ({ timestamp: at(seconds), actor: 'system', tone, text, task: 'ta-8', worker: 'B', run });

export const EXAMPLE_STORY: Told[] = [
  told(9000, 'plain', 'ta-8 was added from its ticket: Refuse what is not a number'),
  told(3000, 'plain', 'B takes ta-8: Refuse what is not a number', 'ta-8.1'),
  told(2900, 'plain', 'ta-8: a plan of 3 bullets', 'ta-8.1'),
  told(2800, 'plain', 'ta-8: the tests run', 'ta-8.1'),
  told(2700, 'error', 'ta-8: the tests fail: x was taken for a number', 'ta-8.1'),
  told(2000, 'good', 'ta-8: the tests pass', 'ta-8.1'),
  told(1800, 'you', 'local asked for changes, round 1', null),
  told(1790, 'plain', 'B takes ta-8 up again in the same tree', 'ta-8.2'),
  told(1100, 'good', 'ta-8: the tests pass', 'ta-8.2'),
  told(1020, 'you', 'ta-8 waits for your review', null),
];
