const { stdout } = process;
const colourful = stdout.isTTY && process.env.NO_COLOR === undefined;

function paint(code: number, text: string): string {
  return colourful ? `\u001B[${String(code)}m${text}\u001B[0m` : text;
}

/** Prints a story to the terminal: numbered steps, what is looked at, and what was found. */
export class Narrator {
  #step = 0;
  #broken = 0;
  readonly #began = Date.now();

  /** Something that takes a while has come a step further. */
  progress(line: string): void {
    stdout.write(paint(2, `   ${this.#elapsed()}  ${line}\n`));
  }

  /** Several chapters. */
  part(title: string): void {
    stdout.write(`\n${paint(7, ` ${title} `)}\n`);
  }

  chapter(title: string): void {
    this.#step++;
    stdout.write(`\n${paint(1, `${String(this.#step)}. ${title}`)}\n`);
  }

  say(line: string): void {
    stdout.write(`   ${line}\n`);
  }

  /** Prose of any length, in lines that can be read. */
  paragraph(prose: string): void {
    stdout.write(prose.replace(/(.{1,110})(?: |$)/g, '   $1\n'));
  }

  /** What somebody types at a terminal. */
  command(text: string): void {
    const [first = '', ...rest] = text.split('\n');
    stdout.write(`\n   ${paint(2, '$')} ${paint(1, first)}\n`);
    for (const line of rest) stdout.write(`${paint(2, `   ${line}`)}\n`);
  }

  /** And what it answers. */
  output(text: string): void {
    for (const line of text.split('\n')) stdout.write(`   ${line}\n`);
  }

  /** A fact read from the cluster. */
  show(what: string, value: string): void {
    stdout.write(`   ${paint(36, what.padEnd(34))} ${value}\n`);
  }

  /** Rows below a header, in columns. */
  table(header: readonly string[], rows: readonly (readonly string[])[]): void {
    const all = [header, ...rows];
    const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
    for (const [index, row] of all.entries()) {
      const line = row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ');
      stdout.write(`     ${index === 0 ? paint(36, line.trimEnd()) : line.trimEnd()}\n`);
    }
  }

  /** A promise of Holdfast, kept or not. */
  check(expectation: string, isMet: boolean): void {
    if (!isMet) this.#broken++;
    stdout.write(`   ${isMet ? paint(32, '✓') : paint(31, '✗ BROKEN:')} ${expectation}\n`);
  }

  /** A promise that takes a while: broken where the wait for it gives up. The story goes on either way. */
  async checkSoon(expectation: string, wait: Promise<unknown>): Promise<void> {
    try {
      await wait;
      this.check(expectation, true);
    } catch (error) {
      this.check(expectation, false);
      this.say(`  ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** @returns how many promises were not kept */
  end(): number {
    const verdict =
      this.#broken === 0 ? paint(32, 'Every promise was kept.') : paint(31, `${String(this.#broken)} broken.`);
    stdout.write(`\n${verdict} (${this.#elapsed().trim()})\n`);
    return this.#broken;
  }

  #elapsed(): string {
    return `${((Date.now() - this.#began) / 1000).toFixed(1).padStart(6)} s`;
  }
}
