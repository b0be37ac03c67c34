const { stdout } = process;
const colourful = stdout.isTTY && process.env.NO_COLOR === undefined;

function paint(code: number, text: string): string {
  return colourful ? `\u001B[${String(code)}m${text}\u001B[0m` : text;
}

/** Prints the demo to the terminal: numbered steps, facts from the cluster, and the results of checks. */
export class Narrator {
  #step = 0;
  #failed = 0;
  readonly #startedAt = Date.now();

  /** A step of something that takes a while. */
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

  /** Prose of any length, broken into lines. */
  paragraph(prose: string): void {
    stdout.write(prose.replace(/(.{1,110})(?: |$)/g, '   $1\n'));
  }

  /** A command as it is typed at a terminal. */
  command(text: string): void {
    const [first = '', ...rest] = text.split('\n');
    stdout.write(`\n   ${paint(2, '$')} ${paint(1, first)}\n`);
    for (const line of rest) stdout.write(`${paint(2, `   ${line}`)}\n`);
  }

  /** The output of a command. */
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

  /** The result of a check. */
  check(expectation: string, isMet: boolean): void {
    if (!isMet) this.#failed++;
    stdout.write(`   ${isMet ? paint(32, '✓') : paint(31, '✗ FAILED:')} ${expectation}\n`);
  }

  /** A check that takes a while, and fails if the wait for it does. The demo goes on either way. */
  async checkSoon(expectation: string, wait: Promise<unknown>): Promise<void> {
    try {
      await wait;
      this.check(expectation, true);
    } catch (error) {
      this.check(expectation, false);
      this.say(`  ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** @returns the number of failed checks */
  end(): number {
    const result =
      this.#failed === 0 ? paint(32, 'All checks passed.') : paint(31, `${String(this.#failed)} checks failed.`);
    stdout.write(`\n${result} (${this.#elapsed().trim()})\n`);
    return this.#failed;
  }

  #elapsed(): string {
    return `${((Date.now() - this.#startedAt) / 1000).toFixed(1).padStart(6)} s`;
  }
}
