/** kubectl, or its plugin, before the rest of a command. The program alone, as in `this version of kubectl holdfast`, is none. */
const COMMANDS = /\bkubectl(?: holdfast|(?! holdfast))(?= [a-z-])/g;

/**
 * Adds the flags that chose cluster and user to each command in the texts of a value, such as findings: without them, somebody who copies the
 * command runs it in the current context. Files for others, such as those of a bundle, do not get flags of this machine.
 */
export function addClusterFlags<T>(value: T, clusterFlags: string): T {
  if (typeof value === 'string') return value.replaceAll(COMMANDS, (command) => command + clusterFlags) as T;
  if (Array.isArray(value)) return value.map((each: unknown) => addClusterFlags(each, clusterFlags)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, addClusterFlags(each, clusterFlags)]),
  ) as T;
}

/** Quotes a text for a command that somebody copies into a shell. */
export function shellWord(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
