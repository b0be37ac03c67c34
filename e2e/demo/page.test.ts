import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { PAGE } from './page.js';
import { type Page, parsePage } from './page/document.js';
import { commandsOf } from './page/shell.js';
import { isReadOnly, programOf } from './page/terminal.js';

const README = join(import.meta.dirname, '..', '..', 'README.md');

describe('The page that the demo runs', () => {
  let page: Page = { title: '', sections: [] };

  before(async () => {
    page = parsePage(await readFile(PAGE, 'utf8'));
  });

  const steps = () => page.sections.flatMap((section) => section.steps);
  const typed = () => steps().flatMap(({ run, commands }) => (run === 'here' ? commands : []));

  it('contains only commands that the demo supports', () => {
    expect(typed().length).to.be.greaterThan(30);
    for (const command of typed()) expect(programOf(command), command.text).to.be.a('function');
  });

  it('is run completely, except for the installation', () => {
    const done = steps().filter(({ run }) => run === 'done');
    expect(done.flatMap(({ commands }) => commands.map(({ text }) => text))).to.deep.equal([
      'kubectl apply --server-side -k manifests/crds',
      'kubectl apply --server-side -k overlay',
    ]);
  });

  it('shows the output of commands that read or are rejected', () => {
    const changing = steps().filter(({ commands, shown }) => shown && !isReadOnly(commands.at(-1)!));
    for (const { shown } of changing) expect(shown?.lines[0]).to.match(/ is invalid: | denied /);
    expect(changing).to.have.length(1);
  });

  it('marks output of pings as needing real pod networks', () => {
    const pings = steps().filter(({ commands }) => commands.some(({ words }) => words.includes('exec')));
    expect(pings).not.to.be.empty;
    for (const { line, commands, shown } of pings) {
      expect(commands.length, `line ${String(line)}`).to.equal(1);
      expect(shown?.needsWire, `line ${String(line)}`).to.equal(true);
    }
  });

  it('deletes everything that it creates', () => {
    expect(typed().at(-1)?.text).to.equal('kubectl delete namespace tryout');
  });

  it('contains the commands of the README', async () => {
    const [, block = ''] = /## On your cluster\n[^]*?```sh\n([^]*?)```/.exec(await readFile(README, 'utf8')) ?? [];
    const short = commandsOf(block.split('\n'));
    expect(short).not.to.be.empty;
    for (const { text, input } of short) {
      const same = typed().find((command) => command.text === text && command.input === input);
      expect(same, text).not.to.equal(undefined);
    }
  });
});
