import { type Command, commandsOf } from './shell.js';

/** A page of commands and their output. */
export interface Page {
  readonly title: string;
  readonly sections: readonly PageSection[];
}

export interface PageSection {
  readonly title: string;
  readonly steps: readonly PageStep[];
}

/** A block of commands, and the output of the last one. */
export interface PageStep {
  /** The first line of the block, 1-based. */
  readonly line: number;
  /** The paragraph before the block, without Markdown. */
  readonly prose: string;
  readonly commands: readonly Command[];
  /** `done`: the bed has done it before the demo began. */
  readonly run: 'here' | 'done';
  readonly shown: ExpectedOutput | undefined;
}

/** The output of the last command as the page shows it. */
export interface ExpectedOutput {
  readonly lines: readonly string[];
  /** The output needs real pod networks. */
  readonly needsWire: boolean;
}

/** The info string of a fenced block. */
const BLOCK_KINDS = ['sh', 'sh done', 'text', 'text wire'] as const;
type BlockKind = (typeof BLOCK_KINDS)[number];

/**
 * Parses a page. Its blocks are commands (`sh`), commands that were run before (`sh done`), or the output of the block before
 * (`text`; `text wire` if it needs real pod networks).
 * @throws {Error} naming the line, for any other block
 */
export function parsePage(markdown: string): Page {
  const reader = new PageReader();
  const lines = markdown.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const fence = /^```(.*)$/.exec(line);
    if (fence === null) reader.text(line);
    else {
      const end = lines.indexOf('```', at + 1);
      if (end < 0) throw new Error(`line ${String(at + 1)}: the block has no end`);
      reader.block(at + 1, fence[1] ?? '', lines.slice(at + 1, end));
      at = end;
    }
  }
  return { title: reader.title, sections: reader.sections };
}

class PageReader {
  title = '';
  readonly sections: { title: string; steps: MutableStep[] }[] = [];
  #prose: string[] = [];
  /** The block whose output may follow. */
  #last: MutableStep | undefined;

  text(line: string): void {
    const [, marks = '', heading = ''] = /^(#+) (.*)$/.exec(line) ?? [];
    if (marks === '#') this.title = heading;
    if (marks === '##') this.sections.push({ title: heading, steps: [] });
    if (marks !== '' || line.trim() === '') this.#paragraph();
    else this.#prose.push(line);
    if (line.trim() !== '') this.#last = undefined;
  }

  block(line: number, info: string, lines: readonly string[]): void {
    const kind = BLOCK_KINDS.find((one) => one === info);
    if (kind === undefined) {
      throw new Error(
        `line ${String(line)}: a block of kind "${info}" is not supported, only ${BLOCK_KINDS.join(', ')}`,
      );
    }
    if (kind === 'sh' || kind === 'sh done') this.#commands(line, kind, lines);
    else this.#shown(line, { lines, needsWire: kind === 'text wire' });
  }

  /** Of several paragraphs, the last one belongs to the block. */
  #paragraph(): void {
    if (this.#prose.length > 0) this.#prose.push('');
  }

  #commands(line: number, kind: BlockKind, lines: readonly string[]): void {
    const section = this.sections.at(-1);
    if (section === undefined) throw new Error(`line ${String(line)}: a block comes before the first section`);
    const paragraphs = this.#prose.join('\n').trim().split('\n\n');
    this.#prose = [];
    const run = kind === 'sh' ? 'here' : 'done';
    this.#last = {
      line,
      prose: withoutMarkdown(paragraphs.at(-1) ?? ''),
      commands: parseCommands(line, lines),
      run,
      shown: undefined,
    };
    section.steps.push(this.#last);
  }

  #shown(line: number, shown: ExpectedOutput): void {
    if (this.#last === undefined) throw new Error(`line ${String(line)}: an output has no commands before it`);
    this.#last.shown = shown;
    this.#last = undefined;
  }
}

type MutableStep = { -readonly [Key in keyof PageStep]: PageStep[Key] };

function parseCommands(line: number, lines: readonly string[]): Command[] {
  try {
    const commands = commandsOf(lines);
    if (commands.length > 0) return commands;
  } catch (error) {
    throw new Error(`line ${String(line)}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  throw new Error(`line ${String(line)}: the block is empty`);
}

function withoutMarkdown(markdown: string): string {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*`]/g, '')
    .replace(/\s+/g, ' ');
}
