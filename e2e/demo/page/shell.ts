/** One command of a block, parsed as a shell does. */
export interface Command {
  /** As on the page, without its here-document. */
  readonly text: string;
  /** Without quotes. */
  readonly words: readonly string[];
  /** The here-document. */
  readonly input?: string;
}

const HERE_DOCUMENT = /\s<<(['"]?)(\w+)\1$/;
/** Characters with a meaning for a shell that is not supported here, unless they are quoted. */
const SPECIAL = /[|&;<>()$`\\*?]/;

/**
 * Parses the commands of a block, one on each line, with quotes and here-documents.
 * @throws {Error} for any other shell syntax
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
      if (at < 0)
        throw new Error(`the here-document after "${line}" has no end: write ${end ?? ''} on a line of its own`);
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
    if (rest !== undefined) throw new Error(`"${line}" has an unclosed quote`);
    if (SPECIAL.test(plain))
      throw new Error(`"${line}" contains ${plain}, which the demo does not support: quote it or remove it`);
    if (space !== undefined) words.push('');
    else words.push(`${words.pop() ?? ''}${single ?? double ?? plain}`);
  }
  return words.filter((word) => word !== '');
}
