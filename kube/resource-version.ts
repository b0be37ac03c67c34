/** Of one kind, resourceVersions are numbers that grow with every write (KEP-5504), of any length. */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

export function newerOf(one: string, other: string): string {
  return isNewer(one, other) ? one : other;
}
