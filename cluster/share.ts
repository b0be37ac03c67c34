/** Values that many objects have are in memory once. Those in use are kept, so that nobody can crowd out the frequent ones. */
const MAX_SHARED = 4096;
/** Longer texts, and values with a longer text, are not shared: they are rarely equal, and would stay in memory. */
const MAX_LENGTH = 512;

/** The first generation has what was used last. When it is full, it becomes the second one, whose unused values are forgotten. */
class SharedValues {
  #recent = new Map<string, unknown>();
  #older = new Map<string, unknown>();

  /** Returns the shared value with this key, or shares the given one. */
  get<T>(key: string, value: T): T {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent as T;
    const shared = this.#older.get(key) ?? value;
    if (this.#recent.size >= MAX_SHARED / 2) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, shared);
    return shared as T;
  }
}

const texts = new SharedValues();
const values = new SharedValues();

/** Returns an equal text that is shared, because a hundred thousand objects would each have their own copy. */
export function intern(text: string): string {
  return text.length > MAX_LENGTH ? text : texts.get(text, text);
}

/** Returns an equal value of JSON that is shared. Nobody may change it. */
export function share<T>(value: T): T {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined || text.length > MAX_LENGTH ? value : values.get(text, value);
}
