import { until } from '../../bed/wait.js';
import type { Narrator } from '../narrator.js';
import type { Section, Shown, Step } from './document.js';
import { Lexicon } from './lexicon.js';
import { type Output, programOf, type Terminal } from './program.js';
import type { Command } from './shell.js';
import { PROGRAMS, run } from './terminal.js';
import { Witness } from './witness.js';

const TRY_FOR_MS = 60_000;
const TRY_EVERY_MS = 150;

/** Types what a page says, word for word, and compares what is seen with what it shows. */
export class Follower {
  readonly #terminal: Terminal;
  readonly #narrator: Narrator;
  readonly #lexicon = new Lexicon();
  readonly #witness: Witness;

  constructor(terminal: Terminal, narrator: Narrator) {
    this.#terminal = terminal;
    this.#narrator = narrator;
    this.#witness = new Witness(terminal);
  }

  /** Ends where it could not go on: the narrator has said why. */
  async follow(sections: readonly Section[]): Promise<void> {
    for (const section of sections) if (!(await this.#section(section))) return;
  }

  async #section({ title, steps }: Section): Promise<boolean> {
    if (steps.length > 0) this.#narrator.chapter(title);
    await this.#witness.begin();
    try {
      for (const step of steps) if (!(await this.#step(step))) return false;
      return true;
    } finally {
      for (const [what, value] of await this.#witness.end()) this.#narrator.show(what, value);
    }
  }

  async #step({ prose, commands, run: where, shown }: Step): Promise<boolean> {
    if (prose !== '') this.#narrator.tell(prose);
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
    const say = (one: string) => this.#lexicon.translate(one);
    return { text: say(text), words: words.map(say), ...(input === undefined ? {} : { input: say(input) }) };
  }

  async #command(command: Command, shown: Shown | undefined): Promise<boolean> {
    const { text, input } = command;
    this.#narrator.command(input === undefined ? text : `${text} <<EOF\n${input}EOF`);
    if (shown?.needsWire === true && !this.#terminal.hasNetworks) {
      this.#narrator.say('(left out: the networks of pods are simulated on this machine)');
      return true;
    }
    const { output, agrees } = await this.#run(command, shown);
    this.#narrator.output(output.text);
    if (output.succeeded) this.#witness.saw(command);
    if (shown !== undefined) this.#compare(shown, agrees);
    else if (!output.succeeded) this.#narrator.check(`"${text}" can be done`, false);
    return agrees;
  }

  #compare({ lines }: Shown, agrees: boolean): void {
    this.#narrator.check('as the page shows it', agrees);
    if (!agrees) this.#narrator.output(['The page shows:', ...lines].join('\n'));
  }

  /** What only looks is run again until it shows what it should, as somebody at a terminal does. */
  async #run(command: Command, shown: Shown | undefined): Promise<{ output: Output; agrees: boolean }> {
    let output: Output = { text: '', succeeded: false };
    const attempt = async () => {
      output = await run(command, this.#terminal);
      return shown === undefined ? output.succeeded : this.#lexicon.agrees(shown.lines, output.text.split('\n'));
    };
    const { looks } = programOf(command, PROGRAMS);
    const options = { timeoutMs: looks ? TRY_FOR_MS : 0, everyMs: TRY_EVERY_MS };
    const agrees = await until(command.text, attempt, options).catch(() => false);
    return { output, agrees };
  }
}
