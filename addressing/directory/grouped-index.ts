/** Values by group and key. A group without values does not exist. */
export class GroupedIndex<T> {
  readonly #groups = new Map<string, Map<string, T>>();

  set(group: string, key: string, value: T): void {
    const values = this.#groups.get(group) ?? new Map<string, T>();
    this.#groups.set(group, values.set(key, value));
  }

  delete(group: string, key: string): void {
    const values = this.#groups.get(group);
    values?.delete(key);
    if (values?.size === 0) this.#groups.delete(group);
  }

  /** Returns the values of a group in the order in which their keys came. */
  of(group: string): readonly T[] {
    return [...(this.#groups.get(group)?.values() ?? [])];
  }
}
