/** All parts on one page, for looking at: `/parts?fixture`. Not in the product. */
import { useState } from 'react';
import { Age, Countdown } from '../parts/Age';
import { Button } from '../parts/Button';
import { Dialog } from '../parts/Dialog';
import { Drawer } from '../parts/Drawer';
import { drawings } from '../parts/drawings';
import { EmptyState } from '../parts/EmptyState';
import { Glyph } from '../parts/Glyph';
import { Menu } from '../parts/Menu';
import { Meter } from '../parts/Meter';
import { Plain } from '../parts/plain';
import { Slip } from '../parts/Slip';
import { Tabs } from '../parts/Tabs';
import { showToast } from '../parts/Toast';
import { VirtualList } from '../parts/VirtualList';
import { useRow, useTaskIds } from '../store/store';

export default function Parts() {
  const [dialog, setDialog] = useState(false);
  const [drawer, setDrawer] = useState(false);
  const [tab, setTab] = useState('one');
  const soon = new Date(Date.now() + 192_000).toISOString();
  return (
    <div className="panes" style={{ gridTemplateColumns: 'minmax(0, 1fr) minmax(0, 280px)' }}>
      <section className="pane">
        <Tabs label="Example" panel="panel" chosen={tab} onChoose={setTab} tabs={[{ id: 'one', label: 'Review' }, { id: 'two', label: 'Plan v2' }]} />
        <div className="scroll" id="panel" role="tabpanel">
          <h1 className="hide">Parts</h1>
          <section className="sect"><h2 className="head">Glyphs</h2><p className="row" style={{ flexWrap: 'wrap' }}>
            {Object.keys(drawings).map((name) => <span key={name} className="state small"><Glyph name={name} />{name}</span>)}
            <span className="state small"><Glyph name="architect.UNKNOWN" />a state without a drawing</span>
          </p></section>
          <section className="sect"><h2 className="head">Buttons</h2><p className="row" style={{ flexWrap: 'wrap' }}>
            <Button look="primary" action="approve" acts>Approve</Button><Button acts>Plain</Button><Button look="quiet">Quiet</Button><Button look="no">Deny…</Button>
            <Button off="Not from In progress: its merge is not in main.">Off</Button><Button look="primary" off="why">Off</Button><Button size="dense" glyph="plus">Dense</Button><Button size="tiny">Tiny</Button>
            <Button look="quiet" glyph="more" aria-label="More" />
            <Menu label="Group" items={[{ id: 'a', label: 'Status', checked: true, run: () => undefined }, { id: 'b', label: 'Agent', checked: false, run: () => undefined }, { id: 'c', label: 'Spec', off: 'no spec in this project', run: () => undefined }]}>
              Group: status <Glyph name="down" size={14} />
            </Menu>
            <Button onClick={() => setDialog(true)}>Dialog</Button><Button onClick={() => setDrawer(true)}>Drawer</Button>
            <Button onClick={() => showToast({ glyph: 'back', tone: 'bad', title: 'ta-10 is back in Review.', text: 'Done was refused: its merge is not in main. It is third in the queue, about 38 s.', action: <Button size="tiny" action="why">Why</Button> })}>Toast</Button>
          </p></section>
          <section className="sect"><h2 className="head">Meters and times</h2><div className="gauge-demo">
            <Meter label="plain" spent={4} reserved={2} cap={20} /><br /><Meter label="near" spent={14} reserved={3} cap={20} /><br /><Meter label="over" spent={22} cap={20} />
            <p>since <Age since={new Date(Date.now() - 130_000).toISOString()} long />, again in <Countdown until={soon} /></p>
          </div></section>
          <section className="sect"><h2 className="head">Hostile text</h2>
            <p><Plain text={'<b>not bold</b> \u001b[31mred \u202eexe.txt\u202c ad\u200bmin https://example.org'} /></p></section>
          <EmptyState glyph="queue" title="Nothing is queued">A task that is approved comes here.</EmptyState>
        </div>
      </section>
      <section className="pane"><Column /></section>
      {dialog && <Dialog title="Move ta-1 to Review" onClose={() => setDialog(false)} footer={<><Button onClick={() => setDialog(false)}>Put back</Button><Button look="primary">Move</Button></>}>
        <label className="field"><input placeholder="Deliverable" /></label></Dialog>}
      {drawer && <Drawer title="Why, checks, runs" onClose={() => setDrawer(false)}><section className="sect">A rail.</section></Drawer>}
    </div>
  );
}

function Column() {
  const ids = useTaskIds('IN_PROGRESS');
  return <VirtualList ids={ids} estimate={90} label="In progress" keep={['ta-1']} render={(id) => <Card id={id} />} />;
}

function Card({ id }: { id: string }) {
  const task = useRow('tasks', id);
  return task ? <Slip task={task} state={id === 'ta-1' ? 'focused' : 'plain'} sign={id === 'ta-5' ? { glyph: 'cap', text: 'waits: In progress is full' } : undefined} /> : null;
}
