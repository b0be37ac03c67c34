/** One command of a block, as a shell would see it. */
export interface Command {
  /** As it stands on the page, without what it is fed. */
  readonly text: string;
  /** Without quotes. */
  readonly words: readonly string[];
  /** What `<<EOF` feeds it. */
  readonly input?: string;
}

const HERE_DOCUMENT = /\s<<(['"]?)(\w+)\1$/;
/** What a shell gives a meaning that is not known here, where it is not quoted. */
const SPECIAL = /[|&;<>()$`\\*?]/;

/**
 * The commands of a block: a word and its arguments a line, with quotes and here-documents, and nothing else of a shell.
 * @throws {Error} at what else a shell knows
 */
export function commandsOf(lines: readonly string[]): Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [marked, , end] = HERE_DOCUMENT.exec(line) ?? [];
    if (marked === undefined) commands.push({ text: line, words: wordsOf(line) });
    else {
      const from = at + 1;
      at = lines.indexOf(end ?? '', from);
      if (at < 0) throw new Error(`the text after "${line}" has no end: write ${end ?? ''} on a line of its own`);
      const text = line.slice(0, -marked.length);
      commands.push({ text, words: wordsOf(text), input: `${lines.slice(from, at).join('\n')}\n` });
    }
  }
  return commands;
}

function wordsOf(line: string): string[] {
  const pieces = line.matchAll(/(?<space>\s+)|'(?<single>[^']*)'|"(?<double>[^"]*)"|(?<plain>[^\s'"]+)|(?<rest>.)/g);
  const words = [''];
  for (const { groups = {} } of pieces) {
    const { space, single, double, plain = '', rest } = groups;
    if (rest !== undefined) throw new Error(`"${line}" opens a quote that it does not close`);
    if (SPECIAL.test(plain))
      throw new Error(`"${line}" has ${plain}, which is for a whole shell: quote it, or do without`);
    if (space !== undefined) words.push('');
    else words.push(`${words.pop() ?? ''}${single ?? double ?? plain}`);
  }
  return words.filter((word) => word !== '');
}
