/** The rows of the view, by table and id, and the lists that are derived from them. Rows are replaced, never changed. */
import { TABLES, type Tables, type TableName, type View, type ViewChange } from '../api/view';
import { OrderedGroups, type Place } from './ordered';

type Maps = { [T in TableName]: Map<string, Tables[T]> };

/** Tables whose rows stand in lists, with the place of a row: its group is a column of the board or a group of a list. */
const PLACES = {
  tasks: (row: Tables['tasks']): Place => ({ id: row.id, group: row.status, rank: row.rank }),
  // Oldest first.
  workers: (row: Tables['workers']): Place => ({ id: row.id, group: row.attention, rank: Date.parse(row.since) || 0 }),
  waiting: (row: Tables['waiting']): Place => ({ id: row.id, group: '', rank: row.rank }),
  queue: (row: Tables['queue']): Place => ({ id: row.id, group: '', rank: row.rank }),
};
export type Listed = keyof typeof PLACES;

export class Rows {
  private readonly tables = Object.fromEntries(TABLES.map((table) => [table, new Map()])) as Maps;
  private readonly lists: { [L in Listed]: OrderedGroups } = {
    tasks: new OrderedGroups(), workers: new OrderedGroups(), waiting: new OrderedGroups(), queue: new OrderedGroups(),
  };

  row<T extends TableName>(table: T, id: string): Tables[T] | undefined {
    return this.tables[table].get(id);
  }

  all<T extends TableName>(table: T): ReadonlyMap<string, Tables[T]> {
    return this.tables[table];
  }

  /** How many rows a table has; of what waits, only what waits for people. */
  count(table: TableName): number {
    if (table !== 'waiting') return this.tables[table].size;
    let count = 0;
    for (const row of this.tables.waiting.values()) if (row.who !== 'service') count += 1;
    return count;
  }

  list(table: Listed, group = ''): readonly string[] {
    return this.lists[table].of(group);
  }

  replace(view: View): void {
    for (const table of TABLES) this.replaceTable(table, view[table] ?? []);
  }

  apply(change: ViewChange): void {
    for (const table of TABLES) this.changeTable(table, change[table] ?? [], (change.gone as Partial<Record<TableName, string[]>>)[table] ?? []);
  }

  private replaceTable<T extends TableName>(table: T, rows: readonly Tables[T][]): void {
    const map = this.tables[table];
    map.clear();
    for (const row of rows) map.set(row.id, row);
    const place = placing(table);
    if (place) this.lists[table as Listed].replace(rows.map(place));
  }

  private changeTable<T extends TableName>(table: T, rows: readonly Tables[T][], gone: readonly string[]): void {
    const map = this.tables[table];
    const list = table in PLACES ? this.lists[table as Listed] : undefined;
    const place = placing(table);
    for (const id of gone) {
      map.delete(id);
      list?.delete(id);
    }
    for (const row of rows) {
      map.set(row.id, row);
      if (place) list?.set(place(row));
    }
  }
}

function placing<T extends TableName>(table: T): ((row: Tables[T]) => Place) | undefined {
  return (PLACES as Partial<Record<TableName, (row: never) => Place>>)[table] as ((row: Tables[T]) => Place) | undefined;
}
