/** Ids of rows in groups, each in order. A group's list is a new array exactly if it changed, so a reader can compare by identity. */

export interface Place {
  id: string;
  group: string;
  /** Lower comes first; equal ones by id. */
  rank: number;
}

const NONE: readonly string[] = [];

export class OrderedGroups {
  private readonly groups = new Map<string, readonly string[]>();
  private readonly places = new Map<string, Place>();

  of(group: string): readonly string[] {
    return this.groups.get(group) ?? NONE;
  }

  /** All rows anew: one sort instead of many insertions. */
  replace(places: Iterable<Place>): void {
    this.groups.clear();
    this.places.clear();
    const lists = new Map<string, Place[]>();
    for (const place of places) {
      this.places.set(place.id, place);
      const list = lists.get(place.group);
      if (list) list.push(place);
      else lists.set(place.group, [place]);
    }
    for (const [group, list] of lists) this.groups.set(group, list.sort(inOrder).map((place) => place.id));
  }

  set(place: Place): void {
    const before = this.places.get(place.id);
    if (before && before.rank === place.rank && before.group === place.group) return;
    this.delete(place.id);
    const list = this.of(place.group);
    const at = this.position(list, place);
    this.places.set(place.id, place);
    this.groups.set(place.group, [...list.slice(0, at), place.id, ...list.slice(at)]);
  }

  delete(id: string): void {
    const place = this.places.get(id);
    if (!place) return;
    const list = this.of(place.group);
    const at = this.position(list, place);
    this.groups.set(place.group, [...list.slice(0, at), ...list.slice(at + 1)]);
    this.places.delete(id);
  }

  /** The first position whose row does not come before this one. */
  private position(list: readonly string[], place: Place): number {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.places.get(list[middle] ?? '');
      if (other && inOrder(other, place) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function inOrder(a: Place, b: Place): number {
  return a.rank - b.rank || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
