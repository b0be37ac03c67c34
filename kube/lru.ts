/** Sets an entry as the most recent one, and deletes the least recent entries beyond `limit`. */
export function setMostRecent<V>(entries: Map<string, V>, key: string, value: V, limit: number): void {
  entries.delete(key);
  entries.set(key, value);
  for (const oldest of entries.keys()) {
    if (entries.size <= limit) return;
    entries.delete(oldest);
  }
}
