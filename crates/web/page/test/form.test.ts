import { expect, test } from 'vitest';
import type { Problem } from '../src/api/client';
import { bodyOf, fieldProblems, initialValues, missing, problemWords, type FormField } from '../src/parts/form';

const field = (name: string, kind: FormField['kind'], more: Partial<FormField> = {}): FormField => ({ name, label: name, kind, required: true, text: `${name} required.`, ...more });
const problem = (more: Partial<Problem>): Problem => ({ type: '', title: 'refused', status: 422, detail: 'cannot move', ...more });

test('a name with dots becomes a member inside of another one, beside what the action brings', () => {
  const fields = [field('deliverable.content', 'text'), field('workPlan.bullets', 'list')];
  expect(bodyOf({ to: 'REVIEW', deliverable: { artifacts: [] } }, fields, { 'deliverable.content': 'Done.', 'workPlan.bullets': ['a', ' ', 'b '] }))
    .toEqual({ to: 'REVIEW', deliverable: { artifacts: [], content: 'Done.' }, workPlan: { bullets: ['a', 'b'] } });
});

test('the body of the action is not changed', () => {
  const body = { deliverable: { artifacts: [] } };
  bodyOf(body, [field('deliverable.content', 'text')], { 'deliverable.content': 'x' });
  expect(body).toEqual({ deliverable: { artifacts: [] } });
});

test('a checklist is sent with its type if it is filled in, and not at all if it is empty', () => {
  const fields = [field('reviewChecklist', 'checklist')];
  const body = { to: 'REVIEW', reviewChecklist: { type: 'bug' } };
  expect(bodyOf(body, fields, { reviewChecklist: [{ item: 'Tests?', answer: 'yes' }, { item: '', answer: '' }] }))
    .toEqual({ to: 'REVIEW', reviewChecklist: { type: 'bug', items: [{ item: 'Tests?', answer: 'yes' }] } });
  expect(bodyOf(body, fields, initialValues(fields))).toEqual({ to: 'REVIEW' });
});

test('numbers are sent as numbers, and empty values are left out', () => {
  expect(bodyOf({}, [field('limit', 'number'), field('note', 'line')], { limit: ' 2.5 ', note: ' ' })).toEqual({ limit: 2.5 });
});

test('what is required and missing is said with the words of the field', () => {
  const fields = [field('reason', 'choice'), field('note', 'text', { required: false }), field('agents', 'choices')];
  expect(missing(fields, initialValues(fields))).toEqual({ reason: 'reason required.', agents: 'agents required.' });
});

test('a list has at least and at most so many items', () => {
  const list = field('plan', 'list', { items: [3, 6] });
  expect(initialValues([list])['plan']).toHaveLength(3);
  expect(missing([list], { plan: ['a', 'b', ''] })).toEqual({ plan: 'At least 3 items: 2 are there.' });
  expect(missing([list], { plan: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] })).toEqual({ plan: 'At most 6 items: 7 are there.' });
});

test('the questions of a checklist are its choices, and each is answered', () => {
  const list = field('checks', 'checklist', { choices: ['Tests?', 'Docs?'] });
  const values = initialValues([list]);
  expect(values['checks']).toEqual([{ item: 'Tests?', answer: '' }, { item: 'Docs?', answer: '' }]);
  expect(missing([list], { checks: [{ item: 'Tests?', answer: 'yes' }, { item: 'Docs?', answer: '' }] })).toEqual({ checks: '1 item has no question or no answer.' });
});

test('an error stands at its field, also if it names only what the field is inside of', () => {
  const errors = [{ field: 'workPlan', message: 'Work plan required' }, { field: 'assigneeIds[0]', message: 'unknown agent' }, { field: 'landing', message: 'not landed' }];
  expect(fieldProblems(problem({ errors }), [field('workPlan.bullets', 'list'), field('assigneeIds', 'choices')]))
    .toEqual({ at: { 'workPlan.bullets': 'Work plan required', assigneeIds: 'unknown agent' }, rest: ['not landed'] });
});

test('a problem is told by the words of its rules, else by its detail, with its hint', () => {
  expect(problemWords(problem({ errors: [{ field: 'landing', message: 'not landed' }] }))).toBe('not landed.');
  expect(problemWords(problem({ hint: 'wait for it' }))).toBe('cannot move. wait for it.');
});
