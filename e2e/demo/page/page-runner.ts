import { until } from '../../../bed/processes/wait.js';
import type { Narrator } from '../narrator.js';
import type { PageSection, ExpectedOutput, PageStep } from './document.js';
import { OutputMatcher } from './output-matcher.js';
import type { KubectlOutput } from '../../../bed/story/kubectl/kubectl.js';
import type { Terminal } from './program.js';
import type { Command } from './shell.js';
import { isReadOnly, programOf } from './terminal.js';
import { PingMonitor } from './ping-monitor.js';

/** A migration on a loaded machine takes this long. */
const RETRY_FOR_MS = 120_000;
const RETRY_EVERY_MS = 150;

/** Runs the commands of a page, and compares their output with the page. */
export class PageRunner {
  readonly #terminal: Terminal;
  readonly #narrator: Narrator;
  readonly #lexicon = new OutputMatcher();
  readonly #witness: PingMonitor;

  constructor(terminal: Terminal, narrator: Narrator) {
    this.#terminal = terminal;
    this.#narrator = narrator;
    this.#witness = new PingMonitor(terminal);
  }

  /** Stops at the first command that fails, after the narrator has printed the reason. */
  async run(sections: readonly PageSection[]): Promise<void> {
    for (const section of sections) if (!(await this.#section(section))) return;
  }

  async #section({ title, steps }: PageSection): Promise<boolean> {
    if (steps.length > 0) this.#narrator.chapter(title);
    await this.#witness.start();
    try {
      for (const step of steps) if (!(await this.#step(step))) return false;
      return true;
    } finally {
      for (const [what, value] of await this.#witness.stop()) this.#narrator.show(what, value);
    }
  }

  async #step({ prose, commands, run: where, shown }: PageStep): Promise<boolean> {
    if (prose !== '') this.#narrator.paragraph(prose);
    if (where === 'done') {
      for (const { text } of commands)
        this.#narrator.command(`${text}   # done: the manifests are applied, all processes run`);
      return true;
    }
    const last = commands.length - 1;
    for (const [index, command] of commands.entries()) {
      const expected = index === last ? shown : undefined;
      if (!(await this.#command(this.#translated(command), expected))) return false;
    }
    return true;
  }

  #translated({ text, words, input }: Command): Command {
    const say = (one: string) => this.#lexicon.substitute(one);
    return { text: say(text), words: words.map(say), ...(input === undefined ? {} : { input: say(input) }) };
  }

  async #command(command: Command, shown: ExpectedOutput | undefined): Promise<boolean> {
    const { text, input } = command;
    this.#narrator.command(input === undefined ? text : `${text} <<EOF\n${input}EOF`);
    if (shown?.needsWire === true && !this.#terminal.hasNetworks) {
      this.#narrator.say('(skipped: pod networks are simulated on this machine)');
      return true;
    }
    const { output, agrees } = await this.#run(command, shown);
    this.#narrator.output(output.text);
    if (output.succeeded) this.#witness.noteCommand(command);
    if (shown !== undefined) this.#compare(shown, agrees);
    else if (!output.succeeded) this.#narrator.check(`"${text}" succeeds`, false);
    return agrees;
  }

  #compare({ lines }: ExpectedOutput, agrees: boolean): void {
    this.#narrator.check('the output is as on the page', agrees);
    if (!agrees) this.#narrator.output(['The page shows:', ...lines].join('\n'));
  }

  /** Repeats a command that only reads until its output matches. */
  async #run(command: Command, shown: ExpectedOutput | undefined): Promise<{ output: KubectlOutput; agrees: boolean }> {
    let output: KubectlOutput = { text: '', succeeded: false };
    const run = programOf(command);
    const attempt = async () => {
      output = await run(this.#terminal);
      return shown === undefined ? output.succeeded : this.#lexicon.matches(shown.lines, output.text.split('\n'));
    };
    const options = { timeoutMs: isReadOnly(command) ? RETRY_FOR_MS : 0, everyMs: RETRY_EVERY_MS };
    const agrees = await until(command.text, attempt, options).catch(() => false);
    return { output, agrees };
  }
}
