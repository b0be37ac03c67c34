/** Compares resourceVersions of one kind: numbers of any length that grow with every write (KEP-5504). */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

export function newerOf(one: string, other: string): string {
  return isNewer(one, other) ? one : other;
}
