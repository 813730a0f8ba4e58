/** Tabs of a pane. The chosen one is part of the address, so that it can be linked: the caller keeps it there. */
import type { KeyboardEvent, ReactNode } from 'react';

export interface Tab {
  id: string;
  label: ReactNode;
}

interface Props {
  tabs: readonly Tab[];
  chosen: string;
  onChoose: (id: string) => void;
  label: string;
  /** Id of the panel that the tabs switch. */
  panel: string;
  /** What stands at the right. */
  children?: ReactNode;
}

export function Tabs({ tabs, chosen, onChoose, label, panel, children }: Props) {
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = tabs[(tabs.findIndex((tab) => tab.id === chosen) + by + tabs.length) % tabs.length];
    if (!next) return;
    onChoose(next.id);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${CSS.escape(next.id)}"]`)?.focus();
  };
  return (
    <div className="tabs">
      <div className="tab-list" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            data-tab={tab.id}
            aria-selected={tab.id === chosen}
            aria-controls={panel}
            tabIndex={tab.id === chosen ? 0 : -1}
            onClick={() => onChoose(tab.id)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      {children}
    </div>
  );
}
