/** One task: review, plan, transcript, checks and history, with a rail that says why it is where it is. */
import './task.css';
import './review.css';
import './tabs.css';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { useLocation, useParams } from 'wouter';
import { perform, useActions } from '../../keys/actions';
import { EmptyState } from '../../parts/EmptyState';
import { NARROW, RAIL, useMedia } from '../../parts/media';
import { Plain, plain } from '../../parts/plain';
import { useRail } from '../../parts/Rail';
import { Tabs, type Tab } from '../../parts/Tabs';
import { useFacts } from '../../store/store';
import { ChecksTab } from './ChecksTab';
import { useTask, type TaskData } from './data';
import { Decide, DecideNarrow, useChoose } from './Decide';
import type { Open } from './Dialogs';
import { HistoryTab } from './HistoryTab';
import { Plan, planVersions } from './Plan';
import { Review } from './Review';
import { Side } from './Side';
import { TaskHead } from './TaskHead';
import { TranscriptTab } from './TranscriptTab';

const TABS = ['review', 'plan', 'transcript', 'checks', 'history', 'why'] as const;
type TabId = (typeof TABS)[number];

export default function Task() {
  const { id = '', tab } = useParams<{ id: string; tab?: string }>();
  return <TaskScreen key={id} id={id} tab={tab} />;
}

function TaskScreen({ id, tab }: { id: string; tab: string | undefined }) {
  const [, go] = useLocation();
  const narrow = useMedia(NARROW);
  const wide = useMedia(RAIL);
  const named = TABS.find((each) => each === tab && (each !== 'why' || narrow));
  const data = useTask(id, named ?? 'review');
  // Without work there is nothing to review: the plan says more.
  const known: TabId = named ?? (data.task.value && !data.task.value.tip ? 'plan' : 'review');
  const [open, setOpen] = useState<Open>(null);
  const choose = useChoose(data, setOpen);
  useTitle(data);
  const { rail, opener } = useRail({ title: 'Why, checks, runs', children: <Side data={data} choose={choose} /> });
  useActions(useMemo(() => [
    {
      id: 'why', label: 'Why it is here', group: `On ${id}`,
      run: () => {
        if (narrow) go(`/task/${encodeURIComponent(id)}/why`);
        else if (wide) document.getElementById('task-why')?.focus();
        else perform('rail.toggle');
      },
    },
    ...TABS.filter((each) => each !== 'why').map((each) => ({ id: `task.tab.${each}`, label: `Show ${each}`, group: `On ${id}`, run: () => go(`/task/${encodeURIComponent(id)}/${each}`) })),
  ], [id, narrow, wide, go]));

  // On a narrow screen the tabs scroll sideways: the chosen one is brought into sight.
  useEffect(() => {
    // In some browsers it returns a promise, which an effect must not.
    void document.querySelector('.tab-list > [aria-selected="true"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [known, narrow]);

  if (!data.row && data.task.problem?.status === 404) {
    return <div className="alone"><h1>There is no task <bdi>{plain(id)}</bdi></h1><p><Plain text={data.task.problem.detail} /></p></div>;
  }
  const files = data.files.length;
  return (
    <>
      <TaskHead data={data}><Decide data={data} open={open} setOpen={setOpen} /></TaskHead>
      <Tabs tabs={tabsOf(data, narrow)} chosen={known} label={`Parts of ${id}`} panel="task-panel" onChoose={(each) => go(`/task/${encodeURIComponent(id)}/${each}`, { replace: true })}>
        <span className="push row">
          {known === 'review' && files > 0 && data.viewed.ready && <span className="small faint nowrap">{data.viewed.count} of {files} viewed</span>}
          {opener}
        </span>
      </Tabs>
      <div className={known === 'review' && files > 0 ? 'panes review' : 'panes review one'} id="task-panel" role="tabpanel" aria-label={known}>
        <Panel data={data} tab={known} onSend={() => setOpen({ type: 'send' })} side={<Side data={data} choose={choose} />} />
        {!narrow && rail}
      </div>
      <DecideNarrow data={data} setOpen={setOpen} />
    </>
  );
}

function Panel({ data, tab, onSend, side }: { data: TaskData; tab: TabId; onSend: () => void; side: ReactNode }) {
  const seq = data.row?.seq ?? 0;
  if (tab === 'review') {
    const { diff } = data;
    if (diff.value) return <Review task={data.id} diff={diff.value} files={data.files} talk={data.talk} viewed={data.viewed} onSend={onSend} />;
    return <div className="pane main">{diff.problem ? <EmptyState glyph="task.REVIEW" title="There is no diff to show"><Plain text={diff.problem.detail} /></EmptyState> : <p className="sect faint">Loading the diff…</p>}</div>;
  }
  return (
    <div className="pane main">
      {tab === 'plan' && <Plan task={data.task.value} />}
      {tab === 'transcript' && <TranscriptTab id={data.id} seq={`${seq} ${data.worker?.seq ?? 0}`} />}
      {tab === 'checks' && <ChecksTab data={data} />}
      {tab === 'history' && <HistoryTab id={data.id} seq={seq} />}
      {tab === 'why' && <div className="scroll">{side}</div>}
    </div>
  );
}

function tabsOf(data: TaskData, narrow: boolean): Tab[] {
  const remarks = data.talk.remarks.length;
  const versions = data.task.value ? planVersions(data.task.value).length : 0;
  const checks = data.task.value?.gate?.checks ?? [];
  const passed = checks.filter((check) => check.answer === 'yes').length;
  return [
    { id: 'review', label: <>Review {remarks > 0 && <span className="num" title="Comments and drafts">{remarks}</span>}</> },
    ...(narrow ? [{ id: 'why', label: 'Why' }] : []),
    { id: 'plan', label: versions > 1 ? `Plan v${versions}` : 'Plan' },
    { id: 'transcript', label: 'Transcript' },
    { id: 'checks', label: <>Checks {checks.length > 0 && <span className="faint">{passed} of {checks.length}</span>}</> },
    { id: 'history', label: 'History' },
  ];
}

function useTitle(data: TaskData): void {
  const project = useFacts()?.project;
  const title = data.row?.title ?? data.task.value?.title ?? '';
  useEffect(() => {
    document.title = [`${data.id} ${plain(title)}`.trim(), project, 'Adjutant'].filter(Boolean).join(' · ');
  }, [data.id, title, project]);
}
